//! How many cells a sweep has, and how long they take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{Study, cells};

use crate::job::{Job, spread};
use crate::run::{run_cell, thread_cpu};

/// Seconds of CPU that a shard is to take.
pub const SHARD_SECONDS: f64 = 30.0;

/// So many points are looked at; all of them where there are no more.
const COUNTED: u64 = 256;

/// Cells are tried for so long, or until there are so many.
const TRIED_FOR: Duration = Duration::from_millis(1500);
const TRIED: usize = 64;

/// What is known of a sweep before it begins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// How many points it has.
    pub points: u64,
    /// How many of them were looked at.
    pub looked_at: u64,
    /// How many of these are no study, and what the first of them says.
    pub impossible: u64,
    /// Why the first of them is none.
    pub why: Option<String>,
    /// Cells of all points: counted where all were looked at or all have as many, else about.
    pub cells: f64,
    /// Whether `cells` is exact.
    pub is_exact: bool,
    /// How many cells were tried.
    pub tried: u64,
    /// CPU seconds of a cell with all its rounds; `None` when it was stopped before one ended.
    pub cell_seconds: Option<f64>,
}

impl Estimate {
    /// CPU seconds of all cells.
    pub fn seconds(&self) -> Option<f64> {
        Some(self.cell_seconds? * self.cells)
    }

    /// Into how many shards it is divided so that each takes [`SHARD_SECONDS`], as far as points allow.
    pub fn shards(&self) -> u64 {
        let wanted = self.seconds().map_or(1.0, |seconds| (seconds / SHARD_SECONDS).ceil());
        (wanted as u64).clamp(1, self.points.min(raidlab_store::shards::MOST_SHARDS))
    }
}

/// Looks at points from all over a sweep, and tries some of their cells.
pub fn estimate(job: &Job, stop: &'static AtomicBool) -> Estimate {
    let (mut found, studies) = look(job);
    try_cells(&mut found, &studies, stop);
    found
}

/// The same without trying any cell: nothing is known of how long they take.
pub fn count(job: &Job) -> Estimate {
    look(job).0
}

fn look(job: &Job) -> (Estimate, Vec<Study>) {
    let sweep = job.sweep();
    let points = sweep.points();
    let mut found = Estimate {
        points,
        looked_at: 0,
        impossible: 0,
        why: None,
        cells: 0.0,
        is_exact: true,
        tried: 0,
        cell_seconds: None,
    };
    let (mut studies, mut counts): (Vec<Study>, Vec<u64>) = (Vec::new(), Vec::new());
    for number in spread(points, COUNTED) {
        found.looked_at += 1;
        // A point that cannot be has one row, which says so.
        let mut count = 1;
        match sweep.study(&sweep.point(number)) {
            Ok(one) => {
                count = (cells(&one.study).len() as u64).max(1);
                studies.push(one.study);
            }
            Err(error) => {
                found.impossible += 1;
                found.why.get_or_insert_with(|| error.to_string());
            }
        }
        counts.push(count);
    }
    let are_alike = counts.windows(2).all(|pair| pair[0] == pair[1]);
    found.is_exact = found.looked_at == points || are_alike;
    let counted = counts.iter().sum::<u64>() as f64;
    found.cells = counted / found.looked_at.max(1) as f64 * points as f64;
    studies.retain(|study| !cells(study).is_empty());
    (found, studies)
}

/// Runs one round of cells, of another point each time, until enough is known.
fn try_cells(found: &mut Estimate, studies: &[Study], stop: &'static AtomicBool) {
    let mut sum = Duration::ZERO;
    let mut seconds = 0.0;
    // Steps that share no factor with the number of studies meet all of them.
    let stride = (studies.len() * 5 / 8).max(1) | 1;
    for at in 0..studies.len().min(TRIED) {
        if sum >= TRIED_FOR || stop.load(Ordering::Relaxed) {
            break;
        }
        let study = &studies[at * stride % studies.len()];
        let all = cells(study);
        let once = Study { rounds: 1, max_rounds: 1, ..study.clone() };
        let before = thread_cpu();
        let Ok(modelled) = Modelled::new(&once, HostCosts::default()) else { continue };
        let modelled = modelled.stopping_on(stop);
        if run_cell(&once, &modelled, &all[at * 7 % all.len()]).is_err() {
            continue;
        }
        let took = thread_cpu().saturating_sub(before);
        sum += took;
        seconds += took.as_secs_f64() * f64::from(study.rounds);
        found.tried += 1;
    }
    found.cell_seconds = (found.tried > 0).then(|| seconds / found.tried as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard takes 30 s of CPU, and has a point at least.
    #[test]
    fn shards_are_as_many_as_take_half_a_minute_each() {
        let shards = |points, cells, cell_seconds| {
            let (looked_at, impossible, why, tried) = (0, 0, None, 0);
            let is_exact = true;
            Estimate { points, looked_at, impossible, why, cells, is_exact, tried, cell_seconds }
                .shards()
        };
        assert_eq!(shards(1_000, 120.0, Some(10.0)), 40);
        assert_eq!(shards(1_000, 120.0, Some(10.1)), 41, "what is begun is one more");
        assert_eq!(shards(4, 120.0, Some(10.0)), 4);
        assert_eq!(shards(4, 120.0, None), 1);
    }
}
