//! What each step of the test command took, beside what it may take.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What a whole run may take on two cores that do nothing else.
pub(crate) const LIMIT: Duration = Duration::from_secs(15 * 60);

/// How many seconds of it each step may take: who adds a step takes its seconds from another. Packages are
/// installed once, so that step has no budget. Of the steps by turns a run has one.
pub(crate) const BUDGETS: [(&str, u64); 15] = [
    ("format", 5),
    ("tidy", 12),
    ("clippy", 70),
    ("build", 260),
    ("tests", 330),
    ("doc tests", 18),
    ("outside program", 12),
    ("checker", 40),
    ("seeded bugs", 20),
    ("documents", 58),
    // By turns.
    ("features", 75),
    ("instructions", 40),
    ("page", 15),
    ("python", 75),
    ("rustdoc", 30),
];

/// What was taken from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Time that passed.
    pub(crate) wall: Duration,
    /// Time of processors, in the program and the kernel, by this process and those it waited for.
    pub(crate) cpu: Duration,
}

/// Runs a step; gives what it took beside its result.
pub(crate) fn measure<T>(step: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Used)> {
    let (start, before) = (Instant::now(), processors()?);
    let result = step()?;
    Ok((result, Used { wall: start.elapsed(), cpu: processors()?.saturating_sub(before) }))
}

/// The time of processors so far.
fn processors() -> io::Result<Duration> {
    let of = |usage: Usage| usage.user_time() + usage.system_time();
    let all = of(getrusage(UsageWho::RUSAGE_SELF)?) + of(getrusage(UsageWho::RUSAGE_CHILDREN)?);
    Ok(Duration::from_micros(all.num_microseconds().unsigned_abs()))
}

/// Steps with what they took, in order.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<(&'static str, Used)>);

impl Table {
    pub(crate) fn add(&mut self, step: &'static str, used: Used) {
        self.0.push((step, used));
    }

    /// What all steps took.
    pub(crate) fn total(&self) -> Used {
        self.0.iter().fold(Used::default(), |sum, (_, used)| Used {
            wall: sum.wall + used.wall,
            cpu: sum.cpu + used.cpu,
        })
    }
}

fn budget(step: &str) -> Option<Duration> {
    let of = BUDGETS.iter().find(|(name, _)| *name == step);
    of.map(|(_, seconds)| Duration::from_secs(*seconds))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14} {:>8} {:>8} {:>8}", "step", "wall s", "CPU s", "budget s")?;
        let total = ("whole run", self.total(), Some(LIMIT));
        let steps = self.0.iter().map(|(step, used)| (*step, *used, budget(step)));
        for (step, Used { wall, cpu }, budget) in steps.chain([total]) {
            let (wall_s, cpu_s) = (wall.as_secs_f64(), cpu.as_secs_f64());
            let (may, over) = match budget {
                // On a busy machine time passes for which the step can do nothing.
                Some(budget) if wall.min(cpu) > budget => (budget.as_secs().to_string(), "  over"),
                Some(budget) => (budget.as_secs().to_string(), ""),
                None => ("-".to_owned(), ""),
            };
            writeln!(f, "{step:<14} {wall_s:>8.1} {cpu_s:>8.1} {may:>8}{over}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::BY_TURNS;
    use std::process::Command;

    #[test]
    fn budgets_fill_the_limit() {
        let of = |by_turns: bool| {
            let steps = BUDGETS.iter().filter(move |(name, _)| BY_TURNS.contains(name) == by_turns);
            steps.map(|(_, seconds)| *seconds)
        };
        let sum = of(false).sum::<u64>() + of(true).max().unwrap_or(0);
        assert_eq!(Duration::from_secs(sum), LIMIT);
    }

    #[test]
    fn the_table_marks_what_is_over_its_budget() {
        let used =
            |wall, cpu| Used { wall: Duration::from_millis(wall), cpu: Duration::from_millis(cpu) };
        let mut table = Table::default();
        table.add("packages", used(95_000, 1_000));
        table.add("format", used(5_000, 6_250));
        table.add("tidy", used(12_001, 12_500));
        table.add("clippy", used(200_000, 60_000));
        let lines = table.to_string();
        let expected = [
            "step             wall s    CPU s budget s",
            "packages           95.0      1.0        -",
            "format              5.0      6.2        5",
            "tidy               12.0     12.5       12  over",
            "clippy            200.0     60.0       70",
            "whole run         312.0     79.8      900",
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn processors_of_children_count() {
        // Ended by the kernel when it has had one second of a processor: that is no matter of how fast it is.
        let script = "ulimit -t 1; while :; do :; done";
        let run = || Command::new("bash").args(["-c", script]).status();
        let (status, used) = measure(run).expect("bash runs");
        assert!(!status.success());
        assert!(used.cpu >= Duration::from_millis(900), "{used:?}");
    }
}
