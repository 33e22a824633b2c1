//! Which members md and raidlab start an array with, by running both: each row is a state that devices are found in.
//!
//! The kernel is asked by `mdadm --assemble`, then with `--run`; raidlab by `Engine::assemble_md`, then with `run`. The
//! rows are those of docs/md-format.md.

use crate::extent::Extent;
use crate::guest::{Guest, TempDir, guest_or_skip};
use crate::made::creation;
use raidlab_core::{MemberIndex, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, MemoryMember};
use raidlab_metadata::md::{Creation, Features, Role, Superblock};

const BYTES: u64 = 4 << 20;
/// Rows of one guest.
const MOST: usize = 15;

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

/// The devices of a row, as bytes.
fn devices(row: &Row, id: u8) -> Vec<Vec<u8>> {
    let creation = creation(row.layout.parse().unwrap(), BYTES / 512);
    let plan = Creation { array: [id; 16], ..creation }.plan().unwrap();
    let mut all: Vec<Superblock> =
        plan.members.iter().flatten().map(|made| made.superblock.clone()).collect();
    // The last one twice, for rows with a device more.
    all.extend(all.last().cloned());
    all.iter_mut().for_each(|one| one.events = 100);
    (row.change)(&mut all);
    let bytes = |one: &Superblock| {
        let mut bytes = vec![0; BYTES as usize];
        let mut written = one.clone();
        let is_broken = written.flags == 0xff;
        written.flags = 0;
        written.emit(&mut bytes[8 * 512..]).unwrap();
        // Behind the checksum's back.
        bytes[8 * 512 + 40] ^= u8::from(is_broken);
        bytes
    };
    all.iter().map(bytes).collect()
}

/// What raidlab does with the devices: members in service, `r` behind one that is being rebuilt.
fn raidlab(row: &Row, all: &[Vec<u8>], run: bool) -> String {
    let member = |given: &usize| {
        let mut member = MemoryMember::new(Sectors(BYTES / 512)).unwrap();
        member.bytes_mut().copy_from_slice(&all[*given]);
        Member::Memory(member)
    };
    let options = MdOptions { run, ..MdOptions::default() };
    let Ok((engine, found)) = Engine::assemble_md(row.given.iter().map(member).collect(), &options)
    else {
        return "-".to_owned();
    };
    let status = engine.array().status();
    let mut text = String::new();
    for (place, given) in found.joined.order.iter().enumerate() {
        let Some(given) = given.filter(|_| !engine.array().is_failed(MemberIndex(place as u16)))
        else {
            continue;
        };
        text.push_str(&match status.rebuilding[0] >> place & 1 {
            0 => row.given[given].to_string(),
            _ => "r".to_owned(),
        });
    }
    text
}

const SCRIPT: &str = r#"
echo 1 >/sys/module/md_mod/parameters/start_ro
number() { case $1 in ubda*) echo 0;; ubdb*) echo 1;; ubdc*) echo 2;; ubdd*) echo 3;; esac; }
try() { # flags and devices
    mdadm --assemble $md "$@" >/dev/null 2>&1
    local sys=/sys/block/md$section/md device out=
    case "$(cat $sys/array_state 2>/dev/null)" in
        ''|clear|inactive) out=- ;;
        *) for device in $sys/dev-*; do
            case "$(cat $device/slot):$(cat $device/state)" in
                none:*) ;;
                *in_sync*) out=$out$(number ${device##*/dev-}) ;;
                *) out=${out}r ;;
            esac
        done ;;
    esac
    mdadm --stop $md >/dev/null 2>&1
    printf ' %s' $out
}
row() { # devices
    try "$@"
    try --run "$@"
    echo
}
"#;

#[test]
fn md_and_raidlab_decide_as_the_table_says() {
    let mut wrong = Vec::new();
    for (id, row) in (1..).zip(&ROWS) {
        let all = devices(row, id);
        let ours = [false, true].map(|run| raidlab(row, &all, run));
        if ours != [row.expected[2], row.expected[3]] {
            wrong.push(format!("{}: raidlab {ours:?}", row.name));
        }
    }
    // The guest's time is short.
    if Extent::from_environment() == Extent::All {
        for rows in ROWS.chunks(MOST) {
            let name = "md_and_raidlab_decide_as_the_table_says";
            let Some(guest) = guest_or_skip(name) else { break };
            let told = kernel(guest, rows);
            for (row, told) in rows.iter().zip(told.lines()) {
                let said: Vec<&str> = told.split_whitespace().collect();
                println!("{}: md {said:?}", row.name);
                if said != row.expected[..2] {
                    wrong.push(format!("{}: md {said:?}", row.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn kernel(guest: Guest, rows: &[Row]) -> String {
    use std::os::unix::fs::FileExt;
    let directory = TempDir::new("md-decisions");
    let files = ["a", "b", "c", "d"].map(|name| directory.file(name, rows.len() as u64 * BYTES));
    let share = directory.path().join("share");
    std::fs::create_dir(&share).unwrap();
    let mut script = SCRIPT.to_owned();
    for (section, (id, row)) in (1..).zip(rows).enumerate() {
        for (file, bytes) in files.iter().zip(devices(row, id)) {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.write_all_at(&bytes, section as u64 * BYTES).unwrap();
        }
        let number = section + 1;
        let device =
            |given: &usize| format!(" /dev/ubd{}{number}", char::from(b'a' + *given as u8));
        let devices: String = row.given.iter().map(device).collect();
        script.push_str(&format!("section={number} md=/dev/md{number}\nrow{devices}\n"));
    }
    let guest = guest.cut(&vec![BYTES; rows.len()]);
    guest.run(&script, &files, &share).expect_success("mdadm assembles what it will")
}
