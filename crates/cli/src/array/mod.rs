//! `raidlab array`: arrays of Linux md, by what stands on their members.

pub(crate) mod args;
mod create;
mod disk;
mod dump;
mod examine;
mod export;
mod open;
mod scan;
mod status;

use crate::failure::Failure;
use args::{Array, ArrayCommand};

pub(crate) fn run(options: &Array) -> Result<(), Failure> {
    match &options.command {
        ArrayCommand::Examine(options) => examine::run(options),
        ArrayCommand::Status(options) => status::run(options),
        ArrayCommand::ExportFile(options) => export::run(options),
        ArrayCommand::Create(options) => create::run(options),
        ArrayCommand::DumpMetadata(options) => dump::dump(options),
        ArrayCommand::RestoreMetadata(options) => dump::restore(options),
    }
}
