//! Opening files by paths that nobody can bend: through no symbolic link and, where that is asked for, into
//! no other mount.
//!
//! Fault model: others plant links and mounts on the way to a file, before or while it is opened. Safe because
//! the kernel itself refuses them while it walks the path (`openat2`, Linux 5.6); where it cannot, nothing is
//! opened. Tests: below, `crates/targets/tests/cleanup.rs` and `crates/cli/tests/block_devices.rs`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

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
    let flags = OFlags::from_bits_retain(flags.cast_unsigned()) | OFlags::CLOEXEC;
    let mode = if flags.contains(OFlags::CREATE) { mode } else { 0 };
    let mut resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if reach == Reach::SameMount {
        resolve |= ResolveFlags::NO_XDEV | ResolveFlags::BENEATH;
    }
    let start = from.map_or(CWD, AsFd::as_fd);
    loop {
        match openat2(start, path.as_ref(), flags, Mode::from_raw_mode(mode), resolve) {
            Ok(opened) => return Ok(opened.into()),
            // `AGAIN`: something was renamed or mounted meanwhile, so that the kernel could not tell.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
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
