//! Where bytes are not what was written.

use std::fmt;

use raidlab_core::MemberIndex;

/// What a wrong byte is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holding {
    /// Data: this copy, from 0.
    Data {
        /// Which copy.
        copy: u16,
    },
    /// The P of this stripe.
    Parity {
        /// Which stripe, from 0; for raid3 which logical sector.
        stripe: u64,
    },
    /// The Q of this stripe.
    Q {
        /// Which stripe, from 0.
        stripe: u64,
    },
}

/// A byte that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The member it lies on; `None` when every member holds the right bytes but the array gave wrong ones.
    pub member: Option<MemberIndex>,
    /// The byte in the member's file, the data offset included; 0 without a member.
    pub member_offset: u64,
    /// The byte of the array; `None` for parity.
    pub array_offset: Option<u64>,
    /// What it is part of; `None` without a member.
    pub holding: Option<Holding>,
    /// What should be there.
    pub expected: u8,
    /// What is there.
    pub found: u8,
    /// A second look found wrong bytes in the same sector. Where it found the right ones the first look was given what
    /// the member does not hold, by the drive or on the way from it.
    pub confirmed: bool,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member {
            Some(member) => write!(f, "member {member}, byte {} of its file", self.member_offset)?,
            None => f.write_str("the array (its members hold the right bytes)")?,
        }
        match self.holding {
            Some(Holding::Data { copy: 0 }) | None => {}
            Some(Holding::Data { copy }) => write!(f, ", copy {copy}")?,
            Some(Holding::Parity { stripe }) => write!(f, ", parity of stripe {stripe}")?,
            Some(Holding::Q { stripe }) => write!(f, ", Q of stripe {stripe}")?,
        }
        if let Some(offset) = self.array_offset {
            write!(f, ", byte {offset} of the array")?;
        }
        write!(f, ": expected {:#04x}, found {:#04x}", self.expected, self.found)?;
        match self.confirmed {
            true => Ok(()),
            false => f.write_str(
                ", and the right byte at a second look: it does not read the same twice",
            ),
        }
    }
}
