//! What members did, counted.

use crate::contract::IoOp;
use crate::units::Sectors;

/// What the members of an array were asked for: data, parity, log and metadata, of every member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberTotals {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

impl MemberTotals {
    /// Counts what a member was asked for. Only what moves data counts.
    #[inline]
    pub fn count(&mut self, op: IoOp, len: Sectors) {
        let (operations, bytes) = match op {
            IoOp::Read => (&mut self.reads, &mut self.bytes_read),
            IoOp::Write => (&mut self.writes, &mut self.bytes_written),
            IoOp::Flush | IoOp::Discard | IoOp::WriteZeroes => return,
        };
        *operations += 1;
        *bytes += len.bytes();
    }

    /// What was done since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            bytes_written: self.bytes_written.saturating_sub(earlier.bytes_written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_moves_data_counts() {
        let mut totals = MemberTotals::default();
        for op in [IoOp::Read, IoOp::Write, IoOp::Write, IoOp::Flush] {
            totals.count(op, Sectors(8));
        }
        for op in [IoOp::Discard, IoOp::WriteZeroes] {
            totals.count(op, Sectors(8));
        }
        let expected = MemberTotals { reads: 1, writes: 2, bytes_read: 4096, bytes_written: 8192 };
        assert_eq!(totals, expected);
    }
}
