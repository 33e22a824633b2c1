//! A hard disk in virtual time.
//!
//! **Modelled.** Seeks through three data-sheet points, write settle, head and cylinder switches,
//! the platters' angle kept exactly by the clock, zones, command overhead, the interface's rate, a
//! segmented read cache that reads ahead, a write-back buffer with sorted destaging. Spindles turn
//! at exactly the given speed, so two drives keep the angle between them for a whole run.
//!
//! **Commands** are carried out one at a time in the order of submission; reordering by the drive
//! (native command queueing) is not part of this model. Destaging and reading ahead go on beside a
//! command that does not need the mechanism.
//!
//! **Reading.** After a read the drive reads ahead, one segment at most, until a command or full
//! buffer needs the mechanism. A hit costs overhead and interface. A read that follows what is being
//! read ahead waits for the medium, which loses no turn. When a reader has made room in its segment
//! and nothing else is to be done, reading ahead starts again.
//!
//! **Writing.** With write cache a write completes when its data are in the buffer. They go to the
//! medium in ascending order, over and over, in pieces of at most one track, as soon as reading
//! ahead has come to its end, or at once when the buffer is full, a flush waits, or 16 reads
//! have gone before. Waiting reads go before the next piece. A flush completes when the buffer is on
//! the medium. Without write cache, and with `fua`, a write completes when it is on the medium.
//!
//! **Left out**: defects and their spare sectors, power saving, thermal recalibration, reading a
//! track from wherever the head comes down, and a host that cannot keep up with the interface.

pub(crate) mod geometry;
mod mechanism;
mod seek;
mod segments;
mod write_buffer;

use std::collections::VecDeque;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use crate::spec::HardDiskSpec;
use mechanism::{Mechanism, Stream, Work};
use segments::Segments;
use write_buffer::WriteBuffer;

/// Reads that may go before destaging gets a turn.
const READS_PER_DESTAGE: u32 = 16;
/// The most sectors of a write that are taken into the buffer at once: 1 MiB.
const TRANSFER: u64 = 2_048;
/// What must have crossed the interface before a medium can be written, and what is left to cross
/// after it was read: a block of 4 KiB.
const BLOCK: u64 = 8;
/// Commands for whose queue there is room from the start.
const QUEUE: usize = 256;

/// What the command at work waits for.
#[derive(Clone, Copy, Debug)]
enum Step {
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

/// The command at work.
#[derive(Clone, Copy, Debug)]
struct Active {
    io: DriveIo,
    /// When the electronics are done with the command itself.
    ready: Time,
    /// Buffered writes: the first sector not yet taken.
    next: u64,
    step: Step,
}

/// A hard disk. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct HardDisk {
    mechanism: Mechanism,
    segments: Segments,
    writes: WriteBuffer,
    active: Option<Active>,
    queue: VecDeque<DriveIo>,
    done: VecDeque<(DriveIoId, IoOutcome)>,
    now: Time,
    wake: Option<Time>,
    wake_told: Option<Time>,
    reads_since_destage: u32,
    capacity: u64,
    overhead: Nanos,
    /// Nanoseconds per sector on the interface, 16 fractional bits.
    link: u64,
    write_cache: bool,
}

impl HardDisk {
    /// A drive at rest with its head on the outermost cylinder and its caches empty. The seed gives
    /// the angle of the platters at time 0.
    pub fn new(spec: &HardDiskSpec, seed: u64) -> Self {
        let f = spec.figures();
        Self {
            mechanism: Mechanism::new(f, seed),
            segments: Segments::new(f.read_segments, f.segment.0),
            writes: WriteBuffer::new(f.write_buffer.0, f.write_extents),
            active: None,
            queue: VecDeque::with_capacity(QUEUE),
            done: VecDeque::with_capacity(QUEUE),
            now: Time::ZERO,
            wake: None,
            wake_told: None,
            reads_since_destage: 0,
            capacity: f.capacity.0,
            overhead: f.command_overhead,
            link: ((512u64 * 1_000_000_000) << 16) / f.link_rate,
            write_cache: f.write_cache,
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
        let now = now.max(self.now);
        self.advance(now);
        self.now = now;
        if let DriveInput::Submit(io) = input {
            if self.active.is_none() {
                self.begin(io);
                // A command of no duration, or one that let the mechanism go.
                self.advance(now);
            } else {
                self.queue.push_back(io);
            }
        }
        let due = self.mechanism_due().min(self.command_due());
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
    /// is under way counts in full; reading ahead counts once its data are asked for.
    pub fn busy(&self) -> Nanos {
        self.mechanism.busy()
    }

    /// Carries out everything due up to `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        loop {
            let (mechanism, command) = (self.mechanism_due(), self.command_due());
            let due = mechanism.min(command);
            if due > now {
                return;
            }
            self.now = self.now.max(due);
            if mechanism <= command {
                self.mechanism_done();
            } else {
                self.command_done();
            }
        }
    }

    /// When the mechanism ends what it does, or begins to destage.
    fn mechanism_due(&self) -> Time {
        match &self.mechanism.work {
            Work::Writing { until, .. } => *until,
            _ if self.writes.is_empty() => NEVER,
            Work::Idle => self.now,
            Work::Reading(_) if self.destage_urgent() => self.now,
            Work::Reading(stream) => self.mechanism.passed(stream, stream.limit).max(self.now),
        }
    }

    /// When the command at work gets on by itself.
    fn command_due(&self) -> Time {
        match self.active {
            Some(Active { step: Step::Finish { at, .. } | Step::Transfer { at, .. }, .. }) => at,
            _ => NEVER,
        }
    }

    fn destage_urgent(&self) -> bool {
        matches!(self.active, Some(Active { step: Step::Room | Step::Destaged, .. }))
    }

    fn mechanism_done(&mut self) {
        if let Work::Writing { destage, .. } = self.mechanism.work {
            self.mechanism.work = Work::Idle;
            if destage {
                self.writes.arrived();
            }
            self.go_on();
        }
        if !matches!(self.mechanism.work, Work::Writing { .. }) && self.mechanism_due() <= self.now
        {
            self.destage();
        }
    }

    /// The mechanism has come free, or room has: gets on with the command that waited for it.
    fn go_on(&mut self) {
        let Some(active) = self.active else { return };
        match active.step {
            Step::Read { from } => self.read_medium(active, from),
            Step::Write => self.write_medium(active),
            Step::Room => self.transfer(active),
            Step::Destaged if self.writes.is_clean() => self.finish(active, active.ready),
            Step::Destaged | Step::Finish { .. } | Step::Transfer { .. } => {}
        }
    }

    /// Sends the next piece from the write buffer to the medium.
    fn destage(&mut self) {
        self.stop_reading(self.now);
        let Some((start, end)) = self.writes.next() else { return };
        let spot = self.mechanism.geometry().locate(start);
        let len = (end - start).min(u64::from(spot.sectors - spot.sector));
        self.writes.send(start, len);
        self.mechanism.write(self.now, (start, len), self.now, true);
        self.reads_since_destage = 0;
    }

    fn command_done(&mut self) {
        let Some(mut active) = self.active else { return };
        match active.step {
            Step::Finish { outcome, .. } => {
                self.done.push_back((active.io.id, outcome));
                self.active = None;
                if let Some(io) = self.queue.pop_front() {
                    self.begin(io);
                }
            }
            Step::Transfer { sectors, .. } => {
                let (start, end) = (active.next, active.next + sectors);
                self.writes.insert(start, end);
                self.drop_cached(start, end);
                active.next = end;
                if end == active.io.at.0 + u64::from(active.io.len) {
                    self.finish(active, self.now);
                } else {
                    self.transfer(active);
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self, active: Active, at: Time) {
        let step = Step::Finish { at: at.max(self.now), outcome: IoOutcome::Ok };
        self.active = Some(Active { step, ..active });
    }

    /// Time on the interface.
    fn link(&self, sectors: u64) -> Nanos {
        Nanos(((u128::from(sectors) * u128::from(self.link)) >> 16) as u64)
    }

    fn begin(&mut self, io: DriveIo) {
        let ready = self.now + self.overhead;
        let finish = Step::Finish { at: ready, outcome: IoOutcome::Ok };
        let mut active = Active { io, ready, next: io.at.0, step: finish };
        if io.op == DriveOp::Flush {
            if !self.writes.is_clean() {
                active.step = Step::Destaged;
            }
            self.active = Some(active);
            return;
        }
        if io.at.0.checked_add(io.len.into()).is_none_or(|end| end > self.capacity) {
            let first_bad = Sector(io.at.0.max(self.capacity));
            let outcome = IoOutcome::MediaError { first_bad };
            active.step = Step::Finish { at: ready, outcome };
            self.active = Some(active);
            return;
        }
        match io.op {
            _ if io.len == 0 => self.active = Some(active),
            DriveOp::Read => self.read(active),
            DriveOp::Write if io.fua || !self.write_cache => {
                if matches!(self.mechanism.work, Work::Writing { .. }) {
                    self.active = Some(Active { step: Step::Write, ..active });
                } else {
                    self.write_medium(active);
                }
            }
            DriveOp::Write | DriveOp::Flush => self.transfer(active),
        }
    }
}

/// Reading.
impl HardDisk {
    fn read(&mut self, active: Active) {
        let writing = matches!(self.mechanism.work, Work::Writing { .. });
        if !self.writes.is_empty() && !writing && self.reads_since_destage >= READS_PER_DESTAGE {
            self.destage();
        }
        self.reads_since_destage = self.reads_since_destage.saturating_add(1);
        let start = active.io.at.0;
        let end = start + u64::from(active.io.len);
        let (from, segment) = self.cached(start, end, active.ready);
        if from >= end {
            let at = active.ready + self.link(end - start);
            self.finish(active, at);
            if let Some(segment) = segment {
                self.read_ahead_again(segment, end, active.ready);
            }
        } else if let Some(passed) = self.follow(from, end, active.ready) {
            self.finish_read(active, passed);
        } else if matches!(self.mechanism.work, Work::Writing { .. }) {
            self.active = Some(Active { step: Step::Read { from }, ..active });
        } else {
            self.read_medium(active, from);
        }
    }

    /// The first sector of `from .. end` that is in no cache by `ready`, and the last segment used.
    fn cached(&mut self, mut from: u64, end: u64, ready: Time) -> (u64, Option<usize>) {
        let mut used = None;
        while from < end {
            if let Some(to) = self.writes.covers(from) {
                from = to;
                continue;
            }
            let mut filling = None;
            if let Work::Reading(stream) = self.mechanism.work {
                filling = Some(stream.segment);
                if let Some(to) = self.read_by(&stream, from, end, ready) {
                    from = to;
                    used = filling;
                    continue;
                }
            }
            let Some((segment, to)) = self.segments.find(from, filling) else { break };
            self.segments.touch(segment);
            used = Some(segment);
            from = to;
        }
        (from, used)
    }

    /// How far the present stream has read from `from` on by `ready`, if it has to `end` or if it has
    /// come to its limit; otherwise it is to be followed.
    fn read_by(&mut self, stream: &Stream, from: u64, end: u64, ready: Time) -> Option<u64> {
        if !self.kept(stream, from, ready) {
            return None;
        }
        if end <= stream.limit {
            let geometry = self.mechanism.geometry();
            let (media, _) = geometry.end(&geometry.locate(from), from, end - from);
            if stream.time(media) <= ready {
                self.mechanism.charge(media);
                self.extend(stream, end, ready);
                return Some(end);
            }
        }
        (self.mechanism.passed(stream, stream.limit) <= ready).then_some(stream.limit)
    }

    /// Whether sector `at` has a place in the segment of the stream: not dropped, not beyond.
    fn kept(&self, stream: &Stream, at: u64, now: Time) -> bool {
        if at >= stream.limit || at < self.segments.start(stream.segment, 0) {
            return false;
        }
        at + self.segments.size() >= stream.limit
            || at >= self.segments.start(stream.segment, self.mechanism.front(stream, now))
    }

    /// Lets the stream go on for a segment beyond `end`, if it has not come to rest by `now`.
    fn extend(&mut self, stream: &Stream, end: u64, now: Time) {
        let limit = (end + self.segments.size()).min(self.capacity);
        if limit > stream.limit
            && self.mechanism.passed(stream, stream.limit) > now
            && let Work::Reading(stream) = &mut self.mechanism.work
        {
            stream.limit = limit;
        }
    }

    /// If the present stream gets to `from` no later than the head could by itself: when it has
    /// passed `end`.
    fn follow(&mut self, from: u64, end: u64, ready: Time) -> Option<Time> {
        let Work::Reading(stream) = self.mechanism.work else { return None };
        if !self.kept(&stream, from, ready) || self.mechanism.passed(&stream, stream.limit) <= ready
        {
            return None;
        }
        let spot = self.mechanism.geometry().locate(from);
        if self.mechanism.quicker(&stream, ready, &spot, stream.time(spot.media)) {
            return None;
        }
        let (media, _) = self.mechanism.geometry().end(&spot, from, end - from);
        self.segments.touch(stream.segment);
        self.mechanism.charge(media);
        self.extend(&stream, end, ready);
        Some(stream.time(media))
    }

    /// Moves the head to `from` and reads the rest of the command.
    fn read_medium(&mut self, active: Active, from: u64) {
        let start = active.ready.max(self.now);
        self.stop_reading(start);
        let end = active.io.at.0 + u64::from(active.io.len);
        let segment = self.segments.open(from);
        let limit = (end + self.segments.size()).min(self.capacity);
        let passed = self.mechanism.read(start, (from, end), (segment, limit), true);
        self.finish_read(active, passed);
    }

    /// The data cross the interface as they come in; the last block after the medium has passed.
    fn finish_read(&mut self, active: Active, passed: Time) {
        let len = u64::from(active.io.len);
        let last = passed + self.link(len.min(BLOCK));
        self.finish(active, last.max(active.ready + self.link(len)));
    }

    /// Starts reading ahead again when a reader at `end` has made room in its segment.
    fn read_ahead_again(&mut self, segment: usize, end: u64, now: Time) {
        match self.mechanism.work {
            Work::Writing { .. } => return,
            Work::Idle => {}
            Work::Reading(stream) => {
                if self.mechanism.passed(&stream, stream.limit) > now {
                    return;
                }
                self.stop_reading(now);
            }
        }
        let from = self.segments.end(segment);
        let limit = (end + self.segments.size()).min(self.capacity);
        if self.writes.is_empty() && (end..limit).contains(&from) {
            let segment = self.segments.open(from);
            self.mechanism.read(now, (from, from + 1), (segment, limit), false);
        }
    }

    fn stop_reading(&mut self, now: Time) {
        if let Some((segment, end)) = self.mechanism.stop(now) {
            self.segments.close(segment, end);
        }
    }
}

/// Writing.
impl HardDisk {
    /// Takes as much of a buffered write as there is room for.
    fn transfer(&mut self, active: Active) {
        let left = active.io.at.0 + u64::from(active.io.len) - active.next;
        let most = left.min(TRANSFER);
        let room = self.writes.room();
        let enough = most.min((self.writes.capacity() / 8).max(1));
        let sectors = most.min(room);
        let step = if room >= enough && self.writes.can_insert(active.next, active.next + sectors) {
            Step::Transfer { at: active.ready.max(self.now) + self.link(sectors), sectors }
        } else {
            Step::Room
        };
        self.active = Some(Active { step, ..active });
    }

    /// Writes past the buffer; the mechanism is not writing.
    fn write_medium(&mut self, active: Active) {
        let start = active.ready.max(self.now);
        let (at, len) = (active.io.at.0, u64::from(active.io.len));
        self.stop_reading(start);
        self.writes.forget(at, at + len);
        self.drop_cached(at, at + len);
        let arrived = active.ready + self.link(len.min(BLOCK));
        let until = self.mechanism.write(start, (at, len), arrived, false);
        self.finish(active, until);
    }

    /// Drops what a write makes stale from the read cache.
    fn drop_cached(&mut self, start: u64, end: u64) {
        let mut filling = None;
        if let Work::Reading(stream) = self.mechanism.work {
            filling = Some(stream.segment);
            let kept = self.segments.start(stream.segment, 0);
            if start < stream.limit && kept < end {
                let front = self.mechanism.front(&stream, self.now);
                if end <= front {
                    self.segments.drop_before(stream.segment, end);
                } else if start >= front {
                    if let Work::Reading(stream) = &mut self.mechanism.work {
                        stream.limit = start;
                    }
                } else {
                    self.stop_reading(self.now);
                    filling = None;
                }
            }
        }
        self.segments.drop_range(start, end, filling);
    }
}

const NEVER: Time = Time(u64::MAX);

/// SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
