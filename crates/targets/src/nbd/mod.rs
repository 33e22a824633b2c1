//! Arrays served to NBD clients, over Unix sockets and TCP: one thread owns all engines and all connections.
//!
//! Requests are taken in as many at once as a client has sent, go to the engine together, and their
//! answers leave together: one call receives and one sends, whatever the number. Data of reads are sent
//! from the memory that the array read them into; long writes are received straight into the memory they
//! are written from.
//!
//! What clients are promised: a flush covers all that was answered before it, on any connection to the
//! array, as one engine has them all; a change with FUA is durable when it is answered, with parity and
//! records. What is told of zeroes is proven.
//!
//! Fault model: clients send whatever they like, stall anywhere, or vanish; the process may be killed at
//! any point. Why it is safe: the protocol's state machine ([`raidlab_nbd`]) hands on only what the
//! export is able to do and what lies within it; memory, connections and requests are limited
//! ([`NbdLimits`]); who stalls holds up others only until the limit that is for it. Tests:
//! `tests/nbd.rs`, `tests/nbd/power.rs`.

mod address;
mod array;
mod arrays;
mod connection;
mod memory;
mod pace;
mod serve;
mod status;
mod system;
mod tls;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use raidlab_engine::{Engine, EngineError, EngineErrorKind, Serving};

pub use address::{NbdAddress, NbdPlace, NbdSockets};
pub use tls::{NbdCertificates, NbdTls};

use crate::export;
use crate::export::system::{be_flusher, close_given, event, own_descriptors};
use crate::mounted::mounts;
use arrays::Arrays;

const SERVE: &str = "serve NBD clients";

/// What clients may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdLimits {
    /// Connections; more are closed as they come.
    pub connections: usize,
    /// Bytes of data on their way, of all arrays; requests wait for room.
    pub memory: u64,
    /// A client must have chosen an export by then.
    pub handshake: Duration,
    /// A client that stands still for so long with memory that others wait for is dropped, and so is one that takes or
    /// sends less than an eighth of it in that time.
    pub stall: Duration,
    /// How long an array that ends waits for its clients to take their answers.
    pub drain: Duration,
}

impl NbdLimits {
    /// The least memory with which the longest requests are served.
    pub const LEAST_MEMORY: u64 = 64 << 20;
}

impl Default for NbdLimits {
    /// 1,024 connections, 128 MiB, 10 s, 30 s, 5 s.
    fn default() -> Self {
        Self {
            connections: 1024,
            memory: 2 * Self::LEAST_MEMORY,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            drain: Duration::from_secs(5),
        }
    }
}

/// An array to be served.
#[derive(Debug)]
pub struct NbdArray {
    /// Its engine.
    pub engine: Engine,
    /// The name that clients ask for.
    pub name: String,
    /// For people.
    pub description: String,
    /// Nothing of it may be changed.
    pub read_only: bool,
}

/// What was asked of an array by its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NbdCounters {
    /// Connections that have chosen it, since the beginning.
    pub connections: u64,
    /// Reads answered.
    pub reads: u64,
    /// Writes answered.
    pub writes: u64,
    /// Flushes answered.
    pub flushes: u64,
    /// Trims answered.
    pub trims: u64,
    /// Requests to write zeroes answered.
    pub zeroes: u64,
    /// All others.
    pub others: u64,
    /// Of all these: answered with an error.
    pub errors: u64,
    /// Bytes of reads.
    pub bytes_read: u64,
    /// Bytes of writes.
    pub bytes_written: u64,
}

/// How serving an array goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NbdReport {
    /// What its clients asked for.
    pub counters: NbdCounters,
    /// Connections to it now.
    pub clients: u32,
    /// It is served as a file, too.
    pub has_file: bool,
    /// Of the server: connections in all, with those that have not chosen yet.
    pub connections: usize,
    /// Of the server: memory for data, in bytes.
    pub memory: u64,
    /// Of the server: connections closed because there were too many.
    pub refused: u64,
    /// Of the server: clients dropped for they broke the protocol or took too long.
    pub dropped: u64,
}

/// Why arrays are served no longer, if not by an end: by their numbers, and [`ALL`] of them together.
type Faults = Arc<Mutex<BTreeMap<usize, String>>>;

/// Stands for all arrays.
const ALL: usize = usize::MAX;

/// Something that is done with an engine.
type OnEngine = Box<dyn FnOnce(&mut Engine) + Send>;

/// What the owner asks of the thread, of which array.
enum Command {
    /// Do something with the engine.
    Do(usize, OnEngine),
    /// Tell how it goes.
    Report(usize, Sender<NbdReport>),
    /// Take nothing more for this array, answer what is there, do this, and let go of the engine.
    End(usize, OnEngine),
    /// End everything as it is.
    Stop,
}

/// A server of some arrays. Dropped, it ends as it is: call [`end`](Self::end) for each array before.
#[derive(Debug)]
pub struct NbdServer {
    commands: Sender<Command>,
    bell: Arc<File>,
    faults: Faults,
    thread: Option<JoinHandle<()>>,
    file: Option<Beside>,
}

/// The file that an array is served as besides.
#[derive(Debug)]
struct Beside {
    directory: PathBuf,
    is_mounted: AtomicBool,
    _serving: Serving,
}

impl NbdServer {
    /// Serves what `make` gives, which is made on the serving thread and belongs to it. With `tls`
    /// clients learn nothing before they have begun it.
    ///
    /// # Errors
    /// What `make` gives; [`EngineErrorKind::Io`] when the system refuses.
    pub fn new(
        sockets: NbdSockets,
        tls: Option<NbdTls>,
        limits: NbdLimits,
        make: impl FnOnce() -> Result<Vec<NbdArray>, EngineError> + Send + 'static,
    ) -> Result<Self, EngineError> {
        Self::begin((sockets, tls), limits, None, make)
    }

    /// The same, and the first of the arrays also as the file `array` in a directory, by FUSE. Who may write by either
    /// may by both, and the kernel keeps no pages of the file then, as it would not learn what clients write: it
    /// cannot be mapped for sharing. The serving thread has a table of descriptors of its own, as that of a
    /// [`FuseExport`](crate::FuseExport).
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`EngineErrorKind::NotSupported`] when this is not root or there is no FUSE.
    pub fn with_file(
        sockets: NbdSockets,
        tls: Option<NbdTls>,
        limits: NbdLimits,
        directory: &Path,
        make: impl FnOnce() -> Result<Vec<NbdArray>, EngineError> + Send + 'static,
    ) -> Result<Self, EngineError> {
        let directory = export::place(directory)?;
        Self::begin((sockets, tls), limits, Some(directory), make)
    }

    fn begin(
        (sockets, tls): (NbdSockets, Option<NbdTls>),
        limits: NbdLimits,
        directory: Option<PathBuf>,
        make: impl FnOnce() -> Result<Vec<NbdArray>, EngineError> + Send + 'static,
    ) -> Result<Self, EngineError> {
        // A descriptor for each, and those of members and of the process itself.
        system::allow_descriptors(limits.connections as u64 + 512);
        let bell = Arc::new(event().map_err(io)?);
        let (commands, orders) = channel();
        let (ready, started) = channel();
        let (parted, apart) = channel();
        let rings = Arc::clone(&bell);
        let faults = Faults::default();
        let told = Arc::clone(&faults);
        let given: Vec<RawFd> = sockets.descriptors().collect();
        let (place, kept) = (directory.clone(), given.clone());
        let run = move || {
            // Before members have threads. Without the permission there is only less protection when memory is short.
            be_flusher();
            let begun = match &place {
                Some(_) => own_descriptors([kept, vec![rings.as_raw_fd()]].concat()).map_err(io),
                None => Ok(()),
            };
            let _ = parted.send(begun.is_ok());
            let begun = begun.and_then(|()| make()).and_then(|arrays| {
                let mut arrays = Arrays::new(arrays, limits.memory);
                let place = place.as_deref();
                place.map_or(Ok(()), |place| arrays.serve_file(place))?;
                let served = serve::Server::new(
                    (sockets, tls),
                    limits,
                    arrays,
                    (rings, told.clone()),
                    orders,
                );
                served.inspect_err(|_| place.into_iter().for_each(let_go))
            });
            let mut server = match begun {
                Ok(server) => server,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            if let Err(error) = server.run() {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.entry(ALL).or_insert(error.to_string());
            }
        };
        let thread = std::thread::Builder::new().name("nbd".into()).spawn(run).map_err(io)?;
        if directory.is_some() && apart.recv() == Ok(true) {
            close_given(given);
        }
        let mut server = Self { commands, bell, faults, thread: Some(thread), file: None };
        // Nothing is sent by a thread that panicked.
        started.recv().unwrap_or_else(|_| Err(server.ended(ALL)))?;
        server.file = directory.map(Beside::new);
        Ok(server)
    }

    /// The file that the first array is served as besides.
    pub fn file(&self) -> Option<PathBuf> {
        Some(self.file.as_ref()?.directory.join(export::protocol::NAME))
    }

    /// Unmounts the file, unless somebody else has; NBD clients are served on.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when somebody uses it: it is served as before then.
    pub fn unmount(&self) -> Result<(), EngineError> {
        let is_mounted = |file: &&Beside| file.is_mounted.load(Ordering::Acquire);
        let Some(file) = self.file.as_ref().filter(is_mounted) else { return Ok(()) };
        if self.report(0)?.has_file {
            mounts::unmount(&file.directory)?;
        }
        file.is_mounted.store(false, Ordering::Release);
        Ok(())
    }

    /// Does something with an engine, between requests, on the thread that serves.
    ///
    /// # Errors
    /// When the array is served no longer.
    pub fn with_engine<R: Send + 'static>(
        &self,
        array: usize,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        self.ask(array, |answer| {
            let work = move |engine: &mut Engine| {
                // Who asked may have stopped waiting.
                let _ = answer.send(work(engine));
            };
            Command::Do(array, Box::new(work))
        })
    }

    /// How serving an array goes.
    ///
    /// # Errors
    /// When the array is served no longer.
    pub fn report(&self, array: usize) -> Result<NbdReport, EngineError> {
        self.ask(array, |answer| Command::Report(array, answer))
    }

    /// Ends one array: takes no more of its clients' requests, answers those that are there, closes the
    /// connections, and does something with the engine before it lets go of it. Others are served on.
    ///
    /// # Errors
    /// When the array is served no longer.
    pub fn end<R: Send + 'static>(
        &self,
        array: usize,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        self.ask(array, |answer| {
            let work = move |engine: &mut Engine| {
                let _ = answer.send(work(engine));
            };
            Command::End(array, Box::new(work))
        })
    }

    fn ask<R>(
        &self,
        array: usize,
        command: impl FnOnce(Sender<R>) -> Command,
    ) -> Result<R, EngineError> {
        let (answer, told) = channel();
        self.commands.send(command(answer)).map_err(|_| self.ended(array))?;
        self.ring();
        told.recv().map_err(|_| self.ended(array))
    }

    fn ended(&self, array: usize) -> EngineError {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.get(&array).or_else(|| faults.get(&ALL));
        let why = fault.map_or_else(String::new, |why| format!(": {why}"));
        let reason = format!("the array is served no longer{why}");
        EngineError::new(EngineErrorKind::Internal, SERVE, reason)
    }

    fn ring(&self) {
        // A counter that is full rings all the same.
        let _ = (&*self.bell).write(&1u64.to_ne_bytes());
    }
}

impl Beside {
    fn new(directory: PathBuf) -> Self {
        let serving = Serving::new(directory.clone());
        Self { directory, is_mounted: AtomicBool::new(true), _serving: serving }
    }
}

fn io(error: io::Error) -> EngineError {
    EngineError::io(SERVE, "sockets".as_ref(), error)
}

/// Takes a mount that is served no longer out of the tree, whoever uses it.
fn let_go(directory: &Path) {
    // What cannot be unmounted now is found again as a leftover.
    let _ = mounts::unmount_lazily(directory);
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        self.ring();
        if let Some(thread) = self.thread.take() {
            // A fault was told to whoever asked for something.
            let _ = thread.join();
        }
        // The device is closed: nothing waits for an answer any more.
        if let Some(file) =
            self.file.as_ref().filter(|file| file.is_mounted.load(Ordering::Acquire))
        {
            let_go(&file.directory);
        }
    }
}
