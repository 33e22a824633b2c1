//! Background work: rebuild, replacement, resync, scrub and healing, range by range.
//!
//! Fault model: any read or write of a range may fail; members, the replacement or the array may be
//! lost at any point; a crash may come at any point. What a range's sources hold is trusted only as
//! far as requests trust it (bad blocks, what is not rebuilt, parity not yet made consistent).
//! Why it is safe: a range is locked as requests lock it from before its first read to after its
//! last write, so that nothing is written over with older data; new writes go to a member that is
//! being rebuilt, and to a replacement, from the start, so what is done stays done; how far work is
//! counts for reads only below its lowest unfinished range, and is recorded only after a flush of
//! all members; what cannot be had from anywhere is listed as bad on the member that should hold
//! it, never guessed.
//! Tests: `tests/background.rs::every_level_is_rebuilt_under_load` and its neighbours,
//! `tests/errors.rs`, `tests/admin.rs`.
//!
//! One piece of work is under way at a time: first what the log has, then resync, rebuilds,
//! replacements; a scrub only when nothing else is. [`work`] begins and ends it, [`pace`] says how
//! fast it goes, [`window`] is one range, [`sources`] says from what its contents are had.

mod barrier;
mod pace;
mod sources;
mod status;
mod window;
mod work;

use std::hash::{Hash, Hasher};

use super::member::Members;
use super::member_set::MemberSet;
use super::setup::Setup;
use super::slab::Slab;
use super::write_intent::Bitmap;
use crate::bugs::Bug;
use crate::contract::Work;
use crate::geometry::Geometry;
use crate::layout::{Layout, Level};
use crate::units::{MemberIndex, Time};
pub(super) use barrier::Barrier;
pub(super) use pace::MayBegin;
use pace::{Activity, Pace};
use sources::Trust;
pub use status::{Status, WorkStatus};
pub(super) use window::{Finding, FindingRun, Phase, ResyncWindow, Task, WindowJob, places};
pub(super) use work::Kept;

/// Sectors of a range at most.
const MOST_ROWS: u64 = 256;
/// The same of md's raid10, where each range waits for requests: `RESYNC_PAGES` (drivers/md/raid1-10.c).
const MOST_ROWS_OF_RAID10: u64 = 128;
/// A member has at least this many ranges, however small it is.
const LEAST_RANGES: u64 = 16;

/// Which ranges a resync covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Resync {
    /// None: redundancy is consistent.
    #[default]
    None,
    /// All.
    All,
    /// Those the bitmap names.
    ByBitmap,
}

/// What an array that is assembled has to do first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Todo {
    /// Which ranges may disagree.
    pub(crate) resync: Resync,
    /// Below this, redundancy is consistent already.
    pub(crate) synced_to: u64,
    /// Parity is to be believed although it may be inconsistent: the administrator said so.
    pub(crate) trust_parity: bool,
    /// Of the members to rebuild, which are in `rebuilding` and good below their `good_to`, only
    /// what the bitmap names is rebuilt.
    pub(crate) by_bitmap: bool,
    /// A log is to be written out before anything else.
    pub(crate) replay: bool,
    /// Nothing is known of what was under way: all parity is believed.
    pub(crate) is_unknown: bool,
}

/// What goes on in the background.
#[derive(Clone, Debug)]
pub(super) struct Background {
    /// Ranges that it holds.
    pub(super) windows: Slab<ResyncWindow>,
    work: Option<Running>,
    /// Grows with each piece of work, so that ranges of earlier ones are known.
    serial: u32,
    /// Nothing new is begun until a command asks for work.
    halted: bool,
    /// A log is being written out.
    replaying: bool,
    resync: Resync,
    /// Redundancy is consistent below this; `u64::MAX` when everywhere.
    synced_to: u64,
    /// The same, made durable.
    synced_kept: u64,
    /// Members of which parity is believed although it may be inconsistent: those that were missing
    /// when the administrator said so.
    trust: MemberSet,
    /// Members of which everything that was lost in a rebuild has been written since.
    filled: MemberSet,
    /// The first address at which a resync found redundancy lost.
    unsynced_from: u64,
    flush: Option<Flush>,
    /// A member whose replacement holds everything and waits for its superblock.
    taking_over: Option<MemberIndex>,
    /// A member that is rebuilt and waits for the superblocks to say so; whether those on their way do.
    restoring: Option<(MemberIndex, bool)>,
    pace: Pace,
    activity: Activity,
    pub(super) barrier: Barrier,
    /// Ranges are being handed out: not anew from within.
    pumping: bool,
}

/// A piece of work under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) work: Work,
    /// The next address to hand out: of the member for rebuilds, replacements and levels with
    /// parity, else of the array.
    pub(super) cursor: u64,
    pub(super) end: u64,
    /// Where it began this time, and when.
    began: (u64, Time),
    /// What it began before any of that was done, once something is.
    at_once: Option<u64>,
    /// Ranges in flight.
    pub(super) windows: u32,
    /// Sectors of these.
    sectors: u64,
    pub(super) mismatched: u64,
    pub(super) lost: u64,
    /// How far it is was told last, in 64ths.
    told: u64,
    /// How far it was recorded last.
    kept: u64,
}

/// A flush of all members under way.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Flush {
    serial: u32,
    then: Then,
}

/// What follows a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// It is recorded that work is this far.
    Keep(u64),
    /// Work is over.
    Finish,
    /// These members are whole again.
    Fill(MemberSet),
}

/// When it began is a matter of time.
impl Hash for Running {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { work, cursor, end, windows, mismatched, lost, told, kept, .. } = *self;
        (work, cursor, end, windows, mismatched, lost, told, kept).hash(key);
    }
}

/// Its pace is a matter of time: how long it rests is in no key.
impl Hash for Background {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self {
            windows, work, serial, halted, replaying, resync, synced_to, synced_kept, ..
        } = self;
        (windows, work, serial, halted, replaying, resync, synced_to, synced_kept).hash(key);
        let Self { trust, filled, unsynced_from, flush, taking_over, restoring, .. } = self;
        (trust, filled, unsynced_from, flush, taking_over, restoring).hash(key);
    }
}

impl Background {
    pub(super) fn new(
        devices: usize,
        windows: u32,
        pace: crate::contract::Pacing,
        barrier: Barrier,
    ) -> Self {
        Self {
            windows: Slab::new(windows, ResyncWindow::idle()),
            work: None,
            serial: 0,
            halted: false,
            replaying: false,
            resync: Resync::None,
            synced_to: u64::MAX,
            synced_kept: u64::MAX,
            trust: MemberSet::NONE,
            filled: MemberSet::NONE,
            unsynced_from: u64::MAX,
            flush: None,
            taking_over: None,
            restoring: None,
            pace: if barrier.is_of_md() { Pace::of_md(pace) } else { Pace::new(pace) },
            activity: Activity::new(devices),
            barrier,
            pumping: false,
        }
    }
}

/// Sectors of a member that a range has at most: small enough that a tiny array has several.
pub(super) fn window_rows(geometry: &Geometry, layout: &Layout, block: u64, of_md: bool) -> u64 {
    let used = geometry.used(MemberIndex(0)).0;
    let most = match layout.level {
        Level::Raid10 if of_md => MOST_ROWS_OF_RAID10,
        _ => MOST_ROWS,
    };
    let rows = (used / LEAST_RANGES).next_multiple_of(block).clamp(block, most.max(block));
    if geometry.ranges_end_with_chunks() { rows.min(layout.chunk.0) } else { rows }
}

/// What parity is worth, with what the bitmap says.
pub(super) struct Consistent<'a> {
    background: &'a Background,
    bitmap: &'a Bitmap,
}

impl Trust for Consistent<'_> {
    fn is_parity_trusted(&self, from: u64, to: u64, lacking: MemberSet) -> bool {
        self.background.is_parity_trusted(self.bitmap, from, to, lacking)
    }

    fn are_copies_synced(&self, end: u64) -> bool {
        end <= self.background.synced_to()
    }
}

/// How far redundancy can be believed.
impl Background {
    /// As windows ask for it.
    pub(super) const fn trust<'a>(&'a self, bitmap: &'a Bitmap) -> Consistent<'a> {
        Consistent { background: self, bitmap }
    }

    /// Redundancy is consistent below this; `u64::MAX` when everywhere.
    #[inline(always)]
    pub(super) const fn synced_to(&self) -> u64 {
        self.synced_to
    }

    /// The same, made durable, as superblocks have it: of a member for levels with parity, of the array for
    /// mirrors.
    pub(super) fn synced_kept(&self, setup: &Setup) -> u64 {
        if setup.has_bug(Bug::ResyncCleanEarly) { u64::MAX } else { self.synced_kept }
    }

    /// Whether parity of rows `from..to` of the members is consistent.
    #[inline]
    pub(super) fn is_parity_consistent(&self, bitmap: &Bitmap, from: u64, to: u64) -> bool {
        to <= self.synced_to || self.resync == Resync::ByBitmap && !bitmap.found((from, to))
    }

    /// Whether what these members lack in rows `from..to` may be computed from parity.
    #[inline]
    pub(super) fn is_parity_trusted(
        &self,
        bitmap: &Bitmap,
        from: u64,
        to: u64,
        lacking: MemberSet,
    ) -> bool {
        self.is_parity_consistent(bitmap, from, to)
            || !lacking.is_empty() && lacking.is_within(self.trust)
    }

    /// A resync found redundancy lost at this address.
    pub(super) fn lose_redundancy(&mut self, at: u64) {
        self.unsynced_from = self.unsynced_from.min(at);
    }

    /// Everything that a member lost in a rebuild has been written since.
    pub(super) fn note_filled(&mut self, member: MemberIndex) {
        self.filled.insert(member);
    }

    /// Whether what a window was to do is no longer wanted.
    pub(super) fn is_void(&self, slot: u32, members: &Members) -> bool {
        let window = &self.windows[slot];
        window.is_void(members, window.serial != self.serial || self.work.is_none())
    }

    /// Whether nothing is under way any more, not even what was interrupted.
    pub(super) fn is_quiet(&self) -> bool {
        self.work.is_none() && !self.is_settling() && self.windows.used().next().is_none()
    }

    /// Whether a flush or a superblock is waited for before work goes on.
    pub(super) fn is_settling(&self) -> bool {
        self.flush.is_some() || self.taking_over.is_some() || self.restoring.is_some()
    }
}

#[cfg(test)]
mod tests;
