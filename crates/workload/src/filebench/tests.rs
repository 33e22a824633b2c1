//! What each personality asks for, against the facts of its workload file, on the target that does nothing.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_core::Time;

use super::personality::{Flowop, SetSpec};
use super::*;
use crate::kinds;
use crate::null::{NullStep, NullTarget};
use crate::op::{Class, Content, FilePath, Io, Mark, OpResult, Root, Seek};
use crate::plan::Memory;
use crate::record::{PhaseRecord, ProcessRecord};

fn parameters(text: &str) -> Parameters {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    Parameters::new(pairs).expect("no key twice")
}

fn workload(text: &str) -> Arc<dyn Workload> {
    kinds::make("filebench", parameters(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn run_on(text: &str, seed: u64, copies: u32) -> (NullTarget, RunRecord) {
    let mut target = NullTarget::default();
    target.keep_steps();
    let plan = workload(text).plan(&Setting::new(copies, seed)).expect("a plan");
    assert!(plan.needs_filesystem.is_some() && plan.asks_time);
    let record = target.run(plan).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    (target, record)
}

fn run(text: &str) -> (NullTarget, RunRecord) {
    run_on(text, 1, 1)
}

/// What a process asked for, a word for each, without what is between threads.
fn words(target: &NullTarget, process: usize) -> Vec<String> {
    let mine = target.steps().iter().filter(|step| step.process == process);
    mine.filter_map(|step| word(&step.op)).collect()
}

fn word(op: &Op) -> Option<String> {
    Some(match op {
        Op::Open { flags, .. } => match (flags.create, flags.write, flags.sync) {
            (true, ..) => "create".into(),
            (_, false, _) => "open-to-read".into(),
            (_, _, true) => "open-synced".into(),
            _ => "open".into(),
        },
        Op::Close { .. } => "close".into(),
        Op::Unlink { .. } => "delete".into(),
        Op::Stat { .. } => "stat".into(),
        Op::Fsync { .. } => "fsync".into(),
        Op::Seek { to: Seek::End, .. } => "append".into(),
        Op::Seek { to: Seek::Start(0), .. } => "rewind".into(),
        Op::Seek { .. } => "seek".into(),
        Op::Read { len, .. } => format!("read {}", len >> 10),
        Op::Write { .. } => "write".into(),
        Op::At(Io::Read { len, .. }) => format!("pread {}", len >> 10),
        Op::Start { io: Io::Write { len, .. }, .. } => format!("aiowrite {}", len >> 10),
        Op::Finish => "finish".into(),
        Op::Compute(time) => format!("hog {}", time.0),
        Op::Mark(Mark::GroupEnd(Class::Read)) => "=read".into(),
        Op::Mark(Mark::GroupEnd(Class::Write)) => "=write".into(),
        Op::Mark(Mark::GroupEnd(Class::Other)) => "=other".into(),
        _ => return None,
    })
}

const OPEN_READ_CLOSE: &str = "open =other rewind read 1024 read 1024 =read close =other";

fn joined(target: &NullTarget, process: usize) -> String {
    words(target, process).join(" ")
}

/// Threads that do some flowops on one set, so many times.
fn run_alone(
    flowops: &[Flowop],
    spec: SetSpec,
    threads: u32,
    loops: u64,
) -> (NullTarget, RunRecord) {
    let set = FileSet::new(spec, 0, 7, 1 + threads as usize);
    let prepare: Vec<Op> = set.prepare().collect();
    let end = (End::Loops(loops), threads);
    let shared = Shared::new(vec![set], Vec::new(), Events::new(0), end);
    let shared = Arc::new(Mutex::new(shared));
    let thread = |index: u32| {
        let rotor = 1 + index as usize;
        let place = Place { queue: index as u16, rotor, semaphores: 0, is_counted: true };
        let thread = Thread::new(Arc::clone(&shared), flowops.into(), mix(&[index.into()]), place);
        Planned { copy: 0, process: Box::new(thread) }
    };
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(Plan {
        prepare: vec![planned(0, prepare.into_iter())],
        run: (0..threads).map(thread).collect(),
        phases: vec!["work"],
        queues: threads as u16,
        ..Plan::default()
    });
    (target, record.unwrap_or_else(|error| panic!("{flowops:?}: {error:?}")))
}

/// Files of one size, all of them there.
fn alike(files: u64, size: u64) -> SetSpec {
    let (name, share, width) = ("set", 100, 20);
    SetSpec { name, files, size, varies: false, width, share, is_read_only: false }
}

/// A file that somebody has open stays, which counts for nothing; once it is closed it goes.
#[test]
fn what_is_open_is_not_deleted_before_it_is_closed() {
    let (set, fd) = (0, 1);
    let delete = Flowop::Delete { set };
    let flowops =
        [Flowop::Open { set, fd }, delete, Flowop::Stat { set }, Flowop::Close { fd }, delete];
    let (target, record) = run_alone(&flowops, alike(1, 4096), 1, 1);
    assert_eq!(joined(&target, 0), "open =other stat =other close =other delete =other");
    assert_eq!(all(&record).count, 4);
}

/// Who makes a file has it open.
#[test]
fn what_was_made_is_open() {
    let (set, fd) = (0, 1);
    let delete = Flowop::Delete { set };
    let flowops = [Flowop::Create { set, fd }, delete, Flowop::Close { fd }, delete];
    let (target, _) = run_alone(&flowops, SetSpec { share: 0, ..alike(1, 4096) }, 1, 2);
    let once = "create =other close =other delete =other";
    assert_eq!(joined(&target, 0), format!("{once} {once}"));
}

/// Appends are shorter than they may be; one of nothing counts, and asks for nothing.
#[test]
fn an_append_of_nothing_is_one() {
    let append = |len| [Flowop::Append { set: 0, fd: 1, len }];
    let (target, record) = run_alone(&append(1), alike(1, 0), 1, 3);
    assert_eq!(joined(&target, 0), "open =other =write =write =write");
    assert_eq!((record.totals().writes.count, record.totals().writes.bytes), (3, 0));
    let (_, record) = run_alone(&append(2), alike(1, 0), 1, 1_000);
    let writes = record.totals().writes;
    assert_eq!(writes.count, 1_000);
    // Of 0 or 1 byte each: six deviations are 95.
    assert!((405..=595).contains(&writes.bytes), "{}", writes.bytes);
}

/// Whole pieces, also the last; a file that is shorter than one is written as long as it is. It is read to its end.
#[test]
fn files_are_written_in_whole_pieces_and_read_until_nothing_comes() {
    let (set, fd, len) = (0, 1, 1 << 20);
    let flowops = [
        Flowop::Open { set, fd },
        Flowop::WriteWhole { fd, len },
        Flowop::ReadWhole { fd, len },
        Flowop::Close { fd },
    ];
    for (kib, written, reads) in [(100, 100, 2), (1024, 1024, 2), (2560, 3072, 4), (4096, 4096, 5)]
    {
        let (target, record) = run_alone(&flowops, alike(1, kib << 10), 1, 1);
        let totals = record.totals();
        assert_eq!((totals.writes.count, totals.writes.bytes), (1, written << 10), "{kib} KiB");
        assert_eq!((totals.reads.count, totals.reads.bytes), (1, written << 10), "{kib} KiB");
        let asked = words(&target, 0).iter().filter(|word| *word == "read 1024").count();
        assert_eq!(asked, reads, "{kib} KiB");
    }
}

/// Each thread goes through all files by itself, from the first on that nobody opens just now, and through its
/// descriptors from the last down.
#[test]
fn each_thread_goes_through_the_files_in_turn_by_itself() {
    let (target, _) =
        run_alone(&[Flowop::ReadRandom { set: 0, len: 4096 }], alike(5, 1 << 20), 3, 40);
    for process in 0..3 {
        let mine = target.steps().iter().filter(|step| step.process == process);
        let opened = mine.filter_map(|step| match &step.op {
            Op::Open { fd, path, .. } => Some((path.clone(), fd.0)),
            _ => None,
        });
        let (paths, fds): (Vec<FilePath>, Vec<u16>) = opened.unzip();
        let files: BTreeSet<&FilePath> = paths.iter().collect();
        let from_first = files.iter().copied().cycle().skip_while(|path| *path != &paths[0]);
        assert!(paths.iter().eq(from_first.take(40)), "{process}: {paths:?}");
        assert_eq!(files.len(), 5, "{process}");
        assert!(fds.into_iter().eq((88..128).rev()), "{process}");
    }
}

/// Places are blocks from the start on; the last block is reached only by the greatest of all numbers.
#[test]
fn random_reads_and_writes_go_to_all_blocks() {
    let (set, len) = (0, 2048);
    let write = Flowop::WriteAhead { set, len, times: 1, turns: false };
    for flowops in [vec![Flowop::ReadRandom { set, len }], vec![write, Flowop::Wait]] {
        let (target, _) = run_alone(&flowops, alike(1, 9 * len), 1, 2_000);
        let mut blocks = [0; 9];
        for step in target.steps() {
            let (Op::At(io) | Op::Start { io, .. }) = step.op else { continue };
            let (Io::Read { at, len: bytes, .. } | Io::Write { at, len: bytes, .. }) = io;
            assert_eq!((bytes, at % len), (len, 0));
            blocks[(at / len) as usize] += 1;
        }
        // 250 each; six deviations are 89.
        assert!(blocks[..8].iter().all(|times| (161..340).contains(times)), "{blocks:?}");
        assert!(blocks[8] < 10, "{blocks:?}");
    }
}

/// Threads of the workload file at its own scale, and flowops that count in a loop.
#[test]
fn each_personality_has_the_threads_and_flowops_of_its_file() {
    for (name, threads, flowops) in [
        ("fileserver", 50, 11),
        ("varmail", 16, 13),
        // With the first append a log is opened, which counts.
        ("webserver", 100, 32),
        ("webproxy", 100, 19),
    ] {
        let (_, record) = run(&format!("personality={name} loops=1"));
        assert_eq!(record.processes.len(), threads, "{name}");
        let counted = all(&record).count;
        let expected = threads as u64 * flowops;
        // What somebody has open is not deleted, and does not count.
        assert!(counted <= expected && counted >= expected - threads as u64, "{name}: {counted}");
    }
}

#[test]
fn fileserver_makes_appends_to_reads_and_deletes_files() {
    let (target, _) = run("personality=fileserver threads=1 files=60 loops=1 size=100KiB");
    let expected = "create =other write =write close =other open =other append write =write close =other \
        open =other rewind read 1024 read 1024 =read close =other delete =other stat =other";
    assert_eq!(joined(&target, 0), expected);
}

#[test]
fn varmail_makes_each_append_durable() {
    let (target, _) = run("personality=varmail threads=1 files=60 loops=1");
    let expected = "delete =other create =other append write =write fsync =other close =other open =other \
        rewind read 1024 read 1024 =read append write =write fsync =other close =other";
    assert_eq!(joined(&target, 0), format!("{expected} {OPEN_READ_CLOSE}"));
}

#[test]
fn webserver_reads_ten_files_and_appends_to_the_log() {
    let (target, _) = run("personality=webserver threads=2 files=60 loops=2");
    let reads = vec![OPEN_READ_CLOSE.replacen("open", "open-to-read", 1); 10].join(" ");
    let first = format!("{reads} open =other append write =write");
    assert_eq!(joined(&target, 0), format!("{first} {reads} append write =write"));
}

#[test]
fn webproxy_replaces_a_file_and_reads_five() {
    let (target, _) = run("personality=webproxy threads=1 files=60 loops=1");
    let expected = "delete =other create =other append write =write close =other";
    assert_eq!(joined(&target, 0), format!("{expected} {}", [OPEN_READ_CLOSE; 5].join(" ")));
    let plan = workload("personality=webproxy files=2000 loops=1").plan(&Setting::new(1, 1));
    let sizes: Vec<u64> = made(plan.expect("a plan"));
    assert!(sizes.iter().all(|size| *size == 16 << 10), "all alike");
}

/// Sizes of the files that are there at the start.
fn made(plan: Plan) -> Vec<u64> {
    let mut target = NullTarget::default();
    let plan = Plan { run: Vec::new(), ..plan };
    target.run(plan).expect("makes files");
    sizes_of(&target)
}

/// Sizes of the files that are there.
fn sizes_of(target: &NullTarget) -> Vec<u64> {
    let names = target.names();
    let mut sizes = Vec::new();
    let mut left = vec![FilePath { root: Root::Target, text: "".into() }];
    while let Some(directory) = left.pop() {
        for entry in names.list(&directory).expect("is there") {
            let text = format!("{}/{}", directory.text, entry.name);
            let path = FilePath::target(text.trim_start_matches('/'));
            if entry.is_directory {
                left.push(path);
            } else {
                sizes.push(names.status(names.find(&path).expect("there")).size);
            }
        }
    }
    sizes
}

#[test]
fn files_are_as_many_and_as_large_as_the_workload_file_says() {
    for (name, files, share, mean) in [
        ("fileserver", 10_000, 0.8, 131_072.0),
        ("varmail", 1_000, 0.8, 16_384.0),
        ("webserver", 1_001, 1.0, 16_384.0),
        ("webproxy", 10_000, 0.8, 16_384.0),
        ("oltp", 11, 1.0, 10_485_760.0),
    ] {
        let text = format!("personality={name}");
        let sizes = made(workload(&text).plan(&Setting::new(1, 3)).expect("a plan"));
        let (count, files) = (sizes.len() as f64, f64::from(files));
        // Within five deviations of the binomial law; whole sets are whole.
        let off = 5.0 * f64::sqrt(files * share * (1.0 - share));
        assert!((count - files * share).abs() <= off, "{name}: {count}");
        let average = sizes.iter().sum::<u64>() as f64 / count;
        let deviation = mean / f64::sqrt(1.5 * count);
        assert!((average - mean).abs() < 4.0 * deviation, "{name}: {average}");
    }
    let small = workload("personality=videoserver size=1MiB");
    let videos = made(small.plan(&Setting::new(1, 3)).expect("a plan"));
    assert!(videos.iter().all(|size| *size == 1 << 20));
    assert!((32 + 97 - 35..32 + 97 + 35).contains(&videos.len()), "{}", videos.len());
}

#[test]
fn appends_are_up_to_16_kib_and_whole_pieces_are_written() {
    let (target, _) = run("personality=varmail threads=4 files=400 loops=200");
    let appended = |step: &NullStep| match step.op {
        Op::Write { len, times, .. } => Some((len, times)),
        _ => None,
    };
    let appends: Vec<(u64, u64)> = target.steps().iter().filter_map(appended).collect();
    assert!(appends.iter().all(|(len, times)| (1..16_384).contains(len) && *times == 1));
    let mean = appends.iter().map(|(len, _)| len).sum::<u64>() / appends.len() as u64;
    assert!((7_800..8_600).contains(&mean), "uniform: {mean}");

    // Of files of 2.5 MiB in the mean the last piece of 1 MiB is written whole; of those below 1 MiB it is the file.
    let (target, _) = run("personality=fileserver threads=1 files=60 loops=40 size=2560KiB");
    let writes: Vec<(u64, u64)> = target.steps().iter().filter_map(appended).collect();
    assert!(writes.iter().any(|(len, times)| *len == 1 << 20 && *times > 1));
    assert!(writes.iter().all(|(len, times)| *len <= 1 << 20 && (*times == 1 || *len == 1 << 20)));
}

/// A shadow reads 2 KiB of each data file in turn, opened once for each of 128 descriptors, and posts to the log writer
/// and to each of the writers.
#[test]
fn oltp_reads_in_turn_and_writes_synced() {
    let (target, record) = run("personality=oltp threads=3 writers=2 files=4 loops=300");
    assert_eq!(record.processes.len(), 3 + 1 + 2);
    let mine = words(&target, 0);
    let count = |words: &[String], word: &str| words.iter().filter(|one| *one == word).count();
    assert_eq!((count(&mine, "open"), count(&mine, "pread 2")), (128, 300));
    assert_eq!(count(&mine, "hog 200000"), 300);
    let puts = target.steps().iter().filter(|step| matches!(step.op, Op::At(_)));
    let mut files: BTreeMap<u16, u64> = BTreeMap::new();
    for step in puts {
        let Op::At(Io::Read { fd, at, len }) = step.op else { panic!("a read") };
        assert!(at.is_multiple_of(2048) && at + len <= 10 << 20);
        *files.entry(fd.0).or_default() += 1;
    }
    assert_eq!((files.len(), files[&127], files[&0]), (128, 9, 6), "300 = 2 x 128 + 44");
    // 900 posts are less than a writer waits for: each writes a hundred at once and blocks.
    let writer = words(&target, 4);
    assert_eq!((count(&writer, "aiowrite 2"), count(&writer, "open-synced")), (100, 100));
    assert_eq!((count(&writer, "hog 10000"), count(&writer, "finish")), (1, 0));
    let log = words(&target, 3);
    assert_eq!(log[..5], ["open-synced", "=other", "aiowrite 256", "finish", "=other"]);
}

/// The writers go on with each 1,000 posts, the log writer with each 3,200, and wait for half of what is under way.
#[test]
fn semaphores_couple_writers_to_readers() {
    let (target, _) = run("personality=oltp threads=5 writers=3 files=4 loops=1250");
    let count = |process: usize, word: &str| {
        words(&target, process).iter().filter(|one| *one == word).count()
    };
    // 6,250 posts: six thousands, 3,200 once. Each began once before.
    for writer in [6, 7, 8] {
        assert_eq!(count(writer, "aiowrite 2"), 700, "writer {writer}");
    }
    assert_eq!(count(5, "aiowrite 256"), 2);
    // Of 100 half, then of what is left and 100 more, and so on.
    let mut under_way = 0;
    let finished: usize = (0..6)
        .map(|_| {
            under_way += 100;
            let waits = under_way / 2;
            under_way -= waits;
            waits
        })
        .sum();
    assert_eq!(count(6, "finish"), finished);
}

/// Who blocks for two posts lets two more come each time, so that it goes on for ever; all who wait to post go on
/// when they may.
#[test]
fn as_many_posts_may_come_as_are_blocked_for() {
    let mut pair = Semaphores::new(0);
    assert_eq!([1, 2, 3].map(|queue| pair.post(queue)), [Err(()); 3]);
    assert_eq!((pair.raise(2), pair.raise(1)), (vec![1, 2], vec![3]));

    let semaphores = vec![Semaphores::new(2)];
    let shared = Shared::new(Vec::new(), semaphores, Events::new(0), (End::Loops(100), 1));
    let shared = Arc::new(Mutex::new(shared));
    let thread = |queue, flowop: Flowop, is_counted| {
        let place = Place { queue, rotor: 0, semaphores: 0, is_counted };
        let thread = Thread::new(Arc::clone(&shared), [flowop].into(), 1, place);
        Planned { copy: 0, process: Box::new(thread) }
    };
    let posts = thread(0, Flowop::Post { first: 0, count: 1 }, true);
    let blocks = thread(1, Flowop::Block(2), false);
    let plan =
        Plan { run: vec![posts, blocks], phases: vec!["work"], queues: 2, ..Plan::default() };
    NullTarget::default().run(plan).expect("nobody waits for ever");
}

/// So many posts may come before a writer blocks for the first time: its `highwater`.
#[test]
fn semaphores_begin_as_high_as_the_workload_file_says() {
    let groups = Personality::new(Name::Oltp, &Name::Oltp.usual()).groups;
    let begin: Vec<_> = groups.iter().map(|group| (group.threads, group.semaphores)).collect();
    assert_eq!(begin, [(200, None), (1, Some((0, 1_000))), (10, Some((1, 2_000)))]);
}

/// 96 events a second of a MiB each; each reader is given an event for four reads, from its second on.
#[test]
fn videos_are_sent_at_the_rate_of_events() {
    let text = "personality=videoserver size=16MiB threads=8 time=20s";
    let (target, record) = run(text);
    let read = record.totals().reads;
    let mib = read.bytes as f64 / f64::from(1 << 20);
    assert!((mib / 20.0 / 96.0 - 1.0).abs() < 0.03, "{mib} MiB in 20 s");
    let took = workload(text).values(&record);
    assert!(took[0].is_some_and(|ops| (ops / (96.0 * 4.0) - 1.0).abs() < 0.1), "{took:?}");
    // The writer replaces a video each 10 s: at 0, 10, and not at 20.
    let writer = joined(&target, 8);
    let cycle = "delete =other create =other write =write close =other";
    assert_eq!(writer, format!("{cycle} {cycle}"));
    // Ten events after 10 s: each had a read for nothing and one that waits; an event is good for four more.
    let (_, slow) = run("personality=videoserver size=16MiB threads=8 time=15s rate=1");
    assert_eq!(slow.totals().reads.count, 8 * 2 + 10 * 4);
    // Who waits for an event, or until the next video is due, waits no longer than the run.
    assert!(slow.last_done() < Nanos::from_millis(15_100), "{:?}", slow.last_done());
    let least = slow.processes[..8].iter().map(|one| one.phases[0].reads.count).min();
    assert_eq!(least, Some(6), "nobody takes two at once");
    let (_, free) = run("personality=videoserver size=16MiB threads=2 time=1s rate=0");
    assert!(free.totals().reads.bytes > 10 * (96 << 20), "without events nothing limits");
    // A video ends, and begins again.
    assert!(words(&target, 0).iter().any(|word| word == "rewind"));
}

#[test]
fn a_run_ends_by_time_or_by_loops() {
    let (target, _) = run("personality=varmail threads=2 files=400 time=3ms");
    let last = target.steps().iter().map(|step| step.at.0).max().expect("steps");
    assert!((3_000_000..3_100_000).contains(&last), "{last}");
    let deleted = |loops: u32| {
        let (target, _) = run(&format!("personality=fileserver threads=2 files=400 loops={loops}"));
        words(&target, 1).iter().filter(|word| *word == "create").count()
    };
    assert_eq!((deleted(1), deleted(7)), (1, 7));
}

/// Of two videos each is there with one half: with a quarter of the seeds none is, and the writer finds none to delete.
#[test]
fn a_run_without_files_left_is_over() {
    let counted = |seed| {
        let text = "personality=videoserver size=1MiB passive=2 threads=2 loops=1000 rate=0";
        all(&run_on(text, seed, 1).1).count
    };
    let runs: Vec<u64> = (0..24).map(counted).collect();
    let over = runs.iter().filter(|counted| **counted < 10).count();
    assert!((1..16).contains(&over), "{runs:?}");
    assert!(runs.iter().filter(|counted| **counted >= 2_000).count() == 24 - over, "{runs:?}");
}

#[test]
fn what_is_asked_for_comes_from_the_seed() {
    let steps = |seed| {
        let (target, _) = run_on("personality=fileserver threads=3 files=90 loops=5", seed, 2);
        format!("{:?}", target.steps().iter().map(|step| &step.op).collect::<Vec<_>>())
    };
    assert_eq!(steps(1), steps(1));
    assert_ne!(steps(1), steps(2));
}

#[test]
fn what_stays_is_expected() {
    let expected =
        |text: &str| workload(text).plan(&Setting::new(2, 1)).expect("a plan").expected.len();
    assert_eq!(expected("personality=webserver files=50 loops=1"), 100);
    assert_eq!(expected("personality=oltp loops=1"), 22);
    assert_eq!(expected("personality=videoserver size=1MiB"), 64);
    assert_eq!(expected("personality=varmail loops=1"), 0);
    let unchecked = Setting { checked: false, ..Setting::new(2, 1) };
    let plan = workload("personality=oltp").plan(&unchecked).expect("a plan");
    assert!(plan.expected.is_empty());
}

#[test]
fn nonsense_is_named() {
    for (text, words) in [
        ("personality=mail", "personality: `mail` is not one of fileserver, varmail,"),
        ("files=0", "files: `0` is not a whole number from 1"),
        (
            "files=100",
            "files: 100 are too few for 50 threads that make and delete them; at least 500",
        ),
        ("threads=5000", "threads: `5000` is not a whole number"),
        ("personality=oltp threads=4090", "threads: 4101 in all are more than 4096"),
        ("personality=oltp size=1KiB", "size: 1KiB is less than a read of 2KiB"),
        ("size=32TiB", "size: 32TiB is too large"),
        ("time=5s loops=3", "loops: a run ends by time or by loops"),
        ("time=0s", "time: is 0"),
        ("loops=0", "loops: `0` is not"),
        ("writers=3", "writers: is none of fileserver's but of oltp"),
        ("rate=3", "rate: is none of fileserver's but of oltp and videoserver"),
        ("personality=oltp passive=3", "passive: is none of oltp's but of videoserver"),
        ("metric=iops", "metric: `iops` is not one of ops_per_s,"),
        ("nfiles=3", "nfiles: is not a parameter"),
    ] {
        let error = kinds::make("filebench", parameters(text)).expect_err(text).to_string();
        assert!(error.starts_with(words), "{text}: {error}");
    }
    let Err(many) = workload("personality=webproxy").plan(&Setting::new(50, 1)) else {
        panic!("too many");
    };
    assert!(many.to_string().starts_with("threads: 50 copies have 5000"), "{many}");
    // Not the plan in the message, which is long.
    let Err(raw) = workload("loops=1").check_raw(1 << 40, 1, 512) else { panic!("no files") };
    assert!(raw.to_string().contains("by name: it needs a filesystem"), "{raw}");
}

#[test]
fn values_words_and_sizes() {
    let mail = workload("personality=varmail loops=3 metric=latency_p99_ms");
    let words = "filebench's varmail: 16 threads on 1000 files of 16KiB in the mean, 3 times each";
    assert_eq!((mail.description().as_str(), mail.default_name().as_str()), (words, "varmail"));
    let names: Vec<&str> = mail.metrics().iter().map(|metric| metric.name).collect();
    assert_eq!(names, ["latency_p99_ms", "ops_per_s", "mib_per_s", "latency_mean_ms"]);
    let (_, record) = run("personality=varmail loops=3");
    let values = mail.values(&record);
    let took = record.last_done().as_secs();
    assert_eq!(values[1], Some(all(&record).count as f64 / took));
    assert!(values.iter().all(|value| value.is_some_and(|value| value > 0.0)), "{values:?}");
    let resized = |text: &str, bytes| workload(text).resized(bytes).map(|one| one.description());
    let more = resized("personality=webserver", 32 << 20).expect("a size");
    assert!(more.contains("2048 files of 16KiB"), "{more}");
    let more = resized("personality=oltp", 1 << 30).expect("a size");
    assert!(more.contains("10 files of 102.4MiB") || more.contains("10 files of"), "{more}");
    assert!(resized("personality=varmail", 16 << 10).is_err(), "one file for 16 threads");
}

/// A process of a copy: when it was done, and what it did.
fn process(copy: u32, seconds: u64, did: impl FnOnce(&mut PhaseRecord)) -> ProcessRecord {
    let mut phase = PhaseRecord::default();
    did(&mut phase);
    ProcessRecord { copy, ended: Time(seconds * 1_000_000_000), phases: vec![phase] }
}

/// Two copies of two readers, the log writer and a writer: all that they did, in the time until the last reader was
/// done.
#[test]
fn figures_are_of_all_that_was_done_until_the_last_counted_thread_was() {
    let oltp = workload("personality=oltp threads=2 writers=1 loops=1");
    let nothing = |_: &mut PhaseRecord| ();
    let processes = vec![
        process(0, 3, |phase| {
            (0..970).for_each(|_| phase.reads.add(2 << 10, Nanos::from_millis(1)));
        }),
        process(0, 7, nothing),
        process(0, 20, |phase| {
            (0..15).for_each(|_| phase.writes.add(2 << 20, Nanos::from_millis(50)));
        }),
        process(0, 30, |phase| {
            (0..15).for_each(|_| phase.others.add(0, Nanos::from_millis(100)));
        }),
        process(1, 8, nothing),
        process(1, 5, nothing),
        process(1, 21, nothing),
        process(1, 31, nothing),
    ];
    let values = oltp.values(&RunRecord { processes, ..RunRecord::default() });
    let [ops, mib, mean, p99] = values[..] else { panic!("{values:?}") };
    assert_eq!(ops, Some(1_000.0 / 8.0));
    assert_eq!(mib, Some((970.0 * 2.0 / 1_024.0 + 15.0 * 2.0) / 8.0));
    let is_near =
        |value: Option<f64>, to: f64, by| value.is_some_and(|one| (one / to - 1.0).abs() < by);
    assert!(is_near(mean, (970.0 + 15.0 * 50.0 + 15.0 * 100.0) / 1_000.0, 1e-9), "{mean:?}");
    assert!(is_near(p99, 100.0, 0.011), "the tenth slowest: {p99:?}");
}

/// A file of 16 KiB with an append takes 32 KiB, whether it is there at first or made later.
#[test]
fn room_is_for_all_files_with_an_append_each() {
    let room =
        |text: &str, copies| workload(text).plan(&Setting::new(copies, 1)).expect("a plan").room;
    let webproxy = "personality=webproxy files=2000 loops=1";
    // And two directories: the set's own, and the one that all lie in.
    assert_eq!(room(webproxy, 1), 2_000 * (32 << 10) + 2 * 4096);
    assert_eq!(room(webproxy, 3), 3 * room(webproxy, 1));
    let log = |loops| room(&format!("personality=webserver threads=3 loops={loops}"), 1);
    assert_eq!(log(9) - log(1), 8 * 3 * (16 << 10), "what the log grows by at most");
}

/// Files are written in whole pieces of 1 MiB, the last one too: they are longer than they were drawn to be.
#[test]
fn room_is_for_files_as_long_as_they_are_written() {
    let room = |size: &str| {
        let text = format!("personality=videoserver files=4 passive=10 size={size} loops=1");
        workload(&text).plan(&Setting::new(1, 1)).expect("a plan").room
    };
    // What is watched is not written again.
    let watched = 4 * 1028 * 1024;
    assert!(room("1028KiB") >= watched + 10 * (2 << 20), "{}", room("1028KiB"));
    assert!(room("2MiB") < 14 * (2 << 20) + (1 << 20), "{}", room("2MiB"));
    let text = "personality=fileserver threads=1 files=60 size=1100KiB loops=60";
    let mut target = NullTarget::default();
    let plan = workload(text).plan(&Setting::new(1, 1)).expect("a plan");
    let room = plan.room;
    target.run(plan).expect("it runs");
    let there: u64 = sizes_of(&target).into_iter().map(|size| size.next_multiple_of(4096)).sum();
    assert!(there <= room, "{there} bytes in a room of {room}");
}

/// So many bytes are in the files of a copy, watched or not.
#[test]
fn another_size_is_shared_by_all_files() {
    for (text, gib, files) in [
        ("personality=fileserver", 2, "16384 files of 128KiB"),
        ("personality=varmail", 1, "65536 files of 16KiB"),
        ("personality=webproxy", 1, "65536 files of 16KiB"),
        ("personality=oltp", 10, "10 files of 1GiB"),
        ("personality=videoserver", 226, "32 files of 1GiB"),
        ("personality=videoserver files=4 passive=6", 30, "4 files of 3GiB"),
    ] {
        let told = workload(text).resized(gib << 30).expect("a size").description();
        assert!(told.contains(files) && told.ends_with("for 60 s"), "{text}: {told}");
    }
}

#[test]
fn memory_is_empty_unless_files_were_just_written() {
    let memory = |text: &str| workload(text).plan(&Setting::new(1, 1)).expect("a plan").memory;
    assert_eq!(memory("personality=webserver"), Memory::Cold);
    assert_eq!(memory("personality=webserver just_written=true"), Memory::JustWritten);
}

/// What is asked for while files are made.
fn prepared(plan: &mut Plan) -> Vec<Op> {
    let ops = |mut planned: Planned| {
        let next = move || match planned.process.next(Time::ZERO, OpResult::Done) {
            Op::Done => None,
            op => Some(op),
        };
        std::iter::from_fn(next)
    };
    plan.prepare.drain(..).flat_map(ops).collect()
}

/// Each file that stays is expected to hold what was written to it, as much of it and of that seed; no two files hold
/// the same, of no set or copy.
#[test]
fn what_is_expected_is_what_is_made() {
    for text in
        ["personality=webserver files=90", "personality=oltp", "personality=videoserver size=3MiB"]
    {
        let mut plan = workload(text).plan(&Setting::new(2, 1)).expect("a plan");
        let mut made: BTreeMap<FilePath, (u64, BTreeSet<u64>)> = BTreeMap::new();
        let mut open = None;
        for op in prepared(&mut plan) {
            match op {
                Op::Open { path, .. } => open = Some(path),
                Op::Write { len, times, content, .. } => {
                    let Content::Seeded { seed } = content else { panic!("{content:?}") };
                    let file = made.entry(open.clone().expect("open")).or_default();
                    file.0 += len * times;
                    file.1.insert(seed);
                }
                _ => {}
            }
        }
        let mut seeds = BTreeSet::new();
        for expected in &plan.expected {
            let (len, seed) = made.get(&expected.path).cloned().unwrap_or_default();
            assert_eq!(expected.bytes.len(), len, "{text}: {}", expected.path);
            let Some(seed) = seed.into_iter().next() else { continue };
            let (mut found, mut wanted) = ([0; 16], [0; 16]);
            let both = (len as usize).min(16);
            expected.bytes.fill(0, &mut found[..both]);
            crate::content::fill(seed, 0, &mut wanted[..both]);
            assert_eq!(found, wanted, "{text}: {}", expected.path);
            assert!(seeds.insert(seed), "{text}: another file holds the same as {}", expected.path);
        }
        assert!(seeds.len() > 21, "{text}: {}", seeds.len());
    }
}

/// Threads, and copies, draw numbers of their own.
#[test]
fn threads_and_copies_draw_for_themselves() {
    let (target, _) = run_on("personality=webserver files=50 threads=2 loops=9", 1, 2);
    let appends = |process| -> Vec<u64> {
        let mine = target.steps().iter().filter(|step| step.process == process);
        let written = |step: &NullStep| match step.op {
            Op::Write { len, .. } => Some(len),
            _ => None,
        };
        mine.filter_map(written).collect()
    };
    let all: BTreeSet<Vec<u64>> = (0..4).map(appends).collect();
    assert_eq!(all.len(), 4, "{all:?}");
}

/// A reader is given an event for each read, as soon as it has read: at most one is done more than events came.
#[test]
fn readers_of_a_database_are_given_events() {
    let text = "personality=oltp threads=4 writers=1 rate=100 time=2s";
    let (_, record) = run(text);
    let reads = record.totals().reads.count;
    // Ten each tenth of a second, 200 in all; four wait at the end.
    assert!((190..=204).contains(&reads), "{reads}");
}
