//! The thread: waits for clients, members and commands, and has each do as much as it can.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use raidlab_engine::EngineError;
use rustix::event::epoll::EventFlags;

use super::array::{Ending, Finished};
use super::arrays::Arrays;
use super::connection::{Connection, End};
use super::system::{self, Epoll};
use super::{Command, Faults, NbdLimits, NbdReport, NbdSockets, NbdTls, SERVE};
use crate::export::system::event;

/// Bytes that are received at once: what 64 writes of 4 KiB come to, and a fraction of a processor's cache.
const INPUT: usize = 256 << 10;
/// Clients that are accepted before the others are looked at.
const MOST_ACCEPTED: usize = 64;
/// How often clients that stand still are looked for while memory is short, and while an array ends.
const LOOK: Duration = Duration::from_millis(100);

/// Names of what is watched, besides connections: these are below, by place and generation.
const LISTENER: u64 = 1 << 63;
const BELL: u64 = 1 << 62;
const MEMBERS: u64 = 1 << 61;
const RING: u64 = 1 << 60;
const FILE: u64 = 1 << 59;
/// Generations of connections stay below those.
const GENERATIONS: u64 = 1 << 27;

fn name(place: usize, generation: u64) -> u64 {
    generation << 32 | place as u64
}

fn place(name: u64) -> usize {
    name as u32 as usize
}

/// A place for a connection.
struct Place {
    generation: u64,
    connection: Option<Box<Connection>>,
    /// It is in the list of those that something happened to.
    is_touched: bool,
}

pub(super) struct Server {
    sockets: NbdSockets,
    tls: Option<NbdTls>,
    limits: NbdLimits,
    arrays: Arrays,
    bell: Arc<File>,
    faults: Faults,
    /// Rings when a member has answered.
    members: Arc<File>,
    commands: Receiver<Command>,
    epoll: Epoll,
    /// Which ring of each engine is watched.
    rings: Vec<Option<RawFd>>,
    /// What is watched for at the device of each file.
    files: Vec<Option<EventFlags>>,
    places: Vec<Place>,
    free: Vec<u32>,
    input: Vec<u8>,
    happened: Vec<(u64, EventFlags)>,
    finished: Vec<Finished>,
    touched: Vec<u32>,
    /// Those that go on in the next round, while the others have their turn.
    again: Vec<u32>,
    /// Connections that have not chosen an export, by when they must have.
    shaking: VecDeque<(Instant, u64)>,
    /// Connections that wait for memory, in turn.
    starved: VecDeque<u64>,
    /// Since when some of them wait for what others have, and since when none do, if that is so.
    short: Option<(Instant, Option<Instant>)>,
    /// No client is accepted until then.
    deaf_until: Option<Instant>,
    refused: u64,
    dropped: u64,
    now: Instant,
    is_stopped: bool,
}

fn io_error(error: io::Error) -> EngineError {
    EngineError::io(SERVE, "sockets".as_ref(), error)
}

impl Server {
    pub(super) fn new(
        (sockets, tls): (NbdSockets, Option<NbdTls>),
        limits: NbdLimits,
        arrays: Arrays,
        (bell, faults): (Arc<File>, Faults),
        commands: Receiver<Command>,
    ) -> Result<Self, EngineError> {
        let epoll = Epoll::new().map_err(io_error)?;
        let members = Arc::new(event().map_err(io_error)?);
        let watch = |descriptor: &File, name| epoll.add(descriptor, name, EventFlags::IN);
        watch(&bell, BELL).and_then(|()| watch(&members, MEMBERS)).map_err(io_error)?;
        for index in 0..sockets.len() {
            let name = LISTENER | index as u64;
            epoll.add(sockets.descriptor(index), name, EventFlags::IN).map_err(io_error)?;
        }
        Ok(Self {
            sockets,
            tls,
            limits,
            rings: arrays.numbers().map(|_| None).collect(),
            files: arrays.numbers().map(|_| None).collect(),
            arrays,
            bell,
            faults,
            members,
            commands,
            epoll,
            places: Vec::new(),
            free: Vec::new(),
            input: vec![0; INPUT],
            happened: Vec::new(),
            finished: Vec::new(),
            touched: Vec::new(),
            again: Vec::new(),
            shaking: VecDeque::new(),
            starved: VecDeque::new(),
            short: None,
            deaf_until: None,
            refused: 0,
            dropped: 0,
            now: Instant::now(),
            is_stopped: false,
        })
    }

    /// Serves until all arrays have ended.
    ///
    /// # Errors
    /// A fault of raidlab itself, or of the system.
    pub(super) fn run(&mut self) -> Result<(), EngineError> {
        let mut is_busy = true;
        while !self.is_stopped && !self.arrays.are_over() {
            self.watch_arrays()?;
            self.wait(is_busy)?;
            is_busy = self.hear()?;
            is_busy |= self.obey()?;
            self.expire();
            is_busy |= self.feed()?;
            is_busy |= self.work()?;
            is_busy |= self.settle()?;
            self.end_arrays();
        }
        Ok(())
    }

    /// Engines make their rings when they get their first file; what a file of ours is asked for has room or not.
    fn watch_arrays(&mut self) -> Result<(), EngineError> {
        for number in self.arrays.numbers() {
            let Some(served) = self.arrays.of(Some(number)) else { continue };
            if let Some(ring) = served.engine.ring_descriptor()
                && self.rings[number] != Some(ring.as_raw_fd())
            {
                let name = RING | number as u64;
                self.epoll.add(ring, name, EventFlags::IN).map_err(io_error)?;
                self.rings[number] = Some(ring.as_raw_fd());
            }
            let Some((device, has_room)) = served.device() else { continue };
            let (name, watched) = (FILE | number as u64, &mut self.files[number]);
            let wanted = if has_room { EventFlags::IN } else { EventFlags::empty() };
            match *watched {
                Some(flags) if flags == wanted => continue,
                Some(_) => self.epoll.change(device, name, wanted),
                None => self.epoll.add(device, name, wanted),
            }
            .map_err(io_error)?;
            *watched = Some(wanted);
        }
        Ok(())
    }

    /// Sleeps until there is something to do; not at all if it is known that there is.
    fn wait(&mut self, is_busy: bool) -> Result<(), EngineError> {
        let mut limit = is_busy.then_some(Duration::ZERO);
        if !is_busy {
            for number in self.arrays.numbers() {
                let Some(served) = self.arrays.of(Some(number)) else { continue };
                if !served.engine.arm(&self.members) {
                    limit = Some(Duration::ZERO);
                }
                limit = least(limit, served.engine.wake_in());
                if served.ending.is_some() {
                    limit = least(limit, Some(LOOK));
                }
            }
            if let Some((until, _)) = self.shaking.front() {
                limit = least(limit, Some(until.saturating_duration_since(self.now)));
            }
            if !self.starved.is_empty() || self.deaf_until.is_some() {
                limit = least(limit, Some(LOOK));
            }
        }
        self.happened.clear();
        let events = self.epoll.wait(limit).map_err(io_error)?;
        self.happened.extend(events);
        self.now = Instant::now();
        Ok(())
    }

    /// Takes in what clients have sent; whether there may be more.
    fn hear(&mut self) -> Result<bool, EngineError> {
        let happened = std::mem::take(&mut self.happened);
        let mut is_busy = false;
        for &(name, flags) in &happened {
            match name {
                name if name & LISTENER != 0 => is_busy |= self.accept((name & !LISTENER) as usize),
                BELL => drain(&self.bell),
                MEMBERS => drain(&self.members),
                name if name & RING != 0 => {}
                name if name & FILE != 0 => {
                    let is_unmounted = flags.intersects(EventFlags::HUP | EventFlags::ERR);
                    is_busy |= self.hear_file((name & !FILE) as usize, is_unmounted)?;
                }
                name => self.hear_one(name, flags)?,
            }
        }
        self.happened = happened;
        Ok(is_busy)
    }

    fn hear_file(&mut self, array: usize, is_unmounted: bool) -> Result<bool, EngineError> {
        let Some(served) = self.arrays.of(Some(array)) else { return Ok(false) };
        match served.hear_file(is_unmounted) {
            Ok(()) => Ok(true),
            Err(error) => self.give_up(array, error),
        }
    }

    fn hear_one(&mut self, name: u64, flags: EventFlags) -> Result<(), EngineError> {
        let place = place(name);
        let Some(connection) = connection(&mut self.places, name) else { return Ok(()) };
        let has_more = flags.contains(EventFlags::IN);
        // What a client has sent before it went is taken; that there is no more shows by itself.
        if flags.contains(EventFlags::ERR) || flags.contains(EventFlags::HUP) && !has_more {
            connection.end = End::Now;
        } else if has_more {
            let received = connection.receive(&mut self.input, &mut self.arrays, self.now);
            if connection.is_starved() {
                self.arrays.is_short |= connection.is_short();
                self.starved.push_back(name);
            }
            self.check(place, received)?;
        }
        self.touch(place);
        Ok(())
    }

    /// A fault that showed in what a connection asked for ends its array.
    fn check<T: Default>(
        &mut self,
        place: usize,
        result: Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let error = match result {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let array = self.places[place].connection.as_ref().and_then(|one| one.array());
        self.give_up(array.unwrap_or(usize::MAX), error)?;
        Ok(T::default())
    }

    fn touch(&mut self, place: usize) {
        if !std::mem::replace(&mut self.places[place].is_touched, true) {
            self.touched.push(place as u32);
        }
    }

    /// Takes clients in that have come; whether there may be more.
    fn accept(&mut self, socket: usize) -> bool {
        let is_tcp = self.sockets.is_tcp(socket);
        for _ in 0..MOST_ACCEPTED {
            match system::accept(self.sockets.descriptor(socket), is_tcp) {
                Ok(Some(client)) => self.admit(client),
                Ok(None) => return false,
                // No descriptors are left, say: it is tried again later, and not at once, over and over.
                Err(_) => {
                    self.refused += 1;
                    self.listen(false);
                    return false;
                }
            }
        }
        true
    }

    /// Whether clients are accepted; they wait otherwise.
    fn listen(&mut self, is_on: bool) {
        self.deaf_until = (!is_on).then(|| self.now + LOOK);
        let flags = if is_on { EventFlags::IN } else { EventFlags::empty() };
        for index in 0..self.sockets.len() {
            // It is watched already: nothing new is needed for it.
            let _ =
                self.epoll.change(self.sockets.descriptor(index), LISTENER | index as u64, flags);
        }
    }

    fn admit(&mut self, client: std::os::fd::OwnedFd) {
        if self.places.len() - self.free.len() >= self.limits.connections {
            self.refused += 1;
            return;
        }
        let place = match self.free.pop() {
            Some(place) => place as usize,
            None => {
                self.places.push(Place { generation: 0, connection: None, is_touched: false });
                self.places.len() - 1
            }
        };
        let name = name(place, self.places[place].generation);
        if self.epoll.add(&client, name, EventFlags::empty()).is_err() {
            self.free.push(place as u32);
            self.refused += 1;
            return;
        }
        let connection = Connection::new(client, name, self.tls.clone(), self.now);
        self.places[place].connection = Some(Box::new(connection));
        self.shaking.push_back((self.now + self.limits.handshake, name));
        self.touch(place);
    }

    fn obey(&mut self) -> Result<bool, EngineError> {
        let mut any = false;
        while let Ok(command) = self.commands.try_recv() {
            any = true;
            match command {
                Command::Stop => self.is_stopped = true,
                Command::Do(array, work) => {
                    if let Some(served) = self.arrays.of(Some(array)) {
                        work(&mut served.engine);
                    }
                }
                Command::Report(array, answer) => {
                    let report = self.report(array);
                    // Who asked may have gone.
                    let _ = report.map(|report| answer.send(report));
                }
                Command::End(array, last) => self.begin_end(array, last),
            }
        }
        Ok(any)
    }

    fn report(&mut self, array: usize) -> Option<NbdReport> {
        let connections = self.places.len() - self.free.len();
        let memory = self.arrays.budget.used();
        let dropped = self.dropped + self.arrays.violations;
        let served = self.arrays.of(Some(array))?;
        let (counters, clients, has_file) = (served.counters, served.clients, served.has_file());
        let refused = self.refused;
        Some(NbdReport { counters, clients, has_file, connections, memory, refused, dropped })
    }

    fn begin_end(&mut self, array: usize, last: super::OnEngine) {
        let until = self.now + self.limits.drain;
        let Some(served) = self.arrays.of(Some(array)) else { return };
        served.ending = Some(Ending { until, last });
        for place in 0..self.places.len() {
            let Some(connection) = &mut self.places[place].connection else { continue };
            if connection.array() == Some(array) {
                connection.drain(&mut self.arrays);
                self.touch(place);
            }
        }
    }

    /// Drops who takes too long.
    fn expire(&mut self) {
        if self.deaf_until.is_some_and(|until| self.now >= until) {
            self.listen(true);
        }
        while let Some(&(until, name)) = self.shaking.front() {
            let late = match connection(&mut self.places, name) {
                Some(connection) if connection.array().is_none() => Some(connection),
                _ => None,
            };
            if late.is_some() && self.now < until {
                break;
            }
            self.shaking.pop_front();
            if let Some(connection) = late {
                connection.end = End::Now;
                self.dropped += 1;
                self.touch(place(name));
            }
        }
        self.expire_holders();
    }

    /// Drops who keeps memory that others wait for.
    fn expire_holders(&mut self) {
        let (now, stall, places) = (self.now, self.limits.stall, &mut self.places);
        let mut starved = self.starved.iter();
        if !starved.any(|name| connection(places, *name).is_some_and(|one| one.is_short())) {
            if let Some((_, over)) = &mut self.short {
                over.get_or_insert(now);
            }
            return;
        }
        // Who gives a little back now and then does not have time begin anew with that.
        let is_same = |over: &Option<Instant>| over.is_none_or(|over| now - over < stall);
        let same = self.short.filter(|(_, over)| is_same(over));
        let begun = same.map_or(now, |(begun, _)| begun);
        self.short = Some((begun, None));
        for place in 0..self.places.len() {
            let Some(connection) = &mut self.places[place].connection else { continue };
            if connection.is_too_slow(now, (begun, stall)) {
                connection.end = End::Now;
                self.dropped += 1;
                self.touch(place);
            }
        }
    }

    /// Gives memory that came back to who waits for some; whether any was used.
    ///
    /// Each in turn: where there is not enough for one, those behind it wait, however little they want, or it would
    /// wait for ever beside them. Who has too much itself holds up nobody.
    fn feed(&mut self) -> Result<bool, EngineError> {
        if self.starved.is_empty() || !std::mem::take(&mut self.arrays.freed) {
            return Ok(false);
        }
        let places = &mut self.places;
        let is_short = |name: &&u64| connection(places, **name).is_some_and(|one| one.is_short());
        let mut short = self.starved.iter().filter(is_short).count();
        let (mut any, mut is_enough) = (false, true);
        let mut behind = Vec::new();
        for _ in 0..self.starved.len() {
            let Some(name) = self.starved.pop_front() else { break };
            let Some(connection) = connection(&mut self.places, name) else { continue };
            short -= usize::from(connection.is_short());
            if connection.is_short() && !is_enough {
                short += 1;
                self.starved.push_back(name);
                continue;
            }
            let fed = connection.feed(&mut self.arrays, short > 0 || !is_enough);
            if connection.is_starved() {
                short += usize::from(connection.is_short());
                // Those that wait stay in their order, and who had its turn stands behind them.
                match fed {
                    Ok(true) => behind.push(name),
                    _ => {
                        is_enough &= !connection.is_short();
                        self.starved.push_back(name);
                    }
                }
            }
            any |= self.check(place(name), fed)?;
            self.touch(place(name));
        }
        self.starved.extend(behind);
        self.arrays.is_short = short > 0;
        Ok(any)
    }

    /// Has the arrays work, and queues answers; whether there is more to do at once.
    fn work(&mut self) -> Result<bool, EngineError> {
        let mut finished = std::mem::take(&mut self.finished);
        let worked = self.arrays.work(&mut finished);
        for one in finished.drain(..) {
            self.arrays.freed |= one.freed > 0;
            let Some(connection) = connection(&mut self.places, one.owner) else {
                self.forget(&one);
                continue;
            };
            connection.finished(&one);
            self.touch(place(one.owner));
        }
        self.finished = finished;
        match worked {
            Ok(any) => Ok(any),
            Err((array, error)) => self.give_up(array, error),
        }
    }

    /// An answer that nobody waits for any more.
    fn forget(&mut self, finished: &Finished) {
        if let Some(buffer) = finished.buffer {
            self.arrays.give(finished.array, buffer);
        }
    }

    /// An array whose engine has a fault is served no longer; others are.
    fn give_up(&mut self, array: usize, error: EngineError) -> Result<bool, EngineError> {
        // Before anybody can find that it is gone.
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).insert(array, error.to_string());
        self.close_all(array);
        drop(self.arrays.remove(array));
        if self.arrays.are_over() { Err(error) } else { Ok(true) }
    }

    /// Sends answers, goes on with what was held back, and closes what is over; whether there is more to do.
    fn settle(&mut self) -> Result<bool, EngineError> {
        let mut is_busy = false;
        while let Some(place) = self.touched.pop() {
            let place = place as usize;
            self.places[place].is_touched = false;
            let Place { generation, connection: Some(connection), .. } = &mut self.places[place]
            else {
                continue;
            };
            let name = name(place, *generation);
            let mut went = connection.send(&mut self.arrays, self.now);
            if went.is_ok() && connection.can_go_on() {
                went = connection.go_on(&mut self.arrays);
                if went.is_ok() && connection.is_pending() {
                    went = connection.receive(&mut self.input, &mut self.arrays, self.now);
                }
                is_busy = true;
                if connection.is_starved() {
                    self.arrays.is_short |= connection.is_short();
                    self.starved.push_back(name);
                }
                went = went.and_then(|()| connection.send(&mut self.arrays, self.now));
            }
            if went.is_err() {
                self.check(place, went)?;
                continue;
            }
            if connection.is_over() {
                self.close(place);
                continue;
            }
            connection.is_turn();
            let (goes_on, wanted) = (connection.goes_on(), connection.wanted());
            if connection.watched != wanted {
                self.epoll.change(&connection.socket, name, wanted).map_err(io_error)?;
                connection.watched = wanted;
            }
            if goes_on {
                // Nothing else need ever happen to it.
                self.places[place].is_touched = true;
                self.again.push(place as u32);
            }
        }
        if !self.again.is_empty() {
            std::mem::swap(&mut self.touched, &mut self.again);
        }
        is_busy |= !self.touched.is_empty();
        Ok(is_busy || self.arrays.freed && !self.starved.is_empty())
    }

    fn close(&mut self, place: usize) {
        let one = &mut self.places[place];
        let Some(mut connection) = one.connection.take() else { return };
        connection.close(&mut self.arrays);
        one.generation = (one.generation + 1) % GENERATIONS;
        self.free.push(place as u32);
    }

    fn close_all(&mut self, array: usize) {
        for place in 0..self.places.len() {
            let connection = self.places[place].connection.as_ref();
            if connection.is_some_and(|connection| connection.array() == Some(array)) {
                self.close(place);
            }
        }
    }

    /// Lets go of arrays whose clients have their answers, or do not take them.
    fn end_arrays(&mut self) {
        for array in self.arrays.numbers() {
            let Some(served) = self.arrays.of(Some(array)) else { continue };
            let Some(ending) = &served.ending else { continue };
            let is_late = self.now >= ending.until;
            if !(served.is_idle() && (served.clients == 0 || is_late)) {
                continue;
            }
            self.close_all(array);
            if let Some(mut served) = self.arrays.remove(array)
                && let Some(Ending { last, .. }) = served.ending.take()
            {
                served.close_file();
                last(&mut served.engine);
            }
            self.rings[array] = None;
        }
    }
}

fn connection(places: &mut [Place], name: u64) -> Option<&mut Connection> {
    let place = places.get_mut(place(name))?;
    if place.generation != name >> 32 {
        return None;
    }
    place.connection.as_deref_mut()
}

fn least(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Empties an event counter.
fn drain(event: &File) {
    let mut event = event;
    // Nothing to read is as good as something read.
    let _ = event.read(&mut [0; 8]);
}
