//! Figures of time: when processes were done, how long requests took, what a round did over its time.

use raidlab_results::document::{Cell, Results, TimelineRow};

use super::cells::title_of;
use super::model::{Axis, Bar, Bars, Body, Panel, Plot, Point, Series, Tone};
use crate::number;
use crate::view::{Row, Section, View};

/// A row, its section, and those of its cells that have something, with the places of their layouts.
type Found<'v, 'a> = (&'v Section<'a>, &'v Row<'a>, Vec<(usize, &'a Cell)>);

/// The rows whose cells have something, with these cells and the places of their layouts.
fn rows_with<'v, 'a>(view: &'v View<'a>, has: impl Fn(&Cell) -> bool) -> Vec<Found<'v, 'a>> {
    let mut found = Vec::new();
    for section in &view.sections {
        for row in &section.rows {
            let cells = row.cells.iter().enumerate();
            let cells = cells.filter_map(|(at, cell)| Some((at, (*cell)?)));
            let cells: Vec<(usize, &Cell)> = cells.filter(|(_, cell)| has(cell)).collect();
            if !cells.is_empty() {
                found.push((section, row, cells));
            }
        }
    }
    found
}

pub(super) fn finish(view: &View<'_>) -> Vec<Panel> {
    let rows = rows_with(view, |cell| cell.done_s.len() > 1);
    let panel = |(section, row, cells): Found<'_, '_>| {
        let last = cells.iter().flat_map(|(_, cell)| &cell.done_s).fold(0.0, |a: f64, b| a.max(*b));
        let bar = |(_, cell): &(usize, &Cell)| {
            let first = cell.done_s.first().copied().unwrap_or(0.0);
            let last = cell.done_s.last().copied().unwrap_or(0.0);
            let each: Vec<String> = cell.done_s.iter().map(|one| number::duration(*one)).collect();
            let fairness = cell
                .fairness
                .map_or_else(String::new, |one| format!("; fairness {}", number::number(one)));
            Bar {
                label: cell.layout.clone(),
                value: None,
                interval: Some([first, last]),
                dots: cell.done_s.clone(),
                text: number::duration(last),
                tone: Tone::Same,
                best: false,
                words: format!("{}: done after {}{fairness}", cell.layout, each.join(", ")),
            }
        };
        let axis = Axis::linear("seconds since the start", 0.0, last, (1.0, ""));
        let body = Bars { axis, bars: cells.iter().map(bar).collect(), line: None };
        Panel { title: title_of(section, row), body: Body::Bars(body) }
    };
    rows.into_iter().map(panel).collect()
}

pub(super) fn percentiles(view: &View<'_>) -> Vec<Panel> {
    const NAMES: [&str; 4] = ["50 %", "99 %", "99.9 %", "slowest"];
    let rows = rows_with(view, |cell| cell.latency_ms.is_some_and(|one| one.max > 0.0));
    let panel = |(section, row, cells): Found<'_, '_>| {
        let series = |(style, cell): &(usize, &Cell)| {
            let all = cell.latency_ms.map_or([0.0; 4], |one| [one.p50, one.p99, one.p999, one.max]);
            let point = |(at, y): (usize, f64)| {
                let words = format!("{}: {} {} ms", cell.layout, NAMES[at], number::number(y));
                Point { x: at as f64, y, interval: None, label: String::new(), words }
            };
            let points = all.into_iter().enumerate().map(point).collect();
            Series { label: cell.layout.clone(), style: *style, points, joined: true, marked: true }
        };
        let series: Vec<Series> = cells.iter().map(series).collect();
        let (low, high) = extent(series.iter().flat_map(|one| one.points.iter().map(|one| one.y)));
        let body = Plot {
            x: Axis::places("of reads and writes took at most", &NAMES.map(str::to_owned)),
            y: Axis::logarithmic("ms, lower is better", low, high),
            series,
            lines: Vec::new(),
            zooms: false,
        };
        Panel { title: title_of(section, row), body: Body::Plot(body) }
    };
    first_of_runs(rows).into_iter().map(panel).collect()
}

/// A run's latencies stand in each of its metrics: one of them is enough.
fn first_of_runs<'v, 'a>(rows: Vec<Found<'v, 'a>>) -> Vec<Found<'v, 'a>> {
    let key = |section: &Section<'_>, row: &Row<'_>| {
        (section.workload.name.clone(), row.processes, row.state.to_owned(), row.settings.clone())
    };
    let mut seen = Vec::new();
    let mut kept = Vec::new();
    for one in rows {
        let key = key(one.0, one.1);
        if !seen.contains(&key) {
            seen.push(key);
            kept.push(one);
        }
    }
    kept
}

pub(super) fn ecdf(view: &View<'_>) -> Vec<Panel> {
    let shares = &view.results.latency_shares;
    let rows = rows_with(view, |cell| {
        !cell.latency_curve_ms.is_empty() && cell.latency_curve_ms.len() == shares.len()
    });
    let panel = |(section, row, cells): Found<'_, '_>| {
        let series: Vec<Series> =
            cells.iter().map(|(style, cell)| steps(view.results, *style, cell)).collect();
        let (low, high) = extent(series.iter().flat_map(|one| one.points.iter().map(|one| one.x)));
        let body = Plot {
            x: Axis::logarithmic("ms", low, high),
            y: Axis::linear("% of reads and writes took at most", 0.0, 100.0, (1.0, "")),
            series,
            lines: Vec::new(),
            zooms: false,
        };
        Panel { title: title_of(section, row), body: Body::Plot(body) }
    };
    rows.into_iter().map(panel).collect()
}

/// The shares of requests that took at most so long.
fn steps(results: &Results, style: usize, cell: &Cell) -> Series {
    let words = || {
        let at = |share: f64| {
            let at = results.latency_shares.iter().position(|one| *one >= share)?;
            Some(format!(
                "{} within {} ms",
                number::share(share),
                number::number(cell.latency_curve_ms[at])
            ))
        };
        let told: Vec<String> = [0.5, 0.9, 0.99].into_iter().filter_map(at).collect();
        format!("{}: {}", cell.layout, told.join(", "))
    };
    let words = words();
    let points = results.latency_shares.iter().zip(&cell.latency_curve_ms);
    let point = |(share, x): (&f64, &f64)| {
        let (x, y, words) = (*x, share * 100.0, words.clone());
        Point { x, y, interval: None, label: String::new(), words }
    };
    let points = points.map(point).collect();
    Series { label: cell.layout.clone(), style, points, joined: true, marked: false }
}

/// One curve of each cell's timeline.
fn over_time(
    cells: &[(usize, &Cell)],
    label: String,
    value: impl Fn(&TimelineRow, usize) -> Option<f64>,
    in_steps: bool,
) -> Option<Plot> {
    let series = |(style, cell): &(usize, &Cell)| {
        let line = cell.timeline.as_ref()?;
        let values: Vec<(usize, f64)> =
            (0..line.rate.len()).filter_map(|at| Some((at, value(line, at)?))).collect();
        let (low, high) = extent(values.iter().map(|one| one.1));
        let (low, high) = (number::number(low), number::number(high));
        let words = format!("{}: {low} to {high} {label}, round {}", cell.layout, line.round);
        let ends = |at: usize| [at as f64 * line.bin_s, (at + 1) as f64 * line.bin_s];
        let points = values.iter().flat_map(|(at, y)| {
            let [start, end] = ends(*at);
            let place =
                |x| Point { x, y: *y, interval: None, label: String::new(), words: words.clone() };
            if in_steps { vec![place(start), place(end)] } else { vec![place(start)] }
        });
        let points: Vec<Point> = points.collect();
        let label = cell.layout.clone();
        Some(Series { label, style: *style, points, joined: true, marked: false })
    };
    let series: Vec<Series> = cells.iter().filter_map(series).collect();
    let points = || series.iter().flat_map(|one| &one.points);
    let (end, top) =
        points().fold((0.0, 0.0), |(x, y): (f64, f64), one| (x.max(one.x), y.max(one.y)));
    points().next()?;
    let x = Axis::linear("seconds since the start", 0.0, end, (1.0, ""));
    let y = Axis::linear(label, 0.0, top, (1.0, ""));
    Some(Plot { x, y, series, lines: Vec::new(), zooms: true })
}

pub(super) fn rate(view: &View<'_>) -> Vec<Panel> {
    let rows = rows_with(view, |cell| cell.timeline.is_some());
    let panel = |(section, row, cells): Found<'_, '_>| {
        let unit = unit_of(&cells);
        let body = over_time(&cells, unit, |line, at| line.rate.get(at).copied(), true)?;
        Some(Panel { title: title_of(section, row), body: Body::Plot(body) })
    };
    rows.into_iter().filter_map(panel).collect()
}

fn unit_of(cells: &[(usize, &Cell)]) -> String {
    let unit = cells.iter().find_map(|(_, cell)| Some(cell.timeline.as_ref()?.unit.as_str()));
    match unit {
        Some("1/s") => "reads and writes a second".to_owned(),
        unit => unit.unwrap_or_default().to_owned(),
    }
}

pub(super) fn rebuild(view: &View<'_>) -> Vec<Panel> {
    let rows = rows_with(view, |cell| {
        cell.state == "rebuilding"
            && cell.timeline.as_ref().is_some_and(|line| !line.rebuilt_percent.is_empty())
    });
    let panels = rows.into_iter().flat_map(|(section, row, cells)| {
        let done = |line: &TimelineRow, at: usize| line.rebuilt_percent.get(at).copied().flatten();
        let longest = |line: &TimelineRow, at: usize| line.max_ms.get(at).copied().flatten();
        let rate = |line: &TimelineRow, at: usize| line.rate.get(at).copied();
        let plots = [
            ("rebuilt", over_time(&cells, "% rebuilt".to_owned(), done, false)),
            (
                "longest latency",
                over_time(&cells, "ms, longest of each bin".to_owned(), longest, true),
            ),
            ("rate", over_time(&cells, unit_of(&cells), rate, true)),
        ];
        let title = title_of(section, row);
        plots.into_iter().filter_map(move |(what, plot)| {
            Some(Panel { title: format!("{title}: {what}"), body: Body::Plot(plot?) })
        })
    });
    panels.collect()
}

/// The smallest and the largest above nought; both 1 where there is none.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values.filter(|one| *one > 0.0).fold(None, |ends: Option<(f64, f64)>, one| {
        let (low, high) = ends.unwrap_or((one, one));
        Some((low.min(one), high.max(one)))
    });
    ends.unwrap_or((1.0, 1.0))
}
