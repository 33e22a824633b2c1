//! Runs of studies on disk.
//!
//! A [`Store`] is a directory with a file a run, `ID.jsonl`: JSON lines that are only ever appended. The first is the
//! [`RunRecord`], with all that is needed to repeat the run; then comes a line for each finished run of a cell, and at
//! the end the results document and an [`End`]. Whoever writes a file holds its lock. What a file holds after a
//! crash at any moment is its complete lines: [`Store::read`] gives them, [`Store::take`] goes on from there.
#![forbid(unsafe_code)]

mod date;
mod differences;
mod error;
mod hash;
mod line;
mod list;
mod path;
mod read;
mod spelled;
mod store;
mod write;

pub use date::{Age, date_of};
pub use differences::differences;
pub use error::{StoreError, StoreErrorKind};
pub use hash::{Salt, hash_file};
pub use line::{
    CellName, Conditions, Drive, End, Machine, Options, Outcome, Place, Resumed, RunRecord,
    SCHEMA_VERSION, Setting, Source,
};
pub use list::{Entry, Head, State};
pub use path::PathText;
pub use read::Stored;
pub use spelled::{cell_names, spelled_out};
pub use store::{Store, default_directory};
pub use write::{Taken, Writer};
