//! Input that cannot be: exit status 2 and a message with file, line, key and what would be right.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Ran, SMALL, Scratch, names, raidlab, small_on_files};

const STUDY: &str = r#"title = "A study"
rounds = 1
baseline = ["single"]
states = ["healthy"]
[[drives]]
name = "nas"
model = "nas-8tb-7200"
count = 4
[[layouts]]
level = "single"
[[layouts]]
level = "raid5"
members = 4
chunk = "64KiB"
rotation = "left-symmetric"
[[workloads]]
kind = "dd-write"
size = "96MiB"
"#;

/// The study with one line (from 1) replaced.
fn with(line: usize, new: &str) -> String {
    let lines = STUDY.lines().enumerate();
    lines.map(|(at, old)| if at + 1 == line { new } else { old }.to_string() + "\n").collect()
}

/// Runs a study from a file and checks that the error names file, line and key.
fn refused(scratch: &Scratch, text: &str, line: u32, key: &str, words: &[&str]) {
    let path = scratch.file("study.toml", text);
    let ran = raidlab([Path::new("compare"), &path]);
    ran.refused(words);
    let place = format!("error: {}:{line}: {key}: ", path.display());
    assert!(ran.stderr.starts_with(&place), "`{place}` does not begin: {}", ran.stderr);
}

#[test]
fn a_study_that_cannot_be_is_refused_with_file_line_and_key() {
    let scratch = Scratch::new("studies");
    let table: [(usize, &str, &str, &[&str]); 16] = [
        (2, "ruonds = 6", "ruonds", &["unknown key", "did you mean `rounds`?"]),
        (2, "rounds = 0", "rounds", &["from 1 to"]),
        (2, "rounds = \"six\"", "rounds", &["found string"]),
        (3, "baseline = [\"sinlge\"]", "baseline", &["names no layout", "single, raid5(4)"]),
        (4, "states = [\"degarded\"]", "states", &["not a state", "did you mean `degraded`?"]),
        (6, "nam = \"nas\"", "drives.nam", &["did you mean `name`?"]),
        (7, "model = \"nas-9tb\"", "drives.model", &["no such drive; known: "]),
        (7, "path = \"/dev/sdb\"", "drives.path", &["not supported", "use `model` or `file`"]),
        (10, "level = \"raid7\"", "layouts.level", &["not a level; known: linear, raid0"]),
        (13, "members = 2", "layouts.members", &["raid5 needs at least 3 members, not 2"]),
        (13, "members = 5", "layouts.members", &["more drives than the 4 of `nas`"]),
        (14, "chunk = \"1000B\"", "layouts.chunk", &["multiple of the sector (512 bytes)"]),
        (14, "chunk = \"64KB/s\"", "layouts.chunk", &["is not a size", "such as 64KiB"]),
        (15, "rotation = \"left\"", "layouts.rotation", &["raid5 has: left-asymmetric"]),
        (18, "size = \"96 metres\"", "workloads.size", &["is not a size", "such as 64KiB"]),
        (18, "size = \"9TB\"", "workloads.size", &["dd-write 6MiB on single"]),
    ];
    for (line, new, key, words) in table {
        refused(&scratch, &with(line, new), line as u32, key, words);
    }
    let path = scratch.file("study.toml", "title = \"A study\nrounds = 1\n");
    raidlab([Path::new("compare"), &path]).refused(&["study.toml:1: this is not TOML"]);
    let missing = scratch.path().join("missing.toml");
    raidlab([Path::new("compare"), &missing])
        .refused(&["missing.toml: cannot read the study", "`raidlab study new "]);
}

#[test]
fn a_drive_file_that_cannot_be_is_named_with_its_own_line() {
    let scratch = Scratch::new("drives");
    let drive = include_str!("../../../drives/nas-8tb-7200.toml");
    let line = drive.lines().position(|line| line.starts_with("rotation")).expect("a figure") + 1;
    let impossible = drive.replace("rpm = 7200", "rpm = 0");
    assert_ne!(drive, impossible);
    let path = scratch.file("drive.toml", impossible);
    let study = with(7, &format!("model = \"{}\"", path.display()));
    let place = format!("{}:{line}: rotation", path.display());
    refused(&scratch, &study, 7, "drives.model", &[&place]);
    let study = with(7, "model = \"nowhere.toml\"");
    refused(&scratch, &study, 7, "drives.model", &["nowhere.toml", "cannot read the drive file"]);
}

/// A study can be run from anywhere: its drives lie where it lies, whatever bytes its path is made of.
#[test]
fn drive_files_are_looked_up_beside_the_study() {
    let scratch = Scratch::new("beside");
    let place = OsStr::from_bytes(b"not-\xff-unicode");
    let directory = scratch.path().join(place);
    fs::create_dir(&directory).expect("a directory");
    let drive = include_str!("../../../drives/nas-8tb-7200.toml");
    fs::write(directory.join("mine.toml"), drive).expect("a drive file");
    let study = directory.join("study.toml");
    fs::write(&study, SMALL.replace("nas-8tb-7200", "mine.toml")).expect("a study");
    let ran = raidlab([Path::new("compare"), &study]).good();
    assert!(ran.stdout.contains("(mine)"), "{}", ran.stdout);
    // Nothing of that name there, and a compiled-in one that is meant.
    let study = scratch.file("study.toml", SMALL.replace("nas-8tb-7200", "nas-8tb-7200.toml"));
    let missing = scratch.path().join("nas-8tb-7200.toml");
    raidlab([Path::new("compare"), &study]).refused(&[
        &format!("{}: cannot read the drive file", missing.display()),
        "the compiled-in drive is called `nas-8tb-7200`",
    ]);
    // Member files, too, lie wherever the user wants them.
    let study = scratch.file("files.toml", small_on_files("4MiB"));
    raidlab([Path::new("compare"), &study, Path::new("--on"), &directory]).good();
    assert_eq!(fs::read_dir(&directory).expect("there").count(), 2);
    // And one workload runs there, on files and on an array.
    for prefix in ["", "raw:"] {
        let mut target = OsString::from(prefix);
        target.push(&directory);
        let arguments = ["run", "dd-write", "size=1MiB", "--json", "-", "--target"];
        let arguments = arguments.map(OsString::from).into_iter().chain([target]);
        let ran = raidlab(arguments).good();
        assert!(ran.stdout.contains("not-\u{fffd}-unicode"), "{}", ran.stdout);
    }
}

#[test]
fn drives_that_were_probably_meant_are_named() {
    let meant = "did you mean `nas-8tb-7200`?";
    raidlab(["drive", "show", "nas-8tb-720"]).refused(&["no such drive", meant]);
    raidlab(["run", "dd-read", "size=1MiB", "--drive", "nas-8tb"])
        .refused(&["no such drive", meant]);
    raidlab(["tune", "readahead", "--drives", "nas-8tb"]).refused(&["no such drive", meant]);
}

#[test]
fn files_are_for_real_time_and_threads_for_virtual_time() {
    let scratch = Scratch::new("wrong-clock");
    let study = with(7, "file = \"64MiB\"");
    refused(
        &scratch,
        &study,
        7,
        "drives.file",
        &["virtual time needs modelled drives", "--on DIR"],
    );
    let on = scratch.directory("on");
    let ran = raidlab(["compare", "--threads", "2", "--on", &on.display().to_string()]);
    ran.refused(&["--threads: is for virtual time only"]);
    assert!(names(&on).is_empty());
}

/// What only shows when arrays are made of files is told with file, line and key, too.
#[test]
fn files_that_do_not_suit_the_study_are_refused_before_anything_is_made() {
    let scratch = Scratch::new("small-files");
    let on = scratch.directory("on");
    let refused = |text: &str, words: &[&str]| {
        let path = scratch.file("study.toml", text);
        raidlab([Path::new("compare"), &path, Path::new("--on"), &on]).refused(words);
        assert!(names(&on).is_empty(), "{:?}", names(&on));
    };
    refused(&small_on_files("32KiB"), &["study.toml:13: layouts.members: member 0 has room for"]);
    refused(&small_on_files("1MiB"), &["study.toml:", "workloads.size: dd-write 96KiB on single"]);
    refused(
        &small_on_files("4MiB").replace("block = \"128KiB\"", "block = \"512B\""),
        &["study.toml:", "workloads.block: dd-read 512B on single", "4KiB"],
    );
}

#[test]
fn flags_that_cannot_be() {
    let scratch = Scratch::new("flags");
    let in_scratch = |name: &str| scratch.path().join(name).display().to_string();
    let (read_only, nowhere) = (in_scratch("read-only.json"), in_scratch("no/such/directory.json"));
    let file = scratch.file("read-only.json", "mine");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("permissions");
    let directory = scratch.path().display().to_string();
    let both = in_scratch("both");
    let table: [(&[&str], &[&str]); 15] = [
        (&["--rounds", "0"], &["--rounds", "1..=1000"]),
        (&["--rounds", "-1"], &["unexpected argument"]),
        (&["--threads", "0"], &["--threads", "1..=256"]),
        (&["--seed", "x"], &["--seed"]),
        (&["--size", "7 apples"], &["--size", "is not a size; write a number and a unit"]),
        (&["--size", "0"], &["--size: must be more than nothing"]),
        (&["--size", "5000"], &["--size 5000B: ", "multiple of"]),
        (&["--size", "9TB"], &["--size 9TB: ", "on single"]),
        (&["--color", "green"], &["auto, always, never"]),
        (&["--nonsense"], &["--nonsense"]),
        (&["--json", &read_only], &["--json", "it is read-only"]),
        (&["--json", &nowhere], &["--json", "No such file or directory"]),
        (&["--html", &directory], &["--html", "it is a directory; name a file in it"]),
        (&["--html", &both, "--json", &both], &["--json and --html cannot both write"]),
        (&["--html", "-", "--json", "-"], &["--json and --html cannot both print"]),
    ];
    for (flags, words) in table {
        raidlab([&["compare"], flags].concat()).refused(words);
    }
    assert_eq!(names(scratch.path()), ["read-only.json"]);
    assert_eq!(fs::read_to_string(&file).expect("still there"), "mine");
}

#[test]
fn a_place_for_files_that_cannot_be() {
    let scratch = Scratch::new("places");
    let file = scratch.file("a-file", "mine").display().to_string();
    let missing = scratch.path().join("missing").display().to_string();
    let right = "--on takes `virtual`, a directory";
    raidlab(["compare", "--on", &file]).refused(&["a-file: not a directory", right]);
    raidlab(["compare", "--on", &missing]).refused(&["missing: No such file", right]);
    raidlab(["compare", "--on", "/dev/null"]).refused(&["1 devices are given", "uses 4"]);
}

/// Runs without privileges, since a privileged user may write anywhere.
#[test]
fn a_read_only_directory_is_refused() {
    // Below the system's directory for temporary files, where every user gets to.
    let scratch = Scratch::within(&std::env::temp_dir(), "read-only");
    let binary = scratch.path().join("raidlab");
    // By another program: a file that any process still has open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_raidlab")).arg(&binary).status();
    assert!(copied.expect("cp").success());
    let on = scratch.directory("on");
    let study = scratch.file("study.toml", SMALL);
    fs::set_permissions(&on, fs::Permissions::from_mode(0o555)).expect("permissions");
    let mut command = Command::new(&binary);
    command.env("RAIDLAB_STORE", "off").arg("compare").arg(&study).arg("--on").arg(&on);
    let me = fs::metadata(scratch.path()).expect("ours").uid();
    if me == 0 {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let ran: Ran = command.output().expect("the binary runs").into();
    ran.refused(&[
        "cannot make a run directory",
        "Permission denied",
        "directory you may write to",
    ]);
    assert!(names(&on).is_empty());
}

#[test]
fn without_a_command_help_is_printed() {
    let ran = raidlab::<&str>([]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("Usage: raidlab <COMMAND>"), "{}", ran.stderr);
    for help in [&["--help"][..], &["compare", "--help"], &["layout", "-h"], &["help", "layout"]] {
        let ran = raidlab(help).good();
        assert!(ran.stdout.contains("Examples:\n  raidlab "), "{}", ran.stdout);
    }
}
