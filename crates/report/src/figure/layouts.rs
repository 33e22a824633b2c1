//! Figures of layouts: over block sizes, beside workloads, what was busy, where chunks lie, what each is good for.

use std::collections::BTreeMap;

use raidlab_results::Better;
use raidlab_results::document::{Cell, LayoutRow};

use super::cells::{title_of, words};
use super::model::{Axis, Body, Field, Grid, Guide, Panel, Plot, Point, Series};
use super::time::extent;
use crate::view::{Row, Section, View};
use crate::{number, shown};

/// Columns of a grid side by side, so that their heads can be read.
const COLUMNS: usize = 6;

/// A block size with the rows that are measured with it.
type Blocks<'v, 'a> = Vec<(u64, &'v Section<'a>, &'v Row<'a>)>;

pub(super) fn sweep(view: &View<'_>) -> Vec<Panel> {
    let mut groups: Vec<(String, Blocks<'_, '_>)> = Vec::new();
    for section in &view.sections {
        for row in &section.rows {
            let Some((block, title)) = block_of(section, row) else { continue };
            match groups.iter_mut().find(|(one, _)| *one == title) {
                Some((_, rows)) => rows.push((block, section, row)),
                None => groups.push((title, vec![(block, section, row)])),
            }
        }
    }
    for (_, rows) in &mut groups {
        rows.sort_by_key(|one| one.0);
        rows.dedup_by_key(|one| one.0);
    }
    groups.retain(|(_, rows)| rows.len() > 1);
    groups.into_iter().filter_map(|(title, rows)| swept(view, title, &rows)).collect()
}

/// The size of a row's blocks, by a setting or the end of the workload's name, and what is left of its title.
fn block_of(section: &Section<'_>, row: &Row<'_>) -> Option<(u64, String)> {
    let others = |left_out: &str| {
        let settings = row.settings.iter().filter(|(key, _)| *key != left_out);
        let settings = settings.map(|(key, value)| format!(", {key}={value}"));
        let state = if row.state == "healthy" { String::new() } else { format!(", {}", row.state) };
        format!(", {}{state}{}", number::processes(row.processes), settings.collect::<String>())
    };
    for key in ["block", "size", "request"] {
        if let Some(bytes) = row.settings.get(key).and_then(|value| size(value)) {
            return Some((bytes, format!("{}{}", section.title, others(key))));
        }
    }
    let name = &section.workload.name;
    let (stem, end) = name.rsplit_once(' ')?;
    let rest = section.title.strip_prefix(name.as_str()).unwrap_or_default();
    Some((size(end)?, format!("{stem}{rest}, {}{}", section.unit, others(""))))
}

/// `64KiB`, `1MiB`, `4096` as bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.find(|one: char| !one.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    count.checked_mul(unit)
}

fn swept(view: &View<'_>, title: String, rows: &Blocks<'_, '_>) -> Option<Panel> {
    let series = |(style, layout): (usize, &LayoutRow)| {
        let point = |(block, section, row): &(u64, &Section<'_>, &Row<'_>)| {
            let cell = row.cells[style]?;
            let words = format!("{}; {}", number::bytes(*block), words(cell, section.unit));
            let (x, y, interval) = (*block as f64, cell.median, cell.ci95);
            Some(Point { x, y, interval, label: String::new(), words })
        };
        let points: Vec<Point> = rows.iter().filter_map(point).collect();
        Series { label: layout.name.clone(), style, points, joined: true, marked: true }
    };
    let series = view.results.layouts.iter().enumerate().map(series);
    let series: Vec<Series> = series.filter(|one| one.points.len() > 1).collect();
    let (_, high) = extent(series.iter().flat_map(|one| one.points.iter().map(|one| one.y)));
    let section = rows.first()?.1;
    let ends = [rows.first()?.0 as f64, rows.last()?.0 as f64];
    let mut chunks: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for layout in &view.results.layouts {
        if let Some(chunk) = layout.chunk.filter(|one| (ends[0]..=ends[1]).contains(&(*one as f64)))
        {
            chunks.entry(chunk).or_default().push(&layout.name);
        }
    }
    let guide = |(chunk, names): (&u64, &Vec<&str>)| {
        let whose = match names.as_slice() {
            _ if chunks.len() == 1 => String::new(),
            [one] => format!(" of {one}"),
            [one, others @ ..] => format!(" of {one} and {} more", others.len()),
            [] => String::new(),
        };
        Guide::Upright(*chunk as f64, format!("chunk {}{whose}", number::bytes(*chunk)))
    };
    let lines = chunks.iter().map(guide).collect();
    let tick = |(block, ..): &(u64, &Section<'_>, &Row<'_>)| (*block as f64, number::bytes(*block));
    let x = Axis::logarithmic_at("block", rows.iter().map(tick).collect());
    let y = Axis::linear(shown::direction(section), 0.0, high, (1.0, ""));
    let body = Plot { x, y, series, lines, zooms: false };
    (!body.series.is_empty()).then_some(Panel { title, body: Body::Plot(body) })
}

/// Percent of the best of a row; `None` where that is not known.
fn of_best(section: &Section<'_>, row: &Row<'_>, cell: &Cell) -> Option<f64> {
    let best = row.best_cell().filter(|_| row.has_best())?.median;
    let share = match section.better {
        Better::Higher => cell.median / best,
        Better::Lower => best / cell.median,
    };
    (share.is_finite() && share >= 0.0).then_some(share)
}

pub(super) fn heat(view: &View<'_>) -> Vec<Panel> {
    if view.results.layouts.len() < 2 {
        return Vec::new();
    }
    let mut kinds: Vec<(u32, &str)> = Vec::new();
    for row in view.sections.iter().flat_map(|section| &section.rows) {
        if !kinds.contains(&(row.processes, row.state)) {
            kinds.push((row.processes, row.state));
        }
    }
    let mut panels = Vec::new();
    for (processes, state) in kinds {
        let all = view.sections.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
        let own: Vec<(&Section<'_>, &Row<'_>)> = all
            .filter(|(_, row)| (row.processes, row.state) == (processes, state))
            .filter(|(_, row)| row.measured() > 1)
            .collect();
        for part in own.chunks(COLUMNS) {
            let healthy = if state == "healthy" { String::new() } else { format!(", {state}") };
            let title = format!("{}{healthy}", number::processes(processes));
            panels.push(Panel { title, body: Body::Grid(heat_of(view, part)) });
        }
    }
    panels
}

fn heat_of(view: &View<'_>, columns: &[(&Section<'_>, &Row<'_>)]) -> Grid {
    let head = |(section, row): &(&Section<'_>, &Row<'_>)| {
        let settings = row.settings.iter().map(|(key, value)| format!(" {key}={value}"));
        format!("{}{}", section.title, settings.collect::<String>())
    };
    let field = |at: usize, (section, row): &(&Section<'_>, &Row<'_>)| {
        let cell = row.cells[at]?;
        let share = of_best(section, row, cell);
        let text = share.map_or_else(|| "?".to_owned(), percent_of_best);
        let told = words(cell, section.unit);
        let words = format!("{told}; {text} % of the best of {}", title_of(section, row));
        Some(Field { text, share: share.unwrap_or(0.0), parity: false, words })
    };
    let row = |(at, layout): (usize, &LayoutRow)| {
        let fields = columns.iter().map(|column| field(at, column)).collect();
        (layout.name.clone(), fields)
    };
    Grid {
        columns: columns.iter().map(head).collect(),
        rows: view.results.layouts.iter().enumerate().map(row).collect(),
        legend: "% of the best of the column; stronger is better".to_owned(),
    }
}

/// Rounded down, so that only what is the best is 100.
fn percent_of_best(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1}") } else { format!("{:.0}", percent.floor()) }
}

pub(super) fn busy(view: &View<'_>) -> Vec<Panel> {
    let mut panels = Vec::new();
    for section in &view.sections {
        for row in &section.rows {
            let mut names: Vec<&str> = Vec::new();
            let cells = || row.cells.iter().copied().flatten();
            for one in cells().flat_map(|cell| &cell.busy) {
                if !names.contains(&one.resource.as_str()) {
                    names.push(&one.resource);
                }
            }
            // Processors first, then members and paths in their order.
            names.sort_by_key(|name| !name.starts_with("cpu"));
            for part in names.chunks(COLUMNS) {
                let title = title_of(section, row);
                panels.push(Panel { title, body: Body::Grid(busy_of(row, part)) });
            }
        }
    }
    panels
}

fn busy_of(row: &Row<'_>, names: &[&str]) -> Grid {
    let fields = |cell: &Cell| {
        let field = |name: &&str| {
            let one = cell.busy.iter().find(|one| one.resource == *name)?;
            let words =
                format!("{}: {name} busy {} of the time", cell.layout, number::share(one.busy));
            let text = format!("{:.0}", one.busy * 100.0);
            Some(Field { text, share: one.busy, parity: false, words })
        };
        names.iter().map(field).collect()
    };
    let cells = row.cells.iter().copied().flatten().filter(|cell| !cell.busy.is_empty());
    Grid {
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        rows: cells.map(|cell| (cell.layout.clone(), fields(cell))).collect(),
        legend: "% of the time busy; stronger is busier".to_owned(),
    }
}

pub(super) fn blocks(view: &View<'_>) -> Vec<Panel> {
    let layouts = view.results.layouts.iter().filter(|layout| !layout.blocks.is_empty());
    let panel = |layout: &LayoutRow| {
        let members = layout.blocks.iter().map(|row| row.split(' ').count()).max().unwrap_or(0);
        let field = |(word, stripe): (&str, usize)| {
            let parity = matches!(word, "P" | "Q");
            let share = if parity { 0.8 } else { [0.15, 0.55][stripe % 2] };
            let words = match word {
                "P" | "Q" => format!("parity {word}"),
                copy if copy.ends_with('\'') => {
                    format!("copy of chunk {}", copy.trim_end_matches('\''))
                }
                chunk => format!("chunk {chunk}"),
            };
            (word != "-").then(|| Field { text: word.to_owned(), share, parity, words })
        };
        let data = layout
            .blocks
            .iter()
            .flat_map(|row| row.split(' '))
            .filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        let a_row = (data.count() / layout.blocks.len().max(1)).max(1);
        let stripe = |word: &str| {
            let number = word.trim_end_matches('\'').parse::<usize>().unwrap_or(0);
            number / a_row
        };
        let row = |(at, row): (usize, &String)| {
            let fields = row.split(' ').map(|word| field((word, stripe(word)))).collect();
            (format!("row {at}"), fields)
        };
        let chunk = layout
            .chunk
            .map_or_else(String::new, |chunk| format!(", chunk {}", number::bytes(chunk)));
        let grid = Grid {
            columns: (0..members).map(|member| format!("m{member}")).collect(),
            rows: layout.blocks.iter().enumerate().map(row).collect(),
            legend: String::new(),
        };
        Panel { title: format!("{}{chunk}", layout.name), body: Body::Grid(grid) }
    };
    layouts.map(panel).collect()
}

pub(super) fn choice(view: &View<'_>) -> Vec<Panel> {
    let overall = choice_of(view, "all workloads", &view.sections.iter().collect::<Vec<_>>());
    let several = view.sections.len() > 1;
    let each = view.sections.iter().filter(|_| several);
    let each = each.filter_map(|section| choice_of(view, &section.title, &[section]));
    overall.into_iter().chain(each).collect()
}

fn choice_of(view: &View<'_>, title: &str, sections: &[&Section<'_>]) -> Option<Panel> {
    let speed = |at: usize| {
        let mut logs = Vec::new();
        for section in sections {
            for row in
                section.rows.iter().filter(|row| row.state == "healthy" && row.measured() > 1)
            {
                logs.push(libm::log(of_best(section, row, row.cells[at]?)?));
            }
        }
        let mean = raidlab_results::statistics::mean(&logs)?;
        Some(libm::exp(mean) * 100.0)
    };
    let tebi = f64::from(1 << 20) * f64::from(1 << 20);
    let mut series: Vec<Series> = Vec::new();
    let mut levels: Vec<u16> = view.results.layouts.iter().map(|one| one.survives).collect();
    levels.sort_unstable();
    levels.dedup();
    for (style, survives) in levels.into_iter().enumerate() {
        let layouts = view.results.layouts.iter().enumerate();
        let point = |(at, layout): (usize, &LayoutRow)| {
            let (x, y) = (layout.capacity as f64 / tebi, speed(at)?);
            let words = format!(
                "{}: {} usable, {} % of the best, survives {survives} lost",
                layout.name,
                number::bytes(layout.capacity),
                percent_of_best(y / 100.0)
            );
            Some(Point { x, y, interval: None, label: layout.name.clone(), words })
        };
        let points = layouts.filter(|(_, one)| one.survives == survives).filter_map(point);
        let label = format!("survives {survives}");
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            series.push(Series { label, style, points, joined: false, marked: true });
        }
    }
    let points = || series.iter().flat_map(|one| &one.points);
    if points().count() < 2 {
        return None;
    }
    let largest = points().map(|one| one.x).fold(0.0, f64::max);
    let (unit, name) = if largest < 1.0 { (1.0 / 1024.0, "GiB") } else { (1.0, "TiB") };
    let mut x = Axis::linear(format!("usable capacity, {name}"), 0.0, largest, (unit, ""));
    x.label.push_str("; more is better");
    let y = Axis::linear("speed, % of the best; more is better", 0.0, 100.0, (1.0, ""));
    let body = Plot { x, y, series, lines: Vec::new(), zooms: false };
    Some(Panel { title: title.to_owned(), body: Body::Plot(body) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_reports_write_them() {
        let sizes = ["4KiB", "64K", "1MiB", "512", "6MB", "x", ""].map(size);
        let known = [Some(4_096), Some(65_536), Some(1 << 20), Some(512), None, None, None];
        assert_eq!(sizes, known);
    }

    #[test]
    fn only_the_best_is_a_hundred() {
        assert_eq!(["100", "99", "9.9"], [1.0, 0.9999, 0.0989].map(percent_of_best));
    }
}
