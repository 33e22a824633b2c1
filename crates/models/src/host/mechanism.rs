//! Switches: a host without one of its mechanisms, to show what it does.

use std::fmt;
use std::str::FromStr;

use raidlab_core::units::Nanos;

use super::spec::{CallCosts, DirtyLimit, HostSpec};

/// A mechanism of the host that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// Reading more than is asked for.
    ReadAhead,
    /// More read-ahead on arrays than on one drive.
    ArrayReadAhead,
    /// The journal of metadata.
    Journal,
    /// Spreading directories over groups.
    BlockGroups,
    /// Indirect blocks in the way of a file.
    IndirectBlocks,
    /// Room that a growing file keeps for itself.
    Reservation,
    /// Choosing places when data are written back.
    DelayedAllocation,
    /// Flushing the caches of drives.
    Barriers,
    /// Limits of dirty data: writers wait only when memory is full.
    DirtyLimit,
    /// Writing back for age.
    Expiry,
    /// The CPU time of copying.
    CopyCost,
    /// The CPU time of calls.
    CallCost,
    /// A lone reader's copying that takes turns with its transfers.
    LoneReader,
    /// Times of access, written back for files that were read.
    AccessTimes,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::ReadAhead,
        Self::ArrayReadAhead,
        Self::Journal,
        Self::BlockGroups,
        Self::IndirectBlocks,
        Self::Reservation,
        Self::DelayedAllocation,
        Self::Barriers,
        Self::DirtyLimit,
        Self::Expiry,
        Self::CopyCost,
        Self::CallCost,
        Self::LoneReader,
        Self::AccessTimes,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadAhead => "read-ahead",
            Self::ArrayReadAhead => "array-read-ahead",
            Self::Journal => "journal",
            Self::BlockGroups => "block-groups",
            Self::IndirectBlocks => "indirect-blocks",
            Self::Reservation => "reservation",
            Self::DelayedAllocation => "delayed-allocation",
            Self::Barriers => "barriers",
            Self::DirtyLimit => "dirty-limit",
            Self::Expiry => "expiry",
            Self::CopyCost => "copy-cost",
            Self::CallCost => "call-cost",
            Self::LoneReader => "lone-reader",
            Self::AccessTimes => "access-times",
        }
    }
}

impl HostSpec {
    /// The same host without a mechanism; where it has none of it, the same.
    #[must_use]
    pub fn without(mut self, mechanism: Mechanism) -> Self {
        let filesystem = &mut self.filesystem;
        match mechanism {
            Mechanism::ReadAhead => self.read_ahead = Some(0),
            Mechanism::ArrayReadAhead => {
                self.read_ahead.get_or_insert(super::kernel::READ_AHEAD);
            }
            Mechanism::Journal => filesystem.journal = None,
            Mechanism::BlockGroups => {
                filesystem.spread = false;
                filesystem.most_in_group = None;
            }
            Mechanism::IndirectBlocks => filesystem.indirect = None,
            Mechanism::Reservation => filesystem.reservation = 0,
            Mechanism::DelayedAllocation => filesystem.delayed_allocation = false,
            Mechanism::Barriers => filesystem.barriers = false,
            Mechanism::DirtyLimit => {
                self.dirty = DirtyLimit::Percent(100);
                self.dirty_background = DirtyLimit::Percent(100);
            }
            // A century.
            Mechanism::Expiry => self.dirty_expire = Nanos::from_millis(3_155_760_000_000),
            Mechanism::LoneReader => self.lone_reader_waits = false,
            Mechanism::AccessTimes => self.access_times = false,
            Mechanism::CopyCost => self.costs.copy_rate = u64::MAX,
            Mechanism::CallCost => {
                let none = Nanos::ZERO;
                let costs =
                    CallCosts { call: none, name: none, entry: none, character: 0, ..self.costs };
                self.costs = costs;
            }
        }
        self
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mechanism {
    type Err = String;

    /// Reads a name; the error says which there are.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is not a mechanism of the host; known: {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_is_in_some_host_and_can_be_missing() {
        let hosts = ["linux-2.6.12", "linux-6.1", "freebsd-6.2"].map(HostSpec::kernel);
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.name().parse(), Ok(mechanism));
            let lone = HostSpec { lone_reader_waits: true, ..HostSpec::default() };
            let hosts = hosts.iter().flatten().chain([&lone]);
            let changed = hosts.filter(|host| {
                let without = host.without(mechanism);
                without.check().expect("can be");
                assert_eq!(without.without(mechanism), without);
                without != **host
            });
            assert!(changed.count() > 0, "{mechanism}");
        }
        let error = "luck".parse::<Mechanism>().expect_err("unknown");
        assert!(error.contains("read-ahead, array-read-ahead"), "{error}");
    }

    #[test]
    fn writers_without_limits_have_most_of_memory() {
        let host = HostSpec::default().without(Mechanism::DirtyLimit);
        assert_eq!((host.limit(), host.background()), (host.pages() * 3 / 4, host.pages() / 2));
        assert_eq!(host.pages(), host.memory / super::super::spec::BLOCK);
    }
}
