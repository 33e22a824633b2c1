//! What the tests said, added up over all their programs.

use std::collections::BTreeMap;
use std::fmt;

/// Counts of tests, read from the output of `cargo test`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Tests that could not run on this machine, and why.
    skipped: BTreeMap<String, String>,
}

impl Totals {
    /// Takes in one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            for part in counts.split([';', '.']) {
                let Some((number, what)) = part.trim().split_once(' ') else { continue };
                let Ok(number) = number.parse::<usize>() else { continue };
                match what {
                    "passed" => self.passed += number,
                    "failed" => self.failed += number,
                    "ignored" => self.ignored += number,
                    _ => {}
                }
            }
        } else if let Some((test, why)) =
            line.strip_prefix("skipped: ").and_then(|skipped| skipped.split_once(": "))
        {
            self.skip(test, why);
        }
    }

    /// Notes what could not run.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        self.skipped.insert(what.to_owned(), why.to_owned());
    }

    /// Adds the counts of `other`, which came from another stream of the same run.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
    }

    /// Counts a step that failed while no test of it did: a run that failed never shows none.
    pub(crate) fn count_failed_step(&mut self) {
        self.failed = self.failed.max(1);
    }

    /// What could not run here, a line each.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = String> {
        self.skipped.iter().map(|(what, why)| format!("skipped: {what} ({why})"))
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The harness takes a test that found it could not run for one that passed.
        let passed = self.passed.saturating_sub(self.skipped.len());
        let skipped = self.ignored + self.skipped.len();
        write!(f, "{passed} passed, {} failed, {skipped} skipped", self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &str) -> Totals {
        let mut totals = Totals::default();
        lines.lines().for_each(|line| totals.read(line));
        totals
    }

    #[test]
    fn results_are_added_up() {
        let totals = read(
            "running 3 tests\ntest a ... ok\n\
             test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.10s\n\
             test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        );
        assert_eq!(totals.to_string(), "15 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn a_skipped_test_is_named_and_not_counted_as_passed() {
        let mut totals =
            read("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
        totals.add(read("skipped: kernel_md: needs mdadm\nskipped: kernel_md: needs mdadm\n"));
        assert_eq!(totals.to_string(), "2 passed, 0 failed, 1 skipped");
        assert_eq!(totals.skipped().collect::<Vec<_>>(), ["skipped: kernel_md (needs mdadm)"]);
    }

    #[test]
    fn a_failed_step_counts_once() {
        let mut totals = Totals::default();
        totals.count_failed_step();
        assert_eq!(totals.to_string(), "0 passed, 1 failed, 0 skipped");
        let mut totals = read("test result: FAILED. 1 passed; 2 failed; 0 ignored\n");
        totals.count_failed_step();
        assert_eq!(totals.to_string(), "1 passed, 2 failed, 0 skipped");
    }
}
