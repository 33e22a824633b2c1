//! The drives of an array under check: what they show, what would survive a crash, what is broken.
//!
//! Fault model: a drive has a volatile write cache. A write in flight or completed may reach the
//! medium at any moment, each of its sectors by itself, in any order; nothing but a flush (for what
//! was completed before it was sent) or the completion of a durable write makes it certain. Of one
//! sector a crash leaves the last durable value or any that was written later. A metadata record is
//! found whole or not at all: an entry of a log whose payload is torn is no entry. A record sent
//! with a flush before it reaches the medium only after what that flush covers. Beyond that: sectors
//! that cannot be read until written, or not even then; drives that are gone; writes that are
//! answered well and are lost or land elsewhere; sectors that change by themselves.
//! Why it is safe to judge by it: everything a real drive with flush and FUA may leave after a power
//! cut, down to sectors of 512 bytes, is one of the images of [`Drives::image`].
//! Tests: `a_flush_covers_what_was_completed_before_it`, `a_torn_log_entry_is_no_entry`,
//! `a_record_with_a_flush_before_it_never_overtakes`.
//!
//! All drives lie in one list of sectors, so that a copy of a world is a few copies of memory. A
//! drive has its data, then its log, then a sector for the superblock and one for each page of the
//! bitmap.

mod bytes;
mod logs;
mod md;
mod records;
mod replay;

use std::fmt;

use raidlab_core::consistency::{ArrayId, MetaArea};
use raidlab_core::contract::{LOG_HEADER, Record};
use raidlab_core::{Array, Config, Consistency, MemberIndex};

use super::content::{Content, EMPTY, hash_all, mix};
use super::shape::{Set, has};
pub use bytes::Format;
pub use logs::Logged;
pub(crate) use logs::fit;
pub(crate) use md::{MOST_PARTIAL_PARITY, MdFinds, SEVERAL};
pub(crate) use records::hash_of;
pub(crate) use replay::NotReplayed;

/// What identifies every array under check.
pub const IDENTITY: ArrayId = *b"raidlab's check.";

/// A write on its way to a drive's medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u32);

/// Where a drive's parts lie in the list of all sectors.
#[derive(Clone, Copy, Debug)]
struct Span {
    base: u32,
    data: u32,
    log: u32,
    pages: u32,
    /// Sectors behind data and log, for records.
    tail: u32,
    /// Sectors that it reads and writes together.
    block: u32,
}

impl Span {
    const fn superblock(&self) -> u32 {
        self.base + self.data + self.log
    }

    const fn page(&self, page: u32) -> u32 {
        self.superblock() + 1 + page
    }

    const fn end(&self) -> u32 {
        self.superblock() + self.tail
    }
}

/// A sector's value that is not yet certain to survive.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: u32,
    device: u16,
    /// What of its write is there together.
    whole: Whole,
    value: Content,
    ticket: u32,
    /// When it was completed; [`IN_FLIGHT`] until then.
    done: u32,
    /// Everything completed before this is on the medium before this is; 0 for nothing.
    after: u32,
}

const IN_FLIGHT: u32 = u32::MAX;

/// What of a write is there together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    /// Each sector by itself.
    Sectors,
    /// An entry of a log, which is there as a whole or torn.
    Entry,
    /// All of it or nothing.
    Together,
    /// Each block of the drive by itself: what is of the block with this sector as its first.
    Block(u32),
}

/// Room for records behind data and log.
enum Room<'a> {
    /// As the own format needs it.
    Own(&'a MetaArea),
    /// As md's stand on each device, the log before all others.
    Md(&'a [md::Ground]),
}

impl Pending {
    /// What decides whether it is there.
    const fn kind(&self) -> FateKind {
        match self.whole {
            Whole::Sectors => FateKind::Sector(self.at),
            Whole::Block(first) => FateKind::Sector(first),
            Whole::Entry => FateKind::Entry(self.ticket),
            Whole::Together => FateKind::Together(self.ticket),
        }
    }
}

/// A record by the number that stands for it in its sectors.
#[derive(Clone, Copy, Debug)]
struct Named {
    name: Content,
    at: u32,
    payload: u32,
    record: Record,
}

#[derive(Clone, Copy, Debug)]
struct Bad {
    at: u32,
    /// Writing does not mend it.
    stuck: bool,
}

/// One thing that a crash decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Whose medium.
    pub device: MemberIndex,
    /// How many ways it can go: 0 is "as if it had never been written".
    pub ways: u32,
    /// Where on the drive.
    pub at: u32,
    kind: FateKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FateKind {
    /// A sector: the last durable value, or one of those written later, in order.
    Sector(u32),
    /// An entry of a log: nothing of it, torn, or whole.
    Entry(u32),
    /// Sectors that are written together: nothing of them, or all.
    Together(u32),
}

impl fmt::Display for Fate {
    /// `d0+3` is sector 3 of drive 0 (log, superblock and bitmap behind its data), `d0 entry` an
    /// entry of its log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FateKind::Sector(_) => write!(f, "d{}+{}", self.device.0, self.at),
            FateKind::Entry(_) => write!(f, "d{} entry +{}", self.device.0, self.at),
            FateKind::Together(_) => write!(f, "d{} together +{}", self.device.0, self.at),
        }
    }
}

/// All drives of an array: members, their replacements, the log device; numbered as the array does.
#[derive(Debug, Default)]
pub struct Drives {
    spans: Vec<Span>,
    gone: Vec<bool>,
    /// What a read sees.
    live: Vec<Content>,
    /// What no crash takes away.
    durable: Vec<Content>,
    /// In the order in which they cover each other: completed ones in order, then those in flight.
    pending: Vec<Pending>,
    bad: Vec<Bad>,
    names: Vec<Named>,
    /// Records as bytes, instead of names.
    bytes: Option<Box<bytes::Records>>,
    /// Blocks are written together, not each sector by itself.
    whole_blocks: bool,
    clock: u32,
    tickets: u32,
}

impl Clone for Drives {
    fn clone(&self) -> Self {
        let mut new = Self::default();
        new.clone_from(self);
        new
    }

    fn clone_from(&mut self, other: &Self) {
        self.spans.clone_from(&other.spans);
        self.gone.clone_from(&other.gone);
        self.live.clone_from(&other.live);
        self.durable.clone_from(&other.durable);
        self.pending.clone_from(&other.pending);
        self.bad.clone_from(&other.bad);
        self.names.clone_from(&other.names);
        self.bytes.clone_from(&other.bytes);
        self.whole_blocks = other.whole_blocks;
        self.clock = other.clock;
        self.tickets = other.tickets;
    }
}

impl Drives {
    /// Drives for an array, all empty. Replacements are as large as their members; they hold
    /// nothing when there are to be none.
    #[must_use]
    pub fn new(array: &Array, config: &Config, replacements: bool) -> Self {
        Self::of(array, config, replacements, None)
    }

    /// `room`: records are bytes, in so much room.
    fn of(array: &Array, config: &Config, replacements: bool, room: Option<Room<'_>>) -> Self {
        let members = config.layout.members;
        let largest = config.members.iter().map(|m| m.sectors.0).max().unwrap_or(0);
        let pages = match config.settings.consistency {
            Consistency::Bitmap { chunk } => {
                largest.max(array.capacity().0).div_ceil(chunk.0.max(1)).div_ceil(64) as u32
            }
            _ => 0,
        };
        let mut spans = Vec::new();
        let mut base = 0;
        for device in 0..=2 * members {
            let of = usize::from(device % members.max(1));
            let is_replacement = device >= members && device < 2 * members;
            let is_there = !is_replacement || replacements;
            let has_data = device < 2 * members && is_there;
            let data = if has_data { config.members[of].sectors.0 as u32 } else { 0 };
            // A replacement takes the member's place, with its log.
            let log_of = if is_replacement { device % members } else { device };
            let log = match room {
                Some(Room::Md(grounds)) => grounds[usize::from(device)].log(),
                _ => array.log_sectors(MemberIndex(log_of)).0 as u32,
            };
            let log = log * u32::from(is_there);
            let pages = pages * u32::from(is_there);
            let block = config.members.first().map_or(1, |member| member.logical_block);
            let tail = match room {
                None => 1 + pages,
                Some(Room::Md(grounds)) if is_there => grounds[usize::from(device)].tail(),
                Some(Room::Md(_)) => 0,
                // Where a log device ends is where its superblocks lie.
                Some(_) if device == 2 * members => {
                    if log > 0 {
                        24
                    } else {
                        0
                    }
                }
                Some(Room::Own(area)) if is_there => (area.sectors().0 - area.log.0) as u32,
                Some(_) => 0,
            };
            let span = Span { base, data, log, pages, tail, block };
            base = span.end();
            spans.push(span);
        }
        let sectors = vec![EMPTY; base as usize];
        Self {
            gone: vec![false; spans.len()],
            spans,
            live: sectors.clone(),
            durable: sectors,
            clock: 1,
            ..Self::default()
        }
    }

    /// How many drives there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.spans.len() as u16
    }

    /// The sectors of a drive that reads and writes reach: data, then log.
    #[must_use]
    pub fn sectors(&self, device: MemberIndex) -> u64 {
        let span = &self.spans[device.at()];
        u64::from(span.data + span.log)
    }

    /// Where the log starts, in sectors.
    #[must_use]
    pub fn log_start(&self, device: MemberIndex) -> u64 {
        u64::from(self.spans[device.at()].data)
    }

    /// Whether something of a drive's log cannot be read.
    #[must_use]
    pub fn is_log_bad(&self, device: MemberIndex) -> bool {
        let (from, log) = (self.log_start(device), u64::from(self.spans[device.at()].log));
        self.first_bad(device, from, log, false).is_some()
    }

    /// The index of a sector in the list of all.
    fn index(&self, device: MemberIndex, at: u64) -> u32 {
        self.spans[device.at()].base + at as u32
    }

    /// Whether a range lies on the drive.
    #[must_use]
    pub fn is_within(&self, device: MemberIndex, at: u64, len: u64) -> bool {
        device.at() < self.spans.len() && at + len <= self.sectors(device)
    }

    /// Whether a range begins and ends where logical blocks of the drive do.
    #[must_use]
    pub fn is_aligned(&self, device: MemberIndex, at: u64, len: u64) -> bool {
        let block = u64::from(self.spans[device.at()].block);
        at.is_multiple_of(block) && len.is_multiple_of(block)
    }

    /// What a read of one sector sees.
    #[must_use]
    pub fn live(&self, device: MemberIndex, at: u64) -> Content {
        self.live[self.index(device, at) as usize]
    }

    /// Whether every value shown would survive a crash.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.pending.is_empty()
    }

    /// Hashes everything that decides what happens next, tickets and times apart.
    #[must_use]
    pub fn key(&self) -> u64 {
        // What is shown follows from what is durable and what is pending.
        let mut key = hash_all(1, &self.durable);
        for pending in &self.pending {
            let state = u64::from(pending.done == IN_FLIGHT) | u64::from(pending.after != 0) << 1;
            key = mix(mix(key, pending.value), u64::from(pending.at) << 8 | state);
        }
        for bad in &self.bad {
            key = mix(key, u64::from(bad.at) << 1 | u64::from(bad.stuck));
        }
        self.gone.iter().fold(key, |key, gone| mix(key, u64::from(*gone)))
    }
}

/// Writing, flushing, and how they end.
impl Drives {
    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    /// A write is sent: its sectors may reach the medium from now on.
    pub fn send_write(
        &mut self,
        device: MemberIndex,
        at: u64,
        values: impl Iterator<Item = Content>,
    ) -> Ticket {
        let Ticket(ticket) = self.ticket();
        let first = self.index(device, at);
        for ((at, value), place) in (first..).zip(values).zip(at..) {
            let whole = self.whole(device, place);
            let (device, done, after) = (device.0, IN_FLIGHT, 0);
            self.pending.push(Pending { at, device, whole, value, ticket, done, after });
        }
        Ticket(ticket)
    }

    /// What is there together of a write to a sector of a drive.
    fn whole(&self, device: MemberIndex, at: u64) -> Whole {
        let block = u64::from(self.spans[device.at()].block);
        match self.whole_blocks {
            true => Whole::Block(self.index(device, at / block * block)),
            false => Whole::Sectors,
        }
    }

    /// From now on drives write their blocks together.
    pub(crate) fn write_whole_blocks(&mut self) {
        self.whole_blocks = true;
    }

    /// A metadata record is sent, or one of its parts; whether there is another one then. `at` is where in the log an
    /// entry starts, `payload` its payload; `flush` puts everything completed before on the medium first.
    pub fn send_record(
        &mut self,
        (device, record, part): (MemberIndex, Record, u32),
        at: u64,
        payload: &[Content],
        flush: bool,
    ) -> (Ticket, bool) {
        let Ticket(ticket) = self.ticket();
        let after = if flush && part == 0 { self.tick() } else { 0 };
        if self.bytes.is_some() {
            let numbers = (part, ticket, after);
            return (Ticket(ticket), self.send_bytes((device, record, at), payload, numbers));
        }
        let span = self.spans[device.at()];
        let pending = Pending {
            at: span.superblock(),
            device: device.0,
            whole: Whole::Sectors,
            value: EMPTY,
            ticket,
            done: IN_FLIGHT,
            after,
        };
        match record {
            Record::Superblock(_) => {
                let value = self.name(record, span.superblock(), &[]);
                self.pending.push(Pending { value, ..pending });
            }
            Record::BitmapPage { page, bits } => {
                let at = span.page(page.min(span.pages.saturating_sub(1)));
                self.pending.push(Pending { at, value: bits, ..pending });
            }
            Record::PartialParity { .. } | Record::JournalEntry { .. } => {
                let first = span.base + span.data + at as u32;
                let header = self.name(record, first, payload);
                let headers = std::iter::repeat_n(header, LOG_HEADER as usize);
                for (at, value) in (first..).zip(headers.chain(payload.iter().copied())) {
                    self.pending.push(Pending { at, value, whole: Whole::Entry, ..pending });
                }
            }
        }
        (Ticket(ticket), false)
    }

    /// The number that stands for a record.
    fn name(&mut self, record: Record, at: u32, payload: &[Content]) -> Content {
        let name = payload.iter().fold(hash_of(&record), |name, value| mix(name, *value)) | 1;
        if self.names.iter().any(|known| known.name == name && known.at == at) {
            return name;
        }
        if self.names.len() >= 96 {
            let Self { names, live, durable, pending, .. } = self;
            names.retain(|known| {
                let at = known.at as usize;
                known.name == live[at]
                    || known.name == durable[at]
                    || pending.iter().any(|p| p.at == known.at && p.value == known.name)
            });
        }
        self.names.push(Named { name, at, payload: payload.len() as u32, record });
        name
    }

    /// A write or record has ended well; `durable`: it is on the medium.
    pub fn complete(&mut self, ticket: Ticket, durable: bool) {
        self.complete_part(ticket, usize::MAX, durable);
    }

    /// Only the first `sectors` of a write were carried out, whatever the drive says.
    pub fn complete_part(&mut self, ticket: Ticket, sectors: usize, durable: bool) {
        let done = self.tick();
        let mut seen = 0;
        let mut index = 0;
        let mut moved = Vec::new();
        while index < self.pending.len() {
            if self.pending[index].ticket != ticket.0 {
                index += 1;
                continue;
            }
            let pending = self.pending.remove(index);
            seen += 1;
            if seen <= sectors {
                moved.push(Pending { done, ..pending });
            }
        }
        let Some(first) = moved.first().copied() else { return };
        if first.after != 0 {
            self.settle(first.device, first.after);
        }
        for pending in moved {
            self.live[pending.at as usize] = pending.value;
            self.bad.retain(|bad| bad.at != pending.at || bad.stuck);
            if durable {
                self.durable[pending.at as usize] = pending.value;
                self.pending.retain(|old| old.at != pending.at || old.done == IN_FLIGHT);
            } else {
                // Behind what was completed, before what is in flight.
                let place = self.pending.partition_point(|old| old.done != IN_FLIGHT);
                self.pending.insert(place, pending);
            }
        }
    }

    /// A write had no effect.
    pub fn lose(&mut self, ticket: Ticket) {
        self.complete_part(ticket, 0, false);
    }

    /// A flush is sent; gives the moment up to which it will make everything durable.
    pub fn send_flush(&mut self) -> u32 {
        self.tick()
    }

    /// A flush has ended well.
    pub fn complete_flush(&mut self, device: MemberIndex, sent: u32) {
        self.settle(device.0, sent);
    }

    /// What was completed before `moment` is on the medium.
    fn settle(&mut self, device: u16, moment: u32) {
        let durable = &mut self.durable;
        self.pending.retain(|pending| {
            let covered = pending.device == device && pending.done < moment;
            if covered {
                durable[pending.at as usize] = pending.value;
            }
            !covered
        });
    }

    /// A sector is changed by nobody, on the medium.
    pub fn rot(&mut self, device: MemberIndex, at: u64, bits: Content) {
        let index = self.index(device, at) as usize;
        self.live[index] ^= bits;
        self.durable[index] = self.live[index];
    }

    /// The logical block of a sector cannot be read: until it is written, or for good when `stuck`.
    pub fn damage(&mut self, device: MemberIndex, at: u64, stuck: bool) {
        let block = u64::from(self.spans[device.at()].block);
        let first = self.index(device, at / block * block);
        let all = first..first + block as u32;
        self.bad.retain(|bad| !all.contains(&bad.at));
        self.bad.extend(all.map(|at| Bad { at, stuck }));
    }

    /// The first sector of a range that cannot be read; with `writing`, not even written.
    #[must_use]
    pub fn first_bad(&self, device: MemberIndex, at: u64, len: u64, writing: bool) -> Option<u64> {
        if self.bad.is_empty() {
            return None;
        }
        let base = self.spans[device.at()].base;
        let (from, to) = (base + at as u32, base + (at + len) as u32);
        let bad = self.bad.iter().filter(|b| (b.stuck || !writing) && from <= b.at && b.at < to);
        bad.map(|b| u64::from(b.at - base)).min()
    }

    /// Whether the drive no longer answers.
    #[must_use]
    pub fn is_gone(&self, device: MemberIndex) -> bool {
        self.gone[device.at()]
    }

    /// The drive no longer answers, or does so again.
    pub fn set_gone(&mut self, device: MemberIndex, gone: bool) {
        self.gone[device.at()] = gone;
    }

    /// A fresh drive, which holds junk, is in this one's place.
    pub fn renew(&mut self, device: MemberIndex) {
        let span = self.spans[device.at()];
        self.pending.retain(|pending| pending.device != device.0);
        self.bad.retain(|bad| bad.at < span.base || bad.at >= span.end());
        for at in span.base..span.end() {
            let junk =
                if at < span.superblock() { mix(0x6a75_6e6b, u64::from(at)) | 1 } else { EMPTY };
            self.live[at as usize] = junk;
            self.durable[at as usize] = junk;
        }
        self.gone[device.at()] = false;
        self.make_ready(device);
    }

    /// The drive of another world is put in this one's place, with all it shows; its write cache is
    /// written out.
    pub fn take_drive(&mut self, device: MemberIndex, other: &Self) {
        self.renew(device);
        let span = self.spans[device.at()];
        for at in span.base..span.end() {
            self.live[at as usize] = other.live[at as usize];
            self.durable[at as usize] = other.live[at as usize];
        }
        let theirs = other.names.iter().filter(|named| (span.base..span.end()).contains(&named.at));
        self.names.extend(theirs.copied());
        if let (Some(records), Some(theirs)) = (&mut self.bytes, &other.bytes) {
            records.learn(theirs);
        }
        self.bad.extend(other.bad.iter().filter(|bad| (span.base..span.end()).contains(&bad.at)));
        self.gone[device.at()] = other.gone[device.at()];
    }

    /// A replacement takes its member's place. Of an array of md the drive that went is still there, and is found by
    /// the next start: it has the replacement's place.
    pub fn take_place(&mut self, member: MemberIndex, replacement: MemberIndex) {
        if self.is_md() {
            return self.change_places(member, replacement);
        }
        let (to, from) = (self.spans[member.at()], self.spans[replacement.at()]);
        self.renew(member);
        for sector in 0..to.end() - to.base {
            let (to, from) = ((to.base + sector) as usize, (from.base + sector) as usize);
            self.live[to] = self.live[from];
            self.durable[to] = self.durable[from];
        }
        for pending in &mut self.pending {
            if pending.device == replacement.0 {
                pending.device = member.0;
                pending.at = to.base + (pending.at - from.base);
            }
        }
        for bad in &mut self.bad {
            if bad.at >= from.base && bad.at < from.end() {
                bad.at = to.base + (bad.at - from.base);
            }
        }
        for index in 0..self.names.len() {
            let mut named = self.names[index];
            if named.at >= from.base && named.at < from.end() {
                named.at = to.base + (named.at - from.base);
                self.names.push(named);
            }
        }
        self.gone[member.at()] = self.gone[replacement.at()];
        if let Some(records) = &mut self.bytes {
            records.take_place(member, replacement);
        }
        self.renew(replacement);
    }
}

/// Crashes, and what is found afterwards.
impl Drives {
    /// Everything that a crash decides now.
    #[must_use]
    pub fn fates(&self) -> Vec<Fate> {
        let mut fates: Vec<Fate> = Vec::new();
        for pending in &self.pending {
            let kind = pending.kind();
            match fates.iter_mut().find(|fate| fate.kind == kind) {
                Some(fate) if pending.whole == Whole::Sectors => fate.ways += 1,
                Some(fate) if pending.whole == Whole::Block(pending.at) => fate.ways += 1,
                Some(_) => {}
                None => {
                    let ways = if pending.whole == Whole::Entry { 3 } else { 2 };
                    let device = MemberIndex(pending.device);
                    let at = pending.at - self.spans[device.at()].base;
                    fates.push(Fate { device, ways, at, kind });
                }
            }
        }
        fates
    }

    /// Writes into `image` what the media hold when each of `fates` goes the way `picks` says.
    pub fn image(&self, fates: &[Fate], picks: &[u32], image: &mut Vec<Content>) {
        image.clone_from(&self.durable);
        // A chosen record proves that the flush before it was done.
        let mut floors = Vec::new();
        let chosen = |p: &Pending| {
            let index = fates.iter().position(|fate| fate.kind == p.kind());
            index.map_or(0, |index| picks[index])
        };
        if self.pending.iter().any(|pending| pending.after != 0) {
            floors.resize(self.spans.len(), 0);
            self.raise_floors(fates, picks, &mut floors);
            for p in &self.pending {
                if p.done < floors[usize::from(p.device)] {
                    image[p.at as usize] = p.value;
                }
            }
        }
        for (fate, pick) in fates.iter().zip(picks) {
            if let (FateKind::Sector(at), true) = (fate.kind, *pick > 0) {
                let floor = floors.get(fate.device.at()).copied().unwrap_or(0);
                let is_meant = |p: &&Pending| p.kind() == FateKind::Sector(at);
                let mut values = self.pending.iter().filter(is_meant).filter(|p| p.at == at);
                let chosen = values.nth(*pick as usize - 1).filter(|p| p.done >= floor);
                let ticket = chosen.map(|p| p.ticket);
                for p in self.pending.iter().filter(|p| Some(p.ticket) == ticket) {
                    if is_meant(&p) {
                        image[p.at as usize] = p.value;
                    }
                }
            }
        }
        let mut index = 0;
        while index < self.pending.len() {
            let p = self.pending[index];
            let run = self.pending[index..].iter().take_while(|q| q.ticket == p.ticket).count();
            let there = match (p.whole, chosen(&p)) {
                (Whole::Sectors | Whole::Block(_), _) | (_, 0) => 0,
                // Torn: all but the last sector.
                (Whole::Entry, 1) => run - 1,
                _ => run,
            };
            for q in &self.pending[index..index + there] {
                image[q.at as usize] = q.value;
            }
            index += run;
        }
    }

    /// For each device the moment before which everything completed must be on the medium, because
    /// a record that was sent with a flush is.
    fn raise_floors(&self, fates: &[Fate], picks: &[u32], floors: &mut [u32]) {
        for (fate, pick) in fates.iter().zip(picks).filter(|(_, pick)| **pick > 0) {
            let is_first = |p: &&Pending| match p.whole {
                Whole::Block(first) => p.at == first,
                _ => true,
            };
            let mut chosen = self.pending.iter().filter(|p| p.kind() == fate.kind).filter(is_first);
            let skip =
                if matches!(fate.kind, FateKind::Sector(_)) { *pick as usize - 1 } else { 0 };
            if let Some(p) = chosen.nth(skip) {
                let floor = &mut floors[usize::from(p.device)];
                *floor = (*floor).max(p.after);
            }
        }
    }

    /// Hashes an image without the drives `lost` (a bit each), and the sectors and drives that are
    /// broken; goes on from `key`.
    #[must_use]
    pub fn image_key(&self, image: &[Content], key: u64, lost: Set) -> u64 {
        let mut key = key;
        for (device, span) in self.spans.iter().enumerate() {
            if has(lost, device as u16) {
                continue;
            }
            key = hash_all(key, &image[span.base as usize..span.end() as usize]);
        }
        for bad in &self.bad {
            key = mix(key, u64::from(bad.at) << 1 | u64::from(bad.stuck));
        }
        self.gone.chunks(64).fold(key, |key, gone| {
            mix(key, gone.iter().fold(0, |set, gone| set << 1 | u64::from(*gone)))
        })
    }

    /// The drives start again with this on their media.
    pub fn restart(&mut self, image: &[Content]) {
        self.pending.clear();
        self.live.copy_from_slice(image);
        self.durable.copy_from_slice(image);
    }

    /// A crash now; `pick` chooses one of so many ways for each fate.
    pub fn crash(&mut self, mut pick: impl FnMut(u32) -> u32) {
        let fates = self.fates();
        let picks: Vec<u32> = fates.iter().map(|fate| pick(fate.ways)).collect();
        let mut image = Vec::new();
        self.image(&fates, &picks, &mut image);
        self.restart(&image);
    }
}
