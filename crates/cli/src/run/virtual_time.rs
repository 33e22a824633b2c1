//! Runs on modelled drives, in virtual time.

use std::ffi::OsStr;

use raidlab_kernel_study::{KernelLab, prepare};
use raidlab_models::DriveSpec;
use raidlab_predict::Modelled;
use raidlab_report::number;
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, NamedLayout, State, Study};
use raidlab_workload::{RunRecord, Setting, Workload, WorkloadSpec};

use super::Run;
use crate::compare::{effort, kernel};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::note;

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
    if !with_host
        && let Some(what) = warning(workload, &setting, world.array().capacity().bytes())
        && !options.quiet
    {
        note(&what);
    }
    let trace = kernel::trace(options.trace.as_deref())?;
    if trace.is_some() {
        world.start_trace();
    }
    let record = if with_host {
        modelled.record_on_host(&mut world, workload, setting)
    } else {
        modelled.record_on(&mut world, workload, setting)
    };
    let title = || format!("{} on {}", workload.kind(), options.target_name());
    let mut record = record.map_err(|what| Failure::input(format!("{}: {what}", title())))?;
    record.warnings.extend(modelled.cache_warnings(0, (State::Healthy, 0), &record));
    if let Some((trace, _)) = &trace {
        let kept = trace.add_kept(&title(), setting.seed, &mut world);
        kept.map_err(|error| Failure::failed(format!("--trace: {error}")))?;
    }
    kernel::finish(trace, options.trace.as_deref())?;
    Ok(record)
}

/// Runs a workload on a kernel in virtual time, on a filesystem or on the block device itself.
pub(super) fn run_on_kernel(
    options: &Run,
    spec: &WorkloadSpec,
    setting: Setting,
    (kernel, with_filesystem): (&OsStr, bool),
) -> Result<RunRecord, Failure> {
    let mut study = study(options)?;
    study.filesystem = with_filesystem.then(|| options.filesystem().name().to_owned());
    study.workloads = vec![spec.clone()];
    study.processes = vec![setting.copies];
    prepare(&mut study).map_err(kernel::failure)?;
    let trace = kernel::trace(options.trace.as_deref())?;
    let stop = interrupt::descriptor()?;
    let lab =
        KernelLab::new(&study, kernel::options(kernel)?, stop, trace.as_ref().map(|it| &it.0));
    let lab = lab.map_err(kernel::failure)?;
    let key = CellKey {
        layout: 0,
        workload: 0,
        processes: setting.copies,
        state: State::Healthy,
        again: false,
    };
    let record = lab.runner().record(&key, setting.seed).map_err(kernel::failure)?;
    drop(lab);
    kernel::finish(trace, options.trace.as_deref())?;
    Ok(record)
}

/// The longest request that is modelled as one, in bytes.
const LONGEST: u64 = 512 << 10;

/// What the user should know of a workload that is as large as the whole array, such as a fio job without size;
/// `None` where it is over soon, or ends by itself after a time.
fn warning(workload: &dyn Workload, setting: &Setting, capacity: u64) -> Option<String> {
    let setting = Setting { space: Some(capacity), ..*setting };
    // What cannot be planned is told when it is run.
    let plan = workload.plan(&setting).ok().filter(|plan| !plan.asks_time)?;
    let requests = plan.files.iter().map(|file| file.bytes.div_ceil(file.unit.max(1)));
    let all = requests.fold(0, u64::saturating_add);
    // Random places are few, as a rule, however much they are spread over.
    let requests = workload.requests(setting.copies, LONGEST).map_or(all, |known| known.min(all));
    let bytes = plan.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    effort::is_worth_a_word(requests).then(|| {
        format!(
            "note: {} goes over {} of the array, about {} to model at most; a size=, or with fio a \
             runtime=, makes it shorter",
            workload.default_name(),
            effort::plain(&number::bytes(bytes)),
            effort::time(requests, 1)
        )
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
    study.layouts = vec![NamedLayout::plain(options.layout())];
    study.drives.truncate(1);
    study.drives[0].source = raidlab_study::DriveSource::Model(options.drive().to_string());
    study.drives[0].count = options.layout().drives();
    Ok(study)
}
