//! Members of md arrays that are replaced while they serve: superblocks name the replacement, as md's do, so that the
//! copy goes on after a stop or a power cut; what ends it for good leaves a whole array that does not name it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::TestDirectory;
use crate::made::{creation, name, pattern};
use raidlab_core::contract::{Admin, Event, IoOp, IoOutcome, Pacing};
use raidlab_core::{MemberIndex, Nanos, Sector, Sectors};
use raidlab_engine::{
    Engine, FileMember, FileOptions, MdOptions, Member, MemberRequest, MemberStore, MemoryMember,
};
use raidlab_metadata::md::{
    BitmapSeen, Creation, Features, Inspected, Role, Version, WantedBitmap, Why, inspect,
};

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

/// What is on the members is an array that md and mdadm find to be whole, and that names the fresh device, which says
/// what it is then, or does not.
fn check(files: &[PathBuf], names: bool, told: &str) {
    let (fresh, members) = files.split_last().unwrap();
    if names {
        let found = seen(fresh);
        let one = found.superblock().expect(told);
        assert!(one.features.has(Features::REPLACEMENT), "{told}");
        assert_eq!(one.role(), Role::Member(1), "{told}");
    }
    for (place, path) in members.iter().enumerate() {
        let found = seen(path);
        let one = found.superblock().unwrap();
        let named = one.roles.iter().filter(|role| matches!(role, Role::Member(_))).count();
        assert_eq!(
            (one.role(), named),
            (Role::Member(place as u16), if names { 4 } else { 3 }),
            "{told}: {:?}",
            &one.roles[..6]
        );
        let Ok(said) = Command::new("mdadm").arg("--examine").arg(path).output() else { continue };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let state = if names { "Array State : ARA " } else { "Array State : AAA " };
        assert!(said.contains(state), "{told}: {said}");
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

/// Goes on with all devices until nothing is left to do; what was told of the replacement.
fn finish(files: &[PathBuf], told: &str) -> String {
    let devices = files.iter().map(|path| open(path)).collect();
    let (mut engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
    let notes = found.joined.notes.join("\n");
    assert_eq!(found.joined.out, [], "{told}");
    assert_ne!(engine.array().status().replacing, [0; 2], "{told}: it goes on");
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    engine.finish_background(&AtomicBool::new(false)).unwrap();
    let events = engine.take_events();
    assert!(events.contains(&Event::Replaced(ONE)), "{told}: {events:?}");
    assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
    engine.stop().unwrap();
    notes
}

#[test]
fn a_stop_while_a_member_is_replaced_is_gone_on_with() {
    each(|files, told| {
        replacing(files).stop().unwrap();
        check(files, true, told);
        finish(files, told);
    });
}

#[test]
fn a_power_cut_while_a_member_is_replaced_is_gone_on_with() {
    each(|files, told| {
        let engine = replacing(files);
        check(files, true, told);
        // Nothing more is written.
        drop(engine);
        check(files, true, told);
        finish(files, told);
    });
}

#[test]
fn an_array_goes_on_without_what_was_to_replace_a_member() {
    each(|files, told| {
        replacing(files).stop().unwrap();
        let mut engine = assemble(&files[..3]);
        assert_eq!(engine.array().status().failed, [0; 2], "{told}");
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
        engine.stop().unwrap();
        drop(engine);
        check(files, false, told);
        let devices = files.iter().map(|path| open(path)).collect();
        let (_engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
        let out: Vec<_> = found.joined.out.iter().map(|out| (out.given, &out.why)).collect();
        assert!(matches!(out[..], [(3, Why::Failed | Why::Stale(..))]), "{told}: {out:?}");
    });
}

#[test]
fn a_copy_that_is_given_up_leaves_a_whole_array() {
    each(|files, told| {
        let mut engine = replacing(files);
        engine.admin(Admin::StopBackground).unwrap();
        engine.write_at(Sector(640), &pattern(64 << 10, 7)).unwrap();
        check(files, false, told);
        engine.stop().unwrap();
        check(files, false, told);
    });
}

/// A device whose writes behind a sector never end.
#[derive(Clone)]
struct Held {
    bytes: Arc<Mutex<Vec<u8>>>,
    from: Sector,
    kept: Arc<Mutex<Vec<MemberRequest>>>,
}

impl MemberStore for Held {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut bytes = self.bytes.lock().unwrap();
        let at = request.at().bytes() as usize;
        match request.op() {
            IoOp::Read => {
                let len = request.len().bytes() as usize;
                request.complete_read(&bytes[at..at + len]);
            }
            IoOp::Write if request.at() >= self.from => self.kept.lock().unwrap().push(request),
            IoOp::Write => {
                let payload = request.payload();
                bytes[at..at + payload.len()].copy_from_slice(payload);
                request.complete(IoOutcome::Ok);
            }
            _ => request.complete(IoOutcome::Ok),
        }
    }
}

/// Works until something is so.
fn until(engine: &mut Engine, mut is_so: impl FnMut() -> bool, told: &str) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        engine.settle(Duration::from_millis(5)).unwrap();
    }
    panic!("{told}: it does not come to that");
}

/// The power goes when half of a copy is made, while something is being written or not; where the data start, and how
/// far the copy is by its superblock. What it has is spoilt in the first chunk and in the last.
fn half_replaced(files: &[PathBuf], writes: bool, told: &str) -> (u64, u64) {
    let (fresh, members) = files.split_last().unwrap();
    let mut options = MdOptions::default();
    (options.settings.clean_after, options.settings.bitmap_delay) =
        (Nanos::from_millis(1), Nanos::from_millis(1));
    let devices = members.iter().map(|path| open(path)).collect();
    let (mut engine, _) = Engine::assemble_md(devices, &options).unwrap();
    engine.write_at(Sector(0), &pattern(3 << 20, 3)).unwrap();
    let is_quiet = || {
        let found = seen(&members[0]);
        let bits = matches!(found.bitmap, BitmapSeen::Found(_, Some(bits)) if bits > 0);
        !bits && found.superblock().unwrap().is_clean()
    };
    until(&mut engine, is_quiet, told);
    let start = seen(&members[0]).superblock().unwrap().data_offset;
    let half = Sector(start + (SECTORS - start) / 2);
    let bytes = Arc::new(Mutex::new(vec![0; (SECTORS * 512) as usize]));
    let held = Held { bytes: bytes.clone(), from: half, kept: Arc::default() };
    engine.replace(ONE, Member::from(held), true).unwrap();
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    let how_far = || {
        let one = seen(&members[0]).superblock().unwrap().clone();
        let mut own = MemoryMember::new(Sectors(SECTORS)).unwrap();
        own.bytes_mut().copy_from_slice(&bytes.lock().unwrap());
        let own = inspect(&mut Member::Memory(own)).superblock().and_then(|own| own.rebuilt_to());
        own.filter(|to| one.roles[3] == Role::Member(1) && *to > 0)
    };
    until(&mut engine, || how_far().is_some(), told);
    if writes {
        engine.write_at(Sector(0), &pattern(64 << 10, 4)).unwrap();
    }
    let to = how_far().expect(told);
    let mut own = bytes.lock().unwrap().clone();
    for at in [start, last(start, to)] {
        own[(at * 512) as usize..][..512].fill(0xaa);
    }
    fs::write(fresh, &own).unwrap();
    (start, to)
}

/// Where the last chunk starts that a copy has.
fn last(start: u64, to: u64) -> u64 {
    start + (to - 1) / 128 * 128
}

/// What was copied is not copied again, but where something was being written, which the bitmap names.
#[test]
fn a_replacement_goes_on_where_it_was() {
    let directory = TestDirectory::new();
    let (none, chunks) = (WantedBitmap::None, WantedBitmap::Chunk(Sectors(128)));
    for (bitmap, writes, spoilt) in [
        (none, false, [true, true]),
        (chunks, false, [true, true]),
        (chunks, true, [false, true]),
        (none, true, [false, false]),
    ] {
        let told = format!("{bitmap:?}, {writes}");
        let files = created(directory.path(), Version::V1_2, bitmap);
        let (start, to) = half_replaced(&files, writes, &told);
        let devices = files.iter().map(|path| open(path)).collect();
        let (mut engine, found) = Engine::assemble_md(devices, &MdOptions::default()).unwrap();
        let from = if bitmap == none && writes { 0 } else { to };
        let note = format!("goes on replacing member 1, from sector {from} of it on");
        let notes = &found.joined.notes;
        assert!(notes.iter().any(|one| one.contains(&note)), "{told}: {notes:?}");
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert!(engine.take_events().contains(&Event::Replaced(ONE)), "{told}");
        let copied = fs::read(&files[3]).unwrap();
        let is_spoilt = |at: u64| copied[(at * 512) as usize..][..512].iter().all(|it| *it == 0xaa);
        assert_eq!([start, last(start, to)].map(is_spoilt), spoilt, "{told}");
    }
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
fn a_replacement_that_fails_is_named_no_more() {
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
    // Nobody who asks for nothing is told when that is recorded: by the second update.
    let is_recorded = || {
        let found = seen(&files[2]);
        let one = found.superblock().unwrap();
        one.events >= before + 2 && one.roles[3] == Role::Spare
    };
    let mut tries = 0..300;
    while !is_recorded() && tries.next().is_some() {
        engine.settle(Duration::from_millis(10)).unwrap();
    }
    engine.flush().unwrap();
    check(&files, false, "at once");
    engine.stop().unwrap();
    check(&files, false, "stopped");
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
