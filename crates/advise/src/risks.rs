//! Chances of losing the array, for candidates that are rebuilt in the times that their runs gave.
//!
//! A chance depends on the structure and on how long a rebuild takes, and there are many of both. While candidates are
//! only put in order, chances are simulated for rebuilds of 1, 2, 4, ... hours and interpolated between them (in
//! logarithms of both, as a chance is nearly a power of the time): a structure is simulated for a few times, however
//! many chunks it was tried with. What is shown is simulated for its own time.

use std::collections::BTreeMap;

use raidlab_risk::{Array, Effort, Model, Span, Stop, simulate, simulate_in_batch};

use crate::candidate::Candidate;
use crate::objectives::LEAST_RISK;
use crate::search::{NoAdvice, Pool, gather};
use crate::wanted::Wanted;

/// The relative standard error of chances that only put candidates in order: a step is a factor of 1.5.
const ROUGH: Precision = Precision { error: 0.1, paths: 4_000 };
/// That of those that are shown, with one digit.
const SHOWN: Precision = Precision { error: 0.04, paths: 20_000 };
/// A rebuild that takes less is done in no time, in hours.
const LEAST_HOURS: f64 = 1.0 / 64.0;

#[derive(Clone, Copy, Debug)]
struct Precision {
    error: f64,
    paths: u64,
}

/// A structure, and the power of two of hours that its rebuild takes.
type Place = (String, i64);

/// What was simulated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Risks {
    known: BTreeMap<Place, f64>,
}

impl Risks {
    /// The chances of candidates whose rebuilds take so many hours, to about a tenth.
    ///
    /// # Errors
    /// When the user broke it off.
    pub(crate) fn rough(
        &mut self,
        wanted: &Wanted,
        pool: &dyn Pool,
        of: &[(&Candidate, f64)],
    ) -> Result<Vec<f64>, NoAdvice> {
        let structures: Vec<String> = of.iter().map(|one| one.0.structure().to_string()).collect();
        let mut missing: BTreeMap<Place, &Candidate> = BTreeMap::new();
        for ((candidate, hours), structure) in of.iter().zip(&structures) {
            for place in places(structure, *hours).0 {
                if !self.known.contains_key(&place) {
                    missing.insert(place, candidate);
                }
            }
        }
        let jobs: Vec<(Place, &Candidate)> = missing.into_iter().collect();
        let stop = stop(pool);
        let found = gather(pool, jobs.len(), "how likely they lose data", &|job| {
            let ((_, power), candidate) = &jobs[job];
            let hours = libm::exp2(*power as f64);
            Ok(chance(wanted, candidate, hours, ROUGH, stop))
        })?;
        self.known.extend(jobs.into_iter().map(|(place, _)| place).zip(found));
        Ok(of.iter().zip(&structures).map(|((_, hours), of)| self.between(of, *hours)).collect())
    }

    fn between(&self, structure: &str, hours: f64) -> f64 {
        let (places, part) = places(structure, hours);
        let [below, above] = places.map(|place| libm::log(self.known[&place].max(1e-300)));
        libm::exp(below + part * (above - below))
    }
}

/// The chances of candidates for their own times.
///
/// # Errors
/// When the user broke it off.
pub(crate) fn shown(
    wanted: &Wanted,
    pool: &dyn Pool,
    of: &[(&Candidate, f64)],
) -> Result<Vec<f64>, NoAdvice> {
    let stop = stop(pool);
    gather(pool, of.len(), "how likely they lose data", &|job| {
        let (candidate, hours) = of[job];
        Ok(chance(wanted, candidate, hours, SHOWN, stop))
    })
}

/// How many times as often as its class a bad batch fails in what is told of one: models of the fleet that is the
/// source of the central figure have been at ten times it (Backblaze 2025: 1.4 % a year, one model at 10.3 %, another
/// at 17 % for a quarter).
pub const BAD_BATCH: f64 = 10.0;

/// What the batch of the first drives makes of the chance of losing the array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch {
    /// Where all of them are of one that fails [`BAD_BATCH`] times as often.
    pub bad: f64,
    /// Where they are of mixed ones: no factor that they share.
    pub mixed: f64,
}

/// The chances of candidates, with hours of their rebuilds, in a bad batch and in mixed ones.
///
/// # Errors
/// When the user broke it off.
pub(crate) fn batches(
    wanted: &Wanted,
    pool: &dyn Pool,
    of: &[(&Candidate, f64)],
) -> Result<Vec<Batch>, NoAdvice> {
    let stop = stop(pool);
    gather(pool, of.len(), "what a batch makes of it", &|job| {
        let (candidate, hours) = of[job];
        let Ok(mut array) = Array::new(&candidate.layout, wanted.member()) else {
            return Ok(Batch { bad: 1.0, mixed: 1.0 });
        };
        let rebuild = Span::Fixed(hours);
        let model = Model { rebuild, spares: candidate.spares, batch: 0.0, ..wanted.model.clone() };
        let Precision { error, paths } = SHOWN;
        let effort = Effort { error, paths, least: LEAST_RISK, ..Effort::new(wanted.seed) };
        let effort = Effort { stop, ..effort };
        let mission = wanted.mission;
        let bad = simulate_in_batch(&mut array, &model, mission, effort, BAD_BATCH).array.value;
        let mixed = simulate(&mut array, &model, mission, effort).array.value;
        Ok(Batch { bad, mixed })
    })
}

/// What breaks simulations off between their paths; what they give then the pool does not hand out.
pub(crate) fn stop(pool: &dyn Pool) -> Stop {
    pool.stop().map_or(Stop::NEVER, Stop::on)
}

/// The places below and above a time, and how far it is from the one to the other.
fn places(structure: &str, hours: f64) -> ([Place; 2], f64) {
    let power = libm::log2(hours.max(LEAST_HOURS));
    let below = libm::floor(power);
    let place = |power: f64| (structure.to_owned(), power as i64);
    ([place(below), place(below + 1.0)], power - below)
}

/// The chance of losing the array by the end of the mission; certain where the layout does not fit the drives.
fn chance(
    wanted: &Wanted,
    candidate: &Candidate,
    hours: f64,
    Precision { error, paths }: Precision,
    stop: Stop,
) -> f64 {
    let model =
        Model { rebuild: Span::Fixed(hours), spares: candidate.spares, ..wanted.model.clone() };
    let effort = Effort { error, paths, stop, ..Effort::new(wanted.seed) };
    let array = Array::new(&candidate.layout, wanted.member());
    array.map_or(1.0, |mut array| simulate(&mut array, &model, wanted.mission, effort).array.value)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::candidate::Mode;
    use crate::profile::Profile;
    use crate::search::InTurn;

    /// A pool that was broken off, and goes on to the end of what was begun.
    struct BrokenOff;

    impl Pool for BrokenOff {
        fn run(
            &self,
            count: usize,
            what: &str,
            one: &(dyn Fn(usize) -> Result<(), String> + Sync),
        ) -> Result<(), NoAdvice> {
            InTurn.run(count, what, one)
        }

        fn stop(&self) -> Option<&'static AtomicBool> {
            static STOP: AtomicBool = AtomicBool::new(true);
            Some(&STOP)
        }
    }

    /// Simulations that take minutes end between two of their paths.
    #[test]
    fn a_stop_ends_simulations_that_were_begun() {
        let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
        let wanted = Wanted::new(6..=6, drive, Profile::named("vm").expect("there"));
        let layout = "raid6(6)".parse().expect("a layout");
        let one = Candidate { layout, spares: 0, mode: Mode::None };
        let asked = [(&one, 20.0)];
        let rough = Risks::default().rough(&wanted, &BrokenOff, &asked).expect("no failure");
        let shown = shown(&wanted, &BrokenOff, &asked).expect("no failure");
        let batches = batches(&wanted, &BrokenOff, &asked).expect("no failure");
        // Of no path, which is no number or none.
        let is_none = |chance: f64| chance.is_nan() || chance <= 0.0;
        assert!(
            [shown[0], batches[0].bad, batches[0].mixed].map(is_none) == [true; 3],
            "{shown:?} {batches:?}"
        );
        // Interpolated between chances that are none.
        assert!(rough[0].is_nan() || rough[0] <= 1e-290, "{rough:?}");
    }

    /// Between the powers of two a chance is what its own simulation says, to a quarter of a step of indifference.
    #[test]
    fn chances_between_are_those_of_their_own_times() {
        let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
        let wanted = Wanted::new(6..=6, drive, Profile::named("vm").expect("there"));
        let of = |name: &str, spares| Candidate {
            layout: name.parse().expect("a layout"),
            spares,
            mode: Mode::None,
        };
        let all = [of("raid5(6)", 0), of("raid6(5)", 1), of("raid10(6)", 0), of("raid0(6)", 0)];
        let mut risks = Risks::default();
        for hours in [0.0, 11.3, 22.0, 140.0, 5_000.0] {
            let asked: Vec<(&Candidate, f64)> = all.iter().map(|one| (one, hours)).collect();
            let rough = risks.rough(&wanted, &InTurn, &asked).expect("nobody stops it");
            let shown = shown(&wanted, &InTurn, &asked).expect("nobody stops it");
            for ((rough, shown), one) in rough.iter().zip(&shown).zip(&all) {
                let off = libm::fabs(libm::log(rough / shown)) / libm::log(1.5);
                assert!(off < 0.25, "{one} in {hours} h: {rough:e}, {shown:e}");
            }
        }
        assert!(risks.known.len() <= 2 * 5 * all.len());
    }

    /// A time lies between two powers of two of hours, below an hour too; what takes no time takes a 64th of one.
    #[test]
    fn times_lie_between_powers_of_two() {
        for hours in [1.0 / 64.0, 0.1, 0.5, 1.0, 1.5, 16.0, 100.0] {
            let ([below, above], part) = places("raid5(4)", hours);
            assert_eq!(above.1, below.1 + 1);
            let power = below.1 as f64 + part;
            assert!((libm::exp2(power) / hours - 1.0).abs() < 1e-9, "{hours}: {below:?} {part}");
            assert!((0.0..1.0).contains(&part), "{part}");
        }
        assert_eq!(places("", 0.0).0[0].1, -6);
    }
}
