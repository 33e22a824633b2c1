//! A device opened exclusively, from before it is looked at until nothing is written any more.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Device, DeviceRefusal, SaveDirectory};
use crate::error::{EngineError, EngineErrorKind};

/// How much of each end of a device [`Claim::save_ends`] saves, in bytes: all that tools for partition
/// tables, filesystems and arrays look at first lies there.
pub const SAVED_BYTES: u64 = 1 << 20;

const CLAIM: &str = "claim a device";

/// A device with the right to it, where it was to be had.
#[derive(Debug)]
pub struct Claim {
    device: Device,
    /// `None`: not to be had; the device's refusals say why.
    file: Option<Claimed>,
}

/// A device that is open exclusively.
#[derive(Debug)]
struct Claimed {
    file: File,
    number: u64,
}

/// The numbers of the devices that claims of this process have.
static CLAIMED: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Whether a claim of this process has the device of this number.
pub(super) fn is_claimed(number: u64) -> bool {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).contains(&number)
}

impl Claimed {
    fn new(file: File) -> io::Result<Self> {
        let number = file.metadata()?.rdev();
        CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Ok(Self { file, number })
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = claimed.iter().position(|one| *one == self.number) {
            claimed.swap_remove(at);
        }
    }
}

impl Claim {
    /// Opens a device exclusively, for writing when `write` is set, and looks at it then. A device that
    /// is refused is not an error: [`Device::refusals`] says why, and there is no [`file`](Self::file).
    ///
    /// # Errors
    /// As [`Device::inspect`]; [`Io`](EngineErrorKind::Io) also when the user may not open it.
    pub fn take(path: &Path, write: bool) -> Result<Self, EngineError> {
        let failed = |error| EngineError::io(CLAIM, path, error);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.file_type().is_block_device() {
            let error = EngineError::new(EngineErrorKind::Member, CLAIM, "is no block device");
            return Err(error.at_path(path));
        }
        let opened = open_patiently(path, write);
        let (file, refusal) = match opened {
            Ok(file) => (Some(file), None),
            Err(error) => match error.raw_os_error() {
                Some(libc::EBUSY) => (None, Some(DeviceRefusal::Busy)),
                Some(libc::EROFS) => (None, Some(DeviceRefusal::ReadOnly)),
                Some(libc::ENOMEDIUM | libc::ENXIO) => (None, Some(DeviceRefusal::Empty)),
                _ => return Err(failed(error)),
            },
        };
        let mut device = Device::inspect(path)?;
        // What the path names must still be what was opened.
        let now = std::fs::metadata(path).map_err(failed)?.rdev();
        let held = file.as_ref().map(File::metadata).transpose().map_err(failed)?;
        if held.is_some_and(|held| held.rdev() != now) {
            let reason = "it became another device meanwhile; try again";
            return Err(EngineError::new(EngineErrorKind::Member, CLAIM, reason).at_path(path));
        }
        match refusal {
            // Whoever holds it is known already.
            Some(DeviceRefusal::Busy) if !device.refusals.is_empty() => {}
            Some(refusal) if !device.refusals.contains(&refusal) => device.refusals.push(refusal),
            _ => {}
        }
        let file = file.filter(|_| device.refusals.is_empty());
        let file = file.map(Claimed::new).transpose().map_err(failed)?;
        Ok(Self { device, file })
    }

    /// What it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Another descriptor of the exclusively opened device; it stays claimed while any is open.
    ///
    /// # Errors
    /// [`Refused`](EngineErrorKind::Refused) when the device was refused; [`Io`](EngineErrorKind::Io) when the
    /// system has no descriptor left.
    pub fn file(&self) -> Result<File, EngineError> {
        match &self.file {
            Some(claimed) => {
                let file = claimed.file.try_clone();
                file.map_err(|e| EngineError::io(CLAIM, &self.device.path, e))
            }
            None => {
                let why: Vec<String> =
                    self.device.refusals.iter().map(ToString::to_string).collect();
                let error = EngineError::new(EngineErrorKind::Refused, CLAIM, why.join("; "));
                Err(error.at_path(&self.device.path))
            }
        }
    }

    /// The device opened once more, through the page cache: descriptors of [`file`](Self::file) share whether they go
    /// past it, which members set.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn cached_file(&self) -> Result<File, EngineError> {
        let held = self.file()?;
        // By what is open, as a path can have become another device's.
        let opened = OpenOptions::new().read(true).write(true).open(path_of(&held));
        opened.map_err(|error| EngineError::io(CLAIM, &self.device.path, error))
    }

    /// Saves the first and the last MiB in a new file in `directory`, the first before the last, durably.
    /// Gives its path.
    ///
    /// # Errors
    /// [`Io`](EngineErrorKind::Io) when it cannot be read or written, as [`file`](Self::file) otherwise.
    pub fn save_ends(&self, directory: &SaveDirectory) -> Result<PathBuf, EngineError> {
        const SAVE: &str = "save the ends of a device";
        let mut from = self.file()?;
        let read = |error| EngineError::io(SAVE, &self.device.path, error);
        let len = SAVED_BYTES.min(self.device.size);
        let mut ends = vec![0; 2 * len as usize];
        let (first, last) = ends.split_at_mut(len as usize);
        for (start, part) in [(0, first), (self.device.size - len, last)] {
            from.seek(SeekFrom::Start(start)).map_err(read)?;
            from.read_exact(part).map_err(read)?;
        }
        let mut number = 0u32;
        loop {
            let name =
                format!("raidlab-saved-{}-{}-{number}.bin", self.device.name, std::process::id());
            let path = directory.path().join(&name);
            let failed = |error| EngineError::io(SAVE, &path, error);
            match directory.make_file(&name) {
                Ok(mut file) => {
                    file.write_all(&ends).and_then(|()| file.sync_all()).map_err(failed)?;
                    directory.sync().map_err(failed)?;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// Where what is open can be opened once more. A thread that serves an array has descriptors of its own.
pub(super) fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/thread-self/fd/{}", file.as_raw_fd()))
}

/// Opens a device exclusively. The kernel lets go what a killed process held through a ring only after
/// the process is gone, so one that is busy is asked again for a second.
pub(super) fn open_patiently(path: &Path, write: bool) -> io::Result<File> {
    const AGAIN: Duration = Duration::from_millis(20);
    const TIMES: u32 = 50;
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_EXCL | libc::O_CLOEXEC);
    for _ in 0..TIMES {
        match options.open(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(AGAIN),
            other => return other,
        }
    }
    options.open(path)
}
