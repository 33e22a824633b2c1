//! A run as comma-separated values and as Markdown, from its JSON.

use raidlab_report::Sheet;
use serde_json::Value;

/// What each row of the values begins with: keys of the document.
const AXES: [&str; 8] =
    ["workload", "target", "layout", "drive", "filesystem", "clock", "copies", "seed"];
/// The kinds of operations of a phase.
const OPERATIONS: [&str; 3] = ["reads", "writes", "others"];
/// The figures of these.
const FIGURES: [(&str, &str); 7] = [
    ("count", ""),
    ("bytes", "B"),
    ("mean_ms", "ms"),
    ("p50_ms", "ms"),
    ("p99_ms", "ms"),
    ("p999_ms", "ms"),
    ("max_ms", "ms"),
];

/// A row for each figure: those of the workload without a phase, and those of each phase.
pub(super) fn csv(document: &Value) -> String {
    let mut sheet =
        Sheet::new(AXES.into_iter().chain(["phase", "operations", "metric", "unit", "value"]));
    let axes: Vec<String> = AXES.iter().map(|key| axis(document, key)).collect();
    let mut add = |own: [&Value; 5]| {
        sheet.rows.push(axes.iter().cloned().chain(own.map(text)).collect());
    };
    let nothing = Value::Null;
    for one in list(document, "values") {
        add([&nothing, &nothing, &one["metric"], &one["unit"], &one["value"]]);
    }
    let seconds = Value::from("s");
    for phase in list(document, "phases") {
        for metric in ["seconds", "cpu_s"] {
            add([&phase["name"], &nothing, &metric.into(), &seconds, &phase[metric]]);
        }
        for operations in OPERATIONS.into_iter().filter(|kind| phase[*kind]["count"] != 0) {
            for (metric, unit) in FIGURES {
                let value = &phase[operations][metric];
                add([&phase["name"], &operations.into(), &metric.into(), &unit.into(), value]);
            }
        }
    }
    sheet.csv()
}

/// What was run on what, its figures, and its phases.
pub(super) fn markdown(document: &Value) -> String {
    let mut facts = Sheet::new(["", "raidlab run"]);
    for key in
        ["workload", "description", "target", "layout", "drive", "filesystem", "clock", "seed"]
    {
        let value = axis(document, key);
        if !value.is_empty() {
            facts.rows.push(vec![key.to_owned(), value]);
        }
    }
    let host = document["host"].as_object().into_iter().flatten();
    facts.rows.extend(host.map(|(key, value)| vec![key.clone(), text(value)]));
    let mut values = Sheet::new(["metric", "value", "unit"]);
    for one in list(document, "values") {
        let value =
            if one["value"].is_null() { "too short to tell".into() } else { text(&one["value"]) };
        values.rows.push(vec![text(&one["metric"]), value, text(&one["unit"])]);
    }
    let heads = ["phase", "seconds", "operations", "count", "bytes", "p50 ms", "p99 ms", "max ms"];
    let mut phases = Sheet::new(heads);
    for phase in list(document, "phases") {
        for operations in OPERATIONS.into_iter().filter(|kind| phase[*kind]["count"] != 0) {
            let own = &phase[operations];
            let figures =
                ["count", "bytes", "p50_ms", "p99_ms", "max_ms"].map(|key| text(&own[key]));
            let head = [text(&phase["name"]), text(&phase["seconds"]), operations.to_owned()];
            phases.rows.push(head.into_iter().chain(figures).collect());
        }
    }
    let tables = [facts, values, phases];
    let shown = tables.iter().filter(|table| !table.rows.is_empty()).map(Sheet::markdown);
    shown.collect::<Vec<String>>().join("\n")
}

/// What stands for a key in a row; a drive by its name.
fn axis(document: &Value, key: &str) -> String {
    let value = &document[key];
    text(value.get("name").unwrap_or(value))
}

/// A value without quotation marks; nothing for null.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list<'a>(document: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    document[key].as_array().into_iter().flatten()
}
