//! Random draws as filebench makes them.

use raidlab_random::Random;

/// A number from 0 up to but without 1.
fn unit(random: &mut Random) -> f64 {
    // As many bits as a double holds.
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A draw of the normal law with mean 0 and deviation 1: G. Marsaglia and T. A. Bray, "A convenient method for
/// generating normal variables", SIAM Review 6 (1964).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * unit(random) - 1.0, 2.0 * unit(random) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

/// A draw of the Gamma law with a mean and a shape of 1 or more: G. Marsaglia and W. W. Tsang, "A simple method for
/// generating gamma variables", ACM Transactions on Mathematical Software 26 (2000). filebench draws the same law by
/// other steps.
pub(super) fn gamma(random: &mut Random, mean: f64, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        // 1 - u, as the logarithm of 0 is none.
        let u = 1.0 - unit(random);
        if libm::log(u) < x * x / 2.0 + d * (1.0 - v + libm::log(v)) {
            return d * v * mean / shape;
        }
    }
}

/// A multiple of `unit` from 0 to `most - unit`: filebench's places of reads and writes in files of `most` bytes, and
/// with a unit of 1 its lengths of appends.
pub(super) fn multiple(random: &mut Random, most: u64, unit: u64) -> u64 {
    random.below(most.saturating_sub(unit) + 1) / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, variance (mean² / shape) and third moment of 200,000 draws; the shape is not another's.
    #[test]
    fn gamma_draws_have_mean_and_shape() {
        for (mean, shape) in [(131_072.0, 1.5), (16_384.0, 1.5), (2.5, 1.5), (10.0, 4.0)] {
            let mut random = Random::new(7);
            let draws: Vec<f64> = (0..200_000).map(|_| gamma(&mut random, mean, shape)).collect();
            assert!(draws.iter().all(|draw| *draw > 0.0));
            let count = draws.len() as f64;
            let average = draws.iter().sum::<f64>() / count;
            let moment = |power: i32| {
                draws.iter().map(|draw| (draw - average).powi(power)).sum::<f64>() / count
            };
            let variance = moment(2);
            assert!((average / mean - 1.0).abs() < 0.01, "{mean}: {average}");
            assert!((average * average / variance / shape - 1.0).abs() < 0.03, "{variance}");
            let skew = moment(3) / (variance * variance.sqrt());
            assert!((skew / (2.0 / shape.sqrt()) - 1.0).abs() < 0.06, "{shape}: {skew}");
        }
    }

    #[test]
    fn places_are_multiples_that_leave_room() {
        let mut random = Random::new(1);
        let places: Vec<u64> = (0..10_000).map(|_| multiple(&mut random, 40, 4)).collect();
        assert!(places.iter().all(|place| place % 4 == 0 && *place <= 36));
        assert!(
            (0..9).all(|block| places.contains(&(block * 4))),
            "every block but the last often"
        );
        assert_eq!(multiple(&mut random, 4, 4), 0);
        let appends: Vec<u64> = (0..10_000).map(|_| multiple(&mut random, 8, 1)).collect();
        assert!((0..8).all(|length| appends.contains(&length)) && appends.iter().all(|a| *a < 8));
    }
}
