//! What keeps a run from going on: in what it differs from when it began.

use raidlab_results::Clock;
use serde_json::{Value, json};

use crate::line::{Conditions, RunRecord, Source};

/// The most differences of one kind that are told.
const MOST: usize = 8;

/// What is different, `what: was .., is ..` each; empty when nothing is.
pub fn differences(what: &str, was: &Value, is: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(what, was, is, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("{what}: {more} more differences"));
    }
    found
}

fn walk(what: &str, was: &Value, is: &Value, found: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys = was.keys().chain(is.keys().filter(|key| !was.contains_key(*key)));
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                walk(&format!("{what}.{key}"), &of(was), &of(is), found);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (index, (was, is)) in was.iter().zip(is).enumerate() {
                walk(&format!("{what}[{index}]"), was, is, found);
            }
        }
        _ if was != is => found.push(format!("{what}: was {}, is {}", shown(was), shown(is))),
        _ => {}
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not known".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as JSON. What these crates write always is.
fn value(of: &impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

impl Conditions {
    /// In what the conditions `now` differ from these, for a run by `clock`.
    ///
    /// Virtual time does not depend on the processor or on memory, so these may change; that it does not depend on
    /// the kernel either is a promise of the program's, which the rule does not rest on.
    pub fn differences(&self, now: &Self, clock: Clock) -> Vec<String> {
        let both =
            |what: &str, was: &dyn Fn(&Self) -> Value| differences(what, &was(self), &was(now));
        let mut found = both("raidlab", &|one| value(&one.raidlab));
        found.extend(both("commit", &|one| value(&one.commit)));
        found.extend(both("binary", &|one| value(&one.binary)));
        found.extend(both("kernel", &|one| value(&one.machine.kernel)));
        if clock == Clock::Real {
            found.extend(both("cpu", &|one| value(&one.machine.cpu)));
            found.extend(both("cores", &|one| value(&one.machine.cores)));
        }
        found.extend(self.study_file.difference(&now.study_file));
        found.extend(both("drive files", &|one| {
            value(&one.drive_files.iter().map(|file| &file.path).collect::<Vec<_>>())
        }));
        let files = self.drive_files.iter().zip(&now.drive_files);
        found.extend(files.filter_map(|(was, is)| was.difference(is)));
        found.extend(both("directory", &|one| value(&one.place)));
        found.extend(both("drives", &|one| value(&one.drives)));
        // Not the kernel of the machine: one for each name, also where only one of both runs has guests.
        let guest = |one: &Self| one.guest.as_ref().map_or_else(|| json!({}), value);
        found.extend(both("guest", &guest));
        found
    }
}

impl Source {
    /// The first line in which the file differs now.
    fn difference(&self, now: &Self) -> Option<String> {
        if self.text == now.text {
            return None;
        }
        let (mut was, mut is) = (self.text.lines(), now.text.lines());
        for number in 1.. {
            let (was, is) = (was.next(), is.next());
            if was.is_none() && is.is_none() {
                break;
            }
            if was != is {
                let line =
                    |line: Option<&str>| line.map_or("nothing".into(), |line| format!("`{line}`"));
                let (was, is) = (line(was), line(is));
                return Some(format!("{}:{number}: was {was}, is {is}", self.path));
            }
        }
        Some(format!("{}: line endings were changed", self.path))
    }
}

impl RunRecord {
    /// In what the run, begun `now`, would differ from this one.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = self.conditions.differences(&now.conditions, self.clock);
        found.extend(differences("study", &self.study, &now.study));
        found.extend(differences("cells", &value(&self.cells), &value(&now.cells)));
        let capacities = |one: &Self| value(&one.setting.capacities);
        found.extend(differences("capacities", &capacities(self), &capacities(now)));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_went_is_a_difference() {
        let plain = json!({ "chunk": 64, "drives": [{ "model": "a" }] });
        let more = json!({ "chunk": 64, "drives": [{ "model": "a", "size": "1TB" }], "seed": 2 });
        let found = |was: &Value, is: &Value| differences("study", was, is);
        assert!(found(&plain, &plain).is_empty() && found(&more, &more).is_empty());
        let came =
            ["study.drives[0].size: was not known, is 1TB", "study.seed: was not known, is 2"];
        assert_eq!(found(&plain, &more), came);
        let went =
            ["study.drives[0].size: was 1TB, is not known", "study.seed: was 2, is not known"];
        assert_eq!(found(&more, &plain), went);
        let longer = json!({ "chunk": 64, "drives": [{ "model": "a" }, { "model": "a" }] });
        assert_eq!(found(&plain, &longer).len(), 1);
        let many: Value = (0..20).map(|key| (key.to_string(), Value::from(key))).collect();
        let told = found(&json!({}), &many);
        assert_eq!((told.len(), &*told[MOST]), (MOST + 1, "study: 12 more differences"));
    }
}
