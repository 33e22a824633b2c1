//! How long files, functions and lines may be.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::rust::RustFile;
use super::tree::{Breach, Tree};

/// The list of exceptions.
pub(crate) const EXCEPTIONS: &str = "xtask/exceptions.txt";

/// How many exceptions the list holds. It only shrinks, and this number with it.
const LISTED: usize = 0;

const FILE: (&str, usize) = ("file-length", 800);
const FUNCTION: (&str, usize) = ("function-length", 70);
const LINE: (&str, usize) = ("line-length", 120);

/// What is longer than allowed: its rule and name, where it is, and how long.
#[derive(Default)]
pub(crate) struct TooLong(BTreeMap<(&'static str, String), (String, usize, usize)>);

impl TooLong {
    /// Measures a file, its functions and its lines.
    pub(crate) fn measure(&mut self, file: &RustFile<'_>) {
        let path = file.path;
        self.note(FILE, path.to_owned(), path, 1, file.lines.len());
        for (index, line) in file.lines.iter().enumerate() {
            self.note(LINE, path.to_owned(), path, index + 1, line.chars().count());
        }
        let mut functions = Functions::default();
        functions.visit_file(&file.syntax);
        for (name, line, length) in functions.0 {
            self.note(FUNCTION, format!("{path}::{name}"), path, line, length);
        }
    }

    /// Keeps the longest of its name.
    fn note(
        &mut self,
        rule: (&'static str, usize),
        name: String,
        path: &str,
        line: usize,
        length: usize,
    ) {
        if length > rule.1 {
            let longest = self.0.entry((rule.0, name)).or_insert((path.to_owned(), line, length));
            if longest.2 < length {
                *longest = (path.to_owned(), line, length);
            }
        }
    }

    /// What is neither short nor excepted, and what is excepted without need.
    pub(crate) fn breaches(self, tree: &Tree) -> Vec<Breach> {
        self.against(tree.get(EXCEPTIONS).unwrap_or_default(), LISTED)
    }

    fn against(mut self, list: &str, listed: usize) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut count = 0;
        for (index, text) in list.lines().enumerate() {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            count += 1;
            if let Err(message) = self.except(text) {
                breaches.push(Breach::new(EXCEPTIONS, index + 1, "exceptions", message));
            }
        }
        if count != listed {
            let message = format!(
                "{count} exceptions where LISTED in xtask/src/tidy/sizes.rs says {listed}; the list only shrinks"
            );
            breaches.push(Breach::new(EXCEPTIONS, 1, "exceptions", message));
        }
        for ((rule, name), (path, line, length)) in self.0 {
            let most = [FILE, FUNCTION, LINE].into_iter().find(|known| known.0 == rule);
            let most = most.map_or(0, |known| known.1);
            let what = if rule == LINE.0 { "characters" } else { "lines" };
            let message = format!("{name} has {length} {what}; at most {most}");
            breaches.push(Breach::new(path, line, rule, message));
        }
        breaches
    }

    /// Takes out what a line of the list excepts, or says what is wrong with that line.
    fn except(&mut self, text: &str) -> Result<(), String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [rule, name, size] = parts[..] else {
            return Err("expected `rule path size`".to_owned());
        };
        let rules = [FILE.0, FUNCTION.0, LINE.0];
        let Some(rule) = rules.into_iter().find(|known| *known == rule) else {
            return Err(format!("no rule `{rule}`; there are {}", rules.join(", ")));
        };
        let size: usize = size.parse().map_err(|_| format!("`{size}` is no size"))?;
        match self.0.remove(&(rule, name.to_owned())) {
            None => Err(format!("{name} needs no exception from {rule}: take this line out")),
            Some((.., length)) if length < size => {
                Err(format!("{name} has only {length}: lower it"))
            }
            Some((.., length)) if length > size => {
                Err(format!("{name} grew from {size} to {length}"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Name, line and length of each function, from its signature to its closing brace.
#[derive(Default)]
struct Functions(Vec<(String, usize, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let last = block.brace_token.span.close().end().line;
        self.0.push((signature.ident.to_string(), first, last + 1 - first));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> TooLong {
        let mut long = TooLong::default();
        long.measure(&RustFile::parse("a.rs", text).expect("parses"));
        long
    }

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        let breaches = measured(text).against("", 0);
        breaches.into_iter().map(|breach| (breach.line, breach.rule)).collect()
    }

    #[test]
    fn a_long_file_function_or_line_is_a_breach() {
        assert_eq!(found(&"//\n".repeat(800)), []);
        assert_eq!(found(&"//\n".repeat(801)), [(1, "file-length")]);
        let function =
            |lines: usize| format!("\n/// Docs.\nfn f(\n) {{{}}}\n", "\n".repeat(lines - 2));
        assert_eq!(found(&function(70)), []);
        assert_eq!(found(&function(71)), [(3, "function-length")]);
        let method = format!("struct A;\nimpl A {{\n{}}}\n", function(71));
        assert_eq!(found(&method), [(5, "function-length")]);
        let default = format!("trait A {{\n{}}}\n", function(71));
        assert_eq!(found(&default), [(4, "function-length")]);
        assert_eq!(found(&format!("\n//{}\n", "é".repeat(118))), []);
        assert_eq!(found(&format!("\n//{}\n", "é".repeat(119))), [(2, "line-length")]);
    }

    #[test]
    fn an_exception_covers_what_it_names_and_only_as_long_as_it_must() {
        let long = "//\n".repeat(801);
        let with = |list: &str, listed| -> Vec<String> {
            let breaches = measured(&long).against(list, listed);
            breaches.into_iter().map(|breach| breach.message).collect()
        };
        assert_eq!(with("# why\nfile-length a.rs 801\n", 1), [""; 0]);
        assert!(with("file-length a.rs 900\n", 1)[0].contains("only 801"));
        assert!(with("file-length a.rs 790\n", 1)[0].contains("grew"));
        assert!(with("file-length a.rs 801\n", 0)[0].contains("only shrinks"));
        assert!(with("", 1)[0].contains("only shrinks"));
        assert!(with("file-length b.rs 801\n", 1)[0].contains("needs no exception"));
        assert!(with("size a.rs 801\n", 1)[0].contains("no rule"));
        assert!(with("file-length a.rs\n", 1)[0].contains("expected"));
    }
}
