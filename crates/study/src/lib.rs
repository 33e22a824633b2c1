//! Study files, the matrix of cells, and how a study is run.
//!
//! * [`parse`] reads a study file into a checked [`Study`]; [`cells`] and [`order`] say which cells are run and in
//!   which order.
//! * [`run_rounds`] and [`run_rounds_parallel`] run them by a [`Runner`], which is all that differs between real
//!   and virtual time; [`resume_rounds`] and [`resume_rounds_parallel`] continue a run where it was stopped.
//! * [`summarise`] makes the results document from the samples.
//! * [`Sweep`] makes many studies of one file with a `[sweep]`.
//!
//! Nothing here knows who runs a study, a terminal or a report. Sizes have their units in study files; in the code
//! their types say whether they are bytes or sectors of 512 bytes.
//!
//! A study, its cells, and the error for an impossible one:
//!
//! ```
//! use raidlab_study::{StudyErrorKind, cells, parse};
//!
//! let text = r#"
//! title = "Mirror or parity?"
//! processes = [1, 4]
//! drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
//! layouts = [{ level = "raid10", members = 4 }, { level = "raid5", members = 4 }]
//! workloads = [{ kind = "random-read", size = "1MiB" }]
//! "#;
//! let study = parse(text, "mine.toml")?;
//! assert_eq!(cells(&study).len(), 2 * 2, "layouts and numbers of processes");
//!
//! let error = parse(&text.replace("count = 4", "count = 3"), "mine.toml").unwrap_err();
//! assert_eq!(error.kind, StudyErrorKind::TooFewDrives);
//! # Ok::<(), raidlab_study::StudyError>(())
//! ```
#![forbid(unsafe_code)]

mod conduct;
mod course;
mod error;
mod exact;
mod matrix;
mod parallel;
mod parameters;
mod parse;
mod rebuild;
pub mod replay;
mod run;
mod study;
mod summary;
mod sweep;
mod trust;
mod verdicts;

pub use error::{StudyError, StudyErrorKind};
pub use matrix::{CellKey, cell_seed, cell_title, cells, order};
pub use parallel::{resume_rounds_parallel, run_rounds_parallel};
pub use parameters::{Owner, Parameter, most_free};
pub use parse::{
    DEFAULT_STUDY, builtin, default_study, load, parse, parse_with, preamble, read_text,
};
pub use raidlab_core::suggest::did_you_mean;
pub use rebuild::Rebuild;
pub use run::{
    CellRun, Detail, Event, Latency, Progress, Runner, Sample, Samples, resume_rounds, run_rounds,
};
pub use study::{
    Calibration, DriveSource, Drives, FILESYSTEMS, GivenCell, Hardware, Host, IDLE_REBUILD,
    MODELLED_FILESYSTEMS, NATIVE, NamedLayout, Only, Origin, State, Study, filesystem_room,
    lost_member,
};
pub use summary::{cell_figures, run_warnings, summarise};
pub use sweep::{Point, PointStudy, Sweep, Value};
pub use trust::NO_HOST;
