//! `raidlab check`: what it prints, what it refuses, and that threads make no difference.

use std::fs;
use std::path::Path;

use crate::support::{Running, Scratch, raidlab};
use serde_json::{Value, json};

/// The arguments of a run that is over in moments.
const SMALL: [&str; 9] = [
    "check",
    "--level=raid1",
    "--mode=resync",
    "--seeds=60",
    "--crash-states=3000",
    "--failures",
    "--quiet",
    "--json",
    "-",
];

/// What a document says of something.
fn figure(document: &str, name: &str) -> Value {
    let document: Value = serde_json::from_str(document).expect("JSON");
    document.get(name).unwrap_or_else(|| panic!("no {name} in {document}")).clone()
}

fn number(document: &str, name: &str) -> u64 {
    figure(document, name).as_u64().expect("a number")
}

#[test]
fn the_help_names_the_flags() {
    let help = raidlab(["check", "--help"]).good().stdout;
    let flags = ["--level", "--mode", "--seeds", "--from", "--crash-states", "--failures"];
    let more =
        ["--pairs", "--metadata", "--replay", "--bugs", "--sample", "--by", "--threads", "--json"];
    for flag in flags.iter().chain(&more) {
        assert!(help.contains(flag), "{flag}");
    }
    assert!(help.contains("Exit status: 0 every promise kept"), "{help}");
}

#[test]
fn a_small_run_is_summed_up() {
    let ran = raidlab(SMALL[..6].iter().chain(&["--threads=2"])).good();
    let words =
        ["fault-point sweep ", "crash enumeration ", "swarm ", "60 seeds", "faults hit", "hash "];
    let refused = " operations refused, by arrays that do not have them";
    for word in words.iter().chain(&["every promise was kept", "on 2 threads", refused]) {
        assert!(ran.stdout.contains(word), "`{word}` is not in: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("15 log device"), "raid1 has none: {}", ran.stdout);
}

#[test]
fn threads_make_no_difference() {
    let documents = ["1", "2", "5"].map(|threads| {
        let ran = raidlab(SMALL.iter().chain(&["--threads", threads])).good();
        assert_eq!(figure(&ran.stdout, "threads").to_string(), threads);
        ran.stdout
    });
    let [one, rest @ ..] = &documents;
    assert_eq!(figure(one, "seeds"), 60);
    assert!(number(one, "crash_states") >= 3000 && number(one, "failure_runs") > 1000, "{one}");
    assert!(number(one, "refused_operations") > 0, "{one}");
    assert!(number(one, "power_cuts") > 10 && number(one, "member_ios") > 1000, "{one}");
    assert_eq!((figure(one, "complete"), figure(one, "broken")), (json!(true), json!([])));
    for other in rest {
        for name in
            ["hash", "crash_states", "distinct_images", "refused_operations", "requests", "hits"]
        {
            assert_eq!(figure(one, name), figure(other, name), "{name}");
        }
    }
    let others = raidlab(SMALL.iter().chain(&["--from", "60"])).good().stdout;
    assert_ne!(figure(one, "hash"), figure(&others, "hash"), "other seeds");
}

#[test]
fn all_records_go_through_the_bytes_of_md() {
    let flags = ["check", "--metadata=1.2", "--level=raid1", "--mode=bitmap", "--crash-states=900"];
    let ran = raidlab(flags.iter().chain(&["--seeds=40", "--quiet", "--json", "-"])).good();
    let document = &ran.stdout;
    assert_eq!(figure(document, "metadata"), "1.2");
    assert_eq!(number(document, "states_in_bytes"), number(document, "crash_states"));
    assert_eq!(figure(document, "write_hole_after"), Value::Null);
    assert_eq!((number(document, "seeds"), figure(document, "broken")), (40, json!([])));
    let replay = ["check", "--metadata=1.2", "--level=raid1", "--mode=bitmap", "--replay", "3"];
    let of_md = raidlab(replay).good().stdout;
    assert_ne!(raidlab(replay[..1].iter().chain(&replay[2..])).good().stdout, of_md);
}

#[test]
fn the_write_hole_of_raid5_is_shown() {
    let scratch = Scratch::new("hole");
    let json = scratch.path().join("check.json");
    let flags = ["check", "--level=raid5", "--mode=none", "--crash-states=2000"];
    let ran = raidlab(flags.iter().map(Path::new).chain([Path::new("--json"), &json])).good();
    assert!(ran.stdout.contains("write hole          shown by raid5"), "{}", ran.stdout);
    let document = fs::read_to_string(json).expect("the figures");
    assert!(number(&document, "write_hole_after") > 0, "{document}");
}

#[test]
fn a_replay_prints_a_line_for_every_event() {
    let replay = ["check", "--level=raid1", "--mode=bitmap", "--replay", "3"];
    let ran = raidlab(replay).good();
    let (log, end) = ran.stdout.rsplit_once("seed 3: every promise was kept").expect("its end");
    assert!(end.contains("hash "), "{end}");
    let kinds: Vec<&str> =
        log.lines().map(|line| line.split_whitespace().nth(1).expect("a kind")).collect();
    assert!(kinds.len() > 50 && ["S", "R", ">", "<"].iter().all(|kind| kinds.contains(kind)));
    assert_eq!(raidlab(replay).good().stdout, ran.stdout, "the same again");
    let other = raidlab(["check", "--level=raid1", "--mode=bitmap", "--replay", "4"]).good();
    assert_ne!(other.stdout, ran.stdout);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let refused = |flags: &[&str], words: &[&str]| {
        raidlab(["check"].iter().chain(flags)).refused(words);
    };
    refused(&["--level=raid7"], &["is not a level; known: linear, raid0"]);
    refused(&["--mode=log"], &["not a mode; known: none, resync, bitmap, ppl, journal"]);
    refused(&["--level=raid1", "--mode=ppl"], &["--mode ppl: only raid5 can have it"]);
    refused(&["--metadata=md"], &["not a format; known: own, 0.90, 1.0, 1.1, 1.2"]);
    refused(&["--metadata=1.0", "--mode=journal"], &["--metadata 1.0: it has no journal, but"]);
    refused(&["--metadata=0.90", "--level=raid3"], &["--metadata 0.90: it has no raid3"]);
    refused(&["--metadata=own", "--mode=none"], &["--metadata own: it has no none"]);
    refused(&["--seeds=0"], &["nothing to do"]);
    refused(&["--level=raid0", "--seeds=10"], &["nothing to do", "a level that has redundancy"]);
    refused(&["--level=raid0", "--replay=1"], &["only levels with redundancy"]);
    refused(&["--from=18446744073709551615", "--seeds=9"], &["--from", "too large"]);
    refused(&["--replay=1", "--seeds=5"], &["cannot be used with"]);
    refused(&["--pairs"], &["--failures"]);
    refused(&["--sample=3"], &["--bugs"]);
    refused(&["--threads=0"], &["1..=256"]);
    refused(&["--json=/nowhere/at/all.json"], &["--json", "cannot be written"]);
    refused(&["--replay=crash:raid5"], &["--replay", "is not a seed, or what a broken promise"]);
    let case = "--replay=failure:raid1:2:resync:Read:none";
    refused(
        &[case, "--level=raid1"],
        &["--replay: its array has a level, a mode and metadata of its own"],
    );
}

#[test]
fn ctrl_c_ends_a_check() {
    let mut run = Running::start(["check", "--seeds=1000000000", "--level=raid1", "--threads=2"]);
    run.wait_for_thread(|name| name.starts_with("check-"));
    run.interrupt();
    let ran = run.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), "interrupted\n"));
    assert!(ran.stdout.contains("interrupted         "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("hash "), "a part has no hash: {}", ran.stdout);
}

#[cfg(not(debug_assertions))]
#[test]
fn bugs_need_a_build_of_their_own() {
    raidlab(["check", "--bugs"]).refused(&["no seeded bugs", "cargo xtask bugs"]);
    let planted = ["check", "--replay=1", "--bug=SkipFlushOneMember"];
    raidlab(planted).refused(&["no seeded bugs", "cargo xtask bugs"]);
}

/// Broken promises of every kind, each replayed from the command that was printed.
#[cfg(debug_assertions)]
#[test]
fn the_printed_command_gives_the_same_log() {
    let kinds = [
        (&["--failures"][..], "--level=raid1", "ReadErrorIgnored"),
        (&["--crash-states=9000"], "--level=raid1", "BitmapBitLate"),
        (&["--seeds=300"], "--level=raid4", "CacheNotInvalidated"),
    ];
    for (flags, level, bug) in kinds {
        let planted = ["check", level, "--quiet", "--bug", bug];
        let ran = raidlab(planted.iter().chain(flags));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let replays = || ran.stdout.lines().filter_map(|line| line.trim().strip_prefix("replay: "));
        let command = replays().next().expect("a command to replay");
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        assert!(words.contains(&"--bug"), "{command}");
        let again = raidlab(&words);
        assert_eq!(again.code, Some(1), "{command}: {}", again.stderr);
        let is_event = |line: &&str| {
            let mut words = line.split_whitespace();
            let time = words.next().is_some_and(|time| time.bytes().all(|b| b.is_ascii_digit()));
            time && words.next().is_some_and(|kind| kind.len() == 1)
        };
        let told: Vec<&str> =
            ran.stdout.lines().take_while(|line| !line.starts_with("replay: ")).collect();
        let log: Vec<&str> = told.iter().copied().filter(is_event).collect();
        let replayed: Vec<&str> = again.stdout.lines().filter(is_event).collect();
        assert!(log.len() > 3, "{}", ran.stdout);
        assert_eq!(log, replayed, "{command}");
        let what = told[0].strip_prefix("BROKEN: ").expect("what is wrong");
        assert!(again.stderr.contains(what), "{}", again.stderr);
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_planted_bug_is_found() {
    let quick = ["--seeds=0", "--crash-states=100", "--quiet"];
    let one = ["check", "--bugs", "--bug=ReadErrorIgnored"].iter().chain(&quick);
    let ran = raidlab(one.clone()).good();
    assert!(ran.stdout.starts_with("ReadErrorIgnored        fault-point sweep"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 of 1 bugs found"), "{}", ran.stdout);
    let table = raidlab(one.clone().chain(&["--markdown"])).good().stdout;
    assert!(table.contains("| ReadErrorIgnored | a read that "), "{table}");
    // The same through the bytes of md's superblocks, which no log of the checker's goes through.
    let in_bytes = raidlab(one.chain(&["--metadata=1.2"])).good().stdout;
    assert!(in_bytes.contains("1 of 1 bugs found"), "{in_bytes}");
    raidlab(["check", "--bugs", "--bug=PplWrongXor", "--metadata=0.90"])
        .refused(&["--bug PplWrongXor: it cannot show with --metadata 0.90, which has no such"]);
    raidlab(["check", "--bugs", "--bug=None"]).refused(&["no such bug; known: SkipFlush"]);
    // What looks at too little does not find it, and says so.
    let small = ["--seeds=1", "--crash-states=100", "--quiet"];
    let missed = raidlab(["check", "--bugs", "--bug=DivergedAccepted"].iter().chain(&small));
    assert_eq!(missed.code, Some(1));
    assert!(missed.stdout.contains("NOT FOUND"), "{}", missed.stdout);
    assert!(missed.stderr.contains("error: not found: DivergedAccepted"), "{}", missed.stderr);
}
