//! Which files are dirty, by when they became so.

use std::collections::VecDeque;

use raidlab_core::units::Time;

/// Files by when they became dirty. One that is not any more, or became so anew, stays in the line until it
/// comes to its front: what a file itself says counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ages {
    line: VecDeque<(Time, u64)>,
    /// How many in it count, as told.
    count: usize,
}

impl Ages {
    /// A file became dirty at a time that is no earlier than those before.
    pub(super) fn add(&mut self, at: Time, file: u64) {
        self.count += 1;
        let later = self.line.iter().rev().take_while(|other| **other > (at, file)).count();
        let index = self.line.len() - later;
        if self.line.get(index.wrapping_sub(1)) != Some(&(at, file)) {
            self.line.insert(index, (at, file));
        }
    }

    /// A file is not dirty any more; `dirtied` says of all whether they are, and since when.
    pub(super) fn remove(&mut self, dirtied: impl Fn(u64) -> Option<Time>) {
        self.count -= 1;
        let counts = |(at, file): &(Time, u64)| dirtied(*file) == Some(*at);
        while self.line.front().is_some_and(|first| !counts(first)) {
            self.line.pop_front();
        }
        if self.line.len() > 2 * self.count + 64 {
            self.line.retain(counts);
        }
    }

    /// When the first became dirty.
    #[inline]
    pub(super) fn first(&self) -> Option<Time> {
        self.line.front().map(|(at, _)| *at)
    }

    /// All that are dirty, the first first; `dirtied` says whether they are, and since when.
    pub(super) fn iter(
        &self,
        dirtied: impl Fn(u64) -> Option<Time>,
    ) -> impl Iterator<Item = (Time, u64)> {
        let all = self.line.iter().copied();
        all.filter(move |(at, file)| dirtied(*file) == Some(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_dirty_comes_by_age_whatever_was_before() {
        let mut ages = Ages::default();
        let mut dirty: BTreeMap<u64, Time> = BTreeMap::new();
        let mut state = 7u64;
        for step in 0..5_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let file = (state >> 33) % 200;
            let now = Time(step / 7);
            match dirty.remove(&file) {
                Some(_) => ages.remove(|file| dirty.get(&file).copied()),
                None => {
                    dirty.insert(file, now);
                    ages.add(now, file);
                }
            }
            let mut expected: Vec<_> = dirty.iter().map(|(file, at)| (*at, *file)).collect();
            expected.sort_unstable();
            let all: Vec<_> = ages.iter(|file| dirty.get(&file).copied()).collect();
            assert_eq!(all, expected, "step {step}");
            assert_eq!(ages.first(), expected.first().map(|(at, _)| *at), "step {step}");
            assert!(ages.line.len() <= 2 * expected.len() + 65);
        }
    }
}
