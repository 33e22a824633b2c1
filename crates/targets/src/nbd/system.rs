//! System calls of the NBD server: listening, accepting, moving bytes, waiting for many descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// A Unix socket that listens, and that only its owner may connect to.
pub(super) fn listen_unix(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Before it has a name: there is no moment in which others could come.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Takes the next client of a socket; `None` when none waits.
pub(super) fn accept(socket: BorrowedFd<'_>, is_tcp: bool) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = match net::accept_with(socket, flags) {
        Ok(client) => client,
        // It went away while it waited, or none is there.
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if is_tcp {
        // What is sent is whole answers.
        sockopt::set_tcp_nodelay(&client, true)?;
        // A client whose machine has gone is noticed within some two minutes.
        sockopt::set_socket_keepalive(&client, true)?;
        sockopt::set_tcp_keepidle(&client, Duration::from_secs(60))?;
        sockopt::set_tcp_keepintvl(&client, Duration::from_secs(15))?;
        sockopt::set_tcp_keepcnt(&client, 4)?;
        sockopt::set_tcp_user_timeout(&client, 120_000)?;
    }
    Ok(Some(client))
}

/// Has the system allow so many descriptors, as far as that is ours to say.
pub(super) fn allow_descriptors(count: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    if now.current.is_some_and(|current| current < count) {
        let most = now.maximum.map_or(count, |most| most.min(count));
        // Where it is refused, clients are accepted as far as there are descriptors.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..now });
    }
}

/// How a call that moves bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Bytes(usize),
    /// Not now.
    Later,
    /// The other side is gone.
    Gone,
}

fn moved(result: Result<usize, Errno>) -> Moved {
    match result {
        Ok(bytes) => Moved::Bytes(bytes),
        Err(Errno::AGAIN | Errno::INTR) => Moved::Later,
        Err(_) => Moved::Gone,
    }
}

/// Receives into two places, one after the other; no bytes is the end.
pub(super) fn receive(socket: &OwnedFd, first: &mut [u8], rest: &mut [u8]) -> Moved {
    let mut both = [IoSliceMut::new(first), IoSliceMut::new(rest)];
    let parts = if both[0].is_empty() { &mut both[1..] } else { &mut both[..] };
    match moved(rustix::io::readv(socket, parts)) {
        Moved::Bytes(0) => Moved::Gone,
        other => other,
    }
}

/// Sends pieces, as many as are taken.
pub(super) fn send(socket: &OwnedFd, pieces: &[IoSlice<'_>]) -> Moved {
    let mut none = SendAncillaryBuffer::default();
    moved(net::sendmsg(socket, pieces, &mut none, SendFlags::NOSIGNAL))
}

/// Waits for many descriptors.
pub(super) struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Epoll {
    /// Events that are told at once.
    const MOST: usize = 256;

    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(Self::MOST) })
    }

    /// Has a descriptor watched under a name until it is closed.
    pub(super) fn add(
        &self,
        descriptor: impl AsFd,
        name: u64,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(name), flags)?)
    }

    pub(super) fn change(
        &self,
        descriptor: impl AsFd,
        name: u64,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, epoll::EventData::new_u64(name), flags)?)
    }

    /// Sleeps until there are events, or `limit` has passed; names with what can be done.
    pub(super) fn wait(
        &mut self,
        limit: Option<Duration>,
    ) -> io::Result<impl Iterator<Item = (u64, epoll::EventFlags)> + '_> {
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.iter().map(|event| (event.data.u64(), event.flags)))
    }
}

/// What a socket is bound to.
pub(super) enum Local {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

pub(super) fn bound_to(socket: &OwnedFd) -> Option<Local> {
    if sockopt::socket_type(socket).ok()? != SocketType::STREAM
        || !sockopt::socket_acceptconn(socket).ok()?
    {
        return None;
    }
    let address: SocketAddrAny = net::getsockname(socket).ok()?;
    if let Ok(address) = SocketAddr::try_from(address.clone()) {
        return Some(Local::Tcp(address));
    }
    let address = SocketAddrUnix::try_from(address).ok()?;
    let path = address.path()?.to_string_lossy().into_owned();
    Some(Local::Unix(path.into()))
}

/// The first descriptor that systemd hands over.
const FIRST: RawFd = 3;

/// The sockets that systemd has opened for this process, each of which is given out once.
pub(super) fn activated() -> Result<Vec<OwnedFd>, String> {
    static TAKEN: std::sync::Once = std::sync::Once::new();
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Err("systemd has handed over no sockets to this process (LISTEN_PID)".into());
    }
    let count = number("LISTEN_FDS").filter(|count| (1..=64).contains(count));
    let count = count.ok_or("systemd has handed over no sockets (LISTEN_FDS)")?;
    let mut given = Ok(Vec::new());
    TAKEN.call_once(|| given = (FIRST..).take(count as usize).map(take).collect());
    let given = given?;
    if given.is_empty() { Err("systemd's sockets are used already".into()) } else { Ok(given) }
}

/// Takes over a descriptor that is a socket which listens; another one may belong to this process.
fn take(descriptor: RawFd) -> Result<OwnedFd, String> {
    // SAFETY: it is only asked what it is, if it is open, and it stays as it is.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    if !sockopt::socket_acceptconn(borrowed).unwrap_or(false) {
        return Err(format!("descriptor {descriptor} is no socket that listens (LISTEN_FDS)"));
    }
    // SAFETY: systemd hands it over to this process, which takes each once, and opens no socket that
    // listens before.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // What this process starts must not have it.
    let _ = rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC);
    Ok(descriptor)
}
