//! Why a device that was given is not in service, in words.

use std::fmt;

use raidlab_core::{Sector, Sectors};

use super::Inspected;
use crate::lvm;

/// Why a device that was given is not in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No usable superblock; what is wrong.
    NoSuperblock(String),
    /// It belongs to another array, with this name.
    AnotherArray(String),
    /// It missed something: its events, and the newest.
    Stale(u64, u64),
    /// The newest superblock says that it failed or was taken out.
    Failed,
    /// It was being rebuilt, and has everything up to this sector.
    Rebuilding(Sector),
    /// A spare.
    Spare,
    /// The log device of a journal.
    Journal,
    /// It is to replace a member, and has not taken its place.
    Replacement,
    /// The same, and does not go on being filled; why.
    NotResumed(String),
    /// It says it is the same device as another that was given: a copy.
    Copy(usize),
    /// Two devices say they are this member; neither is believed.
    Contested(u16),
    /// It ends before its data do.
    TooSmall(Sectors),
    /// A spare that the array cannot use; why.
    NoSpare(String),
    /// The administrator left it out.
    LeftOut,
    /// Its list of bad blocks cannot be read, so that no block of it is known to be good.
    BadBlocksUnreadable,
    /// What its label of GEOM says of it, in words.
    Label(String),
    /// It failed while the journal was replayed; how.
    FailedReplay(String),
    /// The log device of a journal that cannot be replayed, and is given up; why.
    JournalDamaged(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuperblock(what) | Self::Label(what) | Self::NoSpare(what) => f.write_str(what),
            Self::AnotherArray(name) => write!(f, "of another array ({name})"),
            Self::Stale(own, newest) => {
                write!(f, "out of date: its events are {own}, the newest {newest}")
            }
            Self::Failed => f.write_str("failed, or taken out, as the newest superblock says"),
            Self::Rebuilding(to) => write!(f, "being rebuilt, good up to sector {} only", to.0),
            Self::Spare => f.write_str("a spare"),
            Self::Journal => f.write_str("the journal"),
            Self::Replacement => f.write_str("to replace a member, and not in its place yet"),
            Self::NotResumed(why) => write!(
                f,
                "was to replace a member, and cannot go on with it: {why}; `array replace` begins anew"
            ),
            Self::Copy(other) => {
                write!(f, "the same device as number {} of those given: a copy", other + 1)
            }
            Self::Contested(place) => write!(f, "one of several that say they are member {place}"),
            Self::TooSmall(needed) => write!(f, "cut off: its data need {needed}"),
            Self::LeftOut => f.write_str("left out as asked"),
            Self::FailedReplay(how) => write!(f, "failed while the journal was replayed: {how}"),
            Self::JournalDamaged(how) => write!(f, "its journal is given up: {how}"),
            Self::BadBlocksUnreadable => f.write_str("its list of bad blocks cannot be read"),
        }
    }
}

/// A device that is not in service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    /// Which of those given.
    pub given: usize,
    /// The member it was or would be.
    pub place: Option<u16>,
    /// Why not.
    pub why: Why,
}

impl Out {
    /// The same in words, of a device that is called so.
    pub fn told(&self, device: &dyn fmt::Display) -> String {
        let of = self.place.map_or_else(String::new, |place| format!(" (member {place})"));
        format!("{device}{of}: {}", self.why)
    }
}

/// 16 bytes as mdadm prints them.
pub fn uuid(bytes: &[u8; 16]) -> String {
    let words = bytes
        .chunks(4)
        .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    words.collect::<Vec<_>>().join(":")
}

/// What is wrong with a device without a usable superblock.
pub(super) fn no_superblock(one: &Inspected) -> String {
    if let Some(seen) = one.seen.first()
        && let Some(damage) = seen.damage
    {
        return damage.to_string();
    }
    if let Some(label) = one.geom.as_ref().and_then(|seen| seen.label.as_ref()) {
        return format!("of a GEOM array ({} {})", label.kind.name(), label.name);
    }
    if one.ddf.is_some() {
        return "of a DDF container, with no part of this array".to_string();
    }
    if let Some(told) = &one.of_volume {
        return told.why.clone().unwrap_or_default();
    }
    if let Some(seen) = &one.lvm {
        return physical_volume(seen);
    }
    match (one.broken.first(), one.unreadable.first()) {
        (_, Some(version)) => {
            format!("the place of a superblock of version {version} cannot be read")
        }
        (Some((_, damage)), None) => damage.to_string(),
        (None, None) => "no md superblock".to_string(),
    }
}

/// What is wrong with a physical volume of LVM, which has no part of what is meant.
fn physical_volume(seen: &lvm::Seen) -> String {
    match (&seen.group, seen.damaged.first()) {
        (Some(group), _) => {
            format!("of the volume group {}, with no part of this array", group.shown_name())
        }
        (None, Some(damaged)) => damaged.to_string(),
        (None, None) => "a physical volume of LVM, with no part of this array".to_owned(),
    }
}
