//! What a target without files carries out, and what must hold of it on every one.

use raidlab_core::Size;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::op::Class;

/// What a target without files carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads so many bytes from a place on.
    Read(u64, u64),
    /// Writes them.
    Write(u64, u64),
    /// Makes every write of the process durable.
    Sync,
}

impl Request {
    /// First byte and how many; none for what concerns all.
    pub const fn span(self) -> (u64, u64) {
        match self {
            Self::Read(at, len) | Self::Write(at, len) => (at, len),
            Self::Sync => (0, 0),
        }
    }

    /// What it counts as.
    pub const fn class(self) -> Class {
        match self {
            Self::Read(..) => Class::Read,
            Self::Write(..) => Class::Write,
            Self::Sync => Class::Other,
        }
    }

    /// Whether one must wait for the other, whosever they are: they overlap, and one is a write. So do files under
    /// POSIX, and a read has one right answer by which it can be verified. Modelled arrays keep to it too, as they are
    /// to tell what real ones do.
    pub const fn conflicts(self, other: Self) -> bool {
        let both_read = matches!((self, other), (Self::Read(..), Self::Read(..)));
        let ((at, len), (start, count)) = (self.span(), other.span());
        !both_read && at < start + count && start < at + len
    }

    /// Checks that it lies on whole blocks of `block` bytes of a target of `space` bytes. How long a block is is up to
    /// the target: a sector of the array where nothing is kept, 4 KiB where each block is verified.
    ///
    /// # Errors
    /// [`WorkloadErrorKind::Block`] or [`WorkloadErrorKind::DoesNotFit`].
    pub fn check(self, block: u64, space: u64) -> Result<(), WorkloadError> {
        let (at, len) = self.span();
        let wrong = |kind, reason| Err(WorkloadError::new(kind, "target", reason));
        if !at.is_multiple_of(block) || !len.is_multiple_of(block) {
            let block = Size(block);
            let reason =
                format!("{len} bytes at byte {at}: this target works in whole blocks of {block}");
            return wrong(WorkloadErrorKind::Block, reason);
        }
        if at.checked_add(len).is_none_or(|end| end > space) {
            let reason = format!("{len} bytes at byte {at} pass its end, {space} bytes");
            return wrong(WorkloadErrorKind::DoesNotFit, reason);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_overlaps_with_a_write_wait() {
        let read = Request::Read(8192, 8192);
        let write = Request::Write(8192, 8192);
        assert!(write.conflicts(Request::Read(12288, 4096)));
        assert!(write.conflicts(Request::Write(4096, 8192)));
        assert!(read.conflicts(Request::Write(0, 1 << 20)));
        assert!(!read.conflicts(Request::Read(8192, 8192)));
        assert!(!write.conflicts(Request::Write(16384, 4096)));
        assert!(!write.conflicts(Request::Write(4096, 4096)));
        assert!(!write.conflicts(Request::Sync) && !Request::Sync.conflicts(write));
    }

    #[test]
    fn requests_lie_on_blocks_within_the_target() {
        let check =
            |at, len, block| Request::Write(at, len).check(block, 8192).map_err(|error| error.kind);
        assert_eq!(check(4096, 4096, 4096), Ok(()));
        assert_eq!(check(512, 1024, 512), Ok(()));
        assert_eq!(check(512, 4096, 4096), Err(WorkloadErrorKind::Block));
        assert_eq!(check(0, 100, 512), Err(WorkloadErrorKind::Block));
        assert_eq!(check(8192, 512, 512), Err(WorkloadErrorKind::DoesNotFit));
        assert_eq!(check(u64::MAX - 511, 512, 512), Err(WorkloadErrorKind::DoesNotFit));
        assert_eq!(Request::Sync.check(4096, 0), Ok(()));
    }
}
