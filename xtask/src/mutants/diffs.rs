//! Bugs that somebody has planted, each a diff in a directory of its own, taken as mutants.

use std::fs;
use std::io;
use std::path::Path;

use super::list::Mutant;

/// A change of some lines: the first, counted from 0, how many go, and what comes instead.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    at: usize,
    gone: usize,
    come: Vec<String>,
}

/// All diffs of a directory, by their names; those of sources that have changed since are named and left out.
pub(crate) fn read(root: &Path, directory: &Path) -> io::Result<Vec<Mutant>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "diff") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(io::Error::other(format!("{}: no file ends in .diff", directory.display())));
    }
    let mut mutants = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let of = |text: &str| fs::read_to_string(root.join(text));
        match planted(&name, &fs::read_to_string(&path)?, of) {
            Ok(mutant) => mutants.push(mutant),
            Err(error) => println!("left out: {}: {error}", path.display()),
        }
    }
    Ok(mutants)
}

/// The mutant that a diff makes, of one file that `read` gives.
fn planted(
    name: &str,
    diff: &str,
    read: impl Fn(&str) -> io::Result<String>,
) -> Result<Mutant, String> {
    let mut files = diff.lines().filter_map(|line| line.strip_prefix("+++ b/"));
    let file = files.next().ok_or("no line begins with `+++ b/`")?;
    let file = file.split('\t').next().unwrap_or(file);
    if files.next().is_some() {
        return Err("it changes more than one file".to_owned());
    }
    let text = read(file).map_err(|error| format!("{file}: {error}"))?;
    let lines: Vec<&str> = text.lines().collect();
    let changes = changes(diff, &lines).map_err(|error| format!("{file}:{error}"))?;
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return Err("it changes nothing".to_owned());
    };
    let (start, end) = (first.at, last.at + last.gone);
    let (mut replacement, mut at) = (String::new(), start);
    for change in &changes {
        let kept = lines[at..change.at].iter().copied();
        kept.chain(change.come.iter().map(String::as_str)).for_each(|line| {
            replacement += line;
            replacement.push('\n');
        });
        at = change.at + change.gone;
    }
    Ok(Mutant {
        file: file.to_owned(),
        span: (start + 1, 1)..(end + 1, 1),
        replacement,
        name: format!("{file}: {name}"),
        module: file.split('/').nth(1).unwrap_or_default().to_owned(),
        is_body: true,
    })
}

/// What a diff changes of these lines, which must be those it was made from.
fn changes(diff: &str, lines: &[&str]) -> Result<Vec<Change>, String> {
    let mut found: Vec<Change> = Vec::new();
    let mut at = None;
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ -") {
            let number = header.split([',', ' ']).next().unwrap_or_default();
            let number: usize = number.parse().map_err(|_| format!(" `{line}` has no line"))?;
            at = Some(number.saturating_sub(1));
            continue;
        }
        // Before the first of these everything is about files.
        let Some(here) = at else { continue };
        let (sign, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
        match sign {
            "+" => match found.last_mut() {
                Some(last) if last.at + last.gone == here => last.come.push(rest.to_owned()),
                _ => found.push(Change { at: here, gone: 0, come: vec![rest.to_owned()] }),
            },
            " " | "-" => {
                if lines.get(here) != Some(&rest) {
                    return Err(format!("{}: the diff was made from another line", here + 1));
                }
                if sign == "-" {
                    match found.last_mut() {
                        Some(last) if last.at + last.gone == here => last.gone += 1,
                        _ => found.push(Change { at: here, gone: 1, come: Vec::new() }),
                    }
                }
                at = Some(here + 1);
            }
            // `\ No newline at end of file`
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn f() {\n    one();\n    two();\n    three();\n    four();\n}\n";

    fn planted(diff: &str) -> Result<Mutant, String> {
        let diff = format!("--- a/crates/core/src/a.rs\n+++ b/crates/core/src/a.rs\n{diff}");
        super::planted("07-name", &diff, |file| {
            assert_eq!(file, "crates/core/src/a.rs");
            Ok(TEXT.to_owned())
        })
    }

    #[test]
    fn a_diff_is_one_change_from_its_first_line_to_its_last() {
        let diff = "@@ -1,5 +1,4 @@\n fn f() {\n-    one();\n+    1();\n     two();\n-    three();\n     four();\n";
        let mutant = planted(diff).expect("a mutant");
        assert_eq!(mutant.span, (2, 1)..(5, 1));
        assert_eq!(mutant.replacement, "    1();\n    two();\n");
        assert_eq!(mutant.title(), "crates/core/src/a.rs:2: 07-name");
        assert_eq!((mutant.package(), &mutant.module[..], mutant.is_body), ("core", "core", true));
    }

    #[test]
    fn lines_may_only_come_or_only_go() {
        let mutant = planted("@@ -2,2 +2,3 @@\n     one();\n+    more();\n     two();\n");
        let mutant = mutant.expect("a mutant");
        assert_eq!((mutant.span, &mutant.replacement[..]), ((3, 1)..(3, 1), "    more();\n"));
        let mutant = planted("@@ -4 +3,0 @@\n-    three();\n").expect("a mutant");
        assert_eq!((mutant.span, &mutant.replacement[..]), ((4, 1)..(5, 1), ""));
    }

    #[test]
    fn what_is_no_diff_of_the_file_is_refused() {
        let other = planted("@@ -2,1 +2,1 @@\n-    1();\n+    one();\n").expect_err("another file");
        assert_eq!(other, "crates/core/src/a.rs:2: the diff was made from another line");
        assert_eq!(planted("@@ -1 +1 @@\n fn f() {\n").expect_err("nothing"), "it changes nothing");
        let two = "+++ b/crates/core/src/b.rs\n";
        assert_eq!(planted(two).expect_err("two files"), "it changes more than one file");
        let none = super::planted("a", "", |_| Ok(String::new())).expect_err("no file");
        assert_eq!(none, "no line begins with `+++ b/`");
    }
}
