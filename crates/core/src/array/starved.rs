//! What waits for room in the tables, in order.

use std::collections::VecDeque;

/// Whatever waits for room, by slot.
#[derive(Clone, Debug, Hash)]
pub(super) struct Starved {
    pub(super) updates: VecDeque<u32>,
    pub(super) windows: VecDeque<u32>,
    pub(super) plans: VecDeque<u32>,
    pub(super) requests: VecDeque<u32>,
}

impl Starved {
    /// Room for so many of each.
    pub(super) fn new(updates: u32, windows: u32, plans: u32, requests: u32) -> Self {
        let queue = |most: u32| VecDeque::with_capacity(most as usize);
        Self {
            updates: queue(updates),
            windows: queue(windows),
            plans: queue(plans),
            requests: queue(requests),
        }
    }

    /// Whether something waits.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        !self.plans.is_empty()
            || !self.requests.is_empty()
            || !self.updates.is_empty()
            || !self.windows.is_empty()
    }
}
