//! The field GF(2^8) by tables: polynomial 0x11d, generator 2. Elements are named by their logarithm,
//! the power of the generator that they are: all but zero have one.

/// The products of an element with the sixteen low nibbles, then with the sixteen high ones. The
/// product with a byte is the sum of two entries (Anvin, "The mathematics of RAID-6", section on
/// table look-up by vector shuffles).
pub(crate) type Products = [u8; 32];

/// How many elements but zero there are; powers of the generator repeat after so many.
pub(crate) const ORDER: usize = 255;

/// 2 to the power of the index.
const POWERS: [u8; ORDER] = {
    let mut powers = [1; ORDER];
    let mut at = 1;
    while at < ORDER {
        let before = powers[at - 1] as u16;
        powers[at] = ((before << 1) ^ (0x11d * (before >> 7))) as u8;
        at += 1;
    }
    powers
};

/// The logarithm of the index; of 0, which has none, the entry is 0.
const LOGARITHMS: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut at = 0;
    while at < ORDER {
        logarithms[POWERS[at] as usize] = at as u8;
        at += 1;
    }
    logarithms
};

static PRODUCTS: [Products; ORDER] = {
    let mut all = [[0; 32]; ORDER];
    let mut element = 0;
    while element < ORDER {
        let mut nibble = 1;
        while nibble < 16 {
            let low = element + LOGARITHMS[nibble] as usize;
            let high = element + LOGARITHMS[nibble << 4] as usize;
            all[element][nibble] = POWERS[low % ORDER];
            all[element][16 + nibble] = POWERS[high % ORDER];
            nibble += 1;
        }
        element += 1;
    }
    all
};

/// The products of 2 to the power `exponent`; 255 is the same as 0.
#[inline]
pub(crate) fn products(exponent: u8) -> &'static Products {
    &PRODUCTS[usize::from(exponent) % ORDER]
}

/// The products of all bytes with an element, as they are linear in the byte's bits: a matrix of 8 by 8 bits
/// as GF2P8AFFINEQB takes it. Byte 7 - i says which bits of a factor make bit i of the product.
static MATRICES: [u64; ORDER] = {
    let mut all = [0; ORDER];
    let mut element = 0;
    while element < ORDER {
        let mut column = 0;
        while column < 8 {
            let product = POWERS[(element + column) % ORDER];
            let mut row = 0;
            while row < 8 {
                let bit = (product >> row & 1) as u64;
                all[element] |= bit << (8 * (7 - row) + column);
                row += 1;
            }
            column += 1;
        }
        element += 1;
    }
    all
};

/// The matrix that multiplies by 2 to the power `exponent`; 255 is the same as 0.
#[inline]
pub(crate) fn matrix(exponent: u8) -> u64 {
    MATRICES[usize::from(exponent) % ORDER]
}

/// `product` of one byte.
#[inline]
pub(crate) fn product(products: &Products, byte: u8) -> u8 {
    products[usize::from(byte & 15)] ^ products[16 + usize::from(byte >> 4)]
}

/// The exponent of the inverse.
pub(crate) fn inverse(exponent: u8) -> u8 {
    ((ORDER - usize::from(exponent) % ORDER) % ORDER) as u8
}

/// The exponent of `dividend / divisor`; neither is zero.
pub(crate) fn quotient(dividend: u8, divisor: u8) -> u8 {
    let logarithm = |element: u8| usize::from(LOGARITHMS[usize::from(element)]);
    ((logarithm(dividend) + ORDER - logarithm(divisor)) % ORDER) as u8
}

/// What recovers the first of two lost blocks x and y: the exponents of A = y / (x + y) and
/// B = 1 / (x + y).
///
/// With dP = Dx + Dy and dQ = x Dx + y Dy: Dx = A dP + B dQ. `x` and `y` are exponents that differ.
pub(crate) fn two(x: u8, y: u8) -> (u8, u8) {
    let power = |exponent: u8| POWERS[usize::from(exponent) % ORDER];
    let sum = LOGARITHMS[usize::from(power(x) ^ power(y))];
    let b = inverse(sum);
    (((usize::from(y) + usize::from(b)) % ORDER) as u8, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar;

    #[test]
    fn every_product_is_the_oracles() {
        for exponent in 0..=255u8 {
            let element = scalar::power(usize::from(exponent));
            for byte in 0..=255 {
                assert_eq!(
                    product(products(exponent), byte),
                    scalar::multiply(element, byte),
                    "2^{exponent} times {byte}"
                );
            }
            let inverse = scalar::power(usize::from(inverse(exponent)));
            assert_eq!(scalar::multiply(element, inverse), 1);
        }
    }

    /// What GF2P8AFFINEQB does, as its manual says.
    #[test]
    fn every_matrix_gives_the_oracles_products() {
        for exponent in 0..=255u8 {
            let element = scalar::power(usize::from(exponent));
            let rows = matrix(exponent).to_be_bytes();
            for byte in 0..=255 {
                let bit = |row: u8| ((row & byte).count_ones() % 2) as u8;
                let product = (0..8).map(|n| bit(rows[n]) << n).sum::<u8>();
                let expected = scalar::multiply(element, byte);
                assert_eq!(product, expected, "2^{exponent} times {byte}");
            }
        }
    }

    #[test]
    fn a_quotient_times_its_divisor_is_its_dividend() {
        for dividend in 1..=255 {
            for divisor in 1..=255 {
                let quotient = scalar::power(usize::from(quotient(dividend, divisor)));
                assert_eq!(scalar::multiply(quotient, divisor), dividend);
            }
        }
    }

    #[test]
    fn the_factors_for_two_lost_blocks_solve_the_equations() {
        let power = |exponent: u8| scalar::power(usize::from(exponent));
        for x in 0..255 {
            for y in (0..255).filter(|y| *y != x) {
                let (a, b) = two(x, y);
                let sum = power(x) ^ power(y);
                assert_eq!(scalar::multiply(power(b), sum), 1, "B of {x}, {y}");
                assert_eq!(scalar::multiply(power(a), sum), power(y), "A of {x}, {y}");
            }
        }
    }
}
