//! What jobs ask for on a target that does nothing, where an operation takes a microsecond.

use crate::support;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use raidlab_core::Time;
use raidlab_workload::null::{NullStep, NullTarget};
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Io, Mark, Memory, Op, OpResult, Parameters, Setting,
    WorkloadErrorKind, fio, make,
};

use crate::support::{run, workload};

/// The reads and writes of a process: whether it is a write, where, how much.
fn moves(steps: &[NullStep], process: usize) -> Vec<(bool, u64, u64)> {
    let of_io = |io: &Io| match *io {
        Io::Read { at, len, .. } => (false, at, len),
        Io::Write { at, len, .. } => (true, at, len),
    };
    let own = steps.iter().filter(|step| step.process == process);
    own.filter_map(|step| match &step.op {
        Op::At(io) | Op::Start { io, .. } => Some(of_io(io)),
        _ => None,
    })
    .collect()
}

fn marks(steps: &[NullStep], process: usize) -> Vec<(Mark, Time)> {
    let own = steps.iter().filter(|step| step.process == process);
    own.filter_map(|step| match step.op {
        Op::Mark(mark) => Some((mark, step.at)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_random_map_meets_every_block_once_and_repeats() {
    let text = "[j]\nrw=randrw\nsize=4m\nrwmixread=75\n";
    let (_, steps) = run(&workload(text), 1);
    let all = moves(&steps, 0);
    let places: BTreeSet<u64> = all.iter().map(|one| one.1).collect();
    assert_eq!((all.len(), places.len()), (1024, 1024));
    let reads = all.iter().filter(|one| !one.0).count();
    // Six standard deviations: sqrt(1,024 x 3/4 x 1/4) = 13.9.
    assert!(reads.abs_diff(768) < 84, "{reads}");
    assert_eq!(moves(&run(&workload(text), 1).1, 0), all, "the same places each time");
    let other = moves(&run(&workload(&format!("{text}randseed=9\n")), 1).1, 0);
    assert_ne!(other, all);
    // Without a map, blocks come again: of 1,024 draws 1 - 1/e of the blocks are met.
    let (_, steps) = run(&workload(&format!("{text}norandommap\n")), 1);
    let places: BTreeSet<u64> = moves(&steps, 0).iter().map(|one| one.1).collect();
    assert!(places.len().abs_diff(647) < 80, "{}", places.len());
}

#[test]
fn depth_is_kept_full_and_flushes_wait() {
    let text = "[j]\nrw=randwrite\nsize=1m\nioengine=libaio\niodepth=8\nfsync=100\nend_fsync=1\n";
    let (record, steps) = run(&workload(text), 1);
    let (mut under_way, mut most, mut writes, mut flushes) = (VecDeque::new(), 0, 0, Vec::new());
    for step in &steps {
        match step.op {
            Op::Start { tag, .. } => {
                assert!(!under_way.contains(&tag) && tag < 8);
                under_way.push_back(tag);
                most = most.max(under_way.len());
                writes += 1;
            }
            Op::Finish => {
                // The target that does nothing finishes in the order of starting.
                under_way.pop_front();
            }
            Op::Fsync { .. } => {
                assert!(under_way.is_empty());
                flushes.push(writes);
            }
            _ => {}
        }
    }
    assert_eq!((most, writes), (8, 256));
    assert_eq!(flushes, [100, 200, 256]);
    assert_eq!(record.totals().writes.count, 256);
    // A synchronous engine does one at a time whatever the depth.
    let (_, steps) = run(&workload(&text.replace("libaio", "psync")), 1);
    assert!(!steps.iter().any(|step| matches!(step.op, Op::Start { .. } | Op::Finish)));
}

/// How many operations are under way before each of a process starts.
fn under_way(text: &str) -> Vec<usize> {
    let (_, steps) = run(&workload(text), 1);
    let mut count = 0;
    let before = |step: &NullStep| match step.op {
        Op::Start { .. } => {
            count += 1;
            Some(count - 1)
        }
        Op::Finish => {
            count -= 1;
            None
        }
        _ => None,
    };
    steps.iter().filter_map(before).collect()
}

/// A time-based job goes on at the start of its file with its depth full; one that repeats a number of times waits,
/// and so do several files and a rest of less than a block. Seen by tracing fio 3.33.
#[test]
fn depth_is_kept_full_where_a_file_begins_again() {
    let job = "[j]\nbs=4k\nioengine=libaio\niodepth=4\ndirect=1\n";
    let timed = format!("{job}time_based\nruntime=1ms\n");
    for more in ["rw=read\nsize=64k\n", "rw=write\nsize=64k\n", "rw=rw\nsize=64k\n"] {
        let before = under_way(&format!("{timed}{more}"));
        assert!(before.len() > 100, "{more}: {}", before.len());
        assert!(before[4..].iter().all(|count| *count == 3), "{more}: {before:?}");
    }
    for waits in [
        format!("{job}rw=read\nsize=64k\nloops=3\n"),
        format!("{timed}rw=read\nsize=64k\nnrfiles=2\n"),
        format!("{timed}rw=read\nsize=66k\n"),
    ] {
        let before = under_way(&waits);
        assert_eq!((before[15], before[16], before[17]), (3, 0, 1), "{waits}");
    }
    // Each way begins again on its own, wherever the other one is.
    let (_, steps) = run(&workload("[j]\nrw=rw\nsize=64k\ntime_based\nruntime=1ms\n"), 1);
    for is_write in [false, true] {
        let places = moves(&steps, 0).into_iter().filter(|one| one.0 == is_write);
        let places: Vec<u64> = places.map(|one| one.1 >> 12).collect();
        assert!(places.len() > 100 && places.iter().zip(0..).all(|(at, n)| *at == n % 16));
    }
    // What was read before is dropped from memory each time.
    let (_, steps) = run(&workload("[j]\nrw=read\nsize=64k\ntime_based\nruntime=1ms\n"), 1);
    let drops = steps.iter().filter(|step| matches!(step.op, Op::DropCached { .. })).count();
    assert_eq!(drops, moves(&steps, 0).len().div_ceil(16));
}

#[test]
fn walls_keep_waves_apart_in_each_copy() {
    let text =
        "[global]\nsize=64k\nrw=write\n[a]\nnumjobs=2\n[b]\n[c]\nstonewall\n[d]\nstonewall\n";
    let (record, steps) = run(&workload(text), 2);
    assert_eq!(record.processes.len(), 10);
    let span = |process: usize| {
        let marks = marks(&steps, process);
        assert_eq!([marks[0].0, marks[1].0], [Mark::Begin(0), Mark::End(0)]);
        (marks[0].1, marks[1].1)
    };
    for copy in 0..2 {
        let [a0, a1, b, c, d] = [0, 1, 2, 3, 4].map(|process| span(copy * 5 + process));
        assert!([a0, a1, b].iter().all(|one| one.1 <= c.0 && one.0 < c.0), "{a0:?} {c:?}");
        assert!(c.1 <= d.0);
        let together = |x: (Time, Time), y: (Time, Time)| x.0 < y.1 && y.0 < x.1;
        assert!(together(a0, a1) && together(a0, b));
    }
    let names: BTreeSet<String> = steps
        .iter()
        .filter_map(|step| match &step.op {
            Op::Open { path, .. } => Some(path.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(names.len(), 10, "each copy has files of its own: {names:?}");
}

#[test]
fn times_ramps_and_delays() {
    let text = "[j]\nrw=read\nsize=64k\ntime_based\nruntime=5ms\nramp_time=2ms\nstartdelay=3ms\n";
    let (record, steps) = run(&workload(text), 1);
    let marks = marks(&steps, 0);
    let millis = |time: Time| time.0 / 1_000_000;
    assert_eq!([marks[0].0, marks[1].0], [Mark::Begin(0), Mark::End(0)]);
    assert_eq!([millis(marks[0].1), millis(marks[1].1)], [5, 10]);
    let counted = record.totals().reads.count;
    let done = moves(&steps, 0).len() as u64;
    assert!(counted < done && counted.abs_diff(done * 5 / 7) < 20, "{counted} of {done}");
    // The file is read again and again.
    assert_eq!(moves(&steps, 0)[16..18], [(false, 0, 4096), (false, 4096, 4096)]);
    // So it is whatever number of operations it has.
    let (_, steps) = run(&workload(&format!("{text}number_ios=10\n")), 1);
    assert_eq!(moves(&steps, 0).len() as u64, done);
    // A time-based random job draws another order each time, as fio does.
    let (_, steps) = run(&workload(&text.replace("rw=read", "rw=randread")), 1);
    let all = moves(&steps, 0);
    assert_ne!(all[..16], all[16..32]);
    let sorted = |part: &[(bool, u64, u64)]| part.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!((sorted(&all[16..32]).len(), sorted(&all[..16])), (16, sorted(&all[16..32])));
    // So it goes on drawing which way the next operation goes.
    let (_, steps) = run(&workload(&text.replace("rw=read", "rw=rw")), 1);
    let ways: Vec<bool> = moves(&steps, 0).iter().map(|one| one.0).collect();
    assert!(ways.len() > 1000);
    assert!((16..64).all(|pass| ways[..64] != ways[pass..pass + 64]));
    // Without time_based, the runtime only cuts short.
    let short = "[j]\nrw=read\nsize=64m\nruntime=1ms\n";
    let count = moves(&run(&workload(short), 1).1, 0).len();
    assert!((900..=1000).contains(&count), "{count}");
}

/// Who walks through a plan without a clock gets to its end.
#[test]
fn a_delay_is_asked_for_once() {
    let text = "[j]\nrw=read\nsize=64k\nstartdelay=3ms\n";
    let mut plan = workload(text).plan(&Setting::new(1, 1)).expect("a plan");
    let process = &mut plan.run[0].process;
    let ops: Vec<Op> = std::iter::repeat_with(|| process.next(Time::ZERO, OpResult::Done))
        .take(100)
        .take_while(|op| *op != Op::Done)
        .collect();
    let sleeps = ops.iter().filter(|op| matches!(op, Op::Sleep(_))).count();
    let reads = ops.iter().filter(|op| matches!(op, Op::At(_))).count();
    assert_eq!((sleeps, reads), (1, 16));
}

#[test]
fn pauses_numbers_and_removal() {
    let text =
        "[j]\nrw=write\nsize=64k\nnumber_ios=5\nthinktime=100us\nthinktime_blocks=2\nunlink=1\n";
    let (_, steps) = run(&workload(text), 1);
    assert_eq!(moves(&steps, 0).len(), 5);
    assert_eq!(steps.iter().filter(|step| matches!(step.op, Op::Sleep(_))).count(), 2);
    // The operation that the runtime ends with has its pause, too.
    for runtime in 1..10 {
        let text = format!("[j]\nrw=write\nsize=64k\nthinktime=3us\nruntime={runtime}us\n");
        let timed = run(&workload(&text), 1).1;
        let pauses = timed.iter().filter(|step| matches!(step.op, Op::Sleep(_))).count();
        assert_eq!(pauses, moves(&timed, 0).len(), "{runtime} us");
    }
    let removed = Op::Unlink { path: FilePath::target("j.0.0") };
    assert!(steps.iter().any(|step| step.op == removed));
    let shared = workload("[j]\nrw=write\nsize=64k\nfilename=f\nnumjobs=2\nunlink=1\n");
    let error = shared.plan(&Setting::new(1, 1)).unwrap_err();
    assert_eq!(error.to_string(), "unlink: of job `j`: `f` is used by other processes too");
}

#[test]
fn files_to_be_read_are_laid_out_and_known_in_the_end() {
    let plan = |text: &str| workload(text).plan(&Setting::new(1, 7)).expect("a plan");
    let read = plan("[j]\nrw=randread\nsize=3500k\ndirectory=a/b\n");
    assert_eq!((read.prepare.len(), read.expected.len()), (1, 1));
    assert_eq!(read.expected[0].bytes.len(), 3500 << 10);
    assert_eq!(
        (read.files[0].bytes, read.room, read.memory),
        (3500 << 10, 3500 << 10, Memory::Cold)
    );
    let mut target = NullTarget::default();
    target.run(read).expect("runs");
    let id = target.names().find(&FilePath::target("a/b/j.0.0")).expect("made");
    assert_eq!(target.names().status(id).size, 3500 << 10);
    let written = plan("[j]\nrw=randwrite\nsize=1m\ninvalidate=0\n");
    assert_eq!((written.prepare.len(), written.expected.len()), (1, 1), "room is reserved");
    assert_eq!(written.memory, Memory::AsIs);
    // What a mixed job leaves is drawn by lot, and what a time leaves is up to the target.
    for text in ["rw=rw", "rw=write\nruntime=1", "rw=randwrite\nnorandommap", "rw=write:4k"] {
        assert!(plan(&format!("[j]\nsize=1m\n{text}\n")).expected.is_empty(), "{text}");
    }
    // A later wave reads what an earlier one wrote, and nothing is laid out.
    let both =
        plan("[w]\nfilename=f\nsize=1m\nrw=write\n[r]\nfilename=f\nsize=1m\nrw=read\nstonewall\n");
    assert_eq!((both.prepare.len(), both.files.len(), both.expected.len()), (1, 1, 1));
    // One that may be cut short does not make the file for the next.
    let text = "[w]\nfilename=f\nsize=1m\nrw=write\nruntime=1\n[r]\nfilename=f\nsize=1m\nrw=read\nstonewall\n";
    assert_eq!(plan(text).prepare.len(), 1);
    let zeroes = plan("[j]\nrw=write\nsize=1m\nzero_buffers\n");
    let mut bytes = [1; 8];
    zeroes.expected[0].bytes.fill(0, &mut bytes);
    assert_eq!(bytes, [0; 8]);
}

/// Who reads beside the writer of a file, or rewrites it beside him, finds it laid out; behind a wall it is there.
#[test]
fn what_is_written_beside_its_readers_is_laid_out_before() {
    let laid = |text: &str| {
        let plan = workload(text).plan(&Setting::new(1, 7)).expect("a plan");
        let mut laid = 0;
        for mut one in plan.prepare {
            loop {
                match one.process.next(Time::ZERO, OpResult::Done) {
                    Op::Write { len, times, .. } => laid += len * times,
                    Op::Done => break,
                    _ => {}
                }
            }
        }
        laid >> 10
    };
    let writer = "[w]\nrw=write\n";
    for (other, beside, behind) in [
        ("[o]\nrw=read\n", 1024, 0),
        ("[o]\nrw=randrw\n", 1024, 0),
        ("[o]\nrw=randwrite\noverwrite=1\n", 1024, 0),
        ("[o]\nrw=randwrite\n", 0, 0),
        ("[o]\nrw=read\nsize=512k\n", 512, 0),
        ("[o]\nrw=read\nsize=2m\n", 2048, 2048),
    ] {
        let both = format!("[global]\nfilename=f\nsize=1m\n{writer}{other}");
        assert_eq!(laid(&both), beside, "{other}");
        assert_eq!(laid(&format!("{both}stonewall\n")), behind, "{other} behind a wall");
    }
}

/// What is expected in the end is what the writes carry, and not what was laid out before.
#[test]
fn what_is_expected_is_what_is_written() {
    let plan = |text: &str| workload(text).plan(&Setting::new(1, 7)).expect("a plan");
    let text = "[j]\nrw=randwrite\nsize=1m\nbs=64k\noverwrite=1\n";
    let (_, steps) = run(&workload(text), 1);
    let seeds: BTreeSet<u64> = steps
        .iter()
        .filter_map(|step| match step.op {
            Op::At(Io::Write { content: Content::Seeded { seed }, .. }) => Some(seed),
            _ => None,
        })
        .collect();
    assert_eq!(seeds.len(), 1);
    let bytes = |text: &str| {
        let mut into = [0; 64];
        let plan = workload(text).plan(&Setting::new(1, 1)).expect("a plan");
        plan.expected[0].bytes.fill(4096, &mut into);
        into
    };
    let mut written = [0; 64];
    raidlab_workload::content::fill(*seeds.first().expect("one"), 4096, &mut written);
    assert_eq!(bytes(text), written);
    assert_ne!(bytes("[j]\nrw=randread\nsize=1m\n"), written);
    assert_eq!(plan(text).prepare.len(), 1, "overwrite= lays a file out that is only written");
}

#[test]
fn verification_reads_back_what_was_written_in_its_own_phase() {
    let text = "[j]\nrw=randwrite\nsize=256k\nverify=crc32c\nioengine=libaio\niodepth=4\n";
    let (record, steps) = run(&workload(text), 1);
    assert_eq!(record.phases, ["run", "verify"]);
    let phases = &record.processes[0].phases;
    assert_eq!([phases[0].writes.count, phases[0].reads.count], [64, 0]);
    assert_eq!([phases[1].writes.count, phases[1].reads.count], [0, 64]);
    let all = moves(&steps, 0);
    let places = |part: &[(bool, u64, u64)]| part.iter().map(|one| one.1).collect::<Vec<u64>>();
    assert_eq!(places(&all[..64]), places(&all[64..]), "in the order of writing");
    let cannot = workload("[j]\nrw=write\nsize=64k\nverify=md5\nruntime=9\n");
    let error = cannot.plan(&Setting::new(1, 1)).unwrap_err();
    assert_eq!((error.kind, error.key.as_str()), (WorkloadErrorKind::NotSupported, "verify"));
}

#[test]
fn sizes_come_from_the_device_where_nobody_gives_one() {
    let text = "[j]\nrw=randwrite\nbs=64k\nsize=50%\n";
    let raw = Setting { space: Some(8 << 20), ..Setting::new(1, 1) };
    let plan = workload(text).plan(&raw).expect("fits");
    assert_eq!((plan.files[0].bytes, plan.needs_filesystem), (4 << 20, None));
    let error = workload(text).plan(&Setting::new(1, 1)).unwrap_err();
    assert!(error.to_string().starts_with("size: of job `j`: is needed here"), "{error}");
    let small = workload(text).resized(1 << 20).expect("a size");
    assert_eq!(moves(&run(&small, 1).1, 0).len(), 16);
}

#[test]
fn values_are_over_the_waves_that_were_measured() {
    let text = "[a]\nrw=read\nsize=1m\n[b]\nstonewall\nrw=write\nsize=1m\nstartdelay=50ms\n";
    let workload = workload(text);
    let (record, _) = run(&workload, 1);
    let names: Vec<&str> = workload.metrics().iter().map(|metric| metric.name).collect();
    assert_eq!(names, ["mib_per_s", "iops", "latency_mean_ms", "latency_p99_ms"]);
    let took: f64 = record.processes.iter().map(|one| one.phases[0].took().as_secs()).sum();
    assert!(took < 0.001, "the delay between the waves is no part of it: {took}");
    let values = workload.values(&record);
    assert!((values[0].expect("a rate") - 2.0 / took).abs() < 1e-6);
    assert!((values[1].expect("a rate") - 512.0 / took).abs() < 1e-6);
    assert_eq!(values[2], Some(0.001));
    let random = support::workload("[a]\nrw=randread\nsize=1m\n");
    assert_eq!(random.metrics()[0].name, "iops");
}

#[test]
fn reports_are_in_the_form_of_fio() {
    let text =
        "[global]\nsize=1m\nnumjobs=2\ngroup_reporting\n[a]\nrw=randread\n[b]\nrw=write\nfsync=8\n";
    let workload = workload(text);
    let (record, _) = run(&workload, 2);
    let text = workload.format("text", &record, "host").expect("a format");
    for line in [
        "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1",
        "Starting 8 processes",
        "a: (groupid=0, jobs=8): err= 0",
        "    clat (nsec): min=1000, max=1000, avg=1000.00, stdev= 0.00",
        "     |  1.00th=[ 1000],  5.00th=[ 1000], 10.00th=[ 1000], 20.00th=[ 1000],",
        "  lat (usec)   : 2=100.00%",
        "     issued rwts: total=1024,1024,0,124",
        "Run status group 0 (all jobs):",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(text.contains("io=4096KiB (4194kB), run=1-1msec"), "{text}");
    assert_eq!(workload.formats(), ["text", "json"]);
    assert_eq!(workload.format("csv", &record, "host"), None);
}

#[test]
fn errors_name_file_line_and_option() {
    let none = |_: &str| None;
    let error =
        fio::parse("[a]\nsize=1m\nzonemode=zbd\nrw=trim\nfoo\n", "x.fio", &none).unwrap_err();
    assert_eq!(error.kind, WorkloadErrorKind::JobFile);
    assert_eq!(
        error.to_string(),
        "job file x.fio, line 3: option `zonemode` is not supported; also line 4: rw: `trim` is not \
         supported: there is no operation for trim; line 5: option `foo` is not supported"
    );
    let error = fio::parse("[a]\nfilename=/dev/sdb\n", "x.fio", &none).unwrap_err();
    assert!(
        error.to_string().contains("line 2: filename: `/dev/sdb` is a place of its own"),
        "{error}"
    );
    assert!(error.to_string().contains("--target"));
    let error = fio::parse("[global]\nbs=4k\n", "x.fio", &none).unwrap_err();
    assert!(error.to_string().contains("there is no job"), "{error}");
    let file = fio::parse("[a]\nsize=${N}\n[b]\nname=c\n", "d/x.fio", &|_| Some("1m".into()));
    let file = file.expect("right");
    assert_eq!(file.jobs(), ["a", "c"]);
    assert_eq!(file.workload().default_name(), "x");
}

#[test]
fn globals_hold_for_the_jobs_after_them() {
    let text = "[a]\nsize=64k\n[global]\nbs=8k\nsize=64k\n[b]\n[global]\nbs=16k\n[c]\n";
    let (_, steps) = run(&workload(text), 1);
    let blocks: Vec<u64> = (0..3).map(|process| moves(&steps, process)[0].2).collect();
    assert_eq!(blocks, [4096, 8192, 16_384]);
}

#[test]
fn a_job_from_parameters() {
    let given = [
        ("rw", "randread"),
        ("bs", "4k"),
        ("iodepth", "32"),
        ("size", "1m"),
        ("runtime", "2ms"),
        ("time_based", ""),
        ("ioengine", "io_uring"),
    ];
    let made = make("fio", Parameters::new(given).expect("no key twice")).expect("right");
    assert_eq!((made.kind(), made.default_name().as_str()), ("fio", "fio randread"));
    assert_eq!(
        made.description(),
        "a job file of fio: `fio`: randread in blocks of 4KiB, 1MiB, 32 at once, for 0.002 s"
    );
    let (_, steps) = run(&made, 1);
    assert!(steps.iter().any(|step| matches!(step.op, Op::Start { tag: 31, .. })));
    // What decides what a job measures is said.
    let told = |given: &[(&str, &str)]| {
        let head = [("rw", "randwrite"), ("size", "1m")];
        let all = head.iter().chain(given).copied();
        let made = make("fio", Parameters::new(all).expect("no key twice")).expect("right");
        made.description()
    };
    let plain = "a job file of fio: `fio`: randwrite in blocks of 4KiB, 1MiB, one at a time";
    assert_eq!(told(&[]), plain);
    for (given, words) in [
        (&[("fsync", "1")][..], "a flush after each write"),
        (
            &[("fsync", "32"), ("end_fsync", "1")],
            "a flush after every 32 writes, a flush at the end",
        ),
        (&[("fdatasync", "1")], "an fdatasync after each write"),
        (&[("sync", "1")], "each write with O_SYNC"),
        (&[("thinktime", "250us")], "a pause of 250 us after each block"),
        (
            &[("thinktime", "1ms"), ("thinktime_blocks", "8")],
            "a pause of 1000 us after every 8 blocks",
        ),
        (&[("number_ios", "20"), ("loops", "3")], "20 reads and writes at most, 3 times over"),
        (&[("nrfiles", "4")], "over 4 files"),
        (&[("offset", "64k")], "from 64KiB on"),
        (&[("startdelay", "2s")], "begins after 2 s"),
        (&[("io_size", "4m")], "4MiB in all"),
    ] {
        assert_eq!(told(given), format!("{plain}, {words}"));
    }
    let wrong = |pairs: &[(&str, &str)]| {
        let parameters = Parameters::new(pairs.to_vec()).expect("no key twice");
        make("fio", parameters).expect_err("wrong").to_string()
    };
    assert!(wrong(&[("zonemode", "zbd")]).starts_with("zonemode: is not a parameter"));
    assert!(wrong(&[("rw", "trim")]).starts_with("rw: `trim` is not supported"));
    assert_eq!(wrong(&[("time_based", "1")]), "time_based: needs a runtime= too");
}

#[test]
fn several_files_take_turns() {
    let (_, steps) = run(&workload("[j]\nrw=randread\nsize=64k\nnrfiles=4\n"), 1);
    let mut counts: BTreeMap<FileDescriptor, u64> = BTreeMap::new();
    let fds = steps.iter().filter_map(|step| match step.op {
        Op::At(Io::Read { fd, .. }) => Some(fd),
        _ => None,
    });
    for (index, fd) in fds.enumerate() {
        assert_eq!(usize::from(fd.0), index % 4);
        *counts.entry(fd).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 4), "{counts:?}");
}

/// As fio does unless it is told not to: before the run, for files that are only written, too.
#[test]
fn room_is_reserved_unless_a_job_says_none() {
    let allocated = |text: &str| {
        let mut plan = workload(text).plan(&Setting::new(1, 1)).expect("a plan");
        let mut lens = Vec::new();
        for planned in &mut plan.prepare {
            let mut last = OpResult::Start;
            loop {
                match planned.process.next(Time(0), last) {
                    Op::Done => break,
                    Op::Allocate { len, .. } => lens.push(len),
                    _ => {}
                }
                last = OpResult::Done;
            }
        }
        lens
    };
    assert_eq!(allocated("[j]\nrw=write\nsize=1m\nfallocate=native\n"), [1 << 20]);
    assert_eq!(allocated("[j]\nrw=write\nsize=1m\n"), [1 << 20], "as fio by default");
    assert_eq!(allocated("[j]\nrw=randread\nsize=64k\nfallocate=native\n"), [64 << 10]);
    assert_eq!(allocated("[j]\nrw=write\nsize=1m\nfallocate=none\n"), [0u64; 0]);
}

/// A target that prepares what comes next must not prepare what comes after the end.
#[test]
fn jobs_that_go_by_time_look_at_it() {
    let asks = |text: &str| workload(text).plan(&Setting::new(1, 1)).expect("a plan").asks_time;
    assert!(asks("[j]\nrw=randread\nsize=1m\nruntime=2\ntime_based\n"));
    assert!(asks("[j]\nrw=randread\nsize=1m\nruntime=2\n"));
    assert!(asks("[j]\nrw=randread\nsize=1m\nramp_time=2\n"), "measuring begins by time");
    assert!(asks("[j]\nrw=randread\nsize=1m\nstartdelay=2\n"));
    assert!(!asks("[j]\nrw=randread\nsize=1m\n"));
}

#[test]
fn a_file_is_laid_out_in_parts_and_none_takes_memory_before() {
    let plan = workload("[j]\nrw=read\nsize=1025g\n").plan(&Setting::new(1, 1));
    let mut prepare = plan.expect("can be planned").prepare;
    assert!(format!("{prepare:?}").len() < 2_000);
    let (mut written, mut parts) = (0, 0);
    loop {
        match prepare[0].process.next(Time::ZERO, OpResult::Done) {
            Op::Write { len, times, .. } => (written, parts) = (written + len * times, parts + 1),
            Op::Done => break,
            _ => {}
        }
    }
    assert_eq!((written, parts), (1025 << 30, 2_290));
}

#[test]
fn many_files_are_planned_and_too_many_are_refused() {
    let plan = |text: &str| workload(text).plan(&Setting::new(1, 1));
    let job = "[j]\nrw=write\nsize=1g\nverify=crc32c\nnumjobs=128\nnrfiles=1024\n";
    assert_eq!(plan(job).expect("can be planned").expected.len(), 1 << 17);
    let error = plan(&job.replace("128", "257")).expect_err("too many");
    assert!(error.to_string().contains("263168 files of all processes; up to 262144"), "{error}");
    // What all files hold together is more than a number has.
    let huge = plan("[j]\nrw=write\nfilesize=10p\nnrfiles=1024\nnumjobs=2\n");
    assert_eq!(huge.expect("can be planned").room, u64::MAX);
}

/// Unless `invalidate=0`, the page cache of each file is dropped when it is opened; nothing nowhere has none.
#[test]
fn caches_are_dropped_before_files_are_used() {
    let dropped = |options: &str| {
        let text = format!("[j]\nrw=write\nsize=8k\nnrfiles=2\n{options}\n");
        let (_, steps) = run(&workload(&text), 1);
        let of = |is: fn(&Op) -> bool| steps.iter().filter(|step| is(&step.op)).count();
        (of(|op| matches!(op, Op::Open { .. })), of(|op| matches!(op, Op::DropCached { .. })))
    };
    let (opened, cached) = dropped("");
    assert!(opened >= 2 && cached == 2, "{opened} opened, {cached} dropped");
    assert_eq!(dropped("invalidate=0").1, 0);
    assert_eq!(dropped("ioengine=null").1, 0);
}

/// What is read back has the sizes in which it was written, not those of reads.
#[test]
fn verification_reads_blocks_as_they_were_written() {
    let (_, steps) = run(&workload("[j]\nrw=write\nbs=4k,16k\nsize=64k\nverify=md5\n"), 1);
    let all = moves(&steps, 0);
    let lens = |writes: bool| {
        all.iter().filter(|one| one.0 == writes).map(|one| one.2).collect::<Vec<_>>()
    };
    assert_eq!((lens(true), lens(false)), (vec![16 << 10; 4], vec![16 << 10; 4]));
}
