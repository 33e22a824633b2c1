//! Parity arithmetic: XOR of blocks, P and Q, lost data from them, with run-time dispatch, and a scalar
//! oracle for everything.
//!
//! The public functions take slices and check them; those called `_raw` are unsafe, for a caller whose
//! target may be one of the sources. Every fast path equals [`scalar`] byte for byte (`tests/equal.rs`,
//! `tests/pq.rs`). Stores are ordinary (cached) ones: a result that is written to a drive at once is
//! still in the cache when the drive's driver reads it.

mod dispatch;
mod field;
mod pq;
pub mod scalar;
mod syndrome;

pub use dispatch::{Path, path};
pub use pq::{
    Lost, delta, delta_raw, pq, pq_raw, recover_by_p, recover_by_q, recover_raw, recover_two,
};
pub use syndrome::{Block, Change};

use std::fmt;

/// What is wrong with the blocks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParityErrorKind {
    /// A block is not as long as the target.
    LengthMismatch,
    /// Not as many exponents as sources.
    CountMismatch,
    /// An exponent above 254: the generator's powers repeat after 255.
    BadExponent,
    /// An exponent that comes twice: the two blocks could not be told apart.
    RepeatedExponent,
    /// More blocks than the code has coefficients for.
    TooManyBlocks,
}

/// Blocks that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParityError {
    /// What is wrong.
    pub kind: ParityErrorKind,
    /// The position of the offending block or exponent: among the sources, then P, Q or lost data.
    pub source_index: usize,
    /// What was found: a length in bytes, a number of blocks or exponents, or an exponent.
    pub found: usize,
    /// What would be right: that length or number; of exponents and too many blocks, the highest.
    pub expected: usize,
}

impl fmt::Display for ParityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParityErrorKind::LengthMismatch => write!(
                f,
                "block {} is {} bytes long, must be as long as the target: {} bytes",
                self.source_index, self.found, self.expected
            ),
            ParityErrorKind::CountMismatch => {
                write!(f, "{} exponents for {} blocks", self.found, self.expected)
            }
            ParityErrorKind::BadExponent => write!(
                f,
                "block {} has exponent {}, must be from 0 to {}",
                self.source_index, self.found, self.expected
            ),
            ParityErrorKind::RepeatedExponent => write!(
                f,
                "block {} has exponent {}, which another block has already",
                self.source_index, self.found
            ),
            ParityErrorKind::TooManyBlocks => {
                write!(f, "{} blocks, at most {} can be protected", self.found, self.expected)
            }
        }
    }
}

impl std::error::Error for ParityError {}

/// How many sources one pass reads at most; more are done in several passes.
const FUSED: usize = 32;

/// Sets `target` to the XOR of all `sources`; of no sources the XOR is all zeroes.
///
/// # Errors
/// [`ParityErrorKind::LengthMismatch`] when a source is not as long as the target; the target is
/// then untouched.
pub fn xor(target: &mut [u8], sources: &[&[u8]]) -> Result<(), ParityError> {
    check(target.len(), sources)?;
    if sources.is_empty() {
        target.fill(0);
    }
    fused(target, sources, false);
    Ok(())
}

/// Adds the XOR of all `sources` to `target`: `target ^= sources`.
///
/// # Errors
/// [`ParityErrorKind::LengthMismatch`] when a source is not as long as the target; the target is
/// then untouched.
pub fn xor_into(target: &mut [u8], sources: &[&[u8]]) -> Result<(), ParityError> {
    check(target.len(), sources)?;
    fused(target, sources, true);
    Ok(())
}

/// Sets `target` to the XOR of all `sources` in one pass, each `len` bytes long.
///
/// The target may be one of the sources, exactly (same address): then it is updated in place.
/// Of no sources the XOR is all zeroes. No alignment is needed.
///
/// # Safety
/// * `target` is valid for reads and writes of `len` bytes, every source for reads of `len` bytes,
///   and nobody else writes any of them meanwhile.
/// * Each source either starts exactly at `target` or does not overlap it.
pub unsafe fn xor_raw(target: *mut u8, sources: &[*const u8], len: usize) {
    if sources.is_empty() {
        // SAFETY: the caller says `target` is valid for writes of `len` bytes.
        unsafe { target.write_bytes(0, len) };
        return;
    }
    // SAFETY: the caller's promises are those that `dispatch::xor` asks for, and there is a source.
    unsafe { dispatch::xor(target, sources, len) };
}

fn check(len: usize, sources: &[&[u8]]) -> Result<(), ParityError> {
    match sources.iter().position(|source| source.len() != len) {
        None => Ok(()),
        Some(source_index) => Err(ParityError {
            kind: ParityErrorKind::LengthMismatch,
            source_index,
            found: sources[source_index].len(),
            expected: len,
        }),
    }
}

/// Runs checked sources in groups; with `keep` the target's old contents take part.
fn fused(target: &mut [u8], sources: &[&[u8]], mut keep: bool) {
    let len = target.len();
    let target = target.as_mut_ptr();
    for group in sources.chunks(FUSED) {
        let mut pointers = [target.cast_const(); FUSED + 1];
        for (pointer, source) in pointers[1..].iter_mut().zip(group) {
            *pointer = source.as_ptr();
        }
        let taking_part = &pointers[usize::from(!keep)..=group.len()];
        // SAFETY: all come from slices of `len` bytes (checked by the caller of this function); the
        // target's slice is exclusive, so no source overlaps it but pointer 0, which is itself.
        unsafe { xor_raw(target, taking_part, len) };
        keep = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_before_anything_is_written() {
        let mut target = [7u8; 8];
        let error = xor(&mut target, &[&[1; 8], &[1; 9]]).unwrap_err();
        assert_eq!(error.kind, ParityErrorKind::LengthMismatch);
        assert_eq!((error.source_index, error.found, error.expected), (1, 9, 8));
        assert!(error.to_string().contains("block 1 is 9 bytes long"));
        assert!(xor_into(&mut target, &[&[1; 7]]).is_err());
        assert_eq!(target, [7; 8]);
    }

    #[test]
    fn no_sources_give_zeroes_or_change_nothing() {
        let mut target = [7u8; 100];
        xor_into(&mut target, &[]).unwrap();
        assert_eq!(target, [7; 100]);
        xor(&mut target, &[]).unwrap();
        assert_eq!(target, [0; 100]);
    }

    #[test]
    fn more_sources_than_one_pass_takes() {
        let sources: Vec<Vec<u8>> = (0..71u8).map(|n| vec![n.wrapping_mul(37); 300]).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let (mut fast, mut slow) = (vec![9u8; 300], vec![9u8; 300]);
        xor(&mut fast, &sources).unwrap();
        scalar::xor(&mut slow, &sources);
        assert_eq!(fast, slow);
    }
}
