//! Figures of the values of cells: bars, percentages, over processes, over states.

use raidlab_results::document::{Cell, Verdict};
use raidlab_results::statistics::mean;

use super::model::{Axis, Bar, Bars, Body, Panel, Plot, Point, Series, Tone};
use crate::view::{Mark, Row, Section, View};
use crate::{number, shown, trusted};

/// A value and an axis that shows it with all samples; of rebuilds in a unit that suits them.
fn axis_of(section: &Section<'_>, cells: &[&Cell]) -> Axis {
    let samples =
        cells.iter().filter(|cell| !cell.tells_too_little()).flat_map(|cell| &cell.samples);
    let largest = samples.fold(0.0, |most: f64, one| most.max(*one));
    let metric = cells.first().map_or("", |cell| cell.metric.as_str());
    let unit = shown::axis_unit(metric, largest);
    Axis::linear(shown::direction(section), 0.0, largest, unit)
}

/// What a cell shows, in words: for tooltips and readers of screens.
pub(crate) fn words(cell: &Cell, unit: &str) -> String {
    let mut text = format!("{}: median {}", cell.layout, shown::value_with_unit(cell, unit));
    if let Some(percent) = cell.percent_vs_baseline.filter(|_| cell.verdict.is_some()) {
        let verdict = cell.verdict.map_or("", verdict_word);
        text.push_str(&format!("; {} against the baseline, {verdict}", number::percent(percent)));
    }
    if let Some(confidence) = shown::confidence(cell) {
        text.push_str(&format!("; {confidence}"));
    }
    if let Some(trusted) = trusted::of_cell(cell) {
        text.push_str(&format!("; {trusted}"));
    }
    let samples: Vec<String> = cell.samples.iter().map(|one| shown::amount(cell, *one)).collect();
    text.push_str(&format!("; rounds {}", samples.join(", ")));
    if let Some(one) = &cell.bottleneck {
        text.push_str(&format!("; busiest {}, {}", one.resource, number::share(one.busy)));
    }
    text
}

const fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Equal => "equal within the noise floor",
        Verdict::NotResolved => "not resolved",
    }
}

const fn tone(verdict: Option<Verdict>) -> Tone {
    match verdict {
        Some(Verdict::Faster) => Tone::Faster,
        Some(Verdict::Slower) => Tone::Slower,
        Some(Verdict::Equal | Verdict::NotResolved) | None => Tone::Same,
    }
}

/// `dd-write, 4 processes`.
pub(super) fn title_of(section: &Section<'_>, row: &Row<'_>) -> String {
    format!("{}, {}", section.title, row.label())
}

pub(super) fn bars(view: &View<'_>) -> Vec<Panel> {
    let rows = view
        .sections
        .iter()
        .flat_map(|section| section.rows.iter().map(move |row| bars_of(view, section, row)));
    rows.collect()
}

/// The bars of a row. Rows that differ in processes and state only have one scale, so that they can be compared by eye.
pub(crate) fn bars_of(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> Panel {
    let alike = section.rows.iter().filter(|other| other.settings == row.settings);
    let cells: Vec<&Cell> = alike.flat_map(|row| row.cells.iter().copied().flatten()).collect();
    let bar = |(at, cell): (usize, &&Cell)| {
        let known = !cell.tells_too_little();
        let percent = shown::percent(view, at, cell);
        let behind =
            percent.map_or_else(String::new, |one| format!(" ({})", number::percent(one.value)));
        Bar {
            label: cell.layout.clone(),
            value: known.then_some(cell.median),
            interval: cell.ci95.filter(|_| known),
            dots: if known { cell.samples.clone() } else { Vec::new() },
            text: format!("{}{behind}", shown::value(cell)),
            tone: tone(percent.and_then(|one| one.verdict).filter(|_| !row.is_preliminary())),
            best: row.mark(at) == Mark::Best,
            words: words(cell, section.unit),
        }
    };
    let measured = row.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, cell.as_ref()?)));
    let body = Bars {
        axis: axis_of(section, &cells),
        bars: measured.map(bar).collect(),
        line: row.baseline.filter(|_| !row.has_unknown()),
    };
    Panel { title: title_of(section, row), body: Body::Bars(body) }
}

pub(super) fn percent(view: &View<'_>) -> Vec<Panel> {
    let mut panels = Vec::new();
    for section in &view.sections {
        let rows: Vec<&Row<'_>> = section.rows.iter().filter(|row| !row.has_unknown()).collect();
        if let [_, _, ..] = rows[..]
            && let Some(panel) = means(view, section, &rows)
        {
            panels.push(panel);
        }
        panels.extend(rows.iter().filter_map(|row| percent_of(view, section, row)));
    }
    panels
}

/// The mean over the rows of a workload of the percentages of each layout, as the study of 2005 had it.
fn means(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> Option<Panel> {
    let of_layout = |at: usize| {
        let cell = |row: &&Row<'_>| row.cells[at]?.percent_vs_baseline;
        let percents: Vec<f64> = rows.iter().map(cell).collect::<Option<_>>()?;
        Some((percents.clone(), mean(&percents)?))
    };
    let alone = view.results.baseline.len() == 1;
    let layouts = view.results.layouts.iter().enumerate();
    let layouts = layouts.filter(|(at, _)| !(alone && view.is_baseline(*at)));
    let bars: Vec<Bar> = layouts
        .filter_map(|(at, layout)| {
            let (percents, mean) = of_layout(at)?;
            let each: Vec<String> = percents.iter().map(|one| number::percent(*one)).collect();
            let name = &layout.name;
            Some(Bar {
                label: name.clone(),
                value: Some(mean),
                interval: None,
                dots: percents,
                text: number::percent(mean),
                tone: Tone::Same,
                best: false,
                words: format!("{name}: mean {} of {}", number::percent(mean), each.join(", ")),
            })
        })
        .collect();
    let title = format!("{}, mean of the percentages of {} rows", section.title, rows.len());
    percent_panel(view, title, bars)
}

fn percent_panel(view: &View<'_>, title: String, bars: Vec<Bar>) -> Option<Panel> {
    let ends = bars.iter().flat_map(|bar| {
        bar.dots.iter().copied().chain(bar.value).chain(bar.interval.into_iter().flatten())
    });
    let (low, high) =
        ends.fold((0.0, 0.0), |(low, high): (f64, f64), one| (low.min(one), high.max(one)));
    let label = format!("% against {}", view.baseline());
    let axis = Axis::linear(label, low, high, (1.0, ""));
    let body = Bars { axis, bars, line: Some(0.0) };
    (!body.bars.is_empty()).then_some(Panel { title, body: Body::Bars(body) })
}

fn percent_of(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> Option<Panel> {
    let alone = view.results.baseline.len() == 1;
    let cells = row.cells.iter().enumerate();
    let cells = cells.filter(|(at, _)| !(alone && view.is_baseline(*at)));
    let bars: Vec<Bar> = cells
        .filter_map(|(_, cell)| {
            let cell = (*cell)?;
            let percent = cell.percent_vs_baseline?;
            Some(Bar {
                label: cell.layout.clone(),
                value: Some(percent),
                interval: cell.percent_interval,
                dots: ratios(view, row, cell),
                text: number::percent(percent),
                tone: tone(cell.verdict.filter(|_| !row.is_preliminary())),
                best: false,
                words: words(cell, section.unit),
            })
        })
        .collect();
    percent_panel(view, title_of(section, row), bars)
}

/// By how much each round differs from the baseline's, in percent; nothing where they have not equally many.
fn ratios(view: &View<'_>, row: &Row<'_>, cell: &Cell) -> Vec<f64> {
    let names = &view.results.baseline;
    let own = row.cells.iter().copied().flatten().filter(|one| names.contains(&one.layout));
    let base: Vec<&Cell> = own.collect();
    let rounds = cell.samples.len();
    if base.len() != names.len() || base.iter().any(|one| one.samples.len() != rounds) {
        return Vec::new();
    }
    let ratio = |(at, sample): (usize, &f64)| {
        let base = mean(&base.iter().map(|one| one.samples[at]).collect::<Vec<_>>())?;
        (base > 0.0).then(|| (sample / base - 1.0) * 100.0)
    };
    cell.samples.iter().enumerate().filter_map(ratio).collect()
}

/// A line for each layout through some rows of a section; `x` says where a row stands.
fn lines(
    view: &View<'_>,
    section: &Section<'_>,
    rows: &[&Row<'_>],
    x: impl Fn(&Row<'_>) -> Option<f64>,
    axis: Axis,
    title: String,
) -> Option<Panel> {
    let series = |(style, layout): (usize, &raidlab_results::LayoutRow)| {
        let point = |row: &&Row<'_>| {
            let cell = row.cells[style].filter(|cell| !cell.tells_too_little())?;
            let words = format!("{}; {}", row.label(), words(cell, section.unit));
            let (y, interval) = (cell.median, cell.ci95);
            Some(Point { x: x(row)?, y, interval, label: String::new(), words })
        };
        let points: Vec<Point> = rows.iter().filter_map(point).collect();
        Series { label: layout.name.clone(), style, points, joined: true, marked: true }
    };
    let series = view.results.layouts.iter().enumerate().map(series);
    let series: Vec<Series> = series.filter(|one| !one.points.is_empty()).collect();
    if series.iter().all(|one| one.points.len() < 2) {
        return None;
    }
    let cells: Vec<&Cell> =
        rows.iter().flat_map(|row| row.cells.iter().copied().flatten()).collect();
    let y = axis_of(section, &cells);
    let body = Plot { x: axis, y, series, lines: Vec::new(), zooms: false };
    Some(Panel { title, body: Body::Plot(body) })
}

/// The rows of a section in groups that differ in nothing but what `same` leaves out.
fn grouped<'v, 'a>(
    section: &'v Section<'a>,
    same: impl Fn(&Row<'a>, &Row<'a>) -> bool,
) -> Vec<Vec<&'v Row<'a>>> {
    let mut groups: Vec<Vec<&Row<'a>>> = Vec::new();
    for row in &section.rows {
        match groups.iter_mut().find(|group| same(group[0], row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

pub(super) fn scaling(view: &View<'_>) -> Vec<Panel> {
    let panels = view.sections.iter().flat_map(|section| {
        let groups = grouped(section, |one, other| {
            (one.state, one.settings) == (other.state, other.settings)
        });
        groups.into_iter().filter_map(move |mut rows| {
            rows.retain(|row| row.processes > 0);
            let first = rows.first().filter(|_| rows.len() > 1)?;
            let title = std::iter::once(section.title.clone()).chain(first.qualifiers());
            let title = title.collect::<Vec<_>>().join(", ");
            let tick = |row: &&Row<'_>| (f64::from(row.processes), row.processes.to_string());
            let axis = Axis::logarithmic_at("processes", rows.iter().map(tick).collect());
            lines(view, section, &rows, |row| Some(f64::from(row.processes)), axis, title)
        })
    });
    panels.collect()
}

pub(super) fn states(view: &View<'_>) -> Vec<Panel> {
    let panels = view.sections.iter().flat_map(|section| {
        let groups = grouped(section, |one, other| {
            (one.processes, one.settings) == (other.processes, other.settings)
        });
        groups.into_iter().filter_map(move |rows| {
            let first = rows.first().filter(|_| rows.len() > 1)?;
            let names: Vec<String> = rows.iter().map(|row| row.state.to_owned()).collect();
            let settings = first.settings.iter().map(|(key, value)| format!("{key}={value}"));
            let head = [section.title.clone(), number::processes(first.processes)];
            let title = head.into_iter().chain(settings).collect::<Vec<_>>().join(", ");
            let axis = Axis::places("state of the array", &names);
            let place = |row: &Row<'_>| Some(names.iter().position(|one| one == row.state)? as f64);
            lines(view, section, &rows, place, axis, title)
        })
    });
    panels.collect()
}
