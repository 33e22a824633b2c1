//! `raidlab drive`: which drives can be modelled, what a model amounts to, how near it comes to a
//! measured drive.

mod list;
mod plot;
mod show;
mod validate;

use std::path::PathBuf;

use raidlab_models::{DriveKind, DriveSpec, Status, load};

use crate::args::{Drive, DriveCommand};
use crate::failure::Failure;

/// Where the traces of measured drives lie, when the environment does not say.
const TRACES: &str = "../shared/traces";

pub(crate) fn run(options: &Drive) -> Result<(), Failure> {
    match &options.command {
        DriveCommand::List(options) => list::run(options),
        DriveCommand::Show(options) => show::run(options),
        DriveCommand::Validate(options) => validate::run(options),
    }
}

/// The directory of measured traces: `RAIDLAB_TRACES`, or [`TRACES`].
fn traces() -> PathBuf {
    let named = std::env::var_os("RAIDLAB_TRACES").filter(|name| !name.is_empty());
    named.map_or_else(|| PathBuf::from(TRACES), PathBuf::from)
}

fn load_drive(name: &str) -> Result<DriveSpec, Failure> {
    load(name).map_err(Failure::input)
}

/// The kind as drive files name it.
fn kind_name(kind: &DriveKind) -> &'static str {
    match kind {
        DriveKind::HardDisk(_) => "hard-disk",
        DriveKind::Ssd(_) => "ssd",
        DriveKind::Smr(_) => "shingled-disk",
    }
}

/// How many figures are known in which way.
fn counts(drive: &DriveSpec) -> [(Status, usize); 3] {
    [Status::DataSheet, Status::Measured, Status::Estimate].map(|status| {
        let count = drive.figures.iter().filter(|figure| figure.status == status).count();
        (status, count)
    })
}
