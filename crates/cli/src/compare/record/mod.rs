//! Recording a run as it goes on, and going on with one that was stopped.
//!
//! That a run cannot be recorded is a warning: nobody loses hours of measuring to a full disk of another kind.

pub(super) mod host;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raidlab_results::Results;
use raidlab_store::{
    Conditions, Drive, Guest, Options, Outcome, PathText, RunRecord, SCHEMA_VERSION, Salt, Source,
    Store, StoreError, Taken, Writer, cell_names, default_directory, hash_file, spelled_out,
};
use raidlab_study::{
    CellKey, CellRun, DEFAULT_STUDY, DriveSource, Event, Progress, Samples, Study, cell_seed,
    default_study,
};

use super::Setting;
use crate::args::{Compare, StoreDirectory};
use crate::failure::Failure;
use crate::output::note;

/// The variable that says where runs are recorded.
const VARIABLE: &str = "RAIDLAB_STORE";
/// What it says for nothing to be recorded.
const OFF: &str = "off";

/// Records a run.
#[derive(Debug)]
pub(super) struct Recorder {
    recording: Recording,
    /// The study file.
    source: Source,
    /// What must be the same for the run to go on, once it is known.
    conditions: Option<Conditions>,
    /// The place of each cell.
    cells: BTreeMap<CellKey, usize>,
    /// How often the run was stopped before.
    stops: usize,
    /// What a probe found of the drives, when it is known.
    probed: Option<f64>,
    /// The run that is being recorded.
    name: Option<String>,
    /// Why nothing is recorded, to be told when the run begins.
    obstacle: Option<String>,
    /// All rounds that the study asks for are there: whoever stops it now stops nothing.
    is_whole: bool,
}

/// How far recording is.
#[derive(Debug)]
enum Recording {
    /// Nothing is recorded.
    Off,
    /// A run is to be begun.
    New(Store),
    /// A run is to go on.
    Stopped(Store, Box<Taken>),
    /// A run is being recorded.
    On(Writer),
}

/// Where runs are recorded: the flag, else the variable, else where programs keep such things. `None`: nowhere, as the
/// variable says.
///
/// # Errors
/// When nothing says where.
pub(crate) fn directory(flag: &StoreDirectory) -> Result<Option<PathBuf>, Failure> {
    if let Some(directory) = &flag.store {
        return Ok(Some(directory.clone()));
    }
    let set = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    if let Some(value) = set {
        return Ok((value != OFF).then(|| value.into()));
    }
    let directory = default_directory(|name| std::env::var_os(name));
    directory
        .map(Some)
        .ok_or_else(|| Failure::input("HOME is not set: say with --store where runs are recorded"))
}

fn not_recorded(why: &dyn std::fmt::Display) {
    note(&format!("warning: this run is not recorded: {why}"));
}

/// The command line, for people.
fn command() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

impl Recorder {
    /// For a new run.
    pub(super) fn new(options: &Compare) -> Self {
        if options.no_store {
            return Self::of(Recording::Off);
        }
        match directory(&options.store) {
            Ok(None) => Self::of(Recording::Off),
            Ok(Some(directory)) => Self::of(Recording::New(Store::new(directory))),
            Err(failure) => {
                let obstacle = Some(failure.what().to_string());
                Self { obstacle, ..Self::of(Recording::Off) }
            }
        }
    }

    /// For a new run beside one in real time, of the same study file and sized by the same probe.
    pub(super) fn beside(options: &Compare, source: Source, probed: Option<f64>) -> Self {
        Self { source, probed, ..Self::new(options) }
    }

    /// For a run that was stopped.
    pub(super) fn going_on(store: Store, taken: Taken) -> Self {
        Self::of(Recording::Stopped(store, Box::new(taken)))
    }

    fn of(recording: Recording) -> Self {
        let (stops, probed) = match &recording {
            Recording::Stopped(_, taken) => {
                (taken.stored.resumed.len() + 1, taken.stored.record.probed)
            }
            _ => (0, None),
        };
        Self {
            recording,
            source: Source::default(),
            conditions: None,
            cells: BTreeMap::new(),
            stops,
            probed,
            name: None,
            obstacle: None,
            is_whole: false,
        }
    }

    /// The study file of the options: as it is, or as it was when the run began if it is no longer there.
    pub(super) fn source(&mut self, options: &Compare) -> Result<Source, Failure> {
        let recorded = match &self.recording {
            Recording::Stopped(_, taken) => Some(&taken.stored.record.conditions.study_file),
            _ => None,
        };
        self.source = match (&options.study, recorded) {
            (None, _) => Source { path: DEFAULT_STUDY.into(), text: default_study().into() },
            (Some(path), _) if super::compiled_in(path).is_some() => {
                let (name, text) = super::compiled_in(path).unwrap_or_default();
                Source { path: name.into(), text: text.into() }
            }
            (Some(path), Some(recorded)) if !path.is_file() => {
                let path = path.display();
                note(&format!(
                    "{path} is no file any more; the study is the one that was recorded"
                ));
                recorded.clone()
            }
            (Some(path), _) => {
                let text = raidlab_study::read_text(path).map_err(Failure::input)?;
                Source { path: path.display().to_string(), text }
            }
        };
        Ok(self.source.clone())
    }

    /// Looks at what must be the same for the run to go on: `directory` holds the member files, `guest` is what cells
    /// run in, `drives` are those of the run, with their serial numbers hashed by the salt.
    ///
    /// # Errors
    /// For a run that was stopped, all in what it differs.
    pub(super) fn conditions(
        &mut self,
        study: &Study,
        directory: Option<&Path>,
        guest: Option<Guest>,
        drives: impl FnOnce(Salt) -> Vec<Drive>,
    ) -> Result<(), Failure> {
        let store = match &self.recording {
            Recording::Off | Recording::On(_) => return Ok(()),
            Recording::New(store) | Recording::Stopped(store, _) => store,
        };
        let known = || -> Result<(Salt, Vec<Source>), Failure> {
            Ok((store.make().map_err(Failure::failed)?, drive_files(study)?))
        };
        let (salt, drive_files) = match (known(), &self.recording) {
            (Ok(known), _) => known,
            (Err(failure), Recording::Stopped(..)) => return Err(failure),
            (Err(failure), _) => {
                self.obstacle = Some(failure.what().to_string());
                self.recording = Recording::Off;
                return Ok(());
            }
        };
        // Also when the file has been replaced since the program was started.
        let binary = hash_file(Path::new("/proc/self/exe"));
        let now = Conditions {
            raidlab: env!("CARGO_PKG_VERSION").to_string(),
            commit: option_env!("RAIDLAB_COMMIT").map(str::to_string),
            binary: binary.ok(),
            machine: host::machine(),
            study_file: self.source.clone(),
            drive_files,
            place: directory.map(|directory| host::place(directory, salt)),
            drives: drives(salt),
            guest,
        };
        if let Recording::Stopped(_, taken) = &self.recording {
            let record = &taken.stored.record;
            refuse(&record.id, &record.conditions.differences(&now, record.clock))?;
        }
        self.conditions = Some(now);
        Ok(())
    }

    /// What a probe found when the run was begun, or the one beside it.
    pub(super) fn probed(&self) -> Option<f64> {
        self.probed
    }

    /// The run that is being recorded.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Begins to record, or to go on; gives the runs of cells that are finished.
    ///
    /// # Errors
    /// When the study has become another one, or a run that is to go on cannot be written.
    pub(super) fn begin(
        &mut self,
        study: &Study,
        options: &Compare,
        setting: &Setting,
        probed: Option<f64>,
    ) -> Result<Vec<CellRun>, Failure> {
        if let Some(obstacle) = self.obstacle.take() {
            not_recorded(&obstacle);
        }
        self.probed = probed;
        let Some(conditions) = self.conditions.take() else { return Ok(Vec::new()) };
        let cells = raidlab_study::cells(study).into_iter().enumerate();
        self.cells = cells.map(|(index, key)| (key, index)).collect();
        let record = record(study, options, setting, conditions, probed);
        match std::mem::replace(&mut self.recording, Recording::Off) {
            Recording::New(store) => {
                match store.begin(record) {
                    Ok(writer) => self.on(writer),
                    Err(error) => not_recorded(&error),
                }
                Ok(Vec::new())
            }
            Recording::Stopped(_, taken) => {
                refuse(&taken.stored.record.id, &taken.stored.record.differences(&record))?;
                let finished = taken.stored.runs.clone();
                if taken.stored.torn_bytes > 0 {
                    note("the last line of the run was not written to its end and does not count");
                }
                self.on(taken.go_on(command()).map_err(Failure::failed)?);
                Ok(finished)
            }
            other => {
                self.recording = other;
                Ok(Vec::new())
            }
        }
    }

    fn on(&mut self, writer: Writer) {
        self.name = Some(writer.id().to_string());
        self.recording = Recording::On(writer);
    }

    /// What a reader must know of a run in real time that was stopped.
    pub(super) fn warning(&self) -> Option<String> {
        stopped(self.stops)
    }

    /// Records a run of a cell that has just finished.
    pub(super) fn keep(&mut self, study: &Study, progress: &Progress<'_>) {
        let Recording::On(writer) = &mut self.recording else { return };
        let (Event::Finished(sample), Some(&cell)) = (progress.event, self.cells.get(progress.key))
        else {
            return;
        };
        let round = progress.round;
        let seed = cell_seed(study, progress.key, round);
        if let Err(error) = writer.cell(&CellRun { round, cell, sample: sample.clone() }, seed) {
            self.lost(&error);
        }
    }

    /// The rounds have come to their end, or were stopped.
    pub(super) fn ran(&mut self, samples: &Samples) {
        self.is_whole = !samples.aborted;
    }

    /// Whether all rounds are there.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Recording stops here; the run goes on.
    fn lost(&mut self, error: &StoreError) {
        note(&format!("warning: the run is not recorded from here on: {error}"));
        self.recording = Recording::Off;
        self.name = None;
    }

    /// Records how the run ended; gives words on how it goes on when it is not done.
    pub(super) fn end(
        mut self,
        outcome: &Result<Option<Results>, Failure>,
        is_cancelled: bool,
        options: &Compare,
    ) -> Option<String> {
        let Recording::On(writer) = std::mem::replace(&mut self.recording, Recording::Off) else {
            return None;
        };
        let (how, why, results) = match outcome {
            Err(Failure::Interrupted) => (Outcome::Interrupted, None, None),
            Err(failure) => (Outcome::Failed, Some(failure.what().to_string()), None),
            Ok(None) => (Outcome::Interrupted, None, None),
            Ok(Some(results)) => match results.to_json() {
                // Nobody can read such a document again.
                Err(error) => (Outcome::Failed, Some(error.to_string()), None),
                Ok(_) if is_cancelled => (Outcome::Interrupted, None, Some(results)),
                Ok(_) => (Outcome::Done, None, Some(results)),
            },
        };
        if let Err(error) = writer.end(how, why, results) {
            self.lost(&error);
        }
        let name = self.name.filter(|_| how != Outcome::Done)?;
        let place = options.store.store.as_deref().map_or(String::new(), |directory| {
            format!(" --store {}", quoted(&directory.display().to_string()))
        });
        Some(format!(
            "what is finished is recorded; to go on: raidlab compare --resume {name}{place}"
        ))
    }
}

/// What a reader must know of a run in real time that was stopped so often.
pub(super) fn stopped(stops: usize) -> Option<String> {
    let times = if stops == 1 { "once".into() } else { format!("{stops} times") };
    (stops > 0).then(|| {
        format!("stopped and resumed {times}: the machine may have been another way in between")
    })
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+,:@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn refuse(id: &str, differences: &[String]) -> Result<(), Failure> {
    if differences.is_empty() {
        return Ok(());
    }
    let list = differences.join("\n  ");
    Err(Failure::input(format!(
        "run {id} cannot go on, since its cells could not be compared; what differs:\n  {list}"
    )))
}

/// The drive files that a study names, each once, from where models load them.
///
/// # Errors
/// When one cannot be read: what is not known cannot be compared when the run is to go on.
fn drive_files(study: &Study) -> Result<Vec<Source>, Failure> {
    let mut files: Vec<Source> = Vec::new();
    for group in &study.drives {
        let DriveSource::Model(path) = &group.source else { continue };
        if !raidlab_models::is_drive_file(path) || files.iter().any(|file| file.path == *path) {
            continue;
        }
        let place = study.origin.directory.join(path);
        let text = std::fs::read_to_string(&place).map_err(|error| {
            Failure::input(format!("{}: cannot read the drive file: {error}", place.display()))
        })?;
        files.push(Source { path: path.clone(), text });
    }
    Ok(files)
}

fn record(
    study: &Study,
    options: &Compare,
    setting: &Setting,
    conditions: Conditions,
    probed: Option<f64>,
) -> RunRecord {
    let directory = std::env::current_dir().unwrap_or_default();
    let Setting { clock, host, settings, warnings, capacities } = setting;
    RunRecord {
        schema_version: SCHEMA_VERSION,
        id: String::new(),
        date: String::new(),
        title: study.title.clone(),
        clock: *clock,
        on: options.on.to_string_lossy().into_owned(),
        rounds: [study.rounds, study.max_rounds],
        pid: std::process::id(),
        command: command(),
        directory: PathText::from(&*directory),
        options: Options {
            study: options.study.as_deref().map(PathText::from),
            on: PathText::from(Path::new(&options.on)),
            seed: options.seed,
            rounds: options.rounds,
            size: options.size.map(|size| size.0),
            states: options
                .states
                .as_ref()
                .map(|states| states.iter().map(|state| state.name().to_string()).collect()),
            filesystem: options.filesystem.clone(),
            beside: options.beside.as_deref().map(|place| PathText::from(Path::new(place))),
        },
        conditions,
        probed,
        study: spelled_out(study),
        cells: cell_names(study),
        setting: raidlab_store::Setting {
            host: host.clone(),
            settings: settings.clone(),
            warnings: warnings.clone(),
            capacities: capacities.iter().map(|capacity| capacity.0).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(quoted("/mnt/runs-1"), "/mnt/runs-1");
        assert_eq!(quoted("my runs"), "'my runs'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
