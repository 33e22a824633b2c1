//! Opening files by paths that nobody can bend: through no symbolic link and, where that is asked for, into
//! no other mount.
//!
//! Fault model: others plant links and mounts on the way to a file, before or while it is opened. Safe because
//! the kernel itself refuses them while it walks the path (`openat2`, Linux 5.6); where it cannot, nothing is
//! opened. Tests: below, `crates/targets/tests/cleanup.rs` and `crates/cli/tests/block_devices.rs`.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;

/// How far [`open_without_links`] may go from the directory where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Below that directory and on the same mount: bind mounts are refused too.
    SameMount,
    /// Anywhere, by `/` and `..` too.
    Anywhere,
}

/// Opens a path from an open directory on (the working directory when `None`) with flags and mode as of
/// open(2); the descriptor is closed on `exec`.
///
/// # Errors
/// `ELOOP` for a symbolic link anywhere in the path, `EXDEV` when it leaves its reach, `ENOSYS` where the
/// kernel cannot watch for these, and as open(2).
pub fn open_without_links(
    from: Option<&File>,
    path: impl AsRef<OsStr>,
    (flags, mode): (i32, u32),
    reach: Reach,
) -> io::Result<File> {
    let path = CString::new(path.as_ref().as_bytes())
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.mode = if flags & libc::O_CREAT != 0 { mode.into() } else { 0 };
    how.resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    if reach == Reach::SameMount {
        how.resolve |= libc::RESOLVE_NO_XDEV | libc::RESOLVE_BENEATH;
    }
    let start = from.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    loop {
        // SAFETY: a C string and a structure of the size told, which live through the call.
        let descriptor = unsafe {
            let size = size_of::<libc::open_how>();
            libc::syscall(libc::SYS_openat2, start, path.as_ptr(), &raw const how, size)
        };
        if descriptor >= 0 {
            // SAFETY: a descriptor that was just opened and has no other owner.
            return Ok(unsafe { File::from_raw_fd(descriptor as libc::c_int) });
        }
        let error = io::Error::last_os_error();
        // `EAGAIN`: something was renamed or mounted meanwhile, so that the kernel could not tell.
        if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let name = format!("raidlab-paths-{}", std::process::id());
        let base = std::env::temp_dir().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(base.join("real")).unwrap();
        std::fs::write(base.join("real/file"), "x").unwrap();
        for (link, to) in [("linked", "real"), ("real/alias", "file")] {
            std::os::unix::fs::symlink(to, base.join(link)).unwrap();
        }
        let from = File::open(&base).unwrap();
        let open = |path: &str, reach| {
            open_without_links(Some(&from), path, (libc::O_RDONLY, 0), reach)
                .map(drop)
                .map_err(|error| error.raw_os_error().unwrap())
        };
        for reach in [Reach::SameMount, Reach::Anywhere] {
            assert_eq!(open("real/file", reach), Ok(()));
            assert_eq!(open("linked/file", reach), Err(libc::ELOOP));
            assert_eq!(open("real/alias", reach), Err(libc::ELOOP));
            assert_eq!(open("absent", reach), Err(libc::ENOENT));
        }
        let outside = base.join("real/file").display().to_string();
        assert_eq!(open(&outside, Reach::SameMount), Err(libc::EXDEV));
        assert_eq!(open("../nothing", Reach::SameMount), Err(libc::EXDEV));
        assert_eq!(open(&outside, Reach::Anywhere), Ok(()));
        std::fs::remove_dir_all(base).unwrap();
    }
}
