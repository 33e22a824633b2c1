//! Against the real kernel: lists of bad blocks that raidlab wrote are read by mdadm and believed by md, and those that
//! md wrote are believed by raidlab, which adds to them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use raidlab_core::MemberIndex;
use raidlab_engine::{Engine, MdOptions, Member};
use raidlab_metadata::md::Features;

use crate::guest::{TempDir, guest_or_skip};
use crate::made::{Spoilt, creation, pattern};

/// Sectors of each device.
const SECTORS: u64 = 12 << 10;

/// What raidlab lost first, what md is told of, and what raidlab loses then: sectors of the data.
const FIRST: u64 = 104;
const TOLD: u64 = 512;
const LAST: u64 = 1000;

/// Says what each member's list has, on the medium and in the kernel, by sectors of the device; and whether a block can
/// be read.
const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
lists() {
    for disk in a b; do
        echo $disk: $(mdadm --examine-badblocks /dev/ubd$disk | grep -v '^Bad-blocks' | sed 's/ for / /; s/ sectors//')
    done
    quietly mdadm --assemble --run /dev/md1 /dev/ubda /dev/ubdb
    for member in 0 1; do echo rd$member: $(cat /sys/block/md1/md/rd$member/bad_blocks); done
}
reads() {
    if dd if=/dev/md1 of=/dev/null bs=4096 count=1 skip=$(($1 / 8)) iflag=direct 2>/dev/null
    then echo $1 read; else echo $1 error; fi
}
"#;

/// Rebuilds member 1 onto a drive with something else on it, while member 0 cannot read eight sectors of its data.
fn rebuilt(images: &[Vec<u8>], start: u64, bad: u64) -> Vec<Vec<u8>> {
    let source = Spoilt::new(&images[0], start + bad..start + bad + 8);
    let away = Spoilt::new(&images[1], 0..0);
    let fresh = Spoilt::new(&vec![0x55; images[1].len()], 0..0);
    let devices = [&source, &away].map(|one| Member::from(one.clone())).into();
    let (mut engine, _) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), Member::from(fresh.clone())).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    engine.stop().unwrap();
    vec![source.bytes(), fresh.bytes()]
}

#[test]
fn lists_of_bad_blocks_go_both_ways() {
    let Some(guest) = guest_or_skip("lists_of_bad_blocks_go_both_ways") else { return };
    let directory = TempDir::new("md-bad-blocks");
    let files: Vec<PathBuf> = ["a", "b"].map(|name| directory.file(name, SECTORS * 512)).into();
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let plan = creation("raid1(2)".parse().unwrap(), SECTORS).plan().unwrap();
    let start = plan.members[0].as_ref().unwrap().superblock.data_offset;
    let data = pattern(1 << 20, 9);
    let image = |made: &raidlab_metadata::md::Made| {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        bytes[(start * 512) as usize..][..data.len()].copy_from_slice(&data);
        for (at, piece) in &made.pieces {
            bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        bytes
    };
    let images: Vec<_> = plan.members.iter().flatten().map(image).collect();
    let put = |images: &[Vec<u8>]| {
        for (file, bytes) in files.iter().zip(images) {
            File::options().write(true).open(file).unwrap().write_all_at(bytes, 0).unwrap();
        }
    };
    let [first, told, last] = [FIRST, TOLD, LAST].map(|at| format!("{} 8", start + at));

    put(&rebuilt(&images, start, FIRST));
    let script = format!(
        "{FUNCTIONS}\nlists\nreads {FIRST}\necho {told} >/sys/block/md1/md/rd0/bad_blocks\n\
         dd if=/dev/zero of=/dev/md1 bs=4096 count=1 seek=300 oflag=direct 2>/dev/null\n\
         cat /sys/block/md1/md/rd0/bad_blocks\nquietly mdadm --stop /dev/md1"
    );
    let said = guest.run(&script, &files, &share).expect_success("md takes raidlab's list over");
    assert_eq!(said, format!("a:\nb: {first}\nrd0:\nrd1: {first}\n{FIRST} read\n{told}\n"));

    // What md's list of member 0 names is lost to a rebuild, too; what its drive could not read is added to that list.
    let images: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    put(&rebuilt(&images, start, LAST));
    let script = format!(
        "{FUNCTIONS}\nlists\nfor at in {FIRST} {TOLD} {LAST}; do reads $at; done\n\
         quietly mdadm --stop /dev/md1"
    );
    let said = guest.run(&script, &files, &share).expect_success("md takes both lists over");
    let both = format!("{told} {last}");
    let expected = format!(
        "a: {both}\nb: {both}\nrd0: {both}\nrd1: {both}\n{FIRST} read\n{TOLD} error\n{LAST} error\n"
    );
    assert_eq!(said, expected);
}

/// Why lists in units of many sectors are not written: Linux 6.1 takes the units for sectors, and reads what is bad.
#[test]
fn md_takes_units_of_a_list_for_sectors() {
    let Some(guest) = guest_or_skip("md_takes_units_of_a_list_for_sectors") else { return };
    let directory = TempDir::new("md-bad-block-units");
    let files: Vec<PathBuf> = ["a", "b"].map(|name| directory.file(name, SECTORS * 512)).into();
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let plan = creation("raid1(2)".parse().unwrap(), SECTORS).plan().unwrap();
    let mut unit = 0;
    for (place, (file, made)) in files.iter().zip(plan.members.iter().flatten()).enumerate() {
        let file = File::options().write(true).open(file).unwrap();
        for (at, piece) in &made.pieces {
            file.write_all_at(piece, at.bytes()).unwrap();
        }
        let mut one = made.superblock.clone();
        if place == 1 {
            let list = one.beside(one.bad_blocks.offset).unwrap().bytes();
            // 16 sectors of the data, from sector 96 on.
            unit = one.data_offset / 16 + 6;
            file.write_all_at(&(unit << 10 | 1).to_le_bytes(), list).unwrap();
            one.bad_blocks.shift = 4;
            one.features = one.features.with(Features::BAD_BLOCKS);
            let mut bytes = vec![0; 4096];
            one.emit(&mut bytes).unwrap();
            file.write_all_at(&bytes, one.super_offset * 512).unwrap();
        }
    }
    let script = format!(
        "{FUNCTIONS}\nlists\nquietly mdadm /dev/md1 --fail /dev/ubda\nreads 96\nquietly mdadm --stop /dev/md1"
    );
    let said = guest.run(&script, &files, &share).expect_success("md takes the list for another");
    let listed = unit * 16;
    assert_eq!(said, format!("a:\nb: {listed} 16\nrd0:\nrd1: {unit} 1\n96 read\n"));
}
