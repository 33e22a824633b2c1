//! Threads for blocking system calls: a queue and threads per file member, one mailbox for all answers.
//!
//! The loop hands over a whole batch under one lock, and wakes no more threads than there are I/Os and
//! sleepers. Threads are started when first needed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use raidlab_core::contract::IoOutcome;

use super::Submission;
use super::system::Disk;
use crate::buffers::{Area, Piece};

/// The engine's name for an I/O that a member takes to its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u32);

/// An I/O on its way to a thread.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) ticket: Ticket,
    pub(crate) submission: Submission,
    /// Used up from the front.
    pub(crate) pieces: Vec<Piece>,
    /// The memory the pieces lie in, where it is the I/O's own: then the I/O can be given up while a
    /// thread is at it.
    pub(crate) bounce: Option<Area>,
}

/// An I/O that a thread has done.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ticket: Ticket,
    pub(crate) outcome: IoOutcome,
    /// [`Work::pieces`], given back for the next.
    pub(crate) pieces: Vec<Piece>,
    /// [`Work::bounce`], given back.
    pub(crate) bounce: Option<Area>,
}

impl Work {
    /// The answer to it.
    pub(crate) fn ended(self, outcome: IoOutcome) -> Finished {
        let Self { ticket, pieces, bounce, .. } = self;
        Finished { ticket, outcome, pieces, bounce }
    }
}

/// Locks; a thread that panicked leaves the plain values in these mutexes whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where all members of an engine leave their answers.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    mailbox: Mutex<Mailbox>,
    arrived: Condvar,
    /// Wakes who waits for the kernel's ring instead.
    bell: OnceLock<File>,
}

#[derive(Debug, Default)]
struct Mailbox {
    finished: Vec<Finished>,
    waiting: bool,
    /// Written to instead of waking a thread that waits.
    signal: Option<Arc<File>>,
}

impl Hub {
    /// With room for the answers to `ios` I/Os.
    pub(crate) fn new(ios: usize) -> Self {
        let finished = Vec::with_capacity(ios);
        Self { mailbox: Mutex::new(Mailbox { finished, ..Mailbox::default() }), ..Self::default() }
    }

    pub(super) fn deliver(&self, finished: Finished) {
        let mut mailbox = lock(&self.mailbox);
        mailbox.finished.push(finished);
        let wake = mailbox.waiting;
        mailbox.waiting = false;
        let signal = mailbox.signal.take();
        drop(mailbox);
        if let Some(signal) = signal {
            // An event counter that is full is readable all the same.
            let _ = (&*signal).write(&1u64.to_ne_bytes());
        }
        if wake {
            self.arrived.notify_one();
            if let Some(mut bell) = self.bell.get() {
                // Fails only when it has been rung more often than can be counted.
                let _ = bell.write(&1u64.to_ne_bytes());
            }
        }
    }

    /// Asks for one write to `signal` with the next answer; false when there is one already.
    pub(crate) fn arm(&self, signal: &Arc<File>) -> bool {
        let mut mailbox = lock(&self.mailbox);
        let none = mailbox.finished.is_empty();
        mailbox.signal = none.then(|| Arc::clone(signal));
        none
    }

    /// No write to a signal any more.
    pub(crate) fn disarm(&self) {
        lock(&self.mailbox).signal = None;
    }

    /// The event counter that is rung for who waits with [`expect_bell`](Self::expect_bell); the first
    /// stays.
    pub(crate) fn install_bell(&self, bell: File) {
        let _ = self.bell.set(bell);
    }

    /// The next answer rings the bell; false when one is there already.
    pub(crate) fn expect_bell(&self) -> bool {
        let mut mailbox = lock(&self.mailbox);
        mailbox.waiting = mailbox.finished.is_empty();
        mailbox.waiting
    }

    /// No answer rings the bell any more.
    pub(crate) fn ignore_bell(&self) {
        lock(&self.mailbox).waiting = false;
    }

    /// Swaps the answers that are there into `taken`, which must be empty.
    pub(crate) fn take(&self, taken: &mut Vec<Finished>) {
        std::mem::swap(&mut lock(&self.mailbox).finished, taken);
    }

    /// The same, after waiting until there is one or `limit` has passed.
    pub(crate) fn wait(&self, taken: &mut Vec<Finished>, limit: Option<Duration>) {
        let mut mailbox = lock(&self.mailbox);
        while mailbox.finished.is_empty() {
            mailbox.waiting = true;
            mailbox = match limit {
                None => self.arrived.wait(mailbox).unwrap_or_else(PoisonError::into_inner),
                Some(limit) => {
                    let woken = self.arrived.wait_timeout(mailbox, limit);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if limit.is_some() {
                mailbox.waiting = false;
                break;
            }
        }
        std::mem::swap(&mut mailbox.finished, taken);
    }
}

#[derive(Debug, Default)]
struct Queue {
    work: VecDeque<Work>,
    sleepers: usize,
    closing: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
}

/// The threads of one member.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    disk: Arc<Disk>,
    hub: Arc<Hub>,
    most: usize,
    threads: Vec<JoinHandle<()>>,
    /// Threads may hang, and are not waited for.
    detached: bool,
}

impl Workers {
    /// At most `most` threads that work on `disk` and answer to `hub`; none is started yet. Up to `ios`
    /// I/Os wait for them.
    pub(crate) fn new(disk: Arc<Disk>, hub: Arc<Hub>, most: usize, ios: usize) -> Self {
        let queue = Queue { work: VecDeque::with_capacity(ios), ..Queue::default() };
        Self {
            shared: Arc::new(Shared { queue: Mutex::new(queue), arrived: Condvar::new() }),
            disk,
            hub,
            most: most.max(1),
            threads: Vec::new(),
            detached: false,
        }
    }

    /// Hands over a batch, emptying it.
    pub(crate) fn hand_over(&mut self, batch: &mut Vec<Work>) {
        let mut queue = lock(&self.shared.queue);
        queue.work.extend(batch.drain(..));
        let wanted = queue.work.len();
        let wake = wanted.min(queue.sleepers);
        drop(queue);
        for _ in 0..wake {
            self.shared.arrived.notify_one();
        }
        for _ in wake..wanted {
            if self.threads.len() == self.most || !self.start() {
                break;
            }
        }
        if self.threads.is_empty() {
            self.work_off();
        }
    }

    /// Takes an I/O back that no thread has begun.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> Option<Work> {
        let mut queue = lock(&self.shared.queue);
        let position = queue.work.iter().position(|work| work.ticket == ticket)?;
        queue.work.remove(position)
    }

    pub(crate) fn detach(&mut self) {
        self.detached = true;
    }

    /// Starts a thread; false when the system gives none.
    fn start(&mut self) -> bool {
        let (shared, disk, hub) = (self.shared.clone(), self.disk.clone(), self.hub.clone());
        let thread = std::thread::Builder::new().name("member".into());
        match thread.spawn(move || serve(&shared, &disk, &hub)) {
            Ok(handle) => {
                self.threads.push(handle);
                true
            }
            Err(_) => false,
        }
    }

    /// Does the queued work here, where the system gives no thread at all.
    fn work_off(&self) {
        loop {
            let next = lock(&self.shared.queue).work.pop_front();
            let Some(work) = next else { break };
            self.hub.deliver(carry_out(&self.disk, work));
        }
    }
}

impl Drop for Workers {
    /// Waits until all work that was handed over is done, since it uses buffers of the engine. Where a
    /// thread hangs nobody waits: I/Os have memory of their own then (a deadline is set).
    fn drop(&mut self) {
        lock(&self.shared.queue).closing = true;
        self.shared.arrived.notify_all();
        if self.detached {
            lock(&self.shared.queue).work.clear();
            self.threads.clear();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing under way any more.
            let _ = thread.join();
        }
    }
}

pub(crate) fn carry_out(disk: &Disk, mut work: Work) -> Finished {
    // SAFETY: the pieces of a work item belong to its I/O until it is delivered.
    let outcome = unsafe { disk.carry_out(&work.submission, &mut work.pieces) };
    work.ended(outcome)
}

fn serve(shared: &Shared, disk: &Disk, hub: &Hub) {
    let mut queue = lock(&shared.queue);
    loop {
        if let Some(work) = queue.work.pop_front() {
            drop(queue);
            hub.deliver(carry_out(disk, work));
            queue = lock(&shared.queue);
        } else if queue.closing {
            return;
        } else {
            queue.sleepers += 1;
            queue = shared.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.sleepers -= 1;
        }
    }
}
