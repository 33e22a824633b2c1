//! The lines of a job file: sections of options, comments and variables, as fio reads them.

use super::Problem;

/// An option as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its line, from 1; 0 where there is no file.
    pub(super) line: usize,
    pub(super) key: String,
    /// `None` for a bare key.
    pub(super) value: Option<String>,
}

/// A section: `[global]`, or a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

impl Section {
    pub(super) fn is_global(&self) -> bool {
        self.name == "global"
    }
}

/// The sections in their order; what is no option of a section becomes a problem.
pub(super) fn sections(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &mut Vec<Problem>,
) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        // fio cuts a line at the first of either, wherever it stands.
        let text = text.split([';', '#']).next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        if let Some(rest) = text.strip_prefix('[') {
            match rest.rfind(']') {
                Some(end) if end > 0 => {
                    let name = rest[..end].to_string();
                    sections.push(Section { name, line, entries: Vec::new() });
                }
                _ => problems.push(Problem::new(line, text, "a section is written as [name]")),
            }
            continue;
        }
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim_start())),
            None => (text.split_whitespace().next().unwrap_or(text), None),
        };
        let Some(section) = sections.last_mut() else {
            let reason = format!("option `{key}` stands before the first [section]");
            problems.push(Problem::new(line, key, reason));
            continue;
        };
        match value.map(|value| replaced(value, variables)).transpose() {
            Ok(value) => section.entries.push(Entry { line, key: key.to_string(), value }),
            Err(reason) => problems.push(Problem::new(line, key, format!("{key}: {reason}"))),
        }
    }
    sections
}

/// The text with every `${NAME}` replaced.
fn replaced(text: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(len) = rest[start..].find('}') else {
            return Err(format!("`{text}` has a `${{` without `}}`"));
        };
        let name = &rest[start + 2..start + len];
        let value = variables(name).ok_or_else(|| {
            format!("the variable `{name}` is not set; set it in the environment")
        })?;
        result.push_str(&rest[..start]);
        result.push_str(&value);
        rest = &rest[start + len + 1..];
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_comments_bare_keys_and_variables() {
        let text = "; a comment\n# another\n[global]\n  bs = 4k ; behind\n\n[a b]\ntime_based\n\
                    size=${N}m\nname=${A}-${B}\n[c]\n";
        let mut problems = Vec::new();
        let variables = |name: &str| match name {
            "N" => Some("5".to_string()),
            "A" | "B" => Some(name.to_lowercase()),
            _ => None,
        };
        let found = sections(text, &variables, &mut problems);
        assert_eq!(problems, []);
        let entry = |line, key: &str, value: Option<&str>| Entry {
            line,
            key: key.into(),
            value: value.map(Into::into),
        };
        assert_eq!(found.len(), 3);
        assert!(found[0].is_global() && !found[1].is_global());
        assert_eq!(found[0].entries, [entry(4, "bs", Some("4k"))]);
        assert_eq!((found[1].name.as_str(), found[1].line), ("a b", 6));
        let expected = [
            entry(7, "time_based", None),
            entry(8, "size", Some("5m")),
            entry(9, "name", Some("a-b")),
        ];
        assert_eq!(found[1].entries, expected);
    }

    #[test]
    fn what_is_no_option_of_a_section_is_named() {
        let mut problems = Vec::new();
        sections("bs=1\n[a\n[]\n[b]\nsize=${NO}\nbs=${X\n", &|_| None, &mut problems);
        let found: Vec<String> =
            problems.iter().map(|one| format!("{} {}", one.line, one.reason)).collect();
        let expected = [
            "1 option `bs` stands before the first [section]",
            "2 a section is written as [name]",
            "3 a section is written as [name]",
            "5 size: the variable `NO` is not set; set it in the environment",
            "6 bs: `${X` has a `${` without `}`",
        ];
        assert_eq!(found, expected);
    }
}
