//! tiobench: what its threads ask for, in both generations, and what is printed of a run.

use std::sync::Arc;

use raidlab_core::{Nanos, Time};
use raidlab_workload::null::NullTarget;
use raidlab_workload::{
    Class, Content, Cpu, FileDescriptor, FilePath, Io, Mark, Op, OpenFlags, Parameters,
    PhaseRecord, ProcessRecord, RunRecord, Seek, Setting, Workload, WorkloadErrorKind, make,
};

const SLOT: FileDescriptor = FileDescriptor(0);
const MIB: u64 = 1 << 20;

fn tiobench(kind: &str, parameters: &[(&str, &str)]) -> Arc<dyn Workload> {
    make(kind, Parameters::new(parameters.iter().copied()).expect("no key twice")).expect(kind)
}

/// What each process of the plan asks for.
fn run(workload: &dyn Workload, setting: &Setting) -> (Vec<Vec<Op>>, RunRecord) {
    let plan = workload.plan(setting).expect("it can be");
    let mut ops = vec![Vec::new(); plan.run.len()];
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(plan).expect("it runs");
    target.steps().iter().for_each(|step| ops[step.process].push(step.op.clone()));
    (ops, record)
}

fn fsyncs(ops: &[Vec<Op>]) -> usize {
    ops.iter().flatten().filter(|op| matches!(op, Op::Fsync { .. })).count()
}

/// Where a thread's single reads or writes are, in the order of its phases.
fn places(ops: &[Op]) -> Vec<Vec<u64>> {
    let mut phases = Vec::new();
    for op in ops {
        match op {
            Op::Mark(Mark::Begin(_)) => phases.push(Vec::new()),
            Op::At(Io::Read { at, .. } | Io::Write { at, .. })
            | Op::Seek { to: Seek::Start(at), .. } => {
                phases.last_mut().expect("within a phase").push(*at);
            }
            _ => {}
        }
    }
    phases
}

/// Two threads of 0.3 on 2 MiB: 1 MiB each, 4 blocks of 256 KiB, 2 of 5 operations each.
#[test]
fn the_operations_of_0_3() {
    let parameters = [("size", "2MiB"), ("block", "256KiB"), ("operations", "5"), ("threads", "2")];
    let (ops, record) = run(&*tiobench("tiobench-0.3", &parameters), &Setting::new(1, 7));
    let (len, times, fd, content) = (256 << 10, 4, SLOT, Content::Zeroes);
    let at = |place| Op::Seek { fd, to: Seek::Start(place) };
    for (thread, ops) in ops.iter().enumerate() {
        let path = FilePath::target(format!("tiotest.0.{thread}"));
        let open = |flags| Op::Open { fd, path: path.clone(), flags };
        let (begin, end) =
            (|phase| Op::Mark(Mark::Begin(phase)), |phase| Op::Mark(Mark::End(phase)));
        let random = places(ops);
        let (writes, reads) = (&random[1][1..], &random[3][1..]);
        assert!(writes.iter().chain(reads).all(|at| [0, len, 2 * len].contains(at)), "{random:?}");
        let write = Op::Write { fd, len, content, times: 1 };
        let read = Op::Read { fd, len, times: 1 };
        let only_write = OpenFlags { read: false, ..OpenFlags::BOTH };
        let (fsync, close) = (Op::Fsync { fd }, Op::Close { fd });
        let expected = [
            Op::Barrier(0),
            begin(0),
            open(OpenFlags { read: true, ..OpenFlags::WRITE }),
            at(0),
            Op::Write { fd, len, content, times },
            fsync.clone(),
            close.clone(),
            end(0),
            Op::Barrier(0),
            begin(1),
            open(only_write),
            at(0),
            at(writes[0]),
            write.clone(),
            at(writes[1]),
            write,
            fsync,
            close.clone(),
            end(1),
            Op::Barrier(0),
            begin(2),
            open(OpenFlags::READ),
            at(0),
            Op::Read { fd, len, times },
            close.clone(),
            end(2),
            Op::Barrier(0),
            begin(3),
            open(OpenFlags::READ),
            at(0),
            at(reads[0]),
            read.clone(),
            at(reads[1]),
            read,
            close,
            end(3),
            Op::Done,
        ];
        assert_eq!(ops[..], expected);
    }
    assert_eq!(fsyncs(&ops), 4);
    assert!(record.processes.iter().all(|process| process.copy == 0));
    let bytes = |phase: PhaseRecord| (phase.writes.bytes, phase.reads.bytes);
    let phases = (0..4).map(|index| bytes(record.phase(index).expect("it ran")));
    assert!(phases.eq([(2 * MIB, 0), (MIB, 0), (0, 2 * MIB), (0, MIB)]));
}

/// The same of 0.4: opened for both and made as long as it will be in every phase, at places, and a
/// flush at the end of all four phases.
#[test]
fn the_operations_of_0_4() {
    let parameters = [("size", "2MiB"), ("block", "256KiB"), ("operations", "5"), ("threads", "2")];
    let (ops, _) = run(&*tiobench("tiobench-0.4", &parameters), &Setting::new(1, 7));
    let (len, fd, content) = (256 << 10, SLOT, Content::Zeroes);
    for (thread, ops) in ops.iter().enumerate() {
        let path = FilePath::target(format!("tiotest.0.{thread}"));
        let random = places(ops);
        assert_eq!(random[0], [0, len, 2 * len, 3 * len]);
        assert_eq!(random[0], random[2]);
        assert_eq!((random[1].len(), random[3].len()), (2, 2));
        let mut expected = Vec::new();
        for (phase, places) in (0u16..).zip(&random) {
            expected.extend([
                Op::Barrier(0),
                Op::Mark(Mark::Begin(phase)),
                Op::Open {
                    fd,
                    path: path.clone(),
                    flags: OpenFlags { create: true, ..OpenFlags::BOTH },
                },
                Op::Truncate { fd, len: MIB },
            ]);
            expected.extend(places.iter().map(|&at| match phase {
                0 | 1 => Op::At(Io::Write { fd, at, len, content }),
                _ => Op::At(Io::Read { fd, at, len }),
            }));
            let ends = [Op::Fsync { fd }, Op::Close { fd }, Op::Mark(Mark::End(phase))];
            expected.extend(ends);
        }
        expected.push(Op::Done);
        assert_eq!(ops[..], expected);
    }
    assert_eq!(fsyncs(&ops), 8);
}

/// The study of 2008: 1792 MiB and 4000 operations for 1, 2, 4 and 8 threads.
#[test]
fn the_threads_of_the_tables_share_size_and_operations() {
    let workload = tiobench("tiobench-0.3", &[("size", "1792MiB"), ("threads", "copies")]);
    for threads in [1, 2, 4, 8] {
        let (ops, record) = run(&*workload, &Setting::new(threads, 1));
        assert_eq!(ops.len() as u32, threads);
        let mut seen: Vec<&Vec<u64>> = Vec::new();
        let random: Vec<Vec<Vec<u64>>> = ops.iter().map(|ops| places(ops)).collect();
        for (index, phases) in random.iter().enumerate() {
            assert_eq!(record.processes[index].copy, index as u32);
            let each = 4000 / u64::from(threads);
            assert_eq!(record.processes[index].phases[1].writes.count, each);
            assert_eq!(record.processes[index].phases[3].reads.count, each);
            let blocks = 1792 / u64::from(threads) * MIB / 4096;
            assert_eq!(record.processes[index].phases[0].writes.count, blocks);
            // The last block is never hit; places are whole blocks all over the rest.
            let all = || phases[1].iter().chain(&phases[3]);
            assert!(all().all(|at| at % 4096 == 0 && at / 4096 < blocks - 1));
            assert!(all().any(|at| at / 4096 > blocks * 9 / 10));
            seen.extend([&phases[1], &phases[3]]);
        }
        for (index, places) in seen.iter().enumerate() {
            assert!(!seen[..index].contains(places), "two phases drew the same places");
        }
    }
}

#[test]
fn the_last_block_is_hit_in_0_4_only() {
    for (kind, most) in [("tiobench-0.3", 2), ("tiobench-0.4", 3)] {
        let parameters = [("size", "1MiB"), ("block", "256KiB"), ("operations", "200")];
        let (ops, _) = run(&*tiobench(kind, &parameters), &Setting::new(1, 3));
        let places = places(&ops[0]);
        assert_eq!(places[1].iter().max(), Some(&(most * (256 << 10))), "{kind}");
        assert_eq!(places[3].iter().max(), Some(&(most * (256 << 10))), "{kind}");
    }
}

#[test]
fn sizes_and_operations_are_cut_as_the_front_end_does() {
    // 10 MiB in 3: 3 MiB each; 10 operations in 3: 3 each. 3 MiB are 4 blocks of 640 KiB and a rest.
    let parameters =
        [("size", "10MiB"), ("operations", "10"), ("block", "640KiB"), ("threads", "3")];
    let workload = tiobench("tiobench-0.4", &parameters);
    let plan = workload.plan(&Setting::new(2, 1)).expect("it can be");
    assert_eq!((plan.run.len(), plan.files.len(), plan.barriers.as_slice()), (6, 6, &[3, 3][..]));
    assert!(plan.files.iter().all(|file| file.bytes == 4 * (640 << 10) && file.unit == 640 << 10));
    assert_eq!(plan.room, 6 * 4 * (640 << 10));
    assert_eq!(plan.run.iter().map(|one| one.copy).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    let (_, record) = run(&*workload, &Setting::new(2, 1));
    assert_eq!(record.phase(1).expect("it ran").writes.count, 2 * 3 * 3);
    // More threads than MiB: 1 MiB each.
    let small = tiobench("tiobench-0.3", &[("size", "2MiB"), ("threads", "3")]);
    let plan = small.plan(&Setting::new(1, 1)).expect("it can be");
    assert!(plan.files.iter().all(|file| file.bytes == MIB));
}

#[test]
fn sizes_by_default_go_by_memory() {
    let of = |kind: &str, host_memory| {
        let setting = Setting { host_memory, ..Setting::new(1, 1) };
        tiobench(kind, &[]).plan(&setting).expect("it can be").room / MIB
    };
    // 896 MiB are what the machine of 2008 must have seen.
    assert_eq!(of("tiobench-0.3", Some(896 * MIB)), 1792);
    assert_eq!(of("tiobench-0.3", Some(64 * MIB)), 200);
    assert_eq!(of("tiobench-0.3", Some(4096 * MIB)), 2000);
    assert_eq!(of("tiobench-0.4", Some(4096 * MIB)), 8192);
    assert_eq!(of("tiobench-0.4", Some(64 * MIB + 5)), 128);
    assert_eq!((of("tiobench-0.3", None), of("tiobench-0.4", None)), (512, 512));
}

#[test]
fn sequential_writers_go_one_after_the_other() {
    let parameters =
        [("size", "3MiB"), ("threads", "3"), ("sequential_writers", "true"), ("operations", "9")];
    for kind in ["tiobench-0.3", "tiobench-0.4"] {
        let workload = tiobench(kind, &parameters);
        let (ops, record) = run(&*workload, &Setting::new(2, 1));
        let phase = |thread: usize, index: usize| &record.processes[thread].phases[index];
        for thread in [1, 2, 4, 5] {
            assert!(phase(thread, 0).began >= phase(thread - 1, 0).ended, "{kind}");
            assert_eq!(phase(thread, 1).began, phase(thread - 1, 1).began, "{kind}");
        }
        // The turn of one copy is not that of the other.
        assert_eq!(phase(0, 0).began, phase(3, 0).began);
        assert!(!ops[0].iter().any(|op| matches!(op, Op::Take { .. })));
        assert_eq!(ops[5].iter().filter(|op| matches!(op, Op::Put { .. })).count(), 0);
    }
}

#[test]
fn flags_are_those_of_open() {
    let flags = |kind: &str, key: &str, of: fn(&OpenFlags) -> bool| -> Vec<bool> {
        let parameters = [("size", "1MiB"), (key, "true"), ("operations", "1")];
        let (ops, _) = run(&*tiobench(kind, &parameters), &Setting::new(1, 1));
        let opens = ops[0].iter().filter_map(|op| match op {
            Op::Open { flags, .. } => Some(of(flags)),
            _ => None,
        });
        opens.collect()
    };
    assert_eq!(flags("tiobench-0.3", "sync", |flags| flags.sync), [true, true, false, false]);
    assert_eq!(flags("tiobench-0.4", "sync", |flags| flags.sync), [true; 4]);
    assert_eq!(flags("tiobench-0.4", "direct", |flags| flags.direct), [true; 4]);
    assert_eq!(flags("tiobench-0.4", "sync", |flags| flags.direct), [false; 4]);
}

#[test]
fn phases_can_be_skipped() {
    let parameters = [("size", "2MiB"), ("threads", "2"), ("skip", "seq_write, rand_read")];
    for (kind, flushes) in [("tiobench-0.3", 2), ("tiobench-0.4", 4)] {
        let workload = tiobench(kind, &parameters);
        let (ops, record) = run(&*workload, &Setting::new(1, 1));
        assert_eq!(fsyncs(&ops), flushes, "{kind}");
        assert!(record.phase(0).is_none() && record.phase(3).is_none());
        // The files were written before the run, so that there is something to read.
        assert_eq!(record.phase(2).expect("it ran").reads.bytes, 2 * MIB);
        let names: Vec<&str> = workload.metrics().iter().map(|metric| metric.name).collect();
        assert_eq!(
            (names[0], names[5], names.len()),
            ("rand_write_mib_per_s", "seq_read_mib_per_s", 10)
        );
        assert_eq!(workload.values(&record).len(), 10);
        assert!(workload.values(&record).iter().all(Option::is_some));
    }
}

#[test]
fn nothing_is_cut_on_a_raw_target() {
    let parameters = [("size", "1MiB"), ("operations", "3")];
    let setting = Setting { space: Some(8 * MIB), ..Setting::new(1, 1) };
    let (ops, _) = run(&*tiobench("tiobench-0.4", &parameters), &setting);
    assert!(!ops[0].iter().any(|op| matches!(op, Op::Truncate { .. })));
}

#[test]
fn nonsense_is_refused() {
    use WorkloadErrorKind::{Block, Parameter, Size, UnknownParameter};
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(&str, Pairs, _, &str); 13] = [
        ("tiobench-0.3", &[("size", "1000kB")], Size, "size"),
        ("tiobench-0.3", &[("size", "512KiB")], Size, "size"),
        ("tiobench-0.3", &[("block", "2GiB")], Block, "block"),
        ("tiobench-0.3", &[("block", "0")], Parameter, "block"),
        ("tiobench-0.3", &[("threads", "0")], Parameter, "threads"),
        ("tiobench-0.3", &[("threads", "many")], Parameter, "threads"),
        ("tiobench-0.3", &[("operations", "0")], Parameter, "operations"),
        ("tiobench-0.3", &[("skip", "seq")], Parameter, "skip"),
        ("tiobench-0.4", &[("skip", "seq_write,rand_write,seq_read,rand_read")], Parameter, "skip"),
        ("tiobench-0.3", &[("direct", "true")], UnknownParameter, "direct"),
        ("tiobench-0.3", &[("count", "real")], UnknownParameter, "count"),
        ("tiobench-0.4", &[("count", "false")], Parameter, "count"),
        ("tiobench-0.4", &[("direct", "true"), ("block", "1000")], Parameter, "block"),
    ];
    for (kind, parameters, error, key) in cases {
        let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
        let found = make(kind, given).expect_err(key);
        assert_eq!((found.kind, found.key.as_str()), (error, key), "{found}");
    }
    let plans = |parameters: &[(&str, &str)], copies| {
        let error =
            tiobench("tiobench-0.3", parameters).plan(&Setting::new(copies, 1)).unwrap_err();
        (error.key.clone(), error.to_string())
    };
    // One block: the remainder by one block less is none.
    assert_eq!(plans(&[("size", "1MiB"), ("block", "1MiB")], 1).0, "block");
    assert_eq!(plans(&[("size", "8MiB"), ("operations", "7")], 8).0, "operations");
    let (key, words) = plans(&[("size", "8MiB"), ("threads", "100")], 100);
    assert_eq!(
        (key.as_str(), words.as_str()),
        ("threads", "threads: 100 x 100 is not from 1 to 4096 threads")
    );
    let whole = [("count", "as-0.4-before-2023"), ("skip", "seq_write,seq_read")];
    let given = Parameters::new(whole).expect("no key twice");
    assert_eq!(make("tiobench-0.4", given).expect_err("no size").key, "size");
}

#[test]
fn sizes_can_be_changed_and_descriptions_say_all() {
    let workload = tiobench("tiobench-0.4", &[("threads", "4"), ("sync", "true")]);
    let small = workload.resized(8 * MIB).expect("whole MiB");
    assert_eq!(small.plan(&Setting::new(1, 1)).expect("it can be").room, 8 * MIB);
    assert_eq!(workload.resized(1000).expect_err("no MiB").key, "size");
    assert_eq!(
        small.description(),
        "tiobench 0.4: 4 threads share 8MiB in a file each and 4000 random operations; seq_write, \
         rand_write, seq_read, rand_read in blocks of 4KiB; written with O_SYNC"
    );
    assert!(workload.description().contains("share twice memory in"));
    assert_eq!((small.kind(), small.default_name()), ("tiobench-0.4", "tiobench_0.4".to_string()));
}

/// Two threads of 50 MiB and 2000 operations each, with times by hand.
fn record(cpu: bool) -> RunRecord {
    let millis = Nanos::from_millis;
    let at = |millis: u64| Some(Time(millis * 1_000_000));
    // When it begins and ends, user and system time of a thread, operations, slow ones and their time.
    let phases = [
        (0, 2000, 50, 150, 12_800, 100, 2500),
        (3000, 3500, 2, 10, 2000, 1, 11_000),
        (4000, 5600, 25, 75, 12_800, 0, 0),
        (6000, 14_000, 10, 25, 2000, 0, 0),
    ];
    let thread = |_| {
        let phases = phases.iter().zip([Class::Write, Class::Write, Class::Read, Class::Read]);
        let phases = phases.map(|((began, ended, user, system, count, slow, slow_time), class)| {
            let cpu = cpu.then_some(Cpu { user: millis(*user), system: millis(*system) });
            let mut phase =
                PhaseRecord { began: at(*began), ended: at(*ended), cpu, ..PhaseRecord::default() };
            for index in 0..*count {
                let latency = if index < *slow { millis(*slow_time) } else { Nanos(125_000) };
                phase.of_mut(class).add(4096, latency);
            }
            phase
        });
        ProcessRecord { copy: 0, ended: Time(14_000_000_000), phases: phases.collect() }
    };
    RunRecord { processes: (0..2).map(thread).collect(), ..RunRecord::default() }
}

/// The lines that `tiotest -T` of 0.4 prints: amounts 100 MiB and 4000 x 4 KiB = 15.625 MiB.
/// Means: (100 x 2500 + 12,700 x 0.125) / 12,800 = 19.655..., (11,000 + 1999 x 0.125) / 2000 = 5.6249...;
/// of all 59,200 operations 200 + 2 are above 2 s and 2 above 10 s, and the mean is
/// (200 x 2500 + 2 x 11,000 + 58,998 x 0.125) / 59,200 = 8.94214.
#[test]
fn terse_lines() {
    let workload = tiobench("tiobench-0.4", &[("size", "100MiB"), ("threads", "2")]);
    let text = workload.format("terse", &record(true), "host").expect("a format");
    let expected = "\
write:100.00000,2.00000,0.10000,0.30000,19.65527,2500.00000,0.78125,0.00000
rwrite:15.62500,0.50000,0.00400,0.02000,5.62494,11000.00000,0.05000,0.05000
read:100.00000,1.60000,0.05000,0.15000,0.12500,0.12500,0.00000,0.00000
rread:15.62500,8.00000,0.02000,0.05000,0.12500,0.12500,0.00000,0.00000
total:8.94214,11000.00000,0.34122,0.00338
";
    assert_eq!(text, expected);
    let text = workload.format("terse", &record(false), "host").expect("a format");
    assert!(text.starts_with("write:100.00000,2.00000,,,19.65527,"), "{text}");
    let skipped = tiobench("tiobench-0.4", &[("size", "2MiB"), ("skip", "rand_write,rand_read")]);
    let (_, short) = run(&*skipped, &Setting::new(1, 1));
    let text = skipped.format("terse", &short, "host").expect("a format");
    let none = "rwrite:0.00000,0.00000,0.00000,0.00000,0.00000,0.00000,0.00000,0.00000";
    assert!(text.lines().any(|line| line == none), "{text}");
}

/// Before 2023 random phases counted the 25,600 blocks of both files: 6.4 times what 4000 came to.
#[test]
fn whole_files_are_counted_as_before_2023_when_asked() {
    let parameters = [("size", "100MiB"), ("threads", "2"), ("count", "as-0.4-before-2023")];
    let wrong = tiobench("tiobench-0.4", &parameters);
    let right = tiobench("tiobench-0.4", &parameters[..2]);
    let rates = |workload: &dyn Workload, record: &RunRecord| -> Vec<f64> {
        workload.values(record).iter().step_by(5).map(|value| value.expect("time passed")).collect()
    };
    assert_eq!(rates(&*right, &record(true)), [50.0, 31.25, 62.5, 1.953125]);
    assert_eq!(rates(&*wrong, &record(true)), [50.0, 200.0, 62.5, 12.5]);
    let terse = wrong.format("terse", &record(true), "host").expect("a format");
    assert!(terse.contains("rwrite:100.00000,0.50000,"), "{terse}");
    // Without a sequential phase the size tells.
    let mut random = record(true);
    random.processes.iter_mut().for_each(|process| {
        process.phases[0] = PhaseRecord::default();
        process.phases[2] = PhaseRecord::default();
    });
    let skip = [parameters[0], parameters[1], parameters[2], ("skip", "seq_write,seq_read")];
    assert_eq!(rates(&*tiobench("tiobench-0.4", &skip), &random), [200.0, 12.5]);
    assert!(wrong.description().contains("count whole files"));
}

#[test]
fn latencies_are_metrics() {
    let workload = tiobench("tiobench-0.3", &[("size", "100MiB"), ("threads", "2")]);
    let values = workload.values(&record(true));
    let names: Vec<&str> = workload.metrics().iter().map(|metric| metric.name).collect();
    assert_eq!((values.len(), names.len()), (20, 20));
    let value = |name: &str| {
        let index = names.iter().position(|known| *known == name).expect(name);
        values[index].expect("there were operations")
    };
    assert_eq!(value("seq_write_longest_latency_ms"), 2500.0);
    assert_eq!(value("seq_write_over_2s_percent"), 0.78125);
    assert_eq!(value("rand_write_over_10s_percent"), 0.05);
    assert!((value("seq_read_mean_latency_ms") - 0.125).abs() < 1e-12);
    assert_eq!(workload.values(&RunRecord::default()), vec![None; 20]);
}

/// What the front end of 2002 printed when Perl ran it with a program that prints the lines above; the
/// heads of its tables, which it no longer prints under today's Perl, were switched on.
#[test]
fn tables_of_0_3() {
    let workload = tiobench("tiobench-0.3", &[("size", "100MiB"), ("threads", "2")]);
    let text = workload.format("text", &record(true), "myhost").expect("a format");
    assert_eq!(text, include_str!("tiobench/tables-0.3.txt"));
    let without = workload.format("text", &record(false), "myhost").expect("a format");
    let row = without.lines().find(|line| line.starts_with("myhost")).expect("a row");
    assert!(row.contains(" 62.50      %     0.125 ") && row.ends_with("0.00000      "), "{row:?}");
    assert_eq!(workload.format("csv", &record(true), "myhost"), None);
    assert_eq!(workload.formats(), ["text", "terse"]);
}

/// The same of the front end of 2020, as it is.
#[test]
fn tables_of_0_4() {
    let workload = tiobench("tiobench-0.4", &[("size", "100MiB"), ("threads", "2")]);
    let text = workload.format("text", &record(true), "myhost").expect("a format");
    assert_eq!(text, include_str!("tiobench/tables-0.4.txt"));
}

/// Every copy, thread and phase draws places of its own.
#[test]
fn no_two_draw_the_same_places() {
    let parameters = [("size", "8MiB"), ("threads", "2"), ("operations", "64")];
    for kind in ["tiobench-0.3", "tiobench-0.4"] {
        let (processes, _) = run(&*tiobench(kind, &parameters), &Setting::new(2, 1));
        let drawn: Vec<Vec<u64>> = processes.iter().flat_map(|ops| places(ops)).collect();
        let random: Vec<&Vec<u64>> = drawn.iter().filter(|all| !all.is_sorted()).collect();
        // Two copies of two threads, with a random write and a random read each.
        assert_eq!(random.len(), 8, "{kind}");
        for (at, one) in random.iter().enumerate() {
            assert!(!random[..at].contains(one), "{kind}: {at}");
        }
    }
}
