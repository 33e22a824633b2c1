//! Requests, and the two orders in which every scheduler keeps them: by sector and by age.

use std::collections::VecDeque;

use raidlab_core::units::Time;

use crate::drive::{DriveIo, DriveOp};

/// Reads are 0, writes 1.
pub(super) fn direction(op: DriveOp) -> usize {
    usize::from(op == DriveOp::Write)
}

/// A request to the drive: one or more of the host's that lie side by side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) op: DriveOp,
    pub(super) fua: bool,
    pub(super) process: u32,
    pub(super) arrived: Time,
    /// Its parts, as a list.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Request {
    pub(super) fn new(io: DriveIo, process: u32, arrived: Time, part: u32) -> Self {
        let (at, len) = (io.at.0, u64::from(io.len));
        Self { at, len, op: io.op, fua: io.fua, process, arrived, first: part, last: part }
    }

    pub(super) fn end(&self) -> u64 {
        self.at.saturating_add(self.len)
    }
}

/// All requests that exist.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    slots: Vec<Request>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self { slots: Vec::with_capacity(256), free: Vec::with_capacity(256) }
    }

    pub(super) fn get(&self, slot: u32) -> &Request {
        &self.slots[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Request {
        &mut self.slots[slot as usize]
    }

    pub(super) fn insert(&mut self, request: Request) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = request;
            slot
        } else {
            self.slots.push(request);
            self.slots.len() as u32 - 1
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

/// Waiting requests of one kind, by sector and by age: both mostly come at one end and go at the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    by_sector: VecDeque<(u64, u32)>,
    by_age: VecDeque<u32>,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.by_age.iter().copied()
    }

    /// Those that begin at a sector.
    pub(super) fn beginning_at(&self, sector: u64) -> impl Iterator<Item = u32> {
        let from = self.by_sector.partition_point(|(at, _)| *at < sector);
        let same = self.by_sector.range(from..).take_while(move |(at, _)| *at == sector);
        same.map(|(_, slot)| *slot)
    }

    /// Those that begin up to so many sectors before a sector, the nearest first: among them are all
    /// that end there and are no longer.
    pub(super) fn close_before(&self, sector: u64, longest: u64) -> impl Iterator<Item = u32> {
        let to = self.by_sector.partition_point(|(at, _)| *at < sector);
        let near = move |(at, _): &&(u64, u32)| sector - *at <= longest;
        self.by_sector.range(..to).rev().take_while(near).map(|(_, slot)| *slot)
    }

    pub(super) fn add(&mut self, at: u64, slot: u32) {
        self.place(at, slot);
        self.by_age.push_back(slot);
    }

    fn place(&mut self, at: u64, slot: u32) {
        if self.by_sector.back().is_none_or(|(last, _)| *last <= at) {
            return self.by_sector.push_back((at, slot));
        }
        let index = self.by_sector.partition_point(|(other, _)| *other <= at);
        self.by_sector.insert(index, (at, slot));
    }

    fn index(&self, at: u64, slot: u32) -> Option<usize> {
        if self.by_sector.front() == Some(&(at, slot)) {
            return Some(0);
        }
        let from = self.by_sector.partition_point(|(other, _)| *other < at);
        let mut same = self.by_sector.range(from..).take_while(|(other, _)| *other == at);
        same.position(|(_, other)| *other == slot).map(|index| from + index)
    }

    /// A request begins at another sector than before.
    pub(super) fn moved(&mut self, old: u64, at: u64, slot: u32) {
        if let Some(index) = self.index(old, slot) {
            self.by_sector.remove(index);
            self.place(at, slot);
        }
    }

    pub(super) fn remove(&mut self, at: u64, slot: u32) {
        if let Some(index) = self.index(at, slot) {
            self.by_sector.remove(index);
        }
        if self.by_age.front() == Some(&slot) {
            self.by_age.pop_front();
        } else if let Some(index) = self.by_age.iter().position(|other| *other == slot) {
            self.by_age.remove(index);
        }
    }

    /// The oldest.
    pub(super) fn oldest(&self) -> Option<u32> {
        self.by_age.front().copied()
    }

    /// The first that begins at a sector or behind it.
    pub(super) fn at_or_after(&self, sector: u64) -> Option<u32> {
        let index = self.by_sector.partition_point(|(at, _)| *at < sector);
        self.by_sector.get(index).map(|(_, slot)| *slot)
    }

    /// The first that follows a request by sector.
    pub(super) fn after(&self, at: u64, slot: u32) -> Option<u32> {
        let index = self.index(at, slot)? + 1;
        self.by_sector.get(index).map(|(_, slot)| *slot)
    }

    /// The nearest to a head that prefers to go on: the next ahead, or one behind by at most
    /// `back` sectors when it is nearer even though the way back counts double; else the first of all.
    pub(super) fn nearest(&self, head: u64, back: u64) -> Option<u32> {
        let index = self.by_sector.partition_point(|(at, _)| *at < head);
        let ahead = self.by_sector.get(index);
        let behind = index.checked_sub(1).and_then(|index| self.by_sector.get(index));
        let behind = behind.filter(|(at, _)| head - at <= back);
        let chosen = match (ahead, behind) {
            (Some(ahead), Some(behind)) if 2 * (head - behind.0) < ahead.0 - head => Some(behind),
            (Some(ahead), _) => Some(ahead),
            (None, Some(behind)) => Some(behind),
            (None, None) => self.by_sector.front(),
        };
        chosen.map(|(_, slot)| *slot)
    }
}

/// A mean in which the past fades by an eighth with every sample, as both schedulers with memory keep it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fading {
    samples: u32,
    mean: u64,
}

impl Fading {
    pub(super) fn add(&mut self, value: u64) {
        self.mean = if self.samples == 0 { value } else { (self.mean * 7 + value) / 8 };
        self.samples = self.samples.saturating_add(1);
    }

    /// The mean, when there is any sample.
    pub(super) fn mean(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use raidlab_random::SplitMix64;

    use super::*;

    /// Against all distances at once: of those ahead, and of those behind by no more than `back`, the least where the
    /// way back counts double; ahead, if both are as far; the first of all, if there is none.
    #[test]
    fn the_nearest_is_the_least_way_with_the_way_back_double() {
        let mut random = SplitMix64::new(5);
        let mut behind = 0;
        for _ in 0..20_000 {
            let mut waiting = Waiting::default();
            let places: BTreeMap<u64, u32> =
                (0..1 + random.below(6) as u32).map(|slot| (random.below(60), slot)).collect();
            places.iter().for_each(|(at, slot)| waiting.add(*at, *slot));
            let (head, back) = (random.below(60), random.below(40));
            let way = |at: u64| match at.checked_sub(head) {
                Some(ahead) => Some((ahead, false)),
                None => (head - at <= back).then(|| (2 * (head - at), true)),
            };
            let least = places.keys().filter_map(|at| way(*at).map(|way| (way, *at))).min();
            let expected = least
                .map_or(places.keys().next(), |(_, at)| places.get_key_value(&at).map(|it| it.0));
            let found = waiting.nearest(head, back);
            assert_eq!(found, expected.map(|at| places[at]), "{places:?} from {head}, {back} back");
            behind += u32::from(least.is_some_and(|((_, back), _)| back));
        }
        assert!(behind > 1000, "{behind}");
    }
}
