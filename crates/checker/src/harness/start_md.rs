//! Starts of arrays of md: who is a member md's rules say, and the journal is replayed before the array does anything.
//!
//! Some replays are cut off: the power goes at one of their writes, and the array is started again with what is there
//! then. Which, and what that is, depends on what stands on the drives, so that it is the same each time.

use raidlab_core::consistency::{Allow, AssembleError, ResyncCost, Unusable, Wanted};
use raidlab_core::contract::MemberBits;
use raidlab_core::geometry::Geometry;
use raidlab_core::{Array, Consistency, MemberIndex, Sectors};
use raidlab_metadata::Looked;
use raidlab_random::SplitMix64;

use super::{Harness, named};
use crate::device::{MdFinds, NotReplayed};
use crate::shape::{Set, set_of, words_of};

/// An array that has started.
pub(super) struct Started {
    pub(super) array: Array,
    pub(super) looked: Vec<(MemberIndex, Looked)>,
    /// The number of the log device of a journal that was given up.
    pub(super) former_journal: Option<u16>,
    /// Drives that are lost, with those that failed while the journal was replayed.
    pub(super) lost: Set,
}

/// Of so many replays one is cut off.
const CUT: u64 = 3;
/// Replays that are begun for one start at most.
const MOST_REPLAYS: usize = 6;

impl Harness {
    /// Starts an array of md with what is on the drives but those lost.
    pub(super) fn assemble_md(
        &mut self,
        mut lost: Set,
        allow: Allow,
    ) -> Result<Started, AssembleError> {
        for replays in 0..MOST_REPLAYS {
            let MdFinds { found, mut looked, joined, seen } = self.drives.joined(lost, allow)?;
            let mut wanted = Wanted::from(&self.config.array);
            if matches!(wanted.settings.consistency, Consistency::Journal { .. }) {
                // It may have been given up.
                wanted.settings.consistency = joined.consistency;
            }
            let assembled = self.assembled(&wanted, &found, allow)?;
            let (Geometry::Parity(geometry), Some(_)) =
                (assembled.array.geometry(), joined.journal)
            else {
                let (array, former_journal) = (assembled.array, joined.former_journal);
                return Ok(Started { array, looked, former_journal, lost });
            };
            let out = named(&assembled.unused);
            let mut random = SplitMix64::new(self.drives.key());
            let cut = (replays == 0 && random.below(CUT) == 0).then(|| random.below(12) as u32);
            let log = MemberIndex(2 * self.shape.members);
            let untold = joined.untold(&seen, out);
            if !untold.is_empty() {
                // Superblocks have them in service, and what is replayed is not on them.
                let cut_off = |number| self.drives.tell_failed(&joined, (number, None), cut);
                untold.into_iter().any(cut_off);
                lost = self.drives.where_now(lost);
                continue;
            }
            match self.drives.replay_journal(&joined, (geometry, out), cut) {
                Ok(journal) => {
                    looked.push((log, journal));
                    let array = assembled.array;
                    return Ok(Started { array, looked, former_journal: None, lost });
                }
                Err(NotReplayed::Cut) => {
                    let now = self.now.0;
                    self.log.add(now, 'C', &[], |_| ());
                    self.drives.crash(|ways| random.below(u64::from(ways)) as u32);
                    lost = self.drives.where_now(lost);
                }
                Err(NotReplayed::Member(place))
                    if !is_lost_without(&assembled.array, out, place) =>
                {
                    let now = self.now.0;
                    self.log.add(now, 'F', &[u64::from(place)], |line| {
                        line.put(format_args!("d{place} fails while the journal is replayed"));
                    });
                    let number = self.drives.number_of(place).unwrap_or(u16::MAX);
                    self.drives.tell_failed(&joined, (number, Some(place)), None);
                    lost = self.drives.where_now(lost) | 1 << place;
                }
                Err(NotReplayed::Lost) => {
                    let why = Unusable::Unreadable;
                    let resync = ResyncCost { len: Sectors::ZERO, most: 1 };
                    return Err(AssembleError::JournalLost { why, resync });
                }
                Err(NotReplayed::Member(place)) => {
                    return Err(not_replayed(format!("member {place} cannot be written")));
                }
                Err(NotReplayed::Other(what)) => return Err(not_replayed(what)),
            }
        }
        Err(not_replayed("it is begun again and again".into()))
    }
}

/// What the core would say, had it replayed the journal.
fn not_replayed(found: String) -> AssembleError {
    let asked = "a journal that is replayed".into();
    AssembleError::Parameter { key: "metadata", asked, found }
}

/// Whether an array has not all that it holds without a member more than those out of service.
fn is_lost_without(array: &Array, out: MemberBits, place: u16) -> bool {
    let rebuilding = set_of(array.superblock().rebuilding);
    array.is_lost_without(words_of(set_of(out) | rebuilding | 1 << place))
}
