//! What a figure is before it is drawn: data, scales and words.

pub use super::scale::{Axis, Scale};

/// A figure of a results document.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, as `raidlab plot` has it.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// How it is read.
    pub caption: String,
    /// One picture below the other; at least one.
    pub panels: Vec<Panel>,
    /// Panels that are left out, as they would be too many.
    pub left_out: usize,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What tells it from the others.
    pub title: String,
    /// What is drawn.
    pub body: Body,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A bar for each thing.
    Bars(Bars),
    /// Points by two axes.
    Plot(Plot),
    /// A table of coloured fields.
    Grid(Grid),
}

/// Bars from left to right, one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The axis.
    pub axis: Axis,
    /// From the first to the last.
    pub bars: Vec<Bar>,
    /// What others are compared with.
    pub line: Option<f64>,
}

/// How something stands to what it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Better.
    Faster,
    /// Worse.
    Slower,
    /// Neither, or not known.
    Same,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Whose.
    pub label: String,
    /// Where it ends; without, there is no bar.
    pub value: Option<f64>,
    /// The interval of the value.
    pub interval: Option<[f64; 2]>,
    /// Single values: a dot each.
    pub dots: Vec<f64>,
    /// What is written behind it.
    pub text: String,
    /// How it stands.
    pub tone: Tone,
    /// It is marked as the best.
    pub best: bool,
    /// All of it in words.
    pub words: String,
}

/// Points by two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Along.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is shown.
    pub series: Vec<Series>,
    /// Lines that help to read it.
    pub lines: Vec<Guide>,
    /// Whether a part of it can be looked at closely along x.
    pub zooms: bool,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Whose; the legend shows it.
    pub label: String,
    /// Its place among colours, dashes and markers.
    pub style: usize,
    /// From left to right.
    pub points: Vec<Point>,
    /// Whether a line joins them.
    pub joined: bool,
    /// Whether each has a marker.
    pub marked: bool,
}

/// A point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Along.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// The interval of `y`.
    pub interval: Option<[f64; 2]>,
    /// What is written beside it; empty for nothing.
    pub label: String,
    /// All of it in words.
    pub words: String,
}

/// A line that helps to read a plot.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// Where both axes have the same value.
    Equal,
    /// At a value of x, with a word.
    Upright(f64, String),
    /// At a value of y.
    Level(f64),
}

/// A table of coloured fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The heads of the columns.
    pub columns: Vec<String>,
    /// A head and a field for each column; `None` where there is nothing.
    pub rows: Vec<(String, Vec<Option<Field>>)>,
    /// What the colours mean; empty where they are explained elsewhere.
    pub legend: String,
}

/// A field of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What is written in it.
    pub text: String,
    /// How strong its colour is, 0 to 1.
    pub share: f64,
    /// It is parity: of another colour.
    pub parity: bool,
    /// All of it in words.
    pub words: String,
}
