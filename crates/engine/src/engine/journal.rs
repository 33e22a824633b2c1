//! Blocks of md's journal, which have the entries that the array asks for at once, row by row.
//!
//! An entry of the array may need several blocks, and a block may have rows of several entries. Each is a write with
//! its pages that is durable before the next goes out; entries are answered when all are. So no answer is ever behind
//! a block that is torn. Tests: `tests/md_journal.rs`, `tests/md_journal_guest.rs`.

use raidlab_core::MemberIndex;
use raidlab_core::contract::{IoId, IoOp, IoOutcome};
use raidlab_metadata::md::journal::PAGE;

use super::Engine;
use crate::buffers::Piece;
use crate::member::Submission;
use crate::metadata;

/// Bytes of a page.
const BYTES: usize = PAGE as usize * 512;
/// Pieces that a block has besides its last row.
const MOST_PIECES: usize = 512;

impl Engine {
    /// Whether a device is that of the journal.
    pub(super) fn is_log_device(&self, device: MemberIndex) -> bool {
        device.at() == 2 * self.count
    }

    /// The entries of a turn are about to be written.
    pub(super) fn begin_blocks(&mut self, device: MemberIndex) {
        let entries = &self.turns[device.at()].header;
        self.headers.progress.clear();
        self.headers.progress.extend(entries.iter().map(|io| (*io, 0)));
    }

    /// The next block, and the I/O that writes it with its pages; `None` when nobody wants more, or it was answered.
    pub(super) fn put_block(
        &mut self,
        device: MemberIndex,
        pieces: &mut Vec<Piece>,
    ) -> Option<Submission> {
        // Its own place is filled in below.
        pieces.push(Piece { start: std::ptr::null_mut(), len: 0 });
        let turn = &mut self.turns[device.at()];
        turn.header.retain(|io| self.array.meta(*io).is_some());
        (turn.busy, turn.more) = (turn.header.first().copied(), false);
        let first = turn.busy?;
        let left = self.gather_rows(device, pieces);
        let put = left.and_then(|left| Some((left, self.metadata.as_mut()?.begin_block(device)?)));
        let Some((left, (block, head, put))) = put else {
            self.note_broken("a block of the journal that has no room");
            self.record_done(first, device, IoOutcome::Gone);
            return None;
        };
        let turn = &mut self.turns[device.at()];
        (turn.block, turn.more) = (Some(block), left);
        pieces[0] = head;
        let payload: u64 = pieces[1..].iter().map(|piece| piece.len as u64 / 512).sum();
        let len = metadata::sectors(head.len, payload);
        Some(Submission { op: IoOp::Write, at: put.at, len, fua: true, flush_first: false })
    }

    /// Adds rows to a block as long as it has room, and their pages; whether rows are left. `None`: what is asked for
    /// is no entry of a journal.
    fn gather_rows(&mut self, device: MemberIndex, pieces: &mut Vec<Piece>) -> Option<bool> {
        let (array, buffers) = (&self.array, &self.buffers);
        let log = self.metadata.as_mut()?.records.journal(device)?;
        log.begin();
        let (mut sums, mut own) = (Vec::new(), Vec::new());
        for (io, done) in &mut self.headers.progress {
            let Some(meta) = array.meta(*io) else { continue };
            let rows = log.rows(&meta.record)?;
            own.clear();
            own.extend(array.segments(&meta.payload).filter_map(|one| buffers.piece(one)));
            while *done < rows.count() {
                if !log.takes(&rows) || pieces.len() > MOST_PIECES {
                    return Some(true);
                }
                sums.clear();
                for page in rows.pages(*done) {
                    let from = pieces.len();
                    add_page(&own, page as usize * 512, pieces)?;
                    let bytes = pieces[from..].iter().map(|piece| {
                        // SAFETY: the core lends the payload to this I/O; nobody writes it meanwhile.
                        unsafe { std::slice::from_raw_parts(piece.start.cast_const(), piece.len) }
                    });
                    sums.push(log.sum(bytes));
                }
                log.add(&rows, *done, &sums);
                *done += 1;
            }
        }
        Some(false)
    }
}

/// Adds the pieces of a page that begins so many bytes behind the start of others; `None` when it is not all there.
fn add_page(all: &[Piece], from: usize, into: &mut Vec<Piece>) -> Option<()> {
    let (mut skip, mut left) = (from, BYTES);
    for piece in all {
        if skip >= piece.len {
            skip -= piece.len;
            continue;
        }
        let len = left.min(piece.len - skip);
        into.push(Piece { start: piece.start.wrapping_add(skip), len });
        (skip, left) = (0, left - len);
        if left == 0 {
            return Some(());
        }
    }
    None
}

/// An entry that is being written, and how many of its rows are in blocks.
pub(super) type Progress = (IoId, u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_of_what_lies_there() {
        let mut bytes = vec![0_u8; 4 * BYTES];
        let start = bytes.as_mut_ptr();
        let piece = |at: usize, len| Piece { start: start.wrapping_add(at), len };
        let all = [piece(0, 512), piece(1024, BYTES), piece(8192, BYTES)];
        let of = |from| {
            let mut into = Vec::new();
            add_page(&all, from, &mut into)?;
            Some(into.iter().map(|one| (one.start as usize - start as usize, one.len)).collect())
        };
        let expected: Option<Vec<(usize, usize)>> = Some(vec![(0, 512), (1024, 3584)]);
        assert_eq!(of(0), expected);
        assert_eq!(of(512), Some(vec![(1024, BYTES)]));
        assert_eq!(of(BYTES), Some(vec![(1024 + 3584, 512), (8192, 3584)]));
        assert_eq!(of(BYTES + 1024), None);
    }
}
