//! Bars from left to right.

use maud::{Markup, html};

use super::{Drawn, LETTER, WIDTH, px, width_of};
use crate::figure::model::{Bar, Bars, Tone};

/// Height of a bar.
const BAR: f64 = 16.0;
/// Names up to this many letters stand beside their bar, longer ones above it.
const SHORT_NAME: usize = 11;
/// Room below the bars for the numbers of the axis and its name.
const AXIS: f64 = 36.0;
/// Dots lie on three lines, in turn, so that equal ones can be told apart.
const LANES: [f64; 3] = [-4.0, 0.0, 4.0];

/// Where things stand.
struct Frame<'a> {
    bars: &'a Bars,
    start: f64,
    end: f64,
    row: f64,
    names_above: bool,
    bottom: f64,
}

impl<'a> Frame<'a> {
    fn new(bars: &'a Bars) -> Self {
        let longest = bars.bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0);
        let names_above = longest > SHORT_NAME;
        let row = if names_above { BAR + 20.0 } else { BAR + 9.0 };
        let start = if names_above { 2.0 } else { 7.4 * longest as f64 + 2.0 };
        // Bold letters, and the star behind them, take more.
        let texts = bars.bars.iter().map(|bar| {
            if bar.best {
                width_of(&bar.text, 7.4) + 34.0
            } else {
                width_of(&bar.text, LETTER) + 18.0
            }
        });
        let room = texts.fold(40.0, f64::max).min(210.0);
        let bottom = row * bars.bars.len() as f64 + 2.0;
        Self { bars, start, end: WIDTH - room, row, names_above, bottom }
    }

    fn x(&self, value: f64) -> f64 {
        self.start + (self.end - self.start) * self.bars.axis.share(value)
    }

    /// The middle of a bar.
    fn y(&self, at: usize) -> f64 {
        self.row * (at as f64 + 1.0) - BAR / 2.0 - 2.0
    }
}

pub(super) fn draw(bars: &Bars) -> Drawn {
    let frame = Frame::new(bars);
    let marks = html! {
        (axis(&frame))
        @for (at, one) in bars.bars.iter().enumerate() { (bar(&frame, at, one)) }
        @if let Some(line) = bars.line {
            line.base x1=(px(frame.x(line))) x2=(px(frame.x(line))) y1="0" y2=(px(frame.bottom)) {}
        }
        // Above the line, so that it does not strike numbers through.
        @for (at, one) in bars.bars.iter().enumerate() { (label(&frame, at, one)) }
    };
    Drawn { height: frame.bottom + AXIS, marks }
}

fn axis(frame: &Frame<'_>) -> Markup {
    let middle = (frame.start + frame.end) / 2.0;
    html! {
        @for (value, text) in &frame.bars.axis.ticks {
            @let x = frame.x(*value);
            line.grid x1=(px(x)) x2=(px(x)) y1="0" y2=(px(frame.bottom)) {}
            @let anchor = if x < 14.0 { "start" } else { "middle" };
            text.tick x=(px(x)) y=(px(frame.bottom + 14.0)) text-anchor=(anchor) { (text) }
        }
        text.axis.mid x=(px(middle)) y=(px(frame.bottom + 29.0)) { (frame.bars.axis.label) }
    }
}

fn bar(frame: &Frame<'_>, at: usize, bar: &Bar) -> Markup {
    let y = frame.y(at);
    let zero = frame.x(0.0);
    html! {
        g role="img" aria-label=(bar.words) {
            // As large as the row, so that a finger hits it.
            rect x="0" y=(px(y - BAR / 2.0 - 3.0)) width=(WIDTH) height=(px(BAR + 6.0))
                fill="none" pointer-events="all" {}
            @if let Some(value) = bar.value {
                @let end = frame.x(value);
                rect class={ "bar " (tone(bar.tone)) } x=(px(zero.min(end))) y=(px(y - BAR / 2.0))
                    width=(px((end - zero).abs())) height=(BAR) {}
            }
            @if let Some([low, high]) = bar.interval {
                path.ci d=(whisker(frame.x(low), frame.x(high), y)) {}
            }
            @if !bar.dots.is_empty() {
                @let dots = dots(frame, &bar.dots, y);
                path.halo d=(dots) {}
                path.dots d=(dots) {}
            }
        }
    }
}

/// All dots as one path: a stroke of no length has a round cap.
fn dots(frame: &Frame<'_>, dots: &[f64], y: f64) -> String {
    let dot = |(at, dot): (usize, &f64)| {
        format!("M{} {}h0", px(frame.x(*dot)), px(y + LANES[at % LANES.len()]))
    };
    dots.iter().enumerate().map(dot).collect()
}

/// The name, and the text behind the bar.
fn label(frame: &Frame<'_>, at: usize, bar: &Bar) -> Markup {
    let y = frame.y(at);
    let ends =
        bar.value.into_iter().chain(bar.interval.map(|one| one[1])).chain(bar.dots.iter().copied());
    let behind = ends.map(|end| frame.x(end)).fold(frame.x(0.0), f64::max) + 7.0;
    html! {
        @if frame.names_above {
            text.val x=(px(frame.start)) y=(px(y - BAR / 2.0 - 4.0)) { (bar.label) }
        } @else {
            text.end x=(px(frame.start - 6.0)) y=(px(y + 4.0)) { (bar.label) }
        }
        text.val.best[bar.best] x=(px(behind)) y=(px(y + 4.0)) {
            (bar.text) @if bar.best { " ★" }
        }
    }
}

const fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Faster => "faster",
        Tone::Slower => "slower",
        Tone::Same => "same",
    }
}

/// A line from the low to the high end with a cap at each.
fn whisker(low: f64, high: f64, y: f64) -> String {
    let (low, high, y) = (px(low), px(high), px(y));
    format!("M{low} {y}H{high}M{low} {y}m0 -5v10M{high} {y}m0 -5v10")
}
