//! What a check came to, in words.

use std::fmt::Write;

use raidlab_checker::device::Format;
use raidlab_checker::part::{Broken, Choice, Tally, consistency};
use raidlab_checker::swarm::{Class, Mode, Outcome, Special};
use raidlab_core::{Layout, Level, Redundancy};
use raidlab_metadata::md::Version;
use raidlab_risk::words;

use super::Done;

/// Broken promises listed at most; the first of them with its log.
const LISTED: usize = 20;

/// Writing to a string does not fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{
        let _ = writeln!($text, $($arg)*);
    }};
}

/// The summary of a check, broken promises first.
pub(super) fn of_check(choice: &Choice, done: &Done) -> String {
    let mut text = String::new();
    broken(&mut text, done);
    let tally = &done.tally;
    fault_points(&mut text, tally);
    let crashes = &tally.crashes;
    if crashes.states > 0 {
        line!(
            text,
            "crash enumeration   {} states, {} distinct images, {} programs, {} power cuts in recoveries",
            thousands(crashes.states),
            thousands(crashes.distinct),
            thousands(crashes.programs),
            thousands(crashes.nested)
        );
        line!(
            text,
            "                    {} of the states with records as bytes",
            thousands(tally.states_in_bytes)
        );
    }
    if let Some(states) = tally.hole {
        let states = thousands(states);
        line!(
            text,
            "write hole          shown by raid5 without a log after {states} states, as it must"
        );
    }
    if tally.seeds > 0 {
        line!(
            text,
            "swarm               {} seeds, {} requests, {} member I/Os, {} power cuts",
            thousands(tally.seeds),
            thousands(tally.requests),
            thousands(tally.ios),
            thousands(tally.cuts)
        );
        hits(&mut text, choice, tally);
        shares(&mut text, choice, tally);
    }
    let rate = |count: u64| thousands((count as f64 / done.seconds.max(0.001)) as u64);
    let work = tally.failures + crashes.states + tally.seeds;
    line!(
        text,
        "time                {:.1} s on {} thread{}, {} runs, states and seeds a second",
        done.seconds,
        done.threads,
        if done.threads == 1 { "" } else { "s" },
        rate(work)
    );
    let (run, all) = done.parts;
    if run < all {
        line!(text, "interrupted         {run} of {all} parts were run");
    } else {
        line!(text, "hash                {:016x}", tally.hash);
    }
    if done.broken.is_empty() {
        line!(text, "every promise was kept");
    }
    text
}

/// What the fault-point sweep came to, if it was run.
fn fault_points(text: &mut String, tally: &Tally) {
    if tally.failures > 0 {
        line!(
            text,
            "fault-point sweep   {} runs, {} of them with records as bytes",
            thousands(tally.failures),
            thousands(tally.failures_in_bytes)
        );
        line!(
            text,
            "                    {} operations refused, by arrays that do not have them",
            thousands(tally.refused)
        );
    }
}

/// Each class with its hits, and those never hit.
fn hits(text: &mut String, choice: &Choice, tally: &Tally) {
    let applies = |class: &Class| applies(*class, choice);
    let (hit, never): (Vec<Class>, Vec<Class>) =
        Class::ALL.into_iter().filter(applies).partition(|class| tally.hits.of(*class) > 0);
    line!(text, "faults hit");
    for class in hit {
        line!(text, "    {:<36}{:>12}", class.name(), thousands(tally.hits.of(class)));
    }
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|class| class.name()).collect();
        line!(text, "never hit           {}", names.join(", "));
    }
}

/// What has a generator of its own: how many seeds had each, and which none had.
fn shares(text: &mut String, choice: &Choice, tally: &Tally) {
    let applies = |special: &Special| has_special(*special, choice);
    let (had, never): (Vec<Special>, Vec<Special>) =
        Special::ALL.into_iter().filter(applies).partition(|one| tally.shares.of(*one) > 0);
    line!(text, "seeds with");
    for special in had {
        let seeds = tally.shares.of(special);
        let percent = seeds as f64 * 100.0 / tally.seeds.max(1) as f64;
        line!(text, "    {:<36}{:>12}  {percent:.2}%", special.name(), thousands(seeds));
    }
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|special| special.name()).collect();
        line!(text, "no seed with        {}", names.join(", "));
    }
}

/// The levels and modes that are chosen, each with each that go together and that the format has.
fn kept(choice: &Choice) -> Vec<(Level, Mode)> {
    let is_kept = |level: Level, mode: Mode| {
        let has = |members: &u16| {
            let layout = Layout::new(level, *members);
            choice.format.is_none_or(|format| format.has(&layout, consistency(mode)))
        };
        mode.fits(level) && level.small_arrays().iter().any(has)
    };
    let levels = Level::ALL
        .into_iter()
        .filter(|level| choice.levels.is_empty() || choice.levels.contains(level));
    let modes =
        Mode::ALL.into_iter().filter(|mode| choice.modes.is_empty() || choice.modes.contains(mode));
    let modes: Vec<Mode> = modes.collect();
    let all = levels.flat_map(|level| modes.iter().map(move |mode| (level, *mode)));
    all.filter(|(level, mode)| is_kept(*level, *mode)).collect()
}

/// Whether what was chosen can have it at all.
fn has_special(special: Special, choice: &Choice) -> bool {
    let kept = kept(choice);
    let level = |is: &dyn Fn(Level) -> bool| kept.iter().any(|(level, _)| is(*level));
    let mode = |wanted: Mode| kept.iter().any(|(_, mode)| *mode == wanted);
    let superblocks = kept.iter().any(|(_, mode)| *mode != Mode::None);
    let is_md = matches!(choice.format, Some(Format::Md(_)));
    match special {
        Special::Slices => level(&|one| one.has_stripes()),
        Special::LargeChunk | Special::LogUnreadable => mode(Mode::PartialParity),
        Special::ManyMembers | Special::ManyAtStart => {
            level(&|one| one.is_redundant() && !one.is_cut_by_sectors())
                && choice.format != Some(Format::Md(Version::V0_90))
        }
        Special::Resumed => {
            superblocks && choice.format.is_none_or(|one| one.resumes_replacements())
        }
        // md's superblocks have one place each, and do not say in which blocks an array is written.
        Special::Believed => !is_md,
        Special::LargerBlock => superblocks && !is_md,
        Special::LateLog | Special::LateReplay => mode(Mode::PartialParity) || mode(Mode::Journal),
        Special::LateBitmap | Special::PageHarmed => mode(Mode::Bitmap),
        Special::WrongLog => mode(Mode::Journal),
        Special::LateSuperblock
        | Special::Hole
        | Special::SuperblockUnreadable
        | Special::SuperblockDamaged
        | Special::OlderCopy
        | Special::WentOnAlone
        | Special::Swapped
        | Special::Resized
        | Special::Wiped
        | Special::OtherParameters
        | Special::AnyReturn => superblocks,
        _ => true,
    }
}

/// Whether a class can be hit at all by what was chosen.
pub(super) fn applies(class: Class, choice: &Choice) -> bool {
    let kept = kept(choice);
    let mut superblocks = kept.iter().filter(|(_, mode)| *mode != Mode::None);
    match class {
        Class::LogDevice => kept.iter().any(|(_, mode)| *mode == Mode::Journal),
        Class::Split => superblocks.any(|(level, _)| level.redundancy() == Redundancy::Mirror),
        Class::Superblock | Class::Stale => superblocks.next().is_some(),
        _ => true,
    }
}

/// Lists broken promises; the first with the log that replays it.
fn broken(text: &mut String, done: &Done) {
    let Some(first) = done.broken.first() else { return };
    line!(text, "BROKEN: {}", first.what);
    line!(text, "array: {}", first.array);
    if !first.how().is_empty() {
        line!(text, "{}", first.how());
    }
    for line in first.lines() {
        line!(text, "{line}");
    }
    line!(text, "replay: {}", command(first));
    for other in done.broken.iter().skip(1).take(LISTED) {
        line!(text, "BROKEN: {}", other.what);
        line!(text, "    array: {}", other.array);
        line!(text, "    {}", command(other));
    }
    let listed = done.broken.len().min(LISTED + 1) as u64;
    if done.tally.broken > listed {
        line!(text, "and {} more", thousands(done.tally.broken - listed));
    }
}

/// The command that does it again.
pub(super) fn command(broken: &Broken) -> String {
    format!("raidlab check {}", broken.replay)
}

/// A seed that kept every promise.
pub(super) fn of_seed(seed: &str, outcome: &Outcome) -> String {
    let hits = Class::ALL.into_iter().filter(|class| outcome.hits.of(*class) > 0);
    let hits: Vec<String> =
        hits.map(|class| format!("{} ({})", class.name(), outcome.hits.of(class))).collect();
    let shares = outcome.shares.names();
    format!(
        "{seed}: every promise was kept; {} requests, {} member I/Os, {} power cuts\n\
         faults: {}\nbesides: {}\nhash {:016x}\n",
        outcome.requests,
        outcome.ios,
        outcome.crashes,
        if hits.is_empty() { "none".to_owned() } else { hits.join(", ") },
        if shares.is_empty() { "nothing" } else { &shares },
        outcome.hash
    )
}

/// With commas between the thousands.
pub(super) fn thousands(number: u64) -> String {
    words::thousands(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_asked_for_where_it_can_be() {
        let of = |level: Level, mode: Mode| Choice {
            levels: vec![level],
            modes: vec![mode],
            format: None,
        };
        assert!(Special::ALL.into_iter().all(|one| has_special(one, &Choice::default())));
        let ppl = of(Level::Raid5, Mode::PartialParity);
        assert!(has_special(Special::LargeChunk, &ppl) && !has_special(Special::WrongLog, &ppl));
        let none = of(Level::Raid3, Mode::None);
        assert!(!has_special(Special::Slices, &none) && !has_special(Special::Wiped, &none));
        let md = Choice { format: Some(Format::Md(Version::V0_90)), ..Choice::default() };
        assert!(has_special(Special::PageHarmed, &md) && !has_special(Special::Believed, &md));
        assert!(!has_special(Special::LateLog, &md) && !has_special(Special::ManyMembers, &md));
    }

    /// Version 0.90 has no log, 1.0 one of partial parity, and the others a journal, too.
    #[test]
    fn the_logs_of_a_version_of_md_are_asked_for() {
        let of = |version: Version, levels: &[Level]| Choice {
            levels: levels.to_vec(),
            modes: Vec::new(),
            format: Some(Format::Md(version)),
        };
        let partial_parity = [Special::LargeChunk, Special::LogUnreadable, Special::LateLog];
        for version in [Version::V0_90, Version::V1_0, Version::V1_1, Version::V1_2] {
            let (has_log, has_journal) = match version {
                Version::V0_90 => (false, false),
                Version::V1_0 => (true, false),
                Version::V1_1 | Version::V1_2 => (true, true),
            };
            let all = of(version, &[]);
            for special in partial_parity {
                assert_eq!(has_special(special, &all), has_log, "{version:?} {}", special.name());
            }
            assert_eq!(has_special(Special::LateReplay, &all), has_log, "{version:?}");
            assert_eq!(has_special(Special::WrongLog, &all), has_journal, "{version:?}");
            assert_eq!(applies(Class::LogDevice, &all), has_journal, "{version:?}");
            // raid6 can have no partial parity, and raid1 no log at all.
            let raid6 = of(version, &[Level::Raid6]);
            assert!(!has_special(Special::LargeChunk, &raid6), "{version:?}");
            assert_eq!(has_special(Special::LateLog, &raid6), has_journal, "{version:?}");
            let raid1 = of(version, &[Level::Raid1]);
            assert!(!has_special(Special::LateLog, &raid1) && !applies(Class::LogDevice, &raid1));
        }
    }

    #[test]
    fn a_class_applies_where_it_can_be_hit() {
        let of = |levels: &[Level], modes: &[Mode]| Choice {
            levels: levels.to_vec(),
            modes: modes.to_vec(),
            format: None,
        };
        assert!(Class::ALL.into_iter().all(|class| applies(class, &Choice::default())));
        assert!(!applies(Class::LogDevice, &of(&[Level::Raid1], &[])));
        assert!(!applies(Class::LogDevice, &of(&[], &[Mode::Bitmap])));
        assert!(applies(Class::LogDevice, &of(&[Level::Raid6], &[Mode::Journal])));
        assert!(!applies(Class::Split, &of(&[Level::Raid5], &[])));
        assert!(!applies(Class::Superblock, &of(&[], &[Mode::None])));
        let md = Choice { format: Some(Format::Md(Version::V1_2)), ..Choice::default() };
        assert!(applies(Class::Superblock, &md) && applies(Class::LogDevice, &md));
    }
}
