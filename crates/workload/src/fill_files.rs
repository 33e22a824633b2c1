//! A process that makes files before a run: one after the other, so that each lies in one piece on a
//! fresh filesystem.

use std::collections::VecDeque;

use raidlab_core::Time;

use crate::op::{Content, How, Op, OpResult, Path, Slot};
use crate::plan::{Planned, Process};

/// Bytes of each write.
const BLOCK: u64 = 1 << 20;
const SLOT: Slot = Slot(0);

/// A file to be made.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    /// Its name.
    pub(crate) path: Path,
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

/// Writes so many bytes at the position: whole blocks, then what is left.
pub(crate) fn write_all(
    slot: Slot,
    bytes: u64,
    block: u64,
    content: Content,
) -> impl Iterator<Item = Op> {
    let whole = Op::Write { slot, len: block, content, times: bytes / block };
    let rest = Op::Write { slot, len: bytes % block, content, times: 1 };
    let whole = (bytes >= block).then_some(whole);
    whole.into_iter().chain((!bytes.is_multiple_of(block)).then_some(rest))
}

impl Process for FillFiles {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        if let Some(op) = self.ops.pop_front() {
            return op;
        }
        let Some(file) = self.files.pop_front() else { return Op::Done };
        self.ops.extend(write_all(SLOT, file.bytes, BLOCK, file.content));
        self.ops.extend([Op::Fsync { slot: SLOT }, Op::Close { slot: SLOT }]);
        Op::Open { slot: SLOT, path: file.path, how: How::WRITE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_blocks_and_the_rest() {
        let lengths = |bytes| -> Vec<(u64, u64)> {
            let ops = write_all(SLOT, bytes, 10, Content::Zeroes);
            let length = |op| match op {
                Op::Write { len, times, .. } => (len, times),
                other => panic!("{other:?}"),
            };
            ops.map(length).collect()
        };
        assert_eq!(lengths(0), []);
        assert_eq!(lengths(9), [(9, 1)]);
        assert_eq!(lengths(20), [(10, 2)]);
        assert_eq!(lengths(25), [(10, 2), (5, 1)]);
    }
}
