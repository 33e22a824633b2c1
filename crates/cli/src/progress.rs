//! Progress with the time left: on a terminal a bar, elsewhere a line from time to time.

use std::cell::Cell;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output::note;

const RUNS: &str = "{prefix}{bar:24} {pos}/{len} runs, {left}  {wide_msg}";
const STEPS: &str = "{spinner} {elapsed}  {wide_msg}";
const SHARE: &str = "{bar:24} {percent}%, {left}  {wide_msg}";

/// Where there is no terminal, so long passes from one line to the next.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// A bar over the runs of a study, or over work that is counted otherwise.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Since when there is work, and when a line was printed last; none on a terminal, or when quiet.
    lines: Option<(Instant, Cell<Instant>)>,
    /// How much is done is told in percent: what is counted means nothing to a reader.
    in_percent: bool,
}

impl Bar {
    pub(crate) fn new(quiet: bool) -> Self {
        Self::with(quiet, RUNS)
    }

    /// Shows how much is done in percent.
    pub(crate) fn share(quiet: bool) -> Self {
        Self::with(quiet, SHARE)
    }

    /// Shows what is being done and for how long, where nobody knows how much is left.
    pub(crate) fn steps(quiet: bool) -> Self {
        Self::with(quiet, STEPS)
    }

    /// The next step begins.
    pub(crate) fn step(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    fn with(quiet: bool, template: &str) -> Self {
        let (is_terminal, in_percent) = (std::io::stderr().is_terminal(), template == SHARE);
        if quiet || !is_terminal {
            let now = Instant::now();
            let lines = (!quiet).then(|| (now, Cell::new(now)));
            return Self { bar: ProgressBar::hidden(), lines, in_percent };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // Templates are constants: a bad one shows in the first test that draws it.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
            // A display that cannot be written to shows nothing.
            let _ = out.write_str(&left(state.elapsed(), state.pos(), state.len().unwrap_or(0)));
        }));
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar, lines: None, in_percent }
    }

    /// `done` of `total` is finished; `what` is being run.
    pub(crate) fn show(&self, done: usize, total: usize, what: String) {
        if let Some((begun, last)) = &self.lines
            && last.get().elapsed() >= BETWEEN_LINES
        {
            last.set(Instant::now());
            let rest = left(begun.elapsed(), done as u64, total as u64);
            note(&format!("{}, {rest}; {what}", amount(done, total, self.in_percent)));
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what);
    }

    /// What the runs belong to, in front of the bar.
    pub(crate) fn prefix(&self, what: &str) {
        self.bar.set_prefix(format!("{what} "));
    }

    /// Prints above the bar, which is drawn anew below.
    pub(crate) fn above(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn amount(done: usize, total: usize, in_percent: bool) -> String {
    if !in_percent {
        return format!("{done} of {total} runs");
    }
    format!("{} %", (done as u128 * 100).checked_div(total as u128).unwrap_or(0))
}

/// The time left in words. Rounds run their cells in random order, so that the mean over all runs
/// so far is the best guess for the rest.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 {
        return "time left not known yet".into();
    }
    let rest = elapsed.as_secs_f64() / done as f64 * total.saturating_sub(done) as f64;
    let seconds = rest.round() as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("about {seconds}s left"),
        (0, _) => format!("about {minutes}m {:02}s left", seconds % 60),
        _ => format!("about {hours}h {minutes:02}m left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_cannot_count_is_told_in_percent() {
        assert_eq!(amount(3, 12, false), "3 of 12 runs");
        assert_eq!(amount(787_699_000, 1_000_000_000, true), "78 %");
        assert_eq!(amount(0, 0, true), "0 %");
    }

    #[test]
    fn the_time_left_is_the_mean_times_the_rest() {
        assert_eq!(left(Duration::from_secs(1), 0, 10), "time left not known yet");
        assert_eq!(left(Duration::from_secs(20), 4, 10), "about 30s left");
        assert_eq!(left(Duration::from_secs(60), 1, 10), "about 9m 00s left");
        assert_eq!(left(Duration::from_secs(65), 1, 100), "about 1h 47m left");
        assert_eq!(left(Duration::from_secs(60), 10, 10), "about 0s left");
        assert!([RUNS, SHARE, STEPS].iter().all(|text| ProgressStyle::with_template(text).is_ok()));
    }
}
