//! Request queues and schedulers against orders worked out by hand.

use std::collections::BTreeMap;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};
use raidlab_models::{
    DriveIo, DriveIoId, DriveOp, Queue, QueueInput, QueueOutput, QueueSpec, Scheduler,
};

use DriveOp::{Flush, Read, Write};

/// A queue in front of a drive that takes one request after another, 1 ms each, unless told otherwise.
struct Harness {
    queue: Queue,
    now: Time,
    /// What the drive has, in order, with its end.
    drive: Vec<(DriveIo, Time)>,
    service: Nanos,
    sent: Vec<(DriveOp, u64, u32)>,
    ended: Vec<(u32, IoOutcome)>,
    wake: Option<Time>,
    next: u32,
}

impl Harness {
    fn new(spec: &QueueSpec) -> Self {
        Self {
            queue: Queue::new(spec),
            now: Time::ZERO,
            drive: Vec::new(),
            service: Nanos::from_millis(1),
            sent: Vec::new(),
            ended: Vec::new(),
            wake: None,
            next: 0,
        }
    }

    fn of(scheduler: Scheduler) -> Self {
        Self::new(&scheduler.spec(1))
    }

    fn handle(&mut self, input: QueueInput) {
        self.queue.handle(self.now, input);
        while let Some(output) = self.queue.poll() {
            match output {
                QueueOutput::Dispatch(io) => {
                    self.sent.push((io.op, io.at.0, io.len));
                    let start = self.drive.last().map_or(self.now, |(_, end)| *end);
                    self.drive.push((io, start + self.service));
                }
                QueueOutput::Complete { id, outcome } => self.ended.push((id.0, outcome)),
                QueueOutput::WakeAt(at) => self.wake = Some(at),
            }
        }
    }

    fn submit(&mut self, op: DriveOp, at: u64, len: u32, process: u32) {
        let id = DriveIoId(self.next);
        self.next += 1;
        let io = DriveIo { id, op, at: Sector(at), len, fua: false };
        self.handle(QueueInput::Submit { io, process });
    }

    /// Lets time pass up to a moment.
    fn until(&mut self, end: Time) {
        loop {
            let drive = self.drive.first().map(|(_, end)| *end);
            let wake = self.wake.filter(|at| *at > self.now);
            let Some(at) = drive.into_iter().chain(wake).min().filter(|at| *at <= end) else {
                self.now = self.now.max(end);
                return;
            };
            self.now = at;
            if drive == Some(at) {
                let (io, _) = self.drive.remove(0);
                self.handle(QueueInput::Ended { id: io.id, outcome: IoOutcome::Ok });
            } else {
                self.wake = None;
                self.handle(QueueInput::Wake);
            }
        }
    }

    fn run(&mut self) {
        self.until(Time(u64::MAX / 2));
    }

    fn places(&self) -> Vec<u64> {
        self.sent.iter().map(|(_, at, _)| *at).collect()
    }
}

fn ms(millis: u64) -> Time {
    Time(millis * 1_000_000)
}

#[test]
fn noop_and_none_keep_the_order() {
    for scheduler in [Scheduler::Noop, Scheduler::None] {
        let mut harness = Harness::of(scheduler);
        let places =
            if scheduler == Scheduler::Noop { vec![500, 100, 900, 50] } else { vec![500, 100] };
        for at in &places {
            harness.submit(Read, *at, 8, 0);
        }
        harness.run();
        assert_eq!(harness.places(), places);
    }
}

#[test]
fn what_is_held_under_a_plug_is_merged_before_the_drive_gets_any() {
    for (plugged, sent) in [
        (None, vec![(Read, 100, 24), (Read, 500, 8)]),
        (Some(Sectors(16)), vec![(Read, 100, 16), (Read, 116, 8), (Read, 500, 8)]),
    ] {
        let spec = QueueSpec { plugged, ..Scheduler::MqDeadline.spec(32) };
        let mut harness = Harness::new(&spec);
        for at in [100, 108, 116, 500] {
            let id = DriveIoId(at as u32);
            let io = DriveIo { id, op: Read, at: Sector(at), len: 8, fua: false };
            harness.handle(QueueInput::Hold { io, process: 0 });
        }
        assert_eq!(harness.sent, [], "the plug is not pulled");
        harness.handle(QueueInput::Wake);
        assert_eq!(harness.sent, sent);
        // Who comes without one goes straight to a drive that takes it.
        harness.submit(Read, 508, 8, 0);
        assert_eq!(harness.sent.last(), Some(&(Read, 508, 8)));
        harness.run();
        assert_eq!(harness.ended.len(), 5);
    }
}

#[test]
fn neighbours_are_merged() {
    for scheduler in Scheduler::ALL {
        let mut harness = Harness::new(&QueueSpec { requests: 128, ..scheduler.spec(1) });
        harness.submit(Read, 90_000, 8, 0); // At the drive; the rest waits.
        for at in [108, 116, 100, 500] {
            harness.submit(Write, at, 8, 0);
        }
        harness.submit(Read, 124, 8, 0);
        harness.run();
        let writes: Vec<_> = harness.sent.iter().filter(|(op, ..)| *op == Write).collect();
        let front = scheduler != Scheduler::Noop;
        let merged = (Write, 100, 24);
        assert_eq!(writes.contains(&&merged), front, "{scheduler}: {writes:?}");
        assert_eq!(writes.contains(&&(Write, 108, 16)), !front, "{scheduler}: behind only");
        assert!(harness.sent.contains(&(Read, 124, 8)), "{scheduler}: reads do not join writes");
        let mut ids: Vec<_> = harness.ended.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5], "{scheduler}: every part ends");
    }
}

/// Of several requests that could be continued, the one that has waited longest is.
#[test]
fn the_oldest_neighbour_is_merged_with() {
    for scheduler in [Scheduler::Deadline, Scheduler::Anticipatory, Scheduler::Cfq] {
        let mut harness = Harness::new(&QueueSpec { requests: 128, ..scheduler.spec(1) });
        harness.submit(Read, 90_000, 8, 0);
        for (at, len) in [(0, 16), (8, 8), (16, 8), (108, 8), (100, 8), (100, 24), (92, 8)] {
            harness.submit(Write, at, len, 0);
        }
        harness.run();
        let mut writes: Vec<_> = harness.sent.iter().filter(|(op, ..)| *op == Write).collect();
        writes.sort_unstable_by_key(|(_, at, len)| (*at, *len));
        let expected = [(Write, 0, 24), (Write, 8, 8), (Write, 92, 24), (Write, 100, 24)];
        assert_eq!(writes, expected.iter().collect::<Vec<_>>(), "{scheduler}");
    }
}

#[test]
fn merging_stops_at_the_longest_request() {
    let mut harness = Harness::new(&QueueSpec { requests: 128, ..Scheduler::Deadline.spec(1) });
    harness.submit(Read, 90_000, 8, 0);
    for at in (0..3_072).step_by(256) {
        harness.submit(Write, at, 256, 0);
    }
    harness.run();
    let lengths: Vec<_> = harness.sent.iter().skip(1).map(|(_, at, len)| (*at, *len)).collect();
    assert_eq!(lengths, [(0, 1_024), (1_024, 1_024), (2_048, 1_024)], "512 KiB each");
}

/// `none` looks at the last eight that wait.
#[test]
fn none_merges_with_the_last_eight() {
    let spec = QueueSpec { requests: 128, ..Scheduler::None.spec(1) };
    for (others, joined) in [(7, true), (8, false)] {
        let mut harness = Harness::new(&spec);
        harness.submit(Read, 90_000, 8, 0);
        harness.submit(Read, 0, 8, 0);
        for other in 0..others {
            harness.submit(Read, 1_000 + other * 100, 8, 0);
        }
        harness.submit(Read, 8, 8, 0);
        harness.run();
        assert_eq!(harness.sent.contains(&(Read, 0, 16)), joined, "{others}");
    }
}

#[test]
fn deadline_goes_one_way_and_then_to_the_oldest() {
    for scheduler in [Scheduler::Deadline, Scheduler::MqDeadline] {
        let mut harness = Harness::new(&QueueSpec { requests: 128, ..scheduler.spec(1) });
        for at in [500, 300, 900, 100, 700, 200] {
            harness.submit(Read, at, 8, 0);
        }
        harness.run();
        // 500 is sent at once, when nothing lies behind it. `deadline` knows of no next request then and
        // begins a batch with the oldest; `mq-deadline` goes on from 508. At the end both begin again with
        // the oldest that is left.
        let expected: [u64; 6] = match scheduler {
            Scheduler::Deadline => [500, 300, 700, 900, 100, 200],
            _ => [500, 700, 900, 300, 100, 200],
        };
        assert_eq!(harness.places(), expected, "{scheduler}");
    }
}

#[test]
fn what_comes_in_between_waits_for_deadline_and_is_taken_by_mq_deadline() {
    for (scheduler, expected) in
        [(Scheduler::Deadline, [0, 100, 300, 200]), (Scheduler::MqDeadline, [0, 100, 200, 300])]
    {
        let mut harness = Harness::new(&QueueSpec { requests: 128, ..scheduler.spec(1) });
        for at in [0, 100, 300] {
            harness.submit(Read, at, 8, 0);
        }
        harness.until(Time(1_500_000)); // 100 is at the drive, 300 is next.
        harness.submit(Read, 200, 8, 0);
        harness.run();
        assert_eq!(harness.places(), expected, "{scheduler}");
    }
}

#[test]
fn deadline_serves_batches_of_16_and_starves_writes_twice() {
    for scheduler in [Scheduler::Deadline, Scheduler::MqDeadline] {
        let mut harness = Harness::new(&QueueSpec { requests: 200, ..scheduler.spec(1) });
        harness.submit(Read, 0, 8, 0);
        for index in 1..100 {
            harness.submit(Read, index * 100, 8, 0);
            harness.submit(Write, 1_000_000 + index * 100, 8, 0);
        }
        harness.until(ms(99));
        let ops: Vec<_> = harness.sent.iter().map(|(op, ..)| *op).collect();
        let runs: Vec<_> = ops.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        // Two batches of reads, one of writes, over and over.
        assert_eq!(runs[1], (Write, 16), "{scheduler}: {runs:?}");
        assert_eq!(runs[2], (Read, 32), "{scheduler}: {runs:?}");
        assert_eq!(runs[3].0, Write, "{scheduler}: {runs:?}");
    }
}

#[test]
fn expired_requests_go_first() {
    for scheduler in [Scheduler::Deadline, Scheduler::MqDeadline] {
        let mut harness = Harness::new(&QueueSpec { requests: 10_000, ..scheduler.spec(1) });
        // Reads ahead of the head come without end; one lies far behind it.
        harness.submit(Read, 1_000_000, 8, 0);
        harness.submit(Read, 500, 8, 0);
        for index in 1..800 {
            harness.submit(Read, 1_000_000 + index * 100, 8, 0);
        }
        harness.run();
        let place = harness.places().iter().position(|at| *at == 500).unwrap();
        let latest = if scheduler == Scheduler::Deadline { 1 } else { 500 + 16 };
        assert!(place <= latest, "{scheduler}: {place}");
        if scheduler == Scheduler::MqDeadline {
            assert!(place >= 500, "{scheduler}: not before 500 ms: {place}");
        }
    }
}

/// A batch begins with the oldest request of its direction when that is as old as the direction allows,
/// whichever way the batch before went; else ahead of where the direction stopped, which `deadline`
/// forgets when that changes.
#[test]
fn a_direction_has_an_expiry_of_its_own() {
    const BATCH: u64 = 16;
    for scheduler in [Scheduler::Deadline, Scheduler::MqDeadline] {
        for (before, of) in [(Read, Read), (Read, Write), (Write, Read), (Write, Write)] {
            let expiry = Nanos::from_millis(if of == Read { 500 } else { 5_000 });
            for (age, expired) in [(expiry, true), (Nanos(expiry.0 - 1), false)] {
                let mut harness = Harness::new(&QueueSpec { requests: 128, ..scheduler.spec(1) });
                harness.submit(of, 1_000_000, 8, 0);
                for index in 0..BATCH {
                    harness.submit(before, 500_000 + index * 100, 8, 0);
                }
                // All of the batch takes as long as the next two wait for it.
                harness.service = Nanos(age.0 - (BATCH - 1) * 1_000_000);
                harness.until(ms(1));
                harness.service = Nanos::from_millis(1);
                let (behind, ahead) = (0, 2_000_000);
                harness.submit(of, behind, 8, 0);
                harness.submit(of, ahead, 8, 0);
                harness.run();
                let first = match scheduler {
                    Scheduler::Deadline if before != of => behind,
                    _ if expired => behind,
                    _ => ahead,
                };
                let begun = BATCH as usize + 1;
                let what = format!("{scheduler}: {of:?} after {before:?}, {} ns old", age.0);
                assert!(
                    harness.sent[1..begun].iter().all(|(_, at, _)| (500_000..ahead).contains(at)),
                    "{what}"
                );
                assert_eq!(harness.places()[begun..], [first, ahead - first], "{what}");
            }
        }
    }
}

/// Two processes read in order, each asks for the next block 0.5 ms after it got the last. Gives
/// how often the
/// drive changes from one to the other, and the requests served.
fn two_readers(scheduler: Scheduler, think: Nanos) -> (usize, usize) {
    let mut harness = Harness::of(scheduler);
    let mut next = [0, 10_000_000];
    let mut due: BTreeMap<Time, u32> = BTreeMap::new();
    let mut owner = BTreeMap::new();
    for process in 0..2_u32 {
        owner.insert(harness.next, process);
        harness.submit(Read, next[process as usize], 8, process);
    }
    let mut seen = 0;
    while harness.now < ms(2_000) {
        let step = Time(harness.now.0 + 10_000);
        harness.until(due.keys().next().copied().unwrap_or(step).min(step));
        while seen < harness.ended.len() {
            let mut at = harness.now + think;
            while due.contains_key(&at) {
                at = Time(at.0 + 1);
            }
            due.insert(at, owner[&harness.ended[seen].0]);
            seen += 1;
        }
        while let Some((at, process)) = due.first_key_value().map(|(at, one)| (*at, *one))
            && at <= harness.now
        {
            due.pop_first();
            next[process as usize] += 8;
            owner.insert(harness.next, process);
            harness.submit(Read, next[process as usize], 8, process);
        }
    }
    let sides: Vec<_> = harness.places().iter().map(|at| *at >= 10_000_000).collect();
    (sides.windows(2).filter(|pair| pair[0] != pair[1]).count(), sides.len())
}

#[test]
fn anticipatory_and_cfq_stay_with_a_reader_that_comes_back() {
    let think = Nanos::from_micros(500);
    let (changes, served) = two_readers(Scheduler::Deadline, think);
    assert!(changes > served / 2, "deadline takes turns: {changes} of {served}");
    // By expiry of the other's request: every 125 ms at most. By slices: every 100 ms.
    let (changes, served) = two_readers(Scheduler::Anticipatory, think);
    println!("anticipatory: {changes} of {served}");
    assert!((8..=34).contains(&changes), "anticipatory: {changes} of {served}");
    assert!(served > 1_200, "1.5 ms each: {served}");
    let (changes, served) = two_readers(Scheduler::Cfq, think);
    println!("cfq: {changes} of {served}");
    assert!((17..=22).contains(&changes), "cfq: {changes} of {served}");
    assert!(served > 1_200, "{served}");
    // Who thinks for longer than both wait is not waited for: the drive is busy as ever.
    for scheduler in [Scheduler::Anticipatory, Scheduler::Cfq] {
        let (_, slow) = two_readers(scheduler, Nanos::from_millis(20));
        let (_, plain) = two_readers(Scheduler::Noop, Nanos::from_millis(20));
        assert!(slow as f64 > 0.95 * plain as f64, "{scheduler}: {slow} of {plain}");
    }
}

#[test]
fn anticipatory_waits_as_long_as_it_says() {
    let mut harness = Harness::of(Scheduler::Anticipatory);
    // The process has shown that it comes back soon.
    for block in 0..10 {
        harness.submit(Read, block * 8, 8, 1);
        let next = Time(harness.now.0 + 1_200_000);
        harness.until(next);
    }
    let ended = Time(harness.now.0 - 200_000);
    let other = harness.now;
    harness.submit(Read, 50_000_000, 8, 2);
    assert_eq!(harness.drive.len(), 0, "the drive is kept idle");
    harness.until(Time(ended.0 + 6_666_666));
    assert_eq!(harness.drive.len(), 0);
    harness.until(Time(ended.0 + 6_666_667));
    assert_eq!(harness.drive.len(), 1, "since {other:?}");
}

#[test]
fn cfq_keeps_the_drive_idle_for_8_ms_and_writes_give_way() {
    let mut harness = Harness::of(Scheduler::Cfq);
    harness.submit(Read, 0, 8, 1);
    harness.until(ms(1));
    harness.submit(Read, 1_000_000, 8, 2);
    harness.until(Time(8_999_999));
    assert_eq!(harness.places(), [0]);
    harness.until(ms(9));
    assert_eq!(harness.places(), [0, 1_000_000]);
    // 40 writes wait; a read that comes goes after the one at the drive.
    let mut harness = Harness::of(Scheduler::Cfq);
    for index in 0..40 {
        harness.submit(Write, index * 100, 8, 1);
    }
    harness.until(Time(2_500_000));
    harness.submit(Read, 5_000_000, 8, 2);
    harness.until(ms(5));
    // And for 8 ms behind it the drive is kept idle for the reader.
    assert_eq!(harness.places(), [0, 100, 200, 5_000_000]);
    harness.until(ms(11));
    assert_eq!(harness.places().len(), 4);
    harness.until(ms(12));
    assert_eq!(harness.places().len(), 5);
    harness.run();
    assert_eq!(harness.sent.len(), 41);
}

#[test]
fn as_many_as_the_drive_takes_and_flushes_first() {
    let mut harness = Harness::new(&QueueSpec { requests: 4, ..Scheduler::MqDeadline.spec(2) });
    for index in 0..10 {
        harness.submit(Write, index * 100, 8, 0);
        assert!(harness.drive.len() <= 2);
    }
    harness.submit(Flush, 0, 0, 0);
    harness.run();
    assert_eq!(harness.sent[2].0, Flush);
    assert_eq!(harness.sent.len(), 11, "those without a request were let in");
    assert_eq!(harness.ended.len(), 11);
}

#[test]
fn a_bad_sector_fails_the_parts_from_it_on() {
    let mut harness = Harness::of(Scheduler::Deadline);
    harness.submit(Read, 90_000, 8, 0);
    for at in [100, 108, 116] {
        harness.submit(Read, at, 8, 0);
    }
    harness.until(ms(1));
    let (io, _) = harness.drive.remove(0);
    assert_eq!((io.at, io.len), (Sector(100), 24));
    let bad = |sector| IoOutcome::MediaError { first_bad: Sector(sector) };
    harness.handle(QueueInput::Ended { id: io.id, outcome: bad(110) });
    assert_eq!(harness.ended[1..], [(1, IoOutcome::Ok), (2, bad(110)), (3, bad(116))]);
}

/// Random traffic: everything ends exactly once, whoever orders it.
#[test]
fn every_request_ends_once() {
    for scheduler in Scheduler::ALL {
        for depth in [1, 4, 32] {
            let mut harness = Harness::new(&scheduler.spec(depth));
            let mut state = 7_u64;
            let mut below = |end: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % end
            };
            for _ in 0..3_000 {
                let op = [Read, Read, Write, Write, Write, Flush][below(6) as usize];
                let len = if op == Flush { 0 } else { 8 };
                harness.submit(op, below(400) * 8, len, below(5) as u32);
                if below(3) == 0 {
                    let until = Time(harness.now.0 + below(9_000_000));
                    harness.until(until);
                }
            }
            harness.run();
            let mut ids: Vec<_> = harness.ended.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            assert!(ids.into_iter().eq(0..3_000), "{scheduler}, depth {depth}");
            assert!(depth > 1 || harness.sent.len() < 3_000, "{scheduler}: nothing was merged");
        }
    }
}

#[test]
fn names_are_read_and_unknown_ones_refused() {
    for scheduler in Scheduler::ALL {
        assert_eq!(scheduler.name().parse(), Ok(scheduler));
    }
    let error = "bfq".parse::<Scheduler>().unwrap_err();
    assert!(
        error.contains("known: noop, deadline, anticipatory, cfq, mq-deadline, none"),
        "{error}"
    );
}

/// A drive takes 1,280 KiB at most: who reads 6 MiB at once has five requests there, which it serves in
/// an order of its own.
#[test]
fn what_is_longer_than_the_drive_takes_comes_in_pieces() {
    let mut harness = Harness::of(Scheduler::MqDeadline);
    harness.submit(Read, 100, 12_288, 0);
    harness.submit(Read, 50_000, 2_560, 0);
    harness.until(ms(4));
    assert_eq!(harness.ended, [], "four of five");
    harness.run();
    let pieces =
        (0..5).map(|piece| (Read, 100 + piece * 2_560, if piece < 4 { 2_560 } else { 2_048 }));
    let sent: Vec<_> = pieces.chain([(Read, 50_000, 2_560)]).collect();
    assert_eq!(harness.sent, sent);
    assert_eq!(harness.ended, [(0, IoOutcome::Ok), (1, IoOutcome::Ok)]);
}

fn merging(has_fua: bool) -> Harness {
    Harness::new(&QueueSpec { merges_flushes: true, has_fua, ..Scheduler::MqDeadline.spec(4) })
}

/// `C1` of block/blk-flush.c: one flush at the drive, and one for all that wait for it.
#[test]
fn flushes_that_come_while_one_is_under_way_are_one() {
    let mut harness = merging(true);
    (0..5).for_each(|_| harness.submit(Flush, 0, 0, 0));
    harness.run();
    assert_eq!(harness.sent, [(Flush, 0, 0); 2]);
    assert_eq!(harness.ended.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

/// `C2`: a write with FUA to a drive without it is a write and a flush, with which those are one that
/// come meanwhile.
#[test]
fn a_durable_write_to_a_drive_without_fua_is_followed_by_a_flush() {
    for has_fua in [true, false] {
        let mut harness = merging(has_fua);
        let io = DriveIo { id: DriveIoId(9), op: Write, at: Sector(8), len: 8, fua: true };
        harness.handle(QueueInput::Submit { io, process: 0 });
        harness.submit(Write, 16, 8, 0);
        harness.submit(Flush, 0, 0, 0);
        harness.run();
        let ended: Vec<u32> = harness.ended.iter().map(|(id, _)| *id).collect();
        assert_eq!(harness.sent, [(Write, 8, 8), (Write, 16, 8), (Flush, 0, 0)], "not merged");
        assert_eq!(ended, if has_fua { [9, 0, 1] } else { [0, 1, 9] });
    }
}

/// `C3`: durable writes that overlap without end put a flush off for 5 s, no longer; it is for those that ended before.
#[test]
fn writes_without_end_put_a_flush_off_for_five_seconds() {
    let mut harness = merging(false);
    harness.service = Nanos::from_millis(100);
    let flushes = |harness: &Harness| harness.sent.iter().filter(|sent| sent.0 == Flush).count();
    let durable = |harness: &mut Harness| {
        let (id, at) = (DriveIoId(harness.next), Sector(u64::from(harness.next) * 100));
        harness.next += 1;
        let io = DriveIo { id, op: Write, at, len: 8, fua: true };
        harness.handle(QueueInput::Submit { io, process: 0 });
    };
    // One each 100 ms, of which the first ends at 100 ms, and the last before the next one does.
    durable(&mut harness);
    for tenth in 1..=51 {
        harness.until(ms(tenth * 100 - 50));
        assert_eq!((flushes(&harness), harness.ended.len()), (0, 0), "at {:?}", harness.now);
        durable(&mut harness);
    }
    harness.until(ms(5_099));
    assert_eq!(flushes(&harness), 0);
    harness.until(ms(5_101));
    assert_eq!(flushes(&harness), 1, "5 s after the first one began to wait");
    // Behind the write that is at the drive, which is for the next flush.
    harness.until(ms(5_301));
    assert_eq!(
        harness.ended.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        (0..=50).collect::<Vec<_>>()
    );
    assert_eq!(flushes(&harness), 2);
    harness.run();
    assert_eq!((flushes(&harness), harness.ended.len()), (2, 52));
}
