//! The oracle: the plainest code that can be right, byte by byte. Nothing fast is derived from it.
//!
//! P and Q are those of Linux md and of H. P. Anvin, "The mathematics of RAID-6": bytes are elements of
//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and generator 2;
//! P = sum of D_i, Q = sum of 2^(e_i) D_i, where e_i is the exponent of block i.

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

/// Sets `p` and `q` to the two syndromes of `data`, each block with its exponent.
///
/// # Panics
/// When a block or `q` is shorter than `p`: this is for tests, which check that elsewhere.
pub fn pq(p: &mut [u8], q: &mut [u8], data: &[(&[u8], u8)]) {
    for at in 0..p.len() {
        p[at] = data.iter().fold(0, |sum, (block, _)| sum ^ block[at]);
        q[at] = data.iter().fold(0, |sum, (block, exponent)| {
            sum ^ multiply(power(usize::from(*exponent)), block[at])
        });
    }
}

/// One lost byte of data that has `exponent`, from Q and the other data of its position.
///
/// Found by trying all bytes.
pub fn recover_by_q(exponent: u8, q: u8, data: &[(u8, u8)]) -> Option<u8> {
    let missing = data
        .iter()
        .fold(q, |sum, (byte, exponent)| sum ^ multiply(power(usize::from(*exponent)), *byte));
    (0..=u8::MAX).find(|byte| multiply(power(usize::from(exponent)), *byte) == missing)
}

/// Two lost bytes of data that have the exponents `lost`, from P, Q and the other data of their
/// position, each with its exponent; `None` when nothing or more than one thing fits.
///
/// Found by trying all bytes.
pub fn recover_two(lost: [u8; 2], p: u8, q: u8, data: &[(u8, u8)]) -> Option<[u8; 2]> {
    let [x, y] = lost.map(|exponent| power(usize::from(exponent)));
    let missing_p = data.iter().fold(p, |sum, (byte, _)| sum ^ byte);
    let missing_q = data
        .iter()
        .fold(q, |sum, (byte, exponent)| sum ^ multiply(power(usize::from(*exponent)), *byte));
    let fits = |first: &u8| multiply(x, *first) ^ multiply(y, missing_p ^ first) == missing_q;
    let mut found = (0..=u8::MAX).filter(fits);
    let first = found.next()?;
    found.next().is_none().then_some([first, missing_p ^ first])
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
    fn lost_bytes_come_back_by_trial() {
        let bytes = [0x00, 0xff, 0x1d, 0x80, 0x5a];
        let exponents = [0, 1, 7, 100, 254];
        let blocks: Vec<(&[u8], u8)> =
            bytes.iter().zip(exponents).map(|(byte, e)| (std::slice::from_ref(byte), e)).collect();
        let (mut p, mut q) = ([0], [0]);
        pq(&mut p, &mut q, &blocks);
        let rest = |lost: &[usize]| -> Vec<(u8, u8)> {
            (0..5).filter(|i| !lost.contains(i)).map(|i| (bytes[i], exponents[i])).collect()
        };
        for x in 0..5 {
            assert_eq!(recover_by_q(exponents[x], q[0], &rest(&[x])), Some(bytes[x]));
            for y in (0..5).filter(|y| *y != x) {
                let lost = [exponents[x], exponents[y]];
                let found = recover_two(lost, p[0], q[0], &rest(&[x, y]));
                assert_eq!(found, Some([bytes[x], bytes[y]]));
            }
        }
        assert_eq!(recover_two([3, 3], 0, 0, &[]), None, "any byte fits");
    }

    /// A row worked out by hand: 2 x 80 = 1d, 4 x 80 = 3a, 2 x 01 = 02.
    #[test]
    fn a_row_by_hand() {
        let (mut p, mut q) = ([0; 2], [0; 2]);
        pq(&mut p, &mut q, &[(&[0x11, 1], 0), (&[0x80, 1], 1), (&[0x80, 1], 2)]);
        assert_eq!((p, q), ([0x11, 1], [0x11 ^ 0x1d ^ 0x3a, 1 ^ 2 ^ 4]));
    }
}
