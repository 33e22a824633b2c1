//! Where everything of an array under check lies, worked out once: the oracle and the harness ask here,
//! not the array they judge.

use raidlab_core::contract::{MemberBits, Role};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Config, ConfigError, Consistency, Level, MemberIndex, Sector, Sectors};

/// Members, a bit each.
pub type Set = u128;

/// The members that two words of the core name.
#[must_use]
pub const fn set_of(words: MemberBits) -> Set {
    words[0] as Set | (words[1] as Set) << 64
}

/// The words that name these members.
#[must_use]
pub const fn words_of(set: Set) -> MemberBits {
    [set as u64, (set >> 64) as u64]
}

/// The first `members` members.
#[must_use]
pub const fn all_of(members: u16) -> Set {
    if members >= 128 { Set::MAX } else { (1 << members) - 1 }
}

/// Whether a device is one of these members; replacements and the log device never are.
#[must_use]
pub const fn has(set: Set, device: u16) -> bool {
    device < 128 && set >> device & 1 == 1
}

/// Where the copies of sectors and the parities of rows lie.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Level of the array.
    pub level: Level,
    /// Members.
    pub members: u16,
    /// Sectors of the array.
    pub capacity: u64,
    /// Requests start and end on multiples of this.
    pub logical_block: u64,
    /// What keeps redundancy consistent.
    pub mode: Consistency,
    copies: usize,
    parities: u16,
    /// For each sector its copies: member and place there.
    places: Vec<(u16, u32)>,
    /// Levels with parity: for each row of all members what each member holds.
    roles: Vec<Option<Role>>,
    /// The same: which sector of the array.
    holds: Vec<Option<u64>>,
    rows: usize,
}

impl Shape {
    /// The shape of a configuration.
    ///
    /// # Errors
    /// When the layout or the members cannot be.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let sizes: Vec<Sectors> = config.members.iter().map(|m| m.sectors).collect();
        let block = config.members.iter().map(|m| m.logical_block).max().unwrap_or(1);
        let geometry = Geometry::with_block(&config.layout, &sizes, block)?;
        let mut shape = Self {
            level: config.layout.level,
            members: config.layout.members,
            capacity: 0,
            logical_block: u64::from(block),
            mode: config.settings.consistency,
            copies: usize::from(geometry.copies()),
            parities: 0,
            places: Vec::new(),
            roles: Vec::new(),
            holds: Vec::new(),
            rows: 0,
        };
        match &geometry {
            Geometry::Raid3(raid3) => {
                shape.logical_block = raid3.logical_sector();
                shape.parities = 1;
            }
            Geometry::Parity(parity) => shape.parities = parity.parities(),
            _ => {}
        }
        shape.capacity = geometry.capacity().0 / shape.logical_block * shape.logical_block;
        for at in 0..shape.capacity {
            for copy in 0..geometry.copies() {
                let place = geometry.place(Sector(at), copy);
                shape.places.push((place.member.0, place.at.0 as u32));
            }
        }
        if shape.parities > 0 {
            shape.rows = geometry.used(MemberIndex(0)).0 as usize;
            for row in 0..shape.rows as u64 {
                for member in (0..shape.members).map(MemberIndex) {
                    let holds = geometry.holds(Place { member, at: Sector(row) });
                    let (role, at) = role_of(&geometry, member, row, holds);
                    shape.roles.push(role);
                    shape.holds.push(at);
                }
            }
        }
        Ok(shape)
    }

    /// Where the copies of a sector lie: member, place.
    #[must_use]
    pub fn copies(&self, at: u64) -> &[(u16, u32)] {
        let first = at as usize * self.copies;
        &self.places[first..first + self.copies]
    }

    /// How many parities a row has.
    #[must_use]
    pub fn parities(&self) -> u16 {
        self.parities
    }

    /// Rows of the members, on levels with parity; else 0.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The row of a sector.
    #[must_use]
    pub fn row_of(&self, at: u64) -> usize {
        self.copies(at)[0].1 as usize
    }

    /// What each member holds of a row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[Option<Role>] {
        let members = usize::from(self.members);
        &self.roles[row * members..(row + 1) * members]
    }

    /// Which sector of the array a member holds in a row; `None` for parity.
    #[must_use]
    pub fn holds(&self, row: usize, member: u16) -> Option<u64> {
        self.holds[row * usize::from(self.members) + usize::from(member)]
    }

    /// Whether the array keeps nothing in this place of a member.
    #[must_use]
    pub fn is_unused(&self, member: u16, place: u64) -> bool {
        match self.parities {
            0 => self.array_sector(member, place).is_none(),
            _ => {
                place >= self.rows as u64 || self.row(place as usize)[usize::from(member)].is_none()
            }
        }
    }

    /// The sector of the array that a member of a mirror has a copy of in this place.
    #[must_use]
    pub fn array_sector(&self, member: u16, place: u64) -> Option<u64> {
        let wanted = (member, place as u32);
        (0..self.capacity).find(|at| self.copies(*at).contains(&wanted))
    }

    /// Whether a sector can still be had when the members in `lost` (a bit each) are lost.
    #[must_use]
    pub fn is_there(&self, at: u64, lost: Set) -> bool {
        if self.parities > 0 {
            return self.survives(lost);
        }
        self.copies(at).iter().any(|(member, _)| lost >> member & 1 == 0)
    }

    /// Whether all data can still be had when the members in `lost` (a bit each) are lost.
    #[must_use]
    pub fn survives(&self, lost: Set) -> bool {
        if self.parities > 0 {
            return lost.count_ones() <= u32::from(self.parities);
        }
        lost == 0 || (0..self.capacity).all(|at| self.is_there(at, lost))
    }

    /// All sets of members, a bit each, that `lost` may grow to without losing data.
    #[must_use]
    pub fn survivable(&self, lost: Set) -> Vec<Set> {
        (0..=all_of(self.members)).filter(|set| set & lost == lost && self.survives(*set)).collect()
    }
}

fn role_of(
    geometry: &Geometry,
    member: MemberIndex,
    row: u64,
    holds: Holds,
) -> (Option<Role>, Option<u64>) {
    match (holds, geometry) {
        (Holds::Data { at, .. }, Geometry::Parity(parity)) => {
            let stripe = row / parity.chunk().0;
            let chunk = (0..parity.data_chunks())
                .find(|chunk| parity.data_member(stripe, *chunk) == member)
                .unwrap_or(0);
            (Some(Role::Data(parity.q_exponent(stripe, chunk))), Some(at.0))
        }
        (Holds::Data { at, .. }, _) => (Some(Role::Data(0)), Some(at.0)),
        (Holds::P { .. }, _) => (Some(Role::P), None),
        (Holds::Q { .. }, _) => (Some(Role::Q), None),
        _ => (None, None),
    }
}
