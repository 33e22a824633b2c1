//! What a run is repeated by: parameters, drive, filesystem, host.

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::SECTOR_BYTES;
use raidlab_measure::facts;
use serde_json::{Value, json};

use super::target::Target;
use super::{Run, virtual_time};
use crate::failure::Failure;

/// What was run on, and by what.
pub(super) struct Setup {
    /// The parameters that were given, by their names.
    pub(super) parameters: BTreeMap<String, String>,
    /// The text of a fio job file; null without one.
    pub(super) job_file: Value,
    /// The modelled drive; null on other targets.
    pub(super) drive: Value,
    /// Of an array with one; null on other targets.
    pub(super) filesystem: Value,
    /// The machine; empty in virtual time.
    pub(super) host: BTreeMap<String, String>,
}

impl Setup {
    pub(super) fn of(options: &Run, target: &Target) -> Result<Self, Failure> {
        let uses = target.uses();
        let parameters = options.parameters.iter().map(|text| {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            (key.to_string(), value.to_string())
        });
        let job = options.workload.as_deref().filter(|name| name.ends_with(".fio"));
        let job_file = match job {
            None => Value::Null,
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| Failure::input(format!("{path}: {error}")))?
                .into(),
        };
        Ok(Self {
            parameters: parameters.collect(),
            job_file,
            drive: if uses.drive { drive(options)? } else { Value::Null },
            filesystem: match uses.filesystem {
                true => options.filesystem().name().into(),
                false => Value::Null,
            },
            host: host(target),
        })
    }
}

/// The drive with every figure, its source and how sure it is.
fn drive(options: &Run) -> Result<Value, Failure> {
    let drive = virtual_time::drive(options)?;
    let figures = drive.figures.iter().map(|figure| {
        json!({
            "key": figure.key,
            "value": figure.value,
            "status": figure.status.name(),
            "source": figure.source,
        })
    });
    Ok(json!({
        "name": drive.name,
        "title": drive.title,
        "capacity": drive.capacity.0 * SECTOR_BYTES,
        "count": options.layout().drives(),
        "figures": figures.collect::<Vec<Value>>(),
    }))
}

fn host(target: &Target) -> BTreeMap<String, String> {
    match target {
        Target::Null | Target::Modelled | Target::ModelledRaw | Target::KernelLab(..) => {
            BTreeMap::new()
        }
        Target::RawMemory => facts::host(None),
        Target::RawFiles(path)
        | Target::Directory(path)
        | Target::Mounted(path)
        | Target::KernelMd(path) => facts::host(Some(Path::new(path))),
    }
}
