//! One version of Rust: what rust-toolchain.toml pins is what the manifest promises.

use super::tree::{Breach, Tree};

const RULE: &str = "toolchain";
const PINNED: &str = "rust-toolchain.toml";
const PROMISED: &str = "Cargo.toml";

/// Checks that the channel is a whole version, and `rust-version` its first two numbers.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut find = |path: &'static str, key: &str| {
        let found = tree.get(path).and_then(|text| value(text, key));
        if found.is_none() {
            breaches.push(Breach::new(path, 1, RULE, format!("has no `{key} = \"...\"`")));
        }
        found
    };
    let (pinned, promised) = (find(PINNED, "channel"), find(PROMISED, "rust-version"));
    let (Some((line, pinned)), Some((other, promised))) = (pinned, promised) else {
        return breaches;
    };
    match minor(pinned) {
        None => {
            let message = format!("`{pinned}` is no version such as 1.95.0");
            breaches.push(Breach::new(PINNED, line, RULE, message));
        }
        Some(minor) if minor != promised => {
            let message = format!("rust-version is {promised}, but {PINNED} pins {pinned}");
            breaches.push(Breach::new(PROMISED, other, RULE, message));
        }
        Some(_) => {}
    }
    breaches
}

/// The line and the text of the first `key = "text"`.
fn value<'a>(text: &'a str, key: &str) -> Option<(usize, &'a str)> {
    text.lines().enumerate().find_map(|(index, line)| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
        (name.trim() == key).then_some((index + 1, value))
    })
}

/// `1.95` of `1.95.0`.
fn minor(version: &str) -> Option<&str> {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let (minor, patch) = version.rsplit_once('.')?;
    let whole = minor.split('.').count() == 2 && minor.split('.').all(number) && number(patch);
    whole.then_some(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(pinned: &str, promised: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[(PINNED, pinned), (PROMISED, promised)]);
        check(&tree).into_iter().map(|breach| (breach.path, breach.line)).collect()
    }

    #[test]
    fn the_manifest_promises_what_is_pinned() {
        let pinned = "[toolchain]\nchannel = \"1.95.0\"\n";
        let promised = "[workspace.package]\nrust-version = \"1.95\"\n";
        assert_eq!(places(pinned, promised), []);
        let other = promised.replace("1.95", "1.88");
        assert_eq!(places(pinned, &other), [(PROMISED.to_owned(), 2)]);
        for bad in ["stable", "1.95", "1.95.", "nightly-2026-05-01", "1.95.0-beta"] {
            let bad = pinned.replace("1.95.0", bad);
            assert_eq!(places(&bad, promised), [(PINNED.to_owned(), 2)], "{bad}");
        }
        assert_eq!(places("", ""), [(PINNED.to_owned(), 1), (PROMISED.to_owned(), 1)]);
    }
}
