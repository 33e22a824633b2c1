//! Layouts: what cannot be is named with what can, and names say what differs from the default.

use std::collections::BTreeSet;

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, MemberIndex, Rotation, Sector, Sectors};

fn raid10(members: u16) -> Layout {
    Layout::new(Level::Raid10, members)
}

/// A layout, the parameter that is wrong, words of the reason.
type Impossible = (Layout, &'static str, &'static str);

fn impossible() -> Vec<Impossible> {
    use Level::*;
    let new = Layout::new;
    let ddf = Rotation::RotatingZeroRestart;
    vec![
        (new(Raid5, 2), "members", "raid5 needs at least 3 members, not 2"),
        (new(Raid6, 3), "members", "at least 4"),
        (new(Raid4, 1), "members", "at least 2"),
        (new(Raid1, 1), "members", "at least 2"),
        (new(Raid0, 0), "members", "at least 1"),
        (new(Raid0, 129), "members", "at most 128"),
        (new(Raid3, 2), "members", "at least 3"),
        (new(Raid3, 4), "members", "(3, 5, 9, 17, 33, 65), not 4"),
        (new(Raid3, 3).with_chunk(Sectors(8)), "chunk", "raid3 has no chunks"),
        (new(Raid1, 2).with_chunk(Sectors(8)), "chunk", "raid1 has no chunks"),
        (new(Raid0, 4).with_chunk(Sectors(0)), "chunk", "at least one sector"),
        (new(Raid0, 4).with_chunk(Sectors(1 << 31)), "chunk", "less than 1TiB"),
        (
            new(Raid4, 4).with_chunk(Sectors(6)),
            "chunk",
            "raid4 needs a chunk that is a power of two",
        ),
        (new(Raid5, 4).with_chunk(Sectors(6)), "chunk", "not 3KiB"),
        (new(Raid6, 4).with_chunk(Sectors(6)), "chunk", "not 3KiB"),
        (raid10(4).with_chunk(Sectors(6)), "chunk", "not 3KiB"),
        (
            new(Raid5, 4).with_rotation(ddf),
            "rotation",
            "raid5 has no ddf-zero-restart; possible: left-",
        ),
        (
            new(Raid5, 4).with_rotation(Rotation::ParityFirst6),
            "rotation",
            "parity-first, parity-last",
        ),
        (new(Raid4, 4).with_rotation(ddf), "rotation", "parity of raid4 does not rotate"),
        (new(Raid0, 4).with_rotation(ddf), "rotation", "leave ddf-zero-restart out"),
    ]
}

fn impossible_copies() -> Vec<Impossible> {
    use Level::*;
    let new = Layout::new;
    vec![
        (raid10(4).with_near(1), "near", "from 2 to the 4 members, not 1"),
        (raid10(4).with_near(5), "near", "from 2 to the 4 members, not 5"),
        (raid10(4).with_near(0), "near", "at least 1"),
        (raid10(4).with_far(0), "far", "at least 1"),
        (raid10(4).with_far(5), "far", "near 1 x far 5 are 5 copies; possible are from 2 to the 4"),
        (raid10(4).with_far(2).with_near(3), "far", "6 copies"),
        (raid10(4).with_far(300).with_near(300), "far", "90000 copies"),
        (raid10(4).with_offset(true), "offset", "at least 2, not 1"),
        (raid10(4).with_far(5).with_offset(true), "offset", "5 copies"),
        (
            raid10(5).with_far(2).with_near(2).with_offset(true),
            "members",
            "a multiple of 2 members",
        ),
        (raid10(4).with_far(2).with_far_sets(1), "far_sets", "use 2 for sets, 0 for none"),
        (raid10(4).with_far(2).with_far_sets(3), "far_sets", "3 is not a mode"),
        (raid10(4).with_far_sets(2), "far_sets", "at least 2 far copies"),
        (
            raid10(6).with_far(2).with_near(2).with_far_sets(2),
            "far_sets",
            "a multiple of 4 members",
        ),
        (new(Raid5, 4).with_near(3), "near", "only raid10 has it, not raid5"),
        (new(Raid1, 4).with_far(2).with_near(2), "far", "only raid10 has it"),
        (new(Raid0, 4).with_offset(true), "offset", "only raid10 has it"),
        (new(Raid0, 4).with_far_sets(2), "far_sets", "only raid10 has it"),
        (new(Linear, 4).with_zones(ZoneOrder::Alternate), "zones", "only raid0"),
    ]
}

#[test]
fn impossible_layouts_are_named() {
    let cases = [impossible(), impossible_copies()].concat();
    for (layout, key, words) in cases {
        let error = layout.check().expect_err("impossible");
        assert_eq!(error.key, key, "{layout:?}: {error}");
        assert!(error.reason.contains(words), "{layout:?}: {error}");
        let sizes = vec![Sectors(1 << 20); usize::from(layout.members)];
        assert_eq!(Geometry::new(&layout, &sizes), Err(error));
    }
}

#[test]
fn members_that_do_not_do() {
    let check = |layout: Layout, sizes: &[u64], block, key: &str, words: &str| {
        let sizes: Vec<Sectors> = sizes.iter().copied().map(Sectors).collect();
        let error = Geometry::with_block(&layout, &sizes, block).expect_err("impossible");
        assert_eq!(error.key, key, "{error}");
        assert!(error.reason.contains(words), "{error}");
    };
    let raid0 = Layout::new(Level::Raid0, 2);
    check(raid0.clone(), &[2048, 100], 1, "members", "member 1 has room for 50KiB only");
    check(raid0.clone(), &[2048], 1, "members", "1 sizes given for 2 members");
    check(raid0, &[2048, 2048], 3, "logical_block", "3 sectors is not a power of two");
    check(raid10(4).with_far(2), &[2047; 4], 1, "members", "raid10(4) far2 needs at least 1MiB");
    check(Layout::new(Level::Raid1, 2), &[0, 5], 1, "members", "member 0");
    check(Layout::new(Level::Raid3, 3), &[8, 7, 8], 8, "members", "member 1");
    let wide = Layout::new(Level::Raid3, 65);
    check(
        wide.clone(),
        &[80; 65],
        8,
        "members",
        "a logical sector of 256KiB; raid3 takes up to 128KiB",
    );
    assert!(Geometry::with_block(&wide, &[Sectors(80); 65], 4).is_ok());
}

#[test]
fn names_of_levels_rotations_and_zones() {
    for level in Level::ALL {
        assert_eq!(level.name().parse(), Ok(level));
    }
    let error = "raid7".parse::<Level>().expect_err("no level");
    assert!(error.reason.contains("raid3, raid4, raid5, raid6, raid10"), "{error}");
    for rotation in Rotation::ALL {
        assert_eq!(rotation.name().parse(), Ok(rotation));
        assert!(Level::Raid6.rotations().contains(&rotation));
        let raid5 = rotation.md_number() < 6;
        assert_eq!(Level::Raid5.rotations().contains(&rotation), raid5, "{rotation}");
    }
    assert!(Rotation::ALL.is_sorted_by_key(|rotation| rotation.md_number()));
    let short = ["la", "ra", "ls", "rs"].map(|name| name.parse().map(Rotation::md_number));
    assert_eq!(short, [Ok(0), Ok(1), Ok(2), Ok(3)]);
    let error = "left-symetric".parse::<Rotation>().expect_err("no rotation");
    assert!(error.reason.contains("ddf-N-continue, left-asymmetric-6"), "{error}");
    for order in ZoneOrder::ALL {
        assert_eq!(order.name().parse(), Ok(order));
    }
    assert!("alternating".parse::<ZoneOrder>().is_err());
}

#[test]
fn names_say_what_differs() {
    let new = Layout::new;
    for (layout, name) in [
        (new(Level::Linear, 1), "single"),
        (new(Level::Linear, 1).with_chunk(Sectors(12)), "single chunk=6K"),
        (new(Level::Linear, 4), "linear(4)"),
        (new(Level::Raid0, 4).with_zones(ZoneOrder::Alternate), "raid0(4) alternate"),
        (new(Level::Raid3, 5), "raid3(5)"),
        (new(Level::Raid5, 4), "raid5(4)"),
        (new(Level::Raid5, 4).with_chunk(Sectors(128)), "raid5(4) chunk=64K"),
        (new(Level::Raid6, 4).with_rotation(Rotation::LeftAsymmetric), "raid6(4) left-asymmetric"),
        (raid10(4), "raid10(4)"),
        (raid10(6).with_near(3), "raid10(6) near3"),
        (raid10(4).with_far(2), "raid10(4) far2"),
        (raid10(4).with_far(2).with_offset(true), "raid10(4) offset2"),
        (raid10(4).with_far(2).with_near(2), "raid10(4) near2 far2"),
        (raid10(4).with_far(2).with_far_sets(2), "raid10(4) far2 sets"),
        (
            raid10(4).with_chunk(Sectors(8)).with_far(2).with_offset(true).with_far_sets(2),
            "raid10(4) chunk=4K offset2 sets",
        ),
    ] {
        layout.check().expect("possible");
        assert_eq!(layout.to_string(), name);
        assert_eq!(name.parse(), Ok(layout));
    }
}

#[test]
fn names_of_all_nested_levels_are_read_back() {
    let members = |level: Level| match level {
        Level::Raid3 => 5,
        _ => 4,
    };
    let chunks = [None, Some(Sectors(128)), Some(Sectors(256)), Some(Sectors(1024))];
    let with = |layout: Layout, chunk: Option<Sectors>| match chunk {
        Some(chunk) => layout.with_chunk(chunk),
        None => layout,
    };
    let mut names = std::collections::BTreeMap::new();
    for (outer, inner) in
        Level::ALL.into_iter().flat_map(|outer| Level::ALL.map(|inner| (outer, inner)))
    {
        for (above, below) in chunks.into_iter().flat_map(|one| chunks.map(|other| (one, other))) {
            let inner = with(Layout::new(inner, members(inner)), below);
            let layout = with(Layout::new(outer, members(outer)).over(inner), above);
            if layout.check().is_err() {
                continue;
            }
            let name = layout.to_string();
            assert_eq!(name.parse::<Layout>().as_ref(), Ok(&layout), "{name}");
            let same = names.insert(name.clone(), layout.clone());
            assert!(same.is_none_or(|same| same == layout), "{name} names two");
        }
    }
    assert!(names.len() > 200, "{}", names.len());
    for (name, is) in [
        ("linear+0(2x2) outer-chunk=64K", "linear+0(2x2) outer-chunk=64K"),
        ("linear+0(2x2) chunk=64K", "linear+0(2x2) chunk=64K"),
        ("linear+0(2x2) outer-chunk=512K", "linear+0(2x2)"),
        ("raid1+0(2x2) outer-chunk=64K", "raid1+0(2x2) chunk=64K"),
        ("raid5+0(2x3) chunk=64K outer-chunk=64K", "raid5+0(2x3) chunk=64K"),
    ] {
        assert_eq!(name.parse::<Layout>().map(|layout| layout.to_string()), Ok(is.into()));
    }
}

#[test]
fn what_each_level_survives() {
    let new = Layout::new;
    for (layout, survives) in [
        (new(Level::Linear, 4), 0),
        (new(Level::Raid0, 4), 0),
        (new(Level::Raid1, 4), 3),
        (new(Level::Raid3, 5), 1),
        (new(Level::Raid4, 5), 1),
        (new(Level::Raid5, 5), 1),
        (new(Level::Raid6, 5), 2),
        (raid10(4), 1),
        (raid10(4).with_far(3), 2),
        (raid10(6).with_far(3).with_near(2), 5),
    ] {
        assert_eq!(layout.survives(), survives, "{layout}");
    }
}

/// What a level says of its stripes is what its addresses make of the first row.
#[test]
fn stripes_are_as_the_addresses_have_them() {
    let chunk = Sectors(8);
    for level in Level::ALL {
        for members in [3, 4, 5, 9, 17] {
            let layout = Layout::new(level, members);
            let chunked = layout.clone().with_chunk(chunk);
            let layout = if chunked.check().is_ok() { chunked } else { layout };
            let Ok(geometry) = Geometry::new(&layout, &vec![Sectors(64); usize::from(members)])
            else {
                continue;
            };
            let held = |m| geometry.holds(Place { member: MemberIndex(m), at: Sector(0) });
            let row: Vec<Holds> = (0..members).map(held).collect();
            let data: BTreeSet<u64> = row
                .iter()
                .filter_map(
                    |held| if let Holds::Data { at, .. } = held { Some(at.0) } else { None },
                )
                .collect();
            let parities = row.iter().filter(|it| matches!(it, Holds::P { .. } | Holds::Q { .. }));
            assert_eq!(usize::from(layout.parities()), parities.count(), "{layout}");
            // Of an odd number of members the last chunk of raid10's row has its copy in the next one.
            let whole = match level {
                Level::Linear => 1,
                Level::Raid10 => data.len() - usize::from(members % 2),
                _ => data.len(),
            };
            assert_eq!(usize::from(layout.data_members()), whole, "{layout}");
            if let Some(stripe) = layout.full_stripe() {
                let last = data.last().expect("data") + chunk.0;
                assert_eq!(stripe, Sectors(last), "{layout}");
            }
        }
    }
}

#[test]
fn a_chunk_is_at_most_a_tebibyte() {
    let most = u64::from(u32::MAX / 2);
    let check = |chunk| Layout::new(Level::Raid0, 2).with_chunk(Sectors(chunk)).check();
    assert!(check(most).is_ok());
    assert_eq!(check(most + 1).expect_err("too large").key, "chunk");
}
