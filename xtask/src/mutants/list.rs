//! What can be changed, as cargo-mutants lists it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde_json::Value;

use super::hash;

/// Whose mutants are drawn from: what files are called together, and how their paths begin. In parity all but the
/// vector code and what chooses it, in the engine and among the targets the parts that are named.
const POPULATION: [(&str, &str); 13] = [
    ("core", "crates/core/src/"),
    ("parity", "crates/parity/src/checked.rs"),
    ("parity", "crates/parity/src/error.rs"),
    ("parity", "crates/parity/src/field.rs"),
    ("parity", "crates/parity/src/inspect.rs"),
    ("parity", "crates/parity/src/lib.rs"),
    ("parity", "crates/parity/src/scalar.rs"),
    ("parity", "crates/parity/src/terms.rs"),
    ("metadata", "crates/metadata/src/"),
    ("engine: assembly", "crates/engine/src/metadata.rs"),
    ("engine: assembly", "crates/engine/src/engine/setup.rs"),
    ("targets: run directories", "crates/targets/src/rundir.rs"),
    ("targets: run directories", "crates/targets/src/rundir/"),
];

/// The packages these files belong to.
pub(crate) const PACKAGES: [&str; 5] = ["core", "parity", "metadata", "engine", "targets"];

/// A line and a column, counted from 1 in characters.
pub(crate) type Place = (usize, usize);

/// One change of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// What is replaced.
    pub(crate) span: Range<Place>,
    /// What stands there instead.
    pub(crate) replacement: String,
    /// What it is called, without its line, so that changes above it do not rename it.
    pub(crate) name: String,
    /// What it is counted with.
    pub(crate) module: String,
    /// Whether it replaces what a function does altogether.
    pub(crate) is_body: bool,
}

impl Mutant {
    /// Where it is and what it does.
    pub(crate) fn title(&self) -> String {
        let what = self.name.strip_prefix(&self.file).unwrap_or(&self.name);
        format!("{}:{}{what}", self.file, self.span.start.0)
    }

    /// The directory of the package in `crates`.
    pub(crate) fn package(&self) -> &str {
        self.file.split('/').nth(1).unwrap_or_default()
    }

    /// A number that another change, or another seed, has not.
    pub(crate) fn order(&self, seed: u64) -> u64 {
        hash(&[&seed.to_string(), &self.name])
    }
}

/// All mutants of the population, in the order of cargo-mutants. Neither a configuration nor an option leaves any out.
pub(crate) fn list(root: &Path) -> io::Result<Vec<Mutant>> {
    if !crate::cargo(root).args(["mutants", "--version"]).output()?.status.success() {
        let message = "`mutants` needs cargo-mutants: cargo install --locked cargo-mutants";
        return Err(io::Error::other(message));
    }
    let mut command = crate::cargo(root);
    command.args(["mutants", "--no-config", "--list", "--json"]);
    PACKAGES.iter().for_each(|name| {
        command.args(["--package", &format!("raidlab-{name}")]);
    });
    let output = command.output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("cargo mutants: {message}")));
    }
    let value: Value = serde_json::from_slice(&output.stdout)?;
    read(&value).ok_or_else(|| io::Error::other("cargo-mutants lists other things than expected"))
}

fn read(listed: &Value) -> Option<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for one in listed.as_array()? {
        let file = one["file"].as_str()?;
        let Some(module) = module(file) else { continue };
        let place = |end: &str| {
            let number = |key: &str| one["span"][end][key].as_u64().map(|number| number as usize);
            Some((number("line")?, number("column")?))
        };
        let span = place("start")?..place("end")?;
        let position = format!("{file}:{}:{}: ", span.start.0, span.start.1);
        let mut name = format!("{file}: {}", one["name"].as_str()?.strip_prefix(&position)?);
        let count = known.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name += &format!(" #{count}");
        }
        mutants.push(Mutant {
            file: file.to_owned(),
            span,
            replacement: one["replacement"].as_str()?.to_owned(),
            name,
            module,
            is_body: one["genre"] == "FnValue",
        });
    }
    Some(mutants)
}

/// What a file is counted with, if it belongs to the population: the core is large, and counted by directory.
fn module(file: &str) -> Option<String> {
    let (name, prefix) = POPULATION.iter().find(|(_, prefix)| file.starts_with(prefix))?;
    let below = file.strip_prefix(prefix)?;
    Some(match below.rsplit_once('/') {
        Some((directory, _)) if *name == "core" => {
            format!("core::{}", directory.replace('/', "::"))
        }
        _ => (*name).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_counted_by_module_or_not_at_all() {
        let module = |file: &str| module(file).unwrap_or_default();
        assert_eq!(module("crates/core/src/stack.rs"), "core");
        assert_eq!(module("crates/core/src/array/log/replay.rs"), "core::array::log");
        assert_eq!(module("crates/metadata/src/read.rs"), "metadata");
        assert_eq!(module("crates/targets/src/rundir/system.rs"), "targets: run directories");
        assert_eq!(module("crates/parity/src/pass.rs"), "");
        assert_eq!(module("crates/engine/src/engine/io.rs"), "");
    }

    #[test]
    fn mutants_are_named_without_their_lines() {
        let place = |line, column| json!({"line": line, "column": column});
        let one = |line: usize, file: &str| {
            json!({"file": file, "genre": "BinaryOperator", "replacement": "-",
                "name": format!("{file}:{line}:5: replace + with - in f"),
                "span": {"start": place(line, 5), "end": place(line, 6)}})
        };
        let file = "crates/core/src/units.rs";
        let other = "crates/core/tests/model.rs";
        let found = read(&json!([one(3, file), one(4, other), one(9, file)])).expect("as listed");
        let names: Vec<&str> = found.iter().map(|mutant| &mutant.name[..]).collect();
        let name = "crates/core/src/units.rs: replace + with - in f";
        assert_eq!(names, [name, &format!("{name} #2")]);
        assert_eq!(found[1].title(), "crates/core/src/units.rs:9: replace + with - in f #2");
        assert_eq!((found[0].span.clone(), found[0].package()), ((3, 5)..(3, 6), "core"));
        assert_eq!(read(&json!([{"file": file}])), None);
    }
}
