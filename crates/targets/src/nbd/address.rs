//! Where an NBD server listens: Unix sockets, TCP, and sockets that systemd has opened.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use raidlab_engine::{EngineError, EngineErrorKind};

use super::system;
use crate::socket_file::{Occupied, SocketFile};

const LISTEN: &str = "listen for NBD clients";
/// The longest path of a Unix socket: `sun_path` with the zero behind it.
const LONGEST_PATH: usize = 107;

/// An address as it is given on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdAddress {
    /// A Unix socket, which is made with access for its owner only, and removed at the end.
    Unix(PathBuf),
    /// A host and a port; 0 for any that is free.
    Tcp(String, u16),
    /// The sockets that systemd hands over (`LISTEN_FDS`).
    Systemd,
}

impl FromStr for NbdAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "systemd" {
            return Ok(Self::Systemd);
        }
        match text.split_once(':') {
            Some(("unix", "")) => Err("unix: a path belongs behind it".into()),
            Some(("unix", path)) if path.len() > LONGEST_PATH => Err(format!(
                "the path of a Unix socket has {LONGEST_PATH} bytes at most, and this one {}",
                path.len()
            )),
            Some(("unix", path)) => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => tcp(address),
            _ => Err("not unix:PATH, tcp:HOST:PORT or systemd".into()),
        }
    }
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or `:PORT`, which is this machine alone.
fn tcp(address: &str) -> Result<NbdAddress, String> {
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or("no port behind `]`")?)),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port.map_or(Ok(NBD_PORT), |port| {
        port.parse().map_err(|_| format!("{port}: no port (0 to 65535); [ADDRESS]:PORT for IPv6"))
    })?;
    Ok(NbdAddress::Tcp(if host.is_empty() { "localhost" } else { host }.to_owned(), port))
}

/// The port that is NBD's.
const NBD_PORT: u16 = 10_809;

impl fmt::Display for NbdAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
            Self::Systemd => f.write_str("systemd"),
        }
    }
}

/// What a socket is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bound {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdPlace(Bound);

impl NbdPlace {
    /// Where clients find an export of that name, as an NBD URI, with TLS or without.
    pub fn uri(&self, export: &str, tls: bool) -> String {
        let scheme = if tls { "nbds" } else { "nbd" };
        match &self.0 {
            Bound::Unix(path) => format!("{scheme}+unix:///{export}?socket={}", escaped(path)),
            Bound::Tcp(address) => format!("{scheme}://{address}/{export}"),
        }
    }
}

/// A path in a URI.
fn escaped(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    let escape = |byte: &u8| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().map(escape).collect()
}

/// A socket that listens.
#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    bound: Bound,
    /// The file that was made for it, which goes with it.
    _file: Option<SocketFile>,
}

/// Sockets that listen; clients that come before they are served wait. Dropped, they are closed and
/// their files removed.
#[derive(Debug)]
pub struct NbdSockets(Vec<Socket>);

impl NbdSockets {
    /// Binds all addresses, before anything is done with an array.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when somebody listens there already, [`EngineErrorKind::Refused`] for
    /// TCP that others could reach, unless `exposed`; [`EngineErrorKind::InvalidRequest`] for a name
    /// that is no address, and when systemd has handed over nothing.
    pub fn bind(addresses: &[NbdAddress], exposed: bool) -> Result<Self, EngineError> {
        let mut sockets = Vec::new();
        for address in addresses {
            match address {
                NbdAddress::Unix(path) => sockets.push(unix(path)?),
                NbdAddress::Tcp(host, port) => bind_tcp(host, *port, exposed, &mut sockets)?,
                NbdAddress::Systemd => handed_over(exposed, &mut sockets)?,
            }
        }
        Ok(Self(sockets))
    }

    /// Where they listen.
    pub fn places(&self) -> Vec<NbdPlace> {
        self.0.iter().map(|socket| NbdPlace(socket.bound.clone())).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn descriptor(&self, index: usize) -> BorrowedFd<'_> {
        self.0[index].descriptor.as_fd()
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.0.iter().map(|socket| socket.descriptor.as_raw_fd())
    }

    pub(super) fn is_tcp(&self, index: usize) -> bool {
        matches!(self.0[index].bound, Bound::Tcp(_))
    }
}

fn unix(path: &Path) -> Result<Socket, EngineError> {
    let failed = |error: io::Error| EngineError::io(LISTEN, path, error);
    SocketFile::make_room(path).map_err(|occupied| match occupied {
        Occupied::NoSocket => invalid(occupied.to_string()).at_path(path),
        Occupied::InUse | Occupied::Unknown(_) => busy(&occupied).at_path(path),
        Occupied::Kept(error) => failed(error),
    })?;
    let descriptor = system::listen_unix(path).map_err(failed)?;
    let path = std::path::absolute(path).map_err(failed)?;
    let file = Some(SocketFile::made(&path));
    Ok(Socket { descriptor, bound: Bound::Unix(path), _file: file })
}

fn busy(occupied: &Occupied) -> EngineError {
    EngineError::new(EngineErrorKind::Busy, LISTEN, occupied.to_string())
}

fn invalid(reason: String) -> EngineError {
    EngineError::new(EngineErrorKind::InvalidRequest, LISTEN, reason)
}

fn bind_tcp(
    host: &str,
    port: u16,
    exposed: bool,
    sockets: &mut Vec<Socket>,
) -> Result<(), EngineError> {
    let name = format!("{host}:{port}");
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => busy(&Occupied::InUse).at_path(Path::new(&name)),
        _ => EngineError::io(LISTEN, Path::new(&name), error),
    };
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(failed)?.collect();
    for address in &found {
        check_reach(*address, exposed)?;
    }
    // Of a name with addresses of both kinds one may not exist on this machine.
    let mut missing = None;
    let before = sockets.len();
    let mut port = port;
    for mut address in found {
        address.set_port(port);
        match TcpListener::bind(address) {
            Ok(listener) => {
                let bound = listener.local_addr().map_err(failed)?;
                // Any port: the same for all addresses.
                port = bound.port();
                listener.set_nonblocking(true).map_err(failed)?;
                let bound = Bound::Tcp(bound);
                sockets.push(Socket { descriptor: listener.into(), bound, _file: None });
            }
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => missing = Some(error),
            Err(error) => return Err(failed(error)),
        }
    }
    match missing {
        Some(error) if sockets.len() == before => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Without encryption and a check of who the client is, only this machine may come.
fn check_reach(address: SocketAddr, exposed: bool) -> Result<(), EngineError> {
    if address.ip().is_loopback() || exposed {
        return Ok(());
    }
    let reason = "others could reach it, and read and write everything unseen: NBD without TLS has neither encryption \
                  nor passwords; listen on localhost, or give TLS certificates";
    let name = address.to_string();
    Err(EngineError::new(EngineErrorKind::Refused, LISTEN, reason).at_path(Path::new(&name)))
}

fn handed_over(exposed: bool, sockets: &mut Vec<Socket>) -> Result<(), EngineError> {
    let given = system::activated().map_err(invalid)?;
    for descriptor in given {
        let bound = match system::bound_to(&descriptor) {
            Some(system::Local::Unix(path)) => Bound::Unix(path),
            Some(system::Local::Tcp(address)) => {
                check_reach(address, exposed)?;
                Bound::Tcp(address)
            }
            None => return Err(invalid("systemd has handed over what is no stream socket".into())),
        };
        rustix::io::ioctl_fionbio(&descriptor, true)
            .map_err(|error| EngineError::io(LISTEN, Path::new("systemd"), error.into()))?;
        sockets.push(Socket { descriptor, bound, _file: None });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<NbdAddress, String> {
        text.parse()
    }

    #[test]
    fn addresses_are_what_they_look_like() {
        assert_eq!(parsed("unix:/run/x"), Ok(NbdAddress::Unix("/run/x".into())));
        for (text, host, port) in [
            ("tcp:localhost:1", "localhost", 1),
            ("tcp::7", "localhost", 7),
            ("tcp:[::1]:9", "::1", 9),
            ("tcp:[::1]", "::1", 10_809),
            ("tcp:10.0.0.1", "10.0.0.1", 10_809),
        ] {
            assert_eq!(parsed(text), Ok(NbdAddress::Tcp(host.into(), port)), "{text}");
        }
        assert_eq!(parsed("systemd"), Ok(NbdAddress::Systemd));
        for wrong in ["", "unix:", "/run/x", "tcp:a:b", "tcp:a:65536", "tcp:::1", "tcp:[::1]9"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        let longest = format!("unix:{}", "x".repeat(LONGEST_PATH));
        assert!(parsed(&longest).is_ok());
        assert!(parsed(&format!("{longest}x")).unwrap_err().contains("108"));
    }

    #[test]
    fn a_uri_names_any_path() {
        let place = NbdPlace(Bound::Unix("/a b/c&d.sock".into()));
        assert_eq!(place.uri("x", false), "nbd+unix:///x?socket=/a%20b/c%26d.sock");
    }

    #[test]
    fn tcp_that_others_reach_is_refused_unless_asked_for() {
        let all = [NbdAddress::Tcp("0.0.0.0".into(), 0)];
        let refused = NbdSockets::bind(&all, false).unwrap_err();
        assert_eq!(refused.kind(), EngineErrorKind::Refused);
        assert_eq!(NbdSockets::bind(&all, true).unwrap().len(), 1);
        let here = NbdSockets::bind(&[NbdAddress::Tcp("127.0.0.1".into(), 0)], false).unwrap();
        let Bound::Tcp(address) = here.0[0].bound else { panic!("TCP") };
        let again = [NbdAddress::Tcp("127.0.0.1".into(), address.port())];
        let busy = NbdSockets::bind(&again, false).unwrap_err();
        assert_eq!(busy.kind(), EngineErrorKind::Busy, "{busy}");
    }
}
