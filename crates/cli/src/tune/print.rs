//! What was found, as a table and as JSON.

use std::fmt::Write;

use raidlab_core::Size;
use raidlab_explore::tune::{self, Ended};
use raidlab_study::Study;
use serde_json::{Value, json};

use super::Tuned;
use super::args::Readahead;
use crate::json::pretty;

/// What Linux calls the device that the array is.
fn device(study: &Study, tuned: &Tuned<'_>) -> &'static str {
    let members = study.layouts[tuned.layout.index].layout.drives();
    if members == 1 { "/dev/sdX" } else { "/dev/mdX" }
}

fn command(study: &Study, tuned: &Tuned<'_>) -> String {
    tuned.layout.knob.command(tuned.found.knee, device(study, tuned))
}

/// Why windows were not doubled any further.
fn ended(tuned: &Tuned<'_>, options: &Readahead) -> String {
    match tuned.found.ended {
        Ended::NoGain => format!("two windows in a row gained less than {} %", options.gain),
        Ended::Most => format!("the next window is larger than --most {}", options.most),
    }
}

pub(super) fn table(study: &Study, options: &Readahead, tuned: &[Tuned<'_>]) -> String {
    let files = match options.processes {
        1 => format!("one process reads a file of {}", options.size),
        many => format!("{many} processes read a file of {} each", options.size),
    };
    let seeds =
        if options.seeds == 1 { "1 seed".into() } else { format!("{} seeds", options.seeds) };
    // Writing to a string does not fail.
    let mut out = format!("read-ahead: {}\n{files}; virtual clock; {seeds}\n", study.title);
    for one in tuned {
        let _ = layout(&mut out, study, options, one);
    }
    out
}

fn layout(
    out: &mut String,
    study: &Study,
    options: &Readahead,
    tuned: &Tuned<'_>,
) -> Result<(), std::fmt::Error> {
    let (layout, found) = (tuned.layout, tuned.found);
    let host = tune::host(study, layout.index);
    let name = &study.layouts[layout.index].name;
    writeln!(out, "\n{name} on {}", host.kernel)?;
    let figure = layout.knob.name();
    writeln!(out, "  {:>9}  {figure:>12}  {:>8}  {:>17}", "window", "MB/s", "least to most")?;
    for point in layout.search.points() {
        let (least, most) = point.spread();
        let spread = format!("{least:.1} to {most:.1}");
        let mut marks = Vec::new();
        let known = [
            (point.window == layout.default, "default"),
            (point.window == found.knee, "knee"),
            (point.window == found.best, "best"),
        ];
        marks.extend(known.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark));
        let (window, setting) = (Size(point.window).to_string(), layout.knob.figure(point.window));
        let row = format!(
            "  {window:>9}  {setting:>12}  {:>8.1}  {spread:>17}  {}",
            point.mean(),
            marks.join(", ")
        );
        writeln!(out, "{}", row.trim_end())?;
    }
    let (knee, best) = (Size(found.knee), Size(found.best));
    if found.knee == found.best {
        writeln!(
            out,
            "  knee: {knee}, the best; no smaller one that was tried is within {} % of it",
            options.margin
        )?;
    } else {
        let less = (1.0 - found.knee_rate / found.best_rate) * 100.0;
        writeln!(
            out,
            "  knee: {knee}, the smallest within {} % of the best ({best}): {less:.1} % less",
            options.margin
        )?;
    }
    writeln!(out, "  ended: {}", ended(tuned, options))?;
    let note = if found.knee == layout.default { "  (as it is by default)" } else { "" };
    writeln!(out, "  {}{note}", command(study, tuned))
}

pub(super) fn json(study: &Study, options: &Readahead, tuned: &[Tuned<'_>]) -> String {
    let layouts = tuned.iter().map(|one| {
        let (layout, found) = (one.layout, one.found);
        let points = layout.search.points().into_iter().map(|point| {
            let (least, most) = point.spread();
            json!({
                "window": point.window,
                "setting": layout.knob.figure(point.window),
                "mb_per_s": point.mean(),
                "least": least,
                "most": most,
                "samples": point.rates,
            })
        });
        json!({
            "layout": study.layouts[layout.index].name,
            "kernel": tune::host(study, layout.index).kernel.name(),
            "setting": layout.knob.name(),
            "default": layout.default,
            "best": found.best,
            "knee": found.knee,
            "command": command(study, one),
            "ended": ended(one, options),
            "points": points.collect::<Value>(),
        })
    });
    pretty(&json!({
        "raidlab": env!("CARGO_PKG_VERSION"),
        "study": study.title,
        "clock": "virtual",
        "seed": study.seed,
        "seeds": options.seeds,
        "processes": options.processes,
        "size": options.size.0,
        "gain_percent": options.gain,
        "margin_percent": options.margin,
        "layouts": layouts.collect::<Value>(),
    }))
}
