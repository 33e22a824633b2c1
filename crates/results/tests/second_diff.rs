//! Two documents against each other, by a second computation: ways to deal the rounds of both out to two runs counted
//! one by one, signs of pairs by Pascal's triangle, both procedures of the corrections as their papers have them.

use crate::support::{Random, cell, document};
use raidlab_results::diff::{Change, Diff, FALSE_SHARE};
use raidlab_results::{Better, Cell, CellDiff, Clock, Results};

/// The chances of at most 0, 1, 2 .. of so many coins.
fn heads_at_most(coins: usize) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..coins {
        let at = |at: usize| row.get(at).copied().unwrap_or(0.0);
        let next = (0..=row.len()).map(|one| at(one) + if one > 0 { at(one - 1) } else { 0.0 });
        row = next.collect();
    }
    summed(&row)
}

/// Of all ways to deal ranks out to runs of so many rounds, the shares in which at most 0, 1, 2 .. pairs of one of each
/// have the second below.
fn pairs_at_most(one: usize, other: usize) -> Vec<f64> {
    let mut ways = vec![0.0; one * other + 1];
    for hand in (0_u32..1 << (one + other)).filter(|hand| hand.count_ones() as usize == other) {
        let is_second = |at: usize| hand >> at & 1 == 1;
        let (mut below, mut pairs) = (0, 0);
        for at in 0..one + other {
            if is_second(at) { below += 1 } else { pairs += below }
        }
        ways[pairs] += 1.0;
    }
    summed(&ways)
}

fn summed(ways: &[f64]) -> Vec<f64> {
    let all: f64 = ways.iter().sum();
    (0..ways.len()).map(|at| ways[..=at].iter().sum::<f64>() / all).collect()
}

/// What a cell's rounds tell: differences of logarithms, better ones above 0, and the chance of at most so many on the
/// wrong side.
struct Signs<'a> {
    sorted: Vec<f64>,
    at_most: &'a [f64],
}

impl<'a> Signs<'a> {
    fn of(before: &Cell, after: &Cell, paired: bool, at_most: &'a [f64]) -> Self {
        let up = if before.better == Better::Higher { 1.0 } else { -1.0 };
        let log = |one: f64, other: f64| up * (libm::log(other) - libm::log(one));
        let (one, other) = (&before.samples, &after.samples);
        let mut sorted: Vec<f64> = if paired {
            one.iter().zip(other).map(|(one, other)| log(*one, *other)).collect()
        } else {
            one.iter().flat_map(|one| other.iter().map(move |other| log(*one, *other))).collect()
        };
        sorted.sort_by(f64::total_cmp);
        Self { sorted, at_most }
    }

    /// So many on the wrong side, or equal to the bound, which speaks against a difference. Beyond the middle it shows
    /// nothing.
    fn chance(&self, wrong: usize) -> f64 {
        if wrong < self.sorted.len() / 2 { self.at_most[wrong] } else { 1.0 }
    }

    fn above(&self, bound: f64) -> f64 {
        self.chance(self.sorted.iter().filter(|one| **one <= bound).count())
    }

    fn below(&self, bound: f64) -> f64 {
        self.chance(self.sorted.iter().filter(|one| **one >= bound).count())
    }

    fn middle(&self) -> f64 {
        let half = self.sorted.len() / 2;
        match self.sorted.len() % 2 {
            1 => self.sorted[half],
            _ => (self.sorted[half - 1] + self.sorted[half]) / 2.0,
        }
    }

    /// As far in as both ends together miss with at most this chance.
    fn interval(&self, chance: f64) -> Option<[f64; 2]> {
        let half = self.sorted.len() / 2;
        let inner = (0..half).rev().find(|out| 2.0 * self.at_most[*out] <= chance)?;
        Some([self.sorted[inner], self.sorted[self.sorted.len() - 1 - inner]])
    }
}

/// Step-up: from the largest chance down, each at most m / rank times it and never more than one that is larger.
fn corrected(chances: &[f64]) -> Vec<f64> {
    let of = |own: &f64| {
        let larger = chances.iter().filter(|one| **one >= *own);
        larger
            .map(|one| {
                let rank = chances.iter().filter(|other| **other <= *one).count();
                one * chances.len() as f64 / rank as f64
            })
            .fold(1.0, f64::min)
    };
    chances.iter().map(of).collect()
}

/// Draws documents of some cells: of each by how much it moved, and which way is better.
fn documents(random: &mut Random, clock: Clock, rounds: [usize; 2]) -> (Results, Results) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for at in 0..4 + random.next() % 8 {
        let pick =
            |random: &mut Random, all: &[f64]| all[(random.next() % all.len() as u64) as usize];
        let moved = pick(random, &[1.0, 1.0, 1.004, 1.05, 0.9, 1.3, 0.6]);
        let noise = pick(random, &[0.0003, 0.002, 0.02, 0.1]);
        let better = if random.next().is_multiple_of(2) { Better::Higher } else { Better::Lower };
        let mut run = |count: usize, level: f64| -> Vec<f64> {
            (0..count).map(|_| level * libm::exp(noise * random.normal())).collect()
        };
        let (before, after) = (run(rounds[0], 100.0), run(rounds[1], 100.0 * moved));
        let of = |samples: &[f64]| Cell { better, ..cell(&format!("{at:02}"), samples) };
        one.push(of(&before));
        other.push(of(&after));
    }
    (document(clock, one), document(clock, other))
}

fn near(found: f64, expected: f64, what: &str) {
    let is_near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(is_near, "{what}: {found}, not {expected}");
}

fn check(
    (before, after): (&Results, &Results),
    at_most: &[f64],
    diff: &Diff,
    floor: f64,
    seen: &mut [u32; 4],
) {
    let paired = before.clock == Clock::Virtual;
    let log_floor = libm::log1p(floor / 100.0);
    let told: Vec<Signs> = before
        .cells
        .iter()
        .zip(&after.cells)
        .map(|(one, other)| Signs::of(one, other, paired, at_most))
        .collect();
    let twice = |chance: f64| (2.0 * chance).min(1.0);
    let moved: Vec<f64> =
        told.iter().map(|one| twice(one.above(log_floor).min(one.below(-log_floor)))).collect();
    let equal: Vec<f64> =
        told.iter().map(|one| twice(one.above(-log_floor).max(one.below(log_floor)))).collect();
    let (moved_corrected, equal) = (corrected(&moved), corrected(&equal));
    let called = moved_corrected.iter().filter(|chance| **chance <= FALSE_SHARE).count();
    let level = FALSE_SHARE * called.max(1) as f64 / told.len() as f64;
    assert_eq!(diff.cells.len(), told.len());
    for (at, one) in told.iter().enumerate() {
        let (before, after) = (&before.cells[at], &after.cells[at]);
        let is_it = |cell: &&CellDiff| cell.name.layout == before.layout;
        let found = diff.cells.iter().find(is_it).expect("in both");
        assert_eq!((found.before, found.after), (before.median, after.median));
        assert_eq!(found.rounds, [before.samples.len(), after.samples.len()]);
        assert_eq!(
            (found.paired, found.better, found.floor_percent),
            (paired, before.better, floor)
        );
        let up = if before.better == Better::Higher { 1.0 } else { -1.0 };
        let percent = |log: f64| libm::expm1(up * log) * 100.0;
        near(found.percent.expect("known"), percent(one.middle()), "change");
        near(found.chance.expect("tested"), moved[at], "chance");
        near(found.chance_corrected.expect("tested"), moved_corrected[at], "corrected");
        let interval = one.interval(level).map(|ends| {
            let mut ends = ends.map(percent);
            ends.sort_by(f64::total_cmp);
            ends
        });
        assert_eq!(found.percent_interval.is_some(), interval.is_some());
        for (found, expected) in
            found.percent_interval.iter().flatten().zip(interval.iter().flatten())
        {
            near(*found, *expected, "interval");
        }
        let (verdict, place) = match () {
            () if moved_corrected[at] <= FALSE_SHARE && one.middle() < 0.0 => {
                (Change::Regressed, 0)
            }
            () if moved_corrected[at] <= FALSE_SHARE => (Change::Improved, 1),
            () if equal[at] <= FALSE_SHARE => (Change::Equal, 2),
            () => (Change::NotResolved, 3),
        };
        assert_eq!(found.verdict, Some(verdict), "{found:?}");
        seen[place] += 1;
    }
    let effect = |cell: &CellDiff| libm::log1p(cell.percent.unwrap_or(0.0) / 100.0).abs();
    assert!(diff.cells.is_sorted_by(|one, other| effect(one) >= effect(other)), "largest first");
}

#[test]
fn what_is_said_of_two_documents_is_what_the_words_say() {
    let mut random = Random::new(42);
    for (clock, rounds) in [
        (Clock::Virtual, [8, 8]),
        (Clock::Virtual, [11, 11]),
        (Clock::Real, [6, 6]),
        (Clock::Real, [5, 7]),
        (Clock::Real, [7, 4]),
    ] {
        let mut seen = [0; 4];
        let at_most = match clock {
            Clock::Virtual => heads_at_most(rounds[0]),
            Clock::Real => pairs_at_most(rounds[0], rounds[1]),
        };
        for _ in 0..25 {
            let (before, after) = documents(&mut random, clock, rounds);
            let documents = [&before, &after].map(std::slice::from_ref);
            for floor in [1.0, 3.0] {
                let diff = Diff::of(("a", documents[0]), ("b", documents[1]), Some(floor));
                check((&before, &after), &at_most, &diff, floor, &mut seen);
            }
        }
        assert!(seen.iter().all(|count| *count >= 10), "{clock:?} {rounds:?}: {seen:?}");
    }
}

/// A residual stands for itself: its interval is no wider for what others show.
#[test]
fn intervals_of_residuals_are_at_95_percent_however_many_there_are() {
    let mut random = Random::new(7);
    let (mut modelled, _) = documents(&mut random, Clock::Virtual, [6, 6]);
    let (mut measured, _) = documents(&mut random, Clock::Real, [6, 6]);
    let count = modelled.cells.len().min(measured.cells.len());
    modelled.cells.truncate(count);
    measured.cells.truncate(count);
    for (one, other) in modelled.cells.iter_mut().zip(&measured.cells) {
        one.better = other.better;
    }
    let diff = Diff::of(
        ("m", std::slice::from_ref(&measured)),
        ("v", std::slice::from_ref(&modelled)),
        None,
    );
    let at_most = pairs_at_most(6, 6);
    for (at, cell) in measured.cells.iter().enumerate() {
        let told = Signs::of(cell, &modelled.cells[at], false, &at_most);
        let found = diff.cells.iter().find(|one| one.name.layout == cell.layout).expect("in both");
        let up = if cell.better == Better::Higher { 1.0 } else { -1.0 };
        let ends = told.interval(FALSE_SHARE).expect("six rounds");
        let mut ends = ends.map(|log| libm::expm1(up * log) * 100.0);
        ends.sort_by(f64::total_cmp);
        let found = found.percent_interval.expect("six rounds");
        near(found[0], ends[0], "low");
        near(found[1], ends[1], "high");
    }
}

/// What else differs is told of each thing, in both directions, by what was before and what is after.
#[test]
fn everything_that_differs_besides_is_told() {
    let base = document(Clock::Real, vec![cell("one", &[1.0, 2.0, 3.0])]);
    type Change = fn(&mut Results);
    let changes: [(&str, Change, &str, &str); 8] = [
        ("raidlab", |one| one.raidlab = "9".into(), "0.1.0", "9"),
        ("study", |one| one.study = "other".into(), "a study", "other"),
        ("seed", |one| one.seed = 7, "1", "7"),
        ("host, cpu", |one| drop(one.host.insert("cpu".into(), "new".into())), "none", "new"),
        (
            "settings, cache",
            |one| drop(one.settings.insert("cache".into(), "on".into())),
            "none",
            "on",
        ),
        (
            "workload write",
            |one| one.workloads[0].description = "writes more".into(),
            "writes",
            "writes more",
        ),
        ("capacity of one", |one| one.layouts[0].capacity = 5, "1073741824 bytes", "5 bytes"),
        // What is told elsewhere is not told here.
        ("", |one| drop(one.settings.insert("noise floor".into(), "1 %".into())), "", ""),
    ];
    for (what, change, before, after) in changes {
        let mut other = base.clone();
        change(&mut other);
        for (one, two, words) in
            [(&base, &other, [before, after]), (&other, &base, [after, before])]
        {
            let documents = [one, two].map(std::slice::from_ref);
            let setup = Diff::of(("a", documents[0]), ("b", documents[1]), None).setup;
            let told: Vec<(&str, [&str; 2])> = setup
                .iter()
                .map(|one| {
                    let words = [&one.before, &one.after];
                    (one.what.as_str(), words.map(|word| word.as_deref().unwrap_or("none")))
                })
                .collect();
            let expected = if what.is_empty() { Vec::new() } else { vec![(what, words)] };
            assert_eq!(told, expected);
        }
    }
}

/// Rounds are pairs only where the same work was drawn: another description of the workload is other work.
#[test]
fn a_workload_of_another_description_is_no_pair() {
    let before = document(Clock::Virtual, vec![cell("one", &[1.0, 2.0, 3.0])]);
    let mut after = before.clone();
    let paired = |after: &Results| {
        let documents = [&before, after].map(std::slice::from_ref);
        Diff::of(("a", documents[0]), ("b", documents[1]), None).cells[0].paired
    };
    assert!(paired(&after));
    after.workloads[0].description.push_str(", with a flush");
    assert!(!paired(&after));
}

/// Beyond a hundred rounds chances are those of the normal distribution, with the correction for continuity: counted
/// out they are the same to a thousandth.
#[test]
fn chances_of_many_rounds_apart_are_those_counted_out() {
    // In so many orders so many of the second run lie below: the largest of all is of the first run, above all of the
    // second, or it is of the second.
    let (one, other) = (52_usize, 55_usize);
    let most = one * other;
    let mut ways: Vec<Vec<f64>> = (0..=other).map(|_| vec![0.0; most + 1]).collect();
    ways.iter_mut().for_each(|row| row[0] = 1.0);
    for _ in 1..=one {
        let mut next: Vec<Vec<f64>> = (0..=other).map(|_| vec![0.0; most + 1]).collect();
        next[0][0] = 1.0;
        for second in 1..=other {
            for pairs in 0..=most {
                let above = if pairs >= second { ways[second][pairs - second] } else { 0.0 };
                next[second][pairs] = above + next[second - 1][pairs];
            }
        }
        ways = next;
    }
    let all: f64 = ways[other].iter().sum();
    let mut apart = raidlab_results::ranks::Apart::default();
    for shift in [4, 6, 9, 12] {
        // The second run is the first one moved up by a few places.
        let before: Vec<f64> = (0..one).map(|at| at as f64).collect();
        let after: Vec<f64> = (0..other).map(|at| at as f64 + f64::from(shift) - 1.25).collect();
        let wrong =
            after.iter().flat_map(|one| before.iter().filter(move |other| *other >= one)).count();
        let exact: f64 = ways[other][..=wrong].iter().sum::<f64>() / all;
        let found = apart.ranked(&before, &after).chance_above(0.0);
        assert!((found - exact).abs() < 5e-4, "{shift}: {found}, counted {exact}");
    }
}
