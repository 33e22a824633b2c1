//! Ways to lose data through what stands on the members: an array is damaged, aged, mixed up or re-opened
//! with other words, and must be refused or serve what was written. Each of these once went wrong.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common::{Random, eager};
use crate::power::Drive;
use raidlab_core::consistency::{Allow, MetaArea};
use raidlab_core::contract::{Event, Pacing, Refusal, Work};
use raidlab_core::{Consistency, Level, MemberIndex, Nanos, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineError, Member, MemoryMember, log_device_sectors};

const TOTAL: Sectors = Sectors(12_000);
const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(64) };
static RUNNING: AtomicBool = AtomicBool::new(false);

type Devices = (Vec<Option<Member>>, Option<Member>);

fn config(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let mut config = eager(level, members, consistency);
    config.settings.bitmap_delay = Nanos::from_millis(1);
    config
}

fn journal_mode() -> Consistency {
    Consistency::Journal { sectors: Sectors(4096) }
}

fn memory(total: Sectors) -> Member {
    Member::Memory(MemoryMember::new(total).unwrap())
}

fn fresh(config: &EngineConfig) -> Engine {
    let members = (0..config.layout.members).map(|_| memory(TOTAL)).collect();
    let journal = log_device_sectors(config.settings.consistency).map(memory);
    Engine::with_journal(config, members, journal).unwrap()
}

fn duplicate(member: &Member) -> Member {
    let Member::Memory(there) = member else { panic!("in memory") };
    let mut copy = MemoryMember::new(there.sectors()).unwrap();
    copy.bytes_mut().copy_from_slice(there.bytes());
    copy.make_unreadable(there.unreadable());
    Member::Memory(copy)
}

/// A copy of a member, or of the log device, as it is.
fn copy(engine: &mut Engine, member: u16) -> Option<Member> {
    engine.member_mut(MemberIndex(member)).map(|member| duplicate(member))
}

/// What a power cut leaves now.
fn cut(engine: &mut Engine) -> Devices {
    let count = engine.members().len() as u16;
    ((0..count).map(|member| copy(engine, member)).collect(), copy(engine, 2 * count))
}

fn again(devices: &Devices) -> Devices {
    let (members, journal) = devices;
    (
        members.iter().map(|one| one.as_ref().map(duplicate)).collect(),
        journal.as_ref().map(duplicate),
    )
}

fn assemble(config: &EngineConfig, devices: Devices) -> Result<Engine, EngineError> {
    Engine::assemble(config, devices.0, devices.1, Allow::default())
}

/// Why it does not start.
fn refused(config: &EngineConfig, devices: Devices, what: &str) -> String {
    match assemble(config, devices) {
        Ok(_) => panic!("{what}: it starts"),
        Err(error) => error.to_string(),
    }
}

/// A start that the administrator allows without these members.
fn assemble_without(config: &EngineConfig, devices: Devices, without: &[u16]) -> Engine {
    let bits = without.iter().fold(0, |bits, member| bits | 1 << member);
    let allow = Allow { without: [bits, 0], dirty_degraded: true, ..Allow::default() };
    Engine::assemble(config, devices.0, devices.1, allow).unwrap()
}

fn in_memory(member: &mut Option<Member>) -> &mut MemoryMember {
    match member {
        Some(Member::Memory(member)) => member,
        _ => panic!("a member in memory"),
    }
}

fn in_memory_of(engine: &mut Engine, member: u16) -> &mut MemoryMember {
    match engine.member_mut(MemberIndex(member)) {
        Some(Member::Memory(member)) => member,
        _ => panic!("a member in memory"),
    }
}

/// An array and what it must hold.
struct Model {
    bytes: Vec<u8>,
    random: Random,
}

impl Model {
    fn new(engine: &Engine) -> Self {
        Self { bytes: vec![0; engine.array().capacity().bytes() as usize], random: Random(77) }
    }

    fn write(&mut self, engine: &mut Engine, times: usize) {
        for _ in 0..times {
            let sectors = self.bytes.len() as u64 / 512;
            let at = self.random.below(sectors);
            let len = 1 + self.random.below(50.min(sectors - at));
            let range = at as usize * 512..(at + len) as usize * 512;
            self.random.fill(&mut self.bytes[range.clone()]);
            engine.write_at(Sector(at), &self.bytes[range]).unwrap();
            engine.flush().unwrap();
        }
    }

    /// How many sectors are wrong.
    fn wrong(&self, engine: &mut Engine) -> usize {
        let mut found = vec![0xee; self.bytes.len()];
        engine.read_at(Sector(0), &mut found).unwrap();
        self.bytes.chunks(512).zip(found.chunks(512)).filter(|(one, other)| one != other).count()
    }

    /// Everything is right, also without each member that is in service in turn.
    fn check(&self, config: &EngineConfig, engine: &mut Engine, what: &str) {
        engine.finish_background(&RUNNING).unwrap();
        assert_eq!(self.wrong(engine), 0, "{what}: wrong sectors");
        let lost = (0..config.layout.members).filter(|m| engine.array().is_failed(MemberIndex(*m)));
        if lost.count() > 0 {
            return;
        }
        for member in 0..config.layout.members {
            let mut one = assemble(config, cut(engine)).unwrap();
            one.finish_background(&RUNNING).unwrap();
            one.fail(MemberIndex(member)).unwrap();
            assert_eq!(self.wrong(&mut one), 0, "{what}: wrong sectors without member {member}");
        }
    }
}

/// Loss 1. Member 0 failed, writes went on; then a place of member 1's superblock is lost and member 0 is
/// back, whose superblock knows of nothing.
#[test]
fn a_stale_member_is_not_believed_where_a_place_of_the_newest_superblock_is_lost() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid10, 2), (Level::Raid1, 3)] {
        for consistency in [Consistency::Resync, BITMAP] {
            let config = config(level, members, consistency);
            let mut engine = fresh(&config);
            let mut model = Model::new(&engine);
            model.write(&mut engine, 5);
            let stale = copy(&mut engine, 0);
            for lost in (0..members).filter(|lost| *lost != 1) {
                engine.fail(MemberIndex(lost)).unwrap();
            }
            model.write(&mut engine, 198);
            let mut devices = cut(&mut engine);
            devices.0.iter_mut().skip(2).for_each(|member| *member = None);
            devices.0[0] = stale;
            for (place, unreadable) in [(0, true), (1, true), (0, false), (1, false)] {
                let mut devices = again(&devices);
                let at = MetaArea::superblock(TOTAL, place);
                let damaged = in_memory(&mut devices.0[1]);
                if unreadable {
                    damaged.make_unreadable(at..Sector(at.0 + 1));
                } else {
                    damaged.bytes_mut()[at.bytes() as usize + 60] ^= 4;
                }
                let what = format!("{}, place {place}, {unreadable}", config.layout);
                let error = refused(&config, devices, &what);
                assert!(error.contains("member 1"), "{what}: {error}");
            }
        }
    }
}

/// A drive that was rebuilt in part, and a copy of it as it was then.
fn half_rebuilt(config: &EngineConfig, engine: &mut Engine, model: &mut Model) -> Member {
    engine.fail(MemberIndex(1)).unwrap();
    model.write(engine, 40);
    engine.pace(Pacing::between(1, 1)).unwrap();
    engine.add(MemberIndex(1), memory(TOTAL)).unwrap();
    model.write(engine, 5);
    assert!(engine.background().contains(&Work::Rebuild(MemberIndex(1))), "{}", config.layout);
    copy(engine, 1).unwrap()
}

/// Loss 2, first half: the drive itself, a copy of it, and each after a restart.
#[test]
fn a_half_rebuilt_drive_does_not_come_back_as_whole() {
    let levels = [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5), (Level::Raid10, 4)];
    for (level, members) in levels {
        for (copied, restarted) in [(false, false), (true, false), (false, true), (true, true)] {
            let config = config(level, members, BITMAP);
            let what = format!("{}, copied {copied}, restarted {restarted}", config.layout);
            let mut engine = fresh(&config);
            let mut model = Model::new(&engine);
            model.write(&mut engine, 60);
            // Until nothing is in flight, and no bit of the bitmap is set.
            engine.settle(Duration::from_secs(60)).unwrap();
            let half = half_rebuilt(&config, &mut engine, &mut model);
            engine.fail(MemberIndex(1)).unwrap();
            model.write(&mut engine, 5);
            let mut back = Some(half);
            if !copied {
                back = copy(&mut engine, 1);
            }
            if restarted {
                let mut devices = cut(&mut engine);
                devices.0[1] = None;
                engine = assemble_without(&config, devices, &[]);
                engine.finish_background(&RUNNING).unwrap();
            }
            engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
            match engine.re_add(MemberIndex(1), back) {
                Ok(()) => {}
                Err(error) => assert!(error.to_string().contains("add it"), "{what}: {error}"),
            }
            model.check(&config, &mut engine, &what);
        }
    }
}

/// Loss 2, second half: each half of a mirror was started alone and written to, some times over, in any
/// order of which went on longer.
#[test]
fn halves_that_went_on_alone_are_not_joined() {
    let config = config(Level::Raid1, 2, BITMAP);
    for (starts_of_one, starts_of_other) in [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (1, 4), (4, 1)]
    {
        let what = format!("{starts_of_one} and {starts_of_other} starts");
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine);
        model.write(&mut engine, 10);
        let whole = cut(&mut engine);
        let alone = |which: usize, starts: usize, seed: u64| {
            let mut devices = again(&whole);
            devices.0[1 - which] = None;
            let mut model = Model { bytes: model.bytes.clone(), random: Random(seed) };
            let mut engine = None;
            for _ in 0..starts {
                let mut started = assemble_without(&config, devices, &[1 - which as u16]);
                started.finish_background(&RUNNING).unwrap();
                model.write(&mut started, 3);
                devices = cut(&mut started);
                engine = Some(started);
            }
            (engine.unwrap(), devices, model)
        };
        let (mut one, devices_of_one, model_of_one) = alone(0, starts_of_one, 5);
        let (_, mut devices_of_other, _) = alone(1, starts_of_other, 6);
        let other = devices_of_other.0[1].as_ref().map(duplicate);
        // To the running array, and at a start.
        assert!(one.re_add(MemberIndex(1), other).is_err(), "{what}: joined");
        assert_eq!(model_of_one.wrong(&mut one), 0, "{what}");
        let mut both = devices_of_one;
        both.0[1] = devices_of_other.0[1].take();
        let error = refused(&config, both, &what);
        assert!(error.contains("without"), "{what}: {error}");
    }
}

/// Loss 3.
#[test]
fn parameters_that_are_not_the_members_are_refused() {
    let modes = [
        Consistency::Resync,
        BITMAP,
        Consistency::Bitmap { chunk: Sectors(8) },
        Consistency::Bitmap { chunk: Sectors(1024) },
        Consistency::PartialParity { slots: 8 },
        Consistency::PartialParity { slots: 16 },
        journal_mode(),
    ];
    for made in modes {
        let mut engine = fresh(&config(Level::Raid5, 4, made));
        let mut model = Model::new(&engine);
        model.write(&mut engine, 10);
        let devices = cut(&mut engine);
        for asked in modes {
            let asked_for = config(Level::Raid5, 4, asked);
            let outcome = assemble(&asked_for, again(&devices));
            let what = format!("made with {made:?}, started with {asked:?}");
            match outcome {
                Ok(mut engine) => {
                    assert_eq!(made, asked, "{what}: taken");
                    model.check(&asked_for, &mut engine, &what);
                }
                Err(error) => assert_ne!(made, asked, "{what}: {error}"),
            }
        }
    }
}

/// Loss 4: the log device is blank, an older copy of the right one, or another array's.
#[test]
fn a_journal_that_is_not_this_ones_newest_is_refused() {
    let config = config(Level::Raid5, 4, journal_mode());
    let mut engine = fresh(&config);
    let mut model = Model::new(&engine);
    model.write(&mut engine, 20);
    let older = copy(&mut engine, 8);
    // The ring is taken more than once.
    model.write(&mut engine, 200);
    let devices = cut(&mut engine);
    let mut stranger = fresh(&config);
    Model::new(&stranger).write(&mut stranger, 20);
    let foreign = copy(&mut stranger, 8);
    for (what, journal) in [
        ("blank", log_device_sectors(journal_mode()).map(memory)),
        ("older", older),
        ("foreign", foreign),
        ("none", None),
    ] {
        let mut devices = again(&devices);
        devices.1 = journal;
        let error = refused(&config, devices, what);
        assert!(error.contains("log device"), "{what}: {error}");
    }
    let mut engine = assemble(&config, devices).unwrap();
    model.check(&config, &mut engine, "the right one");
}

/// Loss 4: sectors of a log cannot be read. Dirty and degraded, or a journal: refused. Else everything is
/// resynced.
#[test]
fn a_log_that_cannot_be_read_is_lost_and_not_empty() {
    for consistency in [Consistency::PartialParity { slots: 8 }, journal_mode()] {
        for degraded in [false, true] {
            let config = config(Level::Raid5, 4, consistency);
            let what = format!("{consistency:?}, degraded {degraded}");
            let mut engine = fresh(&config);
            let mut model = Model::new(&engine);
            model.write(&mut engine, 20);
            if degraded {
                engine.fail(MemberIndex(3)).unwrap();
            }
            model.write(&mut engine, 10);
            let log = engine.array().flat().unwrap().log_sectors(MemberIndex(0));
            let data = MetaArea { log, pages: 0, used: true }.data(TOTAL, 1).unwrap();
            let mut devices = cut(&mut engine);
            let (device, at) = match &devices.1 {
                Some(_) => (&mut devices.1, Sector(0)),
                None => (&mut devices.0[0], Sector(data.0)),
            };
            in_memory(device).make_unreadable(at..Sector(at.0 + 1));
            if degraded {
                let error = refused(&config, devices, &what);
                let words = ["its log cannot be read", "was not stopped cleanly"];
                assert!(words.iter().any(|one| error.contains(one)), "{what}: {error}");
            } else {
                let is_refused = assemble(&config, again(&devices)).is_err();
                assert_eq!(
                    is_refused,
                    devices.1.is_some(),
                    "{what}: a journal's loss is the user's word"
                );
                let mut engine = assemble_without(&config, devices, &[]);
                let begun = Event::Started(Work::Resync);
                assert!(engine.take_events().contains(&begun), "{what}");
                assert!(engine.beginning().resync > Sectors::ZERO, "{what}");
                model.check(&config, &mut engine, &what);
            }
        }
    }
}

/// Loss 5: the power went while copies differed, and the page of the bitmap that says so cannot be read
/// on any member.
#[test]
fn a_page_of_the_bitmap_that_cannot_be_read_names_everything() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 3)] {
        for unreadable in [true, false] {
            let config = config(level, members, BITMAP);
            let what = format!("{}, unreadable {unreadable}", config.layout);
            let mut engine = fresh(&config);
            let mut model = Model::new(&engine);
            let zeroes = vec![0; model.bytes.len()];
            engine.write_at(Sector(0), &zeroes).unwrap();
            model.write(&mut engine, 30);
            let mut devices = cut(&mut engine);
            // The last write came to member 1 in part only; on raid5 to what holds parity of it.
            let last = members as usize - 1;
            in_memory(&mut devices.0[last]).bytes_mut()[..512].fill(0x55);
            for member in &mut devices.0 {
                let from = MetaArea::page(TOTAL, 0, 0);
                let member = in_memory(member);
                if unreadable {
                    member.make_unreadable(from..Sector(from.0 + 16));
                } else {
                    member.bytes_mut()[from.bytes() as usize..][..16 * 512].fill(0x41);
                }
            }
            let mut engine = assemble(&config, devices).unwrap();
            engine.finish_background(&RUNNING).unwrap();
            let differing = engine.scrub(&RUNNING).unwrap();
            assert_eq!(differing, Sectors::ZERO, "{what}: redundancy differs");
        }
    }
}

/// Loss 7: members 0, 1 and 2 of a mirror; 0 was rebuilt, then 1 and 2 failed, and the stale ones, which
/// say that 0 failed, are attached again.
#[test]
fn a_mirror_that_is_whole_on_one_member_starts_beside_stale_ones() {
    for consistency in [Consistency::Resync, BITMAP] {
        let config = config(Level::Raid1, 3, consistency);
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine);
        model.write(&mut engine, 10);
        engine.fail(MemberIndex(0)).unwrap();
        model.write(&mut engine, 10);
        let stale = copy(&mut engine, 2);
        engine.fail(MemberIndex(2)).unwrap();
        engine.add(MemberIndex(0), memory(TOTAL)).unwrap();
        engine.finish_background(&RUNNING).unwrap();
        model.write(&mut engine, 10);
        engine.fail(MemberIndex(1)).unwrap();
        model.write(&mut engine, 10);
        let mut devices = cut(&mut engine);
        devices.0[2] = stale;
        for with_second in [true, false] {
            let mut devices = again(&devices);
            if !with_second {
                devices.0[1] = None;
            }
            let mut engine = assemble(&config, devices).unwrap();
            assert!(engine.array().is_failed(MemberIndex(2)));
            model.check(&config, &mut engine, "a stale third");
        }
    }
}

/// A kernel tells once that what was written is lost; the flush after that goes well. Who failed a flush is out
/// of service, so no later one counts.
#[test]
fn a_failed_flush_is_told_and_never_made_good() {
    let config = config(Level::Raid0, 2, Consistency::None);
    let mut engine = fresh(&config);
    Model::new(&engine).write(&mut engine, 5);
    in_memory_of(&mut engine, 1).fail_flush(0);
    for _ in 0..3 {
        engine.flush().unwrap_err();
    }

    for after in 0..3 {
        let config = self::config(Level::Raid1, 2, BITMAP);
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine);
        model.write(&mut engine, 5);
        in_memory_of(&mut engine, 1).fail_flush(after);
        model.write(&mut engine, 5);
        assert!(engine.array().is_failed(MemberIndex(1)), "after {after} flushes");
        let mut devices = cut(&mut engine);
        // What was not flushed well is lost.
        in_memory(&mut devices.0[1]).bytes_mut()[..1 << 20].fill(0);
        let mut again = assemble(&config, devices).unwrap();
        assert!(again.array().is_failed(MemberIndex(1)), "after {after} flushes");
        model.check(&config, &mut again, "without the one that could not flush");
    }
}

/// What comes to stand behind the data is known: what was there before is no damage, nor anything else.
#[test]
fn devices_are_made_ready_whatever_they_held() {
    for consistency in [BITMAP, Consistency::PartialParity { slots: 8 }, journal_mode()] {
        let config = config(Level::Raid5, 3, consistency);
        let used = |total| {
            let mut member = MemoryMember::new(total).unwrap();
            Random(9).fill(member.bytes_mut());
            Member::Memory(member)
        };
        let members = (0..3).map(|_| used(TOTAL)).collect();
        let journal = log_device_sectors(consistency).map(used);
        let mut engine = Engine::with_journal(&config, members, journal).unwrap();
        let mut model = Model::new(&engine);
        let zeroes = vec![0; model.bytes.len()];
        engine.write_at(Sector(0), &zeroes).unwrap();
        model.write(&mut engine, 20);
        let mut engine = assemble(&config, cut(&mut engine)).unwrap();
        engine.fail(MemberIndex(1)).unwrap();
        model.write(&mut engine, 5);
        engine.add(MemberIndex(1), used(TOTAL)).unwrap();
        engine.finish_background(&RUNNING).unwrap();
        model.write(&mut engine, 5);
        let engine = &mut assemble(&config, cut(&mut engine)).unwrap();
        assert_eq!(engine.beginning().unused, []);
        model.check(&config, engine, &format!("{consistency:?}"));
    }
}

/// The same where the device with the newest superblock was cut off, has grown, or was cut off and given back
/// its size: the stale one is not believed.
#[test]
fn a_stale_member_is_not_believed_beside_one_of_another_size() {
    let config = config(Level::Raid1, 2, BITMAP);
    let mut engine = fresh(&config);
    let mut model = Model::new(&engine);
    model.write(&mut engine, 5);
    let stale = copy(&mut engine, 0);
    engine.fail(MemberIndex(0)).unwrap();
    model.write(&mut engine, 20);
    let mut devices = cut(&mut engine);
    devices.0[0] = stale;
    for sectors in
        [100, 11_000, 11_984, 11_985, 11_992, 11_993, 12_001, 12_008, 12_016, 13_000, 24_000]
    {
        for restored in [false, true] {
            let mut devices = again(&devices);
            let size = Sectors(if restored { TOTAL.0 } else { sectors });
            let mut resized = MemoryMember::new(size).unwrap();
            let kept = (sectors.min(TOTAL.0) * 512) as usize;
            let held = in_memory(&mut devices.0[1]).bytes();
            resized.bytes_mut()[..kept].copy_from_slice(&held[..kept]);
            devices.0[1] = Some(Member::Memory(resized));
            let what = format!("{sectors} sectors, restored {restored}");
            match assemble(&config, devices) {
                Err(error) => assert!(error.to_string().contains("member 1"), "{what}: {error}"),
                Ok(mut engine) => {
                    // Both places are there.
                    assert!(restored && sectors > 11_992 || sectors / 8 == TOTAL.0 / 8, "{what}");
                    model.check(&config, &mut engine, &what);
                }
            }
        }
    }
}

/// Mirrors, and parity whose members end between two chunks.
fn with_spare_room() -> [(EngineConfig, [u64; 3]); 4] {
    let total = TOTAL.0;
    let mirror = config(Level::Raid1, 2, BITMAP);
    let parity = config(Level::Raid5, 3, BITMAP);
    [
        (mirror.clone(), [total + 3000, total, total + 500]),
        (mirror, [total + 3000, total, total + 6000]),
        (parity.clone(), [total + 3000, total, total + 8]),
        (parity, [total + 3000, total, total]),
    ]
}

#[test]
fn a_drive_that_is_smaller_than_the_one_before_is_known_after_a_restart() {
    for (config, [large, least, fresh]) in with_spare_room() {
        for replaces in [false, true] {
            let what = format!("{} with {fresh} for {large}, replaces {replaces}", config.layout);
            let sizes = std::iter::once(large).chain(std::iter::repeat(least));
            let members = sizes.take(usize::from(config.layout.members));
            let members = members.map(|sectors| memory(Sectors(sectors))).collect();
            let mut engine = Engine::new(&config, members).unwrap();
            let mut model = Model::new(&engine);
            model.write(&mut engine, 10);
            if replaces {
                engine.replace(MemberIndex(0), memory(Sectors(fresh)), true).unwrap();
            } else {
                engine.fail(MemberIndex(0)).unwrap();
                engine.add(MemberIndex(0), memory(Sectors(fresh))).unwrap();
            }
            engine.finish_background(&RUNNING).unwrap();
            model.write(&mut engine, 10);
            let mut engine = assemble(&config, cut(&mut engine)).expect(&what);
            assert!(engine.beginning().unused.is_empty(), "{what}: {:?}", engine.beginning());
            model.check(&config, &mut engine, &what);
        }
    }
}

#[test]
fn a_drive_that_is_too_small_to_be_known_later_is_refused() {
    // The array uses whole chunks; what its superblocks speak of is a few sectors more.
    let config = config(Level::Raid5, 3, BITMAP);
    let totals = TOTAL.0..TOTAL.0 + 16;
    let mut refusals = 0;
    for total in totals {
        for less in 1..16 {
            let members = (0..3).map(|_| memory(Sectors(total))).collect();
            let mut engine = Engine::new(&config, members).unwrap();
            let mut model = Model::new(&engine);
            model.write(&mut engine, 2);
            engine.fail(MemberIndex(0)).unwrap();
            if engine.add(MemberIndex(0), memory(Sectors(total - less))).is_err() {
                refusals += 1;
                continue;
            }
            engine.finish_background(&RUNNING).unwrap();
            let engine = assemble(&config, cut(&mut engine)).unwrap();
            assert!(engine.beginning().unused.is_empty(), "{total} less {less}");
        }
    }
    assert!(refusals > 0);
}

/// Of two places the newer is told by a number: after a start it goes on from the largest there is.
#[test]
fn the_first_records_after_a_start_are_newer_than_all_before() {
    for consistency in [Consistency::Resync, BITMAP] {
        let config = config(Level::Raid1, 2, consistency);
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine);
        model.write(&mut engine, 40);
        engine.stop().unwrap();
        for writes in 0..4 {
            let mut one = assemble(&config, cut(&mut engine)).unwrap();
            let mut model = Model { bytes: model.bytes.clone(), random: Random(writes) };
            one.fail(MemberIndex(0)).unwrap();
            one.flush().unwrap();
            model.write(&mut one, writes as usize);
            let mut one = assemble(&config, cut(&mut one)).unwrap();
            assert!(one.array().is_failed(MemberIndex(0)), "{consistency}, {writes} writes");
            assert_eq!(model.wrong(&mut one), 0, "{consistency}, {writes} writes");
        }
    }
}

/// An array that is lost by the flushes of its stop is refused the stop as one that was lost before.
#[test]
fn an_array_that_is_lost_while_it_stops_says_so() {
    for (level, members) in [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 3)] {
        let drives: Vec<_> = (0..members).map(|_| Drive::new(TOTAL.0)).collect();
        let given = drives.iter().map(|drive| Member::from(drive.clone())).collect();
        let mode = if level == Level::Raid0 { Consistency::None } else { BITMAP };
        let mut engine = Engine::new(&config(level, members, mode), given).unwrap();
        engine.write_at(Sector(0), &[7; 4096]).unwrap();
        // With the last one all of the data of raid1, and more than raid5 survives.
        drives.iter().skip(usize::from(level == Level::Raid0)).for_each(Drive::turn_off);
        let error = engine.stop().unwrap_err();
        assert_eq!(error.refusal(), Some(Refusal::ArrayFailed), "{level}: {error}");
        let events = engine.take_events();
        assert!(events.contains(&Event::ArrayFailed), "{level}: {events:?}");
        assert!(!events.contains(&Event::Stopped), "{level}: {events:?}");
        let again = engine.stop().unwrap_err();
        assert_eq!(again.refusal(), Some(Refusal::ArrayFailed), "{level}: {again}");
    }
}
