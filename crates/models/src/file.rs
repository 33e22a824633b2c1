//! Drive files: from TOML to a checked specification. The schema stands in `docs/drives.md`.

use raidlab_core::units::{Nanos, Sectors};
use toml::de::{DeTable, DeValue};

use crate::error::{ModelError, ModelErrorKind};
use crate::figures::{Figure, Quantity, Source, Status, read};
use crate::spec::{BadFigure, HardDiskFigures, HardDiskSpec};

/// A drive as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
pub enum DriveKind {
    /// `kind = "hard-disk"`.
    HardDisk(HardDiskSpec),
}

/// Every figure of a hard disk: key, quantity, and the default in the base unit if there is one.
const KEYS: [(&str, Quantity, Option<u64>); 18] = [
    ("capacity", Quantity::Size, None),
    ("rotation", Quantity::Speed, None),
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
];

/// The drives compiled in: name and drive file.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    &[
        ("nas-8tb-7200", include_str!("../../../drives/nas-8tb-7200.toml")),
        ("pata-80gb-7200", include_str!("../../../drives/pata-80gb-7200.toml")),
    ]
}

/// Reads the drive file at a path that ends in `.toml`, or else the compiled-in drive of that name.
///
/// # Errors
/// When there is no such drive or file, or when [`parse`] fails.
pub fn load(name_or_path: &str) -> Result<DriveSpec, ModelError> {
    if name_or_path.ends_with(".toml") {
        let text = std::fs::read_to_string(name_or_path).map_err(|error| {
            let reason = format!("cannot read the drive file: {error}");
            ModelError::new(ModelErrorKind::Unreadable, name_or_path, reason).because(error)
        })?;
        return parse(&text, name_or_path);
    }
    let Some((name, text)) = builtin().iter().find(|(name, _)| *name == name_or_path) else {
        let known: Vec<_> = builtin().iter().map(|(name, _)| *name).collect();
        let reason = format!(
            "no such drive; known: {}; or give the path of a drive file that ends in .toml",
            known.join(", ")
        );
        return Err(ModelError::new(ModelErrorKind::UnknownDrive, name_or_path, reason));
    };
    parse(text, &format!("drives/{name}.toml"))
}

/// Reads a drive file. `path` names it in errors and gives the drive its name.
///
/// # Errors
/// On text that is not TOML, unknown keys, missing figures, and figures that are out of range or
/// contradict each other: with line, key and what would be right.
pub fn parse(text: &str, path: &str) -> Result<DriveSpec, ModelError> {
    let source = Source { path, text };
    let table = DeTable::parse(text).map_err(|error| {
        let line = source.line(error.span().map_or(0, |span| span.start));
        let reason = format!("not TOML: {}", error.message());
        ModelError::new(ModelErrorKind::Syntax, path, reason).at_line(line).because(error)
    })?;
    let table = table.get_ref();
    let title = string(source, table, "title", "the name of the drive")?;
    let kind = string(source, table, "kind", "\"hard-disk\"")?;
    if kind != "hard-disk" {
        let reason = format!("\"{kind}\" is not a kind of drive; known: \"hard-disk\"");
        let offset = offset_of(table, "kind");
        return Err(source.error(ModelErrorKind::OutOfRange, offset, "kind", reason));
    }
    for key in table.keys() {
        let name = key.get_ref().as_ref();
        if !matches!(name, "title" | "kind") && KEYS.iter().all(|(known, ..)| *known != name) {
            let known: Vec<_> = KEYS.iter().map(|(known, ..)| *known).collect();
            let reason = format!("unknown key; a hard disk has title, kind, {}", known.join(", "));
            let offset = key.span().start;
            return Err(source.error(ModelErrorKind::UnknownKey, offset, name, reason));
        }
    }
    let mut values = [0; KEYS.len()];
    let mut figures = Vec::with_capacity(KEYS.len());
    for (slot, (key, quantity, default)) in values.iter_mut().zip(KEYS) {
        let (figure, value) = figure(source, table, key, quantity, default)?;
        figures.push(figure);
        *slot = value;
    }
    let spec = HardDiskSpec::new(hard_disk(&values)).map_err(|bad| wrong(source, table, bad))?;
    let stem = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let name = stem.strip_suffix(".toml").unwrap_or(stem).to_owned();
    let capacity = spec.figures().capacity;
    Ok(DriveSpec { name, title, capacity, kind: DriveKind::HardDisk(spec), figures })
}

/// Where a key stands; the start of the text when it does not.
fn offset_of(table: &DeTable<'_>, name: &str) -> usize {
    table.keys().find(|key| key.get_ref() == name).map_or(0, |key| key.span().start)
}

fn string(
    source: Source<'_>,
    table: &DeTable<'_>,
    key: &str,
    what: &str,
) -> Result<String, ModelError> {
    match table.get(key).map(|value| value.get_ref()) {
        Some(DeValue::String(text)) => Ok(text.to_string()),
        Some(other) => {
            let reason = format!("must be a string, {what}, not {}", other.type_str());
            let offset = offset_of(table, key);
            Err(source.error(ModelErrorKind::WrongType, offset, key, reason))
        }
        None => {
            let reason = format!("is missing; give {what} as a string");
            let kind = ModelErrorKind::Missing;
            Err(ModelError::new(kind, source.path, reason).for_key(key))
        }
    }
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
    let shown =
        if quantity == Quantity::Switch { "true on".into() } else { format!("{value} count") };
    let source = "default of raidlab".to_owned();
    Ok((Figure { key, value: shown, status: Status::Estimate, source }, value))
}

/// The figures by the order of [`KEYS`].
fn hard_disk(values: &[u64; KEYS.len()]) -> HardDiskFigures {
    // What does not fit is far outside the range and is refused by the check.
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let [
        capacity,
        rotation,
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
    ] = *values;
    HardDiskFigures {
        capacity: Sectors(capacity),
        rpm: small(rotation),
        heads: small(heads),
        zones: small(zones),
        track_to_track: Nanos(track_to_track),
        average_seek: Nanos(average_seek),
        full_stroke: Nanos(full_stroke),
        write_settle: Nanos(write_settle),
        head_switch: Nanos(head_switch),
        outer_rate,
        inner_rate,
        command_overhead: Nanos(overhead),
        link_rate,
        read_segments: small(segments),
        segment: Sectors(segment),
        write_cache: write_cache != 0,
        write_buffer: Sectors(buffer),
        write_extents: small(extents),
    }
}

fn wrong(source: Source<'_>, table: &DeTable<'_>, bad: BadFigure) -> ModelError {
    let kind =
        if bad.contradicts { ModelErrorKind::Contradiction } else { ModelErrorKind::OutOfRange };
    source.error(kind, offset_of(table, bad.key), bad.key, bad.reason.clone()).because(bad)
}
