use std::sync::Arc;

use super::*;
use crate::kinds::{self, Workload};
use crate::metric::Metric;
use crate::null::NullTarget;
use crate::op::Content;
use crate::plan::{Memory, Setting};

fn parameters(text: &str) -> Parameters {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
    Parameters::new(pairs).expect("no key twice")
}

fn make(kind: &str, text: &str) -> Arc<dyn Workload> {
    kinds::make(kind, parameters(text)).expect(text)
}

fn run(kind: &str, text: &str, copies: u32) -> (NullTarget, Vec<Op>) {
    let mut target = NullTarget::default();
    target.keep_steps();
    let plan = make(kind, text).plan(&Setting::new(copies, 1)).expect("a plan");
    let expected: Vec<(FilePath, u64)> =
        plan.expected.iter().map(|one| (one.path.clone(), one.bytes.len())).collect();
    target.run(plan).expect("runs");
    for (path, len) in expected {
        let id = target.names().find(&path).expect("copied");
        assert_eq!(target.names().status(id).size, len, "{path}");
    }
    let ops = target.steps().iter().map(|step| step.op.clone());
    let ops = ops.filter(|op| !matches!(op, Op::Mark(_) | Op::Done)).collect();
    (target, ops)
}

#[test]
fn nonsense_is_named() {
    for (kind, text, words) in [
        ("cp-null", "size=0", "size: `0` is not a size"),
        ("cp-null", "profile=1999", "profile: `1999` is not one of today, 2005"),
        ("cp-null", "block=2GiB", "block: is too large"),
        ("cp-null", "cached=true", "cached: is not a parameter"),
        ("cp-tar", "cached=1", "cached: `1` is neither"),
        ("cp-tar", "metric=iops", "metric: `iops` is not one of seconds"),
        ("cp-rf", "files=0", "files: `0` is not a whole number"),
        ("cp-rf", "block=4KiB", "block: means nothing with profile=today"),
    ] {
        let error = kinds::make(kind, parameters(text)).expect_err(text).to_string();
        assert!(error.starts_with(words), "{kind} {text}: {error}");
    }
}

#[test]
fn words_and_sizes() {
    for (kind, text, words, resized) in [
        (
            "cp-null",
            "size=1MiB",
            "copies a file of 1MiB to /dev/null (cp of coreutils 9.1, blocks of 128KiB)",
            "of 3000B to",
        ),
        (
            "cp-tar",
            "size=1MiB profile=2005",
            "copies a file of 1MiB from elsewhere that lies in memory to the target \
             (cp of coreutils 5.2 as assumed, blocks of 4KiB)",
            "of 3000B from",
        ),
        (
            "cp-rf",
            "files=10 size=1KB",
            "copies a tree of 10 files with 1000B to another directory \
             (cp of coreutils 9.1, copy_file_range)",
            "30 files with 3000B",
        ),
    ] {
        let workload = make(kind, text);
        assert_eq!((workload.kind(), workload.description().as_str()), (kind, words));
        let description = workload.resized(3000).expect("a size").description();
        assert!(description.contains(resized), "{description}");
        assert!(workload.resized(0).is_err());
        assert_eq!(workload.metrics()[0], Metric::SECONDS);
    }
    assert_eq!(make("cp-tar", "profile=2005").default_name(), "cp-tar 2005");
    assert_eq!(make("cp-null", "metric=mb_per_s").metrics()[0], Metric::MB_PER_SECOND);
}

#[test]
fn bytes_moved_are_counted_once() {
    for (kind, text) in
        [("cp-null", "size=1MiB"), ("cp-tar", "size=1MiB"), ("cp-rf", "files=50 size=1MiB")]
    {
        let workload = make(kind, &format!("{text} metric=mib_per_s"));
        let plan = workload.plan(&Setting::new(2, 1)).expect("a plan");
        let mut record = NullTarget::default().run(plan).expect("runs");
        for process in &mut record.processes {
            process.ended = raidlab_core::Time(500_000_000);
        }
        assert_eq!(workload.values(&record)[0], Some(4.0), "{kind}");
    }
}

#[test]
fn files_are_copied_by_blocks_of_the_profile() {
    let moves = |text| -> Vec<Op> {
        let (_, ops) = run("cp-tar", text, 1);
        ops.into_iter().filter(|op| matches!(op, Op::Read { .. } | Op::Write { .. })).collect()
    };
    let read = |len| Op::Read { fd: SOURCE, len, times: 1 };
    let content = Content::Buffer { from: 0 };
    let write = |len| Op::Write { fd: TARGET, len, content, times: 1 };
    let today =
        [read(TODAY_BLOCK), write(TODAY_BLOCK), read(TODAY_BLOCK), write(7), read(TODAY_BLOCK)];
    assert_eq!(moves("size=131079B"), today);
    let old = [read(4096), write(4096), read(4096), write(4096), read(4096)];
    assert_eq!(moves("size=8KiB profile=2005"), old);
    assert_eq!(moves("size=5B profile=2005 block=512B"), [read(512), write(5), read(512)]);
    let (_, ops) = run("cp-null", "size=1MB profile=2005", 1);
    let read = |len, times| Op::Read { fd: SOURCE, len, times };
    let reads: Vec<&Op> = ops.iter().filter(|op| matches!(op, Op::Read { .. })).collect();
    assert_eq!(reads, [&read(4096, 244), &read(4096, 1), &read(4096, 1)]);
}

#[test]
fn a_tree_is_copied_in_the_order_of_its_making_or_of_its_listing() {
    for profile in ["today", "2005"] {
        let text = format!("files=60 size=300KB profile={profile}");
        let (_, ops) = run("cp-rf", &text, 2);
        let ranged = ops.iter().filter(|op| matches!(op, Op::CopyRange { .. })).count();
        assert_eq!(ranged > 0, profile == "today");
        let lists = ops.iter().filter(|op| matches!(op, Op::List { .. })).count();
        assert_eq!(lists, 6);
        let exclusive =
            ops.iter().any(|op| matches!(op, Op::Open { flags, .. } if flags.exclusive));
        assert_eq!(exclusive, profile == "today");
    }
    // A target that lists backwards makes no difference to today's cp, but does to that of 2005.
    let order = |year, backwards| {
        let entries = |names: &[&str]| {
            let entry =
                |name: &&str| crate::op::Entry { name: (*name).into(), is_directory: false };
            let mut all: Vec<_> = names.iter().map(entry).collect();
            if backwards {
                all.reverse();
            }
            OpResult::Entries(all)
        };
        tree::order_of(year, &["a", "b", "c"], entries(&["a", "b", "c"]))
    };
    assert_eq!(order(Year::Today, true), ["a", "b", "c"]);
    assert_eq!(order(Year::Y2005, true), ["c", "b", "a"]);
    assert_eq!(order(Year::Y2005, false), ["a", "b", "c"]);
}

#[test]
fn plans_say_what_they_need() {
    let setting = Setting::new(2, 1);
    let plan = make("cp-tar", "size=10KB").plan(&setting).expect("a plan");
    assert_eq!((plan.memory, plan.warm.len(), plan.sources.len()), (Memory::Warm, 1, 1));
    assert_eq!((plan.files.len(), plan.needs_filesystem), (2, None));
    assert_eq!(plan.files[1].path, FilePath::target("linux-1.tar"));
    let plan = make("cp-tar", "size=10KB cached=false").plan(&setting).expect("a plan");
    assert_eq!((plan.memory, plan.warm.len()), (Memory::Cold, 0));
    let plan = make("cp-null", "size=10KB").plan(&setting).expect("a plan");
    assert_eq!((plan.prepare.len(), plan.files.len(), plan.room), (2, 2, 24_576));
    let plan = make("cp-rf", "files=5 size=10KB cached=true").plan(&setting).expect("a plan");
    assert!(plan.needs_filesystem.is_some());
    assert_eq!((plan.memory, plan.warm.len(), plan.expected.len()), (Memory::Warm, 2, 10));
    let raw = Setting { space: Some(1 << 40), ..setting };
    for kind in ["dd", "cp-null", "cp-tar"] {
        assert!(make(kind, "").plan(&raw).is_ok(), "{kind}");
        assert_eq!(make(kind, "").check_raw(1 << 40, 2, 512), Ok(()));
    }
    for kind in ["cp-null", "cp-tar"] {
        assert_eq!(make(kind, "").check_raw(1 << 40, 2, 4096), Ok(()));
        assert!(make(kind, "size=7KB").plan(&raw).is_err());
        assert!(make(kind, "size=10KiB").check_raw(16 << 10, 2, 512).is_err());
        assert_eq!(
            make(kind, "size=1KiB").check_raw(1 << 20, 2, 4096).expect_err("whole").key,
            "size"
        );
    }
    assert!(make("cp-rf", "files=5 size=10KB").check_raw(1 << 40, 1, 512).is_err());
}

/// Behind what wrote the files in a script: nothing is settled and nothing read before, whatever else is said.
#[test]
fn what_was_just_written_is_neither_settled_nor_warmed() {
    let setting = Setting::new(2, 1);
    for (kind, text) in [
        ("cp-null", "size=10KB just_written=true"),
        ("cp-rf", "files=5 size=10KB just_written=true"),
        ("cp-rf", "files=5 size=10KB cached=true just_written=true"),
        ("tar-xf", "files=5 size=10KB just_written=true"),
        ("tar-xf", "files=5 size=10KB cached=true just_written=true"),
    ] {
        let workload = make(kind, text);
        let plan = workload.plan(&setting).expect("a plan");
        assert_eq!((plan.memory, plan.warm.len()), (Memory::JustWritten, 0), "{kind} {text}");
        assert!(!plan.prepare.is_empty() && !plan.run.is_empty());
        assert!(workload.description().contains(" that was just written"), "{kind} {text}");
    }
    for (kind, text, memory, warm) in [
        ("cp-null", "size=10KB just_written=false", Memory::Cold, 0),
        ("cp-rf", "files=5 size=10KB just_written=false", Memory::Cold, 0),
        ("tar-xf", "files=5 size=10KB just_written=false", Memory::Warm, 2),
        ("tar-xf", "files=5 size=10KB cached=false", Memory::Cold, 0),
    ] {
        let workload = make(kind, text);
        let plan = workload.plan(&setting).expect("a plan");
        assert_eq!((plan.memory, plan.warm.len()), (memory, warm), "{kind} {text}");
        assert!(!workload.description().contains("just written"));
    }
    let error = kinds::make("cp-tar", parameters("just_written=true")).expect_err("elsewhere");
    assert!(error.to_string().starts_with("just_written: is not a parameter"), "{error}");
    let error = kinds::make("cp-rf", parameters("just_written=1")).expect_err("no flag");
    assert!(error.to_string().starts_with("just_written: `1` is neither"), "{error}");
}

#[test]
fn raw_targets_read_and_write_all_of_it() {
    for (kind, text) in [
        ("dd", "bs=4KiB size=1MiB conv=fsync seek=3"),
        ("dd", "bs=4KiB size=1MiB of=null"),
        ("cp-null", "size=1MiB"),
        ("cp-tar", "size=1MiB"),
    ] {
        let setting = Setting { space: Some(1 << 23), ..Setting::new(2, 1) };
        let plan = make(kind, text).plan(&setting).expect("a plan");
        let mut raw = crate::raw::RawPlan::new(plan, 1 << 23).expect("fits");
        for process in &mut raw.processes {
            let mut moved = 0;
            loop {
                let asked = process.next(raidlab_core::Time::ZERO, crate::raw::OpResult::Done);
                if asked == crate::processes::Asked::Done {
                    break;
                }
                moved += asked.operation().map_or(0, |request| request.span().1);
            }
            assert_eq!((process.failure(), moved), (None, 1 << 20), "{kind} {text}");
        }
    }
}
