//! `raidlab show`: the report of a recorded run.

use crate::compare::resume::{failure, results, store};
use crate::failure::Failure;
use crate::history::args::Show;
use crate::output::{self, Wanted, note};

pub(crate) fn run(options: &Show) -> Result<(), Failure> {
    let wanted = Wanted {
        json: options.json.as_deref(),
        html: options.html.as_deref(),
        exports: &options.exports,
        quiet: options.quiet,
        color: options.color,
    };
    wanted.check()?;
    let store = store(&options.store)?;
    let id = store.find(&options.run).map_err(failure)?;
    let stored = store.read(&id).map_err(failure)?;
    if stored.torn_bytes > 0 {
        note(&format!(
            "note: the last line of {id} is not complete and does not count ({} bytes)",
            stored.torn_bytes
        ));
    }
    output::reports(wanted, &results(&stored)?)
}
