//! Members without room: writes wait and go out again, nobody fails before the time is up, and nothing is
//! lost, whatever else happens meanwhile.

use crate::worst;
use std::cell::Cell;
use std::rc::Rc;

use crate::support::Work;
use crate::worst::{Bench, config, layouts, tight};
use raidlab_core::contract::{
    Event, Input, IoOp, IoOutcome, MemberIo, Outcome, RequestId, Segment,
};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sectors, Time};

const FULL: MemberIndex = MemberIndex(1);
const WAIT: Nanos = Nanos::from_millis(60_000);

/// The modes that a layout can have.
fn modes(layout: &Layout) -> Vec<Consistency> {
    let all = [
        Consistency::None,
        Consistency::Resync,
        Consistency::Bitmap { chunk: Sectors(16) },
        Consistency::PartialParity { slots: 6 },
        Consistency::Journal { sectors: Sectors(512) },
    ];
    let possible = |mode: &Consistency| {
        let mut config = config(layout, Limits::default());
        config.settings.consistency = *mode;
        config.settings.check(layout).is_ok()
    };
    all.into_iter().filter(possible).collect()
}

fn waiting(layout: &Layout, limits: Limits, mode: Consistency) -> Config {
    let mut config = config(layout, limits);
    config.settings.consistency = mode;
    config.settings.room_wait = Some(WAIT);
    config
}

/// From now on the first `tries` changes and records that go to the member find no room.
fn fill(bench: &mut Bench, tries: u32) -> Rc<Cell<u32>> {
    let left = Rc::new(Cell::new(tries));
    let meets = |left: Rc<Cell<u32>>| {
        move |member: MemberIndex, changes: bool| {
            if member != FULL || !changes || left.get() == 0 {
                return IoOutcome::Ok;
            }
            left.set(left.get() - 1);
            IoOutcome::NoSpace
        }
    };
    let (data, records) = (meets(left.clone()), meets(left.clone()));
    bench.driver.fault =
        Box::new(move |io| data(io.member, !matches!(io.op, IoOp::Read | IoOp::Flush)));
    bench.driver.meta_fault = Box::new(move |meta| records(meta.member, true));
    left
}

fn failures(bench: &Bench) -> Vec<Event> {
    let failed = |event: &&Event| {
        matches!(event, Event::MemberFailed(_) | Event::ArrayFailed | Event::JournalFailed)
    };
    bench.driver.events.iter().filter(failed).copied().collect()
}

/// Time goes on and nothing ends.
fn wake(bench: &mut Bench) -> bool {
    let Some(at) = bench.driver.wake.take() else { return false };
    bench.driver.now = bench.driver.now.max(at);
    bench.driver.input(Input::Wake);
    true
}

#[test]
fn what_finds_no_room_waits_and_nothing_fails() {
    for layout in layouts() {
        for mode in modes(&layout) {
            for seed in 0..4 {
                let limits = if seed % 2 == 0 { tight() } else { Limits::default() };
                let mut bench = Bench::new(&waiting(&layout, limits, mode), seed);
                let left = fill(&mut bench, 40);
                bench.load_until(|_| left.get() == 0);
                bench.idle();
                assert_eq!(failures(&bench), [], "{layout} {mode} {seed}");
                assert!(bench.has(Event::WaitsForRoom(FULL)), "{layout} {mode} {seed}");
                bench.assert_whole();
            }
        }
    }
}

#[test]
fn after_the_time_the_member_fails_and_the_write_is_answered() {
    for layout in layouts() {
        for mode in modes(&layout) {
            let mut bench = Bench::new(&waiting(&layout, Limits::default(), mode), 1);
            let begin = bench.driver.now;
            fill(&mut bench, u32::MAX);
            bench.load_until(|bench| bench.has(Event::MemberFailed(FULL)));
            let waited = Nanos(bench.driver.now.0 - begin.0);
            assert!(waited >= WAIT && waited < Nanos(2 * WAIT.0), "{layout} {mode}: {waited:?}");
            bench.idle();
            assert_eq!(bench.driver.in_service().len(), usize::from(layout.members) - 1);
            let len = bench.flat.len() as u32;
            assert_eq!(bench.driver.read(0, len), Ok(bench.flat.clone()), "{layout} {mode}");
        }
    }
}

/// A flush that failed may have lost what was written before: it is never tried again.
#[test]
fn a_flush_does_not_wait() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut bench = Bench::new(&waiting(&layout, Limits::default(), Consistency::None), 1);
    bench.driver.fault = Box::new(|io| match io.op {
        IoOp::Flush if io.member == FULL => IoOutcome::NoSpace,
        _ => IoOutcome::Ok,
    });
    let id = bench.driver.submit(IoOp::Flush, 0, &[]);
    bench.settle_all();
    assert_eq!(bench.driver.outcome(id), Some(Outcome::Done));
    assert!(bench.has(Event::MemberFailed(FULL)) && !bench.has(Event::WaitsForRoom(FULL)));
}

/// What waits is not with the driver: there is nothing to give up.
#[test]
fn a_deadline_does_not_run_while_a_write_waits() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = waiting(&layout, Limits::default(), Consistency::Resync);
    config.settings.deadline = Some(Nanos::from_millis(300));
    let mut bench = Bench::new(&config, 1);
    let left = fill(&mut bench, 10);
    let id = bench.driver.begin_write(0, &[7; 8], false);
    while bench.driver.outcome(id).is_none() {
        assert!(bench.step());
    }
    assert_eq!(left.get(), 0);
    assert_eq!(failures(&bench), []);
    // Once it is with the driver again, it does.
    fill(&mut bench, 1);
    let id = bench.driver.begin_write(8, &[7; 8], false);
    bench.settle_all();
    assert_eq!(bench.driver.outcome(id), None);
    while !bench.in_flight_to(FULL) {
        assert!(wake(&mut bench));
    }
    while !bench.has(Event::MemberFailed(FULL)) {
        assert!(wake(&mut bench), "it is given up");
        let given_up = |work: &Work| matches!(work, Work::Abandoned(_));
        if let Some(index) = bench.driver.work.iter().position(given_up) {
            bench.driver.step(index);
        }
    }
}

/// What went out again has all of its deadline from then on, although another I/O's makes the array look meanwhile.
#[test]
fn what_goes_out_again_has_a_deadline_of_its_own() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = waiting(&layout, Limits::default(), Consistency::None);
    config.settings.deadline = Some(Nanos::from_millis(300));
    let mut bench = Bench::new(&config, 1);
    fill(&mut bench, 1);
    bench.driver.begin_write(8, &[7; 8], false);
    bench.settle_all();
    assert!(bench.has(Event::WaitsForRoom(FULL)) && !bench.in_flight_to(FULL));
    assert!(wake(&mut bench), "deadlines are looked at, and none has passed");
    // A read that is never answered, from shortly before the write goes out again.
    let again = bench.driver.wake.expect("it is tried again");
    bench.driver.now = Time(again.0 - Nanos::from_millis(100).0);
    let token = bench.driver.buffer(vec![0; 8]);
    bench.driver.submit(IoOp::Read, 0, &[Segment { token, offset: 0, len: 8 }]);
    bench.driver.log.clear();
    bench.driver.now = again;
    bench.driver.input(Input::Wake);
    let written = |io: &&MemberIo| (io.member, io.op) == (FULL, IoOp::Write);
    assert_eq!(bench.driver.log.iter().filter(written).count(), 1);
    let given_up = |bench: &Bench| {
        bench.driver.work.iter().filter(|work| matches!(work, Work::Abandoned(_))).count()
    };
    for (millis, expected) in [(199, 0), (200, 1), (299, 1), (300, 2)] {
        bench.driver.now = again + Nanos::from_millis(millis);
        bench.driver.input(Input::Wake);
        assert_eq!(given_up(&bench), expected, "{millis} ms");
    }
}

/// Its member fails for another reason: nobody waits for room there any more, and no drive takes its place
/// before that has ended.
#[test]
fn what_waits_ends_when_its_member_fails() {
    for layout in layouts() {
        let mut bench = Bench::new(&waiting(&layout, Limits::default(), Consistency::None), 1);
        let left = fill(&mut bench, u32::MAX);
        let len = worst::block(&layout) as usize;
        let ids: Vec<RequestId> = (0..bench.flat.len() / len)
            .map(|n| bench.driver.begin_write((n * len) as u64, &vec![9; len], false))
            .take(16)
            .collect();
        bench.settle_all();
        assert!(left.get() < u32::MAX, "{layout}");
        let before = bench.driver.now;
        bench.fail(FULL.0);
        bench.add(FULL.0);
        let refused = |event: &Event| matches!(event, Event::Refused(_));
        assert!(bench.driver.events.iter().any(refused), "{layout}");
        left.set(0);
        bench.driver.log.clear();
        bench.driver.input(Input::Wake);
        bench.settle_all();
        assert!(ids.iter().all(|id| bench.driver.outcome(*id) == Some(Outcome::Done)), "{layout}");
        assert!(bench.driver.now < before + Nanos::from_millis(1), "{layout}");
        assert!(bench.driver.log.iter().all(|io| io.member != FULL), "{layout}");
    }
}
