//! What a section shows, in sentences: which layout wins, by how much, and what held it back.

use raidlab_results::document::{Better, Cell};

use crate::number::{self, listed};
use crate::view::{self, ROUNDS_FOR_INTERVAL, Row, Section, View};

/// One sentence for each group of rows with the same outcome.
pub(crate) fn sentences(view: &View<'_>, section: &Section<'_>) -> Vec<String> {
    let mut groups: Vec<Vec<&Row<'_>>> = Vec::new();
    for row in &section.rows {
        let same = |first: &Row<'_>| {
            (&first.lead, first.state, first.settings, first.marked().is_empty())
                == (&row.lead, row.state, row.settings, row.marked().is_empty())
        };
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().map(|rows| sentence(view, section, rows)).collect()
}

fn sentence(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let Some(best) = last.best_cell() else { return String::new() };
    let when = when(rows);
    if last.measured() == 1 {
        let value = number::with_unit(best.median, section.unit);
        return format!("Only {} was measured {when}: {value}{}.", best.layout, busiest(best));
    }
    if last.marked().is_empty() {
        let value = number::with_unit(best.median, section.unit);
        return format!(
            "No layout stands out {when}: every interval overlaps that of the best, {} ({value}{}).",
            best.layout,
            quoted(rows)
        );
    }
    if last.lead.len() > 1 {
        return shared_lead(view, section, rows);
    }
    let verb = if preliminary(last) { "leads" } else { "wins" };
    let winner = match view.is_baseline(last.best) && view.results.baseline.len() == 1 {
        true => format!("{}, the baseline, {verb} {when}", best.layout),
        false => format!("{} {verb} {when}", best.layout),
    };
    let margin = margin(view, section, rows);
    let evidence = evidence(last, best, section.unit);
    match rows {
        [_] if margin.is_empty() => format!("{winner}: {evidence}{}.", busiest(best)),
        [_] => format!("{winner}: {margin} ({evidence}){}.", busiest(best)),
        _ => {
            let margin = if margin.is_empty() { margin } else { format!(": {margin}") };
            let busiest = busiest(best);
            format!("{winner}{margin}. With {}: {evidence}{busiest}.", last.label())
        }
    }
}

/// Several layouts ahead of the others, which the samples do not tell apart.
fn shared_lead(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let ahead: Vec<&Cell> = last.lead.iter().filter_map(|&at| last.cells[at]).collect();
    let names: Vec<&str> = ahead.iter().map(|cell| cell.layout.as_str()).collect();
    let shown = |cell: &&Cell| {
        let value = number::with_unit(cell.median, section.unit);
        match cell.percent_vs_baseline {
            Some(percent) => format!("{value} ({})", number::percent(percent)),
            None => value,
        }
    };
    let values: Vec<String> = ahead.iter().map(shown).collect();
    let against = match ahead.iter().any(|cell| cell.percent_vs_baseline.is_some()) {
        true => format!(" against {}", view.baseline()),
        false => String::new(),
    };
    format!(
        "{} share the lead {}, as their intervals overlap: {}{against}{}.",
        listed(&names),
        when(rows),
        listed(&values),
        quoted(rows)
    )
}

/// `, with 4 processes` where a group has several rows and only the last one is quoted.
fn quoted(rows: &[&Row<'_>]) -> String {
    match rows {
        [.., last] if rows.len() > 1 => format!(", with {}", last.label()),
        _ => String::new(),
    }
}

/// `with 1, 2 and 4 processes, degraded`.
fn when(rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let mut text = "with ".to_owned();
    for (at, row) in rows[..rows.len() - 1].iter().enumerate() {
        text.push_str(&row.processes.to_string());
        text.push_str(if at + 2 == rows.len() { " and " } else { ", " });
    }
    text.push_str(&last.label());
    text
}

/// `+280 %, +262 % and +251 % over single`; for the baseline itself, the distance to the next.
fn margin(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    if view.is_baseline(last.best) && view.results.baseline.len() == 1 {
        let Some(next) = runner_up(section, last) else { return String::new() };
        let percent = next.percent_vs_baseline.map(number::percent).unwrap_or_default();
        return format!("next is {}, {percent}{}", next.layout, quoted(rows));
    }
    let percents: Option<Vec<String>> = rows
        .iter()
        .map(|row| row.best_cell().and_then(|cell| cell.percent_vs_baseline).map(number::percent))
        .collect();
    let over = match section.better {
        Better::Higher => "over",
        Better::Lower => "against",
    };
    percents
        .map(|percents| format!("{} {over} {}", listed(&percents), view.baseline()))
        .unwrap_or_default()
}

fn runner_up<'a>(section: &Section<'_>, row: &Row<'a>) -> Option<&'a Cell> {
    let others = (0..row.cells.len()).filter(|&at| at != row.best);
    let order = |one: &&Cell, other: &&Cell| match section.better {
        Better::Higher => one.median.total_cmp(&other.median),
        Better::Lower => other.median.total_cmp(&one.median),
    };
    others.filter_map(|at| row.cells[at]).max_by(order)
}

/// `762 MiB/s, 97 % interval 755..770, 6 rounds`.
fn evidence(row: &Row<'_>, cell: &Cell, unit: &str) -> String {
    let value = number::with_unit(cell.median, unit);
    let rounds = number::counted(cell.samples.len(), "round");
    let (low, high) = view::interval(cell);
    let interval = number::range(low, high);
    match (cell.ci95, cell.coverage) {
        (Some(_), coverage) => {
            let coverage = number::share(coverage.unwrap_or(0.95));
            format!("{value}, {coverage} interval {interval}, {rounds}")
        }
        (None, _) if cell.samples.len() > 1 => {
            let word = if preliminary(row) { ", preliminary" } else { "" };
            format!("{value}, range {interval} of {rounds}{word}")
        }
        (None, _) => format!("{value}, {rounds}, preliminary"),
    }
}

/// Some cell of the row has too few rounds for an interval, so nothing is shown beyond doubt.
fn preliminary(row: &Row<'_>) -> bool {
    row.cells.iter().flatten().any(|cell| cell.samples.len() < ROUNDS_FOR_INTERVAL)
}

fn busiest(cell: &Cell) -> String {
    cell.bottleneck.as_ref().map_or_else(String::new, |one| {
        format!("; busiest: {}, {}", one.resource, number::share(one.busy))
    })
}
