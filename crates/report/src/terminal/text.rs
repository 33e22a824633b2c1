//! Styled text for a terminal: its width, its breaking into lines, its escape sequences.

use crate::number::{NO_BREAK, THIN};

/// How a piece of text looks where colour is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Bold,
    Dim,
    Faster,
    Slower,
    Warning,
}

impl Style {
    /// The parameters of the "select graphic rendition" sequence (ECMA-48, 8.3.117).
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Faster => Some("32"),
            Self::Slower => Some("31"),
            Self::Warning => Some("1;33"),
        }
    }
}

/// A piece of text in one style.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

impl Span {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    /// So many spaces.
    pub(super) fn blank(columns: usize) -> Self {
        Self::new(" ".repeat(columns), Style::Plain)
    }
}

/// One line of the report.
pub(super) type Line = Vec<Span>;

/// The terminal columns that `text` takes.
///
/// Combining marks take none; East Asian wide characters and emoji two (the blocks that Unicode
/// Standard Annex 11 gives as wide, not single characters).
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The columns of all spans.
pub(super) fn line_width(line: &[Span]) -> usize {
    line.iter().map(|span| width(&span.text)).sum()
}

fn columns(char: char) -> usize {
    match u32::from(char) {
        0x0300..=0x036f | 0x1ab0..=0x1aff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 => 2,
        0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Makes text from a document fit to be shown: no control character reaches the terminal, and
/// without Unicode nothing but ASCII does.
pub(super) fn clean(text: &str, unicode: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            NO_BREAK | THIN => out.push(char),
            '\n' | '\t' => out.push(' '),
            _ if is_control(char) => out.push(if unicode { '\u{fffd}' } else { '?' }),
            _ if unicode || char.is_ascii() => out.push(char),
            '±' => out.push_str("+-"),
            'µ' => out.push('u'),
            '×' => out.push('x'),
            '–' | '—' | '−' => out.push('-'),
            '…' => out.push_str("..."),
            _ => out.push('?'),
        }
    }
    out
}

/// Control characters, and the invisible ones that turn the direction of writing around.
fn is_control(char: char) -> bool {
    let invisible = matches!(u32::from(char),
        0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2069 | 0xfeff);
    char.is_control() || invisible
}

/// Breaks text at spaces into lines of at most `room` columns; a longer word stands alone.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A line as bytes for the terminal: no-break spaces become plain ones, nothing trails.
pub(super) fn paint(line: &[Span], colour: bool) -> String {
    let blank = |span: &&Span| span.text.trim_end_matches([' ', NO_BREAK]).is_empty();
    let used = line.len() - line.iter().rev().take_while(blank).count();
    let mut out = String::new();
    for (at, span) in line[..used].iter().enumerate() {
        let mut text = span.text.replace([NO_BREAK, THIN], " ");
        if at + 1 == used {
            text.truncate(text.trim_end().len());
        }
        match span.style.code() {
            Some(code) if colour && !text.trim().is_empty() => {
                out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m"));
            }
            _ => out.push_str(&text),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_combining_characters_count_as_shown() {
        assert_eq!(width("raid5(4)"), 8);
        assert_eq!(width("größe"), 5);
        assert_eq!(width("gro\u{308}ße"), 5);
        assert_eq!(width("磁盘"), 4);
    }

    #[test]
    fn lines_break_at_spaces_but_not_before_a_unit() {
        let text = format!("it takes 12{NO_BREAK}s a-word-that-is-too-long end");
        let lines = wrap(&text, 12);
        assert_eq!(lines, ["it takes", "12\u{a0}s", "a-word-that-is-too-long", "end"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn nothing_from_a_document_steers_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}", true), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(clean("±5 µs × größe…\u{7}", false), "+-5 us x gr??e...?");
    }

    #[test]
    fn colour_only_where_asked_for() {
        let line = [Span::new("x", Style::Bold), Span::blank(3)];
        assert_eq!(paint(&line, true), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(paint(&line, false), "x");
    }
}
