//! An array starts from what was found on its members.
//!
//! One that is only read is one that was stopped before anything was written.

use super::Array;
use crate::array::background::{Resync, Todo};
use crate::array::config::Config;
use crate::array::member_set::MemberSet;
use crate::array::settings::{ConfigError, Consistency};
use crate::array::timers::Timer;
use crate::array::write_intent::Start;
use crate::bugs::Bug;
use crate::contract::MemberBits;
#[cfg(doc)]
use crate::contract::Outcome;
use crate::units::{MemberIndex, Sector, Sectors, Time};

impl Array {
    /// Takes over what was found. What has to be done begins at the first input, when the time is
    /// known.
    pub(crate) fn start_from(&mut self, start: &Start<'_>) {
        let newest = start.newest;
        let (failed, rebuilding) =
            (MemberSet::from_words(start.failed), MemberSet::from_words(start.rebuilding));
        self.members.failed = failed;
        self.members.rebuilding = rebuilding;
        for member in rebuilding.iter() {
            self.members[member].good_to = newest.rebuilt_to.0;
            self.members.note_partial(member);
        }
        self.log.restore(&newest, start.journal);
        self.replay_logs(start.log);
        let (torn, known) = start.torn_log;
        self.log.skip_numbers(&self.setup, torn, known, newest.events);
        self.begin_at_start(self.todo(start));

        let known = MemberSet::from_words(newest.failed);
        self.gate.begin_with(newest, start.level, start.nonce, failed);
        if let Consistency::Bitmap { .. } = self.setup.settings.consistency {
            self.gate.bitmap.begin_with(&start.bits, newest.bitmap_since);
        }
        let unchanged = newest.clean
            && !start.level
            && failed == known
            && rebuilding == MemberSet::from_words(newest.rebuilding)
            && newest.replacing == [0; 2]
            && self.log.is_journal_used() == newest.journal;
        self.gate.set_wanted(!unchanged);
        self.gate.note_holds(&self.setup, &self.members);
        self.wake_at_start(!unchanged);
    }

    /// A start without superblocks: nothing is known of what was under way.
    pub(crate) fn start_unknown(&mut self, failed: MemberBits) {
        self.members.failed = MemberSet::from_words(failed);
        let resync = if self.setup.is_redundant() { Resync::All } else { Resync::None };
        self.begin_at_start(Todo {
            resync,
            trust_parity: true,
            is_unknown: true,
            ..Todo::default()
        });
        self.wake_at_start(false);
    }

    /// A new array over drives that hold anything: all of its redundancy is made consistent. Until that is done one
    /// parity is believed of whoever goes meanwhile, since what it makes of a block that nobody has written is as good
    /// as any. Two are not before [`believe_parity`](Self::believe_parity): each makes something else of it.
    pub(crate) fn start_unsynced(&mut self) {
        if !self.setup.is_redundant() {
            return;
        }
        self.begin_at_start(Todo {
            resync: Resync::All,
            trust_parity: self.setup.parities < 2,
            is_unknown: true,
            ..Todo::default()
        });
    }

    /// All that is in use was written since the start, without a look at older parity: parity is of that everywhere,
    /// also where no resync has been.
    pub(crate) fn believe_parity(&mut self) {
        self.background.believe_parity();
    }

    fn todo(&self, start: &Start<'_>) -> Todo {
        let kept = start.kept.0;
        let resync = match self.setup.settings.consistency {
            _ if kept == u64::MAX => Resync::None,
            Consistency::Bitmap { .. } => Resync::ByBitmap,
            _ => Resync::All,
        };
        let (trust_parity, by_bitmap) = (start.trust_parity, start.newest.by_bitmap);
        let replay = self.log.is_replaying();
        Todo { resync, synced_to: kept, trust_parity, by_bitmap, replay, is_unknown: false }
    }

    /// Sectors of each member (of the array, on mirrors) that a resync makes consistent, of those from `kept` on
    /// and, with a bitmap, with these bits set.
    pub(crate) fn resync_len(&self, kept: Sector, bits: &[u64]) -> Sectors {
        let covered = match self.setup.parities {
            0 => self.setup.capacity,
            _ => self.setup.geometry.used(MemberIndex(0)).0,
        };
        let left = covered.saturating_sub(kept.0);
        Sectors(match self.setup.settings.consistency {
            _ if !self.setup.is_redundant() => 0,
            Consistency::Bitmap { chunk } => {
                let set: u64 = bits.iter().map(|page| u64::from(page.count_ones())).sum();
                left.min(set * chunk.0)
            }
            _ => left,
        })
    }

    /// Asks for an input, whatever it is.
    fn wake_at_start(&mut self, is_wanted: bool) {
        if is_wanted || self.gate.bitmap.is_used() {
            self.timers.set(Timer::Clean, Time::ZERO);
            self.tell_wake();
        }
    }

    /// An array that is read only: without these members, and without these ranges of others. Nothing is written, not
    /// even to heal what cannot be read; changes are answered with [`Outcome::Stopped`].
    ///
    /// # Errors
    /// As [`new`](Self::new); `members` when too many are missing.
    pub fn read_only(
        config: &Config,
        failed: MemberBits,
        bad: &[(MemberIndex, Sector, Sectors)],
    ) -> Result<Self, ConfigError> {
        let mut array = Self::new(config)?;
        if array.is_lost_without(failed) {
            let reason = format!("{} is lost without that many members", config.layout);
            return Err(ConfigError { key: "members", reason });
        }
        array.members.failed = MemberSet::from_words(failed);
        array.members.stopped = true;
        array.believe_lists(bad.iter().copied())?;
        Ok(array)
    }

    /// Members' own lists say that these ranges of them cannot be read.
    ///
    /// # Errors
    /// When a member has more of them than are remembered.
    pub(crate) fn believe_lists(
        &mut self,
        listed: impl Iterator<Item = (MemberIndex, Sector, Sectors)>,
    ) -> Result<(), ConfigError> {
        for (member, at, len) in listed {
            if !self.setup.is_member(member) || self.members.failed.contains(member) {
                continue;
            }
            let end = at.0.saturating_add(len.0);
            if !self.members[member].bad.insert(at.0, end) {
                let reason = format!("member {member} has more bad blocks than a list may hold");
                return Err(ConfigError { key: "members", reason });
            }
            self.members[member].is_listed |= self.setup.settings.keeps_bad_blocks;
            self.members.note_partial(member);
        }
        Ok(())
    }

    /// Whether the array is lost without these members.
    pub fn is_lost_without(&self, missing: MemberBits) -> bool {
        self.setup.is_lost_without(MemberSet::from_words(missing))
    }

    /// The bitmap's pages.
    pub(crate) fn bitmap_pages(&self) -> usize {
        self.gate.bitmap.pages()
    }

    /// Whether a planted bug takes members in service that are not fresh.
    pub(crate) fn takes_stale(&self) -> bool {
        self.setup.has_bug(Bug::StaleMemberAccepted)
    }

    /// Whether a planted bug takes what a replacement holds for good, whatever was being written.
    pub(crate) fn resumes_dirty(&self) -> bool {
        self.setup.has_bug(Bug::ReplaceResumedDirty)
    }

    /// Whether a planted bug takes halves for a whole.
    pub(crate) fn takes_diverged(&self) -> bool {
        self.setup.has_bug(Bug::DivergedAccepted)
    }

    /// What the array keeps of its state on the members.
    pub(crate) const fn mode(&self) -> Consistency {
        self.setup.settings.consistency
    }

    /// Parities of a stripe; 0 on levels without.
    pub(crate) const fn parity_count(&self) -> u16 {
        self.setup.parities
    }
}
