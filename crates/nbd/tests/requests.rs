//! Which requests a server takes and which it refuses, with which error of the protocol's document: at the limits of
//! lengths and places, for each flag, and for exports that are not able to do it.

use raidlab_nbd::server::{Incoming, Negotiated, Session};
use raidlab_nbd::{
    Abilities, BlockSizes, Command, Context, ErrorCode, Export, Extent, Framing, Request,
};

const ALL: [Framing; 3] = [Framing::Simple, Framing::Structured, Framing::Extended];
/// Numbers of commands and flags, as the protocol's document has them.
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const CACHE: u16 = 5;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;
const FUA: u16 = 1;
const NO_HOLE: u16 = 1 << 1;
const DF: u16 = 1 << 2;
const REQ_ONE: u16 = 1 << 3;
const FAST_ZERO: u16 = 1 << 4;
const PAYLOAD_LEN: u16 = 1 << 5;

const SIZE: u64 = 1 << 20;
const LONGEST: u64 = 1 << 16;
const COOKIE: u64 = 0x1122_3344_5566_7788;

fn able() -> Abilities {
    Abilities {
        read_only: false,
        flush: true,
        fua: true,
        rotational: false,
        trim: true,
        write_zeroes: true,
        fast_zero: true,
        cache: true,
        multi_conn: false,
    }
}

fn session(framing: Framing, abilities: Abilities) -> Session {
    let mut export = Export::new("disk", SIZE);
    export.abilities = abilities;
    export.blocks = BlockSizes { minimum: 512, preferred: 4096, maximum: LONGEST as u32 };
    let contexts = vec![Context { id: 7, name: "base:allocation".into() }];
    let contexts = if framing == Framing::Simple { Vec::new() } else { contexts };
    Session::new(&Negotiated { export, framing, contexts })
}

fn header(framing: Framing, command: u16, flags: u16, at: u64, len: u64) -> Vec<u8> {
    let is_extended = framing == Framing::Extended;
    let flags = flags | if is_extended && command == WRITE { PAYLOAD_LEN } else { 0 };
    let magic: u32 = if is_extended { 0x21e4_1c71 } else { 0x2560_9513 };
    let mut bytes = magic.to_be_bytes().to_vec();
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&command.to_be_bytes());
    bytes.extend_from_slice(&COOKIE.to_be_bytes());
    bytes.extend_from_slice(&at.to_be_bytes());
    match is_extended {
        true => bytes.extend_from_slice(&len.to_be_bytes()),
        false => bytes.extend_from_slice(&(len as u32).to_be_bytes()),
    }
    bytes
}

/// The error of a refusal.
fn error(framing: Framing, answer: &[u8]) -> ErrorCode {
    let at = match framing {
        Framing::Simple => 4,
        Framing::Structured => 20,
        Framing::Extended => 32,
    };
    ErrorCode::of(u32::from_be_bytes(answer[at..at + 4].try_into().unwrap()))
}

/// What comes of a request to an export: the request, or the error it is refused with.
fn asked(
    framing: Framing,
    abilities: Abilities,
    (command, flags): (u16, u16),
    (at, len): (u64, u64),
) -> Result<Request, ErrorCode> {
    let mut out = Vec::new();
    let mut session = session(framing, abilities);
    let bytes = header(framing, command, flags, at, len);
    let taken = session.receive(&bytes, &mut out).expect("the connection goes on");
    assert_eq!(taken.bytes, bytes.len());
    match taken.what {
        Some(Incoming::Request(request)) => {
            assert!(out.is_empty());
            assert_eq!((request.cookie, request.at, request.len), (COOKIE, at, len));
            Ok(request)
        }
        None => Err(error(framing, &out)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_and_places_at_their_limits() {
    let zeroes = Command::WriteZeroes { no_hole: false, fast: false };
    let read = Command::Read { whole: false };
    for framing in ALL {
        let of = |number, at, len| {
            asked(framing, able(), (number, 0), (at, len)).map(|request| request.command)
        };
        for (number, command) in [(READ, read), (WRITE, Command::Write)] {
            assert_eq!(of(number, 0, LONGEST), Ok(command), "the longest");
            assert_eq!(of(number, 0, LONGEST + 512), Err(ErrorCode::Invalid));
            assert_eq!(of(number, SIZE - 512, 512), Ok(command), "to the last byte");
        }
        // What moves no data may be longer.
        for (number, command, beyond) in
            [(TRIM, Command::Trim, ErrorCode::Invalid), (WRITE_ZEROES, zeroes, ErrorCode::NoSpace)]
        {
            assert_eq!(of(number, 0, SIZE), Ok(command), "all of it");
            assert_eq!(of(number, 512, SIZE), Err(beyond), "{command:?}");
        }
        assert_eq!(of(WRITE, SIZE - 512, 1024), Err(ErrorCode::NoSpace));
        assert_eq!(of(WRITE, u64::MAX - 511, 512), Err(ErrorCode::NoSpace), "wraps to nothing");
        assert_eq!(of(READ, SIZE - 512, 1024), Err(ErrorCode::Invalid));
        assert_eq!(of(CACHE, SIZE, 512), Err(ErrorCode::Invalid));
        for number in [READ, WRITE, TRIM, WRITE_ZEROES, CACHE] {
            assert_eq!(of(number, 0, 0), Err(ErrorCode::Invalid), "{number}: of nothing");
            assert_eq!(of(number, 256, 512), Err(ErrorCode::Invalid), "{number}: begins within");
            assert_eq!(of(number, 512, 768), Err(ErrorCode::Invalid), "{number}: ends within");
        }
        assert_eq!(of(FLUSH, 0, 0), Ok(Command::Flush));
        assert_eq!(of(FLUSH, 512, 0), Err(ErrorCode::Invalid));
        assert_eq!(of(FLUSH, 0, 512), Err(ErrorCode::Invalid));
    }
}

/// Whether a read in one piece may be longer than the export allows: no, whatever its flags.
#[test]
fn reads_in_one_piece_have_the_same_limit() {
    for framing in [Framing::Structured, Framing::Extended] {
        let of = |len| asked(framing, able(), (READ, DF), (0, len)).map(|request| request.command);
        assert_eq!(of(LONGEST), Ok(Command::Read { whole: true }));
        assert_eq!(of(LONGEST + 512), Err(ErrorCode::Overflow));
    }
    let simple = asked(Framing::Simple, able(), (READ, DF), (0, 512));
    assert_eq!(simple, Err(ErrorCode::Invalid), "parts were not agreed on");
}

/// The change is durable when it is answered: of writes, trims and zeroes. Of what changes nothing FUA means nothing,
/// and where the export has none it is refused.
#[test]
fn fua_is_of_changes() {
    for framing in ALL {
        let fua = |number, len| {
            asked(framing, able(), (number, FUA), (0, len)).map(|request| request.fua)
        };
        for number in [WRITE, TRIM, WRITE_ZEROES] {
            assert_eq!(fua(number, 512), Ok(true), "{number}");
            let plain = asked(framing, able(), (number, 0), (0, 512)).unwrap();
            assert!(!plain.fua, "{number}");
        }
        assert_eq!(
            (fua(READ, 512), fua(CACHE, 512), fua(FLUSH, 0)),
            (Ok(false), Ok(false), Ok(false))
        );
        let without = Abilities { fua: false, ..able() };
        for number in [READ, WRITE, TRIM, WRITE_ZEROES] {
            let found = asked(framing, without, (number, FUA), (0, 512));
            assert_eq!(found, Err(ErrorCode::Invalid), "{number}");
            assert!(asked(framing, without, (number, 0), (0, 512)).is_ok(), "{number}");
        }
    }
}

#[test]
fn flags_are_those_of_their_command() {
    for framing in ALL {
        let of = |number, flags| {
            asked(framing, able(), (number, flags), (0, 512)).map(|request| request.command)
        };
        let zeroes = |no_hole, fast| Ok(Command::WriteZeroes { no_hole, fast });
        assert_eq!(of(WRITE_ZEROES, 0), zeroes(false, false));
        assert_eq!(of(WRITE_ZEROES, NO_HOLE), zeroes(true, false));
        assert_eq!(of(WRITE_ZEROES, FAST_ZERO), zeroes(false, true));
        assert_eq!(of(WRITE_ZEROES, NO_HOLE | FAST_ZERO | FUA), zeroes(true, true));
        for (number, flags) in [
            (READ, NO_HOLE),
            (READ, REQ_ONE),
            (WRITE, DF),
            (WRITE, NO_HOLE),
            (TRIM, NO_HOLE),
            (TRIM, FAST_ZERO),
            (WRITE_ZEROES, DF),
            (CACHE, REQ_ONE),
            (BLOCK_STATUS, DF),
            (READ, 1 << 6),
            (WRITE, 1 << 15),
            (8, 0),
            (0xffff, 0),
        ] {
            assert_eq!(of(number, flags), Err(ErrorCode::Invalid), "{number} with {flags:#x}");
        }
        let without = Abilities { fast_zero: false, ..able() };
        let fast = asked(framing, without, (WRITE_ZEROES, FAST_ZERO), (0, 512));
        assert_eq!(fast, Err(ErrorCode::NotSupported));
        assert!(asked(framing, without, (WRITE_ZEROES, 0), (0, 512)).is_ok());
    }
    for framing in [Framing::Structured, Framing::Extended] {
        let status = |flags| {
            asked(framing, able(), (BLOCK_STATUS, flags), (0, SIZE)).map(|request| request.command)
        };
        assert_eq!(status(0), Ok(Command::BlockStatus { one: false }));
        assert_eq!(status(REQ_ONE), Ok(Command::BlockStatus { one: true }));
    }
    let status = asked(Framing::Simple, able(), (BLOCK_STATUS, 0), (0, 512));
    assert_eq!(status, Err(ErrorCode::Invalid), "no context was chosen");
}

/// Each ability alone decides on its command.
#[test]
fn what_an_export_is_not_able_to_do_is_invalid() {
    for framing in ALL {
        for (number, len, without) in [
            (FLUSH, 0, Abilities { flush: false, ..able() }),
            (TRIM, 512, Abilities { trim: false, ..able() }),
            (WRITE_ZEROES, 512, Abilities { write_zeroes: false, ..able() }),
            (CACHE, 512, Abilities { cache: false, ..able() }),
        ] {
            let of = |abilities, number, len| asked(framing, abilities, (number, 0), (0, len));
            assert_eq!(of(without, number, len), Err(ErrorCode::Invalid), "{number}");
            for (other, len) in [(FLUSH, 0), (TRIM, 512), (WRITE_ZEROES, 512), (CACHE, 512)] {
                assert_eq!(of(without, other, len).is_ok(), other != number, "{other}, {number}");
            }
        }
        let read_only = Abilities { read_only: true, ..able() };
        for number in [WRITE, TRIM, WRITE_ZEROES] {
            let found = asked(framing, read_only, (number, 0), (0, 512));
            assert_eq!(found, Err(ErrorCode::NotPermitted), "{number}");
        }
        for (number, len) in [(READ, 512), (CACHE, 512), (FLUSH, 0)] {
            assert!(asked(framing, read_only, (number, 0), (0, len)).is_ok(), "{number}");
        }
    }
}

/// Data are told with the write they are of, as they come; those of a refused one are passed over.
#[test]
fn data_are_told_as_they_come() {
    for framing in ALL {
        let mut out = Vec::new();
        let mut session = session(framing, able());
        let write = header(framing, WRITE, 0, 0, 1024);
        assert!(session.receive(&write, &mut out).unwrap().what.is_some());
        assert_eq!(session.awaited(), Some((COOKIE, 1024)));
        let first = session.receive(&[1; 100], &mut out).unwrap();
        assert_eq!(first.what, Some(Incoming::Data { cookie: COOKIE, offset: 0 }));
        assert_eq!((first.bytes, session.awaited()), (100, Some((COOKIE, 924))));
        session.received(923);
        assert_eq!(session.awaited(), Some((COOKIE, 1)), "one byte is missing");
        let mut last = vec![1];
        last.extend(header(framing, READ, 0, 0, 512));
        let taken = session.receive(&last, &mut out).unwrap();
        assert_eq!(taken.what, Some(Incoming::Data { cookie: COOKIE, offset: 1023 }));
        assert_eq!((taken.bytes, session.awaited()), (1, None));
        assert!(matches!(
            session.receive(&last[1..], &mut out).unwrap().what,
            Some(Incoming::Request(_))
        ));
        // A write that is refused has its data all the same, which nobody awaits.
        let refused = header(framing, WRITE, 0, SIZE, 512);
        assert_eq!(session.receive(&refused, &mut out).unwrap().what, None);
        assert_eq!(session.awaited(), None);
        let taken = session.receive(&[2; 600], &mut out).unwrap();
        assert_eq!((taken.bytes, taken.what), (512, None));
        let end = header(framing, DISCONNECT, 0, 0, 0);
        let taken = session.receive(&end, &mut out).unwrap();
        assert_eq!(taken.what, Some(Incoming::Disconnect));
        assert_eq!(session.receive(&end, &mut out).unwrap().bytes, 0, "nothing counts after it");
    }
}

/// With extended headers a flag says whether data follow: with every write, and with nothing else; more than the
/// longest payload that clients may send without being told ends the connection.
#[test]
fn extended_headers_say_what_follows_them() {
    let framing = Framing::Extended;
    let mut out = Vec::new();
    let mut ours = session(framing, able());
    let mut bare = header(framing, WRITE, 0, 0, 512);
    bare[5] &= !(PAYLOAD_LEN as u8);
    assert_eq!(ours.receive(&bare, &mut out).unwrap().what, None);
    assert_eq!(error(framing, &out), ErrorCode::Invalid);
    // Nothing follows it.
    let read = header(framing, READ, 0, 0, 512);
    assert!(matches!(ours.receive(&read, &mut out).unwrap().what, Some(Incoming::Request(_))));
    // Data that come with a read are passed over.
    out.clear();
    let carrying = header(framing, READ, PAYLOAD_LEN, 0, 512);
    assert_eq!(ours.receive(&carrying, &mut out).unwrap().what, None);
    assert_eq!(error(framing, &out), ErrorCode::Invalid);
    assert_eq!(ours.receive(&[3; 700], &mut out).unwrap().bytes, 512);
    let most = 1 << 25;
    for (len, is_borne) in [(most, true), (most + 1, false), (1 << 32, false)] {
        let long = header(framing, WRITE, 0, 0, len);
        let found = session(framing, able()).receive(&long, &mut out);
        assert_eq!(found.is_ok(), is_borne, "{len}");
    }
}

/// Extents of an answer: the request they answer, and what comes of them in both forms.
fn told(framing: Framing, one: bool, len: u64, extents: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let request =
        Request { cookie: COOKIE, command: Command::BlockStatus { one }, at: 512, len, fua: false };
    let extents: Vec<Extent> = extents.iter().map(|&(len, flags)| Extent { len, flags }).collect();
    let mut out = Vec::new();
    session(framing, able()).extents(&request, 7, &extents, true, &mut out);
    let number = |at: usize, bytes: usize| {
        out[at..at + bytes].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
    };
    // Behind the header come the context, of the wide form a count, and then length and flags of each.
    let (head, width, length) = match framing {
        Framing::Extended => (32, 8, number(24, 8)),
        _ => (20, 4, number(16, 4)),
    };
    assert_eq!((number(head, 4), out.len() as u64), (7, head as u64 + length));
    let first = if width == 8 { head + 8 } else { head + 4 };
    let all: Vec<(u64, u64)> = (first..out.len())
        .step_by(2 * width)
        .map(|at| (number(at, width), number(at + width, width)))
        .collect();
    if width == 8 {
        assert_eq!(number(head + 4, 4), all.len() as u64);
    }
    all
}

/// The last extent alone may reach beyond what was asked for, unless one is asked for; none begins behind its end.
#[test]
fn states_of_blocks_end_where_the_request_does() {
    const HOLE: u64 = Extent::HOLE | Extent::ZERO;
    let given = [(512, 0), (1024, HOLE), (4096, 0), (512, HOLE)];
    for framing in [Framing::Structured, Framing::Extended] {
        let some = |len| told(framing, false, len, &given);
        assert_eq!(some(512), given[..1], "its end is that of the first");
        assert_eq!(some(513), given[..2]);
        assert_eq!(some(1536), given[..2]);
        assert_eq!(some(2048), given[..3], "the last one reaches beyond");
        assert_eq!(some(1 << 20), given);
        assert_eq!(told(framing, true, 256, &given), [(256, 0)], "cut to the request");
        assert_eq!(told(framing, true, 1 << 20, &given), [(512, 0)], "and no second one");
    }
    // 32 bits hold so many whole blocks of 64 KiB; what is behind one that is cut is not told.
    let long = [(512, 0), (1 << 33, HOLE), (512, 0)];
    let most = 0xffff_0000;
    assert_eq!(told(Framing::Structured, false, 1 << 34, &long), [(512, 0), (most, HOLE)]);
    assert_eq!(told(Framing::Extended, false, 1 << 34, &long), long);
    assert_eq!(told(Framing::Structured, true, 1 << 32, &long[1..]), [(most, HOLE)]);
    assert_eq!(told(Framing::Extended, true, 1 << 32, &long[1..]), [(1 << 32, HOLE)]);
    // 65,536 at once.
    let many = vec![(512, 0); 65_540];
    assert_eq!(told(Framing::Structured, false, 1 << 30, &many).len(), 65_536);
}

#[test]
fn answers_may_be_in_parts_where_that_was_agreed_on() {
    for framing in ALL {
        let session = session(framing, able());
        let of = |command| Request { cookie: 1, command, at: 0, len: 512, fua: false };
        let may = |command| session.may_be_parts(&of(command));
        assert_eq!(may(Command::Read { whole: false }), framing != Framing::Simple);
        assert!(!may(Command::Read { whole: true }) && !may(Command::Write));
        // What has no data is answered shortly, but with extended headers.
        let mut out = Vec::new();
        session.done(&of(Command::Write), &mut out);
        let is_simple = out.starts_with(&0x6744_6698_u32.to_be_bytes());
        assert_eq!(is_simple, framing != Framing::Extended);
        if framing != Framing::Simple {
            out.clear();
            session.hole(&of(Command::Read { whole: false }), 0, 512, true, &mut out);
            let head = if framing == Framing::Extended { 32 } else { 20 };
            assert_eq!(out.len(), head + 12, "a place and a length");
            let told = &out[head - 4..head];
            assert_eq!(told, 12_u32.to_be_bytes(), "and so it says");
        }
    }
}

/// A part of an export that begins elsewhere is answered where it lies.
#[test]
#[should_panic(expected = "this client gets answers in one piece")]
fn a_read_in_one_piece_is_answered_from_its_place_on() {
    let session = session(Framing::Structured, able());
    let command = Command::Read { whole: true };
    let request = Request { cookie: 1, command, at: 1024, len: 512, fua: false };
    session.data(&request, 1024, 512, true, &mut Vec::new());
    session.data(&request, 0, 512, true, &mut Vec::new());
}

#[test]
fn block_sizes_are_those_that_the_protocol_allows() {
    let are = |minimum, preferred, maximum| BlockSizes { minimum, preferred, maximum }.are_valid();
    assert!(are(1, 512, 512) && are(1 << 16, 1 << 16, 1 << 16) && are(512, 4096, 4097));
    assert!(!are(1 << 17, 1 << 17, 1 << 20), "at most 64 KiB");
    assert!(!are(1, 256, 4096), "at least 512");
    assert!(!are(4096, 512, 8192) && !are(3, 512, 4096) && !are(1, 768, 4096));
    assert!(!are(1, 4096, 4095) && !are(0, 512, 4096));
}
