//! `[[given]]`: published figures that the cells of a replay stand beside.

use raidlab_core::layout::is_same_name;
use raidlab_core::suggest::did_you_mean;
use raidlab_workload::WorkloadSpec;

use super::table::{StudyTable, Table};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::{GivenCell, NamedLayout};

const KEYS: [&str; 7] = ["layout", "workload", "processes", "metric", "value", "calibrated", "fit"];

pub(super) fn read(
    tables: &[Table<'_>],
    layouts: &[NamedLayout],
    workloads: &[WorkloadSpec],
) -> Result<Vec<GivenCell>, StudyError> {
    tables.iter().map(|table| read_one(table, layouts, workloads)).collect()
}

fn read_one(
    table: &Table<'_>,
    layouts: &[NamedLayout],
    workloads: &[WorkloadSpec],
) -> Result<GivenCell, StudyError> {
    table.check_keys(&KEYS)?;
    let named = |key: &str, known: Vec<&str>| -> Result<String, StudyError> {
        let name = table.required_text(key, "the name of one of this study")?;
        if let Some(found) = known.iter().find(|one| is_same_name(one, name)) {
            return Ok((*found).to_string());
        }
        let (hint, known) = (did_you_mean(name, &known), known.join(", "));
        let reason = format!("`{name}` is not in this study{hint}; it has: {known}");
        Err(table.error(Kind::UnknownName, key, reason))
    };
    let layout = named("layout", layouts.iter().map(|one| one.name.as_str()).collect())?;
    let workload = named("workload", workloads.iter().map(|one| one.name.as_str()).collect())?;
    let metric = table.required_text("metric", "metric = \"seconds\"")?.to_string();
    let value = table.number("value")?.ok_or_else(|| table.missing("value", "value = 159"))?;
    let (fit, calibrated) = (table.flag("fit")?, table.flag("calibrated")?.unwrap_or(false));
    if fit == Some(false) && calibrated {
        let reason = "nothing is fitted to a cell with fit = false; remove one of the two";
        return Err(table.error(Kind::WrongValue, "calibrated", reason));
    }
    Ok(GivenCell {
        layout,
        workload,
        processes: table.integer("processes", 1..=4096)?.unwrap_or(1) as u32,
        metric,
        value,
        calibrated,
        fit: fit.unwrap_or(true),
    })
}
