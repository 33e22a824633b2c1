//! The figures of a hard disk, and the check that they describe one that can exist.

use raidlab_core::units::{Nanos, Sectors};

use crate::disk::geometry::Geometry;
use crate::disk::policy::{CachePolicy, CommandOverheads, ZoneRow};

/// The figures of a hard disk, as its drive file gives them. Ranges stand in `docs/drives.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardDiskFigures {
    /// What the drive holds.
    pub capacity: Sectors,
    /// Turns of the platters per minute.
    pub rpm: u32,
    /// How far a drive's own speed may be off that, in millionths, at most 10,000: each drive has one
    /// within, drawn from its seed, so that two of them pass each other slowly.
    pub rotation_tolerance: u32,
    /// What this one drive's turn takes more or less, in nanoseconds: 0 in a specification, a drive draws
    /// its own.
    pub turn_drift: i64,
    /// Recording surfaces.
    pub heads: u32,
    /// Groups of cylinders with the same number of sectors per track.
    pub zones: u32,
    /// The zones as measured; when there are any, they count instead of `zones`, `outer_rate` and
    /// `inner_rate`, and their skews instead of the time of switches.
    pub zone_table: Vec<ZoneRow>,
    /// Seek to the neighbouring cylinder. The skew from cylinder to cylinder is this or
    /// `head_switch`, whichever is longer.
    pub track_to_track: Nanos,
    /// Read seek over a third of the cylinders.
    pub average_seek: Nanos,
    /// Seek from the first cylinder to the last.
    pub full_stroke: Nanos,
    /// Measured points of the read seek by ascending distance in cylinders; when there are any, they
    /// count instead of the three figures above.
    pub seek_points: Vec<(u32, Nanos)>,
    /// What a write waits after a seek over more than one cylinder, on top of a read.
    pub write_settle: Nanos,
    /// Change to another surface of the same cylinder; also the skew from track to track.
    pub head_switch: Nanos,
    /// Sustained rate of the outermost zone, switches included, in bytes per second.
    pub outer_rate: u64,
    /// Sustained rate of the innermost zone, switches included, in bytes per second.
    pub inner_rate: u64,
    /// Time the drive's electronics take per command.
    pub command_overhead: Nanos,
    /// The same by kind of command; counts instead of `command_overhead`.
    pub overheads: Option<CommandOverheads>,
    /// Payload rate of the interface, in bytes per second.
    pub link_rate: u64,
    /// How many separate ranges the read cache can hold.
    pub read_segments: u32,
    /// The size of each, and how far the drive reads ahead.
    pub segment: Sectors,
    /// What the firmware does with the buffer.
    pub cache: CachePolicy,
    /// Writes complete when in the buffer. Without it, when on the medium.
    pub write_cache: bool,
    /// How much written data the buffer holds.
    pub write_buffer: Sectors,
    /// How many separate ranges the written data in the buffer may form.
    pub write_extents: u32,
    /// Commands the drive works on at once (native command queueing); 1: one after another.
    pub queue_depth: u32,
    /// How many of the oldest waiting commands the firmware compares to choose the next.
    pub queue_choice: u32,
    /// A command that has waited longer goes first; until then the longer it has waited, the more it
    /// is preferred.
    pub queue_age_limit: Nanos,
}

/// The figures of a hard disk that can exist: checked against ranges and against each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardDiskSpec(HardDiskFigures);

/// A figure that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFigure {
    /// Its key in a drive file.
    pub key: &'static str,
    /// It is fine by itself and contradicts another one.
    pub contradicts: bool,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl std::fmt::Display for BadFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for BadFigure {}

/// A unit that ranges are given in: its name, and how many base units it has.
pub(crate) type Unit = (&'static str, f64);
pub(crate) const MS: Unit = ("ms", 1e6);
pub(crate) const MB_PER_S: Unit = ("MB/s", 1e6);
pub(crate) const KIB: Unit = ("KiB", 2.0);

pub(crate) fn within(
    key: &'static str,
    value: u64,
    range: (u64, u64),
    unit: Unit,
) -> Result<(), BadFigure> {
    if (range.0..=range.1).contains(&value) {
        return Ok(());
    }
    let shown = |value: u64| value as f64 / unit.1;
    let (least, most) = (shown(range.0), shown(range.1));
    let reason = format!("must be from {least} to {most} {}, not {}", unit.0, shown(value));
    Err(BadFigure { key, contradicts: false, reason })
}

pub(crate) fn contradiction(key: &'static str, reason: String) -> Result<(), BadFigure> {
    Err(BadFigure { key, contradicts: true, reason })
}

fn ms(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

fn mb(rate: u64) -> f64 {
    rate as f64 / 1e6
}

/// The most sectors of capacity: 200 TB.
const MOST_SECTORS: u64 = 200_000_000_000_000 / 512;
/// The most cylinders; keeps the fixed-point arithmetic of the seek curve within 64 bits.
const MOST_CYLINDERS: u64 = 1 << 31;
/// The fewest cylinders; below, a third of them is no seek to speak of.
const FEWEST_CYLINDERS: u64 = 9;

impl HardDiskSpec {
    /// Checks the figures.
    ///
    /// # Errors
    /// Names the first figure that is out of range or contradicts another one, by its key.
    pub fn new(figures: HardDiskFigures) -> Result<Self, BadFigure> {
        check_ranges(&figures)?;
        check_seeks(&figures)?;
        check_rates(&figures)?;
        check_cache(&figures)?;
        Ok(Self(figures))
    }

    /// The figures.
    pub fn figures(&self) -> &HardDiskFigures {
        &self.0
    }
}

fn check_ranges(f: &HardDiskFigures) -> Result<(), BadFigure> {
    const TIME: (u64, u64) = (1_000, 1_000_000_000);
    const SHORT: (u64, u64) = (0, 100_000_000);
    const RATE: (u64, u64) = (1_000_000, 10_000_000_000);
    within("capacity", f.capacity.0, (2_048, MOST_SECTORS), KIB)?;
    within("rotation", f.rpm.into(), (1_000, 30_000), ("rpm", 1.0))?;
    within("rotation_tolerance", f.rotation_tolerance.into(), (0, 10_000), ("", 1.0))?;
    within("heads", f.heads.into(), (1, 64), ("heads", 1.0))?;
    within("zones", f.zones.into(), (1, 64), ("zones", 1.0))?;
    within("track_to_track_seek", f.track_to_track.0, TIME, MS)?;
    within("average_seek", f.average_seek.0, TIME, MS)?;
    within("full_stroke_seek", f.full_stroke.0, TIME, MS)?;
    within("write_settle", f.write_settle.0, SHORT, MS)?;
    within("head_switch", f.head_switch.0, SHORT, MS)?;
    within("outer_rate", f.outer_rate, RATE, MB_PER_S)?;
    within("inner_rate", f.inner_rate, RATE, MB_PER_S)?;
    within("command_overhead", f.command_overhead.0, SHORT, MS)?;
    within("queue_depth", f.queue_depth.into(), (1, 256), ("commands", 1.0))?;
    within("queue_choice", f.queue_choice.into(), (1, 256), ("commands", 1.0))?;
    within("queue_age_limit", f.queue_age_limit.0, (0, 10_000_000_000), MS)?;
    within("written_ranges", f.cache.written_ranges.into(), (0, 256), ("ranges", 1.0))?;
    within("sequential_hold", f.cache.hold.0, (0, 1 << 22), KIB)?;
    within("link_rate", f.link_rate, (RATE.0, 100_000_000_000), MB_PER_S)?;
    within("read_segments", f.read_segments.into(), (1, 256), ("segments", 1.0))?;
    within("segment_size", f.segment.0, (8, 1 << 22), KIB)?;
    within("write_buffer", f.write_buffer.0, (64, 1 << 22), KIB)?;
    within("write_extents", f.write_extents.into(), (1, 4_096), ("ranges", 1.0))
}

fn check_seeks(f: &HardDiskFigures) -> Result<(), BadFigure> {
    if !f.seek_points.is_empty() {
        check_seek_points(&f.seek_points)?;
    }
    if f.average_seek < f.track_to_track {
        let (average, shortest) = (ms(f.average_seek), ms(f.track_to_track));
        let reason = format!(
            "{average} ms is less than track_to_track_seek ({shortest} ms); \
             the average seek must be the longer one"
        );
        return contradiction("average_seek", reason);
    }
    if f.full_stroke < f.average_seek {
        let (full, average) = (ms(f.full_stroke), ms(f.average_seek));
        let reason = format!(
            "{full} ms is less than average_seek ({average} ms); \
             the full stroke must be the longest seek"
        );
        return contradiction("full_stroke_seek", reason);
    }
    Ok(())
}

fn check_seek_points(points: &[(u32, Nanos)]) -> Result<(), BadFigure> {
    let ascending = points.windows(2).all(|two| two[0].0 < two[1].0);
    let distances = |(distance, _): &(u32, Nanos)| (1..1 << 31).contains(distance);
    let times = |(_, time): &(u32, Nanos)| (1_000..=1_000_000_000).contains(&time.0);
    if points.len() < 2 || !ascending || !points.iter().all(distances) || !points.iter().all(times)
    {
        let reason = "there must be two points or more, by ascending distance from 1 cylinder up, \
                      each of 0.001 to 1000 ms";
        return contradiction("seek_curve", reason.to_owned());
    }
    Ok(())
}

fn check_rates(f: &HardDiskFigures) -> Result<(), BadFigure> {
    if f.outer_rate < f.inner_rate {
        let (outer, inner) = (mb(f.outer_rate), mb(f.inner_rate));
        let reason = format!(
            "{outer} MB/s is less than inner_rate ({inner} MB/s); \
             outer tracks are longer, so their rate must be the higher one"
        );
        return contradiction("outer_rate", reason);
    }
    if !f.zone_table.is_empty() {
        return check_zone_table(f);
    }
    let cylinders = Geometry::cylinders(f);
    if !(FEWEST_CYLINDERS..=MOST_CYLINDERS).contains(&cylinders) || !Geometry::fills_zones(f) {
        let reason = format!(
            "with these rates, rotation and heads it makes {cylinders} cylinders in {} zones; \
             it must make from 9 to {MOST_CYLINDERS} and fill all zones",
            f.zones
        );
        return contradiction("capacity", reason);
    }
    Ok(())
}

/// Measured zones follow each other, lie within the range of all figures and hold the capacity.
fn check_zone_table(f: &HardDiskFigures) -> Result<(), BadFigure> {
    let mut next = 0;
    for zone in &f.zone_table {
        if zone.first < next || zone.last < zone.first || u64::from(zone.last) >= MOST_CYLINDERS {
            let reason = format!(
                "cylinders {} to {} are no zone behind cylinder {next}; zones must ascend",
                zone.first, zone.last
            );
            return contradiction("zones", reason);
        }
        if zone.sectors == 0
            || zone.sectors > 1 << 20
            || zone.track_skew >= zone.sectors
            || zone.cylinder_skew >= zone.sectors
        {
            let reason = format!(
                "{} sectors per track with skews of {} and {}: there must be from 1 to 1048576, \
                 and skews are less",
                zone.sectors, zone.track_skew, zone.cylinder_skew
            );
            return contradiction("zones", reason);
        }
        next = zone.last + 1;
    }
    let held = Geometry::table_sectors(f);
    // Spare sectors lie on the last track of a cylinder and leave one sector of it.
    let least = held - held / u64::from(f.heads) + u64::from(next);
    if f.capacity.0 > held || f.capacity.0 < least {
        let reason = format!(
            "{} sectors do not fit zones of {held}; at most a track of each cylinder may be spare",
            f.capacity.0
        );
        return contradiction("capacity", reason);
    }
    Ok(())
}

fn check_cache(f: &HardDiskFigures) -> Result<(), BadFigure> {
    if f.cache.immediate_report && !f.write_cache {
        let reason =
            "a write cannot be reported at once while write_cache is off; switch one of them";
        return contradiction("immediate_report", reason.to_owned());
    }
    let kib = |sectors: Sectors| sectors.0 / 2;
    if f.segment > f.capacity {
        let reason = format!(
            "{} KiB is more than the drive holds ({} KiB)",
            kib(f.segment),
            kib(f.capacity)
        );
        return contradiction("segment_size", reason);
    }
    Ok(())
}
