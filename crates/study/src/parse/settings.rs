//! Keys for how arrays keep redundancy consistent and how background work goes: for the whole study, and
//! for a layout.

use raidlab_core::contract::{Pacing, PacingRule};
use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Consistency, Layout, Limits, SECTOR_BYTES, Sectors, Settings, Size, Tie};

use super::table::{StudyTable, Table};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::GROUP_THREADS;

/// The keys, of the study as of a layout.
pub(super) const KEYS: [&str; 7] = [
    "consistency",
    "bitmap_chunk",
    "journal_size",
    "pacing",
    "tie",
    "cached_stripes",
    GROUP_THREADS,
];

const MODES: [&str; 5] = ["none", "resync", "bitmap", "ppl", "journal"];
const TIES: [(&str, Tie); 3] = [
    ("reconstruct-write", Tie::ReconstructWrite),
    ("read-modify-write", Tie::ReadModifyWrite),
    ("never-modify", Tie::NeverModify),
];

/// Bytes a bit of the bitmap stands for where nothing is said: mdadm's 64 MiB.
const BITMAP_CHUNK: u64 = 64 << 20;
/// Bytes of a journal where nothing is said.
const JOURNAL: u64 = 256 << 20;
/// The most stripes that are kept in memory.
const MOST_CACHED: u64 = 1 << 20;
/// The most threads that md takes for its stripes (`raid5_store_group_thread_cnt` in drivers/md/raid5.c).
const MOST_THREADS: u64 = 8192;

/// What a table says; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    mode: Option<&'static str>,
    bitmap_chunk: Option<Sectors>,
    journal: Option<Sectors>,
    pacing: Option<Pacing>,
    tie: Option<Tie>,
    cached_stripes: Option<u32>,
    group_threads: Option<u16>,
}

/// Reads the keys of a table.
pub(super) fn read(table: &Table<'_>) -> Result<Given, StudyError> {
    let given = Given {
        mode: one_of(table, "consistency", MODES.map(|name| (name, name)))?,
        bitmap_chunk: sectors(table, "bitmap_chunk")?,
        journal: sectors(table, "journal_size")?,
        pacing: pacing(table)?,
        tie: one_of(table, "tie", TIES)?,
        cached_stripes: table.integer("cached_stripes", 0..=MOST_CACHED)?.map(|count| count as u32),
        group_threads: table.integer(GROUP_THREADS, 0..=MOST_THREADS)?.map(|count| count as u16),
    };
    if let Some(chunk) = given.bitmap_chunk
        && !chunk.0.is_power_of_two()
    {
        let reason = format!("{chunk} is not a power of two");
        return Err(table.error(Kind::WrongValue, "bitmap_chunk", reason));
    }
    Ok(given)
}

impl Given {
    /// The settings of a layout: what it says itself goes before what the study says, which holds only
    /// where it makes sense.
    pub(super) fn over(
        &self,
        study: &Self,
        layout: &Layout,
        table: &Table<'_>,
    ) -> Result<Settings, StudyError> {
        let has_stripes = |floor: &Layout| floor.level.has_stripes();
        let parity = layout.floors().any(has_stripes);
        let redundant = layout.survives() > 0;
        let only = |key: &str, given: bool, there: bool, what: &str| {
            if given && !there {
                let reason = format!("{} {what}; leave it out", layout.level);
                return Err(table.error(Kind::ImpossibleLayout, key, reason));
            }
            Ok(())
        };
        only("pacing", self.pacing.is_some(), redundant, "has nothing to rebuild")?;
        only("tie", self.tie.is_some(), parity, "has no parity to make in two ways")?;
        only("cached_stripes", self.cached_stripes.is_some(), parity, "has no stripes to keep")?;
        let mode = self.mode.or(study.mode.filter(|mode| suits(mode, layout)));
        let with_bitmap = mode == Some("bitmap");
        let missing = "needs consistency = \"bitmap\" for it";
        only("bitmap_chunk", self.bitmap_chunk.is_some(), with_bitmap, missing)?;
        let missing = "needs consistency = \"journal\" for it";
        only("journal_size", self.journal.is_some(), mode == Some("journal"), missing)?;
        let bitmap_chunk = self.bitmap_chunk.or(study.bitmap_chunk);
        let journal = self.journal.or(study.journal);
        let of_parity = |here: bool| if here { Some(()) } else { None };
        let settings = Settings {
            consistency: consistency(mode, bitmap_chunk, journal),
            pacing: self.pacing.or(study.pacing.filter(|_| redundant)).unwrap_or_default(),
            tie: self.tie.or(of_parity(parity).and(study.tie)).unwrap_or_default(),
            cached_stripes: self
                .cached_stripes
                .or(of_parity(parity).and(study.cached_stripes))
                .unwrap_or(0),
            ..Settings::default()
        };
        settings.check(layout).map_err(|error| {
            table.error(Kind::ImpossibleLayout, error.key, error.reason.clone()).with_source(error)
        })?;
        Ok(settings)
    }
}

impl Given {
    /// The threads of md's own that handle a layout's stripes besides its one, by the same rules.
    pub(super) fn group_threads(
        &self,
        study: &Self,
        layout: &Layout,
        table: &Table<'_>,
    ) -> Result<u16, StudyError> {
        let has_stripes = layout.floors().any(|floor| floor.level.has_stripes());
        if self.group_threads.is_some() && !has_stripes {
            let reason = format!("{} has no stripes to handle; leave it out", layout.level);
            return Err(table.error(Kind::ImpossibleLayout, GROUP_THREADS, reason));
        }
        let of_study = study.group_threads.filter(|_| has_stripes);
        Ok(self.group_threads.or(of_study).unwrap_or_default())
    }
}

/// The settings that differ from the defaults, as they stand behind a layout's name.
pub(super) fn suffix(settings: &Settings) -> String {
    let mut parts = Vec::new();
    let plain = Settings::default();
    if settings.consistency != plain.consistency {
        parts.push(mode_name(settings.consistency).to_string());
    }
    if let Consistency::Bitmap { chunk } = settings.consistency
        && chunk.bytes() != BITMAP_CHUNK
    {
        parts.push(format!("bitmap_chunk={}", Size(chunk.bytes()).short()));
    }
    if settings.tie != plain.tie {
        let name = TIES.iter().find(|(_, tie)| *tie == settings.tie).map_or("", |(name, _)| name);
        parts.push(format!("tie={name}"));
    }
    if settings.cached_stripes != plain.cached_stripes {
        parts.push(format!("cached_stripes={}", settings.cached_stripes));
    }
    parts.into_iter().map(|part| format!(" {part}")).collect()
}

const fn mode_name(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::None => "none",
        Consistency::Resync => "resync",
        Consistency::Bitmap { .. } => "bitmap",
        Consistency::PartialParity { .. } => "ppl",
        Consistency::Journal { .. } => "journal",
    }
}

fn consistency(
    mode: Option<&str>,
    bitmap_chunk: Option<Sectors>,
    journal: Option<Sectors>,
) -> Consistency {
    let sectors = |bytes: u64| Sectors(bytes / SECTOR_BYTES);
    match mode {
        Some("resync") => Consistency::Resync,
        Some("bitmap") => {
            Consistency::Bitmap { chunk: bitmap_chunk.unwrap_or(sectors(BITMAP_CHUNK)) }
        }
        Some("ppl") => Consistency::PartialParity { slots: Limits::default().plans },
        Some("journal") => Consistency::Journal { sectors: journal.unwrap_or(sectors(JOURNAL)) },
        _ => Consistency::None,
    }
}

/// Whether a mode is possible for a layout.
fn suits(mode: &str, layout: &Layout) -> bool {
    let settings =
        Settings { consistency: consistency(Some(mode), None, None), ..Settings::default() };
    settings.check(layout).is_ok()
}

fn one_of<T: Copy, const N: usize>(
    table: &Table<'_>,
    key: &str,
    known: [(&'static str, T); N],
) -> Result<Option<T>, StudyError> {
    let Some(name) = table.text(key)? else { return Ok(None) };
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.map(Some).ok_or_else(|| {
        let names = known.map(|(name, _)| name);
        let hint = did_you_mean(name, &names);
        let reason = format!("`{name}` is not one{hint}; known: {}", names.join(", "));
        table.error(Kind::UnknownName, key, reason)
    })
}

fn sectors(table: &Table<'_>, key: &str) -> Result<Option<Sectors>, StudyError> {
    let Some(size) = table.size(key)? else { return Ok(None) };
    let wrong = || {
        let reason = format!("{size} is not a multiple of 4KiB");
        table.error(Kind::WrongValue, key, reason)
    };
    let sectors = Sectors::from_bytes(size.0).filter(|sectors| sectors.0.is_multiple_of(8));
    sectors.map(Some).ok_or_else(wrong)
}

/// `pacing = { least = "1MB/s", most = "200MB/s", share = "30%" }`, or `sync_io_depth = 32`.
fn pacing(table: &Table<'_>) -> Result<Option<Pacing>, StudyError> {
    const KEY: &str = "pacing";
    let example = "pacing = { least = \"1MB/s\", most = \"200MB/s\" }";
    let Some(inner) = table.table(KEY, example)? else { return Ok(None) };
    inner.check_keys(&["least", "most", "share", DEPTH])?;
    let plain = Pacing::default();
    let share = share(&inner)?;
    let depth = inner.integer(DEPTH, 1..=1024)?;
    let pacing = Pacing {
        least: rate(&inner, "least")?.unwrap_or(plain.least),
        most: rate(&inner, "most")?.unwrap_or(plain.most),
        rule: match (share, depth) {
            (Some(share), _) => PacingRule::Share(share),
            (None, Some(depth)) => PacingRule::Depth(depth as u16),
            (None, None) => PacingRule::Activity,
        },
    };
    for other in ["least", DEPTH] {
        if share.is_some() && inner.has(other) {
            let reason = format!(
                "stands beside `{other}`; a share of the time takes its place, so give one"
            );
            return Err(inner.error(Kind::WrongValue, "share", reason));
        }
    }
    if pacing.most < pacing.least && share.is_none() {
        let reason =
            format!("{}/s is less than the least, {}/s", Size(pacing.most), Size(pacing.least));
        return Err(inner.error(Kind::WrongValue, "most", reason));
    }
    Ok(Some(pacing))
}

/// md's name for it, since 6.16.
const DEPTH: &str = "sync_io_depth";

fn rate(table: &Table<'_>, key: &str) -> Result<Option<u64>, StudyError> {
    const RIGHT: &str = "write bytes a second, such as \"1MB/s\" or \"200MiB/s\"";
    let Some(text) = table.text(key)? else { return Ok(None) };
    let size = text.trim().strip_suffix("/s").and_then(|size| size.parse::<Size>().ok());
    match size {
        Some(Size(bytes)) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(table.error(Kind::WrongUnit, key, format!("`{text}` is no rate; {RIGHT}"))),
    }
}

fn share(table: &Table<'_>) -> Result<Option<u8>, StudyError> {
    const RIGHT: &str = "write a whole percentage from 1% to 100%, such as \"30%\"";
    let Some(text) = table.text("share")? else { return Ok(None) };
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<u8>().ok());
    match number {
        Some(percent @ 1..=100) => Ok(Some(percent)),
        _ => Err(table.error(Kind::WrongUnit, "share", format!("`{text}`: {RIGHT}"))),
    }
}
