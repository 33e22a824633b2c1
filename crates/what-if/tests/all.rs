//! The tests of this crate as one program.

#[path = "../../../tests/support/root.rs"]
mod root;

mod same_figures;
mod worker;
