//! The program `raidlab`, which is all in the library of its name.
#![forbid(unsafe_code)]

#[cfg(test)]
mod documents;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "mimalloc")]
    raidlab_allocator::keep_freed_memory();
    raidlab_cli::run()
}
