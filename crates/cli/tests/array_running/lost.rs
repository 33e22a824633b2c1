//! Arrays of which more is lost than the level survives, or nearly.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// What a command refuses, without the names of types.
fn refused(ran: &Ran, words: &str) {
    assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
    assert!(ran.stderr.contains(words), "{ran:?}");
}

/// The last member that can be spared is failed by force only; an array that is lost is stopped all the same, served or
/// not.
#[test]
fn an_array_is_lost_by_force_only_and_stops_all_the_same() {
    for served in [false, true] {
        let harness = Harness::new("running-lost", "raid5 chunk=64K", 3, &["--assume-clean"]);
        let address = format!("unix:{}", harness.path("n"));
        let nbd = ["--nbd", address.as_str()];
        let flags = [&["--write"][..], if served { &nbd } else { &[] }].concat();
        let mut run = harness.assemble(&["0", "1", "2"], &flags);
        harness.ask("fail", &["0"]).good();
        let ran = harness.ask("fail", &["2"]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        refused(&ran, "member 2: without it the array would be lost");
        for verb in ["check", "repair"] {
            refused(&harness.ask(verb, &[]), "a member is missing or not rebuilt");
        }
        refused(&harness.ask("fail", &["0"]), "cannot take a member out of service: member 0: ");
        let status = harness.status();
        assert!(status.contains("\"lost\": false") && status.contains("\"missing\": 1"));
        harness.ask("fail", &["2", "--force"]).good();
        assert!(harness.status().contains("\"lost\": true"), "{}", harness.status());
        let text = harness.ask("status", &[]).good().stdout;
        assert!(text.contains("lost: more") && !text.contains("kept consistent"), "{text}");
        assert_eq!(harness.ask("status", &["--test"]).code, Some(2));
        let stopped = harness.ask("stop", &[]).good().stdout;
        assert!(stopped.contains("nothing was marked clean"), "{stopped}");
        assert_eq!(run.0.wait().unwrap().code(), Some(1));
        assert!(!Path::new(&harness.path("s")).exists(), "the socket is gone");
    }
}

/// Runs an array of which a member fails as all is made durable at its stop, and ends it, by a command or by a signal.
/// What the command printed, the process' status, and what it told.
fn ended(harness: &Harness, flags: &[&str], is_told: bool) -> (String, Option<i32>, String) {
    let log = harness.path("told");
    let mut run = harness.assembling(&["0", "1"], &[&["--write"], flags].concat());
    let mut child = run.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut run = Run(child);
    // It takes commands in, and is idle.
    harness.status();
    fs::File::options().write(true).open(harness.path("0")).unwrap().set_len(5 * MIB).unwrap();
    let answer = match is_told {
        true => harness.ask("stop", &[]).good().stdout,
        false => {
            let pid = run.0.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            String::new()
        }
    };
    let code = run.0.wait().unwrap().code();
    assert!(!Path::new(&harness.path("s")).exists(), "the socket is gone");
    (answer, code, fs::read_to_string(log).unwrap())
}

/// What a stop finds out is told as at any other time: here more is lost than the level survives.
#[test]
fn an_array_that_is_lost_by_its_stop_ends_as_lost() {
    for (served, is_told) in [(false, true), (false, false), (true, true), (true, false)] {
        let harness = Harness::new("lost-at-stop", "raid0 chunk=64K", 2, &[]);
        let address = format!("unix:{}", harness.path("n"));
        let nbd = ["--nbd", address.as_str()];
        let flags: &[&str] = if served { &nbd } else { &[] };
        let (answer, code, told) = ended(&harness, flags, is_told);
        assert_eq!(code, Some(1), "{told}");
        let words = ["member 0 failed", "nothing was marked clean", "the array was lost"];
        assert!(words.iter().all(|words| told.contains(words)), "{told}");
        assert!(!is_told || answer.contains("nothing was marked clean"), "{answer}");
        // Nobody holds what is left.
        assert!(raidlab(["array", "examine", &harness.path("1")]).code == Some(0));
    }
}

/// A member that fails at the stop is named, and the program hears of it.
#[test]
fn a_member_that_fails_by_the_stop_is_told() {
    for is_told in [true, false] {
        let harness = Harness::new("degraded-at-stop", "raid1", 2, &["--assume-clean"]);
        let (program, heard) = (harness.path("program"), harness.path("heard"));
        fs::write(&program, format!("#!/bin/sh\necho \"$1 $3\" >>{heard}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let (answer, code, told) = ended(&harness, &["--program", &program], is_told);
        assert_eq!(code, Some(0), "{told}");
        let path = harness.path("0");
        let stopped = "stopped, degraded: member 0 failed";
        assert!(told.contains(&format!("member 0 failed ({path})")), "{told}");
        assert!(told.contains(stopped) && (!is_told || answer.contains(stopped)), "{told}{answer}");
        assert_eq!(fs::read_to_string(heard).unwrap(), format!("Fail {path}\n"));
    }
}

/// Of mirrored pairs one member each may be missing, which is more than the level survives whichever they are.
#[test]
fn two_members_of_different_pairs_are_not_the_array() {
    let harness = Harness::new("running-pairs", "raid10 chunk=64K", 4, &["--assume-clean"]);
    let run = harness.assemble(&["0", "1", "2", "3"], &["--write"]);
    harness.ask("fail", &["0"]).good();
    refused(&harness.ask("fail", &["1"]), "the array would be lost");
    harness.ask("fail", &["3"]).good();
    let status = harness.status();
    assert!(status.contains("\"lost\": false") && status.contains("\"missing\": 2"), "{status}");
    assert_eq!(harness.ask("status", &["--test"]).code, Some(1));
    let text = harness.ask("status", &[]).good().stdout;
    assert!(text.contains("degraded: 2 not fully in service"), "{text}");
    refused(&harness.ask("fail", &["2"]), "the array would be lost");
    harness.stop(run);
}

/// Two halves of a mirror, each as new as the other, are told with how new they are.
#[test]
fn halves_are_told_with_their_events() {
    let harness = Harness::new("running-halves", "raid1", 2, &["--assume-clean"]);
    for half in ["0", "1"] {
        let run = harness.assemble(&[half], &["--write", "--run"]);
        harness.stop(run);
    }
    let ran = raidlab(["array", "status", &harness.path("0"), &harness.path("1")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for (half, name) in [("one half", "0"), ("the other", "1")] {
        let line = format!("{half}: {}, events 2\n", harness.path(name));
        assert!(ran.stderr.contains(&line), "`{line}` is not in {}", ran.stderr);
    }
}
