//! Places by when they were used.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Places by when they were used, the one longest unused first. Nearly all come in that order, and wait
/// in a line; the few others are sorted in.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    line: VecDeque<(u64, u32)>,
    others: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Turns {
    pub(super) fn push(&mut self, used: u64, place: u32) {
        if self.line.back().is_none_or(|last| *last < (used, place)) {
            self.line.push_back((used, place));
        } else {
            self.others.push(Reverse((used, place)));
        }
    }

    /// Takes out the one longest unused.
    pub(super) fn pop(&mut self) -> Option<(u64, u32)> {
        let first = self.line.front();
        match self.others.peek() {
            Some(Reverse(other)) if first.is_none_or(|first| other < first) => {
                self.others.pop().map(|Reverse(other)| other)
            }
            _ => self.line.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_comes_first_whatever_the_order() {
        let mut turns = Turns::default();
        for (used, place) in [(5, 0), (7, 1), (6, 2), (9, 3), (1, 4), (7, 0), (10, 5)] {
            turns.push(used, place);
        }
        let all: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(all, [(1, 4), (5, 0), (6, 2), (7, 0), (7, 1), (9, 3), (10, 5)]);
    }
}
