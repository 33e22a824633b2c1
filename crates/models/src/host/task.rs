//! Calls under way.

use raidlab_core::units::Nanos;

use super::spec::CallCosts;
use super::{Call, Failure, HostDescriptor, Source};

/// What becomes of a task next.
#[derive(Clone, Debug)]
pub(super) enum Next {
    /// It waits for something that will make it ready.
    Wait,
    /// It uses the CPU.
    Compute { cost: Nanos, user: Nanos, copies: Nanos, is_read: bool },
    /// It is done.
    Done,
    /// It cannot go on.
    Failed(Failure),
}

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) process: u32,
    pub(super) kind: Kind,
    /// The CPU works for it.
    pub(super) computes: bool,
    /// Requests of its own under way.
    pub(super) requests: u32,
    pub(super) moved: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Read(Transfer),
    Write(Transfer),
    Copy(Box<Copying>),
    Sync(Sync),
    Names(Names),
}

/// Reads or writes, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) handle: HostDescriptor,
    /// Where the call under way begins, and how much of it is done.
    pub(super) at: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    /// Calls that are not done.
    pub(super) times: u64,
    /// Whether data are copied to the process.
    pub(super) copies: bool,
    /// Whether the process works on every byte.
    pub(super) characters: bool,
    /// What is being copied or moved: bytes, and calls that are done with it.
    pub(super) piece: Option<Piece>,
    /// Making the last call durable.
    pub(super) sync: Option<Box<Sync>>,
}

/// Reads at one place and writes of what came at another, in turns.
#[derive(Clone, Debug)]
pub(super) struct Copying {
    pub(super) from: Transfer,
    /// Bytes of the source where it is not a file but in memory anyway.
    pub(super) source: Option<u64>,
    /// Its calls are those whose data have been read and are to be written.
    pub(super) to: Transfer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) bytes: u64,
    pub(super) calls: u64,
}

impl Transfer {
    pub(super) fn new(handle: HostDescriptor, at: u64, len: u64, times: u64) -> Self {
        let (offset, copies, characters, piece, sync) = (0, true, false, None, None);
        Self { handle, at, offset, len, times, copies, characters, piece, sync }
    }

    /// Where the next byte is.
    pub(super) fn position(&self) -> u64 {
        self.at + self.offset
    }

    /// A piece of `most` bytes at most: as many whole calls as fit, or a part of one; `end` is
    /// where a call ends early. Gives how many calls begin with it too.
    pub(super) fn cut(&self, most: u64, end: u64, calls: u64) -> (Piece, u64) {
        let whole = (most / self.len.max(1)).min(self.times).min(calls);
        if self.offset == 0 && whole > 0 {
            return (Piece { bytes: whole * self.len, calls: whole }, whole);
        }
        let left = (self.at + self.len).min(end) - self.position();
        let bytes = left.min(most);
        (Piece { bytes, calls: u64::from(bytes == left) }, u64::from(self.offset == 0))
    }

    /// Goes on behind a piece; gives the bytes of the calls that are done with it.
    pub(super) fn passed(&mut self, piece: Piece) -> u64 {
        let bytes = self.offset + piece.bytes;
        if piece.calls == 0 {
            self.offset = bytes;
            return 0;
        }
        self.at += bytes;
        self.offset = 0;
        self.times -= piece.calls;
        bytes
    }
}

/// Making files durable.
#[derive(Clone, Debug)]
pub(super) struct Sync {
    pub(super) stage: Stage,
    /// Whose data are still to be waited for.
    pub(super) files: Vec<u64>,
    /// Its metadata; `None` for all.
    pub(super) of: Option<u64>,
    pub(super) data_only: bool,
    /// A commit was waited for.
    pub(super) has_committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Begin,
    /// Data are handed to the array.
    Submit,
    /// Data are waited for.
    Data,
    /// Metadata are handed to the array, without a journal or for all files.
    Places,
    Metadata,
    /// The transaction is waited for.
    Commit,
    Flush,
    Flushing,
    End,
}

impl Sync {
    pub(super) fn of(file: Option<u64>, data_only: bool) -> Self {
        Self { stage: Stage::Begin, files: Vec::new(), of: file, data_only, has_committed: false }
    }
}

/// An operation on names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Blocks of metadata that must be in memory, in order, and how many are.
    pub(super) reads: Vec<u64>,
    pub(super) done: usize,
    pub(super) cost: Nanos,
    pub(super) computed: bool,
    /// Blocks that are changed then.
    pub(super) writes: Vec<u64>,
    /// Files whose metadata those are.
    pub(super) of: Vec<u64>,
}

impl Names {
    /// Empties it for an operation that takes so much of the CPU.
    pub(super) fn begin(&mut self, cost: Nanos) {
        self.reads.clear();
        self.writes.clear();
        self.of.clear();
        (self.done, self.cost, self.computed) = (0, cost, false);
    }

    /// Whether it changes metadata.
    pub(super) fn changes(&self) -> bool {
        !self.writes.is_empty() || !self.of.is_empty()
    }
}

impl CallCosts {
    /// What a process does with the bytes of a piece itself.
    pub(super) fn work_on(&self, transfer: &Transfer, piece: Piece) -> Nanos {
        if transfer.characters { self.characters(piece.bytes) } else { Nanos::ZERO }
    }
}

impl Task {
    pub(super) fn new(process: u32, kind: Kind) -> Self {
        Self { process, kind, computes: false, requests: 0, moved: 0 }
    }
}

/// Calls that move data.
pub(super) fn transfer(call: &Call) -> Option<Kind> {
    match *call {
        Call::Read { handle, at, len, times, copies } => {
            let transfer = Transfer { copies, ..Transfer::new(handle, at, len, times) };
            Some(Kind::Read(transfer))
        }
        Call::Write { handle, at, len, times } => {
            Some(Kind::Write(Transfer::new(handle, at, len, times)))
        }
        Call::StdioBytes { handle, at, len, times, is_read } => {
            let transfer = Transfer { characters: true, ..Transfer::new(handle, at, len, times) };
            Some(if is_read { Kind::Read(transfer) } else { Kind::Write(transfer) })
        }
        Call::Copy { from, from_at, to, at, len, times } => {
            let (handle, source) = match from {
                Source::File(handle) => (handle, None),
                Source::Memory { size } => (to, Some(size)),
            };
            let from = Transfer::new(handle, from_at, len, times);
            let to = Transfer::new(to, at, len, 0);
            Some(Kind::Copy(Box::new(Copying { from, source, to })))
        }
        _ => None,
    }
}
