//! Files with a number each, in seven directories, whose contents tell which they are.

use std::path::{Path, PathBuf};

/// Where a file is below `at`.
pub(crate) fn path(at: &Path, number: u64) -> PathBuf {
    at.join(format!("{}", number % 7)).join(number.to_string())
}

/// What a file holds: nothing that any other does, up to 128 KiB.
pub(crate) fn bytes(number: u64) -> Vec<u8> {
    let words = 1 + number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (16 << 10);
    (0..words).flat_map(|word| (number << 32 | word).to_le_bytes()).collect()
}
