//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod harness;

mod arrivals;
mod completion_prediction;
mod determinism;
mod drive_files;
mod policies;
mod properties;
mod queue;
mod queueing;
mod reading;
mod smr;
mod ssd;
mod traces;
mod writing;
