//! A file or block device that is only read.

use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::md::{Inspected, inspect};
use raidlab_metadata::{Source, Unreadable};

use crate::failure::Failure;

/// A file counts as blank when so many bytes at both ends are zero: all that tools for partition tables,
/// filesystems and arrays look at first lies there.
pub(super) const LOOKED_AT: u64 = 1 << 20;

/// A device that is read.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    sectors: Sectors,
}

impl Disk {
    /// Opens it for reading only: no byte of it can be changed through it.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
        // Before it is opened: that waits at a FIFO for somebody at the other end, and has some devices do something.
        check(&path.metadata().map_err(failed)?, path)?;
        let mut file = File::open(path).map_err(failed)?;
        check(&file.metadata().map_err(failed)?, path)?;
        let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(Self { file, sectors: Sectors(length / SECTOR_BYTES) })
    }

    /// The file.
    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// The file alone.
    pub(super) fn into_file(self) -> File {
        self.file
    }
}

/// What is the same of a file or block device by whatever name.
pub(super) fn identity(path: &Path) -> Option<(bool, u64, u64)> {
    let there = path.metadata().ok()?;
    Some(match there.file_type().is_block_device() {
        true => (true, there.rdev(), 0),
        false => (false, there.dev(), there.ino()),
    })
}

fn check(there: &Metadata, path: &Path) -> Result<(), Failure> {
    let kind = there.file_type();
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    let what = "is neither a file nor a block device";
    Err(Failure::input(format!("{} {what}", path.display())))
}

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        self.sectors
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        self.file.read_exact_at(into, at.bytes()).map_err(|_| Unreadable)
    }
}

/// What a device carries of md.
pub(super) fn look(path: &Path) -> Result<Inspected, Failure> {
    Ok(inspect(&mut Disk::open(path)?))
}

/// Whether both ends are zero.
pub(super) fn is_blank(disk: &Disk) -> io::Result<bool> {
    let length = disk.sectors().bytes();
    let len = LOOKED_AT.min(length);
    let mut bytes = vec![0; len as usize];
    for at in [0, length - len] {
        disk.file().read_exact_at(&mut bytes, at)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}
