//! The tests of the crates with unsafe code under AddressSanitizer.

use std::io;
use std::path::Path;

use crate::fuzz::{SANITIZER, TRIPLE, sanitized, target_directory};

/// Crates with unsafe code. The allocator of the command has none that a test could reach.
const CRATES: [&str; 5] = ["engine", "kernel-lab", "parity", "metadata", "targets"];

/// Runs the tests of these crates, or of all of them; true if they pass and no access to memory is wrong.
/// Doc tests are left out: rustdoc links them without the sanitizer's library.
pub(crate) fn run(root: &Path, crates: &[&str]) -> io::Result<bool> {
    let crates = if crates.is_empty() { &CRATES[..] } else { crates };
    let mut command = sanitized(root, SANITIZER, &target_directory(root).join("asan"));
    command.args(["test", "--locked", "--no-fail-fast", "--target", TRIPLE, "--lib", "--tests"]);
    for one in crates {
        command.args(["--package", &format!("raidlab-{one}")]);
    }
    Ok(command.status()?.success())
}
