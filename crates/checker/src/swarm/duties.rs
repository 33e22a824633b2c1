//! What an engine does around the core, on drives whose records are bytes: what it hands to the core at each start
//! and when a drive is to come back is what a format finds there, whatever was done to the drives meanwhile.
//!
//! Before a start drives are harmed in every way: places that cannot be read or hold anything, older copies, drives
//! that went on alone, swapped, cut off, grown, wiped, with larger blocks, wrong log devices. The array may start
//! without asking only if everybody who is not whole was out of service before; a refusal must go away when the harm
//! is undone, when the administrator leaves those out who were harmed, as far as the level survives that, and when the
//! administrator says, truly, that what cannot be read was older. What is read after any start is judged like
//! everything else.

use std::fmt::Write as _;

use raidlab_core::consistency::{Allow, AssembleError, Finding};
use raidlab_core::contract::{IoOp, Superblock};
use raidlab_core::{Config, Consistency, Layout, MemberIndex, Sector, Sectors};

use super::Class;
use super::arrays::Mode;
use super::run::{Checked, Run, WAKES};
use super::special::Special;
use crate::device::Drives;
use crate::harness::{Ask, Harness, Started, named};
use crate::shape::{Set, all_of, has, set_of, words_of};

/// The drives at another moment.
pub(super) struct Past {
    drives: Drives,
    /// The newest events of the array at that moment, or before these drives went on alone.
    newest: u64,
    /// They went on by themselves since, without others.
    alone: bool,
}

/// Copies of drives kept at most.
const MOST_PAST: usize = 4;

/// What was done to drives before a start.
#[derive(Default)]
struct Harm {
    /// Members that are not what they were: in service they must be asked for.
    asks: Set,
    /// Members that were made what they were once.
    copies: Set,
    /// Members that are another array's.
    foreign: Set,
    /// Members of which only a superblock cannot be read that was older than the other.
    older: Set,
    /// The log device.
    log_device: bool,
    /// Something of a member's log cannot be read.
    log: bool,
    /// Members of an md array are in each other's places, where nobody who is harmed then would be known by its own.
    moved: bool,
    /// In words.
    what: String,
}

impl Harm {
    fn add(&mut self, what: &str, member: u16) {
        let comma = if self.what.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(self.what, "{comma}d{member} {what}");
    }
}

/// Ways to harm a drive.
const WAYS: [Special; 12] = [
    Special::SuperblockUnreadable,
    Special::SuperblockDamaged,
    Special::PageHarmed,
    Special::LogUnreadable,
    Special::OlderCopy,
    Special::WentOnAlone,
    Special::Swapped,
    Special::Resized,
    Special::LargerBlock,
    Special::Wiped,
    Special::Foreign,
    Special::HalfReady,
];

impl Run {
    /// Damages the superblock of a member.
    pub(super) fn spoil_superblock(&mut self, member: u16) {
        let device = MemberIndex(member);
        let drives = self.harness.drives();
        if !drives.has_bytes() {
            let at = drives.sectors(device);
            self.harness.drives_mut().rot(device, at, 0x40);
            return;
        }
        let (at, bits) = self.superblock_place(device);
        let bit = self.random.below(u64::from(bits)) as u32;
        self.harness.drives_mut().flip(device, at, bit);
    }

    /// One of the places of a superblock, and how many of its bits count.
    fn superblock_place(&mut self, device: MemberIndex) -> (u64, u32) {
        let places = self.harness.drives().superblock_places(device);
        places[self.random.below(places.len() as u64) as usize]
    }

    /// Keeps the drives as they are now, from time to time; mostly while one is rebuilt.
    pub(super) fn remember(&mut self) {
        if !self.harness.drives().has_bytes() {
            return;
        }
        let rebuilds = set_of(self.harness.array().status().rebuilding) != 0;
        if !self.random.chance(if rebuilds { 8 } else { 2 }) {
            return;
        }
        let drives = self.harness.drives().clone();
        let newest = drives.newest_events(self.members());
        self.keep(Past { drives, newest, alone: false });
    }

    fn keep(&mut self, past: Past) {
        if self.past.len() < MOST_PAST {
            self.past.push(past);
        } else {
            let place = self.random.below(MOST_PAST as u64) as usize;
            self.past[place] = past;
        }
    }

    /// A copy of all drives goes on elsewhere, without one that the level survives losing.
    pub(super) fn go_on_alone(&mut self) {
        if !self.harness.drives().has_bytes() || !self.random.chance(40) {
            return;
        }
        let member = self.random.below(u64::from(self.members())) as u16;
        let out = self.harness.drives().said_to_be_out(self.members());
        if !self.harness.shape().survives(out | 1 << member) {
            return;
        }
        let newest = self.harness.drives().newest_events(self.members());
        let mut other = self.harness.clone();
        other.log_mut().stop();
        other.drives_mut().part(self.random.next_u64());
        let allow = Allow {
            without: words_of(out | 1 << member),
            dirty_degraded: true,
            ..Allow::default()
        };
        if other.assemble(1 << member, allow) != Started::Well {
            return;
        }
        let len = other.shape().logical_block;
        for _ in 0..2 {
            other.ask(Ask { op: IoOp::Write, at: 0, len, fua: true });
            other.run_on(WAKES);
            other.forget();
        }
        other.crash(|ways| ways - 1);
        let drives = other.drives().clone();
        self.keep(Past { drives, newest, alone: true });
    }

    /// Starts with harmed drives; false when the array is yet to be started, with all harm undone.
    pub(super) fn start_harmed(&mut self) -> Checked<bool> {
        if self.budget.beyond || !self.random.chance(60) {
            return Ok(false);
        }
        if self.random.chance(20) {
            self.start_as_another()?;
        }
        let members = self.members();
        let out = self.harness.drives().said_to_be_out(members);
        let (mut trial, mut harm) = (self.harness.clone(), Harm::default());
        for _ in 0..=self.random.below(3) {
            self.do_harm(&mut trial, &mut harm, out);
        }
        if harm.what.is_empty() {
            return Ok(false);
        }
        let now = self.harness.now().0;
        for harness in [&mut self.harness, &mut trial] {
            harness.log_mut().add(now, 'H', &[], |line| line.put(format_args!("{}", harm.what)));
        }
        let survives = self.harness.shape().survives(harm.asks | out | self.budget.harmed);
        let in_service = harm.asks & !out & all_of(members);
        let told = in_service & !self.untold_copies(&trial, &harm);
        let may = self.may_be_out(harm.asks | out);
        match trial.assemble(0, Allow::default()) {
            Started::Well if told != 0 && survives => {
                self.harness = trial;
                self.broken(format!(
                    "the array starts without asking, though members {told:#b} are not whole: {}",
                    harm.what
                ))
            }
            // More was lost than the level survives, so that what is there may be of any age; or a copy is as old as
            // what a crash leaves, by all that can be read.
            Started::Well if in_service != 0 => Ok(false),
            Started::Well if harm.log && self.budget.harmed | out != 0 => Ok(false),
            Started::Well => {
                let whole = std::mem::replace(&mut self.harness, trial);
                self.take_away(harm.foreign, whole.drives());
                let superblock = self.harness.array().superblock();
                self.log_lost |= harm.log_device && !superblock.journal;
                // What its log protected is not consistent yet.
                self.owes_resync |= harm.log && superblock.synced_to != Sector::MAX;
                self.budget.unsynced |= self.owes_resync;
                self.untold_resync |= harm.log && self.harness.drives().is_md();
                // It could not be read for a while: one that stays so is a second failure at each start.
                for member in (0..members).filter(|_| harm.log).map(MemberIndex) {
                    self.harness.drives_mut().mend_log(member);
                }
                // Of md's journal only what is needed is read.
                if harm.log_device && self.harness.drives().is_md() {
                    self.harness.drives_mut().mend_log(MemberIndex(2 * members));
                }
                self.started(may)?;
                Ok(true)
            }
            Started::Refused(_) => self.answer(trial, &harm, survives),
        }
    }

    /// Copies that are no more than one event behind what those tell who were not harmed: nobody can tell them from
    /// what a crash leaves. When they were made one could that was harmed since.
    fn untold_copies(&self, trial: &Harness, harm: &Harm) -> Set {
        let events = |member: u16| {
            trial.drives().superblock(MemberIndex(member)).map_or(0, |known| known.events)
        };
        let whole = (0..self.members()).filter(|member| !has(harm.asks, *member));
        let newest = whole.map(events).max().unwrap_or(0);
        let copies = (0..self.members()).filter(|member| has(harm.copies, *member));
        copies.filter(|copy| events(*copy) + 1 >= newest).fold(0, |all, copy| all | 1 << copy)
    }

    /// A start was refused. The administrator leaves out who was harmed, or the harm is undone.
    fn answer(&mut self, trial: Harness, harm: &Harm, survives: bool) -> Checked<bool> {
        let only_members = harm.asks != 0 && !harm.log_device && !harm.log;
        if only_members && harm.older == harm.asks && self.random.chance(50) {
            return self.believe(trial, harm.asks);
        }
        if !only_members || !survives || self.random.chance(50) {
            return Ok(false);
        }
        let whole = self.harness.drives().clone();
        self.harness = trial;
        self.budget.harmed |= harm.asks;
        let allow = Allow { without: words_of(harm.asks), ..Allow::default() };
        self.start_allowed(0, allow)?;
        // Copies go, too.
        self.take_away(harm.copies | harm.foreign, &whole);
        Ok(true)
    }

    /// Drives go, and those are there in whose place they were put: else they might be most of the array at the next
    /// start.
    fn take_away(&mut self, members: Set, whole: &Drives) {
        for device in (0..self.members()).filter(|m| has(members, *m)).map(MemberIndex) {
            self.harness.drives_mut().take_contents(device, whole, device);
        }
    }

    /// The administrator says that what cannot be read of these members' superblocks was older, which is true.
    fn believe(&mut self, mut trial: Harness, members: Set) -> Checked<bool> {
        self.shares.has(Special::Believed);
        let allow = Allow { believe: words_of(members), ..Allow::default() };
        let may = self.may_be_out(members);
        match trial.assemble(0, allow) {
            Started::Well => {}
            Started::Refused(AssembleError::Missing(unused) | AssembleError::TooFew(unused))
                if set_of(named(&unused)) & members & !self.budget.harmed != 0 =>
            {
                return self.broken(format!("members {members:#b} are not believed"));
            }
            Started::Refused(_) => return Ok(false),
        }
        let whole = std::mem::replace(&mut self.harness, trial);
        // The places can be read again: else this would have to be said at each start until they are written.
        self.take_away(members, whole.drives());
        self.started(may)?;
        Ok(true)
    }

    /// Asks for another array than there is: it must be refused.
    fn start_as_another(&mut self) -> Checked {
        let mut config: Config = self.harness.config().array.clone();
        let layout = &config.layout;
        let what = match self.random.below(3) {
            0 => {
                let modes = Mode::ALL.into_iter().filter(|mode| mode.fits(layout.level));
                // An array of md whose journal was given up is one without, as any other.
                let given_up = self.log_lost && self.harness.drives().is_md();
                let is_other = |mode: &Mode| *mode != self.mode && *mode != Mode::None;
                let others: Vec<Mode> = modes
                    .filter(is_other)
                    .filter(|mode| !given_up || *mode != Mode::Resync)
                    .collect();
                let Some(mode) = others.get(self.random.below(others.len() as u64) as usize) else {
                    return Ok(());
                };
                config.settings.consistency = match crate::part::consistency(*mode) {
                    Consistency::Journal { .. } => {
                        Consistency::Journal { sectors: Sectors(1 << 20) }
                    }
                    other => other,
                };
                "another mode"
            }
            1 => {
                let Consistency::Bitmap { chunk } = config.settings.consistency else {
                    return Ok(());
                };
                config.settings.consistency = Consistency::Bitmap { chunk: Sectors(chunk.0 * 2) };
                "another bitmap chunk"
            }
            _ if layout.level.has_chunks() => {
                config.layout = Layout { chunk: Sectors(layout.chunk.0 * 2), ..layout.clone() };
                "another chunk"
            }
            _ => return Ok(()),
        };
        self.shares.has(Special::OtherParameters);
        let word = Allow { dirty_degraded: true, ..Allow::default() };
        match self.harness.would_start_as(&config, word) {
            true => self.broken(format!("the array starts with {what}")),
            false => Ok(()),
        }
    }

    /// What few seeds can have comes first.
    fn draw_way(&mut self) -> Special {
        match self.random.below(10) {
            0..4 if self.mode == Mode::PartialParity => Special::LogUnreadable,
            0..2 if self.past.iter().any(|past| past.alone) => Special::WentOnAlone,
            _ => WAYS[self.random.below(WAYS.len() as u64) as usize],
        }
    }

    /// Harms a drive, or two.
    fn do_harm(&mut self, trial: &mut Harness, harm: &mut Harm, out: Set) {
        if self.mode == Mode::Journal && !self.log_lost && self.random.chance(30) {
            return self.harm_log_device(trial, harm);
        }
        let member = self.random.below(u64::from(self.members())) as u16;
        let device = MemberIndex(member);
        let way = self.draw_way();
        if trial.drives().is_gone(device) || has(harm.asks, member) || harm.moved {
            return;
        }
        let newest = trial.drives().superblock(device);
        let done = match way {
            Special::SuperblockUnreadable => {
                let (at, _) = self.superblock_place(device);
                trial.drives_mut().damage(device, at, false);
                true
            }
            Special::SuperblockDamaged => self.harm_superblock(trial, device),
            Special::PageHarmed => self.harm_pages(trial, harm, member),
            Special::LogUnreadable => self.harm_log(trial, harm, member),
            Special::OlderCopy | Special::WentOnAlone => {
                self.harm_by_copy(trial, harm, (member, out), way == Special::WentOnAlone)
            }
            Special::Swapped => self.harm_by_swap(trial, harm, member),
            Special::Resized => {
                let block = trial.config().array.members[usize::from(member)].logical_block;
                let by = 8 * (1 + self.random.below(4));
                let total = trial.drives().resized(device, by, self.random.chance(50));
                trial.drives_mut().show(device, Some((total, block)));
                true
            }
            Special::LargerBlock => {
                let total = trial.drives().total(device);
                // md's superblocks do not say in which blocks an array is written.
                let fits = trial.config().array.members[usize::from(member)].logical_block == 1
                    && !trial.drives().is_md();
                if fits {
                    trial.drives_mut().show(device, Some((total, 8)));
                }
                fits
            }
            Special::Foreign => {
                trial.drives_mut().give_to_another(device);
                harm.foreign |= 1 << member;
                true
            }
            Special::HalfReady => self.harm_by_adding(trial, member, out),
            _ => {
                self.wipe(trial, device);
                true
            }
        };
        if !done {
            return;
        }
        self.note(trial, harm, (way, member), newest);
    }

    /// A bit of a whole superblock turns over. Of one that is damaged it might be the bit that did before.
    fn harm_superblock(&mut self, trial: &mut Harness, device: MemberIndex) -> bool {
        let (at, bits) = self.superblock_place(device);
        let bit = self.random.below(u64::from(bits)) as u32;
        let seen = trial.drives().examined(&trial.config().array, device);
        let is_whole = matches!(seen.superblock, Finding::Whole(_));
        if is_whole {
            trial.drives_mut().flip(device, at, bit);
        }
        is_whole
    }

    /// What was done to a drive, which had this newest superblock.
    fn note(
        &mut self,
        trial: &Harness,
        harm: &mut Harm,
        (way, member): (Special, u16),
        newest: Option<Superblock>,
    ) {
        let device = MemberIndex(member);
        self.shares.has(way);
        harm.add(way.name(), member);
        if matches!(way, Special::SuperblockUnreadable | Special::SuperblockDamaged) {
            let seen = trial.drives().examined(&trial.config().array, device).superblock;
            let is_newest = seen.readable().map(|carried| carried.superblock) == newest;
            harm.older |= Set::from(is_newest && newest.is_some()) << member;
        }
        // To md a device is the member that it says, wherever it is given.
        let is_found = way == Special::Swapped && trial.drives().is_md();
        if !matches!(way, Special::PageHarmed | Special::LogUnreadable) && !is_found {
            harm.asks |= 1 << member;
        }
    }

    /// The power went while a drive that is out of service was made ready to be added.
    fn harm_by_adding(&mut self, trial: &mut Harness, member: u16, out: Set) -> bool {
        if !has(out, member) {
            return false;
        }
        let device = MemberIndex(member);
        if trial.drives().is_md() {
            let pieces = self.random.below(3) as usize;
            trial.make_md_ready(device, pieces);
            return true;
        }
        let (from, total) = (trial.drives().log_start(device), trial.drives().total(device));
        let (to, places) = match self.random.below(3) {
            0 => (total, 1),
            _ => (from + self.random.below(total - from + 1), 0),
        };
        trial.drives_mut().make_ready_in_part(device, to, places);
        true
    }

    /// Nothing is there any more, or something else is.
    fn wipe(&mut self, trial: &mut Harness, device: MemberIndex) {
        trial.drives_mut().wipe(device);
        if self.random.chance(50) {
            let total = trial.drives().total(device);
            for at in total.saturating_sub(32)..total {
                let bits = self.random.next_u64();
                trial.drives_mut().rot(device, at, bits);
            }
        }
    }

    /// A page of the bitmap cannot be read or is damaged, on one member or on all.
    fn harm_pages(&mut self, trial: &mut Harness, harm: &mut Harm, member: u16) -> bool {
        if trial.drives().is_md() {
            return self.harm_bitmap(trial, harm, member);
        }
        let total = trial.drives().total(MemberIndex(member)) / 8 * 8;
        let pages = (total - trial.drives().log_start(MemberIndex(member))) / 16;
        if self.mode != Mode::Bitmap || pages < 2 {
            return false;
        }
        let at = total - 16 * (1 + self.random.below(pages - 1)) - 8 * (1 + self.random.below(2));
        let (all, flips) = (self.random.chance(20), self.random.chance(50));
        for member in 0..self.members() {
            let device = MemberIndex(member);
            if !all && self.random.chance(70) || trial.drives().is_gone(device) {
                continue;
            }
            match flips {
                true => {
                    let bit = self.random.below(512 * 8) as u32;
                    trial.drives_mut().flip(device, at, bit);
                }
                false => trial.drives_mut().damage(device, at, false),
            }
        }
        true
    }

    /// Some of md's bitmap on a member cannot be read: the member has to be left out. What is changed of it without a
    /// checksum is found by nobody, and nothing is promised.
    fn harm_bitmap(&mut self, trial: &mut Harness, harm: &mut Harm, member: u16) -> bool {
        let device = MemberIndex(member);
        let (from, len) = trial.drives().md_bitmap(device);
        if len == 0 {
            return false;
        }
        // The head; bits that are read are those up to the end of the bitmap's last 4 KiB.
        let at = from + self.random.below(len);
        trial.drives_mut().damage(device, at, false);
        harm.asks |= 1 << member;
        true
    }

    /// Some of a log of partial parity cannot be read.
    fn harm_log(&mut self, trial: &mut Harness, harm: &mut Harm, member: u16) -> bool {
        let device = MemberIndex(member);
        let (from, to) = (trial.drives().log_start(device), trial.drives().sectors(device));
        if from == to {
            return false;
        }
        let at = from + self.random.below(to - from);
        trial.drives_mut().damage(device, at, false);
        harm.log = true;
        true
    }

    /// A member is as it was some time, or as it became elsewhere.
    fn harm_by_copy(
        &mut self,
        trial: &mut Harness,
        harm: &mut Harm,
        (member, out): (u16, Set),
        alone: bool,
    ) -> bool {
        let copies = harm.copies | 1 << member;
        // All of them together may just be the array as it was.
        if all_of(self.members()) & !out & !copies == 0 {
            return false;
        }
        // What the others still tell: a copy that is one event behind may be what a crash leaves.
        let others = (0..self.members()).filter(|m| *m != member && !has(harm.asks, *m));
        let known = others.filter_map(|m| trial.drives().superblock(MemberIndex(m)));
        let newest = known.map(|superblock| superblock.events).max().unwrap_or(0);
        let Some(past) = self.past_of(member, newest, alone) else { return false };
        trial.drives_mut().take_contents(MemberIndex(member), past, MemberIndex(member));
        harm.copies = copies;
        true
    }

    /// Drives of another moment on which a member has what is told from what it has now.
    fn past_of(&mut self, member: u16, newest: u64, alone: bool) -> Option<&Drives> {
        let device = MemberIndex(member);
        let is_md = self.harness.drives().is_md();
        let is_other = |past: &&Past| {
            let Some(known) = past.drives.superblock(device) else { return false };
            let in_service = !has(set_of(known.failed), member);
            match past.alone {
                // md keeps no history: one that went as far as the array looks like what the array became.
                true if is_md => in_service && known.events + 1 < newest,
                // Since it went on, so did the array.
                true => in_service && past.newest + 1 < newest,
                false => known.events + 1 < newest,
            }
        };
        let fitting: Vec<&Past> =
            self.past.iter().filter(|past| past.alone == alone).filter(is_other).collect();
        let which = self.random.below(fitting.len() as u64) as usize;
        fitting.get(which).map(|past| &past.drives)
    }

    /// Two members are in each other's place.
    fn harm_by_swap(&mut self, trial: &mut Harness, harm: &mut Harm, member: u16) -> bool {
        let other = self.random.below(u64::from(self.members())) as u16;
        // Who was swapped before may come back into its place, and be whole.
        let known = harm.asks | self.budget.harmed;
        let is_free = !has(known, other) && !trial.drives().is_gone(MemberIndex(other));
        if other == member || !is_free || has(known, member) {
            return false;
        }
        let is_md = trial.drives().is_md();
        if is_md && !harm.what.is_empty() {
            return false;
        }
        trial.drives_mut().swap(MemberIndex(member), MemberIndex(other));
        harm.moved = is_md;
        if !is_md {
            harm.asks |= 1 << other;
        }
        harm.add("swapped", other);
        true
    }

    /// The log device is blank, another's, older, cut off, or cannot be read.
    fn harm_log_device(&mut self, trial: &mut Harness, harm: &mut Harm) {
        let device = MemberIndex(2 * self.members());
        if trial.drives().is_gone(device) || harm.log_device {
            return;
        }
        let total = trial.drives().total(device);
        let newest = trial.drives().newest_events(self.members());
        match self.random.below(7) {
            0 => self.wipe(trial, device),
            6 => trial.drives_mut().give_to_another(device),
            1 => {
                let (at, _) = self.superblock_place(device);
                trial.drives_mut().damage(device, at, false);
            }
            2 => {
                let (at, bits) = self.superblock_place(device);
                let bit = self.random.below(u64::from(bits)) as u32;
                trial.drives_mut().flip(device, at, bit);
            }
            3 => {
                let at = self.random.below(total);
                trial.drives_mut().damage(device, at, false);
            }
            4 => {
                let size = trial.drives().resized(device, 8, false);
                trial.drives_mut().show(device, Some((size, 1)));
            }
            _ => {
                let alone = self.random.chance(30);
                // md keeps no history: a log device that went as far as the array looks like its own.
                let is_told = alone && !trial.drives().is_md();
                let old = |past: &&Past| {
                    let known = past.drives.superblock(device);
                    past.alone == alone
                        && past.newest + 1 < newest
                        && known.is_some_and(|known| known.events + 1 < newest || is_told)
                };
                let Some(past) = self.past.iter().find(old) else { return };
                trial.drives_mut().take_contents(device, &past.drives, device);
            }
        }
        self.hit(Class::LogDevice);
        self.shares.has(Special::WrongLog);
        harm.log_device = true;
        harm.add(Special::WrongLog.name(), device.0);
    }

    /// The drive that is to come back has another history: a copy of any moment, one that went on alone, another
    /// member's.
    pub(super) fn change_history(&mut self, member: u16) {
        if !self.harness.drives().has_bytes() || !self.random.chance(60) {
            return;
        }
        let device = MemberIndex(member);
        let newest = self.harness.drives().newest_events(self.members());
        let taken = match self.random.below(4) {
            0 => {
                let other = MemberIndex(self.random.below(u64::from(self.members())) as u16);
                let before = self.harness.drives().clone();
                self.harness.drives_mut().take_contents(device, &before, other);
                other != device
            }
            which => {
                let past = self.past_of(member, newest, which == 1).cloned();
                if let Some(past) = &past {
                    self.harness.drives_mut().take_contents(device, past, device);
                }
                past.is_some()
            }
        };
        if taken {
            self.shares.has(Special::AnyReturn);
        }
    }
}
