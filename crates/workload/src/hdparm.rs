//! hdparm's two timings of a device, `-t` and `-T`.
//!
//! Both open the device, sync and wait 3 s for I/O to settle. `-t` then reads 2 MiB at a time from the
//! start until 3 s have passed, which is looked at after each read, or the device ends. Nothing is
//! dropped before: only a sync goes before the timing, and the flush (`BLKFLSBUF`) comes behind it. Here
//! memory is empty at the start, as the flush of an hdparm before would have left it.
//!
//! `-T` reads the first 2 MiB once, flushes, waits 1 s and reads the same 2 MiB again and again for 2 s.
//! As hdparm does, it then seeks as often as it has read and subtracts the time of that. Each operation
//! has the cost of asking the clock in it, so this takes away the seeks and the clock of one of the two
//! operations of a round; the cost of asking for the read itself stays in, as it does in hdparm.
//!
//! On a filesystem a file stands for the device. On a raw target the whole of it is the device, and what
//! is on it is read: nothing is written. Copies all time the same device at once.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;

use raidlab_core::{Nanos, Size, Time};

use crate::content::file_seed;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::fill_files::{Fill, fill_files};
use crate::kinds::Workload;
use crate::metric::{Metric, mib_per_second};
use crate::op::{Content, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags, Seek};
use crate::parameters::Parameters;
use crate::plan::{Expected, FileNeed, Memory, Plan, Planned, Process, SeededBytes, Setting};
use crate::record::{ProcessRecord, RunRecord};

/// What hdparm reads at once.
const BUFFER: u64 = 2 << 20;
/// What stands for a device of unknown size in hdparm, and for any on a filesystem here.
const DEFAULT_SIZE: u64 = 2 << 30;
/// Reads after which `-T` ends in any case: 16 TiB a second. Time must pass for it to end otherwise.
const MOST_READS: u64 = 1 << 24;
const SLOT: FileDescriptor = FileDescriptor(0);
const TIMING: u16 = 0;
const OVERHEAD: u16 = 1;

/// Which timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// `-t`.
    Device,
    /// `-T`.
    Cache,
}

#[derive(Clone, Debug)]
struct Hdparm {
    timing: Timing,
    /// Bytes of the device from its start on; `None`: a raw target whole, else [`DEFAULT_SIZE`].
    size: Option<u64>,
    /// Where `-t` starts.
    offset: u64,
    /// The reads go on until so much time has passed.
    time: Nanos,
    settle: Nanos,
    direct: bool,
}

pub(crate) fn make_device(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let offset = match given.text("offset") {
        None => 0,
        Some(text) => text.parse::<Size>().map_err(|reason| wrong("offset", reason))?.0,
    };
    made(Timing::Device, offset, Nanos::from_millis(3000), given)
}

pub(crate) fn make_cache(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    made(Timing::Cache, 0, Nanos::from_millis(2000), given)
}

fn made(
    timing: Timing,
    offset: u64,
    time: Nanos,
    given: &mut Parameters,
) -> Result<Arc<dyn Workload>, WorkloadError> {
    let made = Hdparm {
        timing,
        size: given.optional_size("size")?,
        offset,
        time: given.duration("time", time)?,
        settle: given.duration("settle", Nanos::from_millis(3000))?,
        direct: given.flag("direct", false)?,
    };
    if !offset.is_multiple_of(512) {
        return Err(wrong("offset", format!("{} is not a multiple of 512 bytes", Size(offset))));
    }
    if let Some(size) = made.size {
        made.reads(size)?;
    }
    Ok(Arc::new(made))
}

fn wrong(key: &str, reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

impl Hdparm {
    /// How many reads there are in so many bytes.
    fn reads(&self, size: u64) -> Result<u64, WorkloadError> {
        let reads = size.saturating_sub(self.offset) / BUFFER;
        if reads > 0 {
            return Ok(reads);
        }
        let (size, from) = (Size(size), Size(self.offset));
        let reason = format!("{size} are less than one read of 2MiB from {from} on");
        Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason))
    }

    /// Bytes and time of a process; the time is `None` when it did not get to its end.
    fn measured(&self, process: &ProcessRecord) -> Option<(u64, Nanos)> {
        let timed = process.phases.get(usize::from(TIMING))?;
        timed.ended?;
        let overhead = process.phases.get(usize::from(OVERHEAD)).map_or(Nanos::ZERO, |p| p.took());
        let net = timed.took().0.saturating_sub(overhead.0);
        Some((timed.reads.bytes, Nanos(net)))
    }

    fn line(&self, bytes: u64, elapsed: Nanos) -> String {
        let mebibytes = bytes >> 20;
        let seconds = elapsed.as_secs();
        let rate = mebibytes as f64 / seconds;
        // The two differ in where the smaller unit starts.
        let (head, is_fast) = match (self.timing, self.direct) {
            (Timing::Device, false) => ("Timing buffered disk reads", rate > 1.0),
            (Timing::Device, true) => ("Timing O_DIRECT disk reads", rate > 1.0),
            (Timing::Cache, false) => ("Timing cached reads:  ", mebibytes as f64 >= seconds),
            (Timing::Cache, true) => {
                ("Timing O_DIRECT cached reads:  ", mebibytes as f64 >= seconds)
            }
        };
        let colon = match (self.timing, self.offset) {
            (Timing::Cache, _) => String::new(),
            (Timing::Device, 0) => ":".to_string(),
            (Timing::Device, offset) => format!(" (offset {} GB):", offset >> 30),
        };
        let (rate, unit) = if is_fast { (rate, "MB/sec") } else { (rate * 1024.0, "kB/sec") };
        format!(" {head}{colon} {mebibytes:>3} MB in {seconds:>5.2} seconds = {rate:>6.2} {unit}\n")
    }
}

impl Workload for Hdparm {
    fn kind(&self) -> &'static str {
        match self.timing {
            Timing::Device => "hdparm-t",
            Timing::Cache => "hdparm-T",
        }
    }

    fn default_name(&self) -> String {
        self.kind().replace('-', "_")
    }

    fn description(&self) -> String {
        let direct = if self.direct { " with O_DIRECT" } else { "" };
        let time = self.time.as_secs();
        match self.timing {
            Timing::Device => {
                let from = match self.offset {
                    0 => "the start".to_string(),
                    offset => Size(offset).to_string(),
                };
                format!("hdparm -t: reads 2MiB at a time from {from} on for {time} s{direct}")
            }
            Timing::Cache => {
                format!("hdparm -T: reads the first 2MiB again and again for {time} s{direct}")
            }
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::MIB_PER_SECOND]
    }

    /// `-t`: what all copies read, until the last is done. `-T`: the rates of the copies together, each
    /// with its own overhead taken off.
    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let value = match self.timing {
            Timing::Device => record
                .phase(TIMING)
                .and_then(|timed| mib_per_second(timed.reads.bytes, timed.took())),
            Timing::Cache => record.processes.iter().try_fold(0.0, |sum, process| {
                let (bytes, elapsed) = self.measured(process)?;
                Some(sum + mib_per_second(bytes, elapsed)?)
            }),
        };
        vec![value]
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let size = match (self.size, setting.space) {
            (Some(size), Some(space)) if size > space => {
                let reason = format!("{} is more than the {} there are", Size(size), Size(space));
                return Err(WorkloadError::new(WorkloadErrorKind::DoesNotFit, "size", reason));
            }
            (Some(size), _) => size,
            (None, space) => space.unwrap_or(DEFAULT_SIZE),
        };
        let reads = self.reads(size)?;
        let used = match (self.timing, setting.space) {
            // The rest of a device is not looked at.
            (Timing::Cache, Some(_)) => BUFFER,
            _ => size,
        };
        let path = FilePath::target("hdparm");
        let seed = file_seed(setting.seed, 0);
        let mut plan = Plan {
            phases: match self.timing {
                Timing::Device => vec!["device_reads"],
                Timing::Cache => vec!["cached_reads", "overhead"],
            },
            memory: match self.timing {
                Timing::Device => Memory::Cold,
                Timing::Cache => Memory::AsIs,
            },
            files: vec![FileNeed { path: path.clone(), bytes: used, unit: BUFFER }],
            asks_time: true,
            ..Plan::default()
        };
        if setting.space.is_none() {
            let content = Content::Seeded { seed };
            plan.prepare = fill_files([Fill { path: path.clone(), bytes: size, content }]);
            plan.expected = vec![Expected {
                path: path.clone(),
                bytes: Arc::new(SeededBytes { seed, len: size }),
            }];
            plan.room = size;
        }
        for copy in 0..setting.copies {
            let process = Reader::new(self, path.clone(), reads);
            plan.run.push(Planned { copy, process: Box::new(process) });
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        self.reads(bytes)?;
        Ok(Arc::new(Self { size: Some(bytes), ..self.clone() }))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["text"]
    }

    fn format(&self, format: &str, record: &RunRecord, _host: &str) -> Option<String> {
        if format != "text" {
            return None;
        }
        let mut text = String::new();
        for process in &record.processes {
            let (bytes, elapsed) = self.measured(process)?;
            let _ = write!(text, "{}", self.line(bytes, elapsed));
        }
        Some(text)
    }
}

/// A run of hdparm.
#[derive(Debug)]
struct Reader {
    timing: Timing,
    time: Nanos,
    /// Reads up to the end of the device.
    most: u64,
    ops: VecDeque<Op>,
    state: State,
    /// When the clock was started.
    began: Option<Time>,
    /// Reads that were asked for.
    reads: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    Seeking { left: u64 },
    Done,
}

/// What hdparm does to empty caches. What it asks of the drive itself behind `BLKFLSBUF` has no
/// counterpart here.
fn flush() -> [Op; 6] {
    let fd = SLOT;
    [
        Op::SyncAll,
        Op::Fsync { fd },
        Op::Fdatasync { fd },
        Op::SyncAll,
        Op::DropCached { fd },
        Op::SyncAll,
    ]
}

const READ: Op = Op::Read { fd: SLOT, len: BUFFER, times: 1 };
const TO_START: Op = Op::Seek { fd: SLOT, to: Seek::Start(0) };

impl Reader {
    fn new(hdparm: &Hdparm, path: FilePath, most: u64) -> Self {
        let flags = OpenFlags { direct: hdparm.direct, ..OpenFlags::READ };
        let mut ops = VecDeque::from([
            Op::Open { fd: SLOT, path, flags },
            Op::SyncAll,
            Op::Sleep(hdparm.settle),
        ]);
        match hdparm.timing {
            Timing::Device if hdparm.offset > 0 => {
                ops.push_back(Op::Seek { fd: SLOT, to: Seek::Start(hdparm.offset) });
            }
            Timing::Device => {}
            Timing::Cache => {
                ops.extend([TO_START, READ]);
                ops.extend(flush());
                ops.push_back(Op::Sleep(Nanos::from_millis(1000)));
            }
        }
        ops.push_back(Op::Mark(Mark::Begin(TIMING)));
        Self {
            timing: hdparm.timing,
            time: hdparm.time,
            most,
            ops,
            state: State::Reading,
            began: None,
            reads: 0,
        }
    }

    /// What comes when all that was planned is done.
    fn plan_next(&mut self, now: Time) {
        match self.state {
            State::Reading => self.read_or_stop(now),
            State::Seeking { left: 0 } => self.finish(OVERHEAD),
            State::Seeking { left } => {
                self.state = State::Seeking { left: left - 1 };
                self.ops.push_back(TO_START);
            }
            State::Done => self.ops.push_back(Op::Done),
        }
    }

    fn read_or_stop(&mut self, now: Time) {
        let began = *self.began.get_or_insert(now);
        let is_over = match self.timing {
            Timing::Device => self.reads == self.most,
            Timing::Cache => self.reads == MOST_READS,
        };
        // At least one read, as the clock is looked at behind each.
        if self.reads > 0 && (now.since(began) >= self.time || is_over) {
            match self.timing {
                Timing::Device => self.finish(TIMING),
                Timing::Cache => {
                    self.state = State::Seeking { left: self.reads };
                    self.ops.push_back(Op::Mark(Mark::End(TIMING)));
                    self.ops.push_back(Op::Mark(Mark::Begin(OVERHEAD)));
                }
            }
            return;
        }
        self.reads += 1;
        if self.timing == Timing::Cache {
            self.ops.push_back(TO_START);
        }
        self.ops.push_back(READ);
    }

    /// Ends the last phase and flushes.
    fn finish(&mut self, phase: u16) {
        self.state = State::Done;
        self.ops.push_back(Op::Mark(Mark::End(phase)));
        self.ops.extend(flush());
        if self.timing == Timing::Cache {
            self.ops.push_back(Op::Sleep(Nanos::from_millis(1000)));
        }
        self.ops.push_back(Op::Close { fd: SLOT });
    }
}

impl Process for Reader {
    fn next(&mut self, now: Time, _last: OpResult) -> Op {
        loop {
            if let Some(op) = self.ops.pop_front() {
                return op;
            }
            self.plan_next(now);
        }
    }
}
