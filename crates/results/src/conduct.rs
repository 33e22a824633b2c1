//! Whether the rounds of a study can bear verdicts: the noise floor, outliers, drift, order, steady state.

use crate::comparison::ALPHA;
use crate::statistics::{ends, mean, median, missed, narrowest, sorted};
use crate::walsh;

/// Distance from the median, in units of the median absolute deviation, beyond which a sample is an outlier: ten
/// robust standard deviations of 1.4826 each (Iglewicz and Hoaglin, 1993; the rule of hyperfine).
pub const OUTLIER_DEVIATIONS: f64 = 14.826;
/// Samples this near to the median, as a share of it, are no outliers, however alike the others are.
pub const OUTLIER_SHARE: f64 = 0.05;

/// Rounds of the window of [`steady`].
pub const STEADY_ROUNDS: usize = 5;

/// The floor of each row, from what the same layout under two names showed there: log ratios by round of its rows.
///
/// Nothing can make the two differ but the machine and the order of cells, so the bound of the 95 % interval of the
/// centre of all of them ([`crate::comparison`]) is what this study cannot tell apart; at least `least` (0.01 for 1 %).
/// A row in which the two differ beyond doubt (5 % over all rows, by Bonferroni) has the bound of that row alone, if it
/// is larger, and says nothing of the others.
pub fn floors(rows: &[Vec<f64>], least: f64) -> Vec<f64> {
    let differ = |row: &&Vec<f64>| {
        let bounds = walsh::bounds(row, ALPHA / rows.len() as f64);
        bounds.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    };
    let (own, alike): (Vec<&Vec<f64>>, Vec<&Vec<f64>>) = rows.iter().partition(differ);
    let alike = if alike.is_empty() { &own } else { &alike };
    let all: Vec<f64> = alike.iter().copied().flatten().copied().collect();
    let common = far_end(&all).map_or(least, |bound| libm::expm1(bound).max(least));
    let of = |row: &Vec<f64>| {
        let bound = far_end(row).filter(|_| differ(&row)).map_or(common, libm::expm1);
        bound.max(common)
    };
    rows.iter().map(of).collect()
}

/// Two order statistics that miss the median with at most this chance.
fn bounds(values: &[f64], chance: f64) -> Option<(f64, f64)> {
    let rank = narrowest(missed(values.len()), chance)?;
    Some(ends(&sorted(values), rank))
}

/// The end of the 95 % interval of the centre that is further from 0.
fn far_end(values: &[f64]) -> Option<f64> {
    let (low, high) = walsh::bounds(values, ALPHA)?;
    Some((-low).max(high))
}

/// The rounds, from 1, whose samples stand apart from the others. They are kept: the median does not mind.
pub fn outliers(samples: &[f64]) -> Vec<u32> {
    let Some(middle) = median(samples) else { return Vec::new() };
    let distance = |value: f64| if value > middle { value - middle } else { middle - value };
    let distances: Vec<f64> = samples.iter().map(|value| distance(*value)).collect();
    let deviation = median(&distances).unwrap_or(0.0);
    let far = distance(0.0) * OUTLIER_SHARE;
    let is_far = |one: f64| one > OUTLIER_DEVIATIONS * deviation && one > far;
    let rounds = (1..).zip(&distances).filter(|(_, one)| is_far(**one));
    if samples.len() < 5 { Vec::new() } else { rounds.map(|(round, _)| round).collect() }
}

/// By how much, as a share of the median, the samples moved from the first round to the last, if they did beyond doubt:
/// Theil's slope (1950) where Kendall's test of it (Mann 1945) gives less than 1 %; `None` where there is none, or
/// below 6 rounds.
pub fn drift(samples: &[f64]) -> Option<f64> {
    let count = samples.len();
    let middle = median(samples).filter(|middle| *middle != 0.0 && count >= 6)?;
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    let mut sign = 0i64;
    for (at, one) in samples.iter().enumerate() {
        for (later, other) in samples.iter().enumerate().skip(at + 1) {
            slopes.push((other - one) / (later - at) as f64);
            sign += i64::from(other > one) - i64::from(other < one);
        }
    }
    let n = count as f64;
    let spread = libm::sqrt(n * (n - 1.0) * (2.0 * n + 5.0) / 18.0);
    // 2.576: both tails of the normal distribution beyond it hold 1 %.
    let is_sure = (sign.unsigned_abs() as f64 - 1.0) / spread > 2.576;
    is_sure.then(|| median(&slopes).unwrap_or(0.0) * (n - 1.0) / middle)
}

/// Whether the last [`STEADY_ROUNDS`] rounds are in the steady state of the SNIA Solid State Storage Performance Test
/// Specification (2.0.2, 2020): largest minus smallest within 20 % of their mean, and the least-squares line through
/// them rises or falls by no more than 10 % of it. `None` below so many rounds.
pub fn steady(samples: &[f64]) -> Option<bool> {
    let last = samples.len().checked_sub(STEADY_ROUNDS).map(|from| &samples[from..])?;
    let average = mean(last)?;
    let (low, high) = last.iter().fold((last[0], last[0]), |(low, high), one| {
        (if *one < low { *one } else { low }, if *one > high { *one } else { high })
    });
    let centre = (STEADY_ROUNDS as f64 - 1.0) / 2.0;
    let rise: f64 =
        last.iter().enumerate().map(|(at, one)| (at as f64 - centre) * (one - average)).sum();
    let squares: f64 =
        (0..STEADY_ROUNDS).map(|at| (at as f64 - centre) * (at as f64 - centre)).sum();
    let line = rise / squares * (STEADY_ROUNDS as f64 - 1.0);
    let line = if line < 0.0 { -line } else { line };
    Some(high - low <= 0.2 * average && line <= 0.1 * average)
}

/// What coming after each kind of cell did to a cell, where that is beyond doubt: for each kind the median of the log
/// of the sample over the median of its cell. `runs` are (kind of the one before, that log); kinds with fewer than 8
/// runs are left out. The chance of any false alarm is below 5 % (Bonferroni over the kinds).
pub fn predecessors<'a>(runs: &[(&'a str, f64)]) -> Vec<(&'a str, f64)> {
    let mut kinds: Vec<&str> = runs.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let families = kinds.len().max(1) as f64;
    let effect = |kind: &'a str| {
        let after: Vec<f64> =
            runs.iter().filter(|(one, _)| *one == kind).map(|(_, log)| *log).collect();
        let (low, high) = bounds(&after, ALPHA / families)?;
        (after.len() >= 8 && (low > 0.0 || high < 0.0)).then_some((kind, median(&after)?))
    };
    kinds.into_iter().filter_map(effect).collect()
}
