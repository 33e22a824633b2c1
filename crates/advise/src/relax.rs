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
            let (most, asked) = (terabytes(most), terabytes(asked));
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
            told.push(format!("--budget: {least:.0} instead of {asked:.0}, {more:.0} % more"));
        }
    }
    if let Some((asked, each)) = limits.watts {
        let all = without(&|limits| limits.watts = None);
        let least = all.iter().map(|one| f64::from(one.drives()) * each).reduce(f64::min);
        if let Some(least) = least {
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
}
