//! A drive that predicts the ends of its commands answers as one that takes step by step.

use crate::harness::{Flush, NAMES, Read, Write, figures, queueing_figures};
use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Time};
use raidlab_models::{
    DriveInput, DriveIo, DriveIoId, DriveOutput, HardDisk, HardDiskFigures, HardDiskSpec,
};
use raidlab_random::SplitMix64;

struct One {
    disk: HardDisk,
    wake: Option<Time>,
    ended: Vec<(u32, IoOutcome, Time)>,
    wakes: u32,
}

impl One {
    fn new(f: &HardDiskFigures, predicts: bool) -> Self {
        let mut disk = HardDisk::new(&HardDiskSpec::new(f.clone()).expect("can be"), 5);
        assert!(!predicts || disk.predict_completions());
        Self { disk, wake: None, ended: Vec::new(), wakes: 0 }
    }

    fn hear(&mut self, now: Time) {
        while let Some(output) = self.disk.poll() {
            match output {
                DriveOutput::Complete { id, outcome } => self.ended.push((id.0, outcome, now)),
                DriveOutput::WakeAt(at) => self.wake = Some(at),
            }
        }
    }

    /// Lets time pass up to `now`.
    fn pass(&mut self, now: Time) {
        while let Some(at) = self.wake.take_if(|at| *at <= now) {
            self.wakes += 1;
            self.disk.handle(at, DriveInput::Wake);
            self.hear(at);
        }
    }

    fn submit(&mut self, now: Time, io: DriveIo) {
        self.disk.handle(now, DriveInput::Submit(io));
        self.hear(now);
    }
}

fn drawn(random: &mut SplitMix64, id: u32, near: &mut u64, capacity: u64) -> DriveIo {
    let op = [Read, Read, Write, Write, Write, Flush][random.below(6) as usize];
    if random.below(4) == 0 {
        *near = random.below(capacity);
    }
    let len = if op == Flush { 0 } else { 1 + random.below(400) as u32 };
    let (at, fua) = (Sector(*near), random.below(16) == 0);
    *near += u64::from(len);
    DriveIo { id: DriveIoId(id), op, at, len, fua }
}

#[test]
fn the_same_ends_and_the_same_work_with_fewer_wake_ups() {
    let (mut few, mut many) = (0, 0);
    for seed in 0..120 {
        let mut f = figures(NAMES[seed as usize % 2]);
        let mut random = SplitMix64::new(seed);
        f.write_cache = random.below(5) > 0;
        f.cache.immediate_report = f.write_cache && random.below(3) == 0;
        f.cache.whole_track = random.below(2) == 0;
        let (mut plain, mut predicting) = (One::new(&f, false), One::new(&f, true));
        let (mut now, mut near) = (Time::ZERO, 0);
        for id in 0..300 {
            now = now + Nanos(random.below([3_000_000, 40_000, 60_000_000][id as usize % 3]));
            let io = drawn(&mut random, id, &mut near, f.capacity.0);
            for one in [&mut plain, &mut predicting] {
                one.pass(now);
            }
            let busy = predicting.disk.busy_by(now);
            assert_eq!(plain.disk.busy(), busy, "seed {seed}, before {id}");
            for one in [&mut plain, &mut predicting] {
                one.submit(now, io);
            }
            let busy = predicting.disk.busy_by(now);
            assert_eq!(plain.disk.busy(), busy, "seed {seed}, with {id}");
        }
        for one in [&mut plain, &mut predicting] {
            one.pass(now + Nanos::from_millis(100_000));
        }
        assert_eq!(plain.ended.len(), 300);
        assert_eq!(plain.ended, predicting.ended, "seed {seed}");
        assert!(predicting.wakes <= 300, "seed {seed}: {}", predicting.wakes);
        (few, many) = (few + predicting.wakes, many + plain.wakes);
    }
    assert!(many > 2 * few, "{few} wake-ups in place of {many}");
}

/// Handed in ahead, a command ends as if it was handed in when it comes.
#[test]
fn a_command_may_come_ahead_of_time() {
    for seed in 0..40 {
        let f = figures(NAMES[seed as usize % 2]);
        let (mut plain, mut predicting) = (One::new(&f, true), One::new(&f, true));
        let mut random = SplitMix64::new(seed);
        let (mut now, mut near) = (Time::ZERO, 0);
        for id in 0..200 {
            let io = drawn(&mut random, id, &mut near, f.capacity.0);
            let at = now + Nanos(random.below(8_000_000));
            predicting.disk.submit_at(at, io);
            predicting.hear(now);
            let between = now + Nanos(random.below(at.since(now).0 + 1));
            assert_eq!(plain.disk.busy_by(between), predicting.disk.busy_by(between), "{seed}");
            plain.submit(at, io);
            let ends = plain.wake.expect("it is at work");
            assert_eq!(predicting.wake, Some(ends), "seed {seed}, {id}");
            now = ends;
            plain.pass(now);
            predicting.pass(now);
        }
        assert_eq!(plain.ended, predicting.ended, "seed {seed}");
    }
}

#[test]
fn a_drive_with_a_command_queue_foresees_nothing() {
    let spec = HardDiskSpec::new(queueing_figures("nas-8tb-7200")).expect("can be");
    assert!(!HardDisk::new(&spec, 1).predict_completions());
}
