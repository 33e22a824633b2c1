//! Division by a number fixed at set-up: a shift where it is a power of two.

/// A divisor that is known to be a power of two or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    value: u64,
    shift: u32,
}

const NO_SHIFT: u32 = u32::MAX;

impl Divisor {
    /// `value` is at least 1.
    pub(crate) const fn new(value: u64) -> Self {
        assert!(value > 0, "division by nothing");
        let shift = if value.is_power_of_two() { value.trailing_zeros() } else { NO_SHIFT };
        Self { value, shift }
    }

    pub(crate) const fn value(self) -> u64 {
        self.value
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) const fn split(self, dividend: u64) -> (u64, u64) {
        if self.shift != NO_SHIFT {
            (dividend >> self.shift, dividend & (self.value - 1))
        } else if dividend <= u32::MAX as u64 {
            // Half the latency of a 64-bit division, and the usual case for chunk numbers.
            let (dividend, value) = (dividend as u32, self.value as u32);
            if self.value > u32::MAX as u64 {
                return (0, dividend as u64);
            }
            ((dividend / value) as u64, (dividend % value) as u64)
        } else {
            (dividend / self.value, dividend % self.value)
        }
    }

    #[inline]
    pub(crate) const fn remainder(self, dividend: u64) -> u64 {
        self.split(dividend).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_the_language_divides() {
        for value in [1, 2, 3, 7, 8, 1024, 1536, u64::from(u32::MAX), 1 << 33, (1 << 33) + 1] {
            let divisor = Divisor::new(value);
            for dividend in [0, 1, 2, 6, 7, 1535, 1536, 1 << 32, (1 << 40) + 12345, u64::MAX] {
                assert_eq!(divisor.split(dividend), (dividend / value, dividend % value));
            }
        }
    }
}
