//! How likely data are lost, on a terminal: a line for each layout, or where that is too wide a block of lines.

use raidlab_results::risk::Risks;

use super::table::GAP;
use super::text::{self, Line, Span, Style};
use super::{Page, Terminal};
use crate::risk::{self, Entry, Table};

/// Columns that heads, and words in place of a chance, are broken to.
const HEAD_COLUMNS: usize = 14;
const ABOUT_COLUMNS: usize = 12;

impl Page {
    /// Chances of losing data, and what they rest on.
    pub(super) fn risk(&mut self, risks: &Risks) {
        self.heading(risk::TITLE);
        self.hanging(vec![Span::blank(2)], &risk::scope(risks), Style::Plain);
        for table in risk::tables(risks) {
            self.gap();
            self.lines.extend(lines(&table, self.terminal));
            self.gap();
            for (what, words) in &table.notes {
                let prefix = vec![Span::new(format!("  {what:<14}"), Style::Dim)];
                self.hanging(prefix, words, Style::Dim);
            }
        }
        for told in risk::left_out(risks) {
            self.hanging(vec![Span::blank(2)], &told, Style::Plain);
        }
    }
}

/// A column of the table: its head and its cells, in lines.
struct Column {
    head: Vec<String>,
    cells: Vec<Vec<String>>,
    width: usize,
}

impl Column {
    fn new(table: &Table<'_>, at: usize, (range_columns, terminal): (usize, Terminal)) -> Self {
        let head = text::wrap(&text::clean(&table.heads[at], terminal.unicode), HEAD_COLUMNS);
        let cells = table.rows.iter().map(|(_, told)| cell(&told[at], range_columns));
        let cells: Vec<Vec<String>> = cells.collect();
        let lines = head.iter().chain(cells.iter().flatten());
        let width = lines.map(|line| text::width(line)).max().unwrap_or(0);
        Self { head, cells, width }
    }
}

/// The table with ranges on one line each or else broken, where that is too wide in parts below each other; where not
/// even a part fits, in blocks.
fn lines(table: &Table<'_>, terminal: Terminal) -> Vec<Line> {
    let names = table.rows.iter().map(|(name, _)| terminal.span(name, Style::Plain).text);
    let names: Vec<String> = names.collect();
    let room = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
    let free = terminal.width.map_or(usize::MAX, usize::from).saturating_sub(GAP + room);
    let columns = |range_columns| -> Vec<Column> {
        (0..table.heads.len()).map(|at| Column::new(table, at, (range_columns, terminal))).collect()
    };
    let total = |columns: &[Column]| columns.iter().map(|one| GAP + one.width).sum::<usize>();
    let mut all = columns(usize::MAX);
    if total(&all) > free {
        all = columns(ABOUT_COLUMNS);
    }
    if all.iter().any(|column| GAP + column.width > free) {
        return blocks(table, terminal);
    }
    let mut parts: Vec<Vec<Column>> = Vec::new();
    for column in all {
        match parts.last_mut() {
            Some(part) if total(part) + GAP + column.width <= free => part.push(column),
            _ => parts.push(vec![column]),
        }
    }
    parts.iter().flat_map(|part| rows(&names, room, part)).collect()
}

fn rows(names: &[String], room: usize, columns: &[Column]) -> Vec<Line> {
    let widths: Vec<usize> = columns.iter().map(|column| column.width).collect();
    let heads: Vec<&[String]> = columns.iter().map(|column| &*column.head).collect();
    let mut lines = beside("", room, &widths, &heads, Style::Dim);
    for (at, name) in names.iter().enumerate() {
        let cells: Vec<&[String]> = columns.iter().map(|column| &*column.cells[at]).collect();
        lines.extend(beside(name, room, &widths, &cells, Style::Plain));
    }
    lines
}

/// The lines of a cell; ranges that do not fit are broken between their ends first.
fn cell(told: &Entry, range_columns: usize) -> Vec<String> {
    let mut lines = text::wrap(&told.about, ABOUT_COLUMNS);
    let Some(between) = &told.between else { return lines };
    match between.split_once(" to ") {
        Some((from, to)) if text::width(between) > range_columns => {
            lines.extend(text::wrap(&format!("{from} to"), range_columns));
            lines.extend(text::wrap(to, range_columns));
        }
        _ => lines.extend(text::wrap(between, range_columns)),
    }
    lines
}

fn beside(
    name: &str,
    room: usize,
    widths: &[usize],
    cells: &[&[String]],
    style: Style,
) -> Vec<Line> {
    let height = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
    let line = |at: usize| {
        let name = if at == 0 { name } else { "" };
        let mut line = vec![Span::blank(GAP), Span::new(name, Style::Plain)];
        line.push(Span::blank(room - text::width(name)));
        for (cell, width) in cells.iter().zip(widths) {
            let part = cell.get(at).map_or("", String::as_str);
            line.push(Span::blank(GAP + width - text::width(part)));
            line.push(Span::new(part, if at == 0 { style } else { Style::Dim }));
        }
        line
    };
    (0..height).map(line).collect()
}

/// For narrow terminals: a line for each figure.
fn blocks(table: &Table<'_>, terminal: Terminal) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, told) in &table.rows {
        lines.push(vec![Span::blank(GAP), terminal.span(name, Style::Plain)]);
        for (head, told) in table.heads.iter().zip(told) {
            let between = told.between.as_ref().map_or_else(String::new, |one| format!("; {one}"));
            let told = format!("{head}: {}{between}", told.about);
            let room = terminal.room() - 3 * GAP;
            for (at, part) in
                text::wrap(&text::clean(&told, terminal.unicode), room).into_iter().enumerate()
            {
                let indent = if at == 0 { 2 * GAP } else { 3 * GAP };
                lines.push(vec![Span::blank(indent), Span::new(part, Style::Plain)]);
            }
        }
    }
    lines
}
