//! The threads of a stage, one for each process: how they start together, wait for each other and stop.
//!
//! Everything shared is behind one lock but the flag to stop, which every operation looks at. Whoever
//! makes a wait come true does so under the lock and wakes the thread it is for, so no wake-up is lost.
//! When all that are left wait for each other, none will ever come: that ends the run with an error.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::{ProcessIndex, Synchroniser};

/// How often the cancel flag is looked at on behalf of threads that wait.
const LOOK: Duration = Duration::from_millis(10);

/// Why a process does not go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// Another failed, or the run was cancelled.
    Stopped,
    /// It failed itself.
    Failed(EngineError),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

/// What a waiting thread was given.
#[derive(Clone, Copy, Debug)]
enum Grant {
    Pass,
    Ticket(i64),
}

#[derive(Debug)]
struct State {
    synchroniser: Synchroniser,
    grants: Vec<Option<Grant>>,
    /// Threads that wait for a barrier or a ticket and have been given nothing.
    waiting: usize,
    /// Threads that are not done.
    alive: usize,
    error: Option<EngineError>,
    begun: Option<Instant>,
}

/// On a line of the cache of its own, which nobody writes while all is well.
#[derive(Debug)]
#[repr(align(128))]
struct Flag(AtomicBool);

/// What the threads of a stage share.
#[derive(Debug)]
pub(super) struct WorkerPool<'a> {
    stop: Flag,
    cancel: &'a AtomicBool,
    warnings: &'a Warnings,
    state: Mutex<State>,
    wakes: Vec<Condvar>,
    begin: Condvar,
    ended: Condvar,
}

/// What a reader of the results must know; each once.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<BTreeSet<String>>);

impl Warnings {
    pub(super) fn add(&self, warning: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.into());
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }
}

impl<'a> WorkerPool<'a> {
    /// For so many processes.
    pub(super) fn new(
        processes: usize,
        synchroniser: Synchroniser,
        cancel: &'a AtomicBool,
        warnings: &'a Warnings,
    ) -> Self {
        let state = State {
            synchroniser,
            grants: vec![None; processes],
            waiting: 0,
            alive: processes,
            error: None,
            begun: None,
        };
        let mut wakes = Vec::new();
        wakes.resize_with(processes, Condvar::new);
        Self {
            stop: Flag(AtomicBool::new(false)),
            cancel,
            warnings,
            state: Mutex::new(state),
            wakes,
            begin: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has ended the run (`Membership`); what it shared stays consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to go on; asked before every system call.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Halt> {
        if self.stop.0.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed) {
            return Err(Halt::Stopped);
        }
        Ok(())
    }

    pub(super) fn warn(&self, warning: impl Into<String>) {
        self.warnings.add(warning);
    }

    /// All begin now.
    pub(super) fn begin(&self) -> Instant {
        let now = Instant::now();
        self.lock().begun = Some(now);
        self.begin.notify_all();
        now
    }

    /// Waits until all begin; gives when that was.
    pub(super) fn wait_to_begin(&self) -> Instant {
        let mut state = self.lock();
        loop {
            if let Some(begun) = state.begun {
                return begun;
            }
            state = self.begin.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the run; the first error is the one that is told.
    pub(super) fn fail(&self, error: EngineError) {
        self.stop_all(&mut self.lock(), Some(error));
    }

    fn stop_all(&self, state: &mut State, error: Option<EngineError>) {
        if state.error.is_none() {
            state.error = error;
        }
        self.stop.0.store(true, Ordering::Relaxed);
        self.wakes.iter().for_each(Condvar::notify_all);
    }

    /// Some of those that were there are not: their threads could not be made.
    pub(super) fn leave_out(&self, processes: usize) {
        self.lock().alive -= processes;
    }

    /// Waits for the end of all threads, looking after the cancel flag.
    pub(super) fn wait_for_all(&self) {
        let mut state = self.lock();
        while state.alive > 0 {
            if self.cancel.load(Ordering::Relaxed) && !self.stop.0.load(Ordering::Relaxed) {
                self.stop_all(&mut state, None);
            }
            let waited = self.ended.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How it went, when all threads have ended.
    pub(super) fn into_result(self) -> Result<(), EngineError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        match state.error {
            Some(error) => Err(error),
            None if self.stop.0.into_inner() || self.cancel.load(Ordering::Relaxed) => {
                Err(EngineError::cancelled(super::RUN))
            }
            None => Ok(()),
        }
    }

    /// A thread comes to a barrier; returns when it may go on.
    pub(super) fn arrive(&self, process: ProcessIndex, barrier: u16) -> Result<(), Halt> {
        let mut state = self.lock();
        let Some(freed) = state.synchroniser.arrive(process, barrier) else {
            return self.wait(state, process).map(|_| ());
        };
        for other in freed {
            self.give(&mut state, other, Grant::Pass);
        }
        Ok(())
    }

    pub(super) fn put(&self, queue: u16, ticket: i64, times: u64) {
        let mut state = self.lock();
        for (other, ticket) in state.synchroniser.put(queue, ticket, times) {
            self.give(&mut state, other, Grant::Ticket(ticket));
        }
    }

    /// A ticket, as soon as there is one.
    pub(super) fn take(&self, process: ProcessIndex, queue: u16) -> Result<i64, Halt> {
        let mut state = self.lock();
        if let Some(ticket) = state.synchroniser.take(process, queue) {
            return Ok(ticket);
        }
        match self.wait(state, process)? {
            Grant::Ticket(ticket) => Ok(ticket),
            Grant::Pass => Err(Halt::Stopped),
        }
    }

    fn give(&self, state: &mut State, process: ProcessIndex, grant: Grant) {
        state.grants[process] = Some(grant);
        state.waiting -= 1;
        self.wakes[process].notify_all();
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, process: usize) -> Result<Grant, Halt> {
        state.waiting += 1;
        self.look_for_deadlock(&mut state);
        loop {
            if let Some(grant) = state.grants[process].take() {
                return Ok(grant);
            }
            self.check()?;
            state = self.wakes[process].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn look_for_deadlock(&self, state: &mut State) {
        // Those that stopped for the cancel flag left others waiting; whoever sees them gone sees the flag.
        if state.alive > 0 && state.waiting == state.alive && self.check().is_ok() {
            let reason = format!(
                "all {} processes that are not done wait for a barrier or a ticket: a fault in the workload",
                state.alive
            );
            let error = EngineError::new(EngineErrorKind::Internal, super::RUN, reason);
            self.stop_all(state, Some(error));
        }
    }

    /// Waits until then, or until the run ends.
    pub(super) fn sleep_until(&self, process: ProcessIndex, then: Instant) -> Result<(), Halt> {
        let mut state = self.lock();
        loop {
            self.check()?;
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let waited = self.wakes[process].wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A thread's place in the pool; it ends with this, however the thread ends.
#[derive(Debug)]
pub(super) struct Membership<'a>(pub(super) &'a WorkerPool<'a>);

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        let pool = self.0;
        let mut state = pool.lock();
        if std::thread::panicking() {
            let reason = "a process of the workload panicked";
            let error = EngineError::new(EngineErrorKind::Internal, super::RUN, reason);
            pool.stop_all(&mut state, Some(error));
        }
        state.alive -= 1;
        pool.look_for_deadlock(&mut state);
        if state.alive == 0 {
            pool.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_wakes_those_that_wait() {
        let (cancel, warnings) = (AtomicBool::new(false), Warnings::default());
        let pool = WorkerPool::new(3, Synchroniser::new(&[9], 1), &cancel, &warnings);
        std::thread::scope(|scope| {
            let pool = &pool;
            for waiter in 0..2 {
                scope.spawn(move || {
                    let _member = Membership(pool);
                    let halted = match waiter {
                        0 => pool.take(0, 0).map(|_| ()),
                        _ => pool.arrive(1, 0),
                    };
                    assert!(matches!(halted, Err(Halt::Stopped)));
                });
            }
            while pool.lock().waiting < 2 {
                std::thread::yield_now();
            }
            cancel.store(true, Ordering::Relaxed);
            drop(Membership(pool));
            pool.wait_for_all();
        });
        let error = pool.into_result().unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Cancelled);
    }
}
