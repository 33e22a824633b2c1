//! A day of a small file server: files of different sizes in one folder are read, copied into each other,
//! deleted and rewritten by parallel processes with different block sizes, in the same order every time.
//!
//! # What is done
//! The study of 2018 that this is from tells the numbers (15 files, 120 operations) but not the script, so
//! these choices are this program's own, all drawn from the parameter `seed` and from nothing else:
//! * Sizes rise from the smallest to the largest by about the same factor from file to file.
//! * A quarter of the operations is of each sort, in a random order. What is deleted is one of the files
//!   that are there, but never so many that less than half are left: then a rewrite takes its place. A
//!   rewrite takes a file that was deleted when there is one, which is made anew with its first size; else
//!   it writes a file that is there once more from start to end, in place and without cutting it. A copy
//!   goes by reads and writes into any other file, which is emptied and takes the length of the first.
//! * Operation `n` is done by process `n` modulo the number of processes, with that process's block.
//!
//! # Why it is safe
//! The outcome is that of doing all operations in their order. An operation waits for those before it that
//! it depends on, and for no others: one that changes a file waits for all that have used it since it was
//! last changed, one that reads a file for the last that changed it. Each waits at a queue of its own for as
//! many tickets as others must be done first. Waiting goes from later to earlier operations and each process
//! works in order, so none waits for ever, no file is missing, and what each file holds in the end is known.
//!
//! # What is timed
//! Everything up to the last operation, and a `sync` of all of it by one process after that: the files fit
//! into memory, so without it what is measured would be how much was left there. `sync=false` leaves it out,
//! as a plain script would.

mod day;

use std::collections::VecDeque;
use std::sync::Arc;

use raidlab_core::{Size, Time};

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::fill_files::{Fill, fill_files};
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::{Content, FileDescriptor, FilePath, Mark, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{Expected, Plan, Planned, Process, SeededBytes, Setting};
use crate::record::RunRecord;
use crate::steps::writes;
use crate::{LARGEST_BLOCK, MOST_PROCESSES};
use day::{Action, Day, DayStep};

const FROM: FileDescriptor = FileDescriptor(0);
const TO: FileDescriptor = FileDescriptor(1);

#[derive(Clone, Debug)]
struct RealLife {
    processes: u32,
    files: u32,
    operations: u32,
    smallest: u64,
    largest: u64,
    /// Of the processes in turn; at least one.
    blocks: Vec<u64>,
    seed: u64,
    sync: bool,
}

pub(crate) fn make(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let blocks = given.text("blocks").unwrap_or_else(|| "4KiB,32KiB,256KiB,1MiB".to_string());
    let made = RealLife {
        // Each is bounded, so it fits.
        processes: given.number("processes", 4, 1..=u64::from(MOST_PROCESSES))? as u32,
        files: given.number("files", 15, 2..=10_000)? as u32,
        operations: given.number("operations", 120, 1..=60_000)? as u32,
        smallest: given.size("smallest", 1 << 20)?,
        largest: given.size("largest", 64 << 20)?,
        blocks: blocks.split(',').map(block).collect::<Result<_, _>>()?,
        seed: given.number("seed", 1, 0..=u64::MAX)?,
        sync: given.flag("sync", true)?,
    };
    made.check()?;
    Ok(Arc::new(made))
}

fn wrong(key: &str, reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

fn block(text: &str) -> Result<u64, WorkloadError> {
    let size = text.parse::<Size>().map_err(|reason| wrong("blocks", reason))?.0;
    if (1..=LARGEST_BLOCK).contains(&size) {
        return Ok(size);
    }
    let reason = format!("{} is not from 1B to {}", Size(size), Size(LARGEST_BLOCK));
    Err(wrong("blocks", reason))
}

impl RealLife {
    fn check(&self) -> Result<(), WorkloadError> {
        let (smallest, largest) = (Size(self.smallest), Size(self.largest));
        if largest.0 < smallest.0.saturating_mul(2) {
            let reason = format!("{largest} is less than twice the smallest, {smallest}");
            return Err(wrong("largest", reason));
        }
        if largest.0 > 1 << 50 {
            return Err(wrong("largest", format!("{largest} is more than 1024TiB")));
        }
        Ok(())
    }

    fn day(&self) -> Day {
        Day::new(self.files, self.operations, self.smallest, self.largest, self.seed)
    }
}

fn name(copy: u32, file: usize) -> FilePath {
    FilePath::target(format!("real-life.{copy}.{file}"))
}

impl Workload for RealLife {
    fn kind(&self) -> &'static str {
        "real-life"
    }

    fn default_name(&self) -> String {
        "real_life".to_string()
    }

    fn description(&self) -> String {
        let blocks: Vec<String> =
            self.blocks.iter().map(|block| Size(*block).to_string()).collect();
        let end = if self.sync { ", and syncs" } else { "" };
        format!(
            "reads, copies into each other, deletes and rewrites {} files of {} to {}: {} operations by \
             {} processes in blocks of {}{end}",
            self.files,
            Size(self.smallest),
            Size(self.largest),
            self.operations,
            self.processes,
            blocks.join(", ")
        )
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::SECONDS]
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        vec![Some(record.last_done().as_secs()).filter(|seconds| *seconds > 0.0)]
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let copies = setting.copies;
        if setting.space.is_some() {
            let reason =
                "deletes files and creates them again, so it needs a filesystem".to_string();
            return Err(WorkloadError::new(WorkloadErrorKind::NotSupported, "kind", reason));
        }
        if copies.checked_mul(self.processes).is_none_or(|all| all > MOST_PROCESSES) {
            let all = format!("{copies} x {}", self.processes);
            let reason = format!("{all} is more than {MOST_PROCESSES} processes");
            return Err(wrong("processes", reason));
        }
        let queues = u16::try_from(u64::from(copies) * u64::from(self.operations));
        let queues = queues.map_err(|_| {
            let all = format!("{copies} x {}", self.operations);
            wrong("operations", format!("{all} is more than {} operations", u16::MAX))
        })?;
        let day = self.day();
        let mut plan = Plan {
            phases: vec!["work"],
            barriers: vec![self.processes; copies as usize],
            queues,
            needs_filesystem: Some("it deletes files and creates them again"),
            room: day.room.saturating_mul(u64::from(copies)),
            ..Plan::default()
        };
        let mut fills = Vec::new();
        for copy in 0..copies {
            fills.extend(day.first.iter().enumerate().map(|(file, bytes)| Fill {
                path: name(copy, file),
                bytes: bytes.len,
                content: Content::Seeded { seed: bytes.seed },
            }));
            let left = day.last.iter().enumerate();
            plan.expected.extend(left.filter_map(
                |(file, bytes): (usize, &Option<SeededBytes>)| {
                    Some(Expected { path: name(copy, file), bytes: Arc::new((*bytes)?) })
                },
            ));
            for process in 0..self.processes {
                let worker = self.worker(&day, copy, process);
                plan.run.push(Planned { copy, process: Box::new(worker) });
            }
        }
        plan.prepare = fill_files(fills);
        Ok(plan)
    }

    /// So many bytes in all files of a copy together, each as large a part of them as before.
    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let whole: u64 = self.day().first.iter().map(|file| file.len).sum();
        let part = |size: u64| {
            let part = u128::from(size) * u128::from(bytes) / u128::from(whole.max(1));
            u64::try_from(part).unwrap_or(u64::MAX).max(1)
        };
        let (smallest, largest) = (part(self.smallest), part(self.largest));
        let made = Self { smallest, largest, ..self.clone() };
        if made.check().is_err() {
            let reason = format!("{} cannot be shared by {} files", Size(bytes), self.files);
            return Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
        }
        Ok(Arc::new(made))
    }
}

impl RealLife {
    fn worker(&self, day: &Day, copy: u32, process: u32) -> Worker {
        let first_queue = (copy * self.operations) as u16;
        let steps = day.steps.iter().enumerate();
        let mine = steps.filter(|(index, _)| *index as u32 % self.processes == process);
        Worker {
            copy,
            first_queue,
            block: self.blocks[process as usize % self.blocks.len()],
            barrier: copy as u16,
            syncs: self.sync && process == 0,
            steps: mine.map(|(index, step)| (index, step.clone())).collect(),
            ops: VecDeque::from([Op::Mark(Mark::Begin(0))]),
            copying: None,
            is_over: false,
        }
    }
}

/// A process of the day.
#[derive(Debug)]
struct Worker {
    copy: u32,
    first_queue: u16,
    block: u64,
    barrier: u16,
    /// Whether it is the one that syncs when all are done.
    syncs: bool,
    steps: VecDeque<(usize, DayStep)>,
    ops: VecDeque<Op>,
    /// The step whose file is read to its end, with where what is read goes.
    copying: Option<Moving>,
    is_over: bool,
}

/// A file that is read to its end.
#[derive(Clone, Debug)]
struct Moving {
    step: DayStep,
    writes: bool,
    /// Whether the last operation was a read.
    was_read: bool,
}

impl Worker {
    fn queue(&self, step: usize) -> u16 {
        self.first_queue + step as u16
    }

    fn open(&mut self, fd: FileDescriptor, file: usize, flags: OpenFlags) {
        self.ops.push_back(Op::Open { fd, path: name(self.copy, file), flags });
    }

    /// Waits for what must be done before, and begins.
    fn begin(&mut self, index: usize, step: DayStep) {
        let queue = self.queue(index);
        self.ops.extend((0..step.waits).map(|_| Op::Take { queue }));
        match step.action {
            Action::Read(file) => {
                self.open(FROM, file, OpenFlags::READ);
                self.copying = Some(Moving { step, writes: false, was_read: false });
            }
            Action::Copy { from, to } => {
                self.open(FROM, from, OpenFlags::READ);
                self.open(TO, to, OpenFlags::WRITE);
                self.copying = Some(Moving { step, writes: true, was_read: false });
            }
            Action::Delete(file) => {
                self.ops.push_back(Op::Unlink { path: name(self.copy, file) });
                self.tell(&step);
            }
            Action::Rewrite { file, bytes } => {
                // One that was deleted is made anew; one that is there keeps its length.
                self.open(TO, file, OpenFlags { create: true, read: false, ..OpenFlags::BOTH });
                let content = Content::Seeded { seed: bytes.seed };
                self.ops.extend(writes(TO, bytes.len, self.block, content));
                self.ops.push_back(Op::Close { fd: TO });
                self.tell(&step);
            }
        }
    }

    /// Lets those go on that wait for this step.
    fn tell(&mut self, step: &DayStep) {
        for later in &step.tells {
            let queue = self.queue(*later);
            self.ops.push_back(Op::Put { queue, ticket: 1, times: 1 });
        }
    }

    /// The next operation of reading a file to its end.
    fn go_on(&mut self, mut moving: Moving, last: &OpResult) {
        let len = last.moved();
        if moving.was_read && len == 0 {
            self.ops.push_back(Op::Close { fd: FROM });
            if moving.writes {
                self.ops.push_back(Op::Close { fd: TO });
            }
            self.tell(&moving.step);
            return;
        }
        if moving.was_read && moving.writes {
            let content = Content::Buffer { from: 0 };
            self.ops.push_back(Op::Write { fd: TO, len, content, times: 1 });
            moving.was_read = false;
        } else {
            self.ops.push_back(Op::Read { fd: FROM, len: self.block, times: 1 });
            moving.was_read = true;
        }
        self.copying = Some(moving);
    }

    fn finish(&mut self) {
        self.is_over = true;
        self.ops.push_back(Op::Barrier(self.barrier));
        if self.syncs {
            self.ops.push_back(Op::SyncAll);
        }
        self.ops.push_back(Op::Mark(Mark::End(0)));
    }
}

impl Process for Worker {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        loop {
            if let Some(op) = self.ops.pop_front() {
                return op;
            }
            if let Some(moving) = self.copying.take() {
                self.go_on(moving, &last);
            } else if let Some((index, step)) = self.steps.pop_front() {
                self.begin(index, step);
            } else if self.is_over {
                return Op::Done;
            } else {
                self.finish();
            }
        }
    }
}
