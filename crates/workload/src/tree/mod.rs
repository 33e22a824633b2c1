//! Trees of source files by seed, shaped as that of Linux 2.6.13.
//!
//! **An estimate**, no measured distribution: what is known is about 19,000 files and an archive of about
//! 230 MB; 1,100 directories are assumed (17 files each). Sizes are drawn from a distribution close to
//! the lognormal one with sigma 1.35, which puts the mean at 2.5 times the median (4.5 KB where the mean
//! is 11.3 KB), and scaled to the total. Each directory's parent is drawn from the first eighth of those
//! made before, which makes the tree three to four levels deep on average; files favour directories
//! made early, so that some have over a hundred. All in whole numbers, so the same on every machine.

use std::sync::Arc;

use crate::content::file_seed;
use crate::error::WorkloadError;
use crate::parameters::Parameters;
use crate::plan::SeededBytes;
use crate::steps::wrong;
use raidlab_random::{Random, mix};

/// Files of Linux 2.6.13, about.
const FILES: u64 = 19_000;
/// Bytes in them, chosen so that an archive of them has about 230 MB.
const BYTES: u64 = 215_000_000;
/// Files to a directory: 19,000 to 1,100.
const FILES_PER_DIRECTORY: u64 = 17;
/// The name of the tree's directory.
pub(crate) const TOP: &str = "linux-2.6.13";

/// How large a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// How many files.
    pub(crate) files: u64,
    /// Bytes in them together.
    pub(crate) bytes: u64,
}

impl Shape {
    /// From the parameters `files` and `size`.
    pub(crate) fn from(parameters: &mut Parameters) -> Result<Self, WorkloadError> {
        let files = parameters.number("files", FILES, 1..=1_000_000)?;
        // With fewer or more files, as many bytes in each as Linux has.
        let default = (files * BYTES / FILES).max(1);
        let bytes = parameters.size("size", default)?;
        if bytes > 1 << 44 {
            return Err(wrong("size", "is too large; at most 16TiB"));
        }
        Ok(Self { files, bytes })
    }

    /// With so many bytes, and so many more or fewer files as bytes.
    pub(crate) fn resized(self, bytes: u64) -> Result<Self, WorkloadError> {
        if bytes == 0 || bytes > 1 << 44 {
            return Err(wrong("size", "must be more than nothing and at most 16TiB"));
        }
        let files = u128::from(self.files) * u128::from(bytes) / u128::from(self.bytes);
        Ok(Self { files: (files as u64).clamp(1, 1_000_000), bytes })
    }
}

/// A file or directory of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path, from the tree's own directory on: `linux-2.6.13/kdir12/asrc1.c`.
    pub(crate) path: Arc<str>,
    /// What is in it; `None` for a directory.
    pub(crate) bytes: Option<SeededBytes>,
}

/// Files and directories, each directory before what is in it, its entries by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) entries: Vec<Entry>,
}

/// A normal deviate with 16 bits behind the point: twelve even draws less their mean.
fn deviate(random: &mut Random) -> i64 {
    (0..12).map(|_| random.below(1 << 16) as i64).sum::<i64>() - 6 * 0xffff
}

/// 2 to the power `x`, which has 16 bits behind the point; between whole powers by a straight line.
fn power_of_two(x: i64) -> u64 {
    let whole = (x >> 16).clamp(0, 46);
    let part = (x & 0xffff) as u64;
    ((0x1_0000 + part) << whole) >> 16
}

/// Sizes of so many files that add up to `bytes`.
fn sizes(shape: Shape, random: &mut Random) -> Vec<u64> {
    // sigma / ln 2 = 1.9476; a median of 2^20 leaves room on both sides.
    let weigh = |random: &mut Random| power_of_two((20 << 16) + deviate(random) * 19_476 / 10_000);
    let weights: Vec<u64> = (0..shape.files).map(|_| weigh(random)).collect();
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let share = |weight: &u64| (u128::from(shape.bytes) * u128::from(*weight) / all) as u64;
    let mut sizes: Vec<u64> = weights.iter().map(share).collect();
    let rest = shape.bytes - sizes.iter().sum::<u64>();
    if let Some(largest) = sizes.iter_mut().max() {
        *largest += rest;
    }
    sizes
}

/// A name of at most 16 characters, of which the first is the highest byte, with zeroes behind the
/// last: names compare as their text does, and take no memory of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name(u128);

impl Name {
    /// A letter in front, so that files and directories stand between each other by name. The number has
    /// ten digits at most.
    fn new(random: &mut Random, middle: &[u8; 3], number: u64, end: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = b'a' + random.below(26) as u8;
        bytes[1..4].copy_from_slice(middle);
        let behind = 5 + number.checked_ilog10().unwrap_or(0) as usize;
        let mut rest = number;
        for digit in bytes[4..behind].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        bytes[behind..behind + end.len()].copy_from_slice(end);
        Self(u128::from_be_bytes(bytes))
    }

    /// Adds it to a text.
    fn push_to(self, text: &mut String) {
        let bytes = self.0.to_be_bytes();
        let len = bytes.len() - self.0.trailing_zeros() as usize / 8;
        // Letters and digits are text.
        text.push_str(std::str::from_utf8(&bytes[..len]).unwrap_or_default());
    }
}

#[derive(Debug)]
enum Item {
    Directory(usize),
    File(u64),
}

impl Tree {
    /// The tree of this shape from a seed.
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let mut random = Random::new(mix(&[seed, 0x7472_6565]));
        let directories = (shape.files / FILES_PER_DIRECTORY).max(1);
        let mut items: Vec<Vec<(Name, Item)>> = Vec::new();
        items.resize_with(directories as usize, Vec::new);
        for directory in 1..directories {
            let parent = random.below(directory / 8 + 1) as usize;
            let name = Name::new(&mut random, b"dir", directory, b"");
            items[parent].push((name, Item::Directory(directory as usize)));
        }
        let sizes = sizes(shape, &mut random);
        for file in 0..shape.files {
            let bound = random.below(directories) + 1;
            let directory = random.below(bound) as usize;
            let name = Name::new(&mut random, b"src", file, b".c");
            items[directory].push((name, Item::File(file)));
        }
        for directory in &mut items {
            directory.sort_unstable_by_key(|(name, _)| *name);
        }
        Self { entries: walk(items, &sizes, seed) }
    }

    /// Files and what is in them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Arc<str>, SeededBytes)> {
        self.entries.iter().filter_map(|entry| Some((&entry.path, entry.bytes?)))
    }
}

fn walk(mut items: Vec<Vec<(Name, Item)>>, sizes: &[u64], seed: u64) -> Vec<Entry> {
    let top: Arc<str> = TOP.into();
    let mut entries = Vec::with_capacity(items.len() + sizes.len());
    entries.push(Entry { path: top.clone(), bytes: None });
    let mut text = String::new();
    let take = |items: &mut Vec<Vec<(Name, Item)>>, index: usize| {
        std::mem::take(&mut items[index]).into_iter()
    };
    let mut stack = vec![(top, take(&mut items, 0))];
    while let Some((directory, left)) = stack.last_mut() {
        let Some((name, item)) = left.next() else {
            stack.pop();
            continue;
        };
        text.clear();
        text.push_str(directory);
        text.push('/');
        name.push_to(&mut text);
        let path: Arc<str> = text.as_str().into();
        let bytes = match item {
            Item::Directory(index) => {
                stack.push((path.clone(), take(&mut items, index)));
                None
            }
            Item::File(file) => {
                let len = sizes.get(file as usize).copied().unwrap_or(0);
                Some(SeededBytes { seed: file_seed(seed, file), len })
            }
        };
        entries.push(Entry { path, bytes });
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_linux_has_its_shape() {
        let shape = Shape::from(&mut Parameters::default()).expect("defaults");
        let tree = Tree::new(shape, 1);
        assert_eq!(tree, Tree::new(shape, 1));
        assert_ne!(tree, Tree::new(shape, 2));
        let mut sizes: Vec<u64> = tree.files().map(|(_, bytes)| bytes.len).collect();
        let directories = tree.entries.len() - sizes.len();
        assert_eq!((sizes.len(), directories), (19_000, 1_117));
        assert_eq!(sizes.iter().sum::<u64>(), BYTES);
        sizes.sort_unstable();
        let (median, largest) = (sizes[9_500], sizes[18_999]);
        assert!((4_000..5_200).contains(&median), "{median}");
        assert!((300_000..3_000_000).contains(&largest), "{largest}");
        // A lognormal of sigma 1.35 has 16 % beyond 3.86 times the median.
        let above = sizes[18_999 * 84 / 100] as f64 / median as f64;
        assert!((3.5..4.3).contains(&above), "{above}");
        let depths = tree.entries.iter().map(|entry| entry.path.matches('/').count());
        let deepest = depths.max().expect("entries");
        assert!((4..=8).contains(&deepest), "{deepest}");
        assert!(tree.entries.iter().all(|entry| entry.path.len() < 99));
    }

    #[test]
    fn names_compare_as_their_text() {
        let mut random = Random::new(5);
        let numbers = [0, 1, 9, 10, 11, 99, 100, 101, 9_999, 19_000, 123_456, 999_999];
        let named = |number: &u64| {
            let (middle, end) = if number.is_multiple_of(2) { ("src", ".c") } else { ("dir", "") };
            let mut text = String::new();
            let (bytes, number) = (middle.as_bytes().try_into().expect("three"), *number);
            let name = Name::new(&mut random, bytes, number, end.as_bytes());
            name.push_to(&mut text);
            assert_eq!(text[1..], format!("{middle}{number}{end}"));
            (name, text)
        };
        let named: Vec<(Name, String)> = numbers.iter().cycle().take(200).map(named).collect();
        let mut letters: Vec<&str> = named.iter().map(|(_, text)| &text[..1]).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.concat(), "abcdefghijklmnopqrstuvwxyz");
        for (name, text) in &named {
            assert!(named.iter().all(|(one, other)| name.cmp(one) == text.cmp(other)), "{text}");
        }
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let tree = Tree::new(Shape { files: 500, bytes: 1 << 20 }, 3);
        assert_eq!(&*tree.entries[0].path, TOP);
        let mut seen = std::collections::BTreeSet::new();
        for entry in &tree.entries {
            let parent = entry.path.rsplit_once('/').map(|(parent, _)| parent);
            assert!(parent.is_none_or(|parent| seen.contains(parent)), "{}", entry.path);
            assert!(entry.bytes.is_some() || seen.insert(&*entry.path), "{}", entry.path);
        }
    }

    #[test]
    fn small_and_empty_trees_are_trees() {
        for (files, bytes) in [(1, 1), (20, 3), (34, 1 << 40)] {
            let tree = Tree::new(Shape { files, bytes }, 1);
            assert_eq!(tree.files().count() as u64, files);
            assert_eq!(tree.files().map(|(_, bytes)| bytes.len).sum::<u64>(), bytes);
        }
        let shape = Shape { files: 100, bytes: 1000 };
        assert_eq!(shape.resized(5000), Ok(Shape { files: 500, bytes: 5000 }));
        assert_eq!(shape.resized(1), Ok(Shape { files: 1, bytes: 1 }));
        assert!(shape.resized(0).is_err());
    }
}
