//! What the guest does with each array.

use super::cases::{Case, Left, MEMBER, Maker};
use super::raidlab::LOST;

/// Functions of the guest's script.
pub(crate) const FUNCTIONS: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "failed: $*" >&2; exit 1; }; }
wait_for() { # until nothing is being made consistent and nobody is missing
    local sys=/sys/block/md$section/md
    [ -e $sys/sync_action ] || return 0
    for try in 1 2 3 4 5 6 7 8 9; do
        mdadm --wait $md >/dev/null 2>&1 || true
        [ "$(cat $sys/degraded)" != 0 ] || [ "$(cat $sys/sync_action)" != idle ] || return 0
    done
}
consistent() { # no mismatch anywhere
    local sys=/sys/block/md$section/md
    [ -e $sys/sync_action ] || return 0
    [ "$(cat $sys/degraded)" = 0 ] || { echo "$name: degraded" >&2; mdadm --detail $md >&2; exit 1; }
    echo check >$sys/sync_action
    mdadm --wait $md >/dev/null 2>&1 || true
    [ "$(cat $sys/mismatch_cnt)" = 0 ] || { echo "$name: $(cat $sys/mismatch_cnt) mismatches" >&2; exit 1; }
}
write() { # which MiB
    quietly dd if=$SHARE/pattern of=$md bs=1M skip=$1 seek=$1 count=1 oflag=direct
}
compare() { # how many MiB from the start
    dd if=$md bs=1M count=$1 iflag=direct 2>/dev/null | cmp -s -n $(($1 * 1048576)) - $SHARE/pattern ||
        { echo "$name: differs" >&2; exit 1; }
}
checksums() {
    local device
    for device in "$@"; do
        mdadm --examine $device | grep -q 'Checksum : .* - correct' || { mdadm --examine $device >&2; exit 1; }
    done
}
assemble() { # devices
    checksums "$@"
    quietly mdadm --assemble $md --run "$@"
}
exchange() { # a device that goes, one that comes
    quietly mdadm $md --fail $1
    quietly mdadm $md --remove $1
    write 2
    quietly mdadm --zero-superblock $1
    quietly mdadm $md --add $2
    wait_for
}
"#;

fn device(section: usize, number: usize) -> String {
    format!("/dev/ubd{}{}", char::from(b'a' + number as u8), section + 1)
}

fn devices(section: usize, numbers: impl Iterator<Item = usize>) -> String {
    numbers.map(|number| device(section, number)).collect::<Vec<_>>().join(" ")
}

fn head(section: usize, case: &Case) -> String {
    format!("section={0} md=/dev/md{0} name={1}\n", section + 1, case.name())
}

/// What the first guest does: it takes over what raidlab made, or makes an array.
pub(crate) fn first(section: usize, case: &Case) -> String {
    let body = match case.maker {
        Maker::Raidlab => take(section, case),
        Maker::Kernel => make(section, case),
    };
    format!("{}{body}mdadm --stop $md 2>/dev/null\necho $name good\n", head(section, case))
}

fn take(section: usize, case: &Case) -> String {
    let is_there = |number: &usize| !case.lost_one() || *number != LOST;
    let mut there = devices(section, (0..case.members()).filter(is_there));
    if matches!(case.left, Left::Rebuilt | Left::HalfRebuilt) {
        there = format!("{there} {}", device(section, 4));
    }
    let mut script = format!("assemble {there}\n");
    if case.left == Left::Degraded {
        script.push_str(&format!("quietly mdadm $md --add {}\n", device(section, 4)));
    }
    script.push_str("wait_for\nconsistent\ncompare 2\n");
    script.push_str(&match case.is_redundant() {
        true => {
            let first = device(section, 0);
            format!("exchange {first} {first}\nconsistent\ncompare 3\n")
        }
        false => "write 2\n".to_owned(),
    });
    script
}

fn make(section: usize, case: &Case) -> String {
    let all = devices(section, 0..case.members());
    let version = case.level.version;
    let bitmap = if case.bitmap { "--bitmap=internal" } else { "" };
    let chunk =
        if ["--level=1", "--level=linear"].contains(&case.level.mdadm) { "" } else { "--chunk=64" };
    let mut script = format!(
        "quietly mdadm --create $md --run --homehost=host --name={} {} -n{} {chunk} --metadata={version} {bitmap} \
         {all}\nwait_for\nwrite 0\n",
        case.level.name,
        case.level.mdadm,
        case.members(),
    );
    let lost = device(section, LOST);
    let fresh = device(section, 4);
    if case.lost_one() {
        script.push_str(&format!(
            "quietly mdadm $md --fail {lost}\nquietly mdadm $md --remove {lost}\n"
        ));
    }
    if case.left == Left::Dirty {
        script.push_str("echo 1000 >/sys/block/md$section/md/safe_mode_delay\n");
    }
    script.push_str("write 1\n");
    match case.left {
        Left::Clean | Left::Degraded => {}
        Left::Dirty => {
            for number in 0..case.members() {
                script.push_str(&format!(
                    "quietly dd if={} of=$SHARE/{section}-{number} bs=1M count={} iflag=direct\n",
                    device(section, number),
                    MEMBER >> 20
                ));
            }
        }
        Left::Rebuilt => script.push_str(&format!("quietly mdadm $md --add {fresh}\nwait_for\n")),
        Left::HalfRebuilt => script.push_str(&format!(
            "echo 100 >/sys/block/md$section/md/sync_speed_max\necho 1 >/sys/block/md$section/md/sync_speed_min\n\
             quietly mdadm $md --add {fresh}\n"
        )),
    }
    if case.lost_one() {
        script.push_str(&format!("mdadm --zero-superblock {lost} 2>/dev/null || true\n"));
    }
    script
}

/// What the second guest does: takes over what raidlab wrote last.
pub(crate) fn last(section: usize, case: &Case) -> String {
    let is_there = |number: &usize| !case.lost_one() || *number != LOST;
    let mut there = devices(section, (0..case.members()).filter(is_there));
    if case.lost_one() {
        there = format!("{there} {}", device(section, 4));
    }
    format!(
        "{}assemble {there}\nwait_for\nconsistent\ncompare 3\nmdadm --stop $md 2>/dev/null\necho $name good\n",
        head(section, case)
    )
}
