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
    let stride = stride(studies.len());
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
        if run_cell(&once, &modelled, &all[cell_of(at, all.len())]).is_err() {
            continue;
        }
        let took = thread_cpu().saturating_sub(before);
        sum += took;
        seconds += took.as_secs_f64() * f64::from(study.rounds);
        found.tried += 1;
    }
    found.cell_seconds = (found.tried > 0).then(|| seconds / found.tried as f64);
}

/// A step that shares no factor with the number of studies, so that so many steps meet each of them once, and the
/// first few are all over them.
fn stride(studies: usize) -> usize {
    let about = (studies * 5 / 8).max(1);
    let mut near = (0..about).flat_map(|away| [about - away, about + away]);
    near.find(|step| gcd(*step, studies) == 1).unwrap_or(1)
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Which of so many cells the study in a place of the order is tried by: all in turn, and one further each time
/// around, so that cells and studies do not go in step where their numbers have a factor in common.
fn cell_of(at: usize, cells: usize) -> usize {
    (at + at / cells) % cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_are_all_tried_and_the_first_few_are_from_all_over() {
        for studies in 1..=300 {
            let stride = stride(studies);
            let order: Vec<usize> = (0..studies).map(|at| at * stride % studies).collect();
            let mut met = order.clone();
            met.sort_unstable();
            assert!(met.into_iter().eq(0..studies), "{studies} studies: stride {stride}");
            if studies >= 16 {
                let quarters = order[..8].iter().map(|study| study * 4 / studies);
                let quarters: std::collections::BTreeSet<usize> = quarters.collect();
                assert_eq!(quarters.len(), 4, "{studies} studies: {:?}", &order[..8]);
            }
        }
    }

    #[test]
    fn cells_are_drawn_evenly_whatever_their_number() {
        for cells in 1..=64 {
            let mut times = vec![0; cells];
            (0..TRIED).for_each(|at| times[cell_of(at, cells)] += 1);
            let (least, most) = (TRIED / cells, TRIED.div_ceil(cells));
            assert!(times.iter().all(|count| (least..=most).contains(count)), "{cells}: {times:?}");
        }
    }

    /// Whatever the last axes are: each of their values is tried with each of the cells.
    #[test]
    fn cells_and_studies_do_not_go_in_step() {
        for studies in [TRIED, 60, 63, 200, 256] {
            let stride = stride(studies);
            let all = [(2, 2), (7, 2), (14, 2), (2, 7), (4, 4), (6, 3), (8, 2), (5, 5), (7, 7)];
            for (cells, values) in all.into_iter().filter(|(_, values)| studies % values == 0) {
                let pairs = (0..TRIED.min(studies))
                    .map(|at| (at * stride % studies % values, cell_of(at, cells)));
                let pairs: std::collections::BTreeSet<(usize, usize)> = pairs.collect();
                assert_eq!(pairs.len(), cells * values, "{studies} studies, {cells} x {values}");
            }
        }
    }

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
