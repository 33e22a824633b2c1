//! Hashes: of files, to tell one from another, and of serial numbers, to tell drives apart without naming them.

use std::fs::File;
use std::hash::Hasher;
#[expect(
    deprecated,
    reason = "SipHash-2-4 for good; what came after it may change its algorithm"
)]
use std::hash::SipHasher;
use std::io::{self, Read};
use std::path::Path;

/// What is read at a time, in bytes.
const PIECE: usize = 1 << 20;

/// What serial numbers of one store are hashed with: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salt(pub(crate) [u8; 16]);

impl Salt {
    /// The hash of a text in 16 hexadecimal digits. Without the salt nobody tells from it what the text was, nor
    /// whether two stores hold the same: SipHash-2-4 is a keyed pseudo-random function (J.-P. Aumasson and
    /// D. J. Bernstein, "SipHash: a fast short-input PRF", 2012).
    pub fn hash(&self, text: &str) -> String {
        let mut hasher = Self::hasher(self.0);
        hasher.write(text.as_bytes());
        shown(hasher.finish())
    }

    #[expect(deprecated, reason = "SipHash-2-4 for good")]
    fn hasher(key: [u8; 16]) -> SipHasher {
        let (low, high) = key.split_at(8);
        let number = |bytes: &[u8]| {
            bytes.iter().rev().fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
        };
        SipHasher::new_with_keys(number(low), number(high))
    }
}

fn shown(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The hash of a file, SipHash-2-4 with a key of zeroes, in 16 hexadecimal digits: another file has another by
/// all chance, but somebody could make one that has the same.
///
/// # Errors
/// When it cannot be read.
pub fn hash_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Salt::hasher([0; 16]);
    let mut piece = vec![0; PIECE];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(shown(hasher.finish()));
        }
        hasher.write(&piece[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper, appendix A.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let key: [u8; 16] = std::array::from_fn(|byte| byte as u8);
        let mut hasher = Salt::hasher(key);
        hasher.write(&(0..15).collect::<Vec<u8>>());
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn another_salt_gives_another_hash() {
        let (one, other) = (Salt([1; 16]), Salt([2; 16]));
        assert_eq!(one.hash("WD-1"), one.hash("WD-1"));
        assert_ne!(one.hash("WD-1"), one.hash("WD-2"));
        assert_ne!(one.hash("WD-1"), other.hash("WD-1"));
    }

    #[test]
    fn files_are_told_apart_wherever_they_differ() {
        let path = std::env::temp_dir().join(format!("raidlab-store-hash-{}", std::process::id()));
        let mut bytes = vec![7; PIECE + 13];
        let mut hash = |at: usize| {
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("a file");
            hash_file(&path).expect("can be read")
        };
        let hashes = [hash(0), hash(PIECE - 1), hash(PIECE), hash(PIECE + 12)];
        let again = hash(PIECE + 12);
        std::fs::remove_file(&path).expect("ours");
        assert!(hashes.iter().enumerate().all(|(n, one)| !hashes[..n].contains(one)), "{hashes:?}");
        assert_eq!(again, hashes[2]);
    }
}
