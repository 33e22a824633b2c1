//! A drive of any kind with a clock: hands in commands and wakes, collects completions.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Sectors, Time};
use raidlab_models::{
    Drive, DriveInput, DriveIo, DriveIoId, DriveKind, DriveOp, DriveOutput, HardDisk,
    HardDiskFigures, HardDiskSpec, load,
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
    pub(crate) drive: Drive,
    pub(crate) now: Time,
    pub(crate) done: Vec<Done>,
    pub(crate) wakes: u64,
    wake: Option<Time>,
    next: u32,
}

impl Harness {
    /// A hard disk with these figures.
    pub(crate) fn new(figures: &HardDiskFigures, seed: u64) -> Self {
        let spec = HardDiskSpec::new(figures.clone()).unwrap();
        let disk = HardDisk::new(&spec, seed);
        assert_eq!(disk.capacity(), Sectors(figures.capacity.0));
        Self::of(disk)
    }

    pub(crate) fn of(drive: impl Into<Drive>) -> Self {
        let (now, done, wakes) = (Time::ZERO, Vec::new(), 0);
        Self { drive: drive.into(), now, done, wakes, wake: None, next: 0 }
    }

    pub(crate) fn handle(&mut self, input: DriveInput) {
        self.drive.handle(self.now, input);
        while let Some(output) = self.drive.poll() {
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
        self.wakes += 1;
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
            if let Some(done) = self.done.iter().rev().find(|done| done.id == id) {
                assert_eq!(done.outcome, IoOutcome::Ok);
                return done.at.since(start);
            }
            assert!(self.wake(), "command {id} is lost");
        }
    }

    /// Carries out `count` commands at a depth, each drawn by its number; gives the time.
    pub(crate) fn load(
        &mut self,
        depth: usize,
        count: usize,
        mut draw: impl FnMut(u64) -> (DriveOp, u64, u32),
    ) -> Nanos {
        let start = self.now;
        self.done.clear();
        let mut asked = 0;
        while self.done.len() < count {
            while asked < count && asked - self.done.len() < depth {
                let (op, at, len) = draw(asked as u64);
                self.submit(op, at, len, false);
                asked += 1;
            }
            if self.done.len() < count {
                assert!(self.wake(), "a command is lost");
            }
        }
        self.now.since(start)
    }
}
