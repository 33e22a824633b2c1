//! dd, cp and tar of this machine and the workloads named after them ask for the same, in the same
//! order, with the same sizes at the same places: `strace` tells of the former, a target that does
//! nothing of the latter.
//!
//! Both become lines of call, file, size and place. Left out: calls on other files (libraries,
//! locales, `/dev/zero`), calls that fail, `fstat`, `posix_fadvise`, what the module docs of
//! `cp` and `tar` name. Afterwards the files that the programs left are compared with what the
//! workloads expect.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use crate::copy_support::{Place, by_file, entries, is_root, needs, ours};
use raidlab_workload::{Archive, Bytes, Op, Parameters, Setting, TarXf, Workload, make};

fn workload(kind: &str, text: &str) -> Arc<dyn Workload> {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    make(kind, Parameters::new(pairs).expect("no key twice")).expect(text)
}

#[test]
fn dd_writes_as_dd_does() {
    if needs("dd_writes_as_dd_does", &["strace"]) {
        return;
    }
    for (parameters, arguments) in [
        ("count=5", "count=5"),
        (
            "bs=4KiB size=10000B conv=fdatasync",
            "bs=4096 count=10000 iflag=count_bytes conv=fdatasync",
        ),
        ("bs=64KiB count=3 conv=fsync", "bs=64K count=3 conv=fsync"),
        ("bs=64KiB count=3 conv=fsync,fdatasync", "bs=64K count=3 conv=fsync,fdatasync"),
        ("bs=4KiB count=2 oflag=dsync", "bs=4096 count=2 oflag=dsync"),
        ("bs=4KiB count=2 oflag=sync", "bs=4096 count=2 oflag=sync"),
        ("bs=4KiB count=2 oflag=direct", "bs=4096 count=2 oflag=direct"),
        ("bs=4KiB count=2 seek=3", "bs=4096 count=2 seek=3"),
    ] {
        let (place, dd) = (Place::new("dd"), workload("dd", parameters));
        let plan = dd.plan(&Setting::new(1, 1)).expect("a plan");
        let command = format!("dd if=/dev/zero of=dd-0 {arguments}");
        let theirs = place.strace("", &command, &[]);
        assert_eq!(ours(plan), theirs, "{command}");
        place.check(&*dd, &Setting::new(1, 1));
    }
}

#[test]
fn dd_reads_as_dd_does() {
    if needs("dd_reads_as_dd_does", &["strace"]) {
        return;
    }
    for (parameters, arguments) in [
        ("bs=4KiB size=10000B", "bs=4096"),
        ("bs=4KiB size=8KiB", "bs=4096"),
        ("bs=4KiB count=300 skip=2", "bs=4096 count=300 skip=2"),
        ("bs=4KiB count=3 iflag=direct", "bs=4096 count=3 iflag=direct"),
    ] {
        let (place, dd) = (Place::new("dd"), workload("dd", &format!("of=null {parameters}")));
        let setting = Setting::new(1, 1);
        place.prepare(dd.plan(&setting).expect("a plan"));
        let command = format!("dd if=dd-0 of=/dev/null {arguments}");
        let theirs = place.strace("", &command, &[]);
        let ours = ours(dd.plan(&setting).expect("a plan"));
        assert_eq!(by_file(&ours), by_file(&theirs), "{command}");
    }
}

/// What dd prints of a size does not depend on the time it took.
#[test]
fn dd_prints_as_dd_does() {
    for bytes in
        [1, 999, 1000, 1023, 1024, 9949, 9950, 9951, 10239, 99_950, 999_499, 999_500, 1_048_575]
    {
        let dd = workload("dd", &format!("bs=1000B size={bytes}B"));
        let text = format!("if=/dev/zero of=/dev/null bs=1000 iflag=count_bytes count={bytes}");
        let output =
            std::process::Command::new("dd").args(text.split(' ')).env("LC_ALL", "C").output();
        let theirs = String::from_utf8(output.expect("dd runs").stderr).expect("UTF-8");
        let plan = dd.plan(&Setting::new(1, 1)).expect("a plan");
        let record = raidlab_workload::null::NullTarget::default().run(plan).expect("runs");
        let ours = dd.format("text", &record, "host").expect("known");
        let size = |text: &str| text.split(" copied").next().map(str::to_string);
        assert_eq!(size(&ours), size(&theirs));
    }
}

#[test]
fn cp_to_null_reads_as_cp_does() {
    if needs("cp_to_null_reads_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    for size in [1, 131_072, 300_000] {
        let (place, cp) = (Place::new("cp-null"), workload("cp-null", &format!("size={size}B")));
        let setting = Setting::new(1, 1);
        place.prepare(cp.plan(&setting).expect("a plan"));
        let theirs = place.strace("", "cp cp-null-0 /dev/null", &["ioctl:error=EOPNOTSUPP"]);
        let ours = ours(cp.plan(&setting).expect("a plan"));
        assert_eq!(by_file(&ours), by_file(&theirs), "{size}");
    }
}

#[test]
fn cp_from_elsewhere_copies_as_cp_does() {
    if needs("cp_from_elsewhere_copies_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    for size in [1, 131_072, 300_000] {
        let (place, cp) = (Place::new("cp-tar"), workload("cp-tar", &format!("size={size}B")));
        let setting = Setting::new(1, 1);
        place.prepare(cp.plan(&setting).expect("a plan"));
        // As between two filesystems.
        let faults = ["ioctl:error=EXDEV", "copy_file_range:error=EXDEV"];
        let theirs = place.strace("", "cp ../source/linux.tar linux-0.tar", &faults);
        assert_eq!(ours(cp.plan(&setting).expect("a plan")), theirs, "{size}");
        place.check(&*cp, &setting);
    }
}

#[test]
fn cp_rf_copies_as_cp_does() {
    if needs("cp_rf_copies_as_cp_does", &["strace", "coreutils 9.1"]) {
        return;
    }
    let (place, cp) = (Place::new("cp-rf"), workload("cp-rf", "files=120 size=1MB"));
    let setting = Setting::new(1, 1);
    place.prepare(cp.plan(&setting).expect("a plan"));
    let command = "cp -rf cp-rf-0/linux-2.6.13 cp-rf-0/copy";
    let theirs = entries(&place.strace("", command, &["ioctl:error=EOPNOTSUPP"]));
    let ours = entries(&ours(cp.plan(&setting).expect("a plan")));
    let sorted = |entries: &[Vec<String>]| {
        let mut entries = entries.to_vec();
        entries.sort();
        entries
    };
    assert_eq!(sorted(&ours), sorted(&theirs));
    place.check(&*cp, &setting);

    // The order within a directory is that of inode numbers, as the workload takes it to be.
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &theirs {
        let name = entry[0].trim_start_matches("stat ");
        let inode = fs::symlink_metadata(place.target().join(name)).expect("there").ino();
        let directory = name.rsplit_once('/').expect("in a directory").0.to_string();
        let before = last.insert(directory, inode);
        assert!(before.is_none_or(|before| before < inode), "{name}");
    }
}

#[test]
fn cp_of_an_empty_file_reads_it_once() {
    if needs("cp_of_an_empty_file_reads_it_once", &["strace", "coreutils 9.1"]) {
        return;
    }
    // With so few bytes most files are empty.
    let (place, cp) = (Place::new("cp-rf"), workload("cp-rf", "files=9 size=1B"));
    let setting = Setting::new(1, 1);
    place.prepare(cp.plan(&setting).expect("a plan"));
    let command = "cp -rf cp-rf-0/linux-2.6.13 cp-rf-0/copy";
    let theirs = by_file(&place.strace("", command, &["ioctl:error=EOPNOTSUPP"]));
    assert_eq!(by_file(&ours(cp.plan(&setting).expect("a plan"))), theirs);
}

#[test]
fn tar_unpacks_as_tar_does() {
    if needs("tar_unpacks_as_tar_does", &["strace", "GNU tar 1.34"])
        || !is_root("tar_unpacks_as_tar_does")
    {
        return;
    }
    for seed in [1, 2, 3] {
        let (place, tar) = (Place::new("tar-xf"), workload("tar-xf", "files=150 size=1MB"));
        let setting = Setting::new(1, seed);
        place.prepare(tar.plan(&setting).expect("a plan"));
        let theirs = place.strace("tar-xf-0", "tar -xf linux.tar", &[]);
        let ours = ours(tar.plan(&setting).expect("a plan"));
        for (index, (one, other)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(one, other, "line {index} of seed {seed}");
        }
        assert_eq!(ours.len(), theirs.len());
        place.check(&*tar, &setting);
    }
}

#[test]
fn tar_lists_what_the_workload_packs() {
    let place = Place::new("tar-tvf");
    let setting = Setting::new(1, 7);
    let tar = workload("tar-xf", "files=200 size=1MB");
    place.prepare(tar.plan(&setting).expect("a plan"));
    let listed = place.run("tar-xf-0", "tar -tvf linux.tar");
    let plan = tar.plan(&setting).expect("a plan");
    let mut files = 0;
    for line in listed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mode, owner, size, day, time, name] = words[..] else { panic!("{line}") };
        assert_eq!((owner, day, time), ("root/root", "2005-08-29", "00:00"));
        if mode == "drwxr-xr-x" {
            assert!(name.ends_with('/') && size == "0", "{line}");
            continue;
        }
        assert_eq!(mode, "-rw-r--r--");
        let expected = &plan.expected[files];
        assert_eq!(*expected.path.text, format!("tar-xf-0/{name}"));
        assert_eq!(expected.bytes.len().to_string(), size);
        files += 1;
    }
    assert_eq!(files, 200);
    place.run("tar-xf-0", "tar -xf linux.tar");
    place.check(&*tar, &setting);
}

/// A file of this machine as bytes.
#[derive(Debug)]
struct FileBytes(Vec<u8>);

impl Bytes for FileBytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[at as usize..at as usize + into.len()]);
    }
}

#[test]
fn archives_of_tar_are_unpacked_as_tar_does() {
    let name = "archives_of_tar_are_unpacked_as_tar_does";
    if needs(name, &["strace", "GNU tar 1.34"]) || !is_root(name) {
        return;
    }
    for format in ["gnu", "ustar", "pax", "v7"] {
        for what in [".", "top", "top/sub/file top/large"] {
            let place = Place::new("own");
            let top = place.target().join("top");
            // Names of two parts for ustar, longer than any header has room for in the others.
            let long = match format {
                "v7" => "long".to_string(),
                "ustar" => "long-".repeat(12),
                _ => "long-".repeat(22),
            };
            let long = &long;
            fs::create_dir_all(top.join(long).join(long)).expect("made");
            fs::create_dir_all(top.join("sub")).expect("made");
            fs::write(top.join("sub/file"), "small").expect("written");
            fs::write(top.join("large"), vec![7; 50_000]).expect("written");
            fs::write(top.join(long).join(long).join("deep"), vec![8; 700]).expect("written");
            fs::hard_link(top.join("large"), top.join("same")).expect("linked");
            std::os::unix::fs::symlink("sub/file", top.join("link")).expect("linked");
            let directory = place.target().join("tar-xf-0");
            fs::create_dir(&directory).expect("made");
            let archive = directory.join("linux.tar");
            let pack =
                format!("tar --format={format} --exclude=./tar-xf-0 -cf tar-xf-0/linux.tar {what}");
            place.run("", &pack);

            let bytes = fs::read(&archive).expect("packed");
            let parsed = Archive::parse(bytes.len() as u64, &mut |at, into: &mut [u8]| {
                into.copy_from_slice(&bytes[at as usize..at as usize + into.len()]);
                Ok(())
            });
            let parsed = parsed.expect(format);
            let given = Arc::new(FileBytes(bytes));
            let tar = TarXf::of(parsed, given, Parameters::default()).expect("no parameters");
            let theirs = place.strace("tar-xf-0", "tar -xf linux.tar", &[]);
            let mut ours = ours(tar.plan(&Setting::new(1, 1)).expect("a plan"));
            if what == "." {
                // The directory it is unpacked into: there already, with its mode.
                for attribute in ["times", "owner"] {
                    ours.push(format!("{attribute} tar-xf-0"));
                }
            }
            assert_eq!(ours, theirs, "{format} {what}");
            place.check(&tar, &Setting::new(1, 1));
        }
    }
}

#[test]
fn the_operations_leave_what_is_expected() {
    for (kind, text) in [
        ("dd", "bs=4KiB size=10000B seek=2"),
        ("cp-tar", "size=300000B"),
        ("cp-tar", "size=300000B profile=2005"),
        ("tar-xf", "files=60 size=1MB"),
        ("cp-rf", "files=60 size=1MB"),
        ("cp-rf", "files=60 size=1MB profile=2005"),
    ] {
        let (place, workload) = (Place::new("carry-out"), workload(kind, text));
        let setting = Setting::new(2, 5);
        let plan = workload.plan(&setting).expect("a plan");
        let mut plan = plan.in_single_operations();
        let run = std::mem::take(&mut plan.run);
        place.prepare(plan);
        let ops: Vec<Op> = run.into_iter().flat_map(|planned| place.carry_out(planned)).collect();
        assert!(ops.len() > 4, "{kind}");
        place.check(&*workload, &setting);
    }
}
