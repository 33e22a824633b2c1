//! `raidlab convert`: results documents of earlier schema versions.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;
use crate::output;

/// Makes a results document of an earlier schema version one of today's
///
/// Figures stay as they are. Of version 1 (before November 2026) differences and verdicts are computed anew
/// from its samples, by the rule of today, and a warning in the document says so.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab convert old.json --out new.json     then raidlab show new.json, raidlab diff new.json ...\n  \
    raidlab convert old.json > new.json\n\n\
    Exit status: 0 done, 1 failed, 2 the file is no such document, or a newer raidlab made it.")]
pub(crate) struct Convert {
    /// What --json of `raidlab compare` or `raidlab replay` wrote
    file: PathBuf,
    /// Write it to this file [default: print it]
    #[arg(long, value_name = "FILE", default_value = output::STDOUT, hide_default_value = true)]
    out: PathBuf,
}

pub(crate) fn run(options: &Convert) -> Result<(), Failure> {
    output::check_places(&[("--out", Some(&options.out))])?;
    let name = options.file.display();
    let text = std::fs::read_to_string(&options.file)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    let converted = raidlab_results::upgrade(&text)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    output::write(&options.out, &converted)
}
