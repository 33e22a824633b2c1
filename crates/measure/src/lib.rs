//! A study's cells on member files of a directory or on block devices, in real time, every byte verified.
//!
//! One set of [`Drives`] serves all layouts in turn. [`Sizes`] says how large members and arrays are, [`probe`] sizes
//! the random workloads of the default study by how fast the drives are, [`Rounds`] runs them. For each cell the
//! array is set up afresh, filled where its processes will read (untimed), run (timed), and every member is read and
//! compared (untimed).
//!
//! Nothing here asks or tells a person anything: what may be overwritten is the caller's to have confirmed.
#![forbid(unsafe_code)]

mod cells;
mod devices;
mod drives;
mod error;
pub mod facts;
mod fill;
mod memory;
mod mounted;
mod rounds;
mod sizes;

pub use devices::Devices;
pub use drives::Drives;
pub use error::MeasureError;
pub use fill::Filling;
pub use memory::host_memory;
pub use mounted::{Notification, Outcome, Tell, differing, in_directory, on_array};
pub use rounds::{Rounds, probe, size_random, size_sequential};
pub use sizes::{Sizes, member_for, whole_members};
