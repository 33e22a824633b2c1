//! What members say of an array is judged in one place: what stands in superblocks is not looked at by the crates
//! that carry arrays out. They hand what was found to the core's function, as it was found.

use super::rust::{RustFile, Token};
use super::tree::Breach;

const RULE: &str = "metadata";

/// The crates that have members, outside tests.
const CARRIERS: [&str; 4] = ["engine", "targets", "measure", "cli"];

/// Fields that lead to what was found, or are it.
const FIELDS: [&str; 12] = [
    "superblock",
    "bitmap",
    "failed",
    "clean",
    "by_bitmap",
    "rebuilt_to",
    "synced_to",
    "journal_tail",
    "bitmap_since",
    "history",
    "left",
    "torn",
];

/// What prints superblocks of md as mdadm does; which of them count is judged by `raidlab_metadata::md::assemble`.
const PRINTS: &str = "crates/cli/src/array/";

/// Types that only one who judges has a use for.
const TYPES: [&str; 3] = ["Carried", "Finding", "LogFound"];

/// Types that are handed on whole.
const WHOLE: [&str; 2] = ["Superblock", "Examined"];

/// Checks a file.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Breach> {
    let name = file.path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
    let prints = file.path.starts_with(PRINTS);
    if prints || !name.is_some_and(|(name, _)| CARRIERS.contains(&name)) {
        return Vec::new();
    }
    let text = |at: usize| file.tokens.get(at).map_or("", |token| token.text.as_str());
    let looks = |at: usize, token: &Token| {
        let before = at.checked_sub(1).map_or("", text);
        let is_field = before == "." && text(at + 1) != "(" && FIELDS.contains(&&*token.text);
        let is_taken_apart = WHOLE.contains(&&*token.text) && text(at + 1) == "{";
        // What the core tells a new array to write may not be asked either.
        let is_asked = token.text == "superblock" && text(at + 1) == "(" && text(at + 3) == ".";
        is_field || is_taken_apart || is_asked || TYPES.contains(&&*token.text)
    };
    let found = file.tokens.iter().enumerate().filter(|(at, token)| looks(*at, token));
    let found = found.map(|(_, token)| token).filter(|token| !file.is_test(token.line));
    let breach = |token: &Token| {
        let message = format!(
            "`{}` of what stands on members is judged by the core's one function, not here",
            token.text
        );
        Breach::new(file.path, token.line, RULE, message)
    };
    found.map(breach).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rust::lines_of;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        lines_of(check, path, text)
    }

    #[test]
    fn looking_into_superblocks_is_a_breach_where_arrays_are_carried_out() {
        let text = "fn f(found: &Examined, said: &Said) -> bool {\n\
                    found.superblock == found.other &&\n\
                    said.clean\n\
                    || matches!(found, Examined { .. })\n\
                    || matches!(x, Finding::Blank)\n\
                    || array.superblock().events > 3\n\
                    }\n";
        assert_eq!(lines("crates/cli/src/array/a.rs", text), [0; 0]);
        for name in CARRIERS {
            assert_eq!(lines(&format!("crates/{name}/src/a.rs"), text), [2, 3, 4, 5, 6]);
        }
        for path in ["crates/core/src/a.rs", "crates/metadata/src/a.rs", "crates/engine/tests/a.rs"]
        {
            assert_eq!(lines(path, text), [0; 0]);
        }
        let good = "fn f(found: Examined) {\n\
                    judge(&found, array.superblock());\n\
                    let superblock = Superblock::default();\n\
                    self.clean();\n\
                    }\n\
                    #[cfg(test)]\n\
                    mod tests { fn g() { found.superblock; } }\n";
        assert_eq!(lines("crates/engine/src/a.rs", good), [0; 0]);
    }
}
