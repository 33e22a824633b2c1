//! The socket that commands come in by: a line of JSON each way.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use raidlab_targets::{Occupied, SocketFile};
use serde_json::{Value, json};

use super::super::open::Found;
use super::super::stack::short_name;
use super::args::Assemble;
use crate::failure::Failure;

/// What commands and answers mean; a command that gives another is refused.
pub(super) const VERSION: u64 = 1;
/// Bytes of a command at most.
const LONGEST: u64 = 64 << 10;
/// How long a client may take to say what it wants, and to take the answer in: each holds a thread.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody is taken in when that has failed.
const AGAIN: Duration = Duration::from_millis(100);

/// A command that waits for its answer.
pub(super) struct Asked {
    pub(super) command: Value,
    pub(super) answer: Sender<Value>,
    /// Nothing comes of it; it ends when the answer has been sent.
    pub(super) sent: Receiver<()>,
}

/// A socket that commands come in by. It goes with this.
pub(super) struct Listening {
    /// Whoever comes when it is gone finds nobody.
    _file: SocketFile,
    pub(super) requests: Receiver<Asked>,
}

/// The sockets of an array and of those below it, taken before anything of the array is written: whatever is refused
/// here leaves every member as it is.
pub(super) struct Sockets {
    pub(super) own: Listening,
    /// In the order in which the arrays below were found.
    pub(super) lower: Vec<Self>,
}

impl Sockets {
    /// Of the array that was asked for.
    pub(super) fn new(options: &Assemble, found: &Found) -> Result<Self, Failure> {
        let path = options.socket.clone().map_or_else(|| default(&name(found)?), Ok)?;
        Self::at(&path, options, found)
    }

    /// Of an array below it, by the name that it has there.
    pub(super) fn below(options: &Assemble, found: &Found, called: &Path) -> Result<Self, Failure> {
        let name = called.display().to_string();
        let beside = |path: &PathBuf| {
            let mut path = path.clone().into_os_string();
            path.push(format!(".{name}"));
            PathBuf::from(path)
        };
        let path = options.socket.as_ref().map(beside).map_or_else(|| default(&name), Ok)?;
        Self::at(&path, options, found)
    }

    fn at(path: &Path, options: &Assemble, found: &Found) -> Result<Self, Failure> {
        let own = listen(path)?;
        let lower = found.paths.iter().zip(&found.lower);
        let lower = lower.filter_map(|(called, lower)| Some((called, lower.as_ref()?)));
        let lower = lower.filter(|(_, lower)| !lower.is_member);
        let lower = lower.map(|(called, lower)| Self::below(options, lower, called));
        Ok(Self { own, lower: lower.collect::<Result<_, _>>()? })
    }
}

/// The short name of an array; where nothing can be decided yet, of the first one that a device names.
pub(super) fn name(found: &Found) -> Result<String, Failure> {
    let decided = found.decision.as_ref().ok();
    let decided = decided.map(|assembly| short_name(&assembly.name, &assembly.array));
    let named = || found.inspected.iter().find_map(|one| one.array());
    match decided.or_else(|| named().map(|(array, name)| short_name(&name, &array))) {
        Some(name) => Ok(name),
        None => found.assembly().map(|assembly| assembly.name.clone()),
    }
}

/// Where an array of this name has its socket.
fn default(name: &str) -> Result<PathBuf, Failure> {
    let directory = directory()?;
    Ok(directory.join(format!("{name}.sock")))
}

/// The socket of a running array that is meant by its name or path.
pub(super) fn of(array: &str) -> Result<PathBuf, Failure> {
    if array.contains('/') { Ok(PathBuf::from(array)) } else { default(array) }
}

/// Whether this means an array that may be running, and no file or device.
pub(in super::super) fn is_meant(array: &Path) -> bool {
    let is_socket = |path: &Path| {
        let there = path.metadata();
        there.is_ok_and(|there| std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()))
    };
    if array.symlink_metadata().is_ok() {
        return is_socket(array);
    }
    array.to_str().and_then(|name| of(name).ok()).is_some_and(|path| is_socket(&path))
}

/// A directory of this user's alone.
fn directory() -> Result<PathBuf, Failure> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    let own = fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or(u32::MAX);
    let path = match runtime {
        Some(path) => PathBuf::from(path).join("raidlab"),
        None if own == 0 => PathBuf::from("/run/raidlab"),
        None => std::env::temp_dir().join(format!("raidlab-{own}")),
    };
    let failed = |error: io::Error| {
        Failure::failed(format!("the directory of control sockets, {}: {error}", path.display()))
    };
    match DirBuilder::new().mode(0o700).recursive(true).create(&path) {
        Ok(()) => {}
        Err(error) => return Err(failed(error)),
    }
    let there = path.symlink_metadata().map_err(failed)?;
    let why = match () {
        () if !there.is_dir() => "is no directory".to_owned(),
        () if there.uid() != own => {
            format!("is owned by another user ({}; this is user {own})", there.uid())
        }
        () if there.mode() & 0o022 != 0 => "can be written by other users".to_owned(),
        () => return Ok(path),
    };
    let what = "so control sockets in it are not to be trusted: set XDG_RUNTIME_DIR, or give --socket or a path";
    Err(Failure::Refused(format!("{} {why}, {what}", path.display())))
}

/// Takes commands in from now on.
fn listen(path: &Path) -> Result<Listening, Failure> {
    let failed = |error: io::Error| {
        let what = "the control socket cannot be made (--socket)";
        Failure::failed(format!("{}: {what}: {error}", path.display()))
    };
    SocketFile::make_room(path).map_err(|occupied| {
        let refused = |what: &str| Failure::Refused(format!("{}: {what}", path.display()));
        let another = "give another --socket";
        match occupied {
            Occupied::NoSocket => {
                Failure::input(format!("{}: {occupied}: {another}", path.display()))
            }
            Occupied::InUse => {
                refused(&format!("an array runs there already: stop it, or {another}"))
            }
            Occupied::Unknown(_) => refused(&format!("{occupied}: {another}")),
            Occupied::Kept(error) => failed(error),
        }
    })?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    let (sender, receiver) = channel();
    let listening = Listening { _file: SocketFile::made(path), requests: receiver };
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    let accept = move || accept(&listener, &sender);
    thread::Builder::new().name("commands".into()).spawn(accept).map_err(failed)?;
    Ok(listening)
}

/// Attends to whoever comes, each on a thread of its own; where there is none to be had, to one after the other.
fn accept(listener: &UnixListener, sender: &Sender<Asked>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream.map(Arc::new) else {
            // There is no descriptor left, say. Whoever waits is attended to when there is.
            thread::sleep(AGAIN);
            continue;
        };
        let (own, to) = (Arc::clone(&stream), sender.clone());
        // Who goes away without waiting for the answer gets none.
        let beside = move || drop(attend(&own, &to));
        if thread::Builder::new().name("command".into()).spawn(beside).is_err() {
            let _ = attend(&stream, sender);
        }
    }
}

fn attend(mut stream: &UnixStream, sender: &Sender<Asked>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(Read::by_ref(&mut stream).take(LONGEST)).read_line(&mut line)?;
    let (_sending, sent) = channel();
    let answered = match serde_json::from_str(&line) {
        Ok(command) => {
            let (answer, told) = channel();
            let gone = |_| json!({ "error": "the array has ended" });
            match sender.send(Asked { command, answer, sent }) {
                Ok(()) => told.recv().unwrap_or_else(|error| gone(error.to_string())),
                Err(error) => gone(error.to_string()),
            }
        }
        Err(error) => json!({ "error": format!("no command: {error}") }),
    };
    writeln!(stream, "{answered}")
}

/// Asks a running array for something.
pub(super) fn ask(array: &str, command: &Value) -> Result<Value, Failure> {
    let path = of(array)?;
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ": no array of this name runs; `raidlab array assemble` runs one"
            }
            _ => "",
        };
        Failure::failed(format!("{}: {error}{hint}", path.display()))
    };
    let stream = UnixStream::connect(&path).map_err(failed)?;
    let mut command = command.clone();
    command["version"] = VERSION.into();
    writeln!(&stream, "{command}").map_err(failed)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).map_err(failed)?;
    let answer: Value = serde_json::from_str(&line)
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    match (answer["refused"].as_str(), answer["error"].as_str()) {
        (Some(what), _) => Err(Failure::Refused(what.to_owned())),
        (None, Some(what)) => Err(Failure::failed(what)),
        (None, None) => Ok(answer),
    }
}
