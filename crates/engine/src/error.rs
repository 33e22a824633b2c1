//! The one error type of this crate: kind, context, source.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use raidlab_core::contract::{Admin, Refusal, Scrub};

use crate::mismatch::Mismatch;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineErrorKind {
    /// The array cannot be made of these members and this layout.
    Config,
    /// A member cannot be opened or is unusable.
    Member,
    /// A system call failed.
    Io,
    /// The filesystem has not enough room.
    NoRoom,
    /// Not enough memory.
    NoMemory,
    /// The engine takes no more requests now, the buffer is in use by one, or something else uses what is
    /// to be a member.
    Busy,
    /// The request is misaligned, out of range, or its buffers do not fit.
    InvalidRequest,
    /// No remaining copy of the data can be read.
    MediaError,
    /// More members are lost than the level survives.
    ArrayFailed,
    /// The array does not start from what is on its members.
    Assemble,
    /// A command that makes no sense now; see [`EngineError::refusal`].
    Refused,
    /// The array was stopped.
    Stopped,
    /// This version does not carry out what was asked.
    NotSupported,
    /// Bytes read are not the bytes written; see [`EngineError::mismatch`].
    Mismatch,
    /// The caller's cancel flag was set.
    Cancelled,
    /// The core and the engine disagree: a fault in raidlab.
    Internal,
}

/// Why the engine could not do what was asked.
pub struct EngineError(Box<Detail>);

#[derive(Debug)]
struct Detail {
    kind: EngineErrorKind,
    operation: &'static str,
    reason: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    mismatch: Option<Mismatch>,
    refusal: Option<Refusal>,
    source: Option<io::Error>,
}

impl EngineError {
    /// `operation` in the infinitive ("open the member"), `reason` what is wrong and what would be
    /// right.
    pub fn new(kind: EngineErrorKind, operation: &'static str, reason: impl Into<String>) -> Self {
        Self(Box::new(Detail {
            kind,
            operation,
            reason: reason.into(),
            path: None,
            offset: None,
            mismatch: None,
            refusal: None,
            source: None,
        }))
    }

    /// A system call that failed.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let kind = match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => EngineErrorKind::NoRoom,
            _ => EngineErrorKind::Io,
        };
        let mut error = Self::new(kind, operation, "the system refused").at_path(path);
        error.0.source = Some(source);
        error
    }

    /// Bytes that are not what was written.
    pub fn from_mismatch(mismatch: Mismatch) -> Self {
        let mut error =
            Self::new(EngineErrorKind::Mismatch, "verify the bytes read", mismatch.to_string());
        error.0.mismatch = Some(mismatch);
        error
    }

    pub(crate) fn refused(command: Admin, refusal: Refusal) -> Self {
        let (operation, member) = match command {
            Admin::Fail(member) => ("take a member out of service", Some(member)),
            Admin::FailReplacement(member) => ("take a replacement out", Some(member)),
            Admin::Add { member, .. } => ("rebuild onto a fresh drive", Some(member)),
            Admin::ReAdd { member, .. } => ("bring a member back", Some(member)),
            Admin::Replace { member, .. } => ("replace a member", Some(member)),
            Admin::ResumeReplace { member, .. } => ("go on replacing a member", Some(member)),
            Admin::StartScrub(Scrub::Check) => ("compare redundancy", None),
            Admin::StartScrub(Scrub::Repair(_)) => ("make redundancy consistent", None),
            Admin::Pace(_) => ("change the pace of background work", None),
            Admin::StopBackground => ("stop background work", None),
            Admin::Stop => ("stop the array", None),
        };
        let of = member.map_or_else(String::new, |member| format!("member {member}: "));
        let mut error = Self::new(EngineErrorKind::Refused, operation, format!("{of}{refusal}"));
        error.0.refusal = Some(refusal);
        error
    }

    /// The caller's cancel flag was set before `operation` was done.
    pub fn cancelled(operation: &'static str) -> Self {
        Self::new(EngineErrorKind::Cancelled, operation, "cancelled")
    }

    /// The same with more words behind the reason.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.0.reason.push_str(more);
        self
    }

    /// The same with the file or directory concerned.
    #[must_use]
    pub fn at_path(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_path_buf());
        self
    }

    /// The same with the byte concerned.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> EngineErrorKind {
        self.0.kind
    }

    /// The file or directory concerned.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte concerned: of the array, or of the file when [`path`](Self::path) names one.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Why a command was refused, for [`EngineErrorKind::Refused`].
    pub fn refusal(&self) -> Option<Refusal> {
        self.0.refusal
    }

    /// Where wrong bytes were found, for [`EngineErrorKind::Mismatch`].
    pub fn mismatch(&self) -> Option<&Mismatch> {
        self.0.mismatch.as_ref()
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.0;
        write!(f, "cannot {}", detail.operation)?;
        if let Some(path) = &detail.path {
            write!(f, " ({})", path.display())?;
        }
        if let Some(offset) = detail.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", detail.reason)?;
        match &detail.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
