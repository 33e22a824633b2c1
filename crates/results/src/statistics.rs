//! The formulas behind the numbers of a results document: pure functions of slices.
//!
//! Medians and their intervals use nothing but the order of the samples, so no shape of
//! distribution is assumed; benchmark times are skewed and often have two humps.

/// The confidence that every interval here reaches at least.
pub const CONFIDENCE: f64 = 0.95;

/// The fewest samples for which an interval of the median can reach [`CONFIDENCE`]: from 5
/// samples, even the whole range covers the median with 1 - 2/2^5 = 93.75 % only.
pub const FEWEST_SAMPLES: usize = 6;

/// Ratios nearer to 1 than this are not called different in virtual time.
pub const NOISE_VIRTUAL: f64 = 0.01;

/// Ratios nearer to 1 than this are not called different in real time.
pub const NOISE_REAL: f64 = 0.03;

/// An interval of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end: a sample.
    pub low: f64,
    /// The upper end: a sample.
    pub high: f64,
    /// The probability that such an interval covers the median, at least [`CONFIDENCE`].
    pub coverage: f64,
}

/// The ranks of the samples that bound an interval of the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// The rank of the lower end; the smallest sample has rank 1.
    pub low: usize,
    /// The rank of the upper end.
    pub high: usize,
    /// The probability that they bound the median, at least [`CONFIDENCE`].
    pub coverage: f64,
}

/// The middle value, or the mean of the two middle values; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    // Equal neighbours give exactly themselves, and no sum overflows.
    Some(lower + (upper - lower) / 2.0)
}

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// (largest - smallest) / mean x 100; `None` below two values or around nothing.
pub fn spread_percent(values: &[f64]) -> Option<f64> {
    let (sorted, mean) = (sorted(values), mean(values)?);
    let (low, high) = (sorted.first()?, sorted.last()?);
    (values.len() > 1 && mean != 0.0).then(|| (high - low) / mean.abs() * 100.0)
}

/// The narrowest symmetric pair of ranks among `count` samples that bounds the median with at
/// least [`CONFIDENCE`]; `None` below [`FEWEST_SAMPLES`].
///
/// The number of samples below the median is binomial with p = 1/2, so the samples of rank k and
/// n + 1 - k bound it with probability 1 - 2 P(B(n, 1/2) < k), exactly and for any continuous
/// distribution. Source: H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition (2003),
/// section 7.1.
pub fn median_ranks(count: usize) -> Option<Ranks> {
    let chances = missed(count);
    let rank = narrowest(chances.iter().copied(), 1.0 - CONFIDENCE)?;
    Some(Ranks { low: rank, high: count + 1 - rank, coverage: 1.0 - chances[rank - 1] })
}

/// For each rank from 1 to half of `count` the chance that the samples of it and of its counterpart do not bound the
/// median.
pub(crate) fn missed(count: usize) -> Vec<f64> {
    tails(count).into_iter().map(|tail| 2.0 * tail).collect()
}

/// The rank of the narrowest pair of order statistics that misses with at most this chance, where `chances` has for
/// each rank from 1 on how likely its pair misses; `None` where even the widest is likelier to.
pub(crate) fn narrowest(chances: impl IntoIterator<Item = f64>, chance: f64) -> Option<usize> {
    let rank = chances.into_iter().take_while(|missed| *missed <= chance).count();
    (rank > 0).then_some(rank)
}

/// The samples, in ascending order, of a rank from 1 and of its counterpart.
pub(crate) fn ends(sorted: &[f64], rank: usize) -> (f64, f64) {
    (sorted[rank - 1], sorted[sorted.len() - rank])
}

/// For each rank from 1 to half of `count` the chance that fewer of so many samples lie below the median.
pub(crate) fn tails(count: usize) -> Vec<f64> {
    // P(B < k) = below / 2^halvings, with below = C(n, 0) + .. + C(n, k - 1). The coefficients are
    // whole numbers and exact up to 2^53; large ones are scaled, not rounded away.
    const LARGE: f64 = 1.157_920_892_373_162e77; // 2^256
    let (mut coefficient, mut below, mut halvings) = (1.0, 0.0, count as u64);
    let mut tails = Vec::with_capacity(count / 2);
    for rank in 1..=count / 2 {
        below += coefficient;
        tails.push(below * two_to_minus(halvings));
        coefficient = coefficient * (count + 1 - rank) as f64 / rank as f64;
        if coefficient > LARGE {
            coefficient /= LARGE;
            below /= LARGE;
            halvings -= 256;
        }
    }
    tails
}

/// 2 to the power of minus `power`, exactly; 0 where no floating-point number is small enough.
fn two_to_minus(power: u64) -> f64 {
    if power > 1022 { 0.0 } else { f64::from_bits((1023 - power) << 52) }
}

/// The interval of the median by [`median_ranks`]; `None` below [`FEWEST_SAMPLES`].
pub fn median_interval(values: &[f64]) -> Option<Interval> {
    let ranks = median_ranks(values.len())?;
    let (low, high) = ends(&sorted(values), ranks.low);
    Some(Interval { low, high, coverage: ranks.coverage })
}

/// The baseline's value in each round: the mean over its layouts. As long as the shortest list;
/// empty when there is no layout.
pub fn baseline_per_round(layouts: &[&[f64]]) -> Vec<f64> {
    let rounds = layouts.iter().map(|samples| samples.len()).min().unwrap_or(0);
    let at = |round: usize| layouts.iter().map(|samples| samples[round]).collect::<Vec<_>>();
    (0..rounds).filter_map(|round| mean(&at(round))).collect()
}

/// (median / mean of the medians of the baseline's layouts - 1) x 100.
///
/// `None` when the baseline has no medians or their mean is nothing.
pub fn percent_vs_baseline(median: f64, baseline_medians: &[f64]) -> Option<f64> {
    let baseline = mean(baseline_medians)?;
    if baseline == 0.0 {
        return None;
    }
    Some((median / baseline - 1.0) * 100.0)
}

/// How many standard errors on each side bound a mean of so many values with [`CONFIDENCE`], by Student's law; `None`
/// below two.
pub fn student(count: usize) -> Option<f64> {
    if count < 2 {
        return None;
    }
    let freedom = count as u64 - 1;
    // Between no angle and a right one there is one where the law reaches the confidence: halved until no number
    // lies between.
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return Some(libm::sqrt(freedom as f64) * libm::tan(low));
        }
        let half = if within(middle, freedom) < CONFIDENCE { &mut low } else { &mut high };
        *half = middle;
    }
}

/// The chance that Student's law gives not more than `sqrt(freedom) * tan(angle)` on each side: the sums for whole
/// degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4).
fn within(angle: f64, freedom: u64) -> f64 {
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    // The powers of the cosine up to that of `freedom - 2`.
    let mut power = u64::from(is_odd);
    while power + 2 <= freedom {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if is_odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

/// A copy in ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
