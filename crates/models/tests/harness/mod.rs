//! A drive with a clock: hands in commands and wakes, collects completions.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

pub(crate) mod any;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};
use raidlab_models::{
    DriveInput, DriveIo, DriveIoId, DriveKind, DriveOp, DriveOutput, HardDisk, HardDiskFigures,
    HardDiskSpec, load,
};

pub(crate) use DriveOp::{Flush, Read, Write};

pub(crate) const NAMES: [&str; 2] = ["nas-8tb-7200", "pata-80gb-7200"];

/// The figures of a drive that carries out one command at a time.
pub(crate) fn figures(name: &str) -> HardDiskFigures {
    HardDiskFigures { queue_depth: 1, ..queueing_figures(name) }
}

/// The figures of a drive as its file gives them, turning exactly at its speed.
pub(crate) fn queueing_figures(name: &str) -> HardDiskFigures {
    let DriveKind::HardDisk(spec) = load(name).unwrap().kind else { panic!("{name}") };
    HardDiskFigures { rotation_tolerance: 0, ..spec.figures().clone() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) id: u32,
    pub(crate) outcome: IoOutcome,
    pub(crate) at: Time,
}

pub(crate) struct Harness {
    pub(crate) disk: HardDisk,
    pub(crate) now: Time,
    pub(crate) done: Vec<Done>,
    wake: Option<Time>,
    next: u32,
}

impl Harness {
    pub(crate) fn new(figures: &HardDiskFigures, seed: u64) -> Self {
        let spec = HardDiskSpec::new(figures.clone()).unwrap();
        let disk = HardDisk::new(&spec, seed);
        assert_eq!(disk.capacity(), Sectors(figures.capacity.0));
        Self { disk, now: Time::ZERO, done: Vec::new(), wake: None, next: 0 }
    }

    fn handle(&mut self, input: DriveInput) {
        self.disk.handle(self.now, input);
        while let Some(output) = self.disk.poll() {
            match output {
                DriveOutput::Complete { id, outcome } => {
                    self.done.push(Done { id: id.0, outcome, at: self.now });
                }
                DriveOutput::WakeAt(at) => {
                    assert!(at > self.now, "a wake in the past would never end");
                    self.wake = Some(at);
                }
            }
        }
    }

    pub(crate) fn submit(&mut self, op: DriveOp, at: u64, len: u32, fua: bool) -> u32 {
        let id = self.next;
        self.next += 1;
        let io = DriveIo { id: DriveIoId(id), op, at: Sector(at), len, fua };
        self.handle(DriveInput::Submit(io));
        id
    }

    /// Goes to the next wake; false when the drive asks for none.
    pub(crate) fn wake(&mut self) -> bool {
        let Some(at) = self.wake.take() else { return false };
        self.now = at;
        self.handle(DriveInput::Wake);
        true
    }

    /// Lets the drive work until it rests.
    pub(crate) fn settle(&mut self) {
        while self.wake() {}
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Nanos) {
        let until = self.now + time;
        while self.wake.is_some_and(|at| at <= until) {
            self.wake();
        }
        self.now = until;
    }

    /// One command from submission to completion.
    pub(crate) fn run(&mut self, op: DriveOp, at: u64, len: u32, fua: bool) -> Nanos {
        let start = self.now;
        let id = self.submit(op, at, len, fua);
        loop {
            if let Some(done) = self.done.last().filter(|done| done.id == id) {
                assert_eq!(done.outcome, IoOutcome::Ok);
                return done.at.since(start);
            }
            assert!(self.wake(), "command {id} is lost");
        }
    }
}
