//! The figures that programs print: bonnie++, dd and fio as installed, and `raidlab run --json`.
//!
//! A figure is `None` where the program itself says that its phase was too short to tell.

use serde_json::Value;

const MIB: f64 = 1024.0 * 1024.0;

/// Block write, rewrite and block read in KiB/s, from the one line of CSV that bonnie++ 2.00 prints for
/// programs (format 1.98: `bon_csv2html(1)`).
pub(crate) fn bonnie(output: &str) -> Result<Vec<Option<f64>>, String> {
    const CELLS: [usize; 3] = [11, 13, 17];
    let line = output.lines().find(|line| line.starts_with("1.98,"));
    let line = line.ok_or_else(|| unexpected("a line of CSV that begins with 1.98,", output))?;
    let cells: Vec<&str> = line.split(',').collect();
    let figure = |index: usize| match cells.get(index) {
        Some(cell) if !cell.is_empty() && cell.chars().all(|c| c == '+') => Ok(None),
        Some(cell) => number(cell).map(Some).ok_or_else(|| unexpected("a rate", cell)),
        None => Err(unexpected("more cells", line)),
    };
    CELLS.into_iter().map(figure).collect()
}

/// MiB/s: the bytes over the seconds of dd's last line, which are given to more digits than its rate.
pub(crate) fn dd(output: &str) -> Result<Vec<Option<f64>>, String> {
    let wanted = "a line `N bytes ... copied, N s, ...`";
    let figure = |line: &str| {
        let (bytes, rest) = line.split_once(" bytes ")?;
        let (_, rest) = rest.split_once("copied, ")?;
        let (seconds, _) = rest.split_once(" s,")?;
        let (bytes, seconds) = (number(bytes)?, number(seconds)?);
        (seconds > 0.0).then(|| bytes / seconds / MIB)
    };
    let figure = output.lines().find_map(figure);
    Ok(vec![Some(figure.ok_or_else(|| unexpected(wanted, output))?)])
}

/// Operations per second in the direction (`read` or `write`) of the only job, from fio's JSON.
pub(crate) fn fio(output: &str, direction: &str) -> Result<Vec<Option<f64>>, String> {
    // Notes of fio stand before the document.
    let start = output.find('{').unwrap_or(0);
    let document: Value = serde_json::from_str(&output[start..])
        .map_err(|error| unexpected(&format!("JSON ({error})"), output))?;
    let job = &document["jobs"][0];
    if let Some(error) = job["error"].as_i64().filter(|error| *error != 0) {
        return Err(format!("its job ended with error {error}"));
    }
    let figure = job[direction]["iops"].as_f64().filter(|iops| *iops > 0.0);
    Ok(vec![Some(figure.ok_or_else(|| unexpected("iops above 0", output))?)])
}

/// What `raidlab run --json -` told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ours {
    /// The metrics asked for, in that order.
    pub(crate) figures: Vec<Option<f64>>,
    /// What memory held at the start.
    pub(crate) memory: String,
    /// What its reader must know.
    pub(crate) warnings: Vec<String>,
}

/// These metrics from the document of `raidlab run --json -`.
pub(crate) fn ours(output: &str, metrics: &[&str]) -> Result<Ours, String> {
    let document: Value = serde_json::from_str(output)
        .map_err(|error| unexpected(&format!("JSON ({error})"), output))?;
    let values = document["values"].as_array().map_or(&[][..], Vec::as_slice);
    let figure = |metric: &&str| {
        let value = values.iter().find(|value| value["metric"] == **metric);
        let value = value.ok_or_else(|| unexpected(&format!("the metric {metric}"), output))?;
        Ok(value["value"].as_f64())
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let warnings = document["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(Ours {
        figures: metrics.iter().map(figure).collect::<Result<_, String>>()?,
        memory: text(&document["memory"]),
        warnings: warnings.iter().map(text).collect(),
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn unexpected(wanted: &str, found: &str) -> String {
    const MOST: usize = 400;
    let found: String = found.chars().take(MOST).collect();
    format!("expected {wanted} in its output, found `{found}`")
}
