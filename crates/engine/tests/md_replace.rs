//! Members of md arrays that are replaced while they serve: whatever ends the copy before its end, superblocks name no
//! device that has none, so that md and mdadm find all members there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::TestDirectory;
use crate::made::{creation, name, pattern};
use raidlab_core::contract::{Admin, Event, IoOp, IoOutcome, Pacing};
use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, FileMember, FileOptions, MdOptions, Member, MemberRequest, MemberStore, MemoryMember,
};
use raidlab_metadata::md::{Creation, Features, Inspected, Role, Version, WantedBitmap, inspect};

const SECTORS: u64 = 8192;
const ONE: MemberIndex = MemberIndex(1);
const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];

/// Files of a new array, the last of which is blank.
fn created(on: &Path, version: Version, bitmap: WantedBitmap) -> Vec<PathBuf> {
    let layout = "raid5(3) chunk=64K".parse().unwrap();
    let creation = Creation { version, bitmap, name: name(version), ..creation(layout, SECTORS) };
    let made = creation.plan().unwrap().members.into_iter().flatten().map(|one| one.pieces);
    let file = |(number, pieces): (usize, Vec<(Sector, Vec<u8>)>)| {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        for (at, piece) in &pieces {
            bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        let path = on.join(format!("{version}-{}-{number}", bitmap == WantedBitmap::None));
        fs::write(&path, bytes).unwrap();
        path
    };
    made.chain([Vec::new()]).enumerate().map(file).collect()
}

fn open(path: &Path) -> Member {
    Member::File(Box::new(FileMember::open(path, FileOptions::default()).unwrap()))
}

fn assemble(members: &[PathBuf]) -> Engine {
    let members = members.iter().map(|path| open(path)).collect();
    Engine::assemble_md(members, &MdOptions::default()).unwrap().0
}

fn seen(path: &Path) -> Inspected {
    let mut device = MemoryMember::new(Sectors(SECTORS)).unwrap();
    device.bytes_mut().copy_from_slice(&fs::read(path).unwrap());
    inspect(&mut Member::Memory(device))
}

/// What is on the members is a whole array, as md sees it, and nothing of it on the fresh device.
fn check(files: &[PathBuf], told: &str) {
    let (fresh, members) = files.split_last().unwrap();
    assert!(seen(fresh).superblock().is_none(), "{told}");
    for (place, path) in members.iter().enumerate() {
        let found = seen(path);
        let one = found.superblock().unwrap();
        let named = one.roles.iter().filter(|role| matches!(role, Role::Member(_))).count();
        assert_eq!(
            (one.role(), named),
            (Role::Member(place as u16), 3),
            "{told}: {:?}",
            &one.roles[..6]
        );
        let Ok(said) = Command::new("mdadm").arg("--examine").arg(path).output() else { continue };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("Array State : AAA "), "{told}: {said}");
    }
}

/// A copy goes on while the array is written, and hardly gets on; gives the array in the midst of it.
fn replacing(files: &[PathBuf]) -> Engine {
    let (fresh, members) = files.split_last().unwrap();
    let mut engine = assemble(members);
    engine.pace(Pacing::between(1, 1)).unwrap();
    engine.replace(ONE, open(fresh), true).unwrap();
    // Superblocks say that it is written.
    engine.write_at(Sector(64), &pattern(256 << 10, 5)).unwrap();
    assert_ne!(engine.array().status().replacing, [0; 2], "it goes on");
    engine
}

fn each(mut judge: impl FnMut(&[PathBuf], &str)) {
    let directory = TestDirectory::new();
    for version in VERSIONS {
        for bitmap in [WantedBitmap::None, WantedBitmap::Internal] {
            let files = created(directory.path(), version, bitmap);
            judge(&files, &format!("{version}, {bitmap:?}"));
        }
    }
}

#[test]
fn a_stop_while_a_member_is_replaced_leaves_a_whole_array() {
    each(|files, told| {
        replacing(files).stop().unwrap();
        check(files, told);
        let mut engine = assemble(&files[..3]);
        assert_eq!(engine.array().status().failed, [0; 2], "{told}");
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
    });
}

#[test]
fn a_power_cut_while_a_member_is_replaced_leaves_a_whole_array() {
    each(|files, told| {
        let engine = replacing(files);
        check(files, told);
        // Nothing more is written.
        drop(engine);
        check(files, told);
    });
}

#[test]
fn a_copy_that_is_given_up_leaves_a_whole_array() {
    each(|files, told| {
        let mut engine = replacing(files);
        engine.admin(Admin::StopBackground).unwrap();
        check(files, told);
        engine.write_at(Sector(640), &pattern(64 << 10, 7)).unwrap();
        engine.stop().unwrap();
        check(files, told);
    });
}

/// A device that holds everything and does not take its superblock.
#[derive(Clone)]
struct Stubborn(Arc<Mutex<u32>>);

impl MemberStore for Stubborn {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn submit(&mut self, request: MemberRequest) {
        let is_superblock = request.at() == Sector(8) && request.op() == IoOp::Write;
        if is_superblock && request.payload().starts_with(&0xa92b_4efc_u32.to_le_bytes()) {
            *self.0.lock().unwrap() += 1;
            return request.complete(IoOutcome::Gone);
        }
        if request.op() == IoOp::Read {
            let zeroes = vec![0; request.len().bytes() as usize];
            return request.complete_read(&zeroes);
        }
        request.complete(IoOutcome::Ok);
    }
}

/// Others name a replacement with the update in which it gets its superblock: when it does not take it, they are
/// told once more.
#[test]
fn a_replacement_that_fails_as_it_takes_over_is_named_no_more() {
    let directory = TestDirectory::new();
    let files = created(directory.path(), Version::V1_2, WantedBitmap::None);
    let before = seen(&files[2]).superblock().unwrap().events;
    let stubborn = Stubborn(Arc::default());
    let mut engine = assemble(&files[..3]);
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    engine.replace(ONE, Member::from(stubborn.clone()), true).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    assert_eq!(*stubborn.0.lock().unwrap(), 1);
    let events = engine.take_events();
    assert!(events.contains(&Event::ReplacementFailed(ONE)), "{events:?}");
    // Nobody who asks for nothing is told when that is recorded: by the third update.
    let is_recorded = || {
        let found = seen(&files[2]);
        let one = found.superblock().unwrap();
        one.events >= before + 3 && one.roles[3] == Role::Spare
    };
    let mut tries = 0..300;
    while !is_recorded() && tries.next().is_some() {
        engine.settle(Duration::from_millis(10)).unwrap();
    }
    engine.flush().unwrap();
    check(&files, "at once");
    engine.stop().unwrap();
    check(&files, "stopped");
}

#[test]
fn a_replacement_that_took_over_is_the_member() {
    each(|files, told| {
        let (fresh, members) = files.split_last().unwrap();
        let mut engine = replacing(files);
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        engine.stop().unwrap();
        let found = seen(fresh);
        let one = found.superblock().unwrap();
        let is_replacement = one.features.has(Features::REPLACEMENT);
        assert_eq!((one.role(), is_replacement), (Role::Member(1), false), "{told}");
        let other = seen(&members[0]);
        let roles = &other.superblock().unwrap().roles;
        assert_eq!(roles[..4], [0, 0xfffe, 2, 1].map(Role::from), "{told}");
    });
}
