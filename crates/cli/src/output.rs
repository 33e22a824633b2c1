//! Writing reports: whole files or nothing, and the terminal.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use clap::Args;
use raidlab_report::{Exporter, Terminal};
use raidlab_results::Results;

use crate::args::Color;
use crate::exports::Exports;
use crate::failure::Failure;
use crate::overwrites;

/// Where a report goes that is to be printed.
pub(crate) const STDOUT: &str = "-";
/// The flag of the file of requests. It is never printed: a report would be beside it.
pub(crate) const TRACE: &str = "--trace";
/// What a file of the modelled run has in its name, that stands beside the measured one's.
const MODELLED: &str = "virtual";
/// The same of what the model is off.
pub(crate) const RESIDUALS: &str = "residuals";

/// So many of something, by the words for one and for several.
pub(crate) fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Checks that every report can be written and takes the place of nothing that is read or was written by hand, before
/// hours of work: flags with their paths, and the files that are read.
pub(crate) fn check<F: AsRef<str>>(
    outputs: &[(F, Option<&Path>)],
    inputs: &[Option<&Path>],
) -> Result<(), Failure> {
    check_places(outputs)?;
    for (flag, path) in outputs {
        let Some(path) = path.filter(|path| *path != Path::new(STDOUT)) else { continue };
        if let Some(why) = overwrites::refusal(flag.as_ref(), path, inputs) {
            return Err(Failure::input(why));
        }
    }
    Ok(())
}

/// Checks that every file can be written, and that no two are one.
pub(crate) fn check_places<F: AsRef<str>>(outputs: &[(F, Option<&Path>)]) -> Result<(), Failure> {
    let given = || outputs.iter().filter_map(|(flag, path)| Some((flag.as_ref(), (*path)?)));
    for (number, (flag, path)) in given().enumerate() {
        let place = overwrites::place(path);
        let is_this = |earlier: &Path| overwrites::place(earlier) == place;
        if let Some((other, _)) = given().take(number).find(|(_, earlier)| is_this(earlier)) {
            let both = if path == Path::new(STDOUT) { "print" } else { "write to one file" };
            return Err(Failure::input(format!("{other} and {flag} cannot both {both}")));
        }
        if path == Path::new(STDOUT) {
            if flag == TRACE {
                return Err(Failure::input(format!("{flag} -: is not printed; name a file")));
            }
            continue;
        }
        try_to_write(path).map_err(|why| {
            Failure::input(format!("{flag} {}: cannot be written: {why}", path.display()))
        })?;
    }
    Ok(())
}

fn try_to_write(path: &Path) -> Result<(), String> {
    let path = &resolved(path);
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err("it is a directory; name a file in it".into()),
        Ok(there) if there.permissions().readonly() => return Err("it is read-only".into()),
        Ok(there) if !there.is_file() => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.to_string()),
    }
    let part = part_of(path);
    let made = OpenOptions::new().write(true).create_new(true).open(&part);
    made.and_then(|_| fs::remove_file(&part)).map_err(|error| error.to_string())
}

/// The path with a word before its ending: `out.virtual.json`.
pub(crate) fn with_word(path: &Path, word: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(word);
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// What a link leads to, so that the link stays one.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The temporary file beside a file.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Writes a file through a temporary one beside it, so that it is whole or not there; `-` prints.
pub(crate) fn write(path: &Path, contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Failure> {
    let contents = contents.as_ref();
    if path == Path::new(STDOUT) {
        return print(contents);
    }
    let path = &resolved(path);
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    };
    if !is_replaceable(path) {
        return fs::write(path, contents).map_err(failed);
    }
    let part = part_of(path);
    replace(&part, path, fs::write(&part, contents)).map_err(failed)
}

/// Whether something takes the place of what is there, if anything; to a device or a pipe it is written.
fn is_replaceable(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |there| there.is_file())
}

/// Puts a temporary file that was `written` in the place of a file, of which it takes over the permissions.
fn replace(part: &Path, path: &Path, written: std::io::Result<()>) -> std::io::Result<()> {
    let replaced = written.and_then(|()| {
        if let Ok(there) = fs::symlink_metadata(path) {
            fs::set_permissions(part, there.permissions())?;
        }
        fs::rename(part, path)
    });
    if replaced.is_err() {
        // Nothing half written stays; the first error is the one to tell.
        let _ = fs::remove_file(part);
    }
    replaced
}

/// A file that is written piece by piece and is whole or not there; `-` prints.
pub(crate) struct WholeFile {
    to: BufWriter<Box<dyn Write + Send>>,
    /// What it is called, and until then; none when it is printed or cannot be replaced.
    names: Option<(PathBuf, PathBuf)>,
    is_finished: bool,
}

impl WholeFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let of = |to: Box<dyn Write + Send>, names| Self {
            to: BufWriter::new(to),
            names,
            is_finished: false,
        };
        if path == Path::new(STDOUT) {
            return Ok(of(Box::new(std::io::stdout()), None));
        }
        let path = resolved(path);
        let failed = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
        if !is_replaceable(&path) {
            let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
            return Ok(of(Box::new(file), None));
        }
        let part = part_of(&path);
        let file = fs::File::create(&part).map_err(failed)?;
        Ok(of(Box::new(file), Some((path, part))))
    }

    /// What is written goes there.
    pub(crate) fn writer(&mut self) -> &mut (impl Write + Send + use<>) {
        &mut self.to
    }

    /// All of it was written.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.is_finished = true;
        let flushed = self.to.flush();
        let Some((path, part)) = &self.names else {
            return match flushed {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(|error| Failure::failed(format!("cannot write: {error}"))),
            };
        };
        replace(part, path, flushed)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    }
}

/// A [`WholeFile`] that is written to elsewhere, by whoever has this.
#[derive(Clone)]
pub(crate) struct SharedFile(Arc<Mutex<WholeFile>>);

impl SharedFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Mutex::new(WholeFile::create(path)?))))
    }

    /// All of it was written, and nobody else has it any more.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let file = Arc::into_inner(self.0).and_then(|file| file.into_inner().ok());
        file.ok_or_else(|| Failure::failed("a file is still being written"))?.finish()
    }
}

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file()?.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file()?.to.flush()
    }
}

impl SharedFile {
    fn file(&self) -> std::io::Result<MutexGuard<'_, WholeFile>> {
        self.0.lock().map_err(|_| std::io::Error::other("a thread has failed"))
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some((_, part)) = self.names.as_ref().filter(|_| !self.is_finished) {
            // Something else failed, which is told.
            let _ = fs::remove_file(part);
        }
    }
}

/// Prints; a reader that has gone away is no error.
pub(crate) fn print(contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), Failure> {
    if crate::in_process::keep(contents.as_ref()) {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(contents.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::failed(format!("cannot print: {error}"))),
    }
}

/// Tells the user something besides the report; that nobody listens is no error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Tells the user that leftovers of a killed run are gone.
pub(crate) fn removed(path: &Path) {
    note(&format!("removed what a killed run left behind: {}", path.display()));
}

/// What is to become of results, as `compare` and `show` are told.
#[derive(Args, Clone, Debug)]
pub(crate) struct Outputs {
    #[command(flatten)]
    pub(crate) exports: Exports,
    /// No progress, nothing provisional, and no report on the terminal when a file is written
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// When to colour the table
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: Color,
}

impl Outputs {
    /// Checks that every file can be written, that of requests too, before hours of work.
    pub(crate) fn check(&self, trace: Option<&Path>, input: Option<&Path>) -> Result<(), Failure> {
        let trace = [(TRACE.to_owned(), trace)];
        check(&self.exports.paths().into_iter().chain(trace).collect::<Vec<_>>(), &[input])
    }

    /// The same with the files of the modelled run, and what it is off.
    pub(crate) fn check_with(
        &self,
        modelled: &Self,
        traces: [Option<&Path>; 2],
        input: Option<&Path>,
    ) -> Result<(), Failure> {
        let residuals = self.exports.path("json").map(|path| with_word(path, RESIDUALS));
        let residuals = residuals.iter().map(|path| ("--json".to_owned(), Some(path.as_path())));
        let all = self.exports.paths().into_iter().chain(modelled.exports.paths());
        let traces = traces.map(|path| (TRACE.to_owned(), path));
        check(&all.chain(residuals).chain(traces).collect::<Vec<_>>(), &[input])
    }

    /// What the modelled run is written to, beside these files of the measured one.
    ///
    /// # Errors
    /// When something is to be printed: of two documents a reader could not tell where the second begins.
    pub(crate) fn beside(&self) -> Result<Self, Failure> {
        let paths = self.exports.paths();
        if let Some((flag, _)) = paths.iter().find(|(_, path)| *path == Some(Path::new(STDOUT))) {
            let reason = "prints one document, but there are two by two clocks: name a file";
            return Err(Failure::input(format!("{flag} -: {reason}")));
        }
        Ok(Self { exports: self.exports.map(|path| with_word(path, MODELLED)), ..*self })
    }

    /// Whether there is a report on the terminal.
    pub(crate) fn is_shown(&self) -> bool {
        let quiet = self.quiet && !self.exports.is_empty();
        !(self.exports.prints() || quiet)
    }
}

/// Prints a report where that is to be shown, and where a file could not be written, so that nothing is lost that was
/// measured; says then what could not be written.
pub(crate) fn told(
    written: Result<(), Failure>,
    is_shown: bool,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if written.is_err() || is_shown {
        let printed = print(&text());
        return written.and(printed);
    }
    written
}

/// Everything the user asked to see of the results. What was measured is shown on the terminal when
/// a file cannot be written, rather than lost.
pub(crate) fn reports(options: &Outputs, results: &Results) -> Result<(), Failure> {
    let written = files(options, results);
    if written.is_err() || options.is_shown() {
        print(&terminal(options.color).export(results).map_err(Failure::failed)?)?;
    }
    written
}

/// The same of what a file holds: one document, or several replays.
pub(crate) fn documents(options: &Outputs, documents: &[Results]) -> Result<(), Failure> {
    let written = options.exports.write(documents);
    if written.is_err() || options.is_shown() {
        let terminal = terminal(options.color);
        let replays = documents.iter().any(|one| one.fidelity.is_some());
        let text =
            if replays { terminal.replays(documents) } else { terminal.export_all(documents) };
        print(&text.map_err(Failure::failed)?)?;
    }
    written
}

/// The files that the user asked for; all of them even when one cannot be written.
pub(crate) fn files(options: &Outputs, results: &Results) -> Result<(), Failure> {
    options.exports.write(std::slice::from_ref(results))
}

/// The terminal that reports are printed on.
pub(crate) fn terminal(color: Color) -> Terminal {
    terminal_at(&std::io::stdout(), color)
}

/// The terminal that the user is told things on besides the report.
pub(crate) fn terminal_for_notes(color: Color) -> Terminal {
    terminal_at(&std::io::stderr(), color)
}

fn terminal_at(stream: &(impl IsTerminal + AsFd), color: Color) -> Terminal {
    let is_terminal = stream.is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let colour = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && !plain,
    };
    Terminal { width: columns(stream), colour, unicode: takes_unicode() }
}

/// The columns of the terminal, or, where there is none, those that `COLUMNS` names: what is piped into a pager
/// or a file is read somewhere, too.
fn columns(stream: &impl AsFd) -> Option<u16> {
    let terminal = terminal_size::terminal_size_of(stream).map(|(width, _)| width.0);
    let named = || std::env::var("COLUMNS").ok()?.trim().parse::<u16>().ok();
    terminal.or_else(|| named().filter(|columns| *columns > 0))
}

/// Whether the locale says UTF-8; a locale that says nothing is taken to.
pub(crate) fn takes_unicode() -> bool {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let first = set.find(|value| !value.is_empty());
    first.is_none_or(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}
