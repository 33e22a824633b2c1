//! Address maths of every level, in both directions; pure functions of a layout and member sizes.
//!
//! Formulas: Linux md (`drivers/md/{md-linear,raid0,raid10,raid5}.c`, kernel 6.1 and 6.12) and, for
//! raid3, FreeBSD graid3, in the project's own notation: n members, C sectors a chunk, c = number of
//! a chunk of the array, s = number of a stripe, o = offset in the chunk. Member addresses are
//! relative to the start of the member's data.

mod divide;
mod linear;
mod loss;
mod map;
mod mirror;
mod nested;
mod parity;
mod raid0;
mod raid10;
mod raid3;
mod raid4;
mod raid5;
mod raid6;
mod stripe;

pub(crate) use divide::Divisor;
pub use linear::Linear;
pub use map::{Chunk, ChunkMap, drawn_chunk};
pub use mirror::Mirror;
pub use nested::Nested;
pub use parity::{Parity, StripePlace};
pub use raid0::Raid0;
pub use raid3::Raid3;
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
        /// Which stripe, from 0; for raid3 which logical sector.
        stripe: u64,
    },
    /// The Q of this stripe.
    Q {
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
    /// Logical sectors cut over all data members, with parity.
    Raid3(Raid3),
    /// Stripes with parity: raid4, raid5, raid6.
    Parity(Parity),
    /// Arrays over arrays, for whom the members are the drives.
    Nested(Nested),
}

impl Geometry {
    /// The geometry of `layout` over members with `sizes` usable sectors, in blocks of one sector.
    ///
    /// # Errors
    /// When the layout is impossible, the number of sizes is not the number of members, or a member
    /// is too small to hold anything.
    pub fn new(layout: &Layout, sizes: &[Sectors]) -> Result<Self, LayoutError> {
        Self::with_block(layout, sizes, 1)
    }

    /// The same over members whose largest block is `block` sectors. Only raid3 depends on it: its
    /// logical sector is that block times the data members.
    ///
    /// # Errors
    /// As [`Self::new`]; also when the block is not a power of two, or the logical sector of raid3
    /// would be larger than 128 KiB.
    pub fn with_block(layout: &Layout, sizes: &[Sectors], block: u32) -> Result<Self, LayoutError> {
        layout.check()?;
        if let Some(inner) = &layout.inner {
            return Self::nested(layout, inner, sizes, block);
        }
        if !block.is_power_of_two() {
            let reason = format!("a block of {block} sectors is not a power of two");
            return Err(LayoutError::new("logical_block", reason));
        }
        check_count(sizes, layout.members)?;
        let least = match layout.level.is_cut_by_sectors() {
            true => u64::from(block),
            // One chunk for every far copy.
            false => layout.chunk.0.max(1) * u64::from(layout.far),
        };
        if let Some(index) = sizes.iter().position(|size| size.0 < least) {
            let (size, least) = (sizes[index], Sectors(least));
            return Err(LayoutError::new(
                "members",
                format!("member {index} has room for {size} only; {layout} needs at least {least}"),
            ));
        }
        let smallest = sizes.iter().copied().min().unwrap_or(Sectors::ZERO);
        Ok(match layout.level {
            Level::Linear => Self::Linear(Linear::new(sizes, layout.chunk)),
            Level::Raid0 => Self::Raid0(Raid0::new(sizes, layout.chunk, layout.zones)),
            Level::Raid1 => Self::Mirror(Mirror::new(layout.members, smallest)),
            Level::Raid3 => Self::Raid3(Raid3::new(layout.members, smallest, block)?),
            Level::Raid10 => Self::Raid10(Raid10::new(layout, smallest)),
            Level::Raid4 | Level::Raid5 | Level::Raid6 => {
                Self::Parity(Parity::new(layout, smallest))
            }
        })
    }

    /// Lower arrays over the drives, and the upper one over those.
    fn nested(
        layout: &Layout,
        inner: &Layout,
        sizes: &[Sectors],
        block: u32,
    ) -> Result<Self, LayoutError> {
        check_count(sizes, layout.drives())?;
        let drives = sizes.chunks_exact(usize::from(inner.members));
        let arrays: Vec<Self> = drives
            .map(|drives| Self::with_block(inner, drives, block))
            .collect::<Result<_, _>>()?;
        let sizes: Vec<Sectors> = arrays.iter().map(Self::capacity).collect();
        let outer = Self::with_block(&layout.upper(), &sizes, block)?;
        Ok(Self::Nested(Nested::new(outer, arrays, inner.members)))
    }

    /// Usable sectors of the array.
    pub fn capacity(&self) -> Sectors {
        match self {
            Self::Linear(g) => g.capacity(),
            Self::Raid0(g) => g.capacity(),
            Self::Mirror(g) => g.capacity(),
            Self::Raid10(g) => g.capacity(),
            Self::Raid3(g) => g.capacity(),
            Self::Parity(g) => g.capacity(),
            Self::Nested(g) => g.capacity(),
        }
    }

    /// Whether a range of a member that background work goes over at once ends with a chunk, behind which other members
    /// hold what belongs together.
    pub(crate) const fn ranges_end_with_chunks(&self) -> bool {
        match self {
            Self::Parity(_) | Self::Raid10(_) => true,
            Self::Linear(_) | Self::Raid0(_) | Self::Mirror(_) | Self::Raid3(_) => false,
            Self::Nested(_) => false,
        }
    }

    /// How many copies of each sector lie on members: 1 for striped and parity levels.
    pub fn copies(&self) -> u16 {
        match self {
            Self::Linear(_) | Self::Raid0(_) | Self::Raid3(_) | Self::Parity(_) => 1,
            Self::Mirror(g) => g.copies(),
            Self::Raid10(g) => g.copies(),
            Self::Nested(g) => g.copies(),
        }
    }

    /// Sectors from `at` on, to the end of the chunk or member, that lie contiguously on each of
    /// their members. `at` lies within the capacity.
    #[inline(always)]
    pub fn run(&self, at: Sector) -> Sectors {
        match self {
            Self::Linear(g) => g.run(at),
            Self::Raid0(g) => g.run(at),
            Self::Mirror(g) => g.run(at),
            Self::Raid10(g) => g.run(at),
            Self::Raid3(g) => g.run(at),
            Self::Parity(g) => g.run(at),
            Self::Nested(g) => g.run(at),
        }
    }

    /// Where copy `copy` of `at` lies. `at` lies within the capacity, `copy` below [`copies`].
    ///
    /// [`copies`]: Self::copies
    #[inline(always)]
    pub fn place(&self, at: Sector, copy: u16) -> Place {
        match self {
            Self::Linear(g) => g.place(at),
            Self::Raid0(g) => g.place(at),
            Self::Mirror(g) => g.place(at, copy),
            Self::Raid10(g) => g.place(at, copy),
            Self::Raid3(g) => g.place(at),
            Self::Parity(g) => g.place(at),
            Self::Nested(g) => g.place(at, copy),
        }
    }

    /// What a sector of a member holds; [`Holds::Nothing`] for members that do not exist.
    pub fn holds(&self, place: Place) -> Holds {
        match self {
            Self::Linear(g) => g.holds(place),
            Self::Raid0(g) => g.holds(place),
            Self::Mirror(g) => g.holds(place),
            Self::Raid10(g) => g.holds(place),
            Self::Raid3(g) => g.holds(place),
            Self::Parity(g) => g.holds(place),
            Self::Nested(g) => g.holds(place),
        }
    }

    /// How many sectors of member `member`, from the start of its data, the array uses.
    pub fn used(&self, member: MemberIndex) -> Sectors {
        match self {
            Self::Linear(g) => g.used(member),
            Self::Raid0(g) => g.used(member),
            Self::Mirror(g) => g.capacity(),
            Self::Raid10(g) => g.used(member),
            Self::Raid3(g) => g.used(),
            Self::Parity(g) => g.used(),
            Self::Nested(g) => g.used(member),
        }
    }
}

fn check_count(sizes: &[Sectors], members: u16) -> Result<(), LayoutError> {
    if sizes.len() == usize::from(members) {
        return Ok(());
    }
    let reason = format!("{} sizes given for {members} members", sizes.len());
    Err(LayoutError::new("members", reason))
}
