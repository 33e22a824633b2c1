//! A run as fio prints it for people, without the lines for which there are no figures.

use std::fmt::Write;

use raidlab_core::Nanos;

use super::figures::{Direction, Entry, entries, millis, steps};
use super::options::Job;
use super::task;
use super::workload::FioWorkload;
use crate::record::{IoRecord, RunRecord};

/// Who printed this, where fio has its version.
pub(super) fn version() -> String {
    format!("raidlab-{}", env!("CARGO_PKG_VERSION"))
}

/// The report, ending with a newline.
pub(super) fn text(workload: &FioWorkload, record: &RunRecord) -> String {
    let mut out = String::new();
    for (job, place) in workload.jobs.iter().zip(task::places(&workload.jobs)) {
        head(&mut out, job, place.group);
    }
    let processes = record.processes.len();
    let plural = if processes == 1 { "" } else { "es" };
    line(&mut out, format_args!("{}\nStarting {processes} process{plural}\n", version()));
    let entries = entries(workload, record);
    for entry in &entries {
        one(&mut out, entry);
    }
    let groups = entries.iter().map(|entry| entry.group).max().unwrap_or(0);
    for group in 0..=groups {
        let members: Vec<&Entry<'_>> = entries.iter().filter(|one| one.group == group).collect();
        status(&mut out, group, &members);
    }
    out
}

/// Writing into a text never fails.
fn line(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(arguments);
    out.push('\n');
}

fn head(out: &mut String, job: &Job, group: u32) {
    let [read, write] = job.blocks.map(|block| short(block, 4, 1024, "B"));
    line(
        out,
        format_args!(
            "{}: (g={group}): rw={}, bs=(R) {read}-{read}, (W) {write}-{write}, (T) {write}-{write}, \
             ioengine={}, iodepth={}",
            job.name, job.pattern, job.engine_name, job.iodepth
        ),
    );
    if job.numjobs > 1 {
        line(out, format_args!("..."));
    }
}

fn one(out: &mut String, entry: &Entry<'_>) {
    let Entry { job, group, processes, .. } = entry;
    line(out, format_args!("{}: (groupid={group}, jobs={processes}): err= 0", job.name));
    if let Some(text) = &job.description {
        line(out, format_args!("  Description  : [{text}]"));
    }
    for (name, way) in [("read", &entry.read), ("write", &entry.write)] {
        if way.runtime > Nanos::ZERO {
            direction(out, name, way, &job.percentiles);
        }
    }
    classes(out, entry);
    if entry.sync.count > 0 {
        line(out, format_args!("  fsync/fdatasync/sync_file_range:"));
        latencies(out, "sync", &entry.sync);
        percentiles(out, "sync", &entry.sync, &job.percentiles);
    }
    if let Some([user, system]) = entry.cpu_percent() {
        line(out, format_args!("  cpu          : usr={user:.2}%, sys={system:.2}%"));
    }
    let (reads, writes, syncs) = (entry.read.io.count, entry.write.io.count, entry.sync.count);
    line(out, format_args!("     issued rwts: total={reads},{writes},0,{syncs}"));
}

fn direction(out: &mut String, name: &str, way: &Direction, wanted: &[f64]) {
    let rate = way.bytes_per_second() as u64;
    let iops = short(way.per_second() as u64, 4, 1000, "");
    let (binary, decimal) = (short(rate, 4, 1024, "B/s"), short(rate, 4, 1000, "B/s"));
    let bytes = short(way.io.bytes, 4, 1024, "B");
    let time = way.millis();
    line(out, format_args!("  {name}: IOPS={iops}, BW={binary} ({decimal})({bytes}/{time}msec)"));
    if way.io.count > 0 {
        latencies(out, "clat", &way.io);
        latencies(out, " lat", &way.io);
        percentiles(out, "clat", &way.io, wanted);
    }
}

/// Shortest, longest, mean and deviation, in the unit in which the shortest still has figures.
fn latencies(out: &mut String, name: &str, io: &IoRecord) {
    let mean = io.total.0 as f64 / io.count as f64;
    let deviation = io.deviation() * 1e9;
    let (unit, scale) = if io.min.0 > 2_000_000 && io.max.0 > 99_999_999 && mean > 2e6 {
        ("msec", 1_000_000)
    } else if io.min.0 > 2_000 && io.max.0 > 99_999 && mean > 2e3 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    let (min, max) = (short(io.min.0 / scale, 6, 1000, ""), short(io.max.0 / scale, 6, 1000, ""));
    let (mean, deviation) = (mean / scale as f64, deviation / scale as f64);
    line(
        out,
        format_args!(
            "    {name} ({unit}): min={min}, max={max}, avg={mean:5.2}, stdev={deviation:5.2}"
        ),
    );
}

fn percentiles(out: &mut String, name: &str, io: &IoRecord, wanted: &[f64]) {
    let values: Vec<u64> =
        wanted.iter().filter_map(|one| io.quantile(one / 100.0)).map(|one| one.0).collect();
    let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) else { return };
    let (unit, scale) = if *least > 2_000_000 && *most > 99_999_999 {
        ("msec", 1_000_000)
    } else if *least > 2_000 && *most > 99_999 {
        ("usec", 1_000)
    } else {
        ("nsec", 1)
    };
    line(out, format_args!("    {name} percentiles ({unit}):"));
    let width = (most / scale).to_string().len().max(5);
    let per_line = ((80 - 7) / (2 + 10 + width)).max(1);
    let cells: Vec<String> = wanted
        .iter()
        .zip(&values)
        .map(|(percent, value)| format!(" {percent:5.2}th=[{:width$}]", value.div_ceil(scale)))
        .collect();
    let rows: Vec<String> =
        cells.chunks(per_line).map(|row| format!("     |{}", row.join(","))).collect();
    line(out, format_args!("{}", rows.join(",\n")));
}

/// Which part of all operations fell into which class of latency.
fn classes(out: &mut String, entry: &Entry<'_>) {
    let parts = entry.latencies();
    let names = || steps().map(|step| format!("{step}="));
    let long = ["2000=".to_string(), ">=2000=".to_string()];
    let units: [(&str, Vec<String>, &[f64]); 3] = [
        ("nsec", names().collect(), &parts[..10]),
        ("usec", names().collect(), &parts[10..20]),
        ("msec", names().chain(long).collect(), &parts[20..]),
    ];
    for (unit, names, parts) in units {
        let some = names.iter().zip(parts).filter(|(_, part)| **part > 0.0);
        let cells: Vec<String> = some.map(|(name, part)| format!("{name}{part:.2}%")).collect();
        for row in cells.chunks(5) {
            line(out, format_args!("  lat ({unit})   : {}", row.join(", ")));
        }
    }
}

/// The summary of a group.
fn status(out: &mut String, group: u32, members: &[&Entry<'_>]) {
    line(out, format_args!("\nRun status group {group} (all jobs):"));
    let ways: [(&str, Vec<&Direction>); 2] = [
        ("   READ", members.iter().map(|one| &one.read).collect()),
        ("  WRITE", members.iter().map(|one| &one.write).collect()),
    ];
    for (name, ways) in ways {
        let ways: Vec<&Direction> =
            ways.into_iter().filter(|way| way.runtime > Nanos::ZERO).collect();
        let longest = ways.iter().map(|way| way.runtime).max().unwrap_or(Nanos::ZERO);
        let shortest = ways.iter().map(|way| way.runtime).min().unwrap_or(Nanos::ZERO);
        if longest == Nanos::ZERO {
            continue;
        }
        let bytes: u64 = ways.iter().map(|way| way.io.bytes).sum();
        let all = (bytes as f64 / longest.as_secs()) as u64;
        let rates = || ways.iter().map(|way| way.bytes_per_second() as u64);
        let (least, most) = (rates().min().unwrap_or(0), rates().max().unwrap_or(0));
        let binary = |rate| short(rate, 4, 1024, "B/s");
        let decimal = |rate| short(rate, 4, 1000, "B/s");
        line(
            out,
            format_args!(
                "{name}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
                binary(all),
                decimal(all),
                binary(least),
                binary(most),
                decimal(least),
                decimal(most),
                short(bytes, 4, 1024, "B"),
                short(bytes, 4, 1000, "B"),
                millis(shortest),
                millis(longest)
            ),
        );
    }
}

/// A number in at most `digits` figures, with the prefix of the unit that this takes: `62.5MiB/s`.
fn short(number: u64, digits: usize, base: u64, unit: &str) -> String {
    let prefixes: [&str; 7] = if base == 1024 {
        ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    } else {
        ["", "k", "M", "G", "T", "P", "E"]
    };
    let (mut whole, mut rest, mut prefix) = (number, None, 0);
    while whole.to_string().len() > digits && prefix + 1 < prefixes.len() {
        rest = Some(whole % base);
        whole /= base;
        prefix += 1;
    }
    let prefix = prefixes[prefix];
    let Some(rest) = rest else { return format!("{whole}{prefix}{unit}") };
    let places = digits.saturating_sub(whole.to_string().len() + 1);
    let exact = whole as f64 + rest as f64 / base as f64;
    format!("{exact:.places$}{prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::Nanos;

    /// As fio 3.33 printed them.
    #[test]
    fn numbers_are_shortened_as_fio_does() {
        for (number, base, unit, expected) in [
            (4096, 1024, "B", "4096B"),
            (65_536, 1024, "B", "64.0KiB"),
            (65_536, 1000, "B", "65.5kB"),
            (65_536_000, 1024, "B/s", "62.5MiB/s"),
            (65_536_000, 1000, "B/s", "65.5MB/s"),
            (16_000, 1000, "", "16.0k"),
            (7_500, 1000, "", "7500"),
            (131_072_000, 1024, "B/s", "125MiB/s"),
            (131_072_000, 1000, "B/s", "131MB/s"),
        ] {
            assert_eq!(short(number, 4, base, unit), expected);
        }
    }

    /// fio counts in the next unit once the shortest is above 2,000, the longest above 99,999 and the mean above 2,000.
    #[test]
    fn latencies_have_the_unit_in_which_the_shortest_has_figures() {
        let unit = |min: u64, max: u64, mean: u64| {
            let mut io = IoRecord::default();
            (io.min, io.max, io.total, io.count) = (Nanos(min), Nanos(max), Nanos(mean * 10), 10);
            let mut out = String::new();
            latencies(&mut out, "lat", &io);
            out.trim().to_owned()
        };
        assert!(
            unit(2_000, 100_000, 50_000)
                .starts_with("lat (nsec): min=2000, max=100000, avg=50000.00")
        );
        assert!(unit(2_001, 99_999, 50_000).starts_with("lat (nsec)"));
        assert!(unit(2_001, 100_000, 50_000).starts_with("lat (usec): min=2, max=100, avg=50.00"));
        assert!(
            unit(2_000_000, 100_000_000, 50_000_000)
                .starts_with("lat (usec): min=2000, max=100000, ")
        );
        assert!(unit(2_000_001, 99_999_999, 50_000_000).starts_with("lat (usec)"));
        assert!(
            unit(2_000_001, 100_000_000, 50_000_000)
                .starts_with("lat (msec): min=2, max=100, avg=50.00")
        );
    }
}
