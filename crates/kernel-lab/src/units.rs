//! Sizes, times, rates and switches as they are written on a command line.

use raidlab_core::units::Nanos;

/// The keys and values of a line such as `size=1GiB,byte=10ns`, each key once.
pub(crate) fn pairs(line: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for pair in line.split(',') {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair}: no KEY=VALUE"))?;
        if let Some((_, before)) = pairs.iter().find(|(known, _)| *known == key) {
            return Err(format!("{key}={value}: {key}={before} was said before"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

pub(crate) fn switch(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("{value} is neither 0 nor 1")),
    }
}

pub(crate) fn bytes(value: &str) -> Result<u64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("", 1)];
    with_unit(value, &units)
}

pub(crate) fn picos(value: &str) -> Result<u64, String> {
    let units = [("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("ps", 1)];
    with_unit(value, &units)
}

pub(crate) fn nanos(value: &str) -> Result<Nanos, String> {
    Ok(Nanos(picos(value)? / 1000))
}

/// Bytes per second.
pub(crate) fn rate(value: &str) -> Result<u64, String> {
    with_unit(value, &[("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)])
}

fn with_unit(value: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let number = number.parse::<u64>().ok();
    number.zip(factor).and_then(|(number, factor)| number.checked_mul(factor)).ok_or_else(|| {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        format!("{value}: a whole number and one of {}", names.join(" ").trim())
    })
}
