//! Mounting, unmounting, and what is mounted.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
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
    let tried = wait_for(|| match unmount_now(at, UnmountFlags::empty()) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(None),
        Err(error) => Err(error),
    });
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

/// A mount, as `/proc/self/mountinfo` (man 5 proc) tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: PathBuf,
}

/// What is mounted, the oldest first.
pub(crate) fn mounts() -> io::Result<Vec<Mount>> {
    let text = std::fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Number, parent, device, root, mount point, options, any number of fields, `-`, type, source, options.
fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let (point, kind) = (fields.get(4)?, fields.get(dash + 1)?);
    let source = fields.get(dash + 2)?;
    let kind = String::from_utf8_lossy(kind).into_owned();
    Some(Mount { point: unescape(point), kind, source: unescape(source) })
}

/// Blanks, tabs, line ends and backslashes are written as `\` and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
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
    fn mountinfo_is_read() {
        let line = br"36 35 98:0 /mnt1 /mnt/a\040b\134c rw,noatime master:1 - ext3 /dev/root rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.point, Path::new(r"/mnt/a b\c"));
        assert_eq!((mount.kind.as_str(), mount.source.as_path()), ("ext3", Path::new("/dev/root")));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"36 35 98:0 / /mnt rw - ext3"), None);
        assert_eq!(unescape(br"a\04"), Path::new(r"a\04"));
    }

    #[test]
    fn a_longer_name_is_no_subdirectory() {
        let directory = Path::new("/mnt/run-1");
        assert!(lies_in(Path::new("/mnt/run-1/array"), directory));
        assert!(!lies_in(Path::new("/mnt/run-10/array"), directory));
        assert!(!lies_in(directory, directory));
    }
}
