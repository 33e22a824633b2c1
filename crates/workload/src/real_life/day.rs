//! What is done to which file, and what must be done before.

use crate::content::file_seed;
use crate::plan::SeededBytes;
use raidlab_random::{Random, mix};

/// What is done to files, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Read to its end.
    Read(usize),
    /// One is copied into the other.
    Copy { from: usize, to: usize },
    /// The name is removed.
    Delete(usize),
    /// Written from start to end.
    Rewrite { file: usize, bytes: SeededBytes },
}

/// A step of the day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayStep {
    pub(super) action: Action,
    /// How many earlier steps it waits for.
    pub(super) waits: u32,
    /// The later steps that wait for it.
    pub(super) tells: Vec<usize>,
}

/// All that is done.
#[derive(Clone, Debug)]
pub(super) struct Day {
    /// What the files hold at first.
    pub(super) first: Vec<SeededBytes>,
    pub(super) steps: Vec<DayStep>,
    /// What they hold in the end; nothing where there is no such file.
    pub(super) last: Vec<Option<SeededBytes>>,
    /// Bytes of all files together, each at its longest.
    pub(super) room: u64,
}

/// The sorts of actions, before files are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Read,
    Copy,
    Delete,
    Rewrite,
}

/// Who used a file since it was last changed.
#[derive(Clone, Debug, Default)]
struct Uses {
    changed: Option<usize>,
    read: Vec<usize>,
}

impl Day {
    pub(super) fn new(files: u32, operations: u32, smallest: u64, largest: u64, seed: u64) -> Self {
        let first: Vec<SeededBytes> = (0..files)
            .map(|file| SeededBytes {
                seed: file_seed(seed, u64::from(file)),
                len: length(file, files, smallest, largest),
            })
            .collect();
        let mut random = Random::new(mix(&[seed]));
        let sorts = [Sort::Read, Sort::Copy, Sort::Delete, Sort::Rewrite];
        let mut deck: Vec<Sort> = sorts.into_iter().cycle().take(operations as usize).collect();
        random.shuffle(&mut deck);
        let mut last: Vec<Option<SeededBytes>> = first.iter().copied().map(Some).collect();
        let mut longest: Vec<u64> = first.iter().map(|bytes| bytes.len).collect();
        let mut actions = Vec::with_capacity(deck.len());
        for (index, sort) in deck.into_iter().enumerate() {
            // Contents of files have the seeds below `files`; those of rewrites come behind.
            let fresh = file_seed(seed, u64::from(files) + index as u64);
            let action = choose(sort, &first, &last, fresh, &mut random);
            apply(action, &mut last);
            for (longest, bytes) in longest.iter_mut().zip(&last) {
                *longest = (*longest).max(bytes.map_or(0, |bytes| bytes.len));
            }
            actions.push(action);
        }
        let room = longest.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        Self { steps: order(&actions, first.len()), first, last, room }
    }
}

/// The length of a file: about the same factor from each to the next. Within a doubling it rises evenly,
/// so that whole numbers are enough.
fn length(file: u32, files: u32, smallest: u64, largest: u64) -> u64 {
    if file + 1 == files {
        return largest;
    }
    let doublings = u64::from((largest / smallest).ilog2());
    // In 65536ths of a doubling.
    let exponent = (u64::from(file) << 16) * doublings / u64::from(files - 1);
    let low = smallest << (exponent >> 16);
    let part = u128::from(low) * u128::from(exponent & 0xffff);
    low + (part >> 16) as u64
}

fn choose(
    sort: Sort,
    first: &[SeededBytes],
    last: &[Option<SeededBytes>],
    fresh: u64,
    random: &mut Random,
) -> Action {
    let of = |is_there: bool| -> Vec<usize> {
        (0..last.len()).filter(|file| last[*file].is_some() == is_there).collect()
    };
    let (there, gone) = (of(true), of(false));
    let pick = |from: &[usize], random: &mut Random| from[random.below(from.len() as u64) as usize];
    match sort {
        Sort::Read => Action::Read(pick(&there, random)),
        Sort::Copy => {
            let from = pick(&there, random);
            let others: Vec<usize> = (0..last.len()).filter(|file| *file != from).collect();
            Action::Copy { from, to: pick(&others, random) }
        }
        // At least one file is left, as there are at least two.
        Sort::Delete if (there.len() - 1) * 2 >= last.len() => Action::Delete(pick(&there, random)),
        Sort::Delete | Sort::Rewrite => {
            let file = pick(if gone.is_empty() { &there } else { &gone }, random);
            let len = last[file].map_or(first[file].len, |bytes| bytes.len);
            Action::Rewrite { file, bytes: SeededBytes { seed: fresh, len } }
        }
    }
}

fn apply(action: Action, files: &mut [Option<SeededBytes>]) {
    match action {
        Action::Read(_) => {}
        Action::Copy { from, to } => files[to] = files[from],
        Action::Delete(file) => files[file] = None,
        Action::Rewrite { file, bytes } => files[file] = Some(bytes),
    }
}

/// The steps, each with what it waits for.
fn order(actions: &[Action], files: usize) -> Vec<DayStep> {
    let step = |action: &Action| DayStep { action: *action, waits: 0, tells: Vec::new() };
    let mut steps: Vec<DayStep> = actions.iter().map(step).collect();
    let mut uses = vec![Uses::default(); files];
    for (index, action) in actions.iter().enumerate() {
        let (read, changed) = match *action {
            Action::Read(file) => (Some(file), None),
            Action::Copy { from, to } => (Some(from), Some(to)),
            Action::Delete(file) | Action::Rewrite { file, .. } => (None, Some(file)),
        };
        let mut before: Vec<usize> = Vec::new();
        if let Some(file) = read {
            before.extend(uses[file].changed);
            uses[file].read.push(index);
        }
        if let Some(file) = changed {
            let used =
                std::mem::replace(&mut uses[file], Uses { changed: Some(index), read: Vec::new() });
            before.extend(used.changed.into_iter().chain(used.read));
        }
        before.sort_unstable();
        before.dedup();
        steps[index].waits = before.len() as u32;
        before.into_iter().for_each(|earlier| steps[earlier].tells.push(index));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_wait_for_what_they_depend_on() {
        let bytes = SeededBytes { seed: 1, len: 1 };
        let actions = [
            Action::Read(0),
            Action::Copy { from: 0, to: 1 },
            Action::Rewrite { file: 0, bytes }, // behind both readers
            Action::Delete(1),                  // behind what made it
            Action::Read(2),
            Action::Read(0),
        ];
        let steps = order(&actions, 3);
        let tells: Vec<&[usize]> = steps.iter().map(|step| &step.tells[..]).collect();
        assert_eq!(tells, [&[2][..], &[2, 3], &[5], &[], &[], &[]]);
        let waits: Vec<u32> = steps.iter().map(|step| step.waits).collect();
        assert_eq!(waits, [0, 0, 2, 1, 0, 1]);
    }

    #[test]
    fn sizes_differ_and_reach_both_ends() {
        let sizes: Vec<u64> = (0..15).map(|file| length(file, 15, 1 << 20, 64 << 20)).collect();
        assert_eq!((sizes[0], sizes[7], sizes[14]), (1 << 20, 8 << 20, 64 << 20));
        assert!(
            sizes.windows(2).all(|pair| pair[0] < pair[1] && pair[1] < pair[0] * 2),
            "{sizes:?}"
        );
        assert_eq!(length(1, 2, 3, 100), 100);
    }

    #[test]
    fn no_step_uses_what_is_not_there() {
        for seed in 0..200 {
            let day = Day::new(2 + seed as u32 % 9, 120, 10, 1000, seed);
            let mut files: Vec<Option<SeededBytes>> = day.first.iter().copied().map(Some).collect();
            let mut counts = [0; 4];
            for step in &day.steps {
                let (sort, used) = match step.action {
                    Action::Read(file) => (0, Some(file)),
                    Action::Copy { from, to } => {
                        assert_ne!(from, to);
                        (1, Some(from))
                    }
                    Action::Delete(file) => (2, Some(file)),
                    Action::Rewrite { .. } => (3, None),
                };
                counts[sort] += 1;
                assert!(used.is_none_or(|file| files[file].is_some()), "{step:?}");
                apply(step.action, &mut files);
            }
            assert_eq!(files, day.last);
            assert_eq!((counts[0], counts[1], counts[2] + counts[3]), (30, 30, 60));
            assert!(counts[2] > 0 && day.last.iter().flatten().count() * 2 >= day.first.len());
        }
    }
}
