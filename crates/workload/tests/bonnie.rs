//! What bonnie++ 1.03 and 2.00 ask for, written down from what is known of the originals.

use raidlab_core::{Nanos, Time};
use raidlab_workload::null::{NullStep, NullTarget};
use raidlab_workload::{
    Better, Content, FileDescriptor, FilePath, Mark, Memory, Op, Parameters, Plan, RunRecord, Seek,
    Setting, Workload, WorkloadErrorKind, make,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn workload(kind: &str, pairs: &[(&str, &str)]) -> Arc<dyn Workload> {
    make(kind, Parameters::new(pairs.iter().copied()).expect("no key twice")).expect("right")
}

fn plan(kind: &str, pairs: &[(&str, &str)]) -> Plan {
    workload(kind, pairs).plan(&Setting::new(1, 7)).expect("can be")
}

/// Runs a plan and gives its steps.
fn run(plan: Plan) -> (RunRecord, Vec<NullStep>) {
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(plan).expect("can be carried out");
    let root = target.names().list(&FilePath::target("")).expect("the root");
    assert_eq!(root, [], "nothing is left behind");
    (record, target.steps().to_vec())
}

fn of_process(steps: &[NullStep], process: usize) -> Vec<Op> {
    steps.iter().filter(|step| step.process == process).map(|step| step.op.clone()).collect()
}

fn count(ops: &[Op], is_it: impl Fn(&Op) -> bool) -> usize {
    ops.iter().filter(|op| is_it(op)).count()
}

fn is_fsync(op: &Op) -> bool {
    matches!(op, Op::Fsync { .. })
}

/// An operation in a word or two, without places.
fn short(op: &Op) -> Option<String> {
    Some(match op {
        Op::Open { path, flags, .. } if flags.create && flags.exclusive => format!("create {path}"),
        Op::Open { path, .. } => format!("open {path}"),
        Op::Close { fd } => format!("close {}", fd.0),
        Op::Fsync { fd } => format!("fsync {}", fd.0),
        Op::Unlink { path } => format!("unlink {path}"),
        Op::Read { fd, len, times } => format!("read {} {len} x{times}", fd.0),
        Op::Write { fd, len, times, .. } => format!("write {} {len} x{times}", fd.0),
        Op::Mark(Mark::Begin(phase)) => format!("begin {phase}"),
        Op::Mark(Mark::End(phase)) => format!("end {phase}"),
        Op::Sleep(time) => format!("sleep {}", time.0 / 1_000_000_000),
        Op::Barrier(_) => "barrier".into(),
        Op::Put { ticket, times, .. } => format!("put {ticket} x{times}"),
        Op::Done => "done".into(),
        _ => return None,
    })
}

/// The large file of 1.03 with `-n 0 -f -b`, 1100 MiB: two files, written down by hand.
#[test]
fn a_run_of_1100_mib_by_1_03() {
    let options = [("size", "1100MiB"), ("n", "0"), ("fast", "true"), ("sync", "true")];
    let (_, steps) = run(plan("bonnie-1.03", &options));
    let main = of_process(&steps, 0);
    let rewritten = |op: &Op| {
        matches!(op, Op::Read { times: 1, .. } | Op::Write { times: 1, .. } | Op::Seek { .. })
    };
    let lines: Vec<String> = main.iter().filter(|op| !rewritten(op)).filter_map(short).collect();
    let (first, second) = ("Bonnie.0.000", "Bonnie.0.001");
    let created = [format!("create {first}"), format!("create {second}")];
    let opened = [format!("open {first}"), format!("open {second}")];
    let words = |text: &str| -> Vec<String> { text.split('|').map(str::to_string).collect() };
    let synced = words("fsync 0|close 0|fsync 1|close 1");
    let expected = [
        // Made by the C library, which does not sync, and made again for the blocks.
        created.to_vec(),
        words("close 0|close 1"),
        words(&format!("unlink {first}|{}|unlink {second}|{}", created[0], created[1])),
        words("begin 1|write 0 8192 x131072|write 1 8192 x9728"),
        synced.clone(),
        words("end 1"),
        opened.to_vec(),
        words("begin 2"),
        synced.clone(),
        words("end 2"),
        opened.to_vec(),
        words("begin 4|read 0 8192 x131072|read 1 8192 x9728"),
        synced,
        words("end 4|barrier|sleep 5|put 1 x8192|put 0 x3|barrier"),
        words(&format!("unlink {first}|unlink {second}|done")),
    ];
    assert_eq!(lines, expected.concat());
    assert_eq!(count(&main, is_fsync), 6, "three pairs");
    // The first of what is timed is the first read, as the start was sought before.
    let began = main.iter().position(|op| *op == Op::Mark(Mark::Begin(2))).expect("a phase");
    let start = Op::Seek { fd: FileDescriptor(0), to: Seek::Start(0) };
    assert_eq!(main[began - 1], start);
    assert!(matches!(main[began + 1..=began + 2], [Op::Mark(Mark::GroupBegin), Op::Read { .. }]));
    // Every block is read, sought back over and written once more, across the files' border.
    let rewritten: Vec<&Op> = main.iter().filter(|op| rewritten(op)).collect();
    let blocks = 1100 * MIB / 8192;
    assert_eq!(rewritten.len() as u64, 3 * blocks + 2, "and once to the start of each pass");
    for (number, one) in (0..blocks).zip(rewritten[1..].chunks(3)) {
        let (fd, len) = (FileDescriptor(u16::from(number >= GIB / 8192)), 8192);
        let write = Op::Write { fd, len, content: Content::Stamp { number }, times: 1 };
        let back = Op::Seek { fd, to: Seek::Current(-8192) };
        assert_eq!(one, [&Op::Read { fd, len, times: 1 }, &back, &write], "block {number}");
    }
    let stamps: Vec<Content> = main
        .iter()
        .filter_map(|op| match op {
            Op::Write { content, times: 2.., .. } => Some(*content),
            _ => None,
        })
        .collect();
    let on = Content::Stamp { number: GIB / 8192 };
    assert_eq!(stamps, [Content::Stamp { number: 0 }, on], "one pattern over both files");
}

/// What a seeker does with its tickets: places of whole blocks and whether each was changed.
fn seeks(ops: &[Op]) -> Vec<(FileDescriptor, u64, bool)> {
    let mut all: Vec<(FileDescriptor, u64, bool)> = Vec::new();
    let mut is_new = false;
    for op in ops {
        match op {
            Op::Mark(Mark::GroupBegin) => is_new = true,
            Op::Seek { fd, to: Seek::Start(at) } if is_new => {
                all.push((*fd, *at, false));
                is_new = false;
            }
            Op::Write { len, times: 1, content: Content::Stamp { .. }, .. } => {
                assert_eq!(*len, 8192);
                all.last_mut().expect("after a seek").2 = true;
            }
            _ => {}
        }
    }
    all
}

#[test]
fn three_seekers_of_1_03_share_the_tickets_and_update_their_first() {
    let options = [("size", "1100MiB"), ("n", "0"), ("fast", "true"), ("sync", "true")];
    let plan = plan("bonnie-1.03", &options);
    assert_eq!((plan.run.len(), plan.queues), (4, 1));
    assert_eq!(plan.barriers, [4, 4]);
    let (record, steps) = run(plan);
    let mut total = 0;
    let mut files = [0, 0];
    for process in 1..4 {
        let ops = of_process(&steps, process);
        let seeks = seeks(&ops);
        total += seeks.len();
        for (index, (fd, at, is_update)) in seeks.iter().enumerate() {
            assert_eq!(*is_update, index % 10 == 0, "the 1st, 11th, ...");
            let bytes = [GIB, 76 * MIB][usize::from(fd.0)];
            assert!(at.is_multiple_of(8192) && *at < bytes, "{at}");
            files[usize::from(fd.0)] += 1;
        }
        // After each update, and at the close of both files, inside the time.
        assert_eq!(count(&ops, is_fsync), seeks.len().div_ceil(10) + 2);
        let words: Vec<String> = ops.iter().filter_map(short).collect();
        assert_eq!(words[..3], ["barrier", "open Bonnie.0.000", "open Bonnie.0.001"]);
        let first = ops.iter().position(|op| matches!(op, Op::Take { .. })).expect("a ticket");
        assert_eq!(ops[first + 1], Op::Mark(Mark::Begin(5)), "the clock starts with a ticket");
        let last = ["fsync 0", "close 0", "fsync 1", "close 1", "end 5", "barrier", "done"];
        assert_eq!(words[words.len() - 7..], last);
    }
    assert_eq!(total, 8192);
    // 76 of 1100 MiB: 566 seeks; six standard deviations are 138.
    assert!(566_i32.abs_diff(files[1]) < 138, "{files:?}");
    let seeks = record.phase(5).expect("seeks");
    assert_eq!(seeks.reads.count + seeks.writes.count, 8192, "each has one latency");
    assert_eq!(seeks.writes.bytes, seeks.writes.count * 8192);
    assert_eq!(seeks.reads.bytes, 8192 * 8192, "with those of which the block was written");
}

#[test]
fn without_b_only_2_00_syncs() {
    let options = [("size", "8MiB"), ("n", "0"), ("fast", "true")];
    let fsyncs = |kind| {
        let (_, steps) = run(plan(kind, &options));
        let all: Vec<Op> = steps.into_iter().map(|step| step.op).collect();
        count(&all, is_fsync)
    };
    assert_eq!(fsyncs("bonnie-1.03"), 0);
    assert_eq!(fsyncs("bonnie-2.00"), 10, "five by the main process, one by each seeker");
}

#[test]
fn an_exact_gib_is_one_file_and_one_mib_more_are_two() {
    for (size, files) in [("1GiB", 1), ("1025MiB", 2), ("2GiB", 2)] {
        let options = [("size", size), ("n", "0"), ("fast", "true")];
        assert_eq!(plan("bonnie-1.03", &options).files.len(), files, "{size}");
        assert_eq!(plan("bonnie-2.00", &options).files.len(), 1, "{size}");
    }
    let plan = plan("bonnie-1.03", &[("size", "1025MiB"), ("n", "0"), ("chunk", "16KiB")]);
    let lengths: Vec<(String, u64, u64)> =
        plan.files.iter().map(|need| (need.path.to_string(), need.bytes, need.unit)).collect();
    let first = ("Bonnie.0.000".to_string(), GIB, 16384);
    assert_eq!(lengths, [first, ("Bonnie.0.001".to_string(), MIB, 16384)]);
    assert_eq!((plan.room, plan.memory, plan.needs_filesystem), (1025 * MIB, Memory::Cold, None));
}

#[test]
fn bytes_one_by_one_go_in_blocks_of_the_library_or_singly() {
    let options = [("size", "4MiB"), ("n", "0"), ("sync", "true")];
    let of_phase = |kind, phase| {
        let (_, steps) = run(plan(kind, &options));
        let main = of_process(&steps, 0);
        let at = |mark| main.iter().position(|op| *op == Op::Mark(mark)).expect("a phase");
        let ops = &main[at(Mark::Begin(phase)) + 1..at(Mark::End(phase))];
        let words: Vec<String> = ops.iter().filter_map(short).collect();
        (words, ops.len())
    };
    // 1.03: all of it in pieces of 256 or 128 KiB, each with its work, and no sync by the library.
    for (phase, pieces, word) in [(0, 16, "write 0 4096 x64"), (3, 32, "read 0 4096 x32")] {
        let (words, ops) = of_phase("bonnie-1.03", phase);
        assert_eq!((words.len(), ops), (pieces + 1, 2 * pieces + 1));
        assert!(words[..pieces].iter().all(|one| one == word));
        assert_eq!(words[pieces..], ["close 0"]);
    }
    // 2.00: three of the four MiB, byte by byte, timed by the block of 8 KiB.
    for (phase, word) in [(0, "write 0 1 x8192"), (3, "read 0 1 x8192")] {
        let (words, ops) = of_phase("bonnie-2.00", phase);
        assert_eq!((words.len(), ops), (3 * 128 + 2, 3 * 3 * 128 + 2));
        assert!(words[..3 * 128].iter().all(|one| one == word));
        assert_eq!(words[3 * 128..], ["fsync 0", "close 0"]);
    }
    let longest = workload("bonnie-2.00", &[("size", "4MiB"), ("n", "0"), ("fast", "9MiB")]);
    let (record, _) = run(longest.plan(&Setting::new(1, 1)).expect("can be"));
    let phase = record.phase(0).expect("bytes");
    assert_eq!((phase.writes.bytes, phase.writes.count), (4 * MIB, 512), "at most the file");
}

#[test]
fn tickets_of_2_00_carry_the_update() {
    let options = [("size", "32MiB"), ("chunk", "16KiB"), ("n", "0"), ("fast", "true")];
    let (record, steps) = run(plan("bonnie-2.00", &options));
    let tickets: Vec<i64> = of_process(&steps, 0)
        .iter()
        .filter_map(|op| match op {
            Op::Put { ticket, times: 1, .. } => Some(*ticket),
            _ => None,
        })
        .collect();
    assert_eq!(tickets.len(), 8192);
    assert!(tickets.iter().all(|ticket| (ticket % 10 == 0) == (*ticket < 0)));
    assert!(tickets.iter().all(|ticket| ticket.unsigned_abs() < 1 << 31));
    let updates = tickets.iter().filter(|ticket| **ticket < 0).count();
    // A tenth: 819; six standard deviations are 163.
    assert!(819_usize.abs_diff(updates) < 163, "{updates}");
    let seeks = record.phase(5).expect("seeks");
    assert_eq!(seeks.writes.count, updates as u64);
    assert_eq!(steps.iter().filter(|step| step.op == Op::Sleep(Nanos(3_000_000_000))).count(), 1);
    let rewrite = record.phase(2).expect("rewrite");
    assert_eq!(rewrite.writes.count, 2048, "read, seek and write are one");
    assert_eq!(rewrite.writes.max, Nanos(3_000), "of three steps");
    assert_eq!(rewrite.reads.count, 0);
}

#[test]
fn copies_keep_apart_and_the_seed_decides() {
    let options = [("size", "4MiB"), ("n", "1:100"), ("fast", "true"), ("seeks", "50")];
    let bonnie = workload("bonnie-2.00", &options);
    let steps = |setting: Setting| run(bonnie.plan(&setting).expect("can be")).1;
    let two = steps(Setting::new(2, 7));
    let paths = |process| -> Vec<String> {
        let ops = of_process(&two, process);
        let path = |op: &Op| match op {
            Op::Open { path, .. } | Op::Mkdir { path } => Some(path.to_string()),
            _ => None,
        };
        ops.iter().filter_map(path).collect()
    };
    for process in 0..12 {
        let own = if process < 6 { "Bonnie.0" } else { "Bonnie.1" };
        assert!(paths(process).iter().all(|path| path.starts_with(own)), "{process}");
        let copy = u16::from(process >= 6);
        for op in of_process(&two, process) {
            match op {
                Op::Barrier(barrier) => assert_eq!(barrier / 2, copy),
                Op::Put { queue, .. } | Op::Take { queue } => assert_eq!(queue, copy),
                _ => {}
            }
        }
    }
    assert_eq!(steps(Setting::new(1, 7)), steps(Setting::new(1, 7)));
    assert_ne!(steps(Setting::new(1, 7)), steps(Setting::new(1, 8)));
    let seeded = workload("bonnie-2.00", &[&options[..], &[("seed", "7")]].concat());
    let seeded = run(seeded.plan(&Setting::new(1, 8)).expect("can be")).1;
    assert!(seeded == steps(Setting::new(1, 7)), "`seed` is instead of the study's");
    let one = of_process(&steps(Setting::new(1, 7)), 0);
    let first = of_process(&two, 0);
    let names = |ops: &[Op]| -> Vec<Op> {
        ops.iter().filter(|op| matches!(op, Op::Unlink { .. })).cloned().collect()
    };
    assert_eq!(names(&one), names(&first), "another copy changes nothing for the first");
}

#[test]
fn small_files_of_1_03() {
    let options = [("size", "0"), ("n", "1:2000:0:2"), ("sync", "true"), ("chunk", "1KiB")];
    let bonnie = workload("bonnie-1.03", &options);
    let plan = bonnie.plan(&Setting::new(1, 7)).expect("can be");
    assert_eq!((plan.run.len(), plan.queues, plan.files.len()), (1, 0, 0));
    assert!(plan.needs_filesystem.is_some_and(|why| why.contains("n=0")), "{plan:?}");
    let (record, steps) = run(plan);
    let ops = of_process(&steps, 0);
    assert!(ops.iter().all(|op| *op != Op::SyncAll), "only 2.00 syncs everything");
    let created: Vec<String> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Open { path, flags, .. } if flags.create => Some(path.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(created.len(), 2048);
    for (index, path) in created.iter().enumerate() {
        let number = index % 1024;
        // floor(1024 / 2) + 1 names in the first directory.
        let directory = format!("Bonnie.0/{:05}/", usize::from(number > 512));
        let name = path.strip_prefix(&directory).expect("the right directory");
        let digits = format!("{number:07}");
        let extra = match index < 1024 {
            true => name.strip_prefix(&digits),
            false => name.strip_suffix(&digits),
        };
        let extra = extra.unwrap_or_else(|| panic!("{name}"));
        assert!(extra.len() <= 12 && extra.chars().all(|c| c.is_ascii_alphanumeric()), "{extra}");
    }
    let creating = record.phase(6).expect("creation");
    assert_eq!(creating.writes.count, 1024, "a latency a file");
    let mean = creating.writes.bytes as f64 / 1024.0;
    // Six standard deviations: 578 / sqrt(1,024) x 6.
    assert!((mean - 1000.0).abs() < 109.0, "uniform from 0 to 2000: {mean}");
    for phase in [8, 9, 11].map(|phase| record.phase(phase).expect("names come and go")) {
        assert_eq!((phase.writes.count, phase.reads.count), (1024, 0));
    }
    let stat = [record.phase(7), record.phase(10)].map(|phase| phase.expect("stat").reads);
    assert_eq!(stat[0].bytes, creating.writes.bytes, "all that was written is read");
    assert_eq!((stat[0].count, stat[1].count), (1024, 1024));
    let syncs = count(&ops, |op| matches!(op, Op::FsyncDirectory { .. }));
    assert_eq!((count(&ops, is_fsync), syncs), (2048, 4096), "a file, its directory, its removal");
    let unlinked: Vec<String> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Unlink { path } => Some(path.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(unlinked[..1024], created[..1024], "in the order of the directory");
    assert_ne!(unlinked[1024..], created[1024..], "in random order");
    let (mut left, mut right) = (unlinked[1024..].to_vec(), created[1024..].to_vec());
    left.sort();
    right.sort();
    assert_eq!(left, right);
}

/// The names of calls, and how often each is made in each phase; before the first `None`.
type Calls = BTreeMap<Option<u16>, BTreeMap<&'static str, u64>>;

fn calls(ops: &[Op]) -> Calls {
    let (mut calls, mut phase) = (Calls::new(), None);
    for op in ops {
        let (name, times) = match op {
            Op::Mark(Mark::Begin(index)) => {
                phase = Some(*index);
                continue;
            }
            Op::Mark(Mark::End(index)) => {
                assert_eq!(phase, Some(*index), "the phase that began");
                phase = None;
                continue;
            }
            Op::Open { .. } => ("open", 1),
            Op::Close { .. } => ("close", 1),
            Op::Read { times, .. } => ("read", *times),
            Op::Write { times, .. } => ("write", *times),
            Op::Fsync { .. } => ("fsync", 1),
            Op::FsyncDirectory { .. } => ("fsync-directory", 1),
            Op::SyncAll => ("sync", 1),
            Op::Stat { .. } => ("stat", 1),
            Op::Unlink { .. } => ("unlink", 1),
            Op::List { .. } => ("list", 1),
            Op::Mkdir { .. } => ("mkdir", 1),
            Op::Rmdir { .. } => ("rmdir", 1),
            Op::Mark(_) | Op::Done => continue,
            other => panic!("{other:?}"),
        };
        *calls.entry(phase).or_default().entry(name).or_default() += times;
    }
    calls
}

/// All that belongs to making, looking up and removing lies between the marks of the phase: directories are listed and
/// removed there, and what 2.00 syncs; only making directories does not count. 1.03 moves the blocks of the large
/// file, 2.00 those of its own option.
#[test]
fn phases_of_small_files_have_all_of_their_calls_between_their_marks() {
    let options = [("size", "0"), ("n", "1:3000:3000:2"), ("sync", "true"), ("chunk", "1KiB")];
    for (kind, blocks, syncs) in [("bonnie-1.03", 3, 0), ("bonnie-2.00", 1, 1)] {
        let (_, steps) = run(plan(kind, &options));
        let found = calls(&of_process(&steps, 0));
        let some = |calls: &[(&'static str, u64)]| -> BTreeMap<&'static str, u64> {
            calls.iter().copied().filter(|(_, times)| *times > 0).collect()
        };
        let moved = blocks * 1024;
        let make = [
            ("open", 1024),
            ("write", moved),
            ("fsync", 1024),
            ("fsync-directory", 1024),
            ("close", 1024),
            ("sync", syncs),
        ];
        let look = [("stat", 1024), ("open", 1024), ("read", moved), ("close", 1024)];
        let remove = [("unlink", 1024), ("fsync-directory", 1024), ("rmdir", 3), ("sync", syncs)];
        let list = [("list", 2)];
        let expected = [
            (None, some(&[("mkdir", 6)])),
            (Some(6), some(&make)),
            (Some(7), some(&[&look[..], &list].concat())),
            (Some(8), some(&[&remove[..], &list].concat())),
            (Some(9), some(&make)),
            (Some(10), some(&look)),
            (Some(11), some(&remove)),
        ];
        assert_eq!(found, Calls::from(expected), "{kind}");
    }
}

/// The order of looking up is another than that of removing, and both are others than that of making.
#[test]
fn names_are_shuffled_before_they_are_looked_up_and_before_they_are_removed() {
    for kind in ["bonnie-1.03", "bonnie-2.00"] {
        let (_, steps) = run(plan(kind, &[("size", "0"), ("n", "1")]));
        let ops = of_process(&steps, 0);
        let paths = |is_it: fn(&Op) -> Option<&FilePath>| -> Vec<FilePath> {
            ops.iter().filter_map(is_it).skip(1024).cloned().collect()
        };
        let made = paths(|op| match op {
            Op::Open { path, flags, .. } if flags.create => Some(path),
            _ => None,
        });
        let looked_up = paths(|op| if let Op::Stat { path } = op { Some(path) } else { None });
        let removed = paths(|op| if let Op::Unlink { path } = op { Some(path) } else { None });
        for (one, other) in [(&made, &looked_up), (&made, &removed), (&looked_up, &removed)] {
            let same = one.iter().zip(other.iter()).filter(|(one, other)| one == other).count();
            assert!(one.len() == 1024 && other.len() == 1024 && same < 20, "{kind}: {same}");
        }
        // Up to twelve characters are drawn besides the number.
        let extra = |path: &FilePath| path.text.len() - "Bonnie.0/".len();
        let digits = if kind == "bonnie-1.03" { 7 } else { 10 };
        let (least, most) = (made.iter().map(extra).min(), made.iter().map(extra).max());
        assert_eq!((least, most), (Some(digits), Some(digits + 12)), "{kind}");
    }
}

/// Large and small files are there one after the other.
#[test]
fn room_is_for_the_larger_of_both() {
    let room = |size, n| plan("bonnie-1.03", &[("size", size), ("ram", "0"), ("n", n)]).room;
    assert_eq!(room("1GiB", "1:100"), GIB);
    for (n, least) in
        [("1:8192", 8 * MIB), ("3:8192", 24 * MIB), ("2:5:5", 8 * MIB), ("2", 8 * MIB)]
    {
        let room = room("1MiB", n);
        assert!((least..=2 * least).contains(&room), "{n}: {room}");
    }
}

#[test]
fn settling_may_be_shortened() {
    let options =
        [("size", "1MiB"), ("n", "0"), ("fast", "true"), ("settle", "10ms"), ("seeks", "1")];
    for kind in ["bonnie-1.03", "bonnie-2.00"] {
        let (record, _) = run(plan(kind, &options));
        let last = record.processes.iter().map(|process| process.ended).max();
        assert!(last.is_some_and(|ended| ended < Time(100_000_000)), "{kind}: {last:?}");
    }
}

#[test]
fn sizes_follow_memory() {
    let mut setting = Setting::new(1, 1);
    for (memory, mib) in [
        (None, 300),
        (Some(100 * MIB), 300),
        // 1024 MiB; 1536 is not more than half past; 1552 is rounded up.
        (Some(512 * MIB), 1024),
        (Some(768 * MIB), 1536),
        (Some(776 * MIB), 2048),
        // Memory is counted by 4 MiB.
        (Some(515 * MIB), 1024),
    ] {
        setting.host_memory = memory;
        let small = workload("bonnie-1.03", &[("n", "0")]).plan(&setting).expect("can be");
        assert_eq!(small.room, mib * MIB, "{memory:?}");
    }
    setting.host_memory = Some(512 * MIB);
    let sized = |pairs: &[(&str, &str)]| {
        workload("bonnie-2.00", &[pairs, &[("n", "0")]].concat()).plan(&setting)
    };
    let error = sized(&[("size", "1023MiB")]).expect_err("less than twice memory");
    assert_eq!((error.kind, error.key.as_str()), (WorkloadErrorKind::Size, "size"));
    assert_eq!(
        error.reason,
        "1023MiB is less than twice the memory of 512MiB, so that memory would be measured; \
         use at least 1GiB, or say ram= for less memory"
    );
    for right in [
        &[("size", "1GiB")][..],
        &[("size", "1MiB"), ("ram", "0")],
        &[("size", "8MiB"), ("ram", "4MiB")],
    ] {
        assert!(sized(right).is_ok(), "{right:?}");
    }
    assert!(sized(&[("size", "7MiB"), ("ram", "4MiB")]).is_err());
}

#[test]
fn nonsense_is_named() {
    for (kind, pairs, key, words) in [
        ("bonnie-1.03", &[("chunk", "3000")][..], "chunk", "not a power of two"),
        ("bonnie-1.03", &[("chunk", "2MiB")], "chunk", "not a power of two"),
        ("bonnie-1.03", &[("chunk", "128")], "chunk", "not a power of two"),
        ("bonnie-1.03", &[("size", "1025KiB")], "size", "not a whole number of MiB"),
        ("bonnie-1.03", &[("size", "1001GiB")], "size", "at most 1000GiB"),
        ("bonnie-2.00", &[("size", "16TiB"), ("chunk", "4KiB")], "size", "too large"),
        ("bonnie-2.00", &[("size", "0"), ("n", "0")], "size", "nothing to do"),
        ("bonnie-2.00", &[("size", "many")], "size", "not a size"),
        ("bonnie-1.03", &[("fast", "2MiB")], "fast", "neither true nor false"),
        ("bonnie-2.00", &[("fast", "2KiB")], "fast", "whole number of MiB"),
        ("bonnie-1.03", &[("n", "16:1:0:1:8KiB")], "n", "N[:max[:min[:dirs]]]"),
        ("bonnie-2.00", &[("n", "16:1:0:1:8KiB:1")], "n", "N[:max[:min[:dirs[:chunk]]]]"),
        ("bonnie-2.00", &[("n", "x")], "n", "`x` is not a number"),
        ("bonnie-2.00", &[("n", "30000")], "n", "from 0 to 28339"),
        ("bonnie-2.00", &[("n", "1:10:20")], "n", "`20` is not a length in bytes from 0 to 10"),
        ("bonnie-2.00", &[("n", "1:0:0:0")], "n", "`0` is not a number of directories"),
        ("bonnie-2.00", &[("n", "1:symlink:0:2")], "n", "lead nowhere"),
        ("bonnie-2.00", &[("n", "1:-1:5")], "n", "links have no length"),
        ("bonnie-2.00", &[("n", "1:0:0:1:5000")], "n", "power of two"),
        ("bonnie-2.00", &[("seekers", "0")], "seekers", "from 1 to 1000"),
        ("bonnie-2.00", &[("seeks", "0")], "seeks", "from 1"),
        ("bonnie-2.00", &[("seed", "-1")], "seed", "whole number"),
        ("bonnie-2.00", &[("metric", "bytes")], "metric", "rates, seconds"),
        ("bonnie-2.00", &[("settle", "3")], "settle", "not a time"),
        ("bonnie-2.00", &[("direct", "true")], "direct", "not a parameter"),
    ] {
        let given = Parameters::new(pairs.iter().copied()).expect("no key twice");
        let error = make(kind, given).expect_err(words);
        assert_eq!(error.key, key, "{error}");
        assert!(error.reason.contains(words), "{error}");
    }
    let mut setting = Setting::new(1, 1);
    setting.host_memory = Some(8 * MIB);
    let error = workload("bonnie-2.00", &[("n", "200")]).plan(&setting).expect_err("names");
    assert_eq!(error.to_string(), "n: 200K names would fill the memory of 8MiB; use less");
    // Each name of 2.00 takes 22 characters, a directory, an end and a pointer: 37 bytes, of half the memory.
    for (n, fits) in [("110", true), ("111", false)] {
        let plan = workload("bonnie-2.00", &[("size", "16MiB"), ("n", n)]).plan(&setting);
        assert_eq!(plan.is_ok(), fits, "{n}");
    }
    // Places are of 31 bits.
    for (size, fits) in [("524287MiB", true), ("512GiB", false)] {
        let given = Parameters::new([("size", size), ("chunk", "256")]).expect("no key twice");
        assert_eq!(make("bonnie-2.00", given).is_ok(), fits, "{size}");
    }
    let small = Setting { space: Some(15 * MIB), ..Setting::new(2, 1) };
    // That a filesystem is needed is told before that there is no room.
    for (kind, n, fast, why) in [
        ("bonnie-1.03", "16", "false", "with n=0 it needs none"),
        ("bonnie-2.00", "16", "true", "with n=0 it needs none"),
        ("bonnie-2.00", "16", "false", "with n=0 fast=true it does neither"),
        ("bonnie-2.00", "0", "false", "with fast=true it does not"),
    ] {
        let plan = workload(kind, &[("size", "8MiB"), ("n", n), ("fast", fast)]).plan(&small);
        let needs = plan.expect("room is not looked at").needs_filesystem;
        assert!(needs.is_some_and(|needs| needs.ends_with(why)), "{needs:?}");
    }
    let bonnie = workload("bonnie-2.00", &[("size", "8MiB"), ("n", "0"), ("fast", "true")]);
    let error = bonnie.plan(&small);
    let error = error.expect_err("two of 8 MiB");
    assert_eq!(error.kind, WorkloadErrorKind::DoesNotFit, "{error}");
    assert_eq!(bonnie.plan(&Setting::new(0, 1)).expect_err("none").key, "copies");
    assert!(bonnie.resized(MIB + 1).is_err());
    let larger = bonnie.resized(9 * MIB).expect("whole MiB");
    assert_eq!(larger.plan(&Setting::new(1, 1)).expect("can be").room, 9 * MIB);
}

#[test]
fn metrics_are_those_of_the_studies() {
    let names = |pairs: &[(&str, &str)]| -> Vec<&str> {
        let metrics = workload("bonnie-1.03", pairs).metrics();
        metrics.iter().map(|metric| metric.name).collect()
    };
    let study = [
        "block_write_kps",
        "block_write_cp",
        "rewrite_kps",
        "rewrite_cp",
        "block_read_kps",
        "block_read_cp",
        "seeks_per_s",
        "seeks_cp",
        "seconds",
    ];
    assert_eq!(names(&[("n", "0"), ("fast", "true")]), study);
    let whole = names(&[("metric", "seconds")]);
    assert_eq!((whole[0], whole.len()), ("seconds", 1 + 8 + 4 + 12));
    assert_eq!(names(&[("size", "0")])[0], "create_sequential_per_s");
    let metrics = workload("bonnie-1.03", &[]).metrics();
    assert_eq!((metrics[1].unit, metrics[1].better), ("%CP", Better::Lower));
    let bonnie = workload("bonnie-2.00", &[("size", "32MiB"), ("n", "2")]);
    assert_eq!(
        (bonnie.kind(), bonnie.default_name().as_str()),
        ("bonnie-2.00", "bonnie-2.00 32MiB")
    );
    assert_eq!(
        bonnie.description(),
        "bonnie++ 2.00: a file of 32MiB written, rewritten and read by 8KiB; written and read \
         byte by byte; 8192 seeks by 5; 2048 small files made, looked at and removed, twice"
    );
}
