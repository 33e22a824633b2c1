//! `cargo xtask book`: the documents as a site, by mdBook.
//!
//! The pages are the files in `docs/`, in the order of `docs/SUMMARY.md`. What they link to outside of `docs/`
//! (ARCHITECTURE, studies) is copied beside them, texts as such, since mdBook makes pages only of what it lists. Every
//! link of the site is then followed.

mod links;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Where the site is put, and its pages before they are made into one.
const SITE: &str = "target/book";
const PAGES: &str = "target/book-pages";
/// Where copies of what lies outside of `docs/` are, below the pages.
const ELSEWHERE: &str = "repository";

/// The ending of copies of documents; not `.md.txt`, which mdBook takes for a page, too.
const TEXT: &str = "txt";

/// The page behind which that of all commands stands, which the program writes itself.
const BEFORE_COMMANDS: &str = "- [Questions and answers](faq.md)\n";
const COMMANDS: &str = "commands.md";

/// Builds the site; with this raidlab instead of building it.
pub(crate) fn run(root: &Path, with: Option<&Path>) -> io::Result<bool> {
    let pages = root.join(PAGES);
    if pages.exists() {
        fs::remove_dir_all(&pages)?;
    }
    let wrong = prepare(root, &pages)?;
    let summary = fs::read_to_string(pages.join("src/SUMMARY.md"))?;
    if !summary.contains(BEFORE_COMMANDS) {
        return Err(io::Error::other(format!("docs/SUMMARY.md has no line {BEFORE_COMMANDS:?}")));
    }
    if !wrong.is_empty() {
        wrong.iter().for_each(|line| eprintln!("{line}"));
        return Ok(false);
    }
    commands(root, &pages.join("src"), with)?;
    let built = Command::new("mdbook")
        .arg("build")
        .arg(&pages)
        .arg("--dest-dir")
        .arg(root.join(SITE))
        .status();
    match built {
        Ok(status) if status.success() => {
            let (links, broken) = links::followed(&root.join(SITE))?;
            broken.iter().for_each(|line| eprintln!("{line}"));
            println!(
                "{SITE}/index.html: {links} links within the site, {} lead nowhere",
                broken.len()
            );
            Ok(broken.is_empty())
        }
        Ok(status) => Err(io::Error::other(format!("mdbook: {status}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::other(
            "mdbook is not installed: cargo install mdbook --locked, or a package of your system",
        )),
        Err(error) => Err(error),
    }
}

/// The help of all commands, as the program writes it.
fn commands(root: &Path, source: &Path, with: Option<&Path>) -> io::Result<()> {
    let mut program = match with {
        Some(program) => Command::new(program),
        None => {
            let mut cargo = crate::cargo(root);
            cargo.args(["run", "--release", "--quiet", "--package", "raidlab-cli", "--"]);
            cargo
        }
    };
    let status = program.args(["man", "--markdown"]).arg(source.join(COMMANDS)).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("raidlab man --markdown: {status}")));
    }
    let path = source.join("SUMMARY.md");
    let entry = format!("{BEFORE_COMMANDS}- [Every command]({COMMANDS})\n");
    fs::write(&path, fs::read_to_string(&path)?.replace(BEFORE_COMMANDS, &entry))
}

/// Copies the documents with what they link to; gives what is wrong, a line each.
fn prepare(root: &Path, pages: &Path) -> io::Result<Vec<String>> {
    let source = pages.join("src");
    fs::create_dir_all(&source)?;
    fs::copy(root.join("docs/book.toml"), pages.join("book.toml"))?;
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(root.join("docs"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(Some(name).filter(|name| name.ends_with(".md")));
    }
    names.sort();
    let summary = fs::read_to_string(root.join("docs/SUMMARY.md"))?;
    let mut wrong = unlisted(&names, &summary);
    for name in &names {
        let text = fs::read_to_string(root.join("docs").join(name))?;
        let mut linked = BTreeSet::new();
        let text = rewritten(&text, &mut linked);
        for target in linked {
            let from = root.join("docs").join(&target);
            let Some(to) = elsewhere(&target) else { continue };
            let to = source.join(to);
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(&source))?;
                fs::copy(from, to)?;
            } else if from.is_dir() {
                listed(&from, to.parent().unwrap_or(&source))?;
            } else {
                wrong.push(format!("docs/{name}: the link to `{target}` leads nowhere"));
            }
        }
        fs::write(source.join(name), text)?;
    }
    let pictures = root.join("docs/screenshots");
    if pictures.is_dir() {
        fs::create_dir_all(source.join("screenshots"))?;
        for entry in fs::read_dir(pictures)? {
            let entry = entry?;
            fs::copy(entry.path(), source.join("screenshots").join(entry.file_name()))?;
        }
    }
    Ok(wrong)
}

/// Copies the files of a directory, with a page that lists them.
fn listed(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            fs::copy(entry.path(), to.join(&name))?;
            names.push(name);
        }
    }
    names.sort();
    let item = |name: &String| format!("<li><a href=\"{name}\">{name}</a></li>\n");
    let items: String = names.iter().map(item).collect();
    fs::write(to.join("index.html"), format!("<!DOCTYPE html>\n<ul>\n{items}</ul>\n"))
}

/// Documents that the table of contents leaves out, or has and that are not there.
pub(crate) fn unlisted(names: &[String], summary: &str) -> Vec<String> {
    let listed: BTreeSet<String> = targets(summary).map(str::to_owned).collect();
    let pages = names.iter().filter(|name| *name != "SUMMARY.md");
    let left_out = pages.filter(|name| !listed.contains(*name));
    let mut wrong: Vec<String> =
        left_out.map(|name| format!("docs/SUMMARY.md leaves out {name}")).collect();
    let gone = listed.iter().filter(|name| !names.contains(name));
    wrong.extend(gone.map(|name| format!("docs/SUMMARY.md names {name}, which is not there")));
    wrong
}

/// What the links of a text lead to.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("](").filter_map(|(at, _)| text[at + 2..].split(')').next())
}

/// The text with links that lead out of `docs/` changed to the copies; adds what they lead to.
fn rewritten(text: &str, linked: &mut BTreeSet<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at + 2);
        out.push_str(before);
        let end = after.find(')').unwrap_or(after.len());
        let (target, part) = match after[..end].split_once('#') {
            Some((target, part)) => (target, format!("#{part}")),
            None => (&after[..end], String::new()),
        };
        match elsewhere(target) {
            Some(copy) => {
                linked.insert(target.to_owned());
                out.push_str(&copy.to_string_lossy());
                // A text has no places that links lead to.
                if copy.extension() != Some(TEXT.as_ref()) {
                    out.push_str(&part);
                }
            }
            None => out.push_str(&after[..end]),
        }
        rest = &after[end..];
    }
    out + rest
}

/// Where the copy of something outside of `docs/` is, beside the pages; `None` for what is in there, or
/// on the web.
fn elsewhere(target: &str) -> Option<PathBuf> {
    let outside = target.strip_prefix("../");
    // Schemas and the like lie in directories of docs, which are not pages either.
    let below =
        || target.contains('/') && !target.contains("://") && !target.starts_with("screenshots/");
    let path = match outside {
        Some(path) => Path::new(ELSEWHERE).join(path),
        None if below() => Path::new(ELSEWHERE).join("docs").join(target),
        None => return None,
    };
    let path = match path.extension().and_then(|ending| ending.to_str()) {
        Some("md") => path.with_extension(TEXT),
        Some(_) => path,
        // Licences have no ending either, but are not linked to.
        None => path.join("index.html"),
    };
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_documents_lead_to_copies() {
        let mut linked = BTreeSet::new();
        let text = "[a](../ARCHITECTURE.md#crates) [b](store.md#x) [c](https://x/y) [d](schemas/s.json) \
                    [e](../studies/replay)";
        let expected = "[a](repository/ARCHITECTURE.txt) [b](store.md#x) [c](https://x/y) \
                        [d](repository/docs/schemas/s.json) [e](repository/studies/replay/index.html)";
        assert_eq!(rewritten(text, &mut linked), expected);
        let all = ["../ARCHITECTURE.md", "../studies/replay", "schemas/s.json"];
        assert_eq!(Vec::from_iter(linked), all);
        assert_eq!(elsewhere("../../other"), None, "nothing outside of the repository");
    }

    #[test]
    fn every_document_is_in_the_table_of_contents() {
        let names = ["SUMMARY.md", "a.md", "b.md"].map(str::to_owned);
        assert_eq!(unlisted(&names, "- [A](a.md)\n- [B](b.md)\n"), [""; 0]);
        let wrong = unlisted(&names, "- [A](a.md)\n- [C](c.md)\n");
        assert_eq!(
            wrong,
            ["docs/SUMMARY.md leaves out b.md", "docs/SUMMARY.md names c.md, which is not there"]
        );
    }
}
