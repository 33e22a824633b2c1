//! Starting an array from what its members say: who is fresh, who is stale, who went on alone.

#[allow(dead_code, reason = "shared by tests that use different parts")]
mod support;

use raidlab_core::consistency::{
    Allow, AssembleError, Assembled, Carried, Examined, Finding, Found, MetaArea, Parameters,
    Unusable, Unused, Wanted,
};
use raidlab_core::contract::{
    Admin, Completion, Input, IoOutcome, Outcome, Output, Record, Superblock,
};
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors, Time,
};
use support::records::{IDENTITY, next_nonce};
use support::{ANYTHING, Driver, Random, Word};

fn config(layout: Layout) -> Config {
    let mut config = Config::uniform(layout, Sectors(64));
    config.limits = Limits { requests: 2, segments: 2, ios: 1, plans: 1, units: 1 };
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

fn superblock(events: u64, failed: u64) -> Superblock {
    let synced_to = Sector::MAX;
    Superblock { events, failed: [failed, 0], clean: true, synced_to, ..Superblock::default() }
}

fn carries(config: &Config, device: u16, superblock: Superblock) -> Examined {
    let array = Array::new(config).expect("possible");
    let area = MetaArea::of(&array, config.settings.consistency, config.members[0].sectors);
    let parameters = Parameters::of(config, &area, MemberIndex(device));
    let superblock = Finding::Whole(Carried { array: IDENTITY, device, parameters, superblock });
    let bitmap = vec![Finding::Blank; area.pages as usize];
    let sectors = Sectors(100_000);
    Examined { sectors, logical_block: 1, superblock, bitmap, ..Examined::default() }
}

/// Members that carry these superblocks, or nothing; the log device has the newest.
fn found(config: &Config, superblocks: &[Option<Superblock>]) -> Found {
    let newest = superblocks.iter().flatten().max_by_key(|superblock| superblock.events);
    let carries = |(device, superblock): (u16, &Option<Superblock>)| match superblock {
        Some(superblock) => carries(config, device, *superblock),
        None => Examined::absent(),
    };
    let journal = carries((2 * config.layout.members, &newest.copied()));
    Found { members: (0..).zip(superblocks).map(carries).collect(), journal, nonce: next_nonce() }
}

fn start(config: &Config, found: &Found) -> Result<Assembled, AssembleError> {
    Array::assemble(&Wanted::from(config), found, Allow::default())
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
        // All of them, but for raid6 whose four members are judged as a mirror's are.
        let stride = if config.layout.level == Level::Raid6 { 7 } else { 1 };
        for index in (0..all).step_by(stride) {
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
    assert!(tried > 400_000);
}

/// Checks one vote against what the rules say, written down anew.
fn judge(config: &Config, copies: &[Option<Superblock>]) {
    let outcome = Array::assemble(config, &found(copies), ANYTHING);
    let Some(newest) = copies.iter().flatten().max_by_key(|copy| copy.events) else {
        assert_eq!(outcome.err(), Some(AssembleError::NoSuperblock));
        return;
    };
    let all = (1 << copies.len()) - 1;
    let line = all & !newest.failed[0];
    let same = copies.iter().flatten().filter(|copy| copy.events == newest.events);
    let twice = same.clone().any(|copy| copy != newest);
    let alone = copies.iter().flatten().any(|copy| copy.failed[0] & line == line);
    if twice || alone {
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
        Err(error) => {
            assert!(lost, "{copies:?}: {error}");
            assert_eq!(error, AssembleError::TooFew([all & !fresh, 0]));
        }
    }
}

#[cfg(feature = "seeded-bugs")]
thread_local! {
    /// What is planted in arrays as they start.
    static PLANTED: std::cell::Cell<Option<raidlab_core::bugs::Bug>> =
        const { std::cell::Cell::new(None) };
}

fn assemble(config: &Config, found: &Found) -> Result<Array, AssembleError> {
    #[cfg(feature = "seeded-bugs")]
    if let Some(bug) = PLANTED.get() {
        return Array::assemble_planted(config, found, ANYTHING, bug);
    }
    Array::assemble(config, found, ANYTHING)
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
    fn round(&mut self, to: Superblock, random: &mut Random) {
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

    fn step(&mut self, random: &mut Random) {
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
    fn start(&mut self, random: &mut Random) {
        let there: Vec<bool> = self.copies.iter().map(|_| random.below(3) > 0).collect();
        let seen: Vec<_> =
            self.copies.iter().zip(&there).map(|(copy, there)| copy.filter(|_| *there)).collect();
        let outcome = assemble(&self.config, &found(&seen));
        let again = assemble(&self.config, &found(&seen));
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
            Err(AssembleError::NoSuperblock) => assert!(seen.iter().all(Option::is_none)),
            Err(AssembleError::TooFew(_)) => {}
            Err(error) => panic!("{error}: {seen:?}"),
        }
    }

    fn began(&mut self, array: &Array, seen: &[Option<Superblock>], random: &mut Random) {
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
        let level =
            serving.iter().any(|m| seen[*m].is_some_and(|copy| copy.events < newest.events));
        self.running = Some((serving, newest));
        if level {
            self.round(newest, random);
        }
        let view = array.superblock();
        if self.running.is_some() && (view.failed != newest.failed || level) {
            self.round(Superblock { events: newest.events + 1, ..view }, random);
        }
    }
}

#[test]
fn halves_that_went_on_alone_are_told_apart() {
    let (mut starts, mut refused) = (0, 0);
    for seed in 0..3000 {
        let mut random = Random(seed);
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
    let seen = found(&[full, None, full, full]);
    let error = Array::assemble(&config, &seen, Allow::default()).expect_err("1 is missing");
    assert_eq!(error, AssembleError::Missing([0b10, 0]));
    assert!(error.to_string().contains("member 1 had part in the array"), "{error}");
    let allow = Allow { missing: true, ..Allow::default() };
    let array = Array::assemble(&config, &seen, allow).expect("allowed");
    assert_eq!(out_of_service(&array), 0b10);
    // Who was known to be out of service needs no consent.
    let one = Some(superblock(9, 0b10));
    let array = Array::assemble(&config, &found(&[one, None, one, one]), Allow::default());
    assert_eq!(out_of_service(&array.expect("known")), 0b10);
    // A member whose superblock is torn is there, and is not used.
    let stale = Some(superblock(3, 0));
    let error = Array::assemble(&config, &found(&[full, stale, full, full]), Allow::default());
    assert_eq!(error.err(), Some(AssembleError::Missing([0b10, 0])));
    let few = Array::assemble(&config, &found(&[full, None, None, None]), ANYTHING);
    let error = few.expect_err("one of four");
    assert_eq!(error, AssembleError::TooFew([0b1110, 0]));
    assert!(error.to_string().contains("members 1, 2, 3"), "{error}");
}

#[test]
fn dirty_with_members_missing_must_be_allowed_unless_a_log_helps() {
    let dirty = |failed| Some(Superblock { clean: false, journal: true, ..superblock(9, failed) });
    let seen = found(&[None, dirty(1), dirty(1), dirty(1)]);
    let allow = Allow { missing: true, ..Allow::default() };
    let start = |config: &Config, seen: &Found| Array::assemble(config, seen, allow);
    for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
        let mut config = stripes(level, 4);
        let error = start(&config, &seen).expect_err("dirty and degraded");
        assert_eq!(error, AssembleError::DirtyDegraded([1, 0]), "{level}");
        assert!(error.to_string().contains("allow a dirty start"), "{error}");
        assert!(Array::assemble(&config, &seen, ANYTHING).is_ok(), "{level}");
        config.settings.consistency = Consistency::Bitmap { chunk: Sectors(8) };
        assert!(start(&config, &seen).is_err(), "{level}");
        config.settings.consistency = Consistency::Journal { sectors: Sectors(4096) };
        assert!(start(&config, &seen).is_ok(), "{level}: the journal has all");
        let without = Found { journal: false, ..seen.clone() };
        assert_eq!(start(&config, &without).err(), Some(AssembleError::JournalMissing), "{level}");
        assert!(Array::assemble(&config, &without, ANYTHING).is_ok(), "{level}");
        let clean = Superblock { clean: true, ..dirty(1).expect("one") };
        let clean = Some(clean);
        let without = Found { superblocks: vec![None, clean, clean, clean], ..without };
        assert!(start(&config, &without).is_ok(), "{level}: nothing is in the journal only");
    }
    let mut config = stripes(Level::Raid5, 4);
    config.settings.consistency = Consistency::PartialParity { slots: 6 };
    assert!(start(&config, &seen).is_ok(), "partial parity has what is lost");
    let three = mirror(3);
    let mirrored = Found { superblocks: vec![None, dirty(1), dirty(1)], ..seen };
    assert!(start(&three, &mirrored).is_ok(), "mirrors have it on the others");
}

/// A start repeats the newest superblock for who is one behind: not for the drive that has come into
/// a missing member's place meanwhile, which that superblock says is in service.
#[test]
fn a_fresh_drive_is_never_told_to_be_in_service_before_it_is_rebuilt() {
    let dirty = |events| Some(Superblock { clean: false, ..superblock(events, 0) });
    let seen = found(&[dirty(9), None, dirty(8)]);
    let mut array = Array::assemble(&mirror(3), &seen, ANYTHING).expect("two are there");
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
    let array = Array::assemble(&config, &found(&[Some(rebuilding); 2]), Allow::default());
    let array = array.expect("both are there");
    let view = array.superblock();
    assert_eq!((view.rebuilding, view.rebuilt_to), ([2, 0], Sector(24)));
    assert_eq!(out_of_service(&array), 0);
    // Its drive is not there: it is out of service, and had nothing to say anyway.
    let array = Array::assemble(&config, &found(&[Some(rebuilding), None]), Allow::default());
    assert_eq!(out_of_service(&array.expect("nobody is missing")), 2);
    // The whole one is not there: the other alone is not enough.
    let error = Array::assemble(&config, &found(&[None, Some(rebuilding)]), ANYTHING);
    assert_eq!(error.err(), Some(AssembleError::TooFew([3, 0])));
}

#[test]
fn without_superblocks_only_presence_counts() {
    let mut config = stripes(Level::Raid5, 3);
    config.settings.consistency = Consistency::None;
    let there = Some(Superblock::default());
    let array = Array::assemble(&config, &found(&[there, None, there]), Allow::default());
    assert_eq!(out_of_service(&array.expect("two of three")), 2);
    let error = Array::assemble(&config, &found(&[there, None, None]), ANYTHING);
    assert_eq!(error.err(), Some(AssembleError::TooFew([0b110, 0])));
}

#[test]
fn what_was_decided_at_the_start_is_recorded_before_a_write_is_answered() {
    for level in [Level::Raid1, Level::Raid5] {
        for seed in 0..50 {
            let config = if level == Level::Raid1 { mirror(3) } else { stripes(level, 3) };
            let mut random = Random(seed);
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
            driver.crash(&config, &mut random, &[], Allow::default()).expect("known to be out");
            assert!(driver.array.is_failed(MemberIndex(2)));
            assert_eq!(driver.read(0, 1), Ok(vec![8]));
        }
    }
}

#[test]
fn a_start_that_is_interrupted_again_and_again_ends_the_same() {
    for config in [mirror(2), mirror(3), stripes(Level::Raid5, 3), stripes(Level::Raid6, 4)] {
        for seed in 0..60 {
            let mut random = Random(seed);
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
                driver.crash(&config, &mut random, &[], Allow::default()).expect("all there");
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

#[cfg(feature = "seeded-bugs")]
#[test]
fn a_vote_with_a_bug_is_seen() {
    use raidlab_core::bugs::Bug;
    for bug in [Bug::StaleMemberAccepted, Bug::DivergedAccepted] {
        let seen = (0..200).any(|seed| {
            let run = || {
                PLANTED.set(Some(bug));
                let mut random = Random(seed);
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
