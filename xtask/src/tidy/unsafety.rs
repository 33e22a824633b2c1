//! Unsafe code stands in a few crates only, and each piece says why it is sound.

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::rust::{RustFile, Token};
use super::tree::Breach;

/// Crates that may use unsafe code.
const MAY: [&str; 6] = ["allocator", "parity", "engine", "targets", "kernel-lab", "what-if"];

/// Checks a file.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if must_forbid(file.path) && !forbids(file) {
        let message = "add `#![forbid(unsafe_code)]`";
        breaches.push(Breach::new(file.path, 1, "forbid-unsafe", message));
    }
    let mut statements = Statements::default();
    statements.visit_file(&file.syntax);
    for (index, token) in file.tokens.iter().enumerate() {
        if token.text != "unsafe" {
            continue;
        }
        let after = |n: usize| file.tokens.get(index + n).map_or("", |token| token.text.as_str());
        let is_function_type = match after(1) {
            "extern" => after(3) == "fn" && after(4) == "(" || after(2) == "fn" && after(3) == "(",
            "fn" => after(2) == "(",
            _ => false,
        };
        if !is_function_type && !says_why(file, token, &statements) {
            let message = "say why this is sound, in a `// SAFETY:` comment directly above \
                           (`# Safety` in the docs of a function or trait)";
            breaches.push(Breach::new(file.path, token.line, "safety-comment", message));
        }
    }
    breaches
}

/// Whether this is the root of a crate without unsafe code.
fn must_forbid(path: &str) -> bool {
    let (name, rest) = match path.strip_prefix("crates/") {
        Some(below) => below.split_once('/').unwrap_or((below, "")),
        None => match path.strip_prefix("xtask/") {
            Some(rest) => ("xtask", rest),
            None => return false,
        },
    };
    let program = rest.strip_prefix("src/bin/").is_some_and(|leaf| {
        leaf.strip_suffix(".rs").is_some_and(|stem| !stem.contains('/') || stem.ends_with("/main"))
    });
    !MAY.contains(&name) && (rest == "src/lib.rs" || rest == "src/main.rs" || program)
}

fn forbids(file: &RustFile<'_>) -> bool {
    file.syntax.attrs.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let lints = list.tokens.to_string();
        list.path.is_ident("forbid") && lints.split(',').any(|lint| lint.trim() == "unsafe_code")
    })
}

/// Whether the comment above the token, or above the statement it belongs to, gives the reason.
fn says_why(file: &RustFile<'_>, token: &Token, statements: &Statements) -> bool {
    let at = LineColumn { line: token.line, column: token.column };
    let around = statements.0.iter().filter(|(first, last)| (*first..*last).contains(&at));
    let innermost = around.map(|(first, _)| first.line).max().unwrap_or(token.line);
    [token.line, innermost].into_iter().any(|line| comment_above(file, line))
}

fn comment_above(file: &RustFile<'_>, line: usize) -> bool {
    let above = file.lines[..line - 1].iter().rev().map(|text| text.trim());
    above.take_while(|text| text.starts_with("//") || text.starts_with("#[")).any(|text| {
        text.starts_with("//") && (text.contains("SAFETY:") || text.contains("# Safety"))
    })
}

/// Beginning and end of each statement, match arm and field of a struct expression.
#[derive(Default)]
struct Statements(Vec<(LineColumn, LineColumn)>);

impl Statements {
    fn add(&mut self, span: proc_macro2::Span) {
        self.0.push((span.start(), span.end()));
    }
}

impl<'ast> Visit<'ast> for Statements {
    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.add(statement.span());
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.add(arm.span());
        visit::visit_arm(self, arm);
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        self.add(field.span());
        visit::visit_field_value(self, field);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust::lines_of;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        lines_of(check, path, text)
    }

    #[test]
    fn a_crate_root_forbids_unsafe_code() {
        for path in ["crates/core/src/lib.rs", "crates/cli/src/main.rs", "xtask/src/bin/a.rs"] {
            assert_eq!(lines(path, "//! Docs.\n"), [1], "{path}");
            assert_eq!(lines(path, "//! Docs.\n#![forbid(unsafe_code)]\n"), [0; 0]);
            assert_eq!(lines(path, "// #![forbid(unsafe_code)]\n"), [1]);
            assert_eq!(lines(path, "#![deny(unsafe_code)]\n"), [1]);
        }
        for path in ["crates/parity/src/lib.rs", "crates/engine/src/lib.rs", "crates/core/src/a.rs"]
        {
            assert_eq!(lines(path, "//! Docs.\n"), [0; 0]);
        }
    }

    #[test]
    fn unsafe_without_a_reason_is_a_breach() {
        let bad = [
            "fn f() {\n    unsafe { g() };\n}\n",
            "fn f() {\n    // SAFETY: fine.\n\n    unsafe { g() };\n}\n",
            "fn f() {\n    // Fine.\n    let x = unsafe { g() };\n}\n",
            "unsafe impl Send for A {}\n",
            "/// Docs.\npub unsafe fn f() {}\n",
            "unsafe extern \"C\" {}\n",
            "macro_rules! m { () => {\n    unsafe { g() }\n} }\n",
        ];
        for text in bad {
            assert_eq!(lines("crates/engine/src/a.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn unsafe_with_a_reason_is_no_breach() {
        let good = [
            "fn f() {\n    // SAFETY: fine.\n    // More.\n    let x = unsafe { g() };\n}\n",
            "fn f() {\n    // SAFETY: fine.\n    let x = h(\n        1,\n        unsafe { g() },\n    );\n}\n",
            "fn f() {\n    match 1 {\n        // SAFETY: fine.\n        _ => g(\n\
             \x20           unsafe { h() },\n        ),\n\
             \x20   }\n}\n",
            "// SAFETY: fine.\nunsafe impl Send for A {}\n",
            "/// Docs.\n///\n/// # Safety\n/// Never.\n#[inline]\npub unsafe fn f() {}\n",
            "type F = unsafe fn(u8);\ntype G = unsafe extern \"C\" fn(u8);\n",
            "//! unsafe\nfn f() { g(\"unsafe\") }\n",
        ];
        for text in good {
            assert_eq!(lines("crates/engine/src/a.rs", text), [0; 0], "{text}");
        }
    }
}
