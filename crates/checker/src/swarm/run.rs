//! One seed: what happens, and what must hold.

use raidlab_core::consistency::{Allow, AssembleError};
use raidlab_core::contract::{
    Admin, Event, IoOp, MetaIo, Outcome as Answered, Scrub, Work as Background,
};
use raidlab_core::{Config, MemberIndex, Sectors};

use super::arrays::{self, Mode, describe};
use super::budget::Budget;
use super::duties::Past;
use super::full::Full;
use super::special::{self, Intent, Shares};
use super::{Class, Hits, Options, Outcome, Violation};
use crate::caught::caught;
use crate::device::Format;
use crate::harness::{Ask, Fault, Harness, HarnessConfig, Started, Work};
use crate::shape::{Set, all_of, has, set_of};
use raidlab_random::SplitMix64;

/// A run under way.
pub(super) struct Run {
    seed: u64,
    pub(super) random: SplitMix64,
    pub(super) harness: Harness,
    pub(super) config: Config,
    pub(super) mode: Mode,
    enabled: [bool; Class::ALL.len()],
    /// This seed goes beyond what the array survives.
    pub(super) reckless: bool,
    pub(super) budget: Budget,
    hits: Hits,
    requests: u64,
    pub(super) ios: u64,
    crashes: u64,
    /// Redundancy may disagree for good: a crash without anything that keeps it consistent.
    pub(super) open_for_good: bool,
    /// The log device has failed, and no start used it since.
    pub(super) log_lost: bool,
    /// Nothing starts any more, as is due.
    pub(super) over: bool,
    /// Members out of service when the power went.
    pub(super) failed_before: Set,
    /// Sectors that were discarded some time.
    discarded: Vec<bool>,
    /// What this seed does besides, and what it had of that.
    pub(super) plan: Intent,
    pub(super) shares: Shares,
    /// A log is being replayed.
    pub(super) replaying: bool,
    /// A log of partial parity was lost, and what it protected is not made consistent yet.
    pub(super) owes_resync: bool,
    /// The same of md's logs, whose superblocks do not tell that of an array that was not stopped cleanly.
    pub(super) untold_resync: bool,
    /// The drives at other moments.
    pub(super) past: Vec<Past>,
    /// For each member the first request that came after it was harmed last: those before remember for as long as
    /// they last who did not answer them.
    harmed_before: Vec<u64>,
    /// Members that serve in full again.
    restored: Set,
    /// No request is under way any more.
    pub(super) at_rest: bool,
    /// The log device had no room at some time.
    pub(super) log_was_full: bool,
    /// Drives without room now.
    pub(super) full: Option<Full>,
    /// Resyncs that were begun.
    pub(super) resyncs: u64,
}

/// Of so many seeds in a hundred the records are bytes.
const DUTIES: u64 = 25;

/// What a step came to.
pub(super) type Checked<T = ()> = Result<T, Box<Violation>>;

/// How often the array is woken at most until it must be idle.
pub(super) const WAKES: usize = 3000;

impl Run {
    pub(super) fn new(seed: u64, options: &Options) -> Checked<Self> {
        let mut random = SplitMix64::new(seed);
        let config = arrays::draw(&mut random, options);
        let mut set_up = HarnessConfig::new(config.clone());
        set_up.longest = arrays::longest(&config);
        let superblocks = config.settings.consistency.has_superblocks();
        let format = match options.format {
            None => (superblocks && random.chance(DUTIES)).then_some(Format::Own),
            given => given,
        };
        if let Some(format) = format {
            set_up.put_in_bytes(format);
        }
        let config = set_up.array.clone();
        set_up.lines = options.lines;
        #[cfg(debug_assertions)]
        {
            set_up.bug = options.bug;
        }
        let harness = Harness::new(set_up).map_err(|error| {
            let (what, array) = (format!("cannot be set up: {error}"), describe(&config));
            Box::new(Violation { seed, array, what, lines: Vec::new() })
        })?;
        let mut enabled = [false; Class::ALL.len()];
        enabled.iter_mut().for_each(|on| *on = random.chance(50));
        let plan = Intent::draw(&mut random);
        // A block is lost only where more fails than the level survives.
        let reckless = random.chance(20) || plan.hole;
        let mut shares = Shares::default();
        special::of_array(&config, &mut shares);
        Ok(Self {
            seed,
            random,
            mode: Mode::of(config.settings.consistency),
            config,
            enabled,
            reckless,
            budget: Budget::default(),
            hits: Hits::default(),
            requests: 0,
            ios: 0,
            crashes: 0,
            open_for_good: false,
            log_lost: false,
            over: false,
            failed_before: 0,
            discarded: vec![false; harness.shape().capacity as usize],
            plan,
            shares,
            replaying: false,
            owes_resync: false,
            untold_resync: false,
            past: Vec::new(),
            restored: 0,
            harmed_before: vec![0; usize::from(harness.shape().members)],
            at_rest: false,
            log_was_full: false,
            full: None,
            resyncs: 0,
            harness,
        })
    }

    pub(super) fn go(&mut self) -> Checked<Outcome> {
        caught(|| self.everything_drawn()).unwrap_or_else(|what| self.broken(what))
    }

    fn everything_drawn(&mut self) -> Checked<Outcome> {
        let steps = 60 + self.random.below(180);
        for _ in 0..steps {
            self.step()?;
            if self.over {
                return Ok(self.outcome());
            }
        }
        if self.is_on(Class::Split) && self.random.chance(30) {
            self.split()?;
        }
        self.come_to_rest()?;
        if self.is_on(Class::Silent) && !self.budget.beyond {
            self.silent()?;
            self.two_silent()?;
        }
        if self.is_on(Class::Stale) && !self.budget.beyond {
            self.old_drive()?;
        }
        if !self.budget.beyond && self.mode != Mode::None {
            self.start_clean()?;
        }
        Ok(self.outcome())
    }

    fn outcome(&self) -> Outcome {
        Outcome {
            hash: self.harness.log().hash(),
            requests: self.requests,
            ios: self.ios,
            crashes: self.crashes,
            hits: self.hits,
            shares: self.shares,
        }
    }

    /// The event log so far, if it is kept.
    pub(super) fn lines(&self) -> Vec<String> {
        self.harness.log().lines().to_vec()
    }

    pub(super) fn broken<T>(&self, what: impl Into<String>) -> Checked<T> {
        Err(Box::new(Violation {
            seed: self.seed,
            array: describe(&self.config),
            what: what.into(),
            lines: self.harness.log().lines().to_vec(),
        }))
    }

    pub(super) fn is_on(&self, class: Class) -> bool {
        self.enabled[class as usize]
    }

    /// Sectors of the longest request, whole blocks.
    pub(super) fn longest(&self) -> u64 {
        let block = self.harness.shape().logical_block;
        (u64::from(self.harness.config().longest) / block * block).max(block)
    }

    pub(super) fn hit(&mut self, class: Class) {
        self.hits.hit(class);
    }

    pub(super) fn members(&self) -> u16 {
        self.config.layout.members
    }

    /// Whether one more member may be harmed; harms it if so.
    pub(super) fn may_harm(&mut self, member: u16) -> bool {
        self.harmed_before[usize::from(member)] = self.harness.next_request();
        let status = self.harness.array().status();
        let in_service = !has(set_of(status.failed) | set_of(status.rebuilding), member);
        if self.budget.allows(self.harness.shape(), member, in_service) {
            self.budget.harmed |= 1 << member;
            return true;
        }
        // Without superblocks nobody knows of the rows that a crash tore while a member was missing: what is computed
        // from such a row when one more is missing is anything, and so is what is written by it.
        let torn = self.mode == Mode::None && self.budget.unsynced;
        let reckless = self.reckless && !torn;
        if reckless {
            self.budget.harmed |= 1 << member;
            self.budget.beyond = true;
            self.hit(Class::TooMany);
        }
        reckless
    }

    fn step(&mut self) -> Checked {
        self.be_late();
        self.fill();
        self.look()?;
        self.remember();
        match self.random.below(100) {
            0..30 => self.submit(),
            // As many as keep a wide array busy and no more.
            30..84 => {
                for _ in 0..=self.members() / 12 {
                    self.finish_one();
                }
            }
            84..90 => self.wake(),
            90..95 => self.administer(),
            95 if self.crashes < 4 => self.crash()?,
            96 => self.calm(),
            _ => {}
        }
        self.look()
    }

    /// Something that is outstanding ends, in any way.
    fn finish_one(&mut self) {
        let outstanding = self.harness.outstanding();
        if outstanding == 0 {
            return;
        }
        let index = self.random.below(outstanding as u64) as usize;
        let fault = self.fault(index);
        self.note_hole(index);
        self.ios += 1;
        self.harness.finish(index, fault);
    }

    /// Judges answers and events.
    pub(super) fn look(&mut self) -> Checked {
        if let Some(what) = self.harness.violation() {
            let what = what.to_string();
            return self.broken(what);
        }
        for index in 0..self.harness.replies().len() {
            let answer = self.harness.replies()[index];
            self.requests += 1;
            let excused = match answer.outcome {
                Answered::Done => true,
                Answered::Inconsistent => self.budget.unsynced || self.budget.beyond,
                _ => self.budget.beyond,
            };
            if !excused {
                let what = format!(
                    "request {} ({:?} {}+{}) was answered {:?}, though nothing was done that the \
                     array does not survive (harmed {:#b})",
                    answer.id,
                    answer.ask.op,
                    answer.ask.at,
                    answer.ask.len,
                    answer.outcome,
                    self.budget.harmed
                );
                return self.broken(what);
            }
        }
        for index in 0..self.harness.events().len() {
            let event = self.harness.events()[index];
            self.hear(event)?;
        }
        self.harness.forget();
        let restored = self.restored;
        for member in (0..self.members()).filter(|member| has(restored, *member)) {
            let oldest = self.harness.oldest_unanswered();
            if oldest >= self.harmed_before[usize::from(member)] {
                self.restored &= !(1 << member);
                self.clear_if_well(member);
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: Event) -> Checked {
        match event {
            Event::MemberFailed(member)
                if self.budget.harmed >> member.0 & 1 == 0 && !self.budget.beyond =>
            {
                self.broken(format!(
                    "member {} was failed though nothing was wrong with it",
                    member.0
                ))
            }
            Event::ArrayFailed if !self.budget.beyond => {
                self.broken("the array failed within what it survives")
            }
            // An array that has lost too much waits for no room.
            Event::JournalFailed if self.budget.beyond && self.log_was_full => Ok(()),
            Event::JournalFailed if !self.log_lost => {
                self.broken("the log device was failed though nothing was wrong with it")
            }
            Event::Mismatch { at, len, .. } if !self.may_disagree() && !self.is_open(at.0, len) => {
                self.broken(format!("a scrub found what is not there: {event:?}"))
            }
            Event::Started(Background::LogReplay) => {
                self.replaying = true;
                Ok(())
            }
            // A log that cannot be read leaves it to a resync.
            Event::Started(Background::Resync) => {
                self.resyncs += 1;
                self.budget.unsynced |= self.harness.shape().parities() > 0;
                Ok(())
            }
            Event::Finished {
                work: work @ (Background::Resync | Background::LogReplay), ..
            } => {
                self.replaying &= work != Background::LogReplay;
                // Without its log a resync comes next.
                if work == Background::LogReplay && (self.log_lost || self.owes_resync) {
                    return Ok(());
                }
                self.owes_resync &= work != Background::Resync;
                self.untold_resync &= work != Background::Resync;
                self.budget.unsynced = self.open_for_good;
                self.budget.disagrees = self.open_for_good;
                Ok(())
            }
            Event::Restored(member) => {
                self.restored |= 1 << member.0;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether copies of a range may differ because nobody cares what it holds.
    fn is_open(&self, at: u64, len: u32) -> bool {
        let mirror = self.harness.shape().parities() == 0;
        // The event of a range comes later than its comparison: a write may have ended meanwhile.
        let open = |sector: u64| {
            self.harness.oracle().is_open(sector)
                || self.discarded[sector as usize] && !self.at_rest
        };
        mirror && (at..at + u64::from(len)).any(open)
    }

    /// Whether redundancy may disagree somewhere.
    pub(super) fn may_disagree(&self) -> bool {
        self.budget.disagrees || self.budget.beyond || self.harness.unanswered() > 0
    }

    /// Nothing is wrong with a member any more, if its drive has no bad sector.
    pub(super) fn clear_if_well(&mut self, member: u16) {
        let device = MemberIndex(member);
        let drives = self.harness.drives();
        // What cannot be read of pages and logs is on other members too, or made anew.
        let all = drives.sectors(device);
        // What was given up is yet to end with a timeout.
        let mut late =
            (0..self.harness.outstanding()).filter(|index| self.harness.is_abandoned(*index));
        let late = late.any(|index| self.harness.device(index) == Some(device));
        let well = drives.first_bad(device, 0, all, false).is_none() && !drives.is_gone(device);
        let well = well && !late && !drives.is_superblock_bad(device);
        let well = well && !self.is_full_for_good(device);
        // The log device is told when all members in service know: who does not yet may have failed by then.
        let events = |device| drives.superblock(device).map_or(0, |known| known.events);
        let well = well && events(device) >= events(MemberIndex(2 * self.members()));
        let status = self.harness.array().status();
        let away = has(set_of(status.failed) | set_of(status.rebuilding), member);
        if well && !away {
            self.budget.harmed &= !(1 << member);
        }
    }

    fn submit(&mut self) {
        if !self.harness.can_submit() {
            self.hit(Class::Full);
            return;
        }
        let batch = if self.random.chance(15) { 1 + self.random.below(3) } else { 0 };
        if batch == 0 {
            let ask = self.draw_request();
            self.harness.submit(ask);
            return;
        }
        // Neighbours handed in together.
        self.harness.plug();
        let mut ask = self.draw_request();
        for _ in 0..=batch {
            if !self.harness.can_submit() {
                break;
            }
            self.harness.submit(ask);
            let next = ask.at + ask.len;
            ask = self.draw_request();
            let block = self.harness.shape().logical_block;
            if self.random.chance(70) && next + block <= self.harness.shape().capacity {
                ask = Ask { op: IoOp::Write, at: next, len: block, ..ask };
            }
        }
        self.harness.unplug();
    }

    fn draw_request(&mut self) -> Ask {
        let (capacity, block) = (self.harness.shape().capacity, self.harness.shape().logical_block);
        let blocks = capacity / block;
        let at = self.first_block(blocks);
        let most = (blocks - at).min(self.longest() / block).max(1);
        let len = if self.random.chance(60) {
            1 + self.random.below(2)
        } else {
            1 + self.random.below(most)
        };
        let (at, len) = (at * block, len.min(most) * block);
        let (op, len) = match self.random.below(100) {
            0..55 => (IoOp::Write, len),
            55..80 => (IoOp::Read, len),
            80..90 => (IoOp::Flush, 0),
            90..97 => (IoOp::WriteZeroes, len),
            _ => (IoOp::Discard, len),
        };
        let at = if len == 0 { 0 } else { at };
        let fua = op == IoOp::Write && self.random.chance(20);
        let ask = self.aim(Ask { op, at, len, fua });
        if ask.op == IoOp::Discard {
            self.discarded[ask.at as usize..(ask.at + ask.len) as usize].fill(true);
        }
        ask
    }

    /// The first logical block of a request: in huge chunks mostly where a slice ends.
    fn first_block(&mut self, blocks: u64) -> u64 {
        let slice = self.config.settings.plan_rows.0;
        if slice >= blocks || self.config.layout.chunk.0 <= slice || self.random.chance(30) {
            return self.random.below(blocks);
        }
        let end = (1 + self.random.below(blocks / slice)) * slice;
        end.saturating_sub(self.random.below(8)).min(blocks - 1)
    }

    /// Whether and how the I/O at `index` fails.
    fn fault(&mut self, index: usize) -> Fault {
        if self.finds_no_room(index) {
            return Fault::NoSpace;
        }
        let (device, op, len) = match *self.harness.work(index) {
            Work::Io(io) => (io.member, io.op, io.len),
            Work::Meta(_, MetaIo { member, .. }) => (member, IoOp::Write, 1),
            Work::Job(_) => return Fault::None,
        };
        let members = self.members();
        if device.0 < members && self.makes_hole(op) && self.may_harm(device.0) {
            self.hit(Class::MediaInRebuild);
            return Fault::Media { sector: 0, stuck: false };
        }
        if !self.random.chance(4) {
            return Fault::None;
        }
        let choice = self.random.below(4);
        let (class, fault) = match choice {
            0 | 1 => {
                let sector = self.random.below(u64::from(len.max(1))) as u32;
                (Class::Media, Fault::Media { sector, stuck: self.random.chance(30) })
            }
            2 => (Class::Timeout, Fault::Timeout { carried_out: self.random.chance(50) }),
            _ => (Class::MemberLost, Fault::Gone),
        };
        if device.0 == 2 * members {
            if !self.is_on(Class::LogDevice) || op == IoOp::Read || !self.may_lose_log() {
                return Fault::None;
            }
            self.log_lost = true;
            self.hit(Class::LogDevice);
            return fault;
        }
        if !self.is_on(class) {
            return Fault::None;
        }
        if device.0 < members {
            let rebuilding = self.budget.harmed & !(1 << device.0) != 0;
            if !self.may_harm(device.0) {
                return Fault::None;
            }
            if class == Class::Media && op == IoOp::Read && rebuilding {
                self.hit(Class::MediaInRebuild);
            }
        }
        self.hit(class);
        fault
    }

    /// Wakes the array; what is outstanding beyond its deadline then ends with a timeout.
    fn wake(&mut self) {
        if let Some(at) = self.harness.wakes_at() {
            self.make_room_in_time(at);
        }
        if self.config.settings.deadline.is_some() && self.harness.outstanding() > 0 {
            let devices =
                (0..self.harness.outstanding()).filter_map(|index| self.harness.device(index));
            let members = self.members();
            let late: Vec<u16> = devices.map(|device| device.0).collect();
            if !self.is_on(Class::Timeout) || late.iter().any(|device| *device >= members) {
                return;
            }
            let all = late.iter().fold(self.budget.harmed, |set, member| set | 1 << member);
            if !self.harness.shape().survives(all) || self.budget.unsynced {
                return;
            }
            self.budget.harmed = all;
            for member in late {
                self.harmed_before[usize::from(member)] = self.harness.next_request();
            }
            self.hit(Class::Timeout);
        }
        self.harness.wake();
    }

    /// Everything outstanding ends well.
    fn calm(&mut self) {
        self.ios += self.harness.outstanding() as u64;
        self.harness.run();
    }

    fn administer(&mut self) {
        if self.begins_rebuild() {
            return;
        }
        let member = self.random.below(u64::from(self.members())) as u16;
        let (device, sectors) =
            (MemberIndex(member), self.config.members[usize::from(member)].sectors);
        match self.random.below(8) {
            0 if self.is_on(Class::MemberLost) => {
                if !self.harness.array().is_failed(device) && self.may_harm(member) {
                    self.hit(Class::MemberLost);
                    self.harness.command(Admin::Fail(device));
                }
            }
            1..4 => self.put_back(member),
            4 if !self.harness.config().replacements => {}
            4 => {
                let replacement = self.harness.array().replacement(device);
                let in_use = has(set_of(self.harness.array().status().replacing), member);
                if self.is_quiet(replacement) && !in_use {
                    self.harness.renew_drive(replacement);
                    self.harness.command(Admin::Replace { member: device, sectors, consent: true });
                }
            }
            5 => self.harness.command(Admin::StartScrub(Scrub::Check)),
            // Without superblocks nobody would remember what was stopped.
            6 if self.mode != Mode::None => {
                let is_replacing = has(set_of(self.harness.array().status().replacing), member);
                let command = match is_replacing {
                    true => Admin::FailReplacement(device),
                    false => Admin::StopBackground,
                };
                self.harness.command(command);
            }
            _ => {
                // None of these makes sense: refused, and nothing changes.
                let small = Sectors(sectors.0 - 1);
                let wrong = [
                    Admin::Add { member: device, sectors: small },
                    Admin::Fail(MemberIndex(self.members())),
                    Admin::Replace { member: device, sectors: small, consent: true },
                ];
                self.harness.command(wrong[self.random.below(3) as usize]);
            }
        }
    }

    fn is_quiet(&self, device: MemberIndex) -> bool {
        (0..self.harness.outstanding()).all(|index| self.harness.device(index) != Some(device))
    }

    /// A failed member's drive comes back, or a fresh one takes its place.
    fn put_back(&mut self, member: u16) {
        let device = MemberIndex(member);
        if !self.harness.array().is_failed(device) || !self.is_quiet(device) || self.budget.beyond {
            return;
        }
        if self.harness.drives().superblock(device).is_some()
            && self.is_on(Class::Stale)
            && self.random.chance(50)
        {
            self.hit(Class::Stale);
            self.harness.drives_mut().set_gone(device, false);
            self.change_history(member);
            if let Ok(command) = self.harness.judge_return(device) {
                self.harness.command(command);
                return;
            }
        }
        self.renew(member);
    }

    /// A fresh drive in the place of a failed member.
    pub(super) fn renew(&mut self, member: u16) {
        let device = MemberIndex(member);
        self.harness.renew_drive(device);
        let sectors = self.config.members[usize::from(member)].sectors;
        self.harness.command(Admin::Add { member: device, sectors });
    }

    /// The power goes, and comes back.
    fn crash(&mut self) -> Checked {
        let classes = [Class::Crash, Class::CrashAndLoss, Class::Torn, Class::CacheLost];
        if !classes.iter().any(|class| self.is_on(*class)) {
            return Ok(());
        }
        // As with md an array counts as consistent at the next start if a log has entries then, though it was being
        // made so everywhere, since a log had been lost: `docs/md-format.md` says that this is not promised.
        if self.untold_resync {
            return Ok(());
        }
        // A sector that cannot be read and parity that may be wrong are two failures.
        if self.is_unprotected_by_log() && self.harmed_in_service() != 0 {
            if !self.reckless {
                return Ok(());
            }
            self.budget.beyond = true;
        }
        self.crashes += 1;
        self.room_after_crash();
        self.failed_before = set_of(self.harness.array().status().failed);
        let durable = self.harness.drives().is_durable();
        let way = self.random.below(3);
        let random = &mut self.random;
        self.harness.crash(|ways| match way {
            0 => 0,
            1 => ways - 1,
            _ => random.below(u64::from(ways)) as u32,
        });
        if !durable {
            self.hit(Class::Crash);
            match way {
                0 => self.hit(Class::CacheLost),
                2 => self.hit(Class::Torn),
                _ => {}
            }
        }
        self.after_crash();
        self.go_on_alone();
        self.start_again()?;
        // Again in the middle of the recovery, up to twice.
        while self.is_on(Class::CrashInRecovery)
            && !self.untold_resync
            && self.random.chance(40)
            && self.crashes < 6
        {
            self.crashes += 1;
            self.hit(Class::CrashInRecovery);
            for _ in 0..self.random.below(8) {
                match self.harness.outstanding() {
                    0 => {
                        self.harness.wake();
                    }
                    count => {
                        let index = self.random.below(count as u64) as usize;
                        self.harness.finish(index, Fault::None);
                    }
                }
            }
            self.look()?;
            self.failed_before = set_of(self.harness.array().status().failed);
            let random = &mut self.random;
            self.harness.crash(|ways| random.below(u64::from(ways)) as u32);
            self.after_crash();
            self.start_again()?;
        }
        Ok(())
    }

    /// Whether a crash leaves parity that may be wrong.
    fn is_unprotected_by_log(&self) -> bool {
        let logged = match self.mode {
            Mode::PartialParity => true,
            Mode::Journal => !self.log_lost,
            _ => false,
        };
        self.harness.shape().parities() > 0 && !logged
    }

    /// Harmed members that the array uses, for what they can still read.
    pub(super) fn harmed_in_service(&self) -> Set {
        let failed = set_of(self.harness.array().status().failed);
        self.budget.harmed & !failed
    }

    fn after_crash(&mut self) {
        self.replaying = false;
        self.budget.unsynced |= self.is_unprotected_by_log();
        self.budget.disagrees = true;
        if self.mode == Mode::None {
            self.open_for_good = true;
        }
    }

    /// Two halves of a mirrored array each go on alone; together they must be refused.
    fn split(&mut self) -> Checked {
        let level = self.harness.shape().level;
        let superblocks = self.mode != Mode::None;
        let quiet = self.budget == Budget::default();
        if level.redundancy() != raidlab_core::Redundancy::Mirror || !superblocks || !quiet {
            return Ok(());
        }
        self.come_to_rest()?;
        if self.budget != Budget::default() {
            return Ok(());
        }
        self.hit(Class::Split);
        let allow = Allow { dirty_degraded: true, ..Allow::default() };
        let all = all_of(self.members());
        let mut other = self.harness.clone();
        for (harness, lost) in [(&mut self.harness, all & !1), (&mut other, 1)] {
            harness.crash(|ways| ways - 1);
            if harness.assemble_without_missing(lost, lost, allow) != Started::Well {
                harness.violate("half a mirror does not start alone".into());
            }
            harness.ask(Ask { op: IoOp::Write, at: 0, len: 1, fua: true });
            harness.run_on(WAKES);
        }
        self.harness.crash(|ways| ways - 1);
        for member in 1..self.members() {
            self.harness.drives_mut().take_drive(MemberIndex(member), other.drives());
        }
        if !matches!(
            self.harness.assemble(0, allow),
            Started::Refused(AssembleError::Diverged { .. })
        ) {
            return self.broken("two halves that each went on alone are assembled together");
        }
        // The administrator chooses a half.
        if self.harness.assemble_without_missing(all & !1, all & !1, allow) != Started::Well {
            return self.broken("half a mirror does not start again");
        }
        self.harness.forget();
        self.budget.harmed = all & !1;
        Ok(())
    }
}
