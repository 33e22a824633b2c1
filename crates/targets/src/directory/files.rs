//! Where paths lie, and the files a process has open.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path as SystemPath, PathBuf};
use std::sync::Arc;

use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::{FileDescriptor, FilePath, MOST_SLOTS, OpenFlags, Root};
use rustix::fs::{CWD, Mode, OFlags};

use super::system;

/// The directories that paths start at; names are looked up relative to them, as programs that have gone
/// to the directory under test do.
#[derive(Debug)]
pub(super) struct Roots {
    target: (File, PathBuf),
    source: Option<(File, PathBuf)>,
}

fn invalid(path: &FilePath, reason: &str) -> EngineError {
    let reason = format!("`{path}`: {reason}");
    EngineError::new(EngineErrorKind::InvalidRequest, "use a path of the workload", reason)
}

impl Roots {
    pub(super) fn open(
        target: &SystemPath,
        source: Option<&SystemPath>,
    ) -> Result<Self, EngineError> {
        let open = |path: &SystemPath| {
            let opened = File::open(path);
            let opened = opened.map_err(|error| EngineError::io("open the directory", path, error));
            opened.map(|file| (file, path.to_path_buf()))
        };
        Ok(Self { target: open(target)?, source: source.map(open).transpose()? })
    }

    fn root(&self, path: &FilePath) -> Result<&(File, PathBuf), EngineError> {
        match path.root {
            Root::Target => Ok(&self.target),
            Root::Source => self
                .source
                .as_ref()
                .ok_or_else(|| invalid(path, "the plan has no files from elsewhere")),
            Root::Null => Err(invalid(path, "it can only be opened")),
        }
    }

    /// The directories there are.
    pub(super) fn directories(&self) -> impl Iterator<Item = (&File, &SystemPath)> {
        let all = std::iter::once(&self.target).chain(&self.source);
        all.map(|(file, path)| (file, path.as_path()))
    }

    /// The directory and the name in it, for a system call; the name is put into `text`.
    pub(super) fn name<'t>(
        &'t self,
        path: &FilePath,
        text: &'t mut Vec<u8>,
    ) -> Result<(BorrowedFd<'t>, &'t CStr), EngineError> {
        let (directory, _) = self.root(path)?;
        let parts = || path.text.split('/');
        if !path.text.is_empty() && parts().any(|part| part.is_empty() || part == "..") {
            return Err(invalid(path, "parts may be neither empty nor `..`"));
        }
        let name = if path.text.is_empty() { "." } else { &path.text };
        Ok((directory.as_fd(), c_string(name, text).ok_or_else(|| invalid(path, NUL))?))
    }

    /// Where it is in the whole system, for errors.
    pub(super) fn full(&self, path: &FilePath) -> PathBuf {
        match self.root(path) {
            Ok((_, root)) if path.text.is_empty() => root.clone(),
            Ok((_, root)) => root.join(&*path.text),
            Err(_) => PathBuf::from(path.to_string()),
        }
    }

    /// Opens a file as a workload wants it.
    pub(super) fn open_file(
        &self,
        path: &FilePath,
        flags: OpenFlags,
        text: &mut Vec<u8>,
    ) -> Result<OwnedFd, EngineError> {
        let (directory, name) = match path.root {
            Root::Null => (CWD, c"/dev/null"),
            _ => self.name(path, text)?,
        };
        let open =
            || system::open(directory, name, system_flags(flags), Mode::from_raw_mode(0o644));
        let opened = match open() {
            // The threads here share the files that the originals' processes would each have alone.
            Err(error)
                if error.raw_os_error() == Some(libc::EMFILE) && system::allow_more_files() =>
            {
                open()
            }
            other => other,
        };
        opened.map_err(|error| EngineError::io("open a file", &self.full(path), error))
    }
}

pub(super) const NUL: &str = "it contains a zero byte";

/// The text as a C string in `into`; `None` when it contains a zero byte.
pub(super) fn c_string<'t>(text: &str, into: &'t mut Vec<u8>) -> Option<&'t CStr> {
    into.clear();
    into.extend_from_slice(text.as_bytes());
    into.push(0);
    CStr::from_bytes_with_nul(into).ok()
}

fn system_flags(flags: OpenFlags) -> OFlags {
    let access = match (flags.read, flags.write) {
        (_, false) => OFlags::RDONLY,
        (false, true) => OFlags::WRONLY,
        (true, true) => OFlags::RDWR,
    };
    let wanted = [
        (flags.create, OFlags::CREATE),
        (flags.exclusive, OFlags::EXCL),
        (flags.truncate, OFlags::TRUNC),
        (flags.direct, OFlags::DIRECT),
        (flags.sync, OFlags::SYNC),
    ];
    wanted.into_iter().filter(|(wanted, _)| *wanted).fold(access, |all, (_, flag)| all | flag)
}

/// A file in a file descriptor.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Shared with operations that are under way.
    pub(super) file: Arc<OwnedFd>,
    pub(super) path: FilePath,
    /// Where the next read or write goes: the same as the kernel's own.
    pub(super) position: u64,
}

impl OpenFile {
    /// The file, to be used while other parts of a worker change.
    pub(super) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }
}

/// The file descriptors of a process.
#[derive(Debug, Default)]
pub(super) struct Descriptors(Vec<Option<OpenFile>>);

fn wrong_slot(fd: FileDescriptor, reason: &str) -> EngineError {
    let reason = format!("fd {}: {reason}: a fault in the workload", fd.0);
    EngineError::new(
        EngineErrorKind::InvalidRequest,
        "use a file descriptor of the workload",
        reason,
    )
}

impl Descriptors {
    #[inline]
    pub(super) fn get(&mut self, fd: FileDescriptor) -> Result<&mut OpenFile, EngineError> {
        let file = self.0.get_mut(usize::from(fd.0)).and_then(Option::as_mut);
        file.ok_or_else(|| wrong_slot(fd, "nothing is open in it"))
    }

    pub(super) fn check_free(&self, fd: FileDescriptor) -> Result<(), EngineError> {
        let index = usize::from(fd.0);
        if index >= MOST_SLOTS {
            return Err(wrong_slot(fd, &format!("there are only {MOST_SLOTS}")));
        }
        match self.0.get(index) {
            Some(Some(_)) => Err(wrong_slot(fd, "a file is open in it already")),
            _ => Ok(()),
        }
    }

    /// Puts a file into a file descriptor that is free.
    pub(super) fn put(&mut self, fd: FileDescriptor, path: FilePath, file: OwnedFd) {
        let index = usize::from(fd.0);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(OpenFile { file: Arc::new(file), path, position: 0 });
    }

    /// Takes a file out and closes it; the inner error is the system's.
    pub(super) fn close(
        &mut self,
        fd: FileDescriptor,
    ) -> Result<(FilePath, io::Result<()>), EngineError> {
        self.get(fd)?;
        let taken = self.0.get_mut(usize::from(fd.0)).and_then(Option::take);
        let taken = taken.ok_or_else(|| wrong_slot(fd, "nothing is open in it"))?;
        // One that operations are still under way on is closed with the last of them.
        let closed = Arc::try_unwrap(taken.file).map_or(Ok(()), system::close);
        Ok((taken.path, closed))
    }
}
