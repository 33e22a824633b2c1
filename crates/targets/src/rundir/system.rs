//! Files relative to an open directory, never through a link.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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

    /// A directory in this one.
    pub(crate) fn directory(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        self.open_at(name, libc::O_RDONLY | libc::O_DIRECTORY).map(Self)
    }

    /// A new file in this directory; an error when something of that name is there.
    pub(crate) fn make_file(&self, name: &str) -> io::Result<File> {
        self.open_at(name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    /// A regular file in this directory.
    pub(crate) fn open_file(&self, name: &str, write: bool) -> io::Result<File> {
        // Without O_NONBLOCK a planted pipe would hold the call up.
        let access = if write { libc::O_RDWR } else { libc::O_RDONLY };
        let file = self.open_at(name, access | libc::O_NONBLOCK)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    pub(crate) fn make_directory(&self, name: &str) -> io::Result<()> {
        let name = plain(name)?;
        // SAFETY: as in `open_at`.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), name.as_ptr(), 0o700) })
    }

    /// Removes a regular file; anything else of that name is an error.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        let c_name = plain(name)?;
        let mut status = MaybeUninit::<libc::stat>::zeroed();
        let flags = libc::AT_SYMLINK_NOFOLLOW;
        // SAFETY: as in `open_at`; `status` has room for the result.
        let result = unsafe {
            libc::fstatat(self.0.as_raw_fd(), c_name.as_ptr(), status.as_mut_ptr(), flags)
        };
        check(result)?;
        // SAFETY: plain integers, zeroed before and filled in by the call.
        let mode = unsafe { status.assume_init() }.st_mode;
        if mode & libc::S_IFMT != libc::S_IFREG {
            return Err(not_regular());
        }
        // SAFETY: as in `open_at`.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), c_name.as_ptr(), 0) })
    }

    /// Removes a directory with everything in it; follows no link and does not leave its filesystem.
    pub(crate) fn remove_tree(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let within = self.directory(name.as_ref())?;
        if within.0.metadata()?.dev() != self.0.metadata()?.dev() {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        loop {
            let entries = within.some_entries()?;
            if entries.is_empty() {
                return self.remove_directory(name);
            }
            for (name, is_directory) in entries {
                if is_directory {
                    within.remove_tree(&name)?;
                } else {
                    let name = plain(&name)?;
                    // SAFETY: as in `open_at`.
                    check(unsafe { libc::unlinkat(within.0.as_raw_fd(), name.as_ptr(), 0) })?;
                }
            }
        }
    }

    /// Some of the names in this directory, and whether each is a directory; none when it is empty.
    fn some_entries(&self) -> io::Result<Vec<(OsString, bool)>> {
        /// A directory may hold millions.
        const MOST: usize = 4096;
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let entries = std::fs::read_dir(path)?.take(MOST);
        entries
            .map(|entry| entry.and_then(|e| Ok((e.file_name(), e.file_type()?.is_dir()))))
            .collect()
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_directory(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name)?;
        // SAFETY: as in `open_at`.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) })
    }

    /// Names in this directory besides `known`.
    pub(crate) fn others(&self, known: &str) -> io::Result<Vec<String>> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
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
        let identity = |file: &File| file.metadata().map(|m| (m.dev(), m.ino()));
        match (self.open_file(name, false).and_then(|now| identity(&now)), identity(file)) {
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
