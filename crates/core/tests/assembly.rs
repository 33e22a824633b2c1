//! Starting an array from what its members say: who is fresh, who is stale, who went on alone.

use crate::extent::Extent;
use crate::support::carried::{found, start, superblock};
use crate::support::{ANYTHING, Driver, Word};
use raidlab_core::consistency::{
    Allow, AssembleError, Examined, Finding, Found, ResyncCost, Unusable, Unused, Wanted,
};
use raidlab_core::contract::{
    Admin, Completion, Input, IoOutcome, Outcome, Output, Record, Superblock,
};
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors, Time,
};
use raidlab_random::SplitMix64;

fn config(layout: Layout) -> Config {
    let mut config = Config::uniform(layout, Sectors(64));
    config.limits = Limits { requests: 2, segments: 2, ios: 1, plans: 1, windows: 1 };
    config.settings.consistency = Consistency::Resync;
    config.settings.most_bad_blocks = 1;
    config.settings.clean_after = Nanos(30);
    config
}

fn mirror(members: u16) -> Config {
    config(Layout::new(Level::Raid1, members))
}

fn stripes(level: Level, members: u16) -> Config {
    config(Layout::new(level, members).with_chunk(Sectors(8)))
}

fn out_of_service(array: &Array) -> u64 {
    let members = 0..array.layout().members;
    members.filter(|m| array.is_failed(MemberIndex(*m))).fold(0, |set, m| set | 1 << m)
}

#[test]
fn every_set_of_damaged_and_stale_copies_is_voted_on() {
    let mut tried = 0u64;
    for config in
        [mirror(2), mirror(3), stripes(Level::Raid5, 3), mirror(4), stripes(Level::Raid6, 4)]
    {
        let members = u64::from(config.layout.members);
        // None, or any of three events with any set of failed members without itself.
        let sets = 1u64 << (members - 1);
        let each = 1 + 3 * sets;
        let all = each.pow(members as u32);
        // Of four members there are 390,625, every sixteenth of which is tried in each run.
        let (start, stride) = match Extent::from_environment() {
            Extent::Sample(number) if members == 4 => (u64::from(number % 16), 16),
            _ => (0, 1),
        };
        for index in (start..all).step_by(stride) {
            let copies: Vec<_> = (0..members)
                .map(|m| {
                    let choice = index / each.pow(m as u32) % each;
                    let rest = choice.checked_sub(1)?;
                    let set = rest % sets;
                    // Leaves itself out.
                    let failed = set & ((1 << m) - 1) | set >> m << (m + 1);
                    Some(superblock(5 + rest / sets, failed))
                })
                .collect();
            judge(&config, &copies);
            tried += 1;
        }
    }
    assert!(tried > 50_000);
}

fn members(unused: &[Unused]) -> u64 {
    unused.iter().fold(0, |set, one| set | 1 << one.member.0)
}

/// Checks one vote against what the rules say, written down anew.
fn judge(config: &Config, copies: &[Option<Superblock>]) {
    let outcome = ANYTHING.start(config, &found(config, copies));
    let Some(newest) = copies.iter().flatten().max_by_key(|copy| copy.events) else {
        assert!(matches!(outcome, Err(AssembleError::NoSuperblock(_))));
        return;
    };
    let all = (1 << copies.len()) - 1;
    let line = all & !newest.failed[0];
    let same = copies.iter().flatten().filter(|copy| copy.events == newest.events);
    if same.clone().any(|copy| copy != newest) {
        assert!(matches!(outcome, Err(AssembleError::Diverged { .. })), "{copies:?}");
        return;
    }
    let fresh = copies.iter().enumerate().filter(|(m, copy)| {
        line >> m & 1 == 1 && copy.is_some_and(|copy| newest.events - copy.events <= 1)
    });
    let fresh = fresh.fold(0u64, |set, (m, _)| set | 1 << m);
    let lost = (all & !fresh).count_ones() > u32::from(config.layout.survives());
    match outcome {
        Ok(array) => {
            assert!(!lost, "{copies:?}");
            assert_eq!(out_of_service(&array), all & !fresh, "{copies:?}");
        }
        Err(AssembleError::TooFew(unused)) => {
            assert!(lost, "{copies:?}");
            assert_eq!(members(&unused), all & !fresh);
        }
        Err(error) => panic!("{copies:?}: {error}"),
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// What is planted in arrays as they start.
    static PLANTED: std::cell::Cell<Option<raidlab_core::bugs::Bug>> =
        const { std::cell::Cell::new(None) };
}

fn assemble(config: &Config, found: &Found) -> Result<Array, AssembleError> {
    #[cfg(debug_assertions)]
    if let Some(bug) = PLANTED.get() {
        let allow = Allow { dirty_degraded: true, ..Allow::default() };
        let planted = |allow| {
            let started = Array::assemble_planted(&Wanted::from(config), found, allow, bug);
            started.map(|started| started.array)
        };
        return match planted(allow) {
            Err(AssembleError::Missing(unused)) => {
                planted(Allow { without: [members(&unused), 0], ..allow })
            }
            started => started,
        };
    }
    ANYTHING.start(config, found)
}

/// What an array writes when it starts, as far as it gets without its data: its epoch begins with it.
fn updates(mut array: Array) -> Vec<Superblock> {
    array.handle(Time::ZERO, Input::Wake);
    let mut all = Vec::new();
    while let Some(output) = array.poll() {
        let Output::Meta { io } = output else { continue };
        if let Record::Superblock(superblock) = array.meta(io).expect("just sent").record
            && all.last() != Some(&superblock)
        {
            all.push(superblock);
        }
        array.handle(Time::ZERO, Input::Completion(Completion { io, outcome: IoOutcome::Ok }));
    }
    all
}

/// Members of a mirror as drives on a shelf: what each says, and all it has seen written.
struct Shelf {
    config: Config,
    copies: Vec<Option<Superblock>>,
    data: Vec<Vec<u32>>,
    writes: u32,
    /// The members in service of the array that runs, and what all of them say.
    running: Option<(Vec<usize>, Superblock)>,
    starts: u32,
    refused: u32,
}

impl Shelf {
    fn new(members: u16) -> Self {
        let config = mirror(members);
        let first = Array::new(&config).expect("possible").superblock();
        let count = usize::from(members);
        Self {
            config,
            copies: vec![Some(first); count],
            data: vec![Vec::new(); count],
            writes: 0,
            running: Some(((0..count).collect(), first)),
            starts: 0,
            refused: 0,
        }
    }

    /// A round over the members in service; on some of them only, when the power fails in it.
    fn round(&mut self, to: Superblock, random: &mut SplitMix64) {
        let Some((serving, recorded)) = &mut self.running else { return };
        *recorded = to;
        let power_fails = random.below(4) == 0;
        for member in serving.iter() {
            if !power_fails || random.below(2) == 0 {
                self.copies[*member] = Some(to);
            }
        }
        if power_fails {
            self.running = None;
        }
    }

    fn step(&mut self, random: &mut SplitMix64) {
        let members = self.copies.len() as u64;
        let Some((serving, recorded)) = self.running.clone() else {
            let member = random.below(members) as usize;
            match random.below(8) {
                // A superblock is torn, though not every last one.
                0 if self.copies.iter().flatten().count() > 1 => self.copies[member] = None,
                _ => self.start(random),
            }
            return;
        };
        match random.below(6) {
            0 | 1 => {
                self.writes += 1;
                serving.iter().for_each(|m| self.data[*m].push(self.writes));
            }
            2 => {
                let to =
                    Superblock { events: recorded.events + 1, clean: !recorded.clean, ..recorded };
                self.round(to, random);
            }
            3 if serving.len() > 1 => {
                let gone = serving[random.below(serving.len() as u64) as usize];
                let mut to = Superblock { events: recorded.events + 1, ..recorded };
                to.failed[0] |= 1 << gone;
                let left = serving.into_iter().filter(|m| *m != gone).collect();
                self.running = Some((left, recorded));
                self.round(to, random);
            }
            4 => self.running = None,
            _ => {}
        }
    }

    /// Starts with some of the drives plugged in.
    fn start(&mut self, random: &mut SplitMix64) {
        let there: Vec<bool> = self.copies.iter().map(|_| random.below(3) > 0).collect();
        let seen: Vec<_> =
            self.copies.iter().zip(&there).map(|(copy, there)| copy.filter(|_| *there)).collect();
        let sight = found(&self.config, &seen);
        let outcome = assemble(&self.config, &sight);
        let again = assemble(&self.config, &sight);
        match outcome {
            Ok(array) => {
                self.starts += 1;
                assert_eq!(array.state_key(), again.expect("the same").state_key());
                self.began(&array, &seen, random);
            }
            Err(AssembleError::Diverged { one, other }) => {
                self.refused += 1;
                assert_ne!(one, other);
                let pairs = seen.iter().enumerate().flat_map(|a| {
                    seen.iter().enumerate().filter_map(move |b| Some((a.0, (*a.1)?, b.0, (*b.1)?)))
                });
                let apart = pairs
                    .clone()
                    .any(|(a, sa, b, sb)| sa.failed[0] >> b & 1 == 1 && sb.failed[0] >> a & 1 == 1);
                let missed = seen.iter().flatten().any(|copy| copy.failed[0] != 0);
                assert!(apart || missed, "{seen:?}");
            }
            Err(AssembleError::NoSuperblock(_)) => assert!(seen.iter().all(Option::is_none)),
            Err(AssembleError::TooFew(_)) => {}
            Err(error) => panic!("{error}: {seen:?}"),
        }
    }

    fn began(&mut self, array: &Array, seen: &[Option<Superblock>], random: &mut SplitMix64) {
        let out = out_of_service(array);
        let serving: Vec<usize> = (0..seen.len()).filter(|m| out >> m & 1 == 0).collect();
        let data = self.data[serving[0]].clone();
        for member in &serving {
            assert_eq!(self.data[*member], data, "a stale member in service: {seen:?}");
        }
        for member in (0..seen.len()).filter(|m| seen[*m].is_some()) {
            let prefix = data.starts_with(&self.data[member]);
            assert!(prefix, "{member} has what the array has not: {seen:?}");
        }
        let newest = *seen.iter().flatten().max_by_key(|copy| copy.events).expect("some");
        self.running = Some((serving, newest));
        for update in updates(array.clone()) {
            self.round(update, random);
        }
    }
}

#[test]
fn halves_that_went_on_alone_are_told_apart() {
    let (mut starts, mut refused) = (0, 0);
    for seed in 0..3000 {
        let mut random = SplitMix64::new(seed);
        let mut world = Shelf::new(2 + (seed % 3) as u16);
        for _ in 0..40 {
            world.step(&mut random);
        }
        starts += world.starts;
        refused += world.refused;
    }
    assert!(starts > 5000 && refused > 500, "{starts} starts, {refused} refused");
}

#[test]
fn members_that_are_missing_must_be_allowed() {
    let config = stripes(Level::Raid6, 4);
    let full = Some(superblock(9, 0));
    let seen = found(&config, &[full, None, full, full]);
    let error = start(&config, &seen).expect_err("1 is missing");
    let absent = Unused { member: MemberIndex(1), why: Unusable::Absent };
    assert_eq!(error, AssembleError::Missing(vec![absent]));
    assert!(error.to_string().contains("member 1: is not there"), "{error}");
    let allow = Allow { without: [0b10, 0], ..Allow::default() };
    let started = Array::assemble(&Wanted::from(&config), &seen, allow).expect("allowed");
    assert_eq!(out_of_service(&started.array), 0b10);
    assert_eq!(started.unused, [Unused { why: Unusable::LeftOut, ..absent }]);
    // The word is for those it names only.
    let allow = Allow { without: [0b1, 0], ..Allow::default() };
    let error = Array::assemble(&Wanted::from(&config), &seen, allow).expect_err("1 is missing");
    assert_eq!(error, AssembleError::Missing(vec![absent]));
    // Who was known to be out of service needs no consent.
    let one = Some(superblock(9, 0b10));
    let started = start(&config, &found(&config, &[one, None, one, one]));
    assert_eq!(out_of_service(&started.expect("known").array), 0b10);
    // A member that missed something although it is said to be in service.
    let stale = Some(superblock(3, 0));
    let error = start(&config, &found(&config, &[full, stale, full, full])).err();
    let stale = Unused { why: Unusable::Stale { events: 3, newest: 9 }, ..absent };
    assert_eq!(error, Some(AssembleError::Missing(vec![stale])));
    let few = ANYTHING.start(&config, &found(&config, &[full, None, None, None]));
    let error = few.expect_err("one of four");
    assert!(matches!(&error, AssembleError::TooFew(unused) if members(unused) == 0b1110));
    assert!(error.to_string().contains("member 3: is not there"), "{error}");
}

#[test]
fn dirty_with_members_missing_must_be_allowed_unless_a_log_helps() {
    let dirty = |failed| Some(Superblock { clean: false, journal: true, ..superblock(9, failed) });
    let copies = [None, dirty(1), dirty(1), dirty(1)];
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let mut config = stripes(level, 4);
        let seen = found(&config, &copies);
        let error = start(&config, &seen).expect_err("dirty and degraded");
        let AssembleError::DirtyDegraded { missing, resync } = &error else { panic!("{error}") };
        assert_eq!((members(missing), resync.len), (1, Sectors(64)), "{level}");
        assert!(
            error.to_string().contains("after which 32KiB of each (a minute or more) are made"),
            "{error}"
        );
        assert!(ANYTHING.start(&config, &seen).is_ok(), "{level}");
        config.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
        let mut seen = found(&config, &copies);
        seen.members[1].bitmap[0] = Finding::Whole(0b101);
        let error = start(&config, &seen).expect_err("dirty and degraded");
        let AssembleError::DirtyDegraded { resync, .. } = error else { panic!("{error}") };
        assert_eq!(resync.len, Sectors(16), "what two bits stand for");
        config.settings.consistency = Consistency::Journal { sectors: Sectors(4096) };
        let seen = found(&config, &copies);
        start(&config, &seen)
            .unwrap_or_else(|error| panic!("{level}: the journal has all: {error}"));
        let without = Found { journal: Examined::absent(), ..seen.clone() };
        let error = start(&config, &without).expect_err("the journal may have something");
        let resync = ResyncCost { len: Sectors(64), most: config.settings.pacing.most };
        let lost = AssembleError::JournalLost { why: Unusable::Absent, resync };
        assert_eq!(error, lost, "{level}");
        let started = ANYTHING.start(&config, &without).expect("allowed");
        assert!(!started.superblock().journal, "{level}");
        let clean = Some(Superblock { clean: true, ..dirty(1).expect("one") });
        let without =
            Found { journal: Examined::absent(), ..found(&config, &[None, clean, clean, clean]) };
        assert!(start(&config, &without).is_ok(), "{level}: nothing is in the journal only");
    }
    let mut config = stripes(Level::Raid5, 4);
    config.settings.consistency = Consistency::PartialParity { slots: 6 };
    let seen = found(&config, &copies);
    assert!(start(&config, &seen).is_ok(), "partial parity has what is lost");
    let seen = found(&mirror(3), &copies[..3]);
    assert!(start(&mirror(3), &seen).is_ok(), "mirrors have it on the others");
}

/// A start repeats the newest superblock for who is one behind: not for the drive that has come into
/// a missing member's place meanwhile, which that superblock says is in service.
#[test]
fn a_fresh_drive_is_never_told_to_be_in_service_before_it_is_rebuilt() {
    let dirty = |events| Some(Superblock { clean: false, ..superblock(events, 0) });
    let seen = found(&mirror(3), &[dirty(9), None, dirty(8)]);
    let mut array = ANYTHING.start(&mirror(3), &seen).expect("two are there");
    let member = MemberIndex(1);
    let add = Admin::Add { member, sectors: Sectors(64) };
    array.handle(Time::ZERO, Input::Admin(add));
    let mut told = Vec::new();
    while told.len() < 2 {
        let completion = match array.poll().expect("more is recorded") {
            Output::Meta { io } => {
                let meta = *array.meta(io).expect("just sent");
                if let (Record::Superblock(superblock), true) = (meta.record, meta.member == member)
                {
                    told.push((superblock.failed[0], superblock.rebuilding[0]));
                }
                Completion { io, outcome: IoOutcome::Ok }
            }
            Output::MemberIo(io) => Completion { io: io.io, outcome: IoOutcome::Ok },
            _ => continue,
        };
        array.handle(Time::ZERO, Input::Completion(completion));
    }
    assert_eq!(told, [(0b10, 0), (0, 0b10)]);
}

#[test]
fn a_rebuild_goes_on_where_it_was_recorded_to_be() {
    let config = mirror(2);
    let rebuilding =
        Superblock { rebuilding: [2, 0], rebuilt_to: Sector(24), clean: false, ..superblock(9, 0) };
    let array = start(&config, &found(&config, &[Some(rebuilding); 2]));
    let array = array.expect("both are there").array;
    let view = array.superblock();
    assert_eq!((view.rebuilding, view.rebuilt_to), ([2, 0], Sector(24)));
    assert_eq!(out_of_service(&array), 0);
    // Its drive is not there: it may have been rebuilt meanwhile, and have gone on alone.
    let seen = found(&config, &[Some(rebuilding), None]);
    let error = start(&config, &seen).err();
    let absent = Unused { member: MemberIndex(1), why: Unusable::Absent };
    assert_eq!(error, Some(AssembleError::Missing(vec![absent])));
    assert_eq!(out_of_service(&ANYTHING.start(&config, &seen).expect("allowed")), 2);
    // A drive that was never told anything holds nothing.
    let mut seen = seen;
    seen.members[1].superblock = Finding::Blank;
    assert_eq!(out_of_service(&start(&config, &seen).expect("nobody is missing").array), 2);
    // The whole one is not there: the other alone is not enough.
    let error = ANYTHING.start(&config, &found(&config, &[None, Some(rebuilding)])).err();
    let whole = Unused { member: MemberIndex(0), why: Unusable::Absent };
    let other = Unused { member: MemberIndex(1), why: Unusable::Rebuilding };
    assert_eq!(error, Some(AssembleError::TooFew(vec![whole, other])));
}

#[test]
fn without_superblocks_only_presence_counts() {
    let mut config = stripes(Level::Raid5, 3);
    config.settings.consistency = Consistency::None;
    let there = Examined { sectors: Sectors(64), logical_block: 1, ..Examined::absent() };
    let seen = |members: [&Examined; 3]| Found {
        members: members.into_iter().cloned().collect(),
        ..Found::default()
    };
    let absent = Examined::absent();
    let started = start(&config, &seen([&there, &absent, &there]));
    assert_eq!(out_of_service(&started.expect("two of three").array), 2);
    let error = start(&config, &seen([&there, &absent, &absent])).expect_err("one of three");
    assert!(matches!(error, AssembleError::TooFew(unused) if members(&unused) == 0b110));
    // Members with superblocks are not what was asked for.
    let mut kept = config.clone();
    kept.settings.consistency = Consistency::Resync;
    let error = start(&config, &found(&kept, &[Some(superblock(9, 0)); 3])).expect_err("not asked");
    assert!(matches!(error, AssembleError::Parameter { key: "consistency", .. }), "{error}");
}

#[test]
fn what_was_decided_at_the_start_is_recorded_before_a_write_is_answered() {
    for level in [Level::Raid1, Level::Raid5] {
        for seed in 0..50 {
            let config = if level == Level::Raid1 { mirror(3) } else { stripes(level, 3) };
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.caches.begin();
            assert_eq!(driver.write(0, &[7]), Outcome::Done);
            driver.run_until_idle(20);
            let before = driver.records.superblock(0).expect("formatted").events;
            driver.crash(&config, &mut random, &[2], ANYTHING).expect("allowed");
            let id = driver.begin_write(0, &[8], random.below(2) == 0);
            while driver.outcome(id).is_none() {
                if let Some(at) = driver.wake.take() {
                    driver.now = driver.now.max(at);
                    driver.input(Input::Wake);
                }
                let index = random.below(driver.work.len() as u64) as usize;
                driver.step(index);
            }
            for member in 0..2 {
                let superblock = driver.records.superblock(member).expect("written");
                assert_eq!(superblock.failed, [4, 0], "{level} {seed}");
                assert!(superblock.events > before && !superblock.clean);
            }
            // The member that was away is not taken back, whatever it says.
            driver.run_until_idle(20);
            driver.crash(&config, &mut random, &[], Word::default()).expect("known to be out");
            assert!(driver.array.is_failed(MemberIndex(2)));
            assert_eq!(driver.read(0, 1), Ok(vec![8]));
        }
    }
}

#[test]
fn a_start_that_is_interrupted_again_and_again_ends_the_same() {
    for config in [mirror(2), mirror(3), stripes(Level::Raid5, 3), stripes(Level::Raid6, 4)] {
        for seed in 0..60 {
            let mut random = SplitMix64::new(seed);
            let mut driver = Driver::new(&config);
            driver.caches.begin();
            let durable = driver.begin_write(0, &[1, 2, 3], true);
            while driver.outcome(durable).is_none() {
                driver.step(0);
            }
            driver.begin_write(8, &[9, 9], false);
            for _ in 0..6 {
                for _ in 0..random.below(12) {
                    if let Some(at) = driver.wake.take_if(|_| random.below(2) == 0) {
                        driver.now = driver.now.max(at);
                        driver.input(Input::Wake);
                    }
                    if !driver.work.is_empty() {
                        let index = random.below(driver.work.len() as u64) as usize;
                        driver.step(index);
                    }
                }
                driver.crash(&config, &mut random, &[], Word::default()).expect("all there");
                assert_eq!(driver.in_service().len(), usize::from(config.layout.members));
            }
            driver.run_until_idle(30);
            assert_eq!(driver.read(0, 3), Ok(vec![1, 2, 3]));
            let copies: Vec<_> =
                driver.in_service().iter().map(|m| driver.records.superblock(*m)).collect();
            assert!(copies.iter().all(|copy| *copy == copies[0]));
            assert!(copies[0].is_some_and(|copy| copy.clean && copy.synced_to == Sector::MAX));
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn a_vote_with_a_bug_is_seen() {
    use raidlab_core::bugs::Bug;
    for bug in [Bug::StaleMemberAccepted, Bug::DivergedAccepted] {
        let seen = (0..200).any(|seed| {
            let run = || {
                PLANTED.set(Some(bug));
                let mut random = SplitMix64::new(seed);
                let mut world = Shelf::new(2 + (seed % 3) as u16);
                (0..40).for_each(|_| world.step(&mut random));
            };
            let seen = std::panic::catch_unwind(run).is_err();
            PLANTED.set(None);
            seen
        });
        assert!(seen, "{bug:?}");
    }
}
