//! System calls of the export: the FUSE device, waiting, and a descriptor table of the thread's own.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The device that carries FUSE messages.
pub(crate) const DEVICE: &str = "/dev/fuse";
/// The type of the mount, as `/proc/self/mountinfo` shows it.
pub(crate) const TYPE: &str = "fuse.raidlab";

/// Opens the FUSE device; calls on it do not wait.
pub(super) fn open_device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

/// A path as system calls want it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Mounts the filesystem that `device` will be answered for.
pub(super) fn mount(device: &File, at: &Path) -> io::Result<()> {
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let (source, kind) = (c_path(Path::new("raidlab"))?, c_path(Path::new(TYPE))?);
    let (at, options) = (c_path(at)?, c_path(Path::new(&options))?);
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: four C strings that live through the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            at.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast::<libc::c_void>(),
        )
    })
}

/// Reads one message: its first bytes into `head`, the rest into `rest`.
pub(super) fn receive(device: &File, head: &mut [u8], rest: &mut [u8]) -> io::Result<usize> {
    let parts = [
        libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() },
        libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() },
    ];
    // SAFETY: two slices that are ours alone, as long as said.
    let read = unsafe { libc::readv(device.as_raw_fd(), parts.as_ptr(), 2) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Answers one message.
pub(super) fn send(device: &File, header: &[u8], body: &[u8]) -> io::Result<()> {
    let parts = [
        libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: header.len() },
        libc::iovec { iov_base: body.as_ptr().cast_mut().cast(), iov_len: body.len() },
    ];
    let count = if body.is_empty() { 1 } else { 2 };
    // SAFETY: two slices that are read only, as long as said.
    let sent = unsafe { libc::writev(device.as_raw_fd(), parts.as_ptr(), count) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// An event counter that does not wait.
pub(super) fn event() -> io::Result<File> {
    // SAFETY: takes no memory.
    let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    check(descriptor)?;
    // SAFETY: a descriptor that was just made and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Waits until one of some descriptors can be read, or `limit` has passed. Negative ones are left out.
pub(super) fn wait(descriptors: &[RawFd], limit: Option<Duration>) -> io::Result<()> {
    let watch = |fd: &RawFd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
    let mut watched: Vec<libc::pollfd> = descriptors.iter().map(watch).collect();
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = watched.len() as libc::nfds_t;
    // SAFETY: `watched` has that many entries, `limit` is null or points to a time that lives.
    let ready = unsafe { libc::ppoll(watched.as_mut_ptr(), count, limit, std::ptr::null()) };
    match check(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other,
    }
}

/// Gives the calling thread a table of descriptors of its own, in which only `keep` and the standard
/// ones are open. Numbers stay what they are.
pub(super) fn own_descriptors(mut keep: Vec<RawFd>) -> io::Result<()> {
    // SAFETY: takes no memory; what other threads own stays open in their table.
    check(unsafe { libc::unshare(libc::CLONE_FILES) })?;
    keep.retain(|descriptor| *descriptor > libc::STDERR_FILENO);
    keep.sort_unstable();
    keep.dedup();
    let mut from = libc::STDERR_FILENO as libc::c_uint + 1;
    let last = std::iter::once(libc::c_uint::MAX);
    for end in keep.into_iter().map(|descriptor| descriptor as libc::c_uint).chain(last) {
        if from < end {
            // The last range includes its end, which is no descriptor.
            let to = if end == libc::c_uint::MAX { end } else { end - 1 };
            // SAFETY: closes numbers in this thread's own table only, none of which this thread owns a
            // value for.
            let closed = unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
            check(closed as libc::c_int)?;
        }
        from = end.saturating_add(1);
    }
    Ok(())
}

/// Keeps memory that the thread asks for from being made room for by writing to what it serves, where
/// that is permitted; whether it was.
pub(super) fn be_flusher() -> bool {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: takes no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0 }
}
