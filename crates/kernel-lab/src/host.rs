//! The bus of a real guest: its sockets, its memory, and the loop that serves it.

use std::convert::Infallible;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;

use crate::bus::{Bus, Record};
use crate::clock::{Message, PAGE_BYTES};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::lab::Lab;
use crate::mapping::Mapping;
use crate::memory::{Memory, Promise};
use crate::tape::{Said, Tape};
use crate::vhost::{CALL_ANSWER_BYTES, HEAD_BYTES, Head, Region, Request};

/// The socket of a drive, until the guest connects and then.
enum Socket {
    Listens(UnixListener),
    Connected(Connection),
    /// The guest has closed it: it is ending.
    Closed,
}

/// The guest's side of a drive.
struct Port {
    socket: Socket,
    back: Option<Connection>,
    memory: Vec<Memory>,
}

/// The page of the clock and the file behind it.
struct Page {
    mapping: Mapping,
    file: OwnedFd,
    /// The guest wants a file for a log, and writes none.
    log: OwnedFd,
}

/// The sockets and the memory of one guest.
pub(crate) struct Host<'a> {
    clock: Connection,
    page: Option<Page>,
    ports: Vec<Port>,
    promise: &'a Promise,
    kept: Kept<'a>,
}

/// What is kept of a run: who hears of each request, and the tape if there is one.
pub(crate) struct Kept<'a> {
    pub(crate) trace: &'a mut dyn FnMut(&Record),
    pub(crate) tape: Option<&'a mut Tape>,
}

/// Where a guest connects to, before it is started.
pub(crate) struct Listeners {
    pub(crate) clock: UnixListener,
    path: PathBuf,
    drives: Vec<UnixListener>,
}

impl Listeners {
    /// The sockets `clock` and `drive0`, `drive1`, ... in a directory.
    pub(crate) fn bind(directory: &Path, drives: usize) -> Result<Self, Failure> {
        let bind = |name: &str| {
            let path = directory.join(name);
            let bound = UnixListener::bind(&path);
            bound.map_err(|error| Failure::system(format!("{}", path.display()), error))
        };
        let clock = bind("clock")?;
        let drives: Result<_, _> =
            (0..drives).map(|number| bind(&format!("drive{number}"))).collect();
        Ok(Self { clock, path: directory.join("clock"), drives: drives? })
    }

    /// Takes the guest's connection to the clock, which is there, and removes the socket: a kernel that starts again
    /// shall not find it.
    pub(crate) fn accept<'a>(
        self,
        page: bool,
        promise: &'a Promise,
        kept: Kept<'a>,
    ) -> Result<Host<'a>, Failure> {
        let system = |error| Failure::system("the guest's connection to the clock", error);
        let (clock, _) = self.clock.accept().map_err(system)?;
        fs::remove_file(&self.path).map_err(system)?;
        let port =
            |listener| Port { socket: Socket::Listens(listener), back: None, memory: Vec::new() };
        Ok(Host {
            clock: Connection::new(clock.into()),
            page: page.then(Page::new).transpose()?,
            ports: self.drives.into_iter().map(port).collect(),
            promise,
            kept,
        })
    }
}

impl Page {
    fn new() -> Result<Self, Failure> {
        let make = |name: &str, length| {
            let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
            ftruncate(&file, length).map(|()| file)
        };
        let system = |error| Failure::system("the page of the clock", error);
        let file = make("raidlab-clock", PAGE_BYTES as u64).map_err(system)?;
        let log = make("raidlab-clock-log", 0).map_err(system)?;
        Ok(Self { mapping: Mapping::new(&file, PAGE_BYTES, 0)?, file, log })
    }
}

/// After so long without a word it is looked whether the guest is over.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// Until when a guest is served.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    /// Becomes readable when it is to end early.
    pub(crate) stop: BorrowedFd<'a>,
    /// For how long it may say nothing.
    pub(crate) silence: Duration,
    /// Whether it has come to its end without closing the clock.
    pub(crate) is_over: &'a dyn Fn() -> bool,
    /// Becomes readable when it may have; without, one that says nothing is looked at.
    pub(crate) events: Option<&'a OwnedFd>,
}

/// Something the guest has to say.
enum Ready {
    Clock,
    Drive(usize),
    Back(usize),
    Stop,
    Event,
}

impl Host<'_> {
    /// Serves the guest until it has closed the clock or is over, or something fails.
    pub(crate) fn serve(&mut self, lab: &mut Lab, until: Until<'_>) -> Result<(), Failure> {
        match self.serve_for_ever(lab, until) {
            // A guest that powers off does not wait for answers.
            Err(Failure::Closed) => lab.look_at_the_clock(self),
            Err(failure) => Err(failure),
        }
    }

    fn serve_for_ever(&mut self, lab: &mut Lab, until: Until<'_>) -> Result<Infallible, Failure> {
        loop {
            let Some(ready) = self.wait(until)? else {
                lab.look_at_the_clock(self)?;
                let (now, seconds) = (lab.last_known_time(), until.silence.as_secs());
                return Err(Failure::Silence { now, seconds });
            };
            match ready {
                Ready::Stop => return Err(Failure::Interrupted),
                Ready::Event => {
                    // Taken before it is looked, so that what comes later is an event again.
                    let taken = until.events.map(|events| rustix::io::read(events, &mut [0; 4096]));
                    taken
                        .transpose()
                        .map_err(|error| Failure::system("the guest's files", error))?;
                    if (until.is_over)() {
                        return Err(Failure::Closed);
                    }
                }
                Ready::Drive(number) => self.drive_message(lab, number)?,
                Ready::Back(number) => {
                    let mut raw = [0; CALL_ANSWER_BYTES];
                    match &self.ports[number].back {
                        Some(back) => back.read(&mut raw)?,
                        None => continue,
                    }
                    self.says(lab, &Said::Answer(number, raw))?;
                }
                Ready::Clock => {
                    let mut raw = [0; Message::BYTES];
                    self.clock.read(&mut raw)?;
                    self.says(lab, &Said::Clock(raw))?;
                }
            }
        }
    }

    /// Waits for the guest. A drive's message goes before the clock's: the guest is blocked on its answer.
    fn wait(&self, until: Until<'_>) -> Result<Option<Ready>, Failure> {
        let mut files = Vec::with_capacity(2 + 2 * self.ports.len());
        let mut what = Vec::with_capacity(files.capacity());
        for (number, port) in self.ports.iter().enumerate() {
            match &port.socket {
                Socket::Listens(listener) => files.push(PollFd::new(listener, PollFlags::IN)),
                Socket::Connected(socket) => files.push(PollFd::new(socket, PollFlags::IN)),
                Socket::Closed => continue,
            }
            what.push(Ready::Drive(number));
            if let Some(back) = &port.back {
                files.push(PollFd::new(back, PollFlags::IN));
                what.push(Ready::Back(number));
            }
        }
        files.push(PollFd::new(&self.clock, PollFlags::IN));
        what.push(Ready::Clock);
        files.push(PollFd::from_borrowed_fd(until.stop, PollFlags::IN));
        what.push(Ready::Stop);
        if let Some(events) = until.events {
            files.push(PollFd::new(events, PollFlags::IN));
            what.push(Ready::Event);
        }
        let mut left = until.silence.as_secs();
        loop {
            let look = left.min(LOOK.as_secs());
            let timeout = Timespec { tv_sec: look as i64, tv_nsec: 0 };
            match poll(&mut files, Some(&timeout)) {
                Ok(0) if (until.is_over)() => return Err(Failure::Closed),
                Ok(0) if left > look => left -= look,
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::system("waiting for the guest", error)),
            }
        }
        let first = files.iter().position(|file| !file.revents().is_empty());
        Ok(first.map(|first| what.swap_remove(first)))
    }

    fn drive_message(&mut self, lab: &mut Lab, number: usize) -> Result<(), Failure> {
        let port = &mut self.ports[number];
        let socket = match &port.socket {
            Socket::Listens(listener) => {
                let accepted = listener.accept();
                let (socket, _) = accepted.map_err(|error| Failure::system("a drive", error))?;
                port.socket = Socket::Connected(Connection::new(socket.into()));
                return Ok(());
            }
            Socket::Connected(socket) => socket,
            Socket::Closed => return Ok(()),
        };
        let (mut raw, mut descriptors) = ([0; HEAD_BYTES], Vec::new());
        match socket.read_with_descriptors(&mut raw, &mut descriptors) {
            Err(Failure::Closed) => {
                (port.socket, port.back) = (Socket::Closed, None);
                return Ok(());
            }
            read => read?,
        }
        let head = Head::decode(raw)?;
        let mut payload = vec![0; head.payload_bytes()];
        socket.read(&mut payload)?;
        let request = Request::decode(head, &payload)?;
        match &request {
            Request::SetMemory(regions) => {
                if let Some(first) = descriptors.first() {
                    self.promise.lies_in(first)?;
                }
                port.memory = map(regions, std::mem::take(&mut descriptors))?;
            }
            Request::SetWayBack => {
                let missing = || Failure::Protocol("a way back without descriptor".to_owned());
                port.back = Some(Connection::new(descriptors.pop().ok_or_else(missing)?));
            }
            _ => {}
        }
        self.says(lab, &Said::Drive(number, raw, payload))
    }

    /// Hands on what the guest says, and keeps it and what follows on the tape if there is one.
    fn says(&mut self, lab: &mut Lab, said: &Said) -> Result<(), Failure> {
        let Some(tape) = self.kept.tape.take() else { return said.to(lab, self) };
        tape.says(said);
        let ended = said.to(lab, &mut tape.on(self));
        self.kept.tape = Some(tape);
        ended
    }

    /// The part of the guest's memory, as a drive was told of it, in which so many bytes lie.
    fn memory(
        &mut self,
        drive: usize,
        address: u64,
        length: usize,
    ) -> Result<&mut Memory, Failure> {
        let mut memory = self.ports[drive].memory.iter_mut();
        let found = memory.find(|memory| memory.has(address, length));
        found.ok_or(Failure::Address { address, length })
    }

    fn page(&self) -> Result<&Page, Failure> {
        let missing = || Failure::Protocol("the page of the clock was not offered".to_owned());
        self.page.as_ref().ok_or_else(missing)
    }
}

fn map(regions: &[Region], files: Vec<OwnedFd>) -> Result<Vec<Memory>, Failure> {
    if regions.len() != files.len() {
        let text = format!("{} regions of memory with {} files", regions.len(), files.len());
        return Err(Failure::Protocol(text));
    }
    regions.iter().zip(files).map(|(region, file)| Memory::new(*region, file)).collect()
}

impl Bus for Host<'_> {
    fn send_clock(&mut self, message: Message) -> Result<(), Failure> {
        self.clock.write(&message.encode())
    }

    fn send_clock_with_page(&mut self, message: Message) -> Result<(), Failure> {
        let page = self.page()?;
        let files = [page.file.as_fd(), page.log.as_fd()];
        self.clock.write_with_descriptors(&message.encode(), &files)
    }

    fn send_drive(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        match &self.ports[drive].socket {
            Socket::Connected(socket) => socket.write(message),
            Socket::Listens(_) | Socket::Closed => Err(Failure::Closed),
        }
    }

    fn send_back(&mut self, drive: usize, message: &[u8]) -> Result<(), Failure> {
        match &self.ports[drive].back {
            Some(back) => back.write(message),
            None => Err(Failure::Protocol(format!("drive {drive} was given no way back"))),
        }
    }

    fn load_page(&mut self, at: usize, into: &mut [u8]) -> Result<(), Failure> {
        let length = into.len();
        let loaded = self.page()?.mapping.load(at as u64, into);
        if loaded { Ok(()) } else { Err(Failure::Address { address: at as u64, length }) }
    }

    fn store_page(&mut self, at: usize, from: &[u8]) -> Result<(), Failure> {
        let stored = self.page()?.mapping.store(at as u64, from);
        let length = from.len();
        if stored { Ok(()) } else { Err(Failure::Address { address: at as u64, length }) }
    }

    fn load(&mut self, drive: usize, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        self.memory(drive, address, into.len())?.load(address, into)
    }

    fn store(&mut self, drive: usize, address: u64, from: &[u8]) -> Result<(), Failure> {
        self.memory(drive, address, from.len())?.store(address, from)
    }

    fn load_contents(
        &mut self,
        drive: usize,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        self.memory(drive, address, into.len())?.load_contents(address, into)
    }

    fn done(&mut self, record: &Record) {
        (self.kept.trace)(record);
    }
}
