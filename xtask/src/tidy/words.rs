//! Code that is not finished, and tests that are switched off without a reason.

use super::rust::RustFile;
use super::tree::Breach;

/// Macros that must not stay in the code.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Checks a file.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for name in UNFINISHED {
        let message = format!("`{name}!`: finish it, or give an error that is named");
        for line in file.find(&[name, "!"]) {
            breaches.push(Breach::new(file.path, line, "unfinished", &message));
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
        let good = "// todo!()\n#[ignore = \"slow; cargo test -- --ignored\"]\nfn f() { g(\"dbg!(1)\") }\n";
        assert_eq!(lines_of(check, "a.rs", good), [0; 0]);
    }
}
