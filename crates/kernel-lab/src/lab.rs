//! Clock and drives in one: whose turn it is, and what happens then.
//!
//! 1. The guest runs or waits; drives act only while it waits, so nothing ever happens at once.
//! 2. When it waits, the earlier of its own request and the drives' next event is next; at equal times the drives.
//! 3. On the drives' turn bytes are moved, requests given back, and each drive that has finished something interrupts
//!    the guest once; the next waits for its answer, by which the guest has asked to run at this time.
//! 4. The guest's turn: it hears how far it may go by itself, and that it is to run.
//! 5. A kick is answered once the guest has heard of the events it brings.

use std::collections::BTreeMap;

use raidlab_core::units::{Nanos, Time};
use raidlab_models::PathSpec;

use crate::attached::{Attached, Plan};
use crate::bus::Bus;
use crate::class::Class;
use crate::clock::{Clock, Heard, Message, NEVER};
use crate::contents::Room;
use crate::drive::{Drive, Taken};
use crate::failure::Failure;
use crate::paths::PathError;
use crate::service::Service;
use crate::vhost::{self, CALL_ANSWER_BYTES, Head, Request};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The request of a drive at this place is done.
    Finish(usize, usize),
    /// The service of a drive is to be woken.
    WakeDrive(usize),
    /// A command on its path is to be woken.
    WakePath(u32),
}

/// What the lab waits for before it goes on.
#[derive(Debug)]
enum Awaited {
    /// Nothing: the guest runs, or it is somebody's turn.
    Nothing,
    /// The answer to an interrupt of this drive.
    CallAnswer(usize),
    /// That the guest has heard how far it may go; then it runs at this time.
    GoesUntil(Time),
    /// That it has heard that it runs; then a kick is taken that came by another way meanwhile.
    Runs(Option<(usize, Head)>),
    /// That it has heard of an earlier event; then this drive answers its kick.
    Shortened(usize, Vec<u8>),
}

/// How much has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests given back.
    pub requests: u64,
    /// How often the guest kicked a drive.
    pub kicks: u64,
    /// How often it was interrupted.
    pub interrupts: u64,
    /// How often it was told to run.
    pub runs: u64,
    /// Messages of the clock that came from it.
    pub clock_messages: u64,
}

/// The clock and the drives of one guest. It does no I/O: messages come in by its methods and go out by the [`Bus`].
pub struct Lab {
    clock: Clock,
    drives: Vec<Drive>,
    attached: Attached,
    room: Room,
    /// What is to come, by time and then in the order in which it was planned.
    events: BTreeMap<(Time, u64), Event>,
    /// The wake-up of each drive, by which it is replaced.
    wakes: Vec<Option<(Time, u64)>>,
    planned: u64,
    awaited: Awaited,
    counts: Counts,
}

impl Lab {
    /// A lab with these drives, which may together hold as many bytes as there is room. With `page` the clock offers to
    /// share a page, which kernels from 6.11 on take.
    pub fn new(drives: Vec<(Class, Service)>, room: Room, page: bool) -> Self {
        let (classes, services): (Vec<Class>, Vec<Service>) = drives.into_iter().unzip();
        let drive = |(number, class)| Drive::new(number, class);
        Self {
            clock: Clock::new(page),
            wakes: vec![None; classes.len()],
            drives: classes.into_iter().enumerate().map(drive).collect(),
            attached: Attached::new(services),
            room,
            events: BTreeMap::new(),
            planned: 0,
            awaited: Awaited::Nothing,
            counts: Counts::default(),
        }
    }

    /// Lets a drive's requests take no time until the guest reads its serial number, by which a script says that all is
    /// set up. Before the first message.
    #[must_use]
    pub fn with_free_setup(mut self) -> Self {
        self.drives.iter_mut().for_each(Drive::be_free);
        self
    }

    /// Puts paths between the kernel and the drives. Before the first message.
    ///
    /// # Errors
    /// When the paths cannot be, have not one route for each drive, or have links that no kernel would see.
    pub fn with_paths(mut self, spec: &PathSpec) -> Result<Self, PathError> {
        self.attached.put_behind(spec)?;
        Ok(self)
    }

    /// How long each link of the paths has worked, by name. Work that was promised counts in full.
    pub fn path_busy(&self) -> Vec<(String, Nanos)> {
        self.attached.path_busy()
    }

    /// How much has happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many bytes of memory the contents of the drives take.
    pub fn bytes_held(&self) -> u64 {
        self.room.used()
    }

    /// Whether the guest shares the clock's page.
    pub fn shares_page(&self) -> bool {
        self.clock.shares_page()
    }

    /// The virtual time, as it was last known here.
    pub fn last_known_time(&self) -> Time {
        self.clock.last_known()
    }

    /// Reads the time from the page once more: the guest may have moved it since.
    pub fn look_at_the_clock(&mut self, bus: &mut dyn Bus) -> Result<(), Failure> {
        self.clock.look(bus)
    }

    /// Takes a message of the guest's clock.
    pub fn clock_message(&mut self, bus: &mut dyn Bus, message: Message) -> Result<(), Failure> {
        self.counts.clock_messages += 1;
        match self.clock.message(bus, message)? {
            Heard::Nothing => Ok(()),
            Heard::Waits => self.proceed(bus),
            Heard::Acknowledged => self.acknowledged(bus),
        }
    }

    /// Takes a message of the driver of a drive. Memory and the way back are the bus's business.
    pub fn drive_message(
        &mut self,
        bus: &mut dyn Bus,
        number: usize,
        head: Head,
        request: &Request,
    ) -> Result<(), Failure> {
        let answer = self.drives[number].configure(request)?;
        if *request == Request::Kick {
            return self.kicked(bus, number, head);
        }
        match answer {
            Some(answer) => bus.send_drive(number, &answer),
            None if head.needs_reply() => bus.send_drive(number, &head.acknowledgement()),
            None => Ok(()),
        }
    }

    fn kicked(&mut self, bus: &mut dyn Bus, number: usize, head: Head) -> Result<(), Failure> {
        if let Awaited::Runs(kick @ None) = &mut self.awaited {
            // It has said before the kick that it runs, on another socket: what is told it now would be a second thing.
            *kick = Some((number, head));
            return Ok(());
        }
        self.counts.kicks += 1;
        let now = self.clock.now(bus)?;
        for taken in self.drives[number].take(bus, now)? {
            match taken {
                Taken::Work(io) => self.attached.submit(now, number, io),
                Taken::Done(place) => self.attached.done(number, place),
            }
        }
        self.plan(now);
        if let Some(next) = self.next_event() {
            self.clock.shorten(bus, next)?;
        }
        let answer = head.acknowledgement();
        if self.clock.is_acknowledged() {
            return bus.send_drive(number, &answer);
        }
        self.awaited = Awaited::Shortened(number, answer);
        Ok(())
    }

    /// Takes the guest's answer to an interrupt.
    pub fn call_answer(
        &mut self,
        bus: &mut dyn Bus,
        number: usize,
        raw: [u8; CALL_ANSWER_BYTES],
    ) -> Result<(), Failure> {
        vhost::check_call_answer(raw)?;
        match self.awaited {
            Awaited::CallAnswer(awaited) if awaited == number => {
                self.awaited = Awaited::Nothing;
                self.interrupt_from(bus, number + 1)?;
                self.proceed(bus)
            }
            _ => {
                let text = format!("drive {number} answered an interrupt that it did not get");
                Err(Failure::Protocol(text))
            }
        }
    }

    fn acknowledged(&mut self, bus: &mut dyn Bus) -> Result<(), Failure> {
        match std::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::GoesUntil(at) => self.run_guest(bus, at),
            Awaited::Shortened(number, answer) => bus.send_drive(number, &answer),
            Awaited::Runs(None) => Ok(()),
            Awaited::Runs(Some((number, head))) => self.kicked(bus, number, head),
            other => {
                self.awaited = other;
                Err(Failure::Protocol("an acknowledgement of nothing".to_owned()))
            }
        }
    }

    /// Gives turns until the guest runs or something is awaited.
    fn proceed(&mut self, bus: &mut dyn Bus) -> Result<(), Failure> {
        while self.clock.guest_waits() && matches!(self.awaited, Awaited::Nothing) {
            let asked = self.clock.asked(bus)?;
            match (asked.filter(|at| *at < NEVER), self.next_event()) {
                (guest, Some(drives)) if guest.is_none_or(|guest| drives <= guest) => {
                    self.drives_turn(bus, drives)?;
                }
                (Some(guest), drives) => self.guests_turn(bus, guest, drives)?,
                (None, _) => {
                    return Err(Failure::Deadlock { now: self.clock.now(bus)?, asked });
                }
            }
        }
        Ok(())
    }

    fn guests_turn(
        &mut self,
        bus: &mut dyn Bus,
        at: Time,
        drives: Option<Time>,
    ) -> Result<(), Failure> {
        self.clock.guest_may_go(bus, drives.unwrap_or(NEVER))?;
        if self.clock.is_acknowledged() {
            return self.run_guest(bus, at);
        }
        self.awaited = Awaited::GoesUntil(at);
        Ok(())
    }

    fn run_guest(&mut self, bus: &mut dyn Bus, at: Time) -> Result<(), Failure> {
        self.counts.runs += 1;
        self.clock.guest_runs(bus, at)?;
        if !self.clock.is_acknowledged() {
            self.awaited = Awaited::Runs(None);
        }
        Ok(())
    }

    fn drives_turn(&mut self, bus: &mut dyn Bus, at: Time) -> Result<(), Failure> {
        self.clock.drives_run(bus, at)?;
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= at
        {
            match entry.remove() {
                Event::Finish(number, place) => {
                    self.counts.requests += 1;
                    self.drives[number].finish(bus, &mut self.room, place, at)?;
                }
                Event::WakeDrive(number) => {
                    self.wakes[number] = None;
                    self.attached.wake_drive(at, number);
                    self.plan(at);
                }
                Event::WakePath(command) => {
                    self.attached.wake_path(at, command);
                    self.plan(at);
                }
            }
        }
        self.interrupt_from(bus, 0)
    }

    /// Interrupts the guest for the first drive from this one on that has finished something.
    fn interrupt_from(&mut self, bus: &mut dyn Bus, first: usize) -> Result<(), Failure> {
        for number in first..self.drives.len() {
            if self.drives[number].takes_interrupt() {
                self.counts.interrupts += 1;
                self.awaited = Awaited::CallAnswer(number);
                return bus.send_back(number, &vhost::call());
            }
        }
        Ok(())
    }

    /// Puts down what drives and paths want to happen.
    fn plan(&mut self, now: Time) {
        while let Some(plan) = self.attached.poll() {
            self.planned += 1;
            let (at, event) = match plan {
                Plan::Finish { drive, place } => (now, Event::Finish(drive, place)),
                Plan::WakePath { command, at } => (at, Event::WakePath(command)),
                Plan::WakeDrive { drive, at } => (at, Event::WakeDrive(drive)),
            };
            let key = (at.max(now), self.planned);
            if let Event::WakeDrive(drive) = event
                && let Some(before) = self.wakes[drive].replace(key)
            {
                self.events.remove(&before);
            }
            self.events.insert(key, event);
        }
    }

    fn next_event(&self) -> Option<Time> {
        self.events.first_key_value().map(|(key, _)| key.0)
    }
}

#[cfg(test)]
#[path = "lab/tests.rs"]
mod tests;
