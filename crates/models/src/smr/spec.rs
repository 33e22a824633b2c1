//! The figures of a shingled disk, and the check that they describe one that can exist.

use raidlab_core::units::{Nanos, Sectors};

use crate::figures::Quantity;
use crate::file::Key;
use crate::spec::{BadFigure, HardDiskFigures, HardDiskSpec, KIB, MS, contradiction, within};

/// The figures of a shingled disk besides those of a hard disk, by the order of [`figures`].
pub(crate) const KEYS: [Key; 4] = [
    ("media_cache", Quantity::Size, None),
    ("media_cache_extents", Quantity::Count, Some(100_000)),
    ("zone_size", Quantity::Size, None),
    ("clean_after", Quantity::Time, Some(1_000_000_000)),
];

/// The figures of a shingled disk, as its drive file gives them. Ranges stand in `docs/drives.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmrFigures {
    /// The mechanism and its caches. `capacity` here is all of the medium, media cache included.
    pub disk: HardDiskFigures,
    /// Tracks at the outer edge that take writes until their zones are cleaned.
    pub media_cache: Sectors,
    /// How many ranges the media cache can hold.
    pub media_cache_extents: u32,
    /// A zone of overlapping tracks: it is rewritten as a whole.
    pub zone: Sectors,
    /// How long the drive rests before it begins to clean.
    pub clean_after: Nanos,
}

impl SmrFigures {
    /// What the drive holds for its user.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.disk.capacity.0.saturating_sub(self.media_cache.0))
    }
}

/// The figures from those of the mechanism, whose capacity is the user's, and the values of [`KEYS`].
pub(crate) fn figures(mut disk: HardDiskFigures, values: &[u64; KEYS.len()]) -> SmrFigures {
    let [media_cache, extents, zone, clean_after] = *values;
    disk.capacity = Sectors(disk.capacity.0.saturating_add(media_cache));
    SmrFigures {
        disk,
        media_cache: Sectors(media_cache),
        media_cache_extents: u32::try_from(extents).unwrap_or(u32::MAX),
        zone: Sectors(zone),
        clean_after: Nanos(clean_after),
    }
}

/// The figures of a shingled disk that can exist: checked against ranges and against each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmrSpec {
    figures: SmrFigures,
    pub(super) disk: HardDiskSpec,
}

impl SmrSpec {
    /// Checks the figures.
    ///
    /// # Errors
    /// Names the first figure that is out of range or contradicts another one, by its key.
    pub fn new(figures: SmrFigures) -> Result<Self, BadFigure> {
        within("zone_size", figures.zone.0, (2_048, 1 << 21), KIB)?;
        within("media_cache", figures.media_cache.0, (4_096, 1 << 31), KIB)?;
        let extents = figures.media_cache_extents.into();
        within("media_cache_extents", extents, (1, 10_000_000), ("ranges", 1.0))?;
        within("clean_after", figures.clean_after.0, (1_000_000, 1_000_000_000_000), MS)?;
        check_cache(&figures)?;
        let disk = HardDiskSpec::new(figures.disk.clone())?;
        Ok(Self { figures, disk })
    }

    /// The mechanism that it is built upon.
    pub fn disk(&self) -> &HardDiskSpec {
        &self.disk
    }

    /// The figures.
    pub fn figures(&self) -> &SmrFigures {
        &self.figures
    }
}

fn check_cache(figures: &SmrFigures) -> Result<(), BadFigure> {
    let mib = |sectors: Sectors| sectors.0 as f64 / 2_048.0;
    let (user, zone, cache) = (figures.capacity(), figures.zone, figures.media_cache);
    if cache < Sectors(2 * zone.0) {
        let reason = format!("{} MiB are less than two zones of {} MiB", mib(cache), mib(zone));
        return contradiction("media_cache", reason);
    }
    if user < cache {
        let reason =
            format!("{} MiB are more than the {} MiB that the drive holds", mib(cache), mib(user));
        return contradiction("media_cache", reason);
    }
    Ok(())
}
