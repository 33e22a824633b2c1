//! Whether a member's file still reaches to the member's end.
//!
//! Fault model: somebody cuts a file short while its array runs. A write behind the new end would make the file longer
//! again, with a hole in between, which reads as zeroes as if these were data. Safe because whatever goes to a
//! regular file is handed over only while that is as long as its member, and the end of the file is no error of one
//! block, which would be written anew, but the end of the member. The length is asked for once for all that goes to a
//! member together, by a call that reads nothing. What is at the kernel just then may still make the file longer: the
//! next I/O finds it short all the same, unless that write was one of the member's last block.
//! Tests: `tests/cut_short.rs`.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::contract::IoOutcome;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use rustix::fs::{SeekFrom, seek};

/// Up to where a member's file must reach.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The member's end, in bytes of its file; `None` for what has a length of its own, as devices have.
    end: Option<u64>,
    /// It did not reach there once: what it holds is not to be believed, however long it is now.
    cut: AtomicBool,
}

impl Reach {
    /// Of a regular file, if it is one, that must have so many sectors.
    pub(super) fn of(is_file: bool, sectors: Sectors) -> Self {
        Self { end: is_file.then(|| sectors.bytes()), cut: AtomicBool::new(false) }
    }

    /// Whether the file ends before the member does, or did once.
    pub(super) fn is_short(&self, file: &File) -> bool {
        let Some(end) = self.end else { return false };
        // Of the calls that tell a length the cheapest one; it moves the position, which nothing uses.
        if seek(file, SeekFrom::End(0)).is_ok_and(|length| length < end) {
            self.cut.store(true, Ordering::Relaxed);
        }
        self.was_short()
    }

    /// Whether it was found to.
    pub(super) fn was_short(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// What it means that a read or write came to the end of the file, `done` bytes after sector `at` of the member.
    #[cold]
    pub(super) fn met_end(&self, at: Sector, done: u64) -> IoOutcome {
        if self.end.is_none() {
            return IoOutcome::MediaError { first_bad: Sector(at.0 + done / SECTOR_BYTES) };
        }
        self.cut.store(true, Ordering::Relaxed);
        IoOutcome::Gone
    }
}
