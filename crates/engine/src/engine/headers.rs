//! Headers of md's logs of partial parity, each of which has all entries that the array asks for on a device at once;
//! blocks of its journal ([`journal`](super::journal)) take the same way.
//!
//! The array sends out the entries of a header in one input, and none for the same device before they are durable
//! (`Settings::log_header`). So those that have come when the array is drained are all of a header: they are written
//! as one, the partial parity of each behind it, and answered together. A header takes its turn among the other records
//! of its device. Tests: `tests/md_ppl.rs`.

use raidlab_core::MemberIndex;
use raidlab_core::contract::{IoId, IoOp, IoOutcome, Record, SegmentList};

use super::Engine;
use super::io::InFlight;
use super::journal::Progress;
use crate::buffers::Piece;
use crate::member::{Member, Submission};
use crate::metadata;

/// Headers that are put together.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// Entries were asked for since the array was drained.
    pub(super) gathered: bool,
    /// Those of one header, and what follows it.
    pieces: Vec<Piece>,
    /// Entries of the journal that are being written.
    pub(super) progress: Vec<Progress>,
}

/// Where logs lie, which the array has behind the data of a member.
#[derive(Debug)]
pub(super) struct LogPlaces {
    /// From this sector on, as the array counts; none where they are behind the data, or there are none.
    pub(super) from: u64,
    /// Where that is on each member.
    pub(super) starts: Vec<u64>,
}

impl Default for LogPlaces {
    fn default() -> Self {
        Self { from: u64::MAX, starts: Vec::new() }
    }
}

impl LogPlaces {
    /// What is added to a sector of the log as the array counts; wraps.
    #[cold]
    pub(super) fn start(&self, member: MemberIndex) -> u64 {
        self.starts.get(member.at()).map_or(0, |start| start.wrapping_sub(self.from))
    }
}

impl Engine {
    /// Whether a record is an entry of a header; it is kept until all of them have come.
    pub(super) fn gathers(&mut self, io: IoId, device: MemberIndex, record: &Record) -> bool {
        let gathers = matches!(record, Record::PartialParity { .. } | Record::JournalEntry { .. });
        if gathers {
            self.turns[device.at()].entries.push(io);
            self.headers.gathered = true;
        }
        gathers
    }

    /// The array is drained: the entries that have come are whole headers.
    #[cold]
    pub(super) fn send_headers(&mut self) {
        self.headers.gathered = false;
        for device in 0..self.turns.len() {
            let turn = &self.turns[device];
            if turn.busy.is_none() && !turn.entries.is_empty() {
                self.send_header(MemberIndex(device as u16));
            }
        }
    }

    /// Writes the header of a device whose turn it is.
    pub(super) fn send_header(&mut self, device: MemberIndex) {
        let turn = &mut self.turns[device.at()];
        std::mem::swap(&mut turn.entries, &mut turn.header);
        if self.is_log_device(device) {
            self.begin_blocks(device);
        }
        self.send_header_part(device);
    }

    /// Writes what comes next of a header; false when nobody wants it any more.
    pub(super) fn send_header_part(&mut self, device: MemberIndex) -> bool {
        let mut pieces = std::mem::take(&mut self.headers.pieces);
        pieces.clear();
        let begun = match self.is_log_device(device) {
            true => self.put_block(device, &mut pieces),
            false => self.put_header(device, &mut pieces),
        };
        if let Some(submission) = &begun {
            self.write_header(device, submission, &pieces);
        }
        self.headers.pieces = pieces;
        begun.is_some()
    }

    /// The bytes of a header, and the I/O that writes them with what follows; `None` when nobody wants it any more, or
    /// it was answered.
    fn put_header(&mut self, device: MemberIndex, pieces: &mut Vec<Piece>) -> Option<Submission> {
        let turn = &mut self.turns[device.at()];
        // Its own place is filled in below.
        pieces.push(Piece { start: std::ptr::null_mut(), len: 0 });
        let (array, buffers) = (&self.array, &self.buffers);
        turn.header.retain(|io| array.meta(*io).is_some());
        (turn.busy, turn.more) = (turn.header.first().copied(), false);
        let first = turn.busy?;
        let metadata = self.metadata.as_mut()?;
        metadata.entries.clear();
        for meta in turn.header.iter().filter_map(|io| array.meta(*io)) {
            let before = pieces.len();
            pieces.extend(array.segments(&meta.payload).filter_map(|one| buffers.piece(one)));
            let mut payload = pieces[before..].iter().map(|piece| {
                // SAFETY: the core lends the payload to this I/O; nobody writes it meanwhile.
                unsafe { std::slice::from_raw_parts(piece.start.cast_const(), piece.len) }
            });
            metadata.entries.extend(metadata.records.header_entry(meta, &mut payload));
        }
        let is_whole = metadata.entries.len() == turn.header.len();
        let Some((block, head, put)) = metadata.begin_header(device).filter(|_| is_whole) else {
            self.note_broken("a header that has no room");
            self.record_done(first, device, IoOutcome::Gone);
            return None;
        };
        let turn = &mut self.turns[device.at()];
        (turn.block, turn.more) = (Some(block), put.more);
        pieces[0] = head;
        if put.more {
            // That the log comes around, and nothing else.
            pieces.truncate(1);
        }
        let payload: usize = pieces[1..].iter().map(|piece| piece.len).sum();
        let len = metadata::sectors(head.len + payload, 0);
        Some(Submission { op: IoOp::Write, at: put.at, len, fua: true, flush_first: false })
    }

    fn write_header(&mut self, device: MemberIndex, submission: &Submission, pieces: &[Piece]) {
        let turn = &mut self.turns[device.at()];
        let (Some(io), block) = (turn.busy, turn.block.take()) else { return };
        let refused = match self.doubts {
            0 => None,
            _ => self.doubt(device, IoOp::Write),
        };
        if let Some(outcome) = refused {
            self.end_block(block);
            return self.record_done(io, device, outcome);
        }
        self.totals.count(submission.op, submission.len);
        match &mut self.members[device.at()] {
            Member::Memory(member) if member.is_stalled() => self.stalled.push((io, block)),
            Member::Memory(member) => {
                // SAFETY: the block is this I/O's, the payloads are lent to it until it is completed, and
                // all are apart from members.
                let outcome = unsafe { member.carry_out(submission, pieces.iter().copied()) };
                self.end_block(block);
                self.record_done(io, device, outcome);
            }
            Member::File(_) | Member::Own(_) => {
                let segments = SegmentList::EMPTY;
                let (member, op, record) = (device, IoOp::Write, true);
                let (abandoned, used) = (false, true);
                let sent = InFlight { io, member, op, segments, record, block, abandoned, used };
                self.queue(sent, *submission, pieces);
            }
            Member::Null(_) | Member::Absent => {
                self.end_block(block);
                self.record_done(io, device, IoOutcome::Gone);
            }
        }
    }

    /// Answers all entries of the header that has been written; false when it was another record's turn.
    pub(super) fn header_done(&mut self, device: MemberIndex, outcome: IoOutcome) -> bool {
        let mut header = std::mem::take(&mut self.turns[device.at()].header);
        let any = !header.is_empty();
        if any
            && outcome != IoOutcome::Ok
            && let Some(metadata) = &mut self.metadata
        {
            // It is written again where it was to stand.
            metadata.records.log_failed(device);
        }
        for io in header.drain(..) {
            self.complete(io, outcome);
        }
        self.turns[device.at()].header = header;
        any
    }
}
