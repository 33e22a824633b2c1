//! Cells of studies in guests of the kernels that `cargo xtask kernel` has built. Where there is none, each test says
//! so and is skipped.

#[path = "../../../tests/support/kept.rs"]
mod kept;

use std::io::{self, Write};
use std::os::fd::AsFd;

use kept::Kept;
use raidlab_kernel_lab::cache;
use raidlab_kernel_study::{Binaries, Cost, KernelError, KernelLab, Options, prepare};
use raidlab_predict::Trace;
use raidlab_study::{Runner, Sample, Study, cells};

/// The versions that are here with the programs of guests; none after a line on standard error.
fn versions_or_skip(test: &str) -> Vec<&'static str> {
    let versions = raidlab_kernel_study::versions().into_iter();
    let here: Vec<_> = versions.filter(|version| cache::kernel(version).is_ok()).collect();
    if !here.is_empty() && cache::programs().is_some() {
        return here;
    }
    // Written past the test harness, which would keep the output of a test that passes.
    let needs = "needs `cargo xtask kernel 6.12` and `cargo xtask kernel programs`";
    let line = format!("skipped: {test}: {needs}\n");
    io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    Vec::new()
}

const HEAD: &str = "\
title = \"test\"
member_size = \"2GiB\"
host = { memory = \"256MiB\" }
";
const DRIVES: &str = "\
[[drives]]
name = \"nas\"
model = \"nas-8tb-7200\"
count = 6
";

fn study(head: &str, rest: &str) -> Study {
    let text = format!("{HEAD}{head}{DRIVES}{rest}");
    let mut study = raidlab_study::parse(&text, "test").expect("a study");
    prepare(&mut study).expect("guests can run it");
    study
}

fn options(version: &str) -> Options {
    let binaries = Binaries::find(version).expect("is here");
    Options { binaries, cost: Cost::PLAIN, varied_starts: false }
}

/// Every cell once.
fn samples(study: &Study, version: &str, seed: u64) -> Vec<Sample> {
    let (stop, _keeps_it_quiet) = io::pipe().expect("can be made");
    let lab = KernelLab::new(study, options(version), stop.as_fd(), None).expect("a lab");
    let mut runner = lab.runner();
    let run = |key: &_| runner.run(key, 0, seed).unwrap_or_else(|error| panic!("{error}"));
    cells(study).iter().map(run).collect()
}

const RAID5: &str = "\
[[layouts]]
level = \"raid5\"
members = 3
[[workloads]]
kind = \"dd-read\"
size = \"32MiB\"
";

#[test]
fn states_of_an_array_are_those_of_md() {
    for version in versions_or_skip("states_of_an_array_are_those_of_md") {
        let study = study("states = [\"healthy\", \"degraded\", \"rebuilding\"]\n", RAID5);
        let samples = samples(&study, version, 1);
        let [healthy, degraded, rebuilding, alone] = &samples[..] else {
            panic!("{} cells", samples.len());
        };
        // Of three members two hold data of a row; where one is lost, the other two are read whole.
        let read = |sample: &Sample| sample.members.expect("counted").bytes_read;
        assert!((31 << 20..34 << 20).contains(&read(healthy)), "{}", read(healthy));
        assert!((31 << 20..34 << 20).contains(&read(degraded)), "{}", read(degraded));
        let rebuild = rebuilding.rebuild.expect("one goes on");
        assert!(rebuild.done > 0.0 && rebuild.done < 1.0, "{rebuild:?}");
        let rebuild = alone.rebuild.expect("it ended");
        // No drive writes faster.
        let least = (2_u64 << 30) as f64 / 260e6;
        assert!(rebuild.done >= 1.0 && rebuild.elapsed.as_secs() > least, "{rebuild:?}");
        assert!(healthy.rebuild.is_none() && degraded.rebuild.is_none());
        let busiest = healthy.bottleneck.as_ref();
        assert!(busiest.is_some_and(|(name, share)| name.starts_with("member ") && *share > 0.5));
    }
}

const MIRROR: &str = "\
[[layouts]]
level = \"raid1\"
members = 2
consistency = \"bitmap\"
[[workloads]]
kind = \"dd-write\"
size = \"16MiB\"
[[workloads]]
kind = \"small-files\"
files = 100
fsync = true
";

#[test]
fn a_seed_gives_the_same_requests_and_another_one_others() {
    let test = "a_seed_gives_the_same_requests_and_another_one_others";
    let Some(version) = versions_or_skip(test).pop() else { return };
    let study = study("filesystem = \"xfs\"\nprocesses = [2]\n", MIRROR);
    let traced = |seed: u64| {
        let kept = Kept::default();
        let trace = Trace::new(kept.clone());
        let (stop, _keeps_it_quiet) = io::pipe().expect("can be made");
        let options = Options { varied_starts: true, ..options(version) };
        let lab = KernelLab::new(&study, options, stop.as_fd(), Some(&trace)).expect("a lab");
        let run = |key: &_| lab.runner().run(key, 0, seed);
        let run = |key: &_| run(key).unwrap_or_else(|error| panic!("{error}"));
        let samples: Vec<Sample> = cells(&study).iter().map(run).collect();
        let text = kept.0.lock().expect("nobody fails").clone();
        (samples, text)
    };
    let (one, again, other) = (traced(1), traced(1), traced(2));
    assert!(one == again, "a seed gives one trace");
    assert!(one.1 != other.1);
    let written = one.0[0].members.expect("counted").bytes_written;
    // Both copies of two files, and what the filesystem and the bitmap add.
    assert!((64 << 20..70 << 20).contains(&written), "{written}");
}

#[test]
fn what_cannot_be_is_told_before_a_guest_starts() {
    let test = "what_cannot_be_is_told_before_a_guest_starts";
    let Some(version) = versions_or_skip(test).pop() else { return };
    let mut study = study("", RAID5);
    let (stop, _keeps_it_quiet) = io::pipe().expect("can be made");
    let missing = Binaries::find("7.1").expect_err("is not built");
    assert!(missing.to_string().contains("cargo xtask kernel 7.1"), "{missing}");
    study.workloads[0].resize(5 << 30).expect("another size");
    match KernelLab::new(&study, options(version), stop.as_fd(), None).err() {
        Some(KernelError::Input(what)) => assert!(what.contains("dd-read"), "{what}"),
        other => panic!("{other:?}"),
    }
}

const NESTED: &str = "\
[[layouts]]
level = \"raid5+0\"
arrays = 2
members = 6
[[layouts]]
level = \"raid0+1\"
arrays = 2
members = 4
[[workloads]]
kind = \"dd-read\"
size = \"32MiB\"
";

#[test]
fn nested_levels_are_md_on_md_in_all_states() {
    let Some(version) = versions_or_skip("nested_levels_are_md_on_md_in_all_states").pop() else {
        return;
    };
    let head = "states = [\"healthy\", \"degraded\", \"rebuilding\"]\n";
    let study = study(head, NESTED);
    let samples = samples(&study, version, 1);
    assert_eq!(samples.len(), 8, "four of each layout");
    let read = |sample: &Sample| sample.members.expect("counted").bytes_read;
    let keys = cells(&study);
    let of = |layout: usize| -> Vec<&Sample> {
        let all = keys.iter().zip(&samples).filter(|(key, _)| key.layout == layout);
        all.map(|(_, sample)| sample).collect()
    };
    let took = |sample: &Sample| sample.rebuild.expect("it ended").elapsed.as_secs();
    for layout in 0..2 {
        let [healthy, degraded, rebuilding, alone] = of(layout)[..] else { panic!("four") };
        // The lower array computes what is lost from as much as it reads anyway; the upper one has another copy.
        for sample in [healthy, degraded] {
            assert!((31 << 20..35 << 20).contains(&read(sample)), "{}", read(sample));
        }
        let rebuild = rebuilding.rebuild.expect("one goes on");
        assert!(rebuild.done > 0.0 && rebuild.done < 1.0, "{rebuild:?}");
        assert!(alone.rebuild.is_some_and(|rebuild| rebuild.done >= 1.0));
        // No drive is written faster.
        assert!(took(alone) > (2_u64 << 30) as f64 / 260e6, "{}", took(alone));
    }
}

const SPARED: &str = "\
[[layouts]]
level = \"raid5\"
members = 3
spares = 1
group_thread_cnt = 2
[[workloads]]
kind = \"dd-read\"
size = \"32MiB\"
";

#[test]
fn a_hot_spare_takes_over_when_a_member_fails() {
    let Some(version) = versions_or_skip("a_hot_spare_takes_over_when_a_member_fails").pop() else {
        return;
    };
    let study = study("states = [\"healthy\", \"rebuilding\"]\n", SPARED);
    assert!(study.layouts[0].name.ends_with("group_thread_cnt=2 spares=1"));
    let samples = samples(&study, version, 1);
    let [healthy, rebuilding, alone] = &samples[..] else { panic!("{} cells", samples.len()) };
    assert!(healthy.rebuild.is_none());
    let rebuild = rebuilding.rebuild.expect("one goes on");
    assert!(rebuild.done > 0.0 && rebuild.done < 1.0, "{rebuild:?}");
    let rebuild = alone.rebuild.expect("it ended");
    assert!(rebuild.done >= 1.0 && rebuild.elapsed.as_secs() > (2_u64 << 30) as f64 / 260e6);
}
