//! The system calls of operations, one function each; calls that a signal interrupts are repeated.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use raidlab_core::Nanos;
use raidlab_workload::Cpu;

/// `BLKFLSBUF`, `_IO(0x12, 97)` in `linux/fs.h`: writes a block device's pages and drops them.
const FLUSH_BUFFERS: libc::c_ulong = 0x1261;

/// Repeats a call as long as signals interrupt it.
fn again<T: Copy + PartialOrd + Default>(mut call: impl FnMut() -> T) -> io::Result<T> {
    loop {
        let result = call();
        if result >= T::default() {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn done(call: impl FnMut() -> libc::c_int) -> io::Result<()> {
    again(call).map(|_| ())
}

fn offset(at: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(at).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// Opens a name below a directory.
pub(super) fn open(
    directory: RawFd,
    name: &CStr,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the name is a C string that lives through the call.
    let opened = again(|| unsafe { libc::openat(directory, name.as_ptr(), flags, mode) })?;
    // SAFETY: a descriptor that was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) })
}

/// Closes a file and tells what closing it told.
pub(super) fn close(file: OwnedFd) -> io::Result<()> {
    let descriptor = file.into_raw_fd();
    // SAFETY: the descriptor was owned by `file`, which gave it up.
    if unsafe { libc::close(descriptor) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Linux has closed it by then.
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

pub(super) fn read(file: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `into` is valid for writes of its length.
    again(|| unsafe { libc::read(file, into.as_mut_ptr().cast(), into.len()) })
        .map(isize::cast_unsigned)
}

/// One call; it may write less than it was asked for.
pub(super) fn write(file: RawFd, from: &[u8]) -> io::Result<usize> {
    // SAFETY: `from` is valid for reads of its length.
    again(|| unsafe { libc::write(file, from.as_ptr().cast(), from.len()) })
        .map(isize::cast_unsigned)
}

pub(super) fn read_at(file: RawFd, into: &mut [u8], at: u64) -> io::Result<usize> {
    let at = offset(at)?;
    // SAFETY: `into` is valid for writes of its length.
    again(|| unsafe { libc::pread(file, into.as_mut_ptr().cast(), into.len(), at) })
        .map(isize::cast_unsigned)
}

pub(super) fn write_at(file: RawFd, from: &[u8], at: u64) -> io::Result<usize> {
    let at = offset(at)?;
    // SAFETY: `from` is valid for reads of its length.
    again(|| unsafe { libc::pwrite(file, from.as_ptr().cast(), from.len(), at) })
        .map(isize::cast_unsigned)
}

/// Calls until everything is written.
pub(super) fn in_full(
    from: &[u8],
    mut call: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut written = 0;
    loop {
        let moved = call(&from[written..], written as u64)?;
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
pub(super) fn seek(file: RawFd, by: i64, whence: libc::c_int) -> io::Result<u64> {
    // SAFETY: takes only numbers.
    again(|| unsafe { libc::lseek(file, by, whence) }).map(i64::cast_unsigned)
}

pub(super) fn fsync(file: RawFd) -> io::Result<()> {
    // SAFETY: takes only a number.
    done(|| unsafe { libc::fsync(file) })
}

pub(super) fn fdatasync(file: RawFd) -> io::Result<()> {
    // SAFETY: takes only a number.
    done(|| unsafe { libc::fdatasync(file) })
}

pub(super) fn sync_all() {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::sync() };
}

pub(super) fn truncate(file: RawFd, len: u64) -> io::Result<()> {
    let len = offset(len)?;
    // SAFETY: takes only numbers.
    done(|| unsafe { libc::ftruncate(file, len) })
}

/// Reserves room; not every filesystem can.
pub(super) fn allocate(file: RawFd, len: u64) -> io::Result<()> {
    let len = offset(len)?;
    // SAFETY: takes only numbers.
    match done(|| unsafe { libc::fallocate(file, 0, 0, len) }) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) => {
            Ok(())
        }
        other => other,
    }
}

/// From one position to the other; moves both.
pub(super) fn copy_range(from: RawFd, to: RawFd, len: usize) -> io::Result<usize> {
    let none = std::ptr::null_mut();
    // SAFETY: no pointers to places are given, so the positions of the files are used.
    again(|| unsafe { libc::copy_file_range(from, none, to, none, len, 0) })
        .map(isize::cast_unsigned)
}

pub(super) fn unlink(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: the name is a C string that lives through the call.
    done(|| unsafe { libc::unlinkat(directory, name.as_ptr(), flags) })
}

pub(super) fn mkdir(directory: RawFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name is a C string that lives through the call.
    done(|| unsafe { libc::mkdirat(directory, name.as_ptr(), 0o755) })
}

pub(super) fn rename(from: (RawFd, &CStr), to: (RawFd, &CStr)) -> io::Result<()> {
    // SAFETY: the names are C strings that live through the call.
    done(|| unsafe { libc::renameat(from.0, from.1.as_ptr(), to.0, to.1.as_ptr()) })
}

pub(super) fn link(from: (RawFd, &CStr), to: (RawFd, &CStr)) -> io::Result<()> {
    // SAFETY: the names are C strings that live through the call.
    done(|| unsafe { libc::linkat(from.0, from.1.as_ptr(), to.0, to.1.as_ptr(), 0) })
}

pub(super) fn symlink(text: &CStr, directory: RawFd, name: &CStr) -> io::Result<()> {
    // SAFETY: text and name are C strings that live through the call.
    done(|| unsafe { libc::symlinkat(text.as_ptr(), directory, name.as_ptr()) })
}

pub(super) fn stat(directory: RawFd, name: &CStr) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the name is a C string that lives through the call; `status` has room for the result.
    done(|| unsafe { libc::fstatat(directory, name.as_ptr(), status.as_mut_ptr(), 0) })?;
    // SAFETY: plain integers, zeroed before and filled in by the call.
    Ok(unsafe { status.assume_init() })
}

/// A piece of a directory's list as `getdents64` gives it; nothing at the end.
pub(super) fn list(directory: RawFd, into: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (into.as_mut_ptr(), into.len());
    // SAFETY: `into` is valid for writes of its length.
    again(|| unsafe { libc::syscall(libc::SYS_getdents64, directory, start, len) })
        .map(|bytes| bytes as usize)
}

/// What an attribute is set on: an open file, or a name below a directory.
#[derive(Clone, Copy)]
pub(super) enum Object<'a> {
    File(RawFd),
    Name(RawFd, &'a CStr),
}

/// Sets both times to this many seconds since 1970.
pub(super) fn set_times(of: Object<'_>, seconds: i64) -> io::Result<()> {
    let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    let times = [time; 2];
    let times = times.as_ptr();
    match of {
        // SAFETY: `times` are two valid times.
        Object::File(file) => done(|| unsafe { libc::futimens(file, times) }),
        Object::Name(directory, name) => {
            let flags = libc::AT_SYMLINK_NOFOLLOW;
            // SAFETY: as above; the name is a C string that lives through the call.
            done(|| unsafe { libc::utimensat(directory, name.as_ptr(), times, flags) })
        }
    }
}

pub(super) fn set_mode(of: Object<'_>, mode: libc::mode_t) -> io::Result<()> {
    match of {
        // SAFETY: takes only numbers.
        Object::File(file) => done(|| unsafe { libc::fchmod(file, mode) }),
        Object::Name(directory, name) => {
            // SAFETY: the name is a C string that lives through the call.
            done(|| unsafe { libc::fchmodat(directory, name.as_ptr(), mode, 0) })
        }
    }
}

/// Sets the owner and group to those this process makes files with.
pub(super) fn set_owner(of: Object<'_>) -> io::Result<()> {
    // SAFETY: these take nothing and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    match of {
        // SAFETY: takes only numbers.
        Object::File(file) => done(|| unsafe { libc::fchown(file, user, group) }),
        Object::Name(directory, name) => {
            let flags = libc::AT_SYMLINK_NOFOLLOW;
            // SAFETY: the name is a C string that lives through the call.
            done(|| unsafe { libc::fchownat(directory, name.as_ptr(), user, group, flags) })
        }
    }
}

/// Drops what memory holds of a file (clean pages only) or a block device (written before).
pub(super) fn drop_cached(file: RawFd) -> io::Result<()> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` has room for the result.
    done(|| unsafe { libc::fstat(file, status.as_mut_ptr()) })?;
    // SAFETY: plain integers, zeroed before and filled in by the call.
    let mode = unsafe { status.assume_init() }.st_mode;
    if mode & libc::S_IFMT == libc::S_IFBLK {
        // SAFETY: this request takes no argument.
        return done(|| unsafe { libc::ioctl(file, FLUSH_BUFFERS as _, 0) });
    }
    // SAFETY: takes only numbers; the result is the error itself.
    match unsafe { libc::posix_fadvise(file, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Whether this process may write in a directory, by its effective rights.
pub(super) fn may_write(directory: BorrowedFd<'_>) -> io::Result<()> {
    let (directory, here) = (directory.as_raw_fd(), c".".as_ptr());
    let wanted = libc::W_OK | libc::X_OK;
    // SAFETY: the name is a C string that lives through the call.
    done(|| unsafe { libc::faccessat(directory, here, wanted, libc::AT_EACCESS) })
}

/// Bytes that an ordinary user may still write to the filesystem.
pub(super) fn room(directory: BorrowedFd<'_>) -> io::Result<u64> {
    let mut status = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: `status` has room for the result.
    done(|| unsafe { libc::fstatvfs(directory.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: plain integers, zeroed before and filled in by the call.
    let status = unsafe { status.assume_init() };
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

/// Whether the filesystem lies in memory.
pub(super) fn is_in_memory(directory: BorrowedFd<'_>) -> io::Result<bool> {
    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` in `linux/magic.h`.
    const KINDS: [i128; 2] = [0x0102_1994, 0x8584_58f6];
    let mut status = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `status` has room for the result.
    done(|| unsafe { libc::fstatfs(directory.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: plain integers, zeroed before and filled in by the call.
    let status = unsafe { status.assume_init() };
    // The type of the field differs between C libraries.
    Ok(KINDS.contains(&i128::from(status.f_type)))
}

/// CPU time of this thread.
pub(super) fn thread_cpu() -> Option<Cpu> {
    // SAFETY: plain integers, for which zeroes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` has room for the result.
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
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0
        || limit.rlim_cur >= limit.rlim_max
    {
        return false;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is a valid value.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_writes_are_continued() {
        let from: Vec<u8> = (0..10).collect();
        let mut to = Vec::new();
        let three = |to: &mut Vec<u8>, rest: &[u8], at: u64| {
            assert_eq!(at, to.len() as u64);
            let moved = rest.len().min(3);
            to.extend_from_slice(&rest[..moved]);
            Ok(moved)
        };
        in_full(&from, |rest, at| three(&mut to, rest, at)).unwrap();
        assert_eq!(to, from);
        let error = in_full(&from, |_, at| Ok(3 - at.min(3) as usize)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        in_full(&[], |_, _| Ok(0)).unwrap();
    }

    #[test]
    fn interrupted_calls_are_repeated() {
        let mut left = 3;
        let result = again(|| {
            left -= 1;
            // SAFETY: the place of this thread's error number.
            unsafe { *libc::__errno_location() = if left > 0 { libc::EINTR } else { libc::EIO } };
            -1
        });
        assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EIO));
        assert_eq!(left, 0);
    }
}
