//! Members that somebody else wrote: good ones work as memory does, and what bad ones do is an error of theirs.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::common::{Random, eager};
use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Event, IoOp, IoOutcome};
use raidlab_core::{Consistency, Level, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Engine, Member, MemberRequest, MemberStore, MemoryMember};

const SECTORS: Sectors = Sectors(4096);
const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(64) };

/// How a store breaks the rules, from so many requests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Drops,
    ReadsShort,
    ReadsLong,
    ForgetsBytes,
    AnswersForWrites,
}

/// A store whose thread answers the newest of what waits first.
struct Threaded {
    requests: Option<Sender<MemberRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl Threaded {
    fn new(fault: Fault, good: usize) -> Self {
        let (requests, received) = channel::<MemberRequest>();
        let thread = std::thread::spawn(move || {
            let mut bytes = vec![0; SECTORS.bytes() as usize];
            let mut answered = 0;
            while let Ok(first) = received.recv() {
                let mut batch: Vec<_> = std::iter::once(first).chain(received.try_iter()).collect();
                while let Some(request) = batch.pop() {
                    answered += 1;
                    answer(request, &mut bytes, if answered > good { fault } else { Fault::None });
                }
            }
        });
        Self { requests: Some(requests), thread: Some(thread) }
    }
}

fn answer(request: MemberRequest, bytes: &mut [u8], fault: Fault) {
    let from = (request.at().0 * SECTOR_BYTES) as usize;
    let range = from..from + request.len().bytes() as usize;
    match (request.op(), fault) {
        (_, Fault::Drops) => drop(request),
        (IoOp::Read, Fault::ReadsShort) => request.complete_read(&bytes[range][1..]),
        (IoOp::Read, Fault::ReadsLong) => request.complete_read(bytes),
        (IoOp::Read, Fault::ForgetsBytes) => request.complete(IoOutcome::Ok),
        (IoOp::Read, _) => request.complete_read(&bytes[range]),
        (IoOp::Write, Fault::AnswersForWrites) => request.complete_read(&[0; 512]),
        (IoOp::Write, _) => {
            bytes[range].copy_from_slice(request.payload());
            request.complete(IoOutcome::Ok);
        }
        (IoOp::WriteZeroes | IoOp::Discard, _) => {
            bytes[range].fill(0);
            request.complete(IoOutcome::Ok);
        }
        (IoOp::Flush, _) => request.complete(IoOutcome::Ok),
    }
}

impl MemberStore for Threaded {
    fn sectors(&self) -> Sectors {
        SECTORS
    }

    fn submit(&mut self, request: MemberRequest) {
        if let Some(requests) = &self.requests {
            // A thread that is gone drops what it is sent, which answers it.
            drop(requests.send(request));
        }
    }
}

impl Drop for Threaded {
    fn drop(&mut self) {
        drop(self.requests.take());
        self.thread.take().into_iter().for_each(|thread| thread.join().expect("it ended well"));
    }
}

/// Writes and reads at random; everything read is what was written last.
fn exercise(engine: &mut Engine, flat: &mut [u8], seed: u64) {
    let mut random = Random(seed);
    for _ in 0..60 {
        let capacity = flat.len() as u64 / SECTOR_BYTES;
        let at = random.below(capacity - 1);
        let len = 1 + random.below((capacity - at).min(90));
        let range = (at * SECTOR_BYTES) as usize..((at + len) * SECTOR_BYTES) as usize;
        if random.below(2) == 0 {
            flat[range.clone()].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            engine.write_at(Sector(at), &flat[range]).expect("written");
        } else {
            let mut found = vec![0; range.len()];
            engine.read_at(Sector(at), &mut found).expect("read");
            assert!(found == flat[range], "{at}+{len}");
        }
    }
}

#[test]
fn an_array_of_ones_own_members_works_degrades_and_is_rebuilt() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5)] {
        let config = eager(level, members, BITMAP);
        let good = || Member::from(Threaded::new(Fault::None, 0));
        let mut engine = Engine::new(&config, (0..members).map(|_| good()).collect()).unwrap();
        let mut flat = vec![0; engine.array().capacity().bytes() as usize];
        exercise(&mut engine, &mut flat, 1);
        engine.fail(MemberIndex(1)).unwrap();
        exercise(&mut engine, &mut flat, 2);
        engine.add(MemberIndex(1), good()).unwrap();
        exercise(&mut engine, &mut flat, 3);
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert!(engine.scrub(&AtomicBool::new(false)).unwrap().0 == 0, "{level:?}");
        let mut found = vec![0; flat.len()];
        engine.read_at(Sector(0), &mut found).unwrap();
        assert!(found == flat, "{level:?}");
        engine.stop().unwrap();
    }
}

#[test]
fn an_array_is_found_again_on_ones_own_members() {
    let config = eager(Level::Raid5, 3, BITMAP);
    let members = (0..3).map(|_| Member::from(Threaded::new(Fault::None, 0))).collect();
    let mut engine = Engine::new(&config, members).unwrap();
    engine.write_at(Sector(7), &[9; 512]).unwrap();
    engine.stop().unwrap();
    let members = engine.members_mut().iter_mut();
    let devices = members.map(|member| Some(std::mem::replace(member, Member::Absent))).collect();
    let mut again = Engine::assemble(&config, devices, None, Allow::default()).unwrap();
    let mut found = [0; 512];
    again.read_at(Sector(7), &mut found).unwrap();
    assert_eq!(found, [9; 512]);
}

#[test]
fn what_a_store_does_wrong_is_an_error_of_that_member() {
    let faults = [
        Fault::Drops,
        Fault::ReadsShort,
        Fault::ReadsLong,
        Fault::ForgetsBytes,
        Fault::AnswersForWrites,
    ];
    for fault in faults {
        let config = eager(Level::Raid5, 3, Consistency::None);
        let members = (0..3).map(|member| {
            Member::from(Threaded::new(if member == 1 { fault } else { Fault::None }, 5))
        });
        let mut engine = Engine::new(&config, members.collect()).unwrap();
        let mut flat = vec![0; engine.array().capacity().bytes() as usize];
        exercise(&mut engine, &mut flat, 4);
        let events = engine.take_events();
        let lost = Event::MemberFailed(MemberIndex(1));
        assert!(events.contains(&lost), "{fault:?}: {events:?}");
        assert_eq!(events.iter().filter(|one| matches!(one, Event::MemberFailed(_))).count(), 1);
    }
}

#[test]
fn stores_and_members_in_memory_make_one_array_and_a_small_store_is_refused() {
    let config = eager(Level::Raid1, 2, BITMAP);
    let memory = || Member::from(MemoryMember::new(SECTORS).unwrap());
    let own = || Member::from(Threaded::new(Fault::None, 0));
    let mut engine = Engine::new(&config, vec![memory(), own()]).unwrap();
    let mut flat = vec![0; engine.array().capacity().bytes() as usize];
    exercise(&mut engine, &mut flat, 5);
    struct Nothing;
    impl MemberStore for Nothing {
        fn sectors(&self) -> Sectors {
            Sectors::ZERO
        }
        fn submit(&mut self, _: MemberRequest) {}
    }
    let error = Engine::new(&config, vec![memory(), Nothing.into()]).unwrap_err().to_string();
    assert!(error.contains("member 1"), "{error}");
}
