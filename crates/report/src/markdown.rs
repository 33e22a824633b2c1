//! The document as Markdown, to be pasted into an issue or a message.

use raidlab_results::document::{Cell, Results, Verdict};

use crate::number::{self, NO_BREAK, THIN};
use crate::sheet::{Sheet, escaped};
use crate::view::{Mark, Row, Section, View};
use crate::{Exporter, ReportError, shown, trusted};

/// A table for each workload and metric, a row for each layout, with signs for the verdicts and a legend: what
/// `--markdown` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Markdown;

impl Exporter for Markdown {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        crate::joined(documents, markdown)
    }
}

fn markdown(results: &Results) -> Result<String, ReportError> {
    let view = View::new(results)?;
    let mut text = head(&view);
    for section in &view.sections {
        text.push_str(&table(&view, section));
    }
    text.push_str(&legend(&view));
    let trust = trusted::lines(&view);
    if !trust.is_empty() {
        text.push_str(&format!("\n{}. {}\n\n", trusted::TITLE, trusted::ABOUT));
    }
    for one in trust {
        text.push_str(&format!("- {}: {}\n", escaped(&one.title), escaped(&one.text)));
    }
    for warning in &results.warnings {
        text.push_str(&format!("\n> Warning: {}\n", escaped(warning)));
    }
    Ok(text.replace([NO_BREAK, THIN], " "))
}

/// The title, and in one line what it ran by.
fn head(view: &View<'_>) -> String {
    let results = view.results;
    let mut facts = vec![
        shown::short_clock(results.origin()).to_owned(),
        format!("{} rounds", view.rounds()),
        format!("seed {}", results.seed),
        format!("raidlab {}", results.raidlab),
    ];
    facts.extend(results.host.iter().map(|(key, value)| format!("{key}: {value}")));
    if !results.without.is_empty() {
        facts.push(format!("without {}", results.without.join(", ")));
    }
    let facts: Vec<String> = facts.iter().map(|fact| escaped(fact)).collect();
    format!("### {}\n\n{}\n", escaped(&results.study), facts.join("; "))
}

fn table(view: &View<'_>, section: &Section<'_>) -> String {
    let mut sheet =
        Sheet::new(["layout".to_owned()].into_iter().chain(section.rows.iter().map(Row::label)));
    for (at, layout) in view.results.layouts.iter().enumerate() {
        if section.rows.iter().any(|row| row.cells[at].is_some()) {
            let cells = section.rows.iter().map(|row| figures(view, row, at));
            sheet.rows.push([layout.name.clone()].into_iter().chain(cells).collect());
        }
    }
    let (title, direction) = (escaped(&section.title), escaped(&shown::direction(section)));
    format!("\n**{title}** ({direction})\n\n{}", sheet.markdown())
}

/// The median, what it is against the baseline, and signs.
fn figures(view: &View<'_>, row: &Row<'_>, layout: usize) -> String {
    let Some(cell) = row.cells[layout] else { return "-".to_owned() };
    let alone = view.results.baseline.len() == 1 && view.is_baseline(layout);
    let mut text = shown::value(cell);
    match row.mark(layout) {
        Mark::Best => text = format!("**{text}**"),
        Mark::MayBe => text.push('?'),
        Mark::None => {}
    }
    if let Some(percent) = cell.percent_vs_baseline.filter(|_| !alone && !cell.tells_too_little()) {
        text.push_str(&format!(" ({}{})", number::percent(percent), sign(row, cell)));
    }
    if let Some(one) = &cell.published {
        let calibrated = if one.calibrated { ", fitted" } else { "" };
        let (value, error) = (number::number(one.value), number::percent(one.error_percent));
        text.push_str(&format!("; published {value}, off {error}{calibrated}"));
    }
    text
}

fn sign(row: &Row<'_>, cell: &Cell) -> &'static str {
    match cell.verdict.filter(|_| !row.is_preliminary()) {
        Some(Verdict::Faster) => " ▲",
        Some(Verdict::Slower) => " ▼",
        Some(Verdict::Equal) => " =",
        Some(Verdict::NotResolved) => " ≈",
        None => "",
    }
}

/// What the signs that are there mean.
fn legend(view: &View<'_>) -> String {
    let rows = || view.sections.iter().flat_map(|section| &section.rows);
    let marked =
        |mark: Mark| rows().any(|row| (0..row.cells.len()).any(|layout| row.mark(layout) == mark));
    let signed = |wanted: &str| {
        rows().any(|row| row.cells.iter().flatten().any(|cell| sign(row, cell) == wanted))
    };
    let preliminary = rows().any(Row::is_preliminary);
    let best = if preliminary {
        "**bold**: best median, too few rounds to be sure"
    } else {
        "**bold**: best, or as good within the noise floor"
    };
    let compared = view.cells().any(|cell| cell.percent_vs_baseline.is_some());
    let against = format!("(x %): against {}", escaped(&view.baseline()));
    let estimated = format!("{}: {}", shown::ESTIMATED, shown::ESTIMATED_FROM);
    let absent = shown::all_absent(view).map(|why| format!("-: {why}"));
    let entries = [
        (marked(Mark::Best), best),
        (marked(Mark::MayBe), "?: may be the best"),
        (compared, against.as_str()),
        (view.cells().any(shown::is_estimate), estimated.as_str()),
        (signed(" ▲"), "▲ faster"),
        (signed(" ▼"), "▼ slower"),
        (signed(" ="), "= equal within the noise floor"),
        (signed(" ≈"), "≈ not resolved: neither faster, slower nor equal is shown"),
        (absent.is_some(), absent.as_deref().unwrap_or_default()),
    ];
    let told: Vec<&str> = entries.iter().filter(|(is, _)| *is).map(|(_, text)| *text).collect();
    if told.is_empty() { String::new() } else { format!("\n{}\n", told.join("; ")) }
}
