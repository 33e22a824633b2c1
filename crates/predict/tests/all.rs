//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod conditions;
#[path = "../../../tests/support/kept.rs"]
mod kept;
mod modelled_host;
mod modelled_kernels;
mod modelled_raw;
mod parameters;
mod ready_studies;
mod replays;
mod sanity;
mod states;
mod traces;
