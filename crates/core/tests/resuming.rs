//! Replacements that were not complete when the array stopped: which go on being filled, and from where.

use crate::support::carried::{MEMBER, carries, found, mirror, raid5, start, superblock};
use crate::support::records::IDENTITY;
use crate::support::{Driver, Word, Work};
use raidlab_core::consistency::{Examined, Finding, Unusable};
use raidlab_core::contract::{
    self, Admin, Epoch, Event, Input, IoOp, IoOutcome, Outcome, Pacing, Refusal, Superblock,
};
use raidlab_core::{Config, Consistency, MemberIndex, Nanos, Sector, Sectors, Time};

const ONE: MemberIndex = MemberIndex(1);
/// What replaces it in an array of three.
const OTHER: u16 = 4;
/// How far it is.
const TO: Sector = Sector(24);

/// What the members of an array of three say whose member 1 is being replaced.
fn newest() -> Superblock {
    Superblock { replacing: [0b10, 0], replaced_to: TO, ..superblock(9, 0) }
}

fn dirty() -> Superblock {
    Superblock { clean: false, ..newest() }
}

/// What is made of a drive by an array whose members say this.
fn judge(config: &Config, said: Superblock, drive: &Examined) -> Result<Sector, Unusable> {
    let started = start(config, &found(config, &[Some(said); 3])).expect("nobody is missing");
    let judged = started.array.judge_resume(&IDENTITY, ONE, drive);
    judged.map(|(command, good_to)| {
        let (member, sectors) = (ONE, Sectors(MEMBER));
        assert_eq!(command, Admin::ResumeReplace { member, sectors, good_to });
        good_to
    })
}

fn drive(config: &Config, said: Superblock) -> Examined {
    carries(config, OTHER, said)
}

const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(8) };
const JOURNAL: Consistency = Consistency::Journal { sectors: Sectors(64) };
const PPL: Consistency = Consistency::PartialParity { slots: 8 };

#[test]
fn a_replacement_goes_on_where_everything_is_known_of_it() {
    let config = |mode| raid5(3, mode);
    let cases = [
        (config(Consistency::Resync), newest(), Ok(TO)),
        (config(Consistency::Resync), dirty(), Ok(Sector(0))),
        (config(BITMAP), newest(), Ok(TO)),
        (config(BITMAP), dirty(), Ok(TO)),
        (config(PPL), newest(), Ok(TO)),
        (config(PPL), dirty(), Err(Unusable::LogUnknown)),
        (config(JOURNAL), newest(), Err(Unusable::LogUnknown)),
        (mirror(3), newest(), Ok(TO)),
        (mirror(3), dirty(), Ok(Sector(0))),
        // A resync was broken off.
        (mirror(3), Superblock { synced_to: Sector(8), ..newest() }, Ok(Sector(0))),
    ];
    for (config, said, from) in cases {
        let judged = judge(&config, said, &drive(&config, said));
        assert_eq!(judged, from, "{} {:?} {said:?}", config.layout, config.settings.consistency);
    }
}

#[test]
fn how_far_it_is_a_replacement_knows_best() {
    let config = raid5(3, BITMAP);
    let own = Superblock { replaced_to: Sector(16), ..newest() };
    assert_eq!(judge(&config, newest(), &drive(&config, own)), Ok(Sector(16)));
    let all = Superblock { replaced_to: Sector::MAX, ..newest() };
    assert_eq!(judge(&config, newest(), &drive(&config, all)), Ok(Sector::MAX));
}

#[test]
fn a_replacement_that_may_have_missed_something_does_not_go_on() {
    let config = raid5(3, BITMAP);
    let of = |said: Superblock| judge(&config, newest(), &drive(&config, said));
    let at = |events| Superblock { events, ..newest() };
    // One behind, or one ahead, as the power may have gone in the midst of an update.
    assert_eq!([8, 9, 10].map(|events| of(at(events))), [Ok(TO); 3]);
    assert_eq!(of(at(7)), Err(Unusable::Stale { events: 7, newest: 9 }));
    assert_eq!(of(at(11)), Err(Unusable::OtherHistory));
    let mut alone = newest();
    alone.history[0] = Epoch { id: 77, from: 3 };
    assert_eq!(of(alone), Err(Unusable::OtherHistory));
    assert_eq!(of(Superblock { replacing: [0b100, 0], ..newest() }), Err(Unusable::Failed));
    let unnamed = Superblock { replacing: [0, 0], ..newest() };
    assert_eq!(judge(&config, unnamed, &drive(&config, newest())), Err(Unusable::Failed));
}

#[test]
fn what_is_no_replacement_of_the_member_does_not_go_on() {
    let config = raid5(3, BITMAP);
    let of = |drive: &Examined| judge(&config, newest(), drive);
    let member = carries(&config, 1, newest());
    assert_eq!(of(&member), Err(Unusable::OutOfPlace { device: 1, members: 3 }));
    let other = carries(&config, OTHER + 1, newest());
    assert_eq!(of(&other), Err(Unusable::OutOfPlace { device: OTHER + 1, members: 3 }));
    assert_eq!(of(&Examined::absent()), Err(Unusable::Absent));
    let good = drive(&config, newest());
    let small = Examined { sectors: Sectors(10), ..good.clone() };
    assert_eq!(of(&small), Err(Unusable::TooSmall));
    let lacking = Examined { bad: vec![(Sector(3), Sectors(1))], ..good.clone() };
    assert_eq!(of(&lacking), Err(Unusable::BadBlocks));
    let mut foreign = good.clone();
    if let Finding::Whole(carried) = &mut foreign.superblock {
        carried.array = [9; 16];
    }
    assert_eq!(of(&foreign), Err(Unusable::AnotherArray));
    let damaged = Examined { superblock: Finding::Damaged(None), ..good };
    assert_eq!(of(&damaged), Err(Unusable::Damaged));
}

/// An array whose member 1 is replaced, at a pace that leaves the copy in the midst.
fn replacing(config: &Config) -> Driver {
    let mut driver = Driver::new(config);
    let capacity = driver.array.capacity().0;
    let bytes: Vec<u8> = (0..capacity).map(|at| at as u8 | 1).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.run_until_idle(60);
    driver.members[usize::from(OTHER)].fill(0xdd);
    let sectors = Sectors(MEMBER);
    driver.input(Input::Admin(Admin::Replace { member: ONE, sectors, consent: true }));
    while driver.records.superblock(OTHER).is_none_or(|one| one.replaced_to < TO) {
        step(&mut driver);
    }
    driver
}

/// A piece of work, or the next time that the array asked for.
fn step(driver: &mut Driver) {
    if driver.work.is_empty() {
        driver.now = driver.wake.take().expect("it goes on").max(driver.now);
        driver.input(Input::Wake);
    } else {
        driver.step(0);
    }
}

/// The array starts again, with what was to replace its member.
fn resume(driver: &mut Driver, config: &Config) -> Sector {
    let said = driver.records.superblock(OTHER).expect("it was told");
    let found = driver.records.found(config, &driver.members, &[]);
    driver.reassemble_from(config, &found, Word::default()).expect("nobody is missing");
    let judged = driver.array.judge_resume(&IDENTITY, ONE, &drive(config, said));
    let (command, good_to) = judged.expect("it goes on");
    driver.input(Input::Admin(command));
    good_to
}

fn paced(mut config: Config) -> Config {
    config.settings.pacing = Pacing::between(1 << 40, 1 << 40);
    config
}

#[test]
fn what_was_copied_is_not_copied_again() {
    for mode in [Consistency::Resync, BITMAP] {
        let config = paced(raid5(3, mode));
        let mut driver = replacing(&config);
        driver.work.clear();
        let from = resume(&mut driver, &config);
        assert!(from >= TO, "{mode:?}");
        driver.run_until_idle(400);
        assert!(driver.events.contains(&Event::Started(contract::Work::Replace(ONE))), "{mode:?}");
        assert!(driver.events.contains(&Event::Replaced(ONE)), "{mode:?}");
        let copied = driver.log.iter().filter(|io| io.member.0 == OTHER && io.op == IoOp::Write);
        let first = copied.map(|io| io.at).min();
        assert_eq!(first, Some(from), "{mode:?}");
        let read = driver.read(0, driver.array.capacity().0 as u32).expect("nothing is lost");
        assert!(read.iter().enumerate().all(|(at, byte)| *byte == at as u8 | 1), "{mode:?}");
    }
}

/// The power goes while a write is under way.
fn cut_off(config: &Config) -> Driver {
    let mut driver = replacing(config);
    driver.begin_write(0, &[0x55; 2], false);
    while driver.records.superblock(0).is_none_or(|one| one.clean) || !driver.records.bit(0, 0) {
        driver.step(0);
    }
    driver.work.clear();
    driver
}

/// A copy that hardly gets on: bits are not cleared, though all is quiet for long.
#[test]
fn what_the_bitmap_names_is_named_until_a_replacement_is_complete() {
    let mut config = paced(raid5(3, BITMAP));
    config.settings.bitmap_delay = Nanos(30);
    let mut driver = cut_off(&config);
    resume(&mut driver, &config);
    let replace = contract::Work::Replace(ONE);
    while !driver.events.contains(&Event::Started(replace)) {
        step(&mut driver);
    }
    driver.input(Input::Admin(Admin::Pace(Pacing::between(1, 1))));
    while driver.now < Time::ZERO + Nanos::from_millis(100) {
        step(&mut driver);
        assert!(driver.records.bit(0, 0), "at {:?}", driver.now);
    }
    assert!(!driver.events.contains(&Event::Replaced(ONE)), "it hardly gets on");
    driver.input(Input::Admin(Admin::Pace(Pacing::between(1 << 40, 1 << 40))));
    driver.run_until_idle(400);
    assert!(driver.events.contains(&Event::Replaced(ONE)));
    assert!(!driver.records.bit(0, 0), "it is complete");
}

#[test]
fn nothing_is_answered_before_a_failed_replacement_is_named_no_more() {
    let mut config = paced(raid5(3, BITMAP));
    let mut driver = replacing(&config);
    driver.work.clear();
    // It is dirty, and bits are set, so that a write asks for no record of its own.
    config.settings.clean_after = Nanos::from_millis(1000);
    config.settings.bitmap_delay = Nanos::from_millis(1000);
    resume(&mut driver, &config);
    driver.input(Input::Admin(Admin::Pace(Pacing::between(1, 1))));
    assert_eq!(driver.write(16, &[8; 32]), Outcome::Done);
    driver.run();
    assert_eq!(driver.records.superblock(0).map(|one| one.replacing), Some([0b10, 0]));
    driver.fault = Box::new(|io| match io.member.0 {
        OTHER => IoOutcome::Gone,
        _ => IoOutcome::Ok,
    });
    let id = driver.begin_write(16, &[9; 32], false);
    while !driver.events.contains(&Event::ReplacementFailed(ONE)) {
        driver.step(0);
    }
    while driver.outcome(id).is_none() {
        let records = driver.records.superblock(0).map(|one| one.replacing);
        let Some(next) = driver.work.iter().position(|work| !matches!(work, Work::Meta(_))) else {
            assert_eq!(records, Some([0b10, 0]), "it waits for that");
            break;
        };
        driver.step(next);
    }
    assert_eq!(driver.outcome(id), None);
    driver.run_until_idle(20);
    assert_eq!(driver.outcome(id), Some(Outcome::Done));
    assert_eq!(driver.records.superblock(0).map(|one| one.replacing), Some([0, 0]));
}

#[test]
fn what_the_bitmap_names_is_copied_again() {
    let config = paced(raid5(3, BITMAP));
    let mut driver = cut_off(&config);
    let from = resume(&mut driver, &config);
    assert!(from >= TO);
    driver.run_until_idle(400);
    assert!(driver.events.contains(&Event::Replaced(ONE)));
    let writes = driver.log.iter().filter(|io| io.member.0 == OTHER && io.op == IoOp::Write);
    let below: Vec<u64> = writes.map(|io| io.at.0).filter(|at| *at < from.0).collect();
    assert!(below.contains(&0), "{below:?}");
    assert!(below.iter().all(|at| *at < 8), "the first bit's rows, and no others: {below:?}");
}

/// A start replays the journal to the members before it knows what replaces them: a drive that is not complete is
/// named by none.
#[test]
fn with_a_journal_a_replacement_is_named_as_it_takes_over() {
    let config = paced(raid5(3, JOURNAL));
    let mut driver = Driver::new(&config);
    assert_eq!(driver.write(0, &[7; 64]), Outcome::Done);
    driver.run_until_idle(60);
    let sectors = Sectors(MEMBER);
    driver.input(Input::Admin(Admin::Replace { member: ONE, sectors, consent: true }));
    let mut named = 0;
    while !driver.events.contains(&Event::Replaced(ONE)) {
        step(&mut driver);
        if let Some(one) = driver.records.superblock(OTHER) {
            assert_eq!((one.replacing, one.replaced_to), ([0b10, 0], Sector::MAX));
            named += 1;
        }
    }
    assert!(named > 0);
}

/// What superblocks say is there is there: who goes on with it need not look at the bitmap.
#[test]
fn while_it_goes_by_the_bitmap_a_replacement_claims_no_more_than_it_has() {
    let config = paced(raid5(3, BITMAP));
    let mut driver = cut_off(&config);
    let newest = driver.records.superblock(0).expect("it was told");
    assert!(resume(&mut driver, &config) >= TO);
    let is_new =
        |driver: &Driver| driver.records.superblock(0).filter(|one| one.events > newest.events);
    let said = loop {
        if let Some(said) = is_new(&driver) {
            break said;
        }
        step(&mut driver);
    };
    assert_eq!((said.replacing, said.replaced_to), ([0b10, 0], Sector(0)));
}

#[test]
fn it_goes_on_before_anything_else_is_asked_for() {
    let config = paced(raid5(3, BITMAP));
    let mut driver = replacing(&config);
    driver.work.clear();
    let found = driver.records.found(&config, &driver.members, &[]);
    driver.reassemble_from(&config, &found, Word::default()).expect("nobody is missing");
    driver.begin_write(0, &[1; 2], false);
    let resume = Admin::ResumeReplace { member: ONE, sectors: Sectors(MEMBER), good_to: TO };
    driver.input(Input::Admin(resume));
    assert_eq!(driver.events.last(), Some(&Event::Refused(Refusal::Busy)));
    driver.run_until_idle(60);
    // It is named no more.
    assert_eq!(driver.records.superblock(0).map(|one| one.replacing), Some([0; 2]));
    let small = Admin::ResumeReplace { member: ONE, sectors: Sectors(1), good_to: TO };
    driver.input(Input::Admin(small));
    assert_eq!(driver.events.last(), Some(&Event::Refused(Refusal::TooSmall)));
    driver.input(Input::Admin(Admin::Fail(ONE)));
    driver.input(Input::Admin(resume));
    assert_eq!(driver.events.last(), Some(&Event::Refused(Refusal::NotInService)));
}
