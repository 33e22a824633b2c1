//! Markdown as the documents of this repository use it: blocks of code with the comments before them,
//! and code in sentences.

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "whoever includes this uses a part")]
pub(crate) struct Block {
    /// The line of its first line, from 1.
    pub(crate) line: usize,
    /// What stands behind the fence, such as `sh`; nothing for a block that is only indented.
    pub(crate) language: String,
    /// The comments directly before it.
    pub(crate) notes: Vec<String>,
    /// Its lines, without the indentation.
    pub(crate) lines: Vec<String>,
}

/// A comment, from its first line on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "whoever includes this uses a part")]
pub(crate) struct Comment {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A document, taken apart.
#[derive(Clone, Debug, Default)]
#[allow(dead_code, reason = "whoever includes this uses a part")]
pub(crate) struct Document {
    pub(crate) blocks: Vec<Block>,
    pub(crate) comments: Vec<Comment>,
    /// Everything else by its line, from 1; what belongs to blocks and comments is empty here.
    pub(crate) prose: Vec<String>,
}

impl Document {
    /// Takes a document apart.
    pub(crate) fn parse(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut document = Self { prose: vec![String::new(); lines.len()], ..Self::default() };
        let mut notes = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at].trim_start();
            let begin = at;
            if line.starts_with("<!--") {
                let length = lines[at..].iter().take_while(|line| !line.contains("-->")).count();
                at = (at + length + 1).min(lines.len());
                let text = lines[begin..at].join("\n");
                let text = text.trim().trim_start_matches("<!--").trim_end_matches("-->");
                let text = text.trim().to_owned();
                notes.push(text.clone());
                document.comments.push(Comment { line: begin + 1, text });
            } else if let Some(language) = line.strip_prefix("```") {
                let body = lines[at + 1..].iter();
                let length = body.take_while(|line| !line.trim_start().starts_with("```")).count();
                let code = &lines[at + 1..at + 1 + length];
                at += length + 2;
                document.add(begin + 2, language.trim(), std::mem::take(&mut notes), code);
            } else if is_indented(lines[at]) && (at == 0 || lines[at - 1].trim().is_empty()) {
                let length = lines[at..]
                    .iter()
                    .take_while(|line| is_indented(line) || line.trim().is_empty())
                    .count();
                at += length;
                document.add(begin + 1, "", std::mem::take(&mut notes), &lines[begin..at]);
            } else {
                notes.clear();
                document.prose[at] = lines[at].to_owned();
                at += 1;
            }
        }
        document
    }

    fn add(&mut self, line: usize, language: &str, notes: Vec<String>, code: &[&str]) {
        let indent = |line: &&&str| line.len() - line.trim_start().len();
        let margin = code.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line));
        let margin = margin.min().unwrap_or(0);
        let lines = code.iter().map(|line| line.get(margin..).unwrap_or("").to_owned()).collect();
        self.blocks.push(Block { line, language: language.to_owned(), notes, lines });
    }

    /// The code in sentences, with its line; what is broken over lines is joined.
    pub(crate) fn spans(&self) -> Vec<(usize, String)> {
        let mut spans = Vec::new();
        for paragraph in self.paragraphs() {
            let text = self.prose[paragraph.clone()].join("\n");
            let mut line = paragraph.start + 1;
            for (number, part) in text.split('`').enumerate() {
                if number % 2 == 1 {
                    let words: Vec<&str> = part.split_whitespace().collect();
                    spans.push((line, words.join(" ")));
                }
                line += part.matches('\n').count();
            }
        }
        spans
    }

    /// Where paragraphs begin and end; a row of a table and an item of a list are each one of their own.
    fn paragraphs(&self) -> Vec<std::ops::Range<usize>> {
        let mut found: Vec<std::ops::Range<usize>> = Vec::new();
        let mut open = false;
        for (index, line) in self.prose.iter().enumerate() {
            let line = line.trim();
            let begins = ["|", "- ", "* ", "#"].iter().any(|mark| line.starts_with(mark));
            if line.is_empty() {
                open = false;
            } else if let (true, false, Some(last)) = (open, begins, found.last_mut()) {
                last.end = index + 1;
            } else {
                found.push(index..index + 1);
                open = true;
            }
        }
        found
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") && !line.trim().is_empty()
}
