//! Programs with tests, run with one mutant on.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::outcome::{Kind, Outcome};
use super::tree::Program;
use crate::child;

/// How many times longer than without a mutant something may take, and how much longer at least.
const PATIENCE: u32 = 4;
const LEAST: Duration = Duration::from_secs(15);
/// Those are seconds on a CPU, as other work on the machine must not make a mutant found. One that waits for ever is
/// ended when so many times as many have passed.
const WAITS: u32 = 6;
/// What nothing takes without a mutant.
const LONGEST: Duration = Duration::from_secs(300);

/// KiB of memory that a program gets: a mutant that never stops collecting must not take the machine's.
const MEMORY: &str = "8388608";
/// Names the variable with the seconds on a CPU that a program gets.
const CPU_SECONDS: &str = "RAIDLAB_CPU_SECONDS";

/// A tick of what is told of processes: the kernel tells them in hundredths, whatever it counts by.
const TICK: Duration = Duration::from_millis(10);

/// What a process gets that has used its seconds, `signal(7)`.
const SIGXCPU: i32 = 24;

/// Packages whose tests use nothing but their own memory and files: they may be ended at the first failure. Those of
/// others mount and loop, which is the machine's: they run one at a time, and a failure counts if it comes twice.
const PURE: [&str; 11] = [
    "core", "explore", "metadata", "models", "parity", "predict", "report", "results", "sim",
    "study", "workload",
];

/// How long something takes: on CPUs, over all its threads, and until it ends. On many CPUs the first is the longer, of
/// what waits the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Took {
    used: Duration,
    passed: Duration,
}

impl Took {
    /// What it may take with a mutant.
    fn limit(self) -> Limit {
        let patience = |took: Duration| took * PATIENCE + LEAST;
        Limit { used: patience(self.used), passed: patience(self.used.max(self.passed)) * WAITS }
    }
}

/// What a run may take: on CPUs, and until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    used: Duration,
    passed: Duration,
}

impl Limit {
    /// So much on CPUs, and what may pass until then.
    fn of(used: Duration) -> Self {
        Self { used, passed: used * WAITS }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    /// With the first test that failed, if one was named.
    Failed(Option<String>),
    TimeUp,
}

/// A program, how long it takes, and which mutants it comes by.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) program: Program,
    pub(crate) took: Took,
    pub(crate) reached: BTreeSet<usize>,
    /// Whether it takes too long without any mutant, and is not run with one.
    pub(crate) is_left_out: bool,
}

impl Known {
    /// Programs that were built anew, without the tests that fail without any mutant. How long they take is not
    /// known, and they get much time; those that are left out as a whole are.
    pub(crate) fn anew(programs: Vec<Program>, known: &[Self]) -> Vec<Self> {
        let anew = |mut program: Program| {
            let same = |it: &&Self| {
                (&it.program.package, &it.program.name) == (&program.package, &program.name)
            };
            let before = known.iter().find(same);
            if before.is_some_and(|it| it.is_left_out) {
                return None;
            }
            program.left_out = before.map(|it| it.program.left_out.clone()).unwrap_or_default();
            let long = LONGEST / 4;
            let (took, reached) = (Took { used: long, passed: long }, BTreeSet::new());
            Some(Self { program, took, reached, is_left_out: false })
        };
        programs.into_iter().filter_map(anew).collect()
    }
}

/// Where programs run: their packages' directories in a tree, with a directory for what they leave.
pub(crate) struct Stand {
    pub(crate) tree: PathBuf,
    pub(crate) temporary: PathBuf,
    /// Held by who uses what is the machine's.
    pub(crate) machine: Mutex<()>,
}

impl Stand {
    fn command(&self, path: &Path, directory: &Path) -> io::Result<Command> {
        fs::create_dir_all(&self.temporary)?;
        let mut command = Command::new("sh");
        let limits =
            format!("ulimit -v $0 && ulimit -S -t ${{{CPU_SECONDS}:-unlimited}} && exec \"$@\"");
        command.args(["-c", &limits, MEMORY]).arg(path);
        command.current_dir(directory).env("TMPDIR", &self.temporary);
        command.env("CARGO_MANIFEST_DIR", directory).env("RAIDLAB_SAMPLE", "0");
        let out = "missing:not with mutants";
        command.env("RAIDLAB_GUEST", out).env("RAIDLAB_GRUB", out).env_remove("RAIDLAB_FULL");
        Ok(command)
    }

    fn of_program(&self, program: &Program) -> io::Result<Command> {
        let directory = self.tree.join("crates").join(&program.package);
        let mut command = self.command(&program.path, &directory)?;
        if !program.left_out.is_empty() {
            command.arg("--exact");
        }
        program.left_out.iter().for_each(|test| {
            command.args(["--skip", test]);
        });
        Ok(command)
    }

    /// Runs a program without any mutant; tests that fail so, where this is run, are left out and named.
    pub(crate) fn without(&self, mut program: Program) -> io::Result<Known> {
        let path = self.temporary.join(format!("reached-{}-{}", program.package, program.name));
        loop {
            let _ = fs::remove_file(&path);
            let mut command = self.of_program(&program)?;
            command.env("RAIDLAB_MUTANTS_REACHED", &path);
            let (ended, took) = self.run_program(&program, &mut command, Limit::of(LONGEST))?;
            if let Ended::Failed(Some(test)) = &ended
                && !program.left_out.contains(test)
            {
                println!("left out: {} {} {test}", program.package, program.name);
                program.left_out.push(test.clone());
                continue;
            }
            if ended == Ended::TimeUp {
                println!("left out: {} {}: takes too long", program.package, program.name);
                let reached = BTreeSet::new();
                return Ok(Known { program, took, reached, is_left_out: true });
            }
            let reached = ended_well(&ended, &path, &program.name)?;
            return Ok(Known { program, took, reached, is_left_out: false });
        }
    }

    /// Runs the programs that come by a mutant, up to the first that it makes fail.
    pub(crate) fn with(&self, number: usize, programs: &[&Known]) -> io::Result<Outcome> {
        for known in programs {
            let program = &known.program;
            let mut command = self.of_program(program)?;
            command.env("RAIDLAB_MUTANT", number.to_string());
            let by = |test: &str| format!("{} {} {test}", program.package, program.name);
            match self.run_program(program, &mut command, known.took.limit())?.0 {
                Ended::Well => {}
                Ended::Failed(test) => {
                    let test = test.unwrap_or_else(|| "-".to_owned());
                    return Ok(Outcome::new(Kind::Test, &by(&test)));
                }
                Ended::TimeUp => return Ok(Outcome::new(Kind::Timeout, &by("-"))),
            }
        }
        Ok(Outcome::new(Kind::Survived, ""))
    }

    fn run_program(
        &self,
        program: &Program,
        command: &mut Command,
        limit: Limit,
    ) -> io::Result<(Ended, Took)> {
        if PURE.contains(&&program.package[..]) {
            return run(command, limit, true);
        }
        let _machine = self.machine.lock().expect("nobody panics with it");
        let ended = run(command, limit, false)?;
        if matches!(ended.0, Ended::Failed(_)) { run(command, limit, false) } else { Ok(ended) }
    }
}

/// `raidlab check`, how long it takes, and which mutants it comes by.
pub(crate) struct Checker {
    raidlab: PathBuf,
    took: Took,
    reached: BTreeSet<usize>,
}

impl Checker {
    /// Runs it without any mutant.
    pub(crate) fn new(stand: &Stand, raidlab: PathBuf) -> io::Result<Self> {
        let path = stand.temporary.join("reached-check");
        let _ = fs::remove_file(&path);
        let mut command = stand.command(&raidlab, &stand.tree)?;
        command.arg("check").env("RAIDLAB_MUTANTS_REACHED", &path);
        let (ended, took) = run(&mut command, Limit::of(LONGEST), false)?;
        let reached = ended_well(&ended, &path, "raidlab check")?;
        Ok(Self { raidlab, took, reached })
    }

    /// Runs it with a mutant on, if it comes by that.
    pub(crate) fn run(&self, stand: &Stand, number: usize) -> io::Result<Outcome> {
        if !self.reached.contains(&number) {
            return Ok(Outcome::new(Kind::Survived, ""));
        }
        let mut command = stand.command(&self.raidlab, &stand.tree)?;
        command.arg("check").env("RAIDLAB_MUTANT", number.to_string());
        Ok(match run(&mut command, self.took.limit(), false)?.0 {
            Ended::Well => Outcome::new(Kind::Survived, ""),
            Ended::Failed(_) => Outcome::new(Kind::Checker, "checker raidlab -"),
            Ended::TimeUp => Outcome::new(Kind::Timeout, "checker raidlab -"),
        })
    }
}

/// Which mutants a run came by that must have ended well.
fn ended_well(ended: &Ended, path: &Path, name: &str) -> io::Result<BTreeSet<usize>> {
    if *ended != Ended::Well {
        return Err(io::Error::other(format!("{name} ends so without any mutant: {ended:?}")));
    }
    let numbers = fs::read_to_string(path).unwrap_or_default();
    Ok(numbers.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Runs a command until it ends or its time is up, or `early` with the first test that fails.
fn run(command: &mut Command, limit: Limit, early: bool) -> io::Result<(Ended, Took)> {
    let begun = Instant::now();
    let deadline = begun + limit.passed;
    command.env(CPU_SECONDS, limit.used.as_secs().max(1).to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let printed = BufReader::new(child.stdout.take().expect("standard output is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in printed.split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    let mut failed = None;
    let ended = loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => failed = failed.or_else(|| failed_test(&line)),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => break Some(Ended::TimeUp),
        }
        if early && failed.is_some() {
            break Some(Ended::Failed(failed.clone()));
        }
    };
    let id = child.id();
    let mut used = used_by(id);
    // It is looked at before it is waited for, as then nothing is known of it any more.
    let late = || {
        used = used.max(used_by(id));
        (Instant::now() >= deadline).then_some(Ended::TimeUp)
    };
    let ended = match ended {
        Some(ended) => Err(ended),
        None => child::wait(&mut child, late)?,
    };
    let took = Took { used, passed: begun.elapsed() };
    let ended = match ended {
        Ok(status) if status.success() => Ended::Well,
        Ok(status) if status.signal() == Some(SIGXCPU) => Ended::TimeUp,
        Ok(_) => Ended::Failed(failed),
        Err(ended) => {
            // One that has just ended is none the worse for it.
            let _ = child.kill();
            child.wait()?;
            ended
        }
    };
    Ok((ended, took))
}

/// The time on CPUs of a process that has not been waited for, over all its threads; none of one that is gone.
fn used_by(id: u32) -> Duration {
    fs::read_to_string(format!("/proc/{id}/stat")).ok().and_then(|it| used(&it)).unwrap_or_default()
}

/// The same of what `proc(5)` says: in user mode and in the kernel, in ticks, after the name in brackets and 11 fields.
fn used(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(TICK * u32::try_from(ticks()? + ticks()?).ok()?)
}

/// The test that a line says has failed.
fn failed_test(line: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(name.split(" - ").next().unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_without_any_mutant_is_left_out_of_programs_built_anew_too() {
        let program = |package: &str, name: &str, left_out: &[&str]| Program {
            package: package.to_owned(),
            name: name.to_owned(),
            path: PathBuf::new(),
            left_out: left_out.iter().map(ToString::to_string).collect(),
        };
        let known = |program: Program, is_left_out: bool| Known {
            program,
            took: Took::default(),
            reached: BTreeSet::new(),
            is_left_out,
        };
        let before = [
            known(program("core", "all", &["a::fails"]), false),
            known(program("sim", "all", &["b::fails"]), false),
            known(program("core", "long", &[]), true),
        ];
        let built = ["all", "long", "new"].map(|name| program("core", name, &[]));
        let anew = Known::anew(built.to_vec(), &before);
        let told = |it: &Known| (it.program.name.clone(), it.program.left_out.clone());
        let told: Vec<(String, Vec<String>)> = anew.iter().map(told).collect();
        let all = vec!["a::fails".to_owned()];
        assert_eq!(told, [("all".to_owned(), all), ("new".to_owned(), vec![])]);
    }

    fn shell(text: &str, limit: Duration, early: bool) -> Ended {
        run(Command::new("sh").args(["-c", text]), Limit::of(limit), early).expect("sh runs").0
    }

    #[test]
    fn what_a_program_takes_is_counted_on_cpus() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 99 0 0 0 250 50 9999 9999 20 0 8 0 1 2";
        assert_eq!(used(stat), Some(Duration::from_secs(3)));
        assert_eq!(used("7 (a) R 1"), None);
        let run = |text: &str, limit: u64| {
            let limit = Limit::of(Duration::from_millis(limit));
            run(Command::new("sh").args(["-c", text]), limit, true).expect("sh runs").1
        };
        // The one waits and uses nothing, the other uses all that it gets.
        let waits = run("exec sleep infinity", 100);
        let spins = run("ulimit -S -t 1; exec >&-; while :; do :; done", 60_000);
        assert!(waits.used < Duration::from_millis(100), "{waits:?}");
        assert!(spins.used > Duration::from_millis(500), "{spins:?}");
    }

    #[test]
    fn a_program_on_many_cpus_gets_as_much_of_them_with_a_mutant() {
        let took = |used: u64, passed: u64| Took {
            used: Duration::from_secs(used),
            passed: Duration::from_secs(passed),
        };
        // 64 threads for 10 s, and one that waits for ten minutes.
        assert!(took(640, 10).limit().used >= Duration::from_secs(2 * 640));
        assert!(took(640, 10).limit().passed >= Duration::from_secs(2 * 640));
        assert!(took(1, 600).limit().passed >= Duration::from_secs(2 * 600));
    }

    #[test]
    fn a_program_ends_well_or_with_the_first_test_that_failed() {
        let long = Duration::from_secs(600);
        let failed = "echo 'test a ... ok'; echo 'test b::c ... FAILED'; echo 'test d ... FAILED'";
        let expected = Ended::Failed(Some("b::c".to_owned()));
        assert_eq!(shell("echo 'test a ... ok'", long, true), Ended::Well);
        assert_eq!(shell(&format!("{failed}; exit 101"), long, false), expected);
        assert_eq!(shell("kill -SEGV $$", long, true), Ended::Failed(None));
        // Ended as soon as one has failed, whatever it would go on with.
        assert_eq!(shell(&format!("{failed}; exec sleep infinity"), long, true), expected);
        assert_eq!(shell("exec sleep infinity", Duration::ZERO, true), Ended::TimeUp);
        // Seconds on a CPU count, not those that pass.
        let spins = "ulimit -S -t $RAIDLAB_CPU_SECONDS; while :; do :; done";
        assert_eq!(shell(spins, Duration::from_secs(1), true), Ended::TimeUp);
        assert_eq!(shell("kill -XCPU $$", long, true), Ended::TimeUp);
    }
}
