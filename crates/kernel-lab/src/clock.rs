//! The clock of a guest: Linux's `time-travel=ext`, for one guest, without and with the shared page.
//!
//! A message is 16 bytes both ways: operation, sequence number and a time in nanoseconds. The guest runs or waits.
//! While it runs, it may move its own time up to what it was told is free; when it waits, the lab decides whose turn is
//! next. Kernels from 6.11 on share a page with the clock instead of telling it everything; whether this one does shows
//! at its second message.

use raidlab_core::units::Time;

use crate::bus::Bus;
use crate::failure::Failure;

const ACKNOWLEDGE: u32 = 0;
const START: u32 = 1;
const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
const UPDATE: u32 = 5;
const RUN: u32 = 6;
const FREE_UNTIL: u32 = 7;
const GET_TIME_OF_DAY: u32 = 8;

/// The guest's wall clock when it starts, 2020-01-01, in nanoseconds: the same in every run.
const TIME_OF_DAY: u64 = 1_577_836_800_000_000_000;

/// A time that never comes: what a guest asks for that has no timer.
pub(crate) const NEVER: Time = Time(i64::MAX as u64);

/// Places in the shared page: of its head, and within the part of a client.
mod page {
    pub(super) const VERSION: usize = 0;
    pub(super) const LENGTH: usize = 4;
    pub(super) const FREE_UNTIL: usize = 8;
    pub(super) const NOW: usize = 16;
    pub(super) const RUNNING: usize = 24;
    const CLIENTS: usize = 4096;
    const CLIENT: usize = 128;
    /// The drives are the first client, the guest is the second.
    pub(super) const DRIVES: usize = CLIENTS;
    pub(super) const GUEST: usize = CLIENTS + CLIENT;
    pub(super) const CAPABILITIES: usize = 0;
    pub(super) const FLAGS: usize = 4;
    pub(super) const REQUESTED: usize = 8;
    /// All of it.
    pub(super) const BYTES: usize = CLIENTS + 2 * CLIENT;
}

/// How long the shared page is, in bytes.
pub const PAGE_BYTES: usize = page::BYTES;

const DRIVES: u16 = 0;
const GUEST: u16 = 1;
const CLIENTS: u16 = 2;

/// A message of the clock, either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    operation: u32,
    sequence: u32,
    time: u64,
}

impl Message {
    /// How long one is, in bytes.
    pub const BYTES: usize = 16;

    /// Reads one.
    pub fn decode(raw: [u8; Self::BYTES]) -> Self {
        let word = |at: usize| [raw[at], raw[at + 1], raw[at + 2], raw[at + 3]];
        let [.., a, b, c, d, e, f, g, h] = raw;
        Self {
            operation: u32::from_ne_bytes(word(0)),
            sequence: u32::from_ne_bytes(word(4)),
            time: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        }
    }

    /// Writes one.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut raw = [0; Self::BYTES];
        raw[0..4].copy_from_slice(&self.operation.to_ne_bytes());
        raw[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        raw[8..16].copy_from_slice(&self.time.to_ne_bytes());
        raw
    }
}

/// How far the guest shares the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    No,
    /// It may; its next message shows whether it does.
    Offered,
    Shared,
}

/// The clock of one guest.
#[derive(Debug)]
pub struct Clock {
    page: Page,
    offer: bool,
    now: Time,
    /// When the guest asked to run, without the page.
    request: Option<Time>,
    /// Up to where the guest was told that it may move its time, without the page.
    free: Time,
    waiting: bool,
    sequence: u32,
    /// The message that the guest has yet to acknowledge.
    awaited: Option<u32>,
}

/// What a message of the guest has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that the lab must look at.
    Nothing,
    /// The guest waits: it is somebody's turn.
    Waits,
    /// What the guest was told has arrived.
    Acknowledged,
}

impl Clock {
    /// A clock at zero. With `page` it offers to share one, which only some kernels take.
    pub fn new(page: bool) -> Self {
        Self {
            page: Page::No,
            offer: page,
            now: Time::ZERO,
            request: None,
            free: Time::ZERO,
            waiting: false,
            sequence: 0,
            awaited: None,
        }
    }

    /// Whether the guest waits for its turn.
    pub fn guest_waits(&self) -> bool {
        self.waiting
    }

    /// Whether the guest shares the page.
    pub fn shares_page(&self) -> bool {
        self.page == Page::Shared
    }

    /// The virtual time: the guest's while it runs.
    pub fn now(&self, bus: &mut dyn Bus) -> Result<Time, Failure> {
        match self.page {
            Page::Shared => Ok(Time(load(bus, page::NOW)?)),
            Page::No | Page::Offered => Ok(self.now),
        }
    }

    /// Takes the time that the guest has come to.
    pub fn look(&mut self, bus: &mut dyn Bus) -> Result<(), Failure> {
        self.now = self.now(bus)?;
        Ok(())
    }

    /// The virtual time as it was last known here, without asking the page.
    pub fn last_known(&self) -> Time {
        self.now
    }

    /// Takes a message of the guest and answers it.
    pub fn message(&mut self, bus: &mut dyn Bus, message: Message) -> Result<Heard, Failure> {
        let Message { operation, sequence, time } = message;
        if self.page == Page::Offered {
            self.look_whether_shared(bus)?;
        }
        let mut answer = 0;
        let mut heard = Heard::Nothing;
        match operation {
            START => return self.start(bus, sequence),
            ACKNOWLEDGE if self.awaited == Some(sequence) => {
                self.awaited = None;
                return Ok(Heard::Acknowledged);
            }
            REQUEST => self.request = Some(Time(time)),
            WAIT => {
                self.waiting = true;
                if self.shares_page() {
                    self.look(bus)?;
                    return Ok(Heard::Waits);
                }
                heard = Heard::Waits;
            }
            GET => answer = self.now(bus)?.0,
            UPDATE => self.now = Time(time),
            GET_TIME_OF_DAY => answer = TIME_OF_DAY,
            other => {
                let text = format!("message {other} of the clock, number {sequence}, time {time}");
                return Err(Failure::Protocol(text));
            }
        }
        bus.send_clock(Message { operation: ACKNOWLEDGE, sequence, time: answer })?;
        Ok(heard)
    }

    fn start(&mut self, bus: &mut dyn Bus, sequence: u32) -> Result<Heard, Failure> {
        let answer = Message { operation: ACKNOWLEDGE, sequence, time: GUEST.into() };
        if self.offer {
            self.page = Page::Offered;
            store(bus, page::VERSION, 2)?;
            store(bus, page::LENGTH, page::BYTES as u32)?;
            store_running(bus, GUEST)?;
            // The drives say that they know the page, or the guest tells them everything while they run.
            store(bus, page::DRIVES + page::CAPABILITIES, 1)?;
            bus.send_clock_with_page(answer)?;
        } else {
            bus.send_clock(answer)?;
        }
        Ok(Heard::Nothing)
    }

    /// A guest that knows the page has said so there before its second message.
    fn look_whether_shared(&mut self, bus: &mut dyn Bus) -> Result<(), Failure> {
        let mut raw = [0; 4];
        bus.load_page(page::GUEST + page::CAPABILITIES, &mut raw)?;
        self.page = if u32::from_ne_bytes(raw) & 1 != 0 { Page::Shared } else { Page::No };
        Ok(())
    }

    /// When the guest wants to run, if it does at all.
    pub fn asked(&self, bus: &mut dyn Bus) -> Result<Option<Time>, Failure> {
        if !self.shares_page() {
            return Ok(self.request);
        }
        let mut raw = [0; 4];
        bus.load_page(page::GUEST + page::FLAGS, &mut raw)?;
        if u32::from_ne_bytes(raw) & 1 == 0 {
            return Ok(None);
        }
        Ok(Some(Time(load(bus, page::GUEST + page::REQUESTED)?)))
    }

    /// It is the drives' turn, at this time.
    pub fn drives_run(&mut self, bus: &mut dyn Bus, at: Time) -> Result<(), Failure> {
        self.now = at;
        if self.shares_page() {
            store_running(bus, DRIVES)?;
            bus.store_page(page::NOW, &at.0.to_ne_bytes())?;
        }
        Ok(())
    }

    /// Tells the guest how far it may go by itself; then, once [`acknowledged`](Self::is_acknowledged), it is
    /// [to run](Self::guest_runs).
    pub fn guest_may_go(&mut self, bus: &mut dyn Bus, until: Time) -> Result<(), Failure> {
        if self.shares_page() {
            return bus.store_page(page::FREE_UNTIL, &until.0.to_ne_bytes());
        }
        self.free = until;
        self.tell(bus, FREE_UNTIL, until)
    }

    /// Lets the guest run, at the time it asked for.
    pub fn guest_runs(&mut self, bus: &mut dyn Bus, at: Time) -> Result<(), Failure> {
        self.waiting = false;
        self.now = at;
        if self.shares_page() {
            store_running(bus, GUEST)?;
            bus.store_page(page::NOW, &at.0.to_ne_bytes())?;
            self.sequence += 1;
            let message = Message { operation: RUN, sequence: self.sequence, time: at.0 };
            return bus.send_clock(message);
        }
        self.request = None;
        self.tell(bus, RUN, at)
    }

    /// While the guest runs: a drive will be done earlier than the guest was told.
    pub fn shorten(&mut self, bus: &mut dyn Bus, until: Time) -> Result<(), Failure> {
        if self.shares_page() {
            if until.0 < load(bus, page::FREE_UNTIL)? {
                bus.store_page(page::FREE_UNTIL, &until.0.to_ne_bytes())?;
            }
        } else if until < self.free {
            self.free = until;
            self.tell(bus, FREE_UNTIL, until)?;
        }
        Ok(())
    }

    /// Whether the guest has acknowledged what it was told.
    pub fn is_acknowledged(&self) -> bool {
        self.awaited.is_none()
    }

    fn tell(&mut self, bus: &mut dyn Bus, operation: u32, time: Time) -> Result<(), Failure> {
        self.sequence += 1;
        self.awaited = Some(self.sequence);
        bus.send_clock(Message { operation, sequence: self.sequence, time: time.0 })
    }
}

fn load(bus: &mut dyn Bus, at: usize) -> Result<u64, Failure> {
    let mut raw = [0; 8];
    bus.load_page(at, &mut raw)?;
    Ok(u64::from_ne_bytes(raw))
}

fn store(bus: &mut dyn Bus, at: usize, value: u32) -> Result<(), Failure> {
    bus.store_page(at, &value.to_ne_bytes())
}

/// Who runs, and beside it of how many clients the page is.
fn store_running(bus: &mut dyn Bus, client: u16) -> Result<(), Failure> {
    store(bus, page::RUNNING, u32::from(client) | u32::from(CLIENTS) << 16)
}

#[cfg(test)]
#[path = "clock/tests.rs"]
mod tests;
