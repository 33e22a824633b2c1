//! The layouts that a question names, compared with each other in words: what the question is about comes first.

use raidlab_core::geometry::Geometry;
use raidlab_core::{Level, MemberIndex};
use raidlab_risk::words;
use raidlab_study::State;

use crate::candidate::{Candidate, terabytes};
use crate::decide::Advice;
use crate::objectives::{LEAST_RISK, NO_TAIL, Objective};
use crate::search::{Finalist, counted_state};
use crate::wanted::{Among, Wanted};

/// As many named things are compared each with the recommendation; more of them are a table.
const MOST: usize = 4;

/// The recommendation against the best of each other thing that the question names: a sentence each, and what they
/// survive. Nothing where the question names none, or too many.
pub(crate) fn compared(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let rivals = rivals(wanted, advice);
    let pick = advice.verdict.pick;
    let mut told: Vec<String> =
        rivals.iter().map(|other| sentence(wanted, advice, pick, *other)).collect();
    let all: Vec<&Candidate> =
        [pick].iter().chain(&rivals).map(|at| &advice.finalists[*at].candidate).collect();
    told.extend(survived(wanted, &all));
    told
}

/// The finalists to compare the recommendation with, the better one first.
fn rivals(wanted: &Wanted, advice: &Advice) -> Vec<usize> {
    let names = |one: &Among| matches!(one, Among::Layout(_));
    let is_named = !wanted.among.is_empty();
    // Who names layouts asks about these; who names levels, about the best of each.
    let each = is_named && wanted.among.iter().all(names);
    let (mut seen, mut rivals): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    let first = advice.verdict.pick;
    let others = (0..advice.finalists.len()).filter(|at| *at != first);
    for at in [first].into_iter().chain(others) {
        let candidate = &advice.finalists[at].candidate;
        let family = if each { candidate.structure().to_string() } else { family(candidate) };
        if !seen.contains(&family) && (each || at == first || is_rival(advice, at)) {
            seen.push(family);
            rivals.push(at);
        }
    }
    let is_few = (2..=MOST).contains(&rivals.len());
    // Nobody named anything: two that are left are what it is about.
    let is_asked = is_few && (is_named || advice.finalists.len() == 2);
    if is_asked { rivals.split_off(1) } else { Vec::new() }
}

/// Whether a finalist of whole levels is something else than the recommendation with or without a spare; with a spare
/// where that is what gives the same space.
fn is_rival(advice: &Advice, at: usize) -> bool {
    let (pick, one) = (&advice.finalists[advice.verdict.pick], &advice.finalists[at]);
    let levels = |of: &Finalist| -> Vec<Level> {
        of.candidate.layout.floors().map(|floor| floor.level).collect()
    };
    let is_wide = pick.usable.abs_diff(one.usable) <= pick.usable / 1_000;
    levels(pick) != levels(one) && (one.candidate.spares == 0 || is_wide)
}

/// Levels, and whether a spare stands by: what people call a kind of array.
fn family(candidate: &Candidate) -> String {
    let levels: Vec<&str> = candidate.layout.floors().map(|floor| floor.level.name()).collect();
    format!("{}{}", levels.join("+"), if candidate.spares > 0 { " + spare" } else { "" })
}

fn sentence(wanted: &Wanted, advice: &Advice, one: usize, other: usize) -> String {
    let (first, second) = (&advice.finalists[one], &advice.finalists[other]);
    let mut told = Vec::new();
    if wanted.is_paced() {
        told.push("both keep up".to_owned());
    } else {
        told.extend(speeds(wanted, first, second));
        if !wanted.is_buffered() {
            told.extend(tails(wanted, first, second));
        }
    }
    told.extend(space(wanted, first, second));
    told.push(losses(advice, one, other));
    let because = full_stripes(wanted, first, second);
    format!("{} against {}: {}.{because}", first.candidate, second.candidate, told.join("; "))
}

/// Why parity is not much slower than none where everything is written in order.
fn full_stripes(wanted: &Wanted, one: &Finalist, other: &Finalist) -> String {
    let is_written = wanted.profile.parts.iter().all(|part| part.writes_in_order());
    let (parity, bare) = (&other.candidate.layout, &one.candidate.layout);
    let (parity, bare) = if parity.has_parity() { (parity, bare) } else { (bare, parity) };
    if !is_written || !parity.has_parity() || bare.survives() > 0 || parity.inner.is_some() {
        return String::new();
    }
    let parities = parity.drives() - parity.data_members();
    let given = if parities == 1 { "1 drive".to_owned() } else { format!("{parities} drives") };
    format!(
        " Written in order, stripes are full: none is read first, and {parity} gives up {given} of {} for surviving as \
         many. Without, keep there only what can be had again.",
        parity.drives()
    )
}

/// How fast each part of the work goes, with both figures.
fn speeds(wanted: &Wanted, one: &Finalist, other: &Finalist) -> Vec<String> {
    let parts = wanted.profile.parts.iter().enumerate();
    let told = parts.filter_map(|(at, part)| {
        let rate = |of: &Finalist| of.median(|run| run.rate(wanted, at, State::Healthy));
        let (one, other) = (rate(one)?, rate(other)?);
        let name =
            if wanted.profile.parts.len() > 1 { format!("{} ", part.name) } else { String::new() };
        let counted = part.counted;
        let figures =
            format!("({} against {} {})", counted.told(one), counted.told(other), counted.unit());
        Some(format!("{name}{} {figures}", faster(one / other)))
    });
    told.collect()
}

/// A ratio of speeds in words.
pub(crate) fn faster(ratio: f64) -> String {
    match ratio {
        ratio if Objective::Speed.steps(ratio).abs() < 1.0 => "as fast".to_owned(),
        ratio if ratio >= 1.95 => format!("{} times as fast", words::times(ratio)),
        ratio if ratio > 1.0 => format!("{:.0} % faster", (ratio - 1.0) * 100.0),
        ratio => format!("{:.0} % slower", (1.0 - ratio) * 100.0),
    }
}

fn tails(wanted: &Wanted, one: &Finalist, other: &Finalist) -> Option<String> {
    let state = counted_state(wanted);
    let name = if state == State::Healthy { "p99" } else { "p99 with a drive missing" };
    let tail = |of: &Finalist| of.median(|run| run.tail(wanted, state));
    let (one, other) = match (tail(one), tail(other)) {
        (Some(one), Some(other)) => (one, other),
        (Some(_), None) => return Some("data are there with a drive missing".to_owned()),
        (None, Some(_)) => return Some("data are gone with a drive missing".to_owned()),
        (None, None) => return None,
    };
    let ratio = one / other;
    let way = match ratio {
        ratio if Objective::Tail.steps(ratio).abs() < 1.0 => "as long".to_owned(),
        ratio if ratio >= 1.95 => format!("{} times as long", words::times(ratio)),
        ratio if ratio > 1.0 => format!("{:.0} % longer", (ratio - 1.0) * 100.0),
        ratio => format!("{:.0} % shorter", (1.0 - ratio) * 100.0),
    };
    Some(format!("{name} {way} ({} against {})", seconds(one), seconds(other)))
}

/// Seconds in words.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 10.0 => format!("{seconds:.0} s"),
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 0.01 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{:.2} ms", seconds * 1e3),
    }
}

/// Usable space, and how many drives fewer have the smaller one of the two.
fn space(wanted: &Wanted, one: &Finalist, other: &Finalist) -> Vec<String> {
    let (first, second) = (one.usable as f64, other.usable as f64);
    let ratio = first / second.max(1.0);
    let is_same = Objective::Capacity.steps(ratio).abs() < 1.0;
    let figures = format!("({} against {})", terabytes(one.usable), terabytes(other.usable));
    let drives = (one.candidate.drives(), other.candidate.drives());
    if is_same {
        let with = match i32::from(drives.0) - i32::from(drives.1) {
            0 => String::new(),
            more if more > 0 => format!(" with {}", counted(more, "more")),
            fewer => format!(" with {}", counted(-fewer, "fewer")),
        };
        return vec![format!("the same space{with}")];
    }
    let way = match ratio {
        ratio if ratio >= 1.95 => format!("{} times the space", words::times(ratio)),
        ratio if ratio > 1.0 => format!("{:.0} % more space", (ratio - 1.0) * 100.0),
        ratio => format!("{:.0} % less space", (1.0 - ratio) * 100.0),
    };
    let mut told = vec![format!("{way} {figures}")];
    let (less, more) = if ratio < 1.0 { (one, other) } else { (other, one) };
    if let Some(fewest) = fewest(wanted, &more.candidate, less.usable)
        && fewest.drives() < less.candidate.drives()
    {
        let saved = i32::from(less.candidate.drives() - fewest.drives());
        told.push(format!(
            "{fewest} has {} with {}",
            terabytes(less.usable),
            counted(saved, "fewer")
        ));
    }
    told
}

fn counted(drives: i32, way: &str) -> String {
    format!("{drives} drive{} {way}", if drives == 1 { "" } else { "s" })
}

/// The array of a candidate's kind with the fewest drives that holds so much, by its structure alone.
fn fewest(wanted: &Wanted, candidate: &Candidate, usable: u64) -> Option<Candidate> {
    if candidate.layout.inner.is_some() {
        return None;
    }
    let with = |members: u16| {
        let mut fewer = candidate.clone();
        fewer.layout.members = members;
        fewer.layout.check().is_ok().then_some(fewer)
    };
    // What is held back for metadata differs by less than a thousandth.
    let holds = |one: &Candidate| {
        one.usable(wanted.member()).is_some_and(|bytes| bytes as f64 >= usable as f64 * 0.999)
    };
    let least = if candidate.layout.level == Level::Raid6 { 4 } else { 2 };
    (least..candidate.layout.members).filter_map(with).find(holds)
}

/// The chances of losing the array; below the least one other causes dominate, and ratios count down to it only.
fn losses(advice: &Advice, one: usize, other: usize) -> String {
    let chance = |at: usize| advice.risks[at].array.central;
    let (first, second) = (chance(one), chance(other));
    if first < LEAST_RISK && second < LEAST_RISK {
        return format!("both lose the array {}: {}", words::chance(first), words::DOMINATED);
    }
    // The verdict's own figures.
    let risk = |at: usize| advice.finalists[at].risk.max(LEAST_RISK);
    let ratio = risk(one) / risk(other);
    let figures = format!("({} against {})", words::chance(first), words::chance(second));
    let times = |ratio: f64| match first.min(second) < LEAST_RISK {
        true => format!("at least {}", words::times_at_least(ratio)),
        false => words::times(ratio),
    };
    match Objective::Risk.steps(ratio) {
        steps if steps.abs() < 1.0 => format!("loses the array about as often {figures}"),
        steps if steps > 0.0 => {
            format!("loses the array {} times as often {figures}", times(ratio))
        }
        _ => format!("loses the array {} times more seldom {figures}", times(1.0 / ratio)),
    }
}

/// The most lost drives that are told of.
const LOST: u16 = 3;

/// How many of all ways to lose two or three drives at once each survives, where they differ.
fn survived(wanted: &Wanted, all: &[&Candidate]) -> Option<String> {
    if all.len() < 2 || all.iter().any(|one| one.layout.survives() == 0) {
        return None;
    }
    let mut told = Vec::new();
    for lost in 2..=LOST {
        let shares: Vec<(u32, u32)> =
            all.iter().map(|one| survives(wanted, one, lost)).collect::<Option<_>>()?;
        let ends = |(kept, ways): &(u32, u32)| (*kept == 0, kept == ways);
        let is_alike = shares.iter().all(|share| {
            let (none, every) = ends(share);
            (none || every) && ends(share) == ends(&shares[0])
        });
        if is_alike {
            continue;
        }
        let of =
            all.iter().zip(&shares).map(|(one, share)| format!("{one} {}", share_in_words(*share)));
        let of: Vec<String> = of.collect();
        told.push(format!("of {lost} drives that fail at once: {}", of.join(", ")));
    }
    (!told.is_empty()).then(|| format!("What is survived {}.", told.join("; ")))
}

/// In how many of the ways to lose so many drives the array is still there, and how many ways there are.
pub fn survives(wanted: &Wanted, candidate: &Candidate, lost: u16) -> Option<(u32, u32)> {
    let drives = candidate.layout.drives();
    let sizes = vec![wanted.member(); usize::from(drives)];
    let geometry = Geometry::new(&candidate.layout, &sizes).ok()?;
    let (mut kept, mut ways) = (0, 0);
    let mut gone: Vec<u16> = (0..lost.min(drives)).collect();
    loop {
        ways += 1;
        let is_gone = |drive: MemberIndex| gone.contains(&drive.0);
        kept += u32::from(!geometry.is_lost_without(&is_gone));
        // The next of all subsets, in order.
        let count = gone.len();
        let Some(at) = (0..count).rev().find(|at| gone[*at] < drives - (count - at) as u16) else {
            return Some((kept, ways));
        };
        gone[at] += 1;
        for next in at + 1..count {
            gone[next] = gone[next - 1] + 1;
        }
    }
}

fn share_in_words((kept, ways): (u32, u32)) -> String {
    if kept == 0 {
        return "never".to_owned();
    }
    if kept == ways {
        return "always".to_owned();
    }
    let mut divisor = (kept, ways);
    while divisor.0 != 0 {
        divisor = (divisor.1 % divisor.0, divisor.0);
    }
    let (kept, ways) = (kept / divisor.1, ways / divisor.1);
    format!("{kept} time{} in {ways}", if kept == 1 { "" } else { "s" })
}

/// An objective of one against that of another, in words.
pub fn in_words(wanted: &Wanted, objective: Objective, one: &Finalist, other: &Finalist) -> String {
    let at = objective.index();
    let steps = other.costs[at] - one.costs[at];
    let factor = libm::exp(steps.abs() * libm::log(objective.step()));
    let way =
        |better: &str, worse: &str| if steps > 0.0 { better.to_owned() } else { worse.to_owned() };
    // Less by a share, or more by one; beyond twice as much by how many times.
    let is_more = matches!(objective, Objective::Speed | Objective::Capacity) == (steps > 0.0);
    let amount = match factor {
        factor if is_more && factor >= 1.95 => format!("{} times", words::times(factor)),
        factor if is_more => format!("{:.0} %", (factor - 1.0) * 100.0),
        factor => format!("{:.0} %", (1.0 - 1.0 / factor) * 100.0),
    };
    match objective {
        Objective::Speed if wanted.profile.parts.len() > 1 => parts(wanted, one, other),
        Objective::Speed if is_more && factor >= 1.95 => format!("{amount} as fast"),
        Objective::Speed => format!("{amount} {}", way("faster", "slower")),
        Objective::Tail if factor >= 0.9 * NO_TAIL => {
            format!("data {} with a drive missing", way("are there", "are gone"))
        }
        Objective::Tail => {
            let name = if wanted.limits.survive == 0 { "p99" } else { "degraded p99" };
            format!("{name} {amount} {}", way("shorter", "longer"))
        }
        Objective::Capacity if is_more && factor >= 1.95 => format!("{amount} the space"),
        Objective::Capacity => format!("{amount} {} space", way("more", "less")),
        Objective::Risk => {
            let times = words::times(factor);
            let floor = match one.risk.min(other.risk) < LEAST_RISK {
                true => ", counted down to 1 in 100,000 only",
                false => "",
            };
            format!("loses the array {times} times {}{floor}", way("more seldom", "more often"))
        }
        Objective::Price => format!("{amount} {}", way("cheaper", "dearer")),
        Objective::Watts => format!("{amount} {} power", way("less", "more")),
    }
}

/// Each part of the work by itself: their mean is no figure of the table.
fn parts(wanted: &Wanted, one: &Finalist, other: &Finalist) -> String {
    let told = wanted.profile.parts.iter().enumerate().filter_map(|(at, part)| {
        let rate = |of: &Finalist| of.median(|run| run.rate(wanted, at, State::Healthy));
        Some(format!("{} {}", part.name, faster(rate(one)? / rate(other)?)))
    });
    told.collect::<Vec<String>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Mode;
    use crate::made_up::{advice, finalist, wanted};
    use crate::profile::Profile;

    #[test]
    fn what_is_survived_is_counted() {
        let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
        let wanted = Wanted::new(8..=8, drive, Profile::named("nas").expect("there"));
        let of = |name: &str, lost: u16| {
            let layout = name.parse().expect("a layout");
            let candidate = Candidate { layout, spares: 0, mode: Mode::None };
            share_in_words(survives(&wanted, &candidate, lost).expect("fits"))
        };
        // 4 of 28 pairs are mirrors of each other; of 56 triples 32 have one of each of three pairs.
        assert_eq!([of("raid10(8)", 2), of("raid10(8)", 3)], ["6 times in 7", "4 times in 7"]);
        assert_eq!([of("raid6(8)", 2), of("raid6(8)", 3)], ["always", "never"]);
        assert_eq!(of("raid5(8)", 2), "never");
        let all = ["raid10(8)", "raid6(8)", "raid0(8)"].map(|name| {
            let layout = name.parse().expect("a layout");
            Candidate { layout, spares: 0, mode: Mode::None }
        });
        let told = |of: &[&Candidate]| survived(&wanted, of);
        let both = "What is survived of 2 drives that fail at once: raid10(8) 6 times in 7, raid6(8) always; of 3 \
                    drives that fail at once: raid10(8) 4 times in 7, raid6(8) never.";
        assert_eq!(told(&[&all[0], &all[1]]).as_deref(), Some(both));
        assert_eq!(told(&[&all[1], &all[1]]), None, "alike");
        assert_eq!((told(&[&all[0]]), told(&[&all[0], &all[2]])), (None, None));
    }

    #[test]
    fn ratios_and_seconds_in_words() {
        let ratios = [1.0, 1.049, 1.06, 1.94, 1.95, 3.0, 0.96, 0.94, 0.5].map(faster);
        let words = [
            "as fast",
            "as fast",
            "6 % faster",
            "94 % faster",
            "2 times as fast",
            "3 times as fast",
            "as fast",
            "6 % slower",
            "50 % slower",
        ];
        assert_eq!(ratios, words);
        let times = [12.4, 10.0, 9.94, 1.0, 0.999, 0.01, 0.0099].map(seconds);
        assert_eq!(times, ["12 s", "10 s", "9.9 s", "1.0 s", "999 ms", "10 ms", "9.90 ms"]);
    }

    #[test]
    fn speeds_and_tails_are_those_of_the_state_that_counts() {
        let mut wanted = wanted(4, "nas-8tb-7200", "vm");
        wanted.limits.survive = 1;
        let of = |rate, healthy, degraded| {
            finalist(&wanted, "raid5(4)", &[rate], [Some(healthy), degraded])
        };
        let (one, other) = (of(300, 10, Some(50)), of(100, 10, Some(25)));
        assert_eq!(speeds(&wanted, &one, &other), ["3 times as fast (300 against 100 I/O/s)"]);
        let told = |one: &Finalist, other: &Finalist| tails(&wanted, one, other).expect("tails");
        assert_eq!(
            told(&one, &other),
            "p99 with a drive missing 2 times as long (50 ms against 25 ms)"
        );
        assert_eq!(
            told(&other, &one),
            "p99 with a drive missing 50 % shorter (25 ms against 50 ms)"
        );
        assert_eq!(
            told(&of(1, 1, Some(109)), &of(1, 1, Some(100))),
            "p99 with a drive missing as long (109 ms against 100 ms)"
        );
        assert_eq!(
            told(&of(1, 1, Some(120)), &of(1, 1, Some(100))),
            "p99 with a drive missing 20 % longer (120 ms against 100 ms)"
        );
        let bare = of(1, 1, None);
        assert_eq!(told(&one, &bare), "data are there with a drive missing");
        assert_eq!(told(&bare, &one), "data are gone with a drive missing");
        assert_eq!(tails(&wanted, &bare, &bare), None);
        wanted.limits.survive = 0;
        assert_eq!(
            tails(&wanted, &one, &other).as_deref(),
            Some("p99 as long (10 ms against 10 ms)")
        );
    }

    #[test]
    fn space_is_told_with_how_many_drives_would_do() {
        let wanted = wanted(8, "nas-8tb-7200", "vm");
        let of = |layout: &str| finalist(&wanted, layout, &[1], [Some(1), Some(1)]);
        let told = |one: &str, other: &str| space(&wanted, &of(one), &of(other));
        assert_eq!(told("raid5(4)", "raid5(4) chunk=64K"), ["the same space"]);
        assert_eq!(told("raid6(5)", "raid5(4)"), ["the same space with 1 drive more"]);
        assert_eq!(told("raid5(4)", "raid10(6)"), ["the same space with 2 drives fewer"]);
        assert_eq!(told("raid5(4) + spare", "raid5(4)"), ["the same space with 1 drive more"]);
        assert_eq!(told("raid5(4)", "raid5(4) + spare"), ["the same space with 1 drive fewer"]);
        let twice = ["2 times the space (16.0 TB against 8.0 TB)"];
        assert_eq!(told("raid0(2)", "raid1(2)"), twice);
        // 24 TB on five drives of raid6, 32 on eight of raid10: six of raid6 hold as much.
        let wide = [
            "50 % more space (48.0 TB against 32.0 TB)",
            "raid6(6) has 32.0 TB with 2 drives fewer",
        ];
        assert_eq!(told("raid6(8)", "raid10(8)"), wide);
        let narrow = [
            "33 % less space (32.0 TB against 48.0 TB)",
            "raid6(6) has 32.0 TB with 2 drives fewer",
        ];
        assert_eq!(told("raid10(8)", "raid6(8)"), narrow);
        // Three drives are no raid6, and what takes as many drives is not told of.
        let few = of("raid6(4)");
        assert_eq!(fewest(&wanted, &few.candidate, few.usable / 4), None);
        let five = fewest(&wanted, &of("raid6(6)").candidate, few.usable).expect("fewer");
        assert_eq!(five.to_string(), "raid6(4)");
    }

    #[test]
    fn objectives_in_words() {
        let wanted = wanted(8, "nas-8tb-7200", "vm");
        let of =
            |layout: &str, rate, p99| finalist(&wanted, layout, &[rate], [Some(p99), Some(p99)]);
        let told =
            |objective, one: &Finalist, other: &Finalist| in_words(&wanted, objective, one, other);
        let (fast, slow) = (of("raid0(4)", 200, 10), of("raid5(4)", 100, 15));
        assert_eq!(told(Objective::Speed, &fast, &slow), "2 times as fast");
        assert_eq!(told(Objective::Speed, &slow, &fast), "50 % slower");
        assert_eq!(told(Objective::Speed, &of("raid0(4)", 120, 1), &slow), "20 % faster");
        assert_eq!(told(Objective::Capacity, &fast, &slow), "33 % more space");
        assert_eq!(told(Objective::Capacity, &slow, &fast), "25 % less space");
        assert_eq!(told(Objective::Capacity, &of("raid0(8)", 1, 1), &slow), "2.5 times the space");
        let tail = if wanted.limits.survive == 0 { "p99" } else { "degraded p99" };
        assert_eq!(told(Objective::Tail, &fast, &slow), format!("{tail} 33 % shorter"));
        assert_eq!(told(Objective::Tail, &slow, &fast), format!("{tail} 50 % longer"));
        let gone = of("raid0(4)", 200, 1_500);
        assert_eq!(told(Objective::Tail, &gone, &slow), "data are gone with a drive missing");
        assert_eq!(told(Objective::Tail, &slow, &gone), "data are there with a drive missing");
        let rare = Finalist {
            costs: {
                let mut costs = slow.costs;
                costs[3] -= Objective::Risk.steps(3.0);
                costs
            },
            ..slow.clone()
        };
        assert_eq!(told(Objective::Risk, &rare, &slow), "loses the array 3 times more seldom");
        assert_eq!(told(Objective::Risk, &slow, &rare), "loses the array 3 times more often");
        let floor = Finalist { risk: LEAST_RISK / 2.0, ..rare };
        assert_eq!(
            told(Objective::Risk, &floor, &slow),
            "loses the array 3 times more seldom, counted down to 1 in 100,000 only"
        );
    }

    /// Who names layouts asks about each; who names levels about the best of each; where nobody names anything, two
    /// that are left are what it is about.
    #[test]
    fn rivals_are_what_was_asked_about() {
        let mut wanted = wanted(8, "nas-8tb-7200", "vm");
        let of = |wanted: &Wanted, layout: &str| finalist(wanted, layout, &[1], [Some(1), Some(1)]);
        let found = |wanted: &Wanted, layouts: &[&str]| {
            rivals(wanted, &advice(layouts.iter().map(|one| of(wanted, one)).collect()))
        };
        assert_eq!(found(&wanted, &["raid6(8)", "raid10(8)"]), [1]);
        assert_eq!(found(&wanted, &["raid6(8)", "raid10(8)", "raid5(8)"]), [] as [usize; 0]);
        assert_eq!(found(&wanted, &["raid6(8)", "raid6(6)"]), [] as [usize; 0], "of one level");
        let named = |names: &[&str]| -> Vec<Among> {
            names.iter().map(|one| Among::Layout(one.parse().expect("a layout"))).collect()
        };
        wanted.among = [Level::Raid6, Level::Raid10, Level::Raid5].map(Among::Level).to_vec();
        assert_eq!(
            found(&wanted, &["raid6(8)", "raid6(6)", "raid10(8)", "raid10(6)", "raid5(8)"]),
            [2, 4]
        );
        // A spare beside another level is another family where both have the same space.
        assert_eq!(found(&wanted, &["raid6(8)", "raid5(7) + spare"]), [1]);
        assert_eq!(found(&wanted, &["raid6(8)", "raid5(5) + spare"]), [] as [usize; 0]);
        assert_eq!(found(&wanted, &["raid6(8)", "raid6(8) + spare"]), [] as [usize; 0], "itself");
        wanted.among = named(&["raid6(8)", "raid6(6)"]);
        assert_eq!(found(&wanted, &["raid6(8)", "raid6(6)"]), [1], "layouts are asked about each");
    }

    #[test]
    fn parity_in_order_is_explained_against_none_only() {
        let of = |wanted: &Wanted, one: &str, other: &str| {
            let of = |layout: &str| finalist(wanted, layout, &[1], [Some(1), Some(1)]);
            full_stripes(wanted, &of(one), &of(other))
        };
        let written = wanted(6, "nas-8tb-7200", "capture");
        assert!(of(&written, "raid0(4)", "raid5(4)").contains("raid5(4) gives up 1 drive of 4"));
        assert!(of(&written, "raid6(6)", "raid0(6)").contains("raid6(6) gives up 2 drives of 6"));
        assert_eq!(of(&written, "raid1(2)", "raid5(4)"), "", "both survive");
        assert_eq!(of(&written, "raid0(4)", "linear(4)"), "", "no parity");
        assert_eq!(
            of(&wanted(6, "nas-8tb-7200", "vm"), "raid0(4)", "raid5(4)"),
            "",
            "not in order"
        );
    }

    /// The better figure is below the other where money and watts count.
    #[test]
    fn money_and_watts_in_words() {
        let wanted = wanted(8, "nas-8tb-7200", "vm");
        let less = finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)]);
        let mut more = less.clone();
        more.costs[4] += Objective::Price.steps(1.25);
        more.costs[5] += Objective::Watts.steps(2.0);
        let told = |objective, one, other| in_words(&wanted, objective, one, other);
        assert_eq!(told(Objective::Price, &less, &more), "20 % cheaper");
        assert_eq!(told(Objective::Price, &more, &less), "25 % dearer");
        assert_eq!(told(Objective::Watts, &less, &more), "50 % less power");
        assert_eq!(told(Objective::Watts, &more, &less), "2 times more power");
    }

    /// Who loses more loses so many times as often; where one is below what is told apart, at least so.
    #[test]
    fn losses_are_told_by_who_loses_more() {
        let wanted = wanted(8, "nas-8tb-7200", "vm");
        let told = |one: f64, other: f64| {
            let of = |risk| {
                let one = finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)]);
                Finalist { risk, ..one }
            };
            let mut advice = advice(vec![of(one), of(other)]);
            advice.risks = [one, other].map(crate::remarks::tests::mission).to_vec();
            losses(&advice, 0, 1)
        };
        assert_eq!(told(0.1, 0.01), "loses the array 10 times as often (1 in 10 against 1 in 100)");
        assert_eq!(
            told(0.01, 0.1),
            "loses the array 10 times more seldom (1 in 100 against 1 in 10)"
        );
        assert_eq!(told(0.01, 0.012), "loses the array about as often (1 in 100 against 1 in 80)");
        let rare = "less than 1 in 100,000";
        assert_eq!(
            told(1e-3, 1e-9),
            format!("loses the array at least 100 times as often (1 in 1,000 against {rare})")
        );
        assert_eq!(
            told(1e-9, 1e-3),
            format!("loses the array at least 100 times more seldom ({rare} against 1 in 1,000)")
        );
        assert_eq!(told(9e-6, 1e-9), format!("both lose the array {rare}: other causes dominate"));
    }
}
