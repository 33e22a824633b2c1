//! The files of Unix sockets, and which of them may be removed: at their end, and where a new one is to listen.
//!
//! Fault model: a process that is killed leaves its file, another program has one of its own there, and whoever may
//! write to the directory puts anything there at any time.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Why no socket can be made in a place.
#[derive(Debug)]
pub enum Occupied {
    /// Something is there that is no socket.
    NoSocket,
    /// Somebody listens there.
    InUse,
    /// A socket that cannot be connected to, and that somebody may use.
    Unknown(io::Error),
    /// One that nobody uses, and that cannot be removed.
    Kept(io::Error),
}

impl fmt::Display for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSocket => f.write_str("it exists, and is no socket"),
            Self::InUse => f.write_str("the address is in use: another server listens there"),
            Self::Unknown(error) => {
                write!(f, "a socket is there already, perhaps another program's ({error})")
            }
            Self::Kept(error) => write!(f, "the socket that is there cannot be removed: {error}"),
        }
    }
}

impl std::error::Error for Occupied {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoSocket | Self::InUse => None,
            Self::Unknown(error) | Self::Kept(error) => Some(error),
        }
    }
}

/// The file of a socket that was made. It goes with this, but for what somebody else has put there since.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// By device and inode.
    made: Option<(u64, u64)>,
}

impl SocketFile {
    /// Makes room for a socket: removes one that a process has left which was killed, and nothing else.
    ///
    /// # Errors
    /// [`Occupied`].
    pub fn make_room(path: &Path) -> Result<(), Occupied> {
        let Ok(there) = path.symlink_metadata() else { return Ok(()) };
        if !there.file_type().is_socket() {
            return Err(Occupied::NoSocket);
        }
        match connect(path) {
            // Also one that has as many connections to accept as it takes: to be let in would have to be waited for.
            Ok(()) | Err(Errno::AGAIN) => Err(Occupied::InUse),
            // Left by a process that was killed.
            Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(Occupied::Kept),
            // Of another kind, or not ours to look at: somebody may use it.
            Err(error) => Err(Occupied::Unknown(error.into())),
        }
    }

    /// That of a socket which was just made there.
    pub fn made(path: &Path) -> Self {
        Self { path: path.to_owned(), made: identity(path) }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.made.is_some() && identity(&self.path) == self.made {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Connects, without waiting, and hangs up.
fn connect(path: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    net::connect(&socket, &address)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|there| (there.dev(), there.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;

    /// A directory that goes with the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("raidlab-socket-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_a_socket_that_nobody_listens_on_is_removed() {
        let directory = Directory::new("room");
        let path = directory.0.join("socket");
        assert!(SocketFile::make_room(&path).is_ok(), "nothing is there");
        fs::write(&path, "data").unwrap();
        assert!(matches!(SocketFile::make_room(&path), Err(Occupied::NoSocket)));
        assert_eq!(fs::read(&path).unwrap(), b"data");
        fs::remove_file(&path).unwrap();
        let listening = UnixListener::bind(&path).unwrap();
        assert!(matches!(SocketFile::make_room(&path), Err(Occupied::InUse)));
        // A link is no socket, whatever it leads to.
        let link = directory.0.join("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(SocketFile::make_room(&link), Err(Occupied::NoSocket)));
        drop(listening);
        assert!(path.symlink_metadata().is_ok(), "it is left");
        assert!(SocketFile::make_room(&path).is_ok() && path.symlink_metadata().is_err());
        let _theirs = UnixDatagram::bind(&path).unwrap();
        assert!(matches!(SocketFile::make_room(&path), Err(Occupied::Unknown(_))));
        assert!(path.symlink_metadata().is_ok());
    }

    /// A server that accepts nobody is there all the same, and is not waited for.
    #[test]
    fn a_socket_that_takes_no_more_connections_is_in_use() {
        let directory = Directory::new("full");
        let path = directory.0.join("socket");
        let flags = SocketFlags::CLOEXEC;
        let made = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        net::bind(&made, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        net::listen(&made, 0).unwrap();
        let (told, answer) = std::sync::mpsc::channel();
        let place = path.clone();
        // Whoever waits goes with the process.
        std::thread::spawn(move || {
            for _ in 0..3 {
                let _waiting = std::mem::ManuallyDrop::new(connect(&place));
                told.send(SocketFile::make_room(&place)).unwrap();
            }
        });
        for _ in 0..3 {
            let occupied = answer.recv_timeout(std::time::Duration::from_secs(60));
            assert!(matches!(occupied, Ok(Err(Occupied::InUse))), "{occupied:?}");
        }
        drop(made);
        assert!(SocketFile::make_room(&path).is_ok() && path.symlink_metadata().is_err());
    }

    #[test]
    fn a_file_goes_with_its_socket_unless_it_is_somebody_elses_by_then() {
        let directory = Directory::new("made");
        let path = directory.0.join("socket");
        let listening = UnixListener::bind(&path).unwrap();
        drop(SocketFile::made(&path));
        assert!(path.symlink_metadata().is_err());
        let again = UnixListener::bind(&path).unwrap();
        let file = SocketFile::made(&path);
        // Another one stands beside it, so that it has another inode.
        let other = UnixListener::bind(directory.0.join("other")).unwrap();
        fs::rename(directory.0.join("other"), &path).unwrap();
        drop(file);
        assert!(path.symlink_metadata().is_ok(), "it is another one's");
        drop((listening, again, other));
    }
}
