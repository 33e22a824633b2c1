//! Sets of files: their names and sizes, which are there at the start, and who uses which while it runs.

use std::collections::BTreeSet;

use raidlab_random::{Random, mix};

use super::draws::gamma;
use super::personality::{SHAPE, SetSpec};
use super::shared::Queue;
use crate::op::{Content, FilePath, Op};
use crate::steps::{blocks, copy_path, make_file_of};

/// A file of a set.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: FilePath,
    /// The size it was drawn to have.
    pub(super) size: u64,
    /// Its bytes, however many it has.
    pub(super) seed: u64,
    /// Somebody opens, closes, deletes or looks it up just now.
    is_busy: bool,
    /// How many have it open.
    open: u32,
}

/// What becomes of a file that was busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Made,
    Opened,
    Closed,
    Deleted,
    LookedUp,
}

/// A file that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// This one, which is busy now.
    File(u32),
    /// All are busy.
    Busy,
    /// There is none.
    Nothing,
}

/// A set.
#[derive(Clone, Debug)]
pub(super) struct FileSet {
    pub(super) spec: SetSpec,
    directories: Vec<FilePath>,
    entries: Vec<Entry>,
    /// Those that are there at the start, in the order in which they are made.
    made: Vec<u32>,
    there: BTreeSet<u32>,
    absent: BTreeSet<u32>,
    /// Where to look for the next that is absent, and for each rotor for the next that is there.
    absent_rotor: u32,
    rotors: Vec<u32>,
    /// Who waits until a file is no longer busy.
    waiting: Vec<Queue>,
}

impl FileSet {
    /// The set of a copy, drawn from a seed; so many rotors are there.
    pub(super) fn new(spec: SetSpec, copy: u32, seed: u64, rotors: usize) -> Self {
        let mut set = Self {
            spec,
            directories: Vec::new(),
            entries: Vec::new(),
            made: Vec::new(),
            there: BTreeSet::new(),
            absent: (0..spec.files as u32).collect(),
            absent_rotor: 0,
            rotors: vec![0; rotors],
            waiting: Vec::new(),
        };
        let mut random = Random::new(seed);
        let depth = libm::log(spec.files as f64) / libm::log(spec.width as f64);
        set.populate(&mut random, copy, depth, (0, String::new()));
        for (index, entry) in set.entries.iter_mut().enumerate() {
            entry.seed = mix(&[seed, index as u64]);
        }
        // filebench makes them in a random order, so that neighbours in a directory are none on the drive.
        let mut order: Vec<u32> = (0..spec.files as u32).collect();
        random.shuffle(&mut order);
        set.made = order.into_iter().filter(|_| random.below(100) < spec.share).collect();
        set.there = set.made.iter().copied().collect();
        set.absent = set.absent.difference(&set.there).copied().collect();
        set
    }

    /// A directory with what is in it: as filebench does, of a depth and a width that are drawn anew for each, with
    /// directories until it is deep enough and files then. The one at the top goes on until there are enough.
    fn populate(
        &mut self,
        random: &mut Random,
        copy: u32,
        mean: f64,
        (above, name): (u32, String),
    ) {
        let depth = above + 1;
        self.directories.push(copy_path(self.spec.name, copy, &name));
        let deep = (gamma(random, mean.max(f64::MIN_POSITIVE), SHAPE) as u32).max(1);
        let wide = gamma(random, self.spec.width as f64, SHAPE);
        let is_top = above == 0;
        let mut number = 1u32;
        while (self.entries.len() as u64) < self.spec.files
            && (is_top || f64::from(number) < wide + 1.0)
        {
            let inner = format!("{name}/{number:08}");
            if is_top || depth < deep {
                self.populate(random, copy, mean, (depth, inner));
            } else {
                let size = match self.spec.varies {
                    true => gamma(random, self.spec.size as f64, SHAPE) as u64,
                    false => self.spec.size,
                };
                let path = copy_path(self.spec.name, copy, &inner);
                self.entries.push(Entry { path, size, seed: 0, is_busy: false, open: 0 });
            }
            number += 1;
        }
    }

    /// What makes directories and files before the run.
    pub(super) fn prepare(&self) -> impl Iterator<Item = Op> + use<> {
        let directories = self.directories.clone().into_iter();
        let files: Vec<Entry> = self.made.iter().map(|at| self.entry(*at).clone()).collect();
        let file = |entry: Entry| make_file_of(entry.path.clone(), entry.size, entry.content());
        directories.map(|path| Op::Mkdir { path }).chain(files.into_iter().flat_map(file))
    }

    pub(super) fn entry(&self, file: u32) -> &Entry {
        &self.entries[file as usize]
    }

    /// Those that are there.
    pub(super) fn there(&self) -> impl Iterator<Item = &Entry> {
        self.there.iter().map(|file| self.entry(*file))
    }

    /// Bytes on a filesystem if all are there, each written in whole pieces of so many bytes, and with an append of so
    /// many.
    pub(super) fn room(&self, piece: u64, append: u64) -> u64 {
        let whole = |size: u64| size.div_ceil(piece.max(1)).saturating_mul(size.min(piece));
        let files =
            self.entries.iter().map(|entry| blocks(entry.size.max(whole(entry.size)) + append));
        files.sum::<u64>() + self.directories.len() as u64 * 4096
    }

    /// The next that is there, by a rotor, or the next that is not.
    pub(super) fn pick(&mut self, rotor: Option<usize>) -> Picked {
        let (from, files) = match rotor {
            Some(rotor) => (&mut self.rotors[rotor], &self.there),
            None => (&mut self.absent_rotor, &self.absent),
        };
        let Some(start) = files.range(*from..).next().or_else(|| files.first()).copied() else {
            return Picked::Nothing;
        };
        *from = start + 1;
        let entries = &mut self.entries;
        let mut all = files.range(start..).chain(files.range(..start));
        match all.find(|file| !entries[**file as usize].is_busy) {
            Some(file) => {
                entries[*file as usize].is_busy = true;
                Picked::File(*file)
            }
            None => Picked::Busy,
        }
    }

    /// Makes a file that is open busy; says whether it was not.
    pub(super) fn take(&mut self, file: u32) -> bool {
        !std::mem::replace(&mut self.entries[file as usize].is_busy, true)
    }

    pub(super) fn is_open(&self, file: u32) -> bool {
        self.entry(file).open > 0
    }

    /// Lets a process wait until a file is no longer busy.
    pub(super) fn wait(&mut self, queue: Queue) {
        self.waiting.push(queue);
    }

    /// A file is no longer busy; gives those who waited for one.
    pub(super) fn release(&mut self, file: u32, change: Change) -> Vec<Queue> {
        let entry = &mut self.entries[file as usize];
        entry.is_busy = false;
        match change {
            Change::Made => {
                entry.open += 1;
                self.absent.remove(&file);
                self.there.insert(file);
            }
            Change::Opened => entry.open += 1,
            Change::Closed => entry.open -= 1,
            Change::Deleted => {
                self.there.remove(&file);
                self.absent.insert(file);
            }
            Change::LookedUp => {}
        }
        self.woken()
    }

    /// All who wait.
    pub(super) fn woken(&mut self) -> Vec<Queue> {
        std::mem::take(&mut self.waiting)
    }
}

impl Entry {
    /// What is written to it, wherever.
    pub(super) const fn content(&self) -> Content {
        Content::Seeded { seed: self.seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: SetSpec = SetSpec {
        name: "set",
        files: 2_000,
        size: 131_072,
        varies: true,
        width: 20,
        share: 80,
        is_read_only: false,
    };

    fn set(spec: SetSpec) -> FileSet {
        FileSet::new(spec, 0, 3, 2)
    }

    #[test]
    fn sets_have_as_many_files_as_they_say_of_drawn_sizes_in_directories_of_a_width() {
        let made = set(SPEC);
        assert_eq!(made.entries.len(), 2_000);
        let mean = made.entries.iter().map(|entry| entry.size).sum::<u64>() / 2_000;
        assert!((122_000..140_000).contains(&mean), "{mean}");
        let square = |entry: &Entry| (entry.size as f64 - mean as f64).powi(2);
        let variance = made.entries.iter().map(square).sum::<f64>() / 2_000.0;
        let shape = (mean * mean) as f64 / variance;
        assert!((1.35..1.65).contains(&shape), "{shape}");
        let there = made.there().count();
        assert!((1_550..1_650).contains(&there), "four fifths of them: {there}");
        assert_eq!(there + made.absent.len(), 2_000);
        // A directory has 20 entries in the mean; the last ones are cut short.
        let entries = made.entries.len() + made.directories.len() - 1;
        let width = entries as f64 / made.directories.len() as f64;
        assert!((10.0..22.0).contains(&width), "{width}");
        let alike = set(SetSpec { varies: false, share: 100, ..SPEC });
        assert!(alike.entries.iter().all(|entry| entry.size == 131_072));
        assert_eq!((alike.there().count(), alike.absent.len()), (2_000, 0));
        let one = set(SetSpec { width: 1_000_000, ..SPEC });
        assert_eq!(one.directories.len(), 2, "the set's own, and one for all files");
    }

    /// The laws of depth and width, by the first directory of many sets of 20 squared files, whose mean depth is 2: it
    /// holds files where less than 3 was drawn, and its entries are those of the law of width, rounded up.
    #[test]
    fn directories_are_as_deep_and_as_wide_as_drawn() {
        let (sets, mut widths) = (2_000_u64, Vec::new());
        for seed in 0..sets {
            let set = FileSet::new(SetSpec { files: 400, share: 0, ..SPEC }, 0, seed, 1);
            let first = format!("{}/", set.directories[1]);
            let inner =
                set.directories.iter().skip(2).any(|one| one.to_string().starts_with(&first));
            let files = set.entries.iter().filter(|one| one.path.to_string().starts_with(&first));
            if !inner {
                widths.push(files.count() as f64);
            }
        }
        assert!(widths.iter().all(|width| *width > 0.0), "none is empty");
        // Gamma of shape 1.5 and mean 2, below 3: erf(sqrt(x)) - 2 sqrt(x / pi) exp(-x) for x = 2.25.
        let share = widths.len() as f64 / sets as f64;
        assert!((share - 0.787_7).abs() < 0.027, "three deviations: {share}");
        let count = widths.len() as f64;
        let mean = widths.iter().sum::<f64>() / count;
        assert!((mean - 20.5).abs() < 1.0, "{mean}");
        let square = widths.iter().map(|width| (width - mean).powi(2)).sum::<f64>();
        let shape = mean * mean / (square / count);
        assert!((1.35..1.75).contains(&shape), "{shape}");
    }

    #[test]
    fn four_fifths_are_there_made_in_no_order() {
        let set = set(SetSpec { files: 100_000, ..SPEC });
        // Five deviations of the binomial law are 632.
        assert!(set.made.len().abs_diff(80_000) < 633, "{}", set.made.len());
        assert!(!set.made.is_sorted());
        // About every second is followed by one before it.
        let back = set.made.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(back.abs_diff(40_000) < 1_000, "{back}");
    }

    #[test]
    fn what_is_drawn_comes_from_the_seed() {
        let texts = |seed| {
            let set = FileSet::new(SPEC, 0, seed, 1);
            format!("{:?} {:?}", set.prepare().take(300).collect::<Vec<Op>>(), set.made)
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }

    #[test]
    fn files_are_taken_in_turn_and_nobody_gets_a_busy_one() {
        let mut set = set(SetSpec { files: 3, share: 100, ..SPEC });
        let picked = [0, 0, 1].map(|rotor| set.pick(Some(rotor)));
        // The second rotor begins anew, and goes past the two that are busy.
        assert_eq!(picked, [Picked::File(0), Picked::File(1), Picked::File(2)]);
        assert_eq!(set.pick(Some(0)), Picked::Busy);
        assert_eq!(set.pick(None), Picked::Nothing, "all are there");
        set.wait(9);
        assert_eq!(set.release(0, Change::Opened), [9]);
        assert!(set.release(1, Change::Deleted).is_empty());
        assert!(set.release(2, Change::LookedUp).is_empty());
        assert!(set.is_open(0) && !set.is_open(2));
        assert_eq!(set.pick(None), Picked::File(1), "which is not there any more");
        assert_eq!(set.pick(Some(0)), Picked::File(0));
        assert!(!set.take(0), "it is busy");
        assert!(set.release(1, Change::Made).is_empty());
        assert!(set.is_open(1));
        set.release(0, Change::LookedUp);
        assert_eq!(set.pick(Some(0)), Picked::File(1), "the next");
        assert!(set.release(1, Change::LookedUp).is_empty() && set.take(0));
        set.release(0, Change::Closed);
        assert!(!set.is_open(0) && set.take(0));
    }
}
