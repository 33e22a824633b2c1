//! The array as a state machine, in parts that own their state.
//!
//! Fault model: members may answer any I/O with an error, late or never again; the driver may hand
//! in answers to I/Os the array no longer knows. Nothing on a member is trusted after an error.
//! Why it is safe: a write is answered well only when every sector of it lies on a member that is
//! in service, or is computable from those that are (`write`, `stripe`); overlapping writes go
//! one after another (`locks`); a read is answered well only from members that answered well.
//! After a crash the consistency mode decides: a write goes out only when what its mode needs is
//! durable, the dirty flag and its bits of the bitmap (`write_intent`) or an entry of the partial-parity log
//! or the journal (`log`), from which the next start makes redundancy consistent. In mode `none` nothing
//! is recorded and redundancy may be inconsistent. [`crate::consistency`] has the promise of each mode.
//! Tests: `tests/model.rs`, against a flat copy of what the array should hold, with a member lost at
//! every point; `tests/consistency.rs` and `tests/logs.rs` for power cuts.

mod background;
mod bad_blocks;
mod config;
mod ios;
mod jobs;
mod lists;
mod locks;
mod log;
mod member;
mod member_set;
mod metadata_updates;
mod planner;
mod requests;
mod roles;
mod room;
mod runs;
mod settings;
mod setup;
mod slab;
mod starved;
mod stripe;
mod timers;
mod write_intent;

pub use background::{Status, WorkStatus};
pub use config::{Config, Limits, MemberConfig, check_policy};
pub use lists::Segments;
pub(crate) use lists::{EMPTY as EMPTY_LIST, TAG_SHIFT, tag_of};
pub use planner::{Array, Lacking};
pub use settings::{ConfigError, Consistency, Settings, Tie};
pub(crate) use write_intent::Start;
