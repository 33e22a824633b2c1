//! Drives that are back in their place of a running array: which may come back as they are, and that all is right then.

use crate::support::carried::carries;
use crate::support::records::{IDENTITY, Records};
use crate::support::{Driver, Word};
use raidlab_core::consistency::{AssembleError, Examined, Finding, ReturnRefusal, Unusable};
use raidlab_core::contract::{
    Admin, Epoch, Input, IoOp, IoOutcome, Outcome, Record, Segment, Superblock,
};
use raidlab_core::{
    Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors,
};
use raidlab_random::SplitMix64;

const MEMBER: u64 = 256;
const FORCED: Word = Word { missing: true, dirty_degraded: false };

fn config(level: Level, members: u16) -> Config {
    let mut layout = Layout::new(level, members);
    if level.has_chunks() {
        layout = layout.with_chunk(Sectors(8));
    }
    let mut config = Config::uniform(layout, Sectors(MEMBER));
    config.limits = Limits { requests: 2, segments: 2, ios: 1, plans: 1, windows: 1 };
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
    config.settings.clean_after = Nanos(30);
    config.settings.bitmap_delay = Nanos(30);
    config
}

/// An array, and what it should hold.
struct World {
    config: Config,
    driver: Driver,
    flat: Vec<u8>,
    random: SplitMix64,
}

impl World {
    fn new(config: &Config, seed: u64) -> Self {
        let mut driver = Driver::new(config);
        let capacity = driver.array.capacity().0;
        let mut random = SplitMix64::new(seed);
        let flat: Vec<u8> = (0..capacity).map(|_| random.next_u64() as u8).collect();
        assert_eq!(driver.write(0, &flat), Outcome::Done);
        driver.run_until_idle(60);
        Self { config: config.clone(), driver, flat, random }
    }

    /// Writes here and there.
    fn write(&mut self, times: u64) {
        for _ in 0..times {
            let at = self.random.below(self.flat.len() as u64);
            let value = self.random.next_u64() as u8;
            self.flat[at as usize] = value;
            assert_eq!(self.driver.write(at, &[value]), Outcome::Done);
        }
    }

    fn fail(&mut self, member: u16) {
        self.driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
        self.driver.run();
    }

    /// A fresh drive in a failed member's place.
    fn add(&mut self, member: u16) {
        self.driver.records.wipe(member);
        self.driver.members[usize::from(member)].fill(0xdd);
        let member = MemberIndex(member);
        self.driver.input(Input::Admin(Admin::Add { member, sectors: Sectors(MEMBER) }));
    }

    /// Goes on until a rebuild is recorded to be half done.
    fn rebuild_half(&mut self) {
        for _ in 0..100_000 {
            let now = self.driver.array.superblock();
            if now.rebuilding != [0; 2] && now.rebuilt_to >= Sector(MEMBER / 2) {
                return;
            }
            if self.driver.work.is_empty() {
                let at = self.driver.wake.take().expect("it goes on");
                self.driver.now = self.driver.now.max(at);
                self.driver.input(Input::Wake);
            } else {
                self.driver.step(0);
            }
        }
        panic!("no rebuild comes to its half");
    }

    fn judge(&self, member: u16) -> Result<Admin, ReturnRefusal> {
        self.driver.judge_return(&self.config, MemberIndex(member))
    }

    /// A drive comes back, and everything is right without any other member.
    fn come_back(&mut self, member: u16) {
        let command = self.judge(member).expect("it may come back");
        self.driver.input(Input::Admin(command));
        self.write(20);
        self.driver.run_until_idle(400);
        let members = self.config.layout.members;
        assert_eq!(self.driver.in_service().len(), usize::from(members), "{}", self.config.layout);
        for other in (0..members).filter(|m| *m != member) {
            let mut config = self.config.clone();
            config.settings.consistency = Consistency::None;
            let found = self.driver.records.found(&config, &self.driver.members, &[other]);
            let array = Word::default().start(&config, &found).expect("one may be lost");
            let mut without = self.driver.with_members(array, &config);
            let read = without.read(0, self.flat.len() as u32).expect("one is lost");
            let wrong = read.iter().zip(&self.flat).filter(|(read, flat)| read != flat).count();
            assert_eq!(wrong, 0, "{}: without {other}", self.config.layout);
        }
    }
}

fn levels() -> [Config; 5] {
    [
        config(Level::Raid1, 2),
        config(Level::Raid1, 3),
        config(Level::Raid5, 4),
        config(Level::Raid6, 5),
        config(Level::Raid10, 4),
    ]
}

/// A drive that is half rebuilt leaves, and comes back: at once, after a start without it, or as a copy.
#[test]
fn a_drive_that_is_half_rebuilt_is_rebuilt_from_there() {
    for config in levels() {
        for way in 0..4 {
            let mut world = World::new(&config, way);
            world.fail(1);
            world.write(10);
            world.add(1);
            world.rebuild_half();
            // A copy is made, and the drive goes on until it fails.
            let (records, bytes) = (world.driver.records.clone(), world.driver.members[1].clone());
            if way == 3 {
                world.driver.run_until_idle(2);
            }
            world.fail(1);
            world.write(30);
            if way == 1 || way == 3 {
                world.driver.run_until_idle(60);
                world.driver.reassemble(&config, &[1], FORCED).expect("one may be lost");
                world.write(10);
            }
            if way >= 2 {
                take_drive(&mut world.driver, 1, &records, bytes);
            }
            let Ok(Admin::ReAdd { good_to, .. }) = world.judge(1) else {
                panic!("{}: {:?}", config.layout, world.judge(1))
            };
            assert!(good_to < Sector(MEMBER), "{}: {good_to:?}", config.layout);
            world.come_back(1);
        }
    }
}

/// A fresh drive may be told of the update that names its place as failed before it is told that it is rebuilt. Gone
/// then, it holds nothing that it could come back with as a whole one.
/// What the list on a drive calls bad may hold anything: from there on it is rebuilt as a fresh one.
#[test]
fn a_drive_with_a_list_of_bad_blocks_is_rebuilt_from_the_first_on() {
    let mut world = World::new(&levels()[0], 3);
    world.fail(1);
    world.write(3);
    let records = &world.driver.records;
    let mut found = records.found(&world.config, &world.driver.members, &[]).members[1].clone();
    let good_to = |found: &Examined| match world.driver.array.judge_return(
        &IDENTITY,
        MemberIndex(1),
        found,
    ) {
        Ok(Admin::ReAdd { good_to, .. }) => good_to,
        other => panic!("{other:?}"),
    };
    assert_eq!(good_to(&found), Sector::MAX);
    found.bad = vec![(Sector(40), Sectors(8)), (Sector(16), Sectors(1))];
    assert_eq!(good_to(&found), Sector(16));
    // Its own rebuild had not come so far, or further.
    for (rebuilt_to, expected) in [(8, 8), (16, 16), (24, 16)] {
        let Finding::Whole(carried) = &mut found.superblock else { panic!("{found:?}") };
        (carried.superblock.rebuilding, carried.superblock.by_bitmap) = ([2, 0], false);
        carried.superblock.rebuilt_to = Sector(rebuilt_to);
        assert_eq!(good_to(&found), Sector(expected), "rebuilt up to {rebuilt_to}");
    }
}

#[test]
fn a_drive_that_was_only_just_added_never_comes_back_as_whole() {
    for config in levels() {
        let mut world = World::new(&config, 3);
        // The first update after a start tells of the missing member, and waits for a write.
        world.driver.reassemble(&config, &[1], FORCED).expect("one may be lost");
        let token = world.driver.buffer(vec![0x55]);
        world.driver.submit(IoOp::Write, 0, &[Segment { token, offset: 0, len: 1 }]);
        world.flat[0] = 0x55;
        world.driver.meta_fault = Box::new(|meta| match meta.record {
            Record::Superblock(said) if meta.member.0 == 1 && said.rebuilding != [0; 2] => {
                IoOutcome::Gone
            }
            _ => IoOutcome::Ok,
        });
        world.add(1);
        world.driver.run();
        world.driver.meta_fault = Box::new(|_| IoOutcome::Ok);
        let own = world.driver.records.superblock(1).expect("it was told of an update");
        assert_eq!((own.failed, own.rebuilding), ([2, 0], [0, 0]), "{}", config.layout);
        world.write(10);
        if let Ok(Admin::ReAdd { good_to, .. }) = world.judge(1) {
            assert!(good_to < Sector(MEMBER), "{}: it was never rebuilt", config.layout);
            world.come_back(1);
        }
    }
}

/// Puts another drive into a member's place, with what is on it.
fn take_drive(driver: &mut Driver, member: u16, records: &Records, bytes: Vec<u8>) {
    driver.members[usize::from(member)] = bytes;
    driver.records.take(member, records);
}

/// Two halves go on alone in any order of starts: none is ever taken back by the other once both did.
#[test]
fn halves_that_both_went_on_are_never_joined() {
    let config = config(Level::Raid1, 2);
    let (mut joined, mut refused) = (0, 0);
    for length in 1..=4 {
        for order in 0..1u32 << length {
            let sides: Vec<u16> = (0..length).map(|k| (order >> k & 1) as u16).collect();
            for rests in [false, true] {
                let mut world = World::new(&config, u64::from(order));
                let common = world.flat.clone();
                let mut flats = [common.clone(), common];
                for side in &sides {
                    let lost = [1 - side];
                    world.driver.reassemble(&config, &lost, FORCED).expect("half may start");
                    world.driver.input(Input::Wake);
                    world.flat.clone_from(&flats[usize::from(*side)]);
                    world.write(3);
                    flats[usize::from(*side)].clone_from(&world.flat);
                    if rests {
                        world.driver.run_until_idle(60);
                    }
                }
                let last = sides[sides.len() - 1];
                let other = 1 - last;
                let both = sides.contains(&other);
                match world.judge(other) {
                    Ok(_) => {
                        assert!(!both, "{sides:?}");
                        world.come_back(other);
                        joined += 1;
                    }
                    Err(reason) => {
                        assert!(both, "{sides:?}: {reason}");
                        let is_told = matches!(
                            reason,
                            ReturnRefusal::Newer { .. } | ReturnRefusal::OtherHistory
                        );
                        assert!(is_told, "{sides:?}: {reason}");
                        let apart = world.driver.reassemble(&config, &[], FORCED);
                        let is_apart = matches!(apart, Err(AssembleError::Diverged { .. }));
                        assert!(is_apart, "{sides:?}: {apart:?}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert_eq!((joined, refused), (16, 44));
}

/// A member that was away for many starts, others leaving and coming back meanwhile, is still known.
#[test]
fn a_member_is_known_after_many_starts() {
    let config = config(Level::Raid1, 3);
    let mut world = World::new(&config, 3);
    world.fail(1);
    for round in 0..12 {
        world.write(2);
        world.driver.run_until_idle(60);
        let gone = if round == 5 { vec![1, 2] } else { vec![1] };
        world.driver.reassemble(&config, &gone, FORCED).expect("one may start");
        if round == 6 {
            let back = world.judge(2).expect("it may");
            world.driver.input(Input::Admin(back));
            world.driver.run_until_idle(200);
        }
    }
    if world.driver.array.is_failed(MemberIndex(2)) {
        let back = world.judge(2).expect("it may");
        world.driver.input(Input::Admin(back));
        world.driver.run_until_idle(200);
    }
    world.come_back(1);
}

#[test]
fn a_drive_that_may_not_come_back_is_told_why() {
    let config = config(Level::Raid1, 2);
    let mut world = World::new(&config, 1);
    world.driver.run_until_idle(60);
    let known = world.driver.records.superblock(1).expect("it was in service");
    world.fail(1);
    world.write(3);
    world.driver.run();
    let array = &world.driver.array;
    let ours = world.driver.records.superblock(0).expect("there");
    let judge = |found: &Examined| array.judge_return(&IDENTITY, MemberIndex(1), found);
    let of = |superblock| carries(&config, 1, superblock);
    let unusable = |why| Err(ReturnRefusal::Unusable(why));
    let command = judge(&of(known)).expect("it may come back");
    assert!(matches!(command, Admin::ReAdd { good_to: Sector::MAX, .. }));
    let with = |superblock| Examined { superblock, ..of(known) };
    for (finding, why) in [
        (Finding::Absent, Unusable::Absent),
        (Finding::Blank, Unusable::Blank),
        (Finding::Foreign, Unusable::Foreign),
        (Finding::Unsupported("an old one"), Unusable::Unsupported("an old one")),
        (Finding::Damaged(None), Unusable::Damaged),
    ] {
        assert_eq!(judge(&with(finding)), unusable(why));
    }
    let Finding::Whole(carried) = of(known).superblock else { panic!("whole") };
    let unreadable = Finding::Unreadable(Some(carried));
    assert_eq!(judge(&with(unreadable)), unusable(Unusable::Unreadable));
    let out_of_place = Unusable::OutOfPlace { device: 0, members: 2 };
    assert_eq!(judge(&carries(&config, 0, known)), unusable(out_of_place));
    let other = array.judge_return(&[9; 16], MemberIndex(1), &of(known));
    assert_eq!(other, unusable(Unusable::AnotherArray));
    let large = Examined { logical_block: 8, ..of(known) };
    assert_eq!(judge(&large), unusable(Unusable::LargeBlock { block: 8, most: 1 }));
    let mut mode = config.clone();
    mode.settings.consistency = Consistency::Bitmap { chunk: Sectors(16) };
    assert_eq!(judge(&carries(&mode, 1, known)), unusable(Unusable::OtherParameters));
    let (events, newer) = (ours.events, ours.events + 1);
    let ahead = judge(&of(Superblock { events: newer, ..known }));
    assert_eq!(ahead, Err(ReturnRefusal::Newer { events: newer, ours: events }));
    let mut forked = known;
    forked.history[1] = forked.history[0];
    forked.history[0] = Epoch { id: 99, from: 2 };
    assert_eq!(judge(&of(forked)), Err(ReturnRefusal::OtherHistory));
    let late = Superblock { events: ours.events - 1, ..ours };
    assert_eq!(judge(&of(late)), Err(ReturnRefusal::TooOld), "it left before");
    let text = ReturnRefusal::TooOld.to_string();
    assert!(text.ends_with("add it: everything on it will be rebuilt"), "{text}");
}

/// A copy of a member that was made before bits were cleared lacks what they stood for, also when the array was
/// written to all the time, so that nothing else was recorded since. Whoever leaves later comes back by the bitmap,
/// though no more than the clearing was recorded.
#[test]
fn a_copy_from_before_bits_were_cleared_does_not_come_back_by_them() {
    for (mut config, is_copy) in
        levels().into_iter().flat_map(|one| [(one.clone(), true), (one, false)])
    {
        config.settings.clean_after = Nanos(1_000_000);
        let mut world = World::new(&config, 9);
        world.write(1);
        let (records, bytes) = (world.driver.records.clone(), world.driver.members[1].clone());
        world.write(30);
        while (0..32).any(|bit| world.driver.records.bit(0, bit)) {
            let at = world.driver.wake.take().expect("bits are looked for");
            world.driver.now = world.driver.now.max(at);
            world.driver.input(Input::Wake);
            world.driver.run();
        }
        assert!(!world.driver.array.superblock().clean, "{}", config.layout);
        world.fail(1);
        world.write(10);
        if is_copy {
            take_drive(&mut world.driver, 1, &records, bytes);
            assert_eq!(world.judge(1), Err(ReturnRefusal::TooOld), "{}", config.layout);
        } else {
            world.come_back(1);
        }
    }
}

/// The bitmap reaches back to certain events, and not to those before; of the newest there is one state.
#[test]
fn a_drive_comes_back_from_the_events_on_that_the_bitmap_reaches_back_to() {
    let config = config(Level::Raid1, 2);
    let mut world = World::new(&config, 5);
    world.driver.run_until_idle(400);
    let known = world.driver.records.superblock(1).expect("it was in service");
    let since = world.driver.array.superblock().bitmap_since;
    assert!(since > 1, "bits were cleared");
    world.fail(1);
    let array = &world.driver.array;
    let judge = |superblock| {
        array.judge_return(&IDENTITY, MemberIndex(1), &carries(&config, 1, superblock))
    };
    let back = |events, good_to| Ok(Admin::ReAdd { member: MemberIndex(1), events, good_to });
    let left = Superblock { events: since, ..known };
    assert_eq!(judge(left), back(since, Sector::MAX));
    let before = Superblock { events: since - 1, ..known };
    assert_eq!(judge(before), Err(ReturnRefusal::TooOld));
    // Being rebuilt when it left: from the start, or by the bitmap only.
    let (rebuilt_to, by_bitmap) = (Sector(24), false);
    let rebuilding = Superblock { rebuilding: [0b10, 0], rebuilt_to, by_bitmap, ..left };
    assert_eq!(judge(rebuilding), back(since, Sector(24)));
    assert_eq!(judge(Superblock { by_bitmap: true, ..rebuilding }), back(since, Sector::MAX));
    let ours = world.driver.records.superblock(0).expect("there");
    let other = Superblock { clean: !ours.clean, ..ours };
    assert_eq!(judge(other), Err(ReturnRefusal::OtherHistory));
}
