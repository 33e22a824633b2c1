//! Address maths against tables written out by hand from the formulas of the kernels, not from this
//! code: the layouts that few or no other readers know.

use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, MemberIndex, Rotation, Sector, Sectors};

const CHUNK: Sectors = Sectors(8);

fn place(member: u16, at: u64) -> Place {
    Place { member: MemberIndex(member), at: Sector(at) }
}

/// The chunk map as text: all members a row, P, Q or the number of a chunk; behind a chunk of raid6
/// the power of g with which it counts in Q.
fn map_of(layout: &Layout, chunks: &[u64]) -> String {
    let unit = if layout.level == Level::Raid3 { 1 } else { layout.chunk.0 };
    let sizes: Vec<Sectors> = chunks.iter().map(|count| Sectors(count * unit)).collect();
    let geometry = Geometry::new(layout, &sizes).expect("possible");
    let cell = |member, row| match (geometry.holds(place(member, row * unit)), &geometry) {
        (Holds::Data { at, .. }, Geometry::Parity(parity)) if layout.level == Level::Raid6 => {
            let found = parity.stripe_place(at);
            let exponent = parity.q_exponent(found.stripe, found.chunk);
            format!("{}'{exponent}", at.0 / unit)
        }
        (Holds::Data { at, .. }, _) => format!("{}", at.0 / unit),
        (Holds::P { .. }, _) => "P".into(),
        (Holds::Q { .. }, _) => "Q".into(),
        (Holds::Nothing, _) => "-".into(),
    };
    let row = |row| (0..layout.members).map(|m| cell(m, row)).collect::<Vec<_>>().join(" ");
    let rows = *chunks.iter().max().expect("members");
    (0..rows).map(row).collect::<Vec<_>>().join(" / ")
}

fn map(layout: &Layout, rows: u64) -> String {
    map_of(layout, &vec![rows; usize::from(layout.members)])
}

#[test]
fn raid0_raid3_and_raid4() {
    let layout = |level, members| Layout::new(level, members).with_chunk(CHUNK);
    assert_eq!(map(&layout(Level::Raid0, 3), 3), "0 1 2 / 3 4 5 / 6 7 8");
    assert_eq!(map(&layout(Level::Raid4, 4), 3), "0 1 2 P / 3 4 5 P / 6 7 8 P");
    assert_eq!(map(&layout(Level::Raid4, 2), 3), "0 P / 1 P / 2 P");
    assert_eq!(map(&Layout::new(Level::Raid3, 3), 3), "0 1 P / 2 3 P / 4 5 P");
    assert_eq!(map(&Layout::new(Level::Raid3, 5), 3), "0 1 2 3 P / 4 5 6 7 P / 8 9 10 11 P");
}

#[test]
fn raid3_of_members_with_large_blocks() {
    // 4 KiB blocks: the logical sector is 16 of 512 bytes for 3 members.
    let layout = Layout::new(Level::Raid3, 3);
    let geometry = Geometry::with_block(&layout, &[Sectors(20); 3], 8).expect("possible");
    assert_eq!(geometry.capacity(), Sectors(32), "two whole blocks of each member");
    let expected = [(0, 0, 0), (7, 0, 7), (8, 1, 0), (15, 1, 7), (16, 0, 8), (25, 1, 9)];
    for (at, member, member_at) in expected {
        assert_eq!(geometry.place(Sector(at), 0), place(member, member_at), "sector {at}");
    }
    assert_eq!(geometry.holds(place(2, 9)), Holds::P { stripe: 1 });
    assert_eq!(geometry.holds(place(2, 16)), Holds::Nothing);
    assert_eq!(geometry.run(Sector(9)), Sectors(7));
    let Geometry::Raid3(raid3) = &geometry else { panic!("raid3 has its own geometry") };
    assert_eq!((raid3.data_members(), raid3.block(), raid3.logical_sector()), (2, 8, 16));
    assert_eq!((raid3.p_member(), raid3.member_start(1)), (MemberIndex(2), Sector(8)));
}

#[test]
fn raid5_of_four() {
    use Rotation::*;
    for (rotation, expected) in [
        (LeftAsymmetric, "0 1 2 P / 3 4 P 5 / 6 P 7 8 / P 9 10 11 / 12 13 14 P"),
        (RightAsymmetric, "P 0 1 2 / 3 P 4 5 / 6 7 P 8 / 9 10 11 P / P 12 13 14"),
        (LeftSymmetric, "0 1 2 P / 4 5 P 3 / 8 P 6 7 / P 9 10 11 / 12 13 14 P"),
        (RightSymmetric, "P 0 1 2 / 5 P 3 4 / 7 8 P 6 / 9 10 11 P / P 12 13 14"),
        (ParityFirst, "P 0 1 2 / P 3 4 5 / P 6 7 8 / P 9 10 11 / P 12 13 14"),
        (ParityLast, "0 1 2 P / 3 4 5 P / 6 7 8 P / 9 10 11 P / 12 13 14 P"),
    ] {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(CHUNK).with_rotation(rotation);
        assert_eq!(map(&layout, 5), expected, "{rotation}");
    }
    let three = Layout::new(Level::Raid5, 3).with_chunk(CHUNK);
    assert_eq!(map(&three, 3), "0 1 P / 3 P 2 / P 4 5");
}

/// Chunk'power. Where data wrap past Q, the order of the powers is not that of the chunks.
#[test]
fn raid6_of_five() {
    use Rotation::*;
    #[rustfmt::skip]
    let expected = [
        (LeftAsymmetric, 0, ["Q 0'0 1'1 2'2 P", "3'0 4'1 5'2 P Q", "6'1 7'2 P Q 8'0",
                             "9'2 P Q 10'0 11'1", "P Q 12'0 13'1 14'2"]),
        (RightAsymmetric, 1, ["P Q 0'0 1'1 2'2", "3'2 P Q 4'0 5'1", "6'1 7'2 P Q 8'0",
                              "9'0 10'1 11'2 P Q", "Q 12'0 13'1 14'2 P"]),
        (LeftSymmetric, 2, ["Q 0'0 1'1 2'2 P", "3'0 4'1 5'2 P Q", "7'1 8'2 P Q 6'0",
                            "11'2 P Q 9'0 10'1", "P Q 12'0 13'1 14'2"]),
        (RightSymmetric, 3, ["P Q 0'0 1'1 2'2", "5'2 P Q 3'0 4'1", "7'1 8'2 P Q 6'0",
                             "9'0 10'1 11'2 P Q", "Q 12'0 13'1 14'2 P"]),
        (ParityFirst, 4, ["P Q 0'0 1'1 2'2", "P Q 3'0 4'1 5'2", "P Q 6'0 7'1 8'2",
                          "P Q 9'0 10'1 11'2", "P Q 12'0 13'1 14'2"]),
        (ParityLast, 5, ["0'0 1'1 2'2 P Q", "3'0 4'1 5'2 P Q", "6'0 7'1 8'2 P Q",
                         "9'0 10'1 11'2 P Q", "12'0 13'1 14'2 P Q"]),
        (RotatingZeroRestart, 8, ["P Q 0'2 1'3 2'4", "3'0 P Q 4'3 5'4", "6'0 7'1 P Q 8'4",
                                  "9'0 10'1 11'2 P Q", "Q 12'1 13'2 14'3 P"]),
        (RotatingNRestart, 9, ["0'0 1'1 2'2 P Q", "3'0 4'1 P Q 5'4", "6'0 P Q 7'3 8'4",
                               "P Q 9'2 10'3 11'4", "Q 12'1 13'2 14'3 P"]),
        (RotatingNContinue, 10, ["0'0 1'1 2'2 Q P", "4'0 5'1 Q P 3'4", "8'0 Q P 6'3 7'4",
                                 "Q P 9'2 10'3 11'4", "P 12'1 13'2 14'3 Q"]),
        (LeftAsymmetric6, 16, ["0'0 1'1 2'2 P Q", "3'0 4'1 P 5'2 Q", "6'0 P 7'1 8'2 Q",
                               "P 9'0 10'1 11'2 Q", "12'0 13'1 14'2 P Q"]),
        (RightAsymmetric6, 17, ["P 0'0 1'1 2'2 Q", "3'0 P 4'1 5'2 Q", "6'0 7'1 P 8'2 Q",
                                "9'0 10'1 11'2 P Q", "P 12'0 13'1 14'2 Q"]),
        (LeftSymmetric6, 18, ["0'0 1'1 2'2 P Q", "4'0 5'1 P 3'2 Q", "8'0 P 6'1 7'2 Q",
                              "P 9'0 10'1 11'2 Q", "12'0 13'1 14'2 P Q"]),
        (RightSymmetric6, 19, ["P 0'0 1'1 2'2 Q", "5'0 P 3'1 4'2 Q", "7'0 8'1 P 6'2 Q",
                               "9'0 10'1 11'2 P Q", "P 12'0 13'1 14'2 Q"]),
        (ParityFirst6, 20, ["P 0'0 1'1 2'2 Q", "P 3'0 4'1 5'2 Q", "P 6'0 7'1 8'2 Q",
                            "P 9'0 10'1 11'2 Q", "P 12'0 13'1 14'2 Q"]),
    ];
    assert_eq!(expected.len(), Rotation::ALL.len());
    for (rotation, number, rows) in expected {
        let layout = Layout::new(Level::Raid6, 5).with_chunk(CHUNK).with_rotation(rotation);
        assert_eq!(map(&layout, 5), rows.join(" / "), "{rotation}");
        assert_eq!(rotation.md_number(), number, "{rotation}");
    }
}

fn raid10(members: u16) -> Layout {
    Layout::new(Level::Raid10, members).with_chunk(CHUNK)
}

#[test]
fn raid10_near() {
    assert_eq!(map(&raid10(4), 3), "0 0 1 1 / 2 2 3 3 / 4 4 5 5");
    assert_eq!(map(&raid10(3), 3), "0 0 1 / 1 2 2 / 3 3 -", "no room for both copies of 4");
    assert_eq!(map(&raid10(5), 3), "0 0 1 1 2 / 2 3 3 4 4 / 5 5 6 6 -");
    assert_eq!(map(&raid10(4).with_near(3), 3), "0 0 0 1 / 1 1 2 2 / 2 3 3 3");
}

#[test]
fn raid10_far_and_offset() {
    let far = "0 1 2 3 / 4 5 6 7 / 8 9 10 11 / 3 0 1 2 / 7 4 5 6 / 11 8 9 10";
    assert_eq!(map(&raid10(4).with_far(2), 6), far);
    let odd = "0 1 2 / 3 4 5 / 6 7 8 / 2 0 1 / 5 3 4 / 8 6 7 / - - -";
    assert_eq!(map(&raid10(3).with_far(2), 7), odd, "the odd chunk is left over");
    let three = "0 1 2 3 4 / 4 0 1 2 3 / 3 4 0 1 2";
    assert_eq!(map(&raid10(5).with_far(3), 3), three);
    let offset = |members, far| raid10(members).with_far(far).with_offset(true);
    let pairs = "0 1 2 3 / 3 0 1 2 / 4 5 6 7 / 7 4 5 6 / 8 9 10 11 / 11 8 9 10";
    assert_eq!(map(&offset(4, 2), 6), pairs);
    assert_eq!(map(&offset(3, 2), 5), "0 1 2 / 2 0 1 / 3 4 5 / 5 3 4 / - - -");
    assert_eq!(map(&offset(4, 3), 6), "0 1 2 3 / 3 0 1 2 / 2 3 0 1 / 4 5 6 7 / 7 4 5 6 / 6 7 4 5");
}

#[test]
fn raid10_near_and_far() {
    let both = |members| raid10(members).with_far(2).with_near(2);
    assert_eq!(map(&both(4), 4), "0 0 1 1 / 2 2 3 3 / 1 1 0 0 / 3 3 2 2");
    assert_eq!(map(&both(5), 4), "0 0 1 1 2 / 2 3 3 4 4 / 1 2 0 0 1 / 4 4 2 3 3");
    assert_eq!(map(&both(5), 2), "0 0 1 1 - / 1 - 0 0 1");
    assert_eq!(map(&both(4).with_offset(true), 4), "0 0 1 1 / 1 1 0 0 / 2 2 3 3 / 3 3 2 2");
    // As md fills its slots: a near copy, then its far copies.
    let geometry = Geometry::new(&both(4), &[Sectors(32); 4]).expect("possible");
    let places = [0, 1, 2, 3].map(|copy| geometry.place(Sector(8), copy));
    assert_eq!(places, [place(2, 0), place(0, 16), place(3, 0), place(1, 16)]);
}

#[test]
fn raid10_far_sets() {
    let sets = |members| raid10(members).with_far(2).with_far_sets(2);
    assert_eq!(map(&sets(4), 4), "0 1 2 3 / 4 5 6 7 / 1 0 3 2 / 5 4 7 6");
    // Sets {0, 1} and {2, 3, 4}: the last takes the remainder.
    assert_eq!(map(&sets(5), 4), "0 1 2 3 4 / 5 6 7 8 9 / 1 0 4 2 3 / 6 5 9 7 8");
    let offset = "0 1 2 3 / 1 0 3 2 / 4 5 6 7 / 5 4 7 6";
    assert_eq!(map(&sets(4).with_offset(true), 4), offset);
    let three = "0 1 2 3 4 5 6 / 2 0 1 6 3 4 5 / 1 2 0 5 6 3 4";
    assert_eq!(map(&raid10(7).with_far(3).with_far_sets(2), 3), three);
}

#[test]
fn raid0_zones() {
    let raid0 = |members| Layout::new(Level::Raid0, members).with_chunk(CHUNK);
    let alternate = |members| raid0(members).with_zones(ZoneOrder::Alternate);
    assert_eq!(map_of(&raid0(3), &[1, 2, 3]), "0 1 2 / - 4 3 / - - 5");
    assert_eq!(map_of(&alternate(3), &[1, 2, 3]), "0 1 2 / - 3 4 / - - 5");
    let sizes = [1, 3, 3, 4];
    assert_eq!(map_of(&raid0(4), &sizes), "0 1 2 3 / - 6 4 5 / - 9 7 8 / - - - 10");
    assert_eq!(map_of(&alternate(4), &sizes), "0 1 2 3 / - 4 5 6 / - 7 8 9 / - - - 10");
    // The third zone starts at the seventh chunk of the array and the second of its members.
    let sizes = [1, 2, 3, 3];
    assert_eq!(map_of(&raid0(4), &sizes), "0 1 2 3 / - 6 4 5 / - - 8 7");
    assert_eq!(map_of(&alternate(4), &sizes), "0 1 2 3 / - 4 5 6 / - - 7 8");
    // Here the second zone starts at a multiple of its members: both orders are one.
    for layout in [raid0(3), alternate(3)] {
        assert_eq!(map_of(&layout, &[2, 4, 3]), "0 1 2 / 3 4 5 / - 6 7 / - 8 -");
    }
}

#[test]
fn linear_rounds_each_member() {
    let layout = Layout::new(Level::Linear, 3).with_chunk(CHUNK);
    let geometry = Geometry::new(&layout, &[Sectors(17), Sectors(8), Sectors(31)]).expect("fits");
    assert_eq!(geometry.capacity(), Sectors(16 + 8 + 24));
    for (at, member, member_at) in [(15, 0, 15), (16, 1, 0), (23, 1, 7), (24, 2, 0), (47, 2, 23)] {
        assert_eq!(geometry.place(Sector(at), 0), place(member, member_at), "sector {at}");
    }
    assert_eq!(geometry.holds(place(0, 16)), Holds::Nothing);
}
