//! The harness drives arrays of all levels, and its oracle notices what is wrong.

use raidlab_checker::breach::BreachKind;
use raidlab_checker::choices::Choices;
use raidlab_checker::harness::{Ask, Fault, Harness, HarnessConfig, Started};
use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Admin, IoOp, Outcome};
use raidlab_core::{Config, Layout, Level, Limits, MemberIndex, Sectors};

fn config(level: Level, members: u16) -> HarnessConfig {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout = layout.with_chunk(Sectors(2));
    }
    let mut config = Config::uniform(layout, Sectors(8));
    config.limits = Limits { requests: 4, segments: 2, ios: 16, plans: 4, windows: 1 };
    HarnessConfig { lines: true, ..HarnessConfig::new(config) }
}

const ALL: [(Level, u16); 8] = [
    (Level::Linear, 2),
    (Level::Raid0, 3),
    (Level::Raid1, 2),
    (Level::Raid3, 3),
    (Level::Raid4, 4),
    (Level::Raid5, 4),
    (Level::Raid6, 5),
    (Level::Raid10, 4),
];

fn random_ask(harness: &Harness, choices: &mut Choices) -> Ask {
    let (block, capacity) = (harness.shape().logical_block, harness.shape().capacity);
    let op = match choices.below(8) {
        0..4 => IoOp::Write,
        4..6 => IoOp::Read,
        6 => IoOp::WriteZeroes,
        _ => IoOp::Flush,
    };
    if op == IoOp::Flush {
        return Ask { op, at: 0, len: 0, fua: false };
    }
    let blocks = (capacity / block) as u32;
    let at = u64::from(choices.below(blocks)) * block;
    let len = (u64::from(choices.below(6)) + 1) * block;
    Ask { op, at, len: len.min(capacity - at), fua: op == IoOp::Write && choices.flip() }
}

/// Requests in any number at once, I/O ending in any order.
fn churn(harness: &mut Harness, choices: &mut Choices, steps: u32) {
    for _ in 0..steps {
        let outstanding = harness.outstanding() as u32;
        if harness.can_submit() && choices.below(outstanding + 2) == 0 {
            let ask = random_ask(harness, choices);
            harness.submit(ask);
        } else if outstanding > 0 {
            harness.finish(choices.below(outstanding) as usize, Fault::None);
        }
    }
    harness.run();
    assert_eq!(harness.violation(), None, "{}", harness.log().lines().join("\n"));
    assert_eq!(harness.unanswered(), 0);
}

#[test]
fn every_level_keeps_its_data_in_any_order() {
    for (level, members) in ALL {
        for seed in 0..20 {
            let mut harness = Harness::new(config(level, members)).expect("a possible array");
            let mut choices = Choices::seeded(seed);
            churn(&mut harness, &mut choices, 300);
            let all = (1 << members) - 1;
            assert_eq!(harness.disagreement(all), None, "{level} seed {seed}");
            assert!(harness.replies().iter().all(|answer| answer.outcome == Outcome::Done));
            for at in (0..harness.shape().capacity).step_by(harness.shape().logical_block as usize)
            {
                let len = harness.shape().logical_block;
                assert_eq!(harness.read(at, len), Outcome::Done);
                assert_eq!(harness.violation(), None);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let hash = |seed| {
        let mut harness = Harness::new(config(Level::Raid6, 5)).expect("a possible array");
        churn(&mut harness, &mut Choices::seeded(seed), 200);
        harness.log().hash()
    };
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn a_lost_write_is_noticed() {
    let mut harness = Harness::new(config(Level::Raid0, 2)).expect("a possible array");
    harness.submit(Ask { op: IoOp::Write, at: 0, len: 1, fua: false });
    harness.finish(0, Fault::Lost);
    assert_eq!(harness.read(0, 1), Outcome::Done);
    let violation = harness.violation().expect("the drive lied, and nothing can mend that");
    assert!(violation.text.contains("sector 0"), "{violation}");
    assert_eq!(violation.kind, BreachKind::Read);
}

#[test]
fn a_copy_goes_on_by_itself() {
    let mut harness = Harness::new(config(Level::Raid5, 4)).expect("a possible array");
    harness.submit(Ask { op: IoOp::Write, at: 0, len: 3, fua: false });
    let mut copy = harness.clone();
    assert_eq!(copy.key(), harness.key());
    copy.run();
    assert_ne!(copy.key(), harness.key());
    assert!(copy.unanswered() == 0 && harness.unanswered() == 1);
    copy.clone_from(&harness);
    assert_eq!(copy.key(), harness.key());
}

#[test]
fn after_a_crash_without_redundancy_each_sector_is_old_or_new() {
    for seed in 0..50 {
        let mut harness = Harness::new(config(Level::Raid1, 2)).expect("a possible array");
        let mut choices = Choices::seeded(seed);
        for _ in 0..20 {
            let outstanding = harness.outstanding() as u32;
            if harness.can_submit() && choices.flip() {
                let ask = random_ask(&harness, &mut choices);
                harness.submit(ask);
            } else if outstanding > 0 {
                harness.finish(choices.below(outstanding) as usize, Fault::None);
            }
        }
        harness.crash(|ways| choices.below(ways));
        assert_eq!(harness.assemble(0, Allow::default()), Started::Well);
        assert_eq!(harness.read(0, harness.shape().capacity), Outcome::Done);
        assert_eq!(harness.violation(), None, "seed {seed}");
        harness.command(Admin::Fail(MemberIndex(0)));
        assert_eq!(harness.read(0, harness.shape().capacity), Outcome::Done);
        assert_eq!(harness.violation(), None, "seed {seed}");
    }
}
