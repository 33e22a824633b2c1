//! The checker: the array core on drives that fail in every way, judged by one oracle.
//!
//! * [`content`]: what a sector holds, and parity over it.
//! * [`device`]: drives with a volatile cache, torn writes, records, faults; what a crash may leave.
//! * [`shape`]: where everything lies, worked out apart from the array.
//! * [`oracle`]: the legal values of every sector, one definition for all users.
//! * [`rig`]: one array driven over all of these, step by step, by whoever holds it.
//! * [`log`]: one line per event, with a legend, and the hash of a run.
//! * [`crash`]: every crash of small programs.
//! * [`nth`]: every member I/O of every operation fails in turn.
//! * [`swarm`]: random arrays, work and faults, one seed a run.
//! * [`part`]: all of these cut into parts that can be run apart, and their sum.
//! * [`replay`]: one run done again, by what a broken promise prints.
//! * `hunt`: plants bugs, and looks for them with all of these; with the feature `seeded-bugs`.
//! * [`choices`]: every choice in turn, or by a seed.
//!
//! Nothing here reads a clock, starts a thread or draws from anything but a seed.
#![forbid(unsafe_code)]

mod caught;
pub mod choices;
pub mod content;
pub mod crash;
pub mod device;
#[cfg(feature = "seeded-bugs")]
pub mod hunt;
pub mod log;
pub mod nth;
pub mod oracle;
pub mod part;
pub mod replay;
pub mod rig;
pub mod seen;
pub mod shape;
pub mod swarm;
