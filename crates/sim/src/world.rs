//! One array, its drives and the host's CPU, joined in virtual time.
//!
//! A [`World`] is a driver of the core: a request is submitted, reaches the array when the host's CPU has worked on
//! it, and becomes I/Os to modelled drives, through request queues, paths or a controller where there are any. One
//! event queue orders all that will happen; [`World::step`] moves time on to the next event and handles it.

mod controller;
mod event_queue;
mod gather;
mod paths;
mod plug;
mod records;
mod spares;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::consistency::MetaArea;
use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoId, IoOp, IoOutcome, JobId, JobResult, MemberIo, Outcome,
    Output, Request, RequestId, Segment, Token,
};
use raidlab_core::{Config, MemberIndex, MemberTotals, Nanos, Sector, Sectors, Time, Volume};
use raidlab_models::{
    Controller, Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput, Paths, Queue,
    QueueInput, QueueOutput, QueueSpec,
};

use crate::error::SimError;
use crate::host::{Cores, HostCosts};
use event_queue::EventQueue;
use gather::Gather;
use raidlab_models::path::PathInput;
pub use spares::AtStart;
use spares::Spares;
pub use trace::DriveRequest;
use trace::Trace;

/// An answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The request.
    pub id: RequestId,
    /// Its result.
    pub outcome: Outcome,
    /// When.
    pub at: Time,
}

/// A member I/O as it was sent out, for comparing drivers of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IoRecord {
    /// Which member.
    pub member: MemberIndex,
    /// The operation.
    pub op: IoOp,
    /// The first sector.
    pub at: Sector,
    /// How many sectors.
    pub len: u32,
}

/// An event, which happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TimedEvent {
    /// A request reaches the array.
    Arrival(u32),
    /// The computing of parity has ended.
    Computed(JobId),
    /// A drive asked to be woken.
    Drive(u16),
    /// A request queue asked to be woken.
    Queue(u16),
    /// The array asked to be woken.
    Wake,
    /// A command on its path asked to be woken.
    Path(u32),
    /// The controller asked to be woken.
    Controller(u32),
    /// Data of a request have passed between host and controller.
    Transferred(u32),
}

/// A drive I/O in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    io: IoId,
    /// What follows when it succeeds; for metadata that must make earlier data durable first.
    then: Option<DriveIo>,
    /// It has been answered with a timeout already.
    abandoned: bool,
}

/// A request on its way to the array.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: RequestId,
    op: IoOp,
    at: Sector,
    len: Sectors,
    fua: bool,
    process: u32,
    way: Way,
}

/// How the array takes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As it is.
    Whole,
    /// Gathered into stripes with others.
    WriteBack,
    /// In requests of so many sectors at most, under one plug.
    Plugged(Sectors),
}

/// The process to which the schedulers attribute member I/Os that follow from the end of others, not from an
/// arrival: md's thread, no process of a workload.
const KERNEL: u32 = u32::MAX;

/// A simulated array, of one level or nested.
#[derive(Debug)]
pub struct World {
    array: Volume,
    /// Once this is set, nothing happens any more.
    stop: Option<&'static AtomicBool>,
    drives: Vec<Drive>,
    /// The drive of each member, replacement and the journal, as the core numbers them.
    places: Vec<Option<u16>>,
    area: MetaArea,
    /// Sectors of each drive before the data of its member: records lie there as md's do; zero: behind the data.
    front: u64,
    /// Sectors for data of each member.
    data: Vec<Sectors>,
    /// Which of its two places a record goes to next.
    turn: bool,
    /// When the array wants to be woken.
    wake: Option<Time>,
    /// The wake-up that each drive waits for; later entries for it in the event queue are stale.
    wakes: Vec<Option<Time>>,
    /// The request queue of each drive; none when I/Os go to the drives as they come.
    queues: Vec<Queue>,
    /// Drives whose queues hold requests under a plug.
    plugged: Vec<u16>,
    queue_wakes: Vec<Option<Time>>,
    spares: Spares,
    /// The kind of queue that a drive added later gets.
    queue_spec: Option<QueueSpec>,
    /// The paths between host and drives; without them only the drives limit.
    paths: Option<Box<Paths>>,
    /// The controller in front of the array; without it, the host's requests go to the array.
    controller: Option<Box<Controller>>,
    /// Drives answer writes when they are on the medium, since a controller has switched their caches off.
    writes_through: bool,
    /// The process for which member I/Os go out at present.
    process: u32,
    happened: u64,
    /// See [`prefill`](Self::prefill).
    is_prefilling: bool,
    costs: HostCosts,
    cores: Cores,
    now: Time,
    event_queue: EventQueue,
    pending: Vec<Pending>,
    free_pending: Vec<u32>,
    /// Requests that arrived while the array was full.
    backlog: VecDeque<u32>,
    /// The drive I/Os in flight.
    ios: Vec<InFlight>,
    free_ios: Vec<u32>,
    ended: VecDeque<(IoId, IoOutcome)>,
    computed: VecDeque<JobId>,
    answers: VecDeque<Answer>,
    events: Vec<Event>,
    event_times: Vec<Time>,
    next_id: u64,
    member_requests: u64,
    totals: MemberTotals,
    record: Option<Vec<IoRecord>>,
    trace: Option<Box<Trace>>,
    gather: Option<Box<Gather>>,
}

impl World {
    /// The array of `config` over `drives`, at time zero: one drive for each member, and with
    /// [`raidlab_core::Consistency::Journal`] the log device after them. Log and metadata of a member lie after its
    /// data ([`metadata_sectors`](Self::metadata_sectors)).
    ///
    /// # Errors
    /// When the configuration cannot be, or a drive is smaller than its member.
    pub fn new<D: Into<Drive>>(
        config: &Config,
        drives: Vec<D>,
        costs: HostCosts,
    ) -> Result<Self, SimError> {
        let mut drives: Vec<Drive> = drives.into_iter().map(Into::into).collect();
        drives.iter_mut().for_each(|drive| _ = drive.predict_completions());
        let (count, members) = (drives.len(), config.members.len());
        let journal = records::journal(config);
        if count != members + usize::from(journal.is_some()) {
            let log = if journal.is_some() { " and a log device" } else { "" };
            return Err(SimError::drives(format!("{count} drives for {members} members{log}")));
        }
        let array = Volume::new(config)?.without_payload();
        let area = MetaArea::of_volume(&array, config);
        let data: Vec<Sectors> = config.members.iter().map(|member| member.sectors).collect();
        let needs = data.iter().map(|data| *data + area.sectors());
        records::check_room(drives.iter().map(Drive::capacity), needs, journal)?;
        let mut places: Vec<Option<u16>> = (0..members as u16).map(Some).collect();
        places.resize(2 * members + 1, None);
        places[2 * members] = journal.map(|_| members as u16);
        let ios = config.limits.ios.max(4 * config.members.len() as u32) as usize;
        Ok(Self {
            array,
            stop: None,
            wakes: vec![None; drives.len()],
            drives,
            places,
            area,
            front: 0,
            data,
            turn: false,
            wake: None,
            queues: Vec::new(),
            plugged: Vec::new(),
            queue_wakes: Vec::new(),
            spares: Spares::default(),
            queue_spec: None,
            paths: None,
            controller: None,
            writes_through: false,
            process: KERNEL,
            happened: 0,
            is_prefilling: false,
            costs,
            cores: Cores::default(),
            now: Time::ZERO,
            event_queue: EventQueue::new(4 * ios),
            pending: Vec::with_capacity(256),
            free_pending: Vec::with_capacity(256),
            backlog: VecDeque::with_capacity(256),
            ios: Vec::with_capacity(ios),
            free_ios: Vec::with_capacity(ios),
            ended: VecDeque::with_capacity(ios),
            computed: VecDeque::with_capacity(256),
            answers: VecDeque::with_capacity(256),
            events: Vec::new(),
            event_times: Vec::new(),
            next_id: 0,
            member_requests: 0,
            totals: MemberTotals::default(),
            record: None,
            trace: None,
            gather: None,
        })
    }

    /// Puts a request queue with its scheduler in front of every drive; call it before the first request. With a
    /// controller the host sees one disk, and the one queue in front of that disk is of this kind.
    #[must_use]
    pub fn with_queues(mut self, spec: &QueueSpec) -> Self {
        if self.controller.is_some() {
            self.set_controller_queue(spec);
            return self;
        }
        self.queues = self.drives.iter().map(|_| Queue::new(spec)).collect();
        self.queue_wakes = vec![None; self.queues.len()];
        self.queue_spec = Some(*spec);
        self
    }

    /// Makes [`step`](Self::step) return false once `stop` is set; nothing happens any more then.
    pub fn stop_on(&mut self, stop: &'static AtomicBool) {
        self.stop = Some(stop);
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The array.
    pub fn array(&self) -> &Volume {
        &self.array
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Moves time on to `at` if nothing happens before; otherwise does nothing and returns false.
    #[inline]
    pub fn idle_until(&mut self, at: Time) -> bool {
        if self.is_stopped() || self.event_queue.next_at().is_some_and(|next| next <= at) {
            return false;
        }
        self.now = self.now.max(at);
        true
    }

    /// The time of the next known event; `None` when there is none.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        self.event_queue.next_at()
    }

    /// Member I/Os sent out so far.
    pub fn member_requests(&self) -> u64 {
        self.member_requests
    }

    /// Totals of what the members were asked for so far.
    pub fn member_totals(&self) -> MemberTotals {
        self.totals
    }

    /// Entries of the event queue handled so far, stale ones included.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// Sets the number of the host's cores (one by default). The first works on requests and parity.
    pub fn set_cores(&mut self, cores: u32) {
        self.cores.set_count(cores);
    }

    /// How long the CPU has worked, all cores together.
    pub fn cpu_busy(&self) -> Nanos {
        Nanos(self.cores_busy().map(|busy| busy.0).sum())
    }

    /// How long each core has worked.
    pub fn cores_busy(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.cores.busy()
    }

    /// When the first core will have done all the work it was given so far.
    #[inline]
    pub fn cpu_free(&self) -> Time {
        self.cores.first_free()
    }

    /// Gives the CPU work of `cost` that belongs to no request: to the last core that is idle, else to the one that
    /// is free first. Says when it is done.
    #[inline]
    pub fn work(&mut self, cost: Nanos) -> Time {
        self.cores.serve_process(self.now, cost)
    }

    /// How long a drive's bottleneck, such as the mechanism of a disk, has worked.
    pub fn drive_busy(&self, member: MemberIndex) -> Nanos {
        let drive = self.places[member.at()].map(usize::from);
        drive.map_or(Nanos::ZERO, |drive| self.drives[drive].busy_by(self.now))
    }

    /// Keeps a record of every member I/O from now on.
    pub fn start_record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// The record so far.
    pub fn record(&self) -> &[IoRecord] {
        self.record.as_deref().unwrap_or(&[])
    }

    /// Events of the array so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The time of each of the [`events`](Self::events).
    pub fn event_times(&self) -> &[Time] {
        &self.event_times
    }

    /// Takes a member out of service now.
    pub fn fail(&mut self, member: MemberIndex) {
        self.command(Admin::Fail(member));
    }

    /// Carries out a command now; refusals are among the [`events`](Self::events).
    pub fn command(&mut self, command: Admin) {
        self.array.handle(self.now, Input::Admin(command));
        self.drain();
        self.hand_in();
        self.place_spares();
    }

    /// Submits a request now, on behalf of process 0; it reaches the array when the CPU has worked on it.
    pub fn submit(&mut self, op: IoOp, at: Sector, len: Sectors, fua: bool) -> RequestId {
        self.submit_for(0, op, at, len, fua)
    }

    /// The same on behalf of a process, for schedulers that distinguish processes.
    pub fn submit_for(
        &mut self,
        process: u32,
        op: IoOp,
        at: Sector,
        len: Sectors,
        fua: bool,
    ) -> RequestId {
        self.submit_request(process, op, (at, len), (fua, Way::Whole))
    }

    #[inline]
    fn submit_request(
        &mut self,
        process: u32,
        op: IoOp,
        (at, len): (Sector, Sectors),
        (fua, way): (bool, Way),
    ) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let slot = self.hold(Pending { id, op, at, len, fua, process, way });
        let arrival = self.cores.serve_request(self.now, self.costs.request);
        self.event_queue.ask_in_order(arrival, TimedEvent::Arrival(slot));
        id
    }

    /// Finds a place for a request.
    #[inline]
    fn hold(&mut self, request: Pending) -> u32 {
        if let Some(slot) = self.free_pending.pop() {
            self.pending[slot as usize] = request;
            return slot;
        }
        self.pending.push(request);
        self.pending.len() as u32 - 1
    }

    /// The next answer, if one is there.
    #[inline]
    pub fn next_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Switches prefilling on or off. While it is on, drives and the queues and paths in front of them take no time
    /// and keep no trace of I/O, so that files can be placed before a run begins. Says whether it is on: drives
    /// must be idle disks without shingles, whose times do not depend on what was ever written, attached without a
    /// controller, and the array must not have begun to rebuild or check anything.
    pub fn prefill(&mut self, on: bool) -> bool {
        let is_disk = |drive: &Drive| matches!(drive, Drive::HardDisk(_));
        let works = |event: &Event| matches!(event, Event::Started(_));
        self.is_prefilling = on
            && self.controller.is_none()
            && self.drives.iter().all(is_disk)
            && self.free_ios.len() == self.ios.len()
            && !self.events.iter().any(works);
        self.is_prefilling
    }

    /// Whether an answer is there.
    #[inline]
    pub fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Moves time on to the next event and handles all that happens at that time; false when there is none.
    pub fn step(&mut self) -> bool {
        if self.is_stopped() {
            return false;
        }
        let Some(time) = self.event_queue.next_at() else { return false };
        self.now = time;
        while let Some(happening) = self.event_queue.due(time) {
            self.happened += 1;
            match happening {
                TimedEvent::Arrival(slot) if self.controller.is_some() => self.ask(slot),
                TimedEvent::Arrival(slot) => self.backlog.push_back(slot),
                TimedEvent::Computed(job) => self.computed.push_back(job),
                TimedEvent::Drive(member) => self.wake_drive(member),
                TimedEvent::Wake => self.woken(),
                TimedEvent::Queue(member) => self.wake_queue(member),
                TimedEvent::Path(command) => self.wake_path(command),
                TimedEvent::Controller(what) => self.wake_controller(what),
                TimedEvent::Transferred(request) => self.transferred(request),
            }
        }
        self.hand_in();
        self.place_spares();
        true
    }

    fn schedule(&mut self, at: Time, happening: TimedEvent) {
        self.event_queue.ask(at, happening);
    }

    fn wake_drive(&mut self, member: u16) {
        if self.wakes[usize::from(member)] == Some(self.now) {
            self.wakes[usize::from(member)] = None;
            self.drives[usize::from(member)].handle(self.now, DriveInput::Wake);
            self.drain_drive(member);
        }
    }

    /// Drains the outputs of a drive, and handles what follows from them.
    fn drain_drive(&mut self, member: u16) {
        self.hear_drive(member);
        self.settle_paths();
    }

    /// A dispatched I/O is on its way to a drive, or has reached it.
    #[inline]
    fn dispatched(&mut self, drive: u16) {
        if self.paths.is_some() {
            self.settle_paths();
        } else {
            self.hear_drive(drive);
        }
    }

    #[inline]
    fn hear_drive(&mut self, member: u16) {
        while let Some(output) = self.drives[usize::from(member)].poll() {
            match output {
                DriveOutput::Complete { id, outcome } => self.command_ended(member, id, outcome),
                DriveOutput::WakeAt(at) => self.wait_for_drive(member, at),
            }
        }
    }

    /// A drive has ended a command; with paths, its end has yet to reach the host.
    #[inline]
    fn command_ended(&mut self, member: u16, id: DriveIoId, outcome: IoOutcome) {
        if let Some(paths) = &mut self.paths {
            paths.handle(self.now, PathInput::Ended { id, outcome });
        } else {
            self.completed(member, id, outcome);
        }
    }

    /// The end of a command has reached the host.
    #[inline]
    fn completed(&mut self, member: u16, id: DriveIoId, outcome: IoOutcome) {
        if let Some(trace) = &mut self.trace {
            trace.ended(self.now, member, id, outcome);
        }
        if self.queues.is_empty() {
            self.drive_done(member, id, outcome);
        } else {
            self.feed_queue(member, QueueInput::Ended { id, outcome });
        }
    }

    /// Sends a command to a drive, over its path if there is one.
    #[inline]
    fn dispatch(&mut self, drive: u16, io: DriveIo) {
        if let Some(trace) = &mut self.trace {
            trace.sent(self.now, drive, io);
        }
        if let Some(paths) = &mut self.paths {
            paths.handle(self.now, PathInput::Submit { drive, io });
        } else {
            self.drives[usize::from(drive)].handle(self.now, DriveInput::Submit(io));
        }
    }

    fn drive_done(&mut self, drive: u16, id: DriveIoId, outcome: IoOutcome) {
        let InFlight { io, then, abandoned } = self.ios[id.0 as usize];
        if let Some(next) = then
            && outcome == IoOutcome::Ok
            && !abandoned
        {
            self.ios[id.0 as usize].then = None;
            self.hand_to_drive(drive, next);
            return;
        }
        if !abandoned {
            self.ended.push_back((io, outcome));
        }
        self.free_ios.push(id.0);
    }

    /// Wakes the array, unless it has asked for another time since.
    fn woken(&mut self) {
        if self.wake == Some(self.now) {
            self.wake = None;
            self.array.handle(self.now, Input::Wake);
            self.drain();
        }
    }

    /// An I/O goes to a drive, or into the queue in front of it. The caller drains the drive.
    #[inline(always)]
    fn hand_to_drive(&mut self, drive: u16, io: DriveIo) {
        if self.is_prefilling {
            self.drive_done(drive, io.id, IoOutcome::Ok);
        } else if self.queues.is_empty() {
            self.dispatch(drive, io);
        } else {
            let process = self.process;
            self.feed_queue(drive, QueueInput::Submit { io, process });
        }
    }

    fn wake_queue(&mut self, member: u16) {
        if self.queue_wakes[usize::from(member)] == Some(self.now) {
            self.queue_wakes[usize::from(member)] = None;
            self.feed_queue(member, QueueInput::Wake);
            self.dispatched(member);
        }
    }

    /// Hands an input to a request queue, and what the queue sends to the drive; the caller drains the drive's
    /// outputs.
    fn feed_queue(&mut self, member: u16, input: QueueInput) {
        let index = usize::from(member);
        self.queues[index].handle(self.now, input);
        while let Some(output) = self.queues[index].poll() {
            match output {
                QueueOutput::Dispatch(io) => self.dispatch(member, io),
                QueueOutput::Complete { id, outcome } => self.drive_done(member, id, outcome),
                QueueOutput::WakeAt(at) => {
                    self.queue_wakes[index] = Some(at);
                    self.schedule(at, TimedEvent::Queue(member));
                }
            }
        }
    }

    /// Hands in everything that is ready now, then drains the array; repeats while that makes more ready.
    fn hand_in(&mut self) {
        loop {
            let mut any = false;
            while let Some((io, outcome)) = self.ended.pop_front() {
                let completion = Completion { io, outcome };
                self.array.handle(self.now, Input::Completion(completion));
                any = true;
            }
            while let Some(job) = self.computed.pop_front() {
                let input = Input::Computed { job, result: JobResult::Done };
                self.array.handle(self.now, input);
                any = true;
            }
            while self.array.can_accept() {
                if !self.hand_in_gathered() {
                    let Some(slot) = self.backlog.pop_front() else { break };
                    self.arrive(slot);
                }
                any = true;
            }
            if !any {
                return;
            }
            self.drain();
        }
    }

    fn arrive(&mut self, slot: u32) {
        let request = self.pending[slot as usize];
        self.free_pending.push(slot);
        match (&mut self.gather, request.way) {
            (Some(gather), Way::WriteBack) => gather.arrived(&request),
            (Some(gather), Way::Plugged(longest)) => gather.called(&request, longest),
            _ => self.ask_array(&request),
        }
    }

    fn ask_array(&mut self, request: &Pending) {
        let Pending { id, op, at, len, fua, process, .. } = *request;
        let whole = [Segment { token: Token(0), offset: 0, len: len.0 as u32 }];
        let is_data = matches!(op, IoOp::Read | IoOp::Write) && len > Sectors::ZERO;
        let segments = if is_data { &whole[..] } else { &[][..] };
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
                    let done = self.compute(bytes);
                    self.schedule(done, TimedEvent::Computed(job));
                }
                Output::Reply { id, outcome } => self.reply(id, outcome),
                Output::Event(event) => self.event(event),
                Output::Meta { io } => self.send_meta(io),
                Output::WakeAt(at) => {
                    self.wake = Some(at.max(self.now));
                    self.schedule(at.max(self.now), TimedEvent::Wake);
                }
                Output::Abandon { io } => self.abandon(io),
            }
        }
        if !self.plugged.is_empty() {
            self.pull_plug();
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
        // Zeroes are written as anything else is.
        let moved = if op == DriveOp::Write { IoOp::Write } else { io.op };
        self.totals.count(moved, Sectors(u64::from(io.len)));
        let fua = io.fua || (self.writes_through && op == DriveOp::Write);
        let at = Sector(io.at.0 + self.front);
        let request = DriveIo { id: DriveIoId(0), op, at, len: io.len, fua };
        self.submit_to(io.member, io.io, request, None);
    }

    /// Submits an I/O to the drive of a member; missing members have none.
    #[inline(always)]
    fn submit_to(&mut self, place: MemberIndex, io: IoId, first: DriveIo, then: Option<DriveIo>) {
        let Some(drive) = self.places[place.at()] else {
            self.ended.push_back((io, IoOutcome::Gone));
            return;
        };
        let slot = self.free_ios.pop().unwrap_or(self.ios.len() as u32);
        let id = DriveIoId(slot);
        let flight = InFlight { io, then: then.map(|io| DriveIo { id, ..io }), abandoned: false };
        match self.ios.get_mut(slot as usize) {
            Some(place) => *place = flight,
            None => self.ios.push(flight),
        }
        let first = DriveIo { id, ..first };
        if self.hold_under_plug(io, drive, first) {
            return;
        }
        self.hand_to_drive(drive, first);
        self.dispatched(drive);
    }

    /// Abandons an I/O with a timeout: a modelled drive answers late at worst, and nothing waits for that.
    fn abandon(&mut self, io: IoId) {
        let free = &self.free_ios;
        let all = self.ios.iter_mut().enumerate();
        let mut in_flight = all.filter(|(slot, _)| !free.contains(&(*slot as u32)));
        if let Some((_, flight)) = in_flight.find(|(_, one)| one.io == io && !one.abandoned) {
            flight.abandoned = true;
            self.ended.push_back((io, IoOutcome::Timeout));
        }
    }

    fn event(&mut self, event: Event) {
        if let Event::MemberFailed(member) = event {
            self.spares.wanted.push_back(member);
        }
        if let Event::Replaced(member) = event {
            let place = self.array.replacement(member).at();
            self.places[member.at()] = self.places[place].take();
        }
        // Only how far it is now is of interest.
        if let (Event::Progress { .. }, Some(Event::Progress { .. })) = (event, self.events.last())
        {
            self.events.pop();
            self.event_times.pop();
        }
        self.events.push(event);
        self.event_times.push(self.now);
    }
}
