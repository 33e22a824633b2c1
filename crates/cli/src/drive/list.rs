//! `raidlab drive list`: the drives compiled in, and the measured ones that are there.

use std::path::Path;

use raidlab_models::{DriveSpec, Status, builtin};
use serde_json::{Value, json};

use super::{counts, kind_name, load_drive, traces};
use crate::args::DriveList;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;

pub(super) fn run(options: &DriveList) -> Result<(), Failure> {
    let drives = builtin().iter().map(|(name, _)| load_drive(name));
    let drives = drives.collect::<Result<Vec<_>, _>>()?;
    let directory = traces();
    let measured = measured(&directory);
    if options.json {
        let drives: Value = drives.iter().map(as_json).collect();
        return output::print(&pretty(&json!({ "drives": drives, "measured": measured })));
    }
    let mut text = format!(
        "{:24} {:13} {:>10}  {:>5} {:>4} {:>4}  {}\n",
        "name", "kind", "capacity", "sheet", "meas", "est", "drive"
    );
    for drive in &drives {
        let [sheet, measured, estimate] = counts(drive).map(|(_, count)| count);
        let capacity = format!("{:.1} GB", drive.capacity.bytes() as f64 / 1e9);
        text.push_str(&format!(
            "{:24} {:13} {capacity:>10}  {sheet:>5} {measured:>4} {estimate:>4}  {}\n",
            drive.name,
            kind_name(&drive.kind),
            drive.title
        ));
    }
    text.push_str("\nsheet, meas, est: figures from data sheets, measured, estimated\n");
    if !measured.is_empty() {
        let (names, place) = (measured.join(", "), directory.display());
        text.push_str(&format!(
            "measured drives for `raidlab drive validate` in {place}: {names}\n"
        ));
    }
    output::print(&text)
}

fn as_json(drive: &DriveSpec) -> Value {
    let count = |(status, count): (Status, usize)| (status.name(), count);
    json!({
        "name": drive.name,
        "kind": kind_name(&drive.kind),
        "title": drive.title,
        "capacity_bytes": drive.capacity.bytes(),
        "figures": counts(drive).map(count).into_iter().collect::<Value>(),
    })
}

/// Names with both parameters and a trace, sorted; none when there is no such directory.
fn measured(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let name = |path: &Path| Some(path.file_stem()?.to_str()?.to_owned());
    let is_trace = |path: &Path| path.extension().is_some_and(|end| end == "trace");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let traces = paths.filter(|path| is_trace(path) && path.with_extension("toml").exists());
    let mut names: Vec<_> = traces.filter_map(|path| name(&path)).collect();
    names.sort();
    names
}
