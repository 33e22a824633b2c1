//! `instructions`: what the hot paths execute, counted by callgrind, against the numbers in the tree.
//!
//! A count does not depend on what else the machine does, so every run can judge it; it says nothing of caches
//! and of what waits for what, for which there is `bench --against`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::packages;
use crate::suite::Outcome;
use crate::targets::{self, Bench, Built};

mod record;

use record::{Conditions, Record};

/// The numbers in the tree.
const FILE: &str = "xtask/instructions.txt";
const PACKAGE: &str = "raidlab-hot-paths";
/// The function around what is counted; callgrind shows it with the crate's name before and a hash behind it.
const FUNCTION: &str = "*hot_paths*measured*";
/// What callgrind writes, below the root of the repository.
const OUT: &str = "target/callgrind.out";

/// Counts, and judges or records.
pub(crate) fn run(root: &Path, records: bool) -> io::Result<Outcome> {
    let missing = packages::missing(&packages::COUNTING);
    if !missing.is_empty() {
        return Ok(Outcome::LeftOut(packages::reason(&missing)));
    }
    let now = Record { conditions: conditions(root)?, paths: count(root)? };
    let file = root.join(FILE);
    if records {
        fs::write(&file, now.to_string())?;
        println!("xtask: recorded {} paths in {FILE}", now.paths.len());
        return Ok(Outcome::Passed);
    }
    let recorded: Record = fs::read_to_string(&file)?
        .parse()
        .map_err(|error| io::Error::other(format!("{FILE}: {error}")))?;
    let judged = recorded.judge(&now);
    print!("{judged}");
    let anew = "record anew with `cargo xtask instructions --record`";
    let other = recorded.conditions.differences(&now.conditions);
    if !other.is_empty() {
        return Ok(Outcome::LeftOut(format!("recorded with another {}; {anew}", other.join(", "))));
    }
    if judged.is_outdated() {
        println!("xtask: what is faster, new or gone is guarded from its new number on: {anew}");
    }
    Ok(judged.passes().into())
}

/// What the numbers depend on besides our code.
fn conditions(root: &Path) -> io::Result<Conditions> {
    let said = |command: &mut Command| -> io::Result<String> {
        let output = command.current_dir(root).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let rustc = said(Command::new(rustc).arg("-vV"))?;
    let library = said(Command::new("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_default();
    let valgrind = said(Command::new("valgrind").arg("--version"))?;
    let vectors = if has_avx2() { "avx2" } else { "no avx2" };
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    Ok(Conditions {
        rustc: record::version(&rustc),
        // Valgrind shows one processor with AVX2, whichever it runs on, and one without.
        machine: format!("{}, {vectors}, {library}, {valgrind}", std::env::consts::ARCH),
        lock: record::lock_hash(&lock, PACKAGE),
    })
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// Instructions an iteration of each path.
fn count(root: &Path) -> io::Result<Vec<(String, f64)>> {
    let bench = targets::benches(root)?.into_iter().find(|bench| bench.package == PACKAGE);
    let bench: Bench = bench.ok_or_else(|| io::Error::other(format!("there is no {PACKAGE}")))?;
    // The profile of benches: the numbers belong to the times in the documents, and one that is only to build fast
    // may make several times as many instructions of the same code.
    let mut build = crate::cargo(root);
    // Flags of the environment would make other code of what was recorded without them.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let program = match targets::build(build.args(["bench", "--no-run"]), &bench)? {
        Built::Program(program) => program,
        Built::Error(why) => return Err(io::Error::other(format!("{PACKAGE}: {why}"))),
    };
    let listed = Command::new(&program).output()?;
    let listed =
        record::listed(&String::from_utf8_lossy(&listed.stdout)).map_err(io::Error::other)?;
    let out = root.join(OUT);
    let mut paths = Vec::new();
    for (name, iterations) in listed {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet"]);
        valgrind.arg(format!("--toggle-collect={FUNCTION}"));
        valgrind.arg(format!("--callgrind-out-file={}", out.display()));
        let status = valgrind.arg(&program).arg(&name).status()?;
        let counted = record::counted(&fs::read_to_string(&out)?);
        let Some(counted) = counted.filter(|_| status.success()) else {
            return Err(io::Error::other(format!("{name}: valgrind counted nothing: {status}")));
        };
        // As many digits as are recorded.
        paths.push((name, (counted as f64 / f64::from(iterations) * 100.0).round() / 100.0));
    }
    Ok(paths)
}
