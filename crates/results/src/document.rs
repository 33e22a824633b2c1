//! The results document, `schema_version` 2. Keys stay stable within a schema version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::replay::{AblationRow, Fidelity, Finding, Moved};
use crate::risk::Risks;
use crate::trust::CellTrust;

/// The version of the document's schema that this code writes.
pub const SCHEMA_VERSION: u32 = 2;

/// Everything a run of a study found, and what is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of raidlab that ran the study.
    pub raidlab: String,
    /// The study's title.
    pub study: String,
    /// The seed every random choice was drawn from.
    pub seed: u64,
    /// Which clock the times are by.
    pub clock: Clock,
    /// What the study ran on: for virtual time the drive models, else the machine.
    pub host: BTreeMap<String, String>,
    /// What the cells have in common.
    pub settings: BTreeMap<String, String>,
    /// What a reader must know before believing the numbers.
    pub warnings: Vec<String>,
    /// The layouts that percentages are against; of several, the mean of their medians.
    pub baseline: Vec<String>,
    /// The layouts of the study, in its order.
    pub layouts: Vec<LayoutRow>,
    /// The workloads of the study, in its order.
    pub workloads: Vec<WorkloadRow>,
    /// The shares of reads and writes that `latency_curve_ms` of the cells is about, 0 to 1; absent where no cell has
    /// that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_shares: Vec<f64>,
    /// One entry per layout, workload, process count and state.
    pub cells: Vec<Cell>,
    /// What `cells` lacks as rounds of it took too short a time to tell; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_short: Vec<TooShort>,
    /// How likely the layouts are to lose data; absent where none has redundancy, in replays, and in documents of
    /// before there was this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risks>,
    /// How near a replay comes to published figures; absent outside one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// What the numbers of a replay show, the largest effect first; absent outside one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The mechanisms that the models did without; absent when they had all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How cells move without each mechanism; absent unless that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablation: Vec<AblationRow>,
}

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Time as the models count it.
    Virtual,
    /// Time as it passed on the machine.
    Real,
}

/// What did the work of a document's cells, the nearest to a user's machine first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A machine and its drives.
    Measured,
    /// A Linux kernel on modelled drives.
    Kernel,
    /// The modelled host, on modelled drives.
    Modelled,
}

/// The key of [`Results::host`] that only runs on a kernel with modelled drives have: the archive of what its guest
/// ran.
pub const GUEST_PROGRAMS: &str = "guest's programs";

impl Results {
    /// What did the work.
    pub fn origin(&self) -> Origin {
        match self.clock {
            Clock::Real => Origin::Measured,
            Clock::Virtual if self.host.contains_key(GUEST_PROGRAMS) => Origin::Kernel,
            Clock::Virtual => Origin::Modelled,
        }
    }
}

/// A layout of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRow {
    /// Its name in the cells.
    pub name: String,
    /// Usable bytes.
    pub capacity: u64,
    /// Lost members it survives, whichever they are.
    pub survives: u16,
    /// Contiguous bytes on one member; absent where the level has no chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    /// Where the first chunks lie: a text for each row of chunks, with a word for each member. A word is the chunk's
    /// number, with `'` for each copy after the first, `P` or `Q` for parity, `-` for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}

/// A workload of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRow {
    /// Its name in the cells.
    pub name: String,
    /// In words: block size, bytes per process, the span they lie in, depth, how it ends.
    pub description: String,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time.
    Lower,
}

/// What a comparison with the baseline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Better than the baseline.
    #[serde(rename = "faster")]
    Faster,
    /// Worse than the baseline.
    #[serde(rename = "slower")]
    Slower,
    /// Shown to differ by less than the floor.
    #[serde(rename = "equal within the floor")]
    Equal,
    /// The rounds show none of these.
    #[serde(rename = "not resolved")]
    NotResolved,
}

/// What held a cell back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The resource that was busiest, such as `member 2` or `cpu`.
    pub resource: String,
    /// The share of the time it was busy, 0 to 1.
    pub busy: f64,
}

/// How long reads and writes took: medians over the rounds, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyRow {
    /// What half of them took at most.
    pub p50: f64,
    /// What 99 of 100 took at most.
    pub p99: f64,
    /// What 999 of 1,000 took at most.
    pub p999: f64,
    /// What the slowest took.
    pub max: f64,
}

/// What the members did while a workload ran: medians over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembersRow {
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes read.
    pub bytes_read: f64,
    /// Bytes written.
    pub bytes_written: f64,
    /// Bytes written to the members for each byte the processes wrote; null when they wrote nothing.
    pub write_amplification: Option<f64>,
}

/// The shares of reads and writes whose latencies a cell's `latency_curve_ms` gives, as the document's `latency_shares`
/// lists them.
pub const LATENCY_SHARES: [f64; 17] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0];

/// Reads and writes over the time of one round, in bins of equal width from its start on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineRow {
    /// Which round, from 1: the one whose value is the median, or next below it.
    pub round: u32,
    /// The width of a bin in seconds.
    pub bin_s: f64,
    /// Of `rate`: `MiB/s` or `1/s`.
    pub unit: String,
    /// What ended within each bin, a second.
    pub rate: Vec<f64>,
    /// The mean latency of what ended within each bin, in milliseconds; null where nothing did.
    pub mean_ms: Vec<Option<f64>>,
    /// The longest.
    pub max_ms: Vec<Option<f64>>,
    /// How much of a rebuild was done when each bin began, in percent; null where none was under way, absent
    /// where none was at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebuilt_percent: Vec<Option<f64>>,
}

/// A published figure that a replay is held against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The published value, in the cell's unit.
    pub value: f64,
    /// (median / value - 1) x 100.
    pub error_percent: f64,
    /// The model was calibrated on this cell.
    pub calibrated: bool,
}

/// A cell that was run, but has no figure: rounds of it took too short a time to tell. Who is best of its row is not
/// known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooShort {
    /// The layout's name.
    pub layout: String,
    /// The workload's name.
    pub workload: String,
    /// How many processes at once.
    pub processes: u32,
    /// `healthy`, `degraded` or `rebuilding`.
    pub state: String,
    /// Which figure is not known.
    pub metric: String,
    /// What varies besides the named axes.
    pub settings: BTreeMap<String, String>,
    /// Rounds that were too short to tell.
    pub rounds: u32,
    /// Of so many.
    pub of: u32,
}

/// One layout x workload x process count x state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The layout's name.
    pub layout: String,
    /// The workload's name.
    pub workload: String,
    /// How many processes at once; 0 for a rebuild while nothing else goes on.
    pub processes: u32,
    /// `healthy`, `degraded` or `rebuilding`.
    pub state: String,
    /// What was measured: `mib_per_s`, `iops`, `p99_ms`, `rebuild_s`, `rebuild_estimate_s`, `seconds`, and
    /// the further figures of each workload.
    pub metric: String,
    /// Which way is better.
    pub better: Better,
    /// The unit of the values, such as `MiB/s`, `1/s`, `ms`, `s`.
    pub unit: String,
    /// One value a round, in the order of the rounds.
    pub samples: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// A distribution-free interval of the median from order statistics; null below 6 samples.
    pub ci95: Option<[f64; 2]>,
    /// The interval's real coverage, at least 0.95; null below 6 samples.
    pub coverage: Option<f64>,
    /// Their mean.
    pub mean: f64,
    /// (largest sample - smallest) / mean x 100; absent for a single sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_percent: Option<f64>,
    /// The centre over the rounds of (sample / the baseline's in that round), less 1, x 100; null when the baseline
    /// has no such cell.
    pub percent_vs_baseline: Option<f64>,
    /// The interval of that, for all layouts of the row together (95 %); null where rounds are too few for as many
    /// comparisons.
    #[serde(default)]
    pub percent_interval: Option<[f64; 2]>,
    /// Differences below this many percent mean nothing; null where nothing is compared.
    #[serde(default)]
    pub floor_percent: Option<f64>,
    /// What the rounds show against the baseline; null for the baseline itself.
    pub verdict: Option<Verdict>,
    /// So many more rounds would likely resolve it; absent when it is resolved, or no reasonable number would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_rounds: Option<u32>,
    /// First-order correlation of the ratios of successive rounds; absent in virtual time and of few rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependence: Option<f64>,
    /// No layout of the row is shown to be better.
    #[serde(default)]
    pub may_be_best: bool,
    /// It is shown that no layout of the row is better by the floor or more.
    #[serde(default)]
    pub as_good_as_best: bool,
    /// It was over before what goes on beside its rebuild had settled: nothing is compared in its row, nor it with the
    /// same layout healthy. Absent where it is not so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// Rounds, from 1, whose samples stand far apart from the others; they count. Absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlier_rounds: Vec<u32>,
    /// What varies besides the named axes.
    pub settings: BTreeMap<String, String>,
    /// Median over rounds of the time until the first process was done, in seconds.
    pub first_done_s: f64,
    /// Median over rounds of the time until the last process was done, in seconds.
    pub last_done_s: f64,
    /// CPU seconds of the benchmark's own process; null where nothing measures it.
    pub process_cpu_s: Option<f64>,
    /// CPU seconds of the whole system; null where nothing measures it.
    pub system_cpu_s: Option<f64>,
    /// What held the cell back; null where nothing tells.
    pub bottleneck: Option<Bottleneck>,
    /// Jain's index of the processes' rates, 1 when all are done at once; absent for a single process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// How long reads and writes took, in milliseconds; absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<LatencyRow>,
    /// When the first, second and so on of the processes was done, in seconds: medians over the rounds, of the first
    /// metric of a run. Absent for one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_s: Vec<f64>,
    /// The latencies that the document's `latency_shares` stayed within, in milliseconds: medians over the rounds, of
    /// the first metric of a run. Absent where nothing tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_curve_ms: Vec<f64>,
    /// How busy each resource was, the median over the rounds, of the first metric of a run. Absent where nothing
    /// tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy: Vec<Bottleneck>,
    /// What was done over time in one round, of the first metric of a run. Absent where nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineRow>,
    /// What the members did; absent where nothing counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<MembersRow>,
    /// The published figure; null outside a replay.
    pub published: Option<Published>,
    /// How the median differs from that with all mechanisms; absent when none is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// One of the further figures of a workload: kept for those who look for it, not shown in reports;
    /// absent when it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
    /// How far it can be trusted, of cells in virtual time on a modelled host or array; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<CellTrust>,
    /// What must be known of this cell; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
