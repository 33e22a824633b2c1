//! `raidlab show`: the report of a recorded run, or of a results document.

use std::path::Path;

use crate::compare::resume::{failure, results, store};
use crate::diff::load::load;
use crate::failure::Failure;
use crate::history::args::Show;
use crate::output::{self, note};

pub(crate) fn run(options: &Show) -> Result<(), Failure> {
    options.outputs.check(None, Some(Path::new(&options.run)))?;
    if Path::new(&options.run).exists() {
        return output::documents(&options.outputs, &load(&options.run, &options.store)?);
    }
    let store = store(&options.store)?;
    let id = store.find(&options.run).map_err(failure)?;
    let stored = store.read(&id).map_err(failure)?;
    if stored.torn_bytes > 0 {
        note(&format!(
            "note: the last line of {id} is not complete and does not count ({} bytes)",
            stored.torn_bytes
        ));
    }
    output::reports(&options.outputs, &results(&stored)?)
}
