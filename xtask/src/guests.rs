//! Which tests boot guests: they are a step of their own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

/// What a test that boots guests calls.
const BOOTS: &str = "guest_or_skip(";

/// The names of the files with tests, beside the unit tests of crates.
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

    /// Tells them apart by what their files hold.
    fn of(metadata: &Value, read: impl Fn(&str) -> io::Result<String>) -> io::Result<Self> {
        let mut targets = Self::default();
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let all = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
        for target in all.filter(|target| target["kind"][0] == "test") {
            let (Some(name), Some(path)) = (target["name"].as_str(), target["src_path"].as_str())
            else {
                return Err(io::Error::other("cargo metadata has a test without name or file"));
            };
            let boots = read(path)?.contains(BOOTS);
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
        let read = |path: &str| match path {
            "boots" => Ok("let Some(guest) = guest_or_skip(\"b\") else".to_owned()),
            "plain" => Ok("fn guest_or_skipped() {}".to_owned()),
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
    fn the_repository_has_both() {
        let targets = Targets::read(&crate::root()).expect("reads");
        assert!(targets.with_guests().contains(&"kernel_md"), "{targets:?}");
        assert!(targets.without_guests().contains(&"all"), "{targets:?}");
    }
}
