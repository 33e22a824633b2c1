//! Logs as md keeps them, on drives whose records are md's: entries of partial parity that go out together are one
//! write, of a header and the partial parity behind it; those of the journal are one or several, of blocks with pages
//! behind each.
//!
//! Fault model: each sector of such a write, or each block of the drive, is there after a power cut or not, by itself,
//! as of any other write.

use std::collections::BTreeSet;

use raidlab_core::contract::MetaIo;
use raidlab_core::{Config, Consistency, MemberIndex, Sectors};
use raidlab_metadata::Put;
use raidlab_metadata::md::journal::{MOST_HEADS, PAGE, TURNS, least};
use raidlab_metadata::md::{PARTIAL_PARITY, Version};

use super::bytes::{Records, SECTOR};
use super::md::SEVERAL;
use super::{Content, Drives, IN_FLIGHT, Pending, Ticket};

/// Bytes of a header.
const BLOCK: usize = 4096;
/// Sectors of partial parity that the only header of a log has.
const ONE: Sectors = Sectors(8);

/// An entry of a log that is to be written.
#[derive(Clone, Debug)]
pub struct Logged {
    /// What goes where, as the array says.
    pub meta: MetaIo,
    /// Its payload.
    pub payload: Vec<Content>,
    /// Rows of it that are in the journal.
    pub done: u64,
}

/// What md's logs want of an array whose longest request is given: as many entries as a header has, and plans that one
/// has room for; with a journal blocks of 4 KiB, so that all else is larger, too. Logs of version 1.1 have one header,
/// those of the others several, unless it was chosen.
pub(crate) fn fit(config: &mut Config, longest: &mut u32, version: Version) {
    if let Consistency::Journal { .. } = config.settings.consistency {
        fit_journal(config, longest);
    }
    let settings = &mut config.settings;
    if let Consistency::PartialParity { .. } = settings.consistency {
        let most = if version == Version::V1_1 { ONE } else { SEVERAL };
        let most = *settings.log_header.get_or_insert(most);
        settings.consistency = PARTIAL_PARITY;
        // As the engine has it.
        settings.plan_rows = settings.plan_rows.min(Sectors(1 << most.0.max(1).ilog2()));
    }
}

fn fit_journal(config: &mut Config, longest: &mut u32) {
    let block = config.members.first().map_or(1, |member| member.logical_block);
    let times =
        if config.layout.chunk.0.is_multiple_of(PAGE) { 1 } else { PAGE / u64::from(block) };
    config.layout.chunk.0 *= times;
    *longest *= times as u32;
    for member in &mut config.members {
        member.sectors.0 *= times;
        member.logical_block = PAGE as u32;
    }
    let members = u64::from(config.layout.members);
    let Consistency::Journal { sectors } = config.settings.consistency else { return };
    let sectors = (sectors.0 * times).max(least(members).div_ceil(TURNS)).next_multiple_of(PAGE);
    // As the engine has it.
    let most = 1 << (sectors.saturating_sub(MOST_HEADS * PAGE) / members).max(PAGE).ilog2();
    let settings = &mut config.settings;
    settings.consistency = Consistency::Journal { sectors: Sectors(sectors) };
    settings.plan_rows.0 = settings.plan_rows.0.saturating_mul(times).min(2048).min(most);
}

impl Drives {
    /// Sends a header of these entries to a drive; whether it is to be sent again, since this one only marks that the
    /// log comes around. `None`: it has no room for them.
    pub fn send_header(
        &mut self,
        device: MemberIndex,
        entries: &[Logged],
    ) -> Option<(Ticket, bool)> {
        let mut records = self.bytes.take()?;
        let sent = self.put_header(&mut records, device, entries);
        self.bytes = Some(records);
        sent
    }

    /// What was last sent to a drive's log was not written.
    pub fn log_failed(&mut self, device: MemberIndex) {
        if let Some(records) = &mut self.bytes {
            records.writer.log_failed(device);
        }
    }

    /// What was last sent of a drive's superblock or bitmap was not written, or only perhaps.
    pub fn record_failed(&mut self, device: MemberIndex) {
        if let Some(records) = &mut self.bytes {
            records.writer.record_failed(device);
        }
    }

    /// Sectors of a drive's log up to where headers come around to its start, where there are several.
    #[must_use]
    pub fn log_left(&self, device: MemberIndex) -> Option<u64> {
        let records = self.bytes.as_ref()?;
        records.writer.places(device).md()?.ppl()?.left().map(|left| left.0)
    }

    /// What no drive holds is known no more: worlds are copied often.
    pub fn forget_unused(&mut self) {
        let Self { bytes, live, durable, pending, .. } = self;
        let Some(records) = bytes else { return };
        let pending = pending.iter().map(|pending| &pending.value);
        let used: BTreeSet<Content> =
            live.iter().chain(&*durable).chain(pending).copied().collect();
        records.sectors.retain(|name, _| used.contains(name));
    }

    /// Sends the next block of the journal to the log device, with as many rows of these entries as it has room for;
    /// whether any are left. `None`: the ring has no room.
    pub fn send_block(
        &mut self,
        device: MemberIndex,
        entries: &mut [Logged],
    ) -> Option<(Ticket, bool)> {
        let mut records = self.bytes.take()?;
        let sent = self.put_block(&mut records, device, entries);
        self.bytes = Some(records);
        sent
    }

    fn put_block(
        &mut self,
        records: &mut Records,
        device: MemberIndex,
        entries: &mut [Logged],
    ) -> Option<(Ticket, bool)> {
        let expand = |entry: &Logged| -> Vec<_> {
            entry.payload.iter().map(|one| records.expand(*one)).collect()
        };
        let sectors: Vec<Vec<_>> = entries.iter().map(expand).collect();
        let journal = records.writer.journal(device)?;
        journal.begin();
        let (mut payload, mut more) = (Vec::new(), false);
        'entries: for (entry, sectors) in entries.iter_mut().zip(&sectors) {
            let rows = journal.rows(&entry.meta.record)?;
            while entry.done < rows.count() {
                if !journal.takes(&rows) {
                    more = true;
                    break 'entries;
                }
                let mut sums = Vec::new();
                for page in rows.pages(entry.done) {
                    let page = page as usize..(page + PAGE) as usize;
                    sums.push(journal.sum(sectors.get(page.clone())?.iter().map(|one| &one[..])));
                    payload.extend_from_slice(entry.payload.get(page)?);
                }
                journal.add(&rows, entry.done, &sums);
                entry.done += 1;
            }
        }
        let mut head = vec![0; BLOCK];
        let put = journal.put(&mut head)?;
        Some((self.send_logged(records, device, (&put, &head), &payload), more))
    }

    fn put_header(
        &mut self,
        records: &mut Records,
        device: MemberIndex,
        entries: &[Logged],
    ) -> Option<(Ticket, bool)> {
        let mut all = Vec::new();
        for entry in entries {
            let sectors: Vec<_> = entry.payload.iter().map(|one| records.expand(*one)).collect();
            let mut payload = sectors.iter().map(|sector| &sector[..]);
            all.push(records.writer.header_entry(&entry.meta, &mut payload)?);
        }
        let mut head = vec![0; BLOCK];
        let put = records.writer.put_header(&mut head, device, &all)?;
        let payload: Vec<Content> = match put.more {
            true => Vec::new(),
            false => entries.iter().flat_map(|entry| entry.payload.iter().copied()).collect(),
        };
        Some((self.send_logged(records, device, (&put, &head), &payload), put.more))
    }

    /// Sends the head of what is logged, with its payload behind it.
    fn send_logged(
        &mut self,
        records: &mut Records,
        device: MemberIndex,
        (put, head): (&Put, &[u8]),
        payload: &[Content],
    ) -> Ticket {
        let Ticket(ticket) = self.ticket();
        let contents = head[..put.bytes].chunks_exact(SECTOR);
        let contents: Vec<Content> = contents
            .map(|bytes| records.intern(bytes.try_into().unwrap_or(&[0; SECTOR])))
            .collect();
        let all = (put.at.0..).zip(contents.into_iter().chain(payload.iter().copied()));
        for (at, value) in all {
            let Some(at) = records.place(device, at).map(|at| self.index(device, at)) else {
                continue;
            };
            // What is the same before and after is there whatever a crash does.
            if self.whole_blocks || self.is_change((at, value)) {
                let whole = self.whole(device, u64::from(at - self.spans[device.at()].base));
                let (device, done, after) = (device.0, IN_FLIGHT, 0);
                self.pending.push(Pending { at, device, whole, value, ticket, done, after });
            }
        }
        Ticket(ticket)
    }
}
