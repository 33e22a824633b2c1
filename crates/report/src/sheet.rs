//! A table of texts, as comma-separated values and as a table of Markdown.

/// A table: the names of its columns, and rows of as many texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// A text for each column; what is not known is empty.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// With these columns and no rows yet.
    pub fn new(columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// As comma-separated values with a head, by RFC 4180: lines end in CR and LF, and what holds a comma, a quotation
    /// mark or the end of a line stands between quotation marks.
    pub fn csv(&self) -> String {
        let line = |fields: &Vec<String>| {
            let quoted: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
            quoted.join(",") + "\r\n"
        };
        [&self.columns].into_iter().chain(&self.rows).map(line).collect()
    }

    /// As a table of GitHub Flavored Markdown: the first column to the left, the others to the right.
    pub fn markdown(&self) -> String {
        let line = |fields: &Vec<String>| {
            let cells: String =
                fields.iter().map(|field| format!(" {} |", escaped(field))).collect();
            format!("|{cells}\n")
        };
        let sides = self.columns.iter().enumerate();
        let sides: String = sides.map(|(at, _)| if at == 0 { "---|" } else { "---:|" }).collect();
        let rows: String = self.rows.iter().map(line).collect();
        format!("{}|{sides}\n{rows}", line(&self.columns))
    }
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

/// Text that means nothing to Markdown, but for the bold of `**`, which no name should have.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '|' | '\\' | '_' | '`' | '[' | ']' | '#' | '~' => out.extend(['\\', char]),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_quoted() {
        let mut sheet = Sheet::new(["a", "b, c"]);
        sheet.rows.push(vec!["say \"x\"".into(), "two\nlines".into()]);
        sheet.rows.push(vec![String::new(), "1.5".into()]);
        let expected = "a,\"b, c\"\r\n\"say \"\"x\"\"\",\"two\nlines\"\r\n,1.5\r\n";
        assert_eq!(sheet.csv(), expected);
    }

    #[test]
    fn names_do_not_break_a_table() {
        let mut sheet = Sheet::new(["layout", "x_y"]);
        sheet.rows.push(vec!["a|b\n".into(), "<1".into()]);
        assert_eq!(sheet.markdown(), "| layout | x\\_y |\n|---|---:|\n| a\\|b  | &lt;1 |\n");
    }
}
