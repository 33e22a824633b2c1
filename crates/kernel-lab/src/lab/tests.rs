use raidlab_core::units::Nanos;
use raidlab_models::LinkSpec;

use super::*;
use crate::bus::{Operation, Record};
use crate::fake::{FakeBus, Sent};
use crate::service::ClosedForm;
use crate::vhost::HEAD_BYTES;

const ACKNOWLEDGE: u32 = 0;
const START: u32 = 1;
const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const UPDATE: u32 = 5;
const RUN: u32 = 6;
const FREE_UNTIL: u32 = 7;

/// Where the queue of drive N lies: N times this further on.
const EACH: u64 = 0x10000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const HEADER: u64 = 0x4000;
const CONTENTS: u64 = 0x5000;
const STATUS: u64 = 0x8000;

fn clock(operation: u32, sequence: u32, time: u64) -> [u8; Message::BYTES] {
    let mut raw = [0; Message::BYTES];
    raw[0..4].copy_from_slice(&operation.to_ne_bytes());
    raw[4..8].copy_from_slice(&sequence.to_ne_bytes());
    raw[8..16].copy_from_slice(&time.to_ne_bytes());
    raw
}

/// A lab of drives that need 1000 ns for each request, and a guest that shares no page.
struct Scene {
    lab: Lab,
    bus: FakeBus,
    sequence: u32,
}

impl Scene {
    fn new(drives: usize) -> Self {
        let form = || Service::ClosedForm(ClosedForm::new(Nanos(1000), Nanos::ZERO, 0));
        let drives: Vec<_> = (0..drives).map(|_| (Class::plain(1 << 20), form())).collect();
        Self::with_paths(drives, &PathSpec::default())
    }

    fn with_paths(drives: Vec<(Class, Service)>, paths: &PathSpec) -> Self {
        let count = drives.len();
        let lab = Lab::new(drives, Room::of(1 << 20), false).with_paths(paths).expect("can be");
        let mut scene = Self { lab, bus: FakeBus::new(), sequence: 0 };
        scene.says(START, 0);
        for drive in 0..count {
            let base = EACH * drive as u64;
            let place = Request::SetQueuePlace {
                descriptors: base + 0x1000,
                available: base + AVAILABLE,
                used: base + USED,
            };
            for request in [Request::SetQueueLength(8), place, Request::SetQueueStart(0)] {
                scene.drive_says(drive, &request).expect("is known");
            }
        }
        scene.bus.take_sent();
        scene
    }

    fn try_says(&mut self, operation: u32, time: u64) -> Result<(), Failure> {
        self.sequence += 1;
        let message = Message::decode(clock(operation, self.sequence, time));
        self.lab.clock_message(&mut self.bus, message)
    }

    fn says(&mut self, operation: u32, time: u64) {
        self.try_says(operation, time).expect("is in order");
    }

    /// Acknowledges what the lab has told.
    fn acknowledges(&mut self, sequence: u32) {
        let message = Message::decode(clock(ACKNOWLEDGE, sequence, 0));
        self.lab.clock_message(&mut self.bus, message).expect("was told");
    }

    fn drive_says(&mut self, drive: usize, request: &Request) -> Result<(), Failure> {
        let mut raw = [0; HEAD_BYTES];
        raw[0] = 35;
        raw[4] = 1 | 8;
        let head = Head::decode(raw).expect("is a head");
        self.lab.drive_message(&mut self.bus, drive, head, request)
    }

    /// Waits until all requests are done, asking for no time of its own.
    fn waits_it_out(&mut self) {
        self.says(WAIT, 0);
        while self.lab.next_event().is_some() {
            let called = self.sent().into_iter().find_map(|sent| match sent {
                Sent::Back(drive, _) => Some(drive),
                _ => None,
            });
            self.answers_call(called.expect("a drive was done"));
        }
    }

    /// Puts a request of 512 bytes on the queue of a drive as its so-manieth, with three descriptors.
    fn offers(&mut self, drive: usize, number: u16, kind: u32, sector: u64) {
        let base = EACH * drive as u64;
        let slot = 3 * u64::from(number);
        let [header, contents, status] =
            [HEADER, CONTENTS, STATUS].map(|at| base + at + 512 * u64::from(number));
        let writes = if kind & 1 == 0 { 2 } else { 0 };
        let parts = [(header, 16, 0), (contents, 512, writes), (status, 1, 2)];
        for (index, (address, length, flags)) in parts.into_iter().enumerate() {
            let at = base + 0x1000 + 16 * (slot + index as u64);
            let next = if index < 2 { 1 } else { 0_u16 };
            self.put(at, &u64::to_le_bytes(address));
            self.put(at + 8, &u32::to_le_bytes(length));
            self.put(at + 12, &(flags | next).to_le_bytes());
            self.put(at + 14, &(slot as u16 + index as u16 + 1).to_le_bytes());
        }
        self.put(header, &kind.to_le_bytes());
        self.put(header + 8, &sector.to_le_bytes());
        self.put(status, &[0xff]);
        self.put(base + AVAILABLE + 4 + 2 * u64::from(number), &(slot as u16).to_le_bytes());
        self.put(base + AVAILABLE + 2, &(number + 1).to_le_bytes());
    }

    fn put(&mut self, at: u64, raw: &[u8]) {
        self.bus.memory[at as usize..][..raw.len()].copy_from_slice(raw);
    }

    fn status(&self, drive: usize, number: u16) -> u8 {
        self.bus.memory[(EACH * drive as u64 + STATUS) as usize + 512 * usize::from(number)]
    }

    /// Tells the time and kicks a drive, of which the guest was told before that it may go on for ever.
    fn kicks(&mut self, drive: usize, now: u64) {
        self.says(UPDATE, now);
        self.bus.take_sent();
        self.drive_says(drive, &Request::Kick).expect("is in order");
    }

    fn answers_call(&mut self, drive: usize) {
        let mut raw: [u8; CALL_ANSWER_BYTES] = vhost::call().try_into().expect("is as long");
        raw[4] = 1 | 4;
        self.lab.call_answer(&mut self.bus, drive, raw).expect("was called");
    }

    fn sent(&mut self) -> Vec<Sent> {
        self.bus.take_sent()
    }
}

fn told(operation: u32, sequence: u32, time: u64) -> Sent {
    Sent::Clock(clock(operation, sequence, time))
}

fn kick_answer(drive: usize) -> Sent {
    let mut raw = vec![35, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0];
    raw.extend([0; 8]);
    Sent::Drive(drive, raw)
}

#[test]
fn a_free_drive_takes_no_time_until_it_is_asked_for_its_name() {
    let [write, read, identify] = [1, 0, 8];
    for (kinds, expected) in [([write, read], [100, 100]), ([identify, read], [100, 1100])] {
        let mut scene = Scene::new(1);
        scene.lab = scene.lab.with_free_setup();
        scene.bus.memory[CONTENTS as usize..][..512].fill(7);
        for (number, kind) in kinds.into_iter().enumerate() {
            scene.offers(0, number as u16, kind, 3);
        }
        scene.kicks(0, 100);
        scene.waits_it_out();
        let ends: Vec<u64> = scene.bus.records.iter().map(|record| record.ended.0).collect();
        assert_eq!(ends, expected);
        let is_read_back = scene.bus.memory[CONTENTS as usize + 512..][..512] == [7; 512];
        assert_eq!(is_read_back, kinds[0] == write);
    }
}

#[test]
fn a_write_and_a_read_take_their_time_and_move_their_bytes() {
    let mut scene = Scene::new(1);
    scene.bus.memory[CONTENTS as usize..][..512].fill(7);
    scene.offers(0, 0, 1, 3);
    scene.offers(0, 1, 0, 3);
    scene.kicks(0, 100);
    assert_eq!(scene.sent(), [kick_answer(0)], "the guest may not go anywhere by itself yet");
    scene.says(WAIT, 0);
    // At 1100 the first is done; the guest has asked for nothing.
    let acknowledged = clock(ACKNOWLEDGE, scene.sequence, 0);
    assert_eq!(scene.sent(), [Sent::Clock(acknowledged), Sent::Back(0, vhost::call())]);
    assert_eq!((scene.status(0, 0), scene.status(0, 1)), (0, 0xff));
    scene.says(REQUEST, 1100);
    scene.sent();
    scene.answers_call(0);
    assert_eq!(scene.sent(), [told(FREE_UNTIL, 1, 2100)]);
    scene.acknowledges(1);
    assert_eq!(scene.sent(), [told(RUN, 2, 1100)]);
    scene.acknowledges(2);
    scene.says(WAIT, 0);
    assert_eq!(scene.status(0, 1), 0);
    assert_eq!(scene.bus.memory[CONTENTS as usize + 512..][..512], [7; 512]);
    let record = |operation, arrived, ended, depth| Record {
        arrived: Time(arrived),
        ended: Time(ended),
        drive: 0,
        operation,
        sector: 3,
        bytes: 512,
        depth,
        succeeded: true,
    };
    let records = [record(Operation::Write, 100, 1100, 0), record(Operation::Read, 100, 2100, 1)];
    assert_eq!(scene.bus.records, records);
    assert_eq!(records[0].to_string(), "100 1100 0 W 3 512 0");
    let counts = scene.lab.counts();
    assert_eq!((counts.requests, counts.kicks, counts.interrupts, counts.runs), (2, 1, 2, 1));
}

#[test]
fn a_kick_is_answered_after_the_guest_has_heard_of_its_end() {
    let mut scene = Scene::new(1);
    scene.says(REQUEST, 50);
    scene.says(WAIT, 0);
    scene.acknowledges(1);
    scene.acknowledges(2);
    scene.offers(0, 0, 1, 0);
    scene.kicks(0, 70);
    assert_eq!(scene.sent(), [told(FREE_UNTIL, 3, 1070)]);
    scene.acknowledges(3);
    assert_eq!(scene.sent(), [kick_answer(0)]);
}

#[test]
fn a_kick_that_overtakes_the_acknowledgement_of_a_run_waits_for_it() {
    let mut scene = Scene::new(1);
    scene.says(REQUEST, 50);
    scene.says(WAIT, 0);
    scene.acknowledges(1);
    assert_eq!(scene.sent().last(), Some(&told(RUN, 2, 50)));
    scene.offers(0, 0, 1, 0);
    scene.drive_says(0, &Request::Kick).expect("is in order");
    assert_eq!(scene.sent(), []);
    scene.acknowledges(2);
    assert_eq!(scene.sent(), [told(FREE_UNTIL, 3, 1050)]);
    scene.acknowledges(3);
    assert_eq!(scene.sent(), [kick_answer(0)]);
    assert_eq!(scene.lab.counts().kicks, 1);
    scene.waits_it_out();
    assert_eq!((scene.bus.records[0].arrived, scene.bus.records[0].ended), (Time(50), Time(1050)));
}

#[test]
fn at_one_time_the_drives_go_first() {
    for (asked, drives_first) in [(1000, true), (1001, true), (999, false)] {
        let mut scene = Scene::new(1);
        scene.offers(0, 0, 1, 0);
        scene.kicks(0, 0);
        scene.says(REQUEST, asked);
        scene.says(WAIT, 0);
        let called = scene.sent().contains(&Sent::Back(0, vhost::call()));
        assert_eq!(called, drives_first, "{asked}");
    }
}

#[test]
fn drives_that_are_done_at_once_interrupt_one_after_the_other() {
    let mut scene = Scene::new(3);
    for drive in [2, 0] {
        scene.offers(drive, 0, 1, 0);
        scene.kicks(drive, 0);
    }
    scene.sent();
    scene.says(WAIT, 0);
    let called = |sent: Vec<Sent>| -> Vec<usize> {
        let drive = |sent| if let Sent::Back(drive, _) = sent { Some(drive) } else { None };
        sent.into_iter().filter_map(drive).collect()
    };
    assert_eq!(called(scene.sent()), [0]);
    scene.says(REQUEST, 1000);
    scene.answers_call(0);
    assert_eq!(called(scene.sent()), [2]);
    scene.answers_call(2);
    assert_eq!(scene.sent(), [told(FREE_UNTIL, 1, NEVER.0)]);
}

#[test]
fn rest_for_ever_is_a_deadlock_with_both_times() {
    let mut scene = Scene::new(1);
    scene.says(UPDATE, 1_000_000_000);
    scene.says(REQUEST, NEVER.0);
    let failure = scene.try_says(WAIT, 0).expect_err("nobody has anything to do");
    let text = failure.to_string();
    assert!(text.contains("1.000000000 s") && text.contains("9223372036.854775807 s"), "{text}");
    let failure = Scene::new(1).try_says(WAIT, 0).expect_err("nobody has anything to do");
    assert!(failure.to_string().contains("without having asked"), "{failure}");
}

#[test]
fn what_cannot_be_done_is_answered_without_a_drives_time() {
    // Beyond the end, of an unknown kind, and a flush, which can be done.
    for (kind, sector, status) in [(1, 2048, 1), (0, u64::MAX, 1), (11, 0, 2), (8, 0, 0)] {
        let mut scene = Scene::new(1);
        scene.offers(0, 0, kind, sector);
        scene.kicks(0, 10);
        scene.says(WAIT, 0);
        assert_eq!(scene.status(0, 0), status, "kind {kind} at {sector}");
        assert_eq!(scene.bus.records[0].ended, Time(10));
        assert_eq!(scene.bus.records[0].succeeded, status == 0);
    }
}

#[test]
fn answers_and_acknowledgements_of_nothing_are_refused() {
    let mut scene = Scene::new(1);
    let mut raw: [u8; CALL_ANSWER_BYTES] = vhost::call().try_into().expect("is as long");
    raw[4] = 1 | 4;
    assert!(scene.lab.call_answer(&mut scene.bus, 0, raw).is_err());
    assert!(scene.try_says(ACKNOWLEDGE, 0).is_err());
    let offered = scene.drive_says(0, &Request::SetFeatures(1 << 63));
    assert!(offered.is_err_and(|error| error.to_string().contains("not all were offered")));
}

/// When the requests of two drives that take 1000 ns each were done, of so many each, all sent at zero.
fn ends(paths: &PathSpec, requests: u16, kind: u32) -> Vec<(usize, u64)> {
    let form = || Service::ClosedForm(ClosedForm::new(Nanos(1000), Nanos::ZERO, 0));
    let drives = (0..2).map(|_| (Class::plain(1 << 20), form())).collect();
    let mut scene = Scene::with_paths(drives, paths);
    for drive in 0..2 {
        (0..requests).for_each(|number| scene.offers(drive, number, kind, 0));
        scene.kicks(drive, 0);
    }
    scene.sent();
    scene.waits_it_out();
    scene.bus.records.iter().map(|record| (record.drive, record.ended.0)).collect()
}

#[test]
fn drives_on_one_link_are_as_fast_as_the_link() {
    // 512 bytes at 100 MB/s are 5120 ns: a link that two drives share is what both wait for.
    let bus = LinkSpec::bus("bus", 100_000_000);
    let shared = PathSpec::shared(vec![bus.clone()], &[0, 0]);
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|passed| 5120 * passed);
    for kind in [0, 1] {
        // The drive sees a write when its transfer begins, and a read crosses while it is served.
        let found = ends(&shared, 2, kind);
        let mut ended: Vec<u64> = found.iter().map(|(_, end)| *end).collect();
        ended.sort_unstable();
        assert_eq!(ended, [first, second, third, fourth], "{kind}: {found:?}");
    }
    let own =
        PathSpec::each_its_own(2, |drive| LinkSpec { name: drive.to_string(), ..bus.clone() });
    assert_eq!(ends(&own, 2, 0), [(0, first), (1, first), (0, second), (1, second)]);
    assert_eq!(ends(&PathSpec::default(), 2, 0), [(0, 1000), (1, 1000), (0, 2000), (1, 2000)]);
}

#[test]
fn a_channel_serves_one_device_at_a_time_and_switches() {
    // 10 us before the drive has a command, 6.023 us for its bytes, 1 ms to go to the other device.
    let channel = PathSpec::shared(vec![LinkSpec::pata_udma100("channel")], &[0, 0]);
    let one = 10_000 + 512_000 / 85;
    assert_eq!(ends(&channel, 1, 0), [(0, one), (1, 2 * one + 1_000_000)]);
}
