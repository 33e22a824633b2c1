//! Writes through the page cache.

use std::ops::Range;

use raidlab_core::units::Nanos;

use super::cache::Page;
use super::files::File;
use super::spec::{BLOCK, PIECE};
use super::task::{Kind, Next, Stage, Sync, Task, Transfer};
use super::{Failure, Host, METADATA};

impl Host {
    /// Goes on with writes.
    pub(super) fn write(&mut self, id: u32, task: &mut Task) -> Next {
        let Task { process, kind: Kind::Write(transfer), requests, moved, .. } = task else {
            return Next::Wait;
        };
        self.write_on(id, *process, requests, transfer, moved)
    }

    /// The piece of writes that was copied, and the next.
    pub(super) fn write_on(
        &mut self,
        id: u32,
        process: u32,
        requests: &mut u32,
        transfer: &mut Transfer,
        moved: &mut u64,
    ) -> Next {
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize) else {
            return Next::Failed(Failure::NoFile);
        };
        let (file, is_sync) = (open.file, open.sync);
        if let Some(piece) = transfer.piece
            && transfer.sync.is_none()
        {
            let position = transfer.position();
            if let Err(failure) = self.put(file, position..position + piece.bytes) {
                return Next::Failed(failure);
            }
            if is_sync && piece.calls > 0 {
                transfer.sync = Some(Box::new(Sync::of(Some(file), true)));
            }
        }
        if let Some(sync) = &mut transfer.sync {
            let next = self.sync(id, process, requests, sync);
            if sync.stage != Stage::End {
                return next;
            }
            transfer.sync = None;
        }
        self.passed(id, transfer, moved, false);
        if transfer.times == 0 {
            return Next::Done;
        }
        let position = transfer.position();
        let most = if is_sync { 1 } else { u64::MAX };
        let (piece, begun) = transfer.cut(PIECE, u64::MAX, most);
        let pages = position / BLOCK..(position + piece.bytes).div_ceil(BLOCK);
        if self.cache.unwritten() + (pages.end - pages.start) > self.limits.dirty {
            self.back.throttled.push_back(id);
            return Next::Wait;
        }
        if self.journal.stalls(id) {
            return Next::Wait;
        }
        let bytes = position..position + piece.bytes;
        if let Some(page) = self.page_to_read(file, &bytes, &pages) {
            if self.cache.page(file, page) == Page::Absent {
                let pages = page..page + 1;
                if let Some(block) = self.fetch_exactly(process, file, pages) {
                    self.wait_for_page(id, METADATA, block);
                    return Next::Wait;
                }
            }
            self.wait_for_page(id, file, page);
            return Next::Wait;
        }
        let costs = &self.spec.costs;
        transfer.piece = Some(piece);
        let copies = costs.copy(piece.bytes);
        let (cost, user) = (Nanos(costs.call.0 * begun) + copies, costs.work_on(transfer, piece));
        Next::Compute { cost, user, copies, is_read: false }
    }

    /// A page that is written in part only and must be read first, for the rest of it.
    fn page_to_read(&self, file: u64, bytes: &Range<u64>, pages: &Range<u64>) -> Option<u64> {
        let of = self.files.get(&file)?;
        let ends = [(pages.start, bytes.start), (pages.end - 1, bytes.end)];
        let in_part = |(page, byte): (u64, u64)| {
            // The last page need not be read for what lies behind the end of the file.
            let all_behind =
                page == pages.end - 1 && bytes.end >= of.size && bytes.start <= page * BLOCK;
            (!byte.is_multiple_of(BLOCK)
                && !all_behind
                && page * BLOCK < of.size
                && of.place(page).is_some()
                && self.cache.page(file, page) != Page::Present)
                .then_some(page)
        };
        ends.into_iter().find_map(in_part)
    }

    /// Bytes of a file are in the page cache from now on and are to be written back.
    fn put(&mut self, number: u64, bytes: Range<u64>) -> Result<(), Failure> {
        let pages = bytes.start / BLOCK..bytes.end.div_ceil(BLOCK);
        let Some(file) = self.files.get(&number) else { return Err(Failure::NoFile) };
        if self.spec.filesystem.delayed_allocation {
            let new = |hole: Range<u64>| hole.end - hole.start - self.cache.dirty_in(number, hole);
            let wanted = file.holes(pages.clone()).map(new).sum();
            let fits = self.space.reserve(wanted)
                || self.give_back_all_kept() && self.space.reserve(wanted);
            if !fits {
                return Err(self.no_space());
            }
        } else {
            self.fill_holes(number, pages.clone())?;
        }
        if !self.prefills || self.spec.filesystem.delayed_allocation {
            self.cache.make_dirty(number, pages);
            self.note_dirty(number);
        }
        self.note_written(number, bytes.end);
        Ok(())
    }

    /// Gives all pages of a range a place that have none.
    pub(super) fn fill_holes(&mut self, number: u64, pages: Range<u64>) -> Result<(), Failure> {
        let mut from = pages.start;
        while let Some(file) = self.files.get(&number)
            && let Some(hole) = file.next_hole(from..pages.end)
        {
            from = hole.end;
            self.place(number, hole)?;
        }
        Ok(())
    }

    /// The metadata of a file after a write up to `end`: its length where it grew, and its times, which today are those
    /// of the last tick (`inode_set_ctime_current`, `ktime_get_coarse_real_ts64` of 6.12).
    pub(super) fn note_written(&mut self, number: u64, end: u64) {
        let is_of_today = self.spec.kernel.is_of_today();
        let tick = self.now.0 / (1_000_000_000 / u64::from(self.spec.hz)) + 1;
        let Some(file) = self.files.get_mut(&number) else { return };
        let has_grown = end > file.size;
        file.size = file.size.max(end);
        let is_same = std::mem::replace(&mut file.modified, tick) == tick;
        if has_grown || !is_same || !is_of_today {
            self.change_metadata(number, &[], has_grown);
        }
    }

    /// Whether blocks are unwritten until their data are there, and a change of metadata then makes them written:
    /// `dioread_nolock` of ext4, the default since 5.6 (`ext4_end_io_rsv_work`, fs/ext4/page-io.c).
    pub(super) fn converts_extents(&self) -> bool {
        self.spec.filesystem.delayed_allocation && self.spec.kernel.is_of_today()
    }

    pub(super) fn no_space(&self) -> Failure {
        Failure::NoSpace { of: self.space.blocks() * BLOCK }
    }

    /// Gives pages without a place one, in as few pieces as there are; counts as change of metadata.
    pub(super) fn place(&mut self, number: u64, pages: Range<u64>) -> Result<(), Failure> {
        let wanted = pages.end - pages.start;
        if wanted > self.space.available() && !self.has_room_kept(number, wanted) {
            return Err(self.no_space());
        }
        let mut page = pages.start;
        while page < pages.end {
            let mut changed = self.begin_piece(number, page);
            let wanted = self.piece_end(page, pages.end) - page;
            let Some((block, len)) = self.take_blocks(number, Some(page), wanted) else {
                if self.give_back_all_kept() {
                    continue;
                }
                return Err(self.no_space());
            };
            if let Some(file) = self.files.get_mut(&number) {
                file.map(page, block, len);
            }
            let bitmap = self.space.block_bitmap(block);
            if changed.is_empty() {
                self.change_metadata(number, &[bitmap], true);
            } else {
                changed.push(bitmap);
                self.change_metadata(number, &changed, true);
            }
            page += len;
        }
        // Today's ext4 writes to extents that are converted when the data are there; no commit waits for those.
        if let Some(file) = self.files.get(&number)
            && file.entries.is_none()
            && !self.converts_extents()
        {
            self.journal.ordered(number);
        }
        Ok(())
    }

    /// Whether there is room with what files keep for themselves; the file itself may have enough.
    fn has_room_kept(&mut self, number: u64, wanted: u64) -> bool {
        let kept = self.files.get(&number).map_or(0, |file| file.keeps_blocks());
        if kept >= wanted {
            return true;
        }
        self.give_back_all_kept() && wanted <= self.space.available()
    }

    /// Notes that a file has dirty pages.
    pub(super) fn note_dirty(&mut self, number: u64) {
        if self.files.get(&number).is_some_and(|file| file.dirtied.is_none()) {
            self.begin_age(number, self.now);
        }
    }

    /// Cuts a file, or lengthens it by a hole.
    pub(super) fn truncate(&mut self, number: u64, len: u64) -> Vec<u64> {
        let first = len.div_ceil(BLOCK);
        self.forget(number, first);
        let Some(mut file) = self.files.remove(&number) else { return Vec::new() };
        file.size = len;
        let bitmaps = self.cut(&mut file, first);
        if let Some(inode) = file.inode
            && first == 0
        {
            file.goal = self.space.data_start(inode.group);
        }
        self.files.insert(number, file);
        bitmaps
    }

    /// Drops pages from `first` on out of memory, and what was promised to them.
    pub(super) fn forget(&mut self, number: u64, first: u64) {
        let pages = self.files.get(&number).map_or(0, |file| file.size.div_ceil(BLOCK));
        if first >= pages {
            return;
        }
        if self.spec.filesystem.delayed_allocation && number != METADATA {
            let holes = self.files.get(&number).into_iter();
            let holes = holes.flat_map(|file| file.holes(first..pages));
            let promised = holes.map(|hole| self.cache.dirty_in(number, hole)).sum();
            self.space.release(promised);
        }
        self.cache.forget(number, first..u64::MAX);
        self.settle_dirty(number);
    }

    /// Gives pieces back; the bitmaps that change.
    pub(super) fn give_back(&mut self, freed: &[(u64, u64)]) -> Vec<u64> {
        for (block, len) in freed {
            self.space.free(*block, *len);
        }
        let mut bitmaps: Vec<u64> =
            freed.iter().map(|(block, _)| self.space.block_bitmap(*block)).collect();
        bitmaps.dedup();
        bitmaps
    }

    /// A file without names that nobody has open goes.
    pub(super) fn discard(&mut self, number: u64) {
        self.forget(number, 0);
        let Some(mut file) = self.files.remove(&number) else { return };
        let bitmaps = self.cut(&mut file, 0);
        self.join(&bitmaps);
        if let Some(inode) = file.inode {
            self.space.free_inode(inode, file.entries.is_some());
        }
        for (_, waiter) in std::mem::take(&mut file.waiters) {
            self.wake_waiter(waiter);
        }
    }

    /// A new file's entry.
    pub(super) fn new_file(&mut self, group: u64, is_directory: bool) -> Result<File, Failure> {
        let inode = self.space.take_inode(group, is_directory).ok_or(Failure::NoInodes)?;
        Ok(File::new(Some(inode), self.space.data_start(inode.group), is_directory))
    }
}
