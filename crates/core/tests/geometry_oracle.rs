//! Address maths against a second, naive author: arrays laid out chunk by chunk into a grid, with
//! nothing but counting on, lists and rotated rows, for shapes drawn at random.

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, MemberIndex, Rotation, Sector, Sectors};
use raidlab_random::SplitMix64;

/// What each chunk of each member holds: a chunk of the array and which copy of it.
type Grid = Vec<Vec<Option<(u64, u16)>>>;

/// The sets of members within which far copies move.
fn far_sets(layout: &Layout) -> Vec<Vec<usize>> {
    let mut members: Vec<usize> = (0..usize::from(layout.members)).collect();
    if layout.far_sets == 0 {
        return vec![members];
    }
    let size = usize::from(layout.near * layout.far);
    let mut sets = Vec::new();
    while members.len() >= 2 * size {
        sets.push(members.drain(..size).collect());
    }
    sets.push(members);
    sets
}

/// raid10 as its definition reads: deal copies to members in turn, and put the far copies of each
/// on members further on in its set, a stride further down each time.
fn raid10_grid(layout: &Layout, chunks_of_member: u64) -> (Grid, u64) {
    let (n, near, far) = (u64::from(layout.members), u64::from(layout.near), u64::from(layout.far));
    let size = chunks_of_member / far * n / near;
    let used = (size * near * far).div_ceil(n);
    let stride = if layout.offset { 1 } else { used / far };
    let sets = far_sets(layout);
    let mut grid = vec![vec![None; chunks_of_member as usize]; n as usize];
    let (mut member, mut row) = (0, 0);
    for chunk in 0..size {
        let mut copy = 0;
        for _ in 0..near {
            let set = sets.iter().find(|set| set.contains(&member)).expect("in a set");
            let onwards = set.iter().cycle().skip_while(|other| **other != member);
            let mut at = row;
            for on in onwards.step_by(usize::from(layout.near)).take(usize::from(layout.far)) {
                let cell: &mut Option<_> = &mut grid[*on][at as usize];
                assert_eq!(*cell, None, "{layout:?}: {chunk} and {cell:?} on one place");
                *cell = Some((chunk, copy));
                at += stride;
                copy += 1;
            }
            member += 1;
            if member == n as usize {
                member = 0;
                row += if layout.offset { far } else { 1 };
            }
        }
    }
    (grid, size)
}

#[test]
fn raid10_as_a_grid() {
    let mut random = SplitMix64::new(1);
    let mut kinds = std::collections::BTreeMap::new();
    let mut tried = 0;
    while tried < 2000 {
        let members = 2 + random.below(30) as u16;
        let near = 1 + random.below(4) as u16;
        let far = 1 + random.below(5) as u16;
        let sets = 2 * random.below(2) as u16;
        let layout = Layout::new(Level::Raid10, members).with_far(far).with_near(near);
        let layout = layout.with_offset(random.below(2) == 1).with_far_sets(sets);
        let layout = layout.with_chunk(Sectors(1 << random.below(5)));
        if layout.check().is_err() {
            continue;
        }
        tried += 1;
        *kinds.entry((near > 1, far > 1, layout.offset, sets)).or_insert(0) += 1;
        let chunk = layout.chunk.0;
        let rows = u64::from(far) + random.below(20);
        let (grid, size) = raid10_grid(&layout, rows);
        let sectors = vec![Sectors(rows * chunk + random.below(chunk)); usize::from(members)];
        let geometry = Geometry::new(&layout, &sectors).expect("possible");
        assert_eq!(geometry.capacity().0, size * chunk, "{layout:?}");
        for (member, column) in grid.iter().enumerate() {
            for (row, cell) in column.iter().enumerate() {
                let offset = random.below(chunk);
                let at = Sector(row as u64 * chunk + offset);
                let place = Place { member: MemberIndex(member as u16), at };
                let expected = cell.map_or(Holds::Nothing, |(number, copy)| {
                    let at = Sector(number * chunk + offset);
                    assert_eq!(geometry.place(at, copy), place, "{layout:?}: {at} copy {copy}");
                    Holds::Data { at, copy }
                });
                assert_eq!(geometry.holds(place), expected, "{layout:?}: {place:?}");
            }
        }
    }
    // near; far, offset, with sets or not, of one or several near copies.
    assert_eq!(kinds.len(), 9, "{kinds:?}");
}

/// What a member has in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Empty,
    P,
    Q,
    Data(u16),
}

/// A stripe, by rotating a first one, and whether data start behind the parities or at member 0.
fn rotated(first: &[Cell], stripe: usize, left: bool, symmetric: bool) -> Vec<Cell> {
    let mut row = first.to_vec();
    let step = stripe % row.len();
    if left {
        row.rotate_left(step);
    } else {
        row.rotate_right(step);
    }
    let n = row.len();
    // The last of a run of parities that may wrap around the end.
    let last = (0..n).find(|i| row[*i] != Cell::Empty && row[(i + 1) % n] == Cell::Empty);
    let start = if symmetric { last.expect("parity and data") + 1 } else { 0 };
    let mut next = 0;
    for i in start..start + n {
        if row[i % n] == Cell::Empty {
            row[i % n] = Cell::Data(next);
            next += 1;
        }
    }
    row
}

/// A stripe of raid5 or raid6.
fn stripe(level: Level, rotation: Rotation, n: usize, stripe: usize) -> Vec<Cell> {
    use Rotation::*;
    let five = match rotation {
        LeftAsymmetric6 => Some(LeftAsymmetric),
        RightAsymmetric6 => Some(RightAsymmetric),
        LeftSymmetric6 => Some(LeftSymmetric),
        RightSymmetric6 => Some(RightSymmetric),
        ParityFirst6 => Some(ParityFirst),
        _ => None,
    };
    if let Some(five) = five {
        let mut row = self::stripe(Level::Raid5, five, n - 1, stripe);
        row.push(Cell::Q);
        return row;
    }
    let (left, symmetric, fixed) = match rotation {
        LeftAsymmetric | RotatingNRestart => (true, false, false),
        RightAsymmetric | RotatingZeroRestart => (false, false, false),
        LeftSymmetric | RotatingNContinue => (true, true, false),
        RightSymmetric => (false, true, false),
        _ => (false, false, true),
    };
    let mut first = vec![Cell::Empty; n];
    let p = match rotation {
        LeftAsymmetric | LeftSymmetric | RotatingNContinue => n - 1,
        RotatingNRestart => n - 2,
        ParityLast if level == Level::Raid6 => n - 2,
        ParityLast => n - 1,
        _ => 0,
    };
    first[p] = Cell::P;
    if level == Level::Raid6 {
        let q = if rotation == RotatingNContinue { p - 1 } else { p + 1 };
        first[q % n] = Cell::Q;
    }
    rotated(&first, if fixed { 0 } else { stripe }, left, symmetric)
}

/// The powers of g, by member; those of P and Q mean nothing.
fn powers(rotation: Rotation, row: &[Cell]) -> Vec<u8> {
    if matches!(rotation.md_number(), 8..=10) {
        return (0..row.len() as u8).collect();
    }
    let q = row.iter().position(|cell| *cell == Cell::Q).expect("raid6 has Q");
    let mut powers = vec![0; row.len()];
    let mut next = 0;
    for i in q + 1..q + row.len() {
        if matches!(row[i % row.len()], Cell::Data(_)) {
            powers[i % row.len()] = next;
            next += 1;
        }
    }
    powers
}

#[test]
fn rotations_as_rotated_rows() {
    let mut random = SplitMix64::new(2);
    for level in [Level::Raid5, Level::Raid6] {
        for rotation in level.rotations() {
            for members in (level.fewest_members()..=17).chain([32, 127, 128]) {
                let chunk = 1 << random.below(6);
                let layout = Layout::new(level, members).with_chunk(Sectors(chunk));
                let layout = layout.with_rotation(*rotation);
                let stripes = 3 * u64::from(members) + random.below(5);
                let sizes = vec![Sectors(stripes * chunk); usize::from(members)];
                let geometry = Geometry::new(&layout, &sizes).expect("possible");
                let Geometry::Parity(parity) = &geometry else { panic!("parity") };
                for at in 0..stripes {
                    let row = stripe(level, *rotation, usize::from(members), at as usize);
                    let has_q = level == Level::Raid6;
                    let powers = if has_q { powers(*rotation, &row) } else { Vec::new() };
                    for (member, cell) in row.iter().enumerate() {
                        let context = format!("{layout:?}, stripe {at}, member {member}");
                        let index = MemberIndex(member as u16);
                        match cell {
                            Cell::P => assert_eq!(parity.p_member(at), index, "{context}"),
                            Cell::Q => assert_eq!(parity.q_member(at), Some(index), "{context}"),
                            Cell::Data(k) => {
                                assert_eq!(parity.data_member(at, *k), index, "{context}");
                                let power = powers.get(member).copied().unwrap_or(0);
                                assert_eq!(parity.q_exponent(at, *k), power, "{context}");
                            }
                            Cell::Empty => panic!("{context}: the oracle left a hole"),
                        }
                    }
                }
            }
        }
    }
}

/// raid0 as a grid: rows of chunks, each dealt to the members that reach so far. In the alternate order a row begins
/// with the first of them; in the original one a chunk's own number says whose turn it is.
#[test]
fn raid0_of_any_sizes_as_a_grid() {
    let mut random = SplitMix64::new(3);
    let mut zones_that_differ = 0;
    for _ in 0..2000 {
        let members = 2 + random.below(9) as usize;
        let chunk = 1 + random.below(9);
        let rows: Vec<u64> = (0..members).map(|_| 1 + random.below(12)).collect();
        let sizes: Vec<Sectors> =
            rows.iter().map(|count| Sectors(count * chunk + random.below(chunk))).collect();
        let raid0 = Layout::new(Level::Raid0, members as u16).with_chunk(Sectors(chunk));
        for order in ZoneOrder::ALL {
            let geometry =
                Geometry::new(&raid0.clone().with_zones(order), &sizes).expect("possible");
            let mut first = 0;
            for row in 0..*rows.iter().max().expect("members") {
                let reach: Vec<usize> = (0..members).filter(|m| rows[*m] > row).collect();
                let count = reach.len() as u64;
                for number in first..first + count {
                    let index = match order {
                        ZoneOrder::Original => number % count,
                        ZoneOrder::Alternate => number - first,
                    };
                    zones_that_differ += u64::from(index != number - first);
                    let at = row * chunk;
                    let member = MemberIndex(reach[index as usize] as u16);
                    let found = geometry.place(Sector(number * chunk), 0);
                    let expected = Place { member, at: Sector(at) };
                    assert_eq!(found, expected, "{order:?}, {rows:?} chunks: chunk {number}");
                }
                first += count;
            }
            assert_eq!(geometry.capacity(), Sectors(first * chunk));
        }
    }
    assert!(zones_that_differ > 1000, "{zones_that_differ}");
}
