//! A shingled disk that hides its zones (drive-managed shingled magnetic recording), in virtual time.
//!
//! Built upon [`HardDisk`]: the outer edge of the medium is a media cache of ordinary tracks, the rest are
//! zones of overlapping tracks, each rewritten as a whole. After Aghayev and Desnoyers, *Skylight - A
//! window on shingled disk operation*, FAST 2015, as far as it is common to the drives they took apart:
//!
//! * Writes are appended to the media cache, so random writes run at sequential speed while it has room.
//! * A run of writes in order longer than 1 MiB goes straight to its zone from the next start of a zone on.
//!   When it ends inside a zone, the rest of the zone is read and written again.
//! * Zones are cleaned oldest data first: what the cache holds of the zone is read, the zone is read and
//!   written, the drive's buffer is flushed, the cache forgets the zone. This happens when the drive has
//!   rested for `clean_after`, and when a write finds no room: then the write waits.
//! * Reads are put together from cache and zones.
//!
//! **Left out**: the map's own reads and writes, wear of the order of zones (each stays at its place), and
//! a second copy of a zone while it is rewritten.

mod map;
mod spec;

use std::collections::VecDeque;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use crate::disk::HardDisk;
use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use map::MediaCache;
pub(crate) use spec::{KEYS, figures};
pub use spec::{SmrFigures, SmrSpec};

/// What cleaning reads or writes at once: 2 MiB.
const PIECE: u64 = 4_096;
/// From this length on, 1 MiB, a run of writes may go straight to its zone.
const RUN: u64 = 2_048;
/// Runs that are followed at once.
const RUNS: usize = 8;

/// Whose an I/O to the mechanism is.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Command(u32),
    Cleaning,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    io: DriveIo,
    /// Pieces under way.
    left: u32,
    outcome: IoOutcome,
}

/// A run of writes in order.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end: u64,
    len: u64,
    /// It goes straight to its zone.
    direct: bool,
}

/// What is done to a zone, in this order.
#[derive(Clone, Copy, Debug)]
enum Cleaning {
    /// Reading what the cache holds, from this sector on.
    Gather(u64),
    /// Reading the zone, from this sector on.
    Read(u64),
    /// Writing it, from this sector on.
    Write(u64),
    Flush,
    Done,
}

/// A zone, or the rest of one, that is being rewritten.
#[derive(Clone, Copy, Debug)]
struct Job {
    start: u64,
    end: u64,
    /// What the cache took later than this stays in it.
    before: u64,
    step: Cleaning,
}

/// A shingled disk. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct Smr {
    disk: HardDisk,
    cache: MediaCache,
    cache_size: u64,
    capacity: u64,
    zone: u64,
    clean_after: Nanos,
    commands: Vec<Command>,
    free_commands: Vec<u32>,
    owners: Vec<Owner>,
    free_owners: Vec<u32>,
    /// Writes without room in the media cache, in order.
    waiting: VecDeque<u32>,
    runs: [Run; RUNS],
    oldest_run: usize,
    /// Rests of zones behind runs that ended.
    torn: VecDeque<(u64, u64)>,
    job: Option<Job>,
    working: u32,
    rests_from: Time,
    cleaned: u64,
    done: VecDeque<(DriveIoId, IoOutcome)>,
    now: Time,
    disk_wake: Option<Time>,
    wake_told: Option<Time>,
}

impl Smr {
    /// A drive at rest with an empty media cache. The seed gives the angle of the platters at time 0.
    pub fn new(spec: &SmrSpec, seed: u64) -> Self {
        let f = spec.figures();
        Self {
            disk: HardDisk::new(&spec.disk, seed),
            cache: MediaCache::new(f.media_cache.0, f.media_cache_extents),
            cache_size: f.media_cache.0,
            capacity: f.capacity().0,
            zone: f.zone.0,
            clean_after: f.clean_after,
            commands: Vec::new(),
            free_commands: Vec::new(),
            owners: Vec::new(),
            free_owners: Vec::new(),
            waiting: VecDeque::new(),
            runs: [Run::default(); RUNS],
            oldest_run: 0,
            torn: VecDeque::new(),
            job: None,
            working: 0,
            rests_from: Time::ZERO,
            cleaned: 0,
            done: VecDeque::new(),
            now: Time::ZERO,
            disk_wake: None,
            wake_told: None,
        }
    }

    /// What the drive holds, media cache not counted.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// Total time the mechanism worked, cleaning included.
    pub fn busy(&self) -> Nanos {
        self.disk.busy()
    }

    /// How many zones were rewritten.
    pub fn cleaned(&self) -> u64 {
        self.cleaned
    }

    /// Takes an input; as [`HardDisk::handle`].
    pub fn handle(&mut self, now: Time, input: DriveInput) {
        self.now = self.now.max(now);
        if self.disk_wake.is_some_and(|at| at <= self.now) {
            self.disk_wake = None;
        }
        self.disk.handle(self.now, DriveInput::Wake);
        self.drain();
        if let DriveInput::Submit(io) = input {
            self.begin(io);
        }
        self.drain();
        self.clean();
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<DriveOutput> {
        if let Some((id, outcome)) = self.done.pop_front() {
            return Some(DriveOutput::Complete { id, outcome });
        }
        let rested = self.wants_cleaning().then_some(self.rests_from + self.clean_after);
        let wake = self.disk_wake.into_iter().chain(rested).min();
        if wake == self.wake_told {
            return None;
        }
        self.wake_told = wake;
        wake.map(DriveOutput::WakeAt)
    }

    /// Whether rest would be used.
    fn wants_cleaning(&self) -> bool {
        let idle = self.working == 0 && self.job.is_none();
        let torn = || self.runs.iter().any(|run| run.direct && !run.end.is_multiple_of(self.zone));
        idle && (!self.cache.is_empty() || !self.torn.is_empty() || torn())
    }

    fn drain(&mut self) {
        while let Some(output) = self.disk.poll() {
            match output {
                DriveOutput::WakeAt(at) => self.disk_wake = Some(at),
                DriveOutput::Complete { id, outcome } => {
                    self.free_owners.push(id.0);
                    match self.owners[id.0 as usize] {
                        Owner::Cleaning => self.cleaning_done(),
                        Owner::Command(slot) => self.piece_done(slot, outcome),
                    }
                }
            }
        }
    }

    /// Hands an I/O to the mechanism; `at` counts from the start of the medium.
    fn send(&mut self, owner: Owner, op: DriveOp, at: u64, len: u64, fua: bool) {
        let id = self.free_owners.pop().unwrap_or_else(|| {
            self.owners.push(owner);
            self.owners.len() as u32 - 1
        });
        self.owners[id as usize] = owner;
        let io = DriveIo { id: DriveIoId(id), op, at: Sector(at), len: len as u32, fua };
        self.disk.handle(self.now, DriveInput::Submit(io));
    }

    fn begin(&mut self, io: DriveIo) {
        let command = Command { io, left: 0, outcome: IoOutcome::Ok };
        let slot = self.free_commands.pop().unwrap_or_else(|| {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        });
        self.commands[slot as usize] = command;
        self.working += 1;
        let (at, len) = (io.at.0, u64::from(io.len));
        if io.op == DriveOp::Flush {
            self.piece(slot, DriveOp::Flush, 0, 0);
        } else if at.checked_add(len).is_none_or(|end| end > self.capacity) {
            let first_bad = Sector(at.max(self.capacity));
            self.commands[slot as usize].outcome = IoOutcome::MediaError { first_bad };
            // The electronics still look at it.
            self.piece(slot, DriveOp::Read, 0, 0);
        } else if len == 0 {
            self.piece(slot, DriveOp::Read, 0, 0);
        } else if io.op == DriveOp::Read {
            self.read(slot, at, at + len);
        } else {
            self.waiting.push_back(slot);
            self.take_writes();
        }
    }

    fn piece(&mut self, slot: u32, op: DriveOp, at: u64, len: u64) {
        let command = &mut self.commands[slot as usize];
        command.left += 1;
        let fua = command.io.fua;
        self.send(Owner::Command(slot), op, at, len, fua);
    }

    fn piece_done(&mut self, slot: u32, outcome: IoOutcome) {
        let command = &mut self.commands[slot as usize];
        command.left -= 1;
        if outcome != IoOutcome::Ok {
            command.outcome = outcome;
        }
        if command.left == 0 {
            self.done.push_back((command.io.id, command.outcome));
            self.free_commands.push(slot);
            self.working -= 1;
            self.rests_from = self.now;
        }
    }

    fn read(&mut self, slot: u32, start: u64, end: u64) {
        let mut from = start;
        // All pieces are counted before the first can end: the mechanism answers in `drain`.
        while from < end {
            let piece = self.cache.piece(from, end);
            let place = piece.cached.unwrap_or(self.cache_size + piece.at);
            self.piece(slot, DriveOp::Read, place, piece.len);
            from += piece.len;
        }
    }
}

/// Writing.
impl Smr {
    /// Carries out waiting writes while there is room for them.
    fn take_writes(&mut self) {
        while let Some(slot) = self.waiting.front().copied() {
            let io = self.commands[slot as usize].io;
            let (start, end) = (io.at.0, io.at.0 + u64::from(io.len));
            let run = self.runs.iter().position(|run| run.len > 0 && run.end == start);
            let known = run.map_or(Run::default(), |run| self.runs[run]);
            let boundary = start.next_multiple_of(self.zone).min(end);
            // A write that is longer than the cache is a run of its own.
            let long = known.len >= RUN || u64::from(io.len) > self.cache_size / 2;
            let direct_from = match (known.direct, long) {
                (true, _) => start,
                (false, true) => boundary,
                (false, false) => end,
            };
            if direct_from > start && !self.cache.has_room(direct_from - start) {
                return;
            }
            self.waiting.pop_front();
            let direct = direct_from < end || known.direct;
            self.follow(run, Run { end, len: known.len + (end - start), direct });
            if direct_from > start {
                for (place, len) in self.cache.append(start, direct_from - start) {
                    if len > 0 {
                        self.piece(slot, DriveOp::Write, place, len);
                    }
                }
            }
            if direct_from < end {
                self.cache.forget(direct_from, end, u64::MAX);
                let place = self.cache_size + direct_from;
                self.piece(slot, DriveOp::Write, place, end - direct_from);
            }
        }
    }

    fn follow(&mut self, known: Option<usize>, run: Run) {
        let index = known.unwrap_or_else(|| {
            self.oldest_run = (self.oldest_run + 1) % RUNS;
            self.end_run(self.oldest_run);
            self.oldest_run
        });
        self.runs[index] = run;
    }

    /// A run goes on no more: the rest of its zone, whose tracks it has overlapped, is rewritten.
    fn end_run(&mut self, index: usize) {
        let run = std::mem::take(&mut self.runs[index]);
        let zone_end = run.end.next_multiple_of(self.zone).min(self.capacity);
        if run.direct && run.end < zone_end {
            self.torn.push_back((run.end, zone_end));
        }
    }
}

/// Cleaning.
impl Smr {
    /// Begins to clean when a write waits or the drive has rested.
    fn clean(&mut self) {
        let rested = self.working == 0 && self.now >= self.rests_from + self.clean_after;
        while self.job.is_none() && (rested || !self.waiting.is_empty()) {
            if rested {
                (0..RUNS).for_each(|run| self.end_run(run));
            }
            let before = self.cache.head();
            let torn = self.torn.pop_front();
            let range = torn.or_else(|| {
                let zone = self.cache.oldest()? / self.zone * self.zone;
                Some((zone, (zone + self.zone).min(self.capacity)))
            });
            let Some((start, end)) = range else { return };
            self.job = Some(Job { start, end, before, step: Cleaning::Gather(start) });
            self.next_step();
            self.drain();
        }
    }

    /// Sends the next I/O of the job.
    fn next_step(&mut self) {
        while let Some(mut job) = self.job {
            let chore = Owner::Cleaning;
            match job.step {
                Cleaning::Gather(from) => {
                    if from == job.end {
                        job.step = Cleaning::Read(job.start);
                        self.job = Some(job);
                        continue;
                    }
                    let piece = self.cache.piece(from, job.end);
                    job.step = Cleaning::Gather(from + piece.len);
                    self.job = Some(job);
                    let Some(place) = piece.cached else { continue };
                    self.send(chore, DriveOp::Read, place, piece.len, false);
                }
                Cleaning::Read(from) => {
                    let len = (job.end - from).min(PIECE);
                    let next = from + len;
                    let done = next == job.end;
                    let step = if done { Cleaning::Write(job.start) } else { Cleaning::Read(next) };
                    self.job = Some(Job { step, ..job });
                    self.send(chore, DriveOp::Read, self.cache_size + from, len, false);
                }
                Cleaning::Write(from) => {
                    let len = (job.end - from).min(PIECE);
                    let next = from + len;
                    let done = next == job.end;
                    let step = if done { Cleaning::Flush } else { Cleaning::Write(next) };
                    self.job = Some(Job { step, ..job });
                    self.send(chore, DriveOp::Write, self.cache_size + from, len, false);
                }
                Cleaning::Flush => {
                    self.job = Some(Job { step: Cleaning::Done, ..job });
                    self.send(chore, DriveOp::Flush, 0, 0, false);
                }
                Cleaning::Done => {
                    self.job = None;
                    self.cleaned += 1;
                    self.cache.forget(job.start, job.end, job.before);
                    self.take_writes();
                }
            }
            return;
        }
    }

    fn cleaning_done(&mut self) {
        self.next_step();
    }
}
