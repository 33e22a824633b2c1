//! A Rust file as the rules look at it: its tokens with their lines, and which lines are test code.

use std::ops::RangeInclusive;
use std::str::FromStr;

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A token and where it begins. `::` is one token, as are literals.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
    /// From 0, in characters.
    pub(crate) column: usize,
}

impl Token {
    fn new(text: impl Into<String>, at: Span) -> Self {
        let LineColumn { line, column } = at.start();
        Self { text: text.into(), line, column }
    }
}

/// A parsed Rust file.
pub(crate) struct RustFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) lines: Vec<&'a str>,
    pub(crate) syntax: syn::File,
    pub(crate) tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
    test_modules: Vec<String>,
}

impl<'a> RustFile<'a> {
    /// Parses the file; or says on which line that failed, and why.
    pub(crate) fn parse(path: &'a str, text: &'a str) -> Result<Self, (usize, String)> {
        let syntax = syn::parse_file(text)
            .map_err(|error| (error.span().start().line.max(1), error.to_string()))?;
        let stream = TokenStream::from_str(text)
            .map_err(|error| (error.span().start().line.max(1), error.to_string()))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut found = TestCode { path, lines: Vec::new(), modules: Vec::new() };
        if syntax.attrs.iter().any(is_test_only) {
            found.lines.push(1..=usize::MAX);
        }
        found.visit_file(&syntax);
        let TestCode { lines: test_lines, modules: test_modules, .. } = found;
        Ok(Self { path, lines: text.lines().collect(), syntax, tokens, test_lines, test_modules })
    }

    /// Whether the line belongs to an item that exists in tests only.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    /// The files of test-only modules declared here, as paths without `.rs` or `/mod.rs`.
    pub(crate) fn test_modules(&self) -> &[String] {
        &self.test_modules
    }

    /// The lines, from 1, at which this run of tokens begins.
    pub(crate) fn find<'b>(&'b self, run: &'b [&'b str]) -> impl Iterator<Item = usize> + 'b {
        let starts = self.tokens.windows(run.len());
        let hits = starts
            .filter(move |window| window.iter().zip(run).all(|(token, text)| token.text == *text));
        hits.map(|window| window[0].line)
    }
}

/// Whether `path` is the file of one of `modules`, as given by [`RustFile::test_modules`], or lies
/// below one.
pub(crate) fn is_below(path: &str, modules: &[String]) -> bool {
    modules.iter().any(|module| {
        path.strip_prefix(module.as_str())
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    })
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    let mut joint_colon = false;
    for tree in stream {
        let at = tree.span();
        let mut colon = false;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                into.push(Token::new(open, at));
                flatten(group.stream(), into);
                into.push(Token::new(close, group.span_close()));
            }
            TokenTree::Punct(punct) if joint_colon && punct.as_char() == ':' => {
                "::".clone_into(&mut into.last_mut().expect("the first colon").text);
            }
            TokenTree::Punct(punct) => {
                colon = punct.as_char() == ':' && punct.spacing() == proc_macro2::Spacing::Joint;
                into.push(Token::new(punct.as_char(), at));
            }
            TokenTree::Ident(ident) => into.push(Token::new(ident.to_string(), at)),
            TokenTree::Literal(literal) => into.push(Token::new(literal.to_string(), at)),
        }
        joint_colon = colon;
    }
}

/// Whether the attribute takes its item out of everything but tests.
fn is_test_only(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    if !attribute.path().is_ident("cfg") {
        return false;
    }
    let condition: String = list.tokens.to_string().split_whitespace().collect();
    let all = condition.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')'));
    condition == "test" || all.is_some_and(|all| all.split(',').any(|part| part == "test"))
}

struct TestCode<'a> {
    path: &'a str,
    lines: Vec<RangeInclusive<usize>>,
    modules: Vec<String>,
}

impl TestCode<'_> {
    fn add<T: syn::spanned::Spanned>(&mut self, attributes: &[syn::Attribute], item: &T) {
        if attributes.iter().any(is_test_only) {
            let span = item.span();
            self.lines.push(span.start().line..=span.end().line);
        }
    }

    fn add_module(&mut self, module: &syn::ItemMod) {
        if module.content.is_none() && module.attrs.iter().any(is_test_only) {
            let (directory, leaf) = self.path.rsplit_once('/').unwrap_or(("", self.path));
            let stem = leaf.strip_suffix(".rs").unwrap_or(leaf);
            let name = &module.ident;
            self.modules.push(match stem {
                "lib" | "main" | "mod" => format!("{directory}/{name}"),
                _ => format!("{directory}/{stem}/{name}"),
            });
        }
    }
}

impl<'ast> Visit<'ast> for TestCode<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Fn(item) => self.add(&item.attrs, item),
            syn::Item::Mod(item) => {
                self.add(&item.attrs, item);
                self.add_module(item);
            }
            syn::Item::Impl(item) => self.add(&item.attrs, item),
            syn::Item::Use(item) => self.add(&item.attrs, item),
            syn::Item::Struct(item) => self.add(&item.attrs, item),
            syn::Item::Const(item) => self.add(&item.attrs, item),
            syn::Item::Static(item) => self.add(&item.attrs, item),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.attrs, item);
        visit::visit_impl_item_fn(self, item);
    }
}

/// For tests of rules: the lines on which `check` finds breaches in a file, in order.
#[cfg(test)]
pub(crate) fn lines_of(
    check: impl FnOnce(&RustFile<'_>) -> Vec<super::tree::Breach>,
    path: &str,
    text: &str,
) -> Vec<usize> {
    let file = RustFile::parse(path, text).expect("parses");
    let mut lines: Vec<usize> = check(&file).into_iter().map(|breach| breach.line).collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_known_by_line_and_by_file() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n\
                    #[cfg(all(test, unix))]\nmod more;\n#[cfg(any(test, unix))]\nfn d() {}\n\
                    impl A {\n    #[cfg(test)]\n    fn e() {}\n}\n";
        let file = RustFile::parse("crates/core/src/lib.rs", text).expect("parses");
        let tested: Vec<usize> = (1..=14).filter(|line| file.is_test(*line)).collect();
        assert_eq!(tested, [2, 3, 4, 5, 7, 8, 12, 13]);
        assert_eq!(file.test_modules(), ["crates/core/src/more"]);
        assert!(is_below("crates/core/src/more.rs", file.test_modules()));
        assert!(is_below("crates/core/src/more/deep.rs", file.test_modules()));
        assert!(!is_below("crates/core/src/moreover.rs", file.test_modules()));
        let file = RustFile::parse("src/a.rs", "#[cfg(test)]\nmod b;\n").expect("parses");
        assert_eq!(file.test_modules(), ["src/a/b"]);
    }

    #[test]
    fn tokens_are_found_with_their_lines_but_not_in_text() {
        let text = "// a::b\nfn f() {\n    let s = \"a::b\";\n    m!(a::b);\n}\n";
        let file = RustFile::parse("a.rs", text).expect("parses");
        assert_eq!(file.find(&["a", "::", "b"]).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn a_file_that_is_no_rust_gives_the_line() {
        assert_eq!(RustFile::parse("a.rs", "fn f() {}\nfn {\n").err().map(|e| e.0), Some(2));
    }
}
