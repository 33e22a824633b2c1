//! How a command fails: what is printed and the exit status.

use std::fmt::Display;
use std::process::ExitCode;

use crate::output::note;
use raidlab_engine::EngineError;
use raidlab_measure::MeasureError;

/// Why a command stops.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Input that cannot be: exit status 2.
    Input(String),
    /// Not done because it might destroy something: exit status 3.
    Refused(String),
    /// What was compared got worse: exit status 4.
    Regressed(String),
    /// Something did not work: exit status 1.
    Failed(String),
    /// Ctrl-C: exit status 130.
    Interrupted,
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Input(what) => Self::Input(what),
            MeasureError::Failed(what) => Self::Failed(what),
            MeasureError::Interrupted => Self::Interrupted,
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::failed(error)
    }
}

impl Failure {
    pub(crate) fn input(what: impl Display) -> Self {
        Self::Input(what.to_string())
    }

    pub(crate) fn failed(what: impl Display) -> Self {
        Self::Failed(what.to_string())
    }

    /// The same with something to be told behind it.
    pub(crate) fn and(self, hint: Option<String>) -> Self {
        let Some(hint) = hint else { return self };
        let both = |what: String| format!("{what}\n{hint}");
        match self {
            Self::Input(what) => Self::Input(both(what)),
            Self::Refused(what) => Self::Refused(both(what)),
            Self::Regressed(what) => Self::Regressed(both(what)),
            Self::Failed(what) => Self::Failed(both(what)),
            Self::Interrupted => {
                note(&hint);
                Self::Interrupted
            }
        }
    }

    /// In words.
    pub(crate) fn what(&self) -> &str {
        match self {
            Self::Input(what)
            | Self::Refused(what)
            | Self::Regressed(what)
            | Self::Failed(what) => what,
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Input(_) => 2,
            Self::Refused(_) => 3,
            Self::Regressed(_) => 4,
            Self::Interrupted => 130,
        }
    }

    /// Tells the user, and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let text = match self {
            Self::Input(what) | Self::Failed(what) => format!("error: {what}"),
            Self::Refused(what) => format!("refused: {what}"),
            Self::Regressed(what) => format!("regressed: {what}"),
            Self::Interrupted => "interrupted".to_string(),
        };
        note(&text);
        ExitCode::from(self.status())
    }
}
