//! Keys of states: two arrays with one key, and the same I/O in flight, do the same from there on.
//!
//! The searches of all orders, and of crash states, pass over a state whose key they know. A key that leaves out
//! something that matters lets them pass over states that they have never seen.

use std::collections::HashMap;

use crate::extent::Extent;
use raidlab_core::contract::{
    Admin, Completion, Event, Input, IoId, IoOp, IoOutcome, JobId, JobResult, Output, Pacing,
    Record, Request, RequestId, Segment, Token,
};
use raidlab_core::{Array, Config, Consistency, Limits, MemberIndex, Sector, Sectors, Time};
use raidlab_random::SplitMix64;

/// What is in flight.
#[derive(Clone, Copy, Debug)]
enum Todo {
    Io(IoId, Sector),
    Job(JobId),
}

/// An array and what is in flight, by slot.
#[derive(Clone)]
struct World {
    array: Array,
    pending: Vec<(u32, String, Todo)>,
    wake: Option<Time>,
    now: Time,
}

/// The slot in the name of an I/O or a job.
fn slot(name: &str) -> u32 {
    let digits = name.split("slot: ").nth(1).unwrap_or_default();
    digits.split(',').next().and_then(|digits| digits.parse().ok()).expect("names have slots")
}

impl World {
    fn new(config: &Config) -> Self {
        let array = Array::new(config).expect("possible");
        Self { array, pending: Vec::new(), wake: None, now: Time(1) }
    }

    /// Hands in an input; what comes of it, in words without names.
    fn input(&mut self, input: Input<'_>) -> Vec<String> {
        self.now = Time(self.now.0 + 1);
        self.array.handle(self.now, input);
        let mut told = Vec::new();
        while let Some(output) = self.array.poll() {
            let words = self.take(output);
            told.extend(words);
        }
        told
    }

    fn take(&mut self, output: Output) -> Option<String> {
        match output {
            Output::MemberIo(io) => {
                let words = format!("{:?} {} {} {} {}", io.op, io.member, io.at.0, io.len, io.fua);
                self.pending.push((
                    slot(&format!("{:?}", io.io)),
                    words.clone(),
                    Todo::Io(io.io, io.at),
                ));
                Some(words)
            }
            Output::Meta { io } => {
                let meta = self.array.meta(io).expect("it is wanted");
                let what = match meta.record {
                    Record::Superblock(one) => {
                        format!("superblock {} {:?} {:?}", one.clean, one.failed, one.rebuilding)
                    }
                    Record::BitmapPage { page, bits } => format!("page {page} {bits:x}"),
                    _ => format!("entry {}", meta.at.0),
                };
                let words = format!("{what} to {}", meta.member);
                self.pending.push((
                    slot(&format!("{io:?}")),
                    words.clone(),
                    Todo::Io(io, Sector(0)),
                ));
                Some(words)
            }
            Output::Compute { job } => {
                let slot = 1 << 20 | slot(&format!("{job:?}"));
                self.pending.push((slot, "job".into(), Todo::Job(job)));
                Some("job".into())
            }
            Output::Reply { outcome, .. } => Some(format!("{outcome:?}")),
            Output::WakeAt(at) => {
                self.wake = Some(at);
                None
            }
            Output::Event(Event::Progress { .. }) => None,
            Output::Event(event) => Some(format!("{event:?}")),
            Output::Abandon { io } => Some(format!("abandon {}", slot(&format!("{io:?}")))),
        }
    }

    fn request(&mut self, id: u64, op: IoOp, at: u64, len: u32, fua: bool) -> Vec<String> {
        let segments = [Segment { token: Token(id as u32), offset: 0, len }];
        let segments = if op == IoOp::Flush { &[][..] } else { &segments[..] };
        let (id, at, len) = (RequestId(id), Sector(at), Sectors(u64::from(len)));
        self.input(Input::Request(Request { id, op, at, len, segments, fua }))
    }

    /// Ends one of those in flight.
    fn end(&mut self, index: usize, is_bad: bool) -> Vec<String> {
        match self.pending.remove(index).2 {
            Todo::Io(io, first_bad) => {
                let bad = IoOutcome::MediaError { first_bad };
                let outcome = if is_bad { bad } else { IoOutcome::Ok };
                self.input(Input::Completion(Completion { io, outcome }))
            }
            Todo::Job(job) => self.input(Input::Computed { job, result: JobResult::Done }),
        }
    }

    fn key(&self) -> (u64, Vec<(u32, String)>) {
        let pending = self.pending.iter().map(|(slot, words, _)| (*slot, words.clone()));
        let mut pending: Vec<_> = pending.collect();
        pending.sort();
        (self.array.state_key(), pending)
    }

    /// Ends everything, in order of slots what is in flight now, then as it is sent; tells what comes of it. Then the
    /// same with what is asked for after that. Which slots are free next is no part of a state.
    fn run_out(mut self) -> Vec<Vec<String>> {
        self.pending.sort_by_key(|(slot, ..)| *slot);
        let mut told = vec![self.input(Input::Unplug)];
        let capacity = self.array.capacity().0;
        let after = [
            (IoOp::Write, 5, 2, false),
            (IoOp::Read, 0, 16, false),
            (IoOp::Write, 0, 16, true),
            (IoOp::Flush, 0, 0, false),
        ];
        let mut after =
            after.into_iter().filter(|(_, at, len, _)| at + u64::from(*len) <= capacity);
        for id in 100..2_000 {
            if !self.pending.is_empty() {
                told.push(self.end(0, false));
            } else if let Some((op, at, len, fua)) = after.next() {
                told.push(self.request(id, op, at, len, fua));
            } else {
                break;
            }
        }
        told
    }
}

fn config(name: &str, consistency: Consistency) -> Config {
    let mut config = Config::uniform(name.parse().expect("is a layout"), Sectors(64));
    config.limits = Limits { requests: 6, segments: 4, ios: 1, plans: 3, windows: 2 };
    config.settings.consistency = consistency;
    config.settings.cached_stripes = if name.starts_with("raid5") { 2 } else { 0 };
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    config
}

/// What is asked for: two to four requests that meet here and there, and what the administrator does meanwhile.
fn begin(world: &mut World, random: &mut SplitMix64) {
    let capacity = world.array.capacity().0;
    // No background work: how far it rests is a matter of time, which keys leave out.
    if random.below(4) == 0 {
        world.input(Input::Admin(Admin::Fail(MemberIndex(random.below(2) as u16))));
    }
    if random.below(3) == 0 {
        world.input(Input::Plug);
    }
    for id in 0..2 + random.below(3) {
        let op = [IoOp::Write, IoOp::Write, IoOp::Read, IoOp::Flush][random.below(4) as usize];
        let (at, len) = (random.below(3) * 4 % capacity, 1 + random.below(8) as u32);
        let len = if op == IoOp::Flush { 0 } else { len };
        let fua = op == IoOp::Write && random.below(4) == 0;
        world.request(id, op, if len == 0 { 0 } else { at }, len, fua);
    }
    if random.below(2) == 0 {
        world.input(Input::Unplug);
    }
}

#[test]
fn arrays_with_one_key_do_the_same_from_there_on() {
    let bitmap = Consistency::Bitmap { chunk: Sectors(8) };
    let programs = Extent::from_environment().choose((0..120).collect(), 40);
    for (name, consistency) in [
        ("raid1(2)", Consistency::None),
        ("raid1(3)", bitmap),
        ("raid10(3) chunk=2K", Consistency::Resync),
        ("raid5(3) chunk=4K", Consistency::None),
        ("raid5(3) chunk=2K", bitmap),
        ("raid5(3) chunk=4K", Consistency::PartialParity { slots: 8 }),
        ("raid5(3) chunk=2K", Consistency::Journal { sectors: Sectors(64) }),
        ("raid6(4) chunk=2K", Consistency::Resync),
    ] {
        let config = config(name, consistency);
        // Of all programs: what they asked for must show in the key.
        let mut met = 0;
        let mut seen: HashMap<_, World> = HashMap::new();
        for &program in &programs {
            for walk in 0..12 {
                let mut world = World::new(&config);
                begin(&mut world, &mut SplitMix64::new(program));
                let mut random = SplitMix64::new(1_000 + walk);
                for _ in 0..60 {
                    if world.pending.is_empty() {
                        // What was held back goes on; else that is all.
                        world.input(Input::Unplug);
                    }
                    if world.pending.is_empty() {
                        break;
                    }
                    let index = random.below(world.pending.len() as u64) as usize;
                    world.end(index, random.below(40) == 0);
                    if random.below(8) == 0 {
                        world.input(Input::Unplug);
                    }
                    let Some(other) = seen.get(&world.key()) else {
                        seen.insert(world.key(), world.clone());
                        continue;
                    };
                    met += 1;
                    let (one, other) = (world.clone().run_out(), other.clone().run_out());
                    let differs = one.iter().zip(&other).position(|(one, other)| one != other);
                    let context = format!("{name}, program {program}, walk {walk}");
                    if let Some(at) = differs {
                        panic!("{context}: step {at}: {:?}, {:?}", one[at], other[at]);
                    }
                    assert_eq!(one.len(), other.len(), "{context}");
                }
            }
        }
        assert!(met > 300, "{name}: {met} times only");
    }
}
