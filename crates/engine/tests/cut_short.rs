//! Member files that somebody cuts short while their array runs: what they lost is never served as data, and no write
//! makes them as long as they were.

use std::fs::File;
use std::path::Path;

use crate::common::{Random, TestDirectory, file_members};
use raidlab_core::contract::{IoOp, Segment};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, FileIo};

const MEMBER: Sectors = Sectors(8192);
/// What is left of the file.
const LEFT: u64 = 1 << 20;
const BLOCK: usize = 4096;

/// A full array whose member 0 was cut short, and what was written to it.
fn cut(directory: &TestDirectory, layout: &Layout, io: FileIo) -> (Engine, Vec<u8>) {
    let members = file_members(directory, layout.members, MEMBER, io).unwrap();
    let mut config = EngineConfig::new(layout.clone());
    if layout.level == Level::Raid1 {
        // It reads from the member that was cut as long as that is there.
        config.read_policy = ReadPolicy::GmirrorPrefer;
    }
    let mut engine = Engine::new(&config, members).unwrap();
    let mut data = vec![0; engine.array().capacity().bytes() as usize];
    Random(11).fill(&mut data);
    engine.write_at(Sector(0), &data).unwrap();
    engine.flush().unwrap();
    let file = File::options().write(true).open(member(directory)).unwrap();
    file.set_len(LEFT).unwrap();
    (engine, data)
}

fn member(directory: &TestDirectory) -> impl AsRef<Path> {
    directory.path().join("member-0")
}

/// Every block is what was written, the last one first, and the file was left alone.
fn verify(mut engine: Engine, data: &[u8], directory: &TestDirectory, what: &str) {
    let mut wrong = 0;
    for (number, block) in data.chunks(BLOCK).enumerate().rev() {
        let mut back = vec![0; block.len()];
        engine.read_at(Sector((number * BLOCK / 512) as u64), &mut back).unwrap();
        wrong += usize::from(back != block);
    }
    assert_eq!(wrong, 0, "{what}: blocks that are wrong, of {}", data.len() / BLOCK);
    assert!(engine.array().is_failed(MemberIndex(0)), "{what}");
    drop(engine);
    let length = std::fs::metadata(member(directory)).unwrap().len();
    assert_eq!(length, LEFT, "{what}");
}

fn each(test: impl Fn(&TestDirectory, &Layout, FileIo)) {
    let raid5 = Layout::new(Level::Raid5, 3).with_chunk(Sectors(64));
    for layout in [Layout::new(Level::Raid1, 2), raid5] {
        for io in [FileIo::Auto, FileIo::Threads] {
            test(&TestDirectory::new(), &layout, io);
        }
    }
}

#[test]
fn what_lies_behind_the_end_is_read_from_the_others() {
    each(|directory, layout, io| {
        let (engine, data) = cut(directory, layout, io);
        verify(engine, &data, directory, &format!("{layout} {io:?}"));
    });
}

#[test]
fn a_write_behind_the_end_does_not_make_the_file_longer() {
    each(|directory, layout, io| {
        let (mut engine, mut data) = cut(directory, layout, io);
        let at = data.len() - BLOCK;
        Random(12).fill(&mut data[at..]);
        engine.write_at(Sector((at / 512) as u64), &data[at..]).unwrap();
        verify(engine, &data, directory, &format!("{layout} {io:?}"));
    });
}

/// As many at once as go to the kernel together.
#[test]
fn nor_do_many_writes_at_once() {
    each(|directory, layout, io| {
        let (mut engine, mut data) = cut(directory, layout, io);
        let blocks = data.len() / BLOCK;
        let mut random = Random(13);
        let mut replies = Vec::new();
        for number in 0..32 {
            // No two are of one block.
            let at = number * 37 % blocks * BLOCK;
            let token = engine.allocate(BLOCK as u64).unwrap();
            random.fill(&mut data[at..at + BLOCK]);
            engine.bytes_mut(token).unwrap().copy_from_slice(&data[at..at + BLOCK]);
            let segment = Segment { token, offset: 0, len: (BLOCK / 512) as u32 };
            engine.submit(IoOp::Write, Sector((at / 512) as u64), &[segment], false).unwrap();
        }
        engine.run_until_idle(&mut replies).unwrap();
        assert_eq!(replies.len(), 32);
        verify(engine, &data, directory, &format!("{layout} {io:?}"));
    });
}
