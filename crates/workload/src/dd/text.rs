//! Numbers as GNU dd prints them, found out by trying coreutils 9.1 (`tests/copy_strace.rs` compares).
//!
//! Sizes and exact rates: three or fewer digits, one decimal below ten, ties to even. Rates that are no
//! whole number of bytes per second: one decimal below a hundred, and never below kB/s.

use raidlab_core::Nanos;

const NANOS: u128 = 1_000_000_000;

/// `104857600 bytes (105 MB, 100 MiB) copied, 0.1 s, 1.0 GB/s`.
pub(super) fn copied(bytes: u64, elapsed: Nanos) -> String {
    let decimal = (bytes >= 1000).then(|| scaled(bytes.into(), 1, 1000));
    let binary = (bytes >= 1024).then(|| scaled(bytes.into(), 1, 1024));
    let sizes: Vec<String> = decimal.into_iter().chain(binary).collect();
    let sizes = match sizes.as_slice() {
        [] => String::new(),
        sizes => format!(" ({})", sizes.join(", ")),
    };
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{bytes} {unit}{sizes} copied, {} s, {}/s", general(elapsed), rate(bytes, elapsed))
}

fn rate(bytes: u64, elapsed: Nanos) -> String {
    let nanos = u128::from(elapsed.0);
    if nanos == 0 {
        return "Infinity B".into();
    }
    if NANOS.is_multiple_of(nanos) || nanos.is_multiple_of(NANOS) {
        return scaled(u128::from(bytes) * NANOS, nanos, 1000);
    }
    let mut value = bytes as f64 * 1e9 / nanos as f64 / 1e3;
    let mut unit = 1;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let one = format!("{value:.1}");
    let digits = if one.len() <= 4 { one } else { format!("{value:.0}") };
    format!("{digits} {}", name(unit, 1000))
}

const UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

fn name(unit: usize, base: u128) -> String {
    match (UNITS[unit], base) {
        ("", _) => "B".into(),
        (letter, 1000) => format!("{letter}B"),
        (letter, _) => format!("{}iB", letter.to_uppercase()),
    }
}

/// `numerator / denominator` bytes in the largest unit that leaves at least one.
fn scaled(numerator: u128, denominator: u128, base: u128) -> String {
    let (mut unit, mut scale) = (0, denominator);
    while numerator >= scale * base && unit + 1 < UNITS.len() {
        scale *= base;
        unit += 1;
    }
    let tenths = divided(numerator * 10, scale);
    if unit > 0 && tenths < 100 {
        return format!("{}.{} {}", tenths / 10, tenths % 10, name(unit, base));
    }
    match divided(numerator, scale) {
        full if full == base && unit + 1 < UNITS.len() => format!("1.0 {}", name(unit + 1, base)),
        whole => format!("{whole} {}", name(unit, base)),
    }
}

/// Divided and rounded, ties to even.
fn divided(numerator: u128, denominator: u128) -> u128 {
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    let up = rest * 2 > denominator || (rest * 2 == denominator && whole % 2 == 1);
    whole + u128::from(up)
}

/// Seconds as C prints a number by `%g`: six digits, no zeroes at the end.
fn general(elapsed: Nanos) -> String {
    let seconds = elapsed.as_secs();
    if elapsed == Nanos::ZERO {
        return "0".into();
    }
    let scientific = format!("{seconds:.5e}");
    let Some((digits, power)) = scientific.split_once('e') else { return scientific };
    let power: i32 = power.parse().unwrap_or(0);
    let plain = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..6).contains(&power) {
        return plain(&format!("{seconds:.*}", (5 - power) as usize));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", plain(digits), power.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As coreutils 9.1 printed them.
    #[test]
    fn numbers_look_as_dd_prints_them() {
        for (bytes, nanos, line) in [
            (1, 37_946, "1 byte copied, 3.7946e-05 s, 26.4 kB/s"),
            (0, 35_853, "0 bytes copied, 3.5853e-05 s, 0.0 kB/s"),
            (999, 35_272, "999 bytes copied, 3.5272e-05 s, 28.3 MB/s"),
            (1000, 34_541, "1000 bytes (1.0 kB) copied, 3.4541e-05 s, 29.0 MB/s"),
            (1023, 37_085, "1023 bytes (1.0 kB) copied, 3.7085e-05 s, 27.6 MB/s"),
            (1024, 34_412, "1024 bytes (1.0 kB, 1.0 KiB) copied, 3.4412e-05 s, 29.8 MB/s"),
            (9949, 39_419, "9949 bytes (9.9 kB, 9.7 KiB) copied, 3.9419e-05 s, 252 MB/s"),
            (9950, 39_309, "9950 bytes (10 kB, 9.7 KiB) copied, 3.9309e-05 s, 253 MB/s"),
            (999_499, 464_102, "999499 bytes (999 kB, 976 KiB) copied, 0.000464102 s, 2.2 GB/s"),
            (999_500, 390_933, "999500 bytes (1.0 MB, 976 KiB) copied, 0.000390933 s, 2.6 GB/s"),
            (1_048_575, 417_083, "1048575 bytes (1.0 MB, 1.0 MiB) copied, 0.000417083 s, 2.5 GB/s"),
            (12_288, 1_267_800, "12288 bytes (12 kB, 12 KiB) copied, 0.0012678 s, 9.7 MB/s"),
        ] {
            assert_eq!(copied(bytes, Nanos(nanos)), line);
        }
        let line = "104857600 bytes (105 MB, 100 MiB) copied, 0.1 s, 1.0 GB/s";
        assert_eq!(copied(104_857_600, Nanos::from_millis(100)), line);
    }

    #[test]
    fn seconds_have_six_digits() {
        for (nanos, text) in [
            (0, "0"),
            (1, "1e-09"),
            (100_000, "0.0001"),
            (99_999, "9.9999e-05"),
            (1_234_567_890, "1.23457"),
            (120_000_000_000, "120"),
            (99_999_960_000_000, "100000"),
            (1_234_567_000_000_000, "1.23457e+06"),
        ] {
            assert_eq!(general(Nanos(nanos)), text);
        }
        assert_eq!(rate(5, Nanos::ZERO), "Infinity B");
        assert_eq!(rate(5_000_000_000, Nanos(2_000_000_000)), "2.5 GB");
        assert_eq!(rate(90, Nanos(2_000_000_000)), "45 B");
    }
}
