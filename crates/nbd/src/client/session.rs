//! Requests and answers once an export has been chosen.

use std::collections::BTreeMap;

use super::Chosen;
use crate::export::{ErrorCode, Extent, Framing, Violation};
use crate::request::{Command, Request, Taken};
use crate::wire::{
    EXTENDED_HEADER, EXTENDED_REPLY, EXTENDED_REQUEST, Put, REQUEST, Reader, SIMPLE_REPLY,
    SIMPLE_REPLY_HEADER, STRUCTURED_REPLY, STRUCTURED_REPLY_HEADER, chunk, command, command_flag,
};

/// What of a chunk besides data is taken in at once: an error with its message, or extents.
const LONGEST_CHUNK: u64 = 8 + 16 * (1 << 20);

/// What came from the server, of the request with this cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The bytes that were taken are data, from this byte of the export on.
    Data {
        /// The request's.
        cookie: u64,
        /// Of the export.
        at: u64,
    },
    /// Zeroes, which were not sent.
    Hole {
        /// The request's.
        cookie: u64,
        /// First byte, of the export.
        at: u64,
        /// Bytes.
        len: u32,
    },
    /// States from the beginning of the request on.
    Extents {
        /// The request's.
        cookie: u64,
        /// Whose states they are, by its number in [`Chosen`].
        context: u32,
        /// One after the other, without gaps.
        extents: Vec<Extent>,
    },
    /// The request is over. An error may come after data, which count as nothing then.
    Done {
        /// The request's.
        cookie: u64,
        /// What was wrong, with what the server said of it.
        error: Option<(ErrorCode, String)>,
    },
}

/// A request that is under way.
#[derive(Clone, Debug)]
struct Asked {
    request: Request,
    /// Bytes of a read that came.
    got: u64,
    error: Option<(ErrorCode, String)>,
}

/// Data that are coming.
#[derive(Clone, Copy, Debug)]
struct Payload {
    cookie: u64,
    at: u64,
    left: u64,
    /// The request is over after them.
    last: bool,
}

/// A connection after its handshake: makes requests, and takes answers apart.
#[derive(Debug)]
pub struct Session {
    framing: Framing,
    asked: BTreeMap<u64, Asked>,
    payload: Option<Payload>,
}

/// A chunk's header as it came.
struct Chunk {
    last: bool,
    kind: u16,
    cookie: u64,
    len: u64,
    header: usize,
}

type Result<T> = std::result::Result<T, Violation>;

impl Session {
    /// After the handshake.
    #[must_use]
    pub fn new(chosen: &Chosen) -> Self {
        Self { framing: chosen.framing, asked: BTreeMap::new(), payload: None }
    }

    /// Requests that are not answered.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.asked.len()
    }

    /// Puts a request out; behind a [`Command::Write`] the driver sends its data.
    ///
    /// # Panics
    ///
    /// If the cookie is in use, or the length is beyond what the framing can say.
    pub fn request(&mut self, request: Request, out: &mut Vec<u8>) {
        let (number, flags) = request.command.numbers();
        let fua = if request.fua { command_flag::FUA } else { 0 };
        self.header(number, flags | fua, &request, out);
        let asked = Asked { request, got: 0, error: None };
        assert!(self.asked.insert(request.cookie, asked).is_none(), "the cookie is in use");
    }

    fn header(&self, number: u16, flags: u16, request: &Request, out: &mut Vec<u8>) {
        if self.framing == Framing::Extended {
            let payload = number == command::WRITE;
            out.put_u32(EXTENDED_REQUEST);
            out.put_u16(flags | if payload { command_flag::PAYLOAD_LEN } else { 0 });
            out.put_u16(number);
            out.put_u64(request.cookie);
            out.put_u64(request.at);
            out.put_u64(request.len);
            return;
        }
        out.put_u32(REQUEST);
        out.put_u16(flags);
        out.put_u16(number);
        out.put_u64(request.cookie);
        out.put_u64(request.at);
        out.put_u32(u32::try_from(request.len).expect("below 4 GiB without extended headers"));
    }

    /// Puts the end out: nothing may be asked for after it.
    pub fn disconnect(&self, out: &mut Vec<u8>) {
        let request = Request { cookie: 0, command: Command::Flush, at: 0, len: 0, fua: false };
        self.header(command::DISCONNECT, 0, &request, out);
    }

    /// So many bytes of data are still to come, of this read, from this byte of the export on: they may be received
    /// straight to where they belong, if [`Session::received`] is told.
    #[must_use]
    pub fn awaited(&self) -> Option<(u64, u64, u64)> {
        self.payload.map(|Payload { cookie, at, left, .. }| (cookie, at, left))
    }

    /// The driver received so many bytes of data by itself, no more than [`Session::awaited`] said. If they end the
    /// request, the next [`Session::receive`] tells it.
    pub fn received(&mut self, bytes: u64) {
        if let Some(payload) = &mut self.payload {
            payload.at += bytes;
            payload.left = payload.left.saturating_sub(bytes);
        }
    }

    /// Takes a part of an answer, or some data.
    ///
    /// # Errors
    ///
    /// The connection must be dropped.
    pub fn receive(&mut self, input: &[u8]) -> Result<Taken<Reply>> {
        if let Some(payload) = self.payload {
            return self.data_of(payload, input);
        }
        let mut reader = Reader::new(input);
        let Some(magic) = reader.u32() else { return Ok(Taken::NOTHING) };
        match (magic, self.framing) {
            (SIMPLE_REPLY, Framing::Simple | Framing::Structured) => self.simple(reader),
            (STRUCTURED_REPLY, Framing::Structured) | (EXTENDED_REPLY, Framing::Extended) => {
                self.chunk(input)
            }
            _ => Err(Violation::new(format!("{magic:#010x} where an answer begins"))),
        }
    }

    fn data_of(&mut self, payload: Payload, input: &[u8]) -> Result<Taken<Reply>> {
        let Payload { cookie, at, left, last } = payload;
        if left == 0 {
            self.payload = None;
            return if last { self.over(cookie, 0) } else { Ok(Taken::NOTHING) };
        }
        if input.is_empty() {
            return Ok(Taken::NOTHING);
        }
        let now = left.min(input.len() as u64);
        self.received(now);
        if left == now && !last {
            self.payload = None;
        }
        Ok(Taken::new(now as usize, Reply::Data { cookie, at }))
    }

    fn asked(&mut self, cookie: u64) -> Result<&mut Asked> {
        let asked = self.asked.get_mut(&cookie);
        asked
            .ok_or_else(|| Violation::new(format!("an answer to {cookie:#x}, which was not asked")))
    }

    fn simple(&mut self, mut reader: Reader<'_>) -> Result<Taken<Reply>> {
        let (Some(error), Some(cookie)) = (reader.u32(), reader.u64()) else {
            return Ok(Taken::NOTHING);
        };
        let is_simple = self.framing == Framing::Simple;
        let asked = self.asked(cookie)?;
        let Request { command, at, len, .. } = asked.request;
        if matches!(command, Command::Read { .. }) {
            if !is_simple {
                return Err(Violation::new("a simple reply to a read where chunks were agreed on"));
            }
            if error == 0 {
                asked.got = len;
                self.payload = Some(Payload { cookie, at, left: len, last: true });
                return Ok(Taken::bytes(SIMPLE_REPLY_HEADER));
            }
        }
        if error != 0 {
            asked.error = Some((ErrorCode::of(error), String::new()));
        }
        self.over(cookie, SIMPLE_REPLY_HEADER)
    }

    fn over(&mut self, cookie: u64, bytes: usize) -> Result<Taken<Reply>> {
        let Asked { request, got, error } = self.asked(cookie)?.clone();
        let is_short = matches!(request.command, Command::Read { .. }) && got != request.len;
        if error.is_none() && is_short {
            let what = format!("{got} bytes of a read of {} and no error", request.len);
            return Err(Violation::new(what));
        }
        self.asked.remove(&cookie);
        Ok(Taken::new(bytes, Reply::Done { cookie, error }))
    }

    fn chunk(&mut self, input: &[u8]) -> Result<Taken<Reply>> {
        let Some(found) = self.chunk_header(input)? else { return Ok(Taken::NOTHING) };
        let Chunk { last, kind, cookie, len, header } = found;
        if kind == chunk::DATA {
            return self.begin_data(&found, &input[header..]);
        }
        if len > LONGEST_CHUNK {
            return Err(Violation::new(format!("a chunk of {len} bytes")));
        }
        let Some(payload) = Reader::new(&input[header..]).bytes(len as usize) else {
            return Ok(Taken::NOTHING);
        };
        let bytes = header + payload.len();
        let what = match kind {
            chunk::NONE if last && len == 0 => None,
            chunk::HOLE => Some(self.hole(cookie, payload)?),
            chunk::BLOCK_STATUS | chunk::BLOCK_STATUS_EXTENDED => {
                Some(self.extents(cookie, kind, payload)?)
            }
            kind if kind & chunk::IS_ERROR != 0 => {
                self.error(cookie, payload)?;
                None
            }
            _ => return Err(Violation::new(format!("a chunk of kind {kind:#x}, {len} bytes"))),
        };
        match (what, last) {
            (None, true) => self.over(cookie, bytes),
            (what, false) => Ok(Taken { bytes, what }),
            // Its end is told next, of no bytes.
            (what, true) => {
                self.payload = Some(Payload { cookie, at: 0, left: 0, last });
                Ok(Taken { bytes, what })
            }
        }
    }

    fn chunk_header(&mut self, input: &[u8]) -> Result<Option<Chunk>> {
        let is_extended = self.framing == Framing::Extended;
        let mut reader = Reader::new(input);
        let mut read = || {
            reader.u32()?;
            let (flags, kind, cookie) = (reader.u16()?, reader.u16()?, reader.u64()?);
            let (at, len) = match is_extended {
                true => (Some(reader.u64()?), reader.u64()?),
                false => (None, reader.u32()?.into()),
            };
            Some((flags, kind, cookie, at, len))
        };
        let Some((flags, kind, cookie, at, len)) = read() else { return Ok(None) };
        let asked = self.asked(cookie)?;
        if at.is_some_and(|at| at != asked.request.at) {
            return Err(Violation::new("an answer of another place than was asked for"));
        }
        let header = if is_extended { EXTENDED_HEADER } else { STRUCTURED_REPLY_HEADER };
        Ok(Some(Chunk { last: flags & chunk::DONE != 0, kind, cookie, len, header }))
    }

    fn begin_data(&mut self, found: &Chunk, input: &[u8]) -> Result<Taken<Reply>> {
        let Some(at) = Reader::new(input).u64() else { return Ok(Taken::NOTHING) };
        let left = found.len.saturating_sub(8);
        self.part(found.cookie, at, left)?;
        self.payload = Some(Payload { cookie: found.cookie, at, left, last: found.last });
        Ok(Taken::bytes(found.header + 8))
    }

    /// A part of a read came: it lies within what was asked for.
    fn part(&mut self, cookie: u64, at: u64, len: u64) -> Result<()> {
        let asked = self.asked(cookie)?;
        let Request { command, at: from, len: wanted, .. } = asked.request;
        let end = at.checked_add(len);
        let is_within = at >= from && end.is_some_and(|end| end - from <= wanted);
        asked.got = asked.got.saturating_add(len);
        if len == 0 || !is_within || asked.got > wanted || !matches!(command, Command::Read { .. })
        {
            return Err(Violation::new(format!("{len} bytes at {at} in answer to {command:?}")));
        }
        Ok(())
    }

    fn hole(&mut self, cookie: u64, payload: &[u8]) -> Result<Reply> {
        let mut reader = Reader::new(payload);
        match (reader.u64(), reader.u32(), reader.rest()) {
            (Some(at), Some(len), []) => {
                self.part(cookie, at, len.into())?;
                Ok(Reply::Hole { cookie, at, len })
            }
            _ => Err(Violation::new("a hole of another length")),
        }
    }

    fn error(&mut self, cookie: u64, payload: &[u8]) -> Result<()> {
        let mut reader = Reader::new(payload);
        let read = |reader: &mut Reader<'_>| {
            let (error, len) = (reader.u32()?, reader.u16()?);
            let message = reader.bytes(len.into())?;
            Some((ErrorCode::of(error), String::from_utf8_lossy(message).into_owned()))
        };
        let error = read(&mut reader);
        let error = error.ok_or_else(|| Violation::new("an error that is too short"))?;
        // The first one counts.
        self.asked(cookie)?.error.get_or_insert(error);
        Ok(())
    }

    fn extents(&mut self, cookie: u64, kind: u16, payload: &[u8]) -> Result<Reply> {
        let wrong = || Violation::new("block status in another form than was agreed on");
        let is_extended = self.framing == Framing::Extended;
        let asked = self.asked(cookie)?.request.command;
        if is_extended != (kind == chunk::BLOCK_STATUS_EXTENDED)
            || !matches!(asked, Command::BlockStatus { .. })
        {
            return Err(wrong());
        }
        let mut reader = Reader::new(payload);
        let context = reader.u32().ok_or_else(wrong)?;
        if is_extended {
            let count = reader.u32().ok_or_else(wrong)?;
            if reader.rest().len() as u64 != u64::from(count) * 16 {
                return Err(wrong());
            }
        }
        let mut extents = Vec::new();
        while !reader.rest().is_empty() {
            let extent = match is_extended {
                true => reader.u64().zip(reader.u64()),
                false => reader.u32().map(u64::from).zip(reader.u32().map(u64::from)),
            };
            let (len, flags) = extent.filter(|(len, _)| *len > 0).ok_or_else(wrong)?;
            extents.push(Extent { len, flags });
        }
        if extents.is_empty() {
            return Err(wrong());
        }
        Ok(Reply::Extents { cookie, context, extents })
    }
}
