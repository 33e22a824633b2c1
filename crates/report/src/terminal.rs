//! The report as it is printed: settings, one table, remarks, conclusions.
//!
//! What matters most stands last, because that is what a terminal still shows after a long table.

pub(crate) mod diff;
mod replay;
mod risk;
mod spark;
mod table;
mod text;
mod turned;

use std::collections::BTreeMap;

use raidlab_results::document::{Cell, Results, Verdict};

use crate::view::{Mark, Row, View, half_range};
use crate::{Exporter, ReportError, advice, conclusion, number, shown, trusted};
pub(crate) use replay::{in_words, missed};
use text::{Line, Span, Style};

/// Columns of running text where the width is not known.
const PROSE_COLUMNS: usize = 100;
/// Columns below which lines are no longer broken.
const FEWEST_COLUMNS: usize = 30;
/// Cells whose rounds are drawn at the most.
const MOST_CELLS_OF_ROUNDS: usize = 5;
/// Half ranges below this many percent of the median are left out of the table.
const RANGE_SHOWN_PERCENT: f64 = 1.0;

/// Plain text for a terminal or a pipe.
///
/// The table takes the widest form that fits: each cell on one line, on two or on three; where even that is too wide
/// it is turned, with a line for each layout; and where one column of that does not fit beside the names, one block of
/// lines for each row. Small bars show how layouts go with more processes, and rounds that vary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Columns of the terminal; `None` for as many as the table takes, with prose at 100.
    pub width: Option<u16>,
    /// Use the escape sequences for bold, dim and coloured text (ECMA-48).
    pub colour: bool,
    /// Characters beyond ASCII may be printed; without, `±` becomes `+-` and names are stripped.
    pub unicode: bool,
}

impl Exporter for Terminal {
    fn write(&self, documents: &[Results]) -> Result<Vec<u8>, ReportError> {
        crate::joined(documents, |results| self.report(results))
    }
}

impl Terminal {
    /// The whole report.
    fn report(&self, results: &Results) -> Result<String, ReportError> {
        let view = View::new(results)?;
        let mut page = Page { terminal: *self, lines: Vec::new() };
        page.settings(&view);
        page.gap();
        page.lines.extend(table::lines(&view, *self));
        page.gap();
        page.legend(&view);
        page.remarks(&view);
        page.trust(&view);
        page.rounds(&view);
        page.descriptions(&view);
        if let Some(risks) = crate::risk::of(&view) {
            page.risk(risks);
        }
        page.conclusions(&view);
        Ok(page.painted())
    }
}

impl Terminal {
    /// The table alone, of a study that is still going on, with a word that it is provisional.
    ///
    /// # Errors
    /// As [`Exporter::export`].
    pub fn provisional(&self, results: &Results) -> Result<String, ReportError> {
        let view = View::new(results)?;
        let mut page = Page { terminal: *self, lines: Vec::new() };
        let rounds = match view.rounds().as_str() {
            "1" => "1 round".to_owned(),
            several => format!("{several} rounds"),
        };
        page.heading(&format!("Provisional, after {rounds}: {}", results.study));
        page.gap();
        page.lines.extend(table::lines(&view, *self));
        page.gap();
        let meaning =
            "Provisional: * is best of its row so far; no verdicts yet. More rounds follow.";
        page.hanging(Vec::new(), meaning, Style::Dim);
        Ok(page.painted())
    }

    fn room(self) -> usize {
        self.width.map_or(PROSE_COLUMNS, |width| usize::from(width).max(FEWEST_COLUMNS))
    }

    fn span(self, content: &str, style: Style) -> Span {
        Span::new(text::clean(content, self.unicode), style)
    }
}

/// The lines written so far.
struct Page {
    terminal: Terminal,
    lines: Vec<Line>,
}

impl Page {
    fn painted(&self) -> String {
        let colour = self.terminal.colour;
        self.lines.iter().map(|line| text::paint(line, colour) + "\n").collect()
    }

    fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.is_empty()) {
            self.lines.push(Vec::new());
        }
    }

    /// Text behind a prefix, broken into lines that start below the text's start; below the prefix
    /// where that takes more than half of the terminal.
    fn hanging(&mut self, prefix: Line, content: &str, style: Style) {
        let room = self.terminal.room();
        let (indent, mut start) = match text::line_width(&prefix) {
            indent if indent <= room / 2 => (indent, Some(prefix)),
            _ => {
                self.lines.push(prefix);
                (4, None)
            }
        };
        let content = text::clean(content, self.terminal.unicode);
        for part in text::wrap(&content, room - indent) {
            let mut line = start.take().unwrap_or_else(|| vec![Span::blank(indent)]);
            line.push(Span::new(part, style));
            self.lines.push(line);
        }
    }

    fn heading(&mut self, content: &str) {
        self.gap();
        self.hanging(Vec::new(), content, Style::Bold);
    }

    fn settings(&mut self, view: &View<'_>) {
        let results = view.results;
        self.heading(&results.study);
        self.setting("clock", shown::clock(results.origin()));
        self.setting("seed", &results.seed.to_string());
        self.setting("rounds", &format!("{} of every cell, in random order", view.rounds()));
        self.setting("baseline", &view.baseline());
        self.settings_map("host", &results.host);
        self.settings_map("settings", &results.settings);
        self.setting("raidlab", &results.raidlab);
    }

    fn setting(&mut self, key: &str, value: &str) {
        let prefix = vec![Span::new(format!("  {key:<10}"), Style::Dim)];
        self.hanging(prefix, value, Style::Plain);
    }

    fn settings_map(&mut self, title: &str, map: &BTreeMap<String, String>) {
        for (at, (key, value)) in map.iter().enumerate() {
            self.setting(if at == 0 { title } else { "" }, &format!("{key}: {value}"));
        }
    }

    fn legend(&mut self, view: &View<'_>) {
        let rows = || view.sections.iter().flat_map(|section| &section.rows);
        let mut entries = Vec::new();
        let marks = |mark: Mark| {
            rows().any(|row| (0..row.cells.len()).any(|layout| row.mark(layout) == mark))
        };
        let preliminary = rows().any(Row::is_preliminary);
        if marks(Mark::Best) {
            let best = match preliminary {
                true => "best median of its row; too few rounds to be sure",
                false => "best of its row, or as good within the noise floor",
            };
            entries.push(("*", best.to_owned()));
        }
        if marks(Mark::MayBe) {
            entries.push(("?", "may be the best: no other is shown to be better".to_owned()));
        }
        if view.cells().any(|cell| cell.percent_vs_baseline.is_some()) {
            let healthy = shown::healthy_words(view);
            let meaning =
                format!("against {}: centre of the ratios of each round{healthy}", view.baseline());
            entries.push(("+x %", meaning));
        }
        if view.cells().any(|cell| cell.tells_too_little()) {
            entries.push(("unknown", shown::too_little() + ": too little to tell its time"));
        }
        if view.cells().any(shown::is_estimate) {
            entries.push((shown::ESTIMATED, shown::ESTIMATED_FROM.to_owned()));
        }
        let verdicts = |verdict: Verdict| {
            let known = rows().filter(|row| !row.is_preliminary());
            known
                .flat_map(|row| row.cells.iter().flatten())
                .any(|cell| cell.verdict == Some(verdict))
        };
        if verdicts(Verdict::Equal) {
            entries.push(("=", "equal to the baseline within the noise floor".to_owned()));
        }
        if verdicts(Verdict::NotResolved) {
            entries
                .push(("~", "not resolved: neither faster, slower nor equal is shown".to_owned()));
        }
        if view.cells().any(|cell| shown_range(half_range(cell)).is_some()) {
            entries.push((
                "±x %",
                format!(
                    "half of largest minus smallest round, in percent of the median; left out \
                     below {RANGE_SHOWN_PERCENT} %"
                ),
            ));
        }
        if self.terminal.unicode && view.sections.iter().any(|one| !spark::runs(one).is_empty()) {
            let meaning = "from fewest to most processes, as shares of the largest median there";
            entries.push(("▁▅█", meaning.to_owned()));
        }
        entries.extend(shown::all_absent(view).map(|why| ("-", why)));
        entries.push(("survives", "lost members, whichever they are".to_owned()));
        if let (Some(_), Some(risks)) = (crate::risk::label(view), crate::risk::of(view)) {
            entries.push(("lost", crate::risk::meaning(risks)));
        }
        self.entries(entries);
    }

    /// Signs with what they mean.
    fn entries(&mut self, entries: Vec<(&str, String)>) {
        for (sign, meaning) in entries {
            let sign = text::clean(sign, self.terminal.unicode);
            self.hanging(
                vec![Span::new(format!("  {sign:<10}"), Style::Plain)],
                &meaning,
                Style::Dim,
            );
        }
    }

    fn remarks(&mut self, view: &View<'_>) {
        self.gap();
        for warning in &view.results.warnings {
            self.hanging(vec![Span::new("warning: ", Style::Warning)], warning, Style::Plain);
        }
        if let Some(risk) = shown::risk(view) {
            self.hanging(vec![Span::new("warning: ", Style::Warning)], &risk, Style::Plain);
        }
        if let Some(more) = view.more() {
            self.hanging(vec![Span::new("more:    ", Style::Dim)], &more, Style::Dim);
        }
        for remark in advice::remarks(view) {
            self.hanging(vec![Span::new("advice:  ", Style::Bold)], &remark, Style::Plain);
        }
    }

    /// The rounds of the cells that vary most, in which two groups of rounds are seen.
    fn rounds(&mut self, view: &View<'_>) {
        let wide = view.cells().filter(|cell| !cell.tells_too_little());
        let mut wide: Vec<(f64, String, &Cell)> =
            wide.filter_map(|cell| Some((half_range(cell)?, spark::rounds(cell)?, cell))).collect();
        if wide.is_empty() || !self.terminal.unicode {
            return;
        }
        wide.sort_by(|one, other| other.0.total_cmp(&one.0));
        self.heading("Rounds that vary most");
        for (half, bars, cell) in wide.into_iter().take(MOST_CELLS_OF_ROUNDS) {
            let prefix = vec![Span::new(format!("  {bars}  "), Style::Plain)];
            let what = format!("{} {}: {}", cell.layout, view.place(cell), number::spread(half));
            self.hanging(prefix, &what, Style::Dim);
        }
    }

    /// How far predicted figures can be trusted.
    fn trust(&mut self, view: &View<'_>) {
        let known = trusted::lines(view);
        if known.is_empty() {
            return;
        }
        self.heading(trusted::TITLE);
        self.hanging(vec![Span::blank(2)], trusted::ABOUT, Style::Dim);
        for one in known {
            // Titles may be longer than a line.
            let text = format!("{}: {}", one.title, one.text);
            self.hanging(vec![Span::blank(2)], &text, Style::Plain);
        }
    }

    fn descriptions(&mut self, view: &View<'_>) {
        let described: Vec<_> =
            view.results.workloads.iter().filter(|one| !one.description.is_empty()).collect();
        if described.is_empty() {
            return;
        }
        self.heading("Workloads");
        for workload in described {
            let name = format!("  {}: ", workload.name);
            let prefix = vec![self.terminal.span(&name, Style::Plain)];
            self.hanging(prefix, &workload.description, Style::Dim);
        }
    }

    fn conclusions(&mut self, view: &View<'_>) {
        if view.sections.is_empty() {
            return;
        }
        self.heading("Conclusions");
        for section in &view.sections {
            let mut prefix = format!("  {}: ", section.title);
            for sentence in conclusion::sentences(view, section) {
                let span = self.terminal.span(&prefix, Style::Bold);
                let indent = text::width(&span.text);
                self.hanging(vec![span], &sentence, Style::Plain);
                prefix = " ".repeat(indent);
            }
        }
        self.across(view);
    }

    /// What no single row shows.
    fn across(&mut self, view: &View<'_>) {
        let found = conclusion::across(view);
        if !found.is_empty() {
            self.heading("Across the rows");
        }
        for one in found {
            let title = one.section.map_or_else(String::new, |section| format!("{section}: "));
            let dot = vec![Span::new("  - ", Style::Dim)];
            self.hanging(dot, &format!("{title}{}", one.text), Style::Plain);
        }
    }
}

/// The half range if it is large enough to be worth a reader's time.
fn shown_range(half: Option<f64>) -> Option<f64> {
    half.filter(|percent| *percent >= RANGE_SHOWN_PERCENT)
}
