//! Finding the results that a name stands for.

use raidlab_results::Results;

use crate::failure::Failure;

/// The documents that a name stands for: the path of what `--json` wrote.
pub(super) fn load(name: &str) -> Result<Vec<Results>, Failure> {
    let text = std::fs::read_to_string(name)
        .map_err(|error| Failure::input(format!("{name}: {error}; name a file of --json")))?;
    let documents = Results::all_from_json(&text)
        .map_err(|error| Failure::input(format!("{name}: {error}")))?;
    if documents.iter().all(|one| one.cells.is_empty()) {
        return Err(Failure::input(format!("{name}: no cell was measured")));
    }
    Ok(documents)
}
