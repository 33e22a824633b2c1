//! Programs that are run so that Ctrl-C, or being told to end, ends them and leaves time to tidy up; and how long
//! others are waited for.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often is looked whether a program has ended.
const PAUSE: Duration = Duration::from_millis(10);

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

/// Waits until a program ends, or `enough` gives a reason not to wait any longer.
pub(crate) fn wait<R>(
    child: &mut Child,
    mut enough: impl FnMut() -> Option<R>,
) -> io::Result<Result<ExitStatus, R>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(status));
        }
        if let Some(reason) = enough() {
            return Ok(Err(reason));
        }
        thread::sleep(PAUSE);
    }
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

    #[test]
    fn a_program_is_waited_for_until_it_ends_or_for_a_reason() {
        let start = |text: &str| Command::new("sh").args(["-c", text]).spawn().expect("sh runs");
        let ended = wait(&mut start("exit 3"), || None::<()>).expect("can be waited for");
        assert_eq!(ended.map(|status| status.code()), Ok(Some(3)));
        let mut long = start("exec sleep infinity");
        let mut looks = 0..3;
        let enough = || looks.next().is_none().then_some("enough");
        assert_eq!(wait(&mut long, enough).expect("can be waited for"), Err("enough"));
        long.kill().expect("goes on");
        long.wait().expect("can be waited for");
    }
}
