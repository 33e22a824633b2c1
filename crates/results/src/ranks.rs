//! What the order of samples tells of their middle, of rounds in pairs and of two runs apart: for both the same list of
//! differences in ascending order, and for each of its ranks the chance that the middle lies beyond.
//!
//! - Pairs: the differences are those of each round, the chances those of the sign test (David and Nagaraja, "Order
//!   Statistics", 3rd edition, 2003, section 7.1). Nothing is assumed but that rounds are alike and independent.
//! - Apart: the differences are those of every value of one run to every value of the other, their median the estimate
//!   of Hodges and Lehmann (1963), the chances those of the test of Mann and Whitney (1947): exact up to [`EXACT`]
//!   rounds together, beyond that by their normal approximation. Two of them bound the shift (Lehmann,
//!   "Nonparametrics", 1975, section 2.6), if the two runs differ in nothing else.
//!
//! Both take ties for what speaks against a difference.

use std::collections::BTreeMap;

use crate::statistics::{ends, narrowest, tails};

/// Rounds of two runs together up to which chances are counted out.
pub const EXACT: usize = 100;

/// Differences in ascending order, and what their ranks tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    sorted: Vec<f64>,
    /// For each rank from 1 up to the middle the chance that fewer differences lie below the true middle.
    tails: Vec<f64>,
}

impl Ranked {
    /// Of the differences of each round.
    pub fn of_pairs(mut differences: Vec<f64>) -> Self {
        differences.sort_by(f64::total_cmp);
        let tails = tails(differences.len());
        Self { sorted: differences, tails }
    }

    /// The middle of the differences; `None` without any.
    pub fn middle(&self) -> Option<f64> {
        crate::statistics::median(&self.sorted)
    }

    /// The chance, at most, of so many differences above `bound` if the true middle is not above it.
    pub fn chance_above(&self, bound: f64) -> f64 {
        self.tail(self.sorted.iter().filter(|one| **one <= bound).count())
    }

    /// The chance, at most, of so many differences below `bound` if the true middle is not below it.
    pub fn chance_below(&self, bound: f64) -> f64 {
        self.tail(self.sorted.iter().filter(|one| **one >= bound).count())
    }

    /// The narrowest interval that misses the true middle with at most this chance; `None` where there are too few
    /// rounds for it.
    pub fn interval(&self, chance: f64) -> Option<(f64, f64)> {
        let missed = self.tails.iter().map(|tail| 2.0 * tail);
        narrowest(missed, chance).map(|rank| ends(&self.sorted, rank))
    }

    /// The smallest chance on both sides that so many rounds can give.
    pub fn least_chance(&self) -> f64 {
        self.tails.first().map_or(1.0, |tail| 2.0 * tail)
    }

    /// The chance of at most so many differences on the other side.
    fn tail(&self, others: usize) -> f64 {
        self.tails.get(others).copied().unwrap_or(1.0)
    }
}

/// Two runs apart. Keeps the chances of each pair of numbers of rounds: they take longer than the rest.
#[derive(Clone, Debug, Default)]
pub struct Apart {
    known: BTreeMap<(usize, usize), Vec<f64>>,
}

impl Apart {
    /// Every value of `after` less every one of `before`.
    pub fn ranked(&mut self, before: &[f64], after: &[f64]) -> Ranked {
        let differences = after.iter().flat_map(|one| before.iter().map(move |other| one - other));
        let mut sorted: Vec<f64> = differences.collect();
        sorted.sort_by(f64::total_cmp);
        let counts = (before.len(), after.len());
        let tails = self.known.entry(counts).or_insert_with(|| mann_whitney(counts.0, counts.1));
        Ranked { sorted, tails: tails.clone() }
    }
}

/// For each rank of the differences up to the middle the chance that the statistic of Mann and Whitney is below it, if
/// the two runs do not differ.
fn mann_whitney(one: usize, other: usize) -> Vec<f64> {
    let middle = one * other / 2;
    if one + other > EXACT {
        let mean = (one * other) as f64 / 2.0;
        let spread = libm::sqrt(mean * (one + other + 1) as f64 / 6.0);
        // With the correction for continuity.
        let chance = |statistic: usize| {
            let distance = (mean - statistic as f64 - 0.5).max(0.0) / spread;
            libm::erfc(distance / core::f64::consts::SQRT_2) / 2.0
        };
        return (0..middle).map(chance).collect();
    }
    // Ways in which `first` values of one run and `second` of the other stand in order with a statistic of so much: if
    // the largest of all is of the first run, it is above all `second`, else above none.
    let mut ways = vec![vec![0.0; middle + 1]; other + 1];
    for of_second in &mut ways {
        of_second[0] = 1.0;
    }
    for _first in 1..=one {
        for second in 1..=other {
            for statistic in (0..=middle).rev() {
                let above = statistic.checked_sub(second).map_or(0.0, |less| ways[second][less]);
                ways[second][statistic] = above + ways[second - 1][statistic];
            }
        }
    }
    let all = (1..=one).fold(1.0, |all, at| all * (other + at) as f64 / at as f64);
    let mut below = 0.0;
    let tails = ways[other].iter().take(middle).map(|count| {
        below += count;
        below / all
    });
    tails.collect()
}

/// The chances of many tests, each as that of all that are as sure or surer together: Benjamini and Hochberg (1995).
/// Of those that come out at 5 % or less, 5 % are wrong on average, at most.
pub fn benjamini_hochberg(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|one, other| chances[*one].total_cmp(&chances[*other]));
    let mut adjusted = vec![1.0; chances.len()];
    let mut least = 1.0_f64;
    for (surer, at) in order.into_iter().enumerate().rev() {
        least = least.min(chances[at] * chances.len() as f64 / (surer + 1) as f64);
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn chances_of_mann_and_whitney() {
        // All 10 orders of 2 and 3 values by hand: statistics of 0, 1, 2, 3, 4, 5, 6 in 1, 1, 2, 2, 2, 1, 1 of them.
        for counts in [(2, 3), (3, 2)] {
            let found = mann_whitney(counts.0, counts.1);
            assert_eq!(found.len(), 3);
            for (found, expected) in found.iter().zip([0.1, 0.2, 0.4]) {
                near(*found, expected);
            }
        }
        // Of 6 and 6 their table has 5 as the largest statistic at 5 %: 19 of 924 orders on each side.
        let six = mann_whitney(6, 6);
        near(six[0], 1.0 / 924.0);
        near(six[5], 19.0 / 924.0);
        assert!(2.0 * six[5] <= 0.05 && 2.0 * six[6] > 0.05);
    }

    #[test]
    fn many_rounds_are_near_to_what_is_counted() {
        let (counted, near_by) = (mann_whitney(50, 50), mann_whitney(50, 51));
        assert_eq!(
            (counted.len(), near_by.len()),
            (50 * 50 / 2, 50 * 51 / 2),
            "a chance for each rank"
        );
        for share in [0.30, 0.35, 0.40, 0.45] {
            let (at, other) = ((2_500.0 * share) as usize, (2_550.0 * share) as usize);
            assert!((counted[at] - near_by[other]).abs() < 0.003, "{share}");
        }
    }

    #[test]
    fn pairs_are_the_sign_test() {
        let ranked = Ranked::of_pairs(vec![0.3, -0.1, 0.2, 0.5, 0.4, 0.1]);
        assert_eq!(ranked.middle(), Some(0.25));
        // One of six is at most 0: 7 of 64 orders have at most one.
        near(ranked.chance_above(0.0), 7.0 / 64.0);
        near(ranked.chance_below(0.0), 1.0);
        near(ranked.least_chance(), 2.0 / 64.0);
        assert_eq!(ranked.interval(0.05), Some((-0.1, 0.5)));
        assert_eq!(ranked.interval(0.01), None);
        // What is equal to the bound speaks against it.
        near(ranked.chance_above(0.1), 22.0 / 64.0);
        near(ranked.chance_below(0.5), 7.0 / 64.0);
        near(ranked.chance_below(0.6), 1.0 / 64.0);
    }

    #[test]
    fn runs_apart() {
        let mut apart = Apart::default();
        let ranked = apart.ranked(&[1.0, 2.0, 4.0], &[5.0, 6.0, 9.0]);
        // 1, 2, 3, 4, 4, 5, 5, 7, 8.
        assert_eq!(ranked.middle(), Some(4.0));
        near(ranked.chance_above(0.0), 1.0 / 20.0);
        near(ranked.chance_above(1.0), 2.0 / 20.0);
        near(ranked.least_chance(), 0.1);
        assert_eq!(ranked.interval(0.1), Some((1.0, 8.0)));
        assert_eq!(ranked.interval(0.05), None);
        assert_eq!(apart.ranked(&[], &[1.0]).middle(), None);
    }

    #[test]
    fn false_discoveries() {
        // The example of Benjamini and Hochberg (1995), section 3.2: 4 of 15 are called at 5 %.
        let chances = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let adjusted = benjamini_hochberg(&chances);
        assert_eq!(adjusted.iter().filter(|one| **one <= 0.05).count(), 4);
        near(adjusted[0], 0.0015);
        near(adjusted[3], 0.0095 * 15.0 / 4.0);
        near(adjusted[14], 1.0);
        // A larger chance never comes out surer: 0.04 x 2 / 1 is no more than 0.041.
        let two = benjamini_hochberg(&[0.041, 0.04]);
        near(two[0], 0.041);
        near(two[1], 0.041);
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
