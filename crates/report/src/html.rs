//! The report as one self-contained HTML file.
//!
//! It asks nothing of any other host. Results come first: the verdict in words, one table, the figures of the top rows,
//! all of which are there without script. The page's own script draws the bars of further rows when they are opened,
//! from the document that is part of the page, and adds what is pressed or typed: tooltips, sorting, filtering, a
//! closer look along time, downloads. The content security policy names the hashes of that script and of the
//! styles, and forbids all else.

mod diff;
mod figures;
mod replay;
mod risk;
mod table;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use raidlab_results::document::Results;
use sha2::{Digest, Sha256};

use crate::figure::palette;
use crate::view::{Section, View};
pub use diff::{diff_html, html_with_residuals, html_with_words};
pub use figures::charts_html;
pub use replay::replay_html;

use crate::{Exporter, ReportError, advice, conclusion, number, shown, trusted};

const STYLE: &str = include_str!("html/style.css");
/// Where the rules of turned tables stand in it.
const TURNED: &str = "/* turned.css, for each class of tables */\n";
const SCRIPT: &str = concat!(include_str!("html/marks.js"), include_str!("html/page.js"));

/// How the script of a page begins that has figures of reports: a function of its own, with what makes their marks tell
/// their words by mouse, touch and keyboard. The page's own part follows, which calls `stops` for each figure that it
/// puts in and ends with `})();`.
pub const MARKS_SCRIPT: &str = include_str!("html/marks.js");

/// With more cells than this the page leaves out what only figures show: timelines and latency curves.
const MANY_CELLS: usize = 2_000;
/// With more sections than this what is said of latencies and rebuilds is folded away.
const MOST_VERDICTS: usize = 6;
/// With more cells than this there is no table of every cell without script.
const STATIC_CELLS: usize = 400;

/// One HTML file: verdict, table, figures, every cell, and the document itself as JSON in the element with the id
/// `raidlab-results`. Several documents are one page of replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Html;

impl Exporter for Html {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        let text = match documents {
            [one] => single(one, None)?,
            several => replay_html(several)?,
        };
        Ok(text.into_bytes())
    }
}

/// The page of a document; `beside` follows it.
fn single(results: &Results, beside: Option<Markup>) -> Result<String, ReportError> {
    let view = View::new(results)?;
    let rows = figures::rows_json(std::slice::from_ref(&view))?;
    let kept = kept(results);
    let page = Page {
        title: &results.study,
        generator: Some(&results.raidlab),
        content: html! {
            main id="main" { (body(&view, 0)) @if let Some(beside) = beside { (beside) } }
        },
        footer: html! {
            "Written by raidlab " (results.raidlab) ". The results document is part of \
             this file: the script element raidlab-results holds it as JSON."
        },
        id: "raidlab-results",
        json: &serde_json::to_string(kept.as_ref().unwrap_or(results))
            .map_err(ReportError::json)?,
        rows: &rows,
    };
    Ok(page.into_text())
}

/// The document without what makes a page of many cells too large; `None` where it has not so many.
fn kept(results: &Results) -> Option<Results> {
    (results.cells.len() > MANY_CELLS).then(|| {
        let mut kept = results.clone();
        for cell in &mut kept.cells {
            cell.timeline = None;
            cell.latency_curve_ms.clear();
        }
        kept.latency_shares.clear();
        kept
    })
}

/// A whole page, which holds what it shows as JSON in an element of this name.
struct Page<'a> {
    title: &'a str,
    generator: Option<&'a str>,
    content: Markup,
    footer: Markup,
    id: &'a str,
    json: &'a str,
    /// What the script needs to draw the rows that are not drawn yet; empty for none.
    rows: &'a str,
}

impl Page<'_> {
    fn into_text(self) -> String {
        let style = page_style();
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
            policy_hash(SCRIPT),
            policy_hash(&style)
        );
        let data = |text: &str| PreEscaped(text.replace('<', "\\u003c"));
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if let Some(version) = self.generator {
                        meta name="generator" content={ "raidlab " (version) };
                    }
                    title { (self.title) " – raidlab" }
                    style { (PreEscaped(style)) }
                }
                body {
                    a.skip href="#main" { "Skip to the results" }
                    (self.content)
                    footer { p { (self.footer) } }
                    script type="application/json" id=(self.id) { (data(self.json)) }
                    @if !self.rows.is_empty() {
                        script type="application/json" id="raidlab-rows" { (data(self.rows)) }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// The styles of reports, in light and dark, for pages that look like them.
pub fn page_style() -> String {
    let own = STYLE.replacen(TURNED, &table::turned(), 1);
    format!("{}{own}{}", palette::properties(), palette::STYLE)
}

/// What a content security policy knows an inline element by.
pub fn policy_hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// A document; `number` tells its ids from those of others on the page.
fn body(view: &View<'_>, number: usize) -> Markup {
    let results = view.results;
    html! {
        header {
            h1 { (results.study) }
            p.facts { (facts(view)) }
        }
        (verdict(view, number))
        (replay::fidelity(results))
        (table::overview(view))
        (risk::section(view))
        (doubts(view, number))
        (figures::top(view))
        (replay::ablation(results))
        (figures::more(view))
        (figures::rows(view, number))
        (every_cell(view, number))
        (settings(view))
    }
}

/// What it ran by, in a line.
fn facts(view: &View<'_>) -> String {
    let results = view.results;
    let mut facts = vec![
        shown::short_clock(results.origin()).to_owned(),
        format!("{} rounds of every cell, in random order", view.rounds()),
        format!("baseline {}", view.baseline()),
        format!("seed {}", results.seed),
        format!("raidlab {}", results.raidlab),
    ];
    if !results.without.is_empty() {
        facts.push(format!("without {}", results.without.join(", ")));
    }
    facts.join(" · ")
}

/// What is shown, in words; the table comes next, then what to know before believing it.
fn verdict(view: &View<'_>, number: usize) -> Markup {
    if is_replay(view) || view.sections.is_empty() {
        return html! {};
    }
    // Where there is much to say, what layouts do comes first; of requests and rebuilds it is said on demand.
    let is_long =
        view.sections.len() > MOST_VERDICTS && view.sections.iter().any(conclusion::is_work);
    let is_first = |section: &&Section<'_>| !is_long || conclusion::is_work(section);
    let (first, more): (Vec<_>, Vec<_>) = view.sections.iter().partition(is_first);
    html! {
        section {
            h2 { "What it shows" }
            (sentences(view, &first))
            @if !more.is_empty() {
                details.words {
                    summary { "Latency and rebuilds in words: " (more.len()) " more" }
                    (sentences(view, &more))
                }
            }
            p.note {
                "Below the table: "
                a href={ "#doubts-" (number) } { "what no single row shows, and how far to trust it" } "."
            }
        }
    }
}

/// Each section's sentences.
fn sentences(view: &View<'_>, sections: &[&Section<'_>]) -> Markup {
    html! {
        ul.verdicts {
            @for section in sections {
                li {
                    strong { (section.title) }
                    @for sentence in conclusion::sentences(view, section) { p { (sentence) } }
                }
            }
        }
    }
}

/// What no single row shows, and what to know before believing any of it.
fn doubts(view: &View<'_>, number: usize) -> Markup {
    let across = conclusion::across(view);
    html! {
        section id={ "doubts-" (number) } {
            @if !across.is_empty() {
                h2 { "Across the rows" }
                ul.verdicts {
                    @for one in &across {
                        li {
                            @if let Some(section) = &one.section { strong { (section) ": " } }
                            (one.text)
                        }
                    }
                }
            }
            (remarks(view))
        }
    }
}

fn remarks(view: &View<'_>) -> Markup {
    // A replay has as many seeds as it is meant to have.
    let advice = if is_replay(view) { Vec::new() } else { advice::remarks(view) };
    let risk = shown::risk(view);
    let warnings = || view.results.warnings.iter().chain(&risk);
    let trust = trusted::lines(view);
    let others = warnings().next().is_some() || !advice.is_empty() || view.more().is_some();
    html! {
        @if !trust.is_empty() || others {
            h2 { (trusted::TITLE) }
            ul.remarks {
                @if !trust.is_empty() { li { (trusted::ABOUT) } }
                @for one in trust { li { strong { (one.title) ": " } (one.text) } }
                @for warning in warnings() {
                    li.warning { strong { "Warning: " } (warning) }
                }
                @if let Some(more) = view.more() { li { (more) } }
                @for remark in advice { li { strong { "Advice: " } (remark) } }
            }
        }
    }
}

/// What repeats it, folded away.
fn settings(view: &View<'_>) -> Markup {
    let results = view.results;
    let map = |map: &BTreeMap<String, String>| {
        html! { @for (key, value) in map { div { dt { (key) } dd { (value) } } } }
    };
    html! {
        details.settings {
            summary { "Settings, host and workloads" }
            dl.settings {
                div { dt { "clock" } dd { (shown::clock(results.origin())) } }
                div { dt { "seed" } dd { (results.seed) } }
                div { dt { "rounds" } dd { (view.rounds()) " of every cell, in random order" } }
                div { dt { "baseline" } dd { (view.baseline()) } }
                (map(&results.host))
                (map(&results.settings))
                @for workload in &results.workloads {
                    @if !workload.description.is_empty() {
                        div { dt { (workload.name) } dd { (workload.description) } }
                    }
                }
            }
        }
    }
}

/// Whether the document is a replay of a published study.
fn is_replay(view: &View<'_>) -> bool {
    view.results.fidelity.is_some()
}

/// All cells, sorted and filtered by the script; without, a plain table where they are not too many. Of several
/// documents the first has those of all.
fn every_cell(view: &View<'_>, number: usize) -> Markup {
    let many = view.results.cells.len() > STATIC_CELLS;
    html! {
        @if number == 0 && !view.sections.is_empty() {
            section {
                h2 { "Every cell" }
                p.saves {
                    button type="button" hidden data-save="json" { "Download the document (JSON)" }
                    button type="button" hidden data-save="csv" { "Download every round (CSV)" }
                }
                @if view.results.cells.len() > MANY_CELLS {
                    p.note {
                        "Timelines and latency curves of the " (number::counted(view.results.cells.len(), "cell"))
                        " are left out of this page to keep it small; --json writes them."
                    }
                }
                div.every-cell {
                    noscript {
                        @if many {
                            p.note {
                                "The table of " (view.results.cells.len()) " cells is made by this page's script; \
                                 the data are at the end of this file."
                            }
                        } @else { (table::every_cell(view)) }
                    }
                }
            }
        }
    }
}
