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
    /// Steps that were left out, and why. No test of theirs was counted.
    left_out: BTreeMap<String, String>,
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
            self.skipped.insert(test.to_owned(), why.to_owned());
        }
    }

    /// Notes a step that was left out as a whole.
    pub(crate) fn leave_out(&mut self, step: &str, why: &str) {
        self.left_out.insert(step.to_owned(), why.to_owned());
    }

    /// The same where what was skipped is no test that a harness counted.
    pub(crate) fn without_tests(mut self) -> Self {
        self.left_out.append(&mut self.skipped);
        self
    }

    /// Adds the counts of `other`, which came from another stream of the same run.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
        self.left_out.extend(other.left_out);
    }

    /// Counts a step that failed while no test of it did: a run that failed never shows none.
    pub(crate) fn count_failed_step(&mut self) {
        self.failed = self.failed.max(1);
    }

    /// What could not run here, a line each.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = String> {
        let all = self.skipped.iter().chain(&self.left_out);
        all.map(|(what, why)| format!("skipped: {what} ({why})"))
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The harness takes a test that found it could not run for one that passed; of a step that was left out it
        // knows nothing.
        let passed = self.passed.saturating_sub(self.skipped.len());
        let skipped = self.ignored + self.skipped.len() + self.left_out.len();
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
    fn a_step_that_is_left_out_takes_no_test_from_those_that_passed() {
        let mut totals = read("test result: ok. 3 passed; 0 failed\nskipped: a: needs b\n");
        totals.leave_out("rustdoc", "another commit's turn");
        totals.add(read("skipped: python: needs pip\n").without_tests());
        assert_eq!(totals.to_string(), "2 passed, 0 failed, 3 skipped");
        let named = ["a (needs b)", "python (needs pip)", "rustdoc (another commit's turn)"];
        assert_eq!(totals.skipped().collect::<Vec<_>>(), named.map(|it| format!("skipped: {it}")));
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
