//! Study files: TOML text to a checked [`Study`].
//!
//! The file is walked by hand rather than derived, so that every error has the line and the key
//! it is about and says what would be right.

mod drives;
mod given;
mod hardware;
mod layouts;
mod settings;
mod table;
mod workloads;

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::Sectors;
use raidlab_workload::{MOST_PROCESSES, WorkloadSpec};

use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::{FILESYSTEMS, NamedLayout, Only, Origin, State, Study, check_states};
use crate::suggest::did_you_mean;
use table::{Source, Table};

/// The most rounds a study may ask for.
const MOST_ROUNDS: u64 = 10_000;

/// Rounds where the file names no number: the fewest that give a 95 % interval of the median.
const DEFAULT_ROUNDS: u64 = 6;

const KEYS: [&str; 16] = [
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
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let reason = format!("cannot read the study file: {error}");
        StudyError::new(Kind::Unreadable, &name, None, "", reason).with_source(error)
    })?;
    parse(&text, &name)
}

/// Checks the text of a study; `path` is what errors call it.
///
/// # Errors
/// The first thing that is wrong, with line and key and what would be right.
pub fn parse(text: &str, path: &str) -> Result<Study, StudyError> {
    let source = Source { text, path };
    let document = source.document()?;
    let root = Table::root(&source, document.get_ref());
    root.check_keys(&[&KEYS[..], &settings::KEYS[..]].concat())?;

    let rounds = root.integer("rounds", 1..=MOST_ROUNDS)?.unwrap_or(DEFAULT_ROUNDS);
    let max_rounds = root.integer("max_rounds", 1..=MOST_ROUNDS)?.unwrap_or(rounds);
    if max_rounds < rounds {
        let reason =
            format!("{max_rounds} is less than the {rounds} rounds; make it at least that");
        return Err(root.error(Kind::WrongValue, "max_rounds", reason));
    }
    let drive_tables = root.tables("drives")?;
    let drives = drives::read(&drive_tables)?;
    let layout_tables = root.tables("layouts")?;
    let path_tables = root.optional_tables("paths")?;
    let paths = hardware::paths(&path_tables)?;
    let layouts = layouts::read(&layout_tables, &drives, &paths, &settings::read(&root)?)?;
    let workload_tables = root.tables("workloads")?;
    let workloads = workloads::read(&workload_tables)?;

    let filesystem = filesystem(&root)?;
    let given_tables = root.optional_tables("given")?;
    let given = given::read(&given_tables, &layouts, &workloads)?;

    let mut lines = BTreeMap::new();
    root.record_lines("", &mut lines);
    for tables in [&drive_tables, &layout_tables, &workload_tables] {
        for (index, table) in tables.iter().enumerate() {
            table.record_lines(&format!("{}[{index}]", table.name), &mut lines);
        }
    }
    Ok(Study {
        only: Only::default(),
        title: root.required_text("title", "title = \"Which layout?\"")?.to_string(),
        seed: root.integer("seed", 0..=u64::MAX)?.unwrap_or(1),
        rounds: rounds as u32,
        max_rounds: max_rounds as u32,
        precision_percent: precision(&root)?,
        baseline: baseline(&root, &layouts)?,
        processes: processes(&root)?,
        states: states(&root, &layouts, &workloads)?,
        member_size: member_size(&root)?,
        host: hardware::host(&root, filesystem.as_deref())?,
        filesystem,
        paths,
        drives,
        layouts,
        workloads,
        given,
        origin: Origin { path: path.to_string(), lines },
    })
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
    let names: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    let mut baseline: Vec<String> = Vec::new();
    for (name, line) in named {
        if !names.contains(&name) {
            let hint = did_you_mean(name, &names);
            let known = names.join(", ");
            let reason = format!("`{name}` names no layout of this study{hint}; they are: {known}");
            return Err(root.error_at(Kind::UnknownName, line, KEY, reason));
        }
        if baseline.iter().any(|known| known == name) {
            let reason = format!("`{name}` stands here twice; name it once");
            return Err(root.error_at(Kind::DuplicateName, line, KEY, reason));
        }
        baseline.push(name.to_string());
    }
    Ok(baseline)
}

/// `processes = [1, 2, 4]`; one where nothing is said.
fn processes(root: &Table<'_>) -> Result<Vec<u32>, StudyError> {
    const KEY: &str = "processes";
    let range = 1..=u64::from(MOST_PROCESSES);
    let Some(numbers) = root.integers(KEY, range, "processes = [1, 2, 4]")? else {
        return Ok(vec![1]);
    };
    let mut processes = Vec::new();
    for (number, line) in numbers {
        if processes.contains(&(number as u32)) {
            let reason = format!("{number} stands here twice; name it once");
            return Err(root.error_at(Kind::DuplicateName, line, KEY, reason));
        }
        processes.push(number as u32);
    }
    Ok(processes)
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
fn filesystem(root: &Table<'_>) -> Result<Option<String>, StudyError> {
    const KEY: &str = "filesystem";
    let Some(name) = root.text(KEY)? else { return Ok(None) };
    if FILESYSTEMS.contains(&name) {
        return Ok(Some(name.to_string()));
    }
    let (hint, known) = (did_you_mean(name, &FILESYSTEMS), FILESYSTEMS.join(", "));
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
