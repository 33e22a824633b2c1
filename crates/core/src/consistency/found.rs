//! What an array is to be started from, and with.

use super::{ArrayId, Examined, MetaArea, Unusable, Unused};
use crate::array::{Array, Config, Limits, Settings};
use crate::contract::{MemberBits, Record};
use crate::layout::Layout;
use crate::policy::{MemberTraits, ReadPolicy};
use crate::units::{MemberIndex, Sector, Sectors};

/// What the driver found on what is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What each member carries, in order.
    pub members: Vec<Examined>,
    /// What the log device carries.
    pub journal: Examined,
    /// A random number, another one for each start: it tells this start's epoch from all others.
    pub nonce: u64,
}

/// A whole entry of a log: header and payload agree with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it was found.
    pub member: MemberIndex,
    /// Where in the log area it starts.
    pub at: Sector,
    /// [`Record::PartialParity`] or [`Record::JournalEntry`].
    pub record: Record,
}

/// What the administrator allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Start without these members, whatever they carry, although they may hold the newest data.
    pub without: MemberBits,
    /// Start a parity level that was not stopped cleanly with members or its log device missing: in rows with
    /// writes in flight, what they held may be wrong.
    pub dirty_degraded: bool,
    /// What cannot be read or is damaged of these members' superblocks did not hold the newest one.
    pub believe: MemberBits,
}

/// An array as it is asked for: a [`Config`] without what only the members can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Level and parameters.
    pub layout: Layout,
    /// Which copy a read takes; raid3: whether a read uses parity.
    pub read_policy: ReadPolicy,
    /// What the policy must know of each member; empty for drives that rotate and are all alike.
    pub traits: Vec<MemberTraits>,
    /// How much at once.
    pub limits: Limits,
    /// How it keeps redundancy consistent, and what it does about errors.
    pub settings: Settings,
}

impl From<&Config> for Wanted {
    fn from(config: &Config) -> Self {
        Self {
            layout: config.layout.clone(),
            read_policy: config.read_policy,
            traits: config.traits.clone(),
            limits: config.limits,
            settings: config.settings,
        }
    }
}

/// An array that was found on its members.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assembled {
    /// The array. What must be made consistent is begun at the first input.
    pub array: Array,
    /// How much room records take on its members.
    pub area: MetaArea,
    /// What identifies it; zeroes with [`Consistency::None`](crate::Consistency::None).
    pub identity: ArrayId,
    /// What it was made from.
    pub config: Config,
    /// Members that are out of service, and why.
    pub unused: Vec<Unused>,
    /// Why the log device is given up, if it is.
    pub journal_lost: Option<Unusable>,
    /// Sectors of each member (of the array, on mirrors) that are made consistent.
    pub resync: Sectors,
}
