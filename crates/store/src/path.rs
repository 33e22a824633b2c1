//! Paths as JSON, also those that are not Unicode.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path: text, or its bytes where it is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathText {
    /// What it is as a rule.
    Text(String),
    /// What it is when these bytes are not UTF-8.
    Bytes(Vec<u8>),
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_string()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl PathText {
    /// The path.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes.clone()).into(),
        }
    }
}

impl fmt::Display for PathText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_comes_back() {
        for bytes in [&b"/mnt/a \"b\""[..], b"", b"/\xff\xfe/x", "/m\u{fc}\n".as_bytes()] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_string(&PathText::from(&*path)).expect("JSON");
            let back: PathText = serde_json::from_str(&text).expect("a path");
            assert_eq!(back.path(), path, "{text}");
        }
    }
}
