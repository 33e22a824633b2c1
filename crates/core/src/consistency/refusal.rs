//! Why an array does not start, why a drive does not come back, and what is wrong with a member, in words.

use std::fmt;

use super::named;
use crate::array::ConfigError;
use crate::contract::MemberBits;
use crate::units::{MemberIndex, Sectors};

/// Why what is offered as a member, or as the log device, is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// The administrator said so.
    LeftOut,
    /// No device is there.
    Absent,
    /// It was never written to.
    Blank,
    /// A place of its superblock cannot be read.
    Unreadable,
    /// A place of its superblock holds no whole record.
    Damaged,
    /// Something else is on it.
    Foreign,
    /// It has a version of the format that is not read; which one, in words.
    Unsupported(&'static str),
    /// It belongs to another array.
    AnotherArray,
    /// It belongs to this array, but to another place: this one.
    OutOfPlace {
        /// The number its array gave it.
        device: u16,
        /// Members of the array.
        members: u16,
    },
    /// It was made with other parameters than the others.
    OtherParameters,
    /// It is smaller than its superblock says.
    TooSmall,
    /// It writes larger blocks than the array.
    LargeBlock {
        /// Its block, in sectors.
        block: u32,
        /// The array's.
        most: u32,
    },
    /// It missed what the others have.
    Stale {
        /// Its events.
        events: u64,
        /// The newest.
        newest: u64,
    },
    /// It is older than anything the others know of.
    Older,
    /// It and the others went on by themselves.
    OtherHistory,
    /// The newest superblock says that it is out of service.
    Failed,
    /// The newest superblock says that it is being rebuilt.
    Rebuilding,
    /// Some of its log cannot be read.
    LogUnreadable,
    /// Its log lacks entries that were durable.
    LogDamaged,
    /// The array was not stopped cleanly, and what its log holds may not be what that of the member it replaces does.
    LogUnknown,
    /// It was to replace a member, and lacks blocks that could not be had.
    BadBlocks,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut => f.write_str("is to be left out"),
            Self::Absent => f.write_str("is not there"),
            Self::Blank => f.write_str("carries no superblock and never did"),
            Self::Unreadable => f.write_str("a place of its superblock cannot be read"),
            Self::Damaged => f.write_str("a place of its superblock is damaged"),
            Self::Foreign => f.write_str("carries something else"),
            Self::Unsupported(what) => write!(f, "carries {what}"),
            Self::AnotherArray => f.write_str("belongs to another array"),
            Self::OutOfPlace { device, members } => {
                f.write_str("what is given for it ")?;
                match device.checked_sub(*members) {
                    None => write!(f, "is member {device}"),
                    Some(of) if of < *members => {
                        write!(f, "is a replacement of member {of} that was not finished")
                    }
                    Some(_) => f.write_str("is the log device"),
                }
            }
            Self::OtherParameters => f.write_str("was made with other parameters"),
            Self::TooSmall => f.write_str("is smaller than its superblock says"),
            Self::LargeBlock { block, most } => {
                write!(f, "writes blocks of {block} sectors, the array such of {most}")
            }
            Self::Stale { events, newest } => {
                write!(f, "missed something: it has seen {events} events of {newest}")
            }
            Self::Older => f.write_str("is older than what the others remember"),
            Self::OtherHistory => f.write_str("went on without the others"),
            Self::Failed => f.write_str("is out of service"),
            Self::Rebuilding => f.write_str("is not rebuilt"),
            Self::LogUnreadable => f.write_str("some of its log cannot be read"),
            Self::LogDamaged => f.write_str("its log lacks entries that were written"),
            Self::LogUnknown => {
                f.write_str("what its log holds is not known, as the array was not stopped cleanly")
            }
            Self::BadBlocks => f.write_str("lacks blocks that could not be had"),
        }
    }
}

/// A member that is not used, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Which member.
    pub member: MemberIndex,
    /// Why.
    pub why: Unusable,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}: {}", self.member, self.why)
    }
}

/// What it costs to make redundancy consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncCost {
    /// Sectors of each member; of the array, on mirrors.
    pub len: Sectors,
    /// Bytes a second and member that background work never exceeds: [`Pacing::most`](crate::contract::Pacing).
    pub most: u64,
}

impl fmt::Display for ResyncCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pace may be as fast as it goes, and then has no number.
        let tenths = |seconds: u64| {
            self.len.bytes() / (self.most.max(1).saturating_mul(seconds) / 10).max(1)
        };
        let (hours, minutes) = (tenths(3600), tenths(60));
        match self.len.bytes() >> 30 {
            0 => write!(f, "{} of each (", self.len)?,
            _ => write!(f, "{} MiB of each (", self.len.bytes().div_ceil(1 << 20))?,
        }
        match (hours, minutes) {
            (_, 0..10) => f.write_str("a minute or more)"),
            (0..10, _) => write!(f, "{} minutes or more)", minutes / 10),
            _ => write!(f, "{}.{} hours or more)", hours / 10, hours % 10),
        }
    }
}

/// Why an array does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssembleError {
    /// The configuration cannot be.
    Config(ConfigError),
    /// What is asked for is not what the members were made with.
    Parameter {
        /// Which: a key of the layout, `layout`, `consistency` or `log`.
        key: &'static str,
        /// What is asked for.
        asked: String,
        /// What the members say.
        found: String,
    },
    /// No member has a superblock that can be used.
    NoSuperblock(Vec<Unused>),
    /// The members belong to several arrays, and as many to one as to another.
    SeveralArrays {
        /// Of one.
        one: MemberBits,
        /// Of another.
        other: MemberBits,
    },
    /// These members went on without the others, and the others without them.
    Diverged {
        /// One half.
        one: MemberBits,
        /// The other.
        other: MemberBits,
    },
    /// Members cannot be used that the newest superblock does not say are out of service; see
    /// [`Allow::without`](super::Allow::without).
    Missing(Vec<Unused>),
    /// Too many members are missing or stale for the level.
    TooFew(Vec<Unused>),
    /// Not stopped cleanly, and members are missing; see
    /// [`Allow::dirty_degraded`](super::Allow::dirty_degraded).
    DirtyDegraded {
        /// What is missing.
        missing: Vec<Unused>,
        /// Sectors of each member (of the array, on mirrors) that are made consistent after a start.
        resync: ResyncCost,
    },
    /// Not stopped cleanly, and the log device cannot be used; allowed by
    /// [`Allow::dirty_degraded`](super::Allow::dirty_degraded).
    JournalLost {
        /// What is wrong with it.
        why: Unusable,
        /// Sectors of each member that are made consistent after a start.
        resync: ResyncCost,
    },
}

/// Writes a list of what is not used.
fn list(f: &mut fmt::Formatter<'_>, unused: &[Unused]) -> fmt::Result {
    for (index, one) in unused.iter().enumerate() {
        if index > 0 {
            f.write_str("; ")?;
        }
        write!(f, "{one}")?;
    }
    Ok(())
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "{error}"),
            Self::Parameter { key, asked, found } => write!(
                f,
                "{key}: the array was made with {found}, asked for is {asked}: ask for what \
                 it was made with; changing it is not supported"
            ),
            Self::NoSuperblock(unused) => {
                f.write_str("no member has a superblock that can be used: ")?;
                list(f, unused)
            }
            Self::SeveralArrays { one, other } => write!(
                f,
                "{} and {} belong to different arrays: leave one side out",
                named(*one),
                named(*other)
            ),
            Self::Diverged { one, other } => write!(
                f,
                "{} and {} each went on without the other, and what they hold differs: start with one \
                 side only, and add the other side's members as fresh drives",
                named(*one),
                named(*other)
            ),
            Self::Missing(unused) => {
                f.write_str("members cannot be used that may hold the newest data: ")?;
                list(f, unused)?;
                f.write_str("; bring them back, or say that the array is to start without them")
            }
            Self::TooFew(unused) => {
                f.write_str("too little is left, the level does not survive that: ")?;
                list(f, unused)?;
                let is_place =
                    |one: &Unused| matches!(one.why, Unusable::Unreadable | Unusable::Damaged);
                if !unused.iter().any(is_place) {
                    return Ok(());
                }
                f.write_str("; you may say that what is unreadable or damaged was not the newest")
            }
            Self::DirtyDegraded { missing, resync } => {
                f.write_str("the array was not stopped cleanly, and members cannot be used: ")?;
                list(f, missing)?;
                write!(
                    f,
                    "; what was written at that moment may make what is computed for the missing data \
                     wrong: bring the members back, or allow a dirty start, after which {resync} are made \
                     consistent"
                )
            }
            Self::JournalLost { why, resync } => write!(
                f,
                "the log device cannot be used ({why}), and may hold writes that are not on the members: \
                 bring it back, or allow a dirty start, after which {resync} are made \
                 consistent without it"
            ),
        }
    }
}

impl std::error::Error for AssembleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a drive may not come back into its place as the one that was there. It may be added as a fresh one,
/// and everything on it is rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnRefusal {
    /// It is no drive of this place of the array, or cannot be read.
    Unusable(Unusable),
    /// It has seen more events than the array that runs.
    Newer {
        /// Its events.
        events: u64,
        /// Those of the array.
        ours: u64,
    },
    /// It and the array went on by themselves.
    OtherHistory,
    /// Nothing tells any more what it missed.
    TooOld,
}

impl fmt::Display for ReturnRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => write!(f, "it cannot come back as it is: {why}")?,
            Self::Newer { events, ours } => write!(
                f,
                "it has seen {events} events, the running array {ours}: it went on by itself, and may hold \
                 newer data"
            )?,
            Self::OtherHistory => {
                f.write_str("it and the running array each went on without the other")?;
            }
            Self::TooOld => f.write_str("nothing tells any more what it missed")?,
        }
        f.write_str("; add it: everything on it will be rebuilt")
    }
}

impl std::error::Error for ReturnRefusal {}
