//! One array from its start to the end of a mission.
//!
//! The first loss of a drive is forced into the mission. From each to when the array is whole again a [`Walk`] says how
//! likely data were lost; then the story goes on as drawn, provided that the array was not lost. So 1 less the product
//! of what the walks leave is, on average, the chance of a loss. (That no sector was lost meanwhile is known of the
//! drives, not of how long they waited: an error of second order.)
//!
//! Futures of drives and lengths of rebuilds are drawn by the numbers of path, drive and how often: what changes in the
//! model changes nothing else, so that differences between models are not noise.

use raidlab_random::{Random, mix};

use super::cycle::{Walk, unit};
use super::state::{Event, State, Units};
use super::{Losses, Method};
use crate::array::Array;
use crate::model::Model;

/// Stories in a row that lose the array before it counts as certain.
const MOST_TRIES: u64 = 2_000;
/// What remains when a story is not worth going on with.
const CERTAIN: f64 = 1e-9;

/// What one path says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Of losing the array, and of losing anything: the chance, or how often where every loss counts.
    pub(super) array: f64,
    pub(super) any: f64,
    pub(super) defects: f64,
    /// Hours with drives missing.
    pub(super) degraded: f64,
    /// The mean weight at the ends of its walks, and how many there were.
    pub(super) mass: f64,
    pub(super) cycles: f64,
}

/// What paths share.
pub(super) struct Paths<'p> {
    pub(super) model: &'p Model,
    pub(super) array: &'p mut Array,
    pub(super) method: Method,
    pub(super) losses: Losses,
    pub(super) until: f64,
    pub(super) walked: State,
    pub(super) tried: State,
    /// Stories that were told from a loss on, those that were dropped too.
    pub(super) stories: u64,
}

/// What a number is drawn for.
#[derive(Clone, Copy)]
enum For {
    Life = 1,
    Replacement,
    Rebuild,
    Walk,
    Chances,
}

impl Paths<'_> {
    /// One path by its number, with what the batch makes of the first drives' failure rate.
    pub(super) fn path(&mut self, seed: u64, factor: f64) -> Sums {
        let mut state = State::new(self.model, self.array, factor);
        let drives = state.slots.len();
        let each = state.expected(self.model, 0, self.until);
        let forced = -libm::expm1(-each * drives as f64);
        let mut told = Sums::default();
        if forced == 0.0 {
            return told;
        }
        let mut story =
            Story { seed, salt: 0, random: Random::new(mix(&[seed, For::Chances as u64])) };
        // The first of equal drives, before the end.
        let expected = -libm::log1p(-forced * story.chance()) / drives as f64;
        let first = story.random.below(drives as u64) as u16;
        state.now = state.time_of(self.model, 0, expected).min(self.until);
        (0..drives).for_each(|drive| story.draw_life(self.model, &mut state, drive));
        let units = story.units(&state, first);
        state.lose((self.model, self.array), first, units, false);
        let (mut array, mut any) = (1.0, 1.0);
        loop {
            told.cycles += 1.0;
            let seed = mix(&[story.seed, For::Walk as u64, told.cycles as u64]);
            self.walked.copy(&state);
            let walk = Walk::new(
                self.model,
                self.array,
                self.method,
                &mut self.walked,
                (seed, self.until),
            );
            let cycle = walk.run();
            told.mass += cycle.mass;
            told.defects += array * cycle.defects;
            if self.losses == Losses::Every {
                told.array += cycle.array;
                told.any += cycle.any;
            }
            array *= 1.0 - cycle.array;
            any *= 1.0 - cycle.any;
            // No story without a loss is looked for where there is as good as none.
            if any.abs() < CERTAIN && array.abs() < CERTAIN {
                break;
            }
            let began = state.now;
            let goes_on = self.go_on(&mut story, &mut state);
            told.degraded += array * (state.now - began);
            if !goes_on || !self.next_loss(&mut story, &mut state) {
                break;
            }
        }
        if self.losses == Losses::First {
            (told.array, told.any) = (1.0 - array, 1.0 - any);
        }
        told.array *= forced;
        told.any *= forced;
        told.defects *= forced;
        told.degraded *= forced;
        told
    }

    /// From a loss to when the array is whole, by a story in which it is not lost. Whether one was found in time.
    fn go_on(&mut self, story: &mut Story, state: &mut State) -> bool {
        self.tried.copy(state);
        for attempt in 0..MOST_TRIES {
            self.stories += 1;
            if attempt > 0 {
                state.copy(&self.tried);
                story.salt += 1;
                let there: Vec<usize> = state.there(|_| true).collect();
                there.into_iter().for_each(|drive| story.draw_life(self.model, state, drive));
            }
            if self.recovers(story, state) {
                return state.now < self.until;
            }
        }
        false
    }

    /// Whether the array is whole again, or the mission over, without being lost.
    fn recovers(&mut self, story: &mut Story, state: &mut State) -> bool {
        if !self.lose_with_it(story, state) {
            return false;
        }
        while !state.down.is_empty() {
            let (failure, drive) = state.next_failure();
            let (end, event) = state.next(self.until);
            if failure < end {
                state.now = failure;
                if !self.lose(story, state, usize::from(drive), false) {
                    return false;
                }
                continue;
            }
            state.now = end;
            match event {
                Event::End => return true,
                Event::Back(index) => {
                    let drive = usize::from(state.bring_back(self.array, index));
                    story.draw_life(self.model, state, drive);
                }
                Event::Swap(index) => {
                    state.swaps.swap_remove(index);
                    let is_wrong = story.chance() < self.model.wrong_pull;
                    if is_wrong && !self.lose_any(story, state, true) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// A drive is lost; false where that loses the array and only the first loss counts.
    fn lose(&mut self, story: &mut Story, state: &mut State, drive: usize, pulled: bool) -> bool {
        if self.array.exposed(state.number)[drive] > 0.0 && self.losses == Losses::First {
            return false;
        }
        let units = story.units(state, drive as u16);
        state.lose((self.model, self.array), drive as u16, units, pulled);
        self.lose_with_it(story, state)
    }

    /// Drives without a defect, as the story goes on; and whether another drive goes with the last one.
    fn lose_with_it(&mut self, story: &mut Story, state: &mut State) -> bool {
        let exposed = self.array.exposed(state.number);
        for (slot, part) in state.slots.iter_mut().zip(exposed) {
            if *part == 1.0 && !slot.is_down {
                slot.clean = state.now;
            }
        }
        let chance = self.model.common_cause;
        if chance > 0.0 && story.chance() < chance {
            return self.lose_any(story, state, false);
        }
        true
    }

    fn lose_any(&mut self, story: &mut Story, state: &mut State, pulled: bool) -> bool {
        let there = state.there(|_| true).count() as u64;
        let nth = story.random.below(there) as usize;
        let drive = state.there(|_| true).nth(nth);
        drive.is_none_or(|drive| self.lose(story, state, drive, pulled))
    }

    /// From a whole array to the next lost drive; whether there is one before the end.
    fn next_loss(&mut self, story: &mut Story, state: &mut State) -> bool {
        loop {
            let (failure, drive) = state.next_failure();
            let (end, event) = state.next(self.until);
            if failure < end {
                state.now = failure;
                let units = story.units(state, drive);
                state.lose((self.model, self.array), drive, units, false);
                return true;
            }
            let Event::Swap(index) = event else { return false };
            state.now = end;
            state.swaps.swap_remove(index);
            if story.chance() < self.model.wrong_pull {
                let drive = story.random.below(state.slots.len() as u64) as u16;
                let units = story.units(state, drive);
                state.lose((self.model, self.array), drive, units, true);
                return true;
            }
        }
    }
}

/// Where a path's numbers come from.
struct Story {
    seed: u64,
    /// How many stories were dropped.
    salt: u64,
    random: Random,
}

impl Story {
    fn chance(&mut self) -> f64 {
        unit(self.random.next_u64())
    }

    fn number(&self, what: For, drive: usize, time: u64) -> f64 {
        unit(mix(&[self.seed, self.salt, what as u64, drive as u64, time]))
    }

    /// The future of a drive that is there now.
    fn draw_life(&self, model: &Model, state: &mut State, drive: usize) {
        let expected = -libm::log(self.number(For::Life, drive, state.slots[drive].drawn));
        state.slots[drive].drawn += 1;
        state.slots[drive].fails_at = state.time_of(model, drive, expected);
    }

    fn units(&self, state: &State, drive: u16) -> Units {
        let drive = usize::from(drive);
        let time = state.slots[drive].drawn;
        let number = |what| self.number(what, drive, time);
        Units { replace: number(For::Replacement), rebuild: number(For::Rebuild) }
    }
}
