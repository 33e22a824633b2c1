//! Every member I/O of every operation fails in turn, on every level and consistency mode.

use raidlab_checker::fault_points::{self, FaultPointConfig, FaultPointCounts, Operation};
use raidlab_core::{Consistency, Layout, Level, Sectors};

const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(2) };
const PPL: Consistency = Consistency::PartialParity { slots: 6 };
const JOURNAL: Consistency = Consistency::Journal { sectors: Sectors(64) };

fn fail_each(config: &FaultPointConfig) -> FaultPointCounts {
    fault_points::run(config, &mut |_| ()).unwrap_or_else(|broken| panic!("{broken}"))
}

fn has(counts: &FaultPointCounts, operation: Operation) -> bool {
    counts.operations.iter().any(|(known, ios, _)| *known == operation && *ios > 0)
}

#[test]
fn every_io_of_every_operation_fails_once_and_for_good() {
    let levels = [
        (Level::Linear, 2),
        (Level::Raid0, 3),
        (Level::Raid1, 2),
        (Level::Raid1, 3),
        (Level::Raid3, 3),
        (Level::Raid4, 4),
        (Level::Raid5, 4),
        (Level::Raid6, 5),
        (Level::Raid10, 4),
    ];
    for (level, members) in levels {
        let counts = fail_each(&FaultPointConfig::new(level, members, Consistency::None));
        assert!(has(&counts, Operation::Read) && has(&counts, Operation::WriteLarge));
        let redundant = !matches!(level, Level::Linear | Level::Raid0);
        for operation in [Operation::Rebuild, Operation::Replace, Operation::Repair] {
            assert_eq!(has(&counts, operation), redundant, "{level} {operation:?}");
        }
    }
}

/// An operation that an array has, and refuses, is a broken promise, and one it has not is none.
#[test]
fn operations_that_an_array_does_not_have_are_refused() {
    use Operation::{Degraded, ReAdd, ReAddOld, RepairUnknown, Replace};
    let refused = |level, members, mode| {
        let config = FaultPointConfig { most: 0, ..FaultPointConfig::new(level, members, mode) };
        fail_each(&config).skipped
    };
    assert!(refused(Level::Raid0, 3, Consistency::None).contains(&Degraded));
    assert_eq!(refused(Level::Raid6, 5, BITMAP), [ReAddOld]);
    assert_eq!(refused(Level::Raid5, 4, PPL), [ReAdd, RepairUnknown, ReAddOld]);
    let config = FaultPointConfig::new(Level::Raid1, 2, BITMAP);
    let config = FaultPointConfig { most: 0, only: Some(Replace), ..config };
    assert_eq!(fail_each(&config).skipped, []);
}

#[test]
fn copies_fail_wherever_they_lie() {
    let layouts = ["far2", "offset2", "near2 far2", "near2 offset2", "far2 sets"];
    for words in layouts {
        let layout: Layout = format!("raid10(4) {words}").parse().expect("is a layout");
        for mode in [Consistency::None, BITMAP] {
            let config = FaultPointConfig::of(layout.clone(), mode);
            let counts = fail_each(&config);
            use Operation::{Check, Heal, Rebuild, Repair, Replace};
            for operation in [Heal, Rebuild, Replace, Check, Repair] {
                assert!(has(&counts, operation), "{layout} {operation:?}");
            }
            let restarts = mode != Consistency::None;
            assert_eq!(has(&counts, Operation::Recover), restarts, "{layout} {mode:?}");
            assert_eq!(has(&counts, Operation::ReAdd), mode == BITMAP, "{layout} {mode:?}");
        }
    }
}

#[test]
fn records_fail_too() {
    let configs = [
        (Level::Raid1, 2, BITMAP),
        (Level::Raid10, 4, BITMAP),
        (Level::Raid5, 4, Consistency::Resync),
        (Level::Raid5, 4, PPL),
        (Level::Raid6, 5, JOURNAL),
    ];
    for (level, members, mode) in configs {
        let counts = fail_each(&FaultPointConfig::new(level, members, mode));
        assert!(has(&counts, Operation::Recover), "{level} {mode:?}");
        assert_eq!(has(&counts, Operation::ReAdd), mode == BITMAP, "{level} {mode:?}");
    }
}

#[test]
fn pairs_of_failures_leave_two_parities_and_mirrors_right() {
    for (level, members) in [(Level::Raid1, 3), (Level::Raid10, 4)] {
        let config = FaultPointConfig {
            most: 12,
            pairs: true,
            ..FaultPointConfig::new(level, members, BITMAP)
        };
        assert!(fail_each(&config).runs > 3_000);
    }
    let config = FaultPointConfig::new(Level::Raid6, 5, Consistency::None);
    assert!(fail_each(&FaultPointConfig { most: 12, pairs: true, ..config }).runs > 3_000);
}
