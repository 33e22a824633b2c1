//! Chances in words, to one digit: more is not known.

/// What every figure is about.
pub const SCOPE: &str = "drives and rebuilds only, not fire, theft, deletion, ransomware, software";

/// Below this other causes dominate.
pub const LEAST: f64 = 1e-5;

/// A chance, such as `1 in 300`, `4 in 10`, `almost certain`.
pub fn chance(value: f64) -> String {
    if value < LEAST {
        return "less than 1 in 100,000".into();
    }
    if value > 0.95 {
        return "almost certain".into();
    }
    if value >= 0.15 {
        return format!("{:.0} in 10", (value * 10.0).clamp(1.0, 9.0));
    }
    format!("1 in {}", grouped(one_digit(1.0 / value)))
}

/// A chance with what it may be: `about 1 in 300; between 1 in 60 and 1 in 2,000`.
pub fn chance_within(value: f64, (low, high): (f64, f64)) -> String {
    if value < LEAST && high < LEAST {
        return format!("less than 1 in 100,000: {DOMINATED}");
    }
    if value < LEAST {
        let high = chance(high);
        return format!("less than 1 in 100,000: {DOMINATED}; up to {high}");
    }
    let (about, likely, rarely) = (chance(value), chance(high), chance(low));
    let about = if value > 0.95 { about } else { format!("about {about}") };
    if likely == rarely {
        return about;
    }
    format!("{about}; between {likely} and {rarely}")
}

/// What is said of chances of which nobody should want to know more.
pub const DOMINATED: &str = "other causes dominate";

/// What is said of the safest layout where ratios to it are told.
pub fn dominated(safest: &str) -> String {
    format!(
        "{safest} itself loses the array less than 1 time in 100,000: {DOMINATED}, which no layout is a help \
         against; ratios count down to that only"
    )
}

/// A chance in a table: `1 in 300`, or that [other causes dominate](DOMINATED).
pub fn chance_or_other_causes(value: f64) -> String {
    if value < LEAST { DOMINATED.into() } else { chance(value) }
}

/// What a chance may be, for a table: `1 in 60 to 2,000`, `up to 1 in 50,000`; `None` where one digit says no more
/// than of the chance itself, or other causes dominate all of it.
pub fn between((low, high): (f64, f64)) -> Option<String> {
    let (likely, rarely) = (chance(high), chance(low));
    if high < LEAST || likely == rarely {
        return None;
    }
    if low < LEAST {
        return Some(format!("up to {likely}"));
    }
    // What both ends begin with is said once.
    let rarely =
        if likely.starts_with("1 in ") { rarely.trim_start_matches("1 in ") } else { &rarely };
    Some(format!("{likely} to {rarely}"))
}

/// How many times as often, in words: `about 40 times as often; from 20 to 100 times`.
pub fn compared(ratio: f64, (low, high): (f64, f64)) -> String {
    if !ratio.is_finite() {
        return "more often than never".into();
    }
    let [central, low, high] = [ratio, low, high].map(times);
    let central = if central == "1" { String::new() } else { format!("{central} times ") };
    if low == high {
        return format!("about {central}as often");
    }
    format!("about {central}as often; from {low} to {high} times")
}

/// How many times as large at least a chance is as one below [`LEAST`], which is counted as that; `None` where the
/// other is not below.
pub fn counted_down(chance: f64, than: f64) -> Option<f64> {
    (than < LEAST).then(|| (chance / LEAST).max(1.0))
}

/// How many times as often at least, as [`counted_down`] has it, for a table: `at least 40`; of two chances that are
/// both below [`LEAST`], that other causes dominate.
pub fn times_counted_down(at_least: f64) -> String {
    if at_least > 1.0 { format!("at least {}", times_at_least(at_least)) } else { DOMINATED.into() }
}

/// The same in words: `at least 40 times as often, counted down to 1 in 100,000 only`.
pub fn compared_counted_down(at_least: f64) -> String {
    if at_least <= 1.0 {
        return format!("less than 1 in 100,000, too: {DOMINATED}");
    }
    let times = match &*times_at_least(at_least) {
        "1" => String::new(),
        times => format!("{times} times "),
    };
    format!("at least {times}as often, counted down to 1 in 100,000 only")
}

/// How many times as often, to one digit: `40`, `1.5`, `1`, `1/3`.
pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio <= 0.0 => "0".into(),
        ratio if ratio < 0.8 => format!("1/{}", times(1.0 / ratio)),
        ratio if ratio < 1.25 => "1".into(),
        ratio if ratio < 2.75 => format!("{}", (ratio * 2.0).round() / 2.0),
        ratio => grouped(one_digit(ratio)),
    }
}

/// How many times at least, for ratios of 1 and more: the same digit, rounded down.
pub fn times_at_least(ratio: f64) -> String {
    // A hundred is one, though it be computed as a little less.
    let ratio = ratio * (1.0 + 1e-9);
    if ratio < 3.0 {
        return format!("{}", ((ratio * 2.0).floor() / 2.0).max(1.0));
    }
    let scale = scale(ratio);
    grouped((ratio / scale).floor() * scale)
}

/// A share, such as `about 70 %`.
pub fn share(value: f64) -> String {
    match value {
        value if value < 0.05 => "less than 5 %".into(),
        value => format!("about {:.0} %", (value * 10.0).round() * 10.0),
    }
}

/// Bytes lost for each usable TB, such as `300 MB`.
pub fn bytes(of_each: f64) -> String {
    if of_each < LEAST {
        return format!("less than 10 MB: {DOMINATED}");
    }
    let bytes = of_each * 1e12;
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= 0.95 * size);
    match unit {
        Some((size, name)) => format!("{} {name}", grouped(one_digit(bytes / size))),
        None => "nothing".into(),
    }
}

/// The same beside the chance of losing the array, which loses all of it: where it is as much, it is what that chance
/// says as [`chance`] has it, to two digits. `1 in 20` is 50 GB, and not the 70 GB that 1 in 15.4 would be.
pub fn bytes_beside(of_each: f64, array: f64) -> String {
    let is_as_much = (0.8..1.25).contains(&(of_each / array));
    let Some(said) = said(array).filter(|_| is_as_much) else { return bytes(of_each) };
    let bytes = said * 1e12;
    let (size, name) = if bytes < 0.9995e9 { (1e6, "MB") } else { (1e9, "GB") };
    let value = bytes / size;
    match value {
        value if value < 9.95 => {
            let text = format!("{value:.1}");
            format!("{} {name}", text.strip_suffix(".0").unwrap_or(&text))
        }
        value => {
            let unit = scale(value) / 10.0;
            format!("{:.0} {name}", (value / unit).round() * unit)
        }
    }
}

/// The number that [`chance`] says; `None` where it says none.
fn said(value: f64) -> Option<f64> {
    match value {
        value if !(LEAST..=0.95).contains(&value) => None,
        value if value >= 0.15 => Some((value * 10.0).round().clamp(1.0, 9.0) / 10.0),
        value => Some(1.0 / one_digit(1.0 / value)),
    }
}

/// Rounded to the first digit.
fn one_digit(value: f64) -> f64 {
    let scale = scale(value);
    (value / scale).round() * scale
}

/// What the first digit of a number from 1 on counts.
fn scale(value: f64) -> f64 {
    let mut scale = 1.0;
    while value / scale >= 10.0 {
        scale *= 10.0;
    }
    scale
}

fn grouped(value: f64) -> String {
    thousands(&format!("{value:.0}"))
}

/// The digits of a whole number with commas between the thousands: `1,234,567`.
pub fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_one_digit() {
        for (value, text) in [
            (0.0033, "1 in 300"),
            (1.0 / 96.0, "1 in 100"),
            (0.000_51, "1 in 2,000"),
            (0.14, "1 in 7"),
            (0.36, "4 in 10"),
            (0.97, "almost certain"),
            (0.95, "9 in 10"),
            (0.15, "2 in 10"),
            (0.16, "2 in 10"),
            (1.05e-5, "1 in 100,000"),
            (9.9e-6, "less than 1 in 100,000"),
            (0.0, "less than 1 in 100,000"),
        ] {
            assert_eq!(chance(value), text, "{value}");
        }
        let within = chance_within(1.0 / 310.0, (1.0 / 2_100.0, 1.0 / 58.0));
        assert_eq!(within, "about 1 in 300; between 1 in 60 and 1 in 2,000");
        let rare = chance_within(1e-7, (1e-9, 2e-6));
        assert_eq!(rare, "less than 1 in 100,000: other causes dominate");
        assert!(chance_within(1e-6, (1e-7, 1e-4)).ends_with("up to 1 in 10,000"));
        assert_eq!(chance_within(0.1, (0.1, 0.1)), "about 1 in 10");
    }

    #[test]
    fn tables_have_chances_in_short() {
        let both = |low: f64, high: f64| between((low, high));
        assert_eq!(both(1.0 / 2_100.0, 1.0 / 58.0).as_deref(), Some("1 in 60 to 2,000"));
        assert_eq!(both(0.1, 0.4).as_deref(), Some("4 in 10 to 1 in 10"));
        assert_eq!(both(1e-6, 2e-5).as_deref(), Some("up to 1 in 50,000"));
        assert_eq!((both(1e-9, 1e-7), both(0.1, 0.1)), (None, None));
        assert_eq!(chance_or_other_causes(0.0033), "1 in 300");
        assert_eq!(chance_or_other_causes(9.9e-6), "other causes dominate");
    }

    #[test]
    fn ratios_in_words() {
        let ratio = |central, low, high| compared(central, (low, high));
        assert_eq!(ratio(41.0, 20.0, 110.0), "about 40 times as often; from 20 to 100 times");
        assert_eq!(ratio(1.1, 1.0, 1.2), "about as often");
        assert_eq!(ratio(1.1, 0.5, 1.2), "about as often; from 1/2 to 1 times");
        assert_eq!(ratio(f64::NAN, 0.0, 0.0), "more often than never");
    }

    #[test]
    fn ratios_shares_and_bytes() {
        let told = [1.1, 1.5, 2.1, 4.4, 41.0, 5_300.0, 0.31].map(times);
        assert_eq!(told, ["1", "1.5", "2", "4", "40", "5,000", "1/3"]);
        assert_eq!(share(0.71), "about 70 %");
        assert_eq!(bytes(3.3e-4), "300 MB");
        assert_eq!(bytes(9e-6), "less than 10 MB: other causes dominate");
    }

    /// Below what other causes dominate nothing is counted: neither of one chance nor of both.
    #[test]
    fn ratios_count_down_to_what_other_causes_dominate() {
        assert_eq!(counted_down(4e-3, LEAST), None);
        let told = |chance: f64| {
            let least = counted_down(chance, 6e-6).expect("is below");
            (times_counted_down(least), compared_counted_down(least))
        };
        let often =
            |times: &str| format!("at least {times}as often, counted down to 1 in 100,000 only");
        assert_eq!(told(4.1e-3), ("at least 400".to_owned(), often("400 times ")));
        assert_eq!(told(1.2e-5), ("at least 1".to_owned(), often("")));
        let both = "less than 1 in 100,000, too: other causes dominate".to_owned();
        assert_eq!(told(9e-6), (DOMINATED.to_owned(), both));
    }

    #[test]
    fn at_least_is_rounded_down() {
        for (ratio, text) in [
            (1.0, "1"),
            (1.45, "1"),
            (1.9, "1.5"),
            (2.74, "2.5"),
            (2.99, "2.5"),
            (3.0, "3"),
            (3.9, "3"),
            (96.0, "90"),
            (1e-3 / 1e-5, "100"),
            (1_999.0, "1,000"),
        ] {
            assert_eq!(times_at_least(ratio), text, "{ratio}");
        }
    }

    /// Both figures of a layout say the same, for every chance that is told.
    #[test]
    fn bytes_lost_do_not_contradict_the_chance() {
        for (array, both) in [
            (0.065, ["1 in 20", "50 GB"]),
            (0.0033, ["1 in 300", "3.3 GB"]),
            (1.0 / 60.0, ["1 in 60", "17 GB"]),
            (0.36, ["4 in 10", "400 GB"]),
            (0.14, ["1 in 7", "140 GB"]),
            (1.1e-3, ["1 in 900", "1.1 GB"]),
            (1.0e-3, ["1 in 1,000", "1 GB"]),
            (1.2e-5, ["1 in 80,000", "13 MB"]),
            (0.97, ["almost certain", "1 TB"]),
            (9e-6, ["less than 1 in 100,000", "less than 10 MB: other causes dominate"]),
        ] {
            assert_eq!([chance(array), bytes_beside(array * 1.01, array)], both);
        }
        // Mostly sectors, or an array that is lost in part: its own digit.
        assert_eq!([bytes_beside(0.03, 0.065), bytes_beside(3e-4, 1e-7)], ["30 GB", "300 MB"]);
    }

    #[test]
    fn numbers_have_commas() {
        for text in ["0", "999", "1,000", "12,345", "1,234,567"] {
            assert_eq!(thousands(&text.replace(',', "")), text);
        }
    }

    #[test]
    fn ratios_and_bytes_in_words() {
        let told = [0.0, 0.1, 0.5, 0.79, 0.8, 1.0, 1.24, 1.25, 1.74, 1.75, 2.2, 2.74, 3.4, 47.0]
            .map(times);
        let words =
            ["0", "1/10", "1/2", "1/1.5", "1", "1", "1", "1.5", "1.5", "2", "2", "2.5", "3", "50"];
        assert_eq!(told, words);
        let told = [3e-4, 2e-3, 0.4, 1.0, 0.96e-3, 9e-6].map(bytes);
        assert_eq!(told[..5], ["300 MB", "2 GB", "400 GB", "1 TB", "1 GB"]);
        assert!(told[5].starts_with("less than 10 MB"));
    }
}
