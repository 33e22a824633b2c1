//! Copies by reads and writes through the page cache: what is read in one piece is written before more is
//! read. A process that rewrites a file block by block does just that with one block at a time; here it
//! is as many blocks as memory holds of the place, at most a piece.

use raidlab_core::units::Nanos;

use super::spec::PIECE;
use super::task::{Copying, Kind, Next, Task, Transfer};
use super::{Failure, Host};

impl Host {
    /// Goes on with a copy.
    pub(super) fn copy(&mut self, id: u32, task: &mut Task) -> Next {
        let Task { process, kind: Kind::Copy(copying), requests, moved, .. } = task else {
            return Next::Wait;
        };
        let Copying { from, source, to } = &mut **copying;
        if self.is_direct(from) || self.is_direct(to) {
            return Next::Failed(Failure::Direct);
        }
        loop {
            if to.times > 0 {
                match self.write_on(id, *process, requests, to, moved) {
                    Next::Done => {}
                    next => return next,
                }
            }
            let mut read = 0;
            match self.passed(id, from, &mut read, true) {
                // The last read may be a shorter one.
                Some((calls, bytes)) => (to.times, to.len) = (calls, bytes / calls),
                None => {
                    return match source {
                        Some(size) => self.read_memory(from, *size),
                        None => self.read_on(id, *process, from),
                    };
                }
            }
        }
    }

    fn is_direct(&self, transfer: &Transfer) -> bool {
        matches!(self.open.get(transfer.handle.0 as usize), Some(Some(open)) if open.direct)
    }

    /// The next piece of reads of what is in memory anyway.
    fn read_memory(&self, transfer: &mut Transfer, size: u64) -> Next {
        let position = transfer.position();
        if transfer.times == 0 || position >= size {
            return Next::Done;
        }
        let (piece, begun) = transfer.cut(PIECE.min(size - position), size, u64::MAX);
        let costs = &self.spec.costs;
        transfer.piece = Some(piece);
        let cost = Nanos(costs.call.0 * begun) + costs.copy(piece.bytes);
        Next::Compute { cost, user: Nanos::ZERO, copies: Nanos::ZERO, is_read: true }
    }
}
