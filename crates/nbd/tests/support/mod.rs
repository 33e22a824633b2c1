//! A server of memory on a Unix socket, a thread for each connection, and a client that waits for each answer.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use raidlab_nbd::client::{self, Chosen, Reply, Wanted};
use raidlab_nbd::server::{self, Incoming, Tls};
use raidlab_nbd::{Command, ErrorCode, Export, Extent, Framing, Request, Violation};

/// Exports and what they hold.
pub(crate) struct Memory {
    pub(crate) exports: Vec<Export>,
    pub(crate) bytes: Vec<Mutex<Vec<u8>>>,
    /// What was asked for, in order, over all connections.
    pub(crate) asked: Mutex<Vec<Request>>,
}

/// An export that can do all there is.
pub(crate) fn able(name: &str, size: u64) -> Export {
    let mut export = Export::new(name, size);
    export.description = format!("{size} bytes of memory");
    let abilities = &mut export.abilities;
    abilities.flush = true;
    abilities.fua = true;
    abilities.trim = true;
    abilities.write_zeroes = true;
    abilities.fast_zero = true;
    abilities.cache = true;
    abilities.multi_conn = true;
    export.contexts = vec!["base:allocation".into(), "x-test:odd".into()];
    export
}

impl Memory {
    pub(crate) fn new(exports: Vec<Export>) -> Arc<Self> {
        let bytes =
            exports.iter().map(|export| Mutex::new(vec![0; export.size as usize])).collect();
        Arc::new(Self { exports, bytes, asked: Mutex::default() })
    }

    /// Serves until the process ends.
    pub(crate) fn listen(self: &Arc<Self>, directory: &Path) -> PathBuf {
        let path = directory.join("socket");
        let listener = UnixListener::bind(&path).expect("binds");
        let memory = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let memory = Arc::clone(&memory);
                // Clients close connections as they like.
                thread::spawn(move || memory.serve(stream).ok());
            }
        });
        path
    }

    /// One connection.
    pub(crate) fn serve(&self, mut stream: UnixStream) -> std::io::Result<()> {
        let (mut input, mut out) = (Vec::new(), Vec::new());
        let mut handshake = server::Handshake::new(Tls::None, &mut out);
        let agreed = loop {
            let taken = handshake.receive(&input, &self.exports[..], &mut out).map_err(broken)?;
            input.drain(..taken.bytes);
            stream.write_all(&out)?;
            out.clear();
            match taken.what {
                Some(server::Step::Done(agreed)) => break agreed,
                Some(_) => return Ok(()),
                None if taken.bytes == 0 => fill(&mut stream, &mut input)?,
                None => {}
            }
        };
        let place = self.exports.iter().position(|export| *export == agreed.export).unwrap_or(0);
        let mut session = server::Session::new(&agreed);
        let mut write: Option<(Request, Vec<u8>)> = None;
        loop {
            let taken = session.receive(&input, &mut out).map_err(broken)?;
            let bytes: Vec<u8> = input.drain(..taken.bytes).collect();
            match taken.what {
                Some(Incoming::Request(request)) if request.command == Command::Write => {
                    write = Some((request, Vec::new()));
                }
                Some(Incoming::Request(request)) => {
                    self.carry_out(&session, place, &request, &[], &mut out);
                }
                Some(Incoming::Data { .. }) => {
                    let (request, mut data) = write.take().expect("of a write");
                    data.extend_from_slice(&bytes);
                    if session.awaited().is_some() {
                        write = Some((request, data));
                    } else {
                        self.carry_out(&session, place, &request, &data, &mut out);
                    }
                }
                Some(Incoming::Disconnect) => return stream.write_all(&out),
                None if taken.bytes == 0 => {
                    stream.write_all(&out)?;
                    out.clear();
                    fill(&mut stream, &mut input)?;
                }
                None => {}
            }
        }
    }

    fn carry_out(
        &self,
        session: &server::Session,
        place: usize,
        request: &Request,
        data: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.asked.lock().expect("no panic").push(*request);
        let mut bytes = self.bytes[place].lock().expect("no panic");
        let range = request.at as usize..(request.at + request.len) as usize;
        match request.command {
            Command::Read { .. } => {
                let bytes = &bytes[range];
                if bytes.iter().all(|byte| *byte == 0) && session.may_be_parts(request) {
                    return session.hole(request, request.at, request.len as u32, true, out);
                }
                session.data(request, request.at, request.len as u32, true, out);
                out.extend_from_slice(bytes);
                return;
            }
            Command::Write => bytes[range].copy_from_slice(data),
            Command::WriteZeroes { fast: true, .. } if request.at != 0 => {
                return session.fail(request, ErrorCode::NotSupported, "only at the start", out);
            }
            Command::WriteZeroes { .. } | Command::Trim => bytes[range].fill(0),
            Command::BlockStatus { .. } => {
                let contexts = session.contexts();
                for (index, context) in contexts.iter().enumerate() {
                    let extents = states(&bytes, request.at, context.id == 1);
                    let last = index + 1 == contexts.len();
                    session.extents(request, context.id, &extents, last, out);
                }
                return;
            }
            _ => {}
        }
        session.done(request, out);
    }
}

/// Blocks of 4 KiB from a place to the end: which are zero, or, for the other context, which have odd numbers.
fn states(bytes: &[u8], at: u64, allocation: bool) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut from = at as usize;
    while from < bytes.len() {
        let end = bytes.len().min((from / 4096 + 1) * 4096);
        let zero = bytes[from..end].iter().all(|byte| *byte == 0);
        let flags = match allocation {
            true if zero => Extent::HOLE | Extent::ZERO,
            true => 0,
            false => from as u64 / 4096 % 2,
        };
        let len = (end - from) as u64;
        match extents.last_mut().filter(|last| last.flags == flags) {
            Some(last) => last.len += len,
            None => extents.push(Extent { len, flags }),
        }
        from = end;
    }
    extents
}

fn broken(violation: Violation) -> std::io::Error {
    std::io::Error::other(violation)
}

fn fill(stream: &mut UnixStream, input: &mut Vec<u8>) -> std::io::Result<()> {
    let mut more = [0; 1 << 16];
    match stream.read(&mut more)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        got => {
            input.extend_from_slice(&more[..got]);
            Ok(())
        }
    }
}

/// A client with one request at a time.
pub(crate) struct Client {
    stream: UnixStream,
    session: client::Session,
    pub(crate) chosen: Chosen,
    input: Vec<u8>,
    cookie: u64,
}

/// What became of a request.
pub(crate) type Answer = Result<(Vec<u8>, Vec<(u32, Vec<Extent>)>), ErrorCode>;

impl Client {
    pub(crate) fn connect(path: &Path, wanted: Wanted) -> Result<Self, String> {
        let mut stream = UnixStream::connect(path).map_err(|error| error.to_string())?;
        let mut handshake = client::Handshake::new(wanted);
        let (mut input, mut out) = (Vec::new(), Vec::new());
        let chosen = loop {
            let taken = handshake.receive(&input, &mut out);
            stream.write_all(&out).map_err(|error| error.to_string())?;
            out.clear();
            let taken = taken.map_err(|error| error.to_string())?;
            input.drain(..taken.bytes);
            match taken.what {
                Some(client::Step::Done(chosen)) => break *chosen,
                Some(client::Step::List(list)) => return Err(format!("{list:?}")),
                Some(client::Step::StartTls) => return Err("TLS".into()),
                None if taken.bytes == 0 => {
                    fill(&mut stream, &mut input).map_err(|error| error.to_string())?;
                }
                None => {}
            }
        };
        let session = client::Session::new(&chosen);
        Ok(Self { stream, session, chosen, input, cookie: 0 })
    }

    pub(crate) fn ask(&mut self, command: Command, at: u64, len: u64, data: &[u8]) -> Answer {
        self.cookie += 1;
        let mut out = Vec::new();
        let request = Request { cookie: self.cookie, command, at, len, fua: false };
        self.session.request(request, &mut out);
        out.extend_from_slice(data);
        self.stream.write_all(&out).expect("sent");
        let (mut got, mut status) =
            (vec![0xee; len as usize * usize::from(is_read(command))], Vec::new());
        loop {
            let taken = self.session.receive(&self.input).expect("keeps to the protocol");
            let bytes: Vec<u8> = self.input.drain(..taken.bytes).collect();
            match taken.what {
                Some(Reply::Data { at: from, .. }) => {
                    got[(from - at) as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                Some(Reply::Hole { at: from, len, .. }) => {
                    got[(from - at) as usize..][..len as usize].fill(0);
                }
                Some(Reply::Extents { context, extents, .. }) => status.push((context, extents)),
                Some(Reply::Done { error: None, .. }) => return Ok((got, status)),
                Some(Reply::Done { error: Some((code, _)), .. }) => return Err(code),
                None if taken.bytes == 0 => {
                    fill(&mut self.stream, &mut self.input).expect("answers")
                }
                None => {}
            }
        }
    }
}

fn is_read(command: Command) -> bool {
    matches!(command, Command::Read { .. })
}

pub(crate) fn wanted(name: &str, framing: Framing) -> Wanted {
    let contexts = vec!["base:allocation".to_owned()];
    let contexts = if framing == Framing::Simple { Vec::new() } else { contexts };
    Wanted { export: Some(name.to_owned()), framing, contexts, tls: false }
}

/// A directory that is removed when dropped.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("raidlab-nbd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("is made");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
