//! How likely data are lost, on a terminal: a line for each layout, or where that is too wide a block of lines.

use raidlab_results::risk::Risks;

use super::table::GAP;
use super::text::{self, Line, Span, Style};
use super::{Page, Terminal};
use crate::risk::{self, Table, Told};

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

fn lines(table: &Table<'_>, terminal: Terminal) -> Vec<Line> {
    let names = table.rows.iter().map(|(name, _)| terminal.span(name, Style::Plain).text);
    let names: Vec<String> = names.collect();
    let room = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
    let heads: Vec<Vec<String>> = table
        .heads
        .iter()
        .map(|head| text::wrap(&text::clean(head, terminal.unicode), HEAD_COLUMNS))
        .collect();
    let cells: Vec<Vec<Vec<String>>> =
        table.rows.iter().map(|(_, told)| told.iter().map(cell).collect()).collect();
    let width = |column: usize| {
        let of_cells = cells.iter().flat_map(|row| row.get(column)).flatten();
        heads[column].iter().chain(of_cells).map(|line| text::width(line)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let total = GAP + room + widths.iter().map(|width| GAP + width).sum::<usize>();
    if terminal.width.is_some_and(|width| usize::from(width) < total) {
        return blocks(table, terminal);
    }
    let mut lines = beside("", room, &widths, &heads, Style::Dim);
    for (name, cells) in names.iter().zip(&cells) {
        lines.extend(beside(name, room, &widths, cells, Style::Plain));
    }
    lines
}

/// The lines of a cell.
fn cell(told: &Told) -> Vec<String> {
    let mut lines = text::wrap(&told.about, ABOUT_COLUMNS);
    lines.extend(told.between.clone());
    lines
}

fn beside(
    name: &str,
    room: usize,
    widths: &[usize],
    cells: &[Vec<String>],
    style: Style,
) -> Vec<Line> {
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
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
