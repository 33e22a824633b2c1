//! Dependencies: licences that deny.toml allows, and one version of each.
//!
//! What cargo-deny checks as well, without a tool to build first.

use std::collections::BTreeMap;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use super::tree::{Breach, Tree};

/// Where the lists are.
const LISTS: &str = "deny.toml";
const LOCK: &str = "Cargo.lock";

/// What deny.toml says.
#[derive(Debug)]
pub(crate) struct Lists {
    targets: Vec<String>,
    allowed: Vec<Licensee>,
    skipped: Vec<String>,
}

impl Lists {
    /// Reads them from the repository.
    pub(crate) fn read(tree: &Tree) -> Result<Self, Breach> {
        let breach = |message: String| Breach::new(LISTS, 1, "licences", message);
        let text = tree.get(LISTS).ok_or_else(|| breach("there is none".to_owned()))?;
        let table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| breach(e.to_string()))?;
        let list = |section: &str, key: &str| {
            let names = table.get(section).and_then(|section| section.get(key)?.as_array());
            let names =
                names.map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)));
            let names: Option<Vec<String>> = names.and_then(Iterator::collect);
            names.ok_or_else(|| breach(format!("`{key}` of [{section}] must be a list of names")))
        };
        let licensee = |name: String| {
            Licensee::parse(&name).map_err(|error| breach(format!("licence `{name}`: {error}")))
        };
        let allowed = list("licenses", "allow")?;
        Ok(Self {
            targets: list("graph", "targets")?,
            allowed: allowed.into_iter().map(licensee).collect::<Result<_, _>>()?,
            skipped: list("bans", "skip")?,
        })
    }

    /// The arguments of cargo that list every dependency of what is built.
    pub(crate) fn metadata(&self) -> Vec<&str> {
        let mut arguments = vec!["--all-features"];
        self.targets.iter().for_each(|target| arguments.extend(["--filter-platform", target]));
        arguments
    }

    /// Checks what cargo listed.
    pub(crate) fn check(&self, metadata: &Value, tree: &Tree) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let packages = metadata["packages"].as_array();
        if packages.is_none_or(Vec::is_empty) {
            breaches.push(Breach::new(LOCK, 1, "licences", "cargo metadata lists no package"));
        }
        for package in packages.into_iter().flatten() {
            let text = |key: &str| package[key].as_str();
            let (name, version) = (text("name").unwrap_or("?"), text("version").unwrap_or("?"));
            versions.entry(name).or_default().push(version);
            if let Err(why) = self.accepts(text("license")) {
                let message = format!("{name} {version}: {why}");
                breaches.push(Breach::new(LOCK, line_of(tree, name, version), "licences", message));
            }
        }
        for (name, versions) in versions {
            if versions.len() > 1 && !self.skipped.iter().any(|skipped| skipped == name) {
                let message = format!(
                    "{name} is built {} times ({}): align them, or name it in `skip` of {LISTS}",
                    versions.len(),
                    versions.join(", ")
                );
                let line = line_of(tree, name, versions[0]);
                breaches.push(Breach::new(LOCK, line, "one-version", message));
            }
        }
        breaches
    }

    /// Whether a choice among the licences offered is allowed; otherwise why not.
    fn accepts(&self, licence: Option<&str>) -> Result<(), String> {
        let licence = licence.ok_or("names no licence")?;
        // Lax: `MIT/Apache-2.0` is how crates used to say OR.
        let offered = Expression::parse_mode(licence, ParseMode::LAX)
            .map_err(|error| format!("licence `{licence}`: {}", error.reason))?;
        let allowed = offered.evaluate(|one| self.allowed.iter().any(|ours| ours.satisfies(one)));
        if allowed { Ok(()) } else { Err(format!("licence `{licence}` is not in {LISTS}")) }
    }
}

/// The line of Cargo.lock that names the package in this version; 1 where it does not.
fn line_of(tree: &Tree, name: &str, version: &str) -> usize {
    let lines: Vec<&str> = tree.get(LOCK).map(|text| text.lines().collect()).unwrap_or_default();
    let pair = [format!("name = \"{name}\""), format!("version = \"{version}\"")];
    lines.windows(2).position(|lines| lines == pair).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIST: &str = "[graph]\ntargets = [\"a\", \"b\"]\n[bans]\nskip = [\"twin\"]\n[licenses]\n\
                        allow = [\"MIT\", \"Apache-2.0 WITH LLVM-exception\", \"Zlib\"]\n";

    fn lists(text: &str) -> Result<Lists, Breach> {
        Lists::read(&Tree::of(&[(LISTS, text)]))
    }

    #[test]
    fn one_of_the_licences_offered_must_be_allowed() {
        let lists = lists(LIST).expect("reads");
        let good = [
            "MIT",
            "GPL-3.0-only OR MIT",
            "MIT/GPL-3.0",
            "MIT AND Zlib",
            "(GPL-2.0-only AND MIT) OR Zlib",
            "Apache-2.0 WITH LLVM-exception",
        ];
        for licence in good {
            assert_eq!(lists.accepts(Some(licence)), Ok(()), "{licence}");
        }
        let bad = [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "Apache-2.0",
            "(GPL-2.0-only OR MIT) AND LGPL-2.1-only",
            "GPL-2.0-only WITH Classpath-exception-2.0",
            "Nobody-Knows",
            "",
        ];
        for licence in bad {
            assert!(lists.accepts(Some(licence)).is_err(), "{licence}");
        }
        assert_eq!(lists.accepts(None), Err("names no licence".to_owned()));
    }

    #[test]
    fn breaches_stand_at_the_lines_of_the_lock_file() {
        let lists = lists(LIST).expect("reads");
        let package = |name, version, license: Value| json!({ "name": name, "version": version, "license": license });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1\"\n\n[[package]]\nname = \"a\"\nversion = \"2\"\n";
        let tree = Tree::of(&[(LOCK, lock)]);
        let found = |packages: Value| {
            let breaches = lists.check(&json!({ "packages": packages }), &tree);
            breaches.into_iter().map(|breach| (breach.line, breach.rule)).collect::<Vec<_>>()
        };
        let mit = || json!("MIT");
        assert_eq!(found(json!([package("a", "1", mit()), package("b", "1", mit())])), []);
        assert_eq!(found(json!([package("a", "2", Value::Null)])), [(6, "licences")]);
        let two = json!([package("a", "1", mit()), package("a", "2", mit())]);
        assert_eq!(found(two), [(2, "one-version")]);
        let twins = json!([package("twin", "1", mit()), package("twin", "2", mit())]);
        assert_eq!(found(twins), []);
        assert_eq!(found(json!([])), [(1, "licences")], "nothing listed is no proof");
    }

    #[test]
    fn lists_that_cannot_be_read_are_breaches() {
        let lists = |text: String| lists(&text).map_err(|breach| breach.message);
        assert!(lists(LIST.replace("MIT", "Nobody-Knows")).is_err_and(|e| e.contains("Nobody")));
        assert!(lists(LIST.replace("allow", "deny")).is_err_and(|e| e.contains("`allow`")));
        assert!(lists(LIST.replace("[\"twin\"]", "[7]")).is_err_and(|e| e.contains("`skip`")));
        assert!(lists("allow".to_owned()).is_err());
        assert!(Lists::read(&Tree::default()).is_err());
        let read = lists(LIST.to_owned()).expect("reads");
        assert_eq!(read.metadata()[1..], ["--filter-platform", "a", "--filter-platform", "b"]);
    }
}
