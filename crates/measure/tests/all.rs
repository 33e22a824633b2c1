//! The tests of this crate as one program: each program more is linked once more.

mod cells;
mod formats;
