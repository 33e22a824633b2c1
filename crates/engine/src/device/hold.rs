//! The right to the bytes of a member: taken before anything of them is read, kept until nobody can write them
//! any more.
//!
//! Fault model: one file is named twice, by path, link, bind mount or loop device; a second engine, of this
//! process or another, a virtual machine or a mount uses what is to be a member. Why it is safe: what counts is
//! where the bytes lie ([`place`]). Two members of one process are told apart in a table, which sees what no lock
//! shows: two descriptors of one open file. Files carry locks of open file descriptions (`F_OFD_SETLK`): a shared
//! one on all of the file, which programs that lock images look for and by which theirs are found, and an exclusive
//! one for the member's range, far behind every end of file, where only raidlab's are, so that two members
//! may share a file and no byte. `flock` is taken too where it is a lock of its own. Block devices are opened with
//! `O_EXCL`, and every loop device that shows the same bytes with them. What raidlab does not see: a program
//! that takes no lock, a loop device made later, volumes of the device mapper over the same bytes, a lock of
//! another machine on a filesystem that does not pass locks on. Tests: `tests/claims.rs`.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::FlockOperation;
use rustix::io::retry_on_intr;

use super::place::{self, Base, Extent, Place};
use super::{claim, who};
use crate::error::{EngineError, EngineErrorKind};

const HOLD: &str = "claim a member";

/// Where locks of ranges begin: no file is as long.
const OURS: u64 = 1 << 62;

/// The right to a member's bytes; given back when dropped. By default it is to none.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    _entry: Option<Entry>,
    _locks: Vec<Locked>,
    /// Other devices that show the same bytes.
    _others: Vec<Arc<Other>>,
}

/// The right to read a file or device that nobody writes meanwhile, as far as those who would look for it; given back
/// when dropped.
#[derive(Debug)]
pub struct ReadHold(#[expect(dead_code, reason = "kept for what its end does")] Hold);

impl ReadHold {
    /// Takes it of all of a file or block device that is open as `file`; `path` is for messages. Whoever writes it
    /// already is left alone: then there is none.
    ///
    /// # Errors
    /// [`Busy`](EngineErrorKind::Busy) when somebody may be writing, with who that is as far as it can be told;
    /// [`Io`](EngineErrorKind::Io) when the system refuses.
    pub fn take(file: &File, path: &Path) -> Result<Self, EngineError> {
        Hold::share(file, path).map(Self)
    }
}

/// An open file with locks of ours.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // A process that is just being started may have a copy of the descriptor, which would keep them.
        let _ = set(&self.0, libc::F_OFD_SETLK, libc::F_UNLCK, 0..u64::MAX);
        let _ = flock(&self.0, FlockOperation::NonBlockingUnlock);
    }
}

/// A device that is open exclusively, for as many members as share bytes with it.
#[derive(Debug)]
struct Other {
    number: u64,
    _open: File,
}

/// A line of the table.
#[derive(Debug)]
struct Entry(u64);

struct Row {
    number: u64,
    extent: Extent,
    path: PathBuf,
}

/// What members of this process use.
struct Table {
    last: u64,
    rows: Vec<Row>,
    others: Vec<Weak<Other>>,
}

static TABLE: Mutex<Table> = Mutex::new(Table { last: 0, rows: Vec::new(), others: Vec::new() });

fn table() -> MutexGuard<'static, Table> {
    // What a thread that panicked left is whole: rows come and go in one step.
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn new(extent: &Extent, path: &Path) -> Result<Self, EngineError> {
        let mut table = table();
        if let Some(row) = table.rows.iter().find(|row| row.extent.overlaps(extent)) {
            let reason = if row.path == path {
                "it is a member already, of an array of this process".to_string()
            } else {
                format!("its bytes are those of {}, a member already", row.path.display())
            };
            return Err(busy(path, reason));
        }
        table.last += 1;
        let number = table.last;
        table.rows.push(Row { number, extent: extent.clone(), path: path.to_path_buf() });
        Ok(Self(number))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        table().rows.retain(|row| row.number != self.0);
    }
}

fn busy(path: &Path, reason: String) -> EngineError {
    EngineError::new(EngineErrorKind::Busy, HOLD, reason).at_path(path)
}

impl Hold {
    /// Claims `bytes` of a file or block device that is open for reading and writing as `file`, by the name
    /// `path`. Gives the file to use: a block device is opened anew, exclusively.
    ///
    /// # Errors
    /// [`Busy`](EngineErrorKind::Busy) when something else uses any of it, with who that is as far as it
    /// can be told; [`Io`](EngineErrorKind::Io) when the system refuses.
    pub(crate) fn take(
        file: File,
        path: &Path,
        bytes: Range<u64>,
    ) -> Result<(File, Self), EngineError> {
        let failed = |error| EngineError::io(HOLD, path, error);
        let place = place::of_file(&file, bytes.clone()).map_err(failed)?;
        let mut hold = Self { _entry: Some(Entry::new(&place.extent, path)?), ..Self::default() };
        let mut used = file;
        if let Some(&number) = place.devices.first() {
            // The claim of a device that the user confirmed is this process's already.
            if !claim::is_claimed(number) {
                used = exclusively(&used, number, path)?;
            }
        }
        for &number in &place.under_loops {
            hold.ask(number, &place.extent, path)?;
        }
        hold.lock(&used, path, &bytes)?;
        hold.lock_below(&place, path)?;
        for number in place::loops_over(&place.extent, &place.devices) {
            hold.claim_other(number, path)?;
        }
        Ok((used, hold))
    }

    /// Keeps writers away from all of a file or block device that is open for reading as `file`, beside whoever else
    /// reads it: no member is written, no filesystem mounted and no array of the kernel started there. Nothing is taken
    /// away from who has it already.
    ///
    /// # Errors
    /// As of [`take`](Self::take).
    pub(crate) fn share(file: &File, path: &Path) -> Result<Self, EngineError> {
        let failed = |error| EngineError::io(HOLD, path, error);
        let place = place::of_file(file, 0..OURS).map_err(failed)?;
        let mut hold = Self::default();
        if let Some(&number) = place.devices.first() {
            let node = place::node(number).unwrap_or_else(|| path.to_path_buf());
            hold.claim_node(number, &node).map_err(|error| match error.raw_os_error() {
                Some(libc::EBUSY) => busy(path, format!("{} uses it", who::device(&node))),
                _ => failed(error),
            })?;
        } else {
            // An open file of our own: its locks go with it.
            let own = Locked(File::open(claim::path_of(file)).map_err(failed)?);
            match lock_for_reading(&own.0) {
                Ok(()) => hold._locks.push(own),
                Err(error) if is_in_use(&error) => {
                    let who = who::locks(&own.0);
                    return Err(busy(path, format!("{who} has locked it")));
                }
                Err(error) => return Err(EngineError::io("lock a file", path, error)),
            }
        }
        Ok(hold)
    }

    /// Locks a range of a file that is open as `file`.
    fn lock(&mut self, file: &File, path: &Path, bytes: &Range<u64>) -> Result<(), EngineError> {
        // An open file of our own: its locks go with it, whoever else has `file`.
        let own = OpenOptions::new().read(true).write(true).open(claim::path_of(file));
        let own = Locked(own.map_err(|error| EngineError::io(HOLD, path, error))?);
        match lock(&own.0, bytes) {
            Ok(()) => {}
            Err(error) if is_in_use(&error) => {
                let who = who::locks(&own.0);
                return Err(busy(path, format!("{who} has locked it")));
            }
            Err(error) => return Err(EngineError::io("lock a member", path, error)),
        }
        self._locks.push(own);
        Ok(())
    }

    /// Locks the file that a loop device is made of, if it can be found from here.
    fn lock_below(&mut self, place: &Place, path: &Path) -> Result<(), EngineError> {
        let (Some(file), Base::File(device, inode)) = (&place.file, place.extent.base) else {
            return Ok(());
        };
        let Ok(below) = OpenOptions::new().read(true).write(true).open(file) else {
            return Ok(());
        };
        let same = |there: std::fs::Metadata| (there.dev(), there.ino()) == (device, inode);
        if !below.metadata().is_ok_and(same) {
            return Ok(());
        }
        self.lock(&below, path, &place.extent.bytes).map_err(|error| match error.kind() {
            EngineErrorKind::Busy => {
                busy(path, format!("the file behind it, {}, is in use: {error}", file.display()))
            }
            _ => error,
        })
    }

    /// Asks whether something uses a whole device that a loop device is made of. It stays free for other
    /// loop devices over other parts of it.
    fn ask(&self, number: u64, extent: &Extent, path: &Path) -> Result<(), EngineError> {
        let Some(node) = place::node(number) else { return Ok(()) };
        let shared = table().rows.iter().filter(|row| row.extent.base == extent.base).count() > 1;
        match claim::open_patiently(&node, false) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && !shared => {
                let (node, who) = (node.display(), who::device(&node));
                Err(busy(path, format!("it lies on {node}, and {who} uses that")))
            }
            _ => Ok(()),
        }
    }

    /// Claims another device that shows the same bytes.
    fn claim_other(&mut self, number: u64, path: &Path) -> Result<(), EngineError> {
        let Some(node) = place::node(number) else { return Ok(()) };
        self.claim_node(number, &node).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => {
                let (node, who) = (node.display(), who::device(&node));
                busy(path, format!("{node} has the same bytes, and {who} uses it"))
            }
            _ => {
                let node = node.display();
                busy(path, format!("{node} has the same bytes and cannot be claimed: {error}"))
            }
        })
    }

    /// Opens a device exclusively, once for all of this process that do.
    fn claim_node(&mut self, number: u64, node: &Path) -> io::Result<()> {
        // Kept while the device is opened, so that no other thread finds it busy by this one.
        let mut table = table();
        table.others.retain(|other| other.strong_count() > 0);
        let known = table.others.iter().filter_map(Weak::upgrade);
        if let Some(other) = known.into_iter().find(|other| other.number == number) {
            self._others.push(other);
            return Ok(());
        }
        match claim::open_patiently(node, false) {
            Ok(open) => {
                let other = Arc::new(Other { number, _open: open });
                table.others.push(Arc::downgrade(&other));
                self._others.push(other);
                Ok(())
            }
            // It was taken down meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The block device that is open as `file`, opened exclusively.
fn exclusively(file: &File, number: u64, path: &Path) -> Result<File, EngineError> {
    let opened = claim::open_patiently(&claim::path_of(file), true);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let node = place::node(number).unwrap_or_else(|| path.to_path_buf());
            busy(path, format!("{} uses it", who::device(&node)))
        }
        _ => EngineError::io(HOLD, path, error),
    })
}

fn set(
    file: &File,
    command: libc::c_int,
    kind: libc::c_int,
    at: Range<u64>,
) -> io::Result<libc::flock> {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at.start as libc::off_t;
    // Zero is up to the last byte that can be.
    lock.l_len = if at.end == u64::MAX { 0 } else { (at.end - at.start) as libc::off_t };
    loop {
        // SAFETY: the descriptor is open and the structure ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) } == 0 {
            return Ok(lock);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether another has a lock that stands against writing there.
fn is_locked(file: &File, at: Range<u64>) -> io::Result<bool> {
    let found = set(file, libc::F_OFD_GETLK, libc::F_WRLCK, at)?;
    Ok(libc::c_int::from(found.l_type) != libc::F_UNLCK)
}

/// Takes the locks of a range; `EAGAIN` when others have some that stand against them.
fn lock(file: &File, bytes: &Range<u64>) -> io::Result<()> {
    let in_use = || Err(io::Error::from_raw_os_error(libc::EAGAIN));
    set(file, libc::F_OFD_SETLK, libc::F_RDLCK, 0..OURS)?;
    // Whoever of raidlab's has a lock here has looked for others, and keeps them away since.
    let is_shared = is_locked(file, OURS..u64::MAX)?;
    let range = OURS + bytes.start.min(OURS - 1)..OURS + bytes.end.min(OURS - 1);
    set(file, libc::F_OFD_SETLK, libc::F_WRLCK, range)?;
    if !is_shared && is_locked(file, 0..OURS)? {
        return in_use();
    }
    if file.metadata()?.file_type().is_block_device() || is_remote(file)? {
        // udev takes it now and then on devices; and there it is the same lock once more.
        return Ok(());
    }
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) && is_shared => {}
        other => other?,
    }
    flock(file, FlockOperation::NonBlockingLockShared)
}

/// Takes locks on all of a file that others may take, too, but none who writes; `EAGAIN` when somebody does.
fn lock_for_reading(file: &File) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, libc::F_RDLCK, 0..u64::MAX)?;
    if is_remote(file)? {
        return Ok(());
    }
    flock(file, FlockOperation::NonBlockingLockShared)
}

/// Whether a lock was refused since others have some.
fn is_in_use(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

fn flock(file: &File, operation: FlockOperation) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::flock(file, operation))?)
}

/// Whether the file lies on another machine (NFS, SMB and its successor), where `flock` may be made of the locks
/// of ranges (flock(2)).
fn is_remote(file: &File) -> io::Result<bool> {
    const REMOTE: [u32; 3] = [0x6969, 0xFF53_4D42, 0xFE53_4D42];
    let kind = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(REMOTE.contains(&kind))
}
