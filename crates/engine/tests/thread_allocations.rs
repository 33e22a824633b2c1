//! I/Os that threads of file members carry out take no memory, on no thread. In a process of its own, as
//! what other tests take meanwhile would be counted.

mod common;
#[path = "../../../tests/support/counting.rs"]
mod counting;

use common::{Random, TestDirectory, file_members, memory_members};
use counting::of_all_threads;
use raidlab_core::contract::{IoOp, Outcome, Segment, Token};
use raidlab_core::{Consistency, Layout, Level, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, FileIo, LowerArray, Reply};

const DEPTH: u32 = 16;

fn round(engine: &mut Engine, token: Token, random: &mut Random, replies: &mut Vec<Reply>) {
    let places = engine.array().capacity().0 / 8 - 8;
    for n in 0..DEPTH {
        let op = if n % 3 == 0 { IoOp::Read } else { IoOp::Write };
        let segment = Segment { token, offset: n * 64, len: [8, 24, 64][n as usize % 3] };
        let at = Sector(random.below(places) * 8);
        engine.submit(op, at, &[segment], n == 1).unwrap();
    }
    replies.clear();
    engine.run_until_idle(replies).unwrap();
    assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done));
    assert_eq!(replies.len(), DEPTH as usize);
}

#[test]
fn member_threads_allocate_nothing_per_request() {
    let ppl = Consistency::PartialParity { slots: 32 };
    let layouts = [(Level::Raid1, 2, Consistency::None), (Level::Raid5, 4, ppl)];
    for (level, members, consistency) in layouts {
        let directory = TestDirectory::new();
        let sectors = Sectors(1 << 16);
        let members = file_members(&directory, members, sectors, FileIo::Threads).unwrap();
        let mut config = EngineConfig::new(Layout::new(level, members.len() as u16));
        config.settings.consistency = consistency;
        let mut engine = Engine::new(&config, members).unwrap();
        let token = engine.allocate(u64::from(DEPTH) * 64 * 512).unwrap();
        let (mut random, mut replies) = (Random(29), Vec::with_capacity(64));
        // The threads of each member are started.
        (0..4).for_each(|_| round(&mut engine, token, &mut random, &mut replies));
        let before = of_all_threads();
        (0..20).for_each(|_| round(&mut engine, token, &mut random, &mut replies));
        assert_eq!(of_all_threads() - before, 0, "{level}, {consistency:?}");
    }
    stacked_arrays_take_memory_for_what_was_under_way_at_once();
}

/// Arrays below take memory up to as many requests as are ever under way at once, and keep it.
fn stacked_arrays_take_memory_for_what_was_under_way_at_once() {
    let below = || {
        let members = memory_members(3, Sectors(1 << 14));
        let config = EngineConfig::new(Layout::new(Level::Raid5, 3).with_chunk(Sectors(64)));
        LowerArray::new(move || Engine::new(&config, members).map(|engine| (engine, ()))).unwrap().0
    };
    let members = vec![below().member(), below().member()];
    let mut engine =
        Engine::new(&EngineConfig::new(Layout::new(Level::Raid1, 2)), members).unwrap();
    let token = engine.allocate(u64::from(DEPTH) * 64 * 512).unwrap();
    let (mut random, mut replies) = (Random(31), Vec::with_capacity(64));
    let without = (0..200).position(|_| {
        let before = of_all_threads();
        (0..20).for_each(|_| round(&mut engine, token, &mut random, &mut replies));
        of_all_threads() == before
    });
    assert!(without.is_some(), "4,000 rounds, and memory is still taken");
}
