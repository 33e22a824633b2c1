//! Runs programs under `strace` and workloads on a target that does nothing, and brings both into the
//! same lines.
#![allow(dead_code, reason = "no test uses every helper")]

#[path = "../../../../tests/support/guest.rs"]
mod guest;
mod ours;
mod theirs;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek as _, SeekFrom, Write};
use std::path::{Path as SystemPath, PathBuf};
use std::process::Command;

use raidlab_core::Time;
use raidlab_workload::{
    Content, Entry, FileDescriptor, FilePath, Op, OpResult, Plan, Planned, Root, Seek, Setting,
    Status, Workload,
};

pub(crate) use ours::ours;

/// Lines such as `write linux-0.tar 131072 at 0`.
pub(crate) type Lines = Vec<String>;

/// Each file's lines, where the order between files is not the same.
pub(crate) fn by_file(lines: &Lines) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let file = line.split(' ').nth(1).unwrap_or_default();
        files.entry(file.to_string()).or_default().push(line.clone());
    }
    files
}

/// Lines from the looking up of one entry to that of the next.
pub(crate) fn entries(lines: &Lines) -> Vec<Vec<String>> {
    let mut entries: Vec<Vec<String>> = Vec::new();
    for line in lines {
        let begins = line.starts_with("stat ") && line.contains("/linux-2.6.13");
        match entries.last_mut() {
            Some(entry) if !begins => entry.push(line.clone()),
            _ => entries.push(vec![line.clone()]),
        }
    }
    entries
}

fn skip(test: &str, why: &str) {
    let line = format!("skipped: {test}: needs {why}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
}

fn prints(command: &str, words: &str) -> bool {
    let mut parts = command.split(' ');
    let output = Command::new(parts.next().unwrap_or_default()).args(parts).output();
    output.is_ok_and(|output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains(words)
    })
}

/// Whether this machine lacks one of these, after a line about the test that is skipped.
pub(crate) fn needs(test: &str, programs: &[&str]) -> bool {
    let lacks = |program: &&&str| match **program {
        // It may be there and not be allowed to trace.
        "strace" => !prints("strace -o /dev/null true", ""),
        "coreutils 9.1" => !prints("cp --version", "(GNU coreutils) 9.1"),
        "GNU tar 1.34" => !prints("tar --version", "(GNU tar) 1.34"),
        other => panic!("{other} is not known here"),
    };
    let Some(missing) = programs.iter().find(lacks) else { return false };
    skip(test, missing);
    true
}

/// Whether this is root, for whom tar sets owners; if not, after a line about the skipped test.
pub(crate) fn is_root(test: &str) -> bool {
    let root = prints("id -u", "0\n");
    if !root {
        skip(test, "root");
    }
    root
}

/// A directory with the target and the sources of a workload in it.
pub(crate) struct Place {
    directory: guest::TempDir,
}

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let place = Self { directory: guest::TempDir::new(name) };
        for name in ["target", "source"] {
            fs::create_dir(place.base().join(name)).expect("made");
        }
        place
    }

    fn base(&self) -> PathBuf {
        fs::canonicalize(self.directory.path()).expect("there")
    }

    /// Where files from elsewhere lie.
    pub(crate) fn source(&self) -> PathBuf {
        self.base().join("source")
    }

    pub(crate) fn target(&self) -> PathBuf {
        self.base().join("target")
    }

    fn path(&self, path: &FilePath) -> PathBuf {
        match path.root {
            Root::Target => self.target().join(&*path.text),
            Root::Source => self.source().join(&*path.text),
            Root::Null => "/dev/null".into(),
        }
    }

    /// Runs a command below the target; gives what it prints.
    pub(crate) fn run(&self, below: &str, command: &str) -> String {
        let mut words = command.split(' ');
        let program = words.next().expect("a program");
        let mut built = Command::new(program);
        built
            .args(words)
            .current_dir(self.target().join(below))
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        let output = built.output().expect(program);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs a command under strace below the target, with faults; gives its calls.
    pub(crate) fn strace(&self, below: &str, command: &str, faults: &[&str]) -> Lines {
        let log = self.base().join("strace");
        let faults: String = faults.iter().map(|fault| format!(" --inject={fault}")).collect();
        let options = "-y -s 0 -a 1 -e signal=none";
        self.run(below, &format!("strace {options} -o {}{faults} {command}", log.display()));
        let text = fs::read_to_string(log).expect("written by strace");
        theirs::lines(&text, &self.base(), &self.target().join(below))
    }

    /// The calls of a thread of raidlab's directory target that ran here, from its trace.
    pub(crate) fn lines_of_thread(&self, trace: &str) -> Lines {
        theirs::lines_of_thread(trace, &self.base())
    }

    /// Puts the sources down and carries out the stages before the run.
    pub(crate) fn prepare(&self, plan: Plan) {
        for source in &plan.sources {
            let mut bytes = vec![0; source.bytes.len() as usize];
            source.bytes.fill(0, &mut bytes);
            fs::write(self.path(&FilePath::source(source.name.clone())), bytes).expect("written");
        }
        for planned in plan.prepare.into_iter().chain(plan.warm) {
            self.carry_out(planned);
        }
    }

    /// Compares files with what is expected of them.
    pub(crate) fn check(&self, workload: &dyn Workload, setting: &Setting) {
        let plan = workload.plan(setting).expect("a plan");
        assert!(!plan.expected.is_empty());
        for expected in &plan.expected {
            let found = fs::read(self.path(&expected.path)).expect(&expected.path.text);
            let mut bytes = vec![1; expected.bytes.len() as usize];
            expected.bytes.fill(0, &mut bytes);
            assert!(found == bytes, "{} has other bytes", expected.path);
        }
    }

    /// Carries out what a process asks for on real files; gives what that was.
    pub(crate) fn carry_out(&self, mut planned: Planned) -> Vec<Op> {
        let mut files = Files { place: self, fds: BTreeMap::new(), buffer: Vec::new() };
        let mut last = OpResult::Start;
        let mut ops = Vec::new();
        loop {
            let op = planned.process.next(Time::ZERO, last);
            if op == Op::Done {
                return ops;
            }
            last = files.carry_out(&op).unwrap_or_else(|error| panic!("{op:?}: {error}"));
            ops.push(op);
        }
    }
}

struct Files<'a> {
    place: &'a Place,
    fds: BTreeMap<FileDescriptor, File>,
    buffer: Vec<u8>,
}

impl Files<'_> {
    fn file(&mut self, fd: FileDescriptor) -> &mut File {
        self.fds.get_mut(&fd).expect("an open file")
    }

    fn carry_out(&mut self, op: &Op) -> std::io::Result<OpResult> {
        let place = self.place;
        match op {
            Op::Open { fd, path, flags } => {
                let mut options = OpenOptions::new();
                options.read(flags.read).write(flags.write).truncate(flags.truncate);
                options.create(flags.create).create_new(flags.create && flags.exclusive);
                self.fds.insert(*fd, options.open(place.path(path))?);
            }
            Op::Close { fd } => drop(self.fds.remove(fd)),
            Op::Read { fd, len, times } => return self.read(*fd, *len, *times),
            Op::Write { fd, len, content, times } => {
                for _ in 0..*times {
                    self.write(*fd, *len, *content)?;
                }
                return Ok(OpResult::Moved(len * times));
            }
            Op::CopyRange { from, to, .. } => {
                let mut bytes = Vec::new();
                self.file(*from).read_to_end(&mut bytes)?;
                self.file(*to).write_all(&bytes)?;
                return Ok(OpResult::Moved(bytes.len() as u64));
            }
            Op::Seek { fd, to: Seek::Start(at) } => {
                self.file(*fd).seek(SeekFrom::Start(*at))?;
            }
            Op::Truncate { fd, len } => self.file(*fd).set_len(*len)?,
            Op::Mkdir { path } => fs::create_dir(place.path(path))?,
            Op::List { path } => return list(&place.path(path)),
            Op::Stat { path } => {
                let found = fs::metadata(place.path(path))?;
                let status = Status { size: found.len(), is_directory: found.is_dir() };
                return Ok(OpResult::Status(status));
            }
            Op::Mark(_) | Op::Set { .. } | Op::Fsync { .. } | Op::Fdatasync { .. } => {}
            other => panic!("{other:?} is not carried out here"),
        }
        Ok(OpResult::Done)
    }

    fn read(&mut self, fd: FileDescriptor, len: u64, times: u64) -> std::io::Result<OpResult> {
        let mut moved = 0;
        for _ in 0..times {
            self.buffer.resize(self.buffer.len().max(len as usize), 0);
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = self.file(fd).read(&mut buffer[..len as usize])?;
            self.buffer = buffer;
            moved += read as u64;
        }
        Ok(OpResult::Moved(moved))
    }

    fn write(&mut self, fd: FileDescriptor, len: u64, content: Content) -> std::io::Result<()> {
        let at = self.file(fd).stream_position()?;
        let mut bytes = vec![0; len as usize];
        match content {
            Content::Zeroes => {}
            Content::Buffer { from } => {
                bytes.copy_from_slice(&self.buffer[from as usize..from as usize + len as usize]);
            }
            Content::Seeded { seed } => raidlab_workload::content::fill(seed, at, &mut bytes),
            Content::Stamp { .. } => panic!("no stamps here"),
        }
        self.file(fd).write_all(&bytes)
    }
}

fn list(path: &SystemPath) -> std::io::Result<OpResult> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned().into();
        entries.push(Entry { name, is_directory: entry.file_type()?.is_dir() });
    }
    Ok(OpResult::Entries(entries))
}
