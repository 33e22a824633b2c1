//! The error of this crate.

use std::error::Error;
use std::fmt;

use raidlab_toml_file::{Fault, FileError, Source, Wrong};

/// What kind of thing is wrong with a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No drive of this name is compiled in.
    UnknownDrive,
    /// The file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// A key that drive files do not have.
    UnknownKey,
    /// A figure, or a part of one, is not there.
    Missing,
    /// A value has the wrong type.
    WrongType,
    /// A value lies outside the range it may have.
    OutOfRange,
    /// A value cannot go together with another one.
    Contradiction,
}

/// A drive that cannot be modelled: what is wrong, where, and what would be right.
#[derive(Debug)]
pub struct ModelError {
    kind: ModelErrorKind,
    path: String,
    line: Option<usize>,
    key: Option<String>,
    reason: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, path: &str, reason: impl Into<String>) -> Self {
        let path = path.to_owned();
        Self { kind, path, line: None, key: None, reason: reason.into(), source: None }
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn for_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn because(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    pub(crate) fn hinting(mut self, hint: &str) -> Self {
        self.reason.push_str(hint);
        self
    }

    /// What kind of thing is wrong.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// The drive file, or the name that was asked for.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line in the file, from 1; none when the trouble is not in one place.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The key in the file, such as `average_seek` or `average_seek.ms`.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What is wrong and what would be right, without the place.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl FileError for ModelError {
    fn of(wrong: Wrong) -> Self {
        let kind = match wrong.fault {
            Fault::Syntax => ModelErrorKind::Syntax,
            Fault::UnknownKey => ModelErrorKind::UnknownKey,
            Fault::MissingKey => ModelErrorKind::Missing,
            Fault::WrongType | Fault::WrongUnit => ModelErrorKind::WrongType,
            Fault::WrongValue => ModelErrorKind::OutOfRange,
        };
        let mut error = Self::new(kind, &wrong.path, wrong.reason);
        error.line = wrong.line.map(|line| line as usize);
        error.key = Some(wrong.key).filter(|key| !key.is_empty());
        match wrong.syntax {
            Some(source) => error.because(source),
            None => error,
        }
    }
}

/// An error about a key, at a byte of the text.
pub(crate) fn error_at(
    source: Source<'_>,
    kind: ModelErrorKind,
    offset: usize,
    key: &str,
    reason: impl Into<String>,
) -> ModelError {
    ModelError::new(kind, source.path, reason).at_line(source.line(offset) as usize).for_key(key)
}

impl fmt::Display for ModelError {
    /// `PATH:LINE: KEY: REASON`, without the parts that are not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| -> &(dyn Error + 'static) { source.as_ref() })
    }
}
