//! Records on drives, each by the number that stands for it: what a driver finds of them.

use raidlab_core::consistency::{
    Carried, Examined, Finding, Found, LogEntry, LogFound, MetaArea, Parameters,
};
use raidlab_core::contract::{LOG_HEADER, Record, Superblock};
use raidlab_core::{Config, MemberIndex, Sector, Sectors};

use super::bytes::Finds;
use super::{Drives, EMPTY, IDENTITY, Named, mix};
use crate::shape::{Set, set_of};

impl Drives {
    /// What a driver finds on the drives but those `lost` (by number; the log device among them); where records are
    /// bytes, with what was looked at.
    #[must_use]
    pub fn found(&self, config: &Config, lost: impl Fn(MemberIndex) -> bool) -> Finds {
        if let Some(records) = &self.bytes {
            return self.finds(records, lost);
        }
        let members = config.layout.members;
        let mut nonce = 1;
        let mut examined = |device: u16| {
            let device = MemberIndex(device);
            if lost(device) || self.gone[device.at()] {
                nonce = mix(nonce, 0);
                return Examined::absent();
            }
            nonce = mix(nonce, self.live[self.spans[device.at()].superblock() as usize]);
            self.examined(config, device)
        };
        let all: Vec<_> = (0..members).map(&mut examined).collect();
        let journal = examined(2 * members);
        (Found { members: all, journal, nonce }, Vec::new())
    }

    /// What one drive carries.
    #[must_use]
    pub fn examined(&self, config: &Config, device: MemberIndex) -> Examined {
        if let Some(records) = &self.bytes {
            return self.look(records, device).examined;
        }
        let span = self.spans[device.at()];
        let first = self.spans[0];
        let (log, pages) = (Sectors(u64::from(first.log)), first.pages);
        let area = MetaArea { log, pages, used: true };
        let parameters = Parameters::of(config, &area, device);
        let sectors = Sectors(u64::from(span.data + span.log) + area.sectors().0);
        let superblock = match self.superblock(device) {
            Some(superblock) => Finding::Whole(Carried {
                array: IDENTITY,
                device: device.0,
                parameters,
                superblock,
            }),
            None if self.live[span.superblock() as usize] == EMPTY => Finding::Blank,
            None => Finding::Damaged(None),
        };
        let bits = &self.live[span.page(0) as usize..span.end() as usize];
        let mut log = LogFound::default();
        if span.log > 0 {
            self.find_entries(device, &mut log.entries);
        }
        let bitmap = bits.iter().map(|bits| Finding::Whole(*bits)).collect();
        let bad = Vec::new();
        Examined { sectors, logical_block: span.block, superblock, bitmap, log, bad }
    }

    /// The superblock on a drive.
    #[must_use]
    pub fn superblock(&self, device: MemberIndex) -> Option<Superblock> {
        if let Some(records) = &self.bytes {
            return self.superblock_in(records, &self.live, device);
        }
        let at = self.spans[device.at()].superblock();
        match self.named(at)?.record {
            Record::Superblock(superblock) => Some(superblock),
            _ => None,
        }
    }

    /// The superblock that is on a drive's medium for certain.
    fn durable_superblock(&self, member: u16) -> Option<Superblock> {
        if let Some(records) = &self.bytes {
            return self.superblock_in(records, &self.durable, MemberIndex(member));
        }
        let at = self.spans[usize::from(member)].superblock();
        let name = self.durable[at as usize];
        let named = self.names.iter().find(|known| known.name == name && known.at == at)?;
        match named.record {
            Record::Superblock(superblock) => Some(superblock),
            _ => None,
        }
    }

    /// The events of the newest superblock on the first `members` drives; 0 without any.
    #[must_use]
    pub fn newest_events(&self, members: u16) -> u64 {
        let all = (0..members).filter_map(|member| self.durable_superblock(member));
        all.map(|superblock| superblock.events).max().unwrap_or(0)
    }

    /// Of the first `members` drives those (a bit each) that are not recorded as being in service:
    /// by some superblock that counts, or by having none. 0 when there are no superblocks at all.
    #[must_use]
    pub fn said_to_be_out(&self, members: u16) -> Set {
        // Drives that are to replace members of an md array are told, and believed, too.
        let others = if self.is_md() { members..2 * members } else { 0..0 };
        let told: Vec<_> = others.filter_map(|other| self.durable_superblock(other)).collect();
        let newest = told.iter().map(|one| one.events).chain([self.newest_events(members)]);
        let newest = newest.max().unwrap_or(0);
        if newest == 0 {
            return 0;
        }
        // In the middle of an update some are one behind.
        let says = |one: &Superblock| {
            let counts = one.events + 1 >= newest;
            counts.then(|| set_of(one.failed) | set_of(one.rebuilding))
        };
        let members = (0..members).fold(0, |out, member| {
            let said = self.durable_superblock(member).as_ref().and_then(says);
            out | said.unwrap_or(1 << member)
        });
        told.iter().filter_map(says).fold(members, |out, said| out | said)
    }

    /// The record whose number stands in this sector, and which belongs there.
    fn named(&self, at: u32) -> Option<&Named> {
        let name = self.live[at as usize];
        self.names.iter().find(|known| known.name == name && known.at == at)
    }

    fn find_entries(&self, device: MemberIndex, log: &mut Vec<LogEntry>) {
        let span = self.spans[device.at()];
        let start = span.base + span.data;
        for at in start..start + span.log {
            if self.live[at as usize] == EMPTY {
                continue;
            }
            let Some(named) = self.named(at) else { continue };
            let header = at as usize..(at + LOG_HEADER) as usize;
            let payload = header.end..header.end + named.payload as usize;
            let (header, payload) = (&self.live[header], &self.live[payload]);
            let name = payload.iter().fold(hash_of(&named.record), |n, v| mix(n, *v)) | 1;
            if header.iter().all(|value| *value == name) {
                let at = Sector(u64::from(at - start));
                log.push(LogEntry { member: device, at, record: named.record });
            }
        }
    }
}

/// A hash of a record.
pub(crate) fn hash_of(record: &Record) -> u64 {
    let hash = 1;
    let words = |hash: u64, words: &[u64]| words.iter().fold(hash, |hash, word| mix(hash, *word));
    match *record {
        Record::Superblock(s) => {
            let flags =
                u64::from(s.clean) | u64::from(s.journal) << 1 | u64::from(s.by_bitmap) << 2;
            let [a, b, c] = [s.failed, s.rebuilding, s.replacing];
            let sets = [a[0], a[1], b[0], b[1], c[0], c[1]];
            let tails = [s.journal_tail, s.bitmap_since];
            let places = [s.rebuilt_to.0, s.replaced_to.0, s.synced_to.0, tails[0], tails[1]];
            let known = s.history.iter().take_while(|epoch| epoch.id != 0);
            let hash = known.fold(hash, |hash, epoch| words(hash, &[epoch.id, epoch.from]));
            words(words(mix(hash, s.events), &sets), &places)
                ^ mix(flags | u64::from(s.left) << 8, 7)
        }
        Record::BitmapPage { page, bits } => words(hash, &[u64::from(page), bits]),
        Record::PartialParity { slot, generation, stripe, from, to, written, settled } => {
            let rows = u64::from(from) << 32 | u64::from(to);
            let hash = words(hash, &settled);
            words(hash, &[u64::from(slot), generation, stripe, rows, written[0], written[1]])
        }
        Record::JournalEntry { at, sequence, stripe, from, to, roles, settled } => {
            let rows = u64::from(from) << 32 | u64::from(to);
            words(hash, &[at.0, sequence, stripe, rows, roles[0], roles[1], settled])
        }
    }
}
