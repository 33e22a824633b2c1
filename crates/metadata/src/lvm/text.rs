//! The text that LVM keeps the metadata of a volume group in: sections, and values that are numbers, strings or lists.

use std::collections::BTreeMap;
use std::fmt;

/// Sections within sections that are read: a group has volumes, these have segments.
const DEEPEST: usize = 8;
/// Names and values that are read: those of some 100,000 volumes. Each takes up to some 100 bytes of memory, of which
/// a text may have it for two of its own.
const MOST: usize = 1 << 21;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A whole number.
    Number(i64),
    /// A string, with what is no text replaced.
    Text(String),
    /// Values in brackets.
    List(Vec<Node>),
    /// Names in braces.
    Section(Section),
}

/// Names with what they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section(BTreeMap<String, Node>);

impl Section {
    /// A number that is not negative.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.get(name) {
            Some(Node::Number(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A string.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Node::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The strings of a list; of a single string that.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let mut texts = Vec::new();
        for node in self.list(name) {
            if let Node::Text(text) = node {
                texts.push(text.as_str());
            }
        }
        texts
    }

    /// The values of a list; of a value that is none that one.
    pub fn list(&self, name: &str) -> Vec<&Node> {
        match self.0.get(name) {
            Some(Node::List(all)) => all.iter().collect(),
            Some(Node::Section(_)) | None => Vec::new(),
            Some(one) => vec![one],
        }
    }

    /// A section.
    pub fn section(&self, name: &str) -> Option<&Section> {
        match self.0.get(name) {
            Some(Node::Section(section)) => Some(section),
            _ => None,
        }
    }

    /// All sections, by their names.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &Section)> {
        self.0.iter().filter_map(|(name, node)| match node {
            Node::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }
}

/// Why bytes are no such text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Which byte is the first that cannot be there.
    pub at: usize,
    /// What should be there instead.
    pub what: &'static str,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of its text: {}", self.at, self.what)
    }
}

/// Reads a text; a zero byte ends it.
///
/// # Errors
/// The first byte that cannot be there.
pub fn parse(bytes: &[u8]) -> Result<Section, Wrong> {
    let mut reader = Reader { bytes, at: 0, count: 0 };
    reader.section(0)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Names and values that were read.
    count: usize,
}

/// Whether a byte may stand in a name.
const fn names(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.' | b'/')
}

impl Reader<'_> {
    fn wrong<T>(&self, what: &'static str) -> Result<T, Wrong> {
        Err(Wrong { at: self.at, what })
    }

    /// The next byte that is neither space nor of a comment; `None` at the end.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at)? {
                0 => return None,
                b'#' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Has one more name or value.
    fn counted(&mut self) -> Result<(), Wrong> {
        self.count += 1;
        if self.count > MOST {
            return self.wrong("there are more names and values than are read");
        }
        Ok(())
    }

    /// Whether this byte is next, which is then behind.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// What stands between braces, or in the whole text, which has no brace at its end.
    fn section(&mut self, depth: usize) -> Result<Section, Wrong> {
        let mut section = Section::default();
        if depth > DEEPEST {
            return self.wrong("sections lie deeper within each other than LVM makes them");
        }
        loop {
            match self.peek() {
                None if depth == 0 => return Ok(section),
                None => return self.wrong("the text ends within a section"),
                Some(b'}') if depth > 0 => {
                    self.at += 1;
                    return Ok(section);
                }
                Some(_) => {}
            }
            let at = self.at;
            let name = self.name()?;
            let node = match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    Node::Section(self.section(depth + 1)?)
                }
                Some(b'=') => {
                    self.at += 1;
                    self.value()?
                }
                _ => return self.wrong("a `=` or `{` is missing behind a name"),
            };
            if section.0.insert(name, node).is_some() {
                return Err(Wrong { at, what: "a name stands twice in a section" });
            }
        }
    }

    fn name(&mut self) -> Result<String, Wrong> {
        self.counted()?;
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|byte| !names(*byte)).unwrap_or(rest.len());
        if len == 0 {
            return self.wrong("a name is missing");
        }
        self.at += len;
        Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    fn value(&mut self) -> Result<Node, Wrong> {
        if !self.takes(b'[') {
            return self.single();
        }
        let mut all = Vec::new();
        while !self.takes(b']') {
            if !all.is_empty() && !self.takes(b',') {
                return self.wrong("a `,` or `]` is missing in a list");
            }
            // A list may end with a comma.
            if !self.takes(b']') {
                all.push(self.single()?);
                continue;
            }
            break;
        }
        Ok(Node::List(all))
    }

    fn single(&mut self) -> Result<Node, Wrong> {
        self.counted()?;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => {
                let rest = &self.bytes[self.at..];
                let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
                let len = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let number = std::str::from_utf8(&rest[..len]).ok().and_then(|n| n.parse().ok());
                let Some(number) = number else {
                    return self.wrong("a number is not a whole one, or too large");
                };
                self.at += len;
                Ok(Node::Number(number))
            }
            _ => self.wrong("a value is missing"),
        }
    }

    /// Between quotes, where a backslash takes its meaning from what follows.
    fn string(&mut self) -> Result<Node, Wrong> {
        let mut text = Vec::new();
        let mut rest = self.bytes[self.at + 1..].iter();
        loop {
            match rest.next() {
                None | Some(0) => return self.wrong("a string has no end"),
                Some(b'"') => break,
                Some(b'\\') => text.extend(rest.next()),
                Some(byte) => text.push(*byte),
            }
        }
        self.at = self.bytes.len() - rest.len();
        Ok(Node::Text(String::from_utf8_lossy(&text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> (usize, &'static str) {
        let wrong = parse(text.as_bytes()).expect_err(text);
        (wrong.at, wrong.what)
    }

    #[test]
    fn what_lvm_writes_is_read() {
        let text = "vg {\nid = \"a\\\"b\\\\c\" # \"}\nseqno = 42\nflags = []\nstatus = [\"READ\", \"WRITE\"]\n\
                    lv-1_x+y. {\nstripes = [\n\"pv0\", 7,\n]\nempty {\n}\n}\n}\n# Generated\n\n\
                    contents = \"Text\"\0\0}";
        let all = parse(text.as_bytes()).expect("is right");
        assert_eq!(all.text("contents"), Some("Text"));
        let group = all.section("vg").expect("is there");
        assert_eq!((group.text("id"), group.number("seqno")), (Some("a\"b\\c"), Some(42)));
        assert_eq!((group.texts("flags"), group.texts("status")), (vec![], vec!["READ", "WRITE"]));
        let volume = group.section("lv-1_x+y.").expect("is there");
        let stripes = volume.list("stripes");
        assert_eq!(stripes, [&Node::Text("pv0".into()), &Node::Number(7)]);
        assert_eq!(volume.sections().map(|(name, _)| name).collect::<Vec<_>>(), ["empty"]);
        assert_eq!(group.number("id"), None);
        assert_eq!(parse(b"a = -3").expect("is right").number("a"), None);
        assert_eq!(parse(b"").expect("is right"), Section::default());
    }

    #[test]
    fn what_cannot_be_is_named_with_its_byte() {
        assert_eq!(wrong("vg {\n a = 1"), (11, "the text ends within a section"));
        assert_eq!(wrong("a = 1 }"), (6, "a name is missing"));
        assert_eq!(wrong("a 1"), (2, "a `=` or `{` is missing behind a name"));
        assert_eq!(wrong("a = "), (4, "a value is missing"));
        assert_eq!(wrong("a = [1 2]"), (7, "a `,` or `]` is missing in a list"));
        assert_eq!(wrong("a = [1"), (6, "a `,` or `]` is missing in a list"));
        assert_eq!(wrong("a = \"b\0\""), (4, "a string has no end"));
        assert_eq!(wrong("a = \"b\\"), (4, "a string has no end"));
        assert_eq!(wrong("a = 1\na = 2"), (6, "a name stands twice in a section"));
        let number = "a number is not a whole one, or too large";
        assert_eq!(wrong("a = 1.5"), (4, number));
        assert_eq!(wrong("a = 9223372036854775808"), (4, number));
        // A list takes a name and its values.
        let list = |values: usize| parse(format!("a = [{}]", "0,".repeat(values)).as_bytes());
        assert!(list(MOST - 1).is_ok());
        let many = "there are more names and values than are read";
        assert_eq!(list(MOST).err(), Some(Wrong { at: 5 + 2 * (MOST - 1), what: many }));
        let sections: String = (0..=MOST).map(|n| format!("{n}{{}}")).collect();
        assert_eq!(parse(sections.as_bytes()).err().map(|wrong| wrong.what), Some(many));
        assert_eq!(
            wrong(&"a {".repeat(100)).1,
            "sections lie deeper within each other than LVM makes them"
        );
    }
}
