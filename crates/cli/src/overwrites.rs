//! What no report takes the place of: what the command reads, and what people write by hand.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Studies, drives and job files end in these: people write them, and no report is one.
const BY_HAND: [&str; 2] = ["toml", "fio"];

/// Where a path leads, so that `mine.toml`, `./mine.toml` and a link to it are one file, there or not yet.
pub(crate) fn place(path: &Path) -> PathBuf {
    let not_there = || {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(not_there).unwrap_or_else(|| path.to_path_buf())
}

/// Why a report must not be written to `path`, if so. `--json` takes a file or none, so that of `--json mine.toml`
/// nobody can tell whether the study is meant to be read.
pub(crate) fn refusal(flag: &str, path: &Path, inputs: &[Option<&Path>]) -> Option<String> {
    let to = place(path);
    let named = path.display();
    let is_this = |input: &&&Path| input.exists() && place(input) == to;
    if let Some(input) = inputs.iter().flatten().find(is_this) {
        let input = input.display();
        return Some(format!(
            "{flag} {named}: would overwrite {input}, which is read; name another file"
        ));
    }
    let is_by_hand =
        |path: &Path| path.extension().is_some_and(|end| BY_HAND.iter().any(|one| end == *one));
    if is_by_hand(path) || is_by_hand(&to) {
        return Some(format!(
            "{flag} {named}: no report is such a file, and a study would be overwritten; name another file, or \
             print by `{flag} -`"
        ));
    }
    (flag == "--json" && is_no_json(&to)).then(|| {
        format!(
            "{flag} {named}: is there and is no JSON document: nothing is overwritten; name another file, or print \
             by `{flag} -`"
        )
    })
}

/// Whether there is a file with contents that no `--json` wrote, and with another name than such files have. What
/// cannot be read is left to the writing to tell.
fn is_no_json(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|end| end == "json");
    if is_named_so || !fs::metadata(path).is_ok_and(|there| there.is_file()) {
        return false;
    }
    let text = fs::read(path).unwrap_or_default();
    !text.is_empty() && serde_json::from_slice::<Value>(&text).is_err()
}
