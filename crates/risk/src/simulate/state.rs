//! The drives of an array at one moment.

use crate::array::Array;
use crate::model::{Model, RepairOrder};

/// A place for a drive.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// When its drive was of age 0.
    pub(super) born: f64,
    /// What the batch makes of its failure rate.
    pub(super) factor: f64,
    /// It had no defect then.
    pub(super) clean: f64,
    /// When it fails, if the story goes on as drawn.
    pub(super) fails_at: f64,
    pub(super) is_down: bool,
    /// How often its future was drawn.
    pub(super) drawn: u64,
}

/// A drive that is gone.
#[derive(Clone, Debug)]
pub(super) struct Down {
    pub(super) drive: u16,
    pub(super) rebuild_from: f64,
    pub(super) back_at: f64,
    /// It was a good one, pulled by mistake.
    pub(super) is_same: bool,
}

/// Numbers from 0 to 1 for a replacement and a rebuild.
#[derive(Clone, Copy)]
pub(super) struct Units {
    pub(super) replace: f64,
    pub(super) rebuild: f64,
}

/// What happens next besides failures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// This of the drives that are gone is back.
    Back(usize),
    /// A person changes a drive: which of the changes to come.
    Swap(usize),
    /// The time looked at is over.
    End,
}

#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) now: f64,
    pub(super) slots: Vec<Slot>,
    pub(super) down: Vec<Down>,
    /// When each spare is there.
    spares: Vec<f64>,
    /// When a person changes a drive.
    pub(super) swaps: Vec<f64>,
    /// The array's number of the state.
    pub(super) number: usize,
    /// So many drives in a row are of one array.
    together: u16,
}

impl State {
    pub(super) fn new(model: &Model, array: &mut Array, factor: f64) -> Self {
        let slot = Slot {
            born: -model.age,
            factor,
            clean: 0.0,
            fails_at: f64::INFINITY,
            is_down: false,
            drawn: 0,
        };
        Self {
            slots: vec![slot; usize::from(array.drives())],
            together: array.together(),
            number: array.whole(),
            spares: vec![0.0; usize::from(model.spares)],
            ..Self::default()
        }
    }

    /// Becomes another, without new memory.
    pub(super) fn copy(&mut self, other: &Self) {
        self.now = other.now;
        self.slots.clone_from(&other.slots);
        self.down.clone_from(&other.down);
        self.spares.clone_from(&other.spares);
        self.swaps.clone_from(&other.swaps);
        self.number = other.number;
        self.together = other.together;
    }

    /// The failures to be expected of a drive from now to `until`.
    pub(super) fn expected(&self, model: &Model, drive: usize, until: f64) -> f64 {
        let slot = &self.slots[drive];
        if slot.is_down {
            return 0.0;
        }
        let ages = (until - slot.born, self.now - slot.born);
        slot.factor * (model.hazard.cumulative(ages.0) - model.hazard.cumulative(ages.1))
    }

    /// When a drive has used up so many failures to be expected from now on.
    pub(super) fn time_of(&self, model: &Model, drive: usize, expected: f64) -> f64 {
        let slot = &self.slots[drive];
        let now = model.hazard.cumulative(self.now - slot.born);
        slot.born + model.hazard.age_at(now + expected / slot.factor)
    }

    /// A drive fails now, or is pulled.
    pub(super) fn lose(
        &mut self,
        (model, array): (&Model, &mut Array),
        drive: u16,
        units: Units,
        is_pulled: bool,
    ) {
        self.slots[usize::from(drive)].is_down = true;
        let mut rebuild_from = self.now;
        if !is_pulled {
            let arrives = self.now + model.replace.at(units.replace);
            let first = self.spares.iter_mut().min_by(|one, other| one.total_cmp(other));
            match first {
                Some(spare) if *spare <= arrives => {
                    rebuild_from = spare.max(self.now);
                    *spare = arrives;
                }
                _ => rebuild_from = arrives,
            }
            if model.wrong_pull > 0.0 {
                self.swaps.push(arrives);
            }
        }
        if model.order == RepairOrder::Serial {
            let of_array = |down: &&Down| down.drive / self.together == drive / self.together;
            let before = self.down.iter().filter(of_array).map(|down| down.back_at);
            rebuild_from = before.fold(rebuild_from, f64::max);
        }
        let back_at = rebuild_from + model.rebuild.at(units.rebuild);
        self.down.push(Down { drive, rebuild_from, back_at, is_same: is_pulled });
        self.number = array.changed(self.number, drive);
    }

    /// A drive is back: rebuilt, so that nothing on it is unreadable.
    pub(super) fn bring_back(&mut self, array: &mut Array, index: usize) -> u16 {
        let down = self.down.swap_remove(index);
        let slot = &mut self.slots[usize::from(down.drive)];
        slot.is_down = false;
        slot.clean = self.now;
        if !down.is_same {
            slot.born = self.now;
            slot.factor = 1.0;
        }
        self.number = array.changed(self.number, down.drive);
        down.drive
    }

    /// The next that happens besides failures, and when.
    pub(super) fn next(&self, until: f64) -> (f64, Event) {
        let mut next = (until, Event::End);
        for (index, down) in self.down.iter().enumerate() {
            if down.back_at < next.0 {
                next = (down.back_at, Event::Back(index));
            }
        }
        for (index, swap) in self.swaps.iter().enumerate() {
            if *swap < next.0 {
                next = (*swap, Event::Swap(index));
            }
        }
        next
    }

    /// Hours from now to `until`, each weighed by what the rebuild that ends first has not read yet.
    pub(super) fn unread(&self, until: f64) -> f64 {
        let first = self.down.iter().min_by(|one, other| one.back_at.total_cmp(&other.back_at));
        let Some(down) = first else { return 0.0 };
        let waiting = (until.min(down.rebuild_from) - self.now).max(0.0);
        let (from, to) = (self.now.max(down.rebuild_from), until.min(down.back_at));
        let whole = down.back_at - down.rebuild_from;
        if to <= from || whole <= 0.0 {
            return waiting;
        }
        let left = |at: f64| (down.back_at - at) / whole;
        waiting + (to - from) * (left(from) + left(to)) / 2.0
    }

    /// Drives that are there, of which `wanted` holds.
    pub(super) fn there(&self, wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        slots.filter(move |(at, slot)| !slot.is_down && wanted(*at)).map(|(at, _)| at)
    }

    /// Whoever fails next of those that are there, and when.
    pub(super) fn next_failure(&self) -> (f64, u16) {
        let times = self.there(|_| true).map(|drive| (self.slots[drive].fails_at, drive as u16));
        times.fold((f64::INFINITY, 0), |one, other| if other.0 < one.0 { other } else { one })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new drive is of no bad batch and of age 0; one that was pulled by mistake comes back as it was.
    #[test]
    fn a_new_drive_is_of_another_batch() {
        let layout = "raid1(3)".parse().expect("one");
        let mut array = Array::new(&layout, raidlab_core::Sectors(1 << 30)).expect("fits");
        let model = Model { age: 5_000.0, ..Model::plain(0.05, 10.0) };
        let mut state = State::new(&model, &mut array, 3.0);
        let whole = |state: &State, drive| state.expected(&model, drive, state.now + 100.0);
        let of_batch = whole(&state, 2);
        for (drive, is_pulled) in [(0, false), (1, true)] {
            let units = Units { replace: 0.5, rebuild: 0.5 };
            state.lose((&model, &mut array), drive, units, is_pulled);
            state.now = 50.0;
            assert_eq!(state.bring_back(&mut array, 0), drive);
            let slot = &state.slots[usize::from(drive)];
            let born = if is_pulled { -5_000.0 } else { 50.0 };
            assert_eq!((slot.born, slot.clean), (born, 50.0));
        }
        let ratio = |drive| whole(&state, drive) / of_batch;
        assert!((ratio(0) * 3.0 - 1.0).abs() < 1e-9, "{}", ratio(0));
        assert!((ratio(1) - 1.0).abs() < 1e-9, "{}", ratio(1));
    }

    /// A spare stands in at once and is away until a person has brought another; who finds none waits for whoever is
    /// there first.
    #[test]
    fn a_spare_stands_in_once_until_it_is_replaced() {
        let layout = "raid6(8)".parse().expect("one");
        let mut array = Array::new(&layout, raidlab_core::Sectors(1 << 30)).expect("fits");
        let replace = crate::span::Span::Fixed(72.0);
        let model = Model { spares: 1, replace, ..Model::plain(0.05, 10.0) };
        let mut state = State::new(&model, &mut array, 1.0);
        let lost = |state: &mut State, array: &mut Array, drive: u16, now: f64| {
            state.now = now;
            let units = Units { replace: 0.5, rebuild: 0.5 };
            state.lose((&model, array), drive, units, false);
            let down = &state.down[state.down.len() - 1];
            (down.rebuild_from, down.back_at)
        };
        assert_eq!(lost(&mut state, &mut array, 0, 100.0), (100.0, 110.0), "the spare");
        assert_eq!(
            lost(&mut state, &mut array, 1, 130.0),
            (172.0, 182.0),
            "the one that comes for the first"
        );
        // Only now both are back, and the place of the second is filled at 202.
        let back = [state.bring_back(&mut array, 0), state.bring_back(&mut array, 0)];
        assert_eq!(back, [0, 1]);
        assert_eq!(
            lost(&mut state, &mut array, 2, 210.0),
            (210.0, 220.0),
            "the one that came for the second"
        );
        assert!(state.swaps.is_empty(), "nobody pulls a wrong one");
        // Who comes for the second may be there before the one who brings the spare.
        let replace = crate::span::Span::Uniform(0.0, 100.0);
        let model = Model { spares: 1, replace, ..Model::plain(0.05, 10.0) };
        let mut state = State::new(&model, &mut array, 1.0);
        for (drive, replace, from) in [(0, 0.9, 0.0), (1, 0.1, 20.0), (2, 0.95, 90.0)] {
            state.now = 10.0 * f64::from(drive);
            let units = Units { replace, rebuild: 0.5 };
            state.lose((&model, &mut array), drive, units, false);
            assert_eq!(state.down[state.down.len() - 1].rebuild_from, from, "drive {drive}");
            if drive == 1 {
                let back = [state.bring_back(&mut array, 0), state.bring_back(&mut array, 0)];
                assert_eq!(back, [0, 1]);
            }
        }
    }

    /// What is not read yet is all of it until the rebuild begins, and falls evenly to nothing at its end.
    #[test]
    fn a_rebuild_reads_evenly_from_when_it_begins() {
        let layout = "raid5(4)".parse().expect("one");
        let mut array = Array::new(&layout, raidlab_core::Sectors(1 << 30)).expect("fits");
        let replace = crate::span::Span::Fixed(10.0);
        let model = Model { replace, ..Model::plain(0.05, 20.0) };
        let mut state = State::new(&model, &mut array, 1.0);
        assert_eq!(state.unread(30.0), 0.0, "nothing is rebuilt");
        let units = Units { replace: 0.5, rebuild: 0.5 };
        state.lose((&model, &mut array), 0, units, false);
        for (now, until, hours) in [
            (0.0, 30.0, 20.0),
            (0.0, 10.0, 10.0),
            (0.0, 4.0, 4.0),
            (10.0, 30.0, 10.0),
            (10.0, 20.0, 7.5),
            (20.0, 30.0, 2.5),
            (5.0, 20.0, 12.5),
            (20.0, 99.0, 2.5),
        ] {
            state.now = now;
            assert!((state.unread(until) - hours).abs() < 1e-9, "{now} to {until}");
        }
    }
}
