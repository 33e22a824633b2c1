//! Which tests boot guests: they are a step of their own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// What a test that boots guests calls.
const BOOTS: &str = "guest_or_skip(";

/// The names of the programs with tests, beside the unit tests of crates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    guests: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Targets {
    /// Reads them from the repository.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let metadata = crate::metadata(root, &["--no-deps"])?;
        Self::of(&metadata, |path| fs::read_to_string(path))
    }

    /// Tells them apart by what their files hold, and those of their modules.
    fn of(metadata: &Value, read: impl Fn(&Path) -> io::Result<String>) -> io::Result<Self> {
        let mut targets = Self::default();
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let all = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
        for target in all.filter(|target| target["kind"][0] == "test") {
            let (Some(name), Some(path)) = (target["name"].as_str(), target["src_path"].as_str())
            else {
                return Err(io::Error::other("cargo metadata has a test without name or file"));
            };
            let path = Path::new(path);
            let text = read(path)?;
            let boots = boots(&text, path.parent().unwrap_or(path), &read)?;
            let names = if boots { &mut targets.guests } else { &mut targets.others };
            names.insert(name.to_owned());
        }
        // Cargo takes targets of all crates by name: those of one name are run once, with the guests.
        targets.others.retain(|name| !targets.guests.contains(name));
        Ok(targets)
    }

    /// The arguments of `cargo test` for those that boot guests.
    pub(crate) fn with_guests(&self) -> Vec<&str> {
        self.guests.iter().flat_map(|name| ["--test", name]).collect()
    }

    /// The same for all others, unit tests too.
    pub(crate) fn without_guests(&self) -> Vec<&str> {
        let named = self.others.iter().flat_map(|name| ["--test", name.as_str()]);
        ["--lib", "--bins"].into_iter().chain(named).collect()
    }
}

/// Whether a file with tests boots guests, or one of its modules, which lie in the directory `below`. Modules with a
/// path of their own are helpers: the one that boots guests is among them.
fn boots(
    text: &str,
    below: &Path,
    read: &impl Fn(&Path) -> io::Result<String>,
) -> io::Result<bool> {
    if text.contains(BOOTS) {
        return Ok(true);
    }
    for (before, line) in std::iter::once("").chain(text.lines()).zip(text.lines()) {
        let module = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("mod ");
        let Some(name) = module.and_then(|rest| rest.strip_suffix(';')) else { continue };
        if before.starts_with("#[path") {
            continue;
        }
        let directory = below.join(name);
        for file in [directory.with_extension("rs"), directory.join("mod.rs")] {
            match read(&file) {
                Ok(text) if boots(&text, &directory, read)? => return Ok(true),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn guests_are_told_by_what_files_hold() {
        let test =
            |name: &str, path: &str| json!({"name": name, "kind": ["test"], "src_path": path});
        let bench = json!({"name": "e", "kind": ["bench"], "src_path": "missing"});
        let metadata = json!({"packages": [
            {"targets": [test("a", "plain"), test("b", "boots"), test("c", "plain"), bench]},
            {"targets": [test("c", "boots"), test("d", "plain")]},
        ]});
        let read = |path: &Path| match path.to_str() {
            Some("boots") => Ok("let Some(guest) = guest_or_skip(\"b\") else".to_owned()),
            Some("plain") => Ok("fn guest_or_skipped() {}".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let targets = Targets::of(&metadata, read).expect("reads");
        assert_eq!(targets.with_guests(), ["--test", "b", "--test", "c"]);
        let others = ["--lib", "--bins", "--test", "a", "--test", "d"];
        assert_eq!(targets.without_guests(), others);
        let nameless = json!({"packages": [{"targets": [{"kind": ["test"]}]}]});
        assert!(Targets::of(&nameless, read).is_err());
    }

    #[test]
    fn modules_of_a_program_count_and_helpers_do_not() {
        let with = |root: &str, module: &str, text: &str| {
            let read = |path: &Path| match path.to_str() {
                Some("tests/all.rs") => Ok(root.to_owned()),
                Some(path) if path == module => Ok(text.to_owned()),
                _ => Err(io::ErrorKind::NotFound.into()),
            };
            let test = json!({"name": "all", "kind": ["test"], "src_path": "tests/all.rs"});
            let metadata = json!({"packages": [{"targets": [test]}]});
            Targets::of(&metadata, read).expect("reads").with_guests().len()
        };
        let boots = "let Some(guest) = guest_or_skip(\"a\") else";
        for module in ["tests/a.rs", "tests/a/mod.rs"] {
            assert_eq!(with("mod b;\nmod a;\n", module, boots), 2, "{module}");
            assert_eq!(with("pub(crate) mod a;\n", module, boots), 2, "{module}");
            assert_eq!(with("#[path = \"a.rs\"]\nmod a;\n", module, boots), 0, "{module}");
            assert_eq!(with("mod b;\n", module, boots), 0, "{module}");
        }
        assert_eq!(with("mod a;\n", "tests/a.rs", "mod b;\n"), 0);
    }

    #[test]
    fn the_repository_has_both() {
        let targets = Targets::read(&crate::root()).expect("reads");
        assert!(targets.with_guests().contains(&"guests"), "{targets:?}");
        assert!(targets.without_guests().contains(&"all"), "{targets:?}");
    }
}
