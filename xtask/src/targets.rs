//! Benches of a tree, found and built through cargo.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::child;

/// A bench target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bench {
    /// Its name.
    pub(crate) name: String,
    /// The package it belongs to.
    pub(crate) package: String,
    /// The directory of that package.
    pub(crate) directory: PathBuf,
    /// Its file with `main`.
    pub(crate) source: PathBuf,
    /// Whether the package has benches only.
    pub(crate) alone: bool,
}

/// A file that every bench uses which prints lines.
const SUPPORT: &str = "tests/support/bench.rs";

impl Bench {
    /// Whether it can print lines.
    pub(crate) fn prints_lines(&self) -> bool {
        fs::read_to_string(&self.source).is_ok_and(|text| text.contains(SUPPORT))
    }
}

/// The benches of the tree at `root`, by name.
pub(crate) fn benches(root: &Path) -> io::Result<Vec<Bench>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let (status, text) = child::output(crate::cargo(root).args(arguments))?;
    if !status.success() {
        let message = format!("cargo cannot read the manifests in {}", root.display());
        return Err(io::Error::other(message));
    }
    read(&text).ok_or_else(|| io::Error::other("cargo's metadata are not as expected"))
}

fn read(metadata: &str) -> Option<Vec<Bench>> {
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    let mut benches = Vec::new();
    for package in metadata["packages"].as_array()? {
        let targets = package["targets"].as_array()?;
        let is_bench = |target: &&Value| target["kind"][0] == "bench";
        for target in targets.iter().filter(is_bench) {
            benches.push(Bench {
                name: target["name"].as_str()?.to_owned(),
                package: package["name"].as_str()?.to_owned(),
                directory: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
                source: target["src_path"].as_str()?.into(),
                alone: targets.iter().all(|target| is_bench(&target)),
            });
        }
    }
    benches.sort_by(|one, other| one.name.cmp(&other.name));
    Some(benches)
}

/// What came of a build.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Built {
    /// The program.
    Program(PathBuf),
    /// It does not compile: the compiler's first error.
    Error(String),
}

/// Runs a cargo command that builds one bench, whose `--message-format` is set here.
pub(crate) fn build(command: &mut Command, bench: &Bench) -> io::Result<Built> {
    command.args(["--package", &bench.package, "--bench", &bench.name]);
    command.arg("--message-format=json");
    let (status, text) = child::output(command)?;
    let (program, error) = read_build(&text, &bench.name);
    Ok(match program.filter(|_| status.success()) {
        Some(program) => Built::Program(program),
        None => Built::Error(error.unwrap_or_else(|| "cargo could not build it".to_owned())),
    })
}

/// The program of the bench and the first error, from what cargo says.
fn read_build(messages: &str, name: &str) -> (Option<PathBuf>, Option<String>) {
    let (mut program, mut error) = (None, None);
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let target = &message["target"];
        if target["name"] == name && target["kind"][0] == "bench" {
            program = message["executable"].as_str().map(PathBuf::from).or(program);
        }
        let said = &message["message"];
        if said["level"] == "error" {
            let text = said["rendered"].as_str().map(|text| text.trim_end().to_owned());
            error = error.or(text);
        }
    }
    (program, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_with_their_packages() {
        let metadata = r#"{"packages": [
            {"name": "p", "manifest_path": "/t/crates/p/Cargo.toml", "targets": [
                {"kind": ["lib"], "name": "p", "src_path": "/t/crates/p/src/lib.rs"},
                {"kind": ["bench"], "name": "late", "src_path": "/t/crates/p/benches/late.rs"}]},
            {"name": "only", "manifest_path": "/t/crates/only/Cargo.toml", "targets": [
                {"kind": ["bench"], "name": "first", "src_path": "/t/crates/only/benches/a/main.rs"}]}
        ]}"#;
        let found = read(metadata).expect("as cargo prints it");
        let names: Vec<_> =
            found.iter().map(|it| (&it.name[..], &it.package[..], it.alone)).collect();
        assert_eq!(names, [("first", "only", true), ("late", "p", false)]);
        assert_eq!(found[1].directory, Path::new("/t/crates/p"));
        assert_eq!(found[1].source, Path::new("/t/crates/p/benches/late.rs"));
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn a_build_gives_the_bench_or_the_first_error() {
        let other = r#"{"target": {"kind": ["bin"], "name": "a"}, "executable": "/x/other"}"#;
        let bench = r#"{"target": {"kind": ["bench"], "name": "a"}, "executable": "/x/a-1"}"#;
        let warning = r#"{"message": {"level": "warning", "rendered": "w"}}"#;
        let error = r#"{"message": {"level": "error", "rendered": "error: no field `x`\n\n"}}"#;
        let last = r#"{"message": {"level": "error", "rendered": "error: aborting"}}"#;
        let text = [bench, other, warning].join("\n");
        assert_eq!(read_build(&text, "a"), (Some("/x/a-1".into()), None));
        let text = [other, warning, error, last].join("\n");
        assert_eq!(read_build(&text, "a"), (None, Some("error: no field `x`".to_owned())));
        assert_eq!(read_build("", "a"), (None, None));
    }
}
