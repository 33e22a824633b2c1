//! How drives fail with age: hazards, which are failures an hour, as integrals over age.

/// Hours of a year.
pub const YEAR: f64 = 8_760.0;

/// The law by which drives of one kind fail. Ages in hours, rates in failures an hour.
#[derive(Clone, Debug, PartialEq)]
pub enum Hazard {
    /// The same at any age.
    Constant(f64),
    /// Weibull: below 1 a `shape` says that new drives fail most, above 1 old ones; `scale` is the age at which all but
    /// 1/e have failed.
    Weibull {
        /// Without unit.
        shape: f64,
        /// Hours.
        scale: f64,
    },
    /// From each age on a rate of its own; the first age is 0, ages ascend, the last rate goes on.
    Piecewise(Vec<(f64, f64)>),
}

impl Hazard {
    /// Of a failure rate a year (1.4 % is 0.014), at any age.
    pub fn yearly(rate: f64) -> Self {
        Self::Constant(rate / YEAR)
    }

    /// A Weibull law whose mean rate over the first five years is that of `rate` a year.
    pub fn weibull_yearly(rate: f64, shape: f64) -> Self {
        let scale = 5.0 * YEAR / libm::pow(5.0 * rate, 1.0 / shape);
        Self::Weibull { shape, scale }
    }

    /// A rate for each year of age; the last one goes on.
    pub fn by_year_of_age(rates: &[f64]) -> Self {
        let years = rates.iter().enumerate();
        Self::Piecewise(years.map(|(year, rate)| (year as f64 * YEAR, rate / YEAR)).collect())
    }

    /// The integral of the hazard from age 0 to `age`.
    pub fn cumulative(&self, age: f64) -> f64 {
        match self {
            Self::Constant(rate) => rate * age,
            Self::Weibull { shape, scale } => libm::pow(age / scale, *shape),
            Self::Piecewise(pieces) => {
                let ends = pieces.iter().skip(1).map(|piece| piece.0).chain([f64::INFINITY]);
                let within = |((from, rate), end): (&(f64, f64), f64)| {
                    if age <= *from { 0.0 } else { rate * (age.min(end) - from) }
                };
                pieces.iter().zip(ends).map(within).sum()
            }
        }
    }

    /// The age at which the integral reaches `cumulative`; infinite where it never does.
    pub fn age_at(&self, cumulative: f64) -> f64 {
        match self {
            Self::Constant(rate) => cumulative / rate,
            Self::Weibull { shape, scale } => scale * libm::pow(cumulative, 1.0 / shape),
            Self::Piecewise(pieces) => {
                let mut left = cumulative;
                for (at, (from, rate)) in pieces.iter().enumerate() {
                    let Some((end, _)) = pieces.get(at + 1) else { return from + left / rate };
                    let here = rate * (end - from);
                    if left < here {
                        return from + left / rate;
                    }
                    left -= here;
                }
                f64::INFINITY
            }
        }
    }

    /// The same law with every rate times `factor`.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        match self {
            Self::Constant(rate) => Self::Constant(rate * factor),
            Self::Weibull { shape, scale } => {
                Self::Weibull { shape: *shape, scale: scale / libm::pow(factor, 1.0 / shape) }
            }
            Self::Piecewise(pieces) => {
                Self::Piecewise(pieces.iter().map(|(from, rate)| (*from, rate * factor)).collect())
            }
        }
    }

    /// What makes the law impossible, in words.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        match self {
            Self::Constant(rate) => {
                (!is_rate(*rate)).then_some("a failure rate is 0 or more and finite")
            }
            Self::Weibull { shape, scale } => {
                let is_possible = (0.1..=10.0).contains(shape) && *scale > 0.0;
                (!is_possible).then_some("a Weibull shape is from 0.1 to 10, its scale above 0")
            }
            Self::Piecewise(pieces) => {
                let ascends = pieces.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let begins = pieces.first().is_some_and(|piece| piece.0 == 0.0);
                let are_rates = pieces.iter().all(|piece| is_rate(piece.1));
                (!(ascends && begins && are_rates))
                    .then_some("rates by age begin at 0, ages ascend, rates are 0 or more")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_integrals_are_inverse() {
        let laws = [
            Hazard::yearly(0.014),
            Hazard::Weibull { shape: 1.12, scale: 461_386.0 },
            Hazard::by_year_of_age(&[0.02, 0.01, 0.03]),
        ];
        for law in laws {
            for age in [1.0, 5_000.0, 12_345.0, 60_000.0] {
                let back = law.age_at(law.cumulative(age));
                assert!((back / age - 1.0).abs() < 1e-9, "{law:?}: {age} became {back}");
            }
            let double = law.times(2.0).cumulative(9_000.0) / law.cumulative(9_000.0);
            assert!((double - 2.0).abs() < 1e-9, "{law:?}");
        }
    }

    #[test]
    fn yearly_rates_are_a_year_s_failures() {
        assert!((Hazard::yearly(0.014).cumulative(YEAR) - 0.014).abs() < 1e-12);
        let five = Hazard::weibull_yearly(0.014, 1.4).cumulative(5.0 * YEAR);
        assert!((five - 0.07).abs() < 1e-12, "{five}");
        let second = Hazard::by_year_of_age(&[0.02, 0.01]);
        assert!((second.cumulative(2.5 * YEAR) - 0.035).abs() < 1e-12);
        assert_eq!(Hazard::yearly(0.0).age_at(1.0), f64::INFINITY);
    }
}
