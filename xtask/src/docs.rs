//! Runs the commands that the documents show, so that the documents stay true.
//!
//! Every block marked `sh` of the README, ARCHITECTURE and docs/*.md is run by itself, in order, in a
//! scratch directory of its own (see [`place`]) with raidlab on the path. What comments before a block
//! mean stands in [`block`], how shown output is compared in [`output`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::markdown::{Block, Document};
use block::Line;
use place::Place;
use process::End;

pub(crate) mod block;
mod output;
mod place;
mod process;

/// What a block may take, by a build that is hardly optimised and beside other work: what never ends is found.
const LIMIT: Duration = Duration::from_secs(600);

/// A sample is every so many-th block.
const PARTS: usize = 12;

/// Lines of output that are shown of a command that failed.
const SHOWN: usize = 20;

/// Set by Ctrl-C: what runs is ended, and everything removed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    /// By this number a sample is chosen.
    sample: Option<usize>,
    /// The raidlab to run, instead of building one.
    with: Option<PathBuf>,
    /// Paths of the documents; none: all.
    documents: Vec<String>,
}

impl Choice {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut arguments = arguments.iter();
        while let Some(&argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument {
                "--sample" => {
                    let number = value()?;
                    let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
                    choice.sample = Some(number);
                }
                "--with" => choice.with = Some(PathBuf::from(value()?)),
                path if block::is_document(path) => choice.documents.push(path.to_owned()),
                other => return Err(format!("`{other}` is no document and no flag of `docs`")),
            }
        }
        Ok(choice)
    }
}

/// A block of commands, and what belongs to it.
#[derive(Debug)]
struct Task {
    /// Path and line, as they are printed.
    name: String,
    path: String,
    block: Block,
    files: Vec<(String, String)>,
    /// What it prints, and the width of the terminal that this is on.
    shown: Option<(Block, Option<u32>)>,
}

/// Runs the chosen blocks. The last line printed counts them as the harness of tests does.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let choice = Choice::parse(arguments).map_err(io::Error::other)?;
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).map_err(io::Error::other)?;
    let tasks = tasks(&documents(root, &choice.documents)?);
    let raidlab = match &choice.with {
        Some(file) => fs::canonicalize(file)?,
        None => build(root)?,
    };
    place::remove_left(root);
    let (mut passed, mut failed, mut not_run) = (0, 0, 0);
    for task in sampled(tasks, choice.sample) {
        let start = Instant::now();
        if let Some(reason) = block::reason(&task.block) {
            println!("docs: {}: not run: {reason}", task.name);
            not_run += 1;
        } else if let Some(missing) = missing(&task.block) {
            // Counted as passed, too, as of the harness of tests.
            println!("skipped: {}: {missing}", task.name);
            passed += 1;
        } else if let Some(failure) = failure(root, &raidlab, &task)? {
            println!("docs: {}: FAILED\n{failure}", task.name);
            failed += 1;
        } else {
            println!("docs: {}: {:.1} s", task.name, start.elapsed().as_secs_f64());
            passed += 1;
        }
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed; {not_run} ignored");
    Ok(failed == 0)
}

/// Paths and texts of all documents, or of those that are named.
fn documents(root: &Path, named: &[String]) -> io::Result<BTreeMap<String, String>> {
    let mut paths = named.to_vec();
    if paths.is_empty() {
        paths = ["README.md", "ARCHITECTURE.md"].map(str::to_owned).to_vec();
        for entry in fs::read_dir(root.join("docs"))? {
            paths.push(format!("docs/{}", entry?.file_name().to_string_lossy()));
        }
    }
    let of_documents = paths.into_iter().filter(|path| block::is_document(path));
    of_documents.map(|path| Ok((path.clone(), fs::read_to_string(root.join(path))?))).collect()
}

fn tasks(documents: &BTreeMap<String, String>) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (path, text) in documents {
        let document = Document::parse(text);
        let files = block::files(&document);
        for (index, block) in document.blocks.iter().enumerate() {
            if !block::is_of_commands(block) {
                continue;
            }
            let next = document.blocks.get(index + 1);
            let shown = next.and_then(|next| Some((next.clone(), block::output(next)?)));
            tasks.push(Task {
                name: format!("{path}:{}", block.line),
                path: path.clone(),
                block: block.clone(),
                files: files.clone(),
                shown,
            });
        }
    }
    tasks
}

/// The tasks of a sample, or all. Each sample has what is not run, and what shows output: any change
/// can make that stale.
fn sampled(tasks: Vec<Task>, sample: Option<usize>) -> Vec<Task> {
    let mut number = 0;
    let mut chosen = |task: &Task| {
        let Some(sample) = sample else { return true };
        if block::reason(&task.block).is_some() || task.shown.is_some() {
            return true;
        }
        number += 1;
        number % PARTS == sample % PARTS
    };
    tasks.into_iter().filter(|task| chosen(task)).collect()
}

/// Builds the release of the tree.
fn build(root: &Path) -> io::Result<PathBuf> {
    let target = root.join("target");
    let mut command = crate::cargo(root);
    command.args(["build", "--release", "--package", "raidlab-cli", "--bin", "raidlab"]);
    if command.arg("--target-dir").arg(&target).status()?.success() {
        Ok(target.join("release/raidlab"))
    } else {
        Err(io::Error::other("raidlab was not built"))
    }
}

/// What a block needs that is not here.
fn missing(block: &Block) -> Option<String> {
    if !block::needs_root(block) {
        return None;
    }
    if !crate::suite::is_root() {
        return Some("needs root".to_owned());
    }
    let device = ["/dev/loop-control", "/dev/fuse"].into_iter().find(|it| !Path::new(it).exists());
    device.map(|device| format!("needs {device}"))
}

/// Why a block is not what it should be.
fn failure(root: &Path, raidlab: &Path, task: &Task) -> io::Result<Option<String>> {
    let lines = block::commands(&task.block);
    let place = Place::make(root, raidlab, &task.files, &lines)?;
    let deadline = Instant::now() + LIMIT;
    let columns = task.shown.as_ref().and_then(|(_, columns)| *columns);
    let mut printed = String::new();
    for line in &lines {
        let command = match place.stand_in(&line.command) {
            Ok(command) => command,
            Err(why) => return Ok(Some(told(task, line, &why, "", ""))),
        };
        let command = place.command(&command, columns);
        let ran = process::run(command, place.directory(), deadline, &INTERRUPTED)?;
        if ran.end != End::Status(0) {
            return Ok(Some(told(task, line, &ran.end.to_string(), &ran.printed, &ran.errors)));
        }
        printed.push_str(&ran.printed);
    }
    let Some((shown, _)) = &task.shown else { return Ok(None) };
    let Some((index, instead)) = output::difference(&shown.lines, &printed) else {
        return Ok(None);
    };
    let (path, line) = (&task.path, shown.line + index);
    let text = &shown.lines.get(index).map_or("", String::as_str);
    Ok(Some(format!("  {path}:{line} shows   {text}\n  where is printed   {instead}")))
}

/// What a command that failed did.
fn told(task: &Task, line: &Line, why: &str, printed: &str, errors: &str) -> String {
    let mut text = format!("  {}:{}: {}\n  {why}", task.path, line.line, line.command.trim());
    for (name, output) in [("standard output", printed), ("standard error", errors)] {
        let lines: Vec<&str> = output.lines().collect();
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("\n  {name} ends:"));
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            text.push_str("\n    ");
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks_of(text: &str) -> Vec<Task> {
        tasks(&BTreeMap::from([("docs/a.md".to_owned(), text.to_owned())]))
    }

    /// Runs the only block of a document with a raidlab that is the shell's `echo`.
    fn failure_of(text: &str) -> Option<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let task = &tasks_of(text)[0];
        failure(&root, Path::new("/bin/echo"), task).expect("has a place")
    }

    #[test]
    fn arguments_are_read() {
        let choice =
            Choice::parse(&["--sample", "7", "README.md", "--with", "a"]).expect("is right");
        let documents = vec!["README.md".to_owned()];
        assert_eq!(choice, Choice { sample: Some(7), with: Some("a".into()), documents });
        for bad in [&["--sample"] as &[&str], &["--sample", "x"], &["--all"], &["a.md"]] {
            assert!(Choice::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_block_is_in_one_sample_and_those_not_run_or_with_output_in_each() {
        let shown = "```sh\na\n```\n\n<!-- output -->\n```\nb\n```\n\n";
        let text = format!("<!-- not run: a -->\n{}{shown}", "```sh\na\n```\n\n".repeat(13));
        let names = |sample| {
            let mut chosen = sampled(tasks_of(&text), sample);
            assert!(chosen.remove(0).shown.is_none(), "not run");
            assert!(chosen.pop().is_some_and(|task| task.shown.is_some()), "shows output");
            chosen.into_iter().map(|task| task.name).collect::<Vec<_>>()
        };
        let mut all: Vec<String> = (0..PARTS).flat_map(|sample| names(Some(sample))).collect();
        all.sort();
        let mut expected = names(None);
        expected.sort();
        assert_eq!(all, expected);
        assert_eq!(expected.len(), 12);
    }

    #[test]
    fn a_block_fails_at_the_command_that_fails() {
        assert_eq!(failure_of("```sh\nraidlab a\ntest -d studies\n```\n"), None);
        let failed =
            failure_of("```sh\ntrue\nraidlab a; echo b >&2; exit 4\n```\n").expect("fails");
        let expected = "  docs/a.md:3: raidlab a; echo b >&2; exit 4\n  ended with status 4\n  \
                        standard output ends:\n    a\n  standard error ends:\n    b";
        assert_eq!(failed, expected);
    }

    #[test]
    fn what_is_shown_is_compared() {
        let text =
            "```sh\nraidlab one 12\nraidlab two\n```\n\n<!-- output -->\n```\none 7\ntwo\n```\n";
        assert_eq!(failure_of(text), None);
        let failed = failure_of(&text.replace("two\n```\n\n", "tow\n```\n\n")).expect("fails");
        assert_eq!(failed, "  docs/a.md:9 shows   two\n  where is printed   tow");
    }

    #[test]
    fn files_of_the_document_are_there() {
        let text = "```sh\ntest \"$(cat a.txt)\" = b\n```\n\n<!-- file: a.txt -->\n```\nb\n```\n";
        assert_eq!(failure_of(text), None);
    }
}
