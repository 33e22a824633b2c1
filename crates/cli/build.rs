//! Tells the program which commit it is built from, where git knows.

use std::path::Path;
use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_string())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What git writes whenever another commit is checked out; where it is missing nothing is known.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
        if let Some(commit) = git(&["rev-parse", "HEAD"]) {
            println!("cargo::rustc-env=RAIDLAB_COMMIT={commit}");
        }
    }
}
