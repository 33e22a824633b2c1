//! What the tests of the binary share: scratch directories, studies, running and stopping it.

// Each of the programs uses a part of this.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a condition is waited for before a test fails. Nothing depends on it while all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a condition is looked at: so that waiting takes no CPU from what is waited for.
/// Nothing depends on it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// A directory of a test's own; removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// With `name` in its name.
    pub(crate) fn new(name: &str) -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    pub(crate) fn within(parent: &Path, name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Numbers of one length, so that none is the beginning of another: mounts are looked for by them.
        let path = parent.join(format!("raidlab-test-{name}-{}-{number:03}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a scratch directory");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file in the scratch directory");
        path
    }

    /// A directory in it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir(&path).expect("a directory in the scratch directory");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a run of the binary gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text on stdout"),
            stderr: String::from_utf8(output.stderr).expect("text on stderr"),
        }
    }
}

impl Ran {
    /// Done, with nothing to say on stderr.
    pub(crate) fn good(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        self
    }

    /// Refused: exit status 2, nothing on stdout, and an error with all these words.
    pub(crate) fn refused(&self, words: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
    }
}

/// The binary, with an environment that does not depend on who runs the tests, whose own runs it leaves alone.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab"));
    command
        .env("RAIDLAB_STORE", "off")
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm-256color");
    command.stdin(Stdio::null());
    command
}

pub(crate) fn raidlab<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    command().args(arguments).output().expect("the binary runs").into()
}

/// A run in the background.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self::of(command().args(arguments))
    }

    /// The same with a command made elsewhere.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Whoever runs the tests in the background of a shell has them ignore what Ctrl-C sends.
        // SAFETY: between fork and exec there is one system call, which may be used there.
        unsafe {
            command.pre_exec(|| match libc::signal(libc::SIGINT, libc::SIG_DFL) {
                libc::SIG_ERR => Err(std::io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        Self(Some(command.spawn().expect("the binary runs")))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("still ours")
    }

    pub(crate) fn is_going_on(&mut self) -> bool {
        self.child().try_wait().expect("a child").is_none()
    }

    /// Waits until `condition` gives something; fails when the run ends before.
    pub(crate) fn wait_until<T>(
        &mut self,
        what: &str,
        mut condition: impl FnMut() -> Option<T>,
    ) -> T {
        let start = Instant::now();
        loop {
            // What it did last counts, so it is looked at after its end.
            let is_going_on = self.is_going_on();
            if let Some(found) = condition() {
                return found;
            }
            assert!(is_going_on, "the run ended before {what}: {:?}", self.take());
            assert!(start.elapsed() < PATIENCE, "no {what}");
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
    }

    /// Its process.
    pub(crate) fn id(&mut self) -> u32 {
        self.child().id()
    }

    /// Waits for a thread of its, told by its name.
    pub(crate) fn wait_for_thread(&mut self, is_it: impl Fn(&str) -> bool) {
        let tasks = format!("/proc/{}/task", self.id());
        self.wait_until("a thread", || {
            let names = fs::read_dir(&tasks).ok()?.flatten();
            let mut names =
                names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
            names.any(|name| is_it(name.trim())).then_some(())
        });
    }

    /// Waits for its run directory below `parent` with all member files.
    pub(crate) fn wait_for_files(&mut self, parent: &Path, members: u16) -> PathBuf {
        let path = parent.join(format!("raidlab-run-{}-0", self.id()));
        let last = path.join(format!("member-{}.img", members - 1));
        self.wait_until("member files", || last.exists().then_some(()));
        path
    }

    /// Does something over and over until the run ends.
    pub(crate) fn wait_until_end(&mut self, mut meanwhile: impl FnMut()) {
        let start = Instant::now();
        while self.is_going_on() {
            meanwhile();
            assert!(start.elapsed() < PATIENCE, "the run does not end");
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&mut self) {
        self.signal("INT");
    }

    /// Sends a signal of this name, unless the run has ended.
    pub(crate) fn signal(&mut self, name: &str) {
        if !self.is_going_on() {
            return;
        }
        let id = self.id();
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        assert!(sent.expect("a shell").success(), "cannot send a signal");
    }

    /// Ends it at once; nothing is tidied up.
    pub(crate) fn kill(mut self) {
        self.child().kill().expect("a child");
        self.take();
    }

    fn take(&mut self) -> Ran {
        self.0.take().expect("still ours").wait_with_output().expect("a child").into()
    }

    /// How it ended.
    pub(crate) fn status(mut self) -> ExitStatus {
        self.wait_until_end(|| ());
        self.0.take().expect("still ours").wait().expect("a child")
    }

    /// What it gave when it has ended.
    pub(crate) fn finish(mut self) -> Ran {
        self.take()
    }
}

impl Drop for Running {
    /// A test that fails leaves no process behind.
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A command that would go on for long ends with any signal that asks it to, says so, and leaves no file of its
/// `--json`.
pub(crate) fn ends_on_signals(name: &str, words: &[&str]) {
    let scratch = Scratch::new(name);
    let file = scratch.path().join("answer.json");
    for signal in ["INT", "TERM"] {
        let words = words.iter().copied().chain(["--json"]).map(OsStr::new);
        let mut run = Running::start(words.chain([file.as_os_str()]));
        run.wait_for_thread(|name| name == "ctrl-c");
        run.signal(signal);
        let ran = run.finish();
        let said = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
        assert_eq!(said, (Some(130), "", "interrupted\n"), "{signal}");
        assert_eq!(names(scratch.path()), Vec::<String>::new());
    }
}

/// Names of everything in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A study of `single` and raid5(3) with small chunks and all four workloads, over in moments.
pub(crate) const SMALL: &str = r#"
title = "A small study"
rounds = 1
processes = [1, 2]
[[drives]]
name = "small"
model = "nas-8tb-7200"
count = 3
[[layouts]]
level = "single"
[[layouts]]
level = "raid5"
members = 3
chunk = "64KiB"
[[workloads]]
kind = "dd-write"
block = "96KiB"
size = "1MiB"
[[workloads]]
kind = "dd-read"
block = "128KiB"
size = "1MiB"
[[workloads]]
kind = "random-read"
size = "64KiB"
[[workloads]]
kind = "random-write"
size = "64KiB"
"#;

/// The small study on drives that are files of a given size.
pub(crate) fn small_on_files(size: &str) -> String {
    SMALL.replace("model = \"nas-8tb-7200\"", &format!("file = \"{size}\""))
}

/// A study of one cell that goes on for some seconds: raid5(3), many random reads.
pub(crate) const LONG: &str = r#"
title = "A long study"
rounds = 100
[[drives]]
name = "files"
file = "4MiB"
count = 3
[[layouts]]
level = "raid5"
members = 3
chunk = "64KiB"
[[workloads]]
kind = "random-read"
size = "64MiB"
"#;
