//! A modelled disk and a modelled host, each alone, and a workload that is asked.

use std::collections::VecDeque;
use std::hint::black_box;

use raidlab_core::units::{Nanos, Sector, Sectors, Time};
use raidlab_models::host::{
    BlockIo, Call, Change, Host, HostDescriptor, HostInput, HostOutput, HostSpec, Inode,
    PathComponent, TaskId,
};
use raidlab_models::{
    DriveInput, DriveIo, DriveIoId, DriveKind, DriveOp, DriveOutput, HardDisk, load,
};
use raidlab_workload::{Op, OpResult, Parameters, Process, Setting, make};

/// Random reads of 4 KiB on a hard disk, eight at once.
pub(crate) struct Disk {
    disk: HardDisk,
    state: u64,
    now: Time,
    wake: Option<Time>,
    flight: u32,
    next: u32,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let drive = load("nas-8tb-7200").expect("built in");
        let DriveKind::HardDisk(spec) = &drive.kind else { unreachable!("it is a hard disk") };
        let disk = HardDisk::new(spec, 1);
        Self { disk, state: 1, now: Time::ZERO, wake: None, flight: 0, next: 0 }
    }

    /// Submits a command, and lets time pass until there is room for the next.
    pub(crate) fn command(&mut self) {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let at = Sector((self.state >> 11) % (self.disk.capacity().0 / 8) * 8);
        let id = DriveIoId(self.next);
        self.next += 1;
        self.flight += 1;
        let io = DriveIo { id, op: DriveOp::Read, at, len: 8, fua: false };
        self.handle(DriveInput::Submit(io));
        while self.flight >= 8 {
            self.now = self.wake.take().expect("commands under way end");
            self.handle(DriveInput::Wake);
        }
    }

    fn handle(&mut self, input: DriveInput) {
        self.disk.handle(self.now, input);
        while let Some(output) = self.disk.poll() {
            match output {
                DriveOutput::Complete { .. } => self.flight -= 1,
                DriveOutput::WakeAt(at) => self.wake = Some(at),
            }
        }
    }
}

const ROOT: Inode = Inode(0);
const FILE: Inode = Inode(1);
const TASK: TaskId = TaskId(0);
/// Bytes of a call.
const LEN: u64 = 64 << 10;
/// Calls from the start of the file to its end; twice what memory holds.
const CALLS: u64 = 1024;

/// A host that writes and reads a file through its page cache; requests take a millisecond each.
pub(crate) struct Buffered {
    host: Host,
    file: HostDescriptor,
    now: Time,
    wake: Option<Time>,
    waiting: VecDeque<BlockIo>,
    next: u64,
}

impl Buffered {
    pub(crate) fn new() -> Self {
        let spec = HostSpec { memory: CALLS * LEN / 2, ..HostSpec::default() };
        let host = Host::new(&spec, Sectors(1 << 24), ROOT).expect("possible");
        let (now, waiting) = (Time::ZERO, VecDeque::new());
        let mut host = Self { host, file: HostDescriptor(0), now, wake: None, waiting, next: 0 };
        let path = vec![PathComponent { directory: ROOT, name: 1, file: None }];
        let change = Change::Create { file: FILE, is_directory: false };
        host.call(Call::Names { path, change });
        host.file = host.host.open(FILE, false, false).expect("it is there");
        for number in 0..CALLS {
            host.call(Call::Write { handle: host.file, at: number * LEN, len: LEN, times: 1 });
        }
        host
    }

    /// A write, and a read of what memory has no more.
    pub(crate) fn write_and_read(&mut self) {
        self.next += 1;
        let at = |number: u64| number % CALLS * LEN;
        let (handle, here, there) = (self.file, at(self.next), at(self.next + CALLS / 2));
        self.call(Call::Write { handle, at: here, len: LEN, times: 1 });
        self.call(Call::Read { handle, at: there, len: LEN, times: 1, copies: true });
    }

    /// Calls, and lets time pass until the call and what it has begun are done.
    fn call(&mut self, call: Call) {
        let mut done = self.handle(HostInput::Call { task: TASK, process: 1, call });
        while let Some(io) = self.waiting.pop_front() {
            self.now = self.now + Nanos::from_millis(1);
            done |= self.handle(HostInput::Ended(io.id));
        }
        assert!(done, "the call waits for nothing else");
        if self.wake.is_some_and(|at| at <= self.now) {
            self.wake = None;
            self.handle(HostInput::Wake);
        }
    }

    /// Hands in what happened and does what the host asks for; whether the call has ended.
    fn handle(&mut self, input: HostInput) -> bool {
        self.host.handle(self.now, input);
        let mut done = false;
        while let Some(output) = self.host.poll() {
            match output {
                HostOutput::Block(io) => self.waiting.push_back(io),
                HostOutput::Compute { task, cost, user, .. } => {
                    self.now = self.now + cost + user;
                    self.host.handle(self.now, HostInput::Computed(task));
                }
                HostOutput::Last { cost, .. } => {
                    self.now = self.now + cost;
                    done = true;
                }
                HostOutput::Done { .. } => done = true,
                HostOutput::Failed { failure, .. } => panic!("{failure}"),
                HostOutput::Moved { .. } => {}
                HostOutput::WakeAt(at) => self.wake = Some(at),
            }
        }
        done
    }
}

/// A process that writes at random places, asked for one operation after the other.
pub(crate) struct Asked {
    process: Box<dyn Process>,
    now: Time,
    last: OpResult,
}

impl Asked {
    pub(crate) fn new() -> Self {
        let parameters = Parameters::new([("size", "1GiB"), ("span", "64GiB")]).expect("once each");
        let workload = make("random-write", parameters).expect("can be");
        let setting = Setting { checked: false, ..Setting::new(1, 1) };
        let mut plan = workload.plan(&setting).expect("can be");
        let process = plan.run.pop().expect("one copy has a process").process;
        Self { process, now: Time::ZERO, last: OpResult::Start }
    }

    pub(crate) fn next(&mut self) {
        let last = std::mem::replace(&mut self.last, OpResult::Moved(4096));
        let op = black_box(self.process.next(self.now, last));
        assert!(op != Op::Done, "there is more to do than is asked for");
        self.now = self.now + Nanos(1000);
    }
}
