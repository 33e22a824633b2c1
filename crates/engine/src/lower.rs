//! Arrays that are members of other arrays, as md stacks them.
//!
//! Each array of such a stack is an [`Engine`] with superblocks, bitmap, spares and background work of its own. A lower
//! one runs on a thread of its own, and is a [`MemberStore`] to the one above it. Requests and commands go downwards
//! only, and a lower array waits for nobody but its members, so that no circle of waiting can arise.
//!
//! Fault model: any member of a lower array may do what members do, and the process may be killed at any moment. Why it
//! is safe: a flush, and a write that must be durable, is answered when the lower array has answered it, whose members
//! have made it durable with the records that it needs; a lower array that has lost more than its level survives
//! answers [`IoOutcome::Gone`], which takes it out of service above. Tests: `tests/lower_arrays.rs`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use raidlab_core::contract::{IoOp, IoOutcome, Outcome, RequestId, Segment, Token};
use raidlab_core::{Sector, Sectors};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::engine::{Engine, Reply};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Member, MemberRequest, MemberStore};

const START: &str = "start a lower array";
const ASK: &str = "ask a lower array";

/// An array that runs on a thread of its own, to be a member of another array. It ends with the last of its handles
/// and [members](Self::member); stop it first, so that it is marked clean.
///
/// Every request is copied once more than to a member in memory: it has memory of its own above, and a buffer of the
/// array's below. Memory is taken for as many requests as were ever under way at once, and kept.
#[derive(Clone, Debug)]
pub struct LowerArray {
    thread: Arc<Thread>,
    /// Sectors that whoever it is a member of reads and writes together.
    block: u32,
}

/// The threads; they are waited for when nobody wants anything of them any more.
#[derive(Debug)]
struct Thread {
    inbox: Arc<Mutex<Inbox>>,
    /// Only the threads own it: others may have a table of descriptors of their own.
    signal: Weak<File>,
    /// Where commands come in, also from threads with other descriptors; without it the array ends.
    commands: Mutex<Option<Sender<Command>>>,
    handles: Mutex<Vec<JoinHandle<()>>>,
    sectors: Sectors,
    block: u32,
    /// Arrays that it is a member of.
    users: AtomicUsize,
}

/// What a thread has of what the array is asked for.
#[derive(Debug)]
struct Shared {
    inbox: Arc<Mutex<Inbox>>,
    /// Wakes the array's thread.
    signal: Arc<File>,
}

type Command = Box<dyn FnOnce(&mut Engine) + Send>;

#[derive(Default)]
struct Inbox {
    /// With the sector of the array that each counts from.
    requests: Vec<(MemberRequest, Sectors)>,
    commands: Vec<Command>,
    sleeps: bool,
    closing: bool,
    /// The thread is there no more: nothing is taken.
    ended: bool,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("requests", &self.requests).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panicked left in lists and flags is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts something in, and wakes the array's thread if it sleeps. Without a thread it is dropped.
fn put(inbox: &Mutex<Inbox>, signal: &File, change: impl FnOnce(&mut Inbox)) {
    let mut inbox = lock(inbox);
    if inbox.ended {
        return drop(inbox);
    }
    change(&mut inbox);
    let wake = std::mem::take(&mut inbox.sleeps);
    drop(inbox);
    if wake {
        let mut signal = signal;
        // An event counter that is full can be read all the same.
        let _ = signal.write(&1u64.to_ne_bytes());
    }
}

impl LowerArray {
    /// Starts the array that `make` makes, on the thread that it will run on; what it gives besides is handed on.
    ///
    /// # Errors
    /// Those of `make`; [`EngineErrorKind::Io`] when there is no thread to be had.
    pub fn new<T, E>(
        make: impl FnOnce() -> Result<(Engine, T), E> + Send + 'static,
    ) -> Result<(Self, T), E>
    where
        T: Send + 'static,
        E: From<EngineError> + Send + 'static,
    {
        let failed = |error: io::Error| {
            E::from(EngineError::new(EngineErrorKind::Io, START, error.to_string()))
        };
        let (told, made) = channel();
        let run = move || {
            let (floor, more) =
                match make().and_then(|(engine, more)| Ok((Floor::new(engine)?, more))) {
                    Ok(made) => made,
                    Err(error) => return drop(told.send(Err(error))),
                };
            let (array, block) = (floor.engine.array().capacity(), floor.engine.block());
            let Shared { inbox, signal } = &floor.shared;
            let shared = Shared { inbox: Arc::clone(inbox), signal: Arc::clone(signal) };
            let (commands, received) = channel();
            let relay = move || relay(&shared, &received);
            let relay = match std::thread::Builder::new().name("lower array".into()).spawn(relay) {
                Ok(relay) => relay,
                Err(error) => return drop(told.send(Err(failed(error)))),
            };
            let thread = Thread {
                inbox: Arc::clone(inbox),
                signal: Arc::downgrade(signal),
                commands: Mutex::new(Some(commands)),
                handles: Mutex::new(vec![relay]),
                sectors: array,
                block: block.0 as u32,
                users: AtomicUsize::new(0),
            };
            // Somebody waits for it.
            let _ = told.send(Ok((thread, more)));
            floor.run();
        };
        let thread = std::thread::Builder::new().name("lower array".into());
        let handle = thread.spawn(run).map_err(failed)?;
        match made.recv() {
            Ok(Ok((thread, more))) => {
                lock(&thread.handles).push(handle);
                let block = thread.block;
                Ok((Self { thread: Arc::new(thread), block }, more))
            }
            Ok(Err(error)) => {
                // What it had opened is closed then.
                let _ = handle.join();
                Err(error)
            }
            Err(_) => {
                // It panicked while it made the array.
                let _ = handle.join();
                let reason = "its thread ended";
                Err(EngineError::new(EngineErrorKind::Internal, START, reason).into())
            }
        }
    }

    /// The same with sectors of so many of 512 bytes to whom it is a member of, where these are more than its members'.
    #[must_use]
    pub fn in_blocks(self, block: Sectors) -> Self {
        let block = u32::try_from(block.0).unwrap_or(u32::MAX).max(self.block);
        Self { block, ..self }
    }

    /// The array as a member of another one, from its first sector to its last.
    pub fn member(&self) -> Member {
        self.part(Sectors::ZERO, self.thread.sectors)
    }

    /// A range of it as a member: of an array that is only read, whose members begin with their data. What does not
    /// lie within the array is left off.
    pub fn part(&self, start: Sectors, sectors: Sectors) -> Member {
        let start = start.min(self.thread.sectors);
        let sectors = sectors.min(self.thread.sectors - start);
        self.thread.users.fetch_add(1, Ordering::Relaxed);
        Member::from(Store { thread: Arc::clone(&self.thread), block: self.block, start, sectors })
    }

    /// Whether it is a member of an array now.
    pub fn is_member(&self) -> bool {
        self.thread.users.load(Ordering::Relaxed) > 0
    }

    /// Sectors that it holds.
    pub fn sectors(&self) -> Sectors {
        self.thread.sectors
    }

    /// Does something with the engine, on its thread; what is opened for it is opened there.
    ///
    /// # Errors
    /// [`EngineErrorKind::Internal`] when the thread has ended.
    pub fn with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        let (told, done) = channel();
        let command: Command = Box::new(move |engine| {
            // Somebody waits for it.
            let _ = told.send(work(engine));
        });
        if let Some(commands) = &*lock(&self.thread.commands) {
            // One that nobody takes is dropped, and so is its end of the channel.
            let _ = commands.send(command);
        }
        let ended = |_| EngineError::new(EngineErrorKind::Internal, ASK, "its thread has ended");
        done.recv().map_err(ended)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(lock(&self.commands).take());
        let here = std::thread::current().id();
        for handle in lock(&self.handles).drain(..).filter(|one| one.thread().id() != here) {
            // A thread that panicked has nothing under way any more.
            let _ = handle.join();
        }
    }
}

/// Hands commands on, with the descriptors of the array's thread; then says that it is to end.
fn relay(shared: &Shared, commands: &Receiver<Command>) {
    for command in commands {
        put(&shared.inbox, &shared.signal, |inbox| inbox.commands.push(command));
    }
    put(&shared.inbox, &shared.signal, |inbox| inbox.closing = true);
}

/// The array as the one above it sees it.
struct Store {
    thread: Arc<Thread>,
    block: u32,
    start: Sectors,
    sectors: Sectors,
}

impl MemberStore for Store {
    fn sectors(&self) -> Sectors {
        self.sectors
    }

    fn logical_block(&self) -> u32 {
        self.block
    }

    fn submit(&mut self, request: MemberRequest) {
        let start = self.start;
        // One that is not taken is dropped, which answers it.
        let Some(signal) = self.thread.signal.upgrade() else { return };
        put(&self.thread.inbox, &signal, |inbox| inbox.requests.push((request, start)));
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.thread.users.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that waits, or is under way.
struct Job {
    request: MemberRequest,
    /// The sector of the array that it counts from.
    start: Sectors,
    /// A flush that must be done first is.
    flushed: bool,
    memory: Option<(Token, u64)>,
}

/// The thread's own.
struct Floor {
    engine: Engine,
    shared: Shared,
    taken: Vec<(MemberRequest, Sectors)>,
    waiting: VecDeque<Job>,
    /// Under way, by the place of the request.
    under_way: Vec<Option<Job>>,
    count: usize,
    memory: Vec<(Token, u64)>,
    replies: Vec<Reply>,
    /// The engine gave up: nothing is carried out any more.
    broken: bool,
}

impl Floor {
    fn new(engine: Engine) -> Result<Self, EngineError> {
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let failed = |error: Errno| {
            EngineError::new(EngineErrorKind::Io, START, io::Error::from(error).to_string())
        };
        let signal = Arc::new(File::from(signal.map_err(failed)?));
        Ok(Self {
            engine,
            shared: Shared { inbox: Arc::default(), signal },
            taken: Vec::new(),
            waiting: VecDeque::new(),
            under_way: Vec::new(),
            count: 0,
            memory: Vec::new(),
            replies: Vec::new(),
            broken: false,
        })
    }

    fn run(mut self) {
        loop {
            let (closing, obeyed) = self.take();
            let begun = self.begin();
            if self.engine.poll_replies(&mut self.replies).is_err() {
                self.give_up();
            }
            let answered = self.answer();
            if closing && self.count == 0 && self.waiting.is_empty() {
                return;
            }
            if !obeyed && !begun && !answered {
                self.sleep();
            }
        }
    }

    /// Takes what has come and carries commands out; whether it is to end, and whether there was a command.
    fn take(&mut self) -> (bool, bool) {
        let mut inbox = lock(&self.shared.inbox);
        std::mem::swap(&mut inbox.requests, &mut self.taken);
        let commands = std::mem::take(&mut inbox.commands);
        let closing = inbox.closing;
        drop(inbox);
        let job = |(request, start)| Job { request, start, flushed: false, memory: None };
        self.waiting.extend(self.taken.drain(..).map(job));
        let obeyed = !commands.is_empty();
        for command in commands {
            command(&mut self.engine);
        }
        (closing, obeyed)
    }

    /// Hands waiting requests to the array as far as it takes them; whether there was one.
    fn begin(&mut self) -> bool {
        let mut begun = false;
        while self.broken || self.engine.can_accept() {
            let Some(job) = self.waiting.pop_front() else { break };
            begun = true;
            self.start(job);
        }
        begun
    }

    fn start(&mut self, mut job: Job) {
        if self.broken {
            return job.request.complete(IoOutcome::Gone);
        }
        let (op, at, len) = (job.request.op(), job.request.at() + job.start, job.request.len());
        let submitted = match op {
            _ if job.request.flushes_first() && !job.flushed => {
                self.engine.submit(IoOp::Flush, Sector(0), &[], false)
            }
            IoOp::Flush => self.engine.submit(op, Sector(0), &[], false),
            IoOp::Discard | IoOp::WriteZeroes => self.engine.submit_range(op, at, len),
            IoOp::Read | IoOp::Write => self.transfer(&mut job),
        };
        match submitted {
            Ok(id) => {
                let place = id.0 as u32 as usize;
                if self.under_way.len() <= place {
                    self.under_way.resize_with(place + 1, || None);
                }
                self.under_way[place] = Some(job);
                self.count += 1;
            }
            Err(error) => {
                self.memory.extend(job.memory.take());
                job.request.complete(match error.kind() {
                    EngineErrorKind::NoRoom => IoOutcome::NoSpace,
                    _ => IoOutcome::Gone,
                });
            }
        }
    }

    /// Submits a request that has payload.
    fn transfer(&mut self, job: &mut Job) -> Result<RequestId, EngineError> {
        let (op, at, len) = (job.request.op(), job.request.at() + job.start, job.request.len());
        let bytes = len.bytes();
        let known = self.memory.iter().position(|(_, room)| *room >= bytes);
        let (token, room) = match known {
            Some(known) => self.memory.swap_remove(known),
            None => {
                let room = bytes.next_power_of_two().max(4096);
                (self.engine.allocate(room)?, room)
            }
        };
        job.memory = Some((token, room));
        let payload = job.request.payload();
        self.engine.bytes_mut(token)?[..payload.len()].copy_from_slice(payload);
        let segment = Segment { token, offset: 0, len: len.0 as u32 };
        self.engine.submit(op, at, &[segment], job.request.is_durable())
    }

    /// Answers what the array has answered; whether there was something.
    fn answer(&mut self) -> bool {
        let mut replies = std::mem::take(&mut self.replies);
        let some = !replies.is_empty();
        for reply in replies.drain(..) {
            let place = reply.id.0 as u32 as usize;
            let Some(job) = self.under_way.get_mut(place).and_then(Option::take) else { continue };
            self.count -= 1;
            self.finish(job, reply.outcome);
        }
        self.replies = replies;
        some
    }

    fn finish(&mut self, mut job: Job, outcome: Outcome) {
        let memory = job.memory.take();
        self.memory.extend(memory);
        let Job { request, start, flushed, .. } = job;
        let outcome = to_member(&request, start, outcome);
        if request.flushes_first() && !flushed {
            return match outcome {
                IoOutcome::Ok => {
                    self.waiting.push_front(Job { request, start, flushed: true, memory: None });
                }
                // What a flush has lost nobody knows.
                _ => request.complete(IoOutcome::Gone),
            };
        }
        match (request.op(), outcome, memory) {
            (IoOp::Read, IoOutcome::Ok, Some((token, _))) => {
                let len = request.len().bytes() as usize;
                match self.engine.bytes(token) {
                    Ok(bytes) => request.complete_read(&bytes[..len]),
                    Err(_) => request.complete(IoOutcome::Gone),
                }
            }
            (_, outcome, _) => request.complete(outcome),
        }
    }

    /// After a fault of the engine: to the array above the member is gone.
    fn give_up(&mut self) {
        self.broken = true;
        for job in self.under_way.iter_mut().filter_map(Option::take) {
            job.request.complete(IoOutcome::Gone);
        }
        self.count = 0;
    }

    /// Waits for a request, a command, an answer of a member, or until the array wants to be woken.
    fn sleep(&mut self) {
        if !self.broken && !self.engine.arm(&self.shared.signal) {
            return;
        }
        let mut inbox = lock(&self.shared.inbox);
        let is_empty = inbox.requests.is_empty() && inbox.commands.is_empty() && !inbox.closing;
        inbox.sleeps = is_empty;
        drop(inbox);
        if is_empty {
            let ring = if self.broken { None } else { self.engine.ring_descriptor() };
            let watch = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
            let signal = self.shared.signal.as_fd();
            let mut watched = [watch(signal), watch(ring.unwrap_or(signal))];
            let limit = if self.broken { None } else { self.engine.wake_in() };
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            match poll(&mut watched, limit.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // Without it there is no waiting: the next round looks again.
                Err(_) => std::thread::yield_now(),
            }
            lock(&self.shared.inbox).sleeps = false;
            // Nothing to read is as good as something read.
            let _ = (&*self.shared.signal).read(&mut [0; 8]);
        }
        self.engine.disarm();
    }
}

impl Drop for Floor {
    /// Nobody waits for a thread that has ended, however it did.
    fn drop(&mut self) {
        let mut inbox = lock(&self.shared.inbox);
        inbox.ended = true;
        let left = (std::mem::take(&mut inbox.requests), std::mem::take(&mut inbox.commands));
        drop(inbox);
        drop(left);
    }
}

/// What the outcome of a request is to the array above.
fn to_member(request: &MemberRequest, start: Sectors, outcome: Outcome) -> IoOutcome {
    match outcome {
        Outcome::Done => IoOutcome::Ok,
        // What is discarded may be anything, so it may be what it was.
        Outcome::NotSupported if request.op() == IoOp::Discard => IoOutcome::Ok,
        Outcome::MediaError { first_bad } => {
            IoOutcome::MediaError { first_bad: Sector(first_bad.0.saturating_sub(start.0)) }
        }
        Outcome::Inconsistent => IoOutcome::MediaError { first_bad: request.at() },
        _ => IoOutcome::Gone,
    }
}
