//! A job file as a workload: its plan and its values.

use std::collections::BTreeMap;
use std::sync::Arc;

use raidlab_core::{Nanos, Size};

use super::layout;
use super::options::{Engine, Job};
use super::task::{self, Task, files_of, tasks};
use super::value::Amount;
use super::worker::{RUN, Worker};
use crate::MOST_PROCESSES;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::{Better, Metric, mib_per_second, per_second};
use crate::op::FilePath;
use crate::plan::{Memory, Plan, Planned, Setting};
use crate::record::{IoRecord, RunRecord};

/// The most files of all processes together: each takes some hundred bytes before the run begins.
const MOST_FILES: u64 = 1 << 18;

const MEAN_LATENCY: Metric = Metric { name: "latency_mean_ms", unit: "ms", better: Better::Lower };
const TAIL_LATENCY: Metric = Metric { name: "latency_p99_ms", unit: "ms", better: Better::Lower };

/// A job file.
#[derive(Debug)]
pub(super) struct FioWorkload {
    pub(super) name: String,
    pub(super) jobs: Vec<Arc<Job>>,
    /// The options of the `[global]` sections, for the report.
    pub(super) global: Vec<(String, String)>,
}

impl FioWorkload {
    pub(super) fn new(name: String, jobs: Vec<Arc<Job>>, global: Vec<(String, String)>) -> Self {
        Self { name, jobs, global }
    }

    /// The job of each process of a record, by its index, and which wave it is in.
    pub(super) fn job_of(&self, process: usize) -> (usize, u32) {
        let clones: u32 = self.jobs.iter().map(|job| job.numjobs).sum();
        let mut rest = (process % (clones.max(1) as usize)) as u32;
        for (index, job) in self.jobs.iter().enumerate() {
            if rest < job.numjobs {
                return (index, rest);
            }
            rest -= job.numjobs;
        }
        (0, 0)
    }

    /// The time that was measured: of each wave, all copies together, from the first start to the last
    /// end; one wave after the other.
    fn measured(&self, record: &RunRecord) -> Nanos {
        let places = task::places(&self.jobs);
        let waves = places.last().map_or(0, |place| place.wave + 1);
        let mut all = Nanos::ZERO;
        for wave in 0..waves {
            let of_wave = |index: &usize| places[self.job_of(*index).0].wave == wave;
            let phases = (0..record.processes.len())
                .filter(of_wave)
                .filter_map(|index| record.processes[index].phases.get(usize::from(RUN)));
            let spans = phases.filter_map(|phase| phase.began.zip(phase.ended));
            let joined = spans.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
            all += joined.map_or(Nanos::ZERO, |(began, ended)| ended.since(began));
        }
        all
    }

    fn check(&self, setting: &Setting) -> Result<(), WorkloadError> {
        let clones: u64 = self.jobs.iter().map(|job| u64::from(job.numjobs)).sum();
        let processes = clones * u64::from(setting.copies);
        if !(1..=u64::from(MOST_PROCESSES)).contains(&processes) {
            let reason = format!("{processes} processes; from 1 to {MOST_PROCESSES} are possible");
            return Err(WorkloadError::new(WorkloadErrorKind::Processes, "numjobs", reason));
        }
        let files: u64 = self.jobs.iter().map(|job| u64::from(job.numjobs) * files_of(job)).sum();
        let files = files * u64::from(setting.copies);
        if files > MOST_FILES {
            let reason = format!("{files} files of all processes; up to {MOST_FILES} are possible");
            return Err(WorkloadError::new(WorkloadErrorKind::Parameter, "nrfiles", reason));
        }
        Ok(())
    }

    fn run(&self, tasks: Vec<Task>, copies: u32) -> (Vec<Planned>, Vec<u32>) {
        let waves = tasks.iter().map(|task| task.wave + 1).max().unwrap_or(1);
        let walls = waves - 1;
        let mut barriers = vec![0; (walls * copies) as usize];
        let mut run = Vec::new();
        for task in tasks {
            let first = task.copy * walls;
            let before = (task.wave > 0).then(|| first + task.wave - 1);
            let after = (task.wave < walls).then(|| first + task.wave);
            for barrier in [before, after].into_iter().flatten() {
                barriers[barrier as usize] += 1;
            }
            let walls = [before, after].map(|wall| wall.map(|wall| wall as u16));
            let copy = task.copy;
            run.push(Planned { copy, process: Box::new(Worker::new(Arc::new(task), walls)) });
        }
        (run, barriers)
    }

    fn needs_filesystem(&self) -> Option<&'static str> {
        self.jobs.iter().any(|job| job.unlink).then_some("unlink= removes files")
    }
}

impl Workload for FioWorkload {
    fn kind(&self) -> &'static str {
        "fio"
    }

    fn default_name(&self) -> String {
        self.name.clone()
    }

    fn description(&self) -> String {
        let jobs: Vec<String> = self.jobs.iter().map(|job| described(job)).collect();
        format!("a job file of fio: {}", jobs.join("; "))
    }

    /// `iops` first when any job goes to random places, else `mib_per_s`: reads and writes of all
    /// processes over the time that was measured, what ramps and pauses between walls take left out.
    fn metrics(&self) -> Vec<Metric> {
        let (iops, rate) = (Metric::OPERATIONS_PER_SECOND, Metric::MIB_PER_SECOND);
        let first =
            if self.jobs.iter().any(|job| job.random) { [iops, rate] } else { [rate, iops] };
        first.into_iter().chain([MEAN_LATENCY, TAIL_LATENCY]).collect()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let mut all = IoRecord::default();
        for phase in record.processes.iter().filter_map(|one| one.phases.get(usize::from(RUN))) {
            all.merge(&phase.reads);
            all.merge(&phase.writes);
        }
        let elapsed = self.measured(record);
        let millis = |latency: Option<Nanos>| latency.map(|latency| latency.as_secs() * 1000.0);
        let value = |metric: &Metric| match *metric {
            Metric::OPERATIONS_PER_SECOND => per_second(all.count as f64, elapsed),
            Metric::MIB_PER_SECOND => mib_per_second(all.bytes, elapsed),
            MEAN_LATENCY => millis(all.mean()),
            _ => millis(all.quantile(0.99)),
        };
        self.metrics().iter().map(value).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        self.check(setting)?;
        let mut tasks = tasks(&self.jobs, setting)?;
        let files = layout::files(&tasks);
        let by_path: BTreeMap<&FilePath, &layout::File> =
            files.iter().map(|file| (file.path(), file)).collect();
        for task in &mut tasks {
            let file = |path| by_path.get(path);
            let known = |path| file(path).is_some_and(|file| file.is_known());
            let verifies = task.job.verify.is_some() && task.job.do_verify;
            if verifies && !task.files.iter().all(|one| known(&one.path)) {
                let reason = format!(
                    "of job `{}` is not supported: what its file holds in the end depends on the \
                     time or on what is drawn by lot; write the whole file, without runtime",
                    task.job.name
                );
                return Err(WorkloadError::new(WorkloadErrorKind::NotSupported, "verify", reason));
            }
            let seed = |path| file(path).map_or(0, |file| file.written_seed(setting.seed));
            task.contents = task.files.iter().map(|one| seed(&one.path)).collect();
        }
        check_removal(&tasks)?;
        let verifies = self.jobs.iter().any(|job| job.verifies());
        let (run, barriers) = self.run(tasks, setting.copies);
        let is_raw = setting.space.is_some();
        let has_directories = layout::has_directories(&files);
        Ok(Plan {
            prepare: layout::prepare(&files, setting.seed, !is_raw && has_directories),
            run,
            phases: if verifies { vec!["run", "verify"] } else { vec!["run"] },
            barriers,
            memory: if self.jobs.iter().any(|job| job.invalidate) {
                Memory::Cold
            } else {
                Memory::AsIs
            },
            needs_filesystem: self.needs_filesystem(),
            asks_time: self.jobs.iter().any(|job| {
                [job.runtime, job.ramp, job.start_delay].iter().any(|time| *time > Nanos::ZERO)
            }),
            files: files.iter().map(layout::File::need).collect(),
            expected: files.iter().filter_map(|file| file.expected(setting.seed)).collect(),
            room: files.iter().map(layout::File::len).fold(0, u64::saturating_add),
            ..Plan::default()
        })
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let jobs = task::scaled(&self.jobs, bytes);
        Ok(Arc::new(Self::new(self.name.clone(), jobs, self.global.clone())))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["text", "json"]
    }

    fn format(&self, format: &str, record: &RunRecord, _host: &str) -> Option<String> {
        match format {
            "text" => Some(super::text::text(self, record)),
            "json" => Some(super::json::json(self, record)),
            _ => None,
        }
    }
}

/// Who removes its files uses them alone: nothing tells when the others are done.
fn check_removal(tasks: &[Task]) -> Result<(), WorkloadError> {
    let mut users = BTreeMap::new();
    for extent in tasks.iter().flat_map(|task| &task.files) {
        *users.entry(&extent.path).or_insert(0u32) += 1;
    }
    for task in tasks.iter().filter(|task| task.job.unlink) {
        let shared = task.files.iter().find(|extent| users.get(&extent.path) != Some(&1));
        if let Some(extent) = shared {
            let (name, path) = (&task.job.name, &extent.path);
            let reason = format!("of job `{name}`: `{path}` is used by other processes too");
            return Err(WorkloadError::new(WorkloadErrorKind::NotSupported, "unlink", reason));
        }
    }
    Ok(())
}

/// A job in words.
fn described(job: &Job) -> String {
    let blocks = match job.blocks {
        [read, write] if job.reads && job.writes && read != write => {
            format!("{} (reads) and {} (writes)", Size(read), Size(write))
        }
        [read, write] => Size(if job.reads { read } else { write }).to_string(),
    };
    let mut words = format!("`{}`: {} in blocks of {blocks}", job.name, job.pattern);
    if job.reads && job.writes {
        words += &format!(", {} % reads", job.read_percent);
    }
    match job.size {
        Some(Amount::Bytes(bytes)) => words += &format!(", {}", Size(bytes)),
        Some(Amount::Percent(percent)) => words += &format!(", {percent} % of the file"),
        None => {}
    }
    if job.engine == Engine::Queued {
        words += &format!(", {} at once", job.iodepth);
    } else if job.iodepth > 1 {
        words += &format!(
            ", one at a time (iodepth={} has no effect with ioengine={})",
            job.iodepth, job.engine_name
        );
    } else {
        words += ", one at a time";
    }
    if job.runtime > Nanos::ZERO {
        let at_most = if job.time_based { "for" } else { "at most" };
        words += &format!(", {at_most} {} s", job.runtime.as_secs());
    }
    if job.direct {
        words += ", past the page cache";
    }
    if job.numjobs > 1 {
        words += &format!(", {} processes", job.numjobs);
    }
    for word in where_and_how_much(job).into_iter().chain(flushes_and_pauses(job)) {
        words += ", ";
        words += &word;
    }
    words
}

/// What of a job says where it reads and writes, and how much; nothing where fio is left its own way.
fn where_and_how_much(job: &Job) -> Vec<String> {
    let amount = |amount| match amount {
        Amount::Bytes(bytes) => Size(bytes).to_string(),
        Amount::Percent(percent) => format!("{percent} %"),
    };
    let mut told = Vec::new();
    told.extend(job.nrfiles.filter(|files| *files > 1).map(|files| format!("over {files} files")));
    told.extend(
        job.offset.and_then(Amount::unless_none).map(|at| format!("from {} on", amount(at))),
    );
    if job.offset_increment > 0 {
        told.push(format!("each process {} behind the one before", Size(job.offset_increment)));
    }
    told.extend(job.io_size.map(|all| format!("{} in all", amount(all))));
    if job.number_ios > 0 {
        told.push(format!("{} reads and writes at most", job.number_ios));
    }
    if job.loops > 1 {
        told.push(format!("{} times over", job.loops));
    }
    told
}

/// What of a job keeps it from writing on, or from starting.
fn flushes_and_pauses(job: &Job) -> Vec<String> {
    let every = |count: u64, what: &str| match count {
        0 => None,
        1 => Some(format!("{what} after each write")),
        several => Some(format!("{what} after every {several} writes")),
    };
    let mut told = Vec::new();
    if job.writes {
        told.extend(job.sync.then(|| "each write with O_SYNC".to_owned()));
        told.extend(every(job.fsync, "a flush"));
        told.extend(every(job.fdatasync, "an fdatasync"));
        told.extend(job.end_fsync.then(|| "a flush at the end".to_owned()));
    }
    if job.thinktime > Nanos::ZERO {
        let after = match job.thinktime_blocks {
            0 | 1 => "each block".to_owned(),
            blocks => format!("every {blocks} blocks"),
        };
        told.push(format!("a pause of {} us after {after}", job.thinktime.0 / 1_000));
    }
    if job.start_delay > Nanos::ZERO {
        told.push(format!("begins after {} s", job.start_delay.as_secs()));
    }
    if job.ramp > Nanos::ZERO {
        told.push(format!("not counted for the first {} s", job.ramp.as_secs()));
    }
    told
}
