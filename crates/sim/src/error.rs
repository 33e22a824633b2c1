//! What can go wrong when a world is set up.

use std::fmt;

use raidlab_core::ConfigError;
use raidlab_models::BadFigure;

/// Which kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimErrorKind {
    /// The array cannot be configured so.
    Config,
    /// The drives do not fit the array.
    Drives,
    /// The paths to the drives cannot be.
    Paths,
    /// The controller cannot be.
    Controller,
}

/// An error with what it is about.
#[derive(Clone, Debug)]
pub struct SimError {
    kind: SimErrorKind,
    context: String,
    source: Option<ConfigError>,
}

impl SimError {
    pub(crate) fn drives(context: String) -> Self {
        Self { kind: SimErrorKind::Drives, context, source: None }
    }

    pub(crate) fn paths(wrong: &BadFigure) -> Self {
        Self { kind: SimErrorKind::Paths, context: format!("paths: {wrong}"), source: None }
    }

    pub(crate) fn controller(wrong: &BadFigure) -> Self {
        let context = format!("controller: {wrong}");
        Self { kind: SimErrorKind::Controller, context, source: None }
    }

    /// Which kind.
    pub fn kind(&self) -> SimErrorKind {
        self.kind
    }
}

impl From<ConfigError> for SimError {
    fn from(source: ConfigError) -> Self {
        let context = source.to_string();
        Self { kind: SimErrorKind::Config, context, source: Some(source) }
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)
    }
}

impl std::error::Error for SimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
