//! What members did, counted.

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
