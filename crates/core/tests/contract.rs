//! The contract: what is refused, what is ignored, what is held back, and in which order.

use crate::support::{Driver, Work};
use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoOp, IoOutcome, Outcome, Refusal, Scratch, Segment, Token,
};
use raidlab_core::{Config, Layout, Level, Limits, MemberConfig, MemberIndex, Sectors};
use raidlab_random::SplitMix64;

fn driver(level: Level, members: u16) -> Driver {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout.chunk = Sectors(16);
    }
    let mut config = Config::uniform(layout, Sectors(160));
    config.members[0].logical_block = 8;
    config.limits = Limits { requests: 4, segments: 4, ios: 16, plans: 2, windows: 2 };
    Driver::new(&config)
}

fn segment(driver: &mut Driver, len: u32) -> Segment {
    let token = driver.buffer(vec![1; len as usize]);
    Segment { token, offset: 0, len }
}

#[test]
fn requests_that_cannot_be_are_answered_at_once() {
    let mut driver = driver(Level::Raid0, 4);
    let end = driver.array.capacity().0;
    let good = segment(&mut driver, 8);
    let short = Segment { len: 4, ..good };
    let scratch = Segment { token: Token(Scratch::FIRST), ..good };
    let empty = Segment { len: 0, ..good };
    for (op, at, segments, outcome) in [
        (IoOp::Read, end, vec![good], Outcome::OutOfRange),
        (IoOp::Write, u64::MAX - 3, vec![good], Outcome::OutOfRange),
        (IoOp::Read, 4, vec![good], Outcome::Misaligned),
        (IoOp::Write, 0, vec![short], Outcome::Misaligned),
        (IoOp::Read, 0, vec![good; 5], Outcome::BadSegments),
        (IoOp::Read, 0, vec![scratch], Outcome::BadSegments),
        (IoOp::Read, 0, vec![good, empty], Outcome::BadSegments),
        (IoOp::Flush, 0, vec![good], Outcome::BadSegments),
        (IoOp::Read, 0, vec![], Outcome::Done),
        (IoOp::Discard, 0, vec![good], Outcome::BadSegments),
        (IoOp::WriteZeroes, 0, vec![], Outcome::Done),
    ] {
        let id = driver.submit(op, at, &segments);
        assert_eq!(driver.outcome(id), Some(outcome), "{op:?} at {at}");
        assert!(driver.work.is_empty(), "{op:?} at {at} touches no member");
    }
}

#[test]
fn a_full_array_says_so() {
    let mut driver = driver(Level::Raid0, 4);
    for _ in 0..4 {
        assert!(driver.array.can_accept());
        let segment = segment(&mut driver, 8);
        driver.submit(IoOp::Write, 0, &[segment]);
    }
    assert!(!driver.array.can_accept());
    let segment = segment(&mut driver, 8);
    let id = driver.submit(IoOp::Write, 0, &[segment]);
    assert_eq!(driver.outcome(id), Some(Outcome::Busy));
    driver.run();
    assert!(driver.array.can_accept());
    assert_eq!(driver.replies.iter().filter(|(_, o)| *o == Outcome::Done).count(), 4);
}

#[test]
fn late_and_repeated_completions_change_nothing() {
    let mut driver = driver(Level::Raid1, 2);
    let segment = segment(&mut driver, 8);
    driver.submit(IoOp::Write, 0, &[segment]);
    let Work::Io(first) = driver.work[0] else { panic!("a write") };
    driver.run();
    let before = driver.array.state_key();
    let again = Completion { io: first.io, outcome: IoOutcome::Gone };
    driver.input(Input::Completion(again));
    assert_eq!(driver.array.state_key(), before);
    assert!(driver.events.is_empty());
    assert_eq!(driver.replies.len(), 1);
}

#[test]
fn a_plug_holds_requests_back() {
    let mut driver = driver(Level::Raid5, 3);
    driver.input(Input::Plug);
    let segment = segment(&mut driver, 8);
    driver.submit(IoOp::Write, 0, &[segment]);
    driver.submit(IoOp::Read, 16, &[segment]);
    assert!(driver.work.is_empty());
    driver.input(Input::Unplug);
    assert!(!driver.work.is_empty());
    driver.run();
    assert_eq!(driver.replies.len(), 2);
}

#[test]
fn a_flush_reaches_every_member_in_service() {
    let mut driver = driver(Level::Raid1, 3);
    driver.fail(1);
    let id = driver.submit(IoOp::Flush, 0, &[]);
    let members: Vec<_> = driver.log.iter().map(|io| (io.op, io.member.0)).collect();
    assert_eq!(members, [(IoOp::Flush, 0), (IoOp::Flush, 2)]);
    assert_eq!(driver.outcome(id), None, "not before the members have answered");
    driver.run();
    assert_eq!(driver.outcome(id), Some(Outcome::Done));
}

#[test]
fn commands_this_version_lacks_are_refused_by_event() {
    let mut driver = driver(Level::Raid1, 2);
    for command in [Admin::Fail(MemberIndex(7)), Admin::Fail(MemberIndex(9))] {
        driver.input(Input::Admin(command));
        assert_eq!(driver.events.last(), Some(&Event::Refused(Refusal::NoSuchMember)));
    }
}

#[test]
fn a_large_request_is_one_range_a_member() {
    let mut driver = driver(Level::Raid0, 4);
    let segment = segment(&mut driver, 256);
    driver.submit(IoOp::Read, 0, &[segment]);
    let sent: Vec<_> = driver.log.iter().map(|io| (io.member.0, io.at.0, io.len)).collect();
    assert_eq!(sent, [(0, 0, 64), (1, 0, 64), (2, 0, 64), (3, 0, 64)]);
}

#[test]
fn a_full_stripe_is_written_without_reads_and_a_small_write_takes_four() {
    let layout = Layout::new(Level::Raid5, 5).with_chunk(Sectors(16));
    let mut driver = Driver::new(&Config::uniform(layout, Sectors(160)));
    let whole = segment(&mut driver, 64);
    driver.submit(IoOp::Write, 0, &[whole]);
    driver.run();
    assert_eq!(driver.log.len(), 5);
    assert!(driver.log.iter().all(|io| io.op == IoOp::Write && io.len == 16));
    driver.log.clear();
    let small = Segment { len: 8, ..whole };
    driver.submit(IoOp::Write, 0, &[small]);
    driver.run();
    let ops: Vec<_> = driver.log.iter().map(|io| (io.op, io.member.0, io.len)).collect();
    let (read, write) = (IoOp::Read, IoOp::Write);
    assert_eq!(ops, [(read, 0, 8), (read, 4, 8), (write, 0, 8), (write, 4, 8)]);
}

#[test]
fn fua_goes_to_every_write_of_a_stripe() {
    let mut driver = driver(Level::Raid5, 3);
    let segment = segment(&mut driver, 8);
    let request = raidlab_core::contract::Request {
        id: raidlab_core::contract::RequestId(99),
        op: IoOp::Write,
        at: raidlab_core::Sector(0),
        len: Sectors(8),
        segments: &[segment],
        fua: true,
    };
    driver.input(Input::Request(request));
    driver.run();
    assert!(driver.log.iter().all(|io| io.fua == (io.op == IoOp::Write)));
}

#[test]
fn the_key_of_a_state_forgets_how_it_came_about() {
    let mut one = driver(Level::Raid5, 3);
    let mut other = driver(Level::Raid5, 3);
    let segment_one = segment(&mut one, 8);
    let segment_other = segment(&mut other, 8);
    other.submit(IoOp::Read, 0, &[segment_other]);
    other.run();
    for driver in [&mut one, &mut other] {
        driver.submit(IoOp::Write, 0, &[segment_one]);
        driver.run_shuffled(&mut SplitMix64::new(7));
        driver.submit(IoOp::Write, 80, &[segment_one]);
    }
    assert_eq!(one.array.state_key(), other.array.state_key());
    one.step(0);
    assert_ne!(one.array.state_key(), other.array.state_key());
}

#[test]
fn members_whose_blocks_do_not_fit_are_refused() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(4));
    let mut config = Config::uniform(layout, Sectors(160));
    config.members[1] = MemberConfig { sectors: Sectors(160), logical_block: 8 };
    assert_eq!(raidlab_core::Array::new(&config).expect_err("chunk of 4").key, "logical_block");
    config.members[1].logical_block = 3;
    assert_eq!(raidlab_core::Array::new(&config).expect_err("block of 3").key, "logical_block");
    config.members[1].logical_block = 1;
    config.limits.plans = 0;
    assert_eq!(raidlab_core::Array::new(&config).expect_err("no plans").key, "limits");
    config.limits.plans = 1;
    config.layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    config.members[1].logical_block = 8;
    for rows in [0, 3, 4] {
        config.settings.plan_rows = Sectors(rows);
        assert_eq!(raidlab_core::Array::new(&config).expect_err("no slice").key, "plan_rows");
    }
}

#[test]
fn zeroes_and_discards_reach_every_copy_and_whole_stripes_only() {
    let ops = |driver: &Driver| -> Vec<_> {
        driver.log.iter().map(|io| (io.op, io.member.0, io.at.0, io.len)).collect()
    };
    let mut mirror = driver(Level::Raid1, 2);
    mirror.submit_range(IoOp::Discard, 8, 16);
    assert_eq!(ops(&mirror), [0, 1].map(|m| (IoOp::Discard, m, 8, 16)));
    let mut stripes = driver(Level::Raid5, 3);
    // A stripe is 32 sectors: of 8..80 only the second is whole.
    stripes.submit_range(IoOp::Discard, 8, 72);
    stripes.run();
    assert_eq!(ops(&stripes), [2, 0, 1].map(|m| (IoOp::WriteZeroes, m, 16, 16)));
    stripes.log.clear();
    let id = stripes.submit_range(IoOp::Discard, 8, 40);
    assert_eq!(stripes.outcome(id), Some(Outcome::Done), "no whole stripe: nothing to do");
    assert!(stripes.log.is_empty());
}

#[test]
fn raid3_moves_every_spindle_and_takes_whole_sectors_only() {
    let layout = Layout::new(Level::Raid3, 5);
    let mut driver = Driver::new(&Config::uniform(layout, Sectors(160)));
    assert_eq!(driver.array.logical_block(), 4);
    let whole = segment(&mut driver, 8);
    driver.submit(IoOp::Write, 0, &[whole]);
    driver.run();
    let sent: Vec<_> = driver.log.iter().map(|io| (io.op, io.member.0, io.len)).collect();
    assert_eq!(sent, [0, 1, 2, 3, 4].map(|m| (IoOp::Write, m, 2)));
    driver.log.clear();
    driver.submit(IoOp::Read, 0, &[whole]);
    driver.run();
    let sent: Vec<_> = driver.log.iter().map(|io| (io.op, io.member.0, io.len)).collect();
    assert_eq!(sent, [0, 1, 2, 3].map(|m| (IoOp::Read, m, 2)), "parity is not read");
    let part = Segment { len: 6, ..whole };
    let id = driver.submit(IoOp::Read, 0, &[part]);
    assert_eq!(driver.outcome(id), Some(Outcome::Misaligned));
}

#[test]
fn a_small_raid6_write_is_six_and_a_full_stripe_reads_nothing() {
    let layout = Layout::new(Level::Raid6, 7).with_chunk(Sectors(16));
    let mut driver = Driver::new(&Config::uniform(layout, Sectors(160)));
    let whole = segment(&mut driver, 80);
    driver.submit(IoOp::Write, 0, &[Segment { len: 8, ..whole }]);
    driver.run();
    let count = |op| driver.log.iter().filter(|io| io.op == op).count();
    assert_eq!((count(IoOp::Read), count(IoOp::Write)), (3, 3));
    driver.log.clear();
    driver.submit(IoOp::Write, 0, &[whole]);
    driver.run();
    assert_eq!(driver.log.len(), 7);
    assert!(driver.log.iter().all(|io| io.op == IoOp::Write && io.len == 16));
}

#[test]
fn an_array_without_superblocks_stops_with_flushes_alone() {
    for (level, members) in [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 3)] {
        let mut driver = driver(level, members);
        assert_eq!(driver.write(0, &[1; 8]), Outcome::Done);
        driver.log.clear();
        driver.meta_fault = Box::new(|meta| panic!("a record: {meta:?}"));
        driver.input(Input::Admin(Admin::Stop));
        driver.run();
        assert_eq!(driver.events, [Event::Stopped], "{level}");
        assert!(driver.log.iter().all(|io| io.op == IoOp::Flush), "{level}");
        assert_eq!(driver.log.len(), usize::from(members), "{level}");
    }
}
