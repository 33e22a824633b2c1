//! What is wrong: in words for people, and of which kind for verdicts, which no words decide.

use std::fmt;

/// Which kind of promise is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreachKind {
    /// A read gave what it must not.
    Read,
    /// Anything else.
    #[default]
    Other,
}

/// What is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breach {
    /// Of which kind.
    pub kind: BreachKind,
    /// It shows when this member is lost, too, after the recovery.
    pub without: Option<u16>,
    /// In words.
    pub text: String,
}

impl Breach {
    /// A read gave what it must not.
    #[must_use]
    pub fn read(text: String) -> Self {
        Self { kind: BreachKind::Read, without: None, text }
    }

    /// The same, as it shows without this member.
    #[must_use]
    pub fn without(self, member: u16) -> Self {
        Self { without: Some(member), ..self }
    }
}

impl From<String> for Breach {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Breach {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(member) = self.without {
            write!(f, "after the recovery, without member {member}: ")?;
        }
        f.write_str(&self.text)
    }
}
