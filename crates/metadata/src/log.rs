//! Reading the log of a device back: partial parity behind the data of a member, or the journal.

use raidlab_core::MemberIndex;
use raidlab_core::Sector;
use raidlab_core::consistency::{LogEntry, LogFound, RECORD};
use raidlab_core::contract::Record;

use crate::read::{Reader, Whose};
use crate::record::{self, Block, Stands};

/// Sectors of the longest payload: 128 chunks of a plan's 1 MiB of rows.
const MOST_PAYLOAD: u64 = 128 * 2048;

/// Everything in the log of a device, and the largest sequence seen. The log is `len` sectors from `from` on, and
/// entries start on multiples of `step`. Also inside the payload of a whole entry, which may be of an earlier turn and
/// have all of its payload still, or again: who knows which are retired tells them apart.
pub(super) fn examine(
    reader: &mut Reader<'_>,
    whose: Whose,
    (from, len): (u64, u64),
    step: u64,
) -> (LogFound, u64) {
    let mut found = LogFound::default();
    let mut sequence = 0;
    // Heads that are whole each before a payload that is not would make one payload be read over and over.
    let mut patience = 4 * len.max(MOST_PAYLOAD);
    let mut at = 0;
    while at + u64::from(RECORD) <= len {
        let place = Sector(from + at);
        let Ok(block) = reader.sector(place.0, from + len) else {
            found.unreadable = true;
            at += step;
            continue;
        };
        let entry = match record::look(block) {
            Stands::Record(entry) if entry.label.at == place && whose.wrote(&entry.label) => entry,
            _ => {
                at += step;
                continue;
            }
        };
        let payload = u64::from(entry.label.payload);
        let start = at + u64::from(RECORD);
        if !can_be(&entry, at) || payload > MOST_PAYLOAD || start + payload > len {
            at += step;
            continue;
        }
        sequence = sequence.max(entry.label.sequence);
        let Some(left) = u64::checked_sub(patience, payload) else {
            found.unreadable = true;
            break;
        };
        patience = left;
        match reader.sum(from + start, from + start + payload) {
            Ok(sum) if entry.is_sum(sum) => {
                let member = MemberIndex(whose.place);
                found.entries.push(LogEntry { member, at: Sector(at), record: entry.record });
            }
            Ok(_) => {}
            Err(_) => found.unreadable = true,
        }
        at += step;
    }
    (found, sequence)
}

/// Whether it is an entry of a log, in the place that it speaks of.
fn can_be(entry: &Block, at: u64) -> bool {
    match entry.record {
        Record::JournalEntry { at: place, .. } => place.0 == at,
        Record::PartialParity { .. } => true,
        Record::Superblock(_) | Record::BitmapPage { .. } => false,
    }
}
