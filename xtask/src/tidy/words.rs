//! Code that is not finished, names of a private language, and tests that are switched off without a reason.

use super::rust::RustFile;
use super::tree::Breach;

/// Macros that must not stay in the code.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Names that the code once had for what the field has words for, each with that word.
const RETIRED: [(&str, &str); 25] = [
    ("Happening", "event"),
    ("Agenda", "event queue"),
    ("agenda", "event queue"),
    ("Conductor", "synchroniser"),
    ("conductor", "synchroniser"),
    ("Crew", "worker pool"),
    ("crew", "worker pool"),
    ("Flight", "in-flight I/O"),
    ("Flying", "in-flight I/O"),
    ("Permits", "write-intent gate"),
    ("permits", "write-intent gate"),
    ("Trouble", "error state"),
    ("Told", "finding, notification"),
    ("News", "events, notifications"),
    ("How", "open flags"),
    ("Of", "attribute target"),
    ("HostFile", "inode"),
    ("Characters", "stdio bytes"),
    ("lay_out", "prefill"),
    ("Foresight", "completion prediction"),
    ("foresight", "completion prediction"),
    ("Believe", "repair source"),
    ("Rig", "harness"),
    ("Hunt", "mutation test"),
    ("hunt", "mutation test"),
];

/// Checks a file.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for name in UNFINISHED {
        let message = format!("`{name}!`: finish it, or give an error that is named");
        for line in file.find(&[name, "!"]) {
            breaches.push(Breach::new(file.path, line, "unfinished", &message));
        }
    }
    for (name, word) in RETIRED {
        let message = format!("`{name}`: the field says {word}");
        for line in file.find(&[name]) {
            breaches.push(Breach::new(file.path, line, "retired-name", &message));
        }
    }
    for line in file.find(&["#", "[", "ignore", "]"]) {
        let message = "say why: `#[ignore = \"...\"]`, with the command that runs it";
        breaches.push(Breach::new(file.path, line, "ignored-test", message));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::rust::lines_of;
    use super::*;

    #[test]
    fn unfinished_code_and_unexplained_ignores_are_breaches() {
        let text = "fn f() {\n    todo!()\n}\nfn g() {\n    unimplemented!(\"a\");\n    dbg!(1);\n}\n\
                    #[test]\n#[ignore]\nfn h() {}\n";
        assert_eq!(lines_of(check, "a.rs", text), [2, 5, 6, 9]);
        assert_eq!(
            lines_of(check, "a.rs", "struct Rig;\nfn f(how: How) {}\n// a Rig\nfn g(rig: u8) {}"),
            [1, 2]
        );
        let good = "// todo!()\n#[ignore = \"slow; cargo test -- --ignored\"]\nfn f() { g(\"dbg!(1)\") }\n";
        assert_eq!(lines_of(check, "a.rs", good), [0; 0]);
    }
}
