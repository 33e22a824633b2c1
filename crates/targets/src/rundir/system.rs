//! Files relative to an open directory, never through a link and, once there, never into another mount.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use raidlab_engine::{Reach, open_without_links};
use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(File);

fn c_string(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A name without a directory part.
fn plain(name: impl AsRef<OsStr>) -> io::Result<CString> {
    let name = name.as_ref();
    if name.is_empty() || name == "." || name == ".." || name.as_bytes().contains(&b'/') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    c_string(name)
}

impl Directory {
    /// Opens a directory the user named; links in its path are the user's own.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(fs::open(path, flags, Mode::empty())?.into()))
    }

    /// A directory in this one, on the same mount.
    pub(crate) fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        plain(&name)?;
        let flags = (libc::O_RDONLY | libc::O_DIRECTORY, 0);
        open_without_links(Some(&self.0), name, flags, Reach::SameMount).map(Self)
    }

    /// A new file in this directory; an error when something of that name is there.
    pub(crate) fn make_file(&self, name: &str) -> io::Result<File> {
        let name = plain(name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(&self.0, &name, flags, Mode::from_raw_mode(0o600))?.into())
    }

    /// A regular file in this directory, on the same mount.
    pub(crate) fn open_file(&self, name: &str, write: bool) -> io::Result<File> {
        plain(name)?;
        // Without O_NONBLOCK a planted pipe would hold the call up.
        let access = if write { libc::O_RDWR } else { libc::O_RDONLY };
        let flags = (access | libc::O_NONBLOCK, 0);
        let file = open_without_links(Some(&self.0), name, flags, Reach::SameMount)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    pub(crate) fn make_directory(&self, name: &str) -> io::Result<()> {
        let name = plain(name)?;
        Ok(fs::mkdirat(&self.0, &name, Mode::from_raw_mode(0o700))?)
    }

    /// A new directory of this process's, whose name begins with `prefix`; gives its name, or the one that it could
    /// not have, and why.
    pub(crate) fn make_own_directory(&self, prefix: &str) -> Result<String, (String, io::Error)> {
        let mut number = 0u32;
        loop {
            let name = format!("{prefix}{}-{number}", std::process::id());
            match self.make_directory(&name) {
                Ok(()) => return Ok(name),
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => number += 1,
                Err(error) => return Err((name, error)),
            }
        }
    }

    /// What has this name here; an error when that is mounted.
    fn look(&self, name: &CStr) -> io::Result<Looked> {
        let found = looked_at(&self.0, name)?;
        if found.mount == looked_at(&self.0, c"")?.mount { Ok(found) } else { Err(mounted()) }
    }

    /// Which file or directory has this name here.
    pub(crate) fn identity(&self, name: impl AsRef<OsStr>) -> io::Result<Identity> {
        self.look(&plain(name)?).map(|found| found.identity)
    }

    /// Removes a regular file if it is the one `meant`; without a word about that, only an empty one.
    /// Anything else of that name is an error.
    ///
    /// Linux cannot unlink what is open: whoever may write to the directory can put another file in the place
    /// of this one between the look and the removal.
    pub(crate) fn remove_file(&self, name: &str, meant: Option<Identity>) -> io::Result<()> {
        let name = plain(name)?;
        let found = self.look(&name)?;
        if !found.is_file {
            return Err(not_regular());
        }
        match meant {
            Some(meant) if meant != found.identity => return Err(another("the file")),
            None if found.size > 0 => return Err(another("the file")),
            _ => {}
        }
        Ok(fs::unlinkat(&self.0, &name, AtFlags::empty())?)
    }

    /// Removes a directory if it is the one `meant`, with everything in it that lies on the same mount.
    /// Follows no link. What cannot be removed does not keep the rest; the first reason is the error.
    pub(crate) fn remove_tree(
        &self,
        name: impl AsRef<OsStr>,
        meant: Option<Identity>,
    ) -> io::Result<()> {
        let found = self.identity(&name)?;
        match meant {
            Some(meant) if meant != found => return Err(another("the directory")),
            // Nothing is known of what may be in it.
            None => return self.remove_directory(name),
            Some(_) => {}
        }
        self.directory(&name)?.clear()?;
        self.remove_directory(name)
    }

    /// Removes everything in this directory that lies on the same mount, at any depth.
    fn clear(&self) -> io::Result<()> {
        // A directory may hold millions, and some filesystems leave names out while others are removed:
        // it is read until nothing more goes.
        loop {
            let (mut gone, mut failed) = (0u64, None);
            for entry in self.entries()? {
                match self.remove_any(&entry?.file_name()) {
                    Ok(()) => gone += 1,
                    Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            match failed {
                None if gone == 0 => return Ok(()),
                Some(error) if gone == 0 => return Err(error),
                _ => {}
            }
        }
    }

    fn remove_any(&self, name: &OsStr) -> io::Result<()> {
        let plain = plain(name)?;
        if self.look(&plain)?.is_directory {
            self.directory(name)?.clear()?;
            return self.remove_directory(name);
        }
        Ok(fs::unlinkat(&self.0, &plain, AtFlags::empty())?)
    }

    fn entries(&self) -> io::Result<std::fs::ReadDir> {
        std::fs::read_dir(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_directory(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name)?;
        Ok(fs::unlinkat(&self.0, &name, AtFlags::REMOVEDIR)?)
    }

    /// Names in this directory besides `known`.
    pub(crate) fn others(&self, known: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.entries()? {
            let name = entry?.file_name();
            if name != known {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether `name` is still the file that is open as `file`.
    pub(crate) fn is_same_file(&self, name: &str, file: &File) -> bool {
        match (self.identity(name), Identity::of(file)) {
            (Ok(now), Ok(then)) => now == then,
            _ => false,
        }
    }

    /// Bytes that an ordinary user may still use on this filesystem.
    pub(crate) fn room(&self) -> io::Result<u64> {
        room(&self.0)
    }
}

/// Bytes that an ordinary user may still use on the filesystem of an open directory.
pub(crate) fn room(directory: impl AsFd) -> io::Result<u64> {
    let status = retry_on_intr(|| fs::fstatvfs(&directory))?;
    Ok(status.f_bavail.saturating_mul(status.f_frsize))
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn mounted() -> io::Error {
    io::Error::new(io::ErrorKind::CrossesDevices, "something is mounted on it")
}

fn another(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is not {what} that the run made"))
}

/// What an error of a look below a directory means to people.
pub(crate) fn said(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EXDEV | libc::EBUSY) => mounted().to_string(),
        _ => error.to_string(),
    }
}

/// What the kernel tells of a name.
struct Looked {
    mount: u64,
    identity: Identity,
    is_file: bool,
    is_directory: bool,
    size: u64,
}

/// Looks at a name in an open directory, or at that itself by an empty name; follows no link.
fn looked_at(directory: &File, name: &CStr) -> io::Result<Looked> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let told = fs::statx(directory, name, flags, mask)?;
    if told.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        let reason = "the kernel does not tell mounts apart (Linux 5.8 does)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let kind = FileType::from_raw_mode(told.stx_mode.into());
    let device = fs::makedev(told.stx_dev_major, told.stx_dev_minor);
    Ok(Looked {
        mount: told.stx_mnt_id,
        identity: Identity { device, inode: told.stx_ino },
        is_file: kind == FileType::RegularFile,
        is_directory: kind == FileType::Directory,
        size: told.stx_size,
    })
}

/// A file or directory, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The number of the device that its filesystem lies on.
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// A marker that is locked. Dropping it gives the lock back: it would go with the open file, but a process that is just
/// being started may have a copy of the descriptor, which would keep it.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Takes the lock of a marker; without `wait` an error when another holds it.
    pub(crate) fn take(marker: File, wait: bool) -> io::Result<Self> {
        let operation = match wait {
            true => FlockOperation::LockExclusive,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        retry_on_intr(|| fs::flock(&marker, operation))?;
        Ok(Self(marker))
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // What is closed right after has no lock.
        let _ = fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Makes a new file `bytes` long, reserving its room where the filesystem can.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match retry_on_intr(|| fs::fallocate(file, fs::FallocateFlags::empty(), 0, bytes)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["", ".", "..", "a/b", "/", "a\0b"] {
            assert_eq!(plain(name).expect_err(name).raw_os_error(), Some(libc::EINVAL), "{name:?}");
        }
        for name in ["a", "...", ".hidden", "a.b"] {
            assert_eq!(plain(name).expect("a name").as_bytes(), name.as_bytes());
        }
    }

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_a_lock_that_was_given_back() {
        let path = std::env::temp_dir().join(format!("raidlab-lock-{}", std::process::id()));
        let marker = Locked::take(File::create(&path).expect("made"), false).expect("free");
        // As a process has it that is just being started.
        let copy = marker.try_clone().expect("copied");
        let other = || File::open(&path).expect("there");
        Locked::take(other(), false).expect_err("it is held");
        drop(marker);
        Locked::take(other(), false).expect("given back");
        drop(copy);
        std::fs::remove_file(&path).expect("removed");
    }
}
