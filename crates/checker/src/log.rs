//! The log of a run: one line per event, and a hash of all of them.
//!
//! Legend. Each line is `TIME KIND WHAT`, TIME in microseconds of the run:
//!
//! | kind | event | what |
//! |---|---|---|
//! | `S` | request submitted | number, operation, first sector + length, `fua` |
//! | `R` | request answered | number, outcome |
//! | `>` | member I/O sent | device, operation, first sector + length, `fua` |
//! | `<` | member I/O ended | device, operation, first sector + length, outcome, fault |
//! | `M` | metadata I/O sent | device, record, `flush`, `fua` |
//! | `m` | metadata I/O ended | device, outcome, fault |
//! | `J` | job asked for | kernel, sectors |
//! | `j` | job done | result |
//! | `A` | command of the administrator | command |
//! | `E` | event of the array | event |
//! | `W` | the array is woken | - |
//! | `X` | crash | which of the pending values are there |
//! | `B` | assembled | members lost, what is allowed, result |
//! | `H` | harm done to drives | which, and how |
//! | `!` | the promise is broken | what is wrong |

use std::fmt::{self, Write as _};

use super::content::mix;

/// A log: always the hash, the lines when wanted.
#[derive(Clone, Debug, Default)]
pub struct Log {
    hash: u64,
    lines: Option<Vec<String>>,
    /// Nothing is noted at all.
    off: bool,
    text: String,
}

impl Log {
    /// Keeps the lines too.
    pub fn keep_lines(&mut self) {
        self.off = false;
        self.lines.get_or_insert_with(Vec::new);
    }

    /// Notes nothing any more, not even in the hash: for runs of which only the end matters.
    pub fn stop(&mut self) {
        self.off = true;
    }

    /// Forgets everything so far; lines are kept from now on if they were.
    pub fn restart(&mut self) {
        self.hash = 0;
        if let Some(lines) = &mut self.lines {
            lines.clear();
        }
    }

    /// A hash of all events from the start on, in their order.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines; empty when they are not kept.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or(&[])
    }

    /// Puts the lines of another log behind these.
    pub fn append(&mut self, other: &Self) {
        if let Some(lines) = &mut self.lines {
            lines.extend_from_slice(other.lines());
        }
    }

    /// Adds an event: `numbers` go into the hash, `what` into the line.
    pub fn add(&mut self, now: u64, kind: char, numbers: &[u64], what: impl FnOnce(&mut Line<'_>)) {
        if self.off {
            return;
        }
        self.hash = mix(self.hash, u64::from(u32::from(kind)) << 40 ^ now);
        self.hash = numbers.iter().fold(self.hash, |hash, number| mix(hash, *number));
        if self.lines.is_some() {
            self.text.clear();
            let _ = write!(self.text, "{:>8} {kind} ", now / 1000);
            what(&mut Line(&mut self.text));
            let text = self.text.clone();
            self.lines.get_or_insert_with(Vec::new).push(text);
        }
    }
}

/// The line being written.
#[derive(Debug)]
pub struct Line<'a>(&'a mut String);

impl Line<'_> {
    /// Adds to the line.
    pub fn put(&mut self, args: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(args);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_same_with_and_without_lines() {
        let (mut quiet, mut loud) = (Log::default(), Log::default());
        loud.keep_lines();
        for log in [&mut quiet, &mut loud] {
            log.add(3000, 'S', &[1, 2], |line| line.put(format_args!("#1 read 2")));
            log.add(4000, 'R', &[1], |line| line.put(format_args!("#1 done")));
        }
        assert_eq!(quiet.hash(), loud.hash());
        assert!(quiet.lines().is_empty());
        assert_eq!(loud.lines(), ["       3 S #1 read 2", "       4 R #1 done"]);
        quiet.add(5000, 'R', &[2], |_| ());
        assert_ne!(quiet.hash(), loud.hash());
    }
}
