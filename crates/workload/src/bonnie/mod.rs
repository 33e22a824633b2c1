//! bonnie++ 1.03 and 2.00: a large file written, rewritten, read and sought in, and many small files.
//!
//! Facts from the documentation, the sources and traces of bonnie++ 1.03a to 1.03e and 2.00a by Russell
//! Coker; the code is our own. A copy is what one bonnie++ does: a main process and the seekers (3
//! processes in 1.03, 5 threads in 2.00), which wait at a barrier until the file has been read and then
//! share a queue of tickets. All of a copy's files are named `Bonnie.` and the number of the copy.
//!
//! Parameters, with the options they stand for and their defaults:
//!
//! | parameter | option | default |
//! |---|---|---|
//! | `size` | `-s size` | 300 MiB or twice memory, whichever is more; `0`: no large file |
//! | `ram` | `-r` | memory of the host; `0`: not known, so that any size will do |
//! | `chunk` | `-s :chunk` | 8 KiB; a power of two from 256 bytes to 1 MiB |
//! | `n` | `-n` | `16`; `N[:max[:min[:directories[:chunk]]]]`, `max` also `link` or `symlink`; `0`: none |
//! | `fast` | `-f` | `false`; in 2.00 also the MiB that are written and read byte by byte |
//! | `sync` | `-b` | `false` |
//! | `seeks`, `seekers` | `-s ::seeks:seekers` | 8192 and 3 or 5; fixed in the original 1.03 |
//! | `seed` | `-z` | the study's |
//! | `settle` | none | 5 s or 3 s: what the seekers are given to open their files |
//! | `metric` | none | `rates`: compared by `block_write_kps`; `seconds`: by the time of the whole run |
//!
//! Rates and CPU shares are cut to whole numbers, and not told (`None`, `+++++`) below half a second, as
//! the original does. Those of several copies are added, as its `bon_add` does, and not told when one
//! of them is not.
//!
//! Where this differs on purpose: the %CP of 2.00's seeks counts each seeker's CPU time once, where the
//! original counts all of it for each seeker; its text report has the rates of small files where the
//! original prints numbers that mean nothing; and the name of 2.00's large file goes after the last
//! seeker is done rather than after the first one.

mod draws;
mod files;
mod options;
mod phases;
mod report;
mod seeker;
mod small;
mod text;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use raidlab_core::{Size, Time};

pub use self::draws::random_file;

use self::draws::Draws;
use self::options::{Headline, Options};
use self::report::Figures;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::{Better, Metric};
use crate::op::{Op, OpResult};
use crate::parameters::Parameters;
use crate::plan::{FileNeed, Plan, Planned, Process, Setting};
use crate::record::RunRecord;

/// Which bonnie++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// 1.03, of 2003 to 2008.
    V103,
    /// 2.00, of 2018 to today.
    V200,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V103 => "1.03",
            Self::V200 => "2.00",
        })
    }
}

/// The kind `bonnie-1.03`.
pub(crate) const KIND_103: &str = "bonnie-1.03";
/// The kind `bonnie-2.00`.
pub(crate) const KIND_200: &str = "bonnie-2.00";
/// What it is, for lists of kinds.
pub(crate) const SUMMARY_103: &str = "bonnie++ 1.03: size=(twice memory) ram=(memory) chunk=8KiB \
    n=16[:max[:min[:dirs]]] fast=false sync=false seeks=8192 seekers=3 seed= settle=5s metric=rates";
/// What it is, for lists of kinds.
pub(crate) const SUMMARY_200: &str = "bonnie++ 2.00: size=(twice memory) ram=(memory) chunk=8KiB \
    n=16[:max[:min[:dirs[:chunk]]]] fast=false sync=false seeks=8192 seekers=5 seed= settle=3s \
    metric=rates";

/// Makes a `bonnie-1.03`.
pub(crate) fn make_103(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    Ok(Arc::new(Bonnie { options: Options::read(Version::V103, parameters)? }))
}

/// Makes a `bonnie-2.00`.
pub(crate) fn make_200(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    Ok(Arc::new(Bonnie { options: Options::read(Version::V200, parameters)? }))
}

#[derive(Clone, Debug)]
struct Bonnie {
    options: Options,
}

/// What a metric tells of a copy.
#[derive(Clone, Copy, Debug)]
enum Figure {
    /// The rate of a phase, cut to a whole number.
    Rate(u16),
    /// The rate of the seeks, to one decimal.
    Seeks,
    /// The CPU share of a phase.
    Cpu(u16),
    /// The time of the whole run.
    Seconds,
}

const fn cpu(name: &'static str) -> Metric {
    Metric { name, unit: "%CP", better: Better::Lower }
}

/// The metrics of the large file without passes byte by byte, those of these, and those of small files.
const LARGE: [(Metric, Figure); 8] = [
    (Metric::rate("block_write_kps", "KiB/s"), Figure::Rate(phases::BLOCK_WRITE)),
    (cpu("block_write_cp"), Figure::Cpu(phases::BLOCK_WRITE)),
    (Metric::rate("rewrite_kps", "KiB/s"), Figure::Rate(phases::REWRITE)),
    (cpu("rewrite_cp"), Figure::Cpu(phases::REWRITE)),
    (Metric::rate("block_read_kps", "KiB/s"), Figure::Rate(phases::BLOCK_READ)),
    (cpu("block_read_cp"), Figure::Cpu(phases::BLOCK_READ)),
    (Metric::rate("seeks_per_s", "1/s"), Figure::Seeks),
    (cpu("seeks_cp"), Figure::Cpu(phases::SEEKS)),
];
const CHARACTERS: [(Metric, Figure); 4] = [
    (Metric::rate("character_write_kps", "KiB/s"), Figure::Rate(phases::CHARACTER_WRITE)),
    (cpu("character_write_cp"), Figure::Cpu(phases::CHARACTER_WRITE)),
    (Metric::rate("character_read_kps", "KiB/s"), Figure::Rate(phases::CHARACTER_READ)),
    (cpu("character_read_cp"), Figure::Cpu(phases::CHARACTER_READ)),
];
const SMALL: [(Metric, Figure); 12] = [
    (Metric::rate("create_sequential_per_s", "1/s"), Figure::Rate(phases::CREATE_SEQUENTIAL)),
    (cpu("create_sequential_cp"), Figure::Cpu(phases::CREATE_SEQUENTIAL)),
    (Metric::rate("stat_sequential_per_s", "1/s"), Figure::Rate(phases::STAT_SEQUENTIAL)),
    (cpu("stat_sequential_cp"), Figure::Cpu(phases::STAT_SEQUENTIAL)),
    (Metric::rate("delete_sequential_per_s", "1/s"), Figure::Rate(phases::DELETE_SEQUENTIAL)),
    (cpu("delete_sequential_cp"), Figure::Cpu(phases::DELETE_SEQUENTIAL)),
    (Metric::rate("create_random_per_s", "1/s"), Figure::Rate(phases::CREATE_RANDOM)),
    (cpu("create_random_cp"), Figure::Cpu(phases::CREATE_RANDOM)),
    (Metric::rate("stat_random_per_s", "1/s"), Figure::Rate(phases::STAT_RANDOM)),
    (cpu("stat_random_cp"), Figure::Cpu(phases::STAT_RANDOM)),
    (Metric::rate("delete_random_per_s", "1/s"), Figure::Rate(phases::DELETE_RANDOM)),
    (cpu("delete_random_cp"), Figure::Cpu(phases::DELETE_RANDOM)),
];

impl Bonnie {
    fn told(&self) -> Vec<(Metric, Figure)> {
        let options = &self.options;
        let seconds = (Metric::SECONDS, Figure::Seconds);
        let mut told = Vec::new();
        if options.headline == Headline::Seconds {
            told.push(seconds);
        }
        if options.size != Some(0) {
            told.extend(LARGE);
            if options.characters > 0 {
                told.extend(CHARACTERS);
            }
        }
        if options.small.is_some() {
            told.extend(SMALL);
        }
        if options.headline == Headline::Rates {
            told.push(seconds);
        }
        told
    }

    fn value(&self, told: Figure, figures: &Figures) -> Option<f64> {
        let timed = |phase: u16| figures.phases[usize::from(phase)];
        let rate = |phase| timed(phase)?.rate(figures.amount(&self.options, phase));
        match told {
            Figure::Rate(phase) => rate(phase).map(f64::trunc),
            Figure::Seeks => rate(phases::SEEKS).map(|rate| (rate * 10.0).round() / 10.0),
            Figure::Cpu(phase) => timed(phase)?.cpu_percent(),
            Figure::Seconds => None,
        }
    }

    /// The processes of a copy; `seed` is of all copies.
    fn copy(&self, copy: u32, size: u64, seed: u64) -> Vec<Box<dyn Process>> {
        let options = &self.options;
        let job = Arc::new(files::Job {
            version: options.version,
            copy,
            size,
            chunk: options.chunk,
            characters: options.characters.min(size),
            sync: options.sync,
            seeks: options.seeks,
            seekers: options.seekers,
            settle: options.settle,
            barriers: [copy as u16 * 2, copy as u16 * 2 + 1],
            queue: copy as u16,
        });
        let small = options.small.map(|small| small::Job {
            version: options.version,
            copy,
            count: small.count,
            made: small.made,
            directories: small.directories,
            chunk: small.chunk,
            sync: options.sync,
        });
        let has_large = size > 0;
        let main = Main {
            files: has_large.then(|| files::Files::new(job.clone())),
            small: small.map(small::SmallFiles::new),
            draws: Draws::of_main(seed, copy),
            ops: VecDeque::new(),
        };
        let mut processes: Vec<Box<dyn Process>> = vec![Box::new(main)];
        if has_large {
            processes.extend((0..options.seekers).map(|index| {
                let draws = Draws::of_seeker(seed, copy, index);
                Box::new(seeker::Seeker::new(job.clone(), draws)) as Box<dyn Process>
            }));
        }
        processes
    }

    /// Bytes that a copy has on the target at most.
    fn room(&self, size: u64) -> u64 {
        /// What a file takes at least of a filesystem.
        const BLOCK: u64 = 4096;
        let small = self.options.small.map_or(0, |small| {
            let longest = match small.made {
                small::Made::Files { most, .. } => most,
                small::Made::Links | small::Made::Symlinks => 0,
            };
            (longest + 1).next_multiple_of(BLOCK).saturating_mul(small.count * small::UNIT)
        });
        size.max(small)
    }

    /// Why files at fixed places on whole blocks would not do.
    fn needs_filesystem(&self, size: u64) -> Option<&'static str> {
        let options = &self.options;
        let writes_bytes = options.version == Version::V200 && options.characters.min(size) > 0;
        match (options.small.is_some(), writes_bytes) {
            (true, false) => Some("bonnie++ makes small files; with n=0 it needs none"),
            (true, true) => Some(
                "bonnie++ makes small files, and writes and reads single bytes; \
                 with n=0 fast=true it does neither",
            ),
            (false, true) => {
                Some("bonnie++ 2.00 writes and reads single bytes; with fast=true it does not")
            }
            (false, false) => None,
        }
    }

    fn files(&self, copies: u32, size: u64) -> Vec<FileNeed> {
        let options = &self.options;
        let need = |path, bytes| FileNeed { path, bytes, unit: options.chunk };
        let of_copy = |copy| {
            let names = files::names(options.version, copy, size);
            names.map(move |(_, path, bytes)| need(path, bytes))
        };
        (0..copies).flat_map(of_copy).collect()
    }
}

/// The main process of a copy: the large file, then the small ones.
#[derive(Debug)]
struct Main {
    files: Option<files::Files>,
    small: Option<small::SmallFiles>,
    draws: Draws,
    ops: VecDeque<Op>,
}

impl Process for Main {
    fn next(&mut self, _now: Time, mut last: OpResult) -> Op {
        loop {
            if let Some(op) = self.ops.pop_front() {
                return op;
            }
            if let Some(files) = &mut self.files {
                if !files.refill(&mut self.draws, &mut self.ops) {
                    self.files = None;
                }
            } else if let Some(small) = &mut self.small {
                if !small.refill(&mut last, &mut self.draws, &mut self.ops) {
                    self.small = None;
                }
            } else {
                return Op::Done;
            }
        }
    }
}

impl Workload for Bonnie {
    fn kind(&self) -> &'static str {
        match self.options.version {
            Version::V103 => KIND_103,
            Version::V200 => KIND_200,
        }
    }

    fn default_name(&self) -> String {
        match self.options.size {
            Some(size) if size > 0 => format!("{} {}", self.kind(), Size(size)),
            _ => self.kind().to_string(),
        }
    }

    fn description(&self) -> String {
        let options = &self.options;
        let mut parts = Vec::new();
        if options.size != Some(0) {
            let size = match options.size {
                Some(size) => format!("{}", Size(size)),
                None => "twice memory".into(),
            };
            let chunk = Size(options.chunk);
            parts.push(format!("a file of {size} written, rewritten and read by {chunk}"));
            if options.characters > 0 {
                parts.push("written and read byte by byte".into());
            }
            parts.push(format!("{} seeks by {}", options.seeks, options.seekers));
        }
        if let Some(small) = options.small {
            let files = small.count * small::UNIT;
            parts.push(format!("{files} small files made, looked at and removed, twice"));
        }
        if options.sync {
            parts.push("each made durable".into());
        }
        format!("bonnie++ {}: {}", options.version, parts.join("; "))
    }

    fn metrics(&self) -> Vec<Metric> {
        self.told().into_iter().map(|(metric, _)| metric).collect()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let copies = 0..report::copies(record);
        let figures: Vec<Figures> =
            copies.map(|copy| Figures::of(&self.options, record, copy)).collect();
        let value = |(_, told)| match told {
            Figure::Seconds => Some(record.last_done().as_secs()),
            told if figures.is_empty() => self.value(told, &Figures::default()),
            told => figures.iter().map(|figures| self.value(told, figures)).sum(),
        };
        self.told().into_iter().map(value).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let options = &self.options;
        let size = options.size_in(setting)?;
        if setting.copies == 0 || setting.copies > u32::from(u16::MAX) / 2 {
            let reason = format!("{} copies are not 1 to {}", setting.copies, u16::MAX / 2);
            return Err(WorkloadError::new(WorkloadErrorKind::Processes, "copies", reason));
        }
        let room = self.room(size).saturating_mul(u64::from(setting.copies));
        // Where a filesystem is needed that is a better reason than the room.
        let needs_filesystem = self.needs_filesystem(size);
        let space = setting.space.filter(|_| needs_filesystem.is_none());
        if let Some(space) = space.filter(|space| room > *space) {
            let (room, space) = (Size(room), Size(space));
            let reason = format!("{} copies need {room}; there are {space}", setting.copies);
            return Err(WorkloadError::new(WorkloadErrorKind::DoesNotFit, "size", reason));
        }
        let seed = options.seed.unwrap_or(setting.seed);
        let run = (0..setting.copies).flat_map(|copy| {
            let processes = self.copy(copy, size, seed).into_iter();
            processes.map(move |process| Planned { copy, process })
        });
        let has_large = size > 0;
        let barriers = if has_large { setting.copies as usize * 2 } else { 0 };
        Ok(Plan {
            run: run.collect(),
            phases: phases::NAMES.to_vec(),
            barriers: vec![options.seekers + 1; barriers],
            queues: if has_large { setting.copies as u16 } else { 0 },
            needs_filesystem,
            files: match needs_filesystem {
                None => self.files(setting.copies, size),
                Some(_) => Vec::new(),
            },
            room,
            ..Plan::default()
        })
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let options = Options { size: Some(bytes), ..self.options.clone() };
        options.check_size(bytes)?;
        Ok(Arc::new(Self { options }))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["text", "csv"]
    }

    fn format(&self, format: &str, record: &RunRecord, host: &str) -> Option<String> {
        match format {
            "text" => Some(text::text(&self.options, record, host)),
            "csv" => Some(report::csv(&self.options, record, host)),
            _ => None,
        }
    }
}
