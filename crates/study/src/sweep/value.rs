//! Values of keys: read from a file, put into a document, written down.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use raidlab_core::Size;
use raidlab_toml_file::{DeTable, DeValue, Spanned};
use serde::Serialize;

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A text, a size or a percentage.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A list.
    List(Vec<Self>),
    /// A table.
    Table(BTreeMap<String, Self>),
}

impl Value {
    /// That of a document; dates as text, which no study has.
    pub(crate) fn of(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Self::Text(number.to_string()), Self::Integer),
            DeValue::Float(number) => {
                number.as_str().parse().map_or_else(|_| Self::Text(number.to_string()), Self::Float)
            }
            DeValue::Boolean(flag) => Self::Boolean(*flag),
            DeValue::Datetime(date) => Self::Text(date.to_string()),
            DeValue::Array(items) => {
                Self::List(items.iter().map(|item| Self::of(item.get_ref())).collect())
            }
            DeValue::Table(table) => Self::table(table),
        }
    }

    /// A table of a document, or all of it.
    pub(crate) fn table(table: &DeTable<'_>) -> Self {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &std::borrow::Cow<'_, str> = key.get_ref();
            (key.to_string(), Self::of(value.get_ref()))
        };
        Self::Table(table.iter().map(entry).collect())
    }

    /// As TOML, on one line.
    pub(crate) fn toml(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, to: &mut String) {
        let separated = |to: &mut String, first: bool| to.push_str(if first { " " } else { ", " });
        match self {
            Self::Text(text) => quote(text, to),
            Self::Integer(number) => to.push_str(&number.to_string()),
            // With a point or an exponent, without which it would be read as a whole number.
            Self::Float(number) => to.push_str(&format!("{number:?}")),
            Self::Boolean(flag) => to.push_str(&flag.to_string()),
            Self::List(items) => {
                to.push('[');
                for (index, item) in items.iter().enumerate() {
                    to.push_str(if index == 0 { "" } else { ", " });
                    item.write(to);
                }
                to.push(']');
            }
            Self::Table(table) => {
                to.push('{');
                for (index, (key, value)) in table.iter().enumerate() {
                    separated(to, index == 0);
                    quote_key(key, to);
                    to.push_str(" = ");
                    value.write(to);
                }
                to.push_str(" }");
            }
        }
    }

    /// A table as a file: what is simple first, then lists of tables under their headings.
    pub(crate) fn file(&self) -> String {
        let Self::Table(table) = self else { return self.toml() };
        let is_list_of_tables = |value: &Self| match value {
            Self::List(items) => {
                !items.is_empty() && items.iter().all(|item| matches!(item, Self::Table(_)))
            }
            _ => false,
        };
        let mut text = String::new();
        let line = |text: &mut String, key: &str, value: &Self| {
            quote_key(key, text);
            text.push_str(" = ");
            value.write(text);
            text.push('\n');
        };
        for (key, value) in table.iter().filter(|(_, value)| !is_list_of_tables(value)) {
            line(&mut text, key, value);
        }
        for (key, value) in table.iter().filter(|(_, value)| is_list_of_tables(value)) {
            let Self::List(items) = value else { continue };
            for item in items {
                let Self::Table(entries) = item else { continue };
                text.push_str("\n[[");
                quote_key(key, &mut text);
                text.push_str("]]\n");
                entries.iter().for_each(|(key, value)| line(&mut text, key, value));
            }
        }
        text
    }
}

/// Where errors say that a value stands, all parts of it.
pub(crate) fn placed(value: DeValue<'_>, span: Range<usize>) -> Spanned<DeValue<'_>> {
    let place = |one: &mut Spanned<_>| {
        let inner = std::mem::replace(one.get_mut(), DeValue::Boolean(false));
        *one = placed(inner, span.clone());
    };
    let value = match value {
        DeValue::Array(mut items) => {
            items.iter_mut().for_each(place);
            DeValue::Array(items)
        }
        DeValue::Table(table) => {
            let mut placed = DeTable::new();
            for (key, mut value) in table {
                place(&mut value);
                placed.insert(Spanned::new(span.clone(), key.into_inner()), value);
            }
            DeValue::Table(placed)
        }
        simple => simple,
    };
    Spanned::new(span, value)
}

fn quote(text: &str, to: &mut String) {
    to.push('"');
    for sign in text.chars() {
        match sign {
            '"' | '\\' => to.extend(['\\', sign]),
            sign if sign.is_control() => {
                // A text that takes what is written takes all of it.
                let _ = write!(to, "\\u{:04X}", u32::from(sign));
            }
            sign => to.push(sign),
        }
    }
    to.push('"');
}

fn quote_key(key: &str, to: &mut String) {
    let is_bare = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    if !key.is_empty() && key.chars().all(is_bare) { to.push_str(key) } else { quote(key, to) }
}

/// A number with what it counts: the ends of a range, and what lies between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(i64),
    Float(f64),
    Size(u64),
    Percent(f64),
}

impl Number {
    /// What a value of a file is, where it is a number.
    pub(crate) fn of(value: &DeValue<'_>) -> Option<Self> {
        match Value::of(value) {
            Value::Integer(number) => Some(Self::Integer(number)),
            Value::Float(number) if number.is_finite() => Some(Self::Float(number)),
            Value::Text(text) => {
                let percent = text.trim().strip_suffix('%');
                let percent = percent.and_then(|number| number.trim().parse::<f64>().ok());
                match percent.filter(|number| number.is_finite()) {
                    Some(number) => Some(Self::Percent(number)),
                    None => text.parse::<Size>().ok().map(|size| Self::Size(size.0)),
                }
            }
            _ => None,
        }
    }

    pub(crate) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// How much it is.
    pub(crate) fn amount(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) | Self::Percent(number) => number,
            Self::Size(bytes) => bytes as f64,
        }
    }

    /// As much of the same; whole numbers are rounded down.
    pub(crate) fn with(self, amount: f64) -> Self {
        match self {
            Self::Integer(_) => Self::Integer(amount.floor() as i64),
            Self::Size(_) => Self::Size(amount.floor() as u64),
            Self::Float(_) => Self::Float(short(amount)),
            Self::Percent(_) => Self::Percent(short(amount)),
        }
    }

    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Integer(_) | Self::Size(_))
    }

    pub(crate) fn value(self) -> Value {
        match self {
            Self::Integer(number) => Value::Integer(number),
            Self::Float(number) => Value::Float(number),
            Self::Size(bytes) => Value::Text(Size(bytes).to_string()),
            Self::Percent(number) => Value::Text(format!("{number}%")),
        }
    }
}

/// Twelve digits: sums of steps end in digits that nobody wrote.
fn short(amount: f64) -> f64 {
    format!("{amount:.11e}").parse().unwrap_or(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = "a = 1\nb = [ 0.5, 1e300, \"x\\\"\\\\\\u0007\" ]\nc = true\n\n\
                    [[d]]\ne = { f = 3, \"g h\" = -2 }\n\n[[d]]\n";
        let document = DeTable::parse(text).expect("TOML");
        let value = Value::table(document.get_ref());
        for written in [value.file(), format!("all = {}", value.toml())] {
            let again =
                DeTable::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            let mut again = Value::table(again.get_ref());
            if let Value::Table(table) = &mut again
                && let Some(all) = table.remove("all")
            {
                again = all;
            }
            assert_eq!(again, value, "{written}");
        }
    }

    #[test]
    fn numbers_have_their_units() {
        let of = |text: &str| Number::of(DeValue::parse(text).expect("TOML").get_ref());
        assert_eq!(of("5"), Some(Number::Integer(5)));
        assert_eq!(of("\"64KiB\""), Some(Number::Size(65536)));
        assert_eq!(of("\"2.5 %\""), Some(Number::Percent(2.5)));
        assert_eq!(of("\"fast\""), None);
        assert_eq!(of("nan"), None);
        assert_eq!(Number::Size(0).with(65536.9).value(), Value::Text("64KiB".into()));
        assert_eq!(Number::Float(0.0).with(0.1 + 0.2).value(), Value::Float(0.3));
    }
}
