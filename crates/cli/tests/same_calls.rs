//! `raidlab run` on a directory asks the kernel for what the original programs ask it for: both run
//! under `strace`, each on files of its own, and the calls are compared: which, on which file, how much,
//! where.
//!
//! **Which calls count.** Those on the files of the workload, and `sync`. Of raidlab only the run counts:
//! each of its processes is a thread, and those of the run are the last that are made, by names
//! `process 0`, `process 1`, ... in this order. Those that prepare come before the target is synced, each
//! alone as `process 0`; what verifies and tidies up is done by the main thread.
//!
//! **What is left out**, since a workload has no operation for it: `fstat` and `lseek` by nothing,
//! reading `/dev/zero`, calls that fail, `posix_fadvise` but for what stands for dropping a device
//! (`BLKFLSBUF` in hdparm), `FICLONE` of cp, which is made to fail in the original, what tar asks to
//! learn of its archive. Sleeps: raidlab's can be ended, so they are no call of their own. What a
//! read of `dd` and `cp` puts into `/dev/null` follows up to 256 reads later: there the order is compared
//! within each file.
//!
//! `sync` is seen in both and carried out in neither: it would wait for the whole machine.

#[path = "../../workload/tests/bonnie_support/mod.rs"]
mod bonnie;
#[allow(unused_imports, reason = "no test uses every helper")]
#[path = "../../workload/tests/copy_support/mod.rs"]
mod copies;
#[path = "../../workload/tests/support/mod.rs"]
mod fio;
#[path = "../../workload/tests/hdparm_support/mod.rs"]
mod hdparm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Scratch};
use copies::{Lines, Place, by_file, entries, is_root, needs};
use raidlab_workload::{Parameters, Setting, make};

/// What a run of raidlab asked for, thread by thread.
struct Traces {
    /// Lines of each thread, the threads in the order of their processes.
    processes: Vec<String>,
}

/// Runs a workload of raidlab below `target` under strace, with files from elsewhere below `source`;
/// `options` are those of strace, `workload` has its parameters behind it.
fn raidlab(
    (target, source): (&Path, &Path),
    traces: &Path,
    options: &[&str],
    workload: &[&str],
) -> Traces {
    let run = support::command();
    let mut command = Command::new("strace");
    command.args(["-ff", "-qq", "-a", "1", "-e", "signal=none", "-s", "15"]);
    command.args(["-e", "inject=sync:retval=0"]).args(options).arg("-o").arg(traces.join("t"));
    command.arg(run.get_program()).arg("run").args(workload);
    command.arg("--target").arg(target).args(["--format", "summary"]);
    command.env("TMPDIR", source).env("LC_ALL", "C.UTF-8");
    let output = command.output().expect("strace starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{workload:?}: {stderr}");
    of_run(traces)
}

/// The threads of the run among all that were traced.
fn of_run(traces: &Path) -> Traces {
    let entries = fs::read_dir(traces).expect("traces").map(|entry| entry.expect("a trace").path());
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a trace");
    let mut programs = entries.map(|path| text(&path)).filter(|text| text.starts_with("execve("));
    let main = programs.next().expect("the main thread begins the program");
    assert!(programs.next().is_none(), "only one thread begins a program");
    let (before, after) = main.split_once("\nsync() ").expect("the target is synced");
    assert!(!after.contains("\nsync() "), "only once");
    let threads = |text: &str| -> Vec<String> {
        let calls = text.lines().filter(|line| line.starts_with("clone"));
        let numbers = calls.map(|line| line.rsplit_once("= ").expect("a result").1);
        numbers.map(|number| text_of(traces, number)).collect()
    };
    let named = |trace: &String, number: usize| {
        trace.contains(&format!("prctl(PR_SET_NAME, \"process {number}\")"))
    };
    let later = threads(after);
    let first = later.iter().rposition(|trace| named(trace, 0)).expect("a run");
    let processes = later[first..].to_vec();
    for (number, trace) in processes.iter().enumerate() {
        assert!(named(trace, number), "not thread {number}:\n{trace}");
    }
    for trace in threads(before) {
        assert!(named(&trace, 0) || !trace.contains("\"process "), "prepares alone:\n{trace}");
    }
    Traces { processes }
}

fn text_of(traces: &Path, thread: &str) -> String {
    let path = traces.join(format!("t.{thread}"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Traces {
    /// The lines of a run of one process.
    fn one(&self) -> &str {
        assert_eq!(self.processes.len(), 1);
        &self.processes[0]
    }
}

/// What raidlab asks for, as the lines of dd, cp and tar.
fn ours(kind: &str, parameters: &str) -> Lines {
    let (place, traces) = (Place::new("same-calls"), Scratch::new(kind));
    let workload: Vec<&str> = std::iter::once(kind).chain(parameters.split(' ')).collect();
    let directories = (&*place.target(), &*place.source());
    let run = raidlab(directories, traces.path(), &["-y"], &workload);
    place.lines_of_thread(run.one())
}

/// A directory in memory where there is such a place: thousands of files are synced one by one.
fn in_memory(name: &str) -> Scratch {
    let (memory, temporary) = (PathBuf::from("/dev/shm"), std::env::temp_dir());
    Scratch::within(if memory.is_dir() { &memory } else { &temporary }, name)
}

/// A place with what the run of this workload finds, and what the original asks for there.
fn theirs(workload: (&str, &str), below: &str, command: &str, faults: &[&str]) -> Lines {
    let place = Place::new("same-calls-original");
    let (kind, parameters) = workload;
    let pairs = parameters.split(' ').map(|pair| pair.split_once('=').expect("key=value"));
    let workload = make(kind, Parameters::new(pairs).expect("no key twice")).expect(parameters);
    place.prepare(workload.plan(&Setting::new(1, 1)).expect("a plan"));
    place.strace(below, command, faults)
}

#[track_caller]
fn expect_equal(ours: &[String], theirs: &[String], what: &str) {
    for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(our, their, "call {index} of {what}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
    assert!(!ours.is_empty(), "{what}");
}

#[test]
fn dd_writes_as_dd_does() {
    if needs("same_calls::dd_writes_as_dd_does", &["strace"]) {
        return;
    }
    for (parameters, arguments) in [
        ("bs=64KiB count=5 conv=fdatasync", "bs=64K count=5 conv=fdatasync"),
        ("bs=4KiB count=3 conv=fsync", "bs=4096 count=3 conv=fsync"),
        ("bs=4KiB size=10000B", "bs=4096 count=10000 iflag=count_bytes"),
        ("bs=4KiB count=2 oflag=sync", "bs=4096 count=2 oflag=sync"),
        ("bs=4KiB count=2 seek=3", "bs=4096 count=2 seek=3"),
    ] {
        let command = format!("dd if=/dev/zero of=dd-0 {arguments}");
        let theirs = theirs(("dd", parameters), "", &command, &[]);
        expect_equal(&ours("dd", parameters), &theirs, &command);
    }
}

#[test]
fn dd_reads_as_dd_does() {
    if needs("same_calls::dd_reads_as_dd_does", &["strace"]) {
        return;
    }
    let parameters = "of=null bs=4KiB size=1234567B";
    let theirs = theirs(("dd", parameters), "", "dd if=dd-0 of=/dev/null bs=4096", &[]);
    assert_eq!(by_file(&ours("dd", parameters)), by_file(&theirs));
}

#[test]
fn cp_to_null_reads_as_cp_does() {
    if needs("same_calls::cp_to_null_reads_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    let parameters = "size=300000B";
    let faults = ["ioctl:error=EOPNOTSUPP"];
    let theirs = theirs(("cp-null", parameters), "", "cp cp-null-0 /dev/null", &faults);
    assert_eq!(by_file(&ours("cp-null", parameters)), by_file(&theirs));
}

#[test]
fn cp_from_elsewhere_copies_as_cp_does() {
    if needs("same_calls::cp_from_elsewhere_copies_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    let (parameters, command) = ("size=300000B", "cp ../source/linux.tar linux-0.tar");
    // As between two filesystems.
    let faults = ["ioctl:error=EXDEV", "copy_file_range:error=EXDEV"];
    let theirs = theirs(("cp-tar", parameters), "", command, &faults);
    expect_equal(&ours("cp-tar", parameters), &theirs, command);
}

#[test]
fn cp_rf_copies_as_cp_does() {
    if needs("same_calls::cp_rf_copies_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    let (parameters, command) = ("files=60 size=1MB", "cp -rf cp-rf-0/linux-2.6.13 cp-rf-0/copy");
    let faults = ["ioctl:error=EOPNOTSUPP"];
    let theirs = entries(&theirs(("cp-rf", parameters), "", command, &faults));
    let ours = entries(&ours("cp-rf", parameters));
    let copied = ours.iter().flatten().filter(|line| line.starts_with("copy_to ")).count();
    assert!(copied >= 60, "{copied} calls that copy a range");
    // The order within a directory is that of inode numbers, which depend on what else is being made.
    let sorted = |mut entries: Vec<Lines>| {
        entries.sort();
        entries
    };
    assert_eq!(sorted(ours), sorted(theirs));
}

/// A small tree, packed by tar.
fn archive(scratch: &Scratch) -> PathBuf {
    let top = scratch.directory("top");
    for (index, size) in [0u32, 1, 511, 512, 10_240, 70_000].into_iter().enumerate() {
        let below = top.join(format!("part-{}", index % 3));
        fs::create_dir_all(&below).expect("made");
        fs::write(below.join(format!("file-{index}")), vec![7; size as usize]).expect("written");
    }
    fs::hard_link(top.join("part-0/file-0"), top.join("same")).expect("linked");
    std::os::unix::fs::symlink("part-1/file-1", top.join("link")).expect("linked");
    let path = scratch.path().join("own.tar");
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&path).arg("-C").arg(scratch.path()).arg("top");
    assert!(pack.status().expect("tar starts").success());
    path
}

#[test]
fn tar_unpacks_as_tar_does() {
    let name = "same_calls::tar_unpacks_as_tar_does";
    if needs(name, &["strace", "GNU tar 1.34"]) || !is_root(name) {
        return;
    }
    let scratch = Scratch::new("same-calls-tar");
    let archive = archive(&scratch);
    let place = Place::new("same-calls-tar");
    let below = place.target().join("tar-xf-0");
    fs::create_dir(&below).expect("made");
    fs::copy(&archive, below.join("linux.tar")).expect("copied");
    let theirs = place.strace("tar-xf-0", "tar -xf linux.tar", &[]);
    let ours = ours("tar-xf", &format!("archive={}", archive.display()));
    expect_equal(&ours, &theirs, "tar -xf of an archive of tar's");

    let parameters = "files=60 size=1MB";
    let theirs = self::theirs(("tar-xf", parameters), "tar-xf-0", "tar -xf linux.tar", &[]);
    expect_equal(&self::ours("tar-xf", parameters), &theirs, "tar -xf");
}

/// Compares all threads of bonnie++; gives the calls of raidlab's.
fn compare_bonnie(test: &str, parameters: &[&str], options: &[&str]) -> Option<bonnie::Calls> {
    if bonnie::is_skipped(test) {
        return None;
    }
    let scratch = in_memory("same-calls-bonnie");
    let [target, traces] = ["target", "traces"].map(|name| scratch.directory(name));
    let seed = bonnie::SEED.to_string();
    let workload = [&["bonnie-2.00", "--seed", &seed], parameters].concat();
    let run = raidlab((&target, scratch.path()), &traces, &[], &workload);
    let threads = run.processes.iter().map(|trace| bonnie::calls_of_thread(trace));
    let mut ours: bonnie::Calls = threads.collect();
    let kept = ours.clone();
    let mut theirs = bonnie::original(&test.replace("::", "-"), options);
    assert_eq!(ours.len(), theirs.len(), "threads");
    for calls in [&mut ours, &mut theirs] {
        bonnie::without_last_unlink(calls);
        // Raidlab's sleeps can be ended.
        calls[0].retain(|call| !call.starts_with("sleep "));
    }
    bonnie::expect_equal(&bonnie::sort_listed(&ours[0]), &bonnie::sort_listed(&theirs[0]));
    bonnie::expect_equal(&bonnie::seeks(&ours[1..]), &bonnie::seeks(&theirs[1..]));
    Some(kept)
}

#[test]
fn the_large_file_as_bonnie() {
    let parameters = ["size=8MiB", "ram=4MiB", "seeks=800", "n=0", "fast=true", "settle=1us"];
    let options = ["-s", "8:8k:800", "-r", "4", "-n", "0", "-f", "-q"];
    let calls = compare_bonnie("same_calls::the_large_file_as_bonnie", &parameters, &options);
    let Some(calls) = calls else { return };
    let fsyncs = calls.iter().flatten().filter(|call| call.starts_with("fsync ")).count();
    assert_eq!(fsyncs, 10, "the reference counts ten");
}

#[test]
fn small_files_as_bonnie() {
    let parameters = [
        "size=1MiB",
        "ram=0",
        "seeks=1",
        "seekers=1",
        "n=1:3000:20:3",
        "fast=true",
        "sync=true",
        "settle=1us",
    ];
    let options = ["-s", "1:8k:1:1", "-r", "0", "-n", "1:3000:20:3", "-f", "-b", "-q"];
    compare_bonnie("same_calls::small_files_as_bonnie", &parameters, &options);
}

#[test]
fn sequential_jobs_as_fio() {
    let name = "same_calls::sequential_jobs_as_fio";
    if !fio::has_programs(name, &["fio", "strace"]) || needs(name, &["strace"]) {
        return;
    }
    let jobs = [
        "rw=write\nsize=64k\nfsync=4\nend_fsync=1",
        "rw=write\nsize=64k\nfdatasync=3",
        "rw=read\nsize=40k\nnrfiles=3",
        "rw=write:4k\nsize=20k\nioengine=sync",
        "rw=write\nsize=16k\nverify=crc32c\nverify_state_save=0",
    ];
    for (options, theirs) in jobs.iter().zip(fio::traced(&jobs)) {
        let scratch = in_memory("same-calls-fio");
        // What keeps fio from writing files beside the job is no option of ours.
        let job = fio::section(0, &options.replace("verify_state_save=0", ""));
        let job = scratch.file("job.fio", job);
        let [target, traces] = ["target", "traces"].map(|name| scratch.directory(name));
        let traced = [
            "-e",
            "trace=execve,clone,clone3,prctl,sync,openat,close,read,write,pread64,\
            pwrite64,lseek,fsync,fdatasync",
        ];
        let run =
            raidlab((&target, scratch.path()), &traces, &traced, &[job.to_str().expect("text")]);
        assert_eq!(fio::calls_of(run.one()), theirs, "{options}");
        assert!(!theirs.is_empty(), "{options}");
    }
}

#[test]
fn device_reads_as_hdparm() {
    let Some(device) = hdparm::loop_or_skip("same_calls::device_reads_as_hdparm") else { return };
    let theirs = hdparm::hdparm_calls(&device, &["-t"]);
    assert_eq!(hdparm::reads(&theirs), 4, "{theirs:?}");
    let scratch = in_memory("same-calls-hdparm");
    let [target, traces] = ["target", "traces"].map(|name| scratch.directory(name));
    let size = format!("size={}B", hdparm::SIZE);
    let workload = ["hdparm-t", &size, "settle=1us"];
    let run = raidlab((&target, scratch.path()), &traces, &[], &workload);
    let ours = hdparm::calls_on(run.one(), "hdparm");
    let theirs: Lines = theirs.into_iter().filter(|call| !call.starts_with("sleep ")).collect();
    assert_eq!(ours, theirs);
}
