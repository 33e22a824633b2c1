//! The rules of the repository that no compiler checks.

use std::io;
use std::path::Path;

mod arithmetic;
mod arrows;
mod dependencies;
mod documents;
mod front_pages;
mod metadata;
mod names;
mod parts;
mod programs;
mod purity;
mod rust;
mod sizes;
mod text;
mod toolchain;
mod tree;
mod unsafety;
mod words;

pub(crate) use tree::Breach;
use tree::Tree;

/// All breaches in the repository at `root`, in order of path and line.
pub(crate) fn run(root: &Path) -> io::Result<Vec<Breach>> {
    let tree = Tree::read(root)?;
    let mut breaches = check(&tree);
    match dependencies::Lists::read(&tree) {
        Ok(lists) => {
            let metadata = crate::metadata(root, &lists.metadata())?;
            breaches.extend(lists.check(&metadata, &tree));
        }
        Err(breach) => breaches.push(breach),
    }
    breaches.sort();
    Ok(breaches)
}

fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = arrows::check(tree);
    breaches.extend(parts::check(tree));
    breaches.extend(programs::check(tree));
    breaches.extend(text::check(tree));
    breaches.extend(toolchain::check(tree));
    breaches.extend(documents::check(tree));
    breaches.extend(names::check(tree));
    breaches.extend(front_pages::check(tree));
    let mut files = Vec::new();
    for (path, text) in tree.rust() {
        match rust::RustFile::parse(path, text) {
            Ok(file) => files.push(file),
            Err((line, error)) => breaches.push(Breach::new(path, line, "syntax", error)),
        }
    }
    let test_modules: Vec<String> =
        files.iter().flat_map(|file| file.test_modules().iter().cloned()).collect();
    let mut exceptions = purity::Exceptions::default();
    let mut long = sizes::TooLong::default();
    for file in &files {
        if !rust::is_below(file.path, &test_modules) {
            breaches.extend(purity::check(file, &mut exceptions));
            breaches.extend(arithmetic::check(file));
        }
        breaches.extend(metadata::check(file));
        breaches.extend(unsafety::check(file));
        breaches.extend(words::check(file));
        long.measure(file);
    }
    breaches.extend(exceptions.unused());
    breaches.extend(long.breaches(tree));
    breaches.sort();
    breaches.dedup();
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One breach of each rule; that they are all reported shows that no rule was left out.
    #[test]
    fn every_rule_is_applied() {
        let long = format!("//{}\n{}", "-".repeat(120), "//\n".repeat(800));
        let function = format!("fn f() {{{}}}\n", "\n".repeat(70));
        let home = concat!("see /ho", "me/a\n");
        let tree = Tree::of(&[
            (".ci/run", "true\n"),
            ("ARCHITECTURE.md", "**I1.** A `crates/none`.\n"),
            ("a.md", "a \nb"),
            ("b.md", home),
            ("crates/core/Cargo.toml", "[dependencies]\nlibc = \"0.2\"\n"),
            ("crates/sim/Cargo.toml", "autotests = false\n[lints]\nworkspace = true\n"),
            ("crates/sim/tests/a.rs", ""),
            ("crates/core/src/a.rs", "use std::fs;\nfn f() -> f64 { 2f64.powi(3) }\n"),
            ("crates/core/src/lib.rs", "//!\ta\n"),
            ("crates/core/src/long.rs", &long),
            ("crates/core/src/function.rs", &function),
            ("crates/core/src/wrong.rs", "fn\n"),
            ("crates/targets/src/rundir.rs", "fn f() { unsafe { g() } }\n"),
            ("crates/engine/src/metadata.rs", "fn f() { found.superblock; }\n"),
            ("crates/engine/src/words.rs", "#[ignore]\nfn f() { todo!() }\n"),
            ("xtask/exceptions.txt", "line-length a.rs 130\n"),
        ]);
        let mut rules: Vec<&str> = check(&tree).iter().map(|breach| breach.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        let expected = [
            "arithmetic",
            "arrows",
            "changelog",
            "commands",
            "exceptions",
            "fault-model",
            "file-length",
            "forbid-unsafe",
            "front-page",
            "function-length",
            "ignored-test",
            "invariants",
            "last-line",
            "line-length",
            "machine-path",
            "metadata",
            "names",
            "pure",
            "safety-comment",
            "syntax",
            "tab",
            "test-programs",
            "toolchain",
            "trailing-space",
            "unfinished",
        ];
        assert_eq!(rules, expected);
    }

    #[test]
    fn files_of_test_modules_are_test_code() {
        let tree = |attribute: &str| {
            let lib = format!("#![forbid(unsafe_code)]\n{attribute}mod tests;\n");
            let tree = Tree::of(&[
                ("crates/core/src/lib.rs", &lib),
                ("crates/core/src/tests.rs", "use std::fs;\n"),
            ]);
            let of_tests = |breach: &Breach| breach.path.ends_with("tests.rs");
            check(&tree).iter().filter(|breach| of_tests(breach)).count()
        };
        assert_eq!(tree(""), 1);
        assert_eq!(tree("#[cfg(test)]\n"), 0);
    }

    #[test]
    fn a_breach_is_printed_with_its_place() {
        let breach = Breach::new("a.rs", 3, "tab", "use spaces");
        assert_eq!(breach.to_string(), "a.rs:3: tab: use spaces");
    }
}
