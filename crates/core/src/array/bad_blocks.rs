//! Sectors of a member that cannot be read: a short sorted list of ranges.

/// Ranges of sectors that do not touch, in order. Room is taken at set-up.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct BadBlocks {
    ranges: Vec<(u64, u64)>,
    most: usize,
}

impl BadBlocks {
    pub(super) fn new(most: u16) -> Self {
        // One more: taking a piece out of a range's middle makes two of it.
        Self { ranges: Vec::with_capacity(usize::from(most) + 1), most: usize::from(most) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges in order, first sector and one past the last.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().copied()
    }

    /// The first bad sector in `from..to`.
    pub(super) fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        let index = self.ranges.partition_point(|range| range.1 <= from);
        let range = self.ranges.get(index)?;
        (range.0 < to).then(|| range.0.max(from))
    }

    /// Adds a range; false when the list is full, which leaves it as it was.
    pub(super) fn insert(&mut self, mut from: u64, mut to: u64) -> bool {
        // All that overlap or touch become one.
        let first = self.ranges.partition_point(|range| range.1 < from);
        let last = self.ranges.partition_point(|range| range.0 <= to);
        if first == last {
            if self.ranges.len() >= self.most {
                return false;
            }
            self.ranges.insert(first, (from, to));
            return true;
        }
        from = from.min(self.ranges[first].0);
        to = to.max(self.ranges[last - 1].1);
        self.ranges[first] = (from, to);
        self.ranges.drain(first + 1..last);
        true
    }

    /// Takes a range out, because it was written; false when that would make two of one and there is no room, which
    /// leaves all of it listed: never less.
    #[must_use]
    pub(super) fn remove(&mut self, from: u64, to: u64) -> bool {
        let mut index = self.ranges.partition_point(|range| range.1 <= from);
        while let Some(&(start, end)) = self.ranges.get(index)
            && start < to
        {
            match (start < from, to < end) {
                (false, false) => {
                    self.ranges.remove(index);
                    continue;
                }
                (true, false) => self.ranges[index].1 = from,
                (false, true) => self.ranges[index].0 = to,
                (true, true) if self.ranges.len() < self.most => {
                    self.ranges[index].1 = from;
                    self.ranges.insert(index + 1, (to, end));
                }
                // The whole range stays listed.
                (true, true) => return false,
            }
            index += 1;
        }
        true
    }

    /// The pieces of it that lie in `from..to`, in order.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        let rest = self.ranges[first..].iter().take_while(move |range| range.0 < to);
        rest.map(move |range| (range.0.max(from), range.1.min(to)))
    }

    /// What this list or another names, in order; what overlaps or touches is one range.
    pub(super) fn with<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u64, u64)> + 'a {
        let mut left = [self.ranges.iter().peekable(), other.ranges.iter().peekable()];
        let mut next = move |most: u64| {
            let first = |at: &mut std::iter::Peekable<std::slice::Iter<'_, (u64, u64)>>| {
                at.peek().map_or(u64::MAX, |range| range.0)
            };
            let [one, two] = &mut left;
            let from = if first(one) <= first(two) { one } else { two };
            from.next_if(|range| range.0 <= most).copied()
        };
        std::iter::from_fn(move || {
            let (from, mut to) = next(u64::MAX)?;
            while let Some(more) = next(to) {
                to = to.max(more.1);
            }
            Some((from, to))
        })
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_part_like_a_set_of_sectors() {
        let mut seed = 1u64;
        let mut next = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        let mut list = BadBlocks::new(64);
        let mut known = [false; 64];
        for _ in 0..4000 {
            let from = next(60);
            let to = from + 1 + next(4);
            let bad = next(2) == 0;
            if bad {
                assert!(list.insert(from, to));
            } else {
                assert!(list.remove(from, to));
            }
            known[from as usize..to as usize].fill(bad);
            for at in 0..64 {
                assert_eq!(list.first_in(at, at + 1).is_some(), known[at as usize], "{at}");
            }
            let first = known.iter().position(|bad| *bad).map(|at| at as u64);
            assert_eq!(list.first_in(0, 64), first);
            let ranges: Vec<_> = list.iter().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn a_full_list_never_forgets() {
        let mut list = BadBlocks::new(2);
        assert!(list.insert(0, 8) && list.insert(10, 11));
        assert!(!list.insert(20, 21), "full");
        assert!(list.insert(8, 10), "joins the two");
        assert_eq!(list.iter().collect::<Vec<_>>(), [(0, 11)]);
        assert!(list.insert(20, 21));
        assert!(!list.remove(4, 5));
        assert_eq!(list.first_in(4, 5), Some(4), "no room for two halves: all stays listed");
        list.clear();
        assert!(list.is_empty());
    }

    #[test]
    fn two_lists_name_together_what_either_does() {
        let of = |ranges: &[(u64, u64)]| {
            let mut list = BadBlocks::new(8);
            assert!(ranges.iter().all(|(from, to)| list.insert(*from, *to)));
            list
        };
        let (one, two) =
            (of(&[(0, 2), (5, 6), (10, 20), (30, 31)]), of(&[(2, 5), (12, 14), (19, 22)]));
        for (one, two) in [(&one, &two), (&two, &one)] {
            assert_eq!(one.with(two).collect::<Vec<_>>(), [(0, 6), (10, 22), (30, 31)]);
        }
        assert_eq!(one.with(&of(&[])).collect::<Vec<_>>(), one.ranges);
        assert_eq!(of(&[]).with(&two).collect::<Vec<_>>(), two.ranges);
    }
}
