//! What surprises: the order of layouts turns with the number of processes, or more of them get less done.

use raidlab_results::document::{Better, Cell};

use super::{About, Conclusion, against, gain, is_clearly_better, is_work};
use crate::view::{Row, Section, View};
use crate::{number, shown};

/// More processes that get this much less done are worth a sentence.
const LESS: f64 = 1.1;

/// For each workload the two layouts whose order turns most, and the layout that loses most by more processes.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let sections = || view.sections.iter().filter(|section| is_work(section));
    let turns = sections().filter_map(|section| turn(view, section));
    turns.chain(sections().filter_map(|section| less(view, section))).collect()
}

/// Pairs of rows that differ in nothing but the number of processes, fewer first.
fn pairs<'s, 'a>(section: &'s Section<'a>) -> impl Iterator<Item = (&'s Row<'a>, &'s Row<'a>)> {
    section.rows.iter().flat_map(move |few| {
        let more = move |many: &&Row<'_>| {
            (many.state, many.settings) == (few.state, few.settings)
                && many.processes > few.processes
        };
        section.rows.iter().filter(more).map(move |many| (few, many))
    })
}

fn turn<'a>(view: &View<'_>, section: &Section<'a>) -> Option<Conclusion<'a>> {
    let mut found: Option<Conclusion<'a>> = None;
    let settled =
        |(few, many): &(&Row<'_>, &Row<'_>)| !few.has_unsettled() && !many.has_unsettled();
    for (few, many) in pairs(section).filter(settled) {
        let measured = |at: &usize| few.cells[*at].is_some() && many.cells[*at].is_some();
        let both: Vec<usize> = (0..few.cells.len()).filter(measured).collect();
        for (&one, &other) in both.iter().flat_map(|one| both.iter().map(move |other| (one, other)))
        {
            let (Some(first), Some(behind)) = (few.cells[one], few.cells[other]) else { continue };
            let (Some(then), Some(ahead)) = (many.cells[one], many.cells[other]) else { continue };
            let (before, after) = (gain(first, behind), gain(ahead, then));
            let effect = if before < after { before } else { after };
            let is_largest = found.as_ref().is_none_or(|found| effect > found.effect);
            if !(is_largest
                && is_clearly_better(view, first, behind, 1.0)
                && is_clearly_better(view, ahead, then, 1.0))
            {
                continue;
            }
            let text = format!(
                "The order turns: with {} {} is ahead of {} ({}), with {} it is behind ({}).",
                few.label(),
                first.layout,
                behind.layout,
                against(first, behind, section.unit),
                many.label(),
                against(then, ahead, section.unit)
            );
            let section = Some(section.title.clone());
            let cells = vec![first, behind, then, ahead];
            found = Some(Conclusion { about: About::Order, section, text, cells, effect });
        }
    }
    found
}

fn less<'a>(view: &View<'_>, section: &Section<'a>) -> Option<Conclusion<'a>> {
    if section.better == Better::Lower {
        // That the last of several is done later is no surprise.
        return None;
    }
    let mut found: Option<Conclusion<'a>> = None;
    for (few, many) in pairs(section) {
        for (alone, together) in few.cells.iter().zip(&many.cells) {
            let settled = |cell: &Option<&'a Cell>| cell.filter(|cell| !cell.unsettled);
            let (Some(alone), Some(together)) = (settled(alone), settled(together)) else {
                continue;
            };
            let effect = gain(alone, together);
            let is_largest = found.as_ref().is_none_or(|found| effect > found.effect);
            if !(is_largest && is_clearly_better(view, alone, together, LESS)) {
                continue;
            }
            let text = format!(
                "More processes get less done on {}: {} all together with {}, {} with {}.",
                alone.layout,
                shown::value_with_unit(together, section.unit),
                many.label(),
                shown::value_with_unit(alone, section.unit),
                number::processes(few.processes)
            );
            let section = Some(section.title.clone());
            let cells = vec![alone, together];
            found = Some(Conclusion { about: About::Order, section, text, cells, effect });
        }
    }
    found
}
