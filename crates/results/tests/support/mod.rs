//! Documents and rounds made up for tests.

use std::collections::BTreeMap;

use raidlab_random::SplitMix64;
use raidlab_results::risk::{
    Assumed, Chance, DrivesRisk, LayoutRisk, LeftOut, MissionRisk, Ratio, Risks,
};
use raidlab_results::statistics::{mean, median};
use raidlab_results::{Better, Cell, Clock, LayoutRow, Results, SCHEMA_VERSION, WorkloadRow};

/// What rounds are drawn by.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Above 0 and below 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Of mean 0 and deviation 1: Box and Muller (1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (libm::sqrt(-2.0 * libm::log(self.share())), self.share());
        radius * libm::cos(angle * std::f64::consts::TAU)
    }
}

/// A cell of a layout with these rounds.
pub(crate) fn cell(layout: &str, samples: &[f64]) -> Cell {
    Cell {
        layout: layout.to_owned(),
        workload: "write".into(),
        processes: 1,
        state: "healthy".into(),
        metric: "mib_per_s".into(),
        better: Better::Higher,
        unit: "MiB/s".into(),
        samples: samples.to_vec(),
        median: median(samples).expect("samples"),
        ci95: None,
        coverage: None,
        mean: mean(samples).expect("samples"),
        spread_percent: None,
        percent_vs_baseline: None,
        percent_interval: None,
        floor_percent: None,
        verdict: None,
        more_rounds: None,
        dependence: None,
        may_be_best: false,
        as_good_as_best: false,
        unsettled: false,
        outlier_rounds: Vec::new(),
        settings: BTreeMap::new(),
        first_done_s: 1.0,
        last_done_s: 1.0,
        process_cpu_s: None,
        system_cpu_s: None,
        bottleneck: None,
        fairness: None,
        latency_ms: None,
        done_s: Vec::new(),
        latency_curve_ms: Vec::new(),
        busy: Vec::new(),
        timeline: None,
        members: None,
        published: None,
        moved: None,
        trust: None,
        detail: false,
        note: None,
    }
}

/// A document of these cells.
pub(crate) fn document(clock: Clock, cells: Vec<Cell>) -> Results {
    let layout = |cell: &Cell| LayoutRow {
        name: cell.layout.clone(),
        capacity: 1 << 30,
        survives: 0,
        chunk: None,
        blocks: Vec::new(),
    };
    Results {
        schema_version: SCHEMA_VERSION,
        raidlab: "0.1.0".into(),
        study: "a study".into(),
        seed: 1,
        clock,
        host: BTreeMap::new(),
        settings: BTreeMap::new(),
        warnings: Vec::new(),
        baseline: Vec::new(),
        layouts: cells.iter().map(layout).collect(),
        workloads: vec![WorkloadRow { name: "write".into(), description: "writes".into() }],
        latency_shares: Vec::new(),
        cells,
        too_short: Vec::new(),
        risk: None,
        fidelity: None,
        findings: Vec::new(),
        without: Vec::new(),
        ablation: Vec::new(),
    }
}

/// Chances of layouts, each half as large as that of the one before.
pub(crate) fn risks(layouts: &[&str]) -> Risks {
    let chance = |central: f64| Chance {
        central,
        p5: central / 5.0,
        p95: central * 5.0,
        about: "1 in 300".to_owned(),
        between: Some("1 in 60 to 2,000".to_owned()),
        words: "about 1 in 300; between 1 in 60 and 1 in 2,000".to_owned(),
    };
    let mission = |years: f64, central: f64| MissionRisk {
        years,
        array: chance(central),
        sector: chance(central * 2.0),
        lost_bytes_per_usable_tb: central * 1e12,
        lost: "3 GB".to_owned(),
    };
    let times = Ratio {
        central: 40.0,
        p5: 20.0,
        p95: 80.0,
        about: "40".to_owned(),
        between: Some("20 to 80".to_owned()),
        words: "about 40 times as often; from 20 to 80 times".to_owned(),
    };
    let last = layouts.len() - 1;
    let layout = |(at, name): (usize, &&str)| {
        let times = (at < last).then(|| times.clone());
        let central = 0.003 / f64::from(1 << at);
        LayoutRisk {
            layout: (*name).to_owned(),
            spares: 0,
            rebuilt: "in 12 h to 37 h: one full pass to three".to_owned(),
            rebuild_hours: if at == 0 { vec![10.5, 1.0 / 3.0] } else { Vec::new() },
            times_array: times.clone(),
            times_sector: times,
            missions: vec![mission(1.0, central / 5.0), mission(5.0, central)],
        }
    };
    let drives = DrivesRisk {
        drives: "a drive".to_owned(),
        assumed: vec![Assumed { what: "scrubbed".to_owned(), words: "every 30 d".to_owned() }],
        commands: vec!["raidlab risk LAYOUTS --years 1,5".to_owned()],
        computing_error: 0.005,
        safest: layouts[last].to_owned(),
        note: None,
        layouts: layouts.iter().enumerate().map(layout).collect(),
    };
    Risks {
        scope: "drives and rebuilds only, not fire".to_owned(),
        main_mission_years: 5.0,
        drives: vec![drives],
        left_out: vec![LeftOut { layouts: vec!["other".to_owned()], why: "not known".to_owned() }],
    }
}
