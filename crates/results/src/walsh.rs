//! The centre of differences in pairs by the means of every two of them (Walsh averages, each with itself too).
//!
//! Their median is the estimate of Hodges and Lehmann (1963); two of them bound the centre with the chance of the
//! signed-rank test of Wilcoxon (1945) (Tukey 1949; Hollander, Wolfe and Chicken, "Nonparametric Statistical
//! Methods", 3rd edition, 2014, sections 3.2 and 3.3). Exact where the differences are symmetric about their centre,
//! which is then their median; those of two layouts that vary alike are, whatever the shape, since neither could be
//! told from the other.
//!
//! No list of averages is made: as many are no larger than a value as two hands over the sorted differences count, and
//! the one of a rank is found by halving the floating-point numbers.

/// Differences up to which chances are counted out; beyond by the normal approximation.
pub(crate) const EXACT: usize = 60;

/// What the ranks of averages of so many differences tell.
#[derive(Clone, Debug)]
pub(crate) struct SignedRank {
    count: usize,
    /// For each rank from 1 on up to the middle the chance that fewer averages lie below the centre; empty beyond
    /// [`EXACT`].
    tails: Vec<f64>,
}

impl SignedRank {
    pub(crate) fn of(count: usize) -> Self {
        let tails = if count <= EXACT { counted(count) } else { Vec::new() };
        Self { count, tails }
    }

    /// How many differences it is for.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// How many averages there are.
    pub(crate) const fn averages(&self) -> usize {
        self.count * (self.count + 1) / 2
    }

    /// The chance that the average of a rank from 1 and its counterpart do not bound the centre; 1 beyond the middle.
    pub(crate) fn missed(&self, rank: usize) -> f64 {
        if rank > self.averages() / 2 {
            return 1.0;
        }
        if let Some(tail) = self.tails.get(rank - 1) {
            return (2.0 * tail).min(1.0);
        }
        // At most rank - 1 averages below the centre, with the correction for continuity.
        let n = self.count as f64;
        let mean = n * (n + 1.0) / 4.0;
        let spread = libm::sqrt(n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        libm::erfc((mean - (rank as f64 - 0.5)) / spread / core::f64::consts::SQRT_2).min(1.0)
    }
}

/// Sums of the ranks of those above the centre: each rank is in or not, all ways alike.
fn counted(count: usize) -> Vec<f64> {
    let middle = count * (count + 1) / 4;
    let mut chances = vec![0.0; middle + 1];
    chances[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=middle).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| chances[rest]);
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    let mut below = 0.0;
    let tails = chances.iter().take(count * (count + 1) / 2 / 2).map(|chance| {
        below += chance;
        below
    });
    tails.collect()
}

/// How many averages of differences in ascending order are at most a bound, or below it.
pub(crate) fn count_to(sorted: &[f64], bound: f64, below: bool) -> usize {
    let (mut count, mut end) = (0, sorted.len());
    for (at, one) in sorted.iter().enumerate() {
        let is_within = |other: f64| {
            let average = average(*one, other);
            if below { average < bound } else { average <= bound }
        };
        while end > at && !is_within(sorted[end - 1]) {
            end -= 1;
        }
        if end <= at {
            break;
        }
        count += end - at;
    }
    count
}

/// Half of the way: of two equal ones exactly themselves.
fn average(one: f64, other: f64) -> f64 {
    one + (other - one) / 2.0
}

/// The average of a rank from 1 of differences in ascending order.
pub(crate) fn ranked(sorted: &[f64], rank: usize) -> f64 {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return f64::NAN };
    let (mut low, mut high) = (ordered(*first), ordered(*last));
    while low < high {
        let middle = low + (high - low) / 2;
        if count_to(sorted, number(middle), false) >= rank {
            high = middle
        } else {
            low = middle + 1
        }
    }
    number(low)
}

/// The averages of the innermost rank that is sure enough and of its counterpart; ranks are the less so the further in.
pub(crate) fn interval(sorted: &[f64], is_sure: impl Fn(usize) -> bool) -> Option<(f64, f64)> {
    let averages = sorted.len() * (sorted.len() + 1) / 2;
    let (mut sure, mut unsure) = (0, averages / 2 + 1);
    while sure + 1 < unsure {
        let middle = sure + (unsure - sure) / 2;
        if is_sure(middle) { sure = middle } else { unsure = middle }
    }
    (sure > 0).then(|| (ranked(sorted, sure), ranked(sorted, averages + 1 - sure)))
}

/// The interval of the centre that misses it with at most this chance, of differences in any order.
pub(crate) fn bounds(values: &[f64], chance: f64) -> Option<(f64, f64)> {
    let ranks = SignedRank::of(values.len());
    interval(&crate::statistics::sorted(values), |rank| ranks.missed(rank) <= chance)
}

/// The estimate of the centre; `None` of nothing.
pub(crate) fn centre(sorted: &[f64]) -> Option<f64> {
    let averages = sorted.len() * (sorted.len() + 1) / 2;
    let upper = (averages > 0).then(|| ranked(sorted, averages / 2 + 1))?;
    if averages % 2 == 1 { Some(upper) } else { Some(average(ranked(sorted, averages / 2), upper)) }
}

/// Floating-point numbers in their order as whole numbers, without those that are none.
fn ordered(value: f64) -> u64 {
    // Both zeroes are one number.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn number(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(sorted: &[f64]) -> Vec<f64> {
        let mut all = Vec::new();
        for (at, one) in sorted.iter().enumerate() {
            all.extend(sorted[at..].iter().map(|other| average(*one, *other)));
        }
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn ranks_are_those_of_the_list() {
        let lists: [&[f64]; 5] = [
            &[0.5],
            &[-0.25, 0.0, 0.0, 1.5],
            &[-3.0, -1.0, -0.125, 0.1, 0.3, 2.0, 7.5],
            &[0.2; 6],
            &[-1e-300, 0.0, 1e-300, 0.7, 1e9],
        ];
        for sorted in lists {
            let all = all(sorted);
            for (rank, expected) in (1..).zip(&all) {
                assert_eq!(ranked(sorted, rank), *expected, "{sorted:?} {rank}");
            }
            for bound in all.iter().copied().chain([-5.0, 0.05, 1e10]) {
                let (to, below) = (count_to(sorted, bound, false), count_to(sorted, bound, true));
                assert_eq!(to, all.iter().filter(|one| **one <= bound).count(), "{sorted:?}");
                assert_eq!(below, all.iter().filter(|one| **one < bound).count(), "{sorted:?}");
            }
            let middle = crate::statistics::median(&all);
            assert_eq!(centre(sorted), middle, "{sorted:?}");
        }
        assert_eq!(centre(&[]), None);
    }

    /// Tables of the signed-rank test: of 10 differences sums up to 8 at 5 %, up to 3 at 1 %; of 20 up to 52 and 37.
    #[test]
    fn chances_are_those_of_the_tables() {
        for (count, chance, largest) in
            [(6, 0.05, 0), (10, 0.05, 8), (10, 0.01, 3), (20, 0.05, 52), (20, 0.01, 37)]
        {
            let ranks = SignedRank::of(count);
            assert!(ranks.missed(largest + 1) <= chance, "{count} {chance}");
            assert!(ranks.missed(largest + 2) > chance, "{count} {chance}");
        }
        assert_eq!(SignedRank::of(5).missed(1), 2.0 / 32.0);
        assert_eq!(SignedRank::of(1).missed(1), 1.0);
        assert_eq!(SignedRank::of(0).averages(), 0);
    }

    #[test]
    fn many_rounds_are_near_to_what_is_counted() {
        let (counted, near) =
            (SignedRank::of(EXACT), SignedRank { count: EXACT, tails: Vec::new() });
        for rank in [500, 600, 700, 800, 900] {
            let (exact, other) = (counted.missed(rank), near.missed(rank));
            // The approximation errs on the safe side.
            assert!(other > 0.99 * exact && other < 1.25 * exact, "{rank}: {exact} {other}");
        }
    }
}
