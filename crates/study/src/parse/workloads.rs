//! `[[workloads]]`: what the layouts are compared by.

use raidlab_workload::{Kind as What, Span, WorkloadError, WorkloadSpec};

use super::table::{Table, check_unique};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::suggest::did_you_mean;

const KEYS: [&str; 5] = ["kind", "name", "block", "size", "span"];

pub(super) fn read(tables: &[Table<'_>]) -> Result<Vec<WorkloadSpec>, StudyError> {
    let mut workloads: Vec<WorkloadSpec> = Vec::new();
    for table in tables {
        let workload = read_one(table)?;
        let earlier = workloads.iter().map(|workload| workload.name.as_str());
        check_unique(table, &workload.name, earlier)?;
        workloads.push(workload);
    }
    Ok(workloads)
}

fn read_one(table: &Table<'_>) -> Result<WorkloadSpec, StudyError> {
    table.check_keys(&KEYS)?;
    let name = table.required_text("kind", "kind = \"dd-write\"")?;
    let kind: What = name.parse().map_err(|error: WorkloadError| {
        let hint = did_you_mean(name, &What::ALL.map(What::name));
        let reason = format!("{}{hint}", error.reason);
        table.error(Kind::UnknownName, "kind", reason).with_source(error)
    })?;
    let size = table.size("size")?.ok_or_else(|| table.missing("size", "size = \"4GiB\""))?.0;
    let block = table.size("block")?.map_or(kind.default_block(), |block| block.0);
    let name = table.optional_name("name")?;
    let name = name.map_or_else(|| WorkloadSpec::default_name(kind, block), str::to_string);
    let workload = WorkloadSpec { name, kind, block, size, span: span(table)? };
    workload.check_parameters().map_err(|error| {
        table.error(Kind::WrongValue, &error.key, error.reason.clone()).with_source(error)
    })?;
    Ok(workload)
}

/// `span = "100%"` or `span = "64GiB"`; the whole array where nothing is said.
fn span(table: &Table<'_>) -> Result<Span, StudyError> {
    let Some(text) = table.text("span")? else { return Ok(Span::default()) };
    text.parse().map_err(|error: WorkloadError| {
        table.error(Kind::WrongUnit, "span", error.reason.clone()).with_source(error)
    })
}
