//! Two documents against each other: every cell with what it changed by, or what the model is off.

use maud::{Markup, html};
use raidlab_results::diff::{CellName, Change, Diff, DiffKind, Side};
use raidlab_results::document::Results;
use raidlab_results::{Better, Clock};

use super::{Page, single};
use crate::figure;
use crate::figure::draw::picture;
use crate::terminal::diff as words;
use crate::{ReportError, number, shown};

/// What two documents tell of each other as one HTML file, with the comparison as JSON in the element `raidlab-diff`.
///
/// # Errors
/// When a number is none.
pub fn diff_html(diff: &Diff) -> Result<String, ReportError> {
    let json = crate::diff_json(diff)?;
    let page = Page {
        title: words::heading(diff),
        generator: None,
        content: html! { main id="main" { h1 { (words::heading(diff)) } (section(diff)) } },
        footer: html! {
            "Written by raidlab. The comparison is part of this file: the script element \
             raidlab-diff holds it as JSON."
        },
        id: "raidlab-diff",
        json: &json,
        rows: "",
    };
    Ok(page.into_text())
}

/// The report of a measured run, and what the model beside it is off for each cell.
///
/// # Errors
/// As [`Exporter::export`](crate::Exporter::export).
pub fn html_with_residuals(measured: &Results, residuals: &Diff) -> Result<String, ReportError> {
    single(measured, Some(section(residuals)))
}

/// The report of a document, and before it parts in words: each with its heading and lines, which are lists.
///
/// # Errors
/// As [`Exporter::export`](crate::Exporter::export).
pub fn html_with_words(
    results: &Results,
    parts: &[(String, Vec<String>)],
) -> Result<String, ReportError> {
    let words = html! {
        section.diff {
            @for (heading, lines) in parts {
                h2 { (heading) }
                ul { @for line in lines { li { (line) } } }
            }
        }
    };
    single(results, Some(words))
}

fn section(diff: &Diff) -> Markup {
    let is_change = diff.kind == DiffKind::Change;
    let heads = words::heads(diff);
    html! {
        section.diff {
            h2 { (words::heading(diff)) }
            dl.settings {
                @for (title, side) in [("before", &diff.before), ("after", &diff.after)] {
                    (side_of(diff, title, side))
                }
                @for one in &diff.setup {
                    div {
                        dt { "differs: " (one.what) }
                        dd {
                            (one.before.as_deref().unwrap_or("none")) " → "
                            (one.after.as_deref().unwrap_or("none"))
                        }
                    }
                }
            }
            @if !diff.warnings.is_empty() {
                ul.remarks {
                    @for warning in &diff.warnings {
                        li.warning { strong { "Warning: " } (warning) }
                    }
                }
            }
            p { strong { (words::conclusion(diff)) } }
            (pictures(diff))
            @if !diff.cells.is_empty() {
                div.scroll role="region" aria-label="Table of every cell of both" tabindex="0" {
                    table.diff {
                        thead {
                            tr {
                                th scope="col" { "cell" }
                                @for head in &heads { th scope="col" { (head) } }
                            }
                        }
                        tbody {
                            @for cell in &diff.cells {
                                @let figures = words::figures(cell);
                                tr {
                                    th scope="row" {
                                        (words::title(&cell.name))
                                        small { (unit(cell)) }
                                    }
                                    @for (head, figure) in heads.iter().zip(figures) {
                                        td data-head=(head) { (figure) }
                                    }
                                    @if is_change { td { (words::chance_of(cell)) } }
                                    @if is_change { td { (verdict(cell.verdict)) } }
                                }
                            }
                        }
                    }
                }
            }
            (missing(&diff.before, &diff.only_before))
            (missing(&diff.after, &diff.only_after))
        }
    }
}

/// Both runs against each other as figures.
fn pictures(diff: &Diff) -> Markup {
    let figure = figure::diff_figure(diff, 8).ok();
    html! {
        @if let Some(figure) = figure {
            p.note { (figure.caption) }
            div.charts data-figure=(figure.name) {
                @for panel in &figure.panels {
                    figure { figcaption { (panel.title) } (picture(&figure, panel)) }
                }
            }
        }
    }
}

fn side_of(diff: &Diff, title: &'static str, side: &Side) -> Markup {
    let clock = match side.clock {
        Clock::Virtual => "virtual time",
        Clock::Real => "real time",
    };
    html! {
        div {
            dt { (words::side_title(diff.kind, title, side.origin)) }
            dd { (side.name) ": " (side.studies.join("; ")) ", " (clock) }
        }
    }
}

fn unit(cell: &raidlab_results::diff::CellDiff) -> String {
    let is_rebuild = shown::is_rebuild(&cell.name.metric);
    let lower = if cell.better == Better::Lower { ", lower is better" } else { "" };
    if is_rebuild { " shorter is better".into() } else { format!(" {}{lower}", cell.name.unit) }
}

const fn verdict(verdict: Option<Change>) -> &'static str {
    match verdict {
        Some(Change::Regressed) => "regressed",
        Some(Change::Improved) => "improved",
        Some(Change::Equal) => "equal within the floor",
        Some(Change::NotResolved) => "not resolved",
        Some(Change::Unchanged) => "unchanged",
        None => "",
    }
}

fn missing(side: &Side, names: &[CellName]) -> Markup {
    html! {
        @if !names.is_empty() {
            h3 { (number::counted(names.len(), "cell")) " only in " (side.name) }
            ul { @for name in names { li { (words::title(name)) } } }
        }
    }
}
