//! How a growing file takes its blocks where places are chosen when data come, and indirect blocks.
//!
//! A file of ext2, ext3 or FFS names its first 12 blocks in its inode; every further piece of as many
//! blocks as an indirect block has pointers begins with that block, which is taken just before them
//! and so lies in the file's way. It must be in memory before the blocks behind it can be found: a
//! reader waits for it, read-ahead or not (R. Card, T. Ts'o and S. Tweedie, "Design and Implementation
//! of the Second Extended Filesystem", 1994; `Documentation/filesystems/ext2.rst`). The blocks of
//! pointers above those are taken with the first one below them.

use super::cache::Page;
use super::files::File;
use super::spec::{BLOCK, FilesystemSpec};
use super::{Host, METADATA};

/// Blocks that an inode names itself.
const DIRECT: u64 = 12;

/// The first blocks that a file keeps for itself: `EXT3_DEFAULT_RESERVE_BLOCKS`.
const FIRST_KEPT: u64 = 8;

/// How files are mapped by pointers, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointers {
    /// Pages that the inode names.
    direct: u64,
    /// Pages of one indirect block.
    pub(super) each: u64,
    /// Its length.
    blocks: u64,
    /// Pointers in it.
    many: u64,
}

impl FilesystemSpec {
    pub(super) fn pointers(&self) -> Option<Pointers> {
        let blocks = self.block / BLOCK;
        let many = self.indirect?;
        Some(Pointers { direct: DIRECT * blocks, each: many * blocks, blocks, many })
    }
}

impl Pointers {
    /// The first page that the indirect block of a page names, and how long it is with those above it
    /// that begin there; `None` for pages that the inode names.
    fn unit(&self, page: u64) -> Option<(u64, u64)> {
        let number = page.checked_sub(self.direct)? / self.each;
        // Double: behind the first, and again for every block of pointers full of them.
        let above = u64::from(number > 0 && (number - 1).is_multiple_of(self.many));
        Some((self.direct + number * self.each, (1 + above) * self.blocks))
    }

    /// Where the piece of a page ends.
    fn end(&self, page: u64) -> u64 {
        self.unit(page).map_or(self.direct, |(first, _)| first + self.each)
    }
}

/// Blocks of a file that ext4 packs with those of others (`MB_DEFAULT_STREAM_THRESHOLD`, fs/ext4/mballoc.h).
const MOST_IN_GROUP_LOCALITY: u64 = 16;

/// Blocks that small files of any directory take one behind the other (`MB_DEFAULT_GROUP_PREALLOC`, the
/// same).
const GROUP_LOCALITY: u64 = 512;

/// Blocks of the windows for which ext4 looks for a place at once, in a file of so many blocks: as long
/// as the file up to 1 MiB, then 2, 4 and `most` (8 MiB) long (`ext4_mb_normalize_request`,
/// fs/ext4/mballoc.c of 6.12).
fn window(size: u64, most: u64) -> u64 {
    let window = match (size * BLOCK) >> 20 {
        0 => size.next_power_of_two().max(4),
        1..4 => 512,
        4..8 => 1_024,
        _ => 2_048,
    };
    window.min(most)
}

impl Host {
    /// The pages up to which the places of a file are chosen together, beginning with one of them:
    /// before them, an indirect block or another group may have their turn.
    pub(super) fn piece_end(&self, page: u64, end: u64) -> u64 {
        let end = self.pointers.map_or(end, |pointers| end.min(pointers.end(page)));
        match self.spec.filesystem.most_in_group {
            Some(most) => {
                let (most, direct) = (most / BLOCK, self.named_by_inode());
                let within = page.checked_sub(direct).map(|page| page % most);
                end.min(within.map_or(direct, |within| page - within + most))
            }
            None => end,
        }
    }

    fn named_by_inode(&self) -> u64 {
        self.pointers.map_or(0, |pointers| pointers.direct)
    }

    /// Before pages of a file get places: goes to the next group when this one has had its share, and
    /// takes the indirect block. Gives the blocks of metadata that changed.
    pub(super) fn begin_piece(&mut self, number: u64, page: u64) -> Vec<u64> {
        let direct = self.named_by_inode();
        if let Some(most) = self.spec.filesystem.most_in_group
            && page >= direct.max(1)
            && (page - direct).is_multiple_of(most / BLOCK)
        {
            self.give_back_kept(number);
            if let Some(file) = self.files.get_mut(&number) {
                file.goal = self.space.next_group(file.goal);
            }
        }
        let Some((first, blocks)) = self.pointers.and_then(|pointers| pointers.unit(page)) else {
            return Vec::new();
        };
        let there = self.files.get(&number).is_none_or(|file| file.pointers.contains_key(&first));
        if there || number == METADATA {
            return Vec::new();
        }
        let taken = self.take_blocks(number, None, blocks);
        let Some((block, len)) = taken else { return Vec::new() };
        if let Some(file) = self.files.get_mut(&number) {
            file.pointers.insert(first, (block, len));
            file.goal = block + len;
        }
        self.cache.fill(METADATA, block..block + len);
        let mut changed: Vec<u64> = (block..block + len).collect();
        changed.push(self.space.block_bitmap(block));
        changed
    }

    /// Takes up to `wanted` blocks in one piece for a file, first those that it keeps for itself; for
    /// its data from `page` on, or for blocks of its own.
    pub(super) fn take_blocks(
        &mut self,
        number: u64,
        page: Option<u64>,
        wanted: u64,
    ) -> Option<(u64, u64)> {
        if self.spec.filesystem.delayed_allocation
            && let Some(page) = page
        {
            return self.take_as_buddies(number, page, wanted);
        }
        let most = self.spec.filesystem.reservation;
        let file = self.files.get_mut(&number)?;
        if let Some((block, len)) = file.kept.take() {
            let taken = len.min(wanted);
            file.kept = (len > taken).then_some((block + taken, len - taken));
            return Some((block, taken));
        }
        let keeps = file.opened > 0 && file.entries.is_none() && most > 0;
        let more = if keeps { file.keeps.max(FIRST_KEPT).min(most) } else { 0 };
        file.keeps = (2 * more).min(most);
        let (block, len) = self.space.allocate(file.goal, wanted + more)?;
        let taken = len.min(wanted);
        if len > taken {
            file.kept = Some((block + taken, len - taken));
        }
        Some((block, taken))
    }

    /// The same as ext4 does it (`ext4_mb_new_blocks`, fs/ext4/mballoc.c of 6.12): small files lie one
    /// behind the other, whatever their directories; others are extended, where that can be, and else go
    /// on behind what was last given to any of them; and around data in a hole there is room for what
    /// comes beside them.
    fn take_as_buddies(&mut self, number: u64, page: u64, wanted: u64) -> Option<(u64, u64)> {
        let most = self.spec.filesystem.allocation;
        let file = self.files.get_mut(&number)?;
        let size = file.size.div_ceil(BLOCK).max(page + wanted);
        let window_of_page = file.windows.range(..=page).next_back();
        let has_window = window_of_page.is_some_and(|(first, (_, len))| page < first + len);
        if has_window || page != file.data_end().unwrap_or(0) {
            return self.take_in_hole(number, page, (wanted, window(size, most)));
        }
        if let Some((block, len)) = file.kept.take() {
            let taken = len.min(wanted);
            file.kept = (len > taken).then_some((block + taken, len - taken));
            return Some((block, taken));
        }
        if size <= MOST_IN_GROUP_LOCALITY {
            let goal = file.goal;
            return self.space.take_small(goal, wanted, GROUP_LOCALITY);
        }
        let keeps = file.opened > 0 && file.entries.is_none();
        let end = (page + wanted).next_multiple_of(window(size, most));
        let whole = if keeps { end - page } else { wanted };
        let goal = file.data_end().is_some().then_some(file.goal);
        let (block, len) = self.space.allocate_large(goal, whole, most)?;
        let file = self.files.get_mut(&number)?;
        let taken = len.min(wanted);
        if len > taken {
            file.kept = Some((block + taken, len - taken));
        }
        Some((block, taken))
    }

    /// Takes blocks for pages in a hole of a file: of the window around them, of so many pages.
    fn take_in_hole(
        &mut self,
        number: u64,
        page: u64,
        (wanted, window): (u64, u64),
    ) -> Option<(u64, u64)> {
        let file = self.files.get_mut(&number)?;
        let around = file.around(page);
        let found = file.windows.range(..=page).next_back();
        let (first, block, len) = match found {
            Some((first, (block, len))) if page < first + len => (*first, *block, *len),
            _ => {
                let start = page / window * window;
                let end = (start + window).max((page + wanted).next_multiple_of(window));
                let (start, end) = (start.max(around.start), end.min(around.end));
                let (block, len) = self.space.allocate_large(None, end - start, window)?;
                if page - start >= len {
                    // Not so much lies in one piece.
                    self.space.free(block, len);
                    return self.space.allocate(block, wanted);
                }
                (start, block, len)
            }
        };
        let file = self.files.get_mut(&number)?;
        file.windows.remove(&first);
        let before = page - first;
        let taken = wanted.min(len - before);
        let pieces =
            [(first, block, before), (page + taken, block + before + taken, len - before - taken)];
        let pieces = pieces.into_iter().filter(|(_, _, len)| *len > 0);
        file.windows.extend(pieces.map(|(page, block, len)| (page, (block, len))));
        Some((block + before, taken))
    }

    /// A file keeps nothing for itself any more.
    pub(super) fn give_back_kept(&mut self, number: u64) {
        let Some(file) = self.files.get_mut(&number) else { return };
        for (block, len) in file.take_kept() {
            self.space.free(block, len);
        }
    }

    /// All that files keep for themselves, when there is no other room; false when that is nothing.
    pub(super) fn give_back_all_kept(&mut self) -> bool {
        let has_any = |(number, file): (u64, &File)| (file.keeps_blocks() > 0).then_some(number);
        let numbers: Vec<u64> = self.files.iter().filter_map(has_any).collect();
        for number in &numbers {
            self.give_back_kept(*number);
        }
        self.space.give_back_small() || !numbers.is_empty()
    }

    /// The indirect block that must be read before a page can be found; asks for it.
    pub(super) fn missing_pointers(&mut self, process: u32, number: u64, page: u64) -> Option<u64> {
        let each = self.pointers?.each;
        let (block, len) = self.files.get(&number)?.pointers_of(page, each)?;
        match self.cache.page(METADATA, block) {
            Page::Present => {
                self.cache.touch(METADATA, block..block + 1);
                return None;
            }
            Page::Reading => {}
            Page::Absent => self.fetch_metadata(process, block..block + len),
        }
        Some(block)
    }

    /// The indirect blocks of a file from a page on that are not in memory: who cuts it reads them.
    pub(super) fn pointers_to_read(&self, number: u64, page: u64) -> Vec<u64> {
        let Some(file) = self.files.get(&number) else { return Vec::new() };
        let pieces = file.pointers.range(page..).map(|(_, piece)| *piece);
        let blocks = pieces.flat_map(|(block, len)| block..block + len);
        blocks.filter(|block| self.cache.page(METADATA, *block) == Page::Absent).collect()
    }

    /// Takes the places of a file from a page on, its indirect blocks' too; the bitmaps that change.
    pub(super) fn cut(&mut self, file: &mut File, page: u64) -> Vec<u64> {
        for (block, len) in file.take_kept() {
            self.space.free(block, len);
        }
        let pointers: Vec<(u64, u64)> = file.pointers.split_off(&page).into_values().collect();
        for (block, len) in &pointers {
            self.cache.forget(METADATA, *block..block + len);
        }
        if !pointers.is_empty() {
            self.settle_dirty(METADATA);
        }
        let mut freed = file.cut(page);
        if file.entries.is_some() {
            // What was cached of a directory lies among the metadata.
            for (block, len) in &freed {
                self.cache.forget(METADATA, *block..block + len);
            }
            self.settle_dirty(METADATA);
        }
        freed.extend(pointers);
        self.give_back(&freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::filesystem::FilesystemKind;

    #[test]
    fn pointers_are_those_of_ext3_and_ffs() {
        let ext3 = FilesystemSpec::of(FilesystemKind::Ext3).pointers().expect("has some");
        assert_eq!(ext3.unit(11), None);
        assert_eq!(ext3.unit(12), Some((12, 1)));
        assert_eq!(ext3.unit(1_035), Some((12, 1)));
        assert_eq!(ext3.unit(1_036), Some((1_036, 2)), "and the double one");
        assert_eq!(ext3.unit(2_060), Some((2_060, 1)));
        assert_eq!(ext3.unit(1_036 + 1_024 * 1_024).map(|(_, blocks)| blocks), Some(2));
        assert_eq!((ext3.end(0), ext3.end(12)), (12, 1_036));
        let ffs = FilesystemSpec::of(FilesystemKind::Ffs).pointers().expect("has some");
        assert_eq!(ffs.unit(48), Some((48, 4)), "in pages of 4 KiB");
        assert_eq!(ffs.end(48), 48 + 8_192);
        assert_eq!(FilesystemSpec::default().pointers(), None);
    }
}
