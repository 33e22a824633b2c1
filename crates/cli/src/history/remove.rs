//! `raidlab rm`: recorded runs go when they are named or too old.

use std::io::{BufRead, IsTerminal};
use std::time::SystemTime;

use raidlab_store::{Entry, State, Store, date_of};

use crate::compare::resume::{failure, store};
use crate::failure::Failure;
use crate::history::args::Remove;
use crate::output::{note, print};

pub(crate) fn run(options: &Remove) -> Result<(), Failure> {
    let store = store(&options.store)?;
    let ids = if options.runs.is_empty() {
        old(&store.list().map_err(failure)?, options, SystemTime::now())
    } else {
        named(&store, &options.runs)?
    };
    if ids.is_empty() {
        return print("no run is to be removed\n");
    }
    confirm(&ids, options.yes)?;
    for id in &ids {
        store.remove(id).map_err(failure)?;
    }
    print(&format!("removed {}\n", counted(ids.len())))
}

fn counted(runs: usize) -> String {
    format!("{runs} {}", if runs == 1 { "run" } else { "runs" })
}

/// The runs that are named, each once.
fn named(store: &Store, names: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for name in names {
        let id = store.find(name).map_err(failure)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let list = store.list().map_err(failure)?;
    let is_running = |entry: &&Entry| {
        let head = entry.head.as_ref();
        ids.contains(&entry.id) && head.is_ok_and(|head| head.state == State::Running)
    };
    match list.iter().find(is_running) {
        None => Ok(ids),
        Some(entry) => {
            let id = &entry.id;
            Err(Failure::input(format!("run {id} is being written; nothing was removed")))
        }
    }
}

/// The runs that are old enough and not among the newest that are kept. What cannot be read, or is being written, is
/// not ours to judge.
fn old(entries: &[Entry], options: &Remove, now: SystemTime) -> Vec<String> {
    let first_kept = entries.len().saturating_sub(options.keep.unwrap_or_default());
    let candidates = entries[..first_kept].iter().filter(|entry| {
        let is_old = options.older_than.is_none_or(|age| {
            let began = date_of(&entry.id);
            began.and_then(|began| now.duration_since(began).ok()).is_some_and(|old| old > age.0)
        });
        is_old && entry.head.as_ref().is_ok_and(|head| head.state != State::Running)
    });
    candidates.map(|entry| entry.id.clone()).collect()
}

fn confirm(ids: &[String], yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let refused = |what: &str| Failure::Refused(format!("nothing was removed: {what}"));
    if !std::io::stdin().is_terminal() {
        return Err(refused("give --yes, or run it on a terminal"));
    }
    ids.iter().for_each(|id| note(&format!("  {id}")));
    note(&format!("Remove {}? Type yes:", counted(ids.len())));
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| refused(&format!("no answer: {error}")))?;
    if line.trim() == "yes" { Ok(()) } else { Err(refused("the answer was not yes")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::StoreDirectory;
    use raidlab_results::Clock;
    use raidlab_store::{Age, Head, StoreErrorKind};
    use std::time::Duration;

    fn entry(id: &str, state: State) -> Entry {
        let (date, title, on) = (String::new(), String::new(), String::new());
        let head =
            Head { date, title, clock: Clock::Virtual, on, rounds: 0, most_rounds: 0, state };
        Entry { id: id.into(), head: Ok(head) }
    }

    #[test]
    fn what_is_old_goes_unless_it_is_kept_written_or_unreadable() {
        let mut entries = vec![
            entry("20260101-000000-aaaa", State::Done),
            entry("20260102-000000-aaaa", State::Killed),
            entry("20260103-000000-aaaa", State::Running),
            entry("20260104-000000-aaaa", State::Done),
            entry("20260105-000000-aaaa", State::Done),
        ];
        let unreadable = Store::new("/nowhere").read("20260100-000000-aaaa");
        let head = Err(unreadable.expect_err("not there"));
        assert!(matches!(&head, Err(error) if error.kind == StoreErrorKind::Io));
        entries.insert(0, Entry { id: "20260101-000000-a".into(), head });
        let day = |days: u64| Duration::from_secs(86_400 * days);
        let now = date_of("20260105-000000-aaaa").expect("a date") + day(1);
        let ids = |older_than: Option<u64>, keep: Option<usize>| {
            let options = Remove {
                runs: Vec::new(),
                store: StoreDirectory { store: None },
                older_than: older_than.map(|days| Age(day(days))),
                keep,
                yes: false,
            };
            let days: Vec<String> = old(&entries, &options, now);
            days.iter().map(|id| id[7..8].to_string()).collect::<Vec<_>>().concat()
        };
        assert_eq!(ids(None, Some(0)), "1245");
        assert_eq!(ids(None, Some(1)), "124");
        assert_eq!(ids(None, Some(4)), "1");
        assert_eq!(ids(None, Some(99)), "");
        assert_eq!(ids(Some(2), None), "12");
        assert_eq!(ids(Some(1), None), "124");
        assert_eq!(ids(Some(1), Some(3)), "12");
        assert_eq!(ids(Some(99), None), "");
    }
}
