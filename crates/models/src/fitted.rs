//! Drives with single figures replaced: what studies know better of a drive than its file does.

use crate::figures::{Figure, Quantity, Status};
use crate::file::{DriveKind, DriveSpec, KEYS, hard_disk};
use crate::smr::{self, SmrSpec};
use crate::spec::{BadFigure, HardDiskFigures, HardDiskSpec};
use crate::ssd::{self, SsdSpec};

/// The rate of the medium as a whole: the outer rate, with the inner one in proportion.
pub const MEDIA_RATE: &str = "media_rate";

const OUTER: &str = "outer_rate";
const INNER: &str = "inner_rate";

/// Every number of a drive that can be replaced, of all kinds of drives: the figures of drive files
/// but for switches and curves, and [`MEDIA_RATE`].
pub fn adjustable() -> Vec<(&'static str, Quantity)> {
    let mut all = vec![(MEDIA_RATE, Quantity::Rate)];
    for (key, quantity, _) in KEYS.iter().chain(&smr::KEYS).chain(&ssd::KEYS) {
        if *quantity != Quantity::Switch && !all.iter().any(|(known, _)| known == key) {
            all.push((key, *quantity));
        }
    }
    all
}

impl DriveSpec {
    /// Whether a host has single writes made durable by FUA: NVMe and SAS drives; libata leaves it off,
    /// so behind SATA a flush follows the write.
    pub fn has_fua(&self) -> bool {
        self.is_nvme() || self.is_sas()
    }

    /// Whether it is reached by SAS.
    pub fn is_sas(&self) -> bool {
        self.name.starts_with("sas-")
    }

    /// Whether it is reached by NVMe.
    pub fn is_nvme(&self) -> bool {
        self.name.starts_with("ssd-nvme")
    }

    /// Pieces of memory that a host's driver takes for one request: 127 with NVMe (`NVME_MAX_SEGS`,
    /// drivers/nvme/host/pci.c), 168 behind AHCI (`AHCI_MAX_SG`, drivers/ata/ahci.h) and, as here, others.
    pub fn most_pieces(&self) -> u32 {
        if self.is_nvme() { 127 } else { 168 }
    }

    /// The value of a figure in its base unit: sectors, nanoseconds, bytes per second, a number.
    /// `None` where the drive has no such figure.
    pub fn amount(&self, key: &str) -> Option<u64> {
        let key = if key == MEDIA_RATE { OUTER } else { key };
        let figure = self.figures.iter().find(|figure| figure.key == key)?;
        figure.amount.map(|(_, amount)| amount)
    }

    /// The same drive with other values of figures (as [`amount`](Self::amount) counts them), each from
    /// a source that its figure then names; a source that begins with a status, such as `data sheet`,
    /// gives it that, any other makes it an estimate.
    ///
    /// # Errors
    /// When the drive has no such figure, or cannot be with these values; names the figure.
    pub fn with_amounts(&self, changes: &[(&str, u64, &str)]) -> Result<Self, BadFigure> {
        let mut figures = self.figures.clone();
        let mut replace = |key: &str, amount: u64, source: &str| {
            let figure = figures.iter_mut().find(|figure| figure.key == key);
            let figure = figure.and_then(|figure| Some((figure.amount?.0, figure)));
            let Some((quantity, figure)) = figure else {
                let reason = format!("{} has no `{key}`", self.name);
                return Err(BadFigure { key: "figure", contradicts: false, reason });
            };
            figure.value = quantity.show(amount);
            figure.amount = Some((quantity, amount));
            let status = Status::ALL.into_iter().find(|one| source.starts_with(one.name()));
            figure.status = status.unwrap_or(Status::Estimate);
            figure.source = source.to_owned();
            Ok(())
        };
        for &(key, amount, source) in changes {
            if key != MEDIA_RATE {
                replace(key, amount, source)?;
                continue;
            }
            let (Some(outer), Some(inner)) = (self.amount(OUTER), self.amount(INNER)) else {
                let reason = format!("{} has no `{key}`", self.name);
                return Err(BadFigure { key: MEDIA_RATE, contradicts: false, reason });
            };
            let inner = u128::from(inner) * u128::from(amount) / u128::from(outer.max(1));
            replace(OUTER, amount, source)?;
            replace(INNER, u64::try_from(inner).unwrap_or(u64::MAX), source)?;
        }
        let kind = self.kind_of(&figures)?;
        let capacity = match &kind {
            DriveKind::HardDisk(spec) => spec.figures().capacity,
            DriveKind::Ssd(spec) => spec.figures().capacity,
            DriveKind::Smr(spec) => spec.figures().capacity(),
        };
        Ok(Self { capacity, kind, figures, ..self.clone() })
    }

    /// What these figures make of a drive of this kind.
    fn kind_of(&self, figures: &[Figure]) -> Result<DriveKind, BadFigure> {
        let disk = |of: &HardDiskFigures| {
            let made = hard_disk(&values(figures, &KEYS));
            // What no single number gives stays as it is.
            HardDiskFigures {
                seek_points: of.seek_points.clone(),
                zone_table: of.zone_table.clone(),
                overheads: of.overheads,
                ..made
            }
        };
        Ok(match &self.kind {
            DriveKind::HardDisk(spec) => {
                DriveKind::HardDisk(HardDiskSpec::new(disk(spec.figures()))?)
            }
            DriveKind::Ssd(_) => {
                DriveKind::Ssd(SsdSpec::new(ssd::figures(&values(figures, &ssd::KEYS)))?)
            }
            DriveKind::Smr(spec) => {
                let disk = disk(&spec.figures().disk);
                let figures = smr::figures(disk, &values(figures, &smr::KEYS));
                DriveKind::Smr(SmrSpec::new(figures)?)
            }
        })
    }
}

/// The figures by the order of a list of keys.
fn values<const N: usize>(figures: &[Figure], keys: &[crate::file::Key; N]) -> [u64; N] {
    keys.map(|(key, ..)| {
        let figure = figures.iter().find(|figure| figure.key == key);
        figure.and_then(|figure| figure.amount).map_or(0, |(_, amount)| amount)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{builtin, load};

    /// Every figure of every kind, put back as it was, gives the same drive: none is lost or mixed up.
    #[test]
    fn a_figure_replaced_by_itself_changes_nothing() {
        for (name, _) in builtin() {
            let drive = load(name).expect("a drive");
            let numbers = adjustable()
                .into_iter()
                .filter_map(|(key, _)| drive.amount(key).map(|amount| (key, amount)));
            let numbers: Vec<_> = numbers.collect();
            assert!(numbers.len() > 10, "{name}");
            let (key, amount) = numbers[numbers.len() / 2];
            let same = drive.with_amounts(&[(key, amount, "a test")]).expect("can be");
            assert_eq!((same.capacity, same.kind), (drive.capacity, drive.kind), "{name}: {key}");
        }
    }

    #[test]
    fn a_replaced_figure_is_in_the_drive_and_in_its_list() {
        let drive = load("pata-80gb-7200").expect("a drive");
        let changed =
            drive.with_amounts(&[("command_overhead", 123_000, "a test")]).expect("can be");
        let DriveKind::HardDisk(spec) = &changed.kind else { panic!("a hard disk") };
        assert_eq!(spec.figures().command_overhead.0, 123_000);
        let figure = changed.figures.iter().find(|figure| figure.key == "command_overhead");
        let figure = figure.expect("listed");
        assert_eq!((figure.value.as_str(), figure.source.as_str()), ("123 us", "a test"));
    }

    #[test]
    fn the_rate_of_the_medium_keeps_its_proportion() {
        let drive = load("sas-146gb-10k").expect("a drive");
        let (outer, inner) = (drive.amount("outer_rate"), drive.amount("inner_rate"));
        assert_eq!((outer, inner), (Some(80_000_000), Some(55_000_000)));
        let changed = drive.with_amounts(&[(MEDIA_RATE, 40_000_000, "a test")]).expect("can be");
        let (outer, inner) = (changed.amount("outer_rate"), changed.amount("inner_rate"));
        assert_eq!((outer, inner), (Some(40_000_000), Some(27_500_000)));
        assert_eq!(changed.amount(MEDIA_RATE), Some(40_000_000));
    }

    /// Two values that only go together: the one without the other would be refused.
    #[test]
    fn values_are_judged_together() {
        let drive = load("sas-146gb-10k").expect("a drive");
        let both = [
            ("inner_rate", 90_000_000, "measured by us"),
            ("outer_rate", 120_000_000, "given cells"),
        ];
        assert!(drive.with_amounts(&both[..1]).is_err());
        let changed = drive.with_amounts(&both).expect("can be");
        let status = |key| changed.figures.iter().find(|one| one.key == key).map(|one| one.status);
        assert_eq!(status("inner_rate"), Some(Status::Measured));
        assert_eq!(status("outer_rate"), Some(Status::Estimate));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let disk = load("sas-146gb-10k").expect("a drive");
        let error =
            disk.with_amounts(&[("inner_rate", 90_000_000, "a test")]).expect_err("inner > outer");
        assert!(error.contradicts && error.key == "outer_rate", "{error}");
        let error = disk.with_amounts(&[("heads", 65, "a test")]).expect_err("too many");
        assert_eq!(error.key, "heads");
        for key in ["slc_cache", "colour", "seek_curve"] {
            let error = disk.with_amounts(&[(key, 1, "a test")]).expect_err("no such figure");
            assert!(error.reason.contains(&format!("no `{key}`")), "{error}");
        }
        let ssd = load("ssd-sata-1tb").expect("a drive");
        assert_eq!(ssd.amount(MEDIA_RATE), None);
        assert!(ssd.with_amounts(&[(MEDIA_RATE, 40_000_000, "a test")]).is_err());
    }
}
