//! An md array gets a journal while it does not run: whatever a power cut leaves of that, it starts with the log
//! device, holds what it held, and goes on with the journal or without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use raidlab_core::{Consistency, Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, add_md_journal};
use raidlab_metadata::md::journal::least;
use raidlab_metadata::md::{
    Allowed, Creation, Device, Features, Made, Role, Version, WantedBitmap, Why, inspect, join,
};

use crate::extent::Extent;
use crate::held::{Bench, Drive, Left, SECTOR, Values, made_image};
use crate::made::creation;
use crate::md_journal_replay::{Limited, left};

const SECTORS: u64 = 6144;
/// Sectors of the array that are written.
const WRITTEN: usize = 400;
/// Sectors of a log device.
const LOG: usize = 2048 + 1024;

/// The bytes of the devices of a new array, spares behind the members.
fn images(creation: &Creation) -> Vec<Vec<u8>> {
    let plan = creation.plan().unwrap();
    let image = |made: &Made| made_image(made, SECTORS);
    plan.members.iter().flatten().chain(&plan.spares).map(image).collect()
}

/// An array of a seed that was written and stopped, and with what its log device begins; how many members it has.
fn stopped(seed: u64) -> (Bench, usize) {
    let layouts = ["raid5(3) chunk=16K", "raid6(4) chunk=16K", "raid4(4) chunk=4K"];
    let layout: Layout = layouts[(seed % 3) as usize].parse().unwrap();
    let version = [Version::V1_2, Version::V1_1][(seed / 3 % 2) as usize];
    let spares = (0..seed % 2).map(|_| Device { sectors: Sectors(SECTORS), id: [0x55; 16] });
    let members = usize::from(layout.members);
    let creation = Creation { version, spares: spares.collect(), ..creation(layout, SECTORS) };
    let mut bench = Bench::new(images(&creation), WRITTEN, seed);
    bench.unit = 8;
    let mut engine = bench.start(&[]).unwrap();
    let bytes: Vec<u8> = (0..WRITTEN).flat_map(|at| [at as u8 | 1; SECTOR]).collect();
    engine.write_at(Sector(0), &bytes).unwrap();
    bench.believe(&mut engine);
    engine.stop().unwrap();
    // Something of before.
    bench.drives.push(Drive::new(&vec![0x3c; LOG * SECTOR]));
    (bench, members)
}

/// Gives it a journal on its last drive, by so many writes more; whether it came to its end.
fn add(bench: &Bench, most: u64) -> Result<(), String> {
    let writes = Arc::new(AtomicU64::new(most));
    let limited = |drive: &Drive| Member::from(Limited(drive.clone(), Arc::clone(&writes)));
    let (log, devices) = bench.drives.split_last().unwrap();
    let mut devices: Vec<Member> = devices.iter().map(limited).collect();
    let added = add_md_journal(&mut devices, &mut limited(log), true);
    added.map(drop).map_err(|error| error.to_string())
}

fn images_of(bench: &mut Bench) -> Vec<Vec<u8>> {
    bench.drives.iter().map(|drive| drive.cut(&mut bench.random)).collect()
}

/// Starts the array, and tells how it is kept consistent.
fn start(bench: &mut Bench, lost: &[usize], told: &str) -> (Engine, Consistency) {
    let there = bench.drives.iter().enumerate().filter(|(number, _)| !lost.contains(number));
    let there = there.map(|(_, drive)| inspect(&mut Member::from(drive.clone())));
    let joined = join(&there.collect::<Vec<_>>(), &Allowed::default());
    let joined = joined.unwrap_or_else(|why| panic!("{told}: {why}"));
    let engine = bench.start(lost).unwrap_or_else(|why| panic!("{told}: {why}"));
    assert_eq!(engine.beginning().resync, Sectors(0), "{told}");
    (engine, joined.consistency)
}

/// What it holds is what it held.
fn compare(bench: &mut Bench, engine: &mut Engine, told: &str) {
    let found = bench.read(engine);
    bench.compare(&found, None, told);
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
}

/// An array that was about to get a journal and was cut off after so many writes, and started.
struct Cut {
    told: String,
    most: u64,
    left: Vec<Vec<u8>>,
    model: Vec<Values>,
    is_journalled: bool,
}

/// Does it with the array of a bench for every number of writes; how often it had no journal then, and how often one.
fn at_every_cut(
    bench: &mut Bench,
    seed: u64,
    check: impl Fn(&mut Bench, Engine, Cut),
) -> [usize; 2] {
    let (before, model) = (images_of(bench), bench.model.clone());
    let (mut counts, mut most) = ([0; 2], 0);
    loop {
        let told = format!("seed {seed}, after {most} writes");
        bench.restart(Left { images: before.clone() });
        bench.model = model.clone();
        let added = add(bench, most);
        let left = images_of(bench);
        bench.restart(Left { images: left.clone() });
        let (engine, by) = start(bench, &[], &told);
        let is_journalled = matches!(by, Consistency::Journal { .. });
        assert!(is_journalled || added.is_err(), "{told}");
        counts[usize::from(is_journalled)] += 1;
        check(bench, engine, Cut { told, most, left, model: model.clone(), is_journalled });
        if added.is_ok() {
            return counts;
        }
        most += 1;
    }
}

#[test]
fn an_array_gets_a_journal_and_is_cut_off_anywhere() {
    let (mut without, mut with) = (0, 0);
    for seed in Extent::from_environment().seeds(6, 10) {
        let (mut bench, members) = stopped(seed);
        let log = bench.drives.len() - 1;
        let counts = at_every_cut(&mut bench, seed, |bench, mut engine, cut| {
            let Cut { told, most, left, model, is_journalled } = cut;
            compare(bench, &mut engine, &told);
            // It is used, and cut off in the midst of that, with a member lost where that is to be survived.
            let cut = bench.live(engine, 200);
            bench.restart(cut);
            let lost: &[usize] = if is_journalled { &[(most as usize) % members] } else { &[] };
            let mut engine = bench.start(lost).unwrap_or_else(|why| panic!("{told}: {why}"));
            let found = bench.read(&mut engine);
            bench.compare(&found, None, &format!("{told}, used"));
            drop(engine);
            // Without the log device it asks before it goes on where members know of it, and has lost nothing.
            bench.restart(Left { images: left });
            bench.model = model;
            if is_journalled {
                let why = bench.start(&[log]).unwrap_err();
                assert!(why.contains("its journal is not among the devices"), "{told}: {why}");
            }
            bench.allowed.ignore_journal = is_journalled;
            let mut engine = bench.start(&[log]).unwrap_or_else(|why| panic!("{told}: {why}"));
            compare(bench, &mut engine, &format!("{told}, without"));
            bench.allowed.ignore_journal = false;
        });
        (without, with) = (without + counts[0], with + counts[1]);
    }
    assert!(without > 10 && with > 20, "{without} {with}");
}

/// An array of a seed that lost a member, was written without it and stopped, with what its log device begins. The
/// member's drive is gone, or there as it was when it failed.
fn degraded(seed: u64) -> Bench {
    let layouts = ["raid5(3) chunk=16K", "raid6(4) chunk=16K", "raid4(4) chunk=4K"];
    let layout: Layout = layouts[(seed % 3) as usize].parse().unwrap();
    let out = seed % u64::from(layout.members);
    let mut bench = Bench::new(images(&creation(layout, SECTORS)), WRITTEN, seed);
    bench.unit = 8;
    let mut engine = bench.start(&[]).unwrap();
    engine.fail(MemberIndex(out as u16)).unwrap();
    let bytes: Vec<u8> = (0..WRITTEN).flat_map(|at| [at as u8 | 1; SECTOR]).collect();
    engine.write_at(Sector(0), &bytes).unwrap();
    bench.believe(&mut engine);
    engine.stop().unwrap();
    if (seed / 2).is_multiple_of(2) {
        bench.drives.remove(out as usize);
    }
    bench.drives.push(Drive::new(&vec![0x3c; LOG * SECTOR]));
    bench
}

/// As `mdadm --add-journal` does, an array that lacks a member gets one: what is computed of the member is the same
/// whatever a power cut leaves, and what is written from then on goes through the journal.
#[test]
fn a_degraded_array_gets_a_journal_and_is_cut_off_anywhere() {
    let (mut without, mut with) = (0, 0);
    for seed in Extent::from_environment().seeds(6, 10) {
        let mut bench = degraded(seed);
        let log = bench.drives.len() - 1;
        let counts = at_every_cut(&mut bench, seed, |bench, mut engine, cut| {
            let Cut { told, left, model, is_journalled, .. } = cut;
            let found = bench.read(&mut engine);
            bench.compare(&found, None, &told);
            if is_journalled {
                let cut = bench.live(engine, 200);
                bench.restart(cut);
                let mut engine = bench.start(&[]).unwrap_or_else(|why| panic!("{told}: {why}"));
                let found = bench.read(&mut engine);
                bench.compare(&found, None, &format!("{told}, used"));
                // Without the log device both must be allowed, and nothing was under way.
                bench.restart(Left { images: left });
                bench.model = model;
                bench.allowed.ignore_journal = true;
                let why = bench.start(&[log]).unwrap_err();
                assert!(why.contains("not stopped cleanly"), "{told}: {why}");
                bench.allowed.dirty_degraded = true;
                let mut engine = bench.start(&[log]).unwrap_or_else(|why| panic!("{told}: {why}"));
                let found = bench.read(&mut engine);
                bench.compare(&found, None, &format!("{told}, without"));
                bench.allowed = Allowed::default();
            }
        });
        (without, with) = (without + counts[0], with + counts[1]);
    }
    assert!(without > 10 && with > 20, "{without} {with}");
}

/// Of an array whose journal was given up the old log device is not believed beside the new one.
#[test]
fn a_log_device_of_before_is_not_believed() {
    for seed in Extent::from_environment().seeds(4, 10) {
        let (mut bench, old) = left(seed);
        let given_up = bench.drives[old].clone();
        bench.allowed.ignore_journal = true;
        let mut engine = bench.start(&[old]).unwrap();
        bench.believe(&mut engine);
        engine.stop().unwrap();
        bench.allowed.ignore_journal = false;
        bench.drives[old] = Drive::new(&vec![0; LOG * SECTOR]);
        add(&bench, u64::MAX).unwrap();
        // Also where its events are those of now, as of one that was never told.
        let events = looked(&bench.drives[old].bytes()).superblock().unwrap().events;
        let now = changed(&given_up.bytes(), |one| one.events = events);
        bench.drives.insert(0, if seed % 2 == 0 { given_up } else { Drive::new(&now) });
        let devices = bench.drives.iter().cloned().map(Member::from).collect();
        let (engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
        drop(engine);
        assert_eq!(found.joined.journal, Some(old + 1), "seed {seed}");
        let out = found.joined.out.iter().find(|out| out.given == 0).unwrap();
        assert!(matches!(out.why, Why::Stale(..) | Why::Failed), "seed {seed}: {out:?}");
        let (engine, _) = start(&mut bench, &[], "both are given");
        let cut = bench.live(engine, 200);
        bench.restart(cut);
        let (mut engine, by) = start(&mut bench, &[], "both are given again");
        assert!(matches!(by, Consistency::Journal { .. }), "seed {seed}");
        compare(&mut bench, &mut engine, &format!("seed {seed}"));
    }
}

/// A spare that was away when the log device got its number is not rebuilt under that number: it would be the journal.
#[test]
fn a_spare_whose_number_the_journal_has_gets_another() {
    let (mut bench, members) = stopped(3);
    let spare = bench.drives.remove(members);
    add(&bench, u64::MAX).unwrap();
    let log = members;
    let number = |drive: &Drive| looked(&drive.bytes()).superblock().unwrap().number;
    assert_eq!([number(&bench.drives[log]), number(&spare)], [members as u32; 2]);
    bench.drives.push(spare);
    let (mut engine, _) = start(&mut bench, &[], "with the spare");
    engine.fail(MemberIndex(0)).unwrap();
    assert_eq!(engine.use_spare().unwrap(), Some(MemberIndex(0)));
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    engine.stop().unwrap();
    drop(engine);
    assert_ne!(number(&bench.drives[members + 1]), number(&bench.drives[log]));
    let devices = bench.drives[1..].iter().cloned().map(Member::from).collect();
    let (engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    drop(engine);
    assert_eq!((found.joined.journal, found.joined.order[0]), (Some(log - 1), Some(log)));
    let (mut engine, by) = start(&mut bench, &[0], "rebuilt onto the spare");
    assert!(matches!(by, Consistency::Journal { .. }));
    compare(&mut bench, &mut engine, "rebuilt onto the spare");
}

/// What is not to be written is not.
#[test]
fn without_being_told_nothing_is_written() {
    let (mut bench, members) = stopped(0);
    let before = images_of(&mut bench);
    bench.restart(Left { images: before.clone() });
    let mut devices: Vec<Member> = bench.drives.iter().cloned().map(Member::from).collect();
    let mut log = devices.pop().unwrap();
    let added = add_md_journal(&mut devices, &mut log, false).unwrap();
    assert_eq!(added.superblock.role(), Role::Journal);
    assert_eq!(added.superblock.number as usize, members);
    assert!(images_of(&mut bench) == before);
}

/// Why an array gets none, by what is asked of these devices and a log device of so many sectors.
fn refused(images: &[Vec<u8>], log: usize) -> String {
    let drive = |image: &Vec<u8>| Member::from(Drive::new(image));
    let mut devices: Vec<Member> = images.iter().map(drive).collect();
    let mut log = Member::from(Drive::new(&vec![0; log * SECTOR]));
    add_md_journal(&mut devices, &mut log, true).unwrap_err().to_string()
}

/// Changes the superblock of a device.
fn changed(image: &[u8], change: impl Fn(&mut raidlab_metadata::md::Superblock)) -> Vec<u8> {
    let mut bytes = image.to_vec();
    let inspected = inspect(&mut Member::from(Drive::new(image)));
    let mut one = inspected.superblock().unwrap().clone();
    change(&mut one);
    let at = one.super_offset as usize * SECTOR;
    one.emit(&mut bytes[at..at + 4096]).unwrap();
    bytes
}

#[test]
fn arrays_that_cannot_have_one_are_told_why() {
    let of = |layout: &str| creation(layout.parse().unwrap(), SECTORS);
    let raid5 = || of("raid5(3) chunk=16K");
    let good = images(&raid5());
    let at_1_0 = Creation { version: Version::V1_0, ..raid5() };
    let at_0_90 = Creation { version: Version::V0_90, name: "md5".into(), ..raid5() };
    let bitmap = Creation { bitmap: WantedBitmap::Internal, ..raid5() };
    let rebuilt = changed(&good[2], |one| {
        (one.features, one.recovery) = (Features::RECOVERY, 1024);
    });
    let askew = Creation { data_offset: Some(Sectors(2052)), ..raid5() };
    for (images, words) in [
        (images(&of("raid1(2)")), "a journal is for raid4, raid5 and raid6"),
        (images(&of("raid10(4) chunk=16K")), "a journal is for raid4, raid5 and raid6"),
        (images(&at_1_0), "an array of version 1.0 has no journal"),
        (images(&at_0_90), "an array of version 0.90 has no journal"),
        (images(&bitmap), "it has a bitmap"),
        (images(&Creation { ppl: true, ..raid5() }), "it logs partial parity"),
        (vec![good[0].clone(), good[1].clone(), rebuilt], "member 2 is being rebuilt"),
        (images(&askew), "data of member 0 start at"),
        (good[1..].to_vec(), "member 0 is missing, and was in service"),
        (vec![good[0].clone(), good[1].clone(), vec![0; 4096]], "member 2 is missing"),
        (
            good.iter().map(|one| changed(one, |one| one.resync = 0)).collect(),
            "not stopped cleanly",
        ),
        (
            vec![good[0].clone(), good[1].clone(), changed(&good[2], |one| one.events += 1)],
            "not stopped cleanly",
        ),
    ] {
        let why = refused(&images, LOG);
        assert!(why.contains(words), "{why}");
    }
    let why = refused(&good, 2048 + least(3) as usize - 8);
    assert!(why.contains("the log device has") && why.contains("and needs"), "{why}");
    let small = Drive::new(&vec![0; (2048 + least(3) as usize) * SECTOR]);
    let mut devices: Vec<Member> =
        good.iter().map(|image| Member::from(Drive::new(image))).collect();
    add_md_journal(&mut devices, &mut Member::from(small.clone()), true).unwrap();
    // It has one now, which is there or not.
    let lost: Vec<Vec<u8>> = devices.iter_mut().map(bytes).collect();
    let why = refused(&lost, LOG);
    assert!(why.contains("assemble --write --ignore-journal"), "{why}");
    let all = lost.iter().cloned().chain([small.bytes()]).collect::<Vec<_>>();
    assert!(refused(&all, LOG).contains("it has a journal"), "{}", refused(&all, LOG));
    let features = |image: &Vec<u8>| looked(image).superblock().unwrap().features;
    assert!(all.iter().all(|image| features(image) == Features::JOURNAL));
}

fn looked(image: &[u8]) -> raidlab_metadata::md::Inspected {
    inspect(&mut Member::from(Drive::new(image)))
}

fn bytes(device: &mut Member) -> Vec<u8> {
    let mut all = vec![0; SECTORS as usize * SECTOR];
    device.read_direct(Sector(0), &mut all).unwrap();
    all
}
