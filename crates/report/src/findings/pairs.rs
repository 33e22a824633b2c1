//! Layouts whose names differ in one word: what that word changes.

use std::collections::BTreeMap;

use raidlab_results::Finding;
use raidlab_results::document::{Cell, Results};

use super::{Group, finding, gain, what};
use crate::number;

/// For each pair of words, such as `md` and `bios`, the workload and metric in which putting one for the
/// other changes most: over all pairs of layouts that differ in nothing else.
pub(super) fn pairs(results: &Results) -> Vec<Finding> {
    let mut found: BTreeMap<(String, String), Finding> = BTreeMap::new();
    for group in Group::all(results) {
        for (words, pairs) in of_group(&group) {
            let Some(one) = sentence(&words, &pairs) else { continue };
            match found.get(&words) {
                Some(other) if other.effect >= one.effect => {}
                _ => drop(found.insert(words, one)),
            }
        }
    }
    found.into_values().collect()
}

type Pairs<'a> = Vec<(&'a Cell, &'a Cell)>;

fn of_group<'a>(group: &Group<'a>) -> BTreeMap<(String, String), Pairs<'a>> {
    let mut pairs: BTreeMap<(String, String), Pairs<'a>> = BTreeMap::new();
    for (at, one) in group.cells.iter().enumerate() {
        for other in &group.cells[at + 1..] {
            if let Some((from, to)) = difference(&one.layout, &other.layout) {
                pairs.entry((from.to_owned(), to.to_owned())).or_default().push((one, other));
            }
        }
    }
    pairs
}

/// The one word in which two names differ.
fn difference<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let (one, other) = (words(one), words(other));
    let mut differing = one.iter().zip(&other).filter(|(one, other)| one != other);
    let (from, to) = differing.next()?;
    (one.len() == other.len() && one.len() > 1 && differing.next().is_none())
        .then_some((*from, *to))
}

fn words(name: &str) -> Vec<&str> {
    name.split(['-', '_', '(', ')', ' ']).filter(|word| !word.is_empty()).collect()
}

fn sentence((from, to): &(String, String), pairs: &Pairs<'_>) -> Option<Finding> {
    let mut gains: Vec<(f64, &Cell, &Cell)> = pairs
        .iter()
        .map(|(one, other)| (gain(one.better, other.median, one.median), *one, *other))
        .collect();
    gains.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ((least, worst, worse), (most, best, better)) = (gains.first()?, gains.last()?);
    let change = |cell: &Cell, other: &Cell| {
        let unit = &cell.unit;
        format!(
            "{} to {}",
            number::with_unit(cell.median, unit),
            number::with_unit(other.median, unit)
        )
    };
    // The extremes where there are several: a median would hide that a word helps here and hurts there.
    let text = match gains.len() {
        1 => format!(
            "{to} instead of {from} ({} instead of {}) makes {} {} times as fast ({}).",
            worse.layout,
            worst.layout,
            what(worst),
            number::number(*least),
            change(worst, worse)
        ),
        count => format!(
            "{to} instead of {from} makes {} {} to {} times as fast over {count} pairs of layouts: least {} \
             ({}), most {} ({}).",
            what(worst),
            number::number(*least),
            number::number(*most),
            worse.layout,
            change(worst, worse),
            better.layout,
            change(best, better)
        ),
    };
    let cells: Vec<&Cell> = gains.iter().flat_map(|(_, one, other)| [*one, *other]).collect();
    Some(finding(text, most.max(1.0 / least), &cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_one_word_are_a_pair() {
        assert_eq!(difference("md-raid0(2u-2ch)", "bios-raid0(2u-2ch)"), Some(("md", "bios")));
        assert_eq!(difference("md-raid0(2u-2ch)", "md-raid0(2u-1ch)"), Some(("2ch", "1ch")));
        assert_eq!(difference("raid5(3)", "raid5(4)"), Some(("3", "4")));
        assert_eq!(difference("md-raid0(1u)", "md-raid0(2u-2ch)"), None, "two words");
        assert_eq!(difference("single", "raid1"), None, "nothing in common");
        assert_eq!(difference("a-b", "a-b"), None);
    }
}
