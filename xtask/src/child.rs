//! Programs that are run so that Ctrl-C, or being told to end, ends them and leaves time to tidy up.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<Child>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn interrupted() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "interrupted; what was made for this run is removed")
}

fn end(children: &mut [Child]) {
    for child in children {
        // One that has ended by itself, as Ctrl-C reaches it too, is none the worse for it.
        let _ = child.kill();
    }
}

/// From now on a signal ends what [`output`] runs, which then fails, instead of this process.
pub(crate) fn catch_signals() -> io::Result<()> {
    let handler = || {
        INTERRUPTED.store(true, Ordering::SeqCst);
        end(&mut running());
    };
    ctrlc::set_handler(handler).map_err(io::Error::other)
}

/// Runs a program to its end: how it ended and its standard output; standard error is passed on.
pub(crate) fn output(command: &mut Command) -> io::Result<(ExitStatus, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().expect("standard output is piped");
    let id = child.id();
    running().push(child);
    if INTERRUPTED.load(Ordering::SeqCst) {
        // The signal came before there was a child to end.
        end(&mut running());
    }
    let mut text = Vec::new();
    let read = stdout.read_to_end(&mut text);
    let mut child = {
        let mut running = running();
        let index = running.iter().position(|child| child.id() == id);
        running.remove(index.expect("nobody else takes it"))
    };
    let status = child.wait()?;
    if INTERRUPTED.load(Ordering::SeqCst) {
        return Err(interrupted());
    }
    read?;
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_come_back() {
        let (status, text) =
            output(Command::new("sh").args(["-c", "echo one; exit 3"])).expect("sh runs");
        assert_eq!((status.code(), text.as_str()), (Some(3), "one\n"));
        assert!(output(&mut Command::new("no-such-program")).is_err());
    }
}
