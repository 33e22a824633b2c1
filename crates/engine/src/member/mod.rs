//! What an array is made of: members in memory, in files, one that does nothing, and those of others.
//!
//! A member either answers an I/O at once (memory, null) or takes it and answers later (files, a store of
//! one's own). Its errors are data: an [`IoOutcome`] for the core.

mod file;
mod memory;
mod own;
mod reach;
mod room;
mod system;
mod uring;
mod worker;
mod zeroing;

pub use file::{CacheState, FileIo, FileMember, FileOptions};
pub use memory::MemoryMember;
pub use own::{MemberRequest, MemberStore, OwnMember};
pub(crate) use uring::Ring;
pub use uring::unusable as io_uring_unusable;
pub(crate) use worker::{Finished, Hub, Ticket, Work};

use std::sync::Arc;

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{MemberConfig, Sector, Sectors};

use crate::buffers::Piece;
use crate::error::{EngineError, EngineErrorKind};

/// An I/O to a member, without its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submission {
    pub(crate) op: IoOp,
    /// Relative to the start of the member's data.
    pub(crate) at: Sector,
    pub(crate) len: Sectors,
    pub(crate) fua: bool,
    /// Make every write completed before durable first.
    pub(crate) flush_first: bool,
}

/// A member that completes everything at once and does nothing: for benchmarks of the engine itself.
///
/// Reads leave the buffer as it is.
#[derive(Clone, Copy, Debug)]
pub struct NullMember {
    sectors: Sectors,
}

impl NullMember {
    /// A member of this size.
    pub const fn new(sectors: Sectors) -> Self {
        Self { sectors }
    }
}

/// A member of an array.
#[derive(Debug)]
pub enum Member {
    /// Does nothing.
    Null(NullMember),
    /// Keeps its data in memory.
    Memory(MemoryMember),
    /// Keeps its data in a file or on a block device.
    File(Box<FileMember>),
    /// Keeps its data as somebody else wrote it.
    Own(OwnMember),
    /// The place of a member that is not there; every I/O is answered with [`IoOutcome::Gone`].
    Absent,
}

impl Member {
    /// The member as the core wants to know it.
    pub fn config(&self) -> MemberConfig {
        match self {
            Self::Absent => MemberConfig { sectors: Sectors::ZERO, logical_block: 1 },
            Self::Null(member) => MemberConfig { sectors: member.sectors, logical_block: 1 },
            Self::Memory(member) => in_blocks(member.sectors(), member.block()),
            Self::File(member) => in_blocks(member.sectors(), member.logical_block()),
            Self::Own(member) => in_blocks(member.sectors(), member.logical_block()),
        }
    }

    /// Whether I/Os at it are under way after they were handed over.
    pub(crate) const fn answers_later(&self) -> bool {
        matches!(self, Self::File(_) | Self::Own(_))
    }

    /// Where the answers of a file go from now on; up to `ios` I/Os are under way at once.
    pub(crate) fn connect(&mut self, hub: &Arc<Hub>, ring: &mut Option<Ring>, ios: usize) {
        if let Self::File(file) = self {
            file.connect(hub, ring, ios);
        }
    }

    /// Bytes before the member's data in its file; zero for members without a file.
    pub fn data_offset(&self) -> u64 {
        match self {
            Self::File(member) => member.data_offset().bytes(),
            Self::Null(_) | Self::Memory(_) | Self::Own(_) | Self::Absent => 0,
        }
    }

    /// Reads from the member itself, past the array: for verification.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] for a null member, which holds nothing; an error of the range
    /// or of the medium otherwise.
    pub fn read_direct(&mut self, at: Sector, into: &mut [u8]) -> Result<(), EngineError> {
        const OPERATION: &str = "read a member";
        let outcome = match self {
            Self::Null(_) => {
                let reason = "a null member holds nothing that could be read";
                return Err(EngineError::new(EngineErrorKind::NotSupported, OPERATION, reason));
            }
            Self::Memory(member) => {
                let submission = read_of(at, into.len());
                let piece = Piece { start: into.as_mut_ptr(), len: into.len() };
                // SAFETY: the piece is exactly the slice, which is ours alone.
                unsafe { member.carry_out(&submission, std::iter::once(piece)) }
            }
            Self::File(member) => member.read_now(at, into)?,
            Self::Own(member) => member.carry_out(&read_of(at, into.len()), Some(into))?,
            Self::Absent => IoOutcome::Gone,
        };
        self.direct(outcome, OPERATION, at)
    }

    /// Fills a range of the member with zeroes, past the array; `durable`: also should the power go then.
    ///
    /// # Errors
    /// An error of the range or of the medium.
    pub(crate) fn zero_direct(
        &mut self,
        operation: &'static str,
        at: Sector,
        len: Sectors,
        durable: bool,
    ) -> Result<(), EngineError> {
        let op = IoOp::WriteZeroes;
        let submission = Submission { op, at, len, fua: durable, flush_first: false };
        let outcome = match self {
            Self::Null(_) => IoOutcome::Ok,
            // SAFETY: there is no payload.
            Self::Memory(member) => unsafe { member.carry_out(&submission, std::iter::empty()) },
            Self::File(member) => member.zero_now(&submission),
            Self::Own(member) => member.carry_out(&submission, None)?,
            Self::Absent => IoOutcome::Gone,
        };
        self.direct(outcome, operation, at)
    }

    /// Makes everything durable that was written, past the array.
    ///
    /// # Errors
    /// An error of the medium.
    pub(crate) fn flush_direct(&mut self, operation: &'static str) -> Result<(), EngineError> {
        let op = IoOp::Flush;
        let (at, len) = (Sector(0), Sectors(0));
        let submission = Submission { op, at, len, fua: false, flush_first: false };
        let piece = Piece { start: std::ptr::NonNull::dangling().as_ptr(), len: 0 };
        let outcome = self.write_now(&submission, piece);
        self.direct(outcome, operation, at)
    }

    /// Writes one piece on the calling thread, for the engine.
    pub(crate) fn write_now(&mut self, submission: &Submission, piece: Piece) -> IoOutcome {
        match self {
            Self::Null(_) => IoOutcome::Ok,
            // SAFETY: the piece is the engine's own, in nobody else's use, and apart from the member.
            Self::Memory(member) => unsafe { member.carry_out(submission, std::iter::once(piece)) },
            Self::File(member) => member.write_now(submission, piece),
            Self::Own(member) => {
                // SAFETY: as above.
                let bytes = unsafe { own::bytes(piece) };
                member.carry_out(submission, Some(bytes)).unwrap_or(IoOutcome::Gone)
            }
            Self::Absent => IoOutcome::Gone,
        }
    }

    /// What an outcome is to one who asked for it past the array.
    pub(crate) fn direct(
        &self,
        outcome: IoOutcome,
        operation: &'static str,
        at: Sector,
    ) -> Result<(), EngineError> {
        match outcome {
            IoOutcome::Ok => Ok(()),
            other => {
                let reason = format!("the member answered {other:?}");
                let at = match other {
                    IoOutcome::MediaError { first_bad } => first_bad,
                    _ => at,
                };
                let error = EngineError::new(EngineErrorKind::MediaError, operation, reason)
                    .at_offset(self.data_offset() + at.bytes());
                Err(match self {
                    Self::File(member) => error.at_path(member.path()),
                    _ => error,
                })
            }
        }
    }
}

impl From<NullMember> for Member {
    fn from(member: NullMember) -> Self {
        Self::Null(member)
    }
}

impl From<MemoryMember> for Member {
    fn from(member: MemoryMember) -> Self {
        Self::Memory(member)
    }
}

impl From<FileMember> for Member {
    fn from(member: FileMember) -> Self {
        Self::File(Box::new(member))
    }
}

impl<S: MemberStore + 'static> From<S> for Member {
    fn from(store: S) -> Self {
        Self::Own(OwnMember::new(store))
    }
}

fn in_blocks(sectors: Sectors, block: u32) -> MemberConfig {
    let whole = sectors.0 / u64::from(block) * u64::from(block);
    MemberConfig { sectors: Sectors(whole), logical_block: block }
}

fn read_of(at: Sector, bytes: usize) -> Submission {
    let len = Sectors(bytes as u64 / raidlab_core::SECTOR_BYTES);
    Submission { op: IoOp::Read, at, len, fua: false, flush_first: false }
}

/// The outcome for a range that does not lie within a member of `sectors`, or `None` when it does.
#[inline]
pub(crate) fn outside(submission: &Submission, sectors: Sectors) -> Option<IoOutcome> {
    let end = submission.at.0.checked_add(submission.len.0);
    if end.is_some_and(|end| end <= sectors.0) {
        return None;
    }
    let first_bad = Sector(submission.at.0.max(sectors.0));
    Some(IoOutcome::MediaError { first_bad })
}
