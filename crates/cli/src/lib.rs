//! raidlab: which RAID level, layout, chunk and number of drives suit your work?
//!
//! Exit status: 0 done, 1 failed (also when wrong bytes were found), 2 usage or input that cannot
//! be, 3 refused because it might destroy something, 4 what was compared got worse, 130 interrupted.
//!
//! The program is [`run`]; [`in_process`] is for programs that have raidlab within themselves, as the Python package
//! in `python/` has.
#![forbid(unsafe_code)]

mod advise;
mod args;
mod array;
mod calibrate;
mod check;
mod compare;
mod consent;
mod convert;
mod diff;
mod doctor;
mod drive;
mod exports;
mod failure;
mod history;
pub mod in_process;
mod interrupt;
mod json;
mod layout;
mod output;
mod overwrites;
mod parallel;
mod plot;
mod progress;
mod replay;
mod risk;
mod run;
mod schema;
mod shell;
mod study;
mod sweep;
mod throttle;
mod tune;

use std::process::ExitCode;

use clap::Parser;

#[doc(hidden)]
pub use args::Arguments;
use failure::Failure;
#[doc(hidden)]
pub use shell::{markdown as help_of_all, pages as help_pages};

/// Does what the command line of this process says.
pub fn run() -> ExitCode {
    match carry_out(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn carry_out(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        args::Command::Compare(options) => compare::run(options),
        args::Command::History(options) => history::list(options),
        args::Command::Show(options) => history::show::run(options),
        args::Command::Rm(options) => history::remove::run(options),
        args::Command::Layout(options) => layout::run(options),
        args::Command::Array(options) => array::run(options),
        args::Command::Plot(options) => plot::run(options),
        args::Command::Run(options) => run::run(options),
        args::Command::Check(options) => check::run(options),
        args::Command::Diff(options) => diff::run(options),
        args::Command::Drive(options) => drive::run(options),
        args::Command::Tune(options) => tune::run(options),
        args::Command::Calibrate(options) => calibrate::run(options),
        args::Command::Replay(options) => replay::run(options),
        args::Command::Risk(options) => risk::run(options),
        args::Command::Advise(options) => advise::run(options),
        args::Command::Sweep(options) => sweep::run(options),
        args::Command::Merge(options) => sweep::merge(options),
        args::Command::Throttle(options) => throttle::run(options),
        args::Command::Study(options) => study::run(options),
        args::Command::Schema(options) => schema::run(options),
        args::Command::Convert(options) => convert::run(options),
        args::Command::Doctor(options) => doctor::run(options),
        args::Command::Completions(options) => shell::completions(options),
        args::Command::Man(options) => shell::man_pages(options),
    }
}
