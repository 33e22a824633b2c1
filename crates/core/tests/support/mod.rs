//! A driver for tests: members and buffers in memory, one byte a sector, any order of completion.

pub(crate) mod field;

use std::collections::VecDeque;

use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoOp, IoOutcome, Job, JobId, JobResult, Kernel, MemberIo,
    Outcome, Output, Request, RequestId, RequestOp, Role, Scratch, Segment, SegmentList, Token,
};
use raidlab_core::{Array, Config, MemberIndex, Sector, Sectors, Stack, Time};

/// A small generator with a published definition (SplitMix64).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Something the driver has been asked to do and has not done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Io(MemberIo),
    Job(JobId),
}

/// What a driver drives: an array, or a stack of them.
pub(crate) trait Planner {
    fn handle(&mut self, now: Time, input: Input<'_>);
    fn poll(&mut self) -> Option<Output>;
    fn list(&self, list: &SegmentList) -> Vec<Segment>;
    fn job(&self, job: JobId) -> Option<Job<'_>>;
    fn scratch(&self) -> Scratch;
}

macro_rules! planner {
    ($of:ty) => {
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
        }
    };
}

planner!(Array);
planner!(Stack);

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
    /// What a member I/O meets: asked once for each.
    pub(crate) fault: Box<dyn FnMut(&MemberIo) -> IoOutcome>,
    pub(crate) now: Time,
    next_id: u64,
}

impl Driver {
    pub(crate) fn new(config: &Config) -> Self {
        let array = Array::new(config).expect("a possible configuration");
        Self::over(array, config.members.iter().map(|m| m.sectors.0))
    }
}

impl<P: Planner> Driver<P> {
    /// Drives `array` over members of these sizes.
    pub(crate) fn over(array: P, sizes: impl Iterator<Item = u64>) -> Self {
        let scratch = array.scratch();
        Self {
            members: sizes.map(|size| vec![0; size as usize]).collect(),
            buffers: Vec::new(),
            scratch: vec![vec![0xee; scratch.len as usize]; scratch.count as usize],
            array,
            work: VecDeque::new(),
            replies: Vec::new(),
            events: Vec::new(),
            log: Vec::new(),
            fault: Box::new(|_| IoOutcome::Ok),
            now: Time::ZERO,
            next_id: 0,
        }
    }

    pub(crate) fn buffer(&mut self, bytes: Vec<u8>) -> Token {
        self.buffers.push(bytes);
        Token(self.buffers.len() as u32 - 1)
    }

    pub(crate) fn submit(&mut self, op: RequestOp, at: u64, segments: &[Segment]) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let len = Sectors(segments.iter().map(|s| u64::from(s.len)).sum());
        let request = Request { id, op, at: Sector(at), len, segments, fua: false };
        self.input(Input::Request(request));
        id
    }

    /// A request without payload: zeroes or a discard.
    pub(crate) fn submit_range(&mut self, op: RequestOp, at: u64, len: u64) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let (at, len) = (Sector(at), Sectors(len));
        let request = Request { id, op, at, len, segments: &[], fua: false };
        self.input(Input::Request(request));
        id
    }

    pub(crate) fn input(&mut self, input: Input<'_>) {
        self.array.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.array.poll() {
            match output {
                Output::MemberIo(io) => {
                    self.log.push(io);
                    self.work.push_back(Work::Io(io));
                }
                Output::Compute { job } => self.work.push_back(Work::Job(job)),
                Output::Reply { id, outcome } => self.replies.push((id, outcome)),
                Output::Event(event) => self.events.push(event),
                Output::Meta(_) | Output::WakeAt(_) => panic!("not in this version: {output:?}"),
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
        match self.work.remove(index).expect("work to do") {
            Work::Io(io) => {
                let outcome = (self.fault)(&io);
                if outcome == IoOutcome::Ok {
                    self.carry_out(&io);
                }
                let completion = Completion { io: io.io, outcome, record: None };
                self.input(Input::Completion(completion));
            }
            Work::Job(job) => self.compute(job),
        }
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
                self.members[io.member.at()][range].copy_from_slice(&bytes);
            }
            // A discard leaves anything behind; here something that was never written.
            IoOp::Discard => self.members[io.member.at()][range].fill(0x99),
            IoOp::WriteZeroes => self.members[io.member.at()][range].fill(0),
            IoOp::Flush => {}
        }
    }

    /// Carries a job out sector by sector, from the definitions of P and Q.
    fn compute(&mut self, job: JobId) {
        let view = self.array.job(job).expect("the job is wanted");
        let (kernel, roles) = (view.kernel, view.roles.to_vec());
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
            (Kernel::Compare, true) => JobResult::Equal,
            (Kernel::Compare, false) => JobResult::Differs { from: 0, to: len as u32 },
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
    pub(crate) fn run_shuffled(&mut self, random: &mut Random) {
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
        let id = self.submit(RequestOp::Read, at, &[Segment { token, offset: 0, len }]);
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
        let id = self.submit(RequestOp::Write, at, &[Segment { token, offset: 0, len }]);
        self.run();
        self.outcome(id).expect("every request is answered")
    }

    pub(crate) fn fail(&mut self, member: u16) {
        self.input(Input::Admin(Admin::Fail(MemberIndex(member))));
        // Whatever is on a failed drive must never be seen again.
        self.members[usize::from(member)].fill(0xbb);
    }
}
