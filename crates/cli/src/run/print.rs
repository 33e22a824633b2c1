//! What a run measured: for people, and as JSON.

use std::fmt::Write;

use raidlab_core::{Nanos, Size};
use raidlab_workload::{IoRecord, KINDS, PhaseRecord, RunRecord, Workload};
use serde_json::{Value, json};

use super::Run;
use super::setup::Setup;
use super::target::Target;
use crate::json::pretty;

/// What those must know who expect a benchmark to measure the machine it runs on.
const MODELLED: &str = "        a model: nothing of this machine is measured; --target DIR runs in a directory \
                        of it, as the original program does";

/// The version of the JSON document's schema.
const SCHEMA_VERSION: u32 = 1;

/// The name of this machine, for formats that show one.
pub(super) fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname");
    text.map_or_else(|_| "localhost".into(), |text| text.trim().to_string())
}

/// The workload in words, by where its target puts its files.
fn described(options: &Run, workload: &dyn Workload) -> String {
    match Target::parse(options.target()) {
        Ok(target) if target.has_files() => workload.description_on_files(),
        _ => workload.description(),
    }
}

/// For people.
pub(super) fn summary(options: &Run, workload: &dyn Workload, record: &RunRecord) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = summarise(&mut text, options, workload, record);
    text
}

fn summarise(
    text: &mut String,
    options: &Run,
    workload: &dyn Workload,
    record: &RunRecord,
) -> std::fmt::Result {
    writeln!(text, "{}: {}", workload.default_name(), described(options, workload))?;
    writeln!(text, "target: {}, {}", options.target_name(), clock(options))?;
    if options.target.is_none() {
        writeln!(text, "{MODELLED}")?;
    }
    if !record.memory.is_empty() {
        writeln!(text, "memory at the start: {}", record.memory)?;
    }
    writeln!(text)?;
    for (metric, value) in workload.metrics().iter().zip(workload.values(record)) {
        match value {
            Some(value) => {
                writeln!(text, "{:>14}  {} {}", metric.name, figure(value), metric.unit)?
            }
            None => writeln!(text, "{:>14}  too short to tell", metric.name)?,
        }
    }
    writeln!(text)?;
    for (index, name) in record.phases.iter().enumerate() {
        let Some(phase) = record.phase(index as u16) else { continue };
        write_phase(text, name, &phase)?;
    }
    write_ends(text, record)?;
    if let Some(members) = &record.members {
        writeln!(
            text,
            "members: {} reads of {}, {} writes of {}",
            members.reads,
            Size(members.bytes_read),
            members.writes,
            Size(members.bytes_written)
        )?;
    }
    if let Some(amplification) = record.write_amplification() {
        writeln!(text, "write amplification: {amplification:.2}")?;
    }
    if let Some((resource, busy)) = &record.bottleneck {
        writeln!(text, "busiest: {resource}, {:.0} % of the time", busy * 100.0)?;
    }
    record.warnings.iter().try_for_each(|warning| writeln!(text, "warning: {warning}"))
}

fn clock(options: &Run) -> &'static str {
    let target = options.target_name();
    let is_virtual = ["modelled", "kernel:", "kernel-raw:"];
    if is_virtual.iter().any(|one| target.starts_with(one)) || target == "null" {
        "virtual time"
    } else {
        "real time, one run: repeat before you believe it"
    }
}

/// Times, CPU and fairness of the whole run.
fn write_ends(text: &mut String, record: &RunRecord) -> std::fmt::Result {
    let (first, last) = (record.first_done(), record.last_done());
    writeln!(text, "first done after {}, last after {}", seconds(first), seconds(last))?;
    if let Some(fairness) = record.fairness() {
        let spread = Nanos(last.0.saturating_sub(first.0));
        writeln!(text, "spread {}, fairness (Jain) {fairness:.4}", seconds(spread))?;
    }
    if let Some(cpu) = record.process_cpu {
        writeln!(text, "CPU of the processes: {}", seconds(cpu.sum()))?;
    }
    if let Some(cpu) = record.system_cpu {
        writeln!(text, "CPU of the whole system: {}", seconds(cpu))?;
    }
    Ok(())
}

fn write_phase(text: &mut String, name: &str, phase: &PhaseRecord) -> std::fmt::Result {
    let cpu = phase.cpu.map_or(String::new(), |cpu| format!(", CPU {}", seconds(cpu.sum())));
    writeln!(text, "{name}: {}{cpu}", seconds(phase.took()))?;
    let kinds = [("reads", &phase.reads), ("writes", &phase.writes), ("others", &phase.others)];
    let is_any = |record: &IoRecord| record.count > 0 || record.bytes > 0;
    for (what, record) in kinds.into_iter().filter(|(_, record)| is_any(record)) {
        writeln!(text, "  {:>9} {what:6} {:>10}  {}", record.count, bytes(record), times(record))?;
    }
    Ok(())
}

fn bytes(record: &IoRecord) -> String {
    if record.bytes == 0 { String::new() } else { Size(record.bytes).to_string() }
}

/// Latencies in the unit that suits them.
fn times(record: &IoRecord) -> String {
    if record.count == 0 {
        return "within other operations".into();
    }
    let quantile = |share| record.quantile(share).unwrap_or_default();
    let all = [
        ("p50", quantile(0.5)),
        ("p99", quantile(0.99)),
        ("p99.9", quantile(0.999)),
        ("max", record.max),
    ];
    all.map(|(name, time)| format!("{name} {}", seconds(time))).join("  ")
}

fn seconds(time: Nanos) -> String {
    match time.0 {
        0..1_000 => format!("{} ns", time.0),
        1_000..1_000_000 => format!("{:.1} us", time.0 as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", time.0 as f64 / 1e6),
        _ => format!("{:.3} s", time.as_secs()),
    }
}

fn figure(value: f64) -> String {
    if value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Everything that was measured, and what is needed to repeat it.
pub(super) fn document(
    options: &Run,
    workload: &dyn Workload,
    record: &RunRecord,
    setup: &Setup,
) -> Value {
    let metrics = workload.metrics();
    let values = metrics.iter().zip(workload.values(record)).map(
        |(metric, value)| json!({ "metric": metric.name, "unit": metric.unit, "value": value }),
    );
    let phases = (0u16..).zip(&record.phases).filter_map(|(index, name)| {
        let phase = record.phase(index)?;
        Some(json!({
            "name": name,
            "seconds": phase.took().as_secs(),
            "cpu_s": phase.cpu.map(|cpu| cpu.sum().as_secs()),
            "reads": of(&phase.reads),
            "writes": of(&phase.writes),
            "others": of(&phase.others),
        }))
    });
    let ends: Vec<f64> = record.ends().iter().map(|end| end.as_secs()).collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "raidlab": env!("CARGO_PKG_VERSION"),
        "workload": workload.kind(),
        "description": described(options, workload),
        "target": options.target_name(),
        "layout": options.layout().to_string(),
        "parameters": setup.parameters,
        "job_file": setup.job_file,
        "drive": setup.drive,
        "filesystem": setup.filesystem,
        "host": setup.host,
        "clock": if clock(options) == "virtual time" { "virtual" } else { "real" },
        "copies": options.copies,
        "seed": options.seed,
        "memory": record.memory,
        "values": values.collect::<Vec<Value>>(),
        "phases": phases.collect::<Vec<Value>>(),
        "ends_s": ends,
        "first_done_s": record.first_done().as_secs(),
        "last_done_s": record.last_done().as_secs(),
        "fairness": record.fairness(),
        "process_cpu_s": record.process_cpu.map(|cpu| cpu.sum().as_secs()),
        "system_cpu_s": record.system_cpu.map(|cpu| cpu.as_secs()),
        "members": record.members.map(|members| json!({
            "reads": members.reads,
            "writes": members.writes,
            "bytes_read": members.bytes_read,
            "bytes_written": members.bytes_written,
            "write_amplification": record.write_amplification(),
        })),
        "bottleneck": record.bottleneck.as_ref().map(|(resource, busy)| json!({
            "resource": resource, "busy": busy,
        })),
        "warnings": record.warnings,
    })
}

/// Every kind as JSON: what it is, and its parameters with their defaults as one text.
pub(super) fn list_json() -> String {
    let kinds = KINDS.iter().map(|kind| {
        let (what, parameters) = kind.summary.split_once(": ").unwrap_or((kind.summary, ""));
        json!({ "kind": kind.name, "what": what, "parameters": parameters })
    });
    pretty(&json!({ "schema_version": SCHEMA_VERSION, "kinds": kinds.collect::<Vec<Value>>() }))
}

fn of(record: &IoRecord) -> Value {
    let millis = |time: Option<Nanos>| time.map(|time| time.as_secs() * 1e3);
    json!({
        "count": record.count,
        "bytes": record.bytes,
        "mean_ms": millis(record.mean()),
        "p50_ms": millis(record.quantile(0.5)),
        "p99_ms": millis(record.quantile(0.99)),
        "p999_ms": millis(record.quantile(0.999)),
        "max_ms": (record.count > 0).then_some(record.max.as_secs() * 1e3),
    })
}
