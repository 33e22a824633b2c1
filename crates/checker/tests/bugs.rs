//! The checker finds bugs: a sample of the planted ones, another one for each `RAIDLAB_SAMPLE`.
//! All of them: `cargo xtask bugs`.
#![cfg(feature = "seeded-bugs")]

use raidlab_checker::mutation::{Budget, MutationTest, sample};
use raidlab_core::bugs::Bug;

/// Bugs of a sample.
const COUNT: usize = 6;

#[test]
fn a_sample_of_the_planted_bugs_is_found() {
    let number = std::env::var("RAIDLAB_SAMPLE").map_or(0, |text| {
        text.parse().unwrap_or_else(|_| panic!("RAIDLAB_SAMPLE={text}: expected a number"))
    });
    let mut test = MutationTest::new(Budget::default());
    for ground in 0..test.grounds() {
        let control = test.control(ground);
        test.leave_out(ground, &control);
    }
    let found: Vec<_> = sample(COUNT, number).into_iter().map(|bug| (bug, test.bug(bug))).collect();
    for (bug, found) in &found {
        println!("{}: {found:?}", bug.name());
    }
    let missed: Vec<&str> =
        found.iter().filter(|(_, found)| found.is_err()).map(|(bug, _)| bug.name()).collect();
    assert!(missed.is_empty(), "not found: {}", missed.join(", "));
}

#[test]
fn there_are_bugs_enough() {
    assert!(Bug::ALL.len() >= 40, "{}", Bug::ALL.len());
}
