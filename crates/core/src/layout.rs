//! Layouts: a level with its parameters, checked, and named as users write them.

mod level;
mod name;
mod nested;

use std::fmt;
use std::str::FromStr;

use crate::units::{Sectors, Size};
pub use level::{Level, Parameter, Redundancy};
pub use name::is_same_name;
pub use nested::{MOST_ARRAYS, least_common, nested_levels};

/// Where parity lies from stripe to stripe. Names and numbers as `mdadm --layout` has them; the
/// formulas are in [`geometry`](crate::geometry).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// Parity moves from the last member down; data keep the order of the members.
    LeftAsymmetric,
    /// Parity moves from the first member up; data keep the order of the members.
    RightAsymmetric,
    /// Parity moves from the last member down; data start behind it. The default of Linux md.
    #[default]
    LeftSymmetric,
    /// Parity moves from the first member up; data start behind it.
    RightSymmetric,
    /// Parity on the first member or members.
    ParityFirst,
    /// Parity on the last member or members; raid5 is then raid4.
    ParityLast,
    /// raid6 of DDF: as right-asymmetric, with the coefficients of Q by member.
    RotatingZeroRestart,
    /// raid6 of DDF: as left-asymmetric one stripe further, with the coefficients of Q by member.
    RotatingNRestart,
    /// raid6 of DDF: as left-symmetric with Q before P, with the coefficients of Q by member.
    RotatingNContinue,
    /// raid6: left-asymmetric raid5 over all members but the last, which has Q.
    LeftAsymmetric6,
    /// raid6: right-asymmetric raid5 over all members but the last, which has Q.
    RightAsymmetric6,
    /// raid6: left-symmetric raid5 over all members but the last, which has Q.
    LeftSymmetric6,
    /// raid6: right-symmetric raid5 over all members but the last, which has Q.
    RightSymmetric6,
    /// raid6: P on the first member, Q on the last.
    ParityFirst6,
}

impl Rotation {
    /// Every rotation this version carries out: those of raid6.
    pub const ALL: [Self; 14] = [
        Self::LeftAsymmetric,
        Self::RightAsymmetric,
        Self::LeftSymmetric,
        Self::RightSymmetric,
        Self::ParityFirst,
        Self::ParityLast,
        Self::RotatingZeroRestart,
        Self::RotatingNRestart,
        Self::RotatingNContinue,
        Self::LeftAsymmetric6,
        Self::RightAsymmetric6,
        Self::LeftSymmetric6,
        Self::RightSymmetric6,
        Self::ParityFirst6,
    ];

    /// The rotations of raid5.
    pub const RAID5: [Self; 6] = [
        Self::LeftAsymmetric,
        Self::RightAsymmetric,
        Self::LeftSymmetric,
        Self::RightSymmetric,
        Self::ParityFirst,
        Self::ParityLast,
    ];

    /// The name in study files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeftAsymmetric => "left-asymmetric",
            Self::RightAsymmetric => "right-asymmetric",
            Self::LeftSymmetric => "left-symmetric",
            Self::RightSymmetric => "right-symmetric",
            Self::ParityFirst => "parity-first",
            Self::ParityLast => "parity-last",
            Self::RotatingZeroRestart => "ddf-zero-restart",
            Self::RotatingNRestart => "ddf-N-restart",
            Self::RotatingNContinue => "ddf-N-continue",
            Self::LeftAsymmetric6 => "left-asymmetric-6",
            Self::RightAsymmetric6 => "right-asymmetric-6",
            Self::LeftSymmetric6 => "left-symmetric-6",
            Self::RightSymmetric6 => "right-symmetric-6",
            Self::ParityFirst6 => "parity-first-6",
        }
    }

    /// The number Linux md stores in its superblock.
    pub const fn md_number(self) -> u32 {
        match self {
            Self::LeftAsymmetric => 0,
            Self::RightAsymmetric => 1,
            Self::LeftSymmetric => 2,
            Self::RightSymmetric => 3,
            Self::ParityFirst => 4,
            Self::ParityLast => 5,
            Self::RotatingZeroRestart => 8,
            Self::RotatingNRestart => 9,
            Self::RotatingNContinue => 10,
            Self::LeftAsymmetric6 => 16,
            Self::RightAsymmetric6 => 17,
            Self::LeftSymmetric6 => 18,
            Self::RightSymmetric6 => 19,
            Self::ParityFirst6 => 20,
        }
    }
}

/// The names of rotations, for messages.
fn names(rotations: &[Rotation]) -> String {
    rotations.iter().map(|rotation| rotation.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Rotation {
    type Err = LayoutError;

    /// The names, and the short `la`, `ra`, `ls`, `rs` that mdadm takes.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let long = match text {
            "la" => "left-asymmetric",
            "ra" => "right-asymmetric",
            "ls" => "left-symmetric",
            "rs" => "right-symmetric",
            other => other,
        };
        let found = Self::ALL.into_iter().find(|rotation| rotation.name() == long);
        found.ok_or_else(|| {
            let known = names(&Self::ALL);
            LayoutError::new("rotation", format!("`{text}` is not a rotation; known: {known}"))
        })
    }
}

impl fmt::Display for Rotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// raid0 of unequal members: which member the chunks of the second and later zones start with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZoneOrder {
    /// By the chunk number of the array: Linux before 3.14, and the default of mdadm.
    #[default]
    Original,
    /// By the chunk number of the zone: Linux 3.14 to 5.3.
    Alternate,
}

impl ZoneOrder {
    /// Both orders.
    pub const ALL: [Self; 2] = [Self::Original, Self::Alternate];

    /// The name in study files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Alternate => "alternate",
        }
    }
}

impl FromStr for ZoneOrder {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text);
        found.ok_or_else(|| {
            let reason = format!("`{text}` is not an order of zones; known: original, alternate");
            LayoutError::new("zones", reason)
        })
    }
}

/// A level with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The level.
    pub level: Level,
    /// How many members.
    pub members: u16,
    /// Contiguous sectors on one member. linear rounds members down to it, 0 for no rounding; raid1
    /// and raid3 have none (0).
    pub chunk: Sectors,
    /// raid5 and raid6: where parity lies.
    pub rotation: Rotation,
    /// raid10: copies on neighbouring members, from 1.
    pub near: u16,
    /// raid10: copies of each near copy, further down on other members, from 1. A chunk has
    /// near x far copies.
    pub far: u16,
    /// raid10: far copies lie in the next row instead of the next section of the members.
    pub offset: bool,
    /// raid10: 0, far copies move over all members; 2, within sets of near x far members, the last
    /// set taking the remainder. The numbers are md's modes; its mode 1 is not carried out.
    pub far_sets: u16,
    /// raid0 of unequal members: the order within zones.
    pub zones: ZoneOrder,
    /// Nested levels: the layout of each member, which is an array; `None` where members are drives.
    pub inner: Option<Box<Layout>>,
}

/// The chunk of Linux md since mdadm 3.1: 512 KiB.
pub const DEFAULT_CHUNK: Sectors = Sectors(1024);

/// The most members an array may have.
pub const MOST_MEMBERS: u16 = 128;

impl Layout {
    /// A layout with the defaults of Linux md: 512 KiB chunk where the level has chunks (linear,
    /// raid1 and raid3: none), left-symmetric, near 2, original zones.
    pub const fn new(level: Level, members: u16) -> Self {
        let chunk = if level.has_chunks() { DEFAULT_CHUNK } else { Sectors::ZERO };
        Self {
            level,
            members,
            chunk,
            rotation: Rotation::LeftSymmetric,
            near: 2,
            far: 1,
            offset: false,
            far_sets: 0,
            zones: ZoneOrder::Original,
            inner: None,
        }
    }

    /// The same with another chunk.
    #[must_use]
    pub const fn with_chunk(mut self, chunk: Sectors) -> Self {
        self.chunk = chunk;
        self
    }

    /// The same with another rotation.
    #[must_use]
    pub const fn with_rotation(mut self, rotation: Rotation) -> Self {
        self.rotation = rotation;
        self
    }

    /// The same with another number of near copies.
    #[must_use]
    pub const fn with_near(mut self, near: u16) -> Self {
        self.near = near;
        self
    }

    /// The same with `far` copies far and one near, as `f2` of mdadm says. For more near copies
    /// beside several far ones, [`Self::with_near`] comes after.
    #[must_use]
    pub const fn with_far(mut self, far: u16) -> Self {
        self.far = far;
        if far > 1 {
            self.near = 1;
        }
        self
    }

    /// The same with far copies in the next row or not: `o2` of mdadm is far 2 and this.
    #[must_use]
    pub const fn with_offset(mut self, offset: bool) -> Self {
        self.offset = offset;
        self
    }

    /// The same with another mode of far sets.
    #[must_use]
    pub const fn with_far_sets(mut self, far_sets: u16) -> Self {
        self.far_sets = far_sets;
        self
    }

    /// The same with another order within zones.
    #[must_use]
    pub const fn with_zones(mut self, zones: ZoneOrder) -> Self {
        self.zones = zones;
        self
    }

    /// How many members of each stripe hold parity.
    pub const fn parities(&self) -> u16 {
        match self.level.redundancy() {
            Redundancy::Parity(parities) => parities,
            Redundancy::None | Redundancy::Mirror | Redundancy::Copies => 0,
        }
    }

    /// On how many members the data of one row of chunks lie, copies counted once; 1 where there are no
    /// rows. With an odd number of members raid10 rounds down, as md does when it tells its optimal I/O.
    pub const fn data_members(&self) -> u16 {
        match self.level.redundancy() {
            Redundancy::Mirror => 1,
            Redundancy::None if !self.level.has_chunks() => 1,
            Redundancy::None | Redundancy::Parity(_) => {
                self.members.saturating_sub(self.parities())
            }
            Redundancy::Copies => {
                let near = if self.near == 0 { 1 } else { self.near };
                let rows = self.members / near;
                if rows == 0 { 1 } else { rows }
            }
        }
    }

    /// Checks the parameters against each other.
    ///
    /// # Errors
    /// Names the parameter that is wrong and says what would be right.
    pub fn check(&self) -> Result<(), LayoutError> {
        if let Some(inner) = &self.inner {
            self.check_nested(inner)?;
        }
        self.check_members()?;
        self.check_chunk()?;
        self.check_rotation()?;
        for (parameter, is_given) in [
            (Parameter::Zones, self.zones != ZoneOrder::Original),
            (Parameter::Near, self.near != 2),
            (Parameter::Far, self.far != 1),
            (Parameter::Offset, self.offset),
            (Parameter::FarSets, self.far_sets != 0),
        ] {
            if is_given && !self.level.takes(parameter) {
                let having = Level::names(|level| level.takes(parameter));
                let reason = format!("only {having} has it, not {}", self.level);
                return Err(LayoutError::new(parameter.key(), reason));
            }
        }
        if self.level.redundancy() == Redundancy::Copies {
            self.check_copies()?;
            return self.check_far();
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), LayoutError> {
        let error = |reason| Err(LayoutError::new("members", reason));
        let (level, members) = (self.level, self.members);
        let fewest = level.fewest_members();
        if members < fewest {
            return error(format!("{level} needs at least {fewest} members, not {members}"));
        }
        if members > MOST_MEMBERS {
            return error(format!("at most {MOST_MEMBERS} members, not {members}"));
        }
        if level.is_cut_by_sectors() && !(members - 1).is_power_of_two() {
            return error(format!(
                "{level} takes a power of two and one more (3, 5, 9, 17, 33, 65), not {members}"
            ));
        }
        Ok(())
    }

    fn check_chunk(&self) -> Result<(), LayoutError> {
        let error = |reason| Err(LayoutError::new("chunk", reason));
        let (level, chunk) = (self.level, self.chunk);
        if level.has_chunks() && chunk == Sectors::ZERO {
            return error("the chunk must be at least one sector of 512 bytes".into());
        }
        if chunk.0 > u64::from(u32::MAX / 2) {
            return error(format!("{chunk} is too large; it must be less than 1TiB"));
        }
        if level.needs_power_of_two() && !chunk.0.is_power_of_two() {
            return error(format!("{level} needs a chunk that is a power of two, not {chunk}"));
        }
        if !level.takes(Parameter::Chunk) && chunk != Sectors::ZERO {
            return error(format!("{level} has no chunks; leave `chunk` out"));
        }
        Ok(())
    }

    fn check_rotation(&self) -> Result<(), LayoutError> {
        let possible = self.level.rotations();
        let is_default = self.rotation == Rotation::default();
        if possible.contains(&self.rotation) || (possible.is_empty() && is_default) {
            return Ok(());
        }
        let (level, rotation) = (self.level, self.rotation);
        let reason = if possible.is_empty() {
            format!("parity of {level} does not rotate; leave {rotation} out")
        } else {
            format!("{level} has no {rotation}; possible: {}", names(possible))
        };
        Err(LayoutError::new("rotation", reason))
    }

    fn check_copies(&self) -> Result<(), LayoutError> {
        let Self { members, near, far, .. } = *self;
        let far_key = if self.offset { "offset" } else { "far" };
        if near == 0 || far == 0 {
            let key = if near == 0 { "near" } else { far_key };
            return Err(LayoutError::new(key, "must be at least 1, which is the chunk itself"));
        }
        if self.offset && far < 2 {
            let reason = format!("offset copies are far copies: at least 2, not {far}");
            return Err(LayoutError::new("offset", reason));
        }
        let copies = u32::from(near) * u32::from(far);
        if (2..=u32::from(members)).contains(&copies) {
            return Ok(());
        }
        if far == 1 {
            let reason = format!("near must be from 2 to the {members} members, not {near}");
            return Err(LayoutError::new("near", reason));
        }
        Err(LayoutError::new(
            far_key,
            format!(
                "near {near} x {far_key} {far} are {copies} copies; \
                 possible are from 2 to the {members} members"
            ),
        ))
    }

    /// Several near and several far copies at once fit some numbers of members only. With offset,
    /// md's formulas let a near copy that wraps to member 0 go one chunk down, which is where the
    /// offset copies of the row lie: two chunks on one place, so such an array would lose data. With
    /// sets, near copies would straddle the sets of an odd remainder. mdadm creates neither.
    fn check_far(&self) -> Result<(), LayoutError> {
        let Self { members, near, far, .. } = *self;
        if self.offset && near > 1 && !members.is_multiple_of(near) {
            let reason = format!(
                "near {near} with offset {far} needs a multiple of {near} members, not {members}: \
                 otherwise copies overlap"
            );
            return Err(LayoutError::new("members", reason));
        }
        let error = |reason| Err(LayoutError::new("far_sets", reason));
        if !has_far_sets(self.far_sets)? {
            return Ok(());
        }
        if far < 2 {
            return error(format!("sets need at least 2 far copies, not {far}"));
        }
        if near > 1 && !members.is_multiple_of(near * far) {
            return error(format!(
                "sets of near {near} x far {far} need a multiple of {} members, not {members}",
                near * far
            ));
        }
        Ok(())
    }
}

/// Whether a mode of [`Layout::far_sets`] has sets.
///
/// # Errors
/// For modes that are not carried out: there are 0 and 2.
pub fn has_far_sets(mode: u16) -> Result<bool, LayoutError> {
    match mode {
        0 => Ok(false),
        1 => Err(LayoutError::new(
            "far_sets",
            "mode 1 of md may keep copies of a chunk on one member and is refused; \
             use 2 for sets, 0 for none",
        )),
        2 => Ok(true),
        other => {
            let reason = format!("{other} is not a mode of far sets; 0 or 2");
            Err(LayoutError::new("far_sets", reason))
        }
    }
}

/// A chunk from a size in bytes.
///
/// # Errors
/// When it is not a whole number of sectors.
pub fn chunk_from_size(size: Size) -> Result<Sectors, LayoutError> {
    Sectors::from_bytes(size.0).filter(|chunk| *chunk != Sectors::ZERO).ok_or_else(|| {
        LayoutError::new("chunk", format!("{size} is not a multiple of the sector (512 bytes)"))
    })
}

impl fmt::Display for Layout {
    /// `LEVEL(MEMBERS)` with what differs from the default after it; one linear member is `single`. Nested levels
    /// are `raid5+0(ARRAYSxDRIVES)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(inner) = &self.inner {
            return self.write_nested(inner, f);
        }
        if self.level == Level::Linear && self.members == 1 {
            f.write_str("single")?;
        } else {
            write!(f, "{}({})", self.level, self.members)?;
        }
        self.write_parameters("", f)
    }
}

/// A parameter of a layout that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayoutError {
    /// The parameter, as it is called in study files: `level`, `members`, `chunk`, `rotation`,
    /// `near`, `far`, `offset`, `far_sets`, `zones`, `arrays`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl LayoutError {
    pub(crate) fn new(key: &'static str, reason: impl Into<String>) -> Self {
        Self { key, reason: reason.into() }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for LayoutError {}
