//! `raidlab array`: arrays of Linux md, by what stands on their members, read, made and run.

mod add_journal;
pub(crate) mod args;
mod create;
mod create_nested;
mod ddf;
mod disk;
mod dump;
mod examine;
mod examine_v0;
mod export;
mod geom;
pub(crate) mod keep;
mod lvm;
mod open;
mod overlay;
pub(crate) mod running;
mod scan;
mod signature;
mod stack;
mod status;
mod synced;
mod targets;

use std::path::PathBuf;

use raidlab_engine::Engine;

use crate::failure::Failure;
use args::{Array, ArrayCommand, Members};

pub(crate) fn run(options: &Array) -> Result<(), Failure> {
    match &options.command {
        ArrayCommand::Examine(options) => examine::run(options),
        ArrayCommand::Status(options) => status::run(options),
        ArrayCommand::Assemble(options) => running::assemble(options),
        ArrayCommand::Stop(options) => running::client::stop(options),
        ArrayCommand::Fail(options) => running::client::fail(options),
        ArrayCommand::Remove(options) => running::client::remove(options),
        ArrayCommand::Add(options) => match &options.journal {
            Some(log) => add_journal::run(options, log),
            None => running::client::add(options),
        },
        ArrayCommand::Replace(options) => running::client::replace(options),
        ArrayCommand::Check(options) => running::client::check(options),
        ArrayCommand::Repair(options) => running::client::repair(options),
        ArrayCommand::ExportFile(options) => export::run(options),
        ArrayCommand::Create(options) => create::run(options),
        ArrayCommand::DumpMetadata(options) => dump::dump(options),
        ArrayCommand::RestoreMetadata(options) => dump::restore(options),
    }
}

/// The array on some members, for reading; with its name and layout, and what is not in service.
pub(crate) fn open_members(members: &[PathBuf]) -> Result<(Engine, String, Vec<String>), Failure> {
    if members.is_empty() {
        return Err(Failure::input("no members were named"));
    }
    let found = open::Found::new(&Members::plain(members.to_vec()))?;
    let engine = found.held_engine()?;
    let assembly = found.assembly()?;
    let title = format!("{} ({})", assembly.name, assembly.layout);
    let missing = assembly.missing().into_iter().map(|place| format!("member {place} is missing"));
    let without = assembly.out.iter().map(|out| found.told(out)).chain(missing);
    let without = without.chain(found.beside.iter().cloned()).collect();
    Ok((engine, title, without))
}
