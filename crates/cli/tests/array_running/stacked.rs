//! Arrays over arrays: administration on both floors, killed servers, reading without a change, what does not belong
//! together. What md makes of them: `array/stacked.rs`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;

use super::{Harness, MIB, Run, WHOLE};
use crate::nbd_client::Client;
use crate::root;
use crate::support::{Ran, command, raidlab};

const SIX: [&str; 6] = ["0", "1", "2", "3", "4", "5"];
const FOUR: [&str; 4] = ["0", "1", "2", "3"];

fn pattern(bytes: u64, seed: u64) -> Vec<u8> {
    (0..bytes).map(|byte| (byte / 509 * 7 + seed) as u8).collect()
}

fn serve(harness: &Harness, devices: &[&str], flags: &[&str]) -> (Run, Client) {
    serve_named(harness, "array", devices, flags)
}

fn serve_named(harness: &Harness, name: &str, devices: &[&str], flags: &[&str]) -> (Run, Client) {
    let address = format!("unix:{}", harness.path("nbd"));
    let flags: Vec<&str> = ["--nbd", &address].iter().chain(flags).copied().collect();
    let run = harness.assemble(devices, &flags);
    let client = Client::unix(Path::new(&harness.path("nbd")), name);
    (run, client)
}

/// Gives an array below a command.
fn below(harness: &Harness, name: &str, verb: &str, arguments: &[&str]) -> Ran {
    let socket = harness.path(&format!("s.{name}"));
    command().args(["array", verb, &socket]).args(arguments).output().unwrap().into()
}

fn below_until(harness: &Harness, name: &str, what: &str) {
    let begun = std::time::Instant::now();
    loop {
        let status = below(harness, name, "status", &["--json"]).good().stdout;
        if status.contains(what) {
            return;
        }
        assert!(begun.elapsed() < super::PATIENCE, "never: {what}\n{status}");
    }
}

/// Nothing is rebuilt any more, so that a check may begin.
fn whole(harness: &Harness) {
    harness.until(WHOLE);
    harness.until("\"work\": null");
}

fn offline(harness: &Harness, verb: &str, devices: &[&str], flags: &[&str]) -> Ran {
    let devices = devices.iter().map(|one| harness.path(one));
    command().args(["array", verb]).args(devices).args(flags).output().unwrap().into()
}

/// A drive is exchanged in a lower array, which has a spare; a lower array is lost and another one is made a member.
#[test]
fn both_floors_are_administered() {
    let harness = Harness::new("stacked-admin", "raid5+1(2x3) chunk=64K", 6, &["--assume-clean"]);
    let (run, mut client) = serve(&harness, &["5", "0", "3", "1", "4", "2"], &["--write"]);
    let data = pattern(3 * MIB, 1);
    client.write(0, &data[..MIB as usize]);
    assert!(harness.status().contains("\"path\": \"array-0\""), "{}", harness.status());
    // Below: a spare takes over by itself, which is not seen above.
    assert!(
        below(&harness, "array-0", "add", &[&harness.path("x")]).good().stdout.contains("spare")
    );
    below(&harness, "array-0", "fail", &["1"]).good();
    client.write(MIB, &data[MIB as usize..2 * MIB as usize]);
    below_until(&harness, "array-0", "\"spares\": []");
    below_until(&harness, "array-0", "\"missing\": 0");
    below_until(&harness, "array-0", WHOLE);
    below_until(&harness, "array-0", "\"work\": null");
    assert!(harness.status().contains("\"missing\": 0"));
    assert!(below(&harness, "array-0", "check", &[]).good().stdout.contains("0 sectors differ"));
    // What others stand on is not stopped.
    assert_eq!(below(&harness, "array-1", "stop", &[]).code, Some(3));
    // Above: an array below loses too much, and is a failed member.
    below(&harness, "array-1", "fail", &["0"]).good();
    below(&harness, "array-1", "fail", &["2", "--force"]).good();
    client.write(2 * MIB, &data[2 * MIB as usize..]);
    harness.until("\"missing\": 1");
    assert_eq!(below(&harness, "array-1", "status", &["--test"]).code, Some(2));
    assert!(client.read(0, 3 * MIB) == data);
    assert!(harness.ask("remove", &["array-1"]).good().stdout.contains("array-1 is let go of"));
    // Another array in its place; one that something stands in needs consent.
    let fresh = ["6", "7", "8"].map(|name| harness.path(name));
    for file in &fresh {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let create = ["array", "create", "raid5 chunk=64K", "--name", "fresh"].map(str::to_owned);
    raidlab(create.iter().chain(&fresh)).good();
    let none = harness.ask("add", &["--array", &harness.path("y")]);
    assert!(none.code == Some(1) && none.stderr.contains("member of an md array"), "{none:?}");
    let fresh: Vec<&str> = fresh.iter().map(String::as_str).collect();
    let told = harness.ask("add", &[&["--array"], &fresh[..]].concat()).good().stdout;
    assert!(told.contains("fresh is rebuilt as member 1"), "{told}");
    harness.until("\"missing\": 0");
    whole(&harness);
    below_until(&harness, "fresh", "\"work\": null");
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    assert!(below(&harness, "fresh", "check", &[]).good().stdout.contains("0 sectors differ"));
    assert!(client.read(0, 3 * MIB) == data);
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
    assert!(!Path::new(&harness.path("s.fresh")).exists(), "the sockets below are gone, too");
    let devices = ["8", "7", "6", "0", "x", "2"];
    let found = offline(&harness, "status", &devices, &[]).good().stdout;
    assert_eq!(found.matches("all members there; stopped cleanly").count(), 3, "{found}");
    // Each half holds it all.
    for half in [&devices[..3], &devices[3..]] {
        let out = harness.path("out");
        offline(&harness, "export-file", half, &[&out]).good();
        assert!(fs::read(&out).unwrap().starts_with(&data));
        fs::remove_file(&out).unwrap();
    }
}

/// A stack is served as a file by a thread with a table of descriptors of its own, in which devices of both floors are
/// opened and closed.
#[test]
fn a_served_file_is_a_stack() {
    if !root::can_mount("a_served_file_is_a_stack", &[]) {
        return;
    }
    let harness = Harness::new("stacked-fuse", "raid5+1(2x3) chunk=64K", 6, &["--assume-clean"]);
    let file = harness.path("data");
    let run = harness.assemble(&SIX, &["--write", "--fuse", &file]);
    let data = pattern(2 * MIB, 3);
    let write = |at: u64| {
        let open = fs::File::options().write(true).open(&file).unwrap();
        open.write_all_at(&data[at as usize..(at + MIB) as usize], at).unwrap();
        open.sync_all().unwrap();
    };
    write(0);
    below(&harness, "array-0", "fail", &["1"]).good();
    below(&harness, "array-0", "remove", &["1"]).good();
    below(&harness, "array-0", "add", &[&harness.path("x")]).good();
    below_until(&harness, "array-0", WHOLE);
    below_until(&harness, "array-0", "\"work\": null");
    harness.ask("fail", &["1"]).good();
    harness.ask("remove", &["1"]).good();
    write(MIB);
    below(&harness, "array-1", "stop", &[]).good();
    let again = ["--array", &harness.path("3"), &harness.path("4"), &harness.path("5")];
    harness.ask("add", &[&again[..], &["--overwrite"]].concat()).good();
    harness.until("\"missing\": 0");
    whole(&harness);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    assert!(fs::read(&file).unwrap().starts_with(&data));
    harness.stop(run);
    let out = harness.path("out");
    offline(&harness, "export-file", &["3", "4"], &[&out]).good();
    assert!(fs::read(&out).unwrap().starts_with(&data));
}

/// An array that was away comes back by the bitmap of the one above: only what it missed is rebuilt.
#[test]
fn an_array_that_was_away_comes_back_by_the_bitmap() {
    let flags = ["--assume-clean", "--bitmap", "internal"];
    let harness = Harness::new("stacked-back", "raid5+1(2x3) chunk=64K", 6, &flags);
    let (run, mut client) = serve(&harness, &SIX, &["--write"]);
    let data = pattern(2 * MIB, 6);
    client.write(0, &data);
    harness.ask("fail", &["array-1"]).good();
    harness.ask("remove", &["1"]).good();
    below(&harness, "array-1", "stop", &[]).good();
    client.write(MIB, &data[..MIB as usize]);
    let back = ["--array", &harness.path("5"), &harness.path("3"), &harness.path("4")];
    let told = harness.ask("add", &back).good().stdout;
    assert!(told.contains("array-1 is member 1 again"), "{told}");
    harness.until("\"missing\": 0");
    whole(&harness);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    assert!(client.read(MIB, MIB) == data[..MIB as usize]);
    // Where nobody is missing it waits, and takes the place of one that fails.
    let spare = ["6", "7"].map(|name| harness.path(name));
    for file in &spare {
        fs::write(file, vec![0; 32 * MIB as usize]).unwrap();
    }
    let create = ["array", "create", "raid1", "--name", "spare"].map(str::to_owned);
    raidlab(create.iter().chain(&spare)).good();
    let told = harness.ask("add", &["--array", &spare[0], &spare[1]]).good().stdout;
    assert!(told.contains("spare waits as a spare"), "{told}");
    harness.ask("fail", &["array-0"]).good();
    harness.until("\"spares\": []");
    harness.until("\"missing\": 0");
    whole(&harness);
    assert!(harness.status().contains("\"path\": \"spare\""), "{}", harness.status());
    assert!(client.read(MIB, MIB) == data[..MIB as usize]);
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
}

/// A server is killed in the middle of writes: what was flushed is there, and redundancy agrees on both floors after
/// the resyncs.
#[test]
fn what_was_flushed_survives_a_killed_server_of_a_stack() {
    for (layout, devices, upper_checks, lower_checks) in [
        ("raid5+0(2x3) chunk=64K", &SIX[..], false, true),
        ("raid0+1(2x2) chunk=64K", &FOUR[..], true, false),
        ("raid1+5(3x2) chunk=64K", &SIX[..], true, true),
    ] {
        let harness = Harness::new("stacked-killed", layout, devices.len(), &["--assume-clean"]);
        let data = pattern(2 * MIB, 5);
        for round in 0..3u64 {
            let flags = ["--write", "--run"];
            let (mut run, mut client) = serve(&harness, devices, &flags);
            let at = |round: u64| round * 2 * MIB;
            for round in 0..round {
                assert!(client.read(at(round), 2 * MIB) == data, "{layout}: after a kill");
            }
            client.write(at(round), &data);
            client.flush();
            // Under way when it is killed.
            client.write(at(round) + 2 * MIB, &data[..256 << 10]);
            run.0.kill().unwrap();
            run.0.wait().unwrap();
        }
        let (run, mut client) = serve(&harness, devices, &["--write", "--run"]);
        assert!(client.read(4 * MIB, 2 * MIB) == data, "{layout}");
        let lower = devices.len() / if layout.contains("(3x2)") { 2 } else { devices.len() / 2 };
        harness.until("\"work\": null");
        if upper_checks {
            assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
        }
        for number in 0..if lower_checks { lower } else { 0 } {
            let name = format!("array-{number}");
            below_until(&harness, &name, "\"work\": null");
            let told = below(&harness, &name, "check", &[]).good().stdout;
            assert!(told.contains("0 sectors differ"), "{layout}: {told}");
        }
        drop(client);
        harness.until("\"clients\": 0");
        harness.stop(run);
    }
}

/// Three floors, a mirror over stripes over mirrors, are one array of eight drives.
#[test]
fn three_floors_are_one_array() {
    let flags = ["--assume-clean", "--name", "left"];
    let harness = Harness::new("stacked-three", "raid1+0(2x2) chunk=64K", 4, &flags);
    let right = ["4", "5", "6", "7"];
    let files = right.map(|name| harness.path(name));
    for file in &files {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let create = |layout: &str, name: &str, files: &[String]| {
        let create = ["array", "create", layout, "--assume-clean", "--name", name];
        raidlab(create.map(str::to_owned).iter().chain(files)).good();
    };
    create("raid1+0(2x2) chunk=64K", "right", &files);
    // What makes a mirror of two devices of that length.
    let out = harness.path("out");
    offline(&harness, "export-file", &right, &[&out]).good();
    let images = ["left.img", "right.img"].map(|name| {
        let image = harness.path(name);
        fs::copy(&out, &image).unwrap();
        image
    });
    // By chance it has the name of one below it.
    create("raid1", "left", &images);
    for (name, devices, image) in [("left", FOUR, &images[0]), ("right", right, &images[1])] {
        let (run, mut client) = serve_named(&harness, name, &devices, &["--write"]);
        client.write(0, &fs::read(image).unwrap()[..MIB as usize]);
        drop(client);
        harness.until("\"clients\": 0");
        harness.stop(run);
    }
    let all: Vec<&str> = right.iter().chain(&FOUR).copied().collect();
    let (run, mut client) = serve_named(&harness, "left", &all, &["--write"]);
    let status = harness.status();
    assert!(status.contains("\"path\": \"right\"") && !status.contains("\"path\": \"left\""));
    let data = pattern(2 * MIB, 8);
    client.write(0, &data);
    below(&harness, "left-1", "fail", &["0"]).good();
    below(&harness, "right", "status", &["--test"]).good();
    client.write(MIB, &data[..MIB as usize]);
    drop(client);
    harness.until("\"clients\": 0");
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    harness.stop(run);
    // A drive of each mirror is enough, and one half without any of the other.
    for some in [&["1", "3", "4", "6"][..], &["0", "1", "3"], &["5", "7"]] {
        fs::remove_file(&out).unwrap();
        offline(&harness, "export-file", some, &[&out]).good();
        let exported = fs::read(&out).unwrap();
        let (first, second) = (MIB as usize, 2 * MIB as usize);
        assert!(exported[..first] == data[..first], "{some:?}");
        assert!(exported[first..second] == data[..first], "{some:?}");
    }
}

/// Reading changes no byte on either floor, with a drive missing in each array too; an overlay takes what is written.
#[test]
fn a_stack_that_is_only_read_does_not_change() {
    let harness = Harness::new("stacked-read", "raid5+0(2x3) chunk=64K", 6, &["--assume-clean"]);
    let data = pattern(2 * MIB, 9);
    let (run, mut client) = serve(&harness, &SIX, &["--write"]);
    client.write(64 << 10, &data);
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
    let before = harness.bytes(&SIX);
    let some = ["5", "0", "4", "2"];
    let (run, mut client) = serve(&harness, &some, &[]);
    assert!(client.read(64 << 10, 2 * MIB) == data);
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
    assert!(harness.bytes(&SIX) == before);
    let overlay = harness.path("o");
    for round in 0..2 {
        let (run, mut client) = serve(&harness, &SIX, &["--overlay", &overlay]);
        let expected = if round == 0 { &data[..4096] } else { &[7; 4096] };
        assert!(client.read(64 << 10, 4096) == expected, "round {round}");
        client.write(64 << 10, &[7; 4096]);
        drop(client);
        harness.until("\"clients\": 0");
        harness.stop(run);
    }
    assert!(harness.bytes(&SIX) == before);
    // The lowest arrays alone.
    let one = offline(&harness, "status", &["0", "1", "2"], &["--flat"]).good().stdout;
    assert!(one.contains("array-0: raid5(3)"), "{one}");
}

/// The devices of one leg of a mirror are all that a server of that leg is given: told is how the leg alone is served,
/// and what of the devices is not used.
#[test]
fn the_devices_of_a_leg_alone_are_told_how_to_be_that_leg() {
    let harness = Harness::new("stacked-leg", "raid0+1(2x2) chunk=64K", 4, &["--assume-clean"]);
    let before = harness.bytes(&FOUR);
    let refused = |devices: &[&str], words: &[&str]| {
        let mut run = harness.assembling(devices, &["--write"]);
        let ran: Ran = run.stderr(Stdio::piped()).output().unwrap().into();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for word in words {
            assert!(ran.stderr.contains(word), "`{word}` is not in: {}", ran.stderr);
        }
        assert!(harness.bytes(&FOUR) == before);
    };
    refused(&["2", "3"], &["\n--run starts", "\n--flat assembles the array"]);
    let run = harness.assemble(&["2", "3"], &["--write", "--flat"]);
    assert!(harness.status().contains(":array-1\""), "{}", harness.status());
    harness.stop(run);
}

/// A member that may hold the newest data is not there, and another device that was given is not used: told is which.
#[test]
fn what_was_given_and_cannot_be_the_missing_member_is_named() {
    let harness = Harness::new("stacked-none", "raid1", 2, &["--assume-clean"]);
    let mut run = harness.assembling(&["1", "x"], &["--write"]);
    let ran: Ran = run.stderr(Stdio::piped()).output().unwrap().into();
    let said = format!("\n  not used: {}: no md superblock\n--run", harness.path("x"));
    assert!(ran.code == Some(1) && ran.stderr.contains(&said), "{ran:?}");
    assert!(!ran.stderr.contains("--flat"), "{ran:?}");
}

/// Drives of two stacks, an array that is missing, one that is out of date: what is wrong is said, nothing is written.
#[test]
fn what_does_not_belong_together_is_told() {
    let harness = Harness::new("stacked-bad", "raid0+1(2x2) chunk=64K", 4, &["--assume-clean"]);
    let other: Vec<String> = ["6", "7", "8", "9"].map(|name| harness.path(name)).into();
    for file in &other {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let create =
        ["array", "create", "raid0+0(2x2) chunk=64K", "--name", "other"].map(str::to_owned);
    raidlab(create.iter().chain(&other)).good();
    let all: Vec<&str> = FOUR.iter().chain(&["6", "7", "8", "9"]).copied().collect();
    let before = harness.bytes(&all);
    // Two stacks.
    let mixed = offline(&harness, "status", &all, &[]);
    assert_eq!(mixed.code, Some(2), "{mixed:?}");
    for words in ["several arrays", "array (", "other (", &harness.path("9")] {
        assert!(mixed.stderr.contains(words), "{words}: {mixed:?}");
    }
    let written = harness.assembling(&all, &["--write"]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(written.status.code(), Some(2), "{written:?}");
    // One stack, and a part of another.
    let part = offline(&harness, "status", &["0", "1", "2", "3", "6", "7"], &[]);
    assert!(part.code == Some(2) && part.stderr.contains("several arrays"), "{part:?}");
    // An array below is missing, or does not start.
    let missing = offline(&harness, "status", &["6", "7"], &[]);
    let text = "raid0(2) chunk=64K cannot be read without member 1";
    assert!(missing.code == Some(1) && missing.stderr.contains(text), "{missing:?}");
    let part = offline(&harness, "status", &["6", "7", "8"], &[]);
    assert!(part.code == Some(1) && part.stderr.contains(text), "{part:?}");
    assert!(part.stderr.contains("other-1 does not start"), "{part:?}");
    let halves = offline(&harness, "status", &["6", "8"], &[]);
    assert!(
        halves.code == Some(1) && halves.stderr.contains("other-0 does not start"),
        "{halves:?}"
    );
    // With --write a missing array needs the word that a missing drive needs.
    let devices = ["0", "1", "3"];
    let refused =
        harness.assembling(&devices, &["--write"]).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("--run") && text.contains("array-1 does not start"), "{text}");
    let spare = harness.path("x");
    let flags = ["--write", "--spare", &spare];
    let refused = harness.assembling(&FOUR, &flags).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(harness.bytes(&all) == before, "what is refused changes nothing");
    // A superblock above that is out of date on an array below.
    let (run, mut client) = serve(&harness, &devices, &["--write", "--run"]);
    client.write(0, &[3; 4096]);
    drop(client);
    harness.until("\"clients\": 0");
    harness.stop(run);
    let found = offline(&harness, "status", &FOUR, &[]).good().stdout;
    assert!(found.contains("not used  array-1 (member 1): out of date"), "{found}");
    // It comes back when it is added, as a fresh one without a bitmap.
    let (run, _client) = serve(&harness, &["0", "1"], &["--write"]);
    let back = ["--array", &harness.path("2"), &harness.path("3")];
    let refused = harness.ask("add", &back);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    // Nor is an array taken that is a member of another one.
    let taken = harness.ask("add", &["--array", &harness.path("6"), &harness.path("7")]);
    assert!(taken.code == Some(3) && taken.stderr.contains("member of an md array"), "{taken:?}");
    harness.ask("add", &[&back[..], &["--overwrite"]].concat()).good();
    harness.until("\"missing\": 0");
    whole(&harness);
    assert!(harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    drop(run);
}

/// What belongs to one array is not taken for several; nothing is left of an array that cannot be made.
#[test]
fn nested_levels_that_cannot_be_made_are_refused() {
    let harness = Harness::new("stacked-refused", "raid1", 2, &["--assume-clean"]);
    let files: Vec<String> = ["4", "5", "6", "7"].map(|name| harness.path(name)).into();
    for file in &files {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let spare = harness.path("x");
    for (flags, words) in [
        (&["--spare", &spare][..], "--spare belongs to one array"),
        (&["--size", "1MiB"], "--size belongs to one array"),
        (&["--metadata", "0.90"], "names no arrays"),
        (&["--name", "a-name-that-is-much-too-long-for-md"], "name"),
    ] {
        let create = ["array", "create", "raid1+0(2x2) chunk=64K"].map(str::to_owned);
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let ran = raidlab(create.iter().chain(&files).cloned().chain(flags));
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{ran:?}");
    }
    let few = ["array", "create", "raid1+0(2x2)"].map(str::to_owned);
    assert_eq!(raidlab(few.iter().chain(&files[..3])).code, Some(2));
    assert!(files.iter().all(|file| fs::read(file).unwrap().iter().all(|byte| *byte == 0)));
    let dry = ["array", "create", "raid1+0(2x2) chunk=64K", "--dry-run"].map(str::to_owned);
    let told = raidlab(dry.iter().chain(&files)).good().stdout;
    assert!(told.contains("array-1: raid1(2)") && told.contains("array: raid0(2)"), "{told}");
    assert!(files.iter().all(|file| fs::read(file).unwrap().iter().all(|byte| *byte == 0)));
}

/// A device that holds a degraded raid1 of one member, which holds the next one: superblock `n`, of version 1.1, stands
/// in sector `n`.
fn nested(floors: u8) -> Vec<u8> {
    let mut device = vec![0; 1 << 20];
    let sectors = device.len() as u64 / 512;
    for floor in 0..floors {
        let one = &mut device[usize::from(floor) * 512..][..512];
        let data = sectors - u64::from(floor) - 1;
        one[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
        one[16..32].fill(floor + 1);
        let name = format!("h:floor-{}", floor + 1);
        one[32..32 + name.len()].copy_from_slice(name.as_bytes());
        one[168..184].fill(0xee);
        for (at, word) in [(4, 1), (72, 1), (92, 2), (220, 2)] {
            one[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        // Its size, where its data begin and how long they are, its events, and that it was stopped cleanly.
        for (at, word) in [(80, data), (128, 1), (136, data), (200, 9), (208, u64::MAX)] {
            one[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
        }
        // Device 0 is member 0, and there is no other.
        one[256..260].copy_from_slice(&[0, 0, 0xff, 0xff]);
        let words = one[..260].chunks(4);
        let word = |word: &[u8]| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let sum: u64 = words.map(word).sum();
        let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
        one[216..220].copy_from_slice(&sum.to_le_bytes());
    }
    device
}

/// A small image may hold thousands of arrays in arrays, of which each is read through all below it.
#[test]
fn arrays_in_arrays_have_an_end() {
    let harness = Harness::new("stacked-floors", "raid1", 2, &["--assume-clean"]);
    fs::write(harness.path("x"), nested(8)).unwrap();
    let ran = offline(&harness, "status", &["x"], &[]);
    assert!(ran.code == Some(0) && ran.stdout.contains("floor-8"), "{ran:?}");
    for floors in [9, 200] {
        fs::write(harness.path("x"), nested(floors)).unwrap();
        let words = ["floor-8 is the array on floor 8", "floor-9", "at most 8 floors", "--flat"];
        for verb in ["status", "assemble"] {
            offline(&harness, verb, &["x"], &[]).refused(&words);
        }
        let ran = offline(&harness, "status", &["x"], &["--flat"]);
        assert!(ran.code == Some(0) && ran.stdout.contains("floor-1"), "{ran:?}");
        let ran = offline(&harness, "examine", &["x"], &[]).good();
        assert_eq!(ran.stdout.matches("Name : h:floor-").count(), 8, "{}", ran.stdout);
    }
}
