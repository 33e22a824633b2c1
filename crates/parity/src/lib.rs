//! Parity arithmetic: computes P (XOR) and Q of blocks, recovers lost blocks from them, compares blocks and finds
//! the one that is wrong. It chooses vector code at run time, and has a scalar oracle for everything.
//!
//! It knows blocks of bytes and nothing of arrays. [`Kernels`] has all functions for one [`InstructionSet`] and one
//! way to [`Store`]; [`xor`] and [`pq`] call the fastest ones. P is the XOR of the data of a row; Q is the sum of
//! the data, each times 2 to its exponent, in GF(2^8) with polynomial 0x11d, as in Linux md. Blocks of a row are
//! slices of one length in bytes. Functions that take slices check them; those called `_raw` are unsafe, for
//! callers whose target may be one of the sources. Every path equals [`scalar`] byte for byte (`tests/equal.rs`,
//! `tests/pq.rs`, `tests/losses.rs`, `tests/inspect.rs`).
//!
//! P and Q of three blocks, and the recovery of two of the blocks:
//!
//! ```
//! use raidlab_parity::{Kernels, ParityError, pq};
//!
//! let data = [[1; 512], [20; 512], [77; 512]];
//! let (mut p, mut q) = ([0; 512], [0; 512]);
//! let blocks: Vec<&[u8]> = data.iter().map(|block| &block[..]).collect();
//! pq(Some(&mut p), Some(&mut q), &blocks, &[0, 1, 2])?;
//! assert_eq!(p, [1 ^ 20 ^ 77; 512]);
//!
//! let (mut first, mut third) = ([0; 512], [0; 512]);
//! let lost = [&mut first[..], &mut third[..]];
//! Kernels::default().recover_two(lost, [0, 2], (&p, &q), &blocks[1..2], &[1])?;
//! assert_eq!([first, third], [data[0], data[2]]);
//! # Ok::<(), ParityError>(())
//! ```

mod checked;
mod dispatch;
mod error;
mod field;
mod inspect;
mod kernels;
mod lanes;
mod pass;
pub mod scalar;
mod terms;

pub use dispatch::{InstructionSet, Store, path};
pub use error::{ParityError, ParityErrorKind};
pub use inspect::{Located, Wrong};
pub use kernels::{Kernels, Lost};
pub use terms::{Block, Change};

/// [`Kernels::xor`] by the fastest path, through the cache.
///
/// # Errors
/// As there.
pub fn xor(target: &mut [u8], sources: &[&[u8]]) -> Result<(), ParityError> {
    Kernels::default().xor(target, sources)
}

/// [`Kernels::pq`] by the fastest path, through the cache.
///
/// # Errors
/// As there.
pub fn pq(
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
    sources: &[&[u8]],
    exponents: &[u8],
) -> Result<(), ParityError> {
    Kernels::default().pq(p, q, sources, exponents)
}
