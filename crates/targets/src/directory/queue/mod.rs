//! Reads and writes that overlap: how one process keeps many under way.
//!
//! Through io_uring, one ring for each process; where the system does not permit that, through threads
//! that read and write at places. Every flight has memory of its own, kept for the next; it is neither
//! grown nor looked at while it is under way, and a queue that is dropped waits for all in flight.

mod pool;
mod ring;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use raidlab_core::Time;
use raidlab_engine::{EngineError, EngineErrorKind, Piece};
use raidlab_workload::{Class, Content, Cpu, FilePath, Io, content};

use super::blocks::Block;
use super::transfer::check_content;
use super::worker::{Worker, invalid, length};
use super::worker_pool::{Halt, WorkerPool};
use pool::Pool;
use ring::Ring;

/// A piece of a flight for the system.
#[derive(Debug)]
struct Job {
    /// Which flight.
    flight: u32,
    file: Arc<OwnedFd>,
    write: bool,
    piece: Piece,
    at: u64,
}

/// A job that is done: bytes moved, or the negative error number.
#[derive(Clone, Copy, Debug)]
struct Answer {
    flight: u32,
    result: i64,
}

#[derive(Debug)]
enum Backend {
    Ring(Box<Ring>),
    Pool(Pool),
}

impl Backend {
    fn start(&mut self, job: Job) -> io::Result<()> {
        match self {
            // SAFETY: the piece is a flight's own memory, see the head of this file; the flight holds
            // the file open.
            Self::Ring(ring) => unsafe { ring.start(&job) },
            Self::Pool(pool) => pool.start(job),
        }
    }

    fn wait(&mut self) -> io::Result<Answer> {
        match self {
            Self::Ring(ring) => ring.wait(),
            Self::Pool(pool) => Ok(pool.wait()),
        }
    }
}

/// One that was started, or memory for the next.
#[derive(Debug, Default)]
struct InFlight {
    tag: u32,
    write: bool,
    file: Option<Arc<OwnedFd>>,
    path: Option<FilePath>,
    at: u64,
    len: usize,
    done: usize,
    started: Time,
    memory: Block,
    /// The first bytes of the memory that are known to be zero.
    zero: usize,
}

impl InFlight {
    fn job(&self, flight: u32) -> Option<Job> {
        // SAFETY: `done` is at most `len`, and the memory at least that long.
        let start = unsafe { self.memory.start().add(self.done) };
        let piece = Piece { start, len: self.len - self.done };
        let at = self.at + self.done as u64;
        Some(Job { flight, file: self.file.clone()?, write: self.write, piece, at })
    }

    /// What the system answered; gives whether nothing is left to be done.
    fn land(&mut self, result: i64) -> io::Result<bool> {
        match i32::try_from(-result) {
            Ok(libc::EINTR | libc::EAGAIN) => return Ok(false),
            Ok(number) if number > 0 => return Err(io::Error::from_raw_os_error(number)),
            _ => {}
        }
        self.done += result as usize;
        // A short read is the end of the file.
        let short = self.write && self.done < self.len;
        if short && result == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(!short) }
    }

    /// Memory as the operation needs it.
    fn fill(&mut self, write: Option<Content>) -> Result<(), EngineError> {
        self.memory.reserve(self.len)?;
        match write {
            None => self.zero = 0,
            Some(Content::Seeded { seed }) => {
                content::fill(seed, self.at, &mut self.memory.bytes_mut()[..self.len]);
                self.zero = 0;
            }
            Some(_) if self.zero < self.len => {
                self.memory.bytes_mut()[..self.len].fill(0);
                self.zero = self.len;
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// What a process has under way.
#[derive(Debug)]
pub(super) struct Queue {
    /// Dropped first: nothing is under way then.
    backend: Backend,
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
    under_way: usize,
}

impl Queue {
    fn new(io_uring: bool, pool: &WorkerPool<'_>) -> Self {
        let ring = if io_uring { Some(Ring::new()) } else { None };
        let backend = match ring {
            Some(Ok(ring)) => Backend::Ring(Box::new(ring)),
            refused => {
                let why = refused.and_then(Result::err).map_or_else(
                    || "it was not wanted".to_string(),
                    |error| format!("the system refused: {error}"),
                );
                pool.warn(format!(
                    "operations that overlap went through threads, not io_uring ({why}): at most {} of a \
                     process are under way at once, and each costs more",
                    pool::MOST_THREADS
                ));
                Backend::Pool(Pool::new())
            }
        };
        Self { backend, in_flight: Vec::new(), free: Vec::new(), under_way: 0 }
    }

    /// Hands what was started to the system, if that has not been done.
    pub(super) fn submit(&mut self) -> Result<(), Halt> {
        match &mut self.backend {
            Backend::Ring(ring) => ring.submit().map_err(|error| refused(&error).into()),
            Backend::Pool(_) => Ok(()),
        }
    }

    fn start(&mut self, flight: u32) -> Result<(), EngineError> {
        let job = self.in_flight[flight as usize].job(flight);
        let job = job.ok_or_else(|| invalid("nothing was started there"))?;
        self.backend.start(job).map_err(|error| refused(&error))?;
        self.under_way += 1;
        Ok(())
    }

    fn is_in_use(&self, tag: u32) -> bool {
        self.in_flight.iter().any(|flight| flight.file.is_some() && flight.tag == tag)
    }

    /// Ends it; gives the CPU time of threads of its own.
    pub(super) fn end(mut self) -> Cpu {
        self.land();
        match &mut self.backend {
            Backend::Ring(_) => Cpu::default(),
            Backend::Pool(pool) => pool.end(),
        }
    }

    /// Waits for all that is under way.
    fn land(&mut self) {
        while self.under_way > 0 {
            match self.backend.wait() {
                Ok(_) => self.under_way -= 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel may still use the memory: it must stay.
                Err(_) => {
                    std::mem::forget(std::mem::take(&mut self.in_flight));
                    return;
                }
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.land();
    }
}

#[cold]
fn refused(error: &io::Error) -> EngineError {
    let reason = format!("io_uring: {error}");
    EngineError::new(EngineErrorKind::Io, "start operations that overlap", reason)
}

impl Worker<'_> {
    pub(super) fn start(&mut self, tag: u32, io: Io) -> Result<(), Halt> {
        let (fd, at, len, content) = match io {
            Io::Read { fd, at, len } => (fd, at, length(len)?, None),
            Io::Write { fd, at, len, content } => {
                check_content(content)?;
                (fd, at, length(len)?, Some(content))
            }
        };
        let run = self.run;
        let queue = self.queue.get_or_insert_with(|| Queue::new(run.io_uring, run.pool));
        debug_assert!(!queue.is_in_use(tag), "tag {tag} is in use");
        let open = self.fds.get(fd)?;
        let index = queue.free.pop().unwrap_or_else(|| {
            queue.in_flight.push(InFlight::default());
            queue.in_flight.len() as u32 - 1
        });
        let flight = &mut queue.in_flight[index as usize];
        flight.tag = tag;
        flight.write = content.is_some();
        flight.file = Some(Arc::clone(&open.file));
        flight.path = Some(open.path.clone());
        (flight.at, flight.len, flight.done) = (at, len, 0);
        flight.fill(content)?;
        // Making the bytes is not part of the operation.
        self.tick();
        let now = self.now;
        if let Some(queue) = &mut self.queue {
            queue.in_flight[index as usize].started = now;
            queue.start(index)?;
        }
        Ok(())
    }

    /// Waits for the end of one that was started; whether the process goes on with it.
    pub(super) fn end_one(&mut self) -> Result<bool, Halt> {
        let nothing = || invalid("waiting for one of those that were started: none is under way");
        let run = self.run;
        let queue = self.queue.as_mut().filter(|queue| queue.under_way > 0).ok_or_else(nothing)?;
        let index = loop {
            run.pool.check()?;
            let answer = match queue.backend.wait() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(|error| refused(&error))?,
            };
            queue.under_way -= 1;
            let flight = &mut queue.in_flight[answer.flight as usize];
            match flight.land(answer.result) {
                Ok(true) => break answer.flight,
                Ok(false) => queue.start(answer.flight)?,
                Err(error) => {
                    let operation = if flight.write { "write" } else { "read" };
                    let path = flight.path.as_ref().map(|path| run.roots.full(path));
                    let error = EngineError::io(operation, &path.unwrap_or_default(), error);
                    return Err(error.at_offset(flight.at).into());
                }
            }
        };
        let flight = &mut queue.in_flight[index as usize];
        (flight.file, flight.path) = (None, None);
        let class = if flight.write { Class::Write } else { Class::Read };
        let (tag, moved, started) = (flight.tag, flight.done as u64, flight.started);
        queue.free.push(index);
        self.tick();
        self.state.measured(class, 1, moved, self.now.since(started));
        Ok(self.state.started_ended(tag, moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_goes_on_until_all_is_written() {
        let mut flight = InFlight { write: true, len: 10, ..InFlight::default() };
        assert!(!flight.land(4).unwrap() && !flight.land(-i64::from(libc::EAGAIN)).unwrap());
        assert!(!flight.land(-i64::from(libc::EINTR)).unwrap());
        assert_eq!(flight.done, 4);
        assert!(flight.land(6).unwrap());
        flight.done = 4;
        assert_eq!(flight.land(0).unwrap_err().kind(), io::ErrorKind::WriteZero);
        let error = flight.land(-i64::from(libc::ENOSPC)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        let mut read = InFlight { len: 10, ..InFlight::default() };
        assert!(read.land(4).unwrap() && read.done == 4, "the end of the file");
    }

    #[test]
    fn zeroes_are_zeroes_whatever_was_there() {
        let zeroes = Some(Content::Zeroes);
        for other in [None, Some(Content::Seeded { seed: 1 })] {
            let mut flight = InFlight { write: true, len: 100, ..InFlight::default() };
            flight.fill(zeroes).unwrap();
            flight.len = 50;
            flight.fill(other).unwrap();
            flight.memory.bytes_mut()[..50].fill(7);
            flight.len = 60;
            flight.fill(zeroes).unwrap();
            assert_eq!(flight.memory.bytes()[..60], [0; 60]);
        }
    }
}
