//! The figures of a check for other programs.

use raidlab_checker::device::Format;
use raidlab_checker::swarm::{Class, Special};
use serde_json::{Value, json};

use super::args::Check;
use super::{Done, summary};
use crate::json::{millis, pretty};

/// The document of `raidlab check --json`.
pub(super) fn of_check(options: &Check, done: &Done) -> String {
    let tally = &done.tally;
    let crashes = &tally.crashes;
    let hits = Class::ALL.into_iter().map(|class| (class.name(), tally.hits.of(class)));
    let shares = Special::ALL.into_iter().map(|special| (special.name(), tally.shares.of(special)));
    let broken = done.broken.iter().enumerate().map(|(index, broken)| {
        let mut members = json!({
            "what": broken.what,
            "array": broken.array,
            "how": broken.how(),
            "replay": summary::command(broken),
        });
        if index == 0 {
            members["log"] = broken.lines().into_iter().collect();
        }
        members
    });
    pretty(&json!({
        "metadata": options.metadata.map(Format::name),
        "from": options.from,
        "failure_runs": tally.failures,
        "failure_runs_in_bytes": tally.failures_in_bytes,
        "refused_operations": tally.refused,
        "crash_states": crashes.states,
        "distinct_images": crashes.distinct,
        "states_in_bytes": tally.states_in_bytes,
        "moments": crashes.moments,
        "programs": crashes.programs,
        "forced_starts": crashes.forced,
        "cuts_in_recovery": crashes.nested,
        "write_hole_after": tally.hole,
        "seeds": tally.seeds,
        "requests": tally.requests,
        "member_ios": tally.ios,
        "power_cuts": tally.cuts,
        "hits": hits.collect::<Value>(),
        "seeds_with": shares.collect::<Value>(),
        "complete": done.parts.0 == done.parts.1,
        "seconds": millis(done.seconds),
        "threads": done.threads,
        "hash": format!("{:016x}", tally.hash),
        "broken_promises": tally.broken,
        "broken": broken.collect::<Value>(),
    }))
}
