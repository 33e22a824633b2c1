//! A tree of names without contents: what a target in virtual time, or one that does nothing, must
//! know of a filesystem.

mod table;

use crate::op::{Entry, FileDescriptor, FilePath, OpenFlags, Root, Seek, Status};
use raidlab_random::mix_all;
use table::{Table, hash};

/// A file or directory, by a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// What keeps an operation on names from being carried out: the system's word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// Such as `No such file or directory`.
    pub reason: &'static str,
    /// The name.
    pub path: FilePath,
}

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl std::error::Error for NameError {}

/// A file or directory that is there.
#[derive(Clone, Copy, Debug)]
struct Node {
    size: u64,
    names: u32,
    directory: Option<Directory>,
}

/// The names in a directory, by when they were made: a list through all of them, so that one is taken
/// out of a huge directory without going through the others.
#[derive(Clone, Copy, Debug)]
struct Directory {
    first: u32,
    last: u32,
    /// Its own name.
    own: u32,
}

/// No name.
const NONE: u32 = u32::MAX;

/// A name, in a table of them.
#[derive(Clone, Debug)]
struct Name {
    /// `None` when it is free.
    path: Option<FilePath>,
    hash: u32,
    /// Where in the text of the path it begins.
    from: u32,
    /// What it stands for.
    id: FileId,
    /// The directory it is in; that of a root is itself.
    directory: FileId,
    /// [`name_hash`] of it.
    word: u64,
    /// Those made before and after it in its directory.
    before: u32,
    after: u32,
}

impl Name {
    fn text(&self) -> &str {
        self.path.as_ref().map_or("", |path| &path.text)
    }
}

/// What a path was found to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is at its end.
    pub file: Option<FileId>,
    /// What the last name would be in, where that is known and nothing is at the end.
    directory: Option<FileId>,
}

impl From<Option<FileId>> for Found {
    fn from(file: Option<FileId>) -> Self {
        Self { file, directory: None }
    }
}

/// Names, and the lengths of files.
#[derive(Clone, Debug)]
pub struct Names {
    table: Table,
    names: Vec<Name>,
    free: Vec<u32>,
    /// Files by number; none of those that are gone.
    nodes: Vec<Option<Node>>,
}

impl Default for Names {
    /// Empty directories at the roots.
    fn default() -> Self {
        let (names, free, nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut names = Self { table: Table::default(), names, free, nodes };
        for root in [Root::Target, Root::Source] {
            let id = names.make(true);
            names.put(&FilePath { root, text: "".into() }, 0, id, id);
        }
        names
    }
}

/// A hash of a name in its directory: what modelled filesystems order names by.
pub fn name_hash(name: &str) -> u64 {
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    let last = rest.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let last = (!rest.is_empty()).then_some(last);
    mix_all(words.iter().map(|word| u64::from_be_bytes(*word)).chain(last), name.len().div_ceil(8))
}

/// Where the last name in the text of a path begins, behind that of its directory. Names are short: byte
/// by byte it is found sooner than by a search for long texts.
fn name_at(text: &str) -> usize {
    text.bytes().rposition(|byte| byte == b'/').map_or(0, |end| end + 1)
}

/// The text of the directory of a name that begins there.
fn directory_text(path: &FilePath, from: usize) -> &str {
    &path.text[..from.saturating_sub(1)]
}

fn error<T>(path: &FilePath, reason: &'static str) -> Result<T, NameError> {
    Err(NameError { reason, path: path.clone() })
}

const MISSING: &str = "No such file or directory";
const EXISTS: &str = "File exists";

impl Names {
    /// A file or directory without a name.
    fn make(&mut self, is_directory: bool) -> FileId {
        let id = FileId(self.nodes.len() as u64);
        let directory = Directory { first: NONE, last: NONE, own: NONE };
        let directory = is_directory.then_some(directory);
        self.nodes.push(Some(Node { size: 0, names: 1, directory }));
        id
    }

    fn node(&self, id: FileId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)?.as_ref()
    }

    fn node_mut(&mut self, id: FileId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0 as usize)?.as_mut()
    }

    fn directory_mut(&mut self, id: FileId) -> Option<&mut Directory> {
        self.node_mut(id)?.directory.as_mut()
    }

    fn drop_node(&mut self, id: FileId) {
        if let Some(node) = self.nodes.get_mut(id.0 as usize) {
            *node = None;
        }
    }

    /// The name with this root and text.
    #[inline]
    fn look_up(&self, path: &FilePath, text: &str) -> Option<u32> {
        self.table.find(hash(path, text), |entry| {
            let there = self.names[entry as usize].path.as_ref();
            there.is_some_and(|there| there.root == path.root && &*there.text == text)
        })
    }

    fn name(&self, path: &FilePath) -> Option<&Name> {
        self.look_up(path, &path.text).map(|name| &self.names[name as usize])
    }

    /// Where a name is to be made: the place in its path where it begins, and its directory, where that was
    /// looked up before.
    fn room_for(
        &self,
        path: &FilePath,
        directory: Option<FileId>,
    ) -> Result<(usize, FileId), NameError> {
        let from = name_at(&path.text);
        let look_up = || {
            let above = self.look_up(path, directory_text(path, from));
            above.map(|name| self.names[name as usize].id)
        };
        let id = directory.or_else(look_up);
        let is_there = |id: &FileId| self.node(*id).is_some_and(|node| node.directory.is_some());
        id.filter(is_there).map_or_else(|| error(path, MISSING), |id| Ok((from, id)))
    }

    /// Gives a file the name [`room_for`](Self::room_for) was found for, the last of its directory.
    fn add_name(&mut self, path: &FilePath, (from, directory): (usize, FileId), id: FileId) {
        let name = self.put(path, from, directory, id);
        let Some(above) = self.directory_mut(directory) else { return };
        let before = std::mem::replace(&mut above.last, name);
        if before == NONE {
            above.first = name;
        } else {
            self.names[before as usize].after = name;
        }
        self.names[name as usize].before = before;
    }

    /// A name in the table, without its place in the order of its directory.
    fn put(&mut self, path: &FilePath, from: usize, directory: FileId, id: FileId) -> u32 {
        let hash = hash(path, &path.text);
        let word = name_hash(&path.text[from..]);
        let (before, after, from) = (NONE, NONE, from as u32);
        let made =
            Name { path: Some(path.clone()), hash, from, id, directory, word, before, after };
        let name = match self.free.pop() {
            Some(name) => {
                self.names[name as usize] = made;
                name
            }
            None => {
                self.names.push(made);
                self.names.len() as u32 - 1
            }
        };
        if let Some(own) = self.directory_mut(id) {
            own.own = name;
        }
        self.table.insert(hash, name);
        name
    }

    /// The file a name stands for.
    #[inline]
    pub fn find(&self, path: &FilePath) -> Option<FileId> {
        self.name(path).map(|name| name.id)
    }

    /// What is looked up to find a path, from its root on: of each of its names the directory it is
    /// in, its [`name_hash`], and what it stands for; ends with the first that is not there.
    pub fn walk<T>(
        &self,
        path: &FilePath,
        steps: &mut Vec<T>,
        step: impl Fn(FileId, u64, Option<FileId>) -> T,
    ) -> Found {
        let begin = steps.len();
        let mut text = &*path.text;
        let mut name = self.look_up(path, text);
        let file = name.map(|name| self.names[name as usize].id);
        let mut found = Found::from(file);
        // Up to what is there, which is all, or all but the last.
        while name.is_none() {
            let from = name_at(text);
            let last = &text[from..];
            text = &text[..from.saturating_sub(1)];
            name = self.look_up(path, text);
            if let Some(name) = name {
                let directory = self.names[name as usize].id;
                if last.len() + from == path.text.len() {
                    found.directory = Some(directory);
                }
                steps.push(step(directory, name_hash(last), None));
            } else if text.is_empty() {
                return found;
            }
        }
        // And from there by the directories.
        while let Some(one) = name.map(|name| &self.names[name as usize])
            && !one.text().is_empty()
        {
            steps.push(step(one.directory, one.word, Some(one.id)));
            name = self.node(one.directory).and_then(|node| node.directory).map(|own| own.own);
        }
        steps[begin..].reverse();
        found
    }

    /// Opens a file; says whether it was made by this.
    ///
    /// # Errors
    /// As `open(2)`: missing, there already, a directory.
    pub fn open(&mut self, path: &FilePath, flags: OpenFlags) -> Result<(FileId, bool), NameError> {
        self.open_found(path, self.find(path).into(), flags)
    }

    /// The same when the name was looked up before: what [`walk`](Self::walk) gives.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_found(
        &mut self,
        path: &FilePath,
        found: Found,
        flags: OpenFlags,
    ) -> Result<(FileId, bool), NameError> {
        match found.file {
            Some(_) if flags.create && flags.exclusive => error(path, EXISTS),
            Some(id) => {
                let Some(node) = self.node_mut(id) else { return error(path, MISSING) };
                if node.directory.is_some() {
                    return error(path, "Is a directory");
                }
                if flags.truncate {
                    node.size = 0;
                }
                Ok((id, false))
            }
            None if flags.create => {
                let room = self.room_for(path, found.directory)?;
                let id = self.make(false);
                self.add_name(path, room, id);
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
            let directory = FilePath::source(&name[..end]);
            match self.find(&directory).map(|id| self.status(id).is_directory) {
                Some(true) => {}
                Some(false) => return error(&directory, EXISTS),
                None => {
                    self.mkdir(&directory)?;
                }
            }
        }
        let made = OpenFlags { write: true, create: true, ..OpenFlags::default() };
        let (id, _) = self.open(&FilePath::source(name), made)?;
        self.grow(id, bytes);
        Ok(())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When the name is there, or its directory is not.
    pub fn mkdir(&mut self, path: &FilePath) -> Result<FileId, NameError> {
        if self.find(path).is_some() {
            return error(path, EXISTS);
        }
        let room = self.room_for(path, None)?;
        let id = self.make(true);
        self.add_name(path, room, id);
        Ok(id)
    }

    /// Removes a file's name; gives the file when that was its last one.
    ///
    /// # Errors
    /// When there is none, or it is a directory.
    pub fn unlink(&mut self, path: &FilePath) -> Result<Option<FileId>, NameError> {
        let Some(name) = self.look_up(path, &path.text) else { return error(path, MISSING) };
        let id = self.names[name as usize].id;
        let Some(node) = self.node_mut(id) else { return error(path, MISSING) };
        if node.directory.is_some() {
            return error(path, "Is a directory");
        }
        node.names -= 1;
        let is_last = node.names == 0;
        if is_last {
            self.drop_node(id);
        }
        self.forget(name);
        Ok(is_last.then_some(id))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When there is none, it is not empty, or no directory.
    pub fn rmdir(&mut self, path: &FilePath) -> Result<FileId, NameError> {
        let Some(name) = self.look_up(path, &path.text) else { return error(path, MISSING) };
        let id = self.names[name as usize].id;
        match self.node(id).and_then(|node| node.directory) {
            None => error(path, "Not a directory"),
            Some(directory) if directory.first != NONE => error(path, "Directory not empty"),
            Some(_) => {
                self.drop_node(id);
                self.forget(name);
                Ok(id)
            }
        }
    }

    fn forget(&mut self, name: u32) {
        let gone = &mut self.names[name as usize];
        let (before, after) = (gone.before, gone.after);
        let (hash, directory) = (gone.hash, gone.directory);
        gone.path = None;
        self.table.remove(hash, name);
        self.free.push(name);
        if let Some(after) = self.names.get_mut(after as usize) {
            after.before = before;
        }
        if let Some(before) = self.names.get_mut(before as usize) {
            before.after = after;
        }
        if let Some(directory) = self.directory_mut(directory) {
            if directory.first == name {
                directory.first = after;
            }
            if directory.last == name {
                directory.last = before;
            }
        }
    }

    /// Gives a file another name; what had it before loses it, and is given when that was its last one.
    /// Between two names of one file nothing happens, as `rename(2)` says. Directories cannot be renamed
    /// here.
    ///
    /// # Errors
    /// When there is no such file or directory, or it is a directory.
    pub fn rename(&mut self, from: &FilePath, to: &FilePath) -> Result<Option<FileId>, NameError> {
        let Some(name) = self.look_up(from, &from.text) else { return error(from, MISSING) };
        let id = self.names[name as usize].id;
        if self.status(id).is_directory {
            return error(from, "Is a directory: renaming directories is not supported");
        }
        let before = self.find(to);
        if before == Some(id) {
            return Ok(None);
        }
        let gone = if before.is_some() { self.unlink(to)? } else { None };
        let room = self.room_for(to, None)?;
        self.forget(name);
        self.add_name(to, room, id);
        Ok(gone)
    }

    /// Gives a file one name more.
    ///
    /// # Errors
    /// When there is no such file, the name is there, or its directory is not.
    pub fn link(&mut self, from: &FilePath, to: &FilePath) -> Result<FileId, NameError> {
        let Some(id) = self.find(from) else { return error(from, MISSING) };
        if self.find(to).is_some() {
            return error(to, EXISTS);
        }
        let room = self.room_for(to, None)?;
        self.add_name(to, room, id);
        if let Some(node) = self.node_mut(id) {
            node.names += 1;
        }
        Ok(id)
    }

    /// The entries of a directory, in the order they were made.
    ///
    /// # Errors
    /// When there is no such directory.
    pub fn list(&self, path: &FilePath) -> Result<Vec<Entry>, NameError> {
        let node = self.find(path).and_then(|id| self.node(id));
        let Some(directory) = node.and_then(|node| node.directory) else {
            return error(path, MISSING);
        };
        let mut next = directory.first;
        let mut entries = Vec::new();
        while let Some(one) = self.names.get(next as usize) {
            let name = one.text()[one.from as usize..].into();
            entries.push(Entry { name, is_directory: self.status(one.id).is_directory });
            next = one.after;
        }
        Ok(entries)
    }

    /// A file's length and kind; nothing of what is gone.
    #[inline]
    pub fn status(&self, id: FileId) -> Status {
        let node = self.node(id);
        node.map_or_else(Status::default, |node| Status {
            size: node.size,
            is_directory: node.directory.is_some(),
        })
    }

    /// Sets a file's length.
    pub fn set_size(&mut self, id: FileId, size: u64) {
        if let Some(node) = self.node_mut(id) {
            node.size = size;
        }
    }

    /// Makes a file's length at least this.
    #[inline]
    pub fn grow(&mut self, id: FileId, size: u64) {
        if let Some(node) = self.node_mut(id) {
            node.size = node.size.max(size);
        }
    }
}

/// What a file descriptor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The file; `None` for `/dev/null`.
    pub id: Option<FileId>,
    /// The position in bytes.
    pub position: u64,
    /// How it was opened.
    pub flags: OpenFlags,
}

/// The open files of a process.
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    fds: Vec<Option<OpenFile>>,
}

impl Descriptors {
    /// Puts a file into a file descriptor, at position 0.
    pub fn open(&mut self, fd: FileDescriptor, id: Option<FileId>, flags: OpenFlags) {
        let index = usize::from(fd.0);
        if self.fds.len() <= index {
            self.fds.resize(index + 1, None);
        }
        self.fds[index] = Some(OpenFile { id, position: 0, flags });
    }

    /// Takes it out.
    pub fn close(&mut self, fd: FileDescriptor) -> Option<OpenFile> {
        self.fds.get_mut(usize::from(fd.0)).and_then(Option::take)
    }

    /// What is in it; `None` when nothing is.
    #[inline]
    pub fn get(&mut self, fd: FileDescriptor) -> Option<&mut OpenFile> {
        self.fds.get_mut(usize::from(fd.0)).and_then(Option::as_mut)
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
        let at = FilePath::target;
        let made = OpenFlags { exclusive: true, ..OpenFlags::WRITE };
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
        let entries = names.list(&FilePath::target("")).expect("the root");
        entries.iter().map(|entry| entry.name.to_string()).collect()
    }

    #[test]
    fn a_directory_keeps_the_order_in_which_names_were_made() {
        let mut names = Names::default();
        let at = FilePath::target;
        for name in ["b", "z", "a", "m"] {
            names.open(&at(name), OpenFlags::WRITE).expect("new");
        }
        names.unlink(&at("z")).expect("there");
        assert_eq!(listed(&names), ["b", "a", "m"]);
        // What is made again, renamed or linked goes to the end.
        names.open(&at("z"), OpenFlags::WRITE).expect("new");
        names.rename(&at("b"), &at("k")).expect("there");
        names.link(&at("a"), &at("b")).expect("there");
        assert_eq!(listed(&names), ["a", "m", "z", "k", "b"]);
        // What is opened again stays.
        names.open(&at("a"), OpenFlags::WRITE).expect("there");
        names.rename(&at("m"), &at("z")).expect("there");
        assert_eq!(listed(&names), ["a", "k", "b", "z"]);
    }

    #[test]
    fn a_file_renamed_to_itself_stays() {
        let mut names = Names::default();
        let at = FilePath::target;
        let (id, _) = names.open(&at("a"), OpenFlags::WRITE).expect("new");
        names.grow(id, 5);
        names.link(&at("a"), &at("b")).expect("new");
        for (from, to) in [("a", "a"), ("a", "b")] {
            assert_eq!(names.rename(&at(from), &at(to)), Ok(None), "{from} {to}");
            assert_eq!((listed(&names), names.status(id).size), (vec!["a".into(), "b".into()], 5));
        }
        assert_eq!(names.unlink(&at("a")), Ok(None));
        assert_eq!(names.unlink(&at("b")), Ok(Some(id)));
        // No name is lost on the way to a directory that is not there.
        names.open(&at("c"), OpenFlags::WRITE).expect("new");
        assert_eq!(names.rename(&at("c"), &at("d/c")).unwrap_err().reason, MISSING);
        assert_eq!(listed(&names), ["c"]);
    }

    /// With time that grows with the square of the number this takes minutes.
    #[test]
    fn a_hundred_thousand_names_come_and_go() {
        let mut names = Names::default();
        let at = |number: u32| FilePath::target(format!("{:05}", number * 7919 % 100_000));
        for number in 0..100_000 {
            names.open(&at(number), OpenFlags::WRITE).expect("new");
        }
        assert_eq!(names.list(&FilePath::target("")).expect("the root").len(), 100_000);
        for number in (0..100_000).rev() {
            assert!(names.unlink(&at(number)).expect("there").is_some());
        }
        assert!(listed(&names).is_empty());
    }
}
