//! The lines of a run's file.

use std::collections::BTreeMap;

use raidlab_core::Sectors;
use raidlab_results::Clock;
use raidlab_study::{CellRun, Sample};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::path::PathText;

/// The version of the schema of a run's lines that this code writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// A line that was read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first.
    Run(Box<RunRecord>),
    /// A finished run of a cell.
    Cell(Box<CellLine>),
    /// The run went on.
    Resumed(Resumed),
    /// The results document.
    Results(Value),
    /// The run ended.
    End(End),
}

/// A line that is to be written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineRef<'a> {
    Run(&'a RunRecord),
    Cell(CellRef<'a>),
    Resumed(&'a Resumed),
    Results(&'a raidlab_results::Results),
    End(&'a End),
}

/// What a run is, and all that is needed to repeat it: the first line of its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Its name, which is that of the file.
    pub id: String,
    /// When it began, in UTC as RFC 3339 has it.
    pub date: String,
    /// The title of the study.
    pub title: String,
    /// Which clock the times are by.
    pub clock: Clock,
    /// What it runs on, as the command line says it.
    pub on: String,
    /// How many rounds the study has at least and at most.
    pub rounds: [u32; 2],
    /// The process that wrote it.
    pub pid: u32,
    /// The command line.
    pub command: Vec<String>,
    /// The directory it was given in, from which relative paths go out.
    pub directory: PathText,
    /// What of the command line makes the study what it is.
    pub options: Options,
    /// What must be the same for the run to go on.
    pub conditions: Conditions,
    /// Blocks of 4 KiB a second that the drives took in the probe that random workloads are sized by;
    /// null where there was none.
    pub probed: Option<f64>,
    /// Every choice of the study, defaults too: see [`spelled_out`](crate::spelled_out).
    pub study: Value,
    /// The cells; lines of runs name them by their place here, from 0.
    pub cells: Vec<CellName>,
    /// What the results document says of the run besides its cells.
    pub setting: Setting,
}

/// Options of the command line that make a study what it is; null where they were not given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The study file; without it the default study.
    pub study: Option<PathText>,
    /// `virtual`, a directory, or devices.
    pub on: PathText,
    /// The seed.
    pub seed: Option<u64>,
    /// How many rounds, exactly.
    pub rounds: Option<u32>,
    /// Bytes for each process.
    pub size: Option<u64>,
    /// The states of the arrays.
    pub states: Option<Vec<String>>,
    /// The filesystem.
    pub filesystem: Option<String>,
    /// Where the same study runs by the other clock, with the same sizes; absent of a run of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<PathText>,
}

impl Default for PathText {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// What must be the same for a run to go on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// The version of raidlab.
    pub raidlab: String,
    /// The commit it was built from; null where that is not known.
    pub commit: Option<String>,
    /// The hash of the program's file, as [`hash_file`](crate::hash_file) has it; null where it cannot be read.
    pub binary: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The study file.
    pub study_file: Source,
    /// The drive files that the study names, in its order.
    pub drive_files: Vec<Source>,
    /// The directory of member files; null on other targets.
    pub place: Option<Place>,
    /// The drives: modelled ones in virtual time, else block devices in the order they were named.
    pub drives: Vec<Drive>,
    /// What the cells' guests run; absent where cells run in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Guest>,
}

/// What guests run. The names are those of the kernel lab, with version and hashes where it built them; another file
/// may stand under the same name, hence the hashes of today's, as [`hash_file`](crate::hash_file) has them: null where
/// a file cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// The kernel.
    pub kernel: String,
    /// The hash of its image.
    pub kernel_hash: Option<String>,
    /// The archive of programs.
    pub programs: String,
    /// The hash of the archive.
    pub programs_hash: Option<String>,
}

/// A file with what it held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its path as it was given.
    pub path: String,
    /// What it held.
    pub text: String,
}

/// The machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The processor.
    pub cpu: Option<String>,
    /// How many processors the program may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: Option<u64>,
}

/// The directory of member files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its path without links.
    pub path: String,
    /// The filesystem, such as `ext4`.
    pub filesystem: Option<String>,
    /// What it is mounted from.
    pub device: Option<String>,
    /// How it is mounted, the options of the mount and of the filesystem.
    pub mount_options: Option<String>,
    /// The drive below, where the kernel names one.
    pub drive: Option<Drive>,
}

/// A drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drive {
    /// What it is called: the path of a device, the kernel's name, the name of a model.
    pub name: String,
    /// The maker's name for it.
    pub model: Option<String>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The hash of its serial number with the store's [`Salt`](crate::Salt).
    pub serial_hash: Option<String>,
    /// The request scheduler.
    pub scheduler: Option<String>,
    /// It has platters, as far as the kernel knows.
    pub rotational: Option<bool>,
}

/// What the results document says of a run besides its cells; see
/// [`summarise`](raidlab_study::summarise).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// What the study runs on.
    pub host: BTreeMap<String, String>,
    /// What the cells have in common.
    pub settings: BTreeMap<String, String>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// Sectors of 512 bytes of each layout.
    pub capacities: Vec<u64>,
}

impl Setting {
    /// The capacities of the layouts.
    pub fn capacities(&self) -> Vec<Sectors> {
        self.capacities.iter().copied().map(Sectors).collect()
    }
}

/// A cell by the names of the study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellName {
    /// The layout.
    pub layout: String,
    /// The workload.
    pub workload: String,
    /// How many processes; 0 for a rebuild alone.
    pub processes: u32,
    /// The state of the array.
    pub state: String,
    /// The layout is measured once more, for the noise floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// A finished run of a cell.
#[derive(Debug, Deserialize)]
pub(crate) struct CellLine {
    pub(crate) round: u32,
    pub(crate) cell: usize,
    pub(crate) sample: Sample,
}

/// The same to be written.
#[derive(Serialize)]
pub(crate) struct CellRef<'a> {
    round: u32,
    cell: usize,
    seed: u64,
    /// How many rounds are complete with it.
    complete: u32,
    sample: &'a Sample,
}

impl<'a> CellRef<'a> {
    pub(crate) fn new(run: &'a CellRun, seed: u64, complete: u32) -> Self {
        Self { round: run.round, cell: run.cell, seed, complete, sample: &run.sample }
    }
}

/// A run that was stopped goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// When, in UTC.
    pub date: String,
    /// The process that goes on.
    pub pid: u32,
    /// Its command line.
    pub command: Vec<String>,
    /// How many rounds were complete.
    pub complete: u32,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When, in UTC.
    pub date: String,
    /// How.
    pub outcome: Outcome,
    /// Why, where it failed.
    pub why: Option<String>,
    /// How many rounds are complete.
    pub rounds: u32,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// With all its rounds.
    Done,
    /// By Ctrl-C or a request to terminate.
    Interrupted,
    /// By an error.
    Failed,
}
