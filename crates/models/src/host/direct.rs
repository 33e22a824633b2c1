//! Reads and writes past the page cache.

use std::ops::Range;

use raidlab_core::contract::IoOp;
use raidlab_core::units::Nanos;
use raidlab_core::units::{Sector, Sectors};

use super::files::Waiter;
use super::spec::BLOCK;
use super::task::{Kind, Next, Piece, Stage, Sync, Task, Transfer};
use super::writeback::Work;
use super::{BlockId, BlockIo, Failure, Host, METADATA, Purpose};

impl Host {
    /// Goes on with direct reads and writes: one call after the other.
    pub(super) fn direct(&mut self, id: u32, task: &mut Task) -> Next {
        let (Kind::Read(transfer) | Kind::Write(transfer)) = &mut task.kind else {
            return Next::Wait;
        };
        let mut transfer = transfer.clone();
        let next = self.direct_step(id, task, &mut transfer);
        if let Kind::Read(place) | Kind::Write(place) = &mut task.kind {
            *place = transfer;
        }
        next
    }

    fn direct_step(&mut self, id: u32, task: &mut Task, transfer: &mut Transfer) -> Next {
        let Some(Some(open)) = self.open.get(transfer.handle.0 as usize).copied() else {
            return Next::Failed(Failure::NoFile);
        };
        let writes = matches!(task.kind, Kind::Write(_));
        if task.requests > 0 && transfer.sync.is_none() {
            return Next::Wait;
        }
        if let Some(piece) = transfer.piece
            && transfer.sync.is_none()
            && writes
        {
            self.note_written(open.file, transfer.at + piece.bytes);
            if open.sync {
                transfer.sync = Some(Box::new(Sync::of(Some(open.file), true)));
            }
        }
        if let Some(sync) = &mut transfer.sync {
            let next = self.sync(id, task.process, &mut task.requests, sync);
            if sync.stage != Stage::End {
                return next;
            }
            transfer.sync = None;
        }
        self.passed(id, transfer, &mut task.moved, !writes);
        let size = self.files.get(&open.file).map_or(0, |file| file.size);
        if transfer.times == 0 || (!writes && transfer.at >= size) {
            return Next::Done;
        }
        let (at, len) = (transfer.at, transfer.len);
        if !at.is_multiple_of(512) || !len.is_multiple_of(512) {
            return Next::Failed(Failure::Unaligned);
        }
        // What is dirty of the file comes first, so that nothing newer is passed by.
        if self.back.has_work(Waiter::Task(id)) {
            return Next::Wait;
        }
        if self.files.get(&open.file).is_some_and(|file| file.dirtied.is_some()) {
            let (file, owner) = (open.file, Some(Waiter::Task(id)));
            self.back.ask(Work { file, pages: 0..u64::MAX, owner, process: task.process });
            return Next::Wait;
        }
        let bytes = if writes { len } else { len.min(size - at) };
        let pages = at / BLOCK..(at + bytes).div_ceil(BLOCK);
        if self.is_under_way(open.file) && self.wait_for_writes(Waiter::Task(id), open.file) {
            return Next::Wait;
        }
        if writes && let Err(failure) = self.fill_holes(open.file, pages.clone()) {
            return Next::Failed(failure);
        }
        if let Some(block) = self.missing_pointers_of(task.process, open.file, pages.clone()) {
            self.wait_for_page(id, METADATA, block);
            return Next::Wait;
        }
        if writes {
            self.cache.forget(open.file, pages);
        }
        transfer.piece = Some(Piece { bytes, calls: 1 });
        let op = if writes { IoOp::Write } else { IoOp::Read };
        self.send_direct(id, task, open.file, op, at..at + bytes);
        if task.requests == 0 {
            // A hole: nothing to be read.
            let cost = self.spec.costs.call;
            let (user, copies) = (Nanos::ZERO, Nanos::ZERO);
            return Next::Compute { cost, user, copies, is_read: !writes };
        }
        Next::Wait
    }

    /// The first indirect block of pages that is not in memory; asks for it.
    fn missing_pointers_of(&mut self, process: u32, file: u64, pages: Range<u64>) -> Option<u64> {
        let each = self.pointers?.each;
        let mut page = pages.start;
        while page < pages.end {
            if let Some(block) = self.missing_pointers(process, file, page) {
                return Some(block);
            }
            page += each;
        }
        self.missing_pointers(process, file, pages.end - 1)
    }

    fn is_under_way(&self, file: u64) -> bool {
        self.files.get(&file).is_some_and(|file| !file.in_flight.is_empty())
    }

    /// Sends the requests of one call; holes have none.
    fn send_direct(&mut self, id: u32, task: &mut Task, file: u64, op: IoOp, all: Range<u64>) {
        let end = all.end.next_multiple_of(512);
        let mut at = all.start;
        while at < end {
            let Some(of) = self.files.get(&file) else { return };
            let page = at / BLOCK;
            let Some((block, pages)) = of.place(page) else {
                at = (page + of.hole(page, end.div_ceil(BLOCK) - page)) * BLOCK;
                continue;
            };
            let into = at % BLOCK;
            let len = (end - at).min(pages * BLOCK - into).min(self.spec.longest_request);
            let io = BlockIo {
                id: BlockId(0),
                process: task.process,
                op,
                at: Sector((block * BLOCK + into) / 512),
                len: Sectors(len / 512),
                fua: false,
                write_back: false,
            };
            task.requests += 1;
            self.send(io, Purpose::Task(id));
            at += len;
        }
    }
}
