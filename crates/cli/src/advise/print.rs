//! The advice on a terminal: the recommendation first, 80 columns.

use std::fmt::Write;

use raidlab_advise::{
    Advice, BAD_BATCH, Batch, Change, Counted, Finalist, Lean, Mode, Objective, Software, UNTOLD,
    Variant, Wanted, checks, chunk_in_words, commands_of, days, first, growth_in_words, in_words,
    profiles, seconds, terabytes, warnings, years_in_words,
};
use raidlab_core::{Sectors, Size};
use raidlab_results::find::{LEAST_REBUILT_PERCENT, LEAST_REBUILT_SECONDS};
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
    for sentence in first(wanted, advice) {
        out.push_str(&folded(&sentence, "", 2));
    }
    if !out.is_empty() {
        out.push('\n');
    }
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
    for command in commands_of(wanted, advice) {
        let _ = writeln!(out, "  {command}");
    }
    out.push('\n');
    closing(wanted, advice, &mut out);
    out
}

/// Several kinds of work on the same drives: whether one array is best for all, then each by itself.
pub(super) fn of_each(answers: &[(Wanted, Advice)]) -> String {
    let picks = answers.iter().map(|(wanted, advice)| {
        let of = |at: usize| advice.finalists[at].candidate.structure().to_string();
        let lean = match (advice.lean(), advice.verdict.next) {
            (Lean::TossUp, Some(next)) => format!(" or {}, a toss-up", of(next)),
            (Lean::Leaning, Some(next)) => format!(" rather than {}", of(next)),
            (Lean::Probably, _) => ", probably".to_owned(),
            _ => String::new(),
        };
        (
            of(advice.verdict.pick),
            format!("{}: {}{lean}", wanted.profile.name, of(advice.verdict.pick)),
        )
    });
    let picks: Vec<(String, String)> = picks.collect();
    let is_one = picks.iter().all(|one| one.0 == picks[0].0);
    let head = match is_one {
        true => "The same for each work",
        false => "No single default for all of it",
    };
    let each: Vec<&str> = picks.iter().map(|one| one.1.as_str()).collect();
    let mut out = folded(&format!("{head}. {}.", each.join("; ")), "", 2);
    for (wanted, advice) in answers {
        let name = &wanted.profile.name;
        let _ =
            write!(out, "\n{name}\n{}\n{}", "=".repeat(name.chars().count()), text(wanted, advice));
    }
    out
}

/// The chances of each layout.
pub(super) fn risks_in_words(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let finalists = advice.finalists.iter().zip(&advice.batches);
    let told = finalists.zip(&advice.risks).map(|(one, risk)| {
        let of = |range: raidlab_risk::Within| {
            words::chance_within(range.central, (range.low, range.high))
        };
        format!(
            "{}: the array: {}; a sector or more: {}; {}",
            one.0.candidate,
            of(risk.array),
            of(risk.sector),
            in_a_bad_batch(wanted, one.1)
        )
    });
    told.chain([format!("All of it: {}.", words::SCOPE)]).collect()
}

/// The chance of losing the array where all drives are of one bad batch.
fn in_a_bad_batch(wanted: &Wanted, batch: &Batch) -> String {
    let percent = wanted.unknown[0].central * BAD_BATCH * 100.0;
    let chance = words::chance(batch.bad);
    format!("the array, if all drives are of a bad batch ({percent:.0} % a year fail): {chance}")
}

/// What would change the answer, a line each.
pub(super) fn changes_in_words(advice: &Advice) -> Vec<String> {
    let told = advice.changes.iter().map(|change| match advice.is_changed_by(change) {
        true => changed(advice, change),
        false => format!("{}: it stays", change.when),
    });
    told.collect()
}

/// What is best then; one of the two of a toss-up is so alone.
fn changed(advice: &Advice, change: &Change) -> String {
    let name = &advice.finalists[change.then].candidate;
    let both = [Some(advice.verdict.pick), advice.verdict.next];
    let is_of_both = advice.lean() == Lean::TossUp && both.contains(&Some(change.then));
    let alone = if is_of_both { " alone" } else { "" };
    format!("{}: {name}{alone}", change.when)
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
    let name = |at: usize| {
        let candidate = &advice.finalists[at].candidate;
        match wanted.software.name_of(candidate) {
            Some(own) => format!("{candidate} (in ZFS {own})"),
            None => candidate.to_string(),
        }
    };
    let pick = name(verdict.pick);
    let is_of_chunks = !wanted.chunks.is_empty() && verdict.next.is_none();
    let head = if wanted.software == Software::Md { "Recommended" } else { "By md's figures" };
    let mut told = Vec::new();
    // Where chunks are named and there is nothing else to choose, they are the question.
    told.extend(chunk(wanted, advice).filter(|_| is_of_chunks));
    match verdict.next {
        None => told.push(format!(
            "{head}: {pick} (the only structure of those looked at that meets the limits)"
        )),
        Some(next) => {
            told.extend(first_and_next(advice, head, [&pick, &name(next)]));
            told.push(by_how_much(wanted, advice, next));
        }
    }
    told.extend(each_stream(wanted, advice));
    // Pools have no chunks and no bitmaps.
    if wanted.software != Software::Zfs {
        told.extend(chunk(wanted, advice).filter(|_| !is_of_chunks));
        told.extend(consistency(wanted, advice));
    }
    told
}

/// The recommendation and the next best, as surely as the one is better than the other.
fn first_and_next(advice: &Advice, head: &str, [pick, next]: [&str; 2]) -> Vec<String> {
    let verdict = &advice.verdict;
    let sure = match verdict.sure {
        sure if sure >= 0.995 => "more than 99 in 100".to_owned(),
        sure => format!("{:.0} in 100", sure * 100.0),
    };
    let lean = match advice.lean() {
        Lean::Plain => {
            return vec![
                format!("{head}: {pick}"),
                format!("Next best: {next}; the chance that the first is better is {sure}."),
            ];
        }
        Lean::TossUp => {
            let better = |at: usize| {
                let names: Vec<&str> =
                    advice.better_at()[at].iter().map(|one| one.name()).collect();
                if names.is_empty() {
                    "nothing that counts a step".to_owned()
                } else {
                    names.join(" and ")
                }
            };
            return vec![format!(
                "No single default: {pick} for {}, {next} for {}; a toss-up ({sure} that the first is better).",
                better(0),
                better(1)
            )];
        }
        Lean::Leaning => "leaning to",
        Lean::Probably => "probably",
    };
    vec![format!(
        "{head}: {pick} or {next}, either; {lean} the first, which is ahead by less than the model may be off: \
         the chance that it is the better one is {sure}."
    )]
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
    // Whole steps of a small sum would not add up.
    let all = match verdict.lead {
        lead if lead.abs() < 2.0 => format!("({lead:+.1})"),
        lead => signed(lead),
    };
    format!("By how much, in steps: {}; together {all}.", told.join("; "))
}

fn signed(steps: f64) -> String {
    format!("({steps:+.0})")
}

/// What each stream of work that is counted in bytes has.
fn each_stream(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let part = &wanted.profile.parts[0];
    let is_counted = part.counted == Counted::Megabytes && !wanted.is_paced() && wanted.streams > 1;
    let pick = &advice.finalists[advice.verdict.pick];
    let all = pick.median(|run| run.rate(wanted, 0, State::Healthy)).filter(|_| is_counted)?;
    let streams = wanted.streams;
    let each = part.counted.told(all / f64::from(streams));
    let rate = part.counted.told(all);
    Some(format!(
        "{rate} MB/s ({}) are {each} for each of {streams} at once: hold that against the rate of what each reads or \
         writes.",
        part.name
    ))
}

fn chunk(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    if !pick.layout.floors().any(|floor| floor.level.has_chunks()) {
        return None;
    }
    let mut told = format!("Chunk: {}", chunk_in_words(pick));
    // Who names chunks wants to see each.
    let shown = if wanted.chunks.is_empty() { 1 } else { wanted.chunks.len() };
    for variant in advice.variants.iter().take(shown) {
        told += &other_chunk(wanted, variant);
    }
    if advice.variants.is_empty() {
        told.push_str("; no other that was tried did better");
    }
    told.push('.');
    told.push_str(&stripes(wanted, advice));
    Some(told)
}

/// Another chunk against the one that is recommended.
fn other_chunk(wanted: &Wanted, variant: &Variant) -> String {
    let named = chunk_in_words(&variant.candidate);
    let (speed, tail) = (variant.speed, variant.tail);
    let figures = format!("{speed:.2} times its speed and {tail:.2} times its p99");
    match variant.is_alike {
        _ if wanted.is_paced() => {
            format!("; {named} had {figures} here, which is alike to work that is kept up with")
        }
        true => {
            format!("; {named} had {figures} here, which is less than the model may be off: either")
        }
        false => {
            let way = if variant.lead > 0.0 { "ahead" } else { "behind" };
            format!("; {named} is {way} by {:.0} steps, with {figures}", variant.lead.abs())
        }
    }
}

/// What a larger chunk of parity costs, where other chunks were compared.
fn stripes(wanted: &Wanted, advice: &Advice) -> String {
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    let layout = &pick.layout;
    let writes = wanted.profile.parts.iter().any(|part| part.counted == Counted::Megabytes);
    if !layout.has_parity() || layout.inner.is_some() || !writes {
        return String::new();
    }
    let stripe = |chunk: Sectors| Size(chunk.bytes() * u64::from(layout.data_members()));
    let mut told = format!(
        " Writes shorter than a stripe of {} (chunk times drives with data) have to read first",
        stripe(layout.chunk)
    );
    if let Some(other) = advice.variants.first() {
        let chunk = other.candidate.layout.chunk;
        told +=
            &format!("; with {} a stripe is {}", chunk_in_words(&other.candidate), stripe(chunk));
    }
    told + "."
}

fn consistency(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let costs = advice.consistency.iter().map(|one| {
        let what = match one.mode {
            Mode::PartialParity => "ppl, in place of it, closes the write hole",
            _ => "a bitmap makes the resync after a crash one of minutes instead of a full pass",
        };
        let longer = match one.tail {
            tail if tail <= Objective::Tail.step() => String::new(),
            tail if tail > 3.0 => format!(" the p99 {tail:.0} times as long"),
            tail => format!(" the p99 {:.0} % longer", (tail - 1.0) * 100.0),
        };
        let tail = |joined: &str| match longer.as_str() {
            "" => String::new(),
            longer => format!("{joined} makes{longer}"),
        };
        match (1.0 - one.speed) * 100.0 {
            _ if wanted.is_paced() => format!("{what}; the work leaves time for it"),
            percent if percent < 1.0 && longer.is_empty() => {
                format!("{what} and costs nothing here")
            }
            percent if percent < 1.0 => format!("{what} and costs no speed here{}", tail(", but")),
            percent => format!("{what}, costs {percent:.0} % of the speed here{}", tail(" and")),
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

fn milliseconds(value: Option<f64>) -> String {
    value.map_or("lost".to_owned(), seconds)
}

fn rate(value: Option<f64>, counted: Counted) -> String {
    value.map_or("lost".to_owned(), |rate| counted.told(rate))
}

fn table(wanted: &Wanted, advice: &Advice, out: &mut String) {
    let part = &wanted.profile.parts[0];
    let counted = part.counted;
    let _ = writeln!(
        out,
        "{:<26} {:>8} {:>7} {:>9} {:>9} {:>10} {:>8}",
        wanted.software.of_rows(),
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
        let rebuilt = match one.median(|run| run.rebuild(wanted)) {
            Some(_) if !one.tells_rebuild() => "unknown".to_owned(),
            rebuilt => rebuilt.map_or("-".to_owned(), days),
        };
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
    let years = years_in_words(wanted.mission / YEAR);
    let head = format!("Losing data in {years} ({})", words::SCOPE);
    out.push('\n');
    out.push_str(&folded(&head, "", 2));
    for (at, one) in advice.finalists.iter().enumerate() {
        let risk = &advice.risks[at];
        let of = |range: raidlab_risk::Within| {
            words::chance_within(range.central, (range.low, range.high))
        };
        let (array, sector) = (of(risk.array), of(risk.sector));
        let batch = in_a_bad_batch(wanted, &advice.batches[at]);
        let text = format!("the array: {array}; a sector or more: {sector}; {batch}");
        out.push_str(&folded(&text, &format!(" {:<25} ", one.candidate.to_string()), 27));
    }
    out.push('\n');
}

fn changes(advice: &Advice, out: &mut String) {
    // Of one there is nothing to choose.
    if advice.finalists.len() < 2 {
        return;
    }
    out.push_str("What would change the answer\n");
    let (mut same, mut any) = (Vec::new(), false);
    for change in &advice.changes {
        if !advice.is_changed_by(change) {
            same.push(change.when.clone());
            continue;
        }
        any = true;
        out.push_str(&folded(&changed(advice, change), "  - ", 4));
    }
    if !same.is_empty() {
        let but = if any { "It stays" } else { "Nothing that was tried; it stays" };
        out.push_str(&folded(&format!("{but} {}.", same.join(", ")), "  - ", 4));
    }
    out.push('\n');
}

/// What is assumed of rebuilds that the runs do not tell.
fn untold_rebuilds(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let untold = advice.finalists.iter().find(|one| !one.tells_rebuild())?;
    let assumed = untold.median(|run| run.rebuild(wanted))?;
    Some(format!(
        "Rebuilt unknown: not known under load, too little of it was simulated (less than {LEAST_REBUILT_PERCENT} % in \
         less than {LEAST_REBUILT_SECONDS} s; a larger --requests may do). The chances take {UNTOLD} times an idle \
         rebuild while the work goes on, {} in all.",
        days(assumed)
    ))
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
    texts.extend(untold_rebuilds(wanted, advice));
    if wanted.profile.flushes() {
        texts.push(
            "p99: of reads, and of writes with the flush that follows them at once.".to_owned(),
        );
    }
    if wanted.profile.is_on_files() {
        texts.push(
            "Files are on an ext4 that is else empty, where hard disks are fastest, of a host with 8 GiB of memory: \
             writes end in its page cache and count once all are flushed; p99: as a program waits for one."
                .to_owned(),
        );
    }
    texts.push("Figures are of modelled drives; RAID is not a backup.".to_owned());
    for text in texts {
        out.push_str(&folded(&text, "", 2));
    }
}
