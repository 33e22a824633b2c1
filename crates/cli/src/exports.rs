//! The files that results are written to: a flag for each form that there is.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use raidlab_report::{FORMS, Form};
use raidlab_results::Results;

use crate::failure::Failure;
use crate::output;

/// Files that are asked for, in the order of the forms.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports([Option<PathBuf>; FORMS.len()]);

impl Args for Exports {
    fn augment_args(command: Command) -> Command {
        FORMS.iter().fold(command, |command, form| {
            let arg = Arg::new(form.flag).long(form.flag).value_name("FILE").help(form.help);
            command.arg(arg.value_parser(value_parser!(PathBuf)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Exports {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut exports = Self::default();
        exports.update_from_arg_matches(matches)?;
        Ok(exports)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for (form, path) in FORMS.iter().zip(&mut self.0) {
            if let Some(given) = matches.get_one::<PathBuf>(form.flag) {
                *path = Some(given.clone());
            }
        }
        Ok(())
    }
}

impl Exports {
    /// The forms that are asked for, each with its file.
    fn given(&self) -> impl Iterator<Item = (&'static Form, &Path)> {
        FORMS.iter().zip(&self.0).filter_map(|(form, path)| Some((form, path.as_deref()?)))
    }

    /// The file of a form.
    pub(crate) fn path(&self, flag: &str) -> Option<&Path> {
        self.given().find(|(form, _)| form.flag == flag).map(|(_, path)| path)
    }

    /// Each flag with its file.
    pub(crate) fn paths(&self) -> Vec<(String, Option<&Path>)> {
        self.given().map(|(form, path)| (format!("--{}", form.flag), Some(path))).collect()
    }

    /// Whether something is printed that is not for people.
    pub(crate) fn prints(&self) -> bool {
        self.given().any(|(_, path)| path == Path::new(output::STDOUT))
    }

    /// Whether anything is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.given().next().is_none()
    }

    /// The same with every path made another.
    pub(crate) fn map(&self, change: impl Fn(&Path) -> PathBuf) -> Self {
        Self(self.0.each_ref().map(|path| path.as_deref().map(&change)))
    }

    /// Writes what is asked for; all of it even when one file cannot be written.
    pub(crate) fn write(&self, documents: &[Results]) -> Result<(), Failure> {
        self.write_but("", documents)
    }

    /// The same without one form.
    pub(crate) fn write_but(&self, flag: &str, documents: &[Results]) -> Result<(), Failure> {
        let mut written = Ok(());
        for (form, path) in self.given().filter(|(form, _)| form.flag != flag) {
            let bytes = form.exporter.write(documents).map_err(Failure::failed);
            written = written.and(bytes.and_then(|bytes| output::write(path, &bytes)));
        }
        written
    }
}
