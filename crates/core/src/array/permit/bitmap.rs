//! The write-intent bitmap: which ranges a crash may leave inconsistent, and what a member missed.
//!
//! Fault model: as [`super`]; every member has a copy of every page, and a crash may leave any of
//! the copies of a page behind.
//! Why it is safe: a bit is durable on all members in service before a write to its range goes out;
//! it is taken back only when no write to the range was seen in two looks, everything was flushed
//! after that, no member is missing that would have to be told by it, and all superblocks say that
//! who comes back from before does not find everything in the bitmap any more. A write that asks in
//! between keeps it. Copies may hold bits too many; the union of all never holds one too few.
//! Tests: `tests/consistency.rs::bits_are_durable_before_data_in_any_order`,
//! `tests/consistency.rs::a_bit_is_cleared_after_two_quiet_looks_and_a_flush`,
//! `tests/returning.rs::a_copy_from_before_bits_were_cleared_does_not_come_back_by_them` and
//! `tests/consistency.rs::a_member_that_was_away_gets_what_the_bits_name`.

use std::collections::VecDeque;

use super::{Array, after};
use crate::array::rounds::Purpose;
use crate::array::settings::ConfigError;
use crate::array::settings::Consistency;
use crate::array::timers::Timer;
use crate::bugs::Bug;
use crate::contract::Record;
use crate::units::{MemberIndex, Sectors};

/// The most bits a bitmap may have: 32 KiB a copy for every 2^18 of them, and 6 bytes of memory each.
const MOST_BITS: u64 = 1 << 24;
/// Pages being written at once; the other rounds have places of their own.
const MOST_PAGES: u32 = 4;
/// Bits of a page.
const PAGE: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Queued,
    /// Being written.
    Writing,
    /// Being written, and has changed since.
    Again,
}

/// 64 bits, as they are to be and as they are.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// What the members are to hold.
    set: u64,
    /// What was found at the start: where redundancy may disagree until a resync has been there.
    found: u64,
    /// What every member in service holds.
    durable: u64,
    /// What is being written.
    sent: u64,
    /// Bits whose ranges were quiet at the last look.
    quiet: u64,
    /// Bits to be taken back when everything is flushed.
    clearing: u64,
    stage: Stage,
    /// A member came that does not get what is being written.
    missed: bool,
}

impl Page {
    const EMPTY: Self = Self {
        set: 0,
        found: 0,
        durable: 0,
        sent: 0,
        quiet: 0,
        clearing: 0,
        stage: Stage::Idle,
        missed: false,
    };
}

/// The bitmap of an array; without bits in other modes.
#[derive(Clone, Debug)]
pub(in crate::array) struct Bitmap {
    /// A bit stands for 2 to this power sectors.
    shift: u32,
    pages: Vec<Page>,
    /// Writes in flight to the range of each bit.
    counts: Vec<u32>,
    queue: VecDeque<u32>,
    writing: u32,
    /// Everything is being flushed, and then recorded, so that bits can be cleared.
    clearing: bool,
    /// Bits set since this many events name all that a member missed that left then or later.
    since: u64,
    /// What that becomes when the superblocks say so.
    next_since: Option<u64>,
}

/// Bits that a bitmap over `sectors` needs.
fn bits(sectors: u64, chunk: Sectors) -> u64 {
    sectors.div_ceil(chunk.0)
}

/// Whether a bitmap over `sectors` is small enough.
pub(in crate::array) fn check_bitmap(mode: Consistency, sectors: u64) -> Result<(), ConfigError> {
    let Consistency::Bitmap { chunk } = mode else { return Ok(()) };
    let needed = bits(sectors, chunk);
    if needed <= MOST_BITS {
        return Ok(());
    }
    let least = Sectors(sectors.div_ceil(MOST_BITS).next_power_of_two());
    let reason = format!(
        "a bitmap chunk of {chunk} needs {needed} bits for this array; at most {MOST_BITS} are kept: \
         use a chunk of {least} or more"
    );
    Err(ConfigError { key: "consistency", reason })
}

impl Bitmap {
    /// Over `sectors`: of the array for mirrors, of a member for levels with parity.
    pub(in crate::array) fn new(mode: Consistency, sectors: u64) -> Self {
        let (shift, count) = match mode {
            Consistency::Bitmap { chunk } => (chunk.0.trailing_zeros(), bits(sectors, chunk)),
            _ => (0, 0),
        };
        let pages = count.div_ceil(PAGE) as usize;
        Self {
            shift,
            pages: vec![Page::EMPTY; pages],
            counts: vec![0; count as usize],
            queue: VecDeque::with_capacity(pages),
            writing: 0,
            clearing: false,
            since: 0,
            next_since: None,
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        for (index, page) in self.pages.iter().enumerate() {
            if page.set | page.durable | page.sent != 0 || page.stage != Stage::Idle {
                add(index as u64 | (page.stage as u64) << 32 | u64::from(page.missed) << 40);
                [page.set, page.durable, page.quiet, page.clearing].iter().for_each(|w| add(*w));
            }
        }
        self.queue.iter().for_each(|page| add(u64::from(*page)));
        add(u64::from(self.clearing) | u64::from(self.next_since.is_some()) << 1);
    }

    /// What superblocks say of how far back the bits reach.
    pub(super) fn recorded_since(&self) -> u64 {
        self.next_since.unwrap_or(self.since)
    }

    pub(super) fn is_used(&self) -> bool {
        !self.pages.is_empty()
    }

    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The bits of a range, which is not empty.
    const fn span(&self, (from, to): (u64, u64)) -> (u64, u64) {
        (from >> self.shift, ((to - 1) >> self.shift) + 1)
    }

    /// The pages of a range with the bits of it in each.
    fn words(&self, range: (u64, u64)) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (first, end) = self.span(range);
        (first / PAGE..end.div_ceil(PAGE)).map(move |page| {
            let low = first.saturating_sub(page * PAGE).min(PAGE);
            let high = (end - page * PAGE).min(PAGE);
            (page as usize, (u64::MAX >> (PAGE - (high - low))) << low)
        })
    }

    /// Whether all bits of a range are on all members in service.
    pub(super) fn is_durable(&self, range: (u64, u64)) -> bool {
        !self.is_used()
            || self.words(range).all(|(page, bits)| self.pages[page].durable & bits == bits)
    }

    /// Whether any bit of a range is set.
    fn names(&self, range: (u64, u64)) -> bool {
        self.words(range)
            .any(|(page, bits)| self.pages.get(page).is_some_and(|page| page.set & bits != 0))
    }

    fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.set == 0)
    }

    /// A write to a range has ended.
    pub(super) fn release(&mut self, range: (u64, u64)) {
        if self.is_used() {
            let (first, end) = self.span(range);
            for count in &mut self.counts[first as usize..end as usize] {
                *count -= 1;
            }
        }
    }

    /// A page is to be written.
    fn enqueue(&mut self, index: u32) {
        let page = &mut self.pages[index as usize];
        match page.stage {
            Stage::Idle => {
                page.stage = Stage::Queued;
                self.queue.push_back(index);
            }
            Stage::Writing => page.stage = Stage::Again,
            Stage::Queued | Stage::Again => {}
        }
    }

    /// Looks for bits that nobody writes to; true when some were quiet in two looks.
    fn look(&mut self, busy_too: bool) -> bool {
        let mut found = false;
        for (index, page) in self.pages.iter_mut().enumerate().filter(|(_, page)| page.set != 0) {
            let first = index * PAGE as usize;
            let counts = self.counts[first..].iter().take(PAGE as usize).enumerate();
            let idle = counts.fold(0, |idle, (bit, count)| idle | u64::from(*count == 0) << bit);
            let idle = if busy_too { u64::MAX } else { idle };
            page.clearing = page.set & page.quiet & idle;
            page.quiet = page.set & idle;
            found |= page.clearing != 0;
        }
        found
    }

    /// Takes back what was to be cleared, or lets it be.
    fn clear(&mut self, really: bool) {
        for index in 0..self.pages.len() {
            let page = &mut self.pages[index];
            let clearing = std::mem::replace(&mut page.clearing, 0);
            if really && clearing != 0 {
                page.set &= !clearing;
                page.quiet &= !clearing;
                self.enqueue(index as u32);
            }
        }
    }

    /// Bits found on the members, 64 a page, at the start.
    pub(super) fn begin_with(&mut self, found: &[u64], since: u64) {
        let last = self.counts.len() as u64 % PAGE;
        for (page, bits) in self.pages.iter_mut().zip(found) {
            page.set = *bits;
        }
        if let (true, Some(page)) = (last > 0, self.pages.last_mut()) {
            page.set &= u64::MAX >> (PAGE - last);
        }
        for page in &mut self.pages {
            page.found = page.set;
        }
        self.since = since;
        // Some members may lack what others have.
        for index in 0..self.pages.len() {
            if self.pages[index].set != 0 {
                self.enqueue(index as u32);
            }
        }
    }
}

impl Array {
    /// A write is about to go out: its bits are kept from now on, and written where they are not.
    pub(super) fn mark_bits(&mut self, range: (u64, u64)) {
        let busy_bug = self.setup.has_bug(Bug::BitmapClearBusy);
        let bitmap = &mut self.permits.bitmap;
        if !bitmap.is_used() {
            return;
        }
        let (first, end) = bitmap.span(range);
        for count in &mut bitmap.counts[first as usize..end as usize] {
            *count += 1;
        }
        for (index, bits) in bitmap.words(range) {
            let page = &mut bitmap.pages[index];
            page.set |= bits;
            if !busy_bug {
                page.quiet &= !bits;
                page.clearing &= !bits;
            }
            // What is being written as cleared is no longer durable.
            if page.durable & bits != bits {
                let on_its_way = page.stage == Stage::Writing && page.sent & bits == bits;
                if !on_its_way {
                    bitmap.enqueue(index as u32);
                }
            }
        }
        self.write_pages();
    }

    /// Sends out pages, as many at once as there are places for.
    pub(super) fn write_pages(&mut self) {
        while self.permits.bitmap.writing < MOST_PAGES && !self.members.has_lost(&self.setup) {
            let Some(index) = self.permits.bitmap.queue.pop_front() else { return };
            let page = &mut self.permits.bitmap.pages[index as usize];
            page.stage = Stage::Writing;
            page.sent = page.set;
            self.permits.bitmap.writing += 1;
            self.start_round(Purpose::Bitmap(index), false, true);
        }
    }

    /// A page is about to go out: settles what it says.
    pub(in crate::array) fn seal_page(&mut self, index: u32) -> bool {
        let lost = self.members.has_lost(&self.setup);
        let page = &mut self.permits.bitmap.pages[index as usize];
        page.sent = page.set;
        page.durable &= page.set;
        page.missed = false;
        page.stage = Stage::Writing;
        !lost
    }

    pub(in crate::array) fn bitmap_record(&self, page: u32) -> Record {
        Record::BitmapPage { page, bits: self.permits.bitmap.pages[page as usize].sent }
    }

    /// A page is on every member in service.
    pub(in crate::array) fn bitmap_recorded(&mut self, index: u32) {
        let bitmap = &mut self.permits.bitmap;
        bitmap.writing -= 1;
        let page = &mut bitmap.pages[index as usize];
        page.durable = if page.missed { 0 } else { page.sent };
        let again = page.stage == Stage::Again || page.missed;
        page.stage = Stage::Idle;
        if again {
            bitmap.enqueue(index);
        }
        self.write_pages();
        self.release_writes();
    }

    /// A member came that has none of the bits, or old ones.
    pub(super) fn repeat_bitmap(&mut self) {
        let bitmap = &mut self.permits.bitmap;
        for index in 0..bitmap.pages.len() {
            let page = &mut bitmap.pages[index];
            page.durable = 0;
            page.missed = matches!(page.stage, Stage::Writing | Stage::Again);
            if page.set != 0 {
                bitmap.enqueue(index as u32);
            }
        }
        self.write_pages();
    }

    /// Whether bits may be cleared: all members have all of everything.
    fn may_clear(&self) -> bool {
        let whole =
            self.members.missing().is_empty() || self.setup.has_bug(Bug::BitmapClearDegraded);
        whole && self.synced_to() == u64::MAX && !self.members.has_lost(&self.setup)
    }

    /// Sees that quiet bits are looked for.
    pub(super) fn watch_bits(&mut self) {
        let bitmap = &self.permits.bitmap;
        if !bitmap.is_used() || bitmap.clearing {
            return;
        }
        if self.may_clear() && !bitmap.is_empty() {
            self.timers
                .set_if_idle(Timer::Bitmap, after(self.now, self.setup.settings.bitmap_delay));
        }
    }

    /// It is time to look for quiet bits.
    pub(in crate::array) fn bitmap_due(&mut self) {
        if !self.may_clear() || self.permits.bitmap.clearing || self.members.stopped {
            return;
        }
        let busy_too = self.setup.has_bug(Bug::BitmapClearBusy);
        if self.permits.bitmap.look(busy_too) {
            self.permits.bitmap.clearing = true;
            if self.setup.has_bug(Bug::BitmapClearUnflushed) {
                self.bitmap_flushed();
            } else {
                self.start_round(Purpose::BitmapFlush, true, false);
            }
        } else {
            self.watch_bits();
        }
    }

    /// Everything was flushed: bits whose ranges are quiet can be cleared as soon as it is recorded
    /// that the bitmap does not reach back beyond now.
    pub(in crate::array) fn bitmap_flushed(&mut self) {
        if self.may_clear() && self.members.missing().is_empty() {
            self.permits.bitmap.next_since = Some(self.permits.update.sent.events + 1);
            self.permits.update.wanted = true;
            self.next_update();
        } else {
            self.clear_bits();
        }
    }

    /// An update of the superblocks is on all members in service.
    pub(super) fn bitmap_since_recorded(&mut self) {
        let recorded = self.permits.update.recorded.bitmap_since;
        let bitmap = &mut self.permits.bitmap;
        if let Some(since) = bitmap.next_since.take_if(|since| *since <= recorded) {
            // When a member failed meanwhile no bit is cleared, and they reach back as far as before.
            if self.may_clear() {
                self.permits.bitmap.since = since;
            }
            self.clear_bits();
        }
    }

    /// Takes back the bits whose ranges were quiet until now, if no member is missing.
    fn clear_bits(&mut self) {
        let may = self.may_clear();
        self.permits.bitmap.clear(may);
        self.permits.bitmap.clearing = false;
        self.write_pages();
        self.watch_bits();
    }

    /// Whether the bitmap names something of a range of sectors: of the members for levels with
    /// parity, of the array for mirrors.
    pub(in crate::array) fn bitmap_names(&self, range: std::ops::Range<u64>) -> bool {
        range.start < range.end && self.permits.bitmap.names((range.start, range.end))
    }

    /// The same of the bitmap that was found at the start.
    pub(in crate::array) fn bitmap_found(&self, range: std::ops::Range<u64>) -> bool {
        let bitmap = &self.permits.bitmap;
        let words = bitmap.words((range.start, range.end));
        words.into_iter().any(|(index, bits)| bitmap.pages[index].found & bits != 0)
    }

    /// Whether the bitmap names everything that a member missed whose newest superblock, in which
    /// it is in service itself, has these events. Events that the others reached without it only can
    /// be its own if it went on alone.
    pub(crate) fn bitmap_reaches(&self, member: MemberIndex, events: u64) -> bool {
        let bitmap = &self.permits.bitmap;
        let known = events >= bitmap.since && events < self.left_at(member);
        bitmap.is_used() && (known || self.setup.has_bug(Bug::ReAddTooOld))
    }
}
