//! The arrays of this test: of every level, with and without bitmap, of all versions, left in every state.

use std::fmt;

use raidlab_core::Layout;
use raidlab_metadata::md::{Version, WantedBitmap};

/// Bytes of each device.
pub(crate) const MEMBER: u64 = 6 << 20;

/// Who made the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    Raidlab,
    Kernel,
}

/// How whoever made an array leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Stopped.
    Clean,
    /// As a crash does, and redundancy is wrong somewhere.
    Dirty,
    /// A member failed, and more was written; the other side gets a fresh device.
    Degraded,
    /// The same, and the maker has rebuilt it.
    Rebuilt,
    /// The same, and the rebuild was interrupted.
    HalfRebuilt,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) level: &'static Level,
    pub(crate) bitmap: bool,
    pub(crate) maker: Maker,
    pub(crate) left: Left,
}

/// A level, as raidlab and as mdadm name it.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) layout: &'static str,
    pub(crate) mdadm: &'static str,
    pub(crate) version: Version,
    /// A member whose first block holds redundancy.
    pub(crate) redundant: Option<usize>,
}

const fn level(
    name: &'static str,
    layout: &'static str,
    mdadm: &'static str,
    version: Version,
    redundant: Option<usize>,
) -> Level {
    Level { name, layout, mdadm, version, redundant }
}

const LEVELS: [Level; 16] = [
    level("raid5", "raid5(4) chunk=64K", "--level=5", Version::V1_2, Some(3)),
    level("raid1", "raid1(3)", "--level=1", Version::V1_0, Some(2)),
    level("raid6", "raid6(4) chunk=64K", "--level=6", Version::V1_1, Some(3)),
    level("near", "raid10(4) chunk=64K", "--level=10 --layout=n2", Version::V1_2, Some(1)),
    level("far", "raid10(4) chunk=64K far2", "--level=10 --layout=f2", Version::V1_0, None),
    level("raid4", "raid4(3) chunk=64K", "--level=4", Version::V1_0, Some(2)),
    level("offset", "raid10(3) chunk=64K offset2", "--level=10 --layout=o2", Version::V1_1, None),
    level(
        "asymmetric",
        "raid5(3) chunk=64K right-asymmetric",
        "--level=5 --layout=right-asymmetric",
        Version::V1_0,
        Some(0),
    ),
    level(
        "ddf",
        "raid6(4) chunk=64K ddf-N-continue",
        "--level=6 --layout=ddf-N-continue",
        Version::V1_2,
        None,
    ),
    level("raid0", "raid0(3) chunk=64K", "--level=0", Version::V1_2, None),
    level("linear", "linear(2)", "--level=linear", Version::V1_0, None),
    level("raid5-0.90", "raid5(4) chunk=64K", "--level=5", Version::V0_90, Some(3)),
    level("raid1-0.90", "raid1(3)", "--level=1", Version::V0_90, Some(2)),
    level("raid6-0.90", "raid6(4) chunk=64K", "--level=6", Version::V0_90, Some(3)),
    level("far-0.90", "raid10(4) chunk=64K far2", "--level=10 --layout=f2", Version::V0_90, None),
    level("linear-0.90", "linear(2)", "--level=linear", Version::V0_90, None),
];

/// Every level by every maker in every state, with a bitmap and without: neighbours differ in all of them.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for left in [Left::Clean, Left::Dirty, Left::Degraded, Left::Rebuilt, Left::HalfRebuilt] {
        for maker in [Maker::Raidlab, Maker::Kernel] {
            for bitmap in [false, true] {
                for level in &LEVELS {
                    let case = Case { level, bitmap, maker, left };
                    let is_redundant = case.layout().level.is_redundant();
                    // What has no redundancy has neither bitmap nor other states.
                    if is_redundant || !bitmap && left == Left::Clean {
                        cases.push(case);
                    }
                }
            }
        }
    }
    // A stride without a common factor mixes them.
    let (count, stride) = (cases.len(), 37);
    assert!(!count.is_multiple_of(stride), "every case comes once");
    (0..count).map(|index| cases[index * stride % count].clone()).collect()
}

impl Case {
    pub(crate) fn layout(&self) -> Layout {
        self.level.layout.parse().expect("a layout")
    }

    pub(crate) fn members(&self) -> usize {
        usize::from(self.layout().members)
    }

    /// Whether the superblocks are of version 0.90, where who is being rebuilt is a spare.
    pub(crate) fn is_old(&self) -> bool {
        self.level.version == Version::V0_90
    }

    pub(crate) fn wanted_bitmap(&self) -> WantedBitmap {
        if self.bitmap { WantedBitmap::Internal } else { WantedBitmap::None }
    }

    pub(crate) fn is_redundant(&self) -> bool {
        self.layout().level.is_redundant()
    }

    /// Whether a member was lost before the other side takes over.
    pub(crate) fn lost_one(&self) -> bool {
        matches!(self.left, Left::Degraded | Left::Rebuilt | Left::HalfRebuilt)
    }

    pub(crate) fn name(&self) -> String {
        let bitmap = if self.bitmap { "-bitmap" } else { "" };
        format!("{}{bitmap}-{:?}-{:?}", self.level.name, self.maker, self.left)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
