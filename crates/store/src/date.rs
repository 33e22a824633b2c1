//! Dates in UTC, as names of runs and records have them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
const EPOCH: i64 = 719_468;
/// Days in 400 years.
const ERA: i64 = 146_097;

/// A moment in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    year: i64,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    /// 1,024ths of a second.
    part: u16,
}

impl Date {
    pub(crate) fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// The date of a moment; those before 1970 count as its beginning.
    fn of(moment: SystemTime) -> Self {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since.as_secs();
        // Years are counted from March on, so that the day that is added every four years comes last.
        let days = i64::try_from(seconds / DAY).unwrap_or(0) + EPOCH;
        let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        // Months from March on have 31, 30, 31, 30, 31 days and again: 153 in five of them.
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let of_day = seconds % DAY;
        Self {
            year: year + era * 400 + i64::from(month <= 2),
            month: month as u8,
            day: day as u8,
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
            part: (u64::from(since.subsec_nanos()) * 1_024 / 1_000_000_000) as u16,
        }
    }

    /// 1,024ths of a second since the second began: names of one second are put in order by it.
    pub(crate) const fn part(self) -> u16 {
        self.part
    }

    /// The moment of a date.
    fn moment(self) -> SystemTime {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let year = self.year - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
        let days = era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
        let of_day = u64::from(self.hour) * 3600 + u64::from(self.minute) * 60;
        let seconds = u64::try_from(days).unwrap_or(0) * DAY + of_day + u64::from(self.second);
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// As it stands in names: `20261122-215013`.
    pub(crate) fn name(self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
    }

    /// As it stands in records (RFC 3339): `2026-11-22T21:50:13Z`.
    pub(crate) fn text(self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// As `asctime` of C has it: `Sun Nov 22 21:50:13 2026`.
    fn asctime(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let Self { year, day, hour, minute, second, .. } = self;
        let since = self.moment().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY;
        let (week, month) =
            (DAYS[(since % 7) as usize], MONTHS[usize::from(self.month.clamp(1, 12)) - 1]);
        format!("{week} {month} {day:>2} {hour:02}:{minute:02}:{second:02} {year}")
    }

    /// The date that a name begins with.
    fn of_name(name: &str) -> Option<Self> {
        let (date, time) = (name.get(..8)?, name.get(9..15)?);
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if name.as_bytes()[8] != b'-' || !digits(date) || !digits(time) {
            return None;
        }
        let (month, day) = (date[4..6].parse().ok()?, date[6..].parse().ok()?);
        let (hour, minute) = (time[..2].parse().ok()?, time[2..4].parse().ok()?);
        let (year, second) = (date[..4].parse().ok()?, time[4..].parse().ok()?);
        let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
        let is_time = hour < 24 && minute < 60 && second < 61;
        (is_date && is_time).then_some(Self { year, month, day, hour, minute, second, part: 0 })
    }
}

/// The moment that the name of a run tells; `None` for what is no such name.
pub fn date_of(id: &str) -> Option<SystemTime> {
    Date::of_name(id).map(Date::moment)
}

/// A moment, in seconds since 1970, as `asctime` of C has it, in UTC: `Sun Nov 22 21:50:13 2026`.
pub fn asctime(seconds: u64) -> String {
    let moment = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    Date::of(moment.unwrap_or(UNIX_EPOCH)).asctime()
}

/// How old something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age(pub Duration);

impl std::str::FromStr for Age {
    type Err = String;

    /// Reads `12h`, `90d` or `8w`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an age; write hours, days or weeks: 12h, 90d, 8w");
        let unit = match text.bytes().last() {
            Some(b'h') => 3600,
            Some(b'd') => DAY,
            Some(b'w') => 7 * DAY,
            _ => return Err(wrong()),
        };
        let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
        count.checked_mul(unit).map(Duration::from_secs).map(Self).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Date {
        Date::of(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    #[test]
    fn moments_are_dates_and_back() {
        assert_eq!(at(0).text(), "1970-01-01T00:00:00Z");
        assert_eq!(asctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(asctime(1_795_573_977), "Wed Nov 25 02:32:57 2026");
        assert_eq!(at(951_782_399).text(), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_782_400).text(), "2000-02-29T00:00:00Z");
        assert_eq!(at(4_107_542_400).text(), "2100-03-01T00:00:00Z");
        assert_eq!(at(1_795_384_213).name(), "20261122-215013");
        for day in 0..200_000 {
            let seconds = day * DAY + day % DAY;
            let date = at(seconds);
            assert_eq!(date.moment(), UNIX_EPOCH + Duration::from_secs(seconds), "{date:?}");
            assert_eq!(Date::of_name(&date.name()), Some(date));
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for name in ["", "20261122", "20261122x215013", "2026112a-215013", "20261322-215013-abcd"] {
            assert_eq!(date_of(name), None, "{name}");
        }
        assert!(date_of("20261122-215013-abcd").is_some());
    }

    #[test]
    fn ages_have_units() {
        let age = |text: &str| text.parse::<Age>().map(|age| age.0.as_secs());
        assert_eq!(age("12h"), Ok(43_200));
        assert_eq!(age("90d"), Ok(7_776_000));
        assert_eq!(age("2w"), Ok(1_209_600));
        for text in
            ["", "d", "90", "90m", "-1d", "1.5d", "99999999999999999999d", "9999999999999999999w"]
        {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_of_one_second_are_told_apart_by_its_parts() {
        let part = |nanos| Date::of(UNIX_EPOCH + Duration::new(1, nanos)).part();
        assert_eq!([0, 976_562, 976_563, 999_999_999].map(part), [0, 0, 1, 1_023]);
    }
}
