//! What is assumed of drives, rebuilds and the people who replace drives.

use crate::hazard::{Hazard, YEAR};
use crate::prior::{self, Class};
use crate::span::Span;

/// Hours until somebody has put another drive in, where nobody says: three days, an estimate.
pub const REPLACED: f64 = 72.0;
/// Hours from one scrub to the next: Debian's monthly check.
const SCRUB: f64 = 720.0;
/// How unequal batches are: an estimate.
const BATCH: f64 = 0.7;

/// All that is assumed. Times in hours, rates an hour, chances from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// How drives fail.
    pub hazard: Hazard,
    /// The drives' age at the start.
    pub age: f64,
    /// Sectors that have become unreadable and nobody has noticed yet.
    pub latent: Latent,
    /// From a failure until a person has put another drive in.
    pub replace: Span,
    /// From the start of a rebuild to its end.
    pub rebuild: Span,
    /// Hot spares: a rebuild begins at once. Spares do not fail, and are replaced as members are.
    pub spares: u16,
    /// How many drives are rebuilt at once.
    pub order: RepairOrder,
    /// The chance that who replaces a drive pulls a good one, which is then rebuilt.
    pub wrong_pull: f64,
    /// The chance that a failure takes another drive with it: power, heat, cables, firmware.
    pub common_cause: f64,
    /// How much the first drives are alike: the standard deviation of the logarithm of a factor on their failure rate
    /// that they share, with mean 1. Drives put in later are of other batches.
    pub batch: f64,
    /// Stripes that a crash leaves torn.
    pub write_hole: WriteHole,
}

/// How many drives are rebuilt at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairOrder {
    /// All that are there, each in its own time.
    #[default]
    Parallel,
    /// One after another, as they failed; of nested levels in each lower array. So does md, but where two drives were
    /// put in before it began.
    Serial,
}

/// Latent defects: they come with time that drives run, not with bits that are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    /// Defects an hour, of each drive; with [`Law::PerRebuild`] the chance of any on a drive that must be read whole.
    pub rate: f64,
    /// From a defect to the scrub that finds and repairs it; `None`: nobody looks.
    pub found: Option<Span>,
    /// How defects come.
    pub law: Law,
    /// Defects that come while an array waits for its rebuild count as well, until the rebuild has read there.
    pub while_rebuilding: bool,
    /// Bytes that one defect makes unreadable.
    pub bytes: f64,
}

/// How defects come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Each for itself.
    Independent,
    /// None before the last one is found, as Elerath and Pecht (2007) have it.
    OneAtATime,
    /// By a chance for each drive that a rebuild reads, as calculators make of a data sheet's errors per bit. For
    /// comparison with those only.
    PerRebuild,
}

/// Crashes (power, kernel) that leave parity and data of a stripe unlike. Rates of losing a stripe, an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteHole {
    /// While all drives are there.
    pub whole: f64,
    /// While some are missing.
    pub degraded: f64,
    /// Bytes of a torn stripe.
    pub bytes: f64,
}

impl Latent {
    /// No defects.
    pub const NONE: Self =
        Self { rate: 0.0, found: None, law: Law::Independent, while_rebuilding: false, bytes: 0.0 };

    /// How many undetected defects a drive that had none `hours` ago has on average.
    pub(crate) fn mean(&self, hours: f64) -> f64 {
        let found = |found: &Span| found.mean_up_to(hours);
        self.rate * self.found.as_ref().map_or(hours, found)
    }

    /// The chance that a drive that had none `hours` ago has a defect in a part of it.
    pub(crate) fn chance(&self, hours: f64, part: f64) -> f64 {
        if self.rate == 0.0 || part == 0.0 {
            return 0.0;
        }
        match self.law {
            Law::Independent => -libm::expm1(-part * self.mean(hours)),
            Law::PerRebuild => part * self.rate,
            Law::OneAtATime => match &self.found {
                None => part * -libm::expm1(-self.rate * hours),
                Some(found) => {
                    let kept = found.mean();
                    let share = self.rate * kept / (1.0 + self.rate * kept);
                    part * share * -libm::expm1(-hours * (self.rate + 1.0 / kept.max(1e-9)))
                }
            },
        }
    }
}

impl Model {
    /// Drives that fail at a yearly rate and are rebuilt in a fixed time, and nothing else.
    pub fn plain(yearly: f64, rebuild: f64) -> Self {
        Self {
            hazard: Hazard::yearly(yearly),
            age: 0.0,
            latent: Latent::NONE,
            replace: Span::Fixed(0.0),
            rebuild: Span::Fixed(rebuild),
            spares: 0,
            order: RepairOrder::Parallel,
            wrong_pull: 0.0,
            common_cause: 0.0,
            batch: 0.0,
            write_hole: WriteHole::default(),
        }
    }

    /// What is usual of a class of drives where nobody says anything: its rates, three days until somebody replaces a
    /// drive, a scrub a month, drives of one batch, repairs one after another. The rebuild is to be set.
    pub fn usual(class: Class) -> Self {
        Self {
            latent: Latent {
                rate: class.defects().central / YEAR,
                found: Some(Span::Uniform(0.0, SCRUB)),
                law: Law::Independent,
                while_rebuilding: true,
                bytes: 4_096.0,
            },
            replace: Span::Fixed(REPLACED),
            order: RepairOrder::Serial,
            common_cause: prior::COMMON_CAUSE.central,
            batch: BATCH,
            ..Self::plain(class.failures().central, 0.0)
        }
    }

    /// What is impossible, in words that name the input.
    ///
    /// # Errors
    /// With the first input that cannot be.
    pub fn check(&self) -> Result<(), String> {
        let named = |name: &str, problem: Option<&str>| match problem {
            Some(problem) => Err(format!("{name}: {problem}")),
            None => Ok(()),
        };
        named("failure rate", self.hazard.problem())?;
        named("replacement", self.replace.problem())?;
        named("rebuild", self.rebuild.problem())?;
        named("scrub", self.latent.found.as_ref().and_then(Span::problem))?;
        let chance = |name: &str, value: f64| {
            let is_chance = (0.0..=1.0).contains(&value);
            named(name, (!is_chance).then_some("a chance is from 0 to 1"))
        };
        chance("wrong pull", self.wrong_pull)?;
        chance("common cause", self.common_cause)?;
        if self.latent.law == Law::PerRebuild {
            chance("unreadable drives", self.latent.rate)?;
        }
        let rates = [self.latent.rate, self.write_hole.whole, self.write_hole.degraded, self.age];
        let are_rates = rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
        named("rates and age", (!are_rates).then_some("are 0 or more and finite"))?;
        let is_spread = (0.0..=2.0).contains(&self.batch);
        named("batch", (!is_spread).then_some("the spread of batches is from 0 to 2"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Defects that come each for itself are Poisson's, one at a time those of a machine that breaks and is mended, by
    /// rebuild a chance alone; of a part of a drive its share.
    #[test]
    fn defects_follow_their_laws() {
        let of = |law, found| Latent { rate: 0.01, found, law, ..Latent::NONE };
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
        };
        let scrubbed = Some(Span::Uniform(0.0, 200.0));
        let each = of(Law::Independent, scrubbed.clone());
        near(each.mean(1_000.0), 0.01 * 100.0);
        // Up to 50 h: a quarter found by then, after 25 h on average, the others there for all of it.
        near(each.mean(50.0), 0.01 * (0.25 * 25.0 + 0.75 * 50.0));
        near(each.chance(1_000.0, 0.5), 1.0 - libm::exp(-0.5));
        let never = of(Law::Independent, None);
        near(never.mean(300.0), 3.0);
        near(never.chance(300.0, 1.0), 1.0 - libm::exp(-3.0));
        near(of(Law::PerRebuild, None).chance(300.0, 0.25), 0.0025);
        let one = of(Law::OneAtATime, scrubbed);
        near(one.chance(1e6, 0.5), 0.5 * 100.0 / (100.0 + 100.0));
        near(one.chance(50.0, 1.0), 0.5 * (1.0 - libm::exp(-50.0 * (0.01 + 0.01))));
        near(of(Law::OneAtATime, None).chance(300.0, 0.5), 0.5 * (1.0 - libm::exp(-3.0)));
        assert_eq!((each.chance(300.0, 0.0), Latent::NONE.chance(300.0, 1.0)), (0.0, 0.0));
    }
}
