//! Records of metadata, and where they lie.

use raidlab_core::consistency::{MetaArea, RECORD};
use raidlab_core::contract::{IoId, IoOp, Record};
use raidlab_core::{Config, Consistency, Sector, Sectors, Volume};
use raidlab_models::{Drive, DriveIo, DriveIoId, DriveOp};

use super::World;
use crate::SimError;

/// Where md's metadata 1.2 has its superblock.
const SUPERBLOCK: Sector = Sector(8);
/// Where mdadm puts a bitmap behind it, or the log of partial parity.
const BITMAP: Sector = Sector(16);
/// Sectors that mdadm keeps for partial parity.
const PARTIAL_PARITY: u64 = 2048;
/// 4 KiB of md's bitmap hold 32,768 bits, a page of ours 64 ([`raidlab_core::consistency`]); the first has a head of
/// 256 bytes, in the place of as many bits.
const PAGES_A_PAGE: u64 = 32_768 / 64;
const PAGES_OF_HEAD: u64 = 256 / 8;

/// What a log device must have room for, if there is one.
pub(super) fn journal(config: &Config) -> Option<Sectors> {
    match config.settings.consistency {
        Consistency::Journal { sectors } => Some(sectors),
        _ => None,
    }
}

/// Refuses a drive that is smaller than what it must hold: members, and behind them a log.
pub(super) fn check_room(
    capacities: impl Iterator<Item = Sectors>,
    members: impl Iterator<Item = Sectors>,
    log: Option<Sectors>,
) -> Result<(), SimError> {
    let needs = members.map(|needed| ("its member", needed));
    let needs = needs.chain(log.map(|needed| ("the log on it", needed)));
    for (index, (capacity, (what, needed))) in capacities.zip(needs).enumerate() {
        if capacity < needed {
            let reason = format!("drive {index} has {capacity}, {what} needs {needed}");
            return Err(SimError::drives(reason));
        }
    }
    Ok(())
}

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

    /// Whether drives with these capacities, one for each member and behind them the log device, have room for what
    /// [`new`](Self::new) wants of each.
    ///
    /// # Errors
    /// When one has not, with the same words, or as of [`metadata_sectors`](Self::metadata_sectors).
    pub fn check_drives(
        config: &Config,
        capacities: impl Iterator<Item = Sectors>,
    ) -> Result<(), SimError> {
        let behind = Self::metadata_sectors(config)?;
        let needs = config.members.iter().map(|member| member.sectors + behind);
        check_room(capacities, needs, journal(config))
    }

    /// Puts data and records where md's metadata 1.2 has them: superblock and bitmap in front, data from a sector on.
    /// Call it before the first request.
    ///
    /// # Errors
    /// When a drive is smaller than its member and what lies before the data.
    pub fn with_data_from(mut self, front: Sectors) -> Result<Self, SimError> {
        self.front = front.0;
        let needs = self.data.iter().map(|data| *data + front + self.area.sectors());
        check_room(self.drives.iter().map(Drive::capacity), needs, None)?;
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
