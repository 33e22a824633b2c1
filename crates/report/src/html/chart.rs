//! Bar charts as inline SVG: a bar for each layout, a whisker for its range, a line for the
//! baseline.
//!
//! Colours come from classes of the page's style sheet, so they follow light and dark mode; every
//! bar also carries its number, so nothing depends on colour.

use maud::{Markup, html};
use raidlab_results::document::Cell;

use super::{tooltip, verdict_class};
use crate::view::{Mark, Row, Section, View, extent};
use crate::{number, shown};

/// Width of the picture in its own units, which are about a pixel each.
const WIDTH: f64 = 420.0;
/// Where bars end at the most; behind them stands the number.
const BARS_END: f64 = 312.0;
/// Height of a bar.
const BAR: f64 = 16.0;
/// Names up to this many characters stand beside their bar, longer ones above it.
const SHORT_NAME: usize = 11;
/// Room for a name beside its bar, in units for each character of the longest.
const CHARACTER: f64 = 7.4;
/// Room below the bars for the numbers of the axis.
const AXIS: f64 = 22.0;

/// The axis of a chart: from 0 to `top` in `ticks` steps, which are labelled in `unit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    step: f64,
    ticks: u32,
    /// How much of what is shown is one of the unit, and its name.
    unit: (f64, &'static str),
}

impl Scale {
    /// Three to five steps, round in their unit, that reach `largest`.
    fn reaching(largest: f64, unit: (f64, &'static str)) -> Self {
        if largest <= 0.0 {
            return Self { step: 1.0, ticks: 1, unit };
        }
        let largest = largest / unit.0;
        let mut power = 1.0;
        while power * 10.0 <= largest {
            power *= 10.0;
        }
        while power > largest {
            power /= 10.0;
        }
        // `largest` is now 1 to 10 times `power`.
        let share = largest / power;
        let step = match share {
            _ if share <= 1.0 => 0.25,
            _ if share <= 2.0 => 0.5,
            _ if share <= 4.0 => 1.0,
            _ if share <= 8.0 => 2.0,
            _ => 2.5,
        };
        let mut ticks = 1;
        while step * f64::from(ticks) < share {
            ticks += 1;
        }
        Self { step: step * power * unit.0, ticks, unit }
    }

    fn top(self) -> f64 {
        self.step * f64::from(self.ticks)
    }
}

/// One scale for each row; rows that differ in processes and state only share theirs, so that
/// their charts can be compared by eye.
pub(super) fn scales(section: &Section<'_>) -> Vec<Scale> {
    let largest = |row: &Row<'_>| {
        let known = row.cells.iter().flatten().filter(|cell| !shown::is_unknown(cell));
        let ends = known.map(|cell| extent(cell).1);
        ends.fold(0.0, |most, end| if end > most { end } else { most })
    };
    section
        .rows
        .iter()
        .map(|row| {
            let alike = section.rows.iter().filter(|other| other.settings == row.settings);
            let largest = alike.map(largest).fold(0.0, |a, b| if b > a { b } else { a });
            let metric = row.cells.iter().flatten().next().map_or("", |cell| cell.metric.as_str());
            Scale::reaching(largest, shown::axis_unit(metric, largest))
        })
        .collect()
}

/// Where things stand in a chart.
struct Frame {
    scale: Scale,
    bars_start: f64,
    row_height: f64,
    names_above: bool,
    bottom: f64,
}

impl Frame {
    fn new(view: &View<'_>, row: &Row<'_>, scale: Scale) -> Self {
        let names = view.results.layouts.iter().map(|layout| layout.name.chars().count());
        let longest = names.max().unwrap_or(0);
        let names_above = longest > SHORT_NAME;
        let row_height = if names_above { BAR + 20.0 } else { BAR + 9.0 };
        let bars_start = if names_above { 2.0 } else { CHARACTER * longest as f64 };
        let bottom = row_height * row.measured() as f64 + 2.0;
        Self { scale, bars_start, row_height, names_above, bottom }
    }

    /// Along the axis; what is below nought stands at nought.
    fn x(&self, value: f64) -> f64 {
        let value = if value > 0.0 { value } else { 0.0 };
        self.bars_start + (BARS_END - self.bars_start) * value / self.scale.top()
    }

    /// The middle of a bar.
    fn y(&self, bar: usize) -> f64 {
        self.row_height * (bar as f64 + 1.0) - BAR / 2.0 - 2.0
    }
}

/// The chart of a row; `id` is unique in the page.
pub(super) fn chart(
    view: &View<'_>,
    section: &Section<'_>,
    row: &Row<'_>,
    scale: Scale,
    id: &str,
) -> Markup {
    let frame = Frame::new(view, row, scale);
    let bars: Vec<(usize, &Cell)> =
        row.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, (*cell)?))).collect();
    let height = frame.bottom + AXIS;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-labelledby=(format!("{id}-t {id}-d")) {
            title id=(format!("{id}-t")) {
                (section.title) ", " (row.label()) ": " (shown::direction(section))
            }
            desc id=(format!("{id}-d")) { (description(view, section, row)) }
            (axis(&frame))
            @for (place, (_, cell)) in bars.iter().enumerate() {
                (bar(section, &frame, place, cell))
            }
            @if let Some(value) = row.baseline.filter(|_| !row.has_unknown()) {
                line.baseline x1=(px(frame.x(value))) x2=(px(frame.x(value)))
                    y1="0" y2=(px(frame.bottom)) {}
            }
            // Above the baseline, so that it does not strike numbers through.
            @for (place, (layout, cell)) in bars.iter().enumerate() {
                (label(view, row, &frame, place, (*layout, cell)))
            }
        }
    }
}

fn axis(frame: &Frame) -> Markup {
    html! {
        @for tick in 0..=frame.scale.ticks {
            @let value = frame.scale.step * f64::from(tick);
            @let x = px(frame.x(value));
            line.grid x1=(x) x2=(x) y1="0" y2=(px(frame.bottom)) {}
            @let anchor = if tick == 0 && frame.names_above { "start" } else { "middle" };
            text.tick x=(x) y=(px(frame.bottom + 15.0)) text-anchor=(anchor) {
                (tick_label(value / frame.scale.unit.0))
                @if tick > 0 && !frame.scale.unit.1.is_empty() {
                    (number::NO_BREAK) (frame.scale.unit.1)
                }
            }
        }
    }
}

fn bar(section: &Section<'_>, frame: &Frame, place: usize, cell: &Cell) -> Markup {
    let (low, high) = shown_extent(cell);
    let y = frame.y(place);
    let width = frame.x(shown_median(cell)) - frame.bars_start;
    html! {
        g {
            title { (cell.layout) "\n" (tooltip(cell, section.unit)) }
            rect class={ "bar " (verdict_class(cell)) } x=(px(frame.bars_start))
                y=(px(y - BAR / 2.0)) width=(px(width)) height=(BAR) {}
            @if high > low { path.whisker d=(whisker(frame.x(low), frame.x(high), y)) {} }
        }
    }
}

/// Where a bar ends: what is not known has none.
fn shown_median(cell: &Cell) -> f64 {
    if shown::is_unknown(cell) { 0.0 } else { cell.median }
}

/// The smallest and the largest sample, of what is known.
fn shown_extent(cell: &Cell) -> (f64, f64) {
    if shown::is_unknown(cell) { (0.0, 0.0) } else { extent(cell) }
}

/// The layout's name, and its number behind the bar.
fn label(
    view: &View<'_>,
    row: &Row<'_>,
    frame: &Frame,
    place: usize,
    (layout, cell): (usize, &Cell),
) -> Markup {
    let y = frame.y(place);
    let best = row.mark(layout) == Mark::Best;
    let (median, high) = (frame.x(shown_median(cell)), frame.x(shown_extent(cell).1));
    let behind = if high > median { high } else { median } + 6.0;
    html! {
        @if frame.names_above {
            text x=(px(frame.bars_start)) y=(px(y - BAR / 2.0 - 4.0)) { (cell.layout) }
        } @else {
            text x=(px(frame.bars_start - 6.0)) y=(px(y + 4.0)) text-anchor="end" {
                (cell.layout)
            }
        }
        text.value.best[best] x=(px(behind)) y=(px(y + 4.0)) {
            (shown::value(cell))
            @if let Some(percent) = shown::percent(view, layout, cell) {
                tspan.percent dx="5" { (number::percent(percent.value)) }
            }
            @if best { tspan dx="4" { "★" } }
        }
    }
}

/// A line from the smallest to the largest sample with a cap at each end.
fn whisker(low: f64, high: f64, y: f64) -> String {
    let (low, high, y) = (px(low), px(high), px(y));
    format!("M{low} {y}H{high}M{low} {y}m0 -4v8M{high} {y}m0 -4v8")
}

/// The chart in words.
fn description(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> String {
    let cells = row.cells.iter().enumerate();
    let parts: Vec<String> = cells
        .filter_map(|(at, cell)| {
            let cell = (*cell)?;
            let value = shown::value_with_unit(cell, section.unit);
            let percent = shown::percent(view, at, cell).map_or_else(String::new, |percent| {
                format!(", {}", number::percent(percent.value))
            });
            Some(format!("{} {value}{percent}", cell.layout))
        })
        .collect();
    format!("{}.", parts.join("; "))
}

/// Ticks are round numbers, so they need no digits beyond those.
fn tick_label(value: f64) -> String {
    let text = number::number(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A coordinate to a tenth of a unit.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_round_and_reach_the_largest_value() {
        for (largest, step, ticks) in [
            (0.0, 1.0, 1),
            (0.004, 0.001, 4),
            (1.0, 0.25, 4),
            (1.3, 0.5, 3),
            (98.0, 25.0, 4),
            (762.0, 200.0, 4),
            (1_234.0, 500.0, 3),
        ] {
            let scale = Scale::reaching(largest, (1.0, ""));
            assert!((scale.step - step).abs() < 1e-9 * step, "{largest}: {scale:?}");
            assert_eq!(scale.ticks, ticks, "{largest}");
            assert!(scale.top() >= largest, "{largest}: {scale:?}");
        }
    }

    #[test]
    fn the_axis_of_rebuilds_is_in_hours_or_days() {
        for (seconds, step, unit) in [
            (60.0, 20.0, "s"),
            (1_500.0, 10.0 * 60.0, "min"),
            (39_070.0, 5.0 * 3_600.0, "h"),
            (397_473.0, 2.0 * 86_400.0, "d"),
        ] {
            let scale = Scale::reaching(seconds, shown::axis_unit("rebuild_s", seconds));
            assert!((scale.step - step).abs() < 1e-6 * step, "{seconds}: {scale:?}");
            assert!(scale.unit.1 == unit && scale.top() >= seconds, "{seconds}: {scale:?}");
        }
        assert_eq!(shown::axis_unit("iops", 39_070.0), (1.0, ""));
    }

    #[test]
    fn ticks_and_coordinates_are_short() {
        assert_eq!(tick_label(2.5), "2.5");
        assert_eq!(tick_label(200.0), "200");
        assert_eq!(px(12.0), "12");
        assert_eq!(px(12.34), "12.3");
    }
}
