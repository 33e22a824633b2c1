//! Study files that are wrong: each with the line, the key and words of the error.

use raidlab_study::StudyErrorKind::{self, *};
use raidlab_study::parse;

/// A good study, line by line, in which single lines are replaced.
const GOOD: &str = r#"title = "A study"
seed = 1
rounds = 6
max_rounds = 6
precision = "5%"
baseline = ["single"]
processes = [1, 2]
states = ["healthy"]

[[drives]]
name = "nas"
model = "nas-8tb-7200"
count = 4

[[layouts]]
level = "single"

[[layouts]]
name = "five"
level = "raid5"
members = 4
chunk = "64KiB"
rotation = "left-symmetric"
drives = "nas"

[[layouts]]
level = "raid10"
members = 4
near = 2

[[workloads]]
kind = "random-read"
block = "4KiB"
size = "4MiB"
span = "100%"
"#;

/// The text with line `line` (from 1) replaced.
fn with(line: usize, new: &str) -> String {
    let lines = GOOD.lines().enumerate();
    lines.map(|(at, old)| if at + 1 == line { new } else { old }.to_string() + "\n").collect()
}

fn check(text: &str, kind: StudyErrorKind, line: u32, key: &str, words: &[&str]) {
    let error = parse(text, "my.toml").expect_err(&format!("{key} {words:?}"));
    let shown = error.to_string();
    assert_eq!((error.kind, error.line, error.key.as_str()), (kind, Some(line), key), "{shown}");
    for word in words {
        assert!(error.reason.contains(word), "`{shown}` lacks `{word}`");
    }
    let place = if key.is_empty() {
        format!("my.toml:{line}: ")
    } else {
        format!("my.toml:{line}: {key}: ")
    };
    assert!(shown.starts_with(&place), "{shown}");
}

/// Replaces one line by the text and expects the error at the same line.
fn check_line(cases: &[(usize, &str, StudyErrorKind, &str, &[&str])]) {
    parse(GOOD, "good").unwrap();
    for (line, new, kind, key, words) in cases {
        check(&with(*line, new), *kind, *line as u32, key, words);
    }
}

#[test]
fn the_file_itself() {
    check_line(&[
        (3, "rounds =", Syntax, "", &["not TOML"]),
        (4, "rounds = 7", Syntax, "", &["duplicate key"]),
        (2, "sede = 1", UnknownKey, "sede", &["did you mean `seed`?", "known here: title, seed"]),
        (2, "colour = 1", UnknownKey, "colour", &["unknown key; known here"]),
        (1, "title = 5", WrongType, "title", &["found integer; must be a text in quotes"]),
        (1, "title = \" \"", WrongValue, "title", &["must not be empty"]),
        (2, "seed = -1", WrongValue, "seed", &["-1 is out of range; from 0 to"]),
        (2, "seed = \"1\"", WrongType, "seed", &["found string; must be a whole number"]),
        (2, "seed = 1.5", WrongType, "seed", &["found float"]),
        (3, "rounds = 0", WrongValue, "rounds", &["0 is out of range; from 1 to 10000"]),
        (4, "max_rounds = 5", WrongValue, "max_rounds", &["less than the 6 rounds"]),
        (5, "precision = 5", WrongUnit, "precision", &["such as \"5%\""]),
        (5, "precision = \"5\"", WrongUnit, "precision", &["`5` is not a percentage", "\"5%\""]),
        (5, "precision = \"0%\"", WrongValue, "precision", &["`0%` is out of range"]),
        (5, "precision = \"NaN%\"", WrongValue, "precision", &["out of range"]),
        (5, "precision = \"101%\"", WrongValue, "precision", &["up to 100%"]),
    ]);
    check(&with(2, "zeta = 1\nalpha = 2"), UnknownKey, 2, "zeta", &["unknown key; known here"]);
    check(&with(1, ""), MissingKey, 1, "title", &["missing; write for instance title ="]);
}

#[test]
fn lists() {
    let names = "they are: single, five, raid10(4)";
    check_line(&[
        (
            6,
            "baseline = \"single\"",
            WrongType,
            "baseline",
            &["a list, such as baseline = [\"single\"]"],
        ),
        (6, "baseline = []", WrongValue, "baseline", &["the list is empty"]),
        (6, "baseline = [\"singel\"]", UnknownName, "baseline", &["did you mean `single`?", names]),
        (
            6,
            "baseline = [\"raid6(4)\"]",
            UnknownName,
            "baseline",
            &["`raid6(4)` names no layout", names],
        ),
        (
            6,
            "baseline = [\"five\", \"five\"]",
            DuplicateName,
            "baseline",
            &["`five` stands here twice"],
        ),
        (6, "baseline = [5]", WrongType, "baseline", &["found integer"]),
        (7, "processes = 4", WrongType, "processes", &["such as processes = [1, 2, 4]"]),
        (7, "processes = []", WrongValue, "processes", &["empty"]),
        (7, "processes = [1, 0]", WrongValue, "processes", &["0 is out of range; from 1 to 4096"]),
        (7, "processes = [2, 1, 2]", DuplicateName, "processes", &["2 stands here twice"]),
        (7, "processes = [1, \"2\"]", WrongType, "processes", &["found string"]),
        (
            8,
            "states = [\"helthy\"]",
            UnknownName,
            "states",
            &["did you mean `healthy`?", "degraded"],
        ),
        (8, "states = [\"healthy\", \"healthy\"]", DuplicateName, "states", &["twice"]),
        (8, "member_size = \"1000\"", WrongValue, "member_size", &["not a multiple of 4KiB"]),
        (8, "member_size = 4096", WrongUnit, "member_size", &["write a size with its unit"]),
    ]);
    let bare =
        with(8, "states = [\"rebuilding\"]").replace("level = \"raid5\"", "level = \"raid0\"");
    let bare = bare.replace("rotation = \"left-symmetric\"\n", "\n");
    let bare = bare.replace("level = \"raid10\"", "level = \"raid0\"").replace("near = 2\n", "\n");
    check(&bare, WrongValue, 8, "states", &["no layout survives", "`rebuilding`"]);
    let named =
        with(8, "states = [\"rebuilding\"]").replacen("kind =", "name = \"rebuild\"\nkind =", 1);
    check(&named, DuplicateName, 8, "states", &["a workload is called `rebuild`"]);
    let spread = with(6, "baseline = [\n  \"single\",\n  \"six\",\n]");
    check(&spread, UnknownName, 8, "baseline", &["`six` names no layout"]);
}

/// Keys of the study as of a layout; line 22 is the layout's chunk.
#[test]
fn consistency_and_pacing() {
    let chunk = "chunk = \"64KiB\"";
    let of_layout = |line: &str| with(22, &format!("{chunk}\n{line}"));
    for (line, kind, key, words) in [
        ("consistency = \"bitmpa\"", UnknownName, "consistency", ["did you mean `bitmap`?", "ppl"]),
        ("consistency = 1", WrongType, "consistency", ["a text in quotes", ""]),
        (
            "bitmap_chunk = \"1MiB\"",
            ImpossibleLayout,
            "bitmap_chunk",
            ["consistency = \"bitmap\"", ""],
        ),
        ("bitmap_chunk = \"12KiB\"", WrongValue, "bitmap_chunk", ["not a power of two", ""]),
        ("journal_size = \"1MiB\"", ImpossibleLayout, "journal_size", ["\"journal\"", ""]),
        ("journal_size = \"513\"", WrongValue, "journal_size", ["not a multiple of 4KiB", ""]),
        ("tie = \"rmw\"", UnknownName, "tie", ["known: reconstruct-write", "read-modify-write"]),
        ("cached_stripes = -1", WrongValue, "cached_stripes", ["out of range", ""]),
        ("group_thread_cnt = 8193", WrongValue, "group_thread_cnt", ["out of range", ""]),
        ("pacing = \"1MB/s\"", WrongType, "pacing", ["must be a table", "least"]),
        ("pacing = { lest = \"1MB/s\" }", UnknownKey, "pacing.lest", ["did you mean `least`?", ""]),
        ("pacing = { least = \"1MB\" }", WrongUnit, "pacing.least", ["bytes a second", "200MiB/s"]),
        ("pacing = { most = \"1kB/s\" }", WrongValue, "pacing.most", ["less than the least", ""]),
        ("pacing = { share = \"0%\" }", WrongUnit, "pacing.share", ["from 1% to 100%", ""]),
        (
            "pacing = { least = \"1MB/s\", share = \"5%\" }",
            WrongValue,
            "pacing.share",
            ["beside `least`", ""],
        ),
        (
            "pacing = { sync_io_depth = 32, share = \"5%\" }",
            WrongValue,
            "pacing.share",
            ["beside `sync_io_depth`", ""],
        ),
        (
            "pacing = { sync_io_depth = 0 }",
            WrongValue,
            "pacing.sync_io_depth",
            ["out of range", ""],
        ),
    ] {
        check(
            &of_layout(line),
            kind,
            23,
            &format!("layouts.{key}").replace("layouts.pacing.", "pacing."),
            &words,
        );
        let key = key.to_string();
        if !matches!(kind, ImpossibleLayout) {
            check(&with(8, line), kind, 8, &key, &words);
        }
    }
    let single = |line: &str| with(16, &format!("level = \"single\"\n{line}"));
    for (line, key) in [
        ("consistency = \"resync\"", "consistency"),
        ("tie = \"never-modify\"", "tie"),
        ("cached_stripes = 4", "cached_stripes"),
        ("group_thread_cnt = 4", "group_thread_cnt"),
        ("pacing = { share = \"5%\" }", "pacing"),
    ] {
        check(&single(line), ImpossibleLayout, 17, &format!("layouts.{key}"), &["linear has no"]);
    }
    let six = of_layout("consistency = \"ppl\"").replace("raid5", "raid6");
    check(&six, ImpossibleLayout, 23, "layouts.consistency", &["is for raid5, not raid6"]);
}

#[test]
fn drives() {
    check_line(&[
        (11, "nmae = \"nas\"", UnknownKey, "drives.nmae", &["did you mean `name`?"]),
        (12, "path = \"/dev/null\"", NotSupported, "drives.path", &["use `model` or `file`"]),
        (12, "file = \"64Mib/s\"", WrongUnit, "drives.file", &["is not a size", "such as 64KiB"]),
        (12, "file = 64", WrongUnit, "drives.file", &["write a size with its unit"]),
        (12, "file = \"1000B\"", WrongValue, "drives.file", &["1000B is not a multiple of 4KiB"]),
        (12, "file = \"0MiB\"", WrongValue, "drives.file", &["more than nothing"]),
        (12, "model = \"\"", WrongValue, "drives.model", &["must not be empty"]),
        (
            13,
            "scheduler = \"dedline\"",
            UnknownName,
            "drives.scheduler",
            &["known: noop, deadline", "did you mean `deadline`?"],
        ),
        (13, "scheduler = 1", WrongType, "drives.scheduler", &["a text in quotes"]),
        (13, "count = 0", WrongValue, "drives.count", &["0 is out of range; from 1 to 128"]),
        (13, "count = \"4\"", WrongType, "drives.count", &["a whole number"]),
        (
            13,
            "file = \"64MiB\"",
            WrongValue,
            "drives.file",
            &["beside `model`", "model, path, file"],
        ),
    ]);
    let real = with(12, "file = \"64MiB\"\nscheduler = \"cfq\"");
    check(&real, WrongValue, 13, "drives.scheduler", &["only modelled drives"]);
    let renamed = with(11, "name = \"disks\"");
    check(
        &renamed,
        UnknownName,
        24,
        "layouts.drives",
        &["`nas` names no group", "they are: disks"],
    );
    check(&with(11, ""), MissingKey, 10, "drives.name", &["write for instance name = \"nas\""]);
    check(&with(12, ""), MissingKey, 10, "drives.model", &["model = \"nas-8tb-7200\"", "file ="]);
    let twice = GOOD.to_string() + "[[drives]]\nname = \"nas\"\nfile = \"1MiB\"\n";
    check(&twice, DuplicateName, 37, "drives.name", &["two drives are called `nas`"]);
    let none = GOOD.replace("[[drives]]", "[[layouts]]");
    check(&none, MissingKey, 1, "drives", &["headed [[drives]]"]);
    let single = GOOD.replace("[[drives]]", "[drives]");
    check(&single, WrongType, 10, "drives", &["found table; must be a list", "[[drives]]"]);
    let empty = GOOD.replace("[[drives]]", "[[other]]").replacen('\n', "\ndrives = []\n", 1);
    let error = parse(&empty, "my.toml").unwrap_err();
    assert_eq!((error.kind, error.key.as_str()), (UnknownKey, "other"), "{error}");
}

#[test]
fn layouts() {
    check_line(&[
        (
            20,
            "level = \"raid57\"",
            UnknownName,
            "layouts.level",
            &["`raid57` is not a level", "raid6, raid10, single"],
        ),
        (
            22,
            "arrays = 2",
            ImpossibleLayout,
            "layouts.arrays",
            &["is for nested levels, such as raid5+0, not raid5"],
        ),
        (20, "level = \"riad5\"", UnknownName, "layouts.level", &["did you mean `raid5`?"]),
        (
            21,
            "members = 2",
            ImpossibleLayout,
            "layouts.members",
            &["raid5 needs at least 3 members, not 2"],
        ),
        (21, "members = 200", ImpossibleLayout, "layouts.members", &["at most 128 members"]),
        (
            21,
            "members = 5",
            TooFewDrives,
            "layouts.members",
            &["5 members need more drives than the 4 of `nas`"],
        ),
        (21, "members = 0", WrongValue, "layouts.members", &["out of range"]),
    ]);
}

#[test]
fn parameters_of_layouts() {
    check_line(&[
        (
            22,
            "chunk = \"1000B\"",
            ImpossibleLayout,
            "layouts.chunk",
            &["not a multiple of the sector"],
        ),
        (22, "chunk = \"96KiB\"", ImpossibleLayout, "layouts.chunk", &["power of two, not 96KiB"]),
        (22, "chunk = \"64KB/s\"", WrongUnit, "layouts.chunk", &["`64KB/s` is not a size"]),
        (22, "chunk = 64", WrongUnit, "layouts.chunk", &["found integer", "\"64KiB\""]),
        (22, "chunck = \"64KiB\"", UnknownKey, "layouts.chunck", &["did you mean `chunk`?"]),
        (
            23,
            "rotation = \"left-symetric\"",
            UnknownName,
            "layouts.rotation",
            &["did you mean `left-symmetric`?"],
        ),
        (
            23,
            "rotation = \"clockwise\"",
            UnknownName,
            "layouts.rotation",
            &["not a rotation; raid5 has: left-asymmetric, right-asymmetric, left-symmetric"],
        ),
        (
            23,
            "rotation = \"ddf-N-restart\"",
            ImpossibleLayout,
            "layouts.rotation",
            &["raid5 has no ddf-N-restart; possible: left-asymmetric"],
        ),
        (23, "far = 2", ImpossibleLayout, "layouts.far", &["raid5 has no far; leave it out"]),
        (23, "offset = 2", ImpossibleLayout, "layouts.offset", &["raid5 has no offset"]),
        (23, "far_sets = 2", ImpossibleLayout, "layouts.far_sets", &["raid5 has no far_sets"]),
        (23, "zones = \"original\"", ImpossibleLayout, "layouts.zones", &["raid5 has no zones"]),
        (29, "far = 5", ImpossibleLayout, "layouts.far", &["possible are from 2 to the 4 members"]),
        (29, "near = 1\nfar = 1", ImpossibleLayout, "layouts.near", &["from 2 to the 4 members"]),
        (29, "offset = 1", WrongValue, "layouts.offset", &["from 2 to"]),
        (29, "offset = true", WrongType, "layouts.offset", &["a whole number"]),
        (29, "offset = 5", ImpossibleLayout, "layouts.offset", &["near 1 x offset 5 are 5 copies"]),
        (29, "far_sets = 2", ImpossibleLayout, "layouts.far_sets", &["at least 2 far copies"]),
        (23, "near = 2", ImpossibleLayout, "layouts.near", &["raid5 has no near; leave it out"]),
        (
            24,
            "drives = \"nsa\"",
            UnknownName,
            "layouts.drives",
            &["names no group of drives", "they are: nas"],
        ),
        (
            19,
            "name = \"single\"",
            DuplicateName,
            "layouts.name",
            &["two layouts are called `single`"],
        ),
        (29, "near = 5", ImpossibleLayout, "layouts.near", &["from 2 to the 4 members, not 5"]),
        (
            29,
            "rotation = \"left-symmetric\"",
            ImpossibleLayout,
            "layouts.rotation",
            &["raid10 has no rotation"],
        ),
    ]);
}

#[test]
fn layouts_as_a_whole() {
    check(&with(21, ""), MissingKey, 18, "layouts.members", &["members = 4"]);
    check(&with(20, ""), MissingKey, 18, "layouts.level", &["level = \"raid5\""]);
    let named = with(29, "name = \"five\"");
    check(&named, DuplicateName, 29, "layouts.name", &["two layouts are called `five`"]);
    let unnamed = with(27, "level = \"linear\"")
        .replace("near = 2\n", "[[layouts]]\nlevel = \"linear\"\nmembers = 4\n");
    check(&unnamed, DuplicateName, 29, "layouts.name", &["`linear(4)`", "another `name`"]);
    let single = with(16, "level = \"single\"\nmembers = 2");
    check(&single, ImpossibleLayout, 17, "layouts.members", &["`single` is one drive alone"]);
    let spare = with(23, "spares = 1");
    let too_few = "4 members and 1 spare need more drives than the 4 of `nas`; use fewer of them";
    check(&spare, TooFewDrives, 23, "layouts.spares", &[too_few]);
    let bare = with(27, "level = \"linear\"").replace("near = 2", "spares = 1");
    check(&bare, ImpossibleLayout, 29, "layouts.spares", &["linear has nothing to rebuild"]);
    check(&with(23, "spares = \"one\""), WrongType, 23, "layouts.spares", &["a whole number"]);
    check(&with(23, "spares = -1"), WrongValue, 23, "layouts.spares", &["out of range"]);
    let mirror = with(27, "level = \"raid1\"").replace("near = 2", "chunk = \"64KiB\"");
    check(&mirror, ImpossibleLayout, 29, "layouts.chunk", &["raid1 has no chunk; leave it out"]);
    let both = with(29, "offset = 2\nfar = 2");
    check(&both, ImpossibleLayout, 29, "layouts.offset", &["beside `far`"]);
    let modes = with(29, "far_sets = 1\nfar = 2");
    check(&modes, ImpossibleLayout, 29, "layouts.far_sets", &["mode 1 of md", "use 2 for sets"]);
    let overlap = with(28, "members = 3").replace("near = 2", "near = 2\noffset = 2");
    check(&overlap, ImpossibleLayout, 30, "layouts.offset", &["near 2 x offset 2 are 4 copies"]);
    let zones = with(27, "level = \"raid0\"").replace("near = 2", "zones = \"alternat\"");
    check(&zones, UnknownName, 29, "layouts.zones", &["known: original", "`alternate`?"]);
    let three = with(27, "level = \"raid3\"");
    check(&three, ImpossibleLayout, 29, "layouts.near", &["raid3 has no near"]);
    let three = three.replace("near = 2\n", "");
    check(&three, ImpossibleLayout, 28, "layouts.members", &["(3, 5, 9, 17, 33, 65), not 4"]);
}

#[test]
fn workloads() {
    check_line(&[
        (
            32,
            "kind = \"random-reed\"",
            UnknownName,
            "workloads.kind",
            &["did you mean `random-read`?"],
        ),
        (
            32,
            "kind = \"bonnie\"",
            UnknownName,
            "workloads.kind",
            &["not a kind of workload; known: dd-write"],
        ),
        (
            33,
            "block = \"5000B\"",
            WrongValue,
            "workloads.block",
            &["multiple of the sector (512 bytes)"],
        ),
        (33, "block = \"4 parsecs\"", WrongUnit, "workloads.block", &["is not a size"]),
        (33, "block = \"2GiB\"", WrongValue, "workloads.block", &["at most 1GiB"]),
        (
            34,
            "size = \"4098KiB\"",
            WrongValue,
            "workloads.size",
            &["not a multiple of the block (4KiB)"],
        ),
        (34, "size = 4", WrongUnit, "workloads.size", &["with its unit"]),
        (34, "size = \"0\"", WrongValue, "workloads.size", &["more than nothing"]),
        (35, "span = \"101%\"", WrongUnit, "workloads.span", &["from 1% to 100%"]),
        (35, "span = \"half\"", WrongUnit, "workloads.span", &["such as 50% or 64GiB"]),
        (35, "span = 50", WrongType, "workloads.span", &["found integer"]),
        (35, "spam = \"50%\"", UnknownKey, "workloads.spam", &["did you mean `span`?"]),
    ]);
    check(&with(34, ""), MissingKey, 31, "workloads.size", &["size = \"4GiB\""]);
    check(&with(32, ""), MissingKey, 31, "workloads.kind", &["kind = \"dd-write\""]);
    let twice = GOOD.to_string() + "[[workloads]]\nkind = \"random-read\"\nsize = \"1MiB\"\n";
    check(
        &twice,
        DuplicateName,
        36,
        "workloads.name",
        &["two workloads are called `random-read 4KiB`"],
    );
}

/// Cut anywhere, or with any line missing or doubled, a study gives a value or an error whose line
/// is in the file.
#[test]
fn no_text_makes_it_panic() {
    let lines: Vec<&str> = GOOD.lines().collect();
    let mut texts: Vec<String> = (0..GOOD.len()).map(|end| GOOD[..end].to_string()).collect();
    for at in 0..lines.len() {
        let (before, after) = lines.split_at(at);
        texts.push([before, &after[1..]].concat().join("\n"));
        texts.push([before, &after[..1], after].concat().join("\n"));
        texts.push([before, &["\u{0}[[é"], after].concat().join("\r\n"));
    }
    let mut wrong = 0;
    for text in &texts {
        if let Err(error) = parse(text, "my.toml") {
            wrong += 1;
            let last = text.lines().count().max(1) as u32;
            assert!(error.line.is_some_and(|line| (1..=last + 1).contains(&line)), "{error}");
        }
    }
    assert!(wrong > texts.len() / 2, "{wrong} of {}", texts.len());
}

#[test]
fn filesystems_and_parameters_of_workloads() {
    let words = ["did you mean `ext4`?"];
    check(&with(2, "filesystem = \"ext5\""), UnknownName, 2, "filesystem", &words);
    check(&with(2, "filesystem = 4"), WrongType, 2, "filesystem", &["found integer"]);
    let tiobench = GOOD.replace("random-read", "tiobench-0.3").replace("span = \"100%\"\n", "");
    parse(&tiobench, "my.toml").expect("a good study");
    let with = |line: &str| tiobench.replace("block = \"4KiB\"", line);
    let known = ["is not a parameter", "did you mean `threads`?"];
    check(&with("thread = 2"), UnknownKey, 33, "workloads.thread", &known);
    check(&with("threads = 0"), WrongValue, 33, "workloads.threads", &["0"]);
    check(&with("threads = 1.5"), WrongType, 33, "workloads.threads", &["found float"]);
}

#[test]
fn members_of_several_groups() {
    let two = with(24, "drives = [\"nas\", \"nas\"]");
    check(&two, WrongValue, 24, "layouts.drives", &["2 groups for 4 members"]);
    let unknown = with(24, "drives = [\"nas\", \"nas\", \"nas\", \"old\"]");
    check(&unknown, UnknownName, 24, "layouts.drives", &["`old` names no group"]);
    let other = "\n[[drives]]\nname = \"old\"\nmodel = \"nas-4tb-5400\"\n";
    let mixed = with(24, "drives = [\"old\", \"nas\", \"old\", \"nas\"]") + other;
    check(&mixed, TooFewDrives, 21, "layouts.members", &["2 members", "the 1 of `old`"]);
    let good = mixed.replace("\"old\", \"nas\"]", "\"nas\", \"nas\"]");
    let study = parse(&good, "my.toml").expect("a good study");
    assert_eq!((study.layouts[1].drives, study.layouts[1].each.clone()), (1, vec![1, 0, 0, 0]));
    assert_eq!([0, 1, 9].map(|place| study.layouts[1].group(place)), [1, 0, 1]);
}

/// Everything that is wrong is told at once, in the order of the lines, without what only follows.
#[test]
fn all_errors_are_told_at_once() {
    let errors = |changes: &[(usize, &str)]| {
        let lines = GOOD.lines().enumerate().map(|(at, old)| {
            let change = changes.iter().find(|(line, _)| *line == at + 1);
            change.map_or(old, |(_, new)| new).to_string() + "\n"
        });
        let error = parse(&lines.collect::<String>(), "my.toml").expect_err("wrong");
        let shown = error.to_string();
        let all: Vec<(u32, String)> = std::iter::once(&error)
            .chain(&error.also)
            .map(|error| (error.line.expect("a line"), error.key.clone()))
            .collect();
        assert_eq!(shown.lines().count(), all.len(), "{shown}");
        assert!(shown.lines().all(|line| line.starts_with("my.toml:")), "{shown}");
        all
    };
    let key = |line: u32, key: &str| (line, key.to_string());
    assert_eq!(
        errors(&[
            (2, "sede = 1"),
            (3, "ruonds = 6"),
            (7, "processes = [0]"),
            (12, "model = \"nas-9tb\""),
            (22, "chunk = \"1000B\""),
            (29, "near = 0"),
            (35, "span = \"0%\""),
        ]),
        [
            key(2, "sede"),
            key(3, "ruonds"),
            key(7, "processes"),
            key(12, "drives.model"),
            key(22, "layouts.chunk"),
            key(29, "layouts.near"),
            key(35, "workloads.span"),
        ]
    );
    // A group, a layout and a list that could not be read are not missed by what names them.
    assert_eq!(errors(&[(12, "modle = \"nas-8tb-7200\"")]), [key(12, "drives.modle")]);
    assert_eq!(errors(&[(16, "level = \"sinlge\"")]), [key(16, "layouts.level")]);
    assert_eq!(errors(&[(1, "titel = \"A study\"")]), [key(1, "titel")]);
}

/// All that is wrong with one table is told, too, but not what may only follow from what could not be read.
#[test]
fn all_errors_of_a_table_are_told_at_once() {
    let of = |drives: &str, layout: &str, workload: &str| {
        let text = format!(
            "title = \"T\"\n[[drives]]\nname = \"a\"\n{drives}\n[[layouts]]\n{layout}\n[[workloads]]\n{workload}\n"
        );
        let error = parse(&text, "my.toml").expect_err("wrong");
        let all = std::iter::once(&error).chain(&error.also);
        all.map(|error| error.key.clone()).collect::<Vec<_>>()
    };
    let (good, raid, read) = (
        "model = \"nas-8tb-7200\"\ncount = 4",
        "level = \"raid5\"\nmembers = 4",
        "kind = \"random-read\"\nsize = \"64KiB\"",
    );
    let layout = format!("{raid}\nchunk = \"64\"\nrotation = \"left\"\nname = 7");
    assert_eq!(of(good, &layout, read), ["layouts.chunk", "layouts.rotation", "layouts.name"]);
    let drives = "model = \"nas-9tb\"\ncount = \"four\"\nscheduler = \"elevator\"";
    assert_eq!(of(drives, raid, read), ["drives.model", "drives.count"]);
    let work = "kind = \"random-read\"\nsize = \"64KiB\"\nblokc = \"4KiB\"\nblock = 4\nshow = 3";
    let told = of(good, raid, work);
    assert_eq!(told, ["workloads.blokc", "workloads.block", "workloads.show"]);
    // Spares of too few members, and a journal of another mode, may be right with what was left out.
    assert_eq!(
        of(good, "level = \"raid5\"\nmembers = \"4\"\nspares = 9", read),
        ["layouts.members"]
    );
    let mode = format!("{raid}\nconsistency = \"jounral\"\njournal_size = \"1GiB\"");
    assert_eq!(of(good, &mode, read), ["layouts.consistency"]);
    assert_eq!(of(good, "level = \"raid9\"\nmembers = 4\nnear = 2", read), ["layouts.level"]);
}
