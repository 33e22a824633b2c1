//! What members should hold, and all of them checked against it.
//!
//! Everything that is known is read and compared, byte for byte; only what no write has reached, of which nothing is
//! known, is passed over. Members are read side by side, so that one is checked while another is read; what lies
//! together in blocks of 4 KiB is compared as blocks, anything else sector by sector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector};
use raidlab_engine::{EngineError, Holding, Member};

use super::pattern::{self, BLOCK};

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
    /// The last write of each block of the array.
    pub(super) versions: &'a [u32],
    /// What was never written holds zeroes.
    pub(super) zeroed: bool,
}

/// Reads what is known of every member up to its end and compares it: the first wrong sector of each.
///
/// # Errors
/// When a member cannot be read, or `cancel` was set.
pub(super) fn sweep(
    members: &mut [Member],
    ends: &[u64],
    known: &Known<'_>,
    cancel: &AtomicBool,
) -> Result<Vec<Place>, EngineError> {
    let all = (0..).map(MemberIndex).zip(members).zip(ends.iter().copied());
    let mut shares: Vec<Vec<_>> = Vec::new();
    for (n, ((index, member), end)) in all.filter(|(_, end)| *end > 0).enumerate() {
        match shares.get_mut(n % SIDE_BY_SIDE) {
            Some(share) => share.push((index, member, end)),
            None => shares.push(vec![(index, member, end)]),
        }
    }
    let check = |share: Vec<(MemberIndex, &mut Member, u64)>| {
        let mut found = Vec::new();
        for (index, member, end) in share {
            found.extend(known.first_wrong(index, member, end, cancel)?);
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
    found.sort_by_key(|place| place.member);
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
    /// The first sector of a member, below `end`, that does not hold what it should.
    fn first_wrong(
        &self,
        index: MemberIndex,
        member: &mut Member,
        end: u64,
        cancel: &AtomicBool,
    ) -> Result<Option<Place>, EngineError> {
        let mut memory = vec![0; RUN as usize * SECTOR + ALIGNMENT];
        let skip = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let mut blocks = Blocks::default();
        for at in (0..end).step_by(RUN as usize) {
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled("verify the members"));
            }
            let run = RUN.min(end - at);
            if !(at..at + run).any(|sector| self.is_known(index, sector)) {
                continue;
            }
            let bytes = &mut memory[skip..skip + run as usize * SECTOR];
            member.read_direct(Sector(at), bytes)?;
            if let Some(sector) = self.wrong_in(index, at, bytes, &mut blocks) {
                return Ok(Some(Place { member: index, at: Sector(sector) }));
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
            Holds::P { .. } => Some(self.is_parity_right(place, None, own, blocks)?),
            Holds::Q { stripe } => Some(self.is_parity_right(place, Some(stripe), own, blocks)?),
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
        let Geometry::Parity(parity) = &self.geometry else { return None };
        let mut count = 0;
        blocks.exponents.clear();
        for n in (0..self.members).filter(|n| *n != place.member.0) {
            let other = Place { member: MemberIndex(n), at: place.at };
            if !matches!(self.geometry.holds(other), Holds::Data { .. }) {
                continue;
            }
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
                blocks.exponents.push(parity.q_exponent(stripe, parity.stripe_place(at).chunk));
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
        self.versions.get((at.bytes() / BLOCK) as usize).copied().unwrap_or(0)
    }

    /// Whether anything may be known of a sector of a member.
    fn is_known(&self, member: MemberIndex, at: u64) -> bool {
        if self.zeroed {
            return true;
        }
        match self.geometry.holds(Place { member, at: Sector(at) }) {
            Holds::Data { at, .. } => self.version(at) != 0,
            // Known when all data of its stripe are, and so is then each of them.
            Holds::P { .. } | Holds::Q { .. } => {
                let others = (0..self.members).filter(|n| *n != member.0).map(MemberIndex);
                others.map(|member| Place { member, at: Sector(at) }).any(|other| {
                    matches!(self.geometry.holds(other), Holds::Data { at, .. } if self.version(at) != 0)
                })
            }
            Holds::Nothing => false,
        }
    }

    /// What a sector of a member should hold.
    pub(super) fn sector(&self, place: Place, into: &mut [u8; SECTOR]) -> Expected {
        match self.geometry.holds(place) {
            Holds::Data { at, copy } if self.put_pattern(at, into) => {
                Expected::Bytes(Holding::Data { copy }, Some(at))
            }
            Holds::P { stripe } if self.put_parity(place, None, into) => {
                Expected::Bytes(Holding::Parity { stripe }, None)
            }
            Holds::Q { stripe } if self.put_parity(place, Some(stripe), into) => {
                Expected::Bytes(Holding::Q { stripe }, None)
            }
            _ => Expected::Unknown,
        }
    }

    /// The pattern of a sector of the array; false when it is not known.
    fn put_pattern(&self, at: Sector, into: &mut [u8; SECTOR]) -> bool {
        let version = self.version(at);
        pattern::fill(at.bytes(), version, into);
        version != 0 || self.zeroed
    }

    /// P, or Q for the stripe given, of the patterns of the stripe's data at the same place of the other
    /// members: a stripe has its chunks at one address on all members. False when some of it is not known.
    fn put_parity(&self, place: Place, q_of: Option<u64>, into: &mut [u8; SECTOR]) -> bool {
        let (mut data, mut exponents) = (Vec::new(), Vec::new());
        for n in (0..self.members).filter(|n| *n != place.member.0) {
            let other = Place { member: MemberIndex(n), at: place.at };
            let Holds::Data { at, .. } = self.geometry.holds(other) else { continue };
            let mut sector = [0; SECTOR];
            if !self.put_pattern(at, &mut sector) {
                return false;
            }
            data.push(sector);
            if let (Some(stripe), Geometry::Parity(parity)) = (q_of, &self.geometry) {
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
}
