//! Lengths of time that vary: until a drive is replaced, rebuilt, scrubbed. In hours.

/// A law for lengths of time, in hours.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Always the same.
    Fixed(f64),
    /// Each length from the first to the second equally likely.
    Uniform(f64, f64),
    /// Exponential, with this mean.
    Exponential(f64),
    /// Weibull, from `location` on.
    Weibull {
        /// Hours that it takes at least.
        location: f64,
        /// Hours.
        scale: f64,
        /// Without unit.
        shape: f64,
    },
    /// One of these, each equally likely, such as what runs with several seeds took.
    Samples(Vec<f64>),
}

impl Span {
    /// The length that belongs to a number from 0 to 1 (excluded): a larger number, a longer time, but for samples,
    /// which are taken in their order.
    pub fn at(&self, unit: f64) -> f64 {
        match self {
            Self::Fixed(hours) => *hours,
            Self::Uniform(low, high) => low + unit * (high - low),
            Self::Exponential(mean) => -mean * libm::log1p(-unit),
            Self::Weibull { location, scale, shape } => {
                location + scale * libm::pow(-libm::log1p(-unit), 1.0 / shape)
            }
            Self::Samples(samples) => {
                let at = (unit * samples.len() as f64) as usize;
                samples.get(at).or(samples.last()).copied().unwrap_or(0.0)
            }
        }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(hours) => *hours,
            Self::Uniform(low, high) => (low + high) / 2.0,
            Self::Exponential(mean) => *mean,
            Self::Weibull { location, scale, shape } => {
                location + scale * libm::tgamma(1.0 + 1.0 / shape)
            }
            Self::Samples(samples) => samples.iter().sum::<f64>() / samples.len().max(1) as f64,
        }
    }

    /// The mean of the shorter of the two: this time, or `most`.
    pub fn mean_up_to(&self, most: f64) -> f64 {
        let most = most.max(0.0);
        match self {
            Self::Fixed(hours) => hours.min(most),
            Self::Uniform(low, high) if most <= *low || low == high => low.min(most),
            Self::Uniform(low, high) => {
                let within = most.min(*high);
                let share = (within - low) / (high - low);
                share * (low + within) / 2.0 + (1.0 - share) * most
            }
            Self::Exponential(mean) => -mean * libm::expm1(-most / mean),
            Self::Weibull { location, scale, shape } => {
                if most <= *location {
                    return most;
                }
                let above = (most - location).min(scale * 8.0);
                // Simpson's rule over what is left after each time.
                let left = |at: f64| libm::exp(-libm::pow(at / scale, *shape));
                let step = above / 64.0;
                let weight = |at: u32| match at {
                    0 | 64 => 1.0,
                    odd if odd % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                let sum: f64 = (0..=64).map(|at| weight(at) * left(f64::from(at) * step)).sum();
                location + sum * step / 3.0
            }
            Self::Samples(samples) => {
                let sum: f64 = samples.iter().map(|hours| hours.min(most)).sum();
                sum / samples.len().max(1) as f64
            }
        }
    }

    /// The same with every length times `factor`.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        match self {
            Self::Fixed(hours) => Self::Fixed(hours * factor),
            Self::Uniform(low, high) => Self::Uniform(low * factor, high * factor),
            Self::Exponential(mean) => Self::Exponential(mean * factor),
            Self::Weibull { location, scale, shape } => {
                Self::Weibull { location: location * factor, scale: scale * factor, shape: *shape }
            }
            Self::Samples(samples) => {
                Self::Samples(samples.iter().map(|hours| hours * factor).collect())
            }
        }
    }

    /// What makes the law impossible, in words.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_length = |hours: &f64| hours.is_finite() && *hours >= 0.0;
        let is_possible = match self {
            Self::Fixed(hours) => is_length(hours),
            Self::Uniform(low, high) => is_length(low) && is_length(high) && low <= high,
            Self::Exponential(mean) => is_length(mean),
            Self::Weibull { location, scale, shape } => {
                is_length(location) && *scale > 0.0 && (0.1..=10.0).contains(shape)
            }
            Self::Samples(samples) => !samples.is_empty() && samples.iter().all(is_length),
        };
        (!is_possible).then_some("is no length of time: 0 hours or more, and finite")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans() -> [Span; 5] {
        [
            Span::Fixed(30.0),
            Span::Uniform(10.0, 50.0),
            Span::Exponential(30.0),
            Span::Weibull { location: 6.0, scale: 12.0, shape: 2.0 },
            Span::Samples(vec![10.0, 20.0, 60.0]),
        ]
    }

    /// Over many equally spaced numbers both means are those of what is drawn.
    #[test]
    fn means_are_those_of_what_is_drawn() {
        for span in spans() {
            let draws: Vec<f64> =
                (0..60_000).map(|one| span.at((f64::from(one) + 0.5) / 60_000.0)).collect();
            let mean = draws.iter().sum::<f64>() / 60_000.0;
            assert!((mean / span.mean() - 1.0).abs() < 2e-3, "{span:?}: {mean}");
            for most in [5.0, 15.0, 40.0, 1_000.0] {
                let drawn = draws.iter().map(|hours| hours.min(most)).sum::<f64>() / 60_000.0;
                let told = span.mean_up_to(most);
                assert!((told / drawn - 1.0).abs() < 2e-3, "{span:?} up to {most}: {told} {drawn}");
            }
            let twice = span.times(2.0);
            assert!((twice.at(0.3) / span.at(0.3) - 2.0).abs() < 1e-12);
        }
    }

    /// The means of Elerath and Pecht's base case: repair 16.63 h, scrub 156.0 h.
    #[test]
    fn published_means() {
        let mean = |scale, shape| Span::Weibull { location: 6.0, scale, shape }.mean();
        assert!((mean(12.0, 2.0) - 16.63).abs() < 0.01);
        assert!((mean(168.0, 3.0) - 156.0).abs() < 0.05);
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        let weibull = |location, scale, shape| Span::Weibull { location, scale, shape };
        let right = [
            Span::Fixed(0.0),
            Span::Uniform(0.0, 0.0),
            Span::Uniform(1.0, 2.0),
            weibull(0.0, 1.0, 0.1),
            weibull(6.0, 1.0, 10.0),
            Span::Samples(vec![1.0, 0.0]),
        ];
        assert!(right.iter().all(|one| one.problem().is_none()));
        let wrong = [
            Span::Fixed(-1.0),
            Span::Fixed(f64::NAN),
            Span::Uniform(2.0, 1.0),
            Span::Uniform(-1.0, 1.0),
            Span::Uniform(1.0, f64::INFINITY),
            Span::Exponential(-1.0),
            weibull(-1.0, 1.0, 1.0),
            weibull(0.0, 0.0, 1.0),
            weibull(0.0, 1.0, 0.09),
            weibull(0.0, 1.0, 10.1),
            Span::Samples(Vec::new()),
            Span::Samples(vec![1.0, -1.0]),
        ];
        for one in wrong {
            assert!(one.problem().is_some(), "{one:?}");
        }
    }
}
