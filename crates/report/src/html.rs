//! The report as one self-contained HTML file.
//!
//! It asks nothing of any other host and runs no script: styles and pictures are inline, and the
//! raw numbers stand in a data block. The content security policy forbids anything else.

mod chart;
mod diff;
mod replay;

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use raidlab_results::document::{Cell, Clock, Results, Verdict};

use crate::view::{Mark, Row, Section, View, extent, half_range};
pub use diff::{diff_html, html_with_residuals};
pub use replay::replay_html;

use crate::{Exporter, ReportError, advice, conclusion, number, shown};

/// Forbids every request and every script; only the style element of the page itself is used.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'";

/// With more layouts than this the table is likely to be wider than a page at 1,400 points.
const COLUMNS_AT_ONCE: usize = 6;

const STYLE: &str = include_str!("html/style.css");

/// One HTML file: settings, table, a bar chart for each row of the table, every sample, and the
/// document itself as JSON in the element with the id `raidlab-results`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Html;

impl Exporter for Html {
    fn export(&self, results: &Results) -> Result<String, ReportError> {
        let view = View::new(results)?;
        let json = serde_json::to_string(results).map_err(ReportError::json)?;
        Ok(page(&view, &json, &html! {}))
    }
}

/// A whole page, which holds what it shows as JSON in an element of this name.
struct Page<'a> {
    title: &'a str,
    generator: Option<&'a str>,
    content: Markup,
    footer: Markup,
    id: &'a str,
    json: &'a str,
}

impl Page<'_> {
    fn into_text(self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if let Some(version) = self.generator {
                        meta name="generator" content={ "raidlab " (version) };
                    }
                    title { (self.title) " – raidlab" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.content)
                    footer { p { (self.footer) } }
                    script type="application/json" id=(self.id) {
                        (PreEscaped(self.json.replace('<', "\\u003c")))
                    }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// The page of a document; `beside` follows it.
fn page(view: &View<'_>, json: &str, beside: &Markup) -> String {
    let results = view.results;
    let page = Page {
        title: &results.study,
        generator: Some(&results.raidlab),
        content: html! { (body(view, "")) (beside) },
        footer: html! {
            "Written by raidlab " (results.raidlab) ". The results document is part of \
             this file: the script element raidlab-results holds it as JSON."
        },
        id: "raidlab-results",
        json,
    };
    page.into_text()
}

/// A document; ids begin with `prefix`, which tells those of several documents apart.
fn body(view: &View<'_>, prefix: &str) -> Markup {
    let results = view.results;
    html! {
        header {
            h1 { (results.study) }
            (settings(view))
        }
        main {
            (remarks(view))
            (replay::fidelity(results))
            (table(view))
            (replay::ablation(results))
            @for (at, section) in view.sections.iter().enumerate() {
                (section_of(view, section, &format!("{prefix}{at}")))
            }
            (every_cell(view))
        }
    }
}

fn settings(view: &View<'_>) -> Markup {
    let results = view.results;
    let clock = match results.clock {
        Clock::Virtual => "virtual: times as the drive models count them",
        Clock::Real => "real: times as they passed on the machine",
    };
    let map = |map: &BTreeMap<String, String>| {
        html! { @for (key, value) in map { div { dt { (key) } dd { (value) } } } }
    };
    html! {
        dl.settings {
            div { dt { "clock" } dd { (clock) } }
            div { dt { "seed" } dd { (results.seed) } }
            div { dt { "rounds" } dd { (view.rounds()) " of every cell, in random order" } }
            div { dt { "baseline" } dd { (view.baseline()) } }
            (map(&results.host))
            (map(&results.settings))
        }
    }
}

fn remarks(view: &View<'_>) -> Markup {
    // A replay has as many seeds as it is meant to have.
    let advice = if is_replay(view) { Vec::new() } else { advice::remarks(view) };
    let risk = shown::risk(view);
    let warnings = || view.results.warnings.iter().chain(&risk);
    html! {
        @if warnings().next().is_some() || !advice.is_empty() || view.more().is_some() {
            ul.remarks {
                @for warning in warnings() {
                    li.warning { strong { "Warning: " } (warning) }
                }
                @if let Some(more) = view.more() { li { (more) } }
                @for remark in advice { li { strong { "Advice: " } (remark) } }
            }
        }
    }
}

fn table(view: &View<'_>) -> Markup {
    let layouts = &view.results.layouts;
    html! {
        @if view.sections.is_empty() { p { "No cell was measured." } }
        @else {
            @if layouts.len() > COLUMNS_AT_ONCE {
                p.note { "The table has " (layouts.len()) " layouts: scroll it sideways to see all." }
            }
            div.scroll role="region" aria-label="Table of all layouts" tabindex="0" {
                table.overview {
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
                            @for layout in layouts { td { (number::bytes(layout.capacity)) } }
                        }
                        tr.fact {
                            th scope="row" { "survives" }
                            @for layout in layouts { td { (layout.survives) } }
                        }
                    }
                    @for section in &view.sections {
                        tbody {
                            tr.group {
                                th scope="rowgroup" colspan=(layouts.len() + 1) {
                                    span { (section.title) " " small { (shown::direction(section)) } }
                                }
                            }
                            @for row in &section.rows { (table_row(view, section, row)) }
                        }
                    }
                }
            }
            p.legend {
                "★ best of its row; several where their intervals overlap, none where nothing \
                 stands out. Percent: difference of the median from " (view.baseline()) ". ~ the \
                 rounds show no difference from the baseline. ± half of largest minus smallest \
                 round, in percent of the median. Survives: lost members, whichever they are. In \
                 the charts a whisker reaches from the smallest to the largest round, and the \
                 dashed line is the baseline."
                @if is_replay(view) {
                    " Rounds are seeds. Published: the value of the study, and how far the median is \
                     off it; an asterisk where parameters were fitted to it. Below: what was busiest."
                }
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
                    td.missing { "not measured" }
                }
            }
        }
    }
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
        td.best[best] title=(tooltip(cell, section.unit)) {
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
            @if let Some(half) = half_range(cell).filter(|_| !shown::is_unknown(cell)) {
                span.range { (number::spread(half)) }
            }
            @if is_replay(view) { (replay::beside(cell)) }
        }
    }
}

fn verdict_class(cell: &Cell) -> &'static str {
    class_of(cell.verdict)
}

fn class_of(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
        Some(Verdict::Equal | Verdict::NotResolved) | None => "same",
    }
}

fn verdict_sign(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Equal) => "=",
        Some(Verdict::NotResolved) => "~",
        Some(Verdict::Faster | Verdict::Slower) | None => "",
    }
}

/// The samples behind a cell.
fn tooltip(cell: &Cell, unit: &str) -> String {
    let mut text = format!("median {}", shown::value_with_unit(cell, unit));
    if let Some(confidence) = shown::confidence(cell) {
        text.push_str(&format!("\n{confidence}"));
    }
    text.push_str(&format!("\nrounds {}", samples(cell)));
    if let Some(bottleneck) = &cell.bottleneck {
        let busy = number::share(bottleneck.busy);
        text.push_str(&format!("\nbusiest {}, {busy}", bottleneck.resource));
    }
    text
}

fn samples(cell: &Cell) -> String {
    let shown = |sample: &f64| shown::amount(cell, *sample);
    cell.samples.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Whether the document is a replay of a published study.
fn is_replay(view: &View<'_>) -> bool {
    view.results.fidelity.is_some()
}

fn section_of(view: &View<'_>, section: &Section<'_>, number: &str) -> Markup {
    let scales = chart::scales(section);
    html! {
        section aria-labelledby=(format!("s{number}")) {
            h2 id=(format!("s{number}")) {
                (section.title) " " small { (shown::direction(section)) }
            }
            @if !section.workload.description.is_empty() {
                p.description { (section.workload.description) }
            }
            @if !is_replay(view) {
                @for sentence in conclusion::sentences(view, section) { p { (sentence) } }
            }
            div.charts {
                @for (at, (row, scale)) in section.rows.iter().zip(scales).enumerate() {
                    figure {
                        figcaption { (row.label()) }
                        (chart::chart(view, section, row, scale, &format!("c{number}-{at}")))
                    }
                }
            }
        }
    }
}

/// All that is known about each cell, for those who want to check.
fn every_cell(view: &View<'_>) -> Markup {
    let published = view.cells().any(|cell| cell.published.is_some());
    let cpu = view.cells().any(|cell| cell.process_cpu_s.is_some() || cell.system_cpu_s.is_some());
    let interval = |cell: &Cell| {
        cell.ci95.map_or_else(String::new, |[low, high]| shown::range(cell, (low, high)))
    };
    let seconds = |value: Option<f64>| value.map_or_else(String::new, number::duration);
    html! {
        details {
            summary { "Every cell: samples, intervals, times" }
            div.scroll role="region" aria-label="Table of every cell" tabindex="0" {
                table.cells {
                    thead {
                        tr {
                            th scope="col" { "cell" }
                            th scope="col" { "median" }
                            th scope="col" { "mean" }
                            th scope="col" { "median between" }
                            th scope="col" { "range" }
                            th scope="col" { "first done" }
                            th scope="col" { "last done" }
                            @if cpu {
                                th scope="col" { "process CPU" }
                                th scope="col" { "system CPU" }
                            }
                            th scope="col" { "busiest" }
                            @if published { th scope="col" { "published" } }
                            th scope="col" { "rounds" }
                        }
                    }
                    @for section in &view.sections { tbody { @for row in &section.rows {
                        @for cell in row.cells.iter().flatten() {
                            tr {
                                th scope="row" {
                                    (cell.layout) ", " (section.title) ", " (row.label())
                                }
                                td { (shown::value_with_unit(cell, section.unit)) }
                                td { (shown::amount(cell, cell.mean)) }
                                td { (interval(cell)) }
                                td { (shown::range(cell, extent(cell))) }
                                td { (number::duration(cell.first_done_s)) }
                                td { (number::duration(cell.last_done_s)) }
                                @if cpu {
                                    td { (seconds(cell.process_cpu_s)) }
                                    td { (seconds(cell.system_cpu_s)) }
                                }
                                td { @if let Some(one) = &cell.bottleneck {
                                    (one.resource) " " (number::share(one.busy))
                                } }
                                @if published { td { @if let Some(one) = &cell.published {
                                    (number::number(one.value)) ", "
                                    (number::percent(one.error_percent))
                                    @if one.calibrated { " (calibrated on it)" }
                                } } }
                                td { (samples(cell)) }
                            }
                        }
                    } } }
                }
            }
        }
    }
}
