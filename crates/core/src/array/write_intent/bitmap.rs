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
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::array::settings::{ConfigError, Consistency};
use crate::contract::Record;
use crate::units::Sectors;

/// The most bits a bitmap may have: 32 KiB a copy for every 2^18 of them, and 6 bytes of memory each.
const MOST_BITS: u64 = 1 << 24;
/// Blocks being written at once; the other rounds have places of their own.
const MOST_BLOCKS: u32 = 4;
/// Bits of a page.
const PAGE: u64 = 64;
/// Pages in 4 KiB of md's bitmap, whose head takes the places of as many of the first (`drivers/md/md-bitmap.h`).
const PACKED: (u32, u32) = (512, 32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    Queued,
    Writing,
}

/// Pages that follow one another.
type Span = Range<u32>;

const NO_PAGES: Span = 0..0;

/// Pages that are written together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Block {
    stage: Stage,
    /// Those that are to be written, and all between them.
    wanted: Span,
    /// Those that are being written.
    sent: Span,
}

impl Block {
    const IDLE: Self = Self { stage: Stage::Idle, wanted: NO_PAGES, sent: NO_PAGES };

    fn want(&mut self, page: u32) {
        self.wanted = joined(&self.wanted, &(page..page + 1));
    }

    fn is_sending(&self, page: u32) -> bool {
        self.stage == Stage::Writing && self.sent.contains(&page)
    }
}

/// The pages of both and those between them.
fn joined(one: &Span, other: &Span) -> Span {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other.clone(),
        (_, true) => one.clone(),
        _ => one.start.min(other.start)..one.end.max(other.end),
    }
}

/// 64 bits, as they are to be and as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A member came that does not get what is being written.
    missed: bool,
}

impl Page {
    const EMPTY: Self =
        Self { set: 0, found: 0, durable: 0, sent: 0, quiet: 0, clearing: 0, missed: false };
}

/// The bitmap of an array; without bits in other modes.
#[derive(Clone, Debug)]
pub(in crate::array) struct Bitmap {
    /// A bit stands for 2 to this power sectors.
    shift: u32,
    pages: Vec<Page>,
    /// How many pages are written together, and how many less are in the first block.
    packed: (u32, u32),
    blocks: Vec<Block>,
    /// Writes in flight to the range of each bit.
    counts: Vec<u32>,
    /// Blocks that are to be written.
    queue: VecDeque<u32>,
    writing: u32,
    /// Everything is being flushed, and then recorded, so that bits can be cleared.
    clearing: bool,
    /// Bits set since this many events name all that a member missed that left then or later.
    since: u64,
    /// What that becomes when the superblocks say so.
    next_since: Option<u64>,
}

fn span(pages: &Span) -> Range<usize> {
    pages.start as usize..pages.end as usize
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

/// How far back it reaches is told in events, which are a counter; superblocks have it counted from the newest.
impl Hash for Bitmap {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { pages, blocks, queue, writing, clearing, next_since, .. } = self;
        let used = pages.iter().enumerate().filter(|(_, page)| **page != Page::EMPTY);
        used.for_each(|one| one.hash(key));
        let used = blocks.iter().enumerate().filter(|(_, block)| **block != Block::IDLE);
        used.for_each(|one| one.hash(key));
        (queue, writing, clearing, next_since.is_some()).hash(key);
    }
}

impl Bitmap {
    /// Over `sectors`: of the array for mirrors, of a member for levels with parity. `packed`: see
    /// [`Settings::packed_bitmap`](crate::array::Settings::packed_bitmap).
    pub(in crate::array) fn new(mode: Consistency, sectors: u64, packed: bool) -> Self {
        let (shift, count) = match mode {
            Consistency::Bitmap { chunk } => (chunk.0.trailing_zeros(), bits(sectors, chunk)),
            _ => (0, 0),
        };
        let pages = count.div_ceil(PAGE) as usize;
        let packed = if packed { PACKED } else { (1, 0) };
        let blocks =
            if pages == 0 { 0 } else { (pages + packed.1 as usize).div_ceil(packed.0 as usize) };
        Self {
            shift,
            pages: vec![Page::EMPTY; pages],
            packed,
            blocks: vec![Block::IDLE; blocks],
            counts: vec![0; count as usize],
            queue: VecDeque::with_capacity(blocks),
            writing: 0,
            clearing: false,
            since: 0,
            next_since: None,
        }
    }

    /// What superblocks say of how far back the bits reach.
    pub(super) fn recorded_since(&self) -> u64 {
        self.next_since.unwrap_or(self.since)
    }

    pub(in crate::array) fn is_used(&self) -> bool {
        !self.pages.is_empty()
    }

    pub(in crate::array) fn pages(&self) -> usize {
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
    pub(in crate::array) fn names(&self, range: (u64, u64)) -> bool {
        range.0 < range.1 && self.has(range)
    }

    fn has(&self, range: (u64, u64)) -> bool {
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

    /// The block in which a page lies.
    const fn block_of(&self, page: u32) -> u32 {
        let (pages, before) = self.packed;
        (page + before) / pages
    }

    /// A page is to be written.
    fn enqueue(&mut self, page: u32) {
        let index = self.block_of(page);
        let block = &mut self.blocks[index as usize];
        block.want(page);
        if block.stage == Stage::Idle {
            block.stage = Stage::Queued;
            self.queue.push_back(index);
        }
    }

    /// Whether a page is being written with all of these bits.
    fn is_on_its_way(&self, page: u32, bits: u64) -> bool {
        self.blocks[self.block_of(page) as usize].is_sending(page)
            && self.pages[page as usize].sent & bits == bits
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
    pub(in crate::array) fn begin_with(&mut self, found: &[u64], since: u64) {
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

    /// A write of a range asks: its bits are kept from now on, and written where they are not. The seeded bug
    /// (`forgets`) does not keep what was quiet.
    pub(super) fn mark(&mut self, range: (u64, u64), forgets: bool) {
        if !self.is_used() {
            return;
        }
        let (first, end) = self.span(range);
        for count in &mut self.counts[first as usize..end as usize] {
            *count += 1;
        }
        for (index, bits) in self.words(range) {
            let page = &mut self.pages[index];
            page.set |= bits;
            if !forgets {
                page.quiet &= !bits;
                page.clearing &= !bits;
            }
            // What is being written as cleared is no longer durable.
            if page.durable & bits != bits && !self.is_on_its_way(index as u32, bits) {
                self.enqueue(index as u32);
            }
        }
    }

    /// The next block that goes out, if there is a place for it.
    pub(in crate::array) fn next_block(&mut self) -> Option<u32> {
        if self.writing >= MOST_BLOCKS {
            return None;
        }
        let index = self.queue.pop_front()?;
        self.blocks[index as usize].stage = Stage::Writing;
        self.settle(index);
        self.writing += 1;
        Some(index)
    }

    /// What is to be written of a block is being written from now on, as it is now.
    fn settle(&mut self, index: u32) {
        let block = &mut self.blocks[index as usize];
        block.sent = joined(&block.sent, &block.wanted);
        block.wanted = NO_PAGES;
        for page in &mut self.pages[span(&block.sent)] {
            page.sent = page.set;
        }
    }

    /// A block is about to go out: settles what it says.
    pub(in crate::array) fn seal(&mut self, index: u32) {
        self.settle(index);
        for page in &mut self.pages[span(&self.blocks[index as usize].sent)] {
            page.durable &= page.set;
            page.missed = false;
        }
    }

    /// What is written of a block that is going out: its first page, which [`Self::beside`] follow.
    pub(in crate::array) fn record(&self, index: u32) -> Record {
        let page = self.blocks[index as usize].sent.start;
        Record::BitmapPage { page, bits: self.pages[page as usize].sent }
    }

    /// The pages that are written together with this one, itself left out, with their bits.
    pub(in crate::array) fn beside(&self, page: u32) -> impl Iterator<Item = (u32, u64)> + use<'_> {
        let block = self.blocks.get(self.block_of(page) as usize);
        let sent =
            block.filter(|block| block.is_sending(page)).map_or(NO_PAGES, |one| one.sent.clone());
        let others = sent.filter(move |one| *one != page);
        others.map(|one| (one, self.pages[one as usize].sent))
    }

    /// A block is on every member in service.
    pub(in crate::array) fn recorded(&mut self, index: u32) {
        self.writing -= 1;
        let block = &mut self.blocks[index as usize];
        let sent = std::mem::replace(&mut block.sent, NO_PAGES);
        block.stage = Stage::Idle;
        for at in sent {
            let page = &mut self.pages[at as usize];
            page.durable = if page.missed { 0 } else { page.sent };
            if std::mem::take(&mut page.missed) {
                self.enqueue(at);
            }
        }
        let block = &mut self.blocks[index as usize];
        if block.stage == Stage::Idle && !block.wanted.is_empty() {
            block.stage = Stage::Queued;
            self.queue.push_back(index);
        }
    }

    /// A member came that has none of the bits, or old ones.
    pub(in crate::array) fn repeat(&mut self) {
        for index in 0..self.pages.len() as u32 {
            let is_sending = self.blocks[self.block_of(index) as usize].is_sending(index);
            let page = &mut self.pages[index as usize];
            page.durable = 0;
            page.missed = is_sending;
            if page.set != 0 {
                self.enqueue(index);
            }
        }
    }

    /// Whether quiet bits are to be looked for, where they may be cleared.
    pub(in crate::array) fn wants_look(&self) -> bool {
        self.is_used() && !self.clearing && !self.is_empty()
    }

    pub(in crate::array) fn is_clearing(&self) -> bool {
        self.clearing
    }

    /// Looks for quiet bits; true when some are to be cleared, as soon as everything is flushed. The seeded bug
    /// (`busy_too`) takes those with writes under way.
    pub(in crate::array) fn begin_clearing(&mut self, busy_too: bool) -> bool {
        self.clearing = self.look(busy_too);
        self.clearing
    }

    pub(super) fn set_next_since(&mut self, events: u64) {
        self.next_since = Some(events);
    }

    /// Superblocks say that the bitmap reaches back to these events; true when that was asked for.
    pub(super) fn since_recorded(&mut self, recorded: u64, may_clear: bool) -> bool {
        let Some(since) = self.next_since.take_if(|since| *since <= recorded) else {
            return false;
        };
        // When a member failed meanwhile no bit is cleared, and they reach back as far as before.
        if may_clear {
            self.since = since;
        }
        true
    }

    /// Takes back the bits whose ranges were quiet until now, if that may be.
    pub(in crate::array) fn end_clearing(&mut self, may_clear: bool) {
        self.clear(may_clear);
        self.clearing = false;
    }

    /// Whether the bitmap that was found at the start names something of a range.
    pub(in crate::array) fn found(&self, range: (u64, u64)) -> bool {
        self.words(range).any(|(index, bits)| self.pages[index].found & bits != 0)
    }

    /// Whether bits name everything missed since these events, by a member that `left` then; the seeded bug
    /// (`always`) takes them to.
    pub(super) const fn reaches(&self, events: u64, left: u64, always: bool) -> bool {
        !self.pages.is_empty() && (events >= self.since && events < left || always)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bit for each 8 sectors of 2048: four pages.
    fn bitmap() -> Bitmap {
        Bitmap::new(Consistency::Bitmap { chunk: Sectors(8) }, 2048, false)
    }

    /// Writes pages until none is to be written any more; which.
    fn write_all(bitmap: &mut Bitmap) -> Vec<u32> {
        let mut written = Vec::new();
        while let Some(page) = bitmap.next_block() {
            bitmap.seal(page);
            bitmap.recorded(page);
            written.push(page);
        }
        written
    }

    #[test]
    fn a_bit_is_durable_when_its_page_is_written_as_it_is_now() {
        let mut bitmap = bitmap();
        let (one, other) = ((0, 16), (24, 32));
        bitmap.mark(one, false);
        assert!(!bitmap.is_durable(one));
        let page = bitmap.next_block().expect("it is to be written");
        bitmap.seal(page);
        bitmap.mark(other, false);
        bitmap.recorded(page);
        assert!(bitmap.is_durable(one));
        assert!(!bitmap.is_durable(other), "set when the page was on its way");
        assert_eq!(write_all(&mut bitmap), [0], "once more");
        assert!(bitmap.is_durable(other));
        bitmap.mark((500, 530), false);
        assert_eq!(write_all(&mut bitmap), [0, 1], "a range over two pages");
        bitmap.mark(one, false);
        assert_eq!(write_all(&mut bitmap), [0u32; 0], "nothing new");
    }

    #[test]
    fn a_bit_is_cleared_after_two_quiet_looks() {
        let mut bitmap = bitmap();
        bitmap.mark((0, 8), false);
        bitmap.mark((8, 16), false);
        write_all(&mut bitmap);
        bitmap.release((0, 8));
        assert!(bitmap.wants_look());
        assert!(!bitmap.begin_clearing(false), "the first look");
        assert!(bitmap.begin_clearing(false), "the second");
        assert!(bitmap.is_clearing() && !bitmap.wants_look());
        bitmap.end_clearing(false);
        assert!(bitmap.names((0, 8)), "it may not be");
        assert!(bitmap.begin_clearing(false));
        bitmap.end_clearing(true);
        assert!(!bitmap.names((0, 8)));
        assert!(bitmap.names((8, 16)), "a write is under way there");
        assert!(!bitmap.is_durable((0, 8)) || bitmap.next_block().is_some(), "it is written");
    }

    #[test]
    fn a_bit_that_was_busy_in_a_look_is_not_cleared_by_the_next() {
        let mut bitmap = bitmap();
        bitmap.mark((0, 8), false);
        assert!(!bitmap.begin_clearing(false), "a write is under way");
        bitmap.release((0, 8));
        assert!(!bitmap.begin_clearing(false), "the first look in which it is quiet");
        assert!(bitmap.begin_clearing(false), "the second");
    }

    #[test]
    fn a_write_between_looks_keeps_its_bit() {
        let mut bitmap = bitmap();
        bitmap.mark((0, 8), false);
        bitmap.release((0, 8));
        assert!(!bitmap.begin_clearing(false));
        assert!(bitmap.begin_clearing(false));
        bitmap.mark((0, 8), false);
        bitmap.end_clearing(true);
        assert!(bitmap.names((0, 8)), "asked for between the look and the flush");
    }

    #[test]
    fn a_member_that_came_gets_all_pages() {
        let mut bitmap = bitmap();
        bitmap.mark((0, 8), false);
        bitmap.mark((1024, 1032), false);
        write_all(&mut bitmap);
        bitmap.mark((8, 16), false);
        let page = bitmap.next_block().expect("the first is to be written");
        bitmap.seal(page);
        bitmap.repeat();
        bitmap.recorded(page);
        assert!(!bitmap.is_durable((8, 16)), "the member did not get it");
        let mut pages = write_all(&mut bitmap);
        pages.sort_unstable();
        assert_eq!(pages, [0, 2]);
        assert!(bitmap.is_durable((8, 16)) && bitmap.is_durable((1024, 1032)));
    }

    #[test]
    fn bits_reach_as_far_back_as_superblocks_say() {
        let mut bitmap = bitmap();
        bitmap.begin_with(&[1, 0, 0, 0], 5);
        assert!(bitmap.found((0, 8)) && !bitmap.found((8, 16)));
        assert!(bitmap.reaches(5, 9, false) && !bitmap.reaches(4, 9, false));
        assert!(!bitmap.reaches(9, 9, false), "events that it did not leave with");
        bitmap.set_next_since(8);
        assert_eq!(bitmap.recorded_since(), 8);
        assert!(!bitmap.since_recorded(7, true), "an earlier update");
        assert!(bitmap.since_recorded(8, true));
        assert!(!bitmap.reaches(7, 9, false) && bitmap.reaches(8, 9, false));
    }

    #[test]
    fn ranges_are_marked_bit_by_bit() {
        for (from, to) in
            [(0, 1), (7, 9), (504, 512), (504, 513), (8, 1024), (511, 1537), (2040, 2048)]
        {
            let mut bitmap = bitmap();
            bitmap.mark((from, to), false);
            for bit in 0..256 {
                let range = (bit * 8, bit * 8 + 8);
                let expected = bit * 8 < to && from < bit * 8 + 8;
                assert_eq!(bitmap.names(range), expected, "{from}..{to}, bit {bit}");
            }
            assert!(bitmap.names((0, 2048)) && !bitmap.names((from, from)));
            assert!(!bitmap.is_durable((from, to)) && !bitmap.is_empty());
            let pages: Vec<u32> = ((from / 512) as u32..=((to - 1) / 512) as u32).collect();
            assert_eq!(write_all(&mut bitmap), pages);
            assert!(bitmap.is_durable((from, to)));
        }
    }

    #[test]
    fn what_was_found_is_written_to_all_but_what_is_behind_the_end() {
        let mut bitmap = Bitmap::new(Consistency::Bitmap { chunk: Sectors(8) }, 2000, false);
        assert_eq!((bitmap.pages(), bitmap.counts.len()), (4, 250));
        bitmap.begin_with(&[0, 0b10, 0, u64::MAX], 3);
        let sets: Vec<u64> = bitmap.pages.iter().map(|page| page.set).collect();
        assert_eq!(sets, [0, 0b10, 0, u64::MAX >> 6]);
        assert!(bitmap.found((520, 528)) && !bitmap.found((528, 536)) && !bitmap.found((0, 520)));
        assert_eq!(bitmap.recorded_since(), 3);
        assert_eq!(bitmap.next_block(), Some(1));
        bitmap.seal(1);
        assert_eq!(bitmap.record(1), Record::BitmapPage { page: 1, bits: 0b10 });
        bitmap.recorded(1);
        assert_eq!(write_all(&mut bitmap), [3]);
        let mut whole = Bitmap::new(Consistency::Bitmap { chunk: Sectors(8) }, 2048, false);
        whole.begin_with(&[0, 0, 0, u64::MAX], 3);
        assert_eq!(whole.pages[3].set, u64::MAX);
    }

    #[test]
    fn so_many_pages_are_written_at_once() {
        let mut bitmap = Bitmap::new(Consistency::Bitmap { chunk: Sectors(1) }, 64 * 6, false);
        bitmap.mark((0, 64 * 6), false);
        let pages: Vec<u32> = std::iter::from_fn(|| bitmap.next_block()).collect();
        assert_eq!(pages, [0, 1, 2, 3]);
        bitmap.recorded(2);
        assert_eq!((bitmap.next_block(), bitmap.next_block()), (Some(4), None));
        // Changed on its way: once more, and once.
        bitmap.mark((0, 1), false);
        assert!(bitmap.blocks[0].wanted.is_empty(), "it says so already");
        bitmap.pages[0].sent = 0;
        bitmap.mark((0, 1), false);
        bitmap.mark((1, 2), false);
        assert_eq!(
            (bitmap.blocks[0].stage, bitmap.blocks[0].wanted.clone()),
            (Stage::Writing, 0..1)
        );
        bitmap.recorded(0);
        assert_eq!((bitmap.pages[0].durable, bitmap.blocks[0].stage), (0, Stage::Queued));
        assert_eq!(bitmap.queue, [5, 0]);
    }

    /// A bit for each sector of a thousand pages that lie as md's: 480 in the first block, 512 in the second.
    fn packed() -> Bitmap {
        Bitmap::new(Consistency::Bitmap { chunk: Sectors(1) }, 64 * 1000, true)
    }

    /// A bit of a page.
    fn bit(page: u64, bit: u64) -> (u64, u64) {
        (page * 64 + bit, page * 64 + bit + 1)
    }

    #[test]
    fn pages_of_a_block_are_written_together() {
        let mut bitmap = packed();
        for page in [100, 3, 479, 480, 992] {
            bitmap.mark(bit(page, page % 64), false);
        }
        assert_eq!(bitmap.queue, [0, 1, 2]);
        assert_eq!(bitmap.next_block(), Some(0));
        bitmap.seal(0);
        assert_eq!(bitmap.record(0), Record::BitmapPage { page: 3, bits: 1 << 3 });
        let beside: Vec<_> = bitmap.beside(3).collect();
        let pages: Vec<u32> = beside.iter().map(|(page, _)| *page).collect();
        assert_eq!(pages, (4..480).collect::<Vec<u32>>(), "all of them and what lies between");
        let with_bits: Vec<_> = beside.iter().filter(|(_, bits)| *bits != 0).collect();
        assert_eq!(with_bits, [&(100, 1 << 36), &(479, 1 << 31)]);
        assert_eq!(bitmap.beside(480).count(), 0, "another block, which is not being written");
        // One that is on its way, one whose bits are not, and one that is not.
        bitmap.mark(bit(100, 36), false);
        assert!(bitmap.blocks[0].wanted.is_empty());
        bitmap.mark(bit(100, 37), false);
        bitmap.mark(bit(2, 0), false);
        assert_eq!(bitmap.blocks[0].wanted, 2..101);
        bitmap.recorded(0);
        assert!(bitmap.is_durable(bit(3, 3)) && bitmap.is_durable(bit(479, 31)));
        assert!(!bitmap.is_durable(bit(100, 37)) && !bitmap.is_durable(bit(2, 0)));
        assert_eq!((bitmap.next_block(), bitmap.next_block()), (Some(1), Some(2)));
        assert_eq!((bitmap.next_block(), bitmap.next_block()), (Some(0), None));
        // What came until it went out is written with it.
        bitmap.mark(bit(200, 0), false);
        bitmap.seal(0);
        bitmap.recorded(0);
        assert!(bitmap.is_durable(bit(200, 0)) && bitmap.is_durable(bit(2, 0)));
        assert!(bitmap.queue.is_empty());
    }

    #[test]
    fn a_thousand_pages_are_cleared_by_three_writes() {
        let mut bitmap = packed();
        bitmap.mark((0, 64_000), false);
        assert_eq!(write_all(&mut bitmap), [0, 1, 2]);
        bitmap.release((0, 64_000));
        assert!(!bitmap.begin_clearing(false) && bitmap.begin_clearing(false));
        bitmap.end_clearing(true);
        assert_eq!(write_all(&mut bitmap), [0, 1, 2]);
        assert!(bitmap.is_empty() && bitmap.pages.iter().all(|page| page.durable == 0));
    }

    #[test]
    fn a_member_that_came_gets_a_block_that_was_on_its_way_again() {
        let mut bitmap = packed();
        for page in [5, 7] {
            bitmap.mark(bit(page, 0), false);
        }
        assert_eq!(bitmap.next_block(), Some(0));
        bitmap.seal(0);
        bitmap.repeat();
        bitmap.recorded(0);
        assert!(!bitmap.is_durable(bit(5, 0)) && !bitmap.is_durable(bit(7, 0)));
        assert_eq!(write_all(&mut bitmap), [0], "once, with all of them");
        assert!(bitmap.is_durable(bit(5, 0)) && bitmap.is_durable(bit(7, 0)));
        // Sealed again when it has come: it gets that.
        bitmap.mark(bit(9, 0), false);
        assert_eq!(bitmap.next_block(), Some(0));
        bitmap.seal(0);
        bitmap.repeat();
        bitmap.seal(0);
        bitmap.recorded(0);
        assert!(bitmap.is_durable(bit(9, 0)) && bitmap.queue.is_empty());
    }

    #[test]
    fn looks_know_which_bits_are_busy_on_each_page() {
        let mut bitmap = bitmap();
        for bit in [0, 1, 70, 71, 255] {
            bitmap.mark((bit * 8, bit * 8 + 8), false);
        }
        for bit in [1, 71, 255] {
            bitmap.release((bit * 8, bit * 8 + 8));
        }
        assert!(!bitmap.begin_clearing(false) && bitmap.begin_clearing(false));
        let clearing: Vec<u64> = bitmap.pages.iter().map(|page| page.clearing).collect();
        assert_eq!(clearing, [0b10, 1 << 7, 0, 1 << 63]);
        write_all(&mut bitmap);
        bitmap.end_clearing(true);
        let set: Vec<u64> = bitmap.pages.iter().map(|page| page.set).collect();
        assert_eq!((set, bitmap.is_clearing()), (vec![0b1, 1 << 6, 0, 0], false));
        assert_eq!(bitmap.queue, [0, 1, 3], "pages of which something was cleared");
        write_all(&mut bitmap);
        assert!(!bitmap.is_durable((8, 16)) && bitmap.is_durable((0, 8)));
        assert!(!bitmap.begin_clearing(false), "the others are busy");
        assert!(!bitmap.begin_clearing(false));
    }

    #[test]
    fn bits_that_nobody_has_reach_nowhere() {
        let none = Bitmap::new(Consistency::Resync, 2048, false);
        assert!(!none.is_used() && !none.reaches(5, 9, true) && !none.wants_look());
        assert!(none.is_durable((0, 8)), "nothing is waited for");
        let mut used = bitmap();
        assert!(!used.wants_look(), "nothing is set");
        used.begin_with(&[0; 4], 5);
        assert!(
            used.reaches(4, 9, true) && used.reaches(5, 6, false) && !used.reaches(6, 6, false)
        );
        used.set_next_since(8);
        assert!(used.since_recorded(9, false), "recorded, and not taken up");
        assert!(used.reaches(5, 9, false));
        assert_eq!(bits(17, Sectors(8)), 3);
        let mode = |chunk| Consistency::Bitmap { chunk: Sectors(chunk) };
        assert!(check_bitmap(mode(8), MOST_BITS * 8).is_ok());
        let error = check_bitmap(mode(8), MOST_BITS * 8 + 1).expect_err("too many");
        assert!(
            error.reason.contains(&format!("use a chunk of {}", Sectors(16))),
            "{}",
            error.reason
        );
        assert!(check_bitmap(Consistency::Resync, u64::MAX).is_ok());
    }
}
