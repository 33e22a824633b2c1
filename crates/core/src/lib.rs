//! The RAID planner as a value: it plans member I/O and parity, and does none of it.
//!
//! No clock, no I/O, no threads, no randomness. The same [`Array`] is driven by the engine over
//! real members, by the simulator in virtual time, and by the checker under injected faults.
//! The contract is written down in [`contract`]; in one sentence: **hand in every input that is
//! ready at `now`, then drain [`Array::poll`] until it gives `None`.**
//!
//! Addresses given to members are relative to the start of their data: where data start on a
//! drive is the driver's business.
#![forbid(unsafe_code)]

pub mod array;
pub mod bugs;
pub mod consistency;
pub mod contract;
pub mod geometry;
pub mod layout;
pub mod policy;
pub mod stack;
pub mod suggest;
mod totals;
pub mod units;
mod volume;

pub use array::{Array, Config, ConfigError, Consistency, Limits, MemberConfig, Settings, Tie};
pub use layout::{Layout, LayoutError, Level, Rotation};
pub use stack::{Stack, StackConfig};
pub use totals::MemberTotals;
pub use units::{MemberIndex, Nanos, SECTOR_BYTES, Sector, Sectors, Size, Time};
pub use volume::Volume;
