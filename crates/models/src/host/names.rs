//! Operations on names: which blocks of directories, inode tables and bitmaps they read and change.
//!
//! A name lies in the block of its directory that its hash says, as with `dir_index` of ext3 and ext4.
//! What changes takes place at once; what must be read for it is waited for.

use raidlab_core::units::Nanos;

use super::cache::Page;
use super::files::File;
use super::spec::BLOCK;
use super::task::{Kind, Names, Next, Task};
use super::{
    Change, Failure, Host, HostOutput, Inode, METADATA, PathComponent, SPARE_PATHS, TaskId,
};

/// Names in a block of a directory: entries of 32 bytes (8 and a name of 24), three quarters full.
const ENTRIES: u64 = 96;

/// What the directories of a path came to that was looked up last: most often the next path goes through
/// the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Walked {
    steps: Vec<PathComponent>,
    /// What is read for them.
    reads: Vec<u64>,
}

impl Walked {
    /// Directories are not what they were.
    fn forget(&mut self) {
        self.steps.clear();
        self.reads.clear();
    }
}

impl Host {
    /// The block of a directory with a name.
    fn directory_block(&self, directory: u64, name: u64) -> Option<u64> {
        let file = self.files.get(&directory)?;
        file.entries?;
        let blocks = file.size / BLOCK;
        file.place(name % blocks.max(1)).map(|(block, _)| block)
    }

    fn inode_block(&self, file: u64) -> Option<u64> {
        let inode = self.files.get(&file)?.inode?;
        Some(self.space.inode_block(inode))
    }

    /// A directory gets one block more; gives it.
    pub(super) fn add_directory_block(&mut self, file: &mut File) -> Option<u64> {
        if self.space.available() == 0 {
            return None;
        }
        let (block, len) = self.space.allocate(file.goal, 1)?;
        file.map(file.size / BLOCK, block, len);
        file.size += BLOCK;
        // Its names are in other blocks now.
        self.walked.forget();
        self.cache.fill(METADATA, block..block + 1);
        Some(block)
    }

    /// What is read to find a part of a path.
    fn read_step(&self, step: &PathComponent, reads: &mut Vec<u64>) {
        reads.extend(self.directory_block(step.directory.0, step.name));
        reads.extend(step.file.and_then(|file| self.inode_block(file.0)));
    }

    /// What is read to find a path.
    fn walk(&mut self, path: &[PathComponent], reads: &mut Vec<u64>) {
        let Some((last, above)) = path.split_last() else { return };
        if self.walked.steps != above {
            let mut walked = std::mem::take(&mut self.walked);
            walked.forget();
            walked.steps.extend_from_slice(above);
            above.iter().for_each(|step| self.read_step(step, &mut walked.reads));
            self.walked = walked;
        }
        reads.extend_from_slice(&self.walked.reads);
        self.read_step(last, reads);
    }

    /// Begins an operation: what it reads, what it changes.
    pub(super) fn names(
        &mut self,
        path: &[PathComponent],
        change: Change,
    ) -> Result<Names, Failure> {
        let mut names = self.spare_names.pop().unwrap_or_default();
        names.begin(self.spec.costs.name);
        self.walk(path, &mut names.reads);
        match change {
            Change::Nothing => {}
            Change::Create { file, is_directory } => {
                let last = path.last().ok_or(Failure::NoFile)?;
                self.create(&mut names, last, file.0, is_directory)?;
            }
            Change::Remove { file, is_last } => {
                let last = path.last().ok_or(Failure::NoFile)?;
                self.remove_name(&mut names, last.directory.0, last.name);
                self.remove_file(&mut names, file.0, is_last);
            }
            Change::Link { file, directory, name } => {
                self.add_name(&mut names, directory.0, name)?;
                self.change_inode(&mut names, file.0);
            }
            Change::Rename { file, directory, name, gone, replaces } => {
                let last = path.last().ok_or(Failure::NoFile)?;
                self.remove_name(&mut names, last.directory.0, last.name);
                if replaces {
                    names.writes.extend(self.directory_block(directory.0, name));
                    self.change_inode(&mut names, directory.0);
                } else {
                    self.add_name(&mut names, directory.0, name)?;
                }
                if let Some(gone) = gone {
                    self.remove_file(&mut names, gone.0, true);
                }
                self.change_inode(&mut names, file.0);
            }
            Change::Attribute(file) => self.change_inode(&mut names, file.0),
            Change::Truncate(Inode(file), len) => {
                names.reads.extend(self.pointers_to_read(file, len.div_ceil(BLOCK)));
                names.writes.extend(self.truncate(file, len));
                self.change_inode(&mut names, file);
            }
            Change::List(directory) => {
                let file = self.files.get(&directory.0).ok_or(Failure::NoFile)?;
                let entries = file.entries.ok_or(Failure::NoFile)?;
                names.cost += Nanos(self.spec.costs.entry.0 * entries);
                let blocks = file.extents().flat_map(|(_, block, len)| block..block + len);
                names.reads.extend(blocks);
            }
        }
        names.reads.extend_from_slice(&names.writes);
        Ok(names)
    }

    fn create(
        &mut self,
        names: &mut Names,
        last: &PathComponent,
        number: u64,
        is_directory: bool,
    ) -> Result<(), Failure> {
        let parent = last.directory.0;
        let of = self.files.get(&parent).and_then(|file| file.inode).ok_or(Failure::NoFile)?;
        let group = if is_directory {
            // Where raidlab runs on directories, its files are two levels below the root: nothing is spread there.
            let is_spread = parent == self.root && !self.spec.kernel.is_of_today();
            let above = (!is_spread).then_some(of.group);
            self.space.directory_group(above, last.name)
        } else {
            of.group
        };
        let mut file = self.new_file(group, is_directory)?;
        if is_directory {
            let block = self.add_directory_block(&mut file).ok_or(self.no_space())?;
            names.writes.extend([block, self.space.block_bitmap(block)]);
        }
        names.writes.extend(file.inode.map(|inode| self.space.inode_bitmap(inode)));
        self.files.insert(number, file);
        self.change_inode(names, number);
        self.add_name(names, parent, last.name)
    }

    fn change_inode(&self, names: &mut Names, file: u64) {
        names.writes.extend(self.inode_block(file));
        names.of.push(file);
    }

    /// A directory gets a name more, and a block more when its blocks are full.
    fn add_name(&mut self, names: &mut Names, number: u64, name: u64) -> Result<(), Failure> {
        let mut directory = self.files.remove(&number).ok_or(Failure::NoFile)?;
        let entries = directory.entries.map_or(1, |entries| entries + 1);
        directory.entries = Some(entries);
        let mut has_room = true;
        if entries > directory.size / BLOCK * ENTRIES {
            let added = self.add_directory_block(&mut directory);
            has_room = added.is_some();
            names.writes.extend(added);
            names.writes.extend(added.map(|block| self.space.block_bitmap(block)));
        }
        self.files.insert(number, directory);
        names.writes.extend(self.directory_block(number, name));
        self.change_inode(names, number);
        if has_room { Ok(()) } else { Err(self.no_space()) }
    }

    fn remove_name(&mut self, names: &mut Names, number: u64, name: u64) {
        names.writes.extend(self.directory_block(number, name));
        if let Some(directory) = self.files.get_mut(&number)
            && let Some(entries) = &mut directory.entries
        {
            *entries = entries.saturating_sub(1);
        }
        self.change_inode(names, number);
    }

    fn remove_file(&mut self, names: &mut Names, number: u64, is_last: bool) {
        self.change_inode(names, number);
        let Some(file) = self.files.get_mut(&number) else { return };
        if !is_last {
            return;
        }
        names.writes.extend(file.inode.map(|inode| self.space.inode_bitmap(inode)));
        file.is_gone = true;
        if file.entries.is_some() {
            self.walked.forget();
        }
        if file.opened == 0 {
            names.reads.extend(self.pointers_to_read(number, 0));
            self.discard(number);
        }
    }

    /// Begins an operation on names; gives what waits for something. Most find everything in memory, and are
    /// only CPU time from here on.
    pub(super) fn begin_names(
        &mut self,
        id: u32,
        mut path: Vec<PathComponent>,
        change: Change,
    ) -> Option<Names> {
        let names = self.names(&path, change);
        if path.capacity() > 0 && self.spare_paths.len() < SPARE_PATHS {
            path.clear();
            self.spare_paths.push(path);
        }
        let mut names = match names {
            Ok(names) => names,
            Err(failure) => {
                self.fail(id, failure);
                return None;
            }
        };
        if self.missing(&mut names).is_some() || names.changes() && self.journal.is_stalled() {
            return Some(names);
        }
        self.carry_out(&names);
        self.outputs.push_back(HostOutput::Last { task: TaskId(id), cost: names.cost });
        self.spare_names.push(names);
        None
    }

    /// The next block that must be in memory and is not.
    fn missing(&mut self, names: &mut Names) -> Option<u64> {
        loop {
            names.done += self.cache.use_present(METADATA, &names.reads[names.done..]);
            let block = *names.reads.get(names.done)?;
            if self.known.contains(block) || self.cache.page(METADATA, block) == Page::Reading {
                return Some(block);
            }
            // Used as soon as it is there, however full the memory is.
            self.cache.fill(METADATA, block..block + 1);
            names.done += 1;
        }
    }

    fn carry_out(&mut self, names: &Names) {
        // Their inodes are among the blocks.
        self.join(&names.writes);
        for file in &names.of {
            self.note_changed(*file, true);
        }
    }

    /// Goes on with an operation on names.
    pub(super) fn name(&mut self, id: u32, task: &mut Task) -> Next {
        let Kind::Names(names) = &mut task.kind else { return Next::Wait };
        while let Some(block) = self.missing(names) {
            if self.cache.page(METADATA, block) == Page::Reading {
                self.wait_for_page(id, METADATA, block);
                return Next::Wait;
            }
            let rest = &names.reads[names.done..];
            let follows = |(by, next): &(usize, &u64)| **next == block + *by as u64;
            let together = rest.iter().enumerate().take_while(follows).count() as u64;
            let window = self.spec.filesystem.inode_read_ahead;
            let mut pages = self.space.table_window(block, window);
            pages.end = pages.end.max(block + together);
            self.fetch_metadata(task.process, pages);
        }
        if !names.computed {
            if names.changes() && self.journal.stalls(id) {
                return Next::Wait;
            }
            names.computed = true;
            let (cost, user, copies) = (names.cost, Nanos::ZERO, Nanos::ZERO);
            return Next::Compute { cost, user, copies, is_read: false };
        }
        self.carry_out(names);
        Next::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostSpec;
    use raidlab_core::Sectors;

    #[test]
    fn paths_are_looked_up_in_directories_as_they_are() {
        let (root, directory, file) = (Inode(0), Inode(1), Inode(2));
        let mut host = Host::new(&HostSpec::default(), Sectors(1 << 22), root).expect("possible");
        let path = |directory_there, file_there| {
            let above = PathComponent { directory: root, name: 1, file: directory_there };
            [above, PathComponent { directory, name: 5, file: file_there }]
        };
        let new = path(None, None);
        let created = |file, is_directory| Change::Create { file, is_directory };
        host.names(&new[..1], created(directory, true)).expect("room");
        let path = path(Some(directory), Some(file));
        host.names(&[path[0], new[1]], created(file, false)).expect("room");
        let mut reads = Vec::new();
        // Other names of the file make the directory above its own larger.
        for name in 2..3 * ENTRIES {
            reads.push(host.names(&path, Change::Nothing).expect("there").reads);
            let mut there = Vec::new();
            path.iter().for_each(|step| host.read_step(step, &mut there));
            assert_eq!(reads.last(), Some(&there), "before {name}");
            host.names(&path, Change::Link { file, directory: root, name }).expect("room");
        }
        assert_ne!(reads.first(), reads.last(), "a name is in another block then");
    }
}
