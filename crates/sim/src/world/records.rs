//! Records of metadata, and where they lie.

use raidlab_core::consistency::{MetaArea, RECORD};
use raidlab_core::contract::{IoId, IoOp, Record};
use raidlab_core::{Config, Sector, Sectors, Volume};
use raidlab_models::{DriveIo, DriveIoId, DriveOp};

use super::{World, check_room};
use crate::SimError;

/// Where md's metadata 1.2 has its superblock.
const SUPERBLOCK: Sector = Sector(8);
/// Where mdadm puts a bitmap behind it, or the log of partial parity.
const BITMAP: Sector = Sector(16);
/// Sectors that mdadm keeps for partial parity.
const PARTIAL_PARITY: u64 = 2048;
/// 4 KiB of md's bitmap hold 32,768 bits, a page of ours 64 ([`raidlab_core::consistency`]); the first has a head of 256
/// bytes, in the place of as many bits.
const PAGES_A_PAGE: u64 = 32_768 / 64;
const PAGES_OF_HEAD: u64 = 256 / 8;

impl World {
    /// Sectors that log and metadata take after the data of each member.
    ///
    /// # Errors
    /// When the configuration cannot be and has superblocks: without, nothing depends on the rest of it.
    pub fn metadata_sectors(config: &Config) -> Result<Sectors, SimError> {
        if !config.settings.consistency.has_superblocks() {
            // An array with all its memory takes longer than a hundred requests to it.
            return Ok(Sectors::ZERO);
        }
        Ok(MetaArea::of_volume(&Volume::new(config)?, config).sectors())
    }

    /// Puts data and records where md's metadata 1.2 has them: superblock and bitmap in front, data from a sector on.
    /// Call it before the first request.
    ///
    /// # Errors
    /// When a drive is smaller than its member and what lies before the data.
    pub fn with_data_from(mut self, front: Sectors) -> Result<Self, SimError> {
        self.front = front.0;
        let needs = self.data.iter().map(|data| *data + front + self.area.sectors());
        check_room(&self.drives, needs)?;
        Ok(self)
    }

    /// Writes a record, a small write at its place.
    pub(super) fn send_meta(&mut self, io: IoId) {
        let Some(meta) = self.array.meta(io).copied() else { return };
        self.member_requests += 1;
        let count = self.data.len();
        let data = self.data.get(meta.member.at() % count.max(1)).copied().unwrap_or_default();
        let total = data + self.area.sectors();
        let place = u32::from(self.turn);
        self.turn = !self.turn;
        let at = match meta.record {
            Record::Superblock(_) if self.front > 0 => SUPERBLOCK,
            Record::BitmapPage { page, .. } if self.front > 0 => {
                let place = (u64::from(page) + PAGES_OF_HEAD) / PAGES_A_PAGE;
                Sector(BITMAP.0 + place * u64::from(RECORD))
            }
            Record::Superblock(_) => MetaArea::superblock(total, place),
            Record::BitmapPage { page, .. } => MetaArea::page(total, page, place),
            _ if meta.member == self.array.journal() => meta.at,
            // The log of partial parity is written round and round.
            _ if self.front > 0 => Sector(BITMAP.0 + meta.at.0 % PARTIAL_PARITY),
            _ => Sector(data.0 + meta.at.0),
        };
        let payload: u32 = self.array.segments(&meta.payload).map(|segment| segment.len).sum();
        let (id, len) = (DriveIoId(0), RECORD + payload);
        let fua = meta.fua || self.writes_through;
        let write = DriveIo { id, op: DriveOp::Write, at, len, fua };
        self.totals.count(IoOp::Write, Sectors(u64::from(len)));
        if meta.flush {
            let flush = DriveIo { op: DriveOp::Flush, at: Sector(0), len: 0, fua: false, ..write };
            self.submit_to(meta.member, io, flush, Some(write));
        } else {
            self.submit_to(meta.member, io, write, None);
        }
    }
}
