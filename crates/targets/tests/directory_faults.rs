//! The directory target when something goes wrong: it stops, says what, and leaves nothing behind.

use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::TestDirectory;
use crate::directory_support::*;
use crate::killed;
use raidlab_core::Nanos;
use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_targets::{DirectoryTarget, RunDirectory};
use raidlab_workload::{
    Content, Expected, FileDescriptor, FilePath, Io, Op, OpenFlags, Plan, Planned, SeededBytes,
    Zeroes,
};

const S: FileDescriptor = FileDescriptor(0);

fn write(len: u64, times: u64) -> Step {
    Op::Write { fd: S, len, content: Content::Zeroes, times }.into()
}

/// Processes that never end by themselves, each in another way.
fn endless(directory: &TestDirectory) -> Vec<Planned> {
    let null = FilePath::null();
    let open = || Step::from(Op::Open { fd: S, path: null.clone(), flags: OpenFlags::BOTH });
    let hour = Nanos::from_millis(3_600_000);
    let all: Vec<Vec<Step>> = vec![
        vec![open(), write(4096, u64::MAX)],
        vec![Op::Sleep(hour).into()],
        vec![Op::Compute(hour).into()],
        vec![Op::StdioBytes(u64::MAX).into()],
        vec![Op::Barrier(0).into()],
        vec![Op::Take { queue: 0 }.into()],
    ];
    all.into_iter().map(|steps| process(directory.path(), steps).0).collect()
}

fn with_endless(directory: &TestDirectory, steps: Vec<Step>) -> Plan {
    let mut processes = endless(directory);
    processes.push(process(directory.path(), steps).0);
    Plan { barriers: vec![100], queues: 1, ..plan(processes) }
}

fn refused(directory: &TestDirectory, plan: Plan) -> EngineError {
    let error = run(directory.path(), plan).expect_err("the run fails");
    assert_eq!(names(directory.path()), [""; 0], "all is removed after: {error}");
    error
}

#[test]
fn the_first_failure_stops_all_and_is_told() {
    let directory = TestDirectory::new();
    let steps = vec![open(0, "a", OpenFlags::WRITE), open(1, "b/c", OpenFlags::READ)];
    let error = refused(&directory, with_endless(&directory, steps));
    assert_eq!(error.kind(), EngineErrorKind::Io);
    let text = error.to_string();
    assert!(text.starts_with("cannot open a file (") && text.contains("files/b/c)"), "{text}");
    assert!(text.contains("No such file or directory"), "{text}");

    let steps = vec![open(0, "a", OpenFlags::WRITE), Op::Read { fd: S, len: 10, times: 1 }.into()];
    let error = refused(&directory, with_endless(&directory, steps));
    let text = error.to_string();
    assert!(text.starts_with("cannot read (") && text.contains("files/a)"), "{text}");
    assert!(text.contains("Bad file descriptor"), "{text}");

    let io = Io::Write { fd: S, at: 4096, len: 10, content: Content::Zeroes };
    let steps = vec![
        open(0, "a", OpenFlags { create: true, ..OpenFlags::READ }),
        Op::Start { tag: 4, io }.into(),
        Op::Finish.into(),
    ];
    let text = refused(&directory, with_endless(&directory, steps)).to_string();
    assert!(text.starts_with("cannot write (") && text.contains("files/a) at byte 4096"), "{text}");
}

#[test]
fn cancelling_stops_all_and_leaves_nothing() {
    let directory = TestDirectory::new();
    for in_prepare in [false, true] {
        let cancel = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&cancel);
        let steps = vec![
            open(0, "a", OpenFlags::WRITE),
            look(move |_| set.store(true, Ordering::Relaxed)),
            Op::Barrier(0).into(),
        ];
        let mut plan = with_endless(&directory, steps);
        if in_prepare {
            plan.prepare = plan.run.split_off(6);
        }
        let mut target = DirectoryTarget::new(directory.path(), quiet()).unwrap();
        let error = target.run(plan, &cancel).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Cancelled, "{error}");
        assert_eq!(names(directory.path()), [""; 0]);
    }
}

/// Work byte by byte hears of Ctrl-C in the middle; without, this test would not end.
#[test]
fn characters_under_way_are_cancelled() {
    let directory = TestDirectory::new();
    let (cancel, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (set, begins, has_begun) = (Arc::clone(&cancel), Arc::clone(&begun), begun);
    let works =
        vec![look(move |_| begins.store(true, Ordering::SeqCst)), Op::StdioBytes(u64::MAX).into()];
    let cancels = vec![
        look(move |_| {
            while !has_begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }),
        // Time for the other to get into it.
        Op::StdioBytes(1 << 20).into(),
        look(move |_| set.store(true, Ordering::Relaxed)),
    ];
    let processes = [works, cancels].map(|steps| process(directory.path(), steps).0);
    let mut target = DirectoryTarget::new(directory.path(), quiet()).unwrap();
    let error = target.run(plan(processes.into()), &cancel).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Cancelled, "{error}");
}

#[test]
fn what_is_under_way_lands_before_its_memory_goes() {
    for io_uring in [true, false] {
        let directory = TestDirectory::new();
        let io = |n: u64| Io::Write {
            fd: S,
            at: n << 16,
            len: 1 << 16,
            content: Content::Seeded { seed: n },
        };
        let mut steps = vec![open(0, "a", OpenFlags::WRITE)];
        steps.extend((0..64).map(|n| Step::from(Op::Start { tag: n as u32, io: io(n) })));
        steps.push(Op::Rmdir { path: FilePath::target("none") }.into());
        let options = raidlab_targets::DirectoryOptions { io_uring, ..quiet() };
        let plan = plan(vec![process(directory.path(), steps).0]);
        let error = run_with(directory.path(), plan, options).unwrap_err();
        assert!(error.to_string().starts_with("cannot remove a directory ("), "{error}");
        assert_eq!(names(directory.path()), [""; 0]);
    }
}

#[test]
fn waiting_for_each_other_for_ever_is_told() {
    let directory = TestDirectory::new();
    let one = process(directory.path(), vec![Op::Barrier(0).into()]).0;
    let other = process(directory.path(), vec![Op::Take { queue: 0 }.into()]).0;
    let third = process(directory.path(), vec![]).0;
    let plan = Plan { barriers: vec![2], queues: 1, ..plan(vec![one, other, third]) };
    let error = refused(&directory, plan);
    assert_eq!(error.kind(), EngineErrorKind::Internal);
    assert!(error.to_string().contains("all 2 processes"), "{error}");
}

#[test]
fn a_generator_that_panics_ends_the_run() {
    let directory = TestDirectory::new();
    let steps = vec![look(|_| std::panic::resume_unwind(Box::new("on purpose")))];
    let error = refused(&directory, with_endless(&directory, steps));
    assert_eq!(error.kind(), EngineErrorKind::Internal);
    assert!(error.to_string().contains("panicked"), "{error}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let directory = TestDirectory::new();
    let at = |text: &str| FilePath::target(text);
    let stamp = Content::Stamp { number: 0 };
    let cases: Vec<(Vec<Step>, &str)> = vec![
        (vec![close(3)], "fd 3: nothing is open"),
        (
            vec![open(0, "a", OpenFlags::WRITE), open(0, "b", OpenFlags::WRITE)],
            "open in it already",
        ),
        (vec![open(1024, "a", OpenFlags::WRITE)], "there are only 1024"),
        (vec![open(0, "../a", OpenFlags::WRITE)], "neither empty nor"),
        (vec![open(0, "/etc/hostname", OpenFlags::READ)], "neither empty nor"),
        (vec![open(0, "a\0b", OpenFlags::READ)], "zero byte"),
        (vec![Op::Unlink { path: FilePath::null() }.into()], "can only be opened"),
        (vec![Op::Stat { path: FilePath::source("x") }.into()], "no files from elsewhere"),
        (vec![Op::Unlink { path: at("d/../a") }.into()], "neither empty nor"),
        (vec![Op::Finish.into()], "has started nothing"),
        (vec![open(0, "a", OpenFlags::WRITE), write(1 << 40, 1)], "in one operation"),
        (
            vec![
                open(0, "a", OpenFlags::WRITE),
                Op::At(Io::Write { fd: S, at: 0, len: 1, content: stamp }).into(),
            ],
            "zeroes or of seeded bytes",
        ),
    ];
    for (steps, expected) in cases {
        let error = refused(&directory, plan(vec![process(directory.path(), steps).0]));
        assert_eq!(error.kind(), EngineErrorKind::InvalidRequest, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn verification_finds_what_is_wrong() {
    let directory = TestDirectory::new();
    let make = |flip: Option<u64>| {
        let content = Content::Seeded { seed: 4 };
        let mut steps = vec![
            open(0, "a", OpenFlags::WRITE),
            Op::Write { fd: S, len: 100_000, content, times: 30 }.into(),
            close(0),
        ];
        if let Some(at) = flip {
            steps.push(look(move |files| {
                let mut bytes = fs::read(files.join("a")).unwrap();
                bytes[at as usize] ^= 0x10;
                fs::write(files.join("a"), bytes).unwrap();
            }));
        }
        plan(vec![process(directory.path(), steps).0])
    };
    let seeded = |len| vec![expect("a", SeededBytes { seed: 4, len })];
    run(directory.path(), Plan { expected: seeded(3_000_000), ..make(None) }).unwrap();
    for at in [0, 1 << 20, 2_999_999] {
        let plan = Plan { expected: seeded(3_000_000), ..make(Some(at)) };
        let error = refused(&directory, plan);
        assert_eq!((error.kind(), error.offset()), (EngineErrorKind::Mismatch, Some(at)));
        assert!(error.path().unwrap().ends_with("files/a"), "{error}");
    }
    for len in [2_999_999, 3_000_001] {
        let error = refused(&directory, Plan { expected: seeded(len), ..make(None) });
        assert_eq!(error.kind(), EngineErrorKind::Mismatch);
        assert!(error.to_string().contains("the file has 3000000 bytes"), "{error}");
    }
    let zeroes: Vec<Expected> = vec![expect("a", Zeroes { len: 3_000_000 })];
    let error = refused(&directory, Plan { expected: zeroes, ..make(None) });
    assert_eq!((error.kind(), error.offset()), (EngineErrorKind::Mismatch, Some(0)));
    let missing = vec![expect("b", Zeroes { len: 0 })];
    let error = refused(&directory, Plan { expected: missing, ..make(None) });
    assert_eq!(error.kind(), EngineErrorKind::Io);
}

#[test]
fn directories_that_cannot_be_used_are_named() {
    let directory = TestDirectory::new();
    let absent = directory.path().join("absent");
    let error = DirectoryTarget::new(&absent, quiet()).unwrap_err();
    assert!(error.to_string().contains("it is not there"), "{error}");
    assert_eq!(error.path(), Some(&*absent));
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = DirectoryTarget::new(&file, quiet()).unwrap_err();
    assert!(error.to_string().contains("no directory"), "{error}");
}

#[test]
fn too_little_room_is_said_before_anything_is_made() {
    let directory = TestDirectory::new();
    let steps = vec![look(|_| panic!("nothing may be started"))];
    let plan = Plan { room: 1 << 60, ..plan(vec![process(directory.path(), steps).0]) };
    let error = refused(&directory, plan);
    assert_eq!(error.kind(), EngineErrorKind::NoRoom);
    let text = error.to_string();
    assert!(text.contains("needs 1099511627776 MiB") && text.contains("MiB are missing"), "{text}");
}

#[test]
fn leftovers_of_killed_runs_are_removed_at_the_next_start() {
    let directory = TestDirectory::new();
    let elsewhere = TestDirectory::new();
    for parent in [directory.path(), elsewhere.path()] {
        let left = killed::leftover(parent, "raidlab-run-1-9", true);
        fs::create_dir(left.join("files/d")).unwrap();
        fs::write(left.join("files/d/a"), "left").unwrap();
    }
    let options = raidlab_targets::DirectoryOptions {
        source_directory: elsewhere.path().to_path_buf(),
        ..quiet()
    };
    let target = DirectoryTarget::new(directory.path(), options).unwrap();
    assert_eq!(target.cleaned().removed.len(), 2);
    assert_eq!((names(directory.path()), names(elsewhere.path())), (vec![], vec![]));
}

/// A small filesystem in memory, mounted in a new directory.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, after a line about the skipped test on standard error, where mounting is not permitted.
    fn new(test: &str, path: PathBuf, flags: libc::c_ulong) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let at = CString::new(path.as_os_str().as_bytes()).unwrap();
        let (kind, size) = (c"tmpfs".as_ptr(), c"size=1m".as_ptr());
        // SAFETY: all are C strings that live through the call.
        if unsafe { libc::mount(kind, at.as_ptr(), kind, flags, size.cast()) } == 0 {
            return Some(Self(path));
        }
        let error = std::io::Error::last_os_error();
        // Written past the test harness, which would keep the output of a test that passes.
        let line = format!("skipped: {test}: a filesystem cannot be mounted: {error}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let at = CString::new(self.0.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string that lives through the call.
        unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_read_only_filesystem_is_named() {
    let directory = TestDirectory::new();
    let test = "a_read_only_filesystem_is_named";
    let Some(mounted) = Mounted::new(test, directory.path().join("m"), libc::MS_RDONLY) else {
        return;
    };
    let error = DirectoryTarget::new(&mounted.0, quiet()).unwrap_err();
    assert!(error.to_string().contains("mounted read-only"), "{error}");
}

#[test]
fn a_write_without_room_fails_by_name() {
    let directory = TestDirectory::new();
    let test = "a_write_without_room_fails_by_name";
    let Some(mounted) = Mounted::new(test, directory.path().join("m"), 0) else { return };
    let steps = || vec![open(0, "a", OpenFlags::WRITE), write(4096, 1000)];
    let error = run_steps(&mounted.0, steps()).err().unwrap();
    assert_eq!(error.kind(), EngineErrorKind::NoRoom);
    let text = error.to_string();
    assert!(text.starts_with("cannot write (") && text.contains("No space left"), "{text}");
    assert!(error.offset().is_some_and(|at| at > 0 && at <= 1 << 20 && at % 4096 == 0), "{text}");
    assert_eq!(names(&mounted.0), [""; 0]);
    // What a process that is being started has a copy of takes room still.
    let Some(mounted) = Mounted::new(test, directory.path().join("n"), 0) else { return };
    let enough = Plan { room: 2 << 20, ..plan(vec![process(&mounted.0, steps()).0]) };
    let error = run(&mounted.0, enough).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NoRoom);
    assert!(
        error.to_string().contains("needs 2 MiB, 1 MiB are free: 1 MiB are missing"),
        "{error}"
    );
    // What lies in memory cannot be made cold, which is said.
    let cold = Plan { memory: raidlab_workload::Memory::Cold, ..plan(vec![]) };
    let record = run(&mounted.0, cold).unwrap();
    assert!(record.warnings.iter().any(|w| w.contains("a filesystem in memory")), "{record:?}");
}

#[test]
fn removing_does_not_go_into_another_filesystem() {
    let directory = TestDirectory::new();
    let run = RunDirectory::create_tree(directory.path()).unwrap();
    let tree = run.tree_path().unwrap();
    let test = "removing_does_not_go_into_another_filesystem";
    let Some(mounted) = Mounted::new(test, tree.join("m"), 0) else { return };
    fs::write(mounted.0.join("yours"), "kept").unwrap();
    drop(run);
    assert_eq!(names(&mounted.0), ["yours"]);
    drop(mounted);
    // Its run ended long ago as far as anybody can see.
    let cleaned = raidlab_targets::clean_leftovers(directory.path()).unwrap();
    assert_eq!(cleaned.removed.len(), 1, "{cleaned:?}");
    assert_eq!(names(directory.path()), [""; 0]);
}
