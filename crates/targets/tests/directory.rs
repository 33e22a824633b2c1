//! The directory target: every operation does what it says, threads wait for each other, and what is
//! measured is what was done.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::TestDirectory;
use crate::directory_support::*;
use raidlab_core::Nanos;
use raidlab_targets::DirectoryOptions;
use raidlab_workload::{
    Attribute, AttributeTarget, Class, Content, FileDescriptor, FilePath, Io, Mark, Memory, Op,
    OpResult, OpenFlags, Plan, Root, SeededBytes, Seek, SourceFile, Status, content,
};

const S: FileDescriptor = FileDescriptor(0);
const T: FileDescriptor = FileDescriptor(7);
const NEW: OpenFlags = OpenFlags { read: true, ..OpenFlags::WRITE };

fn write(fd: FileDescriptor, len: u64, content: Content, times: u64) -> Step {
    Op::Write { fd, len, content, times }.into()
}

fn read(fd: FileDescriptor, len: u64, times: u64) -> Step {
    Op::Read { fd, len, times }.into()
}

fn seek(fd: FileDescriptor, to: Seek) -> Step {
    Op::Seek { fd, to }.into()
}

fn holds(name: &'static str, bytes: Vec<u8>) -> Step {
    look(move |files| assert!(fs::read(files.join(name)).unwrap() == bytes, "{name}"))
}

fn seeded(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    content::fill(seed, 0, &mut bytes);
    bytes
}

#[test]
fn what_is_written_is_what_the_content_says() {
    let directory = TestDirectory::new();
    let mut stamped = vec![0u8; 3 * 4];
    // Byte `number` of the buffer goes up before each write, and stays so.
    for (write, bytes) in stamped.chunks_mut(4).enumerate() {
        bytes[3] = 1;
        bytes[0] = u8::from(write > 0);
        bytes[1] = u8::from(write > 1);
    }
    let steps = vec![
        open(0, "a", NEW),
        // 3, 4, 5 modulo 4.
        write(S, 4, Content::Stamp { number: 3 }, 3),
        holds("a", stamped.clone()),
        write(S, 2, Content::Zeroes, 2),
        // Zeroes left the buffer as it was: 1 1 0 1.
        write(S, 3, Content::Buffer { from: 1 }, 1),
        holds("a", [&stamped[..], &[0, 0, 0, 0], &[1, 0, 1]].concat()),
        // What was read is what is written next, from its start on.
        seek(S, Seek::Start(8)),
        read(S, 4, 1),
        seek(S, Seek::Start(0)),
        write(S, 2, Content::Buffer { from: 0 }, 2),
        holds("a", [&[1, 1, 1, 1], &stamped[4..], &[0, 0, 0, 0], &[1, 0, 1]].concat()),
        close(0),
        // The buffer reaches beyond what any operation has touched: zeroes.
        open(0, "b", NEW),
        write(S, 3, Content::Buffer { from: 9000 }, 1),
        holds("b", vec![0; 3]),
    ];
    let answers = run_steps(directory.path(), steps).unwrap();
    assert_eq!(answers.moved(), [12, 4, 3, 4, 4, 3]);
    assert_eq!(names(directory.path()), [""; 0], "all is removed");
}

#[test]
fn seeded_bytes_go_by_their_place_in_the_file() {
    let directory = TestDirectory::new();
    let content = Content::Seeded { seed: 5 };
    let steps = vec![
        open(0, "a", NEW),
        write(S, 1000, content, 3),
        seek(S, Seek::Current(500)),
        write(S, 1500, content, 1),
        Op::At(Io::Write { fd: S, at: 3000, len: 500, content }).into(),
        seek(S, Seek::End),
        write(S, 2000, content, 1),
        // Reading and copying move the place too.
        seek(S, Seek::Start(100)),
        read(S, 200, 3),
        write(S, 300, content, 1),
        open(7, "b", NEW),
        seek(S, Seek::Start(0)),
        Op::CopyRange { from: S, to: T, len: 1500 }.into(),
        write(S, 500, content, 1),
        write(T, 500, content, 1),
        look(|files| {
            assert!(fs::read(files.join("a")).unwrap() == seeded(5, 7000));
            assert!(fs::read(files.join("b")).unwrap() == seeded(5, 2000));
        }),
    ];
    run_steps(directory.path(), steps).unwrap();
    let (planned, _) = process(
        directory.path(),
        vec![open(0, "a", NEW), write(S, 4096, Content::Seeded { seed: 6 }, 300)],
    );
    let expected = vec![expect("a", SeededBytes { seed: 6, len: 300 * 4096 })];
    run(directory.path(), Plan { expected, ..plan(vec![planned]) }).unwrap();
}

#[test]
fn reads_end_with_the_file_and_positions_move() {
    let directory = TestDirectory::new();
    let steps = vec![
        open(0, "a", OpenFlags::WRITE),
        write(S, 1050, Content::Seeded { seed: 1 }, 1),
        close(0),
        open(0, "a", OpenFlags::READ),
        read(S, 100, 4),
        read(S, 100, 1000),
        read(S, 100, 3),
        seek(S, Seek::Current(-50)),
        Op::At(Io::Read { fd: S, at: 1000, len: 100 }).into(),
        Op::At(Io::Read { fd: S, at: 2000, len: 100 }).into(),
        read(S, 100, 1),
        open(7, "b", NEW),
        write(T, 20, Content::Buffer { from: 0 }, 1),
        look(|files| assert!(fs::read(files.join("b")).unwrap() == seeded(1, 1050)[1000..1020])),
    ];
    let answers = run_steps(directory.path(), steps).unwrap();
    assert_eq!(answers.moved(), [1050, 400, 650, 0, 50, 0, 50, 20]);
}

#[test]
fn files_are_cut_copied_and_made_durable() {
    let directory = TestDirectory::new();
    let null = FilePath::null();
    let steps = vec![
        open(0, "a", NEW),
        open(7, "b", NEW),
        write(S, 300_000, Content::Seeded { seed: 2 }, 1),
        seek(S, Seek::Start(10)),
        Op::CopyRange { from: S, to: T, len: 100_000 }.into(),
        Op::CopyRange { from: S, to: T, len: 1 << 40 }.into(),
        Op::CopyRange { from: S, to: T, len: 100 }.into(),
        look(|files| assert!(fs::read(files.join("b")).unwrap() == seeded(2, 300_000)[10..])),
        Op::Truncate { fd: T, len: 5 }.into(),
        Op::Truncate { fd: T, len: 7 }.into(),
        look(|files| {
            let expected = [&seeded(2, 15)[10..], &[0, 0]].concat();
            assert_eq!(fs::read(files.join("b")).unwrap(), expected);
        }),
        Op::Fsync { fd: T }.into(),
        Op::Fdatasync { fd: T }.into(),
        Op::DropCached { fd: T }.into(),
        close(7),
        // What the kernel does not copy by itself.
        seek(S, Seek::Start(0)),
        Op::Open { fd: T, path: null, flags: OpenFlags { write: true, ..OpenFlags::default() } }
            .into(),
        Op::CopyRange { from: S, to: T, len: 290_000 }.into(),
        read(S, 20_000, 1),
        write(T, 4096, Content::Zeroes, 3),
    ];
    let (planned, answers) = process(directory.path(), steps);
    let record = run(directory.path(), plan(vec![planned])).unwrap();
    assert_eq!(answers.moved(), [300_000, 100_000, 199_990, 0, 290_000, 10_000, 3 * 4096]);
    assert_eq!(record.warnings.len(), 1, "{:?}", record.warnings);
    assert!(record.warnings[0].contains("copied by reading and writing"), "{:?}", record.warnings);
}

#[test]
fn names_are_made_listed_and_removed() {
    let directory = TestDirectory::new();
    let at = FilePath::target;
    let touch = |name: &str| [open(1, name, OpenFlags::WRITE), close(1)];
    let mut steps =
        vec![Op::Mkdir { path: at("d") }.into(), Op::Mkdir { path: at("d/sub") }.into()];
    (0..1000).for_each(|n| steps.extend(touch(&format!("d/{}", (n * 7919) % 1000))));
    steps.extend([
        Op::List { path: at("d") }.into(),
        look(|files| fs::write(files.join("d/5"), "five").unwrap()),
        Op::Rename { from: at("d/5"), to: at("five") }.into(),
        Op::Link { from: at("five"), to: at("d/sub/again") }.into(),
        Op::Symlink { text: "d/sub".into(), path: at("short") }.into(),
        Op::Stat { path: at("short/again") }.into(),
        Op::Stat { path: at("d") }.into(),
        Op::List { path: at("") }.into(),
        look(|files| {
            assert_eq!(fs::read_link(files.join("short")).unwrap().to_str(), Some("d/sub"));
            assert_eq!(fs::metadata(files.join("five")).unwrap().nlink(), 2);
        }),
        Op::Unlink { path: at("d/sub/again") }.into(),
        Op::Unlink { path: at("short") }.into(),
        Op::Rmdir { path: at("d/sub") }.into(),
        Op::FsyncDirectory { path: at("d") }.into(),
        look(|files| {
            assert_eq!(names(files), ["d", "five"]);
            assert_eq!(names(&files.join("d")).len(), 999);
        }),
    ]);
    let listed = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&listed);
    let list = steps.iter().position(|step| matches!(step, Step::Do(Op::List { .. }))).unwrap();
    let order = look(move |files| {
        let entries = fs::read_dir(files.join("d")).unwrap().map(|entry| entry.unwrap());
        let entries = entries.map(|e| (e.file_name().into_string().unwrap(), e.path().is_dir()));
        kept.lock().unwrap().extend(entries);
    });
    steps.insert(list, order);
    let answers = run_steps(directory.path(), steps).unwrap();
    let lists: Vec<Vec<(String, bool)>> = answers
        .all()
        .into_iter()
        .filter_map(|answer| match answer {
            OpResult::Entries(entries) => {
                Some(entries.iter().map(|one| (one.name.to_string(), one.is_directory)).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(lists[0].len(), 1001);
    assert_eq!(lists[0], *listed.lock().unwrap(), "the directory's own order");
    let mut top = lists[1].clone();
    top.sort();
    assert_eq!(top, [("d".into(), true), ("five".into(), false), ("short".into(), false)]);
    let all = answers.all();
    let stats: Vec<&Status> = all
        .iter()
        .filter_map(|answer| if let OpResult::Status(s) = answer { Some(s) } else { None })
        .collect();
    assert_eq!(stats[0], &Status { size: 4, is_directory: false });
    assert!(stats[1].is_directory);
}

#[test]
fn attributes_are_set() {
    let directory = TestDirectory::new();
    let set = |of: &AttributeTarget, attribute| Step::from(Op::Set { of: of.clone(), attribute });
    for of in [AttributeTarget::Descriptor(S), AttributeTarget::Path(FilePath::target("a"))] {
        let steps = vec![
            open(0, "a", NEW),
            look(|files| assert_ne!(fs::metadata(files.join("a")).unwrap().mtime(), 1_000_000_000)),
            set(&of, Attribute::Times),
            set(&of, Attribute::Mode),
            set(&of, Attribute::Owner),
            look(|files| {
                let status = fs::metadata(files.join("a")).unwrap();
                assert_eq!((status.mtime(), status.atime()), (1_000_000_000, 1_000_000_000));
                assert_eq!(status.permissions().mode() & 0o777, 0o755);
                assert_eq!(status.uid(), fs::metadata(files).unwrap().uid());
            }),
        ];
        run_steps(directory.path(), steps).unwrap();
    }
}

/// The flags that this process has a file open with: `proc_pid_fdinfo(5)`.
fn open_flags(path: &std::path::Path) -> i32 {
    let is_it = |fd: &fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|link| link == path);
    let mut open = fs::read_dir("/proc/self/fd").unwrap().map(|fd| fd.unwrap());
    let fd = open.find(is_it).expect("it is open").file_name().into_string().unwrap();
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    i32::from_str_radix(flags.trim(), 8).unwrap()
}

#[test]
fn files_open_as_they_are_asked_to() {
    let directory = TestDirectory::new();
    let direct = OpenFlags { direct: true, sync: true, ..NEW };
    let fresh = OpenFlags { exclusive: true, ..OpenFlags::WRITE };
    let steps = vec![
        open(0, "a", fresh),
        write(S, 10, Content::Zeroes, 1),
        close(0),
        open(0, "a", OpenFlags::BOTH),
        look(|files| assert_eq!(fs::metadata(files.join("a")).unwrap().len(), 10, "kept")),
        open(3, "a", OpenFlags::WRITE),
        look(|files| assert_eq!(fs::metadata(files.join("a")).unwrap().len(), 0, "emptied")),
        open(7, "b", direct),
        look(|files| {
            let flags = open_flags(&files.join("b"));
            assert_eq!(flags & libc::O_DIRECT, libc::O_DIRECT);
            assert_eq!(flags & libc::O_SYNC, libc::O_SYNC);
            assert_eq!(open_flags(&files.join("a")) & (libc::O_DIRECT | libc::O_SYNC), 0);
        }),
        write(T, 8192, Content::Seeded { seed: 3 }, 2),
        write(T, 4096, Content::Stamp { number: 1 }, 1),
        seek(T, Seek::Start(0)),
        read(T, 4096, 9),
    ];
    assert_eq!(run_steps(directory.path(), steps).unwrap().moved(), [10, 16384, 4096, 20480]);
    let twice = vec![open(0, "a", fresh), open(1, "a", fresh)];
    let error = run_steps(directory.path(), twice).err().unwrap();
    assert!(error.to_string().contains("File exists"), "{error}");
}

/// Writes a file with many writes under way, reads it so, and takes what is read into another.
fn overlapping(io_uring: bool) {
    const BLOCK: u64 = 4096;
    const DEPTH: u64 = 40;
    const BLOCKS: u64 = 300;
    let directory = TestDirectory::new();
    let content = Content::Seeded { seed: 11 };
    let io = |n: u64, writes: bool| {
        // Every block once, in an order that is not theirs.
        let at = n * 7 % BLOCKS * BLOCK;
        match writes {
            true => Io::Write { fd: S, at, len: BLOCK, content },
            false => Io::Read { fd: S, at, len: BLOCK },
        }
    };
    let mut steps = vec![open(0, "a", NEW), Op::Mark(Mark::Begin(0)).into()];
    for writes in [true, false] {
        for n in 0..BLOCKS + DEPTH {
            if n >= DEPTH {
                steps.push(Op::Finish.into());
            }
            if n < BLOCKS {
                steps.push(Op::Start { tag: n as u32, io: io(n, writes) }.into());
            }
        }
        // Zeroes from memory that held seeded bytes; a read beyond the end; then a synchronous operation
        // while one is under way.
        let at = BLOCKS * BLOCK;
        steps.push(Op::Start { tag: 1, io: Io::Read { fd: S, at: at + 100, len: 10 } }.into());
        let zeroes = Io::Write { fd: S, at, len: 50, content: Content::Zeroes };
        steps.extend([Op::Finish.into(), Op::Start { tag: 2, io: zeroes }.into()]);
        steps.extend([write(T, 1, Content::Zeroes, 1), Op::Finish.into()]);
    }
    steps.insert(1, open(7, "b", NEW));
    let check = look(|files| {
        let found = fs::read(files.join("a")).unwrap();
        let blocks = (BLOCKS * BLOCK) as usize;
        assert!(found[..blocks] == seeded(11, blocks));
        assert_eq!(found[blocks..], [0; 50]);
    });
    steps.push(check);
    let (planned, answers) = process(directory.path(), steps);
    let options = DirectoryOptions { io_uring, ..quiet() };
    let record = run_with(directory.path(), plan(vec![planned]), options).unwrap();
    let mut finished = Vec::new();
    for answer in answers.all() {
        if let OpResult::Finished { tag, moved } = answer {
            finished.push((tag, moved));
        }
    }
    let (first, second) = finished.split_at(BLOCKS as usize + 2);
    for half in [first, second] {
        let (blocks, rest) = half.split_at(BLOCKS as usize);
        assert_eq!(rest, [(1, 0), (2, 50)]);
        let mut tags: Vec<u32> = blocks.iter().map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        assert!(tags.iter().copied().eq(0..BLOCKS as u32), "every tag once");
        assert!(blocks.iter().all(|(_, moved)| *moved == BLOCK));
    }
    let phase = record.phase(0).unwrap();
    assert_eq!((phase.writes.count, phase.reads.count), (BLOCKS + 4, BLOCKS + 2));
    assert_eq!(phase.reads.bytes, BLOCKS * BLOCK);
    let told = record.warnings.iter().any(|warning| warning.contains("not io_uring"));
    assert!(told || io_uring, "{:?}", record.warnings);
}

#[test]
fn operations_overlap_through_io_uring() {
    overlapping(true);
}

#[test]
fn operations_overlap_through_threads() {
    overlapping(false);
}

#[test]
fn barriers_hold_until_all_are_there() {
    const PROCESSES: u32 = 5;
    let directory = TestDirectory::new();
    let count = Arc::new(AtomicU32::new(0));
    let mut processes = Vec::new();
    for process_number in 0..PROCESSES {
        let mut steps = Vec::new();
        for round in 1..=20 {
            let add = Arc::clone(&count);
            let see = Arc::clone(&count);
            steps.push(look(move |_| {
                add.fetch_add(1, Ordering::SeqCst);
            }));
            steps.push(Op::Barrier(1).into());
            steps.push(look(move |_| {
                assert_eq!(
                    see.load(Ordering::SeqCst),
                    round * PROCESSES,
                    "process {process_number}"
                );
            }));
            steps.push(Op::Barrier(0).into());
        }
        processes.push(process(directory.path(), steps).0);
    }
    let barriers = vec![PROCESSES; 2];
    run(directory.path(), Plan { barriers, ..plan(processes) }).unwrap();
}

#[test]
fn every_ticket_is_taken_once() {
    let directory = TestDirectory::new();
    let take = || Step::from(Op::Take { queue: 0 });
    let taker = || process(directory.path(), (0..100).map(|_| take()).collect());
    let put = |ticket, times| Step::from(Op::Put { queue: 0, ticket, times });
    let mut puts: Vec<Step> = (0..150).map(|n| put(n, 1)).collect();
    puts.extend([put(-1, 150), Op::Take { queue: 1 }.into()]);
    // The one that puts waits at last for a ticket of one that took all of its own.
    let (first, first_answers) = taker();
    let (second, second_answers) = taker();
    let mut last: Vec<Step> = (0..100).map(|_| take()).collect();
    last.push(Op::Put { queue: 1, ticket: 77, times: 1 }.into());
    let (last, last_answers) = process(directory.path(), last);
    let (putter, putter_answers) = process(directory.path(), puts);
    let processes = vec![first, second, last, putter];
    run(directory.path(), Plan { queues: 2, ..plan(processes) }).unwrap();
    let mut tickets: Vec<i64> = [first_answers, second_answers, last_answers]
        .iter()
        .flat_map(|answers| answers.all())
        .filter_map(
            |answer| if let OpResult::Ticket(ticket) = answer { Some(ticket) } else { None },
        )
        .collect();
    tickets.sort_unstable();
    assert!(tickets.into_iter().eq(std::iter::repeat_n(-1, 150).chain(0..150)));
    assert_eq!(putter_answers.all().last(), Some(&OpResult::Ticket(77)));
}

#[test]
fn what_is_measured_is_what_was_done() {
    let directory = TestDirectory::new();
    let mark = |mark| Step::from(Op::Mark(mark));
    let pause = Nanos::from_millis(3);
    let steps = vec![
        open(0, "a", NEW),
        write(S, 100, Content::Zeroes, 7),
        mark(Mark::Begin(1)),
        write(S, 100, Content::Zeroes, 5),
        Op::Fsync { fd: S }.into(),
        seek(S, Seek::Start(0)),
        read(S, 1000, 5),
        read(S, 1000, 5),
        Op::Stat { path: FilePath::target("a") }.into(),
        mark(Mark::GroupBegin),
        Op::At(Io::Read { fd: S, at: 0, len: 50 }).into(),
        Op::Sleep(pause).into(),
        Op::At(Io::Write { fd: S, at: 0, len: 50, content: Content::Zeroes }).into(),
        mark(Mark::GroupEnd(Class::Write)),
        mark(Mark::End(1)),
        mark(Mark::Begin(0)),
        Op::Compute(pause).into(),
        mark(Mark::End(0)),
    ];
    let (planned, _) = process(directory.path(), steps);
    let plan = Plan { phases: vec!["burn", "move"], ..plan(vec![planned]) };
    let record = run(directory.path(), plan).unwrap();
    assert_eq!(record.phases, ["burn", "move"]);
    let moved = record.phase(1).unwrap();
    assert_eq!((moved.writes.count, moved.writes.bytes), (6, 550));
    assert_eq!((moved.reads.count, moved.reads.bytes), (2, 1250), "50 of them within a write");
    assert_eq!(moved.others.count, 2, "the sync and the name");
    assert!(moved.writes.max >= pause, "the group holds the pause");
    assert!(moved.took() >= moved.writes.total + moved.reads.total + moved.others.total);
    let burnt = record.phase(0).unwrap();
    assert_eq!(burnt.reads.count + burnt.writes.count + burnt.others.count, 0);
    // The clock for CPU time and the account of it differ by less than a millisecond.
    assert!(burnt.cpu.unwrap().sum() >= Nanos::from_millis(2), "{burnt:?}");
    assert!(record.process_cpu.unwrap().sum() >= burnt.cpu.unwrap().sum());
    assert!(record.system_cpu.is_some());
    assert!(record.last_done() >= moved.took() + burnt.took());
}

#[test]
fn stages_follow_each_other_and_material_comes_from_elsewhere() {
    let directory = TestDirectory::new();
    let elsewhere = TestDirectory::new();
    let other = elsewhere.path().to_path_buf();
    let bytes = SeededBytes { seed: 9, len: 3 << 20 };
    let sources = vec![SourceFile { name: "in/a.tar".into(), bytes: Arc::new(bytes) }];
    let archive = FilePath { root: Root::Source, text: "in/a.tar".into() };
    let copy = vec![
        open(7, "copy", NEW),
        Op::Open { fd: S, path: archive, flags: OpenFlags::READ }.into(),
        Op::CopyRange { from: S, to: T, len: 3 << 20 }.into(),
    ];
    let second = vec![
        look(move |_| assert!(files(&other).join("in/a.tar").exists())),
        open(0, "copy", OpenFlags::READ),
        open(1, "more", OpenFlags::WRITE),
    ];
    let prepare = vec![process(directory.path(), copy).0, process(directory.path(), second).0];
    let warm = vec![
        process(directory.path(), vec![open(0, "copy", OpenFlags::READ), read(S, 1 << 20, 9)]).0,
    ];
    let run_it = vec![process(directory.path(), vec![open(0, "more", OpenFlags::READ)]).0];
    let plan = Plan {
        prepare,
        warm,
        sources,
        memory: Memory::Warm,
        expected: vec![expect("copy", bytes)],
        room: 3 << 20,
        ..plan(run_it)
    };
    let options = DirectoryOptions { source_directory: elsewhere.path().into(), ..quiet() };
    let record = run_with(directory.path(), plan, options).unwrap();
    assert!(
        record.memory.starts_with("warm: synced, the target's files dropped"),
        "{}",
        record.memory
    );
    assert_eq!(record.processes.len(), 1);
    assert_eq!((names(directory.path()), names(elsewhere.path())), (vec![], vec![]));
}

/// Bytes through `putc` are work of the CPU and no operation; a run on what was just written begins as
/// preparing left it, which the record says.
#[test]
fn characters_are_no_operations_and_what_was_just_written_is_left_alone() {
    let directory = TestDirectory::new();
    let mark = |mark| Step::from(Op::Mark(mark));
    let make = vec![open(0, "a", OpenFlags::WRITE), write(S, 1 << 20, Content::Zeroes, 4)];
    let prepare = vec![process(directory.path(), make).0];
    let resident = Arc::new(AtomicU32::new(0));
    let pages = Arc::clone(&resident);
    let steps = vec![
        look(move |files| {
            pages.store(resident_pages(&files.join("a")) as u32, Ordering::SeqCst);
        }),
        mark(Mark::Begin(0)),
        Op::StdioBytes(4 << 20).into(),
        mark(Mark::End(0)),
    ];
    let (planned, answers) = process(directory.path(), steps);
    let plan = Plan { prepare, memory: Memory::JustWritten, ..plan(vec![planned]) };
    let record = run(directory.path(), plan).unwrap();
    let phase = record.phase(0).unwrap();
    assert_eq!(phase.reads.count + phase.writes.count + phase.others.count, 0);
    assert!(phase.cpu.unwrap().sum() > Nanos::ZERO, "{phase:?}");
    assert!(
        answers.all().iter().all(|answer| *answer == OpResult::Done || *answer == OpResult::Start)
    );
    let words = "as preparing left it: neither synced nor dropped";
    assert!(record.memory.starts_with(words), "{}", record.memory);
    assert!(record.warnings.is_empty(), "{:?}", record.warnings);
    assert_eq!(resident.load(Ordering::SeqCst), 1_024);
}

#[test]
fn cold_memory_holds_nothing_of_the_files() {
    let directory = TestDirectory::new();
    let make = vec![open(0, "a", OpenFlags::WRITE), write(S, 1 << 20, Content::Zeroes, 4)];
    let prepare = vec![process(directory.path(), make).0];
    let found = Arc::new(AtomicU32::new(u32::MAX));
    let pages = Arc::clone(&found);
    let resident = look(move |files| {
        pages.store(resident_pages(&files.join("a")) as u32, Ordering::SeqCst);
    });
    let run_it = vec![process(directory.path(), vec![resident]).0];
    let record =
        run(directory.path(), Plan { prepare, memory: Memory::Cold, ..plan(run_it) }).unwrap();
    assert!(
        record.memory.starts_with("cold: synced, then the target's files"),
        "{}",
        record.memory
    );
    assert!(record.memory.contains("read-ahead"), "{}", record.memory);
    let in_memory = record.warnings.iter().any(|warning| warning.contains("filesystem in memory"));
    assert_eq!(found.load(Ordering::SeqCst), if in_memory { 1024 } else { 0 });
}

/// Pages of a file that memory holds.
fn resident_pages(path: &std::path::Path) -> usize {
    let file = fs::File::open(path).unwrap();
    let len = file.metadata().unwrap().len() as usize;
    let mut pages = vec![0u8; len.div_ceil(4096)];
    // SAFETY: a mapping of an open file at an address of the kernel's choice; nothing is read through it.
    unsafe {
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
        let none = std::ptr::null_mut();
        let at = libc::mmap(none, len, libc::PROT_READ, libc::MAP_SHARED, descriptor, 0);
        assert_ne!(at, libc::MAP_FAILED);
        assert_eq!(libc::mincore(at, len, pages.as_mut_ptr()), 0);
        libc::munmap(at, len);
    }
    pages.iter().filter(|page| **page & 1 != 0).count()
}

/// Room that is reserved is there before anything is written to it.
#[test]
fn room_for_a_file_is_reserved() {
    let directory = TestDirectory::new();
    const LEN: u64 = 8 << 20;
    let steps = vec![
        open(0, "a", NEW),
        Op::Allocate { fd: S, len: LEN }.into(),
        look(|files| {
            let there = fs::metadata(files.join("a")).unwrap();
            // Blocks of 512 bytes, as stat(2) counts; a hole has none.
            assert_eq!((there.len(), there.blocks() * 512 >= LEN), (LEN, true));
        }),
        close(0),
    ];
    run_steps(directory.path(), steps).unwrap();
}
