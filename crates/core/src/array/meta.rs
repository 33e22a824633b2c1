//! Metadata I/O: single records, and rounds over all members.
//!
//! Fault model: a member may fail to write or flush, and a crash may come between any two members'
//! records; a record is found whole or not at all.
//! Why it is safe: a round flushes every member before it writes a record to the first of them, and
//! ends when every member in service has answered; one that failed is taken out of service, which
//! asks for a superblock round of its own before anything that depends on it is answered. The log device gets a
//! superblock when all members have it: it is at theirs or one behind, never ahead.
//! Tests: `tests/model.rs` drives arrays with superblocks; crash points inside rounds are
//! enumerated by the checker.

use super::Array;
use super::issue::{IoState, Owner, Target};
use super::lists::EMPTY;
use crate::contract::{IoId, IoOp, IoOutcome, MetaIo, Output, Record};
use crate::units::{MemberIndex, Sector};

/// Rounds under way at once.
pub(super) const MOST_ROUNDS: u32 = 8;

/// What a round is for; each has its own records and its own end, in [`Array::round_record`] and
/// [`Array::round_ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The state of the array is recorded.
    Superblock,
    /// Bits of this page of the bitmap are recorded.
    Bitmap(u32),
    /// Everything written is made durable so that bits of the bitmap can be cleared.
    BitmapFlush,
    /// Everything written is made durable so that places of the log can be used again.
    LogSpace,
    /// What background work wrote is made durable, so that how far it is can be recorded.
    Background,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Flush,
    Write,
    /// The log device is told, when all members have been: what it says, they say.
    TellLog,
}

/// A flush of all members, then a record to each of them; either may be left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    purpose: Purpose,
    step: Step,
    write: bool,
    pending: u32,
}

impl Round {
    pub(super) const fn idle() -> Self {
        Self { purpose: Purpose::Superblock, step: Step::Flush, write: false, pending: 0 }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        let purpose = match self.purpose {
            Purpose::Superblock => 0,
            Purpose::BitmapFlush => 1,
            Purpose::LogSpace => 2,
            Purpose::Background => 3,
            Purpose::Bitmap(page) => 4 + u64::from(page),
        };
        add(purpose | (self.step as u64) << 40 | u64::from(self.pending) << 48);
    }
}

pub(super) const NO_META: MetaIo = MetaIo {
    member: MemberIndex(0),
    record: Record::BitmapPage { page: 0, bits: 0 },
    at: Sector(0),
    payload: EMPTY,
    flush: false,
    fua: false,
};

impl Array {
    /// A metadata I/O; `None` when it is no longer wanted.
    pub fn meta(&self, io: IoId) -> Option<&MetaIo> {
        self.ios.is_current(io.slot, io.generation).then(|| &self.metas[io.slot as usize])
    }

    /// Sends out one record. There is room: the caller looked.
    pub(super) fn emit_meta(&mut self, owner: Owner, meta: MetaIo) {
        let state = IoState {
            owner,
            op: IoOp::Write,
            member: meta.member,
            segments: meta.payload,
            meta: true,
            ..IoState::idle()
        };
        let state = IoState { sent_at: self.now, ..state };
        let (slot, generation) =
            self.ios.insert_named(state).expect("room is checked before a record is written");
        self.metas[slot as usize] = meta;
        self.members[meta.member.at()].pending += 1;
        self.count_in(owner);
        self.watch_deadline();
        self.outputs.push_back(Output::Meta { io: IoId { slot, generation } });
    }

    /// Flushes every member in service (`flush`), then writes a record to each (`write`).
    ///
    /// # Panics
    /// When more rounds are under way than there are purposes: callers start one of a purpose at
    /// a time.
    pub(super) fn start_round(&mut self, purpose: Purpose, flush: bool, write: bool) {
        let step = if flush { Step::Flush } else { Step::Write };
        let round = Round { purpose, step, write, pending: 0 };
        let slot = self.rounds.insert(round).expect("one round of a purpose at a time");
        self.enter_round(slot);
    }

    fn enter_round(&mut self, slot: u32) {
        if !self.starved_rounds.is_empty() || !self.issue_round(slot) {
            self.starved_rounds.push_back(slot);
        }
    }

    /// Sends out a step of a round; false when it must wait for room.
    pub(super) fn issue_round(&mut self, slot: u32) -> bool {
        if self.ios.available() <= 2 * usize::from(self.layout.members) {
            return false;
        }
        let Round { purpose, step, .. } = self.rounds[slot];
        if step == Step::Write && !self.seal(purpose) {
            self.end_round(slot);
            return true;
        }
        let journal = self.journal().0;
        let devices = if step == Step::TellLog { journal..journal + 1 } else { 0..journal };
        for device in devices.map(MemberIndex) {
            if !self.is_served(device) {
                continue;
            }
            match step {
                Step::Flush => {
                    let target = Target { member: device, at: Sector(0), len: 0 };
                    self.emit(Owner::Round(slot), IoOp::Flush, false, target, EMPTY);
                }
                Step::Write | Step::TellLog => {
                    let Some(record) = self.round_record(purpose, device) else { continue };
                    let meta = MetaIo { member: device, record, fua: true, ..NO_META };
                    self.emit_meta(Owner::Round(slot), meta);
                }
            }
        }
        if self.rounds[slot].pending == 0 {
            self.step_ended(slot);
        }
        true
    }

    /// Settles what the records of a round say, for all members alike; false when there is nothing
    /// to say, or nothing is written any more.
    fn seal(&mut self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Superblock => self.seal_update(),
            Purpose::Bitmap(page) => self.seal_page(page),
            _ => true,
        }
    }

    /// Whether a member, replacement or log device gets I/O.
    pub(super) fn is_served(&self, device: MemberIndex) -> bool {
        match device.0.checked_sub(self.layout.members) {
            _ if device == self.journal() => self.is_journal_used(),
            None => !self.failed.contains(device),
            Some(of) => self.replacing.contains(MemberIndex(of)),
        }
    }

    /// One I/O of a round has ended.
    pub(super) fn round_io_ended(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        self.rounds[slot].pending -= 1;
        if outcome != IoOutcome::Ok {
            self.fail_device(io.member);
        }
        if self.rounds[slot].pending == 0 {
            self.step_ended(slot);
        }
    }

    pub(super) fn count_round_io(&mut self, slot: u32) {
        self.rounds[slot].pending += 1;
    }

    fn step_ended(&mut self, slot: u32) {
        let Round { purpose, step, write, .. } = self.rounds[slot];
        let next = match step {
            Step::Flush if write => Step::Write,
            Step::Write if purpose == Purpose::Superblock && self.tells_log() => Step::TellLog,
            _ => {
                self.end_round(slot);
                return;
            }
        };
        self.rounds[slot].step = next;
        self.enter_round(slot);
    }

    /// Whether the log device gets what all members have. Where too many of them failed, they do not.
    fn tells_log(&self) -> bool {
        self.is_journal_used() && !self.has_lost()
    }

    fn end_round(&mut self, slot: u32) {
        let purpose = self.rounds[slot].purpose;
        self.rounds.remove(slot);
        self.round_ended(purpose);
    }

    /// What a round writes to a device, if anything.
    fn round_record(&self, purpose: Purpose, device: MemberIndex) -> Option<Record> {
        match purpose {
            Purpose::Bitmap(page) => Some(self.bitmap_record(page)),
            _ => self.superblock_of(device).map(Record::Superblock),
        }
    }

    fn round_ended(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Superblock => self.superblock_recorded(),
            Purpose::Bitmap(page) => self.bitmap_recorded(page),
            Purpose::BitmapFlush => self.bitmap_flushed(),
            Purpose::LogSpace => self.log_flushed(),
            Purpose::Background => self.background_flushed(),
        }
    }
}
