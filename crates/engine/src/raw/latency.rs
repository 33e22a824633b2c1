//! How long requests took, counted in steps of at most 1/32 of the value: no memory is taken per request.

use raidlab_core::Nanos;

/// Steps within each power of two.
const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.ilog2();

/// Counts of latencies.
#[derive(Debug)]
pub(super) struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: vec![0; step_of(u64::MAX) + 1], total: 0 }
    }
}

/// Values below 2 x STEPS have a step each.
const fn step_of(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    (shift as u64 * STEPS + (nanos >> shift)) as usize
}

/// The largest value of a step.
const fn end_of(step: usize) -> u64 {
    let step = step as u64;
    if step < 2 * STEPS {
        return step;
    }
    let shift = step / STEPS - 1;
    let first = (step % STEPS + STEPS) << shift;
    first + ((1 << shift) - 1)
}

impl Latencies {
    #[inline]
    pub(super) fn add(&mut self, nanos: u64) {
        self.counts[step_of(nanos)] += 1;
        self.total += 1;
    }

    /// The end of the step that so many percent do not exceed; `None` of nothing.
    pub(super) fn percentile(&self, percent: u64) -> Option<Nanos> {
        let rank = (self.total * percent).div_ceil(100);
        let mut below = 0;
        let step = self.counts.iter().position(|count| {
            below += count;
            below >= rank && below > 0
        })?;
        Some(Nanos(end_of(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_each_other_and_are_narrow() {
        for value in (0..5_000).chain((0..64).map(|bit| (1u64 << bit) + (1 << bit) / 3)) {
            let step = step_of(value);
            assert!(step_of(value + 1) <= step + 1, "{value}");
            let end = end_of(step);
            assert!(end >= value && (end - value) as f64 <= value as f64 / 32.0, "{value} {end}");
            assert_eq!(step_of(end), step);
            assert!(end == u64::MAX || step_of(end + 1) == step + 1);
        }
        assert_eq!(end_of(step_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_by_hand() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(99), None);
        (1..=50).for_each(|value| latencies.add(value));
        assert_eq!(latencies.percentile(50), Some(Nanos(25)));
        assert_eq!(latencies.percentile(99), Some(Nanos(50)));
        assert_eq!(latencies.percentile(98), Some(Nanos(49)));
        (0..10_000).for_each(|_| latencies.add(7));
        assert_eq!(latencies.percentile(99), Some(Nanos(7)));
    }
}
