//! raidlab's side: makes, writes, degrades and rebuilds arrays on sections of the guest's files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use raidlab_core::contract::{Pacing, Work};
use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_metadata::md::{Creation, Inspected, Role, inspect};

use super::cases::{Case, Left, MEMBER, Maker};
use crate::guest::TempDir;
use crate::made::{creation, pattern};

const MIB: usize = 1 << 20;
/// The device beside those of four members.
const FRESH: usize = 4;
/// The member that fails.
pub(crate) const LOST: usize = 1;

/// The guest's files, of which each array has a section.
pub(crate) struct Files {
    devices: Vec<PathBuf>,
    share: PathBuf,
    pattern: Vec<u8>,
}

impl Files {
    pub(crate) fn new(directory: &TempDir, sections: usize) -> Self {
        let file = |name| directory.file(name, sections as u64 * MEMBER);
        let share = directory.path().join("share");
        fs::create_dir(&share).unwrap();
        let pattern = pattern(3 * MIB, 0x1234_5678_9abc_def1);
        Self { devices: ["a", "b", "c", "d", "e"].map(file).into(), share, pattern }
    }

    pub(crate) fn devices(&self) -> &[PathBuf] {
        &self.devices
    }

    pub(crate) fn share(&self) -> &Path {
        &self.share
    }

    pub(crate) fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    /// A device, from its first sector to its last.
    fn device(&self, section: usize, number: usize) -> Member {
        self.open(section, number, false)
    }

    fn open(&self, section: usize, number: usize, read_only: bool) -> Member {
        let data_offset = Sectors(section as u64 * MEMBER / 512);
        let options = FileOptions {
            data_offset,
            sectors: Some(Sectors(MEMBER / 512)),
            read_only,
            ..FileOptions::default()
        };
        FileMember::open(&self.devices[number], options).unwrap().into()
    }

    fn members(&self, section: usize, case: &Case, without: &[usize]) -> Vec<Member> {
        let there = (0..case.members()).filter(|number| !without.contains(number));
        there.map(|number| self.device(section, number)).collect()
    }

    fn write(&self, number: usize, at: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.devices[number]).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    fn seen(&self, section: usize, number: usize) -> Inspected {
        inspect(&mut self.open(section, number, true))
    }

    /// Makes an array with raidlab, and leaves it as it is to be.
    pub(crate) fn make(&self, section: usize, case: &Case) {
        let creation = Creation {
            version: case.level.version,
            bitmap: case.wanted_bitmap(),
            assume_clean: false,
            array: [section as u8 + 1; 16],
            name: if case.is_old() {
                format!("md{}", section + 1)
            } else {
                format!("host:{}", case.level.name)
            },
            ..creation(case.layout(), MEMBER / 512)
        };
        for (number, made) in creation.plan().unwrap().members.iter().flatten().enumerate() {
            for (at, bytes) in &made.pieces {
                self.write(number, section as u64 * MEMBER + at.bytes(), bytes);
            }
        }
        let mut engine = assemble(self.members(section, case, &[]), &MdOptions::default());
        // raid4 and raid5 are born as a rebuild.
        while engine.use_spare().unwrap().is_some() || !engine.background().is_empty() {
            finish(&mut engine);
        }
        engine.write_at(Sector(0), &self.pattern[..MIB]).unwrap();
        if case.lost_one() {
            engine.fail(MemberIndex(LOST as u16)).unwrap();
            drop(engine.take_out(MemberIndex(LOST as u16)).unwrap());
        }
        engine.write_at(Sector(2048), &self.pattern[MIB..2 * MIB]).unwrap();
        match case.left {
            Left::Clean | Left::Degraded => engine.stop().unwrap(),
            Left::Dirty => {
                drop(engine);
                self.spoil(section, case);
            }
            Left::Rebuilt => {
                engine.add(MemberIndex(LOST as u16), self.device(section, FRESH)).unwrap();
                finish(&mut engine);
                engine.stop().unwrap();
            }
            Left::HalfRebuilt => {
                engine.pace(Pacing::between(1, 64 << 10)).unwrap();
                engine.add(MemberIndex(LOST as u16), self.device(section, FRESH)).unwrap();
                assert!(matches!(engine.background(), [Work::Rebuild(_)]), "{case}");
                engine.stop().unwrap();
                let found = self.seen(section, FRESH);
                let one = found.superblock().unwrap();
                let is_spare = one.role() == Role::Spare;
                assert_eq!(
                    (one.rebuilt_to().is_some(), is_spare),
                    (!case.is_old(), case.is_old()),
                    "{case}"
                );
            }
        }
    }

    /// Makes redundancy wrong, as a crash between two members would.
    fn spoil(&self, section: usize, case: &Case) {
        let Some(number) = case.level.redundant else { return };
        let start = self.seen(section, number).superblock().unwrap().data_offset * 512;
        self.write(number, section as u64 * MEMBER + start + 4096, &[0x5a; 512]);
    }

    /// What the guest copied while it was running is what a crash would have left.
    pub(crate) fn copied_back(&self, section: usize, case: &Case) {
        if (case.maker, case.left) != (Maker::Kernel, Left::Dirty) {
            return;
        }
        for number in 0..case.members() {
            let bytes = fs::read(self.share.join(format!("{section}-{number}"))).unwrap();
            self.write(number, section as u64 * MEMBER, &bytes);
        }
        self.spoil(section, case);
    }

    /// The numbers of the devices that hold the array when the guest has run first.
    fn holding(&self, section: usize, case: &Case) -> Vec<usize> {
        let of = |number: &usize| {
            let found = self.seen(section, *number);
            found.superblock().is_some()
        };
        (0..=FRESH)
            .filter(of)
            .filter(|number| *number < case.members() || *number == FRESH)
            .collect()
    }

    /// Takes an array over from the guest, makes its redundancy consistent, compares and writes it.
    pub(crate) fn take(&self, section: usize, case: &Case) {
        let mut devices: Vec<Member> = Vec::new();
        for number in self.holding(section, case) {
            devices.push(self.device(section, number));
        }
        // The disks come in any order.
        devices.reverse();
        let mut engine = assemble(devices, &MdOptions::default());
        let failed = (0..case.members() as u16).map(MemberIndex);
        let failed: Vec<_> = failed.filter(|one| engine.array().is_failed(*one)).collect();
        let is_degraded = case.maker == Maker::Kernel
            && (case.left == Left::Degraded || case.left == Left::HalfRebuilt && case.is_old());
        assert_eq!(failed.len(), usize::from(is_degraded), "{case}: {failed:?} failed");
        assert_eq!(
            engine.spares().len(),
            usize::from(is_degraded && case.left != Left::Degraded),
            "{case}"
        );
        if engine.use_spare().unwrap().is_none() {
            for member in failed {
                engine.add(member, self.device(section, FRESH)).unwrap();
            }
        }
        finish(&mut engine);
        if case.is_redundant() {
            let differing = engine.scrub(&AtomicBool::new(false)).unwrap();
            assert_eq!(differing, Sectors(0), "{case}: raidlab's scrub");
        }
        let len = if case.maker == Maker::Raidlab { 3 } else { 2 };
        let mut back = vec![0; len * MIB];
        engine.read_at(Sector(0), &mut back).unwrap();
        assert!(back == self.pattern[..len * MIB], "{case}: what raidlab reads differs");
        engine.write_at(Sector(4096), &self.pattern[2 * MIB..]).unwrap();
        engine.stop().unwrap();
    }
}

fn assemble(devices: Vec<Member>, options: &MdOptions) -> Engine {
    Engine::assemble_md(devices, options).unwrap().0
}

fn finish(engine: &mut Engine) {
    let fast = Pacing::between(u64::MAX, u64::MAX);
    engine.pace(fast).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
}
