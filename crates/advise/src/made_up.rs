//! Finalists whose runs gave what a test says, for rules that words and verdicts follow.

use raidlab_core::{MemberTotals, Nanos};
use raidlab_study::{Detail, Latency, Sample, State};

use crate::candidate::{Candidate, Candidates, Mode};
use crate::decide::{Advice, Verdict};
use crate::meter::Measured;
use crate::objectives::Figures;
use crate::profile::Profile;
use crate::search::{Finalist, Spent};
use crate::wanted::Wanted;

/// A question about so many drives.
pub(crate) fn wanted(drives: u16, drive: &str, work: &str) -> Wanted {
    let drive = raidlab_models::load(drive).expect("compiled in");
    Wanted::new(drives..=drives, drive, Profile::named(work).expect("there"))
}

/// A second in which so many requests of 1 MB were done, all written, each twice on members, with this p99.
pub(crate) fn sample(rate: u64, p99_ms: u64) -> Sample {
    let p99 = Nanos(p99_ms * 1_000_000);
    Sample {
        values: vec![Some(rate as f64)],
        first_done: Nanos(1),
        last_done: Nanos(1_000_000_000),
        bytes: rate * 1_000_000,
        ops: rate,
        process_cpu_s: None,
        system_cpu_s: None,
        bottleneck: None,
        latency: Some(Latency { p50: p99, p99, p999: p99, max: p99 }),
        fairness: None,
        members: Some(MemberTotals { bytes_written: rate * 2_000_000, ..MemberTotals::default() }),
        bytes_written: rate * 1_000_000,
        rebuild: None,
        warnings: Vec::new(),
        detail: Detail::default(),
    }
}

/// A finalist that did so many requests a second in each part, healthy, with p99s healthy and degraded where there are.
pub(crate) fn finalist(
    wanted: &Wanted,
    layout: &str,
    rates: &[u64],
    p99s: [Option<u64>; 2],
) -> Finalist {
    let (layout, spares) = match layout.split_once(" + spare") {
        Some((layout, _)) => (layout, 1),
        None => (layout, 0),
    };
    let candidate =
        Candidate { layout: layout.parse().expect("a layout"), spares, mode: Mode::None };
    let mut samples = Vec::new();
    for (part, rate) in rates.iter().enumerate() {
        for (state, p99) in [State::Healthy, State::Degraded].into_iter().zip(p99s) {
            samples.extend(p99.map(|p99| (part, state, sample(*rate, p99))));
        }
    }
    let usable = candidate.usable(wanted.member()).expect("fits");
    let measured = Measured { samples };
    let tail = p99s[1].or(p99s[0]).map_or(1.0, |p99| p99 as f64 / 1e3);
    let speed = measured.speed(wanted, State::Healthy).unwrap_or(1.0);
    let risk = 1e-3;
    let figures = Figures { speed, tail, capacity: usable as f64, risk, price: 0.0, watts: 0.0 };
    Finalist { candidate, usable, rounds: vec![measured; 3], risk, costs: figures.costs() }
}

/// The first of them is recommended, the second the next best.
pub(crate) fn advice(finalists: Vec<Finalist>) -> Advice {
    let next = (finalists.len() > 1).then_some(1);
    Advice {
        dropped: Candidates::default(),
        spent: Spent::default(),
        risks: Vec::new(),
        batches: Vec::new(),
        front: (0..finalists.len()).collect(),
        verdict: Verdict { pick: 0, next, lead: 1.0, sure: 0.9, by: Vec::new() },
        variants: Vec::new(),
        consistency: Vec::new(),
        changes: Vec::new(),
        growths: Vec::new(),
        finalists,
    }
}
