//! The ends of member I/Os: counting them off, and what an error leads to.

use super::Array;
use crate::array::ios::{IoState, Owner};
use crate::bugs::Bug;
use crate::contract::{Completion, IoId, IoOp, IoOutcome, Outcome};
use crate::geometry::{Holds, Place};
use crate::units::Sector;

impl Array {
    #[inline]
    pub(super) fn complete(&mut self, completion: &Completion) {
        match completion.outcome {
            IoOutcome::Ok => self.ended_io(completion.io, IoOutcome::Ok),
            error if !self.waits_for_room(completion) => self.ended_badly(completion.io, error),
            _ => {}
        }
    }

    /// Out of line: nearly all go well, and what only errors need is not in their way.
    #[cold]
    #[inline(never)]
    pub(super) fn ended_badly(&mut self, id: IoId, error: IoOutcome) {
        self.ended_io(id, error);
    }

    #[inline(always)]
    fn ended_io(&mut self, id: IoId, outcome: IoOutcome) {
        // An answer to an I/O that is no longer known changes nothing.
        let Some(io) = self.ios.slots.take(id.slot, id.generation) else { return };
        let outcome = match outcome {
            IoOutcome::Ok => IoOutcome::Ok,
            error => self.seen(&io, error),
        };
        self.lists.release(&io.segments);
        self.members[io.member].pending -= 1;
        if self.setup.policy_watches && !io.meta && self.setup.is_member(io.member) {
            self.policy.completed(self.now, io.seen_by_policy(), io.sent_at);
        }
        if !matches!(io.owner, Owner::Window(_)) {
            self.background.count(io.member, io.len);
        }
        match io.owner {
            Owner::Request(request) => {
                if outcome != IoOutcome::Ok {
                    self.request_io_failed(request, &io, outcome);
                } else if self.members.may_be_mended() && !self.mended_by_write(&io) {
                    self.stays_bad(request, &io);
                }
                let state = &mut self.requests[request];
                state.pending -= 1;
                let ended = state.planned && state.pending == 0;
                #[cfg(debug_assertions)]
                self.answer_early(request);
                if ended {
                    self.ended(request);
                }
            }
            Owner::Plan(plan) => self.plan_io_ended(plan, &io, outcome),
            Owner::Window(window) => self.window_io_ended(window, &io, outcome),
            Owner::MetadataUpdate(round) => self.update_io_ended(round, &io, outcome),
            Owner::Log => self.replay_io_ended(&io, outcome),
        }
        if self.starved.is_any() {
            self.resume();
        }
    }

    /// What the array sees of an error: all of it, unless a bug is planted.
    #[cold]
    fn seen(&self, io: &IoState, error: IoOutcome) -> IoOutcome {
        let late = error == IoOutcome::Timeout;
        let ignored = match io.op {
            _ if io.meta => false,
            IoOp::Read => {
                self.setup.has_bug(Bug::ReadErrorIgnored)
                    && matches!(error, IoOutcome::MediaError { .. })
            }
            IoOp::Flush => self.setup.has_bug(Bug::FlushErrorIgnored),
            _ if late => self.setup.has_bug(Bug::TimeoutIgnored),
            _ => self.setup.has_bug(Bug::WriteErrorIgnored),
        };
        if ignored { IoOutcome::Ok } else { error }
    }

    fn request_io_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        match io.op {
            // The drive was replaced while it was read: its place is read again.
            IoOp::Read if !self.setup.is_member(io.member) => {
                self.requests.error_state(slot).again = true
            }
            IoOp::Read => {
                if outcome == IoOutcome::Gone {
                    self.fail_member(io.member);
                }
                self.read_failed(io, outcome);
                let bad = self.array_sector(io, outcome);
                let errors = self.requests.error_state(slot);
                errors.avoid.insert(io.member);
                errors.again = true;
                errors.first_bad = match (errors.first_bad, bad) {
                    (Some(known), Some(new)) => Some(known.min(new)),
                    (known, new) => known.or(new),
                };
            }
            _ => self.change_failed(slot, io, outcome),
        }
    }

    /// A write or flush failed on one member.
    fn change_failed(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        if !self.setup.is_member(io.member) {
            self.fail_device(io.member);
            return;
        }
        // Like md, the last copy stays in service: a bad sector on it is better than no array.
        if self.members.is_last_copy(&self.setup, io.member) {
            let bad = self.array_sector(io, outcome);
            if outcome == IoOutcome::Gone {
                self.fail_member(io.member);
            }
            self.requests.error_state(slot).outcome = match (outcome, bad) {
                (IoOutcome::MediaError { .. }, Some(first_bad)) => {
                    Outcome::MediaError { first_bad }
                }
                _ => Outcome::ArrayFailed,
            };
            return;
        }
        self.fail_member(io.member);
        if io.op != IoOp::Flush {
            self.requests.error_state(slot).check_copies = true;
        }
    }

    /// What was written is listed as bad all the same: it is not there, unless another copy is.
    #[cold]
    fn stays_bad(&mut self, slot: u32, io: &IoState) {
        if self.setup.is_member(io.member) {
            self.requests.error_state(slot).check_copies = true;
        } else {
            // Its member may have no other copy, once that is exchanged.
            self.fail_device(io.member);
        }
    }

    /// The array sector that an I/O's media error stands for.
    pub(super) fn array_sector(&self, io: &IoState, outcome: IoOutcome) -> Option<Sector> {
        let IoOutcome::MediaError { first_bad } = outcome else { return None };
        match self.setup.geometry.holds(Place { member: io.member, at: first_bad }) {
            Holds::Data { at, .. } => Some(at),
            _ => None,
        }
    }
}
