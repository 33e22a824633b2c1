//! Requests, as both sides know them.

use crate::wire::{command, command_flag};

/// What is asked of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// What lies there.
    Read {
        /// The answer comes in one piece.
        whole: bool,
    },
    /// The data follow.
    Write,
    /// All changes that were answered before are durable when this is.
    Flush,
    /// What lies there is needed no more; it may be left as it is.
    Trim,
    /// As a write of zeroes, which are not sent.
    WriteZeroes {
        /// Room is kept: later writes there find it.
        no_hole: bool,
        /// Fails at once, with [`NotSupported`](crate::ErrorCode::NotSupported) and without any change, where it is no
        /// quicker than writing.
        fast: bool,
    },
    /// It will be read soon.
    Cache,
    /// What state each part is in, for each context that was chosen.
    BlockStatus {
        /// One extent of each context, no longer than was asked for.
        one: bool,
    },
}

impl Command {
    /// The number, and the flags without FUA.
    pub(crate) fn numbers(self) -> (u16, u16) {
        let flag = |is: bool, bit: u16| if is { bit } else { 0 };
        match self {
            Self::Read { whole } => (command::READ, flag(whole, command_flag::DF)),
            Self::Write => (command::WRITE, 0),
            Self::Flush => (command::FLUSH, 0),
            Self::Trim => (command::TRIM, 0),
            Self::WriteZeroes { no_hole, fast } => {
                let flags = flag(no_hole, command_flag::NO_HOLE);
                (command::WRITE_ZEROES, flags | flag(fast, command_flag::FAST_ZERO))
            }
            Self::Cache => (command::CACHE, 0),
            Self::BlockStatus { one } => (command::BLOCK_STATUS, flag(one, command_flag::REQ_ONE)),
        }
    }

    /// From the number and the flags without FUA; `None` if the protocol has no such command, or flags that it does not
    /// have are set.
    pub(crate) fn of(number: u16, flags: u16) -> Option<Self> {
        let has = |bit: u16| flags & bit != 0;
        let all = [
            Self::Read { whole: has(command_flag::DF) },
            Self::Write,
            Self::Flush,
            Self::Trim,
            Self::WriteZeroes {
                no_hole: has(command_flag::NO_HOLE),
                fast: has(command_flag::FAST_ZERO),
            },
            Self::Cache,
            Self::BlockStatus { one: has(command_flag::REQ_ONE) },
        ];
        all.into_iter().find(|command| command.numbers() == (number, flags))
    }

    /// Whether it changes what the export holds.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes { .. })
    }
}

/// A request to an export, within it and of what it is able to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's; answers carry it.
    pub cookie: u64,
    /// What is asked for.
    pub command: Command,
    /// First byte; 0 of a flush.
    pub at: u64,
    /// Bytes; 0 of a flush, else not. Below 2^32 unless headers are extended.
    pub len: u64,
    /// The change is durable when it is answered.
    pub fua: bool,
}

/// What came of some bytes of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// So many were taken; the rest has to be handed in again.
    pub bytes: usize,
    /// `None`: nothing more can be said before there are more bytes.
    pub what: Option<T>,
}

impl<T> Taken<T> {
    pub(crate) const NOTHING: Self = Self { bytes: 0, what: None };

    pub(crate) fn bytes(bytes: usize) -> Self {
        Self { bytes, what: None }
    }

    pub(crate) fn new(bytes: usize, what: T) -> Self {
        Self { bytes, what: Some(what) }
    }
}
