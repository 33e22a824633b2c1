//! Pure crates: no clock, thread, file, environment, network or randomly seeded map outside tests.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::rust::{RustFile, Token};
use super::tree::Breach;

const RULE: &str = "pure";

const PURE: [&str; 16] = [
    "core", "parity", "metadata", "models", "sim", "checker", "workload", "study", "predict",
    "explore", "results", "report", "risk", "advise", "nbd", "what-if",
];

/// What a pure crate goes without, and the paths that lead there.
const FORBIDDEN: [(&str, &[&[&str]]); 6] = [
    (CLOCK, &[&["time", "Instant"], &["time", "SystemTime"]]),
    (THREADS, &[&["std", "thread"]]),
    (FILES, &[&["std", "fs"]]),
    ("the environment", &[&["std", "env"]]),
    ("the network", &[&["std", "net"]]),
    ("a randomly seeded map", MAPS),
];

const CLOCK: &str = "the clock";
const THREADS: &str = "threads";
const FILES: &str = "files";

const MAPS: &[&[&str]] = &[
    &["collections", "HashMap"],
    &["collections", "HashSet"],
    &["hash_map", "HashMap"],
    &["hash_set", "HashSet"],
    &["hash_map", "RandomState"],
    &["hash", "RandomState"],
];

/// Modules of which neither everything nor a renamed self is imported: it would hide the rest.
const OPENLY: [&str; 5] = ["std", "time", "collections", "hash_map", "hash_set"];

/// The exceptions: one place each where files are read or work is spread over threads.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("crates/models/src/file.rs", FILES),
    ("crates/study/src/parallel.rs", THREADS),
    ("crates/study/src/parse/mod.rs", FILES),
];

/// Where a path is used.
struct Use {
    segments: Vec<String>,
    line: usize,
}

/// The pure crate whose source a file belongs to.
pub(crate) fn pure_crate(path: &str) -> Option<&'static str> {
    let (name, _) = path.strip_prefix("crates/")?.split_once("/src/")?;
    PURE.into_iter().find(|pure| *pure == name)
}

/// Checks a file; `used` gathers over all files where the exceptions were used.
pub(crate) fn check(file: &RustFile<'_>, used: &mut Exceptions) -> Vec<Breach> {
    let Some(name) = pure_crate(file.path) else { return Vec::new() };
    let mut uses = Imports::default();
    uses.visit_file(&file.syntax);
    let Imports { mut paths, mut breaches } = uses;
    paths.extend(paths_in(&file.tokens));
    breaches.retain(|(line, _)| !file.is_test(*line));
    let mut found: Vec<Breach> = breaches
        .into_iter()
        .map(|(line, message)| Breach::new(file.path, line, RULE, message))
        .collect();
    // An import is found both as such and among the tokens.
    let once: BTreeSet<(usize, &str)> = paths
        .iter()
        .filter(|path| !file.is_test(path.line))
        .filter_map(|path| Some((path.line, leads_to(&path.segments)?)))
        .collect();
    for (line, what) in once {
        if EXCEPTIONS.contains(&(file.path, what)) {
            used.0.insert((file.path.to_owned(), what));
        } else {
            let message = format!("{name} is pure: not {what}");
            found.push(Breach::new(file.path, line, RULE, message));
        }
    }
    found
}

/// The exceptions that were used.
#[derive(Default)]
pub(crate) struct Exceptions(BTreeSet<(String, &'static str)>);

impl Exceptions {
    /// The exceptions that were not.
    pub(crate) fn unused(&self) -> Vec<Breach> {
        let unused =
            |(path, what): &(&str, &'static str)| !self.0.contains(&((*path).to_owned(), *what));
        let breach = |(path, what)| {
            let message = format!(
                "does not use {what}: take it out of EXCEPTIONS in xtask/src/tidy/purity.rs"
            );
            Breach::new(path, 1, RULE, message)
        };
        EXCEPTIONS.into_iter().filter(unused).map(breach).collect()
    }
}

fn leads_to(segments: &[String]) -> Option<&'static str> {
    let through = |path: &&[&str]| segments.windows(path.len()).any(|window| window == *path);
    FORBIDDEN.into_iter().find(|(_, paths)| paths.iter().any(through)).map(|row| row.0)
}

/// Every `a::b::c` among the tokens, also in the bodies of macros.
fn paths_in(tokens: &[Token]) -> Vec<Use> {
    let mut paths: Vec<Use> = Vec::new();
    let mut joined = false;
    for token in tokens {
        let is_name = token.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        match paths.last_mut() {
            Some(path) if joined && is_name => path.segments.push(token.text.clone()),
            _ if is_name => {
                paths.push(Use { segments: vec![token.text.clone()], line: token.line });
            }
            _ => {}
        }
        joined = token.text == "::";
    }
    paths
}

/// The imports of a file, each written out in full.
#[derive(Default)]
struct Imports {
    paths: Vec<Use>,
    breaches: Vec<(usize, String)>,
}

impl Imports {
    fn walk(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| {
            let mut segments = before.to_vec();
            segments.push(name.to_string());
            segments
        };
        match tree {
            syn::UseTree::Path(path) => self.walk(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.walk(tree, before))
            }
            syn::UseTree::Name(name) => {
                let line = name.ident.span().start().line;
                self.paths.push(Use { segments: with(&name.ident), line });
            }
            syn::UseTree::Rename(rename) => {
                let line = rename.ident.span().start().line;
                let segments = with(&rename.ident);
                let own = segments.iter().rev().find(|segment| *segment != "self");
                self.hides(own, line, "rename");
                self.paths.push(Use { segments, line });
            }
            syn::UseTree::Glob(glob) => {
                let line = glob.star_token.spans[0].start().line;
                self.hides(before.last(), line, "import everything from");
            }
        }
    }

    fn hides(&mut self, module: Option<&String>, line: usize, how: &str) {
        if let Some(module) = module.filter(|module| OPENLY.contains(&module.as_str())) {
            self.breaches.push((line, format!("do not {how} `{module}`: name what is used")));
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.walk(&item.tree, &[]);
        visit::visit_item_use(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust::lines_of;
    use super::*;

    fn lines_in(path: &str, text: &str) -> Vec<usize> {
        let mut lines = lines_of(|file| check(file, &mut Exceptions::default()), path, text);
        lines.dedup();
        lines
    }

    #[test]
    fn every_way_to_the_world_is_a_breach() {
        let bad = [
            "use std::time::Instant;",
            "use std::time::{Duration, SystemTime};",
            "use std::{fmt, thread};",
            "fn f() { std::fs::read(\"a\").ok(); }",
            "fn f() { assert!(std::env::args().count() > 0); }",
            "use std::net::TcpStream;",
            "use std::collections::{BTreeMap, HashMap as Map};",
            "use std::collections::HashSet;",
            "use std::collections::hash_map::HashMap;",
            "use std::collections::hash_map::RandomState;",
            "use std::collections;\nfn f() -> collections::HashMap<u8, u8> { todo() }",
            "use std::collections::*;",
            "use std::time as clock;",
            "use std::time::{self as clock};",
            "use std as s;",
        ];
        for text in bad {
            assert_eq!(lines_in("crates/core/src/a.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_pure_or_elsewhere_is_no_breach() {
        let good = "//! std::fs\nuse std::collections::BTreeMap;\nuse std::time::Duration;\n\
                    #[cfg(test)]\nmod tests { use std::fs; use std::collections::*; }\n";
        assert_eq!(lines_in("crates/core/src/a.rs", good), [0; 0]);
        let bad = "use std::fs;\n";
        assert_eq!(lines_in("crates/core/tests/a.rs", bad), [0; 0]);
        assert_eq!(lines_in("crates/engine/src/a.rs", bad), [0; 0]);
        assert_eq!(lines_in("crates/core/src/a.rs", bad), [1]);
    }

    #[test]
    fn an_exception_covers_its_file_and_is_needed() {
        let (path, what) = EXCEPTIONS[0];
        assert_eq!(what, FILES);
        assert_eq!(lines_in(path, "use std::fs;\nuse std::thread;\n"), [2]);
        assert_eq!(lines_in("crates/models/src/other.rs", "use std::fs;\n"), [1]);
        let mut used = Exceptions::default();
        let file = RustFile::parse(path, "use std::fs;\n").expect("parses");
        check(&file, &mut used);
        let unused: Vec<String> = used.unused().into_iter().map(|breach| breach.path).collect();
        assert_eq!(unused, [EXCEPTIONS[1].0, EXCEPTIONS[2].0]);
    }
}
