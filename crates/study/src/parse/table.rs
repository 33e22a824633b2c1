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

/// Reads a table. After an error it is read again without the key of that, so that what else is wrong with it is told
/// as well: errors of values that mean nothing in themselves, but not those of values that may not go with what was
/// left out.
pub(super) fn read_all<T>(
    table: &Table<'_>,
    read: impl Fn(&Table<'_>) -> Result<T, StudyError>,
) -> Result<T, StudyError> {
    let error = match read(table) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut key = key_within(table, &error);
    let mut has_meaning = error.kind != Kind::UnknownKey;
    let mut errors = Errors::default();
    errors.keep::<()>(Err(error));
    let mut left = table.without("");
    while let Some(wrong) = key.take().filter(|key| left.has(key)) {
        left = left.without(&wrong);
        let Err(error) = read(&left) else { break };
        key = key_within(table, &error);
        let alone = [Kind::UnknownKey, Kind::UnknownName, Kind::WrongType, Kind::WrongUnit];
        let is_told =
            if has_meaning { alone.contains(&error.kind) } else { error.kind != Kind::MissingKey };
        has_meaning |= error.kind != Kind::UnknownKey;
        if is_told {
            errors.keep::<()>(Err(error));
        }
    }
    errors.finish().and_then(|()| read(table))
}

/// The key of a table that an error is about.
fn key_within(table: &Table<'_>, error: &StudyError) -> Option<String> {
    let key = error.key.strip_prefix(table.name)?.strip_prefix('.')?;
    Some(key.to_owned())
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
