//! Assemblies that are refused: nothing of the array is written then.

use std::os::unix::fs::PermissionsExt;

use super::*;

const DEVICES: [&str; 3] = ["0", "1", "2"];

/// Assembles for writing by these flags, which is refused: no byte of a member changes and no socket stays.
fn refused(harness: &Harness, flags: &[&str], (code, words): (i32, &str)) {
    let before = harness.bytes(&DEVICES);
    let mut assembling = command();
    assembling.args(["array", "assemble", "--write"]);
    assembling.args(DEVICES.map(|device| harness.path(device))).args(flags);
    let runtime = harness.path("runtime");
    let ran: Ran = assembling.env("XDG_RUNTIME_DIR", runtime).output().unwrap().into();
    assert!(harness.bytes(&DEVICES) == before, "{flags:?}: members were written");
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.stderr.contains(words), "`{words}` is not in {ran:?}");
}

/// Makes an array that is not clean, so that whoever starts it writes.
fn harness(name: &str) -> Harness {
    let harness = Harness::new(name, "raid5 chunk=64K", 3, &["--bitmap", "internal"]);
    fs::create_dir(harness.path("runtime")).unwrap();
    harness
}

#[test]
fn a_socket_that_is_refused_leaves_the_members_as_they_are() {
    let harness = harness("refused-socket");
    let nowhere = harness.path("none/s");
    refused(&harness, &["--socket", &nowhere], (1, "the control socket cannot be made (--socket)"));
    refused(&harness, &["--socket", &harness.path("0")], (2, "exists, and is no socket"));
    // Another array of the same name, by the socket that both have for want of another.
    let other = Harness::new("refused-other", "raid1", 2, &["--assume-clean"]);
    let mut assembling = command();
    assembling.args(["array", "assemble", &other.path("0"), &other.path("1")]);
    assembling.env("XDG_RUNTIME_DIR", harness.path("runtime")).stdout(Stdio::piped());
    let mut child = assembling.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = Run(child);
    refused(&harness, &[], (3, "an array runs there already"));
    let nbd = format!("unix:{}", harness.path("nbd"));
    refused(&harness, &["--nbd", &nbd], (3, "an array runs there already"));
    drop(run);
    // What a killed process left is no obstacle, and a refusal for another reason leaves nothing.
    let socket = harness.path("runtime/raidlab/array.sock");
    assert!(Path::new(&socket).symlink_metadata().is_ok());
    let again = ["--spare", &harness.path("0")];
    refused(&harness, &again, (3, "is a member of an md array"));
    assert!(Path::new(&socket).symlink_metadata().is_err(), "the socket is gone");
}

#[test]
fn a_directory_of_sockets_that_is_not_trusted_leaves_the_members_as_they_are() {
    let harness = harness("refused-runtime");
    let own = harness.path("runtime/raidlab");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&harness, &[], (3, "can be written by other users"));
    fs::remove_dir(&own).unwrap();
    fs::write(&own, "").unwrap();
    refused(&harness, &[], (1, "the directory of control sockets"));
    if !root::can_mount("a_directory_of_sockets_that_is_not_trusted", &[]) {
        return;
    }
    fs::remove_file(&own).unwrap();
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
    refused(&harness, &[], (3, "is owned by another user (65534; this is user 0)"));
}

#[test]
fn what_is_asked_for_besides_is_refused_before_the_array_begins() {
    let harness = harness("refused-besides");
    fs::write(harness.path("y"), vec![7; 8 * MIB as usize]).unwrap();
    refused(&harness, &["--spare", &harness.path("y")], (3, "something stands on it"));
    refused(&harness, &["--spare", &harness.path("none")], (1, "none"));
    // Not as large as the data of members, nor the place where these start; a large one comes first.
    for len in [4 * MIB, MIB] {
        fs::write(harness.path("small"), vec![0; len as usize]).unwrap();
        let spares = ["--spare", &harness.path("x"), "--spare", &harness.path("small")];
        let words = format!("small: it has {}MiB, and needs some 8MiB", len / MIB);
        refused(&harness, &spares, (2, &words));
        let blank =
            |name: &str| fs::read(harness.path(name)).unwrap().iter().all(|byte| *byte == 0);
        assert!(blank("x") && blank("small"), "a spare was written");
    }
    refused(&harness, &["--fuse", &harness.path("none/data")], (2, "--fuse"));
    let program = harness.path("x");
    for (program, words) in [
        (harness.path("none"), "does not exist"),
        (harness.path("runtime"), "is no file"),
        (program.clone(), "is not executable"),
        ("raidlab-no-such-program".into(), "is not found in PATH"),
    ] {
        refused(&harness, &["--program", &program], (2, words));
    }
}

/// What has no redundancy has no use for a spare.
#[test]
fn a_spare_of_no_use_is_refused() {
    let harness = Harness::new("refused-raid0", "raid0 chunk=64K", 3, &[]);
    fs::create_dir(harness.path("runtime")).unwrap();
    let words = "--spare: raid0(3) chunk=64K has no redundancy";
    refused(&harness, &["--spare", &harness.path("x")], (2, words));
}

/// The program hears of each member that fails and once of the array, in that order however long it takes, also where
/// the array is stopped at once.
#[test]
fn the_program_hears_that_the_array_is_lost() {
    let harness = Harness::new("hook-lost", "raid5 chunk=64K", 3, &["--assume-clean"]);
    let (program, log) = (harness.path("program"), harness.path("log"));
    let script = format!("#!/bin/sh\n[ $1 = Fail ] && sleep 0.2\necho \"$1 $3\" >>{log}\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut run = harness.assemble(&DEVICES, &["--write", "--program", &program]);
    for member in DEVICES {
        harness.ask("fail", &[member, "--force"]).good();
    }
    harness.ask("stop", &[]).good();
    assert_eq!(run.0.wait().unwrap().code(), Some(1));
    let failed = DEVICES.map(|member| format!("Fail {}", harness.path(member)));
    let heard = fs::read_to_string(&log).unwrap();
    let heard: Vec<_> = heard.lines().collect();
    assert_eq!(heard, [&failed[0], &failed[1], "ArrayFailed ", &failed[2]]);
}

/// Nothing is written to what would not keep it, and no device takes the place of an overlay.
#[test]
fn an_overlay_that_is_no_file_is_refused() {
    let harness = Harness::new("refused-overlay", "raid1", 2, &["--assume-clean"]);
    let (fifo, directory) = (harness.path("fifo"), harness.path("directory"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fs::create_dir(&directory).unwrap();
    // What a link leads to counts.
    std::os::unix::fs::symlink("/dev/full", harness.path("link")).unwrap();
    for overlay in ["/dev/full", "/dev/null", &harness.path("link"), &fifo, &directory] {
        let mut run = harness.assembling(&["0", "1"], &["--overlay", overlay]);
        let ran: Ran = run.stderr(Stdio::piped()).output().unwrap().into();
        let words = format!("{overlay} is no regular file, and is left as it is");
        assert!(ran.code == Some(2) && ran.stderr.contains(&words), "{ran:?}");
        assert!(Path::new(overlay).symlink_metadata().is_ok(), "{overlay} is gone");
    }
}

/// What a run gave that must not wait for anybody.
fn at_once(asking: &mut Command) -> Ran {
    let mut run = Run(asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let begun = Instant::now();
    while run.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE / 4, "it waits: {asking:?}");
        std::thread::yield_now();
    }
    let (mut stdout, mut stderr) = (String::new(), String::new());
    run.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    run.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    Ran { code: run.0.wait().unwrap().code(), stdout, stderr }
}

/// Who opens a FIFO waits for somebody at its other end: nobody does, least of all an array that runs.
#[test]
fn a_fifo_instead_of_a_device_is_refused_at_once() {
    let harness = Harness::new("refused-fifo", "raid1", 2, &["--assume-clean"]);
    let [fifo, socket, other] = ["fifo", "s", "other"].map(|name| harness.path(name));
    let devices = ["0", "1"].map(|name| harness.path(name));
    let devices = devices.each_ref().map(String::as_str);
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let words = "fifo is neither a file nor a block device";
    let run = harness.assemble(&["0", "1"], &["--write"]);
    for (asked, code) in [
        (&["status", &fifo][..], 2),
        (
            &[&["assemble", "--write", "--socket", &other, "--spare", &fifo], &devices[..]]
                .concat(),
            2,
        ),
        (&["add", &socket, &fifo], 1),
        (&["replace", &socket, "0", &fifo], 1),
    ] {
        let ran = at_once(command().arg("array").args(asked));
        assert!(ran.code == Some(code) && ran.stderr.contains(words), "{asked:?}: {ran:?}");
    }
    harness.stop(run);
}

/// Metadata go back neither under an array that runs nor, unasked, over those of a later state.
#[test]
fn metadata_go_back_neither_under_an_array_nor_over_newer_ones() {
    let flags = ["--assume-clean", "--bitmap", "internal"];
    let harness = Harness::new("refused-restore", "raid1", 2, &flags);
    let (first, second, saved) = (harness.path("0"), harness.path("1"), harness.path("saved"));
    raidlab(["array", "dump-metadata", "--to", &saved, &first, &second]).good();
    let restore = |flags: &[&str], members: &[&str]| {
        let words = ["array", "restore-metadata", "--from", &saved];
        raidlab([&words[..], flags, members].concat())
    };
    // Only looking is nobody's harm.
    restore(&[], &[&first, &second]).good();
    for flags in [&[][..], &["--write"]] {
        let run = harness.assemble(&["0", "1"], flags);
        for overwrite in [&["--destructive"][..], &["--destructive", "--overwrite"]] {
            let before = harness.bytes(&["0", "1"]);
            let ran = restore(overwrite, &[&first, &second]);
            assert!(ran.code == Some(1) && ran.stderr.contains("has locked it"), "{ran:?}");
            // One that is written may just have told its superblocks something.
            let is_same = harness.bytes(&["0", "1"]) == before;
            assert!(is_same || !flags.is_empty(), "under an array that runs");
        }
        harness.stop(run);
    }
    let run = harness.assemble(&["0", "1"], &["--write"]);
    harness.ask("fail", &["1"]).good();
    harness.stop(run);
    let events = |member: &str| {
        let text = raidlab(["array", "examine", member]).good().stdout;
        let line = text.lines().find(|line| line.trim_start().starts_with("Events")).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    let before = harness.bytes(&["0", "1"]);
    let ran = restore(&["--destructive"], &[&second, &first]);
    let words = format!("{second}: the superblock there is newer, of event {}", events(&second));
    assert!(ran.code == Some(3) && ran.stderr.contains(&words), "{ran:?}");
    assert!(ran.stderr.contains("taken for current") && ran.stderr.contains("--overwrite"));
    assert!(harness.bytes(&["0", "1"]) == before, "a member was written");
    restore(&["--destructive", "--overwrite"], &[&second, &first]).good();
    assert!(harness.bytes(&["0", "1"]) != before);
    // A member is written once.
    let ran = restore(&["--destructive"], &[&first, &first]);
    assert!(ran.code == Some(1) && ran.stderr.contains("it is a member already"), "{ran:?}");
}

/// Copies that a full disk cut short.
#[test]
fn that_members_are_cut_off_is_told_of_each() {
    let harness = Harness::new("refused-cut", "raid5 chunk=64K", 3, &["--assume-clean"]);
    let cut = |device: &str| {
        let file = fs::File::options().write(true).open(harness.path(device)).unwrap();
        file.set_len(MIB).unwrap();
    };
    let why = |device: &str| {
        format!("{} (member {device}): cut off: its data need", harness.path(device))
    };
    DEVICES.into_iter().for_each(cut);
    let given = DEVICES.map(|device| harness.path(device));
    let ran = raidlab(["array", "status"].map(str::to_owned).iter().chain(&given));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for device in DEVICES {
        assert!(ran.stderr.contains(&why(device)), "{ran:?}");
    }
}

#[test]
fn arrays_of_one_name_are_told_apart() {
    let one = harness("refused-one");
    let two = Harness::new("refused-two", "raid1", 2, &["--assume-clean"]);
    let pairs = [&one, &two].map(|harness| ["0", "1"].map(|device| harness.path(device)));
    let words = ["array", "status"].map(str::to_owned);
    let ran = raidlab(words.iter().chain(pairs.as_flattened()));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for [first, second] in &pairs {
        let examined = raidlab(["array", "examine", "--json", first]).good().stdout;
        let json: serde_json::Value = serde_json::from_str(&examined).unwrap();
        let uuid = json["members"][0]["array_uuid"].as_str().unwrap().to_owned();
        assert!(ran.stderr.contains(&format!("(UUID {uuid})")), "{ran:?}");
        assert!(ran.stderr.contains(&format!("array ({uuid}): {first}, {second}")), "{ran:?}");
    }
}

#[test]
fn a_device_that_is_given_twice_is_told_to_be() {
    let harness = harness("refused-twice");
    let (first, link) = (harness.path("0"), harness.path("link"));
    std::os::unix::fs::symlink(&first, &link).unwrap();
    refused(&harness, &[&first], (2, &format!("{first}: given twice")));
    let words = format!("{link}: given twice, first as {first}");
    refused(&harness, &[&link], (2, &words));
}
