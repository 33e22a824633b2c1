//! `raidlab compare --keep`: the array that was measured is the one that the kernel starts, and finds consistent once
//! it has made it so.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guest::{Guest, TempDir, guest_or_skip};
use crate::root::{skip, tool};
use crate::support::raidlab;
use raidlab_results::Results;

/// Waits until md has made redundancy, checks it, and says what the array is.
const SCRIPT: &str = r#"
set -eEu
trap 'tail -n 20 /tmp/log /proc/mdstat >&2' ERR
sys=/sys/block/md0/md
mdadm --assemble /dev/md0 $devices 2>>/tmp/log
idle() { mdadm --wait /dev/md0 || true; [ "$(cat $sys/sync_action)" = idle ]; }
idle
echo state $(cat $sys/array_state) degraded $(cat $sys/degraded)
echo check >$sys/sync_action
idle
echo mismatches $(cat $sys/mismatch_cnt)
echo KiB of each: $(cat $sys/component_size)
for device in $devices; do
    mdadm --examine $device | while read -r line; do
        case $line in
            "Data Offset : "*|"Array UUID : "*) echo "$line" ;;
        esac
    done
done
mdadm --examine-bitmap /dev/ubda 2>/dev/null | while read -r line; do
    case $line in "Chunksize : "*) echo "$line" ;; esac
done
mdadm --stop /dev/md0 2>>/tmp/log
"#;

/// A loop device, taken away at the end.
struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = tool("losetup", &["--detach", &self.0]);
        if !std::thread::panicking() {
            gone.expect("nothing holds the loop device any more");
        }
    }
}

/// A study of whole devices, in the keys of its layout.
fn study(layout: &str) -> String {
    format!(
        "title = \"Kept\"\nrounds = 1\n\
         drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }}]\n\
         layouts = [{{ {layout} }}, {{ level = \"raid0\", members = 3 }}]\n\
         [[workloads]]\nkind = \"dd-write\"\nblock = \"128KiB\"\nsize = \"2MiB\"\n\
         [[workloads]]\nkind = \"random-write\"\nsize = \"64KiB\"\n"
    )
}

/// Runs a study on loop devices over these files and keeps the layout; gives what was said of it beforehand, and the
/// array's UUID.
fn keep(
    directory: &Path,
    files: &[PathBuf],
    layout: &str,
    name: &str,
) -> Result<(String, String), String> {
    let text = directory.join("study.toml");
    fs::write(&text, study(layout)).expect("the study");
    let mut loops = Vec::new();
    for file in files {
        loops.push(Loop(tool("losetup", &["--find", "--show", &file.display().to_string()])?));
    }
    let on = loops.iter().map(|one| one.0.clone()).collect::<Vec<_>>().join(",");
    let ids: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let (text, ids) = (text.display().to_string(), ids.join(","));
    let saved = directory.join("saved").display().to_string();
    let first = ["compare", &text, "--on", &on, "--keep", name];
    let shown = raidlab(first).good().stdout;
    let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved, "--json", "-"];
    let ran = raidlab([&first[..], &all].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = Results::from_json(&ran.stdout).expect("a results document");
    assert!(results.settings["metadata"].contains("Linux md 1.2"), "{:?}", results.settings);
    let kept =
        results.settings["kept"].strip_prefix(&format!("{name} as array ")).expect("the array");
    Ok((shown, kept.split_once(' ').expect("its UUID").0.to_owned()))
}

/// What the guest says of an array on these files.
fn started(guest: &Guest, directory: &Path, files: &[PathBuf], members: usize) -> String {
    let share = directory.join("share");
    fs::create_dir(&share).expect("a directory");
    let devices: Vec<String> =
        ["a", "b", "c", "d"][..members].iter().map(|name| format!("/dev/ubd{name}")).collect();
    let script = format!("devices='{}'\n{SCRIPT}", devices.join(" "));
    guest.run(&script, files, &share).expect_success("an array that was kept")
}

#[test]
fn the_kernel_starts_the_array_that_was_measured() {
    let test = "the_kernel_starts_the_array_that_was_measured";
    let Some(guest) = guest_or_skip(test) else { return };
    if tool("id", &["-u"]).as_deref() != Ok("0") {
        return skip(test, "needs root for loop devices");
    }
    let five = "level = \"raid5\", members = 3, chunk = \"64KiB\"";
    for (layout, name, members, bitmap) in [
        (
            format!("{five}, consistency = \"bitmap\", bitmap_chunk = \"1MiB\""),
            "raid5(3) chunk=64K bitmap bitmap_chunk=1M",
            3,
            true,
        ),
        (
            "level = \"raid10\", members = 4, far = 2, chunk = \"64KiB\", consistency = \"resync\""
                .into(),
            "raid10(4) chunk=64K far2 resync",
            4,
            false,
        ),
        (format!("{five}, consistency = \"ppl\""), "raid5(3) chunk=64K ppl", 3, false),
    ] {
        let scratch = TempDir::new("kept");
        let files: Vec<PathBuf> =
            (0..members).map(|n| scratch.file(&format!("disk{n}"), 24 << 20)).collect();
        let (shown, uuid) = match keep(scratch.path(), &files, &layout, name) {
            Ok(kept) => kept,
            Err(why) => return skip(test, &why),
        };
        let said = started(&guest, scratch.path(), &files, members);
        assert!(said.contains("degraded 0") && said.contains("mismatches 0"), "{name}: {said}");
        assert_eq!(said.matches(&format!("Array UUID : {uuid}")).count(), members, "{said}");
        assert_eq!(said.contains("Chunksize : 1 MB"), bitmap, "{name}: {said}");
        // What was measured is what stands there.
        let measured =
            shown.lines().find(|line| line.starts_with("It is measured as such an array"));
        let measured = measured.unwrap_or_else(|| panic!("{shown}"));
        let number = |line: &str| -> u64 {
            let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or_else(|_| panic!("{line}"))
        };
        let number_behind = |key: &str| {
            let found = said.split_once(key).unwrap_or_else(|| panic!("{key}: {said}")).1;
            number(found)
        };
        let (offset, size) = (number_behind("Data Offset : "), number_behind("KiB of each: "));
        let told = format!("data from {}MiB on, {size}KiB of each used.", offset / 2048);
        let in_mib = format!("data from {}MiB on, {}MiB of each used.", offset / 2048, size / 1024);
        assert!(measured.ends_with(&told) || measured.ends_with(&in_mib), "{measured}: {said}");
    }
}
