//! What people write: study files, drive files, job files of fio, names of layouts.

use raidlab_core::contract::IoOutcome;
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Layout, Sector, Sectors, Size, Time};
use raidlab_models::{Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use raidlab_workload::{Setting, fio};

/// Text, as files of text are read.
pub(crate) fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// A study file: what is read has cells, and its layouts are read again from the names they are printed by.
pub fn study(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let study = match raidlab_study::parse(text, "study.toml") {
        Ok(study) => study,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for one in &study.layouts {
        same_layout(&one.layout);
    }
    let cells = raidlab_study::cells(&study);
    assert_eq!(raidlab_store::cell_names(&study).len(), cells.len());
    assert!(raidlab_store::spelled_out(&study).is_object());
}

/// A layout is read again from what it is printed as.
fn same_layout(layout: &Layout) {
    let printed = layout.to_string();
    let again = printed.parse::<Layout>();
    assert_eq!(again.as_ref().ok(), Some(layout), "{printed}: {again:?}");
}

/// The name of a layout, a size and a read policy: what is read and printed is read again to the same.
pub fn layout(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(layout) = text.parse::<Layout>() {
        same_layout(&layout);
    }
    if let Ok(size) = text.parse::<Size>() {
        assert_eq!(size.to_string().parse(), Ok(size));
        assert_eq!(size.short().parse(), Ok(size));
    }
    if let Ok(policy) = text.parse::<ReadPolicy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
}

/// The most wake-ups that a drive needs for the commands of [`use_drive`].
const MOST_WAKES: u32 = 100_000;

/// A drive file: a drive that is read answers every command, and commands beyond it with an error.
pub fn drive(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(spec) = raidlab_models::parse(text, "drive.toml") else { return };
    assert!(spec.capacity > Sectors::ZERO);
    use_drive(&mut Drive::new(&spec.kind, 1), spec.capacity);
}

/// Commands at both ends of a drive, and beyond.
pub(crate) fn use_drive(drive: &mut Drive, capacity: Sectors) {
    let last = capacity.0 - 1;
    let commands = [
        (DriveOp::Write, 0, 1, true),
        (DriveOp::Read, 0, 8, true),
        (DriveOp::Read, last, 1, true),
        (DriveOp::Write, last, 1, true),
        (DriveOp::Read, last, 2, false),
        (DriveOp::Flush, 0, 0, true),
    ];
    let (mut now, mut wake, mut wakes) = (Time::ZERO, None, 0);
    for (id, (op, at, len, is_good)) in (0..).zip(commands) {
        let io = DriveIo { id: DriveIoId(id), op, at: Sector(at), len, fua: false };
        drive.handle(now, DriveInput::Submit(io));
        let mut answered = None;
        while answered.is_none() {
            while let Some(output) = drive.poll() {
                match output {
                    DriveOutput::Complete { id: of, outcome } if of == io.id => {
                        assert_eq!(answered.replace(outcome), None, "{io:?} is answered twice");
                    }
                    DriveOutput::Complete { id, .. } => panic!("{id:?} is answered for {io:?}"),
                    DriveOutput::WakeAt(at) => wake = Some(at),
                }
            }
            if answered.is_none() {
                // One that was asked for during an earlier command may still be to come.
                let at = wake.take().unwrap_or_else(|| panic!("{io:?} is not answered"));
                assert!(at >= now && wakes < MOST_WAKES, "{io:?}: {wakes} wake-ups");
                (now, wakes) = (at, wakes + 1);
                drive.handle(now, DriveInput::Wake);
            }
        }
        assert_eq!(answered == Some(IoOutcome::Ok), is_good, "{io:?}: {answered:?}");
    }
}

/// Whether a job file may have many processes or files, which take long to plan, and are planned no otherwise.
fn has_many(text: &str) -> bool {
    let values = text.lines().filter_map(|line| line.split_once('='));
    let mut counts =
        values.filter(|(key, _)| ["numjobs", "nrfiles", "nr_files"].contains(&key.trim()));
    counts.any(|(_, value)| value.trim().len() > 1)
}

/// A job file of fio: what is read has jobs and no problems, and can be planned or says why not.
pub fn fio(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let variables = |name: &str| (name.len() < 8).then(|| name.to_lowercase());
    let problems = fio::problems(text, &variables);
    let file = match fio::parse(text, "job.fio", &variables) {
        Ok(file) => file,
        Err(error) => {
            assert!(!problems.is_empty() && !error.to_string().is_empty());
            return;
        }
    };
    assert!(problems.is_empty() && !file.jobs().is_empty());
    let workload = file.workload();
    assert!(!workload.description().is_empty() && !workload.metrics().is_empty());
    if has_many(text) {
        return;
    }
    for space in [None, Some(1 << 30)] {
        let setting = Setting { space, checked: false, ..Setting::new(1, 1) };
        if let Ok(plan) = workload.plan(&setting) {
            assert!(!plan.run.is_empty() && !plan.phases.is_empty());
        }
    }
    let _ = workload.requests(1, 1 << 20);
    if let Ok(smaller) = workload.resized(1 << 16) {
        let _ = smaller.plan(&Setting::new(1, 1));
    }
}
