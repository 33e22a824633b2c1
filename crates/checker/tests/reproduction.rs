//! What a broken promise prints does it again, to the same log.

use raidlab_checker::reproduction::Reproduction;
use raidlab_checker::swarm::Options;

fn replay(case: &str) -> Reproduction {
    let case = case.parse().expect("a case");
    Reproduction { case, options: Options::default() }
}

#[test]
fn a_run_that_keeps_every_promise_has_a_log_too() {
    let cases = [
        "17",
        "failure:raid5:4:ppl:WriteLarge:3-Media-once",
        "failure:raid1:2:bitmap:ReAdd:none",
        "crash:raid1:2:resync:1:0:0:1.0:0",
    ];
    for case in cases {
        let (one, other) = (replay(case).again(), replay(case).again());
        assert_eq!(one.broken, None, "{case}");
        assert!(one.lines.len() > 3, "{case}: {:?}", one.lines);
        assert_eq!(one.lines, other.lines, "{case}");
    }
}

#[test]
fn steps_that_cannot_be_taken_are_told_with_the_log_so_far() {
    let ended = replay("crash:raid1:2:resync:1:0:0.99:none:end").again();
    assert!(ended.broken.expect("there is no such step").contains("panicked"));
    assert!(!ended.lines.is_empty());
    let ended = replay("crash:raid1:2:resync:1:0:0:9.9.9.9.9.9.9.9.9:0").again();
    assert!(ended.broken.expect("there is no such crash").contains("a crash decides"));
}

#[cfg(debug_assertions)]
mod planted {
    use super::*;
    use raidlab_checker::crash::CrashConfig;
    use raidlab_checker::fault_points::{FaultPointConfig, Operation};
    use raidlab_checker::part::{Choice, Part, Report, consistency, write_hole};
    use raidlab_checker::reproduction::Case;
    use raidlab_checker::swarm::Mode;
    use raidlab_core::Level;
    use raidlab_core::bugs::Bug;

    /// The case that a command names.
    fn case(command: &str) -> Case {
        let (_, case) = command.rsplit_once("--replay ").expect("a command to replay");
        case.parse().expect("a case")
    }

    /// Everything that a part finds is found by what it prints, with the same log.
    fn is_found_again(part: &Part, bug: Bug) -> Report {
        let report = part.with_bug(bug).run(&mut |_| ());
        assert!(!report.broken.is_empty(), "{}: {bug:?} is found", part.name());
        for broken in report.broken.iter().take(5) {
            let command = broken.replay.to_string();
            assert!(command.contains(&format!("--bug {} ", bug.name())), "{command}");
            let replay = Reproduction { case: case(&command), options: broken.replay.options };
            let ended = replay.again();
            assert_eq!(ended.broken.as_ref(), Some(&broken.what), "{command}");
            assert_eq!(ended.array, broken.array, "{command}");
            assert_eq!(ended.lines, broken.lines(), "{command}");
            // Without the bug the steps of a crash lead elsewhere.
            if !matches!(replay.case, Case::Crash { .. }) {
                let sound =
                    Reproduction { options: Options { bug: None, ..replay.options }, ..replay };
                assert_eq!(sound.again().broken, None, "{command} without the bug");
            }
        }
        report
    }

    #[test]
    fn failures_are_found_again() {
        let operations = [
            (Level::Raid1, 2, Mode::Bitmap, Operation::WriteSmall, Bug::TimeoutIgnored),
            (Level::Raid5, 4, Mode::PartialParity, Operation::Recover, Bug::PplAfterData),
            (Level::Raid6, 5, Mode::Resync, Operation::RepairUnknown, Bug::RepairGuesses),
        ];
        for (level, members, mode, only, bug) in operations {
            let config = FaultPointConfig::new(level, members, consistency(mode));
            let part = Part::Failures(Box::new(FaultPointConfig { only: Some(only), ..config }));
            is_found_again(&part, bug);
        }
    }

    #[test]
    fn crashes_are_found_again() {
        let bugs = [
            (Level::Raid1, 2, Mode::Bitmap, Bug::BitmapBitLate),
            (Level::Raid1, 2, Mode::Resync, Bug::RebuildCheckpointEarly),
            (Level::Raid5, 3, Mode::Journal, Bug::JournalOldestWins),
            (Level::Raid5, 3, Mode::Resync, Bug::RebuildStopsShort),
        ];
        for (level, members, mode, bug) in bugs {
            let config = CrashConfig::new(level, members, consistency(mode));
            is_found_again(&Part::Crashes(Box::new(config.clone())), bug);
            is_found_again(
                &Part::Crashes(Box::new(config.in_bytes(raidlab_checker::device::Format::Own))),
                bug,
            );
        }
    }

    #[test]
    fn seeds_are_found_again() {
        let bugs =
            [(Mode::Resync, Bug::CacheNotInvalidated), (Mode::Bitmap, Bug::StaleMemberAccepted)];
        for (mode, bug) in bugs {
            let choice = Choice { levels: Vec::new(), modes: vec![mode], format: None };
            let part = Part::Seeds { from: 0, count: 400, options: choice.swarm() };
            let report = is_found_again(&part, bug);
            let command = report.broken[0].replay.to_string();
            assert!(command.starts_with(&format!("--mode {} ", mode.name())), "{command}");
        }
    }

    #[test]
    fn a_hole_that_is_not_found_is_not_found_again() {
        let mut config = write_hole();
        // As if a log had closed it.
        config.harness.strict = false;
        config.states = 2000;
        let report = Part::Hole(Box::new(config)).run(&mut |_| ());
        assert_eq!(report.broken.len(), 1);
        assert_eq!(report.broken[0].replay.to_string(), "--replay hole");
        assert_eq!(replay("hole").again().broken, None, "as it is the hole is found");
    }
}
