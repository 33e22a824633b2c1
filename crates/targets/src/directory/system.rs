//! The system calls of operations, one function each; calls that a signal interrupts are repeated.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use raidlab_core::Nanos;
use raidlab_workload::Cpu;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, Timespec};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit};

/// `BLKFLSBUF`, `_IO(0x12, 97)` in `linux/fs.h`: writes a block device's pages and drops them.
const FLUSH_BUFFERS: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 97);

/// Repeats a call as long as signals interrupt it.
fn again<T>(call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    Ok(retry_on_intr(call)?)
}

/// Opens a name below a directory.
pub(super) fn open(
    directory: BorrowedFd<'_>,
    name: &CStr,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    again(|| fs::openat(directory, name, flags | OFlags::CLOEXEC, mode))
}

/// Opens a directory below a directory, to be read.
pub(super) fn open_directory(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    open(directory, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Closes a file and tells what closing it told.
pub(super) fn close(file: OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor was owned by `file`, which gave it up.
    match unsafe { rustix::io::try_close(file.into_raw_fd()) } {
        // Linux has closed it by then.
        Ok(()) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn read(file: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    again(|| rustix::io::read(&file, &mut *into))
}

/// One call; it may write less than it was asked for.
pub(super) fn write(file: impl AsFd, from: &[u8]) -> io::Result<usize> {
    again(|| rustix::io::write(&file, from))
}

pub(super) fn read_at(file: impl AsFd, into: &mut [u8], at: u64) -> io::Result<usize> {
    again(|| rustix::io::pread(&file, &mut *into, at))
}

pub(super) fn write_at(file: impl AsFd, from: &[u8], at: u64) -> io::Result<usize> {
    again(|| rustix::io::pwrite(&file, from, at))
}

/// Calls with what is left and its place until everything is written, the first byte to `at`.
pub(super) fn in_full(
    from: &[u8],
    at: u64,
    mut call: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut written = 0;
    loop {
        let moved = call(&from[written..], at + written as u64)?;
        written += moved;
        if written >= from.len() {
            return Ok(());
        }
        if moved == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
}

/// Moves the position; gives the new one.
pub(super) fn seek(file: impl AsFd, to: SeekFrom) -> io::Result<u64> {
    again(|| fs::seek(&file, to))
}

pub(super) fn fsync(file: impl AsFd) -> io::Result<()> {
    again(|| fs::fsync(&file))
}

pub(super) fn fdatasync(file: impl AsFd) -> io::Result<()> {
    again(|| fs::fdatasync(&file))
}

pub(super) fn sync_all() {
    fs::sync();
}

pub(super) fn truncate(file: impl AsFd, len: u64) -> io::Result<()> {
    again(|| fs::ftruncate(&file, len))
}

/// Reserves room; not every filesystem can.
pub(super) fn allocate(file: impl AsFd, len: u64) -> io::Result<()> {
    match retry_on_intr(|| fs::fallocate(&file, fs::FallocateFlags::empty(), 0, len)) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// From one position to the other; moves both.
pub(super) fn copy_range(from: impl AsFd, to: impl AsFd, len: usize) -> io::Result<usize> {
    again(|| fs::copy_file_range(&from, None, &to, None, len))
}

pub(super) fn unlink(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    again(|| fs::unlinkat(directory, name, AtFlags::empty()))
}

pub(super) fn rmdir(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    again(|| fs::unlinkat(directory, name, AtFlags::REMOVEDIR))
}

pub(super) fn mkdir(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    again(|| fs::mkdirat(directory, name, Mode::from_raw_mode(0o755)))
}

/// A name below a directory.
pub(super) type Name<'a> = (BorrowedFd<'a>, &'a CStr);

pub(super) fn rename(from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    again(|| fs::renameat(from.0, from.1, to.0, to.1))
}

pub(super) fn link(from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    again(|| fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()))
}

pub(super) fn symlink(text: &CStr, (directory, name): Name<'_>) -> io::Result<()> {
    again(|| fs::symlinkat(text, directory, name))
}

pub(super) fn stat(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<Stat> {
    again(|| fs::statat(directory, name, AtFlags::empty()))
}

pub(super) fn is_directory(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::Directory
}

/// Reads a directory through `memory`, and hands each name but `.` and `..` to `each`, with whether it is a
/// directory.
pub(super) fn list(
    directory: BorrowedFd<'_>,
    memory: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&CStr, bool) -> io::Result<()>,
) -> io::Result<()> {
    let mut entries = RawDir::new(directory, memory);
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match entry.file_type() {
            // Some filesystems do not tell in the list.
            FileType::Unknown => is_directory(&stat(directory, name)?),
            kind => kind == FileType::Directory,
        };
        each(name, is_directory)?;
    }
    Ok(())
}

/// What an attribute is set on: an open file, or a name below a directory.
#[derive(Clone, Copy)]
pub(super) enum Object<'a> {
    File(BorrowedFd<'a>),
    Name(BorrowedFd<'a>, &'a CStr),
}

/// Sets both times to this many seconds since 1970.
pub(super) fn set_times(of: Object<'_>, seconds: i64) -> io::Result<()> {
    let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = fs::Timestamps { last_access: time, last_modification: time };
    again(|| match of {
        Object::File(file) => fs::futimens(file, &times),
        Object::Name(directory, name) => {
            fs::utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        }
    })
}

pub(super) fn set_mode(of: Object<'_>, mode: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    again(|| match of {
        Object::File(file) => fs::fchmod(file, mode),
        Object::Name(directory, name) => fs::chmodat(directory, name, mode, AtFlags::empty()),
    })
}

/// Sets the owner and group to those this process makes files with.
pub(super) fn set_owner(of: Object<'_>) -> io::Result<()> {
    let (user, group) = (Some(rustix::process::geteuid()), Some(rustix::process::getegid()));
    again(|| match of {
        Object::File(file) => fs::fchown(file, user, group),
        Object::Name(directory, name) => {
            fs::chownat(directory, name, user, group, AtFlags::SYMLINK_NOFOLLOW)
        }
    })
}

/// Drops what memory holds of a file (clean pages only) or a block device (written before).
pub(super) fn drop_cached(file: impl AsFd) -> io::Result<()> {
    let status = again(|| fs::fstat(&file))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice {
        // SAFETY: this request takes no argument.
        let flush =
            || unsafe { rustix::ioctl::ioctl(&file, rustix::ioctl::NoArg::<FLUSH_BUFFERS>::new()) };
        return again(flush);
    }
    again(|| fs::fadvise(&file, 0, None, fs::Advice::DontNeed))
}

/// Whether this process may write in a directory, by its effective rights.
pub(super) fn may_write(directory: BorrowedFd<'_>) -> io::Result<()> {
    let wanted = fs::Access::WRITE_OK | fs::Access::EXEC_OK;
    again(|| fs::accessat(directory, c".", wanted, AtFlags::EACCESS))
}

/// Whether the filesystem lies in memory.
pub(super) fn is_in_memory(directory: impl AsFd) -> io::Result<bool> {
    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` in `linux/magic.h`.
    const KINDS: [i128; 2] = [0x0102_1994, 0x8584_58f6];
    let status = again(|| fs::fstatfs(&directory))?;
    // The type of the field differs between machines.
    Ok(KINDS.contains(&i128::from(status.f_type)))
}

/// CPU time of this thread.
pub(super) fn thread_cpu() -> Option<Cpu> {
    // SAFETY: plain integers, for which zeroes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` has room for the result. rustix has no getrusage.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
        return None;
    }
    let nanos = |time: libc::timeval| {
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
    };
    Some(Cpu { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) })
}

/// Lets this process have as many files open as the system lets it ask for; says whether that is more.
pub(super) fn allow_more_files() -> bool {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // No limit is `None`.
    if limit.current.is_none() || limit.maximum.is_some_and(|most| limit.current >= Some(most)) {
        return false;
    }
    let more = Rlimit { current: limit.maximum, maximum: limit.maximum };
    rustix::process::setrlimit(Resource::Nofile, more).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_writes_are_continued() {
        let from: Vec<u8> = (0..10).collect();
        for at in [0, 4096] {
            let mut to = Vec::new();
            let three = |rest: &[u8], place: u64| {
                assert_eq!(place, at + to.len() as u64);
                let moved = rest.len().min(3);
                to.extend_from_slice(&rest[..moved]);
                Ok(moved)
            };
            in_full(&from, at, three).unwrap();
            assert_eq!(to, from);
        }
        let error = in_full(&from, 0, |_, at| Ok(3 - at.min(3) as usize)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        in_full(&[], 0, |_, _| Ok(0)).unwrap();
    }
}
