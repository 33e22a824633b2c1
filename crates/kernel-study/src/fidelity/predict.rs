//! What the model says of drawn cells.

use std::error::Error;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use raidlab_core::Nanos;
use raidlab_predict::Modelled;
use raidlab_random::mix;
use raidlab_sim::HostCosts;
use raidlab_study::{Runner, cells};
use raidlab_workload::Plan;

use crate::as_kernel;
use crate::drawn::Drawn;
use crate::inside::starting;
use crate::job::Start;
use crate::lab::SPREAD;
use crate::measured::SEEDS;

/// Why the model says nothing of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refusal {}

impl Refusal {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// A kernel's own work is never charged in the lab, so a host beside it has none.
pub const COSTS: HostCosts = HostCosts { request: Nanos::ZERO, parity_rate: u64::MAX };

/// Processes begin one after another, as they do in guests.
pub fn as_in_guests(plan: Plan, seed: u64) -> Plan {
    starting(plan, Start { wait: 0, spread: SPREAD }, seed)
}

/// The seed of a run of a cell, of those of a drawing.
pub fn seed_of(drawing: u64, cell: &Drawn, number: usize) -> u64 {
    mix(&[drawing, cell.number as u64, number as u64])
}

/// What the model of a kernel, of this name, says of a figure of a cell: a value for each of as many seeds as a
/// kernel has at least.
///
/// # Errors
/// What is not modelled, in words.
pub fn predicted(
    cell: &Drawn,
    metric: &str,
    (seed, kernel): (u64, &str),
) -> Result<Vec<f64>, Refusal> {
    let mut study = cell.study().map_err(Refusal::of)?;
    as_kernel(&mut study, kernel);
    let modelled = Modelled::new(&study, COSTS).map_err(Refusal::of)?;
    let mut modelled = modelled.starting(as_in_guests);
    let key = *cells(&study).first().ok_or_else(|| Refusal::of("a study without cells"))?;
    let metrics = study.workloads[0].workload.metrics();
    let place = metrics.iter().position(|one| one.name == metric);
    let place = place.ok_or_else(|| Refusal(format!("the workload has no {metric}")))?;
    let mut values = Vec::new();
    for number in 0..*SEEDS.start() {
        let sample = modelled.run(&key, 0, seed_of(seed, cell, number)).map_err(Refusal::of)?;
        values.extend(sample.values.get(place).copied().flatten());
    }
    if values.is_empty() {
        return Err(Refusal(format!("too short a time for {metric}")));
    }
    Ok(values)
}

/// The same of many cells, each with its figure, by the drawing's seed and the kernel's name, on some threads;
/// `progress` is told after each how many are done.
pub fn predict_all(
    asked: &[(&Drawn, &str)],
    of: (u64, &str),
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Vec<f64>, Refusal>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let none = || Err(Refusal::of("was not run"));
    let all: Vec<_> = asked.iter().map(|_| Mutex::new(none())).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((cell, metric)) = asked.get(at) else { return };
            let values = predicted(cell, metric, of);
            if let Ok(mut place) = all[at].lock() {
                *place = values;
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    all.into_iter().map(|place| place.into_inner().unwrap_or_else(|_| none())).collect()
}
