//! Pacing of rebuilds from the study to the figure: what theory says of a rebuild alone, and that less pacing is faster
//! and costs more.

use raidlab_core::Nanos;
use raidlab_core::contract::{Admin, Pacing};
use raidlab_explore::throttle::{Outcome, Policy, Setting, run, without};
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, State, Study, parse};

const STUDY: &str = r#"
title = "A rebuild"
rounds = 1
max_rounds = 1
drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
layouts = [{ level = "raid1", members = 2 }, { level = "raid5", members = 4 }]
[[workloads]]
kind = "fio"
name = "paced"
rw = "randread"
bs = "8k"
size = "4g"
number_ios = 150
thinktime = 100000
"#;

/// The same with a raid10 of four in the mirror's place.
fn of_raid10() -> Study {
    let text =
        STUDY.replace("{ level = \"raid1\", members = 2 }", "{ level = \"raid10\", members = 4 }");
    parse(&text, "raid10").expect("is right")
}

fn key(layout: usize, workload: usize) -> CellKey {
    let processes = if workload == 0 { 4 } else { 0 };
    CellKey { layout, workload, processes, state: State::Rebuilding, again: false }
}

/// A rebuild that nothing disturbs takes one pass over the drive. Tracks take a turn each, so the pass takes
/// 2 B / (o + i); a rate that falls evenly with the address, B ln(o/i) / (o - i), would be 4 % more. With parity the
/// members wait for each other here and there.
#[test]
fn a_rebuild_alone_is_a_full_pass() {
    let study = parse(STUDY, "rebuild").expect("is right");
    let sectors = 16_000_000;
    let modelled = Modelled::unchecked(&study, HostCosts::default()).expect("drives");
    let small = |drive: raidlab_models::DriveSpec| {
        drive
            .with_amounts(&[("capacity", sectors, "a small one"), ("heads", 1, "of one surface")])
            .expect("can be")
    };
    let modelled = modelled.with(small, |costs| costs);
    let pass = sectors as f64 * 512.0 / 190e6;
    for (layout, off) in [(0, 0.02), (1, 0.05)] {
        let mut world = modelled.world_in(layout, State::Rebuilding, 7).expect("a world");
        let (least, most) = (u64::MAX, u64::MAX);
        world.command(Admin::Pace(Pacing::between(least, most)));
        let sample = modelled.run_on(&mut world, &key(layout, 1), 7).expect("runs");
        let seconds = sample.values[0].expect("a time");
        assert!((seconds / pass - 1.0).abs() < off, "{seconds} s, a pass takes {pass} s");
    }
}

/// A raid10 of md begins with 32 MiB at once, for which the most makes it sleep half a minute, longer than the run. A
/// share of the time rests likewise.
#[test]
fn what_is_begun_at_once_counts_with_the_sleep_that_follows() {
    let study = of_raid10();
    let modelled = Modelled::new(&study, HostCosts::default()).expect("drives");
    let of = |setting: Setting| run(&modelled, &key(0, 0), setting, 3).expect("runs").hours;
    for rate in [1_000, 2_000, 5_000] {
        let hours = 8_001_563_222_016.0 / (rate << 10) as f64 / 3_600.0;
        let found = of(Setting::Most(rate));
        assert!((found / hours - 1.0).abs() < 0.1, "{rate}: {found} h against {hours} h");
    }
    let (tenth, fifth) = (of(Setting::Share(10)), of(Setting::Share(20)));
    assert!((tenth / fifth / 2.0 - 1.0).abs() < 0.1, "{tenth} h against {fifth} h");
}

/// What requests take after a rebuild has ended says nothing of what they take beside one.
#[test]
fn a_rebuild_that_ends_early_leaves_no_figures_of_the_foreground() {
    let of = |member_size: &str| {
        let text = STUDY
            .replace("\nrounds = 1\n", &format!("\nrounds = 1\nmember_size = \"{member_size}\"\n"));
        let text = text.replace("size = \"4g\"", "size = \"32m\"");
        let study = parse(&text, "small").expect("is right");
        let modelled = Modelled::new(&study, HostCosts::default()).expect("drives");
        run(&modelled, &key(1, 0), Setting::Share(100), 3).expect("runs")
    };
    let (early, later) = (of("64MiB"), of("64GiB"));
    assert!(early.hours > 0.0 && early.hours < 0.01, "{early:?}");
    assert!(early.tail.is_nan() && early.rate.is_nan(), "{early:?}");
    assert!(later.tail > 0.0 && later.rate > 0.0, "{later:?}");
}

/// A hot spare would take the lost drive's place at once, and the runs without a rebuild were runs beside one.
#[test]
fn without_a_rebuild_no_spare_stands_by() {
    let text = STUDY.replace("members = 4 }", "members = 4, spares = 1 }");
    let spared = parse(&text.replace("count = 4", "count = 5"), "spared").expect("is right");
    let plain = parse(STUDY, "plain").expect("is right");
    let [plain, spared] = [&plain, &spared].map(|study| {
        let modelled = Modelled::new(study, HostCosts::default()).expect("drives");
        without(&modelled, &key(1, 0), 3).expect("runs")
    });
    assert_eq!(plain, spared);
}

/// Between what the floor gives and what all room does, feedback's p99 is the one that is wanted, also over a run of
/// 600 requests of which six may be late, and its rebuild takes no longer than by md's rate of a longer p99.
#[test]
fn feedback_holds_what_can_be_held() {
    let study = of_raid10();
    let modelled = Modelled::new(&study, HostCosts::default()).expect("drives");
    let median = |layout, setting: Setting, figure: fn(&Outcome) -> f64| {
        let run = |seed| figure(&run(&modelled, &key(layout, 0), setting, seed).expect("runs"));
        let mut all: Vec<f64> = (0..5).map(run).collect();
        all.sort_by(f64::total_cmp);
        all[2]
    };
    for (layout, millis, least) in [(0, 33, 0.85), (0, 40, 0.85), (1, 42, 0.85), (1, 60, 0.8)] {
        let wanted = Setting::Target(Nanos::from_millis(millis));
        let ratio = median(layout, wanted, |run| run.tail) * 1e3 / millis as f64;
        assert!((least..1.06).contains(&ratio), "layout {layout}, {millis} ms: {ratio} times");
    }
    let hours = |setting| median(0, setting, |run| run.hours);
    let (ours, md) = (hours(Setting::Target(Nanos::from_millis(40))), hours(Setting::Most(50_000)));
    assert!(ours < md, "{ours} h with a p99 of 40 ms, {md} h at 50 MB/s with one of 150 ms");
}

/// What is wanted is a p99 of reads and writes: flushes, which take longer than any of these, are no reason to rebuild
/// slower.
#[test]
fn feedback_hears_of_reads_and_writes_only() {
    let text = STUDY.replace("rw = \"randread\"", "rw = \"randwrite\"\nfsync = 2");
    let text = text.replace("nas-8tb-7200", "ssd-sata-1tb").replace("thinktime = 100000\n", "");
    let study = parse(&text.replace("number_ios = 150", "number_ios = 1000"), "flushes");
    let study = study.expect("is right");
    let modelled = Modelled::new(&study, HostCosts::default()).expect("drives");
    let target = 3.0 * without(&modelled, &key(1, 0), 3).expect("runs").tail;
    let tail = |nanos| {
        let setting = Setting::Target(Nanos(nanos));
        run(&modelled, &key(1, 0), setting, 3).expect("runs").tail
    };
    let (floor, found) = (tail(1), tail((target * 1e9) as u64));
    assert!(floor < 0.9 * target, "there is room above the floor: {floor} {target}");
    // If flushes were heard of, nothing would be within the target, and it stayed at the floor.
    assert!(found > 1.02 * floor && found < 1.1 * target, "{found} for {target}, floor {floor}");
}

#[test]
fn a_faster_rebuild_costs_the_foreground_more() {
    let study = parse(STUDY, "rebuild").expect("is right");
    let modelled = Modelled::new(&study, HostCosts::default()).expect("drives");
    let of = |setting: Setting| run(&modelled, &key(1, 0), setting, 3).expect("runs");
    let alone = without(&modelled, &key(1, 0), 3).expect("runs");
    let shares = [5, 30, 100].map(|share| of(Setting::Share(share)));
    for pair in shares.windows(2) {
        assert!(pair[0].hours > 1.3 * pair[1].hours, "{shares:?}");
        assert!(pair[0].tail < 1.05 * pair[1].tail, "{shares:?}");
    }
    assert!(alone.tail < shares[2].tail);
    // Four readers that think for a tenth of a second each: less than 40 requests a second, and most of them.
    for one in shares.iter().chain([&alone]) {
        assert!((20.0..40.0).contains(&one.rate), "{one:?}");
    }
    // Half of the time is between: 50 % within the curve's ends, and md's most is a rate.
    let capped = of(Setting::Most(20_000));
    let hours = 8_001_563_222_016.0 / 20_480_000.0 / 3_600.0;
    assert!((capped.hours / hours - 1.0).abs() < 0.1, "{} h against {hours} h", capped.hours);
    // Feedback holds what it can: a target that nothing reaches leaves it at its floor, of which a range at a time
    // makes more than all ranges at once with the rests that those need; one that everything reaches gives it all room
    // once that is found.
    let target = |nanos| of(Setting::Target(Nanos(nanos)));
    let (floor, whole) = (target(1_000), target(u64::MAX));
    assert!((0.5..1.05).contains(&(floor.hours / shares[0].hours)), "{floor:?} {:?}", shares[0]);
    assert_eq!(floor, of(Setting::Floor));
    assert!((0.8..1.3).contains(&(whole.hours / shares[2].hours)), "{whole:?} {:?}", shares[2]);
    assert_eq!(Policy::ALL.map(Policy::name).len(), 6);
}
