//! Records runs of studies on disk, and lists, reads and continues them.
//!
//! A [`Store`] is a directory with one file per run, `ID.jsonl`: JSON lines that are only ever appended. The first is
//! the [`RunRecord`], with all that is needed to repeat the run; then comes a line for each finished run of a cell,
//! and at the end the results document and an [`End`]. The writer of a file holds its lock. After a crash at any
//! moment the complete lines of a file count: [`Store::read`] returns them, [`Store::take`] continues from there. Times
//! are whole nanoseconds, dates are in UTC.
//!
//! [`shards`] is for work in many parts that any number of processes and machines share.
//!
//! Nothing here runs a study or knows reports: a run consists of what the caller hands in.
//!
//! In the example a run is recorded, listed, and read again:
//!
//! ```
//! use raidlab_core::Nanos;
//! use raidlab_results::Clock;
//! use raidlab_store::{
//!     Conditions, Options, Outcome, PathText, RunRecord, SCHEMA_VERSION, Setting, State, Store,
//!     cell_names, spelled_out,
//! };
//! use raidlab_study::{CellRun, Rebuild, Sample, default_study, parse};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = std::env::temp_dir().join(format!("raidlab-store-doc-{}", std::process::id()));
//! let study = parse(default_study(), "default.toml")?;
//! let store = Store::new(&directory);
//! store.make()?;
//! let mut writer = store.begin(RunRecord {
//!     schema_version: SCHEMA_VERSION,
//!     id: String::new(),   // given, as is the date, when the run begins
//!     date: String::new(),
//!     title: study.title.clone(),
//!     clock: Clock::Virtual,
//!     on: "virtual".into(),
//!     rounds: [study.rounds, study.max_rounds],
//!     pid: std::process::id(),
//!     command: Vec::new(),
//!     directory: PathText::default(),
//!     options: Options::default(),
//!     conditions: Conditions::default(),
//!     probed: None,
//!     study: spelled_out(&study),
//!     cells: cell_names(&study),
//!     setting: Setting::default(),
//! })?;
//! let id = writer.id().to_string();
//! let sample = Sample::of_rebuild(2.5, Rebuild { elapsed: Nanos(2_500_000_000), done: 1.0 });
//! writer.cell(&CellRun { round: 0, cell: 0, sample }, 1)?;
//! writer.end(Outcome::Interrupted, None, None)?;
//!
//! let listed = store.list()?;
//! assert_eq!((listed.len(), &listed[0].id), (1, &id));
//! assert_eq!(listed[0].head.as_ref().unwrap().state, State::Interrupted);
//! assert_eq!(store.read(&id)?.runs[0].sample.values, [Some(2.5)]);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod date;
mod differences;
mod error;
mod hash;
mod line;
mod list;
mod path;
mod read;
pub mod shards;
mod spelled;
mod store;
mod write;

pub use date::{Age, asctime, date_of};
pub use differences::differences;
pub use error::{StoreError, StoreErrorKind};
pub use hash::{Salt, hash_file};
pub use line::{
    CellName, Conditions, Drive, End, Guest, Machine, Options, Outcome, Place, Resumed, RunRecord,
    SCHEMA_VERSION, Setting, Source,
};
pub use list::{Entry, Head, State};
pub use path::PathText;
pub use read::Stored;
pub use spelled::{cell_names, spelled_out};
pub use store::{Store, default_directory};
pub use write::{Taken, Writer};
