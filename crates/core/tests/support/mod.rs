//! A driver for tests: members and buffers in memory, one byte a sector, any order of completion.

use std::collections::VecDeque;

use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoOp, IoOutcome, JobId, JobResult, Kernel, MemberIo, Outcome,
    Output, Request, RequestId, RequestOp, Scratch, Segment, Token,
};
use raidlab_core::{Array, Config, MemberIndex, Sector, Sectors, Time};

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

pub(crate) struct Driver {
    pub(crate) array: Array,
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
        let scratch = array.scratch();
        Self {
            members: config.members.iter().map(|m| vec![0; m.sectors.0 as usize]).collect(),
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
        let segments: Vec<_> = self.array.segments(&io.segments).collect();
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
            _ => assert_eq!(io.op, IoOp::Flush),
        }
    }

    fn compute(&mut self, job: JobId) {
        let view = self.array.job(job).expect("the job is wanted");
        assert_eq!(view.kernel, Kernel::Xor);
        let len = view.len as usize;
        let sources: Vec<Vec<Segment>> =
            view.sources.iter().map(|list| self.array.segments(list).collect()).collect();
        let target: Vec<Segment> = self.array.segments(&view.targets[0]).collect();
        let mut result = vec![0; len];
        for source in sources {
            for (sum, byte) in result.iter_mut().zip(self.gather(&source)) {
                *sum ^= byte;
            }
        }
        self.scatter(&target, &result);
        self.input(Input::Computed { job, result: JobResult::Done });
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
