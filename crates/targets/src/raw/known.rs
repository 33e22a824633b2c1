//! What members should hold, and all of them checked against it.
//!
//! Everything that is known is read and compared, byte for byte; only what no write has reached, of which nothing is
//! known, is passed over, so that a few writes all over a large drive are read back where they lie. Members are read
//! side by side, so that one is checked while another is read; what lies together in blocks of 4 KiB is compared as
//! blocks, anything else sector by sector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use raidlab_core::geometry::{Geometry, Holds, Nested, Place};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{EngineError, Holding, Member};

use super::pattern::{self, BLOCK};
use super::versions::Versions;

/// Bytes in a sector, for buffers.
const SECTOR: usize = SECTOR_BYTES as usize;
/// Sectors in a block.
const SECTORS: u64 = BLOCK / SECTOR_BYTES;
/// Members are read in runs of this many sectors (1 MiB).
const RUN: u64 = 2048;
/// Members that are read at once, at most.
const SIDE_BY_SIDE: usize = 4;
/// What direct I/O reads into without another copy starts on a multiple of this.
const ALIGNMENT: usize = 4096;

/// What a sector of a member should hold.
pub(super) enum Expected {
    Bytes(Holding, Option<Sector>),
    /// Nothing is known about it.
    Unknown,
}

/// What is known of an array.
pub(super) struct Known<'a> {
    pub(super) members: u16,
    pub(super) geometry: Geometry,
    pub(super) versions: &'a Versions,
    /// What was never written holds zeroes.
    pub(super) zeroed: bool,
}

/// What is read of a member.
#[derive(Clone, Copy)]
pub(super) struct Area {
    /// Where its data start; everything else counts from there.
    pub(super) start: Sectors,
    /// Up to where they are good; 0: it is not read.
    pub(super) end: u64,
}

/// A sector that does not hold what it should.
pub(super) struct Wrong {
    pub(super) place: Place,
    /// What was read.
    pub(super) bytes: [u8; SECTOR],
}

/// Reads what is known of every member in its area and compares it: the first wrong sector of each.
///
/// # Errors
/// When a member cannot be read, or `cancel` was set.
pub(super) fn sweep(
    members: &mut [Member],
    areas: &[Area],
    known: &Known<'_>,
    cancel: &AtomicBool,
) -> Result<Vec<Wrong>, EngineError> {
    let all = (0..).map(MemberIndex).zip(members).zip(areas.iter().copied());
    let mut shares: Vec<Vec<_>> = Vec::new();
    for (n, ((index, member), area)) in all.filter(|(_, area)| area.end > 0).enumerate() {
        match shares.get_mut(n % SIDE_BY_SIDE) {
            Some(share) => share.push((index, member, area)),
            None => shares.push(vec![(index, member, area)]),
        }
    }
    let runs = known.runs(areas.iter().map(|area| area.end).max().unwrap_or(0));
    let check = |share: Vec<(MemberIndex, &mut Member, Area)>| {
        let mut found = Vec::new();
        for (index, member, area) in share {
            found.extend(known.first_wrong(index, member, area, &runs, cancel)?);
        }
        Ok::<_, EngineError>(found)
    };
    let mut found = thread::scope(|scope| {
        let running: Vec<_> =
            shares.into_iter().map(|share| scope.spawn(|| check(share))).collect();
        let mut found = Vec::new();
        for one in running {
            match one.join() {
                Ok(result) => found.extend(result?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, EngineError>(found)
    })?;
    found.sort_by_key(|one| one.place.member);
    Ok(found)
}

/// Room for a block of each member's data, and for what is computed of them.
#[derive(Default)]
struct Blocks {
    data: Vec<[u8; BLOCK as usize]>,
    exponents: Vec<u8>,
    computed: Vec<u8>,
}

impl Known<'_> {
    /// The runs of members up to `end` of which anything may be known on any of them, in ascending order. What belongs
    /// to a block lies at one address on all members: copies elsewhere are places of their own, and a stripe has its
    /// chunks and its parity at one address.
    fn runs(&self, end: u64) -> Vec<u64> {
        if self.zeroed {
            return (0..end.div_ceil(RUN)).collect();
        }
        let mut runs = Vec::new();
        for copy in 0..self.geometry.copies() {
            let mut newest = 0..0;
            for block in self.versions.written() {
                let of = |at| self.geometry.place(Sector(at), copy).at.0 / RUN;
                let (first, last) = (of(block * SECTORS), of(block * SECTORS + SECTORS - 1));
                let these = first.min(last)..first.max(last) + 1;
                if these != newest {
                    runs.extend(these.clone());
                    newest = these;
                }
            }
        }
        runs.sort_unstable();
        runs.dedup();
        runs
    }

    /// The first sector of a member, below `end`, that does not hold what it should.
    fn first_wrong(
        &self,
        index: MemberIndex,
        member: &mut Member,
        Area { start, end }: Area,
        runs: &[u64],
        cancel: &AtomicBool,
    ) -> Result<Option<Wrong>, EngineError> {
        let mut memory = vec![0; RUN as usize * SECTOR + ALIGNMENT];
        let skip = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let mut blocks = Blocks::default();
        for at in runs.iter().map(|run| run * RUN).take_while(|at| *at < end) {
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled("verify the members"));
            }
            let mut sectors = at..end.min(at + RUN);
            let Some(first) = sectors.find(|sector| self.is_known(index, *sector)) else {
                continue;
            };
            let last = sectors.rfind(|sector| self.is_known(index, *sector)).unwrap_or(first);
            // In whole blocks, also of the member; what was found is behind where the run starts.
            let at = first / SECTORS * SECTORS;
            let run = (last + 1).next_multiple_of(SECTORS).min(end) - at;
            let bytes = &mut memory[skip..skip + run as usize * SECTOR];
            member.read_direct(Sector(at) + start, bytes)?;
            if let Some(sector) = self.wrong_in(index, at, bytes, &mut blocks) {
                let place = Place { member: index, at: Sector(sector) };
                let mut read = [0; SECTOR];
                read.copy_from_slice(&bytes[(sector - at) as usize * SECTOR..][..SECTOR]);
                return Ok(Some(Wrong { place, bytes: read }));
            }
        }
        Ok(None)
    }

    /// The first wrong sector of those read from `at` on.
    fn wrong_in(
        &self,
        index: MemberIndex,
        at: u64,
        bytes: &[u8],
        blocks: &mut Blocks,
    ) -> Option<u64> {
        let mut expected = [0; SECTOR];
        let end = at + (bytes.len() / SECTOR) as u64;
        let mut sector = at;
        while sector < end {
            let place = Place { member: index, at: Sector(sector) };
            let own = &bytes[((sector - at) as usize) * SECTOR..];
            let whole = (sector + SECTORS <= end).then(|| &own[..BLOCK as usize]);
            if whole.and_then(|own| self.is_block_right(place, own, blocks)) == Some(true) {
                sector += SECTORS;
                continue;
            }
            let holds = self.sector(place, &mut expected);
            if matches!(holds, Expected::Bytes(..)) && expected != own[..SECTOR] {
                return Some(sector);
            }
            sector += 1;
        }
        None
    }

    /// Whether the block that begins at a place holds what it should, or is not known; `None` when it is no block of
    /// the array.
    fn is_block_right(&self, place: Place, own: &[u8], blocks: &mut Blocks) -> Option<bool> {
        match self.block(place)? {
            Holds::Data { at, .. } => {
                let version = self.version(at);
                let known = version != 0 || self.zeroed;
                Some(!known || pattern::first_difference(at.bytes(), version, own).is_none())
            }
            Holds::P { .. } => self.is_parity_right(place, None, own, blocks),
            Holds::Q { stripe } => self.is_parity_right(place, Some(stripe), own, blocks),
            Holds::Nothing => Some(true),
        }
    }

    /// What the eight sectors from a place on hold, if they are a block of the array or of a stripe.
    fn block(&self, place: Place) -> Option<Holds> {
        let last = Place { at: Sector(place.at.0 + SECTORS - 1), ..place };
        let (first, last) = (self.geometry.holds(place), self.geometry.holds(last));
        match (first, last) {
            (Holds::Data { at, copy }, Holds::Data { at: end, copy: same }) => {
                let together = end.0 == at.0 + SECTORS - 1 && at.0.is_multiple_of(SECTORS);
                (together && copy == same).then_some(first)
            }
            (first, last) => (first == last).then_some(first),
        }
    }

    /// P, or Q of a stripe, against the patterns of its data; `None` when the stripe's data are no blocks.
    fn is_parity_right(
        &self,
        place: Place,
        q_of: Option<u64>,
        own: &[u8],
        blocks: &mut Blocks,
    ) -> Option<bool> {
        let floor = self.floor(place.member)?;
        let Geometry::Parity(parity) = floor.geometry else { return None };
        let mut count = 0;
        blocks.exponents.clear();
        for other in floor.others(place) {
            let Holds::Data { at: within, .. } = floor.holds(other) else { continue };
            // A member of nested levels may hold the upper one's parity.
            let Holds::Data { at, .. } = self.block(other)? else { return None };
            let version = self.version(at);
            if version == 0 && !self.zeroed {
                return Some(true);
            }
            if blocks.data.len() == count {
                blocks.data.push([0; BLOCK as usize]);
            }
            pattern::fill(at.bytes(), version, &mut blocks.data[count]);
            count += 1;
            if let Some(stripe) = q_of {
                blocks.exponents.push(parity.q_exponent(stripe, parity.stripe_place(within).chunk));
            }
        }
        let data: Vec<&[u8]> =
            blocks.data[..count].iter().map(<[u8; BLOCK as usize]>::as_slice).collect();
        blocks.computed.clear();
        blocks.computed.resize(BLOCK as usize, 0);
        let computed = match q_of {
            None => raidlab_parity::xor(&mut blocks.computed, &data),
            Some(_) => {
                raidlab_parity::pq(None, Some(&mut blocks.computed), &data, &blocks.exponents)
            }
        };
        debug_assert_eq!(computed, Ok(()));
        Some(blocks.computed == own)
    }

    /// The last write of the block of a sector of the array.
    fn version(&self, at: Sector) -> u32 {
        self.versions.get(at.bytes() / BLOCK)
    }

    /// The array that a drive is a member of: of nested levels the lower one.
    fn floor(&self, drive: MemberIndex) -> Option<Floor<'_>> {
        match &self.geometry {
            Geometry::Nested(nested) => {
                let (index, _, first) = nested.array_of(drive)?;
                let members = nested.drives_of_each();
                Some(Floor { geometry: nested.inner(index), first: first.0, members })
            }
            geometry => Some(Floor { geometry, first: 0, members: self.members }),
        }
    }

    /// Whether anything may be known of a sector of a member.
    fn is_known(&self, member: MemberIndex, at: u64) -> bool {
        if self.zeroed {
            return true;
        }
        let place = Place { member, at: Sector(at) };
        match (&self.geometry, self.geometry.holds(place)) {
            (_, Holds::Data { at, .. }) => self.version(at) != 0,
            (_, Holds::Nothing) => false,
            // The parity of either level: it is looked at sector by sector.
            (Geometry::Nested(_), _) => true,
            // Known when all data of its stripe are, and so is then each of them.
            _ => {
                let others = (0..self.members).filter(|n| *n != member.0).map(MemberIndex);
                others.map(|member| Place { member, ..place }).any(|other| {
                    matches!(self.geometry.holds(other), Holds::Data { at, .. } if self.version(at) != 0)
                })
            }
        }
    }

    /// What a sector of a member should hold.
    pub(super) fn sector(&self, place: Place, into: &mut [u8; SECTOR]) -> Expected {
        let of_array = |at, into: &mut [u8; SECTOR]| self.put_pattern(at, into);
        match &self.geometry {
            Geometry::Nested(nested) => self.nested_sector(nested, place, into),
            geometry => expected(
                &Floor { geometry, first: 0, members: self.members },
                place,
                &of_array,
                into,
            ),
        }
    }

    /// The same of nested levels: what a lower array holds is what a member of the upper one should.
    fn nested_sector(&self, nested: &Nested, place: Place, into: &mut [u8; SECTOR]) -> Expected {
        let Some((index, ..)) = nested.array_of(place.member) else { return Expected::Unknown };
        let Some(lower) = self.floor(place.member) else { return Expected::Unknown };
        let upper = Floor { geometry: nested.outer(), first: 0, members: nested.arrays() };
        let of_array = |at, into: &mut [u8; SECTOR]| self.put_pattern(at, into);
        let of_member = |at, into: &mut [u8; SECTOR]| {
            let place = Place { member: MemberIndex(index), at };
            matches!(expected(&upper, place, &of_array, into), Expected::Bytes(..))
        };
        let below = expected(&lower, place, &of_member, into);
        let Expected::Bytes(Holding::Data { .. }, Some(_)) = below else { return below };
        match (self.geometry.holds(place), below) {
            (Holds::Data { at, copy }, _) => Expected::Bytes(Holding::Data { copy }, Some(at)),
            (Holds::P { stripe }, _) => Expected::Bytes(Holding::Parity { stripe }, None),
            (Holds::Q { stripe }, _) => Expected::Bytes(Holding::Q { stripe }, None),
            (Holds::Nothing, below) => below,
        }
    }

    /// The pattern of a sector of the array; false when it is not known.
    fn put_pattern(&self, at: Sector, into: &mut [u8; SECTOR]) -> bool {
        let version = self.version(at);
        pattern::fill(at.bytes(), version, into);
        version != 0 || self.zeroed
    }
}

/// One level over drives, or over arrays.
struct Floor<'a> {
    geometry: &'a Geometry,
    /// The drive that is its first member.
    first: u16,
    members: u16,
}

impl Floor<'_> {
    /// What a drive's sector holds of this level's array.
    fn holds(&self, place: Place) -> Holds {
        let member = MemberIndex(place.member.0 - self.first);
        self.geometry.holds(Place { member, ..place })
    }

    /// The same sector of all other members: a stripe has its chunks at one address on all of them.
    fn others(&self, place: Place) -> impl Iterator<Item = Place> {
        let all = self.first..self.first + self.members;
        all.filter(move |n| *n != place.member.0)
            .map(move |n| Place { member: MemberIndex(n), ..place })
    }
}

/// What a sector of a member of one level should hold, where `content` gives a sector of its array; false there when
/// that is not known.
fn expected(
    floor: &Floor<'_>,
    place: Place,
    content: &dyn Fn(Sector, &mut [u8; SECTOR]) -> bool,
    into: &mut [u8; SECTOR],
) -> Expected {
    match floor.holds(place) {
        Holds::Data { at, copy } if content(at, into) => {
            Expected::Bytes(Holding::Data { copy }, Some(at))
        }
        Holds::P { stripe } if put_parity(floor, place, None, content, into) => {
            Expected::Bytes(Holding::Parity { stripe }, None)
        }
        Holds::Q { stripe } if put_parity(floor, place, Some(stripe), content, into) => {
            Expected::Bytes(Holding::Q { stripe }, None)
        }
        _ => Expected::Unknown,
    }
}

/// P, or Q for the stripe given, of what the other members of the stripe hold. False when some of it is not known.
fn put_parity(
    floor: &Floor<'_>,
    place: Place,
    q_of: Option<u64>,
    content: &dyn Fn(Sector, &mut [u8; SECTOR]) -> bool,
    into: &mut [u8; SECTOR],
) -> bool {
    let (mut data, mut exponents) = (Vec::new(), Vec::new());
    for other in floor.others(place) {
        let Holds::Data { at, .. } = floor.holds(other) else { continue };
        let mut sector = [0; SECTOR];
        if !content(at, &mut sector) {
            return false;
        }
        data.push(sector);
        if let (Some(stripe), Geometry::Parity(parity)) = (q_of, floor.geometry) {
            exponents.push(parity.q_exponent(stripe, parity.stripe_place(at).chunk));
        }
    }
    let data: Vec<&[u8]> = data.iter().map(<[u8; SECTOR]>::as_slice).collect();
    into.fill(0);
    let computed = match q_of {
        None => raidlab_parity::xor(into, &data),
        Some(_) => raidlab_parity::pq(None, Some(into), &data, &exponents),
    };
    // A geometry with coefficients that cannot be is reported as a difference from zeroes.
    debug_assert_eq!(computed, Ok(()));
    true
}
