//! Mutants as runtime switches: one source text that is the original or any one of its mutants.

use std::cmp::Reverse;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

use super::list::Place;

/// How far around its place a mutant's switch is laid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// The smallest expression around it.
    Expression,
    /// All that the function does.
    Body,
}

/// What a switch chooses between two of: the text, and how to enclose the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    range: Range<usize>,
    enclosed: (&'static str, &'static str),
}

/// A mutant with its switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) number: usize,
    pub(crate) host: Host,
    /// What is replaced.
    pub(crate) span: Range<usize>,
    pub(crate) replacement: String,
}

/// Where in the text with switches a mutant is.
#[derive(Debug)]
pub(crate) struct Laid {
    pub(crate) number: usize,
    pub(crate) range: Range<usize>,
    /// Whether this is its own text, or all that its switch chooses from.
    pub(crate) is_own: bool,
}

/// A file of Rust, and what in it can be switched.
pub(crate) struct Source {
    text: String,
    lines: Vec<usize>,
    expressions: Vec<Host>,
    bodies: Vec<Body>,
}

/// What a function does.
struct Body {
    inner: Range<usize>,
    is_const: bool,
}

impl Source {
    /// Reads a file.
    pub(crate) fn parse(text: String) -> syn::Result<Self> {
        let file = syn::parse_file(&text)?;
        let mut finder = Finder::default();
        finder.visit_file(&file);
        let ends = text.match_indices('\n').map(|(index, _)| index + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Ok(Self { lines, text, expressions: finder.expressions, bodies: finder.bodies })
    }

    /// The bytes between two places.
    pub(crate) fn bytes(&self, span: &Range<Place>) -> Range<usize> {
        let at = |(line, column): Place| {
            let start = self.lines[line - 1];
            let mut characters = self.text[start..].char_indices();
            start + characters.nth(column - 1).map_or(self.text.len() - start, |(index, _)| index)
        };
        at(span.start)..at(span.end)
    }

    /// The function around some bytes: the outermost.
    fn body(&self, span: &Range<usize>) -> Option<&Body> {
        self.bodies.iter().find(|body| covers(&body.inner, span))
    }

    /// The text on which the meaning of these bytes depends most: of the function, or of the file.
    pub(crate) fn around(&self, span: &Range<usize>) -> &str {
        self.body(span).map_or(&self.text, |body| &self.text[body.inner.clone()])
    }

    /// Whether the compiler may work out what is here, where no switch is ever on.
    pub(crate) fn is_const(&self, span: &Range<usize>) -> bool {
        self.body(span).is_none_or(|body| body.is_const)
    }

    /// What is switched for a mutant; `None` outside functions.
    pub(crate) fn host(&self, span: &Range<usize>, reach: Reach) -> Option<Host> {
        let body = self.body(span)?;
        let inside = self.expressions.iter().filter(|host| {
            reach == Reach::Expression
                && covers(&host.range, span)
                && covers(&body.inner, &host.range)
        });
        let whole = || Host { range: body.inner.clone(), enclosed: ("", "") };
        Some(inside.min_by_key(|host| host.range.len()).cloned().unwrap_or_else(whole))
    }

    /// The text with some bytes replaced.
    pub(crate) fn replaced(&self, span: &Range<usize>, replacement: &str) -> String {
        substituted(&self.text, &(0..self.text.len()), span, replacement)
    }

    /// The text with all these switches.
    pub(crate) fn switched(&self, mut switches: Vec<Switch>) -> (String, Vec<Laid>) {
        switches.sort_by_key(|switch| {
            let range = &switch.host.range;
            // Of one range, a body first: it stands where an enclosed choice may.
            (range.start, Reverse(range.end), switch.host.enclosed.0.len(), switch.number)
        });
        let mut writer = Writer { text: &self.text, out: String::new(), laid: Vec::new() };
        writer.write(&(0..self.text.len()), &switches);
        (writer.out, writer.laid)
    }
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn substituted(text: &str, range: &Range<usize>, span: &Range<usize>, replacement: &str) -> String {
    // With spaces, so that nothing grows together with what stands beside it.
    [&text[range.start..span.start], " ", replacement, " ", &text[span.end..range.end]].concat()
}

struct Writer<'a> {
    text: &'a str,
    out: String,
    laid: Vec<Laid>,
}

impl Writer<'_> {
    /// Writes a part of the text, with the switches that lie in it.
    fn write(&mut self, range: &Range<usize>, mut switches: &[Switch]) {
        let mut position = range.start;
        while let Some(first) = switches.first() {
            let host = &first.host;
            let within = switches.partition_point(|other| other.host.range.start < host.range.end);
            let same = switches.partition_point(|other| {
                (other.host.range.start, Reverse(other.host.range.end))
                    <= (host.range.start, Reverse(host.range.end))
            });
            self.out.push_str(&self.text[position..host.range.start]);
            self.choice(host, &switches[..same], &switches[same..within]);
            position = host.range.end;
            switches = &switches[within..];
        }
        self.out.push_str(&self.text[position..range.end]);
    }

    /// Writes a choice: a mutant for each of `same`, else the original with what is switched `within`.
    fn choice(&mut self, host: &Host, same: &[Switch], within: &[Switch]) {
        let whole = self.out.len();
        self.out.push_str(host.enclosed.0);
        for Switch { number, span, replacement, .. } in same {
            self.out.push_str(&format!("if ::mutant_switch::on({number}) {{"));
            let start = self.out.len();
            self.out.push_str(&substituted(self.text, &host.range, span, replacement));
            let range = start..self.out.len();
            self.laid.push(Laid { number: *number, range, is_own: true });
            self.out.push_str("\n} else ");
        }
        self.out.push('{');
        self.write(&host.range, within);
        self.out.push_str("\n}");
        self.out.push_str(host.enclosed.1);
        let range = whole..self.out.len();
        let laid = same.iter().map(|switch| Laid {
            number: switch.number,
            range: range.clone(),
            is_own: false,
        });
        self.laid.extend(laid);
    }
}

/// The mutants that an error at these bytes comes from: the one whose own text it is in, or all of the innermost
/// choice around it.
pub(crate) fn guilty(laid: &[Laid], error: &Range<usize>) -> (Vec<usize>, bool) {
    let around = |is_own: bool| {
        let around = laid.iter().filter(|it| it.is_own == is_own && covers(&it.range, error));
        around.collect::<Vec<_>>()
    };
    let of = |found: Vec<&Laid>| {
        let least = found.iter().map(|it| it.range.len()).min();
        let innermost = found.into_iter().filter(|it| Some(it.range.len()) == least);
        innermost.map(|it| it.number).collect::<Vec<_>>()
    };
    let own = around(true);
    if own.is_empty() { (of(around(false)), false) } else { (of(own), true) }
}

/// Finds functions and expressions.
#[derive(Default)]
struct Finder {
    expressions: Vec<Host>,
    bodies: Vec<Body>,
    /// The next expression is a statement or a match arm's: braces may stand there, and a comma need not.
    stands_alone: bool,
}

impl Finder {
    fn body(&mut self, block: &syn::Block, signature: &syn::Signature) {
        let braces = block.brace_token.span;
        let inner = braces.open().byte_range().end..braces.close().byte_range().start;
        self.bodies.push(Body { inner, is_const: signature.constness.is_some() });
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.block, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.block, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(block, &item.sig);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        self.stands_alone = matches!(statement, syn::Stmt::Expr(..));
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.visit_pat(&arm.pat);
        if let Some((_, guard)) = &arm.guard {
            self.visit_expr(guard);
        }
        self.stands_alone = true;
        self.visit_expr(&arm.body);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let alone = std::mem::take(&mut self.stands_alone);
        if !is_chain(expression) {
            let enclosed = if alone { ("{ ", " }") } else { ("(", ")") };
            let range = expression.span().byte_range();
            self.expressions.push(Host { range, enclosed });
        }
        visit::visit_expr(self, expression);
    }

    // What the compiler works out, where a switch would never be on: what is around it is switched.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_type(&mut self, _: &'ast syn::Type) {}
}

/// Whether it binds names by `let`, which may stand only where a condition is.
fn is_chain(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            is_chain(&binary.left) || is_chain(&binary.right)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with a switch for each `what`, which is replaced.
    fn switched(text: &str, changes: &[(&str, &str, Reach)]) -> (String, Vec<Laid>) {
        let source = Source::parse(text.to_owned()).expect("is Rust");
        let switch = |(number, (what, replacement, reach)): (usize, &(&str, &str, Reach))| {
            let start = text.find(what).expect("is in the text");
            let span = start..start + what.len();
            let host = source.host(&span, *reach).expect("is in a function");
            Switch { number, host, span, replacement: (*replacement).to_owned() }
        };
        source.switched(changes.iter().enumerate().map(switch).collect())
    }

    /// The same in one line.
    fn line(text: &str, changes: &[(&str, &str, Reach)]) -> String {
        let (out, _) = switched(text, changes);
        syn::parse_file(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_expression_is_switched_where_it_stands() {
        let change = ("+", "-", Reach::Expression);
        assert_eq!(
            line("fn f(a: u8) -> u8 { 2 * (a + 1) }", &[change]),
            "fn f(a: u8) -> u8 { 2 * ((if ::mutant_switch::on(0) {a - 1 } else {a + 1 })) }"
        );
        assert_eq!(
            line("fn f(a: u8) -> u8 { a + 1 }", &[change]),
            "fn f(a: u8) -> u8 { { if ::mutant_switch::on(0) {a - 1 } else {a + 1 } } }"
        );
    }

    #[test]
    fn a_body_is_switched_with_what_is_switched_in_it() {
        let changes = [("a + b", "7", Reach::Body), ("+", "*", Reach::Expression)];
        assert_eq!(
            line("fn f(a: u8, b: u8) -> u8 { a + b }", &changes),
            "fn f(a: u8, b: u8) -> u8 {if ::mutant_switch::on(0) { 7 } else { \
             { if ::mutant_switch::on(1) {a * b } else {a + b } } }}"
        );
    }

    #[test]
    fn several_changes_of_one_expression_are_one_choice() {
        let changes = [("<", ">", Reach::Expression), ("<", "==", Reach::Expression)];
        let text = line("fn f(a: u8) -> bool { !(a < 1) }", &changes);
        assert!(
            text.contains("{a > 1 } else if ::mutant_switch::on(1) {a == 1 } else {a < 1 }"),
            "{text}"
        );
    }

    #[test]
    fn matches_stay_statements_and_arms_need_no_commas() {
        let arm = ("0 => 1,", "", Reach::Expression);
        let text = "fn f(a: u8) -> u8 { match a { 9 => match a { 0 => 1, _ => 2 } _ => 3 } }";
        assert!(line(text, &[arm]).contains("9 => { if"));
        let text = "fn f(a: u8) -> u8 { match a { 0 => 1, _ => 2 }; 4 }";
        assert!(line(text, &[arm]).contains("{ { if"));
    }

    #[test]
    fn a_condition_that_binds_names_is_switched_as_a_whole() {
        let text = "fn f(a: Option<u8>) -> u8 { if let Some(b) = a && b > 1 { b } else { 0 } }";
        let changes = [("&&", "||", Reach::Expression), ("> 1", "< 1", Reach::Expression)];
        let out = switched(text, &changes).0;
        assert!(
            out.contains("{ if ::mutant_switch::on(0) {if let Some(b) = a  ||  b > 1"),
            "{out}"
        );
        assert!(out.contains("&& (if ::mutant_switch::on(1) {b  < 1 "), "{out}");
    }

    #[test]
    fn what_the_compiler_works_out_is_not_switched_there() {
        let text =
            "const A: u8 = 1 + 2;\nfn f() -> [u8; 3] { [0; 1 + 2] }\nconst fn g() -> u8 { 4 }";
        let source = Source::parse(text.to_owned()).expect("is Rust");
        let of = |what: &str| {
            let start = text.find(what).expect("is in the text");
            start..start + what.len()
        };
        assert_eq!(source.host(&of("1 + 2"), Reach::Expression), None);
        let host = source.host(&of("0; 1 + 2"), Reach::Expression).expect("is in a function");
        assert_eq!(&text[host.range], "[0; 1 + 2]");
        assert!(source.is_const(&of("1 + 2")) && source.is_const(&of("4")));
        assert!(!source.is_const(&of("0; ")));
        assert_eq!(source.around(&of("0; ")), " [0; 1 + 2] ");
    }

    #[test]
    fn places_are_counted_in_characters() {
        let source = Source::parse("// é\nfn é() { 1 }\n".to_owned()).expect("is Rust");
        let span = source.bytes(&((2, 10)..(2, 11)));
        assert_eq!(source.replaced(&span, "2"), "// é\nfn é() {  2  }\n");
    }

    #[test]
    fn errors_are_found_in_the_mutants_they_come_from() {
        let text = "fn f(a: u8) -> u8 { a + 1 }\nfn g() {}\n";
        let (out, laid) =
            switched(text, &[("a + 1", "9", Reach::Body), ("+", "-", Reach::Expression)]);
        let of = |what: &str| {
            let start = out.find(what).expect("is in the text");
            guilty(&laid, &(start..start + what.len()))
        };
        assert_eq!(of("9"), (vec![0], true));
        assert_eq!(of("a  -  1"), (vec![1], true));
        assert_eq!(of("a + 1"), (vec![1], false));
        assert_eq!(of("{ if"), (vec![1], false));
        assert_eq!(of("fn g"), (vec![], false));
    }
}
