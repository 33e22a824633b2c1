//! What background work sends to drives at one event, under a plug, where request queues have them: md's threads work
//! under one (`md_do_sync` in drivers/md/md.c, `raid1d`, `raid10d`, `raid5d`), while a process's requests go out as
//! they come.

use raidlab_core::contract::IoId;
use raidlab_models::{DriveIo, QueueInput};

use super::World;

impl World {
    /// Holds an I/O of background work in the queue of its drive until all have come that the array sends now; false
    /// where it is another or there are no plugs, and nothing was done.
    #[inline]
    pub(super) fn hold_under_plug(&mut self, name: IoId, drive: u16, io: DriveIo) -> bool {
        let Some(queue) = self.queues.get(usize::from(drive)) else { return false };
        let has_plugs = queue.spec().plugged.is_some() && !self.is_prefilling;
        if !has_plugs || !self.array.is_background(name) {
            return false;
        }
        let process = self.process;
        self.feed_queue(drive, QueueInput::Hold { io, process });
        if !self.plugged.contains(&drive) {
            self.plugged.push(drive);
        }
        true
    }

    /// All have come: the drives get what they may have.
    pub(super) fn pull_plug(&mut self) {
        for place in 0..self.plugged.len() {
            let drive = self.plugged[place];
            self.feed_queue(drive, QueueInput::Wake);
            self.dispatched(drive);
        }
        self.plugged.clear();
    }
}
