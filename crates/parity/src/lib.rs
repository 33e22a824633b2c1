//! Parity arithmetic: XOR of blocks, P and Q, lost data from them, comparing blocks and locating the wrong
//! one, with run-time dispatch, and a scalar oracle for everything.
//!
//! [`Kernels`] has it all, by one [`Path`] and one way to [`Store`]. Its functions take slices and check
//! them; those called `_raw` are unsafe, for a caller whose target may be one of the sources. Every path
//! equals [`scalar`] byte for byte (`tests/equal.rs`, `tests/pq.rs`, `tests/losses.rs`,
//! `tests/inspect.rs`).

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
