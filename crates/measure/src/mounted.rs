//! Workloads on a filesystem that is made on an array for them, and taken down again.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use raidlab_core::{MemberTotals, Sectors};
use raidlab_engine::{Engine, EngineError};
use raidlab_targets::{
    DirectoryOptions, DirectoryTarget, Filesystem, MountOptions, MountedArray, RunStep,
};
use raidlab_workload::{Plan, RunRecord};

/// What became of a run on a filesystem on an engine's array.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What was measured.
    pub record: RunRecord,
    /// Sectors in which copies or parity differ afterwards; `None` for a level without redundancy, and
    /// where a member is missing.
    pub differing: Option<Sectors>,
}

/// Told while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification<'a> {
    /// This is being done from now on.
    Step(&'static str),
    /// This, left behind by a killed run, was removed.
    Removed(&'a Path),
}

/// Who is told.
pub type Tell<'a> = &'a dyn Fn(Notification<'_>);

fn name(step: RunStep) -> &'static str {
    match step {
        RunStep::Prepare => "making files",
        RunStep::Warm => "emptying memory",
        RunStep::Run => "running",
        RunStep::Verify => "comparing what was written",
    }
}

/// Runs a plan in a directory; `members` counts what lies below it.
///
/// # Errors
/// As [`DirectoryTarget::run_telling`].
pub fn in_directory(
    directory: &Path,
    plan: Plan,
    cancel: &AtomicBool,
    members: &dyn Fn() -> Option<MemberTotals>,
    tell: Tell<'_>,
) -> Result<RunRecord, EngineError> {
    let mut target = DirectoryTarget::new(directory, DirectoryOptions::default())?;
    for path in &target.cleaned().removed {
        tell(Notification::Removed(path));
    }
    target.run_telling(plan, cancel, members, &|step| tell(Notification::Step(name(step))))
}

/// Makes a filesystem on the array of an engine, whose members hold zeroes, in a directory of its own in
/// `parent`, runs a plan on it, takes all down, has the filesystem checked and redundancy compared.
///
/// # Errors
/// Of the run, or of what comes before and after it.
pub fn on_array(
    engine: Engine,
    parent: &Path,
    filesystem: Filesystem,
    plan: Plan,
    cancel: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Outcome, EngineError> {
    tell(Notification::Step("making a filesystem"));
    let array = MountedArray::new(engine, parent, filesystem, MountOptions::default())?;
    let outcome = in_directory(&array.path(), plan, cancel, &|| Some(array.totals()), tell);
    tell(Notification::Step("checking the filesystem"));
    // The error of the run is the one to tell.
    let (record, mut engine) = match (outcome, array.finish()) {
        (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
        (Ok(record), Ok(engine)) => (record, engine),
    };
    let layout = engine.array().layout();
    let is_whole = (0..layout.drives())
        .all(|member| !engine.array().is_failed(raidlab_core::MemberIndex(member)));
    tell(Notification::Step("comparing copies and parity"));
    let differing =
        if layout.survives() > 0 && is_whole { Some(engine.scrub(cancel)?) } else { None };
    Ok(Outcome { record, differing })
}

/// What a run with differing copies or parity is told as.
pub fn differing(sectors: Sectors) -> String {
    format!("wrong bytes: copies or parity differ in {} sectors after the run", sectors.0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    use raidlab_core::{Layout, Level, MemberIndex, Time};
    use raidlab_engine::{EngineConfig, FileMember, FileOptions, Member};
    use raidlab_workload::{
        Content, FileDescriptor, FilePath as Name, Mark, Op, OpResult, OpenFlags, Planned, Process,
    };

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    /// Writes a file, and flips a byte of another one on the way.
    #[derive(Debug)]
    struct Writer {
        ops: Vec<Op>,
        /// A member, and where.
        flip: Option<(PathBuf, u64)>,
    }

    impl Process for Writer {
        fn next(&mut self, _now: Time, _last: OpResult) -> Op {
            if let Some((path, at)) = self.flip.take() {
                let file = std::fs::File::options().read(true).write(true).open(path);
                let file = file.expect("a member");
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).expect("there");
                file.write_all_at(&[!byte[0]], at).and_then(|()| file.sync_all()).expect("flipped");
            }
            self.ops.pop().unwrap_or(Op::Done)
        }
    }

    fn plan(flip: Option<(PathBuf, u64)>) -> Plan {
        let fd = FileDescriptor(0);
        let ops = vec![
            Op::Mark(Mark::End(0)),
            Op::Fsync { fd },
            Op::Write { fd, len: 1 << 20, content: Content::Seeded { seed: 1 }, times: 4 },
            Op::Mark(Mark::Begin(0)),
            Op::Open { fd, path: Name::target("file"), flags: OpenFlags::WRITE },
        ];
        let process = Box::new(Writer { ops, flip });
        let run = vec![Planned { copy: 0, process }];
        Plan { run, phases: vec!["run"], room: 4 << 20, ..Plan::default() }
    }

    const MEMBER: u64 = 32 << 20;

    /// Sectors that differ after a run on an array of two files, with a byte of the second flipped while
    /// the filesystem is mounted, and with the first member lost before.
    fn differing_of(level: Level, flip: Option<u64>, lost: bool) -> Option<Sectors> {
        let name =
            format!("raidlab-measure-scrub-{}-{level:?}-{flip:?}-{lost}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).expect("a directory");
        let paths = [0, 1].map(|n| directory.join(format!("disk{n}")));
        let members = paths.iter().map(|path| {
            std::fs::write(path, vec![0; MEMBER as usize]).expect("a file");
            let member = FileMember::open(path, FileOptions::default()).expect("a member");
            Member::File(Box::new(member))
        });
        let config = EngineConfig::new(Layout::new(level, 2));
        let mut engine = Engine::new(&config, members.collect()).expect("an engine");
        if lost {
            engine.fail(MemberIndex(0)).expect("it goes on");
        }
        let plan = plan(flip.map(|at| (paths[1].clone(), at)));
        let outcome = on_array(engine, &directory, Filesystem::Ext4, plan, &GO, &|_| {});
        let left = std::fs::read_dir(&directory).expect("there").count();
        std::fs::remove_dir_all(&directory).expect("ours");
        assert_eq!(left, 2, "the two files");
        let outcome = outcome.expect("a run");
        assert_eq!(outcome.record.totals().writes.bytes, 4 << 20);
        assert!(outcome.record.members.is_some_and(|done| done.bytes_written >= 4 << 20));
        outcome.differing
    }

    #[test]
    fn a_byte_flipped_under_a_mounted_filesystem_is_found() {
        if let Err(why) = MountedArray::check_host(Filesystem::Ext4) {
            let name = "a_byte_flipped_under_a_mounted_filesystem_is_found";
            let line = format!("skipped: {name}: {why}\n");
            std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
            return;
        }
        // In blocks that belong to no file: neither mkfs nor the run nor the checker sees them.
        let free = MEMBER - (64 << 10) + 77;
        let found = differing_of(Level::Raid1, Some(free), false).expect("copies are compared");
        assert!((1..=8).contains(&found.0), "{found:?}");
        assert!(differing(found).contains(&format!("differ in {} sectors", found.0)));
        assert_eq!(differing_of(Level::Raid1, None, false), Some(Sectors::ZERO));
        // Nothing can be compared.
        assert_eq!(differing_of(Level::Raid1, None, true), None);
        assert_eq!(differing_of(Level::Raid0, Some(free), false), None);
    }
}
