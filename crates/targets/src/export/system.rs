//! System calls of the export: the FUSE device, waiting, and a descriptor table of the thread's own.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::thread::UnshareFlags;

/// The device that carries FUSE messages.
pub(crate) const DEVICE: &str = "/dev/fuse";
/// The type of the mount, as `/proc/self/mountinfo` shows it.
pub(crate) const TYPE: &str = "fuse.raidlab";

/// Opens the FUSE device; calls on it do not wait.
pub(super) fn open_device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
}

/// Mounts the filesystem that `device` will be answered for.
pub(super) fn mount(device: &File, at: &Path, read_only: bool) -> io::Result<()> {
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let options = CString::new(options)?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    flags.set(MountFlags::RDONLY, read_only);
    Ok(rustix::mount::mount("raidlab", at, TYPE, flags, Some(options.as_c_str()))?)
}

/// Reads one message: its first bytes into `head`, the rest into `rest`.
pub(super) fn receive(mut device: &File, head: &mut [u8], rest: &mut [u8]) -> io::Result<usize> {
    device.read_vectored(&mut [IoSliceMut::new(head), IoSliceMut::new(rest)])
}

/// Answers one message.
pub(super) fn send(mut device: &File, header: &[u8], body: &[u8]) -> io::Result<()> {
    let parts = [IoSlice::new(header), IoSlice::new(body)];
    let count = if body.is_empty() { 1 } else { 2 };
    device.write_vectored(&parts[..count]).map(|_| ())
}

/// An event counter that does not wait.
pub(crate) fn event() -> io::Result<File> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into())
}

/// Waits until one of some descriptors can be read, or `limit` has passed.
pub(super) fn wait<'a>(
    descriptors: impl Iterator<Item = BorrowedFd<'a>>,
    limit: Option<Duration>,
) -> io::Result<()> {
    let watch = |descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN);
    let mut watched: Vec<PollFd<'_>> = descriptors.map(watch).collect();
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut watched, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives the calling thread a table of descriptors of its own, in which only `keep` and the standard
/// ones are open. Numbers stay what they are.
pub(crate) fn own_descriptors(mut keep: Vec<RawFd>) -> io::Result<()> {
    // SAFETY: what other threads own stays open in their table.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }?;
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
            if closed < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        from = end.saturating_add(1);
    }
    Ok(())
}

/// Closes descriptors in the table of the calling thread whose values a thread with a table of its own has.
pub(crate) fn close_given(descriptors: Vec<RawFd>) {
    for descriptor in descriptors {
        // SAFETY: its value is closed by the other thread, in its own table: nobody has the number here.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
}

/// Keeps memory that the thread asks for, and those that it starts, from being made room for by writing to what it
/// serves, and lets them write as long as their members take it, whoever else fills memory; where that is permitted
/// (`CAP_SYS_RESOURCE`). Whether it was.
pub(crate) fn be_flusher() -> bool {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: takes no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) == 0 }
}

/// Keeps the memory of this process, that it will have too, where it is: none is written to swap or read from its file
/// again, which may need the very disk that the process serves. Only what is used is held. Whether it is: that needs
/// `CAP_SYS_RESOURCE`, or a hard limit of locked memory that is none (`LimitMEMLOCK=infinity` of systemd).
pub fn hold_memory() -> bool {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // With a limit that is reached later, memory that is needed then would be refused.
    if setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None }).is_err() {
        return false;
    }
    // SAFETY: memory stays what it is.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) == 0 }
}
