//! What nobody knows exactly: ranges with their sources.

use crate::hazard::YEAR;

/// The number of standard deviations beyond which 5 % of a normal law lie.
const FIVE_PERCENT: f64 = 1.644_853_626_951_472_7;

/// A figure that is not known: 5 % below `low`, 5 % above `high`, half below `central`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// 5 % lie below.
    pub low: f64,
    /// The figure that single answers take.
    pub central: f64,
    /// 5 % lie above.
    pub high: f64,
}

impl Range {
    /// A figure that is known.
    pub const fn fixed(value: f64) -> Self {
        Self { low: value, central: value, high: value }
    }

    /// Checked.
    ///
    /// # Errors
    /// In words, when the three do not ascend, or are not above 0 while they differ.
    pub fn new(low: f64, central: f64, high: f64) -> Result<Self, String> {
        let ascends = low <= central && central <= high && low >= 0.0 && high.is_finite();
        if !ascends {
            return Err(format!("{low}, {central}, {high}: write low, central, high, ascending"));
        }
        if low == 0.0 && high > 0.0 {
            let reason = "where a range is given its low end is above 0, however little";
            return Err(format!("{low}, {central}, {high}: {reason}"));
        }
        Ok(Self { low, central, high })
    }

    /// The figure so many standard deviations from the central one: logarithms are normal, with a spread of its own on
    /// each side.
    pub fn at(&self, deviations: f64) -> f64 {
        if self.low == self.high {
            return self.central;
        }
        let ratio =
            if deviations > 0.0 { self.high / self.central } else { self.central / self.low };
        self.central * libm::exp(libm::log(ratio) * deviations / FIVE_PERCENT)
    }

    /// All three times `factor`.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let Self { low, central, high } = *self;
        Self { low: low * factor, central: central * factor, high: high * factor }
    }

    /// The failure rate a year after so many failures in so many drive-days of a model: the Gamma law of a rate of
    /// which nothing else is known, with f + 1 failures.
    ///
    /// # Errors
    /// When no drive-days are given.
    pub fn of_failures(failures: u32, drive_days: f64) -> Result<Self, String> {
        if !(drive_days.is_finite() && drive_days > 0.0) {
            return Err(format!("{drive_days} drive-days: write more than 0"));
        }
        let years = drive_days * 24.0 / YEAR;
        let shape = f64::from(failures) + 1.0;
        let rate = |chance| gamma_quantile(shape, chance) / years;
        Ok(Self { low: rate(0.05), central: shape / years, high: rate(0.95) })
    }
}

/// The value below which a Gamma law of scale 1 lies with this chance.
fn gamma_quantile(shape: f64, chance: f64) -> f64 {
    let (mut low, mut high) = (0.0, shape + 10.0 * shape.sqrt() + 10.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if gamma_below(shape, middle) < chance { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The chance that a Gamma law of scale 1 is below `value`: the series of the incomplete gamma function.
fn gamma_below(shape: f64, value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum, mut place) = (1.0, 1.0, shape);
    while term > sum * 1e-16 {
        place += 1.0;
        term *= value / place;
        sum += term;
    }
    let log = shape * libm::log(value) - value - libm::lgamma(shape + 1.0);
    (libm::exp(log) * sum).min(1.0)
}

/// A kind of drive, with what is known of its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Hard disks, shingled ones too.
    HardDisk,
    /// SSDs.
    Ssd,
}

impl Class {
    /// Failures a year of each drive, over models.
    pub const fn failures(self) -> Range {
        match self {
            Self::HardDisk => Range { low: 0.005, central: 0.014, high: 0.04 },
            Self::Ssd => Range { low: 0.002, central: 0.009, high: 0.015 },
        }
    }

    /// Latent defects a year of each drive.
    pub const fn defects(self) -> Range {
        match self {
            Self::HardDisk => Range { low: 0.01, central: 0.032, high: 0.2 },
            Self::Ssd => Range { low: 0.02, central: 0.1, high: 0.4 },
        }
    }

    /// Where the failures are from.
    pub const fn failures_source(self) -> &'static str {
        match self {
            Self::HardDisk => {
                "Backblaze 2025: fleet 1.36 %, models 0.5 to 10 %; Schroeder & Gibson 2007: 2 to 4 %"
            }
            Self::Ssd => "Backblaze 2023: 0.9 to 1.05 %; Maneas et al. 2020: models 0.07 to 1.2 %",
        }
    }

    /// Where the defects are from.
    pub const fn defects_source(self) -> &'static str {
        match self {
            Self::HardDisk => {
                "Bairavasundaram et al. 2007: 1.5 to 3.2 % of drives a year, some models 20 % in two"
            }
            Self::Ssd => {
                "estimate after Schroeder et al. 2016: 30 to 80 % of drives grow a bad block in 4 years"
            }
        }
    }
}

/// The chance that a failure takes another drive with it. Nobody has published it for arrays of a few drives; failures
/// of shelves and cables come in bursts (Jiang et al. 2008).
pub const COMMON_CAUSE: Range = Range { low: 1e-4, central: 1e-3, high: 1e-2 };

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 failures in 3,555,491 drive-days: 0.52 %, and a limit of 0.65 % as published for that model.
    #[test]
    fn a_model_s_failures_are_a_posterior() {
        let range = Range::of_failures(50, 3_555_491.0).expect("drive-days");
        assert!((range.central - 0.00524).abs() < 2e-5, "{range:?}");
        assert!((0.0062..0.0068).contains(&range.high), "{range:?}");
        // No failure yet: exponential, whose quantiles are logarithms.
        let none = Range::of_failures(0, 365.0).expect("a year");
        assert!((none.low + 0.95f64.ln()).abs() < 1e-9 && (none.high + 0.05f64.ln()).abs() < 1e-9);
        assert!(Range::of_failures(1, 0.0).is_err());
    }

    #[test]
    fn ranges_have_their_ends_at_five_percent() {
        let range = Range::new(0.5, 1.0, 4.0).expect("ascends");
        for (deviations, value) in [(-FIVE_PERCENT, 0.5), (0.0, 1.0), (FIVE_PERCENT, 4.0)] {
            assert!((range.at(deviations) - value).abs() < 1e-12);
        }
        assert_eq!(Range::fixed(0.0).at(1.0), 0.0);
        for (low, central, high) in [(2.0, 1.0, 3.0), (0.0, 0.0, 1.0), (-1.0, 0.0, 0.0)] {
            assert!(Range::new(low, central, high).is_err());
        }
    }
}
