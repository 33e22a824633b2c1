//! The kernels that `cargo xtask kernel` has built on this machine, in virtual time. Where there is none, each test
//! says so and is skipped.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use raidlab_kernel_lab::{
    End, Failure, Guest, GuestError, Operation, Outcome, Record, Root, cache, drives, guest, paths,
};
use raidlab_models::PathSpec;

const CLOSED_FORM: &str = "size=1GiB,positioning=5ms,byte=10ns";

/// Says that a test is skipped, past the test harness, which would keep the output of a test that passes.
fn skipped(test: &str, why: &str) {
    let line = format!("skipped: {test}: {why}\n");
    io::stderr().write_all(line.as_bytes()).expect("standard error is open");
}

/// The kernels that are here; none, after a line on standard error, where nothing can be booted.
fn guest_or_skip(test: &str) -> Vec<PathBuf> {
    let missing = |what: &str| {
        skipped(test, what);
        Vec::new()
    };
    let mdadm = ["/usr/sbin/mdadm", "/sbin/mdadm"].iter().any(|path| Path::new(path).is_file());
    match Root::found() {
        Some(Root::Archive(_)) => {}
        Some(Root::Machine { .. }) if mdadm => {}
        _ => return missing("needs busybox and mdadm, or `cargo xtask kernel programs`"),
    }
    let kernels: Vec<PathBuf> =
        ["6.1", "6.12"].into_iter().filter_map(|version| cache::kernel(version).ok()).collect();
    if kernels.is_empty() { missing("needs a kernel of `cargo xtask kernel`") } else { kernels }
}

fn guest(kernel: &Path, lines: &[&str]) -> Guest {
    let drive =
        |(number, line): (usize, &&str)| drives::parse(line, number as u64).expect("is right");
    Guest {
        kernel: kernel.to_owned(),
        root: Root::found().unwrap_or_else(|| Root::Archive("/nowhere".into())),
        memory_mib: 256,
        seed: 1,
        page: true,
        processor: Some(rustix::thread::sched_getcpu()),
        queue_depth: 32,
        dirty_bytes: None,
        arguments: Vec::new(),
        files: Vec::new(),
        silence: Duration::from_secs(60),
        drives: lines.iter().enumerate().map(drive).collect(),
        paths: PathSpec::default(),
        free_setup: false,
        room: 1 << 30,
        end: End::PowerOff,
    }
}

fn run(guest: Guest, script: &str) -> (Result<Outcome, GuestError>, Vec<Record>) {
    let (stop, _keeps_it_quiet) = io::pipe().expect("can be made");
    let mut records = Vec::new();
    let ended = guest::run(guest, script, stop.as_fd(), &mut |record| records.push(*record), None);
    (ended, records)
}

/// What a script wrote that must go well.
fn output(guest: Guest, script: &str) -> (String, Vec<Record>) {
    let (ended, records) = run(guest, script);
    let outcome = ended.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.status, 0, "{}\n{}", outcome.stdout, outcome.stderr);
    (outcome.stdout, records)
}

/// Says how many microseconds a command took.
const TIMED: &str = r#"
    timed() { local a=$EPOCHREALTIME; "$@" 2>/tmp/error || { cat /tmp/error; exit 1; }
              local b=$EPOCHREALTIME; echo $((${b/./} - ${a/./})); }
"#;

#[test]
fn requests_take_what_the_closed_form_says_to_the_nanosecond() {
    for kernel in guest_or_skip("requests_take_what_the_closed_form_says_to_the_nanosecond") {
        let script = format!(
            "set -e; {TIMED}
            timed dd if=/dev/vda of=/dev/null bs=1M count=256 iflag=direct
            timed dd if=/dev/zero of=/dev/vda bs=1M count=256 oflag=direct
            for i in 5 900 33 12345 7; do
                dd if=/dev/vda of=/dev/null bs=4k count=1 skip=$i iflag=direct 2>/dev/null
            done"
        );
        let (stdout, records) = output(guest(&kernel, &[CLOSED_FORM]), &script);
        let micros: Vec<u64> = stdout.lines().map(|line| line.parse().expect("a number")).collect();
        // 10 ns a byte, and 5 ms to go back for the write; what is above are clocks that are read.
        for (measured, formula) in micros.iter().zip([2_684_354, 2_689_354]) {
            assert!((formula..formula + 1000).contains(measured), "{measured} of {formula}");
        }
        let mut follows = 0;
        for record in &records {
            let positioning = if record.sector == follows { 0 } else { 5_000_000 };
            follows = record.sector + record.bytes / 512;
            // The parts of 1 MiB come at once and wait for each other.
            if record.depth == 0 {
                let took = record.ended.since(record.arrived).0;
                assert_eq!(took, positioning + 10 * record.bytes, "{record}");
            }
        }
        let of = |operation| records.iter().filter(move |record| record.operation == operation);
        let bytes = |operation| of(operation).map(|record| record.bytes).sum::<u64>();
        let all = 256 << 20;
        assert_eq!(bytes(Operation::Read), all + 5 * 4096);
        assert_eq!(bytes(Operation::Write), all);
    }
}

#[test]
fn the_load_of_the_archive_meets_the_closed_form_at_every_depth() {
    let test = "the_load_of_the_archive_meets_the_closed_form_at_every_depth";
    for kernel in guest_or_skip(test) {
        if !matches!(Root::found(), Some(Root::Archive(_))) {
            skipped(test, "needs `cargo xtask kernel programs`");
            continue;
        }
        for depth in [1, 32] {
            let script = format!("guest-load read /dev/vda count=400 depth={depth}");
            let (stdout, records) = output(guest(&kernel, &[CLOSED_FORM]), &script);
            let numbers: Vec<u64> =
                stdout.split_whitespace().map(|word| word.parse().expect("a number")).collect();
            let formula = 400 * (5_000_000 + 40_960);
            // At depth 1 the program computes between two requests; deeper, the drive never waits.
            let above = numbers[1] - formula;
            let most = if depth == 1 { 400 * 4096 } else { 100_000 };
            assert!(above <= most, "{above} ns above the closed form at depth {depth}");
            assert_eq!((numbers[0], records.len()), (400, 400));
        }
    }
}

#[test]
fn drives_read_at_once_share_their_link() {
    for kernel in guest_or_skip("drives_read_at_once_share_their_link") {
        // Each drive alone would be through in 67 ms; one byte takes the link 10 ns.
        let lines = ["size=1GiB,byte=1ns", "size=1GiB,byte=1ns"];
        let script = format!(
            "set -e; {TIMED}
            both() {{ for drive in vda vdb; do
                dd if=/dev/$drive of=/dev/null bs=1M count=64 iflag=direct & done; wait; }}
            timed dd if=/dev/vda of=/dev/null bs=1M count=64 iflag=direct
            timed both"
        );
        let of = |line: &str| {
            let guest = guest(&kernel, &lines);
            let paths = paths::parse([line], lines.len()).expect("is right");
            let (ended, records) = run(Guest { paths, ..guest }, &script);
            let outcome = ended.unwrap_or_else(|error| panic!("{error}"));
            let micros: Vec<u64> =
                outcome.stdout.lines().map(|line| line.parse().expect("a number")).collect();
            (micros, outcome.path_busy, records)
        };
        let (micros, busy, _) = of("kind=bus,rate=100MB/s,name=slot");
        for (measured, formula) in micros.iter().zip([671_088, 1_342_177]) {
            assert!((formula..formula + 1500).contains(measured), "{measured} of {formula}");
        }
        // Three times 64 MiB.
        assert_eq!((busy[0].0.as_str(), busy[0].1.0 / 1000), ("slot", 2_013_265));
        // The device that is not selected waits for the channel, and then until it is.
        let (_, _, records) = of("kind=pata-udma100,overhead=0us");
        let both: Vec<&Record> = records.iter().skip_while(|one| one.drive == 0).collect();
        let changes = both.windows(2).filter(|pair| pair[0].drive != pair[1].drive);
        let changes = changes.inspect(|pair| {
            let (took, transfer) =
                (pair[1].ended.since(pair[0].ended).0, pair[1].bytes * 1000 / 85);
            assert!(took.abs_diff(1_000_000 + transfer) < 10, "{took}: {} {}", pair[0], pair[1]);
        });
        assert!(changes.count() > 50);
    }
}

#[test]
fn two_runs_send_the_same_requests_at_the_same_nanoseconds() {
    for kernel in guest_or_skip("two_runs_send_the_same_requests_at_the_same_nanoseconds") {
        let lines = ["model=nas-8tb-7200,size=1GiB", "model=nas-8tb-7200,size=1GiB"];
        let script = format!(
            "set -e; {TIMED}
            mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --bitmap=internal --assume-clean \
                /dev/vd[ab] 2>/dev/null
            dd if=/dev/zero of=/dev/md0 bs=64k count=500 conv=fsync 2>/dev/null &
            timed dd if=/dev/md0 of=/dev/null bs=1M count=32 skip=200
            wait"
        );
        let load = Load::of(2);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for path in [&[][..], &["kind=pci-32-33"]] {
            let paths = paths::parse(path.iter().copied(), lines.len()).expect("is right");
            let guest = || Guest { paths: paths.clone(), ..guest(&kernel, &lines) };
            let first = output(guest(), &script);
            assert!(first.1.len() > 100, "{} requests", first.1.len());
            for (processor, page) in [(0, true), (processors - 1, false)] {
                let other = Guest { processor: Some(processor), page, ..guest() };
                let again = output(other, &script);
                assert_eq!(first.0, again.0, "on processor {processor}, page: {page}, {path:?}");
                assert!(first.1 == again.1, "on processor {processor}, page: {page}, {path:?}");
            }
        }
        drop(load);
    }
}

/// Threads that keep processors busy, until this is dropped.
struct Load(std::sync::Arc<AtomicBool>);

impl Load {
    fn of(threads: usize) -> Self {
        let busy = std::sync::Arc::new(AtomicBool::new(true));
        for _ in 0..threads {
            let busy = busy.clone();
            thread::spawn(move || while busy.load(Ordering::Relaxed) {});
        }
        Self(busy)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn the_kernel_knows_of_a_drive_what_its_class_says() {
    for kernel in guest_or_skip("the_kernel_knows_of_a_drive_what_its_class_says") {
        let lines = [
            "model=nas-8tb-7200",
            "model=sas-146gb-10k",
            "model=ssd-sata-1tb,optimal=512KiB",
            "model=ssd-nvme4-2tb",
            "size=1GiB,scheduler=bfq,throttling=10ms",
            // BFQ turns throttling off, and it is not turned on again by a write of the value that the kernel holds.
            "model=ssd-sata-1tb,scheduler=bfq",
            "model=nas-8tb-7200,scheduler=bfq",
            "model=nas-8tb-7200,scheduler=bfq,throttling=75ms",
            "model=ssd-sata-1tb,scheduler=bfq,throttling=2ms",
            "size=1GiB,cache=1,fua=1,physical=4KiB,scheduler=kyber,rotational=0",
        ];
        let guest = guest(&kernel, &lines);
        let mut expected = String::new();
        let mut script = String::from("set -e\n");
        for (number, (class, _)) in guest.drives.iter().enumerate() {
            let name = guest::drive_name(number);
            script += &format!("q=/sys/block/{name}/queue\n");
            for (file, value) in class.readings() {
                script += &format!(
                    "echo {name} {file} $(grep -o '\\[.*\\]' $q/{file} || cat $q/{file})\n"
                );
                expected += &format!("{name} {file} {value}\n");
            }
            script += &format!("echo {name} sectors $(cat /sys/block/{name}/size)\n");
            expected += &format!("{name} sectors {}\n", class.bytes / 512);
        }
        script += "cd /proc/sys/vm; cat dirty_bytes dirty_background_bytes\n";
        expected += "30000000\n10000000\n";
        // Twice what suits a drive best is read ahead, at least 128 KiB.
        script += "cat /sys/block/vdb/queue/read_ahead_kb /sys/block/vdc/queue/read_ahead_kb\n";
        expected += "128\n1024\n";
        let guest = Guest { dirty_bytes: Some([10_000_000, 30_000_000]), ..guest };
        assert_eq!(output(guest, &script).0, expected);
    }
}

#[test]
fn a_write_with_fua_comes_as_one_where_the_drive_has_it() {
    for kernel in guest_or_skip("a_write_with_fua_comes_as_one_where_the_drive_has_it") {
        for (line, through, flushed) in [
            ("size=64MiB,cache=1,fua=1", 4, true),
            ("size=64MiB,cache=1", 0, true),
            ("size=64MiB,cache=0,fua=1", 0, false),
        ] {
            let script = "dd if=/dev/zero of=/dev/vda bs=4k count=4 oflag=direct,dsync 2>/dev/null";
            let (_, records) = output(guest(&kernel, &[line]), script);
            let count = |operation| records.iter().filter(|one| one.operation == operation).count();
            // A block device that is written with O_DSYNC is flushed, too.
            let found = (count(Operation::WriteThrough), count(Operation::Flush) > 0);
            assert_eq!(found, (through, flushed), "{line}: {records:?}");
        }
    }
}

#[test]
fn journals_write_through_where_the_bus_has_fua() {
    for kernel in guest_or_skip("journals_write_through_where_the_bus_has_fua") {
        let lines = [
            "model=sas-146gb-10k",
            "model=ssd-sata-1tb",
            "model=ssd-nvme4-2tb",
            "model=nas-8tb-7200",
        ];
        let script = "set -e; cd /run/mnt
            for drive in vda vdb vdc vdd; do
                mkfs.ext4 -q /dev/$drive 65536 2>/dev/null; mkdir $drive; mount /dev/$drive $drive
                dd if=/dev/zero of=$drive/file bs=4k count=1 conv=fsync 2>/dev/null; umount $drive
            done";
        let (_, records) = output(guest(&kernel, &lines), script);
        let of = |drive, operation| {
            let found = |one: &&Record| (one.drive, one.operation) == (drive, operation);
            records.iter().filter(found).count()
        };
        let found = [0, 1, 2, 3].map(|drive| of(drive, Operation::WriteThrough) > 0);
        assert_eq!(found, [true, false, true, false]);
        assert!((0..4).all(|drive| of(drive, Operation::Flush) > 0));
    }
}

#[test]
fn a_drive_is_sent_as_many_requests_as_its_queue_takes() {
    for kernel in guest_or_skip("a_drive_is_sent_as_many_requests_as_its_queue_takes") {
        for queue_depth in [1, 4, 32] {
            let script = "set -e
                for i in {1..48}; do
                    dd if=/dev/vda of=/dev/null bs=4k count=1 skip=$((i * 99)) iflag=direct 2>/dev/null &
                done; wait
                cat /sys/module/virtio_blk/parameters/queue_depth /sys/block/vda/mq/0/nr_tags";
            let guest = Guest { queue_depth, ..guest(&kernel, &[CLOSED_FORM]) };
            let (stdout, records) = output(guest, script);
            assert_eq!(stdout, format!("{queue_depth}\n{queue_depth}\n"));
            let deepest = records.iter().map(|record| record.depth + 1).max();
            assert_eq!(deepest, Some(queue_depth as usize));
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    for kernel in guest_or_skip("what_is_written_is_read_back") {
        // At the end of a drive of eight terabytes, beyond the page cache.
        let script = "set -e
            head -c 1048576 /dev/urandom >/tmp/a
            dd if=/tmp/a of=/dev/vda bs=64k seek=$(($(cat /sys/block/vda/size) / 128 - 16)) oflag=direct 2>/dev/null
            dd if=/dev/vda of=/tmp/b bs=64k skip=$(($(cat /sys/block/vda/size) / 128 - 16)) iflag=direct 2>/dev/null
            cmp /tmp/a /tmp/b; wc -c </tmp/b";
        let guest = guest(&kernel, &["model=nas-8tb-7200,size=7TiB"]);
        let (ended, _) = run(guest, script);
        let outcome = ended.expect("goes well");
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (0, "1048576\n"),
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.bytes_held, 1 << 20);
    }
}

/// Reads so many MiB through the page cache twice, and writes a quarter of it.
fn uses_its_memory(kernel: &Path, memory_mib: u64, read_mib: u64) {
    let lines = ["size=8GiB,byte=10ns", "size=8GiB,byte=10ns"];
    let write_mib = read_mib / 4;
    // A drive that is open keeps what was read of it.
    let script = format!(
        "set -e; {TIMED}
        exec 9</dev/vda
        for i in 1 2; do timed dd if=/dev/vda of=/dev/null bs=1M count={read_mib}; done
        timed dd if=/dev/zero of=/dev/vdb bs=1M count={write_mib} conv=fsync
        sed -n 's/MemTotal: *//p' /proc/meminfo"
    );
    let guest = Guest {
        memory_mib,
        // By default the writer would be made to wait, and the drive run dry meanwhile.
        dirty_bytes: Some([16 << 20, memory_mib << 19]),
        silence: Duration::from_secs(300),
        ..guest(kernel, &lines)
    };
    let (stdout, records) = output(guest, &script);
    let numbers: Vec<u64> = stdout
        .lines()
        .map(|line| line.trim_end_matches(" kB").parse().expect("a number"))
        .collect();
    // 10 ns a byte; the second time nothing is read.
    for (measured, mib) in numbers.iter().zip([read_mib, 0, write_mib]) {
        let formula = (mib << 20) / 100;
        assert!((formula..formula + 1000).contains(measured), "{measured} of {formula} us");
    }
    // What the kernel keeps for itself.
    assert!(numbers[3] > memory_mib * 1024 * 95 / 100, "{} kB", numbers[3]);
    let moved = |operation| -> u64 {
        records.iter().filter(|one| one.operation == operation).map(|one| one.bytes).sum()
    };
    // Beyond what was asked for, one window is read ahead.
    let read = moved(Operation::Read) - (read_mib << 20);
    assert!(read <= 2 << 20, "{read} bytes more");
    assert_eq!(moved(Operation::Write), write_mib << 20);
}

#[test]
fn a_guest_of_a_gibibyte_has_it_for_its_page_cache() {
    for kernel in guest_or_skip("a_guest_of_a_gibibyte_has_it_for_its_page_cache") {
        uses_its_memory(&kernel, 1024, 700);
    }
}

#[test]
fn a_guest_of_four_gibibytes_has_them_for_its_page_cache() {
    let test = "a_guest_of_four_gibibytes_has_them_for_its_page_cache";
    // One kernel is enough: this takes seconds.
    let Some(kernel) = guest_or_skip(test).pop() else { return };
    let space = rustix::fs::statvfs("/dev/shm").expect("is there");
    if (space.f_bavail * space.f_frsize) >> 20 < 5 << 10 {
        return skipped(test, "needs 5 GiB in /dev/shm");
    }
    uses_its_memory(&kernel, 4096, 2200);
}

#[test]
fn memory_that_cannot_be_is_refused_before_anything_starts() {
    // A kernel that would not be one.
    let kernel = Path::new("/bin/true");
    let (ended, _) = run(Guest { memory_mib: 1 << 30, ..guest(kernel, &[]) }, "true");
    let text = ended.expect_err("there is no such memory").to_string();
    let expected = "a guest of 1073741824 MiB of memory: /dev/shm has ";
    assert!(text.starts_with(expected) && text.contains(" MiB free"), "{text}");
}

#[test]
fn what_would_mean_something_else_is_refused_by_name() {
    // A kernel that would not be one.
    let kernel = Path::new("/bin/true");
    let refused = |guest: Guest| {
        let error = run(guest, "true").0.expect_err("is refused");
        assert!(matches!(error.failure, Failure::Refused(_)), "{error}");
        error.to_string()
    };
    for queue_depth in [0, 257] {
        let text = refused(Guest { queue_depth, ..guest(kernel, &[]) });
        let expected = format!("queue depth {queue_depth}: from 1 to 256, the entries of a ring");
        assert_eq!(text, expected);
    }
    let short = Duration::from_millis(999);
    let text = refused(Guest { silence: short, ..guest(kernel, &[]) });
    assert_eq!(text, "silence of 999ms: one second at least");
    let files = ["/bin/true", "/usr/bin/true"].map(PathBuf::from).to_vec();
    let text = refused(Guest { files, ..guest(kernel, &[]) });
    let expected = "files /bin/true and /usr/bin/true: both would be true in the guest";
    assert_eq!(text, expected);
    let text = refused(Guest { files: vec!["/".into()], ..guest(kernel, &[]) });
    assert_eq!(text, "file /: has no name");
}

#[test]
fn programs_that_are_not_there_are_named() {
    let root = Root::Archive("/nonexistent/programs.cpio".into());
    let (ended, _) = run(Guest { root, ..guest(Path::new("/bin/true"), &[]) }, "true");
    let text = ended.expect_err("there are none").to_string();
    assert!(text.starts_with("/nonexistent/programs.cpio: No such file"), "{text}");
}

#[test]
fn a_setting_that_the_kernel_refuses_ends_the_guest_before_its_script() {
    let test = "a_setting_that_the_kernel_refuses_ends_the_guest_before_its_script";
    for kernel in guest_or_skip(test) {
        for end in [End::PowerOff, End::Script] {
            let guest = Guest { dirty_bytes: Some([100, 50]), end, ..guest(&kernel, &[]) };
            let (ended, _) = run(guest, "while :; do :; done");
            let error = ended.expect_err("are less than two pages");
            let text = error.to_string();
            assert!(matches!(error.failure, Failure::Refused(_)), "{text}");
            assert!(text.starts_with("a setting was refused: "), "{text}");
            assert!(text.contains("Invalid argument; 50 for /proc/sys/vm/dirty_bytes"), "{text}");
        }
    }
}

#[test]
fn a_read_into_memory_for_which_there_is_no_room_is_an_error() {
    let test = "a_read_into_memory_for_which_there_is_no_room_is_an_error";
    // A place of its own, which is full once the guest is up, as other guests would fill it.
    let within = |command: &str| {
        let mut namespace = Command::new("unshare");
        namespace.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        namespace.arg(format!("mount -t tmpfs -o size=300m none /dev/shm && exec {command}"));
        namespace
    };
    if !within("true").output().is_ok_and(|ended| ended.status.success()) {
        return skipped(test, "needs `unshare` of util-linux, and user namespaces");
    }
    for kernel in guest_or_skip(test) {
        let lab = env!("CARGO_BIN_EXE_raidlab-kernel-lab");
        let options = "--memory 256 --drive size=256MiB -";
        let mut command = within(&format!("{lab} --kernel {} {options}", kernel.display()));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let script = "touch /run/host/up; until [ -e /run/host/full ]; do sleep 1; done; cat /dev/vda >/dev/null";
        let mut stdin = child.stdin.take().expect("is piped");
        stdin.write_all(script.as_bytes()).expect("is read");
        drop(stdin);
        let work = PathBuf::from(format!("/tmp/raidlab-lab-{}-0", child.id()));
        until("the guest is up", || work.join("up").is_file());
        let place = PathBuf::from(format!("/proc/{}/root/dev/shm", child.id()));
        let space = rustix::fs::statvfs(&place).expect("is there");
        let free = space.f_bavail * space.f_frsize;
        let filler = vec![1; free as usize - (24 << 20)];
        std::fs::write(place.join("filler"), filler).expect("there is room");
        std::fs::write(work.join("full"), "").expect("can be written");
        let ended = child.wait_with_output().expect("ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(125), "{}: {said}", ended.status);
        assert!(said.contains("/dev/shm has no room left for the guest's memory"), "{said}");
    }
}

#[test]
fn a_file_is_at_hand_in_the_guest() {
    for kernel in guest_or_skip("a_file_is_at_hand_in_the_guest") {
        let own = std::env::current_exe().expect("is known");
        let name = own.file_name().expect("has one").to_string_lossy().into_owned();
        let length = std::fs::metadata(&own).expect("is there").len();
        let with = Guest { files: vec![own], ..guest(&kernel, &[]) };
        assert_eq!(
            output(with, &format!("wc -c </run/host/files/{name}")).0,
            format!("{length}\n")
        );
    }
}

#[test]
fn a_guest_that_panics_shows_its_last_lines() {
    for kernel in guest_or_skip("a_guest_that_panics_shows_its_last_lines") {
        let script = "echo before; echo bad >&2; echo c >/proc/sysrq-trigger; sleep 1";
        let (ended, _) = run(guest(&kernel, &[]), script);
        let error = ended.expect_err("there was a panic");
        let text = error.to_string();
        assert!(
            text.contains("before the end of its script") && text.contains("sysrq triggered crash"),
            "{text}"
        );
        assert_eq!((error.stdout.concat(), error.stderr.concat()), ("before".into(), "bad".into()));
    }
}

#[test]
fn a_guest_that_hangs_and_drives_that_are_full_are_said() {
    for kernel in guest_or_skip("a_guest_that_hangs_and_drives_that_are_full_are_said") {
        let hanging = Guest { silence: Duration::from_secs(2), ..guest(&kernel, &[]) };
        let (ended, _) = run(hanging, "echo before; while :; do :; done");
        let text = ended.expect_err("it hangs").to_string();
        assert!(text.contains("the guest hangs"), "{text}");
        assert!(text.ends_with("the script's standard output:\n    before"), "{text}");
        let full = Guest { room: 1 << 20, ..guest(&kernel, &[CLOSED_FORM]) };
        let (ended, _) = run(full, "dd if=/dev/urandom of=/dev/vda bs=1M count=4 oflag=direct");
        let error = ended.expect_err("there is no room");
        assert!(matches!(error.failure, Failure::Full { limit: 0x10_0000 }), "{error}");
    }
}

/// The program of the lab with a script on its standard input.
fn program(kernel: &Path, script: &str, stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab-kernel-lab"));
    command.arg("--kernel").arg(kernel).arg("-");
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("is piped");
    stdin.write_all(script.as_bytes()).expect("is read");
    drop(stdin);
    child.wait_with_output().expect("ends")
}

/// The writing end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = io::pipe().expect("can be made");
    drop(reader);
    writer.into()
}

#[test]
fn what_a_script_writes_comes_out_byte_for_byte() {
    for kernel in guest_or_skip("what_a_script_writes_comes_out_byte_for_byte") {
        let script = r"printf 'a\377\000\200z\n'; printf '\376' >&2; exit 3";
        let ended = program(&kernel, script, Stdio::piped());
        assert_eq!(ended.stdout, b"a\xff\0\x80z\n");
        assert!(ended.stderr.starts_with(b"\xfekernel lab: "), "{:?}", ended.stderr);
        assert_eq!(ended.status.code(), Some(3));
        let (ended, _) = run(guest(&kernel, &[]), script);
        let outcome = ended.expect("goes well");
        assert_eq!(outcome.stdout, "a\u{fffd}\0\u{fffd}z\n");
        assert_eq!(outcome.written.stdout, b"a\xff\0\x80z\n");
        assert_eq!(outcome.written.stderr, b"\xfe");
        // Whoever reads may have had enough.
        let ended = program(&kernel, "echo much; exit 3", closed_pipe());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert!(said.starts_with("kernel lab: "), "{said}");
    }
}

#[test]
fn help_that_nobody_reads_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab-kernel-lab"));
    let ended = command.arg("--help").stdout(closed_pipe()).output().expect("starts");
    assert_eq!((ended.status.code(), ended.stderr), (Some(0), Vec::new()));
}

#[test]
fn nothing_is_left_of_a_guest_whose_program_was_killed() {
    for kernel in guest_or_skip("nothing_is_left_of_a_guest_whose_program_was_killed") {
        for signal in ["INT", "TERM", "KILL"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_raidlab-kernel-lab"));
            command.arg("--kernel").arg(&kernel).args(["--drive", CLOSED_FORM, "-"]);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("starts");
            let script = "touch /run/host/up; while :; do sleep 1; dd if=/dev/vda of=/dev/null bs=1M count=1; done";
            let mut stdin = child.stdin.take().expect("is piped");
            stdin.write_all(script.as_bytes()).expect("is read");
            drop(stdin);
            let work = PathBuf::from(format!("/tmp/raidlab-lab-{}-0", child.id()));
            until("the guest is up", || work.join("up").is_file());
            assert!(processes_in(&work) > 0);
            let id = child.id().to_string();
            Command::new("kill").args(["-s", signal, &id]).status().expect("can be sent");
            let status = child.wait().expect("ends");
            until("the guest is gone", || !work.exists() && processes_in(&work) == 0);
            if signal != "KILL" {
                assert_eq!(status.code(), Some(130), "{signal}");
            }
        }
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "not so after 30 s: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// How many processes have this as their directory, or had it.
fn processes_in(work: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").expect("is there").filter_map(Result::ok);
    let directories = entries.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    directories
        .filter(|directory| directory.starts_with(work) || is_removed(directory, work))
        .count()
}

fn is_removed(directory: &Path, work: &Path) -> bool {
    directory.to_string_lossy() == format!("{} (deleted)", work.display())
}
