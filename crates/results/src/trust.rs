//! How far figures in virtual time can be trusted, by the cells that a kernel and the model both ran.
//!
//! One error of three: the modelled host against a Linux kernel, **on equal drives**. How far modelled drives are
//! from measured ones, and whole predictions from published machines, is apart (docs/fidelity.md).
//!
//! - *Interval*: where a kernel's figure lies, 90 of 100 times. Split conformal by group: with n cells the
//!   ceil(0.9 (n + 1))-th smallest size of error, which covers at least that often whatever errors look like (V. Vovk,
//!   A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", 2005), where a new cell is like those of its
//!   group. Nothing was fitted to the cells; how often it covers kinds of workload that have no part in it is
//!   measured ([`GroupRow::covered`]).
//! - *Sign*: of 100 differences of a size, so many have the sign that the model says. Two figures with errors e and f
//!   (in logarithms) change places where f - e is beyond the difference and against it: half of the pairs of cells of
//!   the group whose errors are so far apart.
//! - *Floor*: from which size on [`SURE`] of 100 have the sign. Smaller differences resolve nothing.
//!
//! The figures are data, `trust.json`, which `cargo xtask fidelity --trust --record` makes; nobody types them in.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// So often intervals are to cover.
pub const COVERAGE: f64 = 0.9;
/// The fewest cells of a group: of fewer there is no interval that covers as often.
pub const FEWEST_CELLS: usize = 10;
/// Sizes of differences, in percent, whose signs are counted.
pub const SIZES: [u32; 16] = [1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 300];
/// So many of 100 differences must have their sign, before one is told from nothing.
pub const SURE: u32 = 90;

/// What is known of all cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trust {
    /// The command that makes it.
    pub made_by: String,
    /// What was compared.
    pub error_of: String,
    /// How many cells of each kernel.
    pub kernels: BTreeMap<String, usize>,
    /// The filesystems that were compared.
    pub filesystems: Vec<String>,
    /// From the narrowest to the widest; each has [`FEWEST_CELLS`].
    pub groups: Vec<GroupRow>,
    /// What the model said of each cell, by kernel, seed of the drawing and number of the cell: the median of its
    /// seeds.
    pub model: BTreeMap<String, BTreeMap<usize, f64>>,
}

/// What tells groups apart; `None` where all are in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// On a filesystem, not on the array itself.
    pub filesystem: Option<bool>,
    /// What has become of the members.
    pub members: Option<Members>,
    /// Where requests go.
    pub access: Option<Access>,
    /// Something is written.
    pub writes: Option<bool>,
}

/// What has become of an array's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Members {
    /// Every one works.
    Healthy,
    /// One is lost.
    Lost,
    /// One is being rebuilt.
    Rebuilding,
}

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// To random places.
    Random,
    /// One behind the other, in one file or in several; on a filesystem also files that are made or read whole.
    InOrder,
}

/// Of what is or is not.
const BOTH: [bool; 2] = [false, true];

impl Members {
    const ALL: [Self; 3] = [Self::Healthy, Self::Lost, Self::Rebuilding];
}

impl Access {
    const ALL: [Self; 2] = [Self::Random, Self::InOrder];

    /// By the first figure of a workload: operations a second are what those of random places are compared by.
    pub fn of_metric(name: &str) -> Self {
        if name == "iops" { Self::Random } else { Self::InOrder }
    }
}

/// Cells that stand for figures like theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRow {
    /// In words.
    pub name: String,
    /// Which cells.
    pub traits: Traits,
    /// How many.
    pub cells: usize,
    /// The median of the sizes of their errors, in percent.
    pub median_percent: f64,
    /// A kernel's figure lies between the model's divided by this and multiplied by it, [`COVERAGE`] of the time.
    pub times: f64,
    /// Measured: of so many cells of a kind of workload that was left out of the interval so many lay in it.
    pub covered: [usize; 2],
    /// Of 100 differences of each of [`SIZES`], so many have the sign that the model says.
    pub signs: Vec<u32>,
    /// From so many percent on, [`SURE`] of 100 do; absent where that is beyond all sizes.
    pub floor_percent: Option<u32>,
}

/// What a reader should know of a cell in virtual time before believing it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellTrust {
    /// Why no kernel was compared; absent where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
    /// The group that the figures are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// How many cells it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<usize>,
    /// Where a kernel's figure lies on equal drives, 90 of 100 times, in the cell's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval90: Option<[f64; 2]>,
    /// Of 100 differences as large as that to the baseline so many have this sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_of_100: Option<u32>,
    /// Smaller differences are not resolved, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor_percent: Option<u32>,
}

impl Trust {
    /// What was recorded.
    ///
    /// # Panics
    /// Where the data that are compiled in are none, which a test excludes.
    pub fn recorded() -> &'static Self {
        static RECORDED: OnceLock<Trust> = OnceLock::new();
        RECORDED.get_or_init(|| {
            serde_json::from_str(include_str!("trust.json")).expect("is what `--record` wrote")
        })
    }

    /// The narrowest group that has figures like these; `None` without groups.
    pub fn group(&self, of: Traits) -> Option<&GroupRow> {
        self.groups.iter().find(|group| group.traits.has(of))
    }
}

impl Traits {
    /// Whether what is like `of`, of which all is known, is in the group.
    pub fn has(self, of: Self) -> bool {
        fn fits<T: PartialEq>(own: Option<T>, of: Option<T>) -> bool {
            own.is_none() || own == of
        }
        fits(self.filesystem, of.filesystem)
            && fits(self.members, of.members)
            && fits(self.access, of.access)
            && fits(self.writes, of.writes)
    }

    /// All kinds of groups, from the narrowest to the widest.
    pub fn all() -> Vec<Self> {
        let mut widest = vec![Self::default()];
        let mut levels = Vec::new();
        // What makes most of the error stays longest: the filesystem, then what became of the members.
        let narrow: [fn(Self) -> Vec<Self>; 4] = [
            |of| BOTH.map(|is| Self { filesystem: Some(is), ..of }).to_vec(),
            |of| Members::ALL.map(|is| Self { members: Some(is), ..of }).to_vec(),
            |of| Access::ALL.map(|is| Self { access: Some(is), ..of }).to_vec(),
            |of| BOTH.map(|is| Self { writes: Some(is), ..of }).to_vec(),
        ];
        for narrower in narrow {
            let next = widest.iter().copied().flat_map(narrower).collect();
            levels.push(std::mem::replace(&mut widest, next));
        }
        levels.push(widest);
        levels.into_iter().rev().flatten().collect()
    }

    /// In words: `on a filesystem, a member lost, in order, writing`.
    pub fn name(self) -> String {
        let word = |is: Option<bool>, yes: &'static str, no: &'static str| {
            is.map(|is| if is { yes } else { no })
        };
        let words = [
            word(self.filesystem, "on a filesystem", "raw arrays"),
            self.members.map(|members| match members {
                Members::Healthy => "healthy",
                Members::Lost => "a member lost",
                Members::Rebuilding => "rebuilding",
            }),
            self.access.map(|access| match access {
                Access::Random => "random places",
                // Files that are made or unpacked were compared with those that are copied.
                Access::InOrder if self.filesystem == Some(true) => "in order or by files",
                Access::InOrder => "in order",
            }),
            word(self.writes, "writing", "reading only"),
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        if words.is_empty() { "all cells".to_owned() } else { words.join(", ") }
    }
}

impl GroupRow {
    /// Where a kernel's figure lies, [`COVERAGE`] of the time.
    pub fn interval(&self, predicted: f64) -> [f64; 2] {
        [predicted / self.times, predicted * self.times]
    }

    /// Of 100 differences of so many percent, how many have the sign that the model says; those of the next smaller of
    /// [`SIZES`], and 50 below all.
    pub fn sign_of_100(&self, percent: f64) -> u32 {
        // A fall by a half is a rise by 100 %, from the other side.
        let size = if percent < 0.0 { -percent / (1.0 + percent / 100.0) } else { percent };
        let sizes = SIZES.iter().zip(&self.signs).rev();
        let found = sizes.into_iter().find(|(least, _)| f64::from(**least) <= size);
        found.map_or(50, |(_, sign)| *sign)
    }

    /// The size in percent, of [`SIZES`], from which on so many of 100 differences have the sign that the model says;
    /// `None` where that is beyond all of them.
    pub fn told_from(&self, of_100: u32) -> Option<u32> {
        let found = self.signs.iter().position(|sign| *sign >= of_100)?;
        SIZES.get(found).copied()
    }

    /// Below this share, as a ratio less 1, differences are not resolved.
    pub fn floor(&self) -> f64 {
        f64::from(self.floor_percent.unwrap_or(u32::MAX)) / 100.0
    }

    /// Of errors, in logarithms, and the kind of workload of each; `None` of fewer than [`FEWEST_CELLS`].
    pub fn of(traits: Traits, errors: &[(f64, &str)]) -> Option<Self> {
        if errors.len() < FEWEST_CELLS {
            return None;
        }
        let sizes: Vec<f64> = errors.iter().map(|(error, _)| size(*error)).collect();
        let median = crate::statistics::median(&sizes)?;
        let signs: Vec<u32> = SIZES.iter().map(|percent| signs(errors, *percent)).collect();
        // From where on it stays beyond: signs only rise with the size.
        let sure = signs.iter().position(|sign| *sign >= SURE);
        Some(Self {
            name: traits.name(),
            traits,
            cells: errors.len(),
            median_percent: round(libm::expm1(median) * 100.0),
            times: round(libm::exp(conformal(&sizes)?)),
            covered: covered(errors),
            signs,
            floor_percent: sure.map(|at| SIZES[at]),
        })
    }
}

/// Four digits behind the point: others would differ from one machine's text to the other's.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn size(log: f64) -> f64 {
    if log < 0.0 { -log } else { log }
}

/// The size that the next error exceeds at most 1 in 10 times; `None` of too few.
fn conformal(sizes: &[f64]) -> Option<f64> {
    let mut sorted = sizes.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = libm::ceil(COVERAGE * (sorted.len() + 1) as f64) as usize;
    sorted.get(rank.checked_sub(1)?).copied()
}

/// Each kind of workload left out in turn: how many of its cells lie in the interval of the others, of how many.
fn covered(errors: &[(f64, &str)]) -> [usize; 2] {
    let mut kinds: Vec<&str> = errors.iter().map(|(_, kind)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut within, mut of) = (0, 0);
    for kind in kinds {
        let (own, others): (Vec<&(f64, &str)>, Vec<_>) =
            errors.iter().partition(|(_, one)| *one == kind);
        let others: Vec<f64> = others.iter().map(|(error, _)| size(*error)).collect();
        let Some(bound) = conformal(&others) else { continue };
        of += own.len();
        within += own.iter().filter(|(error, _)| size(*error) <= bound).count();
    }
    [within, of]
}

/// See the front page.
fn signs(errors: &[(f64, &str)], percent: u32) -> u32 {
    let least = libm::log1p(f64::from(percent) / 100.0);
    let (mut apart, mut pairs) = (0_u32, 0_u32);
    for (at, (one, _)) in errors.iter().enumerate() {
        for (other, _) in &errors[at + 1..] {
            pairs += 1;
            apart += u32::from(size(one - other) >= least);
        }
    }
    // Rounded down: better too little trust.
    100 - (50 * apart).div_ceil(pairs.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Traits = Traits { filesystem: None, members: None, access: None, writes: None };

    #[test]
    fn what_is_compiled_in_can_be_read_and_has_a_group_for_everything() {
        let trust = Trust::recorded();
        for of in Traits::all().into_iter().take(24) {
            let group = trust.group(of).expect("at least the widest");
            assert!(group.cells >= FEWEST_CELLS && group.times >= 1.0, "{group:?}");
        }
        let widest = trust.groups.last().expect("has groups");
        assert_eq!(widest.traits, ALL);
    }

    #[test]
    fn an_interval_is_the_error_that_nine_of_ten_stay_within() {
        // 19 errors: the 18th is the bound, by which 18 of 20 new ones are covered.
        let errors: Vec<(f64, &str)> = (1..=19)
            .map(|at| (f64::from(at) * if at % 2 == 0 { 0.01 } else { -0.01 }, "a"))
            .collect();
        let group = GroupRow::of(ALL, &errors).expect("enough");
        assert!((group.times - libm::exp(0.18)).abs() < 1e-4, "{}", group.times);
        let [low, high] = group.interval(100.0);
        assert!(low < 84.0 && high > 119.0);
        assert_eq!(GroupRow::of(ALL, &errors[..9]), None, "nine are too few");
        assert_eq!(group.covered, [0, 0], "one kind alone leaves nothing to measure by");
    }

    #[test]
    fn coverage_is_measured_on_kinds_that_have_no_part_in_the_interval() {
        let mut errors: Vec<(f64, &str)> = (1..=12).map(|at| (f64::from(at) * 0.01, "a")).collect();
        errors.extend((1..=12).map(|at| (f64::from(at) * -0.02, "b")));
        // Of `a` all lie within the 12th of `b`, 0.24; of `b` those up to 0.12.
        assert_eq!(GroupRow::of(ALL, &errors).expect("enough").covered, [12 + 6, 24]);
    }

    #[test]
    fn signs_are_half_of_the_pairs_that_lie_so_far_apart() {
        // Two heaps, 0.5 apart: 36 of 66 pairs.
        let errors: Vec<(f64, &str)> =
            (0..12).map(|at| (if at < 6 { 0.0 } else { 0.5 }, "a")).collect();
        let group = GroupRow::of(ALL, &errors).expect("enough");
        assert_eq!(group.sign_of_100(30.0), 100 - 28);
        assert_eq!((group.sign_of_100(75.0), group.floor_percent), (100, Some(75)));
        assert_eq!(
            [50, 72, 73, 100, 101].map(|of| group.told_from(of)),
            [Some(1), Some(1), Some(75), Some(75), None]
        );
        assert_eq!(group.sign_of_100(-50.0), 100, "half of it is half as much again, twice over");
        assert_eq!(group.sign_of_100(0.5), 50);
        assert!((group.floor() - 0.75).abs() < 1e-12);
    }

    #[test]
    fn groups_are_from_the_narrowest_to_the_widest() {
        let all = Traits::all();
        assert_eq!((all.len(), all[44]), (24 + 12 + 6 + 2 + 1, ALL));
        let own = Traits {
            filesystem: Some(true),
            members: Some(Members::Lost),
            access: Some(Access::InOrder),
            writes: Some(false),
        };
        assert_eq!(all.iter().find(|group| group.has(own)), Some(&own));
        assert_eq!(
            own.name(),
            "on a filesystem, a member lost, in order or by files, reading only"
        );
        let raw = Traits { filesystem: Some(false), ..own };
        assert_eq!(raw.name(), "raw arrays, a member lost, in order, reading only");
        for group in &Trust::recorded().groups {
            assert_eq!(group.name, group.traits.name());
        }
        let having: Vec<&Traits> = all.iter().filter(|group| group.has(own)).collect();
        let narrowed = |of: &Traits| {
            [
                of.filesystem.is_some(),
                of.members.is_some(),
                of.access.is_some(),
                of.writes.is_some(),
            ]
        };
        let kept: Vec<usize> =
            having.iter().map(|of| narrowed(of).iter().filter(|is| **is).count()).collect();
        assert_eq!(kept, [4, 3, 2, 1, 0], "each is in the next");
    }
}
