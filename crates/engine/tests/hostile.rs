//! Devices whose records are sealed and say what no array ever wrote: an array starts or does not, and what
//! follows ends; nothing panics.

use std::sync::atomic::AtomicBool;

use crate::common::{Random, eager};
use raidlab_core::consistency::{Allow, MetaArea};
use raidlab_core::{Consistency, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember, log_device_sectors};
use raidlab_metadata::Checksum;

const TOTAL: Sectors = Sectors(800);
const SECTOR: usize = 512;
/// Where the words of a record begin, and how many a superblock has.
const WORDS: usize = 56;
const COUNT: usize = 31;
static RUNNING: AtomicBool = AtomicBool::new(false);

fn config(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let mut config = eager(level, members, consistency);
    config.limits.ios = 128;
    config
}

fn seal(record: &mut [u8]) {
    record[8..12].fill(0);
    let mut sum = Checksum::default();
    sum.add(&record[..SECTOR]);
    record[8..12].copy_from_slice(&sum.value().to_le_bytes());
}

/// What stands on the devices of an array that was written to and not stopped, the log device last.
fn images(config: &EngineConfig) -> Vec<Vec<u8>> {
    let memory = |total| Member::Memory(MemoryMember::new(total).unwrap());
    let count = config.layout.members;
    let members = (0..count).map(|_| memory(TOTAL)).collect();
    let journal = log_device_sectors(config.settings.consistency).map(memory);
    let mut engine = Engine::with_journal(config, members, journal).unwrap();
    for at in (0..200).step_by(37) {
        engine.write_at(Sector(at), &[at as u8; 11 * SECTOR]).unwrap();
    }
    engine.flush().unwrap();
    let devices = (0..count).chain([2 * count]).map(MemberIndex);
    let image = |member| match engine.member_mut(member) {
        Some(Member::Memory(member)) => Some(member.bytes().to_vec()),
        _ => None,
    };
    devices.filter_map(image).collect()
}

/// Starts what the images hold, and uses it; gives whether it started.
fn start(config: &EngineConfig, images: &[Vec<u8>]) -> bool {
    let mut devices: Vec<_> = images
        .iter()
        .map(|image| {
            let mut member = MemoryMember::new(Sectors((image.len() / SECTOR) as u64)).unwrap();
            member.bytes_mut().copy_from_slice(image);
            Some(Member::Memory(member))
        })
        .collect();
    let journal = devices.split_off(usize::from(config.layout.members)).pop().flatten();
    let allow = Allow { dirty_degraded: true, ..Allow::default() };
    let Ok(mut engine) = Engine::assemble(config, devices, journal, allow) else { return false };
    // What comes of it is of no interest, but that it comes.
    let _ = engine.finish_background(&RUNNING);
    let _ = engine.write_at(Sector(3), &[1; 5 * SECTOR]);
    let _ = engine.flush();
    let _ = engine.fail(MemberIndex(0));
    let _ = engine.write_at(Sector(30), &[1; 5 * SECTOR]);
    let _ = engine.re_add(MemberIndex(0), None);
    let _ = engine.finish_background(&RUNNING);
    let _ = engine.read_at(Sector(0), &mut [0; 20 * SECTOR]);
    let _ = engine.stop();
    true
}

fn cases() -> [EngineConfig; 6] {
    let bitmap = Consistency::Bitmap { chunk: Sectors(64) };
    let journal = Consistency::Journal { sectors: Sectors(512) };
    [
        config(Level::Raid1, 2, Consistency::Resync),
        config(Level::Raid1, 3, bitmap),
        config(Level::Raid10, 4, bitmap),
        config(Level::Raid5, 4, Consistency::PartialParity { slots: 6 }),
        config(Level::Raid5, 3, journal),
        config(Level::Raid6, 5, bitmap),
    ]
}

/// Every word of the superblocks of one device, or of all, is another.
#[test]
fn superblocks_that_no_array_wrote() {
    let mut random = Random(3);
    let (mut started, mut refused) = (0, 0);
    for config in cases() {
        let whole = images(&config);
        assert!(start(&config, &whole), "{}", config.layout);
        for word in 0..COUNT {
            let values = [0, 1, u64::MAX, (1 << 62) - 1, random.next(), random.below(300)];
            for (value, all) in values.into_iter().flat_map(|value| [(value, false), (value, true)])
            {
                let mut images = whole.clone();
                let last = if all { images.len() } else { 1 };
                for image in &mut images[..last] {
                    let total = Sectors((image.len() / SECTOR) as u64);
                    for place in 0..2 {
                        let at = MetaArea::superblock(total, place).bytes() as usize;
                        let record = &mut image[at..at + SECTOR];
                        record[WORDS + 8 * word..][..8].copy_from_slice(&value.to_le_bytes());
                        seal(record);
                    }
                }
                *(if start(&config, &images) { &mut started } else { &mut refused }) += 1;
            }
        }
    }
    assert!(started > 100 && refused > 100, "{started} started, {refused} did not");
}

/// Every word of what else is recorded is another: pages of the bitmap, and entries of logs.
#[test]
fn pages_and_entries_that_no_array_wrote() {
    let mut random = Random(5);
    for config in cases() {
        let whole = images(&config);
        for word in 0..8 {
            for value in [0, 1, u64::MAX, 1 << 62, (1 << 62) - 1, random.next(), random.below(100)]
            {
                let mut images = whole.clone();
                for image in &mut images {
                    let superblock = image.len() / SECTOR / 8 * 8 - 16;
                    for at in 0..superblock {
                        let record = &mut image[at * SECTOR..][..SECTOR];
                        if record.starts_with(b"raidlab\x02") && random.below(3) > 0 {
                            record[WORDS + 8 * word..][..8].copy_from_slice(&value.to_le_bytes());
                            seal(record);
                        }
                    }
                }
                start(&config, &images);
            }
        }
    }
}
