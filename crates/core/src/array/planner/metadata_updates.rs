//! Metadata I/O: single records, and the I/O of updates over all members.

use super::Array;
use crate::array::ios::{IoState, NO_META, Owner, Target};
use crate::array::lists::EMPTY;
use crate::array::metadata_updates::{Purpose, UpdateStep};
use crate::contract::{IoId, IoOp, IoOutcome, MetaIo, Output, Record};
use crate::units::{MemberIndex, Sector};

impl Array {
    /// A metadata I/O; `None` when it is no longer wanted.
    pub fn meta(&self, io: IoId) -> Option<&MetaIo> {
        self.ios.is_current(io).then(|| &self.ios.metas[io.slot as usize])
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
            self.ios.slots.insert_named(state).expect("room is checked before a record is written");
        self.ios.metas[slot as usize] = meta;
        self.members[meta.member].pending += 1;
        self.count_in(owner, meta.member);
        self.watch_deadline();
        self.outputs.push_back(Output::Meta { io: IoId { slot, generation } });
    }

    /// Flushes every member in service (`flush`), then writes a record to each (`write`).
    pub(super) fn start_update(&mut self, purpose: Purpose, flush: bool, write: bool) {
        let slot = self.updates.start(purpose, flush, write);
        self.enter_update(slot);
    }

    fn enter_update(&mut self, slot: u32) {
        if !self.starved.updates.is_empty() || !self.issue_update(slot) {
            self.starved.updates.push_back(slot);
        }
    }

    /// Sends out a step of an update; false when it must wait for room.
    pub(super) fn issue_update(&mut self, slot: u32) -> bool {
        if self.ios.slots.available() <= 2 * usize::from(self.setup.layout.members) {
            return false;
        }
        let (purpose, step) = self.updates.at(slot);
        if step == UpdateStep::Write && !self.seal(purpose) {
            self.end_update(slot);
            return true;
        }
        let journal = self.setup.journal().0;
        let devices = if step == UpdateStep::TellLog { journal..journal + 1 } else { 0..journal };
        for device in devices.map(MemberIndex) {
            if !self.is_served(device) {
                continue;
            }
            match step {
                UpdateStep::Flush => {
                    let target = Target { member: device, at: Sector(0), len: 0 };
                    self.emit(Owner::MetadataUpdate(slot), IoOp::Flush, false, target, EMPTY);
                }
                UpdateStep::Write | UpdateStep::TellLog => {
                    let Some(record) = self.update_record(purpose, device) else { continue };
                    let meta = MetaIo { member: device, record, fua: true, ..NO_META };
                    self.emit_meta(Owner::MetadataUpdate(slot), meta);
                }
            }
        }
        if self.updates.is_step_over(slot) {
            self.step_ended(slot);
        }
        true
    }

    /// Settles what the records of an update say, for all members alike; false when there is nothing
    /// to say, or nothing is written any more.
    fn seal(&mut self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Superblock => self.seal_update(),
            Purpose::Bitmap(block) => self.seal_pages(block),
            _ => true,
        }
    }

    /// Whether a member, replacement or log device gets I/O.
    pub(super) fn is_served(&self, device: MemberIndex) -> bool {
        self.members.is_served(&self.setup, device, self.log.is_journal_used())
    }

    /// One I/O of an update has ended.
    pub(super) fn update_io_ended(&mut self, slot: u32, io: &IoState, outcome: IoOutcome) {
        self.updates.count_off(slot);
        if outcome != IoOutcome::Ok {
            self.fail_device(io.member);
        }
        if self.updates.is_step_over(slot) {
            self.step_ended(slot);
        }
    }

    fn step_ended(&mut self, slot: u32) {
        if self.updates.next_step(slot, self.tells_log()) {
            self.enter_update(slot);
        } else {
            self.end_update(slot);
        }
    }

    /// Whether the log device gets what all members have. Where too many of them failed, they do not.
    fn tells_log(&self) -> bool {
        self.log.is_journal_used() && !self.members.has_lost(&self.setup)
    }

    fn end_update(&mut self, slot: u32) {
        let purpose = self.updates.end(slot);
        self.update_ended(purpose);
    }

    /// What an update writes to a device, if anything.
    fn update_record(&self, purpose: Purpose, device: MemberIndex) -> Option<Record> {
        match purpose {
            Purpose::Bitmap(block) => Some(self.gate.bitmap.record(block)),
            _ => self.gate.superblock_of(&self.setup, device).map(Record::Superblock),
        }
    }

    fn update_ended(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Superblock => self.superblock_recorded(),
            Purpose::Bitmap(block) => self.bitmap_recorded(block),
            Purpose::BitmapFlush => self.bitmap_flushed(),
            Purpose::LogSpace => self.log_flushed(),
            Purpose::Background => self.background_flushed(),
        }
    }
}
