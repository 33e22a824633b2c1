//! The tables of a page: one row for all layouts, and one for each cell.

use maud::{Markup, html};
use raidlab_results::document::{Cell, Verdict};

use super::{is_replay, replay};
use crate::figure::words;
use crate::view::{Mark, Row, Section, View, extent, half_range};
use crate::{number, risk, shown, trusted};

/// Rows of the table over all layouts; more are in the table of every cell.
const MOST_ROWS: usize = 60;

/// The rows of the table, with whether they are its first so many.
pub(super) fn top_rows<'v, 'a>(
    view: &'v View<'a>,
) -> impl Iterator<Item = (&'v Section<'a>, &'v Row<'a>)> {
    let all = view.sections.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
    all.take(MOST_ROWS)
}

/// Half ranges below this many percent of the median are left out.
const RANGE_SHOWN_PERCENT: f64 = 1.0;

/// The classes of tables, and from how many rem down each is turned; the last always.
const TURNS: [(&str, u32); 5] =
    [("few", 46), ("some", 52), ("many", 60), ("wide", 80), ("crowd", 999)];

/// What turns each class of tables.
pub(super) fn turned() -> String {
    let rules = include_str!("turned.css");
    TURNS
        .iter()
        .map(|(class, width)| rules.replace("CLASS", class).replace("WIDTH", &width.to_string()))
        .collect()
}

/// How soon the table is turned: the more layouts, the wider is too narrow. Times of rebuilds take more room.
const fn turns(layouts: usize, rebuilds: bool) -> &'static str {
    match (layouts, rebuilds) {
        (0..=4, false) => "few",
        (5..=7, false) | (0..=4, true) => "some",
        (8..=11, false) | (5..=6, true) => "many",
        (7..=10, true) => "wide",
        _ => "crowd",
    }
}

pub(super) fn overview(view: &View<'_>) -> Markup {
    let layouts = &view.results.layouts;
    let all: usize = view.sections.iter().map(|section| section.rows.len()).sum();
    let shown_rows = top_rows(view).count();
    // Cells of a replay carry more words.
    let width = if is_replay(view) { 2 * layouts.len() } else { layouts.len() };
    let rebuilds = view.cells().any(|cell| shown::is_rebuild(&cell.metric));
    let mut left = shown_rows;
    let sections: Vec<(&Section<'_>, &[Row<'_>])> = view
        .sections
        .iter()
        .map(|section| {
            let count = section.rows.len().min(left);
            left -= count;
            (section, &section.rows[..count])
        })
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    html! {
        section {
            h2 { "All layouts" }
            @if view.sections.is_empty() { p { "No cell was measured." } }
            @else {
                div.scroll role="region" aria-label="Table of all layouts" tabindex="0" {
                    table class={ "overview " (turns(width, rebuilds)) } {
                        (head(view))
                        @for (section, rows) in sections {
                            tbody {
                                tr.group {
                                    th scope="rowgroup" colspan=(layouts.len() + 1) {
                                        (section.title) " " small { (shown::direction(section)) }
                                    }
                                }
                                @for row in rows { (table_row(view, section, row)) }
                            }
                        }
                    }
                }
                @if all > shown_rows {
                    p.note {
                        "These are the first " (shown_rows) " of " (all)
                        " rows; all are below, row by row and cell by cell."
                    }
                }
                (legend(view))
            }
        }
    }
}

fn head(view: &View<'_>) -> Markup {
    let layouts = &view.results.layouts;
    html! {
        thead {
            tr {
                td {}
                @for (at, layout) in layouts.iter().enumerate() {
                    th scope="col" {
                        (layout.name)
                        @if view.is_baseline(at) { small { "baseline" } }
                    }
                }
            }
            tr.fact {
                th scope="row" { "usable" }
                @for layout in layouts { td data-head=(layout.name) { (number::bytes(layout.capacity)) } }
            }
            tr.fact {
                th scope="row" { "survives" }
                @for layout in layouts { td data-head=(layout.name) { (layout.survives) } }
            }
            @if let Some(label) = risk::label(view) {
                tr.fact {
                    th scope="row" { (label) }
                    @for (at, layout) in layouts.iter().enumerate() {
                        td.words data-head=(layout.name) { (risk::in_short(view, at)) }
                    }
                }
            }
        }
    }
}

fn legend(view: &View<'_>) -> Markup {
    html! {
        p.legend {
            "★ best of its row, or as good; ? may be the best. Percent: centre of the ratios of each round to "
            (view.baseline()) (shown::healthy_words(view)) ". = equal within the noise floor, ~ not resolved. \
             ± half of largest minus smallest round, in percent of the median, left out below 1 %. Survives: lost \
             members, whichever they are. Point at a value, or go there by Tab and the arrows, for its rounds."
            @if view.cells().any(shown::is_estimate) {
                " “" (shown::ESTIMATED) "”: " (shown::ESTIMATED_FROM) "."
            }
            @if let (Some(label), Some(risks)) = (risk::label(view), risk::of(view)) {
                " " (risk::sentence(&label, risks))
            }
            @if is_replay(view) {
                " Rounds are seeds. Published: the value of the study, and how far the median is \
                 off it; an asterisk where parameters were fitted to it. Below: what was busiest."
            }
        }
    }
}

fn table_row(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> Markup {
    html! {
        tr {
            th scope="row" { (row.label()) }
            @for (at, cell) in row.cells.iter().enumerate() {
                @if let Some(cell) = cell {
                    (table_cell(view, section, row, at, cell))
                } @else {
                    td.missing data-head=(view.results.layouts[at].name) { (shown::absent(view, row, at)) }
                }
            }
        }
    }
}

/// The half range of what is known, if it is worth a reader's time.
fn shown_range(cell: &Cell) -> Option<f64> {
    half_range(cell).filter(|half| *half >= RANGE_SHOWN_PERCENT && !cell.tells_too_little())
}

fn table_cell(
    view: &View<'_>,
    section: &Section<'_>,
    row: &Row<'_>,
    layout: usize,
    cell: &Cell,
) -> Markup {
    let mark = row.mark(layout);
    let best = mark == Mark::Best;
    html! {
        td.best[best] data-tip=(words(cell, section.unit)) data-head=(cell.layout) {
            span.value {
                @if best { span.star aria-label="best" role="img" { "★" } " " }
                @if mark == Mark::MayBe { span.star aria-label="may be the best" role="img" { "?" } " " }
                (shown::value(cell))
            }
            @if let Some(percent) = shown::percent(view, layout, cell) {
                span class={ "percent " (class_of(percent.verdict)) } {
                    (number::percent(percent.value))
                    @if !row.is_preliminary() { (verdict_sign(percent.verdict)) }
                }
            }
            @if let Some(half) = shown_range(cell) {
                span.range { (number::spread(half)) }
            }
            @if is_replay(view) { (replay::beside(cell)) }
        }
    }
}

const fn class_of(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
        Some(Verdict::Equal | Verdict::NotResolved) | None => "same",
    }
}

const fn verdict_sign(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Equal) => " =",
        Some(Verdict::NotResolved) => " ~",
        Some(Verdict::Faster | Verdict::Slower) | None => "",
    }
}

/// All that is known about each cell, for those who want to check without script.
pub(super) fn every_cell(view: &View<'_>) -> Markup {
    let interval = |cell: &Cell| {
        cell.ci95.map_or_else(String::new, |[low, high]| shown::range(cell, (low, high)))
    };
    let samples = |cell: &Cell| {
        let shown = |sample: &f64| shown::amount(cell, *sample);
        cell.samples.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let heads = [
        "cell",
        "median",
        "mean",
        "median between",
        "range",
        "last done",
        "busiest",
        "trust",
        "rounds",
    ];
    html! {
        div.scroll {
            table.cells {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                @for section in &view.sections { tbody { @for row in &section.rows {
                    @for cell in row.cells.iter().flatten() {
                        tr {
                            th scope="row" { (cell.layout) ", " (section.title) ", " (row.label()) }
                            td { (shown::value_with_unit(cell, section.unit)) }
                            td { (shown::amount(cell, cell.mean)) }
                            td { (interval(cell)) }
                            td { (shown::range(cell, extent(cell))) }
                            td { (number::duration(cell.last_done_s)) }
                            td { @if let Some(one) = &cell.bottleneck {
                                (one.resource) " " (number::share(one.busy))
                            } }
                            td { (trusted::of_cell(cell).unwrap_or_default()) }
                            td { (samples(cell)) }
                        }
                    }
                } } }
            }
        }
    }
}
