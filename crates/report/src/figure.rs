//! Figures of a results document: data and scales first, then SVG.
//!
//! [`FIGURES`] lists them all; each is made from the document alone, by [`figure`], as a [`Figure`]:
//! panels with axes, values, intervals and words. [`Figure::svg`](model::Figure::svg) draws it as a file of its own;
//! the page draws its panels one by one. What a document lacks is an error that says what it has.

mod cells;
pub(crate) mod draw;
mod layouts;
pub mod model;
mod pairs;
pub(crate) mod palette;
mod scale;
mod time;

pub(crate) use cells::{bars_of, words};
use raidlab_results::{Diff, Results};

use crate::view::View;
use crate::{ReportError, ReportErrorKind, number};
use model::{Figure, Panel};

/// A figure that there is.
pub struct FigureKind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// How it is read.
    pub caption: &'static str,
    /// What a document must have for it.
    pub needs: &'static str,
    make: fn(&View<'_>) -> Vec<Panel>,
}

/// All figures.
pub const FIGURES: [FigureKind; 16] = [
    FigureKind {
        name: "bars",
        title: "Layouts side by side",
        caption: "Bar: median. Line with caps: its 95 % interval. Dots: every round. Dashed: the \
                  baseline. Percent: against the baseline; of other states from the same layout \
                  healthy. ★ best of its row, or as good.",
        needs: "measured cells",
        make: cells::bars,
    },
    FigureKind {
        name: "percent",
        title: "Percent against the baseline",
        caption: "Bar: centre of the ratios of each round. Line with caps: its interval, for all \
                  layouts of the row together. Dots: every round. First the mean of a workload's \
                  percentages.",
        needs: "a baseline that was measured, and another layout",
        make: cells::percent,
    },
    FigureKind {
        name: "scaling",
        title: "Over the number of processes",
        caption: "Medians with their 95 % intervals; a line that rises in step with processes scales. \
                  Lines of layouts that are equal lie on one another.",
        needs: "cells of at least two process counts",
        make: cells::scaling,
    },
    FigureKind {
        name: "states",
        title: "Healthy, degraded, rebuilding",
        caption: "Medians with their 95 % intervals, for each layout in each state it has.",
        needs: "cells in states besides healthy (--states healthy,degraded,rebuilding)",
        make: cells::states,
    },
    FigureKind {
        name: "finish",
        title: "When each process was done",
        caption: "Dots: the first process, the second and so on, medians over the rounds. The further \
                  apart, the less fair.",
        needs: "finish times (done_s) of cells with at least two processes",
        make: time::finish,
    },
    FigureKind {
        name: "latency",
        title: "Latency percentiles",
        caption: "Half, 99 % and 99.9 % of reads and writes took at most so long, and the slowest; \
                  medians over the rounds, on a logarithmic axis. Lines of layouts that are equal lie on \
                  one another.",
        needs: "latencies (latency_ms)",
        make: time::percentiles,
    },
    FigureKind {
        name: "ecdf",
        title: "How many requests took how long",
        caption: "The share of reads and writes that took at most so long, medians over the rounds. \
                  Further left is better; a step is a kind of request. Lines of layouts that are equal lie \
                  on one another.",
        needs: "latency curves (latency_curve_ms)",
        make: time::ecdf,
    },
    FigureKind {
        name: "rate",
        title: "Rate over time",
        caption: "What ended within each bin of time of one round, the one in the middle of all. Lines \
                  of layouts that are equal lie on one another.",
        needs: "timelines",
        make: time::rate,
    },
    FigureKind {
        name: "rebuild",
        title: "A rebuild beside load",
        caption: "How far the rebuild was, the longest latency of the load beside it, and its rate, \
                  over the time of one round.",
        needs: "timelines of cells in the state `rebuilding`",
        make: time::rebuild,
    },
    FigureKind {
        name: "sweep",
        title: "Over the size of blocks",
        caption: "Medians with their 95 % intervals; dotted upright lines mark the chunks of the \
                  layouts.",
        needs: "one workload with at least two block sizes",
        make: layouts::sweep,
    },
    FigureKind {
        name: "heat",
        title: "Layouts by workloads",
        caption: "Each field: percent of the best median of its column; rates as they are, times by \
                  their inverse.",
        needs: "cells of at least two layouts",
        make: layouts::heat,
    },
    FigureKind {
        name: "busy",
        title: "What was busy",
        caption: "Percent of the time that each drive, path and processor was at work: what is near \
                  100 is what limits.",
        needs: "how busy resources were (busy)",
        make: layouts::busy,
    },
    FigureKind {
        name: "blocks",
        title: "Where chunks lie",
        caption: "Members side by side, rows of chunks from the start of the drives. Numbers: chunks \
                  of the array, ' a copy; P, Q: parity.",
        needs: "maps of the layouts (blocks)",
        make: layouts::blocks,
    },
    FigureKind {
        name: "choice",
        title: "Capacity, speed, safety",
        caption: "Right: more usable capacity. Up: faster, as the geometric mean over the healthy rows \
                  of percent of the best. Marker: how many lost members it survives, whichever they \
                  are.",
        needs: "cells of at least two layouts",
        make: layouts::choice,
    },
    FigureKind {
        name: "published",
        title: "Modelled against published",
        caption: "On the dashed line both are equal; below, how far each is off.",
        needs: "published figures (a replay)",
        make: pairs::published,
    },
    FigureKind {
        name: "residuals",
        title: "Modelled against measured",
        caption: "On the dashed line both are equal; below, how far each is off.",
        needs: "a second run of the same study (--against RUN)",
        make: |_| Vec::new(),
    },
];

/// The figure of this name, with at most so many panels.
///
/// # Errors
/// When there is none of that name, the document contradicts itself, or lacks what the figure shows.
pub fn figure(results: &Results, name: &str, most: usize) -> Result<Figure, ReportError> {
    let view = View::new(results)?;
    let kind = kind(name)?;
    let panels = (kind.make)(&view);
    if panels.is_empty() {
        return Err(lacking(kind, &available_in(&view)));
    }
    Ok(of_panels(kind, panels, most))
}

/// The figure of two documents against each other: what the model is off, or how cells changed.
///
/// # Errors
/// When they have no cell in common.
pub fn diff_figure(diff: &Diff, most: usize) -> Result<Figure, ReportError> {
    let kind = kind("residuals")?;
    let panels = pairs::residuals(diff);
    if panels.is_empty() {
        let reason = "the two documents have no cell in common whose values are above 0";
        return Err(ReportError::new(ReportErrorKind::NoSuchFigure, reason));
    }
    let mut figure = of_panels(kind, panels, most);
    figure.title = pairs::title(diff).to_owned();
    Ok(figure)
}

/// The names of the figures that a document has the data for.
///
/// # Errors
/// When the document contradicts itself.
pub fn available(results: &Results) -> Result<Vec<&'static str>, ReportError> {
    Ok(available_in(&View::new(results)?))
}

fn available_in(view: &View<'_>) -> Vec<&'static str> {
    FIGURES.iter().filter(|kind| !(kind.make)(view).is_empty()).map(|kind| kind.name).collect()
}

/// A figure of a view, where the document has the data for it.
pub(crate) fn of_view(view: &View<'_>, name: &str, most: usize) -> Option<Figure> {
    let kind = kind(name).ok()?;
    let panels = (kind.make)(view);
    (!panels.is_empty()).then(|| of_panels(kind, panels, most))
}

/// A figure without panels yet.
pub(crate) fn empty(name: &str) -> Figure {
    let kind = kind(name).unwrap_or(&FIGURES[0]);
    of_panels(kind, Vec::new(), 0)
}

fn kind(name: &str) -> Result<&'static FigureKind, ReportError> {
    FIGURES.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = FIGURES.iter().map(|kind| kind.name).collect();
        let reason = format!("there is no figure `{name}`; there are {}", number::listed(&names));
        ReportError::new(ReportErrorKind::NoSuchFigure, reason)
    })
}

fn of_panels(kind: &FigureKind, mut panels: Vec<Panel>, most: usize) -> Figure {
    let left_out = panels.len().saturating_sub(most);
    panels.truncate(most);
    let (title, caption) = (kind.title.to_owned(), kind.caption.to_owned());
    Figure { name: kind.name, title, caption, panels, left_out }
}

fn lacking(kind: &FigureKind, available: &[&str]) -> ReportError {
    let has = match available {
        [] => "it has the data for none".to_owned(),
        names => format!("it has the data for {}", number::listed(names)),
    };
    let reason = format!(
        "the figure `{}` needs {}, which this document does not have; {has}",
        kind.name, kind.needs
    );
    ReportError::new(ReportErrorKind::NoSuchFigure, reason)
}
