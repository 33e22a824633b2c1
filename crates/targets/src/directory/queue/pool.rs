//! Threads that read and write at places, where io_uring is not to be had. One is made when a job finds
//! none that is idle, up to [`MOST_THREADS`].

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use raidlab_workload::Cpu;

use super::{Answer, Job};
use crate::directory::system;

/// The most threads of one process.
pub(super) const MOST_THREADS: usize = 64;

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    answers: VecDeque<Answer>,
    idle: usize,
    ending: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Cpu>>,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self { shared: Arc::default(), threads: Vec::new() }
    }

    pub(super) fn start(&mut self, job: Job) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.jobs.len() >= state.idle && self.threads.len() < MOST_THREADS {
            let shared = Arc::clone(&self.shared);
            let made = std::thread::Builder::new()
                .name("overlap".into())
                .stack_size(64 << 10)
                .spawn(move || serve(&shared));
            match made {
                Ok(thread) => self.threads.push(thread),
                // Those there are do it, later.
                Err(error) if self.threads.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// The next answer; one must be under way.
    pub(super) fn wait(&self) -> Answer {
        let mut state = self.shared.lock();
        loop {
            if let Some(answer) = state.answers.pop_front() {
                return answer;
            }
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the threads; gives their CPU time.
    pub(super) fn end(&mut self) -> Cpu {
        self.shared.lock().ending = true;
        self.shared.work.notify_all();
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).fold(
            Cpu::default(),
            |sum, one| Cpu { user: sum.user + one.user, system: sum.system + one.system },
        )
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a thread does until the end.
fn serve(shared: &Shared) -> Cpu {
    let mut state = shared.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            let answer = carry_out(&job);
            drop(job);
            state = shared.lock();
            state.answers.push_back(answer);
            shared.done.notify_one();
        } else if state.ending {
            return system::thread_cpu().unwrap_or_default();
        } else {
            state.idle += 1;
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

fn carry_out(job: &Job) -> Answer {
    let (file, len) = (&job.file, job.piece.len);
    let moved = if job.write {
        // SAFETY: the memory is the flight's own, and nobody else's use until the answer.
        let bytes = unsafe { std::slice::from_raw_parts(job.piece.start, len) };
        system::write_at(file, bytes, job.at)
    } else {
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts_mut(job.piece.start, len) };
        system::read_at(file, bytes, job.at)
    };
    let result = match moved {
        Ok(moved) => moved as i64,
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    Answer { flight: job.flight, result }
}
