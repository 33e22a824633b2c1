//! The decision about a start: every set of members with any history, readable or not, against an account of
//! which member has which acknowledged writes that is kept outside of the arrays.

use std::collections::BTreeSet;

use crate::support::carried::{MEMBER, mirror, raid5, start};
use crate::support::records::{next_nonce, nonces_from};
use crate::support::{Driver, Word};
use raidlab_core::consistency::{AssembleError, Assembled, Carried, Examined, Finding, Found};
use raidlab_core::contract::{Admin, Input, Outcome, Superblock};
use raidlab_core::{Config, Consistency, MemberIndex, Sectors};
use raidlab_random::SplitMix64;

/// Something that happens to an array.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A write is answered, and all is quiet and marked clean.
    Write,
    Fail(u16),
    /// The power goes, and the array starts without these members.
    Restart(u64),
    /// A member's drive is back: as it was, or as a fresh one where it may not.
    Return(u16),
    /// From here on the array is another one's copy: its starts have numbers of their own.
    Fork(u64),
}

/// A drive at some moment.
#[derive(Clone, Debug)]
struct Drive {
    examined: Examined,
    /// What its older place of the superblock says.
    before: Option<Superblock>,
    /// Acknowledged writes that it holds.
    holds: BTreeSet<u64>,
}

/// All drives at some moment, what was acknowledged until then, and who was in service.
#[derive(Clone, Debug)]
struct Moment {
    drives: Vec<Drive>,
    acknowledged: BTreeSet<u64>,
    in_service: Vec<u16>,
}

/// Tells what happens, with a moment after each write.
fn tell(config: &Config, deeds: &[Deed]) -> Vec<Moment> {
    nonces_from(1);
    let mut fork = 0;
    let mut driver = Driver::new(config);
    let members = config.layout.members;
    let mut holds = vec![BTreeSet::new(); usize::from(members)];
    let mut acknowledged = BTreeSet::new();
    let mut moments = Vec::new();
    for (index, deed) in deeds.iter().enumerate() {
        match *deed {
            Deed::Write => {
                assert_eq!(driver.write(index as u64, &[index as u8]), Outcome::Done);
                driver.run_until_idle(60);
                let name = fork << 32 | index as u64;
                acknowledged.insert(name);
                driver.in_service().iter().for_each(|m| {
                    holds[usize::from(*m)].insert(name);
                });
                moments.push(moment(config, &driver, &holds, &acknowledged));
            }
            Deed::Fail(member) => {
                driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
                driver.run_until_idle(60);
            }
            Deed::Restart(without) => {
                let lost: Vec<u16> = (0..members).filter(|m| without >> m & 1 == 1).collect();
                let word = Word { missing: true, dirty_degraded: false };
                driver.reassemble(config, &lost, word).expect("it starts");
                driver.run_until_idle(60);
            }
            Deed::Return(member) => {
                let sectors = Sectors(MEMBER);
                let fresh = Admin::Add { member: MemberIndex(member), sectors };
                let command = driver.judge_return(config, MemberIndex(member)).unwrap_or(fresh);
                if command == fresh {
                    driver.records.wipe(member);
                }
                driver.input(Input::Admin(command));
                driver.run_until_idle(200);
                assert!(driver.in_service().contains(&member));
                holds[usize::from(member)].clone_from(&acknowledged);
            }
            Deed::Fork(name) => {
                nonces_from(name << 32);
                fork = name;
            }
        }
    }
    moments
}

fn moment(
    config: &Config,
    driver: &Driver,
    holds: &[BTreeSet<u64>],
    acknowledged: &BTreeSet<u64>,
) -> Moment {
    let found = driver.records.found(config, &driver.members, &[]);
    let drives = (0..).zip(found.members).zip(holds).map(|((member, examined), holds)| Drive {
        examined,
        before: driver.records.superblock_before(member),
        holds: holds.clone(),
    });
    let (drives, in_service) = (drives.collect(), driver.in_service());
    Moment { drives, acknowledged: acknowledged.clone(), in_service }
}

/// What a member shows of its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Whole,
    /// The newer place cannot be read, or holds no record.
    NewerUnreadable,
    NewerDamaged,
    OlderUnreadable,
    Damaged,
    Blank,
    Foreign,
    Absent,
}

const SIGHTS: [Sight; 8] = [
    Sight::Whole,
    Sight::NewerUnreadable,
    Sight::NewerDamaged,
    Sight::OlderUnreadable,
    Sight::Damaged,
    Sight::Blank,
    Sight::Foreign,
    Sight::Absent,
];

impl Drive {
    fn seen(&self, sight: Sight) -> Examined {
        let carried = || match &self.examined.superblock {
            Finding::Whole(carried) => Some(carried.clone()),
            _ => None,
        };
        let before = || {
            let superblock = self.before?;
            Some(Carried { superblock, ..carried()? })
        };
        let superblock = match sight {
            Sight::Whole => return self.examined.clone(),
            Sight::NewerUnreadable => Finding::Unreadable(before()),
            Sight::NewerDamaged => Finding::Damaged(before()),
            Sight::OlderUnreadable => Finding::Unreadable(carried()),
            Sight::Damaged => Finding::Damaged(None),
            Sight::Blank => Finding::Blank,
            Sight::Foreign => Finding::Foreign,
            Sight::Absent => return Examined::absent(),
        };
        Examined { superblock, ..self.examined.clone() }
    }
}

/// Every choice of one of `count` for each of `members`, but for all but one in `stride`.
fn choices(members: usize, count: usize, stride: usize) -> impl Iterator<Item = Vec<usize>> {
    let all = count.pow(members as u32);
    (0..all)
        .step_by(stride)
        .map(move |index| (0..members).map(|m| index / count.pow(m as u32) % count).collect())
}

/// Who is in service.
fn serving(started: &Assembled) -> Vec<usize> {
    let members = 0..started.array.layout().members;
    let there = members.filter(|m| !started.array.is_failed(MemberIndex(*m)));
    there.map(usize::from).collect()
}

/// What may happen to an array of any redundant level: members come and go, also over restarts.
fn one_line(twice: bool) -> Vec<Deed> {
    use Deed::{Fail, Restart, Return, Write};
    let mut deeds = vec![Write, Fail(0), Write, Restart(0), Write, Return(0), Write, Restart(0)];
    deeds.extend([Write, Restart(0b10), Write, Restart(0), Write, Restart(0b10), Write, Return(1)]);
    deeds.extend([Write, Fail(2), Write, Restart(0), Restart(0), Write, Restart(0), Write]);
    if twice {
        deeds.extend([Fail(1), Write, Restart(0b110), Write, Return(1), Write, Restart(0), Write]);
    }
    deeds
}

/// The array and a copy of it go on by themselves, each with a part of the members.
fn halves(one: u64, other: u64) -> [Vec<Deed>; 2] {
    use Deed::{Fork, Restart, Write};
    let of = |name, without| {
        vec![Write, Fork(name), Restart(without), Write, Restart(without), Write, Restart(without)]
    };
    [of(5, other), of(6, one)].map(|mut deeds| {
        deeds.push(Write);
        deeds
    })
}

/// At any moment of its life, whatever each member shows of its drive, an array starts without being told to only
/// if everybody who is in service has everything that was acknowledged.
#[test]
fn nothing_acknowledged_is_forgotten_without_asking() {
    let kinds = [(mirror(2), false), (mirror(3), true), (raid5(4, Consistency::Resync), false)];
    let bitmap = Consistency::Bitmap { chunk: Sectors(8) };
    let kinds = kinds.into_iter().chain([(raid5(3, bitmap), false)]);
    let (mut started, mut refused) = (0, 0);
    for (config, twice) in kinds {
        let members = usize::from(config.layout.members);
        let deeds = one_line(twice);
        let deeds: Vec<_> = deeds.into_iter().filter(|d| members > 2 || !of_third(*d)).collect();
        for (index, moment) in tell(&config, &deeds).iter().enumerate() {
            for choice in choices(members, SIGHTS.len(), 1) {
                let sights: Vec<Sight> = choice.iter().map(|c| SIGHTS[*c]).collect();
                let seen = moment.drives.iter().zip(&sights).map(|(drive, s)| drive.seen(*s));
                let found =
                    Found { members: seen.collect(), nonce: next_nonce(), ..Found::default() };
                let context = format!("{} at {index}: {sights:?}", config.layout);
                match start(&config, &found) {
                    Ok(array) => {
                        started += 1;
                        for member in serving(&array) {
                            let holds = &moment.drives[member].holds;
                            assert_eq!(*holds, moment.acknowledged, "{context}: member {member}");
                            assert_eq!(sights[member], Sight::Whole, "{context}");
                        }
                    }
                    Err(error) => {
                        refused += 1;
                        let whole = |m: &u16| sights[usize::from(*m)] == Sight::Whole;
                        let all = moment.in_service.iter().all(whole);
                        assert!(!all, "{context}: {error}");
                    }
                }
            }
        }
    }
    assert!(started > 200 && refused > 10_000, "{started} started, {refused} refused");
}

/// Whether a deed needs a third member.
fn of_third(deed: Deed) -> bool {
    matches!(deed, Deed::Fail(2) | Deed::Return(2))
}

/// Drives of any moments of an array's life and of its halves', in any mixture: who is in service together has seen
/// the same.
#[test]
fn every_set_of_members_with_any_history_is_judged() {
    for (config, twice, stride, parts) in [
        (mirror(3), true, 1, (0b001, 0b110)),
        (raid5(4, Consistency::Resync), false, 1, (0b0001, 0b1000)),
    ] {
        let members = usize::from(config.layout.members);
        let [one, other] = halves(parts.0, parts.1);
        let stories = [one_line(twice), one, other].map(|deeds| tell(&config, &deeds));
        let moments: Vec<&Moment> = stories.iter().flatten().collect();
        let sights: Vec<Vec<(&Drive, Sight)>> =
            (0..members).map(|member| drives_of(&moments, member)).collect();
        let count = sights.iter().map(Vec::len).max().unwrap_or(0);
        let (mut started, mut refused, mut apart) = (0, 0, 0);
        for choice in choices(members, count, stride) {
            let pick = |m: usize| sights[m].get(choice[m]);
            let picks: Vec<_> = (0..members).filter_map(pick).collect();
            if picks.len() < members {
                continue;
            }
            let seen = picks.iter().map(|(drive, sight)| drive.seen(*sight));
            let found = Found { members: seen.collect(), nonce: next_nonce(), ..Found::default() };
            match start(&config, &found) {
                Ok(array) => {
                    started += 1;
                    let serving = serving(&array);
                    for member in &serving {
                        let (first, own) = (picks[serving[0]].0, picks[*member].0);
                        assert_eq!(own.holds, first.holds, "{serving:?}: {picks:?}");
                    }
                }
                Err(AssembleError::Diverged { .. }) => apart += 1,
                Err(_) => refused += 1,
            }
        }
        let counts = format!("{started} started, {refused} refused, {apart} apart");
        assert!(started > 50 && refused > 1000 && apart > 500, "{}: {counts}", config.layout);
    }
}

/// The different drives that a member was, and ways to see one of them.
fn drives_of<'a>(moments: &[&'a Moment], member: usize) -> Vec<(&'a Drive, Sight)> {
    let mut all: Vec<(&Drive, Sight)> = Vec::new();
    for moment in moments {
        let drive = &moment.drives[member];
        if all.iter().all(|(known, _)| known.examined.superblock != drive.examined.superblock) {
            all.push((drive, Sight::Whole));
        }
    }
    let last = all[all.len() - 1].0;
    all.extend([Sight::NewerUnreadable, Sight::Blank, Sight::Absent].map(|sight| (last, sight)));
    all
}

/// An array that loses power again and again, in the middle of anything, and of whose members some cannot be read then.
struct Life {
    config: Config,
    driver: Driver,
    random: SplitMix64,
    /// What every sector holds; `None` for any of several values.
    flat: Vec<Option<u8>>,
    started: u32,
    refused: u32,
}

impl Life {
    fn new(config: &Config, seed: u64) -> Self {
        let mut driver = Driver::new(config);
        driver.caches.begin();
        let flat = vec![Some(0); driver.array.capacity().0 as usize];
        let random = SplitMix64::new(seed);
        Self { config: config.clone(), driver, random, flat, started: 0, refused: 0 }
    }

    /// Does up to so many pieces of what is to be done.
    fn work(&mut self, most: u64) {
        for _ in 0..most {
            if self.driver.work.is_empty() {
                let Some(at) = self.driver.wake.take() else { return };
                self.driver.now = self.driver.now.max(at);
                self.driver.input(Input::Wake);
            } else {
                let index = self.random.below(self.driver.work.len() as u64);
                self.driver.step(index as usize);
            }
        }
    }

    fn write(&mut self) {
        let at = self.random.below(self.flat.len() as u64);
        let value = self.random.next_u64() as u8;
        let id = self.driver.begin_write(at, &[value], true);
        let patience = [4, 12, 200][self.random.below(3) as usize];
        self.work(patience);
        match self.driver.outcome(id) {
            Some(Outcome::Done) => self.flat[at as usize] = Some(value),
            Some(Outcome::Busy) => {}
            other => {
                assert_eq!(other, None);
                self.flat[at as usize] = None;
            }
        }
    }

    fn fail(&mut self) {
        let member = self.random.below(u64::from(self.config.layout.members)) as u16;
        let serving = self.driver.in_service();
        let whole = self.driver.array.superblock().rebuilding == [0; 2];
        let most = usize::from(self.config.layout.members - self.config.layout.survives());
        if serving.len() > most && serving.contains(&member) && whole {
            self.driver.input(Input::Admin(Admin::Fail(MemberIndex(member))));
            self.work(6);
        }
    }

    fn come_back(&mut self) {
        let all = 0..self.config.layout.members;
        let serving = self.driver.in_service();
        let Some(member) = all.into_iter().find(|m| !serving.contains(m)) else { return };
        self.work(200);
        self.driver.records.wipe(member);
        let sectors = Sectors(MEMBER);
        self.driver.input(Input::Admin(Admin::Add { member: MemberIndex(member), sectors }));
        self.work(60);
    }

    /// False when the life is over.
    fn lose_power(&mut self) -> bool {
        self.driver.lose_power(&mut self.random);
        let whole = self.driver.records.found(&self.config, &self.driver.members, &[]);
        let mut seen = whole.clone();
        for (member, one) in (0..).zip(&mut seen.members) {
            let drive = Drive {
                examined: one.clone(),
                before: self.driver.records.superblock_before(member),
                holds: BTreeSet::new(),
            };
            if self.random.below(3) == 0 {
                let sight = SIGHTS[self.random.below(SIGHTS.len() as u64) as usize];
                // A drive that was never told anything is no longer the one that it was.
                let sight = if sight == Sight::Blank { Sight::Absent } else { sight };
                *one = drive.seen(sight);
            }
        }
        let asked = Word::default();
        match self.driver.reassemble_from(&self.config, &seen, asked) {
            Ok(()) => self.started += 1,
            Err(_) => {
                self.refused += 1;
                match self.driver.reassemble_from(&self.config, &whole, asked) {
                    Ok(()) => {}
                    Err(AssembleError::DirtyDegraded { .. }) => return false,
                    Err(error) => panic!("all are there and readable: {error}"),
                }
            }
        }
        self.work(300);
        for (at, value) in self.flat.iter().enumerate() {
            let read = self.driver.read(at as u64, 1).expect("enough is there");
            assert!(value.is_none_or(|value| read == [value]), "sector {at}");
        }
        true
    }
}

#[test]
fn no_loss_of_power_lets_a_stale_member_in_whatever_can_be_read_then() {
    let (mut started, mut refused) = (0, 0);
    for config in [mirror(2), mirror(3), raid5(3, Consistency::Resync)] {
        for seed in 0..250 {
            let mut life = Life::new(&config, seed);
            for _ in 0..40 {
                match life.random.below(8) {
                    0 => life.fail(),
                    1 => life.come_back(),
                    2 if !life.lose_power() => break,
                    2 => {}
                    _ => life.write(),
                }
            }
            (started, refused) = (started + life.started, refused + life.refused);
        }
    }
    assert!(started > 300 && refused > 300, "{started} started, {refused} refused");
}
