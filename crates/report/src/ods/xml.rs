//! Cells of a sheet as XML.

/// How every part begins.
pub(super) const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// Nothing.
    Empty,
    /// A text.
    Text(String),
    /// A text in bold.
    Head(String),
    /// A number to its last digit.
    Number(f64),
    /// A formula, without its value.
    Formula(String),
    /// A formula over whole ranges at once, without its value.
    Matrix(String),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn head(text: impl Into<String>) -> Self {
        Self::Head(text.into())
    }

    fn xml(&self) -> String {
        let text = |style: &str, text: &str| {
            let text = escaped(text);
            format!(
                "<table:table-cell{style} office:value-type=\"string\"><text:p>{text}</text:p></table:table-cell>"
            )
        };
        match self {
            Self::Empty => "<table:table-cell/>".to_owned(),
            Self::Text(content) => text("", content),
            Self::Head(content) => text(" table:style-name=\"head\"", content),
            Self::Number(value) => {
                format!("<table:table-cell office:value-type=\"float\" office:value=\"{value}\"/>")
            }
            Self::Formula(formula) => {
                format!("<table:table-cell table:formula=\"{}\"/>", escaped(formula))
            }
            Self::Matrix(formula) => format!(
                "<table:table-cell table:formula=\"{}\" table:number-matrix-columns-spanned=\"1\" \
                 table:number-matrix-rows-spanned=\"1\"/>",
                escaped(formula)
            ),
        }
    }
}

/// A sheet of these rows; `shapes` lie over them.
pub(super) fn sheet(name: &str, rows: &[Vec<Cell>], shapes: &str) -> String {
    let row = |row: &Vec<Cell>| {
        let cells: String = row.iter().map(Cell::xml).collect();
        format!("<table:table-row>{cells}</table:table-row>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    let rows = if rows.is_empty() {
        "<table:table-row><table:table-cell/></table:table-row>\n"
    } else {
        &rows
    };
    let name = escaped(name);
    format!(
        "<table:table table:name=\"{name}\">{shapes}<table:table-column/>\n{rows}</table:table>\n"
    )
}

/// A text within XML; letters that XML has no place for are left out.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

/// The name of a column, from 0: `A`, `Z`, `AA`.
pub(super) fn column(mut at: usize) -> String {
    let mut name = Vec::new();
    loop {
        name.push(b'A' + (at % 26) as u8);
        if at < 26 {
            break;
        }
        at = at / 26 - 1;
    }
    name.reverse();
    String::from_utf8(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_names() {
        assert_eq!(
            [0, 25, 26, 51, 52, 701, 702].map(column),
            ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]
        );
    }

    #[test]
    fn nothing_breaks_out_of_a_cell() {
        let cell = Cell::text("</text:p>\u{1}\"&\n");
        assert!(cell.xml().contains("&lt;/text:p&gt;&quot;&amp; </text:p>"), "{}", cell.xml());
    }
}
