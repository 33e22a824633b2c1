//! Finding the results that a name stands for.

use std::path::Path;

use raidlab_results::Results;

use crate::args::StoreDirectory;
use crate::compare::resume;
use crate::failure::Failure;

/// The documents that a name stands for: the path of what `--json` wrote, else a recorded run.
pub(crate) fn load(name: &str, directory: &StoreDirectory) -> Result<Vec<Results>, Failure> {
    let documents = if Path::new(name).exists() {
        let text = std::fs::read_to_string(name)
            .map_err(|error| Failure::input(format!("{name}: {error}")))?;
        Results::all_from_json(&text).map_err(|error| Failure::input(format!("{name}: {error}")))?
    } else {
        vec![recorded(name, directory)?]
    };
    if documents.iter().all(|one| one.cells.is_empty()) {
        return Err(Failure::input(format!("{name}: no cell was measured")));
    }
    Ok(documents)
}

/// The results of a recorded run.
fn recorded(name: &str, directory: &StoreDirectory) -> Result<Results, Failure> {
    let no_file = |what: &str| {
        Failure::input(format!("{name}: no file of --json, and no recorded run: {what}"))
    };
    let store = resume::store(directory).map_err(|error| no_file(error.what()))?;
    let id = store.find(name).map_err(|error| no_file(&error.to_string()))?;
    resume::results(&store.read(&id).map_err(resume::failure)?)
}
