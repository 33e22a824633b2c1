//! Runs a shell script under the kernel in virtual time: `docs/kernel-lab.md`.
#![forbid(unsafe_code)]

use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, PipeWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use raidlab_kernel_lab::tape::Tape;
use raidlab_kernel_lab::{Failure, Guest, Outcome, Record, Root, drives, guest, paths};

const USAGE: &str = "\
usage: raidlab-kernel-lab [OPTION...] SCRIPT

Runs a shell script in a guest whose kernel lives in virtual time; - reads it from standard input.

  --kernel 6.12       the version that `cargo xtask kernel` has built, or the path of a kernel
  --drive KEY=VALUE,  a drive, /dev/vda first; see below
  --path KEY=VALUE,   a link between kernel and drives, from the kernel on; see below
  --memory 512        of the guest, in MiB
  --seed 1            what the kernel's random numbers and the drives' differences come from
  --trace FILE        a line for each request: arrived and ended in ns, drive, R W U(FUA) F, sector, bytes, depth
  --record FILE       what guest and drives say to each other, for `tape::replay`
  --processor N       the processor that guest and drives share; by default the one on which this starts
  --queue-depth 32    how many requests a drive is sent at once, 256 at most
  --dirty A,B         write-back begins at A bytes, writers wait at B
  --room 8192         what the contents of all drives may take in memory, in MiB
  --silence 120       for how many seconds of real time the guest may run without a word
  --argument WORD     one more argument of the kernel, such as um_cost=1000,500
  --file FILE         is copied to /run/host/files in the guest: a program of one's own, say, linked statically
  --no-page           the clock without shared memory, also with kernels that have it (6.11 and later)
  --root machine|FILE the guest's programs: this machine's own, or an archive; if not said, the archive of
                      `cargo xtask kernel programs` where there is one, and else this machine's

";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return say_how_it_is_used();
    }
    match Options::parse(&arguments).and_then(|options| run(&options)) {
        Ok(code) => code,
        Err(error) => {
            // Where it cannot be said, the exit status is what is left.
            let _ = say(io::stderr(), format!("raidlab-kernel-lab: {error}\n").as_bytes());
            let interrupted = error
                .downcast_ref::<guest::GuestError>()
                .is_some_and(|error| matches!(error.failure, Failure::Interrupted));
            ExitCode::from(if interrupted { 130 } else { 125 })
        }
    }
}

type Error = Box<dyn std::error::Error>;

fn say_how_it_is_used() -> ExitCode {
    let mut text = USAGE.to_owned();
    for (what, keys) in [("drive", drives::KEYS), ("link", paths::KEYS)] {
        text += &format!("A {what}:\n");
        keys.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    if say(io::stdout(), text.as_bytes()).is_ok() { ExitCode::SUCCESS } else { ExitCode::from(125) }
}

/// Writes all of it, to one of the standard streams. That nobody reads on is no error.
fn say(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    match stream.write_all(bytes).and_then(|()| stream.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

struct Options {
    kernel: String,
    drives: Vec<String>,
    paths: Vec<String>,
    memory: u64,
    seed: u64,
    trace: Option<PathBuf>,
    record: Option<PathBuf>,
    processor: Option<usize>,
    queue_depth: u32,
    dirty: Option<[u64; 2]>,
    room: u64,
    silence: u64,
    arguments: Vec<String>,
    files: Vec<PathBuf>,
    page: bool,
    root: Option<Root>,
    script: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        let mut options = Self {
            kernel: "6.12".to_owned(),
            drives: Vec::new(),
            paths: Vec::new(),
            memory: 512,
            seed: 1,
            trace: None,
            record: None,
            processor: Some(rustix::thread::sched_getcpu()),
            queue_depth: 32,
            dirty: None,
            room: 8192,
            silence: 120,
            arguments: Vec::new(),
            files: Vec::new(),
            page: true,
            root: Root::found(),
            script: String::new(),
        };
        let mut rest = arguments.iter();
        let mut script = None;
        while let Some(argument) = rest.next() {
            if argument == "--no-page" {
                options.page = false;
                continue;
            }
            if !argument.starts_with("--") {
                if script.replace(argument.clone()).is_some() {
                    return Err(format!("{argument}: one script, please").into());
                }
                continue;
            }
            let value = rest.next().ok_or_else(|| format!("{argument}: needs a value"))?;
            options.set(argument, value).map_err(|error| format!("{argument} {value}: {error}"))?;
        }
        options.script = script.ok_or("no script; --help says more")?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        match name {
            "--kernel" => value.clone_into(&mut self.kernel),
            "--drive" => self.drives.push(value.to_owned()),
            "--path" => self.paths.push(value.to_owned()),
            "--memory" => self.memory = value.parse()?,
            "--seed" => self.seed = value.parse()?,
            "--trace" => self.trace = Some(value.into()),
            "--record" => self.record = Some(value.into()),
            "--processor" => self.processor = Some(value.parse()?),
            "--queue-depth" => self.queue_depth = value.parse()?,
            "--dirty" => {
                let (background, limit) = value.split_once(',').ok_or("two numbers of bytes")?;
                self.dirty = Some([background.parse()?, limit.parse()?]);
            }
            "--room" => self.room = value.parse()?,
            "--silence" => self.silence = value.parse()?,
            "--file" => self.files.push(value.into()),
            "--argument" => self.arguments.push(value.to_owned()),
            "--root" if value == "machine" => self.root = Root::machine(),
            "--root" => self.root = Some(Root::Archive(value.into())),
            _ => return Err("no such option".into()),
        }
        Ok(())
    }

    fn guest(&self) -> Result<Guest, Error> {
        let seed_of = |number: usize| self.seed.wrapping_mul(64).wrapping_add(number as u64);
        let drives = self.drives.iter().enumerate();
        let drives: Result<Vec<_>, _> =
            drives.map(|(number, line)| drives::parse(line, seed_of(number))).collect();
        let lines = self.paths.iter().map(String::as_str);
        Ok(Guest {
            kernel: raidlab_kernel_lab::cache::kernel(&self.kernel)?,
            root: self.root.clone().ok_or("no busybox (package busybox-static), and no archive")?,
            memory_mib: self.memory,
            seed: self.seed,
            page: self.page,
            processor: self.processor,
            queue_depth: self.queue_depth,
            dirty_bytes: self.dirty,
            arguments: self.arguments.clone(),
            files: self.files.clone(),
            silence: Duration::from_secs(self.silence),
            drives: drives?,
            paths: paths::parse(lines, self.drives.len())?,
            free_setup: false,
            end: guest::End::PowerOff,
            room: self.room.checked_mul(1 << 20).ok_or("--room: more than can be counted")?,
        })
    }

    fn script(&self) -> io::Result<String> {
        if self.script == "-" {
            io::read_to_string(io::stdin())
        } else {
            fs::read_to_string(&self.script)
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Error> {
    let script = options.script().map_err(|error| format!("{}: {error}", options.script))?;
    let guest = options.guest()?;
    let stop = stop_pipe()?;
    let mut trace = options.trace.as_deref().map(Trace::create).transpose()?;
    let began = Instant::now();
    let mut keep = |record: &Record| {
        if let Some(trace) = &mut trace {
            trace.add(record);
        }
    };
    let mut tape = options.record.as_ref().map(|_| Tape::default());
    let ended = guest::run(guest, &script, stop.as_fd(), &mut keep, tape.as_mut());
    if let Some((path, tape)) = options.record.as_ref().zip(tape) {
        fs::write(path, tape.text()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(trace) = trace {
        trace.finish()?;
    }
    let outcome = ended?;
    let said = say(io::stdout(), &outcome.written.stdout);
    said.map_err(|error| format!("standard output: {error}"))?;
    say(io::stderr(), &outcome.written.stderr)?;
    say(io::stderr(), summary(&outcome, began.elapsed()).as_bytes())?;
    Ok(ExitCode::from(outcome.status as u8))
}

/// How long it took and how much happened.
fn summary(outcome: &Outcome, took: Duration) -> String {
    let counts = outcome.counts;
    let mut text = format!(
        "kernel lab: {:.9} s of virtual time in {:.3} s; {} requests, {} kicks, {} interrupts, {} turns of the \
         guest, {} messages of the clock{}; {} MiB held\n",
        outcome.virtual_time.0 as f64 / 1e9,
        took.as_secs_f64(),
        counts.requests,
        counts.kicks,
        counts.interrupts,
        counts.runs,
        counts.clock_messages,
        if outcome.page { ", page shared" } else { "" },
        outcome.bytes_held >> 20,
    );
    for (name, busy) in &outcome.path_busy {
        text += &format!("kernel lab: {name} worked for {:.9} s\n", busy.0 as f64 / 1e9);
    }
    text
}

/// A pipe that becomes readable on Ctrl-C, or when this process is told to end.
fn stop_pipe() -> Result<io::PipeReader, Error> {
    let (reader, writer) = io::pipe()?;
    let mut writer: Option<PipeWriter> = Some(writer);
    ctrlc::set_handler(move || drop(writer.take()))?;
    Ok(reader)
}

/// The file of the trace; the first error is said at the end.
struct Trace {
    file: BufWriter<File>,
    path: PathBuf,
    written: io::Result<()>,
}

impl Trace {
    fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file: BufWriter::new(file), path: path.to_owned(), written: Ok(()) })
    }

    fn add(&mut self, record: &Record) {
        if self.written.is_ok() {
            self.written = writeln!(self.file, "{record}");
        }
    }

    fn finish(mut self) -> Result<(), Error> {
        let written = self.written.and_then(|()| self.file.flush());
        Ok(written.map_err(|error| format!("{}: {error}", self.path.display()))?)
    }
}
