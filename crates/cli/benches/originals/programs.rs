//! Running programs that can be ended: each in a process group of its own, so that its children end with
//! it and Ctrl-C reaches this program alone.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often the flag is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no output.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Ctrl-C.
    Interrupted,
    /// In words.
    Failed(String),
}

/// What a program printed.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Runs a program to its end.
pub(crate) fn run(
    program: &Path,
    arguments: &[String],
    interrupted: &AtomicBool,
) -> Result<Printed, Halt> {
    let name = program.display();
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| Halt::Failed(format!("{name}: {error}")))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (sender, receiver) = mpsc::channel();
    let second = sender.clone();
    let output = std::thread::spawn(move || read(output, sender));
    let errors = std::thread::spawn(move || read(errors, second));
    // Both readers are gone when the program has closed its outputs.
    while receiver.recv_timeout(LOOK) != Err(RecvTimeoutError::Disconnected) {
        if interrupted.load(Ordering::Relaxed) {
            end(&mut child, &receiver);
            return Err(Halt::Interrupted);
        }
    }
    let status = child.wait().map_err(|error| Halt::Failed(format!("{name}: {error}")))?;
    let printed = Printed {
        output: output.join().unwrap_or_default(),
        errors: errors.join().unwrap_or_default(),
    };
    if interrupted.load(Ordering::Relaxed) {
        return Err(Halt::Interrupted);
    }
    match status.success() {
        true => Ok(printed),
        false => Err(Halt::Failed(failure(&name.to_string(), arguments, status, &printed))),
    }
}

fn failure(name: &str, arguments: &[String], status: ExitStatus, printed: &Printed) -> String {
    let errors = printed.errors.trim();
    let tail = errors.lines().rev().take(5).collect::<Vec<_>>();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    format!("{name} {}: {status}: {}", arguments.join(" "), tail.join("; "))
}

/// All that comes; the sender goes with it.
fn read(from: Option<impl Read>, _sender: mpsc::Sender<()>) -> String {
    let mut bytes = Vec::new();
    // What was read before an error is judged as it is.
    let _ = from.map(|mut from| from.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Asks a program and its children to end, and ends them when they do not. The program is waited for last:
/// until then nobody else's group can have its number.
fn end(child: &mut Child, outputs: &Receiver<()>) {
    let id = child.id();
    let group = |signal: &str| {
        let kill = format!("kill -{signal} -{id}");
        // Gone already is as good.
        let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
    };
    group("TERM");
    // Nothing is sent: this ends when the outputs are closed, or with the patience.
    let _ = outputs.recv_timeout(PATIENCE);
    group("KILL");
    let _ = child.wait();
}

/// Whether this user may drop the caches of the whole system.
pub(crate) fn may_drop() -> bool {
    fs::OpenOptions::new().write(true).open(DROP_CACHES).is_ok()
}

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes everything down and drops what memory holds: of the whole system where that is permitted, else
/// of `file` only, by the way that dd's manual names.
pub(crate) fn settle(file: &Path, interrupted: &AtomicBool) -> Result<(), Halt> {
    run(Path::new("sync"), &[], interrupted)?;
    if may_drop() {
        let dropped = fs::write(DROP_CACHES, "3");
        return dropped.map_err(|error| Halt::Failed(format!("{DROP_CACHES}: {error}")));
    }
    if !file.exists() {
        return Ok(());
    }
    let of = format!("of={}", file.display());
    let nocache = ["if=/dev/null", &of, "oflag=nocache", "conv=notrunc,fdatasync", "count=0"];
    run(Path::new("dd"), &nocache.map(str::to_string), interrupted).map(|_| ())
}
