//! JSON by hand: the few shapes that this command prints.

use std::fmt::Write;

/// A value as JSON text.
pub(super) fn text(value: &str) -> String {
    let mut out = String::from('"');
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Writing to a string does not fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number, or null for what is none.
pub(super) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "null".into() }
}

/// A list of values that are JSON already.
pub(super) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// An object of values that are JSON already.
pub(super) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let field = |(key, value): (&str, String)| format!("{}: {value}", text(key));
    format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        assert_eq!(text("a \"b\" \\ \n\u{1}"), r#""a \"b\" \\ \n\u0001""#);
        assert_eq!(number(f64::NAN), "null");
        let made = object([("a", list([number(1.5), number(2.0)])), ("b", text("c"))]);
        assert_eq!(made, r#"{"a": [1.5, 2], "b": "c"}"#);
    }
}
