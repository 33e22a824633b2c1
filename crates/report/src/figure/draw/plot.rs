//! Points by two axes.

use maud::{Markup, html};

use super::{Drawn, LETTER, SMALL, WIDTH, px, width_of};
use crate::figure::model::{Guide, Plot, Point, Scale, Series};
use crate::figure::palette::SERIES;

/// Height of the field.
const FIELD: f64 = 210.0;
/// Above it stands the name of the upward axis.
const TOP: f64 = 20.0;
/// Below it the numbers and the name of the other.
const AXIS: f64 = 34.0;
/// A line of the legend.
const LINE: f64 = 17.0;
/// Half the size of a marker.
const MARK: f64 = 3.6;

/// Where things stand.
struct Frame<'a> {
    plot: &'a Plot,
    left: f64,
    right: f64,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.plot.x.share(value)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + FIELD * (1.0 - self.plot.y.share(value))
    }
}

pub(super) fn draw(plot: &Plot) -> Drawn {
    let ticks = plot.y.ticks.iter().map(|(_, text)| width_of(text, SMALL));
    let left = ticks.fold(10.0, f64::max) + 8.0;
    let frame = Frame { plot, left, right: WIDTH - 14.0 };
    let (legend, lines) = legend(plot);
    let marks = html! {
        (axes(&frame))
        (guides(&frame))
        @if plot.zooms { (zoomed(&frame)) } @else {
            @for series in &plot.series { (series_of(&frame, series)) }
            (labels(&frame))
        }
        g transform=(format!("translate(0 {})", px(TOP + FIELD + AXIS + 6.0))) { (legend) }
    };
    Drawn { height: TOP + FIELD + AXIS + 8.0 + LINE * lines, marks }
}

fn axes(frame: &Frame<'_>) -> Markup {
    let Frame { plot, left, right } = *frame;
    let bottom = TOP + FIELD;
    html! {
        text.axis x="0" y="11" { (plot.y.label) }
        @for (value, text) in &plot.y.ticks {
            @let y = frame.y(*value);
            line.grid x1=(px(left)) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            text.tick.end x=(px(left - 5.0)) y=(px(y + 4.0)) { (text) }
        }
        g.xticks data-left=(px(left)) data-right=(px(right)) {
            @for (at, (value, text)) in plot.x.ticks.iter().enumerate() {
                @let x = frame.x(*value);
                @if !matches!(plot.x.scale, Scale::Places(_)) {
                    line.grid x1=(px(x)) x2=(px(x)) y1=(px(TOP)) y2=(px(bottom)) {}
                }
                @let last = at + 1 == plot.x.ticks.len() && x > right - 8.0;
                text.tick x=(px(if last { right + 12.0 } else { x })) y=(px(bottom + 14.0))
                    text-anchor=(if last { "end" } else { "middle" }) { (text) }
            }
        }
        text.axis.mid x=(px((left + right) / 2.0)) y=(px(bottom + 29.0)) { (plot.x.label) }
    }
}

fn guides(frame: &Frame<'_>) -> Markup {
    let bottom = TOP + FIELD;
    html! {
        @for (at, guide) in frame.plot.lines.iter().enumerate() {
            @match guide {
                Guide::Equal => {
                    @let (low, high) = common(frame.plot);
                    line.base x1=(px(frame.x(low))) y1=(px(frame.y(low)))
                        x2=(px(frame.x(high))) y2=(px(frame.y(high))) {}
                }
                Guide::Upright(value, word) => {
                    @let x = frame.x(*value);
                    line.chunk x1=(px(x)) x2=(px(x)) y1=(px(TOP)) y2=(px(bottom)) {}
                    @let (x, anchor) = beside(frame, x, word);
                    // Each on a line of its own: chunks may lie near one another.
                    text.note.val x=(px(x)) y=(px(TOP + 11.0 + 13.0 * at as f64)) text-anchor=(anchor) { (word) }
                }
                Guide::Level(value) => {
                    @let y = px(frame.y(*value));
                    line.base x1=(px(frame.left)) x2=(px(frame.right)) y1=(y) y2=(y) {}
                }
            }
        }
    }
}

/// Where a word beside an upright line begins or ends: where it has room.
fn beside(frame: &Frame<'_>, x: f64, word: &str) -> (f64, &'static str) {
    let wide = width_of(word, SMALL) + 4.0;
    if x + wide <= frame.right {
        (x + 4.0, "start")
    } else if x - wide >= frame.left {
        (x - 4.0, "end")
    } else {
        (frame.left + 2.0, "start")
    }
}

/// What both axes reach.
fn common(plot: &Plot) -> (f64, f64) {
    let ends = |scale| match scale {
        Scale::Linear(low, high) | Scale::Log(low, high) => (low, high),
        Scale::Places(count) => (0.0, count as f64),
    };
    let (x, y) = (ends(plot.x.scale), ends(plot.y.scale));
    (x.0.max(y.0), x.1.min(y.1))
}

fn series_of(frame: &Frame<'_>, series: &Series) -> Markup {
    let place = |point: &Point| (frame.x(point.x), frame.y(point.y));
    html! {
        @if series.joined && series.points.len() > 1 {
            polyline class=(line_class(series.style)) points=(points(&series.points, place)) {}
        }
        @if series.marked {
            @for point in &series.points {
                @let (x, y) = place(point);
                g role="img" aria-label=(point.words) {
                    circle cx=(px(x)) cy=(px(y)) r="9" fill="none" pointer-events="all" {}
                    @if let Some([low, high]) = point.interval {
                        @let (low, high) = (frame.y(low), frame.y(high));
                        @if low - high > 1.5 {
                            path.ci d=(format!("M{} {}V{}", px(x), px(low), px(high))) {}
                        }
                    }
                    (marker(series.style, x, y))
                }
            }
        }
    }
}

/// Lines in a picture of its own, which a page can show a part of.
fn zoomed(frame: &Frame<'_>) -> Markup {
    let (width, height) = (frame.right - frame.left, FIELD);
    let place = |point: &Point| {
        (frame.plot.x.share(point.x) * width, (1.0 - frame.plot.y.share(point.y)) * height)
    };
    let reach = match frame.plot.x.scale {
        Scale::Linear(low, high) => format!("{low} {high}"),
        _ => String::new(),
    };
    html! {
        svg.zoom x=(px(frame.left)) y=(px(TOP)) width=(px(width)) height=(px(height))
            viewBox=(format!("0 0 {} {}", px(width), px(height))) preserveAspectRatio="none"
            overflow="hidden" data-reach=(reach) {
            @for series in &frame.plot.series {
                g role="img" aria-label=(words(series)) {
                    polyline class=(line_class(series.style)) points=(points(&series.points, place)) {}
                }
            }
        }
    }
}

/// What a line shows, in words.
fn words(series: &Series) -> String {
    series.points.first().map_or_else(|| series.label.clone(), |point| point.words.clone())
}

fn points(points: &[Point], place: impl Fn(&Point) -> (f64, f64)) -> String {
    let text = |point: &Point| {
        let (x, y) = place(point);
        format!("{},{}", px(x), px(y))
    };
    points.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn line_class(style: usize) -> String {
    let dash = ["", " d1", " d2"][style / SERIES % 3];
    format!("s c{}{dash}", style % SERIES)
}

/// The marker of a series: six shapes, so that no two neighbours share one.
fn marker(style: usize, x: f64, y: f64) -> Markup {
    let at = format!("M{} {}", px(x), px(y));
    let m = MARK;
    let path = match style % 6 {
        0 => format!("{at}m-{m} 0a{m} {m} 0 1 0 {0} 0a{m} {m} 0 1 0 -{0} 0", 2.0 * m),
        1 => format!("{at}m-3.2 -3.2h6.4v6.4h-6.4z"),
        2 => format!("{at}m0 -4.4l4.2 7.4h-8.4z"),
        3 => format!("{at}m0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z"),
        4 => format!("{at}m0 4.4l4.2 -7.4h-8.4z"),
        _ => format!("{at}m-1.3 -4.4h2.6v3.1h3.1v2.6h-3.1v3.1h-2.6v-3.1h-3.1v-2.6h3.1z"),
    };
    html! { path class=(format!("m c{}", style % SERIES)) d=(path) {} }
}

/// Words beside points, each where it covers the fewest of what stands there already.
fn labels(frame: &Frame<'_>) -> Markup {
    let all = || frame.plot.series.iter().flat_map(|series| &series.points);
    let mut taken: Vec<[f64; 4]> = all()
        .map(|point| (frame.x(point.x), frame.y(point.y)))
        .map(|(x, y)| [x - 5.0, y - 5.0, x + 5.0, y + 5.0])
        .collect();
    let mut placed: Vec<(f64, f64, &str)> = Vec::new();
    for point in all().filter(|point| !point.label.is_empty()) {
        let (x, y, wide) = (frame.x(point.x), frame.y(point.y), width_of(&point.label, LETTER));
        let start = (x - wide / 2.0).clamp(2.0, (WIDTH - wide - 2.0).max(2.0));
        let mut places = vec![(x + 8.0, y + 4.0), (x - 8.0 - wide, y + 4.0)];
        let steps = (0..6).map(|step| 13.0 * f64::from(step));
        places.extend(steps.flat_map(|step| [(start, y - 9.0 - step), (start, y + 18.0 + step)]));
        let cost = |&(left, base): &(f64, f64)| {
            let own = [left, base - 10.0, left + wide, base + 2.0];
            let outside =
                left < 0.0 || left + wide > WIDTH || !(12.0..=TOP + FIELD).contains(&base);
            let over = taken.iter().map(|other| overlap(&own, other)).sum::<f64>();
            over + if outside { 1e6 } else { 0.0 } + ((left - x).abs() + (base - y).abs()) / 1e3
        };
        let best = places.iter().copied().min_by(|one, other| cost(one).total_cmp(&cost(other)));
        let Some((left, base)) = best else { continue };
        taken.push([left, base - 10.0, left + wide, base + 2.0]);
        placed.push((left, base, &point.label));
    }
    html! { @for (x, y, label) in placed { text.val x=(px(x)) y=(px(y)) { (label) } } }
}

fn overlap(one: &[f64; 4], other: &[f64; 4]) -> f64 {
    let width = one[2].min(other[2]) - one[0].max(other[0]);
    let height = one[3].min(other[3]) - one[1].max(other[1]);
    if width > 0.0 && height > 0.0 { width * height } else { 0.0 }
}

/// Each series with its colour, dash and marker, and how many lines that takes.
fn legend(plot: &Plot) -> (Markup, f64) {
    let named: Vec<&Series> = plot.series.iter().filter(|one| !one.label.is_empty()).collect();
    let (mut x, mut line) = (0.0, 0.0);
    let mut placed = Vec::new();
    for series in &named {
        let width = 26.0 + width_of(&series.label, LETTER) + 12.0;
        if x > 0.0 && x + width > WIDTH + 10.0 {
            (x, line) = (0.0, line + 1.0);
        }
        placed.push((*series, x, LINE * line + 11.0));
        x += width;
    }
    let markup = html! {
        @for (series, x, y) in placed {
            @if series.joined {
                line class=(line_class(series.style)) x1=(px(x)) x2=(px(x + 20.0)) y1=(px(y)) y2=(px(y)) {}
            }
            @if series.marked { (marker(series.style, x + 10.0, y)) }
            text x=(px(x + 25.0)) y=(px(y + 4.0)) { (series.label) }
        }
    };
    (markup, if named.is_empty() { 0.0 } else { line + 1.0 })
}
