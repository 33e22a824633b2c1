//! raidlab's writes: all sorts of ranges, alone and many at once.

use raidlab_core::contract::{IoOp, Outcome, Segment};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Sector, Sectors};
use raidlab_engine::{Engine, Recorded};

use super::arrays::TestArray;
use super::content::fill;
use crate::common::Random;

/// Every write is whole blocks of this many bytes, as from a filesystem.
const BLOCK: u64 = 4096;
/// Writes one after the other.
const ALONE: u64 = 60;
/// Rounds of writes at once, and how many at most in each.
const ROUNDS: u64 = 8;
const AT_ONCE: usize = 8;

/// How the writes made one after the other went, by the member I/Os they led to. Levels without parity
/// count as `without_p`.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Nothing was read, P was written.
    pub(crate) full_stripe: u32,
    /// Data were read, but no P.
    pub(crate) reconstruct: u32,
    /// P was read.
    pub(crate) modify: u32,
    /// Nothing was read, no P was written.
    pub(crate) without_p: u32,
}

/// Writes into the array, in `model` too, and flushes; another mixture for every `seed`. The engine's
/// record is on.
pub(crate) fn write_mixture(
    engine: &mut Engine,
    array: &TestArray,
    model: &mut [u8],
    seed: u64,
) -> Tally {
    // Not by its number: a sample makes the same mixtures as a run of everything.
    let members = u64::from(array.layout.members);
    let mut random = Random((0x6d64 + members) << 16 | seed);
    let geometry = array.geometry();
    let mut tally = Tally::default();
    for write in 1..=ALONE {
        let (at, len) = range(&mut random, array, write);
        let bytes = &mut model[at as usize..(at + len) as usize];
        fill(array, bytes, at, write);
        let seen = engine.recorded().len();
        let done = engine.write_at(Sector(at / 512), bytes);
        done.unwrap_or_else(|error| panic!("{array}, write {write}, {len} bytes: {error}"));
        tally.count(&geometry, &engine.recorded()[seen..]);
    }
    for round in 0..ROUNDS {
        let first = ALONE + 1 + round * AT_ONCE as u64;
        write_at_once(engine, array, model, &mut random, first);
    }
    engine.flush().unwrap_or_else(|error| panic!("{array}: {error}"));
    tally
}

/// Several writes at once that do not overlap, most of them in the same stripes.
fn write_at_once(
    engine: &mut Engine,
    array: &TestArray,
    model: &mut [u8],
    random: &mut Random,
    first: u64,
) {
    let row = row(array);
    let base = random.below(array.capacity() / row) * row;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for _ in 0..AT_ONCE {
        let at = base + random.below(row / BLOCK) * BLOCK;
        let len = (1 + random.below(24)) * BLOCK;
        let end = (at + len).min(array.capacity());
        if ranges.iter().all(|(from, to)| end <= *from || *to <= at) {
            ranges.push((at, end));
        }
    }
    let mut tokens = Vec::new();
    for ((at, end), write) in ranges.iter().zip(first..) {
        let bytes = &mut model[*at as usize..*end as usize];
        fill(array, bytes, *at, write);
        let token = engine.allocate(end - at).expect("there is memory");
        engine.bytes_mut(token).expect("the buffer is free").copy_from_slice(bytes);
        let segment = Segment { token, offset: 0, len: ((end - at) / 512) as u32 };
        engine.submit(IoOp::Write, Sector(at / 512), &[segment], false).expect("accepted");
        tokens.push(token);
    }
    let mut replies = Vec::new();
    engine.run_until_idle(&mut replies).unwrap_or_else(|error| panic!("{array}: {error}"));
    assert_eq!(replies.len(), ranges.len(), "{array}: writes {ranges:?}");
    for reply in replies {
        assert_eq!(reply.outcome, Outcome::Done, "{array}: writes {ranges:?}");
    }
    for token in tokens {
        engine.release(token).expect("the buffer is free");
    }
}

/// Bytes of data in one row of chunks; of no meaning to the array where it has no chunks.
fn row(array: &TestArray) -> u64 {
    match array.geometry() {
        Geometry::Parity(parity) => Sectors(parity.stripe_sectors()).bytes(),
        Geometry::Raid0(_) | Geometry::Raid10(_) => {
            array.layout.chunk.bytes() * u64::from(array.layout.members)
        }
        Geometry::Linear(_) | Geometry::Mirror(_) | Geometry::Raid3(_) | Geometry::Nested(_) => {
            256 << 10
        }
    }
}

/// Start and length of a write in bytes. The first go to both ends of the array; a tenth of the others is
/// whole rows, a twentieth rows but for the last chunk.
fn range(random: &mut Random, array: &TestArray, write: u64) -> (u64, u64) {
    let (capacity, row) = (array.capacity(), row(array));
    let mut blocks = |most: u64| (1 + random.below(most / BLOCK)) * BLOCK;
    let all_but_one = write % 20 == 9;
    let len = match write % 10 {
        0 => row,
        9 if all_but_one => row - array.layout.chunk.bytes(),
        1..=5 => blocks(32 << 10),
        6 | 7 => blocks(row / 2),
        8 => array.layout.chunk.bytes().max(64 << 10),
        _ => blocks(2 * row),
    };
    let len = len.min(capacity / 2);
    let at = match write {
        1 => 0,
        2 => capacity - len,
        _ if write.is_multiple_of(10) || all_but_one => random.below(capacity / row) * row,
        _ => random.below((capacity - len) / BLOCK + 1) * BLOCK,
    };
    (at, len)
}

impl Tally {
    fn count(&mut self, geometry: &Geometry, ios: &[Recorded]) {
        let is_p = |io: &&Recorded| {
            let place = Place { member: io.member, at: io.at };
            matches!(geometry.holds(place), Holds::P { .. })
        };
        let reads = || ios.iter().filter(|io| io.op == IoOp::Read);
        let kind = if reads().any(|io| is_p(&io)) {
            &mut self.modify
        } else if reads().next().is_some() {
            &mut self.reconstruct
        } else if ios.iter().any(|io| is_p(&io)) {
            &mut self.full_stripe
        } else {
            &mut self.without_p
        };
        *kind += 1;
    }
}
