//! Partial parity as md logs it: on the member with P, headers of 4 KiB, each with entries of 24 bytes, and the partial
//! parity of its entries behind it.
//!
//! Fault model: any bytes at all; the newest header, or what follows it, may be torn. What counts after a crash is the
//! header that md finds: from the start of the area on each is followed by the next, as long as it is whole, of this
//! array, and no older than the one before. Why that is enough: a header is written when all that the one before
//! protects is durable (`raidlab_core::Settings::log_header`), so that one that is torn protects nothing yet; and an
//! area is begun again at its start in the same way. One with a larger number that stands elsewhere in the area is of
//! the headers before, whose chain was torn then: where md takes the last that is left of it, nothing counts here. An
//! entry whose partial parity is torn is left out by itself. Numbers go on from the largest in the area, so that none
//! of those that stood there before is taken for a newer one; an area of which something cannot be read counts as
//! lost, and numbers go on far beyond all that the array can have written there.
//! Tests: below, `tests/md/logs.rs`, power cuts in `crates/engine/tests/md_ppl.rs`, and against the kernel
//! `crates/engine/tests/md_ppl_guest.rs`.

use raidlab_core::consistency::{ArrayId, LogEntry, LogFound};
use raidlab_core::contract::{LOG_HEADER, MemberBits, Record};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};

use super::fields::{put, u32_at, u64_at};
use super::logs::{BLOCK, raw};
use super::{Aside, Features, Role, Superblock};
use crate::{Put, Source};

/// Bytes of a header before its fields, all set.
const RESERVED: usize = 512;
/// Where its entries begin.
const ENTRIES: usize = RESERVED + 24;
const ENTRY: usize = 24;
/// The most entries of a header.
pub(super) const MOST_ENTRIES: usize = (BLOCK - ENTRIES) / ENTRY;
/// Sectors of a header.
const HEADER: u64 = BLOCK as u64 / SECTOR_BYTES;
/// Sectors of partial parity that a header has at most: as the kernel's.
const MOST_PARTIAL: u64 = 256;
/// Sectors of an area that are looked at together.
const STEP: u64 = 128;
/// So many numbers are left to the headers of each event of the array where a log cannot be read: it gets no such
/// number of them before the next start, which is an event.
const GAP: u64 = 1 << 32;

/// What an entry protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PplEntry {
    /// The first of the sectors of the array that are written, in logical blocks.
    pub first: u64,
    /// Bytes of partial parity; 0 when all chunks of the rows are written.
    pub partial: u32,
    /// Bytes that are written, of all chunks together.
    pub data: u32,
    /// The member with P.
    pub member: u32,
    /// CRC-32C of the partial parity.
    pub checksum: u32,
}

/// A header of partial parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PplHeader {
    /// Which array wrote it: derived from its identity.
    pub signature: u32,
    /// The newest of several.
    pub generation: u64,
    /// What it protects: nothing in one that only marks the start of a log.
    pub entries: Vec<PplEntry>,
}

impl PplHeader {
    /// The signature of an array.
    pub fn signature_of(array: &ArrayId) -> u32 {
        !raw(!0, array)
    }

    /// What the bytes say; `None` unless they are whole.
    pub fn parse(block: &[u8]) -> Option<Self> {
        let block = block.get(..BLOCK)?;
        let count = u32_at(block, RESERVED + 16) as usize;
        if count > MOST_ENTRIES {
            return None;
        }
        let mut copy = block.to_vec();
        put(&mut copy, RESERVED + 20, [0; 4]);
        let entry = |at: &[u8]| PplEntry {
            first: u64_at(at, 0),
            partial: u32_at(at, 8),
            data: u32_at(at, 12),
            member: u32_at(at, 16),
            checksum: u32_at(at, 20),
        };
        let whole = !raw(!0, &copy) == u32_at(block, RESERVED + 20);
        whole.then(|| Self {
            signature: u32_at(block, RESERVED),
            generation: u64_at(block, RESERVED + 8),
            entries: block[ENTRIES..].chunks_exact(ENTRY).take(count).map(entry).collect(),
        })
    }

    /// Fills a block with it.
    pub fn emit(&self, block: &mut [u8]) {
        emit(block, (self.signature, self.generation), &self.entries);
    }
}

/// Fills a block with a header.
fn emit(block: &mut [u8], (signature, generation): (u32, u64), entries: &[PplEntry]) {
    block.fill(0);
    block[..RESERVED].fill(0xff);
    put(block, RESERVED, signature.to_le_bytes());
    put(block, RESERVED + 8, generation.to_le_bytes());
    put(block, RESERVED + 16, (entries.len() as u32).to_le_bytes());
    for (entry, at) in entries.iter().zip(block[ENTRIES..].chunks_exact_mut(ENTRY)) {
        put(at, 0, entry.first.to_le_bytes());
        put(at, 8, entry.partial.to_le_bytes());
        put(at, 12, entry.data.to_le_bytes());
        put(at, 16, entry.member.to_le_bytes());
        put(at, 20, entry.checksum.to_le_bytes());
    }
    let checksum = !raw(!0, block);
    put(block, RESERVED + 20, checksum.to_le_bytes());
}

/// Where the log of a device lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    at: Sector,
    /// Whole blocks of 4 KiB, two at least.
    sectors: u64,
    /// Headers follow one another; else each is written over the one before.
    several: bool,
}

impl Area {
    /// `None` of a device without, or on which it lies where something else does: md refuses that.
    fn of(one: &Superblock) -> Option<Self> {
        let Aside::PartialParity { offset, size } = one.aside else { return None };
        let (at, sectors) = (one.beside(i32::from(offset))?, u64::from(size) / HEADER * HEADER);
        let end = at.0.checked_add(sectors)?;
        let has_room = sectors >= 2 * HEADER && one.is_apart(at.0..end);
        let several = one.features.has(Features::PPLS) && sectors >= 2 * (HEADER + MOST_PARTIAL);
        has_room.then_some(Self { at, sectors, several })
    }

    /// Sectors of partial parity that a header takes.
    fn most_partial(&self) -> u64 {
        MOST_PARTIAL.min(self.sectors - HEADER)
    }
}

/// The log of a device, as md finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PplSeen {
    /// The header that counts.
    pub header: Option<PplHeader>,
    /// Where the partial parity of each of its entries lies, in sectors from the start of the area, and whether it is
    /// as it was sealed.
    pub payloads: Vec<(u64, bool)>,
    /// It could not be read in full, or lies where something else does.
    pub unreadable: bool,
    /// The largest generation in the area, be it still of use or not.
    pub largest: u64,
    /// Sectors of partial parity that a header takes.
    pub most_partial: Sectors,
}

impl PplSeen {
    /// Whether it is known to be all that is to be made consistent: md makes everything so otherwise.
    pub fn is_whole(&self) -> bool {
        self.header.is_some() && !self.unreadable && self.payloads.iter().all(|(_, whole)| *whole)
    }

    /// Whether anything would be made consistent by it.
    pub fn is_used(&self) -> bool {
        self.header.as_ref().is_some_and(|header| !header.entries.is_empty())
    }
}

/// Looks at the log of a device; `None` of one without.
pub(super) fn look(device: &mut dyn Source, one: &Superblock) -> Option<PplSeen> {
    if !matches!(one.aside, Aside::PartialParity { .. }) {
        return None;
    }
    let area = Area::of(one).filter(|area| area.at.0 + area.sectors <= device.sectors().0);
    let Some(area) = area else {
        return Some(PplSeen { unreadable: true, ..PplSeen::default() });
    };
    let signature = PplHeader::signature_of(&one.array);
    let most_partial = Sectors(area.most_partial());
    let mut seen = PplSeen { most_partial, ..PplSeen::default() };
    let known = largest(device, &area, signature);
    (seen.largest, seen.unreadable) = known;
    let mut found = None;
    let mut at = 0;
    while at + HEADER < area.sectors {
        let mut block = vec![0; BLOCK];
        if device.read(Sector(area.at.0 + at), &mut block).is_err() {
            // Which header is the newest is not known.
            return Some(PplSeen { unreadable: true, ..seen });
        }
        let newest = found.as_ref().map_or(0, |(_, header): &(u64, PplHeader)| header.generation);
        let header = PplHeader::parse(&block)
            .filter(|header| header.signature == signature && header.generation >= newest);
        let Some(header) = header else { break };
        let partial: u64 =
            header.entries.iter().map(|entry| u64::from(entry.partial) / SECTOR_BYTES).sum();
        found = Some((at, header));
        at += HEADER + partial;
    }
    // A header that was begun at the start again, and torn, may have left the first of those before and not the next:
    // then it is not the newest, and what the newest protects is durable.
    let found = found.filter(|(_, header)| header.generation >= seen.largest);
    if let Some((start, header)) = found {
        let mut at = start + HEADER;
        for entry in &header.entries {
            let whole = is_sealed(device, &area, at, entry);
            seen.unreadable |= whole.is_none();
            seen.payloads.push((at, whole == Some(true)));
            at += u64::from(entry.partial) / SECTOR_BYTES;
        }
        seen.header = Some(header);
    }
    Some(seen)
}

/// The largest generation of a header of this array in an area, wherever it stands, and whether one may stand where
/// the area cannot be read.
fn largest(device: &mut dyn Source, area: &Area, signature: u32) -> (u64, bool) {
    let (mut largest, mut is_lost) = (0, false);
    for at in (0..area.sectors).step_by(STEP as usize) {
        let mut bytes = vec![0; Sectors(STEP.min(area.sectors - at)).bytes() as usize];
        if device.read(Sector(area.at.0 + at), &mut bytes).is_err() {
            is_lost = true;
            continue;
        }
        // Partial parity is of any number of sectors, and so may be what lies between headers.
        let marks = (0..bytes.len()).step_by(SECTOR_BYTES as usize);
        for start in marks.filter(|start| bytes[*start..].starts_with(&[0xff; 16])) {
            let mut block = bytes.get(start..start + BLOCK).map(<[u8]>::to_vec);
            if block.is_none() {
                let mut read = vec![0; BLOCK];
                let place = Sector(area.at.0 + at + start as u64 / SECTOR_BYTES);
                let fits = place.0 + HEADER <= area.at.0 + area.sectors;
                block = (fits && device.read(place, &mut read).is_ok()).then_some(read);
            }
            let header = block.and_then(|block| PplHeader::parse(&block));
            if let Some(header) = header.filter(|header| header.signature == signature) {
                largest = largest.max(header.generation);
            }
        }
    }
    (largest, is_lost)
}

/// Whether the partial parity of an entry is as it was sealed; `None` when it cannot be read.
fn is_sealed(device: &mut dyn Source, area: &Area, at: u64, entry: &PplEntry) -> Option<bool> {
    let sectors = u64::from(entry.partial) / SECTOR_BYTES;
    if !u64::from(entry.partial).is_multiple_of(SECTOR_BYTES) || at + sectors > area.sectors {
        return Some(false);
    }
    let mut sum = !0;
    for from in (0..sectors).step_by(STEP as usize) {
        let mut bytes = vec![0; Sectors(STEP.min(sectors - from)).bytes() as usize];
        device.read(Sector(area.at.0 + at + from), &mut bytes).ok()?;
        sum = raw(sum, &bytes);
    }
    Some(!sum == entry.checksum)
}

/// How stripes lie in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    chunk: u64,
    /// Data chunks of a stripe.
    data: u64,
    /// Sectors of a logical block of the array.
    block: u64,
}

/// Rows of a stripe in which the same chunks, which lie side by side, are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    stripe: u64,
    from: u64,
    to: u64,
    chunk: u64,
    count: u64,
    /// Sectors of the partial parity before that of the first row.
    skip: u64,
}

impl Shape {
    fn of(one: &Superblock, block: u32) -> Self {
        let data = u64::from(one.members.saturating_sub(1)).max(1);
        Self { chunk: u64::from(one.chunk).max(1), data, block: u64::from(block.max(1)) }
    }

    /// The rows that an entry protects; none of one that cannot be. An entry has one range of the array, of which each
    /// chunk has the same rows; or the range goes on from the end of one chunk to the start of the next, and has
    /// partial parity for a whole chunk, as the kernel reads but does not write it.
    fn rows(&self, entry: &PplEntry) -> Vec<Rows> {
        let partial = u64::from(entry.partial) / SECTOR_BYTES;
        let data = u64::from(entry.data) / SECTOR_BYTES;
        let Some(first) = entry.first.checked_mul(self.block) else { return Vec::new() };
        let (chunks, strip) = match partial {
            0 => (self.data, data / self.data),
            _ if partial < self.chunk => (data / partial, partial),
            _ => (self.data, self.chunk),
        };
        let len = match partial < self.chunk {
            true => chunks.saturating_sub(1).saturating_mul(self.chunk).saturating_add(strip),
            false => data,
        };
        let stripe = self.chunk * self.data;
        let start = first % stripe;
        let is_possible = partial <= self.chunk
            && (1..=self.data).contains(&chunks)
            && (1..=self.chunk).contains(&strip)
            && len > 0
            && len <= stripe - start;
        if !is_possible {
            return Vec::new();
        }
        let mut cuts = [0, self.chunk - start % self.chunk, len % self.chunk, strip];
        cuts.sort_unstable();
        let mut rows = Vec::new();
        for cut in cuts.windows(2).filter(|cut| cut[0] < cut[1] && cut[1] <= strip) {
            let at = start + cut[0];
            let count =
                (0..chunks).filter(|chunk| cut[0] + chunk * self.chunk < len).count() as u64;
            let (chunk, from) = (at / self.chunk, at % self.chunk);
            if count > 0 && chunk + count <= self.data {
                let (stripe, to) = (first / stripe, from + cut[1] - cut[0]);
                rows.push(Rows { stripe, from, to, chunk, count, skip: cut[0] });
            }
        }
        rows
    }
}

/// What the core is told that the log of a member has.
pub(super) fn found(seen: &PplSeen, one: &Superblock, block: u32) -> LogFound {
    let Role::Member(place) = one.role() else { return LogFound::default() };
    let mut found = LogFound { unreadable: seen.unreadable, ..LogFound::default() };
    let shape = Shape::of(one, block);
    let entries = seen.header.iter().flat_map(|header| &header.entries).zip(&seen.payloads);
    for (entry, (at, _)) in entries.filter(|(_, (_, whole))| *whole) {
        if entry.member != u32::from(place) {
            continue;
        }
        for rows in shape.rows(entry) {
            let record = Record::PartialParity {
                slot: 0,
                generation: found.entries.len() as u64 + 1,
                stripe: rows.stripe,
                from: rows.from as u32,
                to: rows.to as u32,
                written: bits(rows.chunk, rows.count),
                settled: [0; 2],
            };
            let at = Sector(at + rows.skip - u64::from(LOG_HEADER));
            found.entries.push(LogEntry { member: MemberIndex(place), at, record });
        }
    }
    found
}

/// The bits of so many chunks from the first on.
fn bits(first: u64, count: u64) -> MemberBits {
    let mut bits = [0; 2];
    for chunk in first..first + count {
        bits[(chunk / 64) as usize % 2] |= 1 << (chunk % 64);
    }
    bits
}

/// The log of a device that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ppl {
    area: Area,
    shape: Shape,
    signature: u32,
    /// Of the header that was written last, or the largest that stands there.
    generation: u64,
    /// Where the next header goes, in sectors from the start of the area.
    next: u64,
    /// A header without entries stands at the start, which ends the chain of those that stood there before.
    ended: bool,
    /// Both before the last header.
    before: (u64, bool),
}

impl Ppl {
    /// Of a device whose log was looked at; `block`: sectors of a logical block of the array.
    pub(super) fn of(one: &Superblock, seen: Option<&PplSeen>, block: u32) -> Option<Self> {
        let signature = PplHeader::signature_of(&one.array);
        let generation = seen.map_or(0, |seen| match seen.unreadable {
            // A header that can be read again later must not be taken for one that follows those written from now on.
            true => seen.largest.max(one.events.saturating_mul(GAP)),
            false => seen.largest,
        });
        Some(Self {
            area: Area::of(one)?,
            shape: Shape::of(one, block),
            signature,
            generation,
            next: 0,
            ended: false,
            before: (0, false),
        })
    }

    /// Where its area starts.
    pub fn start(&self) -> Sector {
        self.area.at
    }

    /// Sectors up to where headers come around to the start of the area; none of a log that has one header.
    pub fn left(&self) -> Option<Sectors> {
        self.area.several.then(|| Sectors(self.area.sectors.saturating_sub(self.next)))
    }

    /// What is written to a fresh device: that nothing is logged.
    pub(super) fn pieces(&self) -> [(Sector, Vec<u8>); 2] {
        let mut head = vec![0; BLOCK];
        emit(&mut head, (self.signature, 0), &[]);
        let rest = Sectors(self.area.sectors - HEADER).bytes() as usize;
        [(Sector(self.area.at.0 + HEADER), vec![0; rest]), (self.area.at, head)]
    }

    /// What stands in a header for a record of partial parity on the member in this place, with this payload.
    pub(crate) fn entry(
        &self,
        place: u16,
        record: &Record,
        payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<PplEntry> {
        let Record::PartialParity { stripe, from, to, written, .. } = *record else { return None };
        let Shape { chunk, data, block } = self.shape;
        let count = u64::from(written[0].count_ones() + written[1].count_ones());
        let lowest = u64::from(written[0].trailing_zeros());
        let lowest = if lowest < 64 { lowest } else { 64 + u64::from(written[1].trailing_zeros()) };
        let first = (stripe * data + lowest) * chunk + u64::from(from);
        let rows = u64::from(to - from) * SECTOR_BYTES;
        let is_all = count == data;
        Some(PplEntry {
            first: first / block,
            partial: if is_all { 0 } else { rows as u32 },
            data: (rows * count) as u32,
            member: u32::from(place),
            checksum: !payload.fold(!0, raw),
        })
    }

    /// Fills `head` with a header of these entries, whose partial parity follows in their order; `None` for more than
    /// one takes. Before one that comes around, over the chain of those before, there is one without entries, which has
    /// nothing behind it (`more`): no part of the next may be torn over that chain while md would still follow it.
    pub(crate) fn put(&mut self, head: &mut [u8], entries: &[PplEntry]) -> Option<Put> {
        self.before = (self.next, self.ended);
        let partial: u64 = entries.iter().map(|one| u64::from(one.partial) / SECTOR_BYTES).sum();
        let len = HEADER + partial;
        if entries.len() > MOST_ENTRIES || len > self.area.sectors {
            return None;
        }
        // Nobody looks for a header in the last block: neither do the kernel and `look`.
        let has_room = self.next + len.max(HEADER + 1) <= self.area.sectors;
        let goes_on = self.area.several && self.next > 0 && has_room;
        let at = if goes_on { self.next } else { 0 };
        self.generation = self.generation.saturating_add(1);
        if at == 0 && self.area.several && !self.ended {
            self.ended = true;
            emit(head.get_mut(..BLOCK)?, (self.signature, self.generation), &[]);
            return Some(Put { at: self.area.at, bytes: BLOCK, more: true });
        }
        self.ended = false;
        self.next = at + len;
        emit(head.get_mut(..BLOCK)?, (self.signature, self.generation), entries);
        Some(Put { at: Sector(self.area.at.0 + at), bytes: BLOCK, more: false })
    }

    /// The last header was not written, for want of room, say: the next one takes its place. Behind a place where none
    /// stands nobody looks for one.
    pub(crate) const fn failed(&mut self) {
        (self.next, self.ended) = self.before;
    }

    /// Whether headers start on what the device writes together.
    pub(super) fn is_aligned(&self, block: u64) -> bool {
        self.area.at.0.is_multiple_of(block)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const SHAPE: Shape = Shape { chunk: 8, data: 3, block: 1 };

    fn entry(first: u64, partial: u32, data: u32) -> PplEntry {
        PplEntry { first, partial: 512 * partial, data: 512 * data, ..PplEntry::default() }
    }

    /// Stripe, rows, chunks and how much partial parity is before them.
    type Found = (u64, (u64, u64), (u64, u64), u64);

    fn rows(first: u64, partial: u32, data: u32) -> Vec<Found> {
        let told =
            |rows: Rows| (rows.stripe, (rows.from, rows.to), (rows.chunk, rows.count), rows.skip);
        SHAPE.rows(&entry(first, partial, data)).into_iter().map(told).collect()
    }

    /// The pictures in the kernel's source, with chunks of 8 sectors on three members of data.
    #[test]
    fn an_entry_protects_the_rows_that_md_recovers_by_it() {
        assert_eq!(rows(24 + 8 + 2, 4, 4), [(1, (2, 6), (1, 1), 0)], "one chunk");
        assert_eq!(rows(2, 4, 8), [(0, (2, 6), (0, 2), 0)], "two of them");
        assert_eq!(rows(48, 8, 8), [(2, (0, 8), (0, 1), 0)], "a whole chunk");
        assert_eq!(rows(56, 8, 16), [(2, (0, 8), (1, 2), 0)], "two whole chunks");
        assert_eq!(rows(24 + 3, 0, 6), [(1, (3, 5), (0, 3), 0)], "all chunks");
        assert_eq!(rows(24, 0, 24), [(1, (0, 8), (0, 3), 0)], "a whole stripe");
        // A range from row 5 of the first chunk to row 6 of the third.
        let three = [(0, (5, 6), (0, 3), 0), (0, (6, 8), (0, 2), 1), (0, (0, 5), (1, 2), 3)];
        assert_eq!(rows(5, 8, 17), three);
        // From row 6 of the first chunk to row 2 of the second: between them is nothing.
        assert_eq!(rows(6, 8, 4), [(0, (6, 8), (0, 1), 0), (0, (0, 2), (1, 1), 2)]);
    }

    #[test]
    fn what_cannot_be_an_entry_protects_nothing() {
        for (first, partial, data, why) in [
            (0, 0, 0, "nothing is written"),
            (0, 4, 3, "less than a chunk's rows are written"),
            (0, 4, 16, "more chunks than there are"),
            (16, 4, 8, "it leaves the stripe"),
            (8, 0, 6, "all chunks, from the second on"),
            (0, 9, 9, "more partial parity than a chunk has"),
            (u64::MAX, 4, 4, "behind all arrays"),
        ] {
            let shape = Shape { block: if first == u64::MAX { 8 } else { 1 }, ..SHAPE };
            assert!(shape.rows(&entry(first, partial, data)).is_empty(), "{why}");
        }
    }

    /// The device with number 2 of an array of three that Linux 6.1 wrote: where its newest header stands, of four.
    pub(in crate::md) fn kernels() -> Superblock {
        let mut array = [0; 16];
        (0..16).for_each(|at| array[at as usize] = at);
        let roles = [0, 1, 2].map(Role::Member).to_vec();
        let aside = Aside::PartialParity { offset: 8, size: 2048 };
        Superblock {
            features: Features::PPLS,
            array,
            name: [0; 32],
            created: 0,
            level: 5,
            layout: 2,
            size: 8192,
            chunk: 128,
            members: 3,
            aside,
            reshape: Default::default(),
            data_offset: 4096,
            data_size: 8192,
            super_offset: 8,
            recovery: 0,
            number: 2,
            corrected: 0,
            device: [0; 16],
            flags: 0,
            bad_blocks: Default::default(),
            updated: 0,
            events: 20,
            resync: 0,
            logical_block: 0,
            roles,
            v0: None,
        }
    }

    /// A header as the kernel wrote it: the bytes behind those that are set, up to the end of its entries.
    fn block(fields: &str) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..RESERVED].fill(0xff);
        for (at, two) in fields.as_bytes().chunks(2).enumerate() {
            let two = std::str::from_utf8(two).unwrap();
            block[RESERVED + at] = u8::from_str_radix(two, 16).unwrap();
        }
        block
    }

    /// What Linux 6.1 logged of writes at 0 (128 KiB), 12 KiB and 16 KiB (4 KiB each).
    const KERNELS: [&str; 4] = [
        "eb08c9d9000000000100000000000000010000005563db09000000000000000000000000000001000200000000000000",
        "eb08c9d900000000020000000000000001000000d99741d9400000000000000000000000000001000200000000000000",
        "eb08c9d9000000000300000000000000010000004bef08c31800000000000000001000000010000002000000262fa690",
        "eb08c9d900000000040000000000000001000000f6261a8e2000000000000000001000000010000002000000db7f6109",
    ];

    /// The second chunk of what was written at 0, 4 KiB from a row on: what was not being written then.
    fn unwritten(row: usize) -> Vec<u8> {
        let at = 65536 + 512 * row..65536 + 512 * row + 4096;
        at.map(|at| (at * 7 + at / 512) as u8).collect()
    }

    #[test]
    fn headers_are_what_the_kernel_writes() {
        let one = kernels();
        let mut ppl = Ppl::of(&one, None, 1).unwrap();
        // The kernel writes zeroes over the area first.
        ppl.ended = true;
        let record = |written, rows: (u32, u32)| Record::PartialParity {
            slot: 0,
            generation: 0,
            stripe: 0,
            from: rows.0,
            to: rows.1,
            written: [written, 0],
            settled: [0; 2],
        };
        let of = |written, rows: (u32, u32), payload: &[u8]| {
            let mut payload = payload.chunks(512);
            ppl.entry(2, &record(written, rows), &mut payload).unwrap()
        };
        let entries = [
            of(3, (0, 64), &[]),
            of(3, (64, 128), &[]),
            of(1, (24, 32), &unwritten(24)),
            of(1, (32, 40), &unwritten(32)),
        ];
        for ((entry, fields), at) in entries.into_iter().zip(KERNELS).zip([16, 24, 32, 48]) {
            let mut head = vec![0xaa; BLOCK];
            let put = ppl.put(&mut head, &[entry]).unwrap();
            assert_eq!(put, Put { at: Sector(at), bytes: BLOCK, more: false });
            assert!(head == block(fields), "{entry:x?}");
            assert_eq!(PplHeader::parse(&head).unwrap().entries, [entry]);
        }
        assert_eq!(PplHeader::signature_of(&one.array), 0xd9c9_08eb);
        let mut head = vec![0; BLOCK];
        PplHeader::parse(&block(KERNELS[3])).unwrap().emit(&mut head);
        assert!(head == block(KERNELS[3]));
        for bit in [0, 512 * 8, 530 * 8 + 3, 550 * 8, 8 * BLOCK - 1] {
            head[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PplHeader::parse(&head), None, "bit {bit}");
            head[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(PplHeader::parse(&head[..4095]), None);
    }

    /// As many entries as a block has room for are a header; one that says more is none, whatever its checksum.
    #[test]
    fn a_header_says_no_more_entries_than_it_has_room_for() {
        let all = vec![entry(8, 4, 4); (4096 - 544) / 24];
        let mut head = vec![0; BLOCK];
        emit(&mut head, (1, 2), &all);
        assert_eq!(PplHeader::parse(&head).map(|header| header.entries), Some(all.clone()));
        put(&mut head, RESERVED + 16, (all.len() as u32 + 1).to_le_bytes());
        put(&mut head, RESERVED + 20, [0; 4]);
        let checksum = !raw(!0, &head);
        put(&mut head, RESERVED + 20, checksum.to_le_bytes());
        assert_eq!(PplHeader::parse(&head), None);
    }

    /// A device in memory.
    pub(in crate::md) struct Disk(pub(in crate::md) Vec<u8>);

    impl Disk {
        /// Of partial parity, whose area starts at sector 16.
        fn new(pieces: &[(usize, Vec<u8>)]) -> Self {
            let mut bytes = vec![0; 8192 * 512];
            for (at, piece) in pieces {
                bytes[(16 + at) * 512..][..piece.len()].copy_from_slice(piece);
            }
            Self(bytes)
        }
    }

    impl Source for Disk {
        fn sectors(&self) -> Sectors {
            Sectors(self.0.len() as u64 / 512)
        }

        fn logical_block(&self) -> u32 {
            1
        }

        fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), crate::Unreadable> {
            into.copy_from_slice(&self.0[at.bytes() as usize..][..into.len()]);
            Ok(())
        }
    }

    #[test]
    fn the_newest_header_of_the_kernel_is_found_with_what_it_protects() {
        let headers = || (0..4).map(|n| ([0, 8, 16, 32][n], block(KERNELS[n])));
        let payloads = [(24, unwritten(24)), (40, unwritten(32))];
        let mut pieces: Vec<_> = headers().chain(payloads).collect();
        let one = kernels();
        let seen = look(&mut Disk::new(&pieces), &one).unwrap();
        assert!(seen.is_whole() && seen.is_used() && seen.largest == 4);
        assert_eq!(
            (seen.payloads.as_slice(), seen.most_partial),
            (&[(40, true)][..], Sectors(256))
        );
        let record = Record::PartialParity {
            slot: 0,
            generation: 1,
            stripe: 0,
            from: 32,
            to: 40,
            written: [1, 0],
            settled: [0; 2],
        };
        let entry = LogEntry { member: MemberIndex(2), at: Sector(32), record };
        assert_eq!(found(&seen, &one, 1), LogFound { entries: vec![entry], unreadable: false });
        // What it protects is on another member: it is none of this log's.
        let elsewhere = Superblock { number: 1, ..one.clone() };
        assert_eq!(found(&seen, &elsewhere, 1).entries, []);
        // Its partial parity is torn: it protects nothing, and md says so.
        pieces[5].1[4095] ^= 1;
        let torn = look(&mut Disk::new(&pieces), &one).unwrap();
        assert!(!torn.is_whole() && torn.payloads == [(40, false)]);
        assert_eq!(found(&torn, &one, 1).entries, []);
        // Itself is torn: the one before counts.
        pieces[3].1[600] ^= 1;
        let before = look(&mut Disk::new(&pieces), &one).unwrap();
        assert_eq!((before.header.map(|header| header.generation), before.largest), (Some(3), 3));
        // One in the midst of them is torn: the one before it is not the newest.
        let mut broken = pieces.clone();
        broken[3].1[600] ^= 1;
        broken[1].1[600] ^= 1;
        let broken = look(&mut Disk::new(&broken), &one).unwrap();
        assert!(broken.header.is_none() && !broken.is_whole() && broken.largest == 4);
        // The first is torn: nothing is found, but numbers go on behind the others.
        pieces[0].1[600] ^= 1;
        let lost = look(&mut Disk::new(&pieces), &one).unwrap();
        assert_eq!((lost.header, lost.largest, lost.unreadable), (None, 3, false));
        assert_eq!(
            Ppl::of(&one, Some(&PplSeen { largest: 3, ..PplSeen::default() }), 1)
                .unwrap()
                .generation,
            3
        );
    }

    #[test]
    fn an_area_is_begun_again_where_a_header_has_no_room() {
        let short = |features, size| {
            let aside = Aside::PartialParity { offset: 8, size };
            Superblock { features, aside, ..kernels() }
        };
        let full = PplEntry { partial: 256 * 512, data: 256 * 512, ..PplEntry::default() };
        let places = |one: &Superblock| {
            let mut ppl = Ppl::of(one, None, 1).unwrap();
            let mut head = vec![0; BLOCK];
            [1, 0, 1, 1].map(|count| {
                let mut put = ppl.put(&mut head, &[full; 1][..count]).unwrap();
                if put.more {
                    // What stood there before ends with it.
                    let ended = PplHeader::parse(&head).unwrap();
                    assert_eq!((put.at, ended.entries.len()), (Sector(16), 0));
                    put = ppl.put(&mut head, &[full; 1][..count]).unwrap();
                    let generation = PplHeader::parse(&head).unwrap().generation;
                    assert!(!put.more && put.at == Sector(16) && generation > ended.generation);
                } else {
                    assert!(put.at > Sector(16) || !ppl.area.several, "{put:?}");
                }
                put.at.0 - 16
            })
        };
        assert_eq!(places(&short(Features::PPLS, 528)), [0, 264, 0, 264]);
        assert_eq!(places(&short(Features::PPLS, 2048)), [0, 264, 272, 536]);
        // A header without partial parity would fit into the last block, in which no header is looked for.
        let mut last = Ppl::of(&short(Features::PPLS, 536), None, 1).unwrap();
        let mut put = |entries: &[PplEntry]| last.put(&mut vec![0; BLOCK], entries).unwrap();
        put(&[]);
        let ats = [put(&[full]).at, put(&[full]).at].map(|at| at.0 - 16);
        assert_eq!(ats, [0, 264]);
        assert!(put(&[PplEntry { data: 512, ..PplEntry::default() }]).more, "it begins again");
        assert_eq!(places(&short(Features::PPL, 2048)), [0; 4], "one header only");
        let mut single = Ppl::of(&short(Features::PPL, 48), None, 1).unwrap();
        assert_eq!(single.put(&mut vec![0; BLOCK], &[full]), None, "more than the area takes");
        for (offset, size, why) in
            [(8, 8, "no room"), (0, 64, "over the superblock"), (8, 4095, "over the data")]
        {
            let aside = Aside::PartialParity { offset, size };
            let one = Superblock { aside, ..kernels() };
            assert_eq!(Ppl::of(&one, None, 1), None, "{why}");
            assert!(look(&mut Disk::new(&[]), &one).unwrap().unreadable, "{why}");
        }
    }
}
