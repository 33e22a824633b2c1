//! An NBD client for tests: many requests at once, over any stream.
//!
//! Used from the tests of a crate by `#[path = "../../../tests/support/nbd.rs"] mod nbd_client;`.
#![allow(dead_code, reason = "no test uses every helper")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use raidlab_nbd::client::{Chosen, Handshake, Reply, Session, Step, Wanted};
use raidlab_nbd::{Command, ErrorCode, Extent, Framing, Request};

/// What a connection is.
pub(crate) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// What became of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) data: Vec<u8>,
    /// By the name of the context.
    pub(crate) extents: BTreeMap<String, Vec<Extent>>,
    pub(crate) error: Option<ErrorCode>,
}

impl Answer {
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.error, None);
        self
    }
}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    session: Session,
    pub(crate) chosen: Chosen,
    input: Vec<u8>,
    out: Vec<u8>,
    cookie: u64,
    /// Of requests that are not answered: where they begin, and what has come of them.
    waiting: BTreeMap<u64, (u64, Answer)>,
}

pub(crate) const READ: Command = Command::Read { whole: false };
pub(crate) const ZERO: Command = Command::WriteZeroes { no_hole: false, fast: false };
pub(crate) const FAST_ZERO: Command = Command::WriteZeroes { no_hole: false, fast: true };
pub(crate) const STATUS: Command = Command::BlockStatus { one: false };

pub(crate) const CONTEXTS: [&str; 2] = ["base:allocation", "raidlab:redundancy"];

impl Client {
    /// A client of the export `name` behind a Unix socket, with structured replies and all contexts.
    pub(crate) fn unix(path: &Path, name: &str) -> Self {
        Self::over(UnixStream::connect(path).expect("connects"), name, Framing::Structured).unwrap()
    }

    pub(crate) fn tcp(address: &str, name: &str) -> Self {
        let stream = TcpStream::connect(address).expect("connects");
        stream.set_nodelay(true).expect("is TCP");
        Self::over(stream, name, Framing::Structured).unwrap()
    }

    pub(crate) fn over(
        mut stream: impl Stream + 'static,
        name: &str,
        framing: Framing,
    ) -> Result<Self, String> {
        let contexts = match framing {
            Framing::Simple => Vec::new(),
            _ => CONTEXTS.map(str::to_owned).to_vec(),
        };
        let wanted = Wanted { export: Some(name.to_owned()), framing, contexts, tls: false };
        let mut handshake = Handshake::new(wanted);
        let (mut input, mut out) = (Vec::new(), Vec::new());
        let chosen = loop {
            let taken = handshake.receive(&input, &mut out);
            stream.write_all(&out).map_err(|error| error.to_string())?;
            out.clear();
            let taken = taken.map_err(|error| error.to_string())?;
            input.drain(..taken.bytes);
            match taken.what {
                Some(Step::Done(chosen)) => break *chosen,
                Some(other) => return Err(format!("{other:?}")),
                None if taken.bytes == 0 => {
                    fill(&mut stream, &mut input).map_err(|error| error.to_string())?;
                }
                None => {}
            }
        };
        let session = Session::new(&chosen);
        let stream: Box<dyn Stream> = Box::new(stream);
        let waiting = BTreeMap::new();
        Ok(Self { stream, session, chosen, input, out, cookie: 0, waiting })
    }

    /// Has a request sent with those that are sent next; its number.
    pub(crate) fn ask(
        &mut self,
        command: Command,
        at: u64,
        len: u64,
        fua: bool,
        data: &[u8],
    ) -> u64 {
        self.cookie += 1;
        let cookie = self.cookie;
        self.session.request(Request { cookie, command, at, len, fua }, &mut self.out);
        self.out.extend_from_slice(data);
        let data =
            vec![0xee; if matches!(command, Command::Read { .. }) { len as usize } else { 0 }];
        self.waiting.insert(cookie, (at, Answer { data, ..Answer::default() }));
        cookie
    }

    pub(crate) fn send(&mut self) -> std::io::Result<()> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent
    }

    pub(crate) fn under_way(&self) -> usize {
        self.waiting.len()
    }

    /// Sends what is to be sent, and waits for the next answer.
    pub(crate) fn answer(&mut self) -> std::io::Result<(u64, Answer)> {
        self.send()?;
        loop {
            let taken = self.session.receive(&self.input).expect("keeps to the protocol");
            let bytes: Vec<u8> = self.input.drain(..taken.bytes).collect();
            match taken.what {
                Some(Reply::Data { cookie, at }) => {
                    let (begin, answer) = self.waiting.get_mut(&cookie).expect("was asked for");
                    answer.data[(at - *begin) as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                Some(Reply::Hole { cookie, at, len }) => {
                    let (begin, answer) = self.waiting.get_mut(&cookie).expect("was asked for");
                    answer.data[(at - *begin) as usize..][..len as usize].fill(0);
                }
                Some(Reply::Extents { cookie, context, extents }) => {
                    let of = self.chosen.contexts.iter().find(|known| known.id == context);
                    let (_, answer) = self.waiting.get_mut(&cookie).expect("was asked for");
                    answer.extents.insert(of.expect("was chosen").name.clone(), extents);
                }
                Some(Reply::Done { cookie, error }) => {
                    let (_, mut answer) = self.waiting.remove(&cookie).expect("was asked for");
                    answer.error = error.map(|(code, _)| code);
                    return Ok((cookie, answer));
                }
                None if taken.bytes == 0 => fill(&mut self.stream, &mut self.input)?,
                None => {}
            }
        }
    }

    /// One request, and its answer; nothing else may be under way.
    pub(crate) fn once(
        &mut self,
        command: Command,
        at: u64,
        len: u64,
        fua: bool,
        data: &[u8],
    ) -> Answer {
        let cookie = self.ask(command, at, len, fua, data);
        let (answered, answer) = self.answer().expect("answers");
        assert_eq!(answered, cookie);
        answer
    }

    pub(crate) fn read(&mut self, at: u64, len: u64) -> Vec<u8> {
        self.once(READ, at, len, false, &[]).good().data
    }

    pub(crate) fn write(&mut self, at: u64, data: &[u8]) {
        self.once(Command::Write, at, data.len() as u64, false, data).good();
    }

    pub(crate) fn flush(&mut self) {
        self.once(Command::Flush, 0, 0, false, &[]).good();
    }

    /// States of a range in a context: places where each begins, with its flags.
    pub(crate) fn states(&mut self, context: &str, at: u64, len: u64) -> Vec<(u64, u64)> {
        let mut states: Vec<(u64, u64)> = Vec::new();
        let mut from = at;
        while from < at + len {
            let answer = self.once(STATUS, from, at + len - from, false, &[]).good();
            for extent in &answer.extents[context] {
                if states.last().is_none_or(|(_, flags)| *flags != extent.flags) {
                    states.push((from, extent.flags));
                }
                from += extent.len;
            }
        }
        states
    }
}

fn fill(stream: &mut (impl Read + ?Sized), input: &mut Vec<u8>) -> std::io::Result<()> {
    let mut more = vec![0; 1 << 18];
    loop {
        match stream.read(&mut more) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                input.extend_from_slice(&more[..got]);
                return Ok(());
            }
            // A signal to the process ends a read that has a time limit.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
