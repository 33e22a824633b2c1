//! Hand-made results documents: the figures are invented.
#![allow(dead_code, unreachable_pub, reason = "shared by the tests and an example")]

use std::collections::BTreeMap;

use raidlab_report::Terminal;
use raidlab_results::comparison::Row;
use raidlab_results::document::{
    Better, Bottleneck, Cell, Clock, LayoutRow, Published, Results, SCHEMA_VERSION, Verdict,
    WorkloadRow,
};
use raidlab_results::risk::{
    Assumed, Chance, DrivesRisk, LayoutRisk, LeftOut, MissionRisk, Ratio, Risks,
};
use raidlab_results::{AblationRow, Fidelity, TooShort};

/// What a row of cells has in common.
pub struct Shared<'a> {
    pub workload: &'a str,
    pub processes: u32,
    pub state: &'a str,
    pub unit: &'a str,
    pub better: Better,
}

/// Offsets of the rounds from the median, in shares of the spread; the median is their middle.
const ROUNDS: [f64; 6] = [-0.5, 1.0, 0.0, -1.0, 0.0, 0.5];

/// A cell with `rounds` samples around `median`, at most `spread` percent away.
pub fn cell(shared: &Shared<'_>, layout: &str, median: f64, spread: f64, rounds: usize) -> Cell {
    let sample = |at: usize| median * (1.0 + ROUNDS[at % 6] * spread / 100.0);
    let samples: Vec<f64> = (0..rounds).map(sample).collect();
    let reach = median * spread / 100.0;
    let enough = rounds >= 6;
    let metric = match shared.unit {
        "MiB/s" => "mib_per_s",
        "1/s" => "iops",
        _ => "seconds",
    };
    Cell {
        layout: layout.to_owned(),
        workload: shared.workload.to_owned(),
        processes: shared.processes,
        state: shared.state.to_owned(),
        metric: metric.to_owned(),
        better: shared.better,
        unit: shared.unit.to_owned(),
        mean: samples.iter().sum::<f64>() / rounds as f64,
        samples,
        median,
        ci95: enough.then_some([median - reach, median + reach]),
        coverage: enough.then_some(1.0 - 20.0 / 512.0),
        percent_vs_baseline: None,
        percent_interval: None,
        floor_percent: enough.then_some(1.0),
        verdict: None,
        more_rounds: None,
        dependence: None,
        may_be_best: false,
        as_good_as_best: false,
        unsettled: false,
        outlier_rounds: Vec::new(),
        settings: BTreeMap::new(),
        first_done_s: 4_000.0 / median,
        last_done_s: 4_100.0 / median,
        process_cpu_s: None,
        system_cpu_s: None,
        bottleneck: Some(Bottleneck { resource: "member 0".to_owned(), busy: 0.98 }),
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
        spread_percent: None,
        detail: false,
        note: None,
    }
}

/// Percentages and verdicts of a row against the layout `baseline`.
pub fn compare(cells: &mut [Cell], baseline: &str) {
    let Some(base) = cells.iter().find(|cell| cell.layout == baseline).cloned() else { return };
    let samples: Vec<Vec<f64>> = cells.iter().map(|cell| cell.samples.clone()).collect();
    let layouts: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
    let better = base.better;
    let row = Row {
        layouts: &layouts,
        baseline: &[],
        again: None,
        better,
        floor: 0.01,
        doubt: 0.0,
        drawn: true,
    };
    for (cell, standing) in cells.iter_mut().zip(row.against_best()) {
        cell.may_be_best = standing.may_be_best;
        cell.as_good_as_best = standing.as_good_as_best;
    }
    for cell in cells {
        let percent = (cell.median / base.median - 1.0) * 100.0;
        cell.percent_vs_baseline = Some(percent);
        let better = (cell.better == Better::Higher) == (percent > 0.0);
        cell.verdict = match percent {
            _ if cell.layout == baseline => None,
            percent if percent.abs() < 1.0 => Some(Verdict::Equal),
            _ if better => Some(Verdict::Faster),
            _ => Some(Verdict::Slower),
        };
    }
}

const LAYOUTS: [(&str, u64, u16); 6] = [
    ("single", 1, 0),
    ("linear(4)", 4, 0),
    ("raid0(4)", 4, 0),
    ("raid1(2)", 1, 1),
    ("raid5(4)", 3, 1),
    ("raid10(4)", 2, 1),
];

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A document with the layouts of the default study and no cells.
pub fn empty() -> Results {
    let layouts = LAYOUTS.iter().map(|(name, drives, survives)| LayoutRow {
        name: (*name).to_owned(),
        capacity: drives * 8_001_563_222_016,
        survives: *survives,
        chunk: None,
        blocks: Vec::new(),
    });
    Results {
        schema_version: SCHEMA_VERSION,
        raidlab: "0.1.0".to_owned(),
        study: "Four NAS drives, which layout?".to_owned(),
        seed: 1,
        clock: Clock::Virtual,
        host: map(&[("drive nas", "8 TB, 7,200 rpm, SATA (nas-8tb-7200)")]),
        settings: map(&[
            ("cache", "drive write cache on, no page cache"),
            ("chunk", "512KiB where a layout does not say otherwise"),
        ]),
        warnings: vec!["the drive model is not calibrated against a real drive".to_owned()],
        baseline: vec!["single".to_owned()],
        layouts: layouts.collect(),
        workloads: Vec::new(),
        latency_shares: Vec::new(),
        cells: Vec::new(),
        too_short: Vec::new(),
        risk: None,
        fidelity: None,
        findings: Vec::new(),
        without: Vec::new(),
        ablation: Vec::new(),
    }
}

/// A figure of a workload that most rounds took too short a time to tell.
pub fn too_short() -> Vec<TooShort> {
    vec![TooShort {
        layout: "raid0(4)".to_owned(),
        workload: "bonnie".to_owned(),
        processes: 2,
        state: "degraded".to_owned(),
        metric: "read_kps".to_owned(),
        settings: map(&[("size", "64MiB")]),
        rounds: 7,
        of: 9,
    }]
}

fn workload(name: &str, description: &str) -> WorkloadRow {
    WorkloadRow { name: name.to_owned(), description: description.to_owned() }
}

/// Adds a row; a median of 0 stands for a cell that was not measured.
fn add(results: &mut Results, shared: &Shared<'_>, medians: [f64; 6], spreads: [f64; 6]) {
    let rows = LAYOUTS.iter().zip(medians.into_iter().zip(spreads));
    let mut cells: Vec<Cell> = rows
        .filter(|(_, (median, _))| *median > 0.0)
        .map(|((name, ..), (median, spread))| cell(shared, name, median, spread, 9))
        .collect();
    compare(&mut cells, "single");
    results.cells.extend(cells);
}

/// Two workloads, two process counts, six layouts, one cell missing.
pub fn small() -> Results {
    let mut results = empty();
    results.workloads = vec![
        workload(
            "dd-write",
            "sequential write of 1MiB blocks, 4GiB per process, each at its own quarter of the \
             array, depth 1, ends with a flush",
        ),
        workload("random-read", "4KiB at random over 64GiB, 10,000 reads per process, depth 1"),
    ];
    let mut shared = Shared {
        workload: "dd-write",
        processes: 1,
        state: "healthy",
        unit: "MiB/s",
        better: Better::Higher,
    };
    let quiet = [0.2, 0.2, 0.4, 0.3, 2.5, 0.3];
    add(&mut results, &shared, [201.0, 201.4, 762.0, 199.5, 598.0, 401.0], quiet);
    shared.processes = 4;
    add(&mut results, &shared, [88.25, 87.9, 310.0, 82.0, 12.6, 0.0], [0.3; 6]);
    shared = Shared { workload: "random-read", unit: "1/s", ..shared };
    shared.processes = 1;
    add(&mut results, &shared, [78.0, 78.1, 78.2, 78.0, 77.8, 78.3], [0.9; 6]);
    shared.processes = 4;
    add(
        &mut results,
        &shared,
        [78.5, 79.0, 1_234.0, 140.0, 273.0, 1_229.0],
        [1.0, 0.9, 14.0, 1.0, 1.0, 3.0],
    );
    results
}

/// As large as the default study: 6 layouts, 4 workloads, 3 process counts.
pub fn full() -> Results {
    let mut results = empty();
    let names = ["dd-write", "dd-read", "random-read", "random-write"];
    for (number, name) in names.into_iter().enumerate() {
        results
            .workloads
            .push(workload(name, "blocks of a size, so many bytes per process, a span"));
        let sequential = number < 2;
        for processes in [1, 2, 4] {
            let share = f64::from(processes) * if sequential { -0.1 } else { 0.6 };
            let base = if sequential { 201.0 } else { 78.0 } * (1.0 + share);
            let unit = if sequential { "MiB/s" } else { "1/s" };
            let shared = Shared {
                workload: name,
                processes,
                state: "healthy",
                unit,
                better: Better::Higher,
            };
            let factors = [1.0, 1.002, 3.8, 0.98, [2.9, 3.1, 3.74, 0.4][number], 2.0];
            let medians = factors.map(|factor| base * factor + f64::from(processes) / 7.0);
            add(&mut results, &shared, medians, [0.3, 0.5, 6.0, 1.2, 2.5, 12.0]);
        }
    }
    results
}

/// Seconds on the real clock, few rounds, a degraded row, a mean of two layouts as the baseline.
pub fn real() -> Results {
    let mut results = empty();
    results.clock = Clock::Real;
    results.study = "Ein größerer Versuch".to_owned();
    results.warnings =
        vec!["all members share one device, so layouts are not comparable".to_owned()];
    results.layouts.truncate(3);
    let long = "raid0(4) chunk=64K policy=md-2.6";
    results.layouts[2].name = long.to_owned();
    results.baseline = vec!["single".to_owned(), "linear(4)".to_owned()];
    results.workloads = vec![workload("cp", "")];
    let shared =
        |state| Shared { workload: "cp", processes: 2, state, unit: "s", better: Better::Lower };
    for state in ["degraded", "healthy"] {
        for (layout, median) in [("single", 4.0), ("linear(4)", 4.2), (long, 1.25)] {
            let mut cell = cell(&shared(state), layout, median, 12.0, 3);
            cell.percent_vs_baseline = Some((median / 4.1 - 1.0) * 100.0);
            cell.last_done_s = 0.05;
            cell.settings = map(&[("block", "64KiB")]);
            results.cells.push(cell);
        }
    }
    results
}

/// A replay: times and rates, published and calibrated cells, a bus, processes that end apart, block sizes,
/// and what moves without mechanisms.
pub fn replay() -> Results {
    let mut results = empty();
    results.study = "dd-1999: an old study".to_owned();
    results.warnings.clear();
    results.layouts.truncate(3);
    for (row, name) in results.layouts.iter_mut().zip(["single", "md-raid0(2)", "bios-raid0(2)"]) {
        row.name = name.to_owned();
    }
    results.workloads = ["cp", "readers", "sweep"].map(|name| workload(name, "")).into();
    let layouts = ["single", "md-raid0(2)", "bios-raid0(2)"];
    let mut add = |shared: &Shared<'_>, medians: [f64; 3], change: &dyn Fn(&mut Cell)| {
        for (layout, median) in layouts.into_iter().zip(medians) {
            let mut cell = cell(shared, layout, median, 2.0, 3);
            cell.spread_percent = Some(4.0);
            if layout == "bios-raid0(2)" {
                let (resource, busy) = ("pci".to_owned(), 0.97);
                cell.bottleneck = Some(Bottleneck { resource, busy });
            }
            change(&mut cell);
            results.cells.push(cell);
        }
    };
    let time = |workload, processes| Shared {
        workload,
        processes,
        state: "healthy",
        unit: "s",
        better: Better::Lower,
    };
    add(&time("cp", 1), [100.0, 60.0, 80.0], &|cell| match cell.layout.as_str() {
        "single" => cell.published = Some(published(80.0, cell.median, false)),
        "md-raid0(2)" => cell.published = Some(published(61.0, cell.median, true)),
        _ => {}
    });
    add(&time("cp", 4), [900.0, 260.0, 480.0], &|_| {});
    let rate = Shared { unit: "MiB/s", better: Better::Higher, ..time("readers", 2) };
    add(&rate, [50.0, 90.0, 40.0], &|cell| {
        cell.fairness = Some(0.9);
        let last = if cell.layout == "single" { 300.0 } else { 110.0 };
        (cell.first_done_s, cell.last_done_s) = (100.0, last);
    });
    for (block, rates) in [("4KiB", [20.0, 21.0, 22.0]), ("1MiB", [60.0, 110.0, 90.0])] {
        let rate = Shared { processes: 1, workload: "sweep", ..rate };
        add(&rate, rates, &|cell| cell.settings = map(&[("block", block)]));
    }
    let without = |factor: f64| -> Vec<Cell> {
        let cells = results.cells.iter().cloned().map(|mut cell| {
            if cell.layout != "single" {
                cell.median *= factor;
            }
            cell
        });
        cells.collect()
    };
    let row = |mechanism, factor| {
        AblationRow::new(mechanism, "it is not there", &results.cells, &without(factor))
    };
    results.ablation = vec![
        row("journal", 1.5),
        row("luck", 1.001),
        row("parity-cost", 0.75),
        row("parity-cost=x0.5", 0.8),
        row("parity-cost=x2", 1.25),
        row("parity-cost=x10", 4.0),
    ];
    results.fidelity = Some(Fidelity::of(&results.cells, 1));
    results.findings = raidlab_report::findings(&results);
    results
}

fn published(value: f64, median: f64, calibrated: bool) -> Published {
    Published { value, error_percent: (median / value - 1.0) * 100.0, calibrated }
}

/// File name, exporter and document of every expected text.
pub fn golden_cases() -> Vec<(&'static str, Terminal, Results)> {
    let terminal = |width| Terminal { width, colour: false, unicode: true };
    vec![
        ("small-120.txt", terminal(Some(120)), small()),
        ("small-80.txt", terminal(Some(80)), small()),
        ("small-60.txt", terminal(Some(60)), small()),
        ("small-piped.txt", terminal(None), small()),
        ("small-colour-120.txt", Terminal { colour: true, ..terminal(Some(120)) }, small()),
        ("real-ascii-80.txt", Terminal { unicode: false, ..terminal(Some(80)) }, real()),
    ]
}

/// A document of so many cells of 9 rounds, with a timeline and a latency curve each.
pub fn large(cells: usize) -> Results {
    let mut results = empty();
    let layouts = results.layouts.len();
    results.latency_shares = raidlab_results::LATENCY_SHARES.to_vec();
    results.workloads = (0..cells.div_ceil(layouts * 8))
        .map(|at| WorkloadRow { name: format!("made-up-{at} 4KiB"), description: String::new() })
        .collect();
    for at in 0..cells {
        let (row, layout) = (at / layouts, at % layouts);
        let workload = results.workloads[row / 8].name.clone();
        let shared = Shared {
            workload: &workload,
            processes: 1 << (row % 8),
            state: "healthy",
            unit: "MiB/s",
            better: Better::Higher,
        };
        let median = 100.0 / 3.0 + (at * 7_919 % 10_007) as f64 / 7.0;
        let mut one = cell(&shared, LAYOUTS[layout].0, median, 3.0, 9);
        one.latency_curve_ms = results.latency_shares.iter().map(|one| one * median).collect();
        one.timeline = Some(raidlab_results::TimelineRow {
            round: 1,
            bin_s: 0.5,
            unit: "MiB/s".to_owned(),
            rate: vec![median; 60],
            mean_ms: vec![Some(1.5); 60],
            max_ms: vec![Some(2.5); 60],
            rebuilt_percent: Vec::new(),
        });
        results.cells.push(one);
    }
    results
}

/// Medians, means, intervals and percentages as the rounds give them.
pub fn by_the_rule(results: &mut Results) {
    use raidlab_results::statistics::{mean, median, median_interval};
    let before = results.clone();
    for (at, cell) in results.cells.iter_mut().enumerate() {
        for (round, sample) in cell.samples.iter_mut().enumerate() {
            *sample *= 1.0 + ((at * 31 + round * 17) % 23) as f64 / 500.0;
        }
        let interval = median_interval(&cell.samples);
        cell.median = median(&cell.samples).expect("rounds");
        cell.mean = mean(&cell.samples).expect("rounds");
        cell.ci95 = interval.map(|one| [one.low, one.high]);
    }
    let cells = results.cells.clone();
    for cell in &mut results.cells {
        let base = cells.iter().find(|one| {
            one.layout == before.baseline[0]
                && (&one.workload, one.processes) == (&cell.workload, cell.processes)
        });
        let base = base.expect("a baseline");
        let layouts: &[&[f64]] = &[&base.samples, &cell.samples];
        let better = cell.better;
        let row = Row {
            layouts,
            baseline: &[0],
            again: None,
            better,
            floor: 0.01,
            doubt: 0.0,
            drawn: true,
        };
        cell.percent_vs_baseline = row.compare()[1].map(|one| one.percent);
    }
}

/// Chances of layouts, each half as large as that of the one before.
pub fn risks(layouts: &[&str]) -> Risks {
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
