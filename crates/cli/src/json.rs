//! JSON documents as text: pretty, and ending with a newline.

use serde_json::Value;

pub(crate) fn pretty(document: &Value) -> String {
    raidlab_results::json::to_text(document).expect("a value has only keys that are texts")
}

/// Seconds to a thousandth, as many as a clock is good for.
pub(crate) fn millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_number_is_null_and_text_is_escaped() {
        let text = pretty(&json!({ "b": [1.5, f64::NAN], "a": "x \"y\"\n" }));
        assert_eq!(
            text,
            "{\n  \"a\": \"x \\\"y\\\"\\n\",\n  \"b\": [\n    1.5,\n    null\n  ]\n}\n"
        );
    }
}
