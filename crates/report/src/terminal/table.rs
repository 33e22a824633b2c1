//! The table, in the widest form that fits the terminal.

use raidlab_results::document::Verdict;

use super::text::{self, Line, Span, Style};
use super::{Terminal, shown_range, spark, turned};
use crate::view::{Mark, Row, Section, View, half_range};
use crate::{number, risk, shown};

/// Columns between two layouts.
pub(super) const GAP: usize = 2;

/// How many lines a cell takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Median, percent and range beside each other.
    OneLine,
    /// The range below the median.
    TwoLines,
    /// Percent and range below the median.
    ThreeLines,
}

/// The table's lines.
pub(super) fn lines(view: &View<'_>, terminal: Terminal) -> Vec<Line> {
    if view.sections.is_empty() {
        return vec![vec![Span::new("No cell was measured.", Style::Plain)]];
    }
    for form in [Form::OneLine, Form::TwoLines, Form::ThreeLines] {
        let table = Table::new(view, terminal, form);
        if terminal.width.is_none_or(|width| table.width() <= usize::from(width)) {
            return table.lines();
        }
    }
    turned::lines(view, terminal).unwrap_or_else(|| blocks(view, terminal))
}

/// What a cell shows; each part ends in a column for its mark.
pub(super) struct Parts {
    value: Span,
    percent: Option<Span>,
    range: Option<Span>,
}

impl Parts {
    /// Of a layout that was not measured.
    pub(super) fn missing() -> Self {
        Self { value: Span::new("- ", Style::Dim), percent: None, range: None }
    }

    pub(super) fn has_range(&self) -> bool {
        self.range.is_some()
    }

    pub(super) fn new(
        view: &View<'_>,
        row: &Row<'_>,
        layout: usize,
        terminal: Terminal,
    ) -> Option<Self> {
        let cell = row.cells[layout]?;
        let mark = row.mark(layout);
        let sign = match mark {
            Mark::Best => "*",
            Mark::MayBe => "?",
            Mark::None => " ",
        };
        let best = mark == Mark::Best;
        let value = shown::value(cell) + sign;
        let percent = shown::percent(view, layout, cell).map(|percent| {
            let (mark, style) = match percent.verdict {
                _ if row.is_preliminary() => (" ", Style::Plain),
                Some(Verdict::Equal) => ("=", Style::Dim),
                Some(Verdict::NotResolved) => ("~", Style::Dim),
                Some(Verdict::Faster) => (" ", Style::Faster),
                Some(Verdict::Slower) => (" ", Style::Slower),
                None => (" ", Style::Plain),
            };
            Span::new(number::percent(percent.value) + mark, style)
        });
        let half = half_range(cell).filter(|_| !cell.tells_too_little());
        let range =
            shown_range(half).map(|half| terminal.span(&(number::spread(half) + " "), Style::Dim));
        let style = if best { Style::Bold } else { Style::Plain };
        Some(Self { value: Span::new(value, style), percent, range })
    }
}

/// The widths of a column's parts.
#[derive(Clone, Copy, Default)]
pub(super) struct Slots {
    value: usize,
    percent: usize,
    range: usize,
}

impl Slots {
    pub(super) fn include(&mut self, parts: &Parts) {
        let width = |span: &Option<Span>| span.as_ref().map_or(0, |span| text::width(&span.text));
        self.value = self.value.max(text::width(&parts.value.text));
        self.percent = self.percent.max(width(&parts.percent));
        self.range = self.range.max(width(&parts.range));
    }

    /// The percent's width with the space before it, where the column has any.
    fn percent_room(&self) -> usize {
        if self.percent == 0 { 0 } else { self.percent + 1 }
    }

    /// A cell's lines, of equal width in all rows of the column.
    pub(super) fn fill(
        &self,
        parts: Parts,
        form: Form,
        has_percent: bool,
        has_range: bool,
    ) -> Vec<Line> {
        let Parts { value, percent, range } = parts;
        match form {
            Form::OneLine => {
                let mut line = right(Some(value), self.value);
                line.extend(right(percent, self.percent_room()));
                line.extend(right(range, self.range));
                vec![line]
            }
            Form::TwoLines => {
                let first = self.value.max(self.range);
                let mut line = right(Some(value), first);
                line.extend(right(percent, self.percent_room()));
                let mut lines = vec![line];
                if has_range {
                    let mut below = right(range, first);
                    below.push(Span::blank(self.percent_room()));
                    lines.push(below);
                }
                lines
            }
            Form::ThreeLines => {
                let mut lines = vec![vec![value]];
                lines.extend(has_percent.then(|| percent.into_iter().collect()));
                lines.extend(has_range.then(|| range.into_iter().collect()));
                lines
            }
        }
    }
}

fn right(span: Option<Span>, room: usize) -> Line {
    let taken = span.as_ref().map_or(0, |span| text::width(&span.text));
    let mut line = vec![Span::blank(room.saturating_sub(taken))];
    line.extend(span);
    line
}

/// A piece of the table.
enum Item {
    Cells { label: Vec<Line>, cells: Vec<Vec<Line>> },
    Heading(Line),
    Rule,
}

struct Table {
    items: Vec<Item>,
    label_width: usize,
    widths: Vec<usize>,
    unicode: bool,
}

impl Table {
    fn new(view: &View<'_>, terminal: Terminal, form: Form) -> Self {
        let layouts = view.results.layouts.len();
        let mut slots = vec![Slots::default(); layouts];
        for row in view.sections.iter().flat_map(|section| &section.rows) {
            for (at, slot) in slots.iter_mut().enumerate() {
                if let Some(parts) = Parts::new(view, row, at, terminal) {
                    slot.include(&parts);
                }
            }
        }
        let mut items = head(view, terminal);
        for (at, section) in view.sections.iter().enumerate() {
            if at > 0 {
                items.push(Item::Heading(Vec::new()));
            }
            items.push(Item::Heading(heading(section, terminal)));
            let runs = if terminal.unicode { spark::runs(section) } else { Vec::new() };
            for (at, row) in section.rows.iter().enumerate() {
                items.push(cells(view, row, &slots, form, terminal));
                let run = runs.iter().find(|(_, end)| *end == at + 1);
                items.extend(run.map(|(start, end)| sparks(&section.rows[*start..*end])));
            }
        }
        let mut label_width = 0;
        let mut widths = vec![0; layouts];
        for item in &items {
            let Item::Cells { label, cells } = item else { continue };
            for line in label {
                label_width = label_width.max(text::line_width(line));
            }
            for (width, cell) in widths.iter_mut().zip(cells) {
                let widest = cell.iter().map(|line| text::line_width(line)).max().unwrap_or(0);
                *width = widest.max(*width);
            }
        }
        Self { items, label_width, widths, unicode: terminal.unicode }
    }

    fn width(&self) -> usize {
        self.label_width + self.widths.iter().map(|width| GAP + width).sum::<usize>()
    }

    fn lines(self) -> Vec<Line> {
        let total = self.width();
        let mut lines = Vec::new();
        for item in self.items {
            match item {
                Item::Rule => {
                    let stroke = if self.unicode { "─" } else { "-" };
                    lines.push(vec![Span::new(stroke.repeat(total), Style::Dim)]);
                }
                Item::Heading(line) => lines.push(line),
                Item::Cells { label, cells } => {
                    let height = cells.iter().map(Vec::len).chain([label.len()]).max();
                    for at in 0..height.unwrap_or(0) {
                        let mut line = label.get(at).cloned().unwrap_or_default();
                        let taken = text::line_width(&line);
                        line.push(Span::blank(self.label_width.saturating_sub(taken)));
                        for (cell, width) in cells.iter().zip(&self.widths) {
                            let part = cell.get(at).cloned().unwrap_or_default();
                            let blank = GAP + width.saturating_sub(text::line_width(&part));
                            line.push(Span::blank(blank));
                            line.extend(part);
                        }
                        lines.push(line);
                    }
                }
            }
        }
        lines
    }
}

/// Names of the layouts and what they offer.
fn head(view: &View<'_>, terminal: Terminal) -> Vec<Item> {
    let layouts = || view.results.layouts.iter().enumerate();
    // The space below the marks keeps names flush with the numbers.
    let names = layouts().map(|(at, layout)| {
        let mut lines: Vec<Line> = name_lines(&layout.name)
            .iter()
            .map(|line| vec![terminal.span(&format!("{line} "), Style::Bold)])
            .collect();
        if view.is_baseline(at) {
            lines.push(vec![Span::new("baseline ", Style::Dim)]);
        }
        lines
    });
    let facts = |label: &str, fact: &dyn Fn(usize) -> String| Item::Cells {
        label: vec![vec![Span::new(label, Style::Dim)]],
        cells: layouts().map(|(at, _)| vec![vec![Span::new(fact(at) + " ", Style::Dim)]]).collect(),
    };
    let listed = &view.results.layouts;
    let mut items = vec![
        Item::Cells { label: Vec::new(), cells: names.collect() },
        facts("usable", &|at| number::bytes(listed[at].capacity)),
        facts("survives", &|at| listed[at].survives.to_string()),
    ];
    items.extend(risk::label(view).map(|label| risks(view, &label)));
    items.push(Item::Rule);
    items
}

/// How likely each loses its data, in short words below each other: columns are narrow.
fn risks(view: &View<'_>, label: &str) -> Item {
    let dim = |line: String| vec![Span::new(line, Style::Dim)];
    let cell = |at: usize| -> Vec<Line> {
        let lines = text::wrap(&risk::in_short(view, at), RISK_COLUMNS);
        lines.into_iter().map(|line| dim(line + " ")).collect()
    };
    let label = text::wrap(label, RISK_LABEL_COLUMNS).into_iter().map(dim).collect();
    Item::Cells { label, cells: (0..view.results.layouts.len()).map(cell).collect() }
}

/// Columns that chances, and what they are called, are broken to.
const RISK_COLUMNS: usize = 8;
const RISK_LABEL_COLUMNS: usize = 11;

/// Short words of a name share a line of this many columns.
const NAME_COLUMNS: usize = 11;

/// The lines of a layout's name: parameters stand below the level, which keeps columns narrow.
fn name_lines(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ').filter(|word| !word.is_empty()) {
        let fits = |line: &String| text::width(line) + 1 + text::width(word) <= NAME_COLUMNS;
        let is_level = |line: &String| line.ends_with(')');
        match lines.last_mut().filter(|line| fits(line) && !is_level(line) && !word.contains('=')) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn heading(section: &Section<'_>, terminal: Terminal) -> Line {
    vec![
        terminal.span(&section.title, Style::Bold),
        terminal.span(&format!("  {}", shown::direction(section)), Style::Dim),
    ]
}

fn cells(view: &View<'_>, row: &Row<'_>, slots: &[Slots], form: Form, terminal: Terminal) -> Item {
    let all: Vec<Option<Parts>> =
        (0..slots.len()).map(|at| Parts::new(view, row, at, terminal)).collect();
    let has_percent = all.iter().flatten().any(|parts| parts.percent.is_some());
    let has_range = all.iter().flatten().any(|parts| parts.range.is_some());
    let cells = all.into_iter().zip(slots).map(|(parts, slots)| {
        slots.fill(parts.unwrap_or_else(Parts::missing), form, has_percent, has_range)
    });
    Item::Cells { label: label(row, form, terminal), cells: cells.collect() }
}

/// How each layout goes over rows that differ in the number of processes alone.
fn sparks(rows: &[Row<'_>]) -> Item {
    // The space keeps bars flush with the numbers.
    let line = |layout| vec![vec![Span::new(spark::line(rows, layout) + " ", Style::Dim)]];
    let label = vec![vec![Span::new(format!(" {}", spark::label(rows)), Style::Dim)]];
    Item::Cells { label, cells: (0..rows[0].cells.len()).map(line).collect() }
}

/// The row's name: on one line where its cells are.
fn label(row: &Row<'_>, form: Form, terminal: Terminal) -> Vec<Line> {
    let processes = format!(" {}", number::processes(row.processes));
    let parts: Vec<String> = std::iter::once(processes).chain(row.qualifiers()).collect();
    let line = |text: &str| vec![terminal.span(text, Style::Plain)];
    match form {
        Form::OneLine => vec![line(&parts.join(", "))],
        _ if parts.len() == 1 => vec![line(&parts[0])],
        _ => vec![line(&parts[0]), line(&format!("  {}", parts[1..].join(", ")))],
    }
}

/// Columns that a block's lines take behind the layout's name at the most.
const BLOCK_COLUMNS: usize = 34;

/// Names of the layouts in front of a block's lines, or above them where they are too long.
struct Names {
    spans: Vec<Span>,
    room: usize,
    above: bool,
}

impl Names {
    fn new(view: &View<'_>, terminal: Terminal) -> Self {
        let layouts = view.results.layouts.iter();
        let spans: Vec<Span> =
            layouts.map(|layout| terminal.span(&layout.name, Style::Plain)).collect();
        let room = spans.iter().map(|name| text::width(&name.text)).max().unwrap_or(0);
        let above = room + 2 * GAP + BLOCK_COLUMNS > terminal.room();
        Self { spans, room, above }
    }

    fn with(&self, layout: usize, rest: Line) -> Vec<Line> {
        let name = self.spans[layout].clone();
        let mut line = vec![Span::blank(GAP), name];
        if self.above {
            let mut below = vec![Span::blank(2 * GAP)];
            below.extend(rest);
            return vec![line, below];
        }
        line.push(Span::blank(GAP + self.room - text::width(&line[1].text)));
        line.extend(rest);
        vec![line]
    }
}

/// What a layout offers.
fn fact(view: &View<'_>, layout: usize) -> Line {
    let listed = &view.results.layouts[layout];
    let mut line = right(Some(Span::new(number::bytes(listed.capacity), Style::Plain)), 9);
    line.push(Span::new(format!(" usable, survives {}", listed.survives), Style::Dim));
    line
}

/// What each layout offers, a line each behind its name; with how likely it loses its data where that fits.
pub(super) fn facts(view: &View<'_>, names: &[Span], room: usize, width: usize) -> Vec<Line> {
    let with_risk = risk::label(view).map(|label| {
        let told = |at| format!(", {label}: {}", risk::in_short(view, at));
        facts_and(view, names, room, &told)
    });
    let fits = |lines: &Vec<Line>| lines.iter().all(|line| text::line_width(line) <= width);
    with_risk.filter(fits).unwrap_or_else(|| facts_and(view, names, room, &|_| String::new()))
}

fn facts_and(
    view: &View<'_>,
    names: &[Span],
    room: usize,
    more: &dyn Fn(usize) -> String,
) -> Vec<Line> {
    let line = |(at, name): (usize, &Span)| {
        let blank = GAP + room - text::width(&name.text);
        let mut line = vec![Span::blank(GAP), name.clone(), Span::blank(blank)];
        line.extend(fact(view, at));
        if view.is_baseline(at) {
            line.push(Span::new(", baseline", Style::Dim));
        }
        line.push(Span::new(more(at), Style::Dim));
        line
    };
    names.iter().enumerate().map(line).collect()
}

/// For terminals that are narrower still: a line for each layout, a block of them for each row.
fn blocks(view: &View<'_>, terminal: Terminal) -> Vec<Line> {
    let names = Names::new(view, terminal);
    let mut lines = Vec::new();
    for at in 0..names.spans.len() {
        lines.extend(names.with(at, fact(view, at)));
    }
    for section in &view.sections {
        lines.push(Vec::new());
        lines.push(heading(section, terminal));
        for row in &section.rows {
            lines.push(vec![terminal.span(&format!(" {}", row.label()), Style::Plain)]);
            lines.extend(block(view, row, &names, terminal));
        }
    }
    lines
}

fn block(view: &View<'_>, row: &Row<'_>, names: &Names, terminal: Terminal) -> Vec<Line> {
    let all: Vec<Option<Parts>> =
        (0..row.cells.len()).map(|at| Parts::new(view, row, at, terminal)).collect();
    let mut slots = Slots::default();
    for parts in all.iter().flatten() {
        slots.include(parts);
    }
    let fitted = Slots { percent: slots.percent.max(5), ..slots };
    let lines = all.into_iter().enumerate().flat_map(|(at, parts)| {
        let Some(mut parts) = parts else {
            return names.with(at, vec![Span::new(shown::absent(view, row, at), Style::Dim)]);
        };
        if parts.percent.is_none() && view.is_baseline(at) {
            parts.percent = Some(Span::new("base ", Style::Dim));
        }
        let line = fitted.fill(parts, Form::OneLine, true, true).into_iter().flatten();
        names.with(at, line.collect())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_of_a_name_share_a_line_and_parameters_do_not() {
        assert_eq!(name_lines("raid5(4) in a box"), ["raid5(4)", "in a box"]);
        assert_eq!(name_lines("mirror of the new"), ["mirror of", "the new"]);
        assert_eq!(
            name_lines("raid5(4) chunk=64K policy=md"),
            ["raid5(4)", "chunk=64K", "policy=md"]
        );
        assert_eq!(name_lines("raid10(4) far2"), ["raid10(4)", "far2"]);
    }
}
