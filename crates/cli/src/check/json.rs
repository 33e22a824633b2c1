//! The figures of a check for other programs.

use std::fmt::Write;

use raidlab_sim::check::swarm::Class;

use super::args::Check;
use super::{Done, summary};

/// A text as JSON has it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            c if c.is_control() => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// An object from its members, each already JSON.
pub(super) fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    format!("{{{}}}", members.join(", "))
}

/// A list of things that are already JSON.
pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(",\n  "))
}

/// The document of `raidlab check --json`.
pub(super) fn of_check(options: &Check, done: &Done) -> String {
    let tally = &done.tally;
    let crashes = &tally.crashes;
    let hits: Vec<(&str, String)> = Class::ALL
        .into_iter()
        .map(|class| (class.name(), tally.hits.of(class).to_string()))
        .collect();
    let broken = done.broken.iter().enumerate().map(|(index, broken)| {
        let command = summary::command(broken);
        let mut members = vec![
            ("what", quoted(&broken.what)),
            ("array", quoted(&broken.array)),
            ("how", quoted(&broken.how())),
            ("replay", command.map_or_else(|| "null".into(), |command| quoted(&command))),
        ];
        if index == 0 {
            members.push(("log", list(broken.lines().iter().map(|line| quoted(line)))));
        }
        object(&members)
    });
    let number = |number: u64| number.to_string();
    let members = [
        ("from", number(options.from)),
        ("failure_runs", number(tally.failures)),
        ("crash_states", number(crashes.states)),
        ("distinct_images", number(crashes.distinct)),
        ("moments", number(crashes.moments)),
        ("programs", number(crashes.programs)),
        ("forced_starts", number(crashes.forced)),
        ("cuts_in_recovery", number(crashes.nested)),
        ("write_hole_after", tally.hole.map_or_else(|| "null".into(), number)),
        ("seeds", number(tally.seeds)),
        ("requests", number(tally.requests)),
        ("member_ios", number(tally.ios)),
        ("power_cuts", number(tally.cuts)),
        ("hits", object(&hits)),
        ("complete", (done.parts.0 == done.parts.1).to_string()),
        ("seconds", format!("{:.3}", done.seconds)),
        ("threads", done.threads.to_string()),
        ("hash", quoted(&format!("{:016x}", tally.hash))),
        ("broken", list(broken)),
    ];
    let lines: Vec<String> =
        members.iter().map(|(name, value)| format!(" {}: {value}", quoted(name))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ \n\t"), "\"a \\\"b\\\" \\\\ \\n\\u0009\"");
        assert_eq!(object(&[("a", "1".into()), ("b", "[]".into())]), "{\"a\": 1, \"b\": []}");
    }
}
