//! The parts of an array in the core: each uses only those below it, and none but the highest knows the array.

use super::tree::{Breach, Tree};

const RULE: &str = "parts";
const ROOT: &str = "crates/core/src/array/";

/// The files and folders, from the lowest up.
const PARTS: [&str; 23] = [
    "slab",
    "lists",
    "locks",
    "timers",
    "bad_blocks",
    "settings",
    "member_set",
    "roles",
    "config",
    "starved",
    "setup",
    "member",
    "ios",
    "jobs",
    "runs",
    "room",
    "metadata_updates",
    "requests",
    "stripe",
    "write_intent",
    "log",
    "background",
    "planner",
];

/// Checks the imports of each part.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in &tree.files {
        let Some(relative) = path.strip_prefix(ROOT).and_then(|path| path.strip_suffix(".rs"))
        else {
            continue;
        };
        let modules: Vec<&str> = relative.split('/').filter(|module| *module != "mod").collect();
        if modules.last().is_none_or(|last| *last == "tests") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if line.starts_with("mod tests") || line.starts_with("pub(super) mod tests") {
                break;
            }
            if let Some(message) = judge(&modules, line) {
                breaches.push(Breach::new(path, index + 1, RULE, message));
            }
        }
    }
    breaches
}

/// What is wrong with a line of the module of this path.
fn judge(modules: &[&str], line: &str) -> Option<String> {
    let line = line.split("//").next().unwrap_or_default();
    let own = modules[0];
    let Some(floor) = PARTS.iter().position(|part| *part == own) else {
        return Some(format!("the table of parts in xtask does not know {own}: add its row"));
    };
    for used in used_in(modules.len(), line) {
        let below = PARTS.iter().position(|part| *part == used);
        if used != own && below.is_none_or(|below| below > floor) {
            return Some(match below {
                Some(_) => format!("{own} may not use {used}, which stands above it"),
                None => format!("{own} may not use `{used}` of array: name a part, a `use` each"),
            });
        }
    }
    None
}

/// The parts that a line of a module so deep names.
fn used_in(depth: usize, line: &str) -> Vec<&str> {
    let mut used = Vec::new();
    let up = "super::".repeat(depth);
    for start in ["crate::array::", &up] {
        for (at, _) in line.match_indices(start) {
            // A path that goes up further begins before; one that is part of another is no path.
            if line[..at].ends_with("super::") || line[..at].ends_with("in ") {
                continue;
            }
            let rest = &line[at + start.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            match end {
                Some(0) if rest.starts_with(')') => {}
                Some(0) => used.push("{"),
                end => used.push(&rest[..end.unwrap_or(rest.len())]),
            }
        }
    }
    used.retain(|name| *name != "super");
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breach(module: &str, line: &str) -> Option<String> {
        judge(&module.split('/').collect::<Vec<_>>(), line)
    }

    #[test]
    fn parts_use_what_is_below_them() {
        assert_eq!(breach("log/partial", "use crate::array::stripe::Band;"), None);
        assert_eq!(breach("log", "use super::stripe::Plan;"), None);
        assert_eq!(breach("log/partial", "use super::{Logged, Stage};"), None, "its own");
        assert_eq!(breach("requests/gather", "use super::super::lists::NIL;"), None);
        assert_eq!(breach("planner", "use super::background::Background;"), None);
        let above = Some("stripe may not use log, which stands above it".to_owned());
        assert_eq!(breach("stripe", "use super::log::Log;"), above);
        assert_eq!(breach("stripe/cache", "use super::super::log::Log;"), above);
        assert_eq!(breach("stripe/cache", "fn go(log: &crate::array::log::Log) {"), above);
        assert_eq!(breach("stripe", "// super::log::Log"), None);
    }

    #[test]
    fn none_but_the_highest_knows_the_array() {
        for line in ["use super::Array;", "use super::{Array, lists};", "use crate::array::Array;"]
        {
            assert!(breach("room", line).is_some(), "{line}");
        }
        assert!(breach("write_intent/bitmap", "use crate::array::planner::Array;").is_some());
        assert!(breach("planner/stripe/copy", "use super::super::Array;").is_none(), "its own");
    }

    #[test]
    fn visibility_is_no_import() {
        assert_eq!(breach("log/replay", "pub(in crate::array) fn go() {}"), None);
        assert_eq!(breach("log", "pub(super) fn go() {}"), None);
    }

    #[test]
    fn a_new_part_needs_a_row() {
        assert!(breach("nested", "").is_some());
    }
}
