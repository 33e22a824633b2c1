//! Why a sweep cannot be run.

use std::error::Error;
use std::fmt;

use raidlab_store::StoreError;
use raidlab_study::StudyError;

/// Why a sweep cannot be run, or goes no further.
#[derive(Debug)]
#[non_exhaustive]
pub enum SweepError {
    /// The study file or a drive file cannot be used.
    Study(StudyError),
    /// The directory of shards, or a file in it.
    Store(StoreError),
    /// Something else that is not as it must be, in words.
    Other(String),
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Study(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl Error for SweepError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Study(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::Other(_) => None,
        }
    }
}

impl From<StudyError> for SweepError {
    fn from(error: StudyError) -> Self {
        Self::Study(error)
    }
}

impl From<StoreError> for SweepError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
