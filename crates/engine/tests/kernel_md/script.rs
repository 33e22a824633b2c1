//! The scripts that md's side is done by, and what they print.

use raidlab_core::Level;

use super::arrays::{Arrays, FILES, Set, TestArray};
use super::content::pattern_start;

/// Before both scripts. Stopping by mdadm does the same, but a process costs 60 ms in the guest.
const HEAD: &str = r#"
set -eu
stop() { echo clear >"/sys/block/md$1/md/array_state"; }
"#;

/// md creates arrays and fills them. Prints for each: number, sectors, data offsets in sectors.
const FILL: &str = r#"
fill() { # number, where in the pattern, bytes, drives, arguments of mdadm
    local number=$1 from=$2 bytes=$3 drives=$4
    shift 4
    mdadm --create "/dev/md$number" --run --quiet --metadata=1.2 --assume-clean "$@" $drives
    echo "$number" $(</sys/block/md$number/size) $(cat /sys/block/md$number/md/rd*/offset)
    dd if="$SHARE/pattern" of="/dev/md$number" bs=1M iflag=skip_bytes,count_bytes oflag=direct \
        skip="$from" count="$bytes" status=none
    stop "$number"
}
"#;

/// md reads arrays as they are, nothing of them is changed; and checks arrays.
const LOOK: &str = r#"
look() { # number, name of what is seen, drives
    mdadm --assemble "/dev/md$1" --readonly --run --quiet $3
    dd if="/dev/md$1" of="$SHARE/$2" bs=1M iflag=direct status=none
    stop "$1"
}
check() { # number, drives
    local state=/sys/block/md$1/md
    mdadm --assemble "/dev/md$1" --run --quiet $2
    echo check >"$state/sync_action"
    while [ "$(<"$state/sync_action")" != idle ]; do sleep 0.02; done
    echo "$1 $(<"$state/last_sync_action") degraded $(<"$state/degraded")" \
        "mismatches $(<"$state/mismatch_cnt")"
    stop "$1"
}
"#;

/// The script of the first guest.
pub(crate) fn fill(arrays: &Arrays) -> String {
    let mut script = [HEAD, FILL].concat();
    for array in &arrays.list {
        let from = pattern_start(array);
        let (number, capacity) = (array.number, array.capacity());
        let drives = drives(array, Set::Sound, &[]);
        let arguments = mdadm_arguments(array);
        script.push_str(&format!("fill {number} {from} {capacity} '{drives}' {arguments}\n"));
    }
    script
}

/// What [`fill`] must print of an array.
pub(crate) fn facts(array: &TestArray) -> String {
    let sectors = array.capacity() / 512;
    let offset = format!(" {}", array.data_offset * 2);
    format!("{} {sectors}{}", array.number, offset.repeat(array.members.len()))
}

/// The script of the second guest.
pub(crate) fn look(arrays: &Arrays) -> String {
    let mut script = [HEAD, LOOK].concat();
    let mut look = |array: &TestArray, set, missing: &[u16]| {
        let (number, seen) = (array.number, seen(array, set, missing));
        let drives = drives(array, set, missing);
        script.push_str(&format!("look {number} {seen} '{drives}'\n"));
    };
    for array in &arrays.list {
        for missing in array.missing {
            look(array, Set::Sound, missing);
        }
        if !array.lost.is_empty() {
            look(array, Set::Degraded, array.lost);
        }
    }
    for array in arrays.list.iter().filter(|array| array.layout.survives() > 0) {
        let drives = drives(array, Set::Sound, &[]);
        script.push_str(&format!("check {} '{drives}'\n", array.number));
    }
    script
}

/// The name in the share of what md reads from an array without these members.
pub(crate) fn seen(array: &TestArray, set: Set, missing: &[u16]) -> String {
    let missing: Vec<_> = missing.iter().map(u16::to_string).collect();
    format!("md{}-{set:?}-without-{}", array.number, missing.join("-"))
}

/// What [`look`] must print of an array with redundancy.
pub(crate) fn good_check(array: &TestArray) -> String {
    format!("{} check degraded 0 mismatches 0", array.number)
}

/// The members as drives of the guest, which has both sets of files, one after the other.
fn drives(array: &TestArray, set: Set, missing: &[u16]) -> String {
    let present = array.members.iter().zip(0..).filter(|(_, index)| !missing.contains(index));
    let drive = |((file, section), _): (&(usize, usize), u16)| {
        let letter = char::from(b'a' + (set as usize * FILES + file) as u8);
        format!("/dev/ubd{letter}{}", section + 1)
    };
    present.map(drive).collect::<Vec<_>>().join(" ")
}

fn mdadm_arguments(array: &TestArray) -> String {
    let layout = &array.layout;
    let chunk = layout.chunk.bytes() >> 10;
    let level = match layout.level {
        Level::Linear => format!("--level=linear --rounding={chunk}"),
        Level::Raid0 => format!("--level=0 --layout=original --chunk={chunk}"),
        Level::Raid1 => "--level=1".to_owned(),
        Level::Raid5 => format!("--level=5 --layout={} --chunk={chunk}", layout.rotation.name()),
        Level::Raid10 => format!("--level=10 --layout=n{} --chunk={chunk}", layout.near),
    };
    format!("{level} --raid-devices={} --data-offset={}K", layout.members, array.data_offset)
}
