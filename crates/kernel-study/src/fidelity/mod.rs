//! How near the model comes to a kernel in cells that were drawn before anything was measured: errors and orderings by
//! group, with confidence limits, beside the kernel against itself; and what reports say of it ([`trust_of`]).
//!
//! Both have the same drives and the same host, so this is one of three errors: host against kernel on equal drives.
//! Drives against measured drives, and whole predictions against published machines, are apart (docs/fidelity.md).

mod orderings;
mod predict;
mod score;
mod table;
mod trust;

use raidlab_results::statistics::median;

use crate::drawn::{Drawn, FACTORS};

pub use orderings::{BANDS, Share};
pub use predict::{COSTS, Refusal, as_in_guests, predict_all, predicted, seed_of};
pub use score::{Limits, Score};
pub use table::{log_row, scores, trust_table, worst};
pub use trust::{Stored, trust_of};

/// Values of factors whose cells are held out: no constant is chosen by them, and [`worst`] does not list them. A
/// level, a chunk, a filesystem, a kind of workload and a drive.
pub const HELD_OUT: [(&str, &str); 5] = [
    ("level", "raid4"),
    ("chunk", "128KiB"),
    ("filesystem", "xfs"),
    ("workload", "tar"),
    ("drive model", "ssd-sata-960gb-dc"),
];

/// A cell with what a kernel and another say of its figure: the model, or the other half of the kernel's seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'a> {
    /// The cell.
    pub drawn: &'a Drawn,
    /// The figure.
    pub metric: String,
    /// The kernel's values, one a seed.
    pub kernel: Vec<f64>,
    /// The other's.
    pub other: Vec<f64>,
}

impl<'a> Compared<'a> {
    /// `None` where one of both has no value above nothing.
    pub fn new(drawn: &'a Drawn, metric: &str, kernel: Vec<f64>, other: Vec<f64>) -> Option<Self> {
        let known = |values: &[f64]| !values.is_empty() && values.iter().all(|one| *one > 0.0);
        let metric = metric.to_owned();
        (known(&kernel) && known(&other)).then_some(Self { drawn, metric, kernel, other })
    }

    /// The kernel against itself: every other seed against the rest.
    pub fn halves(&self) -> Option<Self> {
        let half = |odd: usize| self.kernel.iter().skip(odd).step_by(2).copied().collect();
        Self::new(self.drawn, &self.metric, half(0), half(1))
    }

    /// The logarithm of the other's median over the kernel's.
    pub fn log_error(&self) -> f64 {
        let middle = |values: &[f64]| median(values).unwrap_or(1.0);
        libm::log(middle(&self.other) / middle(&self.kernel))
    }

    /// By how much the other's median differs from the kernel's, as a share of it.
    pub fn off(&self) -> f64 {
        libm::expm1(self.log_error()).abs()
    }

    /// Whether it is in a group that is held out.
    pub fn is_held_out(&self) -> bool {
        HELD_OUT.iter().any(|(factor, value)| value_of(self.drawn, factor) == *value)
    }

    /// Whether the comparison of two cells means something: they have the same figure of the same kind of workload, as
    /// much time to think and the same class of drive. Which of the others is ahead nobody needs a model for.
    fn is_like(&self, other: &Self) -> bool {
        let same = |factor| self.drawn.value(factor) == other.drawn.value(factor);
        self.metric == other.metric && ["workload", "think", "drive"].into_iter().all(same)
    }
}

/// The value of a factor, or of what is drawn besides.
fn value_of(drawn: &Drawn, factor: &str) -> &'static str {
    if factor == "drive model" { drawn.drive } else { drawn.value(factor) }
}

/// Cells that are reported together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// All of them.
    All,
    /// Those that are held out.
    HeldOut,
    /// Those with a value of a factor.
    Value(&'static str, &'static str),
    /// Those that a bar of the project names.
    Named(&'static str),
}

/// Factors by whose values cells are reported.
const REPORTED: [&str; 8] =
    ["level", "state", "filesystem", "workload", "drive", "processes", "chunk", "think"];
/// Groups that bars name.
const NAMED: [&str; 5] =
    ["lost a member", "several readers", "parity writes", "raid10", "synced small files"];

impl Group {
    /// All groups, in the order of reports.
    pub fn all() -> Vec<Self> {
        let mut groups = vec![Self::All, Self::HeldOut];
        groups.extend(NAMED.map(Self::Named));
        for name in REPORTED {
            let factors = FACTORS.iter().filter(|factor| factor.name == name);
            groups.extend(
                factors.flat_map(|factor| factor.values.iter().map(|v| Self::Value(name, v))),
            );
        }
        groups
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::HeldOut => "held out".to_owned(),
            Self::Value(factor, value) => format!("{factor} {value}"),
            Self::Named(name) => name.to_owned(),
        }
    }

    /// Whether a cell is in it.
    pub fn has(self, cell: &Compared<'_>) -> bool {
        let is = |factor: &str, values: &[&str]| values.contains(&cell.drawn.value(factor));
        let is_parity = is("level", &["raid4", "raid5", "raid6"]);
        match self {
            Self::All => true,
            Self::HeldOut => cell.is_held_out(),
            Self::Value(factor, value) => is(factor, &[value]),
            Self::Named("lost a member") => is("state", &["degraded", "rebuilding"]),
            Self::Named("several readers") => {
                !is("processes", &["1"]) && is("workload", &["dd-read", "cp", "random-read"])
            }
            Self::Named("parity writes") => {
                is_parity && is("workload", &["dd-write", "random-write", "tiobench", "tar"])
            }
            Self::Named("raid10") => is("level", &["raid10n2", "raid10f2", "raid10o2"]),
            Self::Named("synced small files") => {
                is("workload", &["small-files"]) && is("mode", &["fsync"])
            }
            Self::Named(_) => false,
        }
    }
}

/// The value of which a share of the values is at most as large (nearest rank); `None` of nothing.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = libm::ceil(share * sorted.len() as f64) as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::draw;

    #[test]
    fn every_value_held_out_is_a_value_and_every_named_group_has_cells() {
        let drawing = draw(1, 600);
        for (factor, value) in HELD_OUT {
            assert!(drawing.cells.iter().any(|cell| value_of(cell, factor) == value), "{value}");
        }
        let cell = |drawn| Compared::new(drawn, "iops", vec![1.0], vec![1.0]).expect("values");
        for group in Group::all() {
            let count = drawing.cells.iter().filter(|drawn| group.has(&cell(drawn))).count();
            assert!(count > 0, "{}", group.name());
        }
        let held = drawing.cells.iter().filter(|drawn| cell(drawn).is_held_out()).count();
        assert!((150..450).contains(&held), "{held}");
    }

    #[test]
    fn a_quantile_is_the_nearest_rank() {
        let values: Vec<f64> = (1..=20).map(f64::from).rev().collect();
        assert_eq!(quantile(&values, 0.95), Some(19.0));
        assert_eq!(quantile(&values, 1.0), Some(20.0));
        assert_eq!(quantile(&values[..1], 0.5), Some(20.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn an_error_has_a_sign_and_halves_are_every_other_seed() {
        let drawing = draw(1, 0);
        let cell = &drawing.cells[0];
        let compared =
            Compared::new(cell, "iops", vec![1.0, 2.0, 1.0, 2.0, 1.0], vec![3.0]).expect("values");
        assert!((compared.off() - 2.0).abs() < 1e-12 && compared.log_error() > 0.0);
        let halves = compared.halves().expect("has two");
        assert_eq!((halves.kernel, halves.other), (vec![1.0; 3], vec![2.0; 2]));
        assert_eq!(Compared::new(cell, "iops", vec![0.0], vec![1.0]), None);
        assert_eq!(Compared::new(cell, "iops", vec![1.0], vec![]), None);
    }
}
