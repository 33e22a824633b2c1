//! Writing: taking data into the buffer, destaging, writing past it, keeping the caches true.

use super::mechanism::Work;
use super::{CommandStep, HardDisk};
use crate::drive::DriveIo;

/// The most sectors of a write that are taken into the buffer at once: 1 MiB.
const TRANSFER: u64 = 2_048;

impl HardDisk {
    /// Takes as much of a buffered write as there is room for.
    pub(super) fn transfer(&mut self, index: usize) {
        let command = &self.commands[index];
        let (next, ready) = (command.next, command.ready);
        let most = (command.end() - next).min(TRANSFER);
        let (mut promised, mut others) = (0, 0);
        for command in &self.commands {
            if let CommandStep::Transfer { sectors, .. } = command.step {
                promised += sectors;
                others += 1;
            }
        }
        let room = self.writes.room().saturating_sub(promised);
        let enough = most.min((self.writes.capacity() / 8).max(1));
        let sectors = most.min(room);
        let fits = room >= enough && self.writes.can_insert(next, next + sectors, others);
        let taken = fits
            && (!self.policy.immediate_report
                || (others == 0 && (self.writes.is_clean() || self.writes.appends(next))));
        self.commands[index].step = if taken {
            let at = self.take_link(ready.max(self.now), sectors);
            CommandStep::Transfer { at, sectors }
        } else {
            CommandStep::Room
        };
    }

    /// Whether a write will find its place in the buffer without waiting.
    pub(super) fn taken_at_once(&self, io: &DriveIo) -> bool {
        let at = io.at.0;
        let clear =
            !self.policy.immediate_report || self.writes.is_clean() || self.writes.appends(at);
        self.write_cache && !io.fua && clear && self.writes.room() >= u64::from(io.len)
    }

    /// Data of a write have come into the buffer.
    pub(super) fn transferred(&mut self, index: usize, sectors: u64) {
        let start = self.commands[index].next;
        let end = start + sectors;
        self.writes.insert(start, end);
        self.drop_cached(start, end);
        if self.policy.written_ranges > 0 {
            self.written.note(start, end);
        }
        self.commands[index].next = end;
        if end == self.commands[index].end() {
            self.finish(index, self.now);
        } else {
            // What has come is not promised any more.
            self.commands[index].step = CommandStep::Room;
            self.transfer(index);
        }
        if self.policy.immediate_report {
            self.room_made();
        }
    }

    /// The write buffer has room, or has become clean: gets on with the commands that waited for it.
    pub(super) fn room_made(&mut self) {
        for index in 0..self.commands.len() {
            match self.commands[index].step {
                CommandStep::Room => {
                    self.transfer(index);
                    if self.commands[index].waits_for_room() {
                        return;
                    }
                }
                CommandStep::Destaged if self.writes.is_clean() => {
                    self.finish(index, self.commands[index].ready);
                }
                _ => {}
            }
        }
    }

    /// Sends the next piece from the write buffer to the medium.
    pub(super) fn destage(&mut self) {
        self.stop_reading(self.now);
        let Some((start, end)) = self.writes.next() else { return };
        let spot = self.mechanism.geometry().locate(start);
        let len = (end - start).min(u64::from(spot.used - spot.sector));
        self.writes.send(start, len);
        self.mechanism.write(self.now, (start, len), (self.now, self.now), true);
        self.commands_since_destage = 0;
    }

    /// Writes past the buffer.
    pub(super) fn write_medium(&mut self, index: usize) {
        self.commands_since_destage = self.commands_since_destage.saturating_add(1);
        let command = self.commands[index];
        let (at, end) = (command.io.at.0, command.end());
        let len = end - at;
        self.stop_reading(self.now);
        self.writes.forget(at, end);
        self.drop_cached(at, end);
        if self.policy.written_ranges > 0 {
            self.written.note(at, end);
        }
        let all = self.take_link(command.ready, len);
        let block = if self.policy.write_overlap { len.min(self.block) } else { len };
        let first = (command.ready + self.link(block)).min(all);
        let arrived = if self.policy.write_overlap { first } else { all };
        let until = self.mechanism.write(self.now, (at, len), (arrived, all), false);
        self.finish(index, until);
        // What it replaced has made room; perhaps nothing is left whose destaging would say so.
        self.room_made();
    }

    /// Drops what a write makes stale from the read cache.
    fn drop_cached(&mut self, start: u64, end: u64) {
        let mut filling = None;
        if let Work::Reading(stream) = self.mechanism.work {
            filling = Some(stream.segment);
            let kept = self.segments.start(stream.segment, 0);
            let front = self.mechanism.front(&stream, self.now);
            let behind = self.policy.whole_track && start < front;
            if behind || (start < stream.limit && kept < end) {
                if end <= front && !behind {
                    self.segments.drop_before(stream.segment, end);
                } else if start >= front {
                    self.mechanism.limit(start);
                } else {
                    self.stop_reading(self.now);
                    filling = None;
                }
            }
        }
        self.segments.drop_range(start, end, filling);
    }
}
