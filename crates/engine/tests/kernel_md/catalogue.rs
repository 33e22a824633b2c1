//! Which arrays there are, and which of them a run takes.
//!
//! Every level is in every run. Where a level has many layouts they are a group, of which a sample
//! takes some. Rooms for data leave something at the end of the members, so that rounding counts.

use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Layout, Level, Rotation};

use super::arrays::{Shape, kib};
use crate::extent::Extent;

/// Layouts that belong together, and how many of them a sample takes.
type Group = (usize, Vec<Shape>);

/// linear, raid0, raid1 and raid10, also of members of several sizes and with an odd number.
pub(crate) fn without_parity(extent: Extent) -> Vec<Shape> {
    let linear = Layout::new(Level::Linear, 3).with_chunk(kib(64));
    let raid1 = |members| Layout::new(Level::Raid1, members);
    let groups = [
        (1, vec![Shape::new(linear, vec![2276, 1596, 2276], 256)]),
        (1, vec![even(striped(Level::Raid0, 4, 64), 1596, 1024)]),
        (2, unequal_raid0()),
        (1, vec![even(raid1(3), 3072, 2048), even(raid1(2), 3072, 264)]),
        (
            2,
            vec![
                raid10(4, 2, 1),
                raid10(5, 3, 1),
                raid10(5, 2, 1),
                raid10(3, 2, 1),
                raid10(4, 3, 1),
            ],
        ),
        (1, vec![raid10(3, 1, 2), raid10(5, 1, 2), raid10(4, 1, 2), raid10(5, 1, 3)]),
        (1, vec![offset(5, 1, 2), offset(4, 1, 2), offset(3, 1, 2), offset(5, 1, 3)]),
        (1, beyond_mdadm()),
    ];
    choose(groups, extent)
}

/// raid4, raid5 and raid6.
pub(crate) fn with_parity(extent: Extent) -> Vec<Shape> {
    let raid5 = |members, chunk| striped(Level::Raid5, members, chunk);
    let groups = [
        (
            1,
            vec![
                even(striped(Level::Raid4, 4, 32), 812, 256),
                even(striped(Level::Raid4, 5, 64), 820, 256),
            ],
        ),
        (
            2,
            Rotation::RAID5
                .map(|rotation| even(raid5(4, 32).with_rotation(rotation), 812, 264))
                .into(),
        ),
        (
            1,
            vec![
                even(raid5(5, 64), 1596, 1024),
                even(raid5(3, 128), 2108, 1032),
                // Longer than what the core plans at once.
                even(raid5(3, 2048), 4116, 1024),
                even(raid5(5, 16).with_rotation(Rotation::RightAsymmetric), 404, 256),
            ],
        ),
        (3, raid6(5, 32, 428)),
        // Five data members: few enough of them are written that reading P and Q is less work.
        (1, raid6(7, 16, 252)),
        (1, raid6(4, 64, 820)),
    ];
    choose(groups, extent)
}

/// Layouts that survive the loss of a member, for rebuilds.
pub(crate) fn redundant(extent: Extent) -> Vec<Shape> {
    let raid5 = |rotation| even(striped(Level::Raid5, 4, 32).with_rotation(rotation), 812, 264);
    let groups = [
        (
            1,
            vec![
                even(Layout::new(Level::Raid1, 2), 1536, 264),
                even(Layout::new(Level::Raid1, 3), 1536, 264),
            ],
        ),
        (1, vec![even(striped(Level::Raid4, 4, 32), 812, 256)]),
        (2, Rotation::RAID5.map(raid5).into()),
        (2, raid6(5, 32, 428)),
        (1, vec![raid10(4, 2, 1), raid10(5, 2, 1)]),
        (1, vec![raid10(4, 1, 2), raid10(5, 1, 2)]),
        (1, vec![offset(4, 1, 2), offset(5, 1, 2)]),
    ];
    choose(groups, extent)
}

/// The layouts that GRUB reads right, by its source and by trial: of raid5 and raid6 the four
/// rotations that mdadm has short names for; raid0 of members of one size. Chunks are no less than the
/// 32 KiB that GRUB reads at once: where such a read goes on behind a stripe whose P is on the last
/// member, it takes the wrong member of left-asymmetric raid6 (2.06, seen with chunks of 16 KiB).
pub(crate) fn known_to_grub(extent: Extent) -> Vec<Shape> {
    let rotations = [
        Rotation::LeftAsymmetric,
        Rotation::RightAsymmetric,
        Rotation::LeftSymmetric,
        Rotation::RightSymmetric,
    ];
    let all = |level, members, chunk, room| -> Vec<Shape> {
        let layout = |rotation| striped(level, members, chunk).with_rotation(rotation);
        rotations.map(|rotation| even(layout(rotation), room, 256)).into()
    };
    let groups = [
        (1, vec![even(striped(Level::Raid0, 3, 64), 1596, 1024)]),
        (1, vec![even(Layout::new(Level::Raid1, 3), 1024, 256)]),
        (1, vec![even(striped(Level::Raid4, 4, 32), 428, 256)]),
        (1, all(Level::Raid5, 4, 32, 428)),
        (2, all(Level::Raid6, 5, 32, 428)),
        (1, all(Level::Raid6, 7, 32, 284)),
        (1, vec![raid10(4, 2, 1), raid10(5, 2, 1), raid10(5, 3, 1)]),
        (1, vec![raid10(4, 1, 2), raid10(3, 1, 2), raid10(5, 1, 3)]),
        (1, vec![offset(4, 1, 2), offset(5, 1, 2), offset(4, 1, 3)]),
    ];
    choose(groups, extent)
}

fn choose<const N: usize>(groups: [Group; N], extent: Extent) -> Vec<Shape> {
    groups.into_iter().flat_map(|(most, shapes)| extent.choose(shapes, most)).collect()
}

/// Members that end at different places, in both orders; one after the other are the two orders of
/// the same members.
fn unequal_raid0() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (chunk, rooms) in [
        // 23 chunks of each, then two members go on: the second zone starts on the second of them.
        (64, vec![2212, 1532, 2212]),
        // 14 chunks of four, 9 of three, 11 of two: no zone starts with its first member.
        (64, vec![2212, 1532, 2212, 936]),
        // No power of two: 25 chunks of three, 16 of two. md takes a mask for the remainder when it
        // adds the members up (`raid0_size`), and so makes most such arrays smaller than its own
        // formulas for places fill. These numbers of chunks lose nothing to that.
        (36, vec![920, 1500, 1500]),
    ] {
        for order in ZoneOrder::ALL {
            let layout = striped(Level::Raid0, rooms.len() as u16, chunk).with_zones(order);
            shapes.push(Shape::new(layout, rooms.clone(), 1088));
        }
    }
    shapes
}

/// raid10 as md's own driver knows it and mdadm cannot say: far sets, the last one larger, and
/// several near and far copies at once.
fn beyond_mdadm() -> Vec<Shape> {
    let sets = |shape: Shape| Shape { layout: shape.layout.with_far_sets(2), ..shape };
    vec![
        sets(raid10(4, 1, 2)),
        sets(raid10(5, 1, 2)),
        sets(offset(5, 1, 2)),
        sets(raid10(7, 1, 3)),
        raid10(4, 2, 2),
        raid10(5, 2, 2),
        offset(4, 2, 2),
        offset(6, 2, 2),
        sets(offset(7, 1, 3)),
    ]
}

fn raid6(members: u16, chunk: u64, room: u64) -> Vec<Shape> {
    let layout = |rotation| striped(Level::Raid6, members, chunk).with_rotation(rotation);
    Rotation::ALL.map(|rotation| even(layout(rotation), room, 256)).into()
}

fn raid10(members: u16, near: u16, far: u16) -> Shape {
    let layout = striped(Level::Raid10, members, 64).with_far(far).with_near(near);
    even(layout, 1372, 1024)
}

fn offset(members: u16, near: u16, far: u16) -> Shape {
    let shape = raid10(members, near, far);
    Shape { layout: shape.layout.with_offset(true), ..shape }
}

/// Members of one size.
fn even(layout: Layout, room: u64, data_offset: u64) -> Shape {
    let rooms = vec![room; usize::from(layout.members)];
    Shape::new(layout, rooms, data_offset)
}

fn striped(level: Level, members: u16, chunk: u64) -> Layout {
    Layout::new(level, members).with_chunk(kib(chunk))
}
