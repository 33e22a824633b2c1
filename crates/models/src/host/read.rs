//! Reads through the page cache, and read-ahead.
//!
//! The rules ([`ReadAheadRule`]): Linux since 2.6.23 ("on-demand"), F. Wu, H. Xi and C. Xu, "On the
//! design of a new Linux readahead framework", ACM SIGOPS Operating Systems Review 42 (2008), 5. A miss
//! that goes on where the last read ended opens a window, twice or four times the read; the window
//! grows by two or four up to its most; a mark in it starts the next one before it is needed. Since
//! 4.10 a read longer than the most is read in requests as long as the device takes. Linux before had
//! a current window and one ahead, which is the same with other first windows; FreeBSD tops up what
//! is ahead at every cluster.
//!
//! A reader copies one piece after the other and does nothing else meanwhile: the disk works for it then
//! only as far as read-ahead has asked.

use std::ops::Range;

use raidlab_core::contract::IoOp;
use raidlab_core::units::Nanos;

use super::cache::{Marks, Page};
use super::kernel::ReadAheadRule;
use super::spec::{BLOCK, HostSpec, PIECE};
use super::task::{Kind, Next, Task, Transfer};
use super::{Failure, Host, HostDescriptor, HostOutput, METADATA, Purpose, TaskId};

/// Bytes that a process which works on each of them reads at once: no more than the shortest read-ahead
/// has there, so that the next come meanwhile.
const CHARACTERS: u64 = 128 << 10;

/// The read-ahead of an open file, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ahead {
    /// The current window.
    start: u64,
    size: u64,
    /// How much of its end lies behind the mark.
    behind: u64,
    /// One more than the last page that was read.
    previous: u64,
    /// Pages that were read in sequence up to there.
    sequence: u64,
}

/// A window to be read: its pages, and which of them get marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    start: u64,
    end: u64,
    marks: Marks,
}

/// What bounds windows, in pages.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    rule: ReadAheadRule,
    most: u64,
    least: u64,
    /// Pages of a block of the filesystem.
    block: u64,
    /// Pages of the longest request.
    request: u64,
}

impl Ahead {
    fn window(&self) -> Window {
        let end = self.start + self.size;
        let marks = if self.behind > 0 { Marks::At(end - self.behind) } else { Marks::None };
        Window { start: self.start, end, marks }
    }

    fn open(&mut self, page: u64, wanted: u64, bounds: &Bounds) {
        let (first, most) = (wanted.next_power_of_two(), bounds.most);
        let two_windows = bounds.rule == ReadAheadRule::TwoWindows;
        let size = match first {
            first if two_windows && first <= most / 64 => first * first,
            first if two_windows && first <= most / 4 => most / 4,
            first if !two_windows && first <= most / 32 => first * 4,
            first if !two_windows && first <= most / 4 => first * 2,
            _ => most,
        };
        self.start = page;
        self.size = size.max(bounds.least.min(most)).max(1);
        self.behind = if self.size > wanted { self.size - wanted } else { self.size };
    }

    fn grow(&mut self, most: u64) {
        self.start += self.size;
        self.size = if self.size < most / 16 {
            self.size * 4
        } else if self.size <= most / 2 {
            self.size * 2
        } else {
            most
        };
        self.behind = self.size;
    }

    /// A page is wanted that is not in memory, as the first of `wanted`.
    fn missed(&mut self, page: u64, wanted: u64, bounds: &Bounds) -> Window {
        let most = bounds.most;
        let goes_on = self.size > 0
            && (page == self.start + self.size || page == self.start + self.size - self.behind);
        let follows = page == 0 || (page <= self.previous && self.previous <= page + bounds.block);
        if most == 0 || (bounds.rule == ReadAheadRule::Clusters && !follows) {
            // At random: what is asked for and no more, and no window.
            Window { start: page, end: page + wanted, marks: Marks::None }
        } else if bounds.rule == ReadAheadRule::Clusters {
            let ahead = (self.sequence + wanted).min(most);
            let marks = Marks::Every { from: page + wanted };
            Window { start: page, end: page + wanted + ahead, marks }
        } else if page > 0 && goes_on {
            self.grow(most);
            self.window()
        } else if follows || wanted > most {
            self.open(page, wanted, bounds);
            if bounds.rule == ReadAheadRule::TwoWindows && wanted >= most {
                // The second window is asked for with the first.
                self.grow(most);
                return Window { start: page, ..self.window() };
            }
            self.window()
        } else {
            Window { start: page, end: page + wanted, marks: Marks::None }
        }
    }

    /// A reader came to a mark; `next` is the first page behind it that is not in memory.
    fn marked(&mut self, page: u64, next: u64, bounds: &Bounds) -> Window {
        let most = bounds.most;
        if bounds.rule == ReadAheadRule::Clusters {
            let end = page + self.sequence.min(most);
            return Window { start: next, end: end.max(next), marks: Marks::Every { from: next } };
        }
        if self.size > 0 && page == self.start + self.size - self.behind {
            self.grow(most);
        } else {
            // Somebody else's window, or one lost: on from what is there.
            self.size = (next - page).clamp(1, most);
            self.start = next - self.size;
            self.grow(most);
        }
        self.window()
    }

    /// Pages were read.
    fn passed(&mut self, first: u64, end: u64) {
        let follows = first <= self.previous && self.previous <= first + 1;
        let before = if follows { self.sequence.saturating_sub(self.previous - first) } else { 0 };
        self.sequence = before + (end - first);
        self.previous = end;
    }
}

impl HostSpec {
    /// What bounds windows for a read of `wanted` pages.
    fn bounds(&self, wanted: u64) -> Bounds {
        let (most, request) = (self.read_ahead_pages(), self.longest_request / BLOCK);
        let is_long = wanted > most && self.long_reads && most > 0;
        Bounds {
            rule: self.read_ahead_rule,
            most: if is_long { most.max(wanted.min(request)) } else { most },
            least: self.read_ahead_start / BLOCK,
            block: self.filesystem.block / BLOCK,
            request,
        }
    }
}

impl Bounds {
    /// How much of what is wanted is read at once.
    fn wanted(&self, wanted: u64) -> u64 {
        let most = match self.rule {
            ReadAheadRule::Clusters => self.request,
            _ if self.most == 0 => self.request,
            _ => self.most,
        };
        wanted.min(most).max(1)
    }
}

impl Host {
    /// Goes on with reads.
    pub(super) fn read(&mut self, id: u32, task: &mut Task) -> Next {
        let Kind::Read(transfer) = &mut task.kind else { return Next::Wait };
        self.passed(id, transfer, &mut task.moved, true);
        self.read_on(id, task.process, transfer)
    }

    /// The next piece of reads.
    pub(super) fn read_on(&mut self, id: u32, process: u32, transfer: &mut Transfer) -> Next {
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize) else {
            return Next::Failed(Failure::NoFile);
        };
        let file = open.file;
        let size = self.files.get(&file).map_or(0, |file| file.size);
        let position = transfer.position();
        if transfer.times == 0 || position >= size {
            return Next::Done;
        }
        let page = position / BLOCK;
        let end = (transfer.at + transfer.len).min(size);
        loop {
            if let Some(block) = self.fetch_pending(process, transfer.handle) {
                self.wait_for_page(id, METADATA, block);
                return Next::Wait;
            }
            let state = self.cache.page(file, page);
            // Linux looks at the mark before it waits for the page; FreeBSD has to have the block.
            let sees_marks = state == Page::Present
                || state == Page::Reading && self.spec.read_ahead_rule != ReadAheadRule::Clusters;
            match state {
                Page::Present | Page::Reading if sees_marks && self.cache.take_mark(file, page) => {
                    self.go_ahead(transfer, page);
                }
                Page::Present => break,
                Page::Reading => {
                    self.wait_for_page(id, file, page);
                    return Next::Wait;
                }
                Page::Absent => self.miss(transfer, page, end.div_ceil(BLOCK) - page),
            }
        }
        if self.spec.access_times {
            if self.journal.stalls(id) {
                return Next::Wait;
            }
            self.accessed(file);
        }
        let longest = if transfer.characters { CHARACTERS } else { PIECE };
        let there = self.cache.present(file, page, longest / BLOCK + 1);
        let most = ((page + there) * BLOCK).min(size) - position;
        let (piece, begun) = transfer.cut(most.min(longest), size, u64::MAX);
        let behind = (position + piece.bytes).div_ceil(BLOCK);
        self.cache.touch(file, page..behind);
        if let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) {
            open.ahead.passed(page, behind);
        }
        let costs = &self.spec.costs;
        let copies = if transfer.copies { costs.copy(piece.bytes) } else { Nanos::ZERO };
        transfer.piece = Some(piece);
        let (cost, user) = (Nanos(costs.call.0 * begun) + copies, costs.work_on(transfer, piece));
        Next::Compute { cost, user, copies, is_read: true }
    }

    /// A file is read: its time of access changes, once a second.
    fn accessed(&mut self, number: u64) {
        let second = self.now.0 / 1_000_000_000 + 1;
        let Some(file) = self.files.get_mut(&number) else { return };
        if std::mem::replace(&mut file.accessed, second) != second {
            self.change_metadata(number, &[], false);
        }
    }

    /// A piece that was copied is behind; gives the calls that are done with it, and their bytes.
    pub(super) fn passed(
        &mut self,
        id: u32,
        transfer: &mut Transfer,
        moved: &mut u64,
        is_read: bool,
    ) -> Option<(u64, u64)> {
        let piece = transfer.piece.take()?;
        *moved += piece.bytes;
        let bytes = transfer.passed(piece);
        let calls = Some(piece.calls).filter(|calls| *calls > 0)?;
        self.outputs.push_back(HostOutput::Moved { task: TaskId(id), is_read, calls, bytes });
        Some((calls, bytes))
    }

    /// A page is not there: what is to be read for it comes next.
    fn miss(&mut self, transfer: &Transfer, page: u64, wanted: u64) {
        let bounds = self.spec.bounds(wanted);
        let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) else { return };
        // Blocks of the filesystem are read as a whole.
        let first = page - page % bounds.block;
        let wanted = bounds.wanted((page + wanted - first).next_multiple_of(bounds.block));
        let window = open.ahead.missed(first, wanted, &bounds);
        // A window that was lost from memory may lie elsewhere.
        let elsewhere = !(window.start..window.end).contains(&page);
        let itself = Window { start: page, end: page + 1, marks: Marks::None };
        open.pending = [Some(window), elsewhere.then_some(itself)];
    }

    /// A reader came to the mark in a window: the next one comes next.
    fn go_ahead(&mut self, transfer: &Transfer, page: u64) {
        let bounds = self.spec.bounds(transfer.len.div_ceil(BLOCK));
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize) else { return };
        let next = page + self.cache.there(open.file, page, bounds.most);
        let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) else { return };
        open.pending[0] = Some(open.ahead.marked(page, next, &bounds));
    }

    /// Reads what comes next; gives the indirect block that must be waited for before there is more.
    fn fetch_pending(&mut self, process: u32, handle: HostDescriptor) -> Option<u64> {
        for index in 0..2 {
            let Some(Some(open)) = self.open.get_mut(handle.0 as usize) else { return None };
            let file = open.file;
            let Some(window) = open.pending[index].take() else { continue };
            if let Some((page, block)) = self.fetch(process, file, window) {
                let rest = Window { start: page, ..window };
                let Some(Some(open)) = self.open.get_mut(handle.0 as usize) else { return None };
                open.pending[index] = Some(rest);
                return Some(block);
            }
        }
        None
    }

    /// Asks the array for the pages of a window that are not in memory; holes are there at once. Gives
    /// the page that cannot be found before an indirect block is there, and that block.
    fn fetch(&mut self, process: u32, file: u64, window: Window) -> Option<(u64, u64)> {
        let pages = match self.files.get(&file) {
            Some(of) if file != METADATA => of.size.div_ceil(BLOCK),
            Some(_) => self.space.blocks(),
            None => return None,
        };
        let (mut page, end) = (window.start, window.end.min(pages));
        while page < end {
            let there = self.cache.there(file, page, end - page);
            if there > 0 {
                page += there;
                continue;
            }
            let absent = self.cache.absent(file, page, end - page);
            let longest = absent.min(self.spec.longest_request / BLOCK);
            let Some(place) = self.files.get(&file).and_then(|of| of.place(page)) else {
                let len = self.files.get(&file).map_or(absent, |of| of.hole(page, absent));
                self.cache.fill(file, page..page + len);
                page += len;
                continue;
            };
            if let Some(block) = self.missing_pointers(process, file, page) {
                return Some((page, block));
            }
            let len = place.1.min(longest);
            let pages = page..page + len;
            let io = Self::blocks(process, IoOp::Read, place.0, len);
            let slot = self.send(io, Purpose::Read { file, pages: pages.clone() });
            self.reading.insert(file, pages.clone(), slot);
            self.cache.start_reading(file, pages, window.marks);
            page += len;
        }
        None
    }

    /// Asks for pages without read-ahead; gives the indirect block that must be waited for first.
    pub(super) fn fetch_exactly(
        &mut self,
        process: u32,
        file: u64,
        pages: Range<u64>,
    ) -> Option<u64> {
        let window = Window { start: pages.start, end: pages.end, marks: Marks::None };
        self.fetch(process, file, window).map(|(_, block)| block)
    }

    /// Asks for blocks of metadata.
    pub(super) fn fetch_metadata(&mut self, process: u32, blocks: Range<u64>) {
        let window = Window { start: blocks.start, end: blocks.end, marks: Marks::None };
        // Metadata are found without indirect blocks.
        self.fetch(process, METADATA, window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(rule: ReadAheadRule, most: u64, least: u64) -> Bounds {
        Bounds { rule, most, least, block: 1, request: 32 }
    }

    fn window(pages: Range<u64>, mark: u64) -> Window {
        Window { start: pages.start, end: pages.end, marks: Marks::At(mark) }
    }

    #[test]
    fn windows_grow_as_published() {
        let mut ahead = Ahead::default();
        let to_32 = bounds(ReadAheadRule::OnDemand, 32, 0);
        // Reads of a page with windows of 32 pages at most: 4 (1 x 4), 8, 16, 32, 32.
        assert_eq!(ahead.missed(0, 1, &to_32), window(0..4, 1));
        assert_eq!(ahead.marked(1, 4, &to_32), window(4..12, 4));
        assert_eq!(ahead.marked(4, 12, &to_32), window(12..28, 12));
        assert_eq!(ahead.marked(12, 28, &to_32), window(28..60, 28));
        assert_eq!(ahead.marked(28, 60, &to_32), window(60..92, 60));
        let before = ahead;
        let alone = Window { start: 1_000, end: 1_002, marks: Marks::None };
        assert_eq!((ahead.missed(1_000, 2, &to_32), ahead), (alone, before), "random: no window");
        assert_eq!(ahead.missed(92, 1, &to_32), window(92..124, 92), "and on");
        assert_eq!(Ahead::default().missed(0, 32, &to_32), window(0..32, 0), "a read of a window");
        let least = bounds(ReadAheadRule::OnDemand, 32, 16);
        assert_eq!(Ahead::default().missed(0, 1, &least), window(0..16, 1), "the least");
    }

    #[test]
    fn two_windows_begin_with_a_quarter_and_come_together_for_long_reads() {
        let to_32 = bounds(ReadAheadRule::TwoWindows, 32, 0);
        let mut ahead = Ahead::default();
        // Reads of a page: 8 (a quarter), then 16 at the second page, 32 at the 9th.
        assert_eq!(ahead.missed(0, 1, &to_32), window(0..8, 1));
        assert_eq!(ahead.marked(1, 8, &to_32), window(8..24, 8));
        assert_eq!(ahead.marked(8, 24, &to_32), window(24..56, 24));
        assert_eq!(ahead.marked(24, 56, &to_32), window(56..88, 56));
        let mut ahead = Ahead::default();
        assert_eq!(ahead.missed(0, 32, &to_32), window(0..64, 32), "both windows at once");
        assert_eq!(ahead.marked(32, 64, &to_32), window(64..96, 64));
        let to_128 = bounds(ReadAheadRule::TwoWindows, 128, 0);
        assert_eq!(Ahead::default().missed(0, 2, &to_128), window(0..4, 2), "the square");
    }

    #[test]
    fn clusters_are_topped_up_to_what_was_read_in_sequence() {
        let rule = bounds(ReadAheadRule::Clusters, 128, 0);
        let mut ahead = Ahead::default();
        let every = |start, end, from| Window { start, end, marks: Marks::Every { from } };
        assert_eq!(ahead.missed(0, 16, &rule), every(0, 32, 16));
        ahead.passed(0, 16);
        assert_eq!(ahead.marked(16, 32, &rule), every(32, 32, 32), "as much as was read");
        ahead.passed(16, 32);
        assert_eq!(ahead.missed(32, 16, &rule), every(32, 96, 48));
        ahead.passed(32, 400);
        assert_eq!(ahead.marked(400, 500, &rule), every(500, 528, 500), "up to the most");
        let alone = Window { start: 9_000, end: 9_004, marks: Marks::None };
        assert_eq!(ahead.missed(9_000, 4, &rule), alone);
    }

    #[test]
    fn without_read_ahead_what_is_asked_for_is_read() {
        let none = bounds(ReadAheadRule::OnDemand, 0, 4);
        let alone = Window { start: 0, end: 7, marks: Marks::None };
        assert_eq!(Ahead::default().missed(0, 7, &none), alone);
        let spec = HostSpec { read_ahead: Some(0), ..HostSpec::default() };
        assert_eq!(spec.bounds(1_000).wanted(1_000), 256, "in the longest requests");
    }
}
