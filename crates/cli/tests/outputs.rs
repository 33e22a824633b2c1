//! What is written takes the place of nothing that is read, and nothing that was measured is lost when it cannot be.

use std::fs;

use crate::support::{Ran, Scratch, command, names};

const STUDY: &str = "title = \"mine\"\nrounds = 1\n\
    drives = [{ name = \"disk\", model = \"nas-8tb-7200\", count = 3 }]\n\
    layouts = [{ level = \"raid1\", members = 2 }]\n\
    [[workloads]]\nkind = \"random-read\"\nsize = \"64KiB\"\n";

/// A run in a directory, so that paths can be relative.
fn within(scratch: &Scratch, arguments: &str) -> Ran {
    let mut command = command();
    command.current_dir(scratch.path()).args(arguments.split(' '));
    command.output().expect("the binary runs").into()
}

#[test]
fn no_report_overwrites_a_study() {
    let scratch = Scratch::new("outputs-study");
    let files = [
        ("mine.toml", STUDY),
        ("mine.study", STUDY),
        ("jobs.fio", "[a]\nrw=read\nsize=64k\n"),
        ("archive", "not JSON"),
    ];
    for (name, text) in files {
        scratch.file(name, text);
    }
    std::os::unix::fs::symlink("mine.toml", scratch.path().join("link")).expect("a link");
    let before = names(scratch.path());
    let by_hand = ["no report is such a file", "name another file"];
    let no_json = ["is there and is no JSON", "name another file"];
    for (arguments, words) in [
        ("throttle -q --policy md --seeds 1 --json mine.toml", by_hand),
        ("throttle -q --policy md --seeds 1 --json mine.study", no_json),
        ("tune readahead -q --seeds 1 --json ./mine.toml", by_hand),
        ("tune readahead -q --json link", by_hand),
        ("risk raid1(2) --json mine.toml", by_hand),
        ("advise --json mine.toml", by_hand),
        ("run dd --target null --json mine.study", no_json),
        ("run dd --target null --json archive", no_json),
        ("run --list --json mine.study", no_json),
        ("run --target null --json jobs.fio dd", by_hand),
        ("compare --json mine.toml", by_hand),
        ("compare --html mine.toml", by_hand),
        ("compare mine.study --html ./mine.study", ["--html", "mine.study, which is read"]),
        ("advise mine.study --html mine.study", ["--html", "mine.study, which is read"]),
        (
            "calibrate mine.study --dry-run --json mine.study",
            ["--json", "mine.study, which is read"],
        ),
    ] {
        within(&scratch, arguments).refused(&words);
    }
    for (name, text) in files {
        assert_eq!(fs::read_to_string(scratch.path().join(name)).expect("a file"), text, "{name}");
    }
    assert_eq!(names(scratch.path()), before);
}

#[test]
fn json_alone_prints_and_with_a_file_writes_it_again() {
    let scratch = Scratch::new("outputs-json");
    scratch.file("out.json", "cut off by anothe");
    scratch.file("empty", "");
    let printed = within(&scratch, "run dd --target null --json").good().stdout;
    assert!(printed.starts_with("{\n") && printed.ends_with("}\n"), "{printed}");
    // Named so, or empty at first and JSON then.
    for name in ["out.json", "empty", "empty"] {
        within(&scratch, &format!("run dd --target null -q --json {name}")).good();
        let written = fs::read_to_string(scratch.path().join(name)).expect("a file");
        assert!(written.starts_with("{\n"), "{written}");
    }
}

/// What failed after everything was measured: exit status 1, and what was measured, on standard output all the same.
fn shown_all_the_same(ran: &Ran, shown: &str) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains(shown), "no {shown} in {ran:?}");
    let why = "cannot write /dev/full: No space left on device";
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn what_was_measured_is_shown_where_it_cannot_be_written() {
    let scratch = Scratch::new("outputs-full");
    scratch.file("mine.toml", STUDY);
    for (arguments, shown) in [
        ("run dd --target null -q --json /dev/full", "as the original prints it"),
        ("run dd --target null -q --csv /dev/full", "as the original prints it"),
        ("run dd --target null -q --markdown /dev/full", "as the original prints it"),
        ("tune readahead mine.toml --size 4MiB --most 1MiB --seeds 1 -q --json /dev/full", "knee"),
        ("throttle mine.toml --policy md --seeds 1 -q --json /dev/full", "raid1(2), random-read"),
        ("risk raid1(2) --years 1 -q --json /dev/full", "raid1(2)"),
    ] {
        shown_all_the_same(&within(&scratch, arguments), shown);
    }
    // What can be written is.
    let ran = within(&scratch, "run dd --target null -q --json /dev/full --csv rows.csv");
    shown_all_the_same(&ran, "as the original prints it");
    assert!(scratch.path().join("rows.csv").exists());
}
