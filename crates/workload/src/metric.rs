//! What is measured, and in which unit.

use raidlab_core::Nanos;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Better {
    /// A rate.
    Higher,
    /// A time.
    Lower,
}

/// What a workload measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric {
    /// The name in a results document, such as `mib_per_s`.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

impl Metric {
    /// Bytes moved by all processes, in MiB (2^20 bytes), per second until the last is done.
    pub const MIB_PER_SECOND: Self = Self::rate("mib_per_s", "MiB/s");
    /// The same in MB (10^6 bytes), as the published studies of parallel readers have it.
    pub const MB_PER_SECOND: Self = Self::rate("mb_per_s", "MB/s");
    /// Reads or writes done by all processes, per second; a flush is not counted.
    pub const OPERATIONS_PER_SECOND: Self = Self::rate("iops", "1/s");
    /// The time until the last process is done.
    pub const SECONDS: Self = Self { name: "seconds", unit: "s", better: Better::Lower };

    /// A rate.
    pub const fn rate(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, better: Better::Higher }
    }
}

/// So much per second; `None` when no time passed.
///
/// Computed from whole numbers with one rounding a step, so the same on every machine.
pub fn per_second(amount: f64, elapsed: Nanos) -> Option<f64> {
    (elapsed != Nanos::ZERO).then(|| amount / elapsed.as_secs())
}

/// MiB per second; `None` when no time passed.
pub fn mib_per_second(bytes: u64, elapsed: Nanos) -> Option<f64> {
    per_second(bytes as f64 / 1_048_576.0, elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        let half = Nanos::from_millis(500);
        assert_eq!(mib_per_second(3 << 20, half), Some(6.0));
        assert_eq!(per_second(9.0, half), Some(18.0));
        assert_eq!(per_second(1.0, Nanos::ZERO), None);
    }
}
