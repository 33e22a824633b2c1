//! What the documents name is there: crates, files, tests and benches of cargo commands, tasks of
//! `cargo xtask`, and what links lead to. Commands of raidlab are parsed by a test of its command line.
//!
//! Blocks with commands are marked as `sh`, so that `cargo xtask docs` runs them.

use std::collections::BTreeSet;

use super::programs;
use super::tree::{Breach, Tree};
use crate::docs::block;
use crate::markdown::Document;

const RULE: &str = "names";

/// Directories of the repository, as documents name them.
const PLACES: [&str; 7] = ["crates/", "docs/", "studies/", "drives/", "xtask/", "tests/", ".ci/"];

/// Blocks that may stand there without being run, in all documents together.
const NOT_RUN: usize = 10;

/// Checks the README, ARCHITECTURE and everything in docs.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut not_run = 0;
    for (path, text) in &tree.files {
        if !block::is_document(path) {
            continue;
        }
        let document = Document::parse(text);
        let mut add = |line: usize, message: String| {
            breaches.push(Breach::new(path, line, RULE, message));
        };
        let blocks = document.blocks.iter().flat_map(|block| {
            block.lines.iter().enumerate().map(|(index, line)| (block.line + index, line.clone()))
        });
        for (line, code) in document.spans().into_iter().chain(blocks) {
            named(tree, &code).into_iter().for_each(|message| add(line, message));
        }
        for (line, target) in links(&document) {
            if !leads_somewhere(tree, path, &target) {
                add(line, format!("the link to `{target}` leads nowhere"));
            }
        }
        for block in &document.blocks {
            block::faults(block).into_iter().for_each(|(line, message)| add(line, message));
            not_run += usize::from(block::reason(block).is_some());
            if not_run > NOT_RUN && block::reason(block).is_some() {
                add(block.line, format!("more than {NOT_RUN} blocks are not run"));
            }
        }
        if path == "ARCHITECTURE.md" {
            table_of_crates(tree, text, &mut add);
        }
    }
    breaches
}

/// What a piece of code names that is not there.
fn named(tree: &Tree, code: &str) -> Vec<String> {
    let words: Vec<&str> = code
        .split(|c: char| c.is_whitespace() || "\"'`(),;".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let mut wrong = Vec::new();
    for word in &words {
        let word = word.trim_start_matches("../").trim_end_matches(['.', ':', '/']);
        let file = word.split("::").next().unwrap_or(word);
        if PLACES.iter().any(|place| file.starts_with(place)) && !is_place(tree, file) {
            wrong.push(format!("`{file}` is not there"));
        }
    }
    wrong.extend(first_of_path(tree, code));
    if let Some(at) = words.windows(2).position(|two| two == ["cargo", "xtask"]) {
        wrong.extend(task(crate::USAGE, &words[at + 2..]));
    } else if words.contains(&"cargo") || words.iter().all(|word| word.starts_with("raidlab-")) {
        wrong.extend(of_cargo(tree, &words));
    }
    wrong
}

/// Whether there is such a file or directory; a `*` stands for the rest.
fn is_place(tree: &Tree, place: &str) -> bool {
    let begin = place.split('*').next().unwrap_or(place);
    let whole = begin == place;
    tree.files.keys().any(|path| {
        path.strip_prefix(begin)
            .is_some_and(|rest| !whole || rest.is_empty() || rest.starts_with('/'))
    })
}

/// A path such as `engine::RawTarget` begins with a crate.
fn first_of_path(tree: &Tree, code: &str) -> Option<String> {
    let first = code.split("::").next().filter(|first| first.len() < code.len())?;
    let simple = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !first.chars().all(simple) || first == "std" || first == "xtask" {
        return None;
    }
    let name = first.strip_prefix("raidlab_").unwrap_or(first);
    (!is_crate(tree, name)).then(|| format!("`{first}` is no crate"))
}

fn is_crate(tree: &Tree, name: &str) -> bool {
    tree.get(&format!("crates/{name}/Cargo.toml")).is_some()
}

/// What is wrong with the words after `cargo xtask`, by the text that it prints of itself.
fn task(usage: &str, words: &[&str]) -> Option<String> {
    let (name, more) = words.split_first()?;
    let begins = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let is_it = |line: &&str| begins(line) && line.split_whitespace().next() == Some(name);
    let mut lines = usage.lines().skip_while(|line| !is_it(line));
    let Some(first) = lines.next() else { return Some(format!("`cargo xtask {name}` is no task")) };
    if first.contains("[ARG...]") {
        return None;
    }
    let rest = lines.take_while(|line| !begins(line));
    let text: Vec<&str> = [first].into_iter().chain(rest).collect();
    let text = text.join(" ");
    let known: BTreeSet<&str> =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
    let comment = more.iter().take_while(|word| !word.starts_with('#'));
    let mut flags = comment.filter(|word| word.starts_with("--"));
    let unknown = flags.find(|flag| !known.contains(flag.split('=').next().unwrap_or(flag)))?;
    Some(format!("`cargo xtask {name}` has no `{unknown}`"))
}

/// What packages, tests, benches and examples the arguments of cargo name that are not there.
fn of_cargo(tree: &Tree, words: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut below = "crates/".to_owned();
    for word in words {
        let Some(name) = word.strip_prefix("raidlab-") else { continue };
        if is_crate(tree, name) {
            below = format!("crates/{name}/");
        } else {
            wrong.push(format!("`{word}` is no crate"));
        }
    }
    for pair in words.windows(2) {
        let directory = match pair[0] {
            "--test" => "tests",
            "--bench" => "benches",
            "--example" => "examples",
            _ => continue,
        };
        let ends =
            [format!("/{directory}/{}.rs", pair[1]), format!("/{directory}/{}/main.rs", pair[1])];
        let is_it = |path: &String| {
            path.starts_with(&below)
                && ends.iter().any(|end| path.ends_with(end))
                && (directory != "tests" || is_program(tree, path, pair[1]))
        };
        if !tree.files.keys().any(is_it) {
            wrong.push(format!("there is no `{} {}` in {below}", pair[0], pair[1]));
        }
    }
    wrong
}

/// Whether a file with tests is a program of its own, and not a part of one.
fn is_program(tree: &Tree, path: &str, name: &str) -> bool {
    let directory = path.rsplit_once("/tests/").map_or("", |(directory, _)| directory);
    let listed = tree.get(&format!("{directory}/Cargo.toml")).and_then(programs::listed);
    listed.is_none_or(|listed| listed.contains(&name))
}

/// Line and target of each link within the repository.
fn links(document: &Document) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (index, line) in document.prose.iter().enumerate() {
        for rest in line.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if !target.contains("://") {
                links.push((index + 1, target.to_owned()));
            }
        }
    }
    links
}

/// Whether a link of the document `from` leads to a file or directory, and to a heading in it.
fn leads_somewhere(tree: &Tree, from: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let mut parts: Vec<&str> = from.split('/').collect();
    if !file.is_empty() {
        parts.pop();
        for part in file.split('/') {
            match part {
                ".." => drop(parts.pop()),
                "." | "" => {}
                _ => parts.push(part),
            }
        }
    }
    let path = parts.join("/");
    let has = |text: &str| {
        let document = Document::parse(text);
        let mut headings = document.prose.iter().filter(|line| line.starts_with('#'));
        headings.any(|line| anchor(line) == heading)
    };
    if tree.others.contains(&path) {
        return heading.is_empty();
    }
    is_place(tree, &path) && (heading.is_empty() || tree.get(&path).is_some_and(has))
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let text = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    text.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The table of crates has a row for each, and none besides.
fn table_of_crates(tree: &Tree, text: &str, add: &mut impl FnMut(usize, String)) {
    let table = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("| crate |"));
    let rows = table.take_while(|(_, line)| line.starts_with('|')).skip(2);
    let mut named = BTreeSet::new();
    for (index, row) in rows {
        let name = row.split('`').nth(1).unwrap_or_default();
        if !is_crate(tree, name) && name != "xtask" {
            add(index + 1, format!("`{name}` is no crate"));
        }
        named.insert(name);
    }
    let crates = tree.files.keys().filter_map(|path| {
        path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
    });
    for name in crates.filter(|name| !named.contains(name)) {
        add(1, format!("the table of crates has no row for `{name}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with a breach in a README of this text.
    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[
            ("README.md", text),
            ("docs/a.md", "# A b: `c`, d_e\n"),
            ("crates/core/Cargo.toml", ""),
            ("crates/core/tests/model.rs", ""),
            ("crates/core/benches/deep/main.rs", ""),
            ("crates/sim/Cargo.toml", "autotests = false\n\n[[test]]\nname = \"all\"\n"),
            ("crates/sim/tests/all.rs", "mod paths;\n"),
            ("crates/sim/tests/paths.rs", ""),
        ]);
        check(&tree).into_iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn files_and_directories_that_documents_name_are_there() {
        for good in
            ["crates/core", "crates/core/tests/*.rs", "docs/a.md", "crates/core/tests/model.rs::a"]
        {
            assert_eq!(lines(&format!("See `{good}`.\n")), [0; 0], "{good}");
        }
        for bad in ["crates/cor", "crates/core/src/*", "docs/b.md", "tests/model.rs::a"] {
            assert_eq!(lines(&format!("\nSee `{bad}`.\n")), [2], "{bad}");
        }
        assert_eq!(lines("```\nls crates/none\n```\n"), [2]);
    }

    #[test]
    fn crates_that_documents_name_are_there() {
        for good in
            ["raidlab-core", "core::Array", "raidlab_core::a", "Array::new", "std::fs", "xtask::a"]
        {
            assert_eq!(lines(&format!("`{good}`\n")), [0; 0], "{good}");
        }
        for bad in ["raidlab-cor", "cor::Array", "raidlab_cor::a"] {
            assert_eq!(lines(&format!("`{bad}`\n")), [1], "{bad}");
        }
    }

    #[test]
    fn cargo_commands_name_what_is_there() {
        for good in [
            "cargo test -p raidlab-core --test model -- --nocapture",
            "cargo test -p raidlab-sim --test all",
            "cargo bench --bench deep",
            "cargo xtask tidy",
            "cargo xtask bugs --sample 6",
            "cargo xtask test --full",
        ] {
            assert_eq!(lines(&format!("`{good}`\n")), [0; 0], "{good}");
        }
        for bad in [
            "cargo test -p raidlab-sim --test model",
            "cargo test -p raidlab-sim --test paths",
            "cargo test -p raidlab-none",
            "cargo bench --bench model",
            "cargo run --example model",
            "cargo xtask tide",
            "cargo xtask tidy --full",
        ] {
            assert_eq!(lines(&format!("`{bad}`\n")), [1], "{bad}");
        }
    }

    #[test]
    fn links_lead_somewhere() {
        assert_eq!(
            lines(
                "[a](docs/a.md), [b](docs/a.md#a-b-c-d_e)\n[c](crates/core), [d](https://a.b/c)\n"
            ),
            [0; 0]
        );
        assert_eq!(
            lines("# Own\n[a](docs/b.md)\n[b](docs/a.md#a)\n[c](#own)\n[d](#other)\n"),
            [2, 3, 5]
        );
    }

    #[test]
    fn links_may_lead_to_pictures() {
        let text = "[a](screenshots/a.png) ![b](screenshots/b.png) [c](screenshots/a.png#x)\n";
        let mut tree = Tree::of(&[("docs/a.md", text)]);
        tree.others.insert("docs/screenshots/a.png".to_owned());
        let told: Vec<String> = check(&tree).into_iter().map(|breach| breach.message).collect();
        let nowhere = ["screenshots/b.png", "screenshots/a.png#x"];
        assert_eq!(told, nowhere.map(|link| format!("the link to `{link}` leads nowhere")));
    }

    #[test]
    fn the_table_of_crates_has_exactly_the_crates() {
        let of = |rows: &str| {
            let text = format!("| crate | holds |\n|---|---|\n{rows}");
            let tree = Tree::of(&[
                ("ARCHITECTURE.md", &text),
                ("crates/core/Cargo.toml", ""),
                ("crates/sim/Cargo.toml", ""),
            ]);
            let breaches = check(&tree).into_iter();
            breaches.map(|breach| breach.line).collect::<Vec<_>>()
        };
        assert_eq!(of("| `core` | a |\n| `sim` | b |\n| `xtask` | c |\n"), [0; 0]);
        assert_eq!(of("| `core` | a |\n"), [1]);
        assert_eq!(of("| `core` | a |\n| `sim` | b |\n| `format` | c |\n"), [5]);
    }

    #[test]
    fn few_blocks_are_not_run_and_commands_are_marked() {
        let block = "<!-- not run: takes an hour -->\n```sh\nfalse\n```\n\n";
        assert_eq!(lines(&block.repeat(10)), [0; 0]);
        assert_eq!(lines(&block.repeat(11)), [53]);
        assert_eq!(lines("```\nraidlab check\n```\n"), [2]);
    }
}
