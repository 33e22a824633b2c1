//! `raidlab run` with what cannot be, and interrupted: the exit status, the words, and nothing left.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root::{can_mount, skip, traces};
use crate::support::{Ran, Running, Scratch, command, names, raidlab};

fn run(words: &str) -> Ran {
    raidlab(["run"].into_iter().chain(words.split(' ')))
}

#[test]
fn workloads_that_cannot_be() {
    let table: &[(&str, &[&str])] = &[
        ("", &["`` is not a kind of workload; known: dd-write, dd-read"]),
        ("dd-wirte size=1MiB", &["`dd-wirte` is not a kind", "(did you mean `dd-write`?)"]),
        ("bonnie", &["`bonnie` is not a kind", "bonnie-1.03, bonnie-2.00"]),
        ("dd sise=1MiB", &["dd: sise: is not a parameter", "(did you mean `size`?)"]),
        ("dd quickly", &["dd: quickly: is not a parameter", "known: bs, count, size"]),
        ("dd bs=", &["dd: bs: `` is not a size", "64KiB"]),
        ("dd bs=0", &["dd: bs: "]),
        ("dd bs=4KiB bs=8KiB", &["dd: bs: is given twice"]),
        ("dd =3", &["dd: : is not a parameter"]),
        ("dd conv=nothing", &["dd: conv: ", "fdatasync"]),
        ("dd-write", &["dd-write: size: is missing: write for example size"]),
        ("small-files files=many", &["small-files: files: `many` is not a whole number from"]),
        ("hdparm-t time=3", &["hdparm-t: time: `3` is not a time; write for example 500ms"]),
        ("tiobench-0.4 size=1KiB", &["tiobench-0.4: size: ", "MiB"]),
        ("fio rw=sideways", &["fio: rw: ", "sideways"]),
        ("fio verbose", &["fio: verbose: is not a parameter"]),
        ("tar-xf archive=/no/such.tar", &["archive=/no/such.tar: No such file or directory"]),
        ("tar-xf archive=/dev/null", &["archive=/dev/null: is not a regular file"]),
        ("dd --format csv", &["--format csv: dd is printed as summary, text"]),
        ("dd-read size=1MiB --format text", &["--format text: dd-read is printed as summary"]),
        ("dd --filesystem zfs", &["--filesystem", "known: ext4, ext3, ext2, xfs, btrfs"]),
        ("dd --filesystem xsf", &["--filesystem", "(did you mean `xfs`?)"]),
        ("dd --layout raid7(3)", &["--layout", "raid7"]),
        ("dd --layout raid5(2)", &["--layout", "raid5 needs at least 3 members"]),
        ("dd --drive nas-9tb", &["--drive nas-9tb: "]),
        ("dd --target null --layout raid1(2)", &["--layout: means nothing on --target null"]),
        ("dd --target raw:memory --drive nas-8tb-7200", &["--drive: means nothing on"]),
        ("dd --target modelled --filesystem xfs", &["--filesystem: means nothing on"]),
        ("dd --copies 0", &["--copies", "1..=4096"]),
        ("dd --json /no/such/directory.json", &["--json", "No such file or directory"]),
        ("random-read size=1MiB --target null", &["random-read on null: span: ", "span=1GiB"]),
        ("dd size=64KiB --target raw:memory", &["dd on raw:memory: bs: ", "4KiB"]),
        ("bonnie-2.00 n=0 --target raw:memory", &["single bytes; with fast=true it does not"]),
        (
            "tar-xf --target modelled-raw",
            &["tar-xf on modelled-raw: target: ", "needs a filesystem"],
        ),
    ];
    for (words, expected) in table {
        run(words).refused(expected);
    }
    raidlab(["run"]).refused(&["which workload? `raidlab run --list` lists them"]);
}

#[test]
fn targets_that_cannot_be() {
    let right = "write modelled, modelled-raw, null, a directory, raw:memory, raw:DIR";
    let scratch = Scratch::new("run-targets");
    let file = scratch.file("a-file", "mine").display().to_string();
    let missing = scratch.path().join("missing").display().to_string();
    for kind in ["", "raw:", "mounted:", "md:"] {
        let on = |place: &str| raidlab(["run", "dd", "--target", &format!("{kind}{place}")]);
        on(&file).refused(&["a-file is not a directory", right]);
        on(&missing).refused(&["missing: No such file or directory", right]);
    }
    run("dd --target modeled").refused(&["(did you mean `modelled`?)", right]);
    run("dd --target raw:memroy").refused(&["(did you mean `raw:memory`?)", right]);
    run("dd --target cooked:/tmp").refused(&["cooked:/tmp: No such file", right]);
    assert_eq!(names(scratch.path()), ["a-file"]);
}

#[test]
fn job_files_that_cannot_be() {
    let scratch = Scratch::new("run-jobs");
    let refused = |text: &str, words: &[&str]| {
        let path = scratch.file("job.fio", text);
        raidlab([Path::new("run"), &path, Path::new("--target"), Path::new("null")]).refused(words);
    };
    refused("[a]\nrw=read\nsize=1m\nbs=huge\n", &["job.fio, line 4: ", "bs", "huge"]);
    refused("[a]\nrw=read\nsize=1m\nnonsense=3\n", &["job.fio, line 4: ", "`nonsense`"]);
    refused(
        "[a]\nrw=up\nsize=1m\nioengine=abc\n",
        &["line 2: ", "rw", "also line 4: ioengine: `abc` is not supported"],
    );
    refused("rw=read\n[a]\n", &["line 1: ", "`rw` stands before the first [section]"]);
    refused("", &["job.fio, line 1: there is no job"]);
    let path = scratch.file("job.fio", "[a]\nrw=read\nsize=1m\n");
    let path = path.display().to_string();
    raidlab(["run", &path, "bs=4k"]).refused(&["bs=4k: a job file has its parameters in it"]);
    let missing = scratch.path().join("missing.fio").display().to_string();
    raidlab(["run", &missing]).refused(&["missing.fio: No such file or directory"]);
    let directory = scratch.directory("directory.fio").display().to_string();
    raidlab(["run", &directory]).refused(&["directory.fio: Is a directory"]);
}

/// A filesystem in memory, unmounted at the end.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn new(at: PathBuf, options: &str) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "none"]).arg(&at);
        assert!(mount.status().expect("mount").success());
        Self(at)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_place_that_cannot_be_written_to() {
    if !can_mount("a_place_that_cannot_be_written_to", &["mount"]) {
        return;
    }
    let scratch = Scratch::new("run-read-only");
    let on = Tmpfs::new(scratch.directory("on"), "ro,size=1m");
    for kind in ["", "raw:", "mounted:"] {
        let ran = run(&format!("dd size=64KiB bs=4KiB --target {kind}{}", on.0.display()));
        ran.refused(&["its filesystem is mounted read-only; name one that can be written to"]);
    }
}

#[test]
fn a_place_without_room() {
    if !can_mount("a_place_without_room", &["mount"]) {
        return;
    }
    let scratch = Scratch::new("run-no-room");
    let on = Tmpfs::new(scratch.directory("on"), "size=4m");
    let place = on.0.display();
    let run = |target: &str| run(&format!("dd size=16MiB bs=4KiB --target {target}{place}"));
    let smaller = "make room, or use a smaller size";
    run("").refused(&["needs 16 MiB, ", "12 MiB are missing", smaller]);
    let smaller = "MiB are missing; make room, or give the workload a smaller size";
    run("raw:").refused(&["1 members of ", " need ", "there are ", smaller]);
    run("mounted:").refused(&["1 members of ", " need ", "there are ", smaller]);
    assert!(names(&on.0).is_empty());
}

/// The binary as it is run by somebody who is not root.
fn as_nobody(scratch: &Scratch) -> Command {
    let binary = scratch.path().join("raidlab");
    // By another program: a file that any process still has open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_raidlab")).arg(&binary).status();
    assert!(copied.expect("cp").success());
    let mut command = Command::new(&binary);
    if fs::metadata(scratch.path()).expect("ours").uid() == 0 {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn only_root_may_mount() {
    // Below the system's directory for temporary files, where every user gets to.
    let scratch = Scratch::within(&std::env::temp_dir(), "run-nobody");
    let on = scratch.directory("on");
    // That this is not root is told before anything of the directory.
    fs::set_permissions(&on, fs::Permissions::from_mode(0o555)).expect("permissions");
    for (kind, words) in [
        ("mounted:", "mounting needs root; run raidlab as root, or choose a target without"),
        ("md:", "mounting needs root; run raidlab as root, or choose a target without"),
        ("", "this user may not write there; change its rights, or name another"),
        ("raw:", "this user may not write there; change its rights, or name another"),
    ] {
        let target = format!("{kind}{}", on.display());
        let mut command = as_nobody(&scratch);
        let ran = command.args(["run", "dd", "bs=4KiB", "size=1MiB"]);
        let ran: Ran = ran.args(["--target", &target]).output().expect("the binary runs").into();
        ran.refused(&[words]);
        assert!(names(&on).is_empty());
    }
}

#[test]
fn a_filesystem_without_its_programs() {
    if !can_mount("a_filesystem_without_its_programs", &["mkfs.ext4", "unshare"]) {
        return;
    }
    let scratch = Scratch::new("run-no-mkfs");
    let on = scratch.directory("on");
    // In a mount namespace of its own, where every mkfs.ext4 is hidden.
    let script = "for at in /usr/local/sbin /usr/sbin /sbin /usr/bin /bin; do
            [ ! -e $at/mkfs.ext4 ] || mount --bind /dev/null $at/mkfs.ext4 || exit 99
        done
        exec \"$0\" \"$@\"";
    let target = format!("mounted:{}", on.display());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_raidlab"), "run", "dd"]);
    let ran: Ran = command.args(["--target", &target]).output().expect("unshare").into();
    ran.refused(&["`mkfs.ext4` is not here; install it (package e2fsprogs)"]);
    assert!(names(&on).is_empty());
}

/// A run that would last for an hour, of reads of a file that is made before.
fn start(target: &str, elsewhere: &Path) -> Running {
    let mut command = command();
    command.args(["run", "hdparm-t", "size=4MiB", "settle=1h"]);
    if target.contains(':') {
        command.args(["--layout", "raid1(2)"]);
    }
    Running::of(command.args(["--target", target]).env("TMPDIR", elsewhere))
}

fn interrupted(kind: &str, is_under_way: &dyn Fn(&Path, u32) -> bool) {
    let scratch = Scratch::new(&format!("run-interrupted-{}", kind.replace(':', "")));
    let (on, elsewhere) = (scratch.directory("on"), scratch.directory("elsewhere"));
    fs::write(on.join("letter.txt"), "mine").expect("a file");
    let mut run = start(&format!("{kind}{}", on.display()), &elsewhere);
    let id = run.id();
    run.wait_until("a run under way", || is_under_way(&on, id).then_some(()));
    run.interrupt();
    let ran = run.finish();
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(130), "", "interrupted\n"));
    assert_eq!(names(&on), ["letter.txt"]);
    assert_eq!([names(&elsewhere), traces(scratch.path())].concat(), [""; 0]);
}

#[test]
fn ctrl_c_in_a_directory() {
    let is_whole = |path: &Path| path.metadata().is_ok_and(|file| file.len() == 4 << 20);
    interrupted("", &|on, id| is_whole(&on.join(format!("raidlab-run-{id}-0/files/hdparm"))));
}

#[test]
fn ctrl_c_on_member_files() {
    interrupted("raw:", &|on, id| on.join(format!("raidlab-run-{id}-0/member-1.img")).exists());
}

#[test]
fn ctrl_c_on_a_mounted_array() {
    if !can_mount("ctrl_c_on_a_mounted_array", &["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let is_mounted = |on: &Path, id: u32| {
        let files = on.join(format!("raidlab-mount-{id}-0/files"));
        names(&files).iter().any(|name| name.starts_with("raidlab-run-"))
    };
    let exists = |on: &Path, id: u32| on.join(format!("raidlab-mount-{id}-0/files")).exists();
    interrupted("mounted:", &|on, id| exists(on, id) && is_mounted(on, id));
    // While it is set up.
    interrupted("mounted:", &|on, id| on.join(format!("raidlab-run-{id}-0/member-1.img")).exists());
}

/// There is nothing to be tidied up: it just ends.
#[test]
fn ctrl_c_in_virtual_time() {
    const SIGINT: i32 = 2;
    let mut command = command();
    command.args(["run", "random-read", "size=1TiB", "span=1TiB"]);
    let mut run = Running::of(&mut command);
    let id = run.id();
    run.wait_until("virtual time", || {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // Ticks in user mode, after the name in brackets and eleven fields.
        let ticks = text.rsplit(')').next()?.split_whitespace().nth(11)?;
        (ticks.parse::<u64>().ok()? > 10).then_some(())
    });
    run.interrupt();
    assert_eq!(run.status().signal(), Some(SIGINT));
}

#[test]
fn quiet_prints_nothing_beside_a_file() {
    let scratch = Scratch::new("run-quiet");
    let out = scratch.path().join("out.json").display().to_string();
    let words = ["run", "dd", "--target", "null", "--json", &out];
    let text = raidlab(words).good().stdout;
    assert!(text.contains("as the original prints it (text):"), "{text}");
    let quiet = raidlab([&words[..], &["--quiet"]].concat()).good().stdout;
    assert_eq!(quiet, "");
    let with_format = raidlab([&words[..], &["-q", "--format", "text"]].concat()).good().stdout;
    assert!(with_format.contains("records out"), "{with_format}");
    let alone = raidlab(["run", "dd", "--target", "null", "--quiet"]).good().stdout;
    assert_eq!(alone, text);
}

/// Each example of the help, on a target that needs no time.
#[test]
fn the_examples_of_the_help_run() {
    let scratch = Scratch::new("run-examples");
    scratch.file("jobs.fio", "[a]\nrw=read\nsize=1m\n");
    let help = raidlab(["run", "--help"]).good().stdout;
    let examples = help.lines().filter_map(|line| line.strip_prefix("  raidlab run "));
    // What follows after two spaces says what it is.
    let examples: Vec<&str> = examples.filter_map(|line| line.split("  ").next()).collect();
    assert!(examples.len() >= 6, "{examples:?}");
    for example in examples {
        // Targets that have a use for the same flags.
        let place = |word: &str| {
            let place = match word {
                "raw:/mnt" => "raw:memory",
                "mounted:/mnt" => "modelled",
                "/mnt" => "null",
                other => other,
            };
            place.to_string()
        };
        let words = example.split(' ').map(place).map(|word| word.replace('\'', ""));
        let mut command = command();
        command.arg("run").args(words).current_dir(scratch.path());
        let ran: Ran = command.output().expect("the binary runs").into();
        // Kernels and what guests run are built by commands of their own.
        if example.contains("kernel:")
            && ran.code == Some(2)
            && ran.stderr.contains("`cargo xtask kernel")
        {
            skip("the_examples_of_the_help_run", ran.stderr.trim_end());
            continue;
        }
        assert!(!ran.good().stdout.is_empty(), "{example}");
    }
}
