//! The messages of the kernel that are worked on: taken in, handed to an array step by step, answered. Whoever has the
//! array has it do so; what else comes to that array, of whomever, keeps to the same [`Order`].
//!
//! The payload of a write is received into the buffer that the array writes from, and that of a read is
//! sent from the buffer it was read into: nothing is copied here but for parts of blocks.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use raidlab_core::contract::{IoOp, Outcome, RequestId, Segment, Token};
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, EngineErrorKind};

use super::answers::{self, Decision, Served};
use super::protocol::{self, ANSWER_HEADER, Ask, Message, WRITE_HEAD};
use super::ranges::Range;
use super::requests::{Order, Span};
use super::system;

/// Messages that are worked on at once.
const SLOTS: u32 = 64;
/// What the tickets of messages have, and those of nothing else.
const MESSAGE: u32 = 1 << 31;
const SERVE: &str = "serve the array";

/// Whether a ticket is one of a message.
#[inline]
pub(crate) fn is_message(ticket: u32) -> bool {
    ticket & MESSAGE != 0
}

/// What a slot is at.
#[derive(Clone, Copy, Debug)]
enum Task {
    Idle,
    Read(Span),
    Write(Span),
    /// The first and last block of a write are read into this memory, as they are written as a part only.
    Edges(Span, Token),
    /// The payload stands between what these hold.
    Merged(Span),
    /// What is left of a range that becomes zeroes.
    Zero(Range),
    Sync,
}

#[derive(Debug)]
struct Slot {
    buffer: Token,
    unique: u64,
    task: Task,
    /// What it writes is to be durable when it is answered.
    durable: bool,
    /// Requests that its step takes, and that are not answered.
    pending: u32,
    /// The first error, from `errno.h`; 0 for none.
    error: i32,
}

/// Where a session stands with the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// It may have more messages.
    More,
    /// It has none now.
    Empty,
    /// The filesystem is unmounted.
    Gone,
}

/// The messages of one mount.
#[derive(Debug)]
pub(crate) struct Session {
    /// `None` when the filesystem is unmounted.
    device: Option<File>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    served: Served,
}

impl Session {
    /// Gets ready to serve an array at the device of a mount.
    ///
    /// # Errors
    /// When there is no memory for its buffers.
    pub(super) fn new(
        device: File,
        engine: &mut Engine,
        open_flags: u32,
    ) -> Result<Self, EngineError> {
        let block = engine.block().bytes();
        let room = answers::room(block);
        let slot = |_| {
            let buffer = engine.allocate(room)?;
            let (task, durable) = (Task::Idle, false);
            Ok(Slot { buffer, unique: 0, task, durable, pending: 0, error: 0 })
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<Vec<_>, EngineError>>()?;
        let size = engine.array().capacity().bytes();
        let served = Served { size, block, open_flags };
        Ok(Self { device: Some(device), slots, free: (0..SLOTS).rev().collect(), served })
    }

    /// Can be read when there is a message; `None` when the filesystem is unmounted.
    pub(crate) fn device(&self) -> Option<BorrowedFd<'_>> {
        self.device.as_ref().map(AsFd::as_fd)
    }

    /// Whether it takes another message in.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether all messages that were taken in are answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The filesystem is unmounted: nobody waits for answers any more.
    pub(crate) fn lose_device(&mut self) {
        self.device = None;
    }

    /// Closes the device, which ends whatever waits for an answer; gives the buffers, which belong to the engine as
    /// long as it has requests of them.
    pub(crate) fn close(self) -> impl Iterator<Item = Token> {
        self.slots.into_iter().map(|slot| slot.buffer)
    }

    /// Takes in as many messages as there are and have room; where the device is then, and whether there were any.
    ///
    /// # Errors
    /// A fault of raidlab itself, or of the device.
    pub(crate) fn hear(
        &mut self,
        engine: &mut Engine,
        order: &mut Order,
    ) -> Result<(Device, bool), EngineError> {
        let (mut device, mut any) = (Device::More, false);
        while device == Device::More && self.has_room() {
            device = self.take_message(engine, order)?;
            any |= device == Device::More;
        }
        if device == Device::Gone {
            self.device = None;
        }
        Ok((device, any))
    }

    fn take_message(
        &mut self,
        engine: &mut Engine,
        order: &mut Order,
    ) -> Result<Device, EngineError> {
        let Some(&slot) = self.free.last() else { return Ok(Device::Empty) };
        let Some(device) = &self.device else { return Ok(Device::Gone) };
        let mut head = [0; WRITE_HEAD];
        let len = loop {
            let rest = engine.bytes_mut(self.slots[slot as usize].buffer)?;
            match system::receive(device, &mut head, rest) {
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
                    let buffer = self.slots[slot as usize].buffer;
                    let rest = &engine.bytes(buffer)?[..len - WRITE_HEAD];
                    protocol::parse(&[&head[..], rest].concat())
                }
            }
        };
        let Some(message) = message else {
            let reason = format!("the kernel sent a message of {len} bytes");
            return Err(EngineError::new(EngineErrorKind::Internal, SERVE, reason));
        };
        self.judge(slot, message, len.saturating_sub(WRITE_HEAD), order)?;
        Ok(Device::More)
    }

    /// Answers what can be answered at once, and queues the rest.
    fn judge(
        &mut self,
        slot: u32,
        message: Message,
        payload: usize,
        order: &mut Order,
    ) -> Result<(), EngineError> {
        let Message { unique, ask } = message;
        let block = self.served.block;
        let span = |(offset, len)| Span { offset, len, block };
        let mut durable = false;
        let (task, change) = match answers::decide(ask, &self.served, payload) {
            Decision::Nothing => return Ok(()),
            Decision::Answer(body) => return self.answer(unique, &body),
            Decision::Refuse(error) => return self.refuse(unique, error),
            Decision::Read(offset, len) => (Task::Read(span((offset, len))), None),
            Decision::Write(offset, len, is_durable) => {
                durable = is_durable;
                let span = span((offset, len));
                (Task::Write(span), Some(span))
            }
            Decision::Zero(offset, len) => {
                let span = span((offset, len));
                (Task::Zero(Range::new(offset, len)), Some(span))
            }
            Decision::Sync => (Task::Sync, None),
        };
        // The slot is the last free one.
        self.free.pop();
        let buffer = self.slots[slot as usize].buffer;
        self.slots[slot as usize] = Slot { buffer, unique, task, durable, pending: 0, error: 0 };
        order.add(slot | MESSAGE, change);
        Ok(())
    }

    /// Hands the next step of a message to an array that takes a request; its number, and `None` when it comes again,
    /// or when it was refused since a member has no room: then nothing of it was written, and the message is answered.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    pub(crate) fn begin(
        &mut self,
        ticket: u32,
        engine: &mut Engine,
        order: &mut Order,
    ) -> Result<Option<RequestId>, EngineError> {
        let one = &mut self.slots[(ticket & !MESSAGE) as usize];
        let is_part = matches!(one.task, Task::Zero(_));
        if is_part && !order.begin_part(ticket) {
            return Ok(None);
        }
        // The second of two edges is counted already.
        one.pending += u32::from(!matches!(one.task, Task::Edges(..)));
        let begun = match one.task {
            Task::Read(span) => submit(engine, (IoOp::Read, false), (one.buffer, 0), span),
            Task::Write(span) if !span.is_whole() => one.read_edges((ticket, span), engine, order),
            Task::Write(span) | Task::Merged(span) => {
                submit(engine, (IoOp::Write, one.durable), (one.buffer, 0), span)
            }
            Task::Edges(span, edges) => {
                let last = span.end() - span.block;
                let last = Span { offset: last, len: span.block, ..span };
                let from = (span.block / SECTOR_BYTES) as u32;
                submit(engine, (IoOp::Read, false), (edges, from), last)
            }
            Task::Zero(mut range) => {
                let begun = range.submit(engine, IoOp::WriteZeroes);
                one.task = Task::Zero(range);
                begun
            }
            Task::Sync | Task::Idle => engine.submit(IoOp::Flush, Sector(0), &[], false),
        };
        match begun {
            Err(error) if error.kind() == EngineErrorKind::NoRoom => {
                one.error = libc::ENOSPC;
                if is_part {
                    order.end_part();
                }
                self.finish(ticket, engine, order).map(|()| None)
            }
            begun => begun.map(Some),
        }
    }

    /// A request of a message was answered.
    ///
    /// # Errors
    /// A fault of raidlab itself, or of the device.
    pub(crate) fn replied(
        &mut self,
        ticket: u32,
        outcome: Outcome,
        engine: &mut Engine,
        order: &mut Order,
    ) -> Result<(), EngineError> {
        let one = &mut self.slots[(ticket & !MESSAGE) as usize];
        one.pending -= 1;
        if outcome != Outcome::Done && one.error == 0 {
            one.error = error_number(outcome);
        }
        match one.task {
            _ if one.pending > 0 => Ok(()),
            Task::Zero(range) => {
                order.end_part();
                if one.error != 0 || range.is_done() {
                    return self.finish(ticket, engine, order);
                }
                order.add(ticket, None);
                Ok(())
            }
            Task::Edges(span, edges) => {
                one.merge(span, edges, engine)?;
                if one.error != 0 {
                    return self.finish(ticket, engine, order);
                }
                order.go_on(ticket);
                Ok(())
            }
            _ => self.finish(ticket, engine, order),
        }
    }

    /// Answers a message, and frees its slot.
    fn finish(
        &mut self,
        ticket: u32,
        engine: &Engine,
        order: &mut Order,
    ) -> Result<(), EngineError> {
        let slot = ticket & !MESSAGE;
        let one = &mut self.slots[slot as usize];
        let (unique, error, buffer) = (one.unique, one.error, one.buffer);
        let task = std::mem::replace(&mut one.task, Task::Idle);
        order.done(ticket);
        self.free.push(slot);
        match task {
            _ if error != 0 => self.refuse(unique, error),
            Task::Read(span) => {
                let bytes = engine.bytes(buffer)?;
                self.answer(unique, &bytes[span.skip() as usize..][..span.len as usize])
            }
            Task::Write(span) | Task::Merged(span) => {
                self.answer(unique, &protocol::written(span.len as u32))
            }
            Task::Edges(..) | Task::Zero(_) | Task::Sync | Task::Idle => self.answer(unique, &[]),
        }
    }

    fn answer(&self, unique: u64, body: &[u8]) -> Result<(), EngineError> {
        self.send(&protocol::answer_header(unique, body.len(), 0), body)
    }

    fn refuse(&self, unique: u64, error: i32) -> Result<(), EngineError> {
        self.send(&protocol::answer_header(unique, 0, error), &[])
    }

    fn send(&self, header: &[u8; ANSWER_HEADER], body: &[u8]) -> Result<(), EngineError> {
        let Some(device) = &self.device else { return Ok(()) };
        match system::send(device, header, body) {
            Ok(()) => Ok(()),
            // Nobody waits for the answer any more, or the filesystem is being taken down.
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::ECONNABORTED) => Ok(()),
                _ => Err(device_error(error)),
            },
        }
    }
}

impl Slot {
    /// The first step of writing parts of blocks: one request for the first and the last block, or for
    /// the only one; with a block between them for that too.
    fn read_edges(
        &mut self,
        (ticket, span): (u32, Span),
        engine: &mut Engine,
        order: &mut Order,
    ) -> Result<RequestId, EngineError> {
        let edges = engine.allocate(2 * span.block)?;
        self.task = Task::Edges(span, edges);
        if span.whole() > span.block {
            self.pending += 1;
            order.go_on(ticket);
        }
        let first = Span { offset: span.start(), len: span.block, ..span };
        submit(engine, (IoOp::Read, false), (edges, 0), first)
    }

    /// The second step: the payload between what the edges hold. The whole goes to the array then.
    fn merge(&mut self, span: Span, edges: Token, engine: &mut Engine) -> Result<(), EngineError> {
        let held = engine.bytes(edges)?.to_vec();
        engine.release(edges)?;
        self.task = Task::Merged(span);
        let (block, whole) = (span.block as usize, span.whole() as usize);
        let (skip, len) = (span.skip() as usize, span.len as usize);
        let bytes = engine.bytes_mut(self.buffer)?;
        bytes.copy_within(..len, skip);
        bytes[..skip].copy_from_slice(&held[..skip]);
        let end = skip + len;
        let last = if whole > block { &held[block..] } else { &held[..block] };
        bytes[end..whole].copy_from_slice(&last[block - (whole - end)..]);
        Ok(())
    }
}

/// Has the array read or write the blocks of a span, durably or not, at sector `from` of a buffer on.
fn submit(
    engine: &mut Engine,
    (op, durable): (IoOp, bool),
    (token, from): (Token, u32),
    span: Span,
) -> Result<RequestId, EngineError> {
    let (at, len) = sectors(span);
    let segment = Segment { token, offset: from, len: len.0 as u32 };
    engine.submit(op, at, &[segment], durable)
}

fn sectors(span: Span) -> (Sector, Sectors) {
    (Sector(span.start() / SECTOR_BYTES), Sectors(span.whole() / SECTOR_BYTES))
}

/// What an outcome is for who reads and writes a file.
fn error_number(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::NotSupported => libc::EOPNOTSUPP,
        Outcome::OutOfRange => libc::ENOSPC,
        _ => libc::EIO,
    }
}

pub(super) fn device_error(error: io::Error) -> EngineError {
    EngineError::io(SERVE, system::DEVICE.as_ref(), error)
}

#[cfg(test)]
mod tests {
    use raidlab_core::{Layout, Level};
    use raidlab_engine::{EngineConfig, Member, MemoryMember, Reply};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    /// A message about a range of the file.
    fn message(operation: u32, unique: u64, (at, len, mode): (u64, u64, u32)) -> Vec<u8> {
        let mut bytes = [72_u32, operation].map(u32::to_ne_bytes).concat();
        bytes.extend([unique, 2, 0, 0, 0, at, len].map(u64::to_ne_bytes).concat());
        bytes.extend([mode, 0].map(u32::to_ne_bytes).concat());
        bytes
    }

    /// Two ranges are zeroed in turn, 32 MiB at once at most; what else was asked does not wait for their ends.
    #[test]
    fn zeroes_are_made_part_by_part_in_turn() {
        const MIB: u64 = 1 << 20;
        const ZERO_RANGE: u32 = 16;
        let members = (0..2)
            .map(|_| Member::Memory(MemoryMember::new(Sectors(40 * MIB / SECTOR_BYTES)).unwrap()));
        let config = EngineConfig::new(Layout::new(Level::Raid0, 2));
        let mut engine = Engine::new(&config, members.collect()).unwrap();
        let size = engine.array().capacity().bytes();
        assert!(size > 64 * MIB, "{size}");
        let marks = [0, 32 * MIB - 4096, 32 * MIB, 64 * MIB, size - 4096];
        for at in marks {
            engine.write_at(Sector(at / SECTOR_BYTES), &[7; 4096]).unwrap();
        }
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let (mut session, mut order) =
            (Session::new(ours.into(), &mut engine, 0).unwrap(), Order::default());
        let kernel = File::from(theirs);
        for (operation, unique, what) in
            [(43, 1, (0, size, ZERO_RANGE)), (43, 2, (0, size, ZERO_RANGE)), (20, 3, (0, 0, 0))]
        {
            system::send(&kernel, &message(operation, unique, what), &[]).unwrap();
        }
        let (mut begun, mut owners, mut replies) = (Vec::new(), Vec::new(), Vec::new());
        session.hear(&mut engine, &mut order).unwrap();
        while !session.is_idle() {
            while let Some(ticket) = order.take() {
                if let Some(id) = session.begin(ticket, &mut engine, &mut order).unwrap() {
                    begun.push(session.slots[(ticket & !MESSAGE) as usize].unique);
                    owners.push((id, ticket));
                }
            }
            engine.poll_replies(&mut replies).unwrap();
            for Reply { id, outcome, .. } in replies.drain(..) {
                let ticket = owners.iter().rev().find(|(own, _)| *own == id).unwrap().1;
                session.replied(ticket, outcome, &mut engine, &mut order).unwrap();
            }
        }
        assert_eq!(begun, [1, 3, 2, 1, 2, 1, 2]);
        let mut answered = Vec::new();
        let mut answer = [0; ANSWER_HEADER];
        while let Ok(len) = system::receive(&kernel, &mut answer, &mut []) {
            assert_eq!((len, &answer[4..8]), (ANSWER_HEADER, &[0; 4][..]));
            answered.push(answer[8]);
        }
        assert_eq!(answered, [3, 1, 2]);
        for at in marks {
            let mut found = [1; 4096];
            engine.read_at(Sector(at / SECTOR_BYTES), &mut found).unwrap();
            assert_eq!(found, [0; 4096], "at {at}");
        }
    }
}
