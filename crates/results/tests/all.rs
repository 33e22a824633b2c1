//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod support;

mod comparison;
mod diff;
mod document;
mod rule;
mod second_diff;
mod second_rule;
mod statistics;
mod upgrade;
