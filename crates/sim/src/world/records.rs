//! Records of metadata.

use raidlab_core::consistency::{MetaArea, RECORD};
use raidlab_core::contract::{IoId, IoOp, Record};
use raidlab_core::{Sector, Sectors};
use raidlab_models::{DriveIo, DriveIoId, DriveOp};

use super::World;

impl World {
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
            Record::Superblock(_) => MetaArea::superblock(total, place),
            Record::BitmapPage { page, .. } => MetaArea::page(total, page, place),
            _ if meta.member == self.array.journal() => meta.at,
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
