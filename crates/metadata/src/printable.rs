//! Names that devices carry, as text that may be printed anywhere.

/// A name from a device as text of one line: what is no text is replaced, and characters that a terminal or a file of
/// lines would obey (controls, separators of lines, changes of the direction of writing) are escaped as Rust writes
/// them.
pub fn printable(name: &[u8]) -> String {
    let is_obeyed = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut text = String::new();
    for letter in String::from_utf8_lossy(name).chars() {
        match is_obeyed(letter) {
            true => text.extend(letter.escape_default()),
            false => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("nas:data é 数".as_bytes()), "nas:data é 数");
        assert_eq!(printable(b"a\nb\x1b[31m\r\t\x7f"), "a\\nb\\u{1b}[31m\\r\\t\\u{7f}");
        assert_eq!(printable("\u{9b}2J\u{202e}\u{2028}".as_bytes()), "\\u{9b}2J\\u{202e}\\u{2028}");
        assert_eq!(printable(b"a\xff"), "a\u{fffd}");
    }
}
