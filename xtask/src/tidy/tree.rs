//! The files of the repository, and what is found wrong in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Breach {
    /// The file, from the root of the repository.
    pub(crate) path: String,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The short name of the rule.
    pub(crate) rule: &'static str,
    /// What is wrong, and what would be right.
    pub(crate) message: String,
}

impl Breach {
    pub(crate) fn new(
        path: impl Into<String>,
        line: usize,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// The text files of the repository by path from its root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Their contents.
    pub(crate) files: BTreeMap<String, String>,
    /// Which of them may be run.
    pub(crate) executable: BTreeSet<String>,
    /// Files that are no text, such as pictures.
    pub(crate) others: BTreeSet<String>,
}

impl Tree {
    /// Reads all files that git tracks or would take; without git, all but `target` and hidden
    /// directories that hold no sources. Files that are no text are left out.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        let paths = match listed_by_git(root) {
            Some(paths) => paths,
            None => walked(root)?,
        };
        for path in paths {
            tree.add(root, path)?;
        }
        Ok(tree)
    }

    fn add(&mut self, root: &Path, path: String) -> io::Result<()> {
        let full = root.join(&path);
        let metadata = match full.symlink_metadata() {
            Ok(metadata) => metadata,
            // Deleted but not committed yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if !metadata.is_file() {
            return Ok(());
        }
        let bytes = fs::read(&full)?;
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        let Some(text) = text else {
            self.others.insert(path);
            return Ok(());
        };
        if may_be_run(&metadata) {
            self.executable.insert(path.clone());
        }
        self.files.insert(path, text);
        Ok(())
    }

    /// A tree made of these files, for tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(own).collect(), ..Self::default() }
    }

    /// The contents of a file, if it is there.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The path and contents of each Rust file.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().filter(|(path, _)| path.ends_with(".rs"));
        files.map(|(path, text)| (path.as_str(), text.as_str()))
    }
}

#[cfg(unix)]
fn may_be_run(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn may_be_run(_: &fs::Metadata) -> bool {
    true
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let paths: BTreeSet<&str> = text.split('\0').filter(|path| !path.is_empty()).collect();
    Some(paths.into_iter().map(str::to_owned).collect())
}

fn walked(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut open = vec![String::new()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path =
                if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            if !entry.file_type()?.is_dir() {
                paths.push(path);
            } else if name != "target" && name != ".git" {
                open.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_read_with_and_without_git() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let tree = Tree::read(root).expect("read");
        let manifest = tree.get("xtask/Cargo.toml").expect("is there");
        assert!(manifest.contains("name = \"xtask\""));
        assert!(tree.executable.contains(".ci/run") && !tree.executable.contains("Cargo.toml"));
        assert!(!tree.files.keys().any(|path| path.starts_with("target/")));
        let walked = walked(root).expect("walked");
        assert!(walked.iter().any(|path| path == "xtask/src/tidy/tree.rs"));
        assert!(
            !walked.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/"))
        );
    }
}
