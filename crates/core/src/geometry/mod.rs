//! Address maths of every level, in both directions; pure functions of a layout and member sizes.
//!
//! Formulas: Linux md (`drivers/md/{md-linear,raid0,raid10,raid5}.c`, kernel 6.1 and 6.12), in the
//! project's own notation: n members, C sectors a chunk, c = number of a chunk of the array,
//! o = offset in the chunk. Member addresses are relative to the start of the member's data.

mod divide;
mod linear;
mod mirror;
mod parity;
mod raid0;
mod raid10;

pub(crate) use divide::Divisor;
pub use linear::Linear;
pub use mirror::Mirror;
pub use parity::{Parity, StripePlace};
pub use raid0::Raid0;
pub use raid10::Raid10;

use crate::layout::{Layout, LayoutError, Level};
use crate::units::{MemberIndex, Sector, Sectors};

/// A sector of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which member.
    pub member: MemberIndex,
    /// Where on it, relative to the start of its data.
    pub at: Sector,
}

/// What a sector of a member holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Copy number `copy` of this sector of the array.
    Data {
        /// The sector of the array.
        at: Sector,
        /// Which copy, from 0.
        copy: u16,
    },
    /// The P of this stripe.
    P {
        /// Which stripe, from 0.
        stripe: u64,
    },
    /// Nothing: left over by rounding.
    Nothing,
}

/// Where everything lies on the members of one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// Members one after another.
    Linear(Linear),
    /// Chunks dealt in turn.
    Raid0(Raid0),
    /// Every member holds everything.
    Mirror(Mirror),
    /// Chunks dealt in turn, in copies.
    Raid10(Raid10),
    /// Stripes with parity.
    Parity(Parity),
}

impl Geometry {
    /// The geometry of `layout` over members with `sizes` usable sectors.
    ///
    /// # Errors
    /// When the layout is impossible, the number of sizes is not the number of members, or a member
    /// is too small to hold anything.
    pub fn new(layout: &Layout, sizes: &[Sectors]) -> Result<Self, LayoutError> {
        layout.check()?;
        if sizes.len() != usize::from(layout.members) {
            return Err(LayoutError::new(
                "members",
                format!("{} sizes given for {} members", sizes.len(), layout.members),
            ));
        }
        if let Some(index) = sizes.iter().position(|size| size.0 < layout.chunk.0.max(1)) {
            return Err(LayoutError::new(
                "members",
                format!(
                    "member {index} has room for {} only; {layout} needs at least {}",
                    sizes[index],
                    Sectors(layout.chunk.0.max(1))
                ),
            ));
        }
        let smallest = sizes.iter().copied().min().unwrap_or(Sectors::ZERO);
        Ok(match layout.level {
            Level::Linear => Self::Linear(Linear::new(sizes, layout.chunk)),
            Level::Raid0 => Self::Raid0(Raid0::new(sizes, layout.chunk)),
            Level::Raid1 => Self::Mirror(Mirror::new(layout.members, smallest)),
            Level::Raid10 => {
                Self::Raid10(Raid10::new(layout.members, layout.near, layout.chunk, smallest))
            }
            Level::Raid5 => {
                Self::Parity(Parity::new(layout.members, layout.rotation, layout.chunk, smallest))
            }
        })
    }

    /// Usable sectors of the array.
    pub fn capacity(&self) -> Sectors {
        match self {
            Self::Linear(g) => g.capacity(),
            Self::Raid0(g) => g.capacity(),
            Self::Mirror(g) => g.capacity(),
            Self::Raid10(g) => g.capacity(),
            Self::Parity(g) => g.capacity(),
        }
    }

    /// How many copies of each sector lie on members: 1 for striped and parity levels.
    pub fn copies(&self) -> u16 {
        match self {
            Self::Linear(_) | Self::Raid0(_) | Self::Parity(_) => 1,
            Self::Mirror(g) => g.copies(),
            Self::Raid10(g) => g.copies(),
        }
    }

    /// Sectors from `at` on, to the end of the chunk or member, that lie contiguously on each of
    /// their members. `at` lies within the capacity.
    #[inline]
    pub fn run(&self, at: Sector) -> Sectors {
        match self {
            Self::Linear(g) => g.run(at),
            Self::Raid0(g) => g.run(at),
            Self::Mirror(g) => g.run(at),
            Self::Raid10(g) => g.run(at),
            Self::Parity(g) => g.run(at),
        }
    }

    /// Where copy `copy` of `at` lies. `at` lies within the capacity, `copy` below [`copies`].
    ///
    /// [`copies`]: Self::copies
    #[inline]
    pub fn place(&self, at: Sector, copy: u16) -> Place {
        match self {
            Self::Linear(g) => g.place(at),
            Self::Raid0(g) => g.place(at),
            Self::Mirror(g) => g.place(at, copy),
            Self::Raid10(g) => g.place(at, copy),
            Self::Parity(g) => g.place(at),
        }
    }

    /// What a sector of a member holds; [`Holds::Nothing`] for members that do not exist.
    pub fn holds(&self, place: Place) -> Holds {
        match self {
            Self::Linear(g) => g.holds(place),
            Self::Raid0(g) => g.holds(place),
            Self::Mirror(g) => g.holds(place),
            Self::Raid10(g) => g.holds(place),
            Self::Parity(g) => g.holds(place),
        }
    }

    /// How many sectors of member `member`, from the start of its data, the array uses.
    pub fn used(&self, member: MemberIndex) -> Sectors {
        match self {
            Self::Linear(g) => g.used(member),
            Self::Raid0(g) => g.used(member),
            Self::Mirror(g) => g.capacity(),
            Self::Raid10(g) => g.used(member),
            Self::Parity(g) => g.used(),
        }
    }
}
