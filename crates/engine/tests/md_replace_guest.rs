//! Against the real kernel: a replacement that is not complete when the array is stopped or cut off goes on, of arrays
//! of raidlab's with md, and the other way round.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::contract::{Event, Pacing};
use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};

use crate::guest::{TempDir, guest_or_skip};
use crate::made::{creation, pattern};

/// Sectors of each device.
const SECTORS: u64 = 12 << 10;

/// `resumed`: md goes on, without being told to run an array with members missing; compares all of it then, and says
/// what it found. `stopped`: an array of md's is stopped while a member is replaced.
const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
idle() { while [ $(cat /sys/block/md1/md/sync_action) != idle ]; do sleep 0.1; done; }
states() { for disk in "$@"; do echo $(mdadm --examine /dev/ubd$disk | grep 'Array State' | cut -d'(' -f1); done; }
resumed() {
    states "$@"
    quietly mdadm --assemble /dev/md1 $(printf '/dev/ubd%s ' "$@")
    quietly mdadm --wait-clean /dev/md1
    idle
    echo check >/sys/block/md1/md/sync_action
    idle
    echo $(cat /sys/block/md1/md/degraded) missing, $(cat /sys/block/md1/md/mismatch_cnt) differ
    quietly cmp -n 1048576 /dev/md1 $SHARE/pattern
    quietly mdadm --stop /dev/md1
    shift
    states "$@"
}
stopped() {
    fresh=$4
    quietly mdadm --create /dev/md1 --run --level 5 --chunk 64 --raid-devices 3 --bitmap $5 \
        /dev/ubd$1 /dev/ubd$2 /dev/ubd$3
    idle
    quietly dd if=$SHARE/pattern of=/dev/md1 bs=64k oflag=direct
    echo 1 >/sys/block/md1/md/sync_speed_min
    echo 300 >/sys/block/md1/md/sync_speed_max
    quietly mdadm /dev/md1 --add /dev/ubd$fresh
    echo want_replacement >/sys/block/md1/md/dev-ubd$1/state
    while ! [ "$(cut -d' ' -f1 /sys/block/md1/md/sync_completed)" -gt 1000 ] 2>/dev/null; do sleep 0.1; done
    quietly mdadm --stop /dev/md1
    states $1 $2 $3 $fresh
}
"#;

fn open(path: &Path) -> Member {
    Member::File(Box::new(FileMember::open(path, FileOptions::default()).unwrap()))
}

/// Files of an array whose first member is being replaced by the last file.
fn replaced(files: &[PathBuf], stops: bool, bytes: &[u8]) {
    let (fresh, members) = files.split_last().unwrap();
    let layout: raidlab_core::Layout = "raid5(3) chunk=64K".parse().unwrap();
    let plan = creation(layout, SECTORS).plan().unwrap();
    for (made, path) in plan.members.iter().flatten().zip(members) {
        let file = File::options().write(true).open(path).unwrap();
        made.pieces.iter().for_each(|(at, bytes)| file.write_all_at(bytes, at.bytes()).unwrap());
    }
    let members = members.iter().map(|path| open(path)).collect();
    let (mut engine, _) = Engine::assemble_md(members, &MdOptions::default()).unwrap();
    engine.pace(Pacing::between(1, 1)).unwrap();
    engine.replace(MemberIndex(0), open(fresh), true).unwrap();
    engine.write_at(Sector(0), bytes).unwrap();
    engine.flush().unwrap();
    assert_ne!(engine.array().status().replacing, [0; 2], "it goes on");
    if stops {
        engine.stop().unwrap();
    }
}

/// raidlab goes on with what md left; from which sector on.
fn resume(files: &[PathBuf], bytes: &[u8]) -> u64 {
    let devices = files.iter().map(|path| open(path)).collect();
    let (mut engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    let notes = found.joined.notes.join("\n");
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    assert!(engine.take_events().contains(&Event::Replaced(MemberIndex(0))), "{notes}");
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0));
    let mut read = vec![0; bytes.len()];
    engine.read_at(Sector(0), &mut read).unwrap();
    assert!(read == bytes);
    engine.stop().unwrap();
    let from = notes.split("from sector ").nth(1).expect(&notes);
    from.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_replacement_goes_on_where_the_other_left_it() {
    let Some(guest) = guest_or_skip("a_replacement_goes_on_where_the_other_left_it") else {
        return;
    };
    let directory = TempDir::new("md-replace");
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    let files: Vec<PathBuf> = names.map(|name| directory.file(name, SECTORS * 512)).into();
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let bytes = pattern(1 << 20, 9);
    fs::write(share.join("pattern"), &bytes).unwrap();
    let mut arrays = files.chunks(4);
    for stops in [true, false] {
        replaced(arrays.next().unwrap(), stops, &bytes);
    }
    let script = format!(
        "{FUNCTIONS}\nresumed a b c d\nresumed e f g h\nstopped i j k l none\nstopped m n o p internal"
    );
    let said = guest.run(&script, &files, &share).expect_success("md goes on");
    let replacing = "Array State : RAA\n".repeat(4);
    let whole = "Array State : AAA\n".repeat(3);
    let one = format!("{replacing}0 missing, 0 differ\n{whole}");
    assert_eq!(said, format!("{one}{one}{replacing}{replacing}"));
    for files in arrays {
        let from = resume(files, &bytes);
        assert!(from >= 1000, "md was further than {from}");
    }
}
