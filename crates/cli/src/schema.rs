//! `raidlab schema`: what files may hold, for editors and checkers.

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::output;

/// Prints the JSON Schema of a kind of file
///
/// Draft 2020-12. Study and drive files are TOML: editors that know JSON Schema check them as they are typed.
/// What a schema cannot say, such as ranges that hang together, is checked by raidlab itself.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab schema study > study.json     for an editor\n  \
    raidlab schema results                what --json of compare and replay writes")]
pub(crate) struct Schema {
    /// Of what
    #[arg(value_enum)]
    of: FileKind,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FileKind {
    /// Study files, docs/study-files.md
    Study,
    /// Drive files, docs/drives.md
    Drive,
    /// Results documents, docs/results.md
    Results,
}

pub(crate) fn run(options: &Schema) -> Result<(), Failure> {
    output::print(match options.of {
        FileKind::Study => include_str!("../../../docs/schemas/study.json"),
        FileKind::Drive => include_str!("../../../docs/schemas/drive.json"),
        FileKind::Results => include_str!("../../../docs/schemas/results.json"),
    })
}
