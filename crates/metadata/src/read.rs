//! Reading the records of a device back.

use std::collections::BTreeMap;

use raidlab_core::consistency::{LogEntry, MetaArea, RECORD};
use raidlab_core::contract::Record;
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};

use crate::record::{self, BLOCK};
use crate::{ArrayId, Examined, Source};

/// Logs are looked through in runs of this many sectors (1 MiB).
const RUN: u64 = 2048;
const SECTOR: usize = SECTOR_BYTES as usize;

/// The superblock and the bitmap of a device; `None` when it has no superblock that is whole.
pub(super) fn examine(device: &mut dyn Source) -> Option<Examined> {
    let total = device.sectors();
    let mut block = vec![0; BLOCK];
    let mut newest: Option<(u64, Examined)> = None;
    for place in 0..2 {
        let at = MetaArea::superblock(total, place);
        // A place that cannot be read holds no record; the other may.
        if total.0 < u64::from(RECORD) || device.read(at, &mut block).is_err() {
            continue;
        }
        let Some(found) = record::look(&block).filter(|found| found.is_whole(&block, &[])) else {
            continue;
        };
        let Record::Superblock(superblock) = found.record else { continue };
        let sequence = found.label.sequence;
        if newest.as_ref().is_some_and(|(known, _)| *known > sequence) {
            continue;
        }
        let facts = record::facts(&block);
        let examined = Examined {
            array: found.label.array,
            device: found.label.device,
            superblock,
            data: Sectors(facts.data),
            log: Sectors(facts.log),
            pages: facts.pages.min(u64::from(u32::MAX)) as u32,
            layout: facts.layout.to_string(),
            sequence,
            bitmap: Vec::new(),
            next: vec![place == 0],
        };
        newest = Some((sequence, examined));
    }
    let (_, mut found) = newest.filter(|(_, found)| fits(found, total))?;
    read_pages(device, &mut found);
    Some(found)
}

/// Whether the room that a superblock speaks of is there.
fn fits(found: &Examined, total: Sectors) -> bool {
    let area = MetaArea { log: found.log, pages: found.pages, used: true };
    let pages = u128::from(found.pages) * 16 + 24;
    let needed = u128::from(found.data.0) + u128::from(found.log.0) + pages;
    needed <= u128::from(total.0) && area.sectors() <= total
}

fn read_pages(device: &mut dyn Source, found: &mut Examined) {
    let total = device.sectors();
    let mut block = vec![0; BLOCK];
    for page in 0..found.pages {
        let mut newest: Option<(u64, u64, u32)> = None;
        for place in 0..2 {
            if device.read(MetaArea::page(total, page, place), &mut block).is_err() {
                continue;
            }
            let whole = record::look(&block).filter(|one| one.is_whole(&block, &[]));
            let Some(one) = whole else { continue };
            let ours = one.label.array == found.array && one.label.device == found.device;
            match one.record {
                Record::BitmapPage { page: number, bits } if ours && number == page => {
                    let sequence = one.label.sequence;
                    if newest.is_none_or(|(known, ..)| sequence > known) {
                        newest = Some((sequence, bits, place));
                    }
                }
                _ => {}
            }
        }
        let (sequence, bits, place) = newest.unwrap_or((0, 0, 1));
        found.sequence = found.sequence.max(sequence);
        found.bitmap.push(bits);
        found.next.push(place == 0);
    }
}

/// Every whole entry of an array's log on a device, and the largest sequence among them.
///
/// `from` is where the log area starts on the device. Entries may start at any multiple of the device's
/// block; what lies inside the payload of a whole entry is not looked at.
pub(super) fn examine_log(
    device: &mut dyn Source,
    (index, array): (MemberIndex, ArrayId),
    (from, sectors): (Sector, Sectors),
) -> (Vec<LogEntry>, u64) {
    let step = u64::from(device.logical_block());
    let mut entries: BTreeMap<u64, LogEntry> = BTreeMap::new();
    let mut sequence = 0;
    let mut run = vec![0; RUN as usize * SECTOR];
    let mut at = 0;
    while at + u64::from(RECORD) <= sectors.0 {
        // A run overlaps the next by less than a block, so that no header is cut.
        let len = RUN.min(sectors.0 - at);
        let bytes = &mut run[..len as usize * SECTOR];
        if device.read(Sector(from.0 + at), bytes).is_err() {
            at += (len - u64::from(RECORD)).max(1).next_multiple_of(step);
            continue;
        }
        let mut inside = 0;
        while inside + u64::from(RECORD) <= len {
            let block = &run[inside as usize * SECTOR..][..BLOCK];
            let entry = record::look(block).filter(|found| {
                let label = found.label;
                let here = match found.record {
                    Record::JournalEntry { at: place, .. } => place.0 == at + inside,
                    Record::PartialParity { .. } => true,
                    _ => false,
                };
                here && label.array == array && label.device == index.0
            });
            let Some(found) = entry else {
                inside += step;
                continue;
            };
            let payload = u64::from(found.label.payload);
            let start = at + inside + u64::from(RECORD);
            if start + payload > sectors.0 {
                inside += step;
                continue;
            }
            let mut bytes = vec![0; payload as usize * SECTOR];
            let place = Sector(from.0 + start);
            let read = payload == 0 || device.read(place, &mut bytes).is_ok();
            if read && found.is_whole(block, &bytes) {
                sequence = sequence.max(found.label.sequence);
                let record = found.record;
                let place = Sector(at + inside);
                entries.insert(place.0, LogEntry { member: index, at: place, record });
                inside += u64::from(RECORD) + payload;
            } else {
                inside += step;
            }
        }
        at += inside;
    }
    (entries.into_values().collect(), sequence)
}
