//! `raidlab compare --on DEVICE,..`: nothing is written that was not meant. On loop devices, which need root.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

mod create;
mod groups;
mod journal;
mod metadata;
mod overlay;

use crate::root::{skip, tool};
use crate::support::{self, Ran, Running, Scratch};
use raidlab_results::{Clock, Results};

const BYTES: u64 = 16 << 20;
/// `O_EXCL` of open(2) on Linux.
const EXCLUSIVE: i32 = 0o200;

/// `raid1(2)` and `raid0(2)` on the first 8 MiB of two devices.
const STUDY: &str = r#"
title = "Two devices"
rounds = 1
[[drives]]
name = "two"
file = "8MiB"
count = 2
[[layouts]]
level = "raid1"
members = 2
[[layouts]]
level = "raid0"
members = 2
chunk = "64KiB"
[[workloads]]
kind = "dd-write"
block = "128KiB"
size = "1MiB"
[[workloads]]
kind = "random-read"
size = "64KiB"
"#;

/// A loop device over a file; taken away at the end.
struct Loop {
    node: String,
    file: PathBuf,
}

impl Loop {
    fn over(file: &Path) -> Result<Self, String> {
        Self::in_sectors(file, "512")
    }

    /// With sectors of so many bytes.
    fn in_sectors(file: &Path, sectors: &str) -> Result<Self, String> {
        let path = file.display().to_string();
        let node = tool("losetup", &["--find", "--show", "--sector-size", sectors, &path])?;
        Ok(Self { node, file: file.to_path_buf() })
    }
}

impl Loop {
    /// Bytes of the file that take room.
    fn written(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.file).expect("the file").blocks() * 512
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let gone = tool("losetup", &["--detach", &self.node]);
        if !std::thread::panicking() {
            gone.expect("nothing holds the loop device any more");
        }
    }
}

/// Loop devices with bytes of their own and a study for them.
struct Bench {
    loops: Vec<Loop>,
    scratch: Scratch,
    study: PathBuf,
}

impl Bench {
    /// `None`, after a line that tells so, where there are no loop devices for us.
    fn new(test: &str) -> Option<Self> {
        Self::of(test, STUDY, BYTES)
    }

    /// Devices of so many bytes, [`BYTES`] of which hold something.
    fn of(test: &str, study: &str, size: u64) -> Option<Self> {
        Self::with(test, study, (2, size))
    }

    /// The same with so many devices.
    fn with(test: &str, study: &str, all: (u64, u64)) -> Option<Self> {
        Self::in_sectors(test, study, all, "512")
    }

    /// The same with sectors of so many bytes.
    fn in_sectors(
        test: &str,
        study: &str,
        (count, size): (u64, u64),
        sectors: &str,
    ) -> Option<Self> {
        if tool("id", &["-u"]).as_deref() != Ok("0") {
            skip(test, "needs root for loop devices");
            return None;
        }
        let scratch = Scratch::new(test);
        let study = scratch.file("study.toml", study);
        let mut loops = Vec::new();
        for n in 0..count {
            let bytes: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 256 + n) as u8).collect();
            let file = scratch.file(&format!("disk{n}.img"), bytes);
            OpenOptions::new()
                .write(true)
                .open(&file)
                .and_then(|file| file.set_len(size))
                .expect("room");
            match Loop::in_sectors(&file, sectors) {
                Ok(one) => loops.push(one),
                Err(why) => {
                    skip(test, &why);
                    return None;
                }
            }
        }
        Some(Self { loops, scratch, study })
    }

    fn on(&self) -> String {
        self.loops.iter().map(|one| one.node.clone()).collect::<Vec<_>>().join(",")
    }

    fn ids(&self) -> String {
        let ids = self.loops.iter().map(|one| one.file.display().to_string());
        ids.collect::<Vec<_>>().join(",")
    }

    fn arguments(&self, more: &[&str]) -> Vec<String> {
        let study = self.study.display().to_string();
        let first = ["compare".to_string(), study, "--on".into(), self.on()];
        first.into_iter().chain(more.iter().map(ToString::to_string)).collect()
    }

    fn run(&self, more: &[&str]) -> Ran {
        support::raidlab(self.arguments(more))
    }

    fn save_directory(&self) -> String {
        self.scratch.path().join("saved").display().to_string()
    }

    /// With all that is needed to overwrite.
    fn destroy(&self, more: &[&str]) -> Ran {
        let (ids, saved) = (self.ids(), self.save_directory());
        let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
        self.run(&[&all[..], more].concat())
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        for one in &self.loops {
            let device = OpenOptions::new().write(true).open(&one.node).expect("the device");
            device.sync_all().expect("the file behind it takes it");
        }
        self.loops.iter().map(|one| fs::read(&one.file).expect("the file")).collect()
    }

    /// What refuses: the study shown and then not run, in both ways of asking; nothing is written.
    fn refuses(&self, more: &[&str], words: &[&str]) {
        let before = self.contents();
        for ran in [self.run(more), self.destroy(more)] {
            assert_eq!(ran.code, Some(3), "{ran:?}");
            assert!(ran.stderr.contains("refused: nothing was written"), "{ran:?}");
            for word in words {
                assert!(ran.stderr.contains(word), "`{word}` is not in {}", ran.stderr);
            }
        }
        assert!(self.contents() == before, "something was written");
        assert!(!Path::new(&self.save_directory()).exists());
    }
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let Some(bench) = Bench::new("a_dry_run_shows_everything_and_writes_nothing") else { return };
    let before = bench.contents();
    let ran = bench.run(&[]).good();
    for one in &bench.loops {
        let file = one.file.display().to_string();
        assert!(ran.stdout.contains(&one.node) && ran.stdout.contains(&file), "{}", ran.stdout);
    }
    for word in [
        "\"Two devices\" would overwrite",
        "16MiB (16777216 bytes)",
        "first 8MiB",
        "nothing that is known by a signature",
        "raid1(2)",
        "Nothing was written",
    ] {
        assert!(ran.stdout.contains(word), "`{word}` is not in {}", ran.stdout);
    }
    assert!(bench.contents() == before);
}

#[test]
fn a_confirmed_run_saves_the_ends_verifies_and_can_be_undone() {
    let Some(bench) = Bench::new("a_confirmed_run_saves_the_ends_verifies_and_can_be_undone")
    else {
        return;
    };
    let before = bench.contents();
    let ran = bench.destroy(&["--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = Results::from_json(&ran.stdout).expect("a results document");
    assert_eq!((results.clock, results.cells.len()), (Clock::Real, 4));
    assert_eq!(results.settings["verified"], "every byte read, and all members after each run");
    let first = bench.loops[0].file.display().to_string();
    assert!(results.settings["device 0"].starts_with(&first), "{:?}", results.settings);
    let text = format!("{:?}", results.settings);
    assert!(!text.contains("/dev/loop"), "no name that changes: {text}");

    let after = bench.contents();
    for (before, after) in before.iter().zip(&after) {
        assert!(before[..8 << 20] != after[..8 << 20], "the study wrote");
        assert!(before[8 << 20..] == after[8 << 20..], "and nowhere else");
    }
    // The commands printed bring the ends back.
    let commands: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" dd if=")).collect();
    assert_eq!(commands.len(), 4, "{}", ran.stderr);
    for command in commands {
        tool("sh", &["-c", command]).expect("dd");
    }
    for (before, after) in before.iter().zip(&bench.contents()) {
        assert!(before[..1 << 20] == after[..1 << 20], "the first MiB is back");
    }
    let saved: Vec<String> = support::names(Path::new(&bench.save_directory()));
    assert_eq!(saved.len(), 3, "{saved:?}");
    let log = fs::read_to_string(Path::new(&bench.save_directory()).join("devices.log"));
    let log = log.expect("the log");
    assert!(log.contains(&first) && log.contains("ended: done"), "{log}");
    let end = fs::read(Path::new(&bench.save_directory()).join(&saved[1])).expect("saved");
    assert!(
        before
            .iter()
            .any(|one| end[..1 << 20] == one[..1 << 20] && end[1 << 20..] == one[15 << 20..])
    );
}

/// Random places lie all over devices, of which no more is written than what is read or written there.
#[test]
fn devices_are_used_wholly_and_filled_where_they_are_read() {
    const TEST: &str = "devices_are_used_wholly_and_filled_where_they_are_read";
    let study = STUDY.replace("file = \"8MiB\"", "model = \"nas-8tb-7200\"");
    let study = study.replace("rounds = 1", "rounds = 1\nseed = 3");
    let Some(bench) = Bench::of(TEST, &study, 64 << 30) else { return };
    let shown = bench.run(&[]).good().stdout;
    for word in [
        "The first 64GiB of each",
        "raid1(2) (array of 64GiB)",
        // Without 65 MiB of each, where md has superblock and room to reshape.
        "raid0(2) chunk=64K (array of 130942MiB)",
        "places, and read again",
    ] {
        assert!(shown.contains(word), "`{word}` is not in {shown}");
    }
    assert!(!shown.contains("only the first"), "{shown}");
    let before = bench.loops.iter().map(|one| one.written()).sum::<u64>();
    let ran = bench.destroy(&["--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = Results::from_json(&ran.stdout).expect("a results document");
    let capacities: Vec<u64> = results.layouts.iter().map(|one| one.capacity >> 20).collect();
    assert_eq!(capacities, [64 << 10, 130_942]);
    let written = bench.loops.iter().map(|one| one.written()).sum::<u64>() - before;
    assert!(written < 16 << 20, "{written}");
    // A part that is asked for.
    fs::write(&bench.study, study.replace("seed = 3", "member_size = \"8GiB\"")).expect("a study");
    let shown = bench.run(&[]).good().stdout;
    assert!(shown.contains("only the first 8GiB of each device are used, 12.5 %"), "{shown}");
}

/// Whoever may write to the directory that holds the saved ends must not choose what is written instead.
#[test]
fn ends_and_log_are_saved_through_no_link() {
    use std::os::unix::fs::symlink;
    let Some(bench) = Bench::new("ends_and_log_are_saved_through_no_link") else { return };
    let before = bench.contents();
    let saved = PathBuf::from(bench.save_directory());
    let yours = bench.scratch.directory("yours");
    let refused = |under: &str| {
        let (ids, path) = (bench.ids(), saved.join(under).display().to_string());
        let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &path];
        let ran = bench.run(&all);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains("nothing was written"), "{ran:?}");
        assert!(
            ran.stderr.contains("symbolic link") || ran.stderr.contains("hard link"),
            "{ran:?}"
        );
        assert!(bench.contents() == before, "something was written");
    };
    symlink(&yours, &saved).expect("a link");
    refused("");
    refused("deeper/still");
    assert_eq!(support::names(&yours), [""; 0]);
    fs::remove_file(&saved).expect("the link");

    fs::create_dir(&saved).expect("a directory");
    let letter = bench.scratch.file("letter.txt", "mine");
    symlink(&letter, saved.join("devices.log")).expect("a link");
    refused("");
    fs::remove_file(saved.join("devices.log")).expect("the link");
    fs::hard_link(&letter, saved.join("devices.log")).expect("a link");
    refused("");
    assert_eq!(fs::read_to_string(&letter).expect("the letter"), "mine");
    assert_eq!(support::names(&saved), ["devices.log"]);
    fs::remove_file(saved.join("devices.log")).expect("the link");
    assert_eq!(bench.destroy(&[]).code, Some(0));
}

#[test]
fn who_does_not_confirm_every_device_by_name_is_refused() {
    let Some(bench) = Bench::new("who_does_not_confirm_every_device_by_name_is_refused") else {
        return;
    };
    let before = bench.contents();
    let swapped = format!("{},{}", bench.loops[1].file.display(), bench.loops[0].file.display());
    let one = bench.loops[0].file.display().to_string();
    let (nodes, saved) = (bench.on(), bench.save_directory());
    for (ids, word) in [
        (swapped.as_str(), "is not `"),
        ("yes,yes", "is not `yes`"),
        (nodes.as_str(), "is not `/dev/loop"),
        (one.as_str(), "1 ids for 2 devices"),
    ] {
        let ran = bench.run(&["--destructive", "--yes", "--confirm-id", ids, "--save-dir", &saved]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    // Nobody is asked where no terminal is.
    let ran = bench.run(&["--destructive", "--save-dir", &saved]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("--yes with --confirm-id"), "{}", ran.stderr);
    for half in [&["--destructive", "--yes"][..], &["--yes", "--confirm-id", &bench.ids()]] {
        assert_eq!(bench.run(half).code, Some(2), "{half:?}");
    }
    assert!(bench.contents() == before && !Path::new(&saved).exists());
}

/// `script` gives the run a terminal, and what is typed on it.
#[test]
fn on_a_terminal_every_device_is_asked_for() {
    const TEST: &str = "on_a_terminal_every_device_is_asked_for";
    let Some(bench) = Bench::new(TEST) else { return };
    if let Err(why) = tool("script", &["--version"]) {
        return skip(TEST, &why);
    }
    let before = bench.contents();
    let saved = bench.save_directory();
    let arguments = bench.arguments(&["--destructive", "--save-dir", &saved, "--color", "never"]);
    let line = format!("{} {}", env!("CARGO_BIN_EXE_raidlab"), arguments.join(" "));
    let typing = |answers: String| {
        let mut script = Command::new("script");
        script.env("RAIDLAB_STORE", "off");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = script.spawn().expect("script runs");
        let mut keyboard = child.stdin.take().expect("it is piped");
        keyboard.write_all(answers.as_bytes()).expect("typed");
        // The terminal stays open until the run has ended.
        let output = child.wait_with_output().expect("script ends");
        drop(keyboard);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let file = |n: usize| bench.loops[n].file.display().to_string();
    let (code, told) = typing(format!("{}\ny\n", file(0)));
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("that is not the name of"), "{told}");
    assert!(bench.contents() == before && !Path::new(&saved).exists());
    let (code, told) = typing(format!("{}\n{}\n", file(0), file(1)));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("Type the serial number") && told.contains("raid1(2)"), "{told}");
    assert!(bench.contents() != before);
}

#[test]
fn signatures_are_refused_unless_they_are_given_up() {
    let Some(bench) = Bench::new("signatures_are_refused_unless_they_are_given_up") else { return };
    let node = &bench.loops[1].node;
    tool("mkswap", &["--label", "precious", node]).expect("mkswap");
    bench.refuses(&[], &["swap on loop", "(precious)", "--overwrite-signatures"]);
    let ran = bench.destroy(&["--overwrite-signatures", "--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = Path::new(&bench.save_directory()).join("devices.log");
    assert!(fs::read_to_string(log).expect("the log").contains("(precious)"));
}

/// What an array of raidlab's has on a member is as good a reason as a filesystem, whichever version wrote it.
#[test]
fn a_member_of_an_array_of_raidlab_is_refused() {
    let Some(bench) = Bench::new("a_member_of_an_array_of_raidlab_is_refused") else { return };
    for (version, back) in [(1, 4096), (2, 8192)] {
        let file = OpenOptions::new().write(true).open(&bench.loops[1].node).expect("a device");
        let head = [b"raidlab", &[version][..]].concat();
        file.write_all_at(&head, BYTES - back).expect("the device takes it");
        file.sync_all().expect("the device takes it");
        bench.refuses(&[], &["raidlab_member on loop", "--overwrite-signatures"]);
        file.write_all_at(&[0; 8], BYTES - back).expect("the device takes it");
    }
}

#[test]
fn a_mounted_device_is_refused() {
    const TEST: &str = "a_mounted_device_is_refused";
    let Some(bench) = Bench::new(TEST) else { return };
    let node = &bench.loops[0].node;
    let point = bench.scratch.directory("mounted point");
    let text = point.display().to_string();
    let made = tool("mkfs.ext4", &["-q", "-F", node]).and_then(|_| tool("mount", &[node, &text]));
    if let Err(why) = made {
        return skip(TEST, &why);
    }
    let refused = std::panic::catch_unwind(|| {
        let ran = bench.destroy(&["--overwrite-signatures"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(ran.stderr.contains(&format!("is mounted at {text}")), "{}", ran.stderr);
        let ran = bench.run(&["--overwrite-signatures"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        fs::write(point.join("letter.txt"), "still here").expect("the filesystem works");
    });
    tool("umount", &[&text]).expect("umount");
    assert!(refused.is_ok());
    tool("fsck.ext4", &["-n", "-f", node]).expect("the filesystem is whole");
}

#[test]
fn swap_in_use_is_refused() {
    const TEST: &str = "swap_in_use_is_refused";
    let Some(bench) = Bench::new(TEST) else { return };
    let node = &bench.loops[0].node;
    let made = tool("mkswap", &[node]).and_then(|_| tool("swapon", &[node]));
    if let Err(why) = made {
        return skip(TEST, &why);
    }
    let refused = std::panic::catch_unwind(|| {
        for ran in
            [bench.destroy(&["--overwrite-signatures"]), bench.run(&["--overwrite-signatures"])]
        {
            assert_eq!(ran.code, Some(3), "{ran:?}");
            assert!(ran.stderr.contains("is swap space in use"), "{}", ran.stderr);
        }
    });
    tool("swapoff", &[node]).expect("swapoff");
    assert!(refused.is_ok());
}

#[test]
fn a_device_below_another_is_refused() {
    const TEST: &str = "a_device_below_another_is_refused";
    let Some(bench) = Bench::new(TEST) else { return };
    let above = Loop::over(Path::new(&bench.loops[1].node)).expect("a loop over a loop");
    let by = above.node.trim_start_matches("/dev/").to_string();
    bench.refuses(&["--overwrite-signatures"], &[&format!("is in use by {by}")]);
}

#[test]
fn a_device_that_something_has_opened_exclusively_is_refused() {
    let Some(bench) = Bench::new("a_device_that_something_has_opened_exclusively_is_refused")
    else {
        return;
    };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(EXCLUSIVE);
    let held = options.open(&bench.loops[0].node).expect("the device");
    bench.refuses(&[], &["something has opened it exclusively"]);
    drop(held);
    assert_eq!(bench.run(&[]).code, Some(0));
}

#[test]
fn a_read_only_device_is_refused() {
    const TEST: &str = "a_read_only_device_is_refused";
    let Some(bench) = Bench::new(TEST) else { return };
    let set = |how| tool("blockdev", &[how, &bench.loops[0].node]);
    if let Err(why) = set("--setro") {
        return skip(TEST, &why);
    }
    let ran = bench.destroy(&[]);
    set("--setrw").expect("blockdev");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("it is read-only"), "{}", ran.stderr);
}

#[test]
fn what_makes_no_sense_is_told_before_anything() {
    let Some(bench) = Bench::new("what_makes_no_sense_is_told_before_anything") else { return };
    let (first, second) = (&bench.loops[0].node, &bench.loops[1].node);
    let study = bench.study.display().to_string();
    let on = |on: &str| support::raidlab(["compare", &study, "--on", on]);
    on(first).refused(&["1 devices are given", "uses 2"]);
    on(&format!("{first},{first}")).refused(&["are the same device"]);
    on(&format!("{first},/dev/null")).refused(&["/dev/null", "is no block device"]);
    on(&format!("{first},/dev/does-not-exist")).refused(&["/dev/does-not-exist"]);
    let large = STUDY.replace("8MiB", "17MiB");
    fs::write(&bench.study, large).expect("the study");
    on(&format!("{first},{second}")).refused(&["has 16MiB", "needs 17MiB"]);
    let there = bench.scratch.path().display().to_string();
    for on in ["virtual", &there] {
        let ran = support::raidlab(["compare", &study, "--on", on, "--destructive"]);
        ran.refused(&["--destructive", "block devices only"]);
    }
}

#[test]
fn the_last_devices_are_spare_and_log_device() {
    const TEST: &str = "the_last_devices_are_spare_and_log_device";
    let Some(mut bench) = Bench::new(TEST) else { return };
    let text = "title = \"States\"\nrounds = 1\nstates = [\"degraded\"]\njournal_size = \"2MiB\"\n\
        pacing = { least = \"1GB/s\", most = \"1GB/s\" }\n\
        [[drives]]\nname = \"f\"\nfile = \"8MiB\"\ncount = 3\n\
        [[layouts]]\nlevel = \"raid5\"\nmembers = 3\nchunk = \"64KiB\"\nconsistency = \"journal\"\n\
        [[workloads]]\nkind = \"random-write\"\nsize = \"64KiB\"\nspan = \"1MiB\"\n";
    fs::write(&bench.study, text).expect("the study");
    bench.run(&[]).refused(&["2 devices are given", "uses 5", "spare and log device"]);
    for n in 2..5 {
        let file = bench.scratch.file(&format!("disk{n}.img"), vec![0; BYTES as usize]);
        bench.loops.push(Loop::over(&file).expect("a loop device"));
    }
    let each = |of: fn(&Loop) -> String| bench.loops.iter().map(of).collect::<Vec<_>>().join(",");
    let (nodes, ids) = (each(|one| one.node.clone()), each(|one| one.file.display().to_string()));
    let (study, saved) = (bench.study.display().to_string(), bench.save_directory());
    let ran = support::raidlab([
        "compare",
        &study,
        "--on",
        &nodes,
        "--destructive",
        "--yes",
        "--confirm-id",
        &ids,
        "--save-dir",
        &saved,
        "--json",
        "-",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("(spare)") && ran.stderr.contains("(log device)"));
    let written = |n: usize| bench.contents()[n].iter().any(|byte| *byte != 0);
    assert!(written(3) && written(4), "the spare was rebuilt, and the log written");
}

#[test]
fn after_ctrl_c_the_devices_are_free() {
    let Some(bench) = Bench::new("after_ctrl_c_the_devices_are_free") else { return };
    let text = STUDY.replace("rounds = 1", "rounds = 1000");
    fs::write(&bench.study, text).expect("the study");
    let (ids, saved) = (bench.ids(), bench.save_directory());
    let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
    let more = [&all[..], &["--keep", "raid1(2)"]].concat();
    let mut run = Running::start(bench.arguments(&more));
    let file = OpenOptions::new().read(true).open(&bench.loops[0].file).expect("the file");
    let first = || {
        let mut bytes = [0; 4096];
        file.read_exact_at(&mut bytes, 4096).expect("the file");
        bytes
    };
    let before = first();
    run.wait_until("a write", || (first() != before).then_some(()));
    run.interrupt();
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    for word in [
        "stopped; the devices hold what the study wrote",
        "raid1(2) is not left on the devices: the study did not come to its end",
    ] {
        assert!(ran.stderr.contains(word), "{}", ran.stderr);
    }
    let log = fs::read_to_string(Path::new(&saved).join("devices.log")).expect("the log");
    assert!(log.contains("ended: "), "{log}");
    // Nothing holds them: they can be claimed, and taken away at the end.
    for one in &bench.loops {
        OpenOptions::new().read(true).custom_flags(EXCLUSIVE).open(&one.node).expect("free");
    }
}

/// Nothing of a run that goes on is written before it is confirmed anew, and never to other devices.
#[test]
fn a_run_goes_on_only_on_the_same_devices_confirmed_anew() {
    let Some(bench) = Bench::new("resumed") else { return };
    let runs = bench.scratch.path().join("runs");
    let raidlab = |arguments: Vec<String>| -> Ran {
        let mut command = support::command();
        command.env("RAIDLAB_STORE", &runs).args(arguments);
        command.output().expect("the binary runs").into()
    };
    let (ids, saved) = (bench.ids(), bench.save_directory());
    let all = ["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved];
    let resumed = |more: &[&str]| {
        raidlab([&["compare", "--resume"], more].concat().iter().map(ToString::to_string).collect())
    };
    let ran = raidlab(bench.arguments(&[&all[..], &["--rounds", "2"]].concat()));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // All but the first three cells, of which the last is torn, is lost.
    let mut files = fs::read_dir(&runs).expect("runs").map(|entry| entry.expect("there").path());
    let file = files.find(|path| path.extension().is_some()).expect("a run");
    let text = fs::read_to_string(&file).expect("lines");
    let kept: Vec<&str> = text.split_inclusive('\n').take(4).collect();
    let kept = kept.concat().trim_end().to_string();
    fs::write(&file, &kept).expect("ours");

    let before = bench.contents();
    let shown = resumed(&[]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("would overwrite") && shown.stdout.contains("Nothing was written")
    );
    let (old, rest) = kept.split_once("\"serial_hash\":\"").expect("a hash");
    fs::write(&file, format!("{old}\"serial_hash\":\"00{}", &rest[2..])).expect("ours");
    let ran = resumed(&all);
    let said = "drives[0].serial_hash: was 00";
    assert!(ran.code == Some(2) && ran.stderr.contains(said), "{}", ran.stderr);
    fs::write(&file, &kept).expect("ours");
    assert!(resumed(&["--destructive"]).code == Some(3), "nobody confirmed it");
    assert_eq!(fs::read_to_string(&file).expect("there"), kept);
    assert!(bench.contents() == before, "something was written");

    let ran = resumed(&all);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let now = fs::read_to_string(&file).expect("lines");
    let complete = kept.rsplit_once('\n').expect("lines").0;
    assert!(now.starts_with(&format!("{complete}\n{{\"resumed\"")));
    assert_eq!(now.matches("\n{\"cell\"").count(), text.matches("\n{\"cell\"").count());
    assert!(now.lines().last().is_some_and(|line| line.contains("\"outcome\":\"done\"")));
}

/// By both clocks: the same part of each drive, and nothing before `--destructive`.
#[test]
fn devices_stand_beside_modelled_drives() {
    let Some(bench) = Bench::new("devices_stand_beside_modelled_drives") else { return };
    let text = STUDY.replace("file = \"8MiB\"", "model = \"nas-8tb-7200\"");
    let text = text.replace("rounds = 1", "rounds = 1\nmember_size = \"8MiB\"");
    fs::write(&bench.study, text).expect("a study");
    let study = bench.study.display().to_string();
    let (on, ids, saved) = (bench.on(), bench.ids(), bench.save_directory());
    let both = |more: &[&str]| -> Ran {
        let on = format!("virtual,{on}");
        support::raidlab([&["compare", &study, "--on", &on], more].concat())
    };
    let before = bench.contents();
    let shown = both(&[]).good().stdout;
    assert!(shown.contains("would overwrite") && !shown.contains("Modelled"), "{shown}");
    assert!(bench.contents() == before, "something was written");
    let ran = both(&["--destructive", "--yes", "--confirm-id", &ids, "--save-dir", &saved]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (measured, residuals) = ran.stdout.split_once("Modelled beside measured").expect("both");
    assert!(measured.contains("block devices"), "{measured}");
    assert!(residuals.contains("of 4 cells"), "{residuals}");
    assert!(!residuals.contains("capacity of"), "as much of each drive: {residuals}");
}

/// The array is what `mdadm --create` would make of the whole devices, and nothing older is left at their ends.
#[test]
fn a_layout_is_left_as_an_array_of_md() {
    const TEST: &str = "a_layout_is_left_as_an_array_of_md";
    let Some(bench) = Bench::new(TEST) else { return };
    if let Err(why) = tool("mdadm", &["--version"]) {
        return skip(TEST, &why);
    }
    // The superblock of an older array at the end, which the study does not reach.
    let old = bench.scratch.file("old.img", vec![0; BYTES as usize]);
    let names = [old.display().to_string(), "missing".to_owned()];
    let create = ["array", "create", "raid1", &names[0], &names[1], "--metadata", "1.0"];
    support::raidlab([&create[..], &["--name", "old"]].concat()).good();
    let device = OpenOptions::new().write(true).open(&bench.loops[0].node).expect("the device");
    let end = fs::read(&old).expect("the image").split_off((BYTES - (64 << 10)) as usize);
    device.write_all_at(&end, BYTES - (64 << 10)).expect("the device takes it");
    device.sync_all().expect("the device takes it");

    let before = bench.contents();
    let keep = ["--keep", "raid1(2)", "--overwrite-signatures"];
    let shown = bench.run(&keep).good().stdout;
    let nodes = format!("{} {}", bench.loops[0].node, bench.loops[1].node);
    let left = format!("Then raid1(2) is left on {nodes} as an array of Linux md (1.2,");
    assert!(shown.contains(&left) && shown.contains("Nothing was written"), "{shown}");
    assert!(bench.contents() == before, "something was written");

    let ran = bench.destroy(&[&keep[..], &["--json", "-"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let start = format!("mdadm --assemble /dev/md/raidlab {nodes}");
    assert!(ran.stderr.contains(&start) && ran.stderr.contains("begins with a resync"), "{ran:?}");
    let results = Results::from_json(&ran.stdout).expect("a results document");
    let array = results.settings["kept"].strip_prefix("raid1(2) as array ").expect("the array");
    let array = array.split_once(' ').expect("its UUID").0;
    for (place, one) in bench.loops.iter().enumerate() {
        let told = tool("mdadm", &["--examine", &one.node]).expect("mdadm");
        for word in [
            "Version : 1.2",
            "Raid Level : raid1",
            "Raid Devices : 2",
            "correct",
            &format!("Array UUID : {array}"),
            &format!("Device Role : Active device {place}"),
        ] {
            assert!(told.contains(word), "`{word}` is not in {told}");
        }
        let found = tool("wipefs", &["--noheadings", &one.node]).expect("wipefs");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
    let log = Path::new(&bench.save_directory()).join("devices.log");
    assert!(fs::read_to_string(log).expect("the log").contains("kept: raid1(2) as array "));
}

/// `raid5(3)` with a journal on a device more.
const JOURNALLED: &str = r#"
title = "With a journal"
rounds = 1
[[drives]]
name = "four"
file = "8MiB"
count = 3
[[layouts]]
level = "raid5"
members = 3
chunk = "64KiB"
consistency = "journal"
journal_size = "4MiB"
[[workloads]]
kind = "dd-write"
block = "128KiB"
size = "1MiB"
"#;

#[test]
fn a_layout_with_a_journal_is_left_with_it() {
    const TEST: &str = "a_layout_with_a_journal_is_left_with_it";
    let Some(bench) = Bench::with(TEST, JOURNALLED, (4, BYTES)) else { return };
    let keep = ["--keep", "raid5(3) chunk=64K journal"];
    let shown = bench.run(&keep).good().stdout;
    assert!(shown.contains("with a journal on the last of them"), "{shown}");
    let ran = bench.destroy(&[&keep[..], &["--json", "-"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let nodes: Vec<String> = bench.loops.iter().map(|one| one.node.clone()).collect();
    let start = format!("mdadm --assemble /dev/md/raidlab {}", nodes.join(" "));
    assert!(ran.stderr.contains(&start), "{ran:?}");
    let status = ["array", "status"].map(str::to_owned).into_iter().chain(nodes.iter().cloned());
    let told = support::raidlab(status).good().stdout;
    assert!(told.contains(&format!("journal   {}", nodes[3])), "{told}");
    for (place, one) in bench.loops.iter().enumerate() {
        let role = if place == 3 { "Journal".into() } else { format!("Active device {place}") };
        let Ok(told) = tool("mdadm", &["--examine", &one.node]) else { continue };
        // The last member is rebuilt at the first start.
        let is_there = told.contains(&format!("Device Role : {role}"));
        assert!(is_there || place == 2 && told.contains("Device Role : spare"), "{told}");
    }
}

#[test]
fn what_cannot_be_kept_is_told_before_anything() {
    const TEST: &str = "what_cannot_be_kept_is_told_before_anything";
    let Some(bench) = Bench::new(TEST) else { return };
    let before = bench.contents();
    let unknown =
        ["the study has no such layout (did you mean `raid1(2)`?)", "it has raid1(2), raid0(2)"];
    bench.destroy(&["--keep", "raid1"]).refused(&unknown);
    let there = bench.scratch.path().display().to_string();
    let study = bench.study.display().to_string();
    for on in ["virtual", &there] {
        let ran = support::raidlab(["compare", &study, "--on", on, "--keep", "raid1(2)"]);
        ran.refused(&["--keep", "block devices only"]);
    }
    let small = STUDY.replace("chunk = \"64KiB\"", "chunk = \"2KiB\"").replace("raid0", "raid10");
    fs::write(&bench.study, small).expect("the study");
    let ran = bench.destroy(&["--keep", "raid10(2) chunk=2K"]);
    ran.refused(&["--keep raid10(2) chunk=2K", "md takes no chunk of"]);
    assert!(bench.contents() == before && !Path::new(&bench.save_directory()).exists());
}
