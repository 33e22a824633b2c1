//! Messages byte by byte as the protocol's document has them, and what comes of bytes that nobody should send.

use raidlab_nbd::client::{self, HandshakeError, Reply, Wanted};
use raidlab_nbd::server::{self, Incoming, Negotiated, Step, Tls};
use raidlab_nbd::{Command, Context, ErrorCode, Export, Extent, Framing, Request};

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\0\x03";

/// Bytes from hexadecimal digits; everything else is passed over.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut out = b"IHAVEOPT".to_vec();
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
    out
}

fn exports() -> Vec<Export> {
    let mut export = Export::new("disk", 0x1_0000);
    export.abilities.flush = true;
    export.abilities.fua = true;
    export.contexts = vec!["base:allocation".into()];
    vec![export]
}

/// A server with whom all these bytes were exchanged: what it put out, and what came last.
struct Server {
    handshake: server::Handshake,
    out: Vec<u8>,
}

impl Server {
    fn new(tls: Tls) -> Self {
        let mut out = Vec::new();
        let handshake = server::Handshake::new(tls, &mut out);
        assert_eq!(out, GREETING);
        Self { handshake, out: Vec::new() }
    }

    /// Sends all of it; gives what was put out, the step that came, and what was not taken.
    fn send(&mut self, bytes: &[u8]) -> Result<(Vec<u8>, Option<Step>, usize), String> {
        let mut at = 0;
        loop {
            let exports = exports();
            let taken = self.handshake.receive(&bytes[at..], &exports[..], &mut self.out);
            let taken = taken.map_err(|error| error.to_string())?;
            at += taken.bytes;
            if taken.what.is_some() || taken.bytes == 0 {
                return Ok((std::mem::take(&mut self.out), taken.what, bytes.len() - at));
            }
        }
    }
}

#[test]
fn a_handshake_to_the_byte() {
    let mut server = Server::new(Tls::None);
    assert_eq!(server.send(&hex("0000 0003")).unwrap(), (vec![], None, 0));
    let structured = server.send(&option(8, &[])).unwrap().0;
    assert_eq!(structured, hex("0003e889045565a9 00000008 00000001 00000000"));
    let query = hex("00000004 6469736b 00000001 0000000f 626173653a616c6c6f636174696f6e");
    let context = server.send(&option(10, &query)).unwrap().0;
    let expected =
        "0003e889045565a9 0000000a 00000004 00000013 00000001 626173653a616c6c6f636174696f6e
                    0003e889045565a9 0000000a 00000001 00000000";
    assert_eq!(context, hex(expected));
    let (info, step, rest) = server.send(&option(7, &hex("00000004 6469736b 0001 0003"))).unwrap();
    // Size, flags (has flags, flush, FUA, DF); 1, 4096, 32 MiB.
    let expected = "0003e889045565a9 00000007 00000003 0000000c 0000 0000000000010000 008d
                    0003e889045565a9 00000007 00000003 0000000e 0003 00000001 00001000 02000000
                    0003e889045565a9 00000007 00000001 00000000";
    assert_eq!((info, rest), (hex(expected), 0));
    let Some(Step::Done(agreed)) = step else { panic!("{step:?}") };
    assert_eq!(agreed.framing, Framing::Structured);
    assert_eq!(agreed.contexts, [Context { id: 1, name: "base:allocation".into() }]);
}

#[test]
fn export_name_is_answered_with_and_without_zeroes_and_ends_where_there_is_none() {
    for (flags, zeroes) in [("00000001", 124), ("00000003", 0), ("00000000", 124)] {
        let mut server = Server::new(Tls::None);
        server.send(&hex(flags)).unwrap();
        let (answer, step, _) = server.send(&option(1, b"disk")).unwrap();
        let mut expected = hex("0000000000010000 000d");
        expected.resize(10 + zeroes, 0);
        assert_eq!(answer, expected, "{flags}");
        assert!(matches!(step, Some(Step::Done(_))));
    }
    let mut server = Server::new(Tls::None);
    server.send(&hex("00000001")).unwrap();
    assert!(server.send(&option(1, b"none")).unwrap_err().contains("not there"));
    assert!(
        Server::new(Tls::None).send(&hex("00000004")).unwrap_err().contains("client flags 0x4")
    );
}

/// What an attacker in the middle puts before TLS has no effect after it (CVE-2021-3716).
#[test]
fn nothing_from_before_tls_counts_after_it() {
    let error = |option: u32, kind: u32| {
        let mut bytes = hex("0003e889045565a9");
        bytes.extend_from_slice(&option.to_be_bytes());
        bytes.extend_from_slice(&(0x8000_0000 + kind).to_be_bytes());
        bytes
    };
    let mut server = Server::new(Tls::Required);
    server.send(&hex("00000003")).unwrap();
    for asked in [3, 6, 7, 8, 9, 10, 11, 99] {
        let (answer, step, _) = server.send(&option(asked, &[])).unwrap();
        assert!(answer.starts_with(&error(asked, 5)) && step.is_none(), "{asked}");
    }
    // Behind STARTTLS somebody has put an option of his own.
    let mut bytes = option(5, &[]);
    bytes.extend(option(8, &[]));
    let (answer, step, rest) = server.send(&bytes).unwrap();
    assert_eq!((answer, rest), (hex("0003e889045565a9 00000005 00000001 00000000"), 0));
    assert_eq!(step, Some(Step::StartTls));
    assert!(server.send(&option(5, &[])).unwrap().0.starts_with(&error(5, 3)));
    let (_, step, _) = server.send(&option(7, &hex("00000004 6469736b 0000"))).unwrap();
    let Some(Step::Done(agreed)) = step else { panic!("{step:?}") };
    assert_eq!(agreed.framing, Framing::Simple);
    let mut server = Server::new(Tls::Required);
    server.send(&hex("00000001")).unwrap();
    assert!(server.send(&option(1, b"disk")).unwrap_err().contains("without TLS"));
    let mut without = Server::new(Tls::None);
    without.send(&hex("00000001")).unwrap();
    assert!(without.send(&option(5, &[])).unwrap().0.starts_with(&error(5, 1)));
}

/// Options in a wrong form are refused, those that are too long passed over, and the handshake goes on.
#[test]
fn options_that_make_no_sense_are_refused() {
    let mut server = Server::new(Tls::None);
    server.send(&hex("00000003")).unwrap();
    let mut refused = |number: u32, data: &[u8], kind: u32| {
        let (answer, step, rest) = server.send(&option(number, data)).unwrap();
        let mut expected = hex("0003e889045565a9");
        expected.extend_from_slice(&number.to_be_bytes());
        expected.extend_from_slice(&(0x8000_0000 + kind).to_be_bytes());
        assert!(answer.starts_with(&expected), "{number} {data:?}: {answer:02x?}");
        assert_eq!((step, rest), (None, 0));
    };
    refused(99, b"any", 1);
    for number in [3, 8, 11] {
        refused(number, b"x", 3);
    }
    // A name longer than what comes; none at all; bytes left over; no UTF-8; NUL in it.
    for data in
        ["", "00000005 6469736b 0000", "00000004 6469736b 0001", "00000004 6469736b 0000 00"]
    {
        refused(7, &hex(data), 3);
    }
    refused(7, &hex("00000002 ff00 0000"), 3);
    refused(7, &hex("00000001 00 0000"), 3);
    refused(7, &hex("00000004 6e6f6e65 0000"), 6);
    // Contexts before structured replies, and more than anybody needs.
    refused(10, &hex("00000004 6469736b 00000000"), 3);
    server.send(&option(8, &[])).unwrap();
    let mut many = hex("00000004 6469736b ffffffff");
    many.extend([0; 65 * 4]);
    let (answer, _, _) = server.send(&option(10, &many)).unwrap();
    assert!(answer.starts_with(&hex("0003e889045565a9 0000000a 80000009")), "{answer:02x?}");
    let long = vec![0; 100_000];
    let (answer, _, rest) = server.send(&option(7, &long)).unwrap();
    assert!(answer.starts_with(&hex("0003e889045565a9 00000007 80000009")) && rest == 0);
    assert!(matches!(server.send(&option(2, &[])).unwrap().1, Some(Step::Close)));
    assert!(
        Server::new(Tls::None).send(&hex("00000001 0102030405060708 00000000 00000000")).is_err()
    );
}

fn session(framing: Framing) -> server::Session {
    let contexts = vec![Context { id: 7, name: "base:allocation".into() }];
    let contexts = if framing == Framing::Simple { Vec::new() } else { contexts };
    let mut export = exports().remove(0);
    export.abilities.write_zeroes = true;
    server::Session::new(&Negotiated { export, framing, contexts })
}

fn read(at: u64, len: u64) -> Request {
    let command = Command::Read { whole: false };
    Request { cookie: 0x0102_0304_0506_0708, command, at, len, fua: false }
}

#[test]
fn requests_and_answers_to_the_byte() {
    let compact = "25609513 0000 0000 0102030405060708 0000000000001000 00000200";
    let wide = "21e41c71 0000 0000 0102030405060708 0000000000001000 0000000000000200";
    for (framing, bytes) in
        [(Framing::Simple, compact), (Framing::Structured, compact), (Framing::Extended, wide)]
    {
        let mut out = Vec::new();
        let taken = session(framing).receive(&hex(bytes), &mut out).unwrap();
        assert_eq!(taken.what, Some(Incoming::Request(read(0x1000, 0x200))), "{framing:?}");
        assert!(out.is_empty());
    }
    let answer = |framing: Framing, put: &dyn Fn(&server::Session, &Request, &mut Vec<u8>)| {
        let mut out = Vec::new();
        put(&session(framing), &read(0x1000, 0x200), &mut out);
        out
    };
    let data = |session: &server::Session, request: &Request, out: &mut Vec<u8>| {
        session.data(request, 0x1000, 0x200, true, out);
    };
    assert_eq!(answer(Framing::Simple, &data), hex("67446698 00000000 0102030405060708"));
    let expected = "668e33ef 0001 0001 0102030405060708 00000208 0000000000001000";
    assert_eq!(answer(Framing::Structured, &data), hex(expected));
    let expected =
        "6e8a278c 0001 0001 0102030405060708 0000000000001000 0000000000000208 0000000000001000";
    assert_eq!(answer(Framing::Extended, &data), hex(expected));
    let failed = |session: &server::Session, request: &Request, out: &mut Vec<u8>| {
        session.fail(request, ErrorCode::Io, "ab", out);
    };
    assert_eq!(answer(Framing::Simple, &failed), hex("67446698 00000005 0102030405060708"));
    let expected = "668e33ef 0001 8001 0102030405060708 00000008 00000005 0002 6162";
    assert_eq!(answer(Framing::Structured, &failed), hex(expected));
    let expected =
        "6e8a278c 0001 8001 0102030405060708 0000000000001000 0000000000000008 00000005 0002 6162";
    assert_eq!(answer(Framing::Extended, &failed), hex(expected));
}

#[test]
fn block_status_of_more_than_32_bits_is_cut_where_it_must_be() {
    let command = Command::BlockStatus { one: false };
    let request = Request { cookie: 1, command, at: 0, len: 0xffff_fe00, fua: false };
    // What is behind one that is cut does not begin where that ends.
    let long = [Extent { len: 0x2_0000_0000, flags: 3 }, Extent { len: 0x1000, flags: 0 }];
    let status = |framing| {
        let mut out = Vec::new();
        session(framing).extents(&request, 7, &long, true, &mut out);
        out
    };
    let short = "668e33ef 0001 0005 0000000000000001 0000000c 00000007 ffff0000 00000003";
    assert_eq!(status(Framing::Structured), hex(short));
    let whole = "6e8a278c 0001 0006 0000000000000001 0000000000000000 0000000000000018
                 00000007 00000001 0000000200000000 0000000000000003";
    assert_eq!(status(Framing::Extended), hex(whole));
}

fn chosen(framing: Framing) -> client::Chosen {
    client::Chosen {
        size: 0x1_0000,
        abilities: exports()[0].abilities,
        blocks: raidlab_nbd::BlockSizes::default(),
        framing,
        whole_reads: framing != Framing::Simple,
        contexts: Vec::new(),
    }
}

#[test]
fn a_flush_a_write_and_an_end_to_the_byte() {
    for framing in [Framing::Simple, Framing::Structured, Framing::Extended] {
        let chosen = chosen(framing);
        let (mut client, mut server) = (client::Session::new(&chosen), session(framing));
        let (mut sent, mut out) = (Vec::new(), Vec::new());
        let flush = Request { cookie: 1, command: Command::Flush, at: 0, len: 0, fua: false };
        let write = Request { cookie: 2, command: Command::Write, at: 512, len: 4, fua: true };
        client.request(flush, &mut sent);
        client.request(write, &mut sent);
        sent.extend_from_slice(b"data");
        client.disconnect(&mut sent);
        let mut came = Vec::new();
        let mut data = Vec::new();
        // Byte by byte, as a slow connection brings them.
        let mut held = Vec::new();
        for byte in sent {
            held.push(byte);
            let taken = server.receive(&held, &mut out).unwrap();
            let bytes: Vec<u8> = held.drain(..taken.bytes).collect();
            match taken.what {
                Some(Incoming::Data { cookie, offset }) => {
                    assert_eq!((cookie, offset as usize), (2, data.len()));
                    data.extend(bytes);
                }
                what => came.extend(what),
            }
        }
        assert_eq!((held.len(), out.len(), &data[..]), (0, 0, &b"data"[..]));
        let expected = [Incoming::Request(flush), Incoming::Request(write), Incoming::Disconnect];
        assert_eq!(came, expected);
        server.done(&write, &mut out);
        server.done(&flush, &mut out);
        for cookie in [2, 1] {
            let taken = client.receive(&out).unwrap();
            out.drain(..taken.bytes);
            assert_eq!(taken.what, Some(Reply::Done { cookie, error: None }));
        }
        assert_eq!((client.under_way(), out.len()), (0, 0));
    }
}

/// Answers that a server must not give end the connection; none is believed.
#[test]
fn clients_believe_no_server_that_breaks_the_rules() {
    let broken = |framing: Framing, answer: &str| {
        let mut client = client::Session::new(&chosen(framing));
        client.request(read(0x1000, 0x200), &mut Vec::new());
        let mut bytes = hex(answer);
        loop {
            match client.receive(&bytes) {
                Err(error) => return error.to_string(),
                Ok(taken) => {
                    assert!(taken.bytes > 0, "{answer} is taken");
                    bytes.drain(..taken.bytes);
                }
            }
        }
    };
    let simple = |answer: &str| broken(Framing::Simple, answer);
    let chunk = |answer: &str| broken(Framing::Structured, &format!("668e33ef {answer}"));
    assert!(simple("01020304").contains("where an answer begins"));
    assert!(simple("67446698 00000000 00000000000000aa").contains("not asked"));
    assert!(
        broken(Framing::Structured, "67446698 00000000 0102030405060708").contains("simple reply")
    );
    let cookie = "0102030405060708";
    // No data and no error; data before, beyond, too much, none.
    assert!(chunk(&format!("0001 0000 {cookie} 00000000")).contains("0 bytes of a read of 512"));
    for (at, len) in [("0000000000000fff", "00000009"), ("0000000000001000", "00000209")] {
        assert!(chunk(&format!("0001 0001 {cookie} {len} {at}")).contains("in answer to"), "{at}");
    }
    assert!(chunk(&format!("0001 0001 {cookie} 00000008 0000000000001000")).contains("0 bytes"));
    assert!(
        chunk(&format!("0001 0002 {cookie} 0000000c 0000000000001100 00000101"))
            .contains("in answer to")
    );
    assert!(
        chunk(&format!("0001 0005 {cookie} 0000000c 00000007 00000001 00000000"))
            .contains("block status")
    );
    assert!(chunk(&format!("0001 8001 {cookie} 00000005 0000000500")).contains("too short"));
    assert!(chunk(&format!("0001 0099 {cookie} 00000000")).contains("of kind 0x99"));
    assert!(chunk(&format!("0001 8001 {cookie} 7fffffff")).contains("a chunk of 2147483647 bytes"));
    let wide = format!("6e8a278c 0001 0001 {cookie} 0000000000002000 0000000000000208");
    assert!(broken(Framing::Extended, &wide).contains("another place"));
}

#[test]
fn clients_give_up_servers_that_answer_options_wrongly() {
    let wanted = |tls| Wanted {
        export: Some("disk".into()),
        framing: Framing::Structured,
        contexts: Vec::new(),
        tls,
    };
    let fails = |tls: bool, answer: &str| -> String {
        let mut client = client::Handshake::new(wanted(tls));
        let mut bytes = hex(answer);
        let mut out = Vec::new();
        loop {
            match client.receive(&bytes, &mut out) {
                Err(error @ HandshakeError::Protocol(_)) => return format!("protocol: {error}"),
                Err(error) => return error.to_string(),
                Ok(taken) => {
                    assert!(taken.bytes > 0, "{answer} is taken");
                    bytes.drain(..taken.bytes);
                }
            }
        }
    };
    let greeting = "4e42444d41474943 49484156454f5054 0003";
    assert!(fails(false, "0000000000000000").starts_with("protocol"));
    assert!(fails(false, "4e42444d41474943 00420281861253 00").contains("before 2011"));
    assert!(fails(true, "4e42444d41474943 49484156454f5054 0000").contains("refused TLS"));
    let ack = |option: &str| format!("0003e889045565a9 {option} 00000001 00000000");
    assert!(fails(false, &format!("{greeting} {}", ack("00000007"))).starts_with("protocol"));
    let no_size = format!("{greeting} {} {}", ack("00000008"), ack("00000007"));
    assert!(fails(false, &no_size).contains("without a size"));
    let long = format!("{greeting} 0003e889045565a9 00000008 00000001 00020000");
    assert!(fails(false, &long).contains("131072 bytes"));
    let blocks = "0003e889045565a9 00000007 00000003 0000000e 0003 00000003 00001000 02000000";
    assert!(
        fails(false, &format!("{greeting} {} {blocks}", ack("00000008"))).starts_with("protocol")
    );
}
