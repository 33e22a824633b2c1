//! The loop against a flat model: random requests, many at once, over every level, healthy and degraded.

use std::sync::atomic::AtomicBool;

use crate::common::{Random, layouts, memory_members};
use raidlab_core::contract::{IoOp, Outcome, Pacing, Segment, Token};
use raidlab_core::{Layout, Level, Limits, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineErrorKind, Member, NullMember, Reply};

const MEMBER: Sectors = Sectors(600);

fn engine(layout: &Layout) -> Engine {
    let members = memory_members(layout.members, MEMBER);
    Engine::new(&EngineConfig::new(layout.clone()), members).unwrap()
}

/// Cuts `len` sectors from `offset` on into up to four segments, in order but at odd places.
fn segments(random: &mut Random, token: Token, mut offset: u32, mut len: u32) -> Vec<Segment> {
    let mut list = Vec::new();
    while len > 0 {
        let part = if list.len() == 3 { len } else { 1 + random.below(u64::from(len)) as u32 };
        list.push(Segment { token, offset, len: part });
        offset += part;
        len -= part;
    }
    list
}

struct Pending {
    id: raidlab_core::contract::RequestId,
    op: IoOp,
    at: u64,
    len: u64,
    slot: usize,
}

/// Random reads and writes, up to `depth` at once that do not overlap, checked against `model`.
fn exercise(
    engine: &mut Engine,
    model: &mut [u8],
    seed: u64,
    depth: usize,
    rounds: u32,
    name: &str,
) {
    const LONGEST: u64 = 200;
    let mut random = Random(seed);
    let capacity = engine.array().capacity().0;
    let tokens: Vec<Token> = (0..depth).map(|_| engine.allocate(LONGEST * 512).unwrap()).collect();
    let mut replies: Vec<Reply> = Vec::new();
    for round in 0..rounds {
        let mut pending: Vec<Pending> = Vec::new();
        for (slot, token) in tokens.iter().enumerate() {
            let longest = if random.below(4) == 0 { LONGEST } else { 20 };
            let len = 1 + random.below(longest.min(capacity));
            let at = random.below(capacity - len + 1);
            if pending.iter().any(|other| at < other.at + other.len && other.at < at + len) {
                continue;
            }
            let op = if random.below(2) == 0 { IoOp::Read } else { IoOp::Write };
            let bytes = &mut engine.bytes_mut(*token).unwrap()[..len as usize * 512];
            if op == IoOp::Write {
                random.fill(bytes);
                model[at as usize * 512..][..bytes.len()].copy_from_slice(bytes);
            } else {
                bytes.fill(0xee);
            }
            let list = segments(&mut random, *token, 0, len as u32);
            let fua = op == IoOp::Write && random.below(8) == 0;
            let id = engine.submit(op, Sector(at), &list, fua).unwrap();
            pending.push(Pending { id, op, at, len, slot });
        }
        replies.clear();
        engine.run_until_idle(&mut replies).unwrap();
        assert_eq!(replies.len(), pending.len(), "{name}: every request is answered once");
        for request in &pending {
            let reply = replies.iter().find(|reply| reply.id == request.id).unwrap();
            assert_eq!(reply.outcome, Outcome::Done, "{name}");
            if request.op == IoOp::Read {
                let bytes =
                    &engine.bytes(tokens[request.slot]).unwrap()[..request.len as usize * 512];
                let expected = &model[request.at as usize * 512..][..bytes.len()];
                assert!(
                    bytes == expected,
                    "{name}, round {round}: {} + {}",
                    request.at,
                    request.len
                );
            }
        }
    }
    for token in tokens {
        engine.release(token).unwrap();
    }
}

fn check_whole(engine: &mut Engine, model: &[u8], name: &str) {
    let mut all = vec![0; model.len()];
    engine.read_at(Sector(0), &mut all).unwrap();
    assert!(all == model, "{name}: the whole array");
}

#[test]
fn every_level_keeps_what_is_written() {
    for layout in layouts() {
        let mut engine = engine(&layout);
        let name = layout.to_string();
        let mut model = vec![0; engine.array().capacity().bytes() as usize];
        for (seed, depth) in [(1, 1), (2, 7), (3, 32)] {
            exercise(&mut engine, &mut model, seed, depth, 120, &name);
        }
        engine.flush().unwrap();
        check_whole(&mut engine, &model, &name);
    }
}

#[test]
fn each_member_may_be_lost() {
    for layout in layouts().into_iter().filter(|layout| layout.survives() > 0) {
        for lost in 0..layout.members {
            let name = format!("{layout} without {lost}");
            let mut engine = engine(&layout);
            let mut model = vec![0; engine.array().capacity().bytes() as usize];
            exercise(&mut engine, &mut model, 5, 8, 60, &name);
            engine.fail(MemberIndex(lost)).unwrap();
            assert!(!engine.take_events().is_empty(), "{name}");
            check_whole(&mut engine, &model, &name);
            exercise(&mut engine, &mut model, 6, 8, 60, &name);
            check_whole(&mut engine, &model, &name);
        }
    }
}

#[test]
fn bad_sectors_are_read_from_elsewhere() {
    for layout in layouts().into_iter().filter(|layout| layout.survives() > 0) {
        let name = layout.to_string();
        let mut engine = engine(&layout);
        let mut model = vec![0; engine.array().capacity().bytes() as usize];
        exercise(&mut engine, &mut model, 9, 8, 60, &name);
        if let Some(Member::Memory(member)) = engine.member_mut(MemberIndex(1)) {
            member.make_unreadable(Sector(37)..Sector(61));
        }
        check_whole(&mut engine, &model, &name);
    }
}

#[test]
fn a_member_that_vanishes_under_way_costs_no_data() {
    for layout in layouts().into_iter().filter(|layout| layout.survives() > 0) {
        let name = layout.to_string();
        let mut engine = engine(&layout);
        let mut model = vec![0; engine.array().capacity().bytes() as usize];
        exercise(&mut engine, &mut model, 11, 8, 40, &name);
        if let Some(Member::Memory(member)) = engine.member_mut(MemberIndex(0)) {
            member.vanish();
        }
        exercise(&mut engine, &mut model, 12, 8, 40, &name);
        assert!(engine.array().is_failed(MemberIndex(0)), "{name}");
        check_whole(&mut engine, &model, &name);
    }
}

#[test]
fn without_redundancy_a_loss_is_an_error_and_never_wrong_data() {
    let layout = Layout::new(Level::Raid0, 3).with_chunk(Sectors(8));
    let mut engine = engine(&layout);
    engine.write_at(Sector(0), &vec![7; 24 * 512]).unwrap();
    if let Some(Member::Memory(member)) = engine.member_mut(MemberIndex(1)) {
        member.make_unreadable(Sector(2)..Sector(3));
    }
    let mut sectors = vec![0; 24 * 512];
    let error = engine.read_at(Sector(0), &mut sectors).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::MediaError);
    assert!(error.to_string().contains("sector 10"), "{error}");
    engine.read_at(Sector(0), &mut sectors[..10 * 512]).unwrap();
    assert!(sectors[..10 * 512].iter().all(|byte| *byte == 7));
}

#[test]
fn what_a_read_fills_is_lent_to_nobody_else() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(8));
    let mut engine = engine(&layout);
    let (token, other) = (engine.allocate(16 * 512).unwrap(), engine.allocate(16 * 512).unwrap());
    let of = |token, offset, len| Segment { token, offset, len };
    // What comes of a request while another is under way, and that it is taken afterwards if it was not then.
    let mut meets = |under_way: (IoOp, &[Segment]), asked: (IoOp, &[Segment])| {
        engine.submit(under_way.0, Sector(0), under_way.1, false).unwrap();
        let ask = |engine: &mut Engine| {
            let answer = engine.submit(asked.0, Sector(64), asked.1, false);
            answer.map(|_| ()).map_err(|error| error.kind())
        };
        let first = ask(&mut engine);
        let mut replies = Vec::new();
        engine.run_until_idle(&mut replies).unwrap();
        if first == Err(EngineErrorKind::Busy) {
            ask(&mut engine).expect("nothing is under way");
            engine.run_until_idle(&mut replies).unwrap();
        }
        assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done));
        assert!(engine.bytes(token).is_ok() && engine.bytes(other).is_ok());
        first
    };
    let own = of(token, 4, 4);
    let (busy, invalid) = (Err(EngineErrorKind::Busy), Err(EngineErrorKind::InvalidRequest));
    let (read, write) = (IoOp::Read, IoOp::Write);
    assert_eq!(meets((read, &[own]), (write, &[of(token, 7, 2)])), busy);
    assert_eq!(meets((write, &[own]), (read, &[of(token, 3, 2)])), busy);
    assert_eq!(meets((read, &[own]), (read, &[of(token, 0, 16)])), busy);
    let (mixed, part) = ([of(other, 0, 1), own], [of(other, 8, 1), of(token, 4, 1)]);
    assert_eq!(meets((read, &mixed), (write, &part)), busy);
    assert_eq!(meets((write, &[own]), (write, &[own])), Ok(()), "both only read it");
    assert_eq!(meets((read, &[own]), (write, &[of(token, 8, 2)])), Ok(()), "behind it");
    assert_eq!(meets((read, &[own]), (read, &[of(token, 2, 2)])), Ok(()), "before it");
    assert_eq!(meets((read, &[own]), (read, &[of(other, 4, 4)])), Ok(()), "another buffer");
    assert_eq!(meets((IoOp::Flush, &[]), (read, &[own, of(token, 7, 2)])), invalid);
    assert_eq!(meets((IoOp::Flush, &[]), (write, &[own, of(token, 7, 2)])), Ok(()));
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    let mut config = EngineConfig::new(layout);
    config.limits = Limits { requests: 4, ..Limits::default() };
    let mut engine = Engine::new(&config, memory_members(2, Sectors(64))).unwrap();
    let token = engine.allocate(8 * 512).unwrap();
    let segment = Segment { token, offset: 0, len: 8 };
    let kind = |error: raidlab_engine::EngineError| error.kind();

    let long = [Segment { len: 9, ..segment }];
    let invalid = EngineErrorKind::InvalidRequest;
    assert_eq!(kind(engine.submit(IoOp::Read, Sector(0), &long, false).unwrap_err()), invalid);
    assert_eq!(kind(engine.read_at(Sector(0), &mut [0; 100]).unwrap_err()), invalid);
    assert_eq!(kind(engine.read_at(Sector(127), &mut [0; 1024]).unwrap_err()), invalid);
    assert_eq!(kind(engine.fail(MemberIndex(2)).unwrap_err()), invalid);

    let mut submitted = 0;
    while engine.can_accept() {
        engine.submit(IoOp::Write, Sector(0), &[segment], false).unwrap();
        submitted += 1;
    }
    assert_eq!(submitted, 4);
    let busy = EngineErrorKind::Busy;
    assert_eq!(kind(engine.submit(IoOp::Write, Sector(0), &[segment], false).unwrap_err()), busy);
    assert_eq!(kind(engine.bytes(token).unwrap_err()), busy);
    assert_eq!(kind(engine.release(token).unwrap_err()), busy);
    assert_eq!(kind(engine.flush().unwrap_err()), busy);
    let mut replies = Vec::new();
    engine.poll_replies(&mut replies).unwrap();
    assert_eq!((replies.len(), engine.outstanding()), (4, 0));
    engine.release(token).unwrap();

    let wrong = EngineConfig::new(Layout::new(Level::Raid5, 2));
    let error = Engine::new(&wrong, memory_members(2, MEMBER)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Config);
    assert!(error.to_string().contains("members"), "{error}");
}

#[test]
fn member_requests_are_recorded_in_order() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    let null = || Member::Null(NullMember::new(Sectors(64)));
    let mut engine = Engine::new(&EngineConfig::new(layout), vec![null(), null()]).unwrap();
    engine.record(true);
    engine.write_at(Sector(4), &[0; 8 * 512]).unwrap();
    let list: Vec<_> =
        engine.recorded().iter().map(|one| (one.member.0, one.at.0, one.len)).collect();
    assert_eq!(list, [(0, 4, 4), (1, 0, 4)]);
    engine.record(false);
    assert!(engine.recorded().is_empty());
}

#[test]
fn long_blocking_calls_are_done_in_parts() {
    // Longer than the 64 MiB of one request.
    let sectors = Sectors(132 << 10);
    let layout = Layout::new(Level::Raid0, 2);
    let members = memory_members(2, sectors);
    let mut engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let mut data = vec![0; 65 << 20];
    Random(31).fill(&mut data);
    engine.write_at(Sector(5), &data).unwrap();
    let mut back = vec![0; data.len()];
    engine.read_at(Sector(5), &mut back).unwrap();
    assert!(back == data);
    // The parts lie where one request would have put them.
    let from = (64 << 20) + 4096;
    let mut part = vec![0; 4096];
    engine.read_at(Sector(5 + from as u64 / 512), &mut part).unwrap();
    assert!(part == data[from..from + 4096]);
}

/// A command has the engine work between two requests: who knows requests by their places must not find two in one.
#[test]
fn a_place_is_used_again_only_when_its_answer_was_taken() {
    let mut engine = Engine::new(
        &EngineConfig::new(Layout::new(Level::Raid1, 2)),
        memory_members(2, Sectors(64)),
    )
    .unwrap();
    let token = engine.allocate(1024).unwrap();
    let segment = |offset| Segment { token, offset, len: 1 };
    let first = engine.submit(IoOp::Read, Sector(0), &[segment(0)], false).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    let second = engine.submit(IoOp::Read, Sector(1), &[segment(1)], false).unwrap();
    assert_ne!(first.0 as u32, second.0 as u32);
    let mut replies = Vec::new();
    engine.run_until_idle(&mut replies).unwrap();
    let mut ids: Vec<_> = replies.iter().map(|reply| reply.id).collect();
    ids.sort();
    assert_eq!(ids, [first, second]);
}

/// Members that answer at once have the array rebuild all of a member without any need to wait: whoever shares the
/// engine's thread still has its turn.
#[test]
fn a_rebuild_on_members_in_memory_does_not_keep_the_thread() {
    const LARGE: Sectors = Sectors(512 << 11);
    let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let mut engine = Engine::new(&config, memory_members(2, LARGE)).unwrap();
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), memory_members(1, LARGE).remove(0)).unwrap();
    let mut replies = Vec::new();
    engine.poll_replies(&mut replies).unwrap();
    assert!(engine.goes_on() && !engine.background().is_empty(), "all of it in one call");
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    assert!(!engine.goes_on() && engine.background().is_empty());
    assert!(!engine.array().is_failed(MemberIndex(1)));
}
