//! What a rebuild costs the foreground, by how it is paced: policies by name, curves of rebuild time against p99, the
//! knee.

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing, PacingRule};
use raidlab_predict::{Modelled, Pacer};
use raidlab_results::find::is_too_little;
use raidlab_results::statistics::student;
use raidlab_study::{CellKey, Rebuild, State, StudyError};

/// A way of pacing rebuilds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// md before 6.16 (also dm-raid, whose `--minrecoveryrate` it is): the least rate beside others.
    Md,
    /// The same, by the most.
    MdMax,
    /// md since 6.16: so many pieces in flight at most while the array is in use.
    MdDepth,
    /// A share of the time, as mClock's shares of what an OSD does; of mClock itself only the share.
    MclockLike,
    /// So many milliseconds of each 5 s, as ZFS's least times for scrubs and resilvers: of ZFS only the share.
    ZfsLike,
    /// raidlab's own: as much room as holds a p99 of the foreground, never below 5 % of the time.
    Feedback,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Md, Self::MdMax, Self::MdDepth, Self::MclockLike, Self::ZfsLike, Self::Feedback];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::MdMax => "md-max",
            Self::MdDepth => "md-6.16",
            Self::MclockLike => "mclock-like",
            Self::ZfsLike => "zfs-like",
            Self::Feedback => "feedback",
        }
    }

    /// Whether it is a rule of md's.
    pub const fn is_of_md(self) -> bool {
        matches!(self, Self::Md | Self::MdMax | Self::MdDepth)
    }

    /// Its settings, from the slowest rebuild to the fastest; `alone` is the p99 without a rebuild.
    pub fn settings(self, alone: Nanos) -> Vec<Setting> {
        let shares = |all: &[u8]| all.iter().map(|share| Setting::Share(*share)).collect();
        match self {
            Self::Md => RATES.map(Setting::Least).to_vec(),
            Self::MdMax => RATES.map(Setting::Most).to_vec(),
            Self::MdDepth => DEPTHS.map(Setting::Depth).to_vec(),
            Self::MclockLike => shares(&[5, 10, 20, 30, 50, 60, 80, 100]),
            Self::ZfsLike => shares(&[20, 60]),
            Self::Feedback => {
                let target = |tenths| Nanos(alone.0 / 10 * tenths);
                [11, 12, 15, 20, 30, 40, 60, 100].map(|one| Setting::Target(target(one))).to_vec()
            }
        }
    }
}

/// KiB a second of each member.
const RATES: [u64; 8] = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000];
/// Pieces in flight; md's own is 32.
const DEPTHS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Percent of the time that feedback leaves a rebuild at least.
pub const FLOOR: u8 = 5;

/// A setting of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// KiB a second at least, also beside others.
    Least(u64),
    /// KiB a second at most.
    Most(u64),
    /// Pieces in flight at most while the array is in use.
    Depth(u16),
    /// Percent of the time.
    Share(u8),
    /// What feedback leaves a rebuild in any case.
    Floor,
    /// The p99 that feedback holds.
    Target(Nanos),
}

impl Setting {
    /// In a few words.
    pub fn in_words(self) -> String {
        match self {
            Self::Least(rate) => format!("speed_limit_min {rate}"),
            Self::Most(rate) => format!("speed_limit_max {rate}"),
            Self::Depth(depth) => format!("sync_io_depth {depth}"),
            Self::Share(share) => format!("{share} % of the time"),
            Self::Floor => format!("one range at a time, {FLOOR} % of the time"),
            Self::Target(target) => format!("p99 of {}", milliseconds(target.as_secs())),
        }
    }

    /// What sets it on Linux; `None` where nothing does.
    pub fn command(self) -> Option<String> {
        match self {
            Self::Least(rate) => Some(format!("sysctl dev.raid.speed_limit_min={rate}")),
            Self::Most(rate) => Some(format!("sysctl dev.raid.speed_limit_max={rate}")),
            Self::Depth(depth) => Some(format!("sysctl dev.raid.sync_io_depth={depth}")),
            Self::Share(_) | Self::Floor | Self::Target(_) => None,
        }
    }

    fn pacing(self) -> Option<Pacing> {
        let plain = Pacing::default();
        match self {
            Self::Least(rate) => {
                let least = rate << 10;
                Some(Pacing::between(least, plain.most.max(least)))
            }
            Self::Most(rate) => {
                let most = rate << 10;
                Some(Pacing::between(plain.least.min(most), most))
            }
            Self::Depth(depth) => Some(Pacing { rule: PacingRule::Depth(depth), ..plain }),
            Self::Share(share) => Some(Pacing { rule: PacingRule::Share(share), ..plain }),
            Self::Floor => Some(Pacing { rule: PacingRule::Single(FLOOR), ..plain }),
            Self::Target(_) => None,
        }
    }
}

/// Seconds as milliseconds in three digits.
pub fn milliseconds(seconds: f64) -> String {
    let value = seconds * 1e3;
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} ms")
}

/// What a run with a setting gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Hours of the whole rebuild if it went on as it did in the run; infinite where it got nowhere, no number where
    /// too little of it was seen to tell ([`is_too_little`]).
    pub hours: f64,
    /// Seconds that 99 of 100 requests took at most; no number where the rebuild was over long before them, so that
    /// most may have been beside none.
    pub tail: f64,
    /// Reads and writes a second; no number likewise.
    pub rate: f64,
}

/// The share of a run at least that a rebuild must have gone on for its figures to be those of a rebuild.
const BESIDE: f64 = 0.9;

/// Runs a cell of a study that is rebuilt, with a setting.
///
/// # Errors
/// As of the cell.
pub fn run(
    modelled: &Modelled<'_>,
    key: &CellKey,
    setting: Setting,
    seed: u64,
) -> Result<Outcome, StudyError> {
    let mut world = modelled.world_in(key.layout, State::Rebuilding, seed)?;
    if let Some(pacing) = setting.pacing() {
        world.command(Admin::Pace(pacing));
    }
    let pacer = match setting {
        Setting::Target(target) => Some(Pacer::new(target, FLOOR)),
        _ => None,
    };
    let sample = modelled.run_paced(&mut world, key, seed, pacer)?;
    let last = sample.last_done.as_secs();
    let hours = match sample.rebuild {
        Some(rebuild) if is_too_little(rebuild.done * 100.0, last) => f64::NAN,
        rebuild => {
            rebuild.and_then(|one| one.seconds()).map_or(f64::INFINITY, |one| one.0 / 3_600.0)
        }
    };
    let ended_early = |one: &Rebuild| one.done >= 1.0 && one.elapsed.as_secs() < BESIDE * last;
    if sample.rebuild.as_ref().is_some_and(ended_early) {
        return Ok(Outcome { hours, tail: f64::NAN, rate: f64::NAN });
    }
    Ok(Outcome {
        hours,
        tail: sample.latency.map_or(0.0, |latency| latency.p99.as_secs()),
        rate: sample.ops as f64 / last.max(1e-9),
    })
}

/// The p99 and the rate of a cell without a rebuild, with the drive missing, as it is while nobody has put another one
/// there: no hot spare stands by.
///
/// # Errors
/// As of the cell.
pub fn without(modelled: &Modelled<'_>, key: &CellKey, seed: u64) -> Result<Outcome, StudyError> {
    let mut world = modelled.world_without_spares(key.layout, State::Degraded, seed)?;
    let key = CellKey { state: State::Degraded, ..*key };
    let sample = modelled.run_on(&mut world, &key, seed)?;
    Ok(Outcome {
        hours: f64::INFINITY,
        tail: sample.latency.map_or(0.0, |latency| latency.p99.as_secs()),
        rate: sample.ops as f64 / sample.last_done.as_secs().max(1e-9),
    })
}

/// The knee of a curve of hours and seconds: the point that is furthest below the line from its slowest rebuild to its
/// fastest, in logarithms; `None` of fewer than three points, where none is below, and where hours or seconds differ by
/// less than a tenth: what bends there is chance.
pub fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let logs: Vec<(f64, f64)> =
        points.iter().map(|(hours, tail)| (libm::log(*hours), libm::log(*tail))).collect();
    let finite = || logs.iter().filter(|(hours, tail)| hours.is_finite() && tail.is_finite());
    let first = finite().copied().reduce(|one, other| if other.0 > one.0 { other } else { one })?;
    let last = finite().copied().reduce(|one, other| if other.0 < one.0 { other } else { one })?;
    let (wide, high) = (first.0 - last.0, last.1 - first.1);
    let least = libm::log(1.1);
    if finite().count() < 3 || wide < least || high < least {
        return None;
    }
    let below = |(hours, tail): (f64, f64)| first.1 + high * (first.0 - hours) / wide - tail;
    let all = logs.iter().enumerate().filter(|(_, one)| one.0.is_finite() && one.1.is_finite());
    let best = all.max_by(|(_, one), (_, other)| below(**one).total_cmp(&below(**other)))?;
    (below(*best.1) > 1e-9).then_some(best.0)
}

/// Why a curve has no knee to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKnee {
    /// It has none ([`knee`]).
    Straight,
    /// Fewer than three runs of a setting have no interval.
    FewRuns,
    /// The setting at this place would be it, but what the next slower one would save of the time, or the next faster
    /// one cost of the p99, may be chance.
    Chance(usize),
}

/// The knee of a policy's curve of medians, where it is one beyond chance: the next slower setting takes longer, and
/// the next faster one has a longer p99, each beyond the 95 % interval of their ratio over the seeds. `runs` are those
/// of each setting, all by seed; settings that came to the same are one.
///
/// # Errors
/// Why there is none to tell.
pub fn knee_beyond_chance(points: &[(f64, f64)], runs: &[&[Outcome]]) -> Result<usize, NoKnee> {
    let at = knee(points).ok_or(NoKnee::Straight)?;
    let ours = runs[at];
    if ours.len() < 3 {
        return Err(NoKnee::FewRuns);
    }
    let others = || {
        let all = points.iter().zip(runs).filter(|(point, _)| point.0.is_finite());
        all.filter(|(_, runs)| **runs != ours).map(|(point, runs)| (point.0, *runs))
    };
    let hours = points[at].0;
    let slower = others().filter(|other| other.0 >= hours);
    let slower = slower.min_by(|one, other| one.0.total_cmp(&other.0));
    let faster = others().filter(|other| other.0 < hours);
    let faster = faster.max_by(|one, other| one.0.total_cmp(&other.0));
    let is_longer = |other: Option<(f64, &[Outcome])>, figure: fn(&Outcome) -> f64| {
        let log = |(one, other): (&Outcome, &Outcome)| libm::log(figure(other) / figure(one));
        let logs: Option<Vec<f64>> =
            other.map(|(_, runs)| ours.iter().zip(runs).map(log).collect());
        logs.and_then(|logs| PairedRatio::of(&logs)).is_some_and(|ratio| ratio.is_worse())
    };
    let is_knee = is_longer(slower, |run| run.hours) && is_longer(faster, |run| run.tail);
    if is_knee { Ok(at) } else { Err(NoKnee::Chance(at)) }
}

/// The p99 of a curve at a rebuild time, between its two nearest points; `None` beyond its ends.
pub fn tail_at(curve: &[(f64, f64)], hours: f64) -> Option<f64> {
    let mut sorted: Vec<(f64, f64)> =
        curve.iter().copied().filter(|one| one.0.is_finite() && one.1 > 0.0).collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let above = sorted.iter().position(|one| one.0 >= hours)?;
    let right = sorted[above];
    if right.0 == hours {
        return Some(right.1);
    }
    let left = *sorted.get(above.checked_sub(1)?)?;
    let part = libm::log(hours / left.0) / libm::log(right.0 / left.0);
    Some(libm::exp(libm::log(left.1) + part * libm::log(right.1 / left.1)))
}

/// A p99 as a multiple of another's, with its 95 % interval over seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedRatio {
    /// The geometric mean.
    pub mean: f64,
    /// From here ...
    pub low: f64,
    /// ... to here.
    pub high: f64,
}

impl PairedRatio {
    /// Of the logarithms of ratios, seed by seed; `None` of fewer than three, and where one is no number.
    fn of(logs: &[f64]) -> Option<Self> {
        let count = logs.len() as f64;
        if logs.len() < 3 || !logs.iter().all(|log| log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        let error = libm::sqrt(squares / (count - 1.0) / count) * student(logs.len())?;
        let [mean, low, high] = [mean, mean - error, mean + error].map(libm::exp);
        Some(Self { mean, low, high })
    }

    /// Shorter beyond the interval.
    pub fn is_better(&self) -> bool {
        self.high < 1.0
    }

    /// Longer beyond the interval.
    pub fn is_worse(&self) -> bool {
        self.low > 1.0
    }
}

/// The p99 of a policy against that of a setting of another, where both rebuild in the same time: `ours` are the runs
/// of each of its settings, all by seed. `None` where fewer than three of the setting's runs lie within the curve.
pub fn at_equal_time(ours: &[&[Outcome]], theirs: &[Outcome]) -> Option<PairedRatio> {
    let log = |(seed, run): (usize, &Outcome)| {
        let curve = ours.iter().filter_map(|setting| setting.get(seed));
        let curve: Vec<(f64, f64)> = curve.map(|run| (run.hours, run.tail)).collect();
        let log = libm::log(tail_at(&curve, run.hours)? / run.tail);
        log.is_finite().then_some(log)
    };
    let logs: Vec<f64> = theirs.iter().enumerate().filter_map(log).collect();
    PairedRatio::of(&logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_where_the_curve_bends() {
        let points = [(100.0, 10.0), (50.0, 11.0), (20.0, 12.0), (15.0, 30.0), (10.0, 100.0)];
        assert_eq!(knee(&points), Some(2));
        assert_eq!(knee(&[(100.0, 10.0), (10.0, 100.0)]), None);
        let line = [(100.0, 10.0), (31.622_776_601_683_79, 31.622_776_601_683_79), (10.0, 100.0)];
        assert_eq!(knee(&line), None);
        let flat = [(120.0, 136.3), (119.0, 136.0), (118.0, 136.1), (117.0, 137.4)];
        assert_eq!(knee(&flat), None, "all the same");
        let unknown = [(f64::NAN, 1.0), (f64::NAN, 2.0), (60.0, 3.0), (50.0, 90.0)];
        assert_eq!(knee(&unknown), None, "two are known");
        assert_eq!(
            knee(&[(f64::INFINITY, 9.0), (100.0, 10.0), (20.0, 12.0), (10.0, 100.0)]),
            Some(2)
        );
    }

    /// The curve of `a_knee_is_where_the_curve_bends`, with neighbours of its knee that chance may tell apart.
    #[test]
    fn a_knee_is_told_where_its_neighbours_are_apart() {
        let run = |hours, tail| Outcome { hours, tail, rate: 1.0 };
        let curve = [(100.0, 10.0), (50.0, 11.0), (20.0, 12.0), (15.0, 30.0), (10.0, 100.0)];
        let exact = || curve.map(|(hours, tail)| [0.98, 1.0, 1.02].map(|by| run(hours, tail * by)));
        let of = |runs: &[[Outcome; 3]], seeds: usize| {
            let runs: Vec<&[Outcome]> = runs.iter().map(|runs| &runs[..seeds]).collect();
            knee_beyond_chance(&curve, &runs)
        };
        assert_eq!((of(&exact(), 3), of(&exact(), 2)), (Ok(2), Err(NoKnee::FewRuns)));
        let mut noisy = exact();
        noisy[3] = [(15.0, 5.0), (15.0, 30.0), (15.0, 60.0)].map(|(hours, tail)| run(hours, tail));
        assert_eq!(of(&noisy, 3), Err(NoKnee::Chance(2)), "what is faster may have no longer p99");
        let mut uneven = exact();
        uneven[1] = [10.0, 50.0, 80.0].map(|hours| run(hours, 11.0));
        assert_eq!(of(&uneven, 3), Err(NoKnee::Chance(2)), "what is slower may take no longer");
        // A setting that sets nothing else is the same point.
        let mut same = exact();
        same[3] = same[2];
        let mut twice = curve;
        twice[3] = twice[2];
        let runs: Vec<&[Outcome]> = same.iter().map(|runs| &runs[..]).collect();
        assert!(knee_beyond_chance(&twice, &runs).is_ok());
        let line = [(100.0, 10.0), (10.0, 100.0)];
        assert_eq!(knee_beyond_chance(&line, &runs[..2]), Err(NoKnee::Straight));
    }

    #[test]
    fn curves_are_read_between_their_points() {
        let curve = [(100.0, 10.0), (10.0, 40.0)];
        assert!((tail_at(&curve, 31.622_776_601_683_79).expect("between") - 20.0).abs() < 1e-9);
        assert_eq!(tail_at(&curve, 10.0), Some(40.0));
        assert_eq!((tail_at(&curve, 9.0), tail_at(&curve, 101.0)), (None, None));
    }

    #[test]
    fn policies_are_compared_where_both_take_as_long() {
        let run = |hours, tail| Outcome { hours, tail, rate: 1.0 };
        let slow = [10.0, 20.0, 30.0].map(|tail| run(100.0, tail));
        let fast = [40.0, 80.0, 120.0].map(|tail| run(10.0, tail));
        let ours: [&[Outcome]; 2] = [&slow, &fast];
        // In between, at the square root of both: 20, 40 and 60, against twice, three and four times that.
        let hours = 31.622_776_601_683_79;
        let theirs = [run(hours, 40.0), run(hours, 120.0), run(hours, 240.0)];
        let ratio = at_equal_time(&ours, &theirs).expect("all within");
        assert!((ratio.mean - libm::cbrt(1.0 / 24.0)).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.is_better() == (ratio.high < 1.0) && !ratio.is_worse());
        let beyond = [run(200.0, 1.0), theirs[0], theirs[1]];
        assert_eq!(at_equal_time(&ours, &beyond), None);
    }

    /// Feedback is given p99s from 1.1 to 10 times the one without a rebuild, the slowest rebuild first.
    #[test]
    fn feedback_wants_multiples_of_the_p99_alone() {
        let millis = |count: u64| Setting::Target(Nanos(count * 1_000_000));
        let expected = [11, 12, 15, 20, 30, 40, 60, 100].map(millis);
        assert_eq!(Policy::Feedback.settings(Nanos(10_000_000)), expected);
    }

    /// The mean of the logarithms with Student's interval, whatever the number of seeds.
    #[test]
    fn ratios_have_intervals_over_seeds() {
        let run = |hours, tail| Outcome { hours, tail, rate: 1.0 };
        for (seeds, errors) in
            [(3_u32, 4.302_653), (11, 2.228_139), (21, 2.085_963), (61, 2.000_298)]
        {
            let count = seeds as usize;
            let slow = vec![run(100.0, 10.0); count];
            let fast = vec![run(10.0, 40.0); count];
            let powers = || (0..seeds).map(|seed| f64::from(seed % 3) * libm::log(2.0));
            let theirs: Vec<Outcome> =
                powers().map(|log| run(10.0, 40.0 * libm::exp(log))).collect();
            let found = at_equal_time(&[&slow, &fast], &theirs).expect("all within");
            let mean = powers().sum::<f64>() / f64::from(seeds);
            let squares: f64 = powers().map(|log| (log - mean) * (log - mean)).sum();
            let error = libm::sqrt(squares / f64::from(seeds - 1) / f64::from(seeds)) * errors;
            for (found, expected) in
                [(found.mean, -mean), (found.low, -mean - error), (found.high, -mean + error)]
            {
                assert!((libm::log(found) - expected).abs() < 1e-6, "{seeds}: {found}");
            }
        }
        // Runs whose rebuild never ended, or that did nothing, are no points of a curve.
        let curve = [(f64::INFINITY, 1.0), (100.0, 10.0), (50.0, 0.0), (10.0, 40.0)];
        assert_eq!((tail_at(&curve, 100.0), tail_at(&curve, 101.0)), (Some(10.0), None));
        assert!((tail_at(&curve, 31.622_776_601_683_79).expect("between") - 20.0).abs() < 1e-9);
    }

    /// md's own figures are among the settings: 1,000 to 200,000 KiB a second of each member, and 32 pieces in flight;
    /// ZFS's least times are 1 and 3 of each 5 s. All go from the slowest rebuild to the fastest.
    #[test]
    fn settings_have_the_defaults_of_their_systems() {
        let alone = Nanos(10_000_000);
        let of = |policy: Policy| policy.settings(alone);
        for (policy, one) in
            [(Policy::Md, Setting::Least as fn(u64) -> Setting), (Policy::MdMax, Setting::Most)]
        {
            let settings = of(policy);
            assert_eq!((settings[0], settings[settings.len() - 1]), (one(1_000), one(200_000)));
        }
        assert!(of(Policy::MdDepth).contains(&Setting::Depth(32)));
        assert_eq!(of(Policy::ZfsLike), [Setting::Share(20), Setting::Share(60)]);
        assert_eq!(of(Policy::MclockLike).last(), Some(&Setting::Share(100)));
        let figure = |setting: &Setting| match *setting {
            Setting::Least(rate) | Setting::Most(rate) => rate,
            Setting::Depth(depth) => u64::from(depth),
            Setting::Share(share) => u64::from(share),
            Setting::Floor => u64::from(FLOOR),
            Setting::Target(target) => target.0,
        };
        for policy in Policy::ALL {
            let figures: Vec<u64> = of(policy).iter().map(figure).collect();
            assert!(figures.windows(2).all(|pair| pair[0] < pair[1]), "{policy:?}: {figures:?}");
            let commands = of(policy).into_iter().all(|one| one.command().is_some());
            assert_eq!(commands, policy.is_of_md(), "{policy:?}");
        }
        let names = Policy::ALL.map(Policy::name);
        assert_eq!(names, ["md", "md-max", "md-6.16", "mclock-like", "zfs-like", "feedback"]);
    }

    /// The kernel's names of its settings; its rates are KiB a second, the model's bytes. A least above the most lifts
    /// the most, a most below the least lowers the least.
    #[test]
    fn settings_are_set_as_the_kernel_has_them() {
        let told =
            [Setting::Least(5_000), Setting::Most(50_000), Setting::Depth(16), Setting::Share(30)]
                .map(|one| (one.in_words(), one.command().unwrap_or_default()));
        let expected = [
            ("speed_limit_min 5000", "sysctl dev.raid.speed_limit_min=5000"),
            ("speed_limit_max 50000", "sysctl dev.raid.speed_limit_max=50000"),
            ("sync_io_depth 16", "sysctl dev.raid.sync_io_depth=16"),
            ("30 % of the time", ""),
        ];
        assert_eq!(told, expected.map(|(words, command)| (words.to_owned(), command.to_owned())));
        let target = Setting::Target(Nanos(12_345_678));
        assert_eq!((target.in_words().as_str(), target.command()), ("p99 of 12.3 ms", None));
        let pacing = |setting: Setting| setting.pacing().expect("is one");
        let plain = Pacing::default();
        assert_eq!((plain.least, plain.most), (1_000 * 1_024, 200_000 * 1_024), "md's own");
        for (setting, least, most) in [
            (Setting::Least(5_000), 5_000, 200_000),
            (Setting::Least(300_000), 300_000, 300_000),
            (Setting::Most(50_000), 1_000, 50_000),
            (Setting::Most(500), 500, 500),
        ] {
            let found = pacing(setting);
            assert_eq!((found.least, found.most), (least * 1_024, most * 1_024), "{setting:?}");
        }
        assert_eq!(pacing(Setting::Depth(16)).rule, PacingRule::Depth(16));
        assert_eq!(pacing(Setting::Share(30)).rule, PacingRule::Share(30));
        assert_eq!((pacing(Setting::Share(30)).least, target.pacing()), (plain.least, None));
        let told = [0.000_25, 0.009_994, 0.012_34, 0.0994, 0.5].map(milliseconds);
        assert_eq!(told, ["0.25 ms", "9.99 ms", "12.3 ms", "99.4 ms", "500 ms"]);
    }

    /// A tenth is what chance makes; a point above the line between the ends is no knee.
    #[test]
    fn knees_are_below_the_line_and_beyond_chance() {
        let bent = |wide: f64, high: f64| {
            let point = |hours: f64, tail: f64| (10.0 * wide.powf(hours), 10.0 * high.powf(tail));
            knee(&[point(1.0, 0.0), point(0.5, 0.1), point(0.25, 0.2), point(0.0, 1.0)])
        };
        assert_eq!(bent(4.0, 4.0), Some(2));
        assert_eq!((bent(1.11, 4.0), bent(1.09, 4.0)), (Some(2), None));
        assert_eq!((bent(4.0, 1.11), bent(4.0, 1.09)), (Some(2), None));
        let above = [(40.0, 10.0), (20.0, 35.0), (10.0, 40.0)];
        assert_eq!(knee(&above), None);
        assert_eq!(knee(&[(40.0, 40.0), (20.0, 15.0), (10.0, 10.0)]), None, "faster and shorter");
        // In any order.
        assert_eq!(knee(&[(10.0, 40.0), (20.0, 11.0), (40.0, 10.0)]), Some(1));
    }

    /// Who takes half of the time to answer is better, who takes twice as long is worse; what lies around 1 is neither.
    #[test]
    fn intervals_that_hold_one_decide_nothing() {
        let of = |low: f64, high: f64| PairedRatio { mean: (low * high).sqrt(), low, high };
        let told = [of(0.4, 0.6), of(1.5, 2.5), of(0.9, 1.2), of(0.5, 1.0), of(1.0, 2.0)];
        assert_eq!(told.map(|one| one.is_better()), [true, false, false, false, false]);
        assert_eq!(told.map(|one| one.is_worse()), [false, true, false, false, false]);
        // Feedback's p99 is half of the other's at the same time, whatever the seed.
        let run = |hours, tail| Outcome { hours, tail, rate: 1.0 };
        let ours = [run(10.0, 5.0), run(10.0, 10.0), run(10.0, 15.0)];
        let theirs = ours.map(|one| run(10.0, one.tail * 2.0));
        let found = at_equal_time(&[&ours], &theirs).expect("three");
        assert!((found.mean - 0.5).abs() < 1e-9 && found.is_better(), "{found:?}");
        let turned = at_equal_time(&[&theirs], &ours).expect("three");
        assert!((turned.mean - 2.0).abs() < 1e-9 && turned.is_worse(), "{turned:?}");
    }
}
