//! Where files lie: free blocks, block groups, inodes, and the choice of a group for a directory.
//!
//! Rules after M. Cao et al., "State of the Art: Where we are with the ext3 filesystem" (Ottawa Linux
//! Symposium 2005) and `Documentation/filesystems/ext4`: directories of the root are spread over
//! groups with room (Orlov), other directories lie in the group of theirs, files in that of their
//! directory; data go behind the file's last block, or to the start of its group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::spec::{BLOCK, FilesystemSpec, JournalPlace};

/// Bytes that one group of ext3 and ext4 has; larger ones here are several with metadata together.
const GROUP: u64 = 128 << 20;

/// Pieces of free space that are looked at for one that is long enough.
const LOOKS: usize = 64;

/// An inode's place: its group and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inode {
    pub(super) group: u64,
    number: u64,
}

#[derive(Clone, Debug)]
struct Group {
    /// Inodes never used yet begin here.
    next: u64,
    /// Those given back before.
    free: BinaryHeap<Reverse<u64>>,
    used: u64,
    directories: u64,
    free_blocks: u64,
}

/// The blocks of a filesystem.
#[derive(Clone, Debug)]
pub(super) struct Space {
    blocks: u64,
    group_blocks: u64,
    /// Blocks of metadata at the start of each group: bitmaps, then the inode table.
    bitmaps: u64,
    table: u64,
    inodes: u64,
    per_block: u64,
    groups: Vec<Group>,
    /// Whether directories of the root are spread over them.
    spread: bool,
    /// Free pieces, apart from each other: the start of each by its end, since most are taken from their
    /// start on, and given back there.
    free: BTreeMap<u64, u64>,
    free_blocks: u64,
    /// Promised to data in memory without a place.
    reserved: u64,
    /// Where the next small file lies, and where the next piece of a large one is looked for.
    small: Option<(u64, u64)>,
    large: u64,
    /// The first block of the journal and its length.
    pub(super) journal: Option<(u64, u64)>,
}

impl Space {
    /// An empty filesystem on `blocks` blocks.
    pub(super) fn new(spec: &FilesystemSpec, blocks: u64) -> Self {
        let group_blocks = (spec.group_bytes / BLOCK).min(blocks).max(1);
        let bytes = group_blocks * BLOCK;
        let inodes = (bytes / spec.inode_ratio).max(16);
        let per_block = (BLOCK / spec.inode_bytes).max(1);
        let table = inodes.div_ceil(per_block);
        let bitmaps = 2 * bytes.div_ceil(GROUP);
        let mut space = Self {
            blocks,
            group_blocks,
            bitmaps,
            table,
            inodes,
            per_block,
            groups: Vec::new(),
            spread: spec.spread,
            free: BTreeMap::new(),
            free_blocks: 0,
            reserved: 0,
            small: None,
            large: 0,
            journal: None,
        };
        for group in 0..blocks.div_ceil(group_blocks) {
            let data = space.data_start(group).min(blocks);
            let end = ((group + 1) * group_blocks).min(blocks);
            let (next, free) = (0, BinaryHeap::new());
            space.groups.push(Group { next, free, used: 0, directories: 0, free_blocks: 0 });
            space.free(data, end.saturating_sub(data));
        }
        if let Some(journal) = &spec.journal {
            let goal = match journal.place {
                JournalPlace::Start => 0,
                JournalPlace::Middle => space.data_start(space.groups.len() as u64 / 2),
            };
            // As mke2fs does, less where the filesystem is small.
            let wanted = (journal.bytes / BLOCK).min(blocks / 16).max(1);
            space.journal = space.allocate(goal, wanted);
        }
        space
    }

    /// The first block for data of a group.
    pub(super) fn data_start(&self, group: u64) -> u64 {
        group * self.group_blocks + self.bitmaps + self.table
    }

    /// Blocks that are neither used nor promised.
    pub(super) fn available(&self) -> u64 {
        self.free_blocks.saturating_sub(self.reserved)
    }

    /// Blocks kept for small files.
    pub(super) fn kept_for_small(&self) -> u64 {
        self.small.map_or(0, |(_, len)| len)
    }

    /// Gives them back; false when there are none.
    pub(super) fn give_back_small(&mut self) -> bool {
        let small = self.small.take();
        small.is_some_and(|(block, len)| {
            self.free(block, len);
            true
        })
    }

    /// Promises a number of blocks; false when there are not so many.
    pub(super) fn reserve(&mut self, blocks: u64) -> bool {
        let fits = blocks <= self.available();
        self.reserved += if fits { blocks } else { 0 };
        fits
    }

    /// Takes promises back.
    pub(super) fn release(&mut self, blocks: u64) {
        self.reserved = self.reserved.saturating_sub(blocks);
    }

    fn group_of(&self, block: u64) -> u64 {
        block / self.group_blocks
    }

    /// The bitmap that says whether a block is free.
    pub(super) fn block_bitmap(&self, block: u64) -> u64 {
        let group = self.group_of(block);
        let within = (block % self.group_blocks) * BLOCK / GROUP;
        group * self.group_blocks + within
    }

    /// The bitmap that says whether an inode is free.
    pub(super) fn inode_bitmap(&self, inode: Inode) -> u64 {
        let within = inode.number * (self.bitmaps / 2) / self.inodes.max(1);
        inode.group * self.group_blocks + self.bitmaps / 2 + within
    }

    /// The block of the table with an inode.
    pub(super) fn inode_block(&self, inode: Inode) -> u64 {
        inode.group * self.group_blocks + self.bitmaps + inode.number / self.per_block
    }

    /// The blocks of the table around one of them that are read with it: `window`, aligned.
    pub(super) fn table_window(&self, block: u64, window: u64) -> std::ops::Range<u64> {
        let start = self.group_of(block) * self.group_blocks + self.bitmaps;
        if block < start || block >= start + self.table {
            return block..block + 1;
        }
        let first = block - (block - start) % window;
        first..(first + window).min(start + self.table)
    }

    /// Takes up to `wanted` blocks in one piece, from `goal` on where they are free; gives the start
    /// and how many. `None` when nothing is free.
    pub(super) fn allocate(&mut self, goal: u64, wanted: u64) -> Option<(u64, u64)> {
        let (end, piece) = match self.free.range_mut(goal + 1..).next() {
            // Most often there is room at the goal, or in the first piece behind it.
            Some((end, start)) if *start <= goal || end - *start >= wanted => (*end, start),
            _ => {
                let end = self.look(goal, wanted)?;
                (end, self.free.get_mut(&end)?)
            }
        };
        let start = if (*piece..end).contains(&goal) { goal } else { *piece };
        self.take(end, start, wanted)
    }

    /// The same for a piece that goes on from none: it begins at a multiple of `alignment`, where there is room for all
    /// of it behind the goal; else as [`allocate`](Self::allocate) has it.
    pub(super) fn allocate_aligned(
        &mut self,
        goal: u64,
        wanted: u64,
        alignment: u64,
    ) -> Option<(u64, u64)> {
        let aligned = self.free.range(goal + 1..).take(LOOKS).find_map(|(end, start)| {
            let first = (*start).max(goal).next_multiple_of(alignment);
            (first + wanted <= *end).then_some((*end, first))
        });
        match aligned {
            Some((end, start)) => self.take(end, start, wanted),
            None => self.allocate(goal, wanted),
        }
    }

    /// Takes up to `wanted` blocks behind those of the last small file; new room for them, `most` blocks, is looked for
    /// from `goal` on.
    pub(super) fn take_small(&mut self, goal: u64, wanted: u64, most: u64) -> Option<(u64, u64)> {
        if self.small.is_none_or(|(_, len)| len < wanted) {
            self.give_back_small();
            self.small = self.allocate_aligned(goal, most.max(wanted), most);
        }
        let (block, len) = self.small.take()?;
        let taken = len.min(wanted);
        self.small = (len > taken).then_some((block + taken, len - taken));
        Some((block, taken))
    }

    /// Takes up to `wanted` blocks for a large file: at its `goal`, where it goes on, or else behind what was last
    /// taken in this way (`s_mb_last_group`, `s_mb_last_start`), at a multiple of their length or of `most`.
    pub(super) fn allocate_large(
        &mut self,
        goal: Option<u64>,
        wanted: u64,
        most: u64,
    ) -> Option<(u64, u64)> {
        let found = match goal.filter(|goal| self.is_free(*goal)) {
            Some(goal) => self.allocate(goal, wanted),
            None => {
                let alignment = wanted.next_power_of_two().min(most.next_power_of_two());
                let goal = self.large.max(self.data_start(0)).min(self.blocks - 1);
                self.allocate_aligned(goal, wanted, alignment)
            }
        };
        self.large = found.map_or(self.large, |(block, len)| block + len);
        found
    }

    /// Whether a block is free.
    pub(super) fn is_free(&self, block: u64) -> bool {
        self.free.range(block + 1..).next().is_some_and(|(_, start)| *start <= block)
    }

    /// Takes up to `wanted` blocks from `start` on of the free piece that ends at `end`.
    fn take(&mut self, end: u64, start: u64, wanted: u64) -> Option<(u64, u64)> {
        let piece = self.free.get_mut(&end)?;
        let len = wanted.min(end - start);
        let before = std::mem::replace(piece, start + len);
        if start + len == end {
            self.free.remove(&end);
        }
        if before < start {
            self.free.insert(start, before);
        }
        self.count(start, len, |free, blocks| *free -= blocks);
        self.free_blocks -= len;
        Some((start, len))
    }

    /// The end of the first piece behind `goal`, then from the start, that is long enough; else of the
    /// longest seen. No piece has `goal` in it.
    fn look(&self, goal: u64, wanted: u64) -> Option<u64> {
        let mut longest: Option<(u64, u64)> = None;
        let pieces = self.free.range(goal + 1..).chain(self.free.range(..=goal)).take(LOOKS);
        for (end, start) in pieces {
            let len = end - start;
            if len >= wanted {
                return Some(*end);
            }
            if longest.is_none_or(|(_, most)| len > most) {
                longest = Some((*end, len));
            }
        }
        longest.map(|(end, _)| end)
    }

    /// Gives blocks back.
    pub(super) fn free(&mut self, start: u64, len: u64) {
        if len == 0 {
            return;
        }
        self.count(start, len, |free, blocks| *free += blocks);
        self.free_blocks += len;
        let end = start + len;
        let from = self.free.remove(&start).unwrap_or(start);
        match self.free.range_mut(end..).next() {
            Some((_, behind)) if *behind == end => *behind = from,
            _ => {
                self.free.insert(end, from);
            }
        }
    }

    /// Counts blocks of a piece at the groups they lie in.
    fn count(&mut self, start: u64, len: u64, change: impl Fn(&mut u64, u64)) {
        let (mut at, end) = (start, start + len);
        while at < end {
            let group = self.group_of(at);
            let next = ((group + 1) * self.group_blocks).min(end);
            if let Some(group) = self.groups.get_mut(group as usize) {
                change(&mut group.free_blocks, next - at);
            }
            at = next;
        }
    }

    /// Takes an inode, in `wanted` or the next group that has one. `None` when there is none.
    pub(super) fn take_inode(&mut self, wanted: u64, is_directory: bool) -> Option<Inode> {
        let count = self.groups.len() as u64;
        let inodes = self.inodes;
        for group in (0..count).map(|by| (wanted + by) % count) {
            let one = &mut self.groups[group as usize];
            if one.used == inodes {
                continue;
            }
            let number = one.free.pop().map_or(one.next, |Reverse(number)| number);
            one.next = one.next.max(number + 1);
            one.used += 1;
            one.directories += u64::from(is_directory);
            return Some(Inode { group, number });
        }
        None
    }

    /// Gives an inode back.
    pub(super) fn free_inode(&mut self, inode: Inode, is_directory: bool) {
        let group = &mut self.groups[inode.group as usize];
        group.free.push(Reverse(inode.number));
        group.used -= 1;
        group.directories -= u64::from(is_directory);
    }

    /// The group for a directory: of those with at least average room the one with the fewest
    /// directories, from a place on that `hash` says; below the root's own, the parent's while it has
    /// room.
    pub(super) fn directory_group(&self, parent: Option<u64>, hash: u64) -> u64 {
        if !self.spread {
            return parent.unwrap_or(0);
        }
        let count = self.groups.len() as u64;
        let average = self.free_blocks / count;
        let has_room = |group: u64| {
            let one = &self.groups[group as usize];
            one.free_blocks >= average && one.used < self.inodes
        };
        if let Some(parent) = parent {
            let one = &self.groups[parent as usize];
            if one.used < self.inodes && one.free_blocks >= average / 4 {
                return parent;
            }
        }
        let start = hash % count;
        let order = (0..count).map(|by| (start + by) % count).filter(|group| has_room(*group));
        order.min_by_key(|group| self.groups[*group as usize].directories).unwrap_or(start)
    }

    /// Where data of the group behind that of a block begin; behind the last, those of the first.
    pub(super) fn next_group(&self, block: u64) -> u64 {
        self.data_start((self.group_of(block) + 1) % self.groups.len() as u64)
    }

    /// Blocks of the whole filesystem.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> FilesystemSpec {
        FilesystemSpec { group_bytes: 128 << 20, journal: None, ..FilesystemSpec::default() }
    }

    fn space() -> Space {
        Space::new(&spec(), 4 * 32_768)
    }

    #[test]
    fn groups_are_prefilled_as_mke2fs_does() {
        let space = space();
        // 128 MiB at 16 KiB an inode: 8,192 inodes of 256 bytes, 512 blocks; two bitmaps.
        assert_eq!((space.data_start(0), space.data_start(2)), (514, 2 * 32_768 + 514));
        assert_eq!(space.available(), 4 * (32_768 - 514));
        let inode = Inode { group: 1, number: 17 };
        assert_eq!(space.inode_block(inode), 32_768 + 2 + 1);
        assert_eq!((space.inode_bitmap(inode), space.block_bitmap(40_000)), (32_769, 32_768));
        assert_eq!(space.table_window(32_768 + 2 + 33, 32), 32_768 + 34..32_768 + 66);
        assert_eq!(space.table_window(600, 32), 600..601);
    }

    #[test]
    fn pieces_are_taken_at_the_goal_and_join_when_given_back() {
        let mut space = space();
        let all = space.free.clone();
        assert_eq!(space.allocate(1_000, 10), Some((1_000, 10)));
        assert!(space.is_free(999) && !space.is_free(1_000) && !space.is_free(513));
        let mut other = space.clone();
        assert_eq!(other.allocate_aligned(514, 300, 256), Some((1_024, 300)), "512 lies before");
        assert_eq!(other.allocate_aligned(514, 300, 256), Some((1_536, 300)));
        assert_eq!(other.allocate_aligned(514, 100, 256), Some((768, 100)), "what was left");
        let rest = other.available();
        assert_eq!(other.allocate_aligned(514, rest, 256), Some((514, 254)), "nowhere at all");
        assert_eq!(space.allocate(1_000, 10), Some((1_010, 31_758)).map(|(a, _)| (a, 10)));
        assert_eq!(space.allocate(0, 100), Some((514, 100)), "metadata lie before");
        assert_eq!(space.allocate(32_767, 100), Some((32_767, 1)), "to the end of the group");
        assert_eq!(space.allocate(32_767, 100), Some((32_768 + 514, 100)));
        for (start, len) in [(1_000, 10), (32_767, 1), (514, 100), (1_010, 10), (33_282, 100)] {
            space.free(start, len);
        }
        assert_eq!((&space.free, space.available()), (&all, 4 * (32_768 - 514)));
        assert!(!space.reserve(4 * 32_768) && space.reserve(1_000));
        assert_eq!(space.available(), 4 * (32_768 - 514) - 1_000);
    }

    /// The same by going through all blocks.
    fn allocate_slowly(is_free: &[bool], goal: usize, wanted: usize) -> Option<(u64, u64)> {
        let len = |start: usize| is_free[start..].iter().take_while(|free| **free).count();
        if len(goal) > 0 {
            return Some((goal as u64, len(goal).min(wanted) as u64));
        }
        let begins = |at: &usize| is_free[*at] && (*at == 0 || !is_free[at - 1]);
        let pieces: Vec<usize> =
            (goal..is_free.len()).chain(0..goal).filter(begins).take(LOOKS).collect();
        let enough = pieces.iter().find(|start| len(**start) >= wanted);
        let longest = pieces.iter().rev().max_by_key(|start| len(**start));
        let start = *enough.or(longest)?;
        Some((start as u64, len(start).min(wanted) as u64))
    }

    #[test]
    fn pieces_are_those_found_block_by_block() {
        // All but a few hundred blocks at the end are taken, so that pieces are many and short.
        let mut space = Space::new(&spec(), 32_768);
        let first = space.blocks - 400;
        assert_eq!(space.allocate(0, space.available() - 400), Some((514, first - 514)));
        let mut is_free = vec![true; 400];
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for step in 0..20_000 {
            if draw(5) < 3 || taken.is_empty() {
                let (goal, wanted) = (draw(400) as usize, 1 + draw(12) as usize);
                let found = space.allocate(first + goal as u64, wanted as u64);
                let found = found.map(|(start, len)| (start - first, len));
                assert_eq!(found, allocate_slowly(&is_free, goal, wanted), "step {step}");
                taken.extend(found);
                let blocks = found.map_or(0..0, |(start, len)| start..start + len);
                blocks.for_each(|block| is_free[block as usize] = false);
            } else {
                let (start, len) = taken.swap_remove(draw(taken.len() as u64) as usize);
                space.free(first + start, len);
                (start..start + len).for_each(|block| is_free[block as usize] = true);
            }
        }
    }

    #[test]
    fn directories_of_the_root_are_spread() {
        let mut space = space();
        let mut groups: Vec<u64> = (0..4)
            .map(|_| {
                let group = space.directory_group(None, 2);
                space.take_inode(group, true).map(|inode| inode.group).unwrap_or(9)
            })
            .collect();
        assert_eq!(groups[0], 2);
        groups.sort_unstable();
        assert_eq!(groups, [0, 1, 2, 3]);
        assert_eq!(space.directory_group(Some(3), 0), 3);
    }

    #[test]
    fn inodes_run_out() {
        let journal = None;
        let spec = FilesystemSpec { inode_ratio: 1 << 20, journal, ..FilesystemSpec::default() };
        let mut space = Space::new(&spec, 8_192);
        let taken: Vec<_> = std::iter::from_fn(|| space.take_inode(0, false)).collect();
        assert_eq!(taken.len(), 32);
        space.free_inode(taken[5], false);
        assert_eq!(space.take_inode(0, false), Some(taken[5]));
    }
}
