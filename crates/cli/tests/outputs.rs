//! What is written takes the place of nothing that is read, and nothing that was measured is lost when it cannot be.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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

#[test]
fn no_two_outputs_are_one() {
    let scratch = Scratch::new("outputs-one");
    scratch.file("mine.toml", STUDY);
    scratch.file("F", "an older trace");
    scratch.directory("sub");
    for (arguments, words) in [
        ("run dd-write size=1MiB --trace F --csv F", "--csv and --trace cannot both write"),
        ("run dd-write size=1MiB --trace new --json ./new", "--json and --trace cannot both"),
        ("compare mine.toml --csv new --markdown sub/../new", "--csv and --markdown cannot both"),
        ("compare mine.toml --trace F --csv ./F", "--csv and --trace cannot both write"),
        (
            "run dd --target null --json - --format text",
            "--json and --format text cannot both print",
        ),
        ("run dd --target null --markdown - --format summary", "--markdown and --format summary"),
        ("run dd-write size=1MiB --trace -", "--trace -: is not printed; name a file"),
        ("run dd-write size=1MiB --trace mine.toml", "--trace mine.toml: no report is such a file"),
        ("calibrate mine.toml --json ./mine.toml", "STUDY or --output and --json cannot both"),
        ("calibrate mine.toml --dry-run --json mine.toml", "mine.toml, which is read"),
    ] {
        within(&scratch, arguments).refused(&[words]);
    }
    assert_eq!(names(scratch.path()), ["F", "mine.toml", "sub"]);
    let text = |name: &str| fs::read_to_string(scratch.path().join(name)).expect("a file");
    assert_eq!((text("F").as_str(), text("mine.toml").as_str()), ("an older trace", STUDY));
}

/// A run that fails begins no trace, and one that goes well replaces it; who may read it stays.
#[test]
fn an_older_trace_stays_until_there_is_a_whole_one() {
    let scratch = Scratch::new("outputs-trace");
    let trace = scratch.file("trace.txt", "an older trace");
    fs::set_permissions(&trace, fs::Permissions::from_mode(0o640)).expect("set");
    let failing = "run random-read size=64KiB span=100TiB --target modelled-raw --trace trace.txt";
    let ran = within(&scratch, failing);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&trace).expect("a file"), "an older trace");
    assert_eq!(names(scratch.path()), ["trace.txt"]);
    within(&scratch, &failing.replace("100TiB", "1GiB")).good();
    assert!(fs::read_to_string(&trace).expect("a file").starts_with("# random-read"));
    assert_eq!(fs::metadata(&trace).expect("a file").permissions().mode() & 0o777, 0o640);
    assert_eq!(names(scratch.path()), ["trace.txt"]);
}
