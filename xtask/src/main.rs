//! Developer tasks, as `cargo xtask ...`: see [`USAGE`].
#![forbid(unsafe_code)]

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

mod asan;
mod bench;
mod bits;
mod book;
mod budget;
mod child;
#[path = "../../tests/support/corpus.rs"]
mod corpus;
mod docs;
mod fidelity;
mod fuzz;
mod instructions;
mod kernel;
#[path = "../../tests/support/markdown.rs"]
mod markdown;
mod mutants;
mod package;
#[path = "../../tests/support/packages.rs"]
mod packages;
mod pages;
mod programs;
mod python;
mod release;
mod slow;
mod suite;
mod targets;
mod tidy;
mod totals;
mod what_if;

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--full] [--install]
                   all checks and tests of the repository, and what each step took.
                   --full: also what is too long for every run
                   --install: first installs the packages they need, by apt-get
  tidy             the rules of the repository that no compiler checks
  deny [ARG...]    `cargo deny check licenses bans sources`, where cargo-deny is installed; ARG is handed to
                   it. Advisories are not checked: their database has to be fetched anew each time
  bugs [ARG...]    plants every seeded bug and shows what finds it; ARG is handed to
                   `raidlab check --bugs`, such as --sample 8
  mutants --seed N [--count 400] | --shard K/N | --diffs DIR [--known] [--markdown FILE]
                   mutation testing: a sample of the mutants of cargo-mutants, stratified by module, each
                   behind a runtime switch; what tests and checker do not notice is listed.
                   --shard: instead of a sample the K-th of N parts of all
                   --diffs: the bugs that somebody planted instead, each FILE.diff of DIR, against all tests
                   --known: runs nothing, tells what earlier runs found
  fuzz [TARGET...] [--runs N] [--seconds N] [--minimise] [--plain]
                   fuzzes what comes from outside with libFuzzer; without a target: lists them; --help says
                   more
  asan [CRATE...]  the tests of the crates with unsafe code (engine, parity, metadata, targets) under
                   AddressSanitizer
  bits [--install] whether what is computed has the same bits in a release, a debug and a wasm32 build;
                   names the first cells that differ. A build that needs what is not here is skipped,
                   or with --install that is fetched
  docs [--sample N] [--with FILE] [DOCUMENT...]
                   runs the commands that the documents show; --sample: a twelfth of them, chosen by N;
                   --with: with this raidlab instead of building it
  book [--with FILE]
                   the documents as a site, in target/book, by mdBook, with the help of all commands;
                   --with: of this raidlab instead of building it
  package [--with FILE] [--try]
                   a static program, a Debian package of it with man pages and completions, in
                   target/package; --with: packs this static program instead of building one;
                   --try: installs it in a clean Debian (by debootstrap), runs it, its man pages and
                   completions there, and removes it; by root
  python [--with FILE] [--sample N] [--notebooks | --mutate N]
                   builds the Python package and runs its tests, the examples of docs/python.md and the notebooks
                   as scripts, in an environment that pip fills in target/python; skipped by name without Python;
                   --with: compares it with this raidlab; --sample: one of the scripts, by this number; --notebooks:
                   runs the notebooks as such, in Jupyter; --mutate: N dicts that are almost studies
  release [--try]  all that is handed out, in target/release-files: static program, Debian package, wheel, source
                   distribution, bill of materials, checksums; crates that are published are packed and checked;
                   --try: installs, uses and removes the package in a clean Debian and the wheel in a clean
                   environment; by root
  pages [--install] [--shots DIR] [--with FILE] [--only PAGE]
                   opens reports in headless Chromium (chromium, node and npm; --install gets them): errors,
                   requests, figures, sorting, filters, downloads, touch, what is cut off, axe-core;
                   --shots: pictures; --with: of this raidlab instead of building it; --only: default, states,
                   sizes, real, files, replay, kernel, ten-thousand or what-if alone
  what-if [--out FILE] [--time PROGRAM]
                   the what-if page, one offline HTML file, in target/what-if; --time: its cells beside those of
                   this raidlab, in turns
  bench [ARG...]   all benchmarks; ARG is handed to `cargo bench`
  bench --against COMMIT [NAME...] [--rounds N] [--limit PERCENT]
                   benches of now and of COMMIT in turns (planner, engine, ...), 7 rounds or more: the
                   ratios with intervals; --limit: fails when one is surely more than PERCENT slower
  fidelity [--seed N] [--cells 300] [--kernel 6.1|6.12] [--stored] [--minutes N] | --trust [--record]
                   how near the model comes to a kernel in cells drawn by a seed, by group; --stored: with the
                   measured cells of the repository; --trust: whether what reports tell of the model's error
                   is that of today, with --record made anew; --help says more
  kernel VERSION [--hz N]
                   builds the kernel of that version for the kernel lab, or finds it built; without: says more
  instructions [--record]
                   counts the instructions of the hot paths and fails when one has 3 % more than
                   xtask/instructions.txt says; --record: writes that file
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["test", ref options @ ..] => match suite::Options::parse(options) {
            Some(options) => suite::run(&root(), options),
            None => return usage(),
        },
        ["tidy"] => tidy(&root()),
        ["deny", ref more @ ..] => deny(&root(), more),
        ["bugs", ref more @ ..] => bugs(&root(), more),
        ["bench", ref more @ ..] if more.contains(&"--against") => bench::against(&root(), more),
        ["bench", ref more @ ..] => plain_bench(&root(), more),
        ["instructions"] => instructions(&root(), false),
        ["instructions", "--record"] => instructions(&root(), true),
        ["mutants", ref more @ ..] => match mutants::Options::parse(more) {
            Some(options) => mutants::run(&root(), &options),
            None => return usage(),
        },
        ["fuzz", ref more @ ..] if more.contains(&"--help") => {
            print!("{}", fuzz::USAGE);
            Ok(true)
        }
        ["fuzz", ref more @ ..] => match fuzz::Options::parse(more) {
            Some(options) => fuzz::run(&root(), &options),
            None => {
                eprint!("{}", fuzz::USAGE);
                return ExitCode::from(2);
            }
        },
        ["asan", ref more @ ..] if more.iter().all(|one| !one.starts_with('-')) => {
            asan::run(&root(), more)
        }
        ["kernel", ref more @ ..] => match kernel::Options::parse(more) {
            Some(options) => kernel::run(&root(), &options),
            None => {
                eprint!("{}", kernel::USAGE);
                return ExitCode::from(2);
            }
        },
        ["fidelity", ref more @ ..] => fidelity::task(&root(), more),
        ["book"] => book::run(&root(), None),
        ["book", "--with", program] => book::run(&root(), Some(Path::new(program))),
        ["package", ref more @ ..] => match package::Options::parse(more) {
            Some(options) => package::run(&root(), &options),
            None => return usage(),
        },
        ["bits", ref more @ ..] => bits::task(&root(), more),
        ["python", ref more @ ..] => python::task(&root(), more),
        ["release", ref more @ ..] => release::task(&root(), more),
        ["docs", ref more @ ..] => docs::run(&root(), more),
        ["pages", ref more @ ..] => pages::run(&root(), more),
        ["what-if", ref more @ ..] => what_if::task(&root(), more),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => return usage(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(if error.kind() == io::ErrorKind::Interrupted { 130 } else { 1 })
        }
    }
}

/// Says how it is used, as an error.
fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}

/// The root of the repository.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask is a directory of the repository").to_owned()
}

/// The cargo that runs this task, at the root of the repository.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// What `cargo metadata` tells of the workspace.
fn metadata(root: &Path, arguments: &[&str]) -> io::Result<serde_json::Value> {
    let mut command = cargo(root);
    command.args(["metadata", "--format-version=1", "--locked"]).args(arguments);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other("cargo metadata failed"));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Prints all breaches; true if there are none.
fn tidy(root: &Path) -> io::Result<bool> {
    let breaches = tidy::run(root)?;
    for breach in &breaches {
        println!("{breach}");
    }
    Ok(breaches.is_empty())
}

/// Runs cargo-deny; skipped by name where there is none.
fn deny(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    if !cargo(root).args(["deny", "--version"]).output()?.status.success() {
        println!("skipped: deny: needs cargo-deny (cargo install --locked cargo-deny)");
        return Ok(true);
    }
    let check = ["deny", "--locked", "check"];
    let status =
        cargo(root).args(check).args(arguments).args(["licenses", "bans", "sources"]).status()?;
    Ok(status.success())
}

fn bugs(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    Ok(check(root, &["--bugs"]).args(arguments).status()?.success())
}

/// `raidlab check`, optimised for long runs, with the bugs that can be planted.
fn check(root: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--profile", "checker", "--package", "raidlab-cli"]);
    command.args(["--", "check"]).args(arguments);
    command
}

fn plain_bench(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let status = cargo(root).args(["bench", "--workspace"]).args(arguments).status()?;
    Ok(status.success())
}

fn instructions(root: &Path, records: bool) -> io::Result<bool> {
    Ok(match instructions::run(root, records)? {
        suite::Outcome::Passed => true,
        suite::Outcome::Failed => false,
        suite::Outcome::LeftOut(why) => {
            println!("skipped: instructions: {why}");
            true
        }
    })
}
