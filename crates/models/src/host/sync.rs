//! `fsync`, `fdatasync` and `sync`: data in order, then metadata or the journal, then a flush.

use raidlab_core::contract::IoOp;

use super::files::Waiter;
use super::spec::BLOCK;
use super::task::{Next, Stage, Sync};
use super::writeback::Work;
use super::{Host, METADATA, Purpose};

impl Host {
    /// Goes on with making durable; done when its stage is [`Stage::End`].
    pub(super) fn sync(
        &mut self,
        id: u32,
        process: u32,
        requests: &mut u32,
        sync: &mut Sync,
    ) -> Next {
        let owner = Waiter::Task(id);
        loop {
            match sync.stage {
                Stage::Begin => {
                    self.ask_for_data(owner, process, sync);
                    sync.stage = Stage::Submit;
                }
                Stage::Submit | Stage::Places if self.back.has_work(owner) => return Next::Wait,
                Stage::Submit => sync.stage = Stage::Data,
                Stage::Data => match sync.files.pop() {
                    Some(file) if self.wait_for_writes(owner, file) => return Next::Wait,
                    Some(_) => {}
                    None => sync.stage = Stage::Commit,
                },
                Stage::Commit => {
                    let until = self.transaction_of(sync);
                    if self.journal.wait_for(until, id) {
                        // One under way already may have flushed before these data came.
                        sync.has_committed |= self.journal.will_flush(until);
                        return Next::Wait;
                    }
                    sync.stage = self.after_commit(owner, process, sync);
                }
                Stage::Places => {
                    sync.stage = Stage::Metadata;
                    if self.wait_for_writes(owner, METADATA) {
                        return Next::Wait;
                    }
                }
                Stage::Metadata => sync.stage = Stage::Flush,
                Stage::Flush if self.spec.filesystem.barriers => {
                    let flush = Self::blocks(process, IoOp::Flush, 0, 0);
                    *requests += 1;
                    self.send(flush, Purpose::Task(id));
                    sync.stage = Stage::Flushing;
                }
                Stage::Flushing if *requests > 0 => return Next::Wait,
                Stage::Flush | Stage::Flushing => sync.stage = Stage::End,
                Stage::End => return Next::Done,
            }
        }
    }

    /// Asks for all dirty data, and notes whose writes are to be waited for.
    fn ask_for_data(&mut self, owner: Waiter, process: u32, sync: &mut Sync) {
        sync.files = match sync.of {
            Some(file) => vec![file],
            None => {
                let has_any = |(number, file): &(u64, &super::files::File)| {
                    *number != METADATA && (file.dirtied.is_some() || !file.in_flight.is_empty())
                };
                self.files.iter().filter(has_any).map(|(number, _)| number).collect()
            }
        };
        for number in &sync.files {
            let Some(file) = self.files.get(number) else { continue };
            if file.dirtied.is_some() {
                let pages = 0..file.size.div_ceil(BLOCK);
                self.back.ask(Work { file: *number, pages, owner: Some(owner), process });
            }
        }
    }

    /// The transaction that must be committed.
    fn transaction_of(&self, sync: &Sync) -> u64 {
        match sync.of.map(|file| self.files.get(&file)) {
            Some(Some(file)) if sync.data_only => file.grown_in,
            Some(Some(file)) => file.changed_in,
            Some(None) => 0,
            None => self.journal.last(),
        }
    }

    /// What follows when the journal has everything, or there is none.
    fn after_commit(&mut self, owner: Waiter, process: u32, sync: &Sync) -> Stage {
        let Some(number) = sync.of else {
            self.ask_for_metadata(Some(owner), process);
            return Stage::Places;
        };
        let until = self.transaction_of(sync);
        if self.journal.is_there() {
            // A commit has flushed the data that came before it; an older one has not.
            return if sync.has_committed { Stage::End } else { Stage::Flush };
        }
        let inode = self.files.get(&number).and_then(|file| file.inode);
        let Some(inode) = inode.filter(|_| until > 0) else { return Stage::Flush };
        let block = self.space.inode_block(inode);
        let pages = block..block + 1;
        self.back.ask(Work { file: METADATA, pages, owner: Some(owner), process });
        if let Some(file) = self.files.get_mut(&number) {
            (file.changed_in, file.grown_in) = (0, 0);
        }
        Stage::Places
    }
}
