//! The table turned: a line for each layout, a column for each row of a section, for terminals that are too narrow for
//! all layouts beside each other.

use super::Terminal;
use super::spark;
use super::table::{Form, GAP, Parts, Slots, facts, heading};
use super::text::{self, Line, Span, Style};
use crate::number;
use crate::view::{Section, View};

/// A column: its head, and its cell of each layout, which may take two lines.
struct Column {
    head: Vec<Line>,
    cells: Vec<Vec<Line>>,
    width: usize,
}

/// The table's lines; `None` where not even one column fits beside the names.
pub(super) fn lines(view: &View<'_>, terminal: Terminal) -> Option<Vec<Line>> {
    let width = usize::from(terminal.width?);
    let names: Vec<Span> =
        view.results.layouts.iter().map(|one| terminal.span(&one.name, Style::Plain)).collect();
    let room = names.iter().map(|name| text::width(&name.text)).max().unwrap_or(0);
    let taken = GAP + room;
    let mut lines = facts(view, &names, room, width);
    if lines.iter().any(|line| text::line_width(line) > width) {
        return None;
    }
    for section in &view.sections {
        lines.push(Vec::new());
        lines.push(heading(section, terminal));
        let free = width.checked_sub(taken)?;
        let columns = fitting(view, section, terminal, free);
        if columns.iter().any(|column| GAP + column.width > free) {
            return None;
        }
        for part in parts(columns, free) {
            lines.extend(rows(&names, room, &part));
        }
    }
    Some(lines)
}

/// All columns beside each other in the widest form that fits, and else in the widest.
fn fitting(view: &View<'_>, section: &Section<'_>, terminal: Terminal, free: usize) -> Vec<Column> {
    let bars = if terminal.unicode { spark::runs(section) } else { Vec::new() };
    for form in [Form::OneLine, Form::TwoLines] {
        for bars in [&bars[..], &[]] {
            let columns = columns(view, section, form, terminal, bars);
            if total(&columns) <= free {
                return columns;
            }
        }
    }
    columns(view, section, Form::OneLine, terminal, &bars)
}

fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| GAP + column.width).sum()
}

/// A column for each row, and one with bars behind the last row of each run of `runs`.
fn columns(
    view: &View<'_>,
    section: &Section<'_>,
    form: Form,
    terminal: Terminal,
    runs: &[(usize, usize)],
) -> Vec<Column> {
    let mut columns = Vec::new();
    for (at, row) in section.rows.iter().enumerate() {
        let all: Vec<Option<Parts>> =
            (0..row.cells.len()).map(|layout| Parts::new(view, row, layout, terminal)).collect();
        let mut slots = Slots::default();
        all.iter().flatten().for_each(|parts| slots.include(parts));
        let cells = all.into_iter().map(|parts| {
            let has_range = parts.as_ref().is_some_and(Parts::has_range);
            let missing = || Parts::missing();
            slots.fill(parts.unwrap_or_else(missing), form, true, has_range)
        });
        let words = [number::processes(row.processes)].into_iter().chain(row.qualifiers());
        // The space keeps heads flush with numbers, behind which a mark stands.
        let head = words.map(|word| vec![terminal.span(&format!("{word} "), Style::Dim)]);
        columns.push(Column::new(head.collect(), cells.collect()));
        if let Some((start, end)) = runs.iter().find(|(_, end)| *end == at + 1) {
            let rows = &section.rows[*start..*end];
            let line = |layout| vec![vec![Span::new(spark::line(rows, layout), Style::Dim)]];
            let head = vec![vec![Span::new(spark::label(rows), Style::Dim)]];
            columns.push(Column::new(head, (0..row.cells.len()).map(line).collect()));
        }
    }
    columns
}

impl Column {
    fn new(head: Vec<Line>, cells: Vec<Vec<Line>>) -> Self {
        let lines = head.iter().chain(cells.iter().flatten());
        let width = lines.map(|line| text::line_width(line)).max().unwrap_or(0);
        Self { head, cells, width }
    }
}

/// The columns in parts that fit, each as many as it holds.
fn parts(columns: Vec<Column>, free: usize) -> Vec<Vec<Column>> {
    let mut parts: Vec<Vec<Column>> = Vec::new();
    for column in columns {
        match parts.last_mut() {
            Some(part) if total(part) + GAP + column.width <= free => part.push(column),
            _ => parts.push(vec![column]),
        }
    }
    parts
}

fn rows(names: &[Span], room: usize, columns: &[Column]) -> Vec<Line> {
    let mut lines = Vec::new();
    let heads: Vec<&[Line]> = columns.iter().map(|column| column.head.as_slice()).collect();
    lines.extend(beside(None, room, columns, &heads));
    for (layout, name) in names.iter().enumerate() {
        let cells: Vec<&[Line]> =
            columns.iter().map(|column| column.cells[layout].as_slice()).collect();
        lines.extend(beside(Some(name), room, columns, &cells));
    }
    lines
}

/// Cells of several lines beside each other, right-aligned in their columns.
fn beside(name: Option<&Span>, room: usize, columns: &[Column], cells: &[&[Line]]) -> Vec<Line> {
    let height = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
    let line = |at: usize| {
        let mut line = vec![Span::blank(GAP)];
        line.extend(name.filter(|_| at == 0).cloned());
        line.push(Span::blank(GAP + room - text::line_width(&line)));
        for (column, cell) in columns.iter().zip(cells) {
            let part = cell.get(at).cloned().unwrap_or_default();
            line.push(Span::blank(GAP + column.width - text::line_width(&part)));
            line.extend(part);
        }
        line
    };
    (0..height).map(line).collect()
}
