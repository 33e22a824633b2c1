//! Values in pairs: modelled against published or measured, one run against another.

use raidlab_results::Origin;
use raidlab_results::diff::{CellDiff, Diff, DiffKind, Side};

use super::model::{Axis, Body, Guide, Panel, Plot, Point, Series};
use super::time::extent;
use crate::number;
use crate::terminal::diff as words;
use crate::view::View;

/// A pair of values above nought.
struct Pair {
    /// What the model is held against, or what was before.
    given: f64,
    found: f64,
    unit: String,
    words: String,
    /// The place of its series.
    series: usize,
}

/// Names of the axes and of the series.
struct Names<'a> {
    given: &'a str,
    found: &'a str,
    series: &'a [&'a str],
    off: &'a str,
}

pub(super) fn published(view: &View<'_>) -> Vec<Panel> {
    let pairs = view.cells().filter_map(|cell| {
        let one = cell.published.as_ref()?;
        let words = format!(
            "{}: {} against {} published, {}",
            cell.title(),
            number::with_unit(cell.median, &cell.unit),
            number::number(one.value),
            number::percent(one.error_percent)
        );
        let (unit, series) = (cell.unit.clone(), usize::from(one.calibrated));
        Some(Pair { given: one.value, found: cell.median, unit, words, series })
    });
    let names = Names {
        given: "published",
        found: "modelled",
        series: &["not fitted", "parameters were fitted to it"],
        off: "% off what was published",
    };
    panels(pairs.collect(), &names)
}

pub(super) const fn title(diff: &Diff) -> &'static str {
    match diff.kind {
        DiffKind::Residual => words::heading(diff),
        DiffKind::Change => "After against before",
    }
}

pub(super) fn residuals(diff: &Diff) -> Vec<Panel> {
    let mut workloads: Vec<&str> = Vec::new();
    let mut pairs = Vec::new();
    for cell in &diff.cells {
        let at = workloads.iter().position(|one| *one == cell.name.workload);
        let series = at.unwrap_or_else(|| {
            workloads.push(&cell.name.workload);
            workloads.len() - 1
        });
        let CellDiff { before, after, .. } = *cell;
        let name = &cell.name;
        let off =
            cell.percent.map_or_else(String::new, |one| format!(", {}", number::percent(one)));
        let words = format!(
            "{}, {}, {}: {} against {}{off}",
            name.layout,
            name.workload,
            number::processes(name.processes),
            number::with_unit(after, &name.unit),
            number::number(before)
        );
        pairs.push(Pair { given: before, found: after, unit: name.unit.clone(), words, series });
    }
    let title = |title, side: &Side| words::side_title(diff.kind, title, side.origin);
    let (given, found) = (title("before", &diff.before), title("after", &diff.after));
    let off = match (diff.kind, diff.before.origin) {
        (DiffKind::Change, _) => "% of change",
        (DiffKind::Residual, Origin::Kernel) => "% off the kernel",
        (DiffKind::Residual, _) => "% off what was measured",
    };
    panels(pairs, &Names { given, found, series: &workloads, off })
}

/// For each unit a scatter with the line of equals, and below it what each is off.
fn panels(mut pairs: Vec<Pair>, names: &Names<'_>) -> Vec<Panel> {
    pairs.retain(|one| one.given > 0.0 && one.found > 0.0);
    let mut units: Vec<String> = Vec::new();
    for one in &pairs {
        if !units.contains(&one.unit) {
            units.push(one.unit.clone());
        }
    }
    let mut panels = Vec::new();
    for unit in units {
        let own: Vec<&Pair> = pairs.iter().filter(|one| one.unit == unit).collect();
        let (low, high) = extent(own.iter().flat_map(|one| [one.given, one.found]));
        let axis = |what: &str| Axis::logarithmic(format!("{what}, {unit}"), low, high);
        let scatter = Plot {
            x: axis(names.given),
            y: axis(names.found),
            series: series(&own, names, |one| one.found),
            lines: vec![Guide::Equal],
            zooms: false,
        };
        let off = |one: &Pair| (one.found / one.given - 1.0) * 100.0;
        let ends = own.iter().map(|one| off(one));
        let (least, most) =
            ends.fold((0.0, 0.0), |(a, b): (f64, f64), one| (a.min(one), b.max(one)));
        let residuals = Plot {
            x: axis(names.given),
            y: Axis::linear(names.off, least, most, (1.0, "")),
            series: series(&own, names, off),
            lines: vec![Guide::Level(0.0)],
            zooms: false,
        };
        let count = number::counted(own.len(), "cell");
        panels.push(Panel { title: format!("{unit}, {count}"), body: Body::Plot(scatter) });
        panels.push(Panel { title: format!("{unit}, {}", names.off), body: Body::Plot(residuals) });
    }
    panels
}

fn series(own: &[&Pair], names: &Names<'_>, y: impl Fn(&Pair) -> f64) -> Vec<Series> {
    let of = |(style, label): (usize, &&str)| {
        let point = |one: &&&Pair| {
            let (x, y, words) = (one.given, y(one), one.words.clone());
            Point { x, y, interval: None, label: String::new(), words }
        };
        let points: Vec<Point> =
            own.iter().filter(|one| one.series == style).map(|one| point(&one)).collect();
        Series { label: (*label).to_owned(), style, points, joined: false, marked: true }
    };
    let all = names.series.iter().enumerate().map(of);
    all.filter(|one| !one.points.is_empty()).collect()
}
