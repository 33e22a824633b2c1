//! Writing reports: whole files or nothing, and the terminal.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use raidlab_report::{Exporter, Html, Json, Terminal};
use raidlab_results::Results;

use crate::args::Color;
use crate::exports::Exports;
use crate::failure::Failure;

/// Where a report goes that is to be printed.
const STDOUT: &str = "-";

/// Checks that every file can be written, before hours of work: flags with their paths.
pub(crate) fn check(outputs: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let given = || outputs.iter().filter_map(|(flag, path)| Some((*flag, (*path)?)));
    for (number, (flag, path)) in given().enumerate() {
        if let Some((other, _)) = given().take(number).find(|(_, earlier)| *earlier == path) {
            let both = if path == Path::new(STDOUT) { "print" } else { "write to one file" };
            return Err(Failure::input(format!("{other} and {flag} cannot both {both}")));
        }
        if path == Path::new(STDOUT) {
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
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path == Path::new(STDOUT) {
        return print(text);
    }
    let path = &resolved(path);
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write {}: {error}", path.display()))
    };
    let there = fs::symlink_metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        // A device or a pipe cannot be replaced: write to it.
        return fs::write(path, text).map_err(failed);
    }
    let part = part_of(path);
    let written = fs::write(&part, text).and_then(|()| {
        if let Some(there) = &there {
            fs::set_permissions(&part, there.permissions())?;
        }
        fs::rename(&part, path)
    });
    if written.is_err() {
        // Nothing half written stays; the first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    written.map_err(failed)
}

/// Prints; a reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
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
    /// Write the results document to this file; `-` prints it instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a report that needs nothing but a browser to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) exports: Exports,
    /// No progress, and no report on the terminal when a file is written
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// When to colour the table
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: Color,
}

impl Outputs {
    /// Checks that every file can be written, before hours of work.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let files = [("--json", self.json.as_deref()), ("--html", self.html.as_deref())];
        check(&[&files[..], &self.exports.paths()].concat())
    }
}

/// Everything the user asked to see of the results. What was measured is shown on the terminal when
/// a file cannot be written, rather than lost.
pub(crate) fn reports(options: &Outputs, results: &Results) -> Result<(), Failure> {
    let export = |exporter: &dyn Exporter| exporter.export(results).map_err(Failure::failed);
    let outputs: [(Option<&Path>, &dyn Exporter); 2] =
        [(options.json.as_deref(), &Json), (options.html.as_deref(), &Html)];
    let outputs = || outputs.iter().filter_map(|(path, exporter)| Some(((*path)?, *exporter)));
    let mut written = Ok(());
    for (path, exporter) in outputs() {
        written = written.and(export(exporter).and_then(|text| write(path, &text)));
    }
    written = written.and(options.exports.write(std::slice::from_ref(results)));
    let exports = options.exports.paths().into_iter().filter_map(|(_, path)| path);
    let paths: Vec<&Path> = outputs().map(|(path, _)| path).chain(exports).collect();
    let printed = paths.contains(&Path::new(STDOUT));
    let quiet = options.quiet && !paths.is_empty();
    if written.is_err() || !(printed || quiet) {
        print(&export(&terminal(options.color))?)?;
    }
    written
}

pub(crate) fn terminal(color: Color) -> Terminal {
    let is_terminal = std::io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let colour = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && !plain,
    };
    Terminal { width: columns(), colour, unicode: takes_unicode() }
}

/// The columns of the terminal, or, where there is none, those that `COLUMNS` names: what is piped into a pager
/// or a file is read somewhere, too.
fn columns() -> Option<u16> {
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
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
