//! What comparing and locating find, run by run, to the sector.

use std::ops::Range;

use raidlab_core::SECTOR_BYTES;
use raidlab_core::contract::JobResult;
use raidlab_parity::{Block, Kernels, Located, Wrong};

use super::plan::Datum;

/// What was found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nothing is wrong.
    #[default]
    Nothing,
    /// The source at this position alone is wrong, in these bytes.
    One(usize, Range<usize>),
    /// More than that is wrong, in these bytes.
    Several(Range<usize>),
}

impl Seen {
    /// Compares a run that starts `base` bytes behind the start of the operands.
    ///
    /// # Safety
    /// All are valid for reads of `run` bytes, which nobody changes.
    pub(super) unsafe fn compare(
        &mut self,
        kernels: &Kernels,
        starts: &[*mut u8],
        run: usize,
        base: usize,
    ) {
        let Some((first, others)) = starts.split_first() else { return };
        for other in others {
            // SAFETY: promised by the caller.
            let found =
                unsafe { kernels.compare_raw(&[first.cast_const(), other.cast_const()], run) };
            if let Some(bytes) = found {
                self.add(Self::Several(bytes), base);
            }
        }
    }

    /// Takes what was found `base` bytes behind the start of the operands.
    pub(super) fn add(&mut self, found: Self, base: usize) {
        let moved = |bytes: Range<usize>| bytes.start + base..bytes.end + base;
        let both = |one: Range<usize>, other: Range<usize>| {
            let other = moved(other);
            one.start.min(other.start)..one.end.max(other.end)
        };
        *self = match (std::mem::take(self), found) {
            (before, Self::Nothing) => before,
            (Self::Nothing, Self::One(block, bytes)) => Self::One(block, moved(bytes)),
            (Self::Nothing, Self::Several(bytes)) => Self::Several(moved(bytes)),
            (Self::One(block, one), Self::One(other, bytes)) if block == other => {
                Self::One(block, both(one, bytes))
            }
            (
                Self::One(_, one) | Self::Several(one),
                Self::One(_, bytes) | Self::Several(bytes),
            ) => Self::Several(both(one, bytes)),
        };
    }

    /// The result, ranges in whole sectors.
    pub(super) fn result(self) -> JobResult {
        match self {
            Self::Nothing => JobResult::Equal,
            Self::One(block, _) => match u16::try_from(block) {
                Ok(position) => JobResult::Located(position),
                Err(_) => JobResult::Failed,
            },
            Self::Several(bytes) => JobResult::Differs {
                from: (bytes.start as u64 / SECTOR_BYTES) as u32,
                to: (bytes.end as u64).div_ceil(SECTOR_BYTES) as u32,
            },
        }
    }
}

/// Which source of a run does not fit the others: `blocks` are the data, `which` the positions of P and Q
/// among the sources.
///
/// A source is blamed only when every wrong byte names it.
///
/// # Safety
/// All are valid for reads of `run` bytes, which nobody changes.
pub(super) unsafe fn locate(
    kernels: &Kernels,
    data: &[Datum],
    blocks: &[Block],
    which: (usize, usize),
    (p, q): (*mut u8, *mut u8),
    run: usize,
) -> Seen {
    // SAFETY: promised by the caller.
    match unsafe { kernels.locate_raw(blocks, p, q, run) } {
        Located::Consistent => Seen::Nothing,
        Located::One { block: Wrong::Data(index), bytes } => Seen::One(data[index].operand, bytes),
        Located::One { block: Wrong::P, bytes } => Seen::One(which.0, bytes),
        Located::One { block: Wrong::Q, bytes } => Seen::One(which.1, bytes),
        Located::Several { bytes } => Seen::Several(bytes),
    }
}
