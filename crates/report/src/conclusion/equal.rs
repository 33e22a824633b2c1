//! What does not differ from the baseline.

use raidlab_results::document::{Cell, Verdict};

use super::{About, Conclusion, is_work, when};
use crate::number::{self, listed};
use crate::view::{Lead, Row, Section, View};

/// For each workload the layouts that are equal to the baseline in all its rows.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    if view.results.baseline.len() != 1 {
        return Vec::new();
    }
    let sections = view.sections.iter().filter(|section| is_work(section));
    sections.filter_map(|section| of_section(view, section)).collect()
}

fn of_section<'a>(view: &View<'a>, section: &Section<'a>) -> Option<Conclusion<'a>> {
    // Where all are alike the section's own sentence says so.
    let told = |row: &&Row<'_>| !row.is_preliminary() && row.lead != Lead::Alike;
    let rows: Vec<&Row<'a>> = section.rows.iter().filter(told).collect();
    let last = *rows.last()?;
    let one_kind = |row: &&Row<'_>| (row.state, row.settings) == (last.state, last.settings);
    if !rows.iter().all(one_kind) {
        return None;
    }
    let is_equal = |layout: usize| {
        let verdict = |row: &&Row<'_>| row.cells[layout].and_then(|cell| cell.verdict);
        rows.iter().all(|row| verdict(row) == Some(Verdict::Equal))
    };
    let layouts: Vec<usize> =
        (0..last.cells.len()).filter(|&at| !view.is_baseline(at) && is_equal(at)).collect();
    let names: Vec<&str> =
        layouts.iter().map(|&at| view.results.layouts[at].name.as_str()).collect();
    let (is, floor) = match names.len() {
        0 => return None,
        1 => ("does", last.cells[layouts[0]]?.floor_percent?),
        _ => ("do", last.cells[layouts[0]]?.floor_percent?),
    };
    let cells: Vec<&Cell> =
        rows.iter().flat_map(|row| layouts.iter().filter_map(|&at| row.cells[at])).collect();
    Some(Conclusion {
        about: About::Equal,
        section: Some(section.title.clone()),
        text: format!(
            "{} {is} not differ from {} {}, within {floor:.1}{}%.",
            listed(&names),
            view.baseline(),
            when(&rows),
            number::NO_BREAK
        ),
        effect: 1.0,
        cells,
    })
}
