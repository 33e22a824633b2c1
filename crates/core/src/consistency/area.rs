//! Where a driver without a metadata format of its own keeps records: behind what the array uses of
//! each device.
//!
//! ```text
//! | data | log | pages of the bitmap, two places each | superblock, two places |
//! ```
//!
//! Every record takes a place of 4 KiB; superblock and pages have two, written in turn, so that a torn
//! write leaves the one before. Counted from the end of the device, on multiples of 4 KiB.

use crate::array::{Array, Config, Consistency};
use crate::units::{MemberIndex, Sector, Sectors};
use crate::volume::Volume;

/// Sectors of a record's place (4 KiB).
pub const RECORD: u32 = 8;

/// Bits of the bitmap in a page.
const PAGE_BITS: u64 = 64;

/// How much room records take on the devices of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaArea {
    /// Sectors of log behind the data of each member.
    pub log: Sectors,
    /// Pages of the bitmap.
    pub pages: u32,
    /// Whether there are records at all.
    pub used: bool,
}

impl MetaArea {
    /// What an array of this configuration needs, whose members have at most as much for data as that says; nested
    /// levels keep no records.
    pub fn of_volume(volume: &Volume, config: &Config) -> Self {
        let largest = config.members.iter().map(|member| member.sectors).max().unwrap_or_default();
        let of = |array: &Array| Self::of(array, config.settings.consistency, largest);
        volume.flat().map(of).unwrap_or_default()
    }

    /// What an array needs whose members have at most so many sectors for data.
    pub fn of(array: &Array, consistency: Consistency, largest: Sectors) -> Self {
        if !consistency.has_superblocks() {
            return Self::default();
        }
        let covered = if array.geometry().copies() > 1 { array.capacity() } else { largest };
        let pages = match consistency {
            Consistency::Bitmap { chunk } => covered.0.div_ceil(chunk.0).div_ceil(PAGE_BITS) as u32,
            _ => 0,
        };
        Self { log: array.log_sectors(MemberIndex(0)), pages, used: true }
    }

    /// Sectors in all, besides data: log and records, and what it takes to round.
    pub fn sectors(&self) -> Sectors {
        if !self.used {
            return Sectors::ZERO;
        }
        let records = u64::from(RECORD) * 2 * (u64::from(self.pages) + 1);
        // Data end on a multiple of the members' block, records start on one of 4 KiB.
        Sectors(self.log.0 + records + u64::from(RECORD))
    }

    /// Sectors for data on a device of `total` sectors that works in blocks of `block`; `None` when
    /// nothing is left.
    pub fn data(&self, total: Sectors, block: u32) -> Option<Sectors> {
        let left = total.0.checked_sub(self.sectors().0)?;
        let block = u64::from(block.max(1));
        let data = left / block * block;
        (data > 0).then_some(Sectors(data))
    }

    /// Sectors for the log on a log device of `total` sectors: its superblock lies behind.
    pub const fn journal(total: Sectors) -> Sectors {
        Sectors(total.0.saturating_sub(3 * RECORD as u64))
    }

    /// A place of the superblock, 0 or 1, on a device of `total` sectors.
    pub const fn superblock(total: Sectors, place: u32) -> Sector {
        let end = total.0 / RECORD as u64 * RECORD as u64;
        Sector(end.saturating_sub((RECORD * (2 - place)) as u64))
    }

    /// A place, 0 or 1, of a page of the bitmap on a device of `total` sectors.
    pub const fn page(total: Sectors, page: u32, place: u32) -> Sector {
        let before = RECORD as u64 * 2 * (page as u64 + 1);
        Sector(Self::superblock(total, 0).0.saturating_sub(before) + (RECORD * place) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Level};

    #[test]
    fn places_lie_apart_behind_data_and_log() {
        let mut config = Config::uniform(Layout::new(Level::Raid5, 4), Sectors(100_000));
        for consistency in [
            Consistency::Resync,
            Consistency::Bitmap { chunk: Sectors(128) },
            Consistency::PartialParity { slots: 6 },
        ] {
            config.settings.consistency = consistency;
            let array = Array::new(&config).unwrap();
            let area = MetaArea::of(&array, consistency, Sectors(100_000));
            for total in 100_000..100_009 {
                let total = Sectors(total);
                for block in [1, 8] {
                    let data = area.data(total, block).unwrap();
                    assert!(data.0.is_multiple_of(u64::from(block)));
                    let mut end = data.0 + area.log.0;
                    let pages = (0..area.pages)
                        .rev()
                        .map(|page| [0, 1].map(|place| MetaArea::page(total, page, place).0));
                    let blocks = [0, 1].map(|place| MetaArea::superblock(total, place).0);
                    for at in pages.chain([blocks]).flatten() {
                        assert!(at >= end && at.is_multiple_of(8), "{at} after {end}");
                        end = at + u64::from(RECORD);
                    }
                    assert!(end <= total.0);
                }
            }
            assert_eq!(area.data(area.sectors(), 1), None);
        }
        assert_eq!(MetaArea::default().sectors(), Sectors::ZERO);
    }

    #[test]
    fn sizes_of_areas_are_exact() {
        let bitmap = Consistency::Bitmap { chunk: Sectors(8) };
        let area = |level, consistency, largest| {
            let layout = Layout::new(level, 4);
            let layout = if level == Level::Raid5 { layout.with_chunk(Sectors(8)) } else { layout };
            let mut config = Config::uniform(layout, Sectors(4096));
            config.settings.consistency = consistency;
            MetaArea::of(&Array::new(&config).unwrap(), consistency, Sectors(largest))
        };
        // Of a mirror what the array has, of parity what members have at most.
        let pages = |level, largest| area(level, bitmap, largest).pages;
        assert_eq!((pages(Level::Raid1, 1 << 20), pages(Level::Raid5, 4096)), (8, 8));
        let page = 8 * PAGE_BITS;
        assert_eq!((pages(Level::Raid5, page), pages(Level::Raid5, page + 1)), (1, 2));
        assert_eq!(pages(Level::Raid5, 3 * page), 3);
        let plain = area(Level::Raid5, Consistency::Resync, 4096);
        let record = u64::from(RECORD);
        assert_eq!((plain.pages, plain.sectors().0), (0, 3 * record));
        let two = area(Level::Raid5, bitmap, page + 1);
        assert_eq!(two.sectors().0, (2 * 3 + 1) * record);
        assert_eq!(plain.data(Sectors(3 * record + 9), 8), Some(Sectors(8)));
        assert_eq!(plain.data(Sectors(3 * record + 9), 0), Some(Sectors(9)));
        assert_eq!(plain.data(Sectors(3 * record + 7), 8), None);
        assert_eq!(plain.data(Sectors(record), 1), None);
        assert_eq!(MetaArea::journal(Sectors(100)), Sectors(100 - 3 * record));
        assert_eq!(MetaArea::journal(Sectors(5)), Sectors(0));
        assert!(!area(Level::Raid5, Consistency::None, 4096).used);
    }
}
