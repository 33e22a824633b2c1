//! tiobench: threads with a file each write and read it, from start to end and at random places.
//!
//! Two generations exist and must not be mixed:
//!
//! | | 0.3 (to November 2003) | 0.4 |
//! |---|---|---|
//! | opening | written: made or emptied; later what is there | made if need be, set to its full length |
//! | operations | seek, then read or write | at a place |
//! | random places | all blocks but the last | all blocks |
//! | flush | at the end of the two write phases | at the end of all four |
//! | size by default | twice memory, 200 to 2000 MiB | twice memory |
//!
//! Opening, flush and close are within the time of a phase, but only reads and writes have latencies.
//! What differs from the original on purpose: places come from the seed instead of the clock; files are
//! left for the target to remove; when the sequential write is skipped, the files are written before the
//! run, since 0.3 would find none and 0.4 would read holes.

mod format;
mod process;

use std::sync::Arc;

use raidlab_core::Size;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::fill_files::{Fill, fill_files};
use crate::kinds::Workload;
use crate::metric::{Better, Metric, mib_per_second};
use crate::op::{Content, FilePath};
use crate::parameters::Parameters;
use crate::plan::{Expected, FileNeed, Plan, Planned, Setting, Zeroes};
use crate::record::{IoRecord, PhaseRecord, RunRecord};
use crate::{LARGEST_BLOCK, MOST_PROCESSES};
use process::{Job, Turn};

const MIB: u64 = 1 << 20;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    V03,
    V04,
}

/// The phases, in their order and with their indices in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SequentialWrite,
    RandomWrite,
    SequentialRead,
    RandomRead,
}

impl Phase {
    const ALL: [Self; 4] =
        [Self::SequentialWrite, Self::RandomWrite, Self::SequentialRead, Self::RandomRead];
    const NAMES: [&'static str; 4] = ["seq_write", "rand_write", "seq_read", "rand_read"];

    const fn is_random(self) -> bool {
        matches!(self, Self::RandomWrite | Self::RandomRead)
    }

    const fn writes(self) -> bool {
        matches!(self, Self::SequentialWrite | Self::RandomWrite)
    }

    fn operations(self, record: &PhaseRecord) -> &IoRecord {
        if self.writes() { &record.writes } else { &record.reads }
    }
}

/// How many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// As many as there are copies, all of one tiobench: the rows of its tables.
    Copies,
    /// So many in each copy.
    Fixed(u32),
}

/// What a random phase is credited with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// What was read or written.
    Real,
    /// All blocks of all files, as 0.4 did by mistake from December 2003 to February 2023: a rate too
    /// high by blocks of a file / operations.
    WholeFiles,
}

#[derive(Clone, Debug)]
struct Tiobench {
    generation: Generation,
    /// Bytes of all files of a copy together, whole MiB; `None`: by memory.
    size: Option<u64>,
    block: u64,
    /// Random operations of all threads of a copy together.
    operations: u64,
    threads: Threads,
    sync: bool,
    sequential: bool,
    direct: bool,
    count: Count,
    /// By the index of [`Phase::ALL`].
    runs: [bool; 4],
}

/// What the threads of a setting get.
#[derive(Clone, Copy, Debug)]
struct Shares {
    copies: u32,
    threads: u32,
    blocks: u64,
    operations: u64,
}

pub(crate) fn make_0_3(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    Ok(Arc::new(Tiobench::new(Generation::V03, parameters)?))
}

pub(crate) fn make_0_4(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    Ok(Arc::new(Tiobench::new(Generation::V04, parameters)?))
}

fn wrong(key: &str, reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

fn whole_mib(size: u64) -> Result<u64, WorkloadError> {
    if size >= MIB && size.is_multiple_of(MIB) {
        return Ok(size);
    }
    let reason = format!("{} is not a whole number of MiB; tiobench counts in those", Size(size));
    Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason))
}

impl Tiobench {
    fn new(generation: Generation, given: &mut Parameters) -> Result<Self, WorkloadError> {
        let block = given.size("block", 4096)?;
        if block > LARGEST_BLOCK {
            let reason = format!("{} is too large; at most {}", Size(block), Size(LARGEST_BLOCK));
            return Err(WorkloadError::new(WorkloadErrorKind::Block, "block", reason));
        }
        let threads = match given.text("threads").as_deref() {
            None | Some("copies") => Threads::Copies,
            Some(text) => Threads::Fixed(threads(text)?),
        };
        let is_new = generation == Generation::V04;
        let counts = [("real", Count::Real), ("as-0.4-before-2023", Count::WholeFiles)];
        let made = Self {
            generation,
            size: given.optional_size("size")?.map(whole_mib).transpose()?,
            block,
            operations: given.number("operations", 4000, 1..=u64::from(u32::MAX))?,
            threads,
            sync: given.flag("sync", false)?,
            sequential: given.flag("sequential_writers", false)?,
            direct: is_new && given.flag("direct", false)?,
            count: if is_new { given.choice("count", Count::Real, &counts)? } else { Count::Real },
            runs: runs(given.text("skip"))?,
        };
        made.check_count()
    }

    fn size(&self, setting: &Setting) -> u64 {
        self.size.unwrap_or_else(|| {
            let memory = setting.host_memory.map_or(256, |bytes| bytes / MIB).max(1);
            let twice = memory.saturating_mul(2);
            let most = match self.generation {
                Generation::V03 => twice.clamp(200, 2000),
                Generation::V04 => twice,
            };
            most.saturating_mul(MIB)
        })
    }

    fn random_runs(&self) -> bool {
        Phase::ALL.iter().zip(self.runs).any(|(phase, runs)| runs && phase.is_random())
    }

    fn shares(&self, setting: &Setting) -> Result<Shares, WorkloadError> {
        let (copies, threads) = match self.threads {
            Threads::Copies => (1, setting.copies),
            Threads::Fixed(threads) => (setting.copies, threads),
        };
        if copies.checked_mul(threads).is_none_or(|all| all == 0 || all > MOST_PROCESSES) {
            let reason = format!("{copies} x {threads} is not from 1 to {MOST_PROCESSES} threads");
            return Err(wrong("threads", reason));
        }
        let file = of_thread(self.size(setting), u64::from(threads));
        let blocks = file / self.block;
        let least = match self.generation {
            Generation::V03 if self.random_runs() => 2,
            _ => 1,
        };
        if blocks < least {
            let (block, file) = (Size(self.block), Size(file));
            let reason =
                format!("{block} is too large for files of {file} a thread: {least} must fit in");
            return Err(wrong("block", reason));
        }
        let operations = self.operations / u64::from(threads);
        if operations == 0 && self.random_runs() {
            let reason = format!("{} are too few for {threads} threads", self.operations);
            return Err(wrong("operations", reason));
        }
        Ok(Shares { copies, threads, blocks, operations })
    }

    /// Bytes a phase is credited with.
    fn credited(&self, phase: Phase, joined: &PhaseRecord, record: &RunRecord) -> u64 {
        let moved = phase.operations(joined).bytes;
        if self.count == Count::Real || !phase.is_random() {
            return moved;
        }
        // How long the files are is what the sequential phases show; without them the size is given,
        // see `check_count`.
        let sequential = [Phase::SequentialWrite, Phase::SequentialRead];
        let shown = sequential.into_iter().find_map(|phase| {
            let joined = record.phase(phase as u16)?;
            Some(phase.operations(&joined).bytes)
        });
        shown.unwrap_or_else(|| {
            let files = record.processes.len() as u64;
            let threads = match self.threads {
                Threads::Copies => files.max(1),
                Threads::Fixed(threads) => u64::from(threads),
            };
            of_thread(self.size.unwrap_or(0), threads) / self.block * self.block * files
        })
    }

    /// Whole files can be counted only when it is known afterwards how long they were.
    fn check_count(self) -> Result<Self, WorkloadError> {
        let sequential = [Phase::SequentialWrite, Phase::SequentialRead];
        let shown = sequential.into_iter().any(|phase| self.runs[phase as usize]);
        if self.count == Count::WholeFiles && !shown && self.size.is_none() {
            let reason = "whole files are counted and no sequential phase shows how long they are; \
                          give a size";
            return Err(wrong("size", reason.into()));
        }
        if self.direct && !self.block.is_multiple_of(512) {
            let reason =
                format!("{} is not a multiple of 512 bytes, as O_DIRECT needs", self.block);
            return Err(wrong("block", reason));
        }
        Ok(self)
    }

    fn phases(&self) -> impl Iterator<Item = Phase> + '_ {
        Phase::ALL.into_iter().filter(|phase| self.runs[*phase as usize])
    }
}

/// Bytes of the file of one of so many threads: whole MiB, at least one.
fn of_thread(size: u64, threads: u64) -> u64 {
    (size / MIB / threads).max(1) * MIB
}

fn threads(text: &str) -> Result<u32, WorkloadError> {
    let number = text.parse().ok().filter(|number| (1..=MOST_PROCESSES).contains(number));
    number.ok_or_else(|| {
        let reason =
            format!("`{text}` is neither `copies` nor a number from 1 to {MOST_PROCESSES}");
        wrong("threads", reason)
    })
}

fn runs(skip: Option<String>) -> Result<[bool; 4], WorkloadError> {
    let mut runs = [true; 4];
    for name in skip.iter().flat_map(|text| text.split(',')) {
        let index = Phase::NAMES.iter().position(|known| *known == name.trim());
        let Some(index) = index else {
            let known = Phase::NAMES.join(", ");
            return Err(wrong("skip", format!("`{name}` is not one of {known}")));
        };
        runs[index] = false;
    }
    if runs == [false; 4] {
        return Err(wrong("skip", "leaves nothing to do; keep at least one phase".into()));
    }
    Ok(runs)
}

impl Workload for Tiobench {
    fn kind(&self) -> &'static str {
        match self.generation {
            Generation::V03 => "tiobench-0.3",
            Generation::V04 => "tiobench-0.4",
        }
    }

    fn default_name(&self) -> String {
        self.kind().replace('-', "_")
    }

    fn description(&self) -> String {
        let threads = match self.threads {
            Threads::Copies => "as many threads as copies".to_string(),
            Threads::Fixed(1) => "1 thread".to_string(),
            Threads::Fixed(threads) => format!("{threads} threads"),
        };
        let size = match (self.size, self.generation) {
            (Some(size), _) => Size(size).to_string(),
            (None, Generation::V03) => "twice memory (200 to 2000 MiB)".to_string(),
            (None, Generation::V04) => "twice memory".to_string(),
        };
        let names: Vec<&str> = self.phases().map(|phase| Phase::NAMES[phase as usize]).collect();
        let mut text = format!(
            "{}: {threads} share {size} in a file each and {} random operations; {} in blocks of {}",
            self.kind().replace('-', " "),
            self.operations,
            names.join(", "),
            Size(self.block)
        );
        for (is_so, words) in [
            (self.sync, "; written with O_SYNC"),
            (self.sequential, "; sequential writers go one after the other"),
            (self.direct, "; with O_DIRECT"),
            (self.count == Count::WholeFiles, "; random rates count whole files, as before 2023"),
        ] {
            if is_so {
                text.push_str(words);
            }
        }
        text
    }

    fn metrics(&self) -> Vec<Metric> {
        self.phases().flat_map(|phase| METRICS[phase as usize]).collect()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let of_phase = |phase: Phase| {
            let Some(joined) = record.phase(phase as u16) else { return [None; 5] };
            let operations = phase.operations(&joined);
            let percent = |count: u64| {
                (operations.count > 0).then(|| 100.0 * count as f64 / operations.count as f64)
            };
            let mean = operations.total.as_secs() * 1000.0 / operations.count as f64;
            [
                mib_per_second(self.credited(phase, &joined, record), joined.took()),
                (operations.count > 0).then_some(mean),
                (operations.count > 0).then(|| operations.max.as_secs() * 1000.0),
                percent(operations.over_2s),
                percent(operations.over_10s),
            ]
        };
        self.phases().flat_map(of_phase).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let shares = self.shares(setting)?;
        let bytes = shares.blocks * self.block;
        let mut plan = Plan {
            phases: Phase::NAMES.to_vec(),
            barriers: vec![shares.threads; shares.copies as usize],
            ..Plan::default()
        };
        if self.sequential {
            // At most MOST_PROCESSES, so it fits.
            plan.queues = (shares.copies * shares.threads) as u16;
        }
        let mut fills = Vec::new();
        for copy in 0..shares.copies {
            for thread in 0..shares.threads {
                let path = FilePath::target(format!("tiotest.{copy}.{thread}"));
                let process = self.job(setting, shares, copy, thread, path.clone()).process();
                let of = if self.threads == Threads::Copies { thread } else { copy };
                plan.run.push(Planned { copy: of, process: Box::new(process) });
                plan.files.push(FileNeed { path: path.clone(), bytes, unit: self.block });
                let zeroes = Arc::new(Zeroes { len: bytes });
                plan.expected.push(Expected { path: path.clone(), bytes: zeroes });
                fills.push(Fill { path, bytes, content: Content::Zeroes });
                plan.room += bytes;
            }
        }
        if !self.runs[Phase::SequentialWrite as usize] {
            plan.prepare = fill_files(fills);
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        Ok(Arc::new(Self { size: Some(whole_mib(bytes)?), ..self.clone() }))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["text", "terse"]
    }

    fn format(&self, format: &str, record: &RunRecord, host: &str) -> Option<String> {
        match format {
            "text" => Some(self.text(record, host)),
            "terse" => Some(self.terse(record)),
            _ => None,
        }
    }
}

impl Tiobench {
    fn job(
        &self,
        setting: &Setting,
        shares: Shares,
        copy: u32,
        thread: u32,
        path: FilePath,
    ) -> Job {
        let queue = |thread: u32| (copy * shares.threads + thread) as u16;
        let is_last = thread + 1 == shares.threads;
        let turn = self.sequential.then(|| Turn {
            mine: (thread > 0).then(|| queue(thread)),
            next: (!is_last).then(|| queue(thread + 1)),
        });
        Job {
            generation: self.generation,
            path,
            block: self.block,
            blocks: shares.blocks,
            operations: shares.operations,
            sync: self.sync,
            direct: self.direct,
            is_raw: setting.space.is_some(),
            barrier: copy as u16,
            turn,
            phases: self.phases().collect(),
            seed: [setting.seed, u64::from(copy), u64::from(thread)],
        }
    }
}

macro_rules! metrics_of {
    ($phase:literal) => {
        [
            Metric::rate(concat!($phase, "_mib_per_s"), "MiB/s"),
            lower(concat!($phase, "_mean_latency_ms"), "ms"),
            lower(concat!($phase, "_longest_latency_ms"), "ms"),
            lower(concat!($phase, "_over_2s_percent"), "%"),
            lower(concat!($phase, "_over_10s_percent"), "%"),
        ]
    };
}

const fn lower(name: &'static str, unit: &'static str) -> Metric {
    Metric { name, unit, better: Better::Lower }
}

/// By the index of [`Phase::ALL`].
const METRICS: [[Metric; 5]; 4] = [
    metrics_of!("seq_write"),
    metrics_of!("rand_write"),
    metrics_of!("seq_read"),
    metrics_of!("rand_read"),
];
