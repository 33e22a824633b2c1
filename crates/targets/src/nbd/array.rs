//! One array that is served: its engine, the requests that are at it, and what they come to.

use std::os::fd::BorrowedFd;

use raidlab_core::contract::{IoOp, Outcome, RequestId, Segment};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Reply};
use raidlab_nbd::{BlockSizes, Command, ErrorCode, Export, Request};

use super::memory::{Budget, Buffer, Pool};
use super::{NbdArray, NbdCounters, OnEngine, SERVE, status};
use crate::export::ranges::{self, Range};
use crate::export::requests::{Order, Span};
use crate::export::session::{Session, is_message};

/// The longest read or write.
const LONGEST: u32 = 32 << 20;

/// Why a request failed, with words for people.
pub(super) type Fault = (ErrorCode, &'static str);

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    /// Its data come in.
    Filling,
    /// At the array, or on the way there.
    Change,
    /// The change is made, and becomes durable.
    Durable,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The connection that waits for it.
    owner: u64,
    request: Request,
    buffer: Option<Buffer>,
    stage: Stage,
    /// What is left to be zeroed or discarded.
    range: Range,
}

/// What became of a request that has just come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// A write, whose data belong in this slot.
    Fill(u32),
    /// It is at the array.
    UnderWay,
    /// It is done already, or has failed.
    Answer(Result<(), Fault>),
    /// It waits for memory.
    NoMemory,
}

/// A request that is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) owner: u64,
    pub(super) array: Option<usize>,
    pub(super) request: Request,
    /// What a read has read; to be given back once it is sent.
    pub(super) buffer: Option<Buffer>,
    pub(super) outcome: Result<(), Fault>,
    /// What was given back with it.
    pub(super) freed: u64,
}

/// An array that ends when its clients have their answers.
pub(super) struct Ending {
    pub(super) until: std::time::Instant,
    pub(super) last: OnEngine,
}

pub(super) struct Served {
    /// Its place among the server's.
    number: usize,
    pub(super) engine: Engine,
    pub(super) export: Export,
    pub(super) counters: NbdCounters,
    /// Connections that have chosen it.
    pub(super) clients: u32,
    pub(super) ending: Option<Ending>,
    pub(super) pool: Pool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Which slot a request of the engine belongs to, or which message of the file, by the engine's place for it.
    owners: Vec<u32>,
    /// Slots and messages that wait for their turn.
    order: Order,
    /// The file that the array is served as besides.
    file: Option<Box<Session>>,
    replies: Vec<Reply>,
    finished: Vec<Finished>,
}

impl Served {
    pub(super) fn new(number: usize, array: NbdArray, memory: u64) -> Self {
        let NbdArray { engine, name, description, read_only } = array;
        let block = engine.block().bytes() as u32;
        let mut export = Export::new(&name, engine.array().capacity().bytes());
        export.description = description;
        let abilities = &mut export.abilities;
        abilities.read_only = read_only;
        abilities.flush = true;
        abilities.fua = true;
        abilities.trim = true;
        abilities.write_zeroes = true;
        abilities.fast_zero = true;
        // One engine has all connections' requests: what is durable is so for all.
        abilities.multi_conn = true;
        // Two of the longest fit in the memory there is.
        let maximum = (memory / 2).min(u64::from(LONGEST)).max(4096);
        let maximum = 1 << (63 - maximum.leading_zeros());
        export.blocks = BlockSizes { minimum: block, preferred: block.max(4096), maximum };
        export.contexts = status::CONTEXTS.map(str::to_owned).to_vec();
        Self {
            number,
            engine,
            export,
            counters: NbdCounters::default(),
            clients: 0,
            ending: None,
            pool: Pool::default(),
            slots: Vec::new(),
            free: Vec::new(),
            owners: Vec::new(),
            order: Order::default(),
            file: None,
            replies: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Serves the array as a file besides, from the beginning on.
    pub(super) fn serve_file(&mut self, session: Session) {
        self.file = Some(Box::new(session));
    }

    /// Whether it is served as a file, too.
    pub(super) fn has_file(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.device().is_some())
    }

    /// The device by which what the file is asked for comes, with whether more of it is taken now.
    pub(super) fn device(&self) -> Option<(BorrowedFd<'_>, bool)> {
        let file = self.file.as_ref()?;
        Some((file.device()?, file.has_room() && self.ending.is_none()))
    }

    /// Takes in what the file is asked for, unless it is unmounted.
    ///
    /// # Errors
    /// A fault of raidlab itself, or of the device.
    pub(super) fn hear_file(&mut self, is_unmounted: bool) -> Result<(), EngineError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if is_unmounted {
            file.lose_device();
        } else if self.ending.is_none() {
            file.hear(&mut self.engine, &mut self.order)?;
        }
        self.forget_file()
    }

    /// Lets go of a file that is unmounted, once the array has nothing of it.
    fn forget_file(&mut self) -> Result<(), EngineError> {
        let is_over = |file: &mut Box<Session>| file.device().is_none() && file.is_idle();
        if let Some(file) = self.file.take_if(is_over) {
            for buffer in file.close() {
                self.engine.release(buffer)?;
            }
        }
        Ok(())
    }

    /// Takes nothing more for the file, and ends whatever waits for an answer of it.
    pub(super) fn close_file(&mut self) {
        // The buffers go with the engine.
        drop(self.file.take().map(|file| file.close()));
    }

    /// Whether nothing that came is unanswered.
    pub(super) fn is_idle(&self) -> bool {
        let is_idle = |file: &Session| file.is_idle();
        self.free.len() == self.slots.len() && self.file.as_deref().is_none_or(is_idle)
    }

    /// Takes a request in.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    pub(super) fn begin(
        &mut self,
        owner: u64,
        request: Request,
        budget: &mut Budget,
    ) -> Result<Begun, EngineError> {
        let writes = request.command == Command::Write;
        let buffer = match request.command {
            Command::Read { .. } | Command::Write => {
                match self.pool.take(&mut self.engine, budget, request.len) {
                    Ok(Some(buffer)) => Some(buffer),
                    Ok(None) => return Ok(Begun::NoMemory),
                    Err(error) if error.kind() == EngineErrorKind::NoMemory => {
                        let why = "the server's machine has no memory";
                        return Ok(Begun::Answer(Err((ErrorCode::NoMemory, why))));
                    }
                    Err(error) => return Err(error),
                }
            }
            // Nothing of it can be volatile.
            Command::Flush if self.export.abilities.read_only => {
                return Ok(Begun::Answer(Ok(())));
            }
            Command::Trim if !self.can_trim() => return Ok(Begun::Answer(Ok(()))),
            Command::WriteZeroes { fast: true, .. } if !self.is_fast(&request) => {
                let why = "writing zeroes there is no faster than any other write";
                return Ok(Begun::Answer(Err((ErrorCode::NotSupported, why))));
            }
            _ => None,
        };
        let stage = if writes { Stage::Filling } else { Stage::Change };
        let range = Range::new(request.at, request.len);
        let slot = self.enter(Slot { owner, request, buffer, stage, range });
        if writes {
            return Ok(Begun::Fill(slot));
        }
        self.wait(slot);
        Ok(Begun::UnderWay)
    }

    /// Has a request wait for its turn. Beside a file parts of blocks are written, with which changes must not meet.
    #[inline]
    fn wait(&mut self, slot: u32) {
        let change = self.file.is_some().then(|| self.change(slot)).flatten();
        self.order.add(slot, change);
    }

    /// What a request changes.
    fn change(&self, slot: u32) -> Option<Span> {
        let Request { command, at, len, .. } = self.slots[slot as usize].request;
        let changes =
            matches!(command, Command::Write | Command::Trim | Command::WriteZeroes { .. });
        (changes && len > 0).then(|| Span { offset: at, len, block: self.engine.block().bytes() })
    }

    fn enter(&mut self, state: Slot) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = state;
                slot
            }
            None => {
                self.slots.push(state);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Whether a trim does anything: only where zeroes take no writing, so that all copies and parity
    /// are known after it, and a hint never costs as much as a write.
    fn can_trim(&mut self) -> bool {
        self.engine.zeroes_cheaply()
    }

    /// Whether zeroes take less than writing them: no stripe has to be read for its parity, and members
    /// need not write.
    fn is_fast(&mut self, request: &Request) -> bool {
        let Some(unit) = ranges::stripe(&self.engine) else { return false };
        let is_whole = request.at.is_multiple_of(unit) && request.len.is_multiple_of(unit);
        is_whole && self.engine.zeroes_cheaply()
    }

    /// Where the data of a write belong, from byte `offset` of them on.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    #[inline]
    pub(super) fn room(&mut self, slot: u32, offset: u32) -> Result<&mut [u8], EngineError> {
        let Slot { request, buffer, .. } = &self.slots[slot as usize];
        let Some(buffer) = buffer else { return Ok(&mut []) };
        let len = request.len as usize;
        let bytes = self.engine.bytes_mut(buffer.token)?;
        Ok(&mut bytes[..len][offset as usize..])
    }

    /// Bytes of the data of a write, and what it holds of memory.
    pub(super) fn filling(&self, slot: u32) -> (u32, u64) {
        let Slot { request, buffer, .. } = &self.slots[slot as usize];
        (request.len as u32, buffer.map_or(0, Buffer::bytes))
    }

    /// All data of a write are there.
    #[inline]
    pub(super) fn filled(&mut self, slot: u32) {
        self.slots[slot as usize].stage = Stage::Change;
        self.wait(slot);
    }

    /// A write whose data will never be there.
    pub(super) fn abandon(&mut self, slot: u32) {
        if let Some(buffer) = self.leave(slot).buffer {
            self.pool.give(buffer);
        }
    }

    fn leave(&mut self, slot: u32) -> Slot {
        let state = self.slots[slot as usize];
        self.slots[slot as usize].stage = Stage::Free;
        self.free.push(slot);
        self.order.done(slot);
        state
    }

    /// Hands over what waits, has the array work, and lists what is answered; whether there is more to
    /// do at once.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    pub(super) fn work(&mut self) -> Result<bool, EngineError> {
        self.hand_over()?;
        let mut replies = std::mem::take(&mut self.replies);
        let worked = self.engine.poll_replies(&mut replies);
        let mut told = Ok(());
        for Reply { id, outcome, .. } in replies.drain(..) {
            match self.owners[id.0 as u32 as usize] {
                message if is_message(message) => {
                    told = told.and(self.replied_to_file(message, outcome));
                }
                slot => self.replied(slot, outcome),
            }
        }
        self.replies = replies;
        worked.and(told)?;
        Ok(self.engine.goes_on() || self.order.has_some() && self.engine.can_accept())
    }

    fn hand_over(&mut self) -> Result<(), EngineError> {
        while self.engine.can_accept() {
            let Some(slot) = self.order.take() else { break };
            if is_message(slot) {
                self.begin_of_file(slot)?;
                continue;
            }
            let is_part = self.is_part(slot);
            if is_part && !self.order.begin_part(slot) {
                continue;
            }
            let begun = match self.slots[slot as usize].stage {
                Stage::Durable => self.engine.submit(IoOp::Flush, Sector(0), &[], false),
                _ => self.submit(slot),
            };
            match begun {
                Ok(id) => self.own(slot, id),
                // Nothing was changed.
                Err(error) if error.kind() == EngineErrorKind::NoRoom => {
                    self.finish(slot, Err((ErrorCode::NoSpace, "a member's filesystem is full")));
                    if is_part {
                        self.order.end_part();
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether what comes next of a request is a part of a range that is zeroed or discarded.
    #[inline]
    fn is_part(&self, slot: u32) -> bool {
        let Slot { request, stage, .. } = &self.slots[slot as usize];
        *stage == Stage::Change && is_range(request)
    }

    fn begin_of_file(&mut self, message: u32) -> Result<(), EngineError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Some(id) = file.begin(message, &mut self.engine, &mut self.order)? {
            self.own(message, id);
        }
        Ok(())
    }

    fn replied_to_file(&mut self, message: u32, outcome: Outcome) -> Result<(), EngineError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.replied(message, outcome, &mut self.engine, &mut self.order)?;
        self.forget_file()
    }

    #[inline]
    fn submit(&mut self, slot: u32) -> Result<RequestId, EngineError> {
        let Slot { request, buffer, .. } = self.slots[slot as usize];
        let (at, len) = (Sector(request.at / SECTOR_BYTES), Sectors(request.len / SECTOR_BYTES));
        let range = &mut self.slots[slot as usize].range;
        let op = match request.command {
            Command::Read { .. } => IoOp::Read,
            Command::Write => IoOp::Write,
            Command::Trim => return range.submit(&mut self.engine, IoOp::Discard),
            Command::WriteZeroes { .. } => {
                return range.submit(&mut self.engine, IoOp::WriteZeroes);
            }
            _ => return self.engine.submit(IoOp::Flush, Sector(0), &[], false),
        };
        let Some(Buffer { token, .. }) = buffer else {
            let reason = "a request without memory";
            return Err(EngineError::new(EngineErrorKind::Internal, SERVE, reason));
        };
        let segment = Segment { token, offset: 0, len: len.0 as u32 };
        self.engine.submit(op, at, &[segment], request.fua)
    }

    #[inline]
    fn own(&mut self, slot: u32, id: RequestId) {
        let place = id.0 as u32 as usize;
        if self.owners.len() <= place {
            self.owners.resize(place + 1, 0);
        }
        self.owners[place] = slot;
    }

    #[inline]
    fn replied(&mut self, slot: u32, outcome: Outcome) {
        let Slot { request, stage, range, .. } = self.slots[slot as usize];
        let outcome = fault(outcome);
        let is_range = is_range(&request);
        if is_range && stage == Stage::Change {
            self.order.end_part();
        }
        if is_range && outcome.is_ok() && !range.is_done() {
            self.order.add(slot, None);
            return;
        }
        // The array forces writes out as it makes them; zeroes are made durable by a flush behind them,
        // with the parity and the records that belong to them.
        if is_range && request.fua && stage == Stage::Change && outcome.is_ok() {
            self.slots[slot as usize].stage = Stage::Durable;
            self.order.add(slot, None);
            return;
        }
        self.finish(slot, outcome);
    }

    #[inline]
    fn finish(&mut self, slot: u32, outcome: Result<(), Fault>) {
        let Slot { owner, request, buffer, .. } = self.leave(slot);
        let keeps = matches!(request.command, Command::Read { .. }) && outcome.is_ok();
        let mut freed = 0;
        if let (false, Some(buffer)) = (keeps, buffer) {
            freed = buffer.bytes();
            self.pool.give(buffer);
        }
        let buffer = buffer.filter(|_| keeps);
        self.count(&request, outcome.is_err());
        let array = Some(self.number);
        self.finished.push(Finished { owner, array, request, buffer, outcome, freed });
    }

    /// Counts a request that is answered.
    #[inline]
    pub(super) fn count(&mut self, request: &Request, failed: bool) {
        let counters = &mut self.counters;
        counters.errors += u64::from(failed);
        let (count, bytes) = match request.command {
            Command::Read { .. } => (&mut counters.reads, Some(&mut counters.bytes_read)),
            Command::Write => (&mut counters.writes, Some(&mut counters.bytes_written)),
            Command::Flush => (&mut counters.flushes, None),
            Command::Trim => (&mut counters.trims, None),
            Command::WriteZeroes { .. } => (&mut counters.zeroes, None),
            _ => (&mut counters.others, None),
        };
        *count += 1;
        if let (Some(bytes), false) = (bytes, failed) {
            *bytes += request.len;
        }
    }

    /// What is answered and was not taken yet.
    pub(super) fn take_finished(&mut self, into: &mut Vec<Finished>) {
        into.append(&mut self.finished);
    }
}

/// Whether it has no data, and may be as long as the array.
#[inline]
fn is_range(request: &Request) -> bool {
    matches!(request.command, Command::Trim | Command::WriteZeroes { .. })
}

/// An outcome in the protocol's words.
fn fault(outcome: Outcome) -> Result<(), Fault> {
    let io = |why| Err((ErrorCode::Io, why));
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Misaligned | Outcome::BadSegments => {
            Err((ErrorCode::Invalid, "not in blocks of the array"))
        }
        Outcome::OutOfRange => Err((ErrorCode::NoSpace, "beyond the end of the array")),
        Outcome::MediaError { .. } => io("no copy of it can be read"),
        Outcome::ArrayFailed => io("more members are lost than the level survives"),
        Outcome::Inconsistent => io("parity there was not made consistent after an unclean stop"),
        Outcome::Stopped => Err((ErrorCode::ShuttingDown, "the array is stopped")),
        Outcome::NotSupported => Err((ErrorCode::NotSupported, "the array does not do it")),
        Outcome::ComputeFailed | Outcome::Busy => io("a fault of the server"),
    }
}
