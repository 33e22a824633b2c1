use super::*;
use crate::kinds;
use crate::null::NullTarget;
use raidlab_core::Nanos;

fn parameters(text: &str) -> Parameters {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    Parameters::new(pairs).expect("no key twice")
}

fn dd(text: &str) -> Arc<dyn Workload> {
    kinds::make("dd", parameters(text)).expect(text)
}

fn ops(text: &str) -> Vec<Op> {
    let mut target = NullTarget::default();
    target.keep_steps();
    target.run(dd(text).plan(&Setting::new(1, 1)).expect("fits")).expect("runs");
    let ops = target.steps().iter().map(|step| step.op.clone());
    ops.filter(|op| !matches!(op, Op::Mark(_) | Op::Done)).collect()
}

#[test]
fn nonsense_is_named() {
    for (text, words) in [
        ("bs=0", "bs: `0` is not a size"),
        ("bs=2GiB", "bs: 2GiB is too large; at most 1GiB"),
        ("count=0", "count: `0` is not a whole number from 1"),
        ("count=3 size=1MiB", "size: is given besides count"),
        ("conv=notrunc", "conv: `notrunc` is not one of none, fdatasync, fsync"),
        ("conv=fsync of=null", "conv: nothing is made durable with of=null"),
        ("oflag=append", "oflag: `append` is not one of direct, dsync, sync"),
        ("of=null iflag=sync", "iflag: `sync` is not one of direct"),
        ("of=null oflag=direct", "oflag: would be a flag of /dev/null; use iflag"),
        ("iflag=direct", "iflag: would be a flag of /dev/zero; use oflag"),
        ("if=zero of=null", "of: null with if=zero"),
        ("if=file of=file", "of: file with if=file is a copy"),
        ("skip=3", "skip: means nothing with if=zero; use seek"),
        ("if=file seek=3", "seek: means nothing with of=null; use skip"),
        ("bs=700 oflag=direct", "bs: 700 is not a multiple of 512"),
        ("bs=4KiB size=5000B oflag=direct", "size: must be a multiple of bs with direct"),
        ("bs=1GiB seek=17179869183 size=8TiB", "seek: the file would be longer"),
        ("metric=iops", "metric: `iops` is not one of seconds, mib_per_s, mb_per_s"),
        ("sze=3", "sze: is not a parameter of this workload"),
    ] {
        let error = kinds::make("dd", parameters(text)).expect_err(text).to_string();
        assert!(error.starts_with(words), "{text}: {error}");
    }
}

#[test]
fn words_tell_what_is_done() {
    for (text, name, words) in [
        (
            "",
            "dd-write 512B",
            "dd writes 1GiB of zeroes to a file in blocks of 512B; nothing makes",
        ),
        ("bs=1MiB count=3 conv=fdatasync", "dd-write 1MiB", "3MiB of zeroes to a file in blocks"),
        ("bs=1MiB conv=fsync seek=2", "dd-write 1MiB", ", from byte 2097152 on, then fsync"),
        (
            "of=null bs=1MiB",
            "dd-read 1MiB",
            "dd reads a file of 1GiB to /dev/null in blocks of 1MiB",
        ),
        ("oflag=dsync", "dd-write 512B", "each write durable (O_SYNC in place of O_DSYNC)"),
    ] {
        let dd = dd(text);
        assert_eq!(dd.default_name(), name);
        assert!(dd.description().contains(words), "{}", dd.description());
    }
    assert!(!dd("conv=fsync").description().contains("nothing"));
}

#[test]
fn writes_are_one_operation_and_a_rest() {
    let (fd, content) = (FileDescriptor(0), Content::Zeroes);
    let path = FilePath::target("dd-0");
    let open = |flags| Op::Open { fd, path: path.clone(), flags };
    let write = |len, times| Op::Write { fd, len, content, times };
    let close = Op::Close { fd };
    assert_eq!(
        ops("bs=4KiB size=10000B conv=fdatasync,fsync"),
        [
            open(OpenFlags::WRITE),
            write(4096, 2),
            write(1808, 1),
            Op::Fdatasync { fd },
            Op::Fsync { fd },
            close.clone()
        ]
    );
    let flags = OpenFlags { direct: true, sync: true, ..OpenFlags::WRITE };
    assert_eq!(ops("count=7 oflag=direct,dsync"), [open(flags), write(512, 7), close.clone()]);
    let flags = OpenFlags { read: true, truncate: false, ..OpenFlags::WRITE };
    let behind = [Op::Truncate { fd, len: 8192 }, Op::Seek { fd, to: Seek::Start(8192) }];
    let [cut, seek] = behind;
    let all = [open(flags), cut, seek, write(4096, 1), close];
    assert_eq!(ops("bs=4KiB count=1 seek=2"), all);
}

#[test]
fn reads_go_to_the_end_unless_counted() {
    let read = |len, times| Op::Read { fd: FileDescriptor(0), len, times };
    let is_read = |op: &Op| matches!(op, Op::Read { .. });
    let reads = |text| ops(text).into_iter().filter(is_read).collect::<Vec<_>>();
    assert_eq!(reads("of=null bs=4KiB size=10000B"), [read(4096, 2), read(4096, 1), read(4096, 1)]);
    assert_eq!(reads("of=null bs=4KiB size=8KiB"), [read(4096, 2), read(4096, 1)]);
    assert_eq!(
        reads("of=null bs=4KiB count=600"),
        [read(4096, 256), read(4096, 256), read(4096, 88)]
    );
    assert_eq!(
        ops("if=file count=1 skip=2")[2],
        Op::Seek { fd: FileDescriptor(0), to: Seek::Start(1024) }
    );
}

#[test]
fn plans_name_files_and_what_they_hold() {
    let setting = Setting { space: Some(102_400), ..Setting::new(3, 1) };
    let plan = dd("bs=4KiB count=2 seek=1").plan(&setting).expect("fits");
    let need = |copy: u32| FileNeed { path: copy_path("dd", copy, ""), bytes: 12_288, unit: 4096 };
    assert_eq!(plan.files, [need(0), need(1), need(2)]);
    assert_eq!((plan.room, plan.expected.len(), plan.needs_filesystem), (36_864, 3, None));
    let mut bytes = [1; 12_288];
    plan.expected[2].bytes.fill(0, &mut bytes);
    assert_eq!((plan.expected[2].bytes.len(), bytes), (12_288, [0; 12_288]));
    let plan = dd("bs=4KiB count=2 of=null").plan(&setting).expect("fits");
    assert_eq!((plan.prepare.len(), plan.run.len(), plan.expected.len()), (3, 3, 0));
    let too_large = dd("size=64KiB").check_raw(100 << 10, 3, 512).expect_err("too large");
    assert!(too_large.to_string().starts_with("size: 3 files, 192KiB in all"), "{too_large}");
    assert_eq!(dd("bs=4KiB size=1MiB").check_raw(4 << 20, 3, 4096), Ok(()));
    assert_eq!(dd("size=1MiB").check_raw(4 << 20, 3, 4096).expect_err("blocks").key, "bs");
    assert!(dd("bs=700B size=1400B").plan(&setting).is_err());
}

#[test]
fn a_run_is_counted_and_printed() {
    let dd = dd("bs=4KiB count=256 metric=seconds");
    let resized = dd.resized(1 << 20).expect("a size");
    assert_eq!(resized.description(), dd.description());
    assert!(dd.resized(0).is_err());
    let plan = dd.plan(&Setting::new(2, 1)).expect("fits");
    let mut record = NullTarget::default().run(plan).expect("runs");
    for process in &mut record.processes {
        process.ended = raidlab_core::Time(2_000_000_000);
        process.phases[0].began = Some(raidlab_core::Time(1_000_000_000));
        process.phases[0].ended = Some(raidlab_core::Time(1_500_000_000));
    }
    assert_eq!(dd.metrics()[0], Metric::SECONDS);
    assert_eq!(dd.values(&record), [Some(2.0), Some(1.0), Some(1.048_576)]);
    let lines = "256+0 records in\n256+0 records out\n\
        1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s\n";
    assert_eq!(dd.format("text", &record, "host"), Some(lines.repeat(2)));
    assert_eq!(dd.format("csv", &record, "host"), None);
    assert_eq!(record.last_done(), Nanos(2_000_000_000));
    let short = kinds::make("dd", parameters("bs=4KiB size=4097B")).expect("a size");
    let text = short.format("text", &record, "host").expect("known");
    assert!(text.starts_with("1+1 records in\n1+1 records out\n"), "{text}");
}
