//! A driver for tests: members and buffers in memory, one byte a sector, any order of completion.

pub(crate) mod field;

mod cache;
pub(crate) mod carried;
pub(crate) mod records;

use std::collections::{BTreeSet, VecDeque};

use raidlab_core::consistency::{Allow, AssembleError, Found, ReturnRefusal, Wanted};
use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoId, IoOp, IoOutcome, Job, JobId, JobResult, LOG_HEADER,
    MemberIo, MetaIo, Outcome, Output, ParityOp, Request, RequestId, Role, Scratch, Segment,
    SegmentList, Token,
};
use raidlab_core::{
    Array, Config, Layout, Level, MemberIndex, Sector, Sectors, Stack, Time, Volume,
};
use raidlab_random::SplitMix64;

use cache::Caches;

/// The small arrays of each level in the table of levels, in chunks of `chunk` sectors where it has chunks.
#[allow(dead_code, reason = "not every test that uses this module asks for them")]
pub(crate) fn small_arrays(chunk: u64) -> impl Iterator<Item = Layout> {
    let all = Level::ALL.into_iter();
    let all =
        all.flat_map(|level| level.small_arrays().iter().map(move |n| Layout::new(level, *n)));
    all.map(move |one| if one.level.has_chunks() { one.with_chunk(Sectors(chunk)) } else { one })
}
use records::Records;

/// Something the driver has been asked to do and has not done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Io(MemberIo),
    Job(JobId),
    Meta(IoId),
    /// An I/O that was given up: it ends with a timeout.
    Abandoned(IoId),
}

/// What a driver drives: an array, or a stack of them.
pub(crate) trait Planner {
    fn handle(&mut self, now: Time, input: Input<'_>);
    fn poll(&mut self) -> Option<Output>;
    fn list(&self, list: &SegmentList) -> Vec<Segment>;
    fn job(&self, job: JobId) -> Option<Job<'_>>;
    fn scratch(&self) -> Scratch;
    /// A record, with the pages of the bitmap that are written together with it.
    fn meta(&self, io: IoId) -> Option<(MetaIo, Vec<(u32, u64)>)>;
}

macro_rules! planner {
    ($of:ty, $array:expr) => {
        impl Planner for $of {
            fn handle(&mut self, now: Time, input: Input<'_>) {
                self.handle(now, input);
            }

            fn poll(&mut self) -> Option<Output> {
                self.poll()
            }

            fn list(&self, list: &SegmentList) -> Vec<Segment> {
                self.segments(list).collect()
            }

            fn job(&self, job: JobId) -> Option<Job<'_>> {
                self.job(job)
            }

            fn scratch(&self) -> Scratch {
                self.scratch()
            }

            fn meta(&self, io: IoId) -> Option<(MetaIo, Vec<(u32, u64)>)> {
                let array: fn(&Self) -> Option<&Array> = $array;
                let array = array(self)?;
                let meta = *array.meta(io)?;
                Some((meta, array.pages_beside(&meta).collect()))
            }
        }
    };
}

planner!(Array, |array| Some(array));
planner!(Stack, |_| None);
planner!(Volume, |volume| volume.flat());

pub(crate) struct Driver<P: Planner = Array> {
    pub(crate) array: P,
    /// A byte stands for a sector.
    pub(crate) members: Vec<Vec<u8>>,
    pub(crate) buffers: Vec<Vec<u8>>,
    scratch: Vec<Vec<u8>>,
    pub(crate) work: VecDeque<Work>,
    pub(crate) replies: Vec<(RequestId, Outcome)>,
    pub(crate) events: Vec<Event>,
    /// Every member I/O sent out.
    pub(crate) log: Vec<MemberIo>,
    /// Where the log area of each device starts.
    data: Vec<u64>,
    /// Metadata as it lies on the devices.
    pub(crate) records: Records,
    /// What a metadata I/O meets.
    pub(crate) meta_fault: Box<dyn FnMut(&MetaIo) -> IoOutcome>,
    /// What is in the members' caches only.
    pub(crate) caches: Caches,
    /// When the array wants to be woken.
    pub(crate) wake: Option<Time>,
    /// What a member I/O meets: asked once for each.
    pub(crate) fault: Box<dyn FnMut(&MemberIo) -> IoOutcome>,
    pub(crate) now: Time,
    next_id: u64,
    changes: BTreeSet<RequestId>,
    /// Not answered so far.
    asked: BTreeSet<RequestId>,
    /// Pieces of work done; see [`MOST_STEPS`].
    steps: u64,
}

/// What goes on for longer than this never ends, and would take all memory. The longest of the tests takes a tenth.
const MOST_STEPS: u64 = 1_000_000;

/// What the administrator says when an array does not start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    /// Whoever is named as missing is to be left out.
    pub(crate) missing: bool,
    /// See [`Allow::dirty_degraded`].
    pub(crate) dirty_degraded: bool,
}

/// Anything is allowed.
pub(crate) const ANYTHING: Word = Word { missing: true, dirty_degraded: true };

impl Word {
    /// Starts an array, and says it when asked.
    pub(crate) fn start(self, config: &Config, found: &Found) -> Result<Array, AssembleError> {
        let wanted = Wanted::from(config);
        let mut allow = Allow { dirty_degraded: self.dirty_degraded, ..Allow::default() };
        loop {
            match Array::assemble(&wanted, found, allow) {
                Err(AssembleError::Missing(unused)) if self.missing => {
                    for one in unused {
                        let (word, bit) = (one.member.at() / 64, one.member.at() % 64);
                        assert!(allow.without[word] >> bit & 1 == 0, "asked for once");
                        allow.without[word] |= 1 << bit;
                    }
                }
                started => return started.map(|started| started.array),
            }
        }
    }
}

impl Driver {
    /// What the array says of a drive that is back in its place.
    pub(crate) fn judge_return(
        &self,
        config: &Config,
        member: MemberIndex,
    ) -> Result<Admin, ReturnRefusal> {
        let found = self.records.found(config, &self.members, &[]);
        self.array.judge_return(&records::IDENTITY, member, &found.members[member.at()])
    }

    pub(crate) fn new(config: &Config) -> Self {
        let array = Array::new(config).expect("a possible configuration");
        let mut driver = Self::over_devices(array, config);
        for member in (0..config.layout.members).map(MemberIndex).chain([driver.array.journal()]) {
            driver.records.format(member, &driver.array);
        }
        driver
    }

    /// Members with their logs, then as many replacements, then the journal.
    fn over_devices(array: Array, config: &Config) -> Self {
        let members = config.layout.members;
        let logs: Vec<u64> =
            (0..=2 * members).map(|m| array.log_sectors(MemberIndex(m)).0).collect();
        let size = |device: u16| {
            let data = config.members.get(usize::from(device % members.max(1)));
            let data = if device < 2 * members { data.map_or(0, |m| m.sectors.0) } else { 0 };
            data + logs[usize::from(device)]
        };
        let mut driver = Self::over(array, (0..=2 * members).map(size));
        let data = config.members.iter().map(|m| m.sectors.0);
        driver.data = data.clone().chain(data).collect();
        driver
    }

    /// After a crash at which everything completed is durable: what is found is assembled again,
    /// without the members `lost`.
    pub(crate) fn reassemble(
        &mut self,
        config: &Config,
        lost: &[u16],
        word: Word,
    ) -> Result<(), AssembleError> {
        let found = self.records.found(config, &self.members, lost);
        self.reassemble_from(config, &found, word)
    }

    /// The same from what is said to be found.
    pub(crate) fn reassemble_from(
        &mut self,
        config: &Config,
        found: &Found,
        word: Word,
    ) -> Result<(), AssembleError> {
        let array = word.start(config, found)?;
        let mut driver = Self::over_devices(array, config);
        driver.members = std::mem::take(&mut self.members);
        driver.caches = Caches::new(&driver.members);
        if self.caches.is_used() {
            driver.caches.begin();
        }
        driver.records = std::mem::take(&mut self.records);
        driver.next_id = self.next_id;
        driver.changes = std::mem::take(&mut self.changes);
        *self = driver;
        self.drain();
        Ok(())
    }

    /// Another array over copies of the same members.
    pub(crate) fn with_members(&self, array: Array, config: &Config) -> Self {
        let mut driver = Self::over_devices(array, config);
        driver.members.clone_from(&self.members);
        driver.drain();
        driver
    }

    /// The power fails: what is in caches or on its way is kept or lost, sector by sector, and
    /// records as wholes. What is found is assembled again without the members `lost`.
    pub(crate) fn crash(
        &mut self,
        config: &Config,
        random: &mut SplitMix64,
        lost: &[u16],
        word: Word,
    ) -> Result<(), AssembleError> {
        self.lose_power(random);
        self.reassemble(config, lost, word)
    }

    /// The first half of [`Self::crash`].
    pub(crate) fn lose_power(&mut self, random: &mut SplitMix64) {
        assert!(self.caches.is_used(), "begun before the first write");
        for work in std::mem::take(&mut self.work) {
            match work {
                Work::Io(io) if matches!(io.op, IoOp::Write | IoOp::WriteZeroes) => {
                    let segments = self.array.list(&io.segments);
                    let mut bytes = self.gather(&segments);
                    bytes.resize(io.len as usize, 0);
                    self.caches.wrote(io.member.at(), io.at.0 as usize, &bytes, false);
                }
                Work::Meta(io) if random.below(2) == 0 => self.write_record(io),
                _ => {}
            }
        }
        self.members = self.caches.crash(random);
    }

    /// Wakes the array when it wants, at most `times`, and does all work in between.
    pub(crate) fn run_until_idle(&mut self, times: usize) {
        self.run();
        for _ in 0..times {
            let Some(at) = self.wake.take() else { return };
            self.now = self.now.max(at);
            self.input(Input::Wake);
            self.run();
        }
    }
}

impl Driver {
    /// Members that are not out of service.
    pub(crate) fn in_service(&self) -> Vec<u16> {
        let members = self.array.layout().members;
        (0..members).filter(|m| !self.array.is_failed(MemberIndex(*m))).collect()
    }
}

impl<P: Planner> Driver<P> {
    /// Drives `array` over members of these sizes.
    pub(crate) fn over(array: P, sizes: impl Iterator<Item = u64>) -> Self {
        let scratch = array.scratch();
        let members: Vec<Vec<u8>> = sizes.map(|size| vec![0; size as usize]).collect();
        Self {
            caches: Caches::new(&members),
            members,
            buffers: Vec::new(),
            scratch: vec![vec![0xee; scratch.len as usize]; scratch.count as usize],
            array,
            work: VecDeque::new(),
            replies: Vec::new(),
            events: Vec::new(),
            log: Vec::new(),
            data: Vec::new(),
            records: Records::default(),
            meta_fault: Box::new(|_| IoOutcome::Ok),
            wake: None,
            fault: Box::new(|_| IoOutcome::Ok),
            now: Time::ZERO,
            next_id: 0,
            changes: BTreeSet::new(),
            asked: BTreeSet::new(),
            steps: 0,
        }
    }

    pub(crate) fn buffer(&mut self, bytes: Vec<u8>) -> Token {
        self.buffers.push(bytes);
        Token(self.buffers.len() as u32 - 1)
    }

    pub(crate) fn submit(&mut self, op: IoOp, at: u64, segments: &[Segment]) -> RequestId {
        self.submit_as(op, at, segments, false)
    }

    fn submit_as(&mut self, op: IoOp, at: u64, segments: &[Segment], fua: bool) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let len = Sectors(segments.iter().map(|s| u64::from(s.len)).sum());
        if op != IoOp::Read {
            self.changes.insert(id);
        }
        let request = Request { id, op, at: Sector(at), len, segments, fua };
        self.input(Input::Request(request));
        id
    }

    /// Submits a write, and leaves it at that.
    pub(crate) fn begin_write(&mut self, at: u64, bytes: &[u8], fua: bool) -> RequestId {
        let token = self.buffer(bytes.to_vec());
        let segment = Segment { token, offset: 0, len: bytes.len() as u32 };
        self.submit_as(IoOp::Write, at, &[segment], fua)
    }

    /// Whether a request was a write or a flush.
    pub(crate) fn is_change(&self, id: RequestId) -> bool {
        self.changes.contains(&id)
    }

    /// A request without payload: zeroes or a discard.
    pub(crate) fn submit_range(&mut self, op: IoOp, at: u64, len: u64) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let (at, len) = (Sector(at), Sectors(len));
        let request = Request { id, op, at, len, segments: &[], fua: false };
        self.input(Input::Request(request));
        id
    }

    pub(crate) fn input(&mut self, input: Input<'_>) {
        if let Input::Request(request) = &input {
            self.asked.insert(request.id);
        }
        self.array.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.array.poll() {
            match output {
                Output::MemberIo(io) => {
                    if io.op == IoOp::Flush {
                        self.caches.flush_sent(io.io);
                    }
                    self.log.push(io);
                    self.work.push_back(Work::Io(io));
                }
                Output::Compute { job } => self.work.push_back(Work::Job(job)),
                Output::Reply { id, outcome } => {
                    assert!(self.asked.remove(&id), "{id:?} is answered once, and was asked");
                    self.replies.push((id, outcome));
                }
                Output::Event(event) => {
                    if let Event::Replaced(member) = event {
                        self.swap_drives(member);
                    }
                    self.events.push(event);
                }
                Output::Meta { io } => self.work.push_back(Work::Meta(io)),
                Output::Abandon { io } => self.abandon(io),
                Output::WakeAt(at) => self.wake = Some(at),
            }
        }
    }

    /// The replacement is the member from now on; what is in flight goes to the drive it was sent
    /// to.
    fn swap_drives(&mut self, member: MemberIndex) {
        let other = MemberIndex((self.data.len() / 2) as u16 + member.0);
        self.members.swap(member.at(), other.at());
        self.records.rename(other.0, member.0);
        for work in &mut self.work {
            if let Work::Io(io) = work {
                io.member = match io.member {
                    now if now == member => other,
                    now if now == other => member,
                    now => now,
                };
            }
        }
    }

    fn bytes(&mut self, segment: Segment) -> &mut [u8] {
        let buffer = match Scratch::index(segment.token) {
            Some(index) => &mut self.scratch[index],
            None => &mut self.buffers[segment.token.0 as usize],
        };
        &mut buffer[segment.offset as usize..(segment.offset + segment.len) as usize]
    }

    fn gather(&mut self, segments: &[Segment]) -> Vec<u8> {
        let mut all = Vec::new();
        for segment in segments {
            let part = self.bytes(*segment).to_vec();
            all.extend(part);
        }
        all
    }

    fn scatter(&mut self, segments: &[Segment], bytes: &[u8]) {
        let mut from = 0;
        for segment in segments {
            let to = from + segment.len as usize;
            self.bytes(*segment).copy_from_slice(&bytes[from..to]);
            from = to;
        }
        assert_eq!(from, bytes.len(), "a list is as long as its I/O");
    }

    /// Does the piece of work at `index` of the queue.
    pub(crate) fn step(&mut self, index: usize) {
        self.now = Time(self.now.0 + 1);
        self.steps += 1;
        assert!(self.steps < MOST_STEPS, "it never ends");
        match self.work.remove(index).expect("work to do") {
            Work::Io(io) => {
                let outcome = (self.fault)(&io);
                if outcome == IoOutcome::Ok {
                    self.carry_out(&io);
                }
                let completion = Completion { io: io.io, outcome };
                self.input(Input::Completion(completion));
            }
            Work::Job(job) => self.compute(job),
            Work::Meta(io) => {
                let (meta, _) = self.array.meta(io).expect("the record is wanted");
                let outcome = (self.meta_fault)(&meta);
                if outcome == IoOutcome::Ok {
                    self.write_record(io);
                }
                self.input(Input::Completion(Completion { io, outcome }));
            }
            Work::Abandoned(io) => {
                let outcome = IoOutcome::Timeout;
                self.input(Input::Completion(Completion { io, outcome }));
            }
        }
    }

    fn write_record(&mut self, io: IoId) {
        let (meta, beside) = self.array.meta(io).expect("the record is wanted");
        let payload = self.array.list(&meta.payload);
        let payload = self.gather(&payload);
        let device = meta.member.at();
        let data = self.data.get(device).copied().unwrap_or(0);
        let start = (data + meta.at.0) as usize + LOG_HEADER as usize;
        self.caches.wrote(device, start, &payload, true);
        self.records.write(&meta, payload, &mut self.members[device], data);
        self.records.write_pages(meta.member.0, beside);
    }

    /// The driver gives up an I/O that the array no longer waits for.
    fn abandon(&mut self, io: IoId) {
        let is_it = |work: &Work| match work {
            Work::Io(known) => known.io == io,
            Work::Meta(known) => *known == io,
            _ => false,
        };
        self.work.retain(|work| !is_it(work));
        self.work.push_back(Work::Abandoned(io));
    }

    fn carry_out(&mut self, io: &MemberIo) {
        let segments = self.array.list(&io.segments);
        let range = io.at.0 as usize..io.at.0 as usize + io.len as usize;
        match io.op {
            IoOp::Read => {
                let bytes = self.members[io.member.at()][range].to_vec();
                self.scatter(&segments, &bytes);
            }
            IoOp::Write => {
                let bytes = self.gather(&segments);
                self.caches.wrote(io.member.at(), range.start, &bytes, io.fua);
                self.members[io.member.at()][range].copy_from_slice(&bytes);
            }
            // A discard leaves anything behind; here something that was never written.
            IoOp::Discard | IoOp::WriteZeroes => {
                let byte = if io.op == IoOp::Discard { 0x99 } else { 0 };
                let bytes = vec![byte; io.len as usize];
                self.caches.wrote(io.member.at(), range.start, &bytes, io.fua);
                self.members[io.member.at()][range].fill(byte);
            }
            IoOp::Flush => self.caches.flushed(io.io, io.member.at()),
        }
    }

    /// Carries a job out sector by sector, from the definitions of P and Q.
    fn compute(&mut self, job: JobId) {
        let view = self.array.job(job).expect("the job is wanted");
        let (kernel, roles) = (view.op, view.roles.to_vec());
        let lists = view.sources.iter().chain(view.targets);
        let operands: Vec<Vec<Segment>> = lists.map(|list| self.array.list(list)).collect();
        let (count, len) = (view.sources.len(), view.len as usize);
        let bytes: Vec<Vec<u8>> = operands.iter().map(|operand| self.gather(operand)).collect();
        assert!(bytes.iter().all(|operand| operand.len() == len), "operands of one length");
        let mut results = bytes[count..].to_vec();
        for at in 0..len {
            let sources: Vec<(Role, u8)> =
                (0..count).map(|index| (roles[index], bytes[index][at])).collect();
            let old: Vec<u8> = results.iter().map(|result| result[at]).collect();
            let new = field::sector(kernel, &sources, &roles[count..], &old);
            for (result, byte) in results.iter_mut().zip(new) {
                result[at] = byte;
            }
        }
        for (target, result) in operands[count..].iter().zip(&results) {
            self.scatter(target, result);
        }
        let result = match (kernel, bytes.iter().all(|operand| *operand == bytes[0])) {
            (ParityOp::Locate, _) => field::locate(&roles, &bytes),
            (ParityOp::Compare, true) => JobResult::Equal,
            (ParityOp::Compare, false) => {
                let differs =
                    |at: &usize| bytes.iter().any(|operand| operand[*at] != bytes[0][*at]);
                let from = (0..len).find(differs).expect("they differ") as u32;
                let to = (0..len).rfind(differs).expect("they differ") as u32 + 1;
                JobResult::Differs { from, to }
            }
            _ => JobResult::Done,
        };
        self.input(Input::Computed { job, result });
    }

    /// Does all work, in order.
    pub(crate) fn run(&mut self) {
        while !self.work.is_empty() {
            self.step(0);
        }
    }

    /// Does all work, in random order.
    pub(crate) fn run_shuffled(&mut self, random: &mut SplitMix64) {
        while !self.work.is_empty() {
            let index = random.below(self.work.len() as u64) as usize;
            self.step(index);
        }
    }

    pub(crate) fn outcome(&self, id: RequestId) -> Option<Outcome> {
        self.replies.iter().find(|(known, _)| *known == id).map(|(_, outcome)| *outcome)
    }

    /// Reads a range on its own.
    pub(crate) fn read(&mut self, at: u64, len: u32) -> Result<Vec<u8>, Outcome> {
        let token = self.buffer(vec![0xdd; len as usize]);
        let id = self.submit(IoOp::Read, at, &[Segment { token, offset: 0, len }]);
        self.run();
        match self.outcome(id) {
            Some(Outcome::Done) => Ok(self.buffers[token.0 as usize].clone()),
            other => Err(other.expect("every request is answered")),
        }
    }

    /// Writes a range on its own.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) -> Outcome {
        let token = self.buffer(bytes.to_vec());
        let len = bytes.len() as u32;
        let id = self.submit(IoOp::Write, at, &[Segment { token, offset: 0, len }]);
        self.run();
        self.outcome(id).expect("every request is answered")
    }

    pub(crate) fn fail(&mut self, member: u16) {
        self.input(Input::Admin(Admin::Fail(MemberIndex(member))));
        // Whatever is on a failed drive must never be seen again.
        let bytes = &mut self.members[usize::from(member)];
        bytes.fill(0xbb);
        self.caches.reset(usize::from(member), bytes);
    }
}
