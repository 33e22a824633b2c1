//! The arrays, and where their members lie in the files.
//!
//! Every file is cut into the same sections; an array has a section of its own, or several if its
//! members differ in size. Arrays hold a few MiB, so that they can be read as a whole.

use std::fmt;

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, Level, Sector, Sectors};

use crate::extent::Extent;

/// How many files there are of each [`Set`].
pub(crate) const FILES: usize = 7;

/// The most sections the guest cuts a file into.
const MOST_SECTIONS: usize = 15;

/// Which of the sets of member files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// All members were always there.
    Sound,
    /// raidlab writes while members are out of service.
    Degraded,
    /// As md left them; the guest does not see them.
    Filled,
}

/// What an array is like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) layout: Layout,
    /// Room for data on each member, in KiB.
    pub(crate) rooms: Vec<u64>,
    /// Where data start on each member, in KiB.
    pub(crate) data_offset: u64,
}

/// An array for md and raidlab.
#[derive(Debug)]
pub(crate) struct TestArray {
    /// It is `/dev/md{number}`.
    pub(crate) number: usize,
    pub(crate) layout: Layout,
    /// File and section of each member.
    pub(crate) members: Vec<(usize, usize)>,
    /// Where data start in a section, in KiB.
    pub(crate) data_offset: u64,
    /// Members to do without when reading, in turn; the first time nothing is missing.
    pub(crate) missing: Vec<Vec<u16>>,
    /// Members out of service while the degraded copy is written, one set of them in each round.
    pub(crate) lost: Vec<Vec<u16>>,
    /// Start in its file and size of each member's section, in bytes.
    pub(crate) sections: Vec<(u64, u64)>,
}

/// The arrays of one guest.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    pub(crate) list: Vec<TestArray>,
    /// Sizes of the sections, in KiB.
    sections: Vec<u64>,
}

impl Shape {
    pub(crate) fn new(layout: Layout, rooms: Vec<u64>, data_offset: u64) -> Self {
        Self { layout, rooms, data_offset }
    }

    /// The different sizes of its members, in KiB.
    fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.rooms.iter().map(|room| room + self.data_offset).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

impl Arrays {
    /// The arrays of all shapes, as many in one guest as it has sections for. A sample goes by some
    /// of the losses of each array when reading and by one of them when writing.
    pub(crate) fn new(shapes: Vec<Shape>, extent: Extent) -> Vec<Self> {
        let mut guests: Vec<Self> = Vec::new();
        for shape in shapes {
            let sizes = shape.sizes();
            let full = |arrays: &Self| arrays.sections.len() + sizes.len() > MOST_SECTIONS;
            if guests.last().is_none_or(full) {
                guests.push(Self::default());
            }
            let arrays = guests.last_mut().expect("one was added");
            let first = arrays.sections.len();
            arrays.sections.extend(&sizes);
            arrays.add(shape, &sizes, first, extent);
        }
        guests
    }

    fn add(&mut self, shape: Shape, sizes: &[u64], first: usize, extent: Extent) {
        let Shape { layout, rooms, data_offset } = shape;
        assert!(rooms.len() <= FILES, "{layout}: more members than files");
        let section = |room: &u64| sizes.iter().position(|size| *size == room + data_offset);
        let sections = rooms.iter().map(|room| first + section(room).expect("among the sizes"));
        let members: Vec<(usize, usize)> = sections.enumerate().collect();
        let place = |(_, section): &(usize, usize)| {
            let start: u64 = self.sections[..*section].iter().sum();
            (start << 10, self.sections[*section] << 10)
        };
        let sections = members.iter().map(place).collect();
        let number = self.list.len() + 1;
        let (missing, lost) = (vec![Vec::new()], Vec::new());
        let mut array = TestArray { number, layout, members, data_offset, missing, lost, sections };
        array.choose_losses(extent);
        self.list.push(array);
    }

    /// Sizes of the sections of each file, in bytes.
    pub(crate) fn sections(&self) -> Vec<u64> {
        self.sections.iter().map(|kib| kib << 10).collect()
    }

    /// How often degraded copies are written.
    pub(crate) fn rounds(&self) -> usize {
        self.list.iter().map(|array| array.lost.len()).max().unwrap_or(0).max(1)
    }
}

impl TestArray {
    /// One whose members are files of their own, with room for so many KiB of data on each.
    pub(crate) fn apart(
        number: usize,
        layout: Layout,
        data_offset: u64,
        room: u64,
        extent: Extent,
    ) -> Self {
        let members: Vec<_> = (0..usize::from(layout.members)).map(|file| (file, 0)).collect();
        let sections = vec![(0, (data_offset + room) << 10); members.len()];
        let (missing, lost) = (vec![Vec::new()], Vec::new());
        let mut array = Self { number, layout, members, data_offset, missing, lost, sections };
        array.choose_losses(extent);
        array
    }

    fn choose_losses(&mut self, extent: Extent) {
        let losses = self.survivable();
        // Another one for every array, so that one run has losses of all sorts.
        let other = match extent {
            Extent::All => Extent::All,
            Extent::Sample(sample) => Extent::Sample(sample.wrapping_add(self.number as u32)),
        };
        let writable = losses.iter().filter(|lost| self.md_starts(lost)).cloned().collect();
        self.lost = other.choose(writable, 1);
        self.missing.extend(other.choose(losses, 8));
    }

    /// Room for data on each member.
    pub(crate) fn sizes(&self) -> Vec<Sectors> {
        self.sections.iter().map(|(_, size)| kib((size >> 10) - self.data_offset)).collect()
    }

    /// Where a member's data start in its file, in bytes.
    pub(crate) fn data_start(&self, member: usize) -> u64 {
        self.sections[member].0 + (self.data_offset << 10)
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry::new(&self.layout, &self.sizes()).unwrap_or_else(|error| panic!("{self}: {error}"))
    }

    /// Bytes of the array.
    pub(crate) fn capacity(&self) -> u64 {
        self.geometry().capacity().bytes()
    }

    /// Every member, then every pair of members that the array can do without.
    fn survivable(&self) -> Vec<Vec<u16>> {
        let members = self.layout.members;
        let pairs = (0..members).flat_map(|one| (one + 1..members).map(move |two| vec![one, two]));
        let mut losses: Vec<Vec<u16>> = (0..members).map(|one| vec![one]).chain(pairs).collect();
        let geometry = self.geometry();
        losses.retain(|lost| {
            if self.layout.level != Level::Raid10 {
                return lost.len() <= usize::from(self.layout.survives());
            }
            let chunk = self.layout.chunk.0;
            (0..geometry.capacity().0 / chunk).all(|number| {
                let at = |copy| geometry.place(Sector(number * chunk), copy).member.0;
                (0..geometry.copies()).any(|copy| !lost.contains(&at(copy)))
            })
        });
        losses
    }

    /// Whether md starts the array without these members, which it can do without. md's rule for
    /// raid10 (`_enough` in raid10.c) takes every run of near x far members that begins at a multiple
    /// of near for copies of something; with far sets that is not so, and md refuses too much.
    pub(crate) fn md_starts(&self, lost: &[u16]) -> bool {
        let Layout { members, near, far, .. } = self.layout;
        let present = |first: u16| {
            (0..near * far).any(|step| !lost.contains(&((first * near + step) % members)))
        };
        self.layout.level != Level::Raid10 || (0..members).all(present)
    }

    /// The members that a rebuild brings back: in a run of everything another loss for every array.
    pub(crate) fn rebuilt(&self) -> &[u16] {
        &self.lost[self.number % self.lost.len()]
    }

    /// What md writes into a degraded array: where and how many bytes, in whole blocks.
    pub(crate) fn degraded_writes(&self) -> Vec<(u64, u64)> {
        const WRITES: u64 = 3;
        let capacity = self.capacity();
        let block = |bytes: u64| bytes / 4096 * 4096;
        let len = block(capacity / 7);
        (0..WRITES).map(|n| (block((capacity - len) / (WRITES - 1) * n), len)).collect()
    }

    /// What md does without when it reads the copy written without `lost`: besides that, where
    /// there is redundancy left, each other member too.
    pub(crate) fn missing_beyond(&self, lost: &[u16], extent: Extent) -> Vec<Vec<u16>> {
        let mut missing = vec![lost.to_vec()];
        if self.layout.level == Level::Raid6 && lost.len() == 1 {
            let others = (0..self.layout.members).filter(|member| *member != lost[0]);
            missing.extend(extent.choose(others.map(|other| vec![lost[0], other]).collect(), 2));
        }
        missing
    }
}

impl fmt::Display for TestArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "md{} {} data offset {}K", self.number, self.layout, self.data_offset)
    }
}

/// So many KiB in sectors.
pub(crate) fn kib(kib: u64) -> Sectors {
    Sectors(kib * 2)
}
