//! The results document and the statistics of comparison.
//!
//! [`document`] is the document, [`json`] how it is stored, [`find`] how to look things up in it,
//! [`replay`] what those of published studies have besides, [`comparison`] the rule for every verdict,
//! [`conduct`] whether the rounds can bear it, [`statistics`] the formulas behind its numbers, [`diff`] what changed
//! from one document to another, [`ranks`] the tests behind that. Nothing here knows what was measured or how.
#![forbid(unsafe_code)]

pub mod comparison;
pub mod conduct;
pub mod diff;
pub mod document;
pub mod error;
pub mod find;
pub mod json;
pub mod ranks;
pub mod replay;
pub mod statistics;
mod walsh;

pub use diff::{CellDiff, CellName, Change, Diff, DiffKind};
pub use document::{
    Better, Bottleneck, Cell, Clock, LatencyRow, LayoutRow, MembersRow, Published, Results,
    SCHEMA_VERSION, Verdict, WorkloadRow,
};
pub use error::{ResultsError, ResultsErrorKind};
pub use replay::{
    AblatedCell, AblatedWorkload, AblationRow, Fidelity, Finding, MISS_PERCENT, Miss, Moved,
    NamedCell, Replays,
};
