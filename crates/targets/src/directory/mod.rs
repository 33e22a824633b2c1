//! The directory target: carries a plan out by system calls on a mounted filesystem.
//!
//! **Where.** Every run has a directory of its own below the given one, a [`RunDirectory`]: it is removed
//! when the run ends, however it ends, and what a killed run left is removed by the next
//! [`DirectoryTarget::new`]. Material from elsewhere lies in a second one, below another directory.
//!
//! **How.** Each process of the plan is a thread here, where the original programs fork or use threads;
//! names are relative to the directory, as for programs that have gone there. Each operation is the
//! system call that its documentation names. The processes that prepare and warm go one after the
//! other, so that every file lies in one piece and at the same place each time; those of the run go all
//! at once. Buffers start on pages, for direct I/O.
//!
//! **The timed span** is the run alone: syncing, dropping what memory holds, warming before it and
//! verification after it are outside. CPU time of a process is its thread's; what the kernel does on its
//! own for it (write-back, workers of io_uring, RAID threads) is only in that of the whole system.
//!
//! **Faults.** The first operation that fails ends the run with an error that names it, the path and the
//! system's reason; all other threads stop at their next operation, or where they wait. So they do when
//! the cancel flag is set, also between the repetitions of an operation and while asleep. Tests:
//! `tests/directory.rs` and `tests/directory_faults.rs`; that the calls are those of the originals, the
//! command's own `tests/same_calls.rs`.

mod blocks;
mod cache;
mod files;
mod names;
mod queue;
mod system;
mod transfer;
mod verify;
mod worker;
mod worker_pool;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::{MemberTotals, Nanos};
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::{Cpu, Plan, Planned, ProcessRecord, RunRecord, Synchroniser};

use crate::raw::cpu::CpuTimes;
use crate::rundir::{Cleaned, RunDirectory, clean_leftovers};
use files::Roots;
use worker::{Left, Run, work};
use worker_pool::{Membership, Warnings, WorkerPool};

const RUN: &str = "run the workload";
const USE: &str = "use the directory";

/// Stack of a process's thread, in bytes: generators are small, and there may be thousands.
const STACK: usize = 512 << 10;

/// How a [`DirectoryTarget`] goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// Below which directory files from elsewhere are made; at first the system's temporary directory.
    /// It should not lie on the drives under test.
    pub source_directory: PathBuf,
    /// Whether the caches of the whole system are dropped where memory is to be cold and this process
    /// may do that; at first they are. Otherwise only what memory holds of the target's files.
    pub system_caches: bool,
    /// Whether operations that overlap go through io_uring where that is permitted; at first they do.
    /// Otherwise through threads.
    pub io_uring: bool,
    /// Whether the files are removed after a run that went well; at first they are. Where the filesystem itself is
    /// thrown away that is work for nothing.
    pub removes_files: bool,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        let source_directory = std::env::temp_dir();
        Self { source_directory, system_caches: true, io_uring: true, removes_files: true }
    }
}

/// What a run in a directory is at, for those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStep {
    /// Makes the files that the run finds.
    Prepare,
    /// Syncs, drops what memory holds, and reads what is to be found in memory.
    Warm,
    /// Is measured.
    Run,
    /// Compares what was written with what it should be.
    Verify,
}

/// A directory that workloads are run in; see the head of this module.
#[derive(Debug)]
pub struct DirectoryTarget {
    directory: PathBuf,
    options: DirectoryOptions,
    cleaned: Cleaned,
}

/// The room and the device of a directory.
#[derive(Clone, Copy, Debug)]
struct Place {
    room: u64,
    device: u64,
}

impl DirectoryTarget {
    /// Whether a directory can be written to; changes nothing. [`new`](Self::new) asks too.
    ///
    /// # Errors
    /// [`EngineErrorKind::Io`] with what would be right.
    pub fn check_directory(directory: &Path) -> Result<(), EngineError> {
        check(directory).map(|_| ())
    }

    /// For runs below `directory`; removes what killed runs left there and in the directory for files
    /// from elsewhere, see [`cleaned`](Self::cleaned).
    ///
    /// # Errors
    /// [`EngineErrorKind::Io`] when the directory is not there, is no directory, or cannot be written to;
    /// nothing has been changed then.
    pub fn new(directory: &Path, options: DirectoryOptions) -> Result<Self, EngineError> {
        check(directory)?;
        let mut cleaned = clean_leftovers(directory)?;
        if options.source_directory != directory
            && let Ok(more) = clean_leftovers(&options.source_directory)
        {
            cleaned.removed.extend(more.removed);
        }
        Ok(Self { directory: directory.to_path_buf(), options, cleaned })
    }

    /// What was found of earlier runs at the start: what was removed in both directories, and what was
    /// left in the directory under test.
    pub fn cleaned(&self) -> &Cleaned {
        &self.cleaned
    }

    /// Runs a plan, all its stages, and verifies what it expects in the end.
    ///
    /// # Errors
    /// [`EngineErrorKind::NoRoom`] before anything is changed, with how much is missing, or when a write
    /// finds none; [`EngineErrorKind::Io`] when an operation failed; [`EngineErrorKind::InvalidRequest`]
    /// or [`EngineErrorKind::Internal`] when the workload asks for what cannot be;
    /// [`EngineErrorKind::Mismatch`] when a file does not hold what it should;
    /// [`EngineErrorKind::Cancelled`] when `cancel` was set. The files are removed in any case.
    pub fn run(&mut self, plan: Plan, cancel: &AtomicBool) -> Result<RunRecord, EngineError> {
        self.run_counting(plan, cancel, &|| None)
    }

    /// The same with what the members below the filesystem did while the run was measured: `members`
    /// tells it up to now. What the filesystem writes back after the run is not in it.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_counting(
        &mut self,
        plan: Plan,
        cancel: &AtomicBool,
        members: &dyn Fn() -> Option<MemberTotals>,
    ) -> Result<RunRecord, EngineError> {
        self.run_telling(plan, cancel, members, &|_| ())
    }

    /// The same, telling each step as it begins.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_telling(
        &mut self,
        plan: Plan,
        cancel: &AtomicBool,
        members: &dyn Fn() -> Option<MemberTotals>,
        tell: &dyn Fn(RunStep),
    ) -> Result<RunRecord, EngineError> {
        self.check_room(&plan)?;
        let plan = plan.in_single_operations();
        let target = RunDirectory::create_tree(&self.directory)?;
        let source = match plan.sources.is_empty() {
            true => None,
            false => Some(RunDirectory::create_tree(&self.options.source_directory)?),
        };
        let source_path = source.as_ref().and_then(RunDirectory::tree_path);
        let target_path = target.tree_path().unwrap_or_else(|| target.path().to_path_buf());
        tell(RunStep::Prepare);
        if let Some(path) = &source_path {
            verify::make_sources(path, &plan.sources, cancel)?;
        }
        let roots = Roots::open(&target_path, source_path.as_deref())?;
        let warnings = Warnings::default();
        for (path, reason) in &self.cleaned.kept {
            warnings.add(format!("{} was left as it is: {reason}", path.display()));
        }
        let stage = Stage {
            roots: &roots,
            phases: plan.phases.len(),
            io_uring: self.options.io_uring,
            cancel,
            warnings: &warnings,
        };
        stage.one_after_another(plan.prepare)?;
        tell(RunStep::Warm);
        let memory = cache::settle(plan.memory, &roots, self.options.system_caches, &warnings)?;
        stage.one_after_another(plan.warm)?;
        tell(RunStep::Run);
        let before = members();
        let measured =
            stage.all_at_once(plan.run, Synchroniser::new(&plan.barriers, plan.queues))?;
        let members = members().zip(before).map(|(after, before)| after.since(before));
        tell(RunStep::Verify);
        verify::verify(&roots, &plan.expected, cancel)?;
        if !self.options.removes_files {
            std::mem::forget(target);
        }
        Ok(RunRecord {
            phases: plan.phases,
            processes: measured.processes,
            process_cpu: measured.process_cpu,
            system_cpu: measured.system_cpu,
            members,
            memory,
            warnings: warnings.into_list(),
            ..RunRecord::default()
        })
    }

    /// Whether there is room for all that the plan makes.
    fn check_room(&self, plan: &Plan) -> Result<(), EngineError> {
        let sources = plan.sources.iter().map(|source| source.bytes.len());
        let sources = sources.fold(0u64, u64::saturating_add);
        let target = check(&self.directory)?;
        if sources == 0 {
            return enough(&self.directory, plan.room, target.room);
        }
        let elsewhere = check(&self.options.source_directory)?;
        if elsewhere.device == target.device {
            return enough(&self.directory, plan.room.saturating_add(sources), target.room);
        }
        enough(&self.directory, plan.room, target.room)?;
        enough(&self.options.source_directory, sources, elsewhere.room)
    }
}

/// Whether a directory can be used; changes nothing.
fn check(path: &Path) -> Result<Place, EngineError> {
    let wrong =
        |reason: &str| EngineError::new(EngineErrorKind::Io, USE, reason.to_string()).at_path(path);
    let named = |error: std::io::Error| match error.raw_os_error() {
        Some(libc::ENOENT) => wrong("it is not there; make it first, or name one that is"),
        Some(libc::EROFS) => {
            wrong("its filesystem is mounted read-only; name one that can be written to")
        }
        Some(libc::EACCES | libc::EPERM) => {
            wrong("this user may not write there; change its rights, or name another directory")
        }
        _ => EngineError::io(USE, path, error),
    };
    let directory = File::open(path).map_err(named)?;
    let metadata = directory.metadata().map_err(named)?;
    if !metadata.is_dir() {
        return Err(wrong("it is no directory; name one"));
    }
    system::may_write(directory.as_fd()).map_err(named)?;
    let room = crate::rundir::system::room(&directory).map_err(named)?;
    Ok(Place { room, device: metadata.dev() })
}

fn enough(directory: &Path, needed: u64, there: u64) -> Result<(), EngineError> {
    if needed <= there {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let reason = format!(
        "the workload needs {} MiB, {} MiB are free: {} MiB are missing; make room, or use a smaller size",
        mib(needed),
        there >> 20,
        mib(needed - there)
    );
    Err(EngineError::new(EngineErrorKind::NoRoom, USE, reason).at_path(directory))
}

/// What all stages have in common.
#[derive(Clone, Copy)]
struct Stage<'a> {
    roots: &'a Roots,
    phases: usize,
    io_uring: bool,
    cancel: &'a AtomicBool,
    warnings: &'a Warnings,
}

/// What a stage measured.
struct Measured {
    processes: Vec<ProcessRecord>,
    process_cpu: Option<Cpu>,
    system_cpu: Option<Nanos>,
}

impl Stage<'_> {
    fn one_after_another(&self, planned: Vec<Planned>) -> Result<(), EngineError> {
        for one in planned {
            self.all_at_once(vec![one], Synchroniser::new(&[], 0))?;
        }
        Ok(())
    }

    fn all_at_once(
        &self,
        planned: Vec<Planned>,
        synchroniser: Synchroniser,
    ) -> Result<Measured, EngineError> {
        let count = planned.len();
        let pool = WorkerPool::new(count, synchroniser, self.cancel, self.warnings);
        let run =
            Run { pool: &pool, roots: self.roots, phases: self.phases, io_uring: self.io_uring };
        let (left, system_cpu) = std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(count);
            for (index, one) in planned.into_iter().enumerate() {
                let made = std::thread::Builder::new()
                    .name(format!("process {index}"))
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || on_workers(index, one, run));
                match made {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        let reason =
                            format!("thread {index} of {count} could not be made: {error}");
                        pool.fail(EngineError::new(EngineErrorKind::NoMemory, RUN, reason));
                        pool.leave_out(count - index);
                        break;
                    }
                }
            }
            let before = CpuTimes::now();
            pool.begin();
            pool.wait_for_all();
            let system_cpu = CpuTimes::now().system_since(&before);
            let left: Vec<_> =
                threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
            (left, system_cpu)
        });
        pool.into_result()?;
        Ok(Measured { process_cpu: sum(&left), processes: records(left), system_cpu })
    }
}

/// Carries a process out as a member of the pool; `None` when it was not done.
fn on_workers(index: usize, planned: Planned, run: Run<'_>) -> Option<Left> {
    let _member = Membership(run.pool);
    match work(index, planned, run) {
        Ok(left) => Some(left),
        Err(worker_pool::Halt::Stopped) => None,
        Err(worker_pool::Halt::Failed(error)) => {
            run.pool.fail(error);
            None
        }
    }
}

fn sum(left: &[Left]) -> Option<Cpu> {
    left.iter().try_fold(Cpu::default(), |sum, one| {
        let cpu = one.cpu?;
        Some(Cpu { user: sum.user + cpu.user, system: sum.system + cpu.system })
    })
}

fn records(left: Vec<Left>) -> Vec<ProcessRecord> {
    left.into_iter().map(|one| one.record).collect()
}
