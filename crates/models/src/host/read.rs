//! Reads through the page cache, and read-ahead.
//!
//! Read-ahead follows the rules of Linux since 2.6.23 ("on-demand"): F. Wu, H. Xi and C. Xu, "On the
//! design of a new Linux readahead framework", ACM SIGOPS Operating Systems Review 42 (2008), 5. A miss
//! that goes on where the last read ended opens a window, twice or four times the read; the window
//! grows by two or four up to its most; a mark in it starts the next one before it is needed. Since
//! 4.10 a read longer than the most is read in requests as long as the device takes.

use std::ops::Range;

use raidlab_core::contract::RequestOp;
use raidlab_core::units::Nanos;

use super::cache::Page;
use super::spec::{BLOCK, HostSpec, PIECE};
use super::task::{Kind, Next, Task, Transfer};
use super::{Failure, Host, HostOutput, Purpose, TaskId};

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
}

/// A window to be read: its pages, and which of them gets the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    pages: Range<u64>,
    mark: Option<u64>,
}

impl Ahead {
    fn window(&self) -> Window {
        let end = self.start + self.size;
        let mark = (self.behind > 0).then(|| end - self.behind);
        Window { pages: self.start..end, mark }
    }

    fn open(&mut self, page: u64, wanted: u64, most: u64, least: u64) {
        let first = wanted.next_power_of_two();
        let size = if first <= most / 32 {
            first * 4
        } else if first <= most / 4 {
            first * 2
        } else {
            most
        };
        self.start = page;
        self.size = size.max(least.min(most)).max(1);
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
    fn missed(&mut self, page: u64, wanted: u64, most: u64, least: u64) -> Window {
        let goes_on = self.size > 0
            && (page == self.start + self.size || page == self.start + self.size - self.behind);
        if page > 0 && goes_on {
            self.grow(most);
        } else if page == 0 || page == self.previous || page + 1 == self.previous || wanted > most {
            self.open(page, wanted, most, least);
        } else {
            // At random: what is asked for and no more, and no window.
            return Window { pages: page..page + wanted, mark: None };
        }
        self.window()
    }

    /// A reader came to a mark; `next` is the first page behind it that is not in memory.
    fn marked(&mut self, page: u64, next: u64, most: u64) -> Window {
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
}

impl HostSpec {
    /// The most pages of a window for a read of `wanted`.
    fn window(&self, wanted: u64) -> u64 {
        let (most, request) = (self.read_ahead / BLOCK, self.longest_request / BLOCK);
        if wanted > most { most.max(wanted.min(request)) } else { most }.max(1)
    }
}

impl Host {
    /// Goes on with reads.
    pub(super) fn read(&mut self, id: u32, task: &mut Task) -> Next {
        let Kind::Read(transfer) = &mut task.kind else { return Next::Wait };
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize).copied() else {
            return Next::Failed(Failure::NoFile);
        };
        self.passed(id, transfer, &mut task.moved);
        let size = self.files.get(&open.file).map_or(0, |file| file.size);
        let position = transfer.position();
        if transfer.times == 0 || position >= size {
            return Next::Done;
        }
        let page = position / BLOCK;
        let end = (transfer.at + transfer.len).min(size);
        loop {
            match self.cache.page(open.file, page) {
                Page::Present => break,
                Page::Reading => {
                    self.wait_for_page(id, open.file, page);
                    return Next::Wait;
                }
                Page::Absent => {
                    self.miss(task.process, transfer, page, end.div_ceil(BLOCK) - page);
                }
            }
        }
        if self.cache.take_mark(open.file, page) {
            self.go_ahead(task.process, transfer, page);
        }
        let there = self.cache.present(open.file, page, PIECE / BLOCK + 1);
        let most = ((page + there) * BLOCK).min(size) - position;
        let (piece, begun) = transfer.cut(most.min(PIECE), size, u64::MAX);
        self.cache.touch(open.file, page..(position + piece.bytes).div_ceil(BLOCK));
        if let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) {
            open.ahead.previous = (position + piece.bytes).div_ceil(BLOCK);
        }
        let costs = &self.spec.costs;
        let copy = if transfer.copies { costs.copy(piece.bytes) } else { Nanos::ZERO };
        transfer.piece = Some(piece);
        Next::Compute(Nanos(costs.call.0 * begun) + copy)
    }

    /// A piece that was copied is behind.
    pub(super) fn passed(&mut self, id: u32, transfer: &mut Transfer, moved: &mut u64) {
        let Some(piece) = transfer.piece.take() else { return };
        *moved += piece.bytes;
        let bytes = transfer.passed(piece);
        if piece.calls > 0 {
            let task = TaskId(id);
            self.outputs.push_back(HostOutput::Moved { task, calls: piece.calls, bytes });
        }
    }

    /// Reads a window that begins with a page that is not there.
    fn miss(&mut self, process: u32, transfer: &Transfer, page: u64, wanted: u64) {
        let (most, least) = (self.spec.window(wanted), self.spec.read_ahead_start / BLOCK);
        let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) else { return };
        let (file, wanted) = (open.file, wanted.min(most));
        let window = open.ahead.missed(page, wanted, most, least);
        self.fetch(process, file, &window);
        // A window that was lost from memory may lie elsewhere.
        if self.cache.page(file, page) == Page::Absent {
            self.fetch(process, file, &Window { pages: page..page + 1, mark: None });
        }
    }

    /// Reads the next window when a reader comes to the mark in this one.
    fn go_ahead(&mut self, process: u32, transfer: &Transfer, page: u64) {
        let wanted = transfer.len.div_ceil(BLOCK);
        let most = self.spec.window(wanted);
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize) else { return };
        let (file, mut next) = (open.file, page);
        while next < page + most && self.cache.page(file, next) != Page::Absent {
            next += 1;
        }
        let Some(Some(open)) = self.open.get_mut(transfer.handle.0 as usize) else { return };
        let window = open.ahead.marked(page, next, most);
        self.fetch(process, file, &window);
    }

    /// Asks the array for the pages of a window that are not in memory; holes are there at once.
    fn fetch(&mut self, process: u32, file: u64, window: &Window) {
        let pages = match self.files.get(&file) {
            Some(of) if file != super::METADATA => of.size.div_ceil(BLOCK),
            Some(_) => self.space.blocks(),
            None => return,
        };
        let (mut page, end) = (window.pages.start, window.pages.end.min(pages));
        while page < end {
            let absent = self.cache.absent(file, page, end - page);
            if absent == 0 {
                page += 1;
                continue;
            }
            let longest = absent.min(self.spec.longest_request / BLOCK);
            let Some(of) = self.files.get(&file) else { return };
            let len = match of.place(page) {
                Some((block, len)) => {
                    let len = len.min(longest);
                    let pages = page..page + len;
                    let io = Self::blocks(process, RequestOp::Read, block, len);
                    let slot = self.send(io, Purpose::Read { file, pages: pages.clone() });
                    self.reading.insert((file, page), slot);
                    self.cache.start_reading(file, pages, window.mark);
                    len
                }
                None => {
                    let len = of.hole(page, absent);
                    self.cache.fill(file, page..page + len);
                    len
                }
            };
            page += len;
        }
    }

    /// Asks for pages without read-ahead.
    pub(super) fn fetch_exactly(&mut self, process: u32, file: u64, pages: Range<u64>) {
        self.fetch(process, file, &Window { pages, mark: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_as_published() {
        let mut ahead = Ahead::default();
        // Reads of a page with windows of 32 pages at most: 4 (1 x 4), 8, 16, 32, 32.
        let window = |pages, mark| Window { pages, mark: Some(mark) };
        assert_eq!(ahead.missed(0, 1, 32, 0), window(0..4, 1));
        assert_eq!(ahead.marked(1, 4, 32), window(4..12, 4));
        assert_eq!(ahead.marked(4, 12, 32), window(12..28, 12));
        assert_eq!(ahead.marked(12, 28, 32), window(28..60, 28));
        assert_eq!(ahead.marked(28, 60, 32), window(60..92, 60));
        let before = ahead;
        let alone = Window { pages: 1_000..1_002, mark: None };
        assert_eq!((ahead.missed(1_000, 2, 32, 0), ahead), (alone, before), "at random: no window");
        assert_eq!(ahead.missed(92, 1, 32, 0), window(92..124, 92), "and on");
        assert_eq!(Ahead::default().missed(0, 32, 32, 0), window(0..32, 0), "a read of a window");
        assert_eq!(
            Ahead::default().missed(0, 1, 32, 16),
            window(0..16, 1),
            "begins with the least"
        );
    }
}
