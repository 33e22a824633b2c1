//! Spares, and the devices whose places they take.

use super::*;

/// A device that failed is named until it is removed, also when a spare is in its place.
#[test]
fn a_device_whose_place_a_spare_took_is_removed() {
    let harness = Harness::new("spare-removed", "raid5 chunk=64K", 3, &["--assume-clean"]);
    let run = harness.assemble(&["0", "1", "2"], &["--write", "--spare", &harness.path("x")]);
    let none = "\"failed_devices\": []";
    assert!(harness.status().contains(none), "{}", harness.status());
    assert_eq!(harness.ask("remove", &["failed"]).good().stdout, "no device failed\n");
    let replaced = |member: &str| {
        harness.ask("fail", &[member]).good();
        harness.until("\"spares\": []");
        harness.until("\"missing\": 0");
        harness.until(WHOLE);
        let text = harness.ask("status", &[]).good().stdout;
        let line = format!("  failed    {} (was member {member})\n", harness.path(member));
        assert!(text.contains(&line), "{text}");
    };
    replaced("0");
    let ran = harness.ask("remove", &[&harness.path("0")]).good();
    let words = "is let go of; another device is member 0";
    assert_eq!(ran.stdout, format!("{} {words}\n", harness.path("0")));
    assert!(harness.status().contains(none));
    let again = harness.ask("remove", &[&harness.path("0")]);
    assert!(again.code == Some(1) && again.stderr.contains("is no member"), "{again:?}");
    // It may be a spare again, and then it is no failed device.
    harness.ask("add", &[&harness.path("y")]).good();
    replaced("1");
    harness.ask("add", &[&harness.path("1"), "--overwrite"]).good();
    assert!(harness.status().contains(none));
    replaced("2");
    // All that failed, whether others are in their places or not.
    harness.ask("fail", &["0"]).good();
    let ran = harness.ask("remove", &["failed"]).good();
    let all = format!(
        "{} is let go of; another device is member 2\n{} is let go of; member 0 is missing\n",
        harness.path("2"),
        harness.path("x")
    );
    assert_eq!(ran.stdout, all);
    let status = harness.status();
    assert!(status.contains(none) && status.contains("\"state\": \"missing\""), "{status}");
    harness.stop(run);
}

/// Begins to replace member 1 by `x`, of so many bytes that it is not done before the next command.
fn replacing(name: &str) -> (Harness, Run) {
    let harness = Harness { scratch: Scratch::new(name) };
    for file in ["0", "1", "x", "y"] {
        fs::File::create(harness.path(file)).unwrap().set_len(512 * MIB).unwrap();
    }
    let (zero, one) = (harness.path("0"), harness.path("1"));
    raidlab(["array", "create", "raid1", &zero, &one, "--assume-clean"]).good();
    let run = harness.assemble(&["0", "1"], &["--write"]);
    harness.ask("replace", &["1", &harness.path("x")]).good();
    (harness, run)
}

/// The device that was to replace a member which fails meanwhile takes its place as a spare.
#[test]
fn what_was_to_replace_a_member_that_fails_is_its_spare() {
    let (harness, run) = replacing("spare-replacement");
    harness.ask("fail", &["1"]).good();
    harness.until("\"missing\": 0");
    harness.until(WHOLE);
    let status = harness.status();
    let path = harness.path("x");
    assert!(status.contains(&format!("\"path\": \"{path}\"")), "{status}");
    assert!(!status.contains(&format!("\"replacement\": \"{path}\"")), "{status}");
    assert!(status.contains("\"spares\": []"), "{status}");
    harness.stop(run);
}

/// The device that is to replace a member can be taken out, is let go of, and may be anything after.
#[test]
fn what_is_to_replace_a_member_can_be_taken_out() {
    let (harness, run) = replacing("replacement-out");
    let x = harness.path("x");
    let ran = harness.ask("remove", &[&x]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is to replace member 1"), "{ran:?}");
    let ran = harness.ask("fail", &[&x]).good();
    assert_eq!(ran.stdout, format!("{x} replaces member 1 no more\n"));
    harness.until("\"work\": null");
    let status = harness.status();
    assert!(status.contains("\"missing\": 0") && !status.contains(&x), "{status}");
    // Nobody has it in use.
    let out = ["array", "create", "raid1", &x, "missing", "--overwrite"];
    raidlab(out).good();
    harness.ask("replace", &["1", &harness.path("y")]).good();
    harness.until(&format!("\"path\": \"{}\"", harness.path("y")));
    harness.stop(run);
}
