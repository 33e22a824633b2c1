//! A hard disk in virtual time.
//!
//! **Modelled.** Seeks through measured points or three of a data sheet, settling, head and cylinder
//! switches, the platters' angle kept exactly by the clock, zones, command overhead, the
//! interface's rate, a segmented read cache that reads ahead, a write-back buffer with sorted
//! destaging or immediate report, a command queue. What differs between firmwares is a
//! [`CachePolicy`]. Each spindle turns at a speed of its own within the given tolerance; without
//! one, exactly at the given speed, so that two drives keep the angle between them for a whole run.
//!
//! **Commands.** A drive works on as many commands as its queue has room for (one: in the order of
//! submission, one at a time); others wait. The electronics take them one after another; then a
//! command that needs the mechanism waits for it, and whenever it comes free the one that can be
//! reached first is next, with preference for those that have waited; one that has waited longer
//! than the age limit goes first. A flush is not queued: it waits for the commands before it and
//! holds up those behind it. Destaging and reading ahead go on beside commands that do not need the
//! mechanism.
//!
//! **Reading.** After a read the drive reads ahead, as far as its policy says, until a command or
//! full buffer needs the mechanism. A hit costs overhead and interface. A read that follows what is
//! being read ahead waits for the medium, which loses no turn. When a reader has made room in its
//! segment and nothing else is to be done, reading ahead starts again. With several readers in
//! order, a drive may read on for a while before it goes to the next one (`hold`).
//!
//! **Writing.** With write cache a write completes when its data are in the buffer. They go to the
//! medium in ascending order, over and over, in pieces of at most one track, as soon as reading
//! ahead has come to its end, or at once when the buffer is full, a flush waits, or 16 reads
//! have gone before. Waiting reads go before the next piece. A flush completes when the buffer is on
//! the medium. With immediate report the buffer takes a write only when clean or appended to, and is
//! written out before anything else. Without write cache, and with `fua`, a write completes when it
//! is on the medium.
//!
//! **Left out**: defects, power saving, thermal recalibration, and a host that cannot keep up with
//! the interface.

mod completion_prediction;
pub(crate) mod geometry;
mod mechanism;
pub mod policy;
mod read;
mod schedule;
pub(crate) mod seek;
mod segments;
mod write;
pub(crate) mod write_buffer;

use std::collections::VecDeque;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};
use raidlab_random::SplitMix64;

use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use crate::spec::{HardDiskFigures, HardDiskSpec};
use completion_prediction::CompletionPrediction;
use geometry::{Geometry, Spot};
use mechanism::Mechanism;
use policy::{CachePolicy, CommandOverheads};
use segments::Segments;
use write_buffer::WriteBuffer;

/// Commands for whose queue there is room from the start.
const QUEUE: usize = 256;

/// What a command at work waits for.
#[derive(Clone, Copy, Debug)]
enum CommandStep {
    /// The electronics.
    Decode { at: Time },
    /// Its end, which is known.
    Finish { at: Time, outcome: IoOutcome },
    /// The mechanism, to read from this sector on.
    Read { from: u64 },
    /// The mechanism, to write past the buffer.
    Write,
    /// Data of a write crossing the interface.
    Transfer { at: Time, sectors: u64 },
    /// Room in the write buffer.
    Room,
    /// An empty write buffer.
    Destaged,
}

/// A command at work.
#[derive(Clone, Copy, Debug)]
struct Command {
    io: DriveIo,
    /// When the drive took it.
    admitted: Time,
    /// When the electronics are done with the command itself.
    ready: Time,
    /// Buffered writes: the first sector not yet taken.
    next: u64,
    /// Where the mechanism is to go, while it waits for that.
    spot: Spot,
    /// When the caches were last asked for it.
    looked: Time,
    step: CommandStep,
}

impl Command {
    /// One past its last sector.
    fn end(&self) -> u64 {
        self.io.at.0 + u64::from(self.io.len)
    }

    /// When it gets on by itself.
    fn due(&self) -> Time {
        match self.step {
            CommandStep::Decode { at }
            | CommandStep::Finish { at, .. }
            | CommandStep::Transfer { at, .. } => at,
            CommandStep::Read { .. }
            | CommandStep::Write
            | CommandStep::Room
            | CommandStep::Destaged => NEVER,
        }
    }

    fn waits_for_room(&self) -> bool {
        matches!(self.step, CommandStep::Room)
    }

    fn needs_mechanism(&self) -> bool {
        matches!(self.step, CommandStep::Read { .. } | CommandStep::Write)
    }
}

/// A hard disk. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct HardDisk {
    mechanism: Mechanism,
    segments: Segments,
    /// Written data that answer reads when they are on the medium.
    written: Segments,
    writes: WriteBuffer,
    /// Commands at work, in the order they came.
    commands: Vec<Command>,
    queue: VecDeque<DriveIo>,
    done: VecDeque<(DriveIoId, IoOutcome)>,
    now: Time,
    wake: Option<Time>,
    wake_told: Option<Time>,
    commands_since_destage: u32,
    /// When the head last went elsewhere to read.
    stays_since: Time,
    /// Until then the mechanism is at work for commands, or holds on to a reader in order.
    reserved: Time,
    /// When the electronics are done with the last command.
    electronics: Time,
    /// What has been promised of the interface.
    link_free: Time,
    after_write: bool,
    capacity: u64,
    overheads: CommandOverheads,
    /// Without `overheads`: the same for every command.
    overhead: Option<Nanos>,
    policy: CachePolicy,
    depth: usize,
    /// How many of the oldest waiting commands are compared.
    choice: usize,
    age_limit: Nanos,
    /// Nanoseconds per sector on the interface, 16 fractional bits.
    link: u64,
    /// What must have crossed the interface before a medium can be written, and what is left to
    /// cross after it was read.
    block: u64,
    write_cache: bool,
    prediction: CompletionPrediction,
}

impl HardDisk {
    /// A drive at rest with its head on the outermost cylinder and its caches empty. The seed gives
    /// the angle of the platters at time 0.
    pub fn new(spec: &HardDiskSpec, seed: u64) -> Self {
        let figures =
            HardDiskFigures { turn_drift: drift(spec.figures(), seed), ..spec.figures().clone() };
        let f = &figures;
        let mechanism = Mechanism::new(f, seed);
        let depth = f.queue_depth as usize;
        // 4 KiB; a sector where the interface is slower than the medium and so always has one.
        let slow = f.link_rate < Geometry::outermost_raw_rate(f);
        Self {
            segments: Segments::new(f.read_segments, f.segment.0),
            written: Segments::new(f.cache.written_ranges, f.segment.0),
            writes: WriteBuffer::new(f.write_buffer.0, f.write_extents),
            mechanism,
            commands: Vec::with_capacity(depth),
            queue: VecDeque::with_capacity(QUEUE),
            done: VecDeque::with_capacity(QUEUE),
            now: Time::ZERO,
            wake: None,
            wake_told: None,
            commands_since_destage: 0,
            stays_since: Time::ZERO,
            reserved: Time::ZERO,
            electronics: Time::ZERO,
            link_free: Time::ZERO,
            after_write: false,
            capacity: f.capacity.0,
            overheads: f.overheads.unwrap_or(CommandOverheads::same(f.command_overhead)),
            overhead: f.overheads.is_none().then_some(f.command_overhead),
            policy: f.cache.clone(),
            depth,
            choice: f.queue_choice as usize,
            age_limit: f.queue_age_limit,
            link: ((512u64 * 1_000_000_000) << 16) / f.link_rate,
            block: if slow { 1 } else { 8 },
            write_cache: f.write_cache,
            prediction: CompletionPrediction::default(),
        }
    }

    /// What the drive holds.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// Takes an input. `now` is the same as before or later; an earlier one counts as the same.
    ///
    /// A range that does not lie within the capacity ends with [`IoOutcome::MediaError`] and
    /// transfers nothing.
    pub fn handle(&mut self, now: Time, input: DriveInput) {
        if self.is_ahead_of(now) {
            // Whoever comes now has to wait for what is at work.
            if let DriveInput::Submit(io) = input {
                self.queue.push_back(io);
            }
            return;
        }
        let now = now.max(self.now);
        self.prediction.work.clear();
        self.advance(now);
        self.now = now;
        if let DriveInput::Submit(io) = input {
            self.queue.push_back(io);
            self.admit();
            // A command of no duration, or one that let the mechanism go.
            self.advance(now);
        }
        if self.prediction.is_on {
            return self.predict();
        }
        let due = self.mechanism_due().min(self.command_due().0);
        self.wake = (due != NEVER).then_some(due);
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<DriveOutput> {
        if let Some((id, outcome)) = self.done.pop_front() {
            return Some(DriveOutput::Complete { id, outcome });
        }
        if self.wake == self.wake_told {
            return None;
        }
        self.wake_told = self.wake;
        self.wake.map(DriveOutput::WakeAt)
    }

    /// Total time the mechanism worked for commands and for destaging, with seeks and rotation. What
    /// is under way counts in full; reading ahead counts once its data are asked for, also when it was broken off
    /// before.
    /// It is not what `iostat` calls utilisation, the time with a command at the drive: of that a drive that answers
    /// from its buffer has much, though it could do more.
    pub fn busy(&self) -> Nanos {
        self.mechanism.busy()
    }

    /// Carries out everything due up to `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        loop {
            let mechanism = self.mechanism_due();
            let (command, index) = self.command_due();
            let due = mechanism.min(command);
            if due > now {
                return;
            }
            self.go_on(mechanism, (command, index));
        }
    }

    /// Carries out what is due next.
    #[inline]
    fn go_on(&mut self, mechanism: Time, (command, index): (Time, usize)) {
        self.now = self.now.max(mechanism.min(command));
        let busy = self.mechanism.busy();
        if mechanism <= command {
            self.mechanism_done();
        } else {
            self.command_done(index);
        }
        if self.prediction.is_on && self.mechanism.busy() != busy {
            let more = Nanos(self.mechanism.busy().0 - busy.0);
            self.prediction.work.push((self.now, more));
        }
    }

    /// When the first command gets on by itself, and which.
    fn command_due(&self) -> (Time, usize) {
        let mut first = (NEVER, 0);
        for (index, command) in self.commands.iter().enumerate() {
            let due = command.due();
            if due < first.0 {
                first = (due, index);
            }
        }
        first
    }

    fn command_done(&mut self, index: usize) {
        match self.commands[index].step {
            CommandStep::Decode { .. } => self.decoded(index),
            CommandStep::Finish { outcome, .. } => {
                let command = self.commands.remove(index);
                self.done.push_back((command.io.id, outcome));
                self.admit();
            }
            CommandStep::Transfer { sectors, .. } => self.transferred(index, sectors),
            _ => {}
        }
    }

    /// Takes commands from the queue while there is room for them.
    fn admit(&mut self) {
        while self.commands.len() < self.depth
            && let Some(io) = self.queue.front()
        {
            let alone = io.op == DriveOp::Flush || self.flushing();
            if alone && !self.commands.is_empty() {
                return;
            }
            if let Some(io) = self.queue.pop_front() {
                self.begin(io);
            }
        }
    }

    /// A flush is at work, and so nothing else.
    fn flushing(&self) -> bool {
        self.commands.first().is_some_and(|command| command.io.op == DriveOp::Flush)
    }

    fn begin(&mut self, io: DriveIo) {
        let ready = self.electronics.max(self.now) + self.overhead(&io);
        self.electronics = ready;
        if io.op != DriveOp::Flush {
            self.after_write = io.op == DriveOp::Write;
        }
        let mut step = CommandStep::Decode { at: ready };
        if io.op == DriveOp::Flush {
        } else if io.at.0.checked_add(io.len.into()).is_none_or(|end| end > self.capacity) {
            let first_bad = Sector(io.at.0.max(self.capacity));
            step = CommandStep::Finish { at: ready, outcome: IoOutcome::MediaError { first_bad } };
        } else if io.len == 0 {
            step = CommandStep::Finish { at: ready, outcome: IoOutcome::Ok };
        }
        let (admitted, next, spot) = (self.now, io.at.0, Spot::default());
        let looked = Time::ZERO;
        self.commands.push(Command { io, admitted, ready, next, spot, looked, step });
    }

    /// What the electronics take for a command.
    fn overhead(&self, io: &DriveIo) -> Nanos {
        if let Some(same) = self.overhead {
            return same;
        }
        let all = &self.overheads;
        let by_kind = match io.op {
            DriveOp::Flush => return all.read_hit[0],
            DriveOp::Read if self.in_reach(io.at.0) => all.read_hit,
            DriveOp::Read => all.read_miss,
            DriveOp::Write if self.taken_at_once(io) => all.write_hit,
            DriveOp::Write => all.write_miss,
        };
        by_kind[usize::from(self.after_write)]
    }

    /// The electronics are done with a command.
    fn decoded(&mut self, index: usize) {
        let io = self.commands[index].io;
        match io.op {
            DriveOp::Flush if self.writes.is_clean() => self.finish(index, self.now),
            DriveOp::Flush => self.commands[index].step = CommandStep::Destaged,
            DriveOp::Read => self.read(index),
            DriveOp::Write if io.fua || !self.write_cache => {
                self.commands[index].step = CommandStep::Write;
                self.commands[index].spot = self.mechanism.geometry().locate(io.at.0);
            }
            // In order, so that small writes do not keep a large one waiting for ever.
            DriveOp::Write if self.commands.iter().any(Command::waits_for_room) => {
                self.commands[index].step = CommandStep::Room;
            }
            DriveOp::Write => self.transfer(index),
        }
    }

    fn finish(&mut self, index: usize, at: Time) {
        let command = &mut self.commands[index];
        let completion = match command.io.op {
            DriveOp::Read => self.overheads.read_completion,
            DriveOp::Write => self.overheads.write_completion,
            DriveOp::Flush => Nanos::ZERO,
        };
        command.step =
            CommandStep::Finish { at: at.max(self.now) + completion, outcome: IoOutcome::Ok };
    }

    /// Time on the interface.
    fn link(&self, sectors: u64) -> Nanos {
        Nanos(((u128::from(sectors) * u128::from(self.link)) >> 16) as u64)
    }

    /// Promises the interface to `sectors` from `from` on; gives when they have crossed.
    fn take_link(&mut self, from: Time, sectors: u64) -> Time {
        self.link_free = self.link_free.max(from) + self.link(sectors);
        self.link_free
    }
}

/// What a drive's turn takes more or less than its figures say, in nanoseconds.
fn drift(f: &HardDiskFigures, seed: u64) -> i64 {
    let most = geometry::turn(f) * u64::from(f.rotation_tolerance) / 1_000_000;
    let among = SplitMix64::new(seed ^ u64::from_be_bytes(*b"rotation")).below(2 * most + 1);
    among as i64 - most as i64
}

const NEVER: Time = Time(u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_turns_at_its_own_speed_within_the_tolerance() {
        let file = crate::load("pata-80gb-7200").expect("compiled in");
        let crate::DriveKind::HardDisk(spec) = file.kind else { panic!("a hard disk") };
        let f = spec.figures();
        assert_eq!(f.rotation_tolerance, 1_000);
        let most = geometry::turn(f) as i64 / 1_000;
        let drifts: Vec<i64> = (0..200).map(|seed| drift(f, seed)).collect();
        assert!(drifts.iter().all(|one| one.abs() <= most));
        assert!(
            drifts.iter().any(|one| *one > most / 2) && drifts.iter().any(|one| *one < -most / 2)
        );
        let exact = HardDiskFigures { rotation_tolerance: 0, ..f.clone() };
        assert!((0..200).all(|seed| drift(&exact, seed) == 0));
        let slower = HardDiskFigures { turn_drift: 50, ..f.clone() };
        assert_eq!(geometry::turn(&slower), geometry::turn(f) + 50);
    }
}
