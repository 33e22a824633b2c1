//! What the page of a replay has besides: published values, fidelity, findings, ablation.

use maud::{Markup, html};
use raidlab_results::document::{Cell, Results};
use raidlab_results::{AblationRow, Replays};

use super::{Page, body, figures, kept};
use crate::ReportError;
use crate::number;
use crate::terminal::{in_words, missed};
use crate::view::View;

/// Several replays as one HTML file, with all documents as JSON in the element `raidlab-results`.
///
/// # Errors
/// As [`Exporter::export`](crate::Exporter::export).
pub fn replay_html(documents: &[Results]) -> Result<String, ReportError> {
    let views = documents.iter().map(View::new).collect::<Result<Vec<_>, _>>()?;
    let documents: Vec<Results> =
        documents.iter().map(|one| kept(one).unwrap_or_else(|| one.clone())).collect();
    let json = Replays::new(documents).to_json()?;
    let rows = figures::rows_json(&views)?;
    let page = Page {
        title: "Replays of published studies",
        generator: None,
        content: html! {
            main id="main" {
                @for (at, view) in views.iter().enumerate() { article { (body(view, at)) } }
            }
        },
        footer: html! {
            "Written by raidlab. The results documents are part of this file: the script \
             element raidlab-results holds them as JSON."
        },
        id: "raidlab-results",
        json: &json,
        rows: &rows,
    };
    Ok(page.into_text())
}

/// What a cell of a replay shows besides its value.
pub(super) fn beside(cell: &Cell) -> Markup {
    html! {
        @if let Some(one) = &cell.published {
            span.published {
                "published " (number::number(one.value)) ", " (number::percent(one.error_percent))
                @if one.calibrated { " *" }
            }
        }
        @if let Some(moved) = &cell.moved {
            span.published {
                (number::percent(moved.percent)) " of " (number::number(moved.full))
            }
        }
        @if let Some(one) = &cell.bottleneck {
            span.busiest { (one.resource) " " (number::share(one.busy)) }
        }
    }
}

/// How near the replay comes, and what its numbers show.
pub(super) fn fidelity(results: &Results) -> Markup {
    html! {
        @if let Some(fidelity) = &results.fidelity {
            section {
                h2 { "Fidelity" }
                p { (in_words(fidelity)) }
                @if !fidelity.not_explained.is_empty() {
                    ul.remarks {
                        @for miss in &fidelity.not_explained {
                            li.warning { strong { "Not explained: " } (missed(miss)) }
                        }
                    }
                }
            }
        }
        @if !results.findings.is_empty() {
            section {
                h2 { "Findings, computed from these numbers" }
                ul { @for finding in &results.findings { li { (finding.text) } } }
            }
        }
    }
}

/// How cells move without each mechanism.
pub(super) fn ablation(results: &Results) -> Markup {
    html! {
        @if !results.ablation.is_empty() {
            section {
                h2 { "Without one mechanism at a time" }
                div.scroll role="region" aria-label="Table of mechanisms" tabindex="0" {
                    table.cells {
                        thead {
                            tr {
                                th scope="col" { "without" }
                                th scope="col" { "workload" }
                                th scope="col" { "median change" }
                                th scope="col" { "largest change" }
                                th scope="col" { "on" }
                            }
                        }
                        @for row in &results.ablation { (ablated(row)) }
                    }
                }
            }
        }
    }
}

fn ablated(row: &AblationRow) -> Markup {
    html! {
        tbody {
            @for one in &row.workloads {
                tr {
                    th scope="row" title=(row.meaning) { (row.mechanism) }
                    td { (one.workload) " " (one.metric) }
                    td { (number::percent(one.median_percent)) }
                    td { (number::percent(one.largest_percent)) }
                    td { (one.largest_layout) }
                }
            }
        }
    }
}
