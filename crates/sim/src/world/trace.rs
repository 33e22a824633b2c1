//! The requests that reach drives, as the kernel lab's traces have them.

use std::collections::VecDeque;
use std::fmt;

use raidlab_core::Time;
use raidlab_core::contract::IoOutcome;
use raidlab_models::{DriveIo, DriveIoId, DriveOp};

use super::World;

/// A request as its drive got it, merged and cut by the request queue. Its text is a line of a trace in the form of
/// the kernel lab's: arrived and ended in ns, drive, letter, first sector, bytes, depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriveRequest {
    /// When it was sent to the drive.
    pub arrived: Time,
    /// When its end reached the host.
    pub ended: Time,
    /// Which drive, from 0: members, the journal's, those added later.
    pub drive: u16,
    /// What it asked for, with its first sector and its length.
    pub io: DriveIo,
    /// How many requests the drive had before it.
    pub depth: u32,
    /// Whether it went well.
    pub succeeded: bool,
}

impl DriveRequest {
    /// `R`ead, `W`rite, `U` (a write with FUA) or `F`lush.
    const fn letter(&self) -> char {
        match (self.io.op, self.io.fua) {
            (DriveOp::Read, _) => 'R',
            (DriveOp::Write, false) => 'W',
            (DriveOp::Write, true) => 'U',
            (DriveOp::Flush, _) => 'F',
        }
    }
}

impl fmt::Display for DriveRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arrived, ended, drive, io, depth, succeeded } = self;
        let failed = if *succeeded { "" } else { "!" };
        let bytes = u64::from(io.len) * raidlab_core::SECTOR_BYTES;
        let (letter, sector) = (self.letter(), io.at.0);
        write!(f, "{} {} {drive} {letter}{failed} {sector} {bytes} {depth}", arrived.0, ended.0)
    }
}

/// What has been kept since [`World::start_trace`].
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    done: VecDeque<DriveRequest>,
    /// Those that drives have, in the order in which they got them.
    under_way: Vec<DriveRequest>,
}

impl Trace {
    #[inline(never)]
    pub(super) fn sent(&mut self, now: Time, drive: u16, io: DriveIo) {
        let depth = self.under_way.iter().filter(|one| one.drive == drive).count() as u32;
        let (arrived, ended, succeeded) = (now, now, false);
        self.under_way.push(DriveRequest { arrived, ended, drive, io, depth, succeeded });
    }

    #[inline(never)]
    pub(super) fn ended(&mut self, now: Time, drive: u16, id: DriveIoId, outcome: IoOutcome) {
        let is_it = |one: &DriveRequest| one.drive == drive && one.io.id == id;
        if let Some(at) = self.under_way.iter().position(is_it) {
            let request = self.under_way.remove(at);
            let succeeded = outcome == IoOutcome::Ok;
            self.done.push_back(DriveRequest { ended: now, succeeded, ..request });
        }
    }
}

impl World {
    /// Keeps every request that reaches a drive from now on, for [`next_traced`](Self::next_traced). What goes to
    /// drives while files are placed ([`prefill`](Self::prefill)) is none.
    pub fn start_trace(&mut self) {
        self.trace = Some(Box::default());
    }

    /// Takes out the first request that was kept, in the order of their ends; those under way are none yet.
    pub fn next_traced(&mut self) -> Option<DriveRequest> {
        self.trace.as_mut()?.done.pop_front()
    }
}
