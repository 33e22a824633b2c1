//! Many studies out of one file: `[sweep]` names keys and the values they take.
//!
//! A *point* gives each of these keys one value. It is a study of its own, with a seed that hashes its
//! keys and values: that a value is added to an axis changes no other point.

mod axis;
mod key;
mod sobol;
mod value;

use std::path::{Path, PathBuf};

use raidlab_random::mix;
use raidlab_toml_file::{DeTable, DeValue, Source};

pub use value::Value;

use crate::CellKey;
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::parse::table::{StudyTable, Table};
use crate::study::Study;
use axis::{Axis, Samples};
use key::Key;

/// The table of a study file that makes it one.
pub(crate) const SWEEP: &str = "sweep";

/// What seeds of points are drawn for.
const FOR_POINT: u64 = 3;

/// The most points; more are a mistake in a product.
const MOST_POINTS: u64 = 1_000_000_000_000;

/// Of an axis so many values are tried before a sweep begins.
const TRIED: u64 = 64;

/// A study file with a `[sweep]`.
#[derive(Clone, Debug)]
pub struct Sweep {
    text: String,
    path: String,
    directory: PathBuf,
    seed: u64,
    /// All points have the seed of the study.
    shares_draws: bool,
    axes: Vec<Axis>,
    samples: Option<Samples>,
    points: u64,
}

/// One of the points of a sweep: the keys with their values, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number, from 0.
    pub number: u64,
    /// The keys, as the file has them, and their values.
    pub keys: Vec<(String, Value)>,
}

/// A point as a study.
#[derive(Clone, Debug)]
pub struct PointStudy {
    /// The study, with the seed of the point.
    pub study: Study,
    /// All of the file with the values in place, without `[sweep]`, in one form whatever the order and
    /// the comments of the file: what a point is told from others by.
    pub canonical: String,
    /// Of each key that leads into a list: the key, the list and which of its items.
    items: Vec<(String, String, Vec<usize>)>,
}

impl PointStudy {
    /// Whether a swept key changes nothing of a cell: it is one of other layouts or workloads, or of drives that the
    /// cell's layout has none of.
    pub fn is_of_others(&self, key: &str, cell: &CellKey) -> bool {
        let Some((_, list, items)) = self.items.iter().find(|(text, ..)| text == key) else {
            return false;
        };
        let layout = &self.study.layouts[cell.layout];
        match list.as_str() {
            "layouts" => !items.contains(&cell.layout),
            // A rebuild alone has no workload.
            "workloads" => !items.contains(&cell.workload),
            "drives" => !layout.groups().any(|group| items.contains(&group)),
            _ => false,
        }
    }
}

/// A number that depends on all of a text.
pub(crate) fn hash(text: &str) -> u64 {
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    };
    let words = std::iter::once(text.len() as u64).chain(text.as_bytes().chunks(8).map(word));
    mix(&words.collect::<Vec<_>>())
}

impl Sweep {
    /// Reads and checks the text of a study file with a `[sweep]`; `path` is what errors call it, and
    /// drive files are looked for in its `directory`.
    ///
    /// # Errors
    /// What is wrong with `[sweep]`; what is wrong with the study itself, as of [`parse`](crate::parse),
    /// where it is a mistake and not a combination that cannot be.
    pub fn parse(text: &str, path: &str, directory: &Path) -> Result<Self, StudyError> {
        let source = Source { text, path };
        let document = source.document()?;
        let root = Table::root(&source, &document);
        let example =
            "[[sweep.axes]] with key = \"layouts.chunk\" and values = [\"64KiB\", \"512KiB\"]";
        let missing = || {
            let reason = format!("this study has no sweep; write for instance {example}");
            StudyTable::error(&root, Kind::MissingKey, SWEEP, reason)
        };
        let table = root.table(SWEEP, "[sweep]")?.ok_or_else(missing)?;
        table.check_keys(&["axes", "samples", "draws"])?;
        let shares_draws = shares_draws(&table)?;
        let axes = table.optional_tables("axes")?;
        let axes = axes.iter().map(Axis::read).collect::<Result<Vec<_>, _>>()?;
        let samples = table.table("samples", "[sweep.samples]")?;
        let samples = samples.as_ref().map(Samples::read).transpose()?;
        if axes.is_empty() && samples.is_none() {
            return Err(StudyTable::error(
                &table,
                Kind::MissingKey,
                "axes",
                format!("write for instance {example}"),
            ));
        }
        let points = points(&table, &axes, samples.as_ref())?;
        let seed = root.integer("seed", 0..=u64::MAX)?.unwrap_or(1);
        let (text, path, directory) = (text.to_owned(), path.to_owned(), directory.to_owned());
        let sweep = Self { text, path, directory, seed, shares_draws, axes, samples, points };
        sweep.check_keys(&table)?;
        sweep.check_values()?;
        Ok(sweep)
    }

    /// How many points there are.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// What errors call the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The directory in which drive files are looked for.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many values each axis has, by its keys, and then the samples.
    pub fn axes(&self) -> Vec<(String, u64)> {
        let names = |keys: &[Key]| keys.iter().map(Key::text).collect::<Vec<_>>().join(", ");
        let axes = self.axes.iter().map(|axis| (names(&axis.keys), axis.count()));
        let drawn = self.samples.iter().map(|samples| {
            let keys: Vec<Key> = samples.of.iter().map(|drawn| drawn.key.clone()).collect();
            (names(&keys), samples.count)
        });
        axes.chain(drawn).collect()
    }

    /// The models of drives that its axes and samples name.
    pub fn models(&self) -> Vec<String> {
        let drawn = self.samples.iter().flat_map(Samples::models);
        let all = self.axes.iter().flat_map(Axis::models).chain(drawn);
        let mut models: Vec<String> = Vec::new();
        for value in all {
            models_in(value, &mut models);
        }
        models.sort_unstable();
        models.dedup();
        models
    }

    /// A point, by its number: the last axis changes fastest, the samples slowest.
    pub fn point(&self, number: u64) -> Point {
        let mut rest = number;
        let mut keys = Vec::new();
        for axis in self.axes.iter().rev() {
            let values = axis.at(rest % axis.count());
            rest /= axis.count();
            let named = axis.keys.iter().map(|key| key.text().to_owned()).zip(values);
            keys.extend(named.rev());
        }
        keys.reverse();
        if let Some(samples) = &self.samples {
            let names = samples.of.iter().map(|drawn| drawn.key.text().to_owned());
            keys.extend(names.zip(samples.at(rest, self.seed)));
        }
        Point { number, keys }
    }

    /// A point as a study.
    ///
    /// # Errors
    /// What is wrong with it, as of [`parse`](crate::parse), with the line in `[sweep]` for what the
    /// sweep set: not all that can be combined makes sense.
    pub fn study(&self, point: &Point) -> Result<PointStudy, StudyError> {
        let texts: Vec<String> = point.keys.iter().map(|(_, value)| value.toml()).collect();
        let source = Source { text: &self.text, path: &self.path };
        let mut document = source.document::<StudyError>()?;
        document.get_mut().remove(SWEEP);
        let mut items = Vec::new();
        for ((key, line), text) in self.keys().zip(&texts) {
            let wrong = |reason: String| {
                StudyError::new(Kind::UnknownName, &self.path, Some(line), key.text(), reason)
            };
            let value = DeValue::parse(text).map_err(|error| wrong(error.message().to_owned()))?;
            let start = self.start_of(line);
            let value = value::placed(value.into_inner(), start..start);
            if let Some((list, of)) = key.items(document.get_ref()) {
                items.push((key.text().to_owned(), list.to_owned(), of));
            }
            key.set(document.get_mut(), &value).map_err(wrong)?;
        }
        let mut study = crate::parse::read_document(&source, &document, None)?;
        study.origin.directory.clone_from(&self.directory);
        study.seed = self.seed_of(point, study.seed);
        study.max_rounds = study.rounds;
        let canonical = canonical(document.get_ref()).toml();
        Ok(PointStudy { study, canonical, items })
    }

    /// A point as the text of a study file, with its seed.
    ///
    /// # Errors
    /// As [`study`](Self::study).
    pub fn study_file(&self, point: &Point) -> Result<String, StudyError> {
        let one = self.study(point)?;
        let text = format!("all = {}", one.canonical);
        let document = DeTable::parse(&text).map_err(|error| {
            StudyError::new(Kind::Syntax, &self.path, None, "", error.message().to_owned())
        })?;
        let Value::Table(mut all) = Value::table(document.get_ref()) else { return Ok(text) };
        let Some(Value::Table(mut study)) = all.remove("all") else { return Ok(text) };
        study.insert("title".to_owned(), Value::Text(one.study.title.clone()));
        study.insert("seed".to_owned(), Value::Integer(one.study.seed as i64));
        study.insert("max_rounds".to_owned(), Value::Integer(i64::from(one.study.rounds)));
        Ok(Value::Table(study).file())
    }

    /// The keys in the order of a point, each with the line it stands at.
    fn keys(&self) -> impl Iterator<Item = (&Key, u32)> {
        let axes = self.axes.iter().flat_map(|axis| axis.keys.iter().map(|key| (key, axis.line)));
        let drawn = self.samples.iter().flat_map(|samples| &samples.of);
        axes.chain(drawn.map(|drawn| (&drawn.key, drawn.line)))
    }

    /// Where a line begins.
    fn start_of(&self, line: u32) -> usize {
        let before = self.text.split_inclusive('\n').take(line.saturating_sub(1) as usize);
        before.map(str::len).sum()
    }

    /// The seed of a point: of its keys and values, in whatever order they stand. 63 bits, as files have
    /// them.
    fn seed_of(&self, point: &Point, seed: u64) -> u64 {
        if self.shares_draws {
            return seed;
        }
        let mut keys: Vec<String> =
            point.keys.iter().map(|(key, value)| format!("{key} = {}", value.toml())).collect();
        keys.sort_unstable();
        mix(&[seed, FOR_POINT, hash(&keys.join("\n"))]) >> 1
    }

    /// Each key is set once.
    fn check_keys(&self, table: &Table<'_>) -> Result<(), StudyError> {
        let keys: Vec<_> = self.keys().collect();
        for (index, (key, line)) in keys.iter().enumerate() {
            if keys[..index].iter().any(|(earlier, _)| earlier.text() == key.text()) {
                let reason = format!("`{}` is swept twice; keep one of them", key.text());
                return Err(StudyTable::error_at(
                    table,
                    Kind::DuplicateName,
                    *line,
                    "axes",
                    reason,
                ));
            }
        }
        Ok(())
    }

    /// The values of each axis, with the first of the others, make no mistake that no combination mends.
    fn check_values(&self) -> Result<(), StudyError> {
        let mut stride = 1;
        let strides: Vec<(u64, u64)> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let own = (stride, axis.count());
                stride *= axis.count();
                own
            })
            .collect();
        for (stride, count) in
            strides.into_iter().chain(self.samples.iter().map(|all| (stride, all.count)))
        {
            for place in 0..count.min(TRIED) {
                match self.study(&self.point(place * stride)) {
                    Err(error) if is_mistake(error.kind) => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// `draws = "shared"`: points differ by their values alone.
fn shares_draws(table: &Table<'_>) -> Result<bool, StudyError> {
    match table.text("draws")? {
        None | Some("own") => Ok(false),
        Some("shared") => Ok(true),
        Some(other) => {
            let reason = format!("`{other}` is not known; it is `own` or `shared`");
            Err(StudyTable::error(table, Kind::UnknownName, "draws", reason))
        }
    }
}

/// Whether a study is wrong whatever it is combined with.
fn is_mistake(kind: Kind) -> bool {
    use Kind::{MissingKey, Syntax, UnknownKey, UnknownName, WrongType, WrongUnit};
    matches!(kind, Syntax | UnknownKey | MissingKey | WrongType | WrongUnit | UnknownName)
}

/// How many points there are in all.
fn points(table: &Table<'_>, axes: &[Axis], samples: Option<&Samples>) -> Result<u64, StudyError> {
    let counts = axes.iter().map(Axis::count).chain(samples.map(|samples| samples.count));
    let all: u128 = counts
        .clone()
        .try_fold(1u128, |all, count| all.checked_mul(u128::from(count)))
        .unwrap_or(u128::MAX);
    if all <= u128::from(MOST_POINTS) {
        return Ok(all as u64);
    }
    let factors: Vec<String> = counts.map(|count| count.to_string()).collect();
    let reason = format!(
        "{} are {all} points; {MOST_POINTS} are the most. Use fewer values, or [sweep.samples], \
         which draws some of them",
        factors.join(" x ")
    );
    Err(StudyTable::error(table, Kind::WrongValue, "axes", reason))
}

/// A study file without what has no say in its results.
fn canonical(document: &DeTable<'_>) -> Value {
    let mut all = Value::table(document);
    if let Value::Table(table) = &mut all {
        table.remove("title");
        table.remove("max_rounds");
    }
    all
}

/// The models among values of drives, however deep.
fn models_in(value: &Value, models: &mut Vec<String>) {
    match value {
        Value::Text(text) => models.push(text.clone()),
        Value::List(items) => items.iter().for_each(|item| models_in(item, models)),
        Value::Table(table) => {
            let model = table.get("model").into_iter().chain(table.get("drives"));
            model.for_each(|value| models_in(value, models));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
