//! A tree of names without contents: what a target in virtual time, or one that does nothing, must
//! know of a filesystem.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::op::{Entry, How, Path, Root, Seek, Slot, Status};

/// A file or directory, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// What keeps an operation on names from being carried out: the system's word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// Such as `No such file or directory`.
    pub reason: &'static str,
    /// The name.
    pub path: Path,
}

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for NameError {}

#[derive(Clone, Debug)]
struct Node {
    size: u64,
    /// The names in a directory, in the order they were made.
    directory: Option<Vec<Arc<str>>>,
    names: u32,
}

/// Names, and the lengths of files.
#[derive(Clone, Debug)]
pub struct Names {
    paths: BTreeMap<Path, FileId>,
    nodes: BTreeMap<FileId, Node>,
    next: u64,
}

impl Default for Names {
    /// Empty directories at the roots.
    fn default() -> Self {
        let mut names = Self { paths: BTreeMap::new(), nodes: BTreeMap::new(), next: 0 };
        for root in [Root::Target, Root::Source] {
            names.make(Path { root, text: "".into() }, true);
        }
        names
    }
}

fn parent(path: &Path) -> (Path, &str) {
    let (directory, name) = path.text.rsplit_once('/').unwrap_or(("", &path.text));
    (Path { root: path.root, text: directory.into() }, name)
}

fn error<T>(path: &Path, reason: &'static str) -> Result<T, NameError> {
    Err(NameError { reason, path: path.clone() })
}

const MISSING: &str = "No such file or directory";
const EXISTS: &str = "File exists";

impl Names {
    fn make(&mut self, path: Path, is_directory: bool) -> FileId {
        let id = FileId(self.next);
        self.next += 1;
        let directory = is_directory.then(Vec::new);
        self.nodes.insert(id, Node { size: 0, directory, names: 1 });
        self.paths.insert(path, id);
        id
    }

    fn add_name(&mut self, path: &Path) -> Result<(), NameError> {
        let (directory, name) = parent(path);
        match self.entries_mut(&directory) {
            Some(entries) => {
                entries.push(name.into());
                Ok(())
            }
            None => error(path, MISSING),
        }
    }

    fn entries_mut(&mut self, directory: &Path) -> Option<&mut Vec<Arc<str>>> {
        let id = self.paths.get(directory)?;
        self.nodes.get_mut(id)?.directory.as_mut()
    }

    /// The file a name stands for.
    pub fn find(&self, path: &Path) -> Option<FileId> {
        self.paths.get(path).copied()
    }

    /// Opens a file; says whether it was made by this.
    ///
    /// # Errors
    /// As `open(2)`: missing, there already, a directory.
    pub fn open(&mut self, path: &Path, how: How) -> Result<(FileId, bool), NameError> {
        match self.find(path) {
            Some(_) if how.create && how.exclusive => error(path, EXISTS),
            Some(id) => {
                let Some(node) = self.nodes.get_mut(&id) else { return error(path, MISSING) };
                if node.directory.is_some() {
                    return error(path, "Is a directory");
                }
                if how.truncate {
                    node.size = 0;
                }
                Ok((id, false))
            }
            None if how.create => {
                self.add_name(path)?;
                Ok((self.make(path.clone(), false), true))
            }
            None => error(path, MISSING),
        }
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When the name is there, or its directory is not.
    pub fn mkdir(&mut self, path: &Path) -> Result<FileId, NameError> {
        if self.find(path).is_some() {
            return error(path, EXISTS);
        }
        self.add_name(path)?;
        Ok(self.make(path.clone(), true))
    }

    /// Removes a file's name; gives the file when that was its last one.
    ///
    /// # Errors
    /// When there is none, or it is a directory.
    pub fn unlink(&mut self, path: &Path) -> Result<Option<FileId>, NameError> {
        let Some(id) = self.find(path) else { return error(path, MISSING) };
        let Some(node) = self.nodes.get_mut(&id) else { return error(path, MISSING) };
        if node.directory.is_some() {
            return error(path, "Is a directory");
        }
        node.names -= 1;
        let is_last = node.names == 0;
        if is_last {
            self.nodes.remove(&id);
        }
        self.forget(path);
        Ok(is_last.then_some(id))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When there is none, it is not empty, or no directory.
    pub fn rmdir(&mut self, path: &Path) -> Result<FileId, NameError> {
        let Some(id) = self.find(path) else { return error(path, MISSING) };
        match self.nodes.get(&id).and_then(|node| node.directory.as_ref()) {
            None => error(path, "Not a directory"),
            Some(entries) if !entries.is_empty() => error(path, "Directory not empty"),
            Some(_) => {
                self.nodes.remove(&id);
                self.forget(path);
                Ok(id)
            }
        }
    }

    fn forget(&mut self, path: &Path) {
        self.paths.remove(path);
        let (directory, name) = parent(path);
        if let Some(entries) = self.entries_mut(&directory) {
            entries.retain(|entry| **entry != *name);
        }
    }

    /// Gives a file another name; what had it before loses it. Directories cannot be renamed here.
    ///
    /// # Errors
    /// When there is no such file or directory, or it is a directory.
    pub fn rename(&mut self, from: &Path, to: &Path) -> Result<Option<FileId>, NameError> {
        let Some(id) = self.find(from) else { return error(from, MISSING) };
        if self.status(id).is_directory {
            return error(from, "Is a directory: renaming directories is not supported");
        }
        let gone = if self.find(to).is_some() { self.unlink(to)? } else { None };
        self.add_name(to)?;
        self.forget(from);
        self.paths.insert(to.clone(), id);
        Ok(gone)
    }

    /// Gives a file one name more.
    ///
    /// # Errors
    /// When there is no such file, the name is there, or its directory is not.
    pub fn link(&mut self, from: &Path, to: &Path) -> Result<FileId, NameError> {
        let Some(id) = self.find(from) else { return error(from, MISSING) };
        if self.find(to).is_some() {
            return error(to, EXISTS);
        }
        self.add_name(to)?;
        self.paths.insert(to.clone(), id);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.names += 1;
        }
        Ok(id)
    }

    /// The entries of a directory, in the order they were made.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, NameError> {
        let node = self.find(path).and_then(|id| self.nodes.get(&id));
        let Some(entries) = node.and_then(|node| node.directory.as_ref()) else {
            return error(path, MISSING);
        };
        let entry = |name: &Arc<str>| {
            let text = if path.text.is_empty() {
                name.clone()
            } else {
                format!("{}/{name}", path.text).into()
            };
            let child = self.find(&Path { root: path.root, text });
            let is_directory = child.is_some_and(|id| self.status(id).is_directory);
            Entry { name: name.clone(), is_directory }
        };
        Ok(entries.iter().map(entry).collect())
    }

    /// A file's length and kind; nothing of what is gone.
    pub fn status(&self, id: FileId) -> Status {
        let node = self.nodes.get(&id);
        node.map_or_else(Status::default, |node| Status {
            size: node.size,
            is_directory: node.directory.is_some(),
        })
    }

    /// Sets a file's length.
    pub fn set_size(&mut self, id: FileId, size: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.size = size;
        }
    }

    /// Makes a file's length at least this.
    pub fn grow(&mut self, id: FileId, size: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.size = node.size.max(size);
        }
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The file; `None` for `/dev/null`.
    pub id: Option<FileId>,
    /// The position in bytes.
    pub position: u64,
    /// How it was opened.
    pub how: How,
}

/// The open files of a process.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    slots: Vec<Option<OpenFile>>,
}

impl Slots {
    /// Puts a file into a slot, at position 0.
    pub fn open(&mut self, slot: Slot, id: Option<FileId>, how: How) {
        let index = usize::from(slot.0);
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(OpenFile { id, position: 0, how });
    }

    /// Takes it out.
    pub fn close(&mut self, slot: Slot) -> Option<OpenFile> {
        self.slots.get_mut(usize::from(slot.0)).and_then(Option::take)
    }

    /// What is in it; `None` when nothing is.
    pub fn get(&mut self, slot: Slot) -> Option<&mut OpenFile> {
        self.slots.get_mut(usize::from(slot.0)).and_then(Option::as_mut)
    }
}

impl OpenFile {
    /// Moves the position; `size` is the file's length.
    pub fn seek(&mut self, to: Seek, size: u64) {
        self.position = match to {
            Seek::Start(at) => at,
            Seek::Current(by) => self.position.saturating_add_signed(by),
            Seek::End => size,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_and_go() {
        let mut names = Names::default();
        let at = Path::target;
        let made = How { exclusive: true, ..How::WRITE };
        assert_eq!(names.open(&at("d/a"), made).unwrap_err().reason, MISSING);
        names.mkdir(&at("d")).expect("new");
        assert_eq!(names.mkdir(&at("d")).unwrap_err().reason, EXISTS);
        let (a, is_new) = names.open(&at("d/a"), made).expect("new");
        assert!(is_new);
        assert_eq!(names.open(&at("d/a"), made).unwrap_err().reason, EXISTS);
        names.grow(a, 7);
        assert_eq!(names.status(a), Status { size: 7, is_directory: false });
        names.link(&at("d/a"), &at("d/b")).expect("new");
        names.rename(&at("d/b"), &at("c")).expect("there");
        let listed = names.list(&at("")).expect("the root");
        let is = |name: &str, is_directory| Entry { name: name.into(), is_directory };
        assert_eq!(listed, [is("d", true), is("c", false)]);
        assert_eq!(names.rmdir(&at("d")).unwrap_err().reason, "Directory not empty");
        assert_eq!(names.unlink(&at("d/a")), Ok(None));
        assert_eq!(names.unlink(&at("c")), Ok(Some(a)));
        assert_eq!(names.status(a).size, 0);
        assert!(names.rmdir(&at("d")).is_ok());
        assert_eq!(names.list(&at("d")).unwrap_err().to_string(), format!("d: {MISSING}"));
    }
}
