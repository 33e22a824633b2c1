//! `raidlab drive validate`: a measured trace replayed on a model.

use std::path::PathBuf;

use raidlab_models::trace::{Report, Score, validate};
use serde_json::{Value, json};

use super::traces;
use crate::args::DriveValidate;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;

pub(super) fn run(options: &DriveValidate) -> Result<(), Failure> {
    let directory = traces();
    let trace = match &options.trace {
        Some(path) => path.clone(),
        None if options.name.ends_with(".toml") => {
            PathBuf::from(&options.name).with_extension("trace")
        }
        None => directory.join(format!("{}.trace", options.name)),
    };
    if options.trace.is_none() && !trace.exists() {
        let place = trace.display();
        let what = format!(
            "there is no {place}; name a trace with --trace FILE, or the directory of the traces in \
             RAIDLAB_TRACES"
        );
        return Err(Failure::input(what));
    }
    // A measured drive may be judged by a trace that lies elsewhere.
    let beside = directory.join(format!("{}.toml", options.name));
    let drive = if !options.name.ends_with(".toml") && beside.exists() {
        beside.display().to_string()
    } else {
        options.name.clone()
    };
    let report = validate(&drive, &trace.display().to_string(), options.seed);
    let report = report.map_err(Failure::input)?;
    output::print(&if options.json { as_json(&report) } else { as_text(&report) })
}

fn score_json(score: &Score) -> Value {
    json!({
        "requests": score.requests,
        "measured_mean_ms": score.measured_mean_ms,
        "modelled_mean_ms": score.modelled_mean_ms,
        "mean_error_percent": score.mean_error_percent,
        "demerit_ms": score.demerit_ms,
        "demerit_percent": score.demerit_percent,
        "p50_ratio": score.p50_ratio,
        "p95_ratio": score.p95_ratio,
        "p99_ratio": score.p99_ratio,
        "measured_read_hits_percent": score.measured_read_hits_percent,
        "modelled_read_hits_percent": score.modelled_read_hits_percent,
    })
}

fn as_json(report: &Report) -> String {
    pretty(&json!({
        "title": report.title,
        "drive": report.drive,
        "trace": report.trace,
        "full": score_json(&report.full),
        "sheet": report.sheet.as_ref().map(score_json),
        "disksim_demerit_percent": report.disksim_percent,
    }))
}

/// A row of the table: what, and how a score shows it.
type Row = (&'static str, fn(&Score) -> String);

const ROWS: [Row; 10] = [
    ("mean measured, ms", |score| format!("{:.3}", score.measured_mean_ms)),
    ("mean modelled, ms", |score| format!("{:.3}", score.modelled_mean_ms)),
    ("mean error, %", |score| format!("{:+.2}", score.mean_error_percent)),
    ("demerit, ms", |score| format!("{:.3}", score.demerit_ms)),
    ("demerit, % of the mean", |score| format!("{:.2}", score.demerit_percent)),
    ("p50 modelled / measured", |score| format!("{:.3}", score.p50_ratio)),
    ("p95 modelled / measured", |score| format!("{:.3}", score.p95_ratio)),
    ("p99 modelled / measured", |score| format!("{:.3}", score.p99_ratio)),
    ("read hits measured, %", |score| format!("{:.1}", score.measured_read_hits_percent)),
    ("read hits modelled, %", |score| format!("{:.1}", score.modelled_read_hits_percent)),
];

fn as_text(report: &Report) -> String {
    let (title, trace, requests) = (&report.title, &report.trace, report.full.requests);
    let mut text = format!("{title} ({}), {requests} requests of {trace}\n\n", report.drive);
    let heads = if report.sheet.is_some() { "      all  sheet only" } else { "    model" };
    text.push_str(&format!("{:24}{heads}\n", ""));
    for (what, show) in ROWS {
        text.push_str(&format!("{what:24} {:>8}", show(&report.full)));
        if let Some(sheet) = &report.sheet {
            text.push_str(&format!("    {:>8}", show(sheet)));
        }
        text.push('\n');
    }
    if report.sheet.is_some() {
        text.push_str(
            "\nall: every figure of the drive's file; sheet only: three seek points, outer and inner \
             rate, cache and overheads of the file\n",
        );
    }
    if let Some(percent) = report.disksim_percent {
        text.push_str(&format!("DiskSim 4.0 on this trace: demerit {percent:.1} % of the mean\n"));
    }
    text
}
