//! Pure crates: no float function whose last bits are the platform's, outside tests.
//!
//! `ln`, `sin`, `powf` and the like are whatever the C library of a machine or the compiler makes of them, and
//! `powi` multiplies in an order nobody promises. `mul_add` rounds once where a product and a sum round twice.
//! All but the last come from libm instead, whose code is the same on every target.
//!
//! Free are the operations that IEEE 754 defines to the last bit: `+ - * / %`, conversions, comparisons,
//! `sqrt`, `abs`, `floor`, `ceil`, `round`, `trunc`, `fract`. Rust never joins two of them into one.

use super::purity;
use super::rust::{RustFile, Token};
use super::tree::Breach;

const RULE: &str = "arithmetic";

/// The functions, with how many arguments each has as a method.
const FORBIDDEN: [(&str, usize); 31] = [
    ("acos", 0),
    ("acosh", 0),
    ("asin", 0),
    ("asinh", 0),
    ("atan", 0),
    ("atan2", 1),
    ("atanh", 0),
    ("cbrt", 0),
    ("cos", 0),
    ("cosh", 0),
    ("erf", 0),
    ("erfc", 0),
    ("exp", 0),
    ("exp2", 0),
    ("exp_m1", 0),
    ("gamma", 0),
    ("hypot", 1),
    ("ln", 0),
    ("ln_1p", 0),
    ("ln_gamma", 0),
    ("log", 1),
    ("log10", 0),
    ("log2", 0),
    ("mul_add", 2),
    ("powf", 1),
    ("powi", 1),
    ("sin", 0),
    ("sin_cos", 0),
    ("sinh", 0),
    ("tan", 0),
    ("tanh", 0),
];

/// Checks a file. Tokens are looked at, so that bodies of macros count too.
pub(crate) fn check(file: &RustFile<'_>) -> Vec<Breach> {
    let Some(name) = purity::pure_crate(file.path) else { return Vec::new() };
    let tokens = &file.tokens;
    let used = (0..tokens.len()).filter(|at| is_forbidden(tokens, *at));
    let used = used.map(|at| &tokens[at]).filter(|token| !file.is_test(token.line));
    let breach = |token: &Token| {
        let used = &token.text;
        let instead = if used == "mul_add" { "multiply and add" } else { "take it from libm" };
        let message = format!("{name} is pure: not `{used}` of the platform: {instead}");
        Breach::new(file.path, token.line, RULE, message)
    };
    used.map(breach).collect()
}

/// Whether the token names such a function: as a method with as many arguments, or by a path.
fn is_forbidden(tokens: &[Token], at: usize) -> bool {
    let Some((_, arguments)) = FORBIDDEN.into_iter().find(|(name, _)| tokens[at].text == *name)
    else {
        return false;
    };
    let before = |by: usize| at.checked_sub(by).map_or("", |at| tokens[at].text.as_str());
    match before(1) {
        "." => arguments_behind(&tokens[at + 1..]) == Some(arguments),
        "::" => ["f32", "f64"].contains(&if before(2) == ">" { before(3) } else { before(2) }),
        _ => false,
    }
}

/// How many arguments the parentheses hold that these tokens begin with; `None` without any.
fn arguments_behind(tokens: &[Token]) -> Option<usize> {
    if tokens.first()?.text != "(" {
        return None;
    }
    let (mut depth, mut arguments, mut begun) = (0, 0, false);
    for token in tokens {
        let is_argument = depth > 0;
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 1 => {
                begun = false;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            return Some(arguments);
        }
        if is_argument && !begun {
            (begun, arguments) = (true, arguments + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::rust::lines_of;
    use super::*;

    fn lines_in(path: &str, text: &str) -> Vec<usize> {
        lines_of(check, path, text)
    }

    #[test]
    fn every_way_to_the_functions_of_the_platform_is_a_breach() {
        for expression in [
            "x.ln()",
            "x.log(2.0)",
            "x.log(f(1.0, 2.0),)",
            "2f64.powi(3)",
            "(x / y).powf(1.5)",
            "x.mul_add(y, z)",
            "x\n.exp()",
            "y.atan2([x, y][0])",
            "f64::ln(x)",
            "std::f32::consts::PI + f32::sin(x)",
            "<f64>::cbrt(x)",
            "all.map(f64::exp)",
            "format!(\"{}\", x.sin_cos().0)",
        ] {
            let text = format!("fn f() -> f64 {{ {expression} }}\n");
            assert_eq!(lines_in("crates/models/src/a.rs", &text).len(), 1, "{expression}");
            assert_eq!(lines_in("crates/models/tests/a.rs", &text), [0; 0], "{expression}");
            assert_eq!(lines_in("crates/engine/src/a.rs", &text), [0; 0], "{expression}");
        }
    }

    #[test]
    fn exact_functions_libm_tests_and_other_things_of_the_name_are_none() {
        for text in [
            "fn f() -> f64 { x.sqrt().floor().ceil().round().trunc().abs() % 2.0 }\n",
            "fn f() -> f64 { libm::log(x) + libm::pow(x, y) }\n",
            "fn f() { rig.log().lines(); self.log(1, fua); log(&x); journal.exp = 3; }\n",
            "use crate::log::Log;\n// x.ln()\nconst TEXT: &str = \"x.ln()\";\n",
            "#[cfg(test)]\nmod tests { fn f() -> f64 { x.ln() } }\n",
        ] {
            assert_eq!(lines_in("crates/models/src/a.rs", text), [0; 0], "{text}");
        }
    }
}
