//! A process that makes files before a run: one after the other, so that each lies in one piece on a
//! fresh filesystem.

use std::collections::VecDeque;

use raidlab_core::Time;

use crate::op::{Content, FileDescriptor, FilePath, Op, OpResult, OpenFlags};
use crate::plan::{Planned, Process};
use crate::steps::{PIECE, writes};

const SLOT: FileDescriptor = FileDescriptor(0);

/// A file to be made.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    /// Its name.
    pub(crate) path: FilePath,
    /// Its length in bytes.
    pub(crate) bytes: u64,
    /// What is in it.
    pub(crate) content: Content,
}

#[derive(Debug)]
struct FillFiles {
    files: VecDeque<Fill>,
    ops: VecDeque<Op>,
}

/// The process that makes these files and flushes each, as a whole stage of a plan.
pub(crate) fn fill_files(files: impl IntoIterator<Item = Fill>) -> Vec<Planned> {
    let process = FillFiles { files: files.into_iter().collect(), ops: VecDeque::new() };
    vec![Planned { copy: 0, process: Box::new(process) }]
}

impl Process for FillFiles {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        if let Some(op) = self.ops.pop_front() {
            return op;
        }
        let Some(file) = self.files.pop_front() else { return Op::Done };
        self.ops.extend(writes(SLOT, file.bytes, PIECE, file.content));
        self.ops.extend([Op::Fsync { fd: SLOT }, Op::Close { fd: SLOT }]);
        Op::Open { fd: SLOT, path: file.path, flags: OpenFlags::WRITE }
    }
}
