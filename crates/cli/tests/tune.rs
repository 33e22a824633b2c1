//! `raidlab tune readahead`: what it finds on modelled drives, prints and refuses.

use crate::support::{self, Scratch, raidlab};

fn tune(arguments: &[&str]) -> String {
    raidlab([&["tune", "readahead", "--size", "32MiB", "--seeds", "2"], arguments].concat())
        .good()
        .stdout
}

fn refused(arguments: &[&str], words: &[&str]) {
    raidlab([&["tune", "readahead"], arguments].concat()).refused(words);
}

/// A study with a mirror on FreeBSD and one on Linux.
const STUDY: &str = "title = \"two systems\"\nseed = 5\nfilesystem = \"native\"\n\
    host = { kernel = \"freebsd-6.2\", memory = \"1GiB\" }\n\
    [[drives]]\nname = \"disk\"\nmodel = \"sata-250gb-7200\"\ncount = 2\n\
    [[layouts]]\nname = \"free\"\nlevel = \"raid1\"\nmembers = 2\npolicy = \"gmirror-round-robin\"\n\
    [[layouts]]\nname = \"linux\"\nlevel = \"raid1\"\nmembers = 2\n\
    host = { kernel = \"linux-2.6.20\" }\n\
    [[workloads]]\nkind = \"cp-parallel\"\n";

#[test]
fn windows_rates_knee_and_command_are_printed_for_each_layout() {
    let scratch = Scratch::new("tune-table");
    let study = scratch.file("two.toml", STUDY);
    let study = study.to_str().expect("text");
    let text = tune(&[study]);
    assert!(text.contains("two systems") && text.contains("virtual clock; 2 seeds"), "{text}");
    let (free, linux) = text.split_once("\nlinux on linux-2.6.20\n").expect("both layouts");
    assert!(free.contains("\nfree on freebsd-6.2\n") && free.contains("vfs.read_max"), "{free}");
    let rows = |part: &str| {
        let row = |line: &str| Some(line.split_whitespace().next()?.to_string());
        let rows = part.lines().filter(|line| line.contains(" to ") && line.contains("iB "));
        rows.filter_map(row).collect::<Vec<_>>()
    };
    for part in [free, linux] {
        let rows = rows(part);
        assert_eq!(rows[0], "128KiB", "{part}");
        for doubled in ["256KiB", "512KiB"] {
            assert!(rows.iter().any(|row| row == doubled), "{doubled}: {part}");
        }
    }
    for (part, command) in [(free, "  sysctl vfs.read_max="), (linux, "  blockdev --setra ")] {
        let is_there = part.lines().any(|line| line.starts_with(command));
        let knees = part.lines().filter(|line| line.contains(" to ") && line.contains("knee"));
        assert!(is_there && knees.count() == 1, "{part}");
    }
    // One of its layouts, the same figures.
    let one = tune(&[study, "--layout", "linux"]);
    assert!(one.ends_with(linux) && !one.contains("free on"), "{one}");
}

#[test]
fn json_is_the_same_on_any_number_of_threads() {
    let scratch = Scratch::new("tune-json");
    let study = scratch.file("two.toml", STUDY);
    let study = study.to_str().expect("text");
    let one = tune(&[study, "--json", "-", "--threads", "1"]);
    assert_eq!(one, tune(&[study, "--json", "-", "--threads", "3"]));
    let keys = ["\"clock\": \"virtual\"", "\"seed\": 5", "\"seeds\": 2", "\"default\": 131072"];
    for key in keys {
        assert!(one.contains(key), "{key}: {one}");
    }
    assert_ne!(one, tune(&[study, "--json", "-", "--seed", "6"]));
    let file = scratch.path().join("out.json");
    let path = file.to_str().expect("text");
    let table = tune(&[study, "--json", path]);
    assert!(table.contains("knee:"), "{table}");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), one);
    assert_eq!(tune(&[study, "--json", path, "--quiet"]), "");
}

#[test]
fn layouts_and_drives_can_be_described_by_flags() {
    let text =
        tune(&["--layout", "single", "--drives", "pata-40gb-5400", "--kernel", "freebsd-6.2"]);
    assert!(text.contains("single on freebsd-6.2"), "{text}");
    assert!(text.contains("  sysctl vfs.read_max="), "{text}");
    let text = tune(&["--layout", "single"]);
    let command = "  blockdev --setra 256 /dev/sdX  (as it is by default)\n";
    assert!(text.ends_with(command), "a drive of today gains nothing: {text}");
    let text = tune(&["--layout", "raid0(4)", "--processes", "2"]);
    assert!(text.contains("raid0(4) on linux-6.1") && text.contains("2 processes read"), "{text}");
    assert!(text.contains("/dev/mdX"), "{text}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let scratch = Scratch::new("tune-bad");
    let study = scratch.file("two.toml", STUDY);
    let study = study.to_str().expect("text");
    let path = scratch.path().to_str().expect("text").to_string();
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--on", &path], &["--on", "not supported on real drives", "docs/tune.md"]),
        (&[study, "--layout", "linus"], &["--layout linus", "`linux`", "free"]),
        (&["--layout", "raid7(3)"], &["--layout raid7(3)"]),
        (&["--drives", "no-such-drive"], &["--drives", "no-such-drive"]),
        (&["--kernel", "linux-2.4"], &["--kernel", "linux-2.6.12"]),
        (&[study, "--kernel", "linux-6.1"], &["--kernel", "cannot be used with"]),
        (&[study, "--drives", "nas-8tb-7200"], &["--drives", "cannot be used with"]),
        (&[study, "--gain", "0"], &["--gain", "free"]),
        (&[study, "--margin", "100"], &["--margin"]),
        (&[study, "--most", "64KiB"], &["begins at 128 KiB", "--most"]),
        (&[study, "--processes", "0"], &["--processes"]),
        (&["no-such.toml"], &["no-such.toml", "cannot read"]),
        (&[study, "--size", "9TB"], &["--size 9TB", "there are"]),
        (&[study, "--size", "0B"], &["--size 0B"]),
    ];
    for (arguments, expected) in cases {
        refused(arguments, expected);
    }
}

/// Windows and filesystems of modelled hosts mean nothing on files: they are refused before any is made.
#[test]
fn what_only_modelled_hosts_have_is_refused_on_files() {
    let scratch = Scratch::new("tune-files");
    let directory = scratch.directory("drives");
    let on = directory.to_str().expect("text");
    let native = scratch.file("native.toml", STUDY);
    let ext4 = STUDY.replace("\"native\"", "\"ext4\"").replace("freebsd-6.2", "linux-6.1");
    let ahead = scratch.file("ahead.toml", ext4 + "read_ahead = \"1MiB\"\n");
    for (study, words) in [
        (native, ["native.toml:3: filesystem", "`native` is for modelled hosts", "ext4"]),
        (ahead, ["ahead.toml:21: workloads.read_ahead", "modelled hosts", "blockdev --setra"]),
    ] {
        let study = study.to_str().expect("text");
        raidlab(["compare", study, "--on", on, "--size", "1MiB"]).refused(&words);
        assert!(support::names(&directory).is_empty());
    }
}
