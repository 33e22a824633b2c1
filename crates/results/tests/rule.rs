//! How often the rule for verdicts is right, under the stopping rule that studies have: on made-up rounds whose truth
//! is known. Seeds are fixed, so nothing here is left to chance.

use crate::support::Random;
use raidlab_results::comparison::{Row, correlation, fewest_rounds, log_ratios};
use raidlab_results::conduct::floors;
use raidlab_results::statistics::{median, median_interval};
use raidlab_results::{Better, Verdict};

/// Rounds at most.
const MOST: usize = 20;
const PRECISION: f64 = 0.05;
const LEAST_FLOOR: f64 = 0.005;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal,
    /// Exponential above a floor, as times are.
    Skewed,
    /// Two humps, three deviations apart.
    TwoHumped,
}

/// A value whose median is 1, with about this coefficient of variation.
fn value(random: &mut Random, shape: Shape, variation: f64) -> f64 {
    let off = match shape {
        Shape::Normal => random.normal(),
        Shape::Skewed => -libm::log(random.share()) - std::f64::consts::LN_2,
        Shape::TwoHumped => {
            let hump = if random.next() & 1 == 0 { 1.0 } else { -1.0 };
            (random.normal() * 0.5 + hump * 0.866) / 1.0
        }
    };
    (1.0 + variation * off).max(0.01)
}

/// A table: rows of layouts, the last of which is the first once more, under another name.
struct Table {
    rows: Vec<Vec<Vec<f64>>>,
}

impl Table {
    /// Rounds as a study draws them: at least what the family needs, then until each row is settled.
    fn measure(layouts: usize, rows: usize, mut draw: impl FnMut(usize, usize) -> f64) -> Self {
        let mut table = Self { rows: vec![vec![Vec::new(); layouts + 1]; rows] };
        let least = fewest_rounds(layouts - 1) as usize;
        for round in 1..=MOST {
            for (at, row) in table.rows.iter_mut().enumerate() {
                for (layout, samples) in row.iter_mut().enumerate() {
                    samples.push(draw(at, layout));
                }
            }
            if round >= least && table.is_settled() {
                break;
            }
        }
        table
    }

    fn floors(&self) -> Vec<f64> {
        let twins: Vec<Vec<f64>> = self
            .rows
            .iter()
            .map(|row| log_ratios(&row[row.len() - 1], &row[0]).expect("positive values"))
            .collect();
        floors(&twins, LEAST_FLOOR)
    }

    /// What is answered of each row, asked when it is wanted.
    fn answers<T>(&self, mut ask: impl FnMut(Row<'_>) -> T) -> impl Iterator<Item = T> {
        let of_row = move |(samples, floor): (&Vec<Vec<f64>>, f64)| {
            let layouts: Vec<&[f64]> =
                samples[..samples.len() - 1].iter().map(Vec::as_slice).collect();
            let (baseline, better) = (&[0][..], Better::Higher);
            let again = samples.last().map(Vec::as_slice);
            ask(Row { layouts: &layouts, baseline, again, better, floor, doubt: 0.0, drawn: false })
        };
        self.rows.iter().zip(self.floors()).map(of_row)
    }

    fn with_rows<T>(&self, ask: impl FnMut(Row<'_>) -> T) -> Vec<T> {
        self.answers(ask).collect()
    }

    fn is_settled(&self) -> bool {
        let narrow = |samples: &Vec<f64>| {
            let middle = median(samples).expect("some");
            median_interval(samples)
                .is_some_and(|one| (one.high - one.low) / 2.0 <= PRECISION * middle)
        };
        let cells = self.rows.iter().flatten().all(narrow);
        // Most tables have a row near the first that is not.
        cells && self.answers(|row| row.is_settled(PRECISION)).all(|done| done)
    }

    fn rounds(&self) -> usize {
        self.rows[0][0].len()
    }
}

/// How often an interval covers the truth: of a cell's median and of the ratio of two layouts.
#[test]
fn intervals_cover_under_the_stopping_rule() {
    for (seed, shape) in [(1, Shape::Normal), (2, Shape::Skewed), (3, Shape::TwoHumped)] {
        for variation in [0.01, 0.05, 0.15] {
            let mut random = Random::new(seed);
            let (mut cells, mut ratios, mut rounds, repeats) = (0, 0, 0, 1_000);
            for _ in 0..repeats {
                let table = Table::measure(2, 1, |_, _| value(&mut random, shape, variation));
                let own = median_interval(&table.rows[0][0]).expect("rounds enough");
                cells += u32::from(own.low <= 1.0 && 1.0 <= own.high);
                let covers = table.with_rows(|row| {
                    let one = row.compare()[1].expect("a ratio").interval;
                    one.is_none_or(|[low, high]| low <= 0.0 && 0.0 <= high)
                });
                ratios += u32::from(covers[0]);
                rounds += table.rounds();
            }
            let share = |count: u32| f64::from(count) / f64::from(repeats);
            println!(
                "{shape:?}, CoV {variation}: median {:.3}, ratio {:.3}, {:.1} rounds",
                share(cells),
                share(ratios),
                rounds as f64 / f64::from(repeats)
            );
            assert!(share(cells) >= 0.93 && share(ratios) >= 0.93, "{shape:?} {variation}");
        }
    }
}

/// A layout that is 5 % faster, at a coefficient of variation of 3 %, one of two in a table of 12 rows.
#[test]
fn a_planted_difference_is_called() {
    for (layouts, repeats, least) in [(2, 1_000, 0.9), (12, 1_000, 0.9)] {
        let mut random = Random::new(7);
        let (mut called, mut wrong, mut rounds) = (0, 0, 0);
        for _ in 0..repeats {
            let table = Table::measure(layouts, 12, |row, layout| {
                let planted = if (row, layout) == (0, 1) { 1.05 } else { 1.0 };
                planted * value(&mut random, Shape::Normal, 0.03)
            });
            let shown = table.with_rows(|row| row.compare()[1].expect("a ratio").verdict);
            called += u32::from(shown[0] == Verdict::Faster);
            wrong += u32::from(matches!(shown[0], Verdict::Slower | Verdict::Equal));
            rounds += table.rounds();
        }
        let share = f64::from(called) / f64::from(repeats);
        println!(
            "{layouts} layouts: called {share:.3}, wrong {wrong}, {:.1} rounds",
            rounds as f64 / f64::from(repeats)
        );
        assert!(share >= least && wrong * 200 <= repeats, "{layouts}: {share} {wrong}");
    }
}

/// Tables of 12 layouts and 12 rows in which all are alike.
#[test]
fn nothing_planted_is_hardly_ever_called() {
    for shape in [Shape::Normal, Shape::Skewed, Shape::TwoHumped] {
        let mut random = Random::new(11);
        let (mut tables, repeats) = (0, 200);
        for _ in 0..repeats {
            let table = Table::measure(12, 12, |_, _| value(&mut random, shape, 0.03));
            let false_calls = table.with_rows(|row| {
                let all = row.compare().into_iter().flatten();
                all.filter(|one| matches!(one.verdict, Verdict::Faster | Verdict::Slower)).count()
            });
            tables += u32::from(false_calls.iter().sum::<usize>() > 0);
        }
        let share = f64::from(tables) / f64::from(repeats);
        println!("{shape:?}: tables with a false call: {share:.3}");
        assert!(share <= 0.05, "{shape:?}: {share}");
    }
}

/// Layouts that vary in different ways and are equally fast by their medians: log ratios are not symmetric then. The
/// interval is about the median of the means of two rounds, which is less than a tenth of a deviation away, and no
/// difference is called.
#[test]
fn layouts_of_different_shapes_are_not_called_different() {
    use Shape::{Normal, Skewed, TwoHumped};
    let pairs = [(Normal, Skewed), (Skewed, Normal), (Skewed, TwoHumped), (TwoHumped, Skewed)];
    for (base, other) in pairs {
        for variation in [0.01, 0.05] {
            let mut random = Random::new(17);
            let (mut covered, mut called, repeats) = (0, 0, 1_000);
            for _ in 0..repeats {
                let table = Table::measure(2, 1, |_, layout| {
                    value(&mut random, if layout == 1 { other } else { base }, variation)
                });
                table.with_rows(|row| {
                    let one = row.compare()[1].expect("a ratio");
                    let covers = one.interval.is_none_or(|[low, high]| low <= 0.0 && 0.0 <= high);
                    covered += u32::from(covers);
                    called += u32::from(matches!(one.verdict, Verdict::Faster | Verdict::Slower));
                });
            }
            let share = |count: u32| f64::from(count) / f64::from(repeats);
            let (covered, called) = (share(covered), share(called));
            println!(
                "{other:?} to {base:?}, CoV {variation}: median {covered:.3}, called {called:.3}"
            );
            assert!(called <= 0.05 && covered >= 0.85, "{other:?} to {base:?} {variation}");
        }
    }
}

/// Rounds that depend on the ones before.
#[test]
fn dependence_is_seen() {
    for (strength, least, most) in [(0.5, 0.8, 1.0), (0.7, 0.8, 1.0), (0.0, 0.0, 0.25)] {
        let mut random = Random::new(13);
        let (mut seen, repeats) = (0, 1_000);
        for _ in 0..repeats {
            let mut last = random.normal();
            let values: Vec<f64> = (0..MOST)
                .map(|_| {
                    let fresh = libm::sqrt(1.0 - strength * strength) * random.normal();
                    last = strength * last + fresh;
                    last
                })
                .collect();
            seen +=
                u32::from(correlation(&values).is_some_and(|one| one + 1.0 / MOST as f64 > 0.2));
        }
        let share = f64::from(seen) / f64::from(repeats);
        println!("dependence {strength}: seen in {share:.3}");
        assert!((least..=most).contains(&share), "{strength}: {share}");
    }
}
