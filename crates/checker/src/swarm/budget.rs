//! How much harm an array survives, counted apart from the array: no more than that is done to it,
//! unless a run means to go beyond.

use crate::shape::{Set, Shape};

/// Members that something is wrong with, a bit each: failed, gone, stale, being rebuilt, or with a
/// sector that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) harmed: Set,
    /// Redundancy is not consistent everywhere: no level with parity can lose a member now.
    pub(super) unsynced: bool,
    /// Copies or parity may disagree somewhere, until redundancy is made consistent.
    pub(super) disagrees: bool,
    /// More was done than the level survives.
    pub(super) beyond: bool,
}

impl Budget {
    /// Whether one more member may be harmed within what the array survives.
    /// `in_service`: the array uses it now.
    pub(super) fn allows(&self, shape: &Shape, member: u16, in_service: bool) -> bool {
        if self.unsynced && in_service {
            return false;
        }
        shape.survives(self.harmed | 1 << member)
    }
}
