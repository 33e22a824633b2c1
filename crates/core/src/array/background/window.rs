//! One range of background work, from its lock to its end.
//!
//! A window goes through phases as a plan does; all I/O of a phase is sent out at once. What holds for
//! some of its blocks only (a mismatch, a block that cannot be had) is dealt with block by block:
//! the window's part then steps through them.

use super::sources::Sources;
use crate::array::lists::NIL;
use crate::array::member::Members;
use crate::array::member_set::MemberSet;
use crate::array::roles::Roles;
use crate::array::setup::Setup;
use crate::bugs::Bug;
use crate::contract::{
    IoOutcome, JobResult, ParityOp, RepairSource, Role, Scrub, Segment, SegmentList,
};
use crate::geometry::{Geometry, Holds, Place};
use crate::units::{MemberIndex, Sector};

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Task {
    Rebuild(MemberIndex),
    Replace(MemberIndex),
    Resync,
    Scrub(Scrub),
    /// What this member could not read is written anew.
    Heal(MemberIndex),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Phase {
    /// Choose sources for the part.
    Plan,
    /// Healing: what can the member read by now?
    Probe,
    Read,
    Recover,
    Compute,
    Compare,
    Locate,
    Write,
    /// On to the next part.
    Next,
    Done,
}

/// How a window goes through its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Steps {
    /// All at once.
    Whole,
    /// One by one, up to here; each is read on its own.
    Read(u32),
    /// One by one, up to here; all are read.
    Compare(u32),
}

/// A range that background work holds.
#[derive(Clone, Copy, Debug, Hash)]
pub(in crate::array) struct ResyncWindow {
    /// Member I/Os or jobs of this phase not yet ended.
    pub(in crate::array) pending: u32,
    pub(in crate::array) task: Task,
    /// The piece of work it belongs to.
    pub(in crate::array) serial: u32,
    /// Where in the work it lies; nothing for healing.
    pub(in crate::array) position: u64,
    /// The range that is locked: rows of the members, or sectors of the array.
    pub(in crate::array) at: u64,
    pub(in crate::array) len: u32,
    pub(in crate::array) stripe: u64,
    /// The part worked on, counted from the start.
    pub(in crate::array) part: (u32, u32),
    pub(in crate::array) steps: Steps,
    pub(in crate::array) phase: Phase,
    pub(in crate::array) sources: Sources,
    /// Members whose reads failed in this part.
    pub(in crate::array) avoid: MemberSet,
    /// A read of this phase failed.
    pub(in crate::array) again: bool,
    /// A job of this phase failed.
    pub(in crate::array) failed: bool,
    /// Where redundancy disagrees, counted from the part's start.
    pub(in crate::array) differs: Option<(u32, u32)>,
    pub(in crate::array) located: Option<u16>,
    /// What the probe of a heal found, and the first block of it that is bad.
    pub(in crate::array) probed: Option<IoOutcome>,
    pub(in crate::array) probed_bad: Option<u32>,
    /// Healing: the block that was written last, and how often.
    pub(in crate::array) block: Option<u32>,
    pub(in crate::array) tries: u8,
    /// What a member could not read, to be healed afterwards.
    pub(in crate::array) sick: Option<(MemberIndex, u64, u32)>,
    /// What was found in this window and not told yet, joined where blocks touch.
    pub(in crate::array) notifications: Notifications,
    pub(in crate::array) mismatched: u32,
    pub(in crate::array) lost: u32,
}

/// What is told of runs of blocks when they end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) enum Finding {
    Mismatch(Option<MemberIndex>),
    Mended(Roles),
    Bad(Roles),
    Healed,
}

/// Runs of blocks of which something is to be told; a mismatch and its mending run side by side.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(in crate::array) struct Notifications {
    pub(in crate::array) runs: [Option<(Finding, u32, u32)>; 2],
}

/// A job over places of a window's scratch: one for each role, and beside them one for each parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::array) struct WindowJob {
    pub(in crate::array) op: ParityOp,
    /// Places of roles, and of parities beside them, that it reads.
    pub(in crate::array) sources: (Roles, Roles),
    /// And that it writes.
    pub(in crate::array) targets: (Roles, Roles),
}

/// A run of blocks of which something is to be told.
pub(in crate::array) type FindingRun = Option<(Finding, u32, u32)>;

impl ResyncWindow {
    pub(in crate::array) fn idle() -> Self {
        Self {
            pending: 0,
            task: Task::Resync,
            serial: 0,
            position: 0,
            at: 0,
            len: 0,
            stripe: 0,
            part: (0, 0),
            steps: Steps::Whole,
            phase: Phase::Plan,
            sources: Sources::default(),
            avoid: MemberSet::NONE,
            again: false,
            failed: false,
            differs: None,
            located: None,
            probed: None,
            probed_bad: None,
            block: None,
            tries: 0,
            sick: None,
            notifications: Notifications::default(),
            mismatched: 0,
            lost: 0,
        }
    }

    pub(in crate::array) fn window_len(&self) -> u32 {
        self.part.1 - self.part.0
    }

    /// A window over `len` sectors of a member, or as many as lie together.
    pub(in crate::array) fn at(
        setup: &Setup,
        member: MemberIndex,
        from: u64,
        len: u64,
    ) -> Option<Self> {
        let geometry = &setup.geometry;
        let (at, stripe, run) = match (geometry, geometry.holds(Place { member, at: Sector(from) }))
        {
            (_, Holds::Nothing) => return None,
            (Geometry::Parity(parity), _) => {
                let chunk = parity.chunk().0;
                (from, from / chunk, chunk - from % chunk)
            }
            (Geometry::Raid3(_), _) => (from, 0, geometry.used(member).0 - from),
            (geometry, Holds::Data { at, .. }) => (at.0, 0, geometry.run(at).0),
            _ => return None,
        };
        let len = len.min(run) as u32;
        Some(Self { at, len, stripe, part: (0, len), ..Self::idle() })
    }

    /// Where its range ends.
    pub(in crate::array) fn end(&self) -> u64 {
        self.at + u64::from(self.len)
    }

    /// Whether it heals the same member at the same place as another.
    pub(in crate::array) fn overlaps(&self, other: &Self) -> bool {
        self.task == other.task && other.at < self.end() && self.at < other.end()
    }

    pub(in crate::array) fn is_heal(&self) -> bool {
        matches!(self.task, Task::Heal(_))
    }

    pub(in crate::array) fn is_scrub(&self) -> bool {
        matches!(self.task, Task::Scrub(_))
    }

    /// Whether what it was to do is no longer wanted; `over`: the work it belongs to is.
    pub(in crate::array) fn is_void(&self, members: &Members, over: bool) -> bool {
        members.stopped
            || match self.task {
                Task::Rebuild(member) => over || !members.rebuilding.contains(member),
                Task::Replace(member) => {
                    over || !members.replacing.contains(member) || members.failed.contains(member)
                }
                Task::Resync | Task::Scrub(_) => over,
                Task::Heal(member) => members.failed.contains(member),
            }
    }

    /// Goes on to read what its part is had from.
    pub(in crate::array) fn plan(&mut self, sources: Sources) {
        self.sources = sources;
        self.phase = Phase::Read;
    }

    /// The part cannot be had: smaller ones may be. False when there are none, and it is lost.
    pub(in crate::array) fn lacks_sources(&mut self, setup: &Setup) -> bool {
        let block = setup.member_block() as u32;
        let smaller = self.window_len() > block && !self.is_heal();
        if smaller {
            self.steps = Steps::Read(self.len);
            self.part = (0, block.min(self.len));
            self.avoid = MemberSet::NONE;
            self.phase = Phase::Plan;
        }
        smaller
    }

    /// Moves the part on; after the last one the window is done.
    pub(in crate::array) fn next_window(&mut self, setup: &Setup) {
        let block = setup.member_block() as u32;
        let (to, phase) = match self.steps {
            Steps::Whole => (0, Phase::Done),
            Steps::Read(to) => (to, Phase::Plan),
            Steps::Compare(to) => (to, Phase::Compare),
        };
        let from = self.part.1;
        if from >= to {
            self.phase = Phase::Done;
            return;
        }
        self.part = (from, (from + block).min(to));
        self.phase = phase;
        self.avoid = MemberSet::NONE;
    }

    /// All jobs that compare have ended; true when the part, one block, differs and nobody can be named.
    pub(in crate::array) fn compared(&mut self, setup: &Setup) -> bool {
        let block = setup.member_block() as u32;
        let Some((from, to)) = self.differs.take() else {
            self.phase = Phase::Next;
            return false;
        };
        if self.window_len() > block {
            // Block by block: each is told, and mended, on its own.
            let start = self.part.0;
            let end = (start + to.max(from + 1)).next_multiple_of(block).min(self.len);
            let first = (start + from) / block * block;
            self.part = (first, (first + block).min(end));
            self.steps = Steps::Compare(end);
            self.phase = Phase::Compare;
        } else if setup.parities > 1 {
            self.located = None;
            self.phase = Phase::Locate;
        } else {
            self.located = None;
            return true;
        }
        false
    }

    /// Redundancy disagrees in the part, which is one block: counts it, and goes on to mend it or to the next.
    /// Gives who is wrong, if P and Q have said so.
    pub(in crate::array) fn block_differs(
        &mut self,
        setup: &Setup,
        scrub: Scrub,
    ) -> Option<MemberIndex> {
        let guilty = self.located.map(|role| self.place(setup, role).member);
        let sources = self.mending(setup, scrub);
        self.mismatched += self.window_len();
        match sources {
            Some(sources) => {
                self.sources = sources;
                self.phase = Phase::Recover;
            }
            None => self.phase = Phase::Next,
        }
        guilty
    }

    /// What a scrub writes where redundancy disagrees, if anything.
    fn mending(&self, setup: &Setup, scrub: Scrub) -> Option<Sources> {
        let data = setup.data_chunks;
        let anew = Sources { write: Roles::range(data, setup.width()), ..Sources::default() };
        let one = |role: u16| match role < data {
            true => Sources::anew_by_p(role, data),
            false => Sources { write: Roles::one(role), ..Sources::default() },
        };
        match (scrub, self.located) {
            (Scrub::Check, _) if setup.has_bug(Bug::CheckWrites) && setup.parities > 0 => {
                Some(anew)
            }
            (Scrub::Check, _) => None,
            (Scrub::Repair(RepairSource::Nobody), Some(role)) => Some(one(role)),
            (Scrub::Repair(RepairSource::Nobody), None) => {
                (setup.has_bug(Bug::RepairGuesses) && setup.parities > 0).then_some(anew)
            }
            (Scrub::Repair(RepairSource::Data), _) if setup.parities > 0 => Some(anew),
            (Scrub::Repair(RepairSource::Data), _) => {
                Some(Sources { write: Roles::range(1, setup.copies), ..Sources::default() })
            }
            (Scrub::Repair(RepairSource::NotMember(member)), _) => {
                let role = self.role_of(setup, member)?;
                if setup.parities > 0 {
                    return Some(one(role));
                }
                let copy = u16::from(role == 0);
                Some(Sources { copy, write: Roles::one(role), ..Sources::default() })
            }
        }
    }

    /// One I/O has ended.
    pub(in crate::array) fn io_ended(&mut self, outcome: IoOutcome) {
        self.pending -= 1;
        if self.phase == Phase::Probe {
            self.probed = Some(outcome);
        }
    }

    /// A member could not read `at..at + len`: the part is had without it.
    pub(in crate::array) fn read_failed(
        &mut self,
        setup: &Setup,
        member: MemberIndex,
        (at, len): (Sector, u32),
        outcome: IoOutcome,
    ) {
        if self.phase == Phase::Probe {
            return;
        }
        self.again = true;
        // The drive may have been replaced since: then it is simply read again.
        if setup.is_member(member) {
            self.avoid.insert(member);
            if let IoOutcome::MediaError { first_bad } = outcome {
                let end = at.0 + u64::from(len);
                let from = first_bad.0.clamp(at.0, end - 1);
                self.sick.get_or_insert((member, from, (end - from) as u32));
            }
        }
    }

    /// A write failed. What could not be written will not be read either.
    pub(in crate::array) fn write_failed(&mut self) {
        if self.is_heal() {
            self.tries = u8::MAX;
        }
    }

    /// One job has ended.
    pub(in crate::array) fn computed(&mut self, result: JobResult) {
        self.pending -= 1;
        match result {
            JobResult::Done | JobResult::Equal => {}
            JobResult::Differs { from, to } => {
                let (known_from, known_to) = self.differs.unwrap_or((from, to));
                self.differs = Some((from.min(known_from), to.max(known_to)));
            }
            JobResult::Located(role) => self.located = Some(role),
            _ => self.failed = true,
        }
        if self.phase == Phase::Locate {
            // What P and Q cannot name is told by the mismatch itself.
            self.differs = None;
        }
    }

    /// Begins a look at what is to be healed: the part is what was not looked at.
    pub(in crate::array) fn begin_probe(&mut self) {
        let from = self.block.unwrap_or(self.part.0);
        self.part = (from, self.len);
        self.probed = None;
    }

    /// The member has read what it can, of what lies at `at` on it; true when what was written can be read now,
    /// which is to be told of the part before [`Self::mend_probed`].
    pub(in crate::array) fn probe_ended(&mut self, setup: &Setup, at: u64) -> bool {
        let block = setup.member_block() as u32;
        let bad = match self.probed {
            Some(IoOutcome::MediaError { first_bad }) => {
                let bad = first_bad.0.saturating_sub(at).min(u64::from(self.len - 1)) as u32;
                Some((bad / block * block).max(self.part.0))
            }
            Some(IoOutcome::Ok) => None,
            // Gone or too slow: nothing more is learnt here.
            _ => {
                self.phase = Phase::Done;
                self.probed_bad = None;
                return false;
            }
        };
        let wrote = self.block.filter(|_| self.tries < u8::MAX);
        let healed = wrote.is_some() && wrote != bad;
        if healed {
            self.part = (self.part.0, self.part.0 + block);
        }
        self.probed_bad = bad;
        healed
    }

    /// Goes on from what a probe found: to mend a block, or to the end. True when the block cannot be mended.
    pub(in crate::array) fn mend_probed(&mut self, setup: &Setup) -> bool {
        let block = setup.member_block() as u32;
        let Some(bad) = self.probed_bad else {
            self.phase = Phase::Done;
            return false;
        };
        if self.block != Some(bad) {
            self.tries = 0;
        }
        self.block = Some(bad);
        self.part = (bad, (bad + block).min(self.len));
        self.avoid = MemberSet::NONE;
        if self.tries >= setup.settings.heal_tries {
            return true;
        }
        self.phase = if self.tries == 0 { Phase::Plan } else { Phase::Write };
        self.tries += 1;
        false
    }

    /// The part of a heal is listed as bad: goes on behind it.
    pub(in crate::array) fn give_up_window(&mut self) {
        let next = self.part.1;
        self.phase = if next < self.len { Phase::Probe } else { Phase::Done };
        self.block = None;
        self.tries = 0;
        self.part = (next.min(self.len), self.len);
    }

    /// Whether a role cannot be read in the part.
    pub(in crate::array) fn is_unreadable(
        &self,
        setup: &Setup,
        members: &Members,
        role: u16,
    ) -> bool {
        let Place { member, at } = self.place(setup, role);
        let from = Sector(at.0 + u64::from(self.part.0));
        self.avoid.contains(member)
            || members.lacks(setup, member, from, u64::from(self.window_len()))
    }

    /// Of a block that a scrub could not compare: how much of it nothing can compute.
    pub(in crate::array) fn lost_to_all(&self, setup: &Setup, members: &Members) -> u32 {
        let unreadable = |role: &u16| self.is_unreadable(setup, members, *role);
        let count = (0..setup.width()).filter(unreadable).count();
        let survives = if setup.parities > 0 { setup.parities } else { setup.copies - 1 };
        if count > usize::from(survives) { self.window_len() } else { 0 }
    }

    /// Adds the part to a run of blocks of which the same is to be told; another run that ends
    /// with it, which is to be told now.
    pub(in crate::array) fn add_finding(&mut self, line: usize, told: Finding) -> FindingRun {
        let (from, to) = self.part;
        match &mut self.notifications.runs[line] {
            Some((known, _, end)) if *known == told && *end == from => {
                *end = to;
                None
            }
            run => run.replace((told, from, to)),
        }
    }
}

/// What a window sends out.
impl ResyncWindow {
    /// The part in a place of the scratch, whose token is this.
    pub(in crate::array) fn list(&self, setup: &Setup, slot: u32, place: u16) -> SegmentList {
        let offset = u64::from(place) * setup.window_rows + u64::from(self.part.0);
        let (token, len) = (setup.window_token(slot), self.window_len());
        // One segment, which needs no node of its own.
        SegmentList { first: Segment { token, offset: offset as u32, len }, rest: NIL }
    }

    /// What a place of the scratch is called in a job.
    pub(in crate::array) fn place_name(&self, setup: &Setup, place: u16) -> Role {
        // Parity made by a scrub stands behind what it was compared with.
        let role = if place < setup.width() { place } else { place - setup.parities };
        match setup.parities {
            0 => Role::default(),
            _ => setup.role_name(self.stripe, role),
        }
    }

    /// The place of the scratch from which a role is written.
    pub(in crate::array) fn written_from(&self, setup: &Setup, role: u16) -> u16 {
        match role.checked_sub(setup.data_chunks) {
            _ if setup.parities == 0 => self.sources.copy,
            // A scrub made parity anew beside what it read.
            Some(parity) if self.is_scrub() => setup.width() + parity,
            _ => role,
        }
    }

    /// The job that computes what is lost.
    pub(in crate::array) fn recovery(&self, setup: &Setup) -> Option<WindowJob> {
        let sources = self.sources;
        if sources.lost().is_empty() || sources.write.is_empty() {
            return None;
        }
        let data = setup.data_chunks;
        // With P alone what is lost is the XOR of all others.
        let is_xor = sources.with == Roles::one(data);
        let op = if is_xor { ParityOp::Xor } else { ParityOp::Recover };
        let lost: Roles = sources.lost().iter().copied().collect();
        let read = Roles::range(0, data).without(lost).union(sources.with);
        Some(WindowJob { op, sources: (read, Roles::NONE), targets: (lost, Roles::NONE) })
    }

    /// The job that makes parity anew: in its own place, or for a scrub beside it.
    pub(in crate::array) fn parity(&self, setup: &Setup) -> Option<WindowJob> {
        let data = setup.data_chunks;
        let (own, beside) = match self.is_scrub() {
            true => (Roles::NONE, Roles::range(0, setup.parities)),
            false => (self.sources.compute, Roles::NONE),
        };
        if own.union(beside).is_empty() {
            return None;
        }
        let has_q = own.contains(data + 1) || beside.contains(1);
        let op = if has_q { ParityOp::Pq } else { ParityOp::Xor };
        let sources = (Roles::range(0, data), Roles::NONE);
        Some(WindowJob { op, sources, targets: (own, beside) })
    }

    /// The jobs that compare parity with what it should be, or copies with each other.
    pub(in crate::array) fn comparisons(setup: &Setup) -> impl Iterator<Item = WindowJob> + use<> {
        let (data, width, parities) = (setup.data_chunks, setup.width(), setup.parities);
        let copies = (parities == 0).then_some((Roles::range(0, width), Roles::NONE));
        let pair = move |parity| (Roles::one(data + parity), Roles::one(parity));
        let pairs = (0..parities).map(pair);
        let targets = (Roles::NONE, Roles::NONE);
        let job = move |sources| WindowJob { op: ParityOp::Compare, sources, targets };
        copies.into_iter().chain(pairs).map(job)
    }

    /// The job that names the block which explains all that disagrees.
    pub(in crate::array) fn location(setup: &Setup) -> WindowJob {
        let sources = (Roles::range(0, setup.width()), Roles::NONE);
        WindowJob { op: ParityOp::Locate, sources, targets: (Roles::NONE, Roles::NONE) }
    }
}

/// The places of a job in order.
pub(in crate::array) fn places(
    setup: &Setup,
    (roles, beside): (Roles, Roles),
) -> impl Iterator<Item = u16> + use<> {
    let width = setup.width();
    roles.iter().chain(beside.iter().map(move |parity| width + parity))
}
