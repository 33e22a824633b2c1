//! What a sweep varies: axes, which are multiplied with one another, and samples.

use raidlab_random::mix;
use raidlab_toml_file::{DeValue, Spanned};

use super::key::Key;
use super::sobol;
use super::value::{Number, Value};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::parse::table::{StudyTable, Table};

/// How far amounts may lie beyond the end of a range and still be its end.
const SLACK: f64 = 1e-9;

/// The most steps of a range.
const MOST_STEPS: u64 = 1_000_000_000_000;

/// The most samples: so many numbers Sobol's sequence has.
const MOST_SAMPLES: u64 = 1 << 32;

/// What samples of sizes are rounded down to where the study does not say.
const SIZE_STEP: f64 = 4096.0;

/// The keys that are set together, and to what.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) keys: Vec<Key>,
    pub(crate) line: u32,
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// For each place a value for each key.
    Listed(Vec<Vec<Value>>),
    /// `from`, `from + step` and so on.
    Added { from: Number, step: f64, count: u64 },
    /// `from`, `from * factor` and so on.
    Multiplied { from: Number, factor: f64, count: u64 },
}

impl Axis {
    pub(crate) fn count(&self) -> u64 {
        match &self.values {
            Values::Listed(values) => values.len() as u64,
            Values::Added { count, .. } | Values::Multiplied { count, .. } => *count,
        }
    }

    /// What the keys are at a place, in their order.
    pub(crate) fn at(&self, place: u64) -> Vec<Value> {
        let number = match &self.values {
            Values::Listed(values) => return values[place as usize].clone(),
            Values::Added { from: Number::Integer(from), step, .. } => {
                Number::Integer(from + *step as i64 * place as i64)
            }
            Values::Added { from, step, .. } => from.with(from.amount() + step * place as f64),
            Values::Multiplied { from, factor, .. } => {
                let amount = from.amount() * libm::pow(*factor, place as f64);
                // Whole numbers are rounded down, but not by what a power is off.
                from.with(if from.is_whole() { amount + SLACK * 1e3 } else { amount })
            }
        };
        vec![number.value()]
    }

    /// Every value of the keys that are models of drives.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Value> {
        let values: &[Vec<Value>] = match &self.values {
            Values::Listed(values) => values,
            _ => &[],
        };
        models_of(&self.keys, values)
    }

    pub(crate) fn read(table: &Table<'_>) -> Result<Self, StudyError> {
        table.check_keys(&["key", "keys", "values", "from", "to", "step", "factor"])?;
        let keys = keys(table)?;
        let line = table.line;
        let values = match (table.has("values"), table.has("from")) {
            (true, false) => listed(table, "values", &keys)?,
            (false, true) => range(table, &keys)?,
            _ => {
                let reason = "an axis has either `values` or `from` and `to`";
                return Err(StudyTable::error_at(table, Kind::MissingKey, line, "values", reason));
            }
        };
        let axis = Self { keys, line, values };
        axis.check_neighbours(table)?;
        Ok(axis)
    }

    /// No value of a range stands there twice, as none does in a list. Factors take whole numbers further apart from
    /// pair to pair, and digits that are not told bring sums closer together, so that the first pair and the last one
    /// speak for all.
    fn check_neighbours(&self, table: &Table<'_>) -> Result<(), StudyError> {
        let last = self.count().saturating_sub(1);
        let key = match self.values {
            Values::Listed(_) => return Ok(()),
            Values::Added { .. } => "step",
            Values::Multiplied { .. } => "factor",
        };
        for (one, other) in [(0, 1), (last.saturating_sub(1), last)] {
            if other <= last && one < other && self.at(one) == self.at(other) {
                let value: Vec<String> = self.at(one).iter().map(Value::toml).collect();
                let reason = format!(
                    "gives {} more than once; use a greater one, or name the `values`",
                    value.join(" ")
                );
                return Err(StudyTable::error(table, Kind::WrongValue, key, reason));
            }
        }
        Ok(())
    }
}

/// Of values for each of the keys those of keys that are models of drives.
fn models_of<'a>(keys: &[Key], values: &'a [Vec<Value>]) -> impl Iterator<Item = &'a Value> {
    let is_model: Vec<bool> = keys.iter().map(Key::is_model).collect();
    values.iter().flat_map(move |row| {
        let row = row.iter().zip(is_model.clone());
        row.filter(|(_, is_model)| *is_model).map(|(value, _)| value)
    })
}

/// `key = "seed"`, or `keys = ["drives[nas].model", "drives[nas].count"]`, which change together.
fn keys(table: &Table<'_>) -> Result<Vec<Key>, StudyError> {
    let named = match (table.text("key")?, table.has("keys")) {
        (Some(_), true) => {
            let reason = "there is `key` as well; keep one of them";
            return Err(StudyTable::error(table, Kind::WrongValue, "keys", reason));
        }
        (Some(key), false) => vec![(key, table.line_at("key"))],
        (None, _) => {
            let example =
                "key = \"layouts.chunk\", or keys = [\"drives[nas].model\", \"drives[nas].count\"]";
            table.texts("keys", example)?.ok_or_else(|| table.missing("key", example))?
        }
    };
    let name = if table.has("keys") { "keys" } else { "key" };
    let parse = |(text, line): (&str, u32)| {
        Key::parse(text)
            .map_err(|reason| StudyTable::error_at(table, Kind::WrongValue, line, name, reason))
    };
    named.into_iter().map(parse).collect()
}

fn listed(table: &Table<'_>, name: &str, keys: &[Key]) -> Result<Values, StudyError> {
    let example = match keys.len() {
        1 => "values = [\"64KiB\", \"512KiB\"]".to_owned(),
        count => format!("values = [[..], [..]], {count} in each"),
    };
    let rows: Vec<Vec<Value>> = match table.value(name) {
        Some(DeValue::Array(items)) if !items.is_empty() => {
            let row = |item: &Spanned<DeValue<'_>>| match (keys.len(), item.get_ref()) {
                (1, value) => Some(vec![Value::of(value)]),
                (count, DeValue::Array(row)) if row.len() == count => {
                    Some(row.iter().map(|value| Value::of(value.get_ref())).collect())
                }
                _ => None,
            };
            let rows: Option<_> = items.iter().map(row).collect();
            rows.ok_or_else(|| {
                let reason = format!("must be lists of one value for each of the keys: {example}");
                StudyTable::error(table, Kind::WrongType, name, reason)
            })?
        }
        _ => {
            let reason = format!("must be a list that is not empty, such as {example}");
            return Err(StudyTable::error(table, Kind::WrongType, name, reason));
        }
    };
    for (index, row) in rows.iter().enumerate() {
        if rows[..index].contains(row) {
            let row: Vec<String> = row.iter().map(Value::toml).collect();
            let reason = format!("{} stands here twice; name it once", row.join(", "));
            return Err(StudyTable::error(table, Kind::DuplicateName, name, reason));
        }
    }
    Ok(Values::Listed(rows))
}

/// The ends of a range: numbers of one kind.
fn ends(table: &Table<'_>) -> Result<(Number, Number), StudyError> {
    let end = |key: &str| {
        let value = table.value(key).ok_or_else(|| table.missing(key, &format!("{key} = 1")))?;
        Number::of(value).ok_or_else(|| {
            let reason =
                "must be a number, a size such as \"64KiB\" or a percentage such as \"5%\"";
            StudyTable::error(table, Kind::WrongType, key, reason)
        })
    };
    let (from, to) = (end("from")?, end("to")?);
    let wrong = |reason: &str| StudyTable::error(table, Kind::WrongValue, "to", reason);
    if !from.is_like(to) {
        return Err(wrong(
            "must be of the same kind as `from`: both numbers, sizes or percentages",
        ));
    }
    if to.amount() < from.amount() {
        return Err(wrong("is less than `from`; exchange them"));
    }
    Ok((from, to))
}

/// A number of the kind of `from` above 0, such as a step.
fn above_zero(table: &Table<'_>, key: &str, from: Number) -> Result<Option<f64>, StudyError> {
    let Some(value) = table.value(key) else { return Ok(None) };
    let number = Number::of(value).filter(|number| number.is_like(from) && number.amount() > 0.0);
    let number = number.ok_or_else(|| {
        let reason = "must be above 0 and of the same kind as `from`";
        StudyTable::error(table, Kind::WrongValue, key, reason)
    })?;
    Ok(Some(number.amount()))
}

fn range(table: &Table<'_>, keys: &[Key]) -> Result<Values, StudyError> {
    if keys.len() > 1 {
        let reason = "keys that change together take `values`, a list for each place";
        return Err(StudyTable::error(table, Kind::WrongValue, "from", reason));
    }
    let (from, to) = ends(table)?;
    let step = above_zero(table, "step", from)?;
    let (span, first) = (to.amount() - from.amount(), from.amount());
    let Some(factor) = table.number("factor")? else {
        let step = step.or(matches!(from, Number::Integer(_)).then_some(1.0));
        let step = step.ok_or_else(|| table.missing("step", "step = \"64KiB\", or factor = 2"))?;
        let count = libm::floor(span / step + SLACK) as u64 + 1;
        return checked(table, count).map(|count| Values::Added { from, step, count });
    };
    if step.is_some() || factor <= 1.0 || first <= 0.0 {
        let reason = "must be above 1, with a `from` above 0 and without `step`";
        return Err(StudyTable::error(table, Kind::WrongValue, "factor", reason));
    }
    let count = libm::floor(libm::log(to.amount() / first) / libm::log(factor) + SLACK) as u64 + 1;
    let axis = Values::Multiplied { from, factor, count };
    checked(table, count).map(|_| axis)
}

fn checked(table: &Table<'_>, count: u64) -> Result<u64, StudyError> {
    if count <= MOST_STEPS {
        return Ok(count);
    }
    let reason = format!("are {count} values; {MOST_STEPS} are the most");
    Err(StudyTable::error(table, Kind::WrongValue, "from", reason))
}

/// Points drawn in all directions at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Samples {
    pub(crate) count: u64,
    sobol: bool,
    pub(crate) of: Vec<Drawn>,
}

/// A key whose values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) key: Key,
    pub(crate) line: u32,
    from: From,
}

#[derive(Clone, Debug, PartialEq)]
enum From {
    Listed(Vec<Vec<Value>>),
    Between { from: Number, to: Number, step: Option<f64>, logarithmic: bool },
}

impl Samples {
    pub(crate) fn read(table: &Table<'_>) -> Result<Self, StudyError> {
        table.check_keys(&["count", "method", "of"])?;
        let count = table.integer("count", 1..=MOST_SAMPLES)?;
        let count = count.ok_or_else(|| table.missing("count", "count = 1000"))?;
        let method = table.text("method")?.unwrap_or("random");
        if !["random", "sobol"].contains(&method) {
            let reason = format!("`{method}` is not known; it is `random` or `sobol`");
            return Err(StudyTable::error(table, Kind::UnknownName, "method", reason));
        }
        let of: Result<Vec<Drawn>, _> = table.tables("of")?.iter().map(Drawn::read).collect();
        let (of, sobol) = (of?, method == "sobol");
        if sobol && of.len() > sobol::DIMENSIONS {
            let reason = format!(
                "{} keys are more than the {} that `sobol` has; use `random`",
                of.len(),
                sobol::DIMENSIONS
            );
            return Err(StudyTable::error(table, Kind::WrongValue, "of", reason));
        }
        Ok(Self { count, sobol, of })
    }

    /// What the keys are in a sample. A random value depends on its key and the sample's number alone,
    /// so more keys and more samples change none.
    pub(crate) fn at(&self, number: u64, seed: u64) -> Vec<Value> {
        let values = self.of.iter().enumerate().map(|(dimension, drawn)| {
            let share = if self.sobol {
                sobol::coordinate(number, dimension)
            } else {
                let bits = mix(&[seed, super::hash(drawn.key.text()), number]);
                (bits >> 11) as f64 / (1u64 << 53) as f64
            };
            drawn.at(share)
        });
        values.collect()
    }

    /// Every value of the keys that are models of drives.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Value> {
        self.of.iter().flat_map(|drawn| {
            let values: &[Vec<Value>] = match &drawn.from {
                From::Listed(values) => values,
                From::Between { .. } => &[],
            };
            models_of(std::slice::from_ref(&drawn.key), values)
        })
    }
}

impl Drawn {
    fn read(table: &Table<'_>) -> Result<Self, StudyError> {
        table.check_keys(&["key", "values", "from", "to", "step", "scale"])?;
        let key = keys(table)?.remove(0);
        let line = table.line;
        if table.has("values") {
            let Values::Listed(rows) = listed(table, "values", std::slice::from_ref(&key))? else {
                return Err(table.missing("values", "values = [1, 2]"));
            };
            return Ok(Self { key, line, from: From::Listed(rows) });
        }
        let (from, to) = ends(table)?;
        let scale = table.text("scale")?.unwrap_or("linear");
        let logarithmic = match scale {
            "linear" => false,
            "logarithmic" if from.amount() > 0.0 => true,
            _ => {
                let reason =
                    format!("`{scale}` is not `linear`, or `logarithmic` with `from` above 0");
                return Err(StudyTable::error(table, Kind::WrongValue, "scale", reason));
            }
        };
        let step = above_zero(table, "step", from)?;
        let step = step.or(matches!(from, Number::Size(_)).then_some(SIZE_STEP));
        Ok(Self { key, line, from: From::Between { from, to, step, logarithmic } })
    }

    /// The value so far into the range, of 0 up to 1.
    fn at(&self, share: f64) -> Value {
        let (from, to, step, logarithmic) = match &self.from {
            From::Listed(rows) => {
                let place = (share * rows.len() as f64) as usize;
                return rows[place.min(rows.len() - 1)][0].clone();
            }
            From::Between { from, to, step, logarithmic } => (*from, *to, *step, *logarithmic),
        };
        let (first, end) = (from.amount(), to.amount());
        let within = |last: f64| match logarithmic {
            true => libm::exp(libm::log(first) + share * (libm::log(last) - libm::log(first))),
            false => first + share * (last - first),
        };
        let step = step.or(from.is_whole().then_some(1.0));
        let Some(step) = step else { return from.with(within(end).max(first).min(end)).value() };
        // Each place of the grid stands for the step behind it, the last one that the range has too.
        let places = libm::floor((end - first) / step + SLACK) + 1.0;
        let place = match logarithmic {
            true => libm::floor((within(first + places * step) - first) / step),
            false => libm::floor(share * places),
        };
        from.with(first + place.max(0.0).min(places - 1.0) * step).value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(text: &str) -> Result<Vec<String>, String> {
        let source = raidlab_toml_file::Source { path: "s.toml", text };
        let document = source.document::<StudyError>().map_err(|error| error.to_string())?;
        let axis =
            Axis::read(&Table::root(&source, &document)).map_err(|error| error.to_string())?;
        let toml = |place| {
            let values: Vec<String> = axis.at(place).iter().map(Value::toml).collect();
            values.join(" ")
        };
        Ok((0..axis.count()).map(toml).collect())
    }

    #[test]
    fn ranges_have_both_ends() {
        let is = |text: &str, all: &[&str]| {
            assert_eq!(
                axis(&format!("key = \"k\"\n{text}")),
                Ok(all.iter().map(|one| (*one).to_owned()).collect())
            );
        };
        is("from = 1\nto = 3", &["1", "2", "3"]);
        is("from = -1\nto = 4\nstep = 2", &["-1", "1", "3"]);
        is("from = 0.1\nto = 0.3\nstep = 0.1", &["0.1", "0.2", "0.3"]);
        is(
            "from = \"4KiB\"\nto = \"32KiB\"\nfactor = 2",
            &["\"4KiB\"", "\"8KiB\"", "\"16KiB\"", "\"32KiB\""],
        );
        is("from = \"10%\"\nto = \"30%\"\nstep = \"10%\"", &["\"10%\"", "\"20%\"", "\"30%\""]);
        is("from = 1\nto = 1000\nfactor = 10", &["1", "10", "100", "1000"]);
        is("from = \"0.5%\"\nto = \"4%\"\nfactor = 2", &["\"0.5%\"", "\"1%\"", "\"2%\"", "\"4%\""]);
        is("from = 1.5\nto = 7.0\nfactor = 2", &["1.5", "3.0", "6.0"]);
        is("from = 0.001\nto = 0.1\nfactor = 10", &["0.001", "0.01", "0.1"]);
        is("from = 2\nto = 7\nfactor = 1.5", &["2", "3", "4", "6"]);
        is("from = 100\nto = 150\nfactor = 1.1", &["100", "110", "121", "133", "146"]);
        is("values = [1, \"a\", [2]]", &["1", "\"a\"", "[2]"]);
        assert_eq!(
            axis("keys = [\"a\", \"b\"]\nvalues = [[1, 2], [3, 4]]"),
            Ok(vec!["1 2".into(), "3 4".into()])
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let why = |text: &str| axis(&format!("key = \"k\"\n{text}")).expect_err(text);
        assert!(why("from = 3\nto = 1").contains("less than `from`"));
        assert!(why("from = 1\nto = \"4KiB\"").contains("same kind"));
        assert!(why("from = \"a\"\nto = 4").contains("must be a number"));
        assert!(why("from = 1\nto = 4\nstep = 0").contains("above 0"));
        assert!(why("from = 0\nto = 4\nfactor = 2").contains("`from` above 0"));
        for text in [
            "from = 1\nto = 4\nfactor = 1",
            "from = 1\nto = 4\nfactor = 2\nstep = 1",
            "from = -1\nto = 4\nfactor = 2",
        ] {
            assert!(why(text).contains("must be above 1"), "{text}");
        }
        assert_eq!(
            axis("key = \"k\"\nfrom = 3\nto = 3"),
            Ok(vec!["3".into()]),
            "both ends are one"
        );
        assert!(why("from = \"4KiB\"\nto = \"8KiB\"").contains("step"));
        assert!(why("values = [1, 1]").contains("twice"));
        let twice = why("from = 1\nto = 6\nfactor = 1.5");
        assert!(twice.contains("s.toml:4: factor: gives 1 more than once"), "{twice}");
        assert!(why("from = 3\nto = 4\nfactor = 1.2").contains("gives 3 more than once"));
        assert!(why("from = 1.0\nto = 1.001\nfactor = 1.0000000000001").contains("more than once"));
        let close = "from = 1.0\nto = 1.0000000001\nstep = 0.0000000000001";
        assert!(why(close).contains("step: gives"), "{}", why(close));
        assert!(why("values = []").contains("not empty"));
        assert!(why("from = 0\nto = 9000000000000000000").contains("are the most"));
        assert!(why("from = 1").contains("to: missing"));
        assert!(why("").contains("either"));
        assert!(
            axis("keys = [\"a\", \"b\"]\nvalues = [[1, 2], [3]]")
                .expect_err("3")
                .contains("one value for each")
        );
    }

    /// Every value that samples of a key take.
    fn drawn(range: &str) -> Vec<String> {
        let text = format!("count = 9\nof = [{{ key = \"a\", {range} }}]");
        let source = raidlab_toml_file::Source { path: "s.toml", text: &text };
        let document = source.document::<StudyError>().expect("TOML");
        let samples = Samples::read(&Table::root(&source, &document)).expect("good");
        let all = (0..512).map(|number| samples.at(number, 7)[0].toml());
        all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn samples_stay_on_their_grid() {
        for scale in ["linear", "logarithmic"] {
            let range = |text: &str| drawn(&format!("{text}, scale = \"{scale}\""));
            assert_eq!(range("from = 1, to = 10, step = 4"), ["1", "5", "9"], "{scale}");
            assert_eq!(range("from = 1, to = 9, step = 4"), ["1", "5", "9"], "{scale}");
            assert_eq!(
                range("from = \"4KiB\", to = \"18KiB\""),
                ["\"12KiB\"", "\"16KiB\"", "\"4KiB\"", "\"8KiB\""],
                "{scale}"
            );
            assert_eq!(range("from = 0.1, to = 0.35, step = 0.1"), ["0.1", "0.2", "0.3"]);
            assert_eq!(range("from = 0.1, to = 0.3, step = 0.1"), ["0.1", "0.2", "0.3"]);
            assert_eq!(range("from = 3, to = 3"), ["3"], "{scale}");
        }
    }

    #[test]
    fn samples_stay_within_their_range() {
        let text = "count = 9\nmethod = \"sobol\"\nof = [{ key = \"a\", from = 1, to = 3 }, \
                    { key = \"b\", from = \"4KiB\", to = \"1MiB\", scale = \"logarithmic\" }, \
                    { key = \"c\", values = [true, false] }]";
        for text in [text.to_owned(), text.replace("sobol", "random")] {
            let source = raidlab_toml_file::Source { path: "s.toml", text: &text };
            let document = source.document::<StudyError>().expect("TOML");
            let samples = Samples::read(&Table::root(&source, &document)).expect("good");
            let all: Vec<Vec<Value>> = (0..512).map(|number| samples.at(number, 7)).collect();
            for value in [1, 2, 3] {
                let count = all.iter().filter(|one| one[0] == Value::Integer(value)).count();
                assert!((130..=215).contains(&count), "{value}: {count}");
            }
            let sizes = all.iter().map(|one| match &one[1] {
                Value::Text(text) => text.parse::<raidlab_core::Size>().expect("a size").0,
                other => panic!("{other:?}"),
            });
            let sizes: Vec<u64> = sizes.collect();
            assert!(sizes.iter().all(|size| (4096..=1 << 20).contains(size) && size % 4096 == 0));
            let yes = all.iter().filter(|one| one[2] == Value::Boolean(true)).count();
            assert!((220..=292).contains(&yes), "half of 512: {yes}");
            let small = sizes.iter().filter(|size| **size < 64 << 10).count();
            assert!((190..=320).contains(&small), "half below the geometric mean: {small}");
        }
    }
}
