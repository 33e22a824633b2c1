//! The control socket and the served file of a running array when others get in the way: what takes their places stays,
//! and commands are answered where there is no room for threads.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;

use super::*;

/// A user that owns nothing else on this machine.
const NOBODY_ELSE: u32 = 64_917;

fn end(mut run: Run) {
    let kill = Command::new("kill").args(["-TERM", &run.0.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert!(run.0.wait().unwrap().success());
}

/// Whatever has taken the place of the socket since is not the array's to remove.
#[test]
fn what_takes_the_place_of_the_socket_stays() {
    let harness = Harness::new("control-place", "raid1", 2, &["--assume-clean"]);
    let socket = harness.path("s");
    let run = harness.assemble(&["0", "1"], &[]);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "kept").unwrap();
    end(run);
    assert_eq!(fs::read_to_string(&socket).unwrap(), "kept");
    fs::remove_file(&socket).unwrap();
    // Nor is the socket of an array that runs there since.
    let first = harness.assemble(&["0", "1"], &[]);
    fs::remove_file(&socket).unwrap();
    let second = harness.assemble(&["0", "1"], &[]);
    end(first);
    assert!(harness.status().contains("raid1(2)"));
    harness.stop(second);
}

/// A socket that cannot be connected to may be somebody's; one that nobody listens on is left by who was killed.
#[test]
fn a_socket_of_another_program_is_left_alone() {
    let harness = Harness::new("control-theirs", "raid1", 2, &["--assume-clean"]);
    let socket = harness.path("s");
    let theirs = UnixDatagram::bind(&socket).unwrap();
    let told = harness.assembling(&["0", "1"], &[]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(3), "{said}");
    assert!(said.contains("perhaps another program's") && said.contains(&socket), "{said}");
    UnixDatagram::unbound().unwrap().send_to(b"here", &socket).unwrap();
    drop(theirs);
    let run = harness.assemble(&["0", "1"], &[]);
    harness.stop(run);
}

/// Every command says by which version it is meant; one that does not is meant as this raidlab has it.
#[test]
fn a_stop_of_another_version_is_refused() {
    let harness = Harness::new("control-version", "raid1", 2, &["--assume-clean"]);
    let mut run = harness.assemble(&["0", "1"], &[]);
    let told = |line: &str| {
        let mut stream = UnixStream::connect(harness.path("s")).unwrap();
        writeln!(stream, "{line}").unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        told
    };
    for what in ["stop", "status"] {
        let answer = told(&format!(r#"{{"version": 99, "do": "{what}"}}"#));
        assert!(answer.contains("version 99 of a command"), "{what}: {answer}");
    }
    assert!(harness.status().contains("raid1(2)"));
    told(r#"{"version": 1, "do": "stop"}"#);
    assert!(run.0.wait().unwrap().success());
}

/// The same of the link to a served file.
#[test]
fn what_takes_the_place_of_a_served_file_stays() {
    if !root::can_mount("what_takes_the_place_of_a_served_file_stays", &[]) {
        return;
    }
    let harness = Harness::new("control-fuse", "raid1", 2, &["--assume-clean"]);
    let file = harness.path("data");
    let run = harness.assemble(&["0", "1"], &["--fuse", &file]);
    fs::remove_file(&file).unwrap();
    fs::write(&file, "kept").unwrap();
    harness.stop(run);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

/// Who may start no thread more answers all the same, and goes on.
#[test]
fn commands_are_answered_without_room_for_a_thread() {
    let harness = Harness::new("control-threads", "raid1", 2, &["--assume-clean"]);
    let mut assembling = harness.assembling(&["0", "1"], &["--write"]);
    // The limit is for a user's processes and threads, and root has none.
    let (own, is_root) = (harness.scratch.path(), root::tool("id", &["-u"]).as_deref() == Ok("0"));
    if is_root {
        for file in [own, &own.join("0"), &own.join("1")] {
            std::os::unix::fs::chown(file, Some(NOBODY_ELSE), Some(NOBODY_ELSE)).unwrap();
        }
        // Programs that were built below a directory of somebody's may not be there for others.
        let copy = harness.path("raidlab");
        fs::copy(env!("CARGO_BIN_EXE_raidlab"), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        let mut other = Command::new(copy);
        other.args(assembling.get_args()).uid(NOBODY_ELSE).gid(NOBODY_ELSE);
        other.env("RAIDLAB_STORE", "off").stdin(Stdio::null());
        other.stdout(Stdio::piped()).stderr(Stdio::null());
        assembling = other;
    }
    let mut child = assembling.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = Run(child);
    assert!(line.contains("raid1(2)"), "it does not run: {line:?}");
    let pid = run.0.id().to_string();
    let limit = |threads: &str| {
        let mut limit = Command::new("prlimit");
        limit.args(["--pid", &pid, &format!("--nproc={threads}:")]);
        if is_root {
            limit.uid(NOBODY_ELSE).gid(NOBODY_ELSE);
        }
        assert!(limit.status().unwrap().success());
    };
    limit("1");
    for _ in 0..3 {
        assert!(harness.status().contains("raid1(2)"));
    }
    let refused = harness.ask("remove", &["1"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("in service"), "{refused:?}");
    // What follows writes, for which the system may want threads.
    limit("100");
    harness.stop(run);
}
