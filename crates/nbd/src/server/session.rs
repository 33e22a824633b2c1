//! Requests and answers once an export has been chosen.

use super::Negotiated;
use crate::export::{BlockSizes, Context, ErrorCode, Extent, Framing, Violation};
use crate::request::{Command, Request, Taken};
use crate::wire::{
    EXTENDED_HEADER, EXTENDED_REPLY, EXTENDED_REQUEST, Put, REQUEST, REQUEST_HEADER, Reader,
    SIMPLE_REPLY, STRUCTURED_REPLY, chunk, command, command_flag, cut,
};

/// What came from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// To be answered, in any order. After a [`Command::Write`] come its data.
    Request(Request),
    /// The bytes that were taken are data of the write with this cookie, from byte `offset` of it on.
    Data {
        /// The write's.
        cookie: u64,
        /// Of its data.
        offset: u32,
    },
    /// The client will send nothing more: the connection is closed when all is answered.
    Disconnect,
}

/// What follows a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Payload {
    /// Of the write whose data they are; `None`: of a request that was refused.
    cookie: Option<u64>,
    len: u32,
    left: u32,
}

/// A connection after its handshake: takes requests apart, refuses what the export is not able to, and writes
/// the headers of answers.
///
/// It holds no data: those of a write are handed on as they come, those of a read are sent by the driver behind
/// [`Session::data`].
#[derive(Debug)]
pub struct Session {
    size: u64,
    abilities: crate::Abilities,
    blocks: BlockSizes,
    framing: Framing,
    contexts: Vec<Context>,
    payload: Option<Payload>,
    /// Requests that were refused here.
    refused: u64,
    is_over: bool,
}

/// A header as it came.
struct Header {
    flags: u16,
    command: u16,
    cookie: u64,
    at: u64,
    len: u64,
}

impl Session {
    /// After the handshake.
    #[must_use]
    pub fn new(negotiated: &Negotiated) -> Self {
        let Negotiated { export, framing, contexts } = negotiated;
        Self {
            size: export.size,
            abilities: export.abilities,
            blocks: export.blocks,
            framing: *framing,
            contexts: contexts.clone(),
            payload: None,
            refused: 0,
            is_over: false,
        }
    }

    /// What the client wants to know of blocks; a [`Command::BlockStatus`] is answered with extents of each.
    #[must_use]
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Whether a read may be answered in parts and holes.
    #[must_use]
    pub fn may_be_parts(&self, request: &Request) -> bool {
        self.framing >= Framing::Structured && request.command == Command::Read { whole: false }
    }

    /// How many requests were refused here, and not handed on, since this was asked last.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// So many bytes of data are still to come, of the write with this cookie: they may be received straight to where
    /// they belong, if [`Session::received`] is told. `None` while none are awaited.
    #[must_use]
    pub fn awaited(&self) -> Option<(u64, u32)> {
        let payload = self.payload?;
        Some((payload.cookie?, payload.left))
    }

    /// The driver received so many bytes of data of a write by itself, no more than [`Session::awaited`] said.
    pub fn received(&mut self, bytes: u32) {
        let left = self.payload.map_or(0, |payload| payload.left.saturating_sub(bytes));
        self.payload = self.payload.filter(|_| left > 0).map(|payload| Payload { left, ..payload });
    }

    /// Takes a header, or some data. Requests that the export is not able to do, or that are not within it, are
    /// refused by answers in `out` and not handed on.
    ///
    /// # Errors
    ///
    /// The connection must be dropped.
    pub fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Taken<Incoming>, Violation> {
        if self.is_over || input.is_empty() {
            return Ok(Taken::NOTHING);
        }
        if let Some(payload) = self.payload {
            return Ok(self.data_of(payload, input));
        }
        let Some((header, bytes)) = self.header(input)? else { return Ok(Taken::NOTHING) };
        if header.command == command::DISCONNECT {
            self.is_over = true;
            return Ok(Taken::new(bytes, Incoming::Disconnect));
        }
        let payload = self.payload_of(&header)?;
        let checked = self.check(&header);
        let cookie = checked.is_ok().then_some(header.cookie);
        self.payload = (payload > 0).then_some(Payload { cookie, len: payload, left: payload });
        match checked {
            Ok(request) => Ok(Taken::new(bytes, Incoming::Request(request))),
            Err((error, why)) => {
                self.refused += 1;
                self.failed(header.cookie, header.at, error, why, out);
                Ok(Taken::bytes(bytes))
            }
        }
    }

    fn data_of(&mut self, payload: Payload, input: &[u8]) -> Taken<Incoming> {
        let now = u32::try_from(input.len()).unwrap_or(u32::MAX).min(payload.left);
        let offset = payload.len - payload.left;
        self.received(now);
        match payload.cookie {
            Some(cookie) => Taken::new(now as usize, Incoming::Data { cookie, offset }),
            None => Taken::bytes(now as usize),
        }
    }

    fn header(&self, input: &[u8]) -> Result<Option<(Header, usize)>, Violation> {
        let is_extended = self.framing == Framing::Extended;
        let (expected, bytes) = match is_extended {
            true => (EXTENDED_REQUEST, EXTENDED_HEADER),
            false => (REQUEST, REQUEST_HEADER),
        };
        let mut reader = Reader::new(input);
        let Some(magic) = reader.u32() else { return Ok(None) };
        if magic != expected {
            return Err(Violation::new(format!("{magic:#010x} where a request begins")));
        }
        let mut header = || {
            Some(Header {
                flags: reader.u16()?,
                command: reader.u16()?,
                cookie: reader.u64()?,
                at: reader.u64()?,
                len: if is_extended { reader.u64()? } else { reader.u32()?.into() },
            })
        };
        Ok(header().map(|header| (header, bytes)))
    }

    /// How much comes behind a header.
    fn payload_of(&self, header: &Header) -> Result<u32, Violation> {
        if self.framing != Framing::Extended {
            let len = if header.command == command::WRITE { header.len } else { 0 };
            return Ok(u32::try_from(len).unwrap_or(u32::MAX));
        }
        if header.flags & command_flag::PAYLOAD_LEN == 0 {
            return Ok(0);
        }
        let most = self.blocks.maximum.max(crate::wire::DEFAULT_PAYLOAD);
        let len = u32::try_from(header.len).ok().filter(|len| *len <= most);
        len.ok_or_else(|| {
            Violation::new(format!("{} bytes behind a header, of at most {most}", header.len))
        })
    }

    /// What a header asks for, if it can be done.
    fn check(&self, header: &Header) -> Result<Request, (ErrorCode, &'static str)> {
        use ErrorCode::{Invalid, NoSpace, NotPermitted, NotSupported, Overflow};
        let mut flags = header.flags & !command_flag::FUA;
        if self.framing == Framing::Extended {
            let carries = flags & command_flag::PAYLOAD_LEN != 0;
            if carries != (header.command == command::WRITE) {
                return Err((Invalid, "data come with writes, and with nothing else"));
            }
            flags &= !command_flag::PAYLOAD_LEN;
        }
        let fua = header.flags & command_flag::FUA != 0;
        let command = Command::of(header.command, flags);
        let command = command.ok_or((Invalid, "a command or flag that is not known"))?;
        let Header { cookie, at, len, .. } = *header;
        if fua && !self.abilities.fua {
            return Err((Invalid, "the export has no FUA"));
        }
        self.check_ability(command)?;
        if command == Command::Flush {
            return match (at, len) {
                (0, 0) => Ok(Request { cookie, command, at, len, fua: false }),
                _ => Err((Invalid, "a flush has no place and no length")),
            };
        }
        if command.is_change() && self.abilities.read_only {
            return Err((NotPermitted, "the export is read-only"));
        }
        let least = u64::from(self.blocks.minimum);
        if len == 0 || !at.is_multiple_of(least) || !len.is_multiple_of(least) {
            return Err((Invalid, "length zero, or not in blocks of the export"));
        }
        if at.checked_add(len).is_none_or(|end| end > self.size) {
            // The protocol has it so: a trim needs no room.
            let needs_room = command.is_change() && command != Command::Trim;
            let error = if needs_room { NoSpace } else { Invalid };
            return Err((error, "beyond the end of the export"));
        }
        let moves = matches!(command, Command::Read { .. } | Command::Write);
        if moves && len > self.blocks.maximum.into() {
            // Only who wants a read in one piece may be told that it is the piece which is too long.
            let is_whole = command == Command::Read { whole: true };
            let error = if is_whole { Overflow } else { Invalid };
            return Err((error, "longer than the export allows"));
        }
        if matches!(command, Command::WriteZeroes { fast: true, .. }) && !self.abilities.fast_zero {
            return Err((NotSupported, "the export does not know what is fast"));
        }
        Ok(Request { cookie, command, at, len, fua: fua && command.is_change() })
    }

    /// Whether the export was said to be able to do it.
    fn check_ability(&self, command: Command) -> Result<(), (ErrorCode, &'static str)> {
        let abilities = self.abilities;
        let (is_able, why) = match command {
            Command::Read { whole: true } => {
                (self.framing >= Framing::Structured, "parts were not agreed on")
            }
            Command::Read { whole: false } | Command::Write => (true, ""),
            Command::Flush => (abilities.flush, "the export has no flush"),
            Command::Trim => (abilities.trim, "the export has no trim"),
            Command::WriteZeroes { .. } => (abilities.write_zeroes, "the export writes no zeroes"),
            Command::Cache => (abilities.cache, "the export has no cache"),
            Command::BlockStatus { .. } => {
                (!self.contexts.is_empty(), "no context was chosen in the handshake")
            }
        };
        if is_able { Ok(()) } else { Err((ErrorCode::Invalid, why)) }
    }

    /// Answers a request that has no data: it is done.
    pub fn done(&self, request: &Request, out: &mut Vec<u8>) {
        match self.framing {
            Framing::Simple | Framing::Structured if !self.needs_chunks(request) => {
                simple(out, 0, request.cookie);
            }
            _ => self.chunk(request.cookie, request.at, chunk::NONE, true, 0, out),
        }
    }

    /// Answers a request: it failed. Parts of a read that were answered before count as nothing. `why` is for people,
    /// may be empty, and reaches only clients with structured replies.
    pub fn fail(&self, request: &Request, error: ErrorCode, why: &str, out: &mut Vec<u8>) {
        self.failed(request.cookie, request.at, error, why, out);
    }

    fn failed(&self, cookie: u64, at: u64, error: ErrorCode, why: &str, out: &mut Vec<u8>) {
        if self.framing == Framing::Simple {
            return simple(out, error.number(), cookie);
        }
        let why = cut(why);
        self.chunk(cookie, at, chunk::ERROR, true, 6 + why.len() as u64, out);
        out.put_u32(error.number());
        out.put_u16(why.len() as u16);
        out.extend_from_slice(why.as_bytes());
    }

    /// Begins an answer to a read with `len` bytes from `at` on, which the driver sends behind it: all that was
    /// asked for, or, where [`Session::may_be_parts`], a part of it. The `last` one ends the answer; no error can
    /// be told after it.
    ///
    /// # Panics
    ///
    /// If parts are answered to who cannot take them.
    pub fn data(&self, request: &Request, at: u64, len: u32, last: bool, out: &mut Vec<u8>) {
        let is_all = last && (at, u64::from(len)) == (request.at, request.len);
        assert!(is_all || self.may_be_parts(request), "this client gets answers in one piece");
        if self.framing == Framing::Simple {
            return simple(out, 0, request.cookie);
        }
        self.chunk(request.cookie, request.at, chunk::DATA, last, 8 + u64::from(len), out);
        out.put_u64(at);
    }

    /// Answers a part of a read: zeroes, which are not sent.
    ///
    /// # Panics
    ///
    /// If parts are answered to who cannot take them.
    pub fn hole(&self, request: &Request, at: u64, len: u32, last: bool, out: &mut Vec<u8>) {
        assert!(self.may_be_parts(request), "this client gets answers in one piece");
        self.chunk(request.cookie, request.at, chunk::HOLE, last, 12, out);
        out.put_u64(at);
        out.put_u32(len);
    }

    /// Answers a part of a [`Command::BlockStatus`]: extents of one context from the beginning of the request on,
    /// of which as many are sent as the client may get, at least one. The `last` one ends the answer.
    ///
    /// # Panics
    ///
    /// If there are none, or one is empty.
    pub fn extents(
        &self,
        request: &Request,
        context: u32,
        extents: &[Extent],
        last: bool,
        out: &mut Vec<u8>,
    ) {
        assert!(!extents.is_empty() && extents.iter().all(|extent| extent.len > 0));
        let one = matches!(request.command, Command::BlockStatus { one: true });
        let mut sent: Vec<Extent> = Vec::new();
        let mut at = 0;
        for extent in extents {
            if at >= request.len || sent.len() == MOST_EXTENTS || one && !sent.is_empty() {
                break;
            }
            // Only the last of several may go on beyond what was asked for.
            let most = if one { request.len } else { u64::MAX };
            let most = if self.framing == Framing::Extended { most } else { most.min(SHORT) };
            let len = extent.len.min(most);
            sent.push(Extent { len, ..*extent });
            at += len;
            if len < extent.len {
                break;
            }
        }
        let is_extended = self.framing == Framing::Extended;
        let (kind, len) = match is_extended {
            true => (chunk::BLOCK_STATUS_EXTENDED, 8 + 16 * sent.len()),
            false => (chunk::BLOCK_STATUS, 4 + 8 * sent.len()),
        };
        self.chunk(request.cookie, request.at, kind, last, len as u64, out);
        out.put_u32(context);
        if is_extended {
            out.put_u32(sent.len() as u32);
        }
        for Extent { len, flags } in sent {
            if is_extended {
                out.put_u64(len);
                out.put_u64(flags);
            } else {
                out.put_u32(len as u32);
                out.put_u32(flags as u32);
            }
        }
    }

    /// Whether a request must not be answered by a simple reply.
    fn needs_chunks(&self, request: &Request) -> bool {
        let has_data =
            matches!(request.command, Command::Read { .. } | Command::BlockStatus { .. });
        self.framing == Framing::Structured && has_data
    }

    fn chunk(&self, cookie: u64, at: u64, kind: u16, last: bool, len: u64, out: &mut Vec<u8>) {
        let is_extended = self.framing == Framing::Extended;
        out.put_u32(if is_extended { EXTENDED_REPLY } else { STRUCTURED_REPLY });
        out.put_u16(if last { chunk::DONE } else { 0 });
        out.put_u16(kind);
        out.put_u64(cookie);
        if is_extended {
            out.put_u64(at);
            out.put_u64(len);
        } else {
            out.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
        }
    }
}

/// More extents are not sent at once.
const MOST_EXTENTS: usize = 1 << 16;
/// The longest extent of 32 bits that is whole blocks.
const SHORT: u64 = u32::MAX as u64 & !0xffff;

fn simple(out: &mut Vec<u8>, error: u32, cookie: u64) {
    out.put_u32(SIMPLE_REPLY);
    out.put_u32(error);
    out.put_u64(cookie);
}
