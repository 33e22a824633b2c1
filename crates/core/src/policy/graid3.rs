//! `graid3-R`, `graid3-r`, `graid3-verify`: whether a read of a raid3 uses parity; FreeBSD's graid3
//! since 2004 (later releases dropped graid3).
//!
//! Every read of a raid3 moves all its data members, so there is nothing to choose among. But when
//! no member is lost, one of the n + 1 members is not needed:
//! - `graid3-R` (the default): parity is not read.
//! - `graid3-r`: each read skips one data member and reads parity in its place. A counter goes
//!   through the data members in order; after the last comes one read without parity.
//! - `graid3-verify`: data and parity are all read, and a mismatch is an I/O error.
//!
//! With a member lost or being rebuilt all three read what is left, and the counter stands.
//!
//! *At queue depth 1* the three differ in nothing but which members move. `graid3-r` helps at
//! greater depth, where each member is left out of every (n + 1)-th random read, and costs a
//! sequential reader its streaming: each member skips a piece now and then.
//!
//! Source: FreeBSD `sys/geom/raid3`, graid3(8).

/// How a raid3 does a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParityRead {
    /// All data members; parity only to make up for a lost one.
    Plain,
    /// Parity instead of this data member, counted from 0.
    Skip(u16),
    /// All data members and parity, which must agree.
    Verify,
}

#[derive(Clone, Debug)]
pub(super) enum Graid3 {
    Plain,
    RoundRobin {
        /// The data member to skip next; equal to their number: none.
        next: u16,
    },
    Verify,
}

impl Graid3 {
    pub(super) fn parity_read(&mut self, complete: bool, data_members: u16) -> ParityRead {
        match self {
            _ if !complete => ParityRead::Plain,
            Self::Plain => ParityRead::Plain,
            Self::Verify => ParityRead::Verify,
            Self::RoundRobin { next } if *next >= data_members => {
                *next = 0;
                ParityRead::Plain
            }
            Self::RoundRobin { next } => {
                *next += 1;
                ParityRead::Skip(*next - 1)
            }
        }
    }

    pub(super) fn add_to_key(&self, add: &mut dyn FnMut(u64)) {
        if let Self::RoundRobin { next } = self {
            add(u64::from(*next));
        }
    }
}
