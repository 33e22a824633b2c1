//! What an array remembers for its read policy.

use super::gmirror_load::GmirrorLoad;
use super::gmirror_load_2004::GmirrorLoad2004;
use super::gmirror_prefer::GmirrorPrefer;
use super::gmirror_round_robin::RoundRobin;
use super::gmirror_split::GmirrorSplit;
use super::graid3::{Graid3, ParityRead};
use super::least_busy::least_busy;
use super::md::Md;
use super::md_2_6::Md26;
use super::{CopyCandidate, MemberIo, MemberTraits, ReadContext, ReadPolicy, Split};
use crate::units::{MemberIndex, Sectors, Time};

/// What an array remembers for its read policy.
///
/// The calls, in the order of a member I/O's life: [`choose`](Self::choose) when a read is
/// about to be sent and can no longer be put off (the choice itself moves some rules on), then
/// [`sent`](Self::sent), then [`completed`](Self::completed). `sent` and `completed` are wanted for
/// every member I/O, not for reads of copies alone.
///
/// No call allocates. Members not told of at set-up must not be named: that panics.
#[derive(Clone, Debug)]
pub struct PolicyState {
    rule: Rule,
    /// By member; empty when no member is write-mostly.
    write_mostly: Box<[bool]>,
}

#[derive(Clone, Debug)]
enum Rule {
    LeastBusy,
    Md26(Md26),
    Md(Md),
    RoundRobin(RoundRobin),
    Load2004(GmirrorLoad2004),
    Load(GmirrorLoad),
    Split(GmirrorSplit),
    Prefer(GmirrorPrefer),
    Graid3(Graid3),
}

impl PolicyState {
    /// The state at the start of a run, for as many members as there are `traits`. Takes all
    /// memory it will ever need.
    pub fn new(policy: ReadPolicy, traits: &[MemberTraits]) -> Self {
        let members = traits.len();
        let rule = match policy {
            ReadPolicy::LeastBusy => Rule::LeastBusy,
            ReadPolicy::Md26 => Rule::Md26(Md26::new(members)),
            ReadPolicy::Md => Rule::Md(Md::new(traits)),
            ReadPolicy::GmirrorRoundRobin => Rule::RoundRobin(RoundRobin::new(members)),
            ReadPolicy::GmirrorLoad2004 => Rule::Load2004(GmirrorLoad2004::new(members)),
            ReadPolicy::GmirrorLoad => Rule::Load(GmirrorLoad::new(members)),
            ReadPolicy::GmirrorSplit { slice } => Rule::Split(GmirrorSplit::new(slice, members)),
            ReadPolicy::GmirrorPrefer => Rule::Prefer(GmirrorPrefer::new(traits)),
            ReadPolicy::Graid3Plain => Rule::Graid3(Graid3::Plain),
            ReadPolicy::Graid3RoundRobin => Rule::Graid3(Graid3::RoundRobin { next: 0 }),
            ReadPolicy::Graid3Verify => Rule::Graid3(Graid3::Verify),
        };
        let any = traits.iter().any(|one| one.write_mostly);
        let write_mostly =
            if any { traits.iter().map(|one| one.write_mostly).collect() } else { Box::default() };
        Self { rule, write_mostly }
    }

    /// The copy to read, or `None` without candidates. Candidates are the readable copies, in the
    /// order of their copy numbers; for raid1 that is the order of members.
    ///
    /// Not a question but a decision: ask once for each member I/O, when it is sure to be sent.
    #[inline]
    pub fn choose(
        &mut self,
        now: Time,
        context: ReadContext,
        candidates: impl Iterator<Item = CopyCandidate> + Clone,
    ) -> Option<u16> {
        if self.write_mostly.is_empty() {
            return self.rule.choose(now, context, candidates);
        }
        let usual = candidates.clone().filter(|one| !self.write_mostly[one.member.at()]);
        // Where copies may differ, md takes the first of all, write-mostly or not.
        let all = context.unsynced && matches!(self.rule, Rule::Md26(_) | Rule::Md(_));
        if !all && usual.clone().next().is_some() {
            return self.rule.choose(now, context, usual);
        }
        self.rule.choose(now, context, candidates.take(1))
    }

    /// How to cut a read of `len` into parts for the copies, or `None` to read it from one, for
    /// which [`choose`](Self::choose) is to be asked. Parts are multiples of `block`, the
    /// array's logical block. Only `gmirror-split` ever cuts.
    ///
    /// Part `i` is for the copy that [`part_copy`](Self::part_copy) names.
    #[inline]
    pub fn split(
        &self,
        len: Sectors,
        block: Sectors,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<Split> {
        let Rule::Split(split) = &self.rule else { return None };
        split.split(len, block, candidates.filter(|one| self.is_usual(one)).count())
    }

    /// The copy for part `part` of a read that is split among these candidates.
    pub fn part_copy(
        &self,
        part: u16,
        candidates: impl Iterator<Item = CopyCandidate>,
    ) -> Option<u16> {
        let mut usual = candidates.filter(|one| self.is_usual(one));
        usual.nth(usize::from(part)).map(|one| one.copy)
    }

    /// How a raid3 with this many data members does its next read. `complete`: no member is lost
    /// or being rebuilt. A decision, as [`choose`](Self::choose) is.
    pub fn parity_read(&mut self, complete: bool, data_members: u16) -> ParityRead {
        match &mut self.rule {
            Rule::Graid3(graid3) => graid3.parity_read(complete, data_members),
            _ => ParityRead::Plain,
        }
    }

    /// Whether the policy wants to be told of I/Os sent and completed. Others need not be told.
    pub fn watches(&self) -> bool {
        matches!(self.rule, Rule::Md26(_) | Rule::Md(_) | Rule::Load2004(_) | Rule::Load(_))
    }

    /// A member I/O is sent at `now`. For a read with copies: after it was chosen.
    #[inline]
    pub fn sent(&mut self, now: Time, io: MemberIo) {
        match &mut self.rule {
            Rule::Load2004(load) => load.sent(now, io),
            Rule::Load(load) => load.sent(io),
            _ => {}
        }
    }

    /// A member I/O that was sent at `sent_at` has completed at `now`, well or not.
    #[inline]
    pub fn completed(&mut self, now: Time, io: MemberIo, sent_at: Time) {
        match &mut self.rule {
            Rule::Md26(md) => md.completed(io),
            Rule::Md(md) => md.completed(io),
            Rule::Load2004(load) => load.completed(now, io, sent_at),
            Rule::Load(load) => load.completed(io),
            _ => {}
        }
    }

    /// Another drive is a member from now on, which has so many I/Os in flight: these it is told the end of, and of
    /// none that were sent to the drive before.
    pub(crate) fn replaced(&mut self, member: MemberIndex, in_flight: u32) {
        if let Rule::Load(load) = &mut self.rule {
            load.replaced(member, in_flight);
        }
    }

    /// Feeds everything the next choices depend on to `add`; always equally many values for one
    /// array. Times go in as what remains of them at `now`.
    pub fn add_to_key(&self, now: Time, add: &mut dyn FnMut(u64)) {
        match &self.rule {
            Rule::LeastBusy | Rule::Prefer(_) => {}
            Rule::Md26(md) => md.add_to_key(add),
            Rule::Md(md) => md.add_to_key(add),
            Rule::RoundRobin(turn) => turn.add_to_key(add),
            Rule::Load2004(load) => load.add_to_key(now, add),
            Rule::Load(load) => load.add_to_key(add),
            Rule::Split(split) => split.add_to_key(add),
            Rule::Graid3(graid3) => graid3.add_to_key(add),
        }
    }

    fn is_usual(&self, candidate: &CopyCandidate) -> bool {
        !self.write_mostly.get(candidate.member.at()).is_some_and(|mostly| *mostly)
    }
}

impl Rule {
    #[inline]
    fn choose(
        &mut self,
        now: Time,
        context: ReadContext,
        mut candidates: impl Iterator<Item = CopyCandidate> + Clone,
    ) -> Option<u16> {
        match self {
            Self::LeastBusy => least_busy(candidates),
            Self::Md26(md) => md.choose(context, candidates),
            Self::Md(md) => md.choose(context, candidates),
            Self::RoundRobin(turn) => turn.choose(candidates),
            Self::Load2004(load) => load.choose(now, candidates),
            Self::Load(load) => load.choose(candidates),
            Self::Split(split) => split.choose(candidates),
            Self::Prefer(prefer) => prefer.choose(candidates),
            // raid3 has one copy of each block.
            Self::Graid3(_) => candidates.next().map(|one| one.copy),
        }
    }
}
