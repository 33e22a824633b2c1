//! Sobol's sequence: points that fill a cube more evenly than random ones.
//!
//! I. M. Sobol, "On the distribution of points in a cube and the approximate evaluation of integrals",
//! 1967; in the order of Gray codes, as I. A. Antonov and V. M. Saleev have it, 1979; with the primitive
//! polynomials and first direction numbers of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with
//! better two-dimensional projections", SIAM Journal on Scientific Computing 30 (2008), 2635.

/// How many dimensions there are.
pub(crate) const DIMENSIONS: usize = 21;

/// The bits of a coordinate.
const BITS: usize = 32;

/// From the second dimension on: the polynomial's degree, its inner coefficients, and the first
/// direction numbers.
const POLYNOMIALS: [(usize, u32, [u32; 7]); DIMENSIONS - 1] = [
    (1, 0, [1, 0, 0, 0, 0, 0, 0]),
    (2, 1, [1, 3, 0, 0, 0, 0, 0]),
    (3, 1, [1, 3, 1, 0, 0, 0, 0]),
    (3, 2, [1, 1, 1, 0, 0, 0, 0]),
    (4, 1, [1, 1, 3, 3, 0, 0, 0]),
    (4, 4, [1, 3, 5, 13, 0, 0, 0]),
    (5, 2, [1, 1, 5, 5, 17, 0, 0]),
    (5, 4, [1, 1, 5, 5, 5, 0, 0]),
    (5, 7, [1, 1, 7, 11, 19, 0, 0]),
    (5, 11, [1, 1, 5, 1, 1, 0, 0]),
    (5, 13, [1, 1, 1, 3, 11, 0, 0]),
    (5, 14, [1, 3, 5, 5, 31, 0, 0]),
    (6, 1, [1, 3, 3, 9, 7, 49, 0]),
    (6, 13, [1, 1, 1, 15, 21, 21, 0]),
    (6, 16, [1, 3, 1, 13, 27, 49, 0]),
    (6, 19, [1, 1, 1, 15, 7, 5, 0]),
    (6, 22, [1, 3, 1, 15, 13, 25, 0]),
    (6, 25, [1, 1, 5, 5, 19, 61, 0]),
    (7, 1, [1, 3, 7, 11, 23, 15, 103]),
    (7, 4, [1, 3, 7, 13, 13, 15, 69]),
];

/// The direction numbers of a dimension.
fn directions(dimension: usize) -> [u32; BITS] {
    let mut directions = [0; BITS];
    let Some((degree, inner, first)) = dimension.checked_sub(1).map(|at| POLYNOMIALS[at]) else {
        for (at, direction) in directions.iter_mut().enumerate() {
            *direction = 1 << (BITS - 1 - at);
        }
        return directions;
    };
    for at in 0..BITS {
        directions[at] = if at < degree {
            first[at] << (BITS - 1 - at)
        } else {
            let back = directions[at - degree];
            let terms = (1..degree).filter(|term| inner >> (degree - 1 - term) & 1 == 1);
            terms.fold(back ^ back >> degree, |sum, term| sum ^ directions[at - term])
        };
    }
    directions
}

/// A coordinate of a point of the sequence, from 0 up to 1, by its number from 0. Numbers above 2^32
/// begin anew.
pub(crate) fn coordinate(number: u64, dimension: usize) -> f64 {
    let number = number as u32;
    let gray = number ^ number >> 1;
    let directions = directions(dimension);
    let bits = (0..BITS).filter(|bit| gray >> bit & 1 == 1);
    f64::from(bits.fold(0, |sum, bit| sum ^ directions[bit])) / 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [(u64, [f64; 21]); 7] = [
        (
            1,
            [
                0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
                0.5, 0.5, 0.5, 0.5, 0.5,
            ],
        ),
        (
            2,
            [
                0.75, 0.25, 0.25, 0.25, 0.75, 0.75, 0.25, 0.75, 0.75, 0.75, 0.75, 0.75, 0.25, 0.25,
                0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.25,
            ],
        ),
        (
            3,
            [
                0.25, 0.75, 0.75, 0.75, 0.25, 0.25, 0.75, 0.25, 0.25, 0.25, 0.25, 0.25, 0.75, 0.75,
                0.25, 0.75, 0.25, 0.75, 0.25, 0.75, 0.75,
            ],
        ),
        (
            4,
            [
                0.375, 0.375, 0.625, 0.875, 0.375, 0.125, 0.375, 0.875, 0.875, 0.625, 0.875, 0.375,
                0.375, 0.625, 0.375, 0.875, 0.375, 0.875, 0.875, 0.125, 0.125,
            ],
        ),
        (
            5,
            [
                0.875, 0.875, 0.125, 0.375, 0.875, 0.625, 0.875, 0.375, 0.375, 0.125, 0.375, 0.875,
                0.875, 0.125, 0.875, 0.375, 0.875, 0.375, 0.375, 0.625, 0.625,
            ],
        ),
        (
            6,
            [
                0.625, 0.125, 0.875, 0.625, 0.625, 0.875, 0.125, 0.125, 0.125, 0.375, 0.125, 0.625,
                0.125, 0.875, 0.625, 0.625, 0.625, 0.625, 0.125, 0.375, 0.375,
            ],
        ),
        (
            1000,
            [
                0.2197265625,
                0.0966796875,
                0.5185546875,
                0.6767578125,
                0.2802734375,
                0.9072265625,
                0.0458984375,
                0.8994140625,
                0.5009765625,
                0.0693359375,
                0.0849609375,
                0.2548828125,
                0.1611328125,
                0.3837890625,
                0.1435546875,
                0.3701171875,
                0.7197265625,
                0.3447265625,
                0.9912109375,
                0.7255859375,
                0.5224609375,
            ],
        ),
    ];

    /// The first points by scipy 1.17 (`qmc.Sobol(21, scramble=False)`), numbers 1 to 6 and 1000.
    #[test]
    fn points_are_those_of_scipy() {
        for (number, point) in POINTS {
            for (dimension, expected) in point.iter().enumerate() {
                let ours = coordinate(number, dimension);
                assert!(
                    (ours - expected).abs() < 1e-9,
                    "{number}, {dimension}: {ours}, {expected}"
                );
            }
        }
    }

    #[test]
    fn every_dimension_has_each_part_once() {
        for dimension in 0..DIMENSIONS {
            let mut parts: Vec<u64> =
                (0..256).map(|number| (coordinate(number, dimension) * 256.0) as u64).collect();
            parts.sort_unstable();
            assert!(parts.into_iter().eq(0..256), "{dimension}");
        }
    }
}
