//! What is served: sizes, abilities, errors.

use std::fmt;

use crate::wire::{DEFAULT_PAYLOAD, flag};

/// What a server offers under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// At most 4,096 bytes; the empty name is what clients get that ask for none.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
    /// In bytes.
    pub size: u64,
    /// What else can be asked of it.
    pub abilities: Abilities,
    /// What requests keep to.
    pub blocks: BlockSizes,
    /// Names of what [`Command::BlockStatus`](crate::Command::BlockStatus) can tell, such as `base:allocation`.
    pub contexts: Vec<String>,
}

impl Export {
    /// One that can be read and written, of blocks as every client expects them.
    #[must_use]
    pub fn new(name: &str, size: u64) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            size,
            abilities: Abilities::default(),
            blocks: BlockSizes::default(),
            contexts: Vec::new(),
        }
    }
}

/// What can be asked of an export besides reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// All changes are refused.
    pub read_only: bool,
    /// Flushes: what was answered before one is answered is durable after it, on all connections if `multi_conn`.
    pub flush: bool,
    /// Changes that are durable when they are answered.
    pub fua: bool,
    /// It has heads that move.
    pub rotational: bool,
    /// Hints of what is needed no more.
    pub trim: bool,
    /// Zeroes without sending them.
    pub write_zeroes: bool,
    /// Zeroes only where it is quicker than writing them, else an error; needs `write_zeroes`.
    pub fast_zero: bool,
    /// Hints of what will be read soon.
    pub cache: bool,
    /// What a flush or a durable change on one connection promises holds for all.
    pub multi_conn: bool,
}

impl Abilities {
    /// As sent; `fragments` is whether replies can be in parts, so that one may ask that they are not.
    pub(crate) fn flags(self, fragments: bool) -> u16 {
        let changes = !self.read_only;
        [
            (true, flag::HAS_FLAGS),
            (self.read_only, flag::READ_ONLY),
            (self.flush, flag::FLUSH),
            (self.fua, flag::FUA),
            (self.rotational, flag::ROTATIONAL),
            (changes && self.trim, flag::TRIM),
            (changes && self.write_zeroes, flag::WRITE_ZEROES),
            (fragments, flag::DF),
            (self.multi_conn, flag::MULTI_CONN),
            (self.cache, flag::CACHE),
            (changes && self.write_zeroes && self.fast_zero, flag::FAST_ZERO),
        ]
        .iter()
        .filter(|(is, _)| *is)
        .fold(0, |all, (_, bit)| all | bit)
    }

    /// The other way; unknown flags are ignored, as clients must.
    pub(crate) fn from_flags(flags: u16) -> Self {
        let has = |bit: u16| flags & bit != 0;
        Self {
            read_only: has(flag::READ_ONLY),
            flush: has(flag::FLUSH),
            fua: has(flag::FUA),
            rotational: has(flag::ROTATIONAL),
            trim: has(flag::TRIM),
            write_zeroes: has(flag::WRITE_ZEROES),
            fast_zero: has(flag::FAST_ZERO),
            cache: has(flag::CACHE),
            multi_conn: has(flag::MULTI_CONN),
        }
    }
}

/// Sizes in bytes that requests keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Places and lengths are multiples of it: a power of two, at most 65,536.
    pub minimum: u32,
    /// Requests of multiples of it cost nothing more: a power of two, at least `minimum` and 512.
    pub preferred: u32,
    /// The longest read or write, at least `preferred`.
    pub maximum: u32,
}

impl Default for BlockSizes {
    /// What clients expect that are told nothing: any byte, 4 KiB, 32 MiB.
    fn default() -> Self {
        Self { minimum: 1, preferred: 4096, maximum: DEFAULT_PAYLOAD }
    }
}

impl BlockSizes {
    /// Whether the protocol allows them.
    #[must_use]
    pub fn are_valid(self) -> bool {
        let Self { minimum, preferred, maximum } = self;
        minimum.is_power_of_two()
            && minimum <= 1 << 16
            && preferred.is_power_of_two()
            && preferred >= minimum.max(512)
            && maximum >= preferred
    }

    /// Whether a client that was told nothing keeps to them.
    pub(crate) fn are_usual(self) -> bool {
        self.minimum == 1 && self.maximum >= DEFAULT_PAYLOAD
    }
}

/// Why a request failed, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// EPERM: the export is read-only.
    NotPermitted,
    /// EIO.
    Io,
    /// ENOMEM.
    NoMemory,
    /// EINVAL: against what was agreed on.
    Invalid,
    /// ENOSPC: no room, or beyond the end of the export.
    NoSpace,
    /// EOVERFLOW: longer than can be served.
    Overflow,
    /// ENOTSUP: it could not be done fast.
    NotSupported,
    /// ESHUTDOWN.
    ShuttingDown,
}

impl ErrorCode {
    const ALL: [(Self, u32); 8] = [
        (Self::NotPermitted, 1),
        (Self::Io, 5),
        (Self::NoMemory, 12),
        (Self::Invalid, 22),
        (Self::NoSpace, 28),
        (Self::Overflow, 75),
        (Self::NotSupported, 95),
        (Self::ShuttingDown, 108),
    ];

    /// As sent.
    #[must_use]
    pub fn number(self) -> u32 {
        Self::ALL.iter().find(|(code, _)| *code == self).map_or(22, |(_, number)| *number)
    }

    /// As received; numbers that the protocol does not have count as invalid, as it says.
    #[must_use]
    pub fn of(number: u32) -> Self {
        let known = Self::ALL.iter().find(|(_, known)| *known == number);
        known.map_or(Self::Invalid, |(code, _)| *code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "not permitted",
            Self::Io => "input/output error",
            Self::NoMemory => "no memory",
            Self::Invalid => "invalid request",
            Self::NoSpace => "no space",
            Self::Overflow => "too large",
            Self::NotSupported => "not supported",
            Self::ShuttingDown => "the server is shutting down",
        })
    }
}

/// How requests and replies look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framing {
    /// One reply each; no parts, no block status.
    #[default]
    Simple,
    /// Replies in chunks.
    Structured,
    /// Replies in chunks, lengths of 64 bits.
    Extended,
}

/// Something that [`Command::BlockStatus`](crate::Command::BlockStatus) tells of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The server's number for it, of this connection.
    pub id: u32,
    /// Namespace, colon, and name in it.
    pub name: String,
}

/// A part of an export that has one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes, not zero.
    pub len: u64,
    /// Of `base:allocation`: [`Extent::HOLE`] and [`Extent::ZERO`]. Above 32 bits only with extended headers.
    pub flags: u64,
}

impl Extent {
    /// Nothing is allocated there.
    pub const HOLE: u64 = 1;
    /// It reads as zeroes.
    pub const ZERO: u64 = 2;
}

/// What the other side does against the protocol: the connection must be dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub(crate) String);

impl Violation {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "against the NBD protocol: {}", self.0)
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of the protocol's document; what an export that is only read cannot do is not offered, and what is fast
    /// is only where there are zeroes without sending them.
    #[test]
    fn abilities_are_offered_as_far_as_they_can_be_used() {
        let all = Abilities {
            read_only: false,
            flush: true,
            fua: true,
            rotational: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multi_conn: true,
        };
        assert_eq!(all.flags(true), 0b1101_1111_1101);
        assert_eq!(all.flags(false), 0b1101_0111_1101);
        let read_only = Abilities { read_only: true, ..all };
        assert_eq!(read_only.flags(true), 0b0101_1001_1111);
        let slow = Abilities { write_zeroes: false, ..all };
        assert_eq!(slow.flags(true), 0b0101_1011_1101);
        assert_eq!(Abilities::default().flags(false), 1);
        assert_eq!(Abilities::from_flags(all.flags(true)), all);
    }

    /// A client that is told nothing sends requests of any byte and up to 32 MiB.
    #[test]
    fn usual_sizes_are_what_clients_expect_that_are_told_nothing() {
        let are = |minimum, maximum| BlockSizes { minimum, preferred: 4096, maximum }.are_usual();
        assert!(are(1, 32 << 20) && are(1, u32::MAX));
        assert!(!are(1, (32 << 20) - 1) && !are(2, 32 << 20));
    }
}
