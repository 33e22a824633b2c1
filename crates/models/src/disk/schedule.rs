//! What the mechanism does next: the command queue, destaging, holding on to a reader in order.

use raidlab_core::units::{Nanos, Time};

use super::mechanism::Work;
use super::{Command, CommandStep, HardDisk, NEVER};

/// Reads that may go before destaging gets a turn.
const COMMANDS_PER_DESTAGE: u32 = 16;

/// For how many times as long as it takes to get elsewhere the head stays with a reader in order while others wait.
/// An estimate between two measurements: a drive that had 256 reads of 4 KiB each of two files, behind a scheduler,
/// read 8 % slower than with one (linux-raid, "md raid0 2 * HDD direct reads"), so it stays long, here 12 %; and of 32
/// random reads 99 % took less than 518 ms, so nobody is kept waiting for much longer.
const STAYS: u64 = 16;
/// What the head would come to within this time by reading on is of the reader in order: some 60 MB.
const AHEAD: Nanos = Nanos::from_millis(250);

impl HardDisk {
    /// When the mechanism ends what it does, or begins something.
    pub(super) fn mechanism_due(&self) -> Time {
        if let Work::Writing { until, .. } = self.mechanism.work {
            return until;
        }
        let free = self.reserved.max(self.now);
        if self.commands.iter().any(Command::needs_mechanism) {
            return free;
        }
        if self.writes.is_empty() {
            return NEVER;
        }
        match &self.mechanism.work {
            Work::Reading(stream) if !self.destage_owed(false) => {
                let mut rest = stream.rests;
                if self.policy.whole_track {
                    rest = rest.max(self.mechanism.whole_track(stream));
                }
                rest.max(free)
            }
            _ => free,
        }
    }

    /// Whether the write buffer goes first. `waiting`: commands wait for the mechanism, too; a buffer
    /// that is in demand takes turns with them.
    fn destage_owed(&self, waiting: bool) -> bool {
        let demanded =
            |command: &Command| matches!(command.step, CommandStep::Room | CommandStep::Destaged);
        self.policy.immediate_report
            || self.commands_since_destage >= COMMANDS_PER_DESTAGE
            || ((!waiting || self.commands_since_destage > 0) && self.commands.iter().any(demanded))
    }

    /// The mechanism has come free, or time has come to use it.
    pub(super) fn mechanism_done(&mut self) {
        if let Work::Writing { destage, .. } = self.mechanism.work {
            self.mechanism.work = Work::Idle;
            if destage {
                self.writes.arrived();
                self.room_made();
            }
            return;
        }
        let waiting = self.commands.iter().any(Command::needs_mechanism);
        if !self.writes.is_empty() && (!waiting || self.destage_owed(true)) {
            self.destage();
        } else if waiting {
            let index = self.choose();
            match self.commands[index].step {
                CommandStep::Read { from } => self.read_now(index, from),
                _ => self.write_medium(index),
            }
        }
    }

    /// The next command: the one with the least time to reach it times what is left of its patience, age limit less age
    /// (weighted shortest time first: Seltzer, Chen, Ousterhout, *Disk scheduling revisited*, USENIX 1990), among as
    /// many of the oldest as the firmware compares. One beyond the age limit goes first, and among those the oldest.
    /// The next read of a reader in order is always reached at once: to it a share of the time counts for which the
    /// head was with that reader, else others would wait until they are past the age limit.
    fn choose(&self) -> usize {
        let waiting = || {
            let all = self.commands.iter().enumerate();
            all.filter(|(_, command)| command.needs_mechanism()).take(self.choice)
        };
        let mut each = waiting();
        let Some((oldest, _)) = each.next() else { return 0 };
        let patience =
            |command: &Command| self.age_limit.0.saturating_sub(self.now.since(command.admitted).0);
        if each.next().is_none() {
            return oldest;
        }
        let place = self.mechanism.place(self.now);
        let stayed = Nanos(self.now.since(self.stays_since).0 / STAYS);
        let near = self.now + AHEAD;
        let mut best = (u64::MAX, oldest);
        for (index, command) in waiting() {
            let write = matches!(command.step, CommandStep::Write);
            let mut time = self.mechanism.reach(place, self.now, &command.spot, write);
            if let (CommandStep::Read { from }, Work::Reading(stream)) =
                (command.step, &self.mechanism.work)
            {
                // What lies farther ahead is reached sooner by itself.
                let streamed = stream.time(command.spot.media);
                if streamed <= near {
                    if self.kept(stream, from, self.now) {
                        time = time.min(streamed);
                    }
                    time = time.max(self.now) + stayed;
                }
            }
            // At most a few seconds by ten: fits.
            let cost = time.since(self.now).0.saturating_mul(patience(command));
            if cost < best.0 {
                best = (cost, index);
            }
        }
        best.1
    }
}
