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
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, MemberIndex, SECTOR_BYTES, Sector, Sectors,
};
use raidlab_metadata::md::{Version, inspect, word};
use raidlab_metadata::{
    ArrayId, Looked, MetadataFormat, Own, Put, RecordWriter, Source, Unreadable,
};

use super::md::{self, Ground};
use super::{
    Content, Drives, EMPTY, IDENTITY, IN_FLIGHT, Pending, Room, Ticket, Whole, hash_all, mix,
};

pub(super) const SECTOR: usize = SECTOR_BYTES as usize;
/// What identifies another array.
pub(super) const ANOTHER: ArrayId = *b"some other array";

/// In whose format records are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// raidlab's own.
    Own,
    /// That of Linux md, in this version.
    Md(Version),
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Own,
        Self::Md(Version::V0_90),
        Self::Md(Version::V1_0),
        Self::Md(Version::V1_1),
        Self::Md(Version::V1_2),
    ];

    /// The name that commands take.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Md(version) => version.name(),
        }
    }

    /// Sectors that it counts what is used of a member in.
    #[must_use]
    pub const fn granule(self) -> u64 {
        if matches!(self, Self::Md(Version::V0_90)) { 2 } else { 1 }
    }

    /// Whether it lists bad blocks of members.
    #[must_use]
    pub const fn lists_bad_blocks(self) -> bool {
        matches!(self, Self::Md(Version::V1_0 | Version::V1_1 | Version::V1_2))
    }

    /// Whether it can say that a drive is to replace a member that is still there.
    #[must_use]
    pub const fn has_replacements(self) -> bool {
        !matches!(self, Self::Md(Version::V0_90))
    }

    /// Whether a start goes on with such a drive.
    #[must_use]
    pub const fn resumes_replacements(self) -> bool {
        matches!(self, Self::Md(Version::V1_0 | Version::V1_1 | Version::V1_2))
    }

    /// Whether it can say that an array has this layout and keeps its redundancy consistent so.
    #[must_use]
    pub fn has(self, layout: &Layout, consistency: Consistency) -> bool {
        match self {
            Self::Own => consistency.has_superblocks(),
            Self::Md(version) => {
                let is_new = version != Version::V0_90;
                let mode = match consistency {
                    Consistency::Resync | Consistency::Bitmap { .. } => true,
                    Consistency::PartialParity { .. } => {
                        is_new && layout.members <= md::MOST_PARTIAL_PARITY
                    }
                    Consistency::Journal { .. } => {
                        matches!(version, Version::V1_1 | Version::V1_2)
                    }
                    Consistency::None => false,
                };
                let few = is_new || layout.members <= md::MOST_V0_MEMBERS;
                // Of two members with P md's format does not tell that they are no copies.
                let same = layout.level != Level::Raid5 || layout.members > 2;
                mode && few && same && word(layout).is_some()
            }
        }
    }
}

/// What a sector holds.
type Bytes512 = [u8; SECTOR];

/// What stands for records as bytes, and what one who writes them must know.
#[derive(Clone, Debug)]
pub(super) struct Records {
    pub(super) format: Format,
    /// Sectors that drives write together.
    pub(super) block: u32,
    /// Where things stand on each device of an md array.
    pub(super) grounds: Vec<Ground>,
    /// Which drives changed places for the last start.
    pub(super) swapped: Vec<(MemberIndex, MemberIndex)>,
    /// Drives of an md array so far, which tells the identities of fresh ones apart.
    pub(super) drives_made: u32,
    pub(super) writer: RecordWriter,
    /// Of another array of this shape.
    other: RecordWriter,
    /// What the contents stand for that are not data.
    pub(super) sectors: BTreeMap<Content, Bytes512>,
    /// Tells the starts of copies that go on by themselves apart, as random numbers do.
    pub(super) world: u64,
    /// Sectors and block that a device shows instead of its own: it was cut off, has grown, or is behind something
    /// else.
    shown: BTreeMap<u16, (u64, u32)>,
}

impl Records {
    pub(super) fn new(array: &Array, config: &Config, area: &MetaArea, format: Format) -> Self {
        let grounds = match format {
            Format::Own => Vec::new(),
            Format::Md(version) => md::grounds(array, config, version),
        };
        Self {
            format,
            block: config.members.iter().map(|one| one.logical_block).max().unwrap_or(1),
            grounds,
            swapped: Vec::new(),
            drives_made: 0,
            writer: RecordWriter::new(IDENTITY, config, area),
            other: RecordWriter::new(ANOTHER, config, area),
            sectors: BTreeMap::new(),
            world: 0,
            shown: BTreeMap::new(),
        }
    }

    /// The sector of a drive, of those that are kept, that is one of the device.
    pub(super) fn place(&self, device: MemberIndex, at: u64) -> Option<u64> {
        match self.format {
            Format::Own => Some(at),
            Format::Md(_) => self.grounds.get(device.at())?.place(at),
        }
    }

    /// The sectors of a device on which it has a log of md's.
    fn log_of(&self, device: MemberIndex) -> std::ops::Range<u64> {
        self.grounds.get(device.at()).map_or(0..0, Ground::log_range)
    }

    /// Writes a record as its format does.
    fn encode(
        &mut self,
        head: &mut Vec<u8>,
        meta: &MetaIo,
        payload: (u32, u32, &mut dyn Iterator<Item = &[u8]>),
    ) -> Option<Put> {
        let md = self.md();
        let format: &dyn MetadataFormat = md.as_ref().map_or(&Own, |md| md);
        head.resize(format.head(), 0);
        self.writer.encode(format, head, meta, payload)
    }

    /// The content that stands for a sector.
    pub(super) fn intern(&mut self, bytes: &Bytes512) -> Content {
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
    pub(super) fn expand(&self, content: Content) -> Bytes512 {
        if content != EMPTY
            && let Some(bytes) = self.sectors.get(&content)
        {
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
pub(super) struct View<'a> {
    drives: &'a Drives,
    records: &'a Records,
    device: MemberIndex,
    /// Of all drives.
    contents: &'a [Content],
    /// Whether sectors that cannot be read are.
    reads_bad: bool,
    /// Whether what stands in its log is shown: that is looked through from end to end.
    shows_log: bool,
}

impl<'a> View<'a> {
    /// As it shows itself.
    pub(super) fn of(drives: &'a Drives, records: &'a Records, device: MemberIndex) -> Self {
        let (contents, reads_bad, shows_log) = (&drives.live[..], false, true);
        Self { drives, records, device, contents, reads_bad, shows_log }
    }
}

impl Source for View<'_> {
    fn sectors(&self) -> Sectors {
        let own = self.drives.size(self.records, self.device);
        Sectors(self.records.shown.get(&self.device.0).map_or(own, |(sectors, _)| *sectors))
    }

    fn logical_block(&self) -> u32 {
        let own = self.drives.spans[self.device.at()].block;
        self.records.shown.get(&self.device.0).map_or(own, |(_, block)| *block)
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let own = self.drives.total(self.device);
        let end = self.sectors().0;
        let log = if self.shows_log { 0..0 } else { self.records.log_of(self.device) };
        if log.contains(&at.0) {
            into.fill(0);
            return Ok(());
        }
        for (at, into) in (at.0..).zip(into.chunks_exact_mut(SECTOR)) {
            let place = self.records.place(self.device, at).filter(|place| *place < own);
            let Some(place) = place.filter(|_| at < end) else {
                into.fill(0);
                continue;
            };
            if !self.reads_bad && self.drives.first_bad(self.device, place, 1, false).is_some() {
                return Err(Unreadable);
            }
            let content = self.contents[self.drives.index(self.device, place) as usize];
            into.copy_from_slice(&self.records.expand(content));
        }
        Ok(())
    }
}

/// What was found, and what was looked at to find it.
pub(crate) type Finds = (Found, Vec<(MemberIndex, Looked)>);

impl Drives {
    /// The same drives with records as bytes, made ready for a new array.
    #[must_use]
    pub fn with_bytes(array: &Array, config: &Config, replacements: bool, format: Format) -> Self {
        let largest = config.members.iter().map(|m| m.sectors).max().unwrap_or(Sectors::ZERO);
        let area = MetaArea::of(array, config.settings.consistency, largest);
        let records = Records::new(array, config, &area, format);
        if let Format::Md(version) = format {
            let room = Some(Room::Md(&records.grounds));
            let mut drives = Self::of(array, config, replacements, room);
            drives.bytes = Some(Box::new(records));
            drives.make_md(array, config, version);
            return drives;
        }
        let mut drives = Self::of(array, config, replacements, Some(Room::Own(&area)));
        drives.bytes = Some(Box::new(records));
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

    /// Whether these are md's records.
    #[must_use]
    pub fn is_md(&self) -> bool {
        self.format().is_some_and(|format| format != Format::Own)
    }

    /// In whose format records are bytes.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.bytes.as_ref().map(|records| records.format)
    }

    /// Sectors of a device as a format sees it.
    fn size(&self, records: &Records, device: MemberIndex) -> u64 {
        match records.format {
            Format::Own => self.total(device),
            Format::Md(_) => records.grounds[device.at()].total,
        }
    }

    /// Sectors that a device shows which was cut off by so many or has grown, so that it is not what it was.
    #[must_use]
    pub fn resized(&self, device: MemberIndex, by: u64, grows: bool) -> u64 {
        let total = self.total(device);
        match &self.bytes {
            Some(records) if let Format::Md(version) = records.format => {
                records.grounds[device.at()].resized(version, by, grows)
            }
            _ if grows => total + by,
            _ => total.saturating_sub(by),
        }
    }

    /// The sectors of a drive, of those that are kept, where its superblock stands, in one of which harm is; and how
    /// many bits of them count.
    #[must_use]
    pub fn superblock_places(&self, device: MemberIndex) -> Vec<(u64, u32)> {
        let Some(records) = &self.bytes else { return Vec::new() };
        let all = 8 * SECTOR as u32;
        if let Format::Own = records.format {
            let end = self.total(device) / 8 * 8;
            return vec![(end - 8, all), (end - 16, all)];
        }
        let at = self.sectors(device);
        let len = records.writer.places(device).md().map_or(SECTOR, |kept| kept.superblock().len());
        let bits = |sector: usize| (8 * (len - sector * SECTOR).min(SECTOR)) as u32;
        (0..len.div_ceil(SECTOR)).map(|sector| (at + sector as u64, bits(sector))).collect()
    }

    /// Makes a fresh drive ready: nothing behind its data but that a superblock may come. That of an md array has to be
    /// made like a member, by [`Self::make_md_ready`].
    pub(super) fn make_ready(&mut self, device: MemberIndex) {
        if self.is_md() {
            self.show(device, None);
            return;
        }
        let total = Sectors(self.total(device));
        if let Some(records) = &mut self.bytes {
            records.shown.remove(&device.0);
            records.writer.set_places(device, records.writer.blank(device, total));
        }
        if total.0 >= 2 * u64::from(RECORD) {
            self.make_ready_in_part(device, total.0, Own.superblocks(total).len());
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
        for at in Own.superblocks(total).into_iter().take(places) {
            let mut head = vec![0; Own.head()];
            records.writer.encode_vacant(&mut head, device, at);
            self.put(&mut records, device, at, &head);
        }
        self.bytes = Some(records);
    }

    /// Something is durable at a place.
    fn store(&mut self, device: MemberIndex, at: u64, content: Content) {
        let index = self.index(device, at) as usize;
        (self.live[index], self.durable[index]) = (content, content);
    }

    /// Bytes are durable from a sector of a device on.
    pub(super) fn put(
        &mut self,
        records: &mut Records,
        device: MemberIndex,
        at: Sector,
        bytes: &[u8],
    ) {
        for (at, bytes) in (at.0..).zip(bytes.chunks_exact(SECTOR)) {
            let Some(place) = records.place(device, at) else { continue };
            let content = records.intern(bytes.try_into().unwrap_or(&[0; SECTOR]));
            self.store(device, place, content);
        }
    }

    /// Two drives of one size change places.
    pub(super) fn swap_kept(
        &mut self,
        records: &mut Records,
        one: MemberIndex,
        other: MemberIndex,
    ) {
        let (to, of) = (self.spans[one.at()], self.spans[other.at()]);
        for sector in 0..(to.end() - to.base).min(of.end() - of.base) {
            let (to, of) = ((to.base + sector) as usize, (of.base + sector) as usize);
            self.live.swap(to, of);
            self.durable.swap(to, of);
        }
        for bad in &mut self.bad {
            if (to.base..to.end()).contains(&bad.at) {
                bad.at += of.base - to.base;
            } else if (of.base..of.end()).contains(&bad.at) {
                bad.at -= of.base - to.base;
            }
        }
        self.gone.swap(one.at(), other.at());
        let (shows, shown) = (records.shown.remove(&one.0), records.shown.remove(&other.0));
        records.shown.extend(shows.map(|shows| (other.0, shows)));
        records.shown.extend(shown.map(|shown| (one.0, shown)));
    }

    /// A member and its replacement change places while something may be on its way to them.
    pub(super) fn change_places(&mut self, member: MemberIndex, replacement: MemberIndex) {
        let Some(mut records) = self.bytes.take() else { return };
        self.swap_kept(&mut records, member, replacement);
        let (to, from) = (self.spans[member.at()], self.spans[replacement.at()]);
        for pending in &mut self.pending {
            if pending.device == replacement.0 {
                (pending.device, pending.at) = (member.0, pending.at - from.base + to.base);
            } else if pending.device == member.0 {
                (pending.device, pending.at) = (replacement.0, pending.at - to.base + from.base);
            }
        }
        records.take_place(member, replacement);
        self.bytes = Some(records);
    }

    /// What the list of bad blocks of a drive is to say with its next superblock; false when that does not fit.
    #[must_use]
    pub fn list_bad_blocks(
        &mut self,
        device: MemberIndex,
        ranges: impl Iterator<Item = (Sector, Sectors)>,
    ) -> bool {
        let records = self.bytes.as_mut();
        records.is_none_or(|records| records.writer.list_bad_blocks(device, ranges))
    }

    /// Pages of the bitmap that go with the one that is sent next to a drive.
    pub fn put_beside(&mut self, device: MemberIndex, pages: impl Iterator<Item = (u32, u64)>) {
        if let Some(records) = &mut self.bytes {
            records.writer.put_beside(device, pages);
        }
    }

    /// Sends a part of a record as bytes; whether more of it follows.
    pub(super) fn send_bytes(
        &mut self,
        (device, record, at): (MemberIndex, Record, u64),
        payload: &[Content],
        (part, ticket, after): (u32, u32, u32),
    ) -> bool {
        let Some(mut records) = self.bytes.take() else { return false };
        let (member, at, fua, flush) = (device, Sector(at), true, after != 0);
        let meta = MetaIo { member, record, at, payload: SegmentList::EMPTY, flush, fua };
        let sectors: Vec<Bytes512> = payload.iter().map(|one| records.expand(*one)).collect();
        let mut bytes = sectors.iter().map(|sector| &sector[..]);
        let mut head = Vec::new();
        let payload_of =
            (part, payload.len() as u32, &mut bytes as &mut dyn Iterator<Item = &[u8]>);
        let has_room = records.format != Format::Own || self.total(device) >= 2 * u64::from(RECORD);
        let put = if has_room { records.encode(&mut head, &meta, payload_of) } else { None };
        let Some(put) = put else {
            self.bytes = Some(records);
            return false;
        };
        let contents = head[..put.bytes].chunks_exact(SECTOR);
        let contents = contents.map(|bytes| bytes.try_into().unwrap_or([0; SECTOR]));
        let contents: Vec<Content> = contents.map(|bytes| records.intern(&bytes)).collect();
        let all = (put.at.0..).zip(contents.into_iter().chain(payload.iter().copied()));
        let places = all.filter_map(|(at, value)| Some((records.place(device, at)?, value)));
        let places: Vec<_> = places.map(|(at, value)| (self.index(device, at), value)).collect();
        // What is the same before and after is there whatever a crash does.
        let changed: Vec<_> = places.into_iter().filter(|one| self.is_change(*one)).collect();
        let is_md = records.format != Format::Own;
        let whole = if is_md && changed.len() > 1 { Whole::Together } else { Whole::Sectors };
        for (at, value) in changed {
            let (device, done) = (device.0, IN_FLIGHT);
            self.pending.push(Pending { at, device, whole, value, ticket, done, after });
        }
        self.bytes = Some(records);
        put.more
    }

    /// Whether a write of this to a sector changes anything that may be found there.
    pub(super) fn is_change(&self, (at, value): (u32, Content)) -> bool {
        let is_there = |all: &[Content]| all[at as usize] == value;
        !is_there(&self.live)
            || !is_there(&self.durable)
            || self.pending.iter().any(|pending| pending.at == at)
            || self.bad.iter().any(|bad| bad.at == at)
            // The first sector of a record of the own format is never what it was before.
            || value != EMPTY && !self.is_md()
    }

    /// What is found on the drives but those `lost`, by bytes.
    pub(super) fn finds(&self, records: &Records, lost: impl Fn(MemberIndex) -> bool) -> Finds {
        // All but the replacements.
        let members = self.count() / 2;
        let devices = (0..members).chain([2 * members]).map(MemberIndex);
        let looked: Vec<_> = devices
            .filter(|device| !lost(*device) && !self.gone[device.at()])
            .filter(|device| self.total(*device) > 0)
            .map(|device| (device, self.look(records, device)))
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
        let md = records.md();
        let format: &dyn MetadataFormat = md.as_ref().map_or(&Own, |md| md);
        format.examine(&mut View::of(self, records, device))
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

    /// A device with this number is out of service for good.
    pub(crate) fn know_faulty(&mut self, number: u16) {
        if let Some(records) = &mut self.bytes {
            records.writer.device_numbers().add_faulty(number);
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
    pub(crate) fn know_again(
        &mut self,
        device: MemberIndex,
        newest: &Superblock,
        consistency: Consistency,
    ) {
        let looked = self.returning(device, newest, consistency);
        if let (Some(records), Some(looked)) = (&mut self.bytes, looked) {
            records.writer.know(device, &looked);
        }
    }

    /// The newest superblock on a drive by the contents of all drives.
    pub(super) fn superblock_in(
        &self,
        records: &Records,
        contents: &[Content],
        device: MemberIndex,
    ) -> Option<Superblock> {
        if let Some(md) = records.md() {
            let own = View::of(self, records, device);
            let mut view = View { contents, reads_bad: true, shows_log: false, ..own };
            if device.at() == self.spans.len() - 1 {
                // That of the log device says nothing of members.
                let seen = inspect(&mut view);
                let events = seen.superblock().map(|one| one.events)?;
                return Some(Superblock { events, ..Superblock::default() });
            }
            let examined = md.examine(&mut view).examined;
            return examined.superblock.whole().map(|carried| carried.superblock);
        }
        let total = Sectors(self.total(device));
        let read = |at: Sector| {
            let content = contents[self.index(device, at.0) as usize];
            let mut head = vec![0; Own.head()];
            head[..SECTOR].copy_from_slice(&records.expand(content));
            match Own.decode(&head, &[])? {
                (label, Record::Superblock(superblock)) => Some((label.sequence, superblock)),
                _ => None,
            }
        };
        if total.0 < 2 * u64::from(RECORD) {
            return None;
        }
        let both = Own.superblocks(total).into_iter().filter_map(read);
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
        if records.format != Format::Own {
            self.give_to_another_md(&mut records, device);
            self.bytes = Some(records);
            return;
        }
        let total = Sectors(self.total(device));
        let places = records.other.blank(device, total);
        records.other.set_places(device, places);
        for _ in Own.superblocks(total) {
            let (record, payload) = (Record::Superblock(superblock), SegmentList::EMPTY);
            let (at, flush, fua) = (Sector(0), false, true);
            let meta = MetaIo { member: device, record, at, payload, flush, fua };
            let mut head = vec![0; Own.head()];
            let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
            if let Some(put) = records.other.encode(&Own, &mut head, &meta, none) {
                self.put(&mut records, device, put.at, &head);
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
        let drives = Drives::with_bytes(&array, &config, true, Format::Own);
        (config, drives)
    }

    fn write(drives: &mut Drives, record: Record, at: u64, payload: &[Content]) {
        let (ticket, _) = drives.send_record((ONE, record, 0), at, payload, false);
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
