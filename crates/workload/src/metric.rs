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
pub enum Metric {
    /// Bytes moved by all processes, in MiB (2^20 bytes), per second.
    MibPerSecond,
    /// Reads or writes done by all processes, per second; a flush is not counted.
    OperationsPerSecond,
}

impl Metric {
    /// The name in a results document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MibPerSecond => "mib_per_s",
            Self::OperationsPerSecond => "iops",
        }
    }

    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MibPerSecond => "MiB/s",
            Self::OperationsPerSecond => "1/s",
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        match self {
            Self::MibPerSecond | Self::OperationsPerSecond => Better::Higher,
        }
    }

    /// The value, from what all processes did until the last of them was done.
    ///
    /// `None` when no time passed. Computed from whole numbers with one rounding a step, so the
    /// same on every machine.
    pub fn value(self, bytes: u64, operations: u64, elapsed: Nanos) -> Option<f64> {
        if elapsed == Nanos::ZERO {
            return None;
        }
        let amount = match self {
            Self::MibPerSecond => bytes as f64 / 1_048_576.0,
            Self::OperationsPerSecond => operations as f64,
        };
        Some(amount / elapsed.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        let half = Nanos::from_millis(500);
        assert_eq!(Metric::MibPerSecond.value(3 << 20, 9, half), Some(6.0));
        assert_eq!(Metric::OperationsPerSecond.value(3 << 20, 9, half), Some(18.0));
        assert_eq!(Metric::OperationsPerSecond.value(1, 1, Nanos::ZERO), None);
    }
}
