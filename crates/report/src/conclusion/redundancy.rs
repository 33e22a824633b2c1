//! What a layout without redundancy is worth beside those that survive a lost drive.

use raidlab_results::document::{Cell, LayoutRow};

use super::{About, Conclusion, against, change, gain, is_clearly_better, is_work, least_gain};
use crate::number;
use crate::view::{Row, Section, View};

/// A row with the best layout that survives nothing, and the best of the others.
#[derive(Clone, Copy)]
struct Pair<'v, 'a> {
    section: &'v Section<'a>,
    row: &'v Row<'a>,
    bare: &'a Cell,
    safe: &'a Cell,
    /// From which factor on a gain is one.
    least: f64,
    /// Whether the rounds show one.
    is_gain: bool,
}

impl Pair<'_, '_> {
    fn gain(&self) -> f64 {
        gain(self.bare, self.safe)
    }
}

/// The row in which giving up redundancy gains most, and in how many no gain is shown.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let compared = pairs(view);
    let order = |one: &&Pair<'_, '_>, other: &&Pair<'_, '_>| one.gain().total_cmp(&other.gain());
    let shown = compared.iter().filter(|pair| pair.is_gain);
    let count = shown.clone().count();
    let largest = shown.max_by(order).or_else(|| compared.iter().max_by(order));
    let Some(largest) = largest else { return Vec::new() };
    let Pair { bare, safe, .. } = *largest;
    let text = if count > 0 {
        some(largest, compared.len(), compared.len() - count)
    } else {
        none(largest, &compared)
    };
    let effect = largest.gain();
    let cells = compared.iter().flat_map(|pair| [pair.bare, pair.safe]);
    // Those it names first.
    let cells = [bare, safe].into_iter().chain(cells).collect();
    vec![Conclusion { about: About::Redundancy, section: None, text, cells, effect }]
}

/// What is compared in each row.
fn pairs<'v, 'a>(view: &'v View<'a>) -> Vec<Pair<'v, 'a>> {
    let mut compared = Vec::new();
    for section in view.sections.iter().filter(|section| is_work(section)) {
        for row in section.rows.iter().filter(|row| row.state == "healthy") {
            if !row.too_short.is_empty() {
                // What is not known may be the best of either.
                continue;
            }
            let safe = best_of(view, row, |layout| layout.survives > 0);
            let Some((room, safe)) = safe else { continue };
            // A single drive is no choice beside an array of four: what takes the place has as much room, but for
            // rounding.
            let is_choice = |one: &LayoutRow| one.survives == 0 && one.capacity >= room / 100 * 99;
            let Some((_, bare)) = best_of(view, row, is_choice) else { continue };
            let least = least_gain(view, [bare, safe]);
            // Where a model tells no difference nothing can be said.
            if least.is_finite() {
                let is_gain = is_clearly_better(view, bare, safe, 1.0);
                compared.push(Pair { section, row, bare, safe, least, is_gain });
            }
        }
    }
    compared
}

/// Of a row in which it gains something, and of the rows in which it does not.
fn some(largest: &Pair<'_, '_>, rows: usize, nothing: usize) -> String {
    let Pair { section, row, bare, safe, .. } = *largest;
    let preliminary = preliminary(row.is_preliminary());
    format!(
        "Giving up redundancy gains most at {} with {}: {} on {}, which survives no lost drive, beside {} \
         ({}){preliminary}; in {nothing} of {} no gain is shown.",
        section.title,
        row.label(),
        change(bare, safe),
        bare.layout,
        safe.layout,
        against(bare, safe, section.unit),
        number::counted(rows, "row"),
    )
}

/// That no row shows a gain, with the one in which it is nearest to that.
fn none(largest: &Pair<'_, '_>, all: &[Pair<'_, '_>]) -> String {
    let Pair { section, row, bare, safe, .. } = *largest;
    let which = if largest.gain() < 1.0 { "nearest" } else { "most" };
    // Where a median is beyond that, it is the rounds that do not show it.
    let within = all.iter().all(|pair| pair.gain() < pair.least) && largest.gain() >= 1.0;
    let least = all.iter().map(|pair| pair.least).fold(1.0, f64::max);
    let (percent, space) = ((least - 1.0) * 100.0, number::NO_BREAK);
    let floor = match within {
        true => format!(", as differences below {percent:.1}{space}% mean nothing"),
        false => String::new(),
    };
    format!(
        "No gain by giving up redundancy is shown in any of {}{floor}{}: the {which} is {} on {} beside {} at {} with \
         {} ({}).",
        number::counted(all.len(), "row"),
        preliminary(all.iter().any(|pair| pair.row.is_preliminary())),
        change(bare, safe),
        bare.layout,
        safe.layout,
        section.title,
        row.label(),
        against(bare, safe, section.unit)
    )
}

fn preliminary(is_preliminary: bool) -> &'static str {
    if is_preliminary { ", by too few rounds to be sure" } else { "" }
}

/// The cell with the best median of some layouts, and the room of its layout in bytes.
fn best_of<'a>(
    view: &View<'a>,
    row: &Row<'a>,
    is: impl Fn(&LayoutRow) -> bool,
) -> Option<(u64, &'a Cell)> {
    let layouts = view.results.layouts.iter().zip(&row.cells);
    let layouts = layouts.filter(|(layout, _)| is(layout));
    let cells = layouts.filter_map(|(layout, cell)| Some((layout.capacity, (*cell)?)));
    cells
        .filter(|(_, cell)| cell.median > 0.0)
        .reduce(|best, one| if gain(one.1, best.1) > 1.0 { one } else { best })
}
