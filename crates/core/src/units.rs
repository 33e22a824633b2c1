//! Units as types, so that a place, a length, a moment and a member's number are not mistaken for each
//! other. Inner loops unwrap them, and some fields (`Array`'s capacity, the models' figures) are bare
//! numbers, whose names or comments then say what they count.
//!
//! A sector is 512 bytes everywhere, whatever a drive's own block size; time is integer
//! nanoseconds counted from the start of a run. Both convert to other units only when printed.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Bytes in a sector.
pub const SECTOR_BYTES: u64 = 512;

/// A place on an array or a member, counted in sectors of 512 bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

/// A number of sectors of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(pub u64);

/// A moment: nanoseconds since the start of the run, by the clock of whoever drives the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A drive's place in an array, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIndex(pub u16);

impl Sector {
    /// Beyond all others.
    pub const MAX: Self = Self(u64::MAX);

    /// The byte this sector starts at.
    pub const fn bytes(self) -> u64 {
        self.0 * SECTOR_BYTES
    }
}

impl Sectors {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// The length in bytes.
    pub const fn bytes(self) -> u64 {
        self.0 * SECTOR_BYTES
    }

    /// The whole sectors in `bytes`, or `None` when `bytes` is not a multiple of 512.
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        if bytes.is_multiple_of(SECTOR_BYTES) { Some(Self(bytes / SECTOR_BYTES)) } else { None }
    }
}

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);

    /// The time since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A whole number of microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A whole number of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// In seconds, for printing and for rates.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl MemberIndex {
    /// As an index into a list of members.
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

impl Add<Sectors> for Sector {
    type Output = Self;
    fn add(self, by: Sectors) -> Self {
        Self(self.0 + by.0)
    }
}

impl Sub for Sector {
    type Output = Sectors;
    fn sub(self, from: Self) -> Sectors {
        Sectors(self.0 - from.0)
    }
}

impl AddAssign<Sectors> for Sector {
    fn add_assign(&mut self, by: Sectors) {
        self.0 += by.0;
    }
}

impl Add for Sectors {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Sectors {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Sectors {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl SubAssign for Sectors {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Sum for Sectors {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        Self(all.map(|one| one.0).sum())
    }
}

impl Add<Nanos> for Time {
    type Output = Self;
    fn add(self, by: Nanos) -> Self {
        Self(self.0 + by.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sector {}", self.0)
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Size(self.bytes()))
    }
}

impl fmt::Display for MemberIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A number of bytes as people write it: `64KiB`, `4GiB`, `8TB`, `512`.
///
/// Binary units (KiB, MiB, GiB, TiB) count by 1,024, decimal ones (kB, MB, GB, TB) by 1,000. A bare
/// K, M, G or T is binary, as `mdadm` and `fio` read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 15] = [
    ("", 1),
    ("b", 1),
    ("s", SECTOR_BYTES),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

impl Size {
    /// As it stands in names of layouts: `64K`, where elsewhere it is `64KiB`.
    pub fn short(self) -> String {
        let text = self.to_string();
        text.strip_suffix("iB").map(str::to_owned).unwrap_or(text)
    }
}

/// What the digits behind a point make of a unit; `None` when that is no whole number. As on paper, from the last digit
/// on: in binary fractions most decimal ones are not there.
fn part_of(digits: &str, scale: u64) -> Option<u64> {
    digits.bytes().rev().try_fold(0, |carry, digit| {
        let product = u64::from(digit - b'0') * scale + carry;
        product.is_multiple_of(10).then_some(product / 10)
    })
}

impl std::str::FromStr for Size {
    type Err = String;

    /// Reads a size; the error says what would be right.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let wrong = || {
            format!("`{text}` is not a size; write a number and a unit, such as 64KiB, 4GiB or 8TB")
        };
        let unit = unit.trim().to_ascii_lowercase();
        let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
            return Err(wrong());
        }
        let value = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
        let value = value.map_err(|_| wrong())?;
        let part = part_of(fraction, scale)
            .ok_or_else(|| format!("`{text}` is not a whole number of bytes"))?;
        let bytes = value.checked_mul(scale).and_then(|bytes| bytes.checked_add(part));
        Ok(Self(bytes.ok_or_else(|| format!("`{text}` is too large"))?))
    }
}

impl fmt::Display for Size {
    /// As the smallest whole number of a unit, binary units before decimal ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("TiB", 1u64 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
            ("TB", 1_000_000_000_000),
            ("GB", 1_000_000_000),
            ("MB", 1_000_000),
            ("B", 1),
        ];
        let whole = units.into_iter().filter(|(_, scale)| self.0.is_multiple_of(*scale));
        let shortest = whole.min_by_key(|(_, scale)| self.0 / scale).filter(|_| self.0 > 0);
        let (unit, scale) = shortest.unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_add_and_subtract_in_place() {
        let mut sectors = Sectors(7);
        sectors += Sectors(5);
        assert_eq!(sectors, Sectors(12));
        sectors -= Sectors(9);
        assert_eq!(sectors, Sectors(3));
        assert_eq!(Sectors(9) - Sectors(4), Sectors(5));
    }

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in [
            ("512", 512),
            ("64K", 65_536),
            ("64KiB", 65_536),
            ("1.5MiB", 1_572_864),
            ("8TB", 8_000_000_000_000),
            ("8s", 4_096),
        ] {
            assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "KiB", "12x", "-1K", "0.3B", "99999999999TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        for (bytes, text) in [
            (0, "0B"),
            (512, "512B"),
            (1 << 20, "1MiB"),
            (8_001_563_222_016, "7814026584KiB"),
            (8_000_000_000_000, "8TB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_point_is_read_as_exactly_as_a_whole_number() {
        for (text, bytes) in [
            ("1.005TB", 1_005_000_000_000),
            ("1.005kB", 1_005),
            ("1.001kB", 1_001),
            ("0.001kB", 1),
            (".5K", 512),
            ("1.K", 1_024),
            ("0.0", 0),
            ("4096.000", 4_096),
            ("00000000000000000000000001.50KiB", 1_536),
            ("1.1000000000000000000000000000000000000000000000000kB", 1_100),
            // A byte, in all the digits that it takes.
            ("0.0000000000009094947017729282379150390625TiB", 1),
            ("16777215.9999999999990905052982270717620849609375TiB", u64::MAX),
            ("18446744.073709551615TB", u64::MAX),
            ("9007.199254740993TB", 9_007_199_254_740_993),
        ] {
            assert_eq!(text.parse::<Size>(), Ok(Size(bytes)), "{text}");
        }
        for (text, words) in [
            ("1.0005kB", "`1.0005kB` is not a whole number of bytes"),
            ("0.1K", "is not a whole number of bytes"),
            ("1.00000000000000000000000000001K", "is not a whole number of bytes"),
            ("9007.1992547409931TB", "is not a whole number of bytes"),
            ("16777216.0TiB", "is too large"),
            ("18446744.073709551616TB", "is too large"),
            ("16777216TiB", "is too large"),
            (".", "is not a size; write a number and a unit"),
            (".K", "is not a size"),
            ("1.2.3K", "is not a size"),
            ("1..K", "is not a size"),
            ("99999999999999999999", "is not a size"),
        ] {
            let error = text.parse::<Size>().expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn quantities_add_up() {
        assert_eq!((Sector(7) + Sectors(5), Sector(12) - Sector(5)), (Sector(12), Sectors(7)));
        let mut at = Sector(7);
        at += Sectors(5);
        assert_eq!((at, Sectors(7) + Sectors(5)), (Sector(12), Sectors(12)));
        assert_eq!([7, 5, 3].map(Sectors).into_iter().sum::<Sectors>(), Sectors(15));
        assert_eq!((Time(7) + Nanos(5), Nanos(7) + Nanos(5)), (Time(12), Nanos(12)));
        let mut time = Nanos(7);
        time += Nanos(5);
        assert_eq!(
            (time, Time(9).since(Time(4)), Time(4).since(Time(9))),
            (Nanos(12), Nanos(5), Nanos::ZERO)
        );
        assert_eq!((Nanos::from_micros(3).0, Nanos::from_millis(3).0), (3_000, 3_000_000));
        assert!((Nanos(1_500_000_000).as_secs() - 1.5).abs() < 1e-9);
        assert_eq!((MemberIndex(7).at(), Sectors(3).bytes()), (7, 1_536));
        assert_eq!(
            (Sector(9).to_string(), MemberIndex(9).to_string()),
            ("sector 9".into(), "9".into())
        );
    }
}
