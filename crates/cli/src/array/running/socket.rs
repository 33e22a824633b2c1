//! The socket that commands come in by: a line of JSON each way.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::args::Assemble;
use super::state::Names;
use crate::failure::Failure;

/// What commands and answers mean; a command that gives another is refused.
pub(super) const VERSION: u64 = 1;
/// Bytes of a command at most.
const LONGEST: u64 = 64 << 10;

/// A command that waits for its answer.
pub(super) struct Asked {
    pub(super) command: Value,
    pub(super) answer: Sender<Value>,
    /// Nothing comes of it; it ends when the answer has been sent.
    pub(super) sent: Receiver<()>,
}

/// Where the commands of an array come in.
pub(super) fn path(options: &Assemble, names: &Names) -> Result<PathBuf, Failure> {
    options.socket.clone().map_or_else(|| default(&names.short()), Ok)
}

/// The same of an array below the one that was asked for.
pub(super) fn beside(options: &Assemble, names: &Names) -> Result<PathBuf, Failure> {
    let name = names.short();
    let beside = |path: &PathBuf| {
        let mut path = path.clone().into_os_string();
        path.push(format!(".{name}"));
        PathBuf::from(path)
    };
    options.socket.as_ref().map(beside).map_or_else(|| default(&name), Ok)
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
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    match DirBuilder::new().mode(0o700).recursive(true).create(&path) {
        Ok(()) => {}
        Err(error) => return Err(failed(error)),
    }
    let there = path.symlink_metadata().map_err(failed)?;
    if !there.is_dir() || there.uid() != own || there.mode() & 0o022 != 0 {
        let what = "others may write there, so sockets in it are not to be trusted: set XDG_RUNTIME_DIR, or give paths";
        return Err(Failure::Refused(format!("{}: {what}", path.display())));
    }
    Ok(path)
}

/// Takes commands in from now on.
pub(super) fn listen(path: &Path) -> Result<Receiver<Asked>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", path.display()));
    if path.symlink_metadata().is_ok() {
        if UnixStream::connect(path).is_ok() {
            let what = "an array runs there already: stop it, or give another --socket";
            return Err(Failure::Refused(format!("{}: {what}", path.display())));
        }
        let kind = path.symlink_metadata().map_err(failed)?.file_type();
        if !std::os::unix::fs::FileTypeExt::is_socket(&kind) {
            return Err(Failure::input(format!("{} exists, and is no socket", path.display())));
        }
        // Left by a process that was killed.
        fs::remove_file(path).map_err(failed)?;
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    let (sender, receiver) = channel();
    let accept = move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                // Who goes away without waiting for the answer gets none.
                let _ = attend(stream, &sender);
            });
        }
    };
    std::thread::Builder::new().name("commands".into()).spawn(accept).map_err(failed)?;
    Ok(receiver)
}

fn attend(stream: UnixStream, sender: &Sender<Asked>) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(Read::by_ref(&mut (&stream)).take(LONGEST)).read_line(&mut line)?;
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
    writeln!(&stream, "{answered}")
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
