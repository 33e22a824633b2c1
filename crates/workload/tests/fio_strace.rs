//! Job files against fio itself: the same calls, the same figures in the same places.

use std::collections::BTreeMap;
use std::process::Command;

use raidlab_workload::null::NullStep;
use raidlab_workload::{FileDescriptor, Io, Op, Seek};
use serde_json::Value;

use crate::support::{Call, Scratch, has_programs, run, section, traced, workload};

/// The same of a run on a target that does nothing.
fn planned(options: &str) -> Vec<Call> {
    // What keeps fio from writing files beside the job is no option of ours.
    let job = &section(0, &options.replace("verify_state_save=0", ""));
    let (_, steps) = run(&workload(job), 1);
    let mut names: Vec<String> = Vec::new();
    let mut open: BTreeMap<FileDescriptor, usize> = BTreeMap::new();
    let mut calls = Vec::new();
    for NullStep { op, .. } in steps {
        let call = match op {
            Op::Open { fd, path, .. } => {
                let name = path.to_string();
                let known = names.iter().position(|known| *known == name);
                let index = known.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                open.insert(fd, index);
                continue;
            }
            Op::At(Io::Read { fd, at, len }) => ("read", open[&fd], Some(at), len),
            Op::At(Io::Write { fd, at, len, .. }) => ("write", open[&fd], Some(at), len),
            Op::Read { fd, len, times: 1 } => ("read", open[&fd], None, len),
            Op::Write { fd, len, times: 1, .. } => ("write", open[&fd], None, len),
            Op::Seek { fd, to: Seek::Start(at) } => ("seek", open[&fd], Some(at), 0),
            Op::Sleep(_) => ("pause", 0, None, 0),
            Op::Fsync { fd } => ("fsync", open[&fd], None, 0),
            Op::Fdatasync { fd } => ("fdatasync", open[&fd], None, 0),
            Op::Close { .. } | Op::DropCached { .. } | Op::Mark(_) | Op::Done => continue,
            other => panic!("{other:?}"),
        };
        calls.push(call);
    }
    calls
}

/// Jobs without chance: every call is the same, in the same order.
#[test]
fn sequential_jobs_make_the_calls_of_fio() {
    if !has_programs("sequential_jobs_make_the_calls_of_fio", &["fio", "strace"]) {
        return;
    }
    let jobs = [
        "rw=read\nsize=10k",
        "rw=write\nsize=10k",
        "rw=write\nsize=64k\nfsync=4\nend_fsync=1",
        "rw=write\nsize=64k\nfsync=4",
        "rw=write\nsize=64k\nfdatasync=3",
        "rw=write\nsize=32k\nfsync=4\nloops=3",
        "rw=write\nsize=16k\nfsync=3\nloops=3",
        "rw=write\nsize=16k\nfdatasync=4\nloops=2",
        "rw=write\nsize=16k\nfsync=4\nio_size=48k",
        "rw=write\nsize=16k\nfsync=4\nnumber_ios=4",
        "rw=write\nsize=64k\nbs=8k,16k\nfsync_on_close=1",
        "rw=write:8k\nsize=32k",
        "rw=read:-8k\nsize=32k",
        "rw=read\nsize=8k\nloops=3",
        "rw=read\nsize=8k\nio_size=20k",
        "rw=write\nsize=8k\nio_size=20k",
        "rw=write\nsize=16k\nio_size=0",
        "rw=read\nsize=16k\nio_limit=0",
        "rw=write\nsize=16k\nio_size=0%",
        "rw=write\nfilesize=16k\nsize=0%",
        "rw=read\nsize=40k\nnrfiles=3",
        "rw=write\nsize=40k\nfilename=j.a:j.b",
        "rw=write\nsize=32k\nnrfiles=2\nfsync=1",
        "rw=write\nsize=32k\nnrfiles=2\nfsync=3",
        "rw=write\nsize=48k\nnrfiles=3\nfsync=4\nloops=2",
        "rw=write\nsize=36k\nnrfiles=3\nfdatasync=2",
        "rw=write\nsize=20k\nnrfiles=2\nloops=2",
        "rw=read\nsize=20k\nioengine=sync",
        "rw=write:4k\nsize=20k\nioengine=sync",
        "rw=write\nsize=16k\noffset=6k",
        "rw=read\nsize=8k\nfilesize=16k",
        "rw=read\nsize=32k\nfilesize=16k",
        "rw=write\nsize=16k\nthinktime=100000\nfsync=2",
        "rw=read\nsize=8k\nthinktime=100000\nloops=2",
        "rw=write\nsize=24k\nthinktime=100000\nthinktime_blocks=2\nnumber_ios=4",
        "rw=write\nsize=8k\nthinktime=100000\nverify=crc32c\nverify_state_save=0",
        "rw=read\nsize=64k\nnumber_ios=5",
        "rw=read\nsize=64k\nnumber_ios=3\nloops=3",
        "rw=write\nsize=64k\nnumber_ios=3\nloops=2",
        "rw=write\nsize=8k\nnumber_ios=5\nloops=4",
        "rw=read\nsize=16k\nnumber_ios=3\nloops=2",
        "rw=write\nsize=16k\nverify=crc32c\nverify_state_save=0",
        "rw=write\nsize=16k\nfsync=4\nverify=crc32c\nverify_state_save=0",
        "rw=write\nsize=32k\nfsync=4\nverify=crc32c\nverify_state_save=0",
        "rw=read\nsize=50%\nfilesize=64k",
        "rw=read\nfilesize=64k\noffset=30%",
        "rw=read\nfilesize=16k\nnrfiles=2",
    ];
    let mut wrong = Vec::new();
    for (options, theirs) in jobs.iter().zip(traced(&jobs)) {
        let ours = planned(options);
        if ours != theirs {
            eprintln!("{options}\nours:  {ours:?}\nfio's: {theirs:?}\n");
            wrong.push(options);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Random jobs: which block comes when is drawn otherwise than by fio, but which blocks, how often, and
/// the flushes between are the same.
#[test]
fn random_jobs_touch_the_blocks_of_fio() {
    if !has_programs("random_jobs_touch_the_blocks_of_fio", &["fio", "strace"]) {
        return;
    }
    let jobs = [
        "rw=randread\nsize=64k",
        "rw=randwrite\nsize=64k\nfsync=3\nend_fsync=1",
        "rw=randwrite\nsize=16k\nfsync=4\nloops=3",
        "rw=randread\nsize=32k\nio_size=44k",
        "rw=randread\nsize=10k\nloops=2",
        "rw=randread\nsize=16k\nnumber_ios=4\nloops=3",
        "rw=randwrite\nsize=32k\nverify=md5\nverify_state_save=0",
        "rw=randwrite\nsize=32k\noffset=4k\nbs=8k",
        "rw=randread\nsize=32k\nnrfiles=2",
        "rw=randwrite\nsize=32k\nnrfiles=2\nfsync=3",
    ];
    for (options, theirs) in jobs.iter().zip(traced(&jobs)) {
        let ours = planned(options);
        let kinds = |calls: &[Call]| -> Vec<(&str, usize, u64)> {
            calls.iter().map(|call| (call.0, call.1, call.3)).collect()
        };
        assert_eq!(kinds(&ours), kinds(&theirs), "{options}");
        // The blocks of whole passes are the same; of a last, broken one they are drawn.
        let blocks = |mut calls: Vec<Call>| {
            if options.contains("io_size") {
                calls.truncate(8);
            }
            calls.sort_unstable();
            calls
        };
        assert_eq!(blocks(ours), blocks(theirs), "{options}");
    }
}

/// Every member of ours is one of fio's, of the same type.
fn is_part(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                let their = theirs.get(key).unwrap_or_else(|| panic!("{path}.{key} is not fio's"));
                is_part(value, their, &format!("{path}.{key}"));
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{path}");
            for (index, (our, their)) in ours.iter().zip(theirs).enumerate() {
                is_part(our, their, &format!("{path}[{index}]"));
            }
        }
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_)) => {}
        _ => panic!("{path}: {ours} is not like {theirs}"),
    }
}

#[test]
fn json_is_the_document_of_fio() {
    if !has_programs("json_is_the_document_of_fio", &["fio"]) {
        return;
    }
    for text in [
        "[global]\nsize=64k\n[w]\nrw=write\nfsync=4\ndescription=words\n[r]\nstonewall\nrw=randread\nbs=8k\n",
        "[global]\nsize=64k\nnumjobs=3\ngroup_reporting\n[a]\nrw=read\n[b]\nrw=write\nbs=16k\n\
         [c]\nnew_group\nrw=read\n",
        "[v]\nrw=write\nsize=64k\nverify=crc32c\nverify_state_save=0\n",
        "[p]\nrw=read\nsize=64k\npercentile_list=50:99.9\nioengine=libaio\niodepth=4\n",
    ] {
        let scratch = Scratch::new("fio-json");
        std::fs::write(scratch.0.join("job"), text).expect("written");
        let output = Command::new("fio")
            .args(["--output-format=json", "job"])
            .current_dir(&scratch.0)
            .output()
            .expect("fio");
        let printed = String::from_utf8(output.stdout).expect("text");
        let document = &printed[printed.find('{').expect("a document")..];
        let theirs: Value = serde_json::from_str(document).expect("fio's document");
        let workload = workload(&text.replace("verify_state_save=0\n", ""));
        let (record, _) = run(&workload, 1);
        let printed = workload.format("json", &record, "host").expect("a format");
        let ours: Value = serde_json::from_str(&printed).expect("our document");
        is_part(&ours, &theirs, "");
        let jobs = ours["jobs"].as_array().expect("jobs").iter();
        for (our, their) in jobs.zip(theirs["jobs"].as_array().expect("jobs")) {
            for key in ["jobname", "groupid", "error", "latency_depth"] {
                assert_eq!(our[key], their[key], "{key}");
            }
            if !text.contains("group_reporting") {
                let (ours, theirs) = (&our["job options"], &their["job options"]);
                assert_eq!(ours["rw"], theirs["rw"]);
            }
            for way in ["read", "write"] {
                for key in ["io_bytes", "io_kbytes", "total_ios"] {
                    assert_eq!(our[way][key], their[way][key], "{way} {key}\n{text}");
                }
                assert_eq!(our[way]["clat_ns"]["N"], their[way]["clat_ns"]["N"]);
            }
            assert_eq!(our["sync"]["total_ios"], their["sync"]["total_ios"], "{text}");
        }
    }
}
