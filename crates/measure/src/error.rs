//! Why a study was not measured.

use std::fmt;

/// Why a study was not measured, in words for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// Input that cannot be: a study, a path, too few devices.
    Input(String),
    /// Something did not work, or bytes were wrong.
    Failed(String),
    /// The caller's cancel flag was set.
    Interrupted,
}

impl MeasureError {
    pub(crate) fn input(what: impl fmt::Display) -> Self {
        Self::Input(what.to_string())
    }

    pub(crate) fn failed(what: impl fmt::Display) -> Self {
        Self::Failed(what.to_string())
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(what) | Self::Failed(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for MeasureError {}
