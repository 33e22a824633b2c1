//! One command: run until it ends, its time is up, or Ctrl-C.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::child;

/// What a command has to take down what it made, once it was told to end.
const GRACE: Duration = Duration::from_secs(10);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Status(i32),
    Signal(i32),
    TimeUp,
    Interrupted,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "ended with status {status}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::TimeUp => write!(f, "took longer than a block may"),
            Self::Interrupted => write!(f, "was interrupted"),
        }
    }
}

/// What a command did.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    /// What it wrote to standard output.
    pub(super) printed: String,
    /// What it wrote to standard error.
    pub(super) errors: String,
}

/// Runs a command as a process group of its own; what it prints goes through files in `directory`.
pub(super) fn run(
    mut command: Command,
    directory: &Path,
    deadline: Instant,
    interrupted: &AtomicBool,
) -> io::Result<Ran> {
    let [printed, errors] = ["printed", "errors"].map(|name| directory.join(name));
    command.stdin(Stdio::null()).process_group(0);
    let mut child =
        command.stdout(File::create(&printed)?).stderr(File::create(&errors)?).spawn()?;
    let enough = || match interrupted.load(Ordering::Relaxed) {
        true => Some(End::Interrupted),
        false => (Instant::now() >= deadline).then_some(End::TimeUp),
    };
    let end = match child::wait(&mut child, enough)? {
        Ok(status) => of_status(status),
        Err(early) => {
            end(&mut child)?;
            early
        }
    };
    let read =
        |path| -> io::Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
    Ok(Ran { end, printed: read(printed)?, errors: read(errors)? })
}

fn of_status(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Status(code),
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    }
}

/// Ends a command and all it started: as Ctrl-C would, then by force.
fn end(child: &mut Child) -> io::Result<()> {
    signal("INT", child);
    let patience = Instant::now() + GRACE;
    // However that ends, the group may have more than the command itself.
    child::wait(child, || (Instant::now() >= patience).then_some(()))?.ok();
    signal("KILL", child);
    child.wait().map(drop)
}

fn signal(name: &str, child: &Child) {
    let group = format!("kill -{name} -- -{}", child.id());
    // It fails when nobody is left to get it.
    let _ = Command::new("bash").args(["-c", &group]).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU32;
    use std::thread;

    use super::*;

    fn run_until(text: &str, deadline: Instant, interrupted: &AtomicBool) -> (End, String, String) {
        let directory = directory();
        let mut command = Command::new("bash");
        command.args(["-c", text]).current_dir(&directory);
        let ran = run(command, &directory, deadline, interrupted).expect("runs");
        fs::remove_dir_all(&directory).expect("is there");
        (ran.end, ran.printed, ran.errors)
    }

    fn directory() -> PathBuf {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("raidlab-process-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).expect("is new");
        directory
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn a_command_ends_with_its_status_and_what_it_printed() {
        let never = AtomicBool::new(false);
        let ran = run_until("echo a; echo b >&2; exit 3", later(), &never);
        assert_eq!(ran, (End::Status(3), "a\n".to_owned(), "b\n".to_owned()));
        assert_eq!(run_until("kill -TERM $$", later(), &never).0, End::Signal(15));
        assert_eq!(run_until("sleep infinity", Instant::now(), &never).0, End::TimeUp);
    }

    #[test]
    fn a_command_is_ended_with_all_it_started() {
        let own = directory();
        let [begun, lock] = ["begun", "lock"].map(|name| own.join(name));
        assert!(Command::new("mkfifo").arg(&begun).status().expect("is there").success());
        // What the shell leaves in the background does not hear Ctrl-C, and holds the lock until it ends.
        let text = format!(
            "exec 9>'{}'; flock 9; trap 'exit 1' INT; sleep infinity & echo >'{}'; wait",
            lock.display(),
            begun.display()
        );
        let interrupted = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                fs::read(&begun).expect("can be read");
                interrupted.store(true, Ordering::Relaxed);
            });
            assert_eq!(run_until(&text, later(), &interrupted).0, End::Interrupted);
        });
        let free = Command::new("flock").args(["--timeout", "10"]).arg(&lock).arg("true").status();
        assert!(free.expect("flock is there").success());
        fs::remove_dir_all(own).expect("is there");
    }
}
