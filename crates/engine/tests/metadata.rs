//! Arrays that carry metadata: started again after a crash and after a stop, with members that are stale,
//! foreign, torn or fresh.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common::{Random, TestDirectory};
use raidlab_core::consistency::{Allow, MetaArea};
use raidlab_core::contract::{Admin, Event, Pacing, Refusal};
use raidlab_core::{Consistency, Layout, Level, MemberIndex, Nanos, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileMember, FileOptions, Member, MemoryMember,
    log_device_sectors,
};

const CHUNK: Sectors = Sectors(16);
const TOTAL: Sectors = Sectors(3000);
static RUNNING: AtomicBool = AtomicBool::new(false);

fn config(level: Level, members: u16, consistency: Consistency) -> EngineConfig {
    let layout = Layout::new(level, members);
    let layout = if level.has_chunks() { layout.with_chunk(CHUNK) } else { layout };
    let mut config = EngineConfig::new(layout);
    config.settings.consistency = consistency;
    config.settings.pacing = Pacing::between(u64::MAX, u64::MAX);
    // Limits small enough that a log of the size below holds everything in flight.
    config.limits.plans = 4;
    config.limits.requests = 8;
    config
}

fn cases() -> Vec<EngineConfig> {
    use Level::{Raid1, Raid4, Raid5, Raid6, Raid10};
    let bitmap = Consistency::Bitmap { chunk: Sectors(64) };
    let journal = Consistency::Journal { sectors: Sectors(4096) };
    let ppl = Consistency::PartialParity { slots: 8 };
    vec![
        config(Raid1, 2, Consistency::Resync),
        config(Raid1, 3, bitmap),
        config(Raid10, 4, bitmap),
        config(Raid10, 5, Consistency::Resync),
        config(Raid4, 3, journal),
        config(Raid5, 4, Consistency::Resync),
        config(Raid5, 4, bitmap),
        config(Raid5, 4, ppl),
        config(Raid5, 4, journal),
        config(Raid6, 5, bitmap),
        config(Raid6, 5, journal),
    ]
}

fn memory(total: Sectors) -> Member {
    Member::Memory(MemoryMember::new(total).unwrap())
}

fn fresh(config: &EngineConfig) -> Engine {
    let members = (0..config.layout.members).map(|_| memory(TOTAL)).collect();
    Engine::with_journal(config, members, journal_of(config)).unwrap()
}

fn journal_of(config: &EngineConfig) -> Option<Member> {
    log_device_sectors(config.settings.consistency).map(memory)
}

/// A copy of a member as it is.
fn copy(engine: &mut Engine, member: MemberIndex) -> Option<Member> {
    engine.member_mut(member).and_then(|member| copy_of(member))
}

fn copy_of(member: &Member) -> Option<Member> {
    let Member::Memory(there) = member else { return None };
    let mut copy = MemoryMember::new(there.sectors()).unwrap();
    copy.bytes_mut().copy_from_slice(there.bytes());
    Some(Member::Memory(copy))
}

/// Members and log device as a crash leaves them now.
fn crash(engine: &mut Engine) -> (Vec<Option<Member>>, Option<Member>) {
    let count = engine.members().len() as u16;
    let members = (0..count).map(|member| copy(engine, MemberIndex(member))).collect();
    let journal = copy(engine, MemberIndex(2 * count));
    (members, journal)
}

fn assemble(
    config: &EngineConfig,
    (members, journal): (Vec<Option<Member>>, Option<Member>),
) -> Engine {
    let allow = Allow { dirty_degraded: true, ..Allow::default() };
    let engine = Engine::assemble(config, members, journal, allow);
    engine.unwrap_or_else(|error| panic!("{:?}: {error}", config.layout))
}

/// An array with its expected content.
struct Model {
    bytes: Vec<u8>,
    random: Random,
    /// Sectors that are written together.
    block: u64,
}

impl Model {
    fn new(engine: &Engine, seed: u64) -> Self {
        Self {
            bytes: vec![0; engine.array().capacity().bytes() as usize],
            random: Random(seed),
            block: 1,
        }
    }

    fn write(&mut self, engine: &mut Engine, times: usize) {
        for _ in 0..times {
            let sectors = self.bytes.len() as u64 / 512;
            let at = self.random.below(sectors) / self.block * self.block;
            let len = (1 + self.random.below(70.min(sectors - at))).next_multiple_of(self.block);
            let range = at as usize * 512..(at + len) as usize * 512;
            self.random.fill(&mut self.bytes[range.clone()]);
            engine.write_at(Sector(at), &self.bytes[range]).unwrap();
        }
    }

    fn check(&self, engine: &mut Engine, what: &str) {
        let mut found = vec![0xee; self.bytes.len()];
        let layout = engine.array().layout().clone();
        let read = engine.read_at(Sector(0), &mut found);
        read.unwrap_or_else(|error| panic!("{layout}, {what}: {error}"));
        let wrong = self.bytes.iter().zip(&found).position(|(one, other)| one != other);
        assert_eq!(wrong, None, "{layout}, {what}: first wrong byte");
    }
}

/// Every byte is right, also with each member out of service in turn.
fn check_redundancy(config: &EngineConfig, engine: &mut Engine, model: &Model, what: &str) {
    model.check(engine, what);
    for member in 0..config.layout.members {
        let mut one = assemble(config, crash(engine));
        let ended = one.finish_background(&RUNNING);
        ended
            .unwrap_or_else(|error| panic!("{config:?}, {what}: {error}, {:?}", one.take_events()));
        one.fail(MemberIndex(member)).unwrap();
        model.check(&mut one, &format!("{what}, without member {member}"));
    }
}

#[test]
fn arrays_start_again_after_a_crash_and_after_a_stop() {
    for config in cases() {
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine, 7);
        for round in 0..3 {
            model.write(&mut engine, 40);
            if round == 1 {
                engine.stop().unwrap();
            }
            let devices = crash(&mut engine);
            engine = assemble(&config, devices);
            if round == 1 {
                assert!(engine.background().is_empty(), "{}: clean", config.layout);
            }
            engine.finish_background(&RUNNING).unwrap();
            check_redundancy(&config, &mut engine, &model, &format!("round {round}"));
        }
    }
}

#[test]
fn a_member_that_was_away_is_not_read_before_it_is_rebuilt() {
    for config in cases() {
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine, 11);
        model.write(&mut engine, 30);
        let away = copy(&mut engine, MemberIndex(1)).unwrap();
        engine.fail(MemberIndex(1)).unwrap();
        model.write(&mut engine, 30);
        let (mut members, journal) = crash(&mut engine);
        members[1] = Some(away);
        let mut engine = assemble(&config, (members, journal));
        assert!(engine.array().is_failed(MemberIndex(1)), "{}: stale", config.layout);
        model.check(&mut engine, "with a stale member");
        engine.add(MemberIndex(1), memory(TOTAL)).unwrap();
        model.write(&mut engine, 10);
        engine.finish_background(&RUNNING).unwrap();
        assert!(!engine.array().is_failed(MemberIndex(1)));
        check_redundancy(&config, &mut engine, &model, "rebuilt");
    }
}

#[test]
fn a_member_comes_back_by_the_bitmap() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid10, 4)] {
        let mut config = config(level, members, Consistency::Bitmap { chunk: Sectors(64) });
        config.settings.bitmap_delay = Nanos::from_millis(2);
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine, 5);
        model.write(&mut engine, 50);
        // Quiet bits are cleared.
        engine.settle(Duration::from_secs(60)).unwrap();
        let away = copy(&mut engine, MemberIndex(1)).unwrap();
        engine.fail(MemberIndex(1)).unwrap();
        model.write(&mut engine, 2);
        engine.record(true);
        engine.re_add(MemberIndex(1), Some(away)).unwrap();
        engine.finish_background(&RUNNING).unwrap();
        let written: u64 = engine
            .recorded()
            .iter()
            .filter(|io| io.member == MemberIndex(1))
            .map(|io| u64::from(io.len))
            .sum();
        engine.record(false);
        assert!(written > 0 && written < TOTAL.0 / 2, "{level}: {written} sectors written");
        check_redundancy(&config, &mut engine, &model, "back");
    }
    let config = config(Level::Raid1, 2, Consistency::Resync);
    let mut engine = fresh(&config);
    engine.fail(MemberIndex(1)).unwrap();
    let away = copy(&mut engine, MemberIndex(1));
    for (device, word) in [
        (Some(memory(TOTAL)), "carries no superblock"),
        (copy(&mut engine, MemberIndex(0)), "is member 0"),
        (away, "nothing tells any more what it missed"),
        (None, "nothing tells any more what it missed"),
    ] {
        let error = engine.re_add(MemberIndex(1), device).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Member);
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains("add it: everything on it will be rebuilt"), "{error}");
    }
}

/// A damaged place of a superblock may have held the newest: the member is not taken in service, nor is an
/// older state, and what is done about it is the administrator's word. Damage beside what it says is none.
#[test]
fn a_damaged_record_is_not_an_older_one() {
    let config = config(Level::Raid5, 4, Consistency::Resync);
    let mut engine = fresh(&config);
    let mut model = Model::new(&engine, 3);
    model.write(&mut engine, 10);
    engine.stop().unwrap();
    for member in 0..4 {
        for (place, sector) in [(0, 0), (1, 0), (0, 3), (1, 7)] {
            let damaged = |engine: &mut Engine| {
                let (mut members, journal) = crash(engine);
                if let Some(Member::Memory(one)) = &mut members[member] {
                    let at = MetaArea::superblock(TOTAL, place).0 + sector;
                    one.bytes_mut()[(at * 512) as usize + 20] ^= 0x40;
                }
                (members, journal)
            };
            let what = format!("member {member}, place {place}, sector {sector}");
            let (members, journal) = damaged(&mut engine);
            let started = Engine::assemble(&config, members, journal, Allow::default());
            assert_eq!(started.is_ok(), sector > 0, "{what}");
            if let Err(error) = started {
                let named = format!("member {member}: a place of its superblock is damaged");
                assert!(error.to_string().contains(&named), "{what}: {error}");
            }
            let bits = [1 << member, 0];
            for (allow, serves) in [
                (Allow { without: bits, ..Allow::default() }, false),
                (Allow { believe: bits, ..Allow::default() }, true),
            ] {
                let (members, journal) = damaged(&mut engine);
                let mut again = Engine::assemble(&config, members, journal, allow).unwrap();
                let is_failed = again.array().is_failed(MemberIndex(member as u16));
                // Of two states one event apart either will do.
                assert_eq!(is_failed, !serves, "{what}, {allow:?}");
                assert_eq!(again.beginning().unused.len(), usize::from(!serves), "{what}");
                again.finish_background(&RUNNING).unwrap();
                model.check(&mut again, &what);
            }
        }
    }
    // Both places of all members: nothing is taken for an array.
    let (mut members, journal) = crash(&mut engine);
    for member in members.iter_mut().flatten() {
        if let Member::Memory(one) = member {
            for place in 0..2 {
                one.bytes_mut()[MetaArea::superblock(TOTAL, place).0 as usize * 512 + 50] ^= 1;
            }
        }
    }
    let error = Engine::assemble(&config, members, journal, Allow::default()).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Assemble, "{error}");
}

#[test]
fn what_does_not_belong_is_named() {
    let config = config(Level::Raid5, 4, Consistency::Resync);
    let (mut one, mut other) = (fresh(&config), fresh(&config));
    let refused = |members, journal, config: &EngineConfig, kind, word: &str| {
        let Err(error) = Engine::assemble(config, members, journal, Allow::default()) else {
            panic!("it starts; expected: {word}")
        };
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    let assemble = EngineErrorKind::Assemble;
    let (mut members, journal) = crash(&mut one);
    members[2] = copy(&mut other, MemberIndex(2));
    refused(members, journal, &config, assemble, "member 2: belongs to another array");
    let (mut members, journal) = crash(&mut one);
    members.swap(0, 3);
    refused(members, journal, &config, assemble, "what is given for it is member 3");
    let mut wrong = config.clone();
    wrong.layout = wrong.layout.with_chunk(Sectors(32));
    let (members, journal) = crash(&mut one);
    refused(
        members,
        journal,
        &wrong,
        EngineErrorKind::Config,
        "layout: the array was made with raid5(4)",
    );
    let (members, _) = crash(&mut one);
    let journal = Some(memory(Sectors(64)));
    refused(members, journal, &config, EngineErrorKind::Config, "a log device is given");
    let (mut members, journal) = crash(&mut one);
    members.truncate(3);
    refused(members, journal, &config, EngineErrorKind::Config, "3 places are given for 4 members");
    let none = EngineConfig { settings: Default::default(), ..config };
    refused(Vec::new(), None, &none, EngineErrorKind::Config, "consistency `none`");
}

#[test]
fn a_member_is_replaced_while_it_serves() {
    for config in cases() {
        let mut engine = fresh(&config);
        let mut model = Model::new(&engine, 23);
        model.write(&mut engine, 30);
        let member = MemberIndex(1);
        let small = engine.replace(member, memory(Sectors(64)), true).unwrap_err();
        assert_eq!(small.refusal(), Some(Refusal::TooSmall), "{small}");
        let healthy = engine.replace(member, memory(TOTAL), false).unwrap_err();
        assert_eq!(healthy.refusal(), Some(Refusal::InService), "{healthy}");
        engine.take_events();
        let old = copy(&mut engine, member).unwrap();
        engine.replace(member, memory(Sectors(TOTAL.0 + 77)), true).unwrap();
        model.write(&mut engine, 10);
        engine.finish_background(&RUNNING).unwrap();
        engine.settle(Duration::from_millis(1)).unwrap();
        assert!(engine.take_events().contains(&Event::Replaced(member)), "{}", config.layout);
        assert_eq!(engine.take_retired().len(), 1);
        assert_eq!(engine.members()[1].config().sectors.0, TOTAL.0 + 77);
        model.write(&mut engine, 10);
        check_redundancy(&config, &mut engine, &model, "replaced");
        // The old device comes back in its place: it is stale, and the one in service is not there.
        let (mut members, journal) = crash(&mut engine);
        members[1] = copy_of(&old);
        let allow = Allow { dirty_degraded: true, ..Allow::default() };
        let error = Engine::assemble(&config, members, journal, allow).unwrap_err().to_string();
        assert!(error.contains("member 1: missed something"), "{}: {error}", config.layout);
        let (mut members, journal) = crash(&mut engine);
        members[1] = Some(old);
        let allow = Allow { without: [1 << 1, 0], ..allow };
        let mut again = Engine::assemble(&config, members, journal, allow).unwrap();
        assert!(again.array().is_failed(member), "{}", config.layout);
        model.check(&mut again, "with the replaced device");
    }
}

#[test]
fn a_member_that_answers_nothing_is_given_up_in_time() {
    let mut config = config(Level::Raid5, 4, Consistency::Resync);
    config.settings.deadline = Some(Nanos::from_millis(30));
    let mut engine = fresh(&config);
    let mut model = Model::new(&engine, 9);
    model.write(&mut engine, 10);
    if let Some(Member::Memory(member)) = engine.member_mut(MemberIndex(2)) {
        member.stall(true);
    }
    model.write(&mut engine, 10);
    model.check(&mut engine, "one member answers nothing");
    assert!(engine.array().is_failed(MemberIndex(2)));
    engine.add(MemberIndex(2), memory(TOTAL)).unwrap();
    engine.finish_background(&RUNNING).unwrap();
    config.settings.deadline = None;
    check_redundancy(&config, &mut engine, &model, "rebuilt");
}

#[test]
fn commands_that_make_no_sense_change_nothing() {
    let config = config(Level::Raid5, 4, Consistency::Resync);
    let mut engine = fresh(&config);
    let member = MemberIndex(0);
    for (error, refusal) in [
        (engine.add(member, memory(TOTAL)), Refusal::InService),
        (engine.admin(Admin::Fail(MemberIndex(9))), Refusal::NoSuchMember),
    ] {
        assert_eq!(error.unwrap_err().refusal(), Some(refusal));
    }
    let error = engine.add(MemberIndex(9), memory(TOTAL)).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::InvalidRequest);
    engine.fail(member).unwrap();
    let scrub = Admin::StartScrub(raidlab_core::contract::Scrub::Check);
    assert_eq!(engine.admin(scrub).unwrap_err().refusal(), Some(Refusal::Degraded));
    let error = engine.add(member, memory(Sectors(64))).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::TooSmall));
    assert!(engine.background().is_empty());
    engine.add(member, memory(TOTAL)).unwrap();
    engine.finish_background(&RUNNING).unwrap();
    assert!(!engine.array().is_failed(member));
}

/// The same on files, whose threads answer later; with and without memory of the I/Os' own.
#[test]
fn files_are_assembled_and_rebuilt() {
    let directory = TestDirectory::new();
    let open = |name: &str| {
        let path = directory.path().join(name);
        if !path.exists() {
            std::fs::write(&path, vec![0x5a; TOTAL.bytes() as usize + 4096]).unwrap();
        }
        Member::File(Box::new(FileMember::open(&path, FileOptions::default()).unwrap()))
    };
    for (number, mut config) in cases().into_iter().enumerate() {
        if number % 2 == 1 {
            config.settings.deadline = Some(Nanos::from_millis(60_000));
        }
        let count = config.layout.members;
        let name = |member: u16| format!("{number}-{member}");
        let members: Vec<Member> = (0..count).map(|member| open(&name(member))).collect();
        let mut engine = Engine::with_journal(&config, members, journal_of(&config)).unwrap();
        let mut model = Model::new(&engine, 31 + number as u64);
        // Before the first write parity is whatever the files hold.
        let zeroes = vec![0; model.bytes.len()];
        engine.write_at(Sector(0), &zeroes).unwrap();
        model.write(&mut engine, 20);
        engine.fail(MemberIndex(0)).unwrap();
        model.write(&mut engine, 5);
        engine.add(MemberIndex(0), open(&name(count))).unwrap();
        model.write(&mut engine, 5);
        engine.finish_background(&RUNNING).unwrap();
        engine.stop().unwrap();
        let journal = copy(&mut engine, MemberIndex(2 * count));
        drop(engine);
        let names = std::iter::once(name(count)).chain((1..count).map(name));
        let members = names.map(|name| Some(open(&name))).collect();
        let mut again = assemble(&config, (members, journal));
        model.check(&mut again, "assembled from files");
        again.fail(MemberIndex(1)).unwrap();
        model.check(&mut again, "assembled from files, without member 1");
    }
}

/// Drives that worked in blocks of 512 bytes come back in an enclosure that has blocks of 4,096, and the other
/// way round; and a drive with larger blocks than the array is added.
#[test]
fn drives_come_back_with_other_blocks() {
    let as_blocks = |(members, journal): (Vec<Option<Member>>, Option<Member>), of: u32| {
        let change = |member: Member| {
            let Member::Memory(member) = member else { unreachable!("in memory") };
            Member::Memory(member.with_block(of))
        };
        let members: Vec<_> = members.into_iter().map(|one| one.map(change)).collect();
        (members, journal.map(change))
    };
    for (number, mut config) in cases().into_iter().enumerate() {
        for (made, back) in [(1, 8), (8, 8), (8, 1)] {
            config.limits.plans = 4;
            let what = format!("{}, blocks of {made}, then {back}", config.layout);
            let large = |total| Member::Memory(MemoryMember::new(total).unwrap().with_block(made));
            let members = (0..config.layout.members).map(|_| large(TOTAL)).collect();
            let journal = log_device_sectors(config.settings.consistency).map(large);
            let mut engine = Engine::with_journal(&config, members, journal).unwrap();
            let mut model = Model::new(&engine, number as u64 + 1);
            model.block = u64::from(made);
            model.write(&mut engine, 20);
            let (members, journal) = as_blocks(crash(&mut engine), back);
            let started = Engine::assemble(&config, members, journal, Allow::default());
            if made < back {
                let error = started.unwrap_err().to_string();
                assert!(
                    error.contains("writes blocks of 8 sectors, the array such of 1"),
                    "{error}"
                );
                continue;
            }
            let mut again = started.unwrap_or_else(|error| panic!("{what}: {error}"));
            again.finish_background(&RUNNING).unwrap();
            model.check(&mut again, &what);
            again.fail(MemberIndex(1)).unwrap();
            model.write(&mut again, 5);
            let fresh = MemoryMember::new(TOTAL).unwrap().with_block(8);
            let added = again.add(MemberIndex(1), Member::Memory(fresh));
            assert!(added.is_ok(), "{what}");
            again.finish_background(&RUNNING).unwrap();
            again.fail(MemberIndex(0)).unwrap();
            model.check(&mut again, &what);
        }
    }
}

/// Who is to blame is named with its file.
#[test]
fn errors_name_the_files() {
    let directory = TestDirectory::new();
    let path = |name: &str| directory.path().join(name);
    let open = |name: &str| {
        let file = FileMember::open(&path(name), FileOptions::default()).unwrap();
        Member::File(Box::new(file))
    };
    let blank = |name: &str, sectors: Sectors| {
        std::fs::write(path(name), vec![0; sectors.bytes() as usize]).unwrap();
        open(name)
    };
    let journal = Consistency::Journal { sectors: Sectors(4096) };
    let config = config(Level::Raid5, 3, journal);
    let log = log_device_sectors(journal).unwrap();
    let members = ["0", "1", "2"].map(|name| blank(name, TOTAL)).into();
    let mut engine = Engine::with_journal(&config, members, Some(blank("log", log))).unwrap();
    engine.write_at(Sector(0), &[1; 4096]).unwrap();
    drop(engine);
    let start = |names: [&str; 4]| {
        let [members @ .., log] = names;
        let members = members.map(|name| Some(open(name))).into();
        Engine::assemble(&config, members, Some(open(log)), Allow::default())
    };
    blank("other", TOTAL);
    blank("other-log", log);
    let error = start(["0", "other", "2", "log"]).unwrap_err().to_string();
    let named = format!("member 1 is {}", path("other").display());
    assert!(error.contains(&named), "{error}");
    let error = start(["0", "1", "2", "other-log"]).unwrap_err();
    assert_eq!(error.path(), Some(path("other-log").as_path()), "{error}");
    let mut engine = start(["0", "1", "2", "log"]).unwrap();
    engine.finish_background(&RUNNING).unwrap();
    let mut found = [0; 4096];
    engine.read_at(Sector(0), &mut found).unwrap();
    assert_eq!(found, [1; 4096]);
    engine.fail(MemberIndex(1)).unwrap();
    let error = engine.re_add(MemberIndex(1), Some(open("other"))).unwrap_err();
    assert_eq!(error.path(), Some(path("other").as_path()), "{error}");
}
