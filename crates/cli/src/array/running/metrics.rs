//! A running array in the text format that Prometheus reads.

use std::fmt::Write;

use raidlab_targets::NbdReport;
use serde_json::Value;

/// States of members, as a status has them.
const STATES: [&str; 5] = ["in service", "rebuilding", "being replaced", "failed", "missing"];

/// Metrics of an array of a name, from its status and what its NBD clients do.
pub(super) fn text(name: &str, status: &Value, report: Option<NbdReport>) -> String {
    // Names of sockets and exports are plain: nothing in them has a meaning in a label.
    let label = format!("array=\"{name}\"");
    let mut text = String::new();
    let members = status["members"].as_array().map_or(&[][..], Vec::as_slice);
    head(&mut text, "members", "gauge", "Members by state");
    for state in STATES {
        let count = members.iter().filter(|member| member["state"] == state).count();
        let labels = format!("{label},state=\"{state}\"");
        line(&mut text, "members", &labels, count as u64);
    }
    let number = |key: &str| status[key].as_u64().unwrap_or(0);
    let flag = |key: &str| u64::from(status[key] == true);
    let work = |key: &str| 512 * status["work"][key].as_u64().unwrap_or(0);
    let mismatched = status["scrubbed"]["mismatched_sectors"].as_u64().unwrap_or(0);
    for (metric, kind, help, value) in [
        ("size_bytes", "gauge", "Bytes the array holds", number("bytes")),
        ("survives_more", "gauge", "Members that may still be lost", number("survives_more")),
        ("lost", "gauge", "1 if more members are missing than the level survives", flag("lost")),
        ("consistent", "gauge", "1 if redundancy agrees everywhere", flag("consistent")),
        ("work_done_bytes", "gauge", "Of each member, by what goes on", work("done_sectors")),
        ("work_bytes", "gauge", "Of each member, until that ends", work("of_sectors")),
        ("scrubs_total", "counter", "Checks and repairs that ended", number("scrubs")),
        ("mismatched_bytes", "gauge", "Found by the last check or repair", 512 * mismatched),
    ] {
        head(&mut text, metric, kind, help);
        line(&mut text, metric, &label, value);
    }
    if let Some(report) = report {
        clients(&mut text, &label, &report);
    }
    text
}

fn clients(text: &mut String, label: &str, report: &NbdReport) {
    let counters = &report.counters;
    head(text, "nbd_requests_total", "counter", "Requests of NBD clients answered");
    for (command, count) in [
        ("read", counters.reads),
        ("write", counters.writes),
        ("flush", counters.flushes),
        ("trim", counters.trims),
        ("write_zeroes", counters.zeroes),
        ("other", counters.others),
    ] {
        line(text, "nbd_requests_total", &format!("{label},command=\"{command}\""), count);
    }
    for (metric, kind, help, value) in [
        ("nbd_clients", "gauge", "NBD clients connected to the array", report.clients.into()),
        ("nbd_connections_total", "counter", "NBD clients so far", counters.connections),
        ("nbd_errors_total", "counter", "Requests answered with an error", counters.errors),
        ("nbd_read_bytes_total", "counter", "Bytes read by NBD clients", counters.bytes_read),
        ("nbd_written_bytes_total", "counter", "Written by NBD clients", counters.bytes_written),
        ("nbd_memory_bytes", "gauge", "Of the server, for data on their way", report.memory),
        ("nbd_refused_total", "counter", "Of the server: too many connections", report.refused),
        ("nbd_dropped_total", "counter", "Of the server: clients dropped", report.dropped),
    ] {
        head(text, metric, kind, help);
        line(text, metric, label, value);
    }
}

fn head(text: &mut String, metric: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP raidlab_{metric} {help}\n# TYPE raidlab_{metric} {kind}");
}

fn line(text: &mut String, metric: &str, labels: &str, value: u64) {
    let _ = writeln!(text, "raidlab_{metric}{{{labels}}} {value}");
}
