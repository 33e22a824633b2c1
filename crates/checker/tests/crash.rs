//! Every crash of small programs, on every level and consistency mode: no promise of the table in
//! `raidlab_core::consistency` is broken, and where it promises nothing, that is seen.

use raidlab_checker::breach::BreachKind;
use raidlab_checker::crash::{self, Counts, CrashConfig, Violation};
use raidlab_core::{Consistency, Level, Sectors};

const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(2) };
const PPL: Consistency = Consistency::PartialParity { slots: 6 };
const JOURNAL: Consistency = Consistency::Journal { sectors: Sectors(64) };

/// States of each configuration: a sample, since tests run unoptimised.
const STATES: u64 = 8_000;

fn enumerate(level: Level, members: u16, mode: Consistency) -> Counts {
    let config = CrashConfig { states: STATES, ..CrashConfig::new(level, members, mode) };
    let counts = crash::run(&config, &mut |_| ()).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(counts.states >= STATES && counts.distinct > 100, "{}: {counts:?}", config.name());
    assert!(counts.nested > 0, "{}: {counts:?}", config.name());
    counts
}

#[test]
fn mirrors_keep_their_promise() {
    for mode in [Consistency::None, Consistency::Resync, BITMAP] {
        for (level, members) in [(Level::Raid1, 2), (Level::Raid1, 3), (Level::Raid10, 4)] {
            let counts = enumerate(level, members, mode);
            assert!(counts.with_loss > 0 && counts.forced == 0, "{counts:?}");
        }
    }
}

#[test]
fn one_parity_keeps_its_promise_without_a_log() {
    for (level, members) in [(Level::Raid5, 4), (Level::Raid4, 4), (Level::Raid3, 3)] {
        assert_eq!(enumerate(level, members, Consistency::None).forced, 0);
        for mode in [Consistency::Resync, BITMAP] {
            let counts = enumerate(level, members, mode);
            assert!(counts.forced > 0, "dirty and degraded is refused: {counts:?}");
        }
    }
}

#[test]
fn two_parities_keep_their_promise() {
    for mode in [Consistency::None, Consistency::Resync, BITMAP, JOURNAL] {
        enumerate(Level::Raid6, 5, mode);
    }
}

#[test]
fn logs_close_the_write_hole() {
    for (level, mode) in [(Level::Raid5, PPL), (Level::Raid5, JOURNAL), (Level::Raid4, JOURNAL)] {
        let counts = enumerate(level, 4, mode);
        assert!(counts.with_loss > 0 && counts.forced == 0, "{counts:?}");
    }
}

/// Judges by a promise without exceptions.
fn strictly(level: Level, members: u16, mode: Consistency) -> Box<Violation> {
    let config = CrashConfig::new(level, members, mode);
    let mut config = CrashConfig { operations: 1, states: 100_000, nested: 0, ..config };
    config.harness.strict = true;
    let violation = crash::run(&config, &mut |_| ()).expect_err("nothing protects it");
    let again = crash::again(&config, &violation).expect("the same array");
    assert_eq!(again, *violation, "a replay gives the same log");
    violation
}

#[test]
fn plain_raid5_has_the_write_hole() {
    let violation = strictly(Level::Raid5, 4, Consistency::None);
    let text = violation.to_string();
    assert_eq!(
        violation.what.kind,
        BreachKind::Read,
        "a sector that nobody wrote is wrong: {text}"
    );
    assert_eq!(violation.program.len(), 1, "one write is enough: {text}");
    assert!(violation.steps.len() <= 4, "right after its start: {text}");
    assert!(!violation.lines.is_empty());
    strictly(Level::Raid6, 5, Consistency::None);
}

#[test]
fn a_forced_start_has_it_too_and_partial_parity_has_its_exception() {
    strictly(Level::Raid5, 4, Consistency::Resync);
    let violation = strictly(Level::Raid5, 4, PPL);
    assert!(violation.lost > 0, "only what was in flight on a lost member: {violation}");
}

#[test]
fn the_same_seed_counts_the_same() {
    let config = CrashConfig { states: 4_000, ..CrashConfig::new(Level::Raid5, 3, BITMAP) };
    let count = |config: &CrashConfig| crash::run(config, &mut |_| ()).map_err(|v| v.to_string());
    let first = count(&config);
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(first, count(&config));
    let other = CrashConfig { seed: 2, ..config };
    assert_ne!(first, count(&other));
}
