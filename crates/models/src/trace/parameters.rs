//! The parameters of a measured drive, as the file beside its trace gives them.

use raidlab_core::units::{Nanos, Sectors};
use raidlab_toml_file::{DeValue, Source, Table};

use crate::disk::policy::{CachePolicy, CommandOverheads, Delivered, ReadAhead, Trigger, ZoneRow};
use crate::error::{ModelError, ModelErrorKind, error_at};
use crate::figures::{plain, plain_numbers};
use crate::spec::{BadFigure, HardDiskFigures, HardDiskSpec};

/// How much of the parameters the model is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// All of them: zones, measured seek curve, skews.
    Full,
    /// What a data sheet gives: three points of the seek curve and the rates of the outermost and
    /// the innermost zone. Buffer and overheads stay.
    Sheet,
}

/// The parameters of a measured drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// What the drive is called.
    pub title: String,
    /// Requests of its trace.
    pub requests: usize,
    /// Mean of the measured response times, in milliseconds.
    pub mean_response_ms: f64,
    /// Demerit of the full model of DiskSim 4.0 on its trace, in milliseconds.
    pub disksim_rms_ms: f64,
    full: HardDiskSpec,
    sheet: HardDiskSpec,
}

impl Parameters {
    /// The drive, with as much detail as asked for.
    pub fn spec(&self, detail: Detail) -> &HardDiskSpec {
        match detail {
            Detail::Full => &self.full,
            Detail::Sheet => &self.sheet,
        }
    }

    /// Demerit of DiskSim's model in percent of the measured mean.
    pub fn disksim_percent(&self) -> f64 {
        self.disksim_rms_ms / self.mean_response_ms * 100.0
    }
}

/// Keys that hold a number: name, least, most.
const NUMBERS: [(&str, f64, f64); 41] = [
    ("requests", 1.0, 1e9),
    ("mean_response_ms", 0.001, 60_000.0),
    ("disksim_rms_ms", 0.0, 60_000.0),
    ("surfaces", 1.0, 64.0),
    ("cylinders", 9.0, 2_147_483_647.0),
    ("blocks", 2_048.0, 4e11),
    ("rpm", 1_000.0, 30_000.0),
    ("head_switch_ms", 0.0, 100.0),
    ("write_settle_ms", 0.0, 100.0),
    ("bus_ms_per_sector", 0.000_01, 0.5),
    ("segments", 1.0, 256.0),
    ("write_segments", 0.0, 256.0),
    ("low_write_watermark", 0.0, 1.0),
    ("high_read_watermark", 0.0, 1.0),
    ("watermark_by_request", 0.0, 1.0),
    ("readahead_over_requested", 0.0, 1.0),
    ("immediate_buffer_read", 0.0, 1.0),
    ("immediate_buffer_write", 0.0, 1.0),
    ("segment_sectors", 8.0, 4_194_304.0),
    ("readahead_min_sectors", 0.0, 4_194_304.0),
    ("readahead_max_sectors", 0.0, 4_194_304.0),
    ("separate_write_segment", 0.0, 1.0),
    ("buffer_continuous_read", 0.0, 4.0),
    ("fast_write_level", 0.0, 2.0),
    ("read_hits_on_write_data", 0.0, 1.0),
    ("combine_sequential_writes", 0.0, 1.0),
    ("write_hit_stops_prefetch", 0.0, 1.0),
    ("readahead_on_idle_hit", 0.0, 1.0),
    ("read_any_free_blocks", 0.0, 1.0),
    ("overhead_read_hit_after_read_ms", 0.0, 100.0),
    ("overhead_read_hit_after_write_ms", 0.0, 100.0),
    ("overhead_read_miss_after_read_ms", 0.0, 100.0),
    ("overhead_read_miss_after_write_ms", 0.0, 100.0),
    ("overhead_write_hit_after_read_ms", 0.0, 100.0),
    ("overhead_write_hit_after_write_ms", 0.0, 100.0),
    ("overhead_write_miss_after_read_ms", 0.0, 100.0),
    ("overhead_write_miss_after_write_ms", 0.0, 100.0),
    ("overhead_read_completion_ms", 0.0, 100.0),
    ("overhead_write_completion_ms", 0.0, 100.0),
    ("data_preparation_ms", 0.0, 100.0),
    ("reread_hit_percent", 0.0, 100.0),
];

/// A file being read.
struct Reader<'a> {
    source: Source<'a>,
    table: Table<'a, ModelError>,
}

impl Reader<'_> {
    fn error(&self, kind: ModelErrorKind, key: &str, reason: String) -> ModelError {
        let line = self.table.line_at(key) as usize;
        ModelError::new(kind, self.source.path, reason).at_line(line).for_key(key)
    }

    fn value(&self, key: &str) -> Result<&DeValue<'_>, ModelError> {
        self.table.value(key).ok_or_else(|| {
            let reason = "is missing; the file beside a trace must give it";
            ModelError::new(ModelErrorKind::Missing, self.source.path, reason).for_key(key)
        })
    }

    fn text(&self, key: &str) -> Result<&str, ModelError> {
        self.table.required_text(key, &format!("{key} = \"...\""))
    }

    /// A number that is in the range of its key.
    fn number(&self, key: &str) -> Result<f64, ModelError> {
        let value = plain(self.value(key)?);
        let range = NUMBERS.iter().find(|(name, ..)| *name == key);
        let (least, most) = range.map_or((0.0, f64::MAX), |(_, least, most)| (*least, *most));
        match value {
            Some(value) if (least..=most).contains(&value) => Ok(value),
            Some(value) => {
                let reason = format!("must be from {least} to {most}, not {value}");
                Err(self.error(ModelErrorKind::OutOfRange, key, reason))
            }
            None => {
                let reason = format!("must be a number from {least} to {most}");
                Err(self.error(ModelErrorKind::WrongType, key, reason))
            }
        }
    }

    fn count(&self, key: &str) -> Result<u64, ModelError> {
        let value = self.number(key)?;
        if value.fract() == 0.0 {
            return Ok(value as u64);
        }
        let reason = format!("must be a whole number, not {value}");
        Err(self.error(ModelErrorKind::OutOfRange, key, reason))
    }

    fn is_on(&self, key: &str) -> Result<bool, ModelError> {
        Ok(self.count(key)? != 0)
    }

    fn ms(&self, key: &str) -> Result<Nanos, ModelError> {
        Ok(nanos(self.number(key)?))
    }

    /// Rows of numbers, each `N` long.
    fn rows<const N: usize>(&self, key: &str, what: &str) -> Result<Vec<[f64; N]>, ModelError> {
        let wrong = |at: usize| {
            let reason = format!("must be a list of rows {what}, of numbers from 0 up");
            Err(error_at(self.source, ModelErrorKind::WrongType, at, key, reason))
        };
        let DeValue::Array(rows) = self.value(key)? else {
            let reason = format!("must be a list of rows {what}, of numbers from 0 up");
            return Err(self.error(ModelErrorKind::WrongType, key, reason));
        };
        let mut found = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            match row.get_ref() {
                DeValue::Array(numbers) => match plain_numbers(numbers) {
                    Some(numbers) => found.push(numbers),
                    None => return wrong(row.span().start),
                },
                _ => return wrong(row.span().start),
            }
        }
        Ok(found)
    }
}

fn nanos(ms: f64) -> Nanos {
    Nanos((ms * 1e6 + 0.5) as u64)
}

/// Reads the parameters of a measured drive. `path` names the file in errors.
///
/// # Errors
/// On text that is not TOML, unknown or missing keys, and values that are out of range or
/// contradict each other: with line, key and what would be right.
pub fn parse_parameters(text: &str, path: &str) -> Result<Parameters, ModelError> {
    let source = Source { path, text };
    let document = source.document::<ModelError>()?;
    let reader = Reader { source, table: Table::root(&source, &document) };
    check_keys(&reader)?;
    let figures = figures(&reader)?;
    let sheet = sheet(&figures);
    let checked = |figures| HardDiskSpec::new(figures).map_err(|bad| wrong(&reader, bad));
    Ok(Parameters {
        title: reader.text("title")?.to_owned(),
        requests: reader.count("requests")? as usize,
        mean_response_ms: reader.number("mean_response_ms")?,
        disksim_rms_ms: reader.number("disksim_rms_ms")?,
        full: checked(figures)?,
        sheet: checked(sheet)?,
    })
}

fn check_keys(reader: &Reader<'_>) -> Result<(), ModelError> {
    const OTHERS: [&str; 4] = ["title", "readahead_trigger", "zones", "seek"];
    let known: Vec<&str> = OTHERS.into_iter().chain(NUMBERS.map(|(key, ..)| key)).collect();
    if let Some(error) = reader.table.unknown_keys(&known).into_iter().next() {
        return Err(error);
    }
    // All are read and checked, also those that this model makes nothing of.
    for (key, ..) in NUMBERS {
        reader.number(key)?;
    }
    Ok(())
}

/// The keys of the figures that have other names here.
fn wrong(reader: &Reader<'_>, bad: BadFigure) -> ModelError {
    let key = match bad.key {
        "capacity" => "blocks",
        "rotation" => "rpm",
        "heads" => "surfaces",
        "seek_curve" | "track_to_track_seek" | "average_seek" | "full_stroke_seek" => "seek",
        "outer_rate" | "inner_rate" => "zones",
        "link_rate" => "bus_ms_per_sector",
        "segment_size" | "write_buffer" => "segment_sectors",
        "read_segments" => "segments",
        "write_extents" | "written_ranges" => "write_segments",
        "sequential_hold" => "readahead_min_sectors",
        "head_switch" => "head_switch_ms",
        "write_settle" => "write_settle_ms",
        other => other,
    };
    let kind =
        if bad.contradicts { ModelErrorKind::Contradiction } else { ModelErrorKind::OutOfRange };
    reader.error(kind, key, bad.reason.clone()).because(bad)
}

fn zones(reader: &Reader<'_>) -> Result<Vec<ZoneRow>, ModelError> {
    let what = "[first cylinder, last cylinder, sectors per track, track skew, cylinder skew]";
    let rows = reader.rows::<5>("zones", what)?;
    if rows.is_empty() {
        let reason = format!("must have at least one row {what}");
        return Err(reader.error(ModelErrorKind::Missing, "zones", reason));
    }
    let row = |[first, last, sectors, track_skew, cylinder_skew]: &[f64; 5]| ZoneRow {
        first: *first as u32,
        last: *last as u32,
        sectors: *sectors as u32,
        track_skew: *track_skew as u32,
        cylinder_skew: *cylinder_skew as u32,
    };
    Ok(rows.iter().map(row).collect())
}

fn overheads(reader: &Reader<'_>) -> Result<CommandOverheads, ModelError> {
    let preparation = reader.ms("data_preparation_ms")?;
    let pair = |what: &str| -> Result<[Nanos; 2], ModelError> {
        Ok([
            reader.ms(&format!("overhead_{what}_after_read_ms"))? + preparation,
            reader.ms(&format!("overhead_{what}_after_write_ms"))? + preparation,
        ])
    };
    Ok(CommandOverheads {
        read_hit: pair("read_hit")?,
        read_miss: pair("read_miss")?,
        write_hit: pair("write_hit")?,
        write_miss: pair("write_miss")?,
        read_completion: reader.ms("overhead_read_completion_ms")?,
        write_completion: reader.ms("overhead_write_completion_ms")?,
    })
}

fn policy(reader: &Reader<'_>) -> Result<CachePolicy, ModelError> {
    const TRIGGERS: [(&str, Trigger); 2] = [
        ("every read", Trigger::EveryRead),
        ("a read that continues the previous read", Trigger::Continued),
    ];
    let trigger = reader.text("readahead_trigger")?;
    let Some((_, trigger)) = TRIGGERS.into_iter().find(|(name, _)| *name == trigger) else {
        let reason =
            format!("must be \"{}\" or \"{}\", not \"{trigger}\"", TRIGGERS[0].0, TRIGGERS[1].0);
        return Err(reader.error(ModelErrorKind::OutOfRange, "readahead_trigger", reason));
    };
    let read_ahead = match reader.count("buffer_continuous_read")? {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::Stream,
    };
    let hits_on_writes = reader.is_on("read_hits_on_write_data")?;
    let written = if hits_on_writes { reader.count("write_segments")? } else { 0 };
    let delivered = match reader.is_on("readahead_over_requested")? {
        false => Delivered::Kept,
        true if reader.number("reread_hit_percent")? >= 50.0 => Delivered::Overwritten,
        true => Delivered::GivenUp,
    };
    Ok(CachePolicy {
        read_ahead,
        trigger,
        most_ahead: Sectors(reader.count("readahead_max_sectors")?),
        hold: Sectors(reader.count("readahead_min_sectors")?),
        delivered,
        resumes_on_hit: reader.is_on("readahead_on_idle_hit")?,
        whole_track: reader.is_on("read_any_free_blocks")?,
        written_ranges: written as u32,
        read_overlap: reader.number("high_read_watermark")? < 1.0,
        write_overlap: reader.number("low_write_watermark")? < 1.0,
        immediate_report: reader.count("fast_write_level")? > 0,
    })
}

fn figures(reader: &Reader<'_>) -> Result<HardDiskFigures, ModelError> {
    let zone_table = zones(reader)?;
    let seek_points: Vec<_> = reader
        .rows::<2>("seek", "[cylinders, ms]")?
        .into_iter()
        .map(|[cylinders, ms]| (cylinders as u32, nanos(ms)))
        .collect();
    let cylinders = reader.count("cylinders")? as u32;
    let segments = reader.count("segments")?;
    let write_segments = reader.count("write_segments")?;
    let own_segments = reader.is_on("separate_write_segment")?;
    let for_reads = if own_segments { segments.saturating_sub(write_segments) } else { segments };
    let segment = Sectors(reader.count("segment_sectors")?);
    let overheads = overheads(reader)?;
    let fast = reader.count("fast_write_level")? > 0;
    let mut figures = HardDiskFigures {
        capacity: Sectors(reader.count("blocks")?),
        rpm: reader.count("rpm")? as u32,
        rotation_tolerance: 0,
        turn_drift: 0,
        heads: reader.count("surfaces")? as u32,
        zones: 16,
        zone_table,
        track_to_track: Nanos::ZERO,
        average_seek: Nanos::ZERO,
        full_stroke: Nanos::ZERO,
        seek_points,
        write_settle: reader.ms("write_settle_ms")?,
        head_switch: reader.ms("head_switch_ms")?,
        outer_rate: 0,
        inner_rate: 0,
        command_overhead: overheads.read_miss[0],
        overheads: Some(overheads),
        link_rate: (512e3 / reader.number("bus_ms_per_sector")? + 0.5) as u64,
        read_segments: for_reads.max(1) as u32,
        segment,
        cache: policy(reader)?,
        write_cache: fast,
        write_buffer: Sectors((segment.0 * write_segments).max(64)),
        write_extents: write_segments.max(1) as u32,
        queue_depth: 1,
        queue_choice: 1,
        queue_age_limit: Nanos::ZERO,
    };
    three_points(&mut figures, cylinders);
    two_rates(&mut figures);
    Ok(figures)
}

/// What a data sheet would give of the seek curve.
fn three_points(f: &mut HardDiskFigures, cylinders: u32) {
    let points = &f.seek_points;
    // The point nearest to a distance.
    let at = |distance: u32| {
        let near = points.iter().min_by_key(|(one, _)| one.abs_diff(distance));
        near.map_or(Nanos::ZERO, |(_, time)| *time)
    };
    (f.track_to_track, f.average_seek, f.full_stroke) =
        (at(1), at(cylinders / 3), at(cylinders - 1));
}

/// What a data sheet would give of the zones: the sustained rates of the first and the last one.
fn two_rates(f: &mut HardDiskFigures) {
    let turn = 60e9 / f64::from(f.rpm);
    let heads = f64::from(f.heads);
    let (tracks, last) = (heads - 1.0, f.track_to_track.0.max(f.head_switch.0) as f64);
    let cylinder = heads * turn + tracks * f.head_switch.0 as f64 + last;
    let rate = |zone: Option<&ZoneRow>| {
        let bytes = zone.map_or(0.0, |zone| f64::from(zone.sectors) * 512.0 * heads);
        (bytes / cylinder * 1e9 + 0.5) as u64
    };
    (f.outer_rate, f.inner_rate) = (rate(f.zone_table.first()), rate(f.zone_table.last()));
}

/// Only what a data sheet gives of mechanics.
fn sheet(full: &HardDiskFigures) -> HardDiskFigures {
    HardDiskFigures { zone_table: Vec::new(), seek_points: Vec::new(), ..full.clone() }
}
