//! How likely data are lost from when an array loses a drive until it is whole again.
//!
//! One walk through what may happen, with a weight. At each step the chance that the array is lost there is added in
//! closed form (conditional Monte Carlo), and of what is left one thing is chosen: another failure that it survives,
//! or none. Balanced failure biasing chooses failures far more often than they happen, and the weight makes up for it.

use raidlab_random::Random;

use super::Method;
use super::state::{Event, State, Units};
use crate::array::Array;
use crate::model::{Law, Model};

/// How often a failure in a window is chosen, and one that comes with another or by a wrong pull.
const BIASED: f64 = 0.5;
const BIASED_AT_ONCE: f64 = 0.2;

/// What a walk says: unbiased, so that single ones may be above 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cycle {
    /// The chance that the array is lost.
    pub(crate) array: f64,
    /// The chance that it or a sector is.
    pub(crate) any: f64,
    /// Defects to be expected that hit something exposed.
    pub(crate) defects: f64,
    /// The weight of all ends: 1 on average.
    pub(crate) mass: f64,
}

/// A number above 0 and below 1.
pub(super) fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// A walk under way.
pub(super) struct Walk<'w> {
    pub(super) model: &'w Model,
    pub(super) array: &'w mut Array,
    pub(super) method: Method,
    pub(super) state: &'w mut State,
    pub(super) random: Random,
    pub(super) until: f64,
    weight: f64,
    /// The chance that no sector was lost on this walk.
    intact: f64,
    cycle: Cycle,
    is_over: bool,
}

impl<'w> Walk<'w> {
    pub(super) fn new(
        model: &'w Model,
        array: &'w mut Array,
        method: Method,
        state: &'w mut State,
        (seed, until): (u64, f64),
    ) -> Self {
        let random = Random::new(seed);
        let cycle = Cycle::default();
        let is_over = false;
        Self {
            model,
            array,
            method,
            state,
            random,
            until,
            weight: 1.0,
            intact: 1.0,
            cycle,
            is_over,
        }
    }

    /// From a state into which a drive was just lost.
    pub(super) fn run(mut self) -> Cycle {
        self.entered();
        while !self.is_over {
            self.step();
        }
        self.cycle
    }

    fn unit(&mut self) -> f64 {
        unit(self.random.next_u64())
    }

    /// The array is lost with this chance.
    fn lose(&mut self, chance: f64) {
        self.cycle.array += self.weight * chance;
        self.cycle.any += self.weight * self.intact * chance;
        self.cycle.mass += self.weight * chance;
    }

    fn end(&mut self) {
        self.cycle.mass += self.weight;
        self.is_over = true;
    }

    /// Chooses between two things with these chances and weighs the choice.
    fn choose(&mut self, yes: f64, no: f64, biased: f64) -> bool {
        let all = yes + no;
        if all <= 0.0 {
            // Nothing is left of this walk.
            self.weight = 0.0;
            self.is_over = true;
            return false;
        }
        let often = if yes <= 0.0 || no <= 0.0 || !self.method.is_biased() {
            yes / all
        } else {
            biased.max(yes / all)
        };
        let is_yes = self.unit() < often;
        self.weight *= if is_yes { yes / often } else { no / (1.0 - often) };
        is_yes
    }

    /// After a loss: what defects make of it, and whether it takes others with it.
    fn entered(&mut self) {
        self.look_for_defects();
        if self.model.common_cause > 0.0 {
            self.lose_another(self.model.common_cause, false);
        }
    }

    fn look_for_defects(&mut self) {
        let number = self.state.number;
        let latent = &self.model.latent;
        let (mut intact, mut mean) = (1.0, 0.0);
        for drive in 0..self.state.slots.len() {
            let part = self.array.exposed(number)[drive];
            let slot = &mut self.state.slots[drive];
            if part == 0.0 || slot.is_down {
                continue;
            }
            let hours = self.state.now - slot.clean;
            intact *= 1.0 - latent.chance(hours, part);
            mean += match latent.law {
                Law::Independent => part * latent.mean(hours),
                Law::OneAtATime | Law::PerRebuild => latent.chance(hours, part),
            };
            // Whoever goes on from here had none.
            if part == 1.0 {
                slot.clean = self.state.now;
            }
        }
        self.cycle.defects += self.weight * mean;
        self.cycle.any += self.weight * self.intact * (1.0 - intact);
        self.intact *= intact;
    }

    /// With this chance a random drive that is there is lost now as well.
    fn lose_another(&mut self, chance: f64, is_pulled: bool) {
        let number = self.state.number;
        let exposed = |array: &Array, drive: usize| array.exposed(number)[drive] > 0.0;
        let there = self.state.there(|_| true).count();
        let critical = self.state.there(|drive| exposed(self.array, drive)).count();
        if there == 0 {
            return;
        }
        let share = critical as f64 / there as f64;
        let is_conditional = self.method.is_conditional();
        let yes = if is_conditional { chance * (1.0 - share) } else { chance };
        if is_conditional && critical > 0 {
            self.lose(chance * share);
        }
        if !self.choose(yes, 1.0 - chance, BIASED_AT_ONCE) {
            return;
        }
        let wanted = |drive: usize| !is_conditional || !exposed(self.array, drive);
        let candidates = if is_conditional { there - critical } else { there };
        let nth = self.random.below(candidates as u64) as usize;
        let Some(drive) = self.state.there(wanted).nth(nth) else { return };
        self.go_on_without(drive, number, is_pulled);
    }

    /// A drive is lost: the end, or a state that is worse.
    fn go_on_without(&mut self, drive: usize, number: usize, is_pulled: bool) {
        if self.array.exposed(number)[drive] > 0.0 {
            self.lose(1.0);
            self.is_over = true;
            return;
        }
        let units = Units { replace: self.unit(), rebuild: self.unit() };
        self.state.lose((self.model, self.array), drive as u16, units, is_pulled);
        self.entered();
    }

    /// One of the drives that `counts`, by how likely each fails first until `end`, and when; with the chance density
    /// that the weight needs.
    fn failure(&mut self, end: f64, of: f64, counts: impl Fn(&Array, usize) -> bool) -> Failure {
        let mut left = self.unit() * of;
        let mut chosen = (0, 0.0);
        for drive in 0..self.state.slots.len() {
            let expected = self.state.expected(self.model, drive, end);
            if expected == 0.0 || !counts(self.array, drive) {
                continue;
            }
            chosen = (drive, expected);
            left -= expected;
            if left < 0.0 {
                break;
            }
        }
        let part = self.unit() * chosen.1;
        let at = self.state.time_of(self.model, chosen.0, part).clamp(self.state.now, end);
        let drives = 0..self.state.slots.len();
        let before: f64 = drives.map(|drive| self.state.expected(self.model, drive, at)).sum();
        Failure { drive: chosen.0, at, chance: of * libm::exp(-before) }
    }

    fn step(&mut self) {
        if self.state.down.is_empty() {
            return self.end();
        }
        let number = self.state.number;
        let (end, event) = self.state.next(self.until);
        let (mut all, mut critical, mut exposed) = (0.0, 0.0, 0.0);
        for drive in 0..self.state.slots.len() {
            let expected = self.state.expected(self.model, drive, end);
            let part = self.array.exposed(number)[drive];
            all += expected;
            if part > 0.0 && expected > 0.0 {
                critical += expected;
            }
            if !self.state.slots[drive].is_down {
                exposed += part;
            }
        }
        self.defects_until(end, exposed);
        let mut others = all;
        if self.method.is_conditional() && critical > 0.0 {
            others = if critical == all { 0.0 } else { (all - critical).max(0.0) };
            let chance = if others == 0.0 {
                -libm::expm1(-all)
            } else {
                let is_critical = |array: &Array, drive| array.exposed(number)[drive] > 0.0;
                self.failure(end, critical, is_critical).chance
            };
            self.lose(chance);
        }
        let none = libm::exp(-all);
        let failure = (others > 0.0).then(|| {
            let is_conditional = self.method.is_conditional();
            let counts =
                |array: &Array, drive| !is_conditional || array.exposed(number)[drive] == 0.0;
            self.failure(end, others, counts)
        });
        let yes = failure.as_ref().map_or(0.0, |failure| failure.chance);
        if self.choose(yes, none, BIASED) {
            let Some(failure) = failure else { return };
            self.state.now = failure.at;
            return self.go_on_without(failure.drive, number, false);
        }
        if self.is_over {
            return;
        }
        self.state.now = end;
        match event {
            Event::End => self.end(),
            Event::Back(index) => {
                self.state.bring_back(self.array, index);
            }
            Event::Swap(index) => {
                self.state.swaps.swap_remove(index);
                self.lose_another(self.model.wrong_pull, true);
            }
        }
    }

    /// Defects that come until `end` on what is exposed and not yet read.
    fn defects_until(&mut self, end: f64, exposed: f64) {
        let latent = &self.model.latent;
        if !latent.while_rebuilding || exposed == 0.0 || latent.law == Law::PerRebuild {
            return;
        }
        let mean = exposed * latent.rate * self.state.unread(end);
        let chance = -libm::expm1(-mean);
        self.cycle.defects += self.weight * mean;
        self.cycle.any += self.weight * self.intact * chance;
        self.intact *= 1.0 - chance;
    }
}

/// Who fails and when.
struct Failure {
    drive: usize,
    at: f64,
    /// What to weigh it with.
    chance: f64,
}

#[cfg(test)]
mod tests {
    use raidlab_core::Sectors;

    use super::*;
    use crate::prior::Class;

    /// A drive is read as a whole only where all of it has no other copy: of raid10 on three drives half of each.
    #[test]
    fn only_what_was_read_whole_is_known_to_be_good() {
        for (layout, share, known) in [("raid1(2)", 1.0, 100.0), ("raid10(3) chunk=64K", 0.5, 0.0)]
        {
            let layout = layout.parse().expect("a layout");
            let mut array = Array::new(&layout, Sectors(1 << 21)).expect("fits");
            let model = Model { common_cause: 0.0, ..Model::usual(Class::HardDisk) };
            let mut state = State::new(&model, &mut array, 1.0);
            state.now = 100.0;
            let units = Units { replace: 0.5, rebuild: 0.5 };
            state.lose((&model, &mut array), 0, units, false);
            assert_eq!(array.exposed(state.number)[1], share, "{layout}");
            let mut walk = Walk::new(&model, &mut array, Method::Both, &mut state, (1, 1e5));
            walk.look_for_defects();
            assert!(walk.cycle.any > 0.0, "{layout}");
            assert_eq!(state.slots[1].clean, known, "{layout}");
        }
    }
}
