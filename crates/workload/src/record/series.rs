//! What was done over the time of a run, in bins of equal width.

use raidlab_core::{Nanos, Time};
use serde::{Deserialize, Serialize};

/// The most bins of a run; a run that lasts longer has wider ones.
const MOST_BINS: usize = 60;
/// The width of bins at first is 2 to the power of this, in nanoseconds: about a millisecond.
const FIRST_SHIFT: u32 = 20;

/// Reads and writes that ended within a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BinText", into = "BinText")]
pub struct TimeBin {
    /// How many.
    pub count: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// The sum of their latencies.
    pub took: Nanos,
    /// The longest latency.
    pub longest: Nanos,
    /// How much of a rebuild was done when the bin began, in millionths; `None` where none was under way.
    pub rebuilt: Option<u32>,
}

/// Count, bytes, sum and longest of latencies in nanoseconds, millionths rebuilt.
type BinText = (u64, u64, u64, u64, Option<u32>);

impl From<BinText> for TimeBin {
    fn from((count, bytes, took, longest, rebuilt): BinText) -> Self {
        Self { count, bytes, took: Nanos(took), longest: Nanos(longest), rebuilt }
    }
}

impl From<TimeBin> for BinText {
    fn from(bin: TimeBin) -> Self {
        (bin.count, bin.bytes, bin.took.0, bin.longest.0, bin.rebuilt)
    }
}

impl TimeBin {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.took += other.took;
        self.longest = self.longest.max(other.longest);
        self.rebuilt = self.rebuilt.or(other.rebuilt);
    }
}

/// Bins of a run, from its start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSeries {
    /// Bins are 2 to the power of this wide, in nanoseconds.
    shift: u32,
    bins: Vec<TimeBin>,
    /// What has ended since time was told last.
    #[serde(skip)]
    pending: TimeBin,
}

impl Default for TimeSeries {
    /// With room for all bins, so that a run takes no memory for it.
    fn default() -> Self {
        let bins = Vec::with_capacity(MOST_BINS);
        Self { shift: FIRST_SHIFT, bins, pending: TimeBin::default() }
    }
}

impl TimeSeries {
    /// The width of a bin.
    pub const fn width(&self) -> Nanos {
        Nanos(1 << self.shift)
    }

    /// The bins up to the last in which anything ended.
    pub fn bins(&self) -> &[TimeBin] {
        let used = self.bins.iter().rposition(|bin| bin.count > 0).map_or(0, |last| last + 1);
        &self.bins[..used]
    }

    /// Reads or writes have ended, each like the others.
    #[inline]
    pub(crate) fn ended(&mut self, count: u64, bytes: u64, took: Nanos) {
        self.pending.count += count;
        self.pending.bytes += bytes;
        self.pending.took += took;
        let each = if count == 1 { took } else { Nanos(took.0.div_ceil(count.max(1))) };
        self.pending.longest = self.pending.longest.max(each);
    }

    /// What has ended did so now; says whether a bin has begun.
    #[inline]
    pub(crate) fn now(&mut self, now: Time) -> bool {
        let mut at = (now.0 >> self.shift) as usize;
        while at >= MOST_BINS {
            self.halve();
            at = (now.0 >> self.shift) as usize;
        }
        let begins = at >= self.bins.len();
        if begins {
            self.bins.resize(at + 1, TimeBin::default());
        }
        if self.pending.count > 0 {
            self.bins[at].add(&self.pending);
            self.pending = TimeBin::default();
        }
        begins
    }

    /// So much of a rebuild, 0 to 1, is done as the last bin begins.
    pub(crate) fn rebuilt(&mut self, done: f64) {
        if let Some(bin) = self.bins.last_mut() {
            bin.rebuilt = Some((done.clamp(0.0, 1.0) * 1e6) as u32);
        }
    }

    /// Joins every two bins to one.
    fn halve(&mut self) {
        self.shift += 1;
        let half = self.bins.len().div_ceil(2);
        for at in 0..half {
            let mut joined = self.bins[2 * at];
            if let Some(second) = self.bins.get(2 * at + 1) {
                joined.add(second);
            }
            self.bins[at] = joined;
        }
        self.bins.truncate(half);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_run_has_wider_bins_and_the_same_sums() {
        let mut series = TimeSeries::default();
        let room = series.bins.capacity();
        for millis in 0..1_000_u64 {
            series.ended(1, 4_096, Nanos(millis));
            if series.now(Time(millis * 1_000_000)) {
                series.rebuilt(millis as f64 / 1_000.0);
            }
        }
        assert_eq!(series.width(), Nanos(1 << 24));
        assert_eq!((series.bins().len(), series.bins.capacity()), (60, room));
        let sums = series.bins().iter().fold(TimeBin::default(), |mut sum, bin| {
            sum.add(bin);
            sum
        });
        assert_eq!((sums.count, sums.bytes, sums.longest), (1_000, 4_096_000, Nanos(999)));
        assert_eq!(sums.took, Nanos(999 * 500));
        let rebuilt: Vec<u32> = series.bins().iter().filter_map(|bin| bin.rebuilt).collect();
        assert!(rebuilt.is_sorted() && rebuilt.len() == 60, "{rebuilt:?}");
    }

    #[test]
    fn what_ends_together_is_each_as_long_as_the_others() {
        let mut series = TimeSeries::default();
        series.ended(4, 8, Nanos(40));
        assert!(series.now(Time(0)) && !series.now(Time(1)));
        assert_eq!(series.bins()[0].longest, Nanos(10));
    }

    #[test]
    fn a_series_comes_back_from_its_text() {
        let mut series = TimeSeries::default();
        series.ended(1, 512, Nanos(7));
        series.now(Time(5 << FIRST_SHIFT));
        series.rebuilt(0.25);
        let text = serde_json::to_string(&series).expect("text");
        assert_eq!(serde_json::from_str::<TimeSeries>(&text).expect("a series"), series);
    }

    #[test]
    fn bins_end_with_the_last_in_which_anything_ended() {
        let mut series = TimeSeries::default();
        series.ended(1, 512, Nanos(7));
        series.now(Time(2 << FIRST_SHIFT));
        series.now(Time(5 << FIRST_SHIFT));
        assert_eq!(series.bins().iter().map(|bin| bin.count).collect::<Vec<_>>(), [0, 0, 1]);
        assert!(TimeSeries::default().bins().is_empty());
    }

    #[test]
    fn the_last_of_an_odd_number_of_bins_is_kept() {
        let mut series = TimeSeries::default();
        for bin in 0..5 {
            series.ended(bin + 1, 0, Nanos(1));
            series.now(Time(bin << FIRST_SHIFT));
        }
        series.halve();
        assert_eq!(series.bins().iter().map(|bin| bin.count).collect::<Vec<_>>(), [3, 7, 5]);
        series.rebuilt(1.5);
        assert_eq!(series.bins()[2].rebuilt, Some(1_000_000), "no more than all");
    }
}
