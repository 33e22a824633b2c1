//! Runs on modelled drives, in virtual time.

use raidlab_models::DriveSpec;
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::Study;
use raidlab_workload::{RunRecord, Setting, Workload};

use super::Run;
use crate::failure::Failure;

/// Runs a workload on a modelled array, with or without a host on top of it.
pub(super) fn run(
    options: &Run,
    workload: &dyn Workload,
    setting: Setting,
    with_host: bool,
) -> Result<RunRecord, Failure> {
    let study = study(options)?;
    let modelled = Modelled::new(&study, HostCosts::default()).map_err(|error| {
        Failure::input(format!("--drive {}: {}", options.drive(), error.reason))
    })?;
    let mut world = modelled.world(0, setting.seed).map_err(|error| {
        Failure::input(format!("--layout {}: {}", options.layout(), error.reason))
    })?;
    let record = if with_host {
        modelled.record_on_host(&mut world, workload, setting)
    } else {
        modelled.record_on(&mut world, workload, setting)
    };
    record.map_err(|what| {
        Failure::input(format!("{} on {}: {what}", workload.kind(), options.target))
    })
}

/// The drive that is modelled, checked.
pub(super) fn drive(options: &Run) -> Result<DriveSpec, Failure> {
    let study = study(options)?;
    let modelled = Modelled::unchecked(&study, HostCosts::default()).map_err(|error| {
        Failure::input(format!("--drive {}: {}", options.drive(), error.reason))
    })?;
    let drive = modelled.drives().first().cloned();
    drive.ok_or_else(|| Failure::failed("the study has no drive"))
}

/// A study with the one layout, to model.
fn study(options: &Run) -> Result<Study, Failure> {
    let text = raidlab_study::default_study();
    let mut study = raidlab_study::parse(text, "--layout").map_err(Failure::failed)?;
    study.workloads.clear();
    let mut layout = study.layouts.swap_remove(0);
    layout.name = options.layout().to_string();
    layout.layout = options.layout();
    study.layouts = vec![layout];
    study.drives.truncate(1);
    study.drives[0].source = raidlab_study::DriveSource::Model(options.drive().to_string());
    study.drives[0].count = options.layout().members;
    Ok(study)
}
