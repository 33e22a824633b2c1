//! Nested levels: a layout whose members are arrays, such as a stripe over arrays with parity.
//!
//! Named as the field names them: `raid5+0(2x3)` is raid0 over 2 arrays of raid5 with 3 drives each, and `raid50`
//! is read as `raid5+0`. `raid10` is a level of its own, as md has it; mirrors striped are `raid1+0`.

use std::fmt;

use super::{DEFAULT_CHUNK, Layout, LayoutError, Level, Parameter, Redundancy, Rotation};
use crate::units::{Sectors, Size};

/// The most arrays that an array may have as members.
pub const MOST_ARRAYS: u16 = 127;

/// What stands before a parameter of the upper level.
pub(super) const OUTER: &str = "outer-";

impl Layout {
    /// Nested levels: this layout over arrays of another, as many as it has members. The chunk of the upper level is
    /// that of the lower one, where both have chunks.
    #[must_use]
    pub fn over(mut self, inner: Self) -> Self {
        if self.level.has_chunks() && inner.level.has_chunks() {
            self.chunk = inner.chunk;
        }
        self.inner = Some(Box::new(inner));
        self
    }

    /// The upper level of nested ones alone, over drives.
    #[must_use]
    pub fn upper(&self) -> Self {
        Self { inner: None, ..self.clone() }
    }

    /// How many drives: the members, or those of all arrays that are members.
    pub const fn drives(&self) -> u16 {
        match &self.inner {
            Some(inner) => self.members.saturating_mul(inner.drives()),
            None => self.members,
        }
    }

    /// The levels from the upper one down: one, or two where they are nested.
    pub fn floors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |layout| layout.inner.as_deref())
    }

    /// Whether some level keeps parity.
    pub fn has_parity(&self) -> bool {
        self.floors().any(|floor| floor.parities() > 0)
    }

    pub(super) fn check_nested(&self, inner: &Self) -> Result<(), LayoutError> {
        if inner.inner.is_some() {
            let reason = "levels can be nested once, not twice";
            return Err(LayoutError::new("level", reason));
        }
        inner.check()?;
        if !(2..=MOST_ARRAYS).contains(&self.members) {
            let reason = format!(
                "{} over arrays takes 2 to {MOST_ARRAYS} of them, not {}",
                self.level, self.members
            );
            return Err(LayoutError::new("arrays", reason));
        }
        Ok(())
    }

    /// The name and the parameters of nested levels, as [`FromStr`](std::str::FromStr) reads them.
    pub(super) fn write_nested(&self, inner: &Self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}x{})", name(inner.level, self.level), self.members, inner.members)?;
        inner.write_parameters("", f)?;
        let mut outer = self.upper();
        if self.level.has_chunks() {
            let unnamed = if inner.level.has_chunks() { inner.chunk } else { DEFAULT_CHUNK };
            if self.chunk != unnamed {
                // Without a prefix it would be the lower level's, where that takes one: linear does, and has no chunks.
                let prefix = if inner.level.takes(Parameter::Chunk) { OUTER } else { "" };
                write!(f, " {prefix}chunk={}", Size(self.chunk.bytes()).short())?;
            }
            outer.chunk = DEFAULT_CHUNK;
        }
        outer.write_parameters(OUTER, f)
    }
}

/// The name of two levels, the lower one first.
fn name(inner: Level, outer: Level) -> String {
    let outer = outer.name();
    format!("{inner}+{}", outer.strip_prefix("raid").unwrap_or(outer))
}

/// The lower and the upper level of a name such as `raid5+0` or `raid50`; `None` where it names none.
pub fn nested_levels(text: &str) -> Option<(Level, Level)> {
    let text = text.to_ascii_lowercase();
    let level = |name: &str| Level::ALL.into_iter().find(|level| level.name() == name);
    let (inner, outer) = match text.split_once('+') {
        Some((inner, outer)) => (inner.to_owned(), outer.to_owned()),
        None => {
            let digits = text.strip_prefix("raid").filter(|digits| *digits != "10")?;
            let [inner, outer] = digits.as_bytes() else { return None };
            (format!("raid{}", char::from(*inner)), char::from(*outer).to_string())
        }
    };
    let outer = level(&outer).or_else(|| level(&format!("raid{outer}")))?;
    Some((level(&inner)?, outer))
}

/// The smallest number that both divide; beside 0 the other one, as the block layer's limits have it.
pub const fn least_common(one: u64, other: u64) -> u64 {
    if one == 0 || other == 0 {
        return if one == 0 { other } else { one };
    }
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    one / a * other
}

impl Layout {
    /// The data of a stripe, which lies in one piece in the array: a chunk of each member with data. Nested, the
    /// least that fills stripes of both levels. `None` where there are no chunks, or copies of them.
    pub fn full_stripe(&self) -> Option<Sectors> {
        let below = self.inner.as_ref().and_then(|inner| inner.full_stripe());
        if !self.level.has_rows() {
            return below;
        }
        let piece = least_common(self.chunk.0, below.map_or(0, |stripe| stripe.0));
        Some(Sectors(piece * u64::from(self.data_members())))
    }

    /// Sectors that the array reads and writes together at least, where its members take single ones: RAID 3 cuts each
    /// over all members with data. Nested, what the lower level takes at least is a sector of the upper one.
    pub fn sectors_at_once(&self) -> u32 {
        let of_floor = |floor: &Self| match floor.level.is_cut_by_sectors() {
            true => u32::from(floor.data_members()),
            false => 1,
        };
        self.floors().map(of_floor).product()
    }

    /// How many lost drives the layout survives whichever they are.
    pub fn survives(&self) -> u16 {
        let own = match self.level.redundancy() {
            Redundancy::None => 0,
            Redundancy::Mirror => self.members.saturating_sub(1),
            Redundancy::Copies => self.near.saturating_mul(self.far).saturating_sub(1),
            Redundancy::Parity(parities) => parities,
        };
        let below = self.inner.as_ref().map_or(0, |inner| inner.survives());
        (own + 1).saturating_mul(below + 1) - 1
    }

    /// What of the parameters differs from the defaults, each word with `prefix`.
    pub(super) fn write_parameters(&self, prefix: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.chunk != Self::new(self.level, self.members).chunk {
            write!(f, " {prefix}chunk={}", Size(self.chunk.bytes()).short())?;
        }
        if self.rotation != Rotation::default() {
            write!(f, " {prefix}{}", self.rotation)?;
        }
        if self.level.takes(Parameter::Near) {
            // One near copy goes without saying beside far ones, two where there are none.
            if self.near != if self.far > 1 { 1 } else { 2 } {
                write!(f, " {prefix}near{}", self.near)?;
            }
            if self.far > 1 {
                let word = if self.offset { "offset" } else { "far" };
                write!(f, " {prefix}{word}{}", self.far)?;
            }
            if self.far_sets != 0 {
                write!(f, " {prefix}sets")?;
            }
        }
        if self.zones != super::ZoneOrder::Original {
            write!(f, " {prefix}{}", self.zones.name())?;
        }
        Ok(())
    }
}
