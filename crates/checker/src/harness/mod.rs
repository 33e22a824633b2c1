//! The harness: one array, its drives and buffers, and the oracle that watches every answer.
//!
//! Whoever drives it decides what happens next: which of the outstanding I/Os ends now and how
//! ([`Harness::finish`]), what is asked ([`Harness::submit`], [`Harness::command`]), when the array is woken
//! ([`Harness::wake`]), when the power goes ([`Harness::crash`]) and with which drives it starts again
//! ([`Harness::assemble`]). A harness is a value: copies of it go on by themselves.
//!
//! What is wrong shows in [`Harness::violation`]: a read that gave what it must not, a request answered
//! twice, a member I/O beyond the drive, a buffer changed under a write in flight. Whether an error
//! is due is for the caller to judge, from [`Harness::replies`].

mod carry;
mod gather;
mod restart;
mod start_md;
mod types;
mod verify;

use std::sync::Arc;

use raidlab_core::contract::{
    self, Admin, Event, Input, IoId, IoOp, JobId, MetaIo, Outcome, Output, Request, RequestId,
    Scratch, Segment, Token,
};
use raidlab_core::{Array, ConfigError, Consistency, MemberIndex, Sector, Sectors, Time};

use super::breach::Breach;
use super::content::{Content, hash_all, mix};
use super::device::{self, Drives, Format, Ticket};
use super::log::Log;
use super::oracle::Oracle;
use super::shape::{Set, Shape, has, set_of};

pub use restart::{Started, named};
pub use types::{Answer, Ask, Fault, HarnessConfig, Jobs, Work};
pub use verify::Disagreement;

/// With what the harness knows of it.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    work: Work,
    /// Of a write or record.
    ticket: Option<Ticket>,
    /// Of a flush, and the moment reads see.
    sent: u32,
    /// A hash of what was to be written.
    payload: u64,
    /// Its deadline has passed.
    abandoned: bool,
    /// Its drive was taken out of the array for good.
    ghost: bool,
    /// Of a record of several parts which this is, and whether another one follows.
    part: u32,
    more: bool,
}

impl Outstanding {
    const fn new(work: Work) -> Self {
        Self {
            work,
            ticket: None,
            sent: 0,
            payload: 0,
            abandoned: false,
            ghost: false,
            part: 0,
            more: false,
        }
    }

    const fn of(io: IoId, meta: MetaIo) -> Self {
        Self::new(Work::Meta(io, meta))
    }

    /// Whether it is a record that is on its way to this drive.
    fn is_record_of(&self, device: MemberIndex) -> bool {
        let is_theirs = matches!(self.work, Work::Meta(_, meta) if meta.member == device);
        is_theirs && !self.ghost && self.ticket.is_some()
    }
}

/// A request not yet answered.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: u64,
    ask: Ask,
    slot: u32,
    /// The oracle's moment.
    since: u32,
}

/// One array on its drives, under check.
#[derive(Debug)]
pub struct Harness {
    config: Arc<HarnessConfig>,
    shape: Arc<Shape>,
    array: Array,
    drives: Drives,
    oracle: Oracle,
    /// Buffers of requests, one a slot, then scratch.
    memory: Vec<Content>,
    scratch: Scratch,
    free: Vec<u32>,
    open: Vec<Open>,
    work: Vec<Outstanding>,
    /// Records of md that wait until the one before on their drive has ended, in order.
    waiting: Vec<(IoId, MetaIo)>,
    /// Entries of md's logs that the array has sent out since it was drained, or that wait like those records.
    gathered: Vec<(IoId, MetaIo)>,
    /// Those that are outstanding under the number of one of them.
    groups: Vec<gather::Group>,
    /// Jobs to be computed before anything else.
    jobs: Vec<JobId>,
    wake: Option<Time>,
    now: Time,
    next_id: u64,
    replies: Vec<Answer>,
    events: Vec<Event>,
    violation: Option<Breach>,
    log: Log,
    /// Members out of service before the last start, which a driver without superblocks remembers.
    known_failed: Set,
    /// Recovery is over, but not all of it is durable.
    finished: bool,
    /// The log device failed since the start.
    log_failed: bool,
}

impl Clone for Harness {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
            shape: Arc::clone(&self.shape),
            array: self.array.clone(),
            drives: self.drives.clone(),
            oracle: self.oracle.clone(),
            memory: self.memory.clone(),
            scratch: self.scratch,
            free: self.free.clone(),
            open: self.open.clone(),
            work: self.work.clone(),
            waiting: self.waiting.clone(),
            gathered: self.gathered.clone(),
            groups: self.groups.clone(),
            jobs: self.jobs.clone(),
            wake: self.wake,
            now: self.now,
            next_id: self.next_id,
            replies: self.replies.clone(),
            events: self.events.clone(),
            violation: self.violation.clone(),
            log: self.log.clone(),
            known_failed: self.known_failed,
            finished: self.finished,
            log_failed: self.log_failed,
        }
    }

    fn clone_from(&mut self, other: &Self) {
        if !Arc::ptr_eq(&self.config, &other.config) {
            self.config = Arc::clone(&other.config);
            self.shape = Arc::clone(&other.shape);
        }
        self.array.clone_from(&other.array);
        self.drives.clone_from(&other.drives);
        self.oracle.clone_from(&other.oracle);
        self.memory.clone_from(&other.memory);
        self.scratch = other.scratch;
        self.free.clone_from(&other.free);
        self.open.clone_from(&other.open);
        self.work.clone_from(&other.work);
        self.waiting.clone_from(&other.waiting);
        self.gathered.clone_from(&other.gathered);
        self.groups.clone_from(&other.groups);
        self.jobs.clone_from(&other.jobs);
        self.wake = other.wake;
        self.now = other.now;
        self.next_id = other.next_id;
        self.replies.clone_from(&other.replies);
        self.events.clone_from(&other.events);
        self.violation.clone_from(&other.violation);
        self.log.clone_from(&other.log);
        self.known_failed = other.known_failed;
        self.finished = other.finished;
        self.log_failed = other.log_failed;
    }
}

/// What the caller sees.
impl Harness {
    /// A new array on new drives.
    ///
    /// # Errors
    /// When the array cannot be configured so.
    pub fn new(mut config: HarnessConfig) -> Result<Self, ConfigError> {
        config.array.settings.keeps_bad_blocks = config.bytes.is_some_and(Format::lists_bad_blocks);
        config.array.settings.packed_bitmap = matches!(config.bytes, Some(Format::Md(_)));
        let shape = Arc::new(Shape::new(&config.array)?);
        let array = Array::new(&config.array)?;
        let mut drives = match config.bytes {
            Some(format) => Drives::with_bytes(&array, &config.array, config.replacements, format),
            None => Drives::new(&array, &config.array, config.replacements),
        };
        if config.whole_blocks {
            drives.write_whole_blocks();
        }
        let mut oracle = Oracle::new(Arc::clone(&shape));
        if drives.is_md() && matches!(shape.mode, Consistency::Journal { .. }) {
            oracle.logs_all_parity_or_none();
        }
        let mut log = Log::default();
        if config.lines {
            log.keep_lines();
        }
        let mut harness = Self {
            shape,
            scratch: Scratch { count: 0, len: 0 },
            drives,
            oracle,
            memory: Vec::new(),
            free: Vec::new(),
            open: Vec::new(),
            work: Vec::new(),
            waiting: Vec::new(),
            gathered: Vec::new(),
            groups: Vec::new(),
            jobs: Vec::new(),
            wake: None,
            now: Time::ZERO,
            next_id: 1,
            replies: Vec::new(),
            events: Vec::new(),
            violation: None,
            log,
            known_failed: 0,
            finished: false,
            log_failed: false,
            array,
            config: Arc::new(config),
        };
        harness.format();
        harness.set_up_memory();
        harness.plant();
        harness.drain();
        Ok(harness)
    }

    /// The array under check.
    #[must_use]
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// How the harness was set up.
    #[must_use]
    pub fn config(&self) -> &HarnessConfig {
        &self.config
    }

    /// Where everything lies.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The drives.
    #[must_use]
    pub fn drives(&self) -> &Drives {
        &self.drives
    }

    /// The drives, to damage them.
    pub fn drives_mut(&mut self) -> &mut Drives {
        &mut self.drives
    }

    /// The oracle.
    #[must_use]
    pub fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    /// The oracle, to tell it what the harness cannot know.
    pub fn oracle_mut(&mut self) -> &mut Oracle {
        &mut self.oracle
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The log, to add to it.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many I/Os and jobs are outstanding.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.work.len()
    }

    /// What is outstanding, in the order in which it was sent.
    #[must_use]
    pub fn work(&self, index: usize) -> &Work {
        &self.work[index].work
    }

    /// Whether the deadline of something outstanding has passed: it ends with a timeout.
    #[must_use]
    pub fn is_abandoned(&self, index: usize) -> bool {
        self.work[index].abandoned
    }

    /// Which drive something outstanding goes to; `None` for a job.
    #[must_use]
    pub fn device(&self, index: usize) -> Option<MemberIndex> {
        match self.work[index].work {
            Work::Io(io) => Some(io.member),
            Work::Meta(_, meta) => Some(meta.member),
            Work::Job(_) => None,
        }
    }

    /// Requests not yet answered.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.open.len()
    }

    /// The number of the oldest request not yet answered, or of the next.
    #[must_use]
    pub fn oldest_unanswered(&self) -> u64 {
        self.open.iter().map(|open| open.id).min().unwrap_or(self.next_id)
    }

    /// The number of the next request.
    #[must_use]
    pub fn next_request(&self) -> u64 {
        self.next_id
    }

    /// When the array wants to be woken.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Time> {
        self.wake
    }

    /// All answers since they were last taken, in order.
    #[must_use]
    pub fn replies(&self) -> &[Answer] {
        &self.replies
    }

    /// All events since they were last taken, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Forgets answers and events.
    pub fn forget(&mut self) {
        self.replies.clear();
        self.events.clear();
    }

    /// The array has stopped in order: what was answered well by now is durable, as after a flush.
    pub fn note_durable(&mut self) {
        let moment = self.oracle.flush();
        self.oracle.flushed(moment);
    }

    /// Members out of service or not yet rebuilt (a bit each).
    #[must_use]
    pub fn out_of_service(&self) -> Set {
        self.known_failed | self.drives.said_to_be_out(self.shape.members)
    }

    /// What was read last stays: for reads after a recovery.
    pub fn keep_what_was_read(&mut self) {
        let (Some(answer), Some(slot)) = (self.replies.last(), self.free.last()) else { return };
        let first = *slot as usize * self.config.longest as usize;
        let Ask { at, len, .. } = answer.ask;
        self.oracle.saw(at, &self.memory[first..first + len as usize]);
    }

    /// What is wrong, if anything: the first thing.
    #[must_use]
    pub fn violation(&self) -> Option<&Breach> {
        self.violation.as_ref()
    }

    /// Notes that something is wrong.
    pub fn violate(&mut self, what: String) {
        self.found(what.into());
    }

    fn found(&mut self, what: Breach) {
        let now = self.now.0;
        self.log.add(now, '!', &[], |line| line.put(format_args!("{what}")));
        self.violation.get_or_insert(what);
    }

    /// A key of everything that decides what happens next. Equal states have equal keys; what the
    /// array leaves out of its own ([`Array::state_key`]) is left out here too.
    #[must_use]
    pub fn key(&self) -> u64 {
        let mut key = mix(self.array.state_key(), self.drives.key());
        key = mix(key, self.oracle.key());
        // The order in which things were sent does not matter to what can happen next.
        let mut all = 0u64;
        for item in &self.work {
            let one = match item.work {
                Work::Io(io) => {
                    let op = io.op as u64 | u64::from(io.fua) << 8 | u64::from(io.member.0) << 16;
                    mix(mix(op, io.at.0), u64::from(io.len))
                }
                Work::Meta(_, meta) => {
                    mix(u64::from(meta.member.0) | u64::from(item.part) << 32 | 1 << 40, meta.at.0)
                }
                Work::Job(_) => 1 << 50,
            };
            let state = u64::from(item.abandoned) | u64::from(item.ghost) << 1;
            all = all.wrapping_add(mix(mix(one, item.payload), state));
        }
        key = mix(key, all);
        for (_, meta) in self.waiting.iter().chain(&self.gathered) {
            key = mix(key, device::hash_of(&meta.record) ^ u64::from(meta.member.0));
        }
        hash_all(key, &self.memory)
    }
}

/// What the caller does.
impl Harness {
    /// Whether a request may be submitted now.
    #[must_use]
    pub fn can_submit(&self) -> bool {
        self.array.can_accept() && !self.free.is_empty()
    }

    /// Submits a request; only while [`Self::can_submit`]. Gives its number.
    ///
    /// # Panics
    /// When all buffers are in use.
    pub fn submit(&mut self, ask: Ask) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let slot = self.free.pop().expect("a request is submitted while can_submit() says so");
        let Ask { op, at, len, fua } = ask;
        let now = self.now;
        self.log.add(now.0, 'S', &[id, op as u64, at, len, u64::from(fua)], |line| {
            let fua = if fua { " fua" } else { "" };
            line.put(format_args!("#{id} {op:?} {at}+{len}{fua}"));
        });
        let first = slot as usize * self.config.longest as usize;
        let buffer = &mut self.memory[first..first + self.config.longest as usize];
        let since = match op {
            IoOp::Write => {
                for (index, value) in (0..).zip(buffer.iter_mut()) {
                    *value = value_of(id, at + index);
                }
                let values = buffer[..len as usize].iter().copied();
                self.oracle.write(id, at, values);
                0
            }
            IoOp::WriteZeroes => {
                self.oracle.write(id, at, std::iter::repeat_n(0, len as usize));
                0
            }
            IoOp::Flush => self.oracle.flush(),
            IoOp::Discard => {
                self.oracle.discard(at, len);
                0
            }
            IoOp::Read => self.oracle.read(),
        };
        self.open.push(Open { id, ask, slot, since });
        let segment = Segment { token: Token(slot), offset: 0, len: len as u32 };
        let segments: &[Segment] = match op {
            IoOp::Read | IoOp::Write => &[segment],
            _ => &[],
        };
        let request =
            Request { id: RequestId(id), op, at: Sector(at), len: Sectors(len), segments, fua };
        self.array.handle(now, Input::Request(request));
        self.drain();
        id
    }

    /// Holds requests back, to be planned together at [`Self::unplug`].
    pub fn plug(&mut self) {
        self.array.handle(self.now, Input::Plug);
        self.drain();
    }

    /// Plans what was held back.
    pub fn unplug(&mut self) {
        self.array.handle(self.now, Input::Unplug);
        self.drain();
    }

    /// Gives a command of the administrator. A fresh drive put in a member's place is put in first.
    pub fn command(&mut self, command: Admin) {
        let now = self.now;
        self.log.add(now.0, 'A', &[], |line| line.put(format_args!("{command:?}")));
        if let Admin::ReAdd { member, .. } = command {
            let consistency = self.array.consistency();
            self.drives.know_again(member, &self.array.superblock(), consistency);
        }
        self.array.handle(now, Input::Admin(command));
        if let Admin::Replace { member, .. } = command
            && !has(set_of(self.array.status().replacing), member.0)
        {
            // What was there before, and is still being written to, stays known.
            let other = self.array.replacement(member);
            if !self.work.iter().any(|item| item.is_record_of(other)) {
                self.drives.refuse(other);
            }
        }
        self.drain();
    }

    /// Wakes the array at the time it asked for; false when it asked for none.
    pub fn wake(&mut self) -> bool {
        let Some(at) = self.wake.take() else { return false };
        self.now = self.now.max(at);
        let now = self.now;
        self.log.add(now.0, 'W', &[], |_| ());
        self.array.handle(now, Input::Wake);
        self.drain();
        true
    }

    /// Ends everything outstanding well, in order, until nothing is; never wakes.
    pub fn run(&mut self) {
        let mut left = 100_000;
        while !self.work.is_empty() && self.violation.is_none() {
            self.finish(0, Fault::None);
            left -= 1;
            if left == 0 {
                self.violate("I/O goes on for ever".into());
            }
        }
    }

    /// The same, and wakes the array as often as it wants, at most `wakes` times.
    pub fn run_on(&mut self, wakes: usize) {
        self.run();
        for _ in 0..wakes {
            if self.violation.is_some() || !self.wake() {
                return;
            }
            self.run();
        }
    }

    /// Ends well whatever goes to drives that were taken out for good.
    pub fn drop_ghosts(&mut self) {
        while let Some(index) = self.work.iter().position(|item| item.ghost) {
            self.finish(index, Fault::None);
        }
    }

    /// Ends well all metadata I/O, and what it is followed by of its kind.
    pub fn finish_records(&mut self) {
        let is_record = |item: &Outstanding| matches!(item.work, Work::Meta(..));
        while let Some(index) = self.work.iter().position(is_record) {
            self.finish(index, Fault::None);
        }
    }

    /// Ends well whatever goes to a drive.
    pub fn finish_all_of(&mut self, device: MemberIndex) {
        while let Some(index) = (0..self.work.len()).find(|k| self.device(*k) == Some(device)) {
            self.finish(index, Fault::None);
        }
    }

    /// Reads a range by itself, everything outstanding included; the oracle judges what it gives.
    pub fn read(&mut self, at: u64, len: u64) -> Outcome {
        self.ask(Ask { op: IoOp::Read, at, len, fua: false })
    }

    /// Does a request by itself, everything outstanding included. What came before it is forgotten
    /// by [`Self::forget`] only.
    pub fn ask(&mut self, ask: Ask) -> Outcome {
        let id = self.submit(ask);
        self.run();
        match self.replies.iter().find(|answer| answer.id == id) {
            Some(answer) => answer.outcome,
            None => {
                self.run_on(1000);
                let found = self.replies.iter().find(|answer| answer.id == id);
                let outcome = found.map(|answer| answer.outcome);
                if outcome.is_none() {
                    self.violate(format!("request {id} is never answered"));
                }
                outcome.unwrap_or(Outcome::Busy)
            }
        }
    }
}

/// What write `id` writes to a sector of the array.
#[must_use]
pub const fn value_of(id: u64, sector: u64) -> Content {
    mix(id.wrapping_add(0x5757), sector) | 1
}

/// Whether an I/O changes what a drive holds.
pub(crate) const fn changes(op: IoOp) -> bool {
    matches!(op, IoOp::Write | IoOp::WriteZeroes | IoOp::Discard)
}

impl Harness {
    /// Takes everything the array has to say.
    fn drain(&mut self) {
        loop {
            while let Some(output) = self.array.poll() {
                self.take(output);
            }
            self.send_gathered();
            let Some(job) = self.jobs.pop() else { return };
            self.compute(job);
        }
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::MemberIo(io) => self.send(io),
            Output::Meta { io } => self.send_meta(io),
            Output::Compute { job } if self.config.jobs == Jobs::AtOnce => self.jobs.push(job),
            Output::Compute { job } => self.work.push(Outstanding::new(Work::Job(job))),
            Output::Reply { id, outcome } => self.answered(id.0, outcome),
            Output::Abandon { io } => {
                self.forget_waiting(|(known, _)| *known == io, false);
                for index in 0..self.work.len() {
                    let is_meant = match self.work[index].work {
                        Work::Io(known) => known.io == io,
                        Work::Meta(known, _) => known == io || self.is_written_with(io, known),
                        Work::Job(_) => false,
                    };
                    self.work[index].abandoned |= is_meant;
                }
            }
            Output::WakeAt(at) => self.wake = Some(at),
            Output::Event(event) => self.heard(event),
        }
    }

    fn answered(&mut self, id: u64, outcome: Outcome) {
        let now = self.now.0;
        self.log.add(now, 'R', &[id, u64::from(outcome == Outcome::Done)], |line| {
            line.put(format_args!("#{id} {outcome:?}"));
        });
        let Some(index) = self.open.iter().position(|open| open.id == id) else {
            self.violate(format!("request {id} is answered twice"));
            return;
        };
        let Open { ask, slot, since, .. } = self.open.remove(index);
        let well = outcome == Outcome::Done;
        let first = slot as usize * self.config.longest as usize;
        let Ask { op, at, len, fua } = ask;
        let mut wrong = None;
        match op {
            IoOp::Write => self.oracle.written(id, well, fua),
            IoOp::WriteZeroes => self.oracle.written(id, well, false),
            IoOp::Flush if well => self.oracle.flushed(since),
            IoOp::Flush => {}
            IoOp::Discard => self.oracle.discarded(at, len),
            IoOp::Read if well => {
                let values = &self.memory[first..first + len as usize];
                wrong = self.oracle.check(since, at, values).err();
            }
            IoOp::Read => {}
        }
        if op == IoOp::Read {
            self.oracle.read_ended(since);
        }
        if let Some(wrong) = wrong {
            self.found(Breach::read(format!(
                "read {id} gave {:#x} for sector {}; legal: {:x?}",
                wrong.got, wrong.sector, wrong.legal
            )));
        }
        // Nobody may look at the buffer any more.
        let end = first + self.config.longest as usize;
        if op != IoOp::Read {
            self.memory[first..end].fill(0xdead_dead_dead_dead);
        }
        self.free.push(slot);
        self.replies.push(Answer { id, ask, outcome });
    }

    /// What the last read gave, when it was the request answered last.
    #[must_use]
    pub fn last_read(&self) -> &[Content] {
        let (Some(answer), Some(slot)) = (self.replies.last(), self.free.last()) else {
            return &[];
        };
        let first = *slot as usize * self.config.longest as usize;
        &self.memory[first..first + answer.ask.len as usize]
    }

    fn heard(&mut self, event: Event) {
        let now = self.now.0;
        self.log.add(now, 'E', &[], |line| line.put(format_args!("{event:?}")));
        match event {
            Event::MemberFailed(member) => {
                self.known_failed |= 1 << member.0;
                self.note_lost(1 << member.0, false);
            }
            Event::Finished { work: contract::Work::Resync, lost, .. } => {
                self.finished = lost == Sectors::ZERO;
            }
            // Without the log nobody knows what it protected.
            Event::Finished { work: contract::Work::LogReplay, lost, .. } => {
                self.finished = lost == Sectors::ZERO && !self.log_failed;
            }
            Event::JournalFailed => self.log_failed = true,
            Event::Restored(member) => self.known_failed &= !(1 << member.0),
            Event::Replaced(member) => {
                let replacement = self.array.replacement(member);
                self.read_before_swap(member);
                self.drives.take_place(member, replacement);
                self.forget_waiting(|(_, meta)| meta.member == member, true);
                self.groups.iter_mut().for_each(|group| group.moves(member, replacement));
                for (_, meta) in self.waiting.iter_mut().chain(&mut self.gathered) {
                    if meta.member == replacement {
                        meta.member = member;
                    }
                }
                for item in &mut self.work {
                    // The drive that went still answers; what it cannot read is on the new one.
                    let reads = matches!(item.work, Work::Io(io) if io.op == IoOp::Read);
                    let device = match &mut item.work {
                        Work::Io(io) => &mut io.member,
                        Work::Meta(_, meta) => &mut meta.member,
                        Work::Job(_) => continue,
                    };
                    item.ghost |= *device == member && !reads;
                    if *device == replacement {
                        *device = member;
                    }
                }
            }
            _ => {}
        }
        self.events.push(event);
    }
}
