//! How stripes are written: batches gathered, ties broken, large writes planned once a stripe, and
//! what a stripe cache saves.

use crate::support::{Driver, Work};
use raidlab_core::contract::{
    Input, IoOp, IoOutcome, Outcome, Record, Request, RequestId, Segment,
};
use raidlab_core::{Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors, Tie};
use raidlab_random::SplitMix64;

const CHUNK: u64 = 16;

fn config(level: Level, members: u16) -> Config {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout.chunk = Sectors(CHUNK);
    }
    Config::uniform(layout, Sectors(8 * CHUNK))
}

fn parity_levels() -> Vec<Config> {
    vec![
        config(Level::Raid5, 3),
        config(Level::Raid5, 5),
        config(Level::Raid4, 4),
        config(Level::Raid6, 4),
        config(Level::Raid6, 6),
        config(Level::Raid3, 3),
    ]
}

/// Reads and writes sent out.
fn counts(driver: &Driver) -> (usize, usize) {
    let count = |op| driver.log.iter().filter(|io| io.op == op).count();
    (count(IoOp::Read), count(IoOp::Write))
}

/// Does all work and counts the jobs.
fn run_counting_jobs(driver: &mut Driver) -> usize {
    let mut jobs = 0;
    while let Some(work) = driver.work.front() {
        jobs += usize::from(matches!(work, Work::Job(_)));
        driver.step(0);
    }
    jobs
}

fn submit(driver: &mut Driver, at: u64, bytes: Vec<u8>, fua: bool, id: u64) -> RequestId {
    let len = bytes.len();
    let token = driver.buffer(bytes);
    let id = RequestId((1 << 40) + id);
    let segments = &[Segment { token, offset: 0, len: len as u32 }];
    let (op, at, len) = (IoOp::Write, Sector(at), Sectors(len as u64));
    driver.input(Input::Request(Request { id, op, at, len, segments, fua }));
    id
}

#[test]
fn neighbours_of_a_batch_are_written_as_whole_stripes() {
    let mut random = SplitMix64::new(3);
    for _ in 0..20 {
        let mut driver = Driver::new(&config(Level::Raid5, 5));
        driver.input(Input::Plug);
        // Two stripes in pieces of 4, in any order.
        let mut pieces: Vec<u64> = (0..32).collect();
        random.shuffle(&mut pieces);
        for piece in &pieces {
            let bytes = (0..4).map(|i| (piece * 4 + i) as u8).collect();
            submit(&mut driver, piece * 4, bytes, false, *piece);
        }
        assert!(driver.log.is_empty(), "held back");
        driver.input(Input::Unplug);
        assert!(driver.replies.is_empty(), "not before it is written");
        driver.run_shuffled(&mut random);
        assert_eq!(counts(&driver), (0, 10), "five writes a stripe, no reads");
        assert_eq!(driver.replies.len(), 32);
        assert!(driver.replies.iter().all(|(_, outcome)| *outcome == Outcome::Done));
        driver.fail(2);
        assert_eq!(driver.read(0, 128), Ok((0..128).collect()));
    }
}

#[test]
fn what_a_batch_may_not_join_is_left_alone() {
    let whole = 4 * CHUNK;
    // Over the end of a stripe nothing is won.
    let mut driver = Driver::new(&config(Level::Raid5, 5));
    driver.input(Input::Plug);
    submit(&mut driver, 0, vec![1; whole as usize], false, 0);
    submit(&mut driver, whole, vec![2; whole as usize], true, 1);
    driver.input(Input::Unplug);
    driver.run();
    let durable = driver.log.iter().filter(|io| io.op == IoOp::Write && io.fua).count();
    assert_eq!((counts(&driver), durable), ((0, 10), 5), "only the second is to be durable");
    // In one stripe both are.
    driver.log.clear();
    driver.input(Input::Plug);
    submit(&mut driver, 0, vec![1; 8], false, 2);
    submit(&mut driver, 8, vec![2; 8], true, 3);
    driver.input(Input::Unplug);
    driver.run();
    assert!(driver.log.iter().filter(|io| io.op == IoOp::Write).all(|io| io.fua));
    assert_eq!(counts(&driver).1, 2, "one range of one data member, and P");
    // What overlaps something later keeps its order.
    driver.input(Input::Plug);
    submit(&mut driver, 0, vec![3; 8], false, 4);
    submit(&mut driver, 4, vec![4; 8], false, 5);
    submit(&mut driver, 8, vec![5; 8], false, 6);
    driver.input(Input::Unplug);
    driver.run();
    let expected = [[3; 4], [4; 4], [5; 4], [5; 4]].concat();
    assert_eq!(driver.read(0, 16), Ok(expected));
    // More segments than a request may have are not joined.
    let mut tight = config(Level::Raid5, 5);
    tight.limits = Limits { segments: 3, ..tight.limits };
    let mut driver = Driver::new(&tight);
    driver.input(Input::Plug);
    for piece in 0..4 {
        submit(&mut driver, piece * CHUNK, vec![piece as u8; CHUNK as usize], false, piece);
    }
    driver.input(Input::Unplug);
    driver.run();
    assert_eq!(driver.replies.len(), 4);
    assert!(counts(&driver).0 > 0, "three and one: not a whole stripe");
}

/// Random batches on every level, members failing at any I/O.
fn batches(config: &Config, seed: u64, plant: impl Fn(&mut Driver)) {
    let mut random = SplitMix64::new(seed);
    let mut driver = Driver::new(config);
    plant(&mut driver);
    let capacity = driver.array.capacity().0;
    let unit = u64::from(driver.array.logical_block().max(1));
    let unit = if config.layout.level == Level::Raid3 {
        u64::from(config.layout.members) - 1
    } else {
        unit
    };
    let mut flat = vec![0u8; capacity as usize];
    let mut next = 0;
    for round in 0..20 {
        if round == 10 && seed.is_multiple_of(2) {
            let lost = MemberIndex(random.below(u64::from(config.layout.members)) as u16);
            let mut left = random.below(30);
            driver.fault = Box::new(move |io| {
                left = left.saturating_sub(u64::from(io.member == lost));
                let fails = io.member == lost && left == 0;
                if fails { IoOutcome::Timeout } else { IoOutcome::Ok }
            });
        }
        driver.input(Input::Plug);
        let mut ids = Vec::new();
        let mut at = random.below(capacity) / unit * unit;
        while driver.array.can_accept() && at < capacity && ids.len() < 40 {
            let len = ((1 + random.below(12)) * unit).min(capacity - at);
            let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
            flat[at as usize..(at + len) as usize].copy_from_slice(&bytes);
            ids.push(submit(&mut driver, at, bytes, random.below(8) == 0, next));
            next += 1;
            match random.below(8) {
                // Elsewhere, or over what is there.
                0 => at = random.below(capacity) / unit * unit,
                1 => at = at.saturating_sub(3 * unit),
                _ => at += len,
            }
        }
        driver.input(Input::Unplug);
        driver.run_shuffled(&mut random);
        for id in ids {
            assert_eq!(driver.outcome(id), Some(Outcome::Done), "{} {seed}", config.layout);
        }
        let answers = driver.replies.len();
        driver.replies.dedup_by_key(|(id, _)| *id);
        assert_eq!(driver.replies.len(), answers, "answered once");
        driver.replies.clear();
        let found = driver.read(0, capacity as u32);
        assert_eq!(found, Ok(flat.clone()), "{} seed {seed} round {round}", config.layout);
        driver.replies.clear();
        driver.buffers.clear();
    }
}

#[test]
fn batches_read_back_in_any_order_and_with_a_member_failing() {
    for mut config in parity_levels() {
        for seed in 0..60 {
            config.limits = Limits { requests: 40, segments: 6, ios: 1, plans: 3, windows: 1 };
            batches(&config, seed, |_| {});
            config.limits = Limits::default();
            batches(&config, seed, |_| {});
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_batch_that_loses_its_last_write_is_found() {
    use raidlab_core::bugs::Bug;
    let plant = |driver: &mut Driver| driver.array.plant(Bug::GatherDropsLast);
    let run = || batches(&config(Level::Raid5, 5), 1, plant);
    assert!(std::panic::catch_unwind(run).is_err());
}

/// Members read for a write of `sectors` at 0.
fn read_for(config: &Config, sectors: u64) -> Vec<u16> {
    let mut driver = Driver::new(config);
    driver.write(0, &vec![1; sectors as usize]);
    let reads = driver.log.iter().filter(|io| io.op == IoOp::Read);
    reads.map(|io| io.member.0).collect()
}

#[test]
fn the_tie_rule_chooses_between_equals_only() {
    let with = |level, members, tie| {
        let mut config = config(level, members);
        config.settings.tie = tie;
        config
    };
    let (reconstruct, modify, never) =
        (Tie::ReconstructWrite, Tie::ReadModifyWrite, Tie::NeverModify);
    // raid5(4): stripe 0 has data on 0, 1, 2 and P on 3. One chunk: 2 reads either way.
    assert_eq!(read_for(&with(Level::Raid5, 4, reconstruct), 8), [1, 2]);
    assert_eq!(read_for(&with(Level::Raid5, 4, modify), 8), [0, 3]);
    assert_eq!(read_for(&with(Level::Raid5, 4, never), 8), [1, 2]);
    // Two chunks: 3 against 1, no tie.
    for tie in [reconstruct, modify, never] {
        assert_eq!(read_for(&with(Level::Raid5, 4, tie), 2 * CHUNK), [2]);
    }
    // raid5(5), one chunk: 2 against 3.
    assert_eq!(read_for(&with(Level::Raid5, 5, reconstruct), 8), [0, 4]);
    assert_eq!(read_for(&with(Level::Raid5, 5, modify), 8), [0, 4]);
    assert_eq!(read_for(&with(Level::Raid5, 5, never), 8), [1, 2, 3]);
    // raid6(6), one chunk: 3 reads either way.
    assert_eq!(read_for(&with(Level::Raid6, 6, reconstruct), 8).len(), 3);
    let modified = read_for(&with(Level::Raid6, 6, modify), 8);
    let reconstructed = read_for(&with(Level::Raid6, 6, never), 8);
    assert_eq!((modified.len(), reconstructed.len()), (3, 3));
    assert_ne!(modified, reconstructed);
}

#[test]
fn a_large_write_is_planned_once_a_stripe() {
    for (level, members, data) in [(Level::Raid5, 5, 4), (Level::Raid6, 6, 4)] {
        let mut driver = Driver::new(&config(level, members));
        let bytes = vec![7; 6 * data * CHUNK as usize];
        let len = bytes.len() as u32;
        let token = driver.buffer(bytes);
        driver.submit(IoOp::Write, 0, &[Segment { token, offset: 0, len }]);
        // A job a stripe, however many pages.
        assert_eq!(run_counting_jobs(&mut driver), 6);
        assert_eq!(counts(&driver), (0, 6 * usize::from(members)));
        // From the middle of a chunk to the middle of another: two ends, and whole stripes between.
        driver.log.clear();
        let len = 5 * data as u32 * CHUNK as u32;
        driver.submit(IoOp::Write, 8, &[Segment { token, offset: 0, len }]);
        let jobs = run_counting_jobs(&mut driver);
        assert!((4 + 2..=4 + 2 * 3).contains(&jobs), "{jobs} jobs: up to three bands at the ends");
        let (_, writes) = counts(&driver);
        assert!(writes <= 6 * usize::from(members) + 2, "{writes} writes");
    }
}

/// Random requests with a cache of some stripes, members failing, against a flat copy.
fn with_cache(config: &Config, stripes: u32, seed: u64, plant: impl Fn(&mut Driver)) -> usize {
    let mut config = config.clone();
    config.settings.cached_stripes = stripes;
    config.settings.tie = [Tie::ReconstructWrite, Tie::ReadModifyWrite][seed as usize % 2];
    let mut random = SplitMix64::new(seed);
    let mut driver = Driver::new(&config);
    plant(&mut driver);
    let capacity = driver.array.capacity().0;
    let mut flat = vec![0u8; capacity as usize];
    let mut lost = 0;
    for round in 0..60 {
        if round % 20 == 10 && lost < config.layout.survives() && !seed.is_multiple_of(3) {
            let mut left = random.below(20);
            let member = MemberIndex(lost);
            lost += 1;
            if seed % 3 == 1 {
                driver.fail(member.0);
            } else {
                driver.fault = Box::new(move |io| {
                    left = left.saturating_sub(u64::from(io.member == member));
                    match (io.member == member || io.member.0 + 1 < lost, left) {
                        (true, 0) => IoOutcome::Gone,
                        _ => IoOutcome::Ok,
                    }
                });
            }
        }
        // Mostly within few stripes, so that there is something to find.
        let span = if random.below(3) == 0 { capacity } else { capacity / 4 };
        let mut at = random.below(span);
        let mut reads = Vec::new();
        while at < span && driver.array.can_accept() {
            let len = (1 + random.below(24)).min(span - at);
            let range = at as usize..(at + len) as usize;
            match random.below(8) {
                0 => {
                    driver.submit_range(IoOp::WriteZeroes, at, len);
                    flat[range].fill(0);
                }
                1..4 => {
                    let token = driver.buffer(vec![0xdd; len as usize]);
                    let segment = Segment { token, offset: 0, len: len as u32 };
                    driver.submit(IoOp::Read, at, &[segment]);
                    reads.push((range, token));
                }
                _ => {
                    let bytes: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
                    flat[range].copy_from_slice(&bytes);
                    let token = driver.buffer(bytes);
                    let segment = Segment { token, offset: 0, len: len as u32 };
                    driver.submit(IoOp::Write, at, &[segment]);
                }
            }
            at += len + random.below(6);
        }
        driver.run_shuffled(&mut random);
        let context = format!("{} {stripes} stripes, seed {seed} round {round}", config.layout);
        assert!(driver.replies.iter().all(|(_, o)| *o == Outcome::Done), "{context}");
        driver.replies.clear();
        for (range, token) in reads {
            let found = &driver.buffers[token.0 as usize];
            assert_eq!(*found, flat[range.clone()], "{context} read of {range:?}");
        }
        driver.buffers.clear();
        if round % 10 == 9 {
            assert_eq!(driver.read(0, capacity as u32), Ok(flat.clone()), "{context}");
        }
    }
    counts(&driver).0
}

#[test]
fn a_cache_changes_nothing_but_the_number_of_reads() {
    for mut config in parity_levels() {
        if config.layout.level == Level::Raid3 {
            continue;
        }
        let (mut without, mut with) = (0, 0);
        for seed in 0..24 {
            config.limits = Limits { requests: 6, segments: 5, ios: 1, plans: 3, windows: 1 };
            with_cache(&config, 1, seed, |_| {});
            with_cache(&config, 3, seed, |_| {});
            config.limits = Limits::default();
            without += with_cache(&config, 0, seed, |_| {});
            with += with_cache(&config, 8, seed, |_| {});
            with_cache(&config, 20, seed, |_| {});
        }
        assert!(with < without, "{}: {with} reads instead of {without}", config.layout);
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_cache_that_keeps_old_parity_is_found() {
    use raidlab_core::bugs::Bug;
    let plant = |driver: &mut Driver| driver.array.plant(Bug::CacheNotInvalidated);
    let run = |seed| move || with_cache(&config(Level::Raid5, 5), 8, seed, plant);
    assert!((0..40).any(|seed| std::panic::catch_unwind(run(seed)).is_err()));
}

/// Members read by small writes in order over two stripes, and by the same again.
fn sequential(cached_stripes: u32, fail: bool) -> (usize, usize, usize) {
    let mut config = config(Level::Raid5, 5);
    config.layout.chunk = Sectors(64);
    config.members.iter_mut().for_each(|member| member.sectors = Sectors(512));
    config.settings.cached_stripes = cached_stripes;
    let mut driver = Driver::new(&config);
    let bytes: Vec<u8> = (0..512u32).map(|i| (i * 7) as u8).collect();
    let pass = |driver: &mut Driver| {
        driver.log.clear();
        for at in (0..512).step_by(8) {
            assert_eq!(driver.write(at, &bytes[at as usize..at as usize + 8]), Outcome::Done);
        }
        counts(driver).0
    };
    let first = pass(&mut driver);
    let again = pass(&mut driver);
    if fail {
        driver.fail(1);
        // What was kept is forgotten: the first pass after the failure reads everything anew.
        for at in (0..512).step_by(8) {
            assert_eq!(driver.read(at, 8), Ok(bytes[at as usize..at as usize + 8].to_vec()));
        }
    }
    driver.log.clear();
    for at in (0..512).step_by(8) {
        assert_eq!(driver.read(at, 8), Ok(bytes[at as usize..at as usize + 8].to_vec()));
    }
    (first, again, counts(&driver).0)
}

#[test]
fn a_cache_saves_the_reads_of_small_writes_and_of_lost_chunks() {
    // 64 writes of 8 sectors, stripes of 256 sectors, 4 data members.
    let (first, again, degraded) = sequential(0, true);
    assert_eq!((first, again), (128, 128), "old data and P, each time");
    // 16 of the 64 are on the lost member and take all four others, each time.
    assert_eq!(degraded, 48 + 16 * 4);
    let (first, again, degraded) = sequential(4, true);
    assert!(first <= 80, "{first} reads: P is known after the first write of its rows");
    assert_eq!(again, 0, "everything is known");
    assert_eq!(degraded, 0, "everything was read or computed once");
}

#[cfg(debug_assertions)]
#[test]
fn every_bug_planted_in_stripes_is_found() {
    use raidlab_core::Rotation;
    use raidlab_core::bugs::Bug;
    let raid5 = config(Level::Raid5, 5);
    let mut raid6 = config(Level::Raid6, 6);
    raid6.layout.rotation = Rotation::LeftAsymmetric;
    let bugs = [
        (Bug::SkipStripeLock, &raid5),
        (Bug::SkipStripeLock, &raid6),
        (Bug::ReadModifyOldParity, &raid5),
        (Bug::DegradedSkipsParity, &raid5),
        (Bug::DegradedSkipsParity, &raid6),
        (Bug::WrongQOrder, &raid6),
        (Bug::RecoverFromStaleParity, &raid6),
    ];
    for (bug, config) in bugs {
        let run = |seed| move || with_cache(config, 0, seed, |driver| driver.array.plant(bug));
        let found = (0..100).find(|seed| std::panic::catch_unwind(run(*seed)).is_err());
        assert!(found.is_some(), "{} not found on {}", bug.name(), config.layout);
    }
}

#[test]
fn who_finds_room_in_the_log_flushes_nothing() {
    let journal = Consistency::Journal { sectors: Sectors(512) };
    let partial = Consistency::PartialParity { slots: 6 };
    for (level, mode) in [(Level::Raid5, journal), (Level::Raid6, journal), (Level::Raid5, partial)]
    {
        let mut config = config(level, 4);
        config.settings.consistency = mode;
        let mut driver = Driver::new(&config);
        assert_eq!(driver.write(0, &[1; 4]), Outcome::Done);
        driver.log.clear();
        assert_eq!(driver.write(0, &[2; 4]), Outcome::Done);
        let count = |op| driver.log.iter().filter(|io| io.op == op).count();
        assert!(count(IoOp::Flush) == 0 && count(IoOp::Write) > 0, "{level} {mode:?}");
    }
}

#[test]
fn a_read_computes_nothing_for_a_log() {
    let journal = Consistency::Journal { sectors: Sectors(512) };
    let modes = [Consistency::None, Consistency::PartialParity { slots: 6 }, journal];
    let jobs = modes.map(|mode| {
        let mut config = config(Level::Raid5, 4);
        config.settings.consistency = mode;
        let mut driver = Driver::new(&config);
        assert_eq!(driver.write(0, &[1; 40]), Outcome::Done);
        driver.fail(0);
        driver.run();
        let token = driver.buffer(vec![0; 40]);
        driver.submit(IoOp::Read, 0, &[Segment { token, offset: 0, len: 40 }]);
        run_counting_jobs(&mut driver)
    });
    assert_eq!(jobs, [2; 3], "what was lost, a piece in each of two stripes");
}

/// The second band of a write has rows of which another chunk's write is not durable: its entry waits for a flush.
#[test]
fn an_entry_waits_for_what_is_not_durable_in_any_of_its_bands() {
    let mut config = config(Level::Raid5, 3);
    config.settings.consistency = Consistency::PartialParity { slots: 8 };
    let mut driver = Driver::new(&config);
    // The second chunk's rows 14 and 15; then the first's, and the second's rows 0 to 2.
    assert_eq!(driver.write(CHUNK + 14, &[1; 2]), Outcome::Done);
    driver.begin_write(14, &[2; 5], false);
    let mut flushed = false;
    loop {
        match driver.work.front().expect("it is logged") {
            Work::Io(io) => flushed |= io.op == IoOp::Flush,
            Work::Meta(io) => {
                let record = driver.array.meta(*io).expect("wanted").record;
                if matches!(record, Record::PartialParity { .. }) {
                    return assert!(flushed);
                }
            }
            _ => {}
        }
        driver.step(0);
    }
}
