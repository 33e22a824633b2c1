//! The guest runner keeps its promises: what its head says of outputs, limits and members.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../tests/support/guest.rs"]
mod guest;

use guest::{TempDir, guest_or_skip};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_WRLCK, SEEK_SET, flock};

const RUNNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/md-guest.sh");

#[test]
fn a_script_has_members_and_a_share_and_its_status_comes_back() {
    let Some(guest) = guest_or_skip("a_script_has_members_and_a_share_and_its_status_comes_back")
    else {
        return;
    };
    let directory = TempDir::new("runner");
    let members = [directory.file("a, with: signs", 8 << 20), directory.file("b", 8 << 20)];
    let share = directory.path().join("share");
    fs::create_dir(&share).expect("made");
    let script = r#"
        set -e
        echo "$NDEV: $DEVS"; echo problem >&2
        printf 'second section' | dd of=/dev/ubda2 conv=notrunc status=none
        printf 'other member' | dd of=/dev/ubdb1 conv=notrunc status=none
        mdadm --create /dev/md0 --run --quiet --level=5 --raid-devices=3 --assume-clean \
            /dev/ubda3 /dev/ubdb3 missing
        cat /proc/mdstat >"$SHARE/mdstat"
        exit 7
    "#;
    let output = guest.cut(&[1 << 20, 64 << 10, 4 << 20]).run(script, &members, &share);
    assert_eq!(output.status, 7, "{output:?}");
    assert_eq!(output.stdout, "2: /dev/ubda /dev/ubdb\n");
    assert!(output.stderr.contains("problem"), "{output:?}");
    let first = fs::read(&members[0]).expect("read");
    assert_eq!(&first[1 << 20..][..14], b"second section");
    assert_eq!(first.len(), 8 << 20);
    assert!(fs::read(&members[1]).expect("read").starts_with(b"other member"));
    let mdstat = fs::read_to_string(share.join("mdstat")).expect("the share is written to");
    assert!(mdstat.contains("raid5 ubdb3[1] ubda3[0]"), "{mdstat}");
}

#[test]
fn a_guest_that_crashes_or_is_late_leaves_its_members_free() {
    let Some(guest) = guest_or_skip("a_guest_that_crashes_or_is_late_leaves_its_members_free")
    else {
        return;
    };
    let directory = TempDir::new("ends");
    let members = [directory.file("a", 1 << 20)];
    let crashed = guest.run("echo before; echo c >/proc/sysrq-trigger", &members, directory.path());
    assert_eq!(crashed.status, 125, "{crashed:?}");
    assert!(crashed.stderr.contains("Kernel panic"), "the console is shown: {crashed:?}");
    let guest = guest.limit(3);
    let late = guest.run("exec 3</dev/ubda; while :; do :; done", &members, directory.path());
    assert_eq!(late.status, 124, "{late:?}");
    // What was killed may take a moment to go; what was not holds the file until it is.
    assert!((0..1000).any(|_| !is_open(&members[0])), "a process of the guest is left");
    let after = guest.limit(120).run("dd if=/dev/ubda of=/dev/null", &members, directory.path());
    assert_eq!(after.status, 0, "{after:?}");
}

#[test]
fn a_member_that_another_has_locked_is_waited_for_once() {
    let name = "a_member_that_another_has_locked_is_waited_for_once";
    if guest_or_skip(name).is_none() {
        return;
    }
    let directory = TempDir::new("locked");
    let members = [directory.file("a", 1 << 20), directory.file("b", 1 << 20)];
    let run = |options: &[&str], then: &mut dyn FnMut()| {
        let mut command = Command::new(RUNNER);
        command.args(options).arg("-").args(&members);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the runner starts");
        write!(child.stdin.take().expect("piped"), "echo ran").expect("the runner reads");
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        let first = said.next().expect("a line").expect("text");
        then();
        said.for_each(drop);
        let output = child.wait_with_output().expect("the runner ends");
        (first, output.status.code(), output.stdout)
    };
    for (options, drive) in [(&[][..], "/dev/ubdb"), (&["-p", "64K,-"], "/dev/ubdb1")] {
        let line = format!("md-guest: not there: {drive} - trying again");
        let held = lock(&members[1]);
        assert_eq!(run(options, &mut || ()), (line.clone(), Some(125), Vec::new()));
        let mut held = Some(held);
        let then = &mut || drop(held.take());
        assert_eq!(run(options, then), (line, Some(0), b"ran\n".to_vec()));
    }
}

/// Locks a file as machines lock their drives, as long as what is given is open.
fn lock(path: &Path) -> File {
    let file = File::options().read(true).write(true).open(path).expect("the member opens");
    let lock =
        flock { l_type: F_WRLCK as i16, l_whence: SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 };
    fcntl(&file, FcntlArg::F_OFD_SETLK(&lock)).expect("nobody else has a lock");
    file
}

/// Whether any process has the file open.
fn is_open(file: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let descriptors = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok());
    let mut open =
        descriptors.flatten().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    open.any(|target| target == file)
}

#[test]
fn wrong_usage_is_refused_before_anything_starts() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(RUNNER).args(arguments).output().expect("the runner starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&[]).contains("usage: tests/md-guest.sh"));
    assert!(refused(&["-x"]).contains("usage: tests/md-guest.sh"));
    assert!(refused(&["-m", "512", "-"]).contains("such as 512M"));
    assert!(refused(&["-t", "1m", "-"]).contains("seconds"));
    assert!(refused(&["-p", "16M,", "-"]).contains("such as 16M"));
    assert!(refused(&["-p", "1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,1M,-", "-"]).contains("15"));
    assert!(refused(&["-s", "/nowhere", "-"]).contains("no such directory"));
    assert!(refused(&["-", "/nowhere"]).contains("no such file"));
    assert!(refused(&[&["-"][..], &[RUNNER; 17]].concat()).contains("at most 16"));
}
