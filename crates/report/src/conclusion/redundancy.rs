//! What a layout without redundancy is worth beside those that survive a lost drive.

use raidlab_results::document::Cell;

use super::{About, Conclusion, against, change, gain, is_work, least_gain};
use crate::number;
use crate::view::{Row, Section, View};

/// The row in which giving up redundancy gains most, and in how many it gains nothing.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let least = least_gain(view);
    let mut compared: Vec<(&Section<'a>, &Row<'a>, &'a Cell, &'a Cell)> = Vec::new();
    for section in view.sections.iter().filter(|section| is_work(section)) {
        for row in section.rows.iter().filter(|row| row.state == "healthy") {
            let bare = best_of(view, row, |survives| survives == 0);
            let safe = best_of(view, row, |survives| survives > 0);
            compared.extend(bare.zip(safe).map(|(bare, safe)| (section, row, bare, safe)));
        }
    }
    let count = compared.len();
    let nothing = compared.iter().filter(|(.., bare, safe)| gain(bare, safe) < least).count();
    let most = |(.., bare, safe): &(_, _, &Cell, &Cell)| gain(bare, safe);
    let Some(largest) = compared.iter().max_by(|one, other| most(one).total_cmp(&most(other)))
    else {
        return Vec::new();
    };
    let (section, row, bare, safe) = *largest;
    let effect = gain(bare, safe);
    let preliminary = if row.is_preliminary() { ", by too few rounds to be sure" } else { "" };
    let text = if effect < least {
        format!(
            "Giving up redundancy gains no more than {:.1}{}%, below which differences mean nothing, in any of {}: the \
             most is {} on {} beside {} at {} with {} ({}).",
            (least - 1.0) * 100.0,
            number::NO_BREAK,
            number::counted(count, "row"),
            change(bare, safe),
            bare.layout,
            safe.layout,
            section.title,
            row.label(),
            against(bare, safe, section.unit)
        )
    } else {
        format!(
            "Giving up redundancy gains most at {} with {}: {} on {}, which survives no lost drive, beside {} \
             ({}){preliminary}; in {nothing} of {} it gains nothing.",
            section.title,
            row.label(),
            change(bare, safe),
            bare.layout,
            safe.layout,
            against(bare, safe, section.unit),
            number::counted(count, "row"),
        )
    };
    let cells = compared.iter().flat_map(|(.., bare, safe)| [*bare, *safe]);
    // Those it names first.
    let cells = [bare, safe].into_iter().chain(cells).collect();
    vec![Conclusion { about: About::Redundancy, section: None, text, cells, effect }]
}

/// The cell with the best median of the layouts that survive so much.
fn best_of<'a>(view: &View<'a>, row: &Row<'a>, is: impl Fn(u16) -> bool) -> Option<&'a Cell> {
    let layouts = view.results.layouts.iter().zip(&row.cells);
    let cells = layouts.filter(|(layout, _)| is(layout.survives)).filter_map(|(_, cell)| *cell);
    cells.filter(|cell| cell.median > 0.0).reduce(
        |best, cell| {
            if gain(cell, best) > 1.0 { cell } else { best }
        },
    )
}
