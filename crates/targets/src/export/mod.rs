//! An array as one file, through FUSE: what every program can open, read and write like a disk.
//!
//! The protocol is spoken here directly, without a library: the payload of reads and writes then needs
//! no copy and no second thread between the kernel and the engine. One thread owns the engine and serves
//! the file; it takes in whatever messages there are, and waits only when there is nothing to do.
//!
//! Fault model: members fail as everywhere; the process may be killed at any point, also while its own
//! threads wait for reads and writes of what it serves. Why it is safe: an error of the array is `EIO`
//! to the reader or writer; the serving thread has a table of descriptors of its own, in which alone the
//! FUSE device is open, so the kernel closes the device, and with it ends everything that waits for it,
//! when that thread is killed, though others may not be able to die before. Tests: `tests/fuse.rs`,
//! `tests/mounted.rs`.

mod answers;
pub(crate) mod protocol;
pub(crate) mod ranges;
pub(crate) mod requests;
mod serve;
pub(crate) mod session;
pub(crate) mod system;

/// What the kernel says and is answered, as values: what is fuzzed.
#[doc(hidden)]
pub mod messages {
    pub use super::answers::{Decision, Served, decide, room};
    pub use super::protocol::{Ask, Message, parse};
    pub use super::requests::{Order, Span};
}

use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use raidlab_core::{MemberIndex, MemberTotals};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Member, Serving};

use crate::mounted::mounts;
use serve::{Command, OnEngine, ServerLoop, let_go};
use session::Session;

const EXPORT: &str = "export the array as a file";

/// What the kernel keeps of the exported file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportCache {
    /// Pages as of any file; who opens it with `O_DIRECT` goes past them.
    #[default]
    Kept,
    /// Nothing: every read and write comes to the array.
    None,
    /// As `Kept`, and the file cannot be written.
    ReadOnly,
}

/// What the serving thread and its owner have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Rings when a member has answered.
    members: Arc<File>,
    /// Rings when there is a command.
    bell: Arc<File>,
    /// Reads, writes, bytes read, bytes written.
    totals: [AtomicU64; 4],
    /// Until the serving thread learns that nothing is mounted any more.
    is_mounted: AtomicBool,
}

impl Shared {
    fn publish(&self, totals: MemberTotals) {
        let MemberTotals { reads, writes, bytes_read, bytes_written } = totals;
        for (place, value) in self.totals.iter().zip([reads, writes, bytes_read, bytes_written]) {
            place.store(value, Ordering::Release);
        }
    }

    fn totals(&self) -> MemberTotals {
        let [reads, writes, bytes_read, bytes_written] =
            [0, 1, 2, 3].map(|index| self.totals[index].load(Ordering::Acquire));
        MemberTotals { reads, writes, bytes_read, bytes_written }
    }
}

/// The engine, unless it was let go of, and how serving ended.
type Ended = (Option<Engine>, Result<(), EngineError>);

/// An array that is served as the file `array` in a directory. Dropped, it is taken down, whoever still
/// uses the file.
#[derive(Debug)]
pub struct FuseExport {
    directory: PathBuf,
    shared: Arc<Shared>,
    commands: Sender<Command>,
    /// `None` after the end.
    thread: Option<JoinHandle<Ended>>,
    _serving: Serving,
}

impl FuseExport {
    /// Mounts a filesystem of one file on `directory` and serves it. Needs root.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] when this is not root or there is no FUSE;
    /// [`EngineErrorKind::Io`] when the system refuses.
    pub fn new(engine: Engine, directory: &Path, cache: ExportCache) -> Result<Self, EngineError> {
        let (totals, keep) = (engine.totals(), engine.descriptors());
        Self::begin((move || Ok(engine), None), (keep, totals), directory, cache)
    }

    /// The same with an engine that is made on the thread that serves the file, and belongs to it: all descriptors of
    /// its members are in that thread's table alone, so that members may come and go by
    /// [`with_engine`](Self::with_engine). It is also let go of there, whatever happens: by [`end`](Self::end), and
    /// after `last` where nothing is mounted or the export is dropped. [`finish`](Self::finish) does not give it back.
    ///
    /// # Errors
    /// As [`new`](Self::new); what `make` gives.
    pub fn of(
        make: impl FnOnce() -> Result<Engine, EngineError> + Send + 'static,
        last: impl FnOnce(&mut Engine) + Send + 'static,
        directory: &Path,
        cache: ExportCache,
    ) -> Result<Self, EngineError> {
        let nothing = (Vec::new(), MemberTotals::default());
        Self::begin((make, Some(Box::new(last))), nothing, directory, cache)
    }

    fn begin(
        engine: (impl FnOnce() -> Result<Engine, EngineError> + Send + 'static, Option<OnEngine>),
        (keep, totals): (Vec<RawFd>, MemberTotals),
        directory: &Path,
        cache: ExportCache,
    ) -> Result<Self, EngineError> {
        let directory = place(directory)?;
        let event = || {
            let made = system::event().map(Arc::new);
            made.map_err(|error| EngineError::io(EXPORT, &directory, error))
        };
        let shared = Arc::new(Shared {
            members: event()?,
            bell: event()?,
            totals: Default::default(),
            is_mounted: AtomicBool::new(true),
        });
        shared.publish(totals);
        let (commands, orders) = channel();
        let (ready, started) = channel();
        let (ours, place) = (Arc::clone(&shared), directory.clone());
        let serve = move || run(engine, keep, (place, cache), ours, orders, &ready);
        let serving = Serving::new(directory.clone());
        let thread = std::thread::Builder::new()
            .name("export".into())
            .spawn(serve)
            .map_err(|error| EngineError::io(EXPORT, &directory, error))?;
        let thread = Some(thread);
        let mut export = Self { directory, shared, commands, thread, _serving: serving };
        // Nothing is sent by a thread that panicked.
        match started.recv().unwrap_or_else(|_| Err(ended_early())) {
            Ok(()) => Ok(export),
            Err(error) => {
                // Nothing is mounted, so nothing is to be unmounted.
                drop(export.join());
                Err(error)
            }
        }
    }

    /// The file.
    pub fn file(&self) -> PathBuf {
        self.directory.join(protocol::NAME)
    }

    /// Whether it is mounted still, as far as the thread that serves it knows. Where somebody else has unmounted it the
    /// array goes on without it, until the end.
    pub fn is_mounted(&self) -> bool {
        self.shared.is_mounted.load(Ordering::Acquire)
    }

    /// What was asked of the members since the engine was made, as [`Engine::totals`]: up to the last
    /// answer to a reader or writer of the file at least.
    pub fn totals(&self) -> MemberTotals {
        self.shared.totals()
    }

    /// Takes a member out of service, as [`Engine::fail`].
    ///
    /// # Errors
    /// As there; when the export has ended.
    pub fn fail(&self, member: MemberIndex) -> Result<(), EngineError> {
        self.with_engine(move |engine| engine.fail(member))?
    }

    /// Lets a member in memory vanish: it answers every I/O with that from now on.
    ///
    /// # Errors
    /// When there is no such member in memory, or the export has ended.
    pub fn vanish(&self, member: MemberIndex) -> Result<(), EngineError> {
        self.with_engine(move |engine| vanish(engine, member))?
    }

    /// Does something with the engine, between requests, on the thread that serves the file. That thread has a table of
    /// descriptors of its own: what is opened for the engine must be opened there.
    ///
    /// # Errors
    /// When the export has ended.
    pub fn with_engine<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        let (answer, told) = channel();
        let work = move |engine: &mut Engine| {
            // Who asked may have stopped waiting.
            let _ = answer.send(work(engine));
        };
        self.commands.send(Command::Do(Box::new(work))).map_err(|_| ended_early())?;
        self.ring();
        told.recv().map_err(|_| ended_early())
    }

    /// Unmounts it, unless somebody else has, does something with the engine on the thread that served it, and lets go
    /// of the engine there.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when somebody uses the file: it is served as before then; a fault of the engine.
    pub fn end<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        let (answer, told) = channel();
        let work = move |engine: &mut Engine| {
            let _ = answer.send(work(engine));
        };
        mounts::unmount_if_mounted(&self.directory)?;
        let outcome = self.stop(Command::Last(Box::new(work))).map(|(_, outcome)| outcome);
        outcome.ok_or_else(ended_early)??;
        told.recv().map_err(|_| ended_early())
    }

    /// Has the thread end.
    fn stop(&mut self, command: Command) -> Option<Ended> {
        // It may have ended with a fault, which is what it gives.
        let _ = self.commands.send(command);
        self.ring();
        self.join()
    }

    fn ring(&self) {
        // A counter that is full rings all the same.
        let _ = (&*self.shared.bell).write(&1u64.to_ne_bytes());
    }

    /// Unmounts it, unless somebody else has, and gives the engine back, idle.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when somebody uses the file: the export is taken down all the same, and
    /// the engine with it; a fault of the engine; of an export that was made [`of`](Self::of) one.
    pub fn finish(mut self) -> Result<Engine, EngineError> {
        mounts::unmount_if_mounted(&self.directory)?;
        let Some((engine, outcome)) = self.stop(Command::Stop) else { return Err(ended_early()) };
        outcome?;
        engine.ok_or_else(ended_early)
    }

    fn join(&mut self) -> Option<Ended> {
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for FuseExport {
    fn drop(&mut self) {
        if self.thread.is_none() {
            return;
        }
        // Ends everything that waits for an answer, so that nothing keeps the mount busy for long.
        // An engine that comes back is dropped by this thread: its members' descriptors are this thread's too.
        let ended = self.stop(Command::Stop);
        // What cannot be unmounted now is found again as a leftover.
        let _ = mounts::unmount_lazily(&self.directory);
        drop(ended);
    }
}

/// The thread: mounts, says so, serves.
fn run(
    (make, last): (impl FnOnce() -> Result<Engine, EngineError>, Option<OnEngine>),
    mut keep: Vec<RawFd>,
    (directory, cache): (PathBuf, ExportCache),
    shared: Arc<Shared>,
    orders: Receiver<Command>,
    ready: &Sender<Result<(), EngineError>>,
) -> Ended {
    use std::os::fd::AsRawFd;
    keep.extend([shared.bell.as_raw_fd(), shared.members.as_raw_fd()]);
    let io = |error| EngineError::io(EXPORT, &directory, error);
    // Before members have threads. Without the permission there is only less protection when memory is short.
    system::be_flusher();
    let made = system::own_descriptors(keep).map_err(io).and_then(|()| make());
    let mut engine = match made {
        Ok(engine) => engine,
        Err(error) => {
            let _ = ready.send(Err(error));
            return (None, Ok(()));
        }
    };
    match mount(&mut engine, &directory, cache) {
        Ok(session) => {
            let _ = ready.send(Ok(()));
            ServerLoop::new((session, engine), shared, orders, last).run()
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            (let_go(engine, last), Ok(()))
        }
    }
}

/// Mounts the filesystem of one file, and gets ready to serve it.
pub(crate) fn mount(
    engine: &mut Engine,
    directory: &Path,
    cache: ExportCache,
) -> Result<Session, EngineError> {
    let io = |error| EngineError::io(EXPORT, directory, error);
    let device = system::open_device().map_err(io)?;
    system::mount(&device, directory, cache == ExportCache::ReadOnly).map_err(io)?;
    let open_flags = match cache {
        ExportCache::Kept | ExportCache::ReadOnly => protocol::OPEN_KEEP_CACHE,
        ExportCache::None => protocol::OPEN_DIRECT | protocol::OPEN_PARALLEL_WRITES,
    };
    Session::new(device, engine, open_flags).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = mounts::unmount_lazily(directory);
    })
}

/// A directory on which a file can be served, by the name that the kernel knows it by.
///
/// # Errors
/// As [`FuseExport::new`].
pub(crate) fn place(directory: &Path) -> Result<PathBuf, EngineError> {
    mounts::need_root(EXPORT)?;
    need_device()?;
    directory.canonicalize().map_err(|error| EngineError::io(EXPORT, directory, error))
}

/// That there is FUSE here.
pub(crate) fn need_device() -> Result<(), EngineError> {
    let device = Path::new(system::DEVICE);
    match std::fs::OpenOptions::new().read(true).write(true).open(device) {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = format!("{error}; the kernel must have FUSE (`modprobe fuse`)");
            Err(EngineError::new(EngineErrorKind::NotSupported, EXPORT, reason).at_path(device))
        }
    }
}

fn vanish(engine: &mut Engine, member: MemberIndex) -> Result<(), EngineError> {
    match engine.member_mut(member) {
        Some(Member::Memory(memory)) => {
            memory.vanish();
            Ok(())
        }
        _ => {
            let reason = format!("there is no member {member} in memory");
            Err(EngineError::new(EngineErrorKind::InvalidRequest, "let a member vanish", reason))
        }
    }
}

fn ended_early() -> EngineError {
    let reason = "the thread that serves the file has ended";
    EngineError::new(EngineErrorKind::Internal, EXPORT, reason)
}
