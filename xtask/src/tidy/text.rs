//! Every text file: its ends of lines, and no path of somebody's machine.

use super::tree::{Breach, Tree};

/// Places that exist on one machine only. Cut in two, so that this file does not break the rule.
const MACHINE: [(&str, &str); 5] =
    [("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Us", "ers/"), ("/tmp/ba", "sh_")];

/// Checks all files.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let machine = MACHINE.map(|(front, back)| format!("{front}{back}"));
    let mut breaches = Vec::new();
    for (path, text) in &tree.files {
        let mut add =
            |line, rule, message: String| breaches.push(Breach::new(path, line, rule, message));
        if !text.is_empty() && !text.ends_with('\n') {
            add(text.lines().count(), "last-line", "end the last line".to_owned());
        }
        for (index, line) in text.split('\n').enumerate() {
            // An unchanged empty line of a diff is one space.
            let is_diff = path.ends_with(".diff") || path.ends_with(".patch");
            if line.ends_with([' ', '\t', '\r']) && !(line == " " && is_diff) {
                add(index + 1, "trailing-space", "take out the space at the end".to_owned());
            }
            if path.ends_with(".rs") && line.contains('\t') {
                add(index + 1, "tab", "use spaces".to_owned());
            }
            for place in machine.iter().filter(|place| names(line, place)) {
                add(index + 1, "machine-path", format!("`{place}` exists on one machine only"));
            }
        }
    }
    breaches
}

/// Whether the line holds the absolute path `place`, and not just a relative path with such a part.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-}/*$)".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        let breaches = check(&Tree::of(&[(path, text)]));
        breaches.into_iter().map(|breach| (breach.line, breach.rule)).collect()
    }

    #[test]
    fn ends_of_lines_are_checked() {
        assert_eq!(rules("a.md", "a\nb"), [(2, "last-line")]);
        assert_eq!(rules("a.md", "a \nb\t\nc\r\n"), [1, 2, 3].map(|line| (line, "trailing-space")));
        assert_eq!(rules("a.diff", " \n+a \n"), [(2, "trailing-space")]);
        assert_eq!(rules("a.patch", " \n+a \n"), [(2, "trailing-space")]);
        assert_eq!(rules("a.rs", "//\ta\n"), [(1, "tab")]);
        assert_eq!(rules("Makefile", "a:\n\tb\n"), []);
        assert_eq!(rules("empty", ""), []);
    }

    #[test]
    fn paths_of_one_machine_are_breaches() {
        for (front, back) in MACHINE {
            let path = format!("a\ncp {front}{back}x y\n");
            assert_eq!(rules("a.sh", &path), [(2, "machine-path")], "{path}");
            assert_eq!(rules("a.md", &format!("`some{front}{back}x` is relative\n")), []);
        }
    }
}
