//! Arrays with a journal: what stands in it is replayed, into an overlay too.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use raidlab_core::contract::Record;
use raidlab_engine::{FileMember, FileOptions, Member};
use raidlab_metadata::md::{Journal, inspect};

use super::{Harness, MIB, Run};
use crate::nbd_client::Client;
use crate::support::{Ran, raidlab};

const PAGE: usize = 4096;
const CHUNK: u64 = 64 << 10;
const ALL: [&str; 4] = ["0", "1", "2", "x"];

/// An array of three files and the log device `x`, in whose journal writes stand that are nowhere else: of the first
/// page of each chunk of the first row.
fn journalled(name: &str) -> Harness {
    let harness = Harness::new(name, "raid5 chunk=64K", 3, &["--assume-clean"]);
    let log = harness.path("x");
    let mut create = ["array", "create", "raid5 chunk=64K"].map(str::to_owned).to_vec();
    create.extend(["0", "1", "2"].map(|one| harness.path(one)));
    create.extend(["--overwrite", "--assume-clean", "--write-journal", &log].map(str::to_owned));
    raidlab(create).good();
    let options = FileOptions { direct: false, ..FileOptions::default() };
    let mut device = Member::from(FileMember::open(Path::new(&log), options).unwrap());
    let inspected = inspect(&mut device);
    let mut journal = Journal::of(&mut device, inspected.superblock().unwrap()).unwrap();
    drop(device);
    let entry = journal.entry(0, [0b111, 0]);
    assert!(matches!(entry, Record::JournalEntry { .. }));
    let rows = journal.rows(&entry).unwrap();
    let pages = [0xa5, 0x3c, 0xa5 ^ 0x3c].map(|byte: u8| vec![byte; PAGE]);
    let sums: Vec<u32> = pages.iter().map(|page| journal.sum([&page[..]].into_iter())).collect();
    journal.begin();
    journal.add(&rows, 0, &sums);
    let mut bytes = vec![0; PAGE];
    let put = journal.put(&mut bytes).unwrap();
    pages.iter().for_each(|page| bytes.extend(page));
    File::options().write(true).open(&log).unwrap().write_all_at(&bytes, put.at.bytes()).unwrap();
    harness
}

fn serve(harness: &Harness, devices: &[&str], flags: &[&str]) -> (Run, Client) {
    let address = format!("unix:{}", harness.path("nbd"));
    let flags: Vec<&str> = ["--nbd", &address].iter().chain(flags).copied().collect();
    let run = harness.assemble(devices, &flags);
    (run, Client::unix(Path::new(&harness.path("nbd")), "array"))
}

fn stop(harness: &Harness, (run, client): (Run, Client)) {
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
}

/// Whether the pages of the journal are read.
fn is_replayed(client: &mut Client) -> bool {
    let [one, other] = [0, CHUNK].map(|at| client.read(at, PAGE as u64));
    let is_new = one == [0xa5; PAGE] && other == [0x3c; PAGE];
    assert!(is_new || [one, other].concat().iter().all(|byte| *byte == 0), "half of it");
    is_new
}

fn refused(harness: &Harness, devices: &[&str], flags: &[&str]) -> String {
    let ran: Ran =
        harness.assembling(devices, flags).stderr(Stdio::piped()).output().unwrap().into();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.stderr
}

#[test]
fn a_journal_is_replayed_into_an_overlay() {
    let harness = journalled("journal-overlay");
    let before = harness.bytes(&ALL);
    let told = refused(&harness, &ALL, &[]);
    assert!(told.contains("writes stand in its journal"), "{told}");
    let mut read = serve(&harness, &ALL, &["--ignore-journal"]);
    assert!(!is_replayed(&mut read.1));
    stop(&harness, read);
    let overlay = harness.path("o");
    let mut run = serve(&harness, &ALL, &["--overlay", &overlay]);
    assert!(is_replayed(&mut run.1));
    let status = harness.status();
    assert!(status.contains("\"consistency\": \"journal\""), "{status}");
    assert!(status.contains(&format!("\"journal\": {:?}", harness.path("x"))), "{status}");
    run.1.write(MIB, &[7; PAGE]);
    assert!(harness.bytes(&ALL) == before, "while it runs");
    // Cut off: what was written last stands in the overlay's journal.
    drop(run);
    fs::remove_file(harness.path("nbd")).unwrap();
    let mut run = serve(&harness, &ALL, &["--overlay", &overlay]);
    assert!(is_replayed(&mut run.1) && run.1.read(MIB, PAGE as u64) == [7; PAGE]);
    stop(&harness, run);
    assert!(harness.bytes(&ALL) == before);
    // The devices alone are as they were, and the same is done to them with --write.
    let mut run = serve(&harness, &ALL, &["--write"]);
    assert!(is_replayed(&mut run.1) && run.1.read(MIB, PAGE as u64) == [0; PAGE]);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    stop(&harness, run);
}

/// Without its log device an array is written to only when the journal is to be given up, and never replayed again.
#[test]
fn a_lost_journal_is_given_up_when_told() {
    let harness = journalled("journal-lost");
    let before = harness.bytes(&ALL);
    let (members, overlay) = (["0", "1", "2"], harness.path("o"));
    let give_up = ["--write", "--ignore-journal"];
    for (devices, flags, words) in [
        (&members[..], &["--write"][..], "--ignore-journal gives it up for good"),
        (&members[..], &["--overlay", &overlay], "--ignore-journal gives it up for good"),
        (&ALL, &give_up, "its journal is among the devices"),
        (&["0", "2"], &give_up, "--run"),
        (&["0", "2"], &["--write", "--ignore-journal", "--run"], "--allow-dirty-degraded"),
    ] {
        let told = refused(&harness, devices, flags);
        assert!(told.contains(words), "{devices:?} {flags:?}: {told}");
    }
    fs::remove_file(&overlay).unwrap();
    let mut run = serve(&harness, &members, &["--overlay", &overlay, "--ignore-journal"]);
    assert!(!is_replayed(&mut run.1));
    stop(&harness, run);
    assert!(
        harness.bytes(&ALL) == before,
        "what is refused, or goes to an overlay, changes nothing"
    );
    let mut run = serve(&harness, &members, &give_up);
    harness.until("\"consistent\": true");
    let status = harness.status();
    assert!(status.contains("\"consistency\": \"resync\"") && status.contains("\"journal\": null"));
    run.1.write(CHUNK, &[9; PAGE]);
    stop(&harness, run);
    // From now on it has none, with the device as without.
    let mut run = serve(&harness, &ALL, &["--write"]);
    assert_eq!([0, CHUNK].map(|at| run.1.read(at, PAGE as u64)[0]), [0, 9]);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    // Nor is its old log device taken for a fresh one while it runs.
    let old = harness.ask("add", &[&harness.path("x")]);
    assert!(
        old.code == Some(3) && old.stderr.contains("was the log device of this array"),
        "{old:?}"
    );
    stop(&harness, run);
    let all = ALL.map(|one| harness.path(one));
    let found = raidlab(["array", "status"].map(str::to_owned).iter().chain(&all)).good().stdout;
    let of_log = format!("not used  {}: failed, or taken out", all[3]);
    assert!(found.contains(&of_log) && found.contains("all members there"), "{found}");
}

/// Gives the array of these devices a journal on another one.
fn add(harness: &Harness, log: &str, devices: &[&str], flags: &[&str]) -> Ran {
    let mut add = ["array", "add", "--journal"].map(str::to_owned).to_vec();
    add.extend([log].iter().chain(devices).map(|one| harness.path(one)));
    add.extend(flags.iter().map(|flag| (*flag).to_owned()));
    raidlab(add)
}

/// An array that was stopped gets a journal: what is written from then on goes through it, and is replayed.
#[test]
fn an_array_gets_a_journal_while_it_is_stopped() {
    let harness = Harness::new("journal-added", "raid5 chunk=64K", 3, &["--assume-clean"]);
    let members = ["0", "1", "2"];
    let mut run = serve(&harness, &members, &["--write"]);
    run.1.write(0, &[5; PAGE]);
    let told = add(&harness, "x", &members, &["--destructive"]);
    assert!(
        told.code == Some(1) && told.stderr.contains("has locked it"),
        "while it runs: {told:?}"
    );
    for more in [&[][..], &["0", "1"]] {
        let named = add(&harness, "x", &[&["s"], more].concat(), &["--destructive"]);
        assert!(named.code == Some(2), "{named:?}");
        assert!(named.stderr.contains("while it does not run: stop"), "{named:?}");
    }
    // Nor by whoever speaks to the socket.
    let mut socket = UnixStream::connect(harness.path("s")).unwrap();
    writeln!(socket, r#"{{"do": "add", "journal": {:?}}}"#, harness.path("x")).unwrap();
    let mut told = String::new();
    socket.read_to_string(&mut told).unwrap();
    assert!(told.contains("an array that runs gets no journal: stop it"), "{told}");
    let fresh = harness.ask("add", &[&harness.path("x"), "--destructive"]);
    assert!(fresh.code == Some(2) && fresh.stderr.contains("is for --journal"), "{fresh:?}");
    stop(&harness, run);
    fs::write(harness.path("y"), vec![1; 8 * MIB as usize]).unwrap();
    let before = harness.bytes(&["0", "1", "2", "x", "y"]);
    for (log, devices, flags, code, words) in [
        ("y", &members[..], &["--destructive"][..], 3, "something stands on it"),
        ("x", &members[1..], &["--destructive"], 1, "member 0 is missing"),
        ("2", &members[..2], &["--destructive"], 3, "is a member of an md array"),
        ("2", &members, &["--destructive", "--overwrite"], 2, "is given twice"),
    ] {
        let told = add(&harness, log, devices, flags);
        assert!(
            told.code == Some(code) && told.stderr.contains(words),
            "{log} {flags:?}: {told:?}"
        );
    }
    let told = add(&harness, "x", &members, &[]).good().stdout;
    assert!(told.contains("would get a journal") && told.contains("nothing was written"), "{told}");
    assert!(harness.bytes(&["0", "1", "2", "x", "y"]) == before, "nothing is written");
    let told = add(&harness, "x", &["2", "0", "1"], &["--destructive"]).good().stdout;
    assert!(told.contains("has a journal now") && told.contains(&harness.path("x")), "{told}");
    let told = add(&harness, "y", &ALL, &["--destructive", "--overwrite"]);
    assert!(told.code == Some(1) && told.stderr.contains("it has a journal"), "{told:?}");
    let mut run = serve(&harness, &ALL, &["--write"]);
    let status = harness.status();
    assert!(status.contains("\"consistency\": \"journal\""), "{status}");
    assert_eq!(run.1.read(0, PAGE as u64), [5; PAGE]);
    run.1.write(CHUNK, &[7; PAGE]);
    // Killed: it stands in the journal, and is there with a member missing, too.
    drop(run);
    fs::remove_file(harness.path("nbd")).unwrap();
    let mut run = serve(&harness, &["0", "2", "x"], &["--write", "--run"]);
    assert_eq!([0, CHUNK].map(|at| run.1.read(at, PAGE as u64)[0]), [5, 7]);
    stop(&harness, run);
}
