//! Drives whose records are bytes: written and read back by a format, as an engine does around the core.
//!
//! A sector of data or payload is the eight bytes of its content and zeroes. What stands anywhere else is a content
//! that stands for 512 bytes, so that everything which is true of sectors - that a crash leaves each old or new, that
//! it cannot be read, that drives are copied - is true of records too. The duties of an engine are here as well: which
//! of two places is written next, sequences that only grow, drives that are made ready before they are added.
//! Tests: `what_is_written_is_found`, `entries_are_read_back_and_torn_ones_are_not`,
//! `a_drive_made_ready_carries_nothing`.

use std::collections::BTreeMap;

use raidlab_core::consistency::{Finding, Found, MetaArea, RECORD};
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Array, Config, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{ArrayId, Looked, MetadataFormat, Own, RecordWriter, Source, Unreadable};

use super::{Content, Drives, EMPTY, IDENTITY, IN_FLIGHT, Pending, Ticket, hash_all, mix};

/// How arrays under check keep their records.
const FORMAT: Own = Own;
const SECTOR: usize = SECTOR_BYTES as usize;
/// What identifies another array.
const ANOTHER: ArrayId = *b"some other array";

/// What a sector holds.
type Bytes512 = [u8; SECTOR];

/// What stands for records as bytes, and what one who writes them must know.
#[derive(Clone, Debug)]
pub(super) struct Records {
    writer: RecordWriter,
    /// Of another array of this shape.
    other: RecordWriter,
    /// What the contents stand for that are not data.
    sectors: BTreeMap<Content, Bytes512>,
    /// Tells the starts of copies that go on by themselves apart, as random numbers do.
    world: u64,
    /// Sectors and block that a device shows instead of its own: it was cut off, has grown, or is behind something
    /// else.
    shown: BTreeMap<u16, (u64, u32)>,
}

impl Records {
    pub(super) fn new(config: &Config, area: &MetaArea) -> Self {
        Self {
            writer: RecordWriter::new(IDENTITY, config, area),
            other: RecordWriter::new(ANOTHER, config, area),
            sectors: BTreeMap::new(),
            world: 0,
            shown: BTreeMap::new(),
        }
    }

    /// The content that stands for a sector.
    fn intern(&mut self, bytes: &Bytes512) -> Content {
        let mut words = [0; SECTOR / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        if words[1..].iter().all(|word| *word == 0) && !self.sectors.contains_key(&words[0]) {
            return words[0];
        }
        let name = hash_all(0x5ec7_0e5d, &words) | 1;
        self.sectors.insert(name, *bytes);
        name
    }

    /// The sector that a content stands for.
    fn expand(&self, content: Content) -> Bytes512 {
        if let Some(bytes) = self.sectors.get(&content) {
            return *bytes;
        }
        let mut bytes = [0; SECTOR];
        bytes[..8].copy_from_slice(&content.to_le_bytes());
        bytes
    }

    /// A replacement takes its member's place.
    pub(super) fn take_place(&mut self, member: MemberIndex, replacement: MemberIndex) {
        self.writer.take_over(member, replacement);
    }

    /// What another world's contents stand for.
    pub(super) fn learn(&mut self, other: &Self) {
        self.sectors.extend(other.sectors.iter().map(|(name, bytes)| (*name, *bytes)));
    }
}

/// A drive as a format looks at it.
struct View<'a> {
    drives: &'a Drives,
    records: &'a Records,
    device: MemberIndex,
}

impl Source for View<'_> {
    fn sectors(&self) -> Sectors {
        let own = self.drives.total(self.device);
        Sectors(self.records.shown.get(&self.device.0).map_or(own, |(sectors, _)| *sectors))
    }

    fn logical_block(&self) -> u32 {
        let own = self.drives.spans[self.device.at()].block;
        self.records.shown.get(&self.device.0).map_or(own, |(_, block)| *block)
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let own = self.drives.total(self.device);
        let len = (into.len() / SECTOR) as u64;
        if self.drives.first_bad(self.device, at.0.min(own), len.min(own), false).is_some() {
            return Err(Unreadable);
        }
        for (at, into) in (at.0..).zip(into.chunks_exact_mut(SECTOR)) {
            let content = if at < own { self.drives.live(self.device, at) } else { EMPTY };
            into.copy_from_slice(&self.records.expand(content));
        }
        Ok(())
    }
}

/// What was found, and what was looked at to find it.
pub(super) type Finds = (Found, Vec<(MemberIndex, Looked)>);

impl Drives {
    /// The same drives with records as bytes, made ready for a new array.
    #[must_use]
    pub fn with_bytes(array: &Array, config: &Config, replacements: bool) -> Self {
        let largest = config.members.iter().map(|m| m.sectors).max().unwrap_or(Sectors::ZERO);
        let area = MetaArea::of(array, config.settings.consistency, largest);
        let mut drives = Self::of(array, config, replacements, Some(&area));
        drives.bytes = Some(Box::new(Records::new(config, &area)));
        for device in (0..drives.count()).map(MemberIndex) {
            drives.make_ready(device);
        }
        drives
    }

    /// Whether records are bytes.
    #[must_use]
    pub fn has_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// All sectors of a drive.
    #[must_use]
    pub fn total(&self, device: MemberIndex) -> u64 {
        let span = self.spans[device.at()];
        u64::from(span.end() - span.base)
    }

    /// Makes a fresh drive ready: nothing behind its data but that a superblock may come.
    pub(super) fn make_ready(&mut self, device: MemberIndex) {
        let total = Sectors(self.total(device));
        if let Some(records) = &mut self.bytes {
            records.shown.remove(&device.0);
            records.writer.set_places(device, records.writer.blank(device, total));
        }
        if total.0 >= 2 * u64::from(RECORD) {
            self.make_ready_in_part(device, total.0, FORMAT.superblocks(total).len());
        }
    }

    /// The same as far as somebody came: what lies behind the data emptied up to a sector, then so many places for
    /// superblocks made.
    pub fn make_ready_in_part(&mut self, device: MemberIndex, to: u64, places: usize) {
        let Some(mut records) = self.bytes.take() else { return };
        for at in self.log_start(device)..to {
            self.store(device, at, EMPTY);
        }
        let total = Sectors(self.total(device));
        for at in FORMAT.superblocks(total).into_iter().take(places) {
            let mut head = vec![0; FORMAT.head()];
            records.writer.encode_vacant(&mut head, device, at);
            self.store_head(&mut records, device, at, &head);
        }
        self.bytes = Some(records);
    }

    /// Something is durable at a place.
    fn store(&mut self, device: MemberIndex, at: u64, content: Content) {
        let index = self.index(device, at) as usize;
        (self.live[index], self.durable[index]) = (content, content);
    }

    fn store_head(&mut self, records: &mut Records, device: MemberIndex, at: Sector, head: &[u8]) {
        for (at, bytes) in (at.0..).zip(head.chunks_exact(SECTOR)) {
            let content = records.intern(bytes.try_into().unwrap_or(&[0; SECTOR]));
            self.store(device, at, content);
        }
    }

    /// Sends a record as bytes.
    pub(super) fn send_bytes(
        &mut self,
        device: MemberIndex,
        record: Record,
        at: u64,
        payload: &[Content],
        (ticket, after): (u32, u32),
    ) -> Ticket {
        if self.total(device) < 2 * u64::from(RECORD) {
            return Ticket(ticket);
        }
        let Some(mut records) = self.bytes.take() else { return Ticket(ticket) };
        let (member, at, fua, flush) = (device, Sector(at), true, after != 0);
        let meta = MetaIo { member, record, at, payload: SegmentList::EMPTY, flush, fua };
        let sectors: Vec<Bytes512> = payload.iter().map(|one| records.expand(*one)).collect();
        let mut bytes = sectors.iter().map(|sector| &sector[..]);
        let mut head = vec![0; FORMAT.head()];
        let payload_of = (0, payload.len() as u32, &mut bytes as &mut dyn Iterator<Item = &[u8]>);
        let Some(put) = records.writer.encode(&FORMAT, &mut head, &meta, payload_of) else {
            self.bytes = Some(records);
            return Ticket(ticket);
        };
        let first = self.index(device, put.at.0);
        let contents =
            head.chunks_exact(SECTOR).map(|bytes| bytes.try_into().unwrap_or([0; SECTOR]));
        let contents: Vec<Content> = contents.map(|bytes| records.intern(&bytes)).collect();
        for (index, value) in (first..).zip(contents.into_iter().chain(payload.iter().copied())) {
            let is_there = |all: &[Content]| all[index as usize] == EMPTY;
            let is_pending = self.pending.iter().any(|pending| pending.at == index);
            // The rest of a head is empty wherever a head stood before.
            if value == EMPTY && is_there(&self.live) && is_there(&self.durable) && !is_pending {
                continue;
            }
            let (device, whole, done) = (device.0, false, IN_FLIGHT);
            self.pending.push(Pending { at: index, device, whole, value, ticket, done, after });
        }
        self.bytes = Some(records);
        Ticket(ticket)
    }

    /// What is found on the drives but those `lost`, by bytes.
    pub(super) fn finds(&self, records: &Records, lost: impl Fn(MemberIndex) -> bool) -> Finds {
        // All but the replacements.
        let members = self.count() / 2;
        let devices = (0..members).chain([2 * members]).map(MemberIndex);
        let looked: Vec<_> = devices
            .filter(|device| !lost(*device) && !self.gone[device.at()])
            .filter(|device| self.total(*device) > 0)
            .map(|device| (device, FORMAT.examine(&mut View { drives: self, records, device })))
            .collect();
        let of = |device: u16| {
            let found = looked.iter().find(|(known, _)| known.0 == device);
            found.map(|(_, looked)| looked.examined.clone()).unwrap_or_default()
        };
        let all = (0..members).map(of).collect();
        let nonce = mix(mix(records.writer.sequence(), u64::from(self.clock)), records.world);
        (Found { members: all, journal: of(2 * members), nonce }, looked)
    }

    /// What one drive carries, by bytes.
    pub(super) fn look(&self, records: &Records, device: MemberIndex) -> Looked {
        FORMAT.examine(&mut View { drives: self, records, device })
    }

    /// From now on these drives are written by what was found on them; nothing else is known.
    pub fn know(&mut self, looked: &[(MemberIndex, Looked)]) {
        let Some(records) = &mut self.bytes else { return };
        let totals = self.spans.iter().map(|span| Sectors(u64::from(span.end() - span.base)));
        records.writer.forget(totals);
        for (device, looked) in looked {
            records.writer.know(*device, looked);
        }
    }

    /// Whether a place of the superblock of a drive cannot be read, or is damaged.
    #[must_use]
    pub fn is_superblock_bad(&self, device: MemberIndex) -> bool {
        let Some(records) = &self.bytes else { return false };
        !matches!(self.look(records, device).examined.superblock, Finding::Whole(_))
    }

    /// Whether a write wants to go where the drive cannot write.
    #[must_use]
    pub fn is_stuck(&self, ticket: Ticket) -> bool {
        let own = self.pending.iter().filter(|pending| pending.ticket == ticket.0);
        let stuck = |at: u32| self.bad.iter().any(|bad| bad.at == at && bad.stuck);
        !self.bad.is_empty() && own.into_iter().any(|pending| stuck(pending.at))
    }

    /// A drive comes back as it is: it is written by what is found on it.
    pub(crate) fn know_again(&mut self, device: MemberIndex) {
        let Some(mut records) = self.bytes.take() else { return };
        let looked = self.look(&records, device);
        records.writer.know(device, &looked);
        self.bytes = Some(records);
    }

    /// The newest superblock on a drive by the contents of all drives.
    pub(super) fn superblock_in(
        &self,
        records: &Records,
        contents: &[Content],
        device: MemberIndex,
    ) -> Option<Superblock> {
        let total = Sectors(self.total(device));
        let read = |at: Sector| {
            let content = contents[self.index(device, at.0) as usize];
            let mut head = vec![0; FORMAT.head()];
            head[..SECTOR].copy_from_slice(&records.expand(content));
            match FORMAT.decode(&head, &[])? {
                (label, Record::Superblock(superblock)) => Some((label.sequence, superblock)),
                _ => None,
            }
        };
        if total.0 < 2 * u64::from(RECORD) {
            return None;
        }
        let both = FORMAT.superblocks(total).into_iter().filter_map(read);
        both.max_by_key(|(sequence, _)| *sequence).map(|(_, superblock)| superblock)
    }
}

/// Harm to what stands on drives.
impl Drives {
    /// Changes one bit of a sector, as the drive's bytes.
    pub fn flip(&mut self, device: MemberIndex, at: u64, bit: u32) {
        let Some(records) = &mut self.bytes else { return };
        let index = (self.spans[device.at()].base + at as u32) as usize;
        let mut bytes = records.expand(self.live[index]);
        bytes[(bit / 8) as usize % SECTOR] ^= 1 << (bit % 8);
        let content = records.intern(&bytes);
        self.store(device, at, content);
    }

    /// The log of a drive can be read again.
    pub fn mend_log(&mut self, device: MemberIndex) {
        let span = self.spans[device.at()];
        let log = span.base + span.data..span.base + span.data + span.log;
        self.bad.retain(|bad| bad.stuck || !log.contains(&bad.at));
    }

    /// A device shows so many sectors in blocks of so many from now on; `None`: its own again.
    pub fn show(&mut self, device: MemberIndex, shown: Option<(u64, u32)>) {
        let Some(records) = &mut self.bytes else { return };
        match shown {
            Some(shown) => drop(records.shown.insert(device.0, shown)),
            None => drop(records.shown.remove(&device.0)),
        }
    }

    /// From now on this is another world than those it was copied from or to.
    pub fn part(&mut self, world: u64) {
        if let Some(records) = &mut self.bytes {
            records.world = mix(records.world, world);
        }
    }

    /// Both superblocks of a device are those of another array, in the same state.
    pub fn give_to_another(&mut self, device: MemberIndex) {
        let Some(superblock) = self.superblock(device) else { return };
        let Some(mut records) = self.bytes.take() else { return };
        let total = Sectors(self.total(device));
        let places = records.other.blank(device, total);
        records.other.set_places(device, places);
        for _ in FORMAT.superblocks(total) {
            let (record, payload) = (Record::Superblock(superblock), SegmentList::EMPTY);
            let (at, flush, fua) = (Sector(0), false, true);
            let meta = MetaIo { member: device, record, at, payload, flush, fua };
            let mut head = vec![0; FORMAT.head()];
            let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
            if let Some(put) = records.other.encode(&FORMAT, &mut head, &meta, none) {
                self.store_head(&mut records, device, put.at, &head);
            }
        }
        self.bytes = Some(records);
    }

    /// Everything on a device is wiped.
    pub fn wipe(&mut self, device: MemberIndex) {
        for at in 0..self.total(device) {
            self.store(device, at, EMPTY);
        }
    }

    /// Two drives of one size change places.
    pub fn swap(&mut self, one: MemberIndex, other: MemberIndex) {
        let before = self.clone();
        self.take_contents(one, &before, other);
        self.take_contents(other, &before, one);
    }

    /// What `from` of another world shows is put on `device`, which has the same size.
    pub fn take_contents(&mut self, device: MemberIndex, other: &Self, from: MemberIndex) {
        let (to, of) = (self.spans[device.at()], other.spans[from.at()]);
        if let (Some(records), Some(theirs)) = (&mut self.bytes, &other.bytes) {
            records.learn(theirs);
        }
        self.pending.retain(|pending| pending.device != device.0);
        self.bad.retain(|bad| bad.at < to.base || bad.at >= to.end());
        for sector in 0..(to.end() - to.base).min(of.end() - of.base) {
            let content = other.live[(of.base + sector) as usize];
            let index = (to.base + sector) as usize;
            (self.live[index], self.durable[index]) = (content, content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::{Consistency, Layout, Level};

    const ONE: MemberIndex = MemberIndex(1);

    fn drives(consistency: Consistency) -> (Config, Drives) {
        let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(2));
        let mut config = Config::uniform(layout, Sectors(8));
        config.settings.consistency = consistency;
        let array = Array::new(&config).expect("a possible array");
        let drives = Drives::with_bytes(&array, &config, true);
        (config, drives)
    }

    fn write(drives: &mut Drives, record: Record, at: u64, payload: &[Content]) {
        let ticket = drives.send_record(ONE, record, at, payload, false);
        drives.complete(ticket, true);
    }

    #[test]
    fn what_is_written_is_found() {
        let (config, mut drives) = drives(Consistency::Bitmap { chunk: Sectors(2) });
        for events in 1..4 {
            let superblock = Superblock { events, ..Superblock::default() };
            write(&mut drives, Record::Superblock(superblock), 0, &[]);
            assert_eq!(drives.superblock(ONE), Some(superblock));
        }
        write(&mut drives, Record::BitmapPage { page: 0, bits: 5 }, 0, &[]);
        let found = drives.examined(&config, ONE);
        let events = found.superblock.whole().map(|carried| carried.superblock.events);
        assert_eq!((events, found.bitmap[0].whole()), (Some(3), Some(&5)));
        let at = drives.total(ONE) / 8 * 8 - 8;
        drives.damage(ONE, at, false);
        assert_eq!(drives.examined(&config, ONE).superblock.whole(), None, "a place is unreadable");
    }

    #[test]
    fn entries_are_read_back_and_torn_ones_are_not() {
        let (config, mut drives) = drives(Consistency::PartialParity { slots: 6 });
        write(&mut drives, Record::Superblock(Superblock::default()), 0, &[]);
        let (written, settled) = ([1, 0], [0, 0]);
        let entry = Record::PartialParity {
            slot: 0,
            generation: 1,
            stripe: 0,
            from: 0,
            to: 2,
            written,
            settled,
        };
        write(&mut drives, entry, 0, &[11, 12]);
        let log = drives.examined(&config, ONE).log;
        assert_eq!(log.entries.iter().map(|entry| entry.record).collect::<Vec<_>>(), [entry]);
        let payload = drives.log_start(ONE) + 9;
        drives.rot(ONE, payload, 1);
        let log = drives.examined(&config, ONE).log;
        assert_eq!((log.entries.len(), log.unreadable), (0, false));
    }

    #[test]
    fn a_drive_made_ready_carries_nothing() {
        let (config, mut drives) = drives(Consistency::Resync);
        write(&mut drives, Record::Superblock(Superblock::default()), 0, &[]);
        drives.renew(ONE);
        let found = drives.examined(&config, ONE).superblock;
        assert_eq!(found, Finding::Blank);
        assert_eq!(drives.superblock(ONE), None);
    }
}
