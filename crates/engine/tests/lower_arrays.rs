//! Arrays of Linux md over arrays of Linux md, on drives in memory with caches: written, cut off, degraded and rebuilt
//! on both floors.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::made::{creation, pattern};
use crate::power::{Drive, cut};
use raidlab_core::contract::{Event, IoOp, Pacing, Segment};
use raidlab_core::{MemberIndex, Nanos, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, LowerArray, MdOptions, Member};
use raidlab_metadata::md::{Creation, Device, Made, WantedBitmap};

const SECTORS: u64 = 8192;

/// A new array of this layout on these drives, with an identity of its own.
fn create(layout: &str, number: u8, bitmap: WantedBitmap, sectors: u64) -> Vec<Made> {
    let of = creation(layout.parse().unwrap(), sectors);
    let device = |place: u8| Device { sectors: Sectors(sectors), id: [16 * number + place; 16] };
    let devices = (0..of.layout.members as u8).map(|place| Some(device(place))).collect();
    let array = [number; 16];
    let made = Creation { devices, bitmap, array, name: format!("host:{number}"), ..of };
    made.plan().unwrap().members.into_iter().flatten().collect()
}

/// A drive with what a new array has on it.
fn drive(made: &Made) -> Drive {
    let drive = Drive::new(SECTORS);
    made.pieces.iter().for_each(|(at, bytes)| drive.put(at.0, bytes));
    drive
}

/// Drives as they are after the power went: nothing of what was not flushed.
fn after_a_cut(all: &[Vec<Drive>]) -> Vec<Vec<Drive>> {
    let mut left = cut(all.iter().flatten(), |_| 0).into_iter();
    all.iter().map(|floor| left.by_ref().take(floor.len()).collect()).collect()
}

fn options() -> MdOptions {
    let mut options = MdOptions { run: true, ..MdOptions::default() };
    options.allowed.dirty_degraded = true;
    options.settings.clean_after = Nanos::from_millis(1);
    options.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    options
}

fn start(drives: &[Drive]) -> Result<LowerArray, EngineError> {
    let devices: Vec<Member> = drives.iter().cloned().map(Member::from).collect();
    LowerArray::new(|| Engine::assemble_md(devices, &options())).map(|(array, _)| array)
}

fn upper(lower: &[LowerArray]) -> Engine {
    Engine::assemble_md(lower.iter().map(LowerArray::member).collect(), &options()).unwrap().0
}

fn finish(engine: &mut Engine) {
    engine.finish_background(&AtomicBool::new(false)).unwrap();
}

fn settled(lower: &LowerArray) {
    lower.with(finish).unwrap();
}

fn scrub(engine: &mut Engine) -> Sectors {
    engine.scrub(&AtomicBool::new(false)).unwrap()
}

/// `above` over two arrays of `below`, with nothing on them.
struct Stack {
    drives: Vec<Vec<Drive>>,
    lower: Vec<LowerArray>,
    upper: Engine,
}

impl Stack {
    fn new(above: &str, below: &str, arrays: u8, bitmap: WantedBitmap) -> Self {
        let floor = |number: u8| -> Vec<Drive> {
            create(below, number + 1, bitmap, SECTORS).iter().map(drive).collect()
        };
        let drives: Vec<Vec<Drive>> = (0..arrays).map(floor).collect();
        let lower: Vec<LowerArray> = drives.iter().map(|one| start(one).unwrap()).collect();
        let bitmap = if above.starts_with("raid0") { WantedBitmap::None } else { bitmap };
        for (lower, made) in lower.iter().zip(create(above, 9, bitmap, lower[0].sectors().0)) {
            write(lower, made);
        }
        let upper = upper(&lower);
        Self { drives, lower, upper }
    }

    fn stop(mut self) -> Vec<Vec<Drive>> {
        self.upper.stop().unwrap();
        drop(self.upper);
        for lower in &self.lower {
            assert!(!lower.is_member(), "the array above is there no more");
            lower.with(Engine::stop).unwrap().unwrap();
        }
        self.drives
    }
}

/// Writes the superblock of an array above.
fn write(lower: &LowerArray, made: Made) {
    let write = move |engine: &mut Engine| {
        for (at, bytes) in &made.pieces {
            engine.write_at(*at, bytes).unwrap();
        }
        engine.flush().unwrap();
    };
    lower.with(write).unwrap();
}

const STACKS: [(&str, &str, u8); 3] = [
    ("raid0(2) chunk=64K", "raid5(3) chunk=64K", 2),
    ("raid1(2)", "raid0(2) chunk=64K", 2),
    ("raid5(3) chunk=64K", "raid1(2)", 3),
];

/// A stack is written and stopped, found again on its drives, and redundancy agrees on both floors.
#[test]
fn a_stack_is_found_again_on_its_drives() {
    for (above, below, arrays) in STACKS {
        let mut stack = Stack::new(above, below, arrays, WantedBitmap::None);
        let data = pattern(1 << 20, 7);
        stack.upper.write_at(Sector(80), &data).unwrap();
        let drives = stack.stop();
        let lower: Vec<_> = drives.iter().map(|one| start(one).unwrap()).collect();
        // In any order.
        let members = lower.iter().rev().map(LowerArray::member).collect();
        let (mut upper, found) = Engine::assemble_md(members, &options()).unwrap();
        assert_eq!(found.joined.layout.to_string(), above);
        assert_eq!(upper.beginning().resync, Sectors(0), "{above}: it was stopped in order");
        let mut read = vec![0; data.len()];
        upper.read_at(Sector(80), &mut read).unwrap();
        assert!(read == data, "{above} over {below}");
        if !above.starts_with("raid0") {
            assert_eq!(scrub(&mut upper), Sectors(0), "{above} over {below}");
        }
        if !below.starts_with("raid0") {
            assert!(lower.iter().all(|one| one.with(scrub).unwrap() == Sectors(0)), "{below}");
        }
    }
}

/// What was flushed is there after the power went, on every drive without what its cache held; redundancy agrees after
/// the resyncs that are due.
#[test]
fn what_was_flushed_survives_a_power_cut_below() {
    for bitmap in [WantedBitmap::None, WantedBitmap::Internal] {
        for (above, below, arrays) in STACKS {
            let is_mirror = below.starts_with("raid1");
            let bitmap =
                if is_mirror || above.starts_with("raid0") { bitmap } else { WantedBitmap::None };
            let mut stack = Stack::new(above, below, arrays, bitmap);
            let data = pattern(512 << 10, 11);
            stack.upper.write_at(Sector(16), &data).unwrap();
            stack.upper.flush().unwrap();
            // Not flushed: it may be there or not.
            stack.upper.write_at(Sector(2048), &data[..64 << 10]).unwrap();
            let drives = after_a_cut(&stack.drives);
            drop(stack);
            let lower: Vec<_> = drives.iter().map(|one| start(one).unwrap()).collect();
            let mut upper = upper(&lower);
            let mut read = vec![0; data.len()];
            upper.read_at(Sector(16), &mut read).unwrap();
            assert!(read == data, "{above} over {below}: what was flushed is lost");
            lower.iter().for_each(settled);
            finish(&mut upper);
            if !above.starts_with("raid0") {
                assert_eq!(scrub(&mut upper), Sectors(0), "{above} over {below}");
            }
            if !below.starts_with("raid0") {
                assert!(lower.iter().all(|one| one.with(scrub).unwrap() == Sectors(0)));
            }
        }
    }
}

/// What an array is told to keep at once it keeps through both floors; and an array above is called clean only when
/// all that it wrote is durable below.
#[test]
fn durable_writes_and_clean_superblocks_are_kept_through_both_floors() {
    let mut stack = Stack::new("raid1(2)", "raid0(2) chunk=64K", 2, WantedBitmap::None);
    let data = pattern(64 << 10, 13);
    let token = stack.upper.allocate(data.len() as u64).unwrap();
    stack.upper.bytes_mut(token).unwrap().copy_from_slice(&data);
    let segment = Segment { token, offset: 0, len: 128 };
    stack.upper.submit(IoOp::Write, Sector(256), &[segment], true).unwrap();
    stack.upper.run_until_idle(&mut Vec::new()).unwrap();
    let cut = after_a_cut(&stack.drives);
    let lower: Vec<_> = cut.iter().map(|one| start(one).unwrap()).collect();
    let mut read = vec![0; data.len()];
    upper(&lower).read_at(Sector(256), &mut read).unwrap();
    assert!(read == data, "it was to be durable");
    // Until the superblocks above say clean; then only the second copy loses what its caches hold.
    stack.upper.write_at(Sector(1024), &data).unwrap();
    stack.upper.settle(Duration::from_secs(60)).unwrap();
    let second = after_a_cut(&stack.drives[1..]).remove(0);
    let drives = [stack.drives[0].clone(), second];
    drop((stack.upper, stack.lower));
    let lower: Vec<_> = drives.iter().map(|one| start(one).unwrap()).collect();
    let mut upper = upper(&lower);
    assert_eq!(upper.beginning().resync, Sectors(0), "it was clean");
    assert_eq!(scrub(&mut upper), Sectors(0));
}

/// A drive is lost and rebuilt below, which the array above does not notice.
#[test]
fn a_drive_is_rebuilt_in_its_own_array() {
    let mut stack = Stack::new("raid0(2) chunk=64K", "raid5(3) chunk=64K", 2, WantedBitmap::None);
    let data = pattern(1 << 20, 3);
    stack.upper.write_at(Sector(0), &data).unwrap();
    for floor in &stack.drives {
        floor[1].turn_off();
    }
    stack.upper.write_at(Sector(512), &data).unwrap();
    stack.upper.flush().unwrap();
    assert_eq!(stack.upper.take_events(), []);
    for lower in &stack.lower {
        let events = lower.with(Engine::take_events).unwrap();
        assert!(events.contains(&Event::MemberFailed(MemberIndex(1))), "{events:?}");
        let fresh = Drive::new(SECTORS);
        lower.with(move |engine| engine.add_spare(Member::from(fresh))).unwrap().unwrap();
        assert_eq!(lower.with(Engine::use_spare).unwrap().unwrap(), Some(MemberIndex(1)));
        settled(lower);
        assert_eq!(lower.with(scrub).unwrap(), Sectors(0));
    }
    let mut read = vec![0; data.len()];
    stack.upper.read_at(Sector(512), &mut read).unwrap();
    assert!(read == data);
}

/// An array below that has lost too much is a failed member above, and nothing ends; another array takes its place.
#[test]
fn a_lost_array_is_a_failed_member_of_the_one_above() {
    let mut stack = Stack::new("raid1(2)", "raid5(3) chunk=64K", 2, WantedBitmap::None);
    let data = pattern(1 << 20, 5);
    stack.upper.write_at(Sector(0), &data).unwrap();
    stack.drives[0][0].turn_off();
    stack.drives[0][2].turn_off();
    stack.upper.write_at(Sector(64), &data).unwrap();
    let events = stack.upper.take_events();
    assert!(events.contains(&Event::MemberFailed(MemberIndex(0))), "{events:?}");
    let below = stack.lower[0].with(Engine::take_events).unwrap();
    assert!(below.contains(&Event::ArrayFailed), "{below:?}");
    let mut read = vec![0; data.len()];
    stack.upper.read_at(Sector(64), &mut read).unwrap();
    assert!(read == data);
    drop(stack.upper.take_out(MemberIndex(0)).unwrap());
    assert!(!stack.lower[0].is_member());
    let fresh: Vec<Drive> =
        create("raid5(3) chunk=64K", 7, WantedBitmap::None, SECTORS).iter().map(drive).collect();
    let other = start(&fresh).unwrap();
    stack.upper.add(MemberIndex(0), other.member()).unwrap();
    finish(&mut stack.upper);
    assert_eq!(scrub(&mut stack.upper), Sectors(0));
    stack.upper.fail(MemberIndex(1)).unwrap();
    stack.upper.read_at(Sector(64), &mut read).unwrap();
    assert!(read == data, "it was rebuilt onto the other array");
    stack.drives[0] = fresh;
    stack.lower[0] = other;
    let drives = stack.stop();
    // The one that was not there any more is out of date.
    let lower: Vec<_> = drives.iter().map(|one| start(one).unwrap()).collect();
    let members = lower.iter().map(LowerArray::member).collect();
    let (mut upper, found) = Engine::assemble_md(members, &options()).unwrap();
    assert_eq!(found.joined.order, [Some(0), None]);
    upper.read_at(Sector(64), &mut read).unwrap();
    assert!(read == data);
}

/// What a thread that panicked was asked for, and is asked for later, is answered.
#[test]
fn a_thread_that_panicked_is_a_member_that_is_gone() {
    let stack = Stack::new("raid1(2)", "raid0(2) chunk=64K", 2, WantedBitmap::None);
    let mut upper = stack.upper;
    let ended = stack.lower[1].with(|_| -> () { panic!("as a test") }).unwrap_err();
    assert!(matches!(ended.kind(), EngineErrorKind::Internal), "{ended}");
    assert!(stack.lower[1].with(|_| ()).is_err());
    upper.write_at(Sector(0), &[3; 4096]).unwrap();
    assert!(upper.take_events().contains(&Event::MemberFailed(MemberIndex(1))));
    let nothing = LowerArray::new(|| -> Result<(Engine, ()), EngineError> { panic!("as a test") });
    assert!(nothing.is_err());
}

/// A range that is read begins where it says, and so do the places of its errors.
#[test]
fn a_part_of_an_array_counts_from_its_start() {
    let stack = Stack::new("raid1(2)", "raid0(2) chunk=64K", 2, WantedBitmap::None);
    let mut upper = stack.upper;
    upper.write_at(Sector(0), &pattern(4096, 1)).unwrap();
    let mut whole = vec![0; 4096];
    let start = upper.members_mut().len() as u64;
    assert_eq!(start, 2);
    let mut part = stack.lower[0].part(Sectors(2048), Sectors(64));
    assert_eq!(part.config().sectors, Sectors(64));
    stack.lower[0].member().read_direct(Sector(2048), &mut whole).unwrap();
    let mut read = vec![1; 4096];
    part.read_direct(Sector(0), &mut read).unwrap();
    assert!(read == whole && whole == pattern(4096, 1));
    assert!(part.read_direct(Sector(60), &mut read).is_err(), "it ends there");
    let beyond = stack.lower[0].part(stack.lower[0].sectors(), Sectors(8));
    assert_eq!(beyond.config().sectors, Sectors(0));
}
