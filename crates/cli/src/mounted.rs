//! Workloads on a filesystem that is made on an array for them, and taken down again.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use raidlab_core::Sectors;
use raidlab_engine::{
    DirectoryOptions, DirectoryTarget, Engine, EngineError, Filesystem, MountOptions, MountedArray,
    Step,
};
use raidlab_workload::{MemberTotals, Plan, RunRecord};

/// What became of a run on a filesystem on an engine's array.
pub(crate) struct Outcome {
    /// What was measured.
    pub(crate) record: RunRecord,
    /// Sectors in which copies or parity differ afterwards; `None` for a level without redundancy, and
    /// where a member is missing.
    pub(crate) differing: Option<Sectors>,
}

/// What is being done, told as it begins.
pub(crate) type Tell<'a> = &'a dyn Fn(&'static str);

fn name(step: Step) -> &'static str {
    match step {
        Step::Prepare => "making files",
        Step::Warm => "emptying memory",
        Step::Run => "running",
        Step::Verify => "comparing what was written",
    }
}

/// Runs a plan in a directory; `members` counts what lies below it.
pub(crate) fn in_directory(
    directory: &Path,
    plan: Plan,
    cancel: &AtomicBool,
    members: &dyn Fn() -> Option<MemberTotals>,
    tell: Tell<'_>,
) -> Result<RunRecord, EngineError> {
    let mut target = DirectoryTarget::new(directory, DirectoryOptions::default())?;
    for path in &target.cleaned().removed {
        let what = format!("removed what a killed run left behind: {}", path.display());
        crate::output::note(&what);
    }
    target.run_telling(plan, cancel, members, &|step| tell(name(step)))
}

/// Makes a filesystem on the array of an engine, whose members hold zeroes, in a directory of its own in
/// `parent`, runs a plan on it, takes all down, has the filesystem checked and redundancy compared.
pub(crate) fn on_array(
    engine: Engine,
    parent: &Path,
    filesystem: Filesystem,
    plan: Plan,
    cancel: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Outcome, EngineError> {
    tell("making a filesystem");
    let array = MountedArray::new(engine, parent, filesystem, MountOptions::default())?;
    let outcome = in_directory(&array.path(), plan, cancel, &|| Some(array.totals()), tell);
    tell("checking the filesystem");
    // The error of the run is the one to tell.
    let (record, mut engine) = match (outcome, array.finish()) {
        (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
        (Ok(record), Ok(engine)) => (record, engine),
    };
    let layout = engine.array().layout();
    let is_whole = (0..layout.members)
        .all(|member| !engine.array().is_failed(raidlab_core::MemberIndex(member)));
    tell("comparing copies and parity");
    let differing =
        if layout.survives() > 0 && is_whole { Some(engine.scrub(cancel)?) } else { None };
    Ok(Outcome { record, differing })
}

/// What a run with differing copies or parity is told as.
pub(crate) fn differing(sectors: Sectors) -> String {
    format!("wrong bytes: copies or parity differ in {} sectors after the run", sectors.0)
}
