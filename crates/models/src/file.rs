//! Drive files: from TOML to a checked specification. The schema stands in `docs/drives.md`.

use std::path::Path;

use raidlab_core::suggest::did_you_mean;
use raidlab_core::units::{Nanos, Sectors};
use raidlab_toml_file::{DeTable, Source, Table};

use crate::disk::policy::{CachePolicy, Delivered, ReadAhead, Trigger};
use crate::error::{ModelError, ModelErrorKind, error_at};
use crate::figures::{Figure, Quantity, Status, read, read_points};
use crate::smr::{self, SmrSpec};
use crate::spec::{BadFigure, HardDiskFigures, HardDiskSpec};
use crate::ssd::{self, SsdSpec};

/// A drive as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriveSpec {
    /// The file's name without `.toml`.
    pub name: String,
    /// What the drive is called.
    pub title: String,
    /// What it holds.
    pub capacity: Sectors,
    /// What kind of drive it is, with the figures its model needs.
    pub kind: DriveKind,
    /// Every figure with status and source, defaults included.
    pub figures: Vec<Figure>,
}

/// Kinds of drives that can be modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each drive file, not for each drive"
)]
pub enum DriveKind {
    /// `kind = "hard-disk"`.
    HardDisk(HardDiskSpec),
    /// `kind = "ssd"`.
    Ssd(SsdSpec),
    /// `kind = "shingled-disk"`.
    Smr(SmrSpec),
}

/// A figure that a kind of drive has: key, quantity, and the default in the base unit if there is one.
pub(crate) type Key = (&'static str, Quantity, Option<u64>);

/// What a drive file may give as `kind`.
const KINDS: [&str; 3] = ["hard-disk", "ssd", "shingled-disk"];

/// Every figure of a hard disk: key, quantity, and the default in the base unit if there is one.
pub(crate) const KEYS: [Key; 30] = [
    ("capacity", Quantity::Size, None),
    ("rotation", Quantity::Speed, None),
    ("rotation_tolerance", Quantity::Count, Some(0)),
    ("heads", Quantity::Count, None),
    ("zones", Quantity::Count, Some(16)),
    ("track_to_track_seek", Quantity::Time, None),
    ("average_seek", Quantity::Time, None),
    ("full_stroke_seek", Quantity::Time, None),
    ("write_settle", Quantity::Time, None),
    ("head_switch", Quantity::Time, None),
    ("outer_rate", Quantity::Rate, None),
    ("inner_rate", Quantity::Rate, None),
    ("command_overhead", Quantity::Time, None),
    ("link_rate", Quantity::Rate, None),
    ("read_segments", Quantity::Count, None),
    ("segment_size", Quantity::Size, None),
    ("write_cache", Quantity::Switch, Some(1)),
    ("write_buffer", Quantity::Size, None),
    ("write_extents", Quantity::Count, Some(128)),
    ("read_ahead_limit", Quantity::Size, Some(NO_LIMIT)),
    ("read_ahead_in_order_only", Quantity::Switch, Some(0)),
    ("stays_a_track_ahead", Quantity::Switch, Some(0)),
    ("whole_track_reads", Quantity::Switch, Some(0)),
    ("keeps_delivered", Quantity::Switch, Some(0)),
    ("written_ranges", Quantity::Count, Some(0)),
    ("sequential_hold", Quantity::Size, Some(0)),
    ("immediate_report", Quantity::Switch, Some(0)),
    ("queue_depth", Quantity::Count, Some(1)),
    ("queue_choice", Quantity::Count, Some(256)),
    ("queue_age_limit", Quantity::Time, Some(1_000_000_000)),
];

/// The seek curve of a hard disk, which may be left out; points instead of one value.
const CURVE: Key = ("seek_curve", Quantity::Time, None);

/// More sectors than any segment has.
const NO_LIMIT: u64 = 1 << 32;

/// The drives compiled in: name and drive file.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    macro_rules! drives {
        ($($name:literal),* $(,)?) => {
            &[$(($name, include_str!(concat!("../../../drives/", $name, ".toml")))),*]
        };
    }
    drives![
        "desktop-2tb-7200",
        "dc-6tb-7200",
        "dc-24tb-7200",
        "nas-4tb-5400",
        "nas-8tb-7200",
        "nas-8tb-7200-ironwolf",
        "pata-40gb-5400",
        "pata-80gb-7200",
        "pata-80gb-7200-2mb",
        "pata-120gb-7200",
        "sas-146gb-10k",
        "sata-160gb-7200",
        "sata-250gb-7200",
        "sata-500gb-7200",
        "smr-8tb-5400",
        "ssd-nvme3-4tb-dc",
        "ssd-nvme4-2tb",
        "ssd-nvme4-2tb-dc",
        "ssd-nvme5-2tb",
        "ssd-sata-1tb",
        "ssd-sata-960gb-dc",
    ]
}

/// Whether a name of a drive is the path of a drive file.
pub fn is_drive_file(name_or_path: &str) -> bool {
    name_or_path.ends_with(".toml")
}

/// Checks that a drive of this name is compiled in.
///
/// # Errors
/// [`ModelErrorKind::UnknownDrive`], with the name that was probably meant.
pub fn check_drive(name: &str) -> Result<(), ModelError> {
    text_of(name).map(|_| ())
}

/// Reads the drive file at a path that ends in `.toml`, or else the compiled-in drive of that name.
///
/// # Errors
/// When there is no such drive or file, or when [`parse`] fails.
pub fn load(name_or_path: &str) -> Result<DriveSpec, ModelError> {
    load_beside(Path::new(""), name_or_path)
}

/// As [`load`], with a path that is not absolute taken from this directory on.
///
/// # Errors
/// As [`load`].
pub fn load_beside(directory: &Path, name_or_path: &str) -> Result<DriveSpec, ModelError> {
    if is_drive_file(name_or_path) {
        let path = directory.join(name_or_path);
        let text = text_at(&path, "the drive file").map_err(|error| {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            if check_drive(&stem).is_ok() {
                error.hinting(&format!("; the compiled-in drive is called `{stem}`"))
            } else {
                error
            }
        })?;
        return parse(&text, &path.display().to_string());
    }
    parse(text_of(name_or_path)?, &format!("drives/{name_or_path}.toml"))
}

/// The drive file compiled in under this name.
fn text_of(name: &str) -> Result<&'static str, ModelError> {
    let found = builtin().iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<_> = builtin().iter().map(|(name, _)| *name).collect();
        let reason = format!(
            "no such drive{}; known: {}; or give the path of a drive file that ends in .toml",
            did_you_mean(name, &known),
            known.join(", ")
        );
        ModelError::new(ModelErrorKind::UnknownDrive, name, reason)
    })
}

/// The text of a file; `what` says in errors what it is.
pub(crate) fn text_at(path: &Path, what: &str) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|error| {
        let reason = format!("cannot read {what}: {error}");
        ModelError::new(ModelErrorKind::Unreadable, &path.display().to_string(), reason)
            .because(error)
    })
}

/// Reads a drive file. `path` names it in errors and gives the drive its name.
///
/// # Errors
/// On text that is not TOML, unknown keys, missing figures, and figures that are out of range or
/// contradict each other: with line, key and what would be right.
pub fn parse(text: &str, path: &str) -> Result<DriveSpec, ModelError> {
    let source = Source { path, text };
    let document = source.document::<ModelError>()?;
    let (table, root) = (document.get_ref(), Table::root(&source, &document));
    let title = root.required_text("title", "title = \"Maker and model\"")?.to_owned();
    let kind = root.required_text("kind", "kind = \"hard-disk\"")?;
    let (kind, figures) = match kind {
        "hard-disk" => {
            check_keys(&root, &[&KEYS, &[CURVE]])?;
            let (f, figures) = hard_disk_figures(source, table)?;
            let spec = HardDiskSpec::new(f).map_err(|bad| wrong(source, table, bad))?;
            (DriveKind::HardDisk(spec), figures)
        }
        "ssd" => {
            check_keys(&root, &[&ssd::KEYS])?;
            let (values, figures) = read_figures(source, table, &ssd::KEYS)?;
            let spec = SsdSpec::new(ssd::figures(&values));
            (DriveKind::Ssd(spec.map_err(|bad| wrong(source, table, bad))?), figures)
        }
        "shingled-disk" => {
            check_keys(&root, &[&KEYS, &[CURVE], &smr::KEYS])?;
            let (f, mut figures) = hard_disk_figures(source, table)?;
            let (values, more) = read_figures(source, table, &smr::KEYS)?;
            figures.extend(more);
            let spec = SmrSpec::new(smr::figures(f, &values));
            (DriveKind::Smr(spec.map_err(|bad| wrong(source, table, bad))?), figures)
        }
        other => {
            let hint = did_you_mean(other, &KINDS);
            let known = KINDS.join("\", \"");
            let reason = format!("\"{other}\" is not a kind of drive{hint}; known: \"{known}\"");
            let offset = offset_of(table, "kind");
            return Err(error_at(source, ModelErrorKind::OutOfRange, offset, "kind", reason));
        }
    };
    let stem = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = stem.strip_suffix(".toml").unwrap_or(stem).to_owned();
    let capacity = match &kind {
        DriveKind::HardDisk(spec) => spec.figures().capacity,
        DriveKind::Ssd(spec) => spec.figures().capacity,
        DriveKind::Smr(spec) => spec.figures().capacity(),
    };
    Ok(DriveSpec { name, title, capacity, kind, figures })
}

/// Refuses keys that a kind of drive does not have.
fn check_keys(table: &Table<'_, ModelError>, keys: &[&[Key]]) -> Result<(), ModelError> {
    let figures = keys.iter().copied().flatten().map(|(key, ..)| *key);
    let known: Vec<_> = ["title", "kind"].into_iter().chain(figures).collect();
    table.unknown_keys(&known).into_iter().next().map_or(Ok(()), Err)
}

/// The figures of a list of keys, by its order.
fn read_figures<const N: usize>(
    source: Source<'_>,
    table: &DeTable<'_>,
    keys: &[Key; N],
) -> Result<([u64; N], Vec<Figure>), ModelError> {
    let mut values = [0; N];
    let mut figures = Vec::with_capacity(N);
    for (slot, (key, quantity, default)) in values.iter_mut().zip(*keys) {
        let (figure, value) = figure(source, table, key, quantity, default)?;
        figures.push(figure);
        *slot = value;
    }
    Ok((values, figures))
}

/// What the file says of the mechanism, unchecked.
fn hard_disk_figures(
    source: Source<'_>,
    table: &DeTable<'_>,
) -> Result<(HardDiskFigures, Vec<Figure>), ModelError> {
    let (values, mut figures) = read_figures(source, table, &KEYS)?;
    let mut disk = hard_disk(&values);
    if let Some(value) = table.get(CURVE.0) {
        let offset = offset_of(table, CURVE.0);
        let (figure, points) = read_points(source, CURVE.0, offset, value.get_ref())?;
        figures.push(figure);
        let point =
            |[cylinders, ms]: &[f64; 2]| (*cylinders as u32, Nanos((ms * 1e6 + 0.5) as u64));
        disk.seek_points = points.iter().map(point).collect();
    }
    Ok((disk, figures))
}

/// Where a key stands; the start of the text when it does not.
fn offset_of(table: &DeTable<'_>, name: &str) -> usize {
    table.keys().find(|key| key.get_ref() == name).map_or(0, |key| key.span().start)
}

fn figure(
    source: Source<'_>,
    table: &DeTable<'_>,
    key: &'static str,
    quantity: Quantity,
    default: Option<u64>,
) -> Result<(Figure, u64), ModelError> {
    if let Some(value) = table.get(key) {
        return read(source, (key, quantity), offset_of(table, key), value.get_ref());
    }
    let Some(value) = default else {
        let reason = "the figure is missing; docs/drives.md says what it means";
        return Err(ModelError::new(ModelErrorKind::Missing, source.path, reason).for_key(key));
    };
    let shown = quantity.show(value);
    let source = "default of raidlab".to_owned();
    let amount = Some((quantity, value));
    Ok((Figure { key, value: shown, status: Status::Estimate, source, amount }, value))
}

/// What does not fit is far outside the range of any figure and is refused by the check.
fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// What the firmware does with the buffer, by the order of [`KEYS`].
fn policy(values: [u64; 8]) -> CachePolicy {
    let [
        read_ahead_limit,
        in_order_only,
        stays_ahead,
        whole_track,
        keeps_delivered,
        written_ranges,
        hold,
        immediate_report,
    ] = values;
    CachePolicy {
        read_ahead: if stays_ahead != 0 { ReadAhead::Stream } else { ReadAhead::Segment },
        trigger: if in_order_only != 0 { Trigger::Continued } else { Trigger::EveryRead },
        most_ahead: Sectors(read_ahead_limit),
        hold: Sectors(hold),
        delivered: if keeps_delivered != 0 { Delivered::Kept } else { Delivered::Overwritten },
        whole_track: whole_track != 0,
        written_ranges: small(written_ranges),
        immediate_report: immediate_report != 0,
        ..CachePolicy::default()
    }
}

/// The figures by the order of [`KEYS`].
pub(crate) fn hard_disk(values: &[u64; KEYS.len()]) -> HardDiskFigures {
    let [
        capacity,
        rotation,
        tolerance,
        heads,
        zones,
        track_to_track,
        average_seek,
        full_stroke,
        write_settle,
        head_switch,
        outer_rate,
        inner_rate,
        overhead,
        link_rate,
        segments,
        segment,
        write_cache,
        buffer,
        extents,
        cache @ ..,
        queue_depth,
        queue_choice,
        queue_age_limit,
    ] = *values;
    HardDiskFigures {
        capacity: Sectors(capacity),
        rpm: small(rotation),
        rotation_tolerance: small(tolerance),
        turn_drift: 0,
        heads: small(heads),
        zones: small(zones),
        zone_table: Vec::new(),
        track_to_track: Nanos(track_to_track),
        average_seek: Nanos(average_seek),
        full_stroke: Nanos(full_stroke),
        seek_points: Vec::new(),
        write_settle: Nanos(write_settle),
        head_switch: Nanos(head_switch),
        outer_rate,
        inner_rate,
        command_overhead: Nanos(overhead),
        overheads: None,
        link_rate,
        read_segments: small(segments),
        segment: Sectors(segment),
        write_cache: write_cache != 0,
        write_buffer: Sectors(buffer),
        write_extents: small(extents),
        cache: policy(cache),
        queue_depth: small(queue_depth),
        queue_choice: small(queue_choice),
        queue_age_limit: Nanos(queue_age_limit),
    }
}

fn wrong(source: Source<'_>, table: &DeTable<'_>, bad: BadFigure) -> ModelError {
    let kind =
        if bad.contradicts { ModelErrorKind::Contradiction } else { ModelErrorKind::OutOfRange };
    error_at(source, kind, offset_of(table, bad.key), bad.key, bad.reason.clone()).because(bad)
}
