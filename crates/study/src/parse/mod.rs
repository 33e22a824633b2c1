//! Study files: TOML text to a checked [`Study`].
//!
//! The file is walked by hand rather than derived, so that every error has the line and the key
//! it is about and says what would be right.

mod drives;
mod errors;
mod given;
mod hardware;
mod layouts;
mod parameters;
mod settings;
pub(crate) mod table;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raidlab_core::Sectors;
use raidlab_core::layout::is_same_name;
use raidlab_core::suggest::did_you_mean;
use raidlab_toml_file::{DeTable, Source, Spanned};
use raidlab_workload::{MOST_PROCESSES, WorkloadSpec};

use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::parameters::Parts;
use crate::study::{
    FILESYSTEMS, MODELLED_FILESYSTEMS, NamedLayout, Only, Origin, State, Study, check_states,
};
use crate::sweep::SWEEP;
use errors::Errors;
pub(crate) use layouts::default_policy;
use table::{StudyTable, Table};

/// The most rounds a study may ask for.
const MOST_ROUNDS: u64 = 10_000;

/// Rounds where the file names no number: the fewest that give a 95 % interval of the median.
const DEFAULT_ROUNDS: u64 = 6;

const KEYS: [&str; 19] = [
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
    SWEEP,
];

/// The study that is run where none is named.
pub const fn default_study() -> &'static str {
    include_str!("../../../../studies/default.toml")
}

/// The studies to compare by that are compiled in: name and text, the default one first.
pub const fn builtin() -> [(&'static str, &'static str); 12] {
    macro_rules! studies {
        ($($name:literal),* $(,)?) => {
            [$(($name, include_str!(concat!("../../../../studies/", $name, ".toml")))),*]
        };
    }
    studies![
        "default",
        "files",
        "nas-4-bays",
        "vm-host",
        "backup",
        "chunks",
        "processes",
        "failures",
        "ssd-mirror",
        "unequal-drives",
        "shared-controller",
        "filesystems",
    ]
}

/// The comment that a study file begins with, as running text: when to use it.
pub fn preamble(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// What errors call the study that is run where none is named: its user has no file of it.
pub const DEFAULT_STUDY: &str = "default study";

/// Reads and checks a study file.
///
/// # Errors
/// [`Kind::Unreadable`] when the file cannot be read, else as [`parse`].
pub fn load(path: &Path) -> Result<Study, StudyError> {
    let mut study = parse(&read_text(path)?, &path.display().to_string())?;
    study.origin.set_file(path);
    Ok(study)
}

/// The text of a study file.
///
/// # Errors
/// [`Kind::Unreadable`].
pub fn read_text(path: &Path) -> Result<String, StudyError> {
    std::fs::read_to_string(path).map_err(|error| {
        let name = path.display().to_string();
        let begin = match error.kind() {
            std::io::ErrorKind::NotFound => {
                let meant = did_you_mean(&name, &builtin().map(|(known, _)| known));
                format!("{meant}; `raidlab study new {name}` begins one, `raidlab study list` names those there are")
            }
            _ => String::new(),
        };
        let reason = format!("cannot read the study file: {error}{begin}");
        StudyError::new(Kind::Unreadable, &name, None, "", reason).with_source(error)
    })
}

/// Checks the text of a study; `path` is what errors call it.
///
/// # Errors
/// All that is wrong, with lines and keys and what would be right, the first line in front.
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
    read_document(&source, &source.document()?, values)
}

/// The same of a document that may have other values in it than its text.
pub(crate) fn read_document(
    source: &Source<'_>,
    document: &Spanned<DeTable<'_>>,
    values: Option<&[f64]>,
) -> Result<Study, StudyError> {
    let root = Table::root(source, document);
    refuse_sweep(&root)?;
    let mut errors = Errors::default();
    let keys = root.check_keys(&[&KEYS[..], &settings::KEYS[..]].concat());
    let (mut of_root, has_strange_keys) = (Errors::default(), errors.keep(keys).is_none());
    let tables = Tables::read(&root, &mut of_root);
    let head = Head::read(&root, &mut of_root);
    errors.append(of_root, |error| has_strange_keys && error.kind == Kind::MissingKey);
    let paths = errors.keep(hardware::paths(&tables.paths)).unwrap_or_default();
    let filesystem = errors.keep(filesystem(&root)).flatten();
    let settings = errors.keep(settings::read(&root)).unwrap_or_default();
    let drives = drives::read(&tables.drives, &mut errors);
    let (mut of_layouts, has_parts) = (Errors::default(), errors.is_empty());
    let around = layouts::Around { drives: &drives, servers: &paths, root: &root, filesystem };
    let layouts = layouts::read(&tables.layouts, &around, &settings, &mut of_layouts);
    errors.append(of_layouts, |error| !has_parts && names_a_part(error));
    let (mut of_workloads, has_layouts) = (Errors::default(), errors.is_empty());
    let workloads = workloads::read(&tables.workloads, &layouts, &mut of_workloads);
    let baseline = of_workloads.keep(baseline(&root, &layouts)).unwrap_or_default();
    let states = of_workloads.keep(states(&root, &layouts, &workloads)).unwrap_or_default();
    errors.append(of_workloads, |error| !has_layouts && follows_from_layouts(error));
    // What names layouts and workloads makes sense only where all of them are there.
    errors.finish()?;

    let given = given::read(&tables.given, &layouts, &workloads)?;
    let mut parts = Parts {
        host: hardware::host(&root, filesystem.map(|name| (&root, name)))?,
        paths,
        layouts,
    };
    let parameters = parameters::read(&tables.parameters, &drives, &given, &mut parts, values)?;
    let Parts { host, paths, layouts } = parts;
    Ok(Study {
        measured: false,
        modelled: false,
        only: Only::default(),
        title: head.title,
        seed: head.seed,
        rounds: head.rounds.0,
        max_rounds: head.rounds.1,
        precision_percent: head.precision_percent,
        baseline,
        processes: head.processes,
        states,
        member_size: head.member_size,
        host,
        filesystem: filesystem.map(str::to_string),
        paths,
        drives,
        layouts,
        workloads,
        parameters,
        calibration: parameters::calibration(&root)?,
        given,
        origin: Origin {
            path: source.path.to_string(),
            directory: PathBuf::new(),
            lines: tables.lines(&root),
        },
    })
}

/// Whoever runs one study has nothing to do with a file of many.
fn refuse_sweep(root: &Table<'_>) -> Result<(), StudyError> {
    if !root.has(SWEEP) {
        return Ok(());
    }
    let reason = "makes many studies of this one: `raidlab sweep FILE` runs them, and with --show N prints the N-th \
                  as a study of its own";
    Err(root.error(Kind::NotSupported, SWEEP, reason))
}

/// An error about something that layouts name and that could not be read itself.
fn names_a_part(error: &StudyError) -> bool {
    let keys = ["layouts.drives", "layouts.route"];
    error.kind == Kind::TooFewDrives || keys.contains(&error.key.as_str())
}

/// An error about something that names layouts, or about which ones there are.
fn follows_from_layouts(error: &StudyError) -> bool {
    let keys = ["baseline", "workloads.only_layouts"];
    let names = error.kind == Kind::UnknownName && keys.contains(&error.key.as_str());
    names || error.key == "states" && error.kind == Kind::WrongValue
}

/// The lists of tables.
struct Tables<'a> {
    drives: Vec<Table<'a>>,
    layouts: Vec<Table<'a>>,
    paths: Vec<Table<'a>>,
    workloads: Vec<Table<'a>>,
    given: Vec<Table<'a>>,
    parameters: Vec<Table<'a>>,
}

impl<'a> Tables<'a> {
    fn read(root: &Table<'a>, errors: &mut Errors) -> Self {
        let mut keep = |tables| errors.keep(tables).unwrap_or_default();
        Self {
            drives: keep(root.tables("drives")),
            layouts: keep(root.tables("layouts")),
            workloads: keep(root.tables("workloads")),
            paths: keep(root.optional_tables("paths")),
            given: keep(root.optional_tables("given")),
            parameters: keep(root.optional_tables("parameters")),
        }
    }

    /// The lines of everything, for errors that only show when the study is run.
    fn lines(&self, root: &Table<'a>) -> BTreeMap<String, u32> {
        let mut lines = BTreeMap::new();
        root.record_lines("", &mut lines);
        let all = [&self.drives, &self.layouts, &self.workloads, &self.parameters, &self.given];
        for tables in all {
            for (index, table) in tables.iter().enumerate() {
                table.record_lines(&format!("{}[{index}]", table.name), &mut lines);
            }
        }
        lines
    }
}

/// What stands above the lists.
struct Head {
    title: String,
    seed: u64,
    rounds: (u32, u32),
    precision_percent: f64,
    processes: Vec<u32>,
    member_size: Option<Sectors>,
}

impl Head {
    fn read(root: &Table<'_>, errors: &mut Errors) -> Self {
        let title = root.required_text("title", "title = \"Which layout?\"");
        Self {
            title: errors.keep(title).unwrap_or_default().to_string(),
            seed: errors.keep(root.integer("seed", 0..=u64::MAX)).flatten().unwrap_or(1),
            rounds: errors.keep(rounds(root)).unwrap_or_default(),
            precision_percent: errors.keep(precision(root)).unwrap_or_default(),
            processes: errors.keep(processes(root)).unwrap_or_default(),
            member_size: errors.keep(member_size(root)).flatten(),
        }
    }
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
        return Ok(layouts.first().map(|first| first.name.clone()).into_iter().collect());
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
        let Some(found) = known.iter().find(|one| is_same_name(one, name)) else {
            let (hint, known) = (did_you_mean(name, known), known.join(", "));
            let reason = format!("`{name}` names no layout of this study{hint}; they are: {known}");
            return Err(table.error_at(Kind::UnknownName, *line, key, reason));
        };
        if layouts.iter().any(|earlier| earlier == found) {
            let reason = format!("`{name}` stands here twice; name it once");
            return Err(table.error_at(Kind::DuplicateName, *line, key, reason));
        }
        layouts.push((*found).to_string());
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
