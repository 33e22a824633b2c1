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
    /// The names in a directory, by when they were made.
    directory: Option<Entries>,
    names: u32,
}

/// Names by a number that rises with each name made, so that one is found and taken out of a
/// huge directory without going through all.
type Entries = BTreeMap<u64, Arc<str>>;

/// What a path stands for.
#[derive(Clone, Copy, Debug)]
struct Name {
    id: FileId,
    /// Its number among the names of its directory.
    made: u64,
}

/// Names, and the lengths of files.
#[derive(Clone, Debug)]
pub struct Names {
    paths: BTreeMap<Path, Name>,
    nodes: BTreeMap<FileId, Node>,
    next: u64,
    /// Names made so far.
    made: u64,
}

impl Default for Names {
    /// Empty directories at the roots.
    fn default() -> Self {
        let mut names = Self { paths: BTreeMap::new(), nodes: BTreeMap::new(), next: 0, made: 0 };
        for root in [Root::Target, Root::Source] {
            let id = names.make(true);
            names.paths.insert(Path { root, text: "".into() }, Name { id, made: 0 });
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
    /// A file or directory without a name.
    fn make(&mut self, is_directory: bool) -> FileId {
        let id = FileId(self.next);
        self.next += 1;
        let directory = is_directory.then(Entries::new);
        self.nodes.insert(id, Node { size: 0, directory, names: 1 });
        id
    }

    /// Gives what [`room_for`](Self::room_for) found a place for its name, the last of its directory.
    fn add_name(&mut self, path: &Path, id: FileId) {
        let (directory, name) = parent(path);
        self.made += 1;
        let made = self.made;
        if let Some(entries) = self.entries_mut(&directory) {
            entries.insert(made, name.into());
        }
        self.paths.insert(path.clone(), Name { id, made });
    }

    /// Whether there is a directory for this name.
    fn room_for(&mut self, path: &Path) -> Result<(), NameError> {
        let (directory, _) = parent(path);
        if self.entries_mut(&directory).is_some() { Ok(()) } else { error(path, MISSING) }
    }

    fn entries_mut(&mut self, directory: &Path) -> Option<&mut Entries> {
        let id = self.find(directory)?;
        self.nodes.get_mut(&id)?.directory.as_mut()
    }

    /// The file a name stands for.
    pub fn find(&self, path: &Path) -> Option<FileId> {
        self.paths.get(path).map(|name| name.id)
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
                self.room_for(path)?;
                let id = self.make(false);
                self.add_name(path, id);
                Ok((id, true))
            }
            None => error(path, MISSING),
        }
    }

    /// Puts a file from elsewhere below [`Root::Source`], with the directories in its name; one that is
    /// there twice keeps the greater length.
    ///
    /// # Errors
    /// When a name in it is that of a file, or all of it that of a directory.
    pub fn add_source(&mut self, name: &str, bytes: u64) -> Result<(), NameError> {
        for (end, _) in name.match_indices('/') {
            let directory = Path::source(&name[..end]);
            match self.find(&directory).map(|id| self.status(id).is_directory) {
                Some(true) => {}
                Some(false) => return error(&directory, EXISTS),
                None => {
                    self.mkdir(&directory)?;
                }
            }
        }
        let made = How { write: true, create: true, ..How::default() };
        let (id, _) = self.open(&Path::source(name), made)?;
        self.grow(id, bytes);
        Ok(())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When the name is there, or its directory is not.
    pub fn mkdir(&mut self, path: &Path) -> Result<FileId, NameError> {
        if self.find(path).is_some() {
            return error(path, EXISTS);
        }
        self.room_for(path)?;
        let id = self.make(true);
        self.add_name(path, id);
        Ok(id)
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
        let Some(name) = self.paths.remove(path) else { return };
        let (directory, _) = parent(path);
        if let Some(entries) = self.entries_mut(&directory) {
            entries.remove(&name.made);
        }
    }

    /// Gives a file another name; what had it before loses it, and is given when that was its last one.
    /// Between two names of one file nothing happens, as `rename(2)` says. Directories cannot be renamed
    /// here.
    ///
    /// # Errors
    /// When there is no such file or directory, or it is a directory.
    pub fn rename(&mut self, from: &Path, to: &Path) -> Result<Option<FileId>, NameError> {
        let Some(id) = self.find(from) else { return error(from, MISSING) };
        if self.status(id).is_directory {
            return error(from, "Is a directory: renaming directories is not supported");
        }
        let before = self.find(to);
        if before == Some(id) {
            return Ok(None);
        }
        let gone = if before.is_some() { self.unlink(to)? } else { None };
        self.room_for(to)?;
        self.forget(from);
        self.add_name(to, id);
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
        self.room_for(to)?;
        self.add_name(to, id);
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
        Ok(entries.values().map(entry).collect())
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

    fn listed(names: &Names) -> Vec<String> {
        let entries = names.list(&Path::target("")).expect("the root");
        entries.iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn a_directory_keeps_the_order_in_which_names_were_made() {
        let mut names = Names::default();
        let at = Path::target;
        for name in ["b", "z", "a", "m"] {
            names.open(&at(name), How::WRITE).expect("new");
        }
        names.unlink(&at("z")).expect("there");
        assert_eq!(listed(&names), ["b", "a", "m"]);
        // What is made again, renamed or linked goes to the end.
        names.open(&at("z"), How::WRITE).expect("new");
        names.rename(&at("b"), &at("k")).expect("there");
        names.link(&at("a"), &at("b")).expect("there");
        assert_eq!(listed(&names), ["a", "m", "z", "k", "b"]);
        // What is opened again stays.
        names.open(&at("a"), How::WRITE).expect("there");
        names.rename(&at("m"), &at("z")).expect("there");
        assert_eq!(listed(&names), ["a", "k", "b", "z"]);
    }

    #[test]
    fn a_file_renamed_to_itself_stays() {
        let mut names = Names::default();
        let at = Path::target;
        let (id, _) = names.open(&at("a"), How::WRITE).expect("new");
        names.grow(id, 5);
        names.link(&at("a"), &at("b")).expect("new");
        for (from, to) in [("a", "a"), ("a", "b")] {
            assert_eq!(names.rename(&at(from), &at(to)), Ok(None), "{from} {to}");
            assert_eq!((listed(&names), names.status(id).size), (vec!["a".into(), "b".into()], 5));
        }
        assert_eq!(names.unlink(&at("a")), Ok(None));
        assert_eq!(names.unlink(&at("b")), Ok(Some(id)));
        // No name is lost on the way to a directory that is not there.
        names.open(&at("c"), How::WRITE).expect("new");
        assert_eq!(names.rename(&at("c"), &at("d/c")).unwrap_err().reason, MISSING);
        assert_eq!(listed(&names), ["c"]);
    }

    /// With time that grows with the square of the number this takes minutes.
    #[test]
    fn a_hundred_thousand_names_come_and_go() {
        let mut names = Names::default();
        let at = |number: u32| Path::target(format!("{:05}", number * 7919 % 100_000));
        for number in 0..100_000 {
            names.open(&at(number), How::WRITE).expect("new");
        }
        assert_eq!(names.list(&Path::target("")).expect("the root").len(), 100_000);
        for number in (0..100_000).rev() {
            assert!(names.unlink(&at(number)).expect("there").is_some());
        }
        assert!(listed(&names).is_empty());
    }
}
