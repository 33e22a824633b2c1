//! The oracle: the plainest code that can be right, byte by byte. Nothing fast is derived from it.
//!
//! P and Q are those of Linux md and of H. P. Anvin, "The mathematics of RAID-6": bytes are elements of
//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and generator 2;
//! P = sum of D_i, Q = sum of 2^i D_i.

use crate::{ParityError, ParityErrorKind};

/// The low eight bits of the field's polynomial 0x11d.
const POLYNOMIAL: u8 = 0x1d;

/// The most data blocks P and Q can protect: the generator's powers repeat after 255.
pub const MOST_BLOCKS: usize = 255;

/// Sets `target` to the XOR of all `sources`, byte by byte.
///
/// # Panics
/// When a source is shorter than the target: this is for tests, which check that elsewhere.
pub fn xor(target: &mut [u8], sources: &[&[u8]]) {
    for (at, byte) in target.iter_mut().enumerate() {
        *byte = sources.iter().fold(0, |sum, source| sum ^ source[at]);
    }
}

/// `value` times the generator, 2.
pub const fn double(value: u8) -> u8 {
    (value << 1) ^ if value & 0x80 != 0 { POLYNOMIAL } else { 0 }
}

/// `a` times `b`, by the school method.
pub const fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = double(a);
        b >>= 1;
    }
    product
}

/// The generator to the power `exponent`.
pub const fn power(exponent: usize) -> u8 {
    let mut value = 1;
    let mut left = exponent % 255;
    while left > 0 {
        value = double(value);
        left -= 1;
    }
    value
}

/// The inverse of `value`; `None` for 0, which has none.
pub fn inverse(value: u8) -> Option<u8> {
    (1..=u8::MAX).find(|other| multiply(value, *other) == 1)
}

/// Sets `p` and `q` to the two syndromes of `data`, in the order of their coefficients.
///
/// # Errors
/// When a block or `q` is not as long as `p` ([`ParityErrorKind::LengthMismatch`]), or when there are
/// more than [`MOST_BLOCKS`] blocks ([`ParityErrorKind::TooManyBlocks`]).
pub fn pq(p: &mut [u8], q: &mut [u8], data: &[&[u8]]) -> Result<(), ParityError> {
    if data.len() > MOST_BLOCKS {
        return Err(ParityError {
            kind: ParityErrorKind::TooManyBlocks,
            source_index: MOST_BLOCKS,
            found: data.len(),
            expected: MOST_BLOCKS,
        });
    }
    let mismatch = |source_index, found| ParityError {
        kind: ParityErrorKind::LengthMismatch,
        source_index,
        found,
        expected: p.len(),
    };
    if q.len() != p.len() {
        return Err(mismatch(data.len(), q.len()));
    }
    if let Some(index) = data.iter().position(|block| block.len() != p.len()) {
        return Err(mismatch(index, data[index].len()));
    }
    for at in 0..p.len() {
        p[at] = data.iter().fold(0, |sum, block| sum ^ block[at]);
        q[at] =
            data.iter().enumerate().fold(0, |sum, (i, block)| sum ^ multiply(power(i), block[at]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_a_field() {
        for a in 0..=255u8 {
            assert_eq!(multiply(a, 2), double(a));
            assert_eq!(multiply(a, 1), a);
            for b in 0..=255u8 {
                assert_eq!(multiply(a, b), multiply(b, a));
                assert_eq!(multiply(a, b ^ 0x35), multiply(a, b) ^ multiply(a, 0x35));
            }
        }
        assert_eq!(inverse(0), None);
        for a in 1..=255 {
            assert_eq!(multiply(a, inverse(a).unwrap()), 1);
        }
    }

    #[test]
    fn the_generator_reaches_every_element_once() {
        let mut seen = [false; 256];
        for exponent in 0..255 {
            assert!(!std::mem::replace(&mut seen[usize::from(power(exponent))], true));
        }
        assert!(!seen[0]);
        assert_eq!((power(8), power(255)), (0x1d, 1));
    }

    #[test]
    fn two_lost_blocks_come_back() {
        let data: Vec<Vec<u8>> =
            (0..5usize).map(|i| (0..64).map(|at| (i * 89 + at * 7 + 3) as u8).collect()).collect();
        let blocks: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let (mut p, mut q) = (vec![0; 64], vec![0; 64]);
        pq(&mut p, &mut q, &blocks).unwrap();
        let (x, y) = (1, 3);
        for at in 0..64 {
            let rest = |with_q: bool| {
                data.iter()
                    .enumerate()
                    .filter(|(i, _)| *i != x && *i != y)
                    .fold(0, |sum, (i, b)| {
                        sum ^ if with_q { multiply(power(i), b[at]) } else { b[at] }
                    })
            };
            let (dp, dq) = (p[at] ^ rest(false), q[at] ^ rest(true));
            // dp = Dx + Dy, dq = g^x Dx + g^y Dy.
            let divisor = inverse(power(x) ^ power(y)).unwrap();
            let found = multiply(divisor, dq ^ multiply(power(y), dp));
            assert_eq!((found, dp ^ found), (data[x][at], data[y][at]));
        }
    }

    #[test]
    fn blocks_are_checked() {
        let (mut p, mut q) = ([0; 4], [0; 4]);
        let many = vec![&[0u8; 4][..]; 256];
        let kind = |error: Result<(), ParityError>| error.unwrap_err().kind;
        assert_eq!(kind(pq(&mut p, &mut q, &many)), ParityErrorKind::TooManyBlocks);
        assert_eq!(kind(pq(&mut p, &mut q, &[&[0; 3]])), ParityErrorKind::LengthMismatch);
        assert_eq!(kind(pq(&mut p, &mut q[..3], &[])), ParityErrorKind::LengthMismatch);
    }
}
