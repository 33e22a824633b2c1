//! The test command: one step after the other, until one fails.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::budget::{self, Table};
use crate::fuzz::target_directory;
use crate::packages;
use crate::programs::{self, Way};
use crate::slow;
use crate::totals::Totals;

/// Tells the tests whether they can boot a guest: `available`, or `missing:` and why.
const GUEST: &str = "RAIDLAB_GUEST";
/// The same about GRUB as a reader of arrays.
const GRUB: &str = "RAIDLAB_GRUB";
/// Set to 1: the tests run what is too long for every run.
const FULL: &str = "RAIDLAB_FULL";
/// What no program with tests takes, unless one of them hangs; of a full run none has an end.
const HANGS: Duration = Duration::from_secs(600);
/// A number by which tests choose their samples; another one for every commit.
const SAMPLE: &str = "RAIDLAB_SAMPLE";

/// Whether a step went well, or why it was left out.
pub(crate) enum Outcome {
    Passed,
    Failed,
    LeftOut(String),
}

impl From<bool> for Outcome {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

type Step<'a> = (&'static str, &'a dyn Fn(&mut Totals) -> io::Result<Outcome>);

/// How to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    full: bool,
    install: bool,
}

impl Options {
    /// Reads the arguments of the command, in any order; `None` where one is unknown.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match *argument {
                "--full" => options.full = true,
                "--install" => options.install = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Steps of which each commit runs one, another one for each number: what they find seldom changes, and each has
/// a build of its own or takes long.
pub(crate) const BY_TURNS: [&str; 5] = ["rustdoc", "instructions", "page", "features", "python"];

/// The step that all later ones need.
const BUILD: &str = "build";

/// What tests are told.
struct Facts {
    guest: String,
    grub: String,
    sample: u32,
    full: bool,
}

/// Runs all steps; true if all went well. The last line printed has the totals.
pub(crate) fn run(root: &Path, options: Options) -> io::Result<bool> {
    let mut table = Table::default();
    let packages = || {
        if options.install {
            crate::pages::fetch(root);
        }
        Ok(packages_for_tests(options.install))
    };
    let [guest, grub] = timed("packages", &mut table, packages)?;
    let told = Facts { guest, grub, sample: sample(root), full: options.full };
    told.print();
    let by = told.sample.to_string();
    let left = if told.full { Vec::new() } else { slow::left_to_others(root, told.sample)? };
    let skipping = slow::skipping(&left);
    let test = |arguments: &[&str], totals: &mut Totals| {
        let mut command = crate::cargo(root);
        command.args(["test", "--workspace", "--no-fail-fast"]).args(arguments);
        told.tell(&mut command);
        read_totals(command, (io::stdout(), io::stderr()), totals).map(Outcome::from)
    };
    let features = "--features=raidlab-cli/mimalloc";
    let clippy = ["clippy", "--workspace", "--all-targets", features, "--", "-D", "warnings"];
    let steps: [Step<'_>; budget::BUDGETS.len()] = [
        ("format", &|_| component(root, "rustfmt", &["fmt", "--all", "--check"])),
        ("tidy", &|_| crate::tidy(root).map(Outcome::from)),
        ("clippy", &|_| component(root, "clippy", &clippy)),
        ("rustdoc", &|_| document(root)),
        (BUILD, &|totals| test(&["--no-run"], totals)),
        ("tests", &|totals| run_programs(root, &told, &skipping, totals)),
        ("doc tests", &|totals| test(&["--doc"], totals)),
        ("outside program", &|_| outside(root)),
        ("python", &|totals| python(root, told.sample, totals)),
        ("checker", &|_| checker(root, told.sample)),
        ("seeded bugs", &|_| check(root, &["--bugs", "--sample", "6", "--by", &by])),
        ("instructions", &|_| crate::instructions::run(root, false)),
        ("documents", &|totals| documents(root, told.sample, totals)),
        ("page", &|_| page(root)),
        // The last, as it leaves a raidlab with these features where the others have theirs.
        ("features", &|totals| features_of_packages(root, totals)),
    ];
    let mut totals = Totals::default();
    let turn = (!told.full).then(|| BY_TURNS[told.sample as usize % BY_TURNS.len()]);
    let failed = failures(&steps, turn, &mut totals, &mut table)?;
    print!("\n{table}");
    if table.total().wall > budget::LIMIT {
        println!("xtask: that is more than the {} s a run may take", budget::LIMIT.as_secs());
    }
    totals.skipped().for_each(|line| println!("{line}"));
    if !left.is_empty() {
        println!(
            "left to other commits: {} tests that take long (tests/slow.txt); --full runs all",
            left.len()
        );
    }
    for name in &failed {
        totals.count_failed_step();
        println!("xtask: failed step: {name}");
    }
    println!("{totals}");
    Ok(failed.is_empty())
}

/// Runs the programs with these tests but those that are skipped.
fn run_programs(
    root: &Path,
    told: &Facts,
    skipping: &[&str],
    totals: &mut Totals,
) -> io::Result<Outcome> {
    let Some(programs) = programs::built(root)? else { return Ok(Outcome::Failed) };
    let way = Way {
        arguments: skipping,
        tell: &|command| told.tell(command),
        limit: if told.full { Duration::MAX } else { HANGS },
        directory: &target_directory(root).join("test-output"),
    };
    programs::run(programs, &way, io::stdout(), totals).map(Outcome::from)
}

impl Facts {
    fn print(&self) {
        let Self { guest, grub, sample, full } = self;
        let more = if *full { " full" } else { "" };
        println!("xtask: {GUEST}={guest} {GRUB}={grub} {SAMPLE}={sample}{more}");
    }

    /// Puts it into the environment of a command.
    fn tell(&self, command: &mut Command) {
        command.env(GUEST, &self.guest).env(GRUB, &self.grub);
        command.env(SAMPLE, self.sample.to_string()).env_remove(FULL);
        if self.full {
            command.env(FULL, "1");
        }
    }
}

/// Runs the steps and names those that fail, so that one run tells all there is to mend. What does not compile
/// ends it: later steps would only say so again. Of those by turns only the one whose `turn` it is is run, or all.
fn failures(
    steps: &[Step<'_>],
    turn: Option<&str>,
    totals: &mut Totals,
    table: &mut Table,
) -> io::Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for (name, step) in steps {
        if turn.is_some_and(|turn| BY_TURNS.contains(name) && turn != *name) {
            totals.leave_out(name, "another commit's turn; --full runs all");
            continue;
        }
        match timed(name, table, || step(totals))? {
            Outcome::Passed => {}
            Outcome::Failed => failed.push(*name),
            Outcome::LeftOut(why) => totals.leave_out(name, &why),
        }
        if failed.contains(&BUILD) {
            break;
        }
    }
    Ok(failed)
}

fn timed<T>(
    name: &'static str,
    table: &mut Table,
    step: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    println!("xtask: {name} ...");
    let (result, used) = budget::measure(step)?;
    println!("xtask: {name}: {:.1} s", used.wall.as_secs_f64());
    table.add(name, used);
    Ok(result)
}

/// Installs what tests need if it is missing and may be installed, or lists it; says what to tell tests of
/// the guest and of GRUB.
fn packages_for_tests(install: bool) -> [String; 2] {
    let parts: [&[packages::Package]; 2] = [&packages::GUEST, &packages::GRUB];
    let mut missing = parts.map(packages::missing).concat();
    let others: [&[packages::Package]; 8] = [
        &packages::PARITY,
        &packages::ORIGINALS,
        &packages::COUNTING,
        &packages::FILESYSTEMS,
        &packages::NBD,
        &packages::NBD_CLIENT,
        &packages::UDEV,
        &packages::LVM,
    ];
    missing.extend(others.into_iter().flat_map(packages::missing));
    // Some are needed by several.
    missing.sort_unstable();
    missing.dedup();
    let there = missing.is_empty() || install && installed(&missing);
    if !there {
        println!("{}", packages::advice(&missing));
    }
    parts.map(|packages| told(&packages::missing(packages)))
}

/// Installs packages; true if that went well.
fn installed(names: &[&str]) -> bool {
    // The lists of packages may be old or not there; fetching them takes long, so only then.
    let install = [&["install", "-y", "--no-install-recommends"], names].concat();
    apt_get(&install) || (apt_get(&["update"]) && apt_get(&install))
}

/// What tests are told when these packages are missing.
fn told(missing: &[&str]) -> String {
    if missing.is_empty() {
        return "available".to_owned();
    }
    format!("missing:{}", packages::reason(missing))
}

pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs apt-get, if there is one, without questions; true if it went well.
fn apt_get(arguments: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2"]);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs a cargo command that belongs to a component of the toolchain; rustup brings those that
/// rust-toolchain.toml names.
fn component(root: &Path, name: &str, arguments: &[&str]) -> io::Result<Outcome> {
    let version = crate::cargo(root).args([arguments[0], "--version"]).output()?;
    if !version.status.success() {
        return Ok(Outcome::LeftOut(format!("needs the component {name} of the toolchain")));
    }
    Ok(crate::cargo(root).args(arguments).status()?.success().into())
}

/// The first of the seeds that the checker takes for a sample; all of them were run before.
fn first_seed(sample: u32) -> u32 {
    sample % 70 * 2000
}

/// The raidlab that tests built: a build for each step would take longer than the steps.
fn program(root: &Path) -> PathBuf {
    target_directory(root).join("debug/raidlab")
}

/// Versions of Linux md's metadata, of which the checker takes one for each number.
const MD: [&str; 4] = ["0.90", "1.0", "1.1", "1.2"];

/// Runs the checker on a sample, then some seeds of it through the bytes of md's metadata.
fn checker(root: &Path, sample: u32) -> io::Result<Outcome> {
    let from = first_seed(sample).to_string();
    let version = MD[sample as usize % MD.len()];
    // Of the first 20,000, which were run before.
    let first = (sample % 25 * 800).to_string();
    let through_md = ["--metadata", version, "--seeds", "800", "--from", &first];
    match check(root, &["--from", &from])? {
        Outcome::Passed => check(root, &through_md),
        other => Ok(other),
    }
}

/// Runs the checker.
fn check(root: &Path, arguments: &[&str]) -> io::Result<Outcome> {
    Ok(Command::new(program(root)).arg("check").args(arguments).status()?.success().into())
}

/// Runs a sample of the commands in the documents.
fn documents(root: &Path, sample: u32, totals: &mut Totals) -> io::Result<Outcome> {
    let mut command = crate::cargo(root);
    command.args(["xtask", "docs", "--sample", &sample.to_string(), "--with"]).arg(program(root));
    read_totals(command, (io::stdout(), io::stderr()), totals).map(Outcome::from)
}

/// Builds and tests the Python package, with one of its scripts.
fn python(root: &Path, sample: u32, totals: &mut Totals) -> io::Result<Outcome> {
    let mut command = crate::cargo(root);
    command.args(["xtask", "python", "--sample", &sample.to_string(), "--with"]).arg(program(root));
    // Its harness prints no totals: what it skips was never counted as passed.
    let mut own = Totals::default();
    let went_well = read_totals(command, (io::stdout(), io::stderr()), &mut own)?;
    totals.add(own.without_tests());
    Ok(went_well.into())
}

/// Opens the page of the default run in a browser.
fn page(root: &Path) -> io::Result<Outcome> {
    Ok(match crate::pages::one(root, &program(root))? {
        Ok(good) => good.into(),
        Err(missing) => Outcome::LeftOut(missing),
    })
}

/// Tests what only packages are built with: TLS and Parquet. With two more crates, which have no test of these names:
/// cargo leaves out what only crates that are not chosen want of a dependency, and builds all that uses it once more.
fn features_of_packages(root: &Path, totals: &mut Totals) -> io::Result<Outcome> {
    let mut command = crate::cargo(root);
    command.args(["test", "--package", "raidlab-sweep", "--package", "raidlab-cli"]);
    command.args(["--package", "xtask", "--package", "raidlab-python"]);
    command.args(["--features", "raidlab-cli/tls,raidlab-cli/parquet"]);
    command.args(["--test", "sweep", "--test", "all", "--", "tls", "parquet"]);
    read_totals(command, (io::stdout(), io::stderr()), totals).map(Outcome::from)
}

/// Builds and runs a program outside of the workspace that uses its libraries. What it needs is built already, as
/// tests need it, too.
fn outside(root: &Path) -> io::Result<Outcome> {
    let mut command = crate::cargo(root);
    command.args([
        "run",
        "--quiet",
        "--locked",
        "--manifest-path",
        "examples/own-member/Cargo.toml",
    ]);
    Ok(command.arg("--target-dir").arg(target_directory(root)).status()?.success().into())
}

fn document(root: &Path) -> io::Result<Outcome> {
    let mut command = crate::cargo(root);
    command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    Ok(command.status()?.success().into())
}

/// Runs a command, passing its output on to `to`, and adds the results of tests in it to `totals`.
fn read_totals(
    mut command: Command,
    to: (impl Write, impl Write + Send + 'static),
    totals: &mut Totals,
) -> io::Result<bool> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let out = child.stdout.take().expect("standard output is piped");
    let err = child.stderr.take().expect("standard error is piped");
    let err = thread::spawn(move || pass_on(err, to.1));
    totals.add(pass_on(out, to.0)?);
    totals.add(err.join().expect("the reader of standard error does not panic")?);
    Ok(child.wait()?.success())
}

fn pass_on(from: impl io::Read, mut to: impl Write) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        totals.read(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(totals)
}

/// A number made of the commit; 0 where there is none.
fn sample(root: &Path) -> u32 {
    let output = Command::new("git").arg("-C").arg(root).args(["rev-parse", "HEAD"]).output();
    let text = match output {
        Ok(output) if output.status.success() => output.stdout,
        _ => Vec::new(),
    };
    sample_of(&String::from_utf8_lossy(&text))
}

fn sample_of(commit: &str) -> u32 {
    commit.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_steps_run_but_those_after_a_build_that_fails() {
        let passes = |_: &mut Totals| Ok(Outcome::Passed);
        let fails = |_: &mut Totals| Ok(Outcome::Failed);
        let absent = |_: &mut Totals| Ok(Outcome::LeftOut("needs a".to_owned()));
        let never = |_: &mut Totals| -> io::Result<Outcome> { panic!("must not run") };
        let mut totals = Totals::default();
        let steps: [Step<'_>; 5] = [
            ("one", &fails),
            ("two", &absent),
            ("three", &passes),
            (BUILD, &fails),
            ("after it", &never),
        ];
        let mut table = Table::default();
        assert_eq!(failures(&steps, None, &mut totals, &mut table).ok(), Some(vec!["one", BUILD]));
        let listed = table.to_string();
        let named = |name: &str| listed.lines().any(|line| line.starts_with(name));
        assert!(named("one ") && named("two ") && named("three "), "{listed}");
        assert!(named("build ") && !named("after it "), "{listed}");
        assert_eq!(totals.skipped().collect::<Vec<_>>(), ["skipped: two (needs a)"]);
        assert_eq!(failures(&steps[1..3], None, &mut totals, &mut table).ok(), Some(vec![]));
        // By turns: the one step is run, the other is told.
        let turns: [Step<'_>; 3] = [("rustdoc", &never), ("page", &fails), ("tests", &passes)];
        let mut totals = Totals::default();
        let failed = failures(&turns, Some("page"), &mut totals, &mut Table::default());
        assert_eq!(failed.ok(), Some(vec!["page"]));
        assert!(totals.skipped().any(|line| line.starts_with("skipped: rustdoc (another")));
        assert!(BY_TURNS.iter().all(|name| budget::BUDGETS.iter().any(|(step, _)| step == name)));
    }

    #[test]
    fn options_combine_in_any_order() {
        let options = |full, install| Some(Options { full, install });
        assert_eq!(Options::parse(&[]), options(false, false));
        assert_eq!(Options::parse(&["--full"]), options(true, false));
        assert_eq!(Options::parse(&["--install"]), options(false, true));
        assert_eq!(Options::parse(&["--full", "--install"]), options(true, true));
        assert_eq!(Options::parse(&["--install", "--full"]), options(true, true));
        for unknown in ["--ful", "full", "", "--install=yes"] {
            assert_eq!(Options::parse(&["--full", unknown]), None, "{unknown}");
        }
    }

    #[test]
    fn both_streams_of_a_command_count() {
        let mut command = Command::new("sh");
        let results = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        command.arg("-c").arg(format!("{results}; echo 'skipped: a: needs b' >&2; exit 1"));
        let mut totals = Totals::default();
        let mut out = Vec::new();
        let failed = !read_totals(command, (&mut out, io::sink()), &mut totals).expect("sh runs");
        assert!(failed && out.ends_with(b"0 ignored\n"), "{out:?}");
        assert_eq!(totals.to_string(), "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn tests_are_told_which_packages_are_missing() {
        assert_eq!(told(&[]), "available");
        assert_eq!(told(&["mdadm", "grub-common"]), "missing:needs mdadm, grub-common");
    }

    #[test]
    fn the_sample_is_a_number_of_the_commit() {
        assert_eq!(sample_of("00000010ffffffffffff\n"), 16);
        assert_eq!(sample_of(""), 0);
        assert_eq!(sample_of("no commit"), 0);
    }
}
