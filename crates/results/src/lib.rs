//! The results document and the statistics of comparison.
//!
//! * [`document`] is the document, [`json`] stores it, [`find`] looks things up in it; [`replay`] has what documents of
//!   published studies contain in addition.
//! * [`comparison`] is the rule for every verdict, [`conduct`] checks whether the rounds support it, [`statistics`]
//!   has the formulas.
//! * [`risk`] has how likely layouts are to lose data.
//! * [`trust`] says how far figures in virtual time are from a kernel's.
//! * [`diff`] says what changed from one document to another, by the tests in [`ranks`].
//!
//! Nothing here knows what was measured or how: a value has the unit that its [`Cell`] states, and a sample is one
//! value per round.
//!
//! The example compares two layouts measured in the same rounds. The rounds differ by more than the layouts do, but in
//! each round the second is a tenth faster:
//!
//! ```
//! use raidlab_results::comparison::Row;
//! use raidlab_results::{Better, Verdict};
//!
//! let base = [100.0, 130.0, 90.0, 105.0, 120.0, 95.0];
//! let other = base.map(|rate| rate * 1.1);
//! let row = |floor| {
//!     let layouts: &[&[f64]] = &[&base, &other];
//!     let better = Better::Higher;
//!     Row { layouts, baseline: &[0], again: None, better, floor, doubt: 0.0, drawn: true }.compare()
//! };
//! let compared = row(0.01)[1].expect("compared with the baseline");
//! assert_eq!(compared.verdict, Verdict::Faster);
//! assert!((compared.percent - 10.0).abs() < 1e-9);
//! assert_eq!(row(0.2)[1].expect("compared").verdict, Verdict::Equal, "by a fifth it would count");
//! ```
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
pub mod risk;
pub mod statistics;
pub mod trust;
mod untold;
mod upgrade;
mod walsh;

pub use diff::{CellDiff, CellName, Change, Diff, DiffKind};
pub use document::{
    Better, Bottleneck, Cell, Clock, GUEST_PROGRAMS, LATENCY_SHARES, LatencyRow, LayoutRow,
    MembersRow, Origin, Published, Results, SCHEMA_VERSION, TimelineRow, TooShort, Verdict,
    WorkloadRow,
};
pub use error::{ResultsError, ResultsErrorKind};
pub use replay::{
    AblatedCell, AblatedWorkload, AblationRow, Fidelity, Finding, MISS_PERCENT, Miss, Moved,
    NamedCell, Replays,
};
pub use risk::Risks;
pub use upgrade::upgrade;
