//! Writing records of metadata: the bytes of each, where it goes, and in which order.
//!
//! In a format where two records change the same bytes of a device, as the bits of md's bitmap lie in one sector,
//! those of a device are written one after another: each is put down when the one before has been answered, so that
//! none takes back what another one set. A record of several parts is answered with its last. Tests: `tests/md.rs`.

use std::collections::VecDeque;

use raidlab_core::contract::{IoId, IoOp, IoOutcome, MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{MemberIndex, Sector};

use super::Engine;
use super::io::InFlight;
use crate::buffers::Piece;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Member, Submission};
use crate::metadata::{self, BlockId};

/// The records of a device that are written one after another.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The one that is being written.
    pub(super) busy: Option<IoId>,
    /// Which part of it, and whether another one follows.
    part: u32,
    pub(super) more: bool,
    waiting: VecDeque<IoId>,
    /// Entries of the header that is written next.
    pub(super) entries: Vec<IoId>,
    /// Those of the header that is being written; none while it is another record's turn.
    pub(super) header: Vec<IoId>,
    /// Its block, until it is on its way.
    pub(super) block: Option<BlockId>,
}

impl Engine {
    /// Turns a record into bytes and writes it.
    pub(super) fn meta_io(&mut self, io: IoId) {
        // `None`: no longer wanted.
        let Some(meta) = self.array.meta(io).copied() else { return };
        let in_turn = self.metadata.as_ref().is_some_and(|one| one.form.format().in_turn());
        if in_turn {
            if self.gathers(io, meta.member, &meta.record) {
                return;
            }
            let turn = &mut self.turns[meta.member.at()];
            if turn.busy.is_some() {
                return turn.waiting.push_back(io);
            }
            (turn.busy, turn.part) = (Some(io), 0);
        }
        self.send_record(io, &meta);
    }

    /// A record, or a part of it, has been written or not.
    pub(super) fn record_done(&mut self, io: IoId, member: MemberIndex, outcome: IoOutcome) {
        let turn = &mut self.turns[member.at()];
        if turn.busy != Some(io) {
            return self.complete(io, outcome);
        }
        if outcome == IoOutcome::Ok && turn.more {
            turn.part += 1;
            if !turn.header.is_empty() {
                if self.send_header_part(member) {
                    return;
                }
            } else if let Some(meta) = self.array.meta(io).copied() {
                return self.send_record(io, &meta);
            }
        }
        if !self.header_done(member, outcome) {
            if outcome != IoOutcome::Ok
                && let Some(metadata) = &mut self.metadata
            {
                metadata.records.record_failed(member);
            }
            self.complete(io, outcome);
        }
        self.turns[member.at()].busy = None;
        while let Some(next) = self.turns[member.at()].waiting.pop_front() {
            let Some(meta) = self.array.meta(next).copied() else { continue };
            let turn = &mut self.turns[member.at()];
            (turn.busy, turn.part) = (Some(next), 0);
            return self.send_record(next, &meta);
        }
        if !self.turns[member.at()].entries.is_empty() {
            self.send_header(member);
        }
    }

    /// Takes a record back that waits for others; whether there was such a one.
    pub(super) fn forget_waiting(&mut self, io: IoId) -> bool {
        let position = |turn: &Turn| turn.waiting.iter().position(|one| *one == io);
        for turn in &mut self.turns {
            if let Some(place) = position(turn) {
                turn.waiting.remove(place);
                return true;
            }
            if let Some(place) = turn.entries.iter().position(|one| *one == io) {
                turn.entries.remove(place);
                return true;
            }
        }
        false
    }

    fn send_record(&mut self, io: IoId, meta: &MetaIo) {
        if let Member::Null(_) = self.members[meta.member.at()] {
            return self.record_done(io, meta.member, IoOutcome::Ok);
        }
        if self.doubts > 0
            && let Some(outcome) = self.doubt(meta.member, IoOp::Write)
        {
            return self.record_done(io, meta.member, outcome);
        }
        let Some((block, head, submission)) = self.encode(meta) else {
            return self.broken(io, "metadata that has no room");
        };
        self.totals.count(submission.op, submission.len);
        match &mut self.members[meta.member.at()] {
            Member::Memory(member) => {
                if member.is_stalled() {
                    self.stalled.push((io, Some(block)));
                    return;
                }
                let buffers = &self.buffers;
                let payload = self.array.segments(&meta.payload);
                let pieces = std::iter::once(head)
                    .chain(payload.filter_map(|segment| buffers.piece(segment)));
                // SAFETY: the block is this I/O's, the payload is lent to it until it is completed, and
                // both are apart from members.
                let outcome = unsafe { member.carry_out(&submission, pieces) };
                self.end_block(Some(block));
                self.record_done(io, meta.member, outcome);
            }
            Member::File(_) | Member::Own(_) => {
                let sent = InFlight {
                    io,
                    member: meta.member,
                    op: IoOp::Write,
                    segments: meta.payload,
                    record: true,
                    block: Some(block),
                    abandoned: false,
                    used: true,
                };
                self.queue(sent, submission, &[head]);
            }
            Member::Null(_) | Member::Absent => {
                self.end_block(Some(block));
                self.record_done(io, meta.member, IoOutcome::Gone);
            }
        }
    }

    /// The block of a record, sealed, and the I/O that writes it with its payload.
    fn encode(&mut self, meta: &MetaIo) -> Option<(BlockId, Piece, Submission)> {
        let metadata = self.metadata.as_mut()?;
        let (array, buffers) = (&self.array, &self.buffers);
        let pieces = || array.segments(&meta.payload).filter_map(|one| buffers.piece(one));
        let sectors: u64 = array.segments(&meta.payload).map(|one| u64::from(one.len)).sum();
        let payload = pieces().map(|piece| {
            // SAFETY: the core lends the payload to this I/O; nobody writes it meanwhile.
            unsafe { std::slice::from_raw_parts(piece.start.cast_const(), piece.len) }
        });
        let turn = &mut self.turns[meta.member.at()];
        let part = if turn.busy.is_some() { turn.part } else { 0 };
        if matches!(meta.record, Record::Superblock(_))
            && let Some(array) = array.flat()
            && part == 0
            && array.keeps_bad_blocks()
            && !metadata.records.list_bad_blocks(meta.member, array.listed_blocks(meta.member))
        {
            return None;
        }
        if let (Record::BitmapPage { .. }, Some(array)) = (meta.record, array.flat()) {
            metadata.records.put_beside(meta.member, array.pages_beside(meta));
        }
        let (block, head, put) = metadata.begin(meta, payload, (part, sectors as u32))?;
        turn.more = put.more;
        let len = metadata::sectors(put.bytes, sectors);
        let (fua, flush_first) = (meta.fua, meta.flush && part == 0);
        Some((block, head, Submission { op: IoOp::Write, at: put.at, len, fua, flush_first }))
    }

    pub(super) fn no_meta() -> MetaIo {
        let record = Record::Superblock(Superblock::default());
        MetaIo {
            member: MemberIndex(0),
            record,
            at: Sector(0),
            payload: SegmentList::EMPTY,
            flush: false,
            fua: false,
        }
    }

    /// Writes a record of one part and without payload on the calling thread.
    pub(super) fn write_record_now(&mut self, meta: &MetaIo) -> Result<(), EngineError> {
        let Some((block, head, submission)) = self.encode(meta) else { return Ok(()) };
        let outcome = self.members[meta.member.at()].write_now(&submission, head);
        self.end_block(Some(block));
        if outcome == IoOutcome::Ok {
            return Ok(());
        }
        let kind = match outcome {
            IoOutcome::NoSpace => EngineErrorKind::NoRoom,
            _ => EngineErrorKind::Member,
        };
        let reason = format!("member {} answered {outcome:?}", meta.member);
        let error = EngineError::new(kind, "write a superblock", reason);
        Err(match &self.members[meta.member.at()] {
            Member::File(file) => error.at_path(file.path()),
            _ => error,
        })
    }
}
