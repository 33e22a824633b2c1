//! raidlab's own format: records of 4 KiB behind the data of each device, at the places that
//! [`MetaArea`](raidlab_core::consistency::MetaArea) gives them.
//!
//! Log entries are overwritten in a ring. Why it is safe: every record carries the identity of its array, the number
//! of its device and a checksum over block and payload, so that a torn or foreign one is never taken; superblocks and
//! pages of the bitmap have two places, written in turn, so that the one before survives a torn write.
//! Tests: `no_flipped_bit_is_taken`, `a_torn_record_leaves_the_one_before`.

use raidlab_core::consistency::{LogEntry, MetaArea};
use raidlab_core::contract::{MetaIo, Record};
use raidlab_core::{MemberIndex, Sector, Sectors};

use crate::record::{self, BLOCK};
use crate::{ArrayId, Examined, Facts, Label, MetadataFormat, Places, Source, read};

/// raidlab's own format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own;

impl MetadataFormat for Own {
    fn head(&self) -> usize {
        BLOCK
    }

    fn examine(&self, device: &mut dyn Source) -> Option<Examined> {
        read::examine(device)
    }

    fn examine_log(
        &self,
        device: &mut dyn Source,
        of: (MemberIndex, ArrayId),
        area: (Sector, Sectors),
    ) -> (Vec<LogEntry>, u64) {
        read::examine_log(device, of, area)
    }

    fn place(&self, device: &mut Places, meta: &MetaIo, journal: bool) -> Sector {
        let total = device.total;
        match meta.record {
            Record::Superblock(_) => MetaArea::superblock(total, device.turn(0)),
            Record::BitmapPage { page, .. } => {
                MetaArea::page(total, page, device.turn(1 + page as usize))
            }
            _ if journal => meta.at,
            _ => Sector(device.data.0 + meta.at.0),
        }
    }

    fn encode(
        &self,
        head: &mut [u8],
        label: &Label,
        record: &Record,
        facts: Option<&Facts<'_>>,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) {
        record::put(head, label, record, facts);
        record::seal(head, payload);
    }

    fn decode(&self, head: &[u8], payload: &[u8]) -> Option<(Label, Record)> {
        let found = record::look(head).filter(|found| found.is_whole(head, payload))?;
        Some((found.label, found.record))
    }
}
