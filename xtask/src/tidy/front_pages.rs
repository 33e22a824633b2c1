//! Front pages: each library that others may use begins with what it is for and an example that is run.

use super::tree::{Breach, Tree};

const RULE: &str = "front-page";

/// Crates that are programs of this repository, and no libraries for others.
const PROGRAMS: [&str; 3] = ["cli", "fuzz", "hot-paths"];

/// Checks the root of each library.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let files = tree.files.iter().filter(|(path, _)| is_library(path));
    let without = files.filter(|(_, text)| !has_example(text));
    let breach = |(path, _): (&String, &String)| {
        let message =
            "no example on the front page: a newcomer copies one, and `cargo test --doc` runs it";
        Breach::new(path, 1, RULE, message)
    };
    without.map(breach).collect()
}

fn is_library(path: &str) -> bool {
    let name = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/src/lib.rs"));
    name.is_some_and(|name| !PROGRAMS.contains(&name))
}

/// Whether the comment at the head of a file has a block of code that is compiled and run: one without a word such as
/// `text` or `no_run` behind its first fence.
fn has_example(text: &str) -> bool {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let mut fences = head.map(str::trim).filter(|line| line.starts_with("```")).step_by(2);
    fences.any(|fence| fence == "```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_an_example_that_is_run() {
        let breaches = |path: &str, text: &str| check(&Tree::of(&[(path, text)])).len();
        let library = "crates/core/src/lib.rs";
        assert_eq!(breaches(library, "//! What.\n//!\n//! ```\n//! f();\n//! ```\n"), 0);
        assert_eq!(
            breaches(library, "//! ```text\n//! a\n//! ```\n//! ```\n//! f();\n//! ```\n"),
            0
        );
        for without in [
            "//! What.\n",
            "//! ```text\n//! f();\n//! ```\n",
            "//! ```no_run\n//! f();\n//! ```\n",
            "//! What.\nuse a::b;\n//! ```\n//! f();\n//! ```\n",
        ] {
            assert_eq!(breaches(library, without), 1, "{without}");
            assert_eq!(breaches("crates/fuzz/src/lib.rs", without), 0);
            assert_eq!(breaches("crates/core/src/a/lib.rs", without), 0);
        }
    }
}
