//! Choices: every one in turn, or by a seed, behind one question.
//!
//! The idea of enumerating by asking is that of exhaustive test generators: the code under test asks
//! `below(n)`, and is run again and again until every sequence of answers was given once.

use raidlab_random::SplitMix64;

/// Answers "which of n?".
#[derive(Clone, Debug)]
pub enum Choices {
    /// Every sequence of answers once: see [`Choices::next_run`].
    Every(Every),
    /// By a seed.
    Seeded(SplitMix64),
}

/// The answers of one run, each with how many there were to choose from.
#[derive(Clone, Debug, Default)]
pub struct Every {
    answers: Vec<(u32, u32)>,
    at: usize,
    started: bool,
}

impl Choices {
    /// Every sequence of answers.
    #[must_use]
    pub fn every() -> Self {
        Self::Every(Every::default())
    }

    /// Answers by a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(SplitMix64::new(seed))
    }

    /// A number from 0 to `limit - 1`; 0 when there is no choice.
    pub fn below(&mut self, limit: u32) -> u32 {
        if limit <= 1 {
            return 0;
        }
        match self {
            Self::Seeded(random) => random.below(u64::from(limit)) as u32,
            Self::Every(every) => {
                if every.at == every.answers.len() {
                    every.answers.push((0, limit));
                }
                let (answer, known) = every.answers[every.at];
                debug_assert_eq!(known, limit, "the same answers lead to the same questions");
                every.at += 1;
                answer.min(limit - 1)
            }
        }
    }

    /// Yes or no.
    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Begins the next run; false when every sequence was given. Seeded choices go on for ever.
    pub fn next_run(&mut self) -> bool {
        let Self::Every(every) = self else { return true };
        every.at = 0;
        if !std::mem::replace(&mut every.started, true) {
            return true;
        }
        while let Some((answer, limit)) = every.answers.pop() {
            if answer + 1 < limit {
                every.answers.push((answer + 1, limit));
                return true;
            }
        }
        false
    }

    /// The answers of this run so far; empty for seeded ones.
    #[must_use]
    pub fn answers(&self) -> Vec<u32> {
        match self {
            Self::Every(every) => {
                every.answers[..every.at].iter().map(|(answer, _)| *answer).collect()
            }
            Self::Seeded(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_permutation_comes_once() {
        let mut choices = Choices::every();
        let mut seen = BTreeSet::new();
        while choices.next_run() {
            let mut pool = vec!['a', 'b', 'c', 'd'];
            let mut word = String::new();
            while !pool.is_empty() {
                word.push(pool.remove(choices.below(pool.len() as u32) as usize));
            }
            assert!(seen.insert(word), "once each");
        }
        assert_eq!(seen.len(), 24);
    }

    #[test]
    fn a_seed_gives_the_same_answers_again() {
        let draw = |seed| {
            let mut choices = Choices::seeded(seed);
            (0..100).map(|_| choices.below(7)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
        assert!(draw(5).iter().all(|answer| *answer < 7));
    }
}
