//! What was found on the members of an array that starts.

use crate::consistency::LogEntry;
use crate::contract::{MemberBits, Superblock};
use crate::units::Sector;

/// What the members were found to say, judged.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    /// The newest superblock.
    pub(crate) newest: Superblock,
    /// Members that are not taken in service.
    pub(crate) failed: MemberBits,
    /// Members whose rebuild goes on.
    pub(crate) rebuilding: MemberBits,
    /// Some member in service does not have the newest superblock.
    pub(crate) level: bool,
    /// Bits found on the members in service, 64 a page.
    pub(crate) bits: Vec<u64>,
    /// The administrator accepts what parity says where writes were in flight.
    pub(crate) trust_parity: bool,
    /// Redundancy is consistent below this; [`Sector::MAX`] when everywhere, or when the log makes it so.
    pub(crate) kept: Sector,
    /// Entries of logs that are put to use.
    pub(crate) log: &'a [LogEntry],
    /// Members whose log is not whole, and the entries that were found in them.
    pub(crate) torn_log: (MemberBits, &'a [LogEntry]),
    /// The log device is there and goes on.
    pub(crate) journal: bool,
    /// What tells the epoch that begins from all others.
    pub(crate) nonce: u64,
}
