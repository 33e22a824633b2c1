//! What random arrays and random faults hardly ever come to by themselves: each has a generator of its own, with a
//! share of the seeds.

use std::fmt::Write as _;

use raidlab_core::contract::{Admin, IoOp, Record, Work as Background};
use raidlab_core::{Config, MemberIndex};
use raidlab_random::SplitMix64;

use super::run::Run;
use super::{Class, Mode};
use crate::harness::{Ask, Fault, Work, changes};
use crate::shape::{has, set_of};

/// A class of arrays or faults with a share of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// Chunks that one plan does not hold: they are worked on a slice after the other.
    Slices,
    /// A partial-parity log with chunks of more than 1 MiB.
    LargeChunk,
    /// Members that read and write 4,096 bytes or nothing.
    LargeBlock,
    /// 11 to 128 members.
    ManyMembers,
    /// A start with more than 64 members.
    ManyAtStart,
    /// A start goes on with a replacement that was not complete.
    Resumed,
    /// A rebuild is recorded no further than to the first block that it lost.
    Hole,
    /// A read of data that is not answered in time.
    LateRead,
    /// A write of data.
    LateWrite,
    /// A flush.
    LateFlush,
    /// A superblock.
    LateSuperblock,
    /// A page of the bitmap.
    LateBitmap,
    /// An entry of a log.
    LateLog,
    /// An I/O of a replay.
    LateReplay,
    /// An I/O of a rebuild.
    LateRebuild,
    /// A read of what a rebuild is writing.
    ReadBehind,
    /// A drive, or all of them, have no room for a while.
    NoRoom,
    /// A drive has no room any more.
    NoRoomForGood,
    /// The power goes while writes wait for room.
    CrashWithoutRoom,
    /// A discard of what cannot be read or written.
    DiscardBad,
    /// A place of a superblock cannot be read at a start.
    SuperblockUnreadable,
    /// A place of a superblock holds something else.
    SuperblockDamaged,
    /// The administrator says, truly, that what cannot be read was older.
    Believed,
    /// A page of the bitmap cannot be read or is damaged, on one member or on all.
    PageHarmed,
    /// Some of a log of partial parity cannot be read.
    LogUnreadable,
    /// A member is an older copy of itself.
    OlderCopy,
    /// A member comes from a copy of the array that went on alone.
    WentOnAlone,
    /// Two members are in each other's place.
    Swapped,
    /// A member was cut off, or has grown.
    Resized,
    /// A member of 512-byte blocks has some of 4,096.
    LargerBlock,
    /// A member is blank, or something else is on it.
    Wiped,
    /// A member has superblocks of another array.
    Foreign,
    /// The power went while a drive was made ready to be added.
    HalfReady,
    /// The log device is blank, foreign, older, cut off or cannot be read.
    WrongLog,
    /// Asked for is another mode, bitmap chunk or chunk than there is.
    OtherParameters,
    /// A drive that is to come back has another history.
    AnyReturn,
}

impl Special {
    /// All of them, in order.
    pub const ALL: [Self; 36] = [
        Self::Slices,
        Self::LargeChunk,
        Self::LargeBlock,
        Self::ManyMembers,
        Self::ManyAtStart,
        Self::Resumed,
        Self::Hole,
        Self::LateRead,
        Self::LateWrite,
        Self::LateFlush,
        Self::LateSuperblock,
        Self::LateBitmap,
        Self::LateLog,
        Self::LateReplay,
        Self::LateRebuild,
        Self::ReadBehind,
        Self::NoRoom,
        Self::NoRoomForGood,
        Self::CrashWithoutRoom,
        Self::DiscardBad,
        Self::SuperblockUnreadable,
        Self::SuperblockDamaged,
        Self::Believed,
        Self::PageHarmed,
        Self::LogUnreadable,
        Self::OlderCopy,
        Self::WentOnAlone,
        Self::Swapped,
        Self::Resized,
        Self::LargerBlock,
        Self::Wiped,
        Self::Foreign,
        Self::HalfReady,
        Self::WrongLog,
        Self::OtherParameters,
        Self::AnyReturn,
    ];

    /// Those that are I/Os with no answer in time.
    const LATE: [Self; 8] = [
        Self::LateRead,
        Self::LateWrite,
        Self::LateFlush,
        Self::LateSuperblock,
        Self::LateBitmap,
        Self::LateLog,
        Self::LateReplay,
        Self::LateRebuild,
    ];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slices => "chunk in slices",
            Self::LargeChunk => "ppl, chunk over 1 MiB",
            Self::LargeBlock => "4,096-byte members",
            Self::ManyMembers => "11 to 128 members",
            Self::ManyAtStart => "start with over 64 members",
            Self::Resumed => "start: replacement goes on",
            Self::Hole => "hole at a checkpoint",
            Self::LateRead => "timeout of a data read",
            Self::LateWrite => "timeout of a data write",
            Self::LateFlush => "timeout of a flush",
            Self::LateSuperblock => "timeout of a superblock",
            Self::LateBitmap => "timeout of a bitmap page",
            Self::LateLog => "timeout of a log entry",
            Self::LateReplay => "timeout in a replay",
            Self::LateRebuild => "timeout in a rebuild",
            Self::ReadBehind => "read behind a rebuild",
            Self::NoRoom => "no room for a while",
            Self::NoRoomForGood => "no room for good",
            Self::CrashWithoutRoom => "power cut while writes wait for room",
            Self::DiscardBad => "discard over bad blocks",
            Self::SuperblockUnreadable => "start: superblock unreadable",
            Self::SuperblockDamaged => "start: superblock damaged",
            Self::Believed => "start: what was lost said to be older",
            Self::PageHarmed => "start: bitmap page lost",
            Self::LogUnreadable => "start: log unreadable",
            Self::OlderCopy => "start: older copy of a member",
            Self::WentOnAlone => "start: member went on alone",
            Self::Swapped => "start: members swapped",
            Self::Resized => "start: member cut off or grown",
            Self::LargerBlock => "start: 512-byte member as 4,096",
            Self::Wiped => "start: member blank or overwritten",
            Self::Foreign => "start: member of another array",
            Self::HalfReady => "start: drive half made ready",
            Self::WrongLog => "start: wrong log device",
            Self::OtherParameters => "start: other parameters",
            Self::AnyReturn => "return of any drive",
        }
    }
}

/// How many seeds had each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares([u64; Special::ALL.len()]);

impl Default for Shares {
    fn default() -> Self {
        Self([0; Special::ALL.len()])
    }
}

impl Shares {
    /// Of one seed: it has it.
    pub const fn has(&mut self, special: Special) {
        self.0[special as usize] = 1;
    }

    /// How many seeds had it.
    #[must_use]
    pub const fn of(&self, special: Special) -> u64 {
        self.0[special as usize]
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        for (sum, one) in self.0.iter_mut().zip(&other.0) {
            *sum += one;
        }
    }

    /// Their names, for one seed.
    #[must_use]
    pub fn names(&self) -> String {
        let mut text = String::new();
        for special in Special::ALL.into_iter().filter(|special| self.of(*special) > 0) {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}{}", special.name());
        }
        text
    }
}

/// What a seed means to do besides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Intent {
    /// This kind of I/O is not answered in time.
    late: Option<Special>,
    /// A rebuild is to lose blocks.
    pub(super) hole: bool,
    /// Discards go where something cannot be read.
    discards: bool,
    /// Drives run full.
    pub(super) full: bool,
    /// Reads go where a rebuild is writing.
    reads_behind: bool,
}

impl Intent {
    pub(super) fn draw(random: &mut SplitMix64) -> Self {
        let late = random.chance(30);
        let which = Special::LATE[random.below(Special::LATE.len() as u64) as usize];
        let (hole, discards) = (random.chance(5), random.chance(15));
        let (full, reads_behind) = (random.chance(30), random.chance(20));
        Self { late: late.then_some(which), hole, discards, full, reads_behind }
    }
}

/// What an array has by itself.
pub(super) fn of_array(config: &Config, shares: &mut Shares) {
    let (layout, settings) = (&config.layout, &config.settings);
    let stripes = layout.level.has_stripes();
    if stripes && layout.chunk > settings.plan_rows {
        shares.has(Special::Slices);
        let logged = Mode::of(settings.consistency) == Mode::PartialParity;
        if logged && layout.chunk.0 > 2048 {
            shares.has(Special::LargeChunk);
        }
    }
    if config.members.iter().any(|member| member.logical_block > 1) {
        shares.has(Special::LargeBlock);
    }
    if layout.members > 10 {
        shares.has(Special::ManyMembers);
    }
}

impl Run {
    /// Lets something that is outstanding end with a timeout, if it is of the kind that this seed looks for.
    pub(super) fn be_late(&mut self) {
        let Some(wanted) = self.plan.late.filter(|_| self.random.chance(15)) else { return };
        let all = 0..self.harness.outstanding();
        let Some(index) = all.into_iter().find(|index| self.is_kind(*index, wanted)) else {
            return;
        };
        let Some(device) = self.harness.device(index) else { return };
        if device.0 == 2 * self.members() {
            if !self.may_lose_log() {
                return;
            }
            self.log_lost = true;
            self.hit(Class::LogDevice);
        } else if device.0 < self.members() && !self.may_harm(device.0) {
            return;
        }
        self.hit(Class::Timeout);
        self.shares.has(wanted);
        self.ios += 1;
        let carried_out = self.random.chance(50);
        self.harness.finish(index, Fault::Timeout { carried_out });
    }

    /// Whether the log device may fail now: in a replay parity is then not consistent, and nothing more may be
    /// missing.
    pub(super) fn may_lose_log(&mut self) -> bool {
        if !self.replaying {
            return true;
        }
        if self.budget.harmed != 0 {
            if !self.reckless {
                return false;
            }
            self.budget.beyond = true;
            self.hit(Class::TooMany);
        }
        self.budget.unsynced = true;
        true
    }

    /// Whether something outstanding is such an I/O.
    fn is_kind(&self, index: usize, wanted: Special) -> bool {
        let work = self.harness.array().status().work.map(|known| known.work);
        let replays = self.replaying;
        let rebuilds = matches!(work, Some(Background::Rebuild(_) | Background::Replace(_)));
        match (*self.harness.work(index), wanted) {
            (Work::Io(_), Special::LateReplay) => replays,
            (Work::Io(_), Special::LateRebuild) => rebuilds,
            (Work::Io(io), Special::LateFlush) => io.op == IoOp::Flush,
            (Work::Io(io), Special::LateRead) => io.op == IoOp::Read && !replays && !rebuilds,
            (Work::Io(io), Special::LateWrite) => changes(io.op) && !replays && !rebuilds,
            (Work::Meta(_, meta), _) => match meta.record {
                Record::Superblock(_) => wanted == Special::LateSuperblock,
                Record::BitmapPage { .. } => wanted == Special::LateBitmap,
                Record::PartialParity { .. } | Record::JournalEntry { .. } => {
                    wanted == Special::LateLog
                }
            },
            _ => false,
        }
    }

    /// A read of what a rebuild is writing, or a discard of some sectors of which a member cannot read one; the
    /// request given where there is neither.
    pub(super) fn aim(&mut self, ask: Ask) -> Ask {
        if self.plan.reads_behind && self.random.chance(30) {
            return self.read_behind().unwrap_or(ask);
        }
        if !self.plan.discards || !self.random.chance(10) {
            return ask;
        }
        let Some(sector) = self.bad_sector() else { return ask };
        let (block, capacity) = (self.harness.shape().logical_block, self.harness.shape().capacity);
        let at = (sector / block).saturating_sub(self.random.below(2)) * block;
        let len = ((1 + self.random.below(3)) * block).min(capacity - at);
        if at + len <= sector {
            return ask;
        }
        self.shares.has(Special::DiscardBad);
        Ask { op: IoOp::Discard, at, len, fua: false }
    }

    /// A read of the first sectors that a rebuild is writing.
    fn read_behind(&mut self) -> Option<Ask> {
        let rebuilding = set_of(self.harness.array().status().rebuilding);
        if rebuilding == 0 {
            return None;
        }
        let sector =
            (0..self.harness.outstanding()).find_map(|index| match *self.harness.work(index) {
                Work::Io(io) if io.op == IoOp::Write && has(rebuilding, io.member.0) => {
                    self.sector_at(io.member.0, io.at.0)
                }
                _ => None,
            })?;
        self.shares.has(Special::ReadBehind);
        let block = self.harness.shape().logical_block;
        Some(Ask { op: IoOp::Read, at: sector / block * block, len: block, fua: false })
    }

    /// A sector of the array whose place on some member cannot be read.
    fn bad_sector(&self) -> Option<u64> {
        let drives = self.harness.drives();
        (0..self.members()).find_map(|member| {
            let device = MemberIndex(member);
            let place = drives.first_bad(device, 0, drives.log_start(device), false)?;
            self.sector_at(member, place)
        })
    }

    /// The sector of the array that a place of a member holds, if it holds any.
    fn sector_at(&self, member: u16, place: u64) -> Option<u64> {
        let shape = self.harness.shape();
        if shape.is_unused(member, place) {
            return None;
        }
        match shape.parities() {
            0 => shape.array_sector(member, place),
            _ => shape.holds(place as usize, member),
        }
    }

    /// Where a rebuild is to lose blocks and none is under way: lets one begin.
    pub(super) fn begins_rebuild(&mut self) -> bool {
        let status = self.harness.array().status();
        let quiet = set_of(status.failed) == 0 && set_of(status.rebuilding) == 0;
        if !self.plan.hole || !quiet || self.budget.beyond {
            return false;
        }
        let member = self.random.below(u64::from(self.members())) as u16;
        if self.may_harm(member) {
            self.hit(Class::MemberLost);
            self.harness.command(Admin::Fail(MemberIndex(member)));
            // Nobody takes away a drive that is at work.
            self.harness.finish_records();
            self.harness.finish_all_of(MemberIndex(member));
            self.renew(member);
        }
        true
    }

    /// Whether a rebuild is to read what cannot be read, so that a hole is left.
    pub(super) fn makes_hole(&mut self, op: IoOp) -> bool {
        let work = self.harness.array().status().work.map(|known| known.work);
        let rebuilds = matches!(work, Some(Background::Rebuild(_)));
        self.plan.hole && rebuilds && op == IoOp::Read && self.random.chance(20)
    }

    /// Notes a superblock that is written and says that a member is rebuilt up to a block that was lost.
    pub(super) fn note_hole(&mut self, index: usize) {
        let Work::Meta(_, meta) = *self.harness.work(index) else { return };
        let Record::Superblock(superblock) = meta.record else { return };
        let array = self.harness.array();
        let held_back = |member: u16| {
            let member = MemberIndex(member);
            let rebuilt_to = superblock.rebuilt_to;
            let mut bad = array.bad_blocks(member).map(|(at, _)| at);
            bad.any(|at| at == rebuilt_to && array.good_to(member) > at)
        };
        let rebuilding = set_of(superblock.rebuilding);
        let mut members = (0..self.members()).filter(|member| rebuilding >> member & 1 == 1);
        if members.any(held_back) {
            self.shares.has(Special::Hole);
        }
    }
}
