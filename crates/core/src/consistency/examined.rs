//! What was found on a device that is offered as a member or as the log device: facts that no format is
//! needed for.
//!
//! Fault model: any sector may be unreadable; a device may be blank, of another array, from another place of
//! this one, a copy made earlier, or hold anything at all. Damage is told apart from what was never written,
//! since a place that cannot be read may have held the newest record.

use super::{LogEntry, MetaArea};
use crate::array::{Config, Consistency};
use crate::contract::Superblock;
use crate::units::{MemberIndex, Sector, Sectors};

/// What identifies an array.
pub type ArrayId = [u8; 16];

/// What stands where something of an array is kept, in all its places together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finding<T> {
    /// No device is there.
    #[default]
    Absent,
    /// All places can be read and none was ever written.
    Blank,
    /// All places can be read; this is the newest.
    Whole(T),
    /// Some place cannot be read, and may have held the newest; the newest of the others.
    Unreadable(Option<T>),
    /// Some place holds bytes that are no whole record, and may have held the newest; the newest of the others.
    Damaged(Option<T>),
    /// What stands there belongs to something else.
    Foreign,
    /// It is of a version of the format that is not read; which one, in words.
    Unsupported(&'static str),
}

impl<T> Finding<T> {
    /// What is there, if it is known to be the newest.
    pub fn whole(&self) -> Option<&T> {
        match self {
            Self::Whole(one) => Some(one),
            _ => None,
        }
    }

    /// What can be read, newest or not.
    pub fn readable(&self) -> Option<&T> {
        match self {
            Self::Whole(one) | Self::Unreadable(Some(one)) | Self::Damaged(Some(one)) => Some(one),
            _ => None,
        }
    }
}

/// What an array was made with, as each of its members tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The layout in words.
    pub layout: String,
    /// What keeps redundancy consistent.
    pub consistency: Consistency,
    /// Sectors this device has for data.
    pub data: Sectors,
    /// Sectors that the smallest member has for data, which says how much of each the array uses.
    pub least: Sectors,
    /// Sectors for its log, behind the data.
    pub log: Sectors,
    /// Pages of the bitmap.
    pub pages: u32,
    /// Sectors that the array reads and writes together on each member: the largest block of those it was
    /// made of.
    pub block: u32,
}

impl Parameters {
    /// What a superblock of an array tells to a device of it: a member, a replacement or the log device.
    pub fn of(config: &Config, area: &MetaArea, device: MemberIndex) -> Self {
        let members = config.layout.members;
        let consistency = config.settings.consistency;
        let is_log_device = device.0 >= 2 * members;
        let of = config.members.get(usize::from(device.0 % members.max(1)));
        let data = of.filter(|_| !is_log_device).map_or(Sectors::ZERO, |of| of.sectors);
        let log = match consistency {
            Consistency::Journal { sectors } if is_log_device => sectors,
            _ if is_log_device => Sectors::ZERO,
            _ => area.log,
        };
        Self {
            layout: config.layout.to_string(),
            consistency,
            data,
            least: config
                .members
                .iter()
                .map(|member| member.sectors)
                .min()
                .unwrap_or(Sectors::ZERO),
            log,
            pages: if is_log_device { 0 } else { area.pages },
            block: config.members.iter().map(|member| member.logical_block).max().unwrap_or(1),
        }
    }
}

/// A superblock as it stands on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The array it belongs to.
    pub array: ArrayId,
    /// The number its array gave the device: members, then their replacements, then the log device.
    pub device: u16,
    /// What the array was made with.
    pub parameters: Parameters,
    /// The state of the array.
    pub superblock: Superblock,
}

/// The log on a member, or on the log device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFound {
    /// Every whole entry of this array and device, by place. Whether one that is not whole was torn by a crash or
    /// damaged later a start knows from what newer entries say.
    pub entries: Vec<LogEntry>,
    /// Some of the log could not be read.
    pub unreadable: bool,
}

/// What a device that is offered carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Sectors in all; 0 where none is there.
    pub sectors: Sectors,
    /// Sectors that it writes together or not at all.
    pub logical_block: u32,
    /// Its superblock.
    pub superblock: Finding<Carried>,
    /// The pages of its bitmap, 64 bits each, in order.
    pub bitmap: Vec<Finding<u64>>,
    /// Its log.
    pub log: LogFound,
    /// Ranges of its data that its own list says cannot be read.
    pub bad: Vec<(Sector, Sectors)>,
}

impl Examined {
    /// A place that no device is offered for.
    pub fn absent() -> Self {
        Self::default()
    }
}
