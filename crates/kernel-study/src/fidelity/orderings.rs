//! Which of two cells is ahead: whether kernel and model say the same.

use super::Compared;

/// Sizes of true differences, as shares of the smaller, by which orderings are told: from the first up to the second.
pub const BANDS: [(f64, f64); 3] = [(0.05, 0.10), (0.10, 0.25), (0.25, f64::INFINITY)];

/// The least that the model must say of two cells that the kernel does not tell apart, as a share, before it is false.
const FALSE_FROM: f64 = 0.05;

/// So many of so many; weights of a bootstrap make both more than counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// How many.
    pub hits: f64,
    /// Of how many.
    pub of: f64,
}

impl Share {
    /// From 0 to 1; `None` of nothing.
    pub fn value(self) -> Option<f64> {
        (self.of > 0.0).then(|| self.hits / self.of)
    }

    pub(super) fn add(&mut self, weight: f64, hit: bool) {
        self.of += weight;
        self.hits += if hit { weight } else { 0.0 };
    }
}

/// Two cells with the same figure of the same kind of workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) cells: [usize; 2],
    /// The logarithm of the ratio of the kernel's medians.
    truth: f64,
    /// Of the other's.
    pub(super) said: f64,
    /// No value of one lies among those of the other.
    is_apart: bool,
    is_said_apart: bool,
}

impl Pair {
    /// All pairs of some cells.
    pub(super) fn all(cells: &[&Compared<'_>]) -> Vec<Self> {
        let mut pairs = Vec::new();
        for (at, one) in cells.iter().enumerate() {
            let others = cells.iter().enumerate().skip(at + 1);
            for (to, other) in others.filter(|(_, other)| one.is_like(other)) {
                let truth = log_ratio(&one.kernel, &other.kernel);
                let said = log_ratio(&one.other, &other.other);
                pairs.push(Self {
                    cells: [at, to],
                    truth,
                    said,
                    is_apart: are_apart(&one.kernel, &other.kernel),
                    is_said_apart: are_apart(&one.other, &other.other),
                });
            }
        }
        pairs
    }

    /// The band of the true difference, where the kernel's seeds tell the two apart.
    pub(super) fn band(&self) -> Option<usize> {
        let size = libm::expm1(self.truth.abs());
        let place = BANDS.iter().position(|(from, to)| (*from..*to).contains(&size));
        place.filter(|_| self.is_apart)
    }

    /// Whether both say that the same cell is ahead.
    pub(super) fn is_right(&self) -> bool {
        self.truth * self.said > 0.0
    }

    /// Of two cells that the kernel does not tell apart: whether the other says a difference; `None` of those it does.
    pub(super) fn is_false(&self) -> Option<bool> {
        let says = self.is_said_apart && libm::expm1(self.said.abs()) > FALSE_FROM;
        (!self.is_apart).then_some(says)
    }
}

fn log_ratio(one: &[f64], other: &[f64]) -> f64 {
    let middle = |values: &[f64]| raidlab_results::statistics::median(values).unwrap_or(1.0);
    libm::log(middle(other) / middle(one))
}

fn are_apart(one: &[f64], other: &[f64]) -> bool {
    let ends = |values: &[f64]| {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (least, most) = (least.min(*value), most.max(*value));
        }
        (least, most)
    };
    let (one, other) = (ends(one), ends(other));
    one.1 < other.0 || other.1 < one.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{Drawn, draw};

    fn pair_of(one: [&[f64]; 2], other: [&[f64]; 2]) -> Pair {
        let drawing = draw(1, 0);
        let cell = |[kernel, model]: [&[f64]; 2]| {
            let drawn: &Drawn = &drawing.cells[0];
            Compared::new(drawn, "iops", kernel.to_vec(), model.to_vec()).expect("values")
        };
        let cells = [cell(one), cell(other)];
        Pair::all(&[&cells[0], &cells[1]])[0]
    }

    #[test]
    fn a_pair_has_the_band_of_its_true_difference_and_whether_it_is_right() {
        let right = pair_of([&[100.0, 101.0], &[50.0]], [&[108.0, 109.0], &[51.0]]);
        assert_eq!((right.band(), right.is_right(), right.is_false()), (Some(0), true, None));
        let wrong = pair_of([&[100.0, 101.0], &[51.0]], [&[200.0, 201.0], &[50.0]]);
        assert_eq!((wrong.band(), wrong.is_right()), (Some(2), false));
        let same = pair_of([&[100.0, 101.0], &[50.0]], [&[120.0, 121.0], &[50.0]]);
        assert!(!same.is_right() && same.band() == Some(1), "no difference is not right");
    }

    #[test]
    fn what_seeds_do_not_tell_apart_has_no_band_and_may_be_said_falsely() {
        let false_one = pair_of([&[100.0, 120.0], &[50.0]], [&[110.0, 130.0], &[60.0]]);
        assert_eq!((false_one.band(), false_one.is_false()), (None, Some(true)));
        let not = pair_of([&[100.0, 120.0], &[50.0]], [&[110.0, 130.0], &[52.0]]);
        assert_eq!(not.is_false(), Some(false));
        let unsure = pair_of([&[100.0, 120.0], &[50.0, 61.0]], [&[110.0, 130.0], &[60.0]]);
        assert_eq!(unsure.is_false(), Some(false));
    }
}
