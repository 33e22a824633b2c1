//! The values of options, as fio reads them: sizes by 1,024, times in seconds, numbers and words.

use raidlab_core::Nanos;

/// A size that may be a part of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Bytes(u64),
    Percent(u64),
}

impl Amount {
    /// The amount; `None` when it is nothing.
    pub(super) fn unless_none(self) -> Option<Self> {
        (!matches!(self, Self::Bytes(0) | Self::Percent(0))).then_some(self)
    }
}

/// Bytes or a percentage.
pub(super) fn amount(text: &str) -> Result<Amount, String> {
    match text.strip_suffix('%') {
        Some(number) => {
            let percent = number.parse::<u64>().ok().filter(|percent| *percent <= 100);
            percent
                .map(Amount::Percent)
                .ok_or_else(|| format!("`{text}` is not a whole percentage up to 100%"))
        }
        None => bytes(text).map(Amount::Bytes),
    }
}

/// A number of bytes: k, m, g, t and p (also with a `b`) count by 1,024, which is fio's `kb_base`.
///
/// To fio `kib` with an i is then 1,000, against all custom; such sizes are refused, so that nobody
/// measures blocks of 4,000 bytes without knowing.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None => (lower.as_str(), 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let power = match unit {
        "" | "b" => 0,
        "k" | "kb" | "ki" => 1,
        "m" | "mb" | "mi" => 2,
        "g" | "gb" | "gi" => 3,
        "t" | "tb" | "ti" => 4,
        "p" | "pb" | "pi" => 5,
        "kib" | "mib" | "gib" | "tib" | "pib" => {
            let letter = &unit[..1];
            return Err(format!(
                "`{text}` counts by 1000 in fio (its kb_base swaps the units), which is hardly \
                 meant; write {number}{letter} to count by 1024"
            ));
        }
        _ => return Err(wrong_size(text)),
    };
    let number = u64::from_str_radix(number, radix).map_err(|_| wrong_size(text))?;
    let bytes = number.checked_mul(1u64 << (10 * power)).filter(|bytes| *bytes < 1 << 62);
    bytes.ok_or_else(|| format!("`{text}` is too large"))
}

fn wrong_size(text: &str) -> String {
    let right = "write a whole number and k, m, g, t or p, such as 64k or 1g";
    if text.contains(['*', '/', '+', '(', '$']) {
        return format!("`{text}`: arithmetic and $ keywords are not supported; {right}");
    }
    format!("`{text}` is not a size; {right}")
}

/// A whole number within a range.
pub(super) fn number(text: &str, from: u64, to: u64) -> Result<u64, String> {
    let number = bytes(text).ok().filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a whole number from {from} to {to}"))
}

/// A switch: a bare key, 0 or 1.
pub(super) fn switch(text: Option<&str>) -> Result<bool, String> {
    match text {
        None | Some("1" | "" | "true") => Ok(true),
        Some("0" | "false") => Ok(false),
        Some(text) => Err(format!("`{text}` is neither 0 nor 1")),
    }
}

/// A time; a bare number counts in `unit`.
pub(super) fn time(text: &str, unit: Nanos) -> Result<Nanos, String> {
    let lower = text.to_ascii_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, word) = lower.split_at(end);
    let scale = match word {
        "" => Some(unit.0),
        "us" | "usec" => Some(1_000),
        "ms" | "msec" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "m" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        "d" => Some(86_400_000_000_000),
        _ => None,
    };
    let nanos = number.parse::<u64>().ok().zip(scale).and_then(|(a, b)| a.checked_mul(b));
    nanos.map(Nanos).ok_or_else(|| {
        format!("`{text}` is not a time; write a whole number and us, ms, s, m, h or d")
    })
}

/// Block sizes of reads and writes: one for all, or `reads,writes,trims` where an empty place keeps
/// what was there and a missing one takes the one before.
pub(super) fn blocks(text: &str, before: [u64; 2]) -> Result<[u64; 2], String> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("`{text}` has more than three parts: reads,writes,trims"));
    }
    let mut blocks = before;
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let size = bytes(part)?;
        if !(1..=crate::LARGEST_BLOCK).contains(&size) {
            return Err(format!("`{part}` is not a block from 1 byte to 1 GiB"));
        }
        blocks.iter_mut().skip(index).for_each(|block| *block = size);
    }
    Ok(blocks)
}

/// Names between `:`, where `\:` is a colon of a name.
pub(super) fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                letters.next();
                names.iter_mut().last().into_iter().for_each(|name| name.push(':'));
            }
            ':' => names.push(String::new()),
            other => names.iter_mut().last().into_iter().for_each(|name| name.push(other)),
        }
    }
    names
}

/// A name below the directory under test; `Err` when it leads elsewhere.
pub(super) fn relative(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        return Err(format!(
            "`{text}` is a place of its own; give the device or directory by --target, and leave \
             this out or write a name below it"
        ));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.is_empty() || parts.contains(&"..") {
        return Err(format!("`{text}` is not a name below the directory under test"));
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked with `fio --name=a --size=64k --ioengine=null --bs=...`, which prints what it read.
    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        for (text, expected) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4KB", 4096),
            ("4Ki", 4096),
            ("1m", 1 << 20),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
            ("1p", 1 << 50),
            ("0x10", 16),
            ("0x10k", 16_384),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        assert!(bytes("4KiB").is_err_and(|reason| reason.contains("write 4k to count by 1024")));
        assert!(bytes("8*1024").is_err_and(|reason| reason.contains("arithmetic")));
        for text in ["", "k", "-1", "1.5k", "4x", "99999p"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(amount("30%"), Ok(Amount::Percent(30)));
        assert!(amount("130%").is_err());
        assert_eq!(amount("1k"), Ok(Amount::Bytes(1024)));
    }

    #[test]
    fn times_switches_and_numbers() {
        let second = Nanos(1_000_000_000);
        for (text, nanos) in [
            ("3", 3_000_000_000),
            ("3s", 3_000_000_000),
            ("500ms", 500_000_000),
            ("7us", 7_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1d", 86_400_000_000_000),
        ] {
            assert_eq!(time(text, second), Ok(Nanos(nanos)), "{text}");
        }
        assert_eq!(time("20", Nanos(1_000)), Ok(Nanos(20_000)));
        assert!(time("3 parsecs", second).is_err() && time("s", second).is_err());
        assert_eq!(
            (switch(None), switch(Some("1")), switch(Some("0"))),
            (Ok(true), Ok(true), Ok(false))
        );
        assert!(switch(Some("yes")).is_err());
        assert_eq!((number("8", 1, 9), number("1k", 1, 2000)), (Ok(8), Ok(1024)));
        assert!(number("10", 1, 9).is_err() && number("x", 1, 9).is_err());
    }

    #[test]
    fn blocks_of_reads_and_writes() {
        let before = [4096, 4096];
        assert_eq!(blocks("8k", before), Ok([8192, 8192]));
        assert_eq!(blocks("8k,16k", before), Ok([8192, 16_384]));
        assert_eq!(blocks(",8k", before), Ok([4096, 8192]));
        assert_eq!(blocks("512,512,16384", before), Ok([512, 512]));
        assert!(blocks("0", before).is_err() && blocks("2g", before).is_err());
        assert!(blocks("1,2,3,4", before).is_err());
    }

    #[test]
    fn names_stay_below_the_target() {
        assert_eq!(names("a:b\\:c:d"), ["a", "b:c", "d"]);
        assert_eq!(relative("./a//b"), Ok("a/b".into()));
        assert!(relative("/dev/sdb").is_err_and(|reason| reason.contains("--target")));
        for text in ["..", "a/../b", "", "."] {
            assert!(relative(text).is_err(), "{text}");
        }
    }
}
