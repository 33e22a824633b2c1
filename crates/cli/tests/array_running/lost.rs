//! Arrays of which more is lost than the level survives, or nearly.

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
