//! The timings of hdparm ask for what hdparm itself asks the system for, as `strace` shows on a loop
//! device. Needs root, hdparm, strace and loop devices; skipped by name elsewhere.

use raidlab_core::{Nanos, Time};
use raidlab_workload::{Op, OpResult, Parameters, Seek, Setting, make};

use crate::hdparm_support::{SIZE, hdparm_calls, loop_or_skip, reads};

/// What the workload asks for on a device of the same size, with `step` for each read.
fn workload_calls(kind: &str, parameters: &[(&str, &str)], step: Nanos) -> Vec<String> {
    let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
    let setting = Setting { space: Some(SIZE), ..Setting::new(1, 1) };
    let plan = make(kind, given).expect(kind).plan(&setting);
    let mut process = plan.expect("it can be").run.remove(0).process;
    let (mut now, mut last, mut calls) = (Time::ZERO, OpResult::Start, Vec::new());
    loop {
        let op = process.next(now, last);
        last = OpResult::Done;
        calls.push(match op {
            Op::Open { flags, .. } => format!("open{}", if flags.direct { " direct" } else { "" }),
            Op::SyncAll => "sync".to_string(),
            Op::Sleep(time) => format!("sleep {}", time.as_secs()),
            Op::Fsync { .. } => "fsync".to_string(),
            Op::Fdatasync { .. } => "fdatasync".to_string(),
            Op::DropCached { .. } => "drop".to_string(),
            Op::Seek { to: Seek::Start(at), .. } => format!("seek {at}"),
            Op::Read { len, .. } => {
                now = Time(now.0 + step.0);
                last = OpResult::Moved(len);
                format!("read {len}")
            }
            Op::Done => return calls,
            _ => continue,
        });
    }
}

#[test]
fn device_reads() {
    let Some(device) = loop_or_skip("hdparm_strace::device_reads") else { return };
    let calls = hdparm_calls(&device, &["-t"]);
    assert_eq!(reads(&calls), 4, "{calls:?}");
    assert_eq!(workload_calls("hdparm-t", &[], Nanos(1)), calls);
}

#[test]
fn device_reads_past_the_page_cache() {
    let Some(device) = loop_or_skip("hdparm_strace::device_reads_past_the_page_cache") else {
        return;
    };
    let calls = hdparm_calls(&device, &["-t", "--direct"]);
    assert_eq!((calls[0].as_str(), reads(&calls)), ("open direct", 4));
    assert_eq!(workload_calls("hdparm-t", &[("direct", "true")], Nanos(1)), calls);
}

#[test]
fn cached_reads() {
    let Some(device) = loop_or_skip("hdparm_strace::cached_reads") else { return };
    let calls = hdparm_calls(&device, &["-T"]);
    // As many reads as hdparm came to in two seconds, not counting the first.
    let timed = reads(&calls) - 1;
    assert!(timed > 0, "{calls:?}");
    let step = Nanos(2_000_000_000u64.div_ceil(timed));
    assert_eq!(workload_calls("hdparm-T", &[], step), calls);
}
