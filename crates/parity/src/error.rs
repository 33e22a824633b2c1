//! What may be wrong with the blocks of a call.

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
