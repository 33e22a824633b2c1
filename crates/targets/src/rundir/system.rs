//! Files relative to an open directory, never through a link and, once there, never into another mount.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use raidlab_engine::{Reach, open_without_links};

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

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Directory {
    /// Opens a directory the user named; links in its path are the user's own.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = c_string(path.as_os_str())?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path is a C string that lives through the call.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags) };
        owned(descriptor).map(Self)
    }

    fn open_at(&self, name: impl AsRef<OsStr>, flags: libc::c_int) -> io::Result<File> {
        let name = plain(name)?;
        let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the directory is open and the name a C string that lives through the call.
        let descriptor = unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags, 0o600) };
        owned(descriptor)
    }

    /// A directory in this one, on the same mount.
    pub(crate) fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        plain(&name)?;
        let flags = (libc::O_RDONLY | libc::O_DIRECTORY, 0);
        open_without_links(Some(&self.0), name, flags, Reach::SameMount).map(Self)
    }

    /// A new file in this directory; an error when something of that name is there.
    pub(crate) fn make_file(&self, name: &str) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
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
        // SAFETY: as in `open_at`.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), name.as_ptr(), 0o700) })
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
        // SAFETY: as in `open_at`.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), 0) })
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
        // SAFETY: as in `open_at`.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), plain.as_ptr(), 0) })
    }

    fn entries(&self) -> io::Result<std::fs::ReadDir> {
        std::fs::read_dir(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_directory(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name)?;
        // SAFETY: as in `open_at`.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) })
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
        let mut status = MaybeUninit::<libc::statvfs>::zeroed();
        // SAFETY: the directory is open; `status` has room for the result.
        check(unsafe { libc::fstatvfs(self.0.as_raw_fd(), status.as_mut_ptr()) })?;
        // SAFETY: plain integers, zeroed before and filled in by the call.
        let status = unsafe { status.assume_init() };
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }
}

fn owned(descriptor: libc::c_int) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
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
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    let mask = libc::STATX_BASIC_STATS | libc::STATX_MNT_ID;
    let descriptor = directory.as_raw_fd();
    // SAFETY: the directory is open, the name a C string, and the structure ours.
    check(unsafe { libc::statx(descriptor, name.as_ptr(), flags, mask, &raw mut told) })?;
    if told.stx_mask & libc::STATX_MNT_ID == 0 {
        let reason = "the kernel does not tell mounts apart (Linux 5.8 does)";
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    let kind = libc::mode_t::from(told.stx_mode) & libc::S_IFMT;
    let device = libc::makedev(told.stx_dev_major, told.stx_dev_minor);
    Ok(Looked {
        mount: told.stx_mnt_id,
        identity: Identity { device, inode: told.stx_ino },
        is_file: kind == libc::S_IFREG,
        is_directory: kind == libc::S_IFDIR,
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

/// Takes the lock of a marker; without `wait` an error when another holds it.
pub(crate) fn lock(marker: &File, wait: bool) -> io::Result<()> {
    let mode = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
    loop {
        // SAFETY: the descriptor is open as long as `marker`.
        match check(unsafe { libc::flock(marker.as_raw_fd(), mode) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Makes a new file `bytes` long, reserving its room where the filesystem can.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let len =
        libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    if len == 0 {
        return Ok(());
    }
    loop {
        // SAFETY: the descriptor is open as long as `file`.
        let result = check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) });
        match result.as_ref().map_err(io::Error::raw_os_error) {
            Err(Some(libc::EINTR)) => {}
            Err(Some(libc::EOPNOTSUPP | libc::ENOSYS)) => return file.set_len(bytes),
            _ => return result,
        }
    }
}
