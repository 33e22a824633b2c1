//! The host's CPU: one server, first come first served.

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

/// The CPU as a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) free: Time,
    pub(crate) busy: Nanos,
}

impl Cpu {
    /// When work of `cost` that comes at `now` is done.
    pub(crate) fn serve(&mut self, now: Time, cost: Nanos) -> Time {
        self.free = self.free.max(now) + cost;
        self.busy += cost;
        self.free
    }
}

impl HostCosts {
    /// CPU time of parity over `bytes` of operands.
    pub(crate) fn parity(&self, bytes: u64) -> Nanos {
        let rate = u128::from(self.parity_rate.max(1));
        Nanos((u128::from(bytes) * 1_000_000_000 / rate) as u64)
    }
}
