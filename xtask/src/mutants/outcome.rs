//! What became of mutants, and what of it still holds after a change.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::hash;

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A test failed.
    Test,
    /// `raidlab check` failed.
    Checker,
    /// Something that ends without it did not end.
    Timeout,
    /// It does not compile.
    Unviable,
    /// Nobody noticed it.
    Survived,
}

impl Kind {
    const ALL: [(Self, &str); 5] = [
        (Self::Test, "killed by test"),
        (Self::Checker, "killed by checker"),
        (Self::Timeout, "timeout"),
        (Self::Unviable, "unviable"),
        (Self::Survived, "survived"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// What became of a mutant, and by whom: package, program and test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) kind: Kind,
    pub(crate) by: String,
    /// Whether that took a build of its own.
    pub(crate) is_rebuilt: bool,
}

impl Outcome {
    pub(crate) fn new(kind: Kind, by: &str) -> Self {
        Self { kind, by: by.to_owned(), is_rebuilt: false }
    }
}

/// What earlier runs found, a line each.
pub(crate) struct Cache {
    path: PathBuf,
    known: BTreeMap<String, (Outcome, String)>,
    evidence: Evidence,
}

impl Cache {
    /// Reads what there is; a line that is not whole counts as none.
    pub(crate) fn open(root: &Path, place: &Path) -> io::Result<Self> {
        fs::create_dir_all(place)?;
        let path = place.join("cache");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let known = text.lines().filter_map(read).collect();
        Ok(Self { path, known, evidence: Evidence::read(root)? })
    }

    /// What became of a mutant, if that still holds.
    pub(crate) fn get(&self, key: &str) -> Option<&Outcome> {
        let (outcome, evidence) = self.known.get(key)?;
        (self.evidence.of(outcome) == *evidence).then_some(outcome)
    }

    /// Notes what became of a mutant.
    pub(crate) fn put(&mut self, key: &str, outcome: &Outcome) -> io::Result<()> {
        let evidence = self.evidence.of(outcome);
        let line = json!({"key": key, "outcome": outcome.kind.name(), "by": outcome.by,
            "rebuilt": outcome.is_rebuilt, "evidence": evidence});
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        self.known.insert(key.to_owned(), (outcome.clone(), evidence));
        Ok(())
    }
}

fn read(line: &str) -> Option<(String, (Outcome, String))> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| value[key].as_str();
    let name = text("outcome")?;
    let (kind, _) = Kind::ALL.into_iter().find(|(_, known)| *known == name)?;
    let is_rebuilt = value["rebuilt"].as_bool()?;
    let outcome = Outcome { is_rebuilt, ..Outcome::new(kind, text("by")?) };
    Some((text("key")?.to_owned(), (outcome, text("evidence")?.to_owned())))
}

/// The sources on which outcomes rest.
struct Evidence {
    files: BTreeMap<String, String>,
    all: String,
}

impl Evidence {
    fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        collect(&root.join("crates"), root, &mut files)?;
        let all: Vec<&str> = files.iter().flat_map(|(name, text)| [&name[..], &text[..]]).collect();
        let all = format!("{:016x}", hash(&all));
        Ok(Self { files, all })
    }

    /// A hash of what has to stay as it is for an outcome to hold while the function does: of a failure the file with
    /// the test, of the checker's all that it is, of a survivor everything.
    fn of(&self, outcome: &Outcome) -> String {
        let mut by = outcome.by.split(' ');
        let (package, program) = (by.next().unwrap_or_default(), by.next().unwrap_or_default());
        let test = by.next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
        let directory = format!("crates/{package}/");
        let function = format!("fn {test}(");
        let file = format!("crates/{package}/tests/{program}");
        let counts = |name: &str, text: &str| match outcome.kind {
            Kind::Test if test != "-" => name.starts_with(&directory) && text.contains(&function),
            Kind::Test | Kind::Timeout if package != "checker" => name.starts_with(&file),
            Kind::Test | Kind::Timeout | Kind::Checker => name.starts_with("crates/checker/"),
            Kind::Unviable | Kind::Survived => false,
        };
        if outcome.kind == Kind::Survived {
            return self.all.clone();
        }
        let files = self.files.iter().filter(|(name, text)| counts(name, text));
        let texts: Vec<&str> = files.map(|(_, text)| &text[..]).collect();
        format!("{:016x}", hash(&texts))
    }
}

/// Reads all of Rust below a directory, and the manifests.
fn collect(directory: &Path, root: &Path, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|it| it == "rs" || it == "toml");
        if path.is_dir() {
            collect(&path, root, files)?;
        } else if is_source && let Ok(below) = path.strip_prefix(root) {
            files.insert(below.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(changed: &str) -> Evidence {
        let file = |name: &str| {
            let text = format!("fn {}() {{}}", name.rsplit('/').next().unwrap_or_default());
            let text = if name == changed { text + " // changed" } else { text };
            (format!("crates/{name}.rs"), text)
        };
        let names = ["core/tests/model", "core/tests/room", "checker/src/log", "engine/src/own"];
        Evidence { files: names.map(file).into(), all: changed.to_owned() }
    }

    #[test]
    fn an_outcome_holds_while_what_it_rests_on_does() {
        let holds = |kind, by: &str, changed: &str| {
            let outcome = Outcome::new(kind, by);
            evidence("").of(&outcome) == evidence(changed).of(&outcome)
        };
        let test = "core model tests::model";
        assert!(
            holds(Kind::Test, test, "core/tests/room")
                && !holds(Kind::Test, test, "core/tests/model")
        );
        assert!(!holds(Kind::Timeout, "core room -", "core/tests/room"));
        assert!(holds(Kind::Timeout, "core room -", "core/tests/model"));
        assert!(!holds(Kind::Checker, "checker raidlab -", "checker/src/log"));
        assert!(holds(Kind::Checker, "checker raidlab -", "engine/src/own"));
        assert!(holds(Kind::Unviable, "", "engine/src/own"));
        assert!(!holds(Kind::Survived, "", "engine/src/own"));
    }

    #[test]
    fn lines_of_the_cache_come_back_and_torn_ones_do_not() {
        let line = r#"{"key": "k", "outcome": "timeout", "by": "core room -", "rebuilt": true,
            "evidence": "0a"}"#;
        let outcome = Outcome { is_rebuilt: true, ..Outcome::new(Kind::Timeout, "core room -") };
        assert_eq!(read(line), Some(("k".to_owned(), (outcome, "0a".to_owned()))));
        assert_eq!(read(&line[..40]), None);
        assert_eq!(read(&line.replace("timeout", "slow")), None);
    }
}
