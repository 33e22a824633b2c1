//! How near some cells are met.

use raidlab_random::{Random, mix};
use raidlab_results::statistics::median;

use super::orderings::Pair;
use super::{BANDS, Compared, Share, quantile};

/// Samples of cells that limits are taken from.
const RESAMPLES: usize = 1_000;
/// For which purpose seeds are drawn.
const FOR_LIMITS: u64 = 7;

/// How near.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// How many cells.
    pub cells: usize,
    /// The median of the sizes of the errors, as a share.
    pub median: Option<f64>,
    /// 95 of 100 are at most so large.
    pub p95: Option<f64>,
    /// Pairs in the right order, by the size of the true difference.
    pub orderings: [Share; BANDS.len()],
    /// Pairs that the kernel does not tell apart, and the other says differ.
    pub false_differences: Share,
    /// 1 less the median error over that of a naive guess: what the kernel does in other cells with the same workload,
    /// think time and class of drive. 0 is no better, 1 is no error.
    pub skill: Option<f64>,
    /// 95 % limits.
    pub limits: Limits,
}

/// 95 % limits by the bootstrap (percentiles), in which cells, each a study, are drawn with replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Of the median.
    pub median: Option<[f64; 2]>,
    /// Of the share of pairs beyond 10 % in the right order.
    pub beyond: Option<[f64; 2]>,
}

impl Score {
    /// Of some cells; `all` are those that a naive guess is made of. `seed` draws the bootstrap.
    pub fn of(cells: &[&Compared<'_>], all: &[&Compared<'_>], seed: u64) -> Self {
        let offs: Vec<f64> = cells.iter().map(|cell| cell.off()).collect();
        let pairs = Pair::all(cells);
        let ones = vec![1.0; cells.len()];
        let (orderings, false_differences) = shares(&pairs, &ones);
        Self {
            cells: cells.len(),
            median: median(&offs),
            p95: quantile(&offs, 0.95),
            orderings,
            false_differences,
            skill: skill(cells, all),
            limits: Limits::of(&offs, &pairs, seed),
        }
    }

    /// Pairs beyond 10 % in the right order.
    pub fn beyond(&self) -> Share {
        beyond(&self.orderings)
    }
}

fn beyond(bands: &[Share; BANDS.len()]) -> Share {
    let [_, middle, large] = *bands;
    Share { hits: middle.hits + large.hits, of: middle.of + large.of }
}

/// Right orders by band, and false differences, where each cell counts as often as its weight.
fn shares(pairs: &[Pair], weights: &[f64]) -> ([Share; BANDS.len()], Share) {
    let mut bands = [Share::default(); BANDS.len()];
    let mut wrong = Share::default();
    for pair in pairs {
        let weight = weights[pair.cells[0]] * weights[pair.cells[1]];
        if let Some(band) = pair.band() {
            bands[band].add(weight, pair.is_right());
        }
        if let Some(is_false) = pair.is_false() {
            wrong.add(weight, is_false);
        }
    }
    (bands, wrong)
}

/// See [`Score::skill`].
fn skill(cells: &[&Compared<'_>], all: &[&Compared<'_>]) -> Option<f64> {
    let mut own = Vec::new();
    let mut naive = Vec::new();
    for cell in cells {
        let is_near =
            |other: &&&Compared<'_>| cell.drawn.number != other.drawn.number && cell.is_like(other);
        let near: Vec<f64> =
            all.iter().filter(is_near).filter_map(|other| median(&other.kernel)).collect();
        if let (Some(guess), Some(truth)) = (median(&near), median(&cell.kernel)) {
            own.push(cell.off());
            naive.push((guess / truth - 1.0).abs());
        }
    }
    let (own, naive) = (median(&own)?, median(&naive)?);
    (naive > 0.0).then(|| 1.0 - own / naive)
}

impl Limits {
    fn of(offs: &[f64], pairs: &[Pair], seed: u64) -> Self {
        let mut random = Random::new(mix(&[seed, FOR_LIMITS]));
        let (mut medians, mut shares_right) = (Vec::new(), Vec::new());
        for _ in 0..RESAMPLES {
            let mut weights = vec![0.0; offs.len()];
            let mut drawn = Vec::with_capacity(offs.len());
            for _ in offs {
                let at = random.below(offs.len() as u64) as usize;
                weights[at] += 1.0;
                drawn.push(offs[at]);
            }
            medians.extend(median(&drawn));
            shares_right.extend(beyond(&shares(pairs, &weights).0).value());
        }
        let ends = |values: &[f64]| Some([quantile(values, 0.025)?, quantile(values, 0.975)?]);
        // Of a few cells the samples are hardly different: no limits are better than wrong ones.
        let enough = offs.len() >= 5;
        Self {
            median: ends(&medians).filter(|_| enough),
            beyond: ends(&shares_right).filter(|_| enough),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{Drawing, draw};

    /// Cells of one kind of workload with a kernel's and a model's figure.
    fn cells<'a>(drawing: &'a Drawing, figures: &[(f64, f64)]) -> Vec<Compared<'a>> {
        let like = drawing.cells.iter().filter(|cell| {
            cell.value("workload") == "random-read"
                && cell.value("think") == "none"
                && cell.value("drive") == "hdd"
        });
        let cell = |(drawn, (kernel, model)): (&'a crate::drawn::Drawn, &(f64, f64))| {
            Compared::new(drawn, "iops", vec![*kernel], vec![*model]).expect("values")
        };
        let all: Vec<Compared<'_>> = like.zip(figures).map(cell).collect();
        assert_eq!(all.len(), figures.len(), "so many are drawn");
        all
    }

    #[test]
    fn errors_orders_and_skill_are_what_they_are_by_hand() {
        let drawing = draw(1, 600);
        let all =
            cells(&drawing, &[(100.0, 110.0), (107.0, 100.0), (130.0, 130.0), (260.0, 250.0)]);
        let all: Vec<&Compared<'_>> = all.iter().collect();
        let score = Score::of(&all, &all, 1);
        let expected = (1.0 - 100.0 / 107.0 + 10.0 / 260.0) / 2.0;
        assert!((score.median.expect("has one") - expected).abs() < 1e-12);
        assert!((score.p95.expect("has one") - 0.1).abs() < 1e-12);
        // 100 and 107 are said the other way round; 107 and 130 differ by 21.5 %.
        assert_eq!(score.orderings[0], Share { hits: 0.0, of: 1.0 });
        assert_eq!(score.orderings[1], Share { hits: 1.0, of: 1.0 });
        assert_eq!(score.orderings[2], Share { hits: 4.0, of: 4.0 });
        assert_eq!(score.beyond(), Share { hits: 5.0, of: 5.0 });
        // Guesses: 130, 130, 107, 107.
        let guesses = [0.3, 130.0 / 107.0 - 1.0, 1.0 - 107.0 / 130.0, 1.0 - 107.0 / 260.0];
        let naive = f64::midpoint(guesses[0], guesses[1]);
        assert!((score.skill.expect("has one") - (1.0 - expected / naive)).abs() < 1e-12);
    }

    #[test]
    fn limits_of_a_median_cover_it_and_narrow_with_more_cells() {
        let drawing = draw(1, 600);
        let figures: Vec<(f64, f64)> =
            (0..12).map(|at| (100.0, 100.0 + f64::from(at * 7 % 12))).collect();
        let few = cells(&drawing, &figures[..6]);
        let few: Vec<&Compared<'_>> = few.iter().collect();
        let score = Score::of(&few, &few, 1);
        let [low, high] = score.limits.median.expect("enough cells");
        let median = score.median.expect("has one");
        assert!(low < median && median < high && high <= 0.11, "{low} {median} {high}");
        assert_eq!(Score::of(&few, &few, 1), score, "one seed, one result");
        assert_eq!(Score::of(&few[..4], &few, 1).limits, Limits::default());
    }
}
