//! What a layout without redundancy is worth beside those that survive a lost drive.

use raidlab_results::document::{Cell, LayoutRow};

use super::{About, Conclusion, against, change, gain, is_work, least_gain};
use crate::number;
use crate::view::{Row, Section, View};

/// The row in which giving up redundancy gains most, and in how many it gains nothing.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let least = least_gain(view);
    let mut compared: Vec<(&Section<'a>, &Row<'a>, &'a Cell, &'a Cell)> = Vec::new();
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
            let bare = best_of(view, row, is_choice);
            compared.extend(bare.map(|(_, bare)| (section, row, bare, safe)));
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
        let (gains, which) = if effect < 1.0 {
            ("nothing".to_owned(), "nearest")
        } else {
            let percent = (least - 1.0) * 100.0;
            let space = number::NO_BREAK;
            let gains =
                format!("no more than {percent:.1}{space}%, below which differences mean nothing,");
            (gains, "most")
        };
        format!(
            "Giving up redundancy gains {gains} in any of {}: the {which} is {} on {} beside {} at {} with {} ({}).",
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
