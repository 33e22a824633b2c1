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
/// Runs that are remembered: those of 64 TiB, in 8 MiB of memory. What lies behind them is asked for at each write.
const MOST_RUNS: u64 = 1 << 26;

/// Which runs of a member file have room.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// A bit for each run that is remembered; one that is set has room.
    has: Vec<u64>,
    runs: u64,
    /// Runs of these that are not known to have room.
    missing: u64,
    /// Those behind them may have none.
    is_missing_behind: bool,
    /// Sectors of the member.
    sectors: u64,
}

impl Room {
    /// What a file has room for that holds `sectors` of a member: anything else than a regular file, and one
    /// without holes, has all.
    pub(super) fn of(file: &File, sectors: Sectors) -> io::Result<Self> {
        Self::remembering(MOST_RUNS, file, sectors)
    }

    /// With so many runs remembered at most.
    fn remembering(most: u64, file: &File, sectors: Sectors) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(Self::default());
        }
        let runs = sectors.0.div_ceil(RUN);
        // `st_blocks` is in units of 512 bytes on Linux.
        let has_holes = metadata.blocks() * SECTOR_BYTES < metadata.len();
        let words = runs.min(most).div_ceil(64);
        let remembered = runs.min(words * 64);
        let (fill, missing) = if has_holes { (0, remembered) } else { (u64::MAX, 0) };
        let is_missing_behind = has_holes && remembered < runs;
        let has = vec![fill; words as usize];
        Ok(Self { has, runs, missing, is_missing_behind, sectors: sectors.0 })
    }

    /// Whether a write may need room.
    #[inline]
    pub(super) fn is_missing(&self) -> bool {
        self.missing > 0 || self.is_missing_behind
    }

    /// Whether a run has room.
    fn is_set(&self, run: u64) -> bool {
        match self.has.get((run / 64) as usize) {
            Some(word) => word & 1 << (run % 64) != 0,
            None => !self.is_missing_behind,
        }
    }

    /// Whether all of a range has room.
    pub(super) fn has(&self, at: Sector, len: Sectors) -> bool {
        let mut runs = at.0 / RUN..(at.0 + len.0).div_ceil(RUN).min(self.runs);
        runs.all(|run| self.is_set(run))
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
            if self.is_set(run) {
                continue;
            }
            let (start, stop) = (run * RUN, ((run + 1) * RUN).min(self.sectors));
            match allocate(file, data_offset.0 + start..data_offset.0 + stop) {
                Ok(()) => {
                    if let Some(word) = self.has.get_mut((run / 64) as usize) {
                        *word |= 1 << (run % 64);
                        self.missing -= 1;
                    }
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
                    (self.missing, self.is_missing_behind) = (0, false);
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
            match self.has.get_mut((run / 64) as usize) {
                Some(word) => {
                    self.missing += *word >> (run % 64) & 1;
                    *word &= !(1 << (run % 64));
                }
                None => self.is_missing_behind = true,
            }
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

    /// A member takes no more memory than that of 64 TiB, and room behind what is remembered is asked for all the same.
    #[test]
    fn a_large_member_takes_bounded_memory() {
        let path = std::env::temp_dir().join(format!("raidlab-room-large-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        // A run more than a word is for.
        let sectors = Sectors(65 * RUN);
        file.set_len(sectors.bytes()).unwrap();
        let large = Room::of(&file, Sectors(7 << 51)).unwrap();
        assert_eq!(large.has.len() as u64, MOST_RUNS / 64, "of 7 EiB");
        assert!(!large.has(Sector(6 << 51), Sectors(8)));
        let mut room = Room::remembering(10, &file, sectors).unwrap();
        let last = (Sector(64 * RUN + 16), Sectors(8));
        for (at, len) in [(Sector(0), Sectors(64 * RUN)), last] {
            room.reserve(&file, Sectors(0), (at, len)).unwrap();
        }
        assert!(room.has(Sector(0), Sectors(64 * RUN)) && room.missing == 0);
        assert!(file.metadata().unwrap().blocks() >= sectors.0, "the last run has room");
        assert!(room.is_missing() && !room.has(last.0, last.1), "and is asked for again");
        // A file without holes has room everywhere, until some is given back.
        let mut room = Room::remembering(10, &file, sectors).unwrap();
        assert!(!room.is_missing() && room.has(last.0, last.1));
        room.give_back(last.0, last.1);
        assert!(room.is_missing() && !room.has(last.0, last.1));
        std::fs::remove_file(&path).unwrap();
    }
}
