//! The figures of a check for other programs.

use raidlab_checker::swarm::{Class, Special};

use super::args::Check;
use super::{Done, summary};
use crate::json::{lines, object, text};

/// The document of `raidlab check --json`.
pub(super) fn of_check(options: &Check, done: &Done) -> String {
    let tally = &done.tally;
    let crashes = &tally.crashes;
    let hits: Vec<(&str, String)> = Class::ALL
        .into_iter()
        .map(|class| (class.name(), tally.hits.of(class).to_string()))
        .collect();
    let shares: Vec<(&str, String)> = Special::ALL
        .into_iter()
        .map(|special| (special.name(), tally.shares.of(special).to_string()))
        .collect();
    let broken = done.broken.iter().enumerate().map(|(index, broken)| {
        let mut members = vec![
            ("what", text(&broken.what)),
            ("array", text(&broken.array)),
            ("how", text(&broken.how())),
            ("replay", text(&summary::command(broken))),
        ];
        if index == 0 {
            members.push(("log", lines(broken.lines().iter().map(|line| text(line)))));
        }
        object(members)
    });
    let number = |number: u64| number.to_string();
    let members = [
        ("from", number(options.from)),
        ("failure_runs", number(tally.failures)),
        ("failure_runs_in_bytes", number(tally.failures_in_bytes)),
        ("crash_states", number(crashes.states)),
        ("distinct_images", number(crashes.distinct)),
        ("states_in_bytes", number(tally.states_in_bytes)),
        ("moments", number(crashes.moments)),
        ("programs", number(crashes.programs)),
        ("forced_starts", number(crashes.forced)),
        ("cuts_in_recovery", number(crashes.nested)),
        ("write_hole_after", tally.hole.map_or_else(|| "null".into(), number)),
        ("seeds", number(tally.seeds)),
        ("requests", number(tally.requests)),
        ("member_ios", number(tally.ios)),
        ("power_cuts", number(tally.cuts)),
        ("hits", object(hits)),
        ("seeds_with", object(shares)),
        ("complete", (done.parts.0 == done.parts.1).to_string()),
        ("seconds", format!("{:.3}", done.seconds)),
        ("threads", done.threads.to_string()),
        ("hash", text(&format!("{:016x}", tally.hash))),
        ("broken_promises", number(tally.broken)),
        ("broken", lines(broken)),
    ];
    let rows: Vec<String> =
        members.iter().map(|(name, value)| format!(" {}: {value}", text(name))).collect();
    format!("{{\n{}\n}}\n", rows.join(",\n"))
}
