//! `cp`: to `/dev/null`, of a file from elsewhere, and of a whole tree.
//!
//! Two profiles. `today` is GNU coreutils 9.1 as `strace` shows it (`tests/copy_strace.rs`): between
//! files of one filesystem `copy_file_range` until nothing is left, otherwise reads and writes of
//! 128 KiB until a read finds nothing; a file that `copy_file_range` finds empty is read once more. What
//! it tries in vain is left out, since no operation here may fail: `FICLONE`, and `copy_file_range` to
//! `/dev/null` or another filesystem. `posix_fadvise(SEQUENTIAL)` and `fstat` are left out too; the
//! former doubles read-ahead on Linux.
//!
//! `2005` is coreutils 5.2.1, by what is known of it and not traced, so an assumption: reads and writes
//! of the destination's `st_blksize` (4096 bytes for ext3 and for `/dev/null`; `block` says otherwise)
//! until a read finds nothing, and directories in the order in which the filesystem lists them.

mod null;
mod tar;
mod tree;

use crate::error::WorkloadError;
use crate::op::{FileDescriptor, FilePath, Op, OpResult, OpenFlags};
use crate::parameters::Parameters;
use crate::simple::LARGEST_BLOCK;
use crate::steps::wrong;

pub(crate) use null::{SUMMARY as NULL_SUMMARY, make as make_null};
pub(crate) use tar::{SUMMARY as TAR_SUMMARY, make as make_tar};
pub(crate) use tree::{SUMMARY as RF_SUMMARY, make as make_rf};

/// What is known as today's buffer: 128 KiB.
const TODAY_BLOCK: u64 = 128 << 10;

/// Which cp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Year {
    /// coreutils 9.1.
    Today,
    /// coreutils 5.2.1.
    Y2005,
}

/// Which cp, and the bytes of its reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Profile {
    year: Year,
    block: u64,
}

impl Profile {
    /// From the parameters `profile` and `block`.
    fn from(parameters: &mut Parameters) -> Result<Self, WorkloadError> {
        let years = [("today", Year::Today), ("2005", Year::Y2005)];
        let year = parameters.choice("profile", Year::Today, &years)?;
        let default = if year == Year::Today { TODAY_BLOCK } else { 4096 };
        let block = parameters.size("block", default)?;
        if block > LARGEST_BLOCK {
            return Err(wrong("block", "is too large; at most 1GiB"));
        }
        Ok(Self { year, block })
    }

    /// In words, for descriptions.
    fn words(self) -> String {
        let block = raidlab_core::Size(self.block);
        match self.year {
            Year::Today => format!("cp of coreutils 9.1, blocks of {block}"),
            Year::Y2005 => format!("cp of coreutils 5.2 as assumed, blocks of {block}"),
        }
    }
}

/// Where a copy of a file goes, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Within the kernel, on one filesystem; with reads of this many bytes for what looks empty.
    Range(u64),
    /// By reads and writes of this many bytes.
    Blocks(u64),
}

/// The copying of one file, from its opening to its closing.
#[derive(Clone, Debug)]
struct FileCopy {
    from: FilePath,
    to: FilePath,
    way: Way,
    flags: OpenFlags,
    state: CopyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    OpenSource,
    OpenTarget,
    FirstMove,
    /// A `copy_file_range` was asked for; whether it was the first.
    Ranged {
        first: bool,
    },
    /// Reads and writes until nothing is left were.
    Copied,
    CloseSource,
    Over,
}

/// As much as cp asks `copy_file_range` for: the largest multiple of a large power of two.
const RANGE: u64 = 0x7fff_ffff_c000_0000;
const SOURCE: FileDescriptor = FileDescriptor(0);
const TARGET: FileDescriptor = FileDescriptor(1);

impl FileCopy {
    fn new(from: FilePath, to: FilePath, way: Way, year: Year) -> Self {
        let exclusive = year == Year::Today;
        let flags = OpenFlags { exclusive, truncate: false, ..OpenFlags::WRITE };
        Self { from, to, way, flags, state: CopyState::OpenSource }
    }

    /// The next operation, given how the one before went; `None` when the file is copied.
    fn next(&mut self, last: &OpResult) -> Option<Op> {
        let (fd, flags) = (SOURCE, OpenFlags::READ);
        let (op, state) = match self.state {
            CopyState::OpenSource => {
                (Op::Open { fd, path: self.from.clone(), flags }, CopyState::OpenTarget)
            }
            CopyState::OpenTarget => {
                let (path, flags) = (self.to.clone(), self.flags);
                (Op::Open { fd: TARGET, path, flags }, CopyState::FirstMove)
            }
            CopyState::FirstMove => self.more(true),
            CopyState::Ranged { first: true } if last.moved() == 0 => self.in_blocks(),
            CopyState::Ranged { .. } if last.moved() > 0 => self.more(false),
            CopyState::Ranged { .. } | CopyState::Copied => {
                (Op::Close { fd: TARGET }, CopyState::CloseSource)
            }
            CopyState::CloseSource => (Op::Close { fd }, CopyState::Over),
            CopyState::Over => return None,
        };
        self.state = state;
        Some(op)
    }

    fn more(&self, first: bool) -> (Op, CopyState) {
        match self.way {
            Way::Range(_) => (
                Op::CopyRange { from: SOURCE, to: TARGET, len: RANGE },
                CopyState::Ranged { first },
            ),
            Way::Blocks(_) => self.in_blocks(),
        }
    }

    fn in_blocks(&self) -> (Op, CopyState) {
        let (Way::Range(len) | Way::Blocks(len)) = self.way;
        (Op::Copy { from: SOURCE, to: TARGET, len }, CopyState::Copied)
    }
}

#[cfg(test)]
mod tests;
