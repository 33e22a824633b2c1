//! The arrays, and where their members lie in the files.
//!
//! Every file is cut into the same sections. The sizes leave some room at the end of the members, so
//! that rounding counts, and an array holds about 6 MiB, so that it can be read as a whole.

use std::fmt;

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, Level, Sectors};

/// How many files there are of each [`Set`].
pub(crate) const FILES: usize = 5;

/// Which of the two sets of member files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// All members were always there.
    Sound,
    /// raidlab writes while members are out of service.
    Degraded,
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
    /// Members to do without when reading, in turn.
    pub(crate) missing: &'static [&'static [u16]],
    /// Members out of service while the degraded copy is written; none: there is no such copy.
    pub(crate) lost: &'static [u16],
    /// Start in its file and size of each member's section, in bytes.
    pub(crate) sections: Vec<(u64, u64)>,
}

/// The arrays of one test.
#[derive(Debug)]
pub(crate) struct Arrays {
    pub(crate) list: Vec<TestArray>,
    /// Sizes of the sections, in KiB.
    sections: Vec<u64>,
}

const WHOLE: &[u16] = &[];

impl Arrays {
    /// linear, raid0, raid1 and raid10, also of members of several sizes and with an odd number.
    pub(crate) fn without_parity() -> Self {
        let mut arrays = Self::cut(&[3300, 2620, 6144, 7168, 4132, 3412, 4812]);
        let linear = Layout::new(Level::Linear, 3).with_chunk(kib(64));
        arrays.add_at(linear, vec![(0, 0), (1, 0), (3, 2)], 1024);
        arrays.add(1, striped(Level::Raid0, 4, 64), 1024);
        // 23 chunks of each, then two members go on: the second zone starts on the second of them.
        arrays.add_at(striped(Level::Raid0, 3, 64), vec![(2, 0), (4, 1), (3, 0)], 1088);
        let two = arrays.add(2, Layout::new(Level::Raid1, 2), 1024);
        (two.missing, two.lost) = (&[WHOLE, &[0], &[1]], &[0]);
        let three = arrays.add(3, Layout::new(Level::Raid1, 3), 2048);
        (three.missing, three.lost) = (&[WHOLE, &[0, 1], &[0, 2], &[1, 2]], &[1]);
        let four = arrays.add(4, striped(Level::Raid10, 4, 64), 1024);
        four.missing = &[WHOLE, &[0], &[1], &[2], &[3], &[0, 2], &[1, 3]];
        four.lost = &[0, 3];
        let five = arrays.add(5, striped(Level::Raid10, 5, 64), 1024);
        (five.missing, five.lost) = (&[WHOLE, &[0], &[1], &[2], &[3], &[4]], &[4]);
        let near3 = arrays.add(6, striped(Level::Raid10, 5, 64).with_near(3), 1024);
        (near3.missing, near3.lost) = (&[WHOLE, &[0, 1], &[2, 3], &[0, 4]], &[1, 2]);
        arrays
    }

    /// raid5 of 3, 4 and 5 members; also with a chunk longer than what the core plans at once.
    pub(crate) fn raid5() -> Self {
        let mut arrays = Self::cut(&[4164, 3100, 2600, 5140]);
        let three = arrays.add(0, striped(Level::Raid5, 3, 128), 1032);
        (three.missing, three.lost) = (&[WHOLE, &[0], &[1], &[2]], &[1]);
        let four = arrays.add(1, striped(Level::Raid5, 4, 64), 1024);
        (four.missing, four.lost) = (&[WHOLE, &[0], &[1], &[2], &[3]], &[2]);
        let five = arrays.add(2, striped(Level::Raid5, 5, 64), 1024);
        (five.missing, five.lost) = (&[WHOLE, &[0], &[1], &[2], &[3], &[4]], &[4]);
        let long = arrays.add(3, striped(Level::Raid5, 3, 2048), 1024);
        (long.missing, long.lost) = (&[WHOLE, &[0], &[1], &[2]], &[2]);
        arrays
    }

    fn cut(sections: &[u64]) -> Self {
        Self { list: Vec::new(), sections: sections.to_vec() }
    }

    /// An array of the given section of the first files.
    fn add(&mut self, section: usize, layout: Layout, data_offset: u64) -> &mut TestArray {
        let members = (0..usize::from(layout.members)).map(|file| (file, section)).collect();
        self.add_at(layout, members, data_offset)
    }

    fn add_at(
        &mut self,
        layout: Layout,
        members: Vec<(usize, usize)>,
        data_offset: u64,
    ) -> &mut TestArray {
        let mut taken = self.list.iter().flat_map(|array| &array.members);
        assert!(taken.all(|one| !members.contains(one)), "a section is in two arrays");
        let section = |(_, section): &(usize, usize)| {
            let start: u64 = self.sections[..*section].iter().sum();
            (start << 10, self.sections[*section] << 10)
        };
        let sections = members.iter().map(section).collect();
        let number = self.list.len() + 1;
        let (missing, lost) = (&[WHOLE][..], WHOLE);
        let array = TestArray { number, layout, members, data_offset, missing, lost, sections };
        self.list.push(array);
        self.list.last_mut().expect("one was added")
    }

    /// Sizes of the sections of each file, in bytes.
    pub(crate) fn sections(&self) -> Vec<u64> {
        self.sections.iter().map(|kib| kib << 10).collect()
    }
}

impl TestArray {
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
}

impl fmt::Display for TestArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "md{} {} data offset {}K", self.number, self.layout, self.data_offset)
    }
}

fn striped(level: Level, members: u16, chunk: u64) -> Layout {
    Layout::new(level, members).with_chunk(kib(chunk))
}

fn kib(kib: u64) -> Sectors {
    Sectors(kib * 2)
}
