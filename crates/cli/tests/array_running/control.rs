//! The control socket and the served file of a running array when others get in the way: what takes their places
//! stays.

use super::*;

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
