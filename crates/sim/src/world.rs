//! One array, its drives and the host's CPU, joined in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoId, IoOp, IoOutcome, JobId, JobResult, MemberIo, Outcome,
    Output, Request, RequestId, RequestOp, Segment, Token,
};
use raidlab_core::{Array, Config, MemberIndex, Nanos, Sector, Sectors, Time};
use raidlab_models::{
    Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput, Queue, QueueInput, QueueOutput,
    QueueSpec,
};

use crate::error::SimError;
use crate::host::{Cpu, HostCosts};

/// An answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which request.
    pub id: RequestId,
    /// How it went.
    pub outcome: Outcome,
    /// When.
    pub at: Time,
}

/// A member I/O as it was sent out, for comparing drivers of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRecord {
    /// Which member.
    pub member: MemberIndex,
    /// What was asked.
    pub op: IoOp,
    /// Where.
    pub at: Sector,
    /// How many sectors.
    pub len: u32,
}

/// Something that happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A request reaches the array.
    Arrival(u32),
    /// A piece of parity is computed.
    Computed(JobId),
    /// A drive asked to be woken.
    Drive(u16),
    /// A request queue asked to be woken.
    Queue(u16),
}

/// A request on its way to the array.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: RequestId,
    op: RequestOp,
    at: Sector,
    len: Sectors,
    fua: bool,
    process: u32,
}

/// On whose behalf member I/Os go out that follow from the end of others, not from an arrival: md's
/// thread, not any process.
const KERNEL: u32 = u32::MAX;

/// A simulated array.
#[derive(Debug)]
pub struct World {
    array: Array,
    drives: Vec<Drive>,
    /// The wake-up each drive waits for; later entries of the queue for it are stale.
    wakes: Vec<Option<Time>>,
    /// The request queue of each drive; none when I/Os go to the drives as they come.
    queues: Vec<Queue>,
    queue_wakes: Vec<Option<Time>>,
    /// On whose behalf member I/Os go out at present.
    process: u32,
    happened: u64,
    costs: HostCosts,
    cpu: Cpu,
    now: Time,
    sequence: u64,
    queue: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    pending: Vec<Pending>,
    free_pending: Vec<u32>,
    /// Requests that arrived while the array was full.
    backlog: VecDeque<u32>,
    /// The core's name of each drive I/O in flight.
    ios: Vec<IoId>,
    free_ios: Vec<u32>,
    ended: VecDeque<(IoId, IoOutcome)>,
    computed: VecDeque<JobId>,
    answers: VecDeque<Answer>,
    events: Vec<Event>,
    next_id: u64,
    member_requests: u64,
    record: Option<Vec<IoRecord>>,
}

impl World {
    /// An array as `config` says over `drives`, at time zero.
    ///
    /// # Errors
    /// When the configuration cannot be, or a drive is smaller than its member.
    pub fn new<D: Into<Drive>>(
        config: &Config,
        drives: Vec<D>,
        costs: HostCosts,
    ) -> Result<Self, SimError> {
        let drives: Vec<Drive> = drives.into_iter().map(Into::into).collect();
        if drives.len() != config.members.len() {
            return Err(SimError::drives(format!(
                "{} drives for {} members",
                drives.len(),
                config.members.len()
            )));
        }
        for (index, (drive, member)) in drives.iter().zip(&config.members).enumerate() {
            if drive.capacity() < member.sectors {
                return Err(SimError::drives(format!(
                    "drive {index} has {}, its member needs {}",
                    drive.capacity(),
                    member.sectors
                )));
            }
        }
        let array = Array::new(config)?;
        let ios = config.limits.ios.max(4 * config.members.len() as u32) as usize;
        Ok(Self {
            array,
            wakes: vec![None; drives.len()],
            drives,
            queues: Vec::new(),
            queue_wakes: Vec::new(),
            process: KERNEL,
            happened: 0,
            costs,
            cpu: Cpu::default(),
            now: Time::ZERO,
            sequence: 0,
            queue: BinaryHeap::with_capacity(4 * ios),
            pending: Vec::with_capacity(256),
            free_pending: Vec::with_capacity(256),
            backlog: VecDeque::with_capacity(256),
            ios: Vec::with_capacity(ios),
            free_ios: Vec::with_capacity(ios),
            ended: VecDeque::with_capacity(ios),
            computed: VecDeque::with_capacity(256),
            answers: VecDeque::with_capacity(256),
            events: Vec::new(),
            next_id: 0,
            member_requests: 0,
            record: None,
        })
    }

    /// Puts a request queue with its scheduler in front of every drive. Before the first request.
    #[must_use]
    pub fn with_queues(mut self, spec: &QueueSpec) -> Self {
        self.queues = self.drives.iter().map(|_| Queue::new(spec)).collect();
        self.queue_wakes = vec![None; self.queues.len()];
        self
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Member I/Os sent out so far.
    pub fn member_requests(&self) -> u64 {
        self.member_requests
    }

    /// Entries of the event queue that were worked off so far, stale ones included.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// How long the CPU has worked.
    pub fn cpu_busy(&self) -> Nanos {
        self.cpu.busy
    }

    /// How long a drive's bottleneck has worked: the mechanism of a disk.
    pub fn drive_busy(&self, member: MemberIndex) -> Nanos {
        self.drives[member.at()].busy()
    }

    /// Keeps a record of every member I/O from now on.
    pub fn start_record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// The record so far.
    pub fn record(&self) -> &[IoRecord] {
        self.record.as_deref().unwrap_or(&[])
    }

    /// News of the array so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Takes a member out of service now.
    pub fn fail(&mut self, member: MemberIndex) {
        self.array.handle(self.now, Input::Admin(Admin::Fail(member)));
        self.drain();
    }

    /// Submits a request now, on behalf of process 0; it reaches the array when the CPU has worked on it.
    pub fn submit(&mut self, op: RequestOp, at: Sector, len: Sectors, fua: bool) -> RequestId {
        self.submit_for(0, op, at, len, fua)
    }

    /// The same on behalf of a process, for the schedulers that tell processes apart.
    pub fn submit_for(
        &mut self,
        process: u32,
        op: RequestOp,
        at: Sector,
        len: Sectors,
        fua: bool,
    ) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let request = Pending { id, op, at, len, fua, process };
        let slot = if let Some(slot) = self.free_pending.pop() {
            self.pending[slot as usize] = request;
            slot
        } else {
            self.pending.push(request);
            self.pending.len() as u32 - 1
        };
        let arrival = self.cpu.serve(self.now, self.costs.request);
        self.schedule(arrival, Happening::Arrival(slot));
        id
    }

    /// The next answer, if one is there.
    pub fn next_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Moves on to the next moment at which something happens, and lets it happen; false when
    /// nothing will.
    pub fn step(&mut self) -> bool {
        let Some(Reverse((time, _, _))) = self.queue.peek() else { return false };
        self.now = *time;
        while let Some(Reverse((time, _, _))) = self.queue.peek()
            && *time == self.now
        {
            let Some(Reverse((_, _, happening))) = self.queue.pop() else { break };
            self.happened += 1;
            match happening {
                Happening::Arrival(slot) => self.backlog.push_back(slot),
                Happening::Computed(job) => self.computed.push_back(job),
                Happening::Drive(member) => self.wake_drive(member),
                Happening::Queue(member) => self.wake_queue(member),
            }
        }
        self.hand_in();
        true
    }

    fn schedule(&mut self, at: Time, happening: Happening) {
        self.queue.push(Reverse((at, self.sequence, happening)));
        self.sequence += 1;
    }

    fn wake_drive(&mut self, member: u16) {
        if self.wakes[usize::from(member)] == Some(self.now) {
            self.wakes[usize::from(member)] = None;
            self.drives[usize::from(member)].handle(self.now, DriveInput::Wake);
            self.drain_drive(member);
        }
    }

    fn drain_drive(&mut self, member: u16) {
        while let Some(output) = self.drives[usize::from(member)].poll() {
            match output {
                DriveOutput::Complete { id, outcome } if self.queues.is_empty() => {
                    self.complete(id, outcome);
                }
                DriveOutput::Complete { id, outcome } => {
                    self.feed_queue(member, QueueInput::Ended { id, outcome });
                }
                DriveOutput::WakeAt(at) => {
                    self.wakes[usize::from(member)] = Some(at);
                    self.schedule(at, Happening::Drive(member));
                }
            }
        }
    }

    fn complete(&mut self, id: DriveIoId, outcome: IoOutcome) {
        self.ended.push_back((self.ios[id.0 as usize], outcome));
        self.free_ios.push(id.0);
    }

    fn wake_queue(&mut self, member: u16) {
        if self.queue_wakes[usize::from(member)] == Some(self.now) {
            self.queue_wakes[usize::from(member)] = None;
            self.feed_queue(member, QueueInput::Wake);
            self.drain_drive(member);
        }
    }

    /// Hands an input to a request queue. What it sends is handed to the drive, whose outputs the caller
    /// drains.
    fn feed_queue(&mut self, member: u16, input: QueueInput) {
        let index = usize::from(member);
        self.queues[index].handle(self.now, input);
        while let Some(output) = self.queues[index].poll() {
            match output {
                QueueOutput::Dispatch(io) => {
                    self.drives[index].handle(self.now, DriveInput::Submit(io));
                }
                QueueOutput::Complete { id, outcome } => self.complete(id, outcome),
                QueueOutput::WakeAt(at) => {
                    self.queue_wakes[index] = Some(at);
                    self.schedule(at, Happening::Queue(member));
                }
            }
        }
    }

    /// Hands in everything that is ready now, then drains the array; again while that makes more.
    fn hand_in(&mut self) {
        loop {
            let mut any = false;
            while let Some((io, outcome)) = self.ended.pop_front() {
                let completion = Completion { io, outcome, record: None };
                self.array.handle(self.now, Input::Completion(completion));
                any = true;
            }
            while let Some(job) = self.computed.pop_front() {
                let input = Input::Computed { job, result: JobResult::Done };
                self.array.handle(self.now, input);
                any = true;
            }
            while self.array.can_accept()
                && let Some(slot) = self.backlog.pop_front()
            {
                self.arrive(slot);
                any = true;
            }
            if !any {
                return;
            }
            self.drain();
        }
    }

    fn arrive(&mut self, slot: u32) {
        let Pending { id, op, at, len, fua, process } = self.pending[slot as usize];
        self.free_pending.push(slot);
        let whole = [Segment { token: Token(0), offset: 0, len: len.0 as u32 }];
        let segments = if len == Sectors::ZERO { &[][..] } else { &whole[..] };
        let request = Request { id, op, at, len, segments, fua };
        self.array.handle(self.now, Input::Request(request));
        if !self.queues.is_empty() {
            // What the array sends out at once is on behalf of whoever asked.
            self.process = process;
            self.drain();
            self.process = KERNEL;
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.array.poll() {
            match output {
                Output::MemberIo(io) => self.send(&io),
                Output::Compute { job } => {
                    let bytes = self.array.job(job).map_or(0, |job| {
                        job.sources.len() as u64 * Sectors(u64::from(job.len)).bytes()
                    });
                    let done = self.cpu.serve(self.now, self.costs.parity(bytes));
                    self.schedule(done, Happening::Computed(job));
                }
                Output::Reply { id, outcome } => {
                    self.answers.push_back(Answer { id, outcome, at: self.now });
                }
                Output::Event(event) => self.events.push(event),
                // Nothing in this version of the core asks for metadata or timers.
                Output::Meta(_) | Output::WakeAt(_) => {}
            }
        }
    }

    fn send(&mut self, io: &MemberIo) {
        self.member_requests += 1;
        if let Some(record) = &mut self.record {
            record.push(IoRecord { member: io.member, op: io.op, at: io.at, len: io.len });
        }
        let op = match io.op {
            IoOp::Read => DriveOp::Read,
            IoOp::Write | IoOp::WriteZeroes => DriveOp::Write,
            // The models of drives have nothing to do for a discard.
            IoOp::Discard => {
                self.ended.push_back((io.io, IoOutcome::Ok));
                return;
            }
            IoOp::Flush => DriveOp::Flush,
        };
        let slot = if let Some(slot) = self.free_ios.pop() {
            self.ios[slot as usize] = io.io;
            slot
        } else {
            self.ios.push(io.io);
            self.ios.len() as u32 - 1
        };
        let request = DriveIo { id: DriveIoId(slot), op, at: io.at, len: io.len, fua: io.fua };
        if self.queues.is_empty() {
            self.drives[io.member.at()].handle(self.now, DriveInput::Submit(request));
        } else {
            let process = self.process;
            self.feed_queue(io.member.0, QueueInput::Submit { io: request, process });
        }
        self.drain_drive(io.member.0);
    }
}
