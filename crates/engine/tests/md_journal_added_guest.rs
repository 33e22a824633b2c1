//! Against mdadm and the real kernel: an array that raidlab gave a journal is taken over by md, also when the power was
//! cut in the midst of that, and raidlab replays what md writes to it; what is written is what `mdadm --add-journal`
//! and the kernel write. A commit tests some of the states that a power cut may leave; all:
//! `RAIDLAB_FULL=1 cargo test -p raidlab-engine --test guests md_journal_added`.

use std::fs;
use std::sync::atomic::AtomicBool;

use raidlab_core::{Layout, MemberIndex, Sector, Sectors};
use raidlab_engine::{Member, add_md_journal};
use raidlab_metadata::MetadataFormat;
use raidlab_metadata::md::{
    AddedJournal, Creation, Device, Features, LogDevice, Md, Role, Superblock, inspect, journal,
};

use crate::extent::Extent;
use crate::guest::guest_or_skip;
use crate::held::{Bench, Drive, SECTOR, made_image};
use crate::made::creation;
use crate::md_logs_guest::{
    BLOCK, Files, MEMBER, MIB, all, device, devices, head, looked, write_and_copy,
};

/// Bytes that are written.
const FILLED: usize = 2 * MIB;
/// The log device is behind the members.
const LOG: usize = 3;
const LAYOUT: &str = "raid5(3) chunk=64K";
/// Writes that give such an array a journal: three to the log device, two superblocks of each member, one of the log
/// device.
const WRITES: usize = 10;
/// Of these so many make the log device ready.
const READY: usize = 3;
/// States that a power cut leaves of a sample: the guest's time is short.
const SAMPLE: usize = 3;
/// Where the kernel's first block stands.
const TAIL: u64 = 8;

/// An array of raidlab's that holds `content` and was stopped, and a log device; of what gives it a journal so many
/// writes were carried out.
fn begun(section: usize, content: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut bench = bench(section);
    let mut engine = bench.start(&[]).unwrap();
    engine.write_at(Sector(0), content).unwrap();
    engine.stop().unwrap();
    let images = bench.drives.iter().map(Drive::bytes).collect();
    added(images, WRITES, most)
}

/// An array of raidlab's, made.
fn bench(section: usize) -> Bench {
    let sectors = (MEMBER / SECTOR) as u64;
    let layout: Layout = LAYOUT.parse().unwrap();
    let array = [section as u8 + 1; 16];
    let plan = Creation { array, ..creation(layout, sectors) }.plan().unwrap();
    let images = plan.members.iter().flatten().map(|made| made_image(made, sectors));
    Bench::new(images.collect(), FILLED / SECTOR, section as u64 + 1)
}

/// These devices and a log device behind them; of `all` writes that give them a journal so many were carried out.
fn added(mut images: Vec<Vec<u8>>, all: usize, most: usize) -> Vec<Vec<u8>> {
    images.push(vec![0; MEMBER]);
    let mut devices: Vec<Member> =
        images.iter().map(|image| Member::from(Drive::new(image))).collect();
    let mut log = devices.pop().unwrap();
    let added = add_md_journal(&mut devices, &mut log, false).unwrap();
    assert_eq!(added.writes.len(), all);
    put(&added, most, &mut images);
    images
}

/// Carries out so many writes on members and the log device behind them.
fn put(added: &AddedJournal, most: usize, images: &mut [Vec<u8>]) {
    let log = images.len() - 1;
    for (given, at, bytes) in added.writes.iter().take(most) {
        let image = &mut images[given.unwrap_or(log)];
        image[at.bytes() as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// md starts what each power cut leaves, with the log device, and finds all as it was.
#[test]
fn md_takes_over_an_array_that_got_a_journal() {
    let Some(guest) = guest_or_skip("md_takes_over_an_array_that_got_a_journal") else { return };
    let mut cut = Extent::from_environment().choose((0..WRITES).collect(), SAMPLE);
    cut.push(WRITES);
    let guest = guest.cut(&vec![MEMBER as u64; cut.len()]).limit(300);
    let files = Files::new("md-journal-added", LOG + 1, cut.len(), FILLED);
    let numbers = || 0..LOG + 1;
    let mut script = String::new();
    for (section, most) in cut.iter().copied().enumerate() {
        files.write(section, numbers(), &begun(section, &files.patterns[0], most));
        // One without a superblock mdadm does not take.
        let has_log = most >= READY;
        script.push_str(&format!(
            "{}quietly mdadm --assemble $md {}\npolicy {}\n\
             quietly dd if=$md of=$SHARE/{section}-data bs=1M count=2 iflag=direct\n",
            head(section),
            devices(section, numbers(), (!has_log).then_some(LOG)),
            if has_log { "journal" } else { "resync" },
        ));
        match most {
            WRITES => script.push_str(&write_and_copy(section, numbers(), FILLED)),
            _ => script.push_str("consistent\nquietly mdadm --stop $md\n"),
        }
    }
    files.run(&guest, &script).expect_success("md takes them over");
    for (section, most) in cut.iter().enumerate() {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        assert!(found == files.patterns[0], "after {most} writes");
    }
    let whole = cut.len() - 1;
    // What md wrote to it stands in the journal.
    let copies =
        numbers().map(|number| fs::read(files.share(&format!("{whole}-{number}"))).unwrap());
    let mut bench = Bench::new(copies.collect(), FILLED / SECTOR, 1);
    let mut engine = bench.start(&[1]).unwrap();
    assert!(engine.beginning().replayed.whole > 0, "{:?}", engine.beginning());
    assert!(all(&mut engine, FILLED) == files.expected(whole));
    bench.exchange(&mut engine, 1);
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
}

/// The same of an array that lacks a member, as mdadm gives such arrays journals, too: after each cut md computes the
/// member's data of the others, and what it writes then, without the member, stands in the journal.
#[test]
fn md_takes_over_a_degraded_array_that_got_a_journal() {
    const TEST: &str = "md_takes_over_a_degraded_array_that_got_a_journal";
    let Some(guest) = guest_or_skip(TEST) else { return };
    // Two superblocks less than with all members.
    let all_writes = WRITES - 2;
    let cut = [READY + 1, all_writes];
    let guest = guest.cut(&[MEMBER as u64; 2]);
    let files = Files::new("md-journal-degraded", LOG, cut.len(), FILLED);
    let numbers = || 0..LOG;
    let mut script = String::new();
    for (section, most) in cut.into_iter().enumerate() {
        let mut bench = bench(section);
        let mut engine = bench.start(&[]).unwrap();
        engine.fail(MemberIndex(1)).unwrap();
        engine.write_at(Sector(0), &files.patterns[0]).unwrap();
        engine.stop().unwrap();
        let there = [0, 2].map(|member: usize| bench.drives[member].bytes());
        files.write(section, numbers(), &added(there.to_vec(), all_writes, most));
        script.push_str(&format!(
            "{}quietly mdadm --assemble $md {}\npolicy journal\n\
             [ \"$(cat /sys/block/md$section/md/degraded)\" = 1 ]\n\
             quietly dd if=$md of=$SHARE/{section}-data bs=1M count=2 iflag=direct\n{}",
            head(section),
            devices(section, numbers(), None),
            write_and_copy(section, numbers(), FILLED),
        ));
    }
    files.run(&guest, &script).expect_success("md takes them over");
    for (section, most) in cut.into_iter().enumerate() {
        let found = fs::read(files.share(&format!("{section}-data"))).unwrap();
        assert!(found == files.patterns[0], "after {most} writes");
        let copies =
            numbers().map(|one| fs::read(files.share(&format!("{section}-{one}"))).unwrap());
        let mut bench = Bench::new(copies.collect(), FILLED / SECTOR, 1);
        let mut engine = bench.start(&[]).unwrap();
        let replayed = engine.beginning().replayed;
        assert!(replayed.whole + replayed.alone > 0, "after {most} writes: {replayed:?}");
        assert!(all(&mut engine, FILLED) == files.expected(section), "after {most} writes");
    }
}

/// The same device, as it says it is once what depends on time is left out.
fn plain(one: &Superblock) -> Superblock {
    Superblock { events: 0, updated: 0, recovery: 0, ..one.clone() }
}

/// mdadm adds a journal to arrays that had one only: what it and the kernel write is what is written here to the same
/// array as one that never had any.
#[test]
fn what_is_added_is_what_mdadm_adds() {
    let Some(guest) = guest_or_skip("what_is_added_is_what_mdadm_adds") else { return };
    let cases = ["--level=5 --metadata=1.2", "--level=4 --metadata=1.1 --data-offset=2048K"];
    let guest = guest.cut(&vec![MEMBER as u64; cases.len()]);
    let files = Files::new("md-journal-add", LOG + 2, cases.len(), 0);
    let copy = |section: usize, when: &str| {
        let one = |number| {
            let from = device(section, number);
            format!("quietly dd if={from} of=$SHARE/{section}-{when}-{number} bs=1M iflag=direct\n")
        };
        (0..LOG + 2).map(one).collect::<String>()
    };
    let mut script = String::new();
    for (section, flags) in cases.iter().enumerate() {
        let (members, old) = (devices(section, 0..LOG, None), device(section, LOG));
        script.push_str(&format!(
            "{}quietly mdadm --create $md --run --homehost=h --name=n {flags} -n3 --chunk=64 --assume-clean \
             --write-journal {old} {members}\nquietly mdadm --stop $md\n\
             quietly mdadm --assemble --force $md {members}\n{}\
             quietly mdadm $md --add-journal {}\npolicy journal\n{}quietly mdadm --stop $md\n",
            head(section),
            copy(section, "before"),
            device(section, LOG + 1),
            copy(section, "after"),
        ));
    }
    files.run(&guest, &script).expect_success("mdadm adds journals");
    for (section, case) in cases.iter().enumerate() {
        let read = |when: &str, number: usize| {
            fs::read(files.share(&format!("{section}-{when}-{number}"))).unwrap()
        };
        let theirs: Vec<Superblock> = (0..LOG)
            .chain([LOG + 1])
            .map(|number| looked(&read("after", number)).superblock().unwrap().clone())
            .collect();
        let log = &theirs[LOG];
        let ring = &read("after", LOG + 1)[log.data_offset as usize * SECTOR..];
        let sequence = |at: u64| {
            u64::from_le_bytes(ring[at as usize * SECTOR + 16..][..8].try_into().unwrap())
        };
        // The kernel goes on behind what mdadm began with.
        assert_eq!((log.recovery, sequence(TAIL)), (TAIL, sequence(0) + 10_001), "{case}");
        let first = u32::try_from(sequence(0)).unwrap();
        let before: Vec<Vec<u8>> =
            (0..LOG).map(|number| without(&read("before", number))).collect();
        let mut members: Vec<Member> =
            before.iter().map(|image| Member::from(Drive::new(image))).collect();
        let inspected: Vec<_> = members.iter_mut().map(|one| inspect(one)).collect();
        let md = Md { block: 8 };
        let mut places: Vec<_> = members.iter_mut().map(|one| md.examine(one).places).collect();
        let sectors = Sectors((MEMBER / SECTOR) as u64);
        let new = LogDevice { device: Device { sectors, id: log.device }, first };
        let blank = looked(&vec![0; MEMBER]);
        let added = journal::add((&inspected, &mut places), (&new, &blank), 1).unwrap();
        let mut ours = before;
        ours.push(vec![0; MEMBER]);
        put(&added, WRITES, &mut ours);
        for (number, theirs) in theirs.iter().enumerate() {
            let own = looked(&ours[number]).superblock().unwrap().clone();
            assert_eq!(plain(&own), plain(theirs), "{case}: device {number}");
        }
        let own = &ours[LOG][log.data_offset as usize * SECTOR..];
        assert!(own[..BLOCK] == ring[..BLOCK], "{case}: the first block");
        assert!(own[BLOCK..].iter().all(|byte| *byte == 0), "{case}");
    }
}

/// A member as one of an array that never had a journal.
fn without(image: &[u8]) -> Vec<u8> {
    let mut one = looked(image).superblock().unwrap().clone();
    one.features = Features(one.features.0 & !Features::JOURNAL.0);
    one.roles
        .iter_mut()
        .filter(|role| **role == Role::Journal)
        .for_each(|role| *role = Role::Spare);
    let mut bytes = image.to_vec();
    let at = one.super_offset as usize * SECTOR;
    one.emit(&mut bytes[at..at + BLOCK]).unwrap();
    bytes
}
