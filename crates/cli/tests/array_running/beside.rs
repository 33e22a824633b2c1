//! An array served to NBD clients and as a file at once: administration under both, ends, a killed server, a
//! filesystem on a loop device. Needs root.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use raidlab_nbd::Command as NbdCommand;

use super::{Harness, MIB, Run, WHOLE};
use crate::nbd_client::Client;
use crate::numbered;
use crate::root::{can_mount, tool, traces};
use crate::support::{Ran, command, raidlab};

/// Serves devices in both ways.
fn serve(harness: &Harness, devices: &[&str], flags: &[&str]) -> Run {
    let (address, file) = (format!("unix:{}", harness.path("nbd")), harness.path("file"));
    let both = ["--nbd", &address, "--fuse", &file];
    harness.assemble(devices, &[&both, flags].concat())
}

fn client(harness: &Harness) -> Client {
    Client::unix(Path::new(&harness.path("nbd")), "array")
}

fn file(harness: &Harness) -> File {
    File::options().read(true).write(true).open(harness.path("file")).unwrap()
}

/// Where the file of a server is mounted.
fn mounted(run: &Run) -> PathBuf {
    std::env::temp_dir().join(format!("raidlab-array-{}", run.0.id()))
}

/// What is served in both ways by the state of the devices.
fn offline(harness: &Harness, devices: &[&str]) -> String {
    let devices = devices.iter().map(|device| harness.path(device));
    raidlab(["array", "status"].map(str::to_owned).into_iter().chain(devices)).good().stdout
}

/// Bytes of a part of the array with a number, written by one of both.
fn part(number: u64) -> Vec<u8> {
    (0..MIB / 4).map(|byte| (number * 31 + byte / 509) as u8).collect()
}

/// A member fails, comes back, another one is exchanged: under a client and a user of the file that write and compare
/// all the while.
#[test]
fn an_array_is_administered_while_both_use_it() {
    if !can_mount("an_array_is_administered_while_both_use_it", &[]) {
        return;
    }
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("both-admin", "raid6 chunk=64K", 4, flags);
    let run = serve(&harness, &["2", "0", "1", "3"], &["--write"]);
    let document = harness.status();
    for shown in ["nbd+unix:///array?socket=", &format!("\"file\": {:?}", harness.path("file"))] {
        assert!(document.contains(shown), "{shown} is not in {document}");
    }
    let text = harness.ask("status", &[]).good().stdout;
    assert_eq!(text.matches("served as ").count(), 2, "{text}");
    let is_over = AtomicBool::new(false);
    let len = MIB / 4;
    thread::scope(|scope| {
        // Each writes what the other compares.
        let by_client = scope.spawn(|| {
            let (mut client, file, mut round) = (client(&harness), file(&harness), 0);
            while round < 4 || !is_over.load(Ordering::Relaxed) {
                client.write(round % 4 * len, &part(round));
                let mut found = vec![0; len as usize];
                file.read_exact_at(&mut found, round % 4 * len).unwrap();
                assert!(found == part(round), "round {round} of the client");
                round += 1;
            }
            client.flush();
        });
        let by_file = scope.spawn(|| {
            let (mut client, file, mut round) = (client(&harness), file(&harness), 0);
            while round < 4 || !is_over.load(Ordering::Relaxed) {
                let at = 2 * MIB + round % 4 * len;
                // Beside the blocks of the array.
                file.write_all_at(&part(round)[100..len as usize - 100], at + 100).unwrap();
                let found = client.read(at, len);
                let inner = 100..len as usize - 100;
                assert!(found[inner.clone()] == part(round)[inner], "round {round} of the file");
                round += 1;
            }
            file.sync_all().unwrap();
        });
        let administered = scope.spawn(|| exchange_members(&harness));
        let administered = administered.join();
        is_over.store(true, Ordering::Relaxed);
        by_client.join().unwrap();
        by_file.join().unwrap();
        administered.unwrap();
    });
    assert!(harness.ask("check", &["--quiet"]).good().stdout.contains("0 sectors differ"));
    // What is served is no member of itself, by whatever way.
    let own = harness.ask("add", &[&harness.path("file"), "--overwrite"]);
    assert!(own.code == Some(3) && own.stderr.contains("this process serves"), "{own:?}");
    harness.until("\"clients\": 0");
    let place = mounted(&run);
    harness.stop(run);
    for gone in [place, harness.path("file").into(), harness.path("nbd").into()] {
        assert!(gone.symlink_metadata().is_err(), "{} is left", gone.display());
    }
    let found = offline(&harness, &["x", "1", "2", "3"]);
    assert!(found.contains("all members there; stopped cleanly"), "{found}");
}

/// A member is failed, removed, and comes back; then another one, in whose place a fresh one comes.
fn exchange_members(harness: &Harness) {
    for (member, fresh) in [("1", "1"), ("0", "x")] {
        harness.ask("fail", &[member]).good();
        harness.ask("remove", &[member]).good();
        harness.ask("add", &[&harness.path(fresh)]).good();
        harness.until("\"missing\": 0");
        harness.until(WHOLE);
    }
}

/// Who uses it by either is not cut off by a `stop`; a signal ends it for both, clean, and says who was in the way.
#[test]
fn a_stop_waits_for_both_and_a_signal_for_none() {
    if !can_mount("a_stop_waits_for_both_and_a_signal_for_none", &[]) {
        return;
    }
    let flags = &["--bitmap", "none", "--assume-clean"];
    let harness = Harness::new("both-ends", "raid5 chunk=64K", 3, flags);
    let devices = ["0", "1", "2"];
    // Nobody uses the file: SIGTERM is an end in order.
    let mut run = serve(&harness, &devices, &["--write"]);
    let mut user = client(&harness);
    user.write(0, &[7; 4096]);
    file(&harness).write_all_at(&[8; 100], 5000).unwrap();
    let refused = harness.ask("stop", &[]);
    assert!(refused.code == Some(3) && refused.stderr.contains("1 NBD client is"), "{refused:?}");
    let end = |run: &mut Run| {
        let pid = run.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    };
    end(&mut run);
    assert!(run.0.wait().unwrap().success());
    assert!(user.answer().is_err(), "the connection is closed");
    assert!(offline(&harness, &devices).contains("stopped cleanly"));
    // Somebody does.
    let mut run = serve(&harness, &devices, &["--write"]);
    let (mut user, open) = (client(&harness), file(&harness));
    assert_eq!(user.read(0, 4096), [7; 4096]);
    let refused = harness.ask("stop", &["--disconnect"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("still uses it"), "{refused:?}");
    open.write_all_at(&[10; 100], 5000).unwrap();
    let place = mounted(&run);
    end(&mut run);
    // Served up to the end, so that nothing but an end in order leaves the array clean.
    let mut last = 0u64;
    loop {
        user.ask(NbdCommand::Write, 0, 512, false, &[(last + 1).to_ne_bytes(); 64].concat());
        match user.answer() {
            Ok((_, answer)) if answer.error.is_none() => last += 1,
            _ => break,
        }
    }
    assert_eq!(run.0.wait().unwrap().code(), Some(1));
    assert!(open.read_at(&mut [0; 512], 0).is_err(), "nobody serves it");
    assert_eq!(traces(&place), [""; 0]);
    for gone in ["file", "nbd", "s"] {
        assert!(Path::new(&harness.path(gone)).symlink_metadata().is_err(), "{gone} is left");
    }
    assert!(offline(&harness, &devices).contains("stopped cleanly"));
    let run = serve(&harness, &devices, &[]);
    let mut found = [0; 100];
    File::open(harness.path("file")).unwrap().read_exact_at(&mut found, 5000).unwrap();
    let value = u64::from_ne_bytes(client(&harness).read(0, 512)[..8].try_into().unwrap());
    assert!(value == last || value == last + 1, "{value} is there, {last} was answered");
    assert_eq!(found, [10; 100]);
    harness.until("\"clients\": 0");
    harness.stop(run);
}

/// Killed under both: what was answered is there, and who waits for the file gets an error.
#[test]
fn a_killed_server_loses_nothing_of_either() {
    if !can_mount("a_killed_server_loses_nothing_of_either", &["umount"]) {
        return;
    }
    let flags = &["--bitmap", "internal", "--assume-clean"];
    let harness = Harness::new("both-killed", "raid1", 2, flags);
    for kill in 0..3u64 {
        let mut run = serve(&harness, &["0", "1"], &["--write"]);
        let at = MIB + 3;
        let (mut user, open) = (client(&harness), file(&harness));
        let writer = thread::spawn(move || {
            let mut last = kill << 32;
            while open.write_all_at(&(last + 1).to_ne_bytes(), at).is_ok() {
                last += 1;
            }
            last
        });
        let mut written = kill << 32;
        for _ in 0..200 {
            written += 1;
            user.write(0, &[written.to_ne_bytes(); 64].concat());
        }
        let place = mounted(&run);
        run.0.kill().unwrap();
        run.0.wait().unwrap();
        let last = writer.join().unwrap();
        // The mount is left by a process that was killed, and in the way of nobody.
        tool("umount", &["--lazy", place.to_str().unwrap()]).unwrap();
        fs::remove_dir(&place).unwrap();
        fs::remove_file(harness.path("file")).unwrap();
        let run = serve(&harness, &["0", "1"], &["--write"]);
        assert_eq!(client(&harness).read(0, 512), [written.to_ne_bytes(); 64].concat());
        let mut found = [0; 8];
        file(&harness).read_exact_at(&mut found, at).unwrap();
        let found = u64::from_ne_bytes(found);
        assert!(found == last || found == last + 1, "{found} is there, {last} was answered");
        harness.until("\"work\": null");
        assert!(harness.ask("check", &["--quiet"]).good().stdout.contains("0 sectors differ"));
        harness.until("\"clients\": 0");
        harness.stop(run);
    }
}

/// A filesystem on a loop device over the file: once it is unmounted, a client reads what was written.
#[test]
fn a_filesystem_over_the_file_is_read_by_a_client() {
    const TEST: &str = "a_filesystem_over_the_file_is_read_by_a_client";
    if !can_mount(TEST, &["mkfs.ext4", "e2fsck", "losetup", "mount", "umount"]) {
        return;
    }
    let harness = Harness::new("both-loop", "raid5 chunk=64K", 4, &["--assume-clean"]);
    let run = serve(&harness, &["0", "1", "2", "3"], &["--write"]);
    let node = tool("losetup", &["--find", "--show", &harness.path("file")]).unwrap();
    let mounted = super::mounted::Mounted::new(node, harness.scratch.directory("mounted"));
    tool("mkfs.ext4", &["-q", "-F", &mounted.node]).unwrap();
    let place = mounted.at.display().to_string();
    tool("mount", &[&mounted.node, &place]).unwrap();
    let mut user = client(&harness);
    for number in 0..40 {
        let path = numbered::path(&mounted.at, number);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = File::create(&path).unwrap();
        file.write_all(&numbered::bytes(number)).unwrap();
        user.read(0, MIB);
    }
    mounted.unmount();
    drop(mounted);
    let copy = harness.path("copy");
    let size = user.chosen.size;
    let mut image = File::create(&copy).unwrap();
    for at in (0..size).step_by(MIB as usize) {
        image.write_all(&user.read(at, MIB.min(size - at))).unwrap();
    }
    drop(user);
    tool("e2fsck", &["-f", "-n", &copy]).unwrap();
    assert!(fs::read(harness.path("file")).unwrap() == fs::read(&copy).unwrap());
    tool("mount", &["-o", "loop,ro", &copy, &place]).unwrap();
    let found: Vec<bool> = (0..40)
        .map(|number| {
            let path = numbered::path(Path::new(&place), number);
            fs::read(path).is_ok_and(|found| found == numbered::bytes(number))
        })
        .collect();
    tool("umount", &[&place]).unwrap();
    assert_eq!(found, [true; 40]);
    harness.until("\"clients\": 0");
    harness.stop(run);
}

/// What still cannot be is told, and touches nothing.
#[test]
fn what_cannot_be_served_in_both_ways_is_told() {
    if !can_mount("what_cannot_be_served_in_both_ways_is_told", &[]) {
        return;
    }
    let harness = Harness::new("both-two", "raid1", 2, &["--assume-clean", "--name", "one"]);
    let more = ["c", "d"].map(|name| harness.path(name));
    for file in &more {
        fs::write(file, vec![0; 8 * MIB as usize]).unwrap();
    }
    let create = ["array", "create", "raid1"].map(str::to_owned);
    let flags = ["--assume-clean", "--name", "two"].map(str::to_owned);
    raidlab(create.iter().chain(&more).chain(&flags)).good();
    let devices = ["0", "1", "c", "d"];
    let before = harness.bytes(&devices);
    let both = ["--nbd", &format!("unix:{}", harness.path("nbd")), "--fuse"].map(str::to_owned);
    let refused = |devices: &[&str], file: &str, directory: &Path| -> Ran {
        let mut run = command();
        run.env("XDG_RUNTIME_DIR", harness.scratch.path()).args(["array", "serve", "--write"]);
        run.args(devices.iter().map(|device| harness.path(device))).args(&both).arg(file);
        run.env("TMPDIR", directory).stdout(Stdio::null()).output().unwrap().into()
    };
    let file = harness.path("file");
    let temporary = std::env::temp_dir();
    for (devices, file, directory, code, words) in [
        (&devices[..], &file, &temporary, 2, "--fuse belongs to one array"),
        (&devices[..2], &harness.path("c"), &temporary, 2, "exists already"),
        (&devices[..2], &harness.path("none/file"), &temporary, 2, "No such file"),
        (&devices[..2], &file, &harness.path("none").into(), 1, "No such file"),
    ] {
        let ran = refused(devices, file, directory);
        assert!(ran.code == Some(code) && ran.stderr.contains(words), "{words}: {ran:?}");
        assert!(Path::new(&harness.path("nbd")).symlink_metadata().is_err(), "{words}");
    }
    assert!(harness.bytes(&devices) == before, "what is refused changes nothing");
}
