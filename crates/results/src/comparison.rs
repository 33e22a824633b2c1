//! One rule for every verdict: what the rounds of a study show of layouts that met the same work.
//!
//! What is estimated is the centre over the rounds of the logarithm of the ratio of two layouts, taken round by
//! round: whatever a round did to both cancels (common random numbers, complete blocks). Of its distribution it is
//! assumed that rounds are alike and independent, which is tested, and that it is symmetric, when the centre is the
//! median. Log ratios of two layouts that vary alike are symmetric whatever the shape, as either could be the other;
//! where they vary differently the centre is the median of the means of two rounds, which is near.
//!
//! - Interval: two of the means of every two log ratios, by the signed-rank test (Wilcoxon 1945, Tukey 1949), the
//!   estimate their median (Hodges and Lehmann 1963; see `walsh.rs`). Exact for any sample size, so no bootstrap is
//!   needed. For normal values it is as narrow as that of the sign test with two thirds of the rounds.
//! - Verdict: the interval lies wholly beyond the floor, and the doubt where there is one (faster, slower), wholly
//!   within the floor (equal: two one-sided tests, Schuirmann 1987), or neither (not resolved).
//! - Many comparisons: the layouts of a row against its baseline are a family; intervals and verdicts are at 5 % over
//!   as many as it has (Bonferroni), so that the chance of any false verdict among them is below 5 %. A procedure in
//!   steps would resolve a few more, but with verdicts that the intervals beside them contradict. With n rounds no
//!   interval can be surer than 1 - 2^(1-n), so a family needs [`fewest_rounds`].
//! - The best: who is excluded by nobody at 5 % for the whole row may be the best; who is shown to be behind nobody by
//!   the floor or more is as good as the best (Hsu, "Multiple Comparisons", 1996, chapter 4: comparison with the best).
//!   Where there is a doubt, being ahead by less shows nothing: it must be ahead by more, or equal within the floor.
//! - Dependence: a first-order correlation r of the rounds' log ratios beyond [`DEPENDENT`] widens the interval by the
//!   root of (1 + r) / (1 - r), the variance of a mean under such correlation (Bayley and Hammersley 1946); where no
//!   ranks are left there is none. What makes rounds depend is the machine, which the layouts of a row share, so r is
//!   their mean; or the layout's own where that is beyond doubt (5 % over the row). Of 20 rounds that depend on nothing
//!   one series in six comes out above 0.2, which would widen as many intervals of each row for nothing.
//!
//! Tests: `tests/comparison.rs`; coverage, power and false alarms under the stopping rule: `tests/rule.rs`.

use crate::document::{Better, Verdict};
use crate::statistics::{baseline_per_round, mean};
use crate::walsh::{self, SignedRank};

/// The chance of any false verdict in a row, at most.
pub const ALPHA: f64 = 0.05;
/// First-order correlation of rounds beyond which they are not taken for independent.
pub const DEPENDENT: f64 = 0.2;
/// More rounds than this are not advised: what they would show is not worth it.
pub const MOST_MORE: u32 = 1_000;

/// The fewest rounds in which one of so many comparisons can be resolved.
pub fn fewest_rounds(comparisons: usize) -> u32 {
    let most = ALPHA / comparisons.max(1) as f64;
    let mut rounds = 1;
    let mut chance = 1.0;
    while chance > most {
        rounds += 1;
        chance /= 2.0;
    }
    rounds
}

/// Layouts that met the same work, round by round.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The samples of each layout, in the order of the rounds.
    pub layouts: &'a [&'a [f64]],
    /// The layouts that the others are compared with: by the mean of their samples of each round.
    pub baseline: &'a [usize],
    /// What the first layout of the baseline showed once more, under another name: its samples are the mean of both,
    /// which are steadier than either.
    pub again: Option<&'a [f64]>,
    /// Which way is better.
    pub better: Better,
    /// Ratios nearer to 1 than this mean nothing: 0.01 for 1 %.
    pub floor: f64,
    /// The source of the samples cannot tell ratios nearer to 1 than this from 1, whatever the rounds show: they are
    /// not resolved. 0 of what was measured.
    pub doubt: f64,
    /// The rounds were drawn, and depend on nothing.
    pub drawn: bool,
}

/// A layout against the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// (exp(centre of the log ratios) - 1) x 100, of values as they are: more is more.
    pub percent: f64,
    /// The interval of that, for all comparisons of the row together; `None` where rounds are too few.
    pub interval: Option<[f64; 2]>,
    /// What is shown.
    pub verdict: Verdict,
    /// So many more rounds would likely resolve it; `None` when it is resolved, or [`MOST_MORE`] would not do.
    pub more_rounds: Option<u32>,
    /// First-order correlation of the rounds' log ratios; `None` of drawn or too few rounds.
    pub dependence: Option<f64>,
}

/// A layout among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// No other is shown to be better.
    pub may_be_best: bool,
    /// No other is better by the floor or more, which is shown.
    pub as_good_as_best: bool,
}

impl Row<'_> {
    /// Each layout against the baseline, in their order; `None` for the baseline itself and where no ratio can be
    /// taken.
    pub fn compare(&self) -> Vec<Option<Comparison>> {
        let base = self.base();
        let family = self.family();
        let (mut ranks, shared) = (SignedRank::of(base.len()), self.dependence(&base));
        let (floor, doubt) = (self.log_floor(), self.log_doubt());
        let mut ratios = |at: usize| {
            let is_base = self.baseline.contains(&at) || base.is_empty();
            if is_base {
                return None;
            }
            let logs = self.logs(self.layouts[at], &base)?;
            let mut ratios = Ratios::new(logs, &mut ranks, shared);
            ratios.resolve((floor, doubt), ALPHA / family as f64);
            Some(ratios)
        };
        let comparison = |ratios: Ratios| ratios.comparison(self.better, (floor, doubt), family);
        (0..self.layouts.len()).map(|at| ratios(at).map(comparison)).collect()
    }

    /// How each layout stands among all.
    pub fn against_best(&self) -> Vec<Standing> {
        let others = self.layouts.len().saturating_sub(1).max(1);
        let (level, floor) = (ALPHA / others as f64, self.log_floor());
        let doubt = if self.doubt > 0.0 { self.log_doubt() } else { 0.0 };
        let base = self.base();
        let base = if base.is_empty() { self.layouts.first().copied() } else { Some(&*base) };
        let base = base.unwrap_or_default();
        let (mut ranks, shared) = (SignedRank::of(base.len()), self.dependence(base));
        // What was measured twice is the mean of both here, too.
        let twice = self.first_of_base();
        let samples = |at: usize| match self.baseline.first() {
            Some(first) if *first == at => &*twice,
            _ => self.layouts[at],
        };
        let mut of = |one: usize| {
            let mut standing = Standing { may_be_best: true, as_good_as_best: true };
            for other in (0..self.layouts.len()).filter(|other| *other != one) {
                let Some(logs) = self.logs(samples(other), samples(one)) else {
                    standing.as_good_as_best = false;
                    continue;
                };
                let ratios = Ratios::new(logs, &mut ranks, shared);
                // One-sided: half of what the ranks leave out on both sides.
                let bounds = ratios.bounds(2.0 * level);
                standing.may_be_best &= bounds.is_none_or(|(low, _)| low <= doubt);
                // Ahead by less than the doubt it may be behind, unless both are equal.
                let behind_in_doubt =
                    |(low, high): (f64, f64)| high >= -doubt && low <= -floor && doubt > 0.0;
                standing.as_good_as_best &=
                    bounds.is_some_and(|ends| ends.1 < floor && !behind_in_doubt(ends));
            }
            standing
        };
        (0..self.layouts.len()).map(&mut of).collect()
    }

    /// Whether more rounds would tell nothing that is asked for: every comparison is resolved, or differences of
    /// `precision` (0.05 for 5 %) or more are excluded.
    pub fn is_settled(&self, precision: f64) -> bool {
        // What lies within the doubt no round resolves.
        let precision = precision.max(self.doubt);
        let (up, down) = (precision * 100.0, (1.0 / (1.0 + precision) - 1.0) * 100.0);
        self.compare().into_iter().flatten().all(|one| {
            let excluded = one.interval.is_some_and(|[low, high]| low > down && high < up);
            excluded || one.verdict != Verdict::NotResolved
        })
    }

    /// How many layouts are compared with the baseline.
    pub fn family(&self) -> usize {
        let others = (0..self.layouts.len()).filter(|at| !self.baseline.contains(at));
        others.count().max(1)
    }

    fn log_floor(&self) -> f64 {
        libm::log1p(self.floor)
    }

    /// The least that a difference must be before it is resolved.
    fn log_doubt(&self) -> f64 {
        libm::log1p(self.doubt.max(self.floor))
    }

    /// The samples of the first layout of the baseline, of two names the mean.
    fn first_of_base(&self) -> Vec<f64> {
        let Some(first) = self.baseline.first() else { return Vec::new() };
        let alike: Vec<&[f64]> = [self.layouts[*first]].into_iter().chain(self.again).collect();
        baseline_per_round(&alike)
    }

    /// The baseline's value in each round.
    fn base(&self) -> Vec<f64> {
        let first = self.first_of_base();
        if self.baseline.is_empty() {
            return first;
        }
        let others = self.baseline[1..].iter().map(|at| self.layouts[*at]);
        let all: Vec<&[f64]> = [first.as_slice()].into_iter().chain(others).collect();
        baseline_per_round(&all)
    }

    /// The log ratios of one to another, better ones above 0; `None` without a round, or where a value is nothing.
    fn logs(&self, one: &[f64], other: &[f64]) -> Option<Vec<f64>> {
        let sign = match self.better {
            Better::Higher => 1.0,
            Better::Lower => -1.0,
        };
        let logs = log_ratios(one, other)?;
        Some(logs.into_iter().map(|log| sign * log).collect())
    }

    /// What the layouts of the row show together of how rounds depend on the ones before; `None` of drawn rounds.
    fn dependence(&self, base: &[f64]) -> Option<Dependence> {
        let of = |at: usize| {
            let logs = log_ratios(self.layouts[at], base)?;
            Some(correlation(&logs)? + 1.0 / logs.len() as f64)
        };
        let others = (0..self.layouts.len()).filter(|at| !self.baseline.contains(at));
        let all: Vec<f64> = others.filter_map(of).collect();
        let correlation = mean(&all).unwrap_or(0.0);
        (!self.drawn).then(|| Dependence { correlation, family: self.family() })
    }
}

/// The logarithm of the ratio of each round; `None` without a round, or where a value is not above 0.
pub fn log_ratios(values: &[f64], base: &[f64]) -> Option<Vec<f64>> {
    let log = |(value, base): (&f64, &f64)| {
        let known = *value > 0.0 && *base > 0.0 && value.is_finite() && base.is_finite();
        known.then(|| libm::log(value / base))
    };
    let logs: Vec<f64> = values.iter().zip(base).map(log).collect::<Option<_>>()?;
    (!logs.is_empty()).then_some(logs)
}

/// How the rounds of a row depend on the ones before.
#[derive(Clone, Copy)]
struct Dependence {
    /// The mean over the layouts, its bias taken off.
    correlation: f64,
    /// How many layouts are compared.
    family: usize,
}

/// Log ratios, better ones above 0.
struct Ratios {
    /// In ascending order.
    sorted: Vec<f64>,
    ranks: SignedRank,
    dependence: Option<f64>,
    /// How much wider than of independent rounds intervals are.
    widening: f64,
    verdict: Verdict,
}

impl Ratios {
    /// `ranks` are kept for others of as many rounds; `shared` is the dependence of the row, `None` of drawn rounds.
    fn new(logs: Vec<f64>, ranks: &mut SignedRank, shared: Option<Dependence>) -> Self {
        if ranks.count() != logs.len() {
            *ranks = SignedRank::of(logs.len());
        }
        let dependence = shared.and_then(|_| correlation(&logs));
        let rounds = logs.len() as f64;
        let own = dependence.map_or(0.0, |own| own + 1.0 / rounds);
        // In units of a root of the rounds that of independent ones is about normal.
        let chance = libm::erfc(own * libm::sqrt(rounds) / core::f64::consts::SQRT_2) / 2.0;
        let correlation = shared.map_or(0.0, |row| {
            if chance <= ALPHA / row.family as f64 {
                row.correlation.max(own)
            } else {
                row.correlation
            }
        });
        let widening = if correlation > DEPENDENT {
            libm::sqrt((1.0 + correlation) / (1.0 - correlation).max(1e-3))
        } else {
            1.0
        };
        let mut sorted = logs;
        sorted.sort_by(f64::total_cmp);
        let ranks = ranks.clone();
        Self { sorted, ranks, dependence, widening, verdict: Verdict::NotResolved }
    }

    /// The chance that the average of a rank and its counterpart do not bound the centre.
    fn missed(&self, rank: usize) -> f64 {
        if self.widening <= 1.0 {
            return self.ranks.missed(rank);
        }
        let middle = (self.ranks.averages() as f64 + 1.0) / 2.0;
        let nearer = libm::ceil(middle - (middle - rank as f64) / self.widening) as usize;
        self.ranks.missed(nearer)
    }

    /// The narrowest interval that misses the centre with at most this chance.
    fn bounds(&self, chance: f64) -> Option<(f64, f64)> {
        walsh::interval(&self.sorted, |rank| self.missed(rank) <= chance)
    }

    /// By the surest interval that lies wholly on one side of the doubt, or within the floor, if it misses the centre
    /// with at most this chance.
    fn resolve(&mut self, (floor, doubt): (f64, f64), most: f64) {
        let to = |bound| walsh::count_to(&self.sorted, bound, false);
        let from = |bound| self.ranks.averages() - walsh::count_to(&self.sorted, bound, true);
        // As many averages lie on the wrong side of a bound: the next rank is the first that does not.
        let (faster, slower) = (to(doubt), from(-doubt));
        let equal = to(-floor).max(from(floor));
        let verdicts =
            [(faster, Verdict::Faster), (slower, Verdict::Slower), (equal, Verdict::Equal)];
        let mut least = f64::INFINITY;
        for (wrong, verdict) in verdicts {
            let chance = self.missed(wrong + 1);
            if chance <= most && chance < least {
                (self.verdict, least) = (verdict, chance);
            }
        }
    }

    fn comparison(&self, better: Better, edges: (f64, f64), family: usize) -> Comparison {
        let percent = |log: f64| {
            let sign = if better == Better::Higher { 1.0 } else { -1.0 };
            libm::expm1(sign * log) * 100.0
        };
        let bounds = self.bounds(ALPHA / family as f64);
        let interval = bounds.map(|(low, high)| {
            let (low, high) = (percent(low), percent(high));
            if low <= high { [low, high] } else { [high, low] }
        });
        let middle = walsh::centre(&self.sorted).unwrap_or(0.0);
        let more = || self.more(middle, bounds, edges, family);
        Comparison {
            percent: percent(middle),
            interval,
            verdict: self.verdict,
            more_rounds: if self.verdict == Verdict::NotResolved { more() } else { None },
            dependence: self.dependence,
        }
    }

    /// Widths shrink with the root of the rounds: so many more until the interval fits beside the floor or in it.
    fn more(
        &self,
        middle: f64,
        bounds: Option<(f64, f64)>,
        (floor, doubt): (f64, f64),
        family: usize,
    ) -> Option<u32> {
        let rounds = self.sorted.len() as u32;
        let least = fewest_rounds(family).saturating_sub(rounds).max(1);
        let Some((low, high)) = bounds else { return Some(least) };
        let size = if middle < 0.0 { -middle } else { middle };
        // Beyond the doubt, or within the floor; between both nothing resolves it.
        let gap = (size - doubt).max(floor - size);
        if gap < 0.0 {
            return None;
        }
        let times = (high - low) / 2.0 / gap;
        let needed = f64::from(rounds) * times * times;
        // Written so that no number fails it.
        if needed <= f64::from(MOST_MORE) {
            Some((needed as u32).saturating_sub(rounds).max(least))
        } else {
            None
        }
    }
}

/// First-order correlation, with its bias of -1/n (Marriott and Pope 1954, for no correlation) in it; `None` of fewer
/// than 6 values or of equal ones.
pub fn correlation(values: &[f64]) -> Option<f64> {
    let count = values.len();
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (count >= 6 && squares > 0.0).then(|| products / squares)
}
