//! Numbers of the protocol, as its document has them (`doc/proto.md` of the NBD project, and its branch
//! `extension-ext-header`), and how they are read and written: big-endian throughout.

/// "NBDMAGIC": what a server says first.
pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": before each option, and after the greeting.
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY: u32 = 0x6744_6698;
pub(crate) const STRUCTURED_REPLY: u32 = 0x668e_33ef;
pub(crate) const EXTENDED_REQUEST: u32 = 0x21e4_1c71;
pub(crate) const EXTENDED_REPLY: u32 = 0x6e8a_278c;

/// Bytes of headers.
pub(crate) const OPTION_HEADER: usize = 16;
pub(crate) const OPTION_REPLY_HEADER: usize = 20;
pub(crate) const REQUEST_HEADER: usize = 28;
pub(crate) const EXTENDED_HEADER: usize = 32;
pub(crate) const SIMPLE_REPLY_HEADER: usize = 16;
pub(crate) const STRUCTURED_REPLY_HEADER: usize = 20;

/// The longest name and message, in bytes.
pub(crate) const LONGEST_STRING: usize = 4096;
/// What an export may ask of clients that never heard of block sizes: 32 MiB in one request.
pub(crate) const DEFAULT_PAYLOAD: u32 = 1 << 25;

/// Flags of the handshake, the same bits from server and client.
pub(crate) const FIXED_NEWSTYLE: u16 = 1;
pub(crate) const NO_ZEROES: u16 = 1 << 1;
/// Zeroes after the answer to `EXPORT_NAME`, for clients that have not said `NO_ZEROES`.
pub(crate) const ZEROES: usize = 124;

/// Options.
pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
    pub(crate) const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options.
pub(crate) mod reply {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERROR: u32 = 1 << 31;
    pub(crate) const UNSUPPORTED: u32 = ERROR + 1;
    pub(crate) const INVALID: u32 = ERROR + 3;
    pub(crate) const TLS_REQUIRED: u32 = ERROR + 5;
    pub(crate) const UNKNOWN: u32 = ERROR + 6;
    pub(crate) const BLOCK_SIZE_REQUIRED: u32 = ERROR + 8;
    pub(crate) const TOO_BIG: u32 = ERROR + 9;
    pub(crate) const EXTENDED_HEADERS_REQUIRED: u32 = ERROR + 10;
}

/// Pieces of information about an export.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const DESCRIPTION: u16 = 2;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export.
pub(crate) mod flag {
    pub(crate) const HAS_FLAGS: u16 = 1;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const FLUSH: u16 = 1 << 2;
    pub(crate) const FUA: u16 = 1 << 3;
    pub(crate) const ROTATIONAL: u16 = 1 << 4;
    pub(crate) const TRIM: u16 = 1 << 5;
    pub(crate) const WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const DF: u16 = 1 << 7;
    pub(crate) const MULTI_CONN: u16 = 1 << 8;
    pub(crate) const CACHE: u16 = 1 << 10;
    pub(crate) const FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISCONNECT: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub(crate) mod command_flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
    pub(crate) const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of structured and extended replies.
pub(crate) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const NONE: u16 = 0;
    pub(crate) const DATA: u16 = 1;
    pub(crate) const HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const BLOCK_STATUS_EXTENDED: u16 = 6;
    pub(crate) const ERROR: u16 = (1 << 15) + 1;
    /// All errors have it.
    pub(crate) const IS_ERROR: u16 = 1 << 15;
}

/// Reads numbers and strings off a message, in order; `None` where it is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length before it: UTF-8, no longer than the protocol allows, no NUL in it.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let len = self.u32()? as usize;
        text(self.bytes(len)?)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// A string of the protocol.
pub(crate) fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= LONGEST_STRING && !text.contains('\0')).then_some(text)
}

/// Appends to a message.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// With its length before it.
    fn put_string(&mut self, text: &str);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_string(&mut self, text: &str) {
        self.put_u32(u32::try_from(text.len()).unwrap_or(u32::MAX));
        self.extend_from_slice(text.as_bytes());
    }
}

/// The longest beginning of a message that a string of the protocol can be.
pub(crate) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_STRING)]
}
