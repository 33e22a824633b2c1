//! Parameters of a workload as text, from a study file or the command line: `bs=1MiB`, `count=100`.

use raidlab_core::{Nanos, Size};

use crate::error::{WorkloadError, WorkloadErrorKind};

/// Keys and values; each key may be asked for once, and what nobody asked for is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    entries: Vec<(String, String)>,
    asked: Vec<String>,
}

impl Parameters {
    /// From pairs.
    ///
    /// # Errors
    /// When a key comes twice.
    pub fn new<K: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, WorkloadError> {
        let mut entries: Vec<(String, String)> = Vec::new();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(wrong(&key, "is given twice".into()));
            }
            entries.push((key, value));
        }
        Ok(Self { entries, asked: Vec::new() })
    }

    /// Whether a key was given; it counts as asked for only by the other calls.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(other, _)| other == key)
    }

    /// The text of a key.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.asked.push(key.to_string());
        let position = self.entries.iter().position(|(other, _)| other == key)?;
        Some(self.entries.swap_remove(position).1)
    }

    /// A size such as `64KiB`, more than nothing.
    ///
    /// # Errors
    /// When it is none.
    pub fn size(&mut self, key: &str, default: u64) -> Result<u64, WorkloadError> {
        Ok(self.optional_size(key)?.unwrap_or(default))
    }

    /// The same without a default.
    ///
    /// # Errors
    /// When it is none.
    pub fn optional_size(&mut self, key: &str) -> Result<Option<u64>, WorkloadError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let size = text.parse::<Size>().ok().filter(|size| size.0 > 0);
        let reason = || format!("`{text}` is not a size; write for example 64KiB or 1GiB");
        size.map(|size| Some(size.0)).ok_or_else(|| wrong(key, reason()))
    }

    /// A whole number within a range.
    ///
    /// # Errors
    /// When it is none, or outside.
    pub fn number(
        &mut self,
        key: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, WorkloadError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        let (from, to) = (range.start(), range.end());
        number.ok_or_else(|| {
            wrong(key, format!("`{text}` is not a whole number from {from} to {to}"))
        })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn flag(&mut self, key: &str, default: bool) -> Result<bool, WorkloadError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.parse().map_err(|_| wrong(key, format!("`{text}` is neither true nor false")))
    }

    /// One of some words.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice<T: Clone>(
        &mut self,
        key: &str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T, WorkloadError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            wrong(key, format!("`{text}` is not one of {}", known.join(", ")))
        })
    }

    /// A time such as `500ms`, `3s` or `2m`.
    ///
    /// # Errors
    /// When it is none.
    pub fn duration(&mut self, key: &str, default: Nanos) -> Result<Nanos, WorkloadError> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = match &text[digits..] {
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            "m" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            _ => None,
        };
        let number = text[..digits].parse::<u64>().ok();
        let nanos = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        nanos.map(Nanos).ok_or_else(|| {
            wrong(key, format!("`{text}` is not a time; write for example 500ms, 3s or 2m"))
        })
    }

    /// All that there was is asked for.
    ///
    /// # Errors
    /// [`WorkloadErrorKind::UnknownParameter`] for the first key that nobody asked for, with those
    /// that are known.
    pub fn finish(self) -> Result<(), WorkloadError> {
        let Some((key, _)) = self.entries.first() else { return Ok(()) };
        let known = self.asked.join(", ");
        let reason = match known.as_str() {
            "" => "is not a parameter of this workload; it has none".to_string(),
            known => format!("is not a parameter of this workload; known: {known}"),
        };
        let error = WorkloadError::new(WorkloadErrorKind::UnknownParameter, key, reason);
        Err(WorkloadError { known: self.asked, ..error })
    }
}

fn wrong(key: &str, reason: String) -> WorkloadError {
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Parameters {
        Parameters::new(pairs.iter().copied()).expect("no key twice")
    }

    #[test]
    fn values_are_read() {
        let mut given = of(&[("bs", "64KiB"), ("count", "3"), ("sync", "true"), ("time", "2m")]);
        assert_eq!(given.size("bs", 1), Ok(65536));
        assert_eq!(given.size("size", 7), Ok(7));
        assert_eq!(given.number("count", 1, 1..=9), Ok(3));
        assert_eq!(given.flag("sync", false), Ok(true));
        assert_eq!(given.duration("time", Nanos(1)), Ok(Nanos(120_000_000_000)));
        assert_eq!(given.choice("mode", 1, &[("a", 1), ("b", 2)]), Ok(1));
        assert_eq!(given.finish(), Ok(()));
    }

    #[test]
    fn nonsense_is_named() {
        let mut given =
            of(&[("bs", "0"), ("count", "ten"), ("sync", "yes"), ("time", "3"), ("mode", "c")]);
        for error in [
            given.size("bs", 1).unwrap_err(),
            given.number("count", 1, 1..=9).unwrap_err(),
            given.flag("sync", false).unwrap_err(),
            given.duration("time", Nanos(1)).unwrap_err(),
            given.choice("mode", 1, &[("a", 1), ("b", 2)]).unwrap_err(),
        ] {
            assert_eq!(error.kind, WorkloadErrorKind::Parameter, "{error}");
        }
        let mut given = of(&[("bs", "1KiB"), ("conut", "3")]);
        let _ = (given.size("bs", 1), given.number("count", 1, 1..=9));
        let error = given.finish().unwrap_err();
        assert_eq!(
            error.to_string(),
            "conut: is not a parameter of this workload; known: bs, count"
        );
        assert!(Parameters::new([("a", "1"), ("a", "2")]).is_err());
    }
}
