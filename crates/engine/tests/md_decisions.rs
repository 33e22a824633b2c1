//! Which members md and raidlab start an array with, by running both: each row is a state that devices are found in.
//!
//! The kernel is asked by `mdadm --assemble`, then with `--run`; raidlab by `Engine::assemble_md`, then with `run`. The
//! rows are those of docs/md-format.md.

#[path = "md_decisions/asked.rs"]
mod asked;
#[path = "md_decisions/combinations.rs"]
mod combinations;
#[path = "md_decisions/states.rs"]
mod states;

use crate::extent::Extent;
use crate::guest::guest_or_skip;
use crate::made::{creation, name};
use asked::{Asked, BYTES, Device, MOST, kernel};
use raidlab_core::Sectors;
use raidlab_metadata::md::{Creation, Features, Role, Superblock, Version};

/// A state: the superblocks of an array's devices and of another one that is like the last, and which are given.
struct Row {
    name: &'static str,
    layout: &'static str,
    change: fn(&mut [Superblock]),
    given: &'static [usize],
    /// What md does, what it does with `--run`, and the same of raidlab: members in service, `-` for no start.
    expected: [&'static str; 4],
}

const FIVE: &str = "raid5(3) chunk=64K";
const SIX: &str = "raid6(4) chunk=64K";
const TWO: &str = "raid1(2)";

const fn row(
    name: &'static str,
    layout: &'static str,
    change: fn(&mut [Superblock]),
    given: &'static [usize],
    expected: [&'static str; 4],
) -> Row {
    Row { name, layout, change, given, expected }
}

fn nothing(_: &mut [Superblock]) {}

fn dirty(all: &mut [Superblock]) {
    all.iter_mut().for_each(|one| one.resync = 0);
}

fn half_rebuilt(all: &mut [Superblock]) {
    (all[2].features, all[2].recovery) = (Features::RECOVERY, 256);
}

/// All but the last say that it failed, and go on.
fn without_last(all: &mut [Superblock], events: u64) {
    let (_, others) = all.split_last_mut().expect("some");
    for one in others {
        one.events += events;
        one.roles[2] = Role::Faulty;
    }
}

const ROWS: [Row; 19] = [
    row("all there", FIVE, nothing, &[0, 1, 2], ["012", "012", "012", "012"]),
    row(
        "one missing, as the others say",
        FIVE,
        |all| all.iter_mut().for_each(|one| one.roles[2] = Role::Faulty),
        &[0, 1],
        ["01", "01", "01", "01"],
    ),
    row("one missing, in service by the others", FIVE, nothing, &[0, 1], ["-", "01", "-", "01"]),
    row(
        "one event behind",
        FIVE,
        |all| all[2].events -= 1,
        &[0, 1, 2],
        ["012", "012", "012", "012"],
    ),
    row("two events behind", FIVE, |all| all[2].events -= 2, &[0, 1, 2], ["-", "01", "-", "01"]),
    row(
        "the newest calls it faulty, one event behind",
        FIVE,
        |all| without_last(&mut all[..3], 1),
        &[0, 1, 2],
        ["01", "01", "01", "01"],
    ),
    row(
        "the newest calls it faulty, two events behind",
        FIVE,
        |all| without_last(&mut all[..3], 2),
        &[0, 1, 2],
        ["01", "01", "01", "01"],
    ),
    row("not stopped cleanly", FIVE, dirty, &[0, 1, 2], ["012", "012", "012", "012"]),
    row("not stopped cleanly, one missing", FIVE, dirty, &[0, 1], ["-", "-", "-", "-"]),
    row("raid6, not stopped cleanly, one missing", SIX, dirty, &[0, 1, 2], ["-", "-", "-", "-"]),
    row("mirror, not stopped cleanly, one missing", TWO, dirty, &[0], ["-", "0", "-", "0"]),
    row("half rebuilt", FIVE, half_rebuilt, &[0, 1, 2], ["01r", "01r", "01r", "01r"]),
    row("half rebuilt, another one missing", FIVE, half_rebuilt, &[0, 2], ["-", "-", "-", "-"]),
    row("too many missing", FIVE, nothing, &[0], ["-", "-", "-", "-"]),
    row(
        "exchanged for a device with another number, and both given",
        FIVE,
        |all| {
            let old = all[2].clone();
            for one in all.iter_mut() {
                (one.events, one.roles[2], one.roles[3]) =
                    (old.events + 20, Role::Spare, Role::Member(2));
            }
            (all[3].number, all[3].device) = (3, [9; 16]);
            all[2] = old;
        },
        &[0, 1, 2, 3],
        ["013", "013", "013", "013"],
    ),
    row(
        "mirror, two halves that each went on",
        TWO,
        |all| {
            (all[0].events, all[0].roles[1]) = (all[0].events + 20, Role::Faulty);
            (all[1].events, all[1].roles[0]) = (all[1].events + 10, Role::Faulty);
        },
        &[0, 1],
        ["0", "0", "-", "-"],
    ),
    row(
        "two devices that claim one place",
        FIVE,
        |all| all[3].device = [9; 16],
        &[0, 1, 2, 3],
        ["012", "012", "-", "01"],
    ),
    row("a copy of a device beside it", FIVE, nothing, &[0, 1, 2, 3], ["012", "012", "012", "012"]),
    row("checksum wrong", FIVE, |all| all[2].flags = 0xff, &[0, 1, 2], ["-", "01", "-", "01"]),
];

/// Says of a device by its number what it is, in the table of version 0.90.
fn say(all: &mut [Superblock], number: usize, state: u32) {
    for one in all {
        let v0 = one.v0.as_mut().expect("of version 0.90");
        v0.table[number].state = state;
        if v0.own.number as usize == number {
            v0.own.state = state;
        }
    }
}

fn old_dirty(all: &mut [Superblock]) {
    for v0 in all.iter_mut().filter_map(|one| one.v0.as_mut()) {
        (v0.state, v0.resync) = (0, 0);
    }
}

/// All but the last member say that it is gone, and go on.
fn old_without_last(all: &mut [Superblock], events: u64) {
    say(&mut all[..2], 2, 9);
    all[..2].iter_mut().for_each(|one| one.events += events);
}

/// The same of version 0.90, where a number is a place, and who is being rebuilt is a spare.
const OLD_ROWS: [Row; 16] = [
    row("all there", FIVE, nothing, &[0, 1, 2], ["012", "012", "012", "012"]),
    row(
        "one missing, as the others say",
        FIVE,
        |all| say(all, 2, 9),
        &[0, 1],
        ["01", "01", "01", "01"],
    ),
    row("one missing, in service by the others", FIVE, nothing, &[0, 1], ["-", "01", "-", "01"]),
    row(
        "one event behind",
        FIVE,
        |all| all[2].events -= 1,
        &[0, 1, 2],
        ["012", "012", "012", "012"],
    ),
    row("two events behind", FIVE, |all| all[2].events -= 2, &[0, 1, 2], ["-", "01", "-", "01"]),
    row(
        "the newest calls it gone, one event behind",
        FIVE,
        |all| old_without_last(all, 1),
        &[0, 1, 2],
        ["012", "012", "01", "01"],
    ),
    row(
        "the newest calls it gone, two events behind",
        FIVE,
        |all| old_without_last(all, 2),
        &[0, 1, 2],
        ["01", "01", "01", "01"],
    ),
    row("not stopped cleanly", FIVE, old_dirty, &[0, 1, 2], ["012", "012", "012", "012"]),
    row("not stopped cleanly, one missing", FIVE, old_dirty, &[0, 1], ["-", "-", "-", "-"]),
    row("mirror, not stopped cleanly, one missing", TWO, old_dirty, &[0], ["-", "0", "-", "0"]),
    row(
        "half rebuilt",
        FIVE,
        |all| {
            say(all, 2, 9);
            for one in all.iter_mut() {
                let v0 = one.v0.as_mut().unwrap();
                (v0.table[3].number, v0.table[3].place) = (3, 3);
                if v0.own.number == 2 {
                    v0.own = v0.table[3];
                }
            }
        },
        &[0, 1, 2],
        ["01", "01", "01", "01"],
    ),
    row(
        "exchanged for another device, and both given",
        FIVE,
        |all| {
            all[2].events -= 20;
        },
        &[0, 1, 2, 3],
        ["013", "013", "013", "013"],
    ),
    row(
        "mirror, two halves that each went on",
        TWO,
        |all| {
            say(&mut all[..1], 1, 9);
            say(&mut all[1..2], 0, 8);
            (all[0].events, all[1].events) = (120, 110);
        },
        &[0, 1],
        ["0", "0", "-", "-"],
    ),
    row(
        "mirror, a half with another device in the place of the other half",
        TWO,
        |all| say(&mut all[1..2], 0, 8),
        &[0, 1],
        ["-", "0", "-", "-"],
    ),
    row("two devices that claim one place", FIVE, nothing, &[0, 1, 2, 3], ["-", "-", "-", "01"]),
    row("checksum wrong", FIVE, |all| all[2].flags = 0xff, &[0, 1, 2], ["-", "01", "-", "01"]),
];

/// All rows with a number for each, and the version that they are of.
fn all_rows() -> Vec<(u8, &'static Row, Version)> {
    let new = ROWS.iter().map(|row| (row, Version::V1_2));
    let old = OLD_ROWS.iter().map(|row| (row, Version::V0_90));
    (1..).zip(new.chain(old)).map(|(id, (row, version))| (id, row, version)).collect()
}

/// The devices of a row.
fn devices(row: &Row, id: u8, version: Version) -> Asked {
    let creation = creation(row.layout.parse().unwrap(), BYTES / 512);
    let data_offset = (version != Version::V0_90).then_some(Sectors(256));
    let array = [id; 16];
    let creation = Creation { array, version, data_offset, name: name(version), ..creation };
    let plan = creation.plan().unwrap();
    let mut all: Vec<Superblock> =
        plan.members.iter().flatten().map(|made| made.superblock.clone()).collect();
    // The last one twice, for rows with a device more.
    all.extend(all.last().cloned());
    all.iter_mut().for_each(|one| one.events = 100);
    (row.change)(&mut all);
    let device = |mut one: Superblock| {
        let is_broken = one.flags == 0xff;
        one.flags = 0;
        Device::new(&one, version, is_broken)
    };
    Asked { devices: all.into_iter().map(device).collect(), given: row.given.to_vec() }
}

#[test]
fn md_and_raidlab_decide_as_the_table_says() {
    let mut wrong = Vec::new();
    let all_rows = all_rows();
    for (id, row, version) in &all_rows {
        let asked = devices(row, *id, *version);
        let ours = [false, true].map(|run| asked.raidlab_writes(run));
        if ours != [row.expected[2], row.expected[3]] {
            wrong.push(format!("{version}, {}: raidlab {ours:?}", row.name));
        }
    }
    // The guest's time is short.
    if Extent::from_environment() == Extent::All {
        for rows in all_rows.chunks(MOST) {
            let name = "md_and_raidlab_decide_as_the_table_says";
            let Some(guest) = guest_or_skip(name) else { break };
            let asked: Vec<_> =
                rows.iter().map(|(id, row, version)| devices(row, *id, *version)).collect();
            for ((_, row, version), said) in
                rows.iter().zip(kernel(guest, &asked.iter().collect::<Vec<_>>()))
            {
                println!("{version}, {}: md {said:?}", row.name);
                if said != row.expected[..2] {
                    wrong.push(format!("{version}, {}: md {said:?}", row.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
