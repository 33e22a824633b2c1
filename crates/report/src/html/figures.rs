//! The figures of a page: those of the top rows at once, the others in parts that are opened.

use maud::{Markup, html};
use raidlab_results::document::Results;
use serde_json::{Value, json};

use crate::ReportError;
use crate::figure::draw::picture;
use crate::figure::model::{Bar, Bars, Body, Figure, Panel, Scale, Tone};
use crate::figure::{self, FIGURES};
use crate::shown;
use crate::view::{Row, Section, View};

/// Rows whose bars are drawn at once: the first of each of so many workloads.
const TOP_ROWS: usize = 6;
/// Panels of a figure on a page; `raidlab plot` draws more.
const PANELS: usize = 12;
/// Figures that stand at the top, with how many of their panels.
const TOP: [(&str, usize); 2] = [("choice", 1), ("heat", 1)];

/// Whether a row is drawn at once.
fn is_top(section: usize, row: usize) -> bool {
    row == 0 && section < TOP_ROWS
}

/// The figures of the top rows.
pub(super) fn top(view: &View<'_>) -> Markup {
    if view.sections.is_empty() {
        return html! {};
    }
    let figures: Vec<Figure> =
        TOP.iter().filter_map(|(name, panels)| figure::of_view(view, name, *panels)).collect();
    let rows: Vec<Panel> = top_rows(view)
        .filter(|(section, row, ..)| is_top(*section, *row))
        .map(|(.., panel)| panel)
        .collect();
    let panels = rows.len();
    let bars = Figure { panels: rows, ..figure::empty("bars") };
    html! {
        section {
            h2 { "At a glance" }
            div.charts {
                @for one in &figures {
                    @for panel in &one.panels {
                        figure {
                            figcaption { (one.title) ": " (panel.title) }
                            (picture(one, panel))
                            p.note { (one.caption) }
                        }
                    }
                }
            }
            @if panels > 0 {
                h3 { (bars.title) }
                p.note { (bars.caption) }
                div.charts { @for panel in &bars.panels { (one(&bars, panel)) } }
            }
        }
    }
}

fn one(figure: &Figure, panel: &Panel) -> Markup {
    html! { figure { figcaption { (panel.title) } (picture(figure, panel)) } }
}

/// Every row with its section's and its own place, and its bars.
fn top_rows<'v>(
    view: &'v View<'_>,
) -> impl Iterator<Item = (usize, usize, &'v Section<'v>, &'v Row<'v>, Panel)> {
    view.sections.iter().enumerate().flat_map(move |(at, section)| {
        section.rows.iter().enumerate().map(move |(number, row)| {
            (at, number, section, row, figure::bars_of(view, section, row))
        })
    })
}

/// Figures of a document by their names, as HTML that goes into a page with [`page_style`](super::page_style); those
/// that it has no data for are left out.
///
/// # Errors
/// A document that contradicts itself, see [`crate::ReportErrorKind`].
pub fn charts_html(results: &Results, names: &[&str]) -> Result<String, ReportError> {
    let view = View::new(results)?;
    let figures = names.iter().filter_map(|name| figure::of_view(&view, name, PANELS));
    let charts = html! {
        @for figure in figures {
            @for panel in &figure.panels {
                figure data-figure=(figure.name) {
                    figcaption { (figure.title) @if !panel.title.is_empty() { ": " (panel.title) } }
                    (picture(&figure, panel))
                    p.note { (figure.caption) }
                }
            }
        }
    };
    Ok(charts.into_string())
}

/// Every other figure that the document has the data for, to be opened.
pub(super) fn more(view: &View<'_>) -> Markup {
    let figures = FIGURES.iter().filter(|kind| kind.name != "bars");
    let figures: Vec<Figure> = figures
        .filter_map(|kind| figure::of_view(view, kind.name, PANELS))
        .filter(|one| !TOP.contains(&(one.name, one.panels.len() + one.left_out)))
        .collect();
    html! {
        @if !figures.is_empty() {
            section {
                h2 { "More figures" }
                p.note { "Open what you want to see." }
                @for figure in &figures {
                    details.figure data-figure=(figure.name) {
                        summary { (figure.title) }
                        p.note { (figure.caption) }
                        div.charts { @for panel in &figure.panels { (one(figure, panel)) } }
                        @if let Some(more) = figure.more() {
                            p.note { (more) " raidlab plot draws them: --workload, --processes and --panels choose." }
                        }
                    }
                }
            }
        }
    }
}

/// The rows that are not drawn yet: the script draws each as it is opened.
pub(super) fn rows(view: &View<'_>, document: usize) -> Markup {
    // Rows of documents before this one have the first numbers.
    let first = document * ROWS_OF_A_DOCUMENT;
    let mut number = first;
    let sections: Vec<(&Section<'_>, Vec<(usize, &Row<'_>)>)> = view
        .sections
        .iter()
        .enumerate()
        .map(|(at, section)| {
            let further = section.rows.iter().enumerate().filter(|(row, _)| !is_top(at, *row));
            let numbered = further.map(|(_, row)| {
                number += 1;
                (number - 1, row)
            });
            (section, numbered.collect())
        })
        .collect();
    html! {
        @if sections.iter().any(|(_, rows)| !rows.is_empty()) {
            section {
                h2 { "Row by row" }
                noscript { p.note { "These are drawn by this page's script; the table of every cell needs none." } }
                @for (section, rows) in sections {
                    @if !rows.is_empty() {
                        details {
                            summary { (section.title) " " small { (shown::direction(section)) } }
                            @if !section.workload.description.is_empty() {
                                p.description { (section.workload.description) }
                            }
                            @for (number, row) in rows {
                                details data-row=(number) { summary { (row.label()) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Numbers of rows that each document of a page has for itself.
const ROWS_OF_A_DOCUMENT: usize = 100_000;

/// What the script needs of the rows that it draws, by their numbers: words and axes, and for each bar the place of its
/// cell in the document. Values, intervals and rounds are those of the document.
pub(super) fn rows_json(views: &[View<'_>]) -> Result<String, ReportError> {
    let mut rows = serde_json::Map::new();
    for (document, view) in views.iter().enumerate() {
        let places = view.places();
        let further = top_rows(view).filter(|(section, row, ..)| !is_top(*section, *row));
        for (number, (_, _, _, row, panel)) in further.enumerate() {
            let Body::Bars(bars) = &panel.body else { continue };
            let cells =
                row.cells.iter().flatten().map(|cell| places.get(&std::ptr::from_ref(*cell)));
            let value = row_of(
                document,
                &panel.title,
                bars,
                &cells.map(|at| at.copied()).collect::<Vec<_>>(),
            );
            rows.insert((document * ROWS_OF_A_DOCUMENT + number).to_string(), value);
        }
    }
    if rows.is_empty() {
        Ok(String::new())
    } else {
        serde_json::to_string(&rows).map_err(ReportError::json)
    }
}

fn row_of(document: usize, title: &str, bars: &Bars, places: &[Option<usize>]) -> Value {
    let top = match bars.axis.scale {
        Scale::Linear(_, high) | Scale::Log(_, high) => high,
        Scale::Places(count) => count as f64,
    };
    let tone = |bar: &Bar| match (bar.value, bar.tone) {
        (None, _) => "unknown",
        (_, Tone::Faster) => "faster",
        (_, Tone::Slower) => "slower",
        (_, Tone::Same) => "same",
    };
    let cells = bars.bars.iter().zip(places).filter_map(|(bar, place)| {
        Some(json!([(*place)?, bar.text, tone(bar), u8::from(bar.best)]))
    });
    json!({
        "d": document,
        "n": title,
        "u": bars.axis.label,
        "t": top,
        "k": bars.axis.ticks,
        "b": bars.line,
        "c": cells.collect::<Vec<_>>(),
    })
}
