//! Cells that are drawn before anything is measured: what models are examined on.
//!
//! A cell is one value of each factor. Every pair of values that can be is in at least [`TIMES`] cells (pairwise
//! covering; greedy, after D. M. Cohen et al., "The AETG system", IEEE Transactions on Software Engineering 23(7),
//! 1997); pairs that cannot be are in [`RULES`] with the reason. What is no factor (drive of its class, memory, cost of
//! the processor) is drawn from ranges. Seed and number of cells give the same cells on every machine.

mod drives;
mod rules;
mod text;

use raidlab_random::{Random, mix};

pub use drives::drive_hashes;
pub use rules::{RULES, Rule};

/// In how many cells each pair of values is at least.
pub const TIMES: u32 = 3;

/// How many candidates the best is taken of.
const CANDIDATES: usize = 12;
/// After how many vain tries a pair is held to be impossible because of others.
const TRIES: usize = 200;
/// For which purpose seeds are drawn.
const FOR_CELLS: u64 = 5;
const FOR_RANGES: u64 = 6;

/// A factor and its values.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub values: &'static [&'static str],
}

const fn factor(name: &'static str, values: &'static [&'static str]) -> Factor {
    Factor { name, values }
}

/// How many factors there are.
pub const COUNT: usize = 13;

/// The factors.
pub const FACTORS: [Factor; COUNT] = [
    factor(
        "level",
        &[
            "single", "linear", "raid0", "raid1", "raid4", "raid5", "raid6", "raid10n2",
            "raid10f2", "raid10o2",
        ],
    ),
    factor("members", &["1", "2", "3", "4", "5", "6", "8"]),
    factor("chunk", &["none", "16KiB", "64KiB", "128KiB", "512KiB", "1MiB"]),
    factor("filesystem", &["none", "ext4", "xfs"]),
    factor(
        "workload",
        &[
            "dd-write",
            "dd-read",
            "cp",
            "random-read",
            "random-write",
            "random-mixed",
            "small-files",
            "tar",
            "bonnie",
            "tiobench",
            "sync-and-async",
        ],
    ),
    factor("mode", &["buffered", "direct", "fsync"]),
    factor("depth", &["1", "8", "32"]),
    factor("processes", &["1", "2", "4", "8"]),
    factor("drive", &["hdd", "ssd"]),
    factor("state", &["healthy", "degraded", "rebuilding"]),
    factor("bitmap", &["none", "one page", "several pages"]),
    factor("think", &["none", "50ms", "500ms"]),
    factor("length", &["short", "long"]),
];

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its number, from 0.
    pub number: usize,
    /// The value of each factor, by its place.
    values: [usize; COUNT],
    /// The drive's name.
    pub drive: &'static str,
    /// Memory of the host in MiB.
    pub memory: u64,
    /// What calls and copies cost, in hundredths of a host of today.
    pub cost: u64,
}

/// All cells of a drawing, and what could not be covered.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The cells.
    pub cells: Vec<Drawn>,
    /// Pairs of values that no rule excludes, and that no cell can have because of several rules together.
    pub impossible: Vec<[(&'static str, &'static str); 2]>,
}

impl Drawn {
    /// The value of a factor.
    pub fn value(&self, name: &str) -> &'static str {
        let found = FACTORS.iter().zip(self.values).find(|(factor, _)| factor.name == name);
        found.map_or("", |(factor, value)| factor.values[value])
    }

    /// The values, one behind the other.
    pub fn name(&self) -> String {
        let values = FACTORS.iter().zip(self.values).map(|(factor, value)| factor.values[value]);
        let values: Vec<&str> = values.collect();
        format!("{}; {}, {} MiB, cost {} %", values.join(", "), self.drive, self.memory, self.cost)
    }
}

/// Draws at least `count` cells; more where pairs need them.
pub fn draw(seed: u64, count: usize) -> Drawing {
    let mut random = Random::new(mix(&[seed, FOR_CELLS]));
    let mut wanted = Wanted::new();
    let mut chosen = Vec::new();
    while chosen.len() < count || wanted.any() {
        let Some(values) = best(&mut random, &mut wanted) else { continue };
        wanted.count(&values);
        chosen.push(values);
    }
    let cell = |(number, values): (usize, [usize; COUNT])| {
        let mut random = Random::new(mix(&[seed, FOR_RANGES, number as u64]));
        let drives = text::drives(FACTORS[DRIVE].values[values[DRIVE]]);
        Drawn {
            number,
            values,
            drive: drives[random.below(drives.len() as u64) as usize],
            memory: 256 + 64 * random.below(13),
            cost: 50 + random.below(351),
        }
    };
    Drawing {
        cells: chosen.into_iter().enumerate().map(cell).collect(),
        impossible: wanted.impossible,
    }
}

const DRIVE: usize = 8;

/// A pair of values: two factors by their places, the first lower, and their values.
type Pair = [(usize, usize); 2];

/// How often pairs are still wanted.
struct Wanted {
    /// By the values of both, numbered through all factors.
    often: Vec<u32>,
    /// Pairs that are, each once.
    open: Vec<Pair>,
    tries: usize,
    impossible: Vec<[(&'static str, &'static str); 2]>,
}

fn values() -> impl Iterator<Item = (usize, usize)> {
    FACTORS
        .iter()
        .enumerate()
        .flat_map(|(at, factor)| (0..factor.values.len()).map(move |v| (at, v)))
}

/// The number of each factor's first value, and of all values at the end.
const NUMBERS: [usize; COUNT + 1] = {
    let mut numbers = [0; COUNT + 1];
    let mut at = 0;
    while at < COUNT {
        numbers[at + 1] = numbers[at] + FACTORS[at].values.len();
        at += 1;
    }
    numbers
};

fn slot([one, other]: Pair) -> usize {
    (NUMBERS[one.0] + one.1) * NUMBERS[COUNT] + NUMBERS[other.0] + other.1
}

impl Wanted {
    fn new() -> Self {
        let all = NUMBERS[COUNT];
        let mut wanted =
            Self { often: vec![0; all * all], open: Vec::new(), tries: 0, impossible: Vec::new() };
        for one in values() {
            for other in values().filter(|other| other.0 > one.0) {
                if rules::excluded(one, other).is_none() {
                    wanted.often[slot([one, other])] = TIMES;
                    wanted.open.push([one, other]);
                }
            }
        }
        wanted
    }

    fn any(&self) -> bool {
        !self.open.is_empty()
    }

    fn count(&mut self, values: &[usize; COUNT]) {
        for one in 0..COUNT {
            for other in one + 1..COUNT {
                let slot = slot([(one, values[one]), (other, values[other])]);
                self.often[slot] = self.often[slot].saturating_sub(1);
            }
        }
        let often = &self.often;
        self.open.retain(|pair| often[slot(*pair)] > 0);
        self.tries = 0;
    }

    /// How many wanted pairs a value makes with those that are fixed.
    fn gain(&self, fixed: &[Option<usize>; COUNT], new: (usize, usize)) -> usize {
        let with = fixed.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
        with.filter(|one| self.often[slot(in_order(*one, new))] > 0).count()
    }

    fn give_up(&mut self, pair: Pair) {
        self.often[slot(pair)] = 0;
        self.open.retain(|open| *open != pair);
        let named =
            |(factor, value): (usize, usize)| (FACTORS[factor].name, FACTORS[factor].values[value]);
        self.impossible.push(pair.map(named));
        self.tries = 0;
    }
}

fn in_order(one: (usize, usize), other: (usize, usize)) -> Pair {
    if one.0 < other.0 { [one, other] } else { [other, one] }
}

/// The candidate with most of the wanted pairs; `None` when none was found.
fn best(random: &mut Random, wanted: &mut Wanted) -> Option<[usize; COUNT]> {
    let first = (!wanted.open.is_empty())
        .then(|| wanted.open[random.below(wanted.open.len() as u64) as usize]);
    let mut best: Option<(usize, [usize; COUNT])> = None;
    for _ in 0..CANDIDATES {
        let Some((gain, values)) = candidate(random, wanted, first) else {
            wanted.tries += 1;
            continue;
        };
        if best.is_none_or(|(most, _)| gain > most) {
            best = Some((gain, values));
        }
    }
    if best.is_none()
        && let Some(pair) = first.filter(|_| wanted.tries >= TRIES)
    {
        wanted.give_up(pair);
    }
    best.map(|(_, values)| values)
}

/// Fills the factors in any order, each with the value that makes most wanted pairs.
fn candidate(
    random: &mut Random,
    wanted: &Wanted,
    first: Option<Pair>,
) -> Option<(usize, [usize; COUNT])> {
    let mut fixed = [None; COUNT];
    for (factor, value) in first.into_iter().flatten() {
        fixed[factor] = Some(value);
    }
    let mut order: Vec<usize> = (0..COUNT).filter(|at| fixed[*at].is_none()).collect();
    random.shuffle(&mut order);
    let mut total = 0;
    for factor in order {
        let mut values: Vec<usize> = (0..FACTORS[factor].values.len()).collect();
        random.shuffle(&mut values);
        let can_be = |value: &usize| {
            let fixed = fixed.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
            fixed.into_iter().all(|one| {
                let [one, other] = in_order(one, (factor, *value));
                rules::excluded(one, other).is_none()
            })
        };
        let gains = values.into_iter().filter(can_be);
        let gains = gains.map(|value| (wanted.gain(&fixed, (factor, value)), value));
        // Of equals the first, which is any.
        let (gain, value) = gains.reduce(|most, one| if one.0 > most.0 { one } else { most })?;
        total += gain;
        fixed[factor] = Some(value);
    }
    let mut values = [0; COUNT];
    for (value, fixed) in values.iter_mut().zip(fixed) {
        *value = fixed?;
    }
    Some((total, values))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use raidlab_predict::Modelled;
    use raidlab_sim::HostCosts;

    use super::*;

    static DRAWING: LazyLock<Drawing> = LazyLock::new(|| draw(1, 600));

    #[test]
    fn every_pair_that_can_be_is_in_three_cells() {
        let drawing = &*DRAWING;
        for one in values() {
            for other in values().filter(|other| other.0 > one.0) {
                let has =
                    |cell: &&Drawn| cell.values[one.0] == one.1 && cell.values[other.0] == other.1;
                let count = drawing.cells.iter().filter(has).count();
                let named = [one, other].map(|(at, v)| (FACTORS[at].name, FACTORS[at].values[v]));
                if rules::excluded(one, other).is_some() || drawing.impossible.contains(&named) {
                    assert_eq!(count, 0, "{named:?}");
                } else {
                    assert!(count >= TIMES as usize, "{named:?}: {count}");
                }
            }
        }
        assert_eq!(draw(1, 600), *drawing);
        assert_ne!(draw(2, 0).cells[0], drawing.cells[0]);
    }

    #[test]
    fn pairs_that_several_rules_exclude_together_are_known() {
        assert!(DRAWING.impossible.is_empty());
    }

    #[test]
    fn every_rule_names_factors_and_values_that_are() {
        for rule in RULES {
            for (name, values) in [rule.one, rule.other] {
                let factor = FACTORS.iter().find(|factor| factor.name == name).expect(name);
                assert!(values.iter().all(|value| factor.values.contains(value)), "{rule:?}");
            }
        }
        assert_eq!(FACTORS[DRIVE].name, "drive");
    }

    #[test]
    fn every_cell_is_a_study_that_guests_can_run() {
        for cell in &DRAWING.cells {
            let study = cell.study().unwrap_or_else(|error| panic!("{}: {error}", cell.name()));
            assert_eq!((study.layouts.len(), study.workloads.len()), (1, 1));
            // To fit workloads to drives takes a while: those that look at memory, and a sample.
            if cell.value("workload") == "bonnie" || cell.number % 16 == 0 {
                let drives = Modelled::of_drives(&study, HostCosts::default());
                drives.unwrap_or_else(|error| panic!("{}: {error}", cell.name()));
            }
        }
    }
}
