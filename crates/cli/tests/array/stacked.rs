//! Arrays over arrays, both ways: made and filled by the kernel's md, read and written by raidlab; made and written by
//! raidlab, and found consistent by the kernel; rebuilt on both floors by both.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::text;
use crate::guest::{Guest, TempDir, guest_or_skip};
use crate::nbd_client::Client;
use crate::support::{Ran, command};

const MIB: usize = 1 << 20;
const MEMBER: u64 = 8 << 20;
/// What is written and compared of each.
const WRITTEN: usize = 4 * MIB;
/// Nothing depends on it while all is well.
const PATIENCE: Duration = Duration::from_secs(120);

/// A stack: its name, raidlab's layout, mdadm's words for both levels, arrays below and drives of each.
struct Stack {
    name: &'static str,
    layout: &'static str,
    upper: &'static str,
    lower: &'static str,
    arrays: usize,
    drives: usize,
}

const STACKS: [Stack; 3] = [
    Stack {
        name: "striped",
        layout: "raid5+0(2x3) chunk=64K",
        upper: "--level=0 --chunk=64",
        lower: "--level=5 --chunk=64 --assume-clean",
        arrays: 2,
        drives: 3,
    },
    Stack {
        name: "mirrored",
        layout: "raid0+1(2x2) chunk=64K",
        upper: "--level=1 --bitmap=internal --assume-clean",
        lower: "--level=0 --chunk=64",
        arrays: 2,
        drives: 2,
    },
    Stack {
        name: "parity",
        layout: "raid1+5(3x2) outer-chunk=64K",
        upper: "--level=5 --chunk=64 --assume-clean --metadata=1.0",
        lower: "--level=1 --bitmap=internal --assume-clean",
        arrays: 3,
        drives: 2,
    },
];

impl Stack {
    fn has_redundancy_above(&self) -> bool {
        self.arrays == 3 || self.drives == 2
    }

    fn has_redundancy_below(&self) -> bool {
        !self.lower.starts_with("--level=0")
    }
}

/// All drives of all stacks, and what each stack holds.
struct Set {
    directory: TempDir,
    files: Vec<PathBuf>,
    holds: Vec<Vec<u8>>,
}

impl Set {
    fn new(name: &str) -> Self {
        let directory = TempDir::new(name);
        fs::create_dir(directory.path().join("share")).unwrap();
        let count: usize = STACKS.iter().map(|stack| stack.arrays * stack.drives).sum();
        let files = (0..count).map(|number| directory.file(&format!("drive{number}"), MEMBER));
        let pattern = |seed: usize| {
            (0..WRITTEN).map(move |at| (at * 7 + (at >> 9) * 13 + seed * 31) as u8).collect()
        };
        Self { files: files.collect(), directory, holds: (0..3).map(pattern).collect() }
    }

    fn share(&self) -> PathBuf {
        self.directory.path().join("share")
    }

    /// The first drive of a stack.
    fn first(stack: usize) -> usize {
        STACKS[..stack].iter().map(|one| one.arrays * one.drives).sum()
    }

    /// The drives of an array of a stack.
    fn drives(&self, stack: usize, array: usize) -> Vec<String> {
        let first = Self::first(stack) + array * STACKS[stack].drives;
        self.files[first..first + STACKS[stack].drives].iter().map(|one| text(one)).collect()
    }

    fn all(&self, stack: usize) -> Vec<String> {
        (0..STACKS[stack].arrays).flat_map(|array| self.drives(stack, array)).collect()
    }

    fn path(&self, name: &str) -> String {
        text(&self.directory.path().join(name))
    }

    /// Runs a function of the guest's script for each stack.
    fn run(&self, guest: &Guest, function: &str) {
        let mut script = SCRIPT.to_owned();
        for (number, stack) in STACKS.iter().enumerate() {
            fs::write(self.share().join(format!("hold{number}")), &self.holds[number]).unwrap();
            let letter = |drive| char::from(b'a' + (Self::first(number) + drive) as u8);
            let devices: String = (0..stack.arrays * stack.drives)
                .map(|drive| format!(" /dev/ubd{}", letter(drive)))
                .collect();
            script.push_str(&format!(
                "number={number} name={} arrays={} drives={} upper='{}' lower='{}' {function}{devices}\n",
                stack.name, stack.arrays, stack.drives, stack.upper, stack.lower
            ));
        }
        let said = guest.run(&script, &self.files, &self.share()).expect_success(function);
        let good: String = STACKS.iter().map(|stack| format!("{} good\n", stack.name)).collect();
        assert_eq!(said, good);
    }

    /// What a stack holds, by these of its drives.
    fn exported(&self, stack: usize, drives: &[String]) {
        let out = self.path("out");
        raidlab("export-file", &[drives, std::slice::from_ref(&out)].concat()).good();
        let same = fs::read(&out).unwrap().starts_with(&self.holds[stack]);
        assert!(same, "{} by {drives:?}", STACKS[stack].name);
        fs::remove_file(&out).unwrap();
    }
}

const SCRIPT: &str = r#"
set -e
quietly() { "$@" >/dev/null 2>$SHARE/log || { cat $SHARE/log >&2; echo "$name failed: $*" >&2; exit 1; }; }
settled() { # array: nothing is being made consistent, nobody is missing
    local sys=/sys/block/$1/md
    [ -e $sys/sync_action ] || return 0
    for try in 1 2 3 4 5 6 7 8 9; do
        mdadm --wait /dev/$1 >/dev/null 2>&1 || true
        [ "$(cat $sys/degraded)" != 0 ] || [ "$(cat $sys/sync_action)" != idle ] || return 0
    done
}
consistent() { # array
    local sys=/sys/block/$1/md
    [ -e $sys/sync_action ] || return 0
    [ "$(cat $sys/degraded)" = 0 ] || { echo "$name: $1 is degraded" >&2; exit 1; }
    echo check >$sys/sync_action
    mdadm --wait /dev/$1 >/dev/null 2>&1 || true
    [ "$(cat $sys/mismatch_cnt)" = 0 ] || { echo "$name: $1: $(cat $sys/mismatch_cnt) mismatches" >&2; exit 1; }
}
compare() {
    dd if=/dev/md$top bs=1M count=4 iflag=direct 2>/dev/null | cmp -s - $SHARE/hold$number ||
        { echo "$name: differs" >&2; exit 1; }
}
numbers() { # how arrays are called here: the upper one md(10 * number + 9), below md(10 * number + 1) and so on
    top=$((10 * number + 9)) below=() of=()
    local array
    for ((array = 0; array < arrays; array++)); do
        below+=(/dev/md$((10 * number + array + 1)))
        of+=("${*:1 + array * drives:drives}")
    done
}
make() { # drives
    numbers "$@"
    local array
    for ((array = 0; array < arrays; array++)); do
        quietly mdadm --create ${below[array]} --run --homehost=nas --name=$name-$array $lower -n$drives ${of[array]}
    done
    quietly mdadm --create /dev/md$top --run --homehost=nas --name=$name $upper -n$arrays ${below[@]}
    quietly dd if=$SHARE/hold$number of=/dev/md$top bs=1M count=4 oflag=direct
    quietly mdadm --stop /dev/md$top
    for array in ${below[@]}; do quietly mdadm --stop $array; done
    echo $name good
}
take() { # drives: what raidlab wrote is there and consistent; a drive and an array are exchanged
    numbers "$@"
    local array first=($1 $2)
    for ((array = 0; array < arrays; array++)); do
        quietly mdadm --assemble ${below[array]} --run ${of[array]}
    done
    quietly mdadm --assemble /dev/md$top --run ${below[@]}
    for array in md$top ${below[@]##*/}; do settled $array; consistent $array; done
    compare
    if [ -e /sys/block/${below[0]##*/}/md/sync_action ]; then
        quietly mdadm ${below[0]} --fail ${first[1]} --remove ${first[1]}
        quietly mdadm --zero-superblock ${first[1]}
        quietly mdadm ${below[0]} --add ${first[1]}
        settled ${below[0]##*/}
    fi
    if [ -e /sys/block/md$top/md/sync_action ]; then
        quietly mdadm /dev/md$top --fail ${below[1]} --remove ${below[1]}
        quietly mdadm --zero-superblock ${below[1]}
        quietly mdadm /dev/md$top --add ${below[1]}
        settled md$top
    fi
    quietly dd if=$SHARE/hold$number of=/dev/md$top bs=1M skip=2 seek=3 count=1 oflag=direct
    for array in md$top ${below[@]##*/}; do consistent $array; done
    quietly mdadm --stop /dev/md$top
    for array in ${below[@]}; do quietly mdadm --stop $array; done
    echo $name good
}
"#;

fn raidlab(verb: &str, arguments: &[String]) -> Ran {
    command().args(["array", verb]).args(arguments).output().unwrap().into()
}

/// A stack that raidlab runs, with its sockets in a directory.
struct Run {
    child: Child,
    socket: String,
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    fn new(set: &Set, stack: usize) -> (Self, Client) {
        let (socket, nbd) = (set.path("s"), set.path("nbd"));
        let mut run = command();
        run.args([
            "array",
            "serve",
            "--write",
            "--socket",
            &socket,
            "--nbd",
            &format!("unix:{nbd}"),
        ]);
        run.args(set.all(stack)).stdout(Stdio::piped());
        let mut child = run.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let run = Self { child, socket };
        assert!(line.contains("raid"), "it does not run: {line:?}");
        (run, Client::unix(Path::new(&nbd), STACKS[stack].name))
    }

    /// A command to the array above (an empty name), or to one below.
    fn ask(&self, below: &str, verb: &str, arguments: &[&str]) -> Ran {
        let dot = if below.is_empty() { "" } else { "." };
        let socket = format!("{}{dot}{below}", self.socket);
        command().args(["array", verb, &socket]).args(arguments).output().unwrap().into()
    }

    fn until(&self, below: &str, what: &[&str]) {
        let begun = Instant::now();
        loop {
            let status = self.ask(below, "status", &["--json"]).good().stdout;
            if what.iter().all(|what| status.contains(what)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what:?}\n{status}");
        }
    }

    fn consistent(&self, below: &str) {
        self.until(below, WHOLE);
        let told = self.ask(below, "check", &["--quiet"]).good().stdout;
        assert!(told.contains("0 sectors differ"), "{below}: {told}");
    }

    fn stop(mut self, client: Client) {
        drop(client);
        self.until("", &["\"clients\": 0"]);
        self.ask("", "stop", &[]).good();
        assert!(self.child.wait().unwrap().success());
    }
}

const WHOLE: &[&str] = &["\"missing\": 0", "\"incomplete\": 0", "\"work\": null"];

/// Writes to each stack, exchanges a drive below, and an array above, as far as there is redundancy.
fn written_by_raidlab(set: &mut Set, seed: u8) {
    for (number, stack) in STACKS.iter().enumerate() {
        let (run, mut client) = Run::new(set, number);
        assert!(client.read(0, WRITTEN as u64) == set.holds[number], "{}", stack.name);
        let below = |array: usize| format!("{}-{array}", stack.name);
        let fresh: Vec<u8> = (0..MIB).map(|at| (at >> 8) as u8 ^ seed).collect();
        let mut write = |client: &mut Client, at: usize| {
            client.write(at as u64, &fresh);
            set.holds[number][at..at + MIB].copy_from_slice(&fresh);
        };
        write(&mut client, 0);
        if stack.has_redundancy_below() {
            run.ask(&below(0), "fail", &["0"]).good();
            write(&mut client, MIB / 2);
            run.ask(&below(0), "remove", &["0"]).good();
            let drive = text(&set.files[Set::first(number)]);
            File::create(&drive).unwrap().set_len(MEMBER).unwrap();
            run.ask(&below(0), "add", &[&drive]).good();
            for array in 0..stack.arrays {
                run.consistent(&below(array));
            }
        }
        if stack.has_redundancy_above() {
            run.ask("", "fail", &["1"]).good();
            run.ask("", "remove", &["1"]).good();
            run.ask(&below(1), "stop", &[]).good();
            write(&mut client, 2 * MIB);
            let first = Set::first(number) + stack.drives;
            let files = set.files[first..first + stack.drives].iter().map(|one| text(one));
            let files: Vec<String> = files.collect();
            for file in &files {
                File::create(file).unwrap().set_len(MEMBER).unwrap();
            }
            let layout =
                if stack.drives == 2 && stack.arrays == 2 { "raid0 chunk=64K" } else { "raid1" };
            let name = below(1);
            let create = [layout, "--name", &name, "--homehost", "nas"].map(str::to_owned);
            raidlab("create", &[&create[..], &files].concat()).good();
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            run.ask("", "add", &[&["--array"], &files[..]].concat()).good();
            run.consistent("");
        }
        assert!(client.read(0, WRITTEN as u64) == set.holds[number], "{}", stack.name);
        run.stop(client);
    }
}

/// What the kernel wrote last is there.
fn read_by_raidlab(set: &mut Set) {
    for number in 0..STACKS.len() {
        let moved = set.holds[number][2 * MIB..3 * MIB].to_vec();
        set.holds[number][3 * MIB..].copy_from_slice(&moved);
        set.exported(number, &set.all(number));
    }
}

#[test]
fn stacks_of_md_are_read_and_written() {
    let Some(guest) = guest_or_skip("stacks_of_md_are_read_and_written") else { return };
    let mut set = Set::new("array-stacked-md");
    set.run(&guest, "make");
    let bytes = |set: &Set| -> Vec<Vec<u8>> {
        set.files.iter().map(|file| fs::read(file).unwrap()).collect()
    };
    let before = bytes(&set);
    for (number, stack) in STACKS.iter().enumerate() {
        set.exported(number, &set.all(number));
        let told = raidlab("status", &set.all(number)).good().stdout;
        let whole = told.matches("all members there; stopped cleanly").count();
        assert_eq!(whole, stack.arrays + 1, "{told}");
        let examined = raidlab("examine", &set.all(number)).good().stdout;
        let members = examined.matches("Magic : a92b4efc").count();
        assert_eq!(members, stack.arrays * (stack.drives + 1), "{examined}");
        if stack.has_redundancy_below() {
            // One drive missing in each.
            let some: Vec<String> = (0..stack.arrays)
                .flat_map(|array| set.drives(number, array).split_off(1))
                .collect();
            set.exported(number, &some);
        }
        let without: Vec<String> =
            (0..stack.arrays - 1).flat_map(|array| set.drives(number, array)).collect();
        match stack.has_redundancy_above() {
            true => set.exported(number, &without),
            false => {
                let ran = raidlab("status", &without);
                assert!(ran.code == Some(1) && ran.stderr.contains("without member 1"), "{ran:?}");
            }
        }
    }
    assert!(bytes(&set) == before, "no byte of a member changes");
    written_by_raidlab(&mut set, 0x35);
    set.run(&guest, "take");
    read_by_raidlab(&mut set);
}

#[test]
fn stacks_of_raidlab_are_taken_by_md() {
    let Some(guest) = guest_or_skip("stacks_of_raidlab_are_taken_by_md") else { return };
    let mut set = Set::new("array-stacked-ours");
    for (number, stack) in STACKS.iter().enumerate() {
        set.holds[number].fill(0);
        let flags = ["--name", stack.name, "--homehost", "nas"].map(str::to_owned);
        raidlab("create", &[&[stack.layout.to_owned()], &flags[..], &set.all(number)].concat())
            .good();
    }
    written_by_raidlab(&mut set, 0x5a);
    set.run(&guest, "take");
    read_by_raidlab(&mut set);
}
