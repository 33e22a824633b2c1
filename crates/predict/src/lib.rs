//! Runs the cells of a study in virtual time, on modelled drives, with or without a modelled host.
//!
//! [`Modelled`] is the [`Runner`](raidlab_study::Runner) of a study's cells; [`host`] runs a plan on a host over an
//! array that the caller has set up. It knows no real members and no terminals. A seed determines the run, which is the
//! same on any machine. Times are virtual, in nanoseconds, and values have the units of their workloads' metrics.
//!
//! How many small reads a second a mirror delivers to one process, and to four:
//!
//! ```
//! use std::ops::ControlFlow;
//! use raidlab_predict::Modelled;
//! use raidlab_sim::HostCosts;
//! use raidlab_study::{StudyError, parse, run_rounds};
//!
//! # fn main() -> Result<(), StudyError> {
//! let study = parse(
//!     r#"
//!     title = "One reader, four readers"
//!     rounds = 1
//!     max_rounds = 1
//!     processes = [1, 4]
//!     drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
//!     layouts = [{ level = "raid10", members = 4 }]
//!     workloads = [{ kind = "random-read", size = "256KiB" }]
//!     "#,
//!     "mine.toml",
//! )?;
//! let mut drives = Modelled::new(&study, HostCosts::default())?;
//! let samples = run_rounds(&study, &mut drives, &mut |_| ControlFlow::Continue(()))?;
//! let rate = |cell: usize| samples.samples[cell][0].values[0].expect("long enough to tell");
//! assert!(rate(1) > 1.5 * rate(0), "four drives serve four readers at once");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod conditions;
mod modelled;
mod pass;
mod trace;

pub use conditions::Conditions;
pub use modelled::{Modelled, Pacer, Starts, host, run_raw_plan};
pub use pass::pass;
pub use trace::Trace;
