//! What the runs of cells warned of.

use crate::matrix::{CellKey, cell_title};
use crate::run::{Sample, Samples};
use crate::study::Study;

/// How many cells a warning names.
const MOST_NAMED: usize = 4;

/// A warning of some cells, which need not have the same numbers in it.
struct Warning<'a> {
    words: Vec<Word<'a>>,
    /// Indices of the cells.
    cells: Vec<usize>,
}

/// A word of a warning.
enum Word<'a> {
    /// A whole number: the least and the largest that was told.
    Number(u64, u64),
    /// Anything else, as it was told first.
    Text(&'a str),
}

/// What the runs of one cell warned of, each once.
pub fn run_warnings(samples: &[Sample]) -> Vec<String> {
    let mut all: Vec<Warning<'_>> = Vec::new();
    for warning in samples.iter().flat_map(|sample| &sample.warnings) {
        add(&mut all, words(warning), 0);
    }
    all.iter().map(Warning::said).collect()
}

/// Each warning once, with the cells whose runs it is of.
pub(super) fn warnings(study: &Study, samples: &Samples) -> Vec<String> {
    let mut all: Vec<Warning<'_>> = Vec::new();
    for (key, own) in samples.cells.iter().zip(&samples.samples) {
        // What is measured twice a round is shown once.
        let shown = CellKey { again: false, ..*key };
        let Some(cell) = samples.cells.iter().position(|key| *key == shown) else { continue };
        for warning in own.iter().flat_map(|sample| &sample.warnings) {
            add(&mut all, words(warning), cell);
        }
    }
    let shown = samples.cells.iter().filter(|key| !key.again).count();
    all.iter().map(|known| known.text(study, &samples.cells, shown)).collect()
}

fn add<'a>(all: &mut Vec<Warning<'a>>, words: Vec<Word<'a>>, cell: usize) {
    match all.iter_mut().find(|known| is_alike(&known.words, &words)) {
        Some(known) => known.add(&words, cell),
        None => all.push(Warning { words, cells: vec![cell] }),
    }
}

impl Warning<'_> {
    fn add(&mut self, words: &[Word<'_>], cell: usize) {
        for (own, word) in self.words.iter_mut().zip(words) {
            if let (Word::Number(least, most), Word::Number(low, high)) = (own, word) {
                (*least, *most) = ((*least).min(*low), (*most).max(*high));
            }
        }
        if !self.cells.contains(&cell) {
            self.cells.push(cell);
        }
    }

    /// The warning, with all its numbers.
    fn said(&self) -> String {
        let word = |word: &Word<'_>| match word {
            Word::Number(least, most) if least < most => format!("{least} to {most}"),
            Word::Number(least, _) => least.to_string(),
            Word::Text(text) => (*text).to_owned(),
        };
        self.words.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// The warning, and whose it is of all the cells that are `shown`.
    fn text(&self, study: &Study, cells: &[CellKey], shown: usize) -> String {
        let said = self.said();
        let count = self.cells.len();
        if count == shown && count > MOST_NAMED {
            return format!("{said}: all {count} cells");
        }
        let name = |at: &usize| cell_title(study, &cells[*at]);
        let mut named: Vec<String> = self.cells.iter().take(MOST_NAMED).map(name).collect();
        if count > MOST_NAMED {
            named.push(format!("{} more", count - MOST_NAMED));
        }
        format!("{said}: {}", named.join("; "))
    }
}

fn words(warning: &str) -> Vec<Word<'_>> {
    // Only what is written again as it was.
    let number = |word: &str| word.parse().ok().filter(|number: &u64| number.to_string() == word);
    let word = |text| number(text).map_or(Word::Text(text), |number| Word::Number(number, number));
    warning.split(' ').map(word).collect()
}

/// Whether two warnings say the same, but for numbers, also those within words such as paths.
fn is_alike(one: &[Word<'_>], other: &[Word<'_>]) -> bool {
    let same = |pair: (&Word<'_>, &Word<'_>)| match pair {
        (Word::Number(..), Word::Number(..)) => true,
        (Word::Text(one), Word::Text(other)) => without_digits(one).eq(without_digits(other)),
        _ => false,
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

fn without_digits(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|char| !char.is_ascii_digit())
}
