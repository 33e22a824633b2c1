//! The administrator's program (`--program`), run at events as `mdadm --monitor --program` runs one.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::state::Names;
use crate::failure::Failure;
use crate::output::counted;

/// That the program can be run, before the array begins: when a member fails is too late to hear that it cannot.
pub(super) fn check(program: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::input(format!("--program: {} {what}", program.display()));
    let is_name = !program.as_os_str().as_encoded_bytes().contains(&b'/');
    let search = std::env::var_os("PATH").filter(|_| is_name);
    let places: Vec<PathBuf> = match &search {
        Some(search) => std::env::split_paths(search).map(|one| one.join(program)).collect(),
        None => vec![program.to_owned()],
    };
    let there: Vec<_> = places.iter().filter_map(|place| place.metadata().ok()).collect();
    match () {
        () if there.iter().any(|one| one.is_file() && one.permissions().mode() & 0o111 != 0) => {
            Ok(())
        }
        () if there.iter().any(|one| one.is_file()) => {
            Err(wrong("is not executable: make it so (chmod +x)"))
        }
        () if !there.is_empty() => Err(wrong("is no file")),
        () if is_name => Err(wrong("is not found in PATH: give its path, such as ./handler")),
        () => Err(wrong("does not exist")),
    }
}

/// How long the program may take for an event; then it is killed. After the end of the array so long for all events
/// that are left.
const LIMIT: Duration = Duration::from_secs(60);
/// Events that wait for the program at most.
const WAITING: usize = 256;

/// The program of one array, run for one event after the other, beside the array: whoever hears that the array failed
/// has heard which member did.
pub(super) struct Hooks(Option<Running>);

struct Running {
    events: SyncSender<Event>,
    worker: JoinHandle<()>,
    /// When the last one is to have ended.
    end: Arc<OnceLock<Instant>>,
    limit: Duration,
    names: Names,
}

/// The arguments of the program.
struct Event {
    event: String,
    array: String,
    device: PathBuf,
}

impl Hooks {
    /// For an array of these names; without a program nothing is run.
    pub(super) fn new(program: Option<&Path>, names: &Names) -> Self {
        Self::within(LIMIT, program, names)
    }

    fn within(limit: Duration, program: Option<&Path>, names: &Names) -> Self {
        let Some(program) = program.map(ToOwned::to_owned) else { return Self(None) };
        let (events, waiting) = sync_channel::<Event>(WAITING);
        let end: Arc<OnceLock<Instant>> = Arc::default();
        let (until, told) = (Arc::clone(&end), names.clone());
        let work = move || {
            let mut left = 0_u64;
            for event in waiting {
                match until.get().map(|end| end.saturating_duration_since(Instant::now())) {
                    Some(Duration::ZERO) => left += 1,
                    _ => run(&program, &event, (limit, &until), &told),
                }
            }
            if left > 0 {
                let events = counted(left, "event is", "events are");
                told.tell(&format!("--program {}: {events} not told to it", program.display()));
            }
        };
        let worker = std::thread::Builder::new().name("program".into()).spawn(work);
        let names = names.clone();
        match worker {
            Ok(worker) => Self(Some(Running { events, worker, end, limit, names })),
            Err(error) => {
                // The array runs all the same.
                names.tell(&format!("--program: nothing is told to it: {error}"));
                Self(None)
            }
        }
    }

    /// Has the program told, as soon as it has heard all that was before.
    pub(super) fn tell(&self, event: &str, device: Option<&Path>) {
        let Some(Running { events, names, .. }) = &self.0 else { return };
        let device = device.map_or_else(PathBuf::new, Path::to_owned);
        let one = Event { event: event.to_owned(), array: names.short(), device };
        if let Err(TrySendError::Full(one)) = events.try_send(one) {
            let (event, device) = (one.event, one.device.display());
            let what = format!("{event} {device} is not told to it: {WAITING} events wait already");
            names.tell(&format!("--program: {what}"));
        }
    }

    /// Waits until the program has heard everything.
    pub(super) fn end(self) {
        let Some(Running { events, worker, end, limit, .. }) = self.0 else { return };
        // Set only here.
        let _ = end.set(Instant::now() + limit);
        drop(events);
        // If it panicked, it has said so.
        let _ = worker.join();
    }
}

/// Runs the program for an event until it ends, or has taken too long.
fn run(
    program: &Path,
    Event { event, array, device }: &Event,
    (limit, until): (Duration, &OnceLock<Instant>),
    names: &Names,
) {
    let tell = |what: &str| names.tell(&format!("--program {}: {what}", program.display()));
    let mut command = Command::new(program);
    // A group of its own ends with it, and Ctrl-C in a terminal is not meant for it.
    command.arg(event).arg(array).arg(device).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return tell(&error.to_string()),
    };
    let begun = Instant::now();
    let end = || until.get().map_or(begun + limit, |end| (begun + limit).min(*end));
    if !has_ended(&child, end) {
        tell(&format!("for {event} it took longer than {} s, and was killed", limit.as_secs()));
        // What cannot be killed is waited for.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    // It was started here, and nobody else waits for it.
    let _ = child.wait();
}

/// Waits for the end of a process; false when it has not ended by then.
fn has_ended(child: &Child, end: impl Fn() -> Instant) -> bool {
    // The time may be shortened meanwhile.
    const AGAIN: Duration = Duration::from_secs(1);
    // Kernels before 5.3 have none: there the program is waited for as long as it takes.
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return true };
    loop {
        let left = end().saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left.min(AGAIN)).unwrap_or_default();
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut ended, Some(&wait)) {
            Ok(0) if left.is_zero() => return false,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::ops::Not;

    use super::*;
    use crate::array::running::state::Mode;

    /// A program that hangs is killed, with what it has started, and the next events are told in their order.
    #[test]
    fn a_program_that_hangs_delays_what_follows_and_no_more() {
        let directory = std::env::temp_dir().join(format!("raidlab-hook-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (program, log) = (directory.join("program"), directory.join("log"));
        let script =
            "#!/bin/sh\n[ $1 = Hang ] && echo $$ >$0.hangs && sleep 1000\necho $1 $3 >>$0.log\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let names = Names::new(Mode::Write, &[], &[], &[]);
        let limit = Duration::from_secs(2);
        let hooks = Hooks::within(limit, Some(&program), &names);
        for event in ["Hang", "First", "Second"] {
            hooks.tell(event, Some(&log));
        }
        let told = directory.join("program.log");
        while fs::read_to_string(&told).is_ok_and(|text| text.lines().count() == 2).not() {}
        hooks.end();
        let log = log.display();
        assert_eq!(fs::read_to_string(&told).unwrap(), format!("First {log}\nSecond {log}\n"));
        let hangs = fs::read_to_string(directory.join("program.hangs")).unwrap();
        let process = Path::new("/proc").join(hangs.trim());
        assert!(!process.exists(), "what hung is not gone");
        // One that hangs at the end does not keep the process for ever.
        let hooks = Hooks::within(limit, Some(&program), &names);
        (0..2 * WAITING).for_each(|_| hooks.tell("Hang", None));
        hooks.end();
        assert_eq!(fs::read_to_string(&told).unwrap().lines().count(), 2);
        fs::remove_dir_all(&directory).unwrap();
    }
}
