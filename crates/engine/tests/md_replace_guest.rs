//! Against the real kernel: an array that was stopped or cut off while a member was replaced is whole for mdadm and md.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use raidlab_core::contract::Pacing;
use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member, MemoryMember};

use crate::guest::{TempDir, guest_or_skip};
use crate::made::{creation, pattern};

/// Sectors of each device.
const SECTORS: u64 = 12 << 10;

/// Starts an array without being told to run it with members missing, compares all of it, and says what it found.
const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
whole() {
    for disk in "$@"; do echo $(mdadm --examine /dev/ubd$disk | grep 'Array State' | cut -d'(' -f1); done
    quietly mdadm --assemble /dev/md1 $(printf '/dev/ubd%s ' "$@")
    quietly mdadm --wait-clean /dev/md1
    while [ $(cat /sys/block/md1/md/sync_action) != idle ]; do sleep 0.1; done
    echo check >/sys/block/md1/md/sync_action
    while [ $(cat /sys/block/md1/md/sync_action) != idle ]; do sleep 0.1; done
    echo $(cat /sys/block/md1/md/degraded) missing, $(cat /sys/block/md1/md/mismatch_cnt) differ
    quietly mdadm --stop /dev/md1
}
"#;

#[test]
fn an_array_whose_member_was_being_replaced_is_whole() {
    let Some(guest) = guest_or_skip("an_array_whose_member_was_being_replaced_is_whole") else {
        return;
    };
    let directory = TempDir::new("md-replace");
    let names = ["a", "b", "c", "d", "e", "f"];
    let files: Vec<PathBuf> = names.map(|name| directory.file(name, SECTORS * 512)).into();
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let layout: raidlab_core::Layout = "raid5(3) chunk=64K".parse().unwrap();
    for (stops, files) in [true, false].into_iter().zip(files.chunks(3)) {
        let plan = creation(layout.clone(), SECTORS).plan().unwrap();
        for (made, path) in plan.members.iter().flatten().zip(files) {
            let file = File::options().write(true).open(path).unwrap();
            made.pieces
                .iter()
                .for_each(|(at, bytes)| file.write_all_at(bytes, at.bytes()).unwrap());
        }
        let open = |path: &PathBuf| FileMember::open(path, FileOptions::default()).unwrap();
        let members = files.iter().map(|path| Member::File(Box::new(open(path)))).collect();
        let (mut engine, _) = Engine::assemble_md(members, &MdOptions::default()).unwrap();
        engine.pace(Pacing::between(1, 1)).unwrap();
        let fresh = Member::Memory(MemoryMember::new(Sectors(SECTORS)).unwrap());
        engine.replace(MemberIndex(0), fresh, true).unwrap();
        engine.write_at(Sector(0), &pattern(1 << 20, 9)).unwrap();
        assert_ne!(engine.array().status().replacing, [0; 2], "it goes on");
        if stops {
            engine.stop().unwrap();
        }
    }
    let script = format!("{FUNCTIONS}\nwhole a b c\nwhole d e f");
    let said = guest.run(&script, &files, &share).expect_success("md starts both");
    let state = "Array State : AAA\n";
    let one = format!("{}0 missing, 0 differ\n", state.repeat(3));
    assert_eq!(said, one.repeat(2));
}
