//! Runs a study's cells on member files of a directory or on block devices, in real time, and verifies every byte.
//!
//! One set of [`Drives`] serves all layouts in turn. [`Sizes`] says how large members and arrays are, in bytes and
//! in sectors of 512 bytes, and what members carry besides data ([`MemberFormat`]); [`probe`] sizes the random
//! workloads of the default study by the speed of the drives; [`Rounds`] runs the cells. For each cell the array is set
//! up again, filled where its processes will read (untimed), run (timed), and every member is read and compared
//! (untimed). [`in_directory`] and [`on_array`] run one plan on a filesystem.
//!
//! Nothing here talks to a user or knows modelled drives: the caller must have confirmed what may be overwritten.
//!
//! A study on member files that exist only while it runs:
//!
//! ```
//! use std::ops::ControlFlow;
//! use std::sync::atomic::AtomicBool;
//! use raidlab_measure::{Drives, Rounds, Sizes};
//! use raidlab_study::parse;
//! use raidlab_targets::RunDirectory;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let study = parse(
//!     r#"
//!     title = "Three files"
//!     rounds = 1
//!     max_rounds = 1
//!     drives = [{ name = "file", file = "2MiB", count = 3 }]
//!     layouts = [{ level = "single" }, { level = "raid5", members = 3 }]
//!     workloads = [{ kind = "dd-write", size = "512KiB", block = "64KiB" }]
//!     "#,
//!     "mine.toml",
//! )?;
//! let sizes = Sizes::of(&study)?;
//! let files = RunDirectory::create_with(&std::env::temp_dir(), 3, sizes.file, sizes.extra(&study))?;
//! let (drives, cancel) = (Drives::Files(files), AtomicBool::new(false));
//! let rounds = Rounds::new(&study, &drives, &sizes, &cancel)?;
//! let samples = rounds.run(Vec::new(), &mut |_| ControlFlow::Continue(()))?;
//! for of_cell in &samples.samples {
//!     assert_eq!(of_cell[0].bytes_written, 512 << 10);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod cells;
mod devices;
mod drives;
mod error;
pub mod facts;
mod fill;
mod format;
mod memory;
mod mounted;
mod places;
mod rounds;
mod sizes;

pub use devices::Devices;
pub use drives::Drives;
pub use error::MeasureError;
pub use fill::Filling;
pub use format::{MdMembers, MemberFormat, md_creation};
pub use memory::host_memory;
pub use mounted::{Notification, Outcome, Tell, differing, in_directory, on_array};
pub use rounds::{Rounds, probe, size_random, size_sequential};
pub use sizes::{Sizes, member_for, whole_members};
