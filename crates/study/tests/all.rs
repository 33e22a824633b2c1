//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod support;

mod course;
mod defaults;
mod documents;
mod hosts;
mod parse_bad;
mod parse_good;
mod rebuild;
mod resuming;
mod running;
mod states;
mod too_short;
mod trust;
mod warnings;
