//! The directory in which the ends of devices are saved, and a log of what was done.
//!
//! Fault model: others may write to a directory on the way there, plant links under the names that are
//! written, or have a file of theirs there by another name. Safe because no part of the path is followed through
//! a symbolic link, what is written is named relative to the open directory, saved ends are always
//! new files, and the log is appended to only where it has no other name. Test:
//! `crates/cli/tests/block_devices.rs`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::error::{EngineError, EngineErrorKind};
use crate::paths::{Reach, open_without_links};

const SAVE: &str = "open a directory to save in";

/// An open directory for what is saved.
#[derive(Debug)]
pub struct SaveDirectory {
    directory: File,
    path: PathBuf,
}

impl SaveDirectory {
    /// Opens a directory, and makes it and those above it where they are missing, for its owner only.
    ///
    /// # Errors
    /// [`Refused`](EngineErrorKind::Refused) when a part of the path is a symbolic link,
    /// [`Io`](EngineErrorKind::Io) when the system refuses.
    pub fn open(path: &Path) -> Result<Self, EngineError> {
        let opened = walk(path).map_err(|error| failed(SAVE, path, error))?;
        Ok(Self { directory: opened, path: path.to_path_buf() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new file, for its owner only; an error when something of that name is there.
    pub(super) fn make_file(&self, name: &str) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        open_without_links(Some(&self.directory), name, (flags, 0o600), Reach::SameMount)
    }

    /// Makes names of new files durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    /// Opens the log `name` for appending, and makes it where it is missing. Gives its path too.
    ///
    /// # Errors
    /// [`Refused`](EngineErrorKind::Refused) when it is a link or has another name besides,
    /// [`Io`](EngineErrorKind::Io) when the system refuses.
    pub fn open_log(&self, name: &str) -> Result<SaveLog, EngineError> {
        const OPEN: &str = "open the log of devices";
        let path = self.path.join(name);
        // Without O_NONBLOCK a planted pipe would hold the call up.
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_NONBLOCK;
        let directory = Some(&self.directory);
        let opened = open_without_links(directory, name, (flags, 0o600), Reach::SameMount);
        let file = opened.map_err(|error| failed(OPEN, &path, error))?;
        let metadata = file.metadata().map_err(|error| EngineError::io(OPEN, &path, error))?;
        if !metadata.is_file() || metadata.nlink() != 1 {
            let reason = "must be a regular file without another hard link";
            return Err(EngineError::new(EngineErrorKind::Refused, OPEN, reason).at_path(&path));
        }
        Ok(SaveLog { file, path })
    }
}

/// The log of what was done to devices.
#[derive(Debug)]
pub struct SaveLog {
    file: File,
    path: PathBuf,
}

impl SaveLog {
    /// Appends a line.
    ///
    /// # Errors
    /// [`Io`](EngineErrorKind::Io) when it cannot be written.
    pub fn append(&mut self, line: &str) -> Result<(), EngineError> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| EngineError::io("write the log of devices", &self.path, error))
    }
}

fn failed(operation: &'static str, path: &Path, error: io::Error) -> EngineError {
    if error.raw_os_error() != Some(libc::ELOOP) {
        return EngineError::io(operation, path, error);
    }
    let reason = "it, or a directory above it, is a symbolic link: give the path without links";
    EngineError::new(EngineErrorKind::Refused, operation, reason).at_path(path)
}

/// Goes down a path one name at a time; makes what is missing.
fn walk(path: &Path) -> io::Result<File> {
    let start = if path.is_absolute() { "/" } else { "." };
    let look = (libc::O_PATH | libc::O_DIRECTORY, 0);
    let mut at = open_without_links(None, start, look, Reach::Anywhere)?;
    for part in path.components() {
        if matches!(part, Component::RootDir | Component::CurDir | Component::Prefix(_)) {
            continue;
        }
        let name = part.as_os_str();
        let open = || open_without_links(Some(&at), name, look, Reach::Anywhere);
        let opened = match open() {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                make_directory(&at, name)?;
                open()?
            }
            other => other?,
        };
        at = opened;
    }
    let read = (libc::O_RDONLY | libc::O_DIRECTORY, 0);
    open_without_links(Some(&at), ".", read, Reach::Anywhere)
}

/// Makes a directory for its owner only; no error when another was faster.
fn make_directory(within: &File, name: &OsStr) -> io::Result<()> {
    match rustix::fs::mkdirat(within, name, Mode::from_raw_mode(0o700)) {
        Err(Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}
