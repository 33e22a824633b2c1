//! The thread that owns the engine: takes in as many messages as there are, has the array work on all
//! of them together, and answers each as its reply comes.
//!
//! The payload of a write is received into the buffer that the array writes from, and that of a read is
//! sent from the buffer it was read into: nothing is copied here but for parts of blocks.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use raidlab_core::contract::{IoOp, Outcome, RequestId, Segment, Token};
use raidlab_core::{Sector, Sectors};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Reply};

use super::answers::{self, Decision, Served};
use super::protocol::{self, ANSWER_HEADER, Ask, Message, WRITE_HEAD};
use super::requests::{Order, Span};
use super::{Ended, Shared, system};

/// Messages that are worked on at once.
const SLOTS: usize = 64;
const SERVE: &str = "serve the array";

/// What the owner of an export asks of its thread.
pub(super) enum Command {
    /// End the export, whoever uses it.
    Stop,
    /// Do something with the engine.
    Do(OnEngine),
    /// Do this at the end, here, and then let go of the engine.
    Last(OnEngine),
}

/// Something that is done with the engine.
pub(super) type OnEngine = Box<dyn FnOnce(&mut Engine) + Send>;

/// What a slot is at.
#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    Read(Span),
    /// `edges` is where the first and last block are read into before whole blocks are written.
    Write {
        span: Span,
        edges: Option<Token>,
    },
    Zero(Span),
    Sync,
}

#[derive(Debug)]
pub(super) struct Answer {
    buffer: Token,
    unique: u64,
    task: Task,
    /// Requests of it at the array.
    pending: u32,
    /// The first error, from `errno.h`; 0 for none.
    error: i32,
}

/// Where the loop stands with the device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Device {
    /// It may have more messages.
    More,
    /// It has none now.
    Empty,
    /// The filesystem is unmounted.
    Gone,
}

/// The state of the thread.
pub(super) struct ServerLoop {
    device: File,
    engine: Engine,
    slots: Vec<Answer>,
    free: Vec<usize>,
    /// Which slot a request of the array belongs to, by the engine's place for it.
    owners: Vec<usize>,
    order: Order,
    replies: Vec<Reply>,
    /// Replies with the slots they are for.
    arrived: Vec<(usize, Outcome)>,
    served: Served,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    stopping: bool,
    /// What is done at the end.
    last: Option<OnEngine>,
}

impl ServerLoop {
    /// Buffers for the messages that are worked on at once.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(super) fn slots(engine: &mut Engine) -> Result<Vec<Answer>, EngineError> {
        let room = answers::room(engine.block().bytes());
        let slot = |_| {
            let buffer = engine.allocate(room)?;
            Ok(Answer { buffer, unique: 0, task: Task::Idle, pending: 0, error: 0 })
        };
        (0..SLOTS).map(slot).collect()
    }

    pub(super) fn new(
        device: File,
        (engine, slots): (Engine, Vec<Answer>),
        open_flags: u32,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
    ) -> Self {
        Self {
            device,
            free: (0..slots.len()).rev().collect(),
            owners: Vec::new(),
            order: Order::default(),
            replies: Vec::new(),
            arrived: Vec::new(),
            served: Served {
                size: engine.array().capacity().bytes(),
                block: engine.block().bytes(),
                open_flags,
            },
            shared,
            commands,
            stopping: false,
            last: None,
            slots,
            engine,
        }
    }

    /// Serves until the filesystem is unmounted or the owner stops it. The device is closed then, which
    /// ends whatever still waits for an answer; the engine comes back idle, unless something is done with it at the
    /// end here.
    pub(super) fn run(mut self) -> Ended {
        let mut outcome = self.serve();
        drop(self.device);
        self.replies.clear();
        if outcome.is_ok() {
            outcome = self.engine.run_until_idle(&mut self.replies);
        }
        for slot in &self.slots {
            // A buffer of a request that is never answered goes with the engine.
            let _ = self.engine.release(slot.buffer);
        }
        self.engine.disarm();
        self.shared.publish(self.engine.totals());
        // A command may have come after the last look.
        for command in self.commands.try_iter() {
            if let Command::Last(work) = command {
                self.last = Some(work);
            }
        }
        match self.last.take() {
            Some(work) => {
                work(&mut self.engine);
                (None, outcome)
            }
            None => (Some(self.engine), outcome),
        }
    }

    fn serve(&mut self) -> Result<(), EngineError> {
        loop {
            let mut device = Device::More;
            let mut took = false;
            while device == Device::More && !self.free.is_empty() {
                device = self.take_message()?;
                took |= device == Device::More;
            }
            self.submit_waiting()?;
            self.engine.poll_replies(&mut self.replies)?;
            self.name_slots();
            // Before anybody can know that something was done.
            self.shared.publish(self.engine.totals());
            let mut arrived = std::mem::take(&mut self.arrived);
            let idle = arrived.is_empty() && !took;
            for (slot, outcome) in arrived.drain(..) {
                self.replied(slot, outcome)?;
            }
            // Some may have come meanwhile: they are for the next round.
            if self.arrived.is_empty() {
                self.arrived = arrived;
            }
            self.obey();
            if device == Device::Gone || self.stopping {
                return Ok(());
            }
            if idle {
                self.wait()?;
            }
        }
    }

    /// Sleeps until there is a message, an answer of a member or a command.
    fn wait(&mut self) -> Result<(), EngineError> {
        let Shared { members, bell, .. } = &*self.shared;
        if !self.engine.arm(members) {
            return Ok(());
        }
        let device = (!self.free.is_empty()).then(|| self.device.as_fd());
        // The ring of the members can be read when it has answers.
        let others = [self.engine.ring_descriptor(), device];
        let watched =
            [bell.as_fd(), members.as_fd()].into_iter().chain(others.into_iter().flatten());
        system::wait(watched, self.engine.wake_in()).map_err(device_error)?;
        for mut event in [&**members, &**bell] {
            // Nothing to read is as good as something read.
            let _ = event.read(&mut [0; 8]);
        }
        Ok(())
    }

    fn obey(&mut self) {
        for command in self.commands.try_iter() {
            match command {
                Command::Stop => self.stopping = true,
                Command::Do(work) => work(&mut self.engine),
                Command::Last(work) => self.last = Some(work),
            }
        }
    }

    fn take_message(&mut self) -> Result<Device, EngineError> {
        let Some(&slot) = self.free.last() else { return Ok(Device::Empty) };
        let mut head = [0; WRITE_HEAD];
        let len = loop {
            let rest = self.engine.bytes_mut(self.slots[slot].buffer)?;
            match system::receive(&self.device, &mut head, rest) {
                Ok(len) => break len,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(Device::Empty),
                    // The one that was to come was taken back.
                    Some(libc::EINTR | libc::ENOENT) => {}
                    Some(libc::ENODEV | libc::ECONNABORTED) => return Ok(Device::Gone),
                    _ => return Err(device_error(error)),
                },
            }
        };
        let message = if len <= WRITE_HEAD {
            protocol::parse(&head[..len])
        } else {
            match protocol::parse(&head) {
                write @ Some(Message { ask: Ask::Write { .. }, .. }) => write,
                _ => {
                    let rest = &self.engine.bytes(self.slots[slot].buffer)?[..len - WRITE_HEAD];
                    protocol::parse(&[&head[..], rest].concat())
                }
            }
        };
        let Some(message) = message else {
            let reason = format!("the kernel sent a message of {len} bytes");
            return Err(EngineError::new(EngineErrorKind::Internal, SERVE, reason));
        };
        self.begin(slot, message, len.saturating_sub(WRITE_HEAD))?;
        Ok(Device::More)
    }

    /// Answers what can be answered at once, and queues the rest.
    fn begin(&mut self, slot: usize, message: Message, payload: usize) -> Result<(), EngineError> {
        let Message { unique, ask } = message;
        match answers::decide(ask, &self.served, payload) {
            Decision::Nothing => {}
            Decision::Answer(body) => self.answer(unique, &body)?,
            Decision::Refuse(error) => self.refuse(unique, error)?,
            Decision::Read(offset, len) => self.queue(slot, unique, Task::Read, (offset, len)),
            Decision::Write(offset, len) => {
                let task = |span| Task::Write { span, edges: None };
                self.queue(slot, unique, task, (offset, len));
            }
            Decision::Zero(offset, len) => self.queue(slot, unique, Task::Zero, (offset, len)),
            Decision::Sync => {
                self.enter(slot, unique, Task::Sync);
                self.order.add(slot, None);
            }
        }
        Ok(())
    }

    /// Takes the slot, which is the last free one.
    fn enter(&mut self, slot: usize, unique: u64, task: Task) {
        self.free.pop();
        let buffer = self.slots[slot].buffer;
        self.slots[slot] = Answer { buffer, unique, task, pending: 0, error: 0 };
    }

    fn queue(
        &mut self,
        slot: usize,
        unique: u64,
        task: impl Fn(Span) -> Task,
        (offset, len): (u64, u64),
    ) {
        let span = Span { offset, len, block: self.served.block };
        let task = task(span);
        self.enter(slot, unique, task);
        self.order.add(slot, (!matches!(task, Task::Read(_))).then_some(span));
    }

    fn submit_waiting(&mut self) -> Result<(), EngineError> {
        // A write of parts of blocks begins with two requests.
        while self.engine.can_accept() {
            let Some(slot) = self.order.take() else { break };
            let buffer = self.slots[slot].buffer;
            match self.slots[slot].task {
                Task::Read(span) => self.submit(slot, IoOp::Read, (buffer, 0), span)?,
                Task::Write { span, .. } if span.is_whole() => {
                    self.submit(slot, IoOp::Write, (buffer, 0), span)?;
                }
                Task::Write { span, .. } => self.read_edges(slot, span)?,
                Task::Zero(span) => {
                    let (at, len) = sectors(span);
                    let id = self.engine.submit_range(IoOp::WriteZeroes, at, len);
                    self.begun(slot, id)?;
                }
                Task::Sync => {
                    let id = self.engine.submit(IoOp::Flush, Sector(0), &[], false)?;
                    self.own(slot, id);
                }
                Task::Idle => {}
            }
        }
        Ok(())
    }

    /// Has the array read or write the blocks of a span, at sector `from` of a buffer on.
    fn submit(
        &mut self,
        slot: usize,
        op: IoOp,
        (token, from): (Token, u32),
        span: Span,
    ) -> Result<(), EngineError> {
        let (at, len) = sectors(span);
        let segment = Segment { token, offset: from, len: len.0 as u32 };
        let id = self.engine.submit(op, at, &[segment], false);
        self.begun(slot, id)
    }

    /// A request was handed to the array, or refused since a member has no room: then nothing was written.
    fn begun(
        &mut self,
        slot: usize,
        id: Result<RequestId, EngineError>,
    ) -> Result<(), EngineError> {
        match id {
            Err(error) if error.kind() == EngineErrorKind::NoRoom => {
                self.slots[slot].error = libc::ENOSPC;
                self.finish(slot)
            }
            id => {
                self.own(slot, id?);
                Ok(())
            }
        }
    }

    fn own(&mut self, slot: usize, id: RequestId) {
        let place = id.0 as u32 as usize;
        if self.owners.len() <= place {
            self.owners.resize(place + 1, 0);
        }
        self.owners[place] = slot;
        self.slots[slot].pending += 1;
    }

    /// The first step of writing parts of blocks: one request for the first and the last block, or for
    /// the only one; with a block between them for that too.
    fn read_edges(&mut self, slot: usize, span: Span) -> Result<(), EngineError> {
        let whole = span.whole();
        let edges = self.engine.allocate(2 * self.served.block)?;
        self.slots[slot].task = Task::Write { span, edges: Some(edges) };
        let first = Span {
            offset: span.start(),
            len: self.served.block.min(whole),
            block: self.served.block,
        };
        self.submit(slot, IoOp::Read, (edges, 0), first)?;
        if whole > self.served.block {
            // Rarely the array takes no second one now: the first is waited for, and tried again then.
            if !self.engine.can_accept() {
                self.drain()?;
            }
            let last = Span { offset: span.end() - self.served.block, ..first };
            let from = (self.served.block / raidlab_core::SECTOR_BYTES) as u32;
            self.submit(slot, IoOp::Read, (edges, from), last)?;
        }
        Ok(())
    }

    /// The second step: the payload between what the edges hold, and the whole to the array.
    fn write_between(&mut self, slot: usize, span: Span, edges: Token) -> Result<(), EngineError> {
        let held = self.engine.bytes(edges)?.to_vec();
        self.engine.release(edges)?;
        self.slots[slot].task = Task::Write { span, edges: None };
        if self.slots[slot].error != 0 {
            return self.finish(slot);
        }
        let buffer = self.slots[slot].buffer;
        let (block, whole) = (self.served.block as usize, span.whole() as usize);
        let (skip, len) = (span.skip() as usize, span.len as usize);
        let bytes = self.engine.bytes_mut(buffer)?;
        bytes.copy_within(..len, skip);
        bytes[..skip].copy_from_slice(&held[..skip]);
        let end = skip + len;
        let last = if whole > block { &held[block..] } else { &held[..block] };
        bytes[end..whole].copy_from_slice(&last[block - (whole - end)..]);
        if !self.engine.can_accept() {
            self.drain()?;
        }
        self.submit(slot, IoOp::Write, (buffer, 0), span)
    }

    /// Finds whose the replies are. The engine's places for requests are used again at once, so this must
    /// be done before anything is submitted.
    fn name_slots(&mut self) {
        let owners = &self.owners;
        let named = |reply: Reply| (owners[reply.id.0 as u32 as usize], reply.outcome);
        self.arrived.extend(self.replies.drain(..).map(named));
    }

    /// Waits until the array has answered everything.
    fn drain(&mut self) -> Result<(), EngineError> {
        self.engine.run_until_idle(&mut self.replies)?;
        self.name_slots();
        Ok(())
    }

    fn replied(&mut self, slot: usize, outcome: Outcome) -> Result<(), EngineError> {
        let one = &mut self.slots[slot];
        one.pending -= 1;
        if outcome != Outcome::Done && one.error == 0 {
            one.error = error_number(outcome);
        }
        match one.task {
            _ if one.pending > 0 => Ok(()),
            Task::Write { span, edges: Some(edges) } => self.write_between(slot, span, edges),
            _ => self.finish(slot),
        }
    }

    /// Answers the message of a slot, and frees it.
    fn finish(&mut self, slot: usize) -> Result<(), EngineError> {
        let Answer { unique, task, error, buffer, .. } = self.slots[slot];
        self.slots[slot].task = Task::Idle;
        self.order.done(slot);
        self.free.push(slot);
        match task {
            _ if error != 0 => self.refuse(unique, error),
            Task::Read(span) => {
                let bytes = self.engine.bytes(buffer)?;
                let body = &bytes[span.skip() as usize..][..span.len as usize];
                send(&self.device, &protocol::answer_header(unique, body.len(), 0), body)
            }
            Task::Write { span, .. } => self.answer(unique, &protocol::written(span.len as u32)),
            Task::Zero(_) | Task::Sync | Task::Idle => self.answer(unique, &[]),
        }
    }

    fn answer(&self, unique: u64, body: &[u8]) -> Result<(), EngineError> {
        send(&self.device, &protocol::answer_header(unique, body.len(), 0), body)
    }

    fn refuse(&self, unique: u64, error: i32) -> Result<(), EngineError> {
        send(&self.device, &protocol::answer_header(unique, 0, error), &[])
    }
}

fn send(device: &File, header: &[u8; ANSWER_HEADER], body: &[u8]) -> Result<(), EngineError> {
    match system::send(device, header, body) {
        Ok(()) => Ok(()),
        // Nobody waits for the answer any more, or the filesystem is being taken down.
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ECONNABORTED) => Ok(()),
            _ => Err(device_error(error)),
        },
    }
}

fn sectors(span: Span) -> (Sector, Sectors) {
    let sector = raidlab_core::SECTOR_BYTES;
    (Sector(span.start() / sector), Sectors(span.whole() / sector))
}

/// What an outcome is for who reads and writes a file.
fn error_number(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::NotSupported => libc::EOPNOTSUPP,
        Outcome::OutOfRange => libc::ENOSPC,
        _ => libc::EIO,
    }
}

fn device_error(error: io::Error) -> EngineError {
    EngineError::io(SERVE, system::DEVICE.as_ref(), error)
}
