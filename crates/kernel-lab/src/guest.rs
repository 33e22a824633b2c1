//! A guest: one User Mode Linux process with its helpers, from its start to its end.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use raidlab_core::units::{Nanos, Time};
use raidlab_models::PathSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::bus::Record;
use crate::cache;
use crate::class::Class;
use crate::contents::Room;
use crate::failure::Failure;
use crate::host::{Kept, LOOK, Listeners, Until};
use crate::lab::{Counts, Lab};
use crate::memory::{self, Promise};
use crate::paths;
use crate::service::Service;
use crate::tape::Tape;

/// How many drives have names that the lab knows.
const MOST_DRIVES: usize = 26;
/// How many entries the ring of a drive has: User Mode Linux makes none longer.
const RING: u32 = 256;
/// The shortest silence: it is counted in seconds.
const LEAST_SILENCE: Duration = Duration::from_secs(1);
/// Lines of the console that go with an error, and of what the script wrote.
const TAIL: usize = 20;
/// From how many bytes before the end of what it wrote they are taken.
const TAIL_BYTES: u64 = 8 << 10;
/// How long a guest may take to connect, and to go once it has closed the clock.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the guest's programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// This machine's own tree, read-only: what is installed here is there too, and may shift results a little.
    Machine {
        /// Where busybox is.
        busybox: PathBuf,
    },
    /// An archive that was built from named versions of packages.
    Archive(PathBuf),
}

impl Root {
    /// The archive that `cargo xtask kernel programs` has built, or else this machine's own tree, if it has busybox.
    pub fn found() -> Option<Self> {
        cache::programs().map(Self::Archive).or_else(Self::machine)
    }

    /// This machine's own tree, if it has busybox.
    pub fn machine() -> Option<Self> {
        let places = ["/usr/bin/busybox", "/bin/busybox"].map(PathBuf::from);
        let busybox = places.into_iter().find(|path| path.is_file())?;
        Some(Self::Machine { busybox })
    }
}

/// A guest to be started.
pub struct Guest {
    /// The kernel, as `cargo xtask kernel` builds it.
    pub kernel: PathBuf,
    /// Its programs.
    pub root: Root,
    /// Its memory in MiB.
    pub memory_mib: u64,
    /// From this come its random numbers.
    pub seed: u64,
    /// Whether the clock offers to share a page, which kernels from 6.11 on take.
    pub page: bool,
    /// The processor that guest and lab share; on two, each turn is a wake-up across them.
    pub processor: Option<usize>,
    /// How many requests a drive is sent at once.
    pub queue_depth: u32,
    /// From how many bytes not yet written on the kernel writes back, and from how many on it makes writers wait.
    pub dirty_bytes: Option<[u64; 2]>,
    /// More arguments of the kernel, such as `um_cost=1000,500`.
    pub arguments: Vec<String>,
    /// Files that are copied to `/run/host/files` in the guest, such as static programs; to read them takes no time.
    pub files: Vec<PathBuf>,
    /// For how long in real time the guest may run without a word.
    pub silence: Duration,
    /// Its drives, `/dev/vda` first.
    pub drives: Vec<(Class, Service)>,
    /// What lies between the kernel and the drives: a route for each, or nothing at all.
    pub paths: PathSpec,
    /// Whether a drive's requests take no time until its serial number is read (`/sys/block/vda/serial`). Without it an
    /// array and its filesystem may take longer to be made than the run that is wanted, in virtual and in real time.
    pub free_setup: bool,
    /// How many bytes their contents may take in memory.
    pub room: u64,
    /// When it is over.
    pub end: End,
}

/// When a guest is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// When it has powered off, before which the kernel writes down what it holds.
    PowerOff,
    /// As soon as the script has ended: what is not written down then is lost.
    Script,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status of the script.
    pub status: i32,
    /// What it wrote to standard output, as text: a replacement character stands for what is none.
    pub stdout: String,
    /// What it wrote to standard error, as text.
    pub stderr: String,
    /// Both, byte for byte.
    pub written: Written,
    /// How much happened on the way.
    pub counts: Counts,
    /// How long the guest lived in virtual time.
    pub virtual_time: Time,
    /// How many bytes of memory the contents of the drives took.
    pub bytes_held: u64,
    /// Whether the clock shared its page.
    pub page: bool,
    /// How long each link of the paths has worked, by name.
    pub path_busy: Vec<(String, Nanos)>,
}

/// What a script wrote, byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// To standard output.
    pub stdout: Vec<u8>,
    /// To standard error.
    pub stderr: Vec<u8>,
}

/// Why there is no outcome.
#[derive(Debug)]
pub struct GuestError {
    /// What went wrong.
    pub failure: Failure,
    /// The last lines of the guest's console.
    pub console: Vec<String>,
    /// The last lines that its script wrote to standard output, as far as the guest had handed them on.
    pub stdout: Vec<String>,
    /// The same of standard error.
    pub stderr: Vec<String>,
}

impl GuestError {
    fn new(failure: Failure, work: &Path) -> Self {
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| end_of(&work.join(name)));
        Self { failure, console: last_lines(work), stdout, stderr }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Failure::Closed => write!(f, "the guest stopped before the end of its script")?,
            failure => write!(f, "{failure}")?,
        }
        let parts = [
            ("its last words", &self.console),
            ("the end of the script's standard output", &self.stdout),
            ("the end of the script's standard error", &self.stderr),
        ];
        for (what, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            write!(f, "; {what}:")?;
            lines.iter().try_for_each(|line| write!(f, "\n    {line}"))?;
        }
        Ok(())
    }
}

impl std::error::Error for GuestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.failure)
    }
}

impl From<Failure> for GuestError {
    fn from(failure: Failure) -> Self {
        Self { failure, console: Vec::new(), stdout: Vec::new(), stderr: Vec::new() }
    }
}

/// Starts the guest, runs a shell script in it and waits until it has powered off. Every request of a drive is handed
/// to `trace`; what is said goes on the tape if there is one. When `stop` becomes readable it is ended at once.
///
/// # Errors
/// When the guest cannot be started, hangs, stops early or breaks a protocol. Nothing of it is left then, as is after a
/// kill of this process: a helper sees its end.
pub fn run(
    guest: Guest,
    script: &str,
    stop: BorrowedFd<'_>,
    trace: &mut dyn FnMut(&Record),
    tape: Option<&mut Tape>,
) -> Result<Outcome, GuestError> {
    guest.check()?;
    // Before what takes of it, so that it is let go of after it.
    let promise = Promise::of(guest.memory_mib)?;
    let work = WorkDirectory::new()?;
    guest.prepare(work.path(), script)?;
    let listeners = Listeners::bind(work.path(), guest.drives.len())?;
    let _pinned = guest.processor.map(Pinned::to).transpose()?;
    let mut process = guest.start(work.path())?;
    let (end, events) = (guest.end, events_of(work.path(), guest.end)?);
    let is_over = || match end {
        End::PowerOff => has_powered_off(work.path()),
        End::Script => fs::read(work.path().join("status")).is_ok_and(|raw| !raw.is_empty()),
    };
    let until = Until { stop, silence: guest.silence, is_over: &is_over, events: events.as_ref() };
    let served = guest.serve(&mut process, listeners, until, &promise, Kept { trace, tape });
    let tail = |failure| match failure {
        // Its words are all there is to know.
        Failure::Refused(_) => GuestError::from(failure),
        failure => GuestError::new(failure, work.path()),
    };
    let lab = served.map_err(tail)?;
    if end == End::PowerOff {
        process.end(work.path()).map_err(tail)?;
    }
    outcome(work.path(), &lab).map_err(tail)
}

/// What tells that a file in the guest's directory has changed, where the end of the script is the guest's.
fn events_of(work: &Path, end: End) -> Result<Option<OwnedFd>, Failure> {
    if end == End::PowerOff {
        return Ok(None);
    }
    let watch = || {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&events, work, WatchFlags::MODIFY)?;
        Ok(events)
    };
    let system = |error: rustix::io::Errno| Failure::system(format!("{}", work.display()), error);
    watch().map(Some).map_err(system)
}

/// What the script left and what the lab counted.
fn outcome(work: &Path, lab: &Lab) -> Result<Outcome, Failure> {
    let bytes = |name: &str| fs::read(work.join(name)).unwrap_or_default();
    let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
    let refused = text(&bytes("settings.err"));
    if !refused.is_empty() {
        let lines: Vec<&str> = refused.lines().map(str::trim).collect();
        return Err(Failure::Refused(format!("a setting was refused: {}", lines.join("; "))));
    }
    let status = text(&bytes("status")).trim().parse().ok();
    let written = Written { stdout: bytes("stdout"), stderr: bytes("stderr") };
    Ok(Outcome {
        status: status.ok_or(Failure::Closed)?,
        stdout: text(&written.stdout),
        stderr: text(&written.stderr),
        written,
        counts: lab.counts(),
        virtual_time: lab.last_known_time(),
        bytes_held: lab.bytes_held(),
        page: lab.shares_page(),
        path_busy: lab.path_busy(),
    })
}

impl Guest {
    fn check(&self) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::Refused(what));
        if !self.kernel.is_file() {
            return refuse(format!("no kernel at {}", self.kernel.display()));
        }
        if self.drives.len() > MOST_DRIVES {
            return refuse(format!("{} drives, of {MOST_DRIVES} at most", self.drives.len()));
        }
        if !(1..=RING).contains(&self.queue_depth) {
            let depth = self.queue_depth;
            return refuse(format!("queue depth {depth}: from 1 to {RING}, the entries of a ring"));
        }
        if self.silence < LEAST_SILENCE {
            return refuse(format!("silence of {:?}: one second at least", self.silence));
        }
        paths::check(&self.paths, self.drives.len())?;
        self.check_files()
    }

    /// Files are told apart in the guest by their names alone.
    fn check_files(&self) -> Result<(), Failure> {
        let mut names = BTreeMap::new();
        for file in &self.files {
            let shown = file.display();
            let Some(name) = file.file_name() else {
                return Err(Failure::Refused(format!("file {shown}: has no name")));
            };
            if let Some(other) = names.insert(name, file) {
                let (name, other) = (name.display(), other.display());
                let text = format!("files {other} and {shown}: both would be {name} in the guest");
                return Err(Failure::Refused(text));
            }
        }
        Ok(())
    }

    /// Puts what the guest starts from into its directory.
    fn prepare(&self, work: &Path, script: &str) -> Result<(), Failure> {
        let put = |name: &str, text: &str| {
            let path = work.join(name);
            fs::write(&path, text)
                .map_err(|error| Failure::system(path.display().to_string(), error))
        };
        put("script", script)?;
        put("settings", &self.settings())?;
        put("init", &self.init())?;
        let files = work.join("files");
        fs::create_dir(&files).map_err(|error| Failure::system("files for the guest", error))?;
        for file in &self.files {
            let copied = fs::copy(file, files.join(file.file_name().unwrap_or_default()));
            copied.map_err(|error| Failure::system(file.display().to_string(), error))?;
        }
        let link = |from: &Path, name: &str| {
            let linked = fs::canonicalize(from).and_then(|whole| symlink(whole, work.join(name)));
            linked.map_err(|error| Failure::system(from.display().to_string(), error))
        };
        link(&self.kernel, "linux")?;
        if let Root::Archive(archive) = &self.root {
            link(archive, "root")?;
        }
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(work.join("init"), mode)
            .map_err(|error| Failure::system("the guest's first program", error))
    }

    /// What is set before anything uses a drive. The shell says why the kernel refuses a value, and this which; then
    /// the guest is over, before its script, with a status as of one that has ended.
    fn settings(&self) -> String {
        let mut text = String::new();
        let mut set = |value: &str, file: &str| {
            text += &format!("echo {value} >{file} || echo '{value} for {file}' >&2\n");
        };
        for (number, (class, _)) in self.drives.iter().enumerate() {
            let queue = format!("/sys/block/{}/queue", drive_name(number));
            for (name, value) in class.settings() {
                set(&value, &format!("{queue}/{name}"));
            }
        }
        if let Some([background, limit]) = self.dirty_bytes {
            set(&limit.to_string(), "/proc/sys/vm/dirty_bytes");
            set(&background.to_string(), "/proc/sys/vm/dirty_background_bytes");
        }
        text + "[ ! -s /run/host/settings.err ] || {
    $box sync
    echo 125 >/run/host/status
    exec $box poweroff -f
}
"
    }

    /// The guest's first program. It reaches its directory by a link of the host's `/proc`, so that no name of a
    /// directory is part of what the guest sees.
    fn init(&self) -> String {
        let busybox = match &self.root {
            Root::Machine { busybox } => busybox.display().to_string(),
            Root::Archive(_) => "/bin/busybox".to_owned(),
        };
        include_str!("init.sh").replace("@BUSYBOX@", &busybox)
    }

    /// The kernel's arguments, which are part of its random numbers: the same in every run.
    fn kernel_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("mem={}M", self.memory_mib),
            format!("virtio_blk.queue_depth={}", self.queue_depth),
            "time-travel=ext:./clock".to_owned(),
        ];
        let drive = |number| format!("virtio_uml.device=./drive{number}:2:{number}");
        arguments.extend((0..self.drives.len()).map(drive));
        let fixed =
            "uml_dir=. umid=uml con0=null,fd:1 con=null ssl=null panic=-1 loglevel=4 norandmaps";
        let root = match self.root {
            Root::Machine { .. } => {
                "root=/dev/root rootfstype=hostfs rootflags=/ ro init=/proc/self/cwd/init"
            }
            Root::Archive(_) => "initrd=./root",
        };
        let words = fixed.split(' ').chain(root.split(' ')).map(str::to_owned);
        arguments.extend(words);
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }

    fn start(&self, work: &Path) -> Result<Process, Failure> {
        let console = fs::File::create(work.join("console"))
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|error| Failure::system("the guest's console", error))?;
        let mut keeper = Keeper::start(work)?;
        // Without random addresses, and with nothing of this process's environment.
        let mut command = Command::new("setarch");
        command.args(["-R", "./linux"]).args(self.kernel_arguments()).current_dir(work);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", memory::PLACE);
        command.env("UML_SEED", self.seed.to_string());
        command.stdin(Stdio::null()).stdout(console.0).stderr(console.1).process_group(0);
        let child = command.spawn().map_err(|error| Failure::system("starting setarch", error))?;
        keeper.watch(&child)?;
        Ok(Process { child, keeper })
    }

    fn serve<'a>(
        mut self,
        process: &mut Process,
        listeners: Listeners,
        until: Until<'_>,
        promise: &'a Promise,
        kept: Kept<'a>,
    ) -> Result<Lab, Failure> {
        let mut has_ended = || !matches!(process.child.try_wait(), Ok(None));
        await_guest(&listeners.clock, until.stop, PATIENCE, &mut has_ended)?;
        let drives = std::mem::take(&mut self.drives);
        let lab = Lab::new(drives, Room::of(self.room), self.page);
        let lab = if self.free_setup { lab.with_free_setup() } else { lab };
        let mut lab = lab.with_paths(&self.paths)?;
        let mut host = listeners.accept(self.page, promise, kept)?;
        host.serve(&mut lab, until)?;
        Ok(lab)
    }
}

/// Waits until a guest that was started connects to its clock.
fn await_guest(
    clock: &UnixListener,
    stop: BorrowedFd<'_>,
    patience: Duration,
    has_ended: &mut dyn FnMut() -> bool,
) -> Result<(), Failure> {
    let began = Instant::now();
    while !is_readable(clock, Duration::from_millis(100))? {
        if is_readable(stop, Duration::ZERO)? {
            return Err(Failure::Interrupted);
        }
        if has_ended() {
            return Err(Failure::Closed);
        }
        if began.elapsed() > patience {
            return Err(Failure::Unconnected { seconds: patience.as_secs() });
        }
    }
    Ok(())
}

/// The guest's name for a drive.
pub fn drive_name(number: usize) -> String {
    let letter = char::from_u32('a' as u32 + number as u32).unwrap_or('?');
    format!("vd{letter}")
}

fn is_readable(file: impl std::os::fd::AsFd, within: Duration) -> Result<bool, Failure> {
    let timeout =
        Timespec { tv_sec: within.as_secs() as i64, tv_nsec: i64::from(within.subsec_nanos()) };
    match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(Failure::system("waiting for the guest", error)),
    }
}

/// Whether the script has ended and the kernel has said that it powers off. User Mode Linux of 6.12 then goes on
/// computing for ever now and then, after the last of its messages, and XFS may complain of drives that are gone.
fn has_powered_off(work: &Path) -> bool {
    let console = fs::read(work.join("console")).unwrap_or_default();
    work.join("status").exists() && String::from_utf8_lossy(&console).contains("reboot: Power down")
}

/// The last lines of the console; of a panic all from its first line on, without the addresses of its stack.
fn last_lines(work: &Path) -> Vec<String> {
    let raw = fs::read(work.join("console")).unwrap_or_default();
    last_lines_of(&String::from_utf8_lossy(&raw))
}

/// The last lines of a file that may be long, or not there.
fn end_of(path: &Path) -> Vec<String> {
    let mut raw = Vec::new();
    let read = fs::File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        file.read_to_end(&mut raw)
    });
    // What cannot be read is not worth more than the failure that it goes with.
    let text = String::from_utf8_lossy(if read.is_ok() { &raw } else { &[] });
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| (*line).to_owned()).collect()
}

fn last_lines_of(console: &str) -> Vec<String> {
    let lines: Vec<&str> =
        console.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let first = panic.unwrap_or(0).max(lines.len().saturating_sub(4 * TAIL));
    let is_stack = |line: &&&str| panic.is_some() && line.contains("[<");
    let kept: Vec<&str> = lines[first..].iter().filter(|line| !is_stack(line)).copied().collect();
    let last = if panic.is_some() { 0 } else { kept.len().saturating_sub(TAIL) };
    kept[last..].iter().take(TAIL).map(|line| (*line).to_owned()).collect()
}

/// The kernel's process, which leads a group of its own with its helpers.
struct Process {
    child: Child,
    keeper: Keeper,
}

impl Process {
    /// Waits for the end of a guest that has closed its clock; one that has powered off is ended when it does not end.
    fn end(&mut self, work: &Path) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                // Ended when this is dropped.
                Ok(None) if began.elapsed() > LOOK && has_powered_off(work) => return Ok(()),
                Ok(None) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok(None) => return Err(Failure::Protocol("the guest does not end".to_owned())),
                Ok(Some(_)) => return Ok(()),
                Err(error) => return Err(Failure::system("the guest's end", error)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also after an orderly end, of which helpers may be left: the group keeps its number as long as one lives.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
        self.keeper.dismiss();
    }
}

/// A shell that ends the guest and removes its directory when this process is gone, however it went.
struct Keeper {
    shell: Child,
    line: Option<ChildStdin>,
}

impl Keeper {
    /// It reads the number of the guest's group, then waits for a second line, which a process that was killed never
    /// writes.
    const SCRIPT: &'static str = r#"read -r group || group=
        read -r dismissed && exit
        [ -z "$group" ] || kill -s KILL -- "-$group"
        rm -rf -- "$1""#;

    fn start(work: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", Self::SCRIPT, "keeper"]).arg(work).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut shell =
            command.spawn().map_err(|error| Failure::system("starting a shell", error))?;
        let line = shell.stdin.take();
        Ok(Self { shell, line })
    }

    fn watch(&mut self, child: &Child) -> Result<(), Failure> {
        self.write(&format!("{}\n", child.id()))
            .map_err(|error| Failure::system("the shell that watches", error))
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.line.as_mut().map_or(Ok(()), |line| line.write_all(text.as_bytes()))
    }

    fn dismiss(&mut self) {
        let _ = self.write("done\n");
        self.line = None;
        let _ = self.shell.wait();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.line.is_some() {
            // There was never a guest to watch.
            let _ = self.write("\ndone\n");
            self.line = None;
            let _ = self.shell.wait();
        }
    }
}

/// This thread on one processor, until this is dropped; what it starts meanwhile stays there.
struct Pinned(CpuSet);

impl Pinned {
    fn to(processor: usize) -> Result<Self, Failure> {
        let system = |error| Failure::system(format!("processor {processor}"), error);
        let before = sched_getaffinity(None).map_err(system)?;
        let mut one = CpuSet::new();
        if processor >= CpuSet::MAX_CPU {
            return Err(system(rustix::io::Errno::INVAL));
        }
        one.set(processor);
        sched_setaffinity(None, &one).map_err(system)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}

/// The guest's directory; removed with all that is in it. Its name is short, as those of sockets are limited.
struct WorkDirectory(PathBuf);

impl WorkDirectory {
    fn new() -> Result<Self, Failure> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        Self::next(&NEXT, |number| PathBuf::from(format!("/tmp/raidlab-lab-{process}-{number}")))
    }

    /// Makes the next one that is not there. A process of the same number may have left some.
    fn next(next: &AtomicU32, name: impl Fn(u32) -> PathBuf) -> Result<Self, Failure> {
        loop {
            let path = name(next.fetch_add(1, Ordering::Relaxed));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::system(path.display().to_string(), error)),
            }
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_panic_is_shown_from_its_first_line_on() {
        let stack: String = (0..30).map(|n| format!(" [<600{n}>] ? f+0x0\n")).collect();
        let text = format!("before\n\nKernel panic - not syncing: why\n{stack}after\n");
        assert_eq!(last_lines_of(&text), ["Kernel panic - not syncing: why", "after"]);
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let last = last_lines_of(&many);
        assert_eq!((last.len(), last[0].as_str()), (TAIL, "line 80"));
        assert!(last_lines_of("").is_empty());
    }

    #[test]
    fn a_directory_that_was_left_is_not_in_the_way() {
        let place = WorkDirectory::new().expect("can be made");
        let name = |number: u32| place.path().join(format!("left-{number}"));
        fs::create_dir(name(0)).expect("can be made");
        fs::write(name(1), "a file").expect("can be written");
        let next = AtomicU32::new(0);
        let made = WorkDirectory::next(&next, name).expect("the third is free");
        assert_eq!(made.path(), name(2));
        drop(made);
        assert!(name(0).is_dir() && name(1).is_file() && !name(2).exists());
        let failure = WorkDirectory::next(&next, |_| name(1).join("below a file"));
        assert!(matches!(failure, Err(Failure::System { .. })));
    }

    #[test]
    fn a_guest_that_is_slow_is_told_from_one_that_has_ended() {
        let work = WorkDirectory::new().expect("can be made");
        let clock = UnixListener::bind(work.path().join("clock")).expect("can be bound");
        let (stop, stopper) = std::io::pipe().expect("can be made");
        let wait = |ended: bool| await_guest(&clock, stop.as_fd(), Duration::ZERO, &mut || ended);
        let failure = wait(false).expect_err("nobody has come");
        assert!(matches!(failure, Failure::Unconnected { seconds: 0 }), "{failure}");
        assert!(failure.to_string().contains("has not connected to its clock within 0 s"));
        assert!(matches!(wait(true), Err(Failure::Closed)));
        drop(stopper);
        assert!(matches!(wait(true), Err(Failure::Interrupted)));
        let _guest = std::os::unix::net::UnixStream::connect(work.path().join("clock"));
        assert!(wait(true).is_ok());
    }

    #[test]
    fn an_error_ends_with_what_the_script_had_written() {
        let work = WorkDirectory::new().expect("can be made");
        assert!(end_of(&work.path().join("stdout")).is_empty());
        let long: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        fs::write(work.path().join("stdout"), long + "last").expect("can be written");
        fs::write(work.path().join("stderr"), b"\xffbad\n").expect("can be written");
        let error = GuestError::new(Failure::Interrupted, work.path());
        assert_eq!((error.stdout.len(), error.stdout[0].as_str()), (TAIL, "line 9981"));
        let text = error.to_string();
        let expected = "interrupted; the end of the script's standard output:\n    line 9981\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(
            text.ends_with("last; the end of the script's standard error:\n    \u{fffd}bad"),
            "{text}"
        );
    }
}
