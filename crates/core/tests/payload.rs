//! A driver that moves no bytes is asked for the same in the same order, with shorter lists.

use std::collections::VecDeque;

use raidlab_core::contract::{
    Completion, Input, IoOp, IoOutcome, JobResult, Output, Request, RequestId, Segment, Token,
};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Array, Config, Layout, Level, Limits, MemberIndex, Sector, Sectors, Time};

/// What an array asked for, a line each, and the most segments of a list.
fn asked(mut array: Array, failed: Option<u16>) -> (Vec<String>, usize) {
    let mut asked = Vec::new();
    let mut longest = 0;
    if let Some(member) = failed {
        let command = raidlab_core::contract::Admin::Fail(MemberIndex(member));
        array.handle(Time(0), Input::Admin(command));
    }
    let capacity = array.capacity().0;
    let block = u64::from(array.logical_block());
    let mut work: VecDeque<Output> = VecDeque::new();
    let mut next = 0u64;
    while next < 120 || !work.is_empty() {
        while next < 120 && array.can_accept() {
            let len = (1 + next * 37 % 190) * block;
            let at = next * 7919 * block % (capacity - len) / block * block;
            let op = if next.is_multiple_of(3) { IoOp::Write } else { IoOp::Read };
            let segments = &[Segment { token: Token(1), offset: 0, len: len as u32 }];
            let (id, at, len) = (RequestId(next), Sector(at), Sectors(len));
            array
                .handle(Time(0), Input::Request(Request { id, op, at, len, segments, fua: false }));
            next += 1;
        }
        while let Some(output) = array.poll() {
            let mut lists = Vec::new();
            match output {
                Output::MemberIo(io) => {
                    asked.push(format!("{:?} {:?} {:?} {}", io.member, io.op, io.at, io.len));
                    lists.push((io.segments, io.len));
                    work.push_back(output);
                }
                Output::Compute { job } => {
                    let job = array.job(job).expect("under way");
                    let (sources, targets) = (job.sources, job.targets);
                    let counts = (sources.len(), targets.len());
                    asked.push(format!("{:?} {} {counts:?}", job.op, job.len));
                    lists.extend(sources.iter().chain(targets).map(|list| (*list, job.len)));
                    work.push_back(output);
                }
                other => asked.push(format!("{other:?}")),
            }
            for (list, len) in lists {
                let lens: Vec<u32> = array.segments(&list).map(|segment| segment.len).collect();
                assert_eq!(lens.iter().sum::<u32>(), len);
                longest = longest.max(lens.len());
            }
        }
        // The last of what is under way ends first, now and then.
        let last = asked.len().is_multiple_of(5);
        match if last { work.pop_back() } else { work.pop_front() } {
            Some(Output::MemberIo(io)) => {
                let ended = Completion { io: io.io, outcome: IoOutcome::Ok };
                array.handle(Time(0), Input::Completion(ended));
            }
            Some(Output::Compute { job }) => {
                let result = JobResult::Done;
                array.handle(Time(0), Input::Computed { job, result });
            }
            _ => {}
        }
    }
    (asked, longest)
}

#[test]
fn without_payload_the_members_are_asked_for_the_same() {
    let policies =
        [ReadPolicy::Graid3Plain, ReadPolicy::Graid3RoundRobin, ReadPolicy::Graid3Verify];
    for (members, policy, failed) in [3, 5].iter().flat_map(|m| {
        policies.map(|p| (*m, p, None)).into_iter().chain([(*m, policies[0], Some(1))])
    }) {
        let mut config = Config::uniform(Layout::new(Level::Raid3, members), Sectors(4096));
        config.read_policy = policy;
        // Room for lists is short in the second, so that requests wait for it.
        for ios in [1024, 1] {
            config.limits = Limits { requests: 40, segments: 1, ios, plans: 20, windows: 1 };
            let array = Array::new(&config).expect("can be");
            let (with, longest) = asked(array.clone(), failed);
            let (without, shortest) = asked(array.without_payload(), failed);
            assert_eq!(with, without, "{members} members, {policy:?}, {failed:?}, {ios}");
            assert!(longest > 100 && shortest <= 2, "{longest} and {shortest} segments");
        }
    }
}
