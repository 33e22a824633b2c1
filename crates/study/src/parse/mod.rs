//! Study files: TOML text to a checked [`Study`].
//!
//! The file is walked by hand rather than derived, so that every error has the line and the key
//! it is about and says what would be right.

mod drives;
mod given;
mod hardware;
mod layouts;
mod parameters;
mod settings;
mod table;
mod workloads;

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::Sectors;
use raidlab_workload::{MOST_PROCESSES, WorkloadSpec};

use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::parameters::Parts;
use crate::study::{
    FILESYSTEMS, MODELLED_FILESYSTEMS, NamedLayout, Only, Origin, State, Study, check_states,
};
use crate::suggest::did_you_mean;
use table::{Source, Table};

/// The most rounds a study may ask for.
const MOST_ROUNDS: u64 = 10_000;

/// Rounds where the file names no number: the fewest that give a 95 % interval of the median.
const DEFAULT_ROUNDS: u64 = 6;

const KEYS: [&str; 18] = [
    "title",
    "seed",
    "rounds",
    "max_rounds",
    "precision",
    "baseline",
    "processes",
    "states",
    "member_size",
    "filesystem",
    "drives",
    "layouts",
    "workloads",
    "given",
    "parameters",
    "calibration",
    "host",
    "paths",
];

/// The study that is run where none is named.
pub const fn default_study() -> &'static str {
    include_str!("../../../../studies/default.toml")
}

/// Reads and checks a study file.
///
/// # Errors
/// [`Kind::Unreadable`] when the file cannot be read, else as [`parse`].
pub fn load(path: &Path) -> Result<Study, StudyError> {
    parse(&read_text(path)?, &path.display().to_string())
}

/// The text of a study file.
///
/// # Errors
/// [`Kind::Unreadable`].
pub fn read_text(path: &Path) -> Result<String, StudyError> {
    std::fs::read_to_string(path).map_err(|error| {
        let name = path.display().to_string();
        let reason = format!("cannot read the study file: {error}");
        StudyError::new(Kind::Unreadable, &name, None, "", reason).with_source(error)
    })
}

/// Checks the text of a study; `path` is what errors call it.
///
/// # Errors
/// The first thing that is wrong, with line and key and what would be right.
pub fn parse(text: &str, path: &str) -> Result<Study, StudyError> {
    read(text, path, None)
}

/// As [`parse`], with other values of the free parameters, in their order and in the units that the file
/// gives them in.
///
/// # Errors
/// As [`parse`]; also when the drives, paths, controllers or the host cannot be with these values.
pub fn parse_with(text: &str, path: &str, values: &[f64]) -> Result<Study, StudyError> {
    read(text, path, Some(values))
}

fn read(text: &str, path: &str, values: Option<&[f64]>) -> Result<Study, StudyError> {
    let source = Source { text, path };
    let document = source.document()?;
    let root = Table::root(&source, document.get_ref());
    root.check_keys(&[&KEYS[..], &settings::KEYS[..]].concat())?;

    let (rounds, max_rounds) = rounds(&root)?;
    let drive_tables = root.tables("drives")?;
    let drives = drives::read(&drive_tables)?;
    let layout_tables = root.tables("layouts")?;
    let path_tables = root.optional_tables("paths")?;
    let paths = hardware::paths(&path_tables)?;
    let filesystem = filesystem(&root)?;
    let around = layouts::Around { drives: &drives, servers: &paths, root: &root, filesystem };
    let layouts = layouts::read(&layout_tables, &around, &settings::read(&root)?)?;
    let workload_tables = root.tables("workloads")?;
    let workloads = workloads::read(&workload_tables, &layouts)?;

    let given_tables = root.optional_tables("given")?;
    let given = given::read(&given_tables, &layouts, &workloads)?;
    let parameter_tables = root.optional_tables("parameters")?;
    let mut parts = Parts {
        host: hardware::host(&root, filesystem.map(|name| (&root, name)))?,
        paths,
        layouts,
    };
    let parameters = parameters::read(&parameter_tables, &drives, &given, &mut parts, values)?;
    let Parts { host, paths, layouts } = parts;

    let mut lines = BTreeMap::new();
    root.record_lines("", &mut lines);
    for tables in
        [&drive_tables, &layout_tables, &workload_tables, &parameter_tables, &given_tables]
    {
        for (index, table) in tables.iter().enumerate() {
            table.record_lines(&format!("{}[{index}]", table.name), &mut lines);
        }
    }
    Ok(Study {
        only: Only::default(),
        title: root.required_text("title", "title = \"Which layout?\"")?.to_string(),
        seed: root.integer("seed", 0..=u64::MAX)?.unwrap_or(1),
        rounds,
        max_rounds,
        precision_percent: precision(&root)?,
        baseline: baseline(&root, &layouts)?,
        processes: processes(&root)?,
        states: states(&root, &layouts, &workloads)?,
        member_size: member_size(&root)?,
        host,
        filesystem: filesystem.map(str::to_string),
        paths,
        drives,
        layouts,
        workloads,
        parameters,
        calibration: parameters::calibration(&root)?,
        given,
        origin: Origin { path: path.to_string(), lines },
    })
}

/// How often every cell is run, at least and at most.
fn rounds(root: &Table<'_>) -> Result<(u32, u32), StudyError> {
    let rounds = root.integer("rounds", 1..=MOST_ROUNDS)?.unwrap_or(DEFAULT_ROUNDS);
    let max_rounds = root.integer("max_rounds", 1..=MOST_ROUNDS)?.unwrap_or(rounds);
    if max_rounds < rounds {
        let reason =
            format!("{max_rounds} is less than the {rounds} rounds; make it at least that");
        return Err(root.error(Kind::WrongValue, "max_rounds", reason));
    }
    Ok((rounds as u32, max_rounds as u32))
}

/// `precision = "5%"`.
fn precision(root: &Table<'_>) -> Result<f64, StudyError> {
    const KEY: &str = "precision";
    const RIGHT: &str = "write a percentage above 0% and up to 100%, such as \"5%\"";
    let Some(text) = root.text(KEY).map_err(|error| StudyError {
        kind: Kind::WrongUnit,
        reason: format!("{}; {RIGHT}", error.reason),
        ..error
    })?
    else {
        return Ok(5.0);
    };
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let number = number.ok_or_else(|| {
        root.error(Kind::WrongUnit, KEY, format!("`{text}` is not a percentage; {RIGHT}"))
    })?;
    if number > 0.0 && number <= 100.0 {
        return Ok(number);
    }
    Err(root.error(Kind::WrongValue, KEY, format!("`{text}` is out of range; {RIGHT}")))
}

/// `baseline = ["single"]`; the first layout where none is named.
fn baseline(root: &Table<'_>, layouts: &[NamedLayout]) -> Result<Vec<String>, StudyError> {
    const KEY: &str = "baseline";
    let Some(named) = root.texts(KEY, "baseline = [\"single\"]")? else {
        return Ok(vec![layouts[0].name.clone()]);
    };
    let known: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    layouts_named(root, KEY, &named, &known)
}

/// A list of names of layouts, each there and once.
fn layouts_named(
    table: &Table<'_>,
    key: &str,
    named: &[(&str, u32)],
    known: &[&str],
) -> Result<Vec<String>, StudyError> {
    let mut layouts: Vec<String> = Vec::new();
    for (name, line) in named {
        if !known.contains(name) {
            let (hint, known) = (did_you_mean(name, known), known.join(", "));
            let reason = format!("`{name}` names no layout of this study{hint}; they are: {known}");
            return Err(table.error_at(Kind::UnknownName, *line, key, reason));
        }
        if layouts.iter().any(|earlier| earlier == name) {
            let reason = format!("`{name}` stands here twice; name it once");
            return Err(table.error_at(Kind::DuplicateName, *line, key, reason));
        }
        layouts.push((*name).to_string());
    }
    Ok(layouts)
}

/// `processes = [1, 2, 4]`; one where nothing is said.
fn processes(root: &Table<'_>) -> Result<Vec<u32>, StudyError> {
    Ok(processes_in(root, "processes")?.unwrap_or_else(|| vec![1]))
}

/// A list of process counts, each once.
fn processes_in(table: &Table<'_>, key: &str) -> Result<Option<Vec<u32>>, StudyError> {
    let range = 1..=u64::from(MOST_PROCESSES);
    let example = format!("{key} = [1, 2, 4]");
    let Some(numbers) = table.integers(key, range, &example)? else { return Ok(None) };
    let mut processes = Vec::new();
    for (number, line) in numbers {
        if processes.contains(&(number as u32)) {
            let reason = format!("{number} stands here twice; name it once");
            return Err(table.error_at(Kind::DuplicateName, line, key, reason));
        }
        processes.push(number as u32);
    }
    Ok(Some(processes))
}

/// `member_size = "8GiB"`: how much of each drive arrays use.
fn member_size(root: &Table<'_>) -> Result<Option<Sectors>, StudyError> {
    const KEY: &str = "member_size";
    let Some(size) = root.size(KEY)? else { return Ok(None) };
    let sectors = Sectors::from_bytes(size.0).filter(|sectors| sectors.0.is_multiple_of(8));
    sectors.map(Some).ok_or_else(|| {
        root.error(Kind::WrongValue, KEY, format!("{size} is not a multiple of 4KiB"))
    })
}

/// `filesystem = "ext4"`: what workloads run on; the array itself where nothing is said.
fn filesystem<'a>(root: &Table<'a>) -> Result<Option<&'a str>, StudyError> {
    const KEY: &str = "filesystem";
    let Some(name) = root.text(KEY)? else { return Ok(None) };
    let known = [&FILESYSTEMS[..], &MODELLED_FILESYSTEMS].concat();
    if known.contains(&name) {
        return Ok(Some(name));
    }
    let (hint, known) = (did_you_mean(name, &known), known.join(", "));
    let reason = format!("`{name}` is not a filesystem{hint}; known: {known}");
    Err(root.error(Kind::UnknownName, KEY, reason))
}

/// `states = ["healthy"]`, the default.
fn states(
    root: &Table<'_>,
    layouts: &[NamedLayout],
    workloads: &[WorkloadSpec],
) -> Result<Vec<State>, StudyError> {
    const KEY: &str = "states";
    let Some(named) = root.texts(KEY, "states = [\"healthy\"]")? else {
        return Ok(vec![State::Healthy]);
    };
    let mut states = Vec::new();
    for (name, line) in named {
        let state: State = name.parse().map_err(|reason: String| {
            let hint = did_you_mean(name, &State::ALL.map(State::name));
            root.error_at(Kind::UnknownName, line, KEY, format!("{reason}{hint}"))
        })?;
        if states.contains(&state) {
            let reason = format!("`{state}` stands here twice; name it once");
            return Err(root.error_at(Kind::DuplicateName, line, KEY, reason));
        }
        states.push(state);
    }
    check_states(&states, layouts, workloads)
        .map_err(|(kind, reason)| root.error(kind, KEY, reason))?;
    Ok(states)
}
