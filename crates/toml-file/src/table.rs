//! A table of the file, read key by key: every error knows its line and key.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use raidlab_core::Size;
use raidlab_core::suggest::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Fault, FileError, Source, Wrong};

/// A unit: its name in files, and what one of it is in the base unit.
pub type Unit = (&'static str, f64);

/// A table of the file, whose errors become `E`.
#[derive(Debug)]
pub struct Table<'a, E> {
    source: &'a Source<'a>,
    table: &'a DeTable<'a>,
    /// The line it starts at.
    pub line: u32,
    /// What its list or its key is called, such as `layouts`; empty for the file itself.
    pub name: &'static str,
    /// Keys that are read as if they were not there.
    hidden: Vec<String>,
    errors: PhantomData<fn() -> E>,
}

impl<'a, E: FileError> Table<'a, E> {
    /// The whole file.
    pub fn root(source: &'a Source<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Self::of(source, document.get_ref(), 1, "")
    }

    fn of(source: &'a Source<'a>, table: &'a DeTable<'a>, line: u32, name: &'static str) -> Self {
        Self { source, table, line, name, hidden: Vec::new(), errors: PhantomData }
    }

    /// The same table as if it had no such key: what else is wrong with it shows then.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let mut hidden = self.hidden.clone();
        hidden.push(key.to_owned());
        Self { hidden, ..Self::of(self.source, self.table, self.line, self.name) }
    }

    fn is_hidden(&self, key: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == key)
    }

    /// What the file is called.
    pub fn path(&self) -> &'a str {
        self.source.path
    }

    /// A key of this table with the table's name, as errors have it.
    pub fn key(&self, key: &str) -> String {
        if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) }
    }

    /// The line of a key's value, or of the table where it is absent.
    pub fn line_at(&self, key: &str) -> u32 {
        self.find(key).map_or(self.line, |value| self.line_of(value))
    }

    /// The keys in the order of the file, each with its line.
    pub fn keys(&self) -> Vec<(&'a str, u32)> {
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        keys.into_iter()
            .map(|key| (key.get_ref().as_ref(), self.source.line(key.span().start)))
            .collect()
    }

    /// The value of a key as it stands.
    pub fn value(&self, key: &str) -> Option<&'a DeValue<'a>> {
        self.find(key).map(Spanned::get_ref)
    }

    fn wrong(&self, fault: Fault, key: &str, reason: impl Into<String>) -> E {
        self.wrong_at(fault, self.line_at(key), key, reason)
    }

    fn wrong_at(&self, fault: Fault, line: u32, key: &str, reason: impl Into<String>) -> E {
        let (path, key, reason) = (self.source.path.to_owned(), self.key(key), reason.into());
        E::of(Wrong { fault, path, line: Some(line), key, reason, syntax: None })
    }

    /// An error for each key that means nothing here, with the one that was probably meant.
    pub fn unknown_keys(&self, known: &[&str]) -> Vec<E> {
        let unknown = self.keys().into_iter().filter(|(key, _)| !known.contains(key));
        let errors = unknown.map(|(key, line)| {
            let hint = did_you_mean(key, known);
            let reason = format!("unknown key{hint}; known here: {}", known.join(", "));
            self.wrong_at(Fault::UnknownKey, line, key, reason)
        });
        errors.collect()
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Whether the key is there and holds a list.
    pub fn is_list(&self, key: &str) -> bool {
        self.find(key).is_some_and(|value| matches!(value.get_ref(), DeValue::Array(_)))
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(text)),
            other => Err(self.wrong_type(key, value, other, "a text in quotes")),
        }
    }

    /// All keys but some, with their values as text, in the order of the file: texts as they are, whole
    /// numbers, `true` and `false`.
    pub fn parameters(&self, but: &[&str]) -> Result<Vec<(String, String)>, E> {
        let mut pairs: Vec<_> = self.table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        let mut parameters = Vec::new();
        for (key, value) in pairs {
            let key = key.get_ref().as_ref();
            if but.contains(&key) || self.is_hidden(key) {
                continue;
            }
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Boolean(flag) => flag.to_string(),
                DeValue::Integer(_) if key != "span" => {
                    self.integer_value(key, value, 0..=u64::MAX).map(|number| number.to_string())?
                }
                other => return Err(self.wrong_type(key, value, other, "a text in quotes")),
            };
            parameters.push((key.to_string(), text));
        }
        Ok(parameters)
    }

    /// A text that is neither absent nor empty; `example` shows how it is written.
    pub fn required_text(&self, key: &str, example: &str) -> Result<&'a str, E> {
        match self.text(key)? {
            None => Err(self.missing(key, example)),
            Some(text) => self.not_empty(key, text),
        }
    }

    /// A name that is not empty, where there is one.
    pub fn optional_name(&self, key: &str) -> Result<Option<&'a str>, E> {
        self.text(key)?.map(|text| self.not_empty(key, text)).transpose()
    }

    /// A whole number within a range.
    pub fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, E> {
        self.find(key).map(|value| self.integer_value(key, value, range)).transpose()
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            other => Err(self.wrong_type(key, value, other, "true or false")),
        }
    }

    /// A finite number above 0.
    pub fn number(&self, key: &str) -> Result<Option<f64>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        let Some((text, number)) = real(value.get_ref()) else {
            return Err(self.wrong_type(key, value, value.get_ref(), "a number"));
        };
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        number.map(Some).ok_or_else(|| {
            self.wrong(Fault::WrongValue, key, format!("{text} is not a number above 0"))
        })
    }

    /// A size above nothing, such as `"4GiB"`.
    pub fn size(&self, key: &str) -> Result<Option<Size>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        let DeValue::String(text) = value.get_ref() else {
            let found = value.get_ref().type_str();
            let reason = format!("found {found}; write a size with its unit, such as \"64KiB\"");
            return Err(self.wrong(Fault::WrongUnit, key, reason));
        };
        let size: Size =
            text.parse().map_err(|reason| self.wrong(Fault::WrongUnit, key, reason))?;
        if size.0 == 0 {
            return Err(self.wrong(Fault::WrongValue, key, "must be more than nothing"));
        }
        Ok(Some(size))
    }

    /// A number from 0 up with its unit, such as `{ mb_per_s = 47.1 }`: which of the units, and how many.
    pub fn amount(&self, key: &str, units: &'static [Unit]) -> Result<Option<(Unit, f64)>, E> {
        self.find(key).map(|value| self.amount_value(key, value, units)).transpose()
    }

    /// A percentage of an error: a number from 0 up, with `%` behind it in a text.
    pub fn error_percent(&self, key: &str) -> Result<Option<f64>, E> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let number = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
        let number = number.filter(|number| (0.0..1e9).contains(number));
        number.map(Some).ok_or_else(|| {
            let reason = format!("`{text}` is not a percentage; write for instance \"8.5%\"");
            self.wrong(Fault::WrongUnit, key, reason)
        })
    }

    /// A list of numbers with their units, not empty.
    pub fn amounts(
        &self,
        key: &str,
        units: &'static [Unit],
    ) -> Result<Option<Vec<(Unit, f64)>>, E> {
        let unit = units.first().map_or("", |unit| unit.0);
        let example = format!("[{{ {unit} = 30 }}, {{ {unit} = 70 }}]");
        let Some(items) = self.list(key, &example)? else { return Ok(None) };
        items
            .iter()
            .map(|item| self.amount_value(key, item, units))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// A list of texts, not empty, each with its line.
    pub fn texts(&self, key: &str, example: &str) -> Result<Option<Vec<(&'a str, u32)>>, E> {
        let Some(items) = self.list(key, example)? else { return Ok(None) };
        let texts = items.iter().map(|item| match item.get_ref() {
            DeValue::String(text) => Ok((text.as_ref(), self.line_of(item))),
            other => Err(self.wrong_type(key, item, other, "a text in quotes")),
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// A list of whole numbers, not empty, each with its line.
    pub fn integers(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        example: &str,
    ) -> Result<Option<Vec<(u64, u32)>>, E> {
        let Some(items) = self.list(key, example)? else { return Ok(None) };
        let numbers = items.iter().map(|item| {
            let number = self.integer_value(key, item, range.clone())?;
            Ok((number, self.line_of(item)))
        });
        numbers.collect::<Result<_, _>>().map(Some)
    }

    /// A table under a key; `example` shows how it is written.
    pub fn table(&self, key: &'static str, example: &str) -> Result<Option<Table<'a, E>>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Table(table) => {
                Ok(Some(Table::of(self.source, table, self.line_of(value), key)))
            }
            other => {
                Err(self.wrong_type(key, value, other, &format!("a table, such as {example}")))
            }
        }
    }

    /// A list of tables; none where the key is absent.
    pub fn optional_tables(&self, key: &'static str) -> Result<Vec<Table<'a, E>>, E> {
        if self.has(key) { self.tables(key) } else { Ok(Vec::new()) }
    }

    /// A list of tables, at least one.
    pub fn tables(&self, key: &'static str) -> Result<Vec<Table<'a, E>>, E> {
        let wanted = format!("a list of tables, each headed [[{key}]]");
        let Some(value) = self.find(key) else {
            let reason = format!("there is none; add at least one table headed [[{key}]]");
            return Err(self.wrong(Fault::MissingKey, key, reason));
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, value.get_ref(), &wanted));
        };
        if items.is_empty() {
            let reason = format!("the list is empty; add at least one table headed [[{key}]]");
            return Err(self.wrong(Fault::MissingKey, key, reason));
        }
        let tables = items.iter().map(|item| match item.get_ref() {
            DeValue::Table(table) => Ok(Table::of(self.source, table, self.line_of(item), key)),
            other => Err(self.wrong_type(key, item, other, &wanted)),
        });
        tables.collect()
    }

    /// Notes the lines of this table, if it has a name, and of its keys.
    pub fn record_lines(&self, name: &str, lines: &mut BTreeMap<String, u32>) {
        let prefix = if name.is_empty() { String::new() } else { format!("{name}.") };
        if !name.is_empty() {
            lines.insert(name.to_string(), self.line);
        }
        for (key, value) in self.table {
            lines.insert(format!("{prefix}{}", key.get_ref()), self.line_of(value));
        }
    }

    /// The error for a key that must be there.
    pub fn missing(&self, key: &str, example: &str) -> E {
        self.wrong(Fault::MissingKey, key, format!("missing; write for instance {example}"))
    }

    fn find(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        let found = self.table.iter().find(|(name, _)| name.get_ref() == key);
        found.filter(|_| !self.is_hidden(key)).map(|(_, value)| value)
    }

    fn line_of<T>(&self, value: &Spanned<T>) -> u32 {
        self.source.line(value.span().start)
    }

    fn not_empty(&self, key: &str, text: &'a str) -> Result<&'a str, E> {
        if text.trim().is_empty() {
            return Err(self.wrong(Fault::WrongValue, key, "must not be empty"));
        }
        Ok(text)
    }

    fn list(&self, key: &str, example: &str) -> Result<Option<&'a [Spanned<DeValue<'a>>]>, E> {
        let Some(value) = self.find(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Array(items) if items.is_empty() => {
                let reason = format!("the list is empty; write for instance {example}");
                Err(self.wrong(Fault::WrongValue, key, reason))
            }
            DeValue::Array(items) => Ok(Some(items)),
            other => Err(self.wrong_type(key, value, other, &format!("a list, such as {example}"))),
        }
    }

    fn integer_value(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        range: RangeInclusive<u64>,
    ) -> Result<u64, E> {
        let DeValue::Integer(integer) = value.get_ref() else {
            return Err(self.wrong_type(key, value, value.get_ref(), "a whole number"));
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        number.filter(|number| range.contains(number)).ok_or_else(|| {
            let (from, to) = (range.start(), range.end());
            let reason = format!("{integer} is out of range; from {from} to {to}");
            self.wrong_at(Fault::WrongValue, self.line_of(value), key, reason)
        })
    }

    fn amount_value(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        units: &'static [Unit],
    ) -> Result<(Unit, f64), E> {
        let names: Vec<&str> = units.iter().map(|unit| unit.0).collect();
        let known = names.join(" or ");
        let example = names.first().map_or(String::new(), |unit| format!("{{ {unit} = 10 }}"));
        let line = self.line_of(value);
        let DeValue::Table(table) = value.get_ref() else {
            let found = value.get_ref().type_str();
            let reason =
                format!("found {found}; write the number with its unit ({known}), as {example}");
            return Err(self.wrong_at(Fault::WrongUnit, line, key, reason));
        };
        let mut entries = table.iter();
        let (Some((name, number)), None) = (entries.next(), entries.next()) else {
            let reason = format!("must have one number with its unit ({known}), as {example}");
            return Err(self.wrong_at(Fault::WrongUnit, line, key, reason));
        };
        let name = name.get_ref().as_ref();
        let Some(unit) = units.iter().find(|unit| unit.0 == name) else {
            let hint = did_you_mean(name, &names);
            let reason = format!("`{name}` is not a unit of this{hint}; it takes {known}");
            return Err(self.wrong_at(Fault::WrongUnit, line, key, reason));
        };
        let Some((text, amount)) = real(number.get_ref()) else {
            return Err(self.wrong_type(key, number, number.get_ref(), "a number"));
        };
        let number = amount.filter(|number| (0.0..1e18).contains(number));
        let number = number.ok_or_else(|| {
            let reason = format!("{text} is not a number from 0 up");
            self.wrong_at(Fault::WrongValue, line, key, reason)
        })?;
        Ok((*unit, number))
    }

    fn wrong_type<T>(&self, key: &str, at: &Spanned<T>, found: &DeValue<'_>, wanted: &str) -> E {
        let reason = format!("found {}; must be {wanted}", found.type_str());
        self.wrong_at(Fault::WrongType, self.line_of(at), key, reason)
    }
}

/// A number as it stands in the file and how much it is, where that can be told: a whole one may be hexadecimal,
/// octal or binary. `None` of what is no number.
fn real(value: &DeValue<'_>) -> Option<(String, Option<f64>)> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => {
            Some((number.to_string(), number.as_str().parse().ok()))
        }
        DeValue::Integer(number) => {
            let amount = u64::from_str_radix(number.as_str(), number.radix()).ok();
            Some((number.to_string(), amount.map(|amount| amount as f64)))
        }
        DeValue::Float(number) => Some((number.to_string(), number.as_str().parse().ok())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Error(String);

    impl FileError for Error {
        fn of(wrong: Wrong) -> Self {
            Self(wrong.reason)
        }
    }

    /// What a number is as a plain one, and as one with a unit.
    fn both(number: &str) -> [Result<f64, String>; 2] {
        let text = format!("a = {number}\nb = {{ ms = {number} }}\n");
        let source = Source { path: "a.toml", text: &text };
        let document = source.document::<Error>().expect("TOML");
        let table: Table<'_, Error> = Table::root(&source, &document);
        let plain = table.number("a").map(|number| number.expect("there"));
        let amount = table.amount("b", &[("ms", 1e-3)]).map(|amount| amount.expect("there").1);
        [plain, amount].map(|result| result.map_err(|Error(reason)| reason))
    }

    #[test]
    fn numbers_are_what_their_radix_says() {
        for (text, number) in [
            ("0x10", 16.0),
            ("0xff", 255.0),
            ("0o17", 15.0),
            ("0b101", 5.0),
            ("0x1_0", 16.0),
            ("10", 10.0),
            ("1_000", 1000.0),
            ("+7", 7.0),
            ("1.5", 1.5),
            ("1e3", 1000.0),
        ] {
            assert_eq!(both(text), [Ok(number), Ok(number)], "{text}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_told_as_it_stands() {
        for text in ["-1", "-0.5", "0xfffffffffffffffffffff", "nan", "inf"] {
            for told in both(text) {
                let told = told.expect_err(text);
                assert!(told.starts_with(&format!("{text} is not a number")), "{told}");
            }
        }
        assert!(both("0x0")[0].as_ref().is_err_and(|told| told.contains("above 0")));
        assert_eq!(both("0x0")[1], Ok(0.0));
        for told in both("\"1\"") {
            assert!(told.expect_err("a text").contains("must be a number"));
        }
    }
}
