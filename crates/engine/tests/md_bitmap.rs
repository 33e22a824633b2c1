//! The bitmap of md arrays: bits of many pages lie in the same 4 KiB of a member, and are written together.

use std::time::Duration;

use crate::made::creation;
use crate::power::Drive;
use raidlab_core::contract::{IoOp, Segment};
use raidlab_core::{Layout, Nanos, Sector, Settings};
use raidlab_engine::{Engine, MdOptions, Member};
use raidlab_metadata::md::{Bitmap, Creation, WantedBitmap};

const SECTORS: u64 = 40_960;
/// Sectors that 64 bits stand for, where each stands for 4 KiB.
const PAGE: u64 = 64 * 8;
/// Where a bitmap of version 1.2 lies here.
const AT: usize = 16 * 512;
const HEAD: usize = 256;
const COUNT: u64 = 40;

fn drives(layout: Layout) -> Vec<Drive> {
    let creation = Creation { bitmap: WantedBitmap::Internal, ..creation(layout, SECTORS) };
    let plan = creation.plan().unwrap();
    let drive = |pieces: &[(Sector, Vec<u8>)]| {
        let drive = Drive::new(SECTORS);
        for (at, piece) in pieces {
            let mut bytes = piece.clone();
            if let Some(mut head) = Bitmap::parse(piece) {
                assert_eq!(at.0 as usize * 512, AT);
                head.chunk = 4096;
                bytes.fill(0);
                head.emit(&mut bytes);
            }
            drive.put(at.0, &bytes);
        }
        drive
    };
    plan.members.iter().flatten().map(|made| drive(&made.pieces)).collect()
}

/// The pages of which bits stand durably on a drive.
fn pages(drive: &Drive) -> Vec<u64> {
    let bytes = drive.bytes();
    let words = bytes[AT + HEAD..AT + 4096].chunks(8).zip(0..);
    words.filter(|(word, _)| word.iter().any(|byte| *byte != 0)).map(|(_, page)| page).collect()
}

#[test]
fn bits_of_many_pages_are_written_together() {
    for layout in ["raid1(2)", "raid5(3) chunk=64K"] {
        let drives = drives(layout.parse().unwrap());
        let members = drives.iter().map(|drive| Member::from(drive.clone())).collect();
        let settings = Settings {
            bitmap_delay: Nanos(1_000_000),
            clean_after: Nanos(1_000_000),
            ..Settings::default()
        };
        let options = MdOptions { settings, ..MdOptions::default() };
        let (mut engine, _) = Engine::assemble_md(members, &options).unwrap();
        let capacity = engine.array().capacity().0;
        let apart = PAGE * capacity / (SECTORS - 2048);
        let token = engine.allocate(4096).unwrap();
        let segment = Segment { token, offset: 0, len: 8 };
        for place in 0..COUNT {
            let at = place * apart / 8 * 8;
            engine.submit(IoOp::Write, Sector(at), &[segment], false).unwrap();
        }
        let mut replies = Vec::new();
        engine.run_until_idle(&mut replies).unwrap();
        assert_eq!(replies.len() as u64, COUNT);
        let marked = pages(&drives[0]);
        assert!(marked.len() >= 20, "{layout}: {marked:?}");
        for drive in &drives {
            assert_eq!(pages(drive), marked, "{layout}: before data that a power cut may keep");
        }
        let before = engine.totals().writes;
        engine.settle(Duration::from_secs(60)).unwrap();
        let (writes, members) = (engine.totals().writes - before, drives.len() as u64);
        for drive in &drives {
            assert_eq!(pages(drive), Vec::<u64>::new(), "{layout}: quiet for long");
        }
        // Superblocks with the head of the bitmap, and a write that clears all of them.
        assert!(writes <= 8 * members, "{layout}: {writes} writes");
        engine.stop().unwrap();
    }
}
