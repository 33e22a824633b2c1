//! `raidlab array`: arrays of Linux md, by what stands on their members, read, made and run.

pub(crate) mod args;
mod create;
mod disk;
mod dump;
mod examine;
mod export;
mod open;
mod overlay;
pub(crate) mod running;
mod scan;
mod status;

use crate::failure::Failure;
use args::{Array, ArrayCommand};

pub(crate) fn run(options: &Array) -> Result<(), Failure> {
    match &options.command {
        ArrayCommand::Examine(options) => examine::run(options),
        ArrayCommand::Status(options) => status::run(options),
        ArrayCommand::Assemble(options) => running::assemble(options),
        ArrayCommand::Stop(options) => running::client::stop(options),
        ArrayCommand::Fail(options) => running::client::fail(options),
        ArrayCommand::Remove(options) => running::client::remove(options),
        ArrayCommand::Add(options) => running::client::add(options),
        ArrayCommand::Replace(options) => running::client::replace(options),
        ArrayCommand::Check(options) => running::client::check(options),
        ArrayCommand::Repair(options) => running::client::repair(options),
        ArrayCommand::ExportFile(options) => export::run(options),
        ArrayCommand::Create(options) => create::run(options),
        ArrayCommand::DumpMetadata(options) => dump::dump(options),
        ArrayCommand::RestoreMetadata(options) => dump::restore(options),
    }
}
