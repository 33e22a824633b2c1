//! Address maths: both directions against each other, for every level and layout, exhaustively.

use raidlab_core::geometry::{Geometry, Holds, Parity, Place};
use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, MemberIndex, Rotation, Sector, Sectors};

fn place(member: usize, at: u64) -> Place {
    Place { member: MemberIndex(member as u16), at: Sector(at) }
}

/// The size of an array, from the sizes of its members.
fn expected_capacity(layout: &Layout, sizes: &[u64], block: u64) -> u64 {
    let n = u64::from(layout.members);
    let chunk = layout.chunk.0;
    let smallest = *sizes.iter().min().expect("members");
    let whole = |size: u64, piece: u64| size - size % piece;
    match layout.level {
        Level::Linear => sizes.iter().map(|size| whole(*size, chunk.max(1))).sum(),
        Level::Raid0 => sizes.iter().map(|size| whole(*size, chunk)).sum(),
        Level::Raid1 => smallest,
        Level::Raid3 => (n - 1) * whole(smallest, block),
        Level::Raid4 | Level::Raid5 => (n - 1) * whole(smallest, chunk),
        Level::Raid6 => (n - 2) * whole(smallest, chunk),
        Level::Raid10 => {
            let rows = smallest / chunk / u64::from(layout.far);
            rows * n / u64::from(layout.near) * chunk
        }
    }
}

fn expected_copies(layout: &Layout) -> u16 {
    match layout.level {
        Level::Raid1 => layout.members,
        Level::Raid10 => layout.near * layout.far,
        _ => 1,
    }
}

/// Parity chunks a stripe.
fn expected_parities(layout: &Layout) -> u16 {
    match layout.level {
        Level::Raid3 | Level::Raid4 | Level::Raid5 => 1,
        Level::Raid6 => 2,
        _ => 0,
    }
}

/// Every array sector has exactly its copies on different members, no two share a place, a run lies
/// in one piece, and the inverse equals forward. Gives which sectors of each member are taken.
fn forward(geometry: &Geometry, sizes: &[u64], copies: u16, context: &str) -> Vec<Vec<bool>> {
    let mut taken: Vec<Vec<bool>> = sizes.iter().map(|size| vec![false; *size as usize]).collect();
    let capacity = geometry.capacity().0;
    assert_eq!(geometry.copies(), copies, "{context}");
    for at in (0..capacity).map(Sector) {
        let run = geometry.run(at).0;
        assert!(run > 0 && at.0 + run <= capacity, "{context}: run at {at}");
        let mut on = 0_u128;
        for copy in 0..copies {
            let found = geometry.place(at, copy);
            assert!(found.at.0 < geometry.used(found.member).0, "{context}: {at} beyond use");
            assert_eq!(geometry.holds(found), Holds::Data { at, copy }, "{context}: {found:?}");
            let cell = &mut taken[found.member.at()][found.at.0 as usize];
            assert!(!*cell, "{context}: {found:?} taken twice");
            *cell = true;
            on |= 1 << found.member.0;
            if run > 1 {
                let next = geometry.place(Sector(at.0 + 1), copy);
                assert_eq!(next, Place { at: Sector(found.at.0 + 1), ..found }, "{context}");
            }
        }
        assert_eq!(on.count_ones(), u32::from(copies), "{context}: {at} twice on a member");
    }
    taken
}

/// What the inverse says of every sector of every member: data exactly where they were put, parity
/// never on data, each stripe with its P and Q at the same address, and use as it is stated.
fn inverse(layout: &Layout, geometry: &Geometry, taken: &[Vec<bool>], context: &str) {
    let longest = taken.iter().map(Vec::len).max().expect("members") as u64;
    for at in 0..longest {
        let (mut p, mut q) = (None, None);
        let mut data = 0;
        for (member, taken) in taken.iter().enumerate().filter(|(_, t)| at < t.len() as u64) {
            let used = geometry.used(MemberIndex(member as u16)).0;
            let holds = geometry.holds(place(member, at));
            let is_data = matches!(holds, Holds::Data { .. });
            assert_eq!(is_data, taken[at as usize], "{context}: member {member} at {at}");
            match holds {
                Holds::Data { .. } => data += 1,
                Holds::P { stripe } => assert_eq!(p.replace((member, stripe)), None, "{context}"),
                Holds::Q { stripe } => assert_eq!(q.replace((member, stripe)), None, "{context}"),
                Holds::Nothing => {
                    // Only the last, short row of far copies leaves holes below the use.
                    let hole = layout.level == Level::Raid10 && layout.far > 1;
                    assert!(at >= used || hole, "{context}: hole on {member} at {at}");
                }
            }
            assert!(at < used || holds == Holds::Nothing, "{context}: {member} at {at} unused");
            assert!(at + 1 != used || holds != Holds::Nothing, "{context}: use of {member}");
        }
        let expected = if data > 0 { expected_parities(layout) } else { 0 };
        assert_eq!(u16::from(p.is_some()) + u16::from(q.is_some()), expected, "{context}: {at}");
        assert_eq!(q.is_some(), expected == 2, "{context}: {at}");
        if let Geometry::Parity(parity) = geometry {
            stripe(parity, layout, at, p, q, context);
        }
    }
    let missing = geometry.holds(place(taken.len(), 0));
    assert_eq!(missing, Holds::Nothing, "{context}: a member that does not exist");
    assert_eq!(geometry.holds(place(0, u64::MAX / 4)), Holds::Nothing, "{context}: far beyond");
}

/// The view by stripe against the view by sector.
fn stripe(
    parity: &Parity,
    layout: &Layout,
    at: u64,
    p: Option<(usize, u64)>,
    q: Option<(usize, u64)>,
    context: &str,
) {
    let Some((p, stripe)) = p else { return };
    assert_eq!(stripe, at / layout.chunk.0, "{context}");
    assert_eq!(parity.member_start(stripe).0, stripe * layout.chunk.0, "{context}");
    assert_eq!(parity.p_member(stripe).at(), p, "{context}");
    assert_eq!(parity.q_member(stripe).map(MemberIndex::at), q.map(|q| q.0), "{context}");
    assert!(q.is_none_or(|q| q.1 == stripe), "{context}");
    assert_eq!(parity.parities() + parity.data_chunks(), layout.members, "{context}");
    let mut seen = vec![false; usize::from(layout.members)];
    seen[p] = true;
    if let Some((q, _)) = q {
        seen[q] = true;
    }
    let mut exponents = Vec::new();
    for chunk in 0..parity.data_chunks() {
        let member = parity.data_member(stripe, chunk).at();
        assert!(!std::mem::replace(&mut seen[member], true), "{context}: {member} twice");
        exponents.push(parity.q_exponent(stripe, chunk));
    }
    exponents.sort_unstable();
    exponents.dedup();
    let distinct = if q.is_some() { parity.data_chunks() } else { 1 };
    assert_eq!(exponents.len(), usize::from(distinct), "{context}: coefficients differ");
}

fn is_a_bijection(layout: &Layout, sizes: &[u64], block: u32) {
    let sectors: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
    let context = format!("{layout} {layout:?} over {sizes:?} in blocks of {block}");
    let geometry = Geometry::with_block(layout, &sectors, block).expect(&context);
    let capacity = expected_capacity(layout, sizes, u64::from(block));
    assert_eq!(geometry.capacity().0, capacity, "{context}");
    let taken = forward(&geometry, sizes, expected_copies(layout), &context);
    inverse(layout, &geometry, &taken, &context);
}

const CHUNKS: [u64; 3] = [1, 4, 16];

/// Members of one size: two periods of parity and a rest that fills no chunk.
fn equal(members: u16, chunks: u64, chunk: u64) -> Vec<u64> {
    vec![chunks * chunk + chunk / 2; usize::from(members)]
}

#[test]
fn levels_without_copies_and_mirrors() {
    for level in [Level::Linear, Level::Raid0, Level::Raid1, Level::Raid3] {
        for members in level.fewest_members()..=16 {
            let layout = Layout::new(level, members);
            if layout.check().is_err() {
                assert_eq!(level, Level::Raid3);
                continue;
            }
            if !level.has_chunks() {
                for (size, block) in [(77, 1), (77, 8), (64, 2)] {
                    is_a_bijection(&layout, &vec![size; usize::from(members)], block);
                }
                continue;
            }
            for chunk in CHUNKS {
                let layout = layout.clone().with_chunk(Sectors(chunk));
                is_a_bijection(&layout, &equal(members, 5, chunk), 1);
            }
        }
    }
}

#[test]
fn every_rotation_of_parity() {
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let rotations = match level.rotations() {
            [] => &[Rotation::LeftSymmetric],
            several => several,
        };
        for members in level.fewest_members()..=16 {
            for (rotation, chunk) in rotations.iter().flat_map(|r| CHUNKS.map(|c| (*r, c))) {
                let layout =
                    Layout::new(level, members).with_chunk(Sectors(chunk)).with_rotation(rotation);
                is_a_bijection(&layout, &equal(members, 2 * u64::from(members) + 1, chunk), 1);
            }
        }
    }
}

/// Every raid10 of so many members that [`Layout::check`] lets through.
fn raid10_layouts(members: u16) -> Vec<Layout> {
    let mut found = Vec::new();
    for near in 1..=members {
        for far in 1..=members / near {
            for (offset, sets) in [(false, 0), (true, 0), (false, 2), (true, 2)] {
                let layout = Layout::new(Level::Raid10, members).with_far(far).with_near(near);
                let layout = layout.with_offset(offset).with_far_sets(sets);
                if layout.check().is_ok() {
                    found.push(layout);
                }
            }
        }
    }
    found
}

#[test]
fn every_raid10() {
    let mut count = 0;
    for members in 2..=16 {
        for layout in raid10_layouts(members) {
            for chunk in CHUNKS {
                let layout = layout.clone().with_chunk(Sectors(chunk));
                // One row of slots, which need not reach every member, and enough to repeat.
                let far = u64::from(layout.far);
                for chunks in [far, far * u64::from(layout.near + 1) + 1] {
                    is_a_bijection(&layout, &equal(members, chunks, chunk), 1);
                }
                count += 1;
            }
        }
    }
    // near 2..=n; far and offset, sets or not, with 1 x far 2..=n: 5 kinds x (n - 1), and the mixed.
    assert!(count > 3 * 5 * 120, "{count}");
}

#[test]
fn members_of_different_sizes() {
    for sizes in [&[100, 40, 70][..], &[40, 100, 70, 41], &[16, 16, 200, 17], &[17, 200], &[99, 18]]
    {
        let members = sizes.len() as u16;
        for chunk in [1, 3, 8] {
            let raid0 = Layout::new(Level::Raid0, members).with_chunk(Sectors(chunk));
            is_a_bijection(&raid0, sizes, 1);
            is_a_bijection(&raid0.with_zones(ZoneOrder::Alternate), sizes, 1);
            let linear = Layout::new(Level::Linear, members);
            is_a_bijection(&linear, sizes, 1);
            is_a_bijection(&linear.with_chunk(Sectors(chunk)), sizes, 1);
        }
        // The others use the smallest.
        is_a_bijection(&Layout::new(Level::Raid1, members.max(2)), sizes, 1);
        let raid10 = Layout::new(Level::Raid10, members).with_chunk(Sectors(8));
        is_a_bijection(&raid10, sizes, 1);
        is_a_bijection(&raid10.with_far(2), sizes, 1);
        if members > 2 {
            let raid5 = Layout::new(Level::Raid5, members).with_chunk(Sectors(8));
            is_a_bijection(&raid5, sizes, 1);
        }
        if members == 3 {
            is_a_bijection(&Layout::new(Level::Raid3, 3), sizes, 4);
        }
    }
    is_a_bijection(&Layout::new(Level::Raid6, 4).with_chunk(Sectors(8)), &[40, 100, 70, 41], 1);
}

/// Sixteen members of every size from 3 chunks on make as many zones.
#[test]
fn many_zones() {
    for members in 2..=16_u64 {
        for chunk in [1, 5, 16] {
            let layout = Layout::new(Level::Raid0, members as u16).with_chunk(Sectors(chunk));
            // Neither rising nor falling, and with two alike.
            let sizes: Vec<u64> =
                (0..members).map(|i| (3 + i * 7 % members.max(3)) * chunk + i % chunk).collect();
            is_a_bijection(&layout, &sizes, 1);
            is_a_bijection(&layout.with_zones(ZoneOrder::Alternate), &sizes, 1);
        }
    }
}

#[test]
fn the_most_members() {
    let most = Layout::new(Level::Raid6, 128).with_chunk(Sectors(2));
    for rotation in [Rotation::LeftSymmetric, Rotation::RotatingNContinue] {
        is_a_bijection(&most.clone().with_rotation(rotation), &[260; 128], 1);
    }
    is_a_bijection(&Layout::new(Level::Raid3, 65), &[20; 65], 4);
    let raid10 = Layout::new(Level::Raid10, 127).with_chunk(Sectors(2));
    is_a_bijection(&raid10.clone().with_far(3).with_far_sets(2), &[20; 127], 1);
    is_a_bijection(&raid10.with_near(127), &[20; 127], 1);
}
