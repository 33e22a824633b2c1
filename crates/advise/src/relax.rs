//! Where no layout meets the limits: which to relax, by how much.

use crate::candidate::{candidates, terabytes};
use crate::search::{Finalist, KEEPS_UP, median, slowest, worst_tail};
use crate::versus::seconds;
use crate::wanted::{Limits, Wanted};

/// Seconds, rounded up to the last digit that [`seconds`] shows below one: what is told must be enough.
fn up(seconds: f64) -> f64 {
    let digits = if seconds > 0.009_99 { 1e3 } else { 1e5 };
    (seconds * digits - 1e-6).ceil() / digits
}

/// Bytes that can be asked for: as [`terabytes`] shows them where that is no more than there is, else with one digit
/// more, rounded down.
fn up_to(bytes: u64) -> String {
    let (tenth, hundredth) = (100_000_000_000, 10_000_000_000);
    let is_enough = (bytes + tenth / 2) / tenth * tenth <= bytes;
    if is_enough {
        terabytes(bytes)
    } else {
        format!("{:.2} TB", (bytes / hundredth) as f64 / 100.0)
    }
}

/// Money or watts, rounded up to whole ones as they are shown, but for what is lost in the last digits of a product.
fn whole(amount: f64) -> f64 {
    (amount - 1e-6).ceil()
}

/// Limits that can be told before anything runs: each alone, as far as it must be relaxed while the others stay.
pub(crate) fn before_runs(wanted: &Wanted) -> Vec<String> {
    let limits = &wanted.limits;
    let mut told = Vec::new();
    let without = |change: &dyn Fn(&mut Limits)| {
        let mut relaxed = wanted.clone();
        change(&mut relaxed.limits);
        candidates(&relaxed).all
    };
    if let Some(asked) = limits.capacity {
        let all = without(&|limits| limits.capacity = None);
        let most = all.iter().filter_map(|one| one.usable(wanted.member())).max();
        if let Some(most) = most {
            let less = (1.0 - most as f64 / asked as f64) * 100.0;
            let (most, asked) = (up_to(most), terabytes(asked));
            told.push(format!("--capacity: {most} instead of {asked}, {less:.0} % less"));
        }
    }
    if limits.survive > 0 {
        let all = without(&|limits| limits.survive = 0);
        if let Some(most) = all.iter().map(|one| one.layout.survives()).max() {
            told.push(format!("--survive: {most} instead of {}", limits.survive));
        }
    }
    if let Some((asked, each)) = limits.budget {
        let all = without(&|limits| limits.budget = None);
        let least = all.iter().map(|one| f64::from(one.drives()) * each).reduce(f64::min);
        if let Some(least) = least {
            let more = (least / asked - 1.0) * 100.0;
            let least = whole(least);
            told.push(format!("--budget: {least:.0} instead of {asked:.0}, {more:.0} % more"));
        }
    }
    if let Some((asked, each)) = limits.watts {
        let all = without(&|limits| limits.watts = None);
        let least = all.iter().map(|one| f64::from(one.drives()) * each).reduce(f64::min);
        if let Some(least) = least {
            let least = whole(least);
            told.push(format!("--watts: {least:.0} instead of {asked:.0}"));
        }
    }
    if told.is_empty() {
        let mut relaxed = wanted.clone();
        relaxed.limits = Limits { price: limits.price, ..Limits::default() };
        let all = candidates(&relaxed);
        told.push(match all.all.is_empty() {
            true => "no layout that is looked at can be made of so many drives: name others by --among, or \
                     more drives"
                .to_owned(),
            false => "no limit alone is the reason: at least two must be relaxed".to_owned(),
        });
    }
    told
}

/// Limits that only runs can tell.
pub(crate) fn after_runs(wanted: &Wanted, finalists: &[Finalist]) -> Vec<String> {
    let limits = &wanted.limits;
    let mut told = Vec::new();
    let named = |best: Option<(f64, &Finalist)>| {
        best.map(|(value, one)| (value, one.candidate.to_string()))
    };
    if let Some(most) = limits.tail {
        let tails = finalists.iter().map(|one| (worst_tail(wanted, &one.rounds), one));
        if let Some((least, name)) = named(tails.min_by(|one, other| one.0.total_cmp(&other.0)))
            && least > most
        {
            told.push(format!(
                "--p99: {} instead of {}, {:.1} times ({name})",
                seconds(up(least)),
                seconds(most),
                least / most
            ));
        }
    }
    if let Some((least, unit)) = limits.speed {
        let speeds = finalists.iter().map(|one| (slowest(wanted, &one.rounds, unit), one));
        if let Some((most, name)) = named(speeds.max_by(|one, other| one.0.total_cmp(&other.0)))
            && most < least
        {
            let share = most / least * 100.0;
            told.push(format!("--speed: {share:.0} % of what is asked ({name})"));
        }
    }
    let kept = |one: &Finalist| {
        let kept: Vec<f64> = one.rounds.iter().map(|run| run.keeps_up(wanted)).collect();
        median(&kept).unwrap_or(1.0)
    };
    let kept = finalists.iter().map(|one| (kept(one), one));
    if let Some((most, name)) = named(kept.max_by(|one, other| one.0.total_cmp(&other.0)))
        && most < KEEPS_UP
    {
        let streams = (f64::from(wanted.streams) * most).floor();
        told.push(format!("--streams: about {streams:.0} instead of {} ({name})", wanted.streams));
    }
    if told.is_empty() {
        told.push("no limit alone is the reason: at least two must be relaxed".to_owned());
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;
    use raidlab_core::Nanos;
    use raidlab_study::Latency;

    /// Limits of SSDs are below a millisecond, and none of them is 0 or 1 ms.
    #[test]
    fn a_p99_that_no_layout_holds_is_told_to_its_digits() {
        let mut wanted = made_up::wanted(4, "ssd-sata-1tb", "vm");
        let mut told = |micros: u64, most: f64| {
            let mut one = made_up::finalist(&wanted, "raid5(4)", &[100], [Some(1), Some(1)]);
            for (_, _, sample) in one.rounds.iter_mut().flat_map(|run| run.samples.iter_mut()) {
                let p99 = Nanos(micros * 1_000);
                sample.latency = Some(Latency { p50: p99, p99, p999: p99, max: p99 });
            }
            wanted.limits.tail = Some(most);
            after_runs(&wanted, &[one])[0].clone()
        };
        assert_eq!(told(300, 2e-4), "--p99: 0.30 ms instead of 0.20 ms, 1.5 times (raid5(4))");
        assert_eq!(told(20_100, 0.01), "--p99: 21 ms instead of 10 ms, 2.0 times (raid5(4))");
        assert_eq!(told(9_996, 0.008), "--p99: 10 ms instead of 8.00 ms, 1.2 times (raid5(4))");
    }

    /// A question about four drives of 1 TB without spares.
    fn four() -> Wanted {
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "vm");
        wanted.sizes = vec![raidlab_core::Sectors(1_953_125_000)];
        wanted.spares = 0;
        wanted
    }

    /// Each limit alone, as far as it must be relaxed while the others stay.
    #[test]
    fn limits_known_before_anything_runs_are_relaxed_one_at_a_time() {
        let told = |change: &dyn Fn(&mut Limits)| {
            let mut wanted = four();
            change(&mut wanted.limits);
            before_runs(&wanted)
        };
        // The most that survives one loss is raid5, 3 TB; all 4 TB survive none.
        assert_eq!(
            told(&|limits| limits.capacity = Some(3_500_000_000_000)),
            ["--capacity: 2.99 TB instead of 3.5 TB, 14 % less", "--survive: 0 instead of 1"]
        );
        // Three losses survives the mirror of four alone; of as much space raid6 survives the most.
        let three = |limits: &mut Limits| {
            (limits.survive, limits.capacity) = (3, Some(1_900_000_000_000));
        };
        assert_eq!(
            told(&three),
            ["--capacity: 1.0 TB instead of 1.9 TB, 47 % less", "--survive: 2 instead of 3"]
        );
        assert_eq!(told(&|limits| limits.survive = 4), ["--survive: 3 instead of 4"]);
        assert_eq!(
            told(&|limits| limits.budget = Some((350.0, 100.0))),
            ["--budget: 400 instead of 350, 14 % more"]
        );
        assert_eq!(told(&|limits| limits.watts = Some((30.0, 8.0))), ["--watts: 32 instead of 30"]);
        let without_redundancy = |limits: &mut Limits| {
            (limits.survive, limits.capacity) = (0, Some(5_000_000_000_000));
        };
        assert_eq!(told(&without_redundancy), ["--capacity: 3.99 TB instead of 5.0 TB, 20 % less"]);
    }

    /// Whoever asks for what is told gets an answer: money and watts are rounded up, space down.
    #[test]
    fn what_is_told_to_relax_is_enough() {
        let mut random = raidlab_random::Random::new(7);
        for _ in 0..60 {
            let mut wanted = four();
            // Drives of 0.5 to 4.5 TB, at 20 to 120 and 3 to 10 W each with two digits.
            let mut within = |from: f64, digits: u64| from + random.below(digits) as f64 / 100.0;
            wanted.sizes = vec![raidlab_core::Sectors((within(0.5, 400) * 1e12 / 512.0) as u64)];
            let (price, watts) = (within(20.0, 10_000), within(3.0, 700));
            let number = |told: &[String], flag: &str| -> f64 {
                let line = told.iter().find(|line| line.starts_with(flag)).expect("is told");
                let figure = line[flag.len()..].trim_start_matches(": ").split(' ').next();
                figure.and_then(|figure| figure.parse().ok()).expect("a figure")
            };
            wanted.limits.capacity = Some(1 << 60);
            let most = number(&before_runs(&wanted), "--capacity");
            wanted.limits.capacity = Some((most * 1e12).round() as u64);
            assert!(
                most == 0.0 || !candidates(&wanted).all.is_empty(),
                "{most} TB: {:?}",
                wanted.sizes
            );
            wanted.limits.capacity = None;
            wanted.limits.budget = Some((1.0, price));
            let least = number(&before_runs(&wanted), "--budget");
            wanted.limits.budget = Some((least, price));
            assert!(!candidates(&wanted).all.is_empty(), "{least} at {price}");
            assert!(least - 1.0 < 4.0 * price, "{least} at {price}: no more than it takes");
            wanted.limits.budget = None;
            wanted.limits.watts = Some((1.0, watts));
            let least = number(&before_runs(&wanted), "--watts");
            wanted.limits.watts = Some((least, watts));
            assert!(!candidates(&wanted).all.is_empty(), "{least} W at {watts}");
        }
    }

    /// The fewest drives that do count, where there may be more.
    #[test]
    fn a_budget_is_raised_to_the_fewest_drives_that_do() {
        let mut wanted = four();
        wanted.drives = 3..=8;
        wanted.limits.capacity = Some(3_900_000_000_000);
        wanted.limits.budget = Some((300.0, 100.0));
        // raid5 of five has 4 TB; three drives have 2 TB.
        assert_eq!(
            before_runs(&wanted),
            [
                "--capacity: 1.99 TB instead of 3.9 TB, 49 % less",
                "--budget: 500 instead of 300, 67 % more"
            ]
        );
        wanted.limits.budget = None;
        wanted.limits.watts = Some((24.0, 8.0));
        assert_eq!(before_runs(&wanted)[1..], ["--watts: 40 instead of 24"]);
    }

    #[test]
    fn it_is_said_when_no_limit_alone_is_the_reason() {
        let at_least_two = "no limit alone is the reason: at least two must be relaxed";
        let mut wanted = four();
        wanted.limits.budget = Some((350.0, 100.0));
        wanted.limits.watts = Some((30.0, 8.0));
        assert_eq!(before_runs(&wanted), [at_least_two]);
        // Without any limit there is nothing of the sort that is named.
        wanted.among = vec![crate::wanted::Among::Layout("raid6(9)".parse().expect("a layout"))];
        let told = before_runs(&wanted);
        assert!(told.len() == 1 && told[0].contains("name others by --among"), "{told:?}");
    }

    /// The best of those that came to the last runs, whichever it is, and only where it misses the limit.
    #[test]
    fn limits_that_runs_tell_are_relaxed_to_the_best_finalist() {
        let mut wanted = four();
        let slow = made_up::finalist(&wanted, "raid5(4)", &[200], [Some(20), Some(40)]);
        let calm = made_up::finalist(&wanted, "raid6(4)", &[100], [Some(10), Some(30)]);
        let all = [slow, calm];
        let both = |wanted: &Wanted| {
            let backwards: Vec<Finalist> = all.iter().rev().cloned().collect();
            let told = after_runs(wanted, &all);
            assert_eq!(told, after_runs(wanted, &backwards), "in any order");
            told
        };
        wanted.limits.tail = Some(0.02);
        assert_eq!(both(&wanted), ["--p99: 30 ms instead of 20 ms, 1.5 times (raid6(4))"]);
        wanted.limits.tail = Some(0.029);
        assert_eq!(both(&wanted), ["--p99: 30 ms instead of 29 ms, 1.0 times (raid6(4))"]);
        wanted.limits.tail = None;
        wanted.limits.speed = Some((400.0, "I/O/s"));
        assert_eq!(both(&wanted), ["--speed: 50 % of what is asked (raid5(4))"]);
        // Each is met by one of them, and both by neither.
        wanted.limits.tail = Some(0.03);
        wanted.limits.speed = Some((150.0, "I/O/s"));
        assert_eq!(both(&wanted), ["no limit alone is the reason: at least two must be relaxed"]);
    }

    /// So many streams as are kept up with, and no part of one more.
    #[test]
    fn streams_are_reduced_to_whole_ones_that_are_kept_up_with() {
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "surveillance");
        wanted.streams = 64;
        let parts = wanted.profile.parts.len();
        let told = |bytes: u64| {
            let rates = vec![1; parts];
            let mut one = made_up::finalist(&wanted, "raid5(4)", &rates, [Some(20), Some(40)]);
            for (_, state, sample) in one.rounds.iter_mut().flat_map(|run| run.samples.iter_mut()) {
                // The worse state counts.
                let healthy = *state == raidlab_study::State::Healthy;
                sample.bytes = if healthy { 64_000_000 } else { bytes };
                sample.bytes_written = sample.bytes;
            }
            after_runs(&wanted, &[one])
        };
        // 64 streams have 32 MB/s; 24.3 MB/s are those of 48.6.
        assert_eq!(told(24_300_000), ["--streams: about 48 instead of 64 (raid5(4))"]);
        assert!(told(29_000_000)[0].starts_with("no limit alone"), "nine tenths are enough");
    }
}
