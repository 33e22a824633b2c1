//! The cells of a study in virtual time: on modelled drives, with or without a modelled host.
//!
//! [`Modelled`] is the [`Runner`](raidlab_study::Runner) of a study's cells; [`host`] runs a plan on a host over an
//! array that the caller has set up. One seed gives one run, the same on any machine.
#![forbid(unsafe_code)]

mod modelled;

pub use modelled::{Modelled, host, run_raw_plan};
