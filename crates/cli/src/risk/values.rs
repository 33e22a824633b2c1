//! Lengths of time and percentages as they are written on the command line.

use std::str::FromStr;

use raidlab_risk::prior::Range;
use raidlab_risk::{Span, YEAR};

/// A length of time, a range, samples, or never.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hours(pub(crate) Option<Span>);

const UNITS: [(&str, f64); 6] =
    [("min", 1.0 / 60.0), ("m", 1.0 / 60.0), ("h", 1.0), ("d", 24.0), ("w", 168.0), ("y", YEAR)];

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (hours(low)?, hours(high)?);
            if low > high {
                return Err(format!("`{text}`: the shorter time comes first"));
            }
            return Ok(Self(Some(Span::Uniform(low, high))));
        }
        let samples: Vec<f64> = text.split(',').map(hours).collect::<Result<_, _>>()?;
        Ok(Self(Some(match samples[..] {
            [one] => Span::Fixed(one),
            _ => Span::Samples(samples),
        })))
    }
}

fn hours(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, hours)| hours);
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite());
    match (value, unit) {
        (Some(0.0), None) if number == text => Ok(0.0),
        (Some(value), Some(unit)) => Ok(value * unit),
        _ => Err(format!("`{text}` is no time; write a number and a unit: 30m, 36h, 3d, 2w")),
    }
}

/// A time in words: `36 h`, `3 d`.
pub(crate) fn time(hours: f64) -> String {
    let with = |value: f64, unit: &str| {
        let digits = usize::from(value < 9.95 && (value - value.round()).abs() > 0.05);
        format!("{value:.digits$} {unit}")
    };
    match hours {
        0.0 => "no time".into(),
        hours if hours < 1.0 => with(hours * 60.0, "min"),
        hours if hours < 48.0 => with(hours, "h"),
        hours if hours < 2.0 * YEAR => with(hours / 24.0, "d"),
        hours => with(hours / YEAR, "years"),
    }
}

/// A length of time that varies, in words.
pub(crate) fn span(span: &Span) -> String {
    match span {
        Span::Fixed(hours) => time(*hours),
        Span::Uniform(low, high) => format!("{} to {}", time(*low), time(*high)),
        Span::Samples(samples) => {
            let low = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let high = samples.iter().copied().fold(0.0, f64::max);
            format!("{} to {}, mean {}", time(low), time(high), time(span.mean()))
        }
        Span::Exponential(_) | Span::Weibull { .. } => format!("{} on average", time(span.mean())),
    }
}

/// A percentage that is known, or low, central, high. Kept as shares of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percents(pub(crate) Range);

impl FromStr for Percents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let value = part.trim().trim_end_matches('%').trim().parse::<f64>().ok();
            let value = value.filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| format!("`{part}` is no percentage; write 1.4, or 0.5,1.4,4"))
        };
        let parts: Vec<f64> = text.split(',').map(number).collect::<Result<_, _>>()?;
        let range = match parts[..] {
            [one] => Range::fixed(one),
            [low, central, high] => Range::new(low, central, high)?,
            _ => {
                let reason = "write one figure, or three: low, central, high";
                return Err(format!("`{text}`: {reason}"));
            }
        };
        Ok(Self(range.times(0.01)))
    }
}

impl Percents {
    /// The figure where a range means nothing, as a chance.
    pub(crate) fn chance(self, flag: &str) -> Result<f64, String> {
        let Range { low, central, high } = self.0;
        if low != high {
            return Err(format!("{flag}: write one figure, not a range"));
        }
        if central > 1.0 {
            return Err(format!("{flag}: at most 100 percent"));
        }
        Ok(central)
    }
}

/// A range of shares, as percentages.
pub(crate) fn percents(range: Range) -> String {
    let one = |share: f64| {
        let text = format!("{:.2}", share * 100.0);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if range.low == range.high {
        return format!("{} %", one(range.central));
    }
    format!("{} % ({} to {} %)", one(range.central), one(range.low), one(range.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let read = |text: &str| text.parse::<Hours>().map(|hours| hours.0);
        assert_eq!(read("36h"), Ok(Some(Span::Fixed(36.0))));
        assert_eq!(read("1.5d"), Ok(Some(Span::Fixed(36.0))));
        assert_eq!(read("0"), Ok(Some(Span::Fixed(0.0))));
        assert_eq!(read("1d..2w"), Ok(Some(Span::Uniform(24.0, 336.0))));
        assert_eq!(read("20h,30h"), Ok(Some(Span::Samples(vec![20.0, 30.0]))));
        assert_eq!(read("never"), Ok(None));
        for wrong in ["3", "d", "3 fortnights", "-1d", "5d..1d", "", "1d,,2d"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [36.0, 72.0, 0.5, 0.0, 17_520.0].map(time),
            ["36 h", "3 d", "30 min", "no time", "2 years"]
        );
    }

    #[test]
    fn percentages_are_read() {
        let read = |text: &str| text.parse::<Percents>().map(|percents| percents.0);
        assert_eq!(read("1.5"), Ok(Range::fixed(0.015)));
        let range = read("0.5, 1.4 %, 4").expect("three");
        assert_eq!(percents(range), "1.4 % (0.5 to 4 %)");
        for wrong in ["x", "-1", "1,2", "3,2,1", "0,1,2", "nan"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let chance = |text: &str| text.parse::<Percents>().expect("read").chance("--x");
        assert_eq!(chance("5"), Ok(0.05));
        assert!(chance("101").is_err() && chance("1,2,3").is_err());
    }
}
