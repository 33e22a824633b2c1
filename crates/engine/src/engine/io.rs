//! Carrying out member and metadata I/O: at once, on threads, and giving up what takes too long.
//!
//! Fault model: a system call on a member may hang for ever. Why it is safe: where a deadline is set,
//! threads work on memory of their own, which is copied to or from the buffers of the request by the loop
//! alone; an I/O that is given up keeps that memory until its thread comes back, and a late answer is
//! thrown away. A change that was given up may still land, so nothing is changed behind it on its device, should
//! that stay in service; and where one fails late, what was written before it may be lost, which the system tells
//! once: the device answers nothing any more. Tests: `a_member_that_hangs_is_given_up`,
//! `no_write_passes_one_that_was_given_up`, `a_flush_that_failed_late_is_not_made_good_by_the_next`.

use std::io;
use std::time::Duration;

use raidlab_core::contract::{IoId, IoOp, IoOutcome, MemberIo, SegmentList};
use raidlab_core::{MemberIndex, Sector, Sectors};

use super::{Engine, RUN, Recorded, Wait};
use crate::buffers::{Area, Piece};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Finished, Member, Ring, Submission, Ticket, Work};
use crate::metadata::BlockId;

/// An I/O at the threads of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) io: IoId,
    /// Where its member is, or was, as the core numbers them.
    pub(super) member: MemberIndex,
    pub(super) op: IoOp,
    pub(super) segments: SegmentList,
    /// It writes a record.
    pub(super) record: bool,
    /// The block of a metadata I/O.
    pub(super) block: Option<BlockId>,
    /// It was answered with a timeout; what the thread answers is of no interest.
    pub(super) abandoned: bool,
    pub(super) used: bool,
}

impl InFlight {
    /// An I/O on data. Of a copy: where the I/O itself had to lie in memory, all members were slower by a tenth.
    #[inline]
    const fn of(io: MemberIo) -> Self {
        let MemberIo { io, member, op, segments, .. } = io;
        let record = false;
        Self { io, member, op, segments, record, block: None, abandoned: false, used: true }
    }

    /// Whether it was given up and may change its device late.
    fn is_late_change(&self) -> bool {
        self.abandoned && self.op != IoOp::Read
    }
}

impl Engine {
    #[inline]
    pub(super) fn member_io(&mut self, io: &MemberIo) {
        if let Some(recorded) = &mut self.recorded {
            let MemberIo { member, op, at, len, fua, .. } = *io;
            recorded.push(Recorded { member, op, at, len, fua });
        }
        if self.doubts > 0
            && let Some(outcome) = self.doubt(io.member, io.op)
        {
            return self.complete(io.io, outcome);
        }
        let len = Sectors(u64::from(io.len));
        self.totals.count(io.op, len);
        let start = match io.at.0 < self.logs.from {
            true => self.starts[io.member.at()],
            false => self.logs.start(io.member),
        };
        let (op, at, fua) = (io.op, Sector(io.at.0.wrapping_add(start)), io.fua);
        let submission = Submission { op, at, len, fua, flush_first: false };
        let outcome = match &mut self.members[io.member.at()] {
            Member::Null(_) => IoOutcome::Ok,
            Member::Memory(member) => {
                if member.is_stalled() {
                    self.stalled.push((io.io, None));
                    return;
                }
                let segments = self.array.segments(&io.segments);
                let buffers = &self.buffers;
                let pieces = segments.filter_map(|segment| buffers.piece(segment));
                // SAFETY: the core lends the segments' memory to this I/O until it is completed;
                // buffers are apart from members.
                let outcome = unsafe { member.carry_out(&submission, pieces) };
                self.of_data(outcome, io.member)
            }
            Member::File(file) => {
                if file.may_need_room() && self.is_in_hole(*io) {
                    return self.complete(io.io, IoOutcome::Ok);
                }
                return self.queue(InFlight::of(*io), submission, &[]);
            }
            Member::Own(_) => return self.queue(InFlight::of(*io), submission, &[]),
            Member::Absent => IoOutcome::Gone,
        };
        self.complete(io.io, outcome);
    }

    /// An outcome of data as the array counts sectors: from the start of the member's data, and behind them the log.
    #[inline]
    fn of_data(&self, outcome: IoOutcome, member: MemberIndex) -> IoOutcome {
        let IoOutcome::MediaError { first_bad } = outcome else { return outcome };
        let data = self.starts[member.at()];
        let start = match (data..data.saturating_add(self.logs.from)).contains(&first_bad.0) {
            true => data,
            false => self.logs.start(member),
        };
        IoOutcome::MediaError { first_bad: Sector(first_bad.0.wrapping_sub(start)) }
    }

    pub(super) fn end_block(&mut self, block: Option<BlockId>) {
        if let (Some(metadata), Some(block)) = (&mut self.metadata, block) {
            metadata.end(block);
        }
    }

    #[cold]
    pub(super) fn broken(&mut self, io: IoId, what: &str) {
        self.note_broken(what);
        self.complete(io, IoOutcome::Gone);
    }

    #[cold]
    pub(super) fn note_broken(&mut self, what: &str) {
        let reason = format!("the core asked for {what}");
        self.fault = Some(EngineError::new(EngineErrorKind::Internal, RUN, reason));
    }

    /// Hands an I/O to a member that answers later; `first`: what goes before its segments.
    pub(super) fn queue(&mut self, sent: InFlight, submission: Submission, first: &[Piece]) {
        let mut pieces = self.spare_pieces.pop().unwrap_or_default();
        pieces.clear();
        pieces.extend_from_slice(first);
        for one in self.array.segments(&sent.segments) {
            let Some(piece) = self.buffers.piece(one) else {
                self.end_block(sent.block);
                return self.broken(sent.io, "memory that is no buffer");
            };
            pieces.push(piece);
        }
        let mut sent = sent;
        let mut bounce = None;
        if self.has_own_memory(sent.member) {
            match self.own_memory(&submission, &pieces) {
                Some(area) => {
                    // The block was copied with the rest.
                    self.end_block(sent.block.take());
                    let len = submission.len.bytes() as usize;
                    let has_payload = matches!(submission.op, IoOp::Read | IoOp::Write);
                    pieces.clear();
                    pieces.extend(has_payload.then(|| Piece { start: area.start(), len }));
                    bounce = Some(area);
                }
                None => {
                    self.end_block(sent.block);
                    return match sent.record {
                        true => self.record_done(sent.io, sent.member, IoOutcome::Gone),
                        false => self.complete(sent.io, IoOutcome::Gone),
                    };
                }
            }
        }
        let member = sent.member;
        let ticket = match self.free_tickets.pop() {
            Some(ticket) => {
                self.in_flight[ticket as usize] = sent;
                ticket
            }
            None => {
                self.in_flight.push(sent);
                self.in_flight.len() as u32 - 1
            }
        };
        let work = Work { ticket: Ticket(ticket), submission, pieces, bounce };
        match &mut self.members[member.at()] {
            Member::File(file) => {
                if submission.op == IoOp::Discard {
                    file.give_back(submission.at, submission.len);
                }
                file.queue(work);
            }
            Member::Own(own) => own.submit(work, &self.hub),
            Member::Null(_) | Member::Memory(_) | Member::Absent => return,
        }
        self.queued += 1;
        self.last_queued = member.at();
    }

    /// Whether I/Os at a member have memory of their own: then they can be given up.
    #[inline]
    fn has_own_memory(&self, member: MemberIndex) -> bool {
        self.deadline || matches!(self.members[member.at()], Member::Own(_))
    }

    /// Memory of an I/O's own, holding what a write writes.
    fn own_memory(&mut self, submission: &Submission, pieces: &[Piece]) -> Option<Area> {
        let len = match submission.op {
            IoOp::Read | IoOp::Write => submission.len.bytes() as usize,
            _ => 0,
        };
        let known = self.spare_bounces.iter().position(|area| area.bytes().len() >= len);
        let area = match known {
            Some(position) => self.spare_bounces.swap_remove(position),
            None => Area::new(len.next_power_of_two().max(4096)).ok()?,
        };
        if submission.op == IoOp::Write {
            copy(pieces.iter().copied(), &area, len, Direction::FromPieces);
        }
        Some(area)
    }

    /// Gives what is queued to the members' threads; with a single request outstanding the last I/O is
    /// done here meanwhile, unless it might hang.
    pub(super) fn hand_over(&mut self, wait: Wait) {
        let alone = wait == Wait::Yes && self.outstanding == 1 && self.at_threads == 0;
        let own = match &mut self.members[self.last_queued] {
            Member::File(member) if alone && !self.deadline => member.take_last(),
            _ => None,
        };
        self.at_threads += self.queued;
        self.queued = 0;
        let mut listed = Ok(());
        for member in &mut self.members {
            if let Member::File(member) = member {
                listed = listed.and(member.hand_over(&mut self.ring));
            }
        }
        self.check_ring(listed);
        if own.is_some() {
            self.submit_listed();
        }
        if let (Some(work), Member::File(member)) = (own, &self.members[self.last_queued]) {
            let finished = member.do_here(work);
            self.finish(finished);
        }
    }

    pub(super) fn take_finished(&mut self) {
        let mut finished = std::mem::take(&mut self.finished);
        if finished.is_empty() && self.at_threads > self.in_ring() {
            self.hub.take(&mut finished);
        }
        if let Some(ring) = &mut self.ring {
            let reaped = ring.reap(&mut finished);
            self.check_ring(reaped);
        }
        for one in finished.drain(..) {
            self.finish(one);
        }
        self.finished = finished;
    }

    fn in_ring(&self) -> u32 {
        self.ring.as_ref().map_or(0, Ring::in_flight)
    }

    /// Waits until a member has answered or `limit` has passed; may return early.
    pub(super) fn wait_members(&mut self, limit: Option<Duration>) {
        let in_ring = self.in_ring();
        let Some(ring) = self.ring.as_mut().filter(|_| in_ring > 0) else {
            return self.hub.wait(&mut self.finished, limit);
        };
        let threads = self.at_threads > in_ring;
        if threads && !self.hub.expect_bell() {
            return;
        }
        let waited = ring.wait(threads, limit);
        if threads {
            self.hub.ignore_bell();
        }
        self.check_ring(waited);
    }

    /// Gives the kernel what was listed since it was entered last.
    #[inline]
    pub(super) fn submit_listed(&mut self) {
        if let Some(ring) = &mut self.ring {
            let submitted = ring.submit();
            self.check_ring(submitted);
        }
    }

    pub(super) fn post_ring(&mut self) {
        if let Some(ring) = &mut self.ring {
            let posted = ring.post();
            self.check_ring(posted);
        }
    }

    #[inline]
    pub(super) fn check_ring(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            let reason = format!("io_uring: {error}");
            self.fault = Some(EngineError::new(EngineErrorKind::Io, RUN, reason));
        }
    }

    fn finish(&mut self, Finished { ticket, outcome, pieces, bounce }: Finished) {
        let sent = self.in_flight[ticket.0 as usize];
        self.at_threads -= 1;
        if sent.is_late_change() {
            self.doubts -= 1;
            if outcome == IoOutcome::Gone {
                self.set_dead(sent.member, true);
            }
        }
        if !sent.abandoned {
            if let Some(area) = &bounce
                && sent.op == IoOp::Read
                && outcome == IoOutcome::Ok
            {
                let segments = self.array.segments(&sent.segments);
                let pieces = segments.filter_map(|one| self.buffers.piece(one));
                copy(pieces, area, usize::MAX, Direction::ToPieces);
            }
            self.end_block(sent.block);
            if outcome == IoOutcome::NoSpace
                && let Member::File(file) = &mut self.members[sent.member.at()]
            {
                file.note_full();
            }
            match sent.record {
                true => self.record_done(sent.io, sent.member, outcome),
                false => {
                    let outcome = self.of_data(outcome, sent.member);
                    self.complete(sent.io, outcome);
                }
            }
        }
        self.spare_pieces.push(pieces);
        self.spare_bounces.extend(bounce);
        self.in_flight[ticket.0 as usize].used = false;
        self.free_tickets.push(ticket.0);
    }

    /// The devices of two places have changed them: what is in flight goes with its device, as in the core, so
    /// that it is known where something may still be written late.
    pub(super) fn swap_in_flight(&mut self, one: MemberIndex, other: MemberIndex) {
        for sent in self.in_flight.iter_mut().filter(|sent| sent.used) {
            sent.member = match sent.member {
                now if now == one => other,
                now if now == other => one,
                now => now,
            };
        }
        self.dead.swap(one.at(), other.at());
    }

    /// Whether a thread is at work on a device for somebody who waits.
    pub(super) fn in_flight(&self, device: MemberIndex) -> bool {
        self.in_flight.iter().any(|one| one.used && !one.abandoned && one.member == device)
    }

    /// Whether a thread hangs in a system call on a device.
    pub(super) fn hangs(&self, device: MemberIndex) -> bool {
        self.in_flight.iter().any(|one| one.used && one.abandoned && one.member == device)
    }

    /// Whether a thread hangs in a system call on any device.
    pub(super) fn any_hangs(&self) -> bool {
        self.in_flight.iter().any(|one| one.used && one.abandoned)
    }

    /// The deadline of an I/O has passed: answers it as soon as its buffers are safe.
    #[cold]
    pub(super) fn abandon(&mut self, io: IoId) {
        if let Some(position) = self.stalled.iter().position(|(one, _)| *one == io) {
            let (io, block) = self.stalled.swap_remove(position);
            let member = self.array.meta(io).map(|meta| meta.member).filter(|_| block.is_some());
            self.end_block(block);
            return match member {
                Some(member) => self.record_done(io, member, IoOutcome::Timeout),
                None => self.complete(io, IoOutcome::Timeout),
            };
        }
        if self.forget_waiting(io) {
            return self.complete(io, IoOutcome::Timeout);
        }
        let known = self.in_flight.iter().position(|one| one.used && one.io == io);
        let Some(index) = known.filter(|index| !self.in_flight[*index].abandoned) else { return };
        let sent = self.in_flight[index];
        let ticket = Ticket(index as u32);
        let cancelled = match self.members.get_mut(sent.member.at()) {
            Some(Member::File(file)) => file.cancel(ticket),
            // What a retired device was given it carries out.
            _ => None,
        };
        if let Some((work, handed_over)) = cancelled {
            // No thread has seen it.
            if !handed_over {
                self.queued -= 1;
                self.at_threads += 1;
            }
            return self.finish(work.ended(IoOutcome::Timeout));
        }
        if !self.has_own_memory(sent.member) {
            // Without memory of its own the I/O is answered when its thread comes back.
            return;
        }
        self.in_flight[index].abandoned = true;
        self.doubts += u32::from(self.in_flight[index].is_late_change());
        match sent.record {
            true => self.record_done(io, sent.member, IoOutcome::Timeout),
            false => self.complete(io, IoOutcome::Timeout),
        }
    }

    /// How an I/O is answered that must not be begun on a device.
    #[cold]
    pub(super) fn doubt(&self, device: MemberIndex, op: IoOp) -> Option<IoOutcome> {
        if self.dead[device.at()] {
            return Some(IoOutcome::Gone);
        }
        let late = |one: &InFlight| one.used && one.member == device && one.is_late_change();
        (op != IoOp::Read && self.in_flight.iter().any(late)).then_some(IoOutcome::Timeout)
    }

    /// Whether what the device in a place was told to keep may be lost.
    pub(super) fn set_dead(&mut self, place: MemberIndex, dead: bool) {
        let was = std::mem::replace(&mut self.dead[place.at()], dead);
        self.doubts = self.doubts + u32::from(dead) - u32::from(was);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromPieces,
    ToPieces,
}

/// Copies between pieces and the start of an area, at most `most` bytes.
fn copy(pieces: impl Iterator<Item = Piece>, area: &Area, most: usize, direction: Direction) {
    let room = area.bytes().len().min(most);
    let mut at = 0;
    for piece in pieces {
        let len = piece.len.min(room - at);
        let own = area.start().wrapping_add(at);
        // SAFETY: `at + len` lies within the area, which is the I/O's own; the piece is lent to the I/O
        // until it is completed, and the two are apart.
        unsafe {
            match direction {
                Direction::FromPieces => own.copy_from_nonoverlapping(piece.start, len),
                Direction::ToPieces => piece.start.copy_from_nonoverlapping(own, len),
            }
        }
        at += len;
    }
}
