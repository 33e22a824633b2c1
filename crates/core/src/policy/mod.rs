//! Which copy a read takes: named, dated rules, each in its own file.
//!
//! [`ReadPolicy`] is the choice of a rule; [`PolicyState`] is what an array remembers for it. The
//! array tells the state of every member I/O it sends and of every one that completes, and asks
//! once for every read of a block that has several copies. All memory is taken at set-up.
//!
//! At queue depth 1 the rules differ completely: md of today sends every random read to the first
//! member, the md of 2005 alternates, gmirror does one or the other by its balance.

mod gmirror_load;
mod gmirror_load_2004;
mod gmirror_prefer;
mod gmirror_round_robin;
mod gmirror_split;
mod graid3;
mod least_busy;
mod md;
mod md_2_6;
mod state;

use std::fmt;
use std::str::FromStr;

use crate::layout::{Level, Redundancy};
use crate::units::{MemberIndex, SECTOR_BYTES, Sector, Sectors, Size};

pub use graid3::ParityRead;
pub use state::PolicyState;

/// A named rule for choosing among the copies of a block; for raid3, whether a read uses parity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadPolicy {
    /// `least-busy`: a copy that goes on where its member's last I/O ended; else the member with
    /// the fewest I/Os in flight; of equals the one whose last I/O ended nearest; of equals the
    /// first copy.
    #[default]
    LeastBusy,
    /// `md-2.6`: raid1 of Linux 2.6.12 (2005) to 3.5 (2012).
    Md26,
    /// `md`: raid1 and raid10 of Linux 6.1 (2022) and 6.12 (2024).
    Md,
    /// `gmirror-round-robin`: each read from the next member.
    GmirrorRoundRobin,
    /// `gmirror-load-2004`: the member whose last request was the quickest; FreeBSD, 2004 to about
    /// 2009.
    GmirrorLoad2004,
    /// `gmirror-load`: a decaying mean of requests in flight, with a bonus for nearness; FreeBSD,
    /// since about 2009.
    GmirrorLoad,
    /// `gmirror-split`: long reads cut into a part for each member, others in turn.
    GmirrorSplit {
        /// The longest read that is not cut: at least one sector.
        slice: Sectors,
    },
    /// `gmirror-prefer`: always the member of highest priority.
    GmirrorPrefer,
    /// `graid3-R`: a healthy raid3 never reads parity (the default of graid3).
    Graid3Plain,
    /// `graid3-r`: a healthy raid3 reads parity in place of each data member in turn.
    Graid3RoundRobin,
    /// `graid3-verify`: a healthy raid3 reads parity with every read and compares.
    Graid3Verify,
}

/// The slice of `gmirror-split` unless another is given: 4,096 bytes, as in gmirror.
pub const DEFAULT_SLICE: Sectors = Sectors(8);

/// What a policy may know of a copy of the block wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyCandidate {
    /// Which copy, from 0.
    pub copy: u16,
    /// The member that holds it.
    pub member: MemberIndex,
    /// Where it lies on the member.
    pub at: Sector,
    /// I/Os in flight on the member.
    pub pending: u32,
    /// Where the member's last planned I/O ends.
    pub head: Sector,
}

/// How the copies of a block came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// raid1: every member holds the block, at one address.
    Raid1,
    /// raid10.
    Raid10 {
        /// More than one near copy.
        near: bool,
        /// More than one far or offset copy.
        far: bool,
    },
}

/// The read to choose a copy for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadContext {
    /// Where it starts in the array.
    pub at: Sector,
    /// How much is read from the copy chosen.
    pub len: Sectors,
    /// How the copies came about.
    pub kind: CopyKind,
    /// The copies here may still differ, because a resync has not come by. md then reads the first.
    pub unsynced: bool,
}

/// What a policy must know of a member that does not change while the array runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberTraits {
    /// Its reads cost seeks. md's rules turn on whether a member is not rotational.
    pub rotational: bool,
    /// Read only when there is no other copy, under every policy. (In md this exists for raid1
    /// since 2.6.14; gmirror gives such a member a low priority and `prefer`.)
    pub write_mostly: bool,
    /// What the member calls its optimal I/O, zero when it names none, as most do. md moves a
    /// stream off a non-rotational member after this much, if another is idle.
    pub optimal_io: Sectors,
    /// `gmirror-prefer` reads the member of the highest priority; of equals the first.
    pub priority: u8,
}

impl Default for MemberTraits {
    /// A rotational drive like any other.
    fn default() -> Self {
        Self { rotational: true, write_mostly: false, optimal_io: Sectors::ZERO, priority: 0 }
    }
}

/// A member I/O, as the array tells it to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberIo {
    /// The member.
    pub member: MemberIndex,
    /// Where on it; without meaning for [`IoKind::Other`].
    pub at: Sector,
    /// How much; without meaning for [`IoKind::Other`].
    pub len: Sectors,
    /// What.
    pub kind: IoKind,
}

/// What a member I/O does, as far as policies care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// A read, of any cause.
    Read,
    /// A write, of any cause.
    Write,
    /// A flush or anything else that leaves the heads alone.
    Other,
}

/// The cut of a read into parts for several copies: each of `part` sectors but the last, which is
/// what remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Length of a part.
    pub part: Sectors,
    /// How many parts, at least 2.
    pub parts: u16,
}

impl ReadPolicy {
    /// What a level has where nobody names one: md's of today for mirrors, which is what a reader with a Linux array
    /// has.
    pub const fn of_level(level: Level) -> Self {
        match level.redundancy() {
            Redundancy::Mirror | Redundancy::Copies => Self::Md,
            Redundancy::Parity(_) if level.is_cut_by_sectors() => Self::Graid3Plain,
            Redundancy::None | Redundancy::Parity(_) => Self::LeastBusy,
        }
    }

    /// Every policy, `gmirror-split` with its default slice.
    pub const ALL: [Self; 11] = [
        Self::LeastBusy,
        Self::Md26,
        Self::Md,
        Self::GmirrorRoundRobin,
        Self::GmirrorLoad2004,
        Self::GmirrorLoad,
        Self::GmirrorSplit { slice: DEFAULT_SLICE },
        Self::GmirrorPrefer,
        Self::Graid3Plain,
        Self::Graid3RoundRobin,
        Self::Graid3Verify,
    ];

    /// Its name, without parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeastBusy => "least-busy",
            Self::Md26 => "md-2.6",
            Self::Md => "md",
            Self::GmirrorRoundRobin => "gmirror-round-robin",
            Self::GmirrorLoad2004 => "gmirror-load-2004",
            Self::GmirrorLoad => "gmirror-load",
            Self::GmirrorSplit { .. } => "gmirror-split",
            Self::GmirrorPrefer => "gmirror-prefer",
            Self::Graid3Plain => "graid3-R",
            Self::Graid3RoundRobin => "graid3-r",
            Self::Graid3Verify => "graid3-verify",
        }
    }

    /// Checks that the rule is defined for blocks with copies of this kind; the error says for
    /// what it is defined.
    pub fn check_copies(self, kind: CopyKind) -> Result<(), String> {
        let raid10 = matches!(kind, CopyKind::Raid10 { .. });
        let reason = match self {
            Self::LeastBusy | Self::Md => return Ok(()),
            Self::Graid3Plain | Self::Graid3RoundRobin | Self::Graid3Verify => {
                "is for raid3, which has parity instead of copies"
            }
            Self::Md26 if raid10 => "is the rule of raid1; for raid10 take md or least-busy",
            _ if raid10 => {
                "is a rule of mirrors; for raid10 take md or least-busy, or stripe over mirrors"
            }
            _ => return Ok(()),
        };
        Err(format!("{self} {reason}"))
    }

    /// Checks that the rule is defined for raid3; the error says which are. `least-busy`, the
    /// default, is: with no copies to choose from it reads as `graid3-R` does.
    pub fn check_raid3(self) -> Result<(), String> {
        match self {
            Self::LeastBusy | Self::Graid3Plain | Self::Graid3RoundRobin | Self::Graid3Verify => {
                Ok(())
            }
            _ => Err(format!(
                "{self} chooses among copies, and raid3 has none; take graid3-R, graid3-r or \
                 graid3-verify"
            )),
        }
    }
}

impl fmt::Display for ReadPolicy {
    /// The name, and the slice of `gmirror-split` in brackets unless it is the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::GmirrorSplit { slice } if *slice != DEFAULT_SLICE => write!(f, "({slice})"),
            _ => Ok(()),
        }
    }
}

impl FromStr for ReadPolicy {
    type Err = String;

    /// Reads what [`fmt::Display`] writes: a name, for `gmirror-split` with a slice in brackets if
    /// wanted. The error says what would be right.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(policy) = Self::ALL.into_iter().find(|policy| policy.name() == text) {
            return Ok(policy);
        }
        let slice = text.strip_prefix("gmirror-split(").and_then(|rest| rest.strip_suffix(')'));
        let Some(slice) = slice else {
            let names = Self::ALL.map(Self::name).join(", ");
            return Err(format!("`{text}` is not a read policy; there are {names}"));
        };
        let size: Size = slice.parse()?;
        let whole = Sectors::from_bytes(size.0).filter(|slice| *slice > Sectors::ZERO);
        let slice = whole.ok_or_else(|| {
            format!("gmirror-split({slice}): the slice must be a multiple of {SECTOR_BYTES} bytes")
        })?;
        Ok(Self::GmirrorSplit { slice })
    }
}
