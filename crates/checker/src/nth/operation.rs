//! The operations whose I/Os are failed.

use raidlab_core::consistency::Allow;
use raidlab_core::contract::{Admin, Believe, Event, IoOp, Scrub};
use raidlab_core::{Consistency, MemberIndex, Sector, Sectors};

use crate::rig::{Ask, Fault, Rig, Started};
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
fn blocks(rig: &Rig, op: IoOp, at: u64, len: u64) -> Ask {
    let (block, capacity) = (rig.shape().logical_block, rig.shape().capacity);
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

    /// Does everything up to the moment from which on I/Os fail, and submits what is to be done;
    /// false when this array has no such operation.
    pub(super) fn begin(self, rig: &mut Rig) -> bool {
        let survives = rig.shape().survives(1);
        match self {
            Self::Degraded | Self::Heal if !survives => false,
            Self::Degraded => {
                rig.command(Admin::Fail(FIRST));
                rig.run_on(8);
                let ask = blocks(rig, IoOp::Write, 1, 2);
                rig.submit(ask);
                let ask = blocks(rig, IoOp::Read, 0, 4);
                rig.submit(ask);
                rig.submit(FLUSH);
                true
            }
            Self::Heal => {
                let (member, place) = rig.shape().copies(0)[0];
                rig.drives_mut().damage(MemberIndex(member), u64::from(place), false);
                let ask = blocks(rig, IoOp::Read, 0, 2);
                rig.submit(ask);
                true
            }
            Self::Rebuild | Self::ReAdd | Self::Replace => {
                let meanwhile = blocks(rig, IoOp::Write, 1, 2);
                survives && self.begin_with_drive(rig, meanwhile)
            }
            Self::ReAddOld => {
                let meanwhile = blocks(rig, IoOp::Write, 1, 2);
                survives && come_back_late(rig, meanwhile)
            }
            Self::Recover => {
                let ask = blocks(rig, IoOp::Write, 1, 4);
                survives && recover(rig, ask)
            }
            Self::Check | Self::Repair | Self::RepairUnknown => survives && self.begin_scrub(rig),
            Self::Stop => {
                let ask = blocks(rig, IoOp::Write, 0, 2);
                rig.submit(ask);
                rig.run();
                accepted(rig, Admin::Stop)
            }
            _ => {
                self.begin_requests(rig);
                true
            }
        }
    }

    /// Operations that are requests only.
    fn begin_requests(self, rig: &mut Rig) {
        let longest = u64::from(rig.config().longest) / rig.shape().logical_block;
        let write = |rig: &mut Rig, at, len| {
            let ask = blocks(rig, IoOp::Write, at, len);
            rig.submit(ask)
        };
        match self {
            Self::WriteSmall => {
                write(rig, 0, 1);
            }
            Self::WriteLarge => {
                write(rig, 1, longest - 1);
            }
            Self::WritesAndFlush => {
                write(rig, 0, 3);
                write(rig, 1, 3);
                rig.submit(FLUSH);
            }
            Self::WriteDurable => {
                let durable = Ask { fua: true, ..blocks(rig, IoOp::Write, 1, 2) };
                rig.submit(durable);
            }
            Self::WriteZeroes => {
                let ask = blocks(rig, IoOp::WriteZeroes, 1, 3);
                rig.submit(ask);
            }
            Self::Batch => {
                rig.plug();
                for (at, len) in [(0, 1), (1, 2), (3, 3)] {
                    write(rig, at, len);
                }
                rig.unplug();
            }
            _ => {
                let ask = blocks(rig, IoOp::Read, 0, longest);
                rig.submit(ask);
            }
        }
    }

    /// Operations that compare redundancy, which disagrees in one place.
    fn begin_scrub(self, rig: &mut Rig) -> bool {
        let rot = |rig: &mut Rig, (member, place): (u16, u32), bits| {
            rig.drives_mut().rot(MemberIndex(member), u64::from(place), bits);
        };
        let parities = rig.shape().parities();
        let scrub = match self {
            Self::RepairUnknown if parities < 2 => return false,
            Self::RepairUnknown => {
                for (sector, bits) in [(0, 0x40), (second_in_row(rig), 0x4000)] {
                    let place = rig.shape().copies(sector)[0];
                    rot(rig, place, bits);
                }
                Scrub::Repair(Believe::Nobody)
            }
            Self::Repair => {
                let place = rig.shape().copies(1)[0];
                rot(rig, place, 0x40);
                // Only two parities can name the guilty block; else it is said who is wrong.
                Scrub::Repair(match parities {
                    2 => Believe::Nobody,
                    _ => Believe::NotMember(MemberIndex(place.0)),
                })
            }
            _ => {
                let place = hidden(rig);
                rot(rig, place, 0x40);
                Scrub::Check
            }
        };
        accepted(rig, Admin::StartScrub(scrub))
    }

    /// Members in doubt, a bit each, whatever fails.
    pub(super) fn doubted(self, rig: &Rig) -> Set {
        let of = |sector| 1 << rig.shape().copies(sector)[0].0;
        match self {
            Self::Rebuild | Self::ReAdd | Self::ReAddOld => 1,
            // Its sector is bad.
            Self::Heal => of(0),
            // Its sector is wrong, and there may be one parity to tell.
            Self::Repair => of(1),
            Self::Check => 1 << hidden(rig).0,
            Self::RepairUnknown => of(0) | of(second_in_row(rig)),
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
    fn begin_with_drive(self, rig: &mut Rig, meanwhile: Ask) -> bool {
        let sectors = rig.config().array.members[0].sectors;
        let command = match self {
            Self::Replace => {
                let replacement = rig.array().replacement(FIRST);
                rig.renew_drive(replacement);
                Admin::Replace { member: FIRST, sectors, consent: true }
            }
            Self::ReAdd => {
                let bitmap = Consistency::Bitmap { chunk: Sectors(1) };
                let mode = rig.shape().mode;
                if std::mem::discriminant(&mode) != std::mem::discriminant(&bitmap) {
                    return false;
                }
                rig.command(Admin::Fail(FIRST));
                rig.run_on(8);
                rig.ask(Ask { at: 0, ..meanwhile });
                rig.run_on(8);
                let Ok(command) = rig.judge_return(FIRST) else { return false };
                command
            }
            _ => {
                rig.command(Admin::Fail(FIRST));
                rig.run_on(8);
                rig.renew_drive(FIRST);
                Admin::Add { member: FIRST, sectors }
            }
        };
        if !accepted(rig, command) {
            return false;
        }
        rig.submit(meanwhile);
        true
    }
}

/// A place that reads do not see while nothing is lost: parity of the first row, or the last copy of
/// the first sector.
pub(super) fn hidden(rig: &Rig) -> (u16, u32) {
    let shape = rig.shape();
    match shape.parities() {
        0 => shape.copies(0).last().copied().unwrap_or_default(),
        _ => {
            let parity = (0..shape.members).find(|member| shape.holds(0, *member).is_none());
            (parity.unwrap_or_default(), 0)
        }
    }
}

/// The first sector besides 0 in its row.
pub(super) fn second_in_row(rig: &Rig) -> u64 {
    let shape = rig.shape();
    (1..shape.capacity).find(|at| shape.row_of(*at) == shape.row_of(0)).unwrap_or(0)
}

/// A member fails and another drive takes its place; when that fails too, the first wants to come
/// back by the bitmap, which has forgotten what it missed. Whether it is let in.
fn come_back_late(rig: &mut Rig, meanwhile: Ask) -> bool {
    let sectors = rig.config().array.members[0].sectors;
    let Some(known) = rig.drives().superblock(FIRST) else { return false };
    rig.command(Admin::Fail(FIRST));
    rig.run_on(8);
    rig.ask(meanwhile);
    rig.renew_drive(FIRST);
    rig.command(Admin::Add { member: FIRST, sectors });
    rig.run_on(64);
    rig.command(Admin::Fail(FIRST));
    rig.run_on(8);
    rig.renew_drive(FIRST);
    accepted(rig, Admin::ReAdd { member: FIRST, events: known.events, good_to: Sector::MAX })
}

/// Gives a command; whether it was carried out.
fn accepted(rig: &mut Rig, command: Admin) -> bool {
    let before = rig.events().len();
    rig.command(command);
    !rig.events()[before..].iter().any(|event| matches!(event, Event::Refused(..)))
}

/// A write is under way, half of what it wrote is there, and the array starts again.
fn recover(rig: &mut Rig, ask: Ask) -> bool {
    rig.submit(ask);
    // To where its writes are under way: reads and records first.
    for _ in 0..64 {
        let is_data = |k: &usize| match rig.work(*k) {
            crate::rig::Work::Io(io) => io.op == IoOp::Read,
            _ => true,
        };
        let Some(index) = (0..rig.outstanding()).find(is_data) else { break };
        rig.finish(index, Fault::None);
    }
    let mut which = 0;
    rig.crash(|ways| {
        which += 1;
        if which % 2 == 0 { ways - 1 } else { 0 }
    });
    rig.assemble(0, Allow::default()) == Started::Well
}
