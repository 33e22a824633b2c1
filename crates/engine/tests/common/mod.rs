//! What the tests share: a seeded generator, layouts to try, members, and a directory of their own.
#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use raidlab_core::contract::Pacing;
use raidlab_core::{Consistency, Layout, Level, Nanos, Sectors};
use raidlab_engine::{
    EngineConfig, EngineError, FileIo, FileMember, FileOptions, Member, MemoryMember,
};

/// xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// Layouts without redundancy, with copies and with one parity, in small chunks so that requests cross many of them.
pub fn layouts() -> Vec<Layout> {
    let chunk = |level, members, sectors| Layout::new(level, members).with_chunk(Sectors(sectors));
    let mut all = vec![
        chunk(Level::Linear, 1, 8),
        chunk(Level::Linear, 3, 8),
        chunk(Level::Raid0, 4, 8),
        chunk(Level::Raid0, 3, 12),
        Layout::new(Level::Raid1, 2),
        Layout::new(Level::Raid1, 3),
        chunk(Level::Raid5, 3, 8),
        chunk(Level::Raid5, 4, 16),
        chunk(Level::Raid5, 5, 8),
        chunk(Level::Raid10, 4, 8),
        chunk(Level::Raid10, 5, 8),
        chunk(Level::Raid10, 4, 16).with_near(3),
    ];
    // And what the table of levels has besides: a new level is here by its row. The load has requests of any length,
    // which levels cut by sectors refuse.
    for level in Level::ALL.into_iter().filter(|level| !level.is_cut_by_sectors()) {
        for members in level.small_arrays() {
            let small = Layout::new(level, *members);
            let small = if level.has_chunks() { small.with_chunk(Sectors(8)) } else { small };
            if !all.contains(&small) {
                all.push(small);
            }
        }
    }
    all
}

/// An array that begins in the background at once with what is to be done, and is marked clean soon.
pub fn eager(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(Sectors(16)) } else { layout };
    let mut config = EngineConfig::new(layout);
    config.settings.consistency = consistency;
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    config.settings.clean_after = Nanos::from_millis(1);
    config.limits.plans = 4;
    config.limits.requests = 8;
    config
}

pub fn memory_members(count: u16, sectors: Sectors) -> Vec<Member> {
    (0..count).map(|_| Member::Memory(MemoryMember::new(sectors).unwrap())).collect()
}

/// A directory of one test, removed with all that is in it.
pub struct TestDirectory(PathBuf);

impl TestDirectory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // All of one length, so that none is the beginning of another: mounts are looked for by them.
        let name = format!("raidlab-engine-test-{}-{number:04}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Members in sparse files of a directory.
pub fn file_members(
    directory: &TestDirectory,
    count: u16,
    sectors: Sectors,
    engine: FileIo,
) -> Result<Vec<Member>, EngineError> {
    let member = |number| {
        let path = directory.path().join(format!("member-{number}"));
        std::fs::File::create(&path).unwrap().set_len(sectors.bytes()).unwrap();
        // Two threads are there from the first batch on.
        let options = FileOptions { engine, threads: 2, ..FileOptions::default() };
        FileMember::open(&path, options).map(|member| Member::File(Box::new(member)))
    };
    (0..count).map(member).collect()
}
