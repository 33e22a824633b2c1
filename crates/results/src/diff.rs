//! What changed from one document to another.
//!
//! Cells are matched by study, layout, workload, processes, state, metric, unit and settings; further figures of
//! workloads are left out. What is estimated is the shift of the logarithm of the samples, so a percentage; how, and by
//! which tests, says [`ranks`](crate::ranks):
//!
//! - Two modelled runs from one seed share all that is random, round by round: pairs. Cells whose samples are equal to
//!   the last bit are unchanged, and are not tested.
//! - All others are apart: two runs on a machine share at most their draws, never the hour.
//!
//! One rule makes the verdicts. A cell regressed or improved where its shift is shown to lie beyond the floor, and
//! the procedure of Benjamini and Hochberg (1995) over all tested cells of the document keeps the share of false ones
//! among those so called at [`FALSE_SHARE`], at most; where nothing changed that is the chance of any. It is equal
//! where it is shown to lie within the floor (two one-sided tests, Schuirmann 1987), by the same procedure over these
//! tests. The intervals are at 1 - [`FALSE_SHARE`] x called / tested, so that of those of called cells as many cover
//! (Benjamini and Yekutieli 2005): each lies beyond the floor.
//!
//! The model, a kernel on modelled drives, and a machine beside one another are no change: their ratios are what the
//! one that is further from a machine is off.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::comparison::{DEPENDENT, correlation, fewest_rounds};
use crate::document::{Better, Cell, Clock, Origin, Results};
use crate::ranks::{Apart, Ranked, benjamini_hochberg};
use crate::statistics::{NOISE_REAL, NOISE_VIRTUAL, mean, median};

/// The version of the schema of [`Diff`].
pub const DIFF_SCHEMA_VERSION: u32 = 1;
/// The share of false ones among the changes that are called, at most.
pub const FALSE_SHARE: f64 = 0.05;

/// What two documents tell of each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// [`DIFF_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What the percentages are.
    pub kind: DiffKind,
    /// What is compared with.
    pub before: Side,
    /// What is compared.
    pub after: Side,
    /// What else differs between the two: each with its value before and after.
    pub setup: Vec<Setup>,
    /// What must be known before the verdicts are believed.
    pub warnings: Vec<String>,
    /// How many cells have each verdict.
    pub counts: Counts,
    /// Median of the absolute residuals in percent; null of a change, and where no cell is in both.
    pub median_residual_percent: Option<f64>,
    /// Cells in both, the largest effect first.
    pub cells: Vec<CellDiff>,
    /// Cells that only the first has.
    pub only_before: Vec<CellName>,
    /// Cells that only the second has.
    pub only_after: Vec<CellName>,
}

/// What percentages of a [`Diff`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffKind {
    /// From one run to another of the same origin.
    Change,
    /// By which a value is off that of an origin nearer to a machine.
    Residual,
}

/// One of the two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// As it was asked for.
    pub name: String,
    /// Titles of its studies.
    pub studies: Vec<String>,
    /// By which clock.
    pub clock: Clock,
    /// What did its work.
    pub origin: Origin,
}

/// Something that differs besides the samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// What.
    pub what: String,
    /// Null where there is none.
    pub before: Option<String>,
    /// Null where there is none.
    pub after: Option<String>,
}

/// How many cells have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Shown to be worse by more than the floor.
    pub regressed: usize,
    /// Shown to be better by more than the floor.
    pub improved: usize,
    /// Shown to differ by less than the floor.
    pub equal: usize,
    /// Equal to the last bit.
    pub unchanged: usize,
    /// None of these.
    pub not_resolved: usize,
}

/// What is shown of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Change {
    /// Worse by more than the floor.
    #[serde(rename = "regressed")]
    Regressed,
    /// Better by more than the floor.
    #[serde(rename = "improved")]
    Improved,
    /// Different by less than the floor.
    #[serde(rename = "equal within the floor")]
    Equal,
    /// Equal to the last bit.
    #[serde(rename = "unchanged")]
    Unchanged,
    /// The rounds show none of these.
    #[serde(rename = "not resolved")]
    NotResolved,
}

/// Which cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CellName {
    /// The study's title, where there are several; else null.
    pub study: Option<String>,
    /// The layout's name.
    pub layout: String,
    /// The workload's name.
    pub workload: String,
    /// How many processes at once.
    pub processes: u32,
    /// `healthy`, `degraded` or `rebuilding`.
    pub state: String,
    /// What was measured.
    pub metric: String,
    /// The unit of the values.
    pub unit: String,
    /// What varies besides the named axes.
    pub settings: BTreeMap<String, String>,
}

/// A cell of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CellDiff {
    /// Which.
    #[serde(flatten)]
    pub name: CellName,
    /// Which way is better.
    pub better: Better,
    /// Median before; of residuals the measured one.
    pub before: f64,
    /// Median after; of residuals the modelled one.
    pub after: f64,
    /// Rounds of both.
    pub rounds: [usize; 2],
    /// Rounds are compared in pairs.
    pub paired: bool,
    /// The estimated change in percent, of values as they are; null where a value is not above 0.
    pub percent: Option<f64>,
    /// Its interval, corrected over the document; null where rounds are too few.
    pub percent_interval: Option<[f64; 2]>,
    /// Changes below this many percent mean nothing.
    pub floor_percent: f64,
    /// The chance, at most, of what was seen if the change is within the floor; null where nothing was tested.
    pub chance: Option<f64>,
    /// The same, corrected over the document: [`FALSE_SHARE`] or less is called.
    pub chance_corrected: Option<f64>,
    /// What is shown; null of residuals.
    pub verdict: Option<Change>,
}

impl CellDiff {
    /// The size of the effect, as the absolute logarithm of the ratio.
    fn effect(&self) -> f64 {
        self.percent.map_or(0.0, |percent| size(libm::log1p(percent / 100.0)))
    }
}

/// A cell with the samples that tell of it.
struct Pair<'a> {
    name: CellName,
    before: &'a Cell,
    after: &'a Cell,
    paired: bool,
    floor: f64,
    /// Better ones above 0; `None` where nothing is to be tested.
    ranked: Option<Ranked>,
}

impl Diff {
    /// From the documents of one run to those of another; `floor_percent` takes the place of the cells' own floors. Of
    /// several documents those with the same title belong together.
    ///
    /// Rebuilds of which one side [tells too little](Cell::tells_too_little) are left out.
    ///
    /// Of two origins the one that is nearer to a machine is what the other is held against, whichever comes first.
    pub fn of(
        before: (&str, &[Results]),
        after: (&str, &[Results]),
        floor_percent: Option<f64>,
    ) -> Self {
        let origins = (origin(before.1), origin(after.1));
        let (before, after) = if origins.0 > origins.1 { (after, before) } else { (before, after) };
        let is_residual = origins.0 != origins.1;
        let several = before.1.len() > 1 || after.1.len() > 1;
        let together = |one: &Results, other: &Results| !several || one.study == other.study;
        let mut pairs = Vec::new();
        let (mut only_before, mut only_after) = (Vec::new(), Vec::new());
        let (mut setup, mut apart) = (Vec::new(), Apart::default());
        for one in before.1 {
            let others = after.1.iter().find(|other| together(one, other));
            if let Some(other) = others {
                setup.extend(setups(one, other));
                pairs.extend(matched(one, other, several, floor_percent, &mut apart));
            }
            only_before.extend(missing(one, others, several));
        }
        for other in after.1 {
            let one = before.1.iter().find(|one| together(one, other));
            only_after.extend(missing(other, one, several));
        }
        let mut warnings = if is_residual { Vec::new() } else { warnings(&pairs, origins.0) };
        if pairs.is_empty() {
            warnings.push("no cell is in both".into());
        }
        let cells = judged(pairs, is_residual);
        let residuals: Vec<f64> = cells.iter().filter_map(|cell| cell.percent).map(size).collect();
        Self {
            schema_version: DIFF_SCHEMA_VERSION,
            kind: if is_residual { DiffKind::Residual } else { DiffKind::Change },
            before: side(before),
            after: side(after),
            setup,
            warnings,
            counts: Counts::of(&cells),
            median_residual_percent: median(&residuals).filter(|_| is_residual),
            cells,
            only_before,
            only_after,
        }
    }
}

impl Counts {
    fn of(cells: &[CellDiff]) -> Self {
        let mut counts = Self::default();
        for verdict in cells.iter().filter_map(|cell| cell.verdict) {
            let count = match verdict {
                Change::Regressed => &mut counts.regressed,
                Change::Improved => &mut counts.improved,
                Change::Equal => &mut counts.equal,
                Change::Unchanged => &mut counts.unchanged,
                Change::NotResolved => &mut counts.not_resolved,
            };
            *count += 1;
        }
        counts
    }
}

fn origin(documents: &[Results]) -> Origin {
    documents.first().map_or(Origin::Measured, Results::origin)
}

fn side((name, documents): (&str, &[Results])) -> Side {
    Side {
        name: name.to_owned(),
        studies: documents.iter().map(|one| one.study.clone()).collect(),
        clock: documents.first().map_or(Clock::Real, |one| one.clock),
        origin: origin(documents),
    }
}

fn name(results: &Results, cell: &Cell, several: bool) -> CellName {
    CellName {
        study: several.then(|| results.study.clone()),
        layout: cell.layout.clone(),
        workload: cell.workload.clone(),
        processes: cell.processes,
        state: cell.state.clone(),
        metric: cell.metric.clone(),
        unit: cell.unit.clone(),
        settings: cell.settings.clone(),
    }
}

/// The cells that reports show, by their names.
fn named(results: &Results, several: bool) -> BTreeMap<CellName, &Cell> {
    let shown = results.cells.iter().filter(|cell| !cell.detail && !cell.samples.is_empty());
    shown.map(|cell| (name(results, cell, several), cell)).collect()
}

/// The cells of one that another document does not have.
fn missing(one: &Results, other: Option<&Results>, several: bool) -> Vec<CellName> {
    let others = other.map(|other| named(other, several)).unwrap_or_default();
    named(one, several).into_keys().filter(|name| !others.contains_key(name)).collect()
}

/// The cells of both.
fn matched<'a>(
    before: &'a Results,
    after: &'a Results,
    several: bool,
    floor_percent: Option<f64>,
    apart: &mut Apart,
) -> Vec<Pair<'a>> {
    let mut others = named(after, several);
    let both = named(before, several).into_iter().filter_map(|(name, one)| {
        let other = others.remove(&name)?;
        if one.tells_too_little() || other.tells_too_little() {
            return None;
        }
        let paired = share_draws(before, after, &one.workload);
        let floor =
            floor_percent.unwrap_or_else(|| floor_of(before, one).max(floor_of(after, other)));
        let unchanged = paired && one.samples == other.samples;
        let ranked = if unchanged { None } else { ranked(one, other, paired, apart) };
        Some(Pair { name, before: one, after: other, paired, floor: floor / 100.0, ranked })
    });
    both.collect()
}

/// Whether two runs met the same draws in each round, and nothing else that is random: seeds of cells are made of the
/// study's and of the workload's place.
fn share_draws(one: &Results, other: &Results, workload: &str) -> bool {
    let place = |results: &Results| {
        let at = results.workloads.iter().position(|row| row.name == workload)?;
        Some((at, results.workloads[at].description.clone()))
    };
    let origins = (one.origin(), other.origin());
    origins.0 == origins.1
        && origins.0 != Origin::Measured
        && one.seed == other.seed
        && place(one) == place(other)
}

/// The floor of a cell, which one of the baseline has from those that are compared with it, in percent.
fn floor_of(results: &Results, cell: &Cell) -> f64 {
    let beside = results.cells.iter().filter(|one| {
        (&one.workload, one.processes, &one.state, &one.metric, &one.settings)
            == (&cell.workload, cell.processes, &cell.state, &cell.metric, &cell.settings)
    });
    let known = beside.filter_map(|one| one.floor_percent).reduce(f64::max);
    cell.floor_percent.or(known).unwrap_or(match results.clock {
        Clock::Virtual => NOISE_VIRTUAL * 100.0,
        Clock::Real => NOISE_REAL * 100.0,
    })
}

fn ranked(before: &Cell, after: &Cell, paired: bool, apart: &mut Apart) -> Option<Ranked> {
    let sign = if after.better == Better::Higher { 1.0 } else { -1.0 };
    let logs = |cell: &Cell| -> Option<Vec<f64>> {
        let known = |value: &f64| *value > 0.0 && value.is_finite();
        cell.samples.iter().map(|one| known(one).then(|| sign * libm::log(*one))).collect()
    };
    let (before, after) = (logs(before)?, logs(after)?);
    if paired {
        let each = before.iter().zip(&after).map(|(before, after)| after - before);
        return Some(Ranked::of_pairs(each.collect()));
    }
    Some(apart.ranked(&before, &after))
}

/// What is shown of each cell, the largest effect first.
fn judged(pairs: Vec<Pair<'_>>, is_residual: bool) -> Vec<CellDiff> {
    let tested: Vec<(&Ranked, f64)> = pairs
        .iter()
        .filter_map(|pair| Some((pair.ranked.as_ref()?, libm::log1p(pair.floor))))
        .collect();
    let differ: Vec<f64> = tested
        .iter()
        .map(|(one, floor)| both(one.chance_above(*floor).min(one.chance_below(-floor))))
        .collect();
    let equal: Vec<f64> = tested
        .iter()
        .map(|(one, floor)| both(one.chance_above(-floor).max(one.chance_below(*floor))))
        .collect();
    let corrected = benjamini_hochberg(&differ);
    let equal = benjamini_hochberg(&equal);
    let called = corrected.iter().filter(|chance| **chance <= FALSE_SHARE).count();
    // Residuals are no family from which any is picked: each has its own interval.
    let chosen = if is_residual { tested.len() } else { called };
    let level = FALSE_SHARE * chosen.max(1) as f64 / tested.len().max(1) as f64;
    let mut known = differ.into_iter().zip(corrected).zip(equal);
    let cell = |pair: Pair<'_>| {
        let chances = pair.ranked.as_ref().and_then(|_| known.next());
        cell(pair, chances, level, is_residual)
    };
    let mut cells: Vec<CellDiff> = pairs.into_iter().map(cell).collect();
    cells.sort_by(|one, other| other.effect().total_cmp(&one.effect()));
    cells
}

/// The chance on both sides of one on one side.
fn both(chance: f64) -> f64 {
    (2.0 * chance).min(1.0)
}

fn cell(
    pair: Pair<'_>,
    chances: Option<((f64, f64), f64)>,
    level: f64,
    is_residual: bool,
) -> CellDiff {
    let sign = if pair.after.better == Better::Higher { 1.0 } else { -1.0 };
    let percent = |log: f64| libm::expm1(sign * log) * 100.0;
    let middle = pair.ranked.as_ref().and_then(Ranked::middle);
    let interval = pair.ranked.as_ref().and_then(|ranked| ranked.interval(level));
    let unchanged = pair.paired && pair.before.samples == pair.after.samples;
    let verdict =
        match (chances, middle) {
            _ if unchanged => Change::Unchanged,
            (Some(((_, corrected), _)), Some(middle)) if corrected <= FALSE_SHARE => {
                if middle < 0.0 { Change::Regressed } else { Change::Improved }
            }
            (Some((_, equal)), _) if equal <= FALSE_SHARE => Change::Equal,
            _ => Change::NotResolved,
        };
    CellDiff {
        better: pair.after.better,
        before: pair.before.median,
        after: pair.after.median,
        rounds: [pair.before.samples.len(), pair.after.samples.len()],
        paired: pair.paired,
        percent: if unchanged { Some(0.0) } else { middle.map(percent) },
        percent_interval: interval.map(|(low, high)| {
            let (low, high) = (percent(low), percent(high));
            if low <= high { [low, high] } else { [high, low] }
        }),
        floor_percent: pair.floor * 100.0,
        chance: chances.map(|((chance, _), _)| chance).filter(|_| !is_residual),
        chance_corrected: chances.map(|((_, corrected), _)| corrected).filter(|_| !is_residual),
        verdict: (!is_residual).then_some(verdict),
        name: pair.name,
    }
}

/// What is too weak in the rounds for verdicts.
fn warnings(pairs: &[Pair<'_>], origin: Origin) -> Vec<String> {
    let mut warnings = Vec::new();
    let tested = || pairs.iter().filter(|pair| pair.ranked.is_some());
    let count = tested().count();
    let weak = |pair: &&Pair<'_>| {
        let least = pair.ranked.as_ref().map_or(0.0, Ranked::least_chance);
        least > FALSE_SHARE / count as f64
    };
    if let Some(pair) = tested().find(weak) {
        let needed = if pair.paired { fewest_rounds(count) } else { rounds_apart(count) };
        let (before, after) = (pair.before.samples.len(), pair.after.samples.len());
        warnings.push(format!(
            "{before} and {after} rounds are too few for {count} comparisons: one cell that changed \
             alone would not be found; {needed} rounds of each run would do"
        ));
    }
    let each = tested().flat_map(|pair| [pair.before, pair.after]).filter_map(|cell| {
        let known = cell.samples.iter().all(|one| *one > 0.0);
        let logs: Vec<f64> = cell.samples.iter().map(|one| libm::log(*one)).collect();
        // Its bias is -1/n of none.
        correlation(&logs).filter(|_| known).map(|one| one + 1.0 / logs.len() as f64)
    });
    let each: Vec<f64> = each.collect();
    if origin == Origin::Measured
        && let Some(correlation) = mean(&each).filter(|mean| *mean > DEPENDENT)
    {
        warnings.push(format!(
            "successive rounds depend on each other (correlation {correlation:.2}): changes are less sure \
             than they look"
        ));
    }
    warnings
}

/// The fewest rounds of each of two runs in which one of so many comparisons can be resolved.
fn rounds_apart(comparisons: usize) -> u32 {
    let most = FALSE_SHARE / comparisons.max(1) as f64;
    // One order of all that there are, on each side.
    let (mut rounds, mut chance) = (1_u32, 1.0);
    while chance > most {
        rounds += 1;
        let n = f64::from(rounds);
        chance *= n / (2.0 * (2.0 * n - 1.0));
    }
    rounds
}

/// What differs between two runs besides their samples.
fn setups(before: &Results, after: &Results) -> Vec<Setup> {
    let mut setups = Vec::new();
    let mut add = |what: String, before: Option<String>, after: Option<String>| {
        if before != after {
            setups.push(Setup { what, before, after });
        }
    };
    add("raidlab".into(), Some(before.raidlab.clone()), Some(after.raidlab.clone()));
    add("study".into(), Some(before.study.clone()), Some(after.study.clone()));
    add("seed".into(), Some(before.seed.to_string()), Some(after.seed.to_string()));
    for (title, one, other) in
        [("host", &before.host, &after.host), ("settings", &before.settings, &after.settings)]
    {
        let only = other.keys().filter(|key| !one.contains_key(*key));
        for key in one.keys().chain(only) {
            // The number of rounds stands beside each cell, the floor too.
            if !["rounds", "noise floor"].contains(&key.as_str()) {
                let (one, other) = (one.get(key).cloned(), other.get(key).cloned());
                // A model has no kernel, a machine no drive file: what only one can have tells nothing.
                if before.origin() == after.origin() || (one.is_some() && other.is_some()) {
                    add(format!("{title}, {key}"), one, other);
                }
            }
        }
    }
    for one in &before.workloads {
        if let Some(other) = after.workloads.iter().find(|other| other.name == one.name) {
            let (what, before) = (format!("workload {}", one.name), one.description.clone());
            add(what, Some(before), Some(other.description.clone()));
        }
    }
    for one in &before.layouts {
        if let Some(other) = after.layouts.iter().find(|other| other.name == one.name) {
            let bytes = |capacity: u64| Some(format!("{capacity} bytes"));
            add(format!("capacity of {}", one.name), bytes(one.capacity), bytes(other.capacity));
        }
    }
    setups
}

fn size(value: f64) -> f64 {
    if value < 0.0 { -value } else { value }
}
