//! `raidlab study`: the studies that are compiled in, and study files of one's own.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{DriveSource, Drives, Study, cells, did_you_mean, replay};

use serde_json::json;

use crate::compare::compiled_in;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;
use raidlab_measure::Sizes;

/// The study that `raidlab compare` runs where none is named.
const DEFAULT: &str = "default";

/// Lists and shows the studies that are compiled in, begins a study file, checks one
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab study list                 what is compiled in, and when to use it\n  \
    raidlab study show sata-2018       its text\n  \
    raidlab study new mine.toml        a copy of the default study, to be changed\n  \
    raidlab study check mine.toml      whether it can be run, and how much it is\n\n\
    Exit status: 0 done, 1 failed, 2 bad input.")]
pub(crate) struct StudyOptions {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
    /// Lists the studies that are compiled in, with when to use each
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Prints the text of a study that is compiled in
    Show {
        /// A name of `raidlab study list`
        name: String,
    },
    /// Writes a study file to begin with; one that is there is left alone
    New {
        /// The file, such as mine.toml
        file: PathBuf,
        /// The study to begin with: a name of `raidlab study list`
        #[arg(long, value_name = "NAME", default_value = DEFAULT)]
        from: String,
    },
    /// Checks a study file with its drives and layouts; runs nothing
    Check {
        /// The study file
        file: PathBuf,
    },
}

pub(crate) fn run(options: &StudyOptions) -> Result<(), Failure> {
    match &options.command {
        StudyCommand::List { json } => output::print(&list(*json)?),
        StudyCommand::Show { name } => output::print(text_of(name)?),
        StudyCommand::New { file, from } => new(file, text_of(from)?),
        StudyCommand::Check { file } => output::print(&check(file)?),
    }
}

/// Every study with its text.
fn builtin() -> Vec<(&'static str, &'static str)> {
    raidlab_study::builtin().iter().chain(replay::builtin()).copied().collect()
}

fn text_of(name: &str) -> Result<&'static str, Failure> {
    let all = builtin();
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let (hint, known) = (did_you_mean(name, &known), known.join(", "));
        Failure::input(format!(
            "{name}: no study of this name is compiled in{hint}; known: {known}"
        ))
    })
}

/// Columns of a listing.
const COLUMNS: usize = 80;
/// Columns before what tells when to use a study.
const INDENT: usize = 4;

fn list(is_json: bool) -> Result<String, Failure> {
    let mut lines = String::new();
    let mut all = Vec::new();
    for (name, text) in builtin() {
        let study = raidlab_study::parse(text, name).map_err(Failure::failed)?;
        let is_compared = raidlab_study::builtin().iter().any(|(known, _)| *known == name);
        let how = if is_compared { "compare" } else { "replay" };
        let when = raidlab_study::preamble(text);
        lines += &format!("{name:18}{how:9}{}\n", study.title);
        wrapped(&when, &mut lines);
        all.push(json!({ "name": name, "command": how, "title": study.title, "when": when }));
    }
    if is_json {
        return Ok(pretty(&json!({ "schema_version": 1, "studies": all })));
    }
    let end = "raidlab compare NAME or raidlab replay NAME runs one; raidlab study new mine.toml --from NAME \
               begins yours\n";
    Ok(lines + "\n" + end)
}

/// A text in lines that fit a terminal.
fn wrapped(text: &str, lines: &mut String) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && INDENT + line.chars().count() + 1 + word.chars().count() > COLUMNS {
            *lines += &format!("{:INDENT$}{line}\n", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    *lines += &format!("{:INDENT$}{line}\n", "");
}

fn new(file: &Path, text: &str) -> Result<(), Failure> {
    // A file of that name would hide the study.
    if compiled_in(file).is_some() {
        let name = file.display();
        return Err(Failure::input(format!(
            "{name}: is the name of a built-in study: `raidlab study new mine.toml --from {name}` starts from that"
        )));
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
    let written = made.and_then(|mut made| made.write_all(text.as_bytes()));
    written.map_err(|error| {
        let place = file.display();
        match error.kind() {
            ErrorKind::AlreadyExists => {
                Failure::input(format!("{place}: is there already; name another file"))
            }
            _ => Failure::input(format!("{place}: cannot be written: {error}")),
        }
    })?;
    let place = file.display();
    output::print(&format!("written to {place}; raidlab compare {place} runs it\n"))
}

/// What is wrong with a study file, else how much it is.
fn check(file: &Path) -> Result<String, Failure> {
    let study = raidlab_study::load(file).map_err(Failure::input)?;
    let is_modelled =
        study.drives.iter().all(|group| matches!(group.source, DriveSource::Model(_)));
    let clock = if is_modelled {
        Modelled::of_drives(&study, HostCosts::default()).map_err(Failure::input)?;
        match (study.check_group_threads(), study.check_virtual_filesystem()) {
            (Err(_), _) => "; with --on kernel:6.12 only",
            (Ok(()), Err(_)) => "; with --on DIR or --on kernel:6.12 only",
            _ => "",
        }
    } else {
        Sizes::of(&study).map_err(Failure::input)?;
        "; with --on DIR only"
    };
    Ok(format!("{}: good: {}{clock}\n", file.display(), amount(&study)))
}

fn amount(study: &Study) -> String {
    let (layouts, workloads) = (study.layouts.len(), study.workloads.len());
    let rounds = match (study.rounds, study.max_rounds) {
        (1, 1) => "1 round".to_owned(),
        (least, most) if least == most => format!("{least} rounds"),
        (least, most) => format!("{least} to {most} rounds"),
    };
    let cells = cells(study).len();
    let journals = (0..study.drives.len()).map(|group| (group, study.journals_beyond(group)));
    let journals = journals.filter(|(_, layouts)| !layouts.is_empty()).map(|(group, layouts)| {
        let Drives { name, count, .. } = &study.drives[group];
        format!(
            "; one more drive than the {count} of `{name}` for the journal of {}",
            layouts.join(", ")
        )
    });
    let journals: String = journals.collect();
    format!("{layouts} layouts, {workloads} workloads, {cells} cells, {rounds}{journals}")
}
