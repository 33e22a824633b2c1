//! Mounting and unmounting.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use raidlab_engine::{EngineError, EngineErrorKind};
use rustix::mount::{MountFlags, UnmountFlags};

/// How long something that is being let go of may still be in use.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried again meanwhile.
const AGAIN: Duration = Duration::from_millis(2);

const UNMOUNT: &str = "unmount a filesystem";

/// Only root may mount.
pub(crate) fn need_root(operation: &'static str) -> Result<(), EngineError> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let reason = "mounting needs root; run raidlab as root, or choose a target without a mount";
    Err(EngineError::new(EngineErrorKind::NotSupported, operation, reason))
}

/// Tries something until it is done, it fails, or patience is at an end; `None`: not yet.
pub(crate) fn wait_for<T>(
    mut attempt: impl FnMut() -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let begun = Instant::now();
    loop {
        match attempt()? {
            None if begun.elapsed() < PATIENCE => std::thread::sleep(AGAIN),
            other => return Ok(other),
        }
    }
}

/// Mounts a block device.
pub(super) fn mount(device: &Path, at: &Path, kind: &str) -> Result<(), EngineError> {
    const MOUNT: &str = "mount the filesystem";
    let failed = |error| EngineError::io(MOUNT, at, error);
    let mounted = rustix::mount::mount(device, at, kind, MountFlags::empty(), None);
    mounted.map_err(|error| failed(error.into()))
}

fn unmount_now(at: &Path, flags: UnmountFlags) -> io::Result<()> {
    Ok(rustix::mount::unmount(at, flags | UnmountFlags::NOFOLLOW)?)
}

/// Unmounts, waiting a while for those who are just letting go.
///
/// # Errors
/// [`EngineErrorKind::Busy`] when somebody still uses it then.
pub(crate) fn unmount(at: &Path) -> Result<(), EngineError> {
    outcome(at, try_to_unmount(at))
}

/// The same, where somebody else may have unmounted it.
///
/// # Errors
/// As [`unmount`].
pub(crate) fn unmount_if_mounted(at: &Path) -> Result<(), EngineError> {
    match try_to_unmount(at) {
        // Nothing is mounted there.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        tried => outcome(at, tried),
    }
}

fn try_to_unmount(at: &Path) -> io::Result<Option<()>> {
    wait_for(|| match unmount_now(at, UnmountFlags::empty()) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(None),
        Err(error) => Err(error),
    })
}

fn outcome(at: &Path, tried: io::Result<Option<()>>) -> Result<(), EngineError> {
    match tried {
        Ok(Some(())) => Ok(()),
        Ok(None) => {
            let reason = "somebody still uses it (`fuser -vm` shows who)";
            Err(EngineError::new(EngineErrorKind::Busy, UNMOUNT, reason).at_path(at))
        }
        Err(error) => Err(EngineError::io(UNMOUNT, at, error)),
    }
}

/// Takes a mount out of the tree at once; who uses it may go on until they let go.
pub(crate) fn unmount_lazily(at: &Path) -> io::Result<()> {
    unmount_now(at, UnmountFlags::DETACH)
}

/// Writes what is in memory of the filesystem that `at` lies in.
pub(super) fn sync(at: &Path) -> Result<(), EngineError> {
    let failed = |error| EngineError::io("write out the filesystem", at, error);
    let directory = std::fs::File::open(at).map_err(failed)?;
    rustix::fs::syncfs(&directory).map_err(|error| failed(error.into()))
}

/// Whether `path` lies in `directory`, by its bytes.
pub(crate) fn lies_in(path: &Path, directory: &Path) -> bool {
    let (path, directory) = (path.as_os_str().as_bytes(), directory.as_os_str().as_bytes());
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_name_is_no_subdirectory() {
        let directory = Path::new("/mnt/run-1");
        assert!(lies_in(Path::new("/mnt/run-1/array"), directory));
        assert!(!lies_in(Path::new("/mnt/run-10/array"), directory));
        assert!(!lies_in(directory, directory));
    }
}
