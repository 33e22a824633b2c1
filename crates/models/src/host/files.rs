//! What is known of each file: its length, where it lies, what of it is on its way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use raidlab_core::units::Time;

use super::space::Inode;

/// Who waits for writes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A task.
    Task(u32),
    /// The commit under way.
    Commit,
}

/// A file, or a directory, or (by its own number) the metadata of the filesystem.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Bytes.
    pub(super) size: u64,
    /// `None` for the metadata: their pages are blocks by number.
    pub(super) inode: Option<Inode>,
    /// First page of each piece, its block, its length.
    extents: BTreeMap<u64, (u64, u64)>,
    /// Where the next block is looked for.
    pub(super) goal: u64,
    /// Blocks behind its end that it keeps for itself, and how many it will keep next.
    pub(super) kept: Option<(u64, u64)>,
    pub(super) keeps: u64,
    /// Indirect blocks, with those above them: by the first page of each, block and length.
    pub(super) pointers: BTreeMap<u64, (u64, u64)>,
    /// How many names a directory holds.
    pub(super) entries: Option<u64>,
    /// Open so often.
    pub(super) opened: u32,
    /// It has no name any more and goes when it is closed.
    pub(super) is_gone: bool,
    /// When the first of its dirty pages became so.
    pub(super) dirtied: Option<Time>,
    /// Where write-back goes on.
    pub(super) cursor: u64,
    /// Writes under way, by number.
    pub(super) flights: BTreeSet<u64>,
    /// Who waits until every write up to a number has ended.
    pub(super) waiters: Vec<(u64, Waiter)>,
    /// The last transaction with anything of it, and with what its data need.
    pub(super) changed_in: u64,
    pub(super) grown_in: u64,
}

impl File {
    pub(super) fn new(inode: Option<Inode>, goal: u64, is_directory: bool) -> Self {
        Self {
            size: 0,
            inode,
            extents: BTreeMap::new(),
            goal,
            kept: None,
            keeps: 0,
            pointers: BTreeMap::new(),
            entries: is_directory.then_some(0),
            opened: 0,
            is_gone: false,
            dirtied: None,
            cursor: 0,
            flights: BTreeSet::new(),
            waiters: Vec::new(),
            changed_in: 0,
            grown_in: 0,
        }
    }

    /// The block of a page and how many pages from it on lie together; `None` where nothing lies.
    pub(super) fn place(&self, page: u64) -> Option<(u64, u64)> {
        if self.inode.is_none() {
            return Some((page, u64::MAX - page));
        }
        let (start, (block, len)) = self.extents.range(..=page).next_back()?;
        let into = page - start;
        (into < *len).then(|| (block + into, len - into))
    }

    /// The indirect block of a page, each being for so many pages.
    pub(super) fn pointers_of(&self, page: u64, each: u64) -> Option<(u64, u64)> {
        let (first, piece) = self.pointers.range(..=page).next_back()?;
        (page - first < each).then_some(*piece)
    }

    /// Pages from `page` on that have no place, at most `most`.
    pub(super) fn hole(&self, page: u64, most: u64) -> u64 {
        if self.place(page).is_some() {
            return 0;
        }
        let next = self.extents.range(page..).next();
        next.map_or(most, |(start, _)| (start - page).min(most))
    }

    /// The pieces of `range` that have no place.
    pub(super) fn holes(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let (mut page, mut holes) = (range.start, Vec::new());
        while page < range.end {
            match self.place(page) {
                Some((_, len)) => page = page.saturating_add(len),
                None => {
                    let len = self.hole(page, range.end - page);
                    holes.push(page..page + len);
                    page += len;
                }
            }
        }
        holes
    }

    /// Pages get a place.
    pub(super) fn map(&mut self, page: u64, block: u64, len: u64) {
        self.goal = block + len;
        if let Some((start, (first, before))) = self.extents.range_mut(..page).next_back()
            && start + *before == page
            && *first + *before == block
        {
            *before += len;
        } else {
            self.extents.insert(page, (block, len));
        }
    }

    /// Takes away the places of all pages from `page` on: blocks and lengths.
    pub(super) fn cut(&mut self, page: u64) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        if let Some((start, (block, len))) = self.extents.range_mut(..page).next_back()
            && start + *len > page
        {
            let kept = page - start;
            freed.push((*block + kept, *len - kept));
            *len = kept;
        }
        freed.extend(self.extents.split_off(&page).into_values());
        freed
    }

    /// Where it lies: first page, block and number of blocks of each piece.
    pub(super) fn extents(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.extents.iter().map(|(page, (block, len))| (*page, *block, *len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::space::Space;
    use crate::host::spec::FilesystemSpec;

    #[test]
    fn pieces_are_mapped_and_cut() {
        let mut space = Space::new(&FilesystemSpec::default(), 1 << 20);
        let mut file = File::new(space.take_inode(0, false), 0, false);
        assert_eq!((file.place(0), file.hole(0, 9)), (None, 9));
        file.map(0, 100, 10);
        file.map(10, 110, 5);
        file.map(20, 115, 5);
        assert_eq!(file.extents().count(), 2, "the first two are one");
        assert_eq!((file.place(12), file.place(15)), (Some((112, 3)), None));
        assert_eq!(file.place(24), Some((119, 1)));
        assert_eq!(file.holes(0..30), [15..20, 25..30]);
        assert_eq!(file.cut(12), [(112, 3), (115, 5)]);
        let holes = file.holes(10..14);
        assert_eq!((holes.len(), holes[0].clone()), (1, 12..14));
    }
}
