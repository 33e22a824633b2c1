//! `raidlab merge`: the rows of a sweep, joined and checked.

use std::io::Write;
use std::path::Path;

use raidlab_store::shards::{Merge, ranges};
use raidlab_sweep::{ParquetColumns, ParquetFile, Report, SweepError, csv};
use serde_json::json;

use super::args::MergeOptions;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output::{self, STDOUT, WholeFile, note, print};

/// So many numbers of missing parts are worth telling.
const MOST_TOLD: usize = 200;

pub(crate) fn run(options: &MergeOptions) -> Result<(), Failure> {
    let paths = [
        ("--rows", options.rows.as_deref()),
        ("--csv", options.csv.as_deref()),
        ("--parquet", options.parquet.as_deref()),
    ];
    output::check(&paths, &[])?;
    let merge = Merge::of(&options.directories)?;
    let missing = merge.missing();
    let head = merge.head();
    if !missing.is_empty() {
        let told = format!(
            "{} of {} shards are missing: {}",
            missing.len(),
            head.shards,
            shortened(&ranges(&missing))
        );
        if !options.partial && !options.json {
            return Err(Failure::failed(format!(
                "{told}\nrun them by `raidlab sweep FILE --shard {}/{} --out DIR`, or join what is there by \
                 --partial",
                missing[0], head.shards
            )));
        }
        note(&format!("warning: {told}"));
    }
    let open =
        |path: &Option<std::path::PathBuf>| path.as_deref().map(WholeFile::create).transpose();
    let (mut rows, mut table) = (open(&options.rows)?, open(&options.csv)?);
    if let Some(path) = &options.parquet {
        parquet(path, &merge)?;
    }
    let mut report = Report::default();
    let mut csv_line = table.as_mut().map(|file| csv(file.writer()));
    merge
        .rows(|line| -> Result<(), SweepError> {
            report.add(line)?;
            if let Some(rows) = &mut rows {
                let written = rows.writer().write_all(line);
                written.map_err(|error| {
                    SweepError::Other(format!("cannot write the rows: {error}"))
                })?;
            }
            csv_line.as_mut().map_or(Ok(()), |csv| csv(line))
        })
        .map_err(Failure::failed)?;
    drop(csv_line);
    for file in [rows, table].into_iter().flatten() {
        file.finish()?;
    }
    if options.json {
        return print(&pretty(&json!({
            "schema_version": 1, "title": head.title, "raidlab": head.raidlab, "commit": head.commit, "id": head.id,
            "points": head.items, "shards": head.shards, "missing": missing, "rows": report.rows(),
            "errors": report.errors(),
        })));
    }
    let prints = paths.iter().any(|(_, path)| *path == Some(Path::new(STDOUT)));
    if prints { Ok(()) } else { print(&report.text(&head.title)) }
}

/// Writes all rows as Parquet; what kinds of values columns have is looked for first.
fn parquet(path: &Path, merge: &Merge) -> Result<(), Failure> {
    let mut columns = ParquetColumns::new().map_err(Failure::failed)?;
    merge.rows(|line| columns.look(line)).map_err(Failure::failed)?;
    let mut to = WholeFile::create(path)?;
    let mut file = ParquetFile::new(to.writer(), &columns).map_err(Failure::failed)?;
    merge.rows(|line| file.add(line)).map_err(Failure::failed)?;
    file.finish().map_err(Failure::failed)?;
    to.finish()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_TOLD) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} ..", &text[..end]),
    }
}
