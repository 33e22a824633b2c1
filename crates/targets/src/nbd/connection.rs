//! One client: what it has sent and is not taken yet, what it is still to be sent.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use raidlab_engine::EngineError;
use raidlab_nbd::server::{Handshake, Incoming, Negotiated, Session, Step, Tls};
use raidlab_nbd::{Command, Request};
use rustix::event::epoll::EventFlags;

use super::array::{Begun, Fault, Finished};
use super::arrays::Arrays;
use super::memory::{self, Buffer};
use super::pace::Pace;
use super::tls::{NbdTls, Wire};
use super::{status, system};

/// Requests of one client that are taken in at once.
const MOST_UNDER_WAY: u32 = 256;
/// A client that leaves so many bytes of answers, besides data, is not listened to until it takes them.
const MOST_UNREAD: usize = 64 << 10;
/// Pieces that are sent by one call.
const PIECES: usize = 128;

/// What is still listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Open,
    /// What is under way is answered, then it is closed.
    AfterAnswers,
    /// It is closed as it is.
    Now,
}

enum Phase {
    Handshake(Handshake),
    Serving(Box<Session>, usize),
}

/// Bytes that are sent after one another: of headers, then data.
#[derive(Clone, Copy, Debug)]
struct Part {
    head: usize,
    body: Option<(Buffer, usize)>,
}

pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// How the loop knows it.
    name: u64,
    phase: Phase,
    /// How it is encrypted, once the client has asked for it.
    tls: Option<NbdTls>,
    wire: Option<Box<Wire>>,
    /// More may have come than was taken, which the socket does not tell.
    is_pending: bool,
    /// What came and is not taken.
    stash: Vec<u8>,
    /// Taking ended as it was held back, not as more has to come.
    is_cut: bool,
    /// Headers of parts, of which so many bytes are sent, and of the first part so many.
    heads: Vec<u8>,
    heads_sent: usize,
    parts: VecDeque<Part>,
    part_sent: usize,
    /// The write whose data come in.
    writing: Option<u32>,
    /// A request that waits for memory; and whether its own connection has too much of it.
    starved: Option<Request>,
    is_greedy: bool,
    /// Places looked at for block status since the others had their turn.
    looks: usize,
    /// Requests taken in and not answered.
    under_way: u32,
    /// Bytes of memory that its requests and answers have.
    held: u64,
    pub(super) end: End,
    /// What is watched for at its socket.
    pub(super) watched: EventFlags,
    pace: Pace,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, name: u64, tls: Option<NbdTls>, now: Instant) -> Self {
        let mut heads = Vec::new();
        let required = if tls.is_some() { Tls::Required } else { Tls::None };
        let handshake = Handshake::new(required, &mut heads);
        let mut connection = Self {
            socket,
            name,
            phase: Phase::Handshake(handshake),
            tls,
            wire: None,
            is_pending: false,
            stash: Vec::new(),
            is_cut: false,
            heads,
            heads_sent: 0,
            parts: VecDeque::new(),
            part_sent: 0,
            writing: None,
            starved: None,
            is_greedy: false,
            looks: 0,
            under_way: 0,
            held: 0,
            end: End::Open,
            watched: EventFlags::empty(),
            pace: Pace::new(now),
        };
        connection.queue(0, None);
        connection
    }

    /// The array it has chosen.
    pub(super) fn array(&self) -> Option<usize> {
        match self.phase {
            Phase::Serving(_, array) => Some(array),
            Phase::Handshake(_) => None,
        }
    }

    /// Whether it waits for memory.
    pub(super) fn is_starved(&self) -> bool {
        self.starved.is_some()
    }

    /// Whether it waits for memory that others have.
    pub(super) fn is_short(&self) -> bool {
        self.starved.is_some() && !self.is_greedy
    }

    /// Whether it has memory that others wait for, it is the client's turn to go on, and it goes on too slowly or not
    /// at all; by when the others began to wait, and how long it has.
    pub(super) fn is_too_slow(&mut self, now: Instant, times: (Instant, Duration)) -> bool {
        if self.held == 0 || self.writing.is_none() && self.parts.is_empty() {
            self.pace.is_fine();
            return false;
        }
        self.pace.is_too_slow(self.held, now, times)
    }

    /// Whether nothing more is taken from it for now.
    fn is_held_back(&self) -> bool {
        self.end != End::Open
            || self.starved.is_some()
            || self.under_way >= MOST_UNDER_WAY
            || self.looks >= status::MOST_LOOKS
            || self.heads.len() - self.heads_sent >= MOST_UNREAD
    }

    /// Whether there is something that came and can be taken now.
    pub(super) fn can_go_on(&self) -> bool {
        (self.is_pending || !self.stash.is_empty()) && !self.is_held_back()
    }

    /// Whether there is something that can be taken now, after all there was was looked at.
    pub(super) fn goes_on(&self) -> bool {
        (self.is_pending || self.is_cut) && self.can_go_on()
    }

    /// Whether it can be closed.
    pub(super) fn is_over(&self) -> bool {
        match self.end {
            End::Open => false,
            End::AfterAnswers => self.under_way == 0 && !self.has_unsent(),
            End::Now => true,
        }
    }

    fn has_unsent(&self) -> bool {
        !self.parts.is_empty() || self.wire.as_ref().is_some_and(|wire| wire.has_more())
    }

    /// What is to be watched for at its socket.
    pub(super) fn wanted(&self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, !self.is_held_back());
        flags.set(EventFlags::OUT, self.has_unsent());
        flags
    }

    /// Receives once, and takes in what came; `input` is memory for it.
    pub(super) fn receive(
        &mut self,
        input: &mut [u8],
        arrays: &mut Arrays,
        now: Instant,
    ) -> Result<(), EngineError> {
        if self.is_held_back() {
            return Ok(());
        }
        let kept = self.stash.len();
        let is_straight = kept == 0 && self.wire.is_none();
        let moved = match (self.writing, self.awaited()) {
            (Some(slot), Some(left)) if is_straight => {
                let Some(served) = arrays.of(self.array()) else { return Ok(()) };
                let (len, _) = served.filling(slot);
                system::receive(&self.socket, served.room(slot, len - left)?, input)
            }
            _ => {
                input[..kept].copy_from_slice(&self.stash);
                match &mut self.wire {
                    Some(wire) => wire.receive(&self.socket, &mut input[kept..]),
                    None => system::receive(&self.socket, &mut [], &mut input[kept..]),
                }
            }
        };
        self.is_pending = self.wire.is_some() && moved != system::Moved::Later;
        let mut came = match moved {
            system::Moved::Bytes(bytes) => bytes,
            system::Moved::Later => return Ok(()),
            system::Moved::Gone => {
                self.end = End::Now;
                return Ok(());
            }
        };
        self.pace.moved(now);
        if let (Some(slot), Some(left), true) = (self.writing, self.awaited(), is_straight) {
            let straight = came.min(left as usize);
            came -= straight;
            self.pace.did(straight as u64);
            if let Phase::Serving(session, array) = &mut self.phase {
                session.received(straight as u32);
                if session.awaited().is_none()
                    && let Some(served) = arrays.of(Some(*array))
                {
                    served.filled(slot);
                    self.writing = None;
                }
            }
        }
        let all = kept + came;
        let taken = self.take(&input[..all], arrays)?;
        let rest = if self.end == End::Open { &input[taken..all] } else { &[] };
        self.leave(rest, arrays);
        Ok(())
    }

    /// Keeps what was not taken. Who keeps nothing has no memory for it: one long message must not cost some for ever.
    fn leave(&mut self, rest: &[u8], arrays: &mut Arrays) {
        if !rest.is_empty() && self.stash.capacity() == 0 {
            self.stash = arrays.spare();
        }
        self.stash.clear();
        self.stash.extend_from_slice(rest);
        if rest.is_empty() && self.stash.capacity() > 0 {
            arrays.lay_by(std::mem::take(&mut self.stash));
        }
    }

    /// Bytes of data that are still to come.
    fn awaited(&self) -> Option<u32> {
        match &self.phase {
            Phase::Serving(session, _) => session.awaited().map(|(_, left)| left),
            Phase::Handshake(_) => None,
        }
    }

    /// Whether there is something to be received that the socket does not tell.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// The others had their turn.
    pub(super) fn is_turn(&mut self) {
        self.looks = 0;
    }

    /// Goes on with what came before and could not be taken.
    pub(super) fn go_on(&mut self, arrays: &mut Arrays) -> Result<(), EngineError> {
        let stash = std::mem::take(&mut self.stash);
        let taken = self.take(&stash, arrays)?;
        self.stash = stash;
        self.stash.drain(..taken);
        if self.stash.is_empty() {
            arrays.lay_by(std::mem::take(&mut self.stash));
        }
        Ok(())
    }

    /// Takes as much as can be; gives how many bytes.
    fn take(&mut self, input: &[u8], arrays: &mut Arrays) -> Result<usize, EngineError> {
        let mut at = 0;
        while !self.is_held_back() {
            let before = self.heads.len();
            let rest = &input[at..];
            let went = match &mut self.phase {
                Phase::Handshake(handshake) => {
                    match handshake.receive(rest, &*arrays, &mut self.heads) {
                        Ok(taken) => Ok((taken.bytes, taken.what.map(Came::Step))),
                        Err(violation) => Err(violation),
                    }
                }
                Phase::Serving(session, _) => match session.receive(rest, &mut self.heads) {
                    Ok(taken) => Ok((taken.bytes, taken.what.map(Came::Incoming))),
                    Err(violation) => Err(violation),
                },
            };
            self.queue(before, None);
            self.count_refused(arrays);
            let Ok((bytes, came)) = went else {
                arrays.violations += 1;
                self.end = End::AfterAnswers;
                break;
            };
            at += bytes;
            match came {
                None if bytes == 0 => break,
                None => {}
                Some(Came::Step(step)) => self.step(step, arrays),
                Some(Came::Incoming(incoming)) => {
                    self.incoming(incoming, &rest[..bytes], arrays)?;
                }
            }
        }
        self.is_cut = self.is_held_back();
        Ok(at)
    }

    /// Requests that the session answered itself.
    #[inline]
    fn count_refused(&mut self, arrays: &mut Arrays) {
        let Phase::Serving(session, array) = &mut self.phase else { return };
        let refused = session.take_refused();
        if refused > 0
            && let Some(served) = arrays.of(Some(*array))
        {
            served.counters.others += refused;
            served.counters.errors += refused;
        }
    }

    fn step(&mut self, step: Step, arrays: &mut Arrays) {
        match step {
            Step::Done(agreed) => self.serve(&agreed, arrays),
            Step::Close => self.end = End::AfterAnswers,
            Step::StartTls => self.start_tls(arrays),
        }
    }

    /// What was put out goes as it is, and everything after it is encrypted.
    fn start_tls(&mut self, arrays: &mut Arrays) {
        let now = self.pace.since();
        let sent = self.send(arrays, now);
        self.wire = self.tls.as_ref().and_then(Wire::new).map(Box::new);
        if sent.is_err() || !self.parts.is_empty() || self.wire.is_none() {
            self.end = End::Now;
        }
    }

    fn serve(&mut self, agreed: &Negotiated, arrays: &mut Arrays) {
        match arrays.position(&agreed.export.name) {
            Some(array) => {
                if let Some(served) = arrays.of(Some(array)) {
                    served.clients += 1;
                    served.counters.connections += 1;
                }
                self.phase = Phase::Serving(Box::new(Session::new(agreed)), array);
            }
            None => self.end = End::Now,
        }
    }

    #[inline]
    fn incoming(
        &mut self,
        incoming: Incoming,
        bytes: &[u8],
        arrays: &mut Arrays,
    ) -> Result<(), EngineError> {
        match incoming {
            Incoming::Request(request) => self.begin(request, arrays),
            Incoming::Data { offset, .. } => {
                let (Some(slot), Some(served)) = (self.writing, arrays.of(self.array())) else {
                    return Ok(());
                };
                served.room(slot, offset)?[..bytes.len()].copy_from_slice(bytes);
                self.pace.did(bytes.len() as u64);
                if self.awaited().is_none() {
                    served.filled(slot);
                    self.writing = None;
                }
                Ok(())
            }
            Incoming::Disconnect => {
                self.end = End::AfterAnswers;
                Ok(())
            }
        }
    }

    fn begin(&mut self, request: Request, arrays: &mut Arrays) -> Result<(), EngineError> {
        let Some(array) = self.array() else { return Ok(()) };
        let weight = match request.command {
            Command::Read { .. } | Command::Write => memory::weight(request.len),
            Command::BlockStatus { .. } => {
                self.tell_status(&request, arrays);
                return Ok(());
            }
            _ => 0,
        };
        // Half of the memory stays for the others.
        let is_too_much = self.held > 0 && self.held + weight > arrays.budget.limit() / 2;
        self.is_greedy = weight > 0 && is_too_much;
        let begun = match self.is_greedy || weight > 0 && arrays.is_short {
            true => Begun::NoMemory,
            false => arrays.begin(array, self.name, request)?,
        };
        match begun {
            Begun::NoMemory => self.starved = Some(request),
            Begun::Answer(outcome) => {
                if let Some(served) = arrays.of(Some(array)) {
                    served.count(&request, outcome.is_err());
                }
                self.answer(&request, None, outcome);
            }
            Begun::Fill(slot) => {
                self.writing = Some(slot);
                self.under_way += 1;
                self.held += weight;
            }
            Begun::UnderWay => {
                self.under_way += 1;
                self.held += weight;
            }
        }
        Ok(())
    }

    /// Tries again what waits for memory; whether it has some now. What came behind it may starve again, and does where
    /// `others` wait, too.
    pub(super) fn feed(&mut self, arrays: &mut Arrays, others: bool) -> Result<bool, EngineError> {
        let Some(request) = self.starved.take() else { return Ok(true) };
        if self.end != End::Open {
            return Ok(true);
        }
        arrays.is_short = false;
        self.begin(request, arrays)?;
        arrays.is_short = others;
        if self.starved.is_some() {
            return Ok(false);
        }
        self.go_on(arrays)?;
        Ok(true)
    }

    fn tell_status(&mut self, request: &Request, arrays: &mut Arrays) {
        let Phase::Serving(session, array) = &self.phase else { return };
        let Some(served) = arrays.of(Some(*array)) else { return };
        let before = self.heads.len();
        let contexts = session.contexts();
        for (index, context) in contexts.iter().enumerate() {
            let (extents, looks) =
                status::extents(&served.engine, &context.name, request.at, request.len);
            self.looks += looks;
            let last = index + 1 == contexts.len();
            session.extents(request, context.id, &extents, last, &mut self.heads);
        }
        served.count(request, false);
        self.queue(before, None);
    }

    /// A request of it has been carried out.
    #[inline]
    pub(super) fn finished(&mut self, finished: &Finished) {
        self.under_way -= 1;
        self.held -= finished.freed;
        self.pace.did(finished.freed);
        self.answer(&finished.request, finished.buffer, finished.outcome);
    }

    #[inline]
    fn answer(&mut self, request: &Request, buffer: Option<Buffer>, outcome: Result<(), Fault>) {
        let Phase::Serving(session, _) = &self.phase else { return };
        let before = self.heads.len();
        let len = request.len as usize;
        match (outcome, buffer) {
            (Err((error, why)), _) => session.fail(request, error, why, &mut self.heads),
            (Ok(()), Some(_)) => {
                session.data(request, request.at, len as u32, true, &mut self.heads);
            }
            (Ok(()), None) => session.done(request, &mut self.heads),
        }
        self.queue(before, buffer.map(|buffer| (buffer, len)));
    }

    /// Has what stands in `heads` from a place on sent, with data behind it.
    #[inline]
    fn queue(&mut self, before: usize, body: Option<(Buffer, usize)>) {
        let head = self.heads.len() - before;
        if head == 0 && body.is_none() {
            return;
        }
        match self.parts.back_mut() {
            Some(last) if last.body.is_none() => {
                last.head += head;
                last.body = body;
            }
            _ => self.parts.push_back(Part { head, body }),
        }
    }

    /// Sends what it takes.
    pub(super) fn send(&mut self, arrays: &mut Arrays, now: Instant) -> Result<(), EngineError> {
        while !self.parts.is_empty() && self.end != End::Now {
            let (moved, all) = self.send_once(arrays)?;
            match moved {
                system::Moved::Bytes(bytes) => {
                    self.pace.moved(now);
                    self.sent(bytes, arrays);
                    if bytes < all {
                        return Ok(());
                    }
                }
                system::Moved::Later => return Ok(()),
                system::Moved::Gone => self.end = End::Now,
            }
        }
        if let Some(wire) = self.wire.as_mut().filter(|wire| wire.has_more())
            && wire.flush(&self.socket) == system::Moved::Gone
        {
            self.end = End::Now;
        }
        Ok(())
    }

    /// One call; how many bytes it could have sent.
    fn send_once(&mut self, arrays: &Arrays) -> Result<(system::Moved, usize), EngineError> {
        const NONE: &[u8] = &[];
        let array = self.array();
        let mut pieces = [IoSlice::new(NONE); PIECES];
        let (mut count, mut all) = (0, 0);
        let (mut head_at, mut skip) = (self.heads_sent, self.part_sent);
        for part in &self.parts {
            if count + 2 > PIECES {
                break;
            }
            let head = part.head.saturating_sub(skip);
            if head > 0 {
                pieces[count] = IoSlice::new(&self.heads[head_at..][..head]);
                (count, all) = (count + 1, all + head);
                head_at += head;
            }
            if let Some((buffer, len)) = part.body {
                let from = skip.saturating_sub(part.head);
                let bytes = arrays.bytes(array, buffer)?;
                pieces[count] = IoSlice::new(&bytes[from..len]);
                (count, all) = (count + 1, all + len - from);
            }
            skip = 0;
        }
        let moved = match &mut self.wire {
            Some(wire) => wire.send(&self.socket, &pieces[..count]),
            None => system::send(&self.socket, &pieces[..count]),
        };
        Ok((moved, all))
    }

    /// So many bytes are on their way.
    fn sent(&mut self, bytes: usize, arrays: &mut Arrays) {
        self.pace.did(bytes as u64);
        let mut left = bytes;
        while left > 0 {
            let Some(part) = self.parts.front().copied() else { break };
            let whole = part.head + part.body.map_or(0, |(_, len)| len);
            let now = left.min(whole - self.part_sent);
            let heads = part.head.saturating_sub(self.part_sent).min(now);
            self.heads_sent += heads;
            self.part_sent += now;
            left -= now;
            if self.part_sent < whole {
                break;
            }
            self.part_sent = 0;
            self.parts.pop_front();
            if let Some((buffer, _)) = part.body {
                self.held -= buffer.bytes();
                self.pace.did(buffer.bytes());
                arrays.give(self.array(), buffer);
            }
        }
        if self.parts.is_empty() {
            self.heads.clear();
            self.heads_sent = 0;
            // Long answers, such as of a list, must not cost memory for ever.
            self.heads.shrink_to(MOST_UNREAD);
        } else if self.heads_sent >= MOST_UNREAD {
            self.heads.drain(..self.heads_sent);
            self.heads_sent = 0;
        }
    }

    /// Takes nothing more from it: it is closed when what it has sent as a whole is answered.
    pub(super) fn drain(&mut self, arrays: &mut Arrays) {
        if let (Some(slot), Some(served)) = (self.writing.take(), arrays.of(self.array())) {
            self.held -= served.filling(slot).1;
            self.under_way -= 1;
            served.abandon(slot);
            arrays.freed = true;
        }
        // Whoever waited behind it goes on.
        arrays.freed |= self.starved.take().is_some();
        self.stash = Vec::new();
        if self.end == End::Open {
            self.end = End::AfterAnswers;
        }
    }

    /// Gives back what it has; requests at the array end by themselves.
    pub(super) fn close(&mut self, arrays: &mut Arrays) {
        if let Some(wire) = &mut self.wire {
            wire.end(&self.socket);
        }
        let array = self.array();
        let Some(served) = arrays.of(array) else { return };
        served.clients -= 1;
        if let Some(slot) = self.writing.take() {
            served.abandon(slot);
        }
        for (buffer, _) in self.parts.drain(..).filter_map(|part| part.body) {
            served.pool.give(buffer);
        }
        arrays.freed = true;
    }
}

/// What came of some bytes.
enum Came {
    Step(Step),
    Incoming(Incoming),
}
