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
