//! Runs candidates on modelled drives: a run is each part of the work in each state of the array.

use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, Nanos, SECTOR_BYTES, Sectors};
use raidlab_models::host::HostSpec;
use raidlab_predict::Modelled;
use raidlab_results::find::{LEAST_REBUILT_PERCENT, LEAST_REBUILT_SECONDS};
use raidlab_sim::{HostCosts, World};
use raidlab_study::{
    CellKey, DriveSource, Drives, NamedLayout, Only, Origin, Rebuild, Sample, State, Study,
    StudyError, StudyErrorKind,
};

use crate::candidate::{Candidate, Mode};
use crate::profile::{Counted, Part};
use crate::wanted::{Wanted, idle_rebuild, rebuild_hours};

/// What is simulated of a candidate: spares make no difference while they stand by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The layout.
    pub layout: Layout,
    /// What keeps it consistent.
    pub mode: Mode,
}

impl From<&Candidate> for Plan {
    fn from(candidate: &Candidate) -> Self {
        Self { layout: candidate.layout.clone(), mode: candidate.mode }
    }
}

/// What a run of a plan gave.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Part of the work, state of the array, what was measured.
    pub samples: Vec<(usize, State, Sample)>,
}

/// Large requests are this many times as much work as small ones: so much fewer of them are run, but never fewer than
/// [`FEWEST_LARGE`]: streams that end within a row of large chunks say nothing of them.
const LARGE: u64 = 2;
const FEWEST_LARGE: u64 = 100;
/// The same of requests to files: what comes once, such as the flush at the end, weighs as it does in long runs then.
const FEWEST_ON_FILES: u64 = 200;

/// A study of some plans: what all runs of a length have in common.
///
/// # Errors
/// In words, when the work cannot be made.
pub fn study(wanted: &Wanted, plans: &[Plan], requests: u64) -> Result<Study, String> {
    longer(wanted, plans, requests, 1)
}

/// The studies of some plans that runs of a length are of.
#[derive(Debug)]
pub(crate) struct Studies {
    /// The work as long as it is asked for; where a rebuild beside files is seen for longer only so, after it twice as
    /// long, three times, and so on: each run begins with a filesystem that nobody has used, so that none goes on with
    /// another.
    longer: Vec<Study>,
    /// The same without the filesystem, for parts that go to the array itself beside others on files.
    bare: Option<Study>,
    /// Which parts do.
    is_bare: Vec<bool>,
}

/// All studies of some plans.
///
/// # Errors
/// In words, when the work cannot be made.
pub(crate) fn studies(wanted: &Wanted, plans: &[Plan], requests: u64) -> Result<Studies, String> {
    let profile = &wanted.profile;
    let is_on_files = profile.is_on_files();
    let most = match is_on_files {
        // What is no longer than it is, or what longer runs did not tell either (filebench's fileserver).
        false => 1,
        // The last runs.
        true if requests >= wanted.requests => MOST_BESIDE_FILES,
        true => 1 + u64::from(MOST_AGAIN),
    };
    let longer: Vec<Study> =
        (1..=most).map(|times| longer(wanted, plans, requests, times)).collect::<Result<_, _>>()?;
    let is_bare: Vec<bool> =
        profile.parts.iter().map(|part| is_on_files && part.is_on_the_array()).collect();
    let bare = longer.first().filter(|_| is_bare.contains(&true));
    let bare = bare.map(|study| Study { filesystem: None, ..study.clone() });
    Ok(Studies { longer, bare, is_bare })
}

/// A study of work that is so many times as long.
fn longer(wanted: &Wanted, plans: &[Plan], requests: u64, times: u64) -> Result<Study, String> {
    let candidate =
        |plan: &Plan| Candidate { layout: plan.layout.clone(), spares: 0, mode: plan.mode };
    let space = plans.iter().filter_map(|plan| candidate(plan).usable(wanted.member())).min();
    let workload = |part: &Part| {
        let requests = match part.counted {
            Counted::Megabytes | Counted::Read if part.is_on_files() => {
                (requests / LARGE).max(FEWEST_ON_FILES)
            }
            Counted::Megabytes | Counted::Read => (requests / LARGE).max(FEWEST_LARGE),
            Counted::Operations | Counted::Metric(..) => requests,
        };
        part.workload(wanted.streams, requests * times, space.unwrap_or(0))
    };
    let workloads = wanted.profile.parts.iter().map(workload).collect::<Result<_, _>>()?;
    let layout = |plan: &Plan| {
        let candidate = candidate(plan);
        let plain = NamedLayout::plain(plan.layout.clone());
        NamedLayout { name: candidate.to_string(), settings: candidate.settings(), ..plain }
    };
    let most = plans.iter().map(|plan| plan.layout.drives()).max().unwrap_or(1);
    Ok(Study {
        title: format!("Advice for {}", wanted.profile.name),
        seed: wanted.seed,
        rounds: 1,
        max_rounds: 1,
        precision_percent: 2.0,
        baseline: Vec::new(),
        processes: vec![1],
        states: State::ALL.to_vec(),
        member_size: (!wanted.sizes.is_empty()).then(|| wanted.member()),
        filesystem: wanted.profile.filesystem.clone(),
        drives: vec![Drives {
            name: wanted.drive.name.clone(),
            source: DriveSource::Model(wanted.drive.name.clone()),
            count: most,
            scheduler: None,
        }],
        layouts: plans.iter().map(layout).collect(),
        workloads,
        host: wanted.profile.host.clone(),
        paths: Vec::new(),
        parameters: Vec::new(),
        calibration: None,
        given: Vec::new(),
        measured: false,
        modelled: false,
        only: Only::default(),
        origin: Origin::default(),
    })
}

/// Checks that a study's work runs on each candidate; other work is made to fit.
///
/// # Errors
/// In words, with the workload and the candidate.
pub(crate) fn check(wanted: &Wanted, candidates: &[Candidate]) -> Result<(), String> {
    let profile = &wanted.profile;
    if !profile.is_own() {
        return Ok(());
    }
    let plans: Vec<Plan> = candidates.iter().map(Plan::from).collect();
    let study = study(wanted, &plans, wanted.requests)?;
    let capacity =
        |one: &Candidate| Sectors(one.usable(wanted.member()).unwrap_or(0) / SECTOR_BYTES);
    let capacities: Vec<Sectors> = candidates.iter().map(capacity).collect();
    let memory = profile.host.as_ref().map_or_else(HostSpec::default, |host| host.spec).memory;
    let checked = study.check_capacity(&capacities, &vec![1; plans.len()], |_| Some(memory));
    checked.map_err(|error| {
        let hint = "leave such layouts out by --among or --capacity, or let the study need less";
        match error.kind {
            StudyErrorKind::DoesNotFit => format!("{}: {}; {hint}", profile.name, error.reason),
            _ => format!("{}: {}", profile.name, error.reason),
        }
    })
}

/// Studies on the wanted drives.
pub(crate) struct Bench<'a> {
    longer: Vec<Modelled<'a>>,
    bare: Option<Modelled<'a>>,
    is_bare: &'a [bool],
}

impl Bench<'_> {
    /// The studies of a part of the work, the shortest first.
    fn of(&self, part: usize) -> &[Modelled<'_>] {
        match &self.bare {
            Some(bare) if self.is_bare[part] => std::slice::from_ref(bare),
            _ => &self.longer,
        }
    }
}

/// Puts studies on the wanted drives.
///
/// # Errors
/// In words, when a drive cannot be loaded.
pub(crate) fn bench<'a>(
    wanted: &Wanted,
    studies: &'a Studies,
    stop: Option<&'static AtomicBool>,
) -> Result<Bench<'a>, String> {
    let of_study = |study: &'a Study| {
        let modelled = Modelled::unchecked(study, HostCosts::default());
        let modelled = modelled.map_err(|error| error.to_string())?;
        let modelled = modelled.with(|_| wanted.drive.clone(), |costs| costs);
        Ok::<_, String>(match stop {
            Some(stop) => modelled.stopping_on(stop),
            None => modelled,
        })
    };
    Ok(Bench {
        longer: studies.longer.iter().map(of_study).collect::<Result<_, _>>()?,
        bare: studies.bare.as_ref().map(of_study).transpose()?,
        is_bare: &studies.is_bare,
    })
}

/// Runs a plan with a seed that is the same for all plans.
///
/// # Errors
/// In words, when a run fails.
pub(crate) fn run(bench: &Bench<'_>, plan: usize, seed: u64) -> Result<Measured, String> {
    let mut samples = Vec::new();
    for part in 0..bench.is_bare.len() {
        let studies = bench.of(part);
        let Some(modelled) = studies.first() else { continue };
        let study = modelled.study();
        for state in State::ALL {
            if !study.layouts[plan].can_be(state) {
                continue;
            }
            let processes = study.processes_of(&study.workloads[part]).first().copied();
            let key = CellKey {
                layout: plan,
                workload: part,
                processes: processes.unwrap_or(1),
                state,
                again: false,
            };
            let seed = raidlab_random::mix(&[seed, part as u64, state as u64]);
            let world = modelled.world_in(plan, state, seed);
            let sample = world.and_then(|mut world| {
                let sample = modelled.run_on(&mut world, &key, seed)?;
                match study.filesystem {
                    Some(_) => seen_beside_longer(studies, &key, seed, sample),
                    None => seen_longer(modelled, &mut world, &key, seed, sample),
                }
            });
            let sample = sample
                .map_err(|error| format!("{}: {}", study.layouts[plan].name, error.reason))?;
            samples.push((part, state, sample));
        }
    }
    Ok(Measured { samples })
}

/// How often more of the work is run beside a rebuild of which too little was seen. Short looks are not worth it.
const MOST_AGAIN: u32 = 8;
/// Of work on files, which ends sooner, the last runs are as many times as long at most.
const MOST_BESIDE_FILES: u64 = 16;

/// A sample whose rebuild goes on beside more of the same work, where too little of it was seen to tell and that helps.
/// All else stays what the first run gave.
fn seen_longer(
    modelled: &Modelled<'_>,
    world: &mut World,
    key: &CellKey,
    seed: u64,
    mut sample: Sample,
) -> Result<Sample, StudyError> {
    for again in 1..=MOST_AGAIN {
        let seen = sample.rebuild.map_or(1.0, |one| seen(&one));
        // What so many runs cannot tell, all as long as each other, is not begun.
        if seen >= 1.0 || seen * f64::from(MOST_AGAIN + 1) < f64::from(again) {
            break;
        }
        let seed = raidlab_random::mix(&[seed, u64::from(again)]);
        sample.rebuild = modelled.run_on(world, key, seed)?.rebuild;
    }
    Ok(sample)
}

/// The same of work on files: the rebuild goes on beside work that is as many times as long as that takes, from the
/// beginning of both. What no study is long enough for is not begun.
fn seen_beside_longer(
    studies: &[Modelled<'_>],
    key: &CellKey,
    seed: u64,
    mut sample: Sample,
) -> Result<Sample, StudyError> {
    let mut times = 1;
    while let Some(seen) = sample.rebuild.map(|one| seen(&one)).filter(|seen| *seen < 1.0) {
        // A little more: no run is as long as another to the second.
        let needed = 1.05 * f64::from(times) / seen;
        times = needed as u32 + 1;
        let Some(longer) = studies.get(needed as usize) else { break };
        let mut world = longer.world_in(key.layout, key.state, seed)?;
        sample.rebuild = longer.run_on(&mut world, key, seed)?.rebuild;
    }
    Ok(sample)
}

/// How much was seen of what has to be seen of a rebuild beside work to say how long it takes: enough from 1 on, as
/// [`is_too_little`](raidlab_results::find::is_too_little) has it.
pub fn seen(rebuild: &Rebuild) -> f64 {
    let of_time = rebuild.elapsed.as_secs() / LEAST_REBUILT_SECONDS;
    of_time.max(rebuild.done * 100.0 / LEAST_REBUILT_PERCENT)
}

impl Measured {
    fn of(&self, state: State) -> impl Iterator<Item = &(usize, State, Sample)> {
        self.samples.iter().filter(move |(_, of, _)| *of == state)
    }

    /// Requests that were simulated.
    pub fn requests(&self) -> u64 {
        self.samples.iter().map(|(_, _, sample)| sample.ops).sum()
    }

    /// What a part did in a second, as people count it: bytes, reads and writes, or what it measures first (of what is
    /// better when it is lower, one over it); `None` without such a state.
    pub fn rate(&self, wanted: &Wanted, part: usize, state: State) -> Option<f64> {
        let (_, _, sample) = self.of(state).find(|(of, _, _)| *of == part)?;
        let seconds = sample.last_done.as_secs().max(1e-9);
        let counted = wanted.profile.parts[part].counted;
        match counted {
            Counted::Megabytes => Some(sample.bytes as f64 / seconds),
            Counted::Read => Some((sample.bytes - sample.bytes_written) as f64 / seconds),
            Counted::Operations => Some(sample.ops as f64 / seconds),
            // The other way round it is the same.
            Counted::Metric(..) => {
                let value = sample.values.first().copied().flatten()?;
                (value > 0.0).then(|| counted.shown(value))
            }
        }
    }

    /// The geometric mean of the rates of all parts.
    pub fn speed(&self, wanted: &Wanted, state: State) -> Option<f64> {
        let parts = wanted.profile.parts.len();
        let rates = (0..parts).map(|part| self.rate(wanted, part, state));
        let logs: f64 = rates.map(|rate| rate.map(libm::log)).sum::<Option<f64>>()?;
        Some(libm::exp(logs / parts as f64))
    }

    /// What the slowest part that is counted in a unit did, all drives working; `None` where no part is.
    pub fn slowest(&self, wanted: &Wanted, unit: &str) -> Option<f64> {
        let parts = wanted.profile.parts.iter().enumerate();
        let parts = parts.filter(|(_, part)| part.counted.unit() == unit);
        let rate = |(at, part): (usize, &Part)| {
            let rate = self.rate(wanted, at, State::Healthy)?;
            // A workload's own figure is in megabytes, what is counted here in bytes.
            let is_own = matches!(part.counted, Counted::Metric(..)) && unit == "MB/s";
            Some(if is_own { rate * 1e6 } else { rate })
        };
        parts.filter_map(rate).reduce(f64::min)
    }

    /// Seconds that 99 of 100 requests of the slowest part took at most; a write that is flushed at once with the
    /// flush.
    pub fn tail(&self, wanted: &Wanted, state: State) -> Option<f64> {
        let tail = |(part, _, sample): &(usize, State, Sample)| {
            let part = &wanted.profile.parts[*part];
            let own = match part.counted {
                Counted::Metric(_, Some(at)) => sample.values.get(at).copied().flatten(),
                _ => None,
            };
            let flushed = sample.detail.flushed_p99.filter(|_| part.flushes());
            let flushed = flushed.map(|p99| Nanos(p99).as_secs());
            let reads_and_writes = || flushed.or(Some(sample.latency?.p99.as_secs()));
            own.map(|milliseconds| milliseconds / 1e3).or_else(reads_and_writes)
        };
        self.of(state).filter_map(tail).reduce(f64::max)
    }

    fn rebuilds(&self) -> impl Iterator<Item = Rebuild> {
        self.of(State::Rebuilding).filter_map(|(_, _, sample)| sample.rebuild)
    }

    /// Whether enough of the rebuild beside each part was simulated to say how long it takes; also without redundancy,
    /// where there is none.
    pub fn tells_rebuild(&self) -> bool {
        self.rebuilds().all(|one| seen(&one) >= 1.0)
    }

    /// Hours of a rebuild while the work goes on all the time; infinite where it got nowhere, `None` without
    /// redundancy. Where too little was simulated to tell it is [`UNTOLD`] times the idle one.
    fn loaded(&self, idle: f64) -> Option<f64> {
        self.rebuilds().next()?;
        if !self.tells_rebuild() {
            return Some(UNTOLD * idle);
        }
        let done: f64 = self.rebuilds().map(|one| one.done).sum();
        let elapsed: f64 = self.rebuilds().map(|one| one.elapsed.as_secs()).sum();
        Some(if done > 0.0 { elapsed / done / 3_600.0 } else { f64::INFINITY })
    }

    /// Hours of a rebuild as the work goes on and off; `None` without redundancy.
    pub fn rebuild(&self, wanted: &Wanted) -> Option<f64> {
        let idle = idle_rebuild(&wanted.drive, wanted.member());
        // No load makes a rebuild faster: what was simulated is the fast beginning of the drive.
        let loaded = self.loaded(idle)?.max(idle);
        Some(rebuild_hours(idle, loaded, wanted.busy).min(MOST_HOURS))
    }

    /// The least share of what its streams must get that it gave in any state; 1 of other work.
    pub fn keeps_up(&self, wanted: &Wanted) -> f64 {
        let Some(demand) = wanted.profile.demand(wanted.streams) else { return 1.0 };
        let rates = State::ALL.into_iter().filter_map(|state| self.speed(wanted, state));
        rates.fold(f64::INFINITY, f64::min) / demand
    }
}

/// A rebuild beside work of which too little was simulated takes so many times an idle one: the middle of what is
/// assumed where nothing is known of a load, one full pass to three.
pub const UNTOLD: f64 = 2.0;
/// A rebuild that takes longer is none: md's least rate, 1,000 KiB/s, ends one of 24 TB in 271 days.
const MOST_HOURS: f64 = 8_760.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    fn beside(seen: &[(f64, f64)]) -> Measured {
        let sample = |(seconds, done): (f64, f64)| {
            let rebuild = Rebuild { elapsed: Nanos((seconds * 1e9) as u64), done };
            Sample { rebuild: Some(rebuild), ..made_up::sample(100, 20) }
        };
        let samples = seen.iter().enumerate();
        let samples = samples.map(|(part, seen)| (part, State::Rebuilding, sample(*seen)));
        Measured { samples: samples.collect() }
    }

    /// What was seen for 20 ms would be years or minutes. Neither is told: twice an idle rebuild is assumed, and no
    /// rebuild beside work is faster than one alone.
    #[test]
    fn a_glance_at_a_rebuild_is_not_extrapolated() {
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "vm");
        wanted.busy = 1.0;
        let idle = idle_rebuild(&wanted.drive, wanted.member());
        let of = |seen: &[(f64, f64)]| {
            let measured = beside(seen);
            (measured.tells_rebuild(), measured.rebuild(&wanted).expect("redundant"))
        };
        for glance in [(0.02, 1e-9), (0.1, 9e-4), (0.02, 0.0), (9.9, 0.0099)] {
            assert_eq!(of(&[glance]), (false, UNTOLD * idle), "{glance:?}");
            assert!(!of(&[glance, (20.0, 1e-4)]).0, "each part has to tell");
        }
        let (tells, hours) = of(&[(10.0, 1e-4)]);
        assert!(tells && (hours - 10.0 / 1e-4 / 3_600.0).abs() < 1e-6, "{hours}");
        assert_eq!(
            of(&[(0.1, 0.01)]),
            (true, idle),
            "100 parts of 0.1 s: never below the idle one"
        );
        assert_eq!(of(&[(10.0, 0.0)]), (true, MOST_HOURS), "it got nowhere in 10 s");
        let bare = Measured { samples: vec![(0, State::Healthy, made_up::sample(100, 20))] };
        assert_eq!((bare.tells_rebuild(), bare.rebuild(&wanted)), (true, None));
    }

    /// Nor does a look, whose writes all have room in the buffers, make an array faster than a run that fills them.
    #[test]
    fn short_looks_are_no_faster_than_long_runs() {
        for work in ["nas", "media"] {
            let wanted = made_up::wanted(4, "nas-8tb-7200", work);
            let rate = |requests: u64| -> f64 {
                let plan = Plan { layout: "raid10(4)".parse().expect("one"), mode: Mode::None };
                let studies = studies(&wanted, &[plan], requests).expect("a study");
                let bench = bench(&wanted, &studies, None).expect("drives");
                let rate = |seed| {
                    let measured = run(&bench, 0, seed).expect("runs");
                    measured.rate(&wanted, 0, State::Healthy).expect("healthy")
                };
                [7, 8, 9].map(rate).iter().sum()
            };
            let (short, long) = (rate(300), rate(2_700));
            assert!(short < long, "{work}: {short} and {long} bytes in three seconds");
            assert!(!wanted.profile.flushes(), "between its writes it does not");
        }
    }

    /// What stands in the drives' buffers is not written: no array takes more than its drives do.
    #[test]
    fn backups_are_written_no_faster_than_drives_can() {
        for (work, part) in [("backup", 0), ("capture", 0)] {
            let wanted = made_up::wanted(12, "nas-4tb-5400", work);
            let plan = Plan { layout: "raid0(12)".parse().expect("one"), mode: Mode::None };
            let studies = studies(&wanted, &[plan], 300).expect("a study");
            let bench = bench(&wanted, &studies, None).expect("drives");
            let measured = run(&bench, 0, 7).expect("runs");
            let rate = measured.rate(&wanted, part, State::Healthy).expect("healthy");
            let most = 12.0 * wanted.drive.amount("outer_rate").expect("a disk") as f64;
            assert!(rate < most, "{work}: {rate} of {most} bytes a second");
            assert!(!wanted.profile.flushes(), "between its writes it does not");
        }
    }

    /// What is counted: bytes, bytes that are read, requests, a workload's own figure or one over it; several parts by
    /// their geometric mean, tails by the worst.
    #[test]
    fn figures_are_what_people_count() {
        use raidlab_workload::{Better, Metric};
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "backup");
        let sample = |rate: u64, p99: u64, values: &[f64]| Sample {
            values: values.iter().map(|value| Some(*value)).collect(),
            last_done: Nanos(2_000_000_000),
            bytes_written: rate * 250_000,
            ..made_up::sample(rate, p99)
        };
        let of = |samples: [(u64, u64, &[f64]); 2]| {
            let samples = samples.iter().enumerate();
            let healthy = samples.map(|(part, (rate, p99, values))| {
                (part, State::Healthy, sample(*rate, *p99, values))
            });
            Measured { samples: healthy.collect() }
        };
        let measured = of([(800, 30, &[]), (200, 50, &[])]);
        let near = |found: Option<f64>, expected: f64| {
            let found = found.expect("measured");
            assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
        };
        let healthy = State::Healthy;
        near(measured.rate(&wanted, 0, healthy), 400e6);
        near(measured.speed(&wanted, healthy), 200e6);
        near(measured.slowest(&wanted, "MB/s"), 100e6);
        near(measured.tail(&wanted, healthy), 0.05);
        assert_eq!((measured.requests(), measured.slowest(&wanted, "I/O/s")), (1_000, None));
        assert_eq!(measured.speed(&wanted, State::Degraded), None);
        wanted.profile.parts[0].counted = Counted::Read;
        near(measured.rate(&wanted, 0, healthy), 300e6);
        wanted.profile.parts[0].counted = Counted::Operations;
        near(measured.rate(&wanted, 0, healthy), 400.0);
        let metric = |unit, better| Metric { name: "m", unit, better };
        let own = of([(1, 30, &[8.0, 12.0]), (200, 5, &[])]);
        wanted.profile.parts[0].counted = Counted::Metric(metric("MB/s", Better::Higher), Some(1));
        near(own.rate(&wanted, 0, healthy), 8.0);
        // Megabytes of its own are bytes where a limit is in them; its own p99 is in milliseconds.
        near(own.slowest(&wanted, "MB/s"), 8e6);
        near(own.tail(&wanted, healthy), 0.012);
        wanted.profile.parts[0].counted = Counted::Metric(metric("s", Better::Lower), None);
        near(own.rate(&wanted, 0, healthy), 0.125);
        near(own.tail(&wanted, healthy), 0.03);
    }

    /// Who writes and flushes waits for both; what `nas` flushes at its end is no part of its writes.
    #[test]
    fn the_p99_of_work_that_flushes_has_its_flushes() {
        let tails = |work: &str| {
            let wanted = made_up::wanted(4, "nas-8tb-7200", work);
            let plan = Plan { layout: "raid10(4)".parse().expect("one"), mode: Mode::None };
            let studies = studies(&wanted, &[plan], 300).expect("a study");
            let bench = bench(&wanted, &studies, None).expect("drives");
            let measured = run(&bench, 0, 7).expect("runs");
            let (_, _, sample) = measured.of(State::Healthy).next().expect("healthy");
            let flushed = sample.detail.flushed_p99.map(|p99| Nanos(p99).as_secs());
            let plain = sample.latency.expect("requests").p99.as_secs();
            (measured.tail(&wanted, State::Healthy).expect("healthy"), flushed, plain)
        };
        for work in ["database", "vm"] {
            let (told, flushed, plain) = tails(work);
            assert!(Some(told) == flushed && told > 1.05 * plain, "{work}: {told} and {plain}");
        }
        let (told, _, plain) = tails("nas");
        assert_eq!(told, plain);
    }

    /// Beside several parts a rebuild goes on in all of their time: hours for all that was done in it.
    #[test]
    fn a_rebuild_beside_several_parts_goes_on_through_all() {
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "vm");
        let seen = beside(&[(10.0, 3e-4), (30.0, 1e-4)]);
        let loaded = 40.0 / 4e-4 / 3_600.0;
        let idle = idle_rebuild(&wanted.drive, wanted.member());
        for busy in [0.0, 0.25, 1.0] {
            wanted.busy = busy;
            let hours = seen.rebuild(&wanted).expect("redundant");
            let expected = 1.0 / ((1.0 - busy) / idle + busy / loaded);
            assert!((hours / expected - 1.0).abs() < 1e-6, "{busy}: {hours}, {expected}");
        }
    }

    /// Work is made to fit on the smallest array of a look; large requests are half as many, but not too few.
    #[test]
    fn work_is_as_long_as_it_is_asked_for() {
        let plans = ["raid0(4)", "raid6(4)"]
            .map(|name| Plan { layout: name.parse().expect("one"), mode: Mode::None });
        let made = |work: &str, requests: u64, first: usize| {
            let wanted = made_up::wanted(4, "nas-8tb-7200", work);
            let study = study(&wanted, &plans[first..], requests).expect("a study");
            assert_eq!(study.drives[0].count, 4);
            format!("{:?}", study.workloads[0])
        };
        // The four streams of `nas` share the requests, two hundred at least, and those of `vm` are eight.
        for (work, requests, each) in
            [("nas", 3_000, 375), ("nas", 90, 50), ("vm", 3_000, 375), ("vm", 8, 8)]
        {
            let text = made(work, requests, 0);
            assert!(text.contains(&format!("number_ios: {each},")), "{work} {requests}: {text}");
        }
        let mut unequal = made_up::wanted(4, "nas-8tb-7200", "nas");
        let size_of = |wanted: &Wanted| study(wanted, &plans, 90).expect("a study").member_size;
        assert_eq!(size_of(&unequal), None);
        unequal.sizes = [6, 4, 8, 8].map(|size| Sectors(size << 30)).to_vec();
        assert_eq!(size_of(&unequal), Some(Sectors(4 << 30)), "as much as the smallest has");
        let wanted = made_up::wanted(4, "nas-8tb-7200", "surveillance");
        let many = Wanted { streams: 128, ..wanted };
        let size = |first: usize| {
            let study = study(&many, &plans[first..], 3_000).expect("a study");
            let text = format!("{:?}", study.workloads[0]);
            let (_, rest) = text.split_once(" size: Some(Bytes(").expect("a size");
            rest.split(')').next().and_then(|digits| digits.parse::<u64>().ok()).expect("bytes")
        };
        assert_eq!(size(0), size(1), "both fit on raid6");
        let share = size(0) as f64 * 128.0 / 16e12;
        assert!((0.88..=0.901).contains(&share), "{share}");
    }
}
