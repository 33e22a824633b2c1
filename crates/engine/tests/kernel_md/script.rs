//! The scripts that md's side is done by, and what they print.

use raidlab_core::{Layout, Level};

use super::arrays::{Arrays, FILES, Set, TestArray};
use super::content::pattern_start;
use crate::extent::Extent;

/// Before every script. mdadm could assemble and stop as well, but a process costs 60 ms in the guest:
/// md itself is told which drives there are, and reads their superblocks.
const HEAD: &str = r#"
set -eEu
doing=""
trap 'echo "$doing: $BASH_COMMAND; of the kernel:" >&2; dmesg | tail -n 15 >&2' ERR
stop() { echo clear >"/sys/block/md$1/md/array_state"; }
md=1000
assemble() { # state, drives; sets md: another one each time, md goes on after it is stopped
    md=$((md + 1))
    echo "md$md" >/sys/module/md_mod/parameters/new_array
    local array=/sys/block/md$md/md drive device
    echo 1.2 >"$array/metadata_version"
    for drive in $2; do
        read -r device <"/sys/class/block/${drive#/dev/}/dev"
        echo "$device" >"$array/new_dev"
    done
    echo "$1" >"$array/array_state"
}
create() { # number, drives, arguments of mdadm
    local number=$1 drives=$2
    doing="create $*"
    shift 2
    mdadm --create "/dev/md$number" --run --quiet --metadata=1.2 --assume-clean \
        --name="raidlab$number" --homehost=any "$@" $drives
}
"#;

/// md creates arrays and fills them. Prints for each: number, sectors, layout, data offsets in sectors.
const FILL: &str = r#"
little_endian() { # number; sets bytes
    printf -v bytes '\\x%02x\\x%02x\\x%02x\\x%02x' \
        $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255))
}
relayout() { # number, layout in the superblocks, layout wanted, drives: what mdadm has no word for
    local drive sum bytes
    stop "$1"
    for drive in $4; do
        # The superblock is at 4096, its layout 76 and its sum 216 bytes on. The sum's carry goes around.
        sum=$(od -An -tu4 -j4312 -N4 "$drive")
        sum=$((sum + $3 - $2))
        [ $sum -lt $((1 << 32)) ] || sum=$((sum - (1 << 32) + 1))
        [ $sum -ge 0 ] || sum=$((sum + (1 << 32) - 1))
        little_endian "$3"
        printf "$bytes" | dd of="$drive" bs=1 seek=4172 conv=notrunc,fsync status=none
        little_endian "$sum"
        printf "$bytes" | dd of="$drive" bs=1 seek=4312 conv=notrunc,fsync status=none
    done
    assemble active "$4"
}
fill() { # number, where in the pattern, bytes, layout that mdadm makes, layout, drives, mdadm's arguments
    local number=$1 from=$2 bytes=$3 made=$4 layout=$5 drives=$6
    shift 6
    create "$number" "$drives" "$@"
    md=$number
    [ "$made" = "$layout" ] || relayout "$number" "$made" "$layout" "$drives"
    [ "$layout" = - ] || layout=$(</sys/block/md$md/md/layout)
    echo "$number" $(</sys/block/md$md/size) "$layout" $(cat /sys/block/md$md/md/rd*/offset)
    dd if="$SHARE/pattern" of="/dev/md$md" bs=1M iflag=skip_bytes,count_bytes oflag=direct \
        skip="$from" count="$bytes" status=none
    stop "$md"
    md=$((1000 + number))
}
"#;

/// md reads arrays as they are, nothing of them is changed; and checks arrays.
const LOOK: &str = r#"
look() { # name of what is seen, drives
    doing="look $*"
    assemble readonly "$2"
    dd if="/dev/md$md" of="$SHARE/$1" bs=1M iflag=direct status=none
    stop "$md"
}
check() { # number, drives
    doing="check $*"
    assemble active "$2"
    local state=/sys/block/md$md/md
    echo check >"$state/sync_action"
    while [ "$(<"$state/sync_action")" != idle ]; do sleep 0.02; done
    echo "$1 $(<"$state/last_sync_action") degraded $(<"$state/degraded")" \
        "mismatches $(<"$state/mismatch_cnt")"
    stop "$md"
}
"#;

/// md takes members out of an array, and writes into what is left of it.
const DEGRADE: &str = r#"
degrade() { # drives, those that are lost
    doing="degrade $*"
    assemble active "$1"
    local drive state
    for drive in $2; do
        state=/sys/block/md$md/md/dev-${drive#/dev/}/state
        echo faulty >"$state"
        for _ in $(seq 100); do
            if echo remove >"$state" 2>/dev/null; then break; fi
            sleep 0.02
        done
        # Its entry goes a little later.
        while [ -e "$state" ]; do sleep 0.02; done
    done
}
put() { # name of what is written, where
    dd if="$SHARE/$1" of="/dev/md$md" bs=64K oflag=direct,seek_bytes conv=notrunc seek="$2" status=none
}
"#;

/// The name in the share of what md writes at a byte of an array.
pub(crate) fn piece(array: &TestArray, at: u64) -> String {
    format!("piece-{}-{at}", array.number)
}

/// md degrades the second set of arrays and writes into them.
pub(crate) fn degrade(arrays: &Arrays) -> String {
    let mut script = [HEAD, DEGRADE].concat();
    for array in &arrays.list {
        let there = |member: &u16| !array.rebuilt().contains(member);
        let others: Vec<u16> = (0..array.layout.members).filter(there).collect();
        let (all, lost) =
            (drives(array, Set::Degraded, &[]), drives(array, Set::Degraded, &others));
        script.push_str(&format!("degrade '{all}' '{lost}'\n"));
        for (at, _) in array.degraded_writes() {
            script.push_str(&format!("put {} {at}\n", piece(array, at)));
        }
        script.push_str("stop $md\n");
    }
    script
}

/// md reads and checks both sets. Of the second the members that were lost have old superblocks: the
/// arrays are created anew over what is there.
pub(crate) fn confirm(arrays: &Arrays) -> String {
    let mut script = [HEAD, LOOK].concat();
    for array in &arrays.list {
        let (number, arguments) = (array.number, mdadm_arguments(array));
        for set in [Set::Sound, Set::Degraded] {
            let (drives, seen) = (drives(array, set, &[]), seen(array, set, &[]));
            if set == Set::Degraded {
                script
                    .push_str(&format!("create {number} '{drives}' {arguments}\nstop {number}\n"));
            }
            script.push_str(&format!("look {seen} '{drives}'\ncheck {number} '{drives}'\n"));
        }
    }
    script
}

/// What [`confirm`] must print.
pub(crate) fn good_confirmations(arrays: &Arrays) -> String {
    let good = |array: &TestArray| format!("{} check degraded 0 mismatches 0\n", array.number);
    arrays.list.iter().map(|array| good(array).repeat(2)).collect()
}

/// The script of the first guest.
pub(crate) fn fill(arrays: &Arrays) -> String {
    let mut script = [HEAD, FILL].concat();
    for array in &arrays.list {
        let from = pattern_start(array);
        let (number, capacity) = (array.number, array.capacity());
        let (made, layout) = (md_layout(&sayable(&array.layout)), md_layout(&array.layout));
        let drives = drives(array, Set::Sound, &[]);
        let arguments = mdadm_arguments(array);
        script.push_str(&format!(
            "fill {number} {from} {capacity} {made} {layout} '{drives}' {arguments}\n"
        ));
    }
    script
}

/// What [`fill`] must print of an array.
pub(crate) fn facts(array: &TestArray) -> String {
    let sectors = array.capacity() / 512;
    let layout = md_layout(&array.layout);
    let offset = format!(" {}", array.data_offset * 2);
    format!("{} {sectors} {layout}{}", array.number, offset.repeat(array.members.len()))
}

/// A script that only creates the arrays.
pub(crate) fn create(arrays: &Arrays) -> String {
    let mut script = HEAD.to_owned();
    for array in &arrays.list {
        let (number, arguments) = (array.number, mdadm_arguments(array));
        let drives = drives(array, Set::Sound, &[]);
        script.push_str(&format!("create {number} '{drives}' {arguments}\nstop {number}\n"));
    }
    script
}

/// The script of the second guest and those after it, one for each round of degraded copies. What
/// does not depend on those is looked at in the first round.
pub(crate) fn look(arrays: &Arrays, round: usize, extent: Extent) -> String {
    let mut script = [HEAD, LOOK].concat();
    let mut look = |array: &TestArray, set, missing: &[u16]| {
        let (seen, drives) = (seen(array, set, missing), drives(array, set, missing));
        script.push_str(&format!("look {seen} '{drives}'\n"));
    };
    for array in &arrays.list {
        for missing in sound_looks(array, round) {
            look(array, Set::Sound, missing);
        }
        if let Some(lost) = array.lost.get(round) {
            for missing in array.missing_beyond(lost, extent) {
                look(array, Set::Degraded, &missing);
            }
        }
    }
    for array in checked(arrays, round) {
        let drives = drives(array, Set::Sound, &[]);
        script.push_str(&format!("check {} '{drives}'\n", array.number));
    }
    script
}

/// What md does without, in turn, when it reads a sound array in this round.
pub(crate) fn sound_looks(array: &TestArray, round: usize) -> impl Iterator<Item = &Vec<u16>> {
    array.missing.iter().filter(move |missing| round == 0 && array.md_starts(missing))
}

/// The arrays that md checks in this round.
fn checked(arrays: &Arrays, round: usize) -> impl Iterator<Item = &TestArray> {
    arrays.list.iter().filter(move |array| round == 0 && array.layout.survives() > 0)
}

/// The name in the share of what md reads from an array without these members.
pub(crate) fn seen(array: &TestArray, set: Set, missing: &[u16]) -> String {
    let missing: Vec<_> = missing.iter().map(u16::to_string).collect();
    format!("md{}-{set:?}-without-{}", array.number, missing.join("-"))
}

/// What [`look`] must print: redundancy is as it must be.
pub(crate) fn good_checks(arrays: &Arrays, round: usize) -> String {
    let good = |array: &TestArray| format!("{} check degraded 0 mismatches 0\n", array.number);
    checked(arrays, round).map(good).collect()
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

/// The number md has for the parameters of a layout; `-` where it means nothing, or depends on the
/// version of mdadm (raid0 of equal members).
fn md_layout(layout: &Layout) -> String {
    match layout.level {
        Level::Raid5 | Level::Raid6 => layout.rotation.md_number().to_string(),
        Level::Raid10 => {
            let Layout { near, far, offset, far_sets, .. } = *layout;
            let sets = u32::from(far_sets) << 17;
            let word = u32::from(near) | u32::from(far) << 8 | u32::from(offset) << 16 | sets;
            word.to_string()
        }
        _ => "-".to_owned(),
    }
}

/// The layout itself, or one of the same level that mdadm has a word for.
fn sayable(layout: &Layout) -> Layout {
    let sayable = layout.clone().with_far_sets(0);
    if layout.near > 1 && layout.far > 1 {
        return sayable.with_far(1).with_near(2).with_offset(false);
    }
    sayable
}

fn mdadm_arguments(array: &TestArray) -> String {
    let layout = sayable(&array.layout);
    let chunk = layout.chunk.bytes() >> 10;
    let rotation = layout.rotation;
    let level = match layout.level {
        Level::Linear => format!("--level=linear --rounding={chunk}"),
        Level::Raid0 => format!("--level=0 --layout={} --chunk={chunk}", layout.zones.name()),
        Level::Raid1 => "--level=1".to_owned(),
        Level::Raid3 => panic!("md has no raid3"),
        Level::Raid4 => format!("--level=4 --chunk={chunk}"),
        Level::Raid5 => format!("--level=5 --layout={rotation} --chunk={chunk}"),
        Level::Raid6 => format!("--level=6 --layout={rotation} --chunk={chunk}"),
        Level::Raid10 => {
            let (kind, copies) = match layout.far {
                1 => ('n', layout.near),
                far => (if layout.offset { 'o' } else { 'f' }, far),
            };
            format!("--level=10 --layout={kind}{copies} --chunk={chunk}")
        }
    };
    format!("{level} --raid-devices={} --data-offset={}K", layout.members, array.data_offset)
}
