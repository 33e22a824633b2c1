//! Running a shard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raidlab_core::Sectors;
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_store::shards::{Manifest, ShardWriter, Shards};
use raidlab_study::{
    CellKey, PointStudy, Runner, Sample, Study, StudyError, StudyErrorKind, cell_figures,
    cell_seed, cells, run_warnings,
};
use rustix::time::{ClockId, clock_gettime};

use crate::error::SweepError;
use crate::job::Job;
use crate::row::Row;

/// A cell during which so many processes ended is not run again.
const MOST_CRASHES: u32 = 2;

/// What running a shard came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// How many rows were added.
    pub rows: u64,
    /// How many of them tell of an error.
    pub errors: u64,
    /// CPU time within cells, of this thread.
    pub cells_cpu: Duration,
}

/// How a shard ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was finished before.
    Before(Manifest),
    /// All rows are there.
    Finished(Manifest),
    /// It was stopped; whoever takes it next goes on.
    Stopped,
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The CPU time of this thread.
pub(crate) fn thread_cpu() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

/// The CPU time of this process so far.
pub fn process_cpu() -> Duration {
    time_of(ClockId::ProcessCPUTime)
}

/// A point, ready to be run, or why it cannot be.
struct Ready {
    point: raidlab_study::Point,
    one: Result<PointStudy, String>,
    cells: Vec<CellKey>,
}

impl Ready {
    fn of(job: &Job, item: u64) -> Self {
        let point = job.sweep().point(item);
        let one = job.sweep().study(&point).map(|mut one| {
            one.study.modelled = true;
            one
        });
        let cells = one.as_ref().map_or_else(|_| Vec::new(), |one| cells(&one.study));
        let one = one.map_err(|error| error.to_string());
        let one = match cells.is_empty() {
            true => one.and_then(|_| Err("the study has no cells".to_owned())),
            false => one,
        };
        Self { point, one, cells }
    }
}

/// Runs what is missing of a shard, on the thread that calls; `told` is told how many rows there are
/// after each. A shard that another process has is waited for with `wait`. Once `stop` is set the cell
/// under way is left, and nothing is lost but that.
///
/// # Errors
/// When the shard is another process's, or its directory cannot be read or written.
pub fn run_shard(
    job: &Job,
    shards: &Shards,
    shard: u64,
    stop: &'static AtomicBool,
    wait: bool,
    told: &mut dyn FnMut(u64),
) -> Result<Ran, SweepError> {
    let mut ran = Ran { ended: Ended::Stopped, rows: 0, errors: 0, cells_cpu: Duration::ZERO };
    let Some(mut writer) = shards.take(shard, wait)? else {
        let manifest = shards.manifest(shard)?;
        let lost =
            || SweepError::Other(format!("shard {shard} was removed while it was looked at"));
        ran.ended = Ended::Before(manifest.ok_or_else(lost)?);
        return Ok(ran);
    };
    while let Some((item, _)) = writer.next() {
        let ready = Ready::of(job, item);
        match &ready.one {
            Err(why) => {
                let row = Row::failed(item, (0, 1), &ready.point.keys, why.clone());
                push(&mut writer, &row, &mut ran, told)?;
            }
            Ok(one) => run_point(&ready, one, job, &mut writer, stop, &mut ran, told)?,
        }
        if stop.load(Ordering::Relaxed) && writer.next().is_some() {
            return Ok(ran);
        }
    }
    ran.ended = Ended::Finished(writer.finish()?);
    Ok(ran)
}

fn push(
    writer: &mut ShardWriter,
    row: &Row<'_>,
    ran: &mut Ran,
    told: &mut dyn FnMut(u64),
) -> Result<(), SweepError> {
    writer.push(&row.line()?)?;
    ran.rows += 1;
    ran.errors += u64::from(row.error.is_some());
    told(writer.rows());
    Ok(())
}

/// Runs the cells of a point that are missing.
fn run_point(
    ready: &Ready,
    one: &PointStudy,
    job: &Job,
    writer: &mut ShardWriter,
    stop: &'static AtomicBool,
    ran: &mut Ran,
    told: &mut dyn FnMut(u64),
) -> Result<(), SweepError> {
    let (item, keys, parts) = (ready.point.number, &ready.point.keys, ready.cells.len() as u32);
    let modelled = match Modelled::new(&one.study, HostCosts::default()) {
        Ok(modelled) => modelled.stopping_on(stop),
        Err(error) => {
            // Of the point as a whole: a model that cannot be made has no cells.
            let row = Row::failed(item, (0, 1), keys, error.to_string());
            return push(writer, &row, ran, told);
        }
    };
    let capacities = modelled.capacities();
    while let Some((_, part)) = writer.next().filter(|(next, _)| *next == item) {
        let Some(key) = ready.cells.get(part as usize) else {
            return Err(SweepError::Other(format!(
                "point {item} has {parts} cells, and rows of more"
            )));
        };
        let mut row = head_of(job, one, keys, (item, part, parts), key);
        if writer.crashes() >= MOST_CRASHES {
            let why = format!("the process ended {MOST_CRASHES} times while this cell ran");
            row.error = Some(why);
        } else {
            writer.begin()?;
            let before = thread_cpu();
            let samples = run_cell(&one.study, &modelled, key);
            ran.cells_cpu += thread_cpu().saturating_sub(before);
            match samples {
                Err(None) => return Ok(writer.leave()?),
                Err(Some(why)) => row.error = Some(why),
                Ok(samples) => {
                    let capacity: Option<Sectors> = capacities.get(key.layout).copied();
                    row.measured(cell_figures(&one.study, key, &samples), capacity);
                    row.note = note(row.note, run_warnings(&samples));
                }
            }
        }
        push(writer, &row, ran, told)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    Ok(())
}

/// What a reader must know: what the cell says of itself, and what its runs warned of.
fn note(own: Option<String>, warnings: Vec<String>) -> Option<String> {
    let all: Vec<String> = own.into_iter().chain(warnings).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What a row says of its cell before that is run.
fn head_of<'a>(
    job: &Job,
    one: &'a PointStudy,
    keys: &'a [(String, raidlab_study::Value)],
    (item, part, parts): (u64, u32, u32),
    key: &CellKey,
) -> Row<'a> {
    let study = &one.study;
    let layout = &study.layouts[key.layout];
    let spec = key.workload(study);
    let workload = spec.map_or(raidlab_study::IDLE_REBUILD, |spec| &spec.name);
    let settings = spec.map(|spec| &spec.settings).filter(|settings| !settings.is_empty());
    let (processes, state) = (key.processes.to_string(), key.state.name());
    // The same study with other draws is another one.
    let seed = study.seed.to_string();
    let mut cell = vec![layout.name.as_str(), workload, &processes, state, &seed];
    // Workloads of one name differ in settings; those without keep the addresses of before.
    let of_workload = settings.into_iter().flatten();
    cell.extend(of_workload.flat_map(|(key, value)| [key.as_str(), value.as_str()]));
    let of_others = keys.iter().map(|(text, _)| text.as_str());
    let of_others = of_others.filter(|text| one.is_of_others(text, key)).collect();
    Row {
        cell: job.address(study, &one.canonical, &cell),
        of_others,
        layout: Some(&layout.name),
        workload: Some(workload),
        processes: Some(key.processes),
        state: Some(state),
        settings,
        seed: Some(study.seed),
        rounds: Some(study.rounds),
        survives: Some(layout.layout.survives()),
        error: None,
        ..Row::failed(item, (part, parts), keys, String::new())
    }
}

/// Runs all rounds of a cell; `Err(None)` when it was stopped.
pub(crate) fn run_cell(
    study: &Study,
    modelled: &Modelled<'_>,
    key: &CellKey,
) -> Result<Vec<Sample>, Option<String>> {
    let rounds = || -> Result<Vec<Sample>, StudyError> {
        let mut runner = modelled.clone();
        let run = |round| runner.run(key, round, cell_seed(study, key, round));
        (0..study.rounds).map(run).collect()
    };
    match catch_unwind(AssertUnwindSafe(rounds)) {
        Ok(Ok(samples)) => match too_short(study, key, &samples) {
            // A further figure would stand in its place, and a slower layout be the best.
            Some(why) => Err(Some(why)),
            None => Ok(samples),
        },
        Ok(Err(error)) if error.kind == StudyErrorKind::Stopped => Err(None),
        Ok(Err(error)) => Err(Some(error.to_string())),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Some(format!(
                "a defect of raidlab: {}",
                text.unwrap_or_else(|| "a panic".to_owned())
            )))
        }
    }
}

/// Why the samples of a cell do not tell the first figure that the study shows of it, if they do not.
fn too_short(study: &Study, key: &CellKey, samples: &[Sample]) -> Option<String> {
    let short = samples.iter().filter(|sample| sample.headline(study, key).is_none()).count();
    let rounds = samples.len();
    (short > 0).then(|| {
        format!(
            "{short} of {rounds} rounds were too short to tell the first figure: use a larger size"
        )
    })
}

#[cfg(test)]
mod tests {
    use raidlab_core::Nanos;
    use raidlab_study::Rebuild;

    use super::*;

    /// One round that does not tell the first figure is enough, whatever else it tells.
    #[test]
    fn one_round_that_was_too_short_is_told() {
        let text = "title = \"t\"\ndrives = [{ name = \"d\", model = \"nas-8tb-7200\", count = 1 }]\n\
                    layouts = [{ level = \"single\" }]\n\
                    workloads = [{ kind = \"dd-read\", size = \"1MiB\" }]\n";
        let study = raidlab_study::parse(text, "t.toml").expect("a study");
        let key = cells(&study)[0];
        let sample = |first: Option<f64>| {
            let rebuild = Rebuild { elapsed: Nanos(1), done: 1.0 };
            Sample { values: vec![first, Some(2.0)], ..Sample::of_rebuild(1.0, rebuild) }
        };
        let told = |values: &[Option<f64>]| {
            let samples: Vec<Sample> = values.iter().map(|one| sample(*one)).collect();
            too_short(&study, &key, &samples)
        };
        assert_eq!(told(&[Some(1.0), Some(1.0), Some(1.0)]), None);
        for (short, values) in
            [(1, [Some(1.0), None, Some(1.0)]), (2, [None, None, Some(1.0)]), (3, [None; 3])]
        {
            let told = told(&values).expect("too short");
            assert!(told.starts_with(&format!("{short} of 3 rounds were too short")), "{told}");
        }
    }
}
