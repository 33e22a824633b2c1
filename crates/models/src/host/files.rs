//! What is known of each file: its length, where it lies, what of it is on its way.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use raidlab_core::units::Time;
use smallvec::SmallVec;

use super::space::Inode;

/// Who waits for writes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// A task.
    Task(u32),
    /// The commit under way.
    Commit,
}

/// Pages that lie in one piece.
#[derive(Clone, Copy, Debug)]
struct Extent {
    page: u64,
    block: u64,
    len: u64,
}

/// A file, or a directory, or (by its own number) the metadata of the filesystem. What every operation looks
/// at lies together at its start, since a host has ten thousands of files and is mostly waiting for memory.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct File {
    /// Bytes.
    pub(super) size: u64,
    /// `None` for the metadata: their pages are blocks by number.
    pub(super) inode: Option<Inode>,
    /// The pieces it lies in, by their first page: most files have one.
    extents: SmallVec<[Extent; 1]>,
    /// The last transaction with anything of it, and with what its data need.
    pub(super) changed_in: u64,
    pub(super) grown_in: u64,
    /// Open so often.
    pub(super) opened: u32,
    /// It has no name any more and goes when it is closed.
    pub(super) is_gone: bool,
    /// The last of them that was found, as a guess.
    found: Cell<u32>,
    /// How many names a directory holds.
    pub(super) entries: Option<u64>,
    /// When the first of its dirty pages became so.
    pub(super) dirtied: Option<Time>,
    /// The second in which it was read last, from 1.
    pub(super) accessed: u64,
    /// The tick of the kernel's clock in which it was last written to, from 1.
    pub(super) modified: u64,
    /// Pages that got places together and are not all handed to the array: not written before.
    pub(super) fresh: Range<u64>,
    /// Where the next block is looked for.
    pub(super) goal: u64,
    /// Where write-back goes on.
    pub(super) cursor: u64,
    /// Blocks behind its end that it keeps for itself, and how many it will keep next.
    pub(super) kept: Option<(u64, u64)>,
    pub(super) keeps: u64,
    /// Blocks around data in its holes that it keeps for what comes there: by the first page of each, block and length.
    pub(super) windows: BTreeMap<u64, (u64, u64)>,
    /// Indirect blocks, with those above them: by the first page of each, block and length.
    pub(super) pointers: BTreeMap<u64, (u64, u64)>,
    /// Writes under way, by number: rising.
    pub(super) in_flight: Vec<u64>,
    /// Who waits until every write up to a number has ended.
    pub(super) waiters: Vec<(u64, Waiter)>,
}

impl File {
    pub(super) fn new(inode: Option<Inode>, goal: u64, is_directory: bool) -> Self {
        Self {
            size: 0,
            inode,
            extents: SmallVec::new(),
            found: Cell::new(0),
            goal,
            kept: None,
            keeps: 0,
            windows: BTreeMap::new(),
            pointers: BTreeMap::new(),
            entries: is_directory.then_some(0),
            opened: 0,
            is_gone: false,
            dirtied: None,
            cursor: 0,
            in_flight: Vec::new(),
            waiters: Vec::new(),
            changed_in: 0,
            grown_in: 0,
            accessed: 0,
            modified: 0,
            fresh: 0..0,
        }
    }

    /// The block of a page and how many pages from it on lie together; `None` where nothing lies.
    pub(super) fn place(&self, page: u64) -> Option<(u64, u64)> {
        if self.inode.is_none() {
            return Some((page, u64::MAX - page));
        }
        let piece = self.extents[..self.behind(page + 1)].last()?;
        let into = page - piece.page;
        (into < piece.len).then(|| (piece.block + into, piece.len - into))
    }

    /// The page behind the last that has a place; `None` where none has.
    pub(super) fn data_end(&self) -> Option<u64> {
        self.extents.last().map(|last| last.page + last.len)
    }

    /// The first of the pieces that begin at a page or behind it.
    #[inline]
    fn behind(&self, page: u64) -> usize {
        match self.extents.last() {
            // Most files have one piece, and grow at their end.
            None => 0,
            Some(last) if last.page < page => self.extents.len(),
            Some(_) => self.behind_within(page),
        }
    }

    /// The same before the last piece: the one after that which was found last, as for readers and
    /// write-back in order, or any.
    fn behind_within(&self, page: u64) -> usize {
        let found = self.found.get() as usize;
        let is_it = |next: usize| {
            self.extents.get(next).is_some_and(|piece| piece.page >= page)
                && next.checked_sub(1).is_none_or(|before| self.extents[before].page < page)
        };
        let near = (found..found + 3).find(|next| is_it(*next));
        let next = near.unwrap_or_else(|| self.extents.partition_point(|piece| piece.page < page));
        self.found.set(next as u32);
        next
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
        let next = self.extents.get(self.behind(page));
        next.map_or(most, |piece| (piece.page - page).min(most))
    }

    /// The first piece of `range` that has no place.
    pub(super) fn next_hole(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut page = range.start;
        while page < range.end {
            match self.place(page) {
                Some((_, len)) => page = page.saturating_add(len),
                None => return Some(page..page + self.hole(page, range.end - page)),
            }
        }
        None
    }

    /// The pieces of `range` that have no place.
    pub(super) fn holes(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut page = range.start;
        std::iter::from_fn(move || {
            let hole = self.next_hole(page..range.end)?;
            page = hole.end;
            Some(hole)
        })
    }

    /// Blocks that it keeps for itself.
    pub(super) fn keeps_blocks(&self) -> u64 {
        let windows: u64 = self.windows.values().map(|(_, len)| len).sum();
        windows + self.kept.map_or(0, |(_, len)| len)
    }

    /// Takes them away: blocks and lengths.
    pub(super) fn take_kept(&mut self) -> impl Iterator<Item = (u64, u64)> + use<> {
        self.kept.take().into_iter().chain(std::mem::take(&mut self.windows).into_values())
    }

    /// The pages around a hole's that have no place, and no window around others.
    pub(super) fn around(&self, page: u64) -> Range<u64> {
        let before = self.extents[..self.behind(page)].last().map_or(0, |one| one.page + one.len);
        let window = self.windows.range(..=page).next_back();
        let before = window.map_or(before, |(first, (_, len))| before.max(first + len));
        let next = self.windows.range(page..).next().map_or(u64::MAX, |(first, _)| *first);
        before..page + self.hole(page, next - page)
    }

    /// Pages get a place.
    pub(super) fn map(&mut self, page: u64, block: u64, len: u64) {
        self.goal = block + len;
        let next = self.behind(page);
        if let Some(before) = self.extents[..next].last_mut()
            && before.page + before.len == page
            && before.block + before.len == block
        {
            before.len += len;
        } else {
            self.extents.insert(next, Extent { page, block, len });
        }
    }

    /// Takes away the places of all pages from `page` on: blocks and lengths.
    pub(super) fn cut(&mut self, page: u64) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        let next = self.behind(page);
        if let Some(piece) = self.extents[..next].last_mut()
            && piece.page + piece.len > page
        {
            let kept = page - piece.page;
            freed.push((piece.block + kept, piece.len - kept));
            piece.len = kept;
        }
        freed.extend(self.extents.drain(next..).map(|piece| (piece.block, piece.len)));
        freed
    }

    /// Where it lies: first page, block and number of blocks of each piece.
    pub(super) fn extents(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.extents.iter().map(|piece| (piece.page, piece.block, piece.len))
    }
}

/// Files in the table.
const FILES: u64 = 1 << 24;

/// Files by number: a table, since numbers are small and rise, and a map for others.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// By number and one, so that the metadata of the filesystem come first.
    rows: Vec<Option<Box<File>>>,
    far: BTreeMap<u64, Box<File>>,
}

impl Files {
    #[inline]
    pub(super) fn get(&self, number: &u64) -> Option<&File> {
        let row = number.wrapping_add(1);
        if row < FILES {
            self.rows.get(row as usize)?.as_deref()
        } else {
            self.far.get(&row).map(|file| &**file)
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: &u64) -> Option<&mut File> {
        let row = number.wrapping_add(1);
        if row < FILES {
            self.rows.get_mut(row as usize)?.as_deref_mut()
        } else {
            self.far.get_mut(&row).map(|file| &mut **file)
        }
    }

    /// Since when a file is dirty.
    pub(super) fn dirtied(&self, number: u64) -> Option<Time> {
        self.get(&number)?.dirtied
    }

    pub(super) fn insert(&mut self, number: u64, file: impl Into<Box<File>>) {
        let row = number.wrapping_add(1);
        if row >= FILES {
            self.far.insert(row, file.into());
            return;
        }
        if self.rows.len() as u64 <= row {
            self.rows.resize_with(row as usize + 1, || None);
        }
        self.rows[row as usize] = Some(file.into());
    }

    pub(super) fn remove(&mut self, number: &u64) -> Option<Box<File>> {
        let row = number.wrapping_add(1);
        if row < FILES { self.rows.get_mut(row as usize)?.take() } else { self.far.remove(&row) }
    }

    /// All files by number, the metadata first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &File)> {
        let rows = self.rows.iter().enumerate();
        let near = rows.filter_map(|(row, file)| Some((row as u64, file.as_deref()?)));
        let far = self.far.iter().map(|(row, file)| (*row, &**file));
        near.chain(far).map(|(row, file)| (row.wrapping_sub(1), file))
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
        assert!(file.holes(0..30).eq([15..20, 25..30]));
        file.map(40, 200, 1);
        file.map(50, 300, 1);
        for page in [50, 0, 20, 40, 19, 1, 24, 40, 39, 50] {
            let all = file.extents().find(|(at, _, len)| (*at..at + len).contains(&page));
            let expected = all.map(|(at, block, len)| (block + page - at, at + len - page));
            assert_eq!(file.place(page), expected, "{page}");
        }
        assert_eq!(file.cut(40), [(200, 1), (300, 1)]);
        assert_eq!(file.cut(12), [(112, 3), (115, 5)]);
        assert!(file.holes(10..14).eq([12..14; 1]));
    }

    #[test]
    fn files_are_found_by_any_number() {
        let mut files = Files::default();
        let numbers = [u64::MAX, 0, 7, FILES, 1 << 60];
        for number in numbers {
            files.insert(number, File::new(None, number, false));
        }
        assert!(files.iter().map(|(number, _)| number).eq(numbers));
        for number in numbers {
            assert_eq!(files.get(&number).map(|file| file.goal), Some(number));
            assert!(files.get_mut(&number).is_some() && files.remove(&number).is_some());
            assert!(files.get(&number).is_none());
        }
        assert!(files.get(&8).is_none() && files.remove(&9).is_none());
    }
}
