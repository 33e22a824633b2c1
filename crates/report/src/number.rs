//! Numbers as people read them, in one place.
//!
//! Between a number and its unit stands a no-break space, between groups of three digits a narrow
//! one. Whoever writes for a terminal replaces both by plain spaces when the lines are broken.

/// Keeps a number and its unit on one line.
pub(crate) const NO_BREAK: char = '\u{a0}';
/// Between groups of three digits.
pub(crate) const THIN: char = '\u{202f}';

/// At least three significant digits; whole numbers are never rounded further: `0.0123`, `9.87`,
/// `762`, `1 234`.
pub fn number(value: f64) -> String {
    let mut decimals = decimals_for(value);
    let mut text = format!("{value:.decimals$}");
    // 99.96 rounds to 100.0, which has a digit too many.
    if let Ok(rounded) = text.parse::<f64>()
        && decimals_for(rounded) < decimals
    {
        decimals = decimals_for(rounded);
        text = format!("{value:.decimals$}");
    }
    group(without_negative_zero(&text))
}

/// Percentages from here on are told as a factor: nobody reads `+50 955 %`.
const FACTOR_FROM_PERCENT: f64 = 1_000.0;

/// A change in percent with its sign: `+102 %`, `-3.4 %`, `0 %`. Below 10 % with one decimal. From ten times as
/// much on as a factor: `13.5 times`.
pub fn percent(value: f64) -> String {
    if value >= FACTOR_FROM_PERCENT {
        return with_unit(value / 100.0 + 1.0, "times");
    }
    let mut text = tenths(value);
    // Nothing is left of nothing only: what took 0.1 ms in place of 38 ms did not lose 100 %.
    for decimals in 1..=3 {
        if text == "-100" && value > -100.0 {
            text = format!("{value:.decimals$}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned();
        }
    }
    let sign = if value > 0.0 && text != "0" { "+" } else { "" };
    format!("{sign}{text}{NO_BREAK}%")
}

/// A share from 0 to 1 in percent: `98 %`.
pub fn share(value: f64) -> String {
    format!("{}{NO_BREAK}%", group(without_negative_zero(&format!("{:.0}", value * 100.0))))
}

/// Half a range, in percent of what it lies around: `±0.4 %`.
pub fn spread(percent: f64) -> String {
    format!("±{}{NO_BREAK}%", tenths(percent))
}

/// A number with its unit: `762 MiB/s`.
pub fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() {
        return number(value);
    }
    format!("{}{NO_BREAK}{unit}", number(value))
}

/// A range: `755..770`.
pub fn range(low: f64, high: f64) -> String {
    format!("{}..{}", number(low), number(high))
}

/// A time given in seconds, with a unit that suits it: `12.3 ms`, `4.56 s`, `2 min 05 s`,
/// `3 h 20 min`.
pub fn duration(seconds: f64) -> String {
    let size = if seconds < 0.0 { -seconds } else { seconds };
    if size == 0.0 {
        return format!("0{NO_BREAK}s");
    }
    if size < 1e-3 {
        return with_unit(seconds * 1e6, "µs");
    }
    if size < 1.0 {
        return with_unit(seconds * 1e3, "ms");
    }
    if size < 120.0 {
        return with_unit(seconds, "s");
    }
    let sign = if seconds < 0.0 { "-" } else { "" };
    let whole = (size + 0.5) as u64;
    if whole < 7_200 {
        return format!("{sign}{}{NO_BREAK}min{NO_BREAK}{:02}{NO_BREAK}s", whole / 60, whole % 60);
    }
    if whole >= 48 * 3_600 {
        return with_unit(seconds / 86_400.0, "days");
    }
    let minutes = (whole + 30) / 60;
    let hours = group(&(minutes / 60).to_string());
    format!("{sign}{hours}{NO_BREAK}h{NO_BREAK}{:02}{NO_BREAK}min", minutes % 60)
}

/// A number of bytes in the binary unit that suits it: `29.1 TiB`, `512 B`.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < units.len() {
        value /= 1_024.0;
        unit += 1;
    }
    if value == value.trunc() {
        return format!("{}{NO_BREAK}{}", group(&format!("{value:.0}")), units[unit]);
    }
    with_unit(value, units[unit])
}

/// Items as a sentence lists them: `a`, `a and b`, `a, b and c`.
pub fn listed<S: AsRef<str>>(items: &[S]) -> String {
    let mut text = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push_str(if at + 1 == items.len() { " and " } else { ", " });
        }
        text.push_str(item.as_ref());
    }
    text
}

/// How many processes; none is what a rebuild has beside it when it runs alone.
pub(crate) fn processes(count: u32) -> String {
    if count == 0 { "no load".to_owned() } else { counted(count as usize, "process") }
}

/// A count and its noun: `1 round`, `6 rounds`, `2 processes`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = match (count, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{}{NO_BREAK}{noun}{ending}", group(&count.to_string()))
}

/// How many decimals give three significant digits.
fn decimals_for(value: f64) -> usize {
    let mut size = if value < 0.0 { -value } else { value };
    if size == 0.0 {
        return 0;
    }
    let mut decimals = 0;
    while size < 100.0 && decimals < 12 {
        size *= 10.0;
        decimals += 1;
    }
    decimals
}

/// One decimal below ten, none above, and a bare `0` for what rounds to nothing.
fn tenths(value: f64) -> String {
    let fine = format!("{value:.1}");
    let shown = fine.parse::<f64>().unwrap_or(value);
    if shown == 0.0 {
        return "0".to_owned();
    }
    if (-10.0 < shown) && (shown < 10.0) { fine } else { group(&format!("{value:.0}")) }
}

fn without_negative_zero(text: &str) -> &str {
    let is_zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if is_zero { text.trim_start_matches('-') } else { text }
}

/// Groups the digits before the decimal point by three.
fn group(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: String) -> String {
        text.replace([NO_BREAK, THIN], " ")
    }

    #[test]
    fn three_significant_digits_and_groups() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.012_34, "0.0123"),
            (0.999_9, "1.00"),
            (9.876, "9.88"),
            (99.94, "99.9"),
            (99.96, "100"),
            (761.6, "762"),
            (1_234.4, "1 234"),
            (12_345_678.0, "12 345 678"),
            (-1_234.0, "-1 234"),
        ] {
            assert_eq!(plain(number(value)), text, "{value}");
        }
    }

    #[test]
    fn percents_carry_a_sign() {
        for (value, text) in [
            (102.4, "+102 %"),
            (-3.44, "-3.4 %"),
            (9.97, "+10 %"),
            (0.04, "0 %"),
            (-0.04, "0 %"),
            (999.4, "+999 %"),
            (1_250.0, "13.5 times"),
            (50_955.0, "511 times"),
            (-99.6, "-99.6 %"),
            (-99.99, "-99.99 %"),
            (-100.0, "-100 %"),
        ] {
            assert_eq!(plain(percent(value)), text, "{value}");
        }
        assert_eq!(plain(spread(0.44)), "±0.4 %");
        assert_eq!(plain(spread(34.4)), "±34 %");
        assert_eq!(plain(share(0.984)), "98 %");
    }

    #[test]
    fn times_choose_their_unit() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.000_012_3, "12.3 µs"),
            (0.85, "850 ms"),
            (4.561, "4.56 s"),
            (119.0, "119 s"),
            (125.0, "2 min 05 s"),
            (7_199.6, "2 h 00 min"),
            (12_000.0, "3 h 20 min"),
            (171_000.0, "47 h 30 min"),
            (6_134_400.0, "71.0 days"),
        ] {
            assert_eq!(plain(duration(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn bytes_choose_their_unit() {
        assert_eq!(plain(bytes(512)), "512 B");
        assert_eq!(plain(bytes(256 << 20)), "256 MiB");
        assert_eq!(plain(bytes(32_000_000_000_000)), "29.1 TiB");
        assert_eq!(plain(bytes(u64::MAX)), "16 EiB");
    }

    #[test]
    fn words() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(plain(counted(1, "process")), "1 process");
        assert_eq!(plain(counted(4, "process")), "4 processes");
        assert_eq!(plain(counted(6, "round")), "6 rounds");
    }
}
