//! The host's cores, each a server: first come, first served.

use raidlab_core::{Nanos, Time};

/// What the host's CPU costs. Defaults are round figures of a present-day server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// CPU time of one request: system call, block layer and interrupt. Default 5 µs: a 4 KiB
    /// direct read through io_uring cost 4 to 8 µs on an EPYC virtual machine.
    pub request: Nanos,
    /// Bytes of parity operands read per second. Default 8 GB/s: XOR of data out of the cache on
    /// one core.
    pub parity_rate: u64,
}

impl Default for HostCosts {
    fn default() -> Self {
        Self { request: Nanos::from_micros(5), parity_rate: 8_000_000_000 }
    }
}

/// A core.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    free: Time,
    busy: Nanos,
}

impl Core {
    fn serve(&mut self, now: Time, cost: Nanos) -> Time {
        self.free = self.free.max(now) + cost;
        self.busy += cost;
        self.free
    }
}

/// The cores. Requests and parity are always worked on by the first, so that they go out in order; the others do what
/// processes need, and the first does when they leave it time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cores {
    first: Core,
    others: Vec<Core>,
}

impl Cores {
    /// How many there are, at least one.
    pub(crate) fn set_count(&mut self, cores: u32) {
        self.others.resize(cores.saturating_sub(1) as usize, Core::default());
    }

    /// When work on a request that costs so much and comes at `now` is done.
    #[inline]
    pub(crate) fn serve_request(&mut self, now: Time, cost: Nanos) -> Time {
        self.first.serve(now, cost)
    }

    /// The same for a process: by the last core that is idle, else by the one that is free first.
    #[inline]
    pub(crate) fn serve_process(&mut self, now: Time, cost: Nanos) -> Time {
        let mut chosen = &mut self.first;
        for core in &mut self.others {
            if core.free.max(now) <= chosen.free.max(now) {
                chosen = core;
            }
        }
        chosen.serve(now, cost)
    }

    /// When the first has done all that it was given so far.
    #[inline]
    pub(crate) fn first_free(&self) -> Time {
        self.first.free
    }

    /// How long each has worked.
    pub(crate) fn busy(&self) -> impl Iterator<Item = Nanos> + '_ {
        std::iter::once(&self.first).chain(&self.others).map(|core| core.busy)
    }
}

impl HostCosts {
    /// CPU time of parity over `bytes` of operands.
    pub(crate) fn parity(&self, bytes: u64) -> Nanos {
        let rate = u128::from(self.parity_rate.max(1));
        Nanos((u128::from(bytes) * 1_000_000_000 / rate) as u64)
    }
}
