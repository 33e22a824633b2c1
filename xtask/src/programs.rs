//! Runs the programs with tests that cargo built, as many at a time as there are processors: alone, one whose last
//! tests are long leaves processors idle, and so does one that boots guests, as these wait for a third of their time.
//! Those known to take long are first, then large ones. What one says is printed when it has ended.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::child;
use crate::totals::Totals;

/// Programs that take longest, in this order: one of them begun last would be alone at the end.
const LONG: [&str; 8] = [
    "crates/cli/tests/guests.rs",
    "crates/cli/tests/all.rs",
    "crates/engine/tests/guests.rs",
    "crates/engine/tests/all.rs",
    "crates/targets/tests/all.rs",
    "crates/results/tests/all.rs",
    "crates/core/tests/all.rs",
    "crates/checker/tests/all.rs",
];

/// A program with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its file with `main`, below the repository.
    name: String,
    path: PathBuf,
    /// Where its tests expect to be run: that of its package.
    directory: PathBuf,
}

/// How all are run.
pub(crate) struct Way<'a> {
    /// What each is given.
    pub(crate) arguments: &'a [&'a str],
    /// What each finds in its environment.
    pub(crate) tell: &'a (dyn Fn(&mut Command) + Sync),
    /// One that takes longer hangs: it is ended, and has failed.
    pub(crate) limit: Duration,
    /// Where their output is until it is printed.
    pub(crate) directory: &'a Path,
}

/// The programs that `cargo test` would run, built; `None` when they do not compile.
pub(crate) fn built(root: &Path) -> io::Result<Option<Vec<Program>>> {
    let mut command = crate::cargo(root);
    command.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let (status, messages) = child::output(&mut command)?;
    if !status.success() {
        return Ok(None);
    }
    let mut programs = read(&messages, root)
        .ok_or_else(|| io::Error::other("cargo's messages are not as expected"))?;
    let size = |program: &Program| fs::metadata(&program.path).map_or(0, |file| file.len());
    sort(&mut programs, size);
    Ok(Some(programs))
}

/// Puts them into the order in which they are begun.
fn sort(programs: &mut [Program], size: impl Fn(&Program) -> u64) {
    let place = |program: &Program| LONG.iter().position(|name| *name == program.name);
    programs.sort_by_cached_key(|program| {
        (place(program).unwrap_or(LONG.len()), Reverse(size(program)))
    });
}

fn read(messages: &str, root: &Path) -> Option<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).ok()?;
        let executable = message["executable"].as_str();
        let (true, Some(path)) = (message["profile"]["test"] == true, executable) else { continue };
        let source = Path::new(message["target"]["src_path"].as_str()?);
        let manifest = Path::new(message["manifest_path"].as_str()?);
        programs.push(Program {
            name: source.strip_prefix(root).unwrap_or(source).display().to_string(),
            path: path.into(),
            directory: manifest.parent()?.into(),
        });
    }
    Some(programs)
}

/// Runs all; true if every one went well. What tests say is passed on to `out`, and added to `totals`.
pub(crate) fn run(
    programs: Vec<Program>,
    way: &Way<'_>,
    out: impl Write + Send,
    totals: &mut Totals,
) -> io::Result<bool> {
    fs::create_dir_all(way.directory)?;
    let passed = AtomicBool::new(true);
    let (waiting, said) = (Mutex::new(programs.into_iter()), Mutex::new((out, totals)));
    let next = || waiting.lock().expect("nobody panics with it").next();
    let work = || -> io::Result<()> {
        while let Some(program) = next() {
            let start = Instant::now();
            let (went_well, text) = one(&program, way)?;
            let mut said = said.lock().expect("nobody panics with it");
            let (out, totals) = &mut *said;
            let seconds = start.elapsed().as_secs_f64();
            write!(out, "\n     Ran {} in {seconds:.1} s\n{text}", program.name)?;
            text.lines().for_each(|line| totals.read(line));
            passed.fetch_and(went_well, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    Ok(passed.into_inner())
}

/// Runs one: whether it went well, and what it said. That goes through a file, as programs that tests leave behind
/// would keep a pipe open.
fn one(program: &Program, way: &Way<'_>) -> io::Result<(bool, String)> {
    let name = program.path.file_name().unwrap_or_default();
    let path = way.directory.join(name).with_extension("txt");
    let file = File::create(&path)?;
    let mut command = Command::new(&program.path);
    command.args(way.arguments).current_dir(&program.directory);
    command.env("CARGO_MANIFEST_DIR", &program.directory);
    (way.tell)(&mut command);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn()?;
    let start = Instant::now();
    let ended = child::wait(&mut child, || (start.elapsed() > way.limit).then_some(()))?;
    let mut text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    fs::remove_file(&path)?;
    if ended.is_err() {
        child.kill()?;
        child.wait()?;
        text.push_str(&hanging(&text, way.limit));
    } else if !text.contains("test result: ") {
        let status = ended.map_or_else(|()| String::new(), |status| status.to_string());
        text.push_str(&format!("\ntest result: FAILED. 0 passed; 1 failed; no result: {status}\n"));
    }
    Ok((ended.is_ok_and(|status| status.success()), text))
}

/// What is said of a program that did not end: the tests that it told were long and of which it told no result.
fn hanging(text: &str, limit: Duration) -> String {
    let long = text.lines().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" seconds")?;
        name.split_once(" has been running ").map(|(name, _)| name)
    });
    let ended = |name: &&str| text.contains(&format!("test {name} ... "));
    let names: Vec<&str> = long.filter(|name| !ended(name)).collect();
    format!(
        "\ntest result: FAILED. 0 passed; 1 failed; ended after {} s, as these hang: {}\n",
        limit.as_secs(),
        if names.is_empty() { "none is known".to_owned() } else { names.join(", ") }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_tests_are_told_from_others() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","#,
            r#""target":{"src_path":"/a/b/src/lib.rs"},"#,
            r#""profile":{"test":true},"executable":"/t/b-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/a/b/Cargo.toml","#,
            r#""target":{"src_path":"/a/b/src/main.rs"},"#,
            r#""profile":{"test":false},"executable":"/t/b"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = read(messages, Path::new("/a")).expect("reads");
        let (name, path, directory) = ("b/src/lib.rs".into(), "/t/b-1".into(), "/a/b".into());
        assert_eq!(found, [Program { name, path, directory }]);
        assert_eq!(read("not JSON", Path::new("/a")), None);
    }

    #[test]
    fn long_programs_are_begun_first_then_large_ones() {
        let program =
            |name: &str| Program { name: name.into(), path: "".into(), directory: "".into() };
        let names = ["a", LONG[1], "bcd", "bc", LONG[0]];
        let mut programs = names.map(program);
        sort(&mut programs, |program| program.name.len() as u64);
        let sorted = programs.map(|program| program.name);
        assert_eq!(sorted, [LONG[0], LONG[1], "bcd", "bc", "a"]);
        for name in LONG {
            assert!(crate::root().join(name).is_file(), "{name}");
        }
    }

    /// Runs shell scripts as if they were programs with tests.
    fn scripts(test: &str, texts: &[&str], limit: Duration) -> (bool, String) {
        let name = format!("raidlab-programs-{test}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let mut totals = Totals::default();
        let mut all = true;
        for text in texts {
            let program =
                Program { name: test.into(), path: "/bin/sh".into(), directory: "/".into() };
            let tell = |command: &mut Command| {
                command.env("TOLD", "7");
            };
            let arguments = ["-c", text];
            let way = Way { arguments: &arguments, tell: &tell, limit, directory: &directory };
            all &= run(vec![program], &way, io::sink(), &mut totals).expect("runs");
        }
        fs::remove_dir(&directory).expect("empty");
        (all, totals.to_string())
    }

    #[test]
    fn results_are_added_up_and_one_failure_counts() {
        let long = Duration::from_secs(600);
        let good = "echo \"test result: ok. $TOLD passed; 0 failed\"";
        assert_eq!(
            scripts("sum", &[good, good], long),
            (true, "14 passed, 0 failed, 0 skipped".into())
        );
        let bad = "echo 'test result: FAILED. 1 passed; 1 failed' >&2; exit 101";
        assert_eq!(
            scripts("sum", &[bad, good], long),
            (false, "8 passed, 1 failed, 0 skipped".into())
        );
        let (all, totals) = scripts("sum", &["kill -9 $$"], long);
        assert_eq!((all, totals.as_str()), (false, "0 passed, 1 failed, 0 skipped"));
    }

    #[test]
    fn what_hangs_is_ended_and_named() {
        let hangs = "exec sleep infinity";
        let (all, totals) = scripts("hangs", &[hangs], Duration::ZERO);
        assert_eq!((all, totals.as_str()), (false, "0 passed, 1 failed, 0 skipped"));
        let text = "test a::b has been running for over 60 seconds\n\
                    test c has been running for over 60 seconds\ntest a::b ... ok\n";
        let said = hanging(text, Duration::from_secs(600));
        assert!(said.ends_with("ended after 600 s, as these hang: c\n"), "{said}");
    }
}
