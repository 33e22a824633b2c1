//! What can be wrong with a study.

use std::error::Error;
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StudyErrorKind {
    /// The file cannot be read.
    Unreadable,
    /// The text is not TOML.
    Syntax,
    /// A key that means nothing here.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another type than the key takes.
    WrongType,
    /// A size or percentage without a number or unit that makes sense.
    WrongUnit,
    /// A value out of range, or one that does not go with the others.
    WrongValue,
    /// A name of a level, rotation, kind, state, layout or group of drives that does not exist.
    UnknownName,
    /// Two things of the same name.
    DuplicateName,
    /// A layout that cannot be.
    ImpossibleLayout,
    /// A layout with more members than its group has drives.
    TooFewDrives,
    /// A workload that does not fit on a layout.
    DoesNotFit,
    /// Something that makes sense but that this version does not carry out.
    NotSupported,
    /// Its user stopped it.
    Stopped,
}

/// A study that cannot be run: where it says so, and what would be right.
#[derive(Debug)]
pub struct StudyError {
    /// What is wrong.
    pub kind: StudyErrorKind,
    /// The study file.
    pub path: String,
    /// The line, from 1; `None` when it is about the file as a whole.
    pub line: Option<u32>,
    /// The key with its table, such as `rounds` or `layouts.chunk`; empty for syntax errors.
    pub key: String,
    /// What is wrong and what would be right.
    pub reason: String,
    /// The error underneath.
    pub source: Option<Box<dyn Error + Send + Sync>>,
    /// What else is wrong with the study, in the order of its lines.
    pub also: Box<[StudyError]>,
}

impl StudyError {
    /// Without an error underneath.
    pub fn new(
        kind: StudyErrorKind,
        path: impl Into<String>,
        line: Option<u32>,
        key: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        let (path, key, reason) = (path.into(), key.into(), reason.into());
        Self { kind, path, line, key, reason, source: None, also: Box::default() }
    }

    /// The same with the error underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl fmt::Display for StudyError {
    /// `studies/mine.toml:14: layouts.members: raid5 needs at least 3 members, not 2`; a line for each that
    /// is wrong.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.reason)?;
        self.also.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl Error for StudyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as _)
    }
}
