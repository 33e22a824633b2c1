//! udev beside raidlab: the rule by which mdadm assembles arrays as their devices appear takes no member of an array
//! that raidlab runs, nor of a study, and takes all of them when it has stopped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guest::{Guest, TempDir, udev_and_guest_or_skip};
use crate::support::raidlab;

/// The rules are run by `udevadm test`, as udev runs them for a device that appears, with the programs that they name.
const START: &str = r#"
set -eEu
trap 'tail -n 20 /tmp/log /proc/mdstat >&2' ERR
mkdir -p /run/program /run/udev
busybox mount -t hostfs none /run/program -o $program
array() { local verb=$1; shift; /run/program/raidlab array $verb "$@"; }
rule() { # device: what the rule says of it
    udevadm test --action=$2 /sys/block/$1 >/tmp/rule 2>&1 || true
    grep -q 64-md-raid-assembly.rules /tmp/rule
    while read -r line; do
        case $line in
            *"'(err) 'mdadm: cannot reopen /dev/$1: Device or resource busy.'"*) echo "$1 busy" ;;
            *"MD_STARTED="*"'"*) line=${line##*MD_STARTED=}; echo "$1 started ${line%%\'*}" ;;
        esac
    done </tmp/rule
}
none() { # nothing was assembled, not even in part
    while read -r line; do [[ $line != md* ]] || echo "assembled: $line"; done </proc/mdstat
}
"#;

/// An array that runs, of which a member leaves and comes back.
const ARRAY: &str = r#"
mkfifo /tmp/told
exec 5<>/tmp/told
array assemble --write /dev/ubda /dev/ubdb /dev/ubdc --socket /tmp/s >&5 2>>/tmp/log &
read -r -t 60 line <&5
for device in ubda ubdb ubdc; do
    rule $device add
    rule $device change
    ! mdadm --incremental /dev/$device 2>>/tmp/log
done
none
# One that left is free, the others are not.
array fail /tmp/s 1 >/dev/null
array remove /tmp/s 1 >/dev/null
rule ubda change
none
array add /tmp/s /dev/ubdb --overwrite >/dev/null
rule ubdb change
none
array stop /tmp/s >/dev/null
wait
for device in ubda ubdb ubdc; do rule $device add; done
while read -r line; do [[ $line != md* ]] || echo "assembled: ${line#* : }"; done </proc/mdstat
"#;

/// Each with a superblock of its own, all but one taken away again.
const TEXT: &str = r#"
title = "Beside udev"
rounds = 2
drives = [{ name = "d", model = "nas-8tb-7200", count = 3 }]
layouts = [{ level = "raid5", members = 3, chunk = "64KiB" }, { level = "raid0", members = 3 }]
[[workloads]]
kind = "dd-write"
block = "128KiB"
size = "2MiB"
[[workloads]]
kind = "random-write"
size = "64KiB"
"#;

/// A study on the devices, which makes a new array of md for each cell and leaves one.
const STUDY: &str = r#"
mkdir -p /dev/disk/by-id
for device in ubda ubdb ubdc; do ln -s /dev/$device /dev/disk/by-id/disk-$device; done
/run/program/raidlab compare $SHARE/study.toml --on /dev/ubda,/dev/ubdb,/dev/ubdc --keep "$layout" \
    --destructive --yes --confirm-id disk-ubda,disk-ubdb,disk-ubdc \
    --save-dir /tmp/saved --json /tmp/results >/tmp/log 2>&1 &
study=$!
# What the rule runs, as often as that may be: most of the time there is a superblock.
while kill -0 $study 2>/dev/null; do
    mdadm --incremental /dev/ubdb >/tmp/one 2>&1 && what=taken || what=$(</tmp/one)
    if [ ! -e /tmp/results ]; then
        case $what in *'Device or resource busy.') echo busy ;; taken) echo taken ;; esac
        none
    fi
done | sort -u
wait $study
for device in ubda ubdb ubdc; do rule $device add; done
while read -r line; do [[ $line != md* ]] || echo "assembled: ${line#* : }"; done </proc/mdstat
"#;

/// What a guest says that runs this on three files, with the directory of the program.
fn said(guest: &Guest, (what, script): (&str, &str), files: &[PathBuf], share: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_raidlab")).parent().expect("it is in a directory");
    let program = shlex::try_quote(program.to_str().expect("text")).expect("no zero byte");
    let said = guest.run(&format!("program={program}\n{START}{script}"), files, share);
    said.expect_success(what)
}

#[test]
fn the_rule_of_udev_takes_no_member_of_an_array_that_runs() {
    let test = "the_rule_of_udev_takes_no_member_of_an_array_that_runs";
    let Some(guest) = udev_and_guest_or_skip(test) else { return };
    let directory = TempDir::new("udev");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let files = ["a", "b", "c"].map(|name| directory.file(name, 16 << 20));
    let create = ["array", "create", "raid5 chunk=64K", "--homehost", ""].map(str::to_owned);
    let paths = files.iter().map(|file| file.to_str().expect("text").to_owned());
    raidlab(create.into_iter().chain(paths)).good();
    let said = said(&guest, ("udev beside an array that runs", ARRAY), &files, &share);
    let mut expected = String::new();
    for device in ["ubda", "ubdb", "ubdc"] {
        expected.push_str(&format!("{device} busy\n{device} busy\n"));
    }
    expected.push_str("ubda busy\nubdb busy\n");
    let held = said.strip_prefix(&expected).unwrap_or_else(|| panic!("{said}"));
    // Then the array is whole without raidlab.
    assert!(held.contains("ubdc started") && !held.contains("busy"), "{said}");
    assert!(held.contains("assembled: active") && held.contains("raid5 ubdc"), "{said}");
}

#[test]
fn the_rule_of_udev_takes_no_member_of_a_study() {
    let test = "the_rule_of_udev_takes_no_member_of_a_study";
    let Some(guest) = udev_and_guest_or_skip(test) else { return };
    let directory = TempDir::new("udev-study");
    let share = directory.path().join("share");
    fs::create_dir(&share).unwrap();
    let files = ["a", "b", "c"].map(|name| directory.file(name, 16 << 20));
    fs::write(share.join("study.toml"), TEXT).unwrap();
    let script = format!("layout='raid5(3) chunk=64K'\n{STUDY}");
    let said = said(&guest, ("udev beside a study", &script), &files, &share);
    assert!(said.starts_with("busy\nubda ") && said.contains("assembled: active raid5 "), "{said}");
}
