//! What the numbers of a replay show, as sentences: computed by rules that know no study.

mod pairs;
mod rules;

use raidlab_results::document::{Better, Cell, Results, Verdict};
use raidlab_results::replay::is_cpu_share;
use raidlab_results::{Finding, NamedCell};

use crate::number;

/// Findings of a document at the most.
const MOST: usize = 8;
/// Findings by one rule at the most, so that one kind of effect does not hide the others.
const MOST_OF_A_RULE: usize = 2;
/// Effects below this factor are not worth a sentence.
const LEAST_EFFECT: f64 = 1.05;

/// What the numbers show, the largest effect first, each with the cells it was computed from.
///
/// A rule gives candidates of one kind: the best layout, what is slower than the baseline, how work grows
/// with processes, layouts that differ in one word of their name, settings, who ends first and last, and
/// what was busiest where that is no drive. Of each rule the two largest stay, eight in all.
pub fn findings(results: &Results) -> Vec<Finding> {
    let rules = [
        rules::best,
        rules::slower_than_baseline,
        rules::processes,
        rules::settings,
        rules::fairness,
        rules::bottlenecks,
        pairs::pairs,
    ];
    let mut found: Vec<Finding> = rules.iter().flat_map(|rule| largest(rule(results))).collect();
    by_effect(&mut found);
    found.truncate(MOST);
    found
}

fn largest(mut found: Vec<Finding>) -> Vec<Finding> {
    found.retain(|one| one.effect.is_finite() && one.effect >= LEAST_EFFECT);
    by_effect(&mut found);
    found.truncate(MOST_OF_A_RULE);
    found
}

/// Of equals the first of the document.
fn by_effect(found: &mut [Finding]) {
    found.sort_by(|one, other| other.effect.total_cmp(&one.effect));
}

fn finding(text: String, effect: f64, cells: &[&Cell]) -> Finding {
    Finding { text, effect, cells: cells.iter().map(|cell| NamedCell::of(cell)).collect() }
}

/// The cells that are compared with each other: of one workload, metric, process count and settings.
struct Group<'a> {
    cells: Vec<&'a Cell>,
}

impl<'a> Group<'a> {
    /// All of a document in its order, shares of CPU time left out: those say nothing of speed.
    fn all(results: &'a Results) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for cell in results.cells.iter().filter(|cell| is_speed(cell)) {
            let same = |group: &&mut Self| {
                let one = group.cells[0];
                (&one.workload, &one.metric, one.processes, &one.settings, &one.state)
                    == (&cell.workload, &cell.metric, cell.processes, &cell.settings, &cell.state)
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.cells.push(cell),
                None => groups.push(Self { cells: vec![cell] }),
            }
        }
        groups
    }

    fn of_layout(&self, layout: &str) -> Option<&'a Cell> {
        self.cells.iter().copied().find(|cell| cell.layout == layout)
    }

    /// The mean of the baseline's medians.
    fn baseline(&self, results: &Results) -> Option<f64> {
        let medians: Option<Vec<f64>> =
            results.baseline.iter().map(|name| Some(self.of_layout(name)?.median)).collect();
        let medians = medians.filter(|all| !all.is_empty())?;
        Some(medians.iter().sum::<f64>() / medians.len() as f64).filter(|mean| *mean > 0.0)
    }

    /// `cp_parallel with 5 processes`.
    fn title(&self) -> String {
        what(self.cells[0])
    }
}

/// Whether what a cell shows against the baseline may be told as a difference: the rounds show it, or there are too
/// few of them to show anything, which the report says.
fn may_differ(cell: &Cell) -> bool {
    let too_few = cell.percent_interval.is_none();
    match cell.verdict {
        None | Some(Verdict::Faster | Verdict::Slower) => true,
        Some(Verdict::Equal) => false,
        Some(Verdict::NotResolved) => too_few,
    }
}

/// Whether a cell is a time or a rate that a reader waits for.
fn is_speed(cell: &Cell) -> bool {
    !cell.detail && cell.median > 0.0 && !is_cpu_share(&cell.metric)
}

/// A cell without its layout: `blocksize_sweep, block=4KiB, with 2 processes`.
fn what(cell: &Cell) -> String {
    let mut text = cell.workload.clone();
    if !matches!(cell.metric.as_str(), "seconds" | "mib_per_s" | "mb_per_s") {
        text.push_str(&format!(" {}", cell.metric));
    }
    for (key, value) in &cell.settings {
        text.push_str(&format!(", {key}={value}"));
    }
    if cell.processes > 1 {
        text.push_str(&format!(" with {}", number::processes(cell.processes)));
    }
    text
}

/// `125 s`.
fn value(cell: &Cell) -> String {
    number::with_unit(cell.median, &cell.unit)
}

/// How much better a value is than another: above 1 when it is.
fn gain(better: Better, value: f64, than: f64) -> f64 {
    match better {
        Better::Higher => value / than,
        Better::Lower => than / value,
    }
}

/// The baseline in words.
fn baseline_name(results: &Results) -> String {
    match results.baseline.as_slice() {
        [one] => one.clone(),
        several => format!("the mean of {}", number::listed(several)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest of a rule, whatever their order; what is hardly one and what is no number is none.
    #[test]
    fn of_each_rule_the_largest_are_kept() {
        let all = |effects: &[f64]| -> Vec<Finding> {
            effects.iter().map(|effect| finding(String::new(), *effect, &[])).collect()
        };
        let kept = |effects: &[f64]| -> Vec<f64> {
            largest(all(effects)).iter().map(|one| one.effect).collect()
        };
        let least = LEAST_EFFECT;
        assert_eq!(kept(&[least, 3.0, f64::INFINITY, f64::NAN, least - 0.001]), [3.0, least]);
        let many: Vec<f64> = (0..20).map(|at| 2.0 + f64::from(at * 7 % 20)).collect();
        let expected: Vec<f64> =
            (0..20).rev().take(MOST_OF_A_RULE).map(|at| 2.0 + f64::from(at)).collect();
        assert_eq!(kept(&many), expected);
    }
}
