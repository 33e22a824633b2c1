//! What came of all mutants: a table by module, scores, and who survived.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::list::Mutant;
use super::outcome::{Kind, Outcome};

/// Survivors that change nothing that can be seen: why, by mutant and the hash of its function.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Equivalents(BTreeMap<(String, String), String>);

impl Equivalents {
    /// Reads the list: a hash and a name a line, and below it, indented, the reason.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut found = Self::default();
        let mut last = None;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = || format!("line {}: expected HASH NAME, or below it a reason", index + 1);
            if line.starts_with(' ') {
                let reason: &mut String =
                    last.as_ref().and_then(|key| found.0.get_mut(key)).ok_or_else(wrong)?;
                let gap = if reason.is_empty() { "" } else { " " };
                *reason += &format!("{gap}{}", line.trim());
            } else {
                let (hash, name) = line.split_once(' ').ok_or_else(wrong)?;
                let key = (name.to_owned(), hash.to_owned());
                found.0.insert(key.clone(), String::new());
                last = Some(key);
            }
        }
        match found.0.iter().find(|(_, reason)| reason.is_empty()) {
            Some(((name, _), _)) => Err(format!("no reason for {name}")),
            None => Ok(found),
        }
    }

    /// The mutants among these that have the names of some in the list.
    pub(crate) fn named(&self, mutants: &[Mutant]) -> Vec<Mutant> {
        let is_named = |mutant: &&Mutant| self.0.keys().any(|(name, _)| *name == mutant.name);
        mutants.iter().filter(is_named).cloned().collect()
    }

    /// Names in the list that are of none of these functions: they were renamed, or their text is another.
    pub(crate) fn not_of<'a>(&'a self, mutants: &[(Mutant, String)]) -> Vec<&'a str> {
        let is_known = |(name, hash): &&(String, String)| {
            mutants.iter().any(|(mutant, own)| mutant.name == *name && own == hash)
        };
        self.0.keys().filter(|key| !is_known(key)).map(|(name, _)| &name[..]).collect()
    }

    fn reason(&self, tried: &Tried) -> Option<&str> {
        let key = (tried.mutant.name.clone(), tried.function.clone());
        self.0.get(&key).map(String::as_str)
    }
}

/// A mutant and what became of it.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) mutant: Mutant,
    /// The hash of the function it is in.
    pub(crate) function: String,
    pub(crate) outcome: Outcome,
}

/// How many of a module, or of all, ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    mutants: usize,
    test: usize,
    checker: usize,
    timeout: usize,
    unviable: usize,
    survived: usize,
    equivalent: usize,
}

impl Counts {
    fn add(&mut self, kind: Kind, is_equivalent: bool) {
        self.mutants += 1;
        let of_kind = match kind {
            Kind::Test => &mut self.test,
            Kind::Checker => &mut self.checker,
            Kind::Timeout => &mut self.timeout,
            Kind::Unviable => &mut self.unviable,
            Kind::Survived if is_equivalent => &mut self.equivalent,
            Kind::Survived => &mut self.survived,
        };
        *of_kind += 1;
    }

    fn row(&self, name: &str) -> String {
        let killed = self.test + self.checker;
        let score = percent(killed, killed + self.survived + self.equivalent);
        let Self { mutants, test, checker, timeout, unviable, survived, equivalent } = self;
        format!(
            "| {name} | {mutants} | {test} | {checker} | {timeout} | {unviable} | {survived} | {equivalent} | {score} |"
        )
    }
}

/// What became of each, and how many were found, as Markdown.
pub(crate) fn one_by_one(tried: &[Tried]) -> String {
    let mut out = String::from("| bug | found by |\n|---|---|\n");
    for one in tried {
        let name = one.mutant.name.rsplit(' ').next().unwrap_or_default();
        let by = match one.outcome.kind {
            Kind::Survived => "not found".to_owned(),
            Kind::Unviable => "does not compile".to_owned(),
            Kind::Timeout => format!("`{}`, which did not end", one.outcome.by),
            Kind::Test | Kind::Checker => format!("`{}`", one.outcome.by),
        };
        let _ = writeln!(out, "| {name} | {by} |");
    }
    let is_found = |one: &&Tried| !matches!(one.outcome.kind, Kind::Survived | Kind::Unviable);
    let viable = tried.iter().filter(|one| one.outcome.kind != Kind::Unviable).count();
    let _ = writeln!(out, "\nFound: {} of {viable}.", tried.iter().filter(is_found).count());
    out
}

/// The table, the scores and the survivors, as Markdown.
pub(crate) fn markdown(tried: &[Tried], equivalents: &Equivalents) -> String {
    let mut all = Counts::default();
    let mut modules: BTreeMap<&str, Counts> = BTreeMap::new();
    for one in tried {
        let is_equivalent = equivalents.reason(one).is_some();
        all.add(one.outcome.kind, is_equivalent);
        modules.entry(&one.mutant.module).or_default().add(one.outcome.kind, is_equivalent);
    }
    let mut out = String::from(
        "| module | mutants | killed by tests | by the checker | timeout | unviable | survived | equivalent \
         | killed |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, counts) in modules {
        out += &(counts.row(name) + "\n");
    }
    out += &(all.row("all") + "\n\n");
    let rebuilt = tried.iter().filter(|one| one.outcome.is_rebuilt).count();
    out += &scores(&all, rebuilt);
    for (title, wanted) in [("Survived", false), ("Equivalent", true)] {
        let of_title = |one: &&Tried| {
            one.outcome.kind == Kind::Survived && equivalents.reason(one).is_some() == wanted
        };
        let mut found = tried.iter().filter(of_title).peekable();
        if found.peek().is_some() {
            let _ = write!(out, "\n{title}:\n\n");
        }
        for one in found {
            let reason = equivalents.reason(one).map_or(String::new(), |why| format!(": {why}"));
            let _ = writeln!(out, "- `{}` ({}){reason}", one.mutant.title(), one.function);
        }
    }
    out
}

fn scores(all: &Counts, rebuilt: usize) -> String {
    let killed = all.test + all.checker;
    let line = |total: usize| {
        let (low, high) = wilson(killed, total);
        let (score, low, high) = (percent(killed, total), 100.0 * low, 100.0 * high);
        format!("{killed} of {total} killed, {score} (95 % interval {low:.1} to {high:.1} %)")
    };
    format!(
        "{}; without equivalents {}. Not counted: {} timeouts, {} unviable. {rebuilt} took a build of their own.\n",
        line(killed + all.survived + all.equivalent),
        line(killed + all.survived),
        all.timeout,
        all.unviable,
    )
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

/// Wilson's interval of a share, at 95 %.
fn wilson(part: usize, whole: usize) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (whole as f64, 1.959_964);
    let share = part as f64 / n;
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let below = 1.0 + z * z / n;
    ((middle - half) / below, (middle + half) / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        let rounded = |part, whole| {
            let (low, high) = wilson(part, whole);
            ((1000.0 * low).round() as u32, (1000.0 * high).round() as u32)
        };
        // Newcombe 1998, table I.
        assert_eq!(rounded(81, 263), (255, 366));
        assert_eq!(rounded(15, 148), (62, 160));
        assert_eq!(rounded(0, 20), (0, 161));
        assert_eq!(rounded(0, 0), (0, 1000));
    }

    fn tried(number: usize, kind: Kind) -> Tried {
        let mutant = Mutant {
            file: "crates/core/src/a.rs".to_owned(),
            span: (number, 1)..(number, 2),
            replacement: String::new(),
            name: format!("crates/core/src/a.rs: change {number}"),
            module: "core".to_owned(),
            is_body: false,
        };
        Tried { mutant, function: "00ff".to_owned(), outcome: Outcome::new(kind, "") }
    }

    #[test]
    fn planted_bugs_are_told_one_by_one() {
        let with = |number, kind, name: &str| {
            let mut one = tried(number, kind);
            one.mutant.name = format!("{}: {name}", one.mutant.file);
            one.outcome.by = "core model reads".to_owned();
            one
        };
        let all = [
            with(1, Kind::Test, "01-a"),
            with(2, Kind::Survived, "02-b"),
            with(3, Kind::Unviable, "03-c"),
        ];
        let told = one_by_one(&all);
        assert!(told.contains("| 01-a | `core model reads` |\n| 02-b | not found |"), "{told}");
        assert!(told.ends_with("\nFound: 1 of 2.\n"), "{told}");
    }

    #[test]
    fn the_table_has_scores_with_and_without_equivalents() {
        let kinds = [
            Kind::Test,
            Kind::Checker,
            Kind::Timeout,
            Kind::Unviable,
            Kind::Survived,
            Kind::Survived,
        ];
        let all: Vec<Tried> = kinds.into_iter().enumerate().map(|(at, it)| tried(at, it)).collect();
        let list = "# why\n00ff crates/core/src/a.rs: change 4\n    nobody reads it,\n    nobody\n\
                    ffff crates/core/src/a.rs: change 5\n    of another function\n";
        let text = markdown(&all, &Equivalents::parse(list).expect("is a list"));
        assert!(text.contains("| core | 6 | 1 | 1 | 1 | 1 | 1 | 1 | 50.0 % |\n"), "{text}");
        assert!(text.contains("2 of 4 killed, 50.0 %"), "{text}");
        assert!(text.contains("without equivalents 2 of 3 killed, 66.7 %"), "{text}");
        assert!(
            text.contains("Survived:\n\n- `crates/core/src/a.rs:5: change 5` (00ff)\n"),
            "{text}"
        );
        assert!(text.contains("change 4` (00ff): nobody reads it, nobody\n"), "{text}");
    }

    #[test]
    fn equivalents_of_other_texts_or_names_are_told() {
        let list = "00ff crates/core/src/a.rs: change 4\n    why\n\
                    00ff crates/core/src/a.rs: change 5\n    why\n\
                    00ff crates/core/src/b.rs: change 6\n    why\n";
        let list = Equivalents::parse(list).expect("is a list");
        let all: Vec<Mutant> = (3..6).map(|number| tried(number, Kind::Survived).mutant).collect();
        let named = list.named(&all);
        assert_eq!(named, all[1..]);
        let hashes = ["00ff", "00fe"].map(str::to_owned);
        let now: Vec<(Mutant, String)> = named.into_iter().zip(hashes).collect();
        let gone = ["crates/core/src/a.rs: change 5", "crates/core/src/b.rs: change 6"];
        assert_eq!(list.not_of(&now), gone);
    }

    #[test]
    fn equivalents_have_reasons() {
        assert_eq!(Equivalents::parse("# nothing\n\n"), Ok(Equivalents::default()));
        for (text, message) in [
            ("00ff a.rs: change\n", "no reason for a.rs: change"),
            ("  a reason\n", "line 1: expected HASH NAME, or below it a reason"),
            ("#\nname\n", "line 2: expected HASH NAME, or below it a reason"),
        ] {
            assert_eq!(Equivalents::parse(text), Err(message.to_owned()));
        }
    }
}
