//! What a program asked the kernel for, from the output of `strace -y`, as lines.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::Lines;

/// What a descriptor stands for; other descriptors are of files that do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Open {
    File(String),
    Directory(String),
    /// Opened with `O_PATH`.
    Name(String),
}

struct Translator<'a> {
    base: &'a Path,
    /// Where the program runs.
    current: &'a Path,
    lines: Lines,
    open: BTreeMap<u32, Open>,
    positions: BTreeMap<String, u64>,
    /// Whether the program looks names up before it uses them, as `cp -r` does.
    has_stats: bool,
}

/// The lines of a program that ran in `current`; `base` has the target and the sources in it.
pub(super) fn lines(text: &str, base: &Path, current: &Path) -> Lines {
    let first = text.lines().next().unwrap_or_default();
    let copies = first.contains("\"-rf\"") || first.contains("/cp");
    let is_recursive = copies && text.lines().any(|line| line.starts_with("mkdirat("));
    translate(text, base, current, is_recursive)
}

/// The lines of a thread of raidlab's directory target, all of whose calls count.
pub(super) fn lines_of_thread(text: &str, base: &Path) -> Lines {
    translate(text, base, base, true)
}

fn translate(text: &str, base: &Path, current: &Path, has_stats: bool) -> Lines {
    let (lines, open, positions) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    let mut translator = Translator { base, current, lines, open, positions, has_stats };
    for line in text.lines() {
        if let Some(call) = parse(line) {
            translator.call(&call);
        }
    }
    translator.lines
}

#[derive(Debug)]
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    result: u64,
}

/// A call that succeeded.
fn parse(line: &str) -> Option<Call<'_>> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") = ")?;
    let digits = result.find(|c: char| !c.is_ascii_digit()).unwrap_or(result.len());
    let result = result[..digits].parse().ok()?;
    Some(Call { name, arguments: split(arguments), result })
}

/// Splits at commas outside of quotes and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0, false);
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match c {
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' | '<' if !quoted => depth += 1,
            '}' | ']' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn descriptor(argument: &str) -> Option<u32> {
    let digits = argument.find(|c: char| !c.is_ascii_digit()).unwrap_or(argument.len());
    argument[..digits].parse().ok()
}

fn quoted(argument: &str) -> &str {
    argument.trim_matches('"')
}

/// The path that `-y` says a descriptor is of.
fn annotation(argument: &str) -> Option<&Path> {
    let (_, rest) = argument.split_once('<')?;
    rest.strip_suffix('>').map(Path::new).filter(|path| path.is_absolute())
}

/// What is left of a path in the directory of a run of raidlab, or else the path.
fn within_run(path: &Path) -> &Path {
    let mut parts = path.components();
    match parts.next() {
        Some(Component::Normal(name)) if name.to_string_lossy().starts_with("raidlab-run-") => {
            parts.next();
            parts.as_path()
        }
        _ => path,
    }
}

impl Translator<'_> {
    /// A name below the target or the sources; `None` for other files. `directory` is the argument that
    /// says where a relative name starts.
    fn role(&self, directory: &str, text: &str) -> Option<String> {
        if text == "/dev/null" {
            return Some(text.into());
        }
        let mut path = PathBuf::new();
        let start = annotation(directory).unwrap_or(self.current);
        for part in start.join(text).components() {
            match part {
                Component::ParentDir => drop(path.pop()),
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        let below = |name: &str| path.strip_prefix(self.base.join(name)).ok().map(within_run);
        let target = below("target").map(|path| path.display().to_string());
        target.or_else(|| below("source").map(|path| format!("source:{}", path.display())))
    }

    fn file(&self, argument: &str) -> Option<String> {
        match self.open.get(&descriptor(argument)?)? {
            Open::File(file) => Some(file.clone()),
            Open::Directory(_) | Open::Name(_) => None,
        }
    }

    fn moved(&mut self, call: &str, argument: &str, len: &str, moved: u64) {
        let Some(file) = self.file(argument) else { return };
        let position = self.positions.entry(file.clone()).or_default();
        self.lines.push(format!("{call} {file} {len} at {position} gives {moved}"));
        *position += moved;
    }

    fn call(&mut self, call: &Call<'_>) {
        let argument = |index: usize| call.arguments.get(index).copied().unwrap_or_default();
        match call.name {
            "openat" => {
                let file = self.role(argument(0), quoted(argument(1)));
                self.opened(file, argument(2), call.result as u32);
            }
            "dup2" => {
                if let (Some(from), Some(to)) = (descriptor(argument(0)), descriptor(argument(1))) {
                    // dd moves files to descriptors 0 and 1 and closes the first one: one file.
                    if let Some(open) = self.open.remove(&from) {
                        self.open.insert(to, open);
                    }
                }
            }
            "close" => {
                let open = descriptor(argument(0)).and_then(|number| self.open.remove(&number));
                if let Some(Open::File(file)) = open {
                    self.lines.push(format!("close {file}"));
                }
            }
            "read" => self.moved("read", argument(0), argument(2), call.result),
            "write" => self.moved("write", argument(0), argument(2), call.result),
            "copy_file_range" => {
                self.moved("copy_from", argument(0), argument(4), call.result);
                self.moved("copy_to", argument(2), argument(4), call.result);
            }
            "lseek" => {
                let Some(file) = self.file(argument(0)) else { return };
                let position = self.positions.entry(file.clone()).or_default();
                if *position != call.result {
                    *position = call.result;
                    self.lines.push(format!("seek {file} to {position}"));
                }
            }
            "fsync" | "fdatasync" => {
                let Some(file) = self.file(argument(0)) else { return };
                self.lines.push(format!("{} {file}", call.name));
            }
            "ftruncate" => {
                let Some(file) = self.file(argument(0)) else { return };
                self.lines.push(format!("truncate {file} to {}", argument(1)));
            }
            "getdents64" => {
                let open = descriptor(argument(0)).and_then(|number| self.open.get(&number));
                let Some(Open::Directory(directory)) = open else { return };
                let line = format!("list {directory}");
                // A directory is read until a call gives nothing.
                if call.result > 0 && self.lines.last() != Some(&line) {
                    self.lines.push(line);
                }
            }
            _ => self.name_call(call),
        }
    }

    fn opened(&mut self, file: Option<String>, flags: &str, number: u32) {
        self.open.remove(&number);
        let Some(file) = file else { return };
        let has = |flag: &str| flags.split('|').any(|one| one == flag);
        let open = match file.clone() {
            file if has("O_PATH") => Open::Name(file),
            file if has("O_DIRECTORY") => Open::Directory(file),
            file => Open::File(file),
        };
        if matches!(open, Open::File(_)) {
            let words = [
                (has("O_RDONLY") || has("O_RDWR"), " read"),
                (has("O_WRONLY") || has("O_RDWR"), " write"),
                (has("O_CREAT"), " create"),
                (has("O_EXCL"), " exclusive"),
                (has("O_TRUNC"), " truncate"),
                (has("O_DIRECT"), " direct"),
                (has("O_SYNC") || has("O_DSYNC"), " sync"),
            ];
            let words: String =
                words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
            self.lines.push(format!("open {file}{words}"));
            self.positions.insert(file, 0);
        }
        self.open.insert(number, open);
    }

    /// Calls on names, and attributes.
    fn name_call(&mut self, call: &Call<'_>) {
        let argument = |index: usize| call.arguments.get(index).copied().unwrap_or_default();
        let named = |index: usize| self.role(argument(index - 1), quoted(argument(index)));
        let line = match call.name {
            "mkdirat" => named(1).map(|path| format!("mkdir {path}")),
            "unlinkat" => named(1).map(|path| format!("unlink {path}")),
            "symlinkat" => {
                let text = quoted(argument(0));
                named(2).map(|path| format!("symlink {path} says {text}"))
            }
            "linkat" => named(1).zip(named(3)).map(|(from, to)| format!("link {from} to {to}")),
            "renameat" | "renameat2" => {
                named(1).zip(named(3)).map(|(from, to)| format!("rename {from} to {to}"))
            }
            "newfstatat" if self.has_stats && argument(1) != "\"\"" => {
                named(1).map(|path| format!("stat {path}"))
            }
            "utimensat" if argument(1) == "NULL" => {
                self.file(argument(0)).map(|file| format!("times {file}"))
            }
            "utimensat" => named(1).map(|path| format!("times {path}")),
            "fchown" => self.file(argument(0)).map(|file| format!("owner {file}")),
            "fchownat" => named(1).map(|path| format!("owner {path}")),
            "fchmod" => self.file(argument(0)).map(|file| format!("mode {file}")),
            "fchmodat" => named(1).map(|path| format!("mode {path}")),
            "chmod" => {
                // tar opens a directory with O_PATH and names it by its descriptor.
                let number =
                    quoted(argument(0)).strip_prefix("/proc/self/fd/").and_then(descriptor);
                match number.and_then(|number| self.open.get(&number)) {
                    Some(Open::Name(path)) => Some(format!("mode {path}")),
                    _ => None,
                }
            }
            _ => None,
        };
        self.lines.extend(line);
    }
}
