//! Lines of benches, and what pairs of them show.

use std::fmt::Write;

use raidlab_results::statistics::{Interval, median, median_interval};

/// A bench's cases, each with its nanoseconds.
type Lines = Vec<(String, f64)>;

/// Reads what a bench printed: a case, a tab and nanoseconds in each line.
pub(crate) fn read(text: &str) -> Result<Lines, String> {
    let mut lines = Lines::new();
    for line in text.lines() {
        let nanos = line.rsplit_once('\t').and_then(|(case, nanos)| {
            let nanos: f64 = nanos.parse().ok()?;
            (nanos.is_finite() && nanos > 0.0).then(|| (case.to_owned(), nanos))
        });
        let Some((case, nanos)) = nanos else {
            return Err(format!("expected a case, a tab and nanoseconds, not `{line}`"));
        };
        if lines.iter().any(|(known, _)| *known == case) {
            return Err(format!("prints the case `{case}` twice"));
        }
        lines.push((case, nanos));
    }
    if lines.is_empty() { Err("prints no lines".to_owned()) } else { Ok(lines) }
}

/// A case with its nanoseconds on both sides, in the order of the rounds.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    name: String,
    now: Vec<f64>,
    then: Vec<f64>,
}

/// What the rounds of a bench gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rounds {
    cases: Vec<Case>,
    /// Cases that one side only has.
    pub(crate) unpaired: Vec<String>,
}

impl Rounds {
    /// Takes in a round of both sides; the first says which cases there are.
    pub(crate) fn add(&mut self, now: &[(String, f64)], then: &[(String, f64)]) {
        let value = |lines: &[(String, f64)], name: &str| {
            lines.iter().find(|(case, _)| case == name).map(|(_, nanos)| *nanos)
        };
        if self.cases.is_empty() && self.unpaired.is_empty() {
            for (name, _) in now.iter().chain(then) {
                let paired = value(now, name).is_some() && value(then, name).is_some();
                if !paired {
                    self.unpaired.push(name.clone());
                } else if !self.cases.iter().any(|case| case.name == *name) {
                    let (now, then) = (Vec::new(), Vec::new());
                    self.cases.push(Case { name: name.clone(), now, then });
                }
            }
        }
        for case in &mut self.cases {
            if let (Some(now), Some(then)) = (value(now, &case.name), value(then, &case.name)) {
                case.now.push(now);
                case.then.push(then);
            }
        }
    }

    /// What is shown of each case.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.cases.iter().filter_map(Row::of).collect()
    }
}

/// What is shown of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Medians of nanoseconds.
    now: f64,
    then: f64,
    /// The median of the ratios of the rounds, now to then, and its interval.
    ratio: f64,
    pub(crate) interval: Interval,
}

impl Row {
    fn of(case: &Case) -> Option<Self> {
        let ratios: Vec<f64> =
            case.now.iter().zip(&case.then).map(|(now, then)| now / then).collect();
        Some(Self {
            name: case.name.clone(),
            now: median(&case.now)?,
            then: median(&case.then)?,
            ratio: median(&ratios)?,
            interval: median_interval(&ratios)?,
        })
    }

    /// Whether even the lower end of the interval is more than so many percent slower.
    pub(crate) fn is_beyond(&self, percent: f64) -> bool {
        self.interval.low > 1.0 + percent / 100.0
    }

    fn verdict(&self) -> &'static str {
        match self.interval {
            Interval { low, .. } if low > 1.0 => "slower",
            Interval { high, .. } if high < 1.0 => "faster",
            _ => "~",
        }
    }
}

/// The head of a table.
pub(crate) fn head(commit: &str) -> String {
    let (case, ratio) = ("nanoseconds", "ratio");
    format!("{case:<53} {:>12} {commit:>12} {ratio:>7}   interval\n", "now")
}

/// The rows of a bench.
pub(crate) fn table(bench: &str, rows: &[Row]) -> String {
    let mut text = format!("{bench}\n");
    for row in rows {
        let Row { name, now, then, ratio, interval } = row;
        let (low, high) = (interval.low, interval.high);
        let _ = writeln!(
            text,
            "  {name:<51} {now:>12.1} {then:>12.1} {ratio:>7.3}   {low:.3} to {high:.3}   {}",
            row.verdict()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cases_with_nanoseconds() {
        let lines = read("a, 4 KiB\t12.5\nb\t3\n").expect("lines");
        assert_eq!(lines, [("a, 4 KiB".to_owned(), 12.5), ("b".to_owned(), 3.0)]);
        for wrong in ["a 12.5\n", "a\tfast\n", "a\t0\n", "a\tNaN\n", "a\tinf\n", "a\t-1\n"] {
            assert!(read(wrong).is_err_and(|error| error.contains(wrong.trim_end())), "{wrong}");
        }
        assert!(read("").is_err_and(|error| error == "prints no lines"));
        assert!(read("a\t1\na\t2\n").is_err_and(|error| error.contains("twice")));
    }

    fn rounds(pairs: &[(f64, f64)]) -> Rounds {
        let mut rounds = Rounds::default();
        for (now, then) in pairs {
            rounds.add(&[("a".to_owned(), *now)], &[("a".to_owned(), *then)]);
        }
        rounds
    }

    /// The machine was twice and thrice as slow in some rounds: ratios of medians would say otherwise.
    #[test]
    fn ratios_are_those_of_pairs() {
        let pairs =
            [(11.0, 10.0), (33.0, 30.0), (22.0, 20.0), (11.0, 10.0), (22.0, 20.0), (12.0, 10.0)];
        let rows = rounds(&[&pairs[..], &[(10.0, 10.0)]].concat()).rows();
        let [row] = &rows[..] else { panic!("one case: {rows:?}") };
        assert_eq!((row.now, row.then), (12.0, 10.0));
        assert!((row.ratio - 1.1).abs() < 1e-12, "{row:?}");
        // Of seven rounds the interval is the whole range, which covers 1 - 2/2^7.
        assert_eq!((row.interval.low, row.interval.high), (1.0, 1.2));
        assert!((row.interval.coverage - 0.984_375).abs() < 1e-12);
        assert_eq!(row.verdict(), "~");
    }

    #[test]
    fn a_case_is_beyond_the_limit_when_its_whole_interval_is() {
        let row = |ratio: f64| {
            let pairs = [(ratio * 10.0, 10.0); 6];
            rounds(&[&pairs[..], &[(1.04 * 10.0, 10.0)]].concat()).rows().remove(0)
        };
        assert!(row(1.05).is_beyond(3.0) && !row(1.05).is_beyond(5.0));
        assert_eq!(row(1.05).verdict(), "slower");
        assert!(!row(1.02).is_beyond(3.0), "the median is not");
        assert_eq!(row(0.9).verdict(), "~");
        assert_eq!(rounds(&[(9.0, 10.0); 7]).rows()[0].verdict(), "faster");
        assert_eq!(rounds(&[(9.0, 10.0); 5]).rows(), [], "too few for an interval");
    }

    #[test]
    fn cases_of_one_side_only_are_told() {
        let line = |name: &str| (name.to_owned(), 1.0);
        let mut rounds = Rounds::default();
        for _ in 0..7 {
            rounds.add(&[line("both"), line("new")], &[line("old"), line("both")]);
        }
        assert_eq!(rounds.unpaired, ["new", "old"]);
        let rows = rounds.rows();
        assert!(rows.len() == 1 && rows[0].name == "both", "{rows:?}");
        let table = table("a bench", &rows);
        assert!(table.starts_with("a bench\n  both ") && table.ends_with(" 1.000 to 1.000   ~\n"));
    }
}
