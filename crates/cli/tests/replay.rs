//! `raidlab replay`: published studies by name, as one document, without mechanisms, and what is refused.

use std::fs;

use crate::support::{Ran, Scratch, command};
use raidlab_results::{Replays, Results};

/// A cell that runs in no time: a drive read for three seconds of virtual time.
const QUICK: [&str; 5] = ["sata-2018", "--workload", "hdparm_t", "--layout", "raid5(4)"];

fn replay(arguments: &[&str]) -> Ran {
    let mut command = command();
    command.arg("replay").args(arguments);
    Ran::from(command.output().expect("the binary runs"))
}

fn refused(arguments: &[&str]) -> String {
    let ran = replay(arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    ran.stderr
}

fn json(arguments: &[&str]) -> Results {
    let ran = replay(&[arguments, &["--json", "-"]].concat()).good();
    Results::from_json(&ran.stdout).expect("a results document")
}

#[test]
fn a_study_is_printed_with_its_fidelity() {
    let text = replay(&QUICK).good().stdout;
    for part in ["sata-2018", "seeds     3", "raid5(4)", "busiest", "1 cell, none of them given"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("raid10(4)") && !text.contains('\x1b'), "{text}");
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let bytes = |threads| {
        let arguments = [&QUICK[..], &["--json", "-", "--threads", threads]].concat();
        replay(&arguments).good().stdout
    };
    let one = bytes("1");
    assert_eq!(one, bytes("2"));
    let results = Results::from_json(&one).expect("a results document");
    let [cell] = &results.cells[..] else { panic!("one cell") };
    assert_eq!((cell.layout.as_str(), cell.metric.as_str()), ("raid5(4)", "mib_per_s"));
    assert_eq!(cell.samples.len(), 3);
    let fidelity = results.fidelity.expect("it is a replay");
    assert_eq!((fidelity.cells, fidelity.given_cells), (1, 0));
}

#[test]
fn given_cells_stand_beside_their_published_value() {
    let arguments = ["ite8212-2006", "--layout", "md-raid0(1u)", "--seeds", "1"];
    let results = json(&arguments);
    assert_eq!(results.cells.len(), 8);
    let cell = results.cells.iter().find(|cell| cell.metric == "block_read_kps");
    let published = cell.and_then(|cell| cell.published.clone()).expect("it is given");
    assert_eq!(published.value, 47306.0);
    assert_eq!(results.fidelity.expect("it is a replay").given_cells, 7);
    assert_eq!(results.layouts.len(), 1, "what did not run is not listed");
}

#[test]
fn all_studies_are_one_document_and_one_page() {
    let scratch = Scratch::new("all");
    let (file, page) = (scratch.path().join("all.json"), scratch.path().join("all.html"));
    let (file, page) = (file.to_str().expect("a path"), page.to_str().expect("a path"));
    // One layout of two studies: the other studies have nothing of that name.
    let chosen = ["--layout", "md-raid0(1u)", "--layout", "raid0(4)", "--workload", "hdparm_t"];
    let chosen = [&chosen[..], &["--workload", "bonnie-1.03", "--seeds", "1", "-q"]].concat();
    let ran = replay(&[&["--all", "--json", file, "--html", page], &chosen[..]].concat()).good();
    assert_eq!(ran.stdout, "");
    let text = fs::read_to_string(file).expect("the document");
    let all: Replays = serde_json::from_str(&text).expect("replays");
    assert_eq!(all.schema_version, 2);
    let studies: Vec<&str> = all.replays.iter().map(|one| &one.study[..8]).collect();
    assert_eq!(studies, ["ite8212-", "sata-201"]);
    assert!(all.replays.iter().all(|one| one.fidelity.is_some()));
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.contains("ite8212-2006") && page.contains("sata-2018"));
}

#[test]
fn cells_without_a_mechanism_say_how_they_moved() {
    let full = json(&[&QUICK[..], &["--seeds", "1"]].concat());
    let without = json(&[&QUICK[..], &["--seeds", "1", "--without", "drive-read-ahead"]].concat());
    assert_eq!(without.without, ["drive-read-ahead"]);
    let moved = without.cells[0].moved.expect("it moved");
    assert_eq!(moved.full, full.cells[0].median);
    assert!(moved.percent < -30.0, "{}", moved.percent);
    assert!(full.cells[0].moved.is_none());
}

#[test]
fn ablation_goes_through_the_mechanisms_of_the_study() {
    let results = json(&[&QUICK[..], &["--ablate"]].concat());
    let names: Vec<&str> = results.ablation.iter().map(|row| row.mechanism.as_str()).collect();
    for one in ["read-ahead", "bus", "drive-read-ahead", "parity-cost", "parity-cost=x10"] {
        assert!(names.contains(&one), "{one}: {names:?}");
    }
    assert!(!names.contains(&"controller") && !names.contains(&"channel-switch"), "{names:?}");
    assert!(results.ablation.iter().all(|row| row.cells.len() == 1));
    assert!(results.cells.iter().all(|cell| cell.samples.len() == 1));
}

#[test]
fn names_that_do_not_exist_are_refused_with_those_that_do() {
    for (arguments, parts) in [
        (&["pata-2050"][..], &["pata-2050", "did you mean `pata-2005`?", "sata-2018"][..]),
        (&["nothing"], &["nothing", "freebsd-2007"]),
        (&[], &["--all", "pata-2005, ite8212-2006"]),
        (&["--all", "sas-2008"], &["--all"]),
        (&["sas-2008", "--layout", "R0-3"], &["--layout `R0-3`", "did you mean `R0-4`?", "R5-4"]),
        (&["sas-2008", "--workload", "seqwrite"], &["did you mean `seq_write`?", "rand_write"]),
        (&["sas-2008", "--processes", "3"], &["--processes 3", "1, 2, 4, 8"]),
        (&["sas-2008", "--without", "jurnal"], &["did you mean `journal`?", "write-through"]),
        (
            &["freebsd-2007", "--without", "memory-path"],
            &["--without memory-path", "nothing of that"],
        ),
        (&["sas-2008", "--without", "path:pci"], &["--without path:pci", "there are: cache, sas"]),
        (&["sas-2008", "--without", "journal", "--ablate"], &["--ablate"]),
        (&["sas-2008", "--seeds", "0"], &["--seeds"]),
        (&["sas-2008", "--json", "/nonexistent/x.json"], &["--json /nonexistent/x.json"]),
        (&["--all", "--without", "path:pc1"], &["--without path:pc1"]),
        (
            &["--all", "--layout", "single250", "--workload", "real_life"],
            &["no cell has this layout"],
        ),
    ] {
        let told = refused(arguments);
        for part in parts {
            assert!(told.contains(part), "{arguments:?}: no {part} in {told}");
        }
    }
}

#[test]
fn shards_give_the_bytes_of_a_run_without() {
    let scratch = Scratch::new("replay-shards");
    let rows = scratch.path().join("rows");
    let rows = rows.to_str().expect("text");
    let chosen = ["sata-2018", "--workload", "hdparm_t", "--seeds", "2"];
    let with = |more: &[&str]| replay(&[&chosen[..], more].concat());
    let whole = with(&["--json", "-"]).good().stdout;
    let first = with(&["--out", rows, "--shard", "2/3"]);
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), ""), "a shard reports nothing");
    assert!(first.stderr.contains("shard 2 of 3: "), "{}", first.stderr);
    // The second half of a row was not written when the process went.
    let path = format!("{rows}/shard-0000002.jsonl");
    let text = fs::read_to_string(&path).expect("written");
    fs::write(format!("{rows}/shard-0000002.part"), &text[..text.len() - 20]).expect("written");
    fs::remove_file(path)
        .and_then(|()| fs::remove_file(format!("{rows}/shard-0000002.json")))
        .expect("ours");
    assert_eq!(with(&["--out", rows, "--json", "-"]).good().stdout, whole);
    assert_eq!(fs::read_to_string(format!("{rows}/shard-0000002.jsonl")).expect("whole"), text);
    // Nothing is left to be run.
    assert_eq!(with(&["--out", rows, "--json", "-", "--threads", "1"]).good().stdout, whole);
    let other = refused(&["sata-2018", "--workload", "hdparm_t", "--seeds", "1", "--out", rows]);
    assert!(other.contains("holds shards of something else"), "{other}");
    let many = with(&["--out", &format!("{rows}-2"), "--shard", "1/9999"]);
    assert!(many.code == Some(2) && many.stderr.contains("9999 shards of"), "{many:?}");
    for wrong in [&["--shard", "1/3"][..], &["--out", rows, "--ablate"]] {
        assert_eq!(with(wrong).code, Some(2), "{wrong:?}");
    }
}
