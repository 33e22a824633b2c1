//! Room for what is written to a sparse member file: asked for before a write goes to any member, so that a full
//! filesystem refuses a request and not a member.
//!
//! Fault model: others fill the filesystem at any time. Safe where `fallocate` keeps its promise: what was
//! allocated can be written. It does not on filesystems that write anew what is written (btrfs and others): there
//! a member fails as before, and is named. Tests: `tests/no_room.rs`, `tests/full.rs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use rustix::fs::FallocateFlags;
use rustix::io::retry_on_intr;

/// Room is asked for in runs of this many sectors (1 MiB), as far as there is that much.
const RUN: u64 = 2048;

/// Which runs of a member file have room.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// A bit for each run; one that is set has room.
    has: Vec<u64>,
    runs: u64,
    /// Runs that are not known to have room.
    missing: u64,
    /// Sectors of the member.
    sectors: u64,
}

impl Room {
    /// What a file has room for that holds `sectors` of a member: anything else than a regular file, and one
    /// without holes, has all.
    pub(super) fn of(file: &File, sectors: Sectors) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self::default());
        }
        let runs = sectors.0.div_ceil(RUN);
        // `st_blocks` is in units of 512 bytes on Linux.
        let has_holes = metadata.blocks() * SECTOR_BYTES < metadata.len();
        let (fill, missing) = if has_holes { (0, runs) } else { (u64::MAX, 0) };
        let has = vec![fill; runs.div_ceil(64) as usize];
        Ok(Self { has, runs, missing, sectors: sectors.0 })
    }

    /// Whether a write may need room.
    #[inline]
    pub(super) fn is_missing(&self) -> bool {
        self.missing > 0
    }

    /// Whether all of a range has room.
    pub(super) fn has(&self, at: Sector, len: Sectors) -> bool {
        let mut runs = at.0 / RUN..(at.0 + len.0).div_ceil(RUN).min(self.runs);
        runs.all(|run| self.has[(run / 64) as usize] & 1 << (run % 64) != 0)
    }

    /// Asks for the room of a range of the member, whose data start at `data_offset` of the file. Fails only where
    /// there is none: what else is wrong with the file, the write to it tells, and may be the member's end, not the
    /// array's.
    pub(super) fn reserve(
        &mut self,
        file: &File,
        data_offset: Sectors,
        (at, len): (Sector, Sectors),
    ) -> io::Result<()> {
        // Asked at each write, also for all of a log device.
        if !self.is_missing() {
            return Ok(());
        }
        let end = (at.0 + len.0).min(self.sectors);
        for run in at.0 / RUN..end.div_ceil(RUN).min(self.runs) {
            let (word, bit) = ((run / 64) as usize, 1 << (run % 64));
            if self.has[word] & bit != 0 {
                continue;
            }
            let (start, stop) = (run * RUN, ((run + 1) * RUN).min(self.sectors));
            match allocate(file, data_offset.0 + start..data_offset.0 + stop) {
                Ok(()) => {
                    self.has[word] |= bit;
                    self.missing -= 1;
                }
                // There may be room for what is needed now, if not for all of the run.
                Err(error) if is_no_room(&error) => {
                    let (start, stop) = (start.max(at.0), stop.min(end));
                    let needed = allocate(file, data_offset.0 + start..data_offset.0 + stop);
                    if let Err(error) = needed
                        && is_no_room(&error)
                    {
                        return Err(error);
                    }
                }
                // Where it cannot be asked for, nobody knows before the write.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) =>
                {
                    self.missing = 0;
                    self.has.fill(u64::MAX);
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// A range is given back to the filesystem.
    pub(super) fn give_back(&mut self, at: Sector, len: Sectors) {
        for run in at.0 / RUN..(at.0 + len.0).div_ceil(RUN).min(self.runs) {
            let (word, bit) = ((run / 64) as usize, 1 << (run % 64));
            self.missing += u64::from(self.has[word] & bit != 0);
            self.has[word] &= !bit;
        }
    }
}

/// Whether an error says that there is no room.
fn is_no_room(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

fn allocate(file: &File, sectors: std::ops::Range<u64>) -> io::Result<()> {
    let (offset, len) =
        (sectors.start * SECTOR_BYTES, (sectors.end - sectors.start) * SECTOR_BYTES);
    let allocate = || rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, offset, len);
    Ok(retry_on_intr(allocate)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only that there is no room refuses a write. A file that cannot be changed stands for one whose drive is broken.
    #[test]
    fn what_else_is_wrong_is_left_to_the_write() {
        let path = std::env::temp_dir().join(format!("raidlab-room-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        file.set_len(8 << 20).unwrap();
        let broken = File::open(&path).unwrap();
        let mut room = Room::of(&broken, Sectors(8 << 11)).unwrap();
        assert!(room.is_missing());
        room.reserve(&broken, Sectors(0), (Sector(5000), Sectors(8))).unwrap();
        assert!(!room.has(Sector(5000), Sectors(8)), "nobody knows");
        room.reserve(&file, Sectors(0), (Sector(5000), Sectors(8))).unwrap();
        assert!(room.has(Sector(5000), Sectors(8)));
        std::fs::remove_file(&path).unwrap();
    }
}
