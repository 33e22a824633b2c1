//! What runs inside of a guest: a workload by system calls, on the array that a script has set up.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Level, MemberTotals, Nanos, SECTOR_BYTES};
use raidlab_engine::{Engine, EngineConfig, FileMember, FileOptions, Member};
use raidlab_random::{Random, mix};
use raidlab_targets::{DirectoryOptions, DirectoryTarget, RunStep, UncheckedTarget};
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{
    Content, Io, Op, OpResult, Plan, Planned, Process, RunRecord, Setting, Workload,
};
use rustix::time::{ClockId, clock_gettime};

use crate::job::{Job, Place, Report, Start};
use crate::resync::Watched;

/// Nothing stops a guest but its end.
static GO_ON: AtomicBool = AtomicBool::new(false);

/// For which purpose seeds are drawn.
const FOR_STARTS: u64 = 3;

/// Runs a job.
///
/// # Errors
/// In words: what keeps the workload from this place, or the call that failed.
pub fn run(job: &Job) -> Result<Report, String> {
    let Some(recipe) = &job.workload else { return rebuild_alone(job) };
    let workload = recipe.make().map_err(|error| error.to_string())?;
    match &job.place {
        Place::Directory(path) => in_directory(job, &*workload, path),
        Place::Device(path) => on_device(job, &*workload, path),
    }
}

fn setting(job: &Job, space: Option<u64>) -> Setting {
    let host_memory = Some(job.memory);
    Setting { host_memory, space, checked: false, ..Setting::new(job.copies, job.seed) }
}

/// Nanoseconds of the guest's own clock.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// What surrounds a run: the rebuild, and when it began and ended.
struct Around<'a> {
    job: &'a Job,
    began: u64,
    ended: u64,
    rebuild: Option<Watched>,
}

impl<'a> Around<'a> {
    fn new(job: &'a Job) -> Self {
        Self { job, began: 0, ended: 0, rebuild: None }
    }

    fn begin(&mut self) -> Result<(), String> {
        std::thread::sleep(std::time::Duration::from_nanos(self.job.start.wait));
        self.rebuild = self.job.rebuild.as_ref().map(Watched::begin).transpose()?;
        self.began = now();
        Ok(())
    }

    fn report(self, record: &RunRecord, space: Option<u64>) -> Result<Report, String> {
        let rebuild = self.rebuild.map(|rebuild| rebuild.up_to(self.ended)).transpose()?;
        let record = record.to_text().map_err(|error| error.to_string())?;
        Ok(Report { record: Some(record), rebuild, space, span: [self.began, self.ended] })
    }
}

fn in_directory(job: &Job, workload: &dyn Workload, path: &Path) -> Result<Report, String> {
    let plan = workload.plan(&setting(job, None)).map_err(|error| error.to_string())?;
    let plan = plain(starting(plan, job.start, job.seed));
    let options = DirectoryOptions { removes_files: false, ..DirectoryOptions::default() };
    let failed = |error: raidlab_engine::EngineError| error.to_string();
    let mut target = DirectoryTarget::new(path, options).map_err(failed)?;
    let around = RefCell::new((Around::new(job), Ok(())));
    let record = target.run_telling(plan, &GO_ON, &|| totals(&job.members), &|step| {
        let (around, begun) = &mut *around.borrow_mut();
        match step {
            RunStep::Run => *begun = around.begin(),
            RunStep::Verify => around.ended = now(),
            RunStep::Prepare | RunStep::Warm => {}
        }
    });
    let (around, begun) = around.into_inner();
    begun?;
    around.report(&record.map_err(failed)?, None)
}

/// A block device is a member of an array of one: what drives and times real arrays drives it.
fn on_device(job: &Job, workload: &dyn Workload, path: &Path) -> Result<Report, String> {
    let failed = |error: raidlab_engine::EngineError| error.to_string();
    let member = FileMember::open(path, FileOptions::default()).map_err(failed)?;
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let engine = Engine::new(&config, vec![Member::File(Box::new(member))]).map_err(failed)?;
    let space = engine.array().capacity().bytes();
    let mut target = UncheckedTarget::new(engine).map_err(failed)?;
    let plan = workload.plan(&setting(job, Some(space)));
    let plan = plan.map(|plan| starting(plan, job.start, job.seed));
    let plan =
        plan.and_then(|plan| RawPlan::new(plan, space)).map_err(|error| error.to_string())?;
    let mut around = Around::new(job);
    around.begin()?;
    let before = totals(&job.members);
    let record = target.run(plan, &GO_ON).map_err(failed)?;
    around.ended = now();
    let members = totals(&job.members).zip(before).map(|(after, before)| after.since(before));
    let memory = "no filesystem and no page cache; drives start cold".to_owned();
    around.report(&RunRecord { members, memory, ..record }, Some(space))
}

fn rebuild_alone(job: &Job) -> Result<Report, String> {
    let rebuild = job.rebuild.as_ref().ok_or("neither a workload nor a rebuild")?;
    std::thread::sleep(std::time::Duration::from_nanos(job.start.wait));
    let began = now();
    let rebuild = Watched::begin(rebuild)?.wait()?;
    Ok(Report { record: None, rebuild: Some(rebuild), space: None, span: [began, now()] })
}

/// What block devices did since the guest began.
fn totals(names: &[String]) -> Option<MemberTotals> {
    let mut totals = MemberTotals::default();
    for name in names {
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).ok()?;
        let fields: Option<Vec<u64>> =
            text.split_whitespace().map(|word| word.parse().ok()).collect();
        let [reads, _, sectors_read, _, writes, _, sectors_written, ..] = fields?[..] else {
            return None;
        };
        totals.reads += reads;
        totals.writes += writes;
        totals.bytes_read += sectors_read * SECTOR_BYTES;
        totals.bytes_written += sectors_written * SECTOR_BYTES;
    }
    Some(totals)
}

/// A process that sleeps before it begins.
#[derive(Debug)]
struct Later {
    time: Option<Nanos>,
    process: Box<dyn Process>,
}

impl Process for Later {
    fn next(&mut self, now: raidlab_core::Time, last: OpResult) -> Op {
        match self.time.take() {
            Some(time) => Op::Sleep(time),
            None => self.process.next(now, last),
        }
    }
}

/// A plan whose processes begin at different times.
pub(crate) fn starting(plan: Plan, start: Start, seed: u64) -> Plan {
    if start.spread == 0 {
        return plan;
    }
    let mut random = Random::new(mix(&[seed, FOR_STARTS]));
    let later = |planned: Planned| {
        let time = Some(Nanos(random.below(start.spread)));
        Planned { process: Box::new(Later { time, process: planned.process }), ..planned }
    };
    Plan { run: plan.run.into_iter().map(later).collect(), ..plan }
}

/// A process that writes nothing but zeroes.
#[derive(Debug)]
struct Zeroes(Box<dyn Process>);

impl Process for Zeroes {
    fn next(&mut self, now: raidlab_core::Time, last: OpResult) -> Op {
        let mut op = self.0.next(now, last);
        if let Op::Write { content, .. }
        | Op::At(Io::Write { content, .. })
        | Op::Start { io: Io::Write { content, .. }, .. } = &mut op
        {
            *content = Content::Zeroes;
        }
        op
    }
}

/// A plan of the same operations without contents: nobody looks at them here, drives of the lab keep zeroes without
/// memory, and to read everything once more would cost as much as the run.
fn plain(plan: Plan) -> Plan {
    let plan = plan.in_single_operations();
    let zeroes = |one: Planned| Planned { process: Box::new(Zeroes(one.process)), ..one };
    let all = |processes: Vec<Planned>| processes.into_iter().map(zeroes).collect();
    Plan {
        prepare: all(plan.prepare),
        warm: all(plan.warm),
        run: all(plan.run),
        expected: Vec::new(),
        ..plan
    }
}
