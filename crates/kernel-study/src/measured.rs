//! What kernels did in drawn cells: files of a line for each cell.

use std::collections::BTreeMap;

use raidlab_results::statistics::median;
use serde::{Deserialize, Serialize};

use crate::drawn::draw;

/// The first line of a file: what all cells were measured with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The seed of the drawing.
    pub seed: u64,
    /// How many cells it has at least.
    pub count: usize,
    /// The kernel's package, its version and what it was built from.
    pub kernel: String,
    /// The archive of the guest's programs.
    pub programs: String,
    /// What its jobs do ([`JOBS`]).
    #[serde(default)]
    pub jobs: u32,
    /// The drives, by [`drive_hashes`](crate::drawn::drive_hashes).
    pub drives: BTreeMap<String, String>,
}

impl Head {
    /// Whether cells of both can be in one file: all is the same but for how many the drawing has at least, as one
    /// begins as a larger one of its seed does.
    pub fn goes_with(&self, other: &Self) -> bool {
        Self { count: other.count, ..self.clone() } == *other
    }
}

/// What the jobs of programs do, counted up where cells that were measured before say something else: 1 is a fio job
/// that pauses after its last operation, too (fio 3.33; before 2026-11-28 it did not).
pub const JOBS: u32 = 1;

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Its number in the drawing.
    pub cell: usize,
    /// The first figure of its workload that every run has: programs leave out what took them too short a time.
    pub metric: String,
    /// Its value with each seed, in their order.
    pub values: Vec<f64>,
    /// With the first seed, where the processor is free, and where it costs four times as much.
    pub other_costs: [f64; 2],
    /// Reads and writes of the members with the first seed, and their bytes.
    pub members: [u64; 4],
    /// Why there are no values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The most that the standard error of a median may be, as a share of it, before no more seeds are run.
pub const PRECISION: f64 = 0.015;
/// The fewest and the most seeds.
pub const SEEDS: std::ops::RangeInclusive<usize> = 5..=25;
/// How far values of a cell with different costs of the processor may lie apart, as a share, before it is
/// CPU-sensitive.
pub const SENSITIVE: f64 = 0.05;

impl Measured {
    /// The median; `None` without values.
    pub fn median(&self) -> Option<f64> {
        median(&self.values)
    }

    /// Whether it depends on the processor, which the lab cannot judge.
    pub fn is_cpu_sensitive(&self) -> bool {
        depends_on_processor(&self.values, self.other_costs)
    }
}

/// Whether the first of some values differs from those with other costs of the processor.
fn depends_on_processor(values: &[f64], [free, slow]: [f64; 2]) -> bool {
    values.first().is_some_and(|&plain| spread(&[plain, free, slow]) > SENSITIVE)
}

/// How much larger the largest of some values is than the smallest, as a share.
pub fn spread(values: &[f64]) -> f64 {
    let (least, most) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), &value| (least.min(value), most.max(value)));
    most / least - 1.0
}

/// Whether enough seeds were run: the standard error of the median, taken as that of a normal sample (1.2533 standard
/// errors of the mean), is small, or there are as many as there may be. A cell that depends on the processor is not
/// judged, and has the fewest.
pub fn is_enough(values: &[f64], other_costs: [f64; 2]) -> bool {
    let count = values.len();
    if count < *SEEDS.start() {
        return false;
    }
    if count >= *SEEDS.end() || depends_on_processor(values, other_costs) {
        return true;
    }
    let Some(middle) = median(values) else { return false };
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = 1.2533 * (squares / (count - 1) as f64 / count as f64).sqrt();
    error <= PRECISION * middle
}

/// The share by which the second differs from the first.
pub fn off(truth: f64, other: f64) -> f64 {
    (other / truth - 1.0).abs()
}

/// Which figure of a workload all runs have: the first, by its place.
pub fn figure<'a>(runs: impl IntoIterator<Item = &'a [Option<f64>]>) -> Option<usize> {
    let mut runs = runs.into_iter();
    let mut there: Vec<bool> = runs.next()?.iter().map(Option::is_some).collect();
    for run in runs {
        let has = |at: usize| run.get(at).is_some_and(Option::is_some);
        there.iter_mut().enumerate().for_each(|(at, there)| *there &= has(at));
    }
    there.into_iter().position(|there| there)
}

/// Adds a cell to others: the first of its number that has values counts. Whether it is now among them.
pub fn add(cells: &mut Vec<Measured>, cell: Measured) -> bool {
    match cells.iter_mut().find(|one| one.cell == cell.cell) {
        Some(there) if there.error.is_some() && cell.error.is_none() => *there = cell,
        Some(_) => return false,
        None => cells.push(cell),
    }
    true
}

/// Of the cells of a file those whose drive and job are still what they were then, `drives` and `jobs` being what they
/// are now; and in words why others are not compared, with how many of the file each reason takes.
pub fn comparable(
    head: &Head,
    cells: Vec<Measured>,
    (drives, jobs): (&BTreeMap<String, String>, u32),
) -> (Vec<Measured>, BTreeMap<String, usize>) {
    let drawing = draw(head.seed, head.count);
    let mut others = BTreeMap::new();
    let mut kept = Vec::new();
    for cell in cells {
        let Some(drawn) = drawing.cells.get(cell.cell) else { continue };
        let reason = if head.drives.get(drawn.drive) != drives.get(drawn.drive) {
            format!("of {}, which is another drive by now", drawn.drive)
        } else if head.jobs != jobs && drawn.value("think") != "none" {
            "with pauses, which jobs make at other places by now".to_owned()
        } else {
            kept.push(cell);
            continue;
        };
        *others.entry(reason).or_default() += 1;
    }
    (kept, others)
}

/// Reads a file: its head and its cells.
///
/// # Errors
/// In words, with the line.
pub fn read(text: &str) -> Result<(Head, Vec<Measured>), String> {
    let mut lines = text.lines().enumerate();
    let wrong = |line: usize, error: serde_json::Error| format!("line {}: {error}", line + 1);
    let (at, head) = lines.next().ok_or("line 1: is missing")?;
    let head = serde_json::from_str(head).map_err(|error| wrong(at, error))?;
    let cell =
        |(at, line): (usize, &str)| serde_json::from_str(line).map_err(|error| wrong(at, error));
    Ok((head, lines.map(cell).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::drive_hashes;

    #[test]
    fn seeds_are_run_until_the_median_is_known() {
        let others = [1.0; 2];
        assert!(!is_enough(&[1.0; 4], others));
        assert!(is_enough(&[1.0; 5], others));
        let wide: Vec<f64> = (0..25).map(|at| 1.0 + f64::from(at % 5) / 2.0).collect();
        assert!(!is_enough(&wide[..24], others) && is_enough(&wide, others));
        assert!(!is_enough(&wide[..4], [1.0, 1.1]) && is_enough(&wide[..5], [1.0, 1.1]));
        assert!((spread(&[2.0, 1.0, 3.0]) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_figure_is_one_that_every_run_has() {
        let runs = [[None, Some(1.0), Some(2.0)], [Some(3.0), None, Some(4.0)]];
        assert_eq!(figure(runs.iter().map(|run| &run[..])), Some(2));
        assert_eq!(figure(runs[..1].iter().map(|run| &run[..])), Some(1));
        assert_eq!(figure([&[None][..], &[Some(1.0)]]), None);
        assert_eq!(figure([]), None);
    }

    /// A drive or job that changes takes the cells with it that it was in, and no others.
    #[test]
    fn cells_of_a_drive_or_job_that_changed_are_not_compared() {
        let drawing = draw(1, 60);
        let now = drive_hashes().expect("are there");
        let head = Head {
            seed: 1,
            count: 60,
            kernel: "k".into(),
            programs: "p".into(),
            jobs: JOBS,
            drives: now.clone(),
        };
        let cell = |cell| Measured {
            cell,
            metric: "iops".into(),
            values: vec![1.0],
            other_costs: [1.0, 1.0],
            members: [0; 4],
            error: None,
        };
        let all = || (0..60).map(cell).collect::<Vec<_>>();
        assert_eq!(comparable(&head, all(), (&now, JOBS)), (all(), BTreeMap::new()));
        let paused = |cell: &Measured| drawing.cells[cell.cell].value("think") != "none";
        let (kept, others) = comparable(&Head { jobs: 0, ..head.clone() }, all(), (&now, JOBS));
        assert!(kept.iter().all(|cell| !paused(cell)) && kept.len() < 60);
        let reason = "with pauses, which jobs make at other places by now";
        assert_eq!(others, BTreeMap::from([(reason.into(), 60 - kept.len())]));
        assert_eq!(all().iter().filter(|cell| paused(cell)).count(), 60 - kept.len());
        let mut then = head;
        then.drives.insert("ssd-sata-1tb".into(), "another".into());
        let (kept, others) = comparable(&then, all(), (&now, JOBS));
        let reason = "of ssd-sata-1tb, which is another drive by now";
        let is_of = |cell: &Measured| drawing.cells[cell.cell].drive == "ssd-sata-1tb";
        assert!(kept.iter().all(|cell| !is_of(cell)) && kept.len() < 60);
        assert_eq!(others, BTreeMap::from([(reason.into(), 60 - kept.len())]));
        assert_eq!(all().iter().filter(|cell| is_of(cell)).count(), 60 - kept.len());
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let head = Head {
            seed: 1,
            count: 2,
            kernel: "k".into(),
            programs: "p".into(),
            jobs: JOBS,
            drives: BTreeMap::from([("d".into(), "h".into())]),
        };
        let cell = Measured {
            cell: 1,
            metric: "mib_per_s".into(),
            values: vec![1.5, 2.0],
            other_costs: [1.5, 1.6],
            members: [1, 2, 3, 4],
            error: None,
        };
        let line = serde_json::to_string(&cell).expect("is text");
        let text = format!("{}\n{line}\n", serde_json::to_string(&head).expect("is text"));
        assert_eq!(read(&text), Ok((head, vec![cell.clone()])));
        assert!(cell.is_cpu_sensitive());
        assert!(!Measured { other_costs: [1.5, 1.55], ..cell }.is_cpu_sensitive());
        assert!(read("{}").is_err_and(|error| error.starts_with("line 1")));
    }
}
