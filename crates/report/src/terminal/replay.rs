//! Replays as they are printed: a table for each workload, published values beside, what was busiest,
//! fidelity, findings, and what moves without a mechanism.

mod ablation;
mod columns;

use raidlab_results::document::Results;
use raidlab_results::{Fidelity, Finding, MISS_PERCENT, Miss};

use super::text::{self, Span, Style};
use super::{Page, Terminal};
use crate::ReportError;
use crate::number::{self, counted};
use crate::view::View;

impl Terminal {
    /// Replays of published studies, one after another; of several, how near each comes at the end.
    ///
    /// # Errors
    /// As [`Exporter::export`](crate::Exporter::export).
    pub fn replays(&self, documents: &[Results]) -> Result<String, ReportError> {
        let mut page = Page { terminal: *self, lines: Vec::new() };
        for results in documents {
            page.replay(&View::new(results)?);
        }
        if documents.len() > 1 {
            page.all_fidelities(documents);
        }
        let painted = page.lines.iter().map(|line| text::paint(line, self.colour) + "\n");
        Ok(painted.collect())
    }
}

impl Page {
    fn replay(&mut self, view: &View<'_>) {
        let results = view.results;
        self.heading(&results.study);
        self.setting("clock", "virtual: times as the models count them");
        self.setting("seed", &results.seed.to_string());
        self.setting("seeds", &format!("{} for every cell", view.rounds()));
        self.setting("baseline", &view.baseline());
        if !results.without.is_empty() {
            self.setting("without", &results.without.join(", "));
        }
        self.settings_map("host", &results.host);
        self.gap();
        for workload in &results.workloads {
            columns::workload(self, view, workload);
        }
        self.replay_legend(view);
        self.gap();
        for warning in &results.warnings {
            self.hanging(vec![Span::new("warning: ", Style::Warning)], warning, Style::Plain);
        }
        if let Some(fidelity) = &results.fidelity {
            self.fidelity(fidelity);
        }
        if !results.ablation.is_empty() {
            ablation::ablation(self, results);
        }
        self.findings(&results.findings);
    }

    fn replay_legend(&mut self, view: &View<'_>) {
        let has = |test: fn(&raidlab_results::Cell) -> bool| view.cells().any(test);
        let mut entries = Vec::new();
        if has(|cell| cell.spread_percent.is_some()) {
            entries.push(("±x %", "largest minus smallest seed, in percent of the mean"));
        }
        if has(|cell| cell.published.is_some()) {
            let what = "the published value, and by how much the median is off it";
            entries.push(("published", what));
        }
        if has(|cell| cell.published.as_ref().is_some_and(|one| one.calibrated)) {
            entries.push(("*", "parameters were fitted to this cell"));
        }
        if has(|cell| cell.bottleneck.is_some()) {
            entries.push(("busiest", "the resource that was busy for most of the time"));
        }
        if columns::end_apart(view.cells()) {
            let what = "when the first and when the last process was done";
            entries.push(("first..last", what));
        }
        if has(|cell| cell.moved.is_some()) {
            entries.push(("moved", "against the same cell with all mechanisms"));
        }
        for (sign, meaning) in entries {
            let sign = text::clean(sign, self.terminal.unicode);
            let prefix = vec![Span::new(format!("  {sign:<13}"), Style::Plain)];
            self.hanging(prefix, meaning, Style::Dim);
        }
    }

    fn fidelity(&mut self, fidelity: &Fidelity) {
        self.heading("Fidelity");
        self.hanging(vec![Span::blank(2)], &in_words(fidelity), Style::Plain);
        for miss in &fidelity.not_explained {
            let prefix = vec![Span::new("  not explained: ", Style::Warning)];
            self.hanging(prefix, &missed(miss), Style::Plain);
        }
    }

    fn findings(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.heading("Findings, computed from these numbers");
        for finding in findings {
            self.hanging(vec![Span::new("  - ", Style::Dim)], &finding.text, Style::Plain);
        }
    }

    fn all_fidelities(&mut self, documents: &[Results]) {
        self.heading("All replays");
        for results in documents {
            let Some(fidelity) = &results.fidelity else { continue };
            let name = results.study.split(':').next().unwrap_or_default();
            let prefix = vec![self.terminal.span(&format!("  {name:<14}"), Style::Plain)];
            self.hanging(prefix, &in_words(fidelity), Style::Plain);
        }
    }
}

/// `120 cells, 11 of them given, 4 of those calibrated on with 2 free parameters; median error ...`.
pub(crate) fn in_words(fidelity: &Fidelity) -> String {
    let cells = counted(fidelity.cells, "cell");
    let parameters = counted(fidelity.free_parameters, "free parameter");
    let Some(median) = fidelity.median_error_percent else {
        return format!("{cells}, none of them given; {parameters}.");
    };
    let median = number::percent(median);
    let median = median.trim_start_matches('+');
    let missed = match fidelity.not_explained.len() {
        0 => format!("none is off by more than {MISS_PERCENT} %"),
        1 => format!("1 is off by more than {MISS_PERCENT} %"),
        count => format!("{count} are off by more than {MISS_PERCENT} %"),
    };
    format!(
        "{cells}, {} of them given, {} of these calibrated on; {parameters}. Median error of the given \
         cells {median}; {missed}.",
        fidelity.given_cells, fidelity.calibrated_cells
    )
}

/// `disk1, bonnie, 1 process: 312 seconds, published 428 (-27 %)`.
pub(crate) fn missed(miss: &Miss) -> String {
    let cell = &miss.cell;
    let settings: String =
        cell.settings.iter().map(|(key, value)| format!(", {key}={value}")).collect();
    format!(
        "{}, {}{settings}, {}, {}: {}, published {} ({}){}",
        cell.layout,
        cell.workload,
        number::processes(cell.processes),
        cell.metric,
        number::number(cell.median),
        number::number(miss.published),
        number::percent(miss.error_percent),
        if miss.calibrated { ", though calibrated on" } else { "" }
    )
}
