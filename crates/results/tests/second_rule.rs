//! The rule for verdicts against a second computation of it, from its words in docs/results.md alone: means of every
//! two rounds in a list, chances by counting all ways in which signs can fall.

use crate::support::Random;
use raidlab_results::comparison::{Comparison, Row, Standing};
use raidlab_results::{Better, Verdict};

const ALPHA: f64 = 0.05;
/// Rounds that rows have.
const FEWEST: usize = 5;
const MOST: usize = 14;

/// For each sum of ranks, from 0 on, in how many of all ways in which each difference may lie above or below the centre
/// the sum of those above is at most that.
struct Signs {
    rounds: usize,
    at_most: Vec<u64>,
}

impl Signs {
    fn of(rounds: usize) -> Self {
        let mut at_most = vec![0; rounds * (rounds + 1) / 2 + 1];
        for signs in 0_u32..1 << rounds {
            let sum: usize = (0..rounds).filter(|at| signs >> at & 1 == 1).map(|at| at + 1).sum();
            at_most[sum] += 1;
        }
        for sum in 1..at_most.len() {
            at_most[sum] += at_most[sum - 1];
        }
        Self { rounds, at_most }
    }

    /// The innermost rank of the means, from 1, that misses with at most this chance on both sides; 0 where none does.
    fn rank(&self, chance: f64) -> usize {
        let half = self.rounds * (self.rounds + 1) / 4;
        let all = (1_u64 << self.rounds) as f64;
        (1..=half)
            .rev()
            .find(|rank| 2.0 * self.at_most[rank - 1] as f64 / all <= chance)
            .unwrap_or(0)
    }
}

fn correlation(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = off.iter().map(|one| one * one).sum();
    let products: f64 = off.windows(2).map(|two| two[0] * two[1]).sum();
    (values.len() >= 6 && squares > 0.0).then(|| products / squares)
}

/// The whole row, as the words of the rule have it.
struct Second<'a> {
    row: &'a Row<'a>,
    signs: &'a Signs,
    /// The baseline in each round.
    base: Vec<f64>,
    /// The samples of each layout, of the one that was measured twice the mean of both.
    samples: Vec<Vec<f64>>,
    /// The mean correlation of the row; nothing of drawn rounds.
    shared: Option<f64>,
    family: usize,
}

impl<'a> Second<'a> {
    fn of(row: &'a Row<'a>, signs: &'a Signs) -> Self {
        let mut samples: Vec<Vec<f64>> = row.layouts.iter().map(|one| one.to_vec()).collect();
        let first = row.baseline[0];
        if let Some(again) = row.again {
            samples[first] = samples[first].iter().zip(again).map(|(a, b)| (a + b) / 2.0).collect();
        }
        let rounds = samples[0].len();
        let base: Vec<f64> = (0..rounds)
            .map(|at| {
                let all = row.baseline.iter().map(|layout| samples[*layout][at]);
                all.sum::<f64>() / row.baseline.len() as f64
            })
            .collect();
        let others: Vec<usize> =
            (0..samples.len()).filter(|at| !row.baseline.contains(at)).collect();
        let each: Vec<f64> = others
            .iter()
            .filter_map(|at| {
                let logs: Vec<f64> = samples[*at]
                    .iter()
                    .zip(&base)
                    .map(|(one, base)| libm::log(one / base))
                    .collect();
                Some(correlation(&logs)? + 1.0 / rounds as f64)
            })
            .collect();
        let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
        let shared = (!row.drawn).then_some(mean);
        let family = others.len().max(1);
        Self { row, signs, base, samples, shared, family }
    }

    fn logs(&self, one: &[f64], other: &[f64]) -> Vec<f64> {
        let up = if self.row.better == Better::Higher { 1.0 } else { -1.0 };
        one.iter().zip(other).map(|(one, other)| up * libm::log(one / other)).collect()
    }

    /// By how much intervals of these logs are wider than of independent rounds.
    fn widening(&self, logs: &[f64]) -> f64 {
        let Some(shared) = self.shared else { return 1.0 };
        let n = logs.len() as f64;
        let own = correlation(logs).map_or(0.0, |own| own + 1.0 / n);
        let is_sure =
            libm::erfc(own * n.sqrt() / 2.0_f64.sqrt()) / 2.0 <= ALPHA / self.family as f64;
        let r = if is_sure && own > shared { own } else { shared };
        if r > 0.2 { ((1.0 + r) / (1.0 - r).max(1e-3)).sqrt() } else { 1.0 }
    }

    /// The interval that misses with at most this chance: in ranks so many times as far from the middle as of
    /// independent rounds.
    fn interval(&self, logs: &[f64], chance: f64) -> Option<(f64, f64)> {
        let mut means: Vec<f64> = Vec::new();
        for (at, one) in logs.iter().enumerate() {
            means.extend(logs[..=at].iter().map(|other| (one + other) / 2.0));
        }
        means.sort_by(f64::total_cmp);
        let rank = self.signs.rank(chance);
        let middle = (means.len() as f64 + 1.0) / 2.0;
        let widening = self.widening(logs);
        let rank = if widening > 1.0 && rank > 0 {
            (middle - widening * (middle - rank as f64)).floor().max(0.0) as usize
        } else {
            rank
        };
        (rank > 0).then(|| (means[rank - 1], means[means.len() - rank]))
    }

    fn verdict(&self, logs: &[f64], chance: f64) -> Option<Verdict> {
        let floor = libm::log1p(self.row.floor);
        let doubt = libm::log1p(self.row.doubt.max(self.row.floor));
        match self.interval(logs, chance)? {
            (low, _) if low > doubt => Some(Verdict::Faster),
            (_, high) if high < -doubt => Some(Verdict::Slower),
            (low, high) if -floor < low && high < floor => Some(Verdict::Equal),
            _ => None,
        }
    }

    /// What the interval that stands beside it shows.
    fn verdicts(&self) -> Vec<Option<Verdict>> {
        let of = |at: usize| {
            let logs = self.logs(&self.samples[at], &self.base);
            let shown = self.verdict(&logs, ALPHA / self.family as f64);
            (!self.row.baseline.contains(&at)).then_some(shown.unwrap_or(Verdict::NotResolved))
        };
        (0..self.samples.len()).map(of).collect()
    }

    /// Of values as they are, for all comparisons of the row together.
    fn percent_interval(&self, at: usize) -> Option<[f64; 2]> {
        let up = if self.row.better == Better::Higher { 1.0 } else { -1.0 };
        let logs = self.logs(&self.samples[at], &self.base);
        let (low, high) = self.interval(&logs, ALPHA / self.family as f64)?;
        let mut ends = [up * low, up * high].map(|log| libm::expm1(log) * 100.0);
        ends.sort_by(f64::total_cmp);
        Some(ends)
    }

    /// Nobody is shown to be better at 5 % over the row, one-sided; and all are shown not to be better by the floor.
    fn standings(&self) -> Vec<Standing> {
        let floor = libm::log1p(self.row.floor);
        let doubt = match self.row.doubt > 0.0 {
            true => libm::log1p(self.row.doubt.max(self.row.floor)),
            false => 0.0,
        };
        let others = self.samples.len() - 1;
        let of = |one: usize| {
            let mut standing = Standing { may_be_best: true, as_good_as_best: true };
            for other in (0..self.samples.len()).filter(|other| *other != one) {
                let logs = self.logs(&self.samples[other], &self.samples[one]);
                let ends = self.interval(&logs, 2.0 * ALPHA / others as f64);
                let (low, high) = ends.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                standing.may_be_best &= low <= doubt;
                // Ahead by more than the doubt, or equal: between both the model tells nothing.
                let is_sure = doubt == 0.0 || high < -doubt || low > -floor;
                standing.as_good_as_best &= high < floor && is_sure;
            }
            standing
        };
        (0..self.samples.len()).map(of).collect()
    }

    /// Resolved, or a factor of 1 + `precision` is excluded, up and down.
    fn is_settled(&self, precision: f64) -> bool {
        let most = 1.0 + precision.max(self.row.doubt);
        self.verdicts().iter().enumerate().all(|(at, verdict)| match verdict {
            Some(Verdict::NotResolved) => self.percent_interval(at).is_some_and(|ends| {
                let [low, high] = ends.map(|percent| 1.0 + percent / 100.0);
                low > 1.0 / most && high < most
            }),
            _ => true,
        })
    }
}

/// Rounds that go up and down together, and of which each hangs on the one before as much as `strength` says.
fn rounds(random: &mut Random, count: usize, level: f64, noise: f64, strength: f64) -> Vec<f64> {
    let mut last = random.normal();
    let mut next = || {
        last = strength * last + (1.0 - strength * strength).sqrt() * random.normal();
        level * libm::exp(noise * last)
    };
    (0..count).map(|_| next()).collect()
}

/// What was seen of cases: each must have come up.
#[derive(Debug, Default)]
struct Seen {
    verdicts: [u32; 4],
    widened: u32,
    own: u32,
    settled: u32,
    unsettled: u32,
    good: u32,
    open: u32,
}

fn check(row: &Row<'_>, signs: &Signs, seen: &mut Seen, at: u32) {
    let second = Second::of(row, signs);
    let found: Vec<Option<Comparison>> = row.compare();
    let verdicts: Vec<Option<Verdict>> =
        found.iter().map(|one| one.map(|one| one.verdict)).collect();
    assert_eq!(verdicts, second.verdicts(), "{at}: {row:?}");
    for (layout, one) in found.iter().enumerate() {
        let Some(one) = one else { continue };
        let expected = second.percent_interval(layout);
        assert_eq!(one.interval.is_some(), expected.is_some(), "{at}: {layout} of {row:?}");
        for (found, expected) in one.interval.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-9, "{at}: {found}, not {expected}, {row:?}");
        }
        let logs = second.logs(&second.samples[layout], &second.base);
        let widening = second.widening(&logs);
        let of_row = second.shared.unwrap_or(0.0);
        seen.widened += u32::from(widening > 1.0);
        seen.own += u32::from(widening > 1.0 && of_row <= 0.2);
        seen.verdicts[one.verdict as usize] += 1;
    }
    let standings = row.against_best();
    assert_eq!(standings, second.standings(), "{at}: {row:?}");
    seen.good += standings.iter().filter(|one| one.as_good_as_best).count() as u32;
    seen.open +=
        standings.iter().filter(|one| one.may_be_best && !one.as_good_as_best).count() as u32;
    for precision in [0.01, 0.03, 0.06, 0.12, 0.25] {
        let settled = row.is_settled(precision);
        assert_eq!(settled, second.is_settled(precision), "{at}: {precision} of {row:?}");
        *(if settled { &mut seen.settled } else { &mut seen.unsettled }) += 1;
    }
}

/// Rows of two to seven layouts in 5 to 14 rounds, measured and drawn, with one baseline and several, the first of
/// which was measured twice or not, and with and without what a model cannot tell.
#[test]
fn the_rule_is_what_its_words_say() {
    let mut random = Random::new(20_261_128);
    let mut seen = Seen::default();
    let all_signs: Vec<Signs> = (FEWEST..=MOST).map(Signs::of).collect();
    for at in 0..1_000 {
        let pick =
            |random: &mut Random, all: &[f64]| all[(random.next() % all.len() as u64) as usize];
        // In every third row one layout's rounds hang on one another, and those of the others do not.
        let is_lone = random.next().is_multiple_of(3);
        let fewest = if is_lone { MOST - 1 } else { FEWEST };
        let count = fewest + (random.next() % (MOST - fewest + 1) as u64) as usize;
        let layouts = if is_lone { 4 } else { 2 } + (random.next() % 4) as usize;
        let noise = pick(&mut random, &[0.0005, 0.004, 0.02, 0.08]);
        let strength = pick(&mut random, &[0.0, 0.0, 0.8, 0.98]);
        let wave = rounds(&mut random, count, 1.0, 0.1, 0.0);
        let samples: Vec<Vec<f64>> = (0..=layouts)
            .map(|layout| {
                let level =
                    100.0 * pick(&mut random, &[1.0, 1.0, 1.004, 1.02, 0.97, 1.08, 1.5, 0.7]);
                let strength = match (is_lone, layout) {
                    (true, 1) => 0.98,
                    (true, _) => 0.0,
                    (false, _) => strength * pick(&mut random, &[0.0, 1.0]),
                };
                let noise = if is_lone && layout != 1 { noise / 10.0 } else { noise };
                let own = rounds(&mut random, count, level, noise, strength);
                own.iter().zip(&wave).map(|(own, wave)| own * wave).collect()
            })
            .collect();
        let all: Vec<&[f64]> = samples[..layouts].iter().map(Vec::as_slice).collect();
        let first = if is_lone { 0 } else { (random.next() % layouts as u64) as usize };
        let several = layouts > 2 && !is_lone && random.next().is_multiple_of(4);
        let mut baseline = vec![first];
        baseline.extend(several.then_some((first + 1) % layouts));
        // As a study lists them, in its order.
        baseline.sort_unstable();
        let row = Row {
            layouts: &all,
            baseline: &baseline,
            again: random.next().is_multiple_of(2).then_some(&*samples[layouts]),
            better: if random.next().is_multiple_of(2) { Better::Higher } else { Better::Lower },
            floor: pick(&mut random, &[0.005, 0.01, 0.03]),
            doubt: pick(&mut random, &[0.0, 0.0, 0.05, 0.2]),
            drawn: random.next().is_multiple_of(2),
        };
        check(&row, &all_signs[count - FEWEST], &mut seen, at);
    }
    let all = [seen.widened, seen.own, seen.settled, seen.unsettled, seen.good, seen.open];
    assert!(all.iter().chain(&seen.verdicts).all(|count| *count >= 20), "{seen:?}");
}

/// More rounds than a thousand nobody is advised to make: at 9 rounds of +-3 % a distance to the floor of 0.3 % takes
/// 9 x (3 / 0.3)^2, about 900, and one of 0.25 % about 1,300.
#[test]
fn more_rounds_than_a_thousand_are_not_advised() {
    let more = |gap: f64| {
        let centre = libm::log1p(0.01) + gap;
        let base = [100.0; 9];
        let other: Vec<f64> = (0..9).map(|at| (f64::from(at) - 4.0) * 0.01 + centre).collect();
        let other: Vec<f64> = other.iter().map(|log| 100.0 * libm::exp(*log)).collect();
        let layouts: [&[f64]; 2] = [&base, &other];
        let (baseline, better) = (&[0][..], Better::Higher);
        let row = Row {
            layouts: &layouts,
            baseline,
            again: None,
            better,
            floor: 0.01,
            doubt: 0.0,
            drawn: true,
        };
        let one = row.compare()[1].expect("a ratio");
        assert_eq!(one.verdict, Verdict::NotResolved);
        (one.more_rounds, one.interval.expect("nine rounds"))
    };
    let (near, [low, high]) = more(0.003);
    let half = (libm::log1p(high / 100.0) - libm::log1p(low / 100.0)) / 2.0;
    let needed = 9.0 * (half / 0.003) * (half / 0.003);
    assert!(needed < 1_000.0 && (f64::from(near.expect("a number")) + 9.0 - needed).abs() <= 1.0);
    // As far away that a few more than a thousand would do.
    let far = half * (9.0_f64 / 1_010.0).sqrt();
    assert_eq!(more(far).0, None);
    assert!(more(half * (9.0_f64 / 990.0).sqrt()).0.is_some());
}
