//! Why a study was not run on the kernel.

use std::fmt;

/// Why a study was not run on the kernel, in words for its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelError {
    /// Input that cannot be, or that guests cannot judge; a kernel that was not built.
    Input(String),
    /// Something did not work.
    Failed(String),
    /// It was stopped.
    Interrupted,
}

impl KernelError {
    pub(crate) fn input(what: impl fmt::Display) -> Self {
        Self::Input(what.to_string())
    }

    pub(crate) fn failed(what: impl fmt::Display) -> Self {
        Self::Failed(what.to_string())
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(what) | Self::Failed(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for KernelError {}
