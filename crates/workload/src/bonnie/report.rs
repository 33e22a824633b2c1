//! What a run measured, as the original reckons and prints it.

use raidlab_core::Nanos;

use super::options::{DEFAULT_CHUNK, Options, Small};
use super::{Version, phases, small};
use crate::record::{PhaseRecord, RunRecord};

/// What takes less is not told, in seconds.
const SHORTEST: f64 = 0.5;
const KIB: f64 = 1024.0;

/// A phase of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// How long it took, in seconds; more than nothing.
    seconds: f64,
    /// CPU time of the processes in it, in seconds; `None` where nothing tells.
    cpu: Option<f64>,
    /// The longest latency of what is timed one by one.
    latency: Nanos,
}

/// What a copy measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// By phase; `None` for those that it did not go through.
    pub(super) phases: [Option<Timed>; phases::COUNT],
    /// Bytes of its large file.
    pub(super) size: u64,
}

impl Timed {
    /// Of a phase that began and took some time.
    fn of(record: &PhaseRecord) -> Option<Self> {
        let took = record.took();
        (took != Nanos::ZERO).then(|| Self {
            seconds: took.as_secs(),
            cpu: record.cpu.map(|cpu| cpu.sum().as_secs()),
            latency: record.reads.max.max(record.writes.max),
        })
    }

    /// So much per second; `None` when it took too short a time.
    pub(super) fn rate(&self, amount: f64) -> Option<f64> {
        (self.seconds >= SHORTEST).then(|| amount / self.seconds)
    }

    /// Percent of the time that went into CPU time, cut to a whole number.
    pub(super) fn cpu_percent(&self) -> Option<f64> {
        let cpu = self.cpu.filter(|_| self.seconds >= SHORTEST)?;
        Some((cpu / self.seconds * 100.0).trunc())
    }
}

/// How many copies a record holds.
pub(super) fn copies(record: &RunRecord) -> u32 {
    record.processes.iter().map(|process| process.copy + 1).max().unwrap_or(0)
}

impl Figures {
    /// Of a copy. A phase of several processes goes from the first start to the last end, and their CPU
    /// times are added.
    pub(super) fn of(options: &Options, record: &RunRecord, copy: u32) -> Self {
        let mut processes = record.processes.clone();
        processes.retain(|process| process.copy == copy);
        let own = RunRecord { processes, ..RunRecord::default() };
        let joined = |phase| own.phase(phase);
        let written = joined(phases::BLOCK_WRITE).map_or(0, |phase| phase.writes.bytes);
        let timed = |phase| joined(phase).as_ref().and_then(Timed::of);
        Self {
            phases: std::array::from_fn(|phase| timed(phase as u16)),
            size: options.size.unwrap_or(written),
        }
    }

    /// How much a phase did: KiB, seeks or files.
    pub(super) fn amount(&self, options: &Options, phase: u16) -> f64 {
        match phase {
            phases::CHARACTER_WRITE | phases::CHARACTER_READ => {
                self.size.min(options.characters) as f64 / KIB
            }
            phases::BLOCK_WRITE | phases::REWRITE | phases::BLOCK_READ => self.size as f64 / KIB,
            phases::SEEKS => options.seeks as f64,
            _ => options.small.map_or(0.0, |small| (small.count * small::UNIT) as f64),
        }
    }
}

/// A line of CSV for every copy.
pub(super) fn csv(options: &Options, record: &RunRecord, host: &str) -> String {
    let print = |copy| {
        let figures = Figures::of(options, record, copy);
        let cells = match options.version {
            Version::V103 => csv_103(options, &figures, host),
            Version::V200 => csv_200(options, &figures, host),
        };
        cells.join(",") + "\n"
    };
    (0..copies(record)).map(print).collect()
}

/// A number with the largest of some units, steps of 1024, that leaves it whole.
fn with_unit(mut number: u64, units: &[&str]) -> String {
    let mut unit = 0;
    while number > 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

/// MiB or GiB of a large file: `1100M`.
pub(super) fn size_cell(bytes: u64) -> String {
    with_unit(bytes >> 20, &["M", "G"])
}

/// Bytes of a block: `16k`.
pub(super) fn chunk_cell(bytes: u64) -> String {
    with_unit(bytes, &["", "k", "m"])
}

/// The files of the small-file phases in one cell: `16:9000:20/2`.
pub(super) fn files_cell(small: &Small) -> String {
    let made = match small.made {
        small::Made::Links => ":link".to_string(),
        small::Made::Symlinks => ":symlink".to_string(),
        small::Made::Files { most: 0, .. } => String::new(),
        small::Made::Files { least, most } => format!(":{most}:{least}"),
    };
    let directories = match small.directories {
        1 => String::new(),
        several => format!("/{several}"),
    };
    format!("{}{made}{directories}", small.count)
}

/// Rate and CPU share of a phase as two cells of CSV.
fn csv_pair(options: &Options, figures: &Figures, phase: u16) -> [String; 2] {
    let Some(timed) = figures.phases[usize::from(phase)] else { return Default::default() };
    let Some(rate) = timed.rate(figures.amount(options, phase)) else {
        return ["+++++".into(), "+++".into()];
    };
    let is_fraction = phase == phases::SEEKS
        && (options.version == Version::V103 || rate < SEEKS_WITHOUT_FRACTION);
    let rate = match phase {
        phases::SEEKS if is_fraction => format!("{rate:.1}"),
        phases::SEEKS => format!("{rate:.0}"),
        _ => format!("{:.0}", rate.trunc()),
    };
    [rate, timed.cpu_percent().map_or_else(String::new, |percent| format!("{percent:.0}"))]
}

/// From so many seeks per second on, the decimal is left out.
pub(super) const SEEKS_WITHOUT_FRACTION: f64 = 1000.0;

fn pairs(options: &Options, figures: &Figures, phases: std::ops::Range<u16>) -> Vec<String> {
    phases.flat_map(|phase| csv_pair(options, figures, phase)).collect()
}

fn csv_103(options: &Options, figures: &Figures, host: &str) -> Vec<String> {
    let size = match (figures.size, options.chunk) {
        (0, _) => String::new(),
        (size, DEFAULT_CHUNK) => size_cell(size),
        (size, chunk) => format!("{}:{}", size_cell(size), chunk_cell(chunk)),
    };
    let mut cells = vec![host.to_string(), size];
    cells.extend(pairs(options, figures, 0..phases::CREATE_SEQUENTIAL));
    cells.push(options.small.as_ref().map_or_else(String::new, files_cell));
    cells.extend(pairs(options, figures, phases::CREATE_SEQUENTIAL..phases::COUNT as u16));
    cells
}

fn csv_200(options: &Options, figures: &Figures, host: &str) -> Vec<String> {
    let seed = options.seed.map_or_else(String::new, |seed| seed.to_string());
    let mut cells: Vec<String> =
        ["1.98", VERSION_200, host, "1"].map(str::to_string).into_iter().collect();
    cells.push(seed);
    // The cell of the block's size is always empty: it is behind the end of the original's text.
    match figures.size {
        0 => cells.extend(std::array::from_fn::<_, 4, _>(|_| String::new())),
        size => cells.extend([
            size_cell(size),
            String::new(),
            options.seeks.to_string(),
            options.seekers.to_string(),
        ]),
    }
    cells.extend(pairs(options, figures, 0..phases::CREATE_SEQUENTIAL));
    cells.extend(options.small.as_ref().map_or_else(Default::default, small_cells));
    cells.extend(pairs(options, figures, phases::CREATE_SEQUENTIAL..phases::COUNT as u16));
    cells.extend(figures.phases.iter().map(latency_cell));
    cells
}

/// Files, greatest and least length, a cell that is always empty, and directories.
fn small_cells(small: &Small) -> [String; 5] {
    let not_zero = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let (most, least) = match small.made {
        small::Made::Links => ("link".into(), String::new()),
        small::Made::Symlinks => ("symlink".into(), String::new()),
        small::Made::Files { least, most } => (not_zero(most), not_zero(least)),
    };
    let directories = match small.directories {
        1 => String::new(),
        several => several.to_string(),
    };
    [small.count.to_string(), most, least, String::new(), directories]
}

/// The release of 2.00 whose formats these are.
pub(super) const VERSION_200: &str = "2.00a";

/// The longest latency, in us up to 0.099999 s, in ms up to 99.999999 s, then in s.
pub(super) fn latency_cell(timed: &Option<Timed>) -> String {
    let micros = timed.map_or(0, |timed| timed.latency.0 / 1_000);
    match micros {
        0 => String::new(),
        1..=99_999 => format!("{micros}us"),
        100_000..=99_999_999 => format!("{}ms", micros / 1_000),
        _ => format!("{}s", micros / 1_000_000),
    }
}
