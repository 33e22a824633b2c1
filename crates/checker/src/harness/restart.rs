//! Crashes and starts.

use raidlab_core::consistency::{
    Allow, AssembleError, Assembled, Examined, Found, ReturnRefusal, Unused, Wanted,
};
use raidlab_core::contract::{Admin, Event, Input, IoOp, MemberBits, MemberIo, Record};
use raidlab_core::{Array, Config, Consistency, MemberIndex};
use raidlab_metadata::Looked;

use super::Harness;
use crate::content::Content;
use crate::device::{Fate, IDENTITY};
use crate::shape::{Set, has, set_of};

/// How a start went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// The array is there.
    Well,
    /// It was refused.
    Refused(AssembleError),
}

/// The members of a list.
pub fn named(unused: &[Unused]) -> MemberBits {
    unused.iter().fold([0; 2], |mut bits, one| {
        bits[one.member.at() / 64] |= 1 << (one.member.at() % 64);
        bits
    })
}

impl Harness {
    /// Writes the metadata of a new array.
    pub(super) fn format(&mut self) {
        if !self.config.array.settings.consistency.has_superblocks() {
            return;
        }
        let record = Record::Superblock(self.array.superblock());
        let journal = self.array.journal();
        for member in (0..self.shape.members).map(MemberIndex).chain([journal]) {
            for part in 0.. {
                let (ticket, more) = self.drives.send_record((member, record, part), 0, &[], false);
                self.drives.complete(ticket, true);
                if !more {
                    break;
                }
            }
        }
    }

    pub(super) fn set_up_memory(&mut self) {
        self.scratch = self.array.scratch();
        let requests = self.config.array.limits.requests;
        let buffers = (requests * self.config.longest) as usize;
        let scratch = (self.scratch.count * self.scratch.len) as usize;
        self.memory.clear();
        self.memory.resize(buffers + scratch, 0xeeee_eeee_eeee_eeee);
        self.free.clear();
        self.free.extend((0..requests).rev());
    }

    /// Plants the configured bug.
    pub(super) fn plant(&mut self) {
        #[cfg(debug_assertions)]
        if let Some(bug) = self.config.bug {
            self.array.plant(bug);
        }
    }

    /// Members are lost: what they held may be excepted from the promise.
    pub(super) fn note_lost(&mut self, lost: Set, forced: bool) {
        if !self.config.strict {
            self.oracle.lose(lost, forced);
        }
    }

    /// What md's lists of bad blocks name at a start is not on its member: as if it could not be read.
    fn note_listed(&mut self) {
        for member in (0..self.shape.members).filter(|_| !self.config.strict) {
            let listed: Vec<_> = self.array.listed_blocks(MemberIndex(member)).collect();
            for (at, len) in listed {
                self.oracle.lose_rows(1 << member, at.0..at.0 + len.0);
            }
        }
    }

    /// An I/O to a member failed: all that it reached, and what else the same read wants of that
    /// member, is computed from the others, which a crash may have left disagreeing with it. What
    /// is written there then makes what other lost members held wrong too.
    pub(super) fn note_unreadable(&mut self, io: &MemberIo) {
        let MemberIo { member, at, len, .. } = *io;
        if self.config.strict || member.0 >= self.shape.members || self.shape.parities() == 0 {
            return;
        }
        let lost = self.known_failed | 1 << member.0;
        self.oracle.lose_rows(lost, at.0..at.0 + u64::from(len));
        for open in self.open.iter().filter(|open| open.ask.op == IoOp::Read) {
            for sector in open.ask.at..open.ask.at + open.ask.len {
                let (holder, row) = self.shape.copies(sector)[0];
                if holder == member.0 {
                    self.oracle.lose_rows(1 << holder, u64::from(row)..u64::from(row) + 1);
                }
            }
        }
    }

    #[cfg(not(debug_assertions))]
    pub(super) fn assembled(
        &self,
        wanted: &Wanted,
        found: &Found,
        allow: Allow,
    ) -> Result<Assembled, AssembleError> {
        Array::assemble(wanted, found, allow)
    }

    #[cfg(debug_assertions)]
    pub(super) fn assembled(
        &self,
        wanted: &Wanted,
        found: &Found,
        allow: Allow,
    ) -> Result<Assembled, AssembleError> {
        match self.config.bug {
            Some(bug) => Array::assemble_planted(wanted, found, allow, bug),
            None => Array::assemble(wanted, found, allow),
        }
    }

    /// The power goes; `pick` chooses one of so many ways for each thing that a crash decides, 0 as
    /// if it had never been written. [`Self::assemble`] comes next.
    pub fn crash(&mut self, mut pick: impl FnMut(u32) -> u32) {
        let fates = self.drives.fates();
        let picks: Vec<u32> = fates.iter().map(|fate| pick(fate.ways)).collect();
        self.log_crash(&fates, &picks);
        let mut image = Vec::new();
        self.drives.image(&fates, &picks, &mut image);
        self.known_failed = self.remembered();
        self.restart_drives(&image);
    }

    /// Members that a driver without superblocks remembers not to use: failed, not rebuilt, or with
    /// blocks that a rebuild could not have.
    fn remembered(&self) -> Set {
        match self.config.array.settings.consistency {
            Consistency::None => self.known_failed | set_of(self.array.superblock().rebuilding),
            _ => self.known_failed,
        }
    }

    /// Puts what a crash decides into the log.
    pub fn log_crash(&mut self, fates: &[Fate], picks: &[u32]) {
        let now = self.now.0;
        self.log.add(now, 'X', &[], |line| {
            for (fate, pick) in fates.iter().zip(picks) {
                line.put(format_args!("{fate}={pick} "));
            }
        });
    }

    /// The same with what the media hold afterwards given as a whole.
    pub fn restart_drives(&mut self, image: &[Content]) {
        // Whoever was not yet said to be back everywhere may not be taken back.
        self.known_failed = self.out_of_service();
        self.drives.restart(image);
        self.oracle.crash();
        if self.known_failed != 0 {
            self.oracle.crashed_without_all();
        }
        self.open.clear();
        self.work.clear();
        self.waiting.clear();
        self.gathered.clear();
        self.groups.clear();
        self.jobs.clear();
        self.wake = None;
        self.finished = false;
        self.log_failed = false;
    }

    /// Becomes what a crash of `other` left that put `image` on the media. Cheaper than a copy: the
    /// array is not copied, since [`Self::assemble`] makes a new one.
    pub fn start_from(&mut self, other: &Self, image: &[Content]) {
        self.drives.clone_from(&other.drives);
        self.oracle.clone_from(&other.oracle);
        self.known_failed = other.remembered();
        self.now = other.now;
        self.next_id = other.next_id;
        self.violation = None;
        self.forget();
        self.restart_drives(image);
    }

    /// The same when the administrator says yes to leaving out those named as missing, if all of them are among
    /// those who `may` be: nobody else has anything wrong with it.
    pub fn assemble_without_missing(&mut self, lost: Set, may: Set, allow: Allow) -> Started {
        match self.assemble(lost, allow) {
            Started::Refused(AssembleError::Missing(unused))
                if set_of(named(&unused)) & !may == 0 =>
            {
                self.assemble(lost, Allow { without: named(&unused), ..allow })
            }
            started => started,
        }
    }

    /// Members that fail, by the events that were not forgotten yet.
    #[must_use]
    pub fn failures_told(&self) -> Set {
        self.events.iter().fold(0, |told, event| match event {
            Event::MemberFailed(member) => told | 1 << member.0,
            _ => told,
        })
    }

    /// Drives that an administrator has to leave out after this refusal, as what stands on them does not tell what
    /// became of them; none but of md 0.90.
    #[must_use]
    pub fn untold(&self, lost: Set, refused: &AssembleError) -> Set {
        self.drives.untold(lost, refused)
    }

    /// The command that takes a drive back into its place, if the array has it back.
    ///
    /// # Errors
    /// Why it has not.
    pub fn judge_return(&self, member: MemberIndex) -> Result<Admin, ReturnRefusal> {
        let consistency = self.array.consistency();
        let examined = match self.drives.returning(member, &self.array.superblock(), consistency) {
            Some(looked) => looked.examined,
            None => self.drives.examined(&self.config.array, member),
        };
        self.array.judge_return(&IDENTITY, member, &examined)
    }

    /// Whether another array than this would start with what is on the drives.
    #[must_use]
    pub fn would_start_as(&self, config: &Config, allow: Allow) -> bool {
        let found = match self.drives.is_md() {
            true => self.drives.clone().joined(0, allow).map(|finds| finds.found),
            false => Ok(self.drives.found(&self.config.array, |_| false).0),
        };
        let Ok(found) = found else { return false };
        Array::assemble(&Wanted::from(config), &found, allow).is_ok()
    }

    /// Starts the array again with what is on the drives, without those `lost` (a bit each: members,
    /// then replacements, then the log device). After a crash or an orderly stop.
    pub fn assemble(&mut self, lost: Set, allow: Allow) -> Started {
        let config = &self.config.array;
        let members = self.shape.members;
        let (mut looked, mut lost, mut former) = (Vec::new(), lost, None);
        let started = if config.settings.consistency == Consistency::None {
            Array::new(config).map_err(AssembleError::Config)
        } else if self.drives.is_md() {
            self.assemble_md(lost, allow).map(|started| {
                (looked, former) = (started.looked, started.former_journal);
                // Who failed in a replay is where it was before drives changed places for the last start.
                lost = started.lost;
                started.array
            })
        } else {
            let (found, seen) = self.drives.found(config, |device| has(lost, device.0));
            looked = seen;
            self.assembled(&Wanted::from(config), &found, allow).map(|started| started.array)
        };
        let now = self.now.0;
        let result = started.as_ref().err().cloned();
        self.log.add(
            now,
            'B',
            &[lost as u64, (lost >> 64) as u64, u64::from(result.is_none())],
            |line| {
                line.put(format_args!("without {lost:#b} {allow:?}: {result:?}"));
            },
        );
        let array = match started {
            Ok(array) => array,
            Err(refusal) => {
                self.drives.swap_back();
                return Started::Refused(refusal);
            }
        };
        let lost = self.drives.where_now(lost);
        let replacements = self.replacements(lost, &looked);
        self.drives.know(&looked);
        if let Some(number) = former {
            self.drives.know_faulty(number);
        }
        for device in (0..members).map(MemberIndex).filter(|device| has(lost, device.0)) {
            self.drives.set_gone(device, true);
        }
        let mut dead = lost;
        self.array = array;
        self.plant();
        self.set_up_memory();
        if self.config.array.settings.consistency == Consistency::None {
            dead |= self.known_failed;
            for member in (0..members).filter(|m| dead >> m & 1 == 1) {
                self.array.handle(self.now, Input::Admin(Admin::Fail(MemberIndex(member))));
            }
        } else {
            self.known_failed = 0;
            for member in (0..members).filter(|m| self.array.is_failed(MemberIndex(*m))) {
                self.known_failed |= 1 << member;
            }
            // What is being rebuilt is computed from the others too.
            self.known_failed |= set_of(self.array.superblock().rebuilding);
            dead |= self.known_failed;
        }
        self.note_lost(dead, allow.dirty_degraded);
        self.note_listed();
        self.drain();
        self.go_on_replacing(&replacements);
        self.drain();
        Started::Well
    }

    /// What is found on drives that may have been about to replace members, with the members.
    fn replacements(
        &self,
        lost: Set,
        looked: &[(MemberIndex, Looked)],
    ) -> Vec<(MemberIndex, Examined)> {
        let members = self.shape.members;
        let is_meant = |device: &MemberIndex| {
            let is_there = !has(lost, device.0) && !self.drives.is_gone(*device);
            is_there
                && self.config.replacements
                && self.config.array.settings.consistency.has_superblocks()
        };
        let of = |device: MemberIndex| MemberIndex(device.0 - members);
        if self.drives.is_md() {
            let is_replacement =
                |one: &&(MemberIndex, Looked)| (members..2 * members).contains(&one.0.0);
            let others = looked.iter().filter(is_replacement);
            return others.map(|(device, one)| (of(*device), one.examined.clone())).collect();
        }
        let devices = (members..2 * members).map(MemberIndex).filter(is_meant);
        let examine = |device| (of(device), self.drives.examined(&self.config.array, device));
        devices.map(examine).collect()
    }

    /// The first of these that may goes on being filled.
    fn go_on_replacing(&mut self, found: &[(MemberIndex, Examined)]) {
        for (member, examined) in found {
            let Ok((command, _)) = self.array.judge_resume(&IDENTITY, *member, examined) else {
                continue;
            };
            self.log.add(self.now.0, 'A', &[], |line| line.put(format_args!("{command:?}")));
            self.array.handle(self.now, Input::Admin(command));
        }
        for (member, _) in found {
            if !has(set_of(self.array.status().replacing), member.0) {
                self.drives.refuse(self.array.replacement(*member));
            }
        }
    }
}
