//! Programs: every sequence of a few operations from a list that suits the array.

use raidlab_core::contract::{Admin, IoOp, RepairSource, Scrub};
use raidlab_core::{Consistency, MemberIndex, Redundancy};

use super::CrashConfig;
use crate::choices::Choices;
use crate::harness::{Ask, Harness};
use crate::shape::{Set, has, set_of};

/// An operation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A request.
    Ask(Ask),
    /// Two requests of one batch.
    Batch(Ask, Ask),
    /// A command of the administrator.
    Command(Admin),
    /// A member fails and a fresh drive takes its place.
    Renew(MemberIndex),
    /// A member fails, and comes back later as it was: what it missed is known by the bitmap.
    Return(MemberIndex),
    /// A member is copied to a fresh drive.
    Replace(MemberIndex),
}

impl Op {
    /// Does it, with the I/O that comes before a drive is changed.
    pub(super) fn submit(self, harness: &mut Harness) {
        let sectors = harness.config().array.members[0].sectors;
        match self {
            Self::Ask(ask) => {
                harness.submit(ask);
            }
            Self::Batch(one, other) => {
                harness.plug();
                harness.submit(one);
                if harness.can_submit() {
                    harness.submit(other);
                }
                harness.unplug();
            }
            Self::Command(command) => harness.command(command),
            // Nobody takes away a drive that is needed.
            Self::Renew(member)
                if !harness.shape().survives(harness.out_of_service() | 1 << member.0) => {}
            Self::Renew(member) => {
                harness.command(Admin::Fail(member));
                // By the time the drive is changed, the failure is long recorded.
                harness.finish_records();
                harness.renew_drive(member);
                harness.drop_ghosts();
                harness.command(Admin::Add { member, sectors });
            }
            Self::Return(member) => {
                harness.command(Admin::Fail(member));
                harness.finish_records();
                harness.finish_all_of(member);
                if let Ok(command) = harness.judge_return(member) {
                    harness.command(command);
                }
            }
            // Nor one that is being filled.
            Self::Replace(member) if has(set_of(harness.array().status().replacing), member.0) => {}
            Self::Replace(member) => {
                let replacement = harness.array().replacement(member);
                harness.renew_drive(replacement);
                harness.command(Admin::Replace { member, sectors, consent: true });
            }
        }
    }
}

impl Op {
    /// Members that it fails, or that fail as drives are changed.
    pub(super) fn fails(self) -> Set {
        match self {
            Self::Command(Admin::Fail(member)) | Self::Renew(member) | Self::Return(member) => {
                1 << member.0
            }
            _ => 0,
        }
    }
}

/// Every sequence of so many operations, in order.
pub(super) struct Programs {
    alphabet: Vec<Op>,
    choices: Choices,
    length: u32,
}

impl Programs {
    pub(super) fn new(config: &CrashConfig, base: &Harness, length: u32) -> Self {
        Self { alphabet: alphabet(config, base), choices: Choices::every(), length }
    }
}

impl Iterator for Programs {
    type Item = Vec<Op>;

    fn next(&mut self) -> Option<Vec<Op>> {
        while self.choices.next_run() {
            let count = self.alphabet.len() as u32;
            let program: Vec<Op> = (0..self.length)
                .map(|_| self.alphabet[self.choices.below(count) as usize])
                .collect();
            // Nothing to lose: no write, no crash state.
            let writes = |op: &Op| match op {
                Op::Ask(ask) => !matches!(ask.op, IoOp::Flush | IoOp::Read),
                op => !matches!(op, Op::Command(_)),
            };
            if program.iter().any(writes) {
                return Some(program);
            }
        }
        None
    }
}

/// The operations a program is made of: writes within a chunk, over its end, of a whole stripe,
/// overlapping each other, in a batch, at the end; a read; zeroes; a flush; a member failing,
/// renewed, coming back or replaced; a scrub.
pub(super) fn alphabet(config: &CrashConfig, base: &Harness) -> Vec<Op> {
    let shape = base.shape();
    let (block, capacity) = (shape.logical_block, shape.capacity);
    let write = |at: u64, len: u64, fua| {
        let len = (len * block).min(capacity.saturating_sub(at * block));
        Op::Ask(Ask { op: IoOp::Write, at: at * block, len, fua })
    };
    let stripe = match shape.level.redundancy() {
        Redundancy::Parity(_) if shape.level.has_chunks() => {
            2 * u64::from(shape.members - shape.parities())
        }
        Redundancy::Copies => u64::from(shape.members),
        Redundancy::None | Redundancy::Mirror | Redundancy::Parity(_) => 2,
    };
    let mut all = vec![
        write(0, 1, false),
        write(0, 1, true),
        write(1, 2, false),
        Op::Ask(Ask { op: IoOp::Flush, at: 0, len: 0, fua: false }),
        write(0, stripe, false),
        write(1, 1, true),
        Op::Ask(Ask { op: IoOp::WriteZeroes, at: 0, len: 2 * block, fua: false }),
        // The next stripe, and the end.
        write(stripe, 2, false),
        Op::Ask(Ask { op: IoOp::Read, at: 0, len: 4 * block, fua: false }),
    ];
    if capacity / block > stripe + 2 {
        all.push(write(capacity / block - 2, 2, false));
    }
    let in_range = |op: &Op| match op {
        Op::Ask(ask) => ask.op == IoOp::Flush || ask.len > 0 && ask.at + ask.len <= capacity,
        _ => true,
    };
    all.retain(in_range);
    if let (Op::Ask(one), Op::Ask(other)) = (write(0, 1, false), write(1, stripe - 1, false)) {
        all.push(Op::Batch(one, other));
    }
    if config.failures && shape.survives(1) {
        all.push(Op::Command(Admin::Fail(MemberIndex(0))));
        let scrub = Scrub::Repair(RepairSource::Nobody);
        all.push(Op::Command(Admin::StartScrub(scrub)));
        all.push(Op::Renew(MemberIndex(1)));
        if matches!(shape.mode, Consistency::Bitmap { .. }) {
            all.push(Op::Return(MemberIndex(0)));
        }
        if base.config().replacements {
            all.push(Op::Replace(MemberIndex(0)));
        }
    }
    all
}
