//! raidlab's own format, version 2: records of 4 KiB behind the data of each device, at the places that
//! [`MetaArea`](raidlab_core::consistency::MetaArea) gives them.
//!
//! Fault model: as [`crate`]; a crash may leave any part of a write undone, but a sector is written whole or not.
//! Why it is safe: all that a record says lies in the first sector of its place, under a checksum, together with
//! the identity of its array, the number of its device and where it stands. So no power cut can leave half a record,
//! and what is neither a record nor blank was damaged; a foreign or misplaced one is never taken. Superblocks and
//! pages of the bitmap have two places, written in turn, and both of a superblock's are written when a device is
//! made ready. Payloads of log entries may be torn; their heads say how long they are and what their checksum is.
//! Tests: `no_flipped_bit_is_taken`, `tests/damage.rs::each_place_of_the_superblock_in_each_state`.

use raidlab_core::consistency::{MetaArea, Parameters};
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{Sector, Sectors};

use crate::record::{self, BLOCK};
use crate::{Entry, Label, Looked, MetadataFormat, Places, Put, Source, read};

/// raidlab's own format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own;

impl Own {
    /// Both places of the superblock on a device of so many sectors.
    pub fn superblocks(&self, total: Sectors) -> [Sector; 2] {
        [0, 1].map(|place| MetaArea::superblock(total, place))
    }

    /// Where a record goes on a device; of two places the one with the older record, which is thereby the newer.
    pub fn place(&self, device: &mut Places, meta: &MetaIo) -> Sector {
        let total = device.total;
        match meta.record {
            Record::Superblock(_) => MetaArea::superblock(total, device.turn(0)),
            Record::BitmapPage { page, .. } => {
                MetaArea::page(total, page, device.turn(1 + page as usize))
            }
            _ => Sector(device.data.0 + meta.at.0),
        }
    }

    /// Fills `head` with a record, sealed together with its payload. `parameters` go with superblocks.
    pub fn encode(
        &self,
        head: &mut [u8],
        label: &Label,
        record: &Record,
        parameters: Option<&Parameters>,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) {
        record::put(head, label, Some(record), parameters);
        record::seal(head, payload);
    }

    /// Fills `head` with what says that a place is ready for a superblock and has none yet. A drive that is made
    /// ready for a member's place gets it in both places of the superblock: zeroes beside a superblock are damage.
    pub fn vacant(&self, head: &mut [u8], label: &Label) {
        record::put(head, label, None, None);
        record::seal(head, std::iter::empty());
    }

    /// What a record says; `None` when head and payload are not as they were sealed.
    pub fn decode(&self, head: &[u8], payload: &[u8]) -> Option<(Label, Record)> {
        let record::Stands::Record(found) = record::look(head) else { return None };
        found.holds(payload).then_some((found.label, found.record))
    }
}

impl MetadataFormat for Own {
    fn head(&self) -> usize {
        BLOCK
    }

    fn examine(&self, device: &mut dyn Source) -> Looked {
        read::examine(device)
    }

    fn put(
        &self,
        head: &mut [u8],
        device: &mut Places,
        entry: &Entry<'_>,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<Put> {
        let at = self.place(device, entry.meta);
        let label = Label { at, ..entry.label };
        self.encode(head, &label, &entry.meta.record, Some(entry.parameters), payload);
        Some(Put { at, bytes: BLOCK, more: false })
    }
}
