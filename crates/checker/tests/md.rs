//! All of it through the bytes of Linux md's metadata.

use raidlab_checker::crash::{self, CrashConfig};
use raidlab_checker::device::Format;
use raidlab_checker::fault_points::{self, FaultPointConfig, Operation};
use raidlab_checker::part::Choice;
use raidlab_checker::reproduction::{Case, Reproduction};
use raidlab_checker::swarm::{self, Mode, Options};
use raidlab_core::{Consistency, Level, Sectors};

/// The versions of md, each with a mode.
fn versions() -> impl Iterator<Item = (Format, Consistency)> {
    let bitmap = Consistency::Bitmap { chunk: Sectors(2) };
    let modes = [Consistency::Resync, bitmap].into_iter().cycle();
    Format::ALL.into_iter().filter(|format| *format != Format::Own).zip(modes)
}

fn kept(case: Case, format: Option<Format>) {
    kept_with(case, Options { format, ..Options::default() });
}

fn kept_with(case: Case, options: Options) {
    let format = options.format;
    let ended = Reproduction { case: case.clone(), options }.again();
    assert_eq!(ended.broken, None, "{case} {format:?}: {:#?}", ended.lines);
}

#[test]
fn md_keeps_every_promise_at_every_crash() {
    for (format, mode) in versions() {
        for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 3)] {
            let config = CrashConfig { states: 400, ..CrashConfig::new(level, members, mode) };
            let config = config.in_bytes(format);
            let counts = crash::run(&config, &mut |_| ());
            let counts = counts.unwrap_or_else(|broken| panic!("{broken}"));
            assert!(counts.distinct > 100, "{}: {counts:?}", config.name());
        }
    }
}

/// md's logs of partial parity, several headers and one, and its journal.
fn logs() -> impl Iterator<Item = (Format, Mode)> {
    let [_, _, v1_0, v1_1, v1_2] = Format::ALL;
    let of = |mode| move |format| (format, mode);
    let partial = [v1_0, v1_1, v1_2].map(of(Mode::PartialParity));
    partial.into_iter().chain([v1_1, v1_2].map(of(Mode::Journal)))
}

#[test]
fn md_s_logs_keep_every_promise_at_every_crash() {
    for (format, mode) in logs() {
        let consistency = raidlab_checker::part::consistency(mode);
        let config = CrashConfig { states: 250, ..CrashConfig::new(Level::Raid5, 3, consistency) };
        let config = config.in_bytes(format);
        let counts = crash::run(&config, &mut |_| ());
        let counts = counts.unwrap_or_else(|broken| panic!("{broken}"));
        assert!(counts.distinct > 100, "{}: {counts:?}", config.name());
    }
}

#[test]
fn md_s_logs_keep_every_promise_whatever_fails() {
    for (format, mode) in logs() {
        let consistency = raidlab_checker::part::consistency(mode);
        for only in [Operation::WriteLarge, Operation::Recover] {
            let config = FaultPointConfig::new(Level::Raid5, 4, consistency).in_bytes(format);
            let config = FaultPointConfig { only: Some(only), ..config };
            let ended = fault_points::run(&config, &mut |_| ());
            ended.unwrap_or_else(|broken| panic!("{broken}"));
        }
    }
}

#[test]
fn md_s_logs_keep_every_promise_in_the_swarm() {
    for (format, mode) in logs() {
        let options = Options { format: Some(format), mode: Some(mode), ..Options::default() };
        for seed in 0..15 {
            swarm::run(seed, &options).unwrap_or_else(|broken| panic!("{format:?}: {broken}"));
        }
    }
}

/// What these seeds broke with partial parity: headers that could not be read at a start and were taken for the newest
/// at the next; a stop before anything was consistent, taken for a power cut; a header that found no room and left a
/// gap. And a chunk that a list of bad blocks names, which was being written: it was expected.
#[test]
fn seeds_that_broke_a_promise_of_partial_parity_keep_it() {
    let (format, mode) = (Some(Format::ALL[4]), Some(Mode::PartialParity));
    for seed in [29, 10_978, 15_967, 33_577, 49_083, 40_351] {
        kept_with(Case::Seed(seed), Options { format, mode, ..Options::default() });
    }
}

/// The same with a journal: a member that was left out at a start, and came back after a power cut without what had
/// been replayed meanwhile; a page that could not be read while data that stood alone were replayed. And copies of log
/// devices, which nobody can tell, and raid6 without one of its parities, of which too much was expected.
#[test]
fn seeds_that_broke_a_promise_of_the_journal_keep_it() {
    let (format, mode) = (Some(Format::ALL[4]), Some(Mode::Journal));
    for (level, seed) in
        [(Level::Raid5, 1280), (Level::Raid6, 558), (Level::Raid5, 266), (Level::Raid6, 105)]
    {
        let level = Some(level);
        kept_with(Case::Seed(seed), Options { format, mode, level, ..Options::default() });
    }
}

/// In these seeds a write to the log device fails, and the power goes before any superblock says so: the array uses it
/// again, and the checker took it away at the last start, since it had failed once, and expected nothing of that.
#[test]
fn a_log_device_that_is_used_again_has_not_failed() {
    for seed in [40_035_994, 40_150_512, 40_190_704, 40_212_353] {
        kept(Case::Seed(seed), Some(Format::ALL[3]));
    }
    let (format, mode) = (Some(Format::ALL[3]), Some(Mode::Journal));
    for seed in [40_006_374, 40_009_175, 40_015_610] {
        let level = Some(Level::Raid6);
        kept_with(Case::Seed(seed), Options { format, mode, level, ..Options::default() });
    }
}

/// Of a row of raid6 data stood in the journal with P and Q, and others alone behind them, as P was out of service by
/// then. All of it was durable when the power went; then Q of the first was written, and a member that was being
/// rebuilt was computed of it and of the others.
#[test]
fn parity_that_is_older_than_data_behind_it_is_not_computed_with() {
    let format = Some(Format::ALL[3]);
    kept(Case::Seed(40_120_833), format);
    for seed in [40_001_993, 40_012_719] {
        let mode = Some(Mode::Journal);
        kept_with(Case::Seed(seed), Options { format, mode, ..Options::default() });
    }
}

/// Only one member was told that another one is out of service when the journal was replayed without that one, and then
/// it was lost: the others had the other one in service.
#[test]
fn all_are_told_who_is_out_before_a_journal_is_replayed() {
    for format in &Format::ALL[3..] {
        kept(Case::Seed(20_062_293), Some(*format));
    }
}

/// A member had no room for its list of bad blocks, and when it had some, its superblock alone was written again: after
/// the next start the listed blocks were read.
#[test]
fn a_list_that_found_no_room_is_written_before_its_superblock() {
    kept(Case::Seed(30_027_545), Some(Format::ALL[4]));
}

/// A replacement had taken over, which one member alone was told of, and another one was left out: what the others were
/// told of that was what they knew before.
#[test]
fn a_replacement_that_took_over_is_known_when_a_member_is_left_out() {
    let steps = ["0"].into_iter().chain(std::iter::repeat_n("2", 37)).collect::<Vec<_>>().join(".");
    let case = format!("crash:raid5:3:journal+1.2:1:14:{steps}:0.0.1:2");
    kept(case.parse().expect("a crash"), None);
}

#[test]
fn md_keeps_every_promise_whatever_fails() {
    for (format, mode) in versions() {
        for only in
            [Operation::WriteSmall, Operation::Rebuild, Operation::ReAdd, Operation::Replace]
        {
            let config = FaultPointConfig::new(Level::Raid1, 2, mode).in_bytes(format);
            let config = FaultPointConfig { only: Some(only), ..config };
            let ended = fault_points::run(&config, &mut |_| ());
            ended.unwrap_or_else(|broken| panic!("{broken}"));
        }
    }
}

#[test]
fn md_keeps_every_promise_in_the_swarm() {
    for (format, _) in versions() {
        let options = Options { format: Some(format), ..Options::default() };
        for seed in 0..20 {
            swarm::run(seed, &options).unwrap_or_else(|broken| panic!("{format:?}: {broken}"));
        }
    }
}

/// What these seeds broke: a drive that waited for its rebuild and was taken for member 0; a replacement that nobody
/// named; two devices with one number; a bitmap whose bits could not be read; a device that was cut off and came back;
/// a spare that knew that all members had failed. And a copy that nobody could tell, of which it was expected.
#[test]
fn seeds_that_broke_a_promise_of_md_keep_it() {
    let [v0, _, _, v2] = [1, 2, 3, 4].map(|index| Some(Format::ALL[index]));
    for (seed, format) in [
        (87_414, v2),
        (89_015, v2),
        (741, v0),
        (2399, v0),
        (5825, v0),
        (9196, v2),
        (9070, v2),
        (501, v2),
        (128_725, v2),
        (45_015, v2),
        (51_495, v0),
    ] {
        kept(Case::Seed(seed), format);
    }
}

/// Seeds that a million of 0.90 found: a discard that was not flushed before parity was written beside it; a member
/// that was being rebuilt and is gone with what it alone had; two members that were mended in turns for ever; spares
/// that alone were told; a member that was left out, and came back with as many events as those that went on. Of the
/// last four a start repeated the newest superblock otherwise than it was.
#[test]
fn seeds_that_broke_a_promise_of_the_oldest_version_keep_it() {
    for seed in [5_062_909, 5_158_469, 5_886_778, 5_270_517, 5_451_161, 5_924_858, 5_667_635] {
        kept(Case::Seed(seed), Some(Format::ALL[1]));
    }
}

/// In these seeds of the own format the bit of a superblock that had turned over was chosen again, which mended it.
#[test]
fn a_superblock_is_damaged_once() {
    for seed in [2685, 15_411] {
        kept(Case::Seed(seed), Some(Format::Own));
    }
}

/// Of 0.90 a spare was told that a member had failed, nobody else was, and a start without the spare's word used that
/// member; with all others gone then, the spare's word counts, until it is left out by command.
#[test]
fn a_state_that_only_a_spare_was_told_of_ends_when_the_spare_is_left_out() {
    let case = "crash:raid1:3:resync+0.90:1:13.11:0.0.2.2.2:0.1.0:0";
    kept(case.parse().expect("a crash"), None);
}

/// In these seeds a rebuild loses blocks, and the array is started again: without the list of bad blocks what happened
/// to stand there is read.
#[test]
fn what_a_rebuild_lost_stays_lost() {
    for seed in [2289, 4830, 7540] {
        kept(Case::Seed(seed), Some(Format::ALL[4]));
    }
}

#[test]
fn what_md_does_not_have_is_named() {
    let of = |levels: &[Level], modes: &[Mode], format| Choice {
        levels: levels.to_vec(),
        modes: modes.to_vec(),
        format: Some(format),
    };
    let [own, v0, ..] = Format::ALL;
    assert_eq!(of(&[Level::Raid3], &[], v0).not_kept(), Some("raid3".into()));
    assert_eq!(of(&[Level::Raid5], &[Mode::PartialParity], v0).not_kept(), Some("ppl".into()));
    assert_eq!(of(&[], &[Mode::Journal], v0).not_kept(), Some("journal".into()));
    assert_eq!(of(&[], &[Mode::None], own).not_kept(), Some("none".into()));
    assert_eq!(of(&[Level::Raid3], &[Mode::Resync], own).not_kept(), None);
    assert_eq!(of(&[Level::Raid6], &[Mode::Bitmap], v0).not_kept(), None);
    // Whatever is left is run.
    let all = Choice { format: Some(v0), ..Choice::default() };
    let names: Vec<String> = all.crashes().map(|config| config.name()).collect();
    assert_eq!(names.len(), 16, "{names:?}");
    assert_eq!(names[1], "raid1(2) bitmap md 0.90");
    assert_eq!(all.crashes_in_bytes(1 << 20).count(), 0);
}
