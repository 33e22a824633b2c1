//! The file with the numbers, and how others are judged by them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Percent by which a path may change.
const TOLERANCE: f64 = 3.0;

const HEAD: &str = "\
# Instructions an iteration of each hot path, as `cargo xtask instructions --record` counted them.
#
# A run judges only where the first three are what they were: the compiler; the machine; a hash of the
# third-party crates in Cargo.lock that the hot paths are built with.
";

/// What numbers depend on besides our code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) rustc: String,
    pub(crate) machine: String,
    pub(crate) lock: String,
}

impl Conditions {
    fn named(&self) -> [(&'static str, &str); 3] {
        [("rustc", &self.rustc), ("machine", &self.machine), ("lock", &self.lock)]
    }

    /// The names of those that are others.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.named().into_iter().zip(other.named());
        pairs.filter(|(one, other)| one.1 != other.1).map(|(one, _)| one.0).collect()
    }
}

/// The numbers and what they depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) conditions: Conditions,
    /// Instructions an iteration, by path.
    pub(crate) paths: Vec<(String, f64)>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for (name, value) in self.conditions.named() {
            writeln!(f, "{name} = {value}")?;
        }
        f.write_str("\n")?;
        self.paths.iter().try_for_each(|(name, count)| writeln!(f, "{name} = {count:.2}"))
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut record = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let parts = line.split_once(" = ").ok_or_else(|| format!("`{line}` has no ` = `"))?;
            let conditions = &mut record.conditions;
            match parts {
                ("rustc", value) => conditions.rustc = value.to_owned(),
                ("machine", value) => conditions.machine = value.to_owned(),
                ("lock", value) => conditions.lock = value.to_owned(),
                (name, value) => {
                    let count = value.parse().ok().filter(|count: &f64| *count > 0.0);
                    let count = count.ok_or_else(|| format!("{name}: `{value}` is no count"))?;
                    record.paths.push((name.to_owned(), count));
                }
            }
        }
        Ok(record)
    }
}

impl Record {
    /// Compares new numbers with these.
    pub(crate) fn judge(&self, now: &Self) -> Judged {
        let known: BTreeMap<&str, f64> =
            self.paths.iter().map(|(name, n)| (&name[..], *n)).collect();
        let found: BTreeSet<&str> = now.paths.iter().map(|(name, _)| &name[..]).collect();
        let row = |(name, count): &(String, f64)| Row {
            name: name.clone(),
            recorded: known.get(&name[..]).copied(),
            now: Some(*count),
        };
        let gone = self.paths.iter().filter(|(name, _)| !found.contains(&name[..]));
        let gone = gone.map(|(name, n)| Row { name: name.clone(), recorded: Some(*n), now: None });
        Judged(now.paths.iter().map(row).chain(gone).collect())
    }
}

/// A path with both of its numbers, as far as it has them.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    recorded: Option<f64>,
    now: Option<f64>,
}

impl Row {
    /// Percent by which it grew.
    fn change(&self) -> Option<f64> {
        Some((self.now? / self.recorded? - 1.0) * 100.0)
    }

    fn verdict(&self) -> &'static str {
        match (self.change(), self.now) {
            (Some(change), _) if change > TOLERANCE => "SLOWER",
            (Some(change), _) if change < -TOLERANCE => "faster",
            (Some(_), _) => "",
            (None, Some(_)) => "not recorded",
            (None, None) => "recorded, but gone",
        }
    }
}

/// What a run shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged(Vec<Row>);

impl Judged {
    /// Whether no path is slower beyond tolerance, and every path has a number it can be held against.
    pub(crate) fn passes(&self) -> bool {
        self.0.iter().all(|row| row.change().is_some_and(|change| change <= TOLERANCE))
    }

    /// Whether there is something other than slower paths that asks for new numbers.
    pub(crate) fn is_outdated(&self) -> bool {
        self.0.iter().any(|row| row.change().is_none_or(|change| change < -TOLERANCE))
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, change) = ("instructions an iteration", "change");
        writeln!(f, "{path:<28} {:>12} {:>12} {change:>9}", "recorded", "now")?;
        let count = |count: Option<f64>| count.map_or("-".to_owned(), |n| format!("{n:.2}"));
        for row in &self.0 {
            let change = row.change().map_or("-".to_owned(), |change| format!("{change:+.2} %"));
            let (recorded, now) = (count(row.recorded), count(row.now));
            let line = format!(
                "{:<28} {recorded:>12} {now:>12} {change:>9}   {}",
                row.name,
                row.verdict()
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The compiler in a line, of what `rustc -vV` says: with its commit and LLVM.
pub(crate) fn version(said: &str) -> String {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let llvm = lines.find(|line| line.starts_with("LLVM version")).unwrap_or_default();
    format!("{first}, {llvm}")
}

/// A hash of the third-party crates in a lock file that `package` is built with.
pub(crate) fn lock_hash(lock: &str, package: &str) -> String {
    let mut known = BTreeMap::<&str, Vec<&str>>::new();
    for text in lock.split("[[package]]").skip(1) {
        let name = text.lines().find_map(|line| line.strip_prefix("name = "));
        known.entry(name.unwrap_or_default().trim_matches('"')).or_default().push(text);
    }
    // Where a crate is there in several versions all of them count: names are enough.
    let (mut open, mut seen) = (vec![package], BTreeSet::new());
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        for text in known.get(name).into_iter().flatten() {
            let list = text.split_once("dependencies = [").map_or("", |(_, list)| list);
            let names = list.split('"').skip(1).step_by(2);
            open.extend(names.map(|name| name.split(' ').next().unwrap_or_default()));
        }
    }
    // FNV-1a of 64 bits, of what says which code it is; our own crates have no checksum.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in seen.iter().filter_map(|name| known.get(name)).flatten() {
        if let Some(sum) = text.lines().find(|line| line.starts_with("checksum = ")) {
            let step =
                |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            hash = sum.bytes().fold(hash, step);
        }
    }
    format!("{hash:016x}")
}

/// The paths and their iterations, as the bench lists them.
pub(crate) fn listed(text: &str) -> Result<Vec<(String, u32)>, String> {
    let read = |line: &str| {
        let (name, iterations) = line.split_once('\t')?;
        Some((name.to_owned(), iterations.parse().ok().filter(|count| *count > 0)?))
    };
    let paths: Option<Vec<_>> = text.lines().map(read).collect();
    let paths = paths.filter(|paths| !paths.is_empty());
    paths.ok_or_else(|| format!("the bench lists no paths with their iterations:\n{text}"))
}

/// Instructions in a file of callgrind; `None` where it counted none.
pub(crate) fn counted(text: &str) -> Option<u64> {
    let sum = text.lines().find_map(|line| line.strip_prefix("summary: "))?;
    sum.trim().parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(paths: &[(&str, f64)]) -> Record {
        let conditions = Conditions {
            rustc: "rustc 1.95.0 (5980 2026-04-14), LLVM version: 22.1".to_owned(),
            machine: "x86_64, avx2, glibc 2.36, valgrind-3.19.0".to_owned(),
            lock: "00ff".to_owned(),
        };
        let paths = paths.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Record { conditions, paths }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = record(&[("raid0-read", 923.25), ("raid1-write", 1683.0)]);
        let text = record.to_string();
        assert!(text.contains("\nraid0-read = 923.25\n"), "{text}");
        assert_eq!(text.parse(), Ok(record));
        for (wrong, named) in [("raid0-read 923", "` = `"), ("a = many", "`many`"), ("a = 0", "a:")]
        {
            assert!(wrong.parse::<Record>().is_err_and(|error| error.contains(named)), "{wrong}");
        }
    }

    #[test]
    fn more_than_three_percent_is_a_failure() {
        let old = record(&[("a", 1000.0), ("b", 1000.0)]);
        let judged = |a: f64| old.judge(&record(&[("a", a), ("b", 1000.0)]));
        assert!(judged(1029.5).passes() && !judged(1029.5).is_outdated());
        assert!(!judged(1030.5).passes() && !judged(1030.5).is_outdated());
        assert!(judged(970.5).passes() && !judged(970.5).is_outdated());
        assert!(judged(969.0).passes() && judged(969.0).is_outdated());
        let text = judged(1100.0).to_string();
        assert!(text.contains("1000.00      1100.00  +10.00 %   SLOWER\n"), "{text}");
        assert!(text.ends_with(" +0.00 %\n"), "{text}");
    }

    #[test]
    fn paths_without_two_numbers_are_failures_until_they_are_recorded() {
        let old = record(&[("a", 10.0), ("b", 10.0)]);
        let judged = old.judge(&record(&[("a", 10.0), ("c", 10.0)]));
        assert!(!judged.passes() && judged.is_outdated());
        let text = judged.to_string();
        assert!(text.contains("not recorded\n") && text.contains("recorded, but gone\n"), "{text}");
        assert!(!old.judge(&record(&[("a", 10.0)])).passes());
    }

    #[test]
    fn other_conditions_are_named() {
        let old = record(&[]).conditions;
        assert!(old.differences(&old).is_empty());
        let other = Conditions { rustc: String::new(), lock: "1".to_owned(), ..old.clone() };
        assert_eq!(old.differences(&other), ["rustc", "lock"]);
    }

    #[test]
    fn the_hash_is_of_foreign_crates_that_are_used() {
        let lock = |ours: &str, used: &str, other: &str| {
            format!(
                "version = 4\n\n[[package]]\nname = \"mine\"\nversion = \"{ours}\"\n\
                 dependencies = [\n \"near\",\n]\n\n\
                 [[package]]\nname = \"near\"\nversion = \"1\"\nchecksum = \"00\"\n\
                 dependencies = [\n \"far 1.0\",\n]\n\n\
                 [[package]]\nname = \"far\"\nversion = \"1\"\nchecksum = \"{used}\"\n\n\
                 [[package]]\nname = \"elsewhere\"\nversion = \"1\"\nchecksum = \"{other}\"\n"
            )
        };
        let hash = |text: &str| lock_hash(text, "mine");
        let first = hash(&lock("1", "11", "22"));
        assert_eq!(hash(&lock("2", "11", "33")), first, "neither is foreign and used");
        assert_ne!(hash(&lock("1", "12", "22")), first);
    }

    #[test]
    fn what_tools_say_is_read() {
        let said = "rustc 1.95.0 (5980 2026)\nbinary: rustc\nhost: x\nLLVM version: 22.1.2\n";
        assert_eq!(version(said), "rustc 1.95.0 (5980 2026), LLVM version: 22.1.2");
        assert_eq!(listed("a\t10\nb\t2\n"), Ok(vec![("a".into(), 10), ("b".into(), 2)]));
        assert!(listed("").is_err() && listed("a 10\n").is_err() && listed("a\t0\n").is_err());
        assert_eq!(counted("version: 1\nsummary: 2129933\n\ntotals: 2129933\n"), Some(2_129_933));
        assert_eq!((counted("summary: 0\n"), counted("version: 1\n")), (None, None));
    }
}
