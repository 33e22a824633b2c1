//! Axes: where a value stands, and which values are named.

use crate::number::{self, NO_BREAK};

/// How values are laid along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from the first value to the second.
    Linear(f64, f64),
    /// By their logarithms, from the first value to the second, both above nought.
    Log(f64, f64),
    /// So many places side by side, which are named by the ticks; values are their numbers from 0.
    Places(usize),
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// Where values stand.
    pub scale: Scale,
    /// Values with what is written at them.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From nought, or below it where there are such values, to the largest value; what is labelled is divided by
    /// `unit.0` and followed by `unit.1`.
    pub(crate) fn linear(label: impl Into<String>, low: f64, high: f64, unit: (f64, &str)) -> Self {
        let (low, high) = (low.min(0.0) / unit.0, high.max(0.0) / unit.0);
        // What is hardly below nought would take a whole step.
        let low = if -low < (high - low) / 50.0 { 0.0 } else { low };
        let step = step_for(high - low);
        let first = (low / step).floor();
        let last = (high / step).ceil().max(first + 1.0);
        let count = (last - first) as usize;
        let ticks = (0..=count).map(|at| {
            let value = (first + at as f64) * step;
            (value * unit.0, with_unit(tick(value), unit.1))
        });
        let scale = Scale::Linear(first * step * unit.0, last * step * unit.0);
        Self { label: label.into(), scale, ticks: ticks.collect() }
    }

    /// By powers of ten, and 2 and 5 times these where there are few, around values above nought.
    pub(crate) fn logarithmic(label: impl Into<String>, low: f64, high: f64) -> Self {
        let low = if low > 0.0 { low } else { high.max(1e-9) / 1e3 };
        let (low, high) = (low, if high > low { high } else { low * 10.0 });
        let powers =
            (libm::floor(libm::log10(low)) as i32)..=(libm::ceil(libm::log10(high)) as i32);
        let factors: &[f64] = match libm::log10(high / low) {
            decades if decades <= 0.4 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            decades if decades <= 1.0 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            decades if decades <= 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let all: Vec<f64> =
            powers.flat_map(|power| factors.iter().map(move |one| one * ten_to(power))).collect();
        let reach = 1.0 + 1e-9;
        let start = all.iter().copied().filter(|one| *one <= low * reach).fold(low, |_, one| one);
        let end = all.iter().copied().find(|one| *one * reach >= high).unwrap_or(high);
        let named = all.into_iter().filter(|one| (start..=end).contains(one));
        let ticks = named.map(|one| (one, tick(one))).collect();
        Self { label: label.into(), scale: Scale::Log(start, end), ticks }
    }

    /// By their logarithms at these values, each with its name.
    pub(crate) fn logarithmic_at(label: impl Into<String>, ticks: Vec<(f64, String)>) -> Self {
        let low = ticks.iter().map(|one| one.0).fold(f64::MAX, f64::min);
        let high = ticks.iter().map(|one| one.0).fold(0.0, f64::max);
        let scale = Scale::Log(low, if high > low { high } else { low * 2.0 });
        Self { label: label.into(), scale, ticks }
    }

    /// One place after the other.
    pub(crate) fn places(label: impl Into<String>, names: &[String]) -> Self {
        let ticks = names.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
        Self { label: label.into(), scale: Scale::Places(names.len()), ticks: ticks.collect() }
    }

    /// Where a value stands, 0 to 1; what lies outside stands at the end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear(low, high) => (value - low) / (high - low),
            Scale::Log(low, high) => {
                libm::log(value.max(low) / low) / libm::log(high / low).max(1e-12)
            }
            Scale::Places(count) => (value + 0.5) / count.max(1) as f64,
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A round step that divides a width into two to five.
fn step_for(width: f64) -> f64 {
    if !(width > 0.0 && width.is_finite()) {
        return 1.0;
    }
    let mut power = 1.0;
    while power * 10.0 <= width {
        power *= 10.0;
    }
    while power > width {
        power /= 10.0;
    }
    // The width is now 1 to 10 times the power.
    power
        * match width / power {
            share if share <= 1.0 => 0.25,
            share if share <= 2.0 => 0.5,
            share if share <= 4.0 => 1.0,
            share if share <= 8.0 => 2.0,
            _ => 2.5,
        }
}

/// A power of ten as the nearest number to it.
fn ten_to(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(1.0)
}

/// Round numbers need no digits beyond those.
pub(crate) fn tick(value: f64) -> String {
    let text = number::number(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() || text == "0" { text } else { format!("{text}{NO_BREAK}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_are_round_and_reach_the_largest_value() {
        for (low, high, first, last, count) in [
            (0.0, 0.0, 0.0, 1.0, 2),
            (0.0, 0.004, 0.0, 0.004, 5),
            (0.0, 1.0, 0.0, 1.0, 5),
            (0.0, 1.3, 0.0, 1.5, 4),
            (0.0, 98.0, 0.0, 100.0, 5),
            (0.0, 762.0, 0.0, 800.0, 5),
            (-40.0, 200.0, -100.0, 200.0, 4),
            (-80.0, -10.0, -80.0, 0.0, 5),
        ] {
            let axis = Axis::linear("", low, high, (1.0, ""));
            let Scale::Linear(from, to) = axis.scale else { panic!("linear") };
            assert!((from - first).abs() < 1e-9 && (to - last).abs() < 1e-9, "{high}: {axis:?}");
            assert_eq!(axis.ticks.len(), count, "{low}..{high}: {axis:?}");
            assert!(axis.share(low) >= 0.0 && axis.share(high) <= 1.0);
        }
    }

    #[test]
    fn hours_are_round_in_hours() {
        let axis = Axis::linear("", 0.0, 39_070.0, (3_600.0, "h"));
        assert_eq!(axis.ticks[1], (5.0 * 3_600.0, "5\u{a0}h".to_owned()));
        assert_eq!(axis.ticks[0].1, "0");
    }

    #[test]
    fn log_axes_reach_around_what_they_show() {
        for (low, high) in
            [(0.07, 12.0), (1.0, 1_000_000.0), (3.0, 4.0), (5.0, 5.0), (0.0, 3.0), (0.9, 2.2)]
        {
            let axis = Axis::logarithmic("", low, high);
            let Scale::Log(from, to) = axis.scale else { panic!("log") };
            assert!(from > 0.0 && from < to && to >= high, "{low}..{high}: {axis:?}");
            assert!(low == 0.0 || from <= low, "{low}..{high}: {axis:?}");
            assert!((2..=12).contains(&axis.ticks.len()), "{low}..{high}: {axis:?}");
            assert!((axis.share(to) - 1.0).abs() < 1e-9 && axis.share(from) == 0.0);
        }
    }

    #[test]
    fn places_stand_side_by_side() {
        let axis = Axis::places("", &["a".to_owned(), "b".to_owned()]);
        assert_eq!((axis.share(0.0), axis.share(1.0)), (0.25, 0.75));
    }

    #[test]
    fn values_stand_where_their_axis_has_them() {
        let shares = |axis: &Axis, values: &[f64]| -> Vec<f64> {
            values.iter().map(|value| (axis.share(*value) * 1e6).round() / 1e6).collect()
        };
        let below = Axis::linear("x", -10.0, 30.0, (1.0, "%"));
        assert_eq!(below.scale, Scale::Linear(-10.0, 30.0));
        assert_eq!(shares(&below, &[-20.0, -10.0, 0.0, 30.0, 99.0]), [0.0, 0.0, 0.25, 1.0, 1.0]);
        let names: Vec<String> =
            below.ticks.iter().map(|one| one.1.replace(NO_BREAK, " ")).collect();
        assert_eq!(names, ["-10 %", "0", "10 %", "20 %", "30 %"]);
        assert_eq!(
            Axis::linear("x", -1.0, 99.0, (1.0, "")).scale,
            Scale::Linear(0.0, 100.0),
            "hardly below"
        );
        assert!(
            matches!(Axis::linear("x", -3.0, 99.0, (1.0, "")).scale, Scale::Linear(low, _) if low < 0.0)
        );
        let powers = Axis::logarithmic("x", 1.0, 10_000.0);
        assert_eq!(shares(&powers, &[0.1, 1.0, 100.0, 10_000.0]), [0.0, 0.0, 0.5, 1.0]);
        let places = Axis::places("x", &["a", "b", "c", "d"].map(str::to_owned));
        assert_eq!(shares(&places, &[0.0, 3.0]), [0.125, 0.875]);
        let none = Axis::logarithmic("x", 0.0, 1_000.0);
        assert_eq!(none.scale, Scale::Log(1.0, 1_000.0), "three powers where nothing is the least");
    }

    #[test]
    fn steps_are_round_and_ticks_few() {
        let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 9.0, 10.0, 40.0, 0.4].map(step_for);
        let near = [0.25, 0.5, 0.5, 1.0, 1.0, 2.0, 2.5, 2.5, 10.0, 0.1];
        assert!(
            steps.iter().zip(near).all(|(one, other)| (one / other - 1.0).abs() < 1e-9),
            "{steps:?}"
        );
        assert_eq!((step_for(0.0), step_for(f64::INFINITY)), (1.0, 1.0));
        for (low, high, names) in [
            (10.0, 25.0, &["10", "12", "15", "20", "25"][..]),
            (10.0, 100.0, &["10", "20", "30", "50", "70", "100"]),
            (1.0, 100.0, &["1", "2", "5", "10", "20", "50", "100"]),
            (1.0, 1_000.0, &["1", "10", "100", "1000"]),
        ] {
            let axis = Axis::logarithmic("x", low, high);
            let found: Vec<String> = axis
                .ticks
                .iter()
                .map(|one| one.1.replace([NO_BREAK, ',', '\u{202f}', ' '], ""))
                .collect();
            assert_eq!(found, names, "{low} to {high}");
        }
    }
}
