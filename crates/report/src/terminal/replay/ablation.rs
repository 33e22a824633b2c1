//! How a study moves without each of its mechanisms.

use raidlab_results::document::Results;
use raidlab_results::replay::is_cpu_share;
use raidlab_results::{AblatedCell, AblationRow};

use super::super::Page;
use super::super::text::{self, Line, Span, Style};
use crate::number::{self, listed};

/// Mechanisms without which no cell moves by this many percent do nothing here.
const MOVES_PERCENT: f64 = 1.0;
/// Cells named for each mechanism.
const MOST_NAMED: usize = 3;

/// A table of medians, the cells that move most, and the sweep of parity's cost.
pub(super) fn ablation(page: &mut Page, results: &Results) {
    page.heading("Without one mechanism at a time: median change of each workload's cells");
    let (sweep, rows): (Vec<_>, Vec<_>) =
        results.ablation.iter().partition(|row| row.mechanism.starts_with("parity-cost=x"));
    let (mut moving, idle): (Vec<&AblationRow>, Vec<&AblationRow>) =
        rows.into_iter().partition(|row| row.largest() >= MOVES_PERCENT);
    moving.sort_by(|one, other| other.largest().total_cmp(&one.largest()));
    medians(page, &moving);
    if !idle.is_empty() {
        let names: Vec<&str> = idle.iter().map(|row| row.mechanism.as_str()).collect();
        let what = format!("no cell moves by {MOVES_PERCENT} % without {}", listed(&names));
        page.hanging(vec![Span::blank(2)], &what, Style::Dim);
    }
    page.gap();
    for row in moving {
        most(page, row);
    }
    if !sweep.is_empty() {
        parity(page, results, &sweep);
    }
}

fn columns<'a>(rows: &[&'a AblationRow]) -> Vec<(&'a str, &'a str)> {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    for one in rows.iter().flat_map(|row| &row.workloads) {
        let name = (one.workload.as_str(), one.metric.as_str());
        if !columns.contains(&name) {
            columns.push(name);
        }
    }
    columns
}

fn medians(page: &mut Page, rows: &[&AblationRow]) {
    let columns = columns(rows);
    let several = |workload: &str| columns.iter().filter(|(one, _)| *one == workload).count() > 1;
    let heads: Vec<String> = columns
        .iter()
        .map(|(workload, metric)| if several(workload) { *metric } else { *workload }.to_owned())
        .collect();
    let lines = rows.iter().map(|row| {
        let cell = |(workload, metric): &(&str, &str)| {
            let mut own = row.workloads.iter();
            let own = own.find(|one| (&*one.workload, &*one.metric) == (*workload, *metric));
            own.map_or(String::new(), |one| number::percent(one.median_percent))
        };
        (row.mechanism.clone(), columns.iter().map(cell).collect())
    });
    let lines: Vec<(String, Vec<String>)> = lines.collect();
    table(page, &heads, &lines);
}

/// A plain table, in parts where it is too wide.
fn table(page: &mut Page, heads: &[String], rows: &[(String, Vec<String>)]) {
    let names = rows.iter().map(|(name, _)| text::width(name)).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().map(|(_, cells)| text::width(&cells[at]));
        cells.chain([text::width(&heads[at])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut from = 0;
    while from < heads.len() {
        let (mut to, mut taken) = (from, names + 2);
        while to < heads.len() && (to == from || taken + 2 + widths[to] <= page.terminal.room()) {
            taken += 2 + widths[to];
            to += 1;
        }
        let line = |page: &Page, name: &str, cells: &[String], style| {
            let blank = Span::blank(names - text::width(name));
            let mut line: Line =
                vec![Span::blank(2), page.terminal.span(name, Style::Plain), blank];
            for at in from..to {
                let room = 2 + widths[at].saturating_sub(text::width(&cells[at]));
                line.push(Span::blank(room));
                line.push(page.terminal.span(&cells[at], style));
            }
            line
        };
        let head = line(page, "", heads, Style::Dim);
        page.lines.push(head);
        for (name, cells) in rows {
            let line = line(page, name, cells, Style::Plain);
            page.lines.push(line);
        }
        from = to;
    }
}

/// The cells that move most without a mechanism.
fn most(page: &mut Page, row: &AblationRow) {
    let speeds = row.cells.iter().filter(|one| !is_cpu_share(&one.cell.metric));
    let mut cells: Vec<&AblatedCell> = speeds.collect();
    cells.sort_by(|one, other| other.moved.percent.abs().total_cmp(&one.moved.percent.abs()));
    cells.truncate(MOST_NAMED);
    cells.retain(|one| one.moved.percent.abs() >= MOVES_PERCENT);
    let named: Vec<String> = cells
        .iter()
        .map(|one| {
            let (from, to) = (one.moved.full, one.cell.median);
            let (from, to) = (number::number(from), number::number(to));
            format!("{} {} ({from} to {to})", title(one), number::percent(one.moved.percent))
        })
        .collect();
    let prefix = vec![page.terminal.span(&format!("  {}: ", row.mechanism), Style::Bold)];
    let text = format!("{}. Most: {}.", row.meaning, named.join("; "));
    page.hanging(prefix, &text, Style::Plain);
}

/// `raid5(4), blocksize_sweep, block=4KiB, 2 processes`; the metric where the workload has several.
fn title(one: &AblatedCell) -> String {
    let cell = &one.cell;
    let settings: String =
        cell.settings.iter().map(|(key, value)| format!(", {key}={value}")).collect();
    let metric = match cell.metric.as_str() {
        "seconds" | "mib_per_s" | "mb_per_s" => String::new(),
        metric => format!(", {metric}"),
    };
    let processes = match cell.processes {
        1 => String::new(),
        several => format!(", {}", number::processes(several)),
    };
    format!("{}, {}{metric}{settings}{processes}", cell.layout, cell.workload)
}

/// Cells of the layouts that parity moves, by the factor of its cost, beside the best of the others that
/// survive the loss of a member.
fn parity(page: &mut Page, results: &Results, sweep: &[&AblationRow]) {
    let free = results.ablation.iter().find(|row| row.mechanism == "parity-cost");
    let mut rows: Vec<(String, &AblationRow)> =
        free.into_iter().map(|row| ("x0".to_owned(), row)).collect();
    for row in sweep {
        let factor = row.mechanism.trim_start_matches("parity-cost=").to_owned();
        rows.push((factor, row));
    }
    let moved = |layout: &str| {
        let mut cells = rows.iter().flat_map(|(_, row)| &row.cells);
        cells.any(|one| one.cell.layout == layout && one.moved.percent.abs() > 0.0)
    };
    let Some((_, first)) = rows.first() else { return };
    // Unchanged cost stands between half and double.
    let unchanged = rows.iter().position(|(factor, _)| factor == "x2").unwrap_or(rows.len());
    let mut heads: Vec<String> = rows.iter().map(|(factor, _)| factor.clone()).collect();
    heads.insert(unchanged, "x1".to_owned());
    heads.push("no parity".to_owned());
    let line = |(at, one): (usize, &AblatedCell)| {
        let mut cells: Vec<String> = rows
            .iter()
            .map(|(_, row)| {
                row.cells.get(at).map_or(String::new(), |one| number::number(one.cell.median))
            })
            .collect();
        cells.insert(unchanged, number::number(one.moved.full));
        cells.push(best_other(results, one, &moved).unwrap_or_default());
        (title(one), cells)
    };
    let shown = first.cells.iter().enumerate().filter(|(_, one)| moved(&one.cell.layout));
    let lines: Vec<(String, Vec<String>)> = shown.map(line).collect();
    page.heading("Parity costs so many times its CPU time");
    table(page, &heads, &lines);
    let meaning = "the best layout that survives the loss of a member without parity";
    page.hanging(vec![Span::new("  no parity: ", Style::Dim)], meaning, Style::Dim);
    for (factor, row) in [rows.first(), rows.last()].into_iter().flatten() {
        let range = |one: &&AblatedCell| moved(&one.cell.layout);
        let changes = row.cells.iter().filter(range).map(|one| one.moved.percent);
        let (low, high) =
            changes.fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one), high.max(one)));
        let (low, high) = (number::percent(low), number::percent(high));
        let text = format!("At {factor} these cells move by {low} to {high}.");
        page.hanging(vec![Span::blank(2)], &text, Style::Plain);
    }
}

/// The best cell beside one, of a layout that survives the loss of a member without parity.
fn best_other(
    results: &Results,
    one: &AblatedCell,
    moved: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let redundant = |name: &str| {
        results.layouts.iter().any(|layout| layout.name == name && layout.survives > 0)
    };
    let beside = results.cells.iter().filter(|cell| {
        (&cell.workload, &cell.metric, cell.processes, &cell.settings)
            == (&one.cell.workload, &one.cell.metric, one.cell.processes, &one.cell.settings)
            && redundant(&cell.layout)
            && !moved(&cell.layout)
    });
    let best = beside.reduce(|best, cell| if cell.beats(best) { cell } else { best })?;
    Some(format!("{} {}", number::number(best.median), best.layout))
}
