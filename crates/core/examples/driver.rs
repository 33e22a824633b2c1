//! A driver of the planner: members and buffers are vectors, parity comes from `raidlab-parity`. A raid5 is written,
//! loses a member, is read without it, and is rebuilt: `cargo run -p raidlab-core --example driver`.

use std::collections::BTreeMap;

use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoOp, IoOutcome, JobId, JobResult, MemberIo, Outcome, Output,
    ParityOp, Request, RequestId, Scratch, Segment, SegmentList, Token,
};
use raidlab_core::{Array, Config, Layout, Level, MemberIndex, Sector, Sectors, Time};

struct Driver {
    array: Array,
    members: Vec<Vec<u8>>,
    /// Payload, and what the array works in, by the names that it has for them.
    buffers: BTreeMap<Token, Vec<u8>>,
    now: Time,
}

impl Driver {
    /// Hands an input in, and does all that is asked for until the array has said what is waited for.
    fn drive(&mut self, input: Input<'_>, is_last: impl Fn(&Output) -> bool) {
        let (mut done, mut wake, mut inputs) = (false, None, Vec::new());
        self.array.handle(self.now, input);
        loop {
            while let Some(output) = self.array.poll() {
                done |= is_last(&output);
                match output {
                    Output::MemberIo(io) => inputs.push(self.carry_out(&io)),
                    Output::Compute { job } => inputs.push(self.compute(job)),
                    Output::WakeAt(at) => wake = Some(at),
                    Output::Reply { outcome, .. } => assert_eq!(outcome, Outcome::Done),
                    Output::Event(Event::Progress { .. }) => {}
                    Output::Event(event) => println!("{event:?}"),
                    other => unreachable!("without metadata and deadlines: {other:?}"),
                }
            }
            if inputs.is_empty() && done {
                return;
            }
            if inputs.is_empty() {
                // Time is the driver's: here it passes when there is nothing else to do.
                self.now = wake.take().expect("an array that waits has said for when");
                inputs.push(Input::Wake);
            }
            inputs.drain(..).for_each(|input| self.array.handle(self.now, input));
        }
    }

    fn carry_out(&mut self, io: &MemberIo) -> Input<'static> {
        let payload = self.load(&io.segments);
        let range = io.at.bytes() as usize..(io.at + Sectors(io.len.into())).bytes() as usize;
        let stored = &mut self.members[io.member.at()][range];
        match io.op {
            IoOp::Read => {
                let bytes = stored.to_vec();
                self.store(&io.segments, &bytes);
            }
            IoOp::Write => stored.copy_from_slice(&payload),
            IoOp::WriteZeroes | IoOp::Discard => stored.fill(0),
            IoOp::Flush => {}
        }
        Input::Completion(Completion { io: io.io, outcome: IoOutcome::Ok })
    }

    /// Where P is all the parity there is, every job is an XOR.
    fn compute(&mut self, id: JobId) -> Input<'static> {
        let job = self.array.job(id).expect("asked for just now");
        assert_eq!(job.op, ParityOp::Xor);
        let (sources, target) = (job.sources, job.targets[0]);
        let blocks: Vec<_> = sources.iter().map(|list| self.load(list)).collect();
        let sources: Vec<_> = blocks.iter().map(Vec::as_slice).collect();
        let mut result = self.load(&target);
        raidlab_parity::xor(&mut result, &sources).expect("all are equally long");
        self.store(&target, &result);
        Input::Computed { job: id, result: JobResult::Done }
    }

    fn load(&self, list: &SegmentList) -> Vec<u8> {
        let piece = |piece: Segment| self.buffers[&piece.token][range(piece)].to_vec();
        self.array.segments(list).flat_map(piece).collect()
    }

    fn store(&mut self, list: &SegmentList, bytes: &[u8]) {
        let mut bytes = bytes.iter();
        for piece in self.array.segments(list) {
            let buffer = self.buffers.get_mut(&piece.token).expect("only what there is");
            buffer[range(piece)].iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = *from);
        }
    }
}

fn range(piece: Segment) -> std::ops::Range<usize> {
    let bytes = |sectors: u32| Sectors(sectors.into()).bytes() as usize;
    bytes(piece.offset)..bytes(piece.offset + piece.len)
}

const PAYLOAD: Token = Token(0);
const MEMBER: Sectors = Sectors(2048);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = Layout::new(Level::Raid5, 5).with_chunk(Sectors(16));
    let array = Array::new(&Config::uniform(layout, MEMBER))?;
    let zeroes = |len: Sectors| vec![0; len.bytes() as usize];
    let Scratch { count, len } = array.scratch();
    let scratch = (0..count).map(|n| (Token(Scratch::FIRST + n), zeroes(Sectors(len.into()))));
    let (members, buffers) = (vec![zeroes(MEMBER); 5], scratch.collect());
    let mut driver = Driver { array, members, buffers, now: Time::ZERO };

    // From within a stripe to within another: parts of stripes, and whole ones between.
    let mut written: Vec<u8> = (0..64 << 10).map(|n: u32| (n * 7 + n / 512) as u8).collect();
    let (at, len, lost) = (Sector(40), Sectors(128), MemberIndex(1));
    let segments = &[Segment { token: PAYLOAD, offset: 0, len: 128 }];
    let write = Request { id: RequestId(1), op: IoOp::Write, at, len, segments, fua: false };
    let is_reply = |output: &Output| matches!(output, Output::Reply { .. });
    driver.buffers.insert(PAYLOAD, written.clone());
    driver.drive(Input::Request(write), is_reply);
    // Then 4 KiB of it are changed, with parity from what was there before.
    let part = &[Segment { token: PAYLOAD, offset: 64, len: 8 }];
    written[range(part[0])].fill(0xa5);
    driver.buffers.insert(PAYLOAD, written.clone());
    let change = Request { at: at + Sectors(64), len: Sectors(8), segments: part, ..write };
    driver.drive(Input::Request(change), is_reply);

    driver.drive(Input::Admin(Admin::Fail(lost)), |_| true);
    let before = std::mem::replace(&mut driver.members[lost.at()], zeroes(MEMBER));
    driver.buffers.insert(PAYLOAD, zeroes(len));
    driver.drive(Input::Request(Request { op: IoOp::Read, ..write }), is_reply);
    let is_read = driver.buffers[&PAYLOAD] == written;
    println!("read without member {lost}: {}", if is_read { "as written" } else { "WRONG" });

    let add = Admin::Add { member: lost, sectors: MEMBER };
    driver.drive(Input::Admin(add), |output| *output == Output::Event(Event::Restored(lost)));
    let is_rebuilt = driver.members[lost.at()] == before;
    println!("member {lost} rebuilt: {}", if is_rebuilt { "as it was" } else { "WRONG" });
    if is_read && is_rebuilt { Ok(()) } else { Err("not what was written".into()) }
}

// `tests/contract.rs` has this file as a module, so that it is run with the tests.
#[test]
fn the_driver_ends_well() {
    main().expect("as written, as it was");
}
