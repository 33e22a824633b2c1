//! The cores of the modelled host.

use raidlab_core::{Nanos, Time};
use raidlab_sim::World;

/// Cores, each first come, first served. The first is the world's CPU, which also does what requests
/// and parity cost; the others do nothing else than what processes need.
#[derive(Debug)]
pub(super) struct Cores {
    /// When each of the others is free, and how long it has worked.
    others: Vec<(Time, Nanos)>,
}

impl Cores {
    pub(super) fn new(cores: u32) -> Self {
        Self { others: vec![(Time::ZERO, Nanos::ZERO); cores as usize - 1] }
    }

    /// Work of `cost` that comes now; says when it is done. It goes to the last core that is idle,
    /// else to the one that is free first.
    pub(super) fn serve(&mut self, world: &mut World, cost: Nanos) -> Time {
        if self.others.is_empty() {
            return world.work(cost);
        }
        let now = world.now();
        let others = self.others.iter().map(|(free, _)| *free);
        let free = std::iter::once(world.cpu_free()).chain(others).map(|free| free.max(now));
        let first = free.enumerate().min_by_key(|(core, free)| (*free, usize::MAX - core));
        match first.map_or(0, |(core, _)| core).checked_sub(1) {
            None => world.work(cost),
            Some(other) => {
                let (free, busy) = &mut self.others[other];
                *free = (*free).max(now) + cost;
                *busy += cost;
                *free
            }
        }
    }

    /// How long each core has worked.
    pub(super) fn busy(&self, world: &World) -> Vec<Nanos> {
        let others = self.others.iter().map(|(_, busy)| *busy);
        std::iter::once(world.cpu_busy()).chain(others).collect()
    }
}
