//! All that is wrong with a study file, rather than what is met first.

use crate::error::{StudyError, StudyErrorKind as Kind};

/// What was found wrong so far.
#[derive(Default)]
pub(super) struct Errors(Vec<StudyError>);

impl Errors {
    /// The value, or nothing, and its errors kept.
    pub(super) fn keep<T>(&mut self, result: Result<T, StudyError>) -> Option<T> {
        self.keep_unless(result, |_| false)
    }

    /// The same without errors that only follow from another one.
    pub(super) fn keep_unless<T>(
        &mut self,
        result: Result<T, StudyError>,
        follows: impl Fn(&StudyError) -> bool,
    ) -> Option<T> {
        let mut error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let also = std::mem::take(&mut error.also);
        self.0.extend(std::iter::once(error).chain(also).filter(|error| !follows(error)));
        None
    }

    /// Of a table whose keys were checked: a key that is missing is likely to be one of those that are
    /// unknown.
    pub(super) fn keep_of_table<T>(
        &mut self,
        keys: Result<(), StudyError>,
        result: Result<T, StudyError>,
    ) -> Option<T> {
        let has_strange_keys = self.keep(keys).is_none();
        let value =
            self.keep_unless(result, |error| has_strange_keys && error.kind == Kind::MissingKey);
        value.filter(|_| !has_strange_keys)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over those of a part of the study, but for what only follows from another error.
    pub(super) fn append(&mut self, part: Self, follows: impl Fn(&StudyError) -> bool) {
        self.0.extend(part.0.into_iter().filter(|error| !follows(error)));
    }

    /// The first by its line with all others behind it; nothing when there is none.
    pub(super) fn finish(mut self) -> Result<(), StudyError> {
        self.0.sort_by_key(|error| error.line);
        let mut errors = self.0.into_iter();
        let Some(mut first) = errors.next() else { return Ok(()) };
        first.also = errors.collect();
        Err(first)
    }
}
