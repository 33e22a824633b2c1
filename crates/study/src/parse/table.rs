//! Tables of a study file: what the reader of files finds wrong, as errors of a study.

pub(super) use raidlab_toml_file::Unit;
use raidlab_toml_file::{Fault, FileError, Wrong};

use super::errors::Errors;
use crate::error::{StudyError, StudyErrorKind as Kind};

/// A table of the file.
pub(crate) type Table<'a> = raidlab_toml_file::Table<'a, StudyError>;

impl FileError for StudyError {
    fn of(wrong: Wrong) -> Self {
        let kind = match wrong.fault {
            Fault::Syntax => Kind::Syntax,
            Fault::UnknownKey => Kind::UnknownKey,
            Fault::MissingKey => Kind::MissingKey,
            Fault::WrongType => Kind::WrongType,
            Fault::WrongUnit => Kind::WrongUnit,
            Fault::WrongValue => Kind::WrongValue,
        };
        let error = Self::new(kind, wrong.path, wrong.line, wrong.key, wrong.reason);
        match wrong.syntax {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

/// Errors of a study about a table.
pub(crate) trait StudyTable {
    /// An error about a key of this table: at its value, or at the table where it is absent.
    fn error(&self, kind: Kind, key: &str, reason: impl Into<String>) -> StudyError;

    /// An error about a key of this table at a line of its own.
    fn error_at(&self, kind: Kind, line: u32, key: &str, reason: impl Into<String>) -> StudyError;

    /// Refuses keys that mean nothing here, all of them.
    fn check_keys(&self, known: &[&str]) -> Result<(), StudyError>;
}

impl StudyTable for Table<'_> {
    fn error(&self, kind: Kind, key: &str, reason: impl Into<String>) -> StudyError {
        StudyTable::error_at(self, kind, self.line_at(key), key, reason)
    }

    fn error_at(&self, kind: Kind, line: u32, key: &str, reason: impl Into<String>) -> StudyError {
        StudyError::new(kind, self.path(), Some(line), self.key(key), reason)
    }

    fn check_keys(&self, known: &[&str]) -> Result<(), StudyError> {
        let mut errors = Errors::default();
        for error in self.unknown_keys(known) {
            errors.keep::<()>(Err(error));
        }
        errors.finish()
    }
}

/// Refuses a name that an earlier table of the same list has.
pub(super) fn check_unique<'a>(
    table: &Table<'_>,
    name: &str,
    mut earlier: impl Iterator<Item = &'a str>,
) -> Result<(), StudyError> {
    if earlier.any(|other| other == name) {
        let list = table.name;
        let reason = format!("two {list} are called `{name}`; give one of them another `name`");
        return Err(table.error(Kind::DuplicateName, "name", reason));
    }
    Ok(())
}
