//! An SSD in virtual time.
//!
//! **Modelled.** A controller that takes commands one after another; dies that read, program and erase
//! one thing at a time; channels and the interface as servers; reads that interrupt programming; a
//! write buffer; a pseudo-SLC cache of fixed size that is emptied when the drive rests; copying for
//! garbage collection, whose extent comes from a sample of the pages (`ftl`); flushes, which cost
//! nothing with power-loss protection and a programming and a write of the map without.
//!
//! **Reading.** A command goes to every die that holds a page of it; pages lie on the dies in turn, from
//! another die in each row. Read pages cross the channel, then the interface, each first come, first
//! served. A read interrupts programming and erasing after `program_suspend` at the latest; each may be
//! interrupted [`MOST_SUSPENDS`] times.
//!
//! **Writing.** A write completes when its data are in the buffer (with `fua` and no power-loss
//! protection: when durable). Whenever a word line's worth of data has come together it is programmed to
//! the next idle die; the rest after 10 ms, or at once for a flush. Programming in native mode
//! is charged the copying that goes with it, which the die does before it takes new data.
//!
//! **Garbage collection.** Random writes are charged what the sample says, at first the steady state
//! after long random writing over `live_data`. Writes in order are charged nothing once a run is longer
//! than 4 MiB: both are what a drive gives that has done the same for long, as data sheets state it.
//!
//! **Left out**: a map of every page, so what is read is never found in the buffer and never absent from
//! flash; the three kinds of pages of a TLC word line (their mean is `page_read`); reading ahead;
//! discards; overwriting in the buffer; wear, read errors and retries, thermal limits, power states.

mod flash;
mod ftl;
mod spec;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use flash::{Flash, Work};
use ftl::Ftl;
pub(crate) use spec::{KEYS, figures};
pub use spec::{SsdFigures, SsdSpec};

/// The most sectors of a write that cross the interface at once: 128 KiB.
const TRANSFER: u64 = 256;
/// How long a part of a word line waits in the buffer for more.
const SETTLE: Nanos = Nanos::from_millis(10);
/// How long the drive rests before it empties the pseudo-SLC cache.
const REST: Nanos = Nanos::from_millis(500);
/// From this length on a run of writes in order leaves whole blocks behind, which cost no copying.
const RUN: u64 = 4 << 11;
/// Runs of writes that are followed at once.
const RUNS: usize = 8;
/// How often programming or erasing may be interrupted.
pub const MOST_SUSPENDS: u32 = 8;
/// Commands for which there is room from the start.
const QUEUE: usize = 256;

/// Something inside the drive that happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The controller has understood a command.
    Arrived(u32),
    /// A page is in the register of its die.
    Read { command: u32, die: u16, sectors: u16 },
    /// A page has crossed its channel.
    Crossed { command: u32, sectors: u16 },
    /// Written data are in the buffer.
    Landed { command: u32, sectors: u16 },
    /// A command ends.
    Ended(u32),
    /// A die ends what it does; it may have been interrupted.
    Worked(u16),
    /// Perhaps the drive has rested long enough.
    Rested,
}

/// A command at work.
#[derive(Clone, Copy, Debug)]
struct Command {
    io: DriveIo,
    /// Reads: pages that have not crossed the interface. Writes: sectors that have not.
    left: u64,
    outcome: IoOutcome,
}

/// A run of writes in order.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end: u64,
    len: u64,
}

/// Something that serves one after another.
#[derive(Clone, Copy, Debug, Default)]
struct Station {
    free: Time,
    busy: u64,
}

impl Station {
    fn serve(&mut self, now: Time, cost: Nanos) -> Time {
        self.free = self.free.max(now) + cost;
        self.busy += cost.0;
        self.free
    }
}

/// An SSD. See the module for what is modelled.
#[derive(Clone, Debug)]
pub struct Ssd {
    f: SsdFigures,
    ftl: Ftl,
    flash: Flash,
    controller: Station,
    /// Towards the host; with a half-duplex interface both ways.
    link_out: Station,
    link_in: Station,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    commands: Vec<Command>,
    free_commands: Vec<u32>,
    working: u32,
    queue: VecDeque<DriveIo>,
    done: VecDeque<(DriveIoId, IoOutcome)>,
    buffer: Buffer,
    runs: [Run; RUNS],
    oldest_run: usize,
    last_command: Time,
    rest_due: bool,
    now: Time,
    wake_told: Option<Time>,
}

/// The write buffer; positions count the sectors ever written.
#[derive(Clone, Debug)]
struct Buffer {
    /// Sectors that are reserved, in the buffer or being programmed.
    used: u64,
    landed: u64,
    sent: u64,
    /// What lies before this is to be programmed even if it is no whole word line.
    forced: u64,
    /// What lay before this when the map was written last.
    mapped: u64,
    /// Until when the map is being written.
    map_free: Time,
    /// How long it was being written, for flushes.
    map_busy: Nanos,
    /// Writes whose data wait for room, in order; the first may be crossing the interface.
    incoming: VecDeque<u32>,
    crossing: bool,
    /// Flushes and writes that end when everything before a position is durable.
    waiting: VecDeque<(u32, u64)>,
}

impl Ssd {
    /// A drive at rest. The seed only turns the order of the dies; all else follows from the figures.
    pub fn new(spec: &SsdSpec, seed: u64) -> Self {
        let f = spec.figures().clone();
        Self {
            ftl: spec.aged.clone(),
            flash: Flash::new(&f, seed),
            controller: Station::default(),
            link_out: Station::default(),
            link_in: Station::default(),
            events: BinaryHeap::with_capacity(4 * QUEUE),
            sequence: 0,
            commands: Vec::with_capacity(QUEUE),
            free_commands: Vec::with_capacity(QUEUE),
            working: 0,
            queue: VecDeque::with_capacity(QUEUE),
            done: VecDeque::with_capacity(QUEUE),
            buffer: Buffer {
                used: 0,
                landed: 0,
                sent: 0,
                forced: 0,
                mapped: 0,
                map_free: Time::ZERO,
                map_busy: Nanos(0),
                incoming: VecDeque::with_capacity(QUEUE),
                crossing: false,
                waiting: VecDeque::with_capacity(QUEUE),
            },
            runs: [Run::default(); RUNS],
            oldest_run: 0,
            last_command: Time::ZERO,
            rest_due: false,
            now: Time::ZERO,
            wake_told: None,
            f,
        }
    }

    /// What the drive holds.
    pub fn capacity(&self) -> Sectors {
        self.f.capacity
    }

    /// How many bytes are programmed for each byte written at random, with garbage collection as far as
    /// it has come.
    pub fn amplification(&self) -> f64 {
        1.0 + self.ftl.copies() as f64 / 65_536.0
    }

    /// How long the busiest of controller, interface, dies (on average) and the map that flushes have written has
    /// worked, by what has been begun so far.
    pub fn busy(&self) -> Nanos {
        let dies = self.flash.busy() / u64::from(self.f.dies);
        let link = self.link_out.busy.max(self.link_in.busy);
        Nanos(self.controller.busy.max(link).max(dies).max(self.buffer.map_busy.0))
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
            self.last_command = now;
            if self.working < self.f.queue_depth {
                self.begin(io);
                self.advance(now);
            } else {
                self.queue.push_back(io);
            }
        }
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<DriveOutput> {
        if let Some((id, outcome)) = self.done.pop_front() {
            return Some(DriveOutput::Complete { id, outcome });
        }
        let wake = self.events.peek().map(|Reverse((time, ..))| *time);
        if wake == self.wake_told {
            return None;
        }
        self.wake_told = wake;
        wake.map(DriveOutput::WakeAt)
    }

    fn schedule(&mut self, at: Time, happening: Event) {
        self.events.push(Reverse((at, self.sequence, happening)));
        self.sequence += 1;
    }

    /// Lets everything happen that is due up to `now`, each at its own time.
    fn advance(&mut self, now: Time) {
        while let Some(Reverse((time, _, happening))) = self.events.peek().copied()
            && time <= now
        {
            self.events.pop();
            self.now = self.now.max(time);
            match happening {
                Event::Arrived(command) => self.arrived(command),
                Event::Read { command, die, sectors } => {
                    let at = self.flash.cross(self.now, die, sectors.into());
                    self.schedule(at, Event::Crossed { command, sectors });
                }
                Event::Crossed { command, sectors } => {
                    let at = self.link(true, sectors.into());
                    let command_left = &mut self.commands[command as usize].left;
                    *command_left -= 1;
                    if *command_left == 0 {
                        self.schedule(at, Event::Ended(command));
                    }
                }
                Event::Landed { command, sectors } => self.landed(command, sectors.into()),
                Event::Ended(command) => self.ended(command),
                Event::Worked(die) => self.worked(die),
                Event::Rested => self.rested(),
            }
        }
    }

    /// When a piece that comes to the interface now has crossed it.
    fn link(&mut self, out: bool, sectors: u64) -> Time {
        let cost = Nanos(sectors * 512 * 1_000_000_000 / self.f.link_rate);
        let out = out || !self.f.link_duplex;
        let server = if out { &mut self.link_out } else { &mut self.link_in };
        server.serve(self.now, cost)
    }

    fn begin(&mut self, io: DriveIo) {
        let command = Command { io, left: u64::from(io.len), outcome: IoOutcome::Ok };
        let slot = if let Some(slot) = self.free_commands.pop() {
            self.commands[slot as usize] = command;
            slot
        } else {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        };
        self.working += 1;
        let understood = self.controller.serve(self.now, self.f.controller_time);
        self.schedule(understood + self.f.command_overhead, Event::Arrived(slot));
    }

    fn arrived(&mut self, slot: u32) {
        let io = self.commands[slot as usize].io;
        if io.op == DriveOp::Flush {
            self.flush(slot);
            return;
        }
        if io.at.0.checked_add(io.len.into()).is_none_or(|end| end > self.f.capacity.0) {
            let first_bad = Sector(io.at.0.max(self.f.capacity.0));
            self.commands[slot as usize].outcome = IoOutcome::MediaError { first_bad };
            self.ended(slot);
            return;
        }
        match io.op {
            _ if io.len == 0 => self.ended(slot),
            DriveOp::Read => self.read(slot, io),
            DriveOp::Write | DriveOp::Flush => {
                self.buffer.incoming.push_back(slot);
                self.take_in();
            }
        }
    }

    fn read(&mut self, slot: u32, io: DriveIo) {
        let (mut at, end) = (io.at.0, io.at.0 + u64::from(io.len));
        let mut pages = 0;
        while at < end {
            let page = at / self.f.page.0;
            let next = ((page + 1) * self.f.page.0).min(end);
            let die = self.flash.die_of(page);
            let read = self.flash.read(self.now, die);
            let sectors = (next - at) as u16;
            self.schedule(read, Event::Read { command: slot, die, sectors });
            (at, pages) = (next, pages + 1);
        }
        self.commands[slot as usize].left = pages;
    }

    fn ended(&mut self, slot: u32) {
        let Command { io, outcome, .. } = self.commands[slot as usize];
        self.done.push_back((io.id, outcome));
        self.free_commands.push(slot);
        self.working -= 1;
        self.last_command = self.now;
        if let Some(io) = self.queue.pop_front() {
            self.begin(io);
        } else if self.working == 0 {
            self.watch_rest();
        }
    }
}

/// Writing.
impl Ssd {
    /// Lets the first waiting write cross the interface when there is room for a piece of it.
    fn take_in(&mut self) {
        let Some(slot) = self.buffer.incoming.front().copied() else { return };
        let room = self.f.write_buffer.0 - self.buffer.used;
        let piece = self.commands[slot as usize].left.min(TRANSFER).min(room);
        if self.buffer.crossing || piece == 0 {
            return;
        }
        self.buffer.crossing = true;
        self.buffer.used += piece;
        let at = self.link(false, piece);
        self.schedule(at, Event::Landed { command: slot, sectors: piece as u16 });
    }

    fn landed(&mut self, slot: u32, sectors: u64) {
        self.buffer.crossing = false;
        self.buffer.landed += sectors;
        let command = &mut self.commands[slot as usize];
        let at = command.io.at.0 + u64::from(command.io.len) - command.left;
        command.left -= sectors;
        let (last, fua) = (command.left == 0, command.io.fua);
        self.charge(at, sectors);
        if last {
            self.buffer.incoming.pop_front();
            if fua && !self.f.power_loss_protection {
                self.wait_until_durable(slot);
            } else {
                self.ended(slot);
            }
        }
        self.program();
        self.take_in();
    }

    /// Charges what has landed the copying that goes with it.
    fn charge(&mut self, at: u64, sectors: u64) {
        self.ftl.write(at, sectors);
        let run = if let Some(run) = self.runs.iter_mut().find(|run| run.len > 0 && run.end == at) {
            run
        } else {
            self.oldest_run = (self.oldest_run + 1) % RUNS;
            let run = &mut self.runs[self.oldest_run];
            *run = Run { end: at, len: 0 };
            run
        };
        run.end = at + sectors;
        run.len += sectors;
        if run.len <= RUN {
            self.flash.charge(sectors * self.ftl.copies());
        }
    }

    /// Sends word lines to idle dies.
    fn program(&mut self) {
        loop {
            let unit = self.flash.next_unit();
            let there = self.buffer.landed - self.buffer.sent;
            let take = there.min(unit);
            let whole = there >= unit || self.buffer.sent < self.buffer.forced;
            if take == 0 || !whole {
                break;
            }
            let Some((die, at)) = self.flash.program(self.now, self.buffer.sent, take) else {
                break;
            };
            self.buffer.sent += take;
            self.schedule(at, Event::Worked(die));
        }
        if self.buffer.landed > self.buffer.sent {
            self.watch_rest();
        }
    }

    fn worked(&mut self, die: u16) {
        let until = self.flash.until(die);
        if until > self.now {
            self.schedule(until, Event::Worked(die));
            return;
        }
        if let Work::Host { sectors, .. } = self.flash.finish(die) {
            self.buffer.used -= sectors;
            self.wake_durable();
        }
        let resting = self.working == 0 && self.now >= self.last_command + REST;
        if let Some(at) = self.flash.chore(self.now, die, resting) {
            self.schedule(at, Event::Worked(die));
        }
        self.program();
        self.take_in();
    }

    fn flush(&mut self, slot: u32) {
        let mapped = self.buffer.mapped == self.buffer.landed;
        if self.f.power_loss_protection || mapped && self.buffer.map_free <= self.now {
            self.ended(slot);
        } else if mapped {
            // The map that names all of it is still being written.
            self.schedule(self.buffer.map_free, Event::Ended(slot));
        } else {
            self.wait_until_durable(slot);
            self.program();
        }
    }

    fn wait_until_durable(&mut self, slot: u32) {
        let position = self.buffer.landed;
        self.buffer.forced = position;
        self.buffer.waiting.push_back((slot, position));
        self.wake_durable();
    }

    /// Ends what waited for data that are now programmed, after one write of the map for all.
    fn wake_durable(&mut self) {
        let durable = self.flash.first_unprogrammed().unwrap_or(self.buffer.sent);
        if self.buffer.waiting.front().is_none_or(|(_, position)| *position > durable) {
            return;
        }
        let at = self.buffer.map_free.max(self.now) + self.f.flush_time;
        self.buffer.map_free = at;
        self.buffer.map_busy += self.f.flush_time;
        self.buffer.mapped = durable;
        while let Some((slot, position)) = self.buffer.waiting.front().copied()
            && position <= durable
        {
            self.buffer.waiting.pop_front();
            self.schedule(at, Event::Ended(slot));
        }
    }
}

/// Rest.
impl Ssd {
    /// Sees to it that [`rested`](Self::rested) is called when there is something to do at rest.
    fn watch_rest(&mut self) {
        let something = self.buffer.landed > self.buffer.sent || self.flash.has_slc_data();
        if something && !self.rest_due {
            self.rest_due = true;
            self.schedule(self.now + SETTLE, Event::Rested);
        }
    }

    fn rested(&mut self) {
        self.rest_due = false;
        if self.working > 0 {
            return;
        }
        let settled = self.last_command + SETTLE;
        let rested = self.last_command + REST;
        let next = if self.now < settled { settled } else { rested };
        if self.now >= settled {
            self.buffer.forced = self.buffer.landed;
            self.program();
        }
        if self.now >= rested {
            while let Some((die, at)) = self.flash.fold_idle(self.now) {
                self.schedule(at, Event::Worked(die));
            }
        } else if self.now < settled || self.flash.has_slc_data() {
            self.rest_due = true;
            self.schedule(next, Event::Rested);
        }
    }
}
