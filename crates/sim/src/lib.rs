//! Discrete-event simulation of arrays over modelled drives.
//!
//! The [`World`] joins one array of the core, its modelled drives and the CPU of the host in virtual
//! time. It moves no bytes: segments name a buffer that is never looked at. One seed gives one run,
//! the same on any machine; a world runs on one thread, so parallel runs are parallel worlds.
#![forbid(unsafe_code)]

mod error;
mod host;
mod world;

pub use error::{SimError, SimErrorKind};
pub use host::HostCosts;
pub use world::{Answer, IoRecord, World};
