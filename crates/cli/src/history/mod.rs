//! `raidlab history`, `show` and `rm`: runs that were recorded.

pub(crate) mod args;
pub(crate) mod remove;
pub(crate) mod show;

use raidlab_results::Clock;
use raidlab_store::{Entry, Head, State};
use serde_json::{Value, json};

use crate::compare::resume::{failure, store};
use crate::failure::Failure;
use crate::output;
use args::History;

/// The most letters of what a run is on.
const MOST_LETTERS: usize = 24;

/// Lists all runs, the oldest first.
pub(crate) fn list(options: &History) -> Result<(), Failure> {
    let store = store(&options.store)?;
    let entries = store.list().map_err(failure)?;
    if options.json {
        let runs: Vec<Value> = entries.iter().map(as_json).collect();
        let all = json!({ "schema_version": 1, "directory": store.directory(), "runs": runs });
        return output::print(&format!("{all:#}\n"));
    }
    if entries.is_empty() {
        let place = store.directory().display();
        return output::print(&format!("no runs in {place} yet\n"));
    }
    output::print(&table(&entries))
}

fn table(entries: &[Entry]) -> String {
    let mut rows =
        vec![["run", "begun (UTC)", "clock", "on", "rounds", "state", "study"].map(str::to_string)];
    rows.extend(entries.iter().map(row));
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            // Numbers are compared by their ends.
            if column == 4 { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(entry: &Entry) -> [String; 7] {
    let id = entry.id.clone();
    match &entry.head {
        Err(error) => {
            let none = String::new;
            [id, none(), none(), none(), none(), "unreadable".into(), error.to_string()]
        }
        Ok(head) => {
            let Head { date, title, clock, on, rounds, most_rounds, state } = head;
            let date = date.get(..16).unwrap_or(date).replace('T', " ");
            let rounds = format!("{rounds}/{most_rounds}");
            let state = state.name().to_string();
            [id, date, clock_name(*clock).into(), shortened(on), rounds, state, title.clone()]
        }
    }
}

/// The end of a long path tells more than its beginning.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= MOST_LETTERS {
        return text.to_string();
    }
    let end: String = text.chars().skip(count + 2 - MOST_LETTERS).collect();
    format!("..{end}")
}

fn clock_name(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "virtual",
        Clock::Real => "real",
    }
}

fn as_json(entry: &Entry) -> Value {
    match &entry.head {
        Err(error) => json!({ "id": entry.id, "state": "unreadable", "why": error.to_string() }),
        Ok(head) => json!({
            "id": entry.id,
            "date": head.date,
            "study": head.title,
            "clock": clock_name(head.clock),
            "on": head.on,
            "rounds": head.rounds,
            "max_rounds": head.most_rounds,
            "state": head.state.name(),
            "why": match &head.state {
                State::Failed(why) => Some(why),
                _ => None,
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_lose_their_beginning() {
        assert_eq!(shortened("/mnt/scratch"), "/mnt/scratch");
        let long = "/dev/sdb,/dev/sdc,/dev/sdd,/dev/sde";
        assert_eq!(shortened(long), "../sdc,/dev/sdd,/dev/sde");
        assert!(shortened(long).len() <= MOST_LETTERS);
    }
}
