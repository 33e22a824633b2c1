//! The journal of metadata in ordered mode: a transaction gathers changed blocks; its commit waits for
//! the data of files that got places in it, writes the blocks to the journal one behind the other,
//! flushes, and writes a commit block (S. Tweedie, "Journaling the Linux ext2fs Filesystem", 1998;
//! `Documentation/filesystems/journalling.rst`). The blocks are written to their places later, by
//! write-back. Who changes metadata waits while the running transaction is full, a quarter of the
//! journal, and the one before is still being committed. Without a journal, changed blocks are dirty at once.

use raidlab_core::contract::IoOp;
use raidlab_core::units::Time;

use super::blockset::BlockSet;
use super::files::Waiter;
use super::space::Inode;
use super::spec::BLOCK;
use super::writeback::Work;
use super::{Host, KERNEL, METADATA, Purpose};

/// Blocks that one descriptor block names: 4 KiB less its header, in tags of 16 bytes.
const TAGS: u64 = 250;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Ordered data are handed to the array.
    Submit,
    /// Ordered data are waited for.
    Data,
    Log,
    Flush,
    Record,
}

#[derive(Clone, Debug)]
struct Commit {
    number: u64,
    blocks: Vec<u64>,
    /// Files whose data come first.
    files: Vec<u64>,
    stage: Stage,
    /// Requests under way.
    requests: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// Its first block and how many it has.
    area: Option<(u64, u64)>,
    /// The number of the running transaction, what it has changed, since when.
    number: u64,
    running: BlockSet,
    /// The same one by one.
    blocks: Vec<u64>,
    /// Files that got places in it, as they did; some more than once.
    files: Vec<u64>,
    started: Option<Time>,
    commit: Option<Commit>,
    committed: u64,
    /// Somebody waits for this one.
    wanted: u64,
    waiters: Vec<(u64, u32)>,
    /// Who wants to change something and finds the running transaction full.
    stalled: Vec<u32>,
    /// Where the next commit goes, and blocks written since all were written to their places.
    head: u64,
    used: u64,
}

impl Journal {
    pub(super) fn new(area: Option<(u64, u64)>) -> Self {
        Self {
            area,
            number: 1,
            running: BlockSet::default(),
            blocks: Vec::new(),
            files: Vec::new(),
            started: None,
            commit: None,
            committed: 0,
            wanted: 0,
            waiters: Vec::new(),
            stalled: Vec::new(),
            head: 0,
            used: 0,
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.area.is_some()
    }

    /// A file got places: its data are written before the running transaction.
    pub(super) fn ordered(&mut self, file: u64) {
        // A file that grows comes again and again.
        if self.is_there() && self.files.last() != Some(&file) {
            self.files.push(file);
        }
    }

    /// The last transaction with anything in it.
    pub(super) fn last(&self) -> u64 {
        if self.blocks.is_empty() { self.number - 1 } else { self.number }
    }

    /// Whether the commit of a transaction flushes after now (`jbd2_trans_will_send_data_barrier`,
    /// fs/jbd2/journal.c).
    pub(super) fn will_flush(&self, number: u64) -> bool {
        let is_ahead = |commit: &Commit| !matches!(commit.stage, Stage::Flush | Stage::Record);
        let commit = self.commit.as_ref().filter(|commit| commit.number == number);
        number == self.number || commit.is_some_and(is_ahead)
    }

    /// A task waits for a commit; false when that was long ago, or there is no journal.
    pub(super) fn wait_for(&mut self, number: u64, id: u32) -> bool {
        if !self.is_there() || number <= self.committed {
            return false;
        }
        self.wanted = self.wanted.max(number);
        self.waiters.push((number, id));
        true
    }

    /// A task that wants to change metadata waits when the running transaction is full, which it is with
    /// a quarter of the journal's blocks (`j_max_transaction_buffers`), and cannot be committed yet
    /// because the one before still is: "the current transaction is already too large; wait for it
    /// to commit".
    pub(super) fn stalls(&mut self, id: u32) -> bool {
        let is_stalled = self.is_stalled();
        if is_stalled {
            self.stalled.push(id);
        }
        is_stalled
    }

    /// The same, without waiting for it to go on.
    pub(super) fn is_stalled(&self) -> bool {
        let is_full = self.area.is_some_and(|(_, len)| self.blocks.len() as u64 > len / 4);
        is_full && self.commit.is_some()
    }

    /// The next blocks of the journal, `count` of them: one piece, or two around its end.
    fn next(&mut self, count: u64) -> Vec<(u64, u64)> {
        let Some((start, len)) = self.area else { return Vec::new() };
        let count = count.min(len);
        let first = count.min(len - self.head);
        let mut pieces = vec![(start + self.head, first)];
        if count > first {
            pieces.push((start, count - first));
        }
        self.head = (self.head + count) % len;
        self.used += count;
        pieces
    }
}

impl Host {
    /// Blocks of metadata are changed.
    pub(super) fn join(&mut self, blocks: &[u64]) {
        for block in blocks {
            if !self.journal.is_there() {
                self.known.insert(*block);
                self.cache.make_dirty(METADATA, *block..*block + 1);
                self.note_dirty(METADATA);
            } else if self.journal.running.insert(*block) {
                self.known.insert(*block);
                self.journal.blocks.push(*block);
                self.cache.hold(METADATA, *block);
                self.settle_dirty(METADATA);
                self.journal.started.get_or_insert(self.now);
            }
        }
    }

    /// A file's inode is changed, and `bitmaps`; `has_grown` when data cannot be found without.
    pub(super) fn change_metadata(&mut self, number: u64, bitmaps: &[u64], has_grown: bool) {
        let inode = self.note_changed(number, has_grown);
        self.join(bitmaps);
        if let Some(inode) = inode {
            let block = self.space.inode_block(inode);
            self.join(&[block]);
        }
    }

    /// The running transaction has something of a file; gives its inode.
    pub(super) fn note_changed(&mut self, number: u64, has_grown: bool) -> Option<Inode> {
        let transaction = self.journal.number;
        let file = self.files.get_mut(&number)?;
        file.changed_in = transaction;
        if has_grown {
            file.grown_in = transaction;
        }
        file.inode
    }

    /// When the running transaction is to be committed.
    pub(super) fn commit_at(&self) -> Option<Time> {
        let interval = self.spec.filesystem.journal?.commit;
        let is_idle = self.journal.commit.is_none();
        self.journal.started.filter(|_| is_idle).map(|started| started + interval)
    }

    /// Begins a commit that is wanted or due, or large: a quarter of the journal.
    pub(super) fn commit_if_due(&mut self) {
        let journal = &mut self.journal;
        let Some((_, len)) = journal.area else { return };
        if journal.commit.is_some() || journal.blocks.is_empty() {
            return;
        }
        let is_wanted = journal.wanted >= journal.number || journal.blocks.len() as u64 > len / 4;
        let now = self.now;
        if !is_wanted && self.commit_at().is_none_or(|at| now < at) {
            return;
        }
        let journal = &mut self.journal;
        journal.started = None;
        let blocks = std::mem::take(&mut journal.blocks);
        for block in &blocks {
            journal.running.remove(*block);
        }
        let mut files = std::mem::take(&mut journal.files);
        files.sort_unstable();
        files.dedup();
        journal.commit = Some(Commit {
            number: journal.number,
            blocks,
            files: files.clone(),
            stage: Stage::Submit,
            requests: 0,
        });
        journal.number += 1;
        if !self.spec.filesystem.delayed_allocation {
            // With delayed allocation, what has a place is on its way already.
            for file in files {
                let owner = Some(Waiter::Commit);
                self.back.ask(Work { file, pages: 0..u64::MAX, owner, process: KERNEL });
            }
        }
        self.commit_went_on();
    }

    /// A request of the commit ended.
    pub(super) fn commit_request_ended(&mut self) {
        if let Some(commit) = &mut self.journal.commit {
            commit.requests -= 1;
        }
        self.commit_went_on();
    }

    /// Goes on with the commit as far as it gets.
    pub(super) fn commit_went_on(&mut self) {
        loop {
            let Some(commit) = &mut self.journal.commit else { return };
            if commit.requests > 0 {
                return;
            }
            match commit.stage {
                Stage::Submit if self.back.has_work(Waiter::Commit) => return,
                Stage::Submit => commit.stage = Stage::Data,
                Stage::Data => match commit.files.pop() {
                    Some(file) => {
                        if self.wait_for_writes(Waiter::Commit, file) {
                            return;
                        }
                    }
                    None => {
                        commit.stage = Stage::Log;
                        let blocks = commit.blocks.len() as u64;
                        self.log(blocks + blocks.div_ceil(TAGS), false);
                    }
                },
                Stage::Log => {
                    commit.stage = Stage::Flush;
                    let is_beside = self.spec.flushes_beside_writes;
                    if self.spec.filesystem.barriers && is_beside {
                        commit.stage = Stage::Record;
                    }
                    if self.spec.filesystem.barriers {
                        commit.requests += 1;
                        if is_beside {
                            // It is at the drive first: who submits it sends it off at once (the plug of
                            // `__submit_bio`, block/blk-core.c of 6.12), and flushes wait for a worker
                            // (`blk_mq_kick_requeue_list`).
                            self.log(1, true);
                        }
                        let flush = Self::blocks(KERNEL, IoOp::Flush, 0, 0);
                        self.send(flush, Purpose::Commit);
                    }
                }
                Stage::Flush => {
                    commit.stage = Stage::Record;
                    let fua = self.spec.filesystem.barriers;
                    self.log(1, fua);
                }
                Stage::Record => {
                    self.commit_ended();
                    return;
                }
            }
        }
    }

    /// Writes blocks to the journal.
    fn log(&mut self, count: u64, fua: bool) {
        let longest = self.spec.longest_request / BLOCK;
        for (start, len) in self.journal.next(count) {
            let mut done = 0;
            while done < len {
                let count = longest.min(len - done);
                let io = Self::blocks(KERNEL, IoOp::Write, start + done, count);
                self.send(super::BlockIo { fua, ..io }, Purpose::Commit);
                if let Some(commit) = &mut self.journal.commit {
                    commit.requests += 1;
                }
                done += count;
            }
        }
    }

    /// The blocks may now be written to their places, and those who waited go on.
    fn commit_ended(&mut self) {
        let Some(commit) = self.journal.commit.take() else { return };
        self.journal.committed = commit.number;
        for block in commit.blocks {
            if !self.journal.running.contains(block) {
                self.cache.release(METADATA, block);
            }
        }
        self.note_dirty(METADATA);
        self.settle_dirty(METADATA);
        self.ready.extend(self.journal.stalled.drain(..));
        let ready = &mut self.ready;
        self.journal.waiters.retain(|(number, id)| {
            if *number <= commit.number {
                ready.push_back(*id);
            }
            *number > commit.number
        });
        let len = self.journal.area.map_or(0, |(_, len)| len);
        if self.journal.used > len / 4 * 3 {
            self.journal.used = 0;
            self.ask_for_metadata(None, KERNEL);
        }
    }
}
