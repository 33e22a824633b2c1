//! File members through an engine, by `io_uring` and by threads: where bytes land, sizes, errors, and many
//! pieces.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::common::{Random, TestDirectory, layouts};
use raidlab_core::contract::{IoOp, Outcome, Segment};
use raidlab_core::{Layout, Level, Limits, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    CacheState, Engine, EngineConfig, EngineErrorKind, FileIo, FileMember, FileOptions, Member,
};

const OFFSET: Sectors = Sectors(24);

/// A file of 0xdd, `sectors` sectors behind the data offset and 8 more behind them.
fn make(directory: &TestDirectory, name: &str, sectors: u64) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, vec![0xdd; ((OFFSET.0 + sectors + 8) * 512) as usize]).unwrap();
    path
}

/// Both ways, with the page cache and without.
const EACH: [(FileIo, bool); 4] = [
    (FileIo::Uring, true),
    (FileIo::Uring, false),
    (FileIo::Threads, true),
    (FileIo::Threads, false),
];

fn options(sectors: u64, (engine, direct): (FileIo, bool)) -> FileOptions {
    let sectors = Some(Sectors(sectors));
    FileOptions { data_offset: OFFSET, sectors, direct, threads: 3, engine, read_only: false }
}

fn member(directory: &TestDirectory, name: &str, sectors: u64, how: (FileIo, bool)) -> Member {
    let path = make(directory, name, sectors);
    Member::File(Box::new(FileMember::open(&path, options(sectors, how)).unwrap()))
}

#[test]
fn data_lie_behind_the_offset_and_nothing_else_is_touched() {
    let directory = TestDirectory::new();
    for how in EACH {
        let (name, direct) = ("one", how.1);
        let only = vec![member(&directory, name, 256, how)];
        if let Member::File(file) = &only[0] {
            assert_eq!(file.file_io(), how.0);
            let expected = if direct { file.cache_state() } else { CacheState::Buffered };
            assert_eq!(file.cache_state(), expected);
            assert_eq!((file.sectors(), file.data_offset()), (Sectors(256), OFFSET));
        }
        let layout = Layout::new(Level::Linear, 1);
        let config = EngineConfig::new(layout.with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, only).unwrap();
        let block = u64::from(engine.array().logical_block());
        let mut data = vec![0; 2 * block as usize * 512];
        Random(3).fill(&mut data);
        engine.write_at(Sector(block * 3), &data).unwrap();
        engine.flush().unwrap();
        let mut back = vec![0; data.len()];
        engine.read_at(Sector(block * 3), &mut back).unwrap();
        assert_eq!(back, data);
        drop(engine);

        let file = std::fs::read(directory.path().join(name)).unwrap();
        let start = (OFFSET.0 + block * 3) as usize * 512;
        assert_eq!(&file[start..start + data.len()], &data[..]);
        let beside = file[..start].iter().chain(&file[start + data.len()..]);
        assert!(beside.copied().all(|byte| byte == 0xdd));
    }
}

#[test]
fn every_level_works_on_files_with_many_requests_at_once() {
    for (layout, engine) in layouts().into_iter().flat_map(|layout| {
        let each = [Some(FileIo::Uring), Some(FileIo::Threads), None];
        each.map(|engine| (layout.clone(), engine))
    }) {
        let directory = TestDirectory::new();
        // `None`: mixed.
        let of = |n: u16| match engine {
            Some(engine) => (engine, n.is_multiple_of(2)),
            None => EACH[usize::from(n) % EACH.len()],
        };
        let members: Vec<Member> =
            (0..layout.members).map(|n| member(&directory, &format!("m{n}"), 256, of(n))).collect();
        let mut engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
        let block = u64::from(engine.array().logical_block());
        let count = 32.min(engine.array().capacity().0 / block / 2);
        let token = engine.allocate(count * block * 512).unwrap();
        let mut model = vec![0; (count * block * 512) as usize];
        Random(u64::from(layout.members)).fill(&mut model);
        engine.bytes_mut(token).unwrap().copy_from_slice(&model);
        for op in [IoOp::Write, IoOp::Flush, IoOp::Read] {
            for n in 0..count {
                let segment = Segment { token, offset: (n * block) as u32, len: block as u32 };
                let segments: &[Segment] =
                    if op == IoOp::Flush { &[] } else { std::slice::from_ref(&segment) };
                let at = if op == IoOp::Flush { 0 } else { n * 2 * block };
                engine.submit(op, Sector(at), segments, n % 3 == 0 && op == IoOp::Write).unwrap();
            }
            let mut replies = Vec::new();
            engine.run_until_idle(&mut replies).unwrap();
            assert_eq!(replies.len() as u64, count);
            assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done), "{layout}");
            if op == IoOp::Flush {
                engine.bytes_mut(token).unwrap().fill(0);
            }
        }
        assert!(engine.bytes(token).unwrap() == model, "{layout}");
    }
}

#[test]
fn more_pieces_than_the_kernel_takes_at_once() {
    for how in EACH {
        let directory = TestDirectory::new();
        let only = vec![member(&directory, "many", 4096, how)];
        let mut config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        config.limits = Limits { segments: 3000, ..Limits::default() };
        let mut engine = Engine::new(&config, only).unwrap();
        let token = engine.allocate(3000 * 512).unwrap();
        Random(8).fill(engine.bytes_mut(token).unwrap());
        // Backwards, so that no two pieces can be taken for one.
        let segments: Vec<Segment> =
            (0..3000).rev().map(|offset| Segment { token, offset, len: 1 }).collect();
        engine.submit(IoOp::Write, Sector(17), &segments, false).unwrap();
        let mut replies = Vec::new();
        engine.run_until_idle(&mut replies).unwrap();
        assert_eq!(replies[0].outcome, Outcome::Done);
        let data = engine.bytes(token).unwrap().to_vec();
        let mut back = vec![0; 3000 * 512];
        engine.read_at(Sector(17), &mut back).unwrap();
        for (found, expected) in back.chunks(512).zip(data.chunks(512).rev()) {
            assert!(found == expected);
        }
    }
}

#[test]
fn a_file_cut_short_is_lost_and_the_mirror_helps_out() {
    for how in EACH {
        let directory = TestDirectory::new();
        for level in [Level::Linear, Level::Raid1] {
            let names = ["cut", "whole"];
            let count = if level == Level::Raid1 { 2 } else { 1 };
            let members =
                names[..count].iter().map(|name| member(&directory, name, 256, how)).collect();
            let layout = Layout::new(level, count as u16);
            let mut engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
            let capacity = engine.array().capacity().bytes() as usize;
            let mut data = vec![0; capacity];
            Random(4).fill(&mut data);
            engine.write_at(Sector(0), &data).unwrap();
            let file = File::options().write(true).open(directory.path().join("cut")).unwrap();
            file.set_len((OFFSET.0 + 100) * 512).unwrap();
            let mut back = vec![0; capacity];
            let read = engine.read_at(Sector(0), &mut back);
            if level == Level::Raid1 {
                read.unwrap();
                assert!(back == data);
            } else {
                let error = read.unwrap_err();
                assert_eq!(error.kind(), EngineErrorKind::ArrayFailed, "{error}");
            }
        }
    }
}

#[test]
fn a_byte_changed_in_the_file_is_read_from_the_member() {
    for how in EACH {
        let directory = TestDirectory::new();
        let only = vec![member(&directory, "changed", 256, how)];
        let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, only).unwrap();
        let file = File::options().write(true).open(directory.path().join("changed")).unwrap();
        file.write_all_at(&[1], (OFFSET.0 + 16) * 512 + 5).unwrap();
        file.sync_all().unwrap();
        let mut sectors = vec![0; 8 * 512];
        let member = engine.member_mut(MemberIndex(0)).unwrap();
        member.read_direct(Sector(16), &mut sectors).unwrap();
        assert_eq!((sectors[4], sectors[5], sectors[6]), (0xdd, 1, 0xdd));
    }
}

#[test]
fn what_cannot_be_a_member_is_refused() {
    let directory = TestDirectory::new();
    let open = |name: &str, options| {
        let error = FileMember::open(&directory.path().join(name), options).unwrap_err();
        assert!(error.path().is_some());
        (error.kind(), error.to_string())
    };
    make(&directory, "short", 4);
    let (kind, text) = open("short", options(100, EACH[0]));
    assert_eq!(kind, EngineErrorKind::Member);
    assert!(text.contains("is 18432 bytes long, must be at least 63488"), "{text}");
    let far = FileOptions { data_offset: Sectors(1 << 40), ..FileOptions::default() };
    assert_eq!(open("short", far).0, EngineErrorKind::Member);
    let (kind, text) = open("absent", FileOptions::default());
    assert_eq!(kind, EngineErrorKind::Io);
    assert!(text.contains("absent"), "{text}");
    assert_eq!(open(".", FileOptions::default()).0, EngineErrorKind::Io);
}

#[test]
fn dropping_an_engine_waits_for_what_was_handed_over() {
    for how in EACH {
        let directory = TestDirectory::new();
        let only = vec![member(&directory, "dropped", 4096, how)];
        let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, only).unwrap();
        let token = engine.allocate(32 * 64 * 512).unwrap();
        Random(12).fill(engine.bytes_mut(token).unwrap());
        let data = engine.bytes(token).unwrap().to_vec();
        for n in 0..32 {
            let segment = Segment { token, offset: n * 64, len: 64 };
            let at = Sector(u64::from(n) * 64);
            engine.submit(IoOp::Write, at, &[segment], n % 4 == 0).unwrap();
        }
        engine.poll_replies(&mut Vec::new()).unwrap();
        drop(engine);
        let file = std::fs::read(directory.path().join("dropped")).unwrap();
        let start = OFFSET.0 as usize * 512;
        assert!(file[start..start + data.len()] == data);
    }
}

/// What the ring does not take goes to threads; nobody waits for the wrong one of the two.
#[test]
fn zeroes_and_discards_go_together_with_reads_and_writes() {
    for how in EACH {
        let directory = TestDirectory::new();
        let members = (0..2).map(|n| member(&directory, &format!("m{n}"), 2048, how)).collect();
        let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
        let mut engine = Engine::new(&config, members).unwrap();
        let mut model = vec![0; 2048 * 512];
        Random(5).fill(&mut model);
        engine.write_at(Sector(0), &model).unwrap();
        let token = engine.allocate(64 * 512).unwrap();
        engine.bytes_mut(token).unwrap().fill(0xaa);
        let segment = Segment { token, offset: 0, len: 64 };
        let mut replies = Vec::new();
        for n in 0..16 {
            let at = n * 128;
            engine.submit(IoOp::Write, Sector(at), &[segment], n % 3 == 0).unwrap();
            model[at as usize * 512..][..64 * 512].fill(0xaa);
            engine.submit_range(IoOp::WriteZeroes, Sector(at + 64), Sectors(32)).unwrap();
            model[(at as usize + 64) * 512..][..32 * 512].fill(0);
            engine.submit(IoOp::Flush, Sector(0), &[], false).unwrap();
        }
        engine.run_until_idle(&mut replies).unwrap();
        assert_eq!(replies.len(), 48);
        assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done), "{how:?}");
        let mut back = vec![0; model.len()];
        engine.read_at(Sector(0), &mut back).unwrap();
        assert!(back == model, "{how:?}");
    }
}

/// An engine may be used from one thread after another, also with requests under way.
#[test]
fn an_engine_may_change_threads_with_requests_under_way() {
    for how in EACH {
        let directory = TestDirectory::new();
        let only = vec![member(&directory, "moved", 4096, how)];
        let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, only).unwrap();
        let token = engine.allocate(16 * 8 * 512).unwrap();
        for round in 0..8u64 {
            // The thread ends with requests under way.
            engine = std::thread::spawn(move || {
                for n in 0..16 {
                    let segment = Segment { token, offset: n * 8, len: 8 };
                    let at = Sector((round * 16 + u64::from(n)) * 8);
                    engine.submit(IoOp::Write, at, &[segment], n == 3).unwrap();
                }
                engine.poll_replies(&mut Vec::new()).unwrap();
                engine
            })
            .join()
            .unwrap();
            let mut replies = Vec::new();
            engine.run_until_idle(&mut replies).unwrap();
            assert!(replies.iter().all(|reply| reply.outcome == Outcome::Done), "{how:?}");
        }
    }
}

/// Who only polls waits for nobody, and still everything is handed over and comes back.
#[test]
fn polling_alone_gets_every_answer() {
    for how in EACH {
        let directory = TestDirectory::new();
        let only = vec![member(&directory, "polled", 4096, how)];
        let config = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
        let mut engine = Engine::new(&config, only).unwrap();
        let token = engine.allocate(16 * 8 * 512).unwrap();
        for n in 0..16 {
            let segment = Segment { token, offset: n * 8, len: 8 };
            let at = Sector(u64::from(n) * 8);
            engine.submit(IoOp::Write, at, &[segment], n == 3).unwrap();
        }
        let mut replies = Vec::new();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while replies.len() < 16 && std::time::Instant::now() < end {
            engine.poll_replies(&mut replies).unwrap();
            std::thread::yield_now();
        }
        assert_eq!(replies.len(), 16, "{how:?}");
    }
}
