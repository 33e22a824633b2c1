//! The table of a workload: a row for each layout, columns for processes, settings and metrics.

use std::collections::BTreeMap;

use raidlab_results::document::{Better, Cell, WorkloadRow};

use super::super::text::{self, Line, Span, Style};
use super::super::{Page, Terminal};
use crate::number;
use crate::view::View;

/// Columns of the terminal between two columns of the table.
const GAP: usize = 2;

/// What a column of the table shows.
#[derive(Clone, Copy, PartialEq)]
struct Column<'a> {
    metric: &'a str,
    processes: u32,
    settings: &'a BTreeMap<String, String>,
}

impl<'a> Column<'a> {
    fn of(cell: &'a Cell) -> Self {
        Self { metric: &cell.metric, processes: cell.processes, settings: &cell.settings }
    }

    /// Whether one run gave both columns.
    fn is_run_of(&self, other: &Self) -> bool {
        (self.processes, self.settings) == (other.processes, other.settings)
    }
}

/// Whether the ends of the first and the last process are shown beside a rate.
fn shows_ends(cell: &Cell) -> bool {
    cell.fairness.is_some() && cell.metric != "seconds"
}

/// Whether they are shown for a workload: where some lie apart by more than a hundredth.
pub(super) fn end_apart<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> bool {
    let apart = |cell: &Cell| shows_ends(cell) && cell.last_done_s > 1.01 * cell.first_done_s;
    cells.into_iter().any(apart)
}

/// The lines below a layout, in this order.
const LABELS: [&str; 5] = ["", "  published", "  moved", "  busiest", "  first..last"];

/// The table of a workload, in parts where it is too wide.
pub(super) fn workload(page: &mut Page, view: &View<'_>, workload: &WorkloadRow) {
    let shown = view.cells().filter(|cell| cell.workload == workload.name);
    let cells: Vec<&Cell> = shown.collect();
    let columns = columns(&cells);
    let Some(first) = cells.first() else { return };
    let several = columns.iter().any(|one| one.metric != columns[0].metric);
    page.gap();
    let direction = match first.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
    };
    let what = if several {
        String::new()
    } else {
        format!("  {} ({}), {direction}", first.metric, first.unit)
    };
    let title = page.terminal.span(&workload.name, Style::Bold);
    page.lines.push(vec![title, page.terminal.span(&what, Style::Dim)]);
    let table = Table::new(view, &cells, &columns, several, page.terminal);
    let lines = table.lines(page.terminal);
    page.lines.extend(lines);
}

/// The columns in the order of the study: settings, processes, metrics.
fn columns<'a>(cells: &[&'a Cell]) -> Vec<Column<'a>> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    let (mut settings, mut metrics) = (Vec::new(), Vec::new());
    for &cell in cells {
        let column = Column::of(cell);
        if !columns.contains(&column) {
            columns.push(column);
        }
        if !settings.contains(&column.settings) {
            settings.push(column.settings);
        }
        if !metrics.contains(&column.metric) {
            metrics.push(column.metric);
        }
    }
    columns.sort_by_key(|one| {
        let setting = settings.iter().position(|other| *other == one.settings);
        (setting, one.processes, metrics.iter().position(|other| *other == one.metric))
    });
    columns
}

struct Table {
    /// For each column what stands above it, line by line.
    heads: Vec<Vec<String>>,
    /// For each layout its name, and for each label the text of each column.
    rows: Vec<(Span, Vec<Vec<Option<Span>>>)>,
    widths: Vec<usize>,
    names: usize,
}

impl Table {
    fn new(
        view: &View<'_>,
        cells: &[&Cell],
        columns: &[Column<'_>],
        several: bool,
        terminal: Terminal,
    ) -> Self {
        let head = |column: &Column<'_>| {
            let mut head: Vec<String> = column.settings.values().cloned().collect();
            if several {
                head.push(column.metric.to_owned());
            }
            if head.is_empty() || columns.iter().any(|one| one.processes != column.processes) {
                head.push(number::processes(column.processes));
            }
            head
        };
        let heads: Vec<Vec<String>> = columns.iter().map(head).collect();
        let mut rows = Vec::new();
        let apart = end_apart(cells.iter().copied());
        for layout in &view.results.layouts {
            let own = |column: &Column<'_>| {
                let mine =
                    |cell: &&&Cell| cell.layout == layout.name && Column::of(cell) == *column;
                cells.iter().find(mine).copied()
            };
            let found: Vec<Option<&Cell>> = columns.iter().map(own).collect();
            if found.iter().any(Option::is_some) {
                let parts = parts(&found, columns, apart, terminal);
                rows.push((terminal.span(&layout.name, Style::Plain), parts));
            }
        }
        let width = |at: usize| {
            let head = heads[at].iter().map(|line| text::width(line));
            let parts =
                rows.iter().flat_map(|(_, parts)| parts).filter_map(|line| line[at].as_ref());
            head.chain(parts.map(|span| text::width(&span.text))).max().unwrap_or(0)
        };
        let widths = (0..columns.len()).map(width).collect();
        let named = rows.iter().map(|(name, _)| text::width(&name.text));
        let labels = rows.iter().flat_map(|(_, parts)| {
            let used = |(at, _): &(usize, &Vec<Option<Span>>)| is_used(&parts[*at]);
            parts
                .iter()
                .enumerate()
                .filter(used)
                .map(|(at, _)| LABELS[at].len())
                .collect::<Vec<_>>()
        });
        let names = named.chain(labels).max().unwrap_or(0);
        Self { heads, rows, widths, names }
    }

    /// Parts of the table that fit the terminal, below each other.
    fn lines(&self, terminal: Terminal) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut from = 0;
        while from < self.widths.len() {
            let mut to = from;
            let mut taken = self.names + 1;
            while to < self.widths.len()
                && (to == from || taken + GAP + self.widths[to] <= terminal.room())
            {
                taken += GAP + self.widths[to];
                to += 1;
            }
            self.part(from..to, terminal, &mut lines);
            from = to;
        }
        lines
    }

    fn part(&self, range: std::ops::Range<usize>, terminal: Terminal, lines: &mut Vec<Line>) {
        let height = self.heads[range.clone()].iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = vec![Span::blank(self.names + 1)];
            for column in range.clone() {
                let head = self.heads[column].get(at).map_or("", String::as_str);
                line.extend(right(terminal.span(head, Style::Dim), self.widths[column]));
            }
            lines.push(line);
        }
        for (name, parts) in &self.rows {
            for (at, columns) in parts.iter().enumerate() {
                if !is_used(&columns[range.clone()]) {
                    continue;
                }
                let label = if at == 0 { name.clone() } else { Span::new(LABELS[at], Style::Dim) };
                let room = (self.names + 1).saturating_sub(text::width(&label.text));
                let mut line = vec![Span::blank(1), label, Span::blank(room.saturating_sub(1))];
                for column in range.clone() {
                    let span = columns[column].clone().unwrap_or_else(|| Span::blank(0));
                    line.extend(right(span, self.widths[column]));
                }
                lines.push(line);
            }
        }
    }
}

fn is_used(columns: &[Option<Span>]) -> bool {
    columns.iter().any(Option::is_some)
}

fn right(span: Span, width: usize) -> Line {
    let blank = GAP + width.saturating_sub(text::width(&span.text));
    vec![Span::blank(blank), span]
}

/// For each label what stands in each column.
fn parts(
    cells: &[Option<&Cell>],
    columns: &[Column<'_>],
    apart: bool,
    terminal: Terminal,
) -> Vec<Vec<Option<Span>>> {
    let of = |part: &dyn Fn(&Cell) -> Option<Span>| -> Vec<Option<Span>> {
        cells.iter().map(|cell| cell.and_then(part)).collect()
    };
    let mut busiest = of(&|cell| {
        let one = cell.bottleneck.as_ref()?;
        let text = format!("{} {}", one.resource, number::share(one.busy));
        Some(terminal.span(&text, Style::Dim))
    });
    // One run has one busiest resource, whatever was measured of it.
    for at in (1..columns.len()).rev() {
        if columns[at].is_run_of(&columns[at - 1]) {
            busiest[at] = None;
        }
    }
    let ends = |cell: &Cell| {
        let unit = if cell.last_done_s < 1.0 { (1e3, "ms") } else { (1.0, "s") };
        let (first, last) = (cell.first_done_s * unit.0, cell.last_done_s * unit.0);
        let text = format!("{} {}", number::range(first, last), unit.1);
        (apart && shows_ends(cell)).then(|| terminal.span(&text, Style::Dim))
    };
    let mean = |cell: &Cell| {
        let spread = cell.spread_percent.map(|percent| format!(" {}", number::spread(percent)));
        let text = format!("{}{}", number::number(cell.mean), spread.unwrap_or_default());
        Some(terminal.span(&text, Style::Plain))
    };
    vec![
        of(&mean),
        of(&|cell| published(cell, terminal)),
        of(&|cell| {
            let moved = cell.moved?;
            let from = number::number(moved.full);
            Some(
                terminal
                    .span(&format!("{} of {from}", number::percent(moved.percent)), Style::Bold),
            )
        }),
        busiest,
        of(&ends),
    ]
}

fn published(cell: &Cell, terminal: Terminal) -> Option<Span> {
    let one = cell.published.as_ref()?;
    let mark = if one.calibrated { "*" } else { "" };
    let error = number::percent(one.error_percent);
    let style = if one.error_percent.abs() > raidlab_results::MISS_PERCENT {
        Style::Warning
    } else {
        Style::Plain
    };
    Some(terminal.span(&format!("{} {error}{mark}", number::number(one.value)), style))
}
