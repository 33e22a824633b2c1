//! Address maths: both directions against each other, and against tables written out by hand.

use std::collections::BTreeMap;

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};

fn place(member: u16, at: u64) -> Place {
    Place { member: MemberIndex(member), at: Sector(at) }
}

/// Every array sector has exactly its copies, no two share a place, parity lies on no data, the
/// inverse equals forward, and what a member is said to use is what is used.
fn is_a_bijection(layout: &Layout, sizes: &[u64]) {
    let sizes: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
    let geometry = Geometry::new(layout, &sizes).expect("possible");
    let context = format!("{layout:?} over {sizes:?}");
    let mut taken = BTreeMap::new();
    for at in (0..geometry.capacity().0).map(Sector) {
        let run = geometry.run(at).0;
        assert!(run > 0 && at.0 + run <= geometry.capacity().0, "{context}: run at {at}");
        for copy in 0..geometry.copies() {
            let found = geometry.place(at, copy);
            assert!(found.at.0 < geometry.used(found.member).0, "{context}: {at} beyond use");
            assert!(found.at.0 < sizes[found.member.at()].0, "{context}: {at} beyond member");
            assert_eq!(geometry.holds(found), Holds::Data { at, copy }, "{context}");
            assert_eq!(taken.insert(found, at), None, "{context}: {found:?} taken twice");
            if run > 1 {
                let next = geometry.place(Sector(at.0 + 1), copy);
                assert_eq!(next, Place { at: Sector(found.at.0 + 1), ..found }, "{context}");
            }
        }
    }
    let mut parity = BTreeMap::new();
    for (member, size) in sizes.iter().enumerate() {
        let used = geometry.used(MemberIndex(member as u16)).0;
        for at in 0..size.0 {
            let here = place(member as u16, at);
            match geometry.holds(here) {
                Holds::Data { .. } => assert!(taken.contains_key(&here), "{context}: {here:?}"),
                Holds::P { stripe } => {
                    *parity.entry(stripe).or_insert(0) += 1;
                    assert!(!taken.contains_key(&here), "{context}: P on data at {here:?}");
                }
                Holds::Nothing => assert!(!taken.contains_key(&here) && at >= used, "{context}"),
            }
        }
    }
    assert!(parity.values().all(|count| *count == layout.chunk.0), "{context}: one P a stripe");
}

#[test]
fn both_directions_agree_for_every_level() {
    for level in Level::ALL {
        for members in level.fewest_members()..=16 {
            for chunk in [1, 4, 16] {
                let layout = Layout::new(level, members);
                let sizes: Vec<u64> = vec![64 + 13; usize::from(members)];
                if !level.has_chunks() {
                    is_a_bijection(&layout, &sizes);
                    continue;
                }
                let layout = layout.with_chunk(Sectors(chunk));
                is_a_bijection(&layout, &sizes);
                let most_copies = if level == Level::Raid10 { members } else { 2 };
                for near in 3..=most_copies {
                    is_a_bijection(&layout.clone().with_near(near), &sizes);
                }
            }
        }
    }
}

#[test]
fn members_of_different_sizes() {
    for sizes in [&[100, 40, 70][..], &[40, 100, 70, 41], &[8, 8, 200, 9], &[9, 200]] {
        for chunk in [1, 3, 8] {
            let members = sizes.len() as u16;
            let raid0 = Layout::new(Level::Raid0, members).with_chunk(Sectors(chunk));
            is_a_bijection(&raid0, sizes);
            is_a_bijection(&Layout::new(Level::Linear, members).with_chunk(Sectors(chunk)), sizes);
            is_a_bijection(&Layout::new(Level::Linear, members), sizes);
            let raid10 = Layout::new(Level::Raid10, members).with_chunk(Sectors(8));
            is_a_bijection(&raid10, sizes);
        }
    }
}

/// The chunk map as text: a row of all members at a time, P or the number of a chunk.
fn map(layout: &Layout, rows: u64) -> String {
    let sizes = vec![Sectors(rows * layout.chunk.0); usize::from(layout.members)];
    let geometry = Geometry::new(layout, &sizes).expect("possible");
    let cell = |member, row| match geometry.holds(place(member, row * layout.chunk.0)) {
        Holds::Data { at, .. } => format!("{}", at.0 / layout.chunk.0),
        Holds::P { .. } => "P".into(),
        Holds::Nothing => "-".into(),
    };
    let row = |row| (0..layout.members).map(|m| cell(m, row)).collect::<Vec<_>>().join(" ");
    (0..rows).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn tables_written_out_by_hand() {
    let chunk = Sectors(8);
    let raid5 = |n| Layout::new(Level::Raid5, n).with_chunk(chunk);
    assert_eq!(map(&raid5(4), 5), "0 1 2 P\n4 5 P 3\n8 P 6 7\nP 9 10 11\n12 13 14 P");
    assert_eq!(map(&raid5(3), 3), "0 1 P\n3 P 2\nP 4 5");
    let raid0 = Layout::new(Level::Raid0, 3).with_chunk(chunk);
    assert_eq!(map(&raid0, 2), "0 1 2\n3 4 5");
    let raid10 = |n, near| Layout::new(Level::Raid10, n).with_chunk(chunk).with_near(near);
    assert_eq!(map(&raid10(4, 2), 2), "0 0 1 1\n2 2 3 3");
    assert_eq!(map(&raid10(3, 2), 3), "0 0 1\n1 2 2\n3 3 -", "no room for both copies of 4");
}

#[test]
fn unequal_raid0_members_make_zones() {
    // Chunk 8; members of 2, 4 and 3 chunks. Zone 0: 2 rows of 3; zone 1: members 1 and 2, one row;
    // zone 2: member 1. Within a zone the array's chunk number chooses ("original").
    let layout = Layout::new(Level::Raid0, 3).with_chunk(Sectors(8));
    let sizes = [Sectors(16), Sectors(33), Sectors(24)];
    let geometry = Geometry::new(&layout, &sizes).expect("possible");
    assert_eq!(geometry.capacity(), Sectors(72));
    let expected = [(0, 0), (1, 0), (2, 0), (0, 8), (1, 8), (2, 8), (1, 16), (2, 16), (1, 24)];
    for (chunk, (member, at)) in expected.into_iter().enumerate() {
        assert_eq!(geometry.place(Sector(chunk as u64 * 8), 0), place(member, at), "chunk {chunk}");
    }
}

#[test]
fn impossible_layouts_are_named() {
    let check = |layout: Layout, key: &str| {
        assert_eq!(layout.check().expect_err("impossible").key, key, "{layout:?}");
    };
    check(Layout::new(Level::Raid5, 2), "members");
    check(Layout::new(Level::Raid1, 1), "members");
    check(Layout::new(Level::Raid0, 129), "members");
    check(Layout::new(Level::Raid5, 4).with_chunk(Sectors(3)), "chunk");
    check(Layout::new(Level::Raid0, 4).with_chunk(Sectors(0)), "chunk");
    check(Layout::new(Level::Raid1, 2).with_chunk(Sectors(8)), "chunk");
    check(Layout::new(Level::Raid10, 4).with_near(1), "near");
    check(Layout::new(Level::Raid10, 4).with_near(5), "near");
    let small = Geometry::new(&Layout::new(Level::Raid0, 2), &[Sectors(2048), Sectors(100)]);
    assert!(small.expect_err("too small").reason.contains("member 1"));
    let few = Geometry::new(&Layout::new(Level::Raid0, 2), &[Sectors(2048)]);
    assert_eq!(few.expect_err("too few").key, "members");
    assert!("left-symetric".parse::<raidlab_core::Rotation>().is_err());
    assert!("raid7".parse::<Level>().is_err());
}

#[test]
fn names_say_what_differs() {
    for (layout, name) in [
        (Layout::new(Level::Linear, 1), "single"),
        (Layout::new(Level::Linear, 4), "linear(4)"),
        (Layout::new(Level::Raid5, 4), "raid5(4)"),
        (Layout::new(Level::Raid5, 4).with_chunk(Sectors(128)), "raid5(4) chunk=64K"),
        (Layout::new(Level::Raid10, 6).with_near(3), "raid10(6) near3"),
    ] {
        assert_eq!(layout.to_string(), name);
    }
}
