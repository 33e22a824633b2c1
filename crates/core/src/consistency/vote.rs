//! What the superblocks of an array say together, and what an array begins with.

use super::assembly::{Decision, Sight};
use super::lineage::{Lineage, lineage};
use super::{
    AssembleError, Carried, Finding, LogEntry, MetaArea, NOBODY, ResyncCost, Unusable, Unused,
    contains, set,
};
use crate::array::{Array, Consistency, Start};
use crate::contract::{MemberBits, Superblock};
use crate::units::{MemberIndex, Sector, Sectors};

/// What the superblocks say together.
pub(super) struct Vote {
    newest: Superblock,
    /// Out of service from now on.
    pub(super) failed: MemberBits,
    rebuilding: MemberBits,
    /// Some member in service is one event behind.
    level: bool,
    /// Why each member is not in service, if it is not.
    whys: Vec<Option<Unusable>>,
}

impl Vote {
    /// These members, with what is wrong with each.
    pub(super) fn unused(&self, members: MemberBits) -> Vec<Unused> {
        let all = self.whys.iter().enumerate().filter(|(m, _)| contains(members, *m));
        all.map(|(m, why)| {
            let why = why.unwrap_or(Unusable::Rebuilding);
            Unused { member: MemberIndex(m as u16), why }
        })
        .collect()
    }

    /// Members whose redundancy is not there in full.
    const fn missing(&self) -> MemberBits {
        [self.failed[0] | self.rebuilding[0], self.failed[1] | self.rebuilding[1]]
    }
}

/// What is in the logs.
#[derive(Default)]
struct Logs {
    /// To be replayed.
    entries: Vec<LogEntry>,
    /// Members whose log is not whole, and what is in it.
    torn: (MemberBits, Vec<LogEntry>),
    /// What was in flight is in them.
    whole: bool,
    /// The log device is there and goes on.
    journal: bool,
    /// Why it does not.
    journal_lost: Option<Unusable>,
}

impl Decision<'_> {
    /// Who is in service, by the newest superblock that there is.
    pub(super) fn vote(&self, array: &Array, carrier: &Carried) -> Result<Vote, AssembleError> {
        let mut newest = &carrier.superblock;
        // A crash may leave some of them one behind, but none behind the log device, which is told last.
        let mut slack = 1;
        if let Some(own) = self.journal.superblock()
            && own.events > newest.events
            && lineage(own, newest) == Lineage::Ancestor
        {
            (newest, slack) = (own, 0);
        }
        let mut line = NOBODY;
        let mut other = NOBODY;
        let mut whys: Vec<_> = self.sights.iter().map(|sight| sight.why).collect();
        for (m, sight) in self.sights.iter().enumerate() {
            let Some(theirs) = sight.superblock() else { continue };
            let (half, why) = match judge(newest, theirs, Some(m), slack) {
                Some(Unusable::OtherHistory) => (&mut other, Some(Unusable::OtherHistory)),
                why => (&mut line, why),
            };
            half[m / 64] |= 1 << (m % 64);
            let accepted = array.takes_stale()
                || array.takes_diverged() && why == Some(Unusable::OtherHistory);
            whys[m] = if accepted { None } else { why.or(sight.why) };
        }
        if other != NOBODY && !array.takes_diverged() {
            return Err(AssembleError::Diverged { one: line, other });
        }
        let failed = set((0..whys.len()).filter(|m| whys[*m].is_some()));
        // Of what is written there only members count.
        let usable = set((0..whys.len()).filter(|m| whys[*m].is_none()));
        let rebuilding = [0, 1].map(|word| newest.rebuilding[word] & usable[word]);
        let is_behind =
            |sight: &Sight<'_>| sight.superblock().is_some_and(|own| own.events < newest.events);
        let serving = self.sights.iter().zip(&whys).filter(|(_, why)| why.is_none());
        let level = serving.map(|(sight, _)| sight).chain([&self.journal]).any(is_behind);
        Ok(Vote { newest: *newest, failed, rebuilding, level, whys })
    }

    /// Members that are not used although the newest superblock does not say that they are out of service.
    /// One that was to be rebuilt and carries nothing yet holds nothing.
    fn absent(&self, vote: &Vote) -> MemberBits {
        let newest = &vote.newest;
        let is_new =
            |m: usize| contains(newest.rebuilding, m) && vote.whys[m] == Some(Unusable::Blank);
        let known = |m: &usize| contains(newest.failed, *m) || is_new(*m);
        set((0..vote.whys.len()).filter(|m| contains(vote.failed, *m) && !known(m)))
    }

    /// Starts the array, if what was voted on is enough and allowed.
    pub(super) fn begin(
        &self,
        mut array: Array,
        vote: &Vote,
    ) -> Result<(Array, Option<Unusable>, Sectors), AssembleError> {
        let (newest, missing) = (vote.newest, vote.missing());
        if array.is_lost_without(missing) {
            return Err(AssembleError::TooFew(vote.unused(missing)));
        }
        let absent = self.absent(vote);
        let asked = [0, 1].map(|word| absent[word] & !self.allow.without[word]);
        if asked != NOBODY {
            return Err(AssembleError::Missing(vote.unused(asked)));
        }
        let logs = self.logs(&array, vote);
        let bits = self.bits(&array, missing);
        let kept = if newest.clean || logs.whole { newest.synced_to } else { Sector(0) };
        let resync = array.resync_len(kept, &bits);
        let cost = ResyncCost { len: resync, most: self.wanted.settings.pacing.most };
        let allowed = self.allow.dirty_degraded;
        if let (Some(why), false, false) = (logs.journal_lost, newest.clean, allowed) {
            return Err(AssembleError::JournalLost { why, resync: cost });
        }
        let is_parity = array.parity_count() > 0;
        if is_parity && kept != Sector::MAX && missing != NOBODY && !allowed {
            let missing = vote.unused(missing);
            return Err(AssembleError::DirtyDegraded { missing, resync: cost });
        }
        array.start_from(&Start {
            newest,
            failed: vote.failed,
            rebuilding: vote.rebuilding,
            level: vote.level,
            bits,
            trust_parity: is_parity && allowed,
            kept,
            log: &logs.entries,
            torn_log: (logs.torn.0, &logs.torn.1),
            journal: logs.journal,
            nonce: self.found.nonce,
        });
        let members = (0..).map(MemberIndex).zip(&self.found.members);
        let listed =
            members.flat_map(|(member, one)| one.bad.iter().map(move |bad| (member, bad.0, bad.1)));
        array.believe_lists(listed).map_err(AssembleError::Config)?;
        Ok((array, logs.journal_lost, resync))
    }

    /// The bits of the bitmap: every member in service has all that were set for writes that may have gone
    /// out, and some may have more. A page that nobody has whole may have had any.
    fn bits(&self, array: &Array, missing: MemberBits) -> Vec<u64> {
        let page_of = |member: usize, page: usize| self.found.members[member].bitmap.get(page);
        let there = || (0..self.sights.len()).filter(|m| !contains(missing, *m));
        let all = |page: usize| {
            let whole = there().filter_map(|member| match page_of(member, page)? {
                Finding::Whole(bits) => Some(*bits),
                Finding::Blank => Some(0),
                _ => None,
            });
            whole.reduce(|all, bits| all | bits).unwrap_or(u64::MAX)
        };
        (0..array.bitmap_pages()).map(all).collect()
    }

    fn logs(&self, array: &Array, vote: &Vote) -> Logs {
        let mut logs = Logs::default();
        match array.mode() {
            Consistency::PartialParity { .. } => {
                logs.whole = true;
                let there = |m: &usize| !contains(vote.failed, *m);
                for m in (0..self.sights.len()).filter(there) {
                    let (log, member) = (&self.found.members[m].log, MemberIndex(m as u16));
                    let own = log.entries.iter().map(|entry| LogEntry { member, ..*entry });
                    let own: Vec<_> = own.collect();
                    if log.unreadable || array.is_log_torn(member, &own) {
                        logs.whole = false;
                        logs.torn.0[m / 64] |= 1 << (m % 64);
                        logs.torn.1.extend(own);
                    } else {
                        logs.entries.extend(own);
                    }
                }
            }
            Consistency::Journal { .. } if vote.newest.journal => {
                logs.journal_lost = self.journal_fault(array, &vote.newest);
                logs.journal = logs.journal_lost.is_none();
                logs.whole = logs.journal;
                if logs.journal {
                    logs.entries.clone_from(&self.found.journal.log.entries);
                }
            }
            _ => {}
        }
        logs
    }

    /// Why the log device cannot be used.
    fn journal_fault(&self, array: &Array, newest: &Superblock) -> Option<Unusable> {
        let Some(own) = self.journal.superblock() else { return self.journal.why };
        let (device, log) = (&self.found.journal, &self.found.journal.log);
        let room = MetaArea::journal(device.sectors);
        judge(newest, own, None, 1)
            .or(self.journal.why)
            .or_else(|| (room < array.log_sectors(array.journal())).then_some(Unusable::TooSmall))
            .or_else(|| log.unreadable.then_some(Unusable::LogUnreadable))
            .or_else(|| {
                let torn = array.is_journal_torn(&log.entries, newest.journal_tail);
                torn.then_some(Unusable::LogDamaged)
            })
    }
}

/// Why what a device carries does not let it serve, if it does not. `member`: which member it is to be; the log device
/// is none. `slack`: so many events a device may be behind.
fn judge(
    newest: &Superblock,
    theirs: &Superblock,
    member: Option<usize>,
    slack: u64,
) -> Option<Unusable> {
    // Of one events value there is one state.
    if theirs.events == newest.events && theirs != newest {
        return Some(Unusable::OtherHistory);
    }
    match lineage(newest, theirs) {
        Lineage::Diverged => Some(Unusable::OtherHistory),
        Lineage::Older => Some(Unusable::Older),
        Lineage::Ancestor if member.is_some_and(|m| contains(newest.failed, m)) => {
            Some(Unusable::Failed)
        }
        Lineage::Ancestor if theirs.events + slack < newest.events => {
            Some(Unusable::Stale { events: theirs.events, newest: newest.events })
        }
        Lineage::Ancestor => None,
    }
}
