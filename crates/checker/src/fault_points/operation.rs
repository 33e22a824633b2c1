//! The operations whose I/Os are failed.

use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Admin, Event, IoOp, RepairSource, Scrub};
use raidlab_core::{Consistency, MemberIndex, Sector, Sectors};

use crate::harness::{Ask, Fault, Harness, Started};
use crate::shape::Set;

/// What is done while an I/O fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A read of everything.
    Read,
    /// A write within a chunk.
    WriteSmall,
    /// A write of more than a stripe.
    WriteLarge,
    /// Two writes that overlap, and a flush.
    WritesAndFlush,
    /// A durable write.
    WriteDurable,
    /// Zeroes over the end of a chunk.
    WriteZeroes,
    /// A read, a write and a flush with a member out of service.
    Degraded,
    /// A member cannot read a sector, which is read.
    Heal,
    /// A fresh drive in the place of a failed member, with writes meanwhile.
    Rebuild,
    /// A member that was away for a write comes back.
    ReAdd,
    /// A member is copied to a fresh drive, with writes meanwhile.
    Replace,
    /// Redundancy is compared, and disagrees in one place: nothing is written.
    Check,
    /// Redundancy that disagrees in one place is mended.
    Repair,
    /// The same with two blocks of a row wrong, so that nobody can know which: nothing is written.
    RepairUnknown,
    /// A member that was away for too long for the bitmap wants to come back: it is refused.
    ReAddOld,
    /// Neighbouring writes of one batch.
    Batch,
    /// What a crash left is made consistent.
    Recover,
    /// The array is stopped in order.
    Stop,
}

const FIRST: MemberIndex = MemberIndex(0);
const FLUSH: Ask = Ask { op: IoOp::Flush, at: 0, len: 0, fua: false };

/// A request for so many logical blocks, as far as the array reaches.
fn blocks(harness: &Harness, op: IoOp, at: u64, len: u64) -> Ask {
    let (block, capacity) = (harness.shape().logical_block, harness.shape().capacity);
    let at = (at * block).min(capacity - block);
    Ask { op, at, len: (len * block).min(capacity - at), fua: false }
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Read,
        Self::WriteSmall,
        Self::WriteLarge,
        Self::WritesAndFlush,
        Self::WriteDurable,
        Self::WriteZeroes,
        Self::Degraded,
        Self::Heal,
        Self::Rebuild,
        Self::ReAdd,
        Self::Replace,
        Self::Check,
        Self::Repair,
        Self::RepairUnknown,
        Self::ReAddOld,
        Self::Batch,
        Self::Recover,
        Self::Stop,
    ];

    /// Whether an array has this operation: one that has it has to carry it out, and one that has not has to refuse it.
    pub(super) fn is_had_by(self, harness: &Harness) -> bool {
        let shape = harness.shape();
        let is_redundant = shape.level.is_redundant();
        match self {
            Self::Degraded | Self::Heal | Self::Rebuild | Self::Recover => is_redundant,
            Self::Check | Self::Repair => is_redundant,
            Self::Replace => is_redundant && harness.config().replacements,
            Self::ReAdd => matches!(shape.mode, Consistency::Bitmap { .. }),
            Self::RepairUnknown => shape.parities() == 2,
            // The bitmap does not say what it missed.
            Self::ReAddOld => false,
            _ => true,
        }
    }

    /// Does everything up to the moment from which on I/Os fail, and submits what is to be done;
    /// false when this array has no such operation: see [`Self::is_had_by`].
    pub(super) fn begin(self, harness: &mut Harness) -> bool {
        let survives = harness.shape().survives(1);
        match self {
            Self::Degraded | Self::Heal if !survives => false,
            Self::Degraded => {
                harness.command(Admin::Fail(FIRST));
                harness.run_on(8);
                let ask = blocks(harness, IoOp::Write, 1, 2);
                harness.submit(ask);
                let ask = blocks(harness, IoOp::Read, 0, 4);
                harness.submit(ask);
                harness.submit(FLUSH);
                true
            }
            Self::Heal => {
                let (member, place) = harness.shape().copies(0)[0];
                harness.drives_mut().damage(MemberIndex(member), u64::from(place), false);
                let ask = blocks(harness, IoOp::Read, 0, 2);
                harness.submit(ask);
                true
            }
            Self::Replace if !harness.config().replacements => false,
            Self::Rebuild | Self::ReAdd | Self::Replace => {
                let meanwhile = blocks(harness, IoOp::Write, 1, 2);
                survives && self.begin_with_drive(harness, meanwhile)
            }
            Self::ReAddOld => {
                let meanwhile = blocks(harness, IoOp::Write, 1, 2);
                survives && come_back_late(harness, meanwhile)
            }
            Self::Recover => {
                let ask = blocks(harness, IoOp::Write, 1, 4);
                survives && recover(harness, ask)
            }
            Self::Check | Self::Repair | Self::RepairUnknown => {
                survives && self.begin_scrub(harness)
            }
            Self::Stop => {
                let ask = blocks(harness, IoOp::Write, 0, 2);
                harness.submit(ask);
                harness.run();
                accepted(harness, Admin::Stop)
            }
            _ => {
                self.begin_requests(harness);
                true
            }
        }
    }

    /// Operations that are requests only.
    fn begin_requests(self, harness: &mut Harness) {
        let longest = u64::from(harness.config().longest) / harness.shape().logical_block;
        let write = |harness: &mut Harness, at, len| {
            let ask = blocks(harness, IoOp::Write, at, len);
            harness.submit(ask)
        };
        match self {
            Self::WriteSmall => {
                write(harness, 0, 1);
            }
            Self::WriteLarge => {
                write(harness, 1, longest - 1);
            }
            Self::WritesAndFlush => {
                write(harness, 0, 3);
                write(harness, 1, 3);
                harness.submit(FLUSH);
            }
            Self::WriteDurable => {
                let durable = Ask { fua: true, ..blocks(harness, IoOp::Write, 1, 2) };
                harness.submit(durable);
            }
            Self::WriteZeroes => {
                let ask = blocks(harness, IoOp::WriteZeroes, 1, 3);
                harness.submit(ask);
            }
            Self::Batch => {
                harness.plug();
                for (at, len) in [(0, 1), (1, 2), (3, 3)] {
                    write(harness, at, len);
                }
                harness.unplug();
            }
            _ => {
                let ask = blocks(harness, IoOp::Read, 0, longest);
                harness.submit(ask);
            }
        }
    }

    /// Operations that compare redundancy, which disagrees in one place.
    fn begin_scrub(self, harness: &mut Harness) -> bool {
        let rot = |harness: &mut Harness, (member, place): (u16, u32), bits| {
            harness.drives_mut().rot(MemberIndex(member), u64::from(place), bits);
        };
        let parities = harness.shape().parities();
        let scrub = match self {
            Self::RepairUnknown if parities < 2 => return false,
            Self::RepairUnknown => {
                for (sector, bits) in [(0, 0x40), (second_in_row(harness), 0x4000)] {
                    let place = harness.shape().copies(sector)[0];
                    rot(harness, place, bits);
                }
                Scrub::Repair(RepairSource::Nobody)
            }
            Self::Repair => {
                let place = harness.shape().copies(1)[0];
                rot(harness, place, 0x40);
                // Only two parities can name the guilty block; else it is said who is wrong.
                Scrub::Repair(match parities {
                    2 => RepairSource::Nobody,
                    _ => RepairSource::NotMember(MemberIndex(place.0)),
                })
            }
            _ => {
                let (member, at) = unread(harness);
                rot(harness, (member, at), 0x40);
                if parities == 0 {
                    // Reads may meet either copy, and nobody can know which is right.
                    let value = harness.drives().live(MemberIndex(member), u64::from(at));
                    harness.oracle_mut().differs(0, value);
                }
                Scrub::Check
            }
        };
        accepted(harness, Admin::StartScrub(scrub))
    }

    /// Members in doubt, a bit each, whatever fails.
    pub(super) fn doubted(self, harness: &Harness) -> Set {
        let of = |sector| 1 << harness.shape().copies(sector)[0].0;
        match self {
            Self::Rebuild | Self::ReAdd | Self::ReAddOld => 1,
            // Its sector is bad.
            Self::Heal => of(0),
            // Its sector is wrong, and there may be one parity to tell.
            Self::Repair => of(1),
            Self::Check => 1 << unread(harness).0,
            Self::RepairUnknown => of(0) | of(second_in_row(harness)),
            _ => 0,
        }
    }

    /// A sector of the row in which something goes wrong by itself.
    pub(super) const fn rotten(self) -> Option<u64> {
        match self {
            Self::Repair => Some(1),
            Self::Check | Self::RepairUnknown => Some(0),
            _ => None,
        }
    }

    /// Operations with a drive that comes.
    fn begin_with_drive(self, harness: &mut Harness, meanwhile: Ask) -> bool {
        let sectors = harness.config().array.members[0].sectors;
        let command = match self {
            Self::Replace => {
                let replacement = harness.array().replacement(FIRST);
                harness.renew_drive(replacement);
                Admin::Replace { member: FIRST, sectors, consent: true }
            }
            Self::ReAdd => {
                let bitmap = Consistency::Bitmap { chunk: Sectors(1) };
                let mode = harness.shape().mode;
                if std::mem::discriminant(&mode) != std::mem::discriminant(&bitmap) {
                    return false;
                }
                harness.command(Admin::Fail(FIRST));
                harness.run_on(8);
                harness.ask(Ask { at: 0, ..meanwhile });
                harness.run_on(8);
                let Ok(command) = harness.judge_return(FIRST) else { return false };
                command
            }
            _ => {
                harness.command(Admin::Fail(FIRST));
                harness.run_on(8);
                harness.renew_drive(FIRST);
                Admin::Add { member: FIRST, sectors }
            }
        };
        if !accepted(harness, command) {
            return false;
        }
        harness.submit(meanwhile);
        true
    }
}

/// A place of which reads take no notice while nothing is lost, or need not: parity of the first row, or the last copy
/// of the first sector.
fn unread(harness: &Harness) -> (u16, u32) {
    let shape = harness.shape();
    match shape.parities() {
        0 => shape.copies(0).last().copied().unwrap_or_default(),
        _ => {
            let parity = (0..shape.members).find(|member| shape.holds(0, *member).is_none());
            (parity.unwrap_or_default(), 0)
        }
    }
}

/// The first sector besides 0 in its row.
pub(super) fn second_in_row(harness: &Harness) -> u64 {
    let shape = harness.shape();
    (1..shape.capacity).find(|at| shape.row_of(*at) == shape.row_of(0)).unwrap_or(0)
}

/// A member fails and another drive takes its place; when that fails too, the first wants to come
/// back by the bitmap, which has forgotten what it missed. Whether it is let in.
fn come_back_late(harness: &mut Harness, meanwhile: Ask) -> bool {
    let sectors = harness.config().array.members[0].sectors;
    let Some(known) = harness.drives().superblock(FIRST) else { return false };
    harness.command(Admin::Fail(FIRST));
    harness.run_on(8);
    harness.ask(meanwhile);
    harness.renew_drive(FIRST);
    harness.command(Admin::Add { member: FIRST, sectors });
    harness.run_on(64);
    harness.command(Admin::Fail(FIRST));
    harness.run_on(8);
    harness.renew_drive(FIRST);
    accepted(harness, Admin::ReAdd { member: FIRST, events: known.events, good_to: Sector::MAX })
}

/// Gives a command; whether it was carried out.
fn accepted(harness: &mut Harness, command: Admin) -> bool {
    let before = harness.events().len();
    harness.command(command);
    !harness.events()[before..].iter().any(|event| matches!(event, Event::Refused(..)))
}

/// A write is under way, half of what it wrote is there, and the array starts again.
fn recover(harness: &mut Harness, ask: Ask) -> bool {
    harness.submit(ask);
    // To where its writes are under way: reads and records first.
    for _ in 0..64 {
        let is_data = |k: &usize| match harness.work(*k) {
            crate::harness::Work::Io(io) => io.op == IoOp::Read,
            _ => true,
        };
        let Some(index) = (0..harness.outstanding()).find(is_data) else { break };
        harness.finish(index, Fault::None);
    }
    let mut which = 0;
    harness.crash(|ways| {
        which += 1;
        if which % 2 == 0 { ways - 1 } else { 0 }
    });
    harness.assemble(0, Allow::default()) == Started::Well
}
