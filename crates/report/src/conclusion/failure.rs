//! What a lost drive does to each layout.

use std::collections::BTreeSet;

use raidlab_results::document::Cell;

use super::{About, Conclusion, gain, is_clearly_better, is_work};
use crate::view::{Row, Section, View};
use crate::{number, shown};

/// A loss below this factor is not worth a sentence.
const LEAST_LOSS: f64 = 1.05;

/// A layout healthy and in another state.
type Pair<'a> = (&'a Cell, &'a Cell);

/// For each state but healthy the row in which a layout loses most, with that layout and the one that loses least.
/// A loss is one that the rounds show.
pub(super) fn of<'a>(view: &View<'a>) -> Vec<Conclusion<'a>> {
    let rows = view.sections.iter().flat_map(|section| &section.rows);
    let states: BTreeSet<&str> =
        rows.map(|row| row.state).filter(|state| *state != "healthy").collect();
    states.into_iter().filter_map(|state| of_state(view, state)).collect()
}

fn of_state<'a>(view: &View<'a>, state: &str) -> Option<Conclusion<'a>> {
    let mut found: Option<Conclusion<'a>> = None;
    for section in view.sections.iter().filter(|section| is_work(section)) {
        for row in section.rows.iter().filter(|row| row.state == state) {
            let Some(one) = of_row(view, section, row) else { continue };
            if found.as_ref().is_none_or(|found| one.effect > found.effect) {
                found = Some(one);
            }
        }
    }
    found
}

fn of_row<'a>(view: &View<'_>, section: &Section<'a>, row: &Row<'a>) -> Option<Conclusion<'a>> {
    let healthy = section.rows.iter().find(|one| {
        one.state == "healthy" && (one.processes, one.settings) == (row.processes, row.settings)
    })?;
    let both = healthy.cells.iter().zip(&row.cells).filter_map(|(one, other)| (*one).zip(*other));
    let is_known = |(one, other): &Pair<'_>| one.median > 0.0 && other.median > 0.0;
    let mut pairs: Vec<Pair<'a>> =
        both.filter(|(_, now)| !now.unsettled).filter(is_known).collect();
    pairs.sort_by(|one, other| kept(*one).total_cmp(&kept(*other)));
    let is_loss = |(healthy, now): &Pair<'_>| is_clearly_better(view, healthy, now, LEAST_LOSS);
    let at = pairs.iter().position(is_loss)?;
    let worst = pairs.remove(at);
    // What is left is a layout each of its own.
    let best = pairs.last().copied();
    let effect = 1.0 / kept(worst);
    Some(Conclusion {
        about: About::Failure,
        section: Some(section.title.clone()),
        text: format!(
            "With {}, {} keeps {} of its healthy speed ({}){}.",
            row.label(),
            worst.1.layout,
            number::share(kept(worst)),
            values(worst, section.unit),
            best.map_or_else(String::new, |best| rest(view, best, section.unit))
        ),
        cells: [worst].into_iter().chain(best).flat_map(|(one, other)| [one, other]).collect(),
        effect,
    })
}

/// How the layout fares that loses least.
fn rest(view: &View<'_>, best: Pair<'_>, unit: &str) -> String {
    let ((healthy, now), values) = (best, values(best, unit));
    if is_clearly_better(view, now, healthy, LEAST_LOSS) {
        let faster = number::percent((kept(best) - 1.0) * 100.0);
        return format!("; {} is faster than healthy, {faster} ({values})", now.layout);
    }
    if is_clearly_better(view, healthy, now, 1.0) {
        return format!(", {} {} ({values})", now.layout, number::share(kept(best)));
    }
    format!("; on {} no loss is shown ({values})", now.layout)
}

/// `160 MiB/s after 200`.
fn values((healthy, now): Pair<'_>, unit: &str) -> String {
    format!("{} after {}", shown::value_with_unit(now, unit), shown::value(healthy))
}

/// The share of its speed that is left.
fn kept((healthy, now): Pair<'_>) -> f64 {
    gain(now, healthy)
}
