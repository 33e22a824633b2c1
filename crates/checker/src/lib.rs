//! The checker: runs the array core on simulated drives that fail in every way, and judges every answer by one oracle.
//! `docs/reliability.md` lists the faults and the promises that it checks.
//!
//! * [`content`]: what a sector holds, and parity over it.
//! * [`device`]: drives with a volatile cache, torn writes, records, faults; what a crash may leave.
//! * [`shape`]: where everything lies, computed independently of the array.
//! * [`oracle`]: the legal values of every sector, one definition for all users.
//! * [`harness`]: drives one array over all of these, step by step.
//! * [`log`]: one line per event, with a legend, and the hash of a run.
//! * [`crash`]: crash enumeration, every crash of small programs.
//! * [`fault_points`]: the fault-point sweep, in which every member I/O of every operation fails in turn.
//! * [`swarm`]: random arrays, work and faults, one seed per run.
//! * [`part`]: all of these divided into parts that can run separately, and their sum.
//! * [`reproduction`]: repeats one run from what a broken guarantee prints.
//! * `mutation`: plants bugs, and searches for them with all of these; only in builds with debug assertions.
//! * [`choices`]: makes every choice in turn, or by a seed.
//! * [`breach`]: what is wrong, in kind and in words.
//!
//! Nothing here reads a clock, starts a thread, draws from anything but a seed, or knows modelled drives. A sector
//! is one value here, not 512 bytes; all lengths are in sectors.
//!
//! A seed determines an array, its work and its faults, the same each time:
//!
//! ```
//! use raidlab_checker::swarm::{Options, run};
//! use raidlab_core::Level;
//!
//! let raid6 = Options { level: Some(Level::Raid6), ..Options::default() };
//! let outcome = run(42, &raid6).unwrap_or_else(|broken| panic!("{broken}"));
//! assert!(outcome.ios > 0, "members were asked for something");
//! assert_eq!(run(42, &raid6), Ok(outcome), "the same seed is the same run");
//! ```
#![forbid(unsafe_code)]

pub mod breach;
mod caught;
pub mod choices;
pub mod content;
pub mod crash;
pub mod device;
pub mod fault_points;
pub mod harness;
pub mod log;
#[cfg(debug_assertions)]
pub mod mutation;
pub mod oracle;
pub mod part;
pub mod reproduction;
pub mod seen;
pub mod shape;
pub mod swarm;
