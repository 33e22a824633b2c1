//! What raidlab writes and reads again: results documents, files of runs.

use std::path::Path;

use raidlab_report::{Csv, Exporter, Html, Markdown, Terminal};
use raidlab_results::{Diff, Results};
use raidlab_store::Stored;

use crate::text::text;

/// A results document: what is read is written and read again to the same, can be compared with itself, and every
/// report of it is made or says why not.
pub fn results(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(documents) = Results::all_from_json(text) else { return };
    for one in &documents {
        let written = one.to_json().expect("JSON has only finite numbers");
        assert_eq!(Results::from_json(&written).as_ref().ok(), Some(one));
    }
    let diff = Diff::of(("one", &documents), ("other", &documents), None);
    assert_eq!(diff.counts.regressed, 0);
    let _ = raidlab_report::diff_json(&diff);
    let exporters: [&dyn Exporter; 4] = [&Terminal::default(), &Html, &Csv, &Markdown];
    for exporter in exporters {
        let _ = exporter.export_all(&documents);
    }
}

/// The file of a run: what is read is there whole, begins again from its record, and cut at its last line it is what
/// was complete then.
pub fn store(data: &[u8]) {
    let path = Path::new("run.jsonl");
    let Ok(stored) = Stored::parse(path, data) else { return };
    assert_eq!(stored.complete_bytes + stored.torn_bytes, data.len() as u64);
    assert!(stored.runs.iter().all(|run| run.cell < stored.record.cells.len()));
    let rounds = stored.complete_rounds();
    assert!(u64::from(rounds) * stored.record.cells.len() as u64 <= stored.runs.len() as u64);
    assert_eq!(stored.record.differences(&stored.record), [""; 0]);
    let _ = (stored.results(), stored.last_writer(), stored.is_done());
    let complete = &data[..stored.complete_bytes as usize];
    let again = Stored::parse(path, complete).expect("the torn line was left out before too");
    assert_eq!((again.torn_bytes, again.runs.len()), (0, stored.runs.len()));
    let line = serde_json::json!({ "run": &stored.record }).to_string() + "\n";
    let alone = Stored::parse(path, line.as_bytes()).expect("what was read is written");
    assert_eq!(alone.record, stored.record);
}
