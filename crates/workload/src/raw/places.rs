//! Where the files of a plan lie on a target without a filesystem.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_core::Size;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::names::{FileId, NameError, Names};
use crate::op::{FilePath, OpenFlags, Root};
use crate::plan::{FileNeed, Plan};

/// Names, lengths and extents.
#[derive(Debug)]
pub(super) struct Places {
    names: Names,
    /// By name: first byte on the target and room in bytes.
    extents: BTreeMap<FilePath, (u64, u64)>,
    /// Files that nobody has made or removed yet: there all the same, as long as their places, as a
    /// device is.
    untouched: BTreeSet<FilePath>,
    /// Files that are there, or were when somebody opened them.
    files: BTreeMap<FileId, File>,
}

/// A file on the target.
#[derive(Debug)]
struct File {
    /// Its name, for messages.
    path: FilePath,
    start: u64,
    /// The room it has.
    bytes: u64,
    /// How many descriptors hold it.
    open: u32,
    /// Its length when it has no name any more: it is there for as long as it is held, as under POSIX.
    nameless: Option<u64>,
}

fn not_supported(reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::NotSupported, "target", reason)
}

fn of_name(error: NameError) -> WorkloadError {
    not_supported(format!("on a target without a filesystem: {error}"))
}

/// Checks that a plan can be on a target of `space` bytes without a filesystem that reads and writes
/// whole blocks of `logical_block` bytes.
///
/// # Errors
/// When it needs a filesystem, does not fit, or its files do not work in whole blocks.
pub fn check(plan: &Plan, space: u64, logical_block: u64) -> Result<(), WorkloadError> {
    Places::new(plan, space)?;
    match plan.files.iter().find(|file| !file.unit.is_multiple_of(logical_block)) {
        None => Ok(()),
        Some(file) => {
            let (unit, block) = (Size(file.unit), Size(logical_block));
            let reason =
                format!("{unit} is not a multiple of the target's block ({block}): {}", file.path);
            Err(WorkloadError::new(WorkloadErrorKind::Block, "block", reason))
        }
    }
}

impl Places {
    /// Spreads the files evenly over the plan's span, in their order.
    pub(super) fn new(plan: &Plan, space: u64) -> Result<Self, WorkloadError> {
        if let Some(why) = plan.needs_filesystem {
            let reason = format!("{why}: it needs a filesystem; choose a target with one");
            return Err(not_supported(reason));
        }
        let span = plan.span.unwrap_or(space).min(space);
        let mut extents = BTreeMap::new();
        let count = plan.files.len() as u64;
        let all: u64 = plan.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes));
        let does_not_fit = |needed: u64| {
            let (needed, span) = (Size(needed), Size(span));
            let reason =
                format!("{count} files, {needed} in all, do not fit in {span} of the target");
            WorkloadError::new(WorkloadErrorKind::DoesNotFit, "size", reason)
        };
        let slack = span.checked_sub(all).ok_or_else(|| does_not_fit(all))?;
        let (mut before, mut end) = (0u64, 0u64);
        for (index, file) in (0u64..).zip(&plan.files) {
            let start = start(before, slack, index, count, file);
            if start < end || start + file.bytes > span {
                return Err(does_not_fit(all + file.unit * count));
            }
            extents.insert(file.path.clone(), (start, file.bytes));
            (before, end) = (before + file.bytes, start + file.bytes);
        }
        let untouched = extents.keys().cloned().collect();
        Ok(Self { names: Names::default(), extents, untouched, files: BTreeMap::new() })
    }

    pub(super) fn extents(&self) -> Vec<(u64, u64)> {
        self.extents.values().map(|(start, bytes)| (*start, start + bytes)).collect()
    }

    pub(super) fn add_source(&mut self, name: &str, bytes: u64) -> Result<(), WorkloadError> {
        self.names.add_source(name, bytes).map_err(of_name)
    }

    /// Puts a file that is untouched among the names, at its full length.
    fn appear(&mut self, path: &FilePath) -> Result<(), WorkloadError> {
        if self.untouched.remove(path)
            && let Some(&(_, bytes)) = self.extents.get(path)
        {
            let (id, _) = self.names.open(path, OpenFlags::WRITE).map_err(of_name)?;
            self.names.set_size(id, bytes);
        }
        Ok(())
    }

    /// Opens a file, which is [closed](Self::close) later. What is made by this is empty, even where nobody has
    /// touched its place.
    pub(super) fn open(
        &mut self,
        path: &FilePath,
        flags: OpenFlags,
    ) -> Result<FileId, WorkloadError> {
        if flags.create {
            self.untouched.remove(path);
        } else {
            self.appear(path)?;
        }
        let (id, _) = self.names.open(path, flags).map_err(of_name)?;
        if path.root == Root::Target && !self.files.contains_key(&id) {
            let Some(&(start, bytes)) = self.extents.get(path) else {
                return Err(not_supported(format!("{path} has no place on this target")));
            };
            let path = path.clone();
            self.files.insert(id, File { path, start, bytes, open: 0, nameless: None });
        }
        if let Some(file) = self.files.get_mut(&id) {
            file.open += 1;
        }
        Ok(id)
    }

    /// A descriptor that held a file holds it no more.
    pub(super) fn close(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.open = file.open.saturating_sub(1);
            if file.open == 0 && file.nameless.is_some() {
                self.files.remove(&id);
            }
        }
    }

    /// Where `wanted` bytes of a file from `position` on lie, and how many are moved: reads end with the
    /// file, writes lengthen it. No place: a file from elsewhere.
    pub(super) fn range(
        &mut self,
        id: FileId,
        position: u64,
        wanted: u64,
        is_read: bool,
    ) -> Result<(Option<u64>, u64), WorkloadError> {
        let moved =
            if is_read { wanted.min(self.size(id).saturating_sub(position)) } else { wanted };
        let Some(file) = self.files.get_mut(&id) else { return Ok((None, moved)) };
        let end = position.saturating_add(moved);
        if end > file.bytes {
            let (path, needed, room) = (&file.path, Size(end), Size(file.bytes));
            return Err(not_supported(format!("{path} needs {needed}, its place has {room}")));
        }
        match (is_read, &mut file.nameless) {
            (true, _) => {}
            (false, Some(size)) => *size = end.max(*size),
            (false, None) => self.names.grow(id, end),
        }
        Ok((Some(file.start + position), moved))
    }

    /// Whether the bytes of a file lie on the target.
    pub(super) fn is_on_target(&self, id: FileId) -> bool {
        self.files.contains_key(&id)
    }

    pub(super) fn size(&self, id: FileId) -> u64 {
        let nameless = self.files.get(&id).and_then(|file| file.nameless);
        nameless.unwrap_or_else(|| self.names.status(id).size)
    }

    pub(super) fn set_size(&mut self, id: FileId, size: u64) -> Result<(), WorkloadError> {
        if let Some(file) = self.files.get_mut(&id) {
            if size > file.bytes {
                let (path, size, room) = (&file.path, Size(size), Size(file.bytes));
                let reason = format!("{path} is to have {size}, its place has {room}");
                return Err(not_supported(reason));
            }
            if let Some(before) = &mut file.nameless {
                *before = size;
                return Ok(());
            }
        }
        self.names.set_size(id, size);
        Ok(())
    }

    /// Takes a name away. A file that somebody has open keeps its place and length until that is closed.
    pub(super) fn unlink(&mut self, path: &FilePath) -> Result<(), WorkloadError> {
        self.appear(path)?;
        let size = self.names.find(path).map_or(0, |id| self.size(id));
        let Some(gone) = self.names.unlink(path).map_err(of_name)? else { return Ok(()) };
        match self.files.get_mut(&gone) {
            Some(file) if file.open > 0 => file.nameless = Some(size),
            _ => _ = self.files.remove(&gone),
        }
        Ok(())
    }

    pub(super) fn stat(&mut self, path: &FilePath) -> Result<u64, WorkloadError> {
        self.appear(path)?;
        let id = self.names.find(path);
        let missing = || not_supported(format!("{path} is not there"));
        Ok(self.size(id.ok_or_else(missing)?))
    }
}

/// Where a file starts: behind those before it and its share of the room that is left over, rounded down
/// to its unit. Files of one size are so spread evenly.
fn start(before: u64, slack: u64, index: u64, count: u64, file: &FileNeed) -> u64 {
    let (before, slack) = (u128::from(before), u128::from(slack));
    let even = (before * u128::from(count) + slack * u128::from(index)) / u128::from(count);
    even as u64 / file.unit.max(1) * file.unit.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(files: &[(u64, u64)]) -> Plan {
        let file = |(index, &(bytes, unit)): (usize, &(u64, u64))| FileNeed {
            path: FilePath::target(format!("{index}")),
            bytes,
            unit,
        };
        Plan { files: files.iter().enumerate().map(file).collect(), ..Plan::default() }
    }

    #[test]
    fn files_are_spread_and_disjoint() {
        let extents = |files, space| Places::new(&plan(files), space).map(|p| p.extents());
        assert_eq!(extents(&[(10, 1), (10, 1)], 100), Ok(vec![(0, 10), (50, 60)]));
        assert_eq!(extents(&[(10, 4), (30, 4)], 100), Ok(vec![(0, 10), (40, 70)]));
        assert_eq!(extents(&[(50, 1), (50, 1)], 100), Ok(vec![(0, 50), (50, 100)]));
        let error = extents(&[(50, 1), (51, 1)], 100).unwrap_err();
        assert_eq!(error.kind, WorkloadErrorKind::DoesNotFit, "{error}");
        // Rounding down would push the second into the first.
        assert!(extents(&[(50, 1), (50, 32)], 100).is_err());
    }

    #[test]
    fn what_needs_a_filesystem_says_so() {
        let plan = Plan { needs_filesystem: Some("it makes directories"), ..Plan::default() };
        let error = Places::new(&plan, 100).unwrap_err();
        assert_eq!(error.kind, WorkloadErrorKind::NotSupported);
        assert!(error.reason.contains("it makes directories"), "{error}");
        let odd = self::plan(&[(1000, 1000)]);
        assert_eq!(check(&odd, 4096, 512).unwrap_err().kind, WorkloadErrorKind::Block);
    }
}
