//! `raidlab drive show`: a drive's figures, and the curves that its model makes of them.

use raidlab_models::curves::{random_rate, seek_curve, sequential_rate};
use raidlab_models::{DriveKind, DriveOp, DriveSpec, HardDiskSpec};
use serde_json::{Value, json};

use super::{kind_name, load_drive, plot};
use crate::args::DriveShow;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;

/// Places of the capacity at which the rate is taken.
const PLACES: u32 = 33;
/// Distances of the seek curve.
const DISTANCES: u32 = 60;
/// Depths at which random requests are counted, below the drive's own.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// What the model makes of a drive's figures.
struct Curves {
    /// Cylinders and milliseconds; empty for SSDs.
    seek: Vec<(f64, f64)>,
    /// Gigabytes from the start, MB/s.
    rate: Vec<(f64, f64)>,
    /// Depth, reads and writes of 4 KiB a second.
    random: Vec<(u32, f64, f64)>,
}

pub(super) fn run(options: &DriveShow) -> Result<(), Failure> {
    let drive = load_drive(&options.name)?;
    let curves = Curves::new(&drive);
    if options.json {
        return output::print(&as_json(&drive, &curves));
    }
    output::print(&as_text(&drive, &curves, output::takes_unicode()))
}

impl Curves {
    fn new(drive: &DriveSpec) -> Self {
        let seek = |spec: &HardDiskSpec| -> Vec<_> {
            let points = seek_curve(spec, DISTANCES).into_iter();
            points.map(|(distance, time)| (f64::from(distance), time.0 as f64 / 1e6)).collect()
        };
        let seek = match &drive.kind {
            DriveKind::HardDisk(spec) => seek(spec),
            DriveKind::Smr(spec) => seek(spec.disk()),
            DriveKind::Ssd(_) => Vec::new(),
        };
        let rate = sequential_rate(&drive.kind, PLACES).into_iter();
        let random = depths(drive.kind.queue_depth()).map(|depth| {
            let rate = |op| random_rate(&drive.kind, op, depth);
            (depth, rate(DriveOp::Read), rate(DriveOp::Write))
        });
        Self {
            seek,
            rate: rate.map(|(at, rate)| (at.bytes() as f64 / 1e9, rate as f64 / 1e6)).collect(),
            random: random.collect(),
        }
    }
}

/// Depths up to the drive's own, with which the table ends.
fn depths(own: u32) -> impl Iterator<Item = u32> {
    DEPTHS.into_iter().filter(move |one| *one < own).chain([own])
}

fn as_json(drive: &DriveSpec, curves: &Curves) -> String {
    let pairs = |points: &[(f64, f64)], names: [&'static str; 2]| -> Value {
        points.iter().map(|(x, y)| json!({ names[0]: x, names[1]: y })).collect()
    };
    let figures = drive.figures.iter().map(|figure| {
        json!({
            "key": figure.key,
            "value": figure.value,
            "status": figure.status.name(),
            "source": figure.source,
        })
    });
    let random = curves.random.iter().map(|(depth, reads, writes)| {
        json!({ "depth": depth, "reads_per_s": reads, "writes_per_s": writes })
    });
    pretty(&json!({
        "name": drive.name,
        "title": drive.title,
        "kind": kind_name(&drive.kind),
        "capacity_bytes": drive.capacity.bytes(),
        "figures": figures.collect::<Value>(),
        "seek_curve": pairs(&curves.seek, ["cylinders", "ms"]),
        "rate_over_capacity": pairs(&curves.rate, ["gb", "mb_per_s"]),
        "random_4kib": random.collect::<Value>(),
    }))
}

fn as_text(drive: &DriveSpec, curves: &Curves, unicode: bool) -> String {
    let mut text = format!("{} ({})\n\n", drive.title, drive.name);
    for figure in &drive.figures {
        let (key, value, status) = (figure.key, &figure.value, figure.status.name());
        text.push_str(&format!("{key:24} {value:>22}  {status:10}  {}\n", figure.source));
    }
    if let Some((longest, _)) = curves.seek.last() {
        let top = format!("{:.1}", largest(&curves.seek));
        let right = format!("{longest:.0}");
        text.push_str("\nRead seek, ms, over distance in cylinders\n");
        text.push_str(&plot::curve(&curves.seek, &top, &right, unicode));
    }
    if let Some((end, _)) = curves.rate.last() {
        let (top, right) = (format!("{:.0}", largest(&curves.rate)), format!("{end:.0}"));
        text.push_str("\nSequential read, MB/s, over place in GB\n");
        text.push_str(&plot::curve(&curves.rate, &top, &right, unicode));
    }
    text.push_str("\nRandom 4 KiB a second over requests in flight");
    text.push_str(match drive.kind {
        DriveKind::HardDisk(_) => ", write buffer full\n",
        DriveKind::Ssd(_) => ", pseudo-SLC cache, if any, not used up\n",
        DriveKind::Smr(_) => ", write buffer full, media cache not\n",
    });
    let most = curves.random.iter().map(|(_, reads, writes)| reads.max(*writes));
    let most = most.fold(0.0, f64::max);
    for (depth, reads, writes) in &curves.random {
        for (label, what, rate) in
            [(format!("{depth:>5}"), "read ", reads), (" ".repeat(5), "write", writes)]
        {
            let bar = plot::bar(*rate, most, unicode);
            text.push_str(&format!("{label} {what} {rate:>10.0} {bar}\n"));
        }
    }
    text
}

fn largest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_of_the_drive_is_the_last() {
        let of = |own: u32| depths(own).collect::<Vec<_>>();
        assert_eq!(of(1), [1]);
        assert_eq!(of(31), [1, 2, 4, 8, 16, 31]);
        assert_eq!(of(32), [1, 2, 4, 8, 16, 32]);
        assert_eq!(of(1024), [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024]);
    }
}
