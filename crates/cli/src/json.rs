//! JSON by hand: small documents whose lines are laid out for people too.

use std::fmt::Write;

/// A value as JSON text.
pub(crate) fn text(value: &str) -> String {
    let mut out = String::from('"');
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Writing to a string does not fail.
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A number, or null for what is none.
pub(crate) fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "null".into() }
}

/// A list of values that are JSON already.
pub(crate) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(", "))
}

/// The same, a line each.
pub(crate) fn lines(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(",\n  "))
}

/// An object of values that are JSON already.
pub(crate) fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let field = |(key, value): (&str, String)| format!("{}: {value}", text(key));
    format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        assert_eq!(text("a \"b\" \\ \n\u{1}"), r#""a \"b\" \\ \n\u0001""#);
        assert_eq!(text("a \"b\" \\ \n\t"), "\"a \\\"b\\\" \\\\ \\n\\u0009\"");
        assert_eq!(number(f64::NAN), "null");
        assert_eq!(object([("a", "1".into()), ("b", lines([]))]), "{\"a\": 1, \"b\": []}");
        let made = object([("a", list([number(1.5), number(2.0)])), ("b", text("c"))]);
        assert_eq!(made, r#"{"a": [1.5, 2], "b": "c"}"#);
    }
}
