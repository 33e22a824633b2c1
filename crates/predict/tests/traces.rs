//! Which runs of cells a trace holds.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::kept::Kept;
use raidlab_core::Time;
use raidlab_predict::{Modelled, Trace};
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, Runner, State, StudyErrorKind, parse};
use raidlab_workload::{Op, OpResult, Plan, Planned, Process};

static STOP: AtomicBool = AtomicBool::new(false);

/// A process at whose end somebody asks for a stop.
#[derive(Debug)]
struct Stopping(Box<dyn Process>);

impl Process for Stopping {
    fn next(&mut self, now: Time, last: OpResult) -> Op {
        let op = self.0.next(now, last);
        STOP.store(matches!(op, Op::Done), Ordering::Relaxed);
        op
    }
}

fn stopped_at_the_end(mut plan: Plan, _seed: u64) -> Plan {
    let stopping = |one: Planned| Planned { process: Box::new(Stopping(one.process)), ..one };
    plan.run = plan.run.into_iter().map(stopping).collect();
    plan
}

#[test]
fn a_run_that_is_stopped_leaves_no_trace() {
    let text = "title = \"T\"\ndrives = [{ name = \"nas\", model = \"nas-8tb-7200\", count = 1 }]\n\
                layouts = [{ level = \"single\" }]\n\
                workloads = [{ kind = \"random-read\", size = \"64KiB\" }]\n";
    let study = parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let key = CellKey { layout: 0, workload: 0, processes: 1, state: State::Healthy, again: false };
    let written = Kept::default();
    let trace = Trace::new(written.clone());
    let lines = || {
        let bytes = written.0.lock().expect("nobody fails").clone();
        String::from_utf8(bytes).expect("text").lines().count()
    };
    let modelled = || Modelled::new(&study, HostCosts::default()).expect("modelled");
    let mut stopped = modelled().traced_to(&trace).stopping_on(&STOP).starting(stopped_at_the_end);
    let error = stopped.run(&key, 0, 1).expect_err("stopped");
    assert_eq!(error.kind, StudyErrorKind::Stopped, "{error}");
    assert_eq!(lines(), 0);
    modelled().traced_to(&trace).run(&key, 0, 1).expect("runs");
    assert_eq!(lines(), 1 + 16, "a title and 16 requests of 4 KiB");
}
