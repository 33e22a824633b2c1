//! The calls of jobs on their files, beside those that fio 3.33 was seen to make of the same options (by `strace`, as
//! `fio_strace.rs` still does where both programs are there), and what follows from its manual where chance has a say.

use std::collections::BTreeSet;

use raidlab_core::Time;
use raidlab_workload::null::NullStep;
use raidlab_workload::{Io, Mark, Op, OpResult, Seek, Setting};

use crate::support::{run, workload};

/// Jobs, and fio's calls: reads, writes, seeks, `f`syncs, f`d`atasyncs and `p`auses; of files behind the first with a
/// letter; where, in KiB, and how much where it is not 4 KiB.
#[rustfmt::skip]
const SEEN: &[(&str, &str)] = &[
    ("rw=read\nsize=10k", "r0 r4"),
    ("rw=write\nsize=10k", "w0 w4"),
    ("rw=write\nsize=64k\nfsync=4\nend_fsync=1",
     "w0 w4 w8 w12 f w16 w20 w24 w28 f w32 w36 w40 w44 f w48 w52 w56 w60 f"),
    ("rw=write\nsize=64k\nfsync=4", "w0 w4 w8 w12 f w16 w20 w24 w28 f w32 w36 w40 w44 f w48 w52 w56 w60"),
    ("rw=write\nsize=64k\nfdatasync=3",
     "w0 w4 w8 d w12 w16 w20 d w24 w28 w32 d w36 w40 w44 d w48 w52 w56 d w60"),
    ("rw=write\nsize=32k\nfsync=4\nloops=3",
     "w0 w4 w8 w12 f w16 w20 w24 w28 f f w0 w4 w8 w12 f w16 w20 w24 w28 f f w0 w4 w8 w12 f w16 w20 w24 \
      w28"),
    ("rw=write\nsize=16k\nfsync=3\nloops=3", "w0 w4 w8 f w12 w0 w4 f w8 w12 w0 f w4 w8 w12"),
    ("rw=write\nsize=16k\nfdatasync=4\nloops=2", "w0 w4 w8 w12 d d w0 w4 w8 w12"),
    ("rw=write\nsize=16k\nfsync=4\nio_size=48k", "w0 w4 w8 w12 f f w0 w4 w8 w12 f f w0 w4 w8 w12"),
    ("rw=write\nsize=16k\nfsync=4\nnumber_ios=4", "w0 w4 w8 w12"),
    ("rw=write\nsize=64k\nbs=8k,16k\nfsync_on_close=1", "w0+16 w16+16 w32+16 w48+16 f"),
    ("rw=write:8k\nsize=32k", "w0 w12 w24 w0 w12 w24 w0 w12"),
    ("rw=read:-8k\nsize=32k", "r0 r24 r20 r16 r12 r8 r4 r0"),
    ("rw=read\nsize=8k\nloops=3", "r0 r4 r0 r4 r0 r4"),
    ("rw=read\nsize=8k\nio_size=20k", "r0 r4 r0 r4 r0"),
    ("rw=write\nsize=8k\nio_size=20k", "w0 w4 w0 w4 w0"),
    ("rw=write\nsize=16k\nio_size=0", "w0 w4 w8 w12"),
    ("rw=read\nsize=16k\nio_limit=0", "r0 r4 r8 r12"),
    ("rw=write\nsize=16k\nio_size=0%", "w0 w4 w8 w12"),
    ("rw=write\nfilesize=16k\nsize=0%", "w0 w4 w8 w12"),
    ("rw=read\nsize=40k\nnrfiles=3", "r0 rb0 rc0 r4 rb4 rc4 r8 rb8 rc8"),
    ("rw=write\nsize=40k\nfilename=j.a:j.b", "w0 wb0 w4 wb4 w8 wb8 w12 wb12 w16 wb16"),
    ("rw=write\nsize=32k\nnrfiles=2\nfsync=1", "w0 fb w4 fb w8 fb w12 fb wb0 fb wb4 fb wb8 fb wb12"),
    ("rw=write\nsize=32k\nnrfiles=2\nfsync=3", "w0 wb0 w4 fb w8 wb4 w12 fb wb8 wb12"),
    ("rw=write\nsize=48k\nnrfiles=3\nfsync=4\nloops=2",
     "w0 wb0 wc0 w4 fb wc4 w8 wb4 wc8 f wb8 wc12 w12 wb12 fc f wb0 wc0 w0 wb4 fc w4 wb8 wc4 w8 fb wc8 w12 \
      wb12 wc12"),
    ("rw=write\nsize=36k\nnrfiles=3\nfdatasync=2", "w0 wb0 dc w4 wb4 dc w8 wb8 dc wc0 wc4 dc wc8"),
    ("rw=write\nsize=20k\nnrfiles=2\nloops=2", "w0 wb0 w4 wb4 w0 wb0 w4 wb4"),
    ("rw=read\nsize=20k\nioengine=sync", "r r r r r"),
    ("rw=write:4k\nsize=20k\nioengine=sync", "w s8 w s16 w"),
    ("rw=write\nsize=16k\noffset=6k", "w6 w10 w14 w18"),
    ("rw=read\nsize=8k\nfilesize=16k", "r0 r4"),
    ("rw=read\nsize=32k\nfilesize=16k", "r0 r4 r8 r12"),
    ("rw=write\nsize=16k\nthinktime=100000\nfsync=2", "w0 p w4 p f w8 p w12 p"),
    ("rw=read\nsize=8k\nthinktime=100000\nloops=2", "r0 p r4 p r0 p r4 p"),
    ("rw=write\nsize=24k\nthinktime=100000\nthinktime_blocks=2\nnumber_ios=4", "w0 w4 p w8 w12 p"),
    ("rw=write\nsize=8k\nthinktime=100000\nverify=crc32c", "w0 p w4 p r0 r4"),
    ("rw=read\nsize=64k\nnumber_ios=5", "r0 r4 r8 r12 r16"),
    ("rw=read\nsize=64k\nnumber_ios=3\nloops=3", "r0 r4 r8 r12 r16 r20 r24 r28 r32"),
    ("rw=write\nsize=64k\nnumber_ios=3\nloops=2", "w0 w4 w8 w12 w16 w20"),
    ("rw=write\nsize=8k\nnumber_ios=5\nloops=4", "w0 w4 w0 w4 w0 w4 w0 w4"),
    ("rw=read\nsize=16k\nnumber_ios=3\nloops=2", "r0 r4 r8 r12 r0 r4"),
    ("rw=write\nsize=16k\nverify=crc32c", "w0 w4 w8 w12 r0 r4 r8 r12"),
    ("rw=write\nsize=16k\nfsync=4\nverify=crc32c", "w0 w4 w8 w12 r0 r4 r8 r12"),
    ("rw=write\nsize=32k\nfsync=4\nverify=crc32c",
     "w0 w4 w8 w12 f w16 w20 w24 w28 r0 r4 r8 r12 r16 r20 r24 r28"),
    ("rw=read\nsize=50%\nfilesize=64k", "r0 r4 r8 r12 r16 r20 r24 r28"),
    ("rw=read\nfilesize=64k\noffset=30%", "r20 r24 r28 r32 r36 r40 r44 r48 r52 r56 r60"),
    ("rw=read\nfilesize=16k\nnrfiles=2", "r0 rb0 r4 rb4 r8 rb8 r12 rb12"),
    ("rw=write\nsize=16k\nfsync=3\nio_size=40k", "w0 w4 w8 f w12 w0 w4 f w8 w12 w0 f w4"),
    ("rw=read\nsize=8k\nnrfiles=2\nnumber_ios=5\nloops=2", "r0 rb0 r0 rb0"),
    ("rw=write\nsize=32k\nthinktime=100000\nthinktime_blocks=3", "w0 w4 w8 p w12 w16 w20 p w24 w28"),
    ("rw=write\nsize=16k\nthinktime=100000\nverify=crc32c\nioengine=sync", "w p w p w p w p r r r r"),
    ("rw=read\nsize=16k\nloops=2\nioengine=sync", "r r r r r r r r"),
    ("rw=write\nsize=12k\nverify=crc32c\nnrfiles=3", "w0 wb0 wc0 r0 rb0 rc0"),
    ("rw=write\nsize=16k\nend_fsync=1\nverify=crc32c", "w0 w4 w8 w12 f r0 r4 r8 r12"),
    ("rw=read\nsize=16k\nend_fsync=1", "r0 r4 r8 r12"),
    ("rw=write\nsize=16k\nio_size=24k\nbs=8k", "w0+8 w8+8 w0+8"),
    ("rw=read\nsize=16k\nio_size=24k\nbs=8k", "r0+8 r8+8 r0+8"),
    ("rw=read\nsize=16k\nio_size=28k\nbs=8k", "r0+8 r8+8 r0+8 r8+8"),
    ("rw=read\nsize=10k\nloops=2", "r0 r4 r0 r4"),
    ("rw=write\nsize=10k\nloops=2", "w0 w4 w0 w4"),
];

/// The same of a run on a target that does nothing.
fn calls(job: &str) -> String {
    let (_, steps) = run(&workload(&format!("[j]\n{job}\n")), 1);
    let call = |NullStep { op, .. }: &NullStep| {
        let (name, fd, at, len) = match op {
            Op::At(Io::Read { fd, at, len }) => ("r", fd, Some(at), *len),
            Op::At(Io::Write { fd, at, len, .. }) => ("w", fd, Some(at), *len),
            Op::Read { fd, len, times: 1 } => ("r", fd, None, *len),
            Op::Write { fd, len, times: 1, .. } => ("w", fd, None, *len),
            Op::Seek { fd, to: Seek::Start(at) } => ("s", fd, Some(at), 4096),
            Op::Fsync { fd } => ("f", fd, None, 4096),
            Op::Fdatasync { fd } => ("d", fd, None, 4096),
            Op::Sleep(_) => return Some("p".to_owned()),
            _ => return None,
        };
        let file = ["", "b", "c"][usize::from(fd.0)];
        let at = at.map_or(String::new(), |at| (at >> 10).to_string());
        let len = if len == 4096 { String::new() } else { format!("+{}", len >> 10) };
        Some(format!("{name}{file}{at}{len}"))
    };
    steps.iter().filter_map(call).collect::<Vec<String>>().join(" ")
}

#[test]
fn calls_are_those_that_fio_was_seen_to_make() {
    for (job, seen) in SEEN {
        assert_eq!(calls(job), *seen, "{job}");
    }
}

/// Whether an operation of a process is a write, and where; nothing else.
fn moves(job: &str) -> Vec<(bool, u64)> {
    let calls = calls(job);
    let moved = calls.split(' ').filter_map(|call| {
        let place = call.trim_start_matches(['r', 'w', 'b', 'c']).split('+').next()?;
        let is_move = call.starts_with(['r', 'w']);
        is_move.then(|| (call.starts_with('w'), place.parse().expect("a place")))
    });
    moved.collect()
}

/// With `randrepeat`, each loop goes through the same places in the same order, and the same way.
#[test]
fn loops_of_a_random_map_repeat() {
    for rw in ["randread", "randwrite", "randrw"] {
        let all = moves(&format!("rw={rw}\nsize=256k\nloops=2"));
        assert_eq!((all.len(), &all[..64]), (128, &all[64..]), "{rw}");
    }
    let all = moves("rw=rw\nsize=256k\nloops=2");
    assert_eq!(all.len(), 128);
    assert!(all.iter().any(|one| one.0) && all.iter().any(|one| !one.0));
}

/// Each file of a process has an order of its own.
#[test]
fn files_have_orders_of_their_own() {
    let calls = calls("rw=randread\nsize=512k\nnrfiles=2");
    let of_second = |call: &&str| call.starts_with("rb");
    let (second, first): (Vec<&str>, Vec<&str>) = calls.split(' ').partition(of_second);
    let places = |calls: Vec<&str>| -> Vec<String> {
        calls.iter().map(|call| call.trim_start_matches(['r', 'b']).to_owned()).collect()
    };
    let (first, second) = (places(first), places(second));
    assert_eq!(first.len(), 64);
    assert_ne!(first, second);
    assert_eq!(first.into_iter().collect::<BTreeSet<_>>(), second.into_iter().collect());
}

/// After so many writes, and not after reads between them, which is where fio goes on flushing; not before the first.
#[test]
fn flushes_of_a_mix_follow_writes() {
    let calls = calls("rw=randrw\nsize=256k\nfsync=3");
    let all: Vec<&str> = calls.split(' ').collect();
    let mut writes = 0;
    for pair in all.windows(2) {
        writes += u32::from(pair[0].starts_with('w'));
        let is_due = pair[0].starts_with('w') && writes.is_multiple_of(3);
        assert_eq!(pair[1] == "f", is_due, "{pair:?} after {writes} writes");
    }
    assert!(writes > 15);
}

/// Without a map a job that goes on past its size makes one long pass: fio opens its file once, draws on, and flushes
/// once where a loop ends.
#[test]
fn places_without_a_map_are_drawn_on() {
    for rw in ["randread", "randwrite", "randrw"] {
        for more in ["loops=2", "io_size=512k"] {
            let job = format!("rw={rw}\nsize=256k\nnorandommap\n{more}");
            let all = moves(&job);
            assert_eq!(all.len(), 128, "{job}");
            let places = |part: &[(bool, u64)]| part.iter().map(|one| one.1).collect::<Vec<_>>();
            assert_ne!(places(&all[..64]), places(&all[64..]), "{job}");
            assert_eq!(dropped(&job).1, 1, "{job}");
        }
    }
    for (job, seen) in [
        ("rw=randwrite\nsize=16k\nfsync=4\nloops=3\nnorandommap", "wwwwfwwwwfwwww"),
        ("rw=randwrite\nsize=16k\nfsync=4\nio_size=48k\nnorandommap", "wwwwfwwwwfwwww"),
        ("rw=randread\nsize=16k\nloops=3\nnumber_ios=5\nnorandommap", "rrrrrrrrrrrr"),
        ("rw=randread\nsize=10k\nloops=2\nnorandommap", "rrrrr"),
    ] {
        let made: String = calls(job).chars().filter(char::is_ascii_alphabetic).collect();
        assert_eq!(made, seen, "{job}");
    }
}

/// The share of reads is exact at its ends.
#[test]
fn all_or_none_of_a_mix_are_reads() {
    for (percent, writes) in [(0, 1024), (100, 0)] {
        for rw in ["rw", "randrw"] {
            let all = moves(&format!("rw={rw}\nsize=4m\nrwmixread={percent}"));
            let count = all.iter().filter(|one| one.0).count();
            assert_eq!((all.len(), count), (1024, writes), "{rw}, {percent} %");
        }
    }
}

/// Blocks are whole: a rest at the end of a file is never read, with a map or without one.
#[test]
fn random_places_are_whole_blocks() {
    for more in ["", "norandommap"] {
        let all = moves(&format!("rw=randread\nbs=8k\nsize=30k\n{more}"));
        let expected = if more.is_empty() { 3 } else { 4 };
        assert_eq!(all.len(), expected, "{more}");
        assert!(all.iter().all(|one| [0, 8, 16].contains(&one.1)), "{all:?}");
        for seed in 1..20 {
            // 30 KiB of each loop, or three whole blocks.
            let job = format!("rw=randread\nbs=8k\nsize=30k\nloops=4\nrandseed={seed}\n{more}");
            let all = moves(&job);
            assert_eq!(all.len(), if more.is_empty() { 12 } else { 15 }, "{job}");
            assert!(all.iter().all(|one| one.1 <= 16), "{job}");
        }
    }
}

/// Reads and writes have the sizes of their own, and each goes on where the one before of its way ended.
#[test]
fn each_way_of_a_mix_has_its_blocks() {
    let calls = calls("rw=rw\nsize=1m\nbs=4k,16k");
    let mut ended = [0, 0];
    for call in calls.split(' ') {
        let (way, len, more) = if call.starts_with('w') { (1, 16, "+16") } else { (0, 4, "") };
        let expected = format!("{}{}{more}", ["r", "w"][way], ended[way]);
        assert_eq!(call, expected);
        ended[way] += len;
    }
    assert!(ended[0] > 64 && ended[1] > 256, "{ended:?}");
}

/// What was written is read back in the files' turns, from the first file on, and nothing that was not.
#[test]
fn only_what_was_written_is_read_back() {
    let several = calls("rw=write\nsize=24k\nnrfiles=3\nverify=md5");
    assert_eq!(several, "w0 wb0 wc0 w4 wb4 wc4 r0 rb0 rc0 r4 rb4 rc4");
}

/// A process of a job whose clock is the test's: what it asks for at each time.
struct Clocked(Box<dyn raidlab_workload::Process>);

impl Clocked {
    fn new(job: &str) -> Self {
        let plan = workload(&format!("[j]\n{job}\n")).plan(&Setting::new(1, 1));
        Self(plan.expect("a plan").run.remove(0).process)
    }

    fn at(&mut self, micros: u64) -> Op {
        self.0.next(Time(micros * 1_000), OpResult::Done)
    }

    /// Goes on at one time until a read is asked for.
    fn first_read(&mut self, micros: u64) {
        while !matches!(self.at(micros), Op::At(Io::Read { .. })) {}
    }
}

/// A job is over when its runtime is, not after one more operation; with a ramp before it, as much later.
#[test]
fn a_runtime_ends_on_time() {
    for (more, end) in [("", 1_000), ("ramp_time=500us", 1_500)] {
        let job = format!("rw=read\nsize=1m\nruntime=1ms\n{more}");
        let mut process = Clocked::new(&job);
        process.first_read(0);
        loop {
            // Measuring may begin in between.
            match process.at(end - 1) {
                Op::Mark(Mark::Begin(0)) => {}
                op => break assert!(matches!(op, Op::At(_)), "{more}: {op:?}"),
            }
        }
        assert_eq!(process.at(end), Op::Mark(Mark::End(0)), "{more}");
    }
}

#[test]
fn measuring_begins_with_the_end_of_the_ramp() {
    let mut process = Clocked::new("rw=read\nsize=1m\nruntime=1ms\nramp_time=500us");
    process.first_read(0);
    assert!(matches!(process.at(499), Op::At(_)));
    assert_eq!(process.at(500), Op::Mark(Mark::Begin(0)));
    assert!(matches!(process.at(501), Op::At(_)));
}

/// A delay is from the start of the job file, whenever the process comes to it.
#[test]
fn a_delay_is_what_is_left_of_it() {
    let delayed = "rw=read\nsize=64k\nstartdelay=3ms";
    assert_eq!(Clocked::new(delayed).at(1_000), Op::Sleep(raidlab_core::Nanos::from_millis(2)));
    assert!(!matches!(Clocked::new(delayed).at(3_000), Op::Sleep(_)));
}

/// How often page caches are dropped and files opened.
fn dropped(job: &str) -> (usize, usize) {
    let (_, steps) = run(&workload(&format!("[j]\n{job}\n")), 1);
    let count = |is: fn(&Op) -> bool| steps.iter().filter(|step| is(&step.op)).count();
    (count(|op| matches!(op, Op::Open { .. })), count(|op| matches!(op, Op::DropCached { .. })))
}

/// When a file begins again without being opened again its cache is dropped, unless reads are past it.
#[test]
fn caches_are_dropped_again_unless_io_is_direct() {
    for job in [
        "rw=read\nsize=16k\ntime_based\nruntime=100us",
        "rw=read\nsize=16k\nnrfiles=2\ntime_based\nruntime=100us",
        "rw=randread\nsize=16k\ntime_based\nruntime=100us",
    ] {
        // Those that lay a file out before the run have none.
        let opened = if job.contains("nrfiles") { 2 } else { 1 };
        let (buffered, direct) = (dropped(job), dropped(&format!("{job}\ndirect=1")));
        assert!(buffered.1 >= 3, "{job}: {buffered:?}");
        assert_eq!(direct.1, opened, "{job}: {direct:?}");
        assert_eq!(dropped(&format!("{job}\ninvalidate=0")).1, 0, "{job}");
    }
}

/// Each loop opens its files again, whichever way it goes, and so does one that goes on past its size.
#[test]
fn loops_open_their_files_again() {
    let opened = |job: &str| {
        let (_, steps) = run(&workload(&format!("[j]\n{job}\nfallocate=none\n")), 1);
        let begun = steps.iter().position(|step| matches!(step.op, Op::Mark(Mark::Begin(0))));
        let steps = &steps[begun.expect("it begins")..];
        let count = |is: fn(&Op) -> bool| steps.iter().filter(|step| is(&step.op)).count();
        let closed = count(|op| matches!(op, Op::Close { .. }));
        let opened = count(|op| matches!(op, Op::Open { .. }));
        assert_eq!(opened, closed, "{job}");
        assert_eq!(opened, count(|op| matches!(op, Op::DropCached { .. })), "{job}");
        opened
    };
    for rw in ["read", "write", "rw", "randread", "randwrite", "randrw"] {
        let job = format!("rw={rw}\nsize=16k");
        assert_eq!(opened(&job), 1, "{rw}");
        assert_eq!(opened(&format!("{job}\nloops=3")), 3, "{rw}");
        assert_eq!(opened(&format!("{job}\nloops=3\nnrfiles=2")), 6, "{rw}");
    }
    for rw in ["read", "write", "randread", "randwrite"] {
        assert_eq!(opened(&format!("rw={rw}\nsize=16k\nio_size=48k")), 3, "{rw}");
    }
}

#[test]
fn nothing_is_removed_where_nothing_is() {
    let removes = |engine: &str| {
        let job = format!("[j]\nrw=write\nsize=8k\nunlink=1\nioengine={engine}\n");
        let (_, steps) = run(&workload(&job), 1);
        steps.iter().filter(|step| matches!(step.op, Op::Unlink { .. })).count()
    };
    assert_eq!((removes("psync"), removes("null")), (1, 0));
}
