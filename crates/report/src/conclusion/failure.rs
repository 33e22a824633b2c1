//! What a lost drive does to each layout.

use std::collections::BTreeSet;

use raidlab_results::document::Cell;

use super::{About, Conclusion, gain, is_work};
use crate::view::{Row, Section, View};
use crate::{number, shown};

/// A loss below this factor is not worth a sentence.
const LEAST_LOSS: f64 = 1.05;

/// A layout healthy and in another state.
type Pair<'a> = (&'a Cell, &'a Cell);

/// For each state but healthy the row in which a layout loses most, with that layout and the one that loses least.
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
            let Some(one) = of_row(section, row) else { continue };
            if found.as_ref().is_none_or(|found| one.effect > found.effect) {
                found = Some(one);
            }
        }
    }
    found
}

fn of_row<'a>(section: &Section<'a>, row: &Row<'a>) -> Option<Conclusion<'a>> {
    let healthy = section.rows.iter().find(|one| {
        one.state == "healthy" && (one.processes, one.settings) == (row.processes, row.settings)
    })?;
    let both = healthy.cells.iter().zip(&row.cells).filter_map(|(one, other)| (*one).zip(*other));
    let mut pairs: Vec<Pair<'a>> =
        both.filter(|(one, other)| one.median > 0.0 && other.median > 0.0).collect();
    pairs.sort_by(|one, other| kept(*one).total_cmp(&kept(*other)));
    let (worst, best) = (*pairs.first()?, *pairs.last()?);
    let values = |(healthy, now): Pair<'_>| {
        let after = shown::value(healthy);
        format!("{} after {after}", shown::value_with_unit(now, section.unit))
    };
    let keeps = |pair: Pair<'_>| format!("{} ({})", number::share(kept(pair)), values(pair));
    let rest = match pairs.len() {
        1 => String::new(),
        _ if kept(best) > LEAST_LOSS => {
            let faster = number::percent((kept(best) - 1.0) * 100.0);
            format!("; {} is faster than healthy, {faster} ({})", best.1.layout, values(best))
        }
        _ => format!(", {} {}", best.1.layout, keeps(best)),
    };
    let mut cells = vec![worst.0, worst.1];
    if pairs.len() > 1 {
        cells.extend([best.0, best.1]);
    }
    let effect = 1.0 / kept(worst);
    if effect < LEAST_LOSS {
        return None;
    }
    Some(Conclusion {
        about: About::Failure,
        section: Some(section.title.clone()),
        text: format!(
            "With {}, {} keeps {} of its healthy speed ({}){rest}.",
            row.label(),
            worst.1.layout,
            number::share(kept(worst)),
            values(worst)
        ),
        cells,
        effect,
    })
}

/// The share of its speed that is left.
fn kept((healthy, now): Pair<'_>) -> f64 {
    gain(now, healthy)
}
