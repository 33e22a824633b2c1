//! A directory of files that raidlab makes, and removes again without ever touching anything else.
//!
//! `DIR/raidlab-run-PID-N/` holds `owner`, a marker that names exactly the files of the run by device, inode
//! and name, the member files `member-0.img` and so on, and where they are wanted `spare.img` and `journal.img`;
//! or, for workloads that make names of their own, the directory `files`, all of which belongs to the run. While
//! the run lives, its marker is locked (`flock`), which the kernel undoes however the run ends. Fault model:
//! the run may be killed at any point; others may put files of their own anywhere, plant links, mount
//! directories of theirs, copy or forge a marker, and clean up at the same time. Why it is safe: the marker is
//! written under the lock, names its own inode, and a file's name is in it before the file is made and its inode
//! before the file gets its length; a cleaner removes only what a marker names, only with the lock in hand,
//! only regular files with the inode that the marker gives (or empty ones, where the run was killed before it
//! knew), by names without a directory part relative to an open directory, never following a link or entering
//! another mount; directories go only when they are empty, except below `files`, where everything goes that is on
//! the same mount. What cannot be removed does not keep the rest. Tests: `tests/rundir.rs`, `tests/cleanup.rs`.

pub(crate) mod system;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Size;
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_random::SplitMix64;

use system::{Directory, Identity, Locked, said};

/// What names of run directories begin with.
pub(crate) const PREFIX: &str = "raidlab-run-";
/// The marker's name.
pub(crate) const MARKER: &str = "owner";
/// The marker's first line.
const MAGIC: &str = "raidlab run directory, format 2; the files named below belong to raidlab";
/// The same of raidlab 0.1.0, which did not write down inodes.
const OLD_MAGIC: &str = "raidlab run directory, format 1; the files named below belong to raidlab";
/// Begins the line of a file that is going to be made.
const PLANNED: &str = "new";
/// Markers longer than this are not ours.
const LONGEST_MARKER: u64 = 1 << 20;

/// The file of a drive that is put into the place of a failed member.
const SPARE: &str = "spare.img";
/// The file of a log device.
const JOURNAL: &str = "journal.img";

/// The directory in which all belongs to the run, and how a marker names it: no file is called so.
const TREE: &str = "files";
const TREE_IN_MARKER: &str = "files/";

/// Files besides the members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Bytes of a drive that takes a failed member's place.
    pub spare: Option<u64>,
    /// Bytes of a log device.
    pub journal: Option<u64>,
}

/// Member files in a directory of their own; removed when dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    parent: Directory,
    name: String,
    directory: Directory,
    marker: Locked,
    files: Vec<Named>,
}

/// A file that a marker names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    /// `None` until it was made.
    identity: Option<Identity>,
}

impl Named {
    /// Not a spare, a journal or the tree.
    fn is_member(&self) -> bool {
        self.name.starts_with("member-")
    }
}

const MAKE: &str = "make a run directory";
const MAKE_FILE: &str = "make a member file";

impl RunDirectory {
    /// Makes `members` files of `bytes` bytes each in a new directory below `parent`.
    ///
    /// The files read as zeroes, and their room is reserved where the filesystem can do that.
    ///
    /// # Errors
    /// [`EngineErrorKind::NoRoom`] when the filesystem has not enough room, with how much is needed and
    /// how much is there; [`EngineErrorKind::Io`] when it refuses. Nothing is left behind then.
    pub fn create(parent: &Path, members: u16, bytes: u64) -> Result<Self, EngineError> {
        Self::create_with(parent, members, bytes, Extra::default())
    }

    /// The same with files besides the members.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        parent: &Path,
        members: u16,
        bytes: u64,
        extra: Extra,
    ) -> Result<Self, EngineError> {
        let directory = Directory::open(parent).map_err(|e| EngineError::io(MAKE, parent, e))?;
        let more = [(SPARE, extra.spare), (JOURNAL, extra.journal)];
        let more = more.into_iter().filter_map(|(name, bytes)| Some((name.to_string(), bytes?)));
        let files = (0..members).map(|n| (format!("member-{n}.img"), bytes));
        let files: Vec<(String, u64)> = files.chain(more).collect();
        let needed = files.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let room = directory.room().map_err(|e| EngineError::io(MAKE, parent, e))?;
        if room < needed {
            let reason = format!(
                "{members} members of {}{} need {}, there are {} MiB ({room} bytes free): {} MiB are missing",
                Size(bytes),
                if files.len() > usize::from(members) { " and what goes with them" } else { "" },
                Size(needed),
                room >> 20,
                (needed - room).div_ceil(1 << 20)
            );
            let error = EngineError::new(EngineErrorKind::NoRoom, MAKE, reason);
            return Err(error.at_path(parent));
        }
        let names = files.iter().map(|(name, _)| name.clone()).collect();
        let mut run = Self::claim(parent, directory, names)?;
        let made = (0..files.len()).map(|index| run.make_member(index));
        let made: Vec<File> = made.collect::<Result<_, _>>()?;
        run.record()?;
        for (file, (name, bytes)) in made.iter().zip(&files) {
            let allocated = system::allocate(file, *bytes);
            allocated.map_err(|error| EngineError::io(MAKE_FILE, &run.path.join(name), error))?;
        }
        Ok(run)
    }

    /// Makes a new directory below `parent` with an empty directory in it, all of which belongs to the
    /// run: see [`tree_path`](Self::tree_path).
    ///
    /// # Errors
    /// [`EngineErrorKind::Io`] when the filesystem refuses. Nothing is left behind then.
    pub fn create_tree(parent: &Path) -> Result<Self, EngineError> {
        let directory = Directory::open(parent).map_err(|e| EngineError::io(MAKE, parent, e))?;
        let mut run = Self::claim(parent, directory, vec![TREE_IN_MARKER.into()])?;
        let made = run.directory.make_directory(TREE);
        let made = made.and_then(|()| run.directory.identity(TREE));
        let made = made.map_err(|error| EngineError::io(MAKE, &run.path.join(TREE), error))?;
        run.files[0].identity = Some(made);
        run.record()?;
        Ok(run)
    }

    /// A new directory with its marker, locked; no member files yet.
    fn claim(parent: &Path, within: Directory, names: Vec<String>) -> Result<Self, EngineError> {
        let made = within.make_own_directory(PREFIX);
        let name =
            made.map_err(|(name, error)| EngineError::io(MAKE, &parent.join(name), error))?;
        let path = parent.join(&name);
        let prepared = within.directory(&name).and_then(|directory| {
            let mut marker = Locked::take(directory.make_file(MARKER)?, true)?;
            let mut text = format!("{MAGIC}\n{}\n", line(MARKER, Identity::of(&marker)?));
            names.iter().for_each(|name| text += &format!("{PLANNED} {name}\n"));
            marker.write_all(text.as_bytes())?;
            marker.sync_all()?;
            Ok((directory, marker))
        });
        match prepared {
            Ok((directory, marker)) => {
                let named = |name| Named { name, identity: None };
                let files = names.into_iter().map(named).collect();
                Ok(Self { path, parent: within, name, directory, marker, files })
            }
            Err(error) => {
                if let Ok(directory) = within.directory(&name) {
                    let made = directory.identity(MARKER).ok();
                    let _ = directory.remove_file(MARKER, made);
                }
                let _ = within.remove_directory(&name);
                Err(EngineError::io(MAKE, &path, error))
            }
        }
    }

    fn make_member(&mut self, index: usize) -> Result<File, EngineError> {
        let made = &mut self.files[index];
        let path = self.path.join(&made.name);
        let failed = |error| EngineError::io(MAKE_FILE, &path, error);
        let file = self.directory.make_file(&made.name).map_err(failed)?;
        made.identity = Some(Identity::of(&file).map_err(failed)?);
        Ok(file)
    }

    /// Writes down which files were made, durably.
    fn record(&mut self) -> Result<(), EngineError> {
        let lines = self.files.iter().filter_map(|file| Some(line(&file.name, file.identity?)));
        let text: String = lines.map(|line| line + "\n").collect();
        let written = self.marker.write_all(text.as_bytes()).and_then(|()| self.marker.sync_all());
        written.map_err(|error| EngineError::io(MAKE, &self.path.join(MARKER), error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which all belongs to the run; `None` when there are member files instead.
    pub fn tree_path(&self) -> Option<PathBuf> {
        self.files.iter().any(|file| file.name == TREE_IN_MARKER).then(|| self.path.join(TREE))
    }

    /// The path of a member's file; `None` when there is no such member.
    pub fn member_path(&self, index: u16) -> Option<PathBuf> {
        let file = self.files.get(usize::from(index)).filter(|file| file.is_member())?;
        Some(self.path.join(&file.name))
    }

    /// Opens the spare drive's file, as [`open_member`](Self::open_member); gives its path too.
    ///
    /// # Errors
    /// When none was made, or the system refuses.
    pub fn open_spare(&self) -> Result<(File, PathBuf), EngineError> {
        self.open_named(SPARE)
    }

    /// Opens the log device's file, as [`open_spare`](Self::open_spare).
    ///
    /// # Errors
    /// As there.
    pub fn open_journal(&self) -> Result<(File, PathBuf), EngineError> {
        self.open_named(JOURNAL)
    }

    fn open_named(&self, name: &str) -> Result<(File, PathBuf), EngineError> {
        const OPERATION: &str = "open a file of the run";
        let path = self.path.join(name);
        if !self.files.iter().any(|known| known.name == name) {
            let reason = "the run was made without it";
            return Err(
                EngineError::new(EngineErrorKind::InvalidRequest, OPERATION, reason).at_path(&path)
            );
        }
        match self.directory.open_file(name, true) {
            Ok(file) => Ok((file, path)),
            Err(error) => Err(EngineError::io(OPERATION, &path, error)),
        }
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.files.iter().filter(|file| file.is_member()).count()
    }

    /// Writes every byte of the members once, durably: with what compresses badly, so that what lies below keeps it.
    /// Only then no write into them is the first at its place, which takes filesystems and flash longer.
    ///
    /// # Errors
    /// [`EngineErrorKind::Cancelled`] when `cancel` was set, [`EngineErrorKind::Io`] when the system refuses.
    pub fn write_throughout(&self, cancel: &AtomicBool) -> Result<(), EngineError> {
        const OPERATION: &str = "write a member file throughout";
        const PIECE: usize = 1 << 20;
        let mut random = SplitMix64::new(1);
        let piece: Vec<u8> = (0..PIECE / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        for index in 0..self.members() as u16 {
            let mut file = self.open_member(index)?;
            let path = self.member_path(index).unwrap_or_default();
            let failed = |error| EngineError::io(OPERATION, &path, error);
            let mut left = file.metadata().map_err(failed)?.len();
            while left > 0 {
                if cancel.load(Ordering::Relaxed) {
                    return Err(EngineError::cancelled(OPERATION));
                }
                let now = left.min(PIECE as u64);
                file.write_all(&piece[..now as usize]).map_err(failed)?;
                left -= now;
            }
            file.sync_all().map_err(failed)?;
        }
        Ok(())
    }

    /// Opens a member's file for reading and writing, without following a link.
    ///
    /// # Errors
    /// When there is no such member, or the system refuses.
    pub fn open_member(&self, index: u16) -> Result<File, EngineError> {
        const OPERATION: &str = "open a member file";
        let member = self.files.get(usize::from(index)).filter(|file| file.is_member());
        let Some(Named { name, .. }) = member else {
            let reason = format!("there are {} members, not a member {index}", self.members());
            return Err(EngineError::new(EngineErrorKind::InvalidRequest, OPERATION, reason)
                .at_path(&self.path));
        };
        let opened = self.directory.open_file(name, true);
        opened.map_err(|error| EngineError::io(OPERATION, &self.path.join(name), error))
    }
}

impl Drop for RunDirectory {
    /// Removes the files that were made, the marker last, and the directory if nothing else is in it.
    fn drop(&mut self) {
        // What cannot be removed now is found again by `clean_leftovers`, as long as the marker is there.
        let made = self.files.iter().filter(|file| file.identity.is_some());
        let failed = made.filter(|file| remove(&self.directory, file).is_err()).count();
        let marker = Identity::of(&self.marker).ok();
        if failed == 0 && self.directory.remove_file(MARKER, marker).is_ok() {
            let _ = self.parent.remove_directory(&self.name);
        }
    }
}

/// What [`clean_leftovers`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleaned {
    /// Directories of runs that were killed: removed.
    pub removed: Vec<PathBuf>,
    /// Directories that were left as they are, or as far as something else lies in them, and why.
    pub kept: Vec<(PathBuf, String)>,
}

/// Removes what killed runs left in `parent`; leaves runs that live, and all that is not raidlab's.
///
/// # Errors
/// When `parent` cannot be read. What cannot be removed is reported in [`Cleaned::kept`].
pub fn clean_leftovers(parent: &Path) -> Result<Cleaned, EngineError> {
    const OPERATION: &str = "look for leftovers of killed runs";
    let failed = |error| EngineError::io(OPERATION, parent, error);
    let within = Directory::open(parent).map_err(failed)?;
    let mut names: Vec<_> = std::fs::read_dir(parent)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.file_name())).collect())
        .map_err(failed)?;
    names.sort();
    // First what holds member files in use.
    let mut cleaned = crate::mounted::clean_mounts(parent)?;
    for name in names.iter().filter_map(|name| name.to_str()) {
        if !name.starts_with(PREFIX) {
            continue;
        }
        let path = parent.join(name);
        match clean_one(&within, name) {
            Ok(()) => cleaned.removed.push(path),
            Err(reason) => cleaned.kept.push((path, reason)),
        }
    }
    Ok(cleaned)
}

/// The marker of a run that is over, locked; the error says why it cannot be.
pub(crate) fn over(directory: &Directory) -> Result<Locked, String> {
    let marker = directory
        .open_file(MARKER, false)
        .map_err(|e| format!("has no readable marker `{MARKER}`: {}", said(&e)))?;
    let marker =
        Locked::take(marker, false).map_err(|_| "its run is still going on".to_string())?;
    if !directory.is_same_file(MARKER, &marker) {
        return Err("another process is removing it".into());
    }
    Ok(marker)
}

/// The marker of a run that is over, which stays locked as long as this lives.
pub(crate) struct Leftover {
    directory: Directory,
    marker: Locked,
    files: Vec<Named>,
}

impl Leftover {
    /// Opens and locks one; the error says why that cannot be.
    pub(crate) fn open(within: &Directory, name: &str) -> Result<Self, String> {
        let directory =
            within.directory(name).map_err(|e| format!("is no directory of ours: {}", said(&e)))?;
        let mut marker = over(&directory)?;
        let files = read_marker(&mut marker)?;
        Ok(Self { directory, marker, files })
    }

    /// Whether a file is one of those that the run made.
    pub(crate) fn has_made(&self, file: Identity) -> bool {
        self.files.iter().any(|one| one.identity == Some(file))
    }

    /// The device of the filesystem that its files are on.
    pub(crate) fn device(&self) -> Option<u64> {
        self.files.iter().find_map(|one| Some(one.identity?.device))
    }
}

/// Removes one left-over directory; the error says why it stays.
fn clean_one(within: &Directory, name: &str) -> Result<(), String> {
    let Leftover { directory, marker, files } = Leftover::open(within, name)?;
    let mut stays = Vec::new();
    for file in &files {
        if let Err(error) = remove(&directory, file) {
            stays.push(format!("`{}` cannot be removed: {}", file.name, said(&error)));
        }
    }
    if !stays.is_empty() {
        return Err(stays.join("; "));
    }
    // The marker goes only when nothing else is left: an emptied directory without one would not be
    // known as ours again.
    let others = directory.others(MARKER).map_err(|error| format!("cannot be read: {error}"))?;
    if let Some(other) = others.first() {
        return Err(format!("`{other}` in it is not raidlab's"));
    }
    let removed = Identity::of(&marker).and_then(|own| directory.remove_file(MARKER, Some(own)));
    removed.map_err(|error| format!("marker cannot be removed: {}", said(&error)))?;
    within.remove_directory(name).map_err(|error| format!("cannot be removed: {}", said(&error)))
}

/// Removes what a marker names; what is gone already is no error.
fn remove(directory: &Directory, file: &Named) -> std::io::Result<()> {
    let removed = if file.name == TREE_IN_MARKER {
        directory.remove_tree(TREE, file.identity)
    } else {
        directory.remove_file(&file.name, file.identity)
    };
    match removed {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        other => other,
    }
}

/// A file's line in a marker.
fn line(name: &str, Identity { device, inode }: Identity) -> String {
    format!("{}:{} {inode} {name}", libc::major(device), libc::minor(device))
}

/// The file of a line; `None` when raidlab would not have written that.
fn named(line: &str) -> Option<Named> {
    let (first, rest) = line.split_once(' ')?;
    if first == PLANNED {
        return Some(Named { name: rest.into(), identity: None });
    }
    let ((major, minor), (inode, name)) = (first.split_once(':')?, rest.split_once(' ')?);
    let device = libc::makedev(major.parse().ok()?, minor.parse().ok()?);
    Some(Named {
        name: name.into(),
        identity: Some(Identity { device, inode: inode.parse().ok()? }),
    })
}

/// The lines of a marker of at most `longest` bytes that begins with one of `magics`; without that line, if
/// it is the first of them, and without empty ones.
pub(crate) fn marker_lines(
    marker: &mut File,
    magics: &[&str],
    longest: u64,
) -> Result<Vec<String>, String> {
    let mut text = String::new();
    let read = Read::take(marker, longest).read_to_string(&mut text);
    read.map_err(|error| format!("its marker cannot be read: {error}"))?;
    let first = text.lines().next();
    if !magics.iter().any(|magic| first == Some(magic)) {
        return Err("its marker is not raidlab's".into());
    }
    let known = usize::from(first == magics.first().copied());
    let lines = text.lines().skip(known).filter(|line| !line.is_empty());
    Ok(lines.map(str::to_string).collect())
}

/// The files that belong to the run, each once.
fn read_marker(marker: &mut File) -> Result<Vec<Named>, String> {
    let own =
        Identity::of(marker).map_err(|error| format!("its marker cannot be read: {error}"))?;
    let mut files: Vec<Named> = Vec::new();
    let mut is_own = false;
    for line in marker_lines(marker, &[MAGIC, OLD_MAGIC], LONGEST_MARKER)? {
        if line == OLD_MAGIC {
            let reason = "raidlab 0.1.0 left it, which did not write down which files it made; \
                          what is not wanted must be removed by hand";
            return Err(reason.into());
        }
        match named(&line) {
            Some(Named { name, identity }) if name == MARKER => is_own = identity == Some(own),
            Some(one) if is_member_name(&one.name) => {
                match files.iter_mut().find(|known| known.name == one.name) {
                    Some(known) => known.identity = one.identity,
                    None => files.push(one),
                }
            }
            _ => return Err(format!("its marker names `{line}`, which raidlab would not")),
        }
    }
    if is_own { Ok(files) } else { Err("it is a copy of a run directory, not the run's".into()) }
}

fn is_member_name(name: &str) -> bool {
    if name == SPARE || name == JOURNAL || name == TREE_IN_MARKER {
        return true;
    }
    let number = name.strip_prefix("member-").and_then(|rest| rest.strip_suffix(".img"));
    number.is_some_and(|n| n.parse::<u16>().is_ok_and(|value| value.to_string() == n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the descriptor stands for a process that is just being started.
    #[test]
    fn who_looked_at_a_left_over_directory_gives_its_lock_back() {
        let parent = std::env::temp_dir().join(format!("raidlab-left-{}", std::process::id()));
        std::fs::create_dir(&parent).expect("a new directory");
        let run = RunDirectory::create(&parent, 2, 4096).expect("a run");
        let name = run.path().file_name().and_then(|name| name.to_str()).expect("named").to_owned();
        // It ended without cleaning up.
        rustix::fs::flock(&*run.marker, rustix::fs::FlockOperation::Unlock).expect("given back");
        std::mem::forget(run);
        let within = Directory::open(&parent).expect("there");
        let left = Leftover::open(&within, &name).expect("over");
        let copy = left.marker.try_clone().expect("a copy");
        assert!(Leftover::open(&within, &name).is_err(), "it is held");
        drop(left);
        let again = Leftover::open(&within, &name).expect("given back");
        drop((again, copy));
        clean_one(&within, &name).expect("all of it is raidlab's");
        std::fs::remove_dir(&parent).expect("empty");
    }

    #[test]
    fn only_names_raidlab_makes_are_its_own() {
        let ours = [
            "member-0.img",
            "member-127.img",
            "member-65535.img",
            "spare.img",
            "journal.img",
            "files/",
        ];
        for name in ours {
            assert!(is_member_name(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "owner",
            "member-.img",
            "member-01.img",
            "member-+1.img",
            "member-1.img ",
            "member-65536.img",
            "member-1.IMG",
            "../member-1.img",
            "member-1/../x.img",
            "member-x.img",
            "spare.im",
            "./journal.img",
            "files",
            "/files/",
            "files/..",
        ] {
            assert!(!is_member_name(name), "{name}");
        }
    }
}
