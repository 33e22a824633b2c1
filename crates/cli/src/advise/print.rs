//! The advice on a terminal: the recommendation first, 80 columns.

use std::fmt::Write;

use raidlab_advise::{
    Advice, Counted, Finalist, Mode, NO_TAIL, Objective, Wanted, checks, chunk_in_words, commands,
    days, growth_in_words, profiles, terabytes, warnings,
};
use raidlab_risk::{YEAR, words};
use raidlab_study::State;

use crate::risk::print::folded;

/// Kinds of work with what they are, for `--list`.
pub(super) fn kinds_of_work() -> String {
    let mut out = String::new();
    for profile in &profiles() {
        let head = format!("{:<13} ", profile.name);
        let busy = profile.busy * 100.0;
        let text = format!(
            "{}; {} at once, {busy:.0} % of the time unless --streams and --busy say otherwise. {}",
            profile.about, profile.streams, profile.source
        );
        out.push_str(&folded(&text, &head, 14));
    }
    out
}

/// Why there is no layout, and what would help.
pub(super) fn no_layout(relax: &[String]) -> String {
    format!("no layout meets the limits; relax one of them:\n  {}", relax.join("\n  "))
}

pub(super) fn text(wanted: &Wanted, advice: &Advice) -> String {
    let mut out = String::new();
    recommendation(wanted, advice, &mut out);
    table(wanted, advice, &mut out);
    changes(advice, &mut out);
    if !advice.growths.is_empty() {
        out.push_str("Growing later\n");
        for (at, growth) in &advice.growths {
            let name = advice.finalists[*at].candidate.to_string();
            out.push_str(&folded(&growth_in_words(&name, growth, wanted.mission / YEAR), "  ", 4));
        }
        out.push('\n');
    }
    out.push_str("Warnings\n");
    for warning in warnings(wanted, advice) {
        out.push_str(&folded(&warning, "  - ", 4));
    }
    out.push_str("\nCheck first\n");
    for check in checks(wanted, advice) {
        out.push_str(&folded(&check, "  - ", 4));
    }
    out.push_str("\nTo make it\n");
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    for command in commands(pick, advice.kept(wanted)) {
        let _ = writeln!(out, "  {command}");
    }
    out.push('\n');
    closing(wanted, advice, &mut out);
    out
}

/// The chances of each layout.
pub(super) fn risks_in_words(advice: &Advice) -> Vec<String> {
    let told = advice.finalists.iter().zip(&advice.risks).map(|(one, risk)| {
        let of = |range: raidlab_risk::Within| {
            words::chance_within(range.central, (range.low, range.high))
        };
        format!(
            "{}: the array: {}; a sector or more: {}",
            one.candidate,
            of(risk.array),
            of(risk.sector)
        )
    });
    told.chain([format!("All of it: {}.", words::SCOPE)]).collect()
}

/// What would change the answer, a line each.
pub(super) fn changes_in_words(advice: &Advice) -> Vec<String> {
    let told = advice.changes.iter().map(|change| {
        let name = &advice.finalists[change.then].candidate;
        match change.then == advice.verdict.pick {
            true => format!("{}: it stays", change.when),
            false => format!("{}: {name}", change.when),
        }
    });
    told.collect()
}

fn recommendation(wanted: &Wanted, advice: &Advice, out: &mut String) {
    for (number, sentence) in verdict_in_words(wanted, advice).iter().enumerate() {
        let (head, indent) = if number == 0 { ("", 2) } else { ("  ", 4) };
        out.push_str(&folded(sentence, head, indent));
    }
    out.push('\n');
}

/// The recommendation, the next best, by how much, chunk and consistency: a sentence or two each.
pub(super) fn verdict_in_words(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let verdict = &advice.verdict;
    let name = |at: usize| advice.finalists[at].candidate.to_string();
    let pick = name(verdict.pick);
    let mut told = Vec::new();
    match verdict.next {
        None => told.push(format!(
            "Recommended: {pick} (the only structure of those looked at that meets the limits)"
        )),
        Some(next) => {
            let sure = match verdict.sure {
                sure if sure >= 0.995 => "more than 99 in 100".to_owned(),
                sure => format!("{:.0} in 100", sure * 100.0),
            };
            if advice.is_either() {
                told.push(format!(
                    "Recommended: {pick} or {}, either. The first is ahead by less than the model may be off: the \
                     chance that it is the better one is {sure}.",
                    name(next)
                ));
            } else {
                told.push(format!("Recommended: {pick}"));
                let other = name(next);
                told.push(format!(
                    "Next best: {other}; the chance that the first is better is {sure}."
                ));
            }
            told.push(by_how_much(wanted, advice, next));
        }
    }
    told.extend(keeps_up(wanted, advice));
    told.extend(chunk(advice));
    told.extend(consistency(wanted, advice));
    told
}

fn by_how_much(wanted: &Wanted, advice: &Advice, next: usize) -> String {
    let verdict = &advice.verdict;
    let mut by: Vec<&(Objective, f64)> =
        verdict.by.iter().filter(|(_, steps)| steps.abs() >= 1.0).collect();
    by.sort_by(|one, other| other.1.total_cmp(&one.1));
    if by.is_empty() {
        return "No objective tells them apart by a step.".to_owned();
    }
    let (first, second) = (&advice.finalists[verdict.pick], &advice.finalists[next]);
    let told = by.iter().map(|(one, steps)| {
        format!("{} {}", in_words(wanted, *one, first, second), signed(*steps))
    });
    let told: Vec<String> = told.collect();
    let all = signed(verdict.lead);
    format!("By how much, in steps: {}; together {all}.", told.join("; "))
}

fn signed(steps: f64) -> String {
    format!("({steps:+.0})")
}

/// An objective of one against that of another.
fn in_words(wanted: &Wanted, objective: Objective, one: &Finalist, other: &Finalist) -> String {
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
            format!("loses the array {times} times {}", way("more seldom", "more often"))
        }
        Objective::Price => format!("{amount} {}", way("cheaper", "dearer")),
        Objective::Watts => format!("{amount} {} power", way("less", "more")),
    }
}

/// Whether work that comes at a rate of its own is kept up with.
fn keeps_up(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let demand = wanted.profile.demand(wanted.streams)? / 1e6;
    let states = match advice.finalists[advice.verdict.pick].candidate.layout.survives() {
        0 => "",
        _ => ", also with a drive missing and while it is rebuilding",
    };
    let streams = wanted.streams;
    Some(format!("It keeps up with {streams} streams of together {demand:.1} MB/s{states}."))
}

fn chunk(advice: &Advice) -> Option<String> {
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    if !pick.layout.floors().any(|floor| floor.level.has_chunks()) {
        return None;
    }
    let mut told = format!("Chunk: {}", chunk_in_words(pick));
    match advice.variants.first() {
        None => told.push_str("; no other that was tried did better."),
        Some(variant) if variant.is_alike => {
            let named = chunk_in_words(&variant.candidate);
            let _ = write!(
                told,
                "; {named} had {:.2} times its speed and {:.2} times its p99 here, which is less than the model may be \
                 off: either.",
                variant.speed, variant.tail
            );
        }
        Some(variant) => {
            let named = chunk_in_words(&variant.candidate);
            let way = if variant.lead > 0.0 { "ahead" } else { "behind" };
            let _ = write!(
                told,
                "; {named} is {way} by {:.0} steps, with {:.2} times its speed and {:.2} times its p99.",
                variant.lead.abs(),
                variant.speed,
                variant.tail
            );
        }
    }
    Some(told)
}

fn consistency(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let costs = advice.consistency.iter().map(|one| {
        let what = match one.mode {
            Mode::PartialParity => "ppl, in place of it, closes the write hole",
            _ => "a bitmap makes the resync after a crash one of minutes instead of a full pass",
        };
        match (1.0 - one.speed) * 100.0 {
            _ if wanted.is_paced() => format!("{what}; the work leaves time for it"),
            percent if percent < 1.0 => format!("{what} and costs nothing here"),
            percent => format!("{what} and costs {percent:.0} % of the speed here"),
        }
    });
    let costs: Vec<String> = costs.collect();
    (!costs.is_empty()).then(|| {
        let made = match advice.kept(wanted) {
            Mode::None => {
                ", and so does the command below (mdadm --grow --bitmap=internal adds it later; a --bitmap-chunk \
                 larger than mdadm's own costs less)"
            }
            _ => "; the command below makes a bitmap",
        };
        format!(
            "Consistency: {}. Places all over the array are the worst case of a bitmap. The other figures leave it \
             out{made}.",
            costs.join("; ")
        )
    })
}

fn milliseconds(seconds: Option<f64>) -> String {
    match seconds {
        None => "lost".to_owned(),
        Some(seconds) if seconds >= 10.0 => format!("{seconds:.0} s"),
        Some(seconds) if seconds >= 1.0 => format!("{seconds:.1} s"),
        Some(seconds) if seconds >= 0.01 => format!("{:.0} ms", seconds * 1e3),
        Some(seconds) => format!("{:.2} ms", seconds * 1e3),
    }
}

fn rate(value: Option<f64>, counted: Counted) -> String {
    let Some(rate) = value else { return "lost".to_owned() };
    match counted {
        Counted::Megabytes | Counted::Read => format!("{:.0}", rate / 1e6),
        Counted::Operations => format!("{rate:.0}"),
        Counted::Metric(..) => match counted.shown(rate) {
            shown if shown >= 100.0 => format!("{shown:.0}"),
            shown if shown >= 1.0 => format!("{shown:.1}"),
            shown => format!("{shown:.3}"),
        },
    }
}

fn table(wanted: &Wanted, advice: &Advice, out: &mut String) {
    let part = &wanted.profile.parts[0];
    let counted = part.counted;
    let _ = writeln!(
        out,
        "{:<26} {:>8} {:>7} {:>9} {:>9} {:>10} {:>8}",
        "",
        "usable",
        counted.unit(),
        "p99",
        "degraded",
        "rebuilding",
        "rebuilt"
    );
    for (at, one) in advice.finalists.iter().enumerate() {
        let mark = if advice.front.contains(&at) { '*' } else { ' ' };
        let tail = |state: State| milliseconds(one.median(|run| run.tail(wanted, state)));
        let rebuilt = one.median(|run| run.rebuild(wanted)).map_or("-".to_owned(), days);
        let _ = writeln!(
            out,
            "{mark}{:<25} {:>8} {:>7} {:>9} {:>9} {:>10} {:>8}",
            one.candidate.to_string(),
            terabytes(one.usable),
            rate(one.median(|run| run.rate(wanted, 0, State::Healthy)), counted),
            tail(State::Healthy),
            tail(State::Degraded),
            tail(State::Rebuilding),
            rebuilt
        );
    }
    for (number, part) in wanted.profile.parts.iter().enumerate().skip(1) {
        let (unit, counted) = (part.counted.unit(), part.counted);
        let healthy = |one: &Finalist| one.median(|run| run.rate(wanted, number, State::Healthy));
        let of = |one: &Finalist| rate(healthy(one), counted);
        let rates = advice.finalists.iter().map(|one| format!("{} {}", one.candidate, of(one)));
        let text = format!("{} ({unit}): {}", part.name, rates.collect::<Vec<_>>().join(", "));
        out.push_str(&folded(&text, "  ", 4));
    }
    let years = wanted.mission / YEAR;
    let head = format!("Losing data in {years:.0} years ({})", words::SCOPE);
    out.push('\n');
    out.push_str(&folded(&head, "", 2));
    for (at, one) in advice.finalists.iter().enumerate() {
        let risk = &advice.risks[at];
        let of = |range: raidlab_risk::Within| {
            words::chance_within(range.central, (range.low, range.high))
        };
        let (array, sector) = (of(risk.array), of(risk.sector));
        let text = format!("the array: {array}; a sector or more: {sector}");
        out.push_str(&folded(&text, &format!(" {:<25} ", one.candidate.to_string()), 27));
    }
    out.push('\n');
}

fn changes(advice: &Advice, out: &mut String) {
    out.push_str("What would change the answer\n");
    let (mut same, mut any) = (Vec::new(), false);
    for change in &advice.changes {
        if change.then == advice.verdict.pick {
            same.push(change.when.clone());
            continue;
        }
        any = true;
        let name = &advice.finalists[change.then].candidate;
        out.push_str(&folded(&format!("{}: {name}", change.when), "  - ", 4));
    }
    if !same.is_empty() {
        let but = if any { "It stays" } else { "Nothing that was tried; it stays" };
        out.push_str(&folded(&format!("{but} {}.", same.join(", ")), "  - ", 4));
    }
    out.push('\n');
}

fn closing(wanted: &Wanted, advice: &Advice, out: &mut String) {
    let spent = &advice.spent;
    let busy = wanted.busy * 100.0;
    let drives = match (wanted.drives.start(), wanted.drives.end()) {
        (least, most) if least == most => format!("{least}"),
        (least, most) => format!("{least} to {most}"),
    };
    let dropped = advice.dropped.dropped.iter().map(|one| {
        if one.reason == raidlab_advise::BARE {
            return format!("layouts without redundancy {}", one.reason);
        }
        let (few, more) =
            (one.names.iter().take(3).cloned().collect::<Vec<_>>().join(", "), one.names.len());
        let and = if more > 3 { format!(" and {} more", more - 3) } else { String::new() };
        format!("{few}{and} {}", one.reason)
    });
    let dropped: Vec<String> = dropped.collect();
    let mut texts = vec![format!(
        "Asked: {drives} drives of {} ({}); work `{}`, {} at once, {busy:.0} % of the time: {}.",
        terabytes(wanted.member().bytes()),
        wanted.drive.title,
        wanted.profile.name,
        wanted.streams,
        wanted.profile.about
    )];
    if !dropped.is_empty() {
        texts.push(format!("Left out: {}.", dropped.join("; ")));
    }
    texts.push(format!(
        "Budget: {} candidate{}, {} runs, {} thousand simulated requests; the last {} again on {} fresh seeds, which \
         alone are shown. Seed {}.",
        spent.candidates,
        if spent.candidates == 1 { "" } else { "s" },
        spent.runs,
        spent.requests.div_ceil(1_000),
        advice.finalists.len(),
        raidlab_advise::ROUNDS,
        wanted.seed
    ));
    texts.push(
        "Steps below which nothing is told apart: 5 % of speed, space, price and watts, 10 % of p99, factor 1.5 of \
         risk. * no other is better at something without being worse at something else. Rebuilding: p99 while the \
         work goes on; rebuilt: with the hours in which it does not."
            .to_owned(),
    );
    if wanted.profile.flushes() {
        texts.push("p99 is that of reads and writes; flushes take longer.".to_owned());
    }
    texts.push("Figures are of modelled drives; RAID is not a backup.".to_owned());
    for text in texts {
        out.push_str(&folded(&text, "", 2));
    }
}
