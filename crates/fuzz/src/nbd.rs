//! What comes over a connection of NBD, to a server and to a client.

use raidlab_nbd::client::{self, Chosen, HandshakeError, Reply, Wanted};
use raidlab_nbd::server::{self, Incoming, Negotiated, Tls};
use raidlab_nbd::{
    Abilities, BlockSizes, Command, Context, Export, Framing, Request, Taken, Violation,
};

use crate::script::Script;

/// In bytes; its blocks are of 512.
const SIZE: u64 = 1 << 20;

/// What came of a stream, however it was cut.
#[derive(Debug, PartialEq, Eq)]
struct Course<T> {
    told: Vec<T>,
    out: Vec<u8>,
    ended: Option<Violation>,
}

/// Hands bytes over in pieces: what is not taken comes again with the next piece.
fn course<T>(
    stream: &[u8],
    piece: usize,
    mut receive: impl FnMut(&[u8], &mut Vec<u8>) -> Result<Taken<T>, Violation>,
) -> Course<(T, Vec<u8>)> {
    let mut course = Course { told: Vec::new(), out: Vec::new(), ended: None };
    let (mut from, mut to) = (0, 0);
    while to < stream.len() {
        to = stream.len().min(to + piece);
        loop {
            match receive(&stream[from..to], &mut course.out) {
                Err(violation) => {
                    course.ended = Some(violation);
                    return course;
                }
                Ok(Taken { bytes, what }) => {
                    assert!(bytes <= to - from, "took more than there was");
                    let taken = &stream[from..from + bytes];
                    from += bytes;
                    let is_idle = bytes == 0 && what.is_none();
                    course.told.extend(what.map(|what| (what, taken.to_vec())));
                    if is_idle {
                        break;
                    }
                }
            }
        }
    }
    course
}

/// Both ends of a connection: what is told does not depend on how bytes are cut, requests lie in the export and within
/// its abilities, data in what was asked for, and answers do not grow beyond what was sent.
pub fn nbd(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let (side, framing, piece) = (script.byte() % 4, script.byte(), 1 + usize::from(script.byte()));
    let framing =
        [Framing::Simple, Framing::Structured, Framing::Extended][usize::from(framing % 3)];
    let stream = script.bytes(bytes.len());
    match side {
        0 => server_handshake(stream, piece),
        1 => server_session(stream, framing, piece),
        2 => client_handshake(stream, framing, piece),
        _ => client_session(stream, framing, piece),
    }
}

fn export() -> Export {
    let mut export = Export::new("disk", SIZE);
    export.blocks = BlockSizes { minimum: 512, preferred: 4096, maximum: 1 << 16 };
    export.abilities =
        Abilities { flush: true, fua: true, write_zeroes: true, ..Abilities::default() };
    export.contexts = vec!["base:allocation".into(), "x-raidlab:state".into()];
    export
}

fn server_handshake(stream: &[u8], piece: usize) {
    let exports = [export(), Export::new("", 7)];
    for tls in [Tls::None, Tls::Required] {
        let run = |piece: usize| {
            let mut handshake = server::Handshake::new(tls, &mut Vec::new());
            course(stream, piece, |input, out| handshake.receive(input, &exports[..], out))
        };
        let (whole, cut) = (run(stream.len().max(1)), run(piece));
        // What comes at once with STARTTLS is thrown away; what comes later is TLS.
        let tls_begins = whole.told.iter().any(|(step, _)| *step == server::Step::StartTls);
        assert!(tls_begins || whole == cut, "{whole:?} {cut:?}");
        assert!(whole.out.len() <= 64 * stream.len(), "answers grow");
        if tls == Tls::Required && !tls_begins {
            let chosen = |(step, _): &(server::Step, _)| matches!(step, server::Step::Done(_));
            assert!(!whole.told.iter().any(chosen), "an export without TLS");
        }
    }
}

/// The data of a write in one piece.
fn joined(course: Course<(Incoming, Vec<u8>)>) -> Course<(Incoming, Vec<u8>)> {
    let Course { told, out, ended } = course;
    let mut joined: Vec<(Incoming, Vec<u8>)> = Vec::new();
    for (what, bytes) in told {
        match (joined.last_mut(), what) {
            (
                Some((Incoming::Data { cookie, offset }, before)),
                Incoming::Data { cookie: of, offset: at },
            ) if *cookie == of && at as usize == *offset as usize + before.len() => {
                before.extend(bytes);
            }
            _ => joined.push((what, bytes)),
        }
    }
    Course { told: joined, out, ended }
}

fn server_session(stream: &[u8], framing: Framing, piece: usize) {
    let contexts = vec![Context { id: 1, name: "base:allocation".into() }];
    let contexts = if framing == Framing::Simple { Vec::new() } else { contexts };
    let agreed = Negotiated { export: export(), framing, contexts };
    let run = |piece: usize| {
        let mut session = server::Session::new(&agreed);
        joined(course(stream, piece, |input, out| session.receive(input, out)))
    };
    let (whole, cut) = (run(stream.len().max(1)), run(piece));
    assert_eq!(whole, cut);
    assert!(whole.out.len() <= 8 * stream.len(), "answers grow");
    for (what, _) in &whole.told {
        let Incoming::Request(request) = what else { continue };
        let Request { command, at, len, .. } = *request;
        if command == Command::Flush {
            assert_eq!((at, len), (0, 0));
            continue;
        }
        assert!(len > 0 && at.checked_add(len).is_some_and(|end| end <= SIZE), "{request:?}");
        assert!(at.is_multiple_of(512) && len.is_multiple_of(512), "{request:?}");
        let is_able = match command {
            Command::Read { .. } | Command::Write => len <= 1 << 16,
            Command::WriteZeroes { fast, .. } => !fast,
            Command::BlockStatus { .. } => framing != Framing::Simple,
            _ => false,
        };
        assert!(is_able, "{request:?}");
    }
}

fn client_handshake(stream: &[u8], framing: Framing, piece: usize) {
    for (name, tls) in [(Some("disk"), false), (None, false), (Some("disk"), true)] {
        let wanted = Wanted {
            export: name.map(str::to_owned),
            framing,
            contexts: vec!["base:allocation".into()],
            tls,
        };
        let run = |piece: usize| {
            let mut handshake = client::Handshake::new(wanted.clone());
            let mut refused = None;
            let course = course(stream, piece, |input, out| {
                handshake.receive(input, out).or_else(|error| match error {
                    HandshakeError::Protocol(violation) => Err(violation),
                    // The connection is dropped.
                    other => {
                        refused.get_or_insert(other);
                        Ok(Taken { bytes: 0, what: None })
                    }
                })
            });
            (course, refused)
        };
        let whole = run(stream.len().max(1));
        assert!(whole.0.out.len() <= 256 + 64 * stream.len(), "requests grow");
        if whole.1.is_none() {
            assert_eq!(whole, run(piece));
        }
        let chosen = |(step, _): &(client::Step, _)| matches!(step, client::Step::Done(_));
        assert!(!(tls && whole.0.told.iter().any(chosen)), "an export without TLS");
    }
}

/// Bytes of reads and extents, without how data were cut.
fn client_session(stream: &[u8], framing: Framing, piece: usize) {
    let chosen = Chosen {
        size: SIZE,
        abilities: export().abilities,
        blocks: export().blocks,
        framing,
        whole_reads: framing != Framing::Simple,
        contexts: Vec::new(),
    };
    let commands = [
        Command::Read { whole: false },
        Command::Write,
        Command::Flush,
        Command::BlockStatus { one: false },
    ];
    let run = |piece: usize| {
        let mut session = client::Session::new(&chosen);
        for (cookie, command) in (0..).zip(commands) {
            let len = if command == Command::Flush { 0 } else { 64 };
            let request = Request { cookie, command, at: 0, len, fua: false };
            session.request(request, &mut Vec::new());
        }
        let course = course(stream, piece, |input, _| session.receive(input));
        let mut data = vec![None; 64];
        let mut rest = Vec::new();
        for (reply, bytes) in course.told {
            match reply {
                Reply::Data { cookie: 0, at } => {
                    for (at, byte) in (at as usize..).zip(bytes) {
                        data[at] = Some(byte);
                    }
                }
                Reply::Data { .. } => panic!("data of what is no read"),
                Reply::Hole { at, len, .. } => data[at as usize..][..len as usize].fill(Some(0)),
                Reply::Done { cookie: 0, error: None } => {
                    assert!(data.iter().all(Option::is_some), "a read that lacks bytes is done");
                    rest.push((0, 0));
                }
                Reply::Done { cookie, error } => rest.push((cookie, u64::from(error.is_some()))),
                Reply::Extents { context, extents, .. } => {
                    assert!(extents.iter().all(|extent| extent.len > 0));
                    rest.push((
                        u64::from(context),
                        extents.iter().map(|extent| extent.len).fold(0, u64::wrapping_add),
                    ));
                }
            }
        }
        (data, rest, course.ended)
    };
    assert_eq!(run(stream.len().max(1)), run(piece));
}
