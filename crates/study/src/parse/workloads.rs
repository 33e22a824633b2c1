//! `[[workloads]]`: what the layouts are compared by.

use raidlab_core::suggest::did_you_mean;
use raidlab_workload::{KINDS, Recipe, WorkloadError, WorkloadErrorKind, WorkloadSpec};

use super::errors::Errors;
use super::table::{StudyTable, Table, check_unique, read_all};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::NamedLayout;

/// Keys that are not parameters of the workload.
const OURS: [&str; 8] =
    ["kind", "name", "show", "show_as", "settings", "only_layouts", "only_processes", "read_ahead"];
/// Parameters that are sizes wherever they occur, so that a number without a unit is told so.
const SIZES: [&str; 2] = ["size", "block"];

pub(super) fn read(
    tables: &[Table<'_>],
    layouts: &[NamedLayout],
    errors: &mut Errors,
) -> Vec<WorkloadSpec> {
    let mut workloads: Vec<WorkloadSpec> = Vec::new();
    for table in tables {
        let Some(workload) = errors.keep(read_all(table, |table| read_one(table, layouts))) else {
            continue;
        };
        // Those of one name are told apart by their settings.
        let same = |other: &&WorkloadSpec| other.settings == workload.settings;
        let earlier = workloads.iter().filter(same).map(|workload| workload.name.as_str());
        errors.keep(check_unique(table, &workload.name, earlier));
        workloads.push(workload);
    }
    workloads
}

fn read_one(table: &Table<'_>, layouts: &[NamedLayout]) -> Result<WorkloadSpec, StudyError> {
    let kind = table.required_text("kind", "kind = \"dd-write\"")?;
    for key in SIZES {
        table.size(key)?;
    }
    let pairs = table.parameters(&OURS)?;
    let spec = WorkloadSpec::from_recipe(Recipe::of_kind(kind, pairs));
    let mut spec = spec.map_err(|error| wrong(table, kind, error))?;
    if let Some(name) = table.optional_name("name")? {
        spec.name = name.to_string();
    }
    spec.shown = shown(table, &spec)?;
    if let Some(settings) = table.table("settings", "settings = { block = \"4KiB\" }")? {
        spec.settings = settings.parameters(&[])?.into_iter().collect();
    }
    spec.only_layouts = only_layouts(table, layouts)?;
    spec.only_processes = super::processes_in(table, "only_processes")?.unwrap_or_default();
    spec.read_ahead = table.size("read_ahead")?.map(|size| size.0);
    Ok(spec)
}

/// `only_layouts = ["single"]`: on which layouts it runs; on all where nothing is said.
fn only_layouts(table: &Table<'_>, layouts: &[NamedLayout]) -> Result<Vec<String>, StudyError> {
    const KEY: &str = "only_layouts";
    let Some(named) = table.texts(KEY, "only_layouts = [\"single\"]")? else {
        return Ok(Vec::new());
    };
    let known: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    super::layouts_named(table, KEY, &named, &known)
}

/// `show = "seq_write_mib_per_s"`, and `show_as = "mib_per_s"` for another name; or a list of several.
fn shown(table: &Table<'_>, spec: &WorkloadSpec) -> Result<Vec<(String, String)>, StudyError> {
    let name = table.optional_name("show_as")?;
    let metrics = spec.workload.metrics();
    let known: Vec<&str> = metrics.iter().map(|metric| metric.name).collect();
    let check = |metric: &str| {
        if known.contains(&metric) {
            return Ok(());
        }
        let hint = did_you_mean(metric, &known);
        let known = known.join(", ");
        let reason = format!("`{metric}` is no figure of this{hint}; it has: {known}");
        Err(table.error(Kind::UnknownName, "show", reason))
    };
    if table.is_list("show") {
        let example = "show = [\"rewrite_kps\", \"seeks_per_s\"]";
        let listed = table.texts("show", example)?.unwrap_or_default();
        if name.is_some() {
            let reason = "names one figure, and `show` lists several; leave it out";
            return Err(table.error(Kind::WrongValue, "show_as", reason));
        }
        let same = |(metric, _): (&str, u32)| {
            check(metric).map(|()| (metric.to_string(), metric.to_string()))
        };
        return listed.into_iter().map(same).collect();
    }
    let Some(metric) = table.text("show")? else {
        return match name {
            None => Ok(Vec::new()),
            Some(_) => Err(table.missing("show", "show = \"mib_per_s\"")),
        };
    };
    check(metric)?;
    Ok(vec![(metric.to_string(), name.unwrap_or(metric).to_string())])
}

/// What a workload says is wrong with it, at its place in the file.
fn wrong(table: &Table<'_>, name: &str, error: WorkloadError) -> StudyError {
    if error.kind == WorkloadErrorKind::Size && !table.has("size") {
        return table.missing("size", "size = \"4GiB\"");
    }
    let (kind, hint) = match error.kind {
        WorkloadErrorKind::UnknownKind => {
            let known: Vec<&str> = KINDS.iter().map(|entry| entry.name).collect();
            (Kind::UnknownName, did_you_mean(name, &known))
        }
        WorkloadErrorKind::UnknownParameter => {
            let known: Vec<&str> = error.known.iter().map(String::as_str).collect();
            (Kind::UnknownKey, did_you_mean(&error.key, &known))
        }
        WorkloadErrorKind::Span => (Kind::WrongUnit, String::new()),
        _ => (Kind::WrongValue, String::new()),
    };
    let reason = format!("{}{hint}", error.reason);
    let key = error.key.clone();
    table.error(kind, &key, reason).with_source(error)
}
