//! `[[drives]]`: groups of equal drives.

use raidlab_core::layout::MOST_MEMBERS;
use raidlab_core::suggest::did_you_mean;
use raidlab_models::{Scheduler, check_drive, is_drive_file};

use super::errors::Errors;
use super::table::{StudyTable, Table, check_unique, read_all};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::{DriveSource, Drives};

const KEYS: [&str; 6] = ["name", "model", "path", "file", "count", "scheduler"];

/// The keys of which a group has exactly one.
const SOURCES: [&str; 3] = ["model", "path", "file"];

/// The files of members are multiples of this, so that direct I/O works wherever they lie.
const FILE_UNIT: u64 = 4096;

pub(super) fn read(tables: &[Table<'_>], errors: &mut Errors) -> Vec<Drives> {
    let mut groups: Vec<Drives> = Vec::new();
    for table in tables {
        let group = errors.keep_of_table(table.check_keys(&KEYS), read_all(table, read_one));
        let Some(group) = group else { continue };
        let earlier = groups.iter().map(|group| group.name.as_str());
        errors.keep(check_unique(table, &group.name, earlier));
        groups.push(group);
    }
    groups
}

fn read_one(table: &Table<'_>) -> Result<Drives, StudyError> {
    let name = table.required_text("name", "name = \"nas\"")?.to_string();
    let count = table.integer("count", 1..=u64::from(MOST_MEMBERS))?.unwrap_or(1) as u16;
    let source = source(table)?;
    let scheduler = scheduler(table, &source)?;
    Ok(Drives { name, source, count, scheduler })
}

fn scheduler(table: &Table<'_>, source: &DriveSource) -> Result<Option<Scheduler>, StudyError> {
    let Some(name) = table.text("scheduler")? else { return Ok(None) };
    if !matches!(source, DriveSource::Model(_)) {
        let reason = "only modelled drives have a request queue here; real ones have the kernel's";
        return Err(table.error(Kind::WrongValue, "scheduler", reason));
    }
    let scheduler = name.parse().map_err(|reason: String| {
        let hint = did_you_mean(name, &Scheduler::ALL.map(Scheduler::name));
        table.error(Kind::UnknownName, "scheduler", format!("{reason}{hint}"))
    })?;
    Ok(Some(scheduler))
}

fn source(table: &Table<'_>) -> Result<DriveSource, StudyError> {
    const EXAMPLE: &str = "model = \"nas-8tb-7200\"; or file = \"64MiB\" for files of that size";
    let given: Vec<&str> = SOURCES.into_iter().filter(|key| table.has(key)).collect();
    if let [first, second, ..] = given[..] {
        let reason = format!("stands beside `{first}`; a group has one of {}", SOURCES.join(", "));
        return Err(table.error(Kind::WrongValue, second, reason));
    }
    if table.has("path") {
        let reason = "block devices are not supported by this version; use `model` or `file`";
        return Err(table.error(Kind::NotSupported, "path", reason));
    }
    if let Some(size) = table.size("file")? {
        if !size.0.is_multiple_of(FILE_UNIT) {
            let reason = format!("{size} is not a multiple of 4KiB");
            return Err(table.error(Kind::WrongValue, "file", reason));
        }
        return Ok(DriveSource::File(size));
    }
    let model = table.required_text("model", EXAMPLE)?;
    if is_drive_file(model) {
        return Ok(DriveSource::Model(model.to_string()));
    }
    // Looked up by name now, so that a slip is told with all others.
    check_drive(model).map_err(|error| {
        table.error(Kind::UnknownName, "model", error.to_string()).with_source(error)
    })?;
    Ok(DriveSource::Model(model.to_string()))
}
